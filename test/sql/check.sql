\set ECHO none
-- gpusort_check(): what it finds of this database and session, and that everybody may ask.  What it finds of
-- servers is in test/t/check.t.
SET client_min_messages = warning;
LOAD 'gpusort';
\pset format unaligned
\pset tuples_only on

CREATE ROLE regress_gpusort_user;
SELECT * FROM no_plan();

CREATE VIEW gs.unwell AS SELECT * FROM gpusort_check() WHERE severity <> 'ok';

SELECT is(array_agg(subject ORDER BY subject COLLATE "C"), '{build,collations,driver,engine,hooks,host memory,huge pages,"locked memory","parallel workers",preloading,service,settings,"staging memory",statistics,version,"worker processes"}',
		  'a row for each subject') FROM gpusort_check();
SELECT is((SELECT count(*) FROM gpusort_check() WHERE severity NOT IN ('error', 'warning', 'notice', 'ok') OR subject IS NULL OR found IS NULL OR expected IS NULL), 0::bigint, 'severities, and what is and should be');
SELECT is((SELECT count(*) FROM gpusort_check() WHERE (severity = 'ok') <> (action IS NULL)), 0::bigint, 'something to do where something is wrong, and nowhere else');
SELECT is((SELECT array_agg(severity ORDER BY n) FROM gpusort_check() WITH ORDINALITY c (severity, subject, found, expected, action, n)),
		  (SELECT array_agg(severity ORDER BY position(severity IN 'error warning notice ok')) FROM gpusort_check()), 'the worst first');
SELECT is(severity, 'ok', subject || ' is as it should be') FROM gpusort_check() WHERE subject IN ('service', 'version', 'build', 'settings') ORDER BY subject;

-- settings
SET gpusort.force = on;
SELECT is(array_agg(severity || ': ' || found), '{"notice: gpusort.allowed on, gpusort.enable on, gpusort.force on"}', 'gpusort.force is told') FROM gs.unwell WHERE subject = 'settings';
RESET gpusort.force;
SET gpusort.enable = off;
SELECT is(array_agg(severity || ': ' || found), '{"notice: gpusort.allowed on, gpusort.enable off, gpusort.force off"}', 'gpusort.enable, too') FROM gs.unwell WHERE subject = 'settings';
RESET gpusort.enable;
SET max_parallel_workers_per_gather = 0;
SELECT is(array_agg(severity || ': ' || found), ARRAY['notice: max_parallel_workers_per_gather 0, max_parallel_workers ' || current_setting('max_parallel_workers')], 'plans without workers') FROM gs.unwell WHERE subject = 'parallel workers';
SET max_parallel_workers_per_gather = 30;
SELECT matches(found || ' / ' || expected, '^gpusort.staging_memory of .* / at least 496 MB .*', 'staging memory for as many processes as a plan has') FROM gs.unwell WHERE subject = 'staging memory';
RESET max_parallel_workers_per_gather;

