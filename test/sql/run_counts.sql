\set ECHO none
-- Groups that the service counts: how many rows of one key there are, and values of what is grouped by.
SET client_min_messages = warning;
LOAD 'gpusort';
\pset format unaligned
\pset tuples_only on
SET enable_hashagg = off;
SET max_parallel_workers_per_gather = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;

CREATE TYPE gs.run_mood AS ENUM ('sad', 'ok', 'happy');
CREATE COLLATION gs.ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE gs.rc AS
SELECT i AS id, (i * 7919) % 1009 AS k, CASE WHEN i % 5 > 0 THEN i % 11 END AS n, i % 7 AS m,
	((i % 300) || 'text') COLLATE "C" AS short, (repeat('x', 100) || i % 200) COLLATE "C" AS long,
	CASE WHEN i % 3 = 0 THEN 'key ' || i % 50 ELSE repeat('y', 80) || i % 40 END COLLATE "C" AS mixed,
	(ARRAY['a', 'A', 'b', 'B', NULL])[i % 5 + 1] COLLATE gs.ci AS folded,
	((i % 100) / 3.0)::numeric AS num, CASE i % 6 WHEN 0 THEN 'NaN' WHEN 1 THEN -0.0 WHEN 2 THEN 0 ELSE i % 40 END::float8 AS f,
	(ARRAY['sad', 'ok', 'happy', NULL])[i % 4 + 1]::gs.run_mood AS mood, i % 2 = 0 AS b,
	date '2020-01-01' + i % 90 AS d, md5((i % 120)::text)::uuid AS u, ('10.0.0.' || i % 200)::inet AS ip
FROM generate_series(1, 12000) i;
CREATE TABLE gs.rc_none (LIKE gs.rc);
CREATE VIEW gs.rc_view AS SELECT k, count(*) AS c FROM gs.rc GROUP BY k;
ANALYZE gs.rc, gs.rc_none;

SELECT * FROM no_plan();

CREATE FUNCTION gs.counts(query text) RETURNS bool LANGUAGE sql AS
$$ SELECT gs.forced_plan(query) LIKE '%Rows Kept: first 1 of each group, counted%' $$;

