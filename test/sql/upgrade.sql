\set ECHO none
-- An extension that was updated from any released version is the one that is created afresh: the
-- same objects with the same definitions, columns, comments, rights, and dependencies.
SET client_min_messages = warning;
\pset format unaligned
\pset tuples_only on

SELECT * FROM no_plan();

-- All is rolled back: the other tests' extension stays as it was.
BEGIN;

-- Rights as lines that do not depend on the order in which they were given.
CREATE FUNCTION gs.upgrade_rights(acl aclitem[]) RETURNS text LANGUAGE sql AS $$
	SELECT coalesce(string_agg(format('%s may %s by %s%s', CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END, privilege_type,
									  grantor::regrole, CASE WHEN is_grantable THEN ', and grant it' ELSE '' END), '; '
							   ORDER BY grantee::regrole::text, privilege_type), 'default')
	FROM aclexplode(acl) $$;

-- What the catalog has of the extension, a line for each fact.
CREATE FUNCTION gs.extension_catalog() RETURNS SETOF text LANGUAGE sql AS $$
	WITH extension AS (SELECT * FROM pg_extension WHERE extname = 'gpusort'),
	member AS (SELECT classid, objid, (pg_identify_object(classid, objid, 0)).identity AS name FROM pg_depend
			   WHERE refclassid = 'pg_extension'::regclass AND refobjid = (SELECT oid FROM extension) AND deptype = 'e'),
	-- a view's rule and row type belong to it
	object AS (SELECT * FROM member
			   UNION ALL
			   SELECT d.classid, d.objid, (pg_identify_object(d.classid, d.objid, 0)).identity
			   FROM member m JOIN pg_depend d ON d.refclassid = m.classid AND d.refobjid = m.objid AND d.deptype = 'i')
	SELECT format('extension %s: version %s, schema %s, %s', extname, extversion, extnamespace::regnamespace, obj_description(oid, 'pg_extension')) FROM extension
	UNION ALL
	SELECT format('%s %s: %s', classid::regclass, name, obj_description(objid, classid::regclass::text)) FROM object
	UNION ALL
	SELECT format('%s: %s', name, pg_get_functiondef(objid)) FROM member WHERE classid = 'pg_proc'::regclass
	UNION ALL
	SELECT format('%s: cost %s, rows %s, owner %s, rights %s', name, procost, prorows, proowner::regrole, gs.upgrade_rights(proacl))
	FROM member JOIN pg_proc p ON classid = 'pg_proc'::regclass AND objid = p.oid
	UNION ALL
	SELECT format('%s: kind %s, options %s, owner %s, rights %s, %s', name, relkind, reloptions, relowner::regrole, gs.upgrade_rights(relacl), pg_get_viewdef(objid))
	FROM member JOIN pg_class c ON classid = 'pg_class'::regclass AND objid = c.oid
	UNION ALL
	SELECT format('%s: column %s %s %s, not null %s, rights %s, %s', name, attnum, attname, format_type(atttypid, atttypmod), attnotnull, gs.upgrade_rights(attacl),
				  col_description(objid, attnum))
	FROM member JOIN pg_attribute ON classid = 'pg_class'::regclass AND objid = attrelid
	UNION ALL
	SELECT format('%s: initial rights of column %s %s, %s', name, i.objsubid, i.privtype, gs.upgrade_rights(i.initprivs))
	FROM object o JOIN pg_init_privs i ON i.classoid = o.classid AND i.objoid = o.objid
	UNION ALL
	SELECT format('%s: depends on %s %s (%s)', name, d.refclassid::regclass, (pg_identify_object(d.refclassid, d.refobjid, d.refobjsubid)).identity, d.deptype)
	FROM object o JOIN pg_depend d ON d.classid = o.classid AND d.objid = o.objid
	UNION ALL
	SELECT format('%s: depends on role %s (%s)', name, d.refobjid::regrole, d.deptype)
	FROM object o JOIN pg_shdepend d ON d.classid = o.classid AND d.objid = o.objid
		AND d.dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) AND d.refclassid = 'pg_authid'::regclass $$;

-- The catalog after the extension was created in that version, the newest if NULL, and updated if asked for.
CREATE FUNCTION gs.catalog_of(version text, updated bool) RETURNS text[] LANGUAGE plpgsql AS $$
BEGIN
	DROP EXTENSION gpusort;
	EXECUTE 'CREATE EXTENSION gpusort' || coalesce(' VERSION ' || quote_literal(version), '');
	IF updated THEN
		ALTER EXTENSION gpusort UPDATE;
	END IF;
	RETURN ARRAY(SELECT line FROM gs.extension_catalog() line ORDER BY line COLLATE "C");
END $$;

CREATE TABLE gs.upgrade_released AS
SELECT version, v.version = e.default_version AS newest FROM pg_available_extension_versions v JOIN pg_available_extensions e USING (name) WHERE name = 'gpusort';
CREATE TABLE gs.upgrade_fresh AS SELECT gs.catalog_of(NULL, false) AS catalog;

