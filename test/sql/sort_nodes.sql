\set ECHO none
-- Sorts below other nodes than the top of a query: each gives PostgreSQL's answer.
SET client_min_messages = warning;
LOAD 'gpusort';
\pset format unaligned
\pset tuples_only on

-- The kinds of nodes that a query's GpuSort nodes are right below, "top" for the query itself.
CREATE FUNCTION gs.parents(query text) RETURNS text[] LANGUAGE plpgsql
SET gpusort.enable = on SET gpusort.force = on SET gpusort.min_rows = 0
AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	RETURN ARRAY(SELECT DISTINCT kind FROM (
		SELECT node->>'Node Type' AS kind
		FROM jsonb_path_query(plan::jsonb, 'strict $.**."Plans" ? (@[*]."Custom Plan Provider" == "GpuSort")') plans,
			jsonb_path_query(plan::jsonb, 'strict $.** ? (exists(@."Plans"))') node
		WHERE node->'Plans' = plans
		UNION ALL SELECT 'top' WHERE plan->0->'Plan'->>'Custom Plan Provider' = 'GpuSort') k);
END $$;


-- 'same' when there is a GpuSort right below a node of that kind (one of several, with | between), and the rows are those of PostgreSQL's plan.
CREATE FUNCTION gs.compare_below(parent text, query text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	IF NOT string_to_array(parent, '|') && gs.parents(query) THEN
		RETURN format('GpuSort below %s', gs.parents(query));
	END IF;
	RETURN gs.difference(gs.in_order(gs.native_rows(query)), gs.in_order(gs.forced_rows(query)));
END $$;

CREATE TABLE gs.n AS
SELECT i AS id, i % 7 AS g, CASE WHEN i % 11 > 0 THEN i * 7919 % 997 END AS k, CASE WHEN i % 13 > 0 THEN repeat('common ', i % 4) || i % 50 END AS t,
	   (i * 31 % 40)::float8 / 8 AS f
FROM generate_series(1, 3000) i;
CREATE TABLE gs.m AS SELECT i AS id, i * 31 % 700 AS k, (i % 60)::int8 AS b, repeat('common ', i % 4) || i % 50 AS t FROM generate_series(1, 2000) i;
CREATE TYPE gs.xy AS (x int, y int);
ANALYZE gs.n, gs.m;

-- A plan without the line that tells a WindowAgg's window from 18 on
CREATE FUNCTION gs.without_window(plan text) RETURNS text LANGUAGE sql
AS $$ SELECT regexp_replace(plan, E'  Window: [^\\n]*\\n', '') $$;

SELECT * FROM no_plan();
SET max_parallel_workers_per_gather = 0;

-- windows
SELECT is(gs.compare_below('WindowAgg', 'SELECT id, ' || f || ' FROM gs.n'), 'same', f) FROM (VALUES
	('row_number() OVER (PARTITION BY g ORDER BY k, id)'),
	('rank() OVER (PARTITION BY g ORDER BY t), dense_rank() OVER (PARTITION BY g ORDER BY t)'),
	('row_number() OVER (PARTITION BY g ORDER BY k, id) + rank() OVER (PARTITION BY g ORDER BY k, id) * 10'),
	('rank() OVER (ORDER BY k NULLS FIRST, f DESC), dense_rank() OVER (ORDER BY k NULLS FIRST, f DESC)'),
	('rank() OVER (PARTITION BY t), dense_rank() OVER (PARTITION BY t)'),
	('rank() OVER (PARTITION BY k, g ORDER BY f), dense_rank() OVER (ORDER BY f)'),
	('rank() OVER (PARTITION BY g ORDER BY k ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)'),
	('row_number() OVER w, rank() OVER w, dense_rank() OVER w FROM gs.n WINDOW w AS (PARTITION BY NULL::int ORDER BY k, id) UNION ALL SELECT 0, 0, 0, 0'),
	('lag(k) OVER (PARTITION BY g ORDER BY t, id), row_number() OVER (PARTITION BY g ORDER BY t, id)'),
	('percent_rank() OVER (PARTITION BY g ORDER BY k), rank() OVER (PARTITION BY g ORDER BY k)'),
	('sum(f) OVER (PARTITION BY g ORDER BY k), rank() OVER (PARTITION BY g ORDER BY k)'),
	('count(*) FILTER (WHERE f > 2) OVER (PARTITION BY t ORDER BY k GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE TIES)'),
	('first_value(t) OVER (PARTITION BY g ORDER BY k, id), sum(k) OVER (PARTITION BY f)'),
	('ntile(4) OVER (ORDER BY k, id), cume_dist() OVER (ORDER BY f)')) v (f);
SELECT is(gs.compare_below('WindowAgg', 'SELECT * FROM (SELECT id, rank() OVER (PARTITION BY g ORDER BY k) AS r FROM gs.n) s WHERE r <= 3'), 'same', 'the first ranks of each group');
SELECT is(gs.compare_below('WindowAgg', 'SELECT * FROM (SELECT id, row_number() OVER (ORDER BY k, id) AS r FROM gs.n) s WHERE r <= 3'), 'same', 'the first rows');
SELECT is(gs.compare_below('WindowAgg', 'SELECT row_number() OVER (ORDER BY k) FROM gs.n WHERE id < 0'), 'same', 'a window of no rows');
SELECT is(gs.compare_below('WindowAgg', 'SELECT rank() OVER (ORDER BY k), dense_rank() OVER (ORDER BY k) FROM gs.n WHERE id = 5'), 'same', 'a window of one row');
SELECT is(gs.compare_below('WindowAgg', 'SELECT v.i, s.* FROM (VALUES (0), (3), (9), (3)) v (i), LATERAL (SELECT id, rank() OVER (ORDER BY k) AS r, dense_rank() OVER (ORDER BY k) AS d FROM gs.n WHERE g = v.i) s'),
		  'same', 'a window that is run again with other parameters');
SELECT is(gs.compare_below('WindowAgg', 'SELECT v.i, s.* FROM (VALUES (0), (3)) v (i), LATERAL (SELECT id, rank() OVER (ORDER BY k) AS r FROM gs.n OFFSET 0) s WHERE s.id < 9'),
		  'same', 'and with none');
SELECT is(gs.compare_results('SELECT id, row_number() OVER (PARTITION BY g ORDER BY k, id) FROM gs.n'), 'same', 'a window''s rows come in its order');
SELECT is(gs.compare_results('SELECT id, row_number() OVER (PARTITION BY g % 3 ORDER BY k + 1, id) FROM gs.n LIMIT 100 OFFSET 5'), 'same', 'a window of expressions below a LIMIT');

-- DISTINCT and groups
SET enable_hashagg = off;
SELECT is(gs.compare_below('Unique', 'SELECT DISTINCT g, t FROM gs.n'), 'same', 'DISTINCT');
SELECT is(gs.compare_below('Unique', 'SELECT DISTINCT ON (g, k) g, k, id FROM gs.n ORDER BY g, k DESC, id'), 'same', 'DISTINCT ON');
SELECT is(gs.compare_results('SELECT DISTINCT ON (g, k) g, k, id FROM gs.n ORDER BY g, k DESC, id'), 'same', 'DISTINCT ON, in order');
SELECT is(gs.compare_below('Unique', 'SELECT DISTINCT ON (id % 100) id % 100 FROM gs.n'), 'same', 'DISTINCT ON an expression');
SELECT is(gs.compare_below('Aggregate', 'SELECT ' || g || ', count(*), sum(f), max(id) FROM gs.n GROUP BY ' || g), 'same', 'GROUP BY ' || g)
FROM (VALUES ('t'), ('k, g'), ('id / 10')) v (g);
SELECT is(gs.compare_below('Aggregate', 'SELECT g, t, count(*), grouping(g, t) FROM gs.n GROUP BY ' || g), 'same', g)
FROM (VALUES ('ROLLUP (g, t)'), ('CUBE (g, t)'), ('GROUPING SETS ((g, t), (t), ())'), ('GROUPING SETS ((g), (t)), t, g')) v (g);
SELECT is(gs.compare_below('Aggregate|WindowAgg', 'SELECT g, count(DISTINCT k), string_agg(t, '','' ORDER BY id) FROM gs.n GROUP BY g'), 'same', 'ordered aggregates in sorted groups');
SELECT is(gs.compare_below('Group', 'SELECT g, t FROM gs.n GROUP BY g, t'), 'same', 'groups without aggregates');

-- set operations (from 17 on UNION merges inputs in order), IN
SELECT is(gs.compare_below(parent, query), 'same', query) FROM (VALUES
	('Unique|Merge Append', 'SELECT k, t FROM gs.n UNION SELECT k, t FROM gs.m'),
	('Unique|Merge Append', 'SELECT k FROM gs.n UNION SELECT k FROM gs.m UNION SELECT id FROM gs.n'),
	('SetOp', 'SELECT k, t FROM gs.n INTERSECT SELECT k, t FROM gs.m'),
	('SetOp', 'SELECT k FROM gs.n INTERSECT ALL SELECT k FROM gs.m'),
	('SetOp', 'SELECT k FROM gs.n EXCEPT SELECT k FROM gs.m'),
	('SetOp', 'SELECT t FROM gs.n EXCEPT ALL SELECT t FROM gs.m')) v (parent, query);

-- merge joins
SET enable_hashjoin = off;
SET enable_nestloop = off;
SELECT is(gs.compare_below('Merge Join', 'SELECT n.id, m.id FROM gs.n ' || kind || ' JOIN gs.m ON ' || clause), 'same', kind || ' JOIN ON ' || clause)
FROM (VALUES ('INNER'), ('LEFT'), ('RIGHT'), ('FULL')) k (kind),
	 (VALUES ('n.k = m.k'), ('n.t = m.t AND n.k = m.k'), ('n.g = m.b AND n.k = m.k'), ('n.id % 500 = m.k AND n.t = m.t')) c (clause);
SELECT is(gs.compare_below('Merge Join', 'SELECT n.id, m.id FROM gs.n JOIN gs.m ON n.k = m.k AND n.id < m.id'), 'same', 'a join with another condition');
SELECT is(gs.compare_below('Merge Join', 'SELECT count(*), sum(n.id * 3 + m.id) FROM gs.n JOIN gs.m ON n.g = m.b'), 'same', 'many rows of one key on both sides');
SELECT is(gs.compare_below('Merge Join', 'SELECT count(*), sum(a.id * 3 + b.id) FROM gs.n a JOIN gs.n b ON a.t = b.t'), 'same', 'ties of prefixes on both sides');
SELECT is(gs.compare_below('Merge Join', 'SELECT id FROM gs.n WHERE k IN (SELECT k FROM gs.m)'), 'same', 'a semijoin');
SELECT is(gs.compare_below('Merge Join', 'SELECT id FROM gs.n WHERE NOT EXISTS (SELECT 1 FROM gs.m WHERE m.k = n.k)'), 'same', 'an antijoin');
SELECT is(gs.compare_below('Merge Join', 'SELECT a.id, b.id, c.id FROM gs.n a JOIN gs.m b USING (k) JOIN gs.n c ON c.id = b.id WHERE a.g = 1'), 'same', 'a join of three');
SELECT is(gs.compare_below('Merge Join', 'SELECT v.i, s.* FROM (VALUES (0), (3), (9), (3)) v (i), LATERAL (SELECT a.id, b.id AS other FROM gs.n a JOIN gs.m b USING (k) WHERE a.g = v.i OFFSET 0) s'),
		  'same', 'a join that is run again with other parameters');
SELECT is(gs.compare_below('Merge Join', 'SELECT v.i, s.* FROM (VALUES (0), (3), (9)) v (i), LATERAL (SELECT a.id, b.id AS other FROM gs.n a JOIN gs.m b USING (k) WHERE a.g = 2 OFFSET 0) s'),
		  'same', 'and with none');
-- Positions are marked in a chunk of 4 MB and restored from another, in rows that tie, in rows too long for a chunk.
CREATE TABLE gs.chunks AS SELECT i AS id, i / 4000 AS k, repeat(md5((i / 4000)::text), 30) || i % 3 AS t, repeat('x', 500) AS pad FROM generate_series(1, 20000) i;
CREATE TABLE gs.few AS SELECT i AS id, i AS k, repeat(md5(i::text), 30) || i % 3 AS t FROM generate_series(0, 5) i, generate_series(1, 3);
INSERT INTO gs.chunks SELECT 100000 + i, 2, 'long', repeat(md5(i::text), 40000) FROM generate_series(1, 3) i;
ALTER TABLE gs.chunks ALTER pad SET STORAGE EXTERNAL;
ANALYZE gs.chunks, gs.few;
SELECT is(gs.compare_below('Merge Join', 'SELECT c.k, count(*), sum(c.id::numeric * f.id), sum(length(c.pad)), sum(hashtext(c.pad)::numeric) FROM gs.few f ' || kind || ' JOIN gs.chunks c ON ' || clause || ' GROUP BY c.k'),
		  'same', 'marks beyond a chunk: ' || kind || ' JOIN ON ' || clause)
FROM (VALUES ('INNER'), ('FULL')) k (kind), (VALUES ('f.k = c.k'), ('f.t = c.t')) c (clause);
SELECT is(gs.compare_below('Merge Join', 'SELECT c.k, count(*), sum(c.id::numeric * f.id), sum(length(c.pad)) FROM gs.chunks c JOIN gs.few f ON f.k = c.k AND f.id + 1 < c.id GROUP BY c.k'),
		  'same', 'the same the other way round');
SET work_mem = '64kB';
SELECT is(gs.compare_below('Merge Join', 'SELECT c.k, count(*), sum(c.id::numeric * f.id), sum(length(c.pad)) FROM gs.few f JOIN gs.chunks c ON f.k = c.k GROUP BY c.k'),
		  'same', 'with less memory than what is kept');
RESET work_mem;
-- The Material that PostgreSQL puts over a Sort on disk is not needed.
SET work_mem = '64kB';
SELECT ok(gs.forced_plan('SELECT a.id FROM gs.n a JOIN gs.n b USING (k)') NOT LIKE '%Materialize%', 'no Material over GpuSort');
RESET work_mem;
RESET enable_hashjoin;
RESET enable_nestloop;
RESET enable_hashagg;

-- other places
CREATE VIEW gs.n_ordered AS SELECT id, t FROM gs.n ORDER BY t, id LIMIT 2000;
SELECT is(gs.compare_results('SELECT count(*), min(id) FROM gs.n_ordered'), 'same', 'a view with an order');
SELECT ok('CTE Scan' = ANY (gs.parents('WITH c AS MATERIALIZED (SELECT id, t FROM gs.n ORDER BY t, id) SELECT * FROM c WHERE id > 5')) OR gs.forced_uses('WITH c AS MATERIALIZED (SELECT id, t FROM gs.n ORDER BY t, id) SELECT * FROM c WHERE id > 5'),
		  'a CTE''s order is taken');
SELECT is(gs.compare_results('WITH c AS MATERIALIZED (SELECT id, t FROM gs.n ORDER BY t, id) SELECT * FROM c WHERE id > 5'), 'same', 'and right');
SELECT is(gs.compare_results('WITH RECURSIVE r (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM (SELECT i FROM r ORDER BY i DESC) s WHERE i < 5) SELECT * FROM r'), 'same', 'an order in a recursive query');
SELECT is(gs.compare_results('SELECT g, (SELECT array_agg(s.id) FROM (SELECT id FROM gs.m WHERE m.b = n.g ORDER BY k, id) s) FROM gs.n WHERE id < 20 ORDER BY id'), 'same', 'an order in a correlated subquery');
SELECT is(gs.compare_results('SELECT id FROM gs.n WHERE (k, t) IN (SELECT k, t FROM gs.m) ORDER BY id'), 'same', 'IN of two columns');
SELECT is(gs.compare_results('SELECT * FROM (SELECT id, k FROM gs.n ORDER BY k, id FOR UPDATE) s'), 'same', 'FOR UPDATE in a subquery');

-- statements that write
CREATE FUNCTION gs.written(statement text, forced bool) RETURNS text[] LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('gpusort.enable', forced::text, true), set_config('gpusort.force', forced::text, true), set_config('gpusort.min_rows', '0', true);
	DROP TABLE IF EXISTS gs.w;
	CREATE TABLE gs.w (no serial, id int, t text);
	EXECUTE statement;
	PERFORM set_config('gpusort.enable', 'off', true);
	RETURN gs.rows('SELECT ctid, * FROM gs.w ORDER BY ctid');
END $$;
SELECT is(gs.difference(gs.written(s, false), gs.written(s, true)), 'same', s) FROM (VALUES
	('INSERT INTO gs.w (id, t) SELECT id, t FROM gs.n ORDER BY t, id'),
	('DROP TABLE gs.w; CREATE TABLE gs.w AS SELECT row_number() OVER (ORDER BY t, id) AS no, id, t FROM gs.n ORDER BY t, id'),
	('INSERT INTO gs.w (id, t) SELECT id, t FROM gs.n; UPDATE gs.w SET t = s.r::text FROM (SELECT id, rank() OVER (ORDER BY k, id) AS r FROM gs.n) s WHERE s.id = w.id'),
	('INSERT INTO gs.w (id, t) SELECT id, t FROM gs.n; SET LOCAL enable_hashjoin = off; SET LOCAL enable_nestloop = off; DELETE FROM gs.w USING gs.m WHERE m.id = w.id')) v (s);
SELECT is((SELECT count(*)::int FROM (VALUES ('INSERT INTO gs.w (id, t) SELECT id, t FROM gs.n ORDER BY t, id'), ('CREATE TABLE gs.v AS SELECT id, t FROM gs.n ORDER BY t, id')) v (s) WHERE gs.forced_uses(s)),
		  2, 'they go through GpuSort');

-- Plans whose columns only a reference to the plan below can name: row identities of inherited tables, fields of records
CREATE TABLE gs.heir () INHERITS (gs.m);
INSERT INTO gs.heir SELECT * FROM gs.m;
SET enable_hashjoin = off;
SET enable_nestloop = off;
SELECT ok(gs.forced_uses('UPDATE gs.m SET b = n.f FROM gs.n WHERE n.id = m.id'), 'UPDATE of an inherited table by way of a merge join');
SELECT is(gs.compare_results('UPDATE gs.m SET b = n.g FROM gs.n WHERE n.id = m.id AND m.id < 3 RETURNING m.tableoid::regclass, m.id, m.b'), 'same', 'and right');
RESET enable_hashjoin;
RESET enable_nestloop;
CREATE FUNCTION gs.verbose_plan(query text) RETURNS text LANGUAGE plpgsql
SET gpusort.enable = on SET gpusort.force = on SET gpusort.min_rows = 0
AS $$
DECLARE
	line text;
	result text := '';
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (VERBOSE, COSTS OFF) ' || query LOOP
		result := result || line || E'\n';
	END LOOP;
	RETURN result;
END $$;
SELECT ok(gs.verbose_plan('WITH RECURSIVE r (i, j) AS (SELECT 1, 2 UNION ALL SELECT i + 1, m.b::int FROM r JOIN gs.m ON m.id = r.i WHERE i < 5) SEARCH BREADTH FIRST BY i SET seq SELECT * FROM r ORDER BY seq') LIKE '%Sort Key: r.seq%',
		  'EXPLAIN of a record''s fields');
SELECT ok(gs.verbose_plan('SELECT (s.r).x FROM (SELECT ROW(id, k)::gs.xy AS r FROM gs.n OFFSET 0) s ORDER BY (s.r).x') LIKE '%Custom Scan (GpuSort)%Output: ((s.r).x)%', 'EXPLAIN of a composite type''s fields');

-- PL/pgSQL, prepared statements
CREATE FUNCTION gs.loop() RETURNS int[] LANGUAGE plpgsql AS $$
DECLARE
	r record;
	result int[] := '{}';
	c CURSOR (g0 int) FOR SELECT id, rank() OVER (ORDER BY k, id) FROM gs.n WHERE g = g0;
BEGIN
	FOR i IN 1 .. 12 LOOP
		FOR r IN SELECT DISTINCT ON (k) id FROM gs.n WHERE g = i % 5 ORDER BY k, id LOOP
			result := result || r.id;
		END LOOP;
	END LOOP;
	FOR r IN c(3) LOOP
		result := result || r.id || r.rank::int;
	END LOOP;
	RETURN result;
END $$;
SELECT is(gs.compare_results('SELECT gs.loop()', 'DISCARD PLANS'), 'same', 'loops and a cursor of PL/pgSQL, with generic plans');
SET plan_cache_mode = force_generic_plan;
SET gpusort.force = on;
SET gpusort.min_rows = 0;
PREPARE ranked (int) AS SELECT array_agg(r ORDER BY id) FROM (SELECT id, rank() OVER (PARTITION BY f ORDER BY k) AS r FROM gs.n WHERE g = $1) s;
EXECUTE ranked(1) \gset first_
EXECUTE ranked(2) \gset second_
SET gpusort.enable = off;
EXECUTE ranked(1) \gset first_again_
DEALLOCATE ranked;
PREPARE ranked (int) AS SELECT array_agg(r ORDER BY id) FROM (SELECT id, rank() OVER (PARTITION BY f ORDER BY k) AS r FROM gs.n WHERE g = $1) s;
EXECUTE ranked(1) \gset native_first_
EXECUTE ranked(2) \gset native_second_
SELECT is(:'first_array_agg'::text, :'native_first_array_agg'::text, 'a generic plan');
SELECT is(:'second_array_agg'::text, :'native_second_array_agg'::text, 'run again with another parameter');
SELECT is(:'first_again_array_agg'::text, :'native_first_array_agg'::text, 'and when gpusort was turned off after it was made');
RESET plan_cache_mode;
RESET gpusort.enable;
RESET gpusort.force;
RESET gpusort.min_rows;

-- partitions
CREATE TABLE gs.parted (id int, g int, t text) PARTITION BY LIST (g);
CREATE TABLE gs.parted_0 PARTITION OF gs.parted FOR VALUES IN (0, 1, 2);
CREATE TABLE gs.parted_1 PARTITION OF gs.parted FOR VALUES IN (3, 4);
CREATE TABLE gs.parted_2 PARTITION OF gs.parted DEFAULT;
INSERT INTO gs.parted SELECT id, g, t FROM gs.n;
CREATE INDEX ON gs.parted_0 (t, id);
CREATE INDEX ON gs.parted_1 (t, id);
ANALYZE gs.parted;
SELECT is(gs.compare_results('SELECT * FROM gs.parted ORDER BY t, id'), 'same', 'a partitioned table');
SET enable_sort = off;
SET enable_seqscan = off;
SET enable_hashagg = off;
SELECT is(gs.compare_below('Merge Append', 'SELECT DISTINCT ON (t, id) * FROM gs.parted'), 'same', 'partitions without an index beside one with');
RESET enable_hashagg;
RESET enable_sort;
RESET enable_seqscan;
SET enable_partitionwise_aggregate = on;
SET enable_hashagg = off;
SELECT is(gs.compare_below('Aggregate', 'SELECT g, t, count(*) FROM gs.parted GROUP BY g, t'), 'same', 'groups by partition');
RESET enable_hashagg;
RESET enable_partitionwise_aggregate;

-- parallel plans
RESET max_parallel_workers_per_gather;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET enable_hashjoin = off;
SET enable_nestloop = off;
CREATE TABLE gs.pn AS SELECT i AS id, i % 100 AS g, (i::bigint * 7919) % 100003 AS k FROM generate_series(1, 60000) i;
ALTER TABLE gs.pn SET (parallel_workers = 2);
ANALYZE gs.pn;
SET gpusort.parallel_output = off;
SELECT is(gs.without_window(gs.forced_plan('SELECT id, row_number() OVER (PARTITION BY g ORDER BY k) FROM gs.pn')),
		  E'WindowAgg\n  ->  Custom Scan (GpuSort)\n        Sort Key: g, k\n        ->  Gather\n              Workers Planned: 2\n              ->  Parallel Custom Scan (GpuSortIngest)\n                    ->  Parallel Seq Scan on pn\n',
		  'rows are taken in by several processes for a window');
RESET gpusort.parallel_output;
SELECT is(gs.compare_below(parent, query), 'same', query) FROM (VALUES
	('WindowAgg', 'SELECT id, row_number() OVER (PARTITION BY g ORDER BY k, id) FROM gs.pn'),
	('Unique', 'SELECT DISTINCT ON (g) g, id FROM gs.pn ORDER BY g, k, id'),
	('Merge Join', 'SELECT a.id, b.id FROM gs.pn a JOIN gs.pn b ON a.k = b.k AND a.id <> b.id'),
	('Merge Join', 'SELECT count(*), sum(a.id::int8 * b.id) FROM gs.pn a JOIN gs.n b ON a.id = b.k'),
	('Merge Join', 'SELECT a.id, b.id FROM gs.pn a FULL JOIN gs.n b ON a.id = b.k + 59500'),
	('WindowAgg', 'SELECT id, rank() OVER (ORDER BY g), sum(k) OVER (PARTITION BY id % 10) FROM gs.pn')) v (parent, query);
-- The finished plan's Gather Merge over a Sort, and a Sort below Gather in each process
SET gpusort.row_cost = 1000;
SET enable_hashagg = off;
SELECT is(gs.without_window(gs.forced_plan('SELECT id, sum(id::float8) OVER (ORDER BY k) FROM gs.pn')),
		  E'WindowAgg\n  ->  Custom Scan (GpuSort)\n        Sort Key: k\n        ->  Gather\n              Workers Planned: 2\n              ->  Parallel Custom Scan (GpuSortIngest)\n                    ->  Parallel Seq Scan on pn\n',
		  'a Gather Merge over a Sort is replaced');
SELECT is(gs.compare_below('WindowAgg', 'SELECT id, rank() OVER (ORDER BY k) FROM gs.pn'), 'same', 'and right');
-- create_plan computes md5 below the Sort, and no path has it: what the Gather Merge gives is not sorted again
SET enable_nestloop = on;
SELECT is((SELECT count(*) FROM regexp_matches(gs.forced_plan('SELECT DISTINCT a.k, md5(a.id::text) FROM gs.pn a, generate_series(1, 20)'), 'Sort Key', 'g')), 1::bigint,
		  'rows that come in order are not sorted');
SET enable_nestloop = off;
SELECT is(gs.compare_below('Merge Join', 'SELECT count(*), sum(a.id::int8 * b.id) FROM gs.pn a JOIN gs.n b ON a.id = b.k'), 'same', 'sorts in each process');
SELECT is(gs.compare_below('Aggregate', 'SELECT g, count(*), sum(k) FROM gs.pn GROUP BY g'), 'same', 'groups in each process');
RESET ALL;
LOAD 'gpusort';
SET client_min_messages = warning;

-- left alone
SET max_parallel_workers_per_gather = 0;
SET gpusort.min_rows = 0;
SET gpusort.setup_cost = 0;
SET gpusort.row_cost = 0;
SELECT ok(gs.uses('SELECT DISTINCT ON (g) g, id FROM gs.pn ORDER BY g, k'), 'a sort below Unique, by cost');
SELECT ok(gs.uses('SELECT * FROM (SELECT * FROM gs.n ORDER BY k LIMIT 100) s ORDER BY id LIMIT 5'), 'sorts below LIMIT, too');
SET gpusort.row_cost = 1000;
SELECT ok(NOT gs.uses('SELECT * FROM (SELECT * FROM gs.n ORDER BY k LIMIT 100) s ORDER BY id LIMIT 5'), 'these stay with PostgreSQL where they cost more');
SELECT ok(NOT gs.uses('SELECT DISTINCT ON (g) g, id FROM gs.pn ORDER BY g, k'), 'not where it costs more');
RESET gpusort.row_cost;
SET gpusort.min_rows = 100000;
SELECT ok(NOT gs.uses('SELECT DISTINCT ON (g) g, id FROM gs.pn ORDER BY g, k'), 'nor below gpusort.min_rows');
RESET gpusort.min_rows;
CREATE INDEX ON gs.pn (g);
ANALYZE gs.pn;
SET gpusort.force = on;
SET enable_sort = off;
SELECT ok(gs.plan('SELECT id, rank() OVER (PARTITION BY g ORDER BY k) FROM gs.pn') LIKE '%Incremental Sort%', 'an Incremental Sort is left alone');
SELECT ok(gs.plan('SELECT id, rank() OVER (PARTITION BY g ORDER BY k) FROM gs.pn') NOT LIKE '%GpuSort%', 'with nothing in its place');
RESET enable_sort;
SELECT is(gs.compare_results('SELECT id, rank() OVER (PARTITION BY g ORDER BY k) AS r FROM gs.pn'), 'same', 'and so is its answer');

-- From 18 on PostgreSQL can sort for DISTINCT by the columns of a join first; GpuSort sorts in the order of DISTINCT, and so a
-- merge join above has to sort, which would be by a hash table otherwise.
CREATE TABLE gs.ordered_big AS SELECT i AS id, ((hashint4(i) & 1023) % 50 - 5)::int2 AS few, repeat('x', 60) AS pad FROM generate_series(1, 102846) i;
ALTER TABLE gs.ordered_big ADD PRIMARY KEY (id);
ALTER TABLE gs.ordered_big SET (parallel_workers = 1);
CREATE VIEW gs.ordered_rows AS SELECT * FROM gs.ordered_big OFFSET 0;
CREATE TABLE gs.ordered_mid AS
SELECT i AS id, 3489 - i AS u, chr(97 + i * 31 % 26) || i % 30 AS t, i % 3 > 0 AS o, CASE WHEN i % 30 > 0 THEN i % 3 END AS g, repeat('x', 60) AS pad
FROM generate_series(1, 3489) i ORDER BY hashint4(i);
CREATE VIEW gs.ordered_view WITH (security_barrier) AS SELECT * FROM gs.ordered_mid WHERE g IS NOT NULL;
CREATE TABLE gs.ordered_few AS SELECT i AS id, i * 3 AS v, i % 5 AS d, 'r' || i AS t FROM generate_series(1, 24) i;
ALTER TABLE gs.ordered_few ADD PRIMARY KEY (id);
ANALYZE gs.ordered_big, gs.ordered_mid, gs.ordered_few;
RESET ALL;
LOAD 'gpusort';
SET client_min_messages = warning;
SET gpusort.min_rows = 0;
SET gpusort.setup_cost = 0;
SET gpusort.row_cost = 0;
SET work_mem = '64kB';
SET max_parallel_workers_per_gather = 4;
SET parallel_setup_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT is(gs.compare_results($$SELECT coalesce(f.d + 0, 0), count(*), sum(s.c), sum(f.v)
	FROM (SELECT DISTINCT m.o, m.t, b.id AS c, m.id AS x FROM gs.ordered_rows b JOIN gs.ordered_view m ON b.few = m.id JOIN gs.ordered_big j ON m.u = j.id) s
		LEFT JOIN gs.ordered_few f ON s.x = f.id
	WHERE nullif(f.t, '') <> 'k5' GROUP BY coalesce(f.d + 0, 0) ORDER BY 1$$), 'same', 'a merge join does not take an order that is not there any more');
-- columns that are the same but for the NULLs of grouping sets, in one row: setrefs.c of 18 and later tells them apart
SELECT is(gs.compare_results($$SELECT o1, round(greatest(0.00, o1), 2), sum(o5), percent_rank() OVER (ORDER BY sum(o5), o1, round(greatest(0.00, o1), 2))
	FROM (SELECT id AS o1, d AS o5 FROM gs.ordered_few GROUP BY GROUPING SETS ((d), (id, d))) s GROUP BY o1, ROLLUP (greatest(0.00, o1))$$), 'same',
	'a window over grouping sets with an expression of a column');
-- what nobody reads of a window's InitPlans is not sent to workers, and a Gather depends on an InitPlan that stays above it
SELECT is(gs.compare_results($$SELECT m.id, b.few, sum((SELECT max(v) FROM gs.ordered_few)) OVER (PARTITION BY m.t ORDER BY m.id)
	FROM gs.ordered_mid m LEFT JOIN (SELECT id, few FROM gs.ordered_big WHERE false) b ON m.id = b.id AND b.few > (SELECT min(v) FROM gs.ordered_few)$$), 'same',
	'a window with InitPlans that nobody reads');
SELECT is(gs.compare_results($$SELECT id, few - (SELECT min(v) FROM gs.ordered_few WHERE id > 5) FROM gs.ordered_big ORDER BY 2, 1 OFFSET 90000$$), 'same',
	'workers that read an InitPlan below a sort');

SELECT * FROM finish();
