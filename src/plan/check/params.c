/*-------------------------------------------------------------------------
 *
 * params.c
 *	  Rules of finished plans: each parameter that is read is set, and each node tells which ones it depends on.
 *
 * extParam and allParam of each node are computed again as subselect.c's finalize_plan does it, and compared.  That ran
 * before setrefs.c, which leaves them as they are where it takes a SubqueryScan, an Append or a MergeAppend out of the
 * plan.  So here, unlike there:
 *
 *	  - What a child depends on is its extParam, not its allParam.  They are the same but for the plan of a subquery,
 *		which the SubqueryScan above it hides.
 *	  - The initPlans of a node that was taken out stand on the one below it, which does not tell them.
 *	  - Scans below a LockRows or a ModifyTable depend on its epqParam, but not through a SubqueryScan.  So of a scan it
 *		is believed.
 *	  - The parameters that a subquery with several columns sets in an UPDATE are not told at all: they were none yet.
 *	  - setrefs.c takes one of the SubPlans of an AlternativeSubPlan.  Nodes still tell what the other would read, which
 *		is set above them.  So does an Agg of its aggregates.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/check/rules.h"

#include "node.h"
#include "nodes/nodeFuncs.h"
#include "nodes/parsenodes.h"
#include "plan/check/expressions.h"
#include "plan/finish/plan_tree.h"

/* What is set for a node. */
typedef struct Known
{
	PlannedStmt *stmt;
	const Bitmapset *columns_set; /* by subqueries with several columns, anywhere in the statement */
	const Bitmapset *ctes;        /* set by CTEs, anywhere */
	Bitmapset *valid;             /* above */
	Bitmapset *rechecked;         /* epqParams of nodes above */
	int gather;                   /* the rescan_param of the Gather above; -1: there is none */
} Known;

/* What a node reads. */
typedef struct Read
{
	const Known *known;
	Bitmapset *noted;
	Bitmapset *others; /* that its extParam need not have */
	Bitmapset **into;  /* one of these */
} Read;

static const Plan *
plan_of(const Known *known, const SubPlan *subplan)
{
	return list_nth(known->stmt->subplans, subplan->plan_id - 1);
}

/* Returns set without the members that list has, and frees it. */
static Bitmapset *
without(Bitmapset *set, List *list)
{
	ListCell *cell;

	foreach(cell, list)
		set = bms_del_member(set, lfirst_int(cell));
	return set;
}

static Bitmapset *
with(Bitmapset *set, List *list)
{
	ListCell *cell;

	foreach(cell, list)
		set = bms_add_member(set, lfirst_int(cell));
	return set;
}

/* What a plan needs from outside of it; its own initPlans may be those of a node above that was taken out. */
static Bitmapset *
needed_by(const Plan *plan)
{
	Bitmapset *set = NULL;
	ListCell *cell;

	foreach(cell, plan->initPlan)
		set = with(set, lfirst_node(SubPlan, cell)->setParam);
	return bms_difference(plan->extParam, set);
}

/* The walker: adds what an expression reads, as finalize_primnode does. */
static bool
find_params(Node *node, void *arg)
{
	Read *read = arg;

	if (node == NULL)
		return false;
	if (IsA(node, Param))
	{
		const Param *param = (const Param *) node;

		if (param->paramkind == PARAM_EXEC && !bms_is_member(param->paramid, read->known->columns_set))
			*read->into = bms_add_member(*read->into, param->paramid);
		return false;
	}
	if (IsA(node, SubPlan))
	{
		SubPlan *subplan = (SubPlan *) node;

		(void) find_params(subplan->testexpr, read);
		*read->into = without(*read->into, subplan->paramIds);
		(void) find_params((Node *) subplan->args, read);
		*read->into =
			bms_join(*read->into, without(needed_by(plan_of(read->known, subplan)), subplan->parParam));
		return false;
	}
	return expression_tree_walker(node, find_params, arg);
}

static void
find_params_in(const GpuSortPlanExpression *expression, void *arg)
{
	Read *read = arg;

	read->into = expression->noted ? &read->noted : &read->others;
	(void) find_params(expression->node, read);
}

