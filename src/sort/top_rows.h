/*-------------------------------------------------------------------------
 *
 * top_rows.h
 *	  The first so many rows of a sort, found by one process alone.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_TOP_ROWS_H
#define GPUSORT_TOP_ROWS_H

#include "compat.h"

#include "keys/keys.h"
#include "miscadmin.h"
#include "sort/cutoff.h"
#include "sort/input.h"
#include "sort/row.h"
#include "sort/row_kind.h"

/*
 * More first rows than these, or many of all rows, are found sooner by the service, with the others dropped by
 * cutoff.c: beyond FEW one of so many may be wanted.
 */
#define GPUSORT_TOP_ROWS_MAX 10000
#define GPUSORT_TOP_ROWS_FEW 1000
#define GPUSORT_ROWS_PER_TOP 32

/* Bytes that a row takes beside its own; twice as many rows are taken before those that are not wanted are dropped. */
#define GPUSORT_TOP_ROW_OVERHEAD 72

typedef struct GpuSortTopRows GpuSortTopRows;

extern GpuSortTopRows *gpusort_top_rows_create(GpuSortRows *rows, const GpuSortColumn *columns, int ncolumns);
extern void gpusort_top_rows_begin(GpuSortTopRows *top, uint64 wanted, bool with_ties, MemoryContext context);
extern bool gpusort_top_rows_collect(GpuSortTopRows *top, GpuSortInput *input);
extern void gpusort_top_rows_give_back(GpuSortTopRows *top, GpuSortInput *input, bool ended);
extern void gpusort_top_rows_sort(GpuSortTopRows *top);
extern void gpusort_top_rows_rewind(GpuSortTopRows *top);
extern char *gpusort_top_rows_next(GpuSortTopRows *top, bool forward);
extern uint64 gpusort_top_rows_count(const GpuSortTopRows *top);
extern uint64 gpusort_top_rows_seen(const GpuSortTopRows *top);
extern uint64 gpusort_top_rows_copied(const GpuSortTopRows *top);
extern Size gpusort_top_rows_bytes(const GpuSortTopRows *top);

/* Returns true if so many first rows, of so many bytes by the planner's estimate, should be found here. */
static inline bool
gpusort_top_rows_fit(double first, double rows, uint32 width)
{
	const double rows_per_top = first <= GPUSORT_TOP_ROWS_FEW ? GPUSORT_ROWS_PER_WANTED : GPUSORT_ROWS_PER_TOP;

	return first <= GPUSORT_TOP_ROWS_MAX && first * rows_per_top <= rows &&
		2 * first * (gpusort_row_bytes(width) + GPUSORT_TOP_ROW_OVERHEAD) <= work_mem * 1024.0;
}

#endif /* GPUSORT_TOP_ROWS_H */