SELECT cmp_ok(cardinality(catalog), '>', 100, 'the catalog has many facts of the extension') FROM gs.upgrade_fresh;
SELECT ok(EXISTS (SELECT FROM gs.upgrade_fresh, unnest(catalog) line WHERE line LIKE '%' || fact || '%'), 'among them: ' || fact)
FROM (VALUES ('AS ''$libdir/gpusort'''), ('pg_monitor may SELECT by'), ('kind v'), ('what gpusort has done')) v (fact);
SELECT cmp_ok(count(*), '>=', 1::bigint, 'there are released versions before the newest') FROM gs.upgrade_released WHERE NOT newest;

-- The scripts of a released version do not change any more.
SELECT is(md5(pg_read_file((SELECT setting FROM pg_config WHERE name = 'SHAREDIR') || '/extension/gpusort--' || script || '.sql')), digest,
		  script || ' is what was released')
FROM (VALUES ('0.1.0', '3b4e4cc27a653d07f5ae5d5edff0b3e9'), ('0.1.0--0.2.0', '72806959627f2b6b17f3b530243edb97'), ('0.2.0', '82496fa2036828d5950f3922113912a5')) v (script, digest);

SELECT isnt(gs.catalog_of(version, false), catalog, version || ' differs from the newest version') FROM gs.upgrade_released, gs.upgrade_fresh WHERE NOT newest ORDER BY version;
SELECT is(gs.difference(catalog, gs.catalog_of(version, true)), 'same', version || ' updated is the newest version')
FROM gs.upgrade_released, gs.upgrade_fresh WHERE NOT newest ORDER BY version;

-- The functions work after an update.
SELECT is(gpusort_version(), (SELECT version FROM gs.upgrade_released WHERE newest), 'gpusort_version() after an update');
SELECT is((SELECT count(*) FROM gpusort_stats), 1::bigint, 'gpusort_stats after an update');
SELECT is((SELECT count(*) FROM gpusort_service), 1::bigint, 'gpusort_service after an update');

-- Functions of the same name that can be called without arguments prevent neither.
DROP EXTENSION gpusort;
CREATE SCHEMA hostile;
CREATE FUNCTION gs.be_hostile(call text, place text DEFAULT 'hostile') RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('CREATE FUNCTION %I.%I(a int DEFAULT 1, OUT x int) RETURNS SETOF int LANGUAGE sql AS ''SELECT 1''', place, call);
	EXECUTE format('CREATE FUNCTION %I.%I(VARIADIC a text[] DEFAULT ''{}'', OUT x int) RETURNS SETOF int LANGUAGE sql AS ''SELECT 1''', place, call);
END $$;
SELECT gs.be_hostile(name) FROM unnest(ARRAY['gpusort_devices', 'gpusort_service', 'gpusort_stats', 'gpusort_jobs', 'gpusort_version', 'gpusort_stats_reset', 'gpusort_environment']) name \g /dev/null
SELECT lives_ok('CREATE EXTENSION gpusort SCHEMA hostile', 'CREATE EXTENSION where others have functions of these names');
SELECT is((SELECT count(*) FROM hostile.gpusort_stats), 1::bigint, 'its views are over its own functions');
SELECT cmp_ok((SELECT count(*) FROM hostile.gpusort_check()), '>', 10::bigint, 'and so is gpusort_check()');
SELECT is(pg_get_viewdef('hostile.gpusort_jobs'::regclass) LIKE '%hostile.gpusort_jobs() gpusort_jobs(pid%', true, 'by their names');
DROP EXTENSION gpusort;
CREATE SCHEMA meanwhile;
CREATE EXTENSION gpusort SCHEMA meanwhile VERSION '0.1.0';
SELECT gs.be_hostile(name, 'meanwhile') FROM unnest(ARRAY['gpusort_service', 'gpusort_stats', 'gpusort_jobs', 'gpusort_environment']) name \g /dev/null
SELECT lives_ok('ALTER EXTENSION gpusort UPDATE', 'ALTER EXTENSION UPDATE, too');
SELECT is((SELECT count(*) FROM meanwhile.gpusort_service), 1::bigint, 'with its views');
SELECT cmp_ok((SELECT count(*) FROM meanwhile.gpusort_check()), '>', 10::bigint, 'and gpusort_check()');
SELECT is(pg_get_viewdef('meanwhile.gpusort_jobs'::regclass) LIKE '%meanwhile.gpusort_jobs() gpusort_jobs(pid%', true, 'and the view with new columns');

-- each view and each of its columns is described
SELECT is((SELECT array_agg(format('%s.%s', attrelid::regclass, attname)) FROM pg_attribute JOIN pg_depend ON classid = 'pg_class'::regclass AND objid = attrelid AND deptype = 'e' AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'gpusort')
		   WHERE attnum > 0 AND (col_description(attrelid, attnum) IS NULL OR obj_description(attrelid, 'pg_class') IS NULL)), NULL, 'every view and column has a comment');
SELECT * FROM finish();
ROLLBACK;
