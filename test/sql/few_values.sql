\set ECHO none
-- Columns of few strings in front of other keys: known values have ranks in the key, under collations that it does not
-- hold strings whole under, and those that come later without having been known are put in order by PostgreSQL's comparison.
SET client_min_messages = warning;
LOAD 'gpusort';
\pset format unaligned
\pset tuples_only on

DO $$
BEGIN
	CREATE COLLATION gs.few_libc (provider = libc, locale = 'en_US.UTF-8');
EXCEPTION WHEN OTHERS THEN
	NULL;
END $$;
SELECT count(*) = 0 AS lacking FROM pg_collation WHERE collname = 'few_libc' \gset
\if :lacking
SELECT * FROM plan(1);
SELECT skip('the C library lacks the language that is sorted by here');
SELECT * FROM finish();
\quit
\endif

-- The first third of the rows has fewer values than the others.  v: values that differ in case, accents and punctuation, with
-- blanks at the end, empty ones and NULLs; w: two hundred; x: long ones; y: as many as rows.
CREATE TABLE gs.few_strings AS
	SELECT i AS id,
		(ARRAY['a', 'A', U&'\00e1', 'a-', 'b', 'B', '', NULL, 'co-op', 'coop', 'Coop', ' ', 'b ', U&'\00df', 'ss', 'zebra', 'Zebra'])[1 + gs.dice(CASE WHEN i < 1700 THEN 9 ELSE 17 END, i)] AS v,
		CASE WHEN i % 50 = 0 AND i > 2500 THEN md5(i::text) ELSE 'w' || gs.dice(200, i, 3) END AS w,
		repeat('long ', 3) || (ARRAY['x', 'X', 'y', 'Y'])[1 + gs.dice(4, i, 5)] || repeat(' and longer', gs.dice(2, i, 6)) AS x,
		md5(i::text) AS y,
		gs.dice(5, i, 9) AS n
	FROM generate_series(1, 5000) i;
ALTER TABLE gs.few_strings ADD COLUMN c char(6), ADD COLUMN k name;
UPDATE gs.few_strings SET c = v, k = v;
CREATE TABLE gs.few_known AS SELECT * FROM gs.few_strings ORDER BY id;
VACUUM ANALYZE gs.few_known;
-- First rows that have all values
CREATE TABLE gs.few_mixed AS SELECT * FROM gs.few_strings ORDER BY gs.dice(1000, id), id;
-- Statistics that are out of date
CREATE TABLE gs.few_stale AS SELECT * FROM gs.few_strings WHERE id < 1700 ORDER BY id;
ALTER TABLE gs.few_stale SET (autovacuum_enabled = off);
ANALYZE gs.few_stale;
INSERT INTO gs.few_stale SELECT * FROM gs.few_strings WHERE id >= 1700 ORDER BY id;
ALTER TABLE gs.few_strings SET (autovacuum_enabled = off);

CREATE TABLE gs.few_order AS SELECT row_number() OVER () AS number, o FROM unnest(ARRAY[
	'v COLLATE gs.few_libc, id',
	'v COLLATE gs.few_libc DESC, id DESC',
	'v COLLATE gs.few_libc NULLS FIRST, n, id',
	'v COLLATE gs.few_libc DESC NULLS LAST, n, id',
	'c COLLATE gs.few_libc, id',
	'c COLLATE gs.few_libc DESC, x COLLATE gs.few_libc DESC, id',
	'k COLLATE gs.few_libc, id DESC',
	'n, v COLLATE gs.few_libc, x COLLATE gs.few_libc, w COLLATE gs.few_libc, id',
	'n, w COLLATE gs.few_libc, v COLLATE gs.few_libc, id',
	'v COLLATE gs.few_libc, y COLLATE gs.few_libc, id',
	'y COLLATE gs.few_libc, v COLLATE gs.few_libc, id',
	'x COLLATE "C", v COLLATE gs.few_libc, id',
	'v COLLATE "en-x-icu", id',
	'v COLLATE "en-x-icu" DESC, c COLLATE "de-x-icu", w COLLATE "en-x-icu", id',
	'k COLLATE "sv-x-icu", x COLLATE "C" DESC, id',
	'v COLLATE gs.few_libc, md5(w) COLLATE gs.few_libc, id',
	'lower(v) COLLATE gs.few_libc, upper(w) COLLATE gs.few_libc, v COLLATE "C", id',
	'v USING ~>~, c COLLATE gs.few_libc, id',
	'n, v COLLATE gs.few_libc, id, (''{}''::jsonb)',
	'x COLLATE gs.few_libc, v COLLATE gs.few_libc']) o;

