\set ECHO none
-- Creates what the other tests use: the extensions, and the schema gs with
-- helpers that run a query natively and through GpuSort and compare the two.
-- PostgreSQL's own sort is the oracle of every result in this suite.
SET client_min_messages = warning;
CREATE EXTENSION pgtap;
CREATE EXTENSION gpusort;
LOAD 'gpusort';
\pset format unaligned
\pset tuples_only on

CREATE SCHEMA gs;

-- EXPLAIN (COSTS OFF) of a query under the settings of the caller.
CREATE FUNCTION gs.plan(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	result text := '';
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		result := result || line || E'\n';
	END LOOP;
	RETURN result;
END $$;

-- The same with gpusort made to take every sort that it legally can.
CREATE FUNCTION gs.forced_plan(query text) RETURNS text LANGUAGE sql
SET gpusort.enable = on SET gpusort.force = on SET gpusort.min_rows = 0
AS $$ SELECT gs.plan(query) $$;

CREATE FUNCTION gs.uses(query text) RETURNS bool LANGUAGE sql AS
$$ SELECT gs.plan(query) LIKE '%Custom Scan (GpuSort)%' $$;

CREATE FUNCTION gs.forced_uses(query text) RETURNS bool LANGUAGE sql AS
$$ SELECT gs.forced_plan(query) LIKE '%Custom Scan (GpuSort)%' $$;

-- The first GpuSort node of EXPLAIN (ANALYZE, FORMAT JSON), or NULL.
CREATE FUNCTION gs.node(query text) RETURNS jsonb LANGUAGE plpgsql
SET gpusort.enable = on SET gpusort.force = on SET gpusort.min_rows = 0
AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) ' || query INTO plan;
	RETURN jsonb_path_query_first(plan::jsonb,
		'strict $.** ? (@."Custom Plan Provider" == "GpuSort")');
END $$;

-- Whether every sort is done in runs, as with GPUSORT_RUN_ROWS (script/test runs).
CREATE TABLE gs.service AS
SELECT node ? 'Run Storage' AS makes_runs, coalesce(node->>'Run Storage' LIKE '%disk', false) AS writes_files
FROM coalesce(gs.node('SELECT i FROM generate_series(1, 5000) i ORDER BY -i'), '{}') node;

-- A plan as one line: a node's name, in brackets the nodes that it reads; of aggregates whether they are parts.
CREATE FUNCTION gs.shape_of(node jsonb) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	name text := replace(coalesce(node->>'Custom Plan Provider', node->>'Node Type'), 'Aggregate', 'Agg');
	below text;
BEGIN
	IF node->>'Partial Mode' <> 'Simple' THEN
		name := (node->>'Partial Mode') || ' ' || name;
	END IF;
	IF node ? 'Rows Read' THEN
		name := name || ' ' || (node->>'Rows Read');
	END IF;
	SELECT string_agg(gs.shape_of(c), ', ') INTO below FROM jsonb_array_elements(node->'Plans') c;
	RETURN name || coalesce('(' || below || ')', '');
END $$;
CREATE FUNCTION gs.shape(query text) RETURNS text LANGUAGE plpgsql
SET gpusort.enable = on SET gpusort.force = on SET gpusort.min_rows = 0
AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	RETURN gs.shape_of(plan::jsonb->0->'Plan');
END $$;

-- The Tie Rows of a node that has so many keys with ties: in runs the last row of each is not counted.
CREATE FUNCTION gs.tie_rows(node jsonb, keys int) RETURNS int LANGUAGE sql AS
$$ SELECT (node->>'Tie Rows')::int + CASE WHEN node ? 'Run Storage' THEN keys ELSE 0 END $$;

-- All rows of a query as text, in order; the long ones by their digest.
CREATE FUNCTION gs.rows(query text) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
	r record;
	line text;
	result text[] := '{}';
BEGIN
	FOR r IN EXECUTE query LOOP
		line := r::text;
		result := result || CASE WHEN length(line) > 2000 THEN md5(line) ELSE line END;
	END LOOP;
	RETURN result;
END $$;

CREATE FUNCTION gs.native_rows(query text) RETURNS text[] LANGUAGE sql
SET gpusort.enable = off
AS $$ SELECT gs.rows(query) $$;

CREATE FUNCTION gs.forced_rows(query text) RETURNS text[] LANGUAGE sql
SET gpusort.enable = on SET gpusort.force = on SET gpusort.min_rows = 0
AS $$ SELECT gs.rows(query) $$;

