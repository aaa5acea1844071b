/*-------------------------------------------------------------------------
 *
 * sort_set.h
 *	  Sorts whose rows several processes put, and read by ranges that are cut at the same borders.
 *
 * LEGAL ORDER OF CALLS
 *	Each process makes the same sorts (sort/sort.h), with its part of the rows as source, and a GpuSortParallelSort for
 *	each.  Sorts that are cut at the same borders are a set: one, or two to be merged.  Shared state is in dynamic shared
 *	memory (parallel_sort.h): the leader calls estimate and initialize before workers start, and reinitialize before they
 *	start again; a worker calls attach; all call detach before the memory goes.  Without workers there is none.  Then
 *
 *		leader			begin, before workers start, or refuse
 *		each process	ingest: puts its part
 *		one process		order, after all have put theirs: the leader, or a worker after join_to_order
 *		each process	open, to read; the order is verified now (order_check.h)
 *		each process	(ask, for a range or the next one; begin_range; gpusort_sort_next for its rows)*
 *		worker			close
 *		leader			keep, if it reads all rows without workers; finish, when workers have ended; release
 *		each process	end at any time; then begin or, in a worker, nothing
 *
 *	If only the leader reads (parallel_sort.h), it orders the rows and then reads its sort; the others open it to verify
 *	the order.
 *
 *	participants.h says which process does what, and when.  If a function returns false, with a reason, the rows are lost
 *	for all processes, and the caller decides what follows: after refuse PostgreSQL sorts, in the leader only.  While
 *	rows are read, set->lost means that the result of the current range is invalid.
 *
 * MEMORY
 *	What belongs to one sort is in the context of its GpuSortState; the rest belongs to the context that was current
 *	at create.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_SET_H
#define GPUSORT_SORT_SET_H

#include "compat.h"

#include "parallel/claims.h"
#include "parallel/parallel_sort.h"
#include "service/protocol.h"

/* The sorts of one GpuSortOutput, for example. */
typedef struct GpuSortSortSet
{
	GpuSortParallelSort **sorts;
	int count;
	bool workers_order; /* workers may order the rows, not only the leader */
	bool bordered;      /* each range has a cost at its end, such as a page that is not full, so few ranges are wanted */
	bool lost;          /* rows of a sort were lost, and the current range's result is invalid */

	/*
	 * For one sort, if the result of a range can depend on other ranges.  Rows that are equal in whole_columns depend
	 * only on each other.  They are in one range, unless it would be too large: then continued becomes true.
	 */
	bool continues;
	int whole_columns; /* 0 if all rows depend on others */
	uint32 before;     /* number of rows before a range that are read with it; after: behind it */
	uint32 after;
	bool continued; /* there are ranges that depend on others; the leader finds out and tells the others */
	bool again;     /* the current reads are the first of two passes */

	int asked; /* number of ranges that were asked for and not begun; asked_ranges has their numbers */
	uint32 asked_ranges[GPUSORT_READS_MAX];
	uint32 range; /* the current one */
} GpuSortSortSet;

extern void gpusort_sort_set_add(GpuSortSortSet *set, GpuSortParallelSort *sort);

/* For the leader */
extern bool gpusort_sort_set_begin(GpuSortSortSet *set, int participants, GpuSortFailure *failure);
extern void gpusort_sort_set_refuse(GpuSortSortSet *set, const GpuSortFailure *failure);
extern void gpusort_sort_set_show(GpuSortSortSet *set, uint32 range);
extern bool gpusort_sort_set_finish(GpuSortSortSet *set, GpuSortFailure *failure);
extern void gpusort_sort_set_release(GpuSortSortSet *set);

/* For any participant */
extern bool gpusort_sort_set_ingest(GpuSortSortSet *set, const volatile bool *stop, bool *whole,
									GpuSortFailure *failure);
extern bool gpusort_sort_set_have_rows(GpuSortSortSet *set);
extern bool gpusort_sort_set_join_to_order(GpuSortSortSet *set, GpuSortFailure *failure);
extern bool gpusort_sort_set_order(GpuSortSortSet *set, int processes, uint32 *ranges, GpuSortFailure *failure);
extern bool gpusort_sort_set_open(GpuSortSortSet *set, const volatile bool *stop, GpuSortFailure *failure);
extern uint64 gpusort_sort_set_near(const GpuSortSortSet *set, uint32 range, uint64 *after);
extern bool gpusort_sort_set_ask(GpuSortSortSet *set, uint32 range, GpuSortFailure *failure);
extern bool gpusort_sort_set_ask_all(GpuSortSortSet *set, GpuSortFailure *failure);
extern bool gpusort_sort_set_begin_range(GpuSortSortSet *set, GpuSortFailure *failure);
extern void gpusort_sort_set_note_lost(const GpuSortSortSet *set, GpuSortClaims *claims);
extern bool gpusort_sort_set_keep(GpuSortSortSet *set, const volatile bool *stop);
extern void gpusort_sort_set_close(GpuSortSortSet *set);
extern void gpusort_sort_set_end(GpuSortSortSet *set);

#endif /* GPUSORT_SORT_SET_H */
