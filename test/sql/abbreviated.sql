\set ECHO none
-- Values that have no encoding here but are abbreviated by their operator class, compared with PostgreSQL's order: by
-- classes of a family of their own that have PostgreSQL's functions, whose comparators of abbreviated words are
-- PostgreSQL's (bytea, text, inet) and their own, with a sign and downwards (numeric).
SET client_min_messages = warning;
LOAD 'gpusort';
\pset format unaligned
\pset tuples_only on

SELECT * FROM no_plan();

-- A class of a type's own functions, by operators of other names.
CREATE PROCEDURE gs.create_abbreviated(t regtype, functions text, sortsupport text) LANGUAGE plpgsql AS $$
DECLARE
	o record;
BEGIN
	FOR o IN SELECT * FROM (VALUES ('lt', '<^'), ('le', '<=^'), ('eq', '=^'), ('ge', '>=^'), ('gt', '>^')) v (f, own) LOOP
		EXECUTE format('CREATE OPERATOR gs.%s (FUNCTION = %s, LEFTARG = %s, RIGHTARG = %s, RESTRICT = eqsel, JOIN = eqjoinsel%s)', o.own, replace(functions || o.f, 'text_eq', 'texteq'), t, t,
					   CASE WHEN o.f = 'eq' THEN ', MERGES, COMMUTATOR = OPERATOR(gs.=^)' ELSE '' END);
	END LOOP;
	EXECUTE format('CREATE OPERATOR CLASS gs.abbreviated_%s_ops FOR TYPE %s USING btree AS OPERATOR 1 gs.<^, OPERATOR 2 gs.<=^, OPERATOR 3 gs.=^, OPERATOR 4 gs.>=^, OPERATOR 5 gs.>^, '
				   'FUNCTION 1 %s(%s, %s)%s', t, t, CASE WHEN t = 'text'::regtype THEN 'bttextcmp' ELSE functions || 'cmp' END, t, t, ', FUNCTION 2 ' || nullif(sortsupport, '') || '(internal)');
END $$;
CALL gs.create_abbreviated('numeric', 'numeric_', 'numeric_sortsupport');
CALL gs.create_abbreviated('bytea', 'bytea', 'bytea_sortsupport');
CALL gs.create_abbreviated('text', 'text_', 'bttextsortsupport');
CALL gs.create_abbreviated('inet', 'network_', 'network_sortsupport');
-- a class that has no such function, and a domain over a type that has
CALL gs.create_abbreviated('tsvector', 'tsvector_', NULL);
CREATE DOMAIN gs.amount AS numeric;

CREATE TABLE gs.abbreviated AS
SELECT i AS id, i % 5 AS few,
	CASE WHEN i % 13 = 0 THEN NULL WHEN i % 3 = 0 THEN (ARRAY['NaN', 'Infinity', '-Infinity', '0', '0.00', '1.0', '1.00', '-1', '1e-20', '-1e-20', '1e100', '-1e100', '12345678901234567890.1',
		'12345678901234567890.2', '9999', '10000', '-9999', '-10000'])[1 + gs.dice(18, i, 1)]::numeric ELSE (gs.dice(200000, i, 2) - 100000)::numeric / 7 END AS n,
	CASE WHEN i % 11 = 0 THEN NULL WHEN i % 3 = 0 THEN (ARRAY['\x', '\x00', '\x0000', '\xff', '\x00ff', '\x0000000000000000', '\x000000000000000000', '\x0000000000000001', '\xffffffffffffffff00'])[1 + gs.dice(9, i, 3)]::bytea
		 ELSE decode(md5(gs.dice(3000, i, 4)::text), 'hex') END AS b,
	CASE WHEN i % 7 = 0 THEN NULL ELSE (ARRAY['', 'a', 'A', 'e', U&'\00E9', 'co-op', 'coop', 'common beginning of '])[1 + gs.dice(8, i, 5)] || repeat('x', gs.dice(20, i, 6)) || gs.dice(30, i, 7) END AS t,
	CASE WHEN i % 17 = 0 THEN NULL WHEN i % 3 = 0 THEN (ARRAY['10.0.0.0/8', '10.0.0.0/16', '10.0.0.1', '::/0', '::1', 'fe80::/64', 'fe80::1/64', '255.255.255.255', '0.0.0.0/0'])[1 + gs.dice(9, i, 8)]::inet
		 ELSE '10.0.0.0'::inet + gs.dice(1000000, i, 9) END AS a,
	to_tsvector('simple', 'w' || i % 9) AS v
