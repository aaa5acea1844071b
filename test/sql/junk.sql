\set ECHO none
-- Sort keys that are not in the SELECT list: GpuSort gives its rows out without
-- them, or reads them from a column that is.
SET client_min_messages = warning;
LOAD 'gpusort';
\pset format unaligned
\pset tuples_only on

CREATE TABLE gs.j AS
SELECT i AS id, CASE WHEN i % 7 > 0 THEN (i * 7919) % 101 END AS k, CASE WHEN i % 5 > 0 THEN (i * 31) % 97 / 8.0 END::float8 AS f,
	CASE WHEN i % 11 > 0 THEN repeat('a common head of many bytes ', i % 3) || (i * 17) % 13 END AS t,
	('v' || (i * 13) % 17)::varchar(10) AS v, ('b' || i % 19)::char(8) AS b, i % 2 = 0 AS even
FROM generate_series(1, 2000) i;
CREATE TABLE gs.jwide AS
SELECT i AS id, (i * 7919) % 11 AS k, CASE WHEN i % 10 = 0 THEN repeat(md5(i::text), 40000) END AS big,
	repeat('x', 30 + i % 2) || (i * 31) % 7 AS t FROM generate_series(1, 60) i;
ALTER TABLE gs.jwide ALTER big SET STORAGE external;
CREATE TABLE gs.jpart (id int, k int, t text) PARTITION BY RANGE (id);
CREATE TABLE gs.jpart1 PARTITION OF gs.jpart FOR VALUES FROM (0) TO (700);
CREATE TABLE gs.jpart2 (gone int, t text, id int, k int);
ALTER TABLE gs.jpart2 DROP COLUMN gone;
ALTER TABLE gs.jpart ATTACH PARTITION gs.jpart2 FOR VALUES FROM (700) TO (3000);
INSERT INTO gs.jpart SELECT id, k, t FROM gs.j;
CREATE SEQUENCE gs.jseq;

-- The output columns that EXPLAIN VERBOSE tells of the first GpuSort node, and of the plan below it.
CREATE FUNCTION gs.outputs(query text) RETURNS text[] LANGUAGE plpgsql
SET gpusort.enable = on SET gpusort.force = on SET gpusort.min_rows = 0
AS $$
DECLARE
	plan json;
	node jsonb;
BEGIN
	EXECUTE 'EXPLAIN (VERBOSE, FORMAT JSON) ' || query INTO plan;
	node := jsonb_path_query_first(plan::jsonb, 'strict $.** ? (@."Custom Plan Provider" == "GpuSort")');
	RETURN ARRAY[jsonb_array_length(node->'Output'), jsonb_array_length(node->'Plans'->0->'Output')]::text[];
END $$;

SELECT * FROM no_plan();

-- what plans look like
SELECT is(gs.outputs('SELECT id, t FROM gs.j ORDER BY t COLLATE "C"'), ARRAY['2', '2'], 'a column under another collation is no column of its own');
SELECT is(gs.outputs('SELECT v, id FROM gs.j ORDER BY v::text COLLATE "C"'), ARRAY['2', '2'], 'nor under a compatible type');
SELECT is(gs.outputs('SELECT id FROM gs.j ORDER BY k'), ARRAY['1', '2'], 'a key that is not asked for is not given out');
SELECT is(gs.outputs('SELECT id FROM gs.j ORDER BY k + 1, f DESC'), ARRAY['1', '3'], 'nor are two');
SELECT is(gs.outputs('SELECT id, t FROM gs.j ORDER BY k, t COLLATE "C"'), ARRAY['2', '3'], 'one of each');
SELECT is(gs.outputs('SELECT id, t FROM gs.j ORDER BY t COLLATE "C" LIMIT 5'), ARRAY['2', '2'], 'below LIMIT');
SELECT is(gs.outputs('SELECT id FROM gs.j ORDER BY k FETCH FIRST 5 ROWS WITH TIES'), ARRAY['2', '2'], 'WITH TIES reads the keys');
SELECT is(gs.compare('SELECT id FROM gs.j ORDER BY k, f, id % 2 FETCH FIRST 5 ROWS WITH TIES'), 'same', 'and counts its ties by them');
SELECT is(gs.outputs('SELECT id FROM gs.j ORDER BY k FOR UPDATE'), ARRAY['3', '3'], 'row locks need columns of their own');
SELECT is(gs.outputs('SELECT FROM gs.j ORDER BY k'), ARRAY['1', '1'], 'a SELECT of nothing keeps its key');
SELECT is(gs.outputs('SELECT id, k FROM gs.j ORDER BY k'), ARRAY['2', '2'], 'no junk');
SELECT is(gs.outputs('SELECT string_agg(t, id::text) FROM (SELECT id, t FROM gs.j ORDER BY k OFFSET 0) s'), ARRAY['3', '3'],
		  'not where PostgreSQL has no node between the subquery and its reader');
