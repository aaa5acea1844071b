\set ECHO none
-- Which plan is chosen, by cost: PostgreSQL's heap or hash table, or GpuSort, in one process and in several.
SET client_min_messages = warning;
LOAD 'gpusort';
\pset format unaligned
\pset tuples_only on

CREATE TABLE gs.choice AS
SELECT i AS id, hashint4(i) AS u, i % 50 AS few, hashint4(i) % 1000 AS thousand, hashint4(i + 1) % 150000 AS many, i::float8 AS f, i::numeric AS n
FROM generate_series(1, 300000) i;
CREATE TABLE gs.other AS SELECT u, id AS v FROM gs.choice ORDER BY id % 1000;
CREATE TABLE gs.short AS SELECT u, id AS v FROM gs.choice WHERE id <= 1000;
CREATE TABLE gs.misjudged AS SELECT id, u FROM gs.choice;
ALTER TABLE gs.misjudged ALTER u SET (n_distinct = 40000);
-- one value has half of the rows, the others are many, or few
CREATE TABLE gs.giant AS SELECT i AS id, CASE WHEN i % 2 > 0 THEN hashint4(i) ELSE 0 END AS u, CASE WHEN i % 2 > 0 THEN i % 200 ELSE 7 END AS few, CASE WHEN i % 2 > 0 THEN hashint4(i) END AS n FROM generate_series(1, 300000) i;
CREATE TABLE gs.told AS SELECT * FROM gs.giant;
ALTER TABLE gs.told ALTER u SET (n_distinct = 27000);
ANALYZE gs.choice, gs.other, gs.short, gs.misjudged, gs.giant, gs.told;

