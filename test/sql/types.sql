\set ECHO none
-- The types that edge.sql leaves out, with random values and those at the edges
-- of each; types without an encoding behind columns that have one; orders of a
-- user's own; enums whose values change.
SET client_min_messages = warning;
LOAD 'gpusort';
\pset format unaligned
\pset tuples_only on

-- From 0 to 1, the same in every run.
CREATE FUNCTION gs.noise(i int, salt text DEFAULT '') RETURNS float8 LANGUAGE sql IMMUTABLE AS
$$ SELECT ('x' || left(md5(i || salt), 8))::bit(32)::bigint / 4294967296.0::float8 $$;

CREATE TYPE gs.feeling AS ENUM ('sad', 'ok', 'happy');
CREATE TYPE gs.grade AS ENUM ('c', 'f');
ALTER TYPE gs.grade ADD VALUE 'a' BEFORE 'c';
ALTER TYPE gs.grade ADD VALUE 'b' BEFORE 'c';
ALTER TYPE gs.grade ADD VALUE 'd' AFTER 'c';
ALTER TYPE gs.grade ADD VALUE 'g' AFTER 'f';
ALTER TYPE gs.grade ADD VALUE 'e' BEFORE 'f';

-- The values of each type, by a query that gives them as v.
CREATE TABLE gs.tested_type (ordinal int, label text, sql_type text, source text);
INSERT INTO gs.tested_type VALUES
	(1, 'time', 'time', $$
		SELECT unnest('{00:00,00:00:00.000001,11:59:59.999999,12:00,23:59:59.999999,24:00}'::time[]) AS v
		UNION ALL SELECT time '00:00' + gs.noise(i) * interval '86399 s' FROM generate_series(1, 200) i $$),
	(2, 'timetz', 'timetz', $$
		SELECT unnest('{00:00+00,00:00+15:59:59,24:00-15:59:59,12:00+00,13:00+01,11:00-01,12:00:00.000001+00,23:59:59.999999+00}'::timetz[]) AS v
		UNION ALL SELECT timetz '12:00+00' AT TIME ZONE make_interval(hours => h) FROM unnest(ARRAY[-500000, -100, -1, 100, 500000]) h
		UNION ALL SELECT (time '00:00' + trunc(gs.noise(i) * 24) * interval '1 hour')::timetz AT TIME ZONE make_interval(hours => i % 25 - 12)
			FROM generate_series(1, 200) i $$),
	(3, 'interval', 'interval', $$
		SELECT unnest('{0,1 mon,30 days,29 days 24:00,720:00:00,720:00:00.000001,719:59:59.999999,-1 mon,-30 days,1 year,12 mons,360 days,
			1 mon -30 days,-1 mon 30 days 00:00:00.000001,178000000 years,-178000000 years,
			2147483647 mons 2147483647 days 2562047788:00:54.775807,2147483647 mons 2147483647 days 2562047788:00:54.775806,
			-2147483648 mons -2147483648 days -2562047788:00:54.775807,-2147483648 mons -2147483648 days -2562047788:00:54.775806,
			2147483647 mons,2147483647 days,2562047788:00:54.775807,-2562047788:00:54.775807}'::interval[]) AS v
		UNION ALL SELECT (i % 5 - 2) * interval '1 mon' + (i % 7) * interval '10 days' + trunc(gs.noise(i) * 4) * interval '12 hours' FROM generate_series(1, 300) i $$),
	(4, 'money', 'money', $$
		SELECT unnest(ARRAY['-92233720368547758.08', '-92233720368547758.07', '-1.00', '-0.01', '0', '0.01', '0.10', '92233720368547758.07']::money[]) AS v
		UNION ALL SELECT ((gs.noise(i) - 0.5) * 1e9)::numeric::money FROM generate_series(1, 200) i $$),
	(5, 'char', '"char"', $$
		SELECT i::"char" AS v FROM generate_series(-128, 127) i $$),
	(6, 'macaddr', 'macaddr', $$
		SELECT unnest('{00:00:00:00:00:00,00:00:00:00:00:01,00:00:00:01:00:00,00:00:01:00:00:00,7f:ff:ff:ff:ff:ff,80:00:00:00:00:00,ff:ff:ff:ff:ff:fe,ff:ff:ff:ff:ff:ff}'::macaddr[]) AS v
		UNION ALL SELECT left(md5(i::text), 12)::macaddr FROM generate_series(1, 200) i $$),
	(7, 'macaddr8', 'macaddr8', $$
		SELECT unnest('{00:00:00:00:00:00:00:00,00:00:00:00:00:00:00:01,00:00:00:00:01:00:00:00,00:00:00:01:00:00:00:00,7f:ff:ff:ff:ff:ff:ff:ff,
			80:00:00:00:00:00:00:00,ff:ff:ff:ff:ff:ff:ff:fe,ff:ff:ff:ff:ff:ff:ff:ff}'::macaddr8[]) AS v
		UNION ALL SELECT left(md5(i::text), 16)::macaddr8 FROM generate_series(1, 200) i $$),
	(8, 'pg_lsn', 'pg_lsn', $$
		SELECT unnest('{0/0,0/1,0/FFFFFFFF,1/0,7FFFFFFF/FFFFFFFF,80000000/0,FFFFFFFF/FFFFFFFF}'::pg_lsn[]) AS v
		UNION ALL SELECT (left(md5(i::text), 8) || '/' || right(md5(i::text), 8))::pg_lsn FROM generate_series(1, 200) i $$),
	(9, 'xid8', 'xid8', $$
		SELECT unnest('{0,1,4294967295,4294967296,9223372036854775807,9223372036854775808,18446744073709551615}'::xid8[]) AS v
		UNION ALL SELECT trunc(gs.noise(i)::numeric * 18446744073709551615)::text::xid8 FROM generate_series(1, 200) i $$),
	(10, 'enum', 'gs.feeling', $$
		SELECT unnest(enum_range(NULL::gs.feeling)) AS v $$),
	(11, 'enum_changed', 'gs.grade', $$
		SELECT unnest(enum_range(NULL::gs.grade)) AS v FROM generate_series(1, 10) $$),
	(12, 'bit', 'bit(12)', $$
		SELECT (i * 1237 % 4096)::bit(12) AS v FROM generate_series(0, 300) i $$),
	(13, 'bit_wide', 'bit(180)', $$
		SELECT (repeat('01', 80) || (i * 7919 % 1048576)::bit(20)::text)::bit(180) AS v FROM generate_series(0, 100) i
		UNION ALL SELECT (i::bit(30)::text || repeat('0', 149) || '1')::bit(180) FROM generate_series(0, 100) i $$),
	(14, 'varbit', 'varbit', $$
		SELECT v::varbit FROM unnest('{"",0,1,00,01,10,11,0000000,00000000,000000000,0000000000000001,10000000,100000000,1000000001,11111111,111111111}'::text[]) v
		UNION ALL SELECT (repeat(b, n) || s)::varbit
			FROM unnest(ARRAY['0', '1']) b, unnest(ARRAY['', '0', '1', '00', '01']) s,
				 unnest(ARRAY[30, 62, 63, 64, 65, 95, 103, 104, 110, 111, 112, 113, 118, 119, 120, 127, 128, 129, 174, 175, 176, 177, 183, 184, 191, 192, 255, 256, 2000]) n
		UNION ALL SELECT left((i * 7919)::bit(24)::text, i % 25)::varbit FROM generate_series(1, 200) i $$),
	(15, 'inet', 'inet', $$
		SELECT unnest('{0.0.0.0/0,0.0.0.0,0.0.0.1/0,0.0.0.0/1,128.0.0.0/1,128.0.0.0/0,255.255.255.255,255.255.255.255/0,10.0.0.0/8,10.0.0.0/9,10.1.2.3/8,
			10.128.0.0/9,10.0.0.0/32,10.255.255.255/8,::,::/0,::1,::1/0,8000::/1,::/1,ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff,
			ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/0,ffff:ffff:ffff:ffff::/64,ffff:ffff:ffff:ffff::/63,ffff:ffff:ffff:ffff::/65,ffff:ffff:ffff:fffe::1/64,
			2001:db8::/32,2001:db8::1/32,2001:db8::1,::ffff:10.0.0.0}'::inet[]) AS v
		UNION ALL SELECT set_masklen('0.0.0.0'::inet + trunc(gs.noise(i) * 4294967295)::bigint, i % 33) FROM generate_series(1, 300) i
		UNION ALL SELECT set_masklen('192.168.0.0'::inet + trunc(gs.noise(i) * 5)::bigint * 64, 16 + i % 17) FROM generate_series(1, 200) i
		UNION ALL SELECT set_masklen('2001:db8::'::inet + trunc(gs.noise(i) * 5)::bigint * 9007199254740992, i % 129) FROM generate_series(1, 300) i
		UNION ALL SELECT set_masklen((left(md5(i::text), 4) || '::' || right(md5(i::text), 4))::inet, i % 129) FROM generate_series(1, 200) i
		-- for each bit the first network with it, and the last address without it
		UNION ALL SELECT set_masklen(netmask(set_masklen(a, n)) & ~netmask(set_masklen(a, n - 1)), n) FROM (VALUES ('0.0.0.0'::inet, 32), ('::', 128)) f (a, m), generate_series(1, m) n
		UNION ALL SELECT set_masklen(hostmask(set_masklen(a, n)), m) FROM (VALUES ('0.0.0.0'::inet, 32), ('::', 128)) f (a, m), generate_series(1, m) n $$),
	(16, 'cidr', 'cidr', $$
		SELECT network(set_masklen('0.0.0.0'::inet + trunc(gs.noise(i) * 4294967295)::bigint, i % 33)) AS v FROM generate_series(1, 300) i
		UNION ALL SELECT network(set_masklen((substr(md5(i::text), 1, 4) || ':' || substr(md5(i::text), 5, 4) || '::')::inet, i % 129)) FROM generate_series(1, 300) i $$),
	(17, 'tid', 'tid', $$
		SELECT unnest(ARRAY['(0,0)', '(0,1)', '(0,65535)', '(1,0)', '(65535,1)', '(65536,1)', '(2147483648,1)', '(4294967295,65535)']::tid[]) AS v
		UNION ALL SELECT format('(%s,%s)', trunc(gs.noise(i) * 100000), i % 7)::tid FROM generate_series(1, 200) i $$),
	(18, 'numeric', 'numeric', $$
		SELECT unnest('{NaN,Infinity,-Infinity,0,-0.0,0.00}'::numeric[]) AS v
		UNION ALL SELECT s * (repeat('7', 1000 - i) || '.' || repeat('3', i))::numeric FROM unnest('{-1,1}'::int[]) s, generate_series(0, 1000, 50) i $$),
	(19, 'float8', 'float8', $$
		SELECT unnest('{NaN,Infinity,-Infinity,0,-0}'::float8[]) AS v UNION ALL SELECT (gs.noise(i) - 0.5) * 1e9 FROM generate_series(1, 100) i $$),
	-- of one to five digits to base 10000, as a sort by them alone has them in the key
	(20, 'numeric_short', 'numeric', $$
		SELECT unnest('{NaN,Infinity,-Infinity,0,-0.0,0.00,1e300,-1e300,1e-300,-1e-300,1e255,1e256,1e-256,1e-260}'::numeric[]) AS v
		UNION ALL SELECT s * n * 10 ^ e FROM unnest('{-1,1}'::int[]) s, unnest('{1,9,10,9999,10001,12345678,100000001,9999999999999999,12345678901234567}'::numeric[]) n,
			unnest('{-8,-4,-3,0,1,4,8}'::numeric[]) e
		UNION ALL SELECT ((gs.noise(i) - 0.5) * 1e9)::numeric(20, 6) FROM generate_series(1, 200) i $$);

