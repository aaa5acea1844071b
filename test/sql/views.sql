\set ECHO none
-- What gpusort tells about itself: EXPLAIN, statistics, running sorts,
-- devices; and who may read it.
SET client_min_messages = warning;
LOAD 'gpusort';
\pset format unaligned
\pset tuples_only on

CREATE TABLE gs.v AS SELECT i AS id, (i * 7919) % 1009 AS k, (repeat(chr(97 + i % 2), 300)
	|| i % 10) COLLATE "C" AS t FROM generate_series(1, 60000) i;
ANALYZE gs.v;
CREATE ROLE regress_gpusort_user;
CREATE ROLE regress_gpusort_monitor IN ROLE pg_monitor;
CREATE TABLE gs.plans (ordinal int, node jsonb);
INSERT INTO gs.plans VALUES
	(1, gs.node('SELECT * FROM gs.v ORDER BY k')),
	(2, gs.node('SELECT * FROM gs.v ORDER BY t DESC NULLS LAST, k')),
	(3, gs.node('SELECT * FROM gs.v WHERE id < 0 ORDER BY k'));
CREATE FUNCTION gs.native_plan(query text) RETURNS text LANGUAGE sql SET gpusort.enable = off AS $$ SELECT gs.plan(query) $$;
CREATE FUNCTION gs.explain_text(query text, options text DEFAULT 'TIMING OFF') RETURNS text LANGUAGE plpgsql
SET gpusort.enable = on SET gpusort.force = on SET gpusort.min_rows = 0
AS $$
DECLARE
	line text;
	result text := '';
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, ' || options || ') ' || query LOOP
		result := result || line || E'\n';
	END LOOP;
	RETURN result;
END $$;

SELECT * FROM no_plan();

-- EXPLAIN
SELECT ok(node ? property, format('EXPLAIN ANALYZE %s has %s', ordinal, property))
FROM gs.plans, unnest(ARRAY['Sort Key', 'Sort Method', 'Device', 'Key Bits', 'Tie Rows', 'Phases', 'Rows', 'Bytes', 'Runs']) property
ORDER BY ordinal, property;
SELECT ok(NOT node ? 'Fallback Reason', format('EXPLAIN ANALYZE %s has no Fallback Reason', ordinal)) FROM gs.plans ORDER BY ordinal;
SELECT is(node->'Sort Key', '["k"]', 'the sort key') FROM gs.plans WHERE ordinal = 1;
SELECT is(substring(gs.forced_plan('SELECT * FROM gs.v ORDER BY ' || words) FROM 'Sort Key: [^\n]*'), substring(gs.native_plan('SELECT * FROM gs.v ORDER BY ' || words) FROM 'Sort Key: [^\n]*'),
		  'the sort key as PostgreSQL shows it: ' || words)
FROM (VALUES ('t, k DESC'), ('t DESC NULLS LAST, k NULLS FIRST, id'), ('k + 1, lower(t)'), ('t COLLATE "POSIX" DESC'), ('k USING >, id USING <'),
	  ('id::text COLLATE "C", k::numeric')) v (words);
SELECT matches(node->>'Sort Method', '^(cpu|gpu) radix$', 'the sort method') FROM gs.plans ORDER BY ordinal;
SELECT isnt(node->>'Device', '', 'the device has a name') FROM gs.plans ORDER BY ordinal;
SELECT is((node->>'Rows')::bigint, CASE WHEN ordinal = 3 THEN 0 ELSE 60000 END::bigint, 'all the rows') FROM gs.plans ORDER BY ordinal;
SELECT ok((node->>'Runs')::int = 1 OR node ? 'Run Storage', 'one run') FROM gs.plans WHERE ordinal < 3 ORDER BY ordinal;
SELECT cmp_ok((node->>'Bytes')::bigint, '>=', 60000 * 32::bigint, 'their bytes') FROM gs.plans WHERE ordinal < 3 ORDER BY ordinal;
SELECT is((node->>'Tie Rows')::bigint, 0::bigint, 'an exact key has no ties') FROM gs.plans WHERE ordinal = 1;
SELECT is(gs.tie_rows(node, 2), 60000, 'two beginnings that are longer than any of the keys that gpusort makes of strings tie every row') FROM gs.plans WHERE ordinal = 2;
SELECT cmp_ok((node->'Key Bits'->>'Encoded')::int, '>=', 33, 'bits of the key') FROM gs.plans WHERE ordinal = 1;
SELECT cmp_ok((node->'Key Bits'->>'Packed')::int, '<=', 32, 'fewer after compaction') FROM gs.plans WHERE ordinal = 1;
SELECT is((SELECT array_agg(key ORDER BY key) FROM jsonb_object_keys(node->'Phases') key),
		  ARRAY['Emit', 'Gather', 'Ingest', 'Sort', 'Ties', 'Upload Wait'], 'the phases') FROM gs.plans WHERE ordinal = 1;
