\set ECHO none
-- DISTINCT, GROUP BY without aggregates, and windows that stop: of each group the first rows alone are looked at, and
-- the service may leave the others out (src/plan/finish/kept_rows.c, src/sort/repeats.c): which plans say so, and their
-- answers, which are PostgreSQL's.
SET client_min_messages = warning;
LOAD 'gpusort';
\pset format unaligned
\pset tuples_only on
SELECT * FROM no_plan();

CREATE SCHEMA fog;
CREATE TYPE fog.mood AS ENUM ('sad', 'calm', 'glad');
CREATE TYPE fog.pair AS (a int, b numeric);
CREATE COLLATION fog.caseless (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE COLLATION fog.english (provider = icu, locale = 'en');
-- id is unique, g has groups of 1 to 60 rows; the others have few values, NULLs, and such as are equal and look different
CREATE TABLE fog.many AS
SELECT i AS id, i * 7919 % 3001 % 211 AS g, CASE WHEN i % 9 > 0 THEN (i * 31 % 23)::int2 END AS s,
	   CASE WHEN i % 13 > 0 THEN i * 37 % 101 - 50 END AS n, CASE WHEN i % 5 > 0 THEN (i * 53 % 89 - 40)::int8 * 1000000007 END AS big,
	   (ARRAY['NaN', '-0', '0', '1e-300', '-Infinity', 'Infinity', '-1.5', NULL])[1 + i * 41 % 8]::float8 AS f,
	   (ARRAY['NaN', '-0', '0', '3.25'])[1 + i * 43 % 5]::float4 AS r,
	   (ARRAY['1.0', '1.00', '1', '-7.5', 'NaN', '0.000', '0', '12345678901234567890.12345678901234567890', '12345678901234567890.123456789012345678901', NULL])[1 + i * 17 % 10]::numeric AS num,
	   (ARRAY['', 'a', 'A', 'ab', 'aB', 'a long string that the key does not hold whole, number one', 'a long string that the key does not hold whole, number two', NULL])[1 + i * 19 % 8] AS t,
	   'value ' || i * 41 % 400 AS v, i % 3 > 0 AS b, '2026-01-01'::date + i * 13 % 50 AS d,
	   '2026-01-01'::timestamptz + i * 13 % 70 * interval '1 hour' AS ts, (ARRAY['1 day', '24 hours', '1 mon', '30 days', '-1 sec'])[1 + i % 5]::interval AS iv,
	   (md5((i % 40)::text))::uuid AS u, (ARRAY['10.0.0.1', '10.0.0.1/8', '::1', NULL])[1 + i % 4]::inet AS ip,
	   ('\x' || md5((i % 30)::text))::bytea AS y, (ARRAY['sad', 'calm', 'glad', NULL])[1 + i * 3 % 4]::fog.mood AS m,
	   CASE WHEN i % 7 > 0 THEN ARRAY[i % 3, NULL, i % 2] END AS a, to_jsonb((i % 11) * CASE WHEN i % 2 = 0 THEN 1.0 ELSE 1.00 END) AS j,
	   ROW(i % 4, CASE WHEN i % 2 = 0 THEN 1.5 ELSE 1.50 END)::fog.pair AS p, int4range(i % 6, i % 6 + i % 4) AS ra,
	   (i % 8)::bit(5) AS bt, (ARRAY['x', 'x ', 'y'])[1 + i % 3]::char(4) AS c, ('10:00:00+0' || i % 3)::timetz AS tz
FROM generate_series(1, 3000) i;
ALTER TABLE fog.many SET (parallel_workers = 2);
CREATE TABLE fog.none (LIKE fog.many);
CREATE TABLE fog.parts (LIKE fog.many) PARTITION BY LIST (b);
CREATE TABLE fog.part_1 PARTITION OF fog.parts FOR VALUES IN (true);
CREATE TABLE fog.part_2 PARTITION OF fog.parts FOR VALUES IN (false);
INSERT INTO fog.parts SELECT * FROM fog.many;
ANALYZE fog.many, fog.none, fog.parts;

SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 1;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SET enable_hashagg = off;

-- What the plan's GpuSort says
CREATE FUNCTION fog.kept(query text) RETURNS text LANGUAGE sql AS
$$ SELECT substring(gs.forced_plan(query) FROM 'Rows Kept: ([^\n]*)') $$;

CREATE TABLE fog.query (ordinal serial, kept text, query text);
INSERT INTO fog.query (kept, query) VALUES
	('first 1 of each group', 'SELECT DISTINCT ON (g) g, id, d FROM fog.many ORDER BY g, id'),
	('first 1 of each group', 'SELECT DISTINCT ON (g) g, id, d FROM fog.many ORDER BY g DESC NULLS LAST, d DESC, id'),
	('first 1 of each group', 'SELECT DISTINCT ON (s, g) s, g, id FROM fog.many ORDER BY g, s DESC, id'),
	('first 1 of each group', 'SELECT DISTINCT ON (g) g, id FROM fog.many ORDER BY g, t COLLATE "C", id'),
	('first 1 of each group', 'SELECT DISTINCT ON (g) g, v, id FROM fog.many ORDER BY g, v COLLATE "C" DESC, id'),
	('first 1 of each group', 'SELECT DISTINCT ON (v COLLATE "C") v, id FROM fog.many ORDER BY v COLLATE "C", id DESC'),
	('first 1 of each group', 'SELECT DISTINCT g, s, d FROM fog.many'),
	('first 1 of each group', 'SELECT DISTINCT v COLLATE "C", b FROM fog.many'),
	('first 1 of each group', 'SELECT g, s FROM fog.many GROUP BY g, s'),
	('first 1 of each group', 'SELECT g, s FROM fog.many GROUP BY s, g HAVING g + s > 100'),
	('first 1 of each group', 'SELECT count(DISTINCT g) FROM fog.many'),
	('first 1 of each group', 'SELECT s, count(DISTINCT g), sum(DISTINCT g) FROM fog.many GROUP BY s'),
	('first 1 of each group', 'SELECT id, g FROM (SELECT id, g, row_number() OVER (PARTITION BY g ORDER BY d, id) AS r FROM fog.many) q WHERE r = 1'),
	('first 3 of each group', 'SELECT * FROM (SELECT id, g, row_number() OVER (PARTITION BY g ORDER BY d DESC, id) AS r FROM fog.many) q WHERE r <= 3'),
	('first 3 of each group', 'SELECT id FROM (SELECT id, g, row_number() OVER (PARTITION BY g, s ORDER BY id) AS r FROM fog.many) q WHERE 3 >= r AND id % 2 = 0'),
	('first 2 of each group', 'SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY g ORDER BY id) AS r FROM fog.many) q WHERE r < 3'),
	('first 2 of each group', 'SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY g ORDER BY id) AS r FROM fog.many) q WHERE r = 2'),
	('first 4 of each group', 'SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY g ORDER BY id) AS r FROM fog.many) q WHERE r BETWEEN 2 AND 4'),
	('first 2 of each group, with ties', 'SELECT * FROM (SELECT id, g, rank() OVER (PARTITION BY g ORDER BY s) AS r FROM fog.many) q WHERE r <= 2'),
	('first 1 of each group, with ties', 'SELECT * FROM (SELECT id, g, rank() OVER (PARTITION BY g ORDER BY d DESC, s NULLS FIRST) AS r FROM fog.many) q WHERE r = 1'),
	('first 2 of each group, with ties', 'SELECT * FROM (SELECT id, g, rank() OVER (PARTITION BY g ORDER BY t COLLATE "C") AS r FROM fog.many) q WHERE r <= 2'),
	('first 1 of each group, with ties', 'SELECT * FROM (SELECT id, g, dense_rank() OVER (PARTITION BY g ORDER BY d) AS r FROM fog.many) q WHERE r = 1'),
	('first 1 of each group, with ties', 'SELECT * FROM (SELECT id, g, dense_rank() OVER (PARTITION BY g ORDER BY d) AS r FROM fog.many) q WHERE r < 2'),
	('first 2 of each group', 'SELECT * FROM (SELECT id, row_number() OVER w AS r, rank() OVER w AS r2, dense_rank() OVER w AS r3 FROM fog.many WINDOW w AS (PARTITION BY g ORDER BY d, id)) q WHERE r <= 2'),
	('first 1 of each group', 'SELECT max(id), count(*) FROM (SELECT DISTINCT ON (g) g, id FROM fog.many ORDER BY g, id) q'),
	('first 1 of each group', 'SELECT q.id, w.id FROM (SELECT DISTINCT ON (g) g, id FROM fog.many ORDER BY g, id) q JOIN fog.many w ON w.id = q.g'),
	('first 1 of each group', 'SELECT DISTINCT ON (g) g, id FROM (SELECT * FROM fog.many ORDER BY g, id OFFSET 0) q ORDER BY g'),
	('first 1 of each group', 'SELECT DISTINCT ON (g) g, id FROM fog.none ORDER BY g, id'),
	-- others look at more rows
	('first 1 of each group, counted', 'SELECT g, count(*) FROM fog.many GROUP BY g'),
	(NULL, 'SELECT s, count(DISTINCT g), count(*) FROM fog.many GROUP BY s'),
	(NULL, 'SELECT * FROM (SELECT id, sum(n) OVER (PARTITION BY g ORDER BY id), row_number() OVER (PARTITION BY g ORDER BY id) AS r FROM fog.many) q WHERE r <= 2'),
	(NULL, 'SELECT * FROM (SELECT id, count(*) OVER (PARTITION BY g), row_number() OVER (PARTITION BY g ORDER BY id) AS r FROM fog.many) q WHERE r <= 2'),
	(NULL, 'SELECT * FROM (SELECT id, lead(id) OVER w, row_number() OVER w AS r FROM fog.many WINDOW w AS (PARTITION BY g ORDER BY id)) q WHERE r = 1'),
	(NULL, 'SELECT * FROM (SELECT id, ntile(2) OVER w, row_number() OVER w AS r FROM fog.many WINDOW w AS (PARTITION BY g ORDER BY id)) q WHERE r = 1'),
	(NULL, 'SELECT * FROM (SELECT id, dense_rank() OVER (PARTITION BY g ORDER BY d) AS r FROM fog.many) q WHERE r <= 2'),
	(NULL, 'SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY g ORDER BY id) AS r FROM fog.many) q WHERE r > 2'),
	(NULL, 'SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY g ORDER BY id) AS r FROM fog.many) q WHERE r <> 1'),
	(NULL, 'SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY g ORDER BY id) AS r FROM fog.many) q WHERE r <= 2 OR id < 100'),
	(NULL, 'SELECT * FROM (SELECT id, n, row_number() OVER (PARTITION BY g ORDER BY id) AS r FROM fog.many) q WHERE r <= n'),
	(NULL, 'SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY g ORDER BY id) AS r FROM fog.many) q WHERE r <= 0'),
	(NULL, 'SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY g ORDER BY id) AS r FROM fog.many) q WHERE r <= NULL::int'),
	(NULL, 'SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY g ORDER BY id) AS r FROM fog.many) q WHERE r <= (SELECT min(id) + 1 FROM fog.many)'),
	(NULL, 'SELECT id, row_number() OVER (PARTITION BY g ORDER BY id) AS r FROM fog.many'),
	(NULL, 'SELECT id, g FROM fog.many ORDER BY g, id');
SELECT is(fog.kept(query), kept, query) FROM fog.query ORDER BY ordinal;

-- Two windows: rows that the first leaves out would be missing in the other.
SELECT is(fog.kept(query), NULL, query) FROM (VALUES
	('SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY g ORDER BY id) AS r, rank() OVER (PARTITION BY s ORDER BY d) AS r2 FROM fog.many) q WHERE r = 1 AND r2 < 5'),
	('SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY g ORDER BY id) AS r, sum(n) OVER (PARTITION BY s) AS r2 FROM fog.many) q WHERE r = 1')) q(query)
WHERE gs.forced_plan(query) !~ 'Rows Kept';

-- The answers: in parallel, in one process, and where PostgreSQL sorts; with rows verified.
CREATE FUNCTION fog.compare(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	native text[] := gs.native_sorted_rows(query);
	result text := gs.difference(native, gs.forced_sorted_rows(query));
BEGIN
	IF result = 'same' THEN
		result := gs.difference(native, gs.alone_sorted_rows(query));
	END IF;
	RETURN result;
END $$;
SELECT is(fog.compare(query), 'same', query) FROM fog.query ORDER BY ordinal;
SET gpusort.verify_rows = on;
SELECT is(gs.difference(gs.native_sorted_rows(query), gs.forced_sorted_rows(query)), 'same', 'verified: ' || query) FROM fog.query WHERE kept IS NOT NULL ORDER BY ordinal;
RESET gpusort.verify_rows;
SELECT is(gs.difference(gs.native_sorted_rows(query), gs.refused_sorted_rows(query)), 'same', 'refused: ' || query) FROM fog.query WHERE kept IS NOT NULL ORDER BY ordinal LIMIT 6;

-- Every type: by id it is seen which row of a group was first.
CREATE TABLE fog.types (ordinal serial, key text);
INSERT INTO fog.types (key)
SELECT unnest(ARRAY['s', 'n', 'big', 'f', 'r', 'num', 't COLLATE "C"', 't COLLATE fog.english', 't COLLATE fog.caseless', 't', 'v COLLATE "C"', 'b', 'd', 'ts', 'iv', 'u', 'ip', 'y', 'm', 'a', 'j', 'p', 'ra', 'bt', 'c', 'tz', 'f * -1', 'lower(t) COLLATE "C"', 'id::oid', 'v::name']);
SELECT is(gs.difference(gs.native_sorted_rows(sql), CASE WHEN parallel THEN gs.forced_sorted_rows(sql) ELSE gs.alone_sorted_rows(sql) END), 'same', sql)
FROM fog.types, (VALUES
	(true, 'SELECT DISTINCT ON (%1$s) id FROM fog.many ORDER BY %1$s, id'),
	(false, 'SELECT DISTINCT ON (%1$s) id FROM fog.many ORDER BY %1$s DESC NULLS LAST, g DESC, id'),
	(false, 'SELECT DISTINCT ON (s, %1$s) s, id FROM fog.many ORDER BY s, %1$s, id DESC'),
	(false, 'SELECT count(*) FROM (SELECT DISTINCT %1$s FROM fog.many) q'),
	(false, 'SELECT count(*) FROM (SELECT %1$s, b FROM fog.many GROUP BY 1, 2) q'),
	(false, 'SELECT count(DISTINCT %1$s) FROM fog.many'),
	(false, 'SELECT b, count(DISTINCT (%1$s)) FROM fog.many GROUP BY b'),
	(true, 'SELECT id, r FROM (SELECT id, row_number() OVER (PARTITION BY %1$s ORDER BY id DESC) AS r FROM fog.many) q WHERE r <= 3'),
	(false, 'SELECT id, r FROM (SELECT id, rank() OVER (PARTITION BY g ORDER BY %1$s) AS r FROM fog.many) q WHERE r <= 2'),
	(false, 'SELECT id, r FROM (SELECT id, rank() OVER (PARTITION BY %1$s ORDER BY d DESC) AS r FROM fog.many) q WHERE r <= 3'),
	(false, 'SELECT id, r FROM (SELECT id, dense_rank() OVER (PARTITION BY b ORDER BY %1$s DESC) AS r FROM fog.many) q WHERE r = 1')) q(parallel, query),
	format(query, key) sql
ORDER BY ordinal, query;

-- The service leaves rows out: how many are left, in one process; in runs more may be.
CREATE FUNCTION fog.left(query text) RETURNS int LANGUAGE sql SET max_parallel_workers_per_gather = 0 AS
$$ SELECT (gs.node(query)->>'Rows')::int $$;
SELECT ok(CASE WHEN (SELECT makes_runs FROM gs.service) THEN fog.left(query) <= 3000 ELSE fog.left(query) BETWEEN fewest AND most END, query || ': ' || fog.left(query))
FROM (VALUES
	('SELECT DISTINCT ON (g) g, id FROM fog.many ORDER BY g, id', 211, 211), ('SELECT DISTINCT g, s FROM fog.many', 500, 2999),
	('SELECT DISTINCT v COLLATE "C" FROM fog.many', 400, 400), ('SELECT DISTINCT ON (g) g, v, id FROM fog.many ORDER BY g, v COLLATE "C", id', 211, 400),
	('SELECT DISTINCT num FROM fog.many', 7, 900), ('SELECT DISTINCT ON (g) g, id FROM fog.many ORDER BY g, t COLLATE "C", id', 211, 1500),
	('SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY g ORDER BY id) AS r FROM fog.many) q WHERE r <= 3', 600, 633),
	('SELECT * FROM (SELECT id, rank() OVER (PARTITION BY g ORDER BY s) AS r FROM fog.many) q WHERE r <= 2', 422, 1500)) q(query, fewest, most);

-- Partitions, one by one and merged
SELECT is(fog.compare(replace(query, 'fog.many', 'fog.parts')), 'same', 'partitioned: ' || query) FROM fog.query WHERE kept IS NOT NULL ORDER BY ordinal;

-- The bound is a parameter of the statement: a plan is right for all of its values.
PREPARE fog_first(int) AS SELECT * FROM (SELECT id, g, row_number() OVER (PARTITION BY g ORDER BY d, id) AS r FROM fog.many) q WHERE r <= $1;
PREPARE fog_rank(int8) AS SELECT * FROM (SELECT id, g, rank() OVER (PARTITION BY g ORDER BY d) AS r FROM fog.many) q WHERE r < $1;
SET plan_cache_mode = force_generic_plan;
CREATE TABLE fog.bound (ordinal serial, query text);
INSERT INTO fog.bound (query) SELECT format('EXECUTE %s(%s)', name, value) FROM unnest(ARRAY['fog_first', 'fog_rank']) name, unnest(ARRAY['1', '2', '17', '0', '-3', 'NULL', '1000000']) value;
SELECT is(gs.difference(gs.in_order(gs.native_rows(query)), gs.in_order(gs.forced_rows(query))), 'same', query) FROM fog.bound ORDER BY ordinal;
SELECT is(fog.kept('EXECUTE fog_first(2)'), 'first 2 of each group', 'a parameter tells how many rows are kept');
SELECT is(fog.kept('EXECUTE fog_rank(2)'), 'first 1 of each group, with ties', 'one less than the parameter');
SELECT is(fog.kept('EXECUTE fog_first(NULL)'), NULL, 'NULL tells nothing');
SELECT is(fog.kept('EXECUTE fog_rank(1)'), NULL, 'no row is wanted');
RESET plan_cache_mode;
CREATE FUNCTION fog.loop(first int) RETURNS int8 LANGUAGE plpgsql AS $$
DECLARE
	total int8 := 0;
	row record;
BEGIN
	FOR row IN SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY g ORDER BY id) AS r FROM fog.many) q WHERE r <= first LOOP
		total := total + row.id;
		first := first + 1;
	END LOOP;
	RETURN total;