-- tables without statistics: large ones only, and not before they are large; ten are named, of which none is another test's
ANALYZE;
CREATE TABLE gs.never_analyzed (i int, t text) WITH (autovacuum_enabled = off);
CREATE TABLE gs.never_analyzed_parts (i int, t text) PARTITION BY RANGE (i);
CREATE TABLE gs.never_analyzed_part PARTITION OF gs.never_analyzed_parts DEFAULT WITH (autovacuum_enabled = off);
CREATE FUNCTION gs.tells_of(name text) RETURNS bool LANGUAGE sql AS $$ SELECT coalesce(bool_or(found ~ (name || '\M')), false) FROM gs.unwell WHERE subject = 'statistics' $$;
INSERT INTO gs.never_analyzed SELECT i, 'a' FROM generate_series(1, 10) i;
SELECT is(gs.tells_of('gs.never_analyzed'), false, 'a small table without statistics is not told of');
INSERT INTO gs.never_analyzed SELECT i, repeat('a', 100) FROM generate_series(1, 70000) i;
INSERT INTO gs.never_analyzed_parts SELECT * FROM gs.never_analyzed;
ANALYZE gs.never_analyzed_part;
SELECT is(gs.tells_of('gs.never_analyzed'), true, 'a large one is');
SELECT is(gs.tells_of('gs.never_analyzed_parts'), true, 'and a partitioned one');
SELECT is(gs.tells_of('gs.never_analyzed_part'), false, 'without its partition, which was analyzed');
VACUUM gs.never_analyzed;
SELECT pg_stat_force_next_flush() \g /dev/null
SELECT is(gs.tells_of('gs.never_analyzed'), true, 'and no statistics');
ANALYZE gs.never_analyzed, gs.never_analyzed_parts;
SELECT is(gs.tells_of('gs.never_analyzed') OR gs.tells_of('gs.never_analyzed_parts'), false, 'after ANALYZE all is well');
DROP TABLE gs.never_analyzed, gs.never_analyzed_parts;

-- collations whose data has changed
BEGIN;
CREATE TABLE gs.changed (t text COLLATE "und-x-icu");
SELECT is((SELECT count(*) FROM gs.unwell WHERE subject = 'collations'), 0::bigint, 'no collation is of another version');
UPDATE pg_collation SET collversion = '0' WHERE collname = 'und-x-icu';
SELECT is(severity || ': ' || found, 'warning: changed version: "und-x-icu"', 'one that a column has is') FROM gs.unwell WHERE subject = 'collations';
DROP TABLE gs.changed;
SELECT is((SELECT count(*) FROM gs.unwell WHERE subject = 'collations'), 0::bigint, 'one that no column has does not matter');
ROLLBACK;

-- objects of another version than the module
BEGIN;
UPDATE pg_extension SET extversion = '0.0.1' WHERE extname = 'gpusort';
SELECT is(severity || ': ' || found, format('warning: module %s, extension 0.0.1', gpusort_version()), 'a version that differs') FROM gs.unwell WHERE subject = 'version';
ROLLBACK;

-- everybody may ask, whatever is in the way of names, and is told no libraries and no paths
CREATE SCHEMA gs_hostile;
CREATE FUNCTION gs_hostile.pg_size_pretty(bigint) RETURNS text LANGUAGE sql AS $$ SELECT 'hostile' $$;
CREATE FUNCTION gs_hostile.never(text, text) RETURNS bool LANGUAGE sql AS $$ SELECT 1 / 0 > 0 $$;
CREATE OPERATOR gs_hostile.= (LEFTARG = text, RIGHTARG = text, FUNCTION = gs_hostile.never);
GRANT USAGE ON SCHEMA gs_hostile TO regress_gpusort_user;
SET ROLE regress_gpusort_user;
SET search_path = gs_hostile, pg_catalog, public;
SELECT count(*) AS rows, count(*) FILTER (WHERE concat(found, expected, action) LIKE '%hostile%') AS hostile,
	   string_agg(found, '') FILTER (WHERE subject OPERATOR(pg_catalog.=) 'hooks') AS hooks FROM public.gpusort_check() \gset
SELECT concat(report, hooks) AS told FROM public.gpusort_environment() \gset
RESET search_path;
RESET ROLE;
SELECT is(:rows, 16, 'an ordinary user is answered');
SELECT is(:hostile, 0, 'by PostgreSQL''s own functions and operators');
SELECT is(:'hooks'::text, 'visible to members of pg_monitor', 'and not told libraries');
SELECT is(:'told'::text, '', 'nor what the service reported');
SELECT isnt(hooks, NULL, 'a superuser is told of hooks') FROM gpusort_environment();
DROP SCHEMA gs_hostile CASCADE;
DROP VIEW gs.unwell CASCADE;
DROP ROLE regress_gpusort_user;

SELECT * FROM finish();
