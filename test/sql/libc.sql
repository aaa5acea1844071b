\set ECHO none
-- Strings under collations of the C library: the key has the first level of the library's own, and
-- rows that are equal there, most of all those that differ in case, accents and punctuation, are put
-- in order by its comparison.
SET client_min_messages = warning;
LOAD 'gpusort';
\pset format unaligned
\pset tuples_only on

-- A machine need not have any of them.
CREATE TABLE gs.libc (ordinal int, name text);
INSERT INTO gs.libc SELECT ordinality, name FROM unnest(ARRAY['en_US', 'de_DE', 'fr_FR', 'fr_CA', 'cs_CZ', 'sv_SE', 'ja_JP', 'tr_TR', 'hu_HU']) WITH ORDINALITY n (name);
DO $$
DECLARE
	c gs.libc;
BEGIN
	FOR c IN SELECT * FROM gs.libc LOOP
		BEGIN
			EXECUTE format('CREATE COLLATION gs.%I (provider = libc, locale = %L)', c.name, c.name || '.UTF-8');
		EXCEPTION WHEN OTHERS THEN
			DELETE FROM gs.libc WHERE name = c.name;
		END;
	END LOOP;
END $$;
SELECT count(*) < 9 AS lacking FROM gs.libc \gset
\if :lacking
SELECT * FROM plan(1);
SELECT skip('the C library lacks languages that are sorted by here');
SELECT * FROM finish();
\quit
\endif

-- What the levels tell apart: digits before letters, whatever stands between; case; accents; signs
-- alone; characters that the locale does not know; contractions.
CREATE TABLE gs.libc_string AS
	SELECT row_number() OVER () AS id, t
	FROM (
		SELECT unnest(ARRAY['', ' ', NULL, NULL, 'a', 'A', 'a', '11a', '1 1a', '1-1a', '11A', '1 1A', '11 a', '11b', '1 1b', 'co-op', 'coop', 'CO-OP', 'co op', 'Coop', 'role', U&'r\00f4le', U&'ro\0302le', 'roles',
			'cote', U&'cot\00e9', U&'c\00f4te', U&'c\00f4t\00e9', 'ch', 'cH', 'Ch', 'CH', 'cz', 'hz', 'c h', 'c-h', 'dzs', 'ddzs', 'aa', U&'\00e5', U&'a\030a', U&'\0130', U&'\0131', 'i', 'I', U&'\00df', 'ss', 'sS',
			'-', '--', ' - ', '.', '...', '(', ')', '()', '!?', '_', '~', U&'\00ad', U&'a\00adb', 'ab', U&'\200b', U&'\+01f600', U&'\+01f600\+01f601', U&'\+01f1e9\+01f1ea', U&'\e000', U&'\0378', U&'\+10ffff',
			U&'\3042', U&'\3042\3099', U&'\304b\3099', U&'\304c', U&'\30a2\30fc', U&'\30fc', U&'\4e00', U&'\4e8c', U&'\4e00\4e8c', E'\x01', E'a\x01b', E'\t']) AS t
		UNION ALL SELECT p FROM gs.piece
		UNION ALL SELECT gs.word(1 + i % 4, i, 48) FROM generate_series(1, 200) i			-- ASCII
		UNION ALL SELECT gs.word(i % 5, i, 110) FROM generate_series(1, 300) i
		UNION ALL SELECT gs.word(i % 40, i, 110) FROM generate_series(1, 60) i
		UNION ALL SELECT gs.letters(5 + i % 30, i) FROM generate_series(1, 100) i
		-- nothing but signs
		UNION ALL SELECT translate(left(md5(i::text), i % 9), '0123456789abcdef', ' -.,_!"()/:;~#+*') FROM generate_series(1, 100) i
		-- behind a head, at every place
		UNION ALL SELECT left(CASE WHEN i % 2 = 0 THEN U&'Die Stra\00dfe nach \00dcberlingen f\00fchrt \00fcber \00c4cker' ELSE 'The quick brown fox jumps over the lazy dog ' END, 5 + i % 40) || gs.word(1 + i % 3, i, 110)
			FROM generate_series(1, 200) i
		-- words that are nearly the same
		UNION ALL SELECT overlay(w PLACING gs.word(gs.dice(3, i, 7), i, 110) FROM 1 + gs.dice(length(w), i) FOR gs.dice(2, i, 5))
			FROM generate_series(1, 150) i, gs.word(12, i % 5 + 1000, CASE WHEN i % 2 = 0 THEN 48 ELSE 110 END) w
		UNION ALL SELECT repeat('The same beginning, ', i % 3 * 5) || gs.word(i % 4, i, 110) FROM generate_series(1, 60) i
		UNION ALL SELECT repeat(p, i) FROM unnest(ARRAY['a', 'aB', U&'\00e9']) p, unnest(ARRAY[1, 5, 8, 9, 21, 33, 98, 130, 4095, 4096]) i
		-- the library takes a time that is quadratic for many of these
		UNION ALL SELECT repeat('-', i) FROM unnest(ARRAY[1, 8, 9, 130, 300]) i
		UNION ALL SELECT repeat('a-', 20000)
	) s;

