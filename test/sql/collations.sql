\set ECHO none
-- Strings under ICU collations, with every attribute that changes the order, and
-- under those that compare bytes: against PostgreSQL, in every direction, with
-- later columns that decide where strings are equal.
SET client_min_messages = warning;
LOAD 'gpusort';
\pset format unaligned
\pset tuples_only on

-- Deterministic: strings that ICU finds equal are ordered by their bytes.  Not so
-- the others, where a later column decides.
CREATE TABLE gs.collation (ordinal int, name text, locale text, nondeterministic_too bool);
INSERT INTO gs.collation VALUES
	(1, 'root', 'und', true),
	(2, 'primary', 'und-u-ks-level1', true),
	(3, 'secondary', 'und-u-ks-level2', true),
	(4, 'tertiary', 'und-u-ks-level3', true),
	(5, 'quaternary', 'und-u-ks-level4', false),
	(6, 'identical', 'und-u-ks-identic', false),
	(7, 'shifted', 'und-u-ka-shifted', true),
	(8, 'shifted_primary', 'und-u-ka-shifted-ks-level1', true),
	(9, 'shifted_quaternary', 'und-u-ka-shifted-ks-level4', false),
	(10, 'shifted_symbols', 'und-u-ka-shifted-kv-symbol', false),
	(11, 'numeric', 'und-u-kn-true', true),
	(12, 'numeric_primary', 'en-u-kn-true-ks-level1', true),
	(13, 'upper_first', 'und-u-kf-upper', false),
	(14, 'lower_first', 'und-u-kf-lower', false),
	(15, 'case_level', 'und-u-kc-true', false),
	(16, 'primary_case', 'und-u-ks-level1-kc-true', true),
	(17, 'secondary_case_upper', 'und-u-ks-level2-kc-true-kf-upper', true),
	(18, 'backwards', 'und-u-kb-true', false),
	(19, 'normalized', 'und-u-kk-true', false),
	(20, 'greek_first', 'und-u-kr-grek-latn', false),
	(21, 'cyrillic_first', 'und-u-kr-cyrl-grek', true),
	(22, 'german_phonebook', 'de-u-co-phonebk', true),
	(23, 'swedish', 'sv', false),
	(24, 'danish', 'da', false),
	(25, 'czech', 'cs', true),
	(26, 'hungarian', 'hu', false),
	(27, 'spanish_traditional', 'es-u-co-trad', false),
	(28, 'canadian_french', 'fr-CA', false),
	(29, 'thai', 'th', false),
	(30, 'japanese', 'ja', false),
	(31, 'chinese', 'zh', false),
	(32, 'korean', 'ko', false),
	(33, 'vietnamese', 'vi', false),
	(34, 'emoji', 'und-u-co-emoji', false);

CREATE FUNCTION gs.make_collations() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	c gs.collation;
BEGIN
	FOR c IN SELECT * FROM gs.collation LOOP
		EXECUTE format('CREATE COLLATION gs.%I (provider = icu, locale = %L)', c.name, c.locale);
		IF c.nondeterministic_too THEN
			EXECUTE format('CREATE COLLATION gs.%I (provider = icu, locale = %L, deterministic = false)', c.name || '_nd', c.locale);
		END IF;
	END LOOP;
	-- with rules of its own, where there are such; Latin and digits change places, and some letters are others
	IF current_setting('server_version_num')::int >= 160000 THEN
		EXECUTE $c$CREATE COLLATION gs.rules (provider = icu, locale = 'und', rules = '&z < a, A < bb <<< Bb &c = k &0 < ''-'' &e < xyz')$c$;
	ELSE
		CREATE COLLATION gs.rules (provider = icu, locale = 'hr');
	END IF;
END $$;
SELECT gs.make_collations();
INSERT INTO gs.collation VALUES (35, 'rules', NULL, false);

