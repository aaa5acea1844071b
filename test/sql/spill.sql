\set ECHO none
-- Sorts larger than the memory for them: in runs, in memory and in temporary files.
SET client_min_messages = warning;
LOAD 'gpusort';
\pset format unaligned
\pset tuples_only on

-- little memory, which a device needs more of for itself; the service starts anew for it
SELECT CASE WHEN count(*) > 0 THEN 300000 ELSE 100000 END AS rows, CASE WHEN count(*) > 0 THEN 64 ELSE 24 END AS megabytes
FROM gpusort_devices WHERE engine = 'cuda' \gset
CREATE FUNCTION gs.await_limit(bytes bigint, has_it bool) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. 1800 LOOP
		IF (SELECT state = 'ready' AND (host_limit = bytes) = has_it FROM gpusort_service()) THEN
			RETURN 'there';
		END IF;
		PERFORM pg_sleep(0.1);
	END LOOP;
	RETURN (SELECT s::text FROM gpusort_service() s);
END $$;
ALTER SYSTEM SET gpusort.host_memory = :'megabytes';
ALTER SYSTEM SET gpusort.device_memory = :'megabytes';
SELECT pg_reload_conf() \g /dev/null

CREATE TABLE gs.sp AS
SELECT i AS id, hashint4(i) AS h, (i::bigint * 7919) % 30011 AS k, CASE WHEN i % 7 = 0 THEN NULL ELSE i % 100 END AS few, i % 5000 AS g,
	   CASE i % 11 WHEN 0 THEN 'NaN' WHEN 1 THEN '-0' WHEN 2 THEN '0' WHEN 3 THEN NULL WHEN 4 THEN 'Infinity' ELSE hashint4(i) / 3.0 END::float8 AS f,
	   CASE WHEN i % 13 = 0 THEN NULL ELSE (hashint4(i) % 100000)::numeric / 7 END AS n,
	   (repeat('a common beginning, ', 8) || hashint4(i) % 3001) COLLATE "C" AS t,
	   ((ARRAY['a', 'A', 'ä', 'b', 'B', 'Ä-', 'z'])[1 + i % 7] || hashint4(i) % 997) COLLATE "en-x-icu" AS u,
	   timestamptz '2000-01-01' + hashint4(i) * interval '1 second' AS ts, md5(i::text)::uuid AS uu, decode(md5(i::text), 'hex') AS by, i % 3 = 0 AS b, repeat('w', i % 90) AS pad
FROM generate_series(1, :rows) i;
CREATE TABLE gs.sp_other AS SELECT i AS id, (i::bigint * 31) % 40000 AS k, repeat(md5(i::text), 6) AS pad FROM generate_series(1, :rows) i;
ANALYZE gs.sp, gs.sp_other;

-- 'same' when the rows are right and were in runs
CREATE FUNCTION gs.compare_spilled(query text) RETURNS text LANGUAGE sql AS $$ SELECT gs.compare_bulk(query, 2) $$;

SELECT * FROM no_plan();

SELECT is(gs.await_limit(:megabytes::bigint << 20, true), 'there', 'a service with little memory');
SET max_parallel_workers_per_gather = 0;
SET work_mem = '64MB'; -- what PostgreSQL's own sorts take

-- the planner
SELECT ok(gs.uses('SELECT * FROM gs.sp ORDER BY h, id'), 'a sort larger than memory is planned');
SET gpusort.spill = off;
SELECT ok(NOT gs.forced_uses('SELECT * FROM gs.sp ORDER BY h, id'), 'not without gpusort.spill');
RESET gpusort.spill;

