\set ECHO none
-- Windows that go on from one range of the sorted rows to the next: without PARTITION BY, and with partitions that are
-- larger than a process's share (src/facts/windows.c, src/exec/running.c, src/exec/window_ranges.c): which plans, and
-- their answers, which are PostgreSQL's.
SET client_min_messages = warning;
LOAD 'gpusort';
\pset format unaligned
\pset tuples_only on
SELECT * FROM no_plan();

CREATE SCHEMA win;
-- id is unique; k has peers, many of them NULL; flag has three values
CREATE TABLE win.many AS
SELECT i AS id, CASE WHEN i % 7 > 0 THEN i * 7919 % 1201 END AS k, i * 31 % 3 AS flag, i % 400 AS g, CASE WHEN i % 11 > 0 THEN (i * 31 % 700)::int2 END AS s,
	   i * 37 % 9001 - 4500 AS x, CASE WHEN i % 5 > 0 THEN (i * 37 % 9001)::int8 * 1000000007 END AS big, (i * 53 % 801 - 300)::numeric / 8 AS n,
	   (i * 97 % 2503) / 16.0::float8 AS f, 't' || i * 41 % 900 AS t, i % 3 > 0 AS b, '2026-01-01'::date + i * 13 % 500 AS d
FROM generate_series(1, 3000) i;
CREATE TABLE win.none (LIKE win.many);
CREATE TABLE win.one AS SELECT * FROM win.many WHERE id = 77;
CREATE TABLE win.peers AS SELECT id, 5 AS k, 1 AS flag, 1 AS g, s, x, big, n, f, t, b, d FROM win.many WHERE id <= 1500;
CREATE TABLE win.nulls AS SELECT id, NULL::int AS k, NULL::int AS flag, g, NULL::int2 AS s, NULL::int AS x, NULL::int8 AS big, NULL::numeric AS n, f, NULL::text AS t, NULL::bool AS b, NULL::date AS d FROM win.many WHERE id <= 1500;
ALTER TABLE win.many SET (parallel_workers = 4);
ALTER TABLE win.none SET (parallel_workers = 2);
ALTER TABLE win.one SET (parallel_workers = 2);
ALTER TABLE win.peers SET (parallel_workers = 1);
ALTER TABLE win.nulls SET (parallel_workers = 1);
ANALYZE win.many, win.none, win.one, win.peers, win.nulls;
CREATE FUNCTION win.restricted(int) RETURNS int LANGUAGE plpgsql STABLE PARALLEL RESTRICTED AS 'BEGIN RETURN $1 + 1; END';

SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 1;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SET gpusort.setup_cost = 0;
SET gpusort.row_cost = 0;

-- How the exchange's window goes on, and in how many passes it did; NULL: there is none.
CREATE FUNCTION win.how(query text) RETURNS text LANGUAGE sql AS
$$ SELECT string_agg(concat_ws(', ', node->>'Across Ranges', node->>'Passes'), '; ') FROM gs.nodes(query, 'GpuSortExchange') node WHERE node ? 'Across Ranges' $$;