SELECT is(gs.outputs('WITH c AS MATERIALIZED (SELECT id FROM gs.j ORDER BY k) SELECT id FROM c WHERE id > 5'), ARRAY['1', '2'], 'in a CTE');
SELECT is(gs.outputs('SELECT ARRAY(SELECT id FROM gs.j ORDER BY k, id)'), ARRAY['1', '2'], 'in an expression');
SELECT is(gs.outputs('INSERT INTO gs.j (id, t) SELECT id, t FROM gs.j ORDER BY t COLLATE "C"'), ARRAY['2', '2'], 'in an INSERT');
SELECT is(gs.outputs('SELECT id FROM (SELECT 0 AS id UNION ALL (SELECT id FROM gs.j ORDER BY k)) s'), ARRAY['1', '2'], 'below UNION ALL');

-- every combination of keys hidden and given, in every direction
SELECT is(gs.compare(format('SELECT %s FROM gs.j ORDER BY %s %s, id', given, key, words)), 'same', format('%s by %s %s', given, key, words))
FROM (VALUES (1, 'id'), (2, 't'), (3, 'b, f'), (4, 'k, t, v, f')) g (n, given),
	(VALUES (1, 'k'), (2, 'f'), (3, 't COLLATE "C"'), (4, 'v COLLATE "C"'), (5, 'b COLLATE "C"'), (6, 'k % 10, t COLLATE "C"'), (7, 'lower(t) COLLATE "C"'),
			(8, 'even, f + k'), (9, '(k || ''x'') COLLATE "C", f')) k (n, key), gs.direction d
ORDER BY d.ordinal, k.n, g.n;
SELECT is(gs.compare('SELECT id, t COLLATE "POSIX" AS p FROM gs.j ORDER BY t COLLATE "C" DESC, id'), 'same', 'the column given has a collation of its own');
SELECT is(gs.compare('SELECT v, v::text AS x, id FROM gs.j ORDER BY v COLLATE "C", id DESC'), 'same', 'the same column twice');
SELECT is(gs.compare('SELECT 1, id, NULL::int, ''x'' FROM gs.j ORDER BY t COLLATE "C", k, id'), 'same', 'constants beside it');
SELECT is(gs.compare('SELECT 1, t FROM gs.j ORDER BY t COLLATE "C"'), 'same', 'a constant before it');
SELECT is(gs.compare('SELECT j FROM gs.j ORDER BY k, id'), 'same', 'a whole row');
SELECT is(gs.compare('SELECT count(*), max(id) FROM gs.j GROUP BY k, t ORDER BY t COLLATE "C", k'), 'same', 'above an aggregate');
SELECT is(gs.compare('SELECT t, count(*) FROM gs.j GROUP BY t ORDER BY t COLLATE "C"'), 'same', 'by a grouping column');
SELECT is(gs.compare('SELECT a.id, b.t FROM gs.j a JOIN gs.j b USING (id) ORDER BY b.t COLLATE "C", a.k, id'), 'same', 'above a join');
SELECT is(gs.compare('SELECT t FROM gs.jpart ORDER BY t COLLATE "C", id'), 'same', 'above partitions');
SELECT is(gs.compare('SELECT id FROM gs.jpart ORDER BY k DESC, t COLLATE "C", id'), 'same', 'above partitions of different layouts');
SELECT is(gs.compare('SELECT x FROM unnest(ARRAY[''b'', ''a'', NULL, ''c'']) x ORDER BY x COLLATE "C" DESC'), 'same', 'above a function');
SELECT is(gs.compare('SELECT id FROM (SELECT id, t, k FROM gs.j OFFSET 0) s ORDER BY t COLLATE "C", k, id'), 'same', 'above a subquery');
SELECT is(gs.compare('WITH c AS MATERIALIZED (SELECT * FROM gs.j) SELECT t FROM c ORDER BY t COLLATE "C", id'), 'same', 'above a CTE');

