\echo Use "ALTER EXTENSION gpusort UPDATE TO '0.2.0'" to load this file. \quit

-- gpusort_stats gets queue_ms.
DROP VIEW gpusort_stats;
DROP FUNCTION gpusort_stats();
CREATE FUNCTION gpusort_stats(
    OUT sorts bigint,
    OUT rows bigint,
    OUT bytes bigint,
    OUT runs bigint,
    OUT tie_rows bigint,
    OUT ingest_ms double precision,
    OUT upload_wait_ms double precision,
    OUT sort_ms double precision,
    OUT gather_ms double precision,
    OUT emit_ms double precision,
    OUT ties_ms double precision,
    OUT queue_ms double precision,
    OUT small_sorts bigint,
    OUT fallbacks bigint,
    OUT fallback_reasons jsonb,
    OUT stats_reset timestamptz)
RETURNS record
AS 'MODULE_PATHNAME', 'gpusort_show_stats'
LANGUAGE C VOLATILE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpusort_stats() IS 'what gpusort has done since the server started or the statistics were reset';

CREATE FUNCTION gpusort_service(
    OUT state text,
    OUT since timestamptz,
    OUT pid integer,
    OUT supervisor_pid integer,
    OUT generation bigint,
    OUT leaving integer,
    OUT started timestamptz,
    OUT engines text[],
    OUT devices integer,
    OUT device_limit bigint,
    OUT host_limit bigint)
RETURNS record
AS 'MODULE_PATHNAME', 'gpusort_show_service'
LANGUAGE C VOLATILE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpusort_service() IS 'state of the sort service; limits in bytes';

-- Whoever may create functions in this schema can make a call by name ambiguous, with an overload that
-- has defaults.  So each view is made of a function that has a name which nobody knows yet.
DO $$
DECLARE
    name text;
    unknown text;
BEGIN
    FOREACH name IN ARRAY ARRAY['gpusort_service', 'gpusort_stats'] LOOP
        unknown := pg_catalog.format('gpusort_%s', pg_catalog.gen_random_uuid());
        EXECUTE pg_catalog.format('ALTER FUNCTION %I() RENAME TO %I', name, unknown);
        EXECUTE pg_catalog.format('CREATE VIEW %I AS SELECT * FROM %I() AS %I', name, unknown, name);
        EXECUTE pg_catalog.format('ALTER FUNCTION %I() RENAME TO %I', unknown, name);
    END LOOP;
END $$;

COMMENT ON VIEW gpusort_devices IS 'what the sort service sorts on';
COMMENT ON COLUMN gpusort_devices.engine IS 'cuda or host';
COMMENT ON COLUMN gpusort_devices.ordinal IS 'of the CUDA device, as nvidia-smi shows it';
COMMENT ON COLUMN gpusort_devices.name IS 'of the device or processor';
COMMENT ON COLUMN gpusort_devices.detail IS 'what else is known of it';
COMMENT ON COLUMN gpusort_devices.memory_total IS 'bytes that it has';
COMMENT ON COLUMN gpusort_devices.memory_limit IS 'bytes that sorts may use';
COMMENT ON COLUMN gpusort_devices.memory_used IS 'bytes that sorts and what is kept between them use';
COMMENT ON COLUMN gpusort_devices.jobs IS 'sorts that it has';
COMMENT ON VIEW gpusort_service IS 'state of the sort service';
COMMENT ON COLUMN gpusort_service.state IS 'none, starting, ready, draining, hung or backing off';
COMMENT ON COLUMN gpusort_service.since IS 'when it came to be in that state';
COMMENT ON COLUMN gpusort_service.pid IS 'process that takes sorts';
COMMENT ON COLUMN gpusort_service.supervisor_pid IS 'background worker that keeps it running';
COMMENT ON COLUMN gpusort_service.generation IS 'number of the service: later ones have higher';
COMMENT ON COLUMN gpusort_service.leaving IS 'services of older generations that end their last sorts, or cannot be killed';
COMMENT ON COLUMN gpusort_service.started IS 'when the service was started';
COMMENT ON COLUMN gpusort_service.engines IS 'what it sorts with';
COMMENT ON COLUMN gpusort_service.devices IS 'CUDA devices that it has';
COMMENT ON COLUMN gpusort_service.device_limit IS 'bytes that one sort may use on devices';
COMMENT ON COLUMN gpusort_service.host_limit IS 'bytes that sorts of the host engine may use';
COMMENT ON VIEW gpusort_stats IS 'what gpusort has done since stats_reset';
COMMENT ON COLUMN gpusort_stats.sorts IS 'sorts that the service has done';
COMMENT ON COLUMN gpusort_stats.rows IS 'rows of these';
COMMENT ON COLUMN gpusort_stats.bytes IS 'bytes of these';
COMMENT ON COLUMN gpusort_stats.runs IS 'parts in which they were sorted';
COMMENT ON COLUMN gpusort_stats.tie_rows IS 'rows that the key did not decide and PostgreSQL''s comparator did';
COMMENT ON COLUMN gpusort_stats.ingest_ms IS 'milliseconds of taking rows in';
COMMENT ON COLUMN gpusort_stats.upload_wait_ms IS 'milliseconds of waiting until rows were with the engine';
COMMENT ON COLUMN gpusort_stats.sort_ms IS 'milliseconds of sorting';
COMMENT ON COLUMN gpusort_stats.gather_ms IS 'milliseconds of putting rows in order';
COMMENT ON COLUMN gpusort_stats.emit_ms IS 'milliseconds of waiting for rows in order';
COMMENT ON COLUMN gpusort_stats.ties_ms IS 'milliseconds of sorting rows that the key did not decide';
COMMENT ON COLUMN gpusort_stats.queue_ms IS 'milliseconds of waiting for other sorts to end';
COMMENT ON COLUMN gpusort_stats.small_sorts IS 'sorts that had fewer rows than gpusort.min_rows, which PostgreSQL did';
COMMENT ON COLUMN gpusort_stats.fallbacks IS 'sorts that the service did not do, and PostgreSQL did';
COMMENT ON COLUMN gpusort_stats.fallback_reasons IS 'these by reason';
COMMENT ON COLUMN gpusort_stats.stats_reset IS 'since when is counted';
COMMENT ON VIEW gpusort_jobs IS 'sorts that run now';
COMMENT ON COLUMN gpusort_jobs.pid IS 'process of the session';
COMMENT ON COLUMN gpusort_jobs.datid IS 'OID of its database';
COMMENT ON COLUMN gpusort_jobs.usesysid IS 'OID of its user';
COMMENT ON COLUMN gpusort_jobs.phase IS 'queue, ingest, sort, verify or emit';
COMMENT ON COLUMN gpusort_jobs.engine IS 'cuda or host; unknown in the queue';
COMMENT ON COLUMN gpusort_jobs.device IS 'what sorts; unknown in the queue';
COMMENT ON COLUMN gpusort_jobs.rows_in IS 'rows taken in so far';
COMMENT ON COLUMN gpusort_jobs.rows_out IS 'rows given out so far';
COMMENT ON COLUMN gpusort_jobs.bytes IS 'bytes of rows taken in so far';
COMMENT ON COLUMN gpusort_jobs.started IS 'when the sort began';

REVOKE ALL ON FUNCTION gpusort_service() FROM PUBLIC;
REVOKE ALL ON FUNCTION gpusort_stats() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION gpusort_service() TO pg_monitor;
GRANT EXECUTE ON FUNCTION gpusort_stats() TO pg_monitor;
GRANT SELECT ON gpusort_service, gpusort_stats TO pg_monitor;
