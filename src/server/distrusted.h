/*-------------------------------------------------------------------------
 *
 * distrusted.h
 *	  Collations and operator families whose order was found to be another than that of their keys.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DISTRUSTED_H
#define GPUSORT_DISTRUSTED_H

#include "compat.h"

#include "nodes/pg_list.h"

/*
 * A collation of the C library, or an operator family that abbreviates values, whose order is not that of its keys:
 * left alone until the server restarts.
 */
typedef struct GpuSortDistrusted
{
	Oid database;
	Oid catalog; /* CollationRelationId or OperatorFamilyRelationId */
	Oid object;
} GpuSortDistrusted;

/* If this many are distrusted, all others are too. */
#define GPUSORT_DISTRUSTED_MAX 64

extern bool gpusort_shared_distrust(Oid catalog, Oid object);
extern List *gpusort_shared_distrusted_collations(bool *all);
extern bool gpusort_shared_distrusts(Oid catalog, Oid object);

#endif /* GPUSORT_DISTRUSTED_H */
