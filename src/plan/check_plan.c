/*-------------------------------------------------------------------------
 *
 * check_plan.c
 *	  Refuses finished plans that break the executor's rules.
 *
 * Offers and the passes of plan/finish change paths and plans that PostgreSQL has made.  The executor believes a plan:
 * where one breaks its rules, the answer is wrong or the server goes down.  So a build with assertions checks each plan
 * when it is finished.  PostgreSQL's own plans are checked, too, for they prove the rules.
 *
 * The rules, of which each has a file in check/:
 *
 *	  - Numbers of plan nodes are unique, and SubPlans name plans that are there.
 *	  - Vars name columns that are there, of the same type; nodes that pass rows on have the columns of
 *		these (vars.c).
 *	  - Columns that rows are sorted, grouped and compared by are there, of the operators' types (key_columns.c).
 *	  - Aggregates and their states are numbered from 0 without a gap, equal ones alike and others not; calls of window
 *		functions are of their node's window (aggregates.c).
 *	  - A GpuSort says of the node right above it what that makes of the order (uses.c).
 *	  - Parameters that are read are set, and extParam and allParam are what finalize_plan makes of them (params.c).
 *	  - Workers run what they may, and no Gather (workers.c).
 *
 *-------------------------------------------------------------------------
 */
#include "plan/check_plan.h"

#include "nodes/bitmapset.h"
#include "nodes/nodeFuncs.h"
#include "plan/check/expressions.h"
#include "plan/check/rules.h"
#include "plan/finish/plan_tree.h"

/* A statement that is checked. */
typedef struct Check
{
	PlannedStmt *stmt;
	Plan *plan;            /* the one that is looked at */
	Bitmapset *node_ids;   /* of the plans that were looked at */
	Bitmapset *init_plans; /* likewise, by plan_id */
} Check;

static void
check_subplan(const Check *check, const SubPlan *subplan)
{
	if (subplan->plan_id < 1 || subplan->plan_id > list_length(check->stmt->subplans) ||
		list_nth(check->stmt->subplans, subplan->plan_id - 1) == NULL)
		gpusort_refuse_plan(check->plan, "has subplan %d, which is not there", subplan->plan_id);
	if (list_length(subplan->parParam) != list_length(subplan->args))
		gpusort_refuse_plan(check->plan, "has subplan %d with %d parameters and %d values for them", subplan->plan_id,
							list_length(subplan->parParam), list_length(subplan->args));
}

/* The walker: looks at the SubPlans of an expression. */
static bool
find_subplans(Node *node, void *arg)
{
	if (node == NULL)
		return false;
	if (IsA(node, SubPlan))
		check_subplan(arg, (const SubPlan *) node);
	return expression_tree_walker(node, find_subplans, arg);
}

static void
find_subplans_in(const GpuSortPlanExpression *expression, void *arg)
{
	(void) find_subplans(expression->node, arg);
}

/* Looks at what names a plan or a node by its number; the other rules follow these numbers. */
static void
check_ids(Plan **link, void *arg)
{
	Check *check = arg;
	Plan *plan = check->plan = *link;
	ListCell *cell;

	if (plan->plan_node_id < 0 || bms_is_member(plan->plan_node_id, check->node_ids))
		gpusort_refuse_plan(plan, "has no number of its own");
	check->node_ids = bms_add_member(check->node_ids, plan->plan_node_id);
	foreach(cell, plan->initPlan)
	{
		const SubPlan *subplan = lfirst_node(SubPlan, cell);

		check_subplan(check, subplan);
		if (bms_is_member(subplan->plan_id, check->init_plans))
			gpusort_refuse_plan(plan, "has initPlan %d, which another node has", subplan->plan_id);
		check->init_plans = bms_add_member(check->init_plans, subplan->plan_id);
	}
	gpusort_plan_each_expression(plan, find_subplans_in, check);
	if (IsA(plan, CteScan))
	{
		const SubPlan subplan = {.plan_id = ((const CteScan *) plan)->ctePlanId};

		check_subplan(check, &subplan);
	}
	gpusort_plan_each_child(plan, check_ids, check);
}

static void
check_node(Plan **link, void *arg)
{
	PlannedStmt *stmt = arg;
	Plan *plan = *link;

	gpusort_check_passed_rows(plan);
	gpusort_check_vars(stmt, plan);
	gpusort_check_key_columns(plan);
	gpusort_check_calls(plan);
	gpusort_check_use(plan);
	gpusort_plan_each_child(plan, check_node, stmt);
}

/* Raises an error if the executor cannot run the plans of a statement. */
void
gpusort_check_plan(PlannedStmt *stmt)
{
	Check check = {.stmt = stmt};

	gpusort_plan_each_of_statement(stmt, check_ids, &check);
	gpusort_plan_each_of_statement(stmt, check_node, stmt);
	gpusort_check_params(stmt);
	gpusort_check_workers(stmt);
}