-- gs.type_LABEL (id, k, rank): each value twice; rank is what PostgreSQL says about the order of k.
DO $$
DECLARE
	t record;
BEGIN
	FOR t IN SELECT * FROM gs.tested_type LOOP
		EXECUTE format('CREATE TABLE gs.type_%s (id int, k %s, rank int)', t.label, t.sql_type);
		EXECUTE format(
			'INSERT INTO gs.type_%s '
			'SELECT row_number() OVER (ORDER BY md5(i::text)), v, dense_rank() OVER (ORDER BY v NULLS LAST) '
			'FROM (SELECT v, row_number() OVER () AS i '
			'	   FROM (SELECT v FROM (%s) s, generate_series(1, 2) UNION ALL SELECT NULL FROM generate_series(1, 5)) a) b '
			'ORDER BY 1', t.label, t.source);
		EXECUTE format('CREATE DOMAIN gs.domain_%s AS %s', t.label, t.sql_type);
	END LOOP;
END $$;

SELECT * FROM no_plan();

-- ties broken by a unique column, the key itself not asked for
SELECT is(gs.compare(format('SELECT id, rank FROM gs.type_%s ORDER BY k %s, id', label, words)), 'same',
		  label || ' ' || words || ', id')
FROM gs.tested_type t, gs.direction d ORDER BY t.ordinal, d.ordinal;

