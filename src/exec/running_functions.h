/*-------------------------------------------------------------------------
 *
 * running_functions.h
 *	  What one window function comes to, row by row: aggregates as PostgreSQL's WindowAgg computes them, and values.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_RUNNING_FUNCTIONS_H
#define GPUSORT_RUNNING_FUNCTIONS_H

#include "compat.h"

#include "fmgr.h"
#include "lib/stringinfo.h"
#include "nodes/execnodes.h"

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

#endif /* GPUSORT_RUNNING_FUNCTIONS_H */
