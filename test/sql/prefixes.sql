\set ECHO none
-- Strings that begin alike: what of them is in the key follows the data, and the
-- order is right whatever the rows that were looked at had in common.
SET client_min_messages = warning;
LOAD 'gpusort';
\pset format unaligned
\pset tuples_only on
SET max_parallel_workers_per_gather = 0;

CREATE FUNCTION gs.hash(i int, salt text DEFAULT '') RETURNS int LANGUAGE sql IMMUTABLE AS
$$ SELECT ('x' || left(md5(i || salt), 7))::bit(28)::int $$;

-- Columns of strings: sql makes n rows of them, in the order in which they are read.
CREATE TABLE gs.prefix_case (ordinal int, label text, sql text);
INSERT INTO gs.prefix_case VALUES
	(1, 'none', $$ SELECT i, md5(i::text) FROM generate_series(1, 3000) i $$),
	(2, 'one head', $$ SELECT i, 'https://www.example.com/shop/catalogue/a/' || md5(i::text) FROM generate_series(1, 3000) i $$),
	(3, 'two hosts', $$ SELECT i, 'https://www.' || CASE gs.hash(i) % 2 WHEN 0 THEN 'example.com/a/rather/long/path/' ELSE 'example.net/and/another/one/' END || gs.hash(i, 'x') FROM generate_series(1, 3000) i $$),
	(4, 'paths', $$ SELECT i, '/home/user' || gs.hash(i) % 100 || '/projects/src/lib/module' || gs.hash(i, 'm') % 500 || '/file' || i FROM generate_series(1, 3000) i $$),
	(5, 'numbers', $$ SELECT i, 'customer-' || lpad((i::bigint * 7919 % 10007)::text, 12, '0') FROM generate_series(1, 3000) i $$),
	(6, 'uuids', $$ SELECT i, md5(i::text)::uuid::text FROM generate_series(1, 3000) i $$),
	-- every beginning of a head, parted from below, behind, and ended
	(7, 'all ways to part', $$ SELECT i, CASE i % 8 WHEN 0 THEN left('the head of nearly all rows', i / 8 % 28) || (ARRAY['', ' ', '~', 'hh', 'h', '!', 'tt'])[1 + gs.hash(i) % 7]
		ELSE 'the head of nearly all rows' || gs.hash(i) END FROM generate_series(1, 4000) i $$),
	-- the first rows have much in common, the others less, or nothing, or something else
	(8, 'first rows alike', $$ SELECT i, CASE WHEN i <= 1000 THEN 'a long beginning that only the first rows have in common with each other ' || i
		ELSE 'a long ' || CASE i % 3 WHEN 0 THEN '' ELSE 'ending ' END || gs.hash(i) END FROM generate_series(1, 4000) i $$),
	(9, 'first rows equal', $$ SELECT i, CASE WHEN i <= 2500 THEN 'the same' ELSE 'the same or ' || gs.hash(i) END FROM generate_series(1, 4000) i $$),
	(10, 'first rows unlike', $$ SELECT i, CASE WHEN i <= 1000 THEN md5(i::text) ELSE repeat('much in common ', 10) || gs.hash(i) END FROM generate_series(1, 4000) i $$),
	(11, 'in order', $$ SELECT i, 'row number ' || lpad(i::text, 12, '0') || repeat(' and so on', 5) FROM generate_series(1, 4000) i $$),
	(12, 'all equal', $$ SELECT i, repeat('all equal ', 20) FROM generate_series(1, 3000) i $$),
	(13, 'all equal and long', $$ SELECT i, repeat('all equal ', 300) FROM generate_series(1, 3000) i $$),
	(14, 'few long values', $$ SELECT i, repeat(chr(97 + gs.hash(i) % 5), 200) || repeat(chr(97 + gs.hash(i, 'b') % 5), 100) FROM generate_series(1, 3000) i $$),
	(15, 'empty', $$ SELECT i, '' FROM generate_series(1, 3000) i $$),
	(16, 'empty and NULL', $$ SELECT i, CASE i % 3 WHEN 0 THEN '' WHEN 1 THEN NULL ELSE 'a' END FROM generate_series(1, 3000) i $$),
	(17, 'NULL', $$ SELECT i, NULL FROM generate_series(1, 3000) i $$),
	(18, 'one string among NULLs', $$ SELECT i, CASE i WHEN 1500 THEN 'the only one' END FROM generate_series(1, 3000) i $$),
	(19, 'heads longer than looked at', $$ SELECT i, repeat('x', 1500) || gs.hash(i) % 500 FROM generate_series(1, 1200) i $$),
	(20, 'toasted', $$ SELECT i, 'a common beginning, and then what is toasted ' || (SELECT string_agg(md5((gs.hash(i) % 300)::text || j), '') FROM generate_series(1, 90) j) FROM generate_series(1, 1200) i $$),
	(21, 'lengths', $$ SELECT i, left(repeat('ab', 200), gs.hash(i) % 400) FROM generate_series(1, 3000) i $$),
	(22, 'blanks', $$ SELECT i, 'blanks' || repeat(' ', gs.hash(i) % 5) || (ARRAY['', '!', E'\t', 'a'])[1 + gs.hash(i, 'a') % 4] FROM generate_series(1, 3000) i $$),
	(23, 'other alphabets', $$ SELECT i, 'größere Straße in ' || (ARRAY['Ähren', 'Zürich', 'České', '東京', '😀'])[1 + gs.hash(i) % 5] || gs.hash(i, 'z') % 700 FROM generate_series(1, 3000) i $$);