-- ties left open: the ranks of the keys have one order
SELECT is(gs.compare(format('SELECT rank FROM gs.type_%s ORDER BY k %s', label, words)), 'same',
		  label || ' ' || words)
FROM gs.tested_type t, gs.direction d ORDER BY t.ordinal, d.ordinal;

-- as a second column, between others
SELECT is(gs.compare(format('SELECT id, rank FROM gs.type_%s ORDER BY id %% 3 %s, k %s, id DESC', label, e.words, d.words)), 'same',
		  'int4 ' || e.words || ', ' || label || ' ' || d.words)
FROM gs.tested_type t, gs.direction d, gs.direction e
WHERE e.ordinal = 5 - d.ordinal ORDER BY t.ordinal, d.ordinal;

-- domains, and the operators by name
SELECT is(gs.compare(format('SELECT id FROM gs.type_%1$s ORDER BY k::gs.domain_%1$s NULLS FIRST, id', label)), 'same', 'a domain over ' || label)
FROM gs.tested_type t ORDER BY t.ordinal;
SELECT is(gs.compare(format('SELECT id FROM gs.type_%s ORDER BY k USING >, id', label)), 'same', label || ' USING >')
FROM gs.tested_type t ORDER BY t.ordinal;
CREATE TABLE gs.of_domain AS SELECT id, k::gs.domain_enum_changed AS g, id % 7 AS few FROM gs.type_enum_changed;
SELECT is(gs.compare('SELECT * FROM gs.of_domain ORDER BY g DESC, id'), 'same', 'a column of a domain');

