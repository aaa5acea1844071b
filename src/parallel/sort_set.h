/*-------------------------------------------------------------------------
 *
 * sort_set.h
 *	  The sorts whose rows are cut at the same borders.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_SET_H
#define GPUSORT_SORT_SET_H

#include "compat.h"

#include "keys/keys.h"

typedef struct GpuSortJointSort GpuSortJointSort;

/* Those of one GpuSortOutput, for example. */
typedef struct GpuSortJointSorts
{
	GpuSortJointSort **sorts;
	int count;
	bool partial;  /* no process leads: any of them may have the rows sorted */
	bool bordered; /* what is made of a range ends at its border, as pages do: few ranges are wanted */
	bool lost;     /* rows of one of them are: what has been computed of the range at hand is void */
} GpuSortJointSorts;

extern void gpusort_joint_sorts_add(GpuSortJointSorts *sorts, GpuSortJointSort *sort);
extern void gpusort_joint_sorts_unify(const GpuSortJointSorts *sorts, GpuSortPrefix **prefixes, bool *common_later);
extern void gpusort_joint_sorts_keep_ranges(const GpuSortJointSort *own, GpuSortPrefix *prefixes);
extern uint32 gpusort_joint_sorts_range_bits(const GpuSortJointSorts *sorts);

#endif /* GPUSORT_SORT_SET_H */
