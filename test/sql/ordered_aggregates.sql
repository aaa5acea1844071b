\set ECHO none
-- Aggregates that want their rows in an order, each value once, or one row by its number, and those of parts of the
-- rows that are put together (src/plan/offer/ordered_aggregates.c, src/plan/offer/presorted.c,
-- src/exec/percentiles.c): which plans, and their answers, which are PostgreSQL's.
SET client_min_messages = warning;
LOAD 'gpusort';
\pset format unaligned
\pset tuples_only on
SELECT * FROM no_plan();

CREATE SCHEMA agg;
-- id is unique; p ends each ORDER BY that is to be total
CREATE TABLE agg.many AS
SELECT i AS id, i * 7919 % 5003 AS p, CASE WHEN i % 11 > 0 THEN i * 31 % 700 END AS k, i % 40 AS g, i % 3 AS h, (i * 37 % 9001)::int8 AS big,
	   (i * 53 % 801)::numeric / 8 AS n, CASE WHEN i % 7 > 0 THEN (i * 97 % 2503) / 16.0::float8 END AS f,
	   't' || i * 41 % 900 AS t, make_interval(secs => i * 67 % 3001) AS v, i % 2 = 0 AS b, '2026-01-01'::date + i % 500 AS d
FROM generate_series(1, 5000) i;
CREATE TABLE agg.none (LIKE agg.many);
CREATE TABLE agg.one AS SELECT * FROM agg.many WHERE id = 77;
CREATE TABLE agg.peers AS SELECT id, p, 5 AS k, 1 AS g, 1 AS h, 5::int8 AS big, 2.5 AS n, 1.5::float8 AS f, 'x'::text AS t, '1 s'::interval AS v, true AS b, d FROM agg.many WHERE id <= 3000;
CREATE TABLE agg.nulls AS SELECT id, p, NULL::int AS k, NULL::int AS g, h, NULL::int8 AS big, NULL::numeric AS n, NULL::float8 AS f, NULL::text AS t, NULL::interval AS v, NULL::bool AS b, NULL::date AS d FROM agg.many WHERE id <= 3000;
ALTER TABLE agg.many SET (parallel_workers = 2);
ALTER TABLE agg.peers SET (parallel_workers = 1);
ALTER TABLE agg.nulls SET (parallel_workers = 1);
ANALYZE agg.many, agg.none, agg.one, agg.peers, agg.nulls;
CREATE COLLATION agg.loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE FUNCTION agg.restricted(int) RETURNS int LANGUAGE plpgsql STABLE PARALLEL RESTRICTED AS 'BEGIN RETURN $1 + 1; END';

SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 1;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SET gpusort.setup_cost = 0;
SET gpusort.row_cost = 0;

-- The columns that the aggregates of the topmost node are computed of, as EXPLAIN shows them.
CREATE FUNCTION agg.computed(query text) RETURNS text LANGUAGE plpgsql
SET gpusort.enable = on SET gpusort.force = on SET gpusort.min_rows = 0
AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (VERBOSE, FORMAT JSON) ' || query INTO plan;
	RETURN plan->0->'Plan'->>'Output';
END $$;

