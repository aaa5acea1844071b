\set ECHO none
-- Grouping sets of groups that processes make (src/plan/offer/partial_sets.c): which plans, and their
-- answers, which are PostgreSQL's.
SET client_min_messages = warning;
LOAD 'gpusort';
\pset format unaligned
\pset tuples_only on
SELECT * FROM no_plan();

CREATE SCHEMA sets;
-- floats whose sums are exact, in whatever order
CREATE TABLE sets.many AS
SELECT i AS id, i % 7 AS a, CASE WHEN i % 11 <> 3 THEN 'b' || i % 3 END AS b, (i % 8)::int8 AS c, i * 7919 % 6000 AS p, (i * 53 % 801)::numeric / 8 AS n,
	   CASE WHEN i % 7 > 0 THEN (i * 97 % 2503) / 16.0::float8 END AS f, CASE WHEN i % 5 > 0 THEN i * 31 % 701 END AS k, (i * 37 % 9001)::int8 AS big,
	   make_interval(secs => i * 67 % 3001) AS v, i % 2 = 0 AS o, '2026-01-01'::date + i % 500 AS d, point(i % 7, 0) AS unhashed, 'same' AS same
FROM generate_series(1, 30000) i;
CREATE TABLE sets.none (LIKE sets.many);
CREATE TABLE sets.one AS SELECT * FROM sets.many WHERE id = 77;
CREATE TABLE sets.nulls AS SELECT id, NULL::int AS a, NULL::text AS b, NULL::int8 AS c, p, NULL::numeric AS n, NULL::float8 AS f, NULL::int AS k, NULL::int8 AS big,
	   NULL::interval AS v, NULL::bool AS o, NULL::date AS d, unhashed, same FROM sets.many WHERE id <= 3000;
CREATE TABLE sets.keyed (id int PRIMARY KEY, a int, t text);
INSERT INTO sets.keyed SELECT i, i % 7, 't' || i FROM generate_series(1, 3000) i;
ALTER TABLE sets.many SET (parallel_workers = 2);
ALTER TABLE sets.nulls SET (parallel_workers = 1);
ALTER TABLE sets.keyed SET (parallel_workers = 2);
ANALYZE sets.many, sets.none, sets.one, sets.nulls, sets.keyed;
CREATE FUNCTION sets.restricted(int) RETURNS int LANGUAGE plpgsql STABLE PARALLEL RESTRICTED AS 'BEGIN RETURN $1 + 1; END';
CREATE AGGREGATE sets.not_combined(int) (SFUNC = int4pl, STYPE = int, PARALLEL = SAFE);

SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0.1;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SET gpusort.setup_cost = 0;
SET gpusort.row_cost = 0;