END $$;
SELECT is(fog.compare('SELECT fog.loop(i) FROM generate_series(0, 7) i'), 'same', 'a variable tells the bound');

-- Sorted again for each row outside, with other bounds
SELECT is(fog.compare(query), 'same', query) FROM (VALUES
	('SELECT b.n, x.id FROM (VALUES (1), (3), (NULL), (0), (2)) b(n), LATERAL (SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY g ORDER BY id) AS r FROM fog.many) q WHERE r <= b.n) x'),
	('SELECT b.n, x.id FROM (VALUES (1), (3), (NULL), (0), (2)) b(n), LATERAL (SELECT DISTINCT ON (g) id FROM fog.many WHERE id % 7 >= b.n ORDER BY g, id) x'),
	('SELECT b.n, x.id FROM (VALUES (1), (3), (1)) b(n), LATERAL (SELECT id FROM (SELECT id, g, row_number() OVER (PARTITION BY g + b.n ORDER BY id) AS r FROM fog.many) q WHERE r <= 2) x'),
	('SELECT g, (SELECT count(*) FROM (SELECT DISTINCT s FROM fog.many i WHERE i.g = o.g) q) FROM (SELECT DISTINCT g FROM fog.many WHERE g < 20) o'),
	('SELECT o.g, i.id FROM (SELECT DISTINCT g FROM fog.many) o CROSS JOIN LATERAL (SELECT id FROM fog.many i WHERE i.g = o.g ORDER BY d, id LIMIT 2) i')) q(query);