CREATE TABLE gs.few_source (name text);
INSERT INTO gs.few_source VALUES ('few_strings'), ('few_known'), ('few_stale');

-- Rows that stand elsewhere than in PostgreSQL's order, by a number that window functions do not give: arrays of rows.
CREATE FUNCTION gs.few_difference(query text) RETURNS text LANGUAGE sql AS
$$ SELECT gs.difference(gs.native_rows(query), gs.forced_rows(query)) $$;

-- Two sides of a join: all of one's values are known, those of the other where it is small are not.
CREATE TABLE gs.few_facts AS SELECT v COLLATE gs.few_libc AS v, w COLLATE gs.few_libc AS w, id, n FROM gs.few_known;
CREATE TABLE gs.few_words AS
	SELECT v COLLATE gs.few_libc AS v, count(*) AS n FROM gs.few_known GROUP BY 1
	UNION ALL SELECT md5(i::text), i FROM generate_series(1, 600) i;
CREATE TABLE gs.few_many AS
	SELECT CASE WHEN i % 3 = 0 THEN f.v ELSE md5(i::text) END COLLATE gs.few_libc AS v, i AS id FROM generate_series(1, 4000) i JOIN gs.few_known f ON f.id = i % 200;
ANALYZE gs.few_facts, gs.few_words, gs.few_many;

SELECT * FROM plan(19);

SELECT is(string_agg(s.name || ' ' || o || ': ' || d, E'\n' ORDER BY s.name, number), NULL, 'by one process')
FROM gs.few_source s, gs.few_order, gs.few_difference(format('SELECT id, v, c, w FROM gs.%I ORDER BY %s%s', s.name, o, CASE WHEN o ~ 'id' THEN '' ELSE ', id' END)) d
WHERE d <> 'same';

SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 3;
SELECT is(string_agg(s.name || ' ' || o || ': ' || d, E'\n' ORDER BY s.name, number), NULL, 'by several, which see different first rows')
FROM gs.few_source s, gs.few_order, gs.few_difference(format('SELECT id, v, c, w FROM gs.%I ORDER BY %s%s', s.name, o, CASE WHEN o ~ 'id' THEN '' ELSE ', id' END)) d
WHERE d <> 'same';
SELECT ok(gs.forced_plan('SELECT * FROM gs.few_known ORDER BY v COLLATE gs.few_libc, id') ~ 'GpuSort(Ingest|Output)', 'rows are taken in by several');
SELECT is(gs.few_difference('SELECT v COLLATE gs.few_libc AS v, w COLLATE gs.few_libc AS w, count(*), sum(id) FROM gs.few_known GROUP BY 1, 2 ORDER BY 1, 2'), 'same', 'groups');
SELECT is(gs.few_difference('SELECT a.id, b.id FROM gs.few_known a JOIN gs.few_strings b ON a.w COLLATE gs.few_libc = b.w COLLATE gs.few_libc AND a.v COLLATE gs.few_libc = b.v COLLATE gs.few_libc WHERE a.n = 1 AND b.n < 2 ORDER BY a.v COLLATE gs.few_libc, a.w COLLATE gs.few_libc, a.id, b.id'), 'same', 'a join, whose sides have the same keys');
SET enable_hashjoin = off;
SET enable_nestloop = off;
SET enable_hashagg = off;
CREATE TABLE gs.few_join AS SELECT * FROM (VALUES
	(1, 'values that both sides know', 0, 'SELECT a.v, count(DISTINCT a.id), sum(b.n) FROM gs.few_facts a JOIN (SELECT v, count(DISTINCT id) AS n FROM gs.few_facts GROUP BY v) b ON a.v = b.v GROUP BY a.v'),
	(2, 'a small side has others', 0, 'SELECT a.v, count(DISTINCT a.id), sum(b.n) FROM gs.few_facts a JOIN (SELECT v, count(DISTINCT n) AS n FROM gs.few_words GROUP BY v) b ON a.v = b.v GROUP BY a.v'),
	(3, 'a large side has others', 1, 'SELECT a.v, count(DISTINCT a.id), sum(b.n) FROM gs.few_many a JOIN (SELECT v, count(DISTINCT n) AS n FROM gs.few_facts GROUP BY v) b ON a.v = b.v GROUP BY a.v')) j(number, name, tied, query);
