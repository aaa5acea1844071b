\set ECHO none
-- Sorts whose rows are taken in by parallel workers.
SET client_min_messages = warning;
LOAD 'gpusort';
\pset format unaligned
\pset tuples_only on

CREATE TABLE gs.p AS
SELECT i AS id, (i::bigint * 7919) % 30011 AS k, CASE WHEN i % 7 = 0 THEN NULL ELSE i % 100 END AS few, (i - 30000) / 3.0::float8 AS f,
	   ('t' || md5((i % 5000)::text)) COLLATE "C" AS t, i::numeric * 1000000007 % 99991 AS num, timestamp '2000-01-01' + i % 977 * interval '1 hour' AS ts,
	   repeat('w', i % 200) AS pad
FROM generate_series(1, 60000) i;
CREATE TABLE gs.p_small AS SELECT i AS id FROM generate_series(1, 5) i;
ANALYZE gs.p;
ANALYZE gs.p_small;

SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
-- the leader reads the sorted rows, wherever they go
SET gpusort.parallel_output = off;

-- The GpuSortIngest node of EXPLAIN (ANALYZE, VERBOSE), or NULL.
CREATE FUNCTION gs.ingest(query text) RETURNS jsonb LANGUAGE sql AS $$ SELECT node FROM gs.nodes(query, 'GpuSortIngest') node LIMIT 1 $$;

