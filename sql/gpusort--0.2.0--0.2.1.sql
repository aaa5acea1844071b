\echo Use "ALTER EXTENSION gpusort UPDATE TO '0.2.1'" to load this file. \quit

CREATE FUNCTION gpusort_explain(statement text)
RETURNS SETOF text
AS 'MODULE_PATHNAME', 'gpusort_explain_statement'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION gpusort_explain(text) IS 'the plan of a statement, and why its sorts are left to PostgreSQL';

-- gpusort_advise() tells the times that its ratio is of.
DROP FUNCTION gpusort_advise(integer);
CREATE FUNCTION gpusort_advise(
    statements integer DEFAULT 20,
    OUT queryid bigint,
    OUT query text,
    OUT calls bigint,
    OUT total_exec_time double precision,
    OUT temp_blks bigint,
    OUT changes boolean,
    OUT nodes text,
    OUT ratio double precision,
    OUT reason text,
    OUT native_estimate double precision,
    OUT gpusort_estimate double precision)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'gpusort_advise'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION gpusort_advise(integer) IS 'how gpusort would change the statements that pg_stat_statements knows';

-- gpusort_jobs shows what pg_stat_activity has of its sessions.  Operators in it are those of pg_catalog alone.
DO $do$
DECLARE
    here text := pg_catalog.quote_ident(pg_catalog.current_schema());
    unknown text := pg_catalog.quote_ident(pg_catalog.format('gpusort_%s', pg_catalog.gen_random_uuid()));
    path text := pg_catalog.current_setting('search_path');
BEGIN
    EXECUTE pg_catalog.format('ALTER FUNCTION %s.gpusort_jobs() RENAME TO %s', here, unknown);
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog', true);
    EXECUTE pg_catalog.replace(pg_catalog.replace($view$
CREATE OR REPLACE VIEW <here>.gpusort_jobs AS
SELECT gpusort_jobs.pid, gpusort_jobs.datid, datname, gpusort_jobs.usesysid, usename, queryid, phase, engine, device,
       estimated_rows, rows_in, rows_out, bytes, temp_bytes, sort_start, sort_start AS started, leader_pid, query,
       round(CASE phase WHEN 'ingest' THEN least(100.0 * rows_in / nullif(estimated_rows, 0), 100)
                        WHEN 'emit' THEN 100.0 * rows_out / nullif(rows_in, 0) END, 1) AS percent
FROM <jobs>() AS gpusort_jobs LEFT JOIN LATERAL pg_stat_get_activity(gpusort_jobs.pid) AS activity ON true
$view$, '<here>', here), '<jobs>', here || '.' || unknown);
    PERFORM pg_catalog.set_config('search_path', path, true);
    EXECUTE pg_catalog.format('ALTER FUNCTION %s.%s() RENAME TO gpusort_jobs', here, unknown);
END $do$;
COMMENT ON COLUMN gpusort_jobs.leader_pid IS 'leader of a parallel worker; NULL for other processes';
COMMENT ON COLUMN gpusort_jobs.query IS 'its statement, as pg_stat_activity shows it to you';
COMMENT ON COLUMN gpusort_jobs.percent IS 'progress of the phase: rows taken in of those expected, or rows returned of those taken in';

-- The statistics count rows that workers formed.  The views stay, with two columns more, of new functions.
DO $do$
DECLARE
    here text := pg_catalog.quote_ident(pg_catalog.current_schema());
    name text;
    result text;
    columns text;
    parameters text;
    old text;
    new text;