CREATE TABLE sets.query (ordinal serial, shape text, query text);
INSERT INTO sets.query (shape, query) VALUES
	-- all sets of the groups of one
	('Finalize Agg(Gather(Partial Agg(Seq Scan)))', 'SELECT a, b, c, count(*), sum(k) FROM sets.many GROUP BY CUBE (a, b, c)'),
	('Finalize Agg(Gather(Partial Agg(Seq Scan)))', 'SELECT c, a, b, grouping(a, b, c) AS g, grouping(b) AS gb, coalesce(b, ''-'') || c AS x, avg(n), avg(k), sum(big), count(f) FROM sets.many GROUP BY CUBE (a, b, c)'),
	('Finalize Agg(Gather(Partial Agg(Seq Scan)))', 'SELECT a, b, min(v), max(d), sum(n) FILTER (WHERE o), stddev(n), bool_and(o), count(*) FILTER (WHERE f IS NULL), sum(f), avg(f) FROM sets.many GROUP BY ROLLUP (a, b)'),
	('Finalize Agg(Gather(Partial Agg(Seq Scan)))', 'SELECT a, b, avg(k), sum(k), avg(k) + sum(n) AS x FROM sets.many GROUP BY GROUPING SETS ((a, b), (b), (b), (), ()) HAVING count(*) > 3 OR max(n) > 1 OR grouping(a) = 1'),
	('Finalize Agg(Gather(Partial Agg(Seq Scan)))', 'SELECT a, b FROM sets.many GROUP BY CUBE (a, b)'),
	('GpuSortExchange(Gather(GpuSortOutput(Agg(GpuSort(Seq Scan)))))', 'SELECT a, b, 1 + grouping(a) AS g FROM sets.many GROUP BY GROUPING SETS ((a), (a, b)) HAVING b > ''b0'' OR b IS NULL'),
	('Finalize Agg(Gather(Partial Agg(Seq Scan)))', 'SELECT a % 3 AS m, upper(b) AS u, sum(k + 1) FROM sets.many GROUP BY CUBE (a % 3, upper(b))'),
	('Finalize Agg(Gather(Partial Agg(Seq Scan)))', 'SELECT a, b, sets.restricted(count(*)::int) AS r FROM sets.many GROUP BY CUBE (a, b)'),
	('Unique(GpuSort(Finalize Agg(Gather(Partial Agg(Seq Scan)))))', 'SELECT DISTINCT a, sum(big) FROM sets.many WHERE p > 3 GROUP BY DISTINCT ROLLUP (a, c), CUBE (a)'),
	('Finalize Agg(Gather(Partial Agg(Seq Scan)))', 'SELECT a, sum(k) FROM sets.many GROUP BY GROUPING SETS ((a), ())'),
	-- the finest apart
	('Append(GpuSortExchange(Gather(GpuSortOutput(Agg(GpuSort(Seq Scan))))), Finalize Agg(Gather(Partial Agg(Seq Scan))))', 'SELECT a, b, p, id, count(*), sum(k) FROM sets.many GROUP BY ROLLUP (a, b, (p, id))'),
	('Append(GpuSortExchange(Gather(GpuSortOutput(Agg(GpuSort(Seq Scan))))), Finalize Agg(Gather(Partial Agg(Seq Scan))))', 'SELECT b, a, id, grouping(b, a, id) AS g, grouping(id) + a AS ga, coalesce(id, a, -1) AS x, avg(n), sum(f) FILTER (WHERE o) FROM sets.many GROUP BY ROLLUP (a, b, id) HAVING grouping(id) = 1 OR (sum(k) > 100 AND id % 100 = 0)'),
	('Append(GpuSortExchange(Gather(GpuSortOutput(Agg(GpuSort(Seq Scan))))), Finalize Agg(Gather(Partial Agg(Seq Scan))))', 'SELECT a, c, id % 29000 AS m, count(*) FROM sets.many GROUP BY GROUPING SETS ((a, c, id % 29000), (a), (a), ())'),
	-- several apart
	('Append(GpuSortExchange(Gather(GpuSortOutput(Agg(GpuSort(Seq Scan))))), GpuSortExchange(Gather(GpuSortOutput(Agg(GpuSort(Seq Scan))))), GpuSortExchange(Gather(GpuSortOutput(Agg(GpuSort(Seq Scan))))), Finalize Agg(Gather(Partial Agg(Seq Scan))))', 'SELECT id, p, count(*), sum(k) FROM sets.many GROUP BY CUBE (id, p)'),
	('Append(GpuSortExchange(Gather(GpuSortOutput(Agg(GpuSort(Seq Scan))))), GpuSortExchange(Gather(GpuSortOutput(Agg(GpuSort(Seq Scan))))))', 'SELECT id, p, avg(n), count(f) FILTER (WHERE o) FROM sets.many GROUP BY GROUPING SETS ((id), (p))'),
	('Append(GpuSortExchange(Gather(GpuSortOutput(Agg(GpuSort(Seq Scan))))), GpuSortExchange(Gather(GpuSortOutput(Agg(GpuSort(Seq Scan))))), Finalize Agg(Gather(Partial Agg(Seq Scan))))', 'SELECT id, id % 29000 AS m, grouping(id % 29000, id) AS g, coalesce(id % 29000, id, -1) + 1 AS x, max(d) FROM sets.many GROUP BY GROUPING SETS ((id), (id % 29000), ()) HAVING grouping(id) = 1 OR id > 500'),
	('Append(GpuSortExchange(Gather(GpuSortOutput(Agg(GpuSort(Seq Scan))))), GpuSortExchange(Gather(GpuSortOutput(Agg(GpuSort(Seq Scan))))), GpuSortExchange(Gather(GpuSortOutput(Agg(GpuSort(Seq Scan))))), Finalize Agg(Gather(Partial Agg(Seq Scan))))', 'SELECT p, a, id, grouping(p, id, a) AS g, sum(big), bool_or(o) FROM sets.many GROUP BY GROUPING SETS ((id, p), (id, a), (id), (a), (a, c), ()) HAVING count(*) < 1000 OR grouping(id) = 1'),
	('Append(GpuSortExchange(Gather(GpuSortOutput(Agg(GpuSort(Seq Scan))))), GpuSortExchange(Gather(GpuSortOutput(Agg(GpuSort(Seq Scan))))), Agg(Seq Scan))', 'SELECT id, p, grouping(id) AS g, count(DISTINCT k), string_agg(b, '','' ORDER BY big, id), mode() WITHIN GROUP (ORDER BY k), sets.not_combined(k) FROM sets.many GROUP BY GROUPING SETS ((id), (p), ())'),
	('Append(GpuSortExchange(Gather(GpuSortOutput(Agg(GpuSort(Seq Scan))))), GpuSortExchange(Gather(GpuSortOutput(Agg(GpuSort(Seq Scan))))), GpuSortExchange(Gather(GpuSortOutput(Agg(GpuSort(Seq Scan))))), Agg(Seq Scan))', 'SELECT id, same, grouping(same, id) AS g, count(DISTINCT k) FROM sets.many GROUP BY CUBE (id, same)'),
	('GpuSortExchange(Gather(GpuSortOutput(Agg(GpuSort(Seq Scan)))))', 'SELECT id, sum(k) FROM sets.many GROUP BY GROUPING SETS ((id), (id))');