CREATE TABLE agg.query (ordinal serial, shape text, query text);
INSERT INTO agg.query (shape, query) VALUES
	-- DISTINCT
	('Finalize Agg(GpuSortExchange(Gather(GpuSortOutput(Partial Agg(Unique(GpuSort(Seq Scan)))))))', 'SELECT count(DISTINCT k) FROM agg.many'),
	('Finalize Agg(GpuSortExchange(Gather(GpuSortOutput(Partial Agg(Unique(GpuSort(Seq Scan)))))))', 'SELECT count(DISTINCT k), sum(DISTINCT k) * 2, avg(DISTINCT k), max(DISTINCT k) FROM agg.many HAVING count(DISTINCT k) > 3'),
	('Finalize Agg(GpuSortExchange(Gather(GpuSortOutput(Partial Agg(Unique(GpuSort(Seq Scan)))))))', 'SELECT count(DISTINCT n), sum(DISTINCT n) FROM agg.many'),
	('Finalize Agg(GpuSortExchange(Gather(GpuSortOutput(Partial Agg(Unique(GpuSort(Seq Scan)))))))', 'SELECT count(DISTINCT t) FROM agg.many'),
	('Finalize Agg(GpuSortExchange(Gather(GpuSortOutput(Partial Agg(Unique(GpuSort(Seq Scan)))))))', 'SELECT count(DISTINCT id % 90) FROM agg.many'),
	('Agg(GpuSortExchange(Gather(GpuSortOutput(Unique(GpuSort(Seq Scan))))))', 'SELECT sum(DISTINCT f), count(DISTINCT f) FROM agg.many'),
	('Agg(GpuSortExchange(Gather(GpuSortOutput(Unique(GpuSort(Seq Scan))))))', 'SELECT array_agg(DISTINCT k) FROM agg.many'),
	('Agg(GpuSortExchange(Gather(GpuSortOutput(Unique(GpuSort(Seq Scan))))))', 'SELECT string_agg(DISTINCT t COLLATE "C", '','') FROM agg.many'),
	('GpuSortExchange(Gather(GpuSortOutput(Agg(Unique(GpuSort(Seq Scan))))))', 'SELECT g, count(DISTINCT k) FROM agg.many GROUP BY g'),
	('GpuSortExchange(Gather(GpuSortOutput(Agg(Unique(GpuSort(Seq Scan))))))', 'SELECT g, h, array_agg(DISTINCT k ORDER BY k) FROM agg.many GROUP BY g, h HAVING count(DISTINCT k) > 1'),
	-- DISTINCT beside others, or with FILTER
	('Finalize Agg(GpuSortExchange(Gather(GpuSortOutput(Partial Agg(WindowAgg(GpuSort(Seq Scan)))))))', 'SELECT count(DISTINCT k), count(*) FROM agg.many'),
	('Finalize Agg(GpuSortExchange(Gather(GpuSortOutput(Partial Agg(WindowAgg(GpuSort(Seq Scan)))))))', 'SELECT count(DISTINCT n), avg(DISTINCT n), sum(n), max(d), count(f) FILTER (WHERE b) FROM agg.many HAVING count(DISTINCT n) > 3'),
	('Finalize Agg(GpuSortExchange(Gather(GpuSortOutput(Partial Agg(WindowAgg(GpuSort(Seq Scan)))))))', 'SELECT count(DISTINCT k) FILTER (WHERE b) FROM agg.many'),
	('Finalize Agg(GpuSortExchange(Gather(GpuSortOutput(Partial Agg(WindowAgg(GpuSort(Seq Scan)))))))', 'SELECT count(DISTINCT k) FILTER (WHERE b), sum(DISTINCT k) FILTER (WHERE 100 / (id + 1) > 1 OR f IS NULL), count(DISTINCT k), count(*) FROM agg.many'),
	('Finalize Agg(GpuSortExchange(Gather(GpuSortOutput(Partial Agg(WindowAgg(GpuSort(Seq Scan)))))))', 'SELECT count(DISTINCT id % 90), min(id) FROM agg.many'),
	('Nested Loop(Agg(GpuSortExchange(Gather(GpuSortOutput(Unique(GpuSort(Seq Scan)))))), Materialize(Finalize Agg(Gather(Partial Agg(Seq Scan)))))', 'SELECT sum(DISTINCT f), count(*) FROM agg.many'),
	('Agg(GpuSortExchange(Gather(GpuSortOutput(WindowAgg(GpuSort(Seq Scan))))))', 'SELECT string_agg(DISTINCT t, '',''), array_agg(id ORDER BY t, id), count(*) FROM agg.many'),
	('GpuSortExchange(Gather(GpuSortOutput(Agg(WindowAgg(GpuSort(Seq Scan))))))', 'SELECT g, count(DISTINCT k), count(*), sum(big) FROM agg.many GROUP BY g'),
	('GpuSortExchange(Gather(GpuSortOutput(Agg(WindowAgg(GpuSort(Seq Scan))))))', 'SELECT g, h, count(DISTINCT t), array_agg(DISTINCT t ORDER BY t) FILTER (WHERE b AND k > 3), count(*) FROM agg.many GROUP BY g, h HAVING count(DISTINCT t) FILTER (WHERE h = 2) <> 1'),
	('GpuSortExchange(Gather(GpuSortOutput(Agg(WindowAgg(GpuSort(Seq Scan))))))', 'SELECT g, count(DISTINCT k), array_agg(id ORDER BY k, id), mode() WITHIN GROUP (ORDER BY k) FROM agg.many GROUP BY g'),
	-- ordered sets of groups, or beside others
	('GpuSortExchange(Gather(GpuSortOutput(Agg(GpuSort(Seq Scan)))))', 'SELECT g, percentile_disc(0.5) WITHIN GROUP (ORDER BY k) FROM agg.many GROUP BY g'),
	('GpuSortExchange(Gather(GpuSortOutput(Agg(GpuSort(Seq Scan)))))', 'SELECT g, h, percentile_cont(array[0.5, 0.1, NULL]) WITHIN GROUP (ORDER BY f DESC), percentile_disc(h / 2.0) WITHIN GROUP (ORDER BY f DESC) FILTER (WHERE b), count(*), array_agg(f ORDER BY f DESC) FROM agg.many GROUP BY g, h'),
	('GpuSortExchange(Gather(GpuSortOutput(Agg(GpuSort(Seq Scan)))))', 'SELECT g, mode() WITHIN GROUP (ORDER BY t) FROM agg.many GROUP BY g HAVING mode() WITHIN GROUP (ORDER BY t) > ''t3'''),
	('Nested Loop(Agg(GpuSort by number(Gather(GpuSortIngest(Seq Scan)))), Materialize(Finalize Agg(Gather(Partial Agg(Seq Scan)))))', 'SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY k), count(*) FROM agg.many'),
	('Agg(GpuSort(Gather(GpuSortIngest(Seq Scan))))', 'SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY k) FILTER (WHERE b), mode() WITHIN GROUP (ORDER BY k) FROM agg.many'),
	-- ORDER BY
	('Agg(GpuSort(Gather(GpuSortIngest(Seq Scan))))', 'SELECT array_agg(id ORDER BY k, id) FROM agg.many'),
	('Agg(GpuSort(Gather(GpuSortIngest(Seq Scan))))', 'SELECT string_agg(t, '','' ORDER BY t, id), count(*), sum(k), max(d), count(f) FILTER (WHERE b) FROM agg.many'),
	('Agg(GpuSort(Gather(GpuSortIngest(Seq Scan))))', 'SELECT json_agg(id ORDER BY n DESC, id), jsonb_agg(k ORDER BY n DESC) IS NOT NULL, array_agg(id ORDER BY n DESC, id) FILTER (WHERE b) FROM agg.many'),
	('Agg(GpuSort(Gather(GpuSortIngest(Seq Scan))))', 'SELECT array_agg(k ORDER BY id + 1) FROM agg.many'),
	('GpuSortExchange(Gather(GpuSortOutput(Agg(GpuSort(Seq Scan)))))', 'SELECT g, array_agg(id ORDER BY k NULLS FIRST, id), count(*) FROM agg.many GROUP BY g'),
	('GpuSortExchange(Gather(GpuSortOutput(Agg(GpuSort(Seq Scan)))))', 'SELECT g, h, string_agg(t, ''-'' ORDER BY h, k, g, id) FROM agg.many GROUP BY h, g'),
	-- percentiles
	('Agg(GpuSort by number(Gather(GpuSortIngest(Seq Scan))))', 'SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY k) FROM agg.many'),
	('Agg(GpuSort by number(Gather(GpuSortIngest(Seq Scan))))', 'SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY k DESC), percentile_disc(array[0, 1, 0.25, NULL, 0.99]) WITHIN GROUP (ORDER BY k DESC) FROM agg.many'),
	('Agg(GpuSort by number(Gather(GpuSortIngest(Seq Scan))))', 'SELECT percentile_cont(0.37) WITHIN GROUP (ORDER BY f), percentile_cont(array[[0, 1], [0.123, 0.5]]) WITHIN GROUP (ORDER BY f) FROM agg.many'),
	('Agg(GpuSort by number(Gather(GpuSortIngest(Seq Scan))))', 'SELECT percentile_cont(0.37) WITHIN GROUP (ORDER BY k) + 1 AS x FROM agg.many HAVING percentile_cont(0.5) WITHIN GROUP (ORDER BY k) > 3'),
	('Agg(GpuSort by number(Gather(GpuSortIngest(Seq Scan))))', 'SELECT percentile_cont(0.37) WITHIN GROUP (ORDER BY k) FROM agg.many HAVING percentile_cont(0.5) WITHIN GROUP (ORDER BY k) < 3'),
	('Agg(GpuSort by number(Gather(GpuSortIngest(Seq Scan))))', 'SELECT percentile_cont(0.9) WITHIN GROUP (ORDER BY v), percentile_cont(array[0.1, NULL]) WITHIN GROUP (ORDER BY v), percentile_disc(0.3) WITHIN GROUP (ORDER BY v) FROM agg.many'),
	('Agg(GpuSort by number(Gather(GpuSortIngest(Seq Scan))))', 'SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY t), percentile_disc(''{}''::float8[]) WITHIN GROUP (ORDER BY t) FROM agg.many'),
	('Agg(GpuSort by number(Gather(GpuSortIngest(Seq Scan))))', 'SELECT percentile_disc(array[0.01, 0.99]) WITHIN GROUP (ORDER BY n DESC NULLS LAST), percentile_disc(NULL::float8) WITHIN GROUP (ORDER BY n DESC NULLS LAST) FROM agg.many'),
	('Agg(GpuSort by number(Gather(GpuSortIngest(Seq Scan))))', 'SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY k NULLS FIRST) FROM agg.many WHERE h = 1'),
	-- of what is cast to floats: by what it is cast from, but where the cast can fail
	('Agg(GpuSort by number(Gather(GpuSortIngest(Seq Scan))))', 'SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY k), percentile_disc(array[0.5, 0.2]) WITHIN GROUP (ORDER BY k), percentile_cont(array[0.3, NULL]) WITHIN GROUP (ORDER BY k::float8) FROM agg.many'),
	('Agg(GpuSort by number(Gather(GpuSortIngest(Seq Scan))))', 'SELECT percentile_cont(0.51) WITHIN GROUP (ORDER BY n::numeric(10, 1) DESC) FROM agg.many'),
	('Agg(GpuSort by number(Gather(GpuSortIngest(Seq Scan))))', 'SELECT percentile_cont(0.51) WITHIN GROUP (ORDER BY (id * 2.25 - 1000)::numeric(4, -1) DESC NULLS LAST) FROM agg.many WHERE id < 4000'),
	('Agg(GpuSort by number(Gather(GpuSortIngest(Seq Scan))))', 'SELECT percentile_cont(0.51) WITHIN GROUP (ORDER BY n), percentile_cont(0.51) WITHIN GROUP (ORDER BY n::float8) FROM agg.many'),
	('Agg(GpuSort by number(Gather(GpuSortIngest(Seq Scan))))', 'SELECT percentile_cont(0.77) WITHIN GROUP (ORDER BY big * 1000000000000000::int8 / 7), percentile_disc(0.77) WITHIN GROUP (ORDER BY (big * 1000000000000000::int8 / 7)::float8) FROM agg.many'),
	('Agg(GpuSort by number(Gather(GpuSortIngest(Seq Scan))))', 'SELECT percentile_cont(0.4) WITHIN GROUP (ORDER BY (CASE WHEN k % 2 = 0 THEN f WHEN k % 3 = 0 THEN ''NaN'' ELSE ''-0'' END)::float4) FROM agg.many'),
	('Agg(GpuSort by number(Gather(GpuSortIngest(Seq Scan))))', 'SELECT percentile_cont(0.9) WITHIN GROUP (ORDER BY (CASE WHEN k % 7 = 0 THEN ''NaN'' ELSE n END)::numeric(10, 2)) FROM agg.many'),
	('Agg(GpuSort by number(Gather(GpuSortIngest(Seq Scan))))', 'SELECT percentile_cont(array[0.25, 0.5]) WITHIN GROUP (ORDER BY (id % 300)::int2 NULLS FIRST) FROM agg.many HAVING percentile_disc(0.1) WITHIN GROUP (ORDER BY (id % 300)::int2 NULLS FIRST) > 3'),
	-- of several orders: one is served
	('Nested Loop(Nested Loop(Finalize Agg(GpuSortExchange(Gather(GpuSortOutput(Partial Agg(Unique(GpuSort(Seq Scan))))))), Materialize(Finalize Agg(GpuSortExchange(Gather(GpuSortOutput(Partial Agg(Unique(GpuSort(Seq Scan))))))))), Materialize(Finalize Agg(Gather(Partial Agg(Seq Scan)))))', 'SELECT count(DISTINCT k), count(DISTINCT p), sum(DISTINCT p), count(*) FROM agg.many'),
	('Agg(GpuSort(Gather(GpuSortIngest(Seq Scan))))', 'SELECT array_agg(id ORDER BY k, id), array_agg(id ORDER BY p, id), count(*) FROM agg.many HAVING count(*) <> 3'),
	('Agg(GpuSort(Seq Scan))', 'SELECT array_agg(id ORDER BY k, id), array_agg(id ORDER BY p, id) FROM (SELECT * FROM agg.many WHERE random() < 2) s'),
	-- several orders, each apart
	('Nested Loop(Agg(GpuSort(Gather(GpuSortIngest(Seq Scan)))), Materialize(Agg(GpuSort(Gather(GpuSortIngest(Seq Scan))))))', 'SELECT array_agg(id ORDER BY k, id), array_agg(id ORDER BY p, id) FROM agg.many'),
	('Nested Loop(Agg(GpuSort by number(Gather(GpuSortIngest(Seq Scan)))), Materialize(Agg(GpuSort by number(Gather(GpuSortIngest(Seq Scan))))))', 'SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY k), percentile_disc(0.5) WITHIN GROUP (ORDER BY p) FROM agg.many'),
	('Nested Loop(Nested Loop(Agg(GpuSort by number(Gather(GpuSortIngest(Seq Scan)))), Materialize(Agg(GpuSort by number(Gather(GpuSortIngest(Seq Scan)))))), Materialize(Agg(Seq Scan)))', 'SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY k), percentile_disc(0.5) WITHIN GROUP (ORDER BY p), stddev(k) FROM agg.many'),
	('Nested Loop(Finalize Agg(GpuSortExchange(Gather(GpuSortOutput(Partial Agg(Unique(GpuSort(Seq Scan))))))), Materialize(Agg(Seq Scan)))', 'SELECT count(DISTINCT k), sum(f) FROM agg.many'),
	('Nested Loop(Agg(Seq Scan), Nested Loop(Finalize Agg(GpuSortExchange(Gather(GpuSortOutput(Partial Agg(Unique(GpuSort(Seq Scan))))))), Materialize(Finalize Agg(GpuSortExchange(Gather(GpuSortOutput(Partial Agg(Unique(GpuSort(Seq Scan))))))))), Materialize(Agg(GpuSort by number(Gather(GpuSortIngest(Seq Scan))))))', 'SELECT (count(DISTINCT k) - count(DISTINCT p)) * 2 AS d, percentile_cont(array[0.5, 0.1]) WITHIN GROUP (ORDER BY f DESC), count(DISTINCT k) AS again, (SELECT max(id) FROM agg.one) + count(DISTINCT p) AS sub FROM agg.many'),
	-- not where that would not pay if the input took longer than estimated
	('Agg(GpuSortExchange(Gather(GpuSortOutput(WindowAgg(GpuSort(Hash Join(Seq Scan, Hash(Seq Scan))))))))', 'SELECT count(DISTINCT m.k), sum(DISTINCT m.big) FROM agg.many m JOIN agg.one o USING (h)'),
	('Nested Loop(Nested Loop(Agg(Limit(GpuSort(GpuSortExchange(Gather(GpuSortOutput(Limit(Sort(Agg(GpuSort(Seq Scan)))))))))), Materialize(Agg(GpuSort by number(Gather(GpuSortIngest(Seq Scan)))))), Materialize(Agg(GpuSort by number(Gather(GpuSortIngest(Seq Scan))))))', 'SELECT mode() WITHIN GROUP (ORDER BY k), rank(7) WITHIN GROUP (ORDER BY p), cume_dist(7, 8) WITHIN GROUP (ORDER BY k, p) FROM agg.many'),
	('GpuSortExchange(Gather(GpuSortOutput(Agg(WindowAgg(GpuSort(Seq Scan))))))', 'SELECT g, count(DISTINCT t), count(DISTINCT k), count(DISTINCT t) FILTER (WHERE b), mode() WITHIN GROUP (ORDER BY p), rank(7) WITHIN GROUP (ORDER BY length(t)) FROM agg.many GROUP BY g'),
	-- mode of all rows
	('Agg(Limit(GpuSort(GpuSortExchange(Gather(GpuSortOutput(Limit(Sort(Agg(GpuSort(Seq Scan))))))))))', 'SELECT mode() WITHIN GROUP (ORDER BY k) FROM agg.many'),
	('Agg(Limit(GpuSort(GpuSortExchange(Gather(GpuSortOutput(Limit(Sort(Agg(GpuSort(Seq Scan))))))))))', 'SELECT mode() WITHIN GROUP (ORDER BY k DESC) + 1 AS m, mode() WITHIN GROUP (ORDER BY k DESC) FROM agg.many HAVING mode() WITHIN GROUP (ORDER BY k DESC) > 2'),
	('Agg(Limit(GpuSort(GpuSortExchange(Gather(GpuSortOutput(Limit(Sort(Agg(GpuSort(Seq Scan))))))))))', 'SELECT mode() WITHIN GROUP (ORDER BY t COLLATE "C" DESC) FROM agg.many'),
	('Agg(Limit(GpuSort(GpuSortExchange(Gather(GpuSortOutput(Limit(Sort(Agg(GpuSort(Seq Scan))))))))))', 'SELECT mode() WITHIN GROUP (ORDER BY id % 90 DESC NULLS LAST) FROM agg.many'),
	-- where another row would stand
	('Agg(GpuSort by number(Gather(GpuSortIngest(Seq Scan))))', 'SELECT rank(7) WITHIN GROUP (ORDER BY k), percent_rank(7) WITHIN GROUP (ORDER BY k), cume_dist(7) WITHIN GROUP (ORDER BY k) FROM agg.many'),
	('Agg(GpuSort by number(Gather(GpuSortIngest(Seq Scan))))', 'SELECT rank(NULL) WITHIN GROUP (ORDER BY k DESC NULLS LAST), cume_dist(NULL) WITHIN GROUP (ORDER BY k DESC NULLS LAST), rank(-1) WITHIN GROUP (ORDER BY k DESC NULLS LAST), cume_dist(100000) WITHIN GROUP (ORDER BY k DESC NULLS LAST), percentile_disc(0.3) WITHIN GROUP (ORDER BY k DESC NULLS LAST) FROM agg.many'),
	('Agg(GpuSort by number(Gather(GpuSortIngest(Seq Scan))))', 'SELECT rank(''t5'', 400) WITHIN GROUP (ORDER BY t, p DESC), percent_rank(''t5'') WITHIN GROUP (ORDER BY t), cume_dist(''t5'', 400) WITHIN GROUP (ORDER BY t, p DESC) FROM agg.many HAVING rank(''t5'', 400) WITHIN GROUP (ORDER BY t, p DESC) > -1'),
	('Agg(GpuSort by number(Gather(GpuSortIngest(Seq Scan))))', 'SELECT percent_rank(2.5) WITHIN GROUP (ORDER BY n NULLS FIRST), cume_dist(2.5) WITHIN GROUP (ORDER BY n NULLS FIRST), percentile_disc(array[0, 0.9]) WITHIN GROUP (ORDER BY n NULLS FIRST) FROM agg.many'),
	('Agg(Agg(Seq Scan), GpuSort by number(Gather(GpuSortIngest(Seq Scan))))', 'SELECT rank((SELECT max(k) FROM agg.one)) WITHIN GROUP (ORDER BY k) FROM agg.many'),
	-- the same counted: of groups, beside others, or how many values come before
	('Finalize Agg(GpuSortExchange(Gather(GpuSortOutput(Partial Agg(WindowAgg(GpuSort(Seq Scan)))))))', 'SELECT dense_rank(7) WITHIN GROUP (ORDER BY k) FROM agg.many'),
	('Finalize Agg(GpuSortExchange(Gather(GpuSortOutput(Partial Agg(WindowAgg(GpuSort(Seq Scan)))))))', 'SELECT dense_rank(NULL) WITHIN GROUP (ORDER BY k DESC), dense_rank(7) WITHIN GROUP (ORDER BY k DESC), rank(7) WITHIN GROUP (ORDER BY k DESC), count(*) FROM agg.many HAVING dense_rank(NULL) WITHIN GROUP (ORDER BY k DESC) > 0'),
	('Finalize Agg(GpuSortExchange(Gather(GpuSortOutput(Partial Agg(WindowAgg(GpuSort(Seq Scan)))))))', 'SELECT dense_rank(NULL) WITHIN GROUP (ORDER BY k), dense_rank(699) WITHIN GROUP (ORDER BY k), dense_rank(100000) WITHIN GROUP (ORDER BY k), percent_rank(NULL) WITHIN GROUP (ORDER BY k), cume_dist(NULL) WITHIN GROUP (ORDER BY k) FROM agg.many'),
	('Finalize Agg(GpuSortExchange(Gather(GpuSortOutput(Partial Agg(WindowAgg(GpuSort(Seq Scan)))))))', 'SELECT dense_rank(''t5'', 400) WITHIN GROUP (ORDER BY t, p DESC), cume_dist(''t5'', 400) WITHIN GROUP (ORDER BY t, p DESC), rank(NULL, 400) WITHIN GROUP (ORDER BY k DESC, p), rank(7, NULL) WITHIN GROUP (ORDER BY k, f NULLS FIRST) FROM agg.many'),
	('Finalize Agg(GpuSortExchange(Gather(GpuSortOutput(Partial Agg(WindowAgg(GpuSort(Seq Scan)))))))', 'SELECT dense_rank(7) WITHIN GROUP (ORDER BY k NULLS FIRST) FILTER (WHERE b), dense_rank(7) WITHIN GROUP (ORDER BY k NULLS FIRST) FILTER (WHERE h = 1), percent_rank(7) WITHIN GROUP (ORDER BY k NULLS FIRST) FILTER (WHERE h = 5) FROM agg.many'),
	('Finalize Agg(GpuSortExchange(Gather(GpuSortOutput(Partial Agg(WindowAgg(GpuSort(Seq Scan)))))))', 'SELECT dense_rank(''NaN'') WITHIN GROUP (ORDER BY CASE WHEN id % 9 = 0 THEN ''NaN'' ELSE f END DESC), dense_rank(''NaN'') WITHIN GROUP (ORDER BY CASE WHEN id % 9 = 0 THEN ''NaN'' ELSE f END DESC) + cume_dist(''NaN'') WITHIN GROUP (ORDER BY f) FROM agg.many'),
	('Nested Loop(Agg(GpuSort by number(Gather(GpuSortIngest(Seq Scan)))), Materialize(Agg(GpuSort by number(Gather(GpuSortIngest(Seq Scan))))))', 'SELECT rank(7) WITHIN GROUP (ORDER BY k), percent_rank(8) WITHIN GROUP (ORDER BY p) FROM agg.many'),
	('Agg(GpuSort(Gather(GpuSortIngest(Seq Scan))))', 'SELECT cume_dist(2.50) WITHIN GROUP (ORDER BY n) FILTER (WHERE b) FROM agg.many'),
	('GpuSortExchange(Gather(GpuSortOutput(Agg(GpuSort(Seq Scan)))))', 'SELECT g, rank(7) WITHIN GROUP (ORDER BY p), percent_rank(7) WITHIN GROUP (ORDER BY p), cume_dist(7) WITHIN GROUP (ORDER BY p), count(*) FROM agg.many GROUP BY g'),
	('GpuSortExchange(Gather(GpuSortOutput(Agg(GpuSort(Seq Scan)))))', 'SELECT g, h, rank(NULL) WITHIN GROUP (ORDER BY k DESC), percent_rank(30) WITHIN GROUP (ORDER BY k DESC) FILTER (WHERE b), cume_dist(''t5'', 1.5) WITHIN GROUP (ORDER BY t, f), percentile_disc(0.5) WITHIN GROUP (ORDER BY v) FROM agg.many GROUP BY g, h HAVING rank(NULL) WITHIN GROUP (ORDER BY k DESC) > -1'),
	('GpuSortExchange(Gather(GpuSortOutput(Agg(GpuSort(Seq Scan)))))', 'SELECT g, cume_dist(''NaN'') WITHIN GROUP (ORDER BY CASE WHEN id % 9 = 0 THEN ''NaN'' ELSE f END), rank(''NaN'') WITHIN GROUP (ORDER BY f NULLS FIRST), percent_rank(7) WITHIN GROUP (ORDER BY k) FILTER (WHERE k > 100000) FROM agg.many GROUP BY g'),
	('GpuSortExchange(Gather(GpuSortOutput(Agg(GpuSort(Seq Scan)))))', 'SELECT g, rank(2) WITHIN GROUP (ORDER BY 1000 / k) FILTER (WHERE k <> 0) FROM agg.many GROUP BY g'),
	('GpuSortExchange(Gather(GpuSortOutput(Agg(WindowAgg(GpuSort(Seq Scan))))))', 'SELECT g, dense_rank(7) WITHIN GROUP (ORDER BY p), rank(7) WITHIN GROUP (ORDER BY k), array_agg(id ORDER BY p, id) FROM agg.many GROUP BY g'),
	('GpuSortExchange(Gather(GpuSortOutput(Agg(WindowAgg(GpuSort(Seq Scan))))))', 'SELECT g, dense_rank(NULL, ''t5'') WITHIN GROUP (ORDER BY k DESC, t) FILTER (WHERE b) FROM agg.many GROUP BY g'),
	-- of parts
	('Finalize Agg(GpuSortExchange(Gather(GpuSortOutput(Partial Agg(WindowAgg(GpuSort(Seq Scan)))))))', 'SELECT count(*), sum(x), avg(x), max(x) FILTER (WHERE x < 4000) FROM (SELECT lag(id) OVER (PARTITION BY g ORDER BY k, id) AS x FROM agg.many) s'),
	('Finalize Agg(Agg(Seq Scan), GpuSortExchange(Gather(GpuSortOutput(Partial Agg(Agg(Unique(GpuSort(Seq Scan))))))))', 'SELECT count(*), sum(c) AS c, sum(c) + avg(c) FROM (SELECT g, count(DISTINCT k) AS c FROM agg.many GROUP BY g OFFSET 0) s HAVING sum(c) > (SELECT min(k) FROM agg.one)'),
	-- not
	('Agg(GpuSortExchange(Gather(GpuSortOutput(Subquery Scan(WindowAgg(GpuSort(Seq Scan)))))))', 'SELECT sum(x::float8), count(*) FROM (SELECT lag(id) OVER (PARTITION BY g ORDER BY k, id) AS x FROM agg.many) s'),
	('Agg(GpuSortExchange(Gather(GpuSortOutput(Subquery Scan(WindowAgg(GpuSort(Seq Scan)))))))', 'SELECT sum(agg.restricted(x)), count(*) FROM (SELECT lag(id) OVER (PARTITION BY g ORDER BY k, id) AS x FROM agg.many) s');

