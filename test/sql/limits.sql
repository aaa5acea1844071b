\set ECHO none
-- LIMIT above a sort: only as many rows are asked for as it needs, and these are
-- the right ones, also when it is run again and needs more.
SET client_min_messages = warning;
LOAD 'gpusort';
\pset format unaligned
\pset tuples_only on

CREATE TABLE gs.lim AS SELECT i AS id, (i * 7919) % 503 AS k, (repeat(chr(97 + i % 5), 300) || (i * 7919) % 101) COLLATE "C" AS t, (i * 31 % 1000)::numeric / 7 AS n, repeat('pad', 20) AS pad FROM generate_series(1, 20000) i;
ANALYZE gs.lim;

-- how many rows the service gave out, which the node below it read them all for; of runs each may have as many as are wanted
CREATE FUNCTION gs.given(query text, wanted int) RETURNS int LANGUAGE sql AS $$
SELECT CASE WHEN node ? 'Run Storage' AND rows BETWEEN wanted AND wanted * runs THEN wanted ELSE rows END
FROM gs.node(query) node, LATERAL (SELECT (node->>'Rows')::int AS rows, (node->>'Runs')::int AS runs) figures
$$;

SELECT * FROM no_plan();

SELECT is(gs.given('SELECT id FROM gs.lim ORDER BY k, id' || clause, given), given, 'rows given out:' || clause)
FROM (VALUES ('', 20000), (' LIMIT 10', 10), (' LIMIT 10 OFFSET 15', 25), (' OFFSET 15', 20000), (' LIMIT 30000', 20000), (' LIMIT NULL', 20000),
	  (' LIMIT ALL OFFSET 3', 20000), (' LIMIT 1 + 1', 2), (' LIMIT (SELECT max(k) FROM gs.lim)', 502), (' LIMIT 9223372036854775807 OFFSET 10', 20000),
	  (' FETCH FIRST 3 ROWS WITH TIES', 3), (' FETCH FIRST 6000 ROWS WITH TIES', 20000)) v (clause, given);
SELECT is(gs.given('SELECT * FROM gs.lim ORDER BY k LIMIT 10', 10), 10, 'rows of equal keys that decide are not asked for');
SELECT is(gs.given('SELECT id FROM gs.lim ORDER BY t LIMIT ' || lim, given), given, 'of those that do not, all are: ' || lim)
FROM (VALUES (10, 10), (5100, 8000), (8001, 12000)) v (lim, given);
SELECT is(gs.given('SELECT id + 1 FROM (SELECT id, k FROM gs.lim ORDER BY k, id) s LIMIT 7', 7), 7, 'through a subquery');
SELECT is(gs.given('SELECT id FROM (SELECT id FROM gs.lim ORDER BY k, id OFFSET 0) s WHERE id % 2 = 0 LIMIT 7', 20000), 20000, 'not through a condition');
SELECT is(gs.given('SELECT row_number() OVER (ORDER BY k, id) FROM gs.lim LIMIT 7', 20000), 20000, 'not through a window');
SELECT is(gs.given('SELECT DISTINCT ON (k) k, id FROM gs.lim ORDER BY k, id LIMIT 7', 503), 503, 'not through DISTINCT, which looks at a row of each group');

SELECT is(gs.compare_bulk(format('SELECT * FROM gs.lim ORDER BY %s, id LIMIT %s OFFSET %s', key, lim, off)), 'same', format('%s LIMIT %s OFFSET %s', key, lim, off))
FROM (VALUES ('k'), ('k DESC'), ('t'), ('t DESC'), ('n'), ('k % 7, n DESC')) v (key),
	 (VALUES (1), (777), (19999), (30000)) w (lim), (VALUES (0), (600), (20001)) x (off)