CREATE TABLE win.query (ordinal serial, how text, query text);
INSERT INTO win.query (how, query) VALUES
	-- numbers
	('rows of those before, 1', 'SELECT id, row_number() OVER (ORDER BY id) FROM win.many'),
	('rows of those before, 1', 'SELECT id, k, rank() OVER (ORDER BY k) FROM win.many'),
	('totals of those before, 2', 'SELECT id, k, rank() OVER w, dense_rank() OVER w FROM win.many WINDOW w AS (ORDER BY k DESC NULLS LAST)'),
	('rows of those before, 1', 'SELECT id, k, percent_rank() OVER w, cume_dist() OVER w, rank() OVER w FROM win.many WINDOW w AS (ORDER BY k)'),
	('rows of those before, 1', 'SELECT id, ntile(7) OVER w, ntile(10000) OVER w, ntile(1) OVER w, cume_dist() OVER w FROM win.many WINDOW w AS (ORDER BY id DESC)'),
	('rows of those before, 1', 'SELECT id, k, count(*) OVER (ORDER BY k) FROM win.many'),
	('rows of those before, 1', 'SELECT id, count(*) OVER (ORDER BY k, id ROWS UNBOUNDED PRECEDING) FROM win.many'),
	-- aggregates up to the last peer
	('totals of those before, 2', 'SELECT id, sum(x) OVER (ORDER BY k) FROM win.many'),
	('totals of those before, 2', 'SELECT id, sum(x) OVER (ORDER BY k, id) FROM win.many'),
	('totals of those before, 2', 'SELECT id, sum(s) OVER w, sum(big) OVER w, sum(n) OVER w, avg(s) OVER w, avg(x) OVER w, avg(big) OVER w, avg(n) OVER w FROM win.many WINDOW w AS (ORDER BY k)'),
	('totals of those before, 2', 'SELECT id, min(s) OVER w, max(x) OVER w, min(big) OVER w, max(d) OVER w, bool_and(b) OVER w, bool_or(NOT b) OVER w, every(x > -4500) OVER w FROM win.many WINDOW w AS (ORDER BY d, id DESC)'),
	('totals of those before, 2', 'SELECT id, count(k) OVER w, count(*) FILTER (WHERE b) OVER w, sum(x) FILTER (WHERE x > 0) OVER w, avg(n) FILTER (WHERE x < -4499) OVER w, count(*) OVER w, row_number() OVER w, cume_dist() OVER w FROM win.many WINDOW w AS (ORDER BY t, id)'),
	('totals of those before, 2', 'SELECT id, sum(x) OVER (ORDER BY k GROUPS UNBOUNDED PRECEDING) FROM win.many'),
	('totals of those before, 2', 'SELECT id, avg(x * 2 + 1) OVER (ORDER BY n, id) FROM win.many WHERE x <> 5'),
	-- up to the row
	('totals of those before, 2', 'SELECT id, sum(x) OVER w, avg(big) OVER w, min(n::int) OVER w, count(s) OVER w, row_number() OVER w FROM win.many WINDOW w AS (ORDER BY k, id ROWS UNBOUNDED PRECEDING)'),
	('totals of those before, 2', 'SELECT id, sum(x) OVER w, cume_dist() OVER w, dense_rank() OVER w FROM win.many WINDOW w AS (ORDER BY k NULLS FIRST, id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)'),
	-- values
	('totals of those before, 2', 'SELECT id, first_value(t) OVER w, first_value(n) OVER w, last_value(id) OVER w, last_value(s) OVER w FROM win.many WINDOW w AS (ORDER BY k, id)'),
	('rows of those before, 1', 'SELECT id, last_value(t) OVER (ORDER BY k, id ROWS UNBOUNDED PRECEDING) FROM win.many'),
	-- partitions
	('totals of those before, 2', 'SELECT flag, id, sum(x) OVER (PARTITION BY flag ORDER BY k, id) FROM win.many'),
	('totals of those before, 2', 'SELECT flag, id, row_number() OVER w, rank() OVER w, dense_rank() OVER w, count(*) OVER w FROM win.many WINDOW w AS (PARTITION BY flag ORDER BY k, id)'),
	('totals of those before, 2', 'SELECT flag, id, first_value(t) OVER w, avg(n) OVER w, min(s) OVER w, sum(x) FILTER (WHERE b) OVER w FROM win.many WINDOW w AS (PARTITION BY flag ORDER BY k, id)'),
	('totals of those before, 2', 'SELECT flag, id, rank() OVER w, sum(x) OVER w, avg(big) OVER w FROM win.many WINDOW w AS (PARTITION BY flag ORDER BY k)'),
	('totals of those before, 2', 'SELECT flag, id, sum(x) OVER (PARTITION BY flag = 1 ORDER BY id ROWS UNBOUNDED PRECEDING) FROM win.many'),
	('totals of those before, 1', 'SELECT g, id, sum(x) OVER (PARTITION BY g ORDER BY id) FROM win.many'),
	-- the first rows of partitions, which stay together
	(NULL, 'SELECT * FROM (SELECT flag, id, row_number() OVER (PARTITION BY flag ORDER BY k, id) AS r FROM win.many) q WHERE r <= 600'),
	(NULL, 'SELECT * FROM (SELECT flag, id, row_number() OVER (PARTITION BY flag ORDER BY k, id) AS r FROM win.many) q WHERE r <= (SELECT 600)'),
	(NULL, 'SELECT * FROM (SELECT flag, id, rank() OVER w AS r, row_number() OVER w FROM win.many WINDOW w AS (PARTITION BY flag ORDER BY k)) q WHERE r < (SELECT 300)'),
	(NULL, 'SELECT * FROM (SELECT flag, id, dense_rank() OVER (PARTITION BY flag ORDER BY s) AS r FROM win.many) q WHERE r <= 250'),
	(NULL, 'SELECT * FROM (SELECT g, id, row_number() OVER (PARTITION BY g ORDER BY id DESC) AS r FROM win.many) q WHERE r = (SELECT 2)'),
	(NULL, 'SELECT * FROM (SELECT flag, id, row_number() OVER (PARTITION BY flag ORDER BY k, id) AS r FROM win.many) q WHERE r <= (SELECT 0)'),
	(NULL, 'SELECT * FROM (SELECT flag, id, rank() OVER (PARTITION BY flag ORDER BY k, id) AS r FROM win.many) q WHERE r <= (SELECT NULL::int)'),
	(NULL, 'SELECT flag, max(r), count(*) FROM (SELECT flag, row_number() OVER (PARTITION BY flag ORDER BY k, id) AS r FROM win.many) q WHERE r <= (SELECT 700) GROUP BY flag'),
	-- rows near
	('1 rows before, 0 after, 1', 'SELECT id, lag(x) OVER (ORDER BY id) FROM win.many'),
	('7 rows before, 3 after, 1', 'SELECT id, lag(t, 7) OVER w, lead(n, 3, -1) OVER w, lag(x, -2) OVER w, lag(x, 0) OVER w, lag(d, NULL) OVER w FROM win.many WINDOW w AS (ORDER BY id DESC)'),
	('100 rows before, 0 after, 1', 'SELECT id, avg(x) OVER (ORDER BY id ROWS 100 PRECEDING) FROM win.many'),
	('2 rows before, 5 after, 1', 'SELECT id, sum(big) OVER w, avg(n) OVER w, count(s) OVER w, min(x) OVER w, max(d) OVER w, first_value(t) OVER w, last_value(f) OVER w, nth_value(x, 3) OVER w FROM win.many WINDOW w AS (ORDER BY id ROWS BETWEEN 2 PRECEDING AND 5 FOLLOWING)'),
	('0 rows before, 20 after, 1', 'SELECT id, sum(x) OVER (ORDER BY id ROWS BETWEEN 10 FOLLOWING AND 20 FOLLOWING) FROM win.many'),
	('20 rows before, 0 after, 1', 'SELECT id, sum(x) OVER (ORDER BY id ROWS BETWEEN 20 PRECEDING AND 10 PRECEDING) FROM win.many'),
	('1 rows before, 1 after, 1', 'SELECT flag, id, lag(x) OVER w, lead(x, 1, id) OVER w FROM win.many WINDOW w AS (PARTITION BY flag ORDER BY id)'),
	('3 rows before, 0 after, 1', 'SELECT flag, id, sum(n) OVER (PARTITION BY flag ORDER BY id ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) FROM win.many'),
	-- above it, by ranges, too
	('totals of those before, 2', 'SELECT max(r), min(r), sum(r), count(*) FROM (SELECT sum(x) OVER (ORDER BY k, id) AS r FROM win.many) q'),
	('rows of those before, 1', 'SELECT max(r), sum(r) FROM (SELECT row_number() OVER (ORDER BY k, id) AS r FROM win.many) q'),
	('totals of those before, 2', 'SELECT k, count(*), max(r) FROM (SELECT k, sum(x) OVER (ORDER BY k, id) AS r FROM win.many) q GROUP BY k'),
	('totals of those before, 2', 'SELECT id, r FROM (SELECT id, sum(x) OVER (ORDER BY k, id) AS r FROM win.many) q WHERE r % 2 = 0 AND r > (SELECT min(x) FROM win.one)'),
	('totals of those before, 2', 'SELECT id, lag(r) OVER (ORDER BY k, id) FROM (SELECT id, k, sum(x) OVER (ORDER BY k, id) AS r FROM win.many) q'),
	-- an argument that is computed, of a value from elsewhere
	('totals of those before, 2', 'SELECT id, sum(x + (SELECT max(x) FROM win.one)) OVER (ORDER BY id) FROM win.many');

