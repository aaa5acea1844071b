/*-------------------------------------------------------------------------
 *
 * windows.h
 *	  What a window needs of other rows of its partition, beside the current row.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_WINDOWS_H
#define GPUSORT_WINDOWS_H

#include "compat.h"

#include "node.h"
#include "nodes/parsenodes.h"
#include "nodes/plannodes.h"

/* Rows before it, and after it, that a row may need at most: so many are computed twice for each range. */
#define GPUSORT_WINDOW_NEAR_MAX 1000

/* A window, of a path or a finished plan. */
typedef struct GpuSortWindow
{
	List *columns; /* with its functions */
	Index winref;
	int partition_columns;
	int order_columns;
	int frame_options;
	Node *start_offset;
	Node *end_offset;
	bool leaves_out; /* it may leave rows out, or their values, by more than stops_at */
	List *stops_at;  /* conditions: of a partition no row is given out from the first on for which one is not true */
} GpuSortWindow;

typedef struct GpuSortWindowNeeds
{
	GpuSortUse use; /* of a GpuSort right below; NONE: a row may need any row of its partition, for all that is known */
	Oid whole;      /* the first function that may need any row; InvalidOid: none does by itself */

	/* where it is running */
	bool only_numbers; /* row_number, rank and dense_rank: rows pass through */
	int values;        /* aggregates whose state is a value */
	int states;        /* or has memory of its own */
} GpuSortWindowNeeds;

extern GpuSortWindowNeeds gpusort_window_needs(const GpuSortWindow *window);
extern GpuSortWindowNeeds gpusort_window_plan_needs(const WindowAgg *plan);
extern bool gpusort_window_keeps(const GpuSortWindow *window, GpuSortKeptRows *kept);
extern bool gpusort_window_plan_keeps(const WindowAgg *plan, GpuSortKeptRows *kept);

#endif /* GPUSORT_WINDOWS_H */