-- 'same' when rows were taken in below Gather, and the result is PostgreSQL's, with workers and without.
CREATE FUNCTION gs.compare_parallel(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	node jsonb := gs.ingest(query);
	before record;
	now record;
	native text;
BEGIN
	IF node IS NULL THEN
		RETURN 'no GpuSortIngest in the plan: ' || gs.forced_plan(query);
	ELSIF (node->>'Actual Rows')::numeric <> 0 THEN
		RETURN 'rows went through Gather: ' || (node->>'Actual Rows');
	END IF;
	before := gs.sorts();
	native := gs.native_digest(query);
	IF native IS DISTINCT FROM gs.forced_digest(query) THEN
		RETURN 'with workers: ' || gs.compare_bulk(query);
	ELSIF native IS DISTINCT FROM gs.alone_digest(query) THEN
		RETURN 'without workers: ' || gs.compare(query);
	END IF;
	now := gs.sorts();
	RETURN CASE WHEN now.sorts - before.sorts < 2 OR now.fallbacks > before.fallbacks THEN gs.compare(query) ELSE 'same' END;
END $$;

SELECT * FROM no_plan();

-- the plan
SELECT is(gs.forced_plan('SELECT id, pad FROM gs.p ORDER BY k, id'),
		  E'Custom Scan (GpuSort)\n  Sort Key: k, id\n  ->  Gather\n        Workers Planned: 2\n        ->  Parallel Custom Scan (GpuSortIngest)\n'
		  || E'              ->  Parallel Seq Scan on p\n', 'the plan');
SELECT is(gs.forced_plan('SELECT id FROM gs.p WHERE few > 3 ORDER BY k + 1 DESC LIMIT 50000'),
		  E'Limit\n  ->  Custom Scan (GpuSort)\n        Sort Key: ((k + 1)) DESC\n        ->  Gather\n              Workers Planned: 2\n'
		  || E'              ->  Parallel Custom Scan (GpuSortIngest)\n                    ->  Parallel Seq Scan on p\n                          Filter: (few > 3)\n',
		  'below a LIMIT');
SET max_parallel_workers_per_gather = 0;
SELECT unalike(gs.forced_plan('SELECT id FROM gs.p ORDER BY k'), '%GpuSortIngest%', 'not without workers');
SET max_parallel_workers_per_gather = 2;
SELECT unalike(gs.forced_plan('SELECT id FROM gs.p ORDER BY k FOR UPDATE'), '%GpuSortIngest%', 'not where PostgreSQL does not run workers');
SET parallel_setup_cost = 1e6;
SELECT unalike(gs.forced_plan('SELECT id FROM gs.p ORDER BY k'), '%GpuSortIngest%', 'not where workers cost too much');
SELECT alike(gs.forced_plan('SELECT id FROM gs.p ORDER BY k'), '%GpuSort)%', 'a serial GpuSort then');
SET parallel_setup_cost = 0;
SET gpusort.min_rows = 1000;
SET gpusort.setup_cost = 0;
SELECT alike(gs.plan('SELECT id, pad FROM gs.p ORDER BY k, id'), '%GpuSortIngest%', 'by cost, without force');
RESET gpusort.min_rows;
RESET gpusort.setup_cost;

-- the rows
SELECT is(gs.compare_parallel(format('SELECT id, k, few, pad FROM gs.p ORDER BY %s', o)), 'same', 'by ' || o)
FROM (VALUES ('k, id'), ('k DESC, id'), ('few NULLS FIRST, id DESC'), ('few DESC, k, id'), ('f DESC'), ('t, id'), ('t DESC, id DESC'), ('num, id'), ('ts DESC, id'),
	  ('k % 10, t, id'), ('id'), ('upper(t) COLLATE "C", id')) v (o);
SELECT is(gs.compare_parallel('SELECT p FROM gs.p ORDER BY k, id'), 'same', 'whole rows');
SELECT is(gs.compare_parallel('SELECT id, row(k, t) AS r FROM gs.p ORDER BY k, id'), 'same', 'records made by workers');
SELECT is(gs.compare_parallel('SELECT id, random() >= 0 FROM gs.p ORDER BY k, id'), 'same', 'a target that only the leader may compute');
SELECT is(gs.compare_parallel('SELECT id, ARRAY[k, id], t || k FROM gs.p ORDER BY k, id'), 'same', 'targets that are computed');
SELECT is(gs.compare_parallel('SELECT id FROM gs.p WHERE id < 0 ORDER BY k'), 'same', 'no rows');
SELECT is(gs.compare_parallel('SELECT id FROM gs.p WHERE id % 60001 = 77 ORDER BY k'), 'same', 'one row');
SELECT is(gs.compare_parallel('SELECT p.id, q.t FROM gs.p JOIN gs.p q ON q.id = p.id + 1 WHERE p.few < 50 ORDER BY p.k, p.id'), 'same', 'above a parallel join');
SELECT is(gs.compare_parallel('SELECT id FROM gs.p ORDER BY k, id LIMIT 30 OFFSET 50000'), 'same', 'LIMIT and OFFSET');
SELECT is(gs.compare_parallel('SELECT * FROM (SELECT id, k FROM gs.p ORDER BY k, id OFFSET 0) s WHERE id % 10 = 0'), 'same', 'a subquery');
SELECT is(gs.compare_parallel('WITH w AS MATERIALIZED (SELECT id, t FROM gs.p ORDER BY t, id) SELECT count(*), min(t), max(id) FROM w'), 'same', 'a CTE');
SELECT is(gs.compare_parallel('SELECT id FROM gs.p WHERE k > (SELECT avg(k) FROM gs.p) ORDER BY k, id'), 'same', 'the value of an InitPlan in workers');
SELECT is(gs.compare_parallel('SELECT id, (SELECT max(id) FROM gs.p_small) FROM gs.p ORDER BY k, id'), 'same', 'an InitPlan in the target');
SET parallel_leader_participation = off;
SELECT is(gs.compare_parallel('SELECT id, k, t FROM gs.p ORDER BY t, id'), 'same', 'without the leader');
SELECT is((gs.ingest('SELECT id FROM gs.p ORDER BY k, id')->'Rows by Process'->>0), 'leader 0', 'which takes in no row then');
RESET parallel_leader_participation;
SET max_parallel_workers = 0;
SELECT is(gs.compare_parallel('SELECT id, k, t FROM gs.p ORDER BY t, id'), 'same', 'no worker is to be had');
RESET max_parallel_workers;

-- what EXPLAIN says
SELECT is((gs.ingest('SELECT id, t FROM gs.p ORDER BY k')->>'Rows Ingested')::int, 60000, 'Rows Ingested');
SELECT is((SELECT sum(split_part(e, ' ', CASE WHEN e LIKE 'leader%' THEN 2 ELSE 3 END)::int) FROM
		   jsonb_array_elements_text(gs.ingest('SELECT id, t FROM gs.p ORDER BY k')->'Rows by Process') e), 60000::bigint, 'the sum of the processes');
SELECT is((gs.node('SELECT id, t FROM gs.p ORDER BY k')->>'Rows')::int, 60000, 'Rows of GpuSort');
SET gpusort.force = on;
SET gpusort.min_rows = 0;
SELECT lives_ok('EXPLAIN (ANALYZE, VERBOSE, BUFFERS) SELECT id, t FROM gs.p ORDER BY k', 'EXPLAIN (ANALYZE, VERBOSE)');
SELECT lives_ok('EXPLAIN (VERBOSE) SELECT id, t FROM gs.p ORDER BY k', 'EXPLAIN (VERBOSE)');

-- the statistics count rows once
SELECT sorts AS sorts_before, rows AS rows_before, fallbacks AS fallbacks_before FROM gpusort_stats \gset
SELECT count(*) AS n FROM (SELECT id FROM gs.p ORDER BY k OFFSET 0) s \gset
SELECT is((SELECT ROW(sorts - :sorts_before, rows - :rows_before, fallbacks - :fallbacks_before)::text FROM gpusort_stats), '(1,60000,0)', 'gpusort_stats');
SELECT is((SELECT count(*) FROM gpusort_jobs), 0::bigint, 'no sort is left');

-- errors in workers and leader leave a session that goes on
CREATE FUNCTION gs.fails_at(i int, at int) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS 'BEGIN RETURN 1 / (i - at); END';
SELECT alike(gs.plan(format('SELECT id FROM gs.p WHERE gs.fails_at(id, %s) < 2 ORDER BY k', 30000)), '%GpuSortIngest%', 'the plan of an error');
SELECT throws_ok(format('SELECT id FROM gs.p WHERE gs.fails_at(id, %s) < 2 ORDER BY k', n), '22012', NULL, 'an error at row ' || n)
FROM (VALUES (1), (20000), (40000), (60000)) v (n);
SET parallel_leader_participation = off;
SELECT throws_ok('SELECT id FROM gs.p WHERE gs.fails_at(id, 30000) < 2 ORDER BY k', '22012', NULL, 'an error in a worker');
RESET parallel_leader_participation;
SELECT throws_ok('SELECT 1 / (id - 5) FROM (SELECT id FROM gs.p ORDER BY k OFFSET 0) s', '22012', NULL, 'an error above');
SELECT is((SELECT count(*) FROM gpusort_jobs), 0::bigint, 'no sort is left');
RESET gpusort.force;
RESET gpusort.min_rows;
SELECT is(gs.compare_parallel('SELECT id, t FROM gs.p ORDER BY k, id'), 'same', 'a sort after the errors');

-- rows too long for a chunk come up through Gather
CREATE TABLE gs.p_wide AS SELECT i AS id, i * 7919 % 1009 AS k, CASE WHEN i % 400 = 0 THEN string_agg(md5((i * j)::text), '') ELSE 'short' END AS v
FROM generate_series(1, 2000) i, generate_series(1, CASE WHEN i % 400 = 0 THEN 60000 ELSE 1 END) j GROUP BY i;
ANALYZE gs.p_wide;
SELECT is(gs.compare('SELECT id, v || '''' AS v FROM gs.p_wide ORDER BY k, id'), 'same', 'rows of 2 MB among others');
SET parallel_leader_participation = off;
SELECT is((gs.ingest('SELECT id, v || '''' AS v FROM gs.p_wide ORDER BY k, id')->>'Rows Ingested')::int, 1995, 'only those go through Gather');
RESET parallel_leader_participation;

