\set ECHO none
-- What is above a sort in all processes (src/plan/finish/lift.c): which plans, which not, and their answers.
SET client_min_messages = warning;
LOAD 'gpusort';
\pset format unaligned
\pset tuples_only on

CREATE SCHEMA lift;
CREATE TABLE lift.l AS
SELECT i AS id, i % 1000 AS a, i * 7919 % 997 AS b, CASE WHEN i % 13 > 0 THEN i % 7 END AS c, 't' || md5((i % 500)::text) AS t,
	   (i % 100) / 4.0 AS n, (i * 31 % 4000) / 8.0::float8 AS f, CASE WHEN i % 17 > 0 THEN i % 1500 END AS k
FROM generate_series(1, 6000) i;
CREATE TABLE lift.r AS
SELECT i AS id, i % 1100 + 3 AS a, i * 7919 % 499 AS b, 't' || md5((i % 600)::text) AS t, (i % 90) / 4.00 AS n, CASE WHEN i % 19 > 0 THEN i % 1700 END AS k,
	   (i % 800)::int8 AS big
FROM generate_series(1, 2500) i;
-- values that are equal and look different
CREATE TABLE lift.alike WITH (parallel_workers = 2) AS
SELECT i AS id, round(1 + i / 2999, i * 31 % 7) AS v, CASE i * 7 % 3 WHEN 0 THEN '-0' ELSE '0' END::float8 AS z FROM generate_series(1, 3000) i;
ANALYZE lift.alike;
ALTER TABLE lift.l SET (parallel_workers = 2);
ALTER TABLE lift.r SET (parallel_workers = 2);
ANALYZE lift.l, lift.r;
CREATE TYPE lift.mood AS ENUM ('sad', 'ok', 'glad');
CREATE FUNCTION lift.restricted(int) RETURNS int LANGUAGE plpgsql STABLE PARALLEL RESTRICTED AS 'BEGIN RETURN $1 + 1; END';
CREATE FUNCTION lift.safe(int) RETURNS int LANGUAGE plpgsql STABLE PARALLEL SAFE AS 'BEGIN RETURN $1 + 1; END';
CREATE AGGREGATE lift.restricted_sum(int) (SFUNC = int4pl, STYPE = int, PARALLEL = RESTRICTED);
CREATE DOMAIN lift.small AS int CHECK (VALUE < 1000000);

SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 1;
SET gpusort.setup_cost = 0;
SET gpusort.row_cost = 0;

SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SET enable_hashagg = off;
SET enable_hashjoin = off;
SET enable_nestloop = off;

-- A plan as one line: a node's name, and in brackets the nodes that it reads.
CREATE FUNCTION lift.shape_of(node jsonb) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	name text := replace(coalesce(node->>'Custom Plan Provider', node->>'Node Type'), 'Aggregate', 'Agg');
	below text;
BEGIN
	IF name = 'Merge Join' AND node->>'Join Type' <> 'Inner' THEN
		name := 'Merge ' || (node->>'Join Type') || ' Join';
	END IF;
	SELECT string_agg(CASE WHEN c->>'Parent Relationship' IN ('InitPlan', 'SubPlan') THEN (c->>'Parent Relationship') || ' ' ELSE '' END || lift.shape_of(c), ', ')
	INTO below FROM jsonb_array_elements(node->'Plans') c;
	RETURN name || coalesce('(' || below || ')', '');
END $$;
CREATE FUNCTION lift.shape(query text) RETURNS text LANGUAGE plpgsql
SET gpusort.enable = on SET gpusort.force = on SET gpusort.min_rows = 0
AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	RETURN lift.shape_of(plan::jsonb->0->'Plan');
END $$;