-- whole rows; "char" has values that are no text
SELECT is(gs.compare(format('SELECT * FROM gs.type_%s ORDER BY k, id', label)), 'same', 'whole rows by ' || label)
FROM gs.tested_type t WHERE label <> 'char' ORDER BY t.ordinal;
SELECT is(gs.compare(format('SELECT id FROM gs.type_%s WHERE k IS NULL ORDER BY k, id DESC', label)), 'same', label || ' of NULLs only')
FROM gs.tested_type t ORDER BY t.ordinal;

-- what is exact leaves nothing to the comparators
SELECT is((gs.node(format('SELECT id FROM gs.type_%s ORDER BY k', label))->>'Tie Rows')::int, 0, label || ' has no ties')
FROM gs.tested_type t WHERE label NOT IN ('bit_wide', 'varbit', 'numeric') ORDER BY t.ordinal;
SELECT cmp_ok((gs.node(format('SELECT id FROM gs.type_%s ORDER BY k', label))->>'Tie Rows')::int, '>', 0, label || ' has ties')
FROM gs.tested_type t WHERE label IN ('varbit', 'numeric') ORDER BY t.ordinal;

-- strings of bits with a longer prefix, and toasted ones
ANALYZE gs.type_varbit;
ANALYZE gs.type_bit_wide;
SELECT is(gs.compare(format('SELECT id, rank FROM gs.type_%s ORDER BY k %s, id', label, words)), 'same',
		  label || ' of known width ' || words)
FROM gs.tested_type t, gs.direction d WHERE label IN ('bit_wide', 'varbit') ORDER BY t.ordinal, d.ordinal;
CREATE TABLE gs.long_bits AS
SELECT i AS id, CASE WHEN i % 3 = 0 THEN repeat('01', 50000)::varbit || (i % 5)::bit(3)
				ELSE (SELECT string_agg(('x' || md5((i % 20)::text || j))::bit(128)::text, '' ORDER BY j) FROM generate_series(1, 200 + i % 2) j)::varbit END AS k
FROM generate_series(1, 60) i;
CREATE TABLE gs.long_bits_apart (id int, k varbit);
ALTER TABLE gs.long_bits_apart ALTER k SET STORAGE EXTERNAL;
INSERT INTO gs.long_bits_apart SELECT * FROM gs.long_bits;
SELECT is(gs.compare(format('SELECT id FROM gs.%s ORDER BY k %s, id', t, words)), 'same', t || ' ' || words)
FROM gs.direction d, unnest(ARRAY['long_bits', 'long_bits_apart']) t ORDER BY t, d.ordinal;

-- in parallel
CREATE TABLE gs.many_types AS
SELECT i AS id, i % 50 AS few, (i % 24) * interval '1 day' + (i % 3) * interval '1 mon' AS v, set_masklen('10.0.0.0'::inet + (i * 7919) % 100000, 8 + i % 25) AS n,
	   (enum_range(NULL::gs.grade))[1 + i * 31 % 7] AS g, (time '00:00' + i * 7 % 86400 * interval '1 s')::timetz AT TIME ZONE make_interval(hours => i % 5) AS z,
	   (i * 7919)::bit(24)::varbit AS b, jsonb_build_object('a', i % 11, 'b', ARRAY[i % 3]) AS j, ARRAY[i % 13, i % 2] AS a