CREATE TABLE gs.prefixes (ordinal int, id int, t text COLLATE "C", c char(420) COLLATE "C", b bytea, n name COLLATE "C", k int);
ALTER TABLE gs.prefixes ALTER t SET STORAGE EXTENDED;
DO $$
DECLARE
	r record;
BEGIN
	FOR r IN SELECT * FROM gs.prefix_case ORDER BY ordinal LOOP
		EXECUTE format('INSERT INTO gs.prefixes SELECT %s, i, s, left(s, 420), convert_to(s, ''UTF8''), left(s, 50)::name, i %% 7 FROM (%s) v (i, s)', r.ordinal, r.sql);
	END LOOP;
END $$;
UPDATE gs.prefixes SET b = b || '\xff00'::bytea || decode(left(md5(id::text), 2), 'hex') WHERE id % 2 = 0 AND ordinal IN (2, 7, 12);

SELECT * FROM no_plan();

-- every case, first without statistics, then with
SELECT is(gs.compare(format('SELECT id, md5(t) FROM (SELECT * FROM gs.prefixes WHERE ordinal = %s OFFSET 0) s ORDER BY %s %s, id', p.ordinal, column_name, words)), 'same',
		  format('%s: %s %s', label, column_name, words))
FROM gs.prefix_case p, gs.direction d, (VALUES ('t'), ('c'), ('b'), ('n')) v (column_name)
WHERE d.ordinal IN (1, 3) ORDER BY p.ordinal, column_name, d.ordinal;

-- one table of each, analyzed, so that its statistics are looked at
DO $$
DECLARE
	r record;
