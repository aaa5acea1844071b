\set ECHO none
-- INTERSECT and EXCEPT over rows that several processes ingest
-- (src/plan/offer/set_operations.c).
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
SET gpusort.setup_cost = 0 SET gpusort.row_cost = 0 SET enable_hashagg = off
AS $$ SELECT gs.set_rows(query) $$;
CREATE FUNCTION gs.native_set_rows(query text) RETURNS text LANGUAGE sql SET gpusort.enable = off
AS $$ SELECT gs.set_rows(query) $$;
CREATE FUNCTION gs.sorted_set_plan(query text) RETURNS text LANGUAGE sql
SET gpusort.setup_cost = 0 SET gpusort.row_cost = 0 SET enable_hashagg = off
AS $$ SELECT gs.plan(query) $$;

CREATE TABLE gs.set_operation_query (ordinal serial, q text);
INSERT INTO gs.set_operation_query (q) VALUES
	('SELECT a, b FROM gs.left_side INTERSECT SELECT a, b FROM gs.right_side'),
	('SELECT a, b FROM gs.left_side INTERSECT ALL SELECT a, b FROM gs.right_side'),
	('SELECT a, b FROM gs.left_side EXCEPT SELECT a, b FROM gs.right_side'),
	('SELECT a, b FROM gs.left_side EXCEPT ALL SELECT a, b FROM gs.right_side'),
	('SELECT b FROM gs.left_side EXCEPT ALL SELECT b FROM gs.right_side WHERE a > 500'),
	('SELECT t FROM gs.left_side EXCEPT SELECT t FROM gs.right_side ORDER BY 1'),
	('SELECT t, a FROM gs.left_side INTERSECT ALL SELECT t, a FROM gs.right_side ORDER BY 2, 1'),
	('SELECT n, b FROM gs.left_side INTERSECT SELECT n, b FROM gs.right_side WHERE b IS NULL'),
	('SELECT a FROM gs.left_side EXCEPT SELECT a FROM gs.right_side WHERE false'),
	('SELECT a FROM gs.left_side EXCEPT ALL SELECT a FROM gs.right_side WHERE false'),
	('SELECT a FROM gs.left_side WHERE false INTERSECT SELECT a FROM gs.right_side'),
	('SELECT a, b FROM gs.left_side WHERE a + 0 < 0 EXCEPT SELECT a, b FROM gs.right_side'),
	('SELECT a, b FROM gs.left_side EXCEPT SELECT a, b FROM gs.right_side WHERE a + 0 < 0'),
	('SELECT a, b FROM gs.left_side INTERSECT ALL SELECT a, b FROM gs.right_side WHERE a + 0 = 5'),
	('SELECT 5, a, b FROM gs.left_side INTERSECT SELECT 5, a, b FROM gs.right_side'),
	('SELECT 5, b FROM gs.left_side EXCEPT SELECT a, b FROM gs.right_side'),
	('SELECT 5 FROM gs.left_side INTERSECT SELECT a FROM gs.right_side'),
	-- from 17 on PostgreSQL sorts what a LIMIT lets through once more
	('(SELECT t, a, b FROM gs.left_side ORDER BY a, b, t LIMIT 50) UNION SELECT t, a, b FROM gs.right_side WHERE a < 3 ORDER BY 1, 2, 3'),
	('(SELECT t, a, b FROM gs.left_side ORDER BY b DESC, a, t LIMIT 700 OFFSET 10) EXCEPT (SELECT t, a, b FROM gs.left_side ORDER BY a, b, t LIMIT 5000) ORDER BY 1, 2, 3'),
	('(SELECT a, b FROM gs.left_side ORDER BY b, a LIMIT 3000) INTERSECT ALL (SELECT a, b FROM gs.right_side ORDER BY a DESC, b LIMIT 4000) ORDER BY 2, 1'),
	('SELECT count(*), sum(a) FROM ((SELECT a, b FROM gs.left_side ORDER BY b, a LIMIT 30) UNION ALL (SELECT a, b FROM gs.right_side ORDER BY a DESC, b LIMIT 4) UNION (SELECT a, b FROM gs.right_side ORDER BY b, a FETCH FIRST 7 ROWS WITH TIES)) s ORDER BY 1'),
	('SELECT a::int8, b FROM gs.left_side INTERSECT SELECT a, b FROM gs.right_side'),
	('SELECT a, b FROM gs.left_side EXCEPT ALL SELECT b::numeric, a FROM gs.right_side'),
	('SELECT a FROM gs.left_side INTERSECT SELECT b FROM gs.right_side EXCEPT SELECT 5'),
	('SELECT a, b FROM gs.left_side EXCEPT (SELECT a, b FROM gs.right_side INTERSECT SELECT b, a FROM gs.left_side)'),
	('(SELECT a FROM gs.left_side UNION SELECT b FROM gs.right_side) EXCEPT SELECT a + 1 FROM gs.right_side'),
	('SELECT a, b FROM gs.right_side INTERSECT (SELECT a, b FROM gs.left_side UNION SELECT b, a FROM gs.right_side)'),
	('SELECT a, b FROM gs.right_side INTERSECT ALL (SELECT a, b FROM gs.left_side UNION ALL SELECT b, a FROM gs.right_side)'),
	('SELECT a FROM gs.left_side UNION (SELECT a::int8 FROM gs.left_side EXCEPT SELECT b FROM gs.right_side)'),
	('SELECT a, count(*) AS c FROM gs.left_side GROUP BY a INTERSECT SELECT a, count(*) FROM gs.right_side GROUP BY a'),
	('SELECT a, max(b) FROM (SELECT a, b FROM gs.left_side INTERSECT ALL SELECT a, b FROM gs.right_side) s GROUP BY a'),
	('SELECT a, row_number() OVER (PARTITION BY a ORDER BY b) FROM (SELECT a, b FROM gs.left_side EXCEPT SELECT b, a FROM gs.right_side) s');