-- EXPLAIN, statistics
CREATE TEMP TABLE explained AS SELECT gs.node('SELECT * FROM gs.sp ORDER BY h, id') AS node;
SELECT cmp_ok((node->>'Runs')::int, '>', 1, 'EXPLAIN tells how many runs') FROM explained;
SELECT matches(node->>'Run Storage', '^(memory|disk|memory and disk)$', 'and where they were') FROM explained;
SELECT is((node->>'Disk')::bigint > 0, node->>'Run Storage' LIKE '%disk', 'and what is on disk') FROM explained;
SELECT is((node->>'Rows')::int, :rows, 'and all rows') FROM explained;
SELECT sorts AS sorts_before, runs AS runs_before, rows AS rows_before, fallbacks AS fallbacks_before FROM gpusort_stats \gset
SELECT gs.forced_digest('SELECT * FROM gs.sp ORDER BY h, id') \g /dev/null
SELECT is((SELECT ROW(sorts - :sorts_before, runs - :runs_before > 1, rows - :rows_before, fallbacks - :fallbacks_before)::text FROM gpusort_stats), format('(1,t,%s,0)', :rows), 'gpusort_stats');
SELECT is((SELECT count(*) FROM pg_ls_tmpdir() WHERE name LIKE format('pgsql_tmp%s.%%', pg_backend_pid())), 0::bigint, 'no file is left');

-- types, directions, NULLs, ties
SELECT is(gs.compare_spilled('SELECT * FROM gs.sp ORDER BY ' || key), 'same', 'by ' || key)
FROM (VALUES ('h, id'), ('k, id DESC'), ('few NULLS FIRST, id'), ('few DESC NULLS LAST, h, id'), ('f, id'), ('f DESC, id'), ('n, id'), ('n DESC NULLS LAST, id'), ('t, id'), ('t DESC, id'),
	  ('u, id'), ('ts, id'), ('uu'), ('by DESC'), ('b, u DESC, id'), ('g, t, n, id'), ('pad COLLATE "C", id'), ('id'), ('id DESC')) v (key);
SELECT is(gs.compare_spilled('SELECT * FROM (SELECT id, h, repeat(''x'', 400) || k AS x FROM gs.sp OFFSET 0) s ORDER BY x COLLATE "C", id'), 'same', 'texts that are alike as far as the keys go');
SELECT is(gs.compare_spilled('SELECT 1 AS one, id, t FROM gs.sp ORDER BY one, t, id'), 'same', 'a key that is all the same');
SET gpusort.verify_rows = on;
SELECT is(gs.compare_spilled('SELECT * FROM gs.sp ORDER BY ' || key), 'same', 'verified, by ' || key) FROM (VALUES ('n, id'), ('t DESC, id')) v (key);
RESET gpusort.verify_rows;

-- short, wide and long rows
SELECT is(gs.compare_spilled('SELECT h FROM (SELECT * FROM gs.sp UNION ALL SELECT * FROM gs.sp UNION ALL SELECT * FROM gs.sp UNION ALL SELECT * FROM gs.sp UNION ALL SELECT * FROM gs.sp) s ORDER BY h'), 'same', 'short rows');
SELECT is(gs.compare_spilled('SELECT * FROM (SELECT id, h, repeat(t, 160) AS w FROM gs.sp WHERE id <= 3000 OFFSET 0) s ORDER BY h, id'), 'same', 'wide rows');
SELECT is(gs.compare_spilled('SELECT * FROM (SELECT id, h, CASE WHEN id % 30000 = 7 THEN repeat(t, 10000) ELSE t END AS w FROM gs.sp OFFSET 0) s ORDER BY h, id'), 'same', 'rows longer than a quarter of a chunk');

-- LIMIT
SELECT is(gs.compare_results(format('SELECT * FROM gs.sp ORDER BY %s, id LIMIT %s OFFSET %s', key, lim, off)), 'same', format('%s LIMIT %s OFFSET %s', key, lim, off))
FROM (VALUES ('h'), ('t DESC')) v (key), (VALUES (10, 0), (3000, 5), (10, 60000)) w (lim, off);
SELECT is(gs.compare_spilled('SELECT * FROM gs.sp ORDER BY t, id LIMIT 90000'), 'same', 'nearly all rows');
SELECT is(gs.compare_spilled('SELECT g, t FROM (SELECT *, repeat(''w'', 200) AS w FROM gs.sp OFFSET 0) s ORDER BY t, g OFFSET 90000'), 'same', 'the last rows');

