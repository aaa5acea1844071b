/*-------------------------------------------------------------------------
 *
 * collations.h
 *	  What the catalogues say of a collation; for this folder alone.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_COLLATIONS_H
#define GPUSORT_COLLATIONS_H

#include "compat.h"

#include "catalog/pg_collation.h"

/* PostgreSQL's own collations, since 17: all of them compare bytes. */
#ifndef COLLPROVIDER_BUILTIN
#define COLLPROVIDER_BUILTIN 'b'
#endif

extern char gpusort_collation_provider(Oid collation, char **libc_locale);

#endif /* GPUSORT_COLLATIONS_H */
