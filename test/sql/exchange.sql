\set ECHO none
-- What is above a sort, run in every process: GpuSortExchange.
SET client_min_messages = warning;
LOAD 'gpusort';
\pset format unaligned
\pset tuples_only on

-- Groups of a dozen, a few large ones, NULLs, values that are equal and look different, texts that
-- begin alike, longer than a key holds.
CREATE TABLE gs.x AS
SELECT i AS id, (i::bigint * 7919) % 30011 AS k, CASE WHEN i % 7 = 0 THEN NULL ELSE i % 100 END AS few, (i * 31) % 2000 AS g,
	   CASE i % 11 WHEN 0 THEN 'NaN' WHEN 1 THEN '-0' WHEN 2 THEN '0' WHEN 3 THEN NULL WHEN 4 THEN 'Infinity' ELSE (i % 50) / 3.0 END::float8 AS f,
	   CASE WHEN i % 13 = 0 THEN NULL WHEN i % 2 = 0 THEN (i % 401)::numeric ELSE (i % 401)::numeric(10, 2) END AS n,
	   (repeat('a common beginning, ', 8) || i % 301) COLLATE "C" AS t,
	   ((ARRAY['a', 'A', 'ä', 'b', 'B', 'Ä-', 'z'])[1 + i % 7] || i % 97) COLLATE "en-x-icu" AS u,
	   date '2000-01-01' + i % 365 AS d, i % 3 = 0 AS b, repeat('w', i % 90) AS pad
FROM generate_series(1, 12000) i;
-- The other side of joins: some keys many times on both sides, some on one side only, NULLs.
CREATE TABLE gs.y AS
SELECT i AS id, CASE WHEN i % 17 = 0 THEN NULL WHEN i % 5 = 0 THEN i % 40 ELSE i * 3 % 35000 END::bigint AS k, CASE WHEN i % 17 <> 0 THEN i * 2 END AS even, i % 100 AS few,
	   (repeat('a common beginning, ', 8) || i % 401) COLLATE "C" AS t, (i % 300)::numeric(10, 3) AS n, i % 4 AS four
FROM generate_series(1, 6000) i;
CREATE TABLE gs.x_small AS SELECT i AS id FROM generate_series(1, 5) i;
ANALYZE gs.x, gs.y, gs.x_small;

SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 3;
SET gpusort.setup_cost = 0;
SET gpusort.row_cost = 0;
SET enable_hashagg = off;
SET enable_hashjoin = off;
SET enable_nestloop = off;

