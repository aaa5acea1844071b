\set ECHO none
-- Rows in by the page: a sequential scan's rows are the same whether the sort takes them from its pages, one by
-- one, or PostgreSQL sorts, and so is what EXPLAIN and the statistics count of the scan.
SET client_min_messages = warning;
LOAD 'gpusort';
\pset format unaligned
\pset tuples_only on
SET max_parallel_workers_per_gather = 0;
SET enable_indexscan = off;
SET enable_bitmapscan = off;

-- Rows of a query with the setting of the caller.
CREATE FUNCTION gs.page_rows(query text, by_page bool) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
	before text := current_setting('gpusort.page_scan');
	result text[];
BEGIN
	PERFORM set_config('gpusort.page_scan', by_page::text, false);
	result := gs.forced_rows(query);
	PERFORM set_config('gpusort.page_scan', before, false);
	RETURN result;
END $$;

-- What EXPLAIN (ANALYZE, BUFFERS) counts of the sequential scans, by the statistics what a table's scans have returned.
CREATE FUNCTION gs.scan_counts(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan json;
	before bigint := (SELECT sum(pg_stat_get_xact_tuples_returned(oid)) FROM pg_class WHERE relnamespace IN ('gs'::regnamespace, pg_my_temp_schema()) AND relkind = 'r');
	counts text;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) ' || query INTO plan;
	SELECT string_agg(format('%s: %s rows, %s loops, %s filtered, %s buffers', n->>'Alias', n->>'Actual Rows', n->>'Actual Loops', n->>'Rows Removed by Filter',
							 (n->>'Shared Hit Blocks')::int + (n->>'Shared Read Blocks')::int + (n->>'Local Hit Blocks')::int + (n->>'Local Read Blocks')::int), '; ' ORDER BY ordinality)
	INTO counts FROM jsonb_path_query(plan::jsonb, 'strict $.** ? (@."Node Type" == "Seq Scan")') WITH ORDINALITY q (n, ordinality);
	RETURN counts || ', ' || (SELECT sum(pg_stat_get_xact_tuples_returned(oid)) - before FROM pg_class
							  WHERE relnamespace IN ('gs'::regnamespace, pg_my_temp_schema()) AND relkind = 'r') || ' read';
END $$;

CREATE FUNCTION gs.forced_counts(query text, by_page bool) RETURNS text LANGUAGE plpgsql
SET gpusort.enable = on SET gpusort.force = on SET gpusort.min_rows = 0 AS $$
BEGIN
	PERFORM set_config('gpusort.page_scan', by_page::text, false);
	RETURN gs.scan_counts(query);
END $$;

CREATE FUNCTION gs.native_counts(query text) RETURNS text LANGUAGE sql SET gpusort.enable = off AS $$ SELECT gs.scan_counts(query) $$;