SELECT is(gs.compare_spilled(format('SELECT * FROM gs.sp ORDER BY %s OFFSET %s', key, off)), 'same', format('%s OFFSET %s', key, off))
FROM (VALUES ('h, id'), ('n DESC, id'), ('few, id'), ('t, id')) v (key), (VALUES (1), (50000), (99990), (1000000)) w (off);
SELECT is(gs.node('SELECT * FROM gs.sp ORDER BY h, id OFFSET 50000')->>'Rows Skipped', '50000', 'partitions before OFFSET are not loaded');
SELECT is(gs.node('SELECT * FROM gs.sp ORDER BY t, id OFFSET 50000')->>'Rows Skipped', NULL, 'but where rows may tie');

-- run again, there and back
SET enable_material = off;
SELECT is(gs.compare_spilled('SELECT x, s.* FROM (VALUES (1), (2), (3)) v (x) LEFT JOIN (SELECT id, h, t FROM gs.sp ORDER BY h, id) s ON true'), 'same', 'the same rows three times');
SELECT is(gs.compare_spilled('SELECT x, s.* FROM (VALUES (1), (2), (3)) v (x) LEFT JOIN (SELECT id, h, t FROM gs.sp ORDER BY h, id OFFSET 70000) s ON true'), 'same', 'behind an OFFSET, three times');
SELECT is(gs.compare_spilled('SELECT x, s.* FROM (VALUES (1), (2)) v (x), LATERAL (SELECT id, h, t, x + id AS y FROM gs.sp WHERE id > x ORDER BY h, id) s'), 'same', 'other rows each time');
SELECT is(gs.compare_results('SELECT x, s.* FROM (VALUES (5), (3000), (10)) v (x), LATERAL (SELECT id, h, t FROM gs.sp ORDER BY t, id LIMIT x) s'), 'same', 'other bounds each time');
RESET enable_material;
BEGIN;
SET LOCAL cursor_tuple_fraction = 1;
SET LOCAL gpusort.force = on;
DECLARE g SCROLL CURSOR FOR SELECT id, h, t FROM gs.sp ORDER BY h, id;
SET LOCAL gpusort.enable = off;
DECLARE n SCROLL CURSOR FOR SELECT id, h, t FROM gs.sp ORDER BY h, id;
SELECT is(gs.fetch('g', movement), gs.fetch('n', movement), 'a cursor: ' || movement)
FROM (VALUES ('FORWARD 10'), ('BACKWARD 4'), ('ABSOLUTE 70000'), ('FORWARD 300'), ('ABSOLUTE 3'), ('LAST'), ('BACKWARD 5'), ('FIRST'), ('FORWARD 3')) v (movement);
COMMIT;
BEGIN;
SET LOCAL gpusort.force = on;
DECLARE first_one NO SCROLL CURSOR FOR SELECT id, h, t FROM gs.sp ORDER BY h, id;
DECLARE second_one NO SCROLL CURSOR FOR SELECT id, h, t FROM gs.sp ORDER BY h DESC, id;
SELECT is(gs.fetch('first_one', 'FORWARD 3'), gs.native_rows('SELECT id, h, t FROM gs.sp ORDER BY h, id LIMIT 3'), 'a cursor that is left');
SELECT is(gs.fetch('second_one', 'FORWARD 3'), gs.native_rows('SELECT id, h, t FROM gs.sp ORDER BY h DESC, id LIMIT 3'), 'beside another');
COMMIT;