-- all bounds with one key, the others with some
WHERE key = 'k' OR (off < 20001 AND lim IN (777, 30000));
SELECT is(gs.compare_results('SELECT * FROM gs.lim ORDER BY k, id LIMIT 0'), 'same', 'LIMIT 0');
SELECT is(gs.compare('SELECT k, t FROM gs.lim ORDER BY t, k FETCH FIRST 500 ROWS WITH TIES'), 'same', 'WITH TIES');
SELECT is(gs.compare('SELECT id FROM gs.lim ORDER BY k, id LIMIT 20 FOR UPDATE'), 'same', 'FOR UPDATE');
SELECT is(gs.compare('SELECT max(id), sum(id) FROM (SELECT id FROM gs.lim ORDER BY n, id DESC LIMIT 4321) s'), 'same', 'a subquery');

-- bounds that are known when the query runs
SET plan_cache_mode = force_generic_plan;
SET gpusort.force = on;
PREPARE bounded(bigint, bigint) AS SELECT id, t FROM gs.lim ORDER BY t DESC, id LIMIT $1 OFFSET $2;
SELECT is(gs.rows(format('EXECUTE bounded(%s, %s)', lim, off)),
		  gs.native_rows(format('SELECT id, t FROM gs.lim ORDER BY t DESC, id LIMIT %s OFFSET %s', lim, off)), format('parameters %s, %s', lim, off))
FROM (VALUES ('3', '0'), ('500', '100'), ('NULL', '19000'), ('2', '2'), ('40000', '0'), ('10', 'NULL')) v (lim, off);
SELECT throws_ok('EXECUTE bounded(-1, 0)', '2201W', NULL, 'a negative bound');
DEALLOCATE bounded;
RESET plan_cache_mode;

-- run again, for fewer rows and for more
SET enable_material = off;
SET enable_hashjoin = off;
SET enable_memoize = off;
CREATE TABLE gs.bounds AS SELECT * FROM (VALUES (1, 3), (2, 600), (3, 2), (4, 600), (5, 601), (6, 1), (7, 25000), (8, 25001)) v (run, rows);
ANALYZE gs.bounds;
SELECT is(gs.compare(query), 'same', what)
FROM (VALUES ('other bounds', 'SELECT run, s.* FROM gs.bounds, LATERAL (SELECT id, t FROM gs.lim ORDER BY t, id LIMIT rows) s ORDER BY run'),
	  ('the same bound twice, then another', 'SELECT run, s.* FROM gs.bounds, LATERAL (SELECT i, l.id FROM (VALUES (1), (2)) x (i) LEFT JOIN (SELECT id FROM gs.lim ORDER BY k, id LIMIT rows) l ON true OFFSET 0) s ORDER BY run, i'),
	  ('in an expression', 'SELECT run, (SELECT sum(id) FROM (SELECT id FROM gs.lim ORDER BY t DESC, id LIMIT rows OFFSET run) s) FROM gs.bounds ORDER BY run'),
	  ('other rows', 'SELECT run, s.* FROM gs.bounds, LATERAL (SELECT id, k FROM gs.lim WHERE id % run = 0 ORDER BY k, id LIMIT rows) s ORDER BY run')) v (what, query);
RESET enable_material;
RESET enable_hashjoin;
RESET enable_memoize;
DROP TABLE gs.bounds;

-- there and back
BEGIN;
SET LOCAL cursor_tuple_fraction = 1;
DECLARE c SCROLL CURSOR FOR SELECT id FROM gs.lim ORDER BY t, id LIMIT 300 OFFSET 10;
SELECT is(gs.fetch('c', 'ALL'), gs.native_rows('SELECT id FROM gs.lim ORDER BY t, id LIMIT 300 OFFSET 10'), 'a cursor forward');
SELECT is(gs.fetch('c', 'BACKWARD ALL'), ARRAY(SELECT r FROM unnest(gs.native_rows('SELECT id FROM gs.lim ORDER BY t, id LIMIT 300 OFFSET 10')) WITH ORDINALITY u (r, n) ORDER BY n DESC), 'backward');
SELECT is(gs.fetch('c', 'ABSOLUTE 299') || gs.fetch('c', 'FORWARD 5'), (gs.native_rows('SELECT id FROM gs.lim ORDER BY t, id LIMIT 300 OFFSET 10'))[299:300], 'its end');
SELECT is(gs.fetch('c', 'ABSOLUTE 1'), (gs.native_rows('SELECT id FROM gs.lim ORDER BY t, id LIMIT 300 OFFSET 10'))[1:1], 'its start');
COMMIT;
RESET gpusort.force;

