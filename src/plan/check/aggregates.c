/*-------------------------------------------------------------------------
 *
 * aggregates.c
 *	  Rules of finished plans: calls of aggregates and of window functions.
 *
 * The executor keeps an Agg's aggregates and their transition states in two arrays, as long as the highest aggno and
 * aggtransno say.  A place that no call has is never filled in.  One that two calls have is filled in from one of them.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/check/rules.h"

#include "access/htup_details.h"
#include "catalog/pg_aggregate.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "plan/check/expressions.h"
#include "utils/syscache.h"

/* The calls of one node. */
typedef struct Calls
{
	const Plan *plan;
	List *aggregates; /* Aggrefs */
} Calls;

static bool
find_calls(Node *node, void *arg)
{
	Calls *calls = arg;

	if (node == NULL)
		return false;
	if (IsA(node, Aggref))
	{
		if (!IsA(calls->plan, Agg))
			gpusort_refuse_plan(calls->plan, "calls an aggregate, and is no Agg");
		calls->aggregates = lappend(calls->aggregates, node);
	}
	else if (IsA(node, GroupingFunc) && !IsA(calls->plan, Agg))
		gpusort_refuse_plan(calls->plan, "calls GROUPING(), and is no Agg");
	else if (IsA(node, WindowFunc))
	{
		if (!IsA(calls->plan, WindowAgg))
			gpusort_refuse_plan(calls->plan, "calls a window function, and is no WindowAgg");
		if (((const WindowFunc *) node)->winref != ((const WindowAgg *) calls->plan)->winref)
			gpusort_refuse_plan(calls->plan, "is of window %u, and calls a function of window %u",
								((const WindowAgg *) calls->plan)->winref, ((const WindowFunc *) node)->winref);
	}
	return expression_tree_walker(node, find_calls, arg);
}

static void
find_calls_in(const GpuSortPlanExpression *expression, void *arg)
{
	if (expression->columns != GPUSORT_OF_ANY)
		(void) find_calls(expression->node, arg);
}

/* The call without its place in the arrays. */
static Aggref *
without_numbers(const Aggref *call)
{
	Aggref *copy = makeNode(Aggref);

	*copy = *call;
	copy->aggno = copy->aggtransno = 0;
	copy->location = -1;
	return copy;
}

/*
 * Returns true if both calls take the same rows, in the same order, into the same kind of state.  What calls of an Agg
 * that puts states together take is not compared: PostgreSQL passes a shared state up once for each of them.
 */
static bool
have_same_state(const Aggref *a, const Aggref *b)
{
	HeapTuple rows[2] = {
		SearchSysCache1(AGGFNOID, ObjectIdGetDatum(a->aggfnoid)),
		SearchSysCache1(AGGFNOID, ObjectIdGetDatum(b->aggfnoid)),
	};
	bool same = HeapTupleIsValid(rows[0]) && HeapTupleIsValid(rows[1]) &&
		((Form_pg_aggregate) GETSTRUCT(rows[0]))->aggtransfn == ((Form_pg_aggregate) GETSTRUCT(rows[1]))->aggtransfn;

	for (int i = 0; i < lengthof(rows); i++)
	{
		if (HeapTupleIsValid(rows[i]))
			ReleaseSysCache(rows[i]);
	}
	if (!DO_AGGSPLIT_COMBINE(a->aggsplit))
		same = same && equal(a->args, b->args);
	return same && a->aggtranstype == b->aggtranstype && a->inputcollid == b->inputcollid &&
		a->aggstar == b->aggstar && a->aggvariadic == b->aggvariadic && a->aggkind == b->aggkind &&
		equal(a->aggorder, b->aggorder) && equal(a->aggdistinct, b->aggdistinct) && equal(a->aggfilter, b->aggfilter);
}

static void
check_pair(const Plan *plan, const Aggref *a, const Aggref *b)
{
	bool alike = equal(without_numbers(a), without_numbers(b));

	if (a->aggno == b->aggno && !alike)
		gpusort_refuse_plan(plan, "has unequal aggregates of number %d", a->aggno);
	if (a->aggno == b->aggno && a->aggtransno != b->aggtransno)
		gpusort_refuse_plan(plan, "has two transition states, %d and %d, of aggregate %d", a->aggtransno,
							b->aggtransno, a->aggno);
	if (a->aggno != b->aggno && alike && !contain_volatile_functions((Node *) a))
		gpusort_refuse_plan(plan, "has equal aggregates of numbers %d and %d", a->aggno, b->aggno);
	if (a->aggtransno == b->aggtransno && !have_same_state(a, b))
		gpusort_refuse_plan(plan, "has unlike transition states of number %d", a->aggtransno);
}

/* The calls have each number from 0 to the highest. */
static void
check_numbers(Calls *calls)
{
	Bitmapset *numbers = NULL;
	Bitmapset *states = NULL;
	ListCell *cell;

	foreach(cell, calls->aggregates)
	{
		const Aggref *call = lfirst_node(Aggref, cell);

		if (call->aggno < 0 || call->aggtransno < 0)
			gpusort_refuse_plan(calls->plan, "has an aggregate without a number");
		if (call->aggsplit != ((const Agg *) calls->plan)->aggsplit)
			gpusort_refuse_plan(calls->plan, "is of another part of its aggregates than one of them");
		numbers = bms_add_member(numbers, call->aggno);
		states = bms_add_member(states, call->aggtransno);
	}
	for (int i = 0; i < bms_num_members(numbers); i++)
	{
		if (!bms_is_member(i, numbers))
			gpusort_refuse_plan(calls->plan, "has no aggregate of number %d", i);
	}
	for (int i = 0; i < bms_num_members(states); i++)
	{
		if (!bms_is_member(i, states))
			gpusort_refuse_plan(calls->plan, "has no transition state of number %d", i);
	}
}

/* Raises an error where calls of aggregates and window functions in a node are not as the executor wants them. */
void
gpusort_check_calls(Plan *plan)
{
	Calls calls = {.plan = plan};
	ListCell *cell;
	ListCell *other;

	gpusort_plan_each_expression(plan, find_calls_in, &calls);
	if (calls.aggregates == NIL)
		return;
	check_numbers(&calls);
	foreach(cell, calls.aggregates)
	{
		for_each_cell(other, calls.aggregates, lnext(calls.aggregates, cell))
			check_pair(plan, lfirst_node(Aggref, cell), lfirst_node(Aggref, other));
	}
}