SELECT is(gs.sorted_set_rows(q), gs.native_set_rows(q), q) FROM gs.set_operation_query ORDER BY ordinal;
SET max_parallel_workers_per_gather = 1;
SELECT is(gs.sorted_set_rows(q), gs.native_set_rows(q), 'a worker: ' || q) FROM gs.set_operation_query ORDER BY ordinal;
SET max_parallel_workers_per_gather = 0;
SELECT is(gs.sorted_set_rows(q), gs.native_set_rows(q), 'no worker: ' || q) FROM gs.set_operation_query ORDER BY ordinal;
SET max_parallel_workers_per_gather = 2;
SET gpusort.force = on;
SELECT is(gs.sorted_set_rows(q), gs.native_set_rows(q), 'by force: ' || q) FROM gs.set_operation_query ORDER BY ordinal;
SET max_parallel_workers = 0;
SELECT is(gs.sorted_set_rows(q), gs.native_set_rows(q), 'planned for workers that do not come: ' || q) FROM gs.set_operation_query ORDER BY ordinal;
RESET max_parallel_workers;

-- in all processes: up to PostgreSQL 17 over rows of both sides, then over each side in the order of both
SELECT matches(gs.sorted_set_plan(q), CASE WHEN current_setting('server_version_num')::int < 180000
		THEN 'GpuSortExchange.*SetOp.*GpuSort.*Append' ELSE 'GpuSortExchange.*SetOp.*GpuSort.*GpuSort' END, 'in all processes: ' || q)
FROM gs.set_operation_query WHERE q ~ '^SELECT [abt, ]* FROM gs.left_side (INTERSECT|EXCEPT)( ALL)? SELECT [abt, ]* FROM gs.right_side( ORDER BY [0-9, ]*)?$' ORDER BY ordinal;
-- from 18 on sides may be set operations, too, which come in order
CREATE FUNCTION gs.nested_set_plan(query text) RETURNS text LANGUAGE sql SET gpusort.setup_cost = 0 SET gpusort.row_cost = 0 SET enable_hashagg = off
AS $$ SELECT gs.plan(query) $$;
SELECT ok(current_setting('server_version_num')::int < 180000 OR (plan ~ ('^Custom Scan .GpuSortExchange.*SetOp.*-> +' || side) AND plan !~ '-> +Sort'), 'in all processes: ' || q)
FROM (VALUES ('SELECT a, b FROM gs.right_side INTERSECT (SELECT a, b FROM gs.left_side UNION ALL SELECT b, a FROM gs.right_side)', 'Parallel Append'),
			 ('SELECT a, b FROM gs.right_side EXCEPT (SELECT a, b FROM gs.left_side INTERSECT ALL SELECT b, a FROM gs.right_side)', 'SetOp'),
			 ('(SELECT a, b FROM gs.left_side EXCEPT SELECT b, a FROM gs.right_side) INTERSECT SELECT a, b FROM gs.right_side ORDER BY 1, 2', 'SetOp')) v (q, side), gs.nested_set_plan(q) plan;
RESET gpusort.force;

SELECT * FROM finish();