SELECT is((SELECT bool_and(value::float8 >= 0) FROM jsonb_each_text(node->'Phases')), true, 'no phase takes less than no time') FROM gs.plans ORDER BY ordinal;
SELECT cmp_ok((node->'Phases'->>'Ingest')::float8, '>', 0::float8, 'taking rows in takes time') FROM gs.plans WHERE ordinal < 3 ORDER BY ordinal;
SELECT matches(gs.explain_text('SELECT * FROM gs.v ORDER BY k'), E'\n  ' || property || ': ' || value || E'\n', 'EXPLAIN as text: ' || property)
FROM (VALUES ('Sort Key', 'k'), ('Sort Method', '(cpu|gpu) radix'), ('Device', '\S[^\n]*'), ('Key Bits', '[0-9]+[^\n]*'), ('Tie Rows', '0'),
	  ('Phases', '\S[^\n]*'), ('Rows', '60000'), ('Bytes', '[0-9]+'), ('Runs', '[0-9]+')) v (property, value);
SELECT is(gs.explain_text('SELECT * FROM gs.v ORDER BY k', options) LIKE '%Phases:%', shown, 'Phases with ' || options)
FROM (VALUES ('TIMING OFF, SUMMARY OFF', false), ('TIMING ON, SUMMARY OFF', true), ('TIMING OFF, SUMMARY ON', true)) v (options, shown);
SET gpusort.force = on;
SELECT lives_ok('EXPLAIN (ANALYZE, VERBOSE, BUFFERS, SETTINGS, WAL, FORMAT ' || format || ') SELECT * FROM gs.v ORDER BY k', 'EXPLAIN in ' || format)
FROM (VALUES ('text'), ('xml'), ('json'), ('yaml')) v (format);
RESET gpusort.force;
SELECT unalike(gs.forced_plan('SELECT * FROM gs.v ORDER BY k'), '%Sort Method%', 'EXPLAIN without ANALYZE says nothing of what did not happen');
SELECT alike(gs.explain_text('SELECT CASE WHEN now() < ''2000-01-01'' THEN (SELECT id FROM gs.v ORDER BY k OFFSET 5 LIMIT 1) END'),
			 '%GpuSort) (never executed)%', 'EXPLAIN ANALYZE of a sort that never runs');

-- statistics: exactly what was sorted
CREATE TABLE gs.before AS SELECT * FROM gpusort_stats;
SELECT is(cardinality(gs.forced_rows('SELECT id FROM gs.v ORDER BY k')), 60000, 'a sort');
SELECT is(cardinality(gs.forced_rows('SELECT id FROM gs.v WHERE id <= 1000 ORDER BY t || id')), 1000, 'and another with ties');
SELECT is(cardinality(gs.native_rows('SELECT id FROM gs.v ORDER BY k')), 60000, 'one of PostgreSQL''s own');
SELECT is(s.sorts - b.sorts, 2::bigint, 'two sorts more') FROM gpusort_stats s, gs.before b;
SELECT is(s.rows - b.rows, 61000::bigint, 'their rows') FROM gpusort_stats s, gs.before b;
SELECT is(s.tie_rows - b.tie_rows + CASE WHEN makes_runs THEN 2 ELSE 0 END, 1000::bigint, 'their ties') FROM gpusort_stats s, gs.before b, gs.service;
SELECT ok(s.runs - b.runs = 2 OR makes_runs AND s.runs - b.runs > 2, 'their runs') FROM gpusort_stats s, gs.before b, gs.service;
SELECT cmp_ok(s.bytes - b.bytes, '>=', 61000 * 24::bigint, 'their bytes') FROM gpusort_stats s, gs.before b;
SELECT ok(s.ingest_time > b.ingest_time AND s.sort_time >= b.sort_time AND s.gather_time >= b.gather_time AND s.emit_time >= b.emit_time
		  AND s.tie_time >= b.tie_time AND s.queue_time >= b.queue_time AND s.upload_wait_time >= b.upload_wait_time, 'their times') FROM gpusort_stats s, gs.before b;