/* What an expression alone reads. */
static Bitmapset *
params_of(const Known *known, Node *expr)
{
	Bitmapset *set = NULL;
	Read read = {.known = known, .into = &set};

	(void) find_params(expr, &read);
	return set;
}

/* The walker: adds what arguments of aggregates read, as finalize_agg_primnode does. */
static bool
find_params_of_aggregates(Node *node, void *arg)
{
	if (node == NULL)
		return false;
	if (IsA(node, Aggref))
	{
		(void) find_params((Node *) ((Aggref *) node)->args, arg);
		(void) find_params((Node *) ((Aggref *) node)->aggfilter, arg);
		return false;
	}
	return expression_tree_walker(node, find_params_of_aggregates, arg);
}

/* Raises an error where one of these parameters is set by nobody. */
static void
check_set(const Plan *plan, const Bitmapset *read, const Bitmapset *valid)
{
	Bitmapset *others = bms_difference(read, valid);

	if (!bms_is_empty(others))
		gpusort_refuse_plan(plan, "reads parameter %d, which nothing above or beside it sets",
							bms_next_member(others, -1));
}

static void
check_agg(const Known *known, Agg *agg)
{
	Bitmapset *set = NULL;
	Read read = {.known = known, .into = &set};

	if (agg->aggstrategy != AGG_HASHED)
		return;
	(void) find_params_of_aggregates((Node *) agg->plan.targetlist, &read);
	(void) find_params_of_aggregates((Node *) agg->plan.qual, &read);
	if (!bms_is_subset(set, agg->aggParams))
		gpusort_refuse_plan(&agg->plan, "lacks parameters in aggParams that its aggregates read");
	check_set(&agg->plan, agg->aggParams, known->valid);
}

/* Returns true if rows of a table or of what stands for one are read: those that EvalPlanQual gives again. */
static bool
is_scan(const Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_SeqScan:
		case T_SampleScan:
		case T_IndexScan:
		case T_IndexOnlyScan:
		case T_BitmapHeapScan:
		case T_TidScan:
		case T_TidRangeScan:
		case T_SubqueryScan:
		case T_FunctionScan:
		case T_TableFuncScan:
		case T_ValuesScan:
		case T_CteScan:
		case T_NamedTuplestoreScan:
		case T_WorkTableScan:
		case T_ForeignScan:
			return true;
		case T_CustomScan:
			return outerPlan(plan) == NULL;
		default:
			return false;
	}
}

/*
 * Raises an error where a node tells other parameters than it has; hidden: it may leave out, or not; valid: it may tell
 * without need.
 */
static void
compare(const Plan *plan, const char *what, const Bitmapset *told, const Bitmapset *is, const Bitmapset *hidden,
		const Bitmapset *valid)
{
	Bitmapset *missing = bms_difference(is, told);
	Bitmapset *more = bms_difference(bms_difference(told, is), valid);

	missing = bms_del_members(missing, hidden);
	more = bms_del_members(more, hidden);
	if (!bms_is_empty(missing))
		gpusort_refuse_plan(plan, "lacks parameter %d in %s", bms_next_member(missing, -1), what);
	if (!bms_is_empty(more))
		gpusort_refuse_plan(plan, "has parameter %d in %s, on which it does not depend", bms_next_member(more, -1),
							what);
}

/* The plans that a node reads from, and what is known there. */
typedef struct Children
{
	Plan *plan;
	Known known;       /* of all but the next */
	Known inner;       /* of a nested loop's inner side */
	List *nest_params; /* that it sets */
	Bitmapset *needed;
} Children;

static Bitmapset *check_plan(const Known *known, Plan *plan);

static void
check_child(Plan **link, void *arg)
{
	Children *children = arg;
	bool inner = link == &children->plan->righttree;
	Known known = inner ? children->inner : children->known;
	Bitmapset *needed;

	if (IsA(children->plan, SubqueryScan))
		known.rechecked = NULL;
	needed = check_plan(&known, *link);
	if (inner)
		needed = without(needed, children->nest_params);
	children->needed = bms_add_members(children->needed, needed);
}

