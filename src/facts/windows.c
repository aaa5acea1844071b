/*-------------------------------------------------------------------------
 *
 * windows.c
 *	  What a window needs of other rows of its partition, beside the current row.
 *
 * PostgreSQL's WindowAgg keeps all rows of a partition, since a window function may look at any of them.  Most need
 * less.  The planner asks here, once for each window: its path, or the finished plan where no path shows the window
 * right above a GpuSort.  The GpuSort's plan carries the answer to the executor.
 *
 * A window is running if all of its functions follow from what the rows before come to, up to the current row or the
 * last of its peers: numbers of rows, aggregates from the partition's first row on whose states can be combined
 * exactly (aggregates.c), the first and the last value of such a frame.  It needs rows near it if all functions are
 * lag and lead by constants, or of frames of ROWS between constants.  PostgreSQL's node computes these, and cuts the
 * frames of the first of these rows short: so their aggregates are those that cannot fail then.
 *
 * A window that need not give all rows (a run condition) may look at the first ones of each partition alone.
 *
 *-------------------------------------------------------------------------
 */
#include "facts/windows.h"

#include "access/stratnum.h"
#include "catalog/pg_opfamily_d.h"
#include "catalog/pg_type_d.h"
#include "facts/aggregates.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

/* A frame from the partition's first row to the current one, or to its last peer */
#define RUNNING_FRAME (FRAMEOPTION_START_UNBOUNDED_PRECEDING | FRAMEOPTION_END_CURRENT_ROW)

typedef struct Needs
{
	const GpuSortWindow *window;
	bool running_frame;
	bool near_frame;
	bool running; /* all functions so far are */
	bool near;
	GpuSortWindowNeeds found;
} Needs;

/* Returns true if node is an integer that is known; that is *value then, no less than 0, or 0 of NULL. */
static bool
is_constant(const Node *node, int64 *value)
{
	const Const *constant = (const Const *) node;

	if (node == NULL || !IsA(node, Const) || (constant->consttype != INT4OID && constant->consttype != INT8OID))
		return false;
	*value = 0;
	if (!constant->constisnull)
		*value = constant->consttype == INT4OID ? DatumGetInt32(constant->constvalue) : DatumGetInt64(constant->constvalue);
	return true;
}

/* Notes that rows so far away are needed, before the current row where that is less than 0; false: too far. */
static bool
note_near(GpuSortWindowNeeds *needs, int64 distance)
{
	if (distance < -GPUSORT_WINDOW_NEAR_MAX || distance > GPUSORT_WINDOW_NEAR_MAX)
		return false;
	needs->use.before = Max(needs->use.before, (int) -distance);
	needs->use.after = Max(needs->use.after, (int) distance);
	return true;
}

/* Where a frame of ROWS begins or ends, from the current row; false if that is not near. */
static bool
note_bound(Needs *needs, int current, int preceding, int following, const Node *offset)
{
	const int options = needs->window->frame_options;
	int64 distance;

	if (options & current)
		return true;
	if (!(options & (preceding | following)) || !is_constant(offset, &distance) ||
		castNode(Const, (Node *) offset)->constisnull || distance < 0)
		return false;
	return note_near(&needs->found, options & preceding ? -distance : distance);
}

/* Finds out what the frame allows. */
static void
look_at_frame(Needs *needs)
{
	const GpuSortWindow *window = needs->window;
	const int options = window->frame_options;

	if (options & FRAMEOPTION_EXCLUSION)
		return;
	needs->running_frame = (options & RUNNING_FRAME) == RUNNING_FRAME;
	needs->near_frame = (options & FRAMEOPTION_ROWS) &&
		note_bound(needs, FRAMEOPTION_START_CURRENT_ROW, FRAMEOPTION_START_OFFSET_PRECEDING,
				   FRAMEOPTION_START_OFFSET_FOLLOWING, window->start_offset) &&
		note_bound(needs, FRAMEOPTION_END_CURRENT_ROW, FRAMEOPTION_END_OFFSET_PRECEDING,
				   FRAMEOPTION_END_OFFSET_FOLLOWING, window->end_offset);
	if (!needs->near_frame)
		needs->found.use.before = needs->found.use.after = 0;
}

/* lag and lead look so many rows back, or ahead, whatever the frame. */
static bool
reaches_near(Needs *needs, const WindowFunc *function, int direction)
{
	int64 distance = 1;

	if (list_length(function->args) > 1 && !is_constant(lsecond(function->args), &distance))
		return false;
	return distance > -PG_INT32_MAX && note_near(&needs->found, direction * distance);
}