SELECT is(ROW(ingest_ms, upload_wait_ms, sort_ms, gather_ms, emit_ms, ties_ms), ROW(ingest_time, upload_wait_time, sort_time, gather_time, emit_time, tie_time), 'by their old names, too') FROM gpusort_stats;
SELECT is(s.temp_bytes > b.temp_bytes, writes_files, 'nothing was written to files, unless rows are sorted in runs') FROM gpusort_stats s, gs.before b, gs.service;
SELECT is(s.fallbacks - b.fallbacks, 0::bigint, 'no fallback') FROM gpusort_stats s, gs.before b;
SELECT is(s.stats_reset, b.stats_reset, 'no reset') FROM gpusort_stats s, gs.before b;
SELECT is((SELECT sum(value::bigint) FROM jsonb_each_text(fallback_reasons)), NULLIF(fallbacks, 0)::numeric, 'every fallback has a reason') FROM gpusort_stats;
DROP TABLE gs.before;
CREATE TABLE gs.before AS SELECT * FROM gpusort_stats;
SELECT is(cardinality(gs.forced_rows('SELECT o, s.id FROM generate_series(1, 3) o, LATERAL (SELECT id FROM gs.v WHERE id <= 100 * o ORDER BY k OFFSET 0) s')), 600, 'three sorts of one node');
SELECT is(s.sorts - b.sorts, 3::bigint, 'are three sorts more') FROM gpusort_stats s, gs.before b;
SELECT is(s.rows - b.rows, 600::bigint, 'with their rows') FROM gpusort_stats s, gs.before b;
SELECT is(cardinality(gs.forced_rows('SELECT id FROM gs.v ORDER BY k LIMIT 50000')), 50000, 'one of which not all rows are asked for');
SELECT is(s.sorts - b.sorts, 4::bigint, 'is one sort more') FROM gpusort_stats s, gs.before b;
SELECT is(s.rows - b.rows, 60600::bigint, 'with all of its rows') FROM gpusort_stats s, gs.before b;
SELECT is(d.datid, (SELECT oid FROM pg_database WHERE datname = current_database()), 'this database is one of those that have sorted') FROM gpusort_stats_database d WHERE datname = current_database();
SELECT is((SELECT ROW(sum(sorts), sum(rows), sum(bytes), sum(runs), sum(tie_rows), sum(small_sorts), sum(fallbacks), min(stats_reset))::text FROM gpusort_stats_database),
		  (SELECT ROW(sorts, rows, bytes, runs, tie_rows, small_sorts, fallbacks, stats_reset)::text FROM gpusort_stats), 'the databases together are gpusort_stats');
SELECT gpusort_stats_reset() \g /dev/null
SELECT is((SELECT count(*) FROM gpusort_stats_database), 0::bigint, 'no database has sorted after a reset');
SELECT is(ROW(sorts, rows, bytes, runs, tie_rows, fallbacks, fallback_reasons)::text, '(0,0,0,0,0,0,{})', 'zero after a reset') FROM gpusort_stats;
SELECT is(queue_time + ingest_time + upload_wait_time + sort_time + gather_time + emit_time + tie_time + temp_bytes, 0::float8, 'in time too') FROM gpusort_stats;
SELECT cmp_ok(s.stats_reset, '>', b.stats_reset, 'and its time is known') FROM gpusort_stats s, gs.before b;

-- running sorts
SELECT is((SELECT count(*) FROM gpusort_jobs WHERE pid = pg_backend_pid()), 0::bigint, 'no sort runs');
BEGIN;
SET LOCAL gpusort.force = on;
SET LOCAL gpusort.min_rows = 0;
DECLARE c CURSOR FOR SELECT id FROM gs.v ORDER BY k;
SELECT is((SELECT count(*) FROM gpusort_jobs WHERE pid = pg_backend_pid()), 0::bigint, 'nor does one that was not asked for a row');
MOVE 1 IN c;
SET LOCAL gpusort.force = off;
SELECT is((SELECT count(*) FROM gpusort_jobs WHERE pid = pg_backend_pid()), 1::bigint, 'a cursor is a running sort');
SELECT is((SELECT count(*) FROM gpusort_jobs WHERE pid <> pg_backend_pid() AND rows_in = 60000), 0::bigint, 'of this backend alone');
SELECT is(datid, (SELECT oid FROM pg_database WHERE datname = current_database()), 'in this database') FROM gpusort_jobs WHERE pid = pg_backend_pid();
SELECT is(usesysid, (SELECT oid FROM pg_roles WHERE rolname = current_user), 'of this user') FROM gpusort_jobs WHERE pid = pg_backend_pid();
SELECT is(phase, 'emit', 'it gives rows out') FROM gpusort_jobs WHERE pid = pg_backend_pid();
SELECT is(rows_in, 60000::bigint, 'after it took all of them in') FROM gpusort_jobs WHERE pid = pg_backend_pid();
SELECT cmp_ok(bytes, '>=', 60000 * 24::bigint, 'with their bytes') FROM gpusort_jobs WHERE pid = pg_backend_pid();
SELECT ok(rows_out BETWEEN 0 AND 60000, 'some are out') FROM gpusort_jobs WHERE pid = pg_backend_pid();
SELECT ok(engine IN ('cuda', 'host') AND device <> '', 'the device is named') FROM gpusort_jobs WHERE pid = pg_backend_pid();
SELECT ok(sort_start BETWEEN now() AND clock_timestamp() AND started = sort_start, 'it started a moment ago') FROM gpusort_jobs WHERE pid = pg_backend_pid();
SELECT is(ROW(datname, usename)::text, ROW(current_database(), current_user)::text, 'with the names of both') FROM gpusort_jobs WHERE pid = pg_backend_pid();
SELECT is(estimated_rows, 60000::bigint, 'the planner has expected as many') FROM gpusort_jobs WHERE pid = pg_backend_pid();
SELECT is(temp_bytes > 0, writes_files, 'without temporary files, unless it is sorted in runs') FROM gpusort_jobs, gs.service WHERE pid = pg_backend_pid();
SELECT cmp_ok((SELECT sum(jobs) FROM gpusort_devices), '>=', 1::bigint, 'the devices know of it');
CLOSE c;
SELECT is((SELECT count(*) FROM gpusort_jobs WHERE pid = pg_backend_pid()), 0::bigint, 'none when it is closed');
COMMIT;

