\set ECHO none
-- Sorts without a plan (src/sort/sort.h, src/parallel/sort_set.h): every kind of rows, read in each of the ways
-- that there are.  The order is PostgreSQL's ORDER BY of the same elements.
SET client_min_messages = warning;
LOAD 'gpusort';
\pset format unaligned
\pset tuples_only on
SET gpusort.force = on;
SET gpusort.min_rows = 0;

CREATE FUNCTION gs.test_sort(elements anyarray, kind text, how text, descending boolean, index oid) RETURNS text[]
AS '$libdir/gpusort', 'gpusort_test_sort' LANGUAGE C VOLATILE STRICT;

-- The numbers of elements that are equal in every way but one.
CREATE TABLE gs.sorted (label text, sql_type text, source text);
INSERT INTO gs.sorted VALUES
	('int4', 'int4', 'SELECT nullif(i * 7919 % 703, 5)::int4 FROM generate_series(1, 2500) i'),
	('int8', 'int8', 'SELECT (i * 7919 % 703) * 4294967296 FROM generate_series(1, 2500) i'),
	('text', 'text', $$SELECT CASE WHEN i % 11 <> 0 THEN md5((i % 700)::text) END FROM generate_series(1, 2500) i$$),
	('alike', 'text', $$SELECT repeat('the same ', 120) || i % 300 || repeat('x', 300) FROM generate_series(1, 1200) i$$),
	('numeric', 'numeric', $$SELECT ((i % 300)::text || repeat('0', i % 3) || CASE WHEN i % 5 = 0 THEN '.000' ELSE '.25' END)::numeric FROM generate_series(1, 2500) i$$),
	('uuid', 'uuid', 'SELECT md5((i % 700)::text)::uuid FROM generate_series(1, 2500) i'),
	('none', 'int4', 'SELECT i FROM generate_series(1, 0) i'),
	('one', 'int4', 'SELECT 7');
CREATE TABLE gs.kind (kind text, shown text);
INSERT INTO gs.kind VALUES
	('heap', $$ || ' ' || n$$),
	('index', $$ || ' ' || n || CASE WHEN (n - 1) % 7 = 0 THEN ' dead' ELSE '' END$$),
	('datum', '');

-- What the sort gives from row number start on, and what is right; elements that equal others in all but their numbers
-- come in the order of these.
CREATE FUNCTION gs.compare_sorts(sql_type text, source text, kind text, shown text, how text, descending bool, start int)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	expected text[];
	sorted text[];
	elements text;
	index oid := 0;
BEGIN
	EXECUTE format('CREATE TEMPORARY TABLE element AS SELECT v::%s, row_number() OVER ()::int AS n FROM (%s) s (v)', sql_type, source);
	IF kind = 'index' THEN
		EXECUTE format('CREATE INDEX element_v ON element (v %s)', CASE WHEN descending THEN 'DESC' ELSE 'ASC' END);
		index := 'pg_temp.element_v'::regclass;
	END IF;
	EXECUTE format('SELECT array_agg(coalesce(v::text, ''NULL'') %s ORDER BY v %s, n) FROM element', shown, CASE WHEN descending THEN 'DESC' ELSE 'ASC' END) INTO expected;
	EXECUTE format('SELECT gs.test_sort(coalesce(array_agg(v ORDER BY n), ''{}''), $1, $2, $3, $4) FROM element') INTO sorted
		USING kind, how, descending, index;
	DROP TABLE element;
	RETURN CASE WHEN sorted IS NOT DISTINCT FROM expected[start + 1:] OR (expected IS NULL AND sorted IS NULL) THEN 'same'
		ELSE format('%s rows, not %s', cardinality(sorted), cardinality(expected)) END;
END $$;

SELECT * FROM no_plan();

SELECT is(gs.compare_sorts(sql_type, source, kind, shown, how, descending, 0), 'same', format('%s as %s, %s%s', label, kind, how, CASE WHEN descending THEN ', descending' ELSE '' END))
FROM gs.sorted, gs.kind, (VALUES ('next'), ('rewind'), ('ranges')) h (how), (VALUES (false), (true)) d (descending)
WHERE how = 'next' OR NOT descending
ORDER BY label COLLATE "C", kind COLLATE "C", how COLLATE "C", descending;

-- From any row: of those that no tie is before.
SELECT is(gs.compare_sorts('int4', 'SELECT (i * 7919 % 2503)::int4 FROM generate_series(1, 2500) i', kind, shown, first::text, false, first), 'same', format('from row %s, as %s', first, kind))
FROM gs.kind, (VALUES (0), (1), (1250), (2499)) f (first)
ORDER BY kind COLLATE "C", first;

-- Ranges are several, and equal rows are in one of them.
SET client_min_messages = notice;
\set VERBOSITY terse
SELECT is(cardinality(gs.test_sort((SELECT array_agg(i % 3000) FROM generate_series(1, 60000) i), 'heap', 'ranges', false, 0)), 60000, 'of many rows several ranges');
SET client_min_messages = warning;

-- PostgreSQL sorts where the service is not to, in the same order.
SELECT is(gs.compare_sorts(sql_type, source, kind, shown, how, descending, 0), 'same', format('%s as %s, %s%s by PostgreSQL', label, kind, how, CASE WHEN descending THEN ', descending' ELSE '' END))
FROM gs.sorted, gs.kind, (VALUES ('next'), ('rewind')) h (how), (VALUES (false), (true)) d (descending),
	LATERAL (SELECT set_config('gpusort.allowed', 'off', false)) s
WHERE (how = 'next' OR NOT descending) AND kind = 'index'
ORDER BY label COLLATE "C", how COLLATE "C", descending;
RESET gpusort.allowed;

-- Long rows, and values that are kept elsewhere.
SELECT is(gs.compare_sorts('text', $$SELECT repeat(chr(97 + i % 26), 1200000) || i FROM generate_series(1, 12) i$$, kind, shown, how, false, 0), 'same', format('long values as %s, %s', kind, how))
FROM gs.kind, (VALUES ('next'), ('rewind')) h (how) WHERE kind <> 'index'
ORDER BY kind COLLATE "C", how COLLATE "C";

-- A value that is expanded in memory is made flat.
SELECT is(gs.test_sort(ARRAY[ARRAY[3, 1], ARRAY[2, 9]], 'datum', 'next', false, 0), '{1,2,3,9}', 'elements of an array of two dimensions');

-- Who may not make such a function cannot call it.
CREATE ROLE gs_nobody;
SET ROLE gs_nobody;
SELECT throws_ok($$CREATE FUNCTION pg_temp.test_sort(anyarray, text, text, boolean, oid) RETURNS text[] AS '$libdir/gpusort', 'gpusort_test_sort' LANGUAGE C STRICT$$, '42501', NULL, 'only a superuser makes the function');
RESET ROLE;
DROP ROLE gs_nobody;

SELECT * FROM finish();
DROP FUNCTION gs.compare_sorts, gs.test_sort;
DROP TABLE gs.sorted, gs.kind;