-- A view, of which a part is asked for
CREATE VIEW fog.first AS SELECT DISTINCT ON (g) g, id, d FROM fog.many ORDER BY g, d, id;
CREATE VIEW fog.ranked WITH (security_barrier) AS SELECT id, g, d, rank() OVER (PARTITION BY g ORDER BY d) AS r FROM fog.many;
SELECT is(fog.compare(query), 'same', query) FROM (VALUES
	('SELECT * FROM fog.first'), ('SELECT * FROM fog.first WHERE g > 100 AND id % 2 = 0'), ('SELECT * FROM fog.ranked WHERE r <= 2 AND id > 500'), ('SELECT count(*) FROM fog.ranked WHERE r = 1')) q(query);

-- Cursors go forward and back.
CREATE FUNCTION fog.fetched(query text) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
	rows refcursor;
	row record;
	result text[] := '{}';
BEGIN
	OPEN rows SCROLL FOR EXECUTE query;
	FOR step IN 1 .. 40 LOOP
		IF step % 5 = 0 THEN
			FETCH PRIOR FROM rows INTO row;
		ELSIF step % 7 = 0 THEN
			FETCH RELATIVE 11 FROM rows INTO row;
		ELSE
			FETCH rows INTO row;
		END IF;
		result := result || row::text;
	END LOOP;
	FETCH LAST FROM rows INTO row;
	result := result || row::text;
	FETCH FIRST FROM rows INTO row;
	RETURN result || row::text;