SELECT * FROM no_plan();

SELECT is(gs.compare(format('SELECT id, t FROM gs.libc_string ORDER BY t COLLATE gs.%I %s, id', name, d.words)), 'same', format('%s %s, id', name, d.words))
FROM gs.libc, gs.direction d WHERE d.ordinal IN (1, 3) OR name IN ('en_US', 'cs_CZ') ORDER BY gs.libc.ordinal, d.ordinal;
SELECT is(gs.compare(format('SELECT t FROM gs.libc_string ORDER BY t COLLATE gs.%I', name)), 'same', name || ' alone') FROM gs.libc ORDER BY ordinal;
SELECT is(gs.compare(format('SELECT id, t FROM gs.libc_string ORDER BY length(t) DESC, t COLLATE gs.%I DESC, id', name)), 'same', name || ' behind a column') FROM gs.libc ORDER BY ordinal;
SELECT is(gs.compare('SELECT id, t FROM gs.libc_string ORDER BY left(t, 2) COLLATE gs."cs_CZ", t COLLATE gs."sv_SE" DESC, t COLLATE "en-x-icu", t COLLATE "C", id'), 'same', 'several collations');

-- Equal on the first level: the library's comparison decides, then a later column.
CREATE TABLE gs.libc_equal AS SELECT i AS id, (ARRAY['Sun', 'SUN', 'sun', 'su-n', 's un', 'Moon', 'moon', U&'m\00f6\00f6n', U&'caf\00e9', U&'cafe\0301', 'cafe', U&'s\00adun', '11a', '1 1a', '', '-', '--', ' '])[1 + i * 7 % 18] AS t,
	i * 7919 % 101 AS k FROM generate_series(1, 2000) i;
SELECT is(gs.compare(format('SELECT id, t, k FROM gs.libc_equal ORDER BY t COLLATE gs.%I%s, k%s, id', name, w, v)), 'same', format('%s%s, k%s: many rows equal on the first level', name, w, v))
FROM gs.libc, unnest(ARRAY['', ' DESC']) w, unnest(ARRAY['', ' DESC']) v WHERE name IN ('en_US', 'fr_CA', 'ja_JP', 'hu_HU') ORDER BY ordinal, w, v;
SELECT is(gs.tie_rows(gs.node('SELECT id, t, k FROM gs.libc_equal ORDER BY t COLLATE gs."en_US", k, id'), 0), 0, 'few values are not compared: they have ranks');
SELECT is(gs.compare(format('SELECT id, t, k FROM gs.libc_equal ORDER BY t || repeat(''-'', id %% 100) COLLATE gs.%I%s, k%s, id', name, w, v)), 'same', format('%s%s, k%s: many values equal on the first level', name, w, v))
FROM gs.libc, unnest(ARRAY['', ' DESC']) w, unnest(ARRAY['', ' DESC']) v WHERE name IN ('en_US', 'fr_CA', 'ja_JP', 'hu_HU') ORDER BY ordinal, w, v;
SELECT cmp_ok((gs.node('SELECT id, t, k FROM gs.libc_equal ORDER BY t || repeat(''-'', id % 100) COLLATE gs."en_US", k, id')->>'Tie Rows')::int, '>', 1000, 'they are compared');
SELECT is(gs.compare('SELECT id, t, k FROM gs.libc_equal ORDER BY k, t COLLATE gs."en_US" NULLS FIRST, id DESC'), 'same', 'behind a column, many rows equal');
SELECT is(gs.compare('SELECT id, t FROM gs.libc_equal ORDER BY t COLLATE gs."en_US", to_jsonb(k), id'), 'same', 'before a suffix');
SELECT is(gs.compare(format('SELECT id, t FROM (SELECT id, t FROM gs.libc_string WHERE t !~ ''[[:alnum:]]'') s ORDER BY t COLLATE gs.%I, id', name)), 'same', name || ': signs alone') FROM gs.libc ORDER BY ordinal;