/* The parameter that a node sets for those below it; -1: none. */
static int
set_for_children(const Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_ModifyTable:
			return ((const ModifyTable *) plan)->epqParam;
		case T_LockRows:
			return ((const LockRows *) plan)->epqParam;
		case T_RecursiveUnion:
			return ((const RecursiveUnion *) plan)->wtParam;
		case T_Gather:
			return ((const Gather *) plan)->rescan_param;
		case T_GatherMerge:
			return ((const GatherMerge *) plan)->rescan_param;
		default:
			return -1;
	}
}

/* What the plans below a node need from it and from those above it. */
static Bitmapset *
check_children(const Known *known, Plan *plan)
{
	int set = set_for_children(plan);
	Children children = {.plan = plan, .known = *known};
	ListCell *cell;

	if (set >= 0)
	{
		children.known.valid = bms_add_member(bms_copy(known->valid), set);
		if (IsA(plan, ModifyTable) || IsA(plan, LockRows))
			children.known.rechecked = bms_add_member(bms_copy(known->rechecked), set);
		else if (!IsA(plan, RecursiveUnion))
			children.known.gather = set;
	}
	if (IsA(plan, NestLoop))
	{
		foreach(cell, ((NestLoop *) plan)->nestParams)
			children.nest_params = lappend_int(children.nest_params, lfirst_node(NestLoopParam, cell)->paramno);
	}
	children.inner = children.known;
	children.inner.valid = with(bms_copy(children.known.valid), children.nest_params);
	gpusort_plan_each_child(plan, check_child, &children);
	return set >= 0 ? bms_del_member(children.needed, set) : children.needed;
}

/* What a scan of another plan depends on beside its expressions, or has to be there. */
static void
check_source(const Known *known, const Plan *plan, Read *read)
{
	ListCell *cell;

	switch (nodeTag(plan))
	{
		case T_CteScan:
			{
				const CteScan *scan = (const CteScan *) plan;

				read->noted = bms_add_members(
					read->noted, ((const Plan *) list_nth(known->stmt->subplans, scan->ctePlanId - 1))->extParam);
				/* no extParam tells this one, and a subquery's plan does not know what is above it */
				if (!bms_is_member(scan->cteParam, known->ctes))
					gpusort_refuse_plan(plan, "reads parameter %d, which no CTE sets", scan->cteParam);
				break;
			}
		case T_WorkTableScan:
			read->noted = bms_add_member(read->noted, ((const WorkTableScan *) plan)->wtParam);
			break;
		case T_FunctionScan:
			foreach(cell, ((const FunctionScan *) plan)->functions)
			{
				const RangeTblFunction *function = lfirst_node(RangeTblFunction, cell);

				if (!bms_equal(params_of(known, function->funcexpr), function->funcparams))
					gpusort_refuse_plan(plan, "has other funcparams than a function reads");
			}
			break;
		default:
			break;
	}
}

/* Checks a plan, and returns what it depends on: its extParam, as it should be. */
static Bitmapset *
check_plan(const Known *known, Plan *plan)
{
	Known here = *known;
	Read read = {.known = known};
	Bitmapset *init_reads = NULL;
	Bitmapset *init_sets = NULL;
	Bitmapset *all;
	Bitmapset *external;
	Bitmapset *hidden = NULL;
	ListCell *cell;

	foreach(cell, plan->initPlan)
	{
		const SubPlan *subplan = lfirst_node(SubPlan, cell);

		init_reads = bms_add_members(init_reads, needed_by(plan_of(known, subplan)));
		init_sets = with(init_sets, subplan->setParam);
	}
	here.valid = bms_union(known->valid, init_sets);
	check_set(plan, init_reads, here.valid);

	gpusort_plan_each_expression(plan, find_params_in, &read);
	check_source(known, plan, &read);
	if (plan->parallel_aware)
	{
		if (known->gather < 0)
			gpusort_refuse_plan(plan, "is parallel-aware, and in no Gather that can start over");
		read.noted = bms_add_member(read.noted, known->gather);
	}
	if (is_scan(plan))
		read.noted = bms_add_members(read.noted, bms_intersect(plan->extParam, known->rechecked));
	if (IsA(plan, Agg))
		check_agg(&here, (Agg *) plan);
	check_set(plan, read.noted, here.valid);
	check_set(plan, read.others, here.valid);

	all = bms_add_members(check_children(&here, plan), read.noted);
	all = bms_add_members(all, init_reads);
	external = bms_difference(all, init_sets);
	all = bms_add_members(all, init_sets);
	if (plan->initPlan != NIL && !IsA(plan, CustomScan))
		hidden = bms_union(init_reads, init_sets);
	compare(plan, "extParam", plan->extParam, external, hidden, known->valid);
	compare(plan, "allParam", plan->allParam, all, hidden, known->valid);
	return external;
}