-- Those of which an aggregate, or a column, does not allow it, or no set has all columns, or the input is not the same twice
CREATE TABLE sets.left (ordinal serial, query text);
INSERT INTO sets.left (query) VALUES
	('SELECT a, b, sets.not_combined(k) FROM sets.many GROUP BY CUBE (a, b)'),
	('SELECT a, b, count(DISTINCT k) FROM sets.many GROUP BY CUBE (a, b)'),
	('SELECT a, b, string_agg(b, '','' ORDER BY id) FROM sets.many GROUP BY CUBE (a, b)'),
	('SELECT a, b, percentile_disc(0.5) WITHIN GROUP (ORDER BY k) FROM sets.many GROUP BY CUBE (a, b)'),
	('SELECT a, b, sum(sets.restricted(k)) FROM sets.many GROUP BY CUBE (a, b)'),
	('SELECT a, b, sum(k + floor(random())::int) FROM sets.many GROUP BY CUBE (a, b)'),
	('SELECT a, b, sum(k) FILTER (WHERE k > (SELECT min(k) FROM sets.one)) FROM sets.many GROUP BY GROUPING SETS ((a, b), (b))'),
	('SELECT a, c, count(*) FROM sets.many GROUP BY GROUPING SETS ((a), (c))'),
	('SELECT id, t, a, count(*) FROM sets.keyed GROUP BY GROUPING SETS ((id), (id, a))');

