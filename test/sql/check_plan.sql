\set ECHO none
-- The rules of finished plans (src/plan/check_plan.c): plans as they come keep them, PostgreSQL's own and ours; a plan that
-- is broken in one place is refused, for that reason.
SET client_min_messages = warning;
LOAD 'gpusort';
\pset format unaligned
\pset tuples_only on

CREATE FUNCTION gs.test_check_plan(statement text, defect text) RETURNS text
AS '$libdir/gpusort', 'gpusort_test_check_plan' LANGUAGE C VOLATILE STRICT;
CREATE TABLE gs.checked (k int, v int, w varchar(8), t text COLLATE "C");
INSERT INTO gs.checked SELECT i % 7, i, i, i FROM generate_series(1, 1000) i;
ANALYZE gs.checked;

CREATE TABLE gs.defects (defect text, refused text, query text);
INSERT INTO gs.defects VALUES
	('gap', 'has no aggregate of number 0', 'SELECT sum(v) FROM gs.checked'),
	('gap in states', 'has no transition state of number 0', 'SELECT sum(v) FROM gs.checked'),
	('equal calls apart', 'has equal aggregates of numbers 0 and 1', 'SELECT sum(v), sum(v) + 1 FROM gs.checked'),
	('calls together', 'has unequal aggregates of number 0', 'SELECT sum(v), max(w) FROM gs.checked'),
	('states together', 'has unlike transition states of number 0', 'SELECT sum(v), max(w) FROM gs.checked'),
	('another part', 'is of another part of its aggregates than one of them', 'SELECT sum(v) FROM gs.checked'),
	('another window', 'is of window 1, and calls a function of window 2', 'SELECT sum(v) OVER (ORDER BY k) FROM gs.checked'),
	('no column', 'names column 100 of the plan below, which has %', 'SELECT sum(v) FROM gs.checked'),
	('no side', 'names column % of relation %, which it does not have', 'SELECT sum(v) FROM gs.checked'),
	('type', 'has type point for column % of the plan below, which is integer', 'SELECT sum(v) FROM gs.checked'),
	('fewer columns', 'passes rows of 2 columns on, and has 1', 'SELECT k, v FROM gs.checked LIMIT 1'),
	('no sort column', 'sorts by column 100 of rows that have 2', 'SELECT k, v FROM gs.checked ORDER BY k'),
	('sort operator', 'sorts by column 1, of integer, with an operator for text', 'SELECT k, v FROM gs.checked ORDER BY k'),
	('no group column', 'groups by column 100 of rows that have %', 'SELECT k FROM gs.checked GROUP BY k'),
	('no initPlan', 'reads parameter %, which nothing above or beside it sets', 'SELECT (SELECT max(k) FROM gs.checked WHERE v < 9) + v FROM gs.checked'),
	('more parameters', 'has parameter 100 in extParam, on which it does not depend', 'SELECT v FROM gs.checked'),
	('fewer parameters', 'lacks parameter % in allParam', 'SELECT (SELECT max(k) FROM gs.checked WHERE v < c.v) FROM gs.checked c'),
	('shared number', 'has no number of its own', 'SELECT sum(v) FROM gs.checked'),
	('no subplan', 'has subplan 100, which is not there', 'SELECT (SELECT max(k) FROM gs.checked WHERE v < c.v) FROM gs.checked c'),
	('two Gathers', 'is below a Gather, and is one', 'SELECT k FROM gs.checked'),
	('nothing sent', 'does not send parameter %, which its workers read', 'SELECT k FROM gs.checked WHERE v > (SELECT max(v) FROM gs.checked WHERE v < 9)'),
	('aware of nobody', 'is parallel-aware, and in no Gather%', 'SELECT v FROM gs.checked'),
	('unsafe call', 'runs in workers, and pg_backend_pid() must not', 'SELECT k FROM gs.checked WHERE v + 1 > 9');

SELECT * FROM no_plan();

-- PostgreSQL's plans; those of workers, for the defects of these
SET gpusort.enable = off;
SELECT is(gs.test_check_plan(query, 'none'), 'none', query) FROM (SELECT query FROM gs.defects GROUP BY query ORDER BY query COLLATE "C") q;
SELECT throws_like(format('SELECT gs.test_check_plan(%L, %L)', query, defect), 'the finished plan is broken: plan node % ' || refused, defect)
FROM gs.defects WHERE defect NOT IN ('two Gathers', 'nothing sent', 'unsafe call');
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT throws_like(format('SELECT gs.test_check_plan(%L, %L)', query, defect), 'the finished plan is broken: plan node % ' || refused, defect)
FROM gs.defects WHERE defect IN ('two Gathers', 'nothing sent', 'unsafe call');

-- and ours
SET gpusort.enable = on;
SET gpusort.force = on;
SET gpusort.min_rows = 0;
SELECT is(gs.test_check_plan(query, 'none'), 'none', query) FROM (VALUES
	('SELECT k, v FROM gs.checked ORDER BY v'),
	('SELECT k, sum(v) OVER (PARTITION BY k ORDER BY v) FROM gs.checked'),
	('SELECT sum(v), avg(v), percent_rank(5) WITHIN GROUP (ORDER BY k) FROM gs.checked'),
	('SELECT k, w, sum(v) FROM gs.checked GROUP BY ROLLUP (k, w)'),
	('SELECT k, count(DISTINCT v) FROM gs.checked GROUP BY k'),
	('SELECT * FROM gs.checked a JOIN gs.checked b USING (v) ORDER BY a.t LIMIT 5')) v (query);
SELECT throws_like(format('SELECT gs.test_check_plan(%L, %L)', 'SELECT k, v FROM gs.checked ORDER BY v', defect),
	'the finished plan is broken: plan node %', defect || ', of a GpuSort')
FROM unnest(ARRAY['no column', 'more parameters', 'fewer parameters', 'shared number', 'two Gathers', 'aware of nobody']) defect;

-- What a GpuSort says of the node above
SELECT throws_like(format('SELECT gs.test_check_plan(%L, %L)', query, defect), 'the finished plan is broken: plan node % ' || refused, defect || ': ' || query)
FROM (VALUES
	('no use', 'is a window that the GpuSort below takes for another (0, not 2)', 'SELECT v, rank() OVER (ORDER BY v) FROM gs.checked'),
	('use of a window', 'is a window that the GpuSort below takes for another (2, not 3)', 'SELECT v, lag(v) OVER (ORDER BY v) FROM gs.checked'),
	('use of a window', 'is above a GpuSort for a window, and is none', 'SELECT k, v FROM gs.checked ORDER BY v LIMIT 5'),
	('use of numbers', 'is above a GpuSort for an Agg of all rows, and is none', 'SELECT k, v FROM gs.checked ORDER BY v LIMIT 5'),
	('use of numbers', 'reads rows by number, and has aggregate %', 'SELECT array_agg(v ORDER BY v) FROM gs.checked'),
	('the other way', 'reads rows by number, of which aggregate % wants others', 'SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY v) FROM gs.checked'),
	('blocks of no table', 'reads blocks by an index, and is above no table', 'SELECT k FROM generate_series(1, 10) k ORDER BY k')) v (defect, refused, query);

RESET gpusort.force;
SELECT * FROM finish();
DROP FUNCTION gs.test_check_plan;
DROP TABLE gs.checked, gs.defects;
