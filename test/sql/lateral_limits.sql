\set ECHO none
-- LATERAL (SELECT ... WHERE a = b ORDER BY ... LIMIT n): a plan for the first rows of all groups at once, where that is
-- far cheaper (src/plan/lateral_limits.c), and its answers, which are PostgreSQL's.
SET client_min_messages = warning;
LOAD 'gpusort';
\pset format unaligned
\pset tuples_only on
SELECT * FROM no_plan();

CREATE SCHEMA lat;
CREATE TYPE lat.mood AS ENUM ('sad', 'calm', 'glad');
CREATE COLLATION lat.caseless (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
-- g has groups, NULLs among them, such as nobody has, and some twice; t has rows of groups that g lacks
CREATE TABLE lat.g AS
SELECT i AS id, CASE WHEN i % 17 > 0 THEN i % 90 END AS k, (i % 90)::int8 AS k8, (i % 90)::int2 AS k2,
	   (ARRAY['NaN', '-0', '0', '1.5', '7'])[1 + i % 5]::float8 AS f, (ARRAY['1.0', '1.00', '2', 'NaN'])[1 + i % 4]::numeric AS num,
	   (ARRAY['a', 'A', 'b', NULL, ' b'])[1 + i % 5] AS txt, (ARRAY['sad', 'calm', 'glad'])[1 + i % 3]::lat.mood AS m, i % 2 = 0 AS b,
	   'name ' || i AS name, ARRAY[i % 3, NULL] AS a, '2026-01-01'::date + i % 30 AS d
FROM generate_series(1, 120) i;
CREATE TABLE lat.t AS
SELECT i AS id, CASE WHEN i % 19 > 0 THEN i * 7919 % 100 END AS k, i * 31 % 41 AS s, (i * 37 % 101)::int8 AS v, i % 10 AS divisor,
	   (ARRAY['NaN', '-0', '0', '1.5', '8'])[1 + i * 3 % 5]::float8 AS f, (ARRAY['1.0', '1', '2.00', 'NaN', '5'])[1 + i * 7 % 5]::numeric AS num,
	   (ARRAY['a', 'A', 'b', NULL, 'c'])[1 + i * 11 % 5] AS txt, (ARRAY['a', 'A', 'b', NULL, 'c'])[1 + i * 11 % 5]::varchar(3) AS var,
	   (ARRAY['sad', 'calm', NULL])[1 + i % 3]::lat.mood AS m, i % 3 = 0 AS b, ARRAY[i % 4, NULL] AS a,
	   '2026-01-01'::timestamp + i % 40 * interval '12 hours' AS ts, CASE WHEN i % 5 > 0 THEN i * 53 % 89 END AS n
FROM generate_series(1, 2000) i;
ALTER TABLE lat.t SET (parallel_workers = 2);
CREATE TABLE lat.none (LIKE lat.t);
CREATE TABLE lat.parts (LIKE lat.t) PARTITION BY LIST (b);
CREATE TABLE lat.part_1 PARTITION OF lat.parts FOR VALUES IN (true);
CREATE TABLE lat.part_2 PARTITION OF lat.parts FOR VALUES IN (false);
INSERT INTO lat.parts SELECT * FROM lat.t;
CREATE TABLE lat.h AS SELECT i AS id, i % 50 AS k, i % 7 AS s FROM generate_series(1, 60) i;
ANALYZE lat.g, lat.t, lat.none, lat.parts, lat.h;
CREATE VIEW lat.firsts AS SELECT g.id AS g, x.* FROM lat.g, LATERAL (SELECT id, v FROM lat.t WHERE t.k = g.k ORDER BY s, id LIMIT 2) x;
CREATE VIEW lat.barrier WITH (security_barrier) AS SELECT * FROM lat.t WHERE n > 3;
CREATE SEQUENCE lat.sequence;
CREATE FUNCTION lat.next(int) RETURNS int LANGUAGE plpgsql VOLATILE AS 'BEGIN RETURN $1 + 1; END';

SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 1;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;

-- Whether the plan has the first rows of all groups at once
CREATE FUNCTION lat.at_once(query text) RETURNS bool LANGUAGE sql AS $$ SELECT gs.forced_plan(query) ~ 'WindowAgg' $$;
CREATE FUNCTION lat.alone_rows(query text) RETURNS text[] LANGUAGE sql
SET gpusort.enable = on SET gpusort.force = on SET gpusort.min_rows = 0 SET max_parallel_workers_per_gather = 0 AS $$ SELECT gs.rows(query) $$;
CREATE FUNCTION lat.refused_rows(query text) RETURNS text[] LANGUAGE sql
SET gpusort.enable = on SET gpusort.force = on SET gpusort.min_rows = 1000000 AS $$ SELECT gs.rows(query) $$;
CREATE FUNCTION lat.compare(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	native text[] := gs.in_order(gs.native_rows(query));
	result text := gs.difference(native, gs.in_order(gs.forced_rows(query)));
BEGIN
	IF result = 'same' THEN
		result := gs.difference(native, gs.in_order(lat.alone_rows(query)));
	END IF;
	IF result = 'same' THEN
		result := gs.difference(native, gs.in_order(lat.refused_rows(query)));
	END IF;
	RETURN result;
END $$;

CREATE TABLE lat.query (ordinal serial, at_once bool, query text);
INSERT INTO lat.query (at_once, query) VALUES
	(true, 'SELECT g.id, x.* FROM lat.g, LATERAL (SELECT * FROM lat.t WHERE t.k = g.k ORDER BY s, t.id LIMIT 3) x'),
	(true, 'SELECT * FROM lat.g, LATERAL (SELECT id, s FROM lat.t WHERE g.k = t.k ORDER BY s DESC, t.id LIMIT 1) x'),
	(true, 'SELECT g.id, x.id FROM lat.g CROSS JOIN LATERAL (SELECT id FROM lat.t WHERE t.k = g.k ORDER BY s NULLS FIRST, id DESC LIMIT 2) x'),
	(true, 'SELECT g.id, x.id FROM lat.g LEFT JOIN LATERAL (SELECT id FROM lat.t WHERE t.k = g.k ORDER BY n DESC NULLS LAST, id LIMIT 2) x ON true'),
	(true, 'SELECT g.id, x.id FROM lat.g LEFT JOIN LATERAL (SELECT id, v FROM lat.t WHERE t.k = g.k ORDER BY n, id LIMIT 2) x ON x.v > 50 AND g.id % 2 = 0'),
	(true, 'SELECT g.id, x.id FROM lat.g JOIN LATERAL (SELECT id, v FROM lat.t WHERE t.k = g.k ORDER BY n, id LIMIT 2) x ON x.v > g.id'),
	(true, 'SELECT g.id, x.id FROM lat.g, LATERAL (SELECT id FROM lat.t WHERE t.k = g.k ORDER BY n, id OFFSET 2 LIMIT 3) x'),
	(true, 'SELECT g.id, x.id FROM lat.g, LATERAL (SELECT id FROM lat.t WHERE t.k = g.k ORDER BY n, id OFFSET 0 LIMIT 3) x'),
	(true, 'SELECT g.id, x.id FROM lat.g, LATERAL (SELECT id FROM lat.t WHERE t.k = g.k ORDER BY s FETCH FIRST 2 ROWS WITH TIES) x'),
	(true, 'SELECT g.id, x.id FROM lat.g, LATERAL (SELECT id FROM lat.t WHERE t.k = g.k AND t.s = g.id ORDER BY v, id LIMIT 1) x'),
	(true, 'SELECT g.id, x.id FROM lat.g, LATERAL (SELECT id FROM lat.t WHERE t.k = g.k AND t.k = g.id ORDER BY v, id LIMIT 1) x'),
	(true, 'SELECT g.id, x.id FROM lat.g, LATERAL (SELECT id FROM lat.t WHERE t.k = g.k8 AND t.v = g.k2 ORDER BY id LIMIT 2) x'),
	(true, 'SELECT g.id, x.id FROM lat.g, LATERAL (SELECT id FROM lat.t WHERE t.k = g.k AND t.v > 30 AND num <= 2 AND n IS NOT NULL AND s IN (1, 4, 7, 8, 20, 21, 22, 30) ORDER BY id DESC LIMIT 2) x'),
	(false, 'SELECT g.id, x.id, x.y FROM lat.g, LATERAL (SELECT id, v / divisor AS y FROM lat.t WHERE t.k = g.k AND t.divisor > 0 ORDER BY id LIMIT 2) x'),
	(true, 'SELECT x.y || x.z FROM lat.g, LATERAL (SELECT g.name AS y, coalesce(t.txt, g.txt) AS z FROM lat.t WHERE t.k = g.k ORDER BY id LIMIT 2) x'),
	(true, 'SELECT g.id, x.y FROM lat.g LEFT JOIN LATERAL (SELECT coalesce(t.txt, g.name) AS y FROM lat.t WHERE t.k = g.k ORDER BY id LIMIT 2) x ON true'),
	(true, 'SELECT g.id, x.t FROM lat.g, LATERAL (SELECT t, t.tableoid::regclass, t.ctid FROM lat.t WHERE t.k = g.k ORDER BY id LIMIT 2) x'),
	(true, 'SELECT g.id, x.id, x.hid FROM lat.g, LATERAL (SELECT t.id, h.id AS hid FROM lat.t JOIN lat.h USING (k) WHERE k = g.k ORDER BY t.s, t.id, h.id LIMIT 3) x'),
	(true, 'SELECT g.id, x.id, x.hid FROM lat.g, LATERAL (SELECT t.id, h.id AS hid FROM lat.t LEFT JOIN lat.h ON h.k = t.k AND h.s = t.s WHERE t.k = g.k ORDER BY h.id NULLS FIRST, t.id LIMIT 3) x'),
	(true, 'SELECT g.id, x.id, x.hid FROM lat.g, LATERAL (SELECT t.id, h.id AS hid FROM lat.t FULL JOIN lat.h ON h.id = t.id WHERE h.k = g.k ORDER BY h.id, t.id LIMIT 3) x'),
	(true, 'SELECT g.id, x.id, y.id FROM lat.g, LATERAL (SELECT id, s FROM lat.t WHERE t.k = g.k ORDER BY n, id LIMIT 2) x, LATERAL (SELECT id FROM lat.h WHERE h.s = x.s ORDER BY id DESC LIMIT 2) y'),
	(true, 'SELECT g.id, x.id, y.id FROM lat.g LEFT JOIN LATERAL (SELECT id, s FROM lat.t WHERE t.k = g.k ORDER BY n, id LIMIT 2) x ON true LEFT JOIN LATERAL (SELECT id FROM lat.h WHERE h.s = x.s ORDER BY id DESC LIMIT 2) y ON true'),
	(true, 'SELECT h.id, g.id, x.id FROM lat.h LEFT JOIN (lat.g JOIN LATERAL (SELECT id, s FROM lat.t WHERE t.k = g.k ORDER BY n, id LIMIT 2) x ON true) ON h.id = g.id AND x.s > 5'),
	(true, 'SELECT h.id, g.id, x.id FROM (lat.g LEFT JOIN LATERAL (SELECT id, s FROM lat.t WHERE t.k = g.k ORDER BY n, id LIMIT 2) x ON true) FULL JOIN lat.h ON h.id = x.s'),
	(true, 'SELECT h.id, g.id, x.id FROM (lat.g JOIN LATERAL (SELECT id, s FROM lat.t WHERE t.k = g.k ORDER BY n, id LIMIT 2) x ON true) RIGHT JOIN lat.h ON h.id = x.s'),
	(true, 'SELECT h.id, g.id, x.id FROM lat.h LEFT JOIN lat.g ON g.id = h.s LEFT JOIN LATERAL (SELECT id, s FROM lat.t WHERE t.k = g.k ORDER BY n, id LIMIT 2) x ON true'),
	(true, 'SELECT j.id, x.id FROM (lat.h LEFT JOIN lat.g USING (id)) j, LATERAL (SELECT id, s FROM lat.t WHERE t.k = j.id ORDER BY n, id LIMIT 2) x'),
	(true, 'SELECT g.k, count(*), sum(x.v), max(x.s) FROM lat.g, LATERAL (SELECT * FROM lat.t WHERE t.k = g.k ORDER BY n, id LIMIT 5) x GROUP BY g.k'),
	(true, 'SELECT g.k, array_agg(x.v ORDER BY x.id), percentile_disc(0.5) WITHIN GROUP (ORDER BY x.v) FROM lat.g, LATERAL (SELECT * FROM lat.t WHERE t.k = g.k ORDER BY n, id LIMIT 5) x GROUP BY g.k'),
	(true, 'SELECT DISTINCT x.s FROM lat.g, LATERAL (SELECT s FROM lat.t WHERE t.k = g.k ORDER BY n, id LIMIT 5) x'),
	(true, 'SELECT g.id, x.id FROM lat.g, LATERAL (SELECT id, s FROM lat.t WHERE t.k = g.k ORDER BY n, id LIMIT 5) x ORDER BY x.s, x.id, g.id LIMIT 20'),
	(true, 'SELECT g.id, x.id, row_number() OVER (ORDER BY x.s, x.id, g.id) FROM lat.g, LATERAL (SELECT id, s FROM lat.t WHERE t.k = g.k ORDER BY n, id LIMIT 5) x'),
	(true, 'SELECT g.id, x.id / g.id FROM lat.g, LATERAL (SELECT id, s FROM lat.t WHERE t.k = g.k ORDER BY n, id LIMIT 5) x WHERE (x.s = g.id OR x.id < 300) AND g.id % 3 = 0'),
	(true, 'SELECT g.k, sum(x.v / 2) FROM lat.g, LATERAL (SELECT * FROM lat.t WHERE t.k = g.k ORDER BY n, id LIMIT 5) x GROUP BY g.k HAVING count(*) > 1 AND g.k > 7'),
	(true, 'SELECT q.id FROM (SELECT x.id FROM lat.g, LATERAL (SELECT id, s FROM lat.t WHERE t.k = g.k ORDER BY n, id LIMIT 5) x) q WHERE q.id < 500'),
	(true, 'SELECT * FROM lat.firsts WHERE g < 40'),
	(true, 'WITH c AS MATERIALIZED (SELECT * FROM lat.t WHERE s < 30) SELECT * FROM (SELECT g.id, x.id AS x FROM lat.g, LATERAL (SELECT id FROM c WHERE c.k = g.k ORDER BY n, id LIMIT 2) x) d, c WHERE c.id = d.x'),
	(true, 'SELECT g.id, x.id FROM lat.g, LATERAL (SELECT id FROM lat.t WHERE t.k = g.k ORDER BY n, id LIMIT 1) x UNION ALL SELECT g.id, x.id FROM lat.g, LATERAL (SELECT id FROM lat.h WHERE h.k = g.k ORDER BY s, id LIMIT 1) x'),
	(true, 'SELECT g.id, x.id FROM lat.g, LATERAL (SELECT id FROM lat.t WHERE t.k = g.k ORDER BY n, id LIMIT 1) x EXCEPT SELECT g.id, x.id FROM lat.g, LATERAL (SELECT id FROM lat.t WHERE t.k = g.k AND t.ts > timestamp ''2026-01-05'' ORDER BY n, id LIMIT 1) x'),
	(true, 'SELECT k, x.id FROM (SELECT DISTINCT k FROM lat.t) g, LATERAL (SELECT id FROM lat.t WHERE t.k = g.k ORDER BY n, id LIMIT 2) x'),
	(true, 'SELECT g.k, x.id FROM (VALUES (1), (NULL), (3), (3)) g(k), LATERAL (SELECT id FROM lat.t WHERE t.k = g.k ORDER BY n, id LIMIT 2) x'),
	(true, 'SELECT g.id, x.id FROM lat.g, LATERAL (SELECT id FROM lat.parts WHERE parts.k = g.k ORDER BY n, id LIMIT 2) x'),
	(true, 'SELECT g.id, x.id FROM lat.g LEFT JOIN LATERAL (SELECT id FROM lat.none WHERE none.k = g.k ORDER BY n, id LIMIT 2) x ON true'),
	(true, 'SELECT g.id, x.id FROM lat.g, LATERAL (SELECT q.id FROM (SELECT id, k, s FROM lat.t ORDER BY n, id LIMIT 500) q WHERE q.k = g.k ORDER BY q.id LIMIT 2) x'),
	(true, 'SELECT g.id, x.id FROM lat.g, LATERAL (SELECT id, s AS y FROM lat.t WHERE t.k = g.k ORDER BY y, id LIMIT 2) x'),
	(true, 'SELECT g.id, x.txt FROM lat.g, LATERAL (SELECT id, txt FROM lat.t WHERE t.k = g.k ORDER BY txt COLLATE "C" DESC, id LIMIT 2) x'),
	-- keys of every kind
	(true, 'SELECT g.id, x.id FROM lat.g, LATERAL (SELECT id FROM lat.t WHERE t.f = g.f ORDER BY n, id LIMIT 4) x'),
	(true, 'SELECT g.id, x.id FROM lat.g, LATERAL (SELECT id FROM lat.t WHERE t.num = g.num ORDER BY n, id LIMIT 4) x'),
	(true, 'SELECT g.id, x.id FROM lat.g, LATERAL (SELECT id FROM lat.t WHERE t.txt = g.txt ORDER BY n, id LIMIT 4) x'),
	(true, 'SELECT g.id, x.id FROM lat.g, LATERAL (SELECT id FROM lat.t WHERE t.var = g.txt ORDER BY n, id LIMIT 4) x'),
	(true, 'SELECT g.id, x.id FROM lat.g, LATERAL (SELECT id FROM lat.t WHERE t.txt COLLATE "C" = g.txt ORDER BY n, id LIMIT 4) x'),
	(true, 'SELECT g.id, x.id FROM lat.g, LATERAL (SELECT id FROM lat.t WHERE t.txt COLLATE lat.caseless = g.txt ORDER BY n, id LIMIT 4) x'),
	(true, 'SELECT g.id, x.id FROM lat.g, LATERAL (SELECT id FROM lat.t WHERE t.m = g.m ORDER BY n, id LIMIT 4) x'),
	(true, 'SELECT g.id, x.id FROM lat.g, LATERAL (SELECT id FROM lat.t WHERE t.b = g.b ORDER BY n, id LIMIT 4) x'),
	(true, 'SELECT g.id, x.id FROM lat.g, LATERAL (SELECT id FROM lat.t WHERE t.a = g.a ORDER BY n, id LIMIT 4) x'),
	(true, 'SELECT g.id, x.id FROM lat.g, LATERAL (SELECT id FROM lat.t WHERE t.ts = g.d ORDER BY n, id LIMIT 4) x'),
	-- others stay as they are
	(false, 'SELECT g.id, x.id FROM lat.g, LATERAL (SELECT id FROM lat.t WHERE t.k < g.k ORDER BY n, id LIMIT 1) x'),
	(false, 'SELECT g.id, x.id FROM lat.g, LATERAL (SELECT id FROM lat.t WHERE t.k = g.k AND t.s > g.id ORDER BY n, id LIMIT 1) x'),
	(false, 'SELECT g.id, x.id FROM lat.g, LATERAL (SELECT id FROM lat.t WHERE t.k = g.k OR t.s = g.id ORDER BY n, id LIMIT 1) x'),
	(false, 'SELECT g.id, x.id FROM lat.g, LATERAL (SELECT id FROM lat.t WHERE t.k IS NOT DISTINCT FROM g.k ORDER BY n, id LIMIT 1) x'),
	(false, 'SELECT g.id, x.id FROM lat.g, LATERAL (SELECT id FROM lat.t WHERE t.txt = g.txt COLLATE lat.caseless ORDER BY n, id LIMIT 1) x'),
	-- what may fail for the rows of other groups
	(false, 'SELECT g.id, x.id FROM lat.g, LATERAL (SELECT id, divisor FROM lat.t WHERE t.k = g.k ORDER BY n, id LIMIT 1) x WHERE 100 / (x.divisor + 1) > 2'),
	(false, 'SELECT g.id, x.id FROM lat.g LEFT JOIN LATERAL (SELECT id, divisor FROM lat.t WHERE t.k = g.k ORDER BY n, id LIMIT 1) x ON 100 / (x.divisor + 1) > 2'),
	(false, 'SELECT x.divisor FROM lat.g, LATERAL (SELECT id, divisor FROM lat.t WHERE t.k = g.k ORDER BY n, id LIMIT 1) x GROUP BY x.divisor HAVING 100 / (x.divisor + 1) > 2'),
	(false, 'SELECT * FROM (SELECT x.id, x.divisor FROM lat.g, LATERAL (SELECT id, divisor FROM lat.t WHERE t.k = g.k ORDER BY n, id LIMIT 1) x) q WHERE 100 / (q.divisor + 1) > 2'),
	(false, 'SELECT * FROM (SELECT x.id, 100 / (x.divisor + 1) AS y FROM lat.g, LATERAL (SELECT id, divisor FROM lat.t WHERE t.k = g.k ORDER BY n, id LIMIT 1) x) q WHERE q.y > 2'),
	(false, 'SELECT g.id, x.id, y.id FROM lat.g, LATERAL (SELECT id, divisor FROM lat.t WHERE t.k = g.k ORDER BY n, id LIMIT 1) x, LATERAL (SELECT id FROM lat.h WHERE h.id = 100 / (x.divisor + 1)) y'),
	(false, 'SELECT g.id, x.id FROM lat.g, LATERAL (SELECT t.id FROM lat.t JOIN lat.h ON h.id = 100 / (t.divisor + 1) WHERE t.k = g.k ORDER BY t.n, t.id, h.id LIMIT 1) x'),
	(false, 'SELECT g.id, x.y FROM lat.g, LATERAL (SELECT y FROM (SELECT k, id, 100 / (divisor + 1) AS y FROM lat.t) q WHERE q.k = g.k ORDER BY q.id LIMIT 1) x'),
	(false, 'SELECT g.id, x.id FROM lat.g, LATERAL (SELECT id FROM (SELECT * FROM lat.t FOR SHARE) q WHERE q.k = g.k ORDER BY q.id LIMIT 1) x'),
	-- what depends on the order
	(false, 'SELECT count(*) FROM (SELECT * FROM (SELECT g.id, x.id AS x FROM lat.g, LATERAL (SELECT id FROM lat.t WHERE t.k = g.k ORDER BY n, id LIMIT 2) x) q LIMIT 3) r'),
	(false, 'SELECT count(array_agg) FROM (SELECT array_agg(q.id) FROM (SELECT x.id FROM lat.g, LATERAL (SELECT id FROM lat.t WHERE t.k = g.k ORDER BY n, id LIMIT 2) x) q) r'),
	(false, 'SELECT nextval(''lat.sequence'') > 0, x.id FROM lat.g, LATERAL (SELECT id FROM lat.t WHERE t.k = g.k ORDER BY n, id LIMIT 2) x'),
	-- names of an outer query
	(true, 'SELECT a.id, o.id, y.id FROM lat.h a, lat.h o, LATERAL (SELECT x.id FROM lat.g, LATERAL (SELECT t.id FROM lat.t WHERE t.k = g.k ORDER BY t.s, t.id LIMIT 1) x WHERE g.k = o.id) y WHERE a.id = 1'),
	(false, 'SELECT a.id, o.id, y.id FROM lat.h a, lat.h o, LATERAL (SELECT x.id FROM lat.g, LATERAL (SELECT t.id FROM lat.t WHERE t.k = g.k ORDER BY o.s * t.s, t.id LIMIT 1) x) y WHERE a.id = 1 AND o.id < 3'),
	(true, 'SELECT a.id, o.id, y.id FROM lat.h a, lat.h o, LATERAL (SELECT x.id FROM lat.g, LATERAL (SELECT t.id FROM lat.t WHERE t.k = g.k ORDER BY o.s, t.s, t.id LIMIT 1) x) y WHERE a.id = 1 AND o.id < 3'),
	(false, 'SELECT g.id, x.id FROM lat.g, LATERAL (SELECT id FROM lat.t WHERE t.ts = g.d::timestamptz ORDER BY n, id LIMIT 1) x'),
	(false, 'SELECT g.id, x.id FROM (SELECT id, d::timestamptz AS z FROM lat.g) g, LATERAL (SELECT id FROM lat.t WHERE t.ts = g.z ORDER BY n, id LIMIT 1) x'),
	(false, 'SELECT g.id, x.id FROM lat.g, LATERAL (SELECT id FROM lat.t WHERE t.k = g.k + 1 ORDER BY n, id LIMIT 1) x'),
	(false, 'SELECT g.id, x.id FROM lat.g, LATERAL (SELECT id FROM lat.t WHERE t.k + 1 = g.k ORDER BY n, id LIMIT 1) x'),
	(false, 'SELECT g.id, x.id FROM lat.g, LATERAL (SELECT id FROM lat.t WHERE t.k = g.k ORDER BY n * g.id, id LIMIT 1) x'),
	(false, 'SELECT g.id, x.id FROM lat.g, LATERAL (SELECT id FROM lat.t WHERE t.k = g.k ORDER BY n, id) x'),
	(false, 'SELECT g.id, x.id FROM lat.g, LATERAL (SELECT id FROM lat.t WHERE t.k = g.k ORDER BY n, id LIMIT NULL) x'),
	(false, 'SELECT g.id, x.id FROM lat.g, LATERAL (SELECT id FROM lat.t WHERE t.k = g.k ORDER BY n, id LIMIT 0) x'),
	(false, 'SELECT g.id, x.id FROM lat.g, LATERAL (SELECT id FROM lat.t WHERE t.k = g.k ORDER BY n, id LIMIT g.id % 3) x'),
	(false, 'SELECT g.id, x.id FROM lat.g, LATERAL (SELECT id FROM lat.t WHERE t.k = g.k ORDER BY s OFFSET 1 FETCH FIRST 2 ROWS WITH TIES) x'),
	(false, 'SELECT g.id, x.s FROM lat.g, LATERAL (SELECT DISTINCT s FROM lat.t WHERE t.k = g.k ORDER BY s LIMIT 1) x'),
	(false, 'SELECT g.id, x.s FROM lat.g, LATERAL (SELECT s, count(*) FROM lat.t WHERE t.k = g.k GROUP BY s ORDER BY s LIMIT 1) x'),
	(false, 'SELECT g.id, x.s FROM lat.g, LATERAL (SELECT s, generate_series(1, 2) FROM lat.t WHERE t.k = g.k ORDER BY s, id LIMIT 1) x'),
	(false, 'SELECT g.id, x.s FROM lat.g, LATERAL (SELECT s, (SELECT max(id) FROM lat.h WHERE h.id = t.s) FROM lat.t WHERE t.k = g.k ORDER BY s, id LIMIT 1) x'),
	(false, 'SELECT g.id, x.s FROM lat.g, LATERAL (SELECT s FROM lat.t, generate_series(1, g.id % 3) WHERE t.k = g.k ORDER BY s, id LIMIT 1) x'),
	(false, 'SELECT g.id, x FROM lat.g, LATERAL (SELECT id, s FROM lat.t WHERE t.k = g.k ORDER BY s, id LIMIT 1) x'),
	(false, 'SELECT g.id, (SELECT row_to_json(x)) FROM lat.g, LATERAL (SELECT id, s FROM lat.t WHERE t.k = g.k ORDER BY s, id LIMIT 1) x'),
	(false, 'SELECT g.id, x.y FROM lat.g, LATERAL (SELECT lat.next(s) AS y FROM lat.t WHERE t.k = g.k ORDER BY s, id LIMIT 1) x'),
	(false, 'SELECT g.k, array_agg(x.v) FROM lat.g, LATERAL (SELECT v FROM lat.t WHERE t.k = g.k ORDER BY v LIMIT 5) x WHERE g.id < 50 GROUP BY g.k'),
	(false, 'SELECT g.k, string_agg(x.v::text, '','') FROM lat.g, LATERAL (SELECT v FROM lat.t WHERE t.k = g.k ORDER BY v LIMIT 5) x WHERE g.id < 50 GROUP BY g.k'),
	(false, 'SELECT g.id, x.id FROM lat.g, (lat.h LEFT JOIN LATERAL (SELECT id FROM lat.t WHERE t.k = g.k ORDER BY n, id LIMIT 1) x ON true)'),
	(false, 'SELECT g.id, x.id FROM lat.g, LATERAL (SELECT id FROM lat.t WHERE t.k = g.k ORDER BY n, id LIMIT 1) x FOR UPDATE OF g'),
	(false, 'SELECT count(*) FROM (SELECT g.id, x.id FROM lat.g, LATERAL (SELECT id FROM lat.t WHERE t.k = g.k ORDER BY n, id LIMIT 1) x LIMIT 3) q'),
	(false, 'SELECT g.id, x.id FROM lat.g, LATERAL (SELECT id FROM lat.t WHERE t.k = g.k AND 100 / (divisor + 1) > 2 ORDER BY n, id LIMIT 1) x'),
	(false, 'SELECT g.id, x.id FROM lat.g, LATERAL (SELECT id FROM lat.t WHERE t.k = g.k ORDER BY 100 / (divisor + 1), id LIMIT 1) x');
SELECT is(lat.at_once(query), at_once, query) FROM lat.query ORDER BY ordinal;
SELECT is(lat.compare(query), 'same', query) FROM lat.query ORDER BY ordinal;

-- What the query returns is computed of the rows that are joined alone: those of other groups may fail.
CREATE TABLE lat.bad AS SELECT i % 10 AS k, i AS s, CASE WHEN i % 10 = 7 THEN 0 ELSE 1 END AS divisor FROM generate_series(1, 1000) i;
ANALYZE lat.bad;
SELECT is(lat.compare(query), 'same', query) FROM (VALUES
	('SELECT 1 / x.divisor FROM (VALUES (1), (3)) g(k), LATERAL (SELECT divisor FROM lat.bad WHERE bad.k = g.k ORDER BY s LIMIT 4) x'),
	('SELECT x.* FROM (VALUES (1), (3)) g(k), LATERAL (SELECT 1 / divisor AS y FROM lat.bad WHERE bad.k = g.k ORDER BY s OFFSET 4 LIMIT 4) x'),
	('SELECT x.* FROM (VALUES (1), (3)) g(k), LATERAL (SELECT * FROM lat.bad WHERE bad.k = g.k ORDER BY s LIMIT 4) x WHERE 1 / x.divisor > 0'),
	('SELECT * FROM (SELECT 1 / x.divisor AS y FROM (VALUES (1), (3)) g(k), LATERAL (SELECT * FROM lat.bad WHERE bad.k = g.k ORDER BY s LIMIT 4) x) q WHERE y > 0'),
	('SELECT x.* FROM (VALUES (1), (3)) g(k) LEFT JOIN LATERAL (SELECT coalesce(1 / divisor, g.k) AS y FROM lat.bad WHERE bad.k = g.k ORDER BY s LIMIT 4) x ON true'),
	('SELECT x.divisor FROM (VALUES (1), (3)) g(k), LATERAL (SELECT * FROM lat.bad WHERE bad.k = g.k ORDER BY s LIMIT 4) x GROUP BY 1 HAVING 1 / x.divisor > 0')) q(query);
SELECT ok(lat.at_once('SELECT 1 / x.divisor FROM (VALUES (1), (3)) g(k), LATERAL (SELECT divisor FROM lat.bad WHERE bad.k = g.k ORDER BY s LIMIT 4) x'), 'at once, though others would fail');

-- The order where the text says none: the rows of one g together, as they were sorted
SELECT is(gs.difference(gs.native_rows(query), gs.forced_rows(query)), 'same', 'in order: ' || query) FROM (VALUES
	('SELECT g.k, x.id, x.s FROM (SELECT i AS k FROM generate_series(0, 99) i) g, LATERAL (SELECT id, s FROM lat.t WHERE t.k = g.k ORDER BY s DESC, id LIMIT 3) x'),
	('SELECT g.k, x.id, x.s FROM (SELECT i AS k FROM generate_series(0, 120) i) g LEFT JOIN LATERAL (SELECT id, s FROM lat.t WHERE t.k = g.k ORDER BY s, id LIMIT 3) x ON true')) q(query);

-- LIMIT is a parameter.
PREPARE lat_first(int8) AS SELECT g.id, x.id FROM lat.g, LATERAL (SELECT id FROM lat.t WHERE t.k = g.k ORDER BY n, id LIMIT $1) x;
SET plan_cache_mode = force_custom_plan;
SELECT is(gs.difference(gs.in_order(gs.native_rows(query)), gs.in_order(gs.forced_rows(query))), 'same', query)
FROM (SELECT format('EXECUTE lat_first(%s)', n) FROM unnest(ARRAY['1', '3', '0', 'NULL', '100000', '9223372036854775807']) n) q(query);
SELECT ok(lat.at_once('EXECUTE lat_first(3)'), 'its value is known');
SELECT throws_ok('EXECUTE lat_first(-1)', '2201W');
SET plan_cache_mode = force_generic_plan;
SELECT is(gs.difference(gs.in_order(gs.native_rows(query)), gs.in_order(gs.forced_rows(query))), 'same', 'generic: ' || query)
FROM (VALUES ('EXECUTE lat_first(3)')) q(query);
RESET plan_cache_mode;
CREATE FUNCTION lat.loop(first int) RETURNS int8 LANGUAGE plpgsql AS $$
DECLARE
	total int8 := 0;
	row record;
BEGIN
	FOR row IN SELECT x.id FROM lat.g, LATERAL (SELECT id FROM lat.t WHERE t.k = g.k ORDER BY n, id LIMIT first) x LOOP
		total := total + row.id;
	END LOOP;
	RETURN total;
END $$;
SELECT is(lat.compare('SELECT lat.loop(i) FROM generate_series(0, 7) i'), 'same', 'a variable is the LIMIT');

-- What writes
CREATE TABLE lat.target (g int, x int);
CREATE FUNCTION lat.filled(query text) RETURNS text[] LANGUAGE plpgsql AS $$
BEGIN
	TRUNCATE lat.target;
	EXECUTE query;
	RETURN gs.in_order(ARRAY(SELECT target::text FROM lat.target));
END $$;
CREATE FUNCTION lat.native_filled(query text) RETURNS text[] LANGUAGE sql SET gpusort.enable = off AS $$ SELECT lat.filled(query) $$;
CREATE FUNCTION lat.forced_filled(query text) RETURNS text[] LANGUAGE sql SET gpusort.force = on AS $$ SELECT lat.filled(query) $$;
SELECT is(gs.difference(lat.native_filled(query), lat.forced_filled(query)), 'same', query) FROM (VALUES
	('INSERT INTO lat.target SELECT g.id, x.id FROM lat.g, LATERAL (SELECT id FROM lat.t WHERE t.k = g.k ORDER BY n, id LIMIT 2) x'),
	('INSERT INTO lat.target SELECT id, 0 FROM lat.g; UPDATE lat.target SET x = y.id FROM lat.g, LATERAL (SELECT id FROM lat.t WHERE t.k = g.k ORDER BY n, id LIMIT 1) y WHERE g.id = target.g')) q(query);
SELECT is(lat.compare(query), 'same', query) FROM (VALUES
	('SELECT g.id, x.id FROM lat.g, LATERAL (SELECT id FROM lat.barrier WHERE barrier.k = g.k ORDER BY n, id LIMIT 2) x')) q(query);

-- Rows that a policy hides stay hidden.
CREATE ROLE lat_reader;
ALTER TABLE lat.t ENABLE ROW LEVEL SECURITY;
CREATE POLICY thirds ON lat.t TO lat_reader USING (id % 3 = 0);
GRANT USAGE ON SCHEMA lat, gs TO lat_reader;
GRANT SELECT ON lat.t, lat.g TO lat_reader;
SET ROLE lat_reader;
SELECT is(lat.compare('SELECT g.id, x.id FROM lat.g, LATERAL (SELECT id FROM lat.t WHERE t.k = g.k ORDER BY n, id LIMIT 2) x'), 'same', 'a policy');
RESET ROLE;
REVOKE SELECT ON lat.t FROM lat_reader;
SET ROLE lat_reader;
SET gpusort.force = on;
SELECT throws_ok('SELECT g.id, x.id FROM lat.g, LATERAL (SELECT id FROM lat.t WHERE t.k = g.k ORDER BY n, id LIMIT 2) x', '42501');
RESET gpusort.force;
RESET ROLE;
ALTER TABLE lat.t DISABLE ROW LEVEL SECURITY;

-- Not forced: only where it is far cheaper.
CREATE TABLE lat.big AS SELECT i AS id, i * 7919 % 1000 AS k, i * 31 % 1009 AS s FROM generate_series(1, 20000) i;
ANALYZE lat.big;
SET max_parallel_workers_per_gather = 0;
SELECT ok(gs.plan('SELECT g.k, x.id FROM (SELECT DISTINCT k FROM lat.big) g, LATERAL (SELECT id FROM lat.big WHERE big.k = g.k ORDER BY s, id LIMIT 2) x') ~ 'WindowAgg', 'a table without an index, read once for all');
SELECT ok(gs.plan('SELECT g.k, x.id FROM (VALUES (1), (2), (3)) g(k), LATERAL (SELECT id FROM lat.big WHERE big.k = g.k ORDER BY s, id LIMIT 2) x') !~ 'WindowAgg', 'of three groups PostgreSQL finds the rows');
SELECT is(gs.difference(gs.in_order(gs.native_rows(query)), gs.in_order(gs.rows(query))), 'same', query) FROM (VALUES
	('SELECT g.k, x.id FROM (SELECT DISTINCT k FROM lat.big) g, LATERAL (SELECT id FROM lat.big WHERE big.k = g.k ORDER BY s, id LIMIT 2) x')) q(query);
CREATE INDEX ON lat.big (k, s, id);
SELECT ok(gs.plan('SELECT g.k, x.id FROM (SELECT DISTINCT k FROM lat.big) g, LATERAL (SELECT id FROM lat.big WHERE big.k = g.k ORDER BY s, id LIMIT 2) x') !~ 'WindowAgg', 'an index leads to the rows');
RESET max_parallel_workers_per_gather;

-- A cursor reads the same rows.
BEGIN;
SET LOCAL gpusort.force = on;
DECLARE lat_cursor CURSOR FOR SELECT g.id, x.id FROM lat.g, LATERAL (SELECT id FROM lat.t WHERE t.k = g.k ORDER BY n, id LIMIT 2) x;
SELECT is(gs.difference(gs.in_order(gs.native_rows('SELECT g.id, x.id FROM lat.g, LATERAL (SELECT id FROM lat.t WHERE t.k = g.k ORDER BY n, id LIMIT 2) x')),
						gs.in_order(gs.fetch('lat_cursor', 'FORWARD ALL'))), 'same', 'a cursor');
ROLLBACK;

SELECT * FROM finish();
DROP SCHEMA lat CASCADE;
DROP OWNED BY lat_reader;
DROP ROLE lat_reader;