-- 'same' when the rows are PostgreSQL's, whatever the plan, by one process and, with an aggregate above it, by several.
-- Where the query ends with an order that leaves no ties, rows must come in it.
CREATE FUNCTION gs.compare_above(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	ordered bool := query ~ 'ORDER BY [^()]*(\([^()]*\)[^()]*)*$';
	native text := CASE WHEN ordered THEN gs.native_digest(query) ELSE gs.native_sum(query) END;
	alone text := CASE WHEN ordered THEN gs.alone_digest(query) ELSE gs.alone_sum(query) END;
	forced text;
BEGIN
	IF native IS DISTINCT FROM alone THEN
		RETURN 'the leader alone: ' || CASE WHEN ordered THEN gs.compare_results(query)
			ELSE gs.difference(gs.native_sorted_rows(query), gs.alone_sorted_rows(query)) END;
	END IF;
	forced := CASE WHEN ordered THEN gs.forced_digest(query) ELSE gs.forced_sum(query) END;
	RETURN CASE WHEN native IS NOT DISTINCT FROM forced THEN 'same' ELSE format('with workers: natively %s, with gpusort %s', native, forced) END;
END $$;

-- 'same' when the plan has so many GpuSortOutput as well, whose sorts the service did.
CREATE FUNCTION gs.compare_exchange(query text, exchanges int DEFAULT 1) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan text;
	found int;
	before record;
	now record;
	result text;
BEGIN
	FOREACH plan IN ARRAY ARRAY[gs.forced_plan(query), gs.forced_plan(gs.sum_query(query))] LOOP
		found := cardinality(string_to_array(plan, 'Custom Scan (GpuSortOutput)')) - 1;
		IF found <> exchanges THEN
			RETURN format('%s GpuSortOutput in the plan: %s', found, plan);
		END IF;
	END LOOP;
	before := gs.sorts();
	result := gs.compare_above(query);
	now := gs.sorts();
	IF now.sorts - before.sorts < 2 OR now.fallbacks > before.fallbacks THEN
		RETURN format('%s sorts, %s fallbacks: %s', now.sorts - before.sorts, now.fallbacks - before.fallbacks,
			(SELECT string_agg(format('sort method %s: %s', n->>'Sort Method', n->>'Fallback Reason'), '; ') FROM gs.nodes(query, 'GpuSort') n));
	END IF;
	RETURN result;
END $$;

-- Aggregates of users: in SQL, in PL/pgSQL, one that windows can take rows away from.
CREATE FUNCTION gs.mixed(state bigint, value bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS 'SELECT (coalesce(state, 7) * 31 + coalesce(value, 1)) % 1000000007';
CREATE AGGREGATE gs.mix(bigint) (SFUNC = gs.mixed, STYPE = bigint, PARALLEL = SAFE);
CREATE FUNCTION gs.joined(state text, value text) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS 'BEGIN RETURN coalesce(state || ''/'', '''') || coalesce(value, ''-''); END';
CREATE AGGREGATE gs.path(text) (SFUNC = gs.joined, STYPE = text, PARALLEL = SAFE);
CREATE FUNCTION gs.plus(state bigint, value bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT state + value';
CREATE FUNCTION gs.minus(state bigint, value bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT state - value';
CREATE AGGREGATE gs.total(bigint) (SFUNC = gs.plus, STYPE = bigint, INITCOND = '0', MSFUNC = gs.plus, MINVFUNC = gs.minus, MSTYPE = bigint, MINITCOND = '0', PARALLEL = SAFE);
CREATE AGGREGATE gs.unsafe_total(bigint) (SFUNC = gs.plus, STYPE = bigint, INITCOND = '0', PARALLEL = RESTRICTED);
CREATE FUNCTION gs.restricted(i bigint) RETURNS bigint LANGUAGE plpgsql STABLE PARALLEL RESTRICTED AS 'BEGIN RETURN i + 1; END';
CREATE FUNCTION gs.unsafe(i bigint) RETURNS bigint LANGUAGE plpgsql STABLE PARALLEL UNSAFE AS 'BEGIN RETURN i + 1; END';

SELECT * FROM no_plan();

-- the plan
SELECT is(regexp_replace(gs.forced_plan('SELECT id, sum(k) OVER (PARTITION BY g ORDER BY id) FROM gs.x'), ' *Window:[^\n]*\n', ''),
		  E'Custom Scan (GpuSortExchange)\n  Range Key: g, id\n  Across Ranges: totals of those before\n  ->  Gather\n        Workers Planned: 3\n        ->  Parallel Custom Scan (GpuSortOutput)\n              ->  WindowAgg\n'
		  || E'                    ->  Parallel Custom Scan (GpuSort)\n                          Sort Key: g, id\n                          ->  Parallel Seq Scan on x\n', 'the plan');
SET gpusort.parallel_output = off;
SELECT unalike(gs.forced_plan('SELECT id, sum(k) OVER (PARTITION BY g ORDER BY id) FROM gs.x'), '%GpuSortExchange%', 'not with gpusort.parallel_output = off');
SELECT alike(gs.forced_plan('SELECT id, sum(k) OVER (PARTITION BY g ORDER BY id) FROM gs.x'), '%GpuSortIngest%', 'which leaves the other parallel plan');
RESET gpusort.parallel_output;
SET max_parallel_workers_per_gather = 0;
SELECT unalike(gs.forced_plan('SELECT id, sum(k) OVER (PARTITION BY g ORDER BY id) FROM gs.x'), '%GpuSortExchange%', 'not without workers');
SET max_parallel_workers_per_gather = 3;
SELECT alike(gs.forced_plan('SELECT id FROM gs.x ORDER BY k, id'), '%GpuSortExchange%', 'for a sort alone, too: its rows may be formed for a client');

-- windows of every kind
SELECT is(gs.compare_exchange(format('SELECT id, %s FROM gs.x', w)), 'same', w)
FROM (VALUES
	('sum(k) OVER (PARTITION BY g ORDER BY id)'), ('sum(f) OVER (PARTITION BY g ORDER BY id)'), ('sum(n) OVER (PARTITION BY g)'), ('avg(n) OVER (PARTITION BY g ORDER BY d, id)'),
	('row_number() OVER (PARTITION BY g ORDER BY k DESC, id)'), ('rank() OVER (PARTITION BY few ORDER BY d)'), ('dense_rank() OVER (PARTITION BY few ORDER BY d DESC)'),
	('percent_rank() OVER (PARTITION BY g ORDER BY d)'), ('cume_dist() OVER (PARTITION BY g ORDER BY d)'), ('ntile(5) OVER (PARTITION BY g ORDER BY id)'),
	('lag(k) OVER (PARTITION BY g ORDER BY id)'), ('lag(k, 3, -1) OVER (PARTITION BY g ORDER BY id)'), ('lead(t, few) OVER (PARTITION BY g ORDER BY id)'),
	('first_value(t) OVER (PARTITION BY g ORDER BY k, id)'), ('last_value(id) OVER (PARTITION BY g ORDER BY k, id)'), ('nth_value(k, 4) OVER (PARTITION BY g ORDER BY id)'),
	('sum(k) OVER (PARTITION BY g ORDER BY id ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING)'), ('count(*) OVER (PARTITION BY g ORDER BY k RANGE BETWEEN 1000 PRECEDING AND 500 FOLLOWING)'),
	('count(f) OVER (PARTITION BY g ORDER BY f RANGE BETWEEN 2 PRECEDING AND 2 FOLLOWING)'), ('array_agg(d) OVER (PARTITION BY g ORDER BY d, id GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING)'),
	('sum(k) OVER (PARTITION BY g ORDER BY few GROUPS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)'), ('min(id) OVER (PARTITION BY g ORDER BY id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW)'),
	('sum(id) OVER (PARTITION BY g ORDER BY d RANGE BETWEEN ''10 days'' PRECEDING AND CURRENT ROW EXCLUDE TIES)'), ('count(*) FILTER (WHERE b) OVER (PARTITION BY g ORDER BY id)'),
	('string_agg(pad, ''-'') OVER (PARTITION BY g ORDER BY id)'), ('gs.mix(k) OVER (PARTITION BY g ORDER BY id)'), ('gs.path(k::text) OVER (PARTITION BY g ORDER BY id)'),
	('gs.total(k) OVER (PARTITION BY g ORDER BY id ROWS BETWEEN 3 PRECEDING AND CURRENT ROW)'),
	('count(*) OVER (PARTITION BY n)'), ('count(*) OVER (PARTITION BY f)'), ('count(*) OVER (PARTITION BY u)'), ('count(*) OVER (PARTITION BY t)'), ('count(*) OVER (PARTITION BY t, few)'),
	('row_number() OVER (PARTITION BY t ORDER BY u, id)'), ('rank() OVER (PARTITION BY b ORDER BY t)'), ('count(*) OVER (PARTITION BY b, few, d)'), ('sum(k) OVER (PARTITION BY few % 7, d ORDER BY id)'),
	('row_number() OVER (PARTITION BY few ORDER BY t DESC, id DESC)'), ('max(t) OVER (PARTITION BY g)'), ('row(k, t, lag(id) OVER (PARTITION BY g ORDER BY id))'), ('array_agg(row(k, id)) OVER (PARTITION BY g ORDER BY id)')) v (w);
-- several windows over one sort
SELECT is(gs.compare_exchange('SELECT id, ' || w), 'same', w)
FROM (VALUES
	('sum(k) OVER w, rank() OVER w, lag(id) OVER w FROM gs.x WINDOW w AS (PARTITION BY g ORDER BY id)'),
	('sum(k) OVER (PARTITION BY g ORDER BY id), count(*) OVER (PARTITION BY g) FROM gs.x'),
	('sum(k) OVER (PARTITION BY g, few ORDER BY id), count(*) OVER (PARTITION BY g), max(id) OVER (PARTITION BY g, few) FROM gs.x'),
	('rank() OVER (PARTITION BY g ORDER BY d), rank() OVER (PARTITION BY g ORDER BY d, id), count(*) OVER (PARTITION BY g) FROM gs.x')) v (w);
-- windows that differ in what follows PARTITION BY are sorted again above
SELECT is(gs.compare_above('SELECT id, ' || w), 'same', w)
FROM (VALUES
	('row_number() OVER (PARTITION BY g ORDER BY id), row_number() OVER (PARTITION BY g ORDER BY k, id) FROM gs.x'),
	('row_number() OVER (PARTITION BY g ORDER BY id), row_number() OVER (PARTITION BY g ORDER BY k, id), row_number() OVER (PARTITION BY g ORDER BY d, id), count(*) OVER (PARTITION BY few) FROM gs.x'),
	('count(*) OVER (PARTITION BY few), count(*) OVER (PARTITION BY g), count(*) OVER () FROM gs.x'),
	('row_number() OVER (ORDER BY k, id), sum(k) OVER (ORDER BY k, id) FROM gs.x'),
	('sum(count(*)) OVER (PARTITION BY few), g FROM (SELECT id, few, g FROM gs.x WHERE id < 6000) x GROUP BY id, few, g')) v (w);
-- filters above them
SELECT is(gs.compare_exchange(format('SELECT * FROM (SELECT id, g, t, %s AS r FROM gs.x) s WHERE r %s', w, f)), 'same', w || ' ' || f)
FROM (VALUES
	('row_number() OVER (PARTITION BY g ORDER BY k, id)', '= 1'), ('row_number() OVER (PARTITION BY g ORDER BY k, id)', '<= 3'), ('rank() OVER (PARTITION BY g ORDER BY d)', '< 4'),
	('count(*) OVER (PARTITION BY g ORDER BY id)', '<= 2'), ('count(*) OVER (PARTITION BY g)', '> 7'), ('row_number() OVER (PARTITION BY g ORDER BY k, id)', '% 5 = 2')) v (w, f);
SELECT is(gs.compare_exchange('SELECT count(*), sum(k) FROM (SELECT g, k, row_number() OVER (PARTITION BY g ORDER BY id DESC) AS r FROM gs.x) s WHERE r = 1'), 'same', 'an aggregate above');
SELECT is(gs.compare_above('SELECT id, k FROM (SELECT id, k, row_number() OVER (ORDER BY k, id) AS r FROM gs.x) s WHERE r <= 100'), 'same', 'a filter above a window without partitions');

-- in the window's own order there is no second sort
SELECT is(gs.compare_exchange('SELECT g, id, sum(k) OVER (PARTITION BY g ORDER BY id) FROM gs.x ORDER BY g, id'), 'same', 'ORDER BY of the window''s order');
SELECT is((SELECT count(*) FROM regexp_matches(gs.forced_plan('SELECT g, id, sum(k) OVER (PARTITION BY g ORDER BY id) FROM gs.x ORDER BY g, id'), 'Sort Key', 'g')), 1::bigint, 'one sort');
SELECT is(gs.compare_exchange('SELECT t, id, sum(k) OVER (PARTITION BY t ORDER BY id DESC) FROM gs.x ORDER BY t, id DESC'), 'same', 'of texts');
SELECT is(gs.compare_exchange('SELECT few, id, sum(k) OVER (PARTITION BY few ORDER BY id) FROM gs.x ORDER BY few DESC, id'), 'same', 'in the other direction');
SELECT is(gs.compare_exchange('SELECT few, id, sum(k) OVER (PARTITION BY few ORDER BY id) FROM gs.x ORDER BY few NULLS FIRST, id'), 'same', 'NULLS FIRST');
SELECT is(gs.compare_exchange('SELECT id, sum(k) OVER (PARTITION BY g ORDER BY id) AS s FROM gs.x ORDER BY s, id'), 'same', 'ORDER BY of the window''s result');
SELECT is(gs.compare_exchange('SELECT g, id, sum(k) OVER (PARTITION BY g ORDER BY id) FROM gs.x ORDER BY g, id LIMIT 20'), 'same', 'LIMIT');
SELECT is(gs.compare_exchange('SELECT g, id, sum(k) OVER (PARTITION BY g ORDER BY id) FROM gs.x ORDER BY g, id OFFSET 8000 LIMIT 100'), 'same', 'OFFSET and LIMIT');
SELECT is(gs.compare_exchange('SELECT g, count(DISTINCT k) FROM gs.x GROUP BY g ORDER BY g'), 'same', 'ORDER BY of the groups');
SELECT is(gs.compare_exchange('SELECT DISTINCT g, few FROM gs.x ORDER BY g, few'), 'same', 'ORDER BY of DISTINCT');

-- groups
SELECT is(gs.compare_exchange(q), 'same', q)
FROM (VALUES
	('SELECT g, array_agg(id ORDER BY id) FROM gs.x GROUP BY g'), ('SELECT g, count(DISTINCT few), sum(DISTINCT k) FROM gs.x GROUP BY g'), ('SELECT few, string_agg(pad, '','' ORDER BY k, id) FROM gs.x GROUP BY few'),
	('SELECT g, percentile_disc(0.5) WITHIN GROUP (ORDER BY k), percentile_cont(0.25) WITHIN GROUP (ORDER BY k) FROM gs.x GROUP BY g'), ('SELECT g, mode() WITHIN GROUP (ORDER BY few) FROM gs.x GROUP BY g'),
	('SELECT g, percentile_disc(ARRAY[0.1, 0.9]) WITHIN GROUP (ORDER BY t) FROM gs.x GROUP BY g'), ('SELECT g, rank(100) WITHIN GROUP (ORDER BY k), count(DISTINCT k) FROM gs.x GROUP BY g'),
	('SELECT g, count(*) FILTER (WHERE b), count(DISTINCT k) FILTER (WHERE few > 50) FROM gs.x GROUP BY g'), ('SELECT g, count(DISTINCT k) FROM gs.x GROUP BY g HAVING count(DISTINCT k) > 6 AND max(id) % 2 = 0'),
	('SELECT trim_scale(n), count(DISTINCT id) FROM gs.x GROUP BY n'), ('SELECT f + 0, count(DISTINCT id) FROM gs.x GROUP BY f'), ('SELECT u, count(DISTINCT id) FROM gs.x GROUP BY u'),
	('SELECT t, count(DISTINCT id) FROM gs.x GROUP BY t'), ('SELECT t, few, count(DISTINCT id) FROM gs.x GROUP BY t, few'), ('SELECT few, d, count(DISTINCT k) FROM gs.x GROUP BY 1, 2'),
	('SELECT g % 100, few, array_agg(k ORDER BY id) FROM gs.x GROUP BY g % 100, few'), ('SELECT g, gs.mix(k ORDER BY id), gs.path(few::text ORDER BY k, id) FROM gs.x GROUP BY g'),
	('SELECT g, json_agg(row(k, id) ORDER BY id), count(DISTINCT id) FROM gs.x GROUP BY g'), ('SELECT row(g, count(DISTINCT k)) FROM gs.x GROUP BY g'), ('SELECT g, array_agg(DISTINCT few ORDER BY few DESC NULLS LAST) FROM gs.x GROUP BY g'),
	('SELECT g, few, count(DISTINCT k), sum(count(*)) OVER (PARTITION BY g) FROM gs.x GROUP BY g, few'), ('SELECT g, rank() OVER (PARTITION BY g ORDER BY few), array_agg(id ORDER BY id) FROM gs.x GROUP BY g, few')) v (q);
-- those that PostgreSQL may compute in parts first
SELECT is(gs.compare_above(q), 'same', q)
FROM (VALUES
	('SELECT g, count(*), sum(k), min(t), max(d) FROM gs.x GROUP BY g'), ('SELECT few, avg(n), sum(n), stddev(k) FROM gs.x GROUP BY few'), ('SELECT t, count(*) FROM gs.x GROUP BY t HAVING count(*) > 132'),
	('SELECT g, few, d, count(*) FROM gs.x GROUP BY g, few, d'), ('SELECT id, sum(k) FROM gs.x GROUP BY id'), ('SELECT few FROM gs.x GROUP BY few')) v (q);
-- grouping sets
SELECT is(gs.compare_above(q), 'same', q)
FROM (VALUES
	('SELECT few, g, count(DISTINCT k), grouping(few, g) FROM gs.x GROUP BY ROLLUP (few, g)'), ('SELECT few, g, b, count(*), grouping(few, g, b) FROM gs.x GROUP BY ROLLUP (few, g, b)'),
	('SELECT few, g, b, count(DISTINCT k), grouping(few, g, b) FROM gs.x GROUP BY few, ROLLUP (g, b)'), ('SELECT few, g, b, sum(k), grouping(few, g, b) FROM gs.x GROUP BY few, CUBE (g, b)'),
	('SELECT few, b, count(DISTINCT k), grouping(few, b) FROM gs.x GROUP BY GROUPING SETS ((few, b), (few), ())'), ('SELECT few, b, count(DISTINCT k), grouping(few, b) FROM gs.x GROUP BY GROUPING SETS ((few), (b))'),
	('SELECT few, b, count(DISTINCT k), grouping(few, b) FROM gs.x GROUP BY CUBE (few, b)'), ('SELECT few, g, count(*) FROM gs.x WHERE id < 0 GROUP BY ROLLUP (few, g)'),
	('SELECT few, g, count(*) FROM gs.x WHERE id < 0 GROUP BY GROUPING SETS ((few, g), (), ())'), ('SELECT few, g, b, array_agg(id ORDER BY id), grouping(few, g, b) FROM gs.x GROUP BY GROUPING SETS ((few, g, b), (few, g), (few))'),
	('SELECT g, few, count(*), grouping(g, few), sum(count(*)) OVER (PARTITION BY grouping(g, few)) FROM gs.x GROUP BY ROLLUP (g, few) HAVING count(*) > 1')) v (q);
SELECT is(gs.compare_exchange('SELECT few, g, b, count(DISTINCT k), grouping(few, g, b) FROM gs.x GROUP BY few, ROLLUP (g, b)'), 'same', 'sets with a leading column in common');
SELECT is(gs.compare_exchange('SELECT few, g, sum(DISTINCT k), grouping(few, g) FROM gs.x GROUP BY GROUPING SETS ((few, g), (few))'), 'same', 'two sets with a leading column in common');

-- DISTINCT, set operations
SELECT is(gs.compare_exchange(q), 'same', q)
FROM (VALUES
	('SELECT DISTINCT g, k FROM gs.x'), ('SELECT DISTINCT t, few FROM gs.x'), ('SELECT DISTINCT few, d, b FROM gs.x'), ('SELECT DISTINCT ON (g) g, id, t FROM gs.x ORDER BY g, k DESC, id'),
	('SELECT DISTINCT ON (t) t, id, k FROM gs.x ORDER BY t, k, id'), ('SELECT DISTINCT ON (few, b) few, b, id FROM gs.x ORDER BY few DESC, b, k, id'), ('SELECT DISTINCT ON (u) u, id FROM gs.x ORDER BY u, id DESC')) v (q);
SELECT is(gs.compare_above(q), 'same', q)
FROM (VALUES
	('SELECT DISTINCT few FROM gs.x'), ('SELECT DISTINCT trim_scale(n) FROM gs.x'), ('SELECT g, few FROM gs.x UNION SELECT k, few FROM gs.y'), ('SELECT few, t FROM gs.x UNION SELECT few, t FROM gs.y ORDER BY 1, 2'),
	('SELECT k FROM gs.x INTERSECT SELECT k FROM gs.y'), ('SELECT k FROM gs.x INTERSECT ALL SELECT k FROM gs.y'), ('SELECT t, few FROM gs.x EXCEPT SELECT t, few FROM gs.y'),
	('SELECT k, few FROM gs.y EXCEPT ALL SELECT k, few FROM gs.x'), ('(SELECT g FROM gs.x UNION SELECT k FROM gs.y) INTERSECT SELECT id FROM gs.x'),
	('SELECT DISTINCT count(DISTINCT k) FROM gs.x GROUP BY g'), ('SELECT DISTINCT g, sum(k) OVER (PARTITION BY g) FROM gs.x'), ('SELECT DISTINCT ON (g % 3) g % 3, id FROM gs.x ORDER BY g % 3, id DESC')) v (q);

-- merge joins
SELECT is(gs.compare_exchange(q), 'same', q)
FROM (VALUES
	('SELECT x.id, y.id FROM gs.x JOIN gs.y USING (k)'), ('SELECT x.id, y.id FROM gs.x LEFT JOIN gs.y USING (k)'), ('SELECT x.id FROM gs.x WHERE EXISTS (SELECT FROM gs.y WHERE y.k = x.k)'),
	('SELECT x.id FROM gs.x WHERE NOT EXISTS (SELECT FROM gs.y WHERE y.k = x.k)'), ('SELECT x.id, y.id FROM gs.x JOIN gs.y ON x.k = y.k AND x.few = y.few'), ('SELECT x.id, y.id FROM gs.x JOIN gs.y ON x.k = y.k AND x.few < y.few'),
	('SELECT x.id, y.id FROM gs.x LEFT JOIN gs.y ON x.k = y.k AND x.few > y.four * 20'), ('SELECT x.id, y.id FROM gs.x JOIN gs.y ON x.t = y.t AND x.k = y.k'), ('SELECT x.id, y.id FROM gs.x JOIN gs.y ON x.n = y.n AND x.few = y.few'),
	('SELECT x.id, y.k, y.t FROM gs.x LEFT JOIN gs.y ON x.id = y.even WHERE x.b')) v (q);
SELECT is(gs.compare_above(q), 'same', q)
FROM (VALUES
	('SELECT x.id, y.k FROM gs.x LEFT JOIN gs.y ON x.id = y.k WHERE x.b'), ('SELECT x.id FROM gs.x LEFT JOIN gs.y ON x.id = y.even AND y.four = 1 WHERE y.id IS NULL'), ('SELECT x.id, y.id FROM gs.x RIGHT JOIN gs.y USING (k)'), ('SELECT x.id, y.id FROM gs.x FULL JOIN gs.y USING (k)'), ('SELECT x.id, y.id FROM gs.x FULL JOIN gs.y ON x.k = y.k AND x.few = y.few'),
	('SELECT x.k, count(*) FROM gs.x JOIN gs.y USING (k) GROUP BY x.k'), ('SELECT x.id, sum(y.id) OVER (PARTITION BY x.k ORDER BY x.id, y.id) FROM gs.x JOIN gs.y USING (k)'), ('SELECT x.id, y.id FROM gs.x JOIN gs.y USING (k) ORDER BY k, x.id, y.id'),
	('SELECT x.id, y.id, z.id FROM gs.x JOIN gs.y USING (k) JOIN gs.x z USING (k)'), ('SELECT x.id, y.id FROM gs.x JOIN gs.y USING (k) WHERE x.id < 0'), ('SELECT x.id, y.id FROM gs.x LEFT JOIN gs.y ON x.k = y.k AND y.id < 0'),
	('SELECT a.g, a.r, b.r FROM (SELECT g, row_number() OVER (PARTITION BY g ORDER BY id) AS r FROM gs.x) a JOIN (SELECT few AS g, count(*) AS r FROM gs.y GROUP BY few) b USING (g)'),
	('SELECT s.k, s.r, y.id FROM (SELECT k, row_number() OVER (PARTITION BY k ORDER BY id) AS r FROM gs.x) s JOIN gs.y USING (k) WHERE r = 1'), ('SELECT x.id FROM gs.x WHERE k NOT IN (SELECT k FROM gs.y WHERE k IS NOT NULL)'),
	('SELECT count(*), sum(x.id), sum(y.id) FROM gs.x JOIN gs.y USING (k)'), ('SELECT x.id, y.id FROM gs.x JOIN gs.y ON x.few = y.few WHERE x.id % 50 = 1 AND y.id % 50 = 1')) v (q);
SET enable_material = off;
SELECT is(gs.compare_exchange('SELECT x.id, y.id FROM gs.x JOIN gs.y ON x.few = y.few AND x.id % 40 = y.id % 40 WHERE x.id % 3 = 0'), 'same', 'marks and restores in the sort itself');
RESET enable_material;

-- subplans, initplans, parameters, correlated subqueries
SELECT is(gs.compare_exchange(q), 'same', q)
FROM (VALUES
	('SELECT id, sum(k + (SELECT count(*) FROM gs.x_small)) OVER (PARTITION BY g ORDER BY id) FROM gs.x'),
	('SELECT id, sum(k) OVER (PARTITION BY g ORDER BY id) FROM gs.x WHERE k > (SELECT avg(k) FROM gs.y)'), ('SELECT g, count(DISTINCT k) FROM gs.x GROUP BY g HAVING count(DISTINCT k) > (SELECT 5 + count(*) % 2 FROM gs.x_small)'),
	('SELECT id, few IN (SELECT s.id + 1 FROM generate_series(1, 5) s (id)), lag(k) OVER (PARTITION BY g ORDER BY id) FROM gs.x')) v (q);
SELECT is(gs.compare_above('SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY g ORDER BY id) AS r FROM gs.x) q WHERE r IN (SELECT s.id FROM gs.x_small s)'), 'same', 'a semi join above');
SELECT is(gs.compare_above('SELECT id, (SELECT max(s.id) FROM gs.x_small s WHERE s.id <= x.few), sum(k) OVER (PARTITION BY g ORDER BY id) FROM gs.x'), 'same', 'a correlated subquery in the output, which PostgreSQL runs in the leader alone');
SELECT is(gs.compare_above('WITH w AS MATERIALIZED (SELECT id, g, sum(k) OVER (PARTITION BY g ORDER BY id) AS s FROM gs.x) SELECT a.id, a.s FROM w a JOIN w b ON a.id = b.id'), 'same', 'a CTE');
SELECT is(gs.compare_above('SELECT o.id, (SELECT count(*) FROM (SELECT count(DISTINCT k) AS c FROM gs.x WHERE few >= o.id GROUP BY g) s WHERE c > 3) FROM gs.x_small o'), 'same', 'in a subquery for each row');
SELECT is(gs.compare_above('SELECT a.id, b.id FROM (SELECT id, row_number() OVER (PARTITION BY g ORDER BY id) AS r FROM gs.x) a JOIN (SELECT id, row_number() OVER (PARTITION BY few ORDER BY id) AS r FROM gs.x) b ON a.id = b.id AND a.r < b.r'), 'same', 'two in one query');
SELECT is(gs.compare_exchange('SELECT id, sum(k) OVER (PARTITION BY g ORDER BY id) FROM gs.x UNION ALL SELECT id, row_number() OVER (PARTITION BY few ORDER BY id) FROM gs.y', 2), 'same', 'two below an Append');
SELECT is(gs.compare_above('SELECT g, max(s) FROM (SELECT g, sum(k) OVER (PARTITION BY g ORDER BY id) AS s FROM gs.x) q GROUP BY g'), 'same', 'groups above a window');
SELECT is(gs.compare_above('SELECT few, count(*) FROM (SELECT DISTINCT few, g FROM gs.x) q GROUP BY few'), 'same', 'groups above DISTINCT');

-- read again
SET enable_material = off;
SET enable_nestloop = on;
SET enable_mergejoin = off;
SELECT is(gs.compare_above('SELECT o.id, s.* FROM gs.x_small o, LATERAL (SELECT id, row_number() OVER (PARTITION BY g ORDER BY x.id) AS r FROM gs.x WHERE few > o.id * 15 OFFSET 0) s WHERE s.id % 100 = 0'), 'same', 'LATERAL with a parameter');
SELECT is(gs.compare_above('SELECT o.id, s.* FROM gs.x_small o LEFT JOIN LATERAL (SELECT g, count(DISTINCT k) AS c FROM gs.x GROUP BY g OFFSET 0) s ON s.g % 5 = o.id'), 'same', 'the inner side of a nested loop');
SELECT is(gs.compare_above('SELECT o.id, s.* FROM gs.x_small o, LATERAL (SELECT id, sum(k + o.id) OVER (PARTITION BY g ORDER BY x.id) FROM gs.x ORDER BY g, x.id LIMIT 50) s'), 'same', 'left early each time, with a parameter above the sort');
SELECT is(gs.compare_above('SELECT o.id, s.* FROM gs.x_small o, LATERAL (SELECT id, sum(k) OVER (PARTITION BY g ORDER BY x.id) FROM gs.x ORDER BY g, x.id LIMIT o.id * 7) s'), 'same', 'and without one');
RESET enable_material;
RESET enable_mergejoin;
SET enable_nestloop = off;
SET plan_cache_mode = force_generic_plan;
PREPARE exchange_window (int) AS SELECT id, sum(k + $1) OVER (PARTITION BY g ORDER BY id) FROM gs.x WHERE few <> $1 ORDER BY g, id;
PREPARE exchange_group (int) AS SELECT g, count(DISTINCT k) FROM gs.x WHERE few < $1 GROUP BY g HAVING count(DISTINCT k) > $1 / 20 ORDER BY g;
SELECT is(gs.compare_results(q, 'DISCARD PLANS'), 'same', q)
FROM (VALUES ('EXECUTE exchange_window(0)'), ('EXECUTE exchange_window(50)'), ('EXECUTE exchange_window(90)'), ('EXECUTE exchange_group(50)'), ('EXECUTE exchange_group(100)')) v (q);
DISCARD PLANS;
SELECT alike(gs.forced_plan('EXECUTE exchange_window(50)'), '%GpuSortExchange%', 'a generic plan');
RESET plan_cache_mode;

-- sizes
SELECT is(gs.compare_exchange(format('SELECT id, sum(k) OVER (PARTITION BY g ORDER BY id) FROM gs.x WHERE id %% 12000 %s', p)), 'same', w)
FROM (VALUES ('< 0', 'no rows'), ('= 77', 'one row'), ('IN (3, 11999)', 'two rows'), ('< 20', 'few rows')) v (p, w);
SELECT is(gs.compare_exchange('SELECT id, row_number() OVER (PARTITION BY g * 0 ORDER BY k, id) FROM gs.x'), 'same', 'one group');
SELECT is(gs.compare_exchange('SELECT id, row_number() OVER (PARTITION BY id) FROM gs.x'), 'same', 'groups of one row');
SELECT is(gs.compare_exchange('SELECT id, row_number() OVER (PARTITION BY CASE WHEN id % 10 = 0 THEN id ELSE 0 END ORDER BY id) FROM gs.x'), 'same', 'one group of nine in ten');
SELECT is(gs.compare_exchange('SELECT count(DISTINCT id) FROM gs.x WHERE id < 0 GROUP BY g'), 'same', 'no groups');
SELECT is(gs.compare_exchange('SELECT few, md5(string_agg(repeat(pad, 100), '''' ORDER BY id)), string_agg(repeat(pad, 100), '''' ORDER BY id) FROM gs.x WHERE few < 3 GROUP BY few'), 'same', 'result rows of megabytes');
SELECT is(gs.compare_exchange('SELECT id, x, repeat(t, 30), row_number() OVER (PARTITION BY g ORDER BY id) FROM gs.x WHERE id < 5000'), 'same', 'wide rows');
CREATE TABLE gs.x_wide AS SELECT i AS id, i % 50 AS g, CASE WHEN i % 400 = 0 THEN (SELECT string_agg(md5((i * j)::text), '') FROM generate_series(1, 45000) j) ELSE 'short' END AS v FROM generate_series(1, 2000) i;
ALTER TABLE gs.x_wide ALTER v SET STORAGE EXTERNAL;
INSERT INTO gs.x_wide SELECT 2000 + i, i % 50, repeat(md5(i::text), 200) FROM generate_series(1, 500) i;
ANALYZE gs.x_wide;
SELECT is(gs.compare_exchange('SELECT id, v || '''', row_number() OVER (PARTITION BY g ORDER BY id) FROM gs.x_wide'), 'same', 'toasted rows, long when they come out');
SELECT is(gs.compare_exchange('SELECT g, count(DISTINCT id), max(length(v)), md5(string_agg(v, '''' ORDER BY id)) FROM (SELECT id, g, v || ''.'' AS v FROM gs.x_wide) x GROUP BY g'), 'same', 'toasted values in groups');
SELECT is(gs.compare_exchange('SELECT v || ''.'', count(DISTINCT id) FROM gs.x_wide GROUP BY v || ''.'''), 'same', 'rows of megabytes by which groups are made');
SELECT is(gs.compare_exchange('SELECT DISTINCT ON (g) g, v || ''.'' AS w, id FROM gs.x_wide ORDER BY g, w DESC, id'), 'same', 'rows of megabytes that are sorted by themselves');
SELECT is(gs.compare_exchange('SELECT id, row_number() OVER (PARTITION BY g, v || ''.'' ORDER BY id) FROM gs.x_wide'), 'same', 'in a window''s partition');
SET work_mem = '64kB';
SELECT is(gs.compare_exchange('SELECT id, sum(k) OVER (PARTITION BY few), lag(t) OVER (PARTITION BY few ORDER BY id) FROM gs.x'), 'same', 'windows that spill');
SELECT is(gs.compare_exchange('SELECT few, count(DISTINCT t), array_agg(id ORDER BY t, id) FROM gs.x GROUP BY few'), 'same', 'groups that spill');
RESET work_mem;
SET gpusort.verify_rows = on;
SELECT is(gs.compare_exchange('SELECT id, t, lag(t) OVER (PARTITION BY g ORDER BY id) FROM gs.x'), 'same', 'rows that are verified');
SELECT is(gs.compare_exchange('SELECT x.id, y.id FROM gs.x JOIN gs.y USING (k)'), 'same', 'on both sides of a join');
SELECT is(gs.compare_above('SELECT count(*), count(x.id), sum(y.id) FROM gs.x FULL JOIN gs.y ON x.id || ''x'' = (y.id || ''x'') COLLATE "C"'), 'same', 'a side of a join that its sort has with another collation');
RESET gpusort.verify_rows;

