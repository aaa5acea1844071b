\set ECHO none
-- Rows of all forms with gpusort.verify_rows on: each travels with what it is verified
-- by, and comes back as it was.
SET client_min_messages = warning;
LOAD 'gpusort';
\pset format unaligned
\pset tuples_only on

CREATE TABLE gs.vr AS SELECT i AS id, (i * 7919) % 1009 AS k, 'row ' || i AS t, CASE WHEN i % 3 > 0 THEN i END AS n,
	   i::numeric * 1000000007 % 997 / 7 AS num,
	   ('the same in all of these rows, for as far as a key goes and then some more, so that it is never whole ' || i * 31 % 17) COLLATE "C" AS tie
FROM generate_series(1, 3000) i;
CREATE TABLE gs.vr_many AS SELECT i AS id, (i::bigint * 7919) % 30011 AS k, ('t' || md5((i % 5000)::text)) COLLATE "C" AS t, repeat('p', i % 200) AS pad,
	   (repeat('long ', 30) || i % 3) COLLATE "C" AS tie
FROM generate_series(1, 60000) i;
CREATE TABLE gs.vr_altered (gone1 int, k int, gone2 text, t text);
INSERT INTO gs.vr_altered SELECT i, (i * 31) % 101, 'gone', 't' || i FROM generate_series(1, 500) i;
ALTER TABLE gs.vr_altered DROP COLUMN gone1, DROP COLUMN gone2, ADD COLUMN late text DEFAULT 'default' COLLATE "C";
INSERT INTO gs.vr_altered SELECT (i * 37) % 101, 'u' || i, i FROM generate_series(1, 500) i;
CREATE TABLE gs.vr_outer AS SELECT i AS id FROM generate_series(1, 4) i;
ANALYZE gs.vr;
ANALYZE gs.vr_many;
ANALYZE gs.vr_outer;

SELECT * FROM no_plan();

-- what EXPLAIN says
SELECT is(gs.node('SELECT * FROM gs.vr ORDER BY k')->>'Verified', NULL, 'not verified without being asked for');
SELECT (gs.node('SELECT * FROM gs.vr ORDER BY k')->>'Bytes')::int AS bytes_before \gset
SET gpusort.verify_rows = on;
SELECT is(gs.node('SELECT * FROM gs.vr ORDER BY k')->>'Verified', 'rows', 'verified');
SELECT is((gs.node('SELECT * FROM gs.vr ORDER BY k')->>'Bytes')::int, :bytes_before + 3000 * 16, 'a key of 8 bytes and as many more behind each row');

-- forms of rows and keys
SELECT is(gs.compare('SELECT * FROM gs.vr ORDER BY ' || o), 'same', 'by ' || o)
FROM (VALUES ('k, id'), ('k DESC, id'), ('n NULLS FIRST, id'), ('n DESC, id'), ('num, id'), ('t COLLATE "C"'), ('t COLLATE "C" DESC, k'), ('tie, id'), ('tie DESC, id DESC'),
	  ('k % 3, tie, num, id'), ('id::bigint')) v (o);
SELECT is(gs.compare('SELECT id FROM gs.vr ORDER BY ' || o), 'same', 'not given out: ' || o)
FROM (VALUES ('k, id'), ('n DESC NULLS LAST, id'), ('tie, id'), ('upper(t) COLLATE "C", num, id')) v (o);
SELECT is(gs.compare('SELECT 1 FROM gs.vr ORDER BY k'), 'same', 'a constant');
SELECT is(gs.compare('SELECT vr FROM gs.vr ORDER BY k, id'), 'same', 'whole rows');
SELECT is(gs.compare('SELECT * FROM gs.vr_altered ORDER BY k, t COLLATE "C"'), 'same', 'an altered table');
SELECT is(gs.compare('SELECT id FROM gs.vr WHERE id < 0 ORDER BY k'), 'same', 'no row');
SELECT is(gs.compare('SELECT id, t FROM gs.vr WHERE id = 7 ORDER BY k'), 'same', 'one row');
SELECT is(gs.compare('SELECT id, ' || string_agg(format('CASE WHEN id %% %s = 0 THEN id END AS c%s', j, j), ', ') || ' FROM gs.vr ORDER BY c2 NULLS FIRST, id'), 'same',
		  'four hundred columns') FROM generate_series(1, 400) j;

-- wide and long rows: those that would fit into a chunk but for what is behind them, too
SELECT is(gs.compare(format('SELECT id, repeat(md5(id::text), %s) AS w FROM gs.vr WHERE id <= %s ORDER BY k, id', bytes / 32, 6000000 / bytes)), 'same', 'rows of ' || bytes)
FROM (VALUES (3200), (100000), (1000000), (3000000)) v (bytes);
SELECT is(gs.compare('SELECT id, left(repeat(md5(id::text), 40000), (1 << 20) - 160 + 8 * id) AS w FROM gs.vr WHERE id <= 24 ORDER BY k'), 'same', 'rows of about 1 MB');
SELECT is(gs.compare('SELECT id, repeat(md5(id::text), CASE WHEN id % 300 = 0 THEN 40000 ELSE 1 END) AS w FROM gs.vr ORDER BY tie, id'), 'same', 'long rows among ties');
SELECT is(gs.compare('SELECT id, repeat(md5(id::text), CASE WHEN id % 300 = 0 THEN 40000 ELSE 1 END) AS w FROM gs.vr ORDER BY k, n, id'), 'same', 'long rows and columns that are not given out');

