\set ECHO none
-- Rows that LIMIT does not ask for are dropped while they are taken in: only those, and as many as can be told early enough.
SET client_min_messages = warning;
LOAD 'gpusort';
\pset format unaligned
\pset tuples_only on

CREATE TABLE gs.cut AS
SELECT i AS id, (i * 7919::bigint) % 60013 AS k, 24000 - i AS falling, CASE WHEN i % 3 = 0 THEN NULL ELSE (i * 7919::bigint) % 60013 END AS nil,
	   i * 7919::bigint % 60013 % 10 AS few, 1 AS same, CASE WHEN i % 10 < 9 THEN i ELSE -i END AS mixed,
	   ('http://host' || i * 31 % 3 || '.example.org/' || md5(i::text)) COLLATE "C" AS url, (repeat('x', 300) || i * 7919::bigint % 60013) COLLATE "C" AS long,
	   (i * 7919::bigint % 60013)::numeric / 7 AS n, (i * 7919::bigint % 60013)::int4 - 30000 AS i4
FROM generate_series(1, 24000) i;
VACUUM ANALYZE gs.cut;

-- how many rows were dropped, and how many the service got
CREATE FUNCTION gs.dropped(query text) RETURNS bigint LANGUAGE sql AS $$ SELECT coalesce((gs.node(query)->>'Rows Removed Before Sort')::bigint, 0) $$;

-- the same rows by number, without those that tie
CREATE FUNCTION gs.compare_limits(key text) RETURNS text LANGUAGE sql AS
$$ SELECT string_agg(DISTINCT gs.compare(format('SELECT id FROM gs.cut ORDER BY %s, id LIMIT %s OFFSET %s', key, lim, off)), ', ')
   FROM (VALUES (1, 0), (2, 100), (2500, 3), (5000, 1000), (24000, 0), (24001, 0)) v (lim, off) $$;

SELECT * FROM no_plan();
SET max_parallel_workers_per_gather = 0;
-- more rows than one process finds by itself (top_rows.sql)
SET work_mem = '64kB';

-- which rows are dropped
SELECT cmp_ok(gs.dropped('SELECT * FROM gs.cut ORDER BY ' || clause), '>=', least::bigint, 'dropped: ' || clause)
FROM (VALUES ('k LIMIT 200', 18000), ('k DESC LIMIT 200', 18000), ('k LIMIT 100 OFFSET 100', 18000), ('k LIMIT 2000', 12000), ('k LIMIT 6000', 6000), ('id LIMIT 1000', 20000),
	  ('falling DESC LIMIT 1000', 20000), ('nil LIMIT 500', 16000), ('nil DESC LIMIT 500', 12000), ('nil NULLS FIRST LIMIT 500', 12000), ('few LIMIT 500', 16000), ('few DESC, k LIMIT 500', 14000),
	  ('same, k LIMIT 500', 14000), ('url LIMIT 500', 14000), ('n LIMIT 500', 14000), ('i4 LIMIT 500', 14000), ('mixed LIMIT 500', 14000), ('long, id LIMIT 500', 1)) v (clause, least);
SELECT is(gs.dropped('SELECT * FROM gs.cut ORDER BY ' || clause), 0::bigint, 'none dropped: ' || clause)
FROM (VALUES ('k'), ('k LIMIT 6001'), ('k LIMIT 24000'), ('k OFFSET 6000 LIMIT 1'), ('k LIMIT ALL'), ('k LIMIT NULL'), ('id DESC LIMIT 2000'), ('falling LIMIT 2000'), ('same LIMIT 1000'),
	  ('k FETCH FIRST 200 ROWS WITH TIES')) v (clause);
SELECT is(gs.dropped('SELECT row_number() OVER (ORDER BY k) FROM gs.cut LIMIT 7'), 0::bigint, 'nor below a window');

-- they are the right ones
SELECT is(gs.compare_limits(key || direction), 'same', key || direction)
FROM unnest(ARRAY['k', 'falling', 'nil', 'few', 'same', 'url', 'n', 'i4', 'mixed', 'few DESC, url', 'nil, few']) key, unnest(ARRAY['', ' DESC NULLS LAST']) direction;
SELECT is(gs.compare(format('SELECT long FROM gs.cut ORDER BY long%s, id LIMIT %s', direction, lim)), 'same', format('truncated keys%s LIMIT %s', direction, lim))
FROM unnest(ARRAY['', ' DESC']) direction, unnest(ARRAY[1, 2000]) lim;
SELECT is(gs.compare(format('SELECT few FROM gs.cut ORDER BY few LIMIT %s', lim)), 'same', 'ties, LIMIT ' || lim)
FROM unnest(ARRAY[1, 2399, 2400, 2401, 4800]) lim;
SELECT is(gs.compare_results('SELECT id FROM gs.cut ORDER BY k, id LIMIT 0'), 'same', 'LIMIT 0');
SELECT is(gs.compare('SELECT id FROM (SELECT id, k FROM gs.cut ORDER BY k, id LIMIT 3000) s ORDER BY id LIMIT 100'), 'same', 'two of them');
SELECT is(gs.compare('SELECT count(*), sum(id) FROM (SELECT id FROM gs.cut WHERE few <> 3 ORDER BY k DESC LIMIT 2345) s'), 'same', 'in a subquery');
SELECT is(gs.compare('SELECT id FROM gs.cut ORDER BY -k LIMIT 2000'), 'same', 'a key that nobody asked for');
SET gpusort.verify_rows = on;
SELECT is(gs.compare_limits('k DESC'), 'same', 'verified');
RESET gpusort.verify_rows;

