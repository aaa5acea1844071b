\set ECHO none
-- Values that are made of others as sort keys: arrays, ranges, multiranges, composite types, jsonb, tsvector, tsquery, domains over them,
-- and each within the others, compared with PostgreSQL's order.
SET client_min_messages = warning;
LOAD 'gpusort';
\pset format unaligned
\pset tuples_only on

SELECT * FROM no_plan();

CREATE TYPE gs.shade AS ENUM ('light', 'dark', 'black');
CREATE TYPE gs.trio AS (a int, b text, c numeric);
CREATE TYPE gs.deep AS (x float8, y gs.trio[], z timestamptz, e gs.shade);
CREATE TYPE gs.text_range AS RANGE (subtype = text, collation = "C");
CREATE TYPE gs.shade_range AS RANGE (subtype = gs.shade);
CREATE DOMAIN gs.int_list AS int[];
CREATE DOMAIN gs.trio_some AS gs.trio;

-- One of an array's elements, which may be NULL
CREATE FUNCTION gs.pick(anyarray, int, int) RETURNS anyelement LANGUAGE sql AS
$$ SELECT $1[array_lower($1, 1) + gs.dice(cardinality($1), $2, $3)] $$;

-- Values at the edges of each type, in a row each, and random arrays of up to five elements.
CREATE TABLE gs.nested AS
SELECT i AS id, i % 7 AS few,
	gs.pick(ARRAY['{}', NULL, '{1}', '{1,2}', '{1,NULL}', '{NULL}', '{NULL,NULL}', '{{1},{2}}', '{{1,2}}', '[0:1]={1,2}', '[2:3]={1,2}', '[-5:-4]={1,2}',
		'[0:1][1:1]={{1},{2}}', '{-2147483648,2147483647}', '{{{1}},{{2}}}', '{0}', '{-1}', '{2}'], i, 1)::int[] AS shapes,
	(SELECT array_agg(CASE WHEN gs.dice(9, i, g) > 0 THEN gs.dice(4, i, 10 + g) - 1 END) FROM generate_series(1, gs.dice(6, i, 2)) g) AS ints,
	(SELECT array_agg(gs.pick(ARRAY['', 'a', 'A', 'ab', 'a b', 'é', 'e', 'É', 'b', 'co-op', 'coop', NULL, repeat('long ', 60)], i, g)) FROM generate_series(1, gs.dice(4, i, 3)) g) AS texts,
	(SELECT array_agg(gs.pick(ARRAY['NaN', '-0', '0', 'Infinity', '-Infinity', '1', '-1', NULL], i, g)::float8) FROM generate_series(1, gs.dice(4, i, 4)) g) AS floats,
	(SELECT array_agg(gs.pick(ARRAY['NaN', '0', '0.00', '1.0', '1.00', '-1', '-1e-20', 'Infinity', '-Infinity', '12345678901234567890.5', '12345678901234567890.51',
		'12345678901234567891', '-12345678901234567890.5', '10000', '9999', NULL], i, g)::numeric) FROM generate_series(1, gs.dice(4, i, 5)) g) AS numerics,
	(SELECT array_agg(gs.pick(ARRAY['\x', '\x00', '\x0000', '\x0001', '\x01', '\xff', '\x00ff', NULL]::bytea[], i, g)) FROM generate_series(1, gs.dice(4, i, 6)) g) AS bytes,
	(SELECT array_agg(gs.pick(ARRAY['', '0', '1', '00', '01', '00000000', '000000000', '1111111100000000', NULL]::varbit[], i, g)) FROM generate_series(1, gs.dice(4, i, 7)) g) AS bits,
	(SELECT array_agg(gs.pick(enum_range(NULL::gs.shade), i, g)) FROM generate_series(1, gs.dice(4, i, 8)) g) AS shades,
	(SELECT array_agg(gs.pick(ARRAY['1 mon', '30 days', '720:00', '-1 mon', '0', '1 us', NULL]::interval[], i, g)) FROM generate_series(1, gs.dice(3, i, 9)) g) AS intervals,
	(SELECT array_agg(gs.pick(ARRAY['10.0.0.0/8', '10.0.0.1', '::1', '10.0.0.0/16', NULL]::inet[], i, g)) FROM generate_series(1, gs.dice(3, i, 10)) g) AS inets,
	(SELECT array_agg(md5(gs.dice(20, i, g)::text)::uuid) FROM generate_series(1, gs.dice(3, i, 11)) g) AS uuids,
	(SELECT array_agg(gs.pick(ARRAY['a', 'a  ', 'b', '', NULL], i, g)::char(4)) FROM generate_series(1, gs.dice(4, i, 12)) g) AS chars,
	gs.pick(ARRAY['empty', '(,)', '(,5)', '[5,)', '[1,5)', '[1,4]', '(0,5)', '[1,6)', '[2,2]', '[-3,1)', '(,0]', NULL], i, 13)::int4range AS ints_range,
	gs.pick(ARRAY['empty', '(,)', '(,5]', '(,5)', '[5,)', '(5,)', '[1,5)', '[1,5]', '(1,5)', '(1,5]', '[1.0,5.00]', '[NaN,]', '[-Infinity,1]', '[1,Infinity)', NULL], i, 14)::numrange AS nums_range,
	gs.pick(ARRAY['empty', '["",a)', '[a,b)', '[a,b]', '(a,b]', '[a,ab)', '[,b)', '[a,)', NULL], i, 15)::gs.text_range AS texts_range,
	gs.pick(ARRAY['empty', '[light,dark]', '[light,dark)', '(light,black]', '[dark,)', NULL], i, 16)::gs.shade_range AS shades_range,
	tstzrange('2020-01-01'::timestamptz + gs.dice(5, i, 17) * interval '1 h', '2020-01-02'::timestamptz + gs.dice(5, i, 18) * interval '1 h') AS times_range,
	gs.pick(ARRAY['{}', '{(,)}', '{[1,2)}', '{[1,2),[3,4)}', '{[1,2),[5,)}', '{(,0),[1,2)}', '{[1,3)}', NULL], i, 19)::int4multirange AS ranges,
	CASE WHEN gs.dice(9, i, 20) > 0 THEN ROW(gs.pick(ARRAY[1, 2, NULL], i, 21), gs.pick(ARRAY['', 'a', 'ab', 'B', NULL], i, 22), gs.pick(ARRAY[1.0, 1.00, 2, NULL], i, 23))::gs.trio END AS trio,
	ROW(gs.dice(2, i, 24), ARRAY[ROW(gs.dice(2, i, 25), gs.pick(ARRAY['x', NULL], i, 26), 1)::gs.trio, NULL], '2020-01-01', gs.pick(enum_range(NULL::gs.shade), i, 27))::gs.deep AS deep,
	gs.pick(ARRAY['null', '1', '1.0', '1.00', '-1', '"a"', '"b"', '"A"', '"ab"', '""', 'true', 'false', '[]', '[1]', '[[]]', '[{}]', '[null]', '{}', '[1,2]', '[[],1]', '[1,[]]', '{"a":1}', '{"a":1.0}',
		'{"b":1}', '{"a":2}', '{"a":1,"b":null}', '{"aa":1,"b":2}', '{"a":[]}', '{"a":{}}', '{"a":{"b":[1,{"c":2}]}}', '{"":0}', '"é"', '12345678901234567890.5', '1e-20', '1e100', NULL], i, 28)::jsonb AS json,
	CASE WHEN gs.dice(9, i, 31) > 0 THEN gs.pick(ARRAY['', 'a', 'b', 'ab', 'a b', 'a:1', 'a:2', 'a:1A', 'a:1B', 'a:1,2', 'a:1,3', 'a:2,3C', 'a:1 b', 'a b:1', 'a:1 b:2', 'é', 'c:16383', 'c:16383A', 'aaaa', 'aaa:1'], i, 32)::tsvector
		ELSE to_tsvector('simple', repeat('x', gs.dice(3, i, 33)) || ' ' || (SELECT string_agg('w' || gs.dice(5, i, g), ' ') FROM generate_series(1, 60) g)) END AS words,
	(SELECT array_agg(gs.pick(ARRAY['', 'a', 'a:1', 'b', NULL], i, g)::tsvector) FROM generate_series(1, gs.dice(3, i, 34)) g) AS words_list,
	CASE WHEN gs.dice(9, i, 35) > 0 THEN gs.pick(ARRAY['', 'a', 'b', 'ab', 'a:A', 'a:*', 'a:*BC', '!a', '!!a', '!b', 'a & b', 'b & a', 'a | b', 'a <-> b', 'a <2> b', 'a <0> b', 'a <16384> b', 'a & b & c', 'a & (b & c)',
		'a | b & c', '(a | b) & c', 'a <-> b <-> c', 'a <-> (b <-> c)', 'a <-> (b | c)', '!(a & b)', '!a & b', 'a & !b', 'é', 'aaaa', 'w & x:A', 'w & x:B'], i, 36)::tsquery
		ELSE (SELECT string_agg('w' || gs.dice(5, i, g), CASE WHEN gs.dice(2, i, 37) = 0 THEN ' & ' ELSE ' <-> ' END) FROM generate_series(1, 2 + gs.dice(60, i, 38)) g)::tsquery END AS queries,
	(SELECT array_agg(gs.pick(ARRAY['', 'a', 'a & b', '!b', NULL], i, g)::tsquery) FROM generate_series(1, gs.dice(3, i, 39)) g) AS queries_list,
	(SELECT array_agg(int4range(gs.dice(3, i, g), 4)) FROM generate_series(1, gs.dice(3, i, 29)) g) AS range_list,
	(SELECT array_agg(to_jsonb(gs.dice(3, i, g))) FROM generate_series(1, gs.dice(3, i, 30)) g) AS json_list
