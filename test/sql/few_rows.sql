\set ECHO none
-- Sorts that were expected to be large and have few rows: PostgreSQL sorts them,
-- and nobody takes that for a failure.
SET client_min_messages = warning;
LOAD 'gpusort';
\pset format unaligned
\pset tuples_only on
SET max_parallel_workers_per_gather = 0;

-- n rows that the planner takes for 50,000
CREATE FUNCTION gs.many(n int) RETURNS TABLE (id int, k int, t text) LANGUAGE plpgsql STABLE ROWS 50000 AS $$
BEGIN
	RETURN QUERY SELECT i, (i * 7919) % 1009, 'text ' || (i * 31) % 77 FROM generate_series(1, n) i;
END $$;
-- what EXPLAIN (ANALYZE) says of a GpuSort that was planned by cost
CREATE FUNCTION gs.planned_node(query text) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) ' || query INTO plan;
	RETURN jsonb_path_query_first(plan::jsonb, 'strict $.** ? (@."Custom Plan Provider" == "GpuSort")');
END $$;

SELECT * FROM no_plan();
SELECT is(gs.planned_node(format('SELECT * FROM gs.many(%s) ORDER BY k, id', n))->>'Sort Method' LIKE '%radix', radix,
		  format('%s rows', n))
FROM (VALUES (0, false), (1, false), (1999, false), (2000, true), (2001, true), (5000, true)) v (n, radix);
SELECT is(gs.planned_node('SELECT * FROM gs.many(20) ORDER BY k, id')->>'Sort Method', 'fallback: tuplesort', 'PostgreSQL''s own sort');
SELECT alike(gs.planned_node('SELECT * FROM gs.many(20) ORDER BY k, id')->>'Fallback Reason', 'few rows:%', 'and why');
SELECT is(gs.rows(format('SELECT * FROM gs.many(%s) ORDER BY %s', n, key)), gs.native_rows(format('SELECT * FROM gs.many(%s) ORDER BY %s', n, key)),
		  format('%s rows by %s', n, key))
FROM (VALUES (0), (1), (2), (20), (1999), (2000), (2100)) v (n), (VALUES ('k, id'), ('t COLLATE "C" DESC, id')) w (key);

-- a key that nobody asked for, which is hidden in the rows
SELECT is(gs.rows('SELECT id FROM gs.many(30) ORDER BY k % 7, id'), gs.native_rows('SELECT id FROM gs.many(30) ORDER BY k % 7, id'), 'hidden keys');
SELECT is(gs.rows('SELECT id FROM gs.many(2500) ORDER BY k % 7, id'), gs.native_rows('SELECT id FROM gs.many(2500) ORDER BY k % 7, id'), 'hidden keys, enough rows');

-- wide rows: a megabyte of them is enough to go on with
SELECT is(gs.planned_node('SELECT id, repeat(t, 1000) FROM gs.many(400) ORDER BY k, id')->>'Sort Method' LIKE '%radix', true, 'few rows of many bytes');
SELECT is(gs.rows('SELECT id, repeat(t, 1000) FROM gs.many(400) ORDER BY k, id'), gs.native_rows('SELECT id, repeat(t, 1000) FROM gs.many(400) ORDER BY k, id'), 'in their order');

-- settings
SET gpusort.min_rows = 10;
SELECT is(gs.planned_node(format('SELECT * FROM gs.many(%s) ORDER BY k, id', n))->>'Sort Method' LIKE '%radix', n >= 10, format('gpusort.min_rows = 10, %s rows', n))
FROM (VALUES (9), (10), (11)) v (n);
SET gpusort.min_rows = 0;
SELECT is(gs.planned_node('SELECT * FROM gs.many(0) ORDER BY k')->>'Sort Method' LIKE '%radix', true, 'gpusort.min_rows = 0 takes any number');
RESET gpusort.min_rows;
SET gpusort.force = on;
SELECT is(gs.planned_node('SELECT * FROM gs.many(3) ORDER BY k')->>'Sort Method' LIKE '%radix', true, 'gpusort.force takes any number');
RESET gpusort.force;

-- run again and again, with other rows each time; some large, some small
CREATE TABLE gs.sizes AS SELECT n FROM (VALUES (3), (2500), (0), (20), (2000), (1)) v (n);
SELECT is(gs.rows(query), gs.native_rows(query), 'LATERAL')
FROM (VALUES ('SELECT n, s.id FROM gs.sizes, LATERAL (SELECT id FROM gs.many(n) ORDER BY k DESC, id OFFSET 0) s')) v (query);

-- going back in what was sorted by PostgreSQL
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id FROM gs.many(20) ORDER BY k, id;
SELECT is(gs.fetch('c', 'ALL'), gs.native_rows('SELECT id FROM gs.many(20) ORDER BY k, id'), 'a cursor');
SELECT is(gs.fetch('c', 'ABSOLUTE 3'), (gs.native_rows('SELECT id FROM gs.many(20) ORDER BY k, id'))[3:3], 'backward');
COMMIT;

-- what the statistics say of it
SELECT sorts AS sorts_before, small_sorts AS small_before, fallbacks AS fallbacks_before FROM gpusort_stats \gset
SELECT is(cardinality(gs.rows('SELECT * FROM gs.many(20) ORDER BY k')), 20, 'a small sort');
SELECT is((SELECT ROW(sorts - :sorts_before, small_sorts - :small_before, fallbacks - :fallbacks_before)::text FROM gpusort_stats), '(0,1,0)', 'is no fallback');
SELECT * FROM finish();
DROP TABLE gs.sizes;
DROP FUNCTION gs.many, gs.planned_node;
