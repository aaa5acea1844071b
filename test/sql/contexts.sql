\set ECHO none
-- Where an ORDER BY may stand: subqueries, CTEs, set operations, INSERT,
-- CREATE TABLE AS, functions, prepared statements, joins that rescan.
SET client_min_messages = warning;
LOAD 'gpusort';
\pset format unaligned
\pset tuples_only on

CREATE TABLE gs.c AS SELECT i AS id, (i * 7919) % 1009 AS k, ('t' || i % 50) COLLATE "C" AS t FROM generate_series(1, 2000) i;
ANALYZE gs.c;

SELECT * FROM no_plan();

-- subqueries, CTEs, set operations
SELECT is(gs.compare('SELECT * FROM (SELECT id, k FROM gs.c ORDER BY k DESC, id OFFSET 5) s'), 'same', 'a subquery');
SELECT is(gs.compare('SELECT array_agg(k) FROM (SELECT k FROM gs.c ORDER BY k) s'), 'same', 'below an aggregate');
SELECT is(gs.compare('WITH w AS MATERIALIZED (SELECT id, t FROM gs.c ORDER BY t, id) SELECT a.id, b.id FROM w a JOIN w b USING (id) LIMIT 100'), 'same', 'a CTE read twice');
SELECT is(gs.compare('(SELECT id FROM gs.c ORDER BY k, id LIMIT 1500) UNION ALL (SELECT -id FROM gs.c ORDER BY t, id LIMIT 1600)'), 'same', 'branches of UNION ALL');
SELECT is(gs.compare('SELECT id, k FROM gs.c UNION SELECT -id, k FROM gs.c ORDER BY k, id'), 'same', 'above UNION');
SELECT is(gs.compare('SELECT k FROM gs.c INTERSECT SELECT id FROM gs.c ORDER BY 1 DESC'), 'same', 'above INTERSECT');
SELECT is(gs.compare('SELECT DISTINCT t, k FROM gs.c ORDER BY k DESC, t'), 'same', 'above DISTINCT');
SELECT is(gs.compare_results('SELECT DISTINCT ON (t) t, k, id FROM gs.c ORDER BY t, k, id'), 'same', 'DISTINCT ON');
SELECT is(gs.compare_results('SELECT id, rank() OVER (PARTITION BY t ORDER BY k) AS p FROM gs.c ORDER BY p, id'), 'same', 'above a window');
SELECT is(gs.compare('SELECT k % 10 AS g, count(*) AS n FROM gs.c GROUP BY 1 HAVING count(*) > 1 ORDER BY n DESC, g'), 'same', 'above GROUP BY');
SELECT is(gs.compare('SELECT k % 3 AS g, t, count(*) AS n FROM gs.c GROUP BY GROUPING SETS ((1), (2), ()) ORDER BY n DESC, g NULLS FIRST, t NULLS FIRST'), 'same', 'above grouping sets');
SELECT is(gs.compare('SELECT id, (SELECT string_agg(t, '','') FROM (SELECT t FROM gs.c d WHERE d.k = c.k ORDER BY t DESC) s) FROM gs.c ORDER BY k, id'), 'same', 'inside an expression');
SELECT is(gs.compare('SELECT k, t FROM gs.c ORDER BY k LIMIT 0'), 'same', 'LIMIT 0');
SELECT is(gs.compare('SELECT id FROM gs.c ORDER BY k, id LIMIT 1999'), 'same', 'LIMIT below the number of rows');
SELECT is(gs.compare('SELECT id FROM gs.c ORDER BY k, id LIMIT 10 OFFSET 1995'), 'same', 'LIMIT past the last row');
SELECT is(gs.compare('SELECT k FROM gs.c ORDER BY k FETCH FIRST 1500 ROWS WITH TIES'), 'same', 'WITH TIES');