-- Where the collation comes from, and all types of strings
CREATE DOMAIN gs.libc_word AS text COLLATE gs."tr_TR";
CREATE TABLE gs.libc_declared (id int, t text COLLATE gs."cs_CZ", v varchar(30) COLLATE gs."de_DE", c char(30) COLLATE gs."en_US", n name COLLATE gs."fr_FR", f gs.libc_word, x text);
INSERT INTO gs.libc_declared SELECT id, left(t, 30), left(t, 30), left(t, 30), left(t, 15), t, t FROM gs.libc_string WHERE length(t) < 2000;
INSERT INTO gs.libc_declared SELECT 10000 + i, 'w' || i % 7, 'W' || i % 7, repeat(' ', i % 3) || 'c' || i % 7 || repeat(' ', i % 4), 'n' || i % 7, 'F' || i % 7, 'x' FROM generate_series(1, 50) i;
SELECT is(gs.compare(format('SELECT * FROM gs.libc_declared ORDER BY %s, id', o)), 'same', 'by ' || o)
FROM unnest(ARRAY['t', 't DESC', 'v', 'v DESC NULLS LAST', 'c', 'c DESC', 'c COLLATE gs."ja_JP"', 'n', 'n DESC', 'n COLLATE gs."sv_SE"', 'f', 'f DESC', 'f, t', 'x COLLATE gs."en_US", f', 'v::text', 'x::name COLLATE gs."hu_HU"', 'left(t, 3)',
	'upper(x) COLLATE gs."tr_TR"', 't || v COLLATE gs."en_US"', 'x COLLATE "C", t', 'x::char(5) COLLATE gs."fr_CA"', 'lower(f)']) o;
SELECT is(gs.compare('SELECT c FROM gs.libc_declared ORDER BY c'), 'same', 'char(n): blanks at the end do not count');

-- Toasted, inline, out of line and compressed; longer than any buffer
CREATE TABLE gs.libc_toasted AS SELECT id, repeat(t, 1 + id % 200) AS t FROM (SELECT id::int, t FROM gs.libc_string WHERE length(t) < 200 AND t ~ '[[:alnum:]]') s WHERE id % 3 = 0;
ALTER TABLE gs.libc_toasted ALTER t SET STORAGE EXTERNAL;
INSERT INTO gs.libc_toasted SELECT id + 10000, t FROM gs.libc_toasted WHERE id % 2 = 0;
ALTER TABLE gs.libc_toasted ALTER t SET STORAGE EXTENDED;
INSERT INTO gs.libc_toasted SELECT i + 20000, repeat('compressible ', 400 + i % 3 * 300) || (ARRAY['end', 'End', U&'\00e9nd', '', 'en-d'])[1 + i % 5] FROM generate_series(1, 60) i;
SELECT is(gs.compare(format('SELECT id, left(t, 9), length(t) FROM gs.libc_toasted ORDER BY t COLLATE gs.%I, id', name)), 'same', name || ', toasted') FROM gs.libc WHERE name IN ('en_US', 'cs_CZ', 'ja_JP') ORDER BY ordinal;