-- the estimate of the rows is far off
CREATE FUNCTION gs.believed(n int) RETURNS TABLE (id int, k int) LANGUAGE sql STABLE ROWS 1000000 AS $$ SELECT i, (i * 7919::bigint % 50021)::int FROM generate_series(1, n) i OFFSET 0 $$;
SELECT is(gs.compare(format('SELECT * FROM gs.believed(%s) ORDER BY k, id LIMIT %s', rows, lim)), 'same', format('%s rows where a million were expected, LIMIT %s', rows, lim))
FROM (VALUES (20000, 19999), (20000, 20001), (20000, 15000), (3000, 1), (1023, 1023), (1025, 1024)) v (rows, lim);
DROP FUNCTION gs.believed;

-- run again, with other bounds, for other rows
SET enable_material = off;
SET enable_memoize = off;
CREATE TABLE gs.bounds AS SELECT * FROM (VALUES (1, 3), (2, 2400), (3, 2), (4, 2401), (5, 5600), (6, 1), (7, 23000)) v (run, rows);
ANALYZE gs.bounds;
SELECT is(gs.compare(query), 'same', what)
FROM (VALUES ('other bounds', 'SELECT run, count(*), sum(id), max(k) FROM gs.bounds, LATERAL (SELECT id, k FROM gs.cut ORDER BY k, id LIMIT rows) s GROUP BY run ORDER BY run'),
	  ('other rows', 'SELECT run, count(*), sum(id), max(k) FROM gs.bounds, LATERAL (SELECT id, k FROM gs.cut WHERE id % run = 0 ORDER BY k DESC LIMIT rows) s GROUP BY run ORDER BY run')) v (what, query);
RESET enable_material;
RESET enable_memoize;
DROP TABLE gs.bounds;

-- bounds known when the query runs
SET plan_cache_mode = force_generic_plan;
SET gpusort.force = on;
PREPARE bounded(bigint, bigint) AS SELECT id FROM gs.cut ORDER BY k DESC LIMIT $1 OFFSET $2;
SELECT is(gs.rows(format('EXECUTE bounded(%s, %s)', lim, off)), gs.native_rows(format('SELECT id FROM gs.cut ORDER BY k DESC LIMIT %s OFFSET %s', lim, off)), format('parameters %s, %s', lim, off))
FROM (VALUES ('3', '0'), ('NULL', '23000'), ('500', '100'), ('2', '2'), ('70000', '0'), ('0', '5')) v (lim, off);
DEALLOCATE bounded;
RESET plan_cache_mode;

-- there and back
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id FROM gs.cut ORDER BY k LIMIT 300 OFFSET 10;
SELECT is(gs.fetch('c', 'ALL'), gs.native_rows('SELECT id FROM gs.cut ORDER BY k LIMIT 300 OFFSET 10'), 'a cursor forward');
SELECT is(gs.fetch('c', 'BACKWARD ALL'), ARRAY(SELECT r FROM unnest(gs.native_rows('SELECT id FROM gs.cut ORDER BY k LIMIT 300 OFFSET 10')) WITH ORDINALITY u (r, n) ORDER BY n DESC), 'backward');
COMMIT;
RESET gpusort.force;

-- several processes drop together
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT alike(gs.forced_plan('SELECT * FROM gs.cut ORDER BY k LIMIT 400'), '%GpuSortIngest%', 'a parallel sort');
SELECT cmp_ok(gs.dropped('SELECT * FROM gs.cut ORDER BY ' || clause), '>=', least::bigint, 'dropped in parallel: ' || clause)
FROM (VALUES ('k LIMIT 200', 14000), ('id LIMIT 500', 14000), ('few LIMIT 500', 12000), ('url LIMIT 500', 12000)) v (clause, least);
SELECT is(gs.compare_limits(key || direction), 'same', 'in parallel: ' || key || direction)
FROM unnest(ARRAY['k', 'falling', 'nil', 'few', 'url', 'mixed']) key, unnest(ARRAY['', ' DESC']) direction;
SELECT is(gs.compare_bulk(format('SELECT id, url FROM gs.cut ORDER BY %s, id LIMIT %s', key, lim)), 'same', format('with workers: %s LIMIT %s', key, lim))
FROM unnest(ARRAY['k', 'k DESC', 'falling', 'nil DESC', 'url', 'few']) key, unnest(ARRAY[1, 2500, 5600]) lim;

-- long rows, which workers pass on
CREATE TABLE gs.cut_long AS SELECT i AS id, (i * 7919) % 30011 AS k, CASE WHEN i % 5000 = 1 THEN repeat('long', 300000) END AS pad FROM generate_series(1, 30000) i;
ALTER TABLE gs.cut_long ALTER pad SET STORAGE EXTERNAL;
ANALYZE gs.cut_long;
SELECT is(gs.compare_bulk(format('SELECT id, k, length(pad || '''') FROM gs.cut_long ORDER BY k %s LIMIT %s', direction, lim)), 'same', format('long rows %s LIMIT %s', direction, lim))
FROM unnest(ARRAY['', 'DESC']) direction, unnest(ARRAY[1, 7000]) lim;
SELECT is(gs.compare_bulk(format('SELECT * FROM (SELECT id, k, pad || id AS pad FROM gs.cut_long OFFSET 0) s ORDER BY k %s LIMIT 7000', direction)), 'same', 'long rows made below ' || direction)
FROM unnest(ARRAY['', 'DESC']) direction;
SELECT * FROM finish();
DROP TABLE gs.cut, gs.cut_long;
DROP FUNCTION gs.dropped, gs.compare_limits;