-- processes
SET parallel_leader_participation = off;
SELECT is(gs.compare_exchange('SELECT id, sum(k) OVER (PARTITION BY g ORDER BY id) FROM gs.x'), 'same', 'parallel_leader_participation = off');
SELECT is(gs.compare_exchange('SELECT x.id, y.id FROM gs.x FULL JOIN gs.y USING (k)'), 'same', 'and a join');
RESET parallel_leader_participation;
SET max_parallel_workers = 0;
SELECT is(gs.compare_exchange('SELECT id, sum(k) OVER (PARTITION BY g ORDER BY id) FROM gs.x'), 'same', 'no worker is to be had');
SELECT is(gs.compare_above('SELECT x.id, y.id FROM gs.x JOIN gs.y USING (k)'), 'same', 'nor for a join');
SET max_parallel_workers = 1;
SELECT is(gs.compare_exchange('SELECT id, sum(k) OVER (PARTITION BY g ORDER BY id) FROM gs.x'), 'same', 'one worker of three');
RESET max_parallel_workers;

-- what only the leader may run stays there
SELECT is((SELECT count(*) FROM gs.nodes(q, 'GpuSortExchange')), 0::bigint, 'only the leader: ' || q)
FROM (VALUES ('SELECT id, gs.restricted(sum(k) OVER (PARTITION BY g ORDER BY id)::bigint) FROM gs.x'), ('SELECT id, sum(gs.restricted(k)) OVER (PARTITION BY g ORDER BY id) FROM gs.x'),
	('SELECT id, gs.unsafe_total(k) OVER (PARTITION BY g ORDER BY id) FROM gs.x'), ('SELECT id, gs.unsafe(sum(k) OVER (PARTITION BY g ORDER BY id)::bigint) FROM gs.x'),
	('SELECT g, gs.unsafe_total(k ORDER BY id) FROM gs.x GROUP BY g')) v (q);
