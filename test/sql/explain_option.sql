\set ECHO none
-- EXPLAIN (GPUSORT), from PostgreSQL 18 on: why sorts are done as they are.
SET client_min_messages = warning;
LOAD 'gpusort';
\pset format unaligned
\pset tuples_only on
SET max_parallel_workers_per_gather = 0;
SET gpusort.min_rows = 1000;

CREATE TABLE gs.e AS SELECT i AS id, (i * 7919) % 10007 AS k, i / 100 AS few, i::text::oidvector AS j, 't' || i AS t FROM generate_series(1, 20000) i;
CREATE INDEX ON gs.e (few);
CREATE TABLE gs.e_small AS SELECT * FROM gs.e WHERE id <= 500;
VACUUM ANALYZE gs.e, gs.e_small;

CREATE FUNCTION gs.explained(query text, options text DEFAULT 'GPUSORT, COSTS OFF') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	result text := '';
BEGIN
	FOR line IN EXECUTE format('EXPLAIN (%s) %s', options, query) LOOP
		result := result || line || E'\n';
	END LOOP;
	RETURN result;
END $$;

-- What it says of a query's nodes, a line for each; before 18 what is expected, for there is no such option.
CREATE FUNCTION gs.says(expected text, query text, what text) RETURNS text LANGUAGE sql AS $$
SELECT CASE WHEN current_setting('server_version_num')::int < 180000 THEN pass(what)
	ELSE matches(coalesce((SELECT string_agg(trim(line), ' | ') FROM regexp_split_to_table(gs.explained(query), E'\n') line WHERE line ~ 'GpuSort: '), 'nothing'),
				 '^' || expected || '$', what) END $$;

SELECT * FROM no_plan();

-- sorts that stay PostgreSQL's
SELECT gs.says('nothing', 'SELECT * FROM gs.e ORDER BY k', 'a sort that is used');
SELECT gs.says('nothing', 'SELECT * FROM gs.e', 'no sort');
SELECT gs.says('GpuSort: not used: sort key 1 is of type oidvector, which has no key encoding', 'SELECT * FROM gs.e ORDER BY j', 'a type');
SELECT gs.says('GpuSort: not used: 500 rows are fewer than gpusort.min_rows', 'SELECT * FROM gs.e_small ORDER BY k', 'few rows');
SELECT gs.says('GpuSort: not used: sort key 1.*', 'WITH c AS MATERIALIZED (SELECT * FROM gs.e ORDER BY j) SELECT count(*) FROM c', 'in a CTE');
SELECT gs.says('GpuSort: not used: sort key 1.*', 'SELECT (SELECT id FROM gs.e ORDER BY j OFFSET 7 LIMIT 1)', 'in an expression');
SET gpusort.setup_cost = 1e9;
SELECT gs.says('GpuSort: not used: the sort alone would take [0-9.]+ ms, PostgreSQL''s [0-9.]+ ms for the rows that LIMIT asks for; gpusort has to be 1\.2 times as fast and to save [0-9.]+ ms', 'SELECT * FROM gs.e ORDER BY k LIMIT 10', 'a small LIMIT');
SELECT gs.says('GpuSort: not used: the sort alone would take [0-9.]+ ms, PostgreSQL''s [0-9.]+ ms; gpusort has to be 1\.2 times as fast and to save [0-9.]+ ms', 'SELECT * FROM gs.e ORDER BY k', 'the cost');
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT gs.says('GpuSort: not used: the sort alone would take [0-9.]+ ms, PostgreSQL''s [0-9.]+ ms; gpusort has to be 1\.2 times as fast and to save [0-9.]+ ms', 'SELECT * FROM gs.e ORDER BY k', 'below a Gather Merge');
SET max_parallel_workers_per_gather = 0;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT gs.says('GpuSort: not used: the rows are already in order by its first columns; an Incremental Sort sorts small parts', 'SELECT * FROM gs.e ORDER BY few, k', 'an incremental sort');
RESET enable_seqscan;
RESET enable_bitmapscan;
SET enable_hashagg = off;
SELECT gs.says('GpuSort: not used: the aggregate does the second and further sorts of grouping sets by itself.*', 'SELECT k, few, count(*) FROM gs.e GROUP BY GROUPING SETS (k, few)', 'grouping sets');
RESET enable_hashagg;