-- set operations of all shapes, and what EXPLAIN says of them
CREATE TABLE gs.set_query (ordinal serial, query text);
INSERT INTO gs.set_query (query) VALUES
	('SELECT id, k FROM gs.c UNION SELECT k, id FROM gs.c ORDER BY k, id'),
	('SELECT id AS a, k AS b FROM gs.c WHERE id < 500 UNION ALL SELECT k, id FROM gs.c ORDER BY b DESC, a'),
	('SELECT id FROM gs.c UNION ALL SELECT k::numeric FROM gs.c ORDER BY 1'),
	('SELECT id, t FROM gs.c UNION ALL SELECT k::bigint, ''x'' FROM gs.c ORDER BY 2, 1'),
	('SELECT ''one'' COLLATE "C" AS a, id FROM gs.c UNION SELECT ''two'', id FROM gs.c ORDER BY a DESC, id'),
	('SELECT NULL::int AS a, id FROM gs.c UNION ALL SELECT k, id FROM gs.c ORDER BY a NULLS FIRST, id'),
	('SELECT (SELECT max(k) FROM gs.c), id FROM gs.c UNION SELECT k, id FROM gs.c ORDER BY 1, 2'),
	('SELECT k % 7, count(*) FROM gs.c GROUP BY 1 UNION SELECT k % 11, count(*) FROM gs.c GROUP BY 1 ORDER BY 2 DESC, 1'),
	('SELECT k FROM gs.c INTERSECT SELECT id FROM gs.c ORDER BY 1 DESC'),
	('SELECT k FROM gs.c INTERSECT ALL SELECT id FROM gs.c ORDER BY 1 DESC'),
	('SELECT id FROM gs.c EXCEPT SELECT k FROM gs.c ORDER BY 1 DESC'),
	('(SELECT id FROM gs.c UNION SELECT k FROM gs.c) EXCEPT (SELECT 5 UNION ALL SELECT 7) ORDER BY 1 DESC'),
	('SELECT id FROM gs.c UNION (SELECT k FROM gs.c INTERSECT SELECT 2 * k FROM gs.c) ORDER BY 1'),
	('VALUES (3, ''c''), (1, ''a'') UNION ALL VALUES (2, ''b'') ORDER BY 1'),
	('SELECT FROM gs.c UNION ALL SELECT FROM gs.c'),
	('SELECT count(*) FROM (SELECT id, k FROM gs.c UNION SELECT k, id FROM gs.c ORDER BY k, id OFFSET 0) s'),
	('SELECT * FROM (SELECT id, k FROM gs.c UNION SELECT k, id FROM gs.c ORDER BY k, id LIMIT 1500) s ORDER BY id, k'),
	('WITH RECURSIVE r (n, m) AS (SELECT 1, 1 UNION ALL SELECT n + 1, n * 7919 % 1009 FROM r WHERE n < 500) SELECT * FROM r ORDER BY m, n'),
	('WITH w AS MATERIALIZED (SELECT id FROM gs.c UNION SELECT -k FROM gs.c ORDER BY 1) SELECT * FROM w ORDER BY id DESC');
SELECT is(gs.compare_results(query), 'same', query) FROM gs.set_query ORDER BY ordinal;
SET gpusort.force = on;
SELECT lives_ok('EXPLAIN (VERBOSE) ' || query, 'EXPLAIN VERBOSE of set query ' || ordinal) FROM gs.set_query ORDER BY ordinal;
RESET gpusort.force;
SELECT is(gs.forced_uses(query), ordinal <> 15, 'the plan of set query ' || ordinal) FROM gs.set_query ORDER BY ordinal;

-- statements that write
CREATE TABLE gs.copy (n serial, id int, k int);
SET gpusort.force = on;
SET gpusort.min_rows = 0;
INSERT INTO gs.copy (id, k) SELECT id, k FROM gs.c ORDER BY k DESC, id;
CREATE TABLE gs.created AS SELECT id, k FROM gs.c ORDER BY k DESC, id;
CREATE MATERIALIZED VIEW gs.matview AS SELECT id, k FROM gs.c ORDER BY k DESC, id;
CREATE VIEW gs.ordered AS SELECT id, k FROM gs.c ORDER BY k DESC, id;
CREATE TEMP TABLE picked AS SELECT id, k FROM gs.c ORDER BY k DESC, id FOR UPDATE;
RESET gpusort.force;
RESET gpusort.min_rows;
SELECT is((SELECT array_agg(ROW(id, k)::text ORDER BY n) FROM gs.copy), gs.native_rows('SELECT id, k FROM gs.c ORDER BY k DESC, id'), 'INSERT ... SELECT');
SELECT is((SELECT array_agg(ROW(id, k)::text ORDER BY ctid) FROM gs.created), gs.native_rows('SELECT id, k FROM gs.c ORDER BY k DESC, id'), 'CREATE TABLE AS');
SELECT is((SELECT array_agg(ROW(id, k)::text ORDER BY ctid) FROM gs.matview), gs.native_rows('SELECT id, k FROM gs.c ORDER BY k DESC, id'), 'CREATE MATERIALIZED VIEW');
SELECT is((SELECT array_agg(ROW(id, k)::text ORDER BY ctid) FROM picked), gs.native_rows('SELECT id, k FROM gs.c ORDER BY k DESC, id'), 'FOR UPDATE');
SELECT is(gs.compare('SELECT * FROM gs.ordered'), 'same', 'a view');
SELECT is(gs.compare('SELECT * FROM gs.c ORDER BY k, id FOR UPDATE'), 'same', 'FOR UPDATE row by row');
SELECT is(gs.compare('SELECT * FROM gs.c ORDER BY k, id FOR SHARE SKIP LOCKED'), 'same', 'FOR SHARE SKIP LOCKED');
CREATE FUNCTION gs.deleted() RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
	result text[];