-- 'same', or where two lists of rows differ first.
CREATE FUNCTION gs.difference(native text[], forced text[]) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	IF native = forced THEN
		RETURN 'same';
	END IF;
	FOR i IN 1 .. greatest(cardinality(native), cardinality(forced)) LOOP
		IF native[i] IS DISTINCT FROM forced[i] THEN
			RETURN format('row %s of %s and %s: native %s, gpusort %s', i,
						  cardinality(native), cardinality(forced),
						  left(native[i], 200), left(forced[i], 200));
		END IF;
	END LOOP;
	RETURN 'different shape';
END $$;

-- All rows of a query as text, in the order of the text: natively in one process, because workers take long to start,
-- forced, forced in one process, and forced where the service may not be used.  Forced plans are parallel, too.
CREATE FUNCTION gs.sorted_rows(query text) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
	result text[];
BEGIN
	EXECUTE format('SELECT coalesce(array_agg(gs_row::text ORDER BY gs_row::text COLLATE "C"), ''{}'') FROM (%s OFFSET 0) gs_row', query) INTO result;
	RETURN result;
END $$;
CREATE FUNCTION gs.native_sorted_rows(query text) RETURNS text[] LANGUAGE sql SET gpusort.enable = off SET max_parallel_workers_per_gather = 0
AS $$ SELECT gs.sorted_rows(query) $$;
CREATE FUNCTION gs.forced_sorted_rows(query text) RETURNS text[] LANGUAGE sql
SET gpusort.enable = on SET gpusort.force = on SET gpusort.min_rows = 0 AS $$ SELECT gs.sorted_rows(query) $$;
CREATE FUNCTION gs.alone_sorted_rows(query text) RETURNS text[] LANGUAGE sql
SET gpusort.enable = on SET gpusort.force = on SET gpusort.min_rows = 0 SET max_parallel_workers_per_gather = 0
AS $$ SELECT gs.sorted_rows(query) $$;
CREATE FUNCTION gs.refused_sorted_rows(query text) RETURNS text[] LANGUAGE sql
SET gpusort.enable = on SET gpusort.force = on SET gpusort.min_rows = 0 SET gpusort.allowed = off
AS $$ SELECT gs.sorted_rows(query) $$;

-- 'same' when the query gives the same rows in the same order both ways; it
-- need not be eligible for GpuSort.  reset runs before each of the two.
CREATE FUNCTION gs.compare_results(query text, reset text DEFAULT 'SELECT 1') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	native text[];
	forced text[];
BEGIN
	EXECUTE reset;
	native := gs.native_rows(query);
	EXECUTE reset;
	forced := gs.forced_rows(query);
	RETURN gs.difference(native, forced);
END $$;

-- Counts of gpusort_stats by which the sorts of one query are told.
CREATE FUNCTION gs.sorts(OUT sorts bigint, OUT fallbacks bigint, OUT runs bigint) LANGUAGE sql SECURITY DEFINER AS
$$ SELECT sorts, fallbacks, runs FROM gpusort_stats $$;