-- no more in files than a user may have, and what comes after the error
SELECT throws_ok('SET LOCAL temp_file_limit = ''1MB''; SET LOCAL gpusort.force = on; SELECT count(s) FROM (SELECT * FROM (SELECT * FROM gs.sp UNION ALL SELECT * FROM gs.sp UNION ALL SELECT * FROM gs.sp) u ORDER BY h, id OFFSET 1) s', '53400', NULL, 'temp_file_limit');
SELECT is((SELECT count(*) FROM pg_ls_tmpdir() WHERE name LIKE format('pgsql_tmp%s.%%', pg_backend_pid())), 0::bigint, 'no file is left after it');
SELECT is(gs.compare_spilled('SELECT * FROM gs.sp ORDER BY h, id'), 'same', 'and the next sort is right');

-- rows that several processes take in
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT matches(gs.forced_plan('SELECT * FROM gs.sp ORDER BY h, id'), 'GpuSort(Ingest|Output)', 'a parallel sort');
SELECT is(gs.compare_spilled('SELECT * FROM gs.sp ORDER BY ' || key), 'same', 'in parallel, by ' || key)
FROM (VALUES ('h, id'), ('n DESC, id'), ('t, id'), ('u DESC, id'), ('few, id')) v (key);
SET parallel_leader_participation = off;
SELECT is(gs.compare_spilled('SELECT * FROM gs.sp ORDER BY h, id'), 'same', 'in workers alone');
RESET parallel_leader_participation;
SELECT is(gs.compare_results('SELECT * FROM gs.sp ORDER BY h, id LIMIT 500'), 'same', 'in parallel, the first');

-- what is above the sort, in all processes
SET gpusort.setup_cost = 0;
SET gpusort.row_cost = 0;
SET enable_hashagg = off;
SET enable_hashjoin = off;
SET enable_nestloop = off;
CREATE TABLE gs.sp_queries (ordinal int, sorts int, query text);
INSERT INTO gs.sp_queries VALUES
	(1, 1, 'SELECT id, t, sum(id) OVER (PARTITION BY g ORDER BY id) FROM gs.sp'),
	(2, 1, 'SELECT id, t, rank() OVER (PARTITION BY few ORDER BY n, id) FROM gs.sp'),
	(3, 1, 'SELECT DISTINCT t, u, k, pad, n FROM gs.sp'),
	(4, 1, 'SELECT t, count(*), sum(n), max(uu::text) FROM gs.sp GROUP BY t'),
	(5, 2, 'SELECT x.id, x.t, y.id, y.pad FROM gs.sp x JOIN gs.sp_other y USING (k)'),
	(6, 2, 'SELECT x.id, x.t, y.id, y.pad FROM gs.sp x LEFT JOIN gs.sp_other y ON x.k = y.k AND x.id = y.id');
SELECT alike(gs.forced_plan(query), '%GpuSortOutput%', 'the plan of query ' || ordinal) FROM gs.sp_queries ORDER BY ordinal;
SELECT cmp_ok((SELECT count(*) FROM gs.nodes(query, 'GpuSort') node WHERE node ? 'Run Storage'), '>=', 1::bigint, 'runs in query ' || ordinal) FROM gs.sp_queries ORDER BY ordinal;
SELECT is(gs.forced_sum(query), gs.native_sum(query), 'query ' || ordinal) FROM gs.sp_queries ORDER BY ordinal;
SET gpusort.verify_rows = on;
SELECT is(gs.forced_sum(query), gs.native_sum(query), 'verified, query ' || ordinal) FROM gs.sp_queries WHERE ordinal IN (1, 5) ORDER BY ordinal;
RESET gpusort.verify_rows;

ALTER SYSTEM RESET gpusort.host_memory;
ALTER SYSTEM RESET gpusort.device_memory;
SELECT pg_reload_conf() \g /dev/null
SELECT is(gs.await_limit(:megabytes::bigint << 20, false), 'there', 'a service with memory again');
SELECT * FROM finish();
DROP TABLE gs.sp, gs.sp_other, gs.sp_queries;
DROP FUNCTION gs.await_limit, gs.compare_spilled;