-- These do not go on: frames and functions that need more, other windows of the same rows, what workers may not do.
CREATE TABLE win.left (ordinal serial, query text);
INSERT INTO win.left (query) VALUES
	('SELECT id, sum(f) OVER (ORDER BY id) FROM win.many'),
	('SELECT id, sum(f) OVER (ORDER BY id ROWS 3 PRECEDING) FROM win.many'),
	('SELECT id, sum(x) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM win.many'),
	('SELECT id, sum(x) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING) FROM win.many'),
	('SELECT id, sum(x) OVER (ORDER BY k RANGE 10 PRECEDING) FROM win.many'),
	('SELECT id, sum(x) OVER (ORDER BY k GROUPS 1 PRECEDING) FROM win.many'),
	('SELECT id, sum(x) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING EXCLUDE CURRENT ROW) FROM win.many'),
	('SELECT id, sum(x) OVER (ORDER BY id ROWS 2 PRECEDING EXCLUDE CURRENT ROW) FROM win.many'),
	('SELECT id, sum(x) OVER w, lag(x) OVER w FROM win.many WINDOW w AS (ORDER BY id)'),
	('SELECT id, lag(x, 2500) OVER (ORDER BY id) FROM win.many'),
	('SELECT id, lag(x, flag) OVER (ORDER BY id) FROM win.many'),
	('SELECT id, nth_value(x, 3) OVER (ORDER BY id) FROM win.many'),
	('SELECT id, array_agg(x) OVER (ORDER BY id) FROM win.many WHERE id < 50'),
	('SELECT id, sum(win.restricted(x)) OVER (ORDER BY id) FROM win.many'),
	('SELECT id, min(t) OVER (ORDER BY id) FROM win.many'),
	('SELECT id, ntile(flag + 1) OVER (ORDER BY id) FROM win.many'),
	('SELECT id, percent_rank() OVER (PARTITION BY flag = 0 ORDER BY id) FROM win.many'),
	('SELECT id, sum(x) OVER (PARTITION BY flag) FROM win.many');

