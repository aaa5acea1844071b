\set ECHO none
-- Ranges of sorted rows as a partial plan's (src/plan/offer/ranges_path.c, src/exec/output.c): plans and answers.
SET client_min_messages = warning;
LOAD 'gpusort';
\pset format unaligned
\pset tuples_only on

CREATE SCHEMA partial;
CREATE TABLE partial.a AS
SELECT i AS id, (i * 7919) % 3001 AS k, i % 100 AS few, CASE WHEN i % 7 > 0 THEN i % 900 END AS n, 't' || i % 300 AS t, (i % 50) / 4.0 AS f, repeat('x', i % 50) AS pad
FROM generate_series(1, 12000) i;
CREATE TABLE partial.b AS
SELECT i AS id, (i * 31) % 2000 AS k, (i * 31) % 2000::int8 AS big, CASE WHEN i % 5 > 0 THEN i % 1100 END AS n, 't' || i % 400 AS t, (i % 70) / 4.00 AS f, i % 4 AS four
FROM generate_series(1, 8000) i;
CREATE TABLE partial.c AS SELECT i AS id, i % 100 AS few FROM generate_series(1, 150) i;
ALTER TABLE partial.a SET (parallel_workers = 2);
ALTER TABLE partial.b SET (parallel_workers = 2);
ALTER TABLE partial.c SET (parallel_workers = 0);
CREATE TABLE partial.p (id int, k int, n int) PARTITION BY RANGE (id);
CREATE TABLE partial.p1 PARTITION OF partial.p FOR VALUES FROM (0) TO (3000);
CREATE TABLE partial.p2 PARTITION OF partial.p FOR VALUES FROM (3000) TO (9000);
INSERT INTO partial.p SELECT i, i * 17 % 2500, CASE WHEN i % 3 > 0 THEN i % 10 END FROM generate_series(1, 8000) i;
CREATE TABLE partial.many AS SELECT i AS id, i * 13 % 2011 AS k, CASE WHEN i % 7 > 0 THEN i % 1900 END AS n, 't' || i % 1000 AS t, (i % 50) / 4.0 AS f FROM generate_series(1, 60000) i;
CREATE TABLE partial.keys AS SELECT i AS k, 't' || i AS t, i % 11 AS w FROM generate_series(1, 2000) i;
ALTER TABLE partial.many SET (parallel_workers = 2);
ALTER TABLE partial.keys SET (parallel_workers = 2);
CREATE TABLE partial.one AS SELECT 7 AS k, 1 AS id;
CREATE TABLE partial.none (k int, id int);
ANALYZE partial.a, partial.b, partial.c, partial.p, partial.many, partial.keys, partial.one, partial.none;
CREATE TYPE partial.mood AS ENUM ('sad', 'ok', 'glad');
CREATE FUNCTION partial.restricted(int) RETURNS int LANGUAGE plpgsql STABLE PARALLEL RESTRICTED AS 'BEGIN RETURN $1 + 1; END';

SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
-- joins by ranges are taken for as good as free, so that they take the places of all that could be
SET enable_nestloop = off;
SET gpusort.min_rows = 0;
SET gpusort.setup_cost = 0;
SET gpusort.row_cost = 0;

-- The plan of what aggregates all rows of a query, as one line: a node's name, and in brackets the nodes that it reads.
CREATE FUNCTION partial.shape_of(node jsonb) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	name text := coalesce(node->>'Custom Plan Provider', node->>'Node Type');
	below text;
BEGIN
	IF node->>'Partial Mode' IN ('Partial', 'Finalize') THEN
		name := (node->>'Partial Mode') || ' ' || name;
	END IF;
	IF node ? 'Range Key' AND jsonb_array_length(node->'Range Key') = 0 THEN
		name := name || ' without ranges';
	END IF;
	SELECT string_agg(partial.shape_of(c), ', ') INTO below FROM jsonb_array_elements(node->'Plans') c;
	RETURN name || coalesce('(' || below || ')', '');
END $$;
CREATE FUNCTION partial.digest(query text) RETURNS text LANGUAGE sql IMMUTABLE AS
$$ SELECT format('SELECT count(*) || '' '' || coalesce(sum(hashtextextended(q::text, 0)::numeric), 0) FROM (%s) q', query) $$;
CREATE FUNCTION partial.native(query text) RETURNS text LANGUAGE plpgsql SET gpusort.enable = off AS $$
DECLARE
	result text;