SELECT is(gs.compare_above(q), 'same', q)
FROM (VALUES ('SELECT id, gs.restricted(sum(k) OVER (PARTITION BY g ORDER BY id)::bigint) FROM gs.x'), ('SELECT id, sum(gs.restricted(k)) OVER (PARTITION BY g ORDER BY id) FROM gs.x'),
	('SELECT id, gs.unsafe_total(k) OVER (PARTITION BY g ORDER BY id) FROM gs.x'), ('SELECT id, gs.unsafe(sum(k) OVER (PARTITION BY g ORDER BY id)::bigint) FROM gs.x'),
	('SELECT g, gs.unsafe_total(k ORDER BY id) FROM gs.x GROUP BY g'), ('SELECT id, random() < 2, sum(k) OVER (PARTITION BY g ORDER BY id) FROM gs.x'),
	('SELECT id, clock_timestamp() > ''2000-01-01'', sum(k) OVER (PARTITION BY g ORDER BY id) FROM gs.x'), ('SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY g ORDER BY id) AS r FROM gs.x) s WHERE gs.restricted(r) = 2')) v (q);

-- what EXPLAIN says, and the statistics
SELECT is((SELECT n->>'Range Key' FROM gs.nodes('SELECT g, few, count(DISTINCT k) FROM gs.x GROUP BY g, few', 'GpuSortExchange') n), '["x.g", "x.few"]', 'Range Key of a group');
SELECT is((SELECT n->>'Range Key' FROM gs.nodes('SELECT id, sum(k) OVER (PARTITION BY g ORDER BY id) FROM gs.x', 'GpuSortExchange') n), '["x.g", "x.id"]', 'Range Key of a window');
SELECT cmp_ok((SELECT (n->>'Ranges')::int FROM gs.nodes('SELECT id, sum(k) OVER (PARTITION BY g ORDER BY id) FROM gs.x', 'GpuSortExchange') n), '>=', 4, 'Ranges of many groups');
SELECT is((SELECT (n->>'Ranges')::int FROM gs.nodes('SELECT id, sum(f) OVER (PARTITION BY g * 0 ORDER BY id) FROM gs.x', 'GpuSortExchange') n), 1, 'Ranges of one group');
SELECT is((SELECT (n->>'Actual Rows')::numeric FROM gs.nodes('SELECT id, sum(k) OVER (PARTITION BY g ORDER BY id) FROM gs.x', 'GpuSortExchange') n), 12000::numeric, 'its rows');
SELECT is((SELECT (n->>'Rows')::int FROM gs.nodes('SELECT id, sum(k) OVER (PARTITION BY g ORDER BY id) FROM gs.x', 'GpuSort') n), 12000, 'Rows of the sort');
SET gpusort.force = on;
SET gpusort.min_rows = 0;
SELECT lives_ok(format('EXPLAIN (%s) SELECT id, sum(k) OVER (PARTITION BY g ORDER BY id) FROM gs.x', o), 'EXPLAIN (' || o || ')')
FROM (VALUES ('VERBOSE'), ('ANALYZE'), ('ANALYZE, VERBOSE, BUFFERS'), ('ANALYZE, FORMAT YAML'), ('FORMAT XML, VERBOSE')) v (o);
SELECT sorts AS sorts_before, rows AS rows_before, fallbacks AS fallbacks_before FROM gpusort_stats \gset
SELECT sum(s) AS n FROM (SELECT id, sum(k) OVER (PARTITION BY g ORDER BY id) AS s FROM gs.x OFFSET 0) s \gset
SELECT is((SELECT ROW(sorts - :sorts_before, rows - :rows_before, fallbacks - :fallbacks_before)::text FROM gpusort_stats), '(1,12000,0)', 'gpusort_stats');
SELECT is((SELECT count(*) FROM gpusort_jobs), 0::bigint, 'no sort is left');

