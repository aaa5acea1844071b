/*-------------------------------------------------------------------------
 *
 * running_functions.c
 *	  What one window function comes to, row by row: aggregates as PostgreSQL's WindowAgg computes them, and values.
 *
 * An aggregate has a state, from the first row of a partition on.  Rows are added by its transition function,
 * a part of the rows by its combine function: aggregates.c has those of which both give the same.  States are in a
 * memory context that is reset with each partition; functions are called as by WindowAgg, which they are told of, so
 * that they find that context, and keep what they have there.
 *
 * first_value() and last_value() have a value in the place of a state.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/running_functions.h"

#include "access/htup_details.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_type_d.h"
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

static void
init_function(FmgrInfo *function, Oid oid)
{
	if (OidIsValid(oid))
		fmgr_info(oid, function);
}

/* Returns the state before any row, from the catalog. */
static GpuSortRunningValue
initial_state(HeapTuple tuple, Oid type)
{
	GpuSortRunningValue state = {0};
	Datum start = SysCacheGetAttr(AGGFNOID, tuple, Anum_pg_aggregate_agginitval, &state.is_null);
	Oid input;
	Oid io_parameter;

	if (state.is_null)
		return state;
	getTypeInputInfo(type, &input, &io_parameter);
	state.value = OidInputFunctionCall(input, TextDatumGetCString(start), io_parameter, -1);
	return state;
}

/* Sets a function up to compute an aggregate; what that needs is kept in the current memory context. */
static void
init_aggregate(GpuSortRunningFunction *function, Oid oid)
{
	HeapTuple tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(oid));
	Form_pg_aggregate aggregate;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for aggregate %u", oid);
	aggregate = (Form_pg_aggregate) GETSTRUCT(tuple);
	function->kind = GPUSORT_RUNNING_AGGREGATE;
	get_typlenbyval(aggregate->aggtranstype, &function->length, &function->by_value);
	function->initial = initial_state(tuple, aggregate->aggtranstype);
	init_function(&function->transition, aggregate->aggtransfn);
	init_function(&function->combine, aggregate->aggcombinefn);
	if (aggregate->aggtranstype == INTERNALOID)
	{
		init_function(&function->serialize, aggregate->aggserialfn);
		init_function(&function->deserialize, aggregate->aggdeserialfn);
	}
	init_function(&function->final, aggregate->aggfinalfn);
	function->final_is_state = !OidIsValid(aggregate->aggfinalfn);
	ReleaseSysCache(tuple);
}

/* Sets a function up that facts/windows.c calls running; what it needs is kept in the current memory context. */
void
gpusort_running_function_init(GpuSortRunningFunction *function, const WindowFuncExprState *expr)
{
	const WindowFunc *call = expr->wfunc;

	function->expr = expr;
	switch (call->winfnoid)
	{
		case F_ROW_NUMBER:
			function->kind = GPUSORT_RUNNING_ROW_NUMBER;
			break;
		case F_RANK_:
			function->kind = GPUSORT_RUNNING_RANK;
			break;
		case F_DENSE_RANK_:
			function->kind = GPUSORT_RUNNING_DENSE_RANK;
			break;
		case F_PERCENT_RANK_:
			function->kind = GPUSORT_RUNNING_PERCENT_RANK;
			break;
		case F_CUME_DIST_:
			function->kind = GPUSORT_RUNNING_CUME_DIST;
			break;
		case F_NTILE:
			function->kind = GPUSORT_RUNNING_NTILE;
			function->tiles = DatumGetInt32(linitial_node(Const, call->args)->constvalue);
			break;
		case F_FIRST_VALUE:
		case F_LAST_VALUE:
			function->kind = call->winfnoid == F_FIRST_VALUE ? GPUSORT_RUNNING_FIRST : GPUSORT_RUNNING_LAST;
			get_typlenbyval(exprType(linitial(call->args)), &function->length, &function->by_value);
			break;
		case F_COUNT_:
			if (call->aggfilter == NULL)
				function->kind = GPUSORT_RUNNING_COUNT;
			else
				init_aggregate(function, call->winfnoid);
			break;
		default:
			init_aggregate(function, call->winfnoid);
			break;
	}
}