-- 'same' where the groups are counted, serially and by several processes, and where the service may not be used.
CREATE FUNCTION gs.compare_counts(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	native text[] := gs.native_sorted_rows(query);
	result text;
BEGIN
	IF NOT gs.counts(query) THEN
		RETURN 'not counted: ' || gs.forced_plan(query);
	END IF;
	result := gs.compare(query);
	IF result = 'same' THEN
		result := gs.difference(native, gs.refused_sorted_rows(query));
	END IF;
	IF result = 'same' THEN
		SET LOCAL max_parallel_workers_per_gather = 2;
		SET LOCAL gpusort.setup_cost = 0;
		SET LOCAL gpusort.row_cost = 0;
		IF NOT gs.counts(query) THEN
			RETURN 'not counted in parallel: ' || gs.forced_plan(query);
		END IF;
		result := gs.difference(native, gs.forced_sorted_rows(query));
		IF result = 'same' THEN
			result := gs.difference(native, gs.refused_sorted_rows(query));
		END IF;
		SET LOCAL max_parallel_workers_per_gather = 0;
		SET LOCAL gpusort.setup_cost TO DEFAULT;
		SET LOCAL gpusort.row_cost TO DEFAULT;
	END IF;
	RETURN result;
END $$;

-- what is counted
SELECT is(gs.shape('SELECT k, count(*) FROM gs.rc GROUP BY k'), 'Finalize Agg(GpuSort(Seq Scan))', 'the sort counts, and an Agg adds up');
SELECT is(gs.compare_counts('SELECT k, count(*) FROM gs.rc GROUP BY k ORDER BY k'), 'same', 'rows');
SELECT is(gs.compare_counts('SELECT k, count(*) FROM gs.rc GROUP BY k ORDER BY k DESC'), 'same', 'rows, by a key the other way');
SELECT is(gs.compare_counts('SELECT k, count(1), count(''x'') FROM gs.rc GROUP BY k ORDER BY k'), 'same', 'constants');
SELECT is(gs.compare_counts('SELECT n, count(n) FROM gs.rc GROUP BY n ORDER BY n'), 'same', 'values of the key, of which some are NULL');
SELECT is(gs.compare_counts('SELECT count(n), count(*), n, count(m) FROM gs.rc GROUP BY m, n ORDER BY n NULLS FIRST, m'), 'same', 'values of both keys, and rows');
SELECT is(gs.compare_counts('SELECT count(*) * 2 + count(n) AS c, -m FROM gs.rc GROUP BY n, m ORDER BY m, n'), 'same', 'what is computed of both');
SELECT is(gs.compare_counts('SELECT count(*) FROM gs.rc GROUP BY k ORDER BY k'), 'same', 'without the key');
SELECT is(gs.compare_counts('SELECT k FROM gs.rc GROUP BY k HAVING count(*) > 11 ORDER BY k'), 'same', 'for HAVING alone');
SELECT is(gs.compare_counts('SELECT k, count(*) FROM gs.rc GROUP BY k HAVING count(*) > 11 AND k % 2 = 0 ORDER BY k'), 'same', 'for both');
SELECT is(gs.compare_counts('SELECT k, count(*) FROM gs.rc GROUP BY k ORDER BY count(*) DESC, k LIMIT 10'), 'same', 'the largest');
SELECT is(gs.compare_counts('SELECT k / 3 AS e, count(*), count(2) FROM gs.rc GROUP BY k / 3 ORDER BY e'), 'same', 'groups of an expression');
SELECT is(gs.compare_counts('SELECT n IS NULL AS e, m + 1, count(*) FROM gs.rc GROUP BY 1, 2 ORDER BY 1, 2'), 'same', 'groups of two');
SELECT is(gs.compare_counts('SELECT k, count(*) FROM gs.rc WHERE id % 3 = 0 GROUP BY k ORDER BY k'), 'same', 'of some rows');

-- what is not
SELECT ok(NOT gs.counts(format('SELECT k, %s FROM gs.rc GROUP BY k', a)), a)
FROM unnest(ARRAY['count(n)', 'sum(k)', 'count(*), sum(n)', 'count(*), max(id)', 'count(DISTINCT k)', 'count(*) FILTER (WHERE k > 3)',
	'count(NULL::int)', 'array_agg(k), count(*)', 'k']) a;
SELECT ok(NOT gs.counts(q), q)
FROM unnest(ARRAY['SELECT count(*) FROM gs.rc', 'SELECT k, m, count(*) FROM gs.rc GROUP BY ROLLUP (k, m)',
	'SELECT k, count(random()) FROM gs.rc GROUP BY k']) q;

-- kinds of keys
SELECT is(gs.compare_counts(format('SELECT %1$s, count(*), count(%1$s) FROM gs.rc GROUP BY %1$s ORDER BY %1$s', c)), 'same', c)
FROM unnest(ARRAY['short', 'long', 'mixed', 'mood', 'b', 'd', 'u', 'ip', 'num']) c;
-- of values that are equal and look different any may be shown
SELECT is(gs.compare_counts('SELECT folded COLLATE "C" AS c, count(*) FROM gs.rc GROUP BY 1 ORDER BY 1'), 'same', 'a collation of the query');
SELECT is(gs.compare_counts('SELECT count(*), count(folded) FROM gs.rc GROUP BY folded ORDER BY 1, 2'), 'same', 'a collation that does not tell letters apart');
SELECT is(gs.compare_counts('SELECT f + 0.0 AS g, count(*) FROM gs.rc GROUP BY f + 0.0 ORDER BY g'), 'same', 'floats that are equal');
SELECT is(gs.compare_counts('SELECT long, k, mixed, count(*) FROM gs.rc GROUP BY long, k, mixed ORDER BY long, k, mixed'), 'same', 'keys that do not hold their values');
SELECT is(gs.compare_counts('SELECT repeat(''z'', 200000) || m AS wide, count(*) FROM gs.rc WHERE id < 40 GROUP BY 1 ORDER BY 1'), 'same', 'wide rows');
SELECT is(gs.compare_counts('SELECT repeat(''z'', 1100000) || m AS wide, count(*) FROM gs.rc WHERE id < 20 GROUP BY 1 ORDER BY 1'), 'same', 'rows longer than a part of a chunk');
SELECT is(gs.compare_counts('SELECT id, count(*) FROM gs.rc GROUP BY id ORDER BY id'), 'same', 'groups of one row');
SELECT is(gs.compare_counts('SELECT k, count(*) FROM gs.rc WHERE k = 500 OR id < 3 GROUP BY k ORDER BY k'), 'same', 'few groups');
SELECT is(gs.compare_results('SELECT k, count(*) FROM gs.rc_none GROUP BY k'), 'same', 'no row');
SELECT is(gs.compare_results('SELECT k, n, count(*) FROM gs.rc WHERE k = 5 GROUP BY k, n ORDER BY n'), 'same', 'a key that is a constant');
SELECT is(gs.compare_results('SELECT a.k, b.k, count(*) FROM gs.rc a JOIN gs.rc b ON a.k = b.k AND a.id = b.id GROUP BY a.k, b.k ORDER BY 1'), 'same', 'keys that are equal');

-- where groups are read
SELECT is(gs.compare_counts('SELECT v.k, c, r.id FROM gs.rc_view v JOIN gs.rc r ON r.k = v.k AND r.id < 50 ORDER BY r.id'), 'same', 'a view, joined');
SELECT is(gs.compare_counts('SELECT c, count(*) FROM gs.rc_view GROUP BY c ORDER BY c'), 'same', 'groups of groups');
SELECT is(gs.compare_counts('SELECT sum(c), max(c), count(*) FROM gs.rc_view'), 'same', 'an aggregate of groups');
SELECT is(gs.compare_counts('SELECT k, c, rank() OVER (ORDER BY c DESC, k) FROM gs.rc_view ORDER BY 3'), 'same', 'a window of groups');
SELECT is(gs.compare_counts('SELECT DISTINCT c FROM gs.rc_view ORDER BY c'), 'same', 'DISTINCT of groups');
SELECT is(gs.compare_counts('SELECT k, c FROM gs.rc_view WHERE c > 11 UNION ALL SELECT m, count(*) FROM gs.rc GROUP BY m ORDER BY 1, 2'), 'same', 'two queries of groups');
SELECT is(gs.compare_counts('SELECT r.k, r.n, count(*) FROM gs.rc r JOIN gs.rc s USING (id) GROUP BY r.k, r.n ORDER BY r.k, r.n'), 'same', 'rows of a join');
SELECT is(gs.compare_counts('SELECT s.n, count(*), count(s.n) FROM gs.rc r LEFT JOIN (SELECT id, n FROM gs.rc WHERE m = 2) s USING (id) GROUP BY s.n ORDER BY s.n'), 'same',
		  'rows of an outer join');
SELECT is(gs.compare_counts('SELECT k, (SELECT max(s) FROM generate_series(1, c::int) s) FROM gs.rc_view ORDER BY k'), 'same', 'counts in a subquery');
SELECT is(gs.compare_results('SELECT x, s.* FROM generate_series(1, 4) x, LATERAL (SELECT k % 5 AS g, count(*) FROM gs.rc WHERE m = x GROUP BY 1) s ORDER BY 1, 2'), 'same', 'run again');
SELECT is(gs.compare_results('SELECT x, (SELECT count(*) FROM (SELECT k, count(*) AS c FROM gs.rc GROUP BY k HAVING count(*) > x) s) FROM generate_series(8, 14) x'), 'same', 'read again');
SELECT is(gs.compare_results('WITH g AS MATERIALIZED (SELECT k, count(*) AS c FROM gs.rc GROUP BY k) SELECT a.k, a.c, b.c FROM g a JOIN g b USING (k, c) ORDER BY k'), 'same', 'a CTE read twice');

-- prepared, and by a cursor that goes back
SET gpusort.force = on;
SET gpusort.min_rows = 0;
SET plan_cache_mode = force_generic_plan;
PREPARE counted(int) AS SELECT k, count(*) AS c FROM gs.rc WHERE m > $1 GROUP BY k HAVING count(*) > $1;
CREATE TEMP TABLE prepared AS EXECUTE counted(3);
CREATE TEMP TABLE prepared_again AS EXECUTE counted(3);
CREATE TEMP TABLE prepared_native AS SELECT k, sum(1) AS c FROM gs.rc WHERE m > 3 GROUP BY k HAVING sum(1) > 3;
SELECT is((SELECT count(*) FROM prepared JOIN prepared_again USING (k, c) JOIN prepared_native USING (k, c)), (SELECT count(*) FROM prepared_native), 'prepared');
CREATE TEMP TABLE fetched (m int, c bigint);
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT m, count(*) FROM gs.rc GROUP BY m ORDER BY m;
MOVE FORWARD 5 IN c;
DO $$ DECLARE c refcursor := 'c'; m int; n bigint; BEGIN FETCH PRIOR FROM c INTO m, n; INSERT INTO fetched VALUES (m, n); END $$;
SELECT is((SELECT (m, c)::text FROM fetched), (SELECT (m, sum(1))::text FROM gs.rc WHERE m = 3 GROUP BY m), 'a cursor');
COMMIT;

-- more rows than fit the memory: groups come once of each run, and are added up
CREATE TABLE gs.rc_many AS SELECT (i * 7919) % 20011 AS k, i % 3 AS j FROM generate_series(1, 200000) i;
ANALYZE gs.rc_many;
SELECT is(gs.compare_counts('SELECT k, count(*) FROM gs.rc_many GROUP BY k ORDER BY k'), 'same', 'many rows');
SELECT is(gs.compare_counts('SELECT k, j, count(*), count(j) FROM gs.rc_many GROUP BY j, k ORDER BY k, j'), 'same', 'many rows by two keys');
SET gpusort.verify_rows = on;
SELECT is(gs.compare_counts('SELECT k, j, count(*), count(j) FROM gs.rc_many GROUP BY j, k ORDER BY k, j'), 'same', 'verified rows');
SELECT is(gs.compare_counts('SELECT mixed, n, count(*), count(n) FROM gs.rc GROUP BY mixed, n ORDER BY mixed, n'), 'same', 'verified rows with ties');
RESET gpusort.verify_rows;

-- few rows come of many
SELECT cmp_ok((node->>'Rows')::int, '<', 50000, 'a row of each group comes')
FROM gs.node('SELECT k, count(*) FROM gs.rc_many GROUP BY k') node, gs.service WHERE NOT makes_runs;

-- hashing few groups is PostgreSQL's
RESET enable_hashagg;
RESET gpusort.force;
RESET gpusort.min_rows;
SELECT ok(NOT gs.uses('SELECT m, count(*) FROM gs.rc GROUP BY m'), 'few groups are hashed');

SELECT * FROM finish();
DROP VIEW gs.rc_view;
DROP TABLE gs.rc, gs.rc_none, gs.rc_many;