FROM generate_series(1, 1500) i ORDER BY md5(i::text);
ALTER TABLE gs.nested ADD COLUMN int_list gs.int_list, ADD COLUMN trio_domain gs.trio_some;
UPDATE gs.nested SET int_list = ints, trio_domain = trio;
ANALYZE gs.nested;

CREATE TABLE gs.nested_column AS
SELECT attname::text AS k FROM pg_attribute WHERE attrelid = 'gs.nested'::regclass AND attnum > 2 AND NOT attisdropped ORDER BY attnum;

SELECT is(gs.compare(format('SELECT id FROM gs.nested ORDER BY %s%s, id', k, d)), 'same', k || d)
FROM gs.nested_column, (VALUES (''), (' DESC'), (' NULLS FIRST'), (' DESC NULLS LAST')) v (d) ORDER BY k, d;
SELECT is(gs.compare(format('SELECT id FROM gs.nested ORDER BY few, %s, id', k)), 'same', 'few, ' || k) FROM gs.nested_column ORDER BY k;
SELECT is(gs.compare(format('SELECT id FROM gs.nested ORDER BY %s DESC, %s, id', a.k, b.k)), 'same', a.k || ' DESC, ' || b.k)
FROM (SELECT k, row_number() OVER (ORDER BY k) n FROM gs.nested_column) a JOIN (SELECT k, row_number() OVER (ORDER BY k) n FROM gs.nested_column) b ON b.n = a.n + 1 ORDER BY a.n;