-- many chunks
SELECT is(gs.compare_bulk('SELECT * FROM gs.vr_many ORDER BY ' || o), 'same', 'many rows by ' || o)
FROM (VALUES ('k, id'), ('t, id'), ('tie, id'), ('tie DESC, k, id')) v (o);
SELECT is(gs.compare_bulk('SELECT pad FROM gs.vr_many ORDER BY tie, id'), 'same', 'many rows by columns that are not given out');
SELECT is(gs.compare_bulk('SELECT * FROM gs.vr_many ORDER BY ' || o), 'same', 'with LIMIT: ' || o)
FROM (VALUES ('k, id LIMIT 10'), ('k, id LIMIT 30000'), ('tie, id LIMIT 7 OFFSET 20000'), ('tie, id LIMIT 60000'), ('k DESC LIMIT 0')) v (o);

-- in parallel
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SELECT matches(gs.forced_plan('SELECT * FROM gs.vr_many ORDER BY k, id'), 'GpuSort(Ingest|Output)', 'the plan with workers');
SELECT is(gs.compare_bulk('SELECT * FROM gs.vr_many ORDER BY ' || o), 'same', 'with workers by ' || o) FROM (VALUES ('k, id'), ('t, id'), ('tie DESC, id')) v (o);
SELECT is(gs.compare_bulk('SELECT id, repeat(pad, CASE WHEN id % 9999 = 0 THEN 10000 ELSE 1 END) AS w FROM gs.vr_many ORDER BY k, id'), 'same', 'with workers and long rows');
SET parallel_leader_participation = off;
SELECT is(gs.compare_bulk('SELECT * FROM gs.vr_many ORDER BY k, id'), 'same', 'with workers alone');
RESET parallel_leader_participation;
SET max_parallel_workers_per_gather = 0;

-- read again, backward, from a mark
SET enable_material = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SELECT is(gs.compare('SELECT o.id AS o, s.id FROM gs.vr_outer o, (SELECT id FROM gs.vr_many ORDER BY k DESC, id OFFSET 59990) s'), 'same', 'read again to the end');
SELECT is(gs.compare('SELECT o.id, (SELECT string_agg(s.id::text, '','') FROM (SELECT id FROM gs.vr_many ORDER BY k, id OFFSET 5 LIMIT 20) s WHERE s.id > o.id) FROM gs.vr_outer o'),
		  'same', 'read again in part');
RESET enable_material;
RESET enable_hashjoin;
RESET enable_mergejoin;
BEGIN;
SET LOCAL gpusort.enable = off;
DECLARE n SCROLL CURSOR FOR SELECT id, k, tie FROM gs.vr_many ORDER BY tie, k, id;
SET LOCAL gpusort.enable = on;
SET LOCAL gpusort.force = on;
DECLARE g SCROLL CURSOR FOR SELECT id, k, tie FROM gs.vr_many ORDER BY tie, k, id;
SELECT is(gs.fetch('g', m), gs.fetch('n', m), 'FETCH ' || m)
FROM (VALUES ('FORWARD 5'), ('BACKWARD 3'), ('ABSOLUTE 30000'), ('BACKWARD 100'), ('LAST'), ('BACKWARD 7'), ('ABSOLUTE -1000'), ('FIRST')) v (m);
COMMIT;
SET enable_hashjoin = off;
SET enable_nestloop = off;
SELECT alike(gs.forced_plan('SELECT a.id, b.id FROM gs.vr a JOIN gs.vr b USING (k)'), '%Merge Join%GpuSort%GpuSort%', 'the plan of a merge join');
SELECT is(gs.compare_bulk('SELECT a.id AS a, b.id AS b FROM gs.vr a JOIN gs.vr b USING (k) ORDER BY a.id, b.id'), 'same', 'a merge join with duplicates');
SELECT is(gs.compare_bulk('SELECT a.id AS a, b.id AS b FROM gs.vr_many a JOIN gs.vr_many b ON a.k = b.k AND a.t = b.t ORDER BY a.id, b.id'), 'same', 'a merge join over chunks');
SELECT is(gs.compare_bulk('SELECT a.id AS a, b.id AS b FROM gs.vr a JOIN gs.vr b ON a.tie = b.tie AND a.id % 50 = b.id % 49 ORDER BY a.id, b.id'), 'same', 'a merge join of ties');
RESET enable_hashjoin;
RESET enable_nestloop;
SELECT is(gs.compare_bulk('SELECT id, row_number() OVER w AS r, rank() OVER w AS q, lag(id) OVER w AS l FROM gs.vr_many WINDOW w AS (ORDER BY k, id)'), 'same', 'a window');
SELECT is(gs.compare_results('SELECT k, count(*), array_agg(id ORDER BY id DESC) FROM gs.vr GROUP BY k ORDER BY k'), 'same', 'groups');

SELECT is((SELECT count(*) FROM jsonb_object_keys((SELECT fallback_reasons FROM gpusort_stats)) r WHERE r = 'verification'), 0::bigint, 'nothing was found to be wrong');

SELECT * FROM finish();
