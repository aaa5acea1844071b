/*-------------------------------------------------------------------------
 *
 * collations.c
 *	  What the catalogues say of a collation.
 *
 * They say it in the same way in all versions of PostgreSQL, unlike pg_locale_t.
 *
 *-------------------------------------------------------------------------
 */
#include "keys/bytes/collations.h"

#include "access/htup_details.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/syscache.h"

/*
 * Returns the provider of a collation that is not "C"; the default's is the database's.  *libc_locale is the
 * name of its locale if that is the C library's, in the current memory context; else NULL.  Errors: a
 * collation that is not there.
 */
char
gpusort_collation_provider(Oid collation, char **libc_locale)
{
	bool is_default = collation == DEFAULT_COLLATION_OID;
	int cache = is_default ? DATABASEOID : COLLOID;
	HeapTuple tuple = SearchSysCache1(cache, ObjectIdGetDatum(is_default ? MyDatabaseId : collation));
	char provider;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for %s %u", is_default ? "database" : "collation",
			 is_default ? MyDatabaseId : collation);
	provider = is_default ? ((Form_pg_database) GETSTRUCT(tuple))->datlocprovider
						  : ((Form_pg_collation) GETSTRUCT(tuple))->collprovider;
	*libc_locale = NULL;
	if (provider == COLLPROVIDER_LIBC)
	{
		bool isnull;
		Datum locale = SysCacheGetAttr(cache, tuple,
									   is_default ? Anum_pg_database_datcollate : Anum_pg_collation_collcollate, &isnull);

		if (isnull)
			elog(ERROR, "collation %u has no locale", collation);
		*libc_locale = TextDatumGetCString(locale);
	}
	ReleaseSysCache(tuple);
	return provider;
}
