\set ECHO none
-- Grouping sets with a grand total, which is computed beside the groups
-- (src/plan/offer/rollup.c).
SET client_min_messages = warning;
LOAD 'gpusort';
\pset format unaligned
\pset tuples_only on
SELECT * FROM no_plan();

CREATE TABLE gs.rollup_rows AS
SELECT CASE WHEN i % 13 <> 3 THEN i * 7919 % 97 END AS a, i % 13 AS b, i % 5 AS c, i::numeric / 7 AS v, md5(i::text) AS t
FROM generate_series(1, 20000) AS i;
CREATE TABLE gs.rollup_none (LIKE gs.rollup_rows);
ANALYZE gs.rollup_rows;
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET enable_hashagg = off;
SET gpusort.min_rows = 0;

-- The answer without gpusort, and what EXPLAIN shows with it.
CREATE FUNCTION pg_temp.native(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	answer text;
BEGIN
	PERFORM set_config('gpusort.enable', 'off', true);
	EXECUTE 'SELECT string_agg(r::text, E''\n'' ORDER BY r::text) FROM (' || query || ') AS r' INTO answer;
	PERFORM set_config('gpusort.enable', 'on', true);
	RETURN answer;
END $$;
CREATE FUNCTION pg_temp.forced(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	answer text;
BEGIN
	PERFORM set_config('gpusort.setup_cost', '0', true), set_config('gpusort.row_cost', '0', true),
		set_config('enable_sort', 'off', true);
	EXECUTE 'SELECT string_agg(r::text, E''\n'' ORDER BY r::text) FROM (' || query || ') AS r' INTO answer;
	RETURN answer;
END $$;
CREATE FUNCTION pg_temp.is_split(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	PERFORM set_config('gpusort.setup_cost', '0', true), set_config('gpusort.row_cost', '0', true),
		set_config('enable_sort', 'off', true);
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		IF line ~ 'Append' THEN
			RETURN true;
		END IF;
	END LOOP;
	RETURN false;
END $$;
CREATE FUNCTION pg_temp.same(query text, split boolean, what text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
	-- PostgreSQL 18 tells its own plans from others by other costs: the choice between the two is left to it.
	RETURN NEXT is(split AND current_setting('server_version_num')::int >= 180000 OR pg_temp.is_split(query), split,
				   what || ': the total beside the groups: ' || split);
	RETURN NEXT is(md5(pg_temp.forced(query)), md5(pg_temp.native(query)), what || ': the same answer');
END $$;

SELECT pg_temp.same($$SELECT a, b, c, grouping(a, b, c) AS g, grouping(b) AS gb, sum(v), count(*), coalesce(a, -1) AS ca
	FROM gs.rollup_rows GROUP BY ROLLUP (a, b, c)$$, true, 'ROLLUP of three');
SELECT pg_temp.same($$SELECT a, count(DISTINCT b), string_agg(t, ',' ORDER BY v) AS s, percentile_disc(0.5) WITHIN GROUP (ORDER BY v)
	FROM gs.rollup_rows GROUP BY ROLLUP (a, b, c)$$, true, 'aggregates that cannot be combined');
SELECT pg_temp.same($$SELECT a % 7 AS m, upper(t) < '8' AS u, min(t), sum(v) FILTER (WHERE b > 3)
	FROM gs.rollup_rows GROUP BY ROLLUP (a % 7, upper(t) < '8')$$, true, 'expressions');
SELECT pg_temp.same($$SELECT a, b, count(*) FROM gs.rollup_rows GROUP BY ROLLUP (a, b) HAVING a IS NULL OR count(*) > 15$$,
	true, 'HAVING over groups');
SELECT pg_temp.same($$SELECT a, b, count(*) FROM gs.rollup_rows GROUP BY ROLLUP (a, b) HAVING grouping(a) = 0$$,
	true, 'HAVING without the total');
SELECT pg_temp.same($$SELECT a, count(*), sum(v), (SELECT max(b) FROM gs.rollup_none AS n WHERE n.a = r.a) AS m
	FROM gs.rollup_rows AS r GROUP BY ROLLUP (a)$$, false, 'a subquery of the group, which workers may not run');
SELECT pg_temp.same($$SELECT a, b, c, count(*), sum(v), max(t) FROM gs.rollup_rows GROUP BY GROUPING SETS ((), (a), (a, b), (a, b, c))$$, true,
	'sets with a column in common');
SELECT pg_temp.same($$SELECT a, b, count(*) FROM gs.rollup_rows GROUP BY CUBE (a, b)$$, false, 'sets with nothing in common');
SELECT pg_temp.same($$SELECT a, count(*) FROM gs.rollup_rows GROUP BY GROUPING SETS ((a), (), ())$$, false, 'two totals');
SELECT pg_temp.same($$SELECT a, count(*) FROM (SELECT a, random() AS r FROM gs.rollup_rows) AS s WHERE r < 2
	GROUP BY ROLLUP (a)$$, false, 'an input that is not the same twice');
SELECT is(pg_temp.is_split('SELECT a, count(*) FROM gs.rollup_rows TABLESAMPLE system (50) GROUP BY ROLLUP (a)'), false,
	'a sample is not read twice');
SELECT is(md5(pg_temp.forced('SELECT a, count(*) FROM gs.rollup_rows WHERE b > 100 GROUP BY ROLLUP (a)')),
	md5(pg_temp.native('SELECT a, count(*) FROM gs.rollup_rows WHERE b > 100 GROUP BY ROLLUP (a)')), 'no rows have a total');
SET gpusort.parallel_output = off;
SELECT is(pg_temp.is_split('SELECT a, count(*) FROM gs.rollup_rows GROUP BY ROLLUP (a)'), false,
	'not with gpusort.parallel_output = off');
SELECT * FROM finish();