SELECT is(gs.compare('SELECT count(*), count(t) FROM (SELECT id, t FROM gs.j ORDER BY k, f, id OFFSET 0) s'), 'same', 'an aggregate above');
SELECT is(gs.compare('SELECT count(*), count(t) FROM (SELECT id, t FROM gs.j ORDER BY k, f, id OFFSET 0) s WHERE id % 3 > 0'), 'same', 'with a filter between');
SELECT is(gs.compare('SELECT string_agg(t, id::text) FROM (SELECT id, t FROM gs.j ORDER BY k, f, id OFFSET 0) s WHERE t > ''b'''), 'same', 'in order');
SELECT is(gs.compare('SELECT id, row_number() OVER () FROM (SELECT id, t FROM gs.j ORDER BY k, f, id OFFSET 0) s WHERE id % 3 > 0'), 'same', 'a window above');
SELECT is(gs.compare('SELECT s, s.id FROM (SELECT id, t FROM gs.j ORDER BY k, f, id OFFSET 0) s'), 'same', 'a subquery, whole');
SELECT is(gs.compare('SELECT s.id, x FROM (SELECT id, t FROM gs.j ORDER BY k, f, id LIMIT 50) s, LATERAL (SELECT t AS x FROM gs.j WHERE j.id < s.id ORDER BY k, j.id LIMIT 3) l'), 'same', 'subqueries side by side');
SELECT is(gs.compare('WITH c AS MATERIALIZED (SELECT id, t FROM gs.j ORDER BY k, t COLLATE "C", id) SELECT c.*, d.id FROM c JOIN c d ON c.id = d.id + 1'), 'same', 'a CTE read twice');
SELECT is(gs.compare('SELECT id, ARRAY(SELECT a.id FROM gs.j a WHERE a.id < j.id ORDER BY a.f DESC, a.id) FROM gs.j WHERE id < 40 ORDER BY k, id'), 'same', 'an array of ordered rows');
SELECT is(gs.compare('SELECT id FROM gs.j WHERE id IN (SELECT id FROM gs.j ORDER BY k, id LIMIT 100) ORDER BY f, id'), 'same', 'IN');
SELECT is(gs.compare('(SELECT id FROM gs.j ORDER BY k, id LIMIT 9) UNION ALL (SELECT k FROM gs.j ORDER BY t COLLATE "C", id LIMIT 9)'), 'same', 'UNION ALL');