-- 'same' when the plan has a GpuSort as well, and that was not a fallback, as gpusort_stats counts them.  What EXPLAIN
-- ANALYZE says, which is another run, is looked at where that is not so, and where workers are planned: rows may be
-- fetched without any.
CREATE FUNCTION gs.compare(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	before record := gs.sorts();
	result text := gs.compare_results(query);
	now record := gs.sorts();
	node jsonb;
BEGIN
	IF now.sorts = before.sorts OR now.fallbacks > before.fallbacks OR gs.forced_plan(query) LIKE '%Gather%' THEN
		node := gs.node(query);
		IF node IS NULL THEN
			RETURN 'no GpuSort in the plan';
		ELSIF node->>'Sort Method' NOT IN ('gpu radix', 'cpu radix', 'first rows') THEN
			RETURN 'sort method ' || (node->>'Sort Method') || ': ' || coalesce(node->>'Fallback Reason', 'no reason');
		END IF;
	END IF;
	RETURN result;
END $$;

-- For many rows: the digest of the whole result, inside one aggregate.
CREATE FUNCTION gs.digest(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
BEGIN
	EXECUTE format('SELECT count(*) || md5(string_agg(hashtextextended(gs_row::text, 0)::text, '' '')) FROM (%s) gs_row', query) INTO result;
	RETURN result;
END $$;

-- in memory and in one process, which takes PostgreSQL a fraction of the time
CREATE FUNCTION gs.native_digest(query text) RETURNS text LANGUAGE sql
SET gpusort.enable = off SET work_mem = '256MB' SET max_parallel_workers_per_gather = 0
AS $$ SELECT gs.digest(query) $$;

CREATE FUNCTION gs.forced_digest(query text) RETURNS text LANGUAGE sql
SET gpusort.enable = on SET gpusort.force = on SET gpusort.min_rows = 0
AS $$ SELECT gs.digest(query) $$;

CREATE FUNCTION gs.alone_digest(query text) RETURNS text LANGUAGE sql
SET gpusort.enable = on SET gpusort.force = on SET gpusort.min_rows = 0 SET max_parallel_workers_per_gather = 0
AS $$ SELECT gs.digest(query) $$;

-- All nodes of a kind in EXPLAIN (ANALYZE, VERBOSE), or of all of gpusort's kinds.
CREATE FUNCTION gs.nodes(query text, kind text DEFAULT NULL) RETURNS SETOF jsonb LANGUAGE plpgsql
SET gpusort.enable = on SET gpusort.force = on SET gpusort.min_rows = 0
AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, VERBOSE, TIMING OFF, FORMAT JSON) ' || query INTO plan;
	RETURN QUERY SELECT n
	FROM jsonb_path_query(plan::jsonb, 'strict $.** ? (@."Custom Plan Provider" starts with "GpuSort")') n
	WHERE kind IS NULL OR n->>'Custom Plan Provider' = kind;
END $$;

-- A query for the number of another's rows, and a sum over all that does not depend on their order.
CREATE FUNCTION gs.sum_query(query text) RETURNS text LANGUAGE sql AS $$
SELECT format('SELECT count(*) || '' '' || sum(hashtextextended(gs_row::text, 0)::numeric) FROM (SELECT * FROM (%s) gs_query OFFSET 0) gs_row', query)
$$;

CREATE FUNCTION gs.sum_of_rows(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
BEGIN
	EXECUTE gs.sum_query(query) INTO result;
	RETURN result;
END $$;

CREATE FUNCTION gs.native_sum(query text) RETURNS text LANGUAGE sql
SET gpusort.enable = off SET max_parallel_workers_per_gather = 0
AS $$ SELECT gs.sum_of_rows(query) $$;

CREATE FUNCTION gs.forced_sum(query text) RETURNS text LANGUAGE sql
SET gpusort.enable = on SET gpusort.force = on SET gpusort.min_rows = 0
AS $$ SELECT gs.sum_of_rows(query) $$;

CREATE FUNCTION gs.alone_sum(query text) RETURNS text LANGUAGE sql
SET gpusort.enable = on SET gpusort.force = on SET gpusort.min_rows = 0 SET max_parallel_workers_per_gather = 0
AS $$ SELECT gs.sum_of_rows(query) $$;

-- Rows of a query whose order does not count, in one.
CREATE FUNCTION gs.in_order(list text[]) RETURNS text[] LANGUAGE sql AS $$ SELECT coalesce(array_agg(e ORDER BY e COLLATE "C"), '{}') FROM unnest(list) e $$;

-- For many rows: 'same' when their digest is the native one and the sorts were the service's, in so many runs at
-- least, as gpusort_stats counts them; what EXPLAIN ANALYZE says, which is another run, is looked at where that is
-- not so.
CREATE FUNCTION gs.compare_bulk(query text, runs int DEFAULT 0) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	before record := gs.sorts();
	digest text := gs.forced_digest(query);
	now record := gs.sorts();
	node jsonb;
BEGIN
	IF now.sorts = before.sorts OR now.fallbacks > before.fallbacks OR now.runs - before.runs < runs THEN
		node := gs.node(query);
		IF node IS NULL THEN
			RETURN 'no GpuSort in the plan';
		ELSIF node->>'Sort Method' NOT IN ('gpu radix', 'cpu radix', 'first rows') THEN
			RETURN 'sort method ' || (node->>'Sort Method') || ': ' || coalesce(node->>'Fallback Reason', 'no reason');
		ELSIF runs > 0 AND (NOT node ? 'Run Storage' OR (node->>'Runs')::int < runs) THEN
			RETURN 'it fitted the memory: ' || node;
		END IF;
	END IF;
	IF digest = gs.native_digest(query) THEN
		RETURN 'same';
	END IF;
	RETURN gs.compare_results(query);
END $$;

-- The rows that a FETCH gives, as text, or its error.
CREATE FUNCTION gs.fetch(cursor_name text, movement text) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
	r record;
	result text[] := '{}';
BEGIN
	FOR r IN EXECUTE format('FETCH %s FROM %I', movement, cursor_name) LOOP
		result := result || r::text;
	END LOOP;
	RETURN result;
END $$;

-- Every direction that ORDER BY knows.
CREATE TABLE gs.direction (ordinal int, words text);
INSERT INTO gs.direction VALUES
	(1, 'ASC NULLS LAST'), (2, 'ASC NULLS FIRST'), (3, 'DESC NULLS FIRST'), (4, 'DESC NULLS LAST');

-- Random strings, the same in every run.

-- A number from 0 to n - 1.
CREATE FUNCTION gs.dice(n int, VARIADIC salt int[]) RETURNS int LANGUAGE sql IMMUTABLE AS
$$ SELECT ((hash_array_extended(salt, 0) & 4294967295) % n)::int $$;

-- What words are made of: letters of all cases, contractions' parts, signs, digits and digits of others, accents alone and composed,
-- ligatures, characters without weight, other scripts, the first and the last of all, those beyond 16 bits.
CREATE TABLE gs.piece AS SELECT row_number() OVER () AS id, p FROM unnest(ARRAY[
	'a', 'a', 'A', 'b', 'B', 'c', 'C', 'h', 'H', 'd', 'z', 'Z', 's', 'l', 'L', 'e', 'E', 'k', 'i', 'I', 'aa', 'bb', 'ch', 'Ch', 'dzs', 'll', 'xyz', 'ss',
	' ', '  ', '-', '_', '.', ',', '''', '$', '#', '~', '0', '1', '2', '9', '10', '007', E'\x01', E'\t', E'\x7f',
	U&'\00e9', U&'\00c9', U&'e\0301', U&'\00e4', U&'a\0308', U&'\00e5', U&'\00f6', U&'\00f8', U&'\00df', U&'\00e6', U&'\0133', U&'\fb01', U&'l\00b7', U&'\0140',
	U&'\0300', U&'\0301', U&'\0323', U&'\0323\0307', U&'\0307\0323', U&'\0345', U&'\034f', U&'\00ad', U&'\200b', U&'\200d', U&'\feff', U&'\00a0', U&'\2028',
	U&'\212a', U&'\212b', U&'\037e', U&'\03b1', U&'\0391', U&'\0430', U&'\0410', U&'\0439', U&'\05d0', U&'\0627', U&'\0661', U&'\0967', U&'\ff11', U&'\2460', U&'\00b2',
	U&'\0e01', U&'\0e40', U&'\0e48', U&'\0f71\0f72', U&'\1100\1161', U&'\ac00', U&'\3042', U&'\30a2', U&'\ff71', U&'\304b\3099', U&'\30fc', U&'\4e00', U&'\4e8c',
	U&'\fdfa', U&'\d7ff', U&'\e000', U&'\fffd', U&'\fffe', U&'\ffff', U&'\+010000', U&'\+01f600', U&'\+01f1e9\+01f1ea', U&'\+01d165', U&'\+02f800', U&'\+10ffff']) p;

CREATE FUNCTION gs.word(pieces int, seed int, kinds int) RETURNS text LANGUAGE sql AS
$$ SELECT coalesce(string_agg(p, '' ORDER BY j), '') FROM generate_series(1, pieces) j JOIN gs.piece ON id = 1 + gs.dice(kinds, seed, j) $$;

-- Letters of alphabets that UTF-8 stores in two bytes, and ASCII, several alphabets in a word in some.
CREATE FUNCTION gs.letters(letters int, seed int) RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(chr(CASE gs.dice(CASE WHEN seed % 3 = 0 THEN 9 ELSE 4 END, seed, j)
		WHEN 0 THEN 97 + gs.dice(26, seed, j, 1) WHEN 1 THEN 65 + gs.dice(26, seed, j, 1) WHEN 2 THEN 192 + gs.dice(384, seed, j, 1) WHEN 3 THEN 32 + gs.dice(32, seed, j, 1)
		WHEN 4 THEN 913 + gs.dice(70, seed, j, 1) WHEN 5 THEN 1024 + gs.dice(300, seed, j, 1) WHEN 6 THEN 1488 + gs.dice(27, seed, j, 1)
		WHEN 7 THEN 1569 + gs.dice(26, seed, j, 1) ELSE 160 + gs.dice(1800, seed, j, 1) END), '' ORDER BY j)
	FROM generate_series(1, letters) j
$$;

SELECT * FROM no_plan();
SELECT has_extension('gpusort');
SELECT is(gpusort_version(), (SELECT extversion FROM pg_extension WHERE extname = 'gpusort'),
		  'gpusort_version() is the version of the extension');
SELECT is(gs.rows('VALUES (1, ''a''), (2, NULL)'), ARRAY['(1,a)', '(2,)'], 'rows as text');
SELECT is(gs.difference(ARRAY['a', 'b'], ARRAY['a', 'b']), 'same', 'equal lists are the same');
SELECT is(gs.difference(ARRAY['a', 'b'], ARRAY['b', 'a']), 'row 1 of 2 and 2: native a, gpusort b', 'other order is told');
SELECT is(gs.difference(ARRAY['a'], ARRAY['a', 'b']), 'row 2 of 1 and 2: native , gpusort b', 'another row is told');
SELECT is(gs.compare('SELECT i FROM generate_series(1, 10) i ORDER BY i DESC'), 'same', 'a first sort');
SELECT * FROM finish();