-- Two processes share three partitions as they are.
SET max_parallel_workers_per_gather = 4;
SELECT is(win.how(query), how, query) FROM win.query ORDER BY ordinal;
SELECT is(win.how(query), NULL, query) FROM win.left WHERE query !~ 'PARTITION' ORDER BY ordinal;
SET max_parallel_workers_per_gather = 2;

-- The answers: forced, in parallel, and in one process; with all kinds of rows.
CREATE VIEW win.all AS
SELECT ordinal, replace(query, 'win.many', tab) AS query, tab
FROM (SELECT ordinal, query FROM win.query UNION ALL SELECT 1000 + ordinal, query FROM win.left) q,
	 (VALUES ('win.many'), ('win.none'), ('win.one'), ('win.peers'), ('win.nulls')) t (tab);
-- in five processes, in three, and in one, which PostgreSQL's answers are computed once for
CREATE TABLE win.answer AS SELECT *, gs.native_sorted_rows(query) AS native FROM win.all;
SELECT is(gs.difference(native, gs.forced_sorted_rows(query)), 'same', query) FROM win.answer ORDER BY ordinal, query COLLATE "C";
SET max_parallel_workers_per_gather = 4;
SELECT is(gs.difference(native, gs.forced_sorted_rows(query)), 'same', 'in five: ' || query) FROM win.answer WHERE tab = 'win.many' ORDER BY ordinal;
SET max_parallel_workers_per_gather = 2;
SELECT is(gs.difference(native, gs.alone_sorted_rows(query)), 'same', 'alone: ' || query) FROM win.answer ORDER BY ordinal, query COLLATE "C";
SELECT is(gs.difference(native, gs.refused_sorted_rows(query)), 'same', 'refused: ' || query) FROM win.answer WHERE tab = 'win.many' ORDER BY ordinal;