-- These stay as they are.
CREATE TABLE agg.left (ordinal serial, query text);
INSERT INTO agg.left (query) VALUES
	('SELECT g, count(DISTINCT g), array_agg(DISTINCT k ORDER BY k DESC) FROM agg.many GROUP BY g'),
	('SELECT count(DISTINCT k) FILTER (WHERE random() < 2), count(*) FROM agg.many'),
	('SELECT count(DISTINCT k) FILTER (WHERE id <> (SELECT max(id) FROM agg.one WHERE id <> m.id)), count(*) FROM agg.many m'),
	('SELECT count(DISTINCT k), sum(f) FROM agg.many HAVING sum(id) > 0'),
	('SELECT count(DISTINCT k), sum(f) FROM agg.many WHERE f < 0'),
	('SELECT array_agg(id ORDER BY k, id), sum(f::numeric::float8 * 0) FROM agg.many'),
	('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY k), percentile_disc(0.5) WITHIN GROUP (ORDER BY p), stddev(k) FROM agg.many HAVING count(*) <> 7'),
	('SELECT g, dense_rank(g) WITHIN GROUP (ORDER BY p), rank(g + 1) WITHIN GROUP (ORDER BY p) FROM agg.many GROUP BY g'),
	('SELECT g, dense_rank(7) WITHIN GROUP (ORDER BY p + 0 * random()::int) FROM agg.many GROUP BY g'),
	('SELECT count(DISTINCT 1000 / k) FILTER (WHERE k <> 0) FROM agg.many'),
	('SELECT dense_rank(2) WITHIN GROUP (ORDER BY 1000 / k) FILTER (WHERE k <> 0) FROM agg.many'),
	('SELECT g, array_agg(p ORDER BY 1000 / k, id) FILTER (WHERE k <> 0) FROM agg.many GROUP BY g'),
	('SELECT count(DISTINCT k + 0 * floor(random())::int) FROM agg.many'),
	('SELECT count(DISTINCT k) FROM agg.many WHERE k = 5'),
	('SELECT g, h, count(DISTINCT k) FROM agg.many GROUP BY GROUPING SETS ((g), (h))');