-- read again: with the same rows, with others, from the middle
SET enable_material = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SELECT is(gs.compare('SELECT s.id, o.id AS i FROM gs.p_small o, (SELECT id FROM gs.p ORDER BY k DESC, id OFFSET 59990) s'), 'same', 'the inner side of a nested loop');
SELECT is(gs.compare('SELECT o.id AS i, s.id FROM gs.p_small o, LATERAL (SELECT id FROM gs.p WHERE p.few > o.id * 15 ORDER BY k, p.id OFFSET 0) s WHERE s.id % 1000 = 0'), 'same',
		  'LATERAL with a parameter');
SELECT is(gs.compare('SELECT o.id, (SELECT string_agg(s.id::text, '','') FROM (SELECT id FROM gs.p ORDER BY k, id LIMIT 20 OFFSET 50000) s WHERE s.id > o.id) FROM gs.p_small o'), 'same',
		  'a subquery evaluated for each row');
RESET enable_material;
RESET enable_hashjoin;
RESET enable_mergejoin;
PREPARE q (int) AS SELECT id FROM gs.p WHERE few < $1 ORDER BY k, id;
SET plan_cache_mode = force_generic_plan;
SELECT is(gs.compare_results(format('EXECUTE q(%s)', n)), 'same', 'a prepared statement with ' || n) FROM (VALUES (0), (10), (90), (10)) v (n);
RESET plan_cache_mode;
CREATE FUNCTION gs.first_rows(n int) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
	r record;
	result text[] := '{}';
BEGIN
	FOR r IN SELECT id, t FROM gs.p ORDER BY k, id LOOP
		result := result || r::text;
		EXIT WHEN cardinality(result) = n;
	END LOOP;
	RETURN result;
END $$;
SET gpusort.force = on;
SELECT is(gs.first_rows(10), (gs.native_rows('SELECT id, t FROM gs.p ORDER BY k, id'))[:10], 'a loop left early');
SELECT is(gs.first_rows(60000), gs.native_rows('SELECT id, t FROM gs.p ORDER BY k, id'), 'a loop to its end');
SELECT is((SELECT count(*) FROM gpusort_jobs), 0::bigint, 'no sort is left');
RESET gpusort.force;