-- What does the work: the first node of the plan that groups, joins or sorts, and what is below it.
CREATE FUNCTION gs.chosen(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan text := gs.plan(query);
BEGIN
	RETURN concat_ws(' ', CASE WHEN plan ~ 'HashAggregate|HashSetOp|Hash (Right |Left |Semi |Anti )?Join|MixedAggregate' THEN 'hash' END,
					 CASE WHEN plan ~ '-> +Sort|^Sort' THEN 'sort' END, CASE WHEN plan ~ 'GpuSort\)' THEN 'gpusort' END,
					 CASE WHEN plan ~ 'Gather|GpuSortIngest|GpuSortExchange' THEN 'parallel' END);
END $$;

SELECT * FROM no_plan();
SET gpusort.engine = host;
SET work_mem = '64MB';
SET max_parallel_workers_per_gather = 0;
SELECT isnt(gs.node('SELECT u FROM gs.choice ORDER BY f'), NULL, 'a sort, for which the staging pool is mapped');

-- the first rows
SELECT is(gs.chosen('SELECT * FROM gs.choice ORDER BY u' || clause), chosen, 'by u' || clause)
FROM (VALUES (' LIMIT 1', 'gpusort'), (' LIMIT 10', 'gpusort'), (' LIMIT 3000', 'gpusort'), (' LIMIT 100000', 'gpusort'), (' LIMIT 250000', 'gpusort'), (' OFFSET 200000 LIMIT 100', 'gpusort'), ('', 'gpusort')) v (clause, chosen);
-- an index, or indexes of partitions, give them soon, through nodes that give rows while they read; but not all rows
CREATE TABLE gs.indexed (id int PRIMARY KEY, a int, b int);
CREATE TABLE gs.by_range (LIKE gs.indexed, PRIMARY KEY (id)) PARTITION BY RANGE (id);
CREATE TABLE gs.by_range_1 PARTITION OF gs.by_range FOR VALUES FROM (0) TO (150001);
CREATE TABLE gs.by_range_2 PARTITION OF gs.by_range FOR VALUES FROM (150001) TO (300001);
CREATE TABLE gs.by_hash (LIKE gs.indexed, PRIMARY KEY (id)) PARTITION BY HASH (id);
CREATE TABLE gs.by_hash_1 PARTITION OF gs.by_hash FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE gs.by_hash_2 PARTITION OF gs.by_hash FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO gs.indexed SELECT i, i / 10, hashint4(i) FROM generate_series(1, 300000) i;
INSERT INTO gs.by_range SELECT * FROM gs.indexed;
INSERT INTO gs.by_hash SELECT * FROM gs.indexed;
CREATE INDEX ON gs.indexed (a);
ANALYZE gs.indexed, gs.by_range, gs.by_hash;
SELECT is(gs.chosen(query) ~ 'gpusort', false, query) FROM (SELECT set_config('max_parallel_workers_per_gather', workers, true) FROM (VALUES ('0'), ('2')) w (workers)) s,
	  (VALUES ('SELECT * FROM gs.by_range ORDER BY id LIMIT 5'), ('SELECT * FROM gs.by_range ORDER BY id DESC LIMIT 500'), ('SELECT * FROM gs.by_hash ORDER BY id LIMIT 5'),
	   ('SELECT id, count(*) FROM gs.by_hash GROUP BY id ORDER BY id LIMIT 5'), ('SELECT a, b, count(*) FROM gs.indexed GROUP BY a, b ORDER BY a, b LIMIT 5'), ('SELECT DISTINCT ON (a) * FROM gs.indexed ORDER BY a, b LIMIT 5'),
	   ('SELECT * FROM gs.indexed x JOIN gs.indexed y USING (id) ORDER BY x.a LIMIT 5'), ('SELECT * FROM gs.indexed ORDER BY a LIMIT 1 FOR UPDATE SKIP LOCKED'),
	   ('SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY a ORDER BY b) FROM gs.indexed) s LIMIT 5'), ('SELECT * FROM gs.indexed ORDER BY a, b FETCH FIRST 5 ROWS WITH TIES'),
	   ('SELECT * FROM (SELECT a, b FROM gs.indexed ORDER BY a, b OFFSET 5) s LIMIT 5'), ('SELECT * FROM (SELECT DISTINCT a, b FROM gs.indexed ORDER BY a, b LIMIT 200000) s LIMIT 5')) v (query);
SELECT matches(gs.plan('SELECT i.id, u.b, row_number() OVER () FROM gs.indexed i LEFT JOIN (SELECT u AS b, f, count(DISTINCT n) FROM gs.choice WHERE id <= 100000 GROUP BY 1, 2) u ON u.b = i.id LIMIT 10'), 'Hash.*GpuSort', 'and the side that a hash join reads whole');
SELECT matches(gs.chosen(query), 'gpusort', query) FROM (VALUES ('SELECT * FROM gs.by_hash ORDER BY b LIMIT 5'), ('SELECT DISTINCT ON (a) * FROM gs.indexed ORDER BY a, b')) v (query);
DROP TABLE gs.indexed, gs.by_range, gs.by_hash;
-- each row is compared where it lies, and PostgreSQL's heap is slower from a few thousand rows on
SELECT is(gs.chosen('SELECT * FROM ' || query || ' LIMIT 10'), chosen, query)
FROM (VALUES ('gs.choice WHERE id <= 20000 ORDER BY u', 'gpusort'), ('gs.choice WHERE few < 15 ORDER BY u', 'gpusort'), ('(SELECT * FROM gs.choice WHERE id <= 3000 OFFSET 0) a ORDER BY u', 'gpusort'), ('gs.choice WHERE id <= 1500 ORDER BY u', 'sort'), ('gs.choice ORDER BY id', 'gpusort'), ('gs.choice ORDER BY id DESC', 'gpusort'), ('gs.choice ORDER BY n', 'gpusort'),
	  ('gs.choice ORDER BY timestamp ''2026-11-29'' + f * interval ''1 s''', 'gpusort'), ('(SELECT u, few FROM gs.choice UNION ALL SELECT u, v FROM gs.other) a ORDER BY u', 'gpusort'), ('(SELECT u, few FROM gs.choice UNION ALL SELECT u + 1, v FROM gs.other) a ORDER BY u', 'gpusort')) v (query, chosen);
SELECT is(gs.chosen('SELECT f, u FROM gs.choice ORDER BY u LIMIT 10'), 'gpusort', 'of some columns');
SET gpusort.page_scan = off;
SELECT is(gs.chosen('SELECT * FROM gs.choice ORDER BY u LIMIT 10'), 'gpusort', 'rows that come one by one');
RESET gpusort.page_scan;
SELECT is(gs.chosen('SELECT * FROM gs.choice ORDER BY n::text COLLATE "C" LIMIT 10'), 'gpusort', 'the first of strings, which the heap compares slowly');

-- groups
SELECT is(gs.chosen(format('SELECT %s, count(*), sum(f) FROM gs.choice GROUP BY %1$s', key)), chosen, 'GROUP BY ' || key)
FROM (VALUES ('few', 'hash'), ('thousand', 'hash'), ('many', 'gpusort'), ('u', 'gpusort')) v (key, chosen);
SELECT is(gs.chosen(format('SELECT %s FROM gs.choice GROUP BY %1$s HAVING %1$s > 0', key)), chosen, 'without an aggregate, GROUP BY ' || key)
FROM (VALUES ('few', 'hash'), ('u', 'gpusort')) v (key, chosen);
SELECT is(gs.chosen('SELECT u, count(*) FROM gs.choice GROUP BY u ORDER BY u'), 'gpusort', 'groups in order');
SELECT is(gs.chosen('SELECT few, u, sum(f) FROM gs.choice GROUP BY ROLLUP (few, u)'), 'gpusort', 'grouping sets');
SELECT is(gs.chosen('SELECT u, count(*) FROM gs.short GROUP BY u'), 'hash', 'groups of few rows');
SELECT is(gs.chosen('SELECT u, count(*) FROM gs.misjudged GROUP BY u'), 'hash', 'where both take about as long');
SET work_mem = '2MB';
SELECT is(gs.chosen('SELECT u, count(*) FROM gs.misjudged GROUP BY u'), 'gpusort', 'where hashing suffers if there are more groups than estimated');
SET work_mem = '64MB';
SELECT is(gs.chosen(format(query, tablename)), chosen, format(query, tablename))
FROM (VALUES ('giant', 'gpusort'), ('told', 'hash')) v (tablename, chosen), unnest(ARRAY['SELECT u, count(*), sum(id) FROM gs.%s GROUP BY u', 'SELECT DISTINCT u FROM gs.%s', 'SELECT u FROM gs.%s GROUP BY u']) query;
SELECT is(gs.chosen('SELECT few, count(*), sum(id) FROM gs.giant GROUP BY few'), 'hash', 'a giant group and few others');
SELECT is(gs.chosen('SELECT u + 0, count(*) FROM gs.giant GROUP BY 1'), 'hash', 'of an expression nothing is known');
SELECT is(gs.digest(query), gs.native_digest(query), query)
FROM (VALUES ('SELECT u, count(*), sum(id), avg(id) FROM gs.giant GROUP BY u ORDER BY u'), ('SELECT DISTINCT u FROM gs.giant ORDER BY u'), ('SELECT n, count(*), sum(id) FROM gs.giant GROUP BY n ORDER BY n'),
	  ('SELECT count(DISTINCT u), count(DISTINCT n) FROM gs.giant'), ('SELECT u, count(*) FROM gs.giant WHERE u <> 0 GROUP BY u ORDER BY u')) v (query);
SELECT unalike(gs.chosen('SELECT array_agg(id) FROM gs.choice GROUP BY u::text::oidvector'), '%gpusort%', 'not a type without an encoding');
SELECT is(gs.digest(query), gs.native_digest(query), query)
FROM (VALUES ('SELECT u, count(*), sum(n), max(id) FROM gs.choice GROUP BY u HAVING count(*) < 3 ORDER BY u'), ('SELECT many, few, sum(n) FROM gs.choice GROUP BY many, few ORDER BY many, few'),
	  ('SELECT few, u, sum(f) FROM gs.choice GROUP BY ROLLUP (few, u) ORDER BY 1, 2'), ('SELECT u % 50000, 1 + count(*) FILTER (WHERE id > 7) FROM gs.choice GROUP BY 1 ORDER BY 1')) v (query);

-- DISTINCT and set operations
SELECT is(gs.chosen(format('SELECT DISTINCT %s FROM gs.choice', keys)), chosen, 'DISTINCT ' || keys)
FROM (VALUES ('few', 'hash'), ('thousand', 'hash'), ('u', 'gpusort'), ('u, f', 'gpusort'), ('ON (u) *', 'gpusort'), ('ON (few) *', 'gpusort')) v (keys, chosen);
SELECT is(gs.chosen(query), 'gpusort', query)
FROM (VALUES ('SELECT u FROM gs.choice UNION SELECT v FROM gs.other'), ('SELECT u FROM gs.choice INTERSECT SELECT u FROM gs.other')) v (query);
SELECT is(gs.digest(query || ' ORDER BY 1, 2'), gs.native_digest(query || ' ORDER BY 1, 2'), query)
FROM (VALUES ('SELECT DISTINCT u, f FROM gs.choice'), ('SELECT u, few FROM gs.choice UNION SELECT v, 1 FROM gs.other'), ('(SELECT u, 1 FROM gs.choice UNION SELECT v, 2 FROM gs.other) EXCEPT SELECT u, 1 FROM gs.short')) v (query);

-- joins: hashed on disk
SET work_mem = '1MB';
SELECT is(gs.chosen(query), chosen, query)
FROM (VALUES ('SELECT * FROM gs.choice JOIN gs.other USING (u)', 'gpusort'), ('SELECT * FROM gs.choice LEFT JOIN gs.other USING (u)', 'gpusort'),
	  ('SELECT * FROM gs.choice c WHERE EXISTS (SELECT FROM gs.other o WHERE o.u = c.u)', 'gpusort'), ('SELECT * FROM gs.choice c WHERE NOT EXISTS (SELECT FROM gs.other o WHERE o.u = c.u)', 'gpusort'),
	  ('SELECT * FROM gs.choice JOIN gs.short USING (u)', 'hash')) v (query, chosen);
SELECT is(gs.digest(query || ' ORDER BY 1, 2'), gs.native_digest(query || ' ORDER BY 1, 2'), query)
FROM (VALUES ('SELECT c.id, o.v FROM gs.choice c JOIN gs.other o USING (u)'), ('SELECT c.id, o.v FROM gs.choice c LEFT JOIN gs.other o ON o.u = c.u AND o.v > c.id'),
	  ('SELECT c.id, 0 FROM gs.choice c WHERE EXISTS (SELECT FROM gs.other o WHERE o.u = c.u AND o.v % 3 = 0)'), ('SELECT c.id, 0 FROM gs.choice c WHERE NOT EXISTS (SELECT FROM gs.other o WHERE o.u = c.u AND o.v % 3 = 0)')) v (query);
SELECT is(gs.chosen('UPDATE gs.choice SET f = o.v FROM gs.other o WHERE o.u = choice.u'), 'hash', 'not of what is to be changed');

SET work_mem = '64MB';

-- nothing of that against the settings
SET enable_sort = off;
SELECT is(gs.chosen(query), 'hash', 'enable_sort = off: ' || query)
FROM (VALUES ('SELECT DISTINCT u FROM gs.choice'), ('SELECT u, count(*) FROM gs.choice GROUP BY u'), ('SELECT * FROM gs.choice JOIN gs.other USING (u)')) v (query);
SELECT is(gs.chosen('SELECT * FROM gs.choice ORDER BY u'), 'gpusort', 'enable_sort = off, where nothing else gives the order');
CREATE INDEX choice_u ON gs.choice (u);
SELECT is(gs.chosen('SELECT * FROM gs.choice ORDER BY u'), '', 'enable_sort = off, where an index gives it');
DROP INDEX gs.choice_u;
RESET enable_sort;
SET work_mem = '1MB';
SET enable_mergejoin = off;
SELECT is(gs.chosen('SELECT * FROM gs.choice JOIN gs.other USING (u)'), 'hash', 'enable_mergejoin = off');
RESET enable_mergejoin;
SET work_mem = '64MB';
SET gpusort.min_rows = 1000000;
SELECT is(gs.chosen(query), 'hash', 'fewer rows than gpusort.min_rows: ' || query)
FROM (VALUES ('SELECT DISTINCT u FROM gs.choice'), ('SELECT u, count(*) FROM gs.choice GROUP BY u'), ('SELECT * FROM gs.choice JOIN gs.other USING (u)')) v (query);
RESET gpusort.min_rows;
SET gpusort.setup_cost = 1e9;
SELECT is(gs.chosen(query), 'hash', 'a setup cost out of proportion: ' || query)
FROM (VALUES ('SELECT DISTINCT u FROM gs.choice'), ('SELECT u, count(*) FROM gs.choice GROUP BY u'), ('SELECT * FROM gs.choice JOIN gs.other USING (u)')) v (query);
RESET gpusort.setup_cost;

-- in several processes
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT is(gs.chosen(query), chosen, 'with workers: ' || query)
FROM (VALUES ('SELECT * FROM gs.choice ORDER BY u LIMIT 10', 'gpusort parallel'),
	  ('SELECT * FROM gs.choice ORDER BY u LIMIT 100000', 'gpusort parallel'), ('SELECT u, count(*) FROM gs.choice GROUP BY u', 'gpusort parallel'),
	  ('SELECT DISTINCT u, f FROM gs.choice', 'gpusort parallel'), ('SELECT sum(f) OVER (PARTITION BY many ORDER BY u) FROM gs.choice', 'gpusort parallel'),
	  ('SELECT u FROM gs.choice UNION SELECT v FROM gs.other', 'gpusort parallel'), ('SELECT u FROM gs.choice EXCEPT SELECT u FROM gs.other', 'gpusort parallel'), ('SELECT * FROM gs.choice JOIN gs.other USING (u)', 'gpusort parallel'),
	  ('SELECT * FROM gs.choice LEFT JOIN gs.other USING (u)', 'gpusort parallel'), ('SELECT * FROM gs.choice c WHERE NOT EXISTS (SELECT FROM gs.other o WHERE o.u = c.u)', 'gpusort parallel')) v (query, chosen);
SELECT is(gs.digest(query || ' ORDER BY 1, 2'), gs.native_digest(query || ' ORDER BY 1, 2'), 'with workers: ' || query)
FROM (VALUES ('SELECT u, count(*), sum(n) FROM gs.choice GROUP BY u'), ('SELECT DISTINCT u, f FROM gs.choice'), ('SELECT u, few FROM gs.choice UNION SELECT v, 1 FROM gs.other'),
	  ('SELECT c.id, o.v FROM gs.choice c JOIN gs.other o USING (u)'), ('SELECT c.id, 0 FROM gs.choice c WHERE NOT EXISTS (SELECT FROM gs.other o WHERE o.u = c.u AND o.v % 3 = 0)'),
	  ('SELECT id, sum(f) OVER (PARTITION BY many ORDER BY u, id) FROM gs.choice')) v (query);

-- a CTE that is grouped by sorting in the place of PostgreSQL's hashing has no order for what is planned above it
SET max_parallel_workers_per_gather = 0;
SET enable_hashjoin = off;
SELECT matches(gs.plan('WITH w AS MATERIALIZED (SELECT u, count(*) AS c FROM gs.choice GROUP BY u) SELECT count(*) FROM w a JOIN w b USING (u)'),
			   'GroupAggregate.*GpuSort.*Merge Join.*Sort Key: [ab]\.u.*CTE Scan.*Sort Key: [ab]\.u.*CTE Scan', 'no order of a CTE');
RESET enable_hashjoin;
SET max_parallel_workers_per_gather = 2;

-- the workers are started once for both sides of a join
SET parallel_setup_cost = 1000;
SELECT is(gs.chosen('SELECT * FROM gs.choice JOIN gs.other USING (u)'), 'gpusort parallel', 'where workers are dear');
SET parallel_setup_cost = 0;

-- what is above a sort, in all of them only where that takes less time than passing the rows on
SET max_parallel_workers_per_gather = 1;
SET enable_hashagg = off;
SELECT is(gs.plan(query) ~ 'GpuSortExchange', lifted, CASE WHEN lifted THEN 'in both processes: ' ELSE 'in one process: ' END || query)
FROM (VALUES ('SELECT sum(f) FROM (SELECT DISTINCT u, f FROM gs.choice OFFSET 0) s', false), ('SELECT sum(f) FROM (SELECT u, f FROM gs.choice GROUP BY u, f OFFSET 0) s', false),
	  ('SELECT sum(id) FROM (SELECT id, rank() OVER (PARTITION BY many ORDER BY u) FROM gs.choice OFFSET 0) s', false),
	  ('SELECT DISTINCT u, f FROM gs.choice', true), ('SELECT u, f FROM gs.choice GROUP BY u, f', true), ('SELECT id, rank() OVER (PARTITION BY many ORDER BY u) FROM gs.choice', true), ('SELECT sum(f) OVER (PARTITION BY many ORDER BY u) FROM gs.choice', true),
	  ('SELECT many, count(DISTINCT id) FROM gs.choice GROUP BY many', true), ('SELECT DISTINCT ON (thousand) * FROM gs.choice ORDER BY thousand, u', true)) v (query, lifted);
-- of two orders that is sorted which takes PostgreSQL longer, unless it is as good in order; from 16 on it sorts one itself
SELECT ok(current_setting('server_version_num')::int >= 160000 OR gs.plan(query) ~ sorted, query)
FROM (VALUES ('SELECT count(DISTINCT u), count(DISTINCT id::text) FROM gs.choice HAVING count(*) > 0', 'GpuSort.*Sort Key: ..id.::text'), ('SELECT count(DISTINCT id::text), count(DISTINCT u) FROM gs.choice HAVING count(*) > 0', 'GpuSort.*Sort Key: ..id.::text'),
	  ('SELECT count(DISTINCT u), count(DISTINCT id) FROM gs.choice HAVING count(*) > 0', '^((?!GpuSort).)*$')) v (query, sorted);
SET gpusort.force = on;
SELECT alike(gs.plan('SELECT DISTINCT u, f FROM gs.choice'), '%GpuSortExchange%', 'by force');
RESET gpusort.force;
RESET enable_hashagg;

-- another module's advice for joins, from PostgreSQL 19 on: they are as it says, and it can tell of them
SET max_parallel_workers_per_gather = 0;
CREATE FUNCTION gs.has_advice() RETURNS bool LANGUAGE plpgsql AS $$
BEGIN
	IF current_setting('server_version_num')::int >= 190000 THEN
		LOAD 'pg_plan_advice';
		SET pg_plan_advice.advice = 'HASH_JOIN(other)';
		RETURN true;
	END IF;
	RETURN false;
EXCEPTION WHEN undefined_file THEN RETURN false; -- a module of contrib, which need not be there
END $$;
SELECT gs.has_advice() AS has_advice \gset
SELECT is(CASE WHEN :'has_advice' THEN gs.chosen('SELECT * FROM gs.choice JOIN gs.other USING (u)') ELSE 'hash' END, 'hash', 'advice to hash');
SELECT lives_ok(CASE WHEN :'has_advice' THEN 'EXPLAIN (PLAN_ADVICE) ' ELSE '' END || 'SELECT * FROM gs.choice JOIN (SELECT u FROM gs.other ORDER BY v OFFSET 1) s USING (u) ORDER BY id', 'advice to be had');

SELECT * FROM finish();
DROP FUNCTION gs.has_advice;
DROP TABLE gs.choice, gs.other, gs.short, gs.misjudged;
DROP FUNCTION gs.chosen;
