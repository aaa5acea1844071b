/*-------------------------------------------------------------------------
 *
 * running_state.h
 *	  What a window's functions come to, for running.c, running_ranges.c and running_functions.c alone.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_RUNNING_STATE_H
#define GPUSORT_RUNNING_STATE_H

#include "compat.h"

#include "exec/running.h"
#include "executor/executor.h"
#include "facts/windows.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "nodes/execnodes.h"
#include "utils/tuplestore.h"

typedef enum GpuSortRunningKind
{
	GPUSORT_RUNNING_ROW_NUMBER,
	GPUSORT_RUNNING_RANK,
	GPUSORT_RUNNING_DENSE_RANK,
	GPUSORT_RUNNING_PERCENT_RANK,
	GPUSORT_RUNNING_CUME_DIST,
	GPUSORT_RUNNING_NTILE,
	GPUSORT_RUNNING_COUNT, /* of all rows up to the end of the frame */
	GPUSORT_RUNNING_AGGREGATE,
	GPUSORT_RUNNING_FIRST,
	GPUSORT_RUNNING_LAST,
} GpuSortRunningKind;

/* A value that is kept: the state of an aggregate, or the first or last value of a frame. */
typedef struct GpuSortRunningValue
{
	Datum value; /* in the states' memory context where it is a pointer */
	bool is_null;
} GpuSortRunningValue;

/* One window function. */
typedef struct GpuSortRunningFunction
{
	GpuSortRunningKind kind;
	const WindowFuncExprState *expr;
	int64 tiles; /* of ntile() */

	/* what is kept */
	int16 length;
	bool by_value;

	/* of an aggregate */
	GpuSortRunningValue initial;
	FmgrInfo transition;
	FmgrInfo combine;
	FmgrInfo serialize; /* fn_oid 0: there is none, or there is no need */
	FmgrInfo deserialize;
	FmgrInfo final;
	bool final_is_state;
} GpuSortRunningFunction;

/* Numbers of rows in the partition of the row at hand. */
typedef struct GpuSortRunningCounts
{
	int64 rows;   /* up to it; 0: there is none yet */
	int64 rank;   /* number of the first of its peers */
	int64 groups; /* of peers up to it */
} GpuSortRunningCounts;

/* What rows come to: those of the partition of the last of them. */
typedef struct GpuSortRunningTotals
{
	GpuSortRunningCounts counts;
	GpuSortRunningValue *states; /* by number of the function */
} GpuSortRunningTotals;

struct GpuSortRunning
{
	ExecProcNodeMtd native; /* how the WindowAgg runs by itself */
	WindowAggState *window;
	GpuSortScanState *scan;
	GpuSortWindowNeeds needs;
	int count;
	GpuSortRunningFunction *functions; /* by number */
	bool keeps;                        /* some have a state, or a value */
	bool by_row;                       /* frames end with the row at hand, not with its last peer */
	bool ahead;                        /* a row's values need the last of its peers */
	bool by_peers;                     /* the first of them */
	bool by_groups;                    /* how many groups of peers there are */

	/* of the rows at hand */
	GpuSortRunningTotals at_hand;
	MemoryContext states; /* what at_hand's are in */
	MemoryContext values; /* what comes of them: of a row, or of a group of peers */
	bool ended;
	bool natively;  /* the node runs by itself, until it starts over */
	int64 all_rows; /* of the partition; -1: not known */

	/* where a group of peers is read before it is emitted */
	TupleTableSlot *first; /* of the group at hand */
	TupleTableSlot *next;  /* of the next; empty: it has not been read */
	Tuplestorestate *group;
	TupleTableSlot *kept; /* a row of group */
	int64 group_rows;     /* of the group at hand; in group if there are several */
	int64 emitted;        /* of these */

	/* by ranges */
	GpuSortRunningTotals before; /* what the rows before the range at hand come to */
	MemoryContext before_states;
	bool any_before;             /* there are some */
	MinimalTuple last_before;    /* one of the partition of the last of them, in before_states; NULL: there is but one */
	bool goes_on;                /* the range at hand goes on from there, when it is begun */
	int64 range_rows;            /* all_rows for ranges */
	TupleTableSlot *range_first; /* the first row of a range */
};

extern void gpusort_running_function_init(GpuSortRunningFunction *function, const WindowFuncExprState *expr);
extern GpuSortRunningValue gpusort_running_function_start(const GpuSortRunningFunction *function);
extern void gpusort_running_function_advance(GpuSortRunningFunction *function, GpuSortRunningValue *state, bool first,
											 WindowAggState *window, MemoryContext states);
extern GpuSortRunningValue gpusort_running_function_value(GpuSortRunningFunction *function,
														  const GpuSortRunningValue *state, WindowAggState *window,
														  MemoryContext states);
extern void gpusort_running_function_put(GpuSortRunningFunction *function, const GpuSortRunningValue *state,
										 WindowAggState *window, MemoryContext states, StringInfo bytes);
extern void gpusort_running_function_add(GpuSortRunningFunction *function, GpuSortRunningValue *state, bool first,
										 const GpuSortRunningValue *later, WindowAggState *window,
										 MemoryContext states);
extern GpuSortRunningValue gpusort_running_function_get(GpuSortRunningFunction *function, const char **bytes,
														WindowAggState *window, MemoryContext states);

extern void gpusort_running_start(GpuSortRunning *running);
extern void gpusort_running_start_states(const GpuSortRunning *running, GpuSortRunningTotals *totals,
										 MemoryContext states);
extern void gpusort_running_advance(GpuSortRunning *running, TupleTableSlot *row, bool first);

/* Returns true if row is equal to first in the columns that equal compares; NULL compares none. */
static inline bool
gpusort_running_is_like(WindowAggState *window, ExprState *equal, TupleTableSlot *first, TupleTableSlot *row)
{
	ExprContext *context = window->tmpcontext;

	if (equal == NULL)
		return true;
	context->ecxt_innertuple = first;
	context->ecxt_outertuple = row;
	return ExecQualAndReset(equal, context);
}

/* Counts row, the next of the input: begins a partition with it, or a group of peers, where it is the first of one. */
static inline void
gpusort_running_count_row(GpuSortRunning *running, TupleTableSlot *row, bool new_partition, bool new_group)
{
	GpuSortRunningCounts *counts = &running->at_hand.counts;

	if (new_partition)
	{
		if (running->window->partEqfunction != NULL)
			ExecCopySlot(running->window->first_part_slot, row);
		gpusort_running_start_states(running, &running->at_hand, running->states);
	}
	counts->rows++;
	if (new_group)
	{
		counts->rank = counts->rows;
		counts->groups++;
	}
}

/* A row of the input as the kind of tuple that the window's expressions take. */
static inline TupleTableSlot *
gpusort_running_fit_row(GpuSortRunning *running, TupleTableSlot *row)
{
	return likely(running->scan->css.ss.ps.resultopsfixed) ? row : ExecCopySlot(running->window->ss.ss_ScanTupleSlot, row);
}

#endif /* GPUSORT_RUNNING_STATE_H */
