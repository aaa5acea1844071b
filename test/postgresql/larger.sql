-- larger.sql - makes the tables of a database larger: each to some :rows rows and at least twice as many as it
-- has; those of fewer than :few rows to twice as many.  Tables whose rows cannot be there twice stay as they
-- are.  For script/test core.
SET session_replication_role = replica;
ANALYZE;
SELECT format('INSERT INTO %1$s (%2$s) OVERRIDING SYSTEM VALUE SELECT %2$s FROM ONLY %1$s, generate_series(2, %3$s)',
			  oid::regclass, columns, CASE WHEN reltuples < :few THEN 2 ELSE greatest(2, ceil(:rows / reltuples)) END)
FROM pg_class,
	LATERAL (SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) AS columns
			 FROM pg_attribute
			 WHERE attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped AND attgenerated = '') AS list
WHERE relkind = 'r' AND reltuples > 0 AND relpersistence <> 't' AND columns <> ''
	AND relnamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)
ORDER BY oid
\gexec
RESET session_replication_role;
VACUUM ANALYZE;