-- 'same' when rows and counts are, and the plan has a GpuSort.  What the first run does alone, pruning and looking
-- into catalogs, is not to be counted.
CREATE FUNCTION gs.by_page(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	native text[] := gs.native_rows(query);
	difference text;
	counts text;
BEGIN
	IF NOT gs.forced_uses(query) THEN
		RETURN 'no GpuSort in the plan';
	END IF;
	difference := gs.difference(native, gs.page_rows(query, true));
	IF difference <> 'same' THEN
		RETURN 'by the page: ' || difference;
	END IF;
	difference := gs.difference(native, gs.page_rows(query, false));
	IF difference <> 'same' THEN
		RETURN 'one by one: ' || difference;
	END IF;
	counts := gs.native_counts(query);
	IF counts IS DISTINCT FROM gs.forced_counts(query, true) THEN
		RETURN format('native: %s; by the page: %s', counts, gs.forced_counts(query, true));
	END IF;
	RETURN 'same';
END $$;

-- Tables: fixed offsets alone, then values of any length, NULLs
CREATE TABLE gs.p_fixed (id int, i2 smallint, i4 int, i8 bigint, f4 real, f8 float8, d date, ts timestamp, b bool, c "char", o oid, m money, u uuid, n name, iv interval, ti time, tz timestamptz);
INSERT INTO gs.p_fixed
SELECT i, i % 300 - 150, (i * 7919) % 1009 - 500, (i * 7919) % 1009 * 5000000000 - 2500000000000,
	CASE i % 50 WHEN 0 THEN 'NaN' WHEN 1 THEN '-Infinity' WHEN 2 THEN '-0' WHEN 3 THEN '0' ELSE (i * 31) % 97 / 8.0 - 6 END,
	CASE i % 50 WHEN 0 THEN 'NaN' WHEN 1 THEN 'Infinity' WHEN 2 THEN '-0' WHEN 3 THEN '0' ELSE (i * 37) % 97 / 8.0 - 6 END,
	CASE i % 40 WHEN 0 THEN 'infinity' WHEN 1 THEN '-infinity' ELSE date '2000-01-01' + i % 365 END,
	CASE i % 40 WHEN 0 THEN 'infinity' ELSE timestamp '2000-01-01' + i % 365 * interval '1 hour' END,
	i % 3 = 0, chr(1 + i % 127)::"char", (CASE WHEN i % 2 = 0 THEN 4294967295 - i % 11 ELSE i % 11 END)::oid, (i % 211)::money, md5((i % 97)::text)::uuid, 'n' || i % 89, i % 77 * interval '1 day',
	time '00:00' + i % 1000 * interval '1 minute', timestamptz '2000-01-01 00:00+00' + i % 365 * interval '1 hour'
FROM generate_series(1, 2000) i;
CREATE TABLE gs.p_mixed (id int, b bool, t text, i4 int, v varchar(40), f8 float8, n numeric, i8 bigint, a int[], s char(5), i2 smallint);
INSERT INTO gs.p_mixed
SELECT i, i % 2 = 0, repeat('x', i % 140) || i, (i * 7919) % 503, 'v' || i % 61, (i * 31) % 97 / 8.0, i % 71 / 7.0, (i * 31) % 999, ARRAY[i % 5, i], 's' || i % 9, i % 10 FROM generate_series(1, 2000) i;
CREATE TABLE gs.p_nulls AS
SELECT id, CASE WHEN id % 2 > 0 THEN b END AS b, CASE WHEN id % 3 > 0 THEN t END AS t, CASE WHEN id % 5 > 0 THEN i4 END AS i4, CASE WHEN id % 7 > 0 THEN v END AS v,
	CASE WHEN id % 4 > 0 THEN f8 END AS f8, CASE WHEN id % 6 > 0 THEN n END AS n, CASE WHEN id % 9 > 0 THEN i8 END AS i8, CASE WHEN id % 8 > 0 THEN a END AS a,
	CASE WHEN id % 11 > 0 THEN s END AS s, CASE WHEN id % 13 > 0 THEN i2 END AS i2 FROM gs.p_mixed;

-- Columns dropped, and added with a default and without: tuples of several lengths
CREATE TABLE gs.p_altered (gone int, id int, gone_t text, i4 int, t text);
INSERT INTO gs.p_altered SELECT i, i, repeat('y', i % 9), (i * 7919) % 503, 't' || i % 41 FROM generate_series(1, 700) i;
ALTER TABLE gs.p_altered DROP COLUMN gone;
ALTER TABLE gs.p_altered ADD COLUMN i8 bigint DEFAULT 77, ADD COLUMN v text DEFAULT 'a default', ADD COLUMN f8 float8;
INSERT INTO gs.p_altered (id, gone_t, i4, t, i8, v, f8) SELECT i, 'z', (i * 7919) % 503, NULL, i % 99, 'v' || i % 17, i / 8.0 FROM generate_series(701, 1400) i;
ALTER TABLE gs.p_altered DROP COLUMN gone_t;
ALTER TABLE gs.p_altered ADD COLUMN i2 smallint DEFAULT -3, ADD COLUMN b bool NOT NULL DEFAULT true;
INSERT INTO gs.p_altered (id, i4, t, i8, v, f8, i2, b) SELECT i, NULL, 't' || i % 41, NULL, NULL, i / 8.0, i % 5, i % 2 = 0 FROM generate_series(1401, 2000) i;

-- Only columns without a default added: tuples are copied as they are, some shorter than others
CREATE TABLE gs.p_late (id int, i4 int, i8 bigint, twice bigint GENERATED ALWAYS AS (2 * i8) STORED);
INSERT INTO gs.p_late SELECT i, nullif((i * 7919) % 503, i % 20), CASE WHEN i % 3 > 0 THEN i % 99 END FROM generate_series(1, 1000) i;
ALTER TABLE gs.p_late ADD COLUMN i2 smallint DEFAULT 5, ADD COLUMN f8 float8, ADD COLUMN b bool DEFAULT true, ADD COLUMN o oid;
INSERT INTO gs.p_late (id, i4, i8, i2, f8, b, o) SELECT i, (i * 7919) % 503, CASE WHEN i % 3 > 0 THEN i % 99 END, i % 7, nullif(i % 8, 3) / 8.0, i % 2 = 0, nullif(i % 5, 2) FROM generate_series(1001, 2000) i;
CREATE TABLE gs.p_longer (id int, t text);
INSERT INTO gs.p_longer SELECT i, 't' || i % 41 FROM generate_series(1, 1000) i;
ALTER TABLE gs.p_longer ADD COLUMN i4 int, ADD COLUMN v text;
INSERT INTO gs.p_longer SELECT i, 't' || i % 41, (i * 7919) % 503, 'v' || i FROM generate_series(1001, 2000) i;

-- Values in line, compressed, and in another table
CREATE TABLE gs.p_toast (id int, t text, x text, k int);
ALTER TABLE gs.p_toast ALTER t SET STORAGE external;
INSERT INTO gs.p_toast SELECT i, CASE WHEN i % 3 = 0 THEN repeat(md5(i::text), 100) ELSE md5(i::text) END, repeat('compress me ', 20 * (i % 40)), (i * 31) % 97 FROM generate_series(1, 400) i;

-- Pages of which a part is visible, redirections, versions on a page
CREATE TABLE gs.p_versions (id int PRIMARY KEY, i4 int, t text) WITH (fillfactor = 60);
INSERT INTO gs.p_versions SELECT i, (i * 7919) % 503, 't' || i % 41 FROM generate_series(1, 1500) i;
UPDATE gs.p_versions SET i4 = i4 + 1000 WHERE id % 3 = 0;
UPDATE gs.p_versions SET t = t || 'u' WHERE id % 6 = 0;
DELETE FROM gs.p_versions WHERE id % 7 = 0 OR id BETWEEN 500 AND 800;
BEGIN;
INSERT INTO gs.p_versions SELECT i, i, 'aborted' FROM generate_series(5000, 5500) i;
UPDATE gs.p_versions SET i4 = 0 WHERE id % 2 = 0;
ROLLBACK;

CREATE UNLOGGED TABLE gs.p_unlogged AS SELECT * FROM gs.p_mixed;
CREATE TEMP TABLE p_temp AS SELECT * FROM gs.p_mixed;
CREATE TABLE gs.p_empty (LIKE gs.p_mixed);
CREATE TABLE gs.p_one AS SELECT * FROM gs.p_mixed LIMIT 1;
CREATE TABLE gs.p_emptied AS SELECT * FROM gs.p_mixed;
DELETE FROM gs.p_emptied WHERE id > 3;
CREATE TABLE gs.p_parent (id int, t text, i4 int) PARTITION BY LIST (i4);
CREATE TABLE gs.p_part PARTITION OF gs.p_parent DEFAULT;
INSERT INTO gs.p_parent SELECT id, t, i4 FROM gs.p_mixed;
CREATE TABLE gs.p_ancestor (id int, i4 int, t text);
CREATE TABLE gs.p_heir (extra int) INHERITS (gs.p_ancestor);
INSERT INTO gs.p_ancestor SELECT id, i4, t FROM gs.p_mixed WHERE id % 2 = 0;
INSERT INTO gs.p_heir SELECT id, i4, t, id FROM gs.p_mixed WHERE id % 2 = 1;

-- Partitions laid out alike, with another order of columns, with dropped and added ones, empty, and of partitions
CREATE TABLE gs.p_pieces (id int NOT NULL, i4 int, t text, f8 float8) PARTITION BY RANGE (id);
CREATE TABLE gs.p_pieces_empty PARTITION OF gs.p_pieces FOR VALUES FROM (-100) TO (0);
CREATE TABLE gs.p_pieces_alike PARTITION OF gs.p_pieces FOR VALUES FROM (0) TO (500);
CREATE TABLE gs.p_pieces_other (f8 float8, gone text, t text, id int NOT NULL, i4 int);
ALTER TABLE gs.p_pieces_other DROP COLUMN gone;
ALTER TABLE gs.p_pieces ATTACH PARTITION gs.p_pieces_other FOR VALUES FROM (500) TO (900);
CREATE TABLE gs.p_pieces_sub PARTITION OF gs.p_pieces FOR VALUES FROM (900) TO (1600) PARTITION BY HASH (i4);
CREATE TABLE gs.p_pieces_sub_0 PARTITION OF gs.p_pieces_sub FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE gs.p_pieces_sub_1 PARTITION OF gs.p_pieces_sub FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CREATE TABLE gs.p_pieces_last PARTITION OF gs.p_pieces DEFAULT;
INSERT INTO gs.p_pieces SELECT id, i4, t, f8 FROM gs.p_mixed;
ALTER TABLE gs.p_pieces ADD COLUMN late int DEFAULT 7;
INSERT INTO gs.p_pieces SELECT id + 3000, i4, t, f8, id % 10 FROM gs.p_mixed WHERE id % 4 = 0;

-- More columns than a batch has room for of all rows of a page
SELECT format('CREATE TABLE gs.p_wide (id int, %s)', string_agg(format('c%s %s', i, (ARRAY['int', 'text', 'bool', 'float8'])[1 + i % 4]), ', ')) FROM generate_series(1, 1000) i \gexec
INSERT INTO gs.p_wide (id, c4, c101, c998) SELECT i, (i * 31) % 97, 'c' || i % 7, i % 2 = 0 FROM generate_series(1, 600) i;

-- Columns far behind others of any length, some dropped, NULL, or added
CREATE TABLE gs.p_far AS
SELECT id, i4 AS near, repeat('a', id % 3) AS a, nullif(repeat('b', id % 4), '') AS b, 'c' || id AS c, b AS d, nullif(v, 'v7') AS e, repeat('f', id % 200) AS f, n AS g, a AS h, s AS i, 'j' || id % 9 AS j,
	nullif(i4 % 101, 3) AS k, nullif('x' || i2, 'x2') AS x, i8, 'z' || id % 83 AS z FROM gs.p_mixed;
ALTER TABLE gs.p_far DROP COLUMN f, ADD COLUMN late int DEFAULT 7, ADD COLUMN later text;
INSERT INTO gs.p_far (id, near, c, k, x, i8, late, later) SELECT id + 3000, i4 % 400, t, i4 % 101, 'x' || i2, id % 3, i2, v FROM gs.p_mixed WHERE id % 4 = 0;
VACUUM gs.p_fixed, gs.p_mixed, gs.p_nulls, gs.p_unlogged, gs.p_wide;
ANALYZE;

SELECT * FROM no_plan();

-- every shape: whole rows, columns in other orders, hidden keys, one twice, conditions
SELECT is(gs.by_page(format(query, name)), 'same', format(query, name))
FROM (VALUES (1, 'gs.p_mixed'), (2, 'gs.p_nulls'), (3, 'gs.p_altered'), (4, 'gs.p_unlogged'), (5, 'p_temp'), (6, 'gs.p_empty'), (7, 'gs.p_one'), (8, 'gs.p_emptied')) t (n, name),
	(VALUES (1, 'SELECT * FROM %s ORDER BY i4, id'), (2, 'SELECT * FROM %s ORDER BY t COLLATE "C" DESC, id'), (3, 'SELECT id FROM %s ORDER BY f8 DESC NULLS LAST, id'),
			(4, 'SELECT i4, id FROM %s ORDER BY i4, id'), (5, 'SELECT b, v, id, t, i2, id AS again FROM %s ORDER BY v COLLATE "C", id DESC'),
			(6, 'SELECT id, ctid, tableoid::regclass FROM %s ORDER BY i8, id'), (7, 'SELECT x FROM %s x ORDER BY i2, id'),
			(8, 'SELECT * FROM %s WHERE i4 < 100 ORDER BY i8, id'), (9, 'SELECT id, t FROM %s WHERE 100 <= i4 AND f8 > 2.5 AND v <> ''v7'' ORDER BY i4, id'),
			(10, 'SELECT id FROM %s WHERE i8 IS NULL ORDER BY i4, id'), (11, 'SELECT id, f8 * 2 AS f, t FROM %s WHERE b ORDER BY f, id'),
			(12, 'SELECT id FROM %s WHERE t IS NOT NULL AND i2 = 3 ORDER BY t COLLATE "C", id'), (13, 'SELECT * FROM %s WHERE i8 > 1000000 ORDER BY id')) q (m, query)
ORDER BY t.n, q.m;

-- every type whose comparisons are decided by the page, with every operator, either way round, and NaN, infinities, both zeros
SELECT is(gs.by_page(format('SELECT id, %s FROM gs.p_fixed WHERE %s %s %s ORDER BY %1$s, id', name, name, op, constant)), 'same', format('%s %s %s', name, op, constant))
FROM (VALUES (1, 'i2', '-7'), (2, 'i2', '100000'), (3, 'i4', '17::smallint'), (4, 'i4', '2500000000'), (5, 'i8', '0'), (6, 'i8', '5000000000'), (7, 'f4', '''NaN''::real'), (8, 'f4', '1.125'), (9, 'f4', '0::real'),
			 (10, 'f8', '''NaN''::float8'), (11, 'f8', '-0.0::float8'), (12, 'f8', '1.5::real'), (13, 'f8', '''Infinity''::float8'), (14, 'd', '''2000-02-01''::date'), (15, 'd', '''infinity''::date'),
			 (16, 'ts', '''2000-01-03''::timestamp'), (17, 'b', 'true'), (18, 'c', '''A''::"char"'), (19, 'o', '5::oid'), (20, 'o', '4294967290::oid'), (21, 'm', '100::money'), (22, 'ti', '''08:00''::time'),
			 (23, 'd', '''2000-02-01''::timestamp'), (24, 'u', '''11111111-1111-1111-1111-111111111111''::uuid'), (25, 'tz', '''2000-01-03 12:00+00''::timestamptz'), (26, 'i4', '3.5')) c (n, name, constant),
	(VALUES (1, '<'), (2, '<='), (3, '='), (4, '>='), (5, '>'), (6, '<>')) o (m, op)
ORDER BY c.n, o.m;
SELECT is(gs.by_page('SELECT id FROM gs.p_fixed WHERE -100 ' || op || ' i4 AND i8 BETWEEN -1000000000000 AND 2000000000000 ORDER BY i8, id'), 'same', 'a constant ' || op || ' a column, and between two')
FROM (VALUES (1, '<'), (2, '<='), (3, '='), (4, '>='), (5, '>'), (6, '<>')) o (m, op) ORDER BY m;
SELECT is(gs.by_page(format('SELECT id, %s FROM gs.p_fixed ORDER BY %1$s, id', name)), 'same', 'a key of fixed offset: ' || name)
FROM unnest(ARRAY['i2', 'i4', 'i8', 'f4', 'f8', 'd', 'ts', 'b', 'c', 'o', 'm', 'u', 'n', 'iv', 'ti', 'tz']) name;
SELECT is(gs.by_page('SELECT * FROM gs.p_fixed ORDER BY ' || keys), 'same', 'whole rows by ' || keys) FROM unnest(ARRAY['i8, id', 'u, n, id', 'id DESC', 'iv, f4, i2, id']) keys;

-- conditions on columns of fixed offset, of tuples on one page that have these, NULLs in their places, or are older than the column
SELECT is(gs.by_page(format(query, conditions)), 'same', format(query, conditions))
FROM (VALUES (1, 'SELECT * FROM gs.p_late WHERE %s ORDER BY i8, id'), (2, 'SELECT id, i4 FROM gs.p_late WHERE %s ORDER BY i4, id')) q (n, query),
	(VALUES (1, 'i4 < 250'), (2, 'i4 < 250 AND i8 >= 20'), (3, 'i8 IS NULL AND i4 > 100'), (4, 'i8 IS NOT NULL AND i2 = 5'), (5, 'i2 <= 5 AND f8 IS NULL'), (6, 'f8 > 0.25 AND i4 <> 7 AND b'),
			 (7, 'twice > 100 AND i4 < 400 AND o < 4'), (8, 'o IS NULL AND i2 > 3 AND twice IS NOT NULL'), (9, 'b = true AND i8 < 50 AND i4 IS NOT NULL AND f8 = 0.5'), (10, 'i4 IS NULL'), (11, 'i4 < 250 AND i4 > 250')) c (m, conditions)
ORDER BY q.n, c.m;

-- conditions that are not decided by the page, alone and after some that are
PREPARE p_native(int, text) AS SELECT id, t FROM gs.p_mixed WHERE i4 < $1 AND t > $2 COLLATE "C" ORDER BY i8, id;
PREPARE p_forced(int, text) AS SELECT id, t FROM gs.p_mixed WHERE i4 < $1 AND t > $2 COLLATE "C" ORDER BY i8, id;
SET plan_cache_mode = force_generic_plan;
SELECT is(ARRAY[gs.difference(gs.native_rows('EXECUTE p_native(' || args || ')'), gs.page_rows('EXECUTE p_forced(' || args || ')', true)), gs.forced_uses('EXECUTE p_forced(' || args || ')')::text,
				gs.difference(gs.native_rows('EXECUTE p_native(' || args || ')'), gs.page_rows('EXECUTE p_forced(' || args || ')', false))], ARRAY['same', 'true', 'same'], 'parameters: ' || args)
FROM unnest(ARRAY['200, ''x''', '0, ''''', 'NULL, NULL', '300, NULL', '9999, ''xxxx''']) args;
RESET plan_cache_mode;
CREATE FUNCTION gs.p_odd(i int) RETURNS bool LANGUAGE plpgsql VOLATILE AS $$ BEGIN RETURN i % 2 = 1; END $$;
CREATE FUNCTION gs.p_fails(i int) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN IF i = 77 THEN RAISE 'seventy-seven'; END IF; RETURN true; END $$;
SELECT is(gs.by_page(query), 'same', query) FROM (VALUES
	(1, 'SELECT id FROM gs.p_mixed WHERE i4 > 100 AND gs.p_odd(id) ORDER BY i4, id'), (2, 'SELECT id, t FROM gs.p_nulls WHERE gs.p_odd(id) AND i4 > 100 ORDER BY i4, id'),
	(3, 'SELECT id FROM gs.p_mixed WHERE i4 = ANY (ARRAY[3, 5, 7, 11]) ORDER BY id DESC'), (4, 'SELECT id FROM gs.p_nulls WHERE i4 IN (SELECT i4 + 1 FROM gs.p_nulls OFFSET 0) IS NOT TRUE ORDER BY id DESC'),
	(5, 'SELECT id, t FROM gs.p_mixed m WHERE i4 > 250 AND EXISTS (SELECT FROM gs.p_one o WHERE o.id <= m.id OFFSET 0) ORDER BY t COLLATE "C", id'),
	(6, 'SELECT id FROM gs.p_mixed WHERE (SELECT max(id) FROM gs.p_one) < i4 ORDER BY i4, id'), (7, 'SELECT id FROM gs.p_mixed WHERE tableoid = ''gs.p_mixed''::regclass AND ctid > ''(3,5)'' ORDER BY i4, id'),
	(8, 'SELECT id FROM gs.p_mixed x WHERE x IS NOT NULL AND (x).i4 > 7 ORDER BY i4, id'), (9, 'SELECT id FROM gs.p_nulls x WHERE x::text LIKE ''%7%'' ORDER BY i4, id'),
	(10, 'SELECT id FROM gs.p_mixed WHERE NOT b ORDER BY i4, id'), (11, 'SELECT id FROM gs.p_mixed WHERE i4 < 5 OR id < 5 ORDER BY i4, id'), (12, 'SELECT id FROM gs.p_toast WHERE length(t) > 100 AND length(x) > 100 ORDER BY k, id'),
	(13, 'SELECT v FROM gs.p_mixed WHERE v::text > ''v3'' COLLATE "C" ORDER BY v::text COLLATE "C", id'), (14, 'SELECT FROM gs.p_mixed WHERE i4 < 50 ORDER BY i4'),
	(15, 'SELECT id FROM gs.p_mixed WHERE xmin::text <> ''0'' AND i2 > 2 ORDER BY i4, id')) q (n, query) ORDER BY n;
SELECT throws_ok('EXPLAIN (ANALYZE, COSTS OFF) SELECT id FROM gs.p_mixed WHERE id < 100 AND gs.p_fails(id) ORDER BY i4', 'P0001', 'seventy-seven', 'a condition raises an error');
SET gpusort.force = on;
SET gpusort.min_rows = 0;
SELECT throws_ok('SELECT id FROM gs.p_mixed WHERE id < 100 AND gs.p_fails(id) ORDER BY i4', 'P0001', 'seventy-seven', 'the same by the page');
SELECT lives_ok('SELECT id FROM gs.p_mixed WHERE id < 70 AND gs.p_fails(id) ORDER BY i4', 'not for rows that an earlier condition drops');
RESET gpusort.force;
RESET gpusort.min_rows;

-- conditions, keys and results that lie far behind other columns, by a slot
SELECT is(gs.by_page(format(query, condition)), 'same', format(query, condition))
FROM (VALUES (1, 'SELECT * FROM gs.p_far WHERE %s ORDER BY near, id'), (2, 'SELECT z, later, id FROM gs.p_far WHERE %s ORDER BY k, x COLLATE "C", id'), (3, 'SELECT id, late, a FROM gs.p_far WHERE %s ORDER BY late, id'),
			 (4, 'SELECT x, k + 1, id FROM gs.p_far WHERE %s ORDER BY k + 1, id'), (5, 'SELECT * FROM gs.p_far WHERE %s ORDER BY z COLLATE "C" DESC, id')) q (n, query),
	(VALUES (1, 'near > 100'), (2, 'near < 300 AND k > 20'), (3, 'k IS NULL'), (4, 'x = ''x3'' AND i8 > 5'), (5, 'late = 7 OR later > ''v3'' COLLATE "C"'), (6, 'near IS NOT NULL AND gs.p_odd(id) AND late < 9'), (7, 'z LIKE ''z1%%'' AND k < 90')) c (m, condition)
ORDER BY q.n, c.m;
SELECT is(gs.by_page('SELECT s.*, m.id FROM gs.p_one m, LATERAL (SELECT * FROM gs.p_far f WHERE f.k >= m.id ORDER BY f.near, f.id OFFSET 0) s'), 'same', 'far, by a parameter');

-- other shapes
SELECT is(gs.by_page(query), 'same', query) FROM (VALUES
	(1, 'SELECT * FROM gs.p_longer ORDER BY i4, id'), (2, 'SELECT * FROM gs.p_longer ORDER BY v COLLATE "C" NULLS FIRST, id'), (3, 'SELECT v, id FROM gs.p_longer WHERE i4 IS NULL OR i4 > 100 ORDER BY i4, id'),
	(4, 'SELECT id, v FROM gs.p_longer WHERE i4 IS NULL ORDER BY t COLLATE "C", id'), (5, 'SELECT i8, v, i2, b FROM gs.p_altered WHERE i8 = 77 ORDER BY id'), (6, 'SELECT i8, v, i2, b FROM gs.p_altered WHERE i2 = -3 ORDER BY v COLLATE "C", id'),
	(7, 'SELECT * FROM gs.p_toast ORDER BY k, id'), (8, 'SELECT * FROM gs.p_toast ORDER BY t COLLATE "C"'), (9, 'SELECT x, id FROM gs.p_toast WHERE k > 30 ORDER BY x COLLATE "C", id'),
	(10, 'SELECT * FROM gs.p_versions ORDER BY i4, id'), (11, 'SELECT t, id FROM gs.p_versions WHERE i4 >= 1000 ORDER BY t COLLATE "C", id'), (12, 'SELECT id, ctid FROM gs.p_versions WHERE id > 100 AND t LIKE ''%u'' ORDER BY i4, id'),
	(13, 'SELECT * FROM gs.p_parent ORDER BY t COLLATE "C", id'), (14, 'SELECT id FROM gs.p_parent WHERE i4 < 100 ORDER BY i4, id'), (15, 'SELECT * FROM gs.p_ancestor ORDER BY i4, id'), (16, 'SELECT id, tableoid::regclass FROM gs.p_ancestor WHERE i4 < 100 ORDER BY id'),
	(17, 'SELECT * FROM ONLY gs.p_ancestor ORDER BY i4, id'), (18, 'SELECT * FROM gs.p_heir ORDER BY i4, id'), (19, 'SELECT * FROM gs.p_wide ORDER BY c4, id'), (20, 'SELECT c998, c101, id, c4 FROM gs.p_wide WHERE c998 ORDER BY c101 COLLATE "C", id'),
	(21, 'SELECT * FROM gs.p_mixed TABLESAMPLE SYSTEM (50) REPEATABLE (3) ORDER BY i4, id'), (22, 'SELECT id FROM gs.p_mixed ORDER BY i4, id LIMIT 20 OFFSET 30'), (23, 'SELECT id FROM gs.p_mixed WHERE i2 < 5 ORDER BY i4, id LIMIT 700'),
	(24, 'SELECT s.*, m.id FROM gs.p_one m, LATERAL (SELECT * FROM gs.p_mixed x WHERE x.i4 >= m.id ORDER BY x.i4, x.id OFFSET 0) s'), (25, 'SELECT i4, count(*), max(t) FROM gs.p_mixed GROUP BY i4 ORDER BY i4'),
	(26, 'SELECT id, (SELECT array_agg(x.id) FROM (SELECT y.id FROM gs.p_versions y WHERE y.id < m.i2 AND y.i4 > m.i2 ORDER BY y.i4, y.id) x) FROM gs.p_mixed m WHERE id < 40 ORDER BY i4, id'),
	(27, 'SELECT id, lag(t) OVER (ORDER BY i4, id) FROM gs.p_nulls ORDER BY i4, id'), (28, 'SELECT id, rank() OVER (PARTITION BY i2 ORDER BY i4, id) FROM gs.p_mixed ORDER BY i2, i4, id')) q (n, query) ORDER BY n;

-- what the executor computes of a tuple: by value and not, of system columns and rows, with effects, beside any conditions
CREATE SEQUENCE gs.p_numbers;
SELECT is(gs.by_page(query), 'same', query) FROM (VALUES
	(1, 'SELECT id + 1, i4 * 2 FROM gs.p_mixed ORDER BY i4 * 2, id'), (2, 'SELECT id, t || v FROM gs.p_nulls ORDER BY t || v COLLATE "C", id'), (3, 'SELECT * FROM gs.p_mixed ORDER BY i4 % 10, f8 DESC, id'),
	(4, 'SELECT * FROM gs.p_nulls WHERE i4 < 300 ORDER BY upper(t) COLLATE "C", id'), (5, 'SELECT id, xmin::text = cmin::text, tableoid::int8 FROM gs.p_mixed WHERE t > ''t3'' COLLATE "C" ORDER BY tableoid, id'),
	(6, 'SELECT ctid, id FROM gs.p_versions WHERE id % 2 = 0 ORDER BY ctid, id'), (7, 'SELECT id, x, x::text FROM gs.p_altered x WHERE x.i2 <> 2 ORDER BY x.i8, id'), (8, 'SELECT x IS NULL, id FROM gs.p_nulls x ORDER BY 1, id'),
	(9, 'SELECT length(t), length(x), id FROM gs.p_toast ORDER BY length(x), length(t), id'), (10, 'SELECT left(t, 5000), id FROM gs.p_toast WHERE length(x) > 100 ORDER BY left(x, 500) COLLATE "C", id'),
	(11, 'SELECT id, i8 + i2, now() > ''2000-01-01'' FROM gs.p_altered WHERE b ORDER BY coalesce(i8, -1), id'), (12, 'SELECT ARRAY[id, i4], (SELECT max(id) FROM gs.p_one) + id FROM gs.p_mixed ORDER BY 2 DESC'),
	(13, 'SELECT * FROM gs.p_longer ORDER BY i4 + 1, id'), (14, 'SELECT c4 + 1, c998, c101 || ''x'', id FROM gs.p_wide WHERE c998 ORDER BY c4 + 1, id'), (15, 'SELECT CASE WHEN i4 > 100 THEN t COLLATE "C" END, id FROM gs.p_mixed ORDER BY 1, 2 LIMIT 300'),
	(16, 'SELECT x.id, x.i4 + m.id FROM gs.p_one m, LATERAL (SELECT y.id, y.i4 + m.id AS i4 FROM gs.p_mixed y WHERE y.i4 >= m.id ORDER BY y.i4 + m.id, y.id OFFSET 0) x(id, i4)')) q (n, query) ORDER BY n;
CREATE FUNCTION gs.p_numbered(by_page text, forced bool) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	answer text;
	query CONSTANT text := 'SELECT id, nextval(''gs.p_numbers'') AS n FROM gs.p_mixed WHERE i4 > 50 AND nextval(''gs.p_numbers'') % 3 <> 0 ORDER BY i4, id';
BEGIN
	PERFORM setval('gs.p_numbers', 1);
	PERFORM set_config('gpusort.page_scan', by_page, true), set_config('gpusort.enable', forced::text, true), set_config('gpusort.force', forced::text, true), set_config('gpusort.min_rows', '0', true);
	EXECUTE format('SELECT md5(string_agg(q::text, '','')) FROM (%s OFFSET 0) q', query) INTO answer;
	RETURN answer || ' ' || currval('gs.p_numbers');
END $$;
SELECT is(ARRAY[gs.p_numbered('on', true), gs.p_numbered('off', true)], ARRAY[gs.p_numbered('on', false), gs.p_numbered('on', false)], 'conditions and results have their effects in the order of the rows');

-- parts of an Append
SET enable_partition_pruning = on;
SELECT is(gs.by_page(query), 'same', query) FROM (VALUES
	(1, 'SELECT * FROM gs.p_pieces ORDER BY i4, id'), (2, 'SELECT i4, id FROM gs.p_pieces ORDER BY i4, id'), (3, 'SELECT id, t FROM gs.p_pieces WHERE i4 < 200 ORDER BY t COLLATE "C", id'), (4, 'SELECT id, tableoid::regclass, f8 * 2 FROM gs.p_pieces ORDER BY f8 * 2, id'),
	(5, 'SELECT * FROM gs.p_pieces ORDER BY i4 % 10, id'), (6, 'SELECT late, id FROM gs.p_pieces WHERE late = 7 ORDER BY i4, id'), (7, 'SELECT * FROM gs.p_pieces WHERE id < 0 OR id > 1000 ORDER BY i4, id'), (8, 'SELECT * FROM gs.p_pieces WHERE i4 IS NULL AND id > 700 ORDER BY id'),
	(9, 'SELECT x.id FROM gs.p_pieces x WHERE x IS NOT NULL ORDER BY i4, id'), (10, 'SELECT * FROM gs.p_ancestor ORDER BY t COLLATE "C", id'), (11, 'SELECT id, i4 + 1 FROM gs.p_ancestor WHERE i4 > 10 ORDER BY i4 + 1, id'), (12, 'SELECT id, i4 FROM gs.p_pieces ORDER BY i4, id LIMIT 50 OFFSET 30'),
	(13, 'SELECT s.*, m.id FROM gs.p_one m, LATERAL (SELECT x.* FROM gs.p_pieces x WHERE x.i4 >= m.id ORDER BY x.i4, x.id OFFSET 0) s'),
	(14, 'SELECT id, (SELECT array_agg(x.id) FROM (SELECT y.id FROM gs.p_pieces y WHERE y.id < 5 * m.i2 AND y.i4 > m.i2 ORDER BY y.i4, y.id) x) FROM gs.p_mixed m WHERE id < 40 ORDER BY i4, id'),
	(15, 'SELECT * FROM (SELECT id, i4 FROM gs.p_mixed UNION ALL SELECT g, g % 7 FROM generate_series(1, 99) g UNION ALL SELECT id, i4 FROM gs.p_empty UNION ALL SELECT i4, id FROM gs.p_nulls TABLESAMPLE SYSTEM (50) REPEATABLE (3) UNION ALL SELECT id, i4 FROM gs.p_versions WHERE t LIKE ''%u'') u ORDER BY i4, id'),
	(16, 'SELECT i4, count(*), max(t) FROM gs.p_pieces GROUP BY i4 ORDER BY i4'), (17, 'SELECT * FROM gs.p_pieces_empty UNION ALL SELECT * FROM gs.p_pieces_empty ORDER BY i4, id')) q (n, query) ORDER BY n;
PREPARE p_pieces_native(int, int) AS SELECT id, t FROM gs.p_pieces WHERE id BETWEEN $1 AND $2 ORDER BY i4, id;
PREPARE p_pieces_forced(int, int) AS SELECT id, t FROM gs.p_pieces WHERE id BETWEEN $1 AND $2 ORDER BY i4, id;
SET plan_cache_mode = force_generic_plan;
SELECT is(ARRAY[gs.difference(gs.native_rows('EXECUTE p_pieces_native(' || args || ')'), gs.page_rows('EXECUTE p_pieces_forced(' || args || ')', true)), gs.forced_uses('EXECUTE p_pieces_forced(' || args || ')')::text],
				ARRAY['same', 'true'], 'partitions pruned when it starts: ' || args) FROM unnest(ARRAY['100, 1200', '-5, -1', '700, 3000', '5, 1', 'NULL, 7']) args;
RESET plan_cache_mode;

-- a statement sees what came before it in its transaction, and nothing of itself
BEGIN;
UPDATE gs.p_versions SET i4 = -i4 WHERE id % 5 = 0;
DELETE FROM gs.p_versions WHERE id % 11 = 0;
SAVEPOINT s;
INSERT INTO gs.p_versions SELECT i, i, 'own' FROM generate_series(9000, 9100) i;
SELECT is(gs.by_page('SELECT * FROM gs.p_versions ORDER BY i4, id'), 'same', 'own versions');
ROLLBACK TO s;
SELECT is(gs.by_page('SELECT * FROM gs.p_versions ORDER BY i4, id'), 'same', 'and without those of a part that is rolled back');
SET LOCAL gpusort.force = on;
SET LOCAL gpusort.min_rows = 0;
CREATE TABLE gs.p_copies AS SELECT * FROM gs.p_versions;
INSERT INTO gs.p_copies SELECT id + 100000, i4, t FROM gs.p_copies ORDER BY i4, id;
SELECT is((SELECT count(*) FROM gs.p_copies), 2 * (SELECT count(*) FROM gs.p_versions), 'a table that is written while it is sorted');
DECLARE p_cursor SCROLL CURSOR FOR SELECT id FROM gs.p_versions ORDER BY i4, id;
SELECT is(gs.fetch('p_cursor', '3'), (gs.native_rows('SELECT id FROM gs.p_versions ORDER BY i4, id'))[1:3], 'a cursor forward');
DELETE FROM gs.p_versions;
MOVE LAST FROM p_cursor;
SELECT is(gs.fetch('p_cursor', 'FIRST'), (SELECT ARRAY[format('(%s)', id)] FROM gs.p_copies WHERE id < 100000 ORDER BY i4, id LIMIT 1), 'and back, after the rows are deleted');
ROLLBACK;

-- in several processes: rows, and the sum of what they count
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
CREATE FUNCTION gs.by_page_in_parallel(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	native text[] := gs.native_rows(query);
BEGIN
	IF gs.forced_plan(query) !~ 'Parallel Seq Scan' THEN
		RETURN 'no parallel scan';
	END IF;
	RETURN 'by the page: ' || gs.difference(native, gs.page_rows(query, true)) || ', one by one: ' || gs.difference(native, gs.page_rows(query, false));
END $$;
SELECT is(gs.by_page_in_parallel(query), 'by the page: same, one by one: same', query) FROM (VALUES
	(1, 'SELECT * FROM gs.p_mixed ORDER BY i4, id'), (2, 'SELECT id, i4 FROM gs.p_nulls WHERE i4 < 300 ORDER BY i4, id'), (3, 'SELECT * FROM gs.p_altered WHERE i2 <> 2 ORDER BY v COLLATE "C", id'),
	(4, 'SELECT * FROM gs.p_toast ORDER BY t COLLATE "C", id'), (5, 'SELECT i4, count(*), sum(id) FROM gs.p_mixed GROUP BY i4 ORDER BY i4'), (6, 'SELECT id FROM gs.p_versions WHERE t LIKE ''%u'' ORDER BY i4, id')) q (n, query) ORDER BY n;
SELECT is(gs.by_page_in_parallel(query), 'by the page: same, one by one: same', query) FROM (VALUES
	(1, 'SELECT * FROM gs.p_pieces ORDER BY i4, id'), (2, 'SELECT id, f8 * 2, t || ''x'' FROM gs.p_pieces WHERE i4 < 300 ORDER BY f8 * 2, id'), (3, 'SELECT * FROM gs.p_ancestor ORDER BY i4, id'), (4, 'SELECT id + 1, i4 FROM gs.p_mixed ORDER BY id + 1')) q (n, query) ORDER BY n;
SET enable_parallel_append = off;
SELECT is(gs.by_page_in_parallel('SELECT * FROM gs.p_pieces ORDER BY i4, id'), 'by the page: same, one by one: same', 'all parts in all processes');
RESET enable_parallel_append;
SELECT is(gs.by_page_in_parallel('SELECT * FROM gs.p_fixed ORDER BY f8, id'), 'by the page: same, one by one: same', 'without the leader')
FROM (SELECT set_config('parallel_leader_participation', 'off', false)) s;
RESET parallel_leader_participation;
RESET max_parallel_workers_per_gather;
SET max_parallel_workers_per_gather = 0;

-- which scans go by the page: only the first row comes from the node
SET gpusort.force = on;
SET gpusort.min_rows = 0;
SET client_min_messages = debug1;
EXPLAIN (COSTS OFF) SELECT * FROM gs.p_mixed WHERE i4 < 5 ORDER BY i4;
EXPLAIN (COSTS OFF) SELECT id FROM gs.p_mixed WHERE t > 'x' ORDER BY i4;
EXPLAIN (COSTS OFF) SELECT id + 1 FROM gs.p_mixed ORDER BY i4;
EXPLAIN (COSTS OFF) SELECT later FROM gs.p_far WHERE z <> '' ORDER BY near;
EXPLAIN (COSTS OFF) SELECT id FROM gs.p_ancestor ORDER BY i4;
EXPLAIN (COSTS OFF) SELECT id FROM gs.p_mixed TABLESAMPLE SYSTEM (50) ORDER BY i4;
SET gpusort.page_scan = off;
EXPLAIN (COSTS OFF) SELECT * FROM gs.p_mixed WHERE i4 < 5 ORDER BY i4;
SET client_min_messages = warning;
RESET gpusort.page_scan;
RESET gpusort.force;
RESET gpusort.min_rows;
DROP TABLE gs.p_wide, gs.p_mixed, gs.p_nulls, gs.p_altered, gs.p_fixed, gs.p_longer, gs.p_toast, gs.p_versions, gs.p_unlogged, gs.p_empty, gs.p_one, gs.p_emptied, gs.p_parent, gs.p_ancestor, gs.p_heir, gs.p_pieces;
DROP SEQUENCE gs.p_numbers;
SELECT * FROM finish();