-- Aggregates that share the states of others, equal ones, and the same beside what is counted or apart
CREATE TABLE agg.shared (ordinal serial, query text);
INSERT INTO agg.shared (query) VALUES
	-- constants to group by, which are no columns from 16 on: without rows there is no group
	('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY k) FROM agg.many GROUP BY (SELECT 1)'),
	('SELECT mode() WITHIN GROUP (ORDER BY k), count(DISTINCT k) FROM agg.many GROUP BY 0.00::numeric'),
	('SELECT sum(big), avg(big), percent_rank(5) WITHIN GROUP (ORDER BY k) FROM agg.many'),
	('SELECT sum(big), avg(big), cume_dist(5) WITHIN GROUP (ORDER BY k) FROM agg.many GROUP BY g'),
	('SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY f), percentile_cont(ARRAY[0.1, 0.9]) WITHIN GROUP (ORDER BY f), cume_dist(100) WITHIN GROUP (ORDER BY f) FROM agg.many'),
	('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY k), percentile_disc(ARRAY[0.1, 0.9]) WITHIN GROUP (ORDER BY k), cume_dist(100) WITHIN GROUP (ORDER BY k), percent_rank(100) WITHIN GROUP (ORDER BY k), count(*) FROM agg.many GROUP BY h'),
	('SELECT sum(DISTINCT big), avg(DISTINCT big), count(DISTINCT big), percent_rank(5) WITHIN GROUP (ORDER BY big) FROM agg.many'),
	('SELECT sum(DISTINCT big), avg(DISTINCT big), sum(big), avg(big) FROM agg.many'),
	('SELECT h, sum(DISTINCT big), avg(DISTINCT big), sum(big), avg(big), dense_rank(7) WITHIN GROUP (ORDER BY big) FROM agg.many GROUP BY h'),
	('SELECT percent_rank(5) WITHIN GROUP (ORDER BY k), cume_dist(5) WITHIN GROUP (ORDER BY k), percent_rank(5) WITHIN GROUP (ORDER BY k) + 1, count(*) FROM agg.many'),
	('SELECT percent_rank(5) WITHIN GROUP (ORDER BY k), sum(big) FROM agg.many HAVING percent_rank(5) WITHIN GROUP (ORDER BY k) < 1 AND count(*) > 0'),
	('SELECT percent_rank(5) WITHIN GROUP (ORDER BY k), cume_dist(5) WITHIN GROUP (ORDER BY p), sum(n), avg(n), stddev(n) FROM agg.many'),
	('SELECT g, percent_rank(5) WITHIN GROUP (ORDER BY k), cume_dist(5) WITHIN GROUP (ORDER BY p), sum(n), avg(n), stddev(n) FROM agg.many GROUP BY g ORDER BY avg(n), g'),
	('SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY k), count(DISTINCT p), sum(big), avg(big), variance(big), stddev(big) FROM agg.many'),
	('SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY k), percentile_cont(0.2) WITHIN GROUP (ORDER BY p), sum(DISTINCT k), avg(DISTINCT k), sum(n), avg(n) FROM agg.many'),
	('SELECT mode() WITHIN GROUP (ORDER BY k), mode() WITHIN GROUP (ORDER BY k) + 1 FROM agg.many'),
	('SELECT mode() WITHIN GROUP (ORDER BY k), sum(k), avg(k) FROM agg.many'),
	('SELECT rank(3) WITHIN GROUP (ORDER BY k), rank(4) WITHIN GROUP (ORDER BY k), dense_rank(4) WITHIN GROUP (ORDER BY k), sum(k), avg(k), count(k) FROM agg.many'),
	('SELECT count(*) FILTER (WHERE k < 5), count(*), percent_rank(5) WITHIN GROUP (ORDER BY k) FROM agg.many'),
	('SELECT array_agg(k ORDER BY k), string_agg(t, '','' ORDER BY t), string_agg(t, '','' ORDER BY t), sum(k ORDER BY k), avg(k ORDER BY k) FROM agg.many WHERE id < 300'),
	('SELECT sum(k ORDER BY k), avg(k ORDER BY k), sum(big ORDER BY k), avg(big ORDER BY k), sum(big), avg(big), percent_rank(3) WITHIN GROUP (ORDER BY k) FROM agg.many'),
	('SELECT sum(k), avg(k), percent_rank(5) WITHIN GROUP (ORDER BY k) FILTER (WHERE b), cume_dist(5) WITHIN GROUP (ORDER BY k) FILTER (WHERE b) FROM agg.many'),
	('SELECT count(DISTINCT k) FILTER (WHERE b), sum(DISTINCT k) FILTER (WHERE b), avg(DISTINCT k) FILTER (WHERE b), avg(k), sum(k) FROM agg.many'),
	('SELECT x, (SELECT percent_rank(5) WITHIN GROUP (ORDER BY k) + sum(big) / avg(big) FROM agg.many WHERE h <> x) FROM generate_series(1, 3) x'),
	('SELECT sum(big), avg(big), percent_rank(5) WITHIN GROUP (ORDER BY k) FROM agg.none'),
	('SELECT percent_rank(5) WITHIN GROUP (ORDER BY k) FROM agg.many GROUP BY ROLLUP (g, h)'),
	('SELECT g, p, sum(big), avg(big), percent_rank(5) WITHIN GROUP (ORDER BY k) FROM agg.many GROUP BY GROUPING SETS ((g), (p))'),
	('SELECT sum(s), avg(s), percent_rank(5) WITHIN GROUP (ORDER BY s) FROM (SELECT sum(big) OVER (PARTITION BY g ORDER BY id) AS s FROM agg.many) q'),
	('SELECT max(s), min(s), sum(s), avg(s), count(*) FROM (SELECT sum(big) OVER (ORDER BY id) AS s FROM agg.many) q'),
	('SELECT sum(big), avg(big), sum(big) + 1, count(DISTINCT k) FROM agg.many'),
	-- columns that a condition makes equal
	('SELECT count(DISTINCT k), array_agg(DISTINCT same) FROM (SELECT k, k AS same FROM agg.many OFFSET 0) s WHERE k = same'),
	('SELECT count(DISTINCT k), array_agg(DISTINCT same), count(*) FROM (SELECT k, k AS same FROM agg.many OFFSET 0) s WHERE k = same'),
	('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY k), percentile_disc(0.1) WITHIN GROUP (ORDER BY same) FROM (SELECT k, k AS same FROM agg.many OFFSET 0) s WHERE k = same'),
	('SELECT mode() WITHIN GROUP (ORDER BY k), mode() WITHIN GROUP (ORDER BY same) FROM (SELECT k, k AS same FROM agg.many OFFSET 0) s WHERE k = same'),
	('SELECT k, array_agg(DISTINCT same), count(DISTINCT big), count(*) FROM (SELECT k, big, k AS same FROM agg.many OFFSET 0) s WHERE k = same GROUP BY k'),
	-- strings that are equal by the column's collation, and are not by another
	('SELECT count(DISTINCT u), count(DISTINCT u COLLATE "C"), count(*) FROM (SELECT (CASE WHEN b THEN upper(t) ELSE t END) COLLATE agg.loose AS u FROM agg.many OFFSET 0) s'),
	('SELECT count(DISTINCT u COLLATE "C"), dense_rank(''t5'') WITHIN GROUP (ORDER BY t), count(*) FROM (SELECT t, (CASE WHEN b THEN upper(t) ELSE t END) COLLATE agg.loose AS u FROM agg.many OFFSET 0) s');