/* Returns the state at the beginning of a partition, in the current memory context. */
GpuSortRunningValue
gpusort_running_function_start(const GpuSortRunningFunction *function)
{
	GpuSortRunningValue state = {.is_null = true};

	if (function->kind != GPUSORT_RUNNING_AGGREGATE)
		return state;
	state = function->initial;
	if (!state.is_null)
		state.value = datumCopy(state.value, function->by_value, function->length);
	return state;
}

/* Keeps a value in the place of that of a state, in that memory context. */
static void
keep(const GpuSortRunningFunction *function, GpuSortRunningValue *state, Datum value, bool is_null,
	 MemoryContext states)
{
	MemoryContext caller;

	if (!function->by_value && !state->is_null && !is_null && DatumGetPointer(state->value) == DatumGetPointer(value))
		return;
	if (!function->by_value && !state->is_null)
		pfree(DatumGetPointer(state->value));
	caller = MemoryContextSwitchTo(states);
	state->is_null = is_null;
	state->value = is_null ? (Datum) 0 : datumCopy(value, function->by_value, function->length);
	MemoryContextSwitchTo(caller);
}

/* Calls a function of an aggregate, whose other arguments are there, with a state, or what there is in its place. */
static GpuSortRunningValue
call_with(FunctionCallInfo call, Datum state, bool is_null, WindowAggState *window, MemoryContext states)
{
	GpuSortRunningValue result;

	call->args[0].value = state;
	call->args[0].isnull = is_null;
	window->curaggcontext = states;
	result.value = FunctionCallInvoke(call);
	window->curaggcontext = NULL;
	result.is_null = call->isnull;
	return result;
}

/* Makes a state what such a function returns for it. */
static void
change_state(GpuSortRunningFunction *function, FunctionCallInfo call, GpuSortRunningValue *state,
			 WindowAggState *window, MemoryContext states)
{
	const GpuSortRunningValue changed = call_with(call, state->value, state->is_null, window, states);

	keep(function, state, changed.value, changed.is_null, states);
}

/* Adds a row to the state of an aggregate. */
static void
advance_aggregate(GpuSortRunningFunction *function, GpuSortRunningValue *state, WindowAggState *window,
				  MemoryContext states)
{
	LOCAL_FCINFO(call, FUNC_MAX_ARGS);
	const WindowFuncExprState *expr = function->expr;
	ExprContext *context = window->tmpcontext;
	int arguments = 0;
	bool any_null = false;
	ListCell *cell;

	if (expr->aggfilter != NULL)
	{
		bool is_null;
		Datum wanted = ExecEvalExpr(expr->aggfilter, context, &is_null);

		if (is_null || !DatumGetBool(wanted))
			return;
	}
	InitFunctionCallInfoData(*call, &function->transition, list_length(expr->args) + 1, expr->wfunc->inputcollid,
							 (Node *) window, NULL);
	foreach(cell, expr->args)
	{
		NullableDatum *argument = &call->args[++arguments];

		argument->value = ExecEvalExpr((ExprState *) lfirst(cell), context, &argument->isnull);
		any_null |= argument->isnull;
	}
	if (function->transition.fn_strict)
	{
		if (any_null)
			return;
		/* The first value is the state; none of these functions gives NULL of values. */
		if (state->is_null)
		{
			keep(function, state, call->args[1].value, false, states);
			return;
		}
	}
	change_state(function, call, state, window, states);
}

/*
 * Adds the row in the window's tmpcontext to a state; first: it is the first of the partition.  What is made on the
 * way is in that context's memory.
 */
