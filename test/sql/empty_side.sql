\set ECHO none
-- Joins of which a side comes out empty: the other one is not read where no row of it is wanted.
SET client_min_messages = warning;
LOAD 'gpusort';
\pset format unaligned
\pset tuples_only on
SET max_parallel_workers_per_gather = 0;
SET enable_hashjoin = off;
SET enable_nestloop = off;

CREATE TABLE gs.long AS SELECT i AS id, i % 500 AS k, 'long ' || i % 31 AS t FROM generate_series(1, 6000) i;
CREATE TABLE gs.short AS SELECT i AS id, i * 7 % 500 AS k, 'long ' || i % 37 AS t FROM generate_series(1, 1500) i;
ANALYZE gs.long, gs.short;

-- What the planner does not see: none, one row, or all.
CREATE FUNCTION gs.where_of(rows text, alias text) RETURNS text LANGUAGE sql AS
$$ SELECT format(CASE rows WHEN 'none' THEN '%s.id + 0 < 0' WHEN 'one' THEN '%s.id + 0 < 2' ELSE '%s.id + 0 > 0' END, alias) $$;

-- Which tables were read, and how often: of those that were not, nothing.  Only joins of two GpuSorts are asked about.
CREATE FUNCTION gs.tables_read(query text) RETURNS text LANGUAGE plpgsql
SET gpusort.force = on SET gpusort.min_rows = 0
AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) ' || query INTO plan;
	IF NOT jsonb_path_exists(plan::jsonb, 'strict $.** ? (@."Node Type" == "Merge Join" && @.Plans[0]."Custom Plan Provider" == "GpuSort" && @.Plans[1]."Custom Plan Provider" == "GpuSort")') THEN
		RETURN 'no merge join of two GpuSorts: ' || gs.plan(query);
	END IF;
	RETURN (SELECT coalesce(string_agg(format('%s %s', node->>'Relation Name', node->>'Actual Loops'), ', ' ORDER BY node->>'Relation Name'), '')
			FROM jsonb_path_query(plan::jsonb, 'strict $.** ? (exists(@."Relation Name") && @."Actual Loops" > 0)') node);
END $$;
CREATE FUNCTION gs.compare_joins(query text) RETURNS text LANGUAGE sql AS
$$ SELECT gs.difference(gs.in_order(gs.native_rows(query)), gs.in_order(gs.forced_rows(query))) $$;

SELECT * FROM no_plan();

-- The side that is expected to have fewer rows has none.
CREATE TABLE gs.join_kind AS
SELECT * FROM (VALUES
	('inner', false, false, 'SELECT l.id, s.id FROM gs.long l JOIN gs.short s ON l.k = s.k WHERE %s AND %s'),
	('semi', false, false, 'SELECT l.id FROM gs.long l WHERE EXISTS (SELECT FROM gs.short s WHERE s.k = l.k AND s.id <> l.id AND %2$s) AND %1$s'),
	('left', true, false, 'SELECT l.id, s.id FROM (SELECT * FROM gs.long l WHERE %s) l LEFT JOIN (SELECT * FROM gs.short s WHERE %s) s ON l.k = s.k'),
	('right', false, true, 'SELECT l.id, s.id FROM (SELECT * FROM gs.long l WHERE %s) l RIGHT JOIN (SELECT * FROM gs.short s WHERE %s) s ON l.k = s.k'),
	('full', true, true, 'SELECT l.id, s.id FROM (SELECT * FROM gs.long l WHERE %s) l FULL JOIN (SELECT * FROM gs.short s WHERE %s) s ON l.k = s.k'),
	('anti', true, false, 'SELECT l.id FROM gs.long l WHERE NOT EXISTS (SELECT FROM gs.short s WHERE s.k = l.k AND %2$s) AND %1$s'),
	('texts', false, false, 'SELECT l.id, s.id FROM gs.long l JOIN gs.short s ON l.t = s.t AND l.k = s.k WHERE %s AND %s')) v (kind, fills_long, fills_short, query);
CREATE FUNCTION gs.join_query(query text, long text, short text) RETURNS text LANGUAGE sql AS
$$ SELECT format(query, gs.where_of(long, 'l'), gs.where_of(short, 's')) $$;
SELECT is(gs.tables_read(gs.join_query(query, 'all', 'none')), CASE WHEN fills_long THEN 'long 1, short 1' ELSE 'short 1' END, kind || ', short none')
FROM gs.join_kind;
SELECT is(gs.compare_joins(gs.join_query(query, long, short)), 'same', format('%s, long %s, short %s', kind, long, short))
FROM gs.join_kind, (VALUES ('none'), ('one'), ('all')) l (long), (VALUES ('none'), ('one'), ('all')) s (short) ORDER BY kind, long, short;