FROM generate_series(1, 4000) i ORDER BY md5(i::text);
ALTER TABLE gs.abbreviated ADD COLUMN d gs.amount;
UPDATE gs.abbreviated SET d = n;
ANALYZE gs.abbreviated;

CREATE TABLE gs.abbreviated_key (ordinal serial, k text);
INSERT INTO gs.abbreviated_key (k) VALUES ('n'), ('b'), ('t COLLATE "C"'), ('a'), ('d');

SELECT is(gs.compare(format('SELECT id FROM gs.abbreviated ORDER BY %s USING OPERATOR(gs.%s)%s, id', k, o, nulls)), 'same', format('%s %s%s', k, o, nulls))
FROM gs.abbreviated_key, (VALUES ('<^'), ('>^')) v (o), (VALUES (''), (' NULLS FIRST'), (' NULLS LAST')) w (nulls) ORDER BY ordinal, o, nulls;
SELECT is(gs.compare(format('SELECT id FROM gs.abbreviated ORDER BY few DESC, %s USING OPERATOR(gs.<^), id', k)), 'same', 'few, ' || k) FROM gs.abbreviated_key ORDER BY ordinal;
SELECT is(gs.compare(format('SELECT id FROM gs.abbreviated ORDER BY %s USING OPERATOR(gs.>^) NULLS LAST, %s USING OPERATOR(gs.<^), id', a.k, b.k)), 'same', a.k || ', ' || b.k)
FROM gs.abbreviated_key a JOIN gs.abbreviated_key b ON b.ordinal = a.ordinal + 1 ORDER BY a.ordinal;

-- Every neighbour is verified, whatever the setting for collations, and what is equal in the word compared
SET gpusort.verify_collation = off;
SELECT ok((gs.node(format('SELECT id FROM gs.abbreviated ORDER BY %s USING OPERATOR(gs.<^)', k))->>'Verified Pairs')::int > 100, k || ' is verified') FROM gs.abbreviated_key ORDER BY ordinal;
RESET gpusort.verify_collation;
SELECT ok(gs.tie_rows(gs.node(format('SELECT id FROM gs.abbreviated ORDER BY %s USING OPERATOR(gs.<^)', k)), 0) > 100, k || ' has ties') FROM gs.abbreviated_key ORDER BY ordinal;