BEGIN
    FOR name, result, parameters, columns IN VALUES
        ('gpusort_stats', 'record', '', 'COUNTED, '
            'ingest_time AS ingest_ms, upload_wait_time AS upload_wait_ms, sort_time AS sort_ms, '
            'gather_time AS gather_ms, emit_time AS emit_ms, tie_time AS ties_ms, formed_rows, formed_bytes'),
        ('gpusort_stats_database', 'SETOF record', 'OUT datid oid, OUT datname name, ',
            'datid, datname, COUNTED, formed_rows, formed_bytes')
    LOOP
        columns := pg_catalog.replace(columns, 'COUNTED',
            'sorts, rows, bytes, temp_bytes, runs, tie_rows, queue_time, ingest_time, upload_wait_time, sort_time, '
            'gather_time, emit_time, tie_time, index_builds, declined_builds, small_sorts, fallbacks, fallback_reasons, stats_reset');
        old := pg_catalog.format('gpusort_%s', pg_catalog.gen_random_uuid());
        new := pg_catalog.format('gpusort_%s', pg_catalog.gen_random_uuid());
        EXECUTE pg_catalog.format('ALTER FUNCTION %s.%I() RENAME TO %I', here, name, old);
        EXECUTE pg_catalog.format('CREATE FUNCTION %s.%I(%s OUT sorts bigint, OUT rows bigint, OUT bytes bigint, '
            'OUT runs bigint, OUT tie_rows bigint, OUT ingest_time double precision, '
            'OUT upload_wait_time double precision, OUT sort_time double precision, OUT gather_time double precision, '
            'OUT emit_time double precision, OUT tie_time double precision, OUT small_sorts bigint, '
            'OUT fallbacks bigint, OUT fallback_reasons jsonb, OUT stats_reset timestamptz, '
            'OUT queue_time double precision, OUT temp_bytes bigint, OUT index_builds bigint, '
            'OUT declined_builds bigint, OUT formed_rows bigint, OUT formed_bytes bigint) RETURNS %s '
            'AS %L, %L LANGUAGE C VOLATILE STRICT PARALLEL SAFE', here, new, parameters, result, 'MODULE_PATHNAME',
            pg_catalog.replace(name, 'gpusort_', 'gpusort_show_'));
        EXECUTE pg_catalog.format('CREATE OR REPLACE VIEW %s.%I AS SELECT %s FROM %s.%I() AS %I', here, name, columns,
            here, new, name);
        EXECUTE pg_catalog.format('DROP FUNCTION %s.%I()', here, old);
        EXECUTE pg_catalog.format('ALTER FUNCTION %s.%I() RENAME TO %I', here, new, name);
    END LOOP;
END $do$;
REVOKE ALL ON FUNCTION gpusort_stats() FROM PUBLIC;
REVOKE ALL ON FUNCTION gpusort_stats_database() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION gpusort_stats() TO pg_monitor;
GRANT EXECUTE ON FUNCTION gpusort_stats_database() TO pg_monitor;
COMMENT ON FUNCTION gpusort_stats() IS 'what gpusort has done since the server started or the statistics were reset';
COMMENT ON FUNCTION gpusort_stats_database() IS 'gpusort_stats for each database';
COMMENT ON COLUMN gpusort_stats.formed_rows IS 'rows that parallel workers formed as the bytes that leave the server, or put into pages of new tables';
COMMENT ON COLUMN gpusort_stats.formed_bytes IS 'bytes of the formed rows';
COMMENT ON COLUMN gpusort_stats_database.formed_rows IS 'rows that parallel workers formed as the bytes that leave the server, or put into pages of new tables';
COMMENT ON COLUMN gpusort_stats_database.formed_bytes IS 'bytes of the formed rows';

-- Names in gpusort_check() are found when it is made, those of functions and operators in pg_catalog alone.
DO $do$
DECLARE
    here text := pg_catalog.quote_ident(pg_catalog.current_schema());
    unknown text := pg_catalog.quote_ident(pg_catalog.format('gpusort_%s', pg_catalog.gen_random_uuid()));
    path text := pg_catalog.current_setting('search_path');