BEGIN
	EXECUTE partial.digest(query) INTO result;
	RETURN result;
END $$;
CREATE FUNCTION partial.forced(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
BEGIN
	EXECUTE partial.digest(query) INTO result;
	RETURN result;
END $$;
CREATE FUNCTION partial.shape(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	RETURN partial.shape_of(plan::jsonb->0->'Plan');
END $$;
-- 'same' when there are ranges in all processes, and the rows are PostgreSQL's.
CREATE FUNCTION partial.compare(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	shape text := partial.shape(partial.digest(query));
BEGIN
	IF shape NOT LIKE '%Gather%GpuSortOutput%' OR shape LIKE '%Exchange%' OR shape LIKE '%without ranges%' THEN
		RETURN 'not partial: ' || shape;
	ELSIF partial.native(query) <> partial.forced(query) THEN
		RETURN 'other rows: ' || partial.forced(query) || ', not ' || partial.native(query);
	END IF;
	RETURN 'same';
END $$;

SELECT * FROM no_plan();

SELECT is(partial.shape('SELECT count(*) FROM partial.a JOIN partial.b USING (k)'),
	'Finalize Aggregate(Gather(Partial Aggregate(GpuSortOutput(Merge Join(GpuSort(Seq Scan), GpuSort(Seq Scan))))))', 'an aggregate above a join');
SELECT is(partial.shape('SELECT count(*) FROM partial.a JOIN partial.b USING (k) LEFT JOIN partial.c ON c.id = a.few + b.four'),
	'Finalize Aggregate(Gather(Partial Aggregate(Hash Join(GpuSortOutput(Merge Join(GpuSort(Seq Scan), GpuSort(Seq Scan))), Hash(Seq Scan)))))', 'a partial hash join above');

CREATE TABLE partial.query (ordinal serial, query text);
INSERT INTO partial.query (query) VALUES
	('SELECT a.id, b.t FROM partial.a JOIN partial.b USING (k)'),
	('SELECT a.id, b.t FROM partial.a LEFT JOIN partial.b USING (n) WHERE a.few < 10'),
	('SELECT a.id FROM partial.a WHERE EXISTS (SELECT 1 FROM partial.b WHERE b.k = a.k)'),
	('SELECT a.id FROM partial.a WHERE NOT EXISTS (SELECT 1 FROM partial.b WHERE b.n = a.n)'),
	('SELECT a.id, b.t FROM partial.a JOIN partial.b USING (k) JOIN partial.c ON c.few = a.few + b.four'),
	('SELECT a.id, b.id FROM partial.a JOIN partial.b ON a.k = b.k AND a.id > b.id'),
	('SELECT a.id, b.id FROM partial.a JOIN partial.b ON a.k = b.k AND a.n = b.n'),
	('SELECT a.id, b.id FROM partial.a JOIN partial.b ON a.k = b.big'),
	('SELECT a.id, b.id FROM partial.a JOIN partial.b USING (t) WHERE a.few < 20 AND b.four = 1'),
	('SELECT a.id, b.id FROM partial.a JOIN partial.b ON a.t COLLATE "C" = b.t COLLATE "C" WHERE a.few < 20 AND b.four = 1'),
	('SELECT a.id, b.id FROM partial.a JOIN partial.b ON a.id + 1 = b.id'),
	('SELECT count(*), sum(a.id), min(b.t), avg(a.f) FROM partial.a JOIN partial.b USING (k)'),
	('SELECT a.id, x.id AS other FROM partial.a JOIN (SELECT a.id, b.k FROM partial.a JOIN partial.b USING (k)) x ON x.id = a.id'),
	('SELECT a.id FROM partial.a JOIN partial.b USING (k) UNION ALL SELECT b.id FROM partial.a JOIN partial.b ON a.id = b.id'),
	('SELECT a.id FROM partial.a JOIN partial.b USING (k) WHERE a.id < 0'),
	('SELECT a.id FROM partial.a JOIN partial.b USING (k) WHERE b.id < 0'),
	('SELECT a.id, b.id FROM partial.a JOIN partial.b ON a.few = b.k WHERE a.few = 3 OR b.id = 4'),
	('SELECT a.id, b.id, (SELECT count(*) FROM partial.c WHERE c.few = 7) FROM partial.a JOIN partial.b USING (k)'),
	('SELECT a.id, b.id FROM partial.a JOIN partial.b ON a.few = b.id AND a.k = b.k + 1'),
	('SELECT a.id, b.id FROM partial.a LEFT JOIN partial.b ON a.k = b.k AND b.four = 2 AND a.few > 5'),
	('SELECT a.id, b.id FROM partial.b LEFT JOIN partial.a ON a.k = b.k WHERE a.id IS NULL OR a.few < 50'),
	('SELECT a.id, b.id, p.id AS p FROM partial.a JOIN partial.b USING (k) JOIN partial.p ON p.id = a.id'),
	('SELECT a.id FROM partial.a JOIN partial.p USING (k)'),
	('SELECT a.id, b.id FROM partial.a JOIN partial.b ON a.f = b.f AND a.id = b.id'),
	('SELECT a.id, b.id FROM partial.a JOIN partial.b USING (k) WHERE NOT EXISTS (SELECT 1 FROM partial.p WHERE p.k = a.id)'),
	('SELECT a.pad, b.t FROM partial.a JOIN partial.b USING (k) WHERE a.pad <> b.t'),
	('WITH j AS MATERIALIZED (SELECT a.id, b.t FROM partial.a JOIN partial.b USING (k)) SELECT * FROM j x'),
	('SELECT a.id, b.id FROM partial.a JOIN partial.b ON a.t COLLATE "und-x-icu" = b.t COLLATE "und-x-icu" WHERE a.few < 20 AND b.four = 1');

-- in the place of merge joins, and of hash joins, but those of strings, which take a merge join long to compare
SET enable_hashjoin = off;
SELECT is(partial.compare(query), 'same', query) FROM partial.query ORDER BY ordinal;
RESET enable_hashjoin;
SELECT is(partial.compare(query), 'same', query) FROM partial.query WHERE query !~ 'USING .t.|COLLATE' ORDER BY ordinal;

-- small sides, and such as are empty: whatever the plan
SELECT is(partial.forced(query), partial.native(query), query) FROM unnest(ARRAY[
	'SELECT a.id FROM partial.a JOIN partial.none USING (k)',
	'SELECT a.id FROM partial.a LEFT JOIN partial.none USING (k)',
	'SELECT a.id FROM partial.a JOIN partial.one USING (k)',
	'SELECT a.id FROM partial.a WHERE k NOT IN (SELECT k FROM partial.none)',
	'SELECT a.id, b.id FROM partial.a FULL JOIN partial.b USING (k)',
	'SELECT a.id, b.id FROM partial.a RIGHT JOIN partial.b USING (n)',
	'SELECT a.id, b.id FROM partial.a JOIN partial.b USING (k) ORDER BY a.id, b.id LIMIT 100',
	'SELECT a.id, b.id FROM partial.a JOIN partial.b USING (k) ORDER BY a.id, b.id OFFSET 100',
	'SELECT DISTINCT a.few, b.four FROM partial.a JOIN partial.b USING (k)',
	'SELECT a.few, count(*), array_agg(b.id ORDER BY b.id) FROM partial.a JOIN partial.b USING (k) GROUP BY a.few',
	'SELECT c.id, (SELECT count(*) FROM partial.a JOIN partial.b USING (k) WHERE a.few = c.few) FROM partial.c WHERE c.id < 4',
	'SELECT c.id, s.n FROM partial.c, LATERAL (SELECT count(*) AS n FROM partial.a JOIN partial.b USING (k) WHERE a.few = c.few) s WHERE c.id < 4',
	'SELECT a.id, rank() OVER (PARTITION BY a.few ORDER BY a.id, b.id) FROM partial.a JOIN partial.b USING (k)']) query;

-- partial aggregates of groups by what is joined by: what a sort of the join's rows takes is counted
RESET gpusort.row_cost;
CREATE TABLE partial.groups (ordinal serial, query text);
INSERT INTO partial.groups (query) VALUES
	('SELECT k, count(*), sum(w) FROM partial.many JOIN partial.keys USING (k) GROUP BY k'),
	('SELECT n, sum(id), avg(f), avg(w), min(keys.t), bool_or(id = 5) FROM partial.many JOIN partial.keys ON n = keys.k GROUP BY n'),
	('SELECT n, count(w), sum(f) FROM partial.many LEFT JOIN partial.keys ON n = keys.k GROUP BY n'),
	('SELECT t, count(*) FILTER (WHERE w > 5) FROM partial.many JOIN partial.keys USING (t) GROUP BY t HAVING count(*) > 2'),
	('SELECT m.t COLLATE "C", count(*), max(w) FROM partial.many m JOIN partial.keys d ON m.t COLLATE "C" = d.t COLLATE "C" GROUP BY 1'),
	('SELECT m.k, count(*) FROM partial.many m WHERE EXISTS (SELECT 1 FROM partial.keys d WHERE d.k = m.k) GROUP BY m.k'),
	('SELECT m.k, count(*) FROM partial.many m WHERE NOT EXISTS (SELECT 1 FROM partial.keys d WHERE d.k = m.k AND d.w > 4) GROUP BY m.k'),
	('SELECT k, count(*) FROM partial.many JOIN partial.keys USING (k) GROUP BY k ORDER BY 2 DESC, 1 LIMIT 10'),
	('SELECT k, count(*) FROM partial.many JOIN partial.keys USING (k) WHERE id < 0 GROUP BY k'),
	('SELECT k, n, count(*) FROM partial.many JOIN partial.keys USING (k) GROUP BY k, n');
SELECT is(partial.forced(query), partial.native(query), query) FROM partial.groups ORDER BY ordinal;
SET enable_hashagg = off;
SET enable_hashjoin = off;
SELECT is(partial.forced(query), partial.native(query), query) FROM partial.groups ORDER BY ordinal;
SELECT cmp_ok(count(*) FILTER (WHERE partial.shape(query) LIKE '%GpuSortOutput(Partial Aggregate(Merge Join(%'), '>=', 2::bigint, 'are by ranges') FROM partial.groups;
RESET enable_hashagg;
RESET enable_hashjoin;

SET gpusort.row_cost = 0;

-- fewer workers than planned, or none; as many as there are
SET enable_hashjoin = off;
SET max_parallel_workers = 0;
SELECT is(count(*) FILTER (WHERE partial.compare(query) = 'same'), count(*), 'no workers') FROM partial.query;
SET max_parallel_workers = 1;
SELECT is(count(*) FILTER (WHERE partial.compare(query) = 'same'), count(*), 'one worker') FROM partial.query;
RESET max_parallel_workers;
SET gpusort.verify_rows = on;
SELECT is(count(*) FILTER (WHERE partial.compare(query) = 'same'), count(*), 'rows are verified') FROM partial.query;
RESET gpusort.verify_rows;
SET work_mem = '64kB';
SELECT is(count(*) FILTER (WHERE partial.compare(query) = 'same'), count(*), 'little work_mem') FROM partial.query;
RESET work_mem;
RESET enable_hashjoin;

-- the service takes no part: one process does it all
SET plan_cache_mode = force_generic_plan;
PREPARE counted AS SELECT count(*) || ' ' || sum(a.id + b.id) AS result FROM partial.a JOIN partial.b USING (k);
EXECUTE counted \gset usual_
SET parallel_leader_participation = off;
EXECUTE counted \gset workers_
SET max_parallel_workers = 0;
EXECUTE counted \gset leader_
RESET max_parallel_workers;
RESET parallel_leader_participation;
SET gpusort.allowed = off;
EXECUTE counted \gset refused_
SET gpusort.allowed = on;
SET gpusort.spill = off;
EXECUTE counted \gset spill_
RESET gpusort.spill;
SET gpusort.enable = off;
SELECT count(*) || ' ' || sum(a.id + b.id) AS result FROM partial.a JOIN partial.b USING (k) \gset native_
SET gpusort.enable = on;
SELECT is(:'usual_result'::text, :'native_result', 'a prepared statement');
SELECT is(:'workers_result'::text, :'native_result', 'the leader takes no part');
SELECT is(:'leader_result'::text, :'native_result', 'it has to, as there are no workers');
SELECT is(:'refused_result'::text, :'native_result', 'gpusort is not allowed any more');
SELECT is(:'spill_result'::text, :'native_result', 'sorts are not to be larger than memory');
SET gpusort.spill = off;
SELECT doesnt_match(partial.shape('SELECT count(*) FROM partial.a JOIN partial.b USING (k)'), '^Finalize Aggregate.Gather.Partial Aggregate.GpuSortOutput', 'not offered then');
RESET gpusort.spill;
DEALLOCATE counted;

-- Gather is left early, and starts over
SELECT is(count(*), 5::bigint, 'LIMIT') FROM (SELECT a.id FROM partial.a JOIN partial.b USING (k) LIMIT 5) q;
BEGIN;
DECLARE early CURSOR FOR SELECT a.id FROM partial.a JOIN partial.b USING (k);
MOVE 3 FROM early;
CLOSE early;
DECLARE early CURSOR FOR SELECT a.id FROM partial.a JOIN partial.b USING (k);
MOVE 1000 FROM early;
COMMIT;
SET cursor_tuple_fraction = 1;
BEGIN;
DECLARE early CURSOR FOR SELECT a.id FROM partial.a JOIN partial.b USING (k);
MOVE 3 FROM early;
CLOSE early;
DECLARE early CURSOR FOR SELECT a.id FROM partial.a JOIN partial.b USING (k);
MOVE 1000 FROM early;
MOVE ALL FROM early;
COMMIT;
RESET cursor_tuple_fraction;
SET enable_material = off;
SELECT is(string_agg(n::text, ' ' ORDER BY id), (SELECT string_agg(:'native_result', ' ') FROM generate_series(1, 3)), 'Gather starts over')
FROM (SELECT id FROM partial.c WHERE id < 4 OFFSET 0) c CROSS JOIN LATERAL (SELECT count(*) || ' ' || sum(a.id + b.id) AS n FROM partial.a JOIN partial.b USING (k) OFFSET 0) s;
SELECT is(count(*), 21::bigint, 'and before its end')
FROM (SELECT id FROM partial.c WHERE id < 4 OFFSET 0) c CROSS JOIN LATERAL (SELECT a.id FROM partial.a JOIN partial.b USING (k) OFFSET 0 LIMIT 7) s;
RESET enable_material;

-- errors of workers
SELECT throws_ok('SELECT count(10 / (a.id - 1)) FROM partial.a JOIN partial.b USING (k)', '22012', NULL, 'an error above');
SELECT throws_ok('SELECT count(*) FROM partial.a JOIN partial.b USING (k) WHERE 10 / (a.id - 6000) < 100', '22012', NULL, 'an error below');

-- what is shown
CREATE FUNCTION partial.explain_lines(query text) RETURNS SETOF text LANGUAGE plpgsql AS
$$ BEGIN RETURN QUERY EXECUTE 'EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query; END $$;
SELECT ok(text ~ 'Range Key: [ab]\.k' AND text ~ 'Ranges: \d' AND text ~ 'Rows by Process: leader \d+ of \d+ ranges, worker 0 ', 'EXPLAIN (ANALYZE, VERBOSE)')
FROM (SELECT string_agg(line, E'\n') AS text FROM partial.explain_lines('SELECT count(*) FROM partial.a JOIN partial.b USING (k)') line) s;

-- not partial: what workers may not do, keys that are not alike
SELECT ok(partial.shape(query) NOT LIKE '%Gather(%GpuSortOutput%' OR partial.shape(query) LIKE '%Exchange%', query)
FROM unnest(ARRAY[
	'SELECT a.id FROM partial.a JOIN partial.b ON partial.restricted(a.k) = b.k',
	'SELECT a.id FROM (SELECT id, (CASE few % 3 WHEN 0 THEN ''sad'' WHEN 1 THEN ''ok'' ELSE ''glad'' END)::partial.mood AS m FROM partial.a) a JOIN (SELECT id, (CASE four WHEN 0 THEN ''sad'' ELSE ''ok'' END)::partial.mood AS m FROM partial.b) b USING (m)',
	'SELECT a.id FROM partial.a FULL JOIN partial.b USING (k)']) query;

SELECT * FROM finish();
DROP SCHEMA partial CASCADE;