BEGIN
	WITH d AS (DELETE FROM gs.copy WHERE k > 500 RETURNING id, k) SELECT array_agg(s::text) INTO result FROM (SELECT * FROM d ORDER BY k, id) s;
	RETURN result;
END $$;
CREATE FUNCTION gs.forced_deleted() RETURNS text[] LANGUAGE sql SET gpusort.force = on SET gpusort.min_rows = 0 AS 'SELECT gs.deleted()';
SELECT is(gs.forced_deleted(), gs.native_rows('SELECT id, k FROM gs.c WHERE k > 500 ORDER BY k, id'), 'the rows of a data-modifying CTE');
SELECT is((SELECT count(*) FROM gs.copy WHERE k > 500), 0::bigint, 'and it ran');

-- PL/pgSQL
CREATE FUNCTION gs.loop(n int) RETURNS int[] LANGUAGE plpgsql AS $$
DECLARE
	r record;
	result int[] := '{}';
BEGIN
	FOR r IN SELECT id FROM gs.c WHERE k % n = 0 ORDER BY k, id LOOP
		result := result || r.id;
		IF cardinality(result) = 777 THEN
			EXIT;
		END IF;
	END LOOP;
	RETURN result;
END $$;
CREATE FUNCTION gs.forced_loop(n int) RETURNS int[] LANGUAGE sql SET gpusort.force = on SET gpusort.min_rows = 0 AS 'SELECT gs.loop(n)';
SELECT is(gs.forced_loop(1), (SELECT (array_agg(id ORDER BY k, id))[1:777] FROM gs.c), 'a FOR loop that ends early');
SELECT is(gs.forced_loop(n), (SELECT array_agg(id ORDER BY k, id) FROM gs.c WHERE k % n = 0), 'a FOR loop with parameter ' || n) FROM generate_series(3, 12) n;
CREATE FUNCTION gs.nested() RETURNS text LANGUAGE plpgsql SET gpusort.force = on SET gpusort.min_rows = 0 AS $$
DECLARE
	a record;
	b record;
	seen int := 0;
	last_k int;
BEGIN
	FOR a IN SELECT k, t FROM gs.c WHERE id <= 20 ORDER BY k LOOP
		last_k := NULL;
		FOR b IN SELECT k FROM gs.c WHERE t = a.t ORDER BY k DESC LOOP
			IF last_k < b.k THEN
				RETURN 'out of order';
			END IF;
			last_k := b.k;
			seen := seen + 1;
		END LOOP;
	END LOOP;
	RETURN seen;
END $$;
SELECT is(gs.nested(), '800', 'a loop in a loop');
CREATE FUNCTION gs.recursive(depth int) RETURNS int LANGUAGE plpgsql SET gpusort.force = on SET gpusort.min_rows = 0 AS $$
DECLARE
	r record;
BEGIN
	FOR r IN SELECT k FROM gs.c ORDER BY k DESC LOOP
		IF depth > 0 THEN
			RETURN r.k + gs.recursive(depth - 1);
		END IF;
		RETURN r.k;
	END LOOP;
END $$;
SELECT is(gs.recursive(12), 13 * (SELECT max(k) FROM gs.c), 'sorts open inside one another');

-- prepared statements
PREPARE by_parameter(int, text) AS SELECT id, k FROM gs.c WHERE k > $1 ORDER BY t = $2, k % $1, id;
CREATE FUNCTION gs.execute(n int, s text) RETURNS text[] LANGUAGE sql SET gpusort.force = on SET gpusort.min_rows = 0 AS
$$ SELECT gs.rows(format('EXECUTE by_parameter(%s, %L)', n, s)) $$;
SET plan_cache_mode = force_custom_plan;
SELECT is(gs.execute(n, 't' || n), gs.native_rows(format('SELECT id, k FROM gs.c WHERE k > %1$s ORDER BY t = ''t%1$s'', k %% %1$s, id', n)),
		  'custom plan, parameter ' || n) FROM generate_series(5, 7) n;
SET plan_cache_mode = force_generic_plan;
SELECT is(gs.execute(n, 't' || n), gs.native_rows(format('SELECT id, k FROM gs.c WHERE k > %1$s ORDER BY t = ''t%1$s'', k %% %1$s, id', n)),
		  'generic plan, parameter ' || n) FROM generate_series(5, 14) n;