-- A side that has rows and is read again keeps those that it had back, though no join asked for them.
CREATE TABLE gs.bound_to AS SELECT i AS n FROM generate_series(1, 6) i;
ANALYZE gs.bound_to;
SET enable_nestloop = on;
SET enable_mergejoin = on;
CREATE TABLE gs.again AS
SELECT * FROM (VALUES
	('the short side has none', 'bound_to 1, short 1', 'SELECT n, j.* FROM gs.bound_to, LATERAL (SELECT l.id AS l FROM gs.long l WHERE EXISTS (SELECT FROM gs.short s WHERE s.k = l.k AND s.id <> l.id AND s.id + 0 < 0) AND l.id + 0 > n OFFSET 0) j'),
	('the long side has none', 'bound_to 1, long 6, short 1', 'SELECT n, j.* FROM gs.bound_to, LATERAL (SELECT l.id AS l FROM gs.long l WHERE EXISTS (SELECT FROM gs.short s WHERE s.k = l.k AND s.id <> l.id AND s.id + 0 > 0) AND l.id + 0 < -n OFFSET 0) j'),
	('the long side has one, at times', 'bound_to 1, long 6, short 1', 'SELECT n, j.* FROM gs.bound_to, LATERAL (SELECT l.id AS l FROM gs.long l WHERE EXISTS (SELECT FROM gs.short s WHERE s.k = l.k AND s.id <> l.id AND s.id + 0 > 0) AND l.id + 0 < n % 3 OFFSET 0) j'),
	('the short side has one, at times', 'bound_to 1, long 1, short 6', 'SELECT n, j.* FROM gs.bound_to, LATERAL (SELECT l.id AS l, s.id AS s FROM gs.long l JOIN gs.short s ON l.k = s.k WHERE s.id + 0 < n % 3 OFFSET 0) j'),
	('the short side has one, at times, behind the long one', NULL, 'SELECT n, j.* FROM gs.bound_to, LATERAL (SELECT l.id AS l FROM gs.long l WHERE EXISTS (SELECT FROM gs.short s WHERE s.k = l.k AND s.id <> l.id AND s.id + 0 < n % 3) AND l.id + 0 > 0 OFFSET 0) j'),
	('both change', NULL, 'SELECT n, j.* FROM gs.bound_to, LATERAL (SELECT l.id AS l, s.id AS s FROM gs.long l JOIN gs.short s ON l.k = s.k WHERE s.id + 0 < n % 3 AND l.id + 0 > n * 10 OFFSET 0) j')) v (what, read, query);
SET enable_nestloop = off;
SELECT is(gs.tables_read(query), read, what) FROM gs.again WHERE read IS NOT NULL;
SELECT is(gs.compare_joins(query), 'same', what) FROM gs.again;

-- A side that is not read does not fail, as below a hash join; one that is read does.
SELECT is(gs.forced_rows('SELECT l.id FROM (SELECT * FROM gs.long WHERE 1 / (id - id) > 0 OFFSET 0) l JOIN gs.short s ON l.k = s.k WHERE s.id + 0 < 0'), '{}', 'no error in what is not read');
SELECT throws_ok($$ SELECT gs.forced_rows('SELECT l.id FROM (SELECT * FROM gs.long WHERE 1 / (id - id) > 0 OFFSET 0) l JOIN gs.short s ON l.k = s.k WHERE s.id + 0 < 3') $$, '22012', 'division by zero');

-- Sides that workers ingest, and joins that all processes run.
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET gpusort.parallel_output = off;
SELECT is(gs.compare_joins(gs.join_query(query, long, short)), 'same', format('%s, workers ingest, long %s, short %s', kind, long, short))
FROM gs.join_kind, (VALUES ('none'), ('all')) l (long), (VALUES ('none'), ('one'), ('all')) s (short) ORDER BY kind, long, short;
SELECT ok(gs.tables_read(gs.join_query(query, 'all', 'none')) ~ CASE WHEN fills_long THEN '^long [1-3], short [1-3]$' ELSE '^short [1-3]$' END, kind || ', workers ingest, short none')
FROM gs.join_kind;
RESET gpusort.parallel_output;
SELECT is(gs.compare_joins(gs.join_query(query, long, short)), 'same', format('%s in all processes, long %s, short %s', kind, long, short))
FROM gs.join_kind, (VALUES ('none'), ('one'), ('all')) l (long), (VALUES ('none'), ('one'), ('all')) s (short) ORDER BY kind, long, short;

SELECT * FROM finish();
DROP TABLE gs.long, gs.short, gs.join_kind, gs.bound_to, gs.again;
DROP FUNCTION gs.where_of, gs.tables_read, gs.compare_joins, gs.join_query;