-- all columns of a table beside a computed key: rows are the table's own tuples
CREATE TABLE gs.jlate (id int, k int);
INSERT INTO gs.jlate SELECT i, i % 10 FROM generate_series(1, 100) i;
ALTER TABLE gs.jlate ADD COLUMN late text DEFAULT 'default', ADD COLUMN empty int;
INSERT INTO gs.jlate SELECT i, i % 10, 'set', i FROM generate_series(101, 200) i;
SELECT is(gs.compare('SELECT * FROM gs.j ORDER BY k % 10, (t || ''x'') COLLATE "C", id'), 'same', 'all columns');
SELECT is(gs.compare('SELECT * FROM gs.j WHERE ctid > ''(3,0)'' ORDER BY k + f DESC, id'), 'same', 'of a range of tuples');
SELECT is(gs.compare('SELECT * FROM gs.j TABLESAMPLE SYSTEM (50) REPEATABLE (1) ORDER BY k % 10, id'), 'same', 'of a sample');
SELECT is(gs.compare('SELECT f, k, id, t, v, b, even FROM gs.j ORDER BY k % 10, id'), 'same', 'in another order');
SELECT is(gs.compare('SELECT id, k, f, t, v, b, even, id + 1 FROM gs.j ORDER BY k % 10, id'), 'same', 'with one more');
SELECT is(gs.compare('SELECT * FROM gs.jlate ORDER BY k + 1, id'), 'same', 'added since some tuples were stored');
SELECT is(gs.compare('SELECT * FROM gs.altered ORDER BY k + 1, t COLLATE "C"'), 'same', 'dropped and added');
SELECT is(gs.compare('SELECT * FROM gs.jwide ORDER BY k + 1, id'), 'same', 'toasted');
SELECT is(gs.compare('SELECT * FROM gs.jpart ORDER BY k + 1, id'), 'same', 'of partitions');
SET enable_seqscan = off;
CREATE INDEX ON gs.jlate (id);
SELECT is(gs.compare('SELECT * FROM gs.jlate WHERE id BETWEEN 50 AND 150 ORDER BY k + 1, id'), 'same', 'by an index with columns added');
CREATE INDEX ON gs.j (id);
SELECT is(gs.compare('SELECT * FROM gs.j WHERE id BETWEEN 50 AND 850 ORDER BY k + 1, id'), 'same', 'by an index');
SELECT is(gs.compare('SELECT * FROM gs.j WHERE id IN (5, 50, 500, 7, 70, 700) ORDER BY k + 1, id'), 'same', 'by a bitmap');
RESET enable_seqscan;

-- ties among rows with hidden columns, in one chunk and over several
SELECT is(gs.compare('SELECT id FROM gs.j ORDER BY (repeat(chr(97 + id % 2), 300) || t || id) COLLATE "C", f, id'), 'same', 'ties by a hidden key');
SELECT ok((gs.node('SELECT id FROM gs.j ORDER BY (repeat(chr(97 + id % 2), 300) || t || id) COLLATE "C", f, id')->>'Tie Rows')::int > 1000, 'there were ties');
SELECT is(gs.compare('SELECT id, t FROM gs.j ORDER BY (repeat(chr(97 + id % 2), 300) || t || id) COLLATE "C" DESC, f, id'), 'same', 'and with the column given');
SELECT is(gs.compare_bulk('SELECT i FROM (SELECT i, repeat(''head '', 30) || md5(i::text) AS t FROM generate_series(1, 40000) i) s ORDER BY t COLLATE "C"'), 'same',
		  'a run of ties over several chunks');
SELECT is(gs.compare_bulk('SELECT i, t FROM (SELECT i, repeat(''head '', 30) || md5(i::text) AS t FROM generate_series(1, 40000) i) s ORDER BY t COLLATE "C" DESC'), 'same',
		  'and by a column given');

-- rows too long for a chunk
SELECT is(gs.compare('SELECT id, big || ''x'' AS wide FROM gs.jwide ORDER BY k, id'), 'same', 'long rows with a hidden key');
SELECT is(gs.compare('SELECT id, big || ''x'' AS wide FROM gs.jwide ORDER BY t COLLATE "C", id DESC'), 'same', 'long rows with a hidden key that ties');
SELECT is(gs.compare('SELECT big FROM gs.jwide ORDER BY big COLLATE "C", id'), 'same', 'toasted values');
SELECT is(gs.compare('SELECT id FROM gs.jwide ORDER BY (big || t) COLLATE "C" NULLS FIRST, id'), 'same', 'the hidden key is long itself');

