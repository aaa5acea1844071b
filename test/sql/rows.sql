\set ECHO none
-- What a row may be: narrow, wide, toasted, without columns, with columns
-- that are computed before or after the sort, of a table that was altered.
SET client_min_messages = warning;
LOAD 'gpusort';
\pset format unaligned
\pset tuples_only on

CREATE TABLE gs.r AS SELECT i AS id, (i * 7919) % 1009 AS k, 'row ' || i AS t, CASE WHEN i % 3 > 0 THEN i END AS n FROM generate_series(1, 2000) i;
CREATE TABLE gs.none (k int, t text COLLATE "C");
CREATE TABLE gs.one AS SELECT 1 AS k, 'x'::text COLLATE "C" AS t;
CREATE TABLE gs.altered (gone1 int, k int, gone2 text, t text);
INSERT INTO gs.altered SELECT i, (i * 31) % 101, 'gone', 't' || i FROM generate_series(1, 500) i;
ALTER TABLE gs.altered DROP COLUMN gone1, DROP COLUMN gone2;
ALTER TABLE gs.altered ADD COLUMN fast int DEFAULT 42, ADD COLUMN late text DEFAULT 'default' COLLATE "C", ADD COLUMN empty date;
INSERT INTO gs.altered SELECT (i * 37) % 101, 'u' || i, i, 'set', '2000-01-01' FROM generate_series(1, 500) i;
CREATE SEQUENCE gs.seq;

SELECT * FROM no_plan();

-- few rows
SELECT is(gs.compare('SELECT * FROM gs.none ORDER BY k'), 'same', 'no row');
SELECT is(gs.compare('SELECT * FROM gs.none ORDER BY t DESC, k'), 'same', 'no row by an inexact key');
SELECT is(gs.compare('SELECT * FROM gs.one ORDER BY k'), 'same', 'one row');
SELECT is(gs.compare('SELECT * FROM gs.one ORDER BY t'), 'same', 'one row by an inexact key');
SELECT is(gs.compare('SELECT * FROM gs.r WHERE id < 3 ORDER BY id DESC'), 'same', 'two rows');

-- target lists
SELECT is(gs.compare('SELECT 1 FROM gs.r ORDER BY k'), 'same', 'a constant');
SELECT is(gs.compare('SELECT NULL::text, 1, ''x'' FROM gs.r ORDER BY k'), 'same', 'constants');
SELECT is(gs.compare('SELECT k, k, id, t, id FROM gs.r ORDER BY k, id'), 'same', 'a column twice');
SELECT is(gs.compare('SELECT k AS a, -k AS b FROM gs.r ORDER BY b, a'), 'same', 'a column and its expression');
SELECT is(gs.compare('SELECT r FROM gs.r ORDER BY k, id'), 'same', 'a whole row');
SELECT is(gs.compare('SELECT r, r.*, (r).t FROM gs.r ORDER BY k, id'), 'same', 'whole rows and columns');
SELECT is(gs.compare('SELECT altered FROM gs.altered ORDER BY k, t'), 'same', 'a whole row of an altered table');
SELECT is(gs.compare('SELECT ctid, tableoid::regclass, xmin = xmin, id FROM gs.r ORDER BY t COLLATE "C"'), 'same', 'system columns');
SELECT is(gs.compare('SELECT ctid FROM gs.r ORDER BY k, id'), 'same', 'ctid alone');
SELECT is(gs.compare('SELECT id, (SELECT count(*) FROM gs.one WHERE one.k = r.k) FROM gs.r ORDER BY k, id'), 'same', 'a subquery');
SELECT is(gs.compare('SELECT id, (SELECT max(k) FROM gs.r s WHERE s.k < r.k AND s.id < 50) AS m FROM gs.r WHERE id < 200 ORDER BY m DESC, id'), 'same',
		  'by a subquery');
SELECT is(gs.compare_results('SELECT id, generate_series(1, 3) AS g FROM gs.r ORDER BY k, id'), 'same', 'a set-returning function');
SELECT is(gs.compare_results('SELECT id, generate_series(1, k % 4) AS g FROM gs.r ORDER BY g DESC, id'), 'same', 'by a set-returning function');
SELECT is(gs.compare_results('SELECT id, unnest(ARRAY[t, ''x'']) COLLATE "C" AS g FROM gs.r ORDER BY g, id'), 'same', 'by a set of strings');
SELECT is(gs.compare_results('SELECT n, count(*), array_agg(k ORDER BY k) FROM gs.r GROUP BY n ORDER BY n DESC NULLS LAST'), 'same', 'aggregates');

-- volatile functions: as often as PostgreSQL calls them, and in its order
SELECT is(gs.compare_results('SELECT id, nextval(''gs.seq'') FROM gs.r ORDER BY k, id', 'SELECT setval(''gs.seq'', 1, false)'), 'same',
		  'nextval() above the sort');
SELECT is(nextval('gs.seq'), 2001::bigint, 'called once a row');
SELECT is(gs.compare_results('SELECT id, nextval(''gs.seq'') AS s FROM gs.r ORDER BY s DESC', 'SELECT setval(''gs.seq'', 1, false)'), 'same',
		  'nextval() below the sort');
SELECT is(nextval('gs.seq'), 2001::bigint, 'called once a row');
SELECT is(gs.compare_results('SELECT id, random() FROM gs.r ORDER BY k, id', 'SELECT setseed(0.5)'), 'same', 'random() above the sort');
SELECT is(gs.compare_results('SELECT id, random() AS x FROM gs.r ORDER BY x, id', 'SELECT setseed(0.5)'), 'same', 'random() below the sort');
SELECT is(gs.compare_results('SELECT id FROM gs.r ORDER BY random()', 'SELECT setseed(0.5)'), 'same', 'ORDER BY random()');

