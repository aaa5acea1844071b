\set ECHO none
-- OFFSET right above a sort: the rows before it are not read, and those behind it are the right ones.
SET client_min_messages = warning;
LOAD 'gpusort';
\pset format unaligned
\pset tuples_only on

CREATE TABLE gs.off AS SELECT i AS id, (i * 7919) % 30011 AS k, i % 100 AS few, (repeat(chr(97 + i % 5), 300) || (i * 7919) % 101) COLLATE "C" AS t,
	   (md5(i::text) || repeat('z', 300)) COLLATE "C" AS u, repeat('pad', i % 40) AS pad, CASE WHEN i % 9000 = 0 THEN repeat('long', 30000) END AS long
FROM generate_series(1, 30000) i;
ALTER TABLE gs.off ALTER long SET STORAGE EXTERNAL;
ANALYZE gs.off;

-- how many rows were not read, which the node below it read them all for
CREATE FUNCTION gs.skipped(query text) RETURNS int LANGUAGE sql AS $$ SELECT coalesce((gs.node(query)->>'Rows Skipped')::int, 0) $$;

SELECT * FROM no_plan();

-- how many
SELECT is(gs.skipped('SELECT id FROM gs.off ORDER BY ' || key || clause), skipped, key || clause)
FROM (VALUES ('k', ' OFFSET 0', 0), ('k', ' OFFSET 1', 1), ('k', ' OFFSET 29999', 29999), ('k', ' OFFSET 30000', 30000), ('k', ' OFFSET 30001', 30000), ('k', ' OFFSET 9223372036854775807', 30000),
	  ('k', ' OFFSET 9223372036854775807 LIMIT 9223372036854775807', 30000), ('k', ' OFFSET NULL', 0), ('k', ' OFFSET 10 LIMIT 5', 0), ('k', ' OFFSET 7000 LIMIT 600', 7000), ('k', ' OFFSET 20000 LIMIT 5', 20000), ('k', ' OFFSET 10 LIMIT 0', 0),
	  ('k', ' OFFSET 1 + 1', 2), ('k', ' OFFSET (SELECT max(few) FROM gs.off)', 99), ('k DESC, id', ' OFFSET 15000', 15000), ('few', ' OFFSET 77', 77),
	  ('k', ' OFFSET 10 FETCH FIRST 5 ROWS WITH TIES', 0), ('k', '', 0), ('k', ' LIMIT 10', 0)) v (key, clause, skipped);
SELECT is(gs.skipped('SELECT id FROM gs.off ORDER BY t, id OFFSET 500'), 0, 'all rows are read where some tie');
SELECT is(gs.skipped('SELECT id FROM gs.off ORDER BY u OFFSET 500'), 500, 'strings that do not tie');
SELECT is(gs.skipped('SELECT * FROM (SELECT id, k FROM gs.off ORDER BY k OFFSET 500) s'), 500, 'in a subquery');
SELECT is(gs.skipped('SELECT id FROM (SELECT id FROM gs.off ORDER BY k OFFSET 0) s WHERE id % 2 = 0 OFFSET 7'), 0, 'not below a condition');
SELECT is(gs.skipped('SELECT row_number() OVER (ORDER BY k, id) FROM gs.off OFFSET 7'), 0, 'not below a window');
SELECT is(gs.skipped('SELECT DISTINCT ON (few) few, id FROM gs.off ORDER BY few, id OFFSET 7'), 0, 'not below DISTINCT');
SELECT is(gs.skipped('SELECT id FROM gs.off ORDER BY k OFFSET 7 FOR UPDATE'), 0, 'not below row locks');
SET gpusort.verify_rows = on;
SELECT is(gs.skipped('SELECT id FROM gs.off ORDER BY k OFFSET 500'), 0, 'rows that are verified are read');
SELECT is(gs.compare('SELECT id FROM gs.off ORDER BY k, id OFFSET 500'), 'same', 'and are right');
RESET gpusort.verify_rows;
SELECT is((gs.node('SELECT id FROM gs.off ORDER BY k OFFSET 20000')->>'Actual Rows')::float::int, 10000, 'those that the Limit was not given do not count');

