-- gpusort works without these objects, as soon as its module is loaded: they show what it does.
\echo Use "CREATE EXTENSION gpusort" to load this file. \quit

CREATE FUNCTION gpusort_version()
RETURNS text
AS 'MODULE_PATHNAME', 'gpusort_version'
LANGUAGE C STABLE PARALLEL SAFE;
COMMENT ON FUNCTION gpusort_version() IS 'version of the gpusort module that is loaded';

CREATE FUNCTION gpusort_devices(
    OUT engine text,
    OUT ordinal integer,
    OUT name text,
    OUT detail text,
    OUT memory_total bigint,
    OUT memory_limit bigint,
    OUT memory_used bigint,
    OUT jobs integer)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'gpusort_show_devices'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION gpusort_devices() IS 'devices that the sort service uses; sizes in bytes';

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

CREATE FUNCTION gpusort_jobs(
    OUT pid integer,
    OUT datid oid,
    OUT usesysid oid,
    OUT phase text,
    OUT engine text,
    OUT device text,
    OUT rows_in bigint,
    OUT rows_out bigint,
    OUT bytes bigint,
    OUT started timestamptz)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'gpusort_show_jobs'
LANGUAGE C VOLATILE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpusort_jobs() IS 'running sorts: phase, rows taken in and given out so far';

CREATE FUNCTION gpusort_stats_reset()
RETURNS void
AS 'MODULE_PATHNAME', 'gpusort_stats_reset'
LANGUAGE C VOLATILE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpusort_stats_reset() IS 'sets the statistics to zero';

CREATE VIEW gpusort_devices AS SELECT * FROM gpusort_devices();
CREATE VIEW gpusort_service AS SELECT * FROM gpusort_service();
CREATE VIEW gpusort_stats AS SELECT * FROM gpusort_stats();
CREATE VIEW gpusort_jobs AS SELECT * FROM gpusort_jobs();

-- Reading is for members of pg_monitor, resetting for superusers.
REVOKE ALL ON FUNCTION gpusort_devices() FROM PUBLIC;
REVOKE ALL ON FUNCTION gpusort_service() FROM PUBLIC;
REVOKE ALL ON FUNCTION gpusort_stats() FROM PUBLIC;
REVOKE ALL ON FUNCTION gpusort_jobs() FROM PUBLIC;
REVOKE ALL ON FUNCTION gpusort_stats_reset() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION gpusort_devices() TO pg_monitor;
GRANT EXECUTE ON FUNCTION gpusort_service() TO pg_monitor;
GRANT EXECUTE ON FUNCTION gpusort_stats() TO pg_monitor;
GRANT EXECUTE ON FUNCTION gpusort_jobs() TO pg_monitor;
GRANT SELECT ON gpusort_devices, gpusort_service, gpusort_stats, gpusort_jobs TO pg_monitor;