-- altered tables
SELECT is(gs.compare('SELECT * FROM gs.altered ORDER BY k, t COLLATE "C"'), 'same', 'dropped and added columns');
SELECT is(gs.compare('SELECT late, fast, k FROM gs.altered ORDER BY fast DESC, k, t COLLATE "C"'), 'same', 'by an added column');
SELECT is(gs.compare('SELECT * FROM gs.altered ORDER BY late, empty NULLS FIRST, fast, t COLLATE "C"'), 'same', 'by added columns');

-- virtual rows: values, functions, composite results
SELECT is(gs.compare('SELECT * FROM (VALUES (3, ''c''), (1, NULL), (2, ''b'')) v (i, s) ORDER BY i'), 'same', 'VALUES');
SELECT is(gs.compare('SELECT * FROM generate_series(1, 10) i, generate_series(1, 10) j ORDER BY i + j, i'), 'same', 'functions');
SELECT is(gs.compare('SELECT * FROM json_to_recordset(''[{"a":2,"b":"x"},{"a":1,"b":"y"}]'') AS j (a int, b text) ORDER BY a'), 'same', 'records');

-- wide and toasted rows; the widest are larger than a chunk
CREATE TABLE gs.wide (id int, k int, w text COLLATE "C");
ALTER TABLE gs.wide ALTER w SET STORAGE EXTERNAL;
CREATE FUNCTION gs.fill(id int, bytes int) RETURNS text LANGUAGE sql IMMUTABLE AS
$$ SELECT left(repeat(md5(id::text), bytes / 32 + 1), bytes) $$;
INSERT INTO gs.wide SELECT i, (i * 7919) % 211, gs.fill(i, 1000) FROM generate_series(1, 3000) i;
INSERT INTO gs.wide SELECT i, (i * 7919) % 211, gs.fill(i, 100000) FROM generate_series(3001, 3100) i;
INSERT INTO gs.wide SELECT i, (i * 7919) % 211, gs.fill(i, 5000000) FROM generate_series(3101, 3103) i;
CREATE TABLE gs.compressed AS SELECT i AS id, (i * 31) % 97 AS k, repeat('z', i * 1000) || i % 7 AS w FROM generate_series(1, 200) i;
SELECT is(gs.compare('SELECT * FROM gs.wide WHERE id <= 3000 ORDER BY k, id'), 'same', 'rows of 1 kB');
SELECT is(gs.compare('SELECT * FROM gs.wide WHERE id > 2900 AND id <= 3100 ORDER BY k DESC, id'), 'same', 'rows of 1 kB and 100 kB');
SELECT is(gs.compare('SELECT * FROM gs.wide WHERE id > 2900 ORDER BY k, id'), 'same', 'toasted rows up to 5 MB');
SELECT is(gs.compare('SELECT id, w FROM gs.wide WHERE id > 2900 ORDER BY w, id'), 'same', 'by the wide column');
SELECT is(gs.compare('SELECT id, w FROM gs.compressed ORDER BY w, id'), 'same', 'by a compressed column');
SELECT is(gs.compare('SELECT * FROM gs.compressed ORDER BY k, id'), 'same', 'compressed rows');
-- in the row itself, not in its toast table
SELECT is(gs.compare('SELECT id, k, w || '''' AS v FROM gs.wide WHERE id > 2990 AND id <= 3100 ORDER BY md5(w) COLLATE "C", v, id'), 'same', 'rows of 100 kB in memory');
SELECT is(gs.compare('SELECT id, gs.fill(id, 5000000) COLLATE "C" AS v FROM gs.r WHERE id <= 8 ORDER BY v DESC'), 'same', 'rows larger than a chunk');
SELECT is(gs.compare('SELECT id, gs.fill(id, CASE WHEN id % 300 = 0 THEN 5000000 ELSE id END) COLLATE "C" AS v FROM gs.r ORDER BY k, v'), 'same',
		  'a few rows larger than a chunk');
SELECT is(gs.compare('SELECT id, gs.fill(id, 4194304 - 64 + id) AS v FROM gs.r WHERE id < 48 AND id % 3 = 0 ORDER BY k'), 'same', 'rows of just about a chunk');

SELECT is(gs.compare('SELECT id, (''a prefix that is longer than any key is ...................'' || gs.fill(id % 7, CASE WHEN id % 400 = 0 THEN 3000000 ELSE id END)) COLLATE "C" AS v FROM gs.r ORDER BY v DESC, id'),
		  'same', 'rows larger than a chunk among ties');
SELECT is(gs.compare('SELECT id, k % 3 AS m, gs.fill(id, 1200000) AS v FROM gs.r WHERE id <= 30 ORDER BY (''the same for all of these rows, and long'' || k % 3) COLLATE "C", id DESC'),
		  'same', 'nothing but rows larger than a chunk''s share, all of them ties');

-- many columns, most of them NULL
SELECT is(gs.compare('SELECT id, ' || (SELECT string_agg(format('CASE WHEN id %% %s = 0 THEN id END AS c%s', j, j), ', ') FROM generate_series(1, 400) j)
					 || ' FROM gs.r ORDER BY c2 NULLS FIRST, c3 DESC NULLS LAST, id'), 'same', 'four hundred columns');

SELECT * FROM finish();