-- Sets returned for each group; sets with constants among their columns, equal columns, and what only looks like a column
CREATE TABLE sets.alike (ordinal serial, query text);
INSERT INTO sets.alike (query) VALUES
	('SELECT a, generate_series(1, 50) / 10 AS g FROM sets.many GROUP BY a'),
	('SELECT count(*) FROM sets.many WHERE (a, a) IN (SELECT a, generate_series(1, 50) / 10 FROM sets.many GROUP BY a)'),
	('SELECT 0 AS k, id, p, sum(big) FROM sets.many GROUP BY GROUPING SETS ((k, id), (p)) HAVING sum(big) > 0'),
	('SELECT 0 AS z, id, p, coalesce(sum(big), 0), count(*) + 0, 0 AS zz, grouping(0, id) FROM sets.many GROUP BY GROUPING SETS ((1, id), (p))'),
	('SELECT 0 AS z, 0 AS y, id, p, sum(big) + 0 FROM sets.many GROUP BY GROUPING SETS ((1, id), (2, p))'),
	('SELECT 0 AS z, id, count(*) + 0 AS n FROM sets.many GROUP BY ROLLUP (id, 1)'),
	('SELECT 0 AS z, id, p, count(*) + 0 AS n FROM sets.many GROUP BY CUBE (id, 1, p)'),
	('SELECT 0 AS z, a, c, count(*) + 0 AS n FROM sets.many GROUP BY CUBE (a, 1, c)'),
	('SELECT 0 AS z, a, c, id, count(*) + 0 AS n FROM sets.many GROUP BY ROLLUP (a, 1, c, id)'),
	('SELECT NULL::int AS z, percentile_cont(0.5) WITHIN GROUP (ORDER BY f), a FROM sets.many GROUP BY ROLLUP ((a, 1::int8), NULL::int)'),
	('SELECT NULL::int AS z, p, count(DISTINCT f), id FROM sets.many GROUP BY CUBE (id, p, NULL::int)'),
	('SELECT z, id, p, count(*) + 0 AS n, z + 1 FROM (SELECT 0 AS z, * FROM sets.many) s GROUP BY GROUPING SETS ((z, id), (p))'),
	('SELECT z, id, p, count(*) + 0 AS n, z + 1 FROM (SELECT 0 AS z, * FROM sets.many OFFSET 0) s GROUP BY GROUPING SETS ((z, id), (p))'),
	('SELECT a AS x, a AS y, id, count(*), a + 1 AS w FROM sets.many GROUP BY GROUPING SETS ((1, id), (2, id))'),
	('SELECT a + 1 AS x, a + 1 AS y, id, p, count(*), (a + 1) * 2 AS w FROM sets.many GROUP BY GROUPING SETS ((1, id), (2, p))'),
	('SELECT a + 1 AS x, id, p, count(*), sum(a + 1), (a + 1) * 2 AS w FROM sets.many GROUP BY GROUPING SETS ((1, id), (p)) HAVING sum(a + 1) > 3 OR a + 1 > 2'),
	('SELECT NULL::int AS z, id, p, count(*) FROM sets.many GROUP BY GROUPING SETS ((1, id), (p)) HAVING count(*) > 1 OR NULL::int IS NULL'),
	('SELECT ''x''::text AS z, id, p, count(*), string_agg(b, ''x'' ORDER BY id) FROM sets.many GROUP BY GROUPING SETS ((1, id), (p)) HAVING max(b) <> ''b9'''),
	('SELECT true AS z, id, p, bool_and(o) AND true FROM sets.many GROUP BY GROUPING SETS ((1, id), (p)) HAVING count(*) > 0 AND true'),
	('SELECT a, p, percentile_disc(a / 10.0) WITHIN GROUP (ORDER BY k) FROM sets.many GROUP BY GROUPING SETS ((a, p), (p))'),
	('SELECT a, p, percentile_disc(a / 10.0) WITHIN GROUP (ORDER BY k), percentile_disc(0.1) WITHIN GROUP (ORDER BY k) FROM sets.many GROUP BY ROLLUP (p, a)'),
	('SELECT a, id, rank(a) WITHIN GROUP (ORDER BY k) FROM sets.many GROUP BY ROLLUP (id, a)'),
	('SELECT a, c, rank(a) WITHIN GROUP (ORDER BY k) FROM sets.many GROUP BY CUBE (a, c)'),
	('SELECT id, p, 0 AS z, rank() OVER (ORDER BY 0, id, p) AS r, sum(count(*) + 0) OVER (PARTITION BY 0) FROM sets.many GROUP BY GROUPING SETS ((id, 3), (p)) HAVING count(*) > 0'),
	('SELECT id, p, 0 AS z, sum(big) FROM sets.many GROUP BY GROUPING SETS ((id, 3), (p), ()) ORDER BY 0 + sum(big), id, p, z'),
	('SELECT DISTINCT 0 AS z, id, sum(big) + 0 FROM sets.many GROUP BY GROUPING SETS ((id, 1), (p))'),
	('SELECT id, p, ''x'' || b AS xb, count(*), ''x'' AS x FROM sets.many GROUP BY GROUPING SETS ((id, 3, 5), (p, 5), (p, 3))'),
	('SELECT s, count(*) FROM (SELECT 0 AS s, id, p, generate_series(0, 1) AS g, sum(big) + 0 AS t FROM sets.many GROUP BY GROUPING SETS ((1, id), (p))) q GROUP BY s'),
	('SELECT a, id, p, CASE WHEN a = 0 THEN 0 ELSE 1 END AS z, CASE WHEN sum(a) > 0 THEN 0 ELSE 1 END AS y FROM sets.many GROUP BY GROUPING SETS ((a, id), (4, p))'),
	('SELECT 1 AS one, id, p, grouping(1) FROM sets.many GROUP BY GROUPING SETS ((1, id), (p), (id))'),
	('SELECT 0 AS k, a, b, sum(big) + 0, max(k) FROM sets.many GROUP BY GROUPING SETS ((1, a), (b), (a, b))');