-- values that must not be read twice
SELECT is(gs.compare_results('SELECT md5(random()::text) AS m FROM gs.j ORDER BY md5(random()::text) COLLATE "C"', 'SELECT setseed(0.25)'), 'same', 'two calls of a volatile function');
SELECT is(gs.compare_results('SELECT id FROM gs.j ORDER BY nextval(''gs.jseq'') DESC', 'SELECT setval(''gs.jseq'', 1, false)'), 'same', 'a hidden sequence');
SELECT is(nextval('gs.jseq'), 2001::bigint, 'called once a row');

-- tables made of such rows have just the columns asked for
SET gpusort.force = on;
CREATE TABLE gs.jmade AS SELECT id, t FROM gs.j ORDER BY k DESC, f, id;
RESET gpusort.force;
SELECT is(gs.rows('SELECT id, t FROM gs.jmade'), gs.native_rows('SELECT id, t FROM gs.j ORDER BY k DESC, f, id'), 'CREATE TABLE AS');
ALTER TABLE gs.jmade ADD COLUMN k int, ADD COLUMN f float8;
SELECT is(count(*), 0::bigint, 'columns added later are NULL') FROM gs.jmade WHERE k IS NOT NULL OR f IS NOT NULL;
CREATE TABLE gs.jmade2 AS SELECT id, t FROM gs.j;
SELECT is(pg_relation_size('gs.jmade'), pg_relation_size('gs.jmade2'), 'and take no room');
SET gpusort.force = on;
INSERT INTO gs.jmade SELECT id, t FROM gs.j ORDER BY k, id;
RESET gpusort.force;
SELECT is(count(*), 4000::bigint, 'INSERT ... SELECT') FROM gs.jmade WHERE k IS NULL;

-- cursors
SET gpusort.force = on;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id FROM gs.j ORDER BY k DESC NULLS LAST, t COLLATE "C", id;
SELECT is(gs.fetch('c', 'FORWARD 300') || gs.fetch('c', 'BACKWARD 100') || gs.fetch('c', 'FORWARD ALL') || gs.fetch('c', 'ABSOLUTE 7'),
		  (SELECT r[1:300] || ARRAY(SELECT r[i] FROM generate_series(299, 200, -1) i) || r[201:2000] || r[7:7]
		   FROM gs.native_rows('SELECT id FROM gs.j ORDER BY k DESC NULLS LAST, t COLLATE "C", id') r), 'a cursor that scrolls');
COMMIT;
RESET gpusort.force;

-- PostgreSQL's own sort in the node gives out the same
SET gpusort.engine = cuda;
SELECT is(gs.compare_results('SELECT id, t FROM gs.j ORDER BY k DESC, f, id'), 'same', 'where the engine asked for may not be there');
SELECT is(gs.compare_results('SELECT id FROM gs.j ORDER BY t COLLATE "C", id LIMIT 20'), 'same', 'and below LIMIT');
RESET gpusort.engine;

-- workers
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SELECT ok(gs.forced_plan('SELECT id, t FROM gs.j ORDER BY t COLLATE "C", k % 10, id') ~ 'GpuSort(Ingest|Output)', 'a parallel plan');
SELECT is(gs.outputs('SELECT id, t FROM gs.j ORDER BY t COLLATE "C"'), ARRAY['2', '2'], 'drops the column in all its nodes');
SELECT is(gs.compare(format('SELECT %s FROM gs.j ORDER BY %s', given, key)), 'same', format('in parallel: %s by %s', given, key))
FROM (VALUES ('id'), ('t, id'), ('1, v, t')) g (given),
	(VALUES ('t COLLATE "C", id'), ('k, f DESC, id'), ('t COLLATE "C", k % 10 DESC, v::text COLLATE "C", id')) k (key);
SELECT * FROM finish();