-- rows verified, and keys that do not hold their values whole, which tie: ranges are not read with rows near them
SELECT coalesce((fallback_reasons->>'verification')::int, 0) AS refused_before FROM gpusort_stats \gset
SET gpusort.verify_rows = on;
SELECT is(gs.difference(native, gs.forced_sorted_rows(query)), 'same', 'verified: ' || query) FROM win.answer WHERE tab = 'win.many' ORDER BY ordinal;
RESET gpusort.verify_rows;
SELECT is(coalesce((fallback_reasons->>'verification')::int, 0), :refused_before, 'no rows were refused') FROM gpusort_stats;
CREATE TABLE win.long AS SELECT id, x, repeat('x', 200) || id % 50 || repeat('y', 100) || id AS t FROM win.many;
ALTER TABLE win.long SET (parallel_workers = 2);
ANALYZE win.long;
SELECT is(gs.difference(gs.native_sorted_rows(query), gs.forced_sorted_rows(query)), 'same', query) FROM (VALUES
	('SELECT id, lag(x, 2) OVER (ORDER BY t COLLATE "C") FROM win.long'), ('SELECT id, sum(x) OVER (ORDER BY t COLLATE "C") FROM win.long'),
	('SELECT id, rank() OVER (ORDER BY left(t, 220) COLLATE "C") FROM win.long')) v (query);

-- peers that do not fit work_mem: they are in a file
SET work_mem = '64kB';
SELECT is(gs.difference(gs.native_sorted_rows(query), gs.forced_sorted_rows(query)), 'same', 'in a file: ' || query) FROM (VALUES
	('SELECT id, t, sum(x) OVER (ORDER BY k IS NULL) FROM win.many'), ('SELECT id, t, cume_dist() OVER w, sum(x) OVER w FROM win.many WINDOW w AS (PARTITION BY b ORDER BY flag)'),
	('SELECT id, t, sum(x) OVER w, count(*) OVER w, rank() OVER w FROM win.peers WINDOW w AS (ORDER BY k)')) v (query);
RESET work_mem;

-- read again, in part, or elsewhere
SELECT is(gs.difference(gs.native_sorted_rows(query), gs.forced_sorted_rows(query)), 'same', query) FROM (VALUES
	('SELECT y, s.* FROM generate_series(0, 2) y, LATERAL (SELECT max(r), count(*) FROM (SELECT sum(x) OVER (ORDER BY k, id) AS r FROM win.many WHERE flag <> y) q) s'),
	('SELECT y, (SELECT max(r) FROM (SELECT row_number() OVER (ORDER BY k, id) AS r FROM win.many WHERE flag = y) q) FROM generate_series(0, 3) y'),
	('SELECT * FROM (SELECT id, sum(x) OVER (ORDER BY k, id) FROM win.many LIMIT 10) q'),
	('SELECT y, s.* FROM generate_series(0, 3) y, LATERAL (SELECT count(*), max(id) FROM (SELECT id, row_number() OVER (PARTITION BY flag ORDER BY k, id) AS r FROM win.many) q WHERE r <= y * 100) s'),
	('SELECT y, s.* FROM generate_series(0, 3) y, LATERAL (SELECT max(r), count(*) FROM (SELECT rank() OVER (PARTITION BY flag ORDER BY k) AS r FROM win.many WHERE flag <> y) q WHERE r <= (SELECT 300)) s'),
	-- not computed for rows behind those
	('SELECT * FROM (SELECT flag, id, 300 / (k < 500)::int AS x, dense_rank() OVER (PARTITION BY flag ORDER BY k) AS r FROM win.many WHERE k IS NOT NULL) q WHERE r <= 2'),
	('SELECT * FROM (SELECT id, row_number() OVER w AS r, sum(1 / (id - 2000)) OVER w AS s FROM win.many WINDOW w AS (PARTITION BY flag ORDER BY id)) q WHERE r <= 10'),
	('SELECT * FROM (SELECT id, sum(x) OVER (ORDER BY k, id) FROM win.many OFFSET 2990) q'),
	('SELECT * FROM (SELECT id, lag(x) OVER (ORDER BY id) FROM win.many OFFSET 1500 LIMIT 10) q'),
	('WITH c AS MATERIALIZED (SELECT id, sum(x) OVER (ORDER BY k, id) AS r FROM win.many) SELECT a.id, a.r, b.r FROM c a JOIN c b ON a.id = b.id + 1'),
	('SELECT a.id, a.r, b.r FROM (SELECT id, sum(x) OVER (ORDER BY id) AS r FROM win.many) a JOIN (SELECT id, lag(x) OVER (ORDER BY id) AS r FROM win.many) b USING (id)'),
	('SELECT id, sum(x) OVER (ORDER BY id), sum(x) OVER (ORDER BY k, id), lag(x) OVER (ORDER BY id ROWS 3 PRECEDING) FROM win.many'),
	('SELECT id, sum(x) OVER (ORDER BY k, id), sum(x) OVER (ORDER BY k, id ROWS 3 PRECEDING), row_number() OVER (ORDER BY k, id ROWS UNBOUNDED PRECEDING) FROM win.many')) v (query);
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT sum(x) OVER (ORDER BY id) FROM win.many;
CREATE FUNCTION win.fetch(how text) RETURNS int8 LANGUAGE plpgsql AS $$ DECLARE c refcursor := 'c'; m int8; BEGIN EXECUTE format('FETCH %s FROM c', how) INTO m; RETURN m; END $$;
SELECT is(concat_ws(' ', win.fetch('NEXT'), win.fetch('NEXT'), win.fetch('PRIOR')), '-4463 -8889 -4463', 'a cursor that can scroll');
ROLLBACK;