FROM generate_series(1, 20000) i;
ANALYZE gs.many_types;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SELECT is(CASE WHEN gs.forced_plan('SELECT id FROM gs.many_types ORDER BY ' || o) ~ 'GpuSort(Ingest|Output)'
			   THEN gs.compare_bulk('SELECT id, few FROM gs.many_types ORDER BY ' || o) ELSE 'not parallel' END, 'same', 'in parallel by ' || o)
FROM (VALUES ('v, id'), ('n DESC, id'), ('g, id'), ('g DESC NULLS LAST, z, id'), ('z DESC, id'), ('b, id'), ('few, j, id'), ('g, a DESC, id'), ('few, row(a, few), id'), ('n, j, v, id')) v (o);
SET max_parallel_workers_per_gather = 0;

-- Types without an encoding: the columns before them are the key.
CREATE TYPE gs.duo AS (a int, b text);
CREATE TABLE gs.suffix AS
SELECT i AS id, i % 7 AS few, CASE WHEN i % 10 > 0 THEN i % 50 END AS other, ('k' || i % 30) COLLATE "C" AS t,
	   CASE WHEN i % 9 > 0 THEN jsonb_build_object('a', i % 5, 'b', repeat('x', i % 3)) END AS j,
	   CASE WHEN i % 8 > 0 THEN ARRAY[i % 3, i % 4] END AS a, int4range(i % 5, i % 5 + i % 4) AS r, nummultirange(numrange(i % 3, i % 3 + 1)) AS mr,
	   ROW(i % 4, 'r' || i % 3)::gs.duo AS rec, (i % 5 || ' ' || i % 3)::oidvector AS ov,
	   (i % 12)::numeric / 7 AS n, chr(65 + i % 26 + 32 * (i % 2)) || i % 3 AS u
FROM generate_series(1, 2000) i ORDER BY md5(i::text);
CREATE TABLE gs.suffix_type (ordinal serial, k text);
INSERT INTO gs.suffix_type (k) VALUES
	('ov'), ('ov DESC NULLS LAST'), ('ov NULLS FIRST'), ('u COLLATE "en-x-icu" DESC'), ('row(few, j)');
DELETE FROM gs.suffix_type WHERE k LIKE '%icu%' AND NOT EXISTS (SELECT FROM pg_collation WHERE collname = 'en-x-icu');
SELECT is(gs.forced_uses('SELECT id FROM gs.suffix ORDER BY ' || k || ', few'), false, k || ' stays native as the first column')
FROM gs.suffix_type WHERE k NOT LIKE '%icu%' ORDER BY ordinal;
SELECT is(gs.compare(format('SELECT id FROM gs.suffix ORDER BY %s, %s, id', o, k)), 'same', o || ', ' || k || ', id')
FROM gs.suffix_type s, (VALUES ('few'), ('other DESC'), ('t'), ('n, few DESC')) v (o) WHERE k NOT LIKE '%icu%' ORDER BY ordinal, o;
SELECT is(gs.tie_rows(gs.node('SELECT id FROM gs.suffix ORDER BY few, ' || k), 7), 2000, 'few, ' || k || ' is compared')
FROM gs.suffix_type WHERE k NOT LIKE '%icu%' ORDER BY ordinal;
SELECT is((gs.node('SELECT id FROM gs.suffix ORDER BY id, ' || k)->>'Tie Rows')::int, 0, 'id, ' || k || ' is not compared')
FROM gs.suffix_type WHERE k NOT LIKE '%icu%' ORDER BY ordinal;
SELECT is((SELECT coalesce(string_agg(gs.compare(format('SELECT id FROM gs.suffix ORDER BY %s, %s, id', o, k)), ' and '), 'same and same')
		   FROM gs.suffix_type s, (VALUES ('few'), ('t')) v (o) WHERE k LIKE '%icu%'), 'same and same', 'columns before one of another collation');
