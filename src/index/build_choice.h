/*-------------------------------------------------------------------------
 *
 * build_choice.h
 *	  Decides whether gpusort is to build an index, and says why not.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_BUILD_CHOICE_H
#define GPUSORT_BUILD_CHOICE_H

#include "compat.h"

#include "keys/keys.h"
#include "nodes/execnodes.h"
#include "plan/model/sort_time.h"

/* What an index's tuples are sorted by: its key columns, and last their TIDs. */
typedef struct GpuSortIndexOrder
{
	GpuSortColumn *columns;
	int count;
	double rows; /* estimated */
	int width;   /* estimated bytes of a tuple */
} GpuSortIndexOrder;

extern bool gpusort_index_order(Relation index, GpuSortIndexOrder *order, const char **why_not);
extern bool gpusort_index_is_chosen(Relation heap, Relation index, const IndexInfo *info, GpuSortIndexOrder *order,
									const char **why_not);

/* For whoever sorts a table's rows as an index is sorted */
extern double gpusort_index_estimate_rows(Relation heap);
extern bool gpusort_index_is_sortable(Relation heap, Relation index, const IndexInfo *info,
									  const GpuSortIndexOrder *order, GpuSortTime *time, const char **why_not);
extern double gpusort_index_native_sort_time(const GpuSortTime *time, double rows, double processes);

#endif /* GPUSORT_BUILD_CHOICE_H */
