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
#include "service/protocol.h"

typedef struct GpuSortParallelSort GpuSortParallelSort;

/* Those of one GpuSortOutput, for example. */
typedef struct GpuSortSortSet
{
	GpuSortParallelSort **sorts;
	int count;
	bool workers_order; /* workers may have the rows sorted, too, not just the leader */
	bool bordered;      /* what is made of a range ends at its border, as pages do: few ranges are wanted */
	bool lost;          /* rows of one of them are: what has been computed of the range at hand is void */

	/*
	 * Where what is made of a range can depend on others, of one sort.  Rows that are equal in whole_columns do not
	 * depend on others: they are in one range if that leaves no range too large, else continued becomes true.
	 */
	bool continues;
	int whole_columns; /* 0: all rows depend on others */
	uint32 before;     /* so many rows before a range, and after it, are to be read with it */
	uint32 after;
	bool continued; /* there are ranges that depend on others; the leader's to find out, and to tell the others */
	bool again;     /* ranges that are asked for now are so for the first of two times */

	int asked; /* ranges that are asked for and not begun, and their numbers */
	uint32 asked_ranges[GPUSORT_READS_MAX];
	uint32 range; /* at hand */
} GpuSortSortSet;

extern void gpusort_sort_set_add(GpuSortSortSet *set, GpuSortParallelSort *sort);
extern void gpusort_sort_set_unify(const GpuSortSortSet *set, GpuSortPrefix **prefixes, bool *common_later);
extern void gpusort_sort_set_keep_ranges(const GpuSortSortSet *set, GpuSortPrefix *prefixes);
extern uint32 gpusort_sort_set_range_bits(const GpuSortSortSet *set);

#endif /* GPUSORT_SORT_SET_H */
