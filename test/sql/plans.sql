\set ECHO none
-- Which sorts go through GpuSort and which stay with PostgreSQL.
SET client_min_messages = warning;
LOAD 'gpusort';
\pset format unaligned
\pset tuples_only on

CREATE TYPE gs.mood AS ENUM ('sad', 'ok', 'happy');
CREATE TYPE gs.pair AS (b oidvector, a int);
CREATE TABLE gs.kinds AS
SELECT i AS k, i::text COLLATE "C" AS t, i::text::oidvector AS a, ('7 ' || i)::oidvector AS j, (ARRAY['sad', 'ok', 'happy'])[1 + i % 3]::gs.mood AS e,
	   ROW('7', i)::gs.pair AS w
FROM generate_series(1, 1000) i;
CREATE INDEX ON gs.kinds (k);
ANALYZE gs.kinds;
CREATE TABLE gs.large AS SELECT i AS id, (i::bigint * 7919) % 100003 AS k, md5(i::text) AS t FROM generate_series(1, 300000) i;
ANALYZE gs.large;

-- An order of integers of its own, by absolute value.
CREATE FUNCTION gs.abs_lt(int, int) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT abs($1) < abs($2)';
CREATE FUNCTION gs.abs_le(int, int) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT abs($1) <= abs($2)';
CREATE FUNCTION gs.abs_eq(int, int) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT abs($1) = abs($2)';
CREATE FUNCTION gs.abs_ge(int, int) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT abs($1) >= abs($2)';
CREATE FUNCTION gs.abs_gt(int, int) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT abs($1) > abs($2)';
CREATE FUNCTION gs.abs_cmp(int, int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT abs($1) - abs($2)';
CREATE OPERATOR gs.<# (FUNCTION = gs.abs_lt, LEFTARG = int, RIGHTARG = int, COMMUTATOR = OPERATOR(gs.>#), NEGATOR = OPERATOR(gs.>=#));
CREATE OPERATOR gs.<=# (FUNCTION = gs.abs_le, LEFTARG = int, RIGHTARG = int);
CREATE OPERATOR gs.=# (FUNCTION = gs.abs_eq, LEFTARG = int, RIGHTARG = int);
CREATE OPERATOR gs.>=# (FUNCTION = gs.abs_ge, LEFTARG = int, RIGHTARG = int);
CREATE OPERATOR gs.># (FUNCTION = gs.abs_gt, LEFTARG = int, RIGHTARG = int);
CREATE OPERATOR CLASS gs.abs_ops FOR TYPE int USING btree AS
	OPERATOR 1 gs.<#, OPERATOR 2 gs.<=#, OPERATOR 3 gs.=#, OPERATOR 4 gs.>=#, OPERATOR 5 gs.>#, FUNCTION 1 gs.abs_cmp(int, int);

-- Few rows, wide ones and narrow ones.
CREATE TABLE gs.kb AS SELECT i AS id, hashint4(i) AS k, md5(i::text) COLLATE "C" AS t, repeat('x', 1000) AS pad FROM generate_series(1, 5000) i;
ANALYZE gs.kb;

-- The planner's total cost.
CREATE FUNCTION gs.cost(query text) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	RETURN plan #> '{0,Plan,Total Cost}';
END $$;

-- What it thinks that GpuSort costs over its input.

SELECT * FROM no_plan();

-- taken
SELECT ok(gs.forced_uses('SELECT * FROM gs.kinds ORDER BY t'), 'text under C');
SELECT ok(gs.forced_uses('SELECT * FROM gs.kinds ORDER BY -k'), 'an expression');
SELECT ok(gs.forced_uses('SELECT t, count(*) FROM gs.kinds GROUP BY t ORDER BY count(*)'), 'above an aggregate');
SELECT ok(gs.forced_uses('SELECT a.k FROM gs.kinds a JOIN gs.kinds b USING (k) ORDER BY a.t, b.t'), 'above a join');
SELECT ok(gs.forced_uses('SELECT t, sum(k) OVER (PARTITION BY e) AS s FROM gs.kinds ORDER BY s, t'), 'above a window');
SELECT ok(gs.forced_uses('SELECT k FROM gs.kinds UNION ALL SELECT k FROM gs.large ORDER BY 1'), 'above an append');
SELECT ok(gs.forced_uses('SELECT * FROM gs.kinds ORDER BY t LIMIT 900'), 'below a LIMIT');
SELECT ok(gs.forced_uses('SELECT * FROM gs.kinds ORDER BY t FOR UPDATE'), 'below LockRows');
SELECT ok(gs.forced_uses('SELECT * FROM gs.kinds ORDER BY t USING >'), 'USING the greater operator');

-- off, and not worth it
SET gpusort.enable = off;
SET gpusort.force = on;
SELECT ok(NOT gs.uses('SELECT * FROM gs.large ORDER BY k'), 'gpusort.enable = off wins over gpusort.force = on');
RESET gpusort.force;
RESET gpusort.enable;
SELECT ok(NOT gs.uses('SELECT * FROM gs.kinds ORDER BY t'), 'few rows stay with PostgreSQL');
SELECT ok(gs.uses('SELECT *, k + 1 AS l FROM gs.large ORDER BY l LIMIT 10'), 'the first rows by what is computed');
SELECT ok(NOT gs.uses('SELECT k FROM gs.kinds ORDER BY k'), 'an index in order stays');
SET gpusort.min_rows = 10000000;
SELECT ok(NOT gs.uses('SELECT * FROM gs.large ORDER BY t COLLATE "C"'), 'fewer rows than gpusort.min_rows stay with PostgreSQL');
RESET gpusort.min_rows;
SET gpusort.setup_cost = 1e9;
SELECT ok(NOT gs.uses('SELECT * FROM gs.large ORDER BY t COLLATE "C"'), 'a setup cost out of proportion keeps a sort with PostgreSQL');
RESET gpusort.setup_cost;
SET gpusort.row_cost = 1e6;
SELECT ok(NOT gs.uses('SELECT * FROM gs.large ORDER BY t COLLATE "C"'), 'a row cost out of proportion keeps a sort with PostgreSQL');
RESET gpusort.row_cost;
SET max_parallel_workers_per_gather = 0;
SET gpusort.min_rows = 1000;
SET gpusort.setup_cost = 0;
SET gpusort.row_cost = 0;
SELECT ok(gs.uses('SELECT * FROM gs.large ORDER BY t COLLATE "C"'), 'many rows at no cost go to GpuSort without force');
SELECT ok(gs.uses('SELECT * FROM gs.large ORDER BY k LIMIT 10'), 'so do the first rows: LIMIT is a matter of cost');
RESET max_parallel_workers_per_gather;
RESET gpusort.min_rows;
RESET gpusort.setup_cost;
RESET gpusort.row_cost;

-- by cost, with the settings as they are; a connection's first sort costs more, a GPU's more than the host's
SET gpusort.engine = host;
SELECT isnt(gs.node('SELECT k FROM gs.kinds ORDER BY t'), NULL, 'a sort, for which the staging pool is mapped');
SET max_parallel_workers_per_gather = 0;
SET work_mem = '64MB';
SELECT ok(NOT gs.uses('SELECT id, k FROM gs.kb ORDER BY id'), '5000 rows in order stay with PostgreSQL');
SELECT ok(gs.uses('SELECT id, k FROM gs.kb ORDER BY k'), '5000 narrow rows go to GpuSort');
SELECT ok(NOT gs.uses('SELECT * FROM gs.kb ORDER BY k'), '5000 wide rows do not: they fit work_mem');
SELECT ok(gs.uses('SELECT * FROM gs.kb ORDER BY t'), 'unless they are sorted by a string');
SET work_mem = '1MB';
SELECT ok(gs.uses('SELECT * FROM gs.kb ORDER BY k'), 'or PostgreSQL would sort them on disk');
RESET work_mem;
SELECT ok(NOT gs.uses('SELECT k, e FROM gs.kinds ORDER BY k + 1'), '1000 rows do not, whatever gpusort.min_rows') FROM (SELECT set_config('gpusort.min_rows', '0', false)) s;
RESET gpusort.min_rows;
RESET max_parallel_workers_per_gather;
RESET gpusort.engine;

-- not eligible, whatever the settings
SELECT ok(NOT gs.forced_uses('SELECT * FROM gs.kinds ORDER BY ' || expression), expression || ' is not eligible')
FROM (VALUES ('j'), ('a'), ('ARRAY[j]'), ('w'), ('a, t'), ('gs.abs_cmp(k, 5) USING OPERATOR(gs.<#)')) v (expression);
SELECT is(gs.compare_results('SELECT k - 500 FROM gs.kinds ORDER BY k - 500 USING OPERATOR(gs.<#), k'), 'same', 'an operator class of the user');
SELECT is(gs.compare_results('SELECT k - 500 FROM gs.kinds ORDER BY k - 500 USING OPERATOR(gs.>#), k'), 'same', 'the same, descending');
SELECT is(gs.compare_results('SELECT t FROM gs.kinds ORDER BY t USING ~<~'), 'same', 'text_pattern_ops');
SELECT is(gs.compare_results('SELECT t FROM gs.kinds ORDER BY t USING ~>~'), 'same', 'text_pattern_ops, descending');
SELECT is(gs.compare_results('SELECT j, a, e FROM gs.kinds ORDER BY (t || '' 3'')::oidvector DESC, ROW(k, a), e'), 'same', 'types without an encoding');
SELECT is(gs.compare_results('SELECT e, t, j FROM gs.kinds ORDER BY t, (t || '' 3'')::oidvector, j'), 'same', 'a type without an encoding in second place');
-- libc's collations but C and its like, of those that the machine has
SELECT is((SELECT string_agg(collname, ', ') FROM pg_collation
		   WHERE collname NOT IN ('C', 'POSIX', 'default', 'ucs_basic', 'C.utf8', 'C.UTF-8', 'pg_c_utf8')
				 AND collprovider = 'c'
				 AND collencoding IN (-1, (SELECT encoding FROM pg_database WHERE datname = current_database()))
				 AND NOT gs.forced_uses(format('SELECT * FROM gs.kinds ORDER BY t COLLATE %I.%I', collnamespace::regnamespace, collname))),
		  NULL, 'text under linguistic collations of the C library is eligible');
SELECT is((SELECT string_agg(collname, ', ') FROM pg_collation
		   WHERE collname IN ('en-x-icu', 'de-x-icu', 'und-x-icu')
				 AND gs.compare(format('SELECT k FROM gs.kinds ORDER BY t COLLATE %I, k', collname)) <> 'same'),
		  NULL, 'under ICU collations it is, in the order of PostgreSQL');

-- what the plan says
SET max_parallel_workers_per_gather = 0;
SELECT is(gs.forced_plan('SELECT * FROM gs.large ORDER BY k DESC, t COLLATE "C" NULLS FIRST'),
		  E'Custom Scan (GpuSort)\n  Sort Key: k DESC, t COLLATE "C" NULLS FIRST\n  ->  Seq Scan on large\n', 'EXPLAIN without ANALYZE');
SELECT is(gs.forced_plan('SELECT k FROM gs.large ORDER BY t LIMIT 200000 OFFSET 1'),
		  E'Limit\n  ->  Custom Scan (GpuSort)\n        Sort Key: t\n        ->  Seq Scan on large\n', 'EXPLAIN of a LIMIT above');

SELECT * FROM finish();
