\set ECHO none
-- Many rows of every type: several chunks, ties by the thousand, NULLs in
-- between, prefixes that are shared.
SET client_min_messages = warning;
LOAD 'gpusort';
\pset format unaligned
\pset tuples_only on

CREATE TABLE gs.bulk AS
SELECT i AS id,
	   CASE WHEN h % 7 <> 0 THEN h % 2 = 0 END AS c_bool,
	   CASE WHEN h % 11 <> 0 THEN (h % 65536 - 32768)::int2 END AS c_int2,
	   (h % 1000)::int4 AS c_skew,
	   (h - 2147483648)::int4 AS c_int4,
	   CASE WHEN h % 13 <> 0 THEN (h * 2147483647 + i) * (CASE WHEN h % 2 = 0 THEN 1 ELSE -1 END) END AS c_int8,
	   h::oid AS c_oid,
	   (sin(i) * exp((h % 60 - 30)::float8))::float4 AS c_float4,
	   CASE WHEN h % 1000 = 0 THEN 'NaN' WHEN h % 1000 = 1 THEN '-Infinity' ELSE sin(i) * exp((h % 600 - 300)::float8) END AS c_float8,
	   '2000-01-01'::date + (h % 200000 - 100000)::int AS c_date,
	   '2000-01-01'::timestamp + (h % 20000 - 10000) * interval '1 hour' + i * interval '1 microsecond' AS c_timestamp,
	   '2000-01-01 00:00+00'::timestamptz + (h - 2147483648) * interval '1 second' AS c_timestamptz,
	   md5(i::text)::uuid AS c_uuid,
	   left(md5(i::text), (h % 33)::int) COLLATE "C" AS c_text,
	   ('http://example.org/the/same/prefix/' || h % 5000 || '/' || i % 3) COLLATE "C" AS c_prefix,
	   CASE WHEN h % 5 <> 0 THEN left(md5(h::text), (h % 9)::int)::varchar(20) END COLLATE "C" AS c_varchar,
	   left(md5(h::text), (h % 13)::int)::char(12) COLLATE "C" AS c_bpchar,
	   ('n' || left(md5(h::text), (h % 20)::int))::name AS c_name,
	   decode(substr(md5(i::text), 1, (h % 17)::int * 2), 'hex') AS c_bytea,
	   round(((h - 2147483648) * power(10, (h % 40)::int - 20))::numeric, 10) AS c_numeric,
	   round((h % 100000)::numeric / 100, 2) AS c_money
FROM (SELECT i, (('x' || substr(md5('seed' || i), 1, 8))::bit(32)::bigint & 4294967295) AS h FROM generate_series(1, 100000) i) s;
ANALYZE gs.bulk;

SELECT * FROM no_plan();

SELECT cmp_ok((SELECT count(*) FROM gs.bulk), '=', 100000::bigint, 'the table has its rows');

SELECT is(gs.compare_bulk(format('SELECT id, %1$I FROM gs.bulk ORDER BY %1$I, id', attname)), 'same', attname || ', id')
FROM pg_attribute WHERE attrelid = 'gs.bulk'::regclass AND attnum > 1 ORDER BY attnum;

SELECT is(gs.compare_bulk(format('SELECT %1$I FROM gs.bulk WHERE id <= 50000 ORDER BY %1$I DESC', attname)), 'same', attname || ' DESC')
FROM pg_attribute WHERE attrelid = 'gs.bulk'::regclass AND attnum > 1 ORDER BY attnum;

SELECT is(gs.compare_bulk('SELECT * FROM gs.bulk ORDER BY c_skew, c_prefix DESC, id'), 'same', 'whole rows');
SELECT is(gs.compare_bulk('SELECT * FROM gs.bulk ORDER BY id'), 'same', 'in order already');
SELECT is(gs.compare_bulk('SELECT * FROM gs.bulk ORDER BY id DESC'), 'same', 'in the opposite order');
SELECT is(gs.compare_bulk('SELECT id, c_bool FROM gs.bulk ORDER BY c_bool DESC NULLS LAST, c_date, c_skew DESC, id'), 'same',
		  'columns of few bits');
SELECT is(gs.compare_bulk('SELECT id, c_skew FROM gs.bulk ORDER BY c_skew % 1000, c_float8 DESC, id'), 'same', 'an expression and a float');

SELECT * FROM finish();