-- Many: beginnings that most have in common, some that are not ASCII, and runs of equal ones
CREATE TABLE gs.libc_many AS SELECT i AS id, i % 100 AS few, CASE i % 10 WHEN 0 THEN initcap(left(md5((i % 500)::text), 6)) WHEN 1 THEN 'Stra' || chr(223) || 'e ' || i % 1000 WHEN 2 THEN 'path/to/some-thing/file_' || i % 2000 || '.TXT'
	WHEN 3 THEN U&'\0416\0443\0440' || i % 300 WHEN 4 THEN left(md5(i::text), 8) || chr(768 + i % 5) WHEN 5 THEN U&'caf\00e9 au lait, ' || i % 50 ELSE md5((i % 9000)::text) || ' Ch' || i % 3 END AS t FROM generate_series(1, 12000) i;
CREATE TABLE gs.libc_heads AS SELECT i AS id, 'https://www.example.com/shop/catalogue/a/' || md5((i % 2500)::text) || CASE WHEN i % 20 = 0 THEN '-' ELSE '' END AS t FROM generate_series(1, 5000) i;
ANALYZE gs.libc_many, gs.libc_heads;
SELECT is(gs.compare_bulk(format('SELECT id, t FROM gs.libc_many ORDER BY t COLLATE gs.%I%s, id', name, CASE WHEN ordinal % 2 = 0 THEN ' DESC' ELSE '' END)), 'same', name || ', many') FROM gs.libc ORDER BY ordinal;
SELECT is(gs.compare_bulk(format('SELECT id, t FROM gs.libc_heads ORDER BY t COLLATE gs.%I, id', name)), 'same', name || ', a common head') FROM gs.libc WHERE name IN ('en_US', 'sv_SE') ORDER BY ordinal;

SELECT cmp_ok((gs.node('SELECT id, t FROM gs.libc_many ORDER BY t COLLATE gs."en_US", id')->>'Verified Pairs')::int, '>', 5000, 'neighbours are verified');
SET gpusort.verify_collation = off;
SELECT is(gs.node('SELECT id, t FROM gs.libc_many ORDER BY t COLLATE gs."en_US", id')->>'Verified Pairs', NULL, 'but where that is off');
SELECT is(gs.compare_bulk(format('SELECT id, t FROM gs.libc_many ORDER BY t COLLATE gs.%I, id', name)), 'same', name || ', not verified') FROM gs.libc ORDER BY ordinal;
RESET gpusort.verify_collation;

-- Below other nodes
SET enable_hashagg = off;
SET enable_hashjoin = off;
SET enable_nestloop = off;
SELECT is(gs.compare('SELECT id, row_number() OVER (PARTITION BY few ORDER BY t COLLATE gs."en_US", id) FROM gs.libc_many WHERE id <= 3000'), 'same', 'a window');
SELECT is(gs.compare('SELECT id, rank() OVER (ORDER BY t COLLATE gs."de_DE"), count(*) OVER (ORDER BY t COLLATE gs."de_DE") FROM gs.libc_equal ORDER BY t COLLATE gs."de_DE", id'), 'same', 'a window of peers');
SELECT is(gs.compare('SELECT t COLLATE gs."cs_CZ", count(*), sum(id) FROM gs.libc_string GROUP BY 1'), 'same', 'GROUP BY');
SELECT is(gs.compare('SELECT t COLLATE gs."fr_FR", k, count(*) FROM gs.libc_equal GROUP BY ROLLUP (1, 2) ORDER BY 1, 2'), 'same', 'ROLLUP');
SELECT is(gs.compare('SELECT DISTINCT t COLLATE gs."sv_SE" FROM gs.libc_string'), 'same', 'DISTINCT');
SELECT is(gs.compare('SELECT DISTINCT ON (t COLLATE gs."en_US") id, t FROM gs.libc_equal ORDER BY t COLLATE gs."en_US", k, id'), 'same', 'DISTINCT ON');
SELECT is(gs.compare('SELECT t COLLATE gs."tr_TR" FROM gs.libc_string UNION SELECT t FROM gs.libc_equal'), 'same', 'UNION');
SELECT is(gs.compare_results('SELECT t, string_agg(k::text, '','' ORDER BY t COLLATE gs."en_US", k, id) FROM gs.libc_equal GROUP BY t'), 'same', 'an ordered aggregate');
SELECT is(gs.compare('SELECT a.id, b.id FROM gs.libc_string a JOIN gs.libc_equal b ON a.t = b.t COLLATE gs."en_US" ORDER BY a.t COLLATE gs."en_US", a.id, b.id'), 'same', 'a merge join');
SELECT is(gs.compare('SELECT a.id, b.id FROM gs.libc_string a LEFT JOIN gs.libc_many b ON a.t COLLATE gs."hu_HU" = b.t ORDER BY a.t COLLATE gs."hu_HU", a.id, b.id'), 'same', 'an outer one');
RESET enable_hashagg;
RESET enable_hashjoin;
RESET enable_nestloop;
SELECT is(gs.compare_results(format('SELECT id, t FROM gs.libc_many ORDER BY t COLLATE gs."en_US", id %s', l)), 'same', l)
FROM unnest(ARRAY['LIMIT 1', 'LIMIT 10', 'LIMIT 5000', 'OFFSET 11000', 'OFFSET 1000 LIMIT 100']) l;
SELECT is(gs.compare_results('SELECT t FROM gs.libc_equal ORDER BY t COLLATE gs."en_US" FETCH FIRST 100 ROWS WITH TIES'), 'same', 'WITH TIES');

