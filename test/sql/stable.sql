\set ECHO none
-- Rows with equal keys leave in the order they came in, whether the key decides, a
-- tie-break within a chunk, over several, or one with rows from the overflow file.
-- The answer is PostgreSQL's with the rows' own numbers as the last column to sort by.
SET client_min_messages = warning;
LOAD 'gpusort';
\pset format unaligned
\pset tuples_only on

CREATE TABLE gs.st AS SELECT i AS id, i * 7 % 4 AS b, ARRAY[repeat('a', 60), (i * 31 % 3)::text] AS arr, NULLIF(i % 3, 1) AS n
FROM generate_series(1, 100) i;
CREATE TABLE gs.st_many AS SELECT i AS id, i % 2 AS b, ARRAY[repeat('a', 60), (i * 7919 % 5)::text] AS arr,
	   ('the same in all of these rows, for as far as a key goes and then some more, so that it is never whole ' || i * 7919 % 7) COLLATE "C" AS t,
	   repeat('pad', 60) AS pad
FROM generate_series(1, 60000) i;
ANALYZE gs.st;
ANALYZE gs.st_many;
SET synchronize_seqscans = off;
SET max_parallel_workers_per_gather = 0;

-- 'same' when the query's rows, ordered by that, come as they do natively with id behind it.
CREATE FUNCTION gs.compare_stable(query text, by text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	sorted text := format('%s ORDER BY %s', query, by);
BEGIN
	IF coalesce(gs.node(sorted)->>'Sort Method', '') NOT IN ('gpu radix', 'cpu radix') THEN
		RETURN 'no GpuSort';
	END IF;
	RETURN gs.difference(gs.native_rows(sorted || ', id'), gs.forced_rows(sorted));
END $$;

SELECT * FROM no_plan();

SELECT is(gs.compare_stable('SELECT * FROM gs.st', o), 'same', 'a hundred rows by ' || o)
FROM (VALUES ('b'), ('b, arr'), ('b DESC, arr DESC'), ('b * 0, arr'), ('n NULLS FIRST, arr'), ('n DESC, arr DESC, b'), ('arr[2] COLLATE "C", b')) v (o);
SELECT is(gs.compare_stable('SELECT id FROM gs.st', 'b, arr'), 'same', 'by columns that are not given out');
SELECT is(gs.compare_stable('SELECT id, b FROM gs.st_many WHERE id <= 5000', o), 'same', 'runs in one chunk by ' || o)
FROM (VALUES ('b'), ('b, arr'), ('t'), ('t DESC, b')) v (o);

SELECT is(gs.compare_stable('SELECT id, b, t, pad FROM gs.st_many', o), 'same', 'runs over several chunks by ' || o)
FROM (VALUES ('b'), ('b, arr'), ('t'), ('t DESC, b DESC'), ('b * 0, arr, t')) v (o);
SELECT is(gs.compare_stable('SELECT id FROM gs.st_many', o), 'same', 'the same by columns that are not given out: ' || o)
FROM (VALUES ('b * 0, arr, pad'), ('b, t, pad')) v (o);
SET work_mem = '64kB';
SELECT is(gs.compare_stable('SELECT id, b, pad FROM gs.st_many', 'b, arr'), 'same', 'runs over several chunks in little memory');
RESET work_mem;

-- the inner of two columns widens the rows beyond what goes into a chunk
SELECT is(gs.compare_stable('SELECT id, b, repeat(''w'', CASE WHEN id % 25 = 0 THEN 1500000 ELSE id END) AS w FROM gs.st', o), 'same', 'with long rows, by ' || o)
FROM (VALUES ('b'), ('b, arr'), ('b * 0, arr DESC'), ('arr[2] COLLATE "C"')) v (o);
SELECT is(gs.compare_stable('SELECT id, repeat(''w'', CASE WHEN id % 25 = 0 THEN 1500000 ELSE id END) AS w FROM gs.st', 'n, arr'), 'same',
		  'with long rows, by columns that are not given out');

-- as many columns as there can be: no room for a row's number, the rows are right all the same
SELECT is(gs.compare_results('SELECT id, b, arr, repeat(''w'', CASE WHEN id % 25 = 0 THEN 1500000 END), ' || string_agg('b', ', ')
							 || ' FROM gs.st ORDER BY b, arr, id'), 'same', '1664 columns and long rows')
FROM generate_series(1, 1660);

SELECT * FROM finish();
