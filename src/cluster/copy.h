/*-------------------------------------------------------------------------
 *
 * copy.h
 *	  Copies a table's rows in the order of an index, by a sort in the service.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_CLUSTER_COPY_H
#define GPUSORT_CLUSTER_COPY_H

#include "compat.h"

#include "access/multixact.h"
#include "utils/relcache.h"

/* What is to be copied, as heap's relation_copy_for_cluster gets it. */
typedef struct GpuSortClusterTask
{
	Relation table;
	Relation copy;
	Relation index;
	TransactionId oldest_xmin;
	TransactionId freeze_limit;
	MultiXactId multi_cutoff;
} GpuSortClusterTask;

typedef struct GpuSortClusterResult
{
	double tuples; /* that were copied */
	double dead;   /* that were not */
} GpuSortClusterResult;

extern bool gpusort_cluster_copy(const GpuSortClusterTask *task, GpuSortClusterResult *result);

#endif /* GPUSORT_CLUSTER_COPY_H */