/* ntile() of a number that it takes */
static bool
is_tile(const WindowFunc *function)
{
	int64 tiles;

	return is_constant(linitial(function->args), &tiles) && tiles > 0;
}

/* An aggregate, or what it is not known to be. */
static void
note_aggregate(Needs *needs, const WindowFunc *function)
{
	const bool known = function->winagg && gpusort_aggregate_is_of_any_order(function->winfnoid);

	needs->running &= known && needs->running_frame;
	needs->near &= known && needs->near_frame;
	if (!known)
		return;
	needs->found.only_numbers = false;
	needs->found.use.totals |= function->winfnoid != F_COUNT_ || function->aggfilter != NULL;
	if (get_typbyval(function->wintype))
		needs->found.values++;
	else
		needs->found.states++;
}

static void
note_function(Needs *needs, const WindowFunc *function)
{
	GpuSortWindowNeeds *found = &needs->found;

	if (contain_volatile_functions((Node *) function->args) || contain_volatile_functions((Node *) function->aggfilter) ||
		WINDOW_FUNC_TREATS_NULLS(function))
	{
		needs->running = needs->near = false;
		return;
	}
	switch (function->winfnoid)
	{
		case F_ROW_NUMBER:
		case F_RANK_:
			needs->near = false;
			break;
		case F_DENSE_RANK_:
			needs->near = false;
			found->use.totals = true;
			break;
		case F_PERCENT_RANK_:
		case F_CUME_DIST_:
			found->use.rows = true;
			found->only_numbers = false;
			needs->near = false;
			break;
		case F_NTILE:
			found->use.rows = true;
			found->only_numbers = false;
			needs->running &= is_tile(function);
			needs->near = false;
			break;
		case F_FIRST_VALUE:
		case F_LAST_VALUE:
			found->use.totals |= function->winfnoid == F_FIRST_VALUE;
			found->only_numbers = false;
			found->values++;
			needs->running &= needs->running_frame;
			needs->near &= needs->near_frame;
			break;
		case F_NTH_VALUE:
			needs->running = false;
			needs->near &= needs->near_frame;
			break;
		case F_LAG_ANYELEMENT:
		case F_LAG_ANYELEMENT_INT4:
		case F_LAG_ANYCOMPATIBLE_INT4_ANYCOMPATIBLE:
			needs->running = false;
			needs->near &= reaches_near(needs, function, -1);
			break;
		case F_LEAD_ANYELEMENT:
		case F_LEAD_ANYELEMENT_INT4:
		case F_LEAD_ANYCOMPATIBLE_INT4_ANYCOMPATIBLE:
			needs->running = false;
			needs->near &= reaches_near(needs, function, 1);
			break;
		default:
			note_aggregate(needs, function);
			break;
	}
}

static bool
find_functions(Node *node, void *arg)
{
	Needs *needs = arg;

	if (node == NULL)
		return false;
	if (IsA(node, WindowFunc))
	{
		/* those of another window have been computed below */
		if (((const WindowFunc *) node)->winref == needs->window->winref)
		{
			const bool running = needs->running;
			const bool near = needs->near;

			needs->running = needs->near = true;
			note_function(needs, (const WindowFunc *) node);
			if (!needs->running && !needs->near && !OidIsValid(needs->found.whole))
				needs->found.whole = ((const WindowFunc *) node)->winfnoid;
			needs->running &= running;
			needs->near &= near;
		}
		return false;
	}
	return expression_tree_walker(node, find_functions, arg);
}

/* Says what a window needs. */
GpuSortWindowNeeds
gpusort_window_needs(const GpuSortWindow *window)
{
	Needs needs = {.window = window, .running = true, .near = true, .found.only_numbers = true};
	GpuSortUse found;

	look_at_frame(&needs);
	(void) find_functions((Node *) window->columns, &needs);
	/* All rows of a partition are peers where there is no order: PostgreSQL's node may as well keep them for a frame. */
	if (window->order_columns == 0 && !(window->frame_options & FRAMEOPTION_ROWS))
		needs.running &= needs.found.only_numbers;
	/* How many rows a partition has is known of all rows alone. */
	needs.running &= !needs.found.use.rows || window->partition_columns == 0;
	/* PostgreSQL's node checks where a frame begins and ends, though it may make no difference. */
	if (window->start_offset != NULL || window->end_offset != NULL)
	{
		needs.running = false;
		needs.near &= needs.near_frame;
	}
	if (window->leaves_out)
		needs.running = needs.near = false;
	if (window->stops_at != NIL)
	{
		/* No function of a row that PostgreSQL's node does not come to may fail. */
		needs.running &= needs.found.only_numbers && window->partition_columns > 0;
		needs.near = false;
	}
	needs.found.only_numbers &= needs.running;
	found = needs.found.use;
	if (needs.running)
		needs.found.use = (GpuSortUse){.kind = GPUSORT_USE_RUNNING, .rows = found.rows, .totals = found.totals};
	else if (needs.near)
		needs.found.use = (GpuSortUse){.kind = GPUSORT_USE_NEAR, .before = found.before, .after = found.after};
	else
		needs.found.use = (GpuSortUse){.kind = GPUSORT_USE_NONE};
	return needs.found;
}