-- Parallel workers make keys as well.
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SELECT ok(gs.forced_plan('SELECT id, t FROM gs.libc_many ORDER BY t COLLATE gs."en_US", id') ~ 'GpuSort(Ingest|Output)', 'a parallel plan');
SELECT is(gs.compare_bulk(format('SELECT id, t FROM gs.libc_many ORDER BY t COLLATE gs.%I%s, id', name, CASE WHEN ordinal % 2 = 0 THEN '' ELSE ' DESC' END)), 'same', name || ', in parallel') FROM gs.libc ORDER BY ordinal;
SELECT is(gs.compare_bulk('SELECT id, t FROM gs.libc_heads ORDER BY t COLLATE gs."cs_CZ", id'), 'same', 'a common head, in parallel');
SELECT is(gs.compare_bulk('SELECT id, t, k FROM gs.libc_equal ORDER BY t COLLATE gs."en_US", k DESC, id'), 'same', 'ties, in parallel');

-- And read what is sorted.
SET gpusort.setup_cost = 0;
SET gpusort.row_cost = 0;
SET enable_hashagg = off;
SET enable_hashjoin = off;
SET enable_nestloop = off;
CREATE FUNCTION gs.compare_libc(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	whole text := format('SELECT count(*) || '' '' || sum(hashtextextended(q::text, 0)::numeric) FROM (SELECT * FROM (%s) s OFFSET 0) q', query);
	results text[] := '{}';
	enable bool;
	result text;
BEGIN
	IF gs.forced_plan(query) NOT LIKE '%GpuSortExchange%' THEN
		RETURN 'no GpuSortExchange in the plan: ' || gs.forced_plan(query);
	END IF;
	PERFORM set_config('gpusort.force', 'on', true), set_config('gpusort.min_rows', '0', true);
	FOREACH enable IN ARRAY ARRAY[false, true] LOOP
		PERFORM set_config('gpusort.enable', enable::text, true);
		EXECUTE whole INTO result;
		results := results || result;
	END LOOP;
	RETURN CASE WHEN results[1] = results[2] THEN 'same' ELSE 'native ' || results[1] || ', gpusort ' || results[2] END;
END $$;
SELECT is(gs.compare_libc(q), 'same', 'in all processes: ' || q)
FROM unnest(ARRAY['SELECT id, row_number() OVER (PARTITION BY t COLLATE gs."en_US" ORDER BY id) FROM gs.libc_many',
	'SELECT t COLLATE gs."cs_CZ" AS t, count(*), sum(id) FROM gs.libc_many GROUP BY 1',
	'SELECT DISTINCT t COLLATE gs."sv_SE" AS t FROM gs.libc_many',
	'SELECT id, rank() OVER (PARTITION BY few ORDER BY t COLLATE gs."de_DE") FROM gs.libc_many']) q;

SELECT * FROM finish();
DROP TABLE gs.libc_many, gs.libc_heads, gs.libc_toasted, gs.libc_declared, gs.libc_equal, gs.libc_string;
