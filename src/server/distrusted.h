/*-------------------------------------------------------------------------
 *
 * distrusted.h
 *	  Collations whose order was found to be another than that of their keys.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DISTRUSTED_H
#define GPUSORT_DISTRUSTED_H

#include "compat.h"

#include "nodes/pg_list.h"

/* A collation of the C library whose order is not that of its keys: left alone until the server restarts. */
typedef struct GpuSortDistrusted
{
	Oid database;
	Oid collation;
} GpuSortDistrusted;

/* When so many are distrusted, all others are. */
#define GPUSORT_DISTRUSTED_MAX 64

extern bool gpusort_shared_distrust_collation(Oid collation);
extern List *gpusort_shared_distrusted_collations(bool *all);
extern bool gpusort_shared_distrusts_collation(Oid collation);

#endif /* GPUSORT_DISTRUSTED_H */
