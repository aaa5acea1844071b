-- A large sort is the service's, and its rows come in PostgreSQL's own order.
CREATE EXTENSION gpusort;
SELECT gpusort_version();
CREATE TABLE t AS SELECT i AS id, i * 7919 % 200003 AS k, md5(i::text) COLLATE "C" AS s FROM generate_series(1, 200000) i;
ANALYZE t;
SET gpusort.force = on;
DO $$
DECLARE
	line text;
	plan text := '';
	ours text;
	native text;
BEGIN
	FOR tries IN 1 .. 150 LOOP	-- until the service is ready
		plan := '';
		FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT * FROM t ORDER BY s, k' LOOP
			plan := plan || line || E'\n';
		END LOOP;
		EXIT WHEN plan ~ 'Sort Method: (cpu|gpu) radix';
		PERFORM pg_sleep(0.2);
	END LOOP;
	RAISE NOTICE '%', plan;
	IF plan !~ 'Custom Scan \(GpuSort\)' OR plan !~ 'Sort Method: (cpu|gpu) radix' THEN
		RAISE EXCEPTION 'gpusort does not sort';
	END IF;
	EXECUTE 'SELECT md5(string_agg(id || s, '','')) FROM (SELECT * FROM t ORDER BY s, k) q' INTO ours;
	SET LOCAL gpusort.enable = off;
	EXECUTE 'SELECT md5(string_agg(id || s, '','')) FROM (SELECT * FROM t ORDER BY s, k) q' INTO native;
	IF ours <> native THEN
		RAISE EXCEPTION 'gpusort''s order is not PostgreSQL''s';
	END IF;
END
$$;
SELECT sorts > 0 AS sorted FROM gpusort_stats;