-- inside a transaction that has written, and a serializable one
BEGIN;
UPDATE gs.p SET few = -5 WHERE id % 1000 = 0;
SELECT is(gs.compare_parallel('SELECT id, few FROM gs.p ORDER BY few, id'), 'same', 'rows of the transaction itself');
ROLLBACK;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT is(gs.compare_parallel('SELECT id, few FROM gs.p ORDER BY few, id'), 'same', 'a serializable transaction');
COMMIT;
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM gs.p ORDER BY k, id;
SELECT is(gs.fetch('c', '3'), (gs.native_rows('SELECT id FROM gs.p ORDER BY k, id'))[:3], 'a cursor read in part and closed');
CLOSE c;
COMMIT;

-- partitions
CREATE TABLE gs.p_parts (id int, k int, t text COLLATE "C") PARTITION BY HASH (id);
CREATE TABLE gs.p_parts_0 PARTITION OF gs.p_parts FOR VALUES WITH (MODULUS 3, REMAINDER 0);
CREATE TABLE gs.p_parts_1 PARTITION OF gs.p_parts FOR VALUES WITH (MODULUS 3, REMAINDER 1);
CREATE TABLE gs.p_parts_2 PARTITION OF gs.p_parts FOR VALUES WITH (MODULUS 3, REMAINDER 2);
INSERT INTO gs.p_parts SELECT id, k, t FROM gs.p;
ANALYZE gs.p_parts;
SELECT is(gs.compare_parallel('SELECT id, t FROM gs.p_parts ORDER BY k, id'), 'same', 'above a parallel append');
SELECT is(gs.compare_parallel('SELECT id, t FROM gs.p_parts ORDER BY t DESC, id'), 'same', 'by text');

-- an input that is in order already and loses to another: the planner frees it
CREATE TABLE gs.p_ordered AS SELECT i % 1000 AS thousand, i % 10000 AS tenthous, i % 4 AS four, repeat('x', 180) AS pad
FROM generate_series(0, 9999) i ORDER BY md5(i::text);
CREATE INDEX ON gs.p_ordered (thousand, tenthous);
VACUUM ANALYZE gs.p_ordered;
SELECT alike(gs.forced_plan('SELECT thousand, tenthous, four FROM gs.p_ordered WHERE (thousand, tenthous, four) > (998, 5000, 3) ORDER BY thousand, tenthous'),
			 '%p_ordered%', 'the plan of an input in order');
SELECT is(gs.compare_results('SELECT thousand, tenthous, four FROM gs.p_ordered WHERE (thousand, tenthous, four) > (998, 5000, 3) ORDER BY thousand, tenthous'),
		  'same', 'and its rows');


-- Nodes below Gather are told apart by numbers of the plan: also those of a bitmap scan that was numbered last.
CREATE INDEX ON gs.p (k);
CREATE INDEX ON gs.p (num);
CREATE FUNCTION gs.bitmap_rows(query text) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) ' || query INTO plan;
	RETURN sum((node->>'Actual Rows')::numeric) FROM jsonb_path_query(plan::jsonb, 'strict $.** ? (@."Node Type" == "Bitmap Index Scan")') node;
END $$;
CREATE FUNCTION gs.forced_bitmap_rows(query text) RETURNS numeric LANGUAGE sql
SET gpusort.enable = on SET gpusort.force = on SET gpusort.min_rows = 0
AS $$ SELECT gs.bitmap_rows(query) $$;
SET enable_seqscan = off;
SET enable_indexscan = off;
SET max_parallel_workers_per_gather = 1;
RESET gpusort.parallel_output;
SELECT alike(gs.forced_plan('SELECT k, id, sum(id) OVER (PARTITION BY k ORDER BY id) FROM gs.p WHERE k < 3000 OR num < 9000'),
			 '%GpuSortOutput%Parallel Bitmap Heap Scan%BitmapOr%', 'all processes read a bitmap scan');
SET gpusort.parallel_output = off;
SELECT is(gs.forced_bitmap_rows('SELECT k, id, sum(id) OVER (PARTITION BY k ORDER BY id) FROM gs.p WHERE k < 3000 OR num < 9000'),
		  (SELECT (count(*) FILTER (WHERE k < 3000) + count(*) FILTER (WHERE num < 9000))::numeric FROM gs.p), 'whose counts are those of the bitmaps');
SELECT is(gs.compare_results('SELECT * FROM (SELECT k, id, sum(id) OVER (PARTITION BY k ORDER BY id) FROM gs.p WHERE k < 3000 OR num < 9000) s ORDER BY k, id'), 'same', 'with its rows');
RESET enable_seqscan;
RESET enable_indexscan;
SELECT * FROM finish();