-- errors: of an argument in one range, of a sum that does not fit where it is used, of frames that there are not
SET gpusort.force = on;
SET gpusort.min_rows = 0;
SELECT throws_ok('SELECT count(*) FROM (SELECT sum(1 / (id - 2000)) OVER (ORDER BY id) AS r FROM win.many OFFSET 0) q WHERE r > 0', '22012', 'division by zero', 'an error in an argument');
SELECT throws_ok('SELECT count(*) FROM (SELECT lag(1 / (id - 2000)) OVER (ORDER BY id) AS r FROM win.many OFFSET 0) q WHERE r > 0', '22012', 'division by zero', 'of rows near');
SELECT throws_ok('SELECT count(*) FROM (SELECT (sum(big * 1000000) OVER (ORDER BY id))::int8 AS r FROM win.many OFFSET 0) q WHERE r > 0', '22003', 'bigint out of range', 'a sum that does not fit');
SELECT throws_ok('SELECT count(*) OVER (ORDER BY id ROWS BETWEEN -1 PRECEDING AND CURRENT ROW) FROM win.none', '22013', NULL, 'no such frame');
SELECT throws_ok('SELECT lag(x) OVER (ORDER BY id ROWS BETWEEN -1 PRECEDING AND CURRENT ROW) FROM win.none', '22013', NULL, 'for rows near');
SELECT throws_ok('SELECT ntile(0) OVER (ORDER BY id) FROM win.many', '22014', NULL, 'no tiles');
SELECT throws_ok('SELECT nth_value(x, 0) OVER (ORDER BY id ROWS 3 PRECEDING) FROM win.many', '22016', NULL, 'no first value');
RESET gpusort.force;
RESET gpusort.min_rows;

-- by the model alone
RESET gpusort.setup_cost;
RESET gpusort.row_cost;
SET parallel_setup_cost = 1000;
SET parallel_tuple_cost = 0.1;
CREATE TABLE win.large AS SELECT i AS id, i::int8 * 7919 % 100003 AS k, i % 1000 AS x FROM generate_series(1, 300000) i;
ANALYZE win.large;
SELECT alike(gs.plan(query), '%GpuSortExchange%', query) FROM (VALUES
	('SELECT max(r) FROM (SELECT sum(x) OVER (ORDER BY k, id) AS r FROM win.large) q'),
	('SELECT max(r) FROM (SELECT lag(x) OVER (ORDER BY k, id) AS r FROM win.large) q'),
	-- read once, so that first rows are not waited for
	('SELECT r FROM (SELECT sum(x) OVER (ORDER BY k, id ROWS 3 PRECEDING) AS r FROM win.large) q WHERE r % 2 = 0 LIMIT 10'),
	-- a range key of an initPlan, which stands above
	('SELECT max(r) FROM (SELECT sum(x) OVER (PARTITION BY x % (SELECT 300) ORDER BY k, id) AS r FROM win.large) q'),
	('SELECT max(r) FROM (SELECT row_number() OVER (ORDER BY k, id) AS r FROM win.large) q')) v (query);
