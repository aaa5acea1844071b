/*-------------------------------------------------------------------------
 *
 * parallel_safety.c
 *	  Whether parallel workers may compute an expression.
 *
 * The rules are those of max_parallel_hazard (optimizer/util/clauses.c), with two differences.
 *
 *	  - A window function is safe.  PostgreSQL takes it for restricted, because each worker may see equal rows in an
 *		order of its own.  Where gpusort runs windows in workers, all of them read one sort.
 *	  - A parameter is safe if an initPlan anywhere in the statement sets it.  Gather computes its value before workers
 *		start.
 *
 * The same rules hold for a path's expressions and for those of its plan.  So what is planned for several processes
 * runs in several.
 *
 *-------------------------------------------------------------------------
 */
#include "facts/parallel_safety.h"

#include "catalog/pg_proc.h"
#include "nodes/nodeFuncs.h"
#include "nodes/plannodes.h"
#include "utils/lsyscache.h"

/* One expression that is walked. */
typedef struct Walk
{
	GpuSortSafety *safety;
	Bitmapset *own_params; /* that stand for the output columns of the SubPlan whose test is walked */
} Walk;

static bool
is_unsafe_function(Oid function, void *context)
{
	if (func_parallel(function) == PROPARALLEL_SAFE)
		return false;
	((Walk *) context)->safety->why_not = psprintf("%s() is not parallel safe", get_func_name(function));
	return true;
}

/* Notes that these parameters are read; returns true if workers do not know one of them. */
static bool
reads_unknown_params(Walk *walk, const Bitmapset *params)
{
	GpuSortSafety *safety = walk->safety;
	Bitmapset *others = bms_difference(params, walk->own_params);

	if (!bms_is_subset(others, safety->known_params))
	{
		safety->why_not = "it depends on a value from outside the parallel plan";
		return true;
	}
	safety->used_params = bms_add_members(safety->used_params, others);
	return false;
}

static bool is_unsafe(Node *node, void *context);

/* The parameters that a finished subplan gets from elsewhere than its caller. */
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
	const List *subplans = walk->safety->subplans;
	const Plan *plan = subplans != NIL ? list_nth(subplans, subplan->plan_id - 1) : NULL;
	Walk test = *walk;
	ListCell *cell;

	if (!subplan->parallel_safe || (subplans != NIL && (plan == NULL || !plan->parallel_safe)))
	{
		walk->safety->why_not = "a subquery in it is not parallel safe";
		return true;
	}
	if (plan != NULL && reads_unknown_params(walk, outside_params(subplan, plan)))
		return true;
	test.own_params = bms_copy(walk->own_params);
	foreach(cell, subplan->paramIds)
		test.own_params = bms_add_member(test.own_params, lfirst_int(cell));
	return is_unsafe(subplan->testexpr, &test) || is_unsafe((Node *) subplan->args, walk);
}

/* The walker: returns true if the expression has something that workers may not do. */
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
		case T_RestrictInfo:
			return is_unsafe((Node *) ((RestrictInfo *) node)->clause, walk);
		case T_SubPlan:
			return is_unsafe_subplan(walk, (SubPlan *) node);
		case T_Param:
			if (((Param *) node)->paramkind == PARAM_EXTERN)
				return false;
			if (((Param *) node)->paramkind == PARAM_EXEC)
				return reads_unknown_params(walk, bms_make_singleton(((Param *) node)->paramid));
			walk->safety->why_not = "it depends on a value from outside the parallel plan";
			return true;
		case T_CoerceToDomain:
			walk->safety->why_not = "a domain's constraints are not known to be parallel safe";
			return true;
		case T_NextValueExpr:
		case T_CurrentOfExpr:
		case T_SubLink:
			walk->safety->why_not = "an expression in it is not parallel safe";
			return true;
		default:
			return expression_tree_walker(node, is_unsafe, walk);
	}
}

/*
 * Returns true if workers may compute an expression, or a list of them.  Its initPlans' parameters are added to
 * used_params.  Otherwise why_not says why, as the rest of a sentence.
 */
bool
gpusort_safety_of_expression(GpuSortSafety *safety, Node *expression)
{
	Walk walk = {.safety = safety};

	return !is_unsafe(expression, &walk);
}

/* Returns why workers may not compute an expression of a query that is being planned; NULL: they may. */
const char *
gpusort_expression_hazard(PlannerInfo *root, Node *expression)
{
	GpuSortSafety safety = {0};
	ListCell *cell;
	ListCell *param;

	if (root->glob->maxParallelHazard == PROPARALLEL_SAFE && root->glob->paramExecTypes == NIL)
		return NULL;
	for (const PlannerInfo *query = root; query != NULL; query = query->parent_root)
	{
		foreach(cell, query->init_plans)
		{
			foreach(param, lfirst_node(SubPlan, cell)->setParam)
				safety.known_params = bms_add_member(safety.known_params, lfirst_int(param));
		}
	}
	return gpusort_safety_of_expression(&safety, expression) ? NULL : safety.why_not;
}

bool
gpusort_expression_is_safe(PlannerInfo *root, Node *expression)
{
	return gpusort_expression_hazard(root, expression) == NULL;
}