-- t is what is sorted; plain has no characters without weight and no accents on their own.
CREATE TABLE gs.string AS
	SELECT row_number() OVER () AS id, t, bool_and(t !~ U&'[\0300-\034f\00ad\0001\0009\007f\200b-\200d\feff\0e40-\0e48\0f71-\0f72\3099\fffe\+01d165]') OVER (PARTITION BY t) AS plain
	FROM (
		SELECT unnest(ARRAY['', ' ', NULL, NULL, 'a', 'A', 'a', 'role', U&'r\00f4le', U&'ro\0302le', 'roles', U&'R\00f4le', 'cote', U&'cot\00e9', U&'c\00f4te', U&'c\00f4t\00e9']) AS t
		UNION ALL SELECT p FROM gs.piece
		UNION ALL SELECT gs.word(1 + i % 4, i, 48) FROM generate_series(1, 150) i			-- ASCII
		UNION ALL SELECT gs.word(i % 5, i, 110) FROM generate_series(1, 250) i
		UNION ALL SELECT gs.word(i % 40, i, 110) FROM generate_series(1, 40) i
		UNION ALL SELECT gs.word(10 + i % 40, i, 48) FROM generate_series(1, 40) i
		UNION ALL SELECT CASE WHEN i % 2 = 0 THEN left(U&'\0412 \043d\0430\0447\0430\043b\0435 \00df', i % 9) ELSE '' END || gs.letters(15 + i % 30, i) FROM generate_series(1, 200) i
		-- what changes the weight of the character before it, at every place behind a head
		UNION ALL SELECT left(CASE WHEN i % 2 = 0 THEN U&'Die Stra\00dfe nach \00dcberlingen f\00fchrt \00fcber \00c4cker' ELSE 'The quick brown fox jumps over the lazy dog ' END, 5 + i % 40) || gs.word(1 + i % 3, i, 110)
			FROM generate_series(1, 400) i
		-- words that are nearly the same
		UNION ALL SELECT overlay(w PLACING gs.word(gs.dice(3, i, 7), i, 110) FROM 1 + gs.dice(length(w), i) FOR gs.dice(2, i, 5))
			FROM generate_series(1, 150) i, gs.word(12, i % 5 + 1000, CASE WHEN i % 2 = 0 THEN 48 ELSE 110 END) w
		-- long heads that all of them share
		UNION ALL SELECT repeat('The same beginning, ', i % 3 * 5) || gs.word(i % 4, i, 110) FROM generate_series(1, 60) i
		UNION ALL SELECT repeat(p, i) FROM unnest(ARRAY['a', 'aB', 'B', '-']) p, unnest(ARRAY[1, 5, 6, 7, 8, 9, 20, 21, 22, 23, 33, 34, 66, 97, 98, 130, 200, 20000]) i
	) s;
CREATE TABLE gs.plain AS SELECT id, t FROM gs.string WHERE coalesce(plain, true);

SELECT * FROM no_plan();

-- Of collations of which only the first level is encoded PostgreSQL's comparator and sort keys disagree about odd accents: its own sort,
-- which begins with the sort key's first bytes, has then no order that is the only right one.  They are tested with plain words.
SELECT is(gs.compare(format('SELECT id, t FROM gs.%s ORDER BY t COLLATE gs.%I %s, id',
							CASE WHEN name ~ '^(identical|shifted|case|primary_case|secondary_case|backwards|canadian|thai|vietnamese|normalized)' THEN 'plain' ELSE 'string' END, c, d.words)),
		  'same', format('%s %s, id', c, d.words))
FROM gs.collation, unnest(CASE WHEN nondeterministic_too THEN ARRAY[name, name || '_nd'] ELSE ARRAY[name] END) c, gs.direction d
WHERE d.ordinal IN (1, 3)
ORDER BY gs.collation.ordinal, c, d.ordinal;
SELECT is(gs.compare(format('SELECT id, t FROM gs.string ORDER BY t COLLATE gs.%I %s, id', name, words)), 'same', format('%s %s, id', name, words))
FROM unnest(ARRAY['root', 'secondary_nd']) name, gs.direction WHERE ordinal IN (2, 4) ORDER BY 1;

-- Strings that are equal: a later column decides, and without one the comparator need not be asked.
CREATE TABLE gs.equal AS SELECT i AS id, (ARRAY['Sun', 'SUN', 'sun', 'Moon', 'moon', U&'caf\00e9', U&'cafe\0301', 'cafe', U&'s\00adun', U&'su\200bn'])[1 + i % 10] AS t, i * 7919 % 101 AS k
	FROM generate_series(1, 1000) i;
SELECT is(gs.compare(format('SELECT id, t, k FROM gs.equal ORDER BY t COLLATE gs.%I %s, k, id', c, w)), 'same', format('%s%s, and columns after it', c, w))
FROM unnest(ARRAY['root', 'secondary', 'secondary_nd', 'primary_nd', 'shifted_nd', 'numeric_nd']) c, unnest(ARRAY['', ' DESC']) w;
SELECT is(gs.compare('SELECT id, t, k FROM gs.equal ORDER BY k, t COLLATE gs.primary_nd DESC, id DESC'), 'same', 'behind a column');
SELECT is(gs.compare('SELECT id, t FROM gs.equal ORDER BY t COLLATE gs.primary_nd, t COLLATE gs.secondary_nd, t COLLATE "C", id'), 'same', 'the same strings under three collations');
SELECT is(gs.compare('SELECT id, t FROM gs.equal ORDER BY t COLLATE gs.root, to_jsonb(k), id'), 'same', 'before a suffix');
SELECT is((gs.node('SELECT id, t, k FROM gs.equal ORDER BY t COLLATE gs.root, k, id')->>'Tie Rows')::int, 0, 'short strings are decided by their keys, deterministic');
SELECT is((gs.node('SELECT id, t, k FROM gs.equal ORDER BY t COLLATE gs.secondary_nd, k, id')->>'Tie Rows')::int, 0, 'and not');
SELECT cmp_ok((gs.node('SELECT id, t, k FROM gs.equal ORDER BY t COLLATE gs.shifted, k, id')->>'Tie Rows')::int, '>', 100, 'but not where the first level is all');