-- which
SET max_parallel_workers_per_gather = 0;
SELECT is(gs.compare_bulk(format('SELECT * FROM gs.off ORDER BY %s, id OFFSET %s LIMIT %s', key, off, lim)), 'same', format('%s OFFSET %s LIMIT %s', key, off, lim))
FROM (VALUES ('k'), ('k DESC'), ('t'), ('u DESC'), ('few, pad')) v (key),
	 (VALUES ('0'), ('1'), ('16000'), ('29999'), ('30000'), ('30001'), ('9223372036854775807')) x (off), (VALUES ('3'), ('9000'), ('ALL')) w (lim)
-- all bounds with one key, the others with some
WHERE key = 'k' OR (off IN ('1', '16000', '29999') AND lim IN ('3', 'ALL'));
RESET max_parallel_workers_per_gather;
SELECT is(gs.compare('SELECT few FROM gs.off ORDER BY k, id OFFSET 12345 LIMIT 100'), 'same', 'keys that are not shown');
SELECT is(gs.compare('SELECT id, random() IS NULL FROM gs.off ORDER BY k, id OFFSET 12345 LIMIT 100'), 'same', 'an expression above');
SELECT is(gs.compare('SELECT id, 1 / nullif(id - 1, 0) FROM gs.off ORDER BY k DESC, id OFFSET 29990'), 'same', 'an expression below');
SELECT is(gs.compare('SELECT sum(id), count(*) FROM (SELECT id FROM gs.off ORDER BY k, id OFFSET 4321) s'), 'same', 'a subquery');
SELECT is(gs.compare('SELECT id FROM gs.off ORDER BY k, id OFFSET 29000 FETCH FIRST 500 ROWS WITH TIES'), 'same', 'WITH TIES');
SELECT is(gs.compare('SELECT id FROM gs.off ORDER BY k, id OFFSET 29000 FOR UPDATE'), 'same', 'FOR UPDATE');
SELECT is(gs.compare('(SELECT id FROM gs.off ORDER BY k, id OFFSET 29990) UNION ALL (SELECT id FROM gs.off ORDER BY k DESC, id OFFSET 29900 LIMIT 7) ORDER BY 1'), 'same', 'two of them');
SELECT is(gs.compare('SELECT id FROM (SELECT id FROM (SELECT id, k FROM gs.off ORDER BY k, id OFFSET 100) s OFFSET 200) t OFFSET 300'), 'same', 'one above the other');
SET gpusort.min_rows = 100000;
SET gpusort.force = off;
SELECT is(gs.compare_results('SELECT id FROM gs.off ORDER BY k, id OFFSET 29000'), 'same', 'too few rows for the service');
RESET gpusort.min_rows;
RESET gpusort.force;

-- by several processes
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SELECT ok(gs.forced_plan('SELECT * FROM gs.off ORDER BY k, id OFFSET 20000') ~ 'GpuSort(Ingest|Output)', 'rows are taken in in parallel');
SELECT is(gs.skipped('SELECT * FROM gs.off ORDER BY k, id OFFSET 20000'), 20000, 'and skipped');
SELECT is(gs.compare('SELECT * FROM gs.off ORDER BY k, id OFFSET ' || off), 'same', 'in parallel, OFFSET ' || off)
FROM (VALUES (1), (20000), (29999), (30000), (30001)) v (off);
SELECT is(gs.compare('SELECT few, count(*) FROM gs.off GROUP BY few ORDER BY few OFFSET 50'), 'same', 'groups');
SELECT is(gs.compare('SELECT DISTINCT k, few FROM gs.off ORDER BY k, few OFFSET 5000'), 'same', 'DISTINCT');
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
RESET max_parallel_workers_per_gather;

-- offsets that are known when the query runs
SET gpusort.force = on;
SET plan_cache_mode = force_generic_plan;
PREPARE off(bigint, bigint) AS SELECT id, k FROM gs.off ORDER BY k DESC, id LIMIT $1 OFFSET $2;
SELECT is(gs.rows(format('EXECUTE off(%s, %s)', lim, off)),
		  gs.native_rows(format('SELECT id, k FROM gs.off ORDER BY k DESC, id LIMIT %s OFFSET %s', lim, off)), format('parameters %s, %s', lim, off))