END $$;
CREATE FUNCTION fog.native_fetched(query text) RETURNS text[] LANGUAGE sql SET gpusort.enable = off AS $$ SELECT fog.fetched(query) $$;
CREATE FUNCTION fog.forced_fetched(query text) RETURNS text[] LANGUAGE sql
SET gpusort.enable = on SET gpusort.force = on SET gpusort.min_rows = 0 AS $$ SELECT fog.fetched(query) $$;
SELECT is(gs.difference(fog.native_fetched(query), fog.forced_fetched(query)), 'same', 'fetched: ' || query) FROM (VALUES
	('SELECT DISTINCT ON (g) g, id FROM fog.many ORDER BY g, id'),
	('SELECT * FROM (SELECT g, id, row_number() OVER (PARTITION BY g ORDER BY id) AS r FROM fog.many) q WHERE r <= 2 ORDER BY g, id')) q(query);

-- Rows that are equal to one put before are dropped on the way in, where there are few groups or equal rows are near
-- each other; not where all rows are in one group by other columns, nor the last of them.
CREATE TABLE fog.few AS SELECT i % 50 AS g, 'value ' || i % 7 AS v, (i / 100) AS near, i AS id FROM generate_series(1, 20000) i;
ALTER TABLE fog.few SET (parallel_workers = 2);
ANALYZE fog.few;
-- 'some' or 'none'; where the service did not sort, what EXPLAIN says
CREATE FUNCTION fog.dropped(query text) RETURNS text LANGUAGE sql AS $$
	SELECT CASE WHEN node->>'Sort Method' LIKE '%radix' THEN CASE WHEN node ? 'Rows Removed Before Sort' THEN 'some' ELSE 'none' END ELSE node::text END
	FROM (SELECT gs.node(query)::jsonb AS node) n
