/*-------------------------------------------------------------------------
 *
 * parallel_safety.c
 *	  Whether what nodes of a finished plan compute may be computed in parallel workers.
 *
 * The rules are max_parallel_hazard's (optimizer/util/clauses.c), which is for queries and paths,
 * with two differences.  Window functions are safe here, for the workers together have just one
 * order of the rows; and so is GROUPING(), for its node is not split.  A parameter is safe if an
 * initPlan sets it: Gather has its value computed before workers start.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/finish/parallel_safety.h"

#include "catalog/pg_proc.h"
#include "nodes/nodeFuncs.h"
#include "plan/finish/plan_tree.h"
#include "plan/node_kinds.h"
#include "utils/lsyscache.h"

/* One expression that is walked. */
typedef struct Walk
{
	GpuSortSafety *safety;
	Bitmapset *own_params; /* of the subplan whose test is walked */
} Walk;

static void
add_initplan_params(Plan **link, void *arg)
{
	GpuSortSafety *safety = arg;
	ListCell *cell;
	ListCell *param;

	foreach(cell, (*link)->initPlan)
	{
		const SubPlan *initplan = lfirst_node(SubPlan, cell);

		if (initplan->subLinkType == CTE_SUBLINK)
			continue; /* what that sets is no value */
		foreach(param, initplan->setParam)
			safety->initplan_params = bms_add_member(safety->initplan_params, lfirst_int(param));
	}
	gpusort_plan_each_child(*link, add_initplan_params, safety);
}

/* Begins to look at nodes of a statement. */
void
gpusort_safety_init(GpuSortSafety *safety, PlannedStmt *stmt)
{
	*safety = (GpuSortSafety){.stmt = stmt};
	gpusort_plan_each_of_statement(stmt, add_initplan_params, safety);
}

static bool
is_unsafe_function(Oid function, void *context)
{
	Walk *walk = context;

	if (func_parallel(function) == PROPARALLEL_SAFE)
		return false;
	walk->safety->why_not = psprintf("%s() is not parallel safe", get_func_name(function));
	return true;
}

/* Notes that these parameters are read; returns true if one of them is not known to workers. */
static bool
reads_unknown_params(Walk *walk, const Bitmapset *params)
{
	GpuSortSafety *safety = walk->safety;
	Bitmapset *others = bms_difference(params, walk->own_params);

	if (!bms_is_subset(others, safety->initplan_params))
	{
		safety->why_not = "it depends on a value from outside of it";
		return true;
	}
	safety->used_params = bms_add_members(safety->used_params, others);
	return false;
}

static bool is_unsafe(Node *node, void *context);

/* The parameters that a subplan gets from elsewhere than its caller. */
static Bitmapset *
outside_params(const SubPlan *subplan, const Plan *plan)
{
	Bitmapset *params = bms_copy(plan->extParam);
	ListCell *cell;

	foreach(cell, subplan->parParam)
		params = bms_del_member(params, lfirst_int(cell));
	foreach(cell, subplan->setParam)
		params = bms_del_member(params, lfirst_int(cell));
	return params;
}

static bool
is_unsafe_subplan(Walk *walk, const SubPlan *subplan)
{
	const Plan *plan = list_nth(walk->safety->stmt->subplans, subplan->plan_id - 1);
	Walk test = *walk;
	ListCell *cell;

	if (!subplan->parallel_safe || plan == NULL || !plan->parallel_safe)
	{
		walk->safety->why_not = "a subquery in it is not parallel safe";
		return true;
	}
	if (reads_unknown_params(walk, outside_params(subplan, plan)))
		return true;
	test.own_params = bms_copy(walk->own_params);
	foreach(cell, subplan->paramIds)
		test.own_params = bms_add_member(test.own_params, lfirst_int(cell));
	return is_unsafe(subplan->testexpr, &test) || is_unsafe((Node *) subplan->args, walk);
}

/* The walker: returns true if there is something in the expression that workers may not do. */
static bool
is_unsafe(Node *node, void *context)
{
	Walk *walk = context;

	if (node == NULL)
		return false;
	if (check_functions_in_node(node, is_unsafe_function, walk))
		return true;
	switch (nodeTag(node))
	{
		case T_SubPlan:
			return is_unsafe_subplan(walk, (SubPlan *) node);
		case T_Param:
			if (((Param *) node)->paramkind == PARAM_EXTERN)
				return false;
			if (((Param *) node)->paramkind == PARAM_EXEC)
				return reads_unknown_params(walk, bms_make_singleton(((Param *) node)->paramid));
			walk->safety->why_not = "it depends on a value from outside of it";
			return true;
		case T_CoerceToDomain:
			walk->safety->why_not = "a domain's constraints are not known to be parallel safe";
			return true;
		case T_NextValueExpr:
		case T_CurrentOfExpr:
		case T_SubLink:
		case T_AlternativeSubPlan:
			walk->safety->why_not = "an expression in it is not parallel safe";
			return true;
		default:
			return expression_tree_walker(node, is_unsafe, walk);
	}
}

/*
 * Returns true if a node itself may run in workers, whatever is below it: one of those that node_kinds.c knows.  Its
 * parameters are added to used_params.  Else why_not says why, as the rest of a sentence.
 */
bool
gpusort_safety_of_node(GpuSortSafety *safety, const Plan *plan)
{
	const GpuSortNodeRow *row = gpusort_node_row(plan);
	Walk walk = {.safety = safety};
	GpuSortComputed computed = {0};
	ListCell *cell;

	if (row != NULL && row->computed != NULL)
		row->computed(plan, &computed);
	if (is_unsafe((Node *) plan->targetlist, &walk) || is_unsafe((Node *) plan->qual, &walk) ||
		is_unsafe((Node *) computed.expressions, &walk))
		return false;
	foreach(cell, computed.functions)
	{
		if (is_unsafe_function(lfirst_oid(cell), &walk))
			return false;
	}
	return true;
}