SELECT unalike(gs.plan(query), '%GpuSortExchange%', query) FROM (VALUES
	('SELECT sum(x) OVER (ORDER BY k, id) AS r FROM win.large LIMIT 10'),
	('SELECT r FROM (SELECT sum(x) OVER (ORDER BY k, id) AS r FROM win.large) q WHERE r % 2 = 0 LIMIT 10'),
	('SELECT max(r) FROM (SELECT sum(x) OVER (ORDER BY k, id) AS r FROM win.large WHERE id < 1000) q')) v (query);
SELECT is(gs.sorted_rows(query), gs.native_sorted_rows(query), query) FROM (VALUES
	('SELECT max(r), sum(r), count(*) FROM (SELECT sum(x) OVER (ORDER BY k, id) AS r FROM win.large) q'),
	('SELECT md5(string_agg(r::text, '','')) FROM (SELECT lag(x, 3) OVER (ORDER BY k, id) AS r FROM win.large) q')) v (query);
-- all columns of a table come in the table's order, in which rows are taken as they are stored, though PostgreSQL puts
-- those first that the window sorts by; a window looks for its columns by what they are
CREATE FUNCTION win.scanned(query text) RETURNS text LANGUAGE plpgsql SET gpusort.force = on SET gpusort.min_rows = 0 AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (VERBOSE, FORMAT JSON) ' || query INTO plan;
	RETURN (SELECT string_agg(regexp_replace(name, '^\w+\.', ''), ', ')
			FROM jsonb_path_query(plan::jsonb, 'strict $.** ? (@."Node Type" == "Seq Scan").Output') names, jsonb_array_elements_text(names) name);
END $$;
CREATE TABLE win.dropped AS SELECT id, 'gone' AS gone, k, x FROM win.large WHERE id <= 5000;
ALTER TABLE win.dropped DROP gone;
ALTER TABLE win.dropped ADD late text DEFAULT 'late';
CREATE TABLE win.columns AS SELECT * FROM (VALUES
	('id, k, x', 'SELECT *, sum(x) OVER (PARTITION BY x ORDER BY k, id) FROM win.large WHERE id <= 5000'),
	('id, k, x', 'SELECT x, k, id, row_number() OVER (PARTITION BY x ORDER BY id), count(*) OVER (PARTITION BY x) FROM win.large WHERE id <= 5000'),
	('id, k, x', 'SELECT * FROM (SELECT *, rank() OVER (PARTITION BY x ORDER BY k DESC) AS place FROM win.large WHERE id <= 5000) q WHERE place = 1'),
	('k, id, x', 'SELECT id, k, x, lag(id) OVER (ORDER BY k) FROM win.dropped'),
	('id, x, k, late', 'SELECT *, lag(late) OVER (PARTITION BY x ORDER BY id) FROM win.dropped'),
	('id, x', 'SELECT id, x, sum(x) OVER (PARTITION BY x ORDER BY id) FROM win.large WHERE id <= 5000'),
	('id, x, k, tableoid', 'SELECT *, tableoid::regclass, sum(x) OVER (PARTITION BY x ORDER BY id) FROM win.large WHERE id <= 5000')) v (columns, query);
SELECT is(win.scanned(query), columns, query) FROM win.columns;
SELECT is(gs.forced_sorted_rows(query), gs.native_sorted_rows(query), query) FROM win.columns;
-- a condition without a column: PostgreSQL puts a Result between the sort and the window
SELECT is(gs.forced_sorted_rows(query), gs.native_sorted_rows(query), query) FROM (VALUES
	('SELECT avg(x) OVER (ORDER BY k, id ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING) FROM win.large WHERE (SELECT max(k) FROM win.large) > 0 AND id < 5000'),
	('SELECT count(*) OVER (PARTITION BY k ORDER BY id) FROM win.large WHERE EXISTS (SELECT 1 FROM win.large WHERE id < 0)')) v (query);
-- a volatile function in an aggregate, which is computed below the window
SELECT is(gs.forced_sorted_rows(query), gs.native_sorted_rows(query), query) FROM (VALUES
	('SELECT x % 100 AS g, avg(count(*) FILTER (WHERE clock_timestamp() > ''2000-01-01'')) OVER (ORDER BY sum(id)) FROM win.large WHERE id < 20000 GROUP BY 1')) v (query);
SELECT * FROM finish();
DROP SCHEMA win CASCADE;