$$;
SELECT is(fog.dropped('SELECT DISTINCT g FROM fog.few'), 'some', 'repeats of few values are dropped');
SELECT is(fog.dropped('SELECT count(DISTINCT g) FROM fog.few'), 'some', 'repeats are dropped below count(DISTINCT)');
SELECT is(fog.dropped('SELECT near, g FROM fog.few GROUP BY near, g'), 'some', 'repeats near each other are dropped');
SELECT is(fog.dropped('SELECT DISTINCT v COLLATE "C", g FROM fog.few'), 'some', 'strings that the key holds whole are repeats, too');
SELECT is(fog.dropped('SELECT DISTINCT ON (g) g, id FROM fog.few ORDER BY g, id'), 'none', 'rows that differ in a later column are no repeats');
SELECT is(fog.dropped('SELECT g, count(*) FROM fog.few GROUP BY g'), 'none', 'an aggregate sees all rows');
SELECT is(fog.dropped('SELECT * FROM (SELECT g, rank() OVER (PARTITION BY g) AS r FROM fog.few) q WHERE r = 1'), 'none', 'peers are no repeats');
SELECT is(fog.compare(query), 'same', query) FROM (VALUES
	('SELECT DISTINCT g FROM fog.few'), ('SELECT DISTINCT near, g FROM fog.few'), ('SELECT DISTINCT v COLLATE "C", g FROM fog.few'), ('SELECT DISTINCT v, near FROM fog.few'),
	('SELECT v, count(DISTINCT g) FROM fog.few GROUP BY v'), ('SELECT DISTINCT near, g, v COLLATE "C", id FROM fog.few'),
	('SELECT * FROM (SELECT g, rank() OVER (PARTITION BY g) AS r FROM fog.few) q WHERE r = 1')) q(query);

SELECT * FROM finish();
DROP SCHEMA fog CASCADE;