-- a plan that is kept says what there is now
SET plan_cache_mode = force_generic_plan;
PREPARE e (int) AS SELECT * FROM gs.e WHERE id > $1 ORDER BY k;
SELECT gs.says('GpuSort: not used: the sort alone would take [0-9.]+ ms, PostgreSQL''s [0-9.]+ ms; gpusort has to be 1\.2 times as fast and to save [0-9.]+ ms', 'EXECUTE e(1)', 'a prepared statement');
SET gpusort.setup_cost = 0;
SET gpusort.row_cost = 0;
SELECT gs.says('nothing', 'EXECUTE e(1)', 'with other settings of gpusort it is planned again');
DEALLOCATE e;
-- and so are reasons that are kept with it
SET gpusort.setup_cost = 1e9;
SET gpusort.log_decisions = on;
PREPARE e (int) AS SELECT * FROM gs.e WHERE id > $1 ORDER BY k;
SELECT is(cardinality(gs.rows('EXECUTE e(19999)')), 1, 'a plan that is kept with its reasons');
RESET gpusort.log_decisions;
SELECT gs.says('GpuSort: not used: the sort alone would take [0-9.]+ ms, PostgreSQL''s [0-9.]+ ms; gpusort has to be 1\.2 times as fast and to save [0-9.]+ ms', 'EXECUTE e(1)', 'reasons that were kept');
SET gpusort.setup_cost = 0;
SET gpusort.row_cost = 0;
SELECT gs.says('nothing', 'EXECUTE e(1)', 'and it is planned again, too');
DEALLOCATE e;
RESET plan_cache_mode;

-- what one process does
SET gpusort.force = on;
SET max_parallel_workers_per_gather = 2;
SET enable_hashagg = off;
SET enable_hashjoin = off;
SET enable_nestloop = off;
SELECT gs.says('nothing', 'SELECT k, sum(id) OVER (PARTITION BY k ORDER BY id) FROM gs.e', 'a window that all processes do');
SELECT gs.says('GpuSort: only one process does this: the sort does not begin with a column of the window''s PARTITION BY, and array_agg\(anynonarray\) needs all rows of a partition in order, in one process', 'SELECT array_agg(id) OVER (ORDER BY k) FROM gs.e', 'a window that one does');
SELECT gs.says('GpuSort: only one process does this: random\(\) is not parallel safe', 'SELECT k, count(DISTINCT id) + sum(0.5::float8), random() FROM gs.e GROUP BY k', 'a function');
SET enable_incremental_sort = off;
SELECT gs.says('GpuSort: not used: each process sorts the rows of one range after another', 'SELECT k, sum(id) OVER (PARTITION BY k ORDER BY id), sum(few) OVER (PARTITION BY k ORDER BY t COLLATE "C") FROM gs.e', 'a second window');
RESET enable_incremental_sort;
SET gpusort.parallel_output = off;
SELECT gs.says('GpuSort: only one process does this: gpusort.parallel_output is off', 'SELECT k, sum(id) OVER (PARTITION BY k ORDER BY id) FROM gs.e', 'a setting');
RESET gpusort.parallel_output;

-- formats, and other options
CREATE FUNCTION gs.on_18(got text, expected text, what text) RETURNS text LANGUAGE sql AS $$
SELECT CASE WHEN current_setting('server_version_num')::int < 180000 THEN pass(what) ELSE alike(got, expected, what) END $$;
CREATE FUNCTION gs.explained_on_18(query text, options text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	RETURN CASE WHEN current_setting('server_version_num')::int >= 180000 THEN gs.explained(query, options) END;
END $$;
SELECT gs.on_18((gs.explained_on_18('SELECT * FROM gs.e ORDER BY j', 'GPUSORT, FORMAT JSON')::jsonb @? '$.**.GpuSort[*] ? (@ starts with "not used: sort key 1 is of type")')::text, 'true', 'JSON');
SELECT gs.on_18((gs.explained_on_18('SELECT * FROM gs.e ORDER BY j', 'GPUSORT, FORMAT JSON')::jsonb #>> '{0,GpuSort Service}'), '%', 'the service in JSON');
SELECT gs.on_18(gs.explained_on_18('SELECT * FROM gs.e ORDER BY j', 'GPUSORT, FORMAT XML'), '%<GpuSort>%<Item>not used: sort key 1 is of type%</GpuSort>%', 'XML');
SELECT gs.on_18(gs.explained_on_18('SELECT * FROM gs.e ORDER BY j', 'GPUSORT, FORMAT YAML'), '%GpuSort: %- "not used: sort key 1 is of type%', 'YAML');
SELECT gs.on_18(gs.explained_on_18('SELECT * FROM gs.e ORDER BY j', 'GPUSORT on, ANALYZE, BUFFERS off'), '%actual time%GpuSort: not used: sort key 1 is of type%', 'with ANALYZE');
SELECT gs.on_18(gs.explained_on_18('SELECT * FROM gs.e ORDER BY k', 'GPUSORT, COSTS OFF'), '%GpuSort Service: ready, on %', 'the service');
SET gpusort.enable = off;
SELECT gs.on_18(gs.explained_on_18('SELECT * FROM gs.e ORDER BY j', 'GPUSORT, COSTS OFF'), '%Sort%GpuSort Service: not asked, gpusort.enable is off%', 'gpusort.enable = off');
RESET gpusort.enable;
SELECT is(CASE WHEN current_setting('server_version_num')::int < 180000 THEN gs.plan('SELECT * FROM gs.e ORDER BY j') ELSE gs.explained_on_18('SELECT * FROM gs.e ORDER BY j', 'GPUSORT off, COSTS OFF') END,
		  gs.plan('SELECT * FROM gs.e ORDER BY j'), 'GPUSORT off');

DROP TABLE gs.e, gs.e_small;
SELECT * FROM finish();