SELECT is(gs.shape(query), shape, query) FROM sets.query ORDER BY ordinal;
SELECT unalike(gs.shape(query), '%Partial%', query) FROM sets.left ORDER BY ordinal;
SELECT unalike(gs.shape('SELECT a, id, r, count(*) FROM (SELECT *, random() < 2 AS r FROM sets.many) s GROUP BY ROLLUP (a, (id, r))'),
	'%Append%', 'an input that is not the same twice');
SELECT unalike(gs.shape('SELECT id, p, k, c, count(*) FROM sets.many GROUP BY CUBE (id, p, k, c)'), '%Append%', 'so many sets that the input would be read too often');
SET gpusort.parallel_output = off;
SELECT unalike(gs.shape(query), '%Partial%', 'gpusort.parallel_output = off: ' || query) FROM sets.query WHERE ordinal = 1;
RESET gpusort.parallel_output;

-- The answers: forced, as chosen, in one process, and where the service is not to be used; with all kinds of rows.
CREATE FUNCTION sets.chosen_sorted_rows(query text) RETURNS text[] LANGUAGE sql
SET gpusort.enable = on AS $$ SELECT gs.sorted_rows(query) $$;
CREATE VIEW sets.all AS
SELECT ordinal, replace(query, 'sets.many', tab) AS query
FROM (SELECT ordinal, query FROM sets.query UNION ALL SELECT 1000 + ordinal, query FROM sets.left UNION ALL SELECT 2000 + ordinal, query FROM sets.alike) q,
	 (VALUES ('sets.many'), ('sets.none'), ('sets.one'), ('sets.nulls')) t (tab)
WHERE ordinal < 2000 OR tab IN ('sets.many', 'sets.none');
-- PostgreSQL's answers are computed once
CREATE TABLE sets.answer AS SELECT *, gs.native_sorted_rows(query) AS native FROM sets.all;
SELECT is(gs.difference(native, gs.forced_sorted_rows(query)), 'same', query) FROM sets.answer ORDER BY ordinal, query COLLATE "C";
SELECT is(gs.difference(native, sets.chosen_sorted_rows(query)), 'same', 'as chosen: ' || query) FROM sets.answer WHERE query ~ 'sets.many' ORDER BY ordinal, query COLLATE "C";
SELECT is(gs.difference(native, gs.refused_sorted_rows(query)), 'same', 'refused: ' || query) FROM sets.answer WHERE query ~ 'Append|id' AND query ~ 'sets.many' ORDER BY ordinal, query COLLATE "C";
SET enable_sort = off;
SELECT is(gs.difference(native, gs.forced_sorted_rows(query)), 'same', 'hashed: ' || query) FROM sets.answer WHERE query ~ 'sets.many' ORDER BY ordinal, query COLLATE "C";
RESET enable_sort;
-- with others above
SELECT is(gs.difference(gs.native_sorted_rows(query), gs.forced_sorted_rows(query)), 'same', query) FROM (VALUES
	('SELECT id, p, count(*) FROM sets.many GROUP BY CUBE (id, p) ORDER BY p DESC, id LIMIT 20'),
	('SELECT x, (SELECT sum(hashtext(s::text)::int8) FROM (SELECT id, p, count(*) FROM sets.many WHERE a <> x GROUP BY CUBE (id, p)) s) FROM generate_series(1, 3) x'),
	('SELECT id, p, c, rank() OVER (ORDER BY c, p, id) FROM (SELECT id, p, count(*) AS c FROM sets.many GROUP BY CUBE (id, p)) s'),
	('SELECT s.id, m.b FROM (SELECT id, p, max(big) FROM sets.many GROUP BY GROUPING SETS ((id), (p))) s JOIN sets.many m USING (id)')) q (query);