-- Windows, groups, what is different, first rows, joins, and all processes
SELECT is(gs.compare_results(format('SELECT id, row_number() OVER (ORDER BY %s USING OPERATOR(gs.<^), id), count(*) OVER (ORDER BY %s USING OPERATOR(gs.<^)) FROM gs.abbreviated ORDER BY id', k, k)), 'same', 'windows of ' || k)
FROM gs.abbreviated_key ORDER BY ordinal;
SELECT is(gs.compare_results(format('SELECT array_agg(id ORDER BY %s USING OPERATOR(gs.<^), id) FROM gs.abbreviated GROUP BY few ORDER BY few', k)), 'same', 'aggregates in the order of ' || k)
FROM gs.abbreviated_key ORDER BY ordinal;
SELECT is(gs.compare_results(format('SELECT id FROM gs.abbreviated ORDER BY %s USING OPERATOR(gs.>^), id LIMIT 20 OFFSET 3', k)), 'same', 'first rows of ' || k) FROM gs.abbreviated_key ORDER BY ordinal;
SET enable_hashjoin = off;
SET enable_nestloop = off;
SELECT is(gs.compare_results(format('SELECT count(*), sum(x.id) FROM gs.abbreviated x JOIN gs.abbreviated y ON x.%s OPERATOR(gs.=^) y.%s WHERE y.id < 400', k, k)), 'same', 'joined by ' || k) FROM unnest(ARRAY['n', 'b', 'a']) k ORDER BY k;
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SELECT is(gs.compare(format('SELECT id, few FROM gs.abbreviated ORDER BY %s USING OPERATOR(gs.<^), id', k)), 'same', 'in parallel by ' || k) FROM gs.abbreviated_key ORDER BY ordinal;
SELECT is(gs.compare_results(format('SELECT count(*), sum(r) FROM (SELECT rank() OVER (PARTITION BY few ORDER BY %s USING OPERATOR(gs.<^)) * id AS r FROM gs.abbreviated) s', k)), 'same', 'windows in parallel of ' || k)
FROM gs.abbreviated_key ORDER BY ordinal;
SELECT is(gs.compare_results(format('SELECT count(*), sum(x.id) FROM gs.abbreviated x JOIN gs.abbreviated y ON x.%s OPERATOR(gs.=^) y.%s WHERE y.id < 400', k, k)), 'same', 'joined in parallel by ' || k) FROM unnest(ARRAY['n', 'b', 'a']) k ORDER BY k;
RESET max_parallel_workers_per_gather;
RESET enable_hashjoin;
RESET enable_nestloop;

-- A collation whose strings a class does not abbreviate, one that it does, and a class that has no such function
SELECT ok(NOT gs.forced_uses('SELECT id FROM gs.abbreviated ORDER BY v USING OPERATOR(gs.<^)'), 'without a function for it a class stays native');
SELECT is((SELECT coalesce(string_agg(gs.compare_results(format('SELECT id FROM gs.abbreviated ORDER BY t COLLATE %s USING OPERATOR(gs.<^), id', oid::regcollation)), ', '), 'same')
		   FROM pg_collation WHERE collname = 'en-x-icu'), 'same', 'strings under an ICU collation by such a class');
-- Within others there is no such key
CREATE TYPE gs.abbreviated_range AS RANGE (subtype = numeric, subtype_opclass = gs.abbreviated_numeric_ops);
SELECT ok(NOT gs.forced_uses('SELECT id FROM (SELECT id, gs.abbreviated_range(n, NULL) AS r FROM gs.abbreviated) s ORDER BY r'), 'a range over such a class stays native');

-- Long values, stored elsewhere
CREATE TABLE gs.abbreviated_long AS SELECT i AS id, decode(repeat(md5((i % 300)::text), 1000), 'hex') AS b FROM generate_series(1, 1000) i;
ALTER TABLE gs.abbreviated_long ALTER b SET STORAGE EXTERNAL;
UPDATE gs.abbreviated_long SET b = b || '\x00'::bytea;
SELECT is(gs.compare('SELECT id FROM gs.abbreviated_long ORDER BY b USING OPERATOR(gs.<^), id'), 'same', 'long values');

-- Where words tell too little the sort is PostgreSQL's: which the class says, or the sample
CREATE TABLE gs.abbreviated_alike AS SELECT i AS id, ('\x' || repeat('20', 12) || md5(i::text))::bytea AS b FROM generate_series(1, 60000) i;
ANALYZE gs.abbreviated_alike;
SELECT is(gs.compare('SELECT id FROM gs.abbreviated_alike ORDER BY b USING OPERATOR(gs.<^)'), 'same', 'words that are all alike, forced');
SET gpusort.min_rows = 0;
SET gpusort.setup_cost = 0;
SELECT ok(NOT gs.uses('SELECT id FROM gs.abbreviated_alike ORDER BY b USING OPERATOR(gs.<^)'), 'words that are all alike are left to PostgreSQL');
RESET gpusort.min_rows;
RESET gpusort.setup_cost;

SELECT * FROM finish();