SELECT is(gs.compare('SELECT * FROM gs.suffix ORDER BY few, row(few, a) NULLS FIRST, ov DESC NULLS LAST, row(few, j), id'), 'same', 'suffixes one after the other');
SELECT is(gs.compare('SELECT * FROM gs.suffix ORDER BY few, ov, few DESC, id DESC'), 'same', 'a suffix, then columns with an encoding');
SELECT is(gs.compare('SELECT few, ov FROM gs.suffix UNION ALL SELECT other, ov FROM gs.suffix ORDER BY 1, 2'), 'same', 'a suffix of a set operation');
SELECT is(gs.compare('SELECT id FROM gs.suffix ORDER BY few, mod(id, 2) = 0, ov, id'), 'same', 'a suffix behind several');
SET gpusort.min_rows = 0;
SET gpusort.setup_cost = 0;
ANALYZE gs.suffix;
SELECT ok(gs.uses('SELECT id FROM gs.suffix ORDER BY id, ov'), 'by cost where the key before decides');
SELECT ok(NOT gs.uses('SELECT id FROM gs.suffix ORDER BY id % 2 = 0, ov'), 'not where all is left to the comparators');
RESET gpusort.min_rows;
RESET gpusort.setup_cost;

-- An order of the user's own for a type that has an encoding: by a class with the
-- opposite order, and operators of other names.
CREATE PROCEDURE gs.create_reversed(t regtype) LANGUAGE plpgsql AS $$
DECLARE
	name text := 'r_' || regexp_replace(t::text, '\W', '_', 'g');
	o record;
BEGIN
	FOR o IN SELECT * FROM (VALUES ('lt', '<#', '>'), ('le', '<=#', '>='), ('eq', '=#', '='), ('ge', '>=#', '<='), ('gt', '>#', '<')) v (f, own, builtin) LOOP
		EXECUTE format('CREATE FUNCTION gs.%s_%s(%s, %s) RETURNS bool LANGUAGE sql IMMUTABLE AS ''SELECT $1 %s $2''', name, o.f, t, t, o.builtin);
		EXECUTE format('CREATE OPERATOR gs.%s (FUNCTION = gs.%s_%s, LEFTARG = %s, RIGHTARG = %s)', o.own, name, o.f, t, t);
	END LOOP;
	EXECUTE format('CREATE FUNCTION gs.%s_cmp(%s, %s) RETURNS int LANGUAGE sql IMMUTABLE AS ''SELECT CASE WHEN $1 > $2 THEN -1 WHEN $1 < $2 THEN 1 ELSE 0 END''', name, t, t);
	EXECUTE format('CREATE OPERATOR CLASS gs.%s_ops FOR TYPE %s USING btree AS OPERATOR 1 gs.<#, OPERATOR 2 gs.<=#, OPERATOR 3 gs.=#, '
				   'OPERATOR 4 gs.>=#, OPERATOR 5 gs.>#, FUNCTION 1 gs.%s_cmp(%s, %s)', name, t, name, t, t);
END $$;
DO $$
DECLARE
	t regtype;
BEGIN
	FOR t IN SELECT DISTINCT atttypid::regtype FROM gs.tested_type JOIN pg_attribute ON attrelid = ('gs.type_' || label)::regclass AND attname = 'k' LOOP
		CALL gs.create_reversed(t);
	END LOOP;
END $$;
SELECT ok(NOT gs.forced_uses(format('SELECT rank FROM gs.type_%s ORDER BY k USING OPERATOR(gs.<#)', label)), label || ' by a class of the user''s own stays native')
FROM gs.tested_type t ORDER BY t.ordinal;
SELECT is(gs.compare(format('SELECT id FROM gs.type_%s ORDER BY id %% 3, k USING OPERATOR(gs.<#), id', label)), 'same', label || ' by such a class, as a second column')
FROM gs.tested_type t ORDER BY t.ordinal;
SELECT is(gs.forced_rows(format('SELECT rank FROM gs.type_%s WHERE k IS NOT NULL ORDER BY id - id, k USING OPERATOR(gs.<#)', label)),
		  gs.native_rows(format('SELECT rank FROM gs.type_%s WHERE k IS NOT NULL ORDER BY k DESC', label)), label || ' by such a class is in its order')
FROM gs.tested_type t ORDER BY t.ordinal;
-- an index of such a class gives no order that anybody would take for the type's own
CREATE INDEX ON gs.type_inet (k gs.r_inet_ops);
SELECT is(gs.compare_results('SELECT id, rank FROM gs.type_inet ORDER BY k, id'), 'same', 'with an index of such a class');
-- a class of PostgreSQL's own operators, turned round
CREATE FUNCTION gs.backward(macaddr, macaddr) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT macaddr_cmp($2, $1)';
CREATE OPERATOR CLASS gs.backward_ops FOR TYPE macaddr USING btree AS OPERATOR 1 >, OPERATOR 2 >=, OPERATOR 3 =, OPERATOR 4 <=, OPERATOR 5 <,
	FUNCTION 1 gs.backward(macaddr, macaddr);
