/*-------------------------------------------------------------------------
 *
 * sort_set.h
 *	  The GpuSorts whose rows are cut at the same borders.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_SET_H
#define GPUSORT_SORT_SET_H

#include "exec/scan_state.h"

/* Those of one GpuSortOutput. */
typedef struct GpuSortSharedSorts
{
	GpuSortScanState **sorts;
	int count;
	bool partial; /* no process leads: any of them may have the rows sorted */
	bool lost;    /* rows of one of them are: what has been computed of the range at hand is void */
} GpuSortSharedSorts;

extern void gpusort_shared_sorts_find(GpuSortSharedSorts *sorts, PlanState *ps, int rescan_param);
extern void gpusort_shared_sorts_unify(const GpuSortSharedSorts *sorts, GpuSortPrefix **prefixes, bool *common_later);
extern void gpusort_shared_sorts_keep_ranges(const GpuSortScanState *state, GpuSortPrefix *prefixes);
extern uint32 gpusort_shared_sorts_range_bits(const GpuSortSharedSorts *sorts);

#endif /* GPUSORT_SORT_SET_H */