-- Short values are in the key whole, so that rows need no comparison
SELECT is((gs.node(format('SELECT id FROM gs.nested ORDER BY %s, id', k))->>'Tie Rows')::int, 0, k || ' is exact')
FROM unnest(ARRAY['shapes', 'shades', 'ints_range', 'nums_range', 'shades_range', 'words_list', 'queries_list', 'times_range', 'ranges', 'trio']) k ORDER BY k;

-- Grouped, made different, numbered, joined, and by all processes
SELECT is(gs.compare_results(format('SELECT %s IS NULL, count(*), min(id) FROM gs.nested GROUP BY %s ORDER BY 3', k, k)), 'same', 'groups of ' || k) FROM gs.nested_column ORDER BY k;
SELECT is(gs.compare_results(format('SELECT id, row_number() OVER (PARTITION BY %s ORDER BY id), count(*) OVER (PARTITION BY %s) FROM gs.nested ORDER BY id', k, k)), 'same', 'windows of ' || k) FROM gs.nested_column ORDER BY k;
SET enable_hashagg = off;
SELECT is(gs.compare_results(format('SELECT count(*) FROM (SELECT DISTINCT %s FROM gs.nested) s', k)), 'same', 'different ' || k) FROM gs.nested_column ORDER BY k;
RESET enable_hashagg;
SET enable_hashjoin = off;
SET enable_nestloop = off;
SELECT is(gs.compare_results(format('SELECT count(*), sum(a.id) FROM gs.nested a JOIN gs.nested b ON a.%s = b.%s WHERE b.id < 300', k, k)), 'same', 'joined by ' || k) FROM gs.nested_column ORDER BY k;
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SELECT is(gs.compare(format('SELECT id, few FROM gs.nested ORDER BY %s, id', k)), 'same', 'in parallel by ' || k) FROM gs.nested_column ORDER BY k;
SELECT is(gs.compare_results(format('SELECT count(*), sum(r) FROM (SELECT row_number() OVER (PARTITION BY %s ORDER BY id) * id AS r FROM gs.nested) s', k)), 'same', 'windows in parallel of ' || k)
FROM gs.nested_column ORDER BY k;
SELECT is(gs.compare_results(format('SELECT count(*), sum(a.id) FROM gs.nested a JOIN gs.nested b ON a.%s = b.%s WHERE b.id < 300', k, k)), 'same', 'joined in parallel by ' || k) FROM gs.nested_column ORDER BY k;
RESET enable_hashjoin;
RESET enable_nestloop;
RESET max_parallel_workers_per_gather;

-- Elements under the column's collation: ICU's, deterministic and not, and the C library's
CREATE COLLATION gs.nested_loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
DO $$
BEGIN
	CREATE COLLATION gs.nested_libc (provider = libc, locale = 'en_US.UTF-8');