-- From 16 on PostgreSQL sorts for some of these itself, or has other nodes between: their rows are compared alone.
CREATE FUNCTION agg.shape_or(expected text, query text) RETURNS text LANGUAGE sql AS $$
	SELECT CASE WHEN current_setting('server_version_num')::int < 160000 OR (query ~ 'percentile|rank' AND query !~ 'DISTINCT') THEN gs.shape(query) ELSE expected END $$;
SELECT is(agg.shape_or(shape, query), shape, query) FROM agg.query ORDER BY ordinal;
SELECT unalike(gs.shape(query), '%by number%', query) FROM agg.left WHERE query ~ 'percentile|rank' ORDER BY ordinal;
SELECT unalike(gs.shape(query), '%Agg(Unique%', query) FROM agg.left ORDER BY ordinal;
SELECT unalike(gs.shape(query), '%Agg(WindowAgg%', query) FROM agg.left WHERE query !~ 'DISTINCT g' ORDER BY ordinal;

-- The answers: forced, in parallel, and in one process; with all kinds of rows.
CREATE VIEW agg.all AS
SELECT ordinal, replace(query, 'agg.many', tab) AS query
FROM (SELECT ordinal, query FROM agg.query UNION ALL SELECT 1000 + ordinal, query FROM agg.left UNION ALL SELECT 2000 + ordinal, query FROM agg.shared) q,
	 (VALUES ('agg.many'), ('agg.none'), ('agg.one'), ('agg.peers'), ('agg.nulls')) t (tab)