BEGIN
    EXECUTE pg_catalog.format('ALTER FUNCTION %s.gpusort_environment() RENAME TO %s', here, unknown);
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog', true);
    EXECUTE pg_catalog.replace(pg_catalog.replace($check$
CREATE OR REPLACE FUNCTION <here>.gpusort_check(
    OUT severity text,
    OUT subject text,
    OUT found text,
    OUT expected text,
    OUT action text)
RETURNS SETOF record
LANGUAGE sql VOLATILE PARALLEL RESTRICTED
BEGIN ATOMIC
WITH environment AS MATERIALIZED (SELECT * FROM <environment>() AS environment),
extension AS (SELECT max(extversion) AS version FROM pg_extension WHERE extname = 'gpusort'),
setting AS (
    SELECT pg_size_bytes(current_setting('shared_buffers')) AS shared_buffers,
           current_setting('shared_memory_size_in_huge_pages') AS huge_pages_needed,
           current_setting('max_worker_processes')::int AS worker_processes,
           current_setting('max_parallel_workers')::int AS workers,
           current_setting('max_parallel_workers_per_gather')::int AS workers_per_gather),
wanted AS (
    SELECT 16 * 1024 * 1024 * (1 + workers_per_gather::bigint) AS staging_memory,
           2 + least(workers, workers_per_gather) AS worker_processes,
           greatest(least(processors / 4, 16), 1) AS workers
    FROM setting, environment),
-- autovacuum does not analyze partitioned tables; a table that was vacuumed alone has a number of rows
unanalyzed_table AS (
    SELECT oid::regclass::text AS name,
           CASE relkind WHEN 'p' THEN (SELECT sum(pg_relation_size(relid)) FROM pg_partition_tree(oid))
                        ELSE pg_relation_size(oid) END AS bytes
    FROM pg_class
    WHERE relkind IN ('r', 'm', 'p') AND relpersistence <> 't' AND relnamespace <> 'pg_catalog'::regnamespace
      AND (reltuples < 0 OR (relkind <> 'p' AND reltuples > 0 AND pg_stat_get_mod_since_analyze(oid) >= reltuples
                             AND pg_stat_get_analyze_count(oid) + pg_stat_get_autoanalyze_count(oid) = 0))),
unanalyzed AS (
    SELECT count(*) AS tables, string_agg(name, ', ' ORDER BY place) FILTER (WHERE place <= 10) AS names
    FROM (SELECT name, row_number() OVER (ORDER BY bytes DESC, name) AS place
          FROM unanalyzed_table WHERE bytes >= 8 * 1024 * 1024) t),
used_collation AS (
    SELECT DISTINCT attcollation AS used FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid
    WHERE attcollation <> 0 AND attnum > 0 AND NOT attisdropped AND relkind IN ('r', 'm', 'p', 'f')
      AND relnamespace <> 'pg_catalog'::regnamespace),
changed AS (
    SELECT string_agg(name, ', ' ORDER BY name) AS names
    FROM (SELECT used::regcollation::text FROM used_collation JOIN pg_collation ON oid = used
          WHERE collversion <> pg_collation_actual_version(oid)
          UNION ALL
          SELECT 'the database''s' FROM pg_database
          WHERE datname = current_database()
            AND datcollversion <> pg_database_collation_actual_version(oid)) c (name)),
distrusted AS (
    SELECT CASE WHEN distrusts_all THEN 'all of the C library'
                ELSE string_agg(left_alone::regcollation::text, ', ') END AS names
    FROM environment LEFT JOIN unnest(distrusted) left_alone ON true GROUP BY distrusts_all),
hooked AS (
    SELECT string_agg(library, ', ' ORDER BY library) AS names,
           string_agg(library, ', ' ORDER BY library) FILTER (WHERE library <> ALL (ARRAY[
           'auto_explain', 'citus', 'citus_columnar', 'hypopg', 'pg_plan_advice', 'pg_qualstats', 'pg_stat_kcache',
           'pg_stat_statements', 'pgaudit'])) AS untested
    FROM environment, unnest(hooks) library)
SELECT f.severity, f.subject, f.found, f.expected, CASE WHEN f.severity <> 'ok' THEN f.action END
FROM environment e, extension x, setting s, wanted w, unanalyzed u, changed c, distrusted d, hooked h,
LATERAL (VALUES
    (1, CASE WHEN e.preloaded THEN 'ok' ELSE 'warning' END,
     'preloading',
     CASE WHEN e.preloaded THEN 'the server has loaded gpusort' ELSE 'only this session has loaded gpusort' END,
     'gpusort in shared_preload_libraries',
     'Add gpusort to shared_preload_libraries in postgresql.conf, and restart the server.'),
    (2, CASE WHEN e.version = x.version THEN 'ok' ELSE 'warning' END,
     'version',
     format('module %s, extension %s', e.version, x.version),
     'the same',
     'Restart the server if you have not since the installation, then run ALTER EXTENSION gpusort UPDATE.'),
    (3, CASE WHEN e.replaced THEN 'warning' ELSE 'ok' END,
     'build',
     format('the server runs build %s%s', e.build,
            CASE WHEN e.replaced THEN ', another was installed since' END),
     'the one that is installed',
     'Restart the server. Until then a service that starts has another build, and PostgreSQL sorts.'),
    (4, CASE WHEN e.state = 'ready' THEN 'ok' WHEN e.state IN ('hung', 'backing off') THEN 'error'
              ELSE 'notice' END,
     'service',
     CASE e.state WHEN 'backing off' THEN 'backing off: ' || coalesce(e.report, 'the reason is visible to members of pg_monitor')
                  ELSE e.state END,
     'ready',
     CASE WHEN e.state IN ('hung', 'backing off')
              THEN 'Look for "sort service" in the server''s log; meanwhile PostgreSQL sorts.'
          WHEN e.state = 'none' THEN 'Nothing: it starts with the first large sort.'
          ELSE 'Ask again in a few seconds.' END),
    (5, CASE WHEN current_setting('gpusort.enable')::bool AND current_setting('gpusort.allowed')::bool
                  AND NOT current_setting('gpusort.force')::bool THEN 'ok' ELSE 'notice' END,
     'settings',
     format('gpusort.allowed %s, gpusort.enable %s, gpusort.force %s', current_setting('gpusort.allowed'),
            current_setting('gpusort.enable'), current_setting('gpusort.force')),
     'gpusort.allowed on, gpusort.enable on, gpusort.force off',
     'If this is not intended, reset the setting in the session, role, database or server.'),
    (6, CASE WHEN e.state <> 'ready' THEN 'notice' WHEN e.cuda OR e.gpus = 0 THEN 'ok'
             WHEN current_setting('gpusort.devices') = 'none' THEN 'notice' ELSE 'warning' END,
     'engine',
     CASE WHEN e.state <> 'ready' THEN 'not known before the service is ready'
          WHEN e.cuda THEN format('cuda, on %s GPU(s)', e.devices)
          WHEN current_setting('gpusort.devices') = 'none' THEN 'host: gpusort.devices is none'
          ELSE 'host: ' || coalesce(e.report, 'there is no CUDA device') END,
     'cuda if there is a GPU, otherwise host',
     CASE WHEN e.state <> 'ready' THEN 'See service.'
          ELSE 'Install the package gpusort-cuda, or build with nvcc, and restart the server; see driver.' END),
    (7, CASE WHEN e.gpus > 0 AND e.driver IS NULL THEN 'warning' ELSE 'ok' END,
     'driver',
     format('%s; NVIDIA GPUs in the machine: %s', coalesce(e.driver, 'no NVIDIA driver'), e.gpus),
     'a driver if there is a GPU',
     'Install the NVIDIA driver.'),
    (8, CASE WHEN e.cuda AND e.memlock < e.staging_memory THEN 'warning' ELSE 'ok' END,
     'locked memory',
     coalesce(pg_size_pretty(e.memlock), 'unlimited'),
     CASE WHEN e.cuda THEN format('gpusort.staging_memory, %s, or more', pg_size_pretty(e.staging_memory))
          ELSE 'any, without a GPU' END,
     'Set LimitMEMLOCK=infinity in the server''s unit, or --ulimit memlock=-1 for a container; otherwise copies are slower.'),
    (9, CASE WHEN s.shared_buffers >= 1024 * 1024 * 1024 AND NOT e.huge_pages THEN 'warning' ELSE 'ok' END,
     'huge pages',
     format('shared_buffers of %s, %s huge pages', pg_size_pretty(s.shared_buffers),
            CASE WHEN e.huge_pages THEN 'in' ELSE 'not in' END),
     'huge pages for shared_buffers of 1 GB or more',
     format('Set sysctl vm.nr_hugepages=%s or more and huge_pages = try, and restart the server. Otherwise each process '
            'of a parallel query maps thousands of small pages.', s.huge_pages_needed)),
    (10, CASE WHEN e.staging_memory > e.memory / 4 THEN 'warning'
              WHEN e.staging_memory < w.staging_memory THEN 'notice' ELSE 'ok' END,
     'staging memory',
     format('gpusort.staging_memory of %s', pg_size_pretty(e.staging_memory)),
     format('at least %s (a parallel sort may use half) and at most %s (a quarter of the memory)',
            pg_size_pretty(w.staging_memory), pg_size_pretty(e.memory / 4)),
     'Change gpusort.staging_memory, and reload.'),
    (11, CASE WHEN e.host_limit + e.staging_memory + s.shared_buffers > e.memory THEN 'warning' ELSE 'ok' END,
     'host memory',
     format('%s for sorts, %s of gpusort.staging_memory, %s of shared_buffers', pg_size_pretty(e.host_limit),
            pg_size_pretty(e.staging_memory), pg_size_pretty(s.shared_buffers)),
     format('less than %s in total, the memory that the server may use', pg_size_pretty(e.memory)),
     'Lower gpusort.host_memory, and reload.'),
    (12, CASE WHEN s.worker_processes < w.worker_processes THEN 'warning' ELSE 'ok' END,
     'worker processes',
     format('max_worker_processes %s', s.worker_processes),
     format('at least %s: gpusort''s supervisor, one for logical replication, and the workers of a plan', w.worker_processes),
     'Raise max_worker_processes, and restart the server.'),
    (13, CASE WHEN least(s.workers, s.workers_per_gather) < w.workers THEN 'notice' ELSE 'ok' END,
     'parallel workers',
     format('max_parallel_workers_per_gather %s, max_parallel_workers %s', s.workers_per_gather, s.workers),
     format('%s or more of both, on %s processor%s', w.workers, e.processors, CASE WHEN e.processors <> 1 THEN 's' END),
     'Raise them: all processes of a parallel plan share the work of a sort and of what is above it.'),
    (14, CASE WHEN u.tables > 0 THEN 'warning' ELSE 'ok' END,
     'statistics',
     CASE WHEN u.tables > 0 THEN format('never analyzed: %s tables of 8 MB or more, %s', u.tables, u.names)
          ELSE 'all tables of 8 MB or more were analyzed' END,
     'ANALYZE after a load, also of partitioned tables',
     'ANALYZE them. Otherwise gpusort knows neither the size of sorts nor the best key for strings.'),
    (15, CASE WHEN c.names IS NOT NULL OR d.names IS NOT NULL THEN 'warning' ELSE 'ok' END,
     'collations',
     CASE WHEN c.names IS NULL AND d.names IS NULL THEN 'unchanged'
          ELSE concat_ws('; ', 'changed version: ' || c.names, 'not used by gpusort: ' || d.names) END,
     'unchanged locales',
     'REINDEX, then ALTER COLLATION or ALTER DATABASE ... REFRESH COLLATION VERSION, then restart the server.'),
    (16, CASE WHEN h.untested IS NOT NULL THEN 'notice' ELSE 'ok' END,
     'hooks',
     CASE WHEN e.hooks IS NULL THEN 'visible to members of pg_monitor'
          ELSE coalesce(h.names, 'none of other libraries') END,
     'of libraries that gpusort was tested with',
     format('If plans look wrong, try without %s. doc/works-with.md lists what was tested.', h.untested))
) f (place, severity, subject, found, expected, action)
ORDER BY array_position(ARRAY['error', 'warning', 'notice', 'ok'], f.severity), f.place;
END $check$, '<here>', here), '<environment>', here || '.' || unknown);
    PERFORM pg_catalog.set_config('search_path', path, true);
    EXECUTE pg_catalog.format('ALTER FUNCTION %s.%s() RENAME TO gpusort_environment', here, unknown);