EXCEPTION WHEN OTHERS THEN
	NULL;
END $$;
SELECT is((SELECT string_agg(DISTINCT gs.compare(format('SELECT id FROM gs.nested ORDER BY texts COLLATE %s%s, id', c.oid::regcollation, d)), ', ')
		   FROM pg_collation c, (VALUES (''), (' DESC NULLS LAST'), (' NULLS FIRST')) v (d)
		   WHERE collname IN ('en-x-icu', 'nested_loose', 'nested_libc', 'C')), 'same', 'arrays of strings under other collations');
CREATE TYPE gs.collated AS (a text COLLATE "en-x-icu", b text COLLATE "C");
SELECT is(gs.compare('SELECT id FROM (SELECT id, ROW(texts[1], texts[2])::gs.collated AS k FROM gs.nested OFFSET 0) s ORDER BY k DESC, id'), 'same', 'columns under collations of their own');
SELECT is((SELECT coalesce(string_agg(DISTINCT gs.compare('SELECT id FROM gs.nested ORDER BY few, texts COLLATE gs.nested_libc, ints, id'), ', '), 'same')
		   FROM pg_collation WHERE collname = 'nested_libc'), 'same', 'strings of the C library within, then another column');

-- Long and toasted ones
CREATE TABLE gs.nested_long AS
SELECT i AS id, (SELECT array_agg(gs.dice(3, i, g % 40)) FROM generate_series(1, 10 + gs.dice(2000, i, 1)) g) AS ints,
	(SELECT array_agg(md5(gs.dice(2, i, g)::text)) FROM generate_series(1, gs.dice(200, i, 2)) g) AS texts,
	jsonb_build_object('k', repeat('x', 300) || gs.dice(5, i, 3), 'list', (SELECT jsonb_agg(gs.dice(3, i, g)) FROM generate_series(1, gs.dice(700, i, 4)) g)) AS json,
	ROW(i % 2, repeat(md5((i % 5)::text), 300), i % 3)::gs.trio AS trio,
	to_tsvector('simple', (SELECT string_agg('w' || gs.dice(9000, i, g), ' ') FROM generate_series(1, gs.dice(500, i / 2, 5)) g)) AS words
FROM generate_series(1, 500) i;
ALTER TABLE gs.nested_long ALTER ints SET STORAGE EXTERNAL;
SELECT is(gs.compare(format('SELECT id FROM gs.nested_long ORDER BY %s, id', k)), 'same', 'long ' || k) FROM unnest(ARRAY['ints', 'texts', 'json', 'trio', 'words', 'words DESC', 'ints DESC', 'json DESC']) k ORDER BY k;
SELECT is(gs.compare('SELECT id FROM (SELECT id, array_append(ints, 7) AS k FROM gs.nested OFFSET 0) s ORDER BY k, id'), 'same', 'arrays that an expression has made');

-- A composite type whose columns change: rows of before have fewer, and a dropped one is passed over
CREATE TABLE gs.grown (a int, b text, c int);
CREATE TABLE gs.grown_rows AS SELECT i AS id, i % 5 AS a, 'x' || i % 3 AS b, i % 2 AS c FROM generate_series(1, 500) i;
INSERT INTO gs.grown SELECT a, b, c FROM gs.grown_rows;
ALTER TABLE gs.grown ADD COLUMN d int DEFAULT 7;
INSERT INTO gs.grown SELECT a, b, c, CASE WHEN id % 4 > 0 THEN id % 3 END FROM gs.grown_rows;
ALTER TABLE gs.grown DROP COLUMN b;
SELECT is(gs.compare('SELECT k FROM (SELECT g AS k FROM gs.grown g OFFSET 0) s ORDER BY k'), 'same', 'rows of a table as they are');
CREATE TABLE gs.grown_heir (e int) INHERITS (gs.grown);
INSERT INTO gs.grown_heir SELECT a, c, a, c FROM gs.grown_rows;
SELECT is(gs.compare('SELECT k FROM (SELECT g AS k FROM gs.grown g OFFSET 0) s ORDER BY k DESC'), 'same', 'rows of a table and its child');

-- Anonymous records have no encoding; of others, a column that has none ends the key
SELECT ok(NOT gs.forced_uses('SELECT id FROM gs.nested ORDER BY row(few, id)'), 'anonymous records stay native');
CREATE TYPE gs.partly AS (a int, b oidvector, c int);
SELECT is(gs.compare('SELECT id FROM (SELECT id, ROW(few, (id % 3)::text::oidvector, id)::gs.partly AS k FROM gs.nested OFFSET 0) s ORDER BY k'), 'same', 'a column without an encoding ends the key');

SELECT * FROM finish();
