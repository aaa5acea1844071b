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

CREATE VIEW gpusort_service AS SELECT * FROM gpusort_service();
CREATE VIEW gpusort_stats AS SELECT * FROM gpusort_stats();

REVOKE ALL ON FUNCTION gpusort_service() FROM PUBLIC;
REVOKE ALL ON FUNCTION gpusort_stats() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION gpusort_service() TO pg_monitor;
GRANT EXECUTE ON FUNCTION gpusort_stats() TO pg_monitor;
GRANT SELECT ON gpusort_service, gpusort_stats TO pg_monitor;