SELECT is(gs.few_difference(query || ' ORDER BY 1'), 'same', 'a join by ranges: ' || name) FROM gs.few_join ORDER BY number;
SELECT is((SELECT least(sum(gs.tie_rows(n, 0)), 1) FROM gs.nodes(query, 'GpuSort') n)::int, tied, 'rows tie in it: ' || tied || ', ' || name) FROM gs.few_join ORDER BY number;
SELECT is(count(*) FILTER (WHERE gs.forced_plan(query) LIKE '%GpuSortOutput%Merge Join%')::int, 3, 'these are joins by ranges') FROM gs.few_join;
RESET enable_hashjoin;
RESET enable_nestloop;
RESET enable_hashagg;
RESET max_parallel_workers_per_gather;

SELECT is(gs.few_difference('SELECT id, v FROM gs.few_strings ORDER BY v COLLATE gs.few_libc, n, id LIMIT 700 OFFSET 50'), 'same', 'the first rows alone');
SET max_parallel_workers_per_gather = 0;
SELECT is(gs.tie_rows(gs.node('SELECT * FROM gs.few_mixed ORDER BY v COLLATE gs.few_libc, c COLLATE gs.few_libc, n, id'), 0), 0, 'no row ties where all values are known');
SELECT is(gs.tie_rows(gs.node('SELECT * FROM gs.few_mixed ORDER BY v COLLATE "en-x-icu", c COLLATE "en-x-icu", n, id'), 0), 0, 'nor under an ICU collation');
SELECT is(gs.node('SELECT * FROM gs.few_mixed ORDER BY v COLLATE gs.few_libc, n, id')->>'Verified Pairs', NULL, 'keys with ranks alone need not be verified');
SELECT cmp_ok((gs.node('SELECT * FROM gs.few_mixed ORDER BY v COLLATE gs.few_libc, y COLLATE gs.few_libc, id')->>'Verified Pairs')::int, '>', 4000, 'strings behind them are');
SET gpusort.verify_collation = off;
SELECT is(gs.few_difference('SELECT id, v FROM gs.few_stale ORDER BY v COLLATE gs.few_libc, w COLLATE gs.few_libc, id'), 'same', 'nothing rests on that');
RESET gpusort.verify_collation;
SET gpusort.verify_rows = on;
SELECT is(gs.few_difference('SELECT id, v FROM gs.few_strings ORDER BY n, v COLLATE gs.few_libc, c COLLATE gs.few_libc, id'), 'same', 'rows are verified');
RESET gpusort.verify_rows;
SELECT * FROM finish();
DROP TABLE gs.few_mixed, gs.few_strings, gs.few_known, gs.few_stale, gs.few_order, gs.few_source, gs.few_facts, gs.few_words, gs.few_many, gs.few_join;