SELECT is(gs.compare_results(format('SELECT id, rank FROM gs.type_macaddr ORDER BY %s k %s, id', o, words)), 'same', 'with a class that turns its operators round: ' || o || ' k ' || words)
FROM gs.direction d, unnest(ARRAY['', 'id % 3,']) o ORDER BY o, d.ordinal;
DROP OPERATOR FAMILY gs.backward_ops USING btree CASCADE;

-- Enums: so many values in one place that PostgreSQL numbers all of them anew
DO $$
BEGIN
	FOR i IN 1 .. 60 LOOP
		EXECUTE format('ALTER TYPE gs.feeling ADD VALUE %L BEFORE ''ok''', 'm' || i);
	END LOOP;
END $$;
INSERT INTO gs.type_enum SELECT 100 + i, ('m' || i)::gs.feeling, i FROM generate_series(1, 60) i;
SELECT ok((SELECT count(*) > 20 FROM pg_enum WHERE enumtypid = 'gs.feeling'::regtype AND oid::bigint % 2 = 1), 'values whose Oids are out of order');
SELECT is(gs.compare(format('SELECT id, k FROM gs.type_enum ORDER BY k %s, id', words)), 'same', 'after ADD VALUE BEFORE: ' || words)
FROM gs.direction d ORDER BY d.ordinal;
SELECT is((gs.node('SELECT id FROM gs.type_enum ORDER BY k')->>'Tie Rows')::int, 0, 'and exact');
ALTER TYPE gs.feeling RENAME VALUE 'm7' TO 'renamed';
SELECT is(gs.compare('SELECT id, k FROM gs.type_enum ORDER BY k, id'), 'same', 'a renamed value');

-- a prepared plan, before and after
PREPARE by_grade AS SELECT array_agg(k) FROM (SELECT k FROM gs.type_enum_changed ORDER BY k DESC, id) s;
SET gpusort.force = on;
SET plan_cache_mode = force_generic_plan;
SELECT ok(gs.plan('EXECUTE by_grade') LIKE '%GpuSort%', 'a prepared plan');
EXECUTE by_grade \g /dev/null
ALTER TYPE gs.grade ADD VALUE 'c+' BEFORE 'c';
INSERT INTO gs.type_enum_changed VALUES (1000, 'c+', 0);
EXECUTE by_grade \gset prepared_
RESET gpusort.force;
RESET plan_cache_mode;
SELECT is(:'prepared_array_agg', (SELECT array_agg(k)::text FROM (SELECT k FROM gs.type_enum_changed ORDER BY k DESC, id) s), 'a prepared plan and a new value');

-- Values that this transaction has added: PostgreSQL does not let them be used yet,
-- but by functions that know no types.
BEGIN;
CREATE TYPE gs.fresh AS ENUM ('b', 'd');
ALTER TYPE gs.fresh ADD VALUE 'a' BEFORE 'b';
ALTER TYPE gs.fresh ADD VALUE 'c' BEFORE 'd';
CREATE FUNCTION gs.as_fresh(oid, oid) RETURNS gs.fresh LANGUAGE internal IMMUTABLE STRICT AS 'oidlarger';
CREATE FUNCTION gs.nth_fresh(n int) RETURNS gs.fresh LANGUAGE sql AS
$$ SELECT gs.as_fresh(o[1 + n % cardinality(o)], 0) FROM (SELECT array_agg(oid ORDER BY enumsortorder) AS o FROM pg_enum WHERE enumtypid = 'gs.fresh'::regtype) s $$;
CREATE TABLE gs.of_fresh AS SELECT i AS id, gs.nth_fresh(i) AS k FROM generate_series(1, 100) i;
SELECT is(gs.compare('SELECT id, k FROM gs.of_fresh ORDER BY k DESC, id'), 'same', 'values that are not committed');

-- values that the query's snapshot does not show: added while it runs
CREATE FUNCTION gs.late(i int) RETURNS gs.fresh LANGUAGE plpgsql VOLATILE AS $$
BEGIN
	IF i = 50 THEN
		ALTER TYPE gs.fresh ADD VALUE '0' BEFORE 'a';
		ALTER TYPE gs.fresh ADD VALUE 'b1' AFTER 'b';
		ALTER TYPE gs.fresh ADD VALUE 'b3' AFTER 'b1';
	ELSIF i = 80 THEN
		ALTER TYPE gs.fresh ADD VALUE 'b2' BEFORE 'b3';
		ALTER TYPE gs.fresh ADD VALUE 'z' AFTER 'd';
	END IF;
	RETURN gs.nth_fresh(i);
