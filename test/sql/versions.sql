\set ECHO none
-- What differs between the versions of PostgreSQL.
SET client_min_messages = warning;
LOAD 'gpusort';
\pset format unaligned
\pset tuples_only on
SET max_parallel_workers_per_gather = 0;
SET gpusort.setup_cost = 0;
SET gpusort.row_cost = 0;

CREATE TABLE gs.v AS SELECT i AS id, (i * 7919) % 10007 AS k, i / 100 AS few, 'text ' || (i * 31) % 997 AS t FROM generate_series(1, 20000) i;
CREATE INDEX ON gs.v (k);
CREATE INDEX ON gs.v (few);
VACUUM ANALYZE gs.v;

SELECT * FROM no_plan();

-- Settings that disable plans raise costs up to 17, and are counted from 18 on.
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT ok(NOT gs.uses('SELECT * FROM gs.v ORDER BY k'), 'not where an index gives the order');
SELECT ok(gs.uses('SELECT * FROM gs.v ORDER BY t COLLATE "C", id'), 'but where nothing does, over a disabled scan');
SELECT is(gs.compare_results('SELECT * FROM gs.v ORDER BY t COLLATE "C", id'), 'same', 'and its rows');
-- parallel only with a disabled scan
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET min_parallel_index_scan_size = '1GB';
SELECT ok(gs.plan('SELECT * FROM gs.v WHERE k >= 0 ORDER BY t COLLATE "C", id') LIKE '%GpuSort%Index Scan%', 'over a scan that is not disabled');
SET enable_seqscan = on;
SET max_parallel_workers_per_gather = 0;
SET enable_bitmapscan = on;

-- A merge join whose outer side has an order already: PostgreSQL 18 sorts the rest incrementally.
SET enable_hashjoin = off;
SET enable_nestloop = off;
SELECT is(gs.compare_results('SELECT a.id, b.k FROM gs.v a JOIN gs.v b ON a.few = b.few AND a.k = b.k WHERE a.few < 60 ORDER BY a.id, b.k'), 'same', 'a merge join');
SELECT is(gs.rows('SELECT a.id, b.k FROM gs.v a JOIN gs.v b ON a.few = b.few AND a.k = b.k WHERE a.few < 60 ORDER BY a.id, b.k'),
		  gs.native_rows('SELECT a.id, b.k FROM gs.v a JOIN gs.v b ON a.few = b.few AND a.k = b.k WHERE a.few < 60 ORDER BY a.id, b.k'), 'a merge join, by cost');
SET enable_mergejoin = off;
SELECT is(gs.compare_results('SELECT a.id, b.k FROM gs.v a JOIN gs.v b ON a.few = b.few AND a.k = b.k WHERE a.few < 60 ORDER BY a.id, b.k'), 'same', 'every join disabled');
RESET ALL;
SET client_min_messages = warning;

-- PostgreSQL's own collation provider, from 17 on, orders by code points.
SELECT is((SELECT string_agg(collname, ', ') FROM pg_collation
		   WHERE collprovider = 'b' AND collencoding IN (-1, (SELECT encoding FROM pg_database WHERE datname = current_database()))
				 AND gs.compare(format('SELECT id, t COLLATE %I.%I FROM gs.v ORDER BY 2, 1', collnamespace::regnamespace, collname)) <> 'same'),
		  NULL, 'collations of PostgreSQL''s own provider');
-- oid8, from 19 on, compared without a sign
SELECT is(CASE WHEN to_regtype('oid8') IS NULL THEN 'same'
		  ELSE gs.compare(format('SELECT id, (CASE WHEN k %% 2 = 0 THEN k ELSE 18446744073709551615 - k END)::text::%s AS o FROM gs.v ORDER BY o DESC, id', to_regtype('oid8'))) END,
		  'same', 'oid8');
-- the name POSIX, which has no constant from 18 on
SELECT is(gs.compare('SELECT id, t FROM gs.v ORDER BY t COLLATE "POSIX", id'), 'same', 'POSIX');