-- errors in what is above, in any process
CREATE FUNCTION gs.fails_for(i bigint, at bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS 'BEGIN RETURN 1 / (i - at); END';
SELECT throws_ok(query, '22012', NULL, query)
FROM (VALUES ('SELECT id, sum(gs.fails_for(id, %s)) OVER (PARTITION BY g ORDER BY id) FROM gs.x'), ('SELECT g, count(DISTINCT gs.fails_for(id, %s)) FROM gs.x GROUP BY g'),
	('SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY g ORDER BY id) AS r FROM gs.x) s WHERE gs.fails_for(id, %s) < r'), ('SELECT x.id, gs.fails_for(x.id + coalesce(y.four, 0) * 0, %s) FROM gs.x LEFT JOIN gs.y USING (k)'),
	('SELECT id, row_number() OVER (PARTITION BY g ORDER BY gs.fails_for(id, %s)) FROM gs.x')) v (q), LATERAL (VALUES (format(q, 1)), (format(q, 6000)), (format(q, 12000))) w (query);
SELECT throws_ok('SELECT id, sum(k) OVER (PARTITION BY g ORDER BY id ROWS BETWEEN (SELECT -1) PRECEDING AND CURRENT ROW) FROM gs.x', '22013', NULL, 'a frame that starts below zero');
SELECT throws_ok('SELECT 1 / (id - 5) FROM (SELECT id, sum(k) OVER (PARTITION BY g ORDER BY id) FROM gs.x OFFSET 0) s', '22012', NULL, 'an error above it');
SELECT is((SELECT count(*) FROM gpusort_jobs), 0::bigint, 'no sort is left');
RESET gpusort.force;
RESET gpusort.min_rows;
SELECT is(gs.compare_exchange('SELECT id, sum(k) OVER (PARTITION BY g ORDER BY id) FROM gs.x'), 'same', 'right after the errors');

-- cursors, loops
SET gpusort.force = on;
BEGIN;
DECLARE c CURSOR FOR SELECT g, id, sum(k) OVER (PARTITION BY g ORDER BY id) FROM gs.x ORDER BY g, id;
DECLARE d SCROLL CURSOR FOR SELECT g, id, sum(k) OVER (PARTITION BY g ORDER BY id) FROM gs.x ORDER BY g, id;
DECLARE h CURSOR WITH HOLD FOR SELECT g, id, sum(k) OVER (PARTITION BY g ORDER BY id) FROM gs.x ORDER BY g, id;
CREATE TEMP TABLE exchange_native AS SELECT gs.native_rows('SELECT g, id, sum(k) OVER (PARTITION BY g ORDER BY id) FROM gs.x ORDER BY g, id') AS rows;
SELECT is(gs.fetch('c', '5'), rows[:5], 'a cursor''s first rows') FROM exchange_native;
SELECT is(gs.fetch('c', '6000'), rows[6:6005], 'the next') FROM exchange_native;
SELECT is(gs.fetch('d', '1000'), rows[:1000], 'beside another') FROM exchange_native;
SELECT is(gs.fetch('d', 'BACKWARD 1'), rows[999:999], 'backward') FROM exchange_native;
SELECT is(gs.fetch('d', 'FIRST'), rows[1:1], 'the first again') FROM exchange_native;
SELECT is(gs.fetch('d', 'LAST'), rows[12000:12000], 'the last') FROM exchange_native;
CLOSE c;
CLOSE d;
COMMIT;
SELECT is((SELECT count(*) FROM gpusort_jobs), 0::bigint, 'no sort is left');
SELECT is(gs.fetch('h', 'ALL'), rows, 'a cursor that is held') FROM exchange_native;
CLOSE h;
CREATE FUNCTION gs.exchange_rows(n int) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
	r record;
	result text[] := '{}';
BEGIN
	FOR r IN SELECT g, id, sum(k) OVER (PARTITION BY g ORDER BY id) FROM gs.x ORDER BY g, id LOOP
		result := result || r::text;
		EXIT WHEN cardinality(result) = n;
	END LOOP;
	RETURN result;
END $$;
SELECT is(gs.exchange_rows(10), rows[:10], 'a loop left early') FROM exchange_native;
SELECT is(gs.exchange_rows(12000), rows, 'a loop to its end') FROM exchange_native;
CREATE TABLE gs.x_made AS SELECT g, id, sum(k) OVER (PARTITION BY g ORDER BY id) FROM gs.x ORDER BY g, id;
SELECT is(gs.native_rows('SELECT * FROM gs.x_made ORDER BY g, id'), rows, 'CREATE TABLE AS') FROM exchange_native;
TRUNCATE gs.x_made;
INSERT INTO gs.x_made SELECT g, id, sum(k) OVER (PARTITION BY g ORDER BY id) FROM gs.x;
SELECT is(gs.native_rows('SELECT * FROM gs.x_made ORDER BY g, id'), rows, 'INSERT') FROM exchange_native;
SELECT is((SELECT count(*) FROM gpusort_jobs), 0::bigint, 'no sort is left');
RESET gpusort.force;

-- rows of the transaction itself, a serializable one, those that a policy lets be seen
BEGIN;
UPDATE gs.x SET few = -5 WHERE id % 100 = 0;
SELECT is(gs.compare_exchange('SELECT id, few, row_number() OVER (PARTITION BY few ORDER BY id) FROM gs.x'), 'same', 'rows of the transaction itself');
ROLLBACK;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT is(gs.compare_exchange('SELECT id, few, row_number() OVER (PARTITION BY few ORDER BY id) FROM gs.x'), 'same', 'a serializable transaction');
COMMIT;
CREATE ROLE gs_reader;
GRANT USAGE ON SCHEMA gs TO gs_reader;
GRANT SELECT ON gs.y TO gs_reader;
ALTER TABLE gs.y ENABLE ROW LEVEL SECURITY;
CREATE POLICY few_rows ON gs.y TO gs_reader USING (few < 40 AND current_user = 'gs_reader');
SET ROLE gs_reader;
SELECT is(gs.compare_exchange('SELECT id, row_number() OVER (PARTITION BY few ORDER BY id) FROM gs.y'), 'same', 'row security');
SELECT is(cardinality(gs.forced_rows('SELECT id, row_number() OVER (PARTITION BY few ORDER BY id) FROM gs.y')), 2400, 'and it does hold');
RESET ROLE;
DROP POLICY few_rows ON gs.y;
ALTER TABLE gs.y DISABLE ROW LEVEL SECURITY;
DROP OWNED BY gs_reader;
DROP ROLE gs_reader;

-- partitions
CREATE TABLE gs.x_parts (id int, g int, k bigint, t text COLLATE "C") PARTITION BY HASH (id);
CREATE TABLE gs.x_parts_0 PARTITION OF gs.x_parts FOR VALUES WITH (MODULUS 3, REMAINDER 0);
CREATE TABLE gs.x_parts_1 PARTITION OF gs.x_parts FOR VALUES WITH (MODULUS 3, REMAINDER 1);
CREATE TABLE gs.x_parts_2 PARTITION OF gs.x_parts FOR VALUES WITH (MODULUS 3, REMAINDER 2);
INSERT INTO gs.x_parts SELECT id, g, k, t FROM gs.x;
ANALYZE gs.x_parts;
SELECT is(gs.compare_exchange('SELECT id, sum(k) OVER (PARTITION BY g ORDER BY id) FROM gs.x_parts'), 'same', 'above a parallel append');
SELECT is(gs.compare_exchange('SELECT DISTINCT ON (t) t, id FROM gs.x_parts ORDER BY t, k, id'), 'same', 'DISTINCT ON above a parallel append');
SELECT is((SELECT count(*) FROM gpusort_jobs), 0::bigint, 'no sort is left in the end');

-- ranges that are much larger than they were thought to be, so that they come in several chunks
CREATE TABLE gs.x_later (g int, id int, v text);
ALTER TABLE gs.x_later ALTER v SET STORAGE PLAIN;
INSERT INTO gs.x_later SELECT CASE WHEN i % 20 = 0 THEN 500000 + i ELSE i END, i, CASE WHEN i % 20 = 0 THEN repeat(md5(i::text), 200) ELSE 'x' END FROM generate_series(1, 100000) i;
ANALYZE gs.x_later;
SELECT is(gs.compare_exchange('SELECT g, id, v, count(*) OVER (PARTITION BY g) FROM gs.x_later'), 'same', 'long rows are the last');
SELECT is(gs.compare_exchange('SELECT g, id, v, count(*) OVER (PARTITION BY g) FROM gs.x_later ORDER BY g LIMIT 97000'), 'same', 'not all of them are wanted');

-- a leader that has read no range, since a worker was faster, tells of the sort too
SET parallel_leader_participation = off;
SELECT is((SELECT count(n->>'Rows') FROM generate_series(1, 20), LATERAL gs.nodes('SELECT id, sum(k) OVER (PARTITION BY g * 0 ORDER BY id) FROM gs.x', 'GpuSort') n), 20::bigint, 'Rows of sorts of one range');
RESET parallel_leader_participation;

-- A function that is asked for its rows one by one has its plan run without parallel mode, so that no worker can start.
CREATE FUNCTION gs.one_by_one() RETURNS SETOF numeric LANGUAGE sql STABLE AS 'SELECT sum(k) OVER (PARTITION BY g ORDER BY id) FROM gs.x ORDER BY g, id';
SET gpusort.enable = off;
SELECT md5(string_agg(v::text, ',')) AS native FROM (SELECT gs.one_by_one() AS v) s \gset
SET gpusort.enable = on;
SET gpusort.force = on;
SELECT alike(gs.plan('SELECT sum(k) OVER (PARTITION BY g ORDER BY id) FROM gs.x ORDER BY g, id'), '%GpuSortExchange%', 'the plan of a function');
SELECT is((SELECT md5(string_agg(v::text, ',')) FROM (SELECT gs.one_by_one() AS v) s), :'native', 'which is asked for its rows one by one');
SELECT is((SELECT count(v) FROM (SELECT gs.one_by_one() AS v LIMIT 7) s), 7::bigint, 'and for the first ones');
RESET gpusort.force;

-- what PostgreSQL's JIT compiles, where it is installed; last, since all workers load its library from here on
SET jit = on;
SET jit_above_cost = 0;
SELECT is(gs.compare_exchange('SELECT id, sum(k * 2 + g) OVER (PARTITION BY g ORDER BY id) FROM gs.x WHERE few > 3'), 'same', 'with the JIT');
RESET jit;
RESET jit_above_cost;

-- a sort alone: its rows are as ever where they go elsewhere than to a client
SELECT unalike(gs.forced_plan('SELECT id FROM gs.x ORDER BY k, id LIMIT 1000'), '%GpuSortExchange%', 'not for first rows');
SELECT unalike(gs.forced_plan('SELECT sum(id) FROM (SELECT id FROM gs.x ORDER BY k, id OFFSET 0) s'), '%GpuSortExchange%', 'nor for a sort whose rows are read here');
CREATE TABLE gs.made AS SELECT id, g, t FROM gs.x ORDER BY k, id;
SELECT is((SELECT md5(string_agg(m::text, ',' ORDER BY ctid)) FROM gs.made m), (SELECT md5(string_agg(ROW(id, g, t)::text, ',' ORDER BY k, id)) FROM gs.x), 'a table of a sort alone');
DROP TABLE gs.made;

SELECT * FROM finish();