/* The walker: adds what subqueries with several columns set. */
static bool
find_columns_set(Node *node, void *arg)
{
	Bitmapset **set = arg;

	if (node == NULL)
		return false;
	if (IsA(node, SubPlan) && ((SubPlan *) node)->subLinkType == MULTIEXPR_SUBLINK)
		*set = with(*set, ((SubPlan *) node)->setParam);
	return expression_tree_walker(node, find_columns_set, arg);
}

static void
find_columns_set_in(const GpuSortPlanExpression *expression, void *arg)
{
	(void) find_columns_set(expression->node, arg);
}

static void
add_columns_set(Plan **link, void *arg)
{
	(void) find_columns_set((Node *) (*link)->initPlan, arg);
	gpusort_plan_each_expression(*link, find_columns_set_in, arg);
	gpusort_plan_each_child(*link, add_columns_set, arg);
}

static void
add_ctes(Plan **link, void *arg)
{
	Bitmapset **set = arg;
	ListCell *cell;

	foreach(cell, (*link)->initPlan)
	{
		if (lfirst_node(SubPlan, cell)->subLinkType == CTE_SUBLINK)
			*set = with(*set, lfirst_node(SubPlan, cell)->setParam);
	}
	gpusort_plan_each_child(*link, add_ctes, arg);
}

/* The plans of subqueries that can be executed. */
typedef struct Used
{
	PlannedStmt *stmt;
	Bitmapset *plan_ids;
} Used;

static void add_used(Plan **link, void *arg);

static void
use_plan(Used *used, int plan_id)
{
	Plan *plan = list_nth(used->stmt->subplans, plan_id - 1);

	if (bms_is_member(plan_id, used->plan_ids))
		return;
	used->plan_ids = bms_add_member(used->plan_ids, plan_id);
	add_used(&plan, used);
}

static bool
find_used(Node *node, void *arg)
{
	if (node == NULL)
		return false;
	if (IsA(node, SubPlan))
		use_plan(arg, ((const SubPlan *) node)->plan_id);
	return expression_tree_walker(node, find_used, arg);
}

static void
find_used_in(const GpuSortPlanExpression *expression, void *arg)
{
	(void) find_used(expression->node, arg);
}

static void
add_used(Plan **link, void *arg)
{
	const Plan *plan = *link;

	(void) find_used((Node *) plan->initPlan, arg);
	if (IsA(plan, CteScan))
		use_plan(arg, ((const CteScan *) plan)->ctePlanId);
	gpusort_plan_each_expression(*link, find_used_in, arg);
	gpusort_plan_each_child(*link, add_used, arg);
}

/*
 * Raises an error where a plan of the statement reads a parameter that is not set, or does not tell what it depends on.
 * The plan of a subquery may read what it tells that it depends on: where it stands, that has to be set.  A subquery
 * of one that setrefs.c has left out is not executed, and nothing sets what it reads.
 */
void
gpusort_check_params(PlannedStmt *stmt)
{
	Bitmapset *columns_set = NULL;
	Bitmapset *ctes = NULL;
	Known known = {.stmt = stmt, .gather = -1};
	Used used = {.stmt = stmt};
	int plan_id = -1;

	gpusort_plan_each_of_statement(stmt, add_columns_set, &columns_set);
	gpusort_plan_each_of_statement(stmt, add_ctes, &ctes);
	known.columns_set = columns_set;
	known.ctes = ctes;
	add_used(&stmt->planTree, &used);
	while ((plan_id = bms_next_member(used.plan_ids, plan_id)) >= 0)
	{
		Plan *plan = list_nth(stmt->subplans, plan_id - 1);

		known.valid = bms_copy(plan->extParam);
		(void) check_plan(&known, plan);
	}
	known.valid = NULL;
	(void) check_plan(&known, stmt->planTree);
}