SELECT is(gs.difference(gs.native_sorted_rows(query), sets.chosen_sorted_rows(query)), 'same', query) FROM (VALUES
	('SELECT * FROM (SELECT id, p, count(*) FROM sets.many GROUP BY CUBE (id, p) OFFSET 10 LIMIT 0) s')) q (query);
-- a CTE that is sorted in the place of one that PostgreSQL hashes
SELECT is(gs.difference(gs.native_sorted_rows(query), gs.forced_sorted_rows(query)), 'same', query) FROM (VALUES
	('WITH w AS MATERIALIZED (SELECT DISTINCT id, round(n, 1) AS r FROM sets.many) SELECT * FROM w'),
	('WITH w AS MATERIALIZED (SELECT DISTINCT id, round(n, 2) AS r FROM sets.many GROUP BY id, n) SELECT r, count(*) FROM w GROUP BY r'),
	('WITH w AS MATERIALIZED (SELECT id, p FROM sets.many UNION SELECT p, a FROM sets.many) SELECT id, sum(p) OVER (PARTITION BY id) FROM w'),
	('WITH w AS MATERIALIZED (SELECT p, count(*) AS n FROM sets.many GROUP BY p) SELECT a.p, b.n FROM w a JOIN w b ON a.n = b.p')) q (query);
-- Hash tables that do not fit
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT is(gs.difference(gs.native_sorted_rows(query), gs.forced_sorted_rows(query)), 'same', 'on disk: ' || query)
FROM (VALUES ('SELECT a, p, count(*), avg(n) FROM sets.many GROUP BY CUBE (a, p)'), ('SELECT c, p, sum(k) FROM sets.many GROUP BY ROLLUP (c, p)')) q (query);
RESET work_mem;
RESET hash_mem_multiplier;

-- A subquery that is planned by itself, and has partitions, is not planned twice
CREATE TABLE sets.parted (id int, g int, n numeric(10, 2)) PARTITION BY RANGE (id);
CREATE TABLE sets.parted_0 PARTITION OF sets.parted FOR VALUES FROM (MINVALUE) TO (2000);
CREATE TABLE sets.parted_1 PARTITION OF sets.parted FOR VALUES FROM (2000) TO (MAXVALUE);
INSERT INTO sets.parted SELECT i, i % 40, (i % 1000) / 100.0 FROM generate_series(1, 5000) i;
ANALYZE sets.parted;
CREATE VIEW sets.barrier WITH (security_barrier) AS SELECT * FROM sets.parted WHERE g IS NOT NULL;
SELECT is(gs.difference(gs.native_sorted_rows(query), gs.forced_sorted_rows(query)), 'same', query) FROM (VALUES
	('SELECT n, percentile_cont(0) WITHIN GROUP (ORDER BY g DESC NULLS LAST) FROM sets.barrier GROUP BY ROLLUP (n)'),
	('SELECT n, g, id, count(*) FROM (SELECT * FROM sets.parted WHERE id > (SELECT min(g) FROM sets.parted) OFFSET 0) s GROUP BY CUBE (n, g, id)')) q (query);
SELECT unalike(gs.shape(query), '%Append(GpuSort%', query) FROM (VALUES
	('SELECT n, percentile_cont(0) WITHIN GROUP (ORDER BY g DESC NULLS LAST) FROM sets.barrier GROUP BY ROLLUP (n)'),
	('SELECT n, g, id, count(*) FROM (SELECT * FROM sets.parted WHERE id > (SELECT min(g) FROM sets.parted) OFFSET 0) s GROUP BY CUBE (n, g, id)')) q (query);

-- Errors are PostgreSQL's.
SET gpusort.force = on;
SET gpusort.min_rows = 0;
SELECT throws_ok('SELECT a, b, sum((big - 9000) / k) FROM (SELECT a, b, big, CASE WHEN id = 29000 THEN 0 ELSE 1 END AS k FROM sets.many) s GROUP BY CUBE (a, b)', '22012', 'division by zero', 'an error of a worker');
SELECT throws_ok('SELECT a, b, sum(big) / (count(*) - count(*)) FROM sets.many GROUP BY CUBE (a, b)', '22012', 'division by zero', 'an error above');
SELECT throws_ok('SELECT a, b, sum(x::money * 900000000000000) FROM (SELECT a, b, big + 1 AS x FROM sets.many) s GROUP BY CUBE (a, b)', '22003', NULL, 'an overflow');

