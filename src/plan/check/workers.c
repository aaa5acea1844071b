/*-------------------------------------------------------------------------
 *
 * workers.c
 *	  Rules of finished plans: what runs in parallel workers may run there.
 *
 * The rules on expressions are max_parallel_hazard's (optimizer/util/clauses.c), for a finished plan.  Window functions
 * may run below GpuSortOutput, for all processes together have one order of the rows.  A parameter is known to a worker
 * if a node in the worker sets it, or Gather sends it: that is the Gather's initParam.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/check/rules.h"

#include "catalog/pg_proc_d.h"
#include "node.h"
#include "nodes/nodeFuncs.h"
#include "plan/check/expressions.h"
#include "plan/finish/plan_tree.h"
#include "utils/lsyscache.h"

/* Where in a statement's plans we are. */
typedef struct WorkerPlace
{
	PlannedStmt *stmt;
	const Plan *plan;
	const Plan *gather;   /* the one above; NULL: none */
	Bitmapset *sent;      /* parameters that initPlans above set, and which can be sent so */
	int recheck_param;    /* of a ModifyTable above, which rechecks alone set; -1: none */
	bool whole;           /* one of them has all rows of it: below GpuSortOutput, or a side of a Parallel Append */
	bool in_subquery;     /* in the plan of an expression, which runs in one process */
	Bitmapset **subplans; /* that were looked at as workers' */
} WorkerPlace;

static void check_plan(Plan **link, void *arg);

static bool
find_hazard_of_function(Oid function, void *arg)
{
	const WorkerPlace *place = arg;

	if (func_parallel(function) != PROPARALLEL_SAFE)
		gpusort_refuse_plan(place->plan, "runs in workers, and %s() must not", get_func_name(function));
	return false;
}

/* The plan of an expression in workers is one of theirs. */
static void
check_subplan(const WorkerPlace *place, const SubPlan *subplan)
{
	Plan *plan = list_nth(place->stmt->subplans, subplan->plan_id - 1);
	WorkerPlace inside = *place;

	if (!subplan->parallel_safe || !plan->parallel_safe)
		gpusort_refuse_plan(place->plan, "runs in workers, and its subplan %d must not", subplan->plan_id);
	if (bms_is_member(subplan->plan_id, *place->subplans))
		return;
	*place->subplans = bms_add_member(*place->subplans, subplan->plan_id);
	inside.in_subquery = true;
	check_plan(&plan, &inside);
}

/* The walker: raises an error where an expression may not be computed in workers. */
static bool
find_hazard(Node *node, void *arg)
{
	const WorkerPlace *place = arg;

	if (node == NULL)
		return false;
	(void) check_functions_in_node(node, find_hazard_of_function, arg);
	if (IsA(node, CoerceToDomain) || IsA(node, NextValueExpr))
		gpusort_refuse_plan(place->plan, "runs in workers, and %s must not",
							IsA(node, CoerceToDomain) ? "a domain's check" : "nextval()");
	if (IsA(node, WindowFunc) && !place->whole)
		gpusort_refuse_plan(place->plan, "runs in workers, each of which has an order of its own, and has windows");
	if (IsA(node, SubPlan))
		check_subplan(place, (const SubPlan *) node);
	return expression_tree_walker(node, find_hazard, arg);
}

static void
find_hazard_in(const GpuSortPlanExpression *expression, void *arg)
{
	(void) find_hazard(expression->node, arg);
}

static void
check_worker(WorkerPlace *place)
{
	const Plan *plan = place->plan;

	if (!plan->parallel_safe)
		gpusort_refuse_plan(plan, "runs in workers, and is not parallel-safe");
	switch (nodeTag(plan))
	{
		case T_Gather:
		case T_GatherMerge:
			gpusort_refuse_plan(plan, "is below a Gather, and is one");
			break;
		case T_ModifyTable:
		case T_LockRows:
		case T_CteScan:
		case T_WorkTableScan:
		case T_NamedTuplestoreScan:
			gpusort_refuse_plan(plan, "is below a Gather, and no node for workers");
			break;
		default:
			break;
	}
	if (gpusort_plan_is(plan, &gpusort_exchange_scan_methods))
		gpusort_refuse_plan(plan, "is below a Gather, and reads one");
	if (gpusort_plan_is(plan, &gpusort_output_scan_methods))
		place->whole = true;
	gpusort_plan_each_expression(plan, find_hazard_in, place);
}

/* What the workers of a Gather read from outside of it is sent to them, and there to be sent. */
static void
check_gather(const WorkerPlace *place, const Bitmapset *sent, int rescan_param)
{
	const Plan *plan = place->plan;
	Bitmapset *others = bms_difference(outerPlan(plan)->extParam, sent);

	if (rescan_param >= 0)
		others = bms_del_member(others, rescan_param);
	if (place->recheck_param >= 0)
		others = bms_del_member(others, place->recheck_param);
	if (!bms_is_empty(others))
		gpusort_refuse_plan(plan, "does not send parameter %d, which its workers read", bms_next_member(others, -1));
	others = bms_difference(sent, place->sent);
	if (!bms_is_empty(others))
		gpusort_refuse_plan(plan, "sends parameter %d, which no initPlan sets", bms_next_member(others, -1));
}

/* Returns true if one process alone runs a plan of a Parallel Append. */
static bool
is_of_one_process(const Append *append, const Plan *child)
{
	for (int i = 0; i < append->first_partial_plan; i++)
	{
		if (list_nth(append->appendplans, i) == child)
			return true;
	}
	return false;
}

static void
check_plan(Plan **link, void *arg)
{
	WorkerPlace place = *(WorkerPlace *) arg;
	ListCell *cell;
	ListCell *param;

	if (place.plan != NULL && IsA(place.plan, Append) && place.plan->parallel_aware &&
		is_of_one_process((const Append *) place.plan, *link))
		place.whole = true;
	place.plan = *link;
	foreach(cell, place.plan->initPlan)
	{
		const SubPlan *subplan = lfirst_node(SubPlan, cell);

		if (place.gather != NULL)
			check_subplan(&place, subplan);
		foreach(param, subplan->setParam)
			place.sent = bms_add_member(bms_copy(place.sent), lfirst_int(param));
	}
	if (place.gather != NULL)
		check_worker(&place);
	if (IsA(place.plan, ModifyTable))
		place.recheck_param = ((const ModifyTable *) place.plan)->epqParam;
	if (place.plan->parallel_aware && (place.gather == NULL || place.in_subquery))
		gpusort_refuse_plan(place.plan, "is parallel-aware, and in no Gather");
	if (IsA(place.plan, Gather))
		check_gather(&place, ((const Gather *) place.plan)->initParam, ((const Gather *) place.plan)->rescan_param);
	else if (IsA(place.plan, GatherMerge))
		check_gather(&place, ((const GatherMerge *) place.plan)->initParam,
					 ((const GatherMerge *) place.plan)->rescan_param);
	if (IsA(place.plan, Gather) || IsA(place.plan, GatherMerge))
		place.gather = place.plan;
	gpusort_plan_each_child(*link, check_plan, &place);
}

/* Raises an error where a plan of the statement runs in workers what must not run there. */
void
gpusort_check_workers(PlannedStmt *stmt)
{
	Bitmapset *subplans = NULL;
	WorkerPlace place = {.stmt = stmt, .recheck_param = -1, .subplans = &subplans};

	gpusort_plan_each_of_statement(stmt, check_plan, &place);
}