-- few rows, sorted by PostgreSQL below a bound
CREATE FUNCTION gs.few(n int) RETURNS TABLE (id int, k int) LANGUAGE plpgsql STABLE ROWS 50000 AS $$
BEGIN
	RETURN QUERY SELECT i, (i * 7919) % 1009 FROM generate_series(1, n) i;
END $$;
SELECT ok(gs.uses('SELECT * FROM gs.few(20) ORDER BY k, id LIMIT 60000'), 'planned for many rows');
SELECT is(gs.rows(format('SELECT * FROM gs.few(%s) ORDER BY k, id LIMIT 60000 OFFSET 7', n)), gs.native_rows(format('SELECT * FROM gs.few(%s) ORDER BY k, id LIMIT 60000 OFFSET 7', n)),
		  format('%s rows, bounded', n))
FROM (VALUES (0), (5), (20), (2500)) v (n);

-- the first rows of many, by cost: in PostgreSQL's heap if they are few
CREATE TABLE gs.many AS SELECT i AS id, hashint4(i) AS k FROM generate_series(1, 200000) i;
ANALYZE gs.many;
SET max_parallel_workers_per_gather = 0;
SET work_mem = '64MB';
SET plan_cache_mode = force_generic_plan;
SET gpusort.engine = host;
SET gpusort.page_scan = off;
SELECT is(gs.uses('SELECT * FROM gs.many ORDER BY k' || clause), uses, 'GpuSort of 200000 rows:' || clause || CASE WHEN uses THEN '' ELSE ' not' END)
FROM (VALUES (' LIMIT 10', true), (' LIMIT 100', true), (' LIMIT 50000', true), (' LIMIT 150000', true), (' OFFSET 100000 LIMIT 10', true), (' OFFSET 10 LIMIT 10', true),
	  (' FETCH FIRST 10 ROWS WITH TIES', true), (' LIMIT (SELECT 10)', true), (' LIMIT 10 OFFSET (SELECT 10)', true)) v (clause, uses);
SELECT is(gs.uses('SELECT * FROM (SELECT id, k FROM gs.many ORDER BY k, id OFFSET 0) s' || clause), uses, 'in a subquery, and above it' || clause)
FROM (VALUES (' LIMIT 10', true), (' LIMIT 50000', true), (' WHERE id % 2 = 0 LIMIT 10', true)) v (clause, uses);
SELECT is(gs.uses('SELECT id FROM (SELECT * FROM gs.many UNION ALL SELECT * FROM gs.many) s ORDER BY k' || clause), uses, 'of two tables' || clause)
FROM (VALUES (' LIMIT 10', true), (' LIMIT 50000', true)) v (clause, uses);
RESET gpusort.page_scan;
RESET max_parallel_workers_per_gather;
RESET work_mem;
RESET plan_cache_mode;
RESET gpusort.engine;
DROP TABLE gs.many;

-- rows that several processes take in
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT alike(gs.forced_plan('SELECT * FROM gs.lim ORDER BY k, id LIMIT 400'), '%GpuSortIngest%', 'a parallel sort');
SELECT is(gs.given('SELECT * FROM gs.lim ORDER BY k, id LIMIT 400', 400), 400, 'is bounded as well');
SELECT is(gs.compare(format('SELECT * FROM gs.lim ORDER BY %s, id LIMIT 400 OFFSET 3', key)), 'same', 'in parallel, by ' || key)
FROM (VALUES ('k'), ('t DESC'), ('n')) v (key);

-- all rows count, however few were given out
SELECT rows AS rows_before FROM gpusort_stats \gset
SELECT is(cardinality(gs.forced_rows('SELECT id FROM gs.lim ORDER BY k, id LIMIT 5')), 5, 'a bounded sort');
SELECT is((SELECT rows - :rows_before FROM gpusort_stats), 20000::bigint, 'is counted with all of its rows');
SELECT * FROM finish();
DROP TABLE gs.lim;
DROP FUNCTION gs.given, gs.few;