RESET plan_cache_mode;
SET gpusort.force = on;
PREPARE kept AS SELECT id FROM gs.c ORDER BY k, id;
SELECT is(gs.rows('EXECUTE kept'), gs.native_rows('SELECT id FROM gs.c ORDER BY k, id'), 'a prepared statement');
SET gpusort.enable = off;
SELECT is(gs.rows('EXECUTE kept'), gs.native_rows('SELECT id FROM gs.c ORDER BY k, id'), 'the same after gpusort.enable = off');
RESET gpusort.enable;
RESET gpusort.force;
DEALLOCATE ALL;

-- rescans: inner side of a nested loop, with and without changed parameters
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
SET enable_memoize = off;
SELECT is(gs.compare('SELECT o, s.id FROM generate_series(1, 20) o LEFT JOIN (SELECT id, k FROM gs.c WHERE id <= 200 ORDER BY k, id OFFSET 0) s ON s.id <= o * 3'),
		  'same', 'a nested loop without parameters');
SELECT is(gs.compare('SELECT o, s.id FROM generate_series(1, 10) o LEFT JOIN (SELECT id, t FROM gs.c WHERE id <= 200 ORDER BY t, id OFFSET 0) s ON s.id <= o * 3'),
		  'same', 'the same by an inexact key');
SELECT is(gs.compare('SELECT o, s.id, s.k FROM generate_series(1, 20) o, LATERAL (SELECT id, k FROM gs.c WHERE id % 20 < o ORDER BY k, id OFFSET 0) s'),
		  'same', 'LATERAL with a parameter below the sort');
SELECT is(gs.compare('SELECT o, s.id FROM generate_series(-3, 3) o, LATERAL (SELECT id FROM gs.c ORDER BY k * o, id OFFSET 0) s'),
		  'same', 'LATERAL with a parameter in the key');
SELECT is(gs.compare('SELECT o, s.id FROM generate_series(1, 7) o, LATERAL (SELECT id, k FROM gs.c WHERE o % 2 = 1 ORDER BY k, id OFFSET 0) s'),
		  'same', 'LATERAL with every other sort empty');
SELECT is(gs.compare('SELECT o, s.id FROM generate_series(1, 30) o, LATERAL (SELECT id FROM gs.c WHERE k >= o ORDER BY k, id LIMIT o) s'),
		  'same', 'LATERAL that ends early');
SELECT is(gs.compare('SELECT o, s.* FROM generate_series(1, 5) o, LATERAL (SELECT id, o AS p FROM (SELECT id FROM gs.c ORDER BY k, id OFFSET 0) q WHERE q.id % 5 < o OFFSET 0) s'),
		  'same', 'LATERAL with a parameter above the sort of a table');
SELECT is(gs.compare('SELECT o, s.* FROM generate_series(1, 5) o, LATERAL (SELECT id, o AS p FROM (SELECT id FROM generate_series(1, 100) id ORDER BY id % 7, id OFFSET 0) q WHERE q.id % 5 < o OFFSET 0) s'),
		  'same', 'LATERAL with a parameter above the sort of a function');
SELECT is(gs.compare('SELECT o, s.* FROM generate_series(0, 49) o LEFT JOIN (SELECT id % 50 AS g, count(*), max(''a prefix longer than any key is ...........'' || id % 50) COLLATE "C" AS p FROM gs.c GROUP BY 1 ORDER BY 3 OFFSET 0) s ON s.g = o'),
		  'same', 'a nested loop that stops at its match among ties');
SELECT is(gs.compare('SELECT o, ARRAY(SELECT id FROM gs.c WHERE k < o ORDER BY k DESC, id) FROM generate_series(0, 30) o'), 'same', 'an ARRAY subquery');
SELECT is(gs.compare('SELECT o, (SELECT id FROM gs.c WHERE k >= o ORDER BY t DESC, id LIMIT 1) FROM generate_series(0, 30) o'), 'same', 'a scalar subquery');
RESET enable_hashjoin;
RESET enable_mergejoin;
SET enable_nestloop = off;
SET enable_hashjoin = off;
SELECT is(gs.compare('SELECT a.t, a.id, b.id FROM (SELECT t, id FROM gs.c WHERE id <= 300 ORDER BY t, id OFFSET 0) a JOIN (SELECT t, id FROM gs.c WHERE id > 1700 ORDER BY t, id OFFSET 0) b ON a.t = b.t'),
		  'same', 'a merge join of sorted subqueries');
SELECT is(gs.compare('SELECT a.k, a.id, b.id FROM (SELECT k % 10 AS k, id FROM gs.c WHERE id <= 300 ORDER BY 1, id OFFSET 0) a LEFT JOIN (SELECT k % 15 AS k, id FROM gs.c WHERE id > 1700 ORDER BY 1, id OFFSET 0) b ON a.k = b.k'),
		  'same', 'a merge left join of sorted subqueries');
RESET enable_hashjoin;
RESET enable_nestloop;
RESET enable_material;
RESET enable_memoize;

SELECT * FROM finish();
