\set ECHO none
-- Every type in every direction, from one table of values at the edges of
-- each type's range and of its encoding.  Every value is there twice, so that
-- there are ties.
SET client_min_messages = warning;
LOAD 'gpusort';
\pset format unaligned
\pset tuples_only on

CREATE TABLE gs.edge_type (ordinal int, label text, sql_type text, source text);
INSERT INTO gs.edge_type VALUES
	(1, 'bool', 'bool', 'bool'),
	(2, 'int2', 'int2', 'int2'),
	(3, 'int4', 'int4', 'int4'),
	(4, 'int8', 'int8', 'int8'),
	(5, 'oid', 'oid', 'oid'),
	(6, 'float4', 'float4', 'float4'),
	(7, 'float8', 'float8', 'float8'),
	(8, 'date', 'date', 'date'),
	(9, 'timestamp', 'timestamp', 'timestamp'),
	(10, 'timestamptz', 'timestamptz', 'timestamptz'),
	(11, 'uuid', 'uuid', 'uuid'),
	(12, 'text_c', 'text COLLATE "C"', 'text'),
	(13, 'text_posix', 'text COLLATE "POSIX"', 'text'),
	(14, 'text_c_utf8', 'text COLLATE ' || coalesce(
		(SELECT quote_ident(collname) FROM pg_collation
		 WHERE collname IN ('C.utf8', 'C.UTF-8') AND collprovider = 'c'
			   AND collencoding IN (-1, (SELECT encoding FROM pg_database WHERE datname = current_database()))
		 ORDER BY collname LIMIT 1), '"C"'), 'text'),
	(15, 'varchar', 'varchar COLLATE "C"', 'text'),
	(16, 'bpchar', 'char(40) COLLATE "C"', 'bpchar'),
	(17, 'name', 'name', 'name'),
	(18, 'bytea', 'bytea', 'bytea'),
	(19, 'numeric', 'numeric', 'numeric'),
	(20, 'numeric_scale', 'numeric(30,4)', 'numeric_scale');

