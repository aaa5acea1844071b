/*-------------------------------------------------------------------------
 *
 * set_columns.h
 *	  What is computed of groups, for some of a query's grouping sets.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SET_COLUMNS_H
#define GPUSORT_SET_COLUMNS_H

#include "compat.h"

#include "nodes/pathnodes.h"

/* Some of a query's grouping sets. */
typedef struct GpuSortSetColumns
{
	PlannerInfo *root;
	List *refs;   /* sortgrouprefs of the columns that at least one of these sets has */
	bool one_set; /* it is a single set, which has them all: the value of GROUPING() is known */
} GpuSortSetColumns;

extern Node *gpusort_null_of(const Node *node);
extern PathTarget *gpusort_set_target(GpuSortSetColumns *columns, const PathTarget *target);
extern List *gpusort_set_having(GpuSortSetColumns *columns, List *having);
extern bool gpusort_reads_ungrouped(PlannerInfo *root, const PathTarget *target, List *having);

#endif /* GPUSORT_SET_COLUMNS_H */