-- A prepared statement, whose parameters are below and above; a LIMIT; cursors; and where it is read again
PREPARE by_parameter(int, int) AS
SELECT a, b, count(*), sum(k + $1) FROM sets.many WHERE p > $2 GROUP BY CUBE (a, b) HAVING sum(k) > $1 ORDER BY a, b, 3;
SET plan_cache_mode = force_generic_plan;
SELECT alike(string_agg(line, ' '), '%Finalize%Partial%', 'a generic plan') FROM gs.plan('EXECUTE by_parameter(1, 2)') line;
CREATE TABLE sets.by_parameter AS EXECUTE by_parameter(5, 100);
SELECT set_eq('SELECT * FROM sets.by_parameter', gs_query, 'a prepared statement')
FROM (VALUES ('SELECT a, b, count(*), sum(k + 5) FROM sets.many WHERE p > 100 GROUP BY CUBE (a, b) HAVING sum(k) > 5')) q (gs_query);
RESET plan_cache_mode;
SELECT is(gs.compare_results('SELECT a, b, c, count(*) FROM sets.many GROUP BY CUBE (a, b, c) ORDER BY a, b, c, 4 LIMIT 5'), 'same', 'a LIMIT above an order');
SELECT is((SELECT count(*) FROM (SELECT a, b, c, count(*) FROM sets.many GROUP BY CUBE (a, b, c) LIMIT 5) s), 5::int8, 'a LIMIT');
SELECT is(gs.difference(gs.native_sorted_rows(query), gs.forced_sorted_rows(query)), 'same', query) FROM (VALUES
	('SELECT x, (SELECT sum(s) FROM (SELECT a, b, sum(k) AS s FROM sets.many WHERE p < x GROUP BY CUBE (a, b)) q) AS s FROM generate_series(1, 60, 20) x'),
	('SELECT x, s FROM generate_series(1, 60, 20) x, LATERAL (SELECT a, b, sum(k + x) AS s FROM sets.many GROUP BY CUBE (a, b) OFFSET 0) q'),
	('SELECT x, s FROM (VALUES (1), (2)) v (x) LEFT JOIN (SELECT a, b, sum(k) AS s FROM sets.many GROUP BY CUBE (a, b)) q ON a < x'),
	('WITH q AS MATERIALIZED (SELECT a, b, sum(k) AS s FROM sets.many GROUP BY CUBE (a, b)) SELECT * FROM q UNION ALL SELECT * FROM q'),
	('SELECT m.a, o.b, grouping(o.b) AS g, count(*), sum(m.k) FROM sets.many m JOIN sets.one o ON m.a = o.a GROUP BY CUBE (m.a, o.b)'),
	('SELECT m.a, o.b, m.id, count(*), sum(o.k) FROM sets.many m LEFT JOIN sets.one o ON m.id = o.id GROUP BY ROLLUP (m.a, o.b, m.id)'),
	('SELECT a, sum(s), rank() OVER (ORDER BY sum(s), a) FROM (SELECT a, b, sum(k) AS s FROM sets.many GROUP BY CUBE (a, b)) q GROUP BY ROLLUP (a)'),
	('SELECT unhashed <-> point(0, 0) AS x, a, count(*) FROM sets.many GROUP BY CUBE (1, a)'),
	('SELECT big, id::text::xid AS x, count(*) FROM sets.many GROUP BY CUBE (1, 2)')) q (query);
BEGIN;
DECLARE groups SCROLL CURSOR FOR SELECT a, b, count(*), sum(k) FROM sets.many GROUP BY CUBE (a, b) ORDER BY a, b, 3;
FETCH 2 FROM groups;
FETCH BACKWARD 1 FROM groups;
MOVE ALL FROM groups;
FETCH BACKWARD 1 FROM groups;
COMMIT;
SELECT * FROM finish();