WHERE ordinal < 2000 OR tab IN ('agg.many', 'agg.none');
-- PostgreSQL's answers are computed once
CREATE TABLE agg.answer AS SELECT *, gs.native_sorted_rows(query) AS native FROM agg.all;
SELECT is(gs.difference(native, gs.forced_sorted_rows(query)), 'same', query) FROM agg.answer ORDER BY ordinal, query COLLATE "C";
SELECT is(gs.difference(native, gs.alone_sorted_rows(query)), 'same', 'alone: ' || query) FROM agg.answer ORDER BY ordinal, query COLLATE "C";
SELECT is(gs.difference(native, gs.refused_sorted_rows(query)), 'same', 'refused: ' || query) FROM agg.answer WHERE query ~ 'agg.many' ORDER BY ordinal, query COLLATE "C";

-- how it looks
SELECT is(CASE WHEN current_setting('server_version_num')::int < 160000 THEN agg.computed('SELECT array_agg(id ORDER BY k, id), count(*) FROM agg.many') ELSE '["array_agg(id)", "count(*)"]' END,
		  '["array_agg(id)", "count(*)"]', 'what is sorted by is no argument any more');
SELECT is(CASE WHEN current_setting('server_version_num')::int < 160000 THEN agg.computed('SELECT g, count(DISTINCT k), count(DISTINCT k) FILTER (WHERE b), count(*) FROM agg.none GROUP BY g') ELSE
		  '["g", "(count(k) FILTER (WHERE ((row_number() OVER (?)) = ''1''::bigint)))", "(count(k) FILTER (WHERE (((count(*) FILTER (WHERE b) OVER (?)) = ''1''::bigint) AND b)))", "(count(*))"]' END,
		  '["g", "(count(k) FILTER (WHERE ((row_number() OVER (?)) = ''1''::bigint)))", "(count(k) FILTER (WHERE (((count(*) FILTER (WHERE b) OVER (?)) = ''1''::bigint) AND b)))", "(count(*))"]', 'what sees the first row of each value');
SELECT is(agg.computed('SELECT array_agg(id ORDER BY k), array_agg(id ORDER BY p) FROM agg.many HAVING count(*) > 0')::jsonb->>1, 'array_agg(id ORDER BY p)', 'what does not come in order stays');