-- Collations that are not deterministic in groups, DISTINCT, joins, set operations and windows: what is equal is together, whatever its bytes
CREATE TABLE gs.loose (ordinal int, label text, query text);
INSERT INTO gs.loose VALUES
	(1, 'groups', 'SELECT count(*), min(id), sum(id) FROM gs.equal GROUP BY t COLLATE gs.%1$I ORDER BY min(id)'),
	(2, 'groups of two columns', 'SELECT count(*), min(id) FROM gs.equal GROUP BY t COLLATE gs.%1$I, k %% 3 ORDER BY min(id)'),
	(3, 'DISTINCT', 'SELECT count(*) FROM (SELECT DISTINCT t COLLATE gs.%1$I FROM gs.equal OFFSET 0) s'),
	(4, 'DISTINCT ON', 'SELECT DISTINCT ON (t COLLATE gs.%1$I) id, k FROM gs.equal ORDER BY t COLLATE gs.%1$I, k DESC, id'),
	(5, 'count(DISTINCT)', 'SELECT k %% 4, count(DISTINCT t COLLATE gs.%1$I) FROM gs.equal GROUP BY 1 ORDER BY 1'),
	(6, 'a join', 'SELECT count(*), sum(a.id * b.k) FROM gs.equal a JOIN gs.equal b ON a.t COLLATE gs.%1$I = b.t WHERE b.id <= 500'),
	(7, 'a full join', 'SELECT count(a.id), count(b.id), sum(a.id) FROM (SELECT * FROM gs.equal WHERE t COLLATE gs.%1$I <> ''sun'') a FULL JOIN (SELECT * FROM gs.equal WHERE t COLLATE gs.%1$I <> ''moon'') b ON a.t COLLATE gs.%1$I = b.t'),
	(8, 'an anti join', 'SELECT count(*), sum(id) FROM gs.equal a WHERE NOT EXISTS (SELECT FROM gs.equal b WHERE b.t COLLATE gs.%1$I = a.t AND b.id IN (1, 3))'),
	(9, 'EXCEPT', 'SELECT count(*) FROM (SELECT t COLLATE gs.%1$I FROM gs.equal EXCEPT SELECT t FROM gs.equal WHERE id %% 10 < 3) s'),
	(10, 'a window', 'SELECT id, rank() OVER (ORDER BY t COLLATE gs.%1$I), count(*) OVER (PARTITION BY t COLLATE gs.%1$I), row_number() OVER (PARTITION BY t COLLATE gs.%1$I ORDER BY k, id) FROM gs.equal ORDER BY id'),
	(11, 'grouping sets', 'SELECT grouping(c), k %% 3 AS m, count(*), min(id) FROM (SELECT id, k, t COLLATE gs.%1$I AS c FROM gs.equal) s GROUP BY ROLLUP (c, k %% 3) ORDER BY 1, 2, 4'),
	(12, 'an aggregate', 'SELECT string_agg(id::text, '','' ORDER BY t COLLATE gs.%1$I DESC, id) FROM gs.equal');
SET enable_hashagg = off;
SET enable_hashjoin = off;
SET enable_nestloop = off;
SELECT is(gs.compare_results(format(query, c)), 'same', label || ', ' || c)
FROM gs.loose, unnest(ARRAY['primary_nd', 'secondary_nd', 'numeric_nd', 'shifted_nd', 'cyrillic_first_nd']) c ORDER BY ordinal, c;
SELECT ok(gs.forced_uses(format(query, 'secondary_nd')), label || ': sorted by gpusort') FROM gs.loose WHERE ordinal IN (1, 3, 6, 10) ORDER BY ordinal;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SELECT is(gs.compare_results(format(query, c)), 'same', label || ' in parallel, ' || c)
FROM gs.loose, unnest(ARRAY['primary_nd', 'shifted_nd']) c ORDER BY ordinal, c;
RESET max_parallel_workers_per_gather;
RESET enable_hashagg;
RESET enable_hashjoin;
RESET enable_nestloop;

