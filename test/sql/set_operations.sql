\set ECHO none
-- INTERSECT and EXCEPT over rows that several processes ingest
-- (src/plan/set_operations.c).
SET client_min_messages = warning;
LOAD 'gpusort';
\pset format unaligned
\pset tuples_only on
SELECT * FROM no_plan();

CREATE TABLE gs.left_side AS
SELECT i * 7919 % 997 AS a, CASE WHEN i % 13 > 0 THEN i % 13 END AS b, md5((i % 5000)::text) AS t, i % 3 / 2.0 AS n
FROM generate_series(1, 10000) AS i;
CREATE TABLE gs.right_side AS
SELECT i * 7919 % 997 AS a, CASE WHEN i % 11 > 0 THEN i % 11 END AS b, md5((i % 7000)::text) AS t, i % 4 / 2.00 AS n
FROM generate_series(1, 10000) AS i;
ANALYZE gs.left_side;
ANALYZE gs.right_side;
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET gpusort.min_rows = 0;

-- Rows of a query in their order if it has one, else sorted by what they look like.
CREATE FUNCTION gs.set_rows(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
BEGIN
	EXECUTE CASE WHEN query ~ 'ORDER BY' THEN 'SELECT md5(string_agg(r::text, '';'')) FROM ('
		ELSE 'SELECT md5(string_agg(r::text, '';'' ORDER BY r::text)) FROM (' END || query || ') AS r' INTO result;
	RETURN result;
END $$;
CREATE FUNCTION gs.sorted_set_rows(query text) RETURNS text LANGUAGE sql
SET gpusort.setup_cost = 0 SET gpusort.row_cost = 0 SET enable_hashagg = off SET enable_sort = off
AS $$ SELECT gs.set_rows(query) $$;
CREATE FUNCTION gs.native_set_rows(query text) RETURNS text LANGUAGE sql SET gpusort.enable = off
AS $$ SELECT gs.set_rows(query) $$;
CREATE FUNCTION gs.sorted_set_plan(query text) RETURNS text LANGUAGE sql
SET gpusort.setup_cost = 0 SET gpusort.row_cost = 0 SET enable_hashagg = off SET enable_sort = off
AS $$ SELECT gs.plan(query) $$;

SELECT is(gs.sorted_set_rows(q), gs.native_set_rows(q), q)
FROM unnest(ARRAY[
	'SELECT a, b FROM gs.left_side INTERSECT SELECT a, b FROM gs.right_side',
	'SELECT a, b FROM gs.left_side INTERSECT ALL SELECT a, b FROM gs.right_side',
	'SELECT a, b FROM gs.left_side EXCEPT SELECT a, b FROM gs.right_side',
	'SELECT b FROM gs.left_side EXCEPT ALL SELECT b FROM gs.right_side WHERE a > 500',
	'SELECT t FROM gs.left_side EXCEPT SELECT t FROM gs.right_side ORDER BY 1',
	'SELECT n, b FROM gs.left_side INTERSECT SELECT n, b FROM gs.right_side WHERE b IS NULL',
	'SELECT a FROM gs.left_side EXCEPT SELECT a FROM gs.right_side WHERE false',
	'SELECT a FROM gs.left_side WHERE false INTERSECT SELECT a FROM gs.right_side',
	'SELECT a FROM gs.left_side INTERSECT SELECT b FROM gs.right_side EXCEPT SELECT 5',
	'(SELECT a FROM gs.left_side UNION SELECT b FROM gs.right_side) EXCEPT SELECT a + 1 FROM gs.right_side',
	'SELECT a, count(*) AS c FROM gs.left_side GROUP BY a INTERSECT SELECT a, count(*) FROM gs.right_side GROUP BY a'
	]) AS q;

SELECT CASE WHEN current_setting('server_version_num')::int < 180000
	THEN matches(gs.sorted_set_plan('SELECT a, b FROM gs.left_side INTERSECT SELECT a, b FROM gs.right_side'),
				 'GpuSort.*Gather.*Append', 'both sides are read in parallel')
	ELSE pass('both sides are read in parallel') END;

SELECT * FROM finish();