/* A finished plan's window. */
static GpuSortWindow
plan_window(const WindowAgg *plan)
{
	return (GpuSortWindow){
		.columns = plan->plan.targetlist,
		.winref = plan->winref,
		.partition_columns = plan->partNumCols,
		.order_columns = plan->ordNumCols,
		.frame_options = plan->frameOptions,
		.start_offset = plan->startOffset,
		.end_offset = plan->endOffset,
		/* One that is not at the top gives out all rows, for those above, but not all values. */
		.leaves_out = plan->plan.qual != NIL || (plan->runCondition != NIL && !plan->topWindow),
		.stops_at = plan->topWindow ? plan->runConditionOrig : NIL,
	};
}

/* Says what a finished plan's window needs. */
GpuSortWindowNeeds
gpusort_window_plan_needs(const WindowAgg *plan)
{
	const GpuSortWindow window = plan_window(plan);

	return gpusort_window_needs(&window);
}

/* The walker: finds a function of the window that looks at more than the rows before a row, and its peers. */
static bool
looks_ahead(Node *node, void *arg)
{
	const GpuSortWindow *window = arg;

	if (node == NULL)
		return false;
	if (IsA(node, WindowFunc))
	{
		const WindowFunc *function = (const WindowFunc *) node;

		return function->winref == window->winref && function->winfnoid != F_ROW_NUMBER &&
			function->winfnoid != F_RANK_ && function->winfnoid != F_DENSE_RANK_;
	}
	return expression_tree_walker(node, looks_ahead, arg);
}

/* Returns true if the value of an expression, an integer, is the same as long as a statement runs. */
static bool
is_bound(const Node *node)
{
	const Oid type = exprType(node);

	return (IsA(node, Const) || (IsA(node, Param) && ((const Param *) node)->paramkind == PARAM_EXTERN)) &&
		(type == INT2OID || type == INT4OID || type == INT8OID);
}

/* Returns true if a condition is that a window's function is no more than a bound; *kept becomes that. */
static bool
read_condition(const GpuSortWindow *window, const Node *condition, GpuSortKeptRows *kept)
{
	const OpExpr *clause = (const OpExpr *) condition;
	const WindowFunc *function;
	Node *bound;
	int strategy;

	if (!IsA(condition, OpExpr) || list_length(clause->args) != 2)
		return false;
	strategy = get_op_opfamily_strategy(clause->opno, INTEGER_BTREE_FAM_OID);
	function = linitial(clause->args);
	bound = lsecond(clause->args);
	if (!IsA(function, WindowFunc))
	{
		bound = linitial(clause->args);
		function = lsecond(clause->args);
		strategy = strategy == 0 ? 0 : BTGreaterStrategyNumber + BTLessStrategyNumber - strategy;
	}
	if (!IsA(function, WindowFunc) || function->winref != window->winref || !is_bound(bound))
		return false;
	if (strategy != BTLessStrategyNumber && strategy != BTLessEqualStrategyNumber && strategy != BTEqualStrategyNumber)
		return false;
	*kept = (GpuSortKeptRows){
		.bound = bound,
		.less = strategy == BTLessStrategyNumber,
		.peers = function->winfnoid != F_ROW_NUMBER,
		.only_one = function->winfnoid == F_DENSE_RANK_,
	};
	return true;
}

/*
 * Returns true if a window stops in each partition, and needs no rows of it but first ones, which *kept becomes, but
 * for the columns.  At row_number() <= n it needs n rows, at rank() <= n those and the peers of the last of them.  So
 * it does at dense_rank() <= n if n is 1.
 */
bool
gpusort_window_keeps(const GpuSortWindow *window, GpuSortKeptRows *kept)
{
	ListCell *cell;

	if (looks_ahead((Node *) window->columns, (void *) window))
		return false;
	foreach(cell, window->stops_at)
	{
		if (read_condition(window, lfirst(cell), kept))
			return true;
	}
	return false;
}

/* The same for a finished plan's window. */
bool
gpusort_window_plan_keeps(const WindowAgg *plan, GpuSortKeptRows *kept)
{
	const GpuSortWindow window = plan_window(plan);

	return gpusort_window_keeps(&window, kept);
}
