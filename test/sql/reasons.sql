\set ECHO none
-- Each reason is told where its rule holds, and gpusort sorts where that rule alone is flipped; gpusort_explain() tells
-- reasons to any user, on every version; plans that are cached follow the settings.
SET client_min_messages = warning;
\pset format unaligned
\pset tuples_only on

SELECT * FROM no_plan();
CREATE SCHEMA reasons;
SET max_parallel_workers_per_gather = 0;
SET gpusort.min_rows = 2000;
SET enable_hashagg = off;

CREATE TABLE reasons.r AS SELECT i AS id, (i * 7919::bigint) % 300007 AS k, md5(i::text) AS m, i::float8 AS f, i::text::oidvector AS o, ARRAY[i] AS a FROM generate_series(1, 60000) i;
ANALYZE reasons.r;
SELECT count(*) FROM (SELECT * FROM reasons.r ORDER BY k OFFSET 0) s \g /dev/null

CREATE FUNCTION reasons.explained(query text) RETURNS text LANGUAGE sql AS $$ SELECT string_agg(line, E'\n') FROM gpusort_explain(query) line $$;

-- the reason with the first setting, and none with the second, where GpuSort sorts
CREATE FUNCTION reasons.flips(name text, query text, reason text, refused text, taken text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	plan text;
BEGIN
	EXECUTE refused;
	plan := reasons.explained(query);
	RETURN NEXT ok(plan ~ ('GpuSort: ' || reason) , name || ': the reason');
	IF plan !~ ('GpuSort: ' || reason) THEN
		RETURN NEXT diag(plan);
	END IF;
	EXECUTE taken;
	plan := reasons.explained(query);
	RETURN NEXT ok(plan ~ 'Custom Scan \(GpuSort' AND plan !~ 'GpuSort: ', name || ': not with its rule flipped');
	IF plan !~ 'Custom Scan \(GpuSort' OR plan ~ 'GpuSort: ' THEN
		RETURN NEXT diag(plan);
	END IF;
END $$;
SELECT reasons.flips('few rows', 'SELECT * FROM reasons.r ORDER BY k', 'not used: 60000 rows are fewer than gpusort.min_rows',
				'SET gpusort.min_rows = 60001', 'SET gpusort.min_rows = 60000');
SELECT reasons.flips('the cost', 'SELECT * FROM reasons.r ORDER BY k', 'not used: the sort alone would take [0-9.]+ ms, PostgreSQL''s [0-9.]+ ms; gpusort has to be 1\.2 times as fast and to save [0-9.]+ ms',
				'SET gpusort.setup_cost = 1e6', 'RESET gpusort.setup_cost');
SELECT reasons.flips('the key', 'SELECT * FROM reasons.r ORDER BY ' || 'o', 'not used: sort key 1 is of type oidvector, which has no key encoding',
				'SET gpusort.min_rows = 2000', 'ALTER TABLE reasons.r ALTER o TYPE int USING id; ANALYZE reasons.r');

-- an order of an operator class that gpusort does not know, which is named
CREATE FUNCTION reasons.back(int, int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT btint4cmp($2, $1)';
CREATE OPERATOR reasons.<<< (LEFTARG = int, RIGHTARG = int, FUNCTION = int4gt);
CREATE OPERATOR reasons.>>> (LEFTARG = int, RIGHTARG = int, FUNCTION = int4lt);
CREATE OPERATOR CLASS reasons.backwards FOR TYPE int USING btree AS OPERATOR 1 reasons.<<<, OPERATOR 2 >=, OPERATOR 3 =, OPERATOR 4 <=, OPERATOR 5 reasons.>>>, FUNCTION 1 reasons.back(int, int);
SELECT ok(reasons.explained('SELECT * FROM reasons.r ORDER BY id USING OPERATOR(reasons.<<<)') ~ 'GpuSort: not used: sort key 1 is of type integer in the order of operator family reasons.backwards, which has no key encoding', 'an operator class of one''s own');
SELECT ok(reasons.explained('SELECT * FROM reasons.r ORDER BY ROW(id) USING *<') ~ 'GpuSort: not used: sort key 1 is of type record in the order of operator family record_image_ops, which has no key encoding', 'one of PostgreSQL''s');
SELECT ok(reasons.explained('SELECT * FROM reasons.r ORDER BY k, id USING OPERATOR(reasons.<<<)') !~ 'GpuSort: ', 'not behind another key');
DROP OPERATOR FAMILY reasons.backwards USING btree;

-- The margin is the one that decides: by the numbers that are told.
CREATE FUNCTION reasons.margin(query text, OUT ours float8, OUT native float8, OUT factor float8, OUT gain float8) LANGUAGE sql AS $$
	SELECT m[1]::float8, m[2]::float8, m[3]::float8, m[4]::float8
	FROM regexp_match(reasons.explained(query), 'the sort alone would take ([0-9.]+) ms, PostgreSQL''s ([0-9.]+) ms; gpusort has to be ([0-9.]+) times as fast and to save ([0-9.]+) ms') m $$;
CREATE FUNCTION reasons.margins(query text) RETURNS SETOF bool LANGUAGE plpgsql AS $$
DECLARE
	m record;
BEGIN
	FOR i IN 0..15 LOOP
		PERFORM set_config('gpusort.setup_cost', (80 * 2 ^ i)::text, false);
		SELECT * INTO m FROM reasons.margin(query);
		RETURN NEXT coalesce(m.ours * m.factor + m.gain > m.native * 0.999, reasons.explained(query) ~ 'Custom Scan \(GpuSort\)');
	END LOOP;
	RESET gpusort.setup_cost;
END $$;
SELECT ok(bool_and(told), 'a sort is refused only where the margin that is told says so') FROM reasons.margins('SELECT * FROM reasons.r ORDER BY k') told;

-- rows below a Gather Merge are those of all processes
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT reasons.flips('rows of all processes', 'SELECT * FROM reasons.r ORDER BY k', 'not used: (59999|60000|60001) rows are fewer than gpusort.min_rows',
				'SET gpusort.min_rows = 70000', 'SET gpusort.min_rows = 50000');
RESET gpusort.min_rows;
SET gpusort.min_rows = 2000;

-- what one process does: floats depend on the order in which they are added
SET gpusort.force = on;
SELECT ok(reasons.explained('SELECT sum(f) OVER (ORDER BY k) FROM reasons.r') ~ 'GpuSort: only one process does this: the sort does not begin with a column of the window''s PARTITION BY, and sum\(double precision\) needs all rows of a partition in order, in one process; the result for floats depends on the order', 'a sum of floats');
SELECT ok(reasons.explained('SELECT sum(id) OVER (ORDER BY k) FROM reasons.r') !~ 'GpuSort: ', 'not one of integers');
SELECT ok(reasons.explained('SELECT sum(f) OVER (PARTITION BY k) FROM reasons.r') !~ 'GpuSort: ', 'nor one of floats with PARTITION BY');
SELECT ok(reasons.explained('SELECT row_number() OVER w, sum(id) OVER w, array_agg(id) OVER w FROM reasons.r WINDOW w AS (ORDER BY k)') ~ 'and array_agg\(anynonarray\) needs all rows of a partition in order, in one process\n', 'the function that needs it is told, of several');
-- what else has one process do it, and all where it does not
CREATE FUNCTION reasons.f(bigint) RETURNS bigint LANGUAGE plpgsql PARALLEL RESTRICTED AS 'BEGIN RETURN $1; END';
SELECT reasons.flips('a function', 'SELECT reasons.f(sum(id) OVER (PARTITION BY k)) FROM reasons.r', 'only one process does this: f\(\) is not parallel safe',
				'SELECT 1', 'ALTER FUNCTION reasons.f PARALLEL SAFE IMMUTABLE');
SELECT reasons.flips('the setting', 'SELECT sum(id) OVER (PARTITION BY k) FROM reasons.r', 'only one process does this: gpusort.parallel_output is off',
				'SET gpusort.parallel_output = off', 'RESET gpusort.parallel_output');
SELECT reasons.flips('a LIMIT', 'SELECT sum(id) OVER (ORDER BY k ROWS UNBOUNDED PRECEDING) FROM reasons.r LIMIT 5', 'only one process does this: a LIMIT may need only the first rows, and all would be read',
				'SET gpusort.force = off', 'SET gpusort.force = on');
-- on many cores two workers would not take longer
SET max_parallel_workers_per_gather = 1;
SELECT reasons.flips('rows passed on', 'SELECT row_number() OVER (ORDER BY k), * FROM reasons.r', 'only one process does this: several processes would take longer, because they have to pass the result on',
				'SET gpusort.force = off', 'SET gpusort.force = on');
SET max_parallel_workers_per_gather = 2;
SELECT ok(reasons.explained('SELECT k, sum(id) OVER (PARTITION BY k) FROM reasons.r WHERE id > (SELECT random() * 5)') ~ 'GpuSort: only one process does this: reading the input again might give other rows', 'rows that change');
SELECT ok(reasons.explained('SELECT array_agg(id) FROM (SELECT * FROM reasons.r ORDER BY k OFFSET 0) s') ~ 'GpuSort: only one process does this: an aggregate that hashes, or has no GROUP BY, needs all rows in one process', 'an aggregate of all rows');
RESET gpusort.force;
SET max_parallel_workers_per_gather = 0;

-- gpusort_explain(): the plan is PostgreSQL's EXPLAIN of it, with lines between
CREATE FUNCTION reasons.plan_of(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
	RETURN QUERY EXECUTE 'EXPLAIN ' || query;
END $$;
SELECT results_eq(format('SELECT line FROM gpusort_explain(%L) line WHERE line !~ ''^ *GpuSort( Service)?: ''', query), format('SELECT reasons.plan_of(%L)', query), 'lines of EXPLAIN: ' || query)
FROM (VALUES ('SELECT * FROM reasons.r ORDER BY k'), ('SELECT k, count(*) FROM reasons.r GROUP BY k ORDER BY 2 LIMIT 3'), ('WITH c AS MATERIALIZED (SELECT * FROM reasons.r ORDER BY id LIMIT 5) SELECT (SELECT max(id) FROM c), * FROM c WHERE m <> ''x -> y width=1500000001)'' ORDER BY k'),
			 ('SELECT 1'), ('DELETE FROM reasons.r WHERE id IN (SELECT id FROM reasons.r ORDER BY f LIMIT 2)'), ('INSERT INTO reasons.r SELECT * FROM reasons.r ORDER BY k'), ('SELECT * FROM reasons.r a JOIN reasons.r b USING (id) WHERE a.k = 5 ORDER BY b.k'), ('SELECT DISTINCT a FROM reasons.r')) q (query);
SELECT is((SELECT array_agg(line ORDER BY n) FROM gpusort_explain('SELECT * FROM (SELECT * FROM reasons.r ORDER BY k LIMIT 5) s ORDER BY m') WITH ORDINALITY l (line, n) WHERE n IN (2, 3)),
		  ARRAY['  Sort Key: r.m', '  GpuSort: not used: 5 rows are fewer than gpusort.min_rows'], 'a reason is below its node''s properties');
SELECT is((SELECT count(*) FROM reasons.r), 60000::bigint, 'nothing was run');
SELECT throws_ok(format('SELECT gpusort_explain(%L)', query), code, message, 'not ' || query)
FROM (VALUES ('VACUUM reasons.r', '0A000', 'gpusort_explain() does not explain VACUUM'), ('SELECT 1; DROP TABLE reasons.r', '42601', 'gpusort_explain() takes one statement, not 2'), ('', '42601', 'gpusort_explain() takes one statement, not 0'),
			 ('EXPLAIN SELECT 1', '0A000', 'gpusort_explain() does not explain EXPLAIN'), ('SELECT * FROM gs.no_such', '42P01', 'relation "gs.no_such" does not exist')) q (query, code, message);
SELECT ok(reasons.explained('SELECT * FROM reasons.r WHERE id > $1 ORDER BY k') ~ 'Custom Scan \(GpuSort\)', 'with a parameter');
CREATE ROLE gs_reader;
GRANT USAGE ON SCHEMA gs TO gs_reader;
SET ROLE gs_reader;
SELECT throws_ok('SELECT gpusort_explain(''SELECT * FROM reasons.r ORDER BY k'')', '42501', NULL, 'of who may not read the table no plan');
SELECT ok(string_agg(line, E'\n') ~ 'GpuSort: not used: 100 rows are fewer', 'any user''s') FROM gpusort_explain('SELECT * FROM generate_series(1, 100) i ORDER BY i') line;
RESET ROLE;
REVOKE USAGE ON SCHEMA gs FROM gs_reader;
DROP ROLE gs_reader;
SET gpusort.enable = off;
SELECT ok(reasons.explained('SELECT * FROM reasons.r ORDER BY k') ~ 'GpuSort Service: not asked, gpusort.enable is off' AND reasons.explained('SELECT * FROM reasons.r ORDER BY k') !~ 'GpuSort: ', 'off: no reasons');
RESET gpusort.enable;

-- plans that are cached: each setting that plans follow, on and off in one session
CREATE FUNCTION reasons.plan_of_prepared() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	plan text := '';
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) EXECUTE prepared(1)' LOOP
		plan := plan || line || E'\n';
	END LOOP;
	RETURN plan;
END $$;
SET plan_cache_mode = force_generic_plan;
PREPARE prepared(int) AS SELECT * FROM reasons.r WHERE id > $1 ORDER BY k;
SELECT ok(reasons.plan_of_prepared() ~ 'GpuSort', 'a prepared statement is GpuSort''s');
CREATE FUNCTION reasons.follows(setting text, value text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('SET %s = %s', setting, value);
	RETURN NEXT ok(reasons.plan_of_prepared() !~ 'GpuSort', 'not after SET ' || setting);
	EXECUTE 'RESET ' || setting;
	RETURN NEXT ok(reasons.plan_of_prepared() ~ 'GpuSort', 'again after RESET ' || setting);
END $$;
SELECT reasons.follows(setting, value) FROM (VALUES ('gpusort.enable', 'off'), ('gpusort.allowed', 'off'), ('gpusort.setup_cost', '1e9'), ('gpusort.row_cost', '1e9')) s (setting, value);
SET gpusort.min_rows = 100000;
SELECT ok(reasons.plan_of_prepared() !~ 'GpuSort', 'not after SET gpusort.min_rows');
SET gpusort.min_rows = 2000;
BEGIN;
SET LOCAL gpusort.enable = off;
SELECT ok(reasons.plan_of_prepared() !~ 'GpuSort', 'not after SET LOCAL');
COMMIT;
SELECT ok(reasons.plan_of_prepared() ~ 'GpuSort', 'again after the transaction');
BEGIN;
SET gpusort.enable = off;
SELECT ok(reasons.plan_of_prepared() !~ 'GpuSort', 'not after SET in a transaction');
ROLLBACK;
SELECT ok(reasons.plan_of_prepared() ~ 'GpuSort', 'again after it was rolled back');

-- so do plans of PL/pgSQL, as the sorts that are counted tell
CREATE FUNCTION reasons.r_sorts() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
	RETURN (SELECT max(k) FROM (SELECT k FROM reasons.r ORDER BY k, id OFFSET 0) s);
END $$;
CREATE FUNCTION reasons.sorts_of_service() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	before bigint := sorts FROM gpusort_stats;
BEGIN
	PERFORM reasons.r_sorts();
	RETURN (SELECT sorts FROM gpusort_stats) - before;
END $$;
SELECT is(reasons.sorts_of_service(), 1::bigint, 'a function sorts by the service');
SET gpusort.enable = off;
SELECT is(reasons.sorts_of_service(), 0::bigint, 'not after SET gpusort.enable = off');
RESET gpusort.enable;
SELECT is(reasons.sorts_of_service(), 1::bigint, 'and again');

-- rows that a LIMIT removes add up
CREATE TEMP TABLE gs_limit (j json);
CREATE FUNCTION reasons.limit_node() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, FORMAT json) SELECT * FROM reasons.r ORDER BY k LIMIT 10' INTO plan;
	INSERT INTO gs_limit VALUES (plan->0->'Plan'->'Plans'->0);
END $$;
SET gpusort.force = on;
SELECT reasons.limit_node() \g /dev/null
SELECT is((j->>'Rows')::int + (j->>'Rows Removed by Limit')::int, 60000, 'rows, and those that LIMIT removes') FROM gs_limit;
SELECT cmp_ok((j->>'Rows Removed Before Sort')::int, '<=', (j->>'Rows Removed by Limit')::int, 'of which some were never sorted') FROM gs_limit;
RESET gpusort.force;
DROP SCHEMA reasons CASCADE;
SELECT * FROM finish();