-- Where the collation comes from
CREATE DOMAIN gs.folded AS text COLLATE gs.secondary_nd;
CREATE TABLE gs.declared (id int, t text COLLATE gs.czech, v varchar(30) COLLATE gs.german_phonebook, c char(30) COLLATE gs.root, n name COLLATE gs.root, f gs.folded, x text);
INSERT INTO gs.declared SELECT id, left(t, 30), left(t, 30), left(t, 30), left(t, 15), t, t FROM gs.string;
INSERT INTO gs.declared SELECT 10000 + i, 'w' || i % 7, 'W' || i % 7, repeat(' ', i % 3) || 'c' || i % 7 || repeat(' ', i % 4), 'n' || i % 7, 'F' || i % 7, 'x' FROM generate_series(1, 50) i;
SELECT is(gs.compare(format('SELECT * FROM gs.declared ORDER BY %s, id', o)), 'same', 'by ' || o)
FROM unnest(ARRAY['t', 't DESC', 'v', 'c', 'c DESC', 'c COLLATE gs.secondary_nd', 'c COLLATE gs.shifted', 'n', 'n DESC', 'n COLLATE gs.numeric', 'f', 'f DESC', 'f, t', 'x COLLATE gs.root, f', 'v::text', 'x::name COLLATE gs.root', 'left(t, 3)', 'upper(x) COLLATE gs.danish',
	't || v COLLATE gs.numeric_nd', 'f::gs.folded::text', 'x COLLATE "C", t', 'x::char(5) COLLATE gs.root', 'lower(f)']) o;
SELECT is(gs.compare('SELECT c FROM gs.declared ORDER BY c'), 'same', 'char(n): blanks at the end do not count');
SELECT is(gs.compare('SELECT id, max(t) OVER () FROM gs.declared ORDER BY t, f, id'), 'same', 'a window beside it');

-- Toasted, inline and out of line
CREATE TABLE gs.toasted AS SELECT id, repeat(t, 1 + id % 300) AS t FROM (SELECT id::int, t FROM gs.string WHERE length(t) < 200) s;
ALTER TABLE gs.toasted ALTER t SET STORAGE EXTERNAL;
INSERT INTO gs.toasted SELECT id + 10000, t FROM gs.toasted WHERE id % 3 = 0;
SELECT is(gs.compare(format('SELECT id, left(t, 9) FROM gs.toasted ORDER BY t COLLATE gs.%I, id', c)), 'same', 'toasted, ' || c) FROM unnest(ARRAY['root', 'secondary_nd', 'numeric']) c;

-- Many: most of them ASCII, with runs of equal ones, some that end alike, and some that are not
CREATE TABLE gs.many AS SELECT i AS id, CASE i % 10 WHEN 0 THEN initcap(left(md5((i % 500)::text), 6)) WHEN 1 THEN 'Stra' || chr(223) || 'e ' || i % 1000 WHEN 2 THEN 'path/to/some-thing/file_' || i % 2000 || '.TXT'
	WHEN 3 THEN U&'\0416\0443\0440' || i % 300 WHEN 4 THEN left(md5(i::text), 8) || chr(768 + i % 5) ELSE md5((i % 9000)::text) || ' Ch' || i % 3 END AS t FROM generate_series(1, 30000) i;
SELECT is(gs.compare_bulk(format('SELECT id, t FROM gs.many ORDER BY t COLLATE gs.%I %s, id', c, w)), 'same', format('many, %s %s', c, w))
FROM (VALUES ('root', ''), ('root', 'DESC'), ('secondary_nd', ''), ('primary_nd', 'DESC'), ('numeric', ''), ('czech', ''), ('danish', 'DESC'), ('shifted', ''), ('upper_first', ''), ('rules', ''), ('canadian_french', '')) v (c, w);
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SELECT ok(gs.forced_plan('SELECT id, t FROM gs.many ORDER BY t COLLATE gs.root, id') ~ 'GpuSort(Ingest|Output)', 'a parallel plan');
SELECT is(gs.compare_bulk(format('SELECT id, t FROM gs.many ORDER BY t COLLATE gs.%I, id', c)), 'same', 'in parallel, ' || c) FROM unnest(ARRAY['root', 'secondary_nd', 'shifted', 'numeric_nd']) c;

-- As long as what a sample looks at, so that the bytes of the second level end behind that
CREATE TABLE gs.sampled AS SELECT id, repeat(chr(97 + id % 26), 1200 + id % 60) AS t FROM generate_series(1, 3000) id;
SELECT is(gs.compare(format('SELECT id, left(t, 9) FROM gs.sampled ORDER BY t COLLATE gs.%I, id', c)), 'same', 'as long as a sample, ' || c) FROM unnest(ARRAY['root', 'secondary_nd', 'upper_first']) c;

SELECT * FROM finish();
DROP TABLE gs.sampled, gs.many, gs.toasted, gs.declared, gs.loose, gs.equal, gs.plain, gs.string;