-- From 18 on a module says what it is.
SELECT is(CASE WHEN current_setting('server_version_num')::int >= 180000
		  THEN (gs.rows('SELECT module_name, version FROM pg_get_loaded_modules() WHERE file_name LIKE ''gpusort%'''))[1]
		  ELSE format('(gpusort,%s)', gpusort_version()) END,
		  format('(gpusort,%s)', gpusort_version()), 'the name and the version of the module');

-- DISTINCT and GROUP BY take their columns in the order of an index, or of ORDER BY, from 17 on.
SELECT is(gs.compare_results(query), 'same', query)
FROM (VALUES ('SELECT DISTINCT few, k FROM gs.v ORDER BY k, few'),
			 ('SELECT DISTINCT k, few FROM gs.v ORDER BY few DESC, k'),
			 ('SELECT k, few, count(*) FROM gs.v GROUP BY k, few ORDER BY few, k'),
			 ('SELECT few, k FROM gs.v UNION SELECT k, few FROM gs.v ORDER BY 1, 2'),
			 ('SELECT few, k FROM gs.v INTERSECT SELECT k, few FROM gs.v ORDER BY 2, 1'),
			 ('SELECT few, array_agg(id ORDER BY k, id) FROM gs.v GROUP BY few ORDER BY few')) v (query);

-- Rows are aggregated before they are joined, from 19 on; and what is IN is joined with each value once.
CREATE TABLE gs.seven AS SELECT i AS few, i % 7 AS seven FROM generate_series(0, 200) i;
ANALYZE gs.seven;
SET gpusort.min_rows = 0;
SET gpusort.force = on;
SET enable_hashagg = off;
SET enable_hashjoin = off;
SET enable_nestloop = off;
SELECT ok(current_setting('server_version_num')::int < 190000 OR
		  gs.plan('SELECT s.seven, sum(v.id), avg(v.k::numeric) FROM gs.v JOIN gs.seven s USING (few) GROUP BY s.seven') LIKE '%GpuSort%Merge Join%Partial GroupAggregate%GpuSort%',
		  'partial aggregates are sorted');
SELECT is(gs.compare_results(query), 'same', query)
FROM (VALUES (1, 'SELECT s.seven, sum(v.id), avg(v.k::numeric), count(*) FROM gs.v JOIN gs.seven s USING (few) GROUP BY s.seven ORDER BY s.seven'),
			 (2, 'SELECT s.seven, max(v.t COLLATE "C"), stddev(v.k) FROM gs.v JOIN gs.seven s USING (few) GROUP BY s.seven ORDER BY 2 DESC, 1'),
			 (3, 'SELECT sum(few) FROM gs.seven WHERE few IN (SELECT few FROM gs.v WHERE id > 10)'),
			 (4, 'SELECT v.id FROM gs.v JOIN gs.seven s USING (few) WHERE k IN (SELECT x.id % 5000 FROM gs.v x JOIN gs.seven y USING (few) WHERE y.seven = 3) ORDER BY v.id')) v (i, query) ORDER BY i;
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT is(gs.compare_results(query), 'same', 'parallel: ' || query)
FROM (VALUES (1, 'SELECT s.seven, sum(v.id), avg(v.k::numeric), count(*) FROM gs.v JOIN gs.seven s USING (few) GROUP BY s.seven ORDER BY s.seven'),
			 (2, 'SELECT sum(few) FROM gs.seven WHERE few IN (SELECT few FROM gs.v WHERE id > 10)'),
			 (3, 'SELECT v.id FROM gs.v JOIN gs.seven s USING (few) WHERE k IN (SELECT x.id % 5000 FROM gs.v x JOIN gs.seven y USING (few) WHERE y.seven = 3) ORDER BY v.id')) v (i, query) ORDER BY i;
RESET ALL;
SET client_min_messages = warning;
DROP TABLE gs.v, gs.seven;
SELECT * FROM finish();