-- All rows of a query, in whatever order, made into one value by a statement that runs with workers.
CREATE FUNCTION lift.sorted_digest(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
BEGIN
	EXECUTE format('SELECT count(*) || md5(string_agg(md5(gs_row::text), '''' ORDER BY md5(gs_row::text))) FROM (%s) gs_row', query) INTO result;
	RETURN result;
END $$;
CREATE FUNCTION lift.native_sorted_digest(query text) RETURNS text LANGUAGE sql
SET gpusort.enable = off
AS $$ SELECT lift.sorted_digest(query) $$;
CREATE FUNCTION lift.forced_sorted_digest(query text) RETURNS text LANGUAGE sql
SET gpusort.enable = on SET gpusort.force = on SET gpusort.min_rows = 0
AS $$ SELECT lift.sorted_digest(query) $$;

-- 'same' when the plan is lifted, the service sorts, and the rows are PostgreSQL's: with workers and without.
CREATE FUNCTION lift.compare_shared(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	node jsonb := gs.node(query);
BEGIN
	IF lift.shape(query) NOT LIKE '%GpuSortOutput%' THEN
		RETURN 'not lifted: ' || lift.shape(query);
	ELSIF node->>'Sort Method' NOT IN ('gpu radix', 'cpu radix', 'first rows') THEN
		RETURN 'sort method ' || (node->>'Sort Method') || ': ' || coalesce(node->>'Fallback Reason', 'no reason');
	ELSIF lift.native_sorted_digest(query) <> lift.forced_sorted_digest(query) THEN
		RETURN 'other rows with workers; without: ' || gs.difference(gs.in_order(gs.native_rows(query)), gs.in_order(gs.forced_rows(query)));
	ELSIF query ~ ' ORDER BY [a-z, ]*$' THEN
		RETURN gs.compare_results(query);
	END IF;
	RETURN gs.difference(gs.in_order(gs.native_rows(query)), gs.in_order(gs.forced_rows(query)));
END $$;

SELECT * FROM no_plan();

-- how it looks
-- PostgreSQL 18 adds a line for the window
SELECT is(regexp_replace(gs.forced_plan('SELECT id, lag(b) OVER (PARTITION BY a ORDER BY b, id) FROM lift.l'), ' *Window:[^\n]*\n', ''),
$$Custom Scan (GpuSortExchange)
  Range Key: a, b, id
  Across Ranges: 1 rows before, 0 after
  ->  Gather
        Workers Planned: 2
        ->  Parallel Custom Scan (GpuSortOutput)
              ->  WindowAgg
                    ->  Parallel Custom Scan (GpuSort)
                          Sort Key: a, b, id
                          ->  Parallel Seq Scan on l
$$, 'a window');

-- which plans are lifted, and how high
CREATE TABLE lift.plan (ordinal serial, shape text, query text);
INSERT INTO lift.plan (shape, query) VALUES
	('GpuSortExchange(Gather(GpuSortOutput(WindowAgg(GpuSort(Seq Scan)))))', 'SELECT id, lag(b) OVER (PARTITION BY a ORDER BY b, id), sum(f) OVER (PARTITION BY a ORDER BY b, id) FROM lift.l'),
	('GpuSortExchange(Gather(GpuSortOutput(WindowAgg(WindowAgg(GpuSort(Seq Scan))))))', 'SELECT id, lag(b) OVER (PARTITION BY a, c ORDER BY b, id), sum(f) OVER (PARTITION BY a) FROM lift.l'),
	('GpuSortExchange(Gather(GpuSortOutput(WindowAgg(Incremental Sort(WindowAgg(GpuSort(Seq Scan)))))))', 'SELECT id, lag(b) OVER (PARTITION BY a, c ORDER BY b, id), sum(f) OVER (PARTITION BY a ORDER BY id) FROM lift.l'),
	('WindowAgg(GpuSort(GpuSortExchange(Gather(GpuSortOutput(WindowAgg(GpuSort(Seq Scan)))))))', 'SELECT id, lag(b) OVER (PARTITION BY a ORDER BY b, id), sum(f) OVER (PARTITION BY b ORDER BY id) FROM lift.l'),
	('GpuSortExchange(Gather(GpuSortOutput(WindowAgg(GpuSort(Seq Scan)))))', 'SELECT id, lag(b) OVER (PARTITION BY a ORDER BY b, id) FROM lift.l ORDER BY a, b, id'),
	('GpuSortExchange(Gather(GpuSortOutput(Result(Sort(WindowAgg(GpuSort(Seq Scan)))))))', 'SELECT id, lag(b) OVER (PARTITION BY a ORDER BY b, id) FROM lift.l ORDER BY a, c, id'),
	('GpuSort(GpuSortExchange(Gather(GpuSortOutput(WindowAgg(GpuSort(Seq Scan))))))', 'SELECT id, lag(b) OVER (PARTITION BY a ORDER BY b, id) FROM lift.l ORDER BY id'),
	('GpuSortExchange(Gather(GpuSortOutput(WindowAgg(GpuSort(Seq Scan)))))', 'SELECT id, lag(b) OVER (ORDER BY b, id) FROM lift.l'),
	('WindowAgg(GpuSort(Gather(GpuSortIngest(Seq Scan))))', 'SELECT id, lag(b, c) OVER (ORDER BY b, id) FROM lift.l'),
	('GpuSortExchange(Gather(GpuSortOutput(Subquery Scan(WindowAgg(GpuSort(Seq Scan))))))', 'SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY a ORDER BY b, id) AS r FROM lift.l) s WHERE r = 1'),
	('Limit(GpuSortExchange(Gather(GpuSortOutput(Subquery Scan(WindowAgg(GpuSort(Seq Scan)))))))', 'SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY a ORDER BY b, id) AS r FROM lift.l) s WHERE r = 1 LIMIT 5'),
	('Agg(GpuSortExchange(Gather(GpuSortOutput(Agg(WindowAgg(GpuSort(Seq Scan)))))))', 'SELECT max(s), min(s), sum(s), max(t), min(f) FROM (SELECT t, f, sum(b::numeric / 7) OVER (ORDER BY b, id) AS s FROM lift.l) w'),
	('Agg(GpuSortExchange(Gather(GpuSortOutput(Subquery Scan(WindowAgg(GpuSort(Seq Scan)))))))', 'SELECT max(s), sum(f::float8) FROM (SELECT f, sum(b) OVER (ORDER BY b, id) AS s FROM lift.l) w'),
	('Agg(GpuSortExchange(Gather(GpuSortOutput(Agg(WindowAgg(GpuSort(Seq Scan)))))))', 'SELECT min(v), max(v), min(z), max(z), max(r) FROM (SELECT v, z, row_number() OVER (ORDER BY id) AS r FROM lift.alike) w'),
	('Limit(GpuSort(GpuSortExchange(Gather(GpuSortOutput(Limit(Sort(Agg(GpuSort(Seq Scan)))))))))', 'SELECT b, count(DISTINCT id) + sum(0.5::float8) AS n FROM lift.l GROUP BY b ORDER BY n DESC, b LIMIT 7'),
	('Limit(GpuSort(GpuSortExchange(Gather(GpuSortOutput(Limit(Sort(Agg(GpuSort(Seq Scan)))))))))', 'SELECT b, count(DISTINCT id) + sum(0.5::float8) AS n FROM lift.l GROUP BY b ORDER BY n, b OFFSET 9 LIMIT 5'),
	('Limit(GpuSort(GpuSortExchange(Gather(GpuSortOutput(Limit(Sort(WindowAgg(GpuSort(Seq Scan)))))))))', 'SELECT id, lag(b) OVER (ORDER BY b, id) - a AS d FROM lift.l ORDER BY d, id LIMIT 7'),
	('Limit(GpuSort(GpuSortExchange(Gather(GpuSortOutput(Limit(Sort(WindowAgg(GpuSort(Seq Scan)))))))))', 'SELECT id, sum(b) OVER (ORDER BY b, id) % 17 AS m FROM lift.l ORDER BY m, id LIMIT 7'),
	('Limit(GpuSort(GpuSortExchange(Gather(GpuSortOutput(Agg(GpuSort(Seq Scan)))))))', 'SELECT b, count(DISTINCT id) + sum(0.5::float8) AS n FROM lift.l GROUP BY b ORDER BY n FETCH FIRST 7 ROWS WITH TIES'),
	('Limit(GpuSort(GpuSortExchange(Gather(GpuSortOutput(Agg(GpuSort(Seq Scan)))))))', 'SELECT b, count(DISTINCT id) + sum(0.5::float8) AS n FROM lift.l GROUP BY b ORDER BY n, b OFFSET 9 LIMIT 9223372036854775807'),
	('GpuSortExchange(Gather(GpuSortOutput(Unique(GpuSort(Seq Scan)))))', 'SELECT DISTINCT a, b FROM lift.l'),
	('GpuSortExchange(Gather(GpuSortOutput(Unique(GpuSort(Seq Scan)))))', 'SELECT DISTINCT t COLLATE "C", b FROM lift.l'),
	('GpuSortExchange(Gather(GpuSortOutput(Unique(GpuSort(Seq Scan)))))', 'SELECT DISTINCT ON (a) a, b, id FROM lift.l ORDER BY a, b, id'),
	('GpuSortExchange(Gather(GpuSortOutput(Agg(GpuSort(Seq Scan)))))', 'SELECT a, b, count(DISTINCT id) FROM lift.l GROUP BY a, b HAVING count(DISTINCT f) + sum(0.5::float8) > 2'),
	('GpuSortExchange(Gather(GpuSortOutput(Agg(GpuSort(Seq Scan)))))', 'SELECT a, percentile_disc(0.5) WITHIN GROUP (ORDER BY f), string_agg(t, '','' ORDER BY id) FROM lift.l GROUP BY a'),
	('GpuSortExchange(Gather(GpuSortOutput(Agg(GpuSort(Seq Scan)))))', 'SELECT a, b, c, count(DISTINCT id) FROM lift.l GROUP BY a, ROLLUP (b, c)'),
	('GpuSortExchange(Gather(GpuSortOutput(Agg(GpuSort(Seq Scan)))))', 'SELECT a, b, c, count(DISTINCT id) FROM lift.l GROUP BY GROUPING SETS ((a, b), (a, c), (a))'),
	('Append(GpuSortExchange(Gather(GpuSortOutput(Agg(GpuSort(Seq Scan))))), GpuSortExchange(Gather(GpuSortOutput(Agg(GpuSort(Seq Scan))))), GpuSortExchange(Gather(GpuSortOutput(Agg(GpuSort(Seq Scan))))))', 'SELECT a, b, c, count(DISTINCT id) FROM lift.l GROUP BY GROUPING SETS ((a, b), (c, b), (c, a))'),
	('Agg(GpuSort(Gather(GpuSortIngest(Seq Scan))))', 'SELECT a, b, max(id) FROM lift.l GROUP BY CUBE (a, b)'),
	('GpuSortExchange(Gather(GpuSortOutput(WindowAgg(Subquery Scan(Agg(GpuSort(Seq Scan)))))))', 'SELECT sum(m) OVER (PARTITION BY a ORDER BY b) FROM (SELECT a, b, max(DISTINCT id) + sum(0.5::float8) AS m FROM lift.l GROUP BY a, b) s'),
	('Gather(GpuSortOutput(Merge Join(GpuSort(Seq Scan), GpuSort(Seq Scan))))', 'SELECT l.id, r.id FROM lift.l JOIN lift.r USING (a, b)'),
	('GpuSortExchange(Gather(GpuSortOutput(Merge Left Join(GpuSort(Seq Scan), GpuSort(Seq Scan)))))', 'SELECT l.id, r.id FROM lift.l LEFT JOIN lift.r USING (a)'),
	('GpuSortExchange(Gather(GpuSortOutput(Merge Left Join(GpuSort(Seq Scan), GpuSort(Seq Scan)))))', 'SELECT l.id, r.id FROM lift.r RIGHT JOIN lift.l USING (a)'),
	('GpuSortExchange(Gather(GpuSortOutput(Merge Full Join(GpuSort(Seq Scan), GpuSort(Seq Scan)))))', 'SELECT l.id, r.id FROM lift.l FULL JOIN lift.r USING (a)'),
	('Gather(GpuSortOutput(Merge Anti Join(GpuSort(Seq Scan), GpuSort(Seq Scan))))', 'SELECT l.id FROM lift.l WHERE NOT EXISTS (SELECT FROM lift.r WHERE r.a = l.a)'),
	('GpuSortExchange(Gather(GpuSortOutput(Merge Semi Join(GpuSort(Seq Scan), GpuSort(Seq Scan)))))', 'SELECT l.id FROM lift.l WHERE EXISTS (SELECT FROM lift.r WHERE r.a = l.a AND r.id < l.id)'),
	('GpuSortExchange(Gather(GpuSortOutput(Merge Join(GpuSort(Seq Scan), GpuSort(Seq Scan)))))', 'SELECT l.id, r.id FROM lift.l JOIN lift.r USING (n)'),
	('GpuSortExchange(Gather(GpuSortOutput(Merge Join(GpuSort(Seq Scan), GpuSort(Seq Scan)))))', 'SELECT l.id, r.id FROM lift.l JOIN lift.r USING (t)'),
	('GpuSortExchange(Gather(GpuSortOutput(Merge Left Join(GpuSort(Seq Scan), GpuSort(Seq Scan)))))', 'SELECT l.id, r.id FROM lift.l LEFT JOIN lift.r USING (t, n)'),
	('GpuSortExchange(Gather(GpuSortOutput(Merge Join(GpuSort(Seq Scan), GpuSort(Seq Scan)))))', 'SELECT l.id, r.id FROM lift.l JOIN lift.r ON l.a = r.big'),
	('GpuSortExchange(Gather(GpuSortOutput(Merge Join(GpuSort(Seq Scan), Materialize(Merge Join(GpuSort(Seq Scan), GpuSort(Seq Scan)))))))', 'SELECT l.id, r.id, m.id FROM lift.l JOIN lift.r USING (a) JOIN lift.l m USING (a)'),
	('GpuSortExchange(Gather(GpuSortOutput(Agg(Merge Join(GpuSort(Seq Scan), GpuSort(Seq Scan))))))', 'SELECT a, count(DISTINCT r.id) + sum(0.5::float8) FROM lift.l JOIN lift.r USING (a) GROUP BY a'),
	('GpuSortExchange(Gather(GpuSortOutput(Agg(GpuSort(Merge Left Join(GpuSort(Seq Scan), GpuSort(Seq Scan)))))))', 'SELECT r.a, count(DISTINCT r.id) + sum(0.5::float8) FROM lift.l LEFT JOIN lift.r USING (a) GROUP BY r.a'),
	('Agg(GpuSort(GpuSortExchange(Gather(GpuSortOutput(Merge Full Join(GpuSort(Seq Scan), GpuSort(Seq Scan)))))))', 'SELECT r.a, count(DISTINCT r.id) + sum(0.5::float8) FROM lift.l FULL JOIN lift.r USING (a) GROUP BY r.a'),
	('GpuSortExchange(Gather(GpuSortOutput(Agg(Merge Left Join(GpuSort(Seq Scan), GpuSort(Seq Scan))))))', 'SELECT l.a, count(DISTINCT r.id) + sum(0.5::float8) FROM lift.l LEFT JOIN lift.r USING (a) GROUP BY l.a'),
	('GpuSortExchange(InitPlan Agg(Gather(Agg(Seq Scan))), Gather(GpuSortOutput(Agg(GpuSort(Seq Scan)))))', 'SELECT a, count(DISTINCT id) + sum(0.5::float8) + (SELECT max(b) FROM lift.r) FROM lift.l GROUP BY a'),
	('Agg(GpuSort(Gather(GpuSortIngest(Seq Scan))))', 'SELECT a, lift.restricted((count(DISTINCT id) + sum(0.5::float8))::int) FROM lift.l GROUP BY a'),
	('GpuSortExchange(Gather(GpuSortOutput(Agg(GpuSort(Seq Scan)))))', 'SELECT a, lift.safe((count(DISTINCT id) + sum(0.5::float8))::int) FROM lift.l GROUP BY a'),
	('Agg(GpuSort(Gather(GpuSortIngest(Seq Scan))))', 'SELECT a, lift.restricted_sum(id) FROM lift.l GROUP BY a'),
	('Agg(GpuSort(Gather(GpuSortIngest(Seq Scan))))', 'SELECT a, (count(DISTINCT id) + sum(0.5::float8))::int::lift.small FROM lift.l GROUP BY a'),
	('Subquery Scan(GpuSortExchange(Gather(GpuSortOutput(WindowAgg(GpuSort(Seq Scan))))))', 'SELECT lift.restricted(s.x) FROM (SELECT lag(b) OVER (PARTITION BY a ORDER BY b, id) AS x FROM lift.l) s WHERE x > 5'),
	('Unique(GpuSort(Append(Seq Scan, Seq Scan)))', 'SELECT a, b FROM lift.l UNION SELECT a, b FROM lift.r'),
	('GpuSortExchange(Gather(GpuSortOutput(Result(SetOp(GpuSort(Append(Subquery Scan(Seq Scan), Subquery Scan(Seq Scan))))))))', 'SELECT a, b FROM lift.l INTERSECT SELECT a, b FROM lift.r'),
	('GpuSortExchange(Gather(GpuSortOutput(Result(SetOp(GpuSort(Append(Subquery Scan(Seq Scan), Subquery Scan(Seq Scan))))))))', 'SELECT a, b FROM lift.l EXCEPT ALL SELECT a, b FROM lift.r');

-- From 16 on PostgreSQL sorts for aggregates with DISTINCT and merges what UNION reads, from 18 on a SetOp has two
-- inputs, and joins are ordered otherwise: there these plans have other shapes, and their rows are compared alone.
ALTER TABLE lift.plan ADD varies bool;
UPDATE lift.plan SET varies = current_setting('server_version_num')::int >= 160000 AND
	query ~ 'count\(DISTINCT r.id\)|UNION|INTERSECT|EXCEPT|JOIN lift.l m';
CREATE FUNCTION lift.rows_or(expected text, query text) RETURNS text LANGUAGE sql
AS $$ SELECT CASE WHEN lift.native_sorted_digest(query) = lift.forced_sorted_digest(query) THEN expected ELSE 'other rows' END $$;
SELECT is(CASE WHEN varies THEN lift.rows_or(shape, query) ELSE lift.shape(query) END, shape, query) FROM lift.plan ORDER BY ordinal;

-- with everything else as it is
SET gpusort.parallel_output = off;
SELECT is(count(*)::int, 0, 'none with gpusort.parallel_output off') FROM lift.plan WHERE lift.shape(query) LIKE '%GpuSortOutput%';
RESET gpusort.parallel_output;

-- the answers
SELECT is(CASE WHEN varies THEN lift.rows_or('same', query) ELSE lift.compare_shared(query) END, 'same', query)
FROM lift.plan WHERE shape LIKE '%GpuSortOutput%' ORDER BY ordinal;

-- of two types that are compared, whose keys are not the same
CREATE TABLE lift.times WITH (parallel_workers = 2) AS
SELECT i AS id, '2026-01-01'::date + i % 300 AS day, '2026-01-01'::timestamp + i % 700 * '6 hours'::interval AS time,
	   '2026-01-01 00:00 UTC'::timestamptz + i % 700 * '6 hours'::interval AS zoned
FROM generate_series(1, 3000) i;
ANALYZE lift.times;
SET TimeZone = 'Asia/Dhaka';
CREATE VIEW lift.timed AS SELECT format(query, one, two) AS query FROM (VALUES ('day', 'time'), ('time', 'zoned'), ('day', 'zoned')) t (one, two), (VALUES
	('SELECT x.id, y.id FROM lift.times x JOIN lift.times y ON x.%s = y.%s'), ('SELECT x.id, y.id FROM lift.times x FULL JOIN lift.times y ON x.%s = y.%s'),
	('SELECT x.id FROM lift.times x WHERE NOT EXISTS (SELECT FROM lift.times y WHERE x.%s = y.%s)')) v (query);
SELECT is(lift.rows_or('same', query), 'same', query) FROM lift.timed ORDER BY query COLLATE "C";
SELECT unalike(lift.shape(query), '%GpuSortOutput%Merge%', query) FROM lift.timed ORDER BY query COLLATE "C";
RESET TimeZone;

-- of two types, of which one's keys can be the other's
CREATE TABLE lift.wide WITH (parallel_workers = 2) AS
SELECT i AS id, s.v::int2 AS s, s.v::int4 AS i, s.v::int8 AS b, s.v::float4 AS f, s.v::float8 AS d
FROM generate_series(1, 3000) i, LATERAL (SELECT CASE WHEN i % 17 > 0 THEN (i * 7919 % 701 - 350) * CASE WHEN i % 3 = 0 THEN 90 ELSE 1 END END AS v) s;
INSERT INTO lift.wide (id, s, i, b, f, d)
SELECT 3000 + 10 * n + g, s, i, b, f::float4, d::float8 FROM (VALUES
	(1, -32768, -32768, -32768, '-0', '0'), (2, 32767, 32767, 32767, '0', '-0'), (3, 0, -2147483648, -2147483648, 'NaN', 'NaN'),
	(4, -1, 2147483647, 2147483647, 'Infinity', 'Infinity'), (5, 1, 32768, -9223372036854775808, '-Infinity', '-Infinity'),
	(6, NULL, -32769, 9223372036854775807, '1e-45', '1.401298464324817e-45'), (7, 2, 3, 4294967296, '3.4028235e38', '3.4028234663852886e38'),
	(8, 7, 7, 7, '0.1', '0.1'), (9, 8, 8, 8, '0.1', '0.10000000149011612'), (10, 9, 9, 9, '16777216', '16777217')) v (n, s, i, b, f, d), generate_series(1, 4) g;
ANALYZE lift.wide;
CREATE TABLE lift.mixed (query text);
INSERT INTO lift.mixed (query) SELECT format(query, one, two) FROM (VALUES
	('s', 'i'), ('i', 's'), ('s', 'b'), ('b', 's'), ('i', 'b'), ('b', 'i'), ('f', 'd'), ('d', 'f')) t (one, two), (VALUES
	('SELECT x.id, y.id FROM lift.wide x JOIN lift.wide y ON x.%s = y.%s'), ('SELECT x.id, y.id FROM lift.wide x FULL JOIN lift.wide y ON x.%s = y.%s'),
	('SELECT x.id FROM lift.wide x WHERE NOT EXISTS (SELECT FROM lift.wide y WHERE x.%s = y.%s)'),
	('SELECT count(*), count(DISTINCT y.id) FROM lift.wide x LEFT JOIN lift.wide y ON x.%1$s = y.%2$s GROUP BY x.%1$s')) v (query);
INSERT INTO lift.mixed (query) VALUES
	('SELECT x.id, y.id FROM lift.wide x JOIN lift.wide y ON x.s = y.b AND x.f = y.d AND x.i = y.i');
SELECT is(lift.compare_shared(query), 'same', query) FROM lift.mixed ORDER BY query COLLATE "C";
SELECT is(lift.forced_sorted_digest(query), lift.native_sorted_digest(query), query) FROM (VALUES
	('SELECT x.id, y.id, z.id FROM lift.wide x JOIN lift.wide y ON x.s = y.i JOIN lift.wide z ON z.b = x.s WHERE x.id < 1500 AND y.id % 3 = 0 AND z.id % 4 = 0')) v (query);

-- a key that PostgreSQL has Gather project
SET parallel_tuple_cost = 0;
SELECT alike(lift.shape('SELECT l.id, r.id FROM lift.l FULL JOIN lift.r ON l.b = r.b AND l.id % 40 = r.id % 40'), '%Merge Full Join(GpuSort(Seq Scan), GpuSort(Seq Scan))%', 'workers project it');
SET gpusort.parallel_output = off;
SELECT alike(lift.shape('SELECT l.id, r.id FROM lift.l FULL JOIN lift.r ON l.b = r.b AND l.id % 40 = r.id % 40'),
			 '%Merge Full Join(GpuSort(Gather(GpuSortIngest(Seq Scan))), GpuSort(Gather(GpuSortIngest(Seq Scan))))%', 'also where the join stays in the leader');
SELECT is(lift.forced_sorted_digest(query), lift.native_sorted_digest(query), query)
FROM (VALUES ('SELECT l.id, r.id FROM lift.l FULL JOIN lift.r ON l.b = r.b AND l.id % 40 = r.id % 40')) v (query);
RESET gpusort.parallel_output;
SELECT is(lift.compare_shared(query), 'same', query)
FROM (VALUES ('SELECT l.id, r.id FROM lift.l FULL JOIN lift.r ON l.b = r.b AND l.id % 40 = r.id % 40'),
			 ('SELECT l.id, r.id FROM lift.l FULL JOIN lift.r ON l.b = r.b AND l.id % 40 = r.id + (SELECT min(id) FROM lift.r)')) v (query);
SELECT alike(lift.shape('SELECT l.id, r.id FROM lift.l FULL JOIN lift.r ON l.b = r.b AND lift.restricted(l.id) = r.id'), '%GpuSort(Gather(Seq Scan))%', 'not what workers may not compute');
SET parallel_tuple_cost = 1;

-- where a merge join goes back in its inner side, which it does by marks
CREATE INDEX l_id ON lift.l (id);
SET enable_sort = off;
SET enable_incremental_sort = off;
CREATE VIEW lift.marks AS SELECT * FROM (VALUES
			 ('SELECT l.id, s.a FROM lift.l RIGHT JOIN (WITH w AS NOT MATERIALIZED (SELECT * FROM lift.r ORDER BY a, t) SELECT * FROM w) s ON l.id = s.a'),
			 ('SELECT l.id, s.a FROM lift.l RIGHT JOIN (WITH w AS NOT MATERIALIZED (SELECT * FROM lift.r ORDER BY id DESC, t) SELECT * FROM w) s ON l.id = s.id ORDER BY l.id DESC')) v (query);
SELECT unalike(lift.shape(query), '%GpuSortExchange%', query) FROM lift.marks;
SELECT is(lift.rows_or('same', query), 'same', query) FROM lift.marks;
RESET enable_sort;
RESET enable_incremental_sort;
DROP INDEX lift.l_id;

-- what a nested loop reads for each row, unless it is forced; from 16 on PostgreSQL may plan these otherwise
CREATE FUNCTION lift.is_lifted(query text) RETURNS bool LANGUAGE plpgsql
SET enable_nestloop = on SET enable_mergejoin = off SET enable_material = off SET gpusort.min_rows = 0
AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	RETURN lift.shape_of(plan::jsonb->0->'Plan') LIKE '%GpuSortExchange%';
END $$;
SELECT ok(current_setting('server_version_num')::int >= 160000 OR lift.is_lifted('SELECT a, percentile_disc(0.5) WITHIN GROUP (ORDER BY n) FROM lift.l GROUP BY a'), 'groups are lifted unforced');
SELECT ok(NOT lift.is_lifted('SELECT o.i, s.* FROM generate_series(1, 3) o (i) LEFT JOIN (SELECT a, percentile_disc(0.5) WITHIN GROUP (ORDER BY n) FROM lift.l GROUP BY a OFFSET 0) s ON s.a > o.i * 900'), 'but not where a nested loop reads them for each row');

-- rows of every distribution
CREATE VIEW lift.none AS SELECT * FROM lift.l WHERE id + 0 < 0;
CREATE VIEW lift.one AS SELECT * FROM lift.l WHERE id + 0 = 77;
CREATE TABLE lift.giant WITH (parallel_workers = 2) AS SELECT id, CASE WHEN id % 100 = 0 THEN id % 1000 ELSE 5 END AS a, b, c, t, n, f, k FROM lift.l WHERE id + 0 <= 2000;
CREATE TABLE lift.nulls WITH (parallel_workers = 2) AS SELECT id, nullif(a, a) AS a, b, c, t, n, f, k FROM lift.l WHERE id + 0 <= 1000;
ANALYZE lift.giant, lift.nulls;
SELECT is(lift.compare_shared(format(query, tab)), 'same', format(query, tab)) FROM (VALUES ('lift.none'), ('lift.one'), ('lift.giant'), ('lift.nulls')) t (tab), (VALUES
	('SELECT id, sum(f) OVER (PARTITION BY a ORDER BY b, id), first_value(t) OVER (PARTITION BY a ORDER BY b, id) FROM %s'),
	('SELECT DISTINCT ON (a, c) a, c, id FROM %s ORDER BY a, c, id'),
	('SELECT a, c, count(DISTINCT b), sum(f) FROM %s GROUP BY a, c'),
	('SELECT x.id, y.id, y.t FROM %1$s x JOIN lift.r y USING (a)'),
	('SELECT x.id, y.id, y.t FROM lift.r x LEFT JOIN %1$s y USING (a)'),
	('SELECT x.id, y.id, y.t FROM %1$s x LEFT JOIN lift.r y USING (a)'),
	('SELECT x.id, y.id, y.t FROM lift.r x FULL JOIN %1$s y USING (a)'),
	('SELECT x.id, y.id, y.t FROM %1$s x FULL JOIN lift.r y USING (a)')) v (query)
ORDER BY tab COLLATE "C", query COLLATE "C";

-- What only the leader has, a correlated subquery and what an InitPlan sets, wherever workers might have to compute it.
CREATE INDEX ON lift.r (a);
SELECT is(lift.forced_sorted_digest(format(query, expression)), lift.native_sorted_digest(format(query, expression)), format(query, expression)) FROM (VALUES
	('(SELECT min(c.id) FROM lift.r c WHERE c.a = x.a)'), ('(x.b + (SELECT max(c.b) FROM lift.r c))'),
	('(SELECT count(*)::int FROM lift.r c WHERE c.a = x.a AND c.b < (SELECT max(d.b) FROM lift.r d))')) e (expression), (VALUES
	('SELECT x.id, y.id FROM lift.l x JOIN lift.r y ON x.a = y.a AND y.id = %s WHERE x.id < 900'),
	('SELECT x.id, y.id FROM lift.l x LEFT JOIN lift.r y ON x.a = y.a AND y.id > %s WHERE x.id < 900'),
	('SELECT x.id, y.id FROM lift.l x JOIN lift.r y ON y.a = %s WHERE x.id < 900'),
	('SELECT x.id, y.id FROM lift.l x JOIN lift.r y USING (a) WHERE x.id < 900 AND y.b + %s > 300'),
	('SELECT x.id, row_number() OVER (PARTITION BY %s ORDER BY x.id) FROM lift.l x WHERE x.id < 900'),
	('SELECT x.id, sum(%s) OVER (PARTITION BY x.a ORDER BY x.id) FROM lift.l x WHERE x.id < 900'),
	('SELECT x.id, lag(x.id, %s %% 3) OVER (PARTITION BY x.c ORDER BY x.id) FROM lift.l x WHERE x.id < 900'),
	('SELECT x.a, min(x.id) FROM lift.l x WHERE x.id < 900 GROUP BY x.a HAVING min(%s) > 100'),
	('SELECT DISTINCT %s, x.c FROM lift.l x WHERE x.id < 900'),
	('SELECT x.c, count(*) FILTER (WHERE %s > 100) FROM lift.l x WHERE x.id < 900 GROUP BY x.c'),
	('SELECT x.id FROM lift.l x WHERE x.id < 900 AND %s > 100 ORDER BY x.b, x.id OFFSET 10'),
	('SELECT x.id FROM lift.l x WHERE x.id < 900 ORDER BY %s, x.id OFFSET 10')) v (query)
ORDER BY expression COLLATE "C", query COLLATE "C";
SELECT matches(lift.shape('SELECT x.id, y.id FROM lift.l x JOIN lift.r y ON x.a = y.a AND y.id = (SELECT min(c.id) FROM lift.r c WHERE c.a = x.a)'), 'SubPlan',
			   'there is a subplan that workers do not have');

-- Joins of what comes in ranges, whose clauses name either side first
SET enable_hashjoin = on;
CREATE TABLE lift.names AS SELECT i AS a, i % 3 AS name FROM generate_series(0, 400) i;
ANALYZE lift.names;
CREATE TABLE lift.joined AS SELECT settings, clause, side, format(side, clause) AS query FROM unnest(ARRAY[
	'w.a = n.a', 'n.a = w.a', 'n.a = w.a AND w.r > n.name', 'w.a > n.a AND n.a = w.r']) clause, unnest(ARRAY[
	'SELECT w.id, w.r, n.name FROM (SELECT id, a, row_number() OVER (PARTITION BY a ORDER BY b, id) AS r FROM lift.l) w JOIN lift.names n ON %s',
	'SELECT n.a, w.r, n.name FROM lift.names n LEFT JOIN (SELECT a, count(DISTINCT b)::int AS r FROM lift.l GROUP BY a) w ON %s',
	'SELECT w.id, w.r FROM (SELECT a AS id, a, count(DISTINCT b)::int AS r FROM lift.l GROUP BY a) w WHERE EXISTS (SELECT FROM lift.names n WHERE %s)']) side,
	unnest(ARRAY['enable_hashjoin', 'enable_mergejoin', 'enable_nestloop']) settings;
CREATE FUNCTION lift.by_join(setting text, query text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config(join_setting, (join_setting = setting)::text, true) FROM unnest(ARRAY['enable_hashjoin', 'enable_mergejoin', 'enable_nestloop']) join_setting;
	RETURN CASE WHEN lift.forced_sorted_digest(query) = lift.native_sorted_digest(query) THEN 'same' ELSE 'other rows' END;
END $$;
SELECT is(lift.by_join('enable_hashjoin', 'SELECT b, rank() OVER (ORDER BY b, c NULLS FIRST) AS r FROM (SELECT DISTINCT b, c FROM lift.l) d'), 'same', 'a window over a sort of what comes in ranges');
SELECT is(lift.by_join(settings, query), 'same', settings || ': ' || query) FROM lift.joined ORDER BY settings COLLATE "C", query COLLATE "C";
SELECT * FROM finish();