void
gpusort_running_function_advance(GpuSortRunningFunction *function, GpuSortRunningValue *state, bool first,
								 WindowAggState *window, MemoryContext states)
{
	MemoryContext caller = MemoryContextSwitchTo(window->tmpcontext->ecxt_per_tuple_memory);

	if (function->kind == GPUSORT_RUNNING_AGGREGATE)
		advance_aggregate(function, state, window, states);
	else if (function->kind == GPUSORT_RUNNING_LAST || (function->kind == GPUSORT_RUNNING_FIRST && first))
	{
		bool is_null;
		Datum value = ExecEvalExpr((ExprState *) linitial(function->expr->args), window->tmpcontext, &is_null);

		keep(function, state, value, is_null, states);
	}
	MemoryContextSwitchTo(caller);
}

/* Returns what a state comes to, in the current memory context, or where the state is. */
GpuSortRunningValue
gpusort_running_function_value(GpuSortRunningFunction *function, const GpuSortRunningValue *state,
							   WindowAggState *window, MemoryContext states)
{
	LOCAL_FCINFO(call, 1);

	if (function->kind != GPUSORT_RUNNING_AGGREGATE || function->final_is_state)
		return *state;
	if (function->final.fn_strict && state->is_null)
		return (GpuSortRunningValue){.is_null = true};
	InitFunctionCallInfoData(*call, &function->final, 1, function->expr->wfunc->inputcollid, (Node *) window, NULL);
	return call_with(call, state->value, state->is_null, window, states);
}

/* Appends a state, so that others can add it to theirs. */
void
gpusort_running_function_put(GpuSortRunningFunction *function, const GpuSortRunningValue *state,
							 WindowAggState *window, MemoryContext states, StringInfo bytes)
{
	const bool serialize = OidIsValid(function->serialize.fn_oid);
	const bool by_value = serialize ? false : function->by_value;
	const int length = serialize ? -1 : function->length;
	Datum value = state->value;
	char *end;

	if (serialize && !state->is_null)
	{
		LOCAL_FCINFO(call, 1);

		InitFunctionCallInfoData(*call, &function->serialize, 1, InvalidOid, (Node *) window, NULL);
		value = call_with(call, state->value, false, window, states).value;
	}
	enlargeStringInfo(bytes, datumEstimateSpace(value, state->is_null, by_value, length));
	end = bytes->data + bytes->len;
	datumSerialize(value, state->is_null, by_value, length, &end);
	bytes->len = end - bytes->data;
}

/*
 * Adds a state of later rows, or their first value; first: there are no rows before.  What it is is in no matter what
 * memory, and stays as it is.
 */
void
gpusort_running_function_add(GpuSortRunningFunction *function, GpuSortRunningValue *state, bool first,
							 const GpuSortRunningValue *later, WindowAggState *window, MemoryContext states)
{
	LOCAL_FCINFO(call, 2);

	if (function->kind != GPUSORT_RUNNING_AGGREGATE)
	{
		if (first && function->kind == GPUSORT_RUNNING_FIRST)
			keep(function, state, later->value, later->is_null, states);
		return;
	}
	if (later->is_null)
		return; /* nothing was added to it */
	if (function->combine.fn_strict && state->is_null)
	{
		keep(function, state, later->value, false, states);
		return;
	}
	InitFunctionCallInfoData(*call, &function->combine, 2, function->expr->wfunc->inputcollid, (Node *) window, NULL);
	call->args[1].value = later->value;
	call->args[1].isnull = false;
	change_state(function, call, state, window, states);
}

/* Returns a state that another process has put, in the current memory context, and moves *bytes behind it. */
GpuSortRunningValue
gpusort_running_function_get(GpuSortRunningFunction *function, const char **bytes, WindowAggState *window,
							 MemoryContext states)
{
	GpuSortRunningValue state;
	char *start = (char *) *bytes;

	state.value = datumRestore(&start, &state.is_null);
	*bytes = start;
	if (OidIsValid(function->deserialize.fn_oid) && !state.is_null)
	{
		LOCAL_FCINFO(call, 2);

		InitFunctionCallInfoData(*call, &function->deserialize, 2, InvalidOid, (Node *) window, NULL);
		call->args[1].value = (Datum) 0;
		call->args[1].isnull = false;
		state.value = call_with(call, state.value, false, window, states).value;
	}
	return state;
}