FROM (VALUES ('3', '0'), ('500', '100'), ('NULL', '29000'), ('2', '20000'), ('40000', '29990'), ('10', 'NULL'), ('10', '30000'), ('NULL', '30001'), ('0', '5')) v (lim, off);
SELECT is(gs.skipped('EXECUTE off(10, 7777)'), 7777, 'a parameter');
SELECT throws_ok('EXECUTE off(1, -1)', '2201X', NULL, 'a negative offset');
DEALLOCATE off;
RESET plan_cache_mode;

-- cursors
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT id FROM gs.off ORDER BY k, id OFFSET 20000 LIMIT 5000;
DECLARE s SCROLL CURSOR FOR SELECT id FROM gs.off ORDER BY k, id OFFSET 20000 LIMIT 5000;
SET LOCAL gpusort.enable = off;
DECLARE n SCROLL CURSOR FOR SELECT id FROM gs.off ORDER BY k, id OFFSET 20000 LIMIT 5000;
SELECT is(gs.fetch('c', 'FORWARD 10'), gs.fetch('n', 'FORWARD 10'), 'a cursor');
SELECT is(gs.fetch('c', 'FORWARD ALL'), gs.fetch('n', 'FORWARD ALL'), 'and its end');
MOVE ABSOLUTE 0 IN n;
SELECT is(gs.fetch('s', step), gs.fetch('n', step), 'a SCROLL cursor: ' || step)
FROM (VALUES (1, 'NEXT'), (2, 'PRIOR'), (3, 'NEXT'), (4, 'FORWARD 100'), (5, 'BACKWARD 200'), (6, 'LAST'), (7, 'NEXT'), (8, 'PRIOR'), (9, 'FIRST'), (10, 'ABSOLUTE 3000'), (11, 'FORWARD ALL'), (12, 'BACKWARD ALL')) v (i, step) ;
COMMIT;

-- run again: with other offsets, with other rows, and as it is
SET enable_material = off;
SET enable_hashjoin = off;
SET enable_memoize = off;
CREATE TABLE gs.offsets AS SELECT * FROM (VALUES (1, 29990), (2, 29990), (3, 10), (4, 29995), (5, 30000), (6, 29000), (7, 0), (8, NULL), (9, 30001), (10, 29999)) v (run, rows);
ANALYZE gs.offsets;
SELECT is(gs.compare(query), 'same', what)
FROM (VALUES ('other offsets', 'SELECT run, s.* FROM gs.offsets, LATERAL (SELECT id, k FROM gs.off ORDER BY k, id OFFSET rows LIMIT 20) s ORDER BY run'),
	  ('the same one twice, then another', 'SELECT run, s.* FROM gs.offsets, LATERAL (SELECT i, l.id FROM (VALUES (1), (2)) x (i) LEFT JOIN (SELECT id FROM gs.off ORDER BY k, id OFFSET rows LIMIT 20) l ON true OFFSET 0) s ORDER BY run, i'),
	  ('the same rows again', 'SELECT i, l.id FROM (VALUES (1), (2), (3)) x (i) LEFT JOIN (SELECT id FROM gs.off ORDER BY k, id OFFSET 29980) l ON l.id % 3 <> i'),
	  ('behind all rows, again', 'SELECT i, l.id FROM (VALUES (1), (2), (3)) x (i) LEFT JOIN (SELECT id FROM gs.off ORDER BY k, id OFFSET 30000) l ON l.id % 3 <> i'),
	  ('strings again', 'SELECT i, l.id FROM (VALUES (1), (2), (3)) x (i) LEFT JOIN (SELECT id FROM gs.off ORDER BY u, id OFFSET 29980) l ON l.id % 3 <> i'),
	  ('in an expression', 'SELECT run, (SELECT sum(id) FROM (SELECT id FROM gs.off ORDER BY k DESC, id OFFSET rows) s) FROM gs.offsets ORDER BY run'),
	  ('other rows', 'SELECT run, s.* FROM gs.offsets, LATERAL (SELECT id, k FROM gs.off WHERE id % run = 0 ORDER BY k, id OFFSET 2990 LIMIT 30) s ORDER BY run')) v (what, query);
RESET enable_material;
RESET enable_hashjoin;
RESET enable_memoize;
RESET gpusort.force;

SELECT * FROM finish();
DROP TABLE gs.off, gs.offsets;
DROP FUNCTION gs.skipped;