END $$;
CREATE FUNCTION gs.late_query(words text) RETURNS text LANGUAGE sql AS
$$ SELECT format('SELECT i, k FROM (SELECT i, gs.late(i) AS k FROM generate_series(1, 200) i OFFSET 0) s ORDER BY k %s, i %% 4, i', words) $$;
SAVEPOINT before_late;
SELECT gs.node(gs.late_query(''))->>'Tie Rows' AS ties \gset
ROLLBACK TO before_late;
SELECT gs.forced_rows(gs.late_query(''))::text AS up \gset
ROLLBACK TO before_late;
SELECT gs.forced_rows(gs.late_query('DESC'))::text AS down \gset
ROLLBACK TO before_late;
SELECT gs.native_rows(gs.late_query(''))::text AS native_up \gset
ROLLBACK TO before_late;
SELECT gs.native_rows(gs.late_query('DESC'))::text AS native_down \gset
ROLLBACK TO before_late;
SELECT cmp_ok(:ties, '>', 50, 'values added while the query runs tie');
SELECT is(gs.difference(:'native_up'::text[], :'up'::text[]), 'same', 'and come out in order');
SELECT is(gs.difference(:'native_down'::text[], :'down'::text[]), 'same', 'and descending');
COMMIT;

-- Numerics that begin alike take more of the key: as many digits as tell them apart, to either side of zero
CREATE TABLE gs.long_numerics AS
SELECT i AS id, i % 7 AS few, CASE i % 50 WHEN 0 THEN NULL WHEN 1 THEN 'NaN' WHEN 2 THEN 'Infinity' WHEN 3 THEN '-Infinity' WHEN 4 THEN 0.000 WHEN 5 THEN 1234
	ELSE (CASE WHEN i % 2 = 0 THEN 1 ELSE -1 END) * (123456789012345678901234567890::numeric + gs.dice(400, i, 1) / 8.0 * 10 ^ -gs.dice(3, i, 2)) END AS n,
	(repeat('98765', 20) || gs.dice(900, i, 3))::numeric AS longer,
	(CASE WHEN i < 500 THEN 5 ELSE 5 + gs.dice(1000, i, 4) / 1e30 END)::numeric AS later
FROM generate_series(1, 4000) i ORDER BY md5(i::text);
CREATE FUNCTION gs.long_numeric_checks(phase text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
	RETURN QUERY SELECT is(gs.compare(format('SELECT id, %s FROM gs.long_numerics ORDER BY %s %s, id', k, k, words)), 'same', format('%s %s %s', phase, k, words))
	FROM unnest(ARRAY['n', 'longer', 'later', 'few, n', 'n + 1e-40', '-n', 'n DESC, later']) k, gs.direction ORDER BY k, words;
	-- but for a row that ends a run
	RETURN NEXT ok(gs.tie_rows(gs.node('SELECT id FROM gs.long_numerics ORDER BY n, id'), 1) <= (SELECT makes_runs::int FROM gs.service), phase || ' are in the key whole');
	RETURN NEXT cmp_ok(gs.tie_rows(gs.node('SELECT id FROM gs.long_numerics ORDER BY longer, id'), 1), '>', 3000, phase || ' are as far as it goes');
END $$;
SELECT gs.long_numeric_checks('long numerics');
ANALYZE gs.long_numerics;
SELECT gs.long_numeric_checks('with statistics, long numerics');
SET enable_hashjoin = off;
SET enable_nestloop = off;
SET enable_hashagg = off;
SELECT is(gs.compare_results('SELECT count(*), sum(a.id), sum(b.few) FROM gs.long_numerics a JOIN gs.long_numerics b USING (n) WHERE b.id < 900'), 'same', 'joined by long numerics');
SELECT is(gs.compare_results('SELECT n, count(*), min(id) FROM gs.long_numerics GROUP BY n ORDER BY n, 3'), 'same', 'groups of long numerics');
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SELECT is(gs.compare_results(format('SELECT id, %s FROM gs.long_numerics ORDER BY %s, id', k, k)), 'same', 'by all processes, ' || k) FROM unnest(ARRAY['n', 'longer', '-n']) k;
SELECT is(gs.compare_results('SELECT count(*), sum(a.id) FROM gs.long_numerics a JOIN gs.long_numerics b ON a.n = b.n - 0'), 'same', 'joined by all processes');
RESET ALL;

SELECT * FROM finish();
