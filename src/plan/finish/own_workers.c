/*-------------------------------------------------------------------------
 *
 * own_workers.c
 *	  GpuSorts and GpuSortExchanges that start workers themselves, where PostgreSQL runs a statement without.
 *
 * PostgreSQL runs a statement in parallel mode from its first row to its last, in which nothing may be written.  So it
 * has no workers for what is fetched from piece by piece (a cursor, a portal of which so many rows are asked for, a
 * loop of PL/pgSQL), as anything may be done between two fetches, and none for an INSERT.
 *
 * A GpuSort reads all of its input within one call:
 *
 *	  GpuSort				parallel mode is on from here, when the first row is asked for,
 *	    Gather				workers start, and end,
 *	      GpuSortIngest		and it is off again before that row is given out
 *	        partial plan
 *
 * So does a GpuSortExchange, which stores what all processes compute; or where an INSERT inserts its rows, has them put
 * these into pages of the table.
 *
 * No other Gather of the statement may start workers then, for they would stay.  So that is legal only where each
 * Gather is such a one.  Nor may the node read its input again, which has been shut down with the workers: it must
 * be executed once, so it is not below a nested loop's inner side, a recursion or another extension's node, nor in the
 * plan of an expression or a CTE.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/finish/own_workers.h"

#include "node.h"
#include "plan/finish/plan_tree.h"
#include "plan/finish/ranges.h"
#include "plan/model/constants.h"
#include "plan/model/native_time.h"
#include "plan/model/shape.h"
#include "settings.h"

/* The Gathers of a statement, and the GpuSorts that could have some. */
typedef struct GatherSearch
{
	const Plan *top; /* of the statement */
	int gathers;     /* all of them */
	List *sorts;     /* GpuSorts above them that are executed once */
	List *exchanges; /* likewise GpuSortExchanges */
	double alone;    /* ns that such GpuSorts without take rows in for, the longest */
} GatherSearch;

/* Where in the plans we are. */
typedef struct GatherPlace
{
	GatherSearch *found;
	const Plan *above; /* NULL: nothing */
	bool once;         /* it is executed once */
} GatherPlace;

/* Returns true if a plan executes one that it reads from once. */
static bool
executes_once(const Plan *plan, const Plan *child)
{
	switch (nodeTag(plan))
	{
		case T_NestLoop:
		case T_RecursiveUnion:
			return child == outerPlan(plan);
		case T_CustomScan:
			return gpusort_plan_is(plan, &gpusort_scan_methods) || gpusort_plan_is(plan, &gpusort_exchange_scan_methods);
		case T_ForeignScan:
			return false;
		default:
			return true;
	}
}

/* A GpuSortPlanCallback. */
static void
find(Plan **link, void *arg)
{
	const GatherPlace *place = arg;
	GatherSearch *found = place->found;
	Plan *plan = *link;
	GatherPlace below = {.found = found, .above = plan};

	below.once = place->above == NULL ? plan == found->top : place->once && executes_once(place->above, plan);
	if (IsA(plan, Gather) || IsA(plan, GatherMerge))
		found->gathers++;
	if (below.once && gpusort_is_gathered_sort(plan))
		found->sorts = lappend(found->sorts, plan);
	else if (below.once && gpusort_plan_is(plan, &gpusort_exchange_scan_methods))
		found->exchanges = lappend(found->exchanges, plan);
	else if (below.once && gpusort_plan_is(plan, &gpusort_scan_methods))
		found->alone =
			Max(found->alone,
				gpusort_cost_time(outerPlan(plan)->total_cost) +
					gpusort_constant(GPUSORT_TIME_INGEST_ROW, false) * outerPlan(plan)->plan_rows);
	gpusort_plan_each_child(plan, find, &below);
}

static GatherSearch
find_in(PlannedStmt *stmt)
{
	GatherSearch found = {.top = stmt->planTree};
	GatherPlace place = {.found = &found};

	gpusort_plan_each_of_statement(stmt, find, &place);
	return found;
}

/* Returns true if a statement is a GpuSortExchange that need not store its rows, as the leader has all of them. */
static bool
keeps_memory(const PlannedStmt *stmt)
{
	const Plan *top = stmt->planTree;

	return gpusort_plan_is(top, &gpusort_exchange_scan_methods) && stmt->subplans == NIL &&
		gpusort_output_plan_unpack((const CustomScan *) outerPlan(outerPlan(top))).only_formed;
}

/*
 * Tells the nodes of a statement, which was planned with own workers of a kind, that they may start workers, if that is
 * so; false: it is not, or there are none of that kind.  A plan for all rows at once, of which somebody fetches some,
 * has no kind: nobody has asked whether it is worth it that GpuSortExchanges store their rows.
 */
bool
gpusort_own_workers_settle(PlannedStmt *stmt, GpuSortOwnWorkers kind)
{
	const GatherSearch found = find_in(stmt);
	ListCell *cell;

	if (found.gathers == 0 || found.gathers != list_length(found.sorts) + list_length(found.exchanges) ||
		(kind == GPUSORT_NO_OWN_WORKERS && found.exchanges != NIL && !keeps_memory(stmt)) ||
		(kind == GPUSORT_OWN_WORKERS_COMPUTE && found.exchanges == NIL))
		return false;
	foreach(cell, found.sorts)
		gpusort_plan_set_starts_workers(lfirst_node(CustomScan, cell));
	foreach(cell, found.exchanges)
		gpusort_ranges_start_workers(lfirst_node(CustomScan, cell));
	return true;
}

/*
 * Returns true if a GpuSort takes so many rows in alone that a worker, which could have half of them, saves twice the
 * time of its start: of 200,000 rows, which it could have in 10 ms, it saved none.
 */
bool
gpusort_own_workers_would_help(PlannedStmt *stmt)
{
	const GatherSearch found = find_in(stmt);

	return found.alone > 0 && (gpusort_force || found.alone / 2 > 2 * gpusort_start_time(1));
}