-- fractions: those that there are not, errors included
SET gpusort.force = on;
SET gpusort.min_rows = 0;
SELECT throws_ok(format('SELECT percentile_disc(%s) WITHIN GROUP (ORDER BY k) FROM %s', fraction, tab), '22003', NULL, fraction || ' of ' || tab)
FROM (VALUES ('1.5'), ('-0.1'), ('''NaN''')) f (fraction), (VALUES ('agg.many'), ('agg.none')) t (tab) ORDER BY fraction, tab;
SELECT throws_ok('SELECT percentile_cont(array[0.5, 2]) WITHIN GROUP (ORDER BY f) FROM agg.many', '22003', 'percentile value 2 is not between 0 and 1', 'an array with one');
SELECT lives_ok('SELECT percentile_cont(array[0.5, 2]) WITHIN GROUP (ORDER BY f) FROM agg.none', 'of no rows, as PostgreSQL has it');
SELECT throws_ok('SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY (id || ''e305'')::numeric(1000, 0)) FROM agg.many', '22003', NULL, 'a numeric that is no float');
SELECT throws_ok('SELECT count(DISTINCT k), count(DISTINCT 1 / (id - 4000)) FROM agg.many', '22012', 'division by zero', 'an error in an argument of another order');
SELECT throws_ok('SELECT count(DISTINCT 1 / (id - 4000)) FROM agg.many', '22012', 'division by zero', 'an error in an argument');
SELECT throws_ok('SELECT count(DISTINCT k) FILTER (WHERE 1 / (id - 4000) = 0), count(*) FROM agg.many', '22012', 'division by zero', 'an error in a filter');
SELECT throws_ok('SELECT g, percentile_disc(g) WITHIN GROUP (ORDER BY k) FROM agg.many GROUP BY g', '22003', NULL, 'a fraction of a group');
SELECT throws_ok('SELECT sum(x) FROM (SELECT 10 / (max(id) - 4998) AS x FROM agg.many GROUP BY g) s', '22012', 'division by zero', 'an error in a part');

SELECT throws_ok('SELECT rank(1 / (count(*) - count(*))) WITHIN GROUP (ORDER BY k) FROM agg.many', '42803', NULL, 'an aggregate in the row that is not among them');
SELECT throws_ok('SELECT g, rank(2) WITHIN GROUP (ORDER BY 1000 / k) FROM agg.many GROUP BY g', '22012', 'division by zero', 'an error in the rows of a group');
SELECT throws_ok('SELECT dense_rank(2) WITHIN GROUP (ORDER BY 1000 / k) FROM agg.many', '22012', 'division by zero', 'an error in a value that is counted');
SELECT throws_ok('SELECT rank(1 / (SELECT 0)) WITHIN GROUP (ORDER BY k) FROM agg.many', '22012', 'division by zero', 'an error in the row that is not among them');

-- sums that do not fit their type, and those that do at the end
SELECT is(gs.forced_sorted_rows(query), gs.native_sorted_rows(query), query) FROM (VALUES
	('SELECT sum(DISTINCT big + 9223372036854760000) FROM agg.many'),
	('SELECT sum(x) FROM (SELECT max(big) + 9223372036854760000 AS x FROM agg.many GROUP BY g) s')) v (query);
SELECT throws_ok('SELECT sum(x)::int8 FROM (SELECT max(big) + 9223372036854760000 AS x FROM agg.many GROUP BY g) s', '22003', 'bigint out of range', 'too large');

-- read again: rescans, LATERAL, subqueries, cursors, LIMIT above
SELECT is(gs.forced_sorted_rows(query), gs.native_sorted_rows(query), query) FROM (VALUES
	('SELECT x, s.* FROM (VALUES (0), (0.3), (1), (NULL)) f (x), LATERAL (SELECT percentile_disc(x) WITHIN GROUP (ORDER BY k) FROM agg.many) s'),
	('SELECT x, s.* FROM generate_series(0, 3) x, LATERAL (SELECT count(DISTINCT k), count(DISTINCT p), max(id), percentile_disc(0.3) WITHIN GROUP (ORDER BY n) FROM agg.many WHERE h <> x) s'),
	('WITH c AS MATERIALIZED (SELECT * FROM agg.many WHERE id > 7) SELECT count(DISTINCT k), count(DISTINCT p), count(*) FROM c'),
	('SELECT count(DISTINCT k), count(DISTINCT p), row_number() OVER (ORDER BY count(DISTINCT k)), sum(count(DISTINCT p)) OVER () FROM agg.many ORDER BY 1 LIMIT 3'),
	('SELECT count(DISTINCT k), count(DISTINCT p) FROM agg.many UNION ALL SELECT count(DISTINCT p), count(DISTINCT h) FROM agg.many'),
	('SELECT (SELECT count(DISTINCT m.k) + count(DISTINCT m.p) FROM agg.many m WHERE m.h <> o.h), id FROM agg.one o'),
	('SELECT count(DISTINCT k), count(DISTINCT big) FROM agg.many WHERE false'),
	('SELECT x, s.* FROM generate_series(0, 3) x, LATERAL (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY k), percentile_cont(0.1) WITHIN GROUP (ORDER BY k) FROM agg.many WHERE h <> x) s'),
	('SELECT x, s.* FROM generate_series(0, 3) x, LATERAL (SELECT count(DISTINCT k) FROM agg.many WHERE h <> x) s'),
	('SELECT x, (SELECT count(DISTINCT k) FROM agg.many WHERE g = x) FROM generate_series(1, 4) x'),
	('SELECT x, s.* FROM (VALUES (0), (3), (699), (NULL), (9000)) f (x), LATERAL (SELECT rank(x) WITHIN GROUP (ORDER BY k), cume_dist(x) WITHIN GROUP (ORDER BY k), percentile_disc(0.1) WITHIN GROUP (ORDER BY k) FROM agg.many) s'),
	('SELECT x, s.* FROM generate_series(0, 4) x, LATERAL (SELECT percent_rank(x) WITHIN GROUP (ORDER BY f) FROM agg.many WHERE h <> x) s'),
	('SELECT x, (SELECT mode() WITHIN GROUP (ORDER BY k) FROM agg.many WHERE h <> x) FROM generate_series(0, 4) x'),
	('SELECT mode() WITHIN GROUP (ORDER BY k) FROM (SELECT k FROM agg.many ORDER BY k OFFSET 0) s'),
	('SELECT x, (SELECT array_agg(id ORDER BY p, id) FROM agg.many WHERE g = x) FROM generate_series(1, 4) x'),
	('SELECT (SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY k) FROM agg.many), (SELECT count(DISTINCT k) FROM agg.many)'),
	('SELECT count(DISTINCT k) FROM agg.many LIMIT 1'),
	('SELECT g, count(DISTINCT k) FROM agg.many GROUP BY g ORDER BY g LIMIT 3'),
	('WITH c AS MATERIALIZED (SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY k) AS m FROM agg.many) SELECT count(*) FROM agg.many, c WHERE k < m'),
	('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY k) FROM (SELECT k FROM agg.many ORDER BY k OFFSET 0) s'),
	('SELECT x, s.* FROM generate_series(0, 3) x, LATERAL (SELECT count(DISTINCT k) FILTER (WHERE k <> x), count(DISTINCT k), count(*) FROM agg.many WHERE h <> x) s'),
	('SELECT x, s.* FROM generate_series(0, 3) x, LATERAL (SELECT g, percentile_disc(0.5) WITHIN GROUP (ORDER BY k) FROM agg.many WHERE h <> x GROUP BY g) s'),
	('SELECT count(DISTINCT k) FILTER (WHERE id > (SELECT min(id) + 40 FROM agg.many)), count(*) FROM agg.many'),
	('SELECT count(*) FROM (SELECT g, count(DISTINCT k), sum(k) FROM agg.many GROUP BY g ORDER BY g LIMIT 3) s'),
	('SELECT count(DISTINCT m.k), sum(m.k) FROM agg.many m JOIN agg.peers USING (id)'),
	('SELECT count(DISTINCT m.k) FROM agg.many m JOIN agg.peers USING (id)')) v (query);