CREATE TABLE gs.edge_value (source text, value text);
INSERT INTO gs.edge_value VALUES
	('bool', 'true'), ('bool', 'false'),

	('int2', '-32768'), ('int2', '-32767'), ('int2', '-257'), ('int2', '-256'), ('int2', '-1'), ('int2', '0'),
	('int2', '1'), ('int2', '255'), ('int2', '256'), ('int2', '32766'), ('int2', '32767'),

	('int4', '-2147483648'), ('int4', '-2147483647'), ('int4', '-65537'), ('int4', '-65536'), ('int4', '-1'),
	('int4', '0'), ('int4', '1'), ('int4', '65535'), ('int4', '65536'), ('int4', '2147483646'), ('int4', '2147483647'),

	('int8', '-9223372036854775808'), ('int8', '-9223372036854775807'), ('int8', '-4294967297'),
	('int8', '-4294967296'), ('int8', '-2147483649'), ('int8', '-1'), ('int8', '0'), ('int8', '1'),
	('int8', '2147483648'), ('int8', '4294967295'), ('int8', '4294967296'), ('int8', '9223372036854775806'),
	('int8', '9223372036854775807'),

	('oid', '0'), ('oid', '1'), ('oid', '2147483647'), ('oid', '2147483648'), ('oid', '4294967294'), ('oid', '4294967295'),

	('float4', '-Infinity'), ('float4', '-3.4028235e38'), ('float4', '-1.0000001'), ('float4', '-1'),
	('float4', '-1.1754944e-38'), ('float4', '-1e-45'), ('float4', '-0'), ('float4', '0'), ('float4', '1e-45'),
	('float4', '1.1754942e-38'), ('float4', '1.1754944e-38'), ('float4', '1'), ('float4', '1.0000001'),
	('float4', '3.4028235e38'), ('float4', 'Infinity'), ('float4', 'NaN'),

	('float8', '-Infinity'), ('float8', '-1.7976931348623157e308'), ('float8', '-1.0000000000000002'), ('float8', '-1'),
	('float8', '-2.2250738585072014e-308'), ('float8', '-5e-324'), ('float8', '-0'), ('float8', '0'),
	('float8', '5e-324'), ('float8', '2.225073858507201e-308'), ('float8', '2.2250738585072014e-308'), ('float8', '1'),
	('float8', '1.0000000000000002'), ('float8', '1.7976931348623157e308'), ('float8', 'Infinity'), ('float8', 'NaN'),

	('date', '-infinity'), ('date', '4714-11-24 BC'), ('date', '0001-12-31 BC'), ('date', '0001-01-01'),
	('date', '1582-10-15'), ('date', '1969-12-31'), ('date', '1970-01-01'), ('date', '1999-12-31'),
	('date', '2000-01-01'), ('date', '2000-01-02'), ('date', '9999-12-31'), ('date', '5874897-12-31'), ('date', 'infinity'),

	('timestamp', '-infinity'), ('timestamp', '4714-11-24 00:00:00 BC'), ('timestamp', '0001-12-31 23:59:59.999999 BC'),
	('timestamp', '1999-12-31 23:59:59.999999'), ('timestamp', '2000-01-01 00:00:00'),
	('timestamp', '2000-01-01 00:00:00.000001'), ('timestamp', '2038-01-19 03:14:08'),
	('timestamp', '294276-12-31 23:59:59.999999'), ('timestamp', 'infinity'),

	('timestamptz', '-infinity'), ('timestamptz', '4714-11-24 00:00:00+00 BC'),
	('timestamptz', '0001-12-31 23:59:59.999999+00 BC'), ('timestamptz', '1999-12-31 23:59:59.999999+00'),
	('timestamptz', '2000-01-01 00:00:00+00'), ('timestamptz', '2000-01-01 01:00:00+01'),
	('timestamptz', '2000-01-01 00:00:00.000001+00'), ('timestamptz', '294276-12-31 23:59:59.999999+00'),
	('timestamptz', 'infinity'),

	('uuid', '00000000-0000-0000-0000-000000000000'), ('uuid', '00000000-0000-0000-0000-000000000001'),
	('uuid', '00000000-0000-0000-0100-000000000000'), ('uuid', '00000000-0000-0001-0000-000000000000'),
	('uuid', '00000000-0000-0001-0000-000000000001'), ('uuid', '7fffffff-ffff-ffff-ffff-ffffffffffff'),
	('uuid', '80000000-0000-0000-0000-000000000000'), ('uuid', 'ffffffff-ffff-ffff-0000-000000000000'),
	('uuid', 'ffffffff-ffff-ffff-ffff-fffffffffffe'), ('uuid', 'ffffffff-ffff-ffff-ffff-ffffffffffff'),

	('numeric', 'NaN'), ('numeric', 'Infinity'), ('numeric', '-Infinity'), ('numeric', '0'), ('numeric', '0.000'),
	('numeric', '-0.0'), ('numeric', '1'), ('numeric', '1.0'), ('numeric', '1.00000000000000000000'),
	('numeric', '9999'), ('numeric', '10000'), ('numeric', '10001'), ('numeric', '99999999'),
	('numeric', '9999.9999'), ('numeric', '0.0001'), ('numeric', '0.00009999'), ('numeric', '0.1'), ('numeric', '0.99999999'),
	('numeric', '9223372036854775807'), ('numeric', '9223372036854775808'), ('numeric', '18446744073709551616'),
	('numeric', '1e100'), ('numeric', '1e1000'), ('numeric', '1e20000'), ('numeric', '1e131000'),
	('numeric', '1e-100'), ('numeric', '1e-1000'), ('numeric', '1e-16000'),
	('numeric', '123456789012345678901234567890'), ('numeric', '123456789012345678901234567891'),
	('numeric', '123456789012345678901234567890.1'), ('numeric', '123456789012345678901234567890.10'),
	('numeric', '123456789012345678901234567890.1000000000000000000000000001'),
	('numeric', '12345678901234567890123456789012345678'), ('numeric', '12345678901234567890123456789012345679'),
	('numeric', '0.123456789012345678901234567890'), ('numeric', '0.1234567890123456789012345678901'),
	('numeric', repeat('9', 1000)), ('numeric', repeat('9', 999) || '8'), ('numeric', '0.' || repeat('9', 1000)),
	('numeric', '0.' || repeat('9', 999) || '8'), ('numeric', '1' || repeat('0', 999)), ('numeric', '1' || repeat('0', 998) || '1'),

	('numeric_scale', '0'), ('numeric_scale', '0.0001'), ('numeric_scale', '1'), ('numeric_scale', '9999.9999'),
	('numeric_scale', '10000'), ('numeric_scale', '12345678901234567890123456.7890'),
	('numeric_scale', '12345678901234567890123456.7891'), ('numeric_scale', '99999999999999999999999999.9999'),

	('text', ''), ('text', ' '), ('text', '  '), ('text', E'\t'), ('text', E'\x01'), ('text', E'\x01\x01'), ('text', E'\x7f'),
	('text', 'A'), ('text', 'Z'), ('text', 'a'), ('text', 'a '), ('text', E'a\x01'), ('text', 'aB'), ('text', 'ab'), ('text', 'z'),
	('text', 'e'), ('text', 'é'), ('text', 'é'), ('text', 'è'), ('text', 'ß'), ('text', '€'), ('text', '中文'), ('text', '𝄞'),
	('text', E'\U0010FFFF'), ('text', 'ｶﾞ'), ('text', repeat('é', 7)), ('text', repeat('é', 7) || 'a'), ('text', repeat('€', 5)),

	('bytea', '\x'), ('bytea', '\x00'), ('bytea', '\x0000'), ('bytea', '\x0001'), ('bytea', '\x01'), ('bytea', '\x0100'),
	('bytea', '\x7f'), ('bytea', '\x80'), ('bytea', '\xff'), ('bytea', '\xff00'), ('bytea', '\xffff');

-- every negative of a number
INSERT INTO gs.edge_value SELECT source, '-' || value FROM gs.edge_value
	WHERE source IN ('numeric', 'numeric_scale') AND value ~ '^[0-9]';