-- devices
SELECT cmp_ok((SELECT count(*) FROM gpusort_devices), '>=', 1::bigint, 'there is a device');
SELECT is((SELECT count(*) FROM gpusort_devices WHERE engine = 'host'), 1::bigint, 'the host is one');
SELECT ok(bool_and(name <> '' AND memory_total > 0 AND memory_limit > 0 AND memory_limit <= memory_total AND memory_used >= 0),
		  'each with a name and memory') FROM gpusort_devices;

-- the service
SELECT is(state, 'ready', 'the service is ready') FROM gpusort_service;
SELECT ok(supervisor_pid > 0 AND supervisor_pid <> pg_backend_pid(), 'it has a supervisor') FROM gpusort_service;
SELECT ok(generation >= 0 AND leaving = 0, 'and no service is left of before') FROM gpusort_service;
SELECT ok(engines <@ ARRAY['cuda', 'host'] AND 'host' = ANY (engines) AND ('cuda' = ANY (engines)) = (devices > 0), 'its engines have names') FROM gpusort_service;
SELECT ok(host_limit > 0 AND (device_limit > 0) = (devices > 0), 'and limits') FROM gpusort_service;

-- who may
SET ROLE regress_gpusort_user;
SELECT lives_ok('SELECT gpusort_version()', 'everybody may know the version');
SELECT throws_ok('SELECT * FROM ' || name, '42501', NULL, name || ' is not for everybody')
FROM (VALUES ('gpusort_devices'), ('gpusort_service'), ('gpusort_stats'), ('gpusort_stats_database'), ('gpusort_jobs'),
			 ('gpusort_devices()'), ('gpusort_service()'), ('gpusort_stats()'), ('gpusort_stats_database()'), ('gpusort_jobs()'), ('gpusort_stats_reset()')) v (name);
SET ROLE regress_gpusort_monitor;
SELECT lives_ok('SELECT * FROM ' || name, 'pg_monitor may read ' || name)
FROM (VALUES ('gpusort_devices'), ('gpusort_service'), ('gpusort_stats'), ('gpusort_stats_database'), ('gpusort_jobs'),
			 ('gpusort_devices()'), ('gpusort_service()'), ('gpusort_stats()'), ('gpusort_stats_database()'), ('gpusort_jobs()')) v (name);
SELECT throws_ok('SELECT gpusort_stats_reset()', '42501', NULL, 'but not reset');
RESET ROLE;
DROP ROLE regress_gpusort_monitor;
DROP ROLE regress_gpusort_user;

-- settings that plans depend on
SELECT is(array_agg(name ORDER BY name), '{gpusort.allowed,gpusort.device_memory,gpusort.enable,gpusort.engine,gpusort.force,gpusort.host_memory,gpusort.min_rows,gpusort.parallel_cursors,gpusort.parallel_output,gpusort.row_cost,gpusort.setup_cost,gpusort.shard_connections,gpusort.spill,gpusort.verify_collation}',
		  'EXPLAIN (SETTINGS) shows what plans depend on')
FROM pg_settings WHERE name LIKE 'gpusort.%' AND 'EXPLAIN' = ANY (pg_settings_get_flags(name));
SET gpusort.row_cost = 0.02;
SELECT matches(gs.explain_text('SELECT * FROM gs.v ORDER BY k', 'TIMING OFF, SETTINGS'), 'Settings: .*gpusort.row_cost = ''0.02''', 'where it is not the default');
RESET gpusort.row_cost;

SELECT * FROM finish();