END $do$;

-- What columns are, in plainer words
COMMENT ON FUNCTION gpusort_check() IS 'problems of this server''s configuration, worst first, and what to do';
COMMENT ON COLUMN gpusort_devices.ordinal IS 'number of the CUDA device, as in nvidia-smi';
COMMENT ON COLUMN gpusort_devices.name IS 'name of the device or processor';
COMMENT ON COLUMN gpusort_devices.detail IS 'further facts about it';
COMMENT ON COLUMN gpusort_devices.memory_total IS 'total memory in bytes';
COMMENT ON COLUMN gpusort_devices.memory_used IS 'bytes in use, including memory that is kept for the next sort';
COMMENT ON COLUMN gpusort_devices.jobs IS 'running sorts';
COMMENT ON COLUMN gpusort_service.state_change IS 'when the state changed';
COMMENT ON COLUMN gpusort_service.generation IS 'number of the service; a later service has a higher one';
COMMENT ON COLUMN gpusort_service.leaving IS 'services of older generations that still have sorts, or cannot be killed';
COMMENT ON COLUMN gpusort_service.engines IS 'engines that it sorts with';
COMMENT ON COLUMN gpusort_service.devices IS 'number of its CUDA devices';
COMMENT ON COLUMN gpusort_service.report IS 'what the service reported before it was ready, or why there is none';
COMMENT ON COLUMN gpusort_stats.rows IS 'rows of all sorts';
COMMENT ON COLUMN gpusort_stats.bytes IS 'bytes of all sorts';
COMMENT ON COLUMN gpusort_stats.temp_bytes IS 'bytes written to temporary files';
COMMENT ON COLUMN gpusort_stats.runs IS 'sorted runs of sorts that were larger than memory';
COMMENT ON COLUMN gpusort_stats.declined_builds IS 'btree indexes of tables with rows that were left to PostgreSQL';
COMMENT ON COLUMN gpusort_stats.fallback_reasons IS 'fallbacks by reason';
COMMENT ON COLUMN gpusort_stats.stats_reset IS 'when counting began';
COMMENT ON VIEW gpusort_stats_database IS 'gpusort_stats for each database that has sorted';
COMMENT ON COLUMN gpusort_stats_database.datid IS 'OID of the database; NULL for databases beyond the first 64';
COMMENT ON COLUMN gpusort_stats_database.datname IS 'name of the database; NULL if it was dropped';
COMMENT ON COLUMN gpusort_stats_database.rows IS 'rows of all sorts';
COMMENT ON COLUMN gpusort_stats_database.bytes IS 'bytes of all sorts';
COMMENT ON COLUMN gpusort_stats_database.temp_bytes IS 'bytes written to temporary files';
COMMENT ON COLUMN gpusort_stats_database.runs IS 'sorted runs of sorts that were larger than memory';
COMMENT ON COLUMN gpusort_stats_database.tie_time IS 'milliseconds of sorting tie rows';
COMMENT ON COLUMN gpusort_stats_database.declined_builds IS 'btree indexes of tables with rows that were left to PostgreSQL';
COMMENT ON COLUMN gpusort_stats_database.fallback_reasons IS 'fallbacks by reason';
COMMENT ON COLUMN gpusort_stats_database.stats_reset IS 'when counting began';
COMMENT ON COLUMN gpusort_jobs.queryid IS 'query ID of its statement, if PostgreSQL computes it';