-- strings about as long as any prefix that a key may hold, and longer; with
-- their last byte changed, with one byte more, and with zero bytes at the end
INSERT INTO gs.edge_value
	SELECT 'text', repeat('p', n) || s
	FROM unnest(ARRAY[6, 7, 8, 12, 13, 14, 15, 16, 17, 20, 21, 22, 23, 24, 29, 30, 31, 32, 33, 47, 48, 63, 64, 65,
					  127, 128, 129, 247, 248, 249, 255, 256, 257, 1000, 5000]) n,
		 unnest(ARRAY['', 'a', 'z', ' ', E'\x01']) s;
INSERT INTO gs.edge_value
	SELECT 'bytea', '\x' || repeat(b, n) || s
	FROM unnest(ARRAY[6, 7, 8, 12, 13, 14, 15, 16, 17, 20, 21, 22, 23, 24, 29, 30, 31, 32, 33, 63, 64, 65,
					  127, 128, 129, 247, 248, 249, 255, 256, 257, 1000, 5000]) n,
		 unnest(ARRAY['00', '70', 'ff']) b, unnest(ARRAY['', '00', '01', 'ff']) s;
INSERT INTO gs.edge_value
	SELECT 'name', value FROM gs.edge_value WHERE source = 'text' AND length(value) <= 60;
-- blanks at the end of a bpchar do not count
INSERT INTO gs.edge_value
	SELECT DISTINCT 'bpchar', rtrim(left(value, 40 - n)) || repeat(' ', n)
	FROM gs.edge_value, unnest(ARRAY[0, 1, 3]) n WHERE source = 'text' AND octet_length(value) < 60;

-- gs.edge_LABEL (id, k, rank): rank is what PostgreSQL says about the order of k.
DO $$
DECLARE
	t record;
BEGIN
	SET LOCAL gpusort.enable = off;
	FOR t IN SELECT * FROM gs.edge_type LOOP
		EXECUTE format('CREATE TABLE gs.edge_%s (id int, k %s, rank int)', t.label, t.sql_type);
		EXECUTE format(
			'INSERT INTO gs.edge_%s '
			'SELECT row_number() OVER (ORDER BY md5(value || copy)), k, dense_rank() OVER (ORDER BY k NULLS LAST) '
			'FROM (SELECT value::%s AS k, value, copy::text FROM gs.edge_value, generate_series(1, 2) copy WHERE source = %L '
			'	   UNION ALL SELECT NULL, ''null'', i::text FROM generate_series(1, 3) i) v '
			'ORDER BY 1', t.label, t.sql_type, t.source);
	END LOOP;
END $$;

SELECT * FROM no_plan();

SELECT cmp_ok((SELECT min(n) FROM (SELECT count(*) AS n FROM gs.edge_value GROUP BY source) c), '>=', 2::bigint,
			  'every type has values');

-- ties broken by a unique column: every row has one place
SELECT is(gs.compare(format('SELECT * FROM gs.edge_%s ORDER BY k %s, id', label, words)), 'same',
		  label || ' ' || words || ', id')
FROM gs.edge_type t, gs.direction d ORDER BY t.ordinal, d.ordinal;

-- ties left open: the ranks of the keys have one order
SELECT is(gs.compare(format('SELECT rank FROM gs.edge_%s ORDER BY k %s', label, words)), 'same',
		  label || ' ' || words)
FROM gs.edge_type t, gs.direction d ORDER BY t.ordinal, d.ordinal;

-- the key as a second column, after one that ties a lot
SELECT is(gs.compare(format('SELECT id %% 3 AS m, rank FROM gs.edge_%s ORDER BY id %% 3 %s, k %s', label, e.words, d.words)), 'same',
		  'int4 ' || e.words || ', ' || label || ' ' || d.words)
FROM gs.edge_type t, gs.direction d, gs.direction e
WHERE e.ordinal = 5 - d.ordinal ORDER BY t.ordinal, d.ordinal;

-- nothing but NULLs, and one value only
SELECT is(gs.compare(format('SELECT id FROM gs.edge_%s WHERE k IS NULL ORDER BY k, id DESC', label)), 'same',
		  label || ' of NULLs only')
FROM gs.edge_type t ORDER BY t.ordinal;
SELECT is(gs.compare(format('SELECT id, k FROM gs.edge_%1$s WHERE rank = 1 ORDER BY k, id DESC', label)), 'same',
		  label || ' of one value only')
FROM gs.edge_type t ORDER BY t.ordinal;

-- rows come back complete, whatever the order of ties
SELECT is((SELECT array_agg(x ORDER BY x) FROM unnest(gs.forced_rows(format('SELECT * FROM gs.edge_%s ORDER BY k', label))) x),
		  (SELECT array_agg(x ORDER BY x) FROM unnest(gs.native_rows(format('SELECT * FROM gs.edge_%s ORDER BY k', label))) x),
		  label || ' keeps every row')
FROM gs.edge_type t ORDER BY t.ordinal;

SELECT * FROM finish();