BEGIN
	FOR r IN SELECT * FROM gs.prefix_case WHERE ordinal IN (2, 3, 4, 8, 10, 11, 12, 14, 20) ORDER BY ordinal LOOP
		EXECUTE format('CREATE TABLE gs.prefix_%s AS SELECT row_number() OVER (ORDER BY x, id)::int AS id, CASE ordinal WHEN 2 THEN left(t, 42) || md5(t || x) WHEN 12 THEN t WHEN 14 THEN t ELSE t || x END AS t, k
			FROM gs.prefixes, generate_series(1, CASE WHEN ordinal = 20 THEN 2 ELSE 10 END) x WHERE ordinal = %1$s', r.ordinal);
		EXECUTE format('ANALYZE gs.prefix_%s', r.ordinal);
	END LOOP;
END $$;
SELECT is(gs.compare_bulk(format('SELECT id, t FROM gs.prefix_%s ORDER BY t %s, id', p.ordinal, words)), 'same', format('%s, analyzed: %s', label, words))
FROM gs.prefix_case p, gs.direction d WHERE p.ordinal IN (2, 3, 4, 8, 10, 11, 12, 14, 20) AND d.ordinal IN (1, 3) ORDER BY p.ordinal, d.ordinal;
-- another column decides among equal ones
SELECT is(gs.compare_bulk(format('SELECT id, t FROM gs.prefix_%s ORDER BY k, t DESC, id DESC', p.ordinal)), 'same', format('%s, analyzed, behind another column', label))
FROM gs.prefix_case p WHERE p.ordinal IN (2, 3, 4, 8, 10, 12, 14) ORDER BY p.ordinal;

-- the comparators are not needed where strings share beginnings
SELECT is((gs.node(format('SELECT id, t FROM gs.prefix_%s ORDER BY t', p.ordinal))->>'Tie Rows')::int, 0, format('%s: no ties', label))
FROM gs.prefix_case p WHERE p.ordinal IN (2, 3, 4, 11, 12) ORDER BY p.ordinal;
SELECT cmp_ok((gs.node('SELECT id, t FROM gs.prefix_2 ORDER BY t')->'Key Bits'->>'Encoded')::int, '<=', 192, 'what all have in common is not in the key');
SELECT cmp_ok((gs.node('SELECT id, t FROM gs.prefix_12 ORDER BY t')->'Key Bits'->>'Encoded')::int, '<=', 128, 'not even if it is all there is');
SELECT cmp_ok((gs.node('SELECT t || id FROM gs.prefix_2 ORDER BY (t || id) COLLATE "C"')->'Key Bits'->>'Encoded')::int, '<=', 320, 'nor of an expression, which has no statistics');
-- more than any key takes is left to them
SELECT is(gs.tie_rows(gs.node('SELECT (repeat(chr(97 + id % 2), 300) || t) AS t FROM gs.prefix_2 ORDER BY (repeat(chr(97 + id % 2), 300) || t) COLLATE "C"'), 2), 30000, 'long beginnings of two kinds tie');
SELECT is(gs.compare_bulk('SELECT repeat(chr(97 + id % 2), 300) || t AS t, id FROM gs.prefix_2 ORDER BY (repeat(chr(97 + id % 2), 300) || t) COLLATE "C" DESC, id'), 'same', 'in their order');

-- many columns of strings: together they have no more than a key's words
SELECT is(gs.compare('SELECT id, md5(t) FROM (SELECT id, t, reverse(t) AS r, t || k AS s, b, n FROM gs.prefixes WHERE ordinal IN (3, 4, 7, 14) OFFSET 0) s ORDER BY r COLLATE "C" DESC, s COLLATE "C", t, b, n, id'), 'same', 'many columns');
SELECT is(gs.compare('SELECT id, k FROM (SELECT id, k, t FROM gs.prefixes WHERE ordinal IN (12, 15) OFFSET 0) s ORDER BY t, k DESC, id'), 'same', 'equal strings, and others behind');
SELECT is(gs.compare(format('SELECT id FROM (SELECT id, %s FROM gs.prefixes WHERE ordinal IN (3, 7) OFFSET 0) s ORDER BY %s, id',
	(SELECT string_agg(format('t || %s AS c%s', i, i), ', ') FROM generate_series(1, 40) i), (SELECT string_agg(format('c%s COLLATE "C"', i), ', ') FROM generate_series(1, 40) i))), 'same', 'more columns than a key has words');

-- orders of bytes under any collation
CREATE TABLE gs.patterns AS SELECT id, t AS d, t COLLATE "de-x-icu" AS i, t::varchar AS v, left(c, 30)::char(30) AS c FROM gs.prefixes WHERE ordinal IN (7, 22, 23);
SELECT is(gs.compare(format('SELECT id FROM gs.patterns ORDER BY %s USING %s, id', column_name, operator)), 'same', format('%s %s', column_name, operator))
FROM (VALUES ('d'), ('i'), ('v'), ('c')) v (column_name), (VALUES ('~<~'), ('~>~')) w (operator);
SELECT is(gs.compare(format('SELECT id FROM gs.patterns ORDER BY %s USING %s NULLS FIRST, id DESC', expression, operator)), 'same', format('%s %s', expression, operator))
FROM (VALUES ('(d COLLATE "en-x-icu")'), ('lower(i)'), ('id, v')) v (expression), (VALUES ('~<~'), ('~>~')) w (operator);

-- ICU's sort keys have heads too
SELECT is(gs.compare(format('SELECT id, md5(t) FROM (SELECT * FROM gs.prefixes WHERE ordinal = %s OFFSET 0) s ORDER BY t COLLATE %I %s, id', p.ordinal, collation_name, words)), 'same',
		  format('%s: %s %s', label, collation_name, words))
FROM gs.prefix_case p, gs.direction d, (VALUES ('en-x-icu'), ('de-x-icu')) v (collation_name)
WHERE d.ordinal IN (1, 3) AND p.ordinal IN (2, 3, 7, 8, 10, 12, 14, 20, 22, 23) ORDER BY p.ordinal, collation_name, d.ordinal;

-- bit strings, which have none
SELECT is(gs.compare(format('SELECT id FROM (SELECT id, (repeat(''01'', 100) || (gs.hash(id) %% 1000)::bit(10)::text || left(''1010101'', id %% 7))::varbit AS v FROM generate_series(1, 3000) id) s ORDER BY v %s, id', words)), 'same', 'bit strings ' || words)
FROM gs.direction d WHERE d.ordinal IN (1, 3) ORDER BY d.ordinal;
SELECT * FROM finish();
DROP TABLE gs.prefixes, gs.prefix_case, gs.patterns, gs.prefix_2, gs.prefix_3, gs.prefix_4, gs.prefix_8, gs.prefix_10, gs.prefix_11, gs.prefix_12, gs.prefix_14, gs.prefix_20;
DROP FUNCTION gs.hash;