-- rows that cannot be read from any number on
SET gpusort.verify_rows = on;
SELECT is(gs.forced_sorted_rows(query), gs.native_sorted_rows(query), 'verified: ' || query) FROM agg.query WHERE query ~ 'rank' ORDER BY ordinal;
RESET gpusort.verify_rows;
SELECT is(gs.forced_sorted_rows(query), gs.native_sorted_rows(query), query) FROM (VALUES
	('SELECT rank(repeat(''x'', 300) || ''t5'') WITHIN GROUP (ORDER BY x), cume_dist(repeat(''x'', 300) || ''t5'') WITHIN GROUP (ORDER BY x) FROM (SELECT CASE WHEN id % 3 > 0 THEN repeat(''x'', 300) || t ELSE ''y'' || t END AS x FROM agg.many OFFSET 0) s'),
	('SELECT rank(400) WITHIN GROUP (ORDER BY x), percentile_disc(0.4) WITHIN GROUP (ORDER BY x) FROM (SELECT p + 1e-40 AS x FROM agg.many OFFSET 0) s')) v (query);
-- rows that are read once for each order must be the same each time
SELECT is(gs.forced_plan(format('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY k), percentile_disc(0.5) WITHIN GROUP (ORDER BY p) FROM %s', rows)) LIKE '%Nested Loop%', apart, 'read twice: ' || rows)
FROM (VALUES ('agg.many', true), ('(SELECT k, p FROM agg.many LIMIT 4000) s', false), ('(SELECT k, p FROM agg.many OFFSET 10) s', false), ('agg.many WHERE (k, p) NOT IN (SELECT k, p FROM agg.one OFFSET 0)', true),
	('(SELECT k, p FROM agg.many UNION ALL (SELECT k, p FROM agg.one LIMIT 1)) s', false), ('(SELECT k, p FROM agg.many UNION ALL (SELECT DISTINCT ON (h) k, p FROM agg.one)) s', false),
	('(SELECT k, p FROM agg.many UNION ALL (SELECT DISTINCT k, p FROM agg.one)) s', true), ('(SELECT k, p FROM agg.many UNION ALL SELECT k, (array_agg(p))[1] FROM agg.one GROUP BY k) s', false),
	('(SELECT k, p FROM agg.many UNION ALL SELECT k, 1 FROM agg.one GROUP BY k HAVING sum(f) > 0) s', false), ('(SELECT k, p FROM agg.many UNION ALL SELECT k, max(p) FROM agg.one GROUP BY k) s', true),
	('(SELECT k, p FROM agg.many UNION ALL SELECT k, (row_number() OVER (ORDER BY h))::int FROM agg.one) s', false), ('agg.many WHERE (k, p) NOT IN (SELECT k, (rank() OVER (ORDER BY h))::int FROM agg.one)', true),
	('agg.many WHERE (k, p) NOT IN (SELECT k, p FROM agg.one LIMIT 1)', false), ('agg.many WHERE (k, p) NOT IN (SELECT k, p FROM agg.one)', true),
	('agg.many WHERE (k, p) NOT IN (SELECT k, p FROM agg.one WHERE random() < 2)', false)) v (rows, apart);
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY k) FROM agg.many;
CREATE TEMPORARY TABLE fetched (m int);
CREATE FUNCTION agg.fetch(how text) RETURNS int LANGUAGE plpgsql AS $$ DECLARE c refcursor := 'c'; m int; BEGIN EXECUTE format('FETCH %s FROM c', how) INTO m; RETURN m; END $$;
SELECT is(concat_ws(' ', agg.fetch('NEXT'), coalesce(agg.fetch('NEXT'), -1), agg.fetch('PRIOR'), agg.fetch('FIRST')), '348 -1 348 348', 'a cursor that can scroll');
ROLLBACK;
PREPARE half (float8) AS SELECT percentile_disc($1) WITHIN GROUP (ORDER BY k) FROM agg.many;
SET plan_cache_mode = force_generic_plan;
EXECUTE half (0.5);
EXECUTE half (0.9);
RESET plan_cache_mode;

-- by the model alone; from 16 on PostgreSQL has Sorts for other aggregates, which are taken by themselves
RESET gpusort.force;
RESET gpusort.min_rows;
RESET gpusort.setup_cost;
RESET gpusort.row_cost;
SET parallel_setup_cost = 1000;
SELECT ok(NOT gs.uses(query), 'few rows are left to PostgreSQL: ' || query) FROM agg.query WHERE query ~ 'percentile' AND query !~ 'GROUP BY|rank|DISTINCT' ORDER BY ordinal;
CREATE TABLE agg.large AS SELECT i AS id, i::int8 * 7919 % 100003 AS k, i % 1000 AS g FROM generate_series(1, 200000) i;
ANALYZE agg.large;
SELECT ok(gs.uses(query), query)
FROM (VALUES ('SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY k) FROM agg.large'), ('SELECT array_agg(id ORDER BY k) FROM agg.large'), ('SELECT count(DISTINCT k) FROM agg.large'), ('SELECT mode() WITHIN GROUP (ORDER BY k % 100) FROM agg.large'),
	('SELECT g, count(DISTINCT k), count(*) FROM agg.large GROUP BY g'), ('SELECT g, percentile_disc(0.5) WITHIN GROUP (ORDER BY k) FROM agg.large GROUP BY g')) v (query);
SELECT is(gs.sorted_rows(query), gs.native_sorted_rows(query), query)
FROM (VALUES ('SELECT percentile_cont(array[0.5, 0.001, 0.999, 0.25]) WITHIN GROUP (ORDER BY k) FROM agg.large'), ('SELECT md5(array_agg(id ORDER BY k, id)::text) FROM agg.large'), ('SELECT count(DISTINCT k), sum(DISTINCT k) FROM agg.large'),
	('SELECT g, count(DISTINCT k) FROM agg.large GROUP BY g'), ('SELECT g, count(DISTINCT k), sum(k), count(*) FROM agg.large GROUP BY g'), ('SELECT count(DISTINCT k), sum(k), count(*) FROM agg.large'),
	('SELECT mode() WITHIN GROUP (ORDER BY g) FROM agg.large'), ('SELECT g, percentile_disc(0.9) WITHIN GROUP (ORDER BY k), mode() WITHIN GROUP (ORDER BY k) FROM agg.large GROUP BY g')) v (query);
-- a constant is no column to find a row by
SELECT is(gs.forced_sorted_rows(query), gs.native_sorted_rows(query), query) FROM (VALUES
	('SELECT rank(3, 7) WITHIN GROUP (ORDER BY 3, k), cume_dist(4, 7) WITHIN GROUP (ORDER BY 3, k) FROM agg.many'),
	('SELECT rank(3, (SELECT 7)) WITHIN GROUP (ORDER BY 3, k), percentile_disc(0.5) WITHIN GROUP (ORDER BY k) FROM agg.many')) v (query);
SELECT * FROM finish();
DROP SCHEMA agg CASCADE;
