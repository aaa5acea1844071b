/*-------------------------------------------------------------------------
 *
 * plan_test.c
 *	  Plans that are broken on purpose: what tests call of src/plan/check_plan.c.
 *
 * The extension has no function for it: a test makes one, as only a superuser can (test/sql/check_plan.sql).
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "catalog/pg_operator_d.h"
#include "catalog/pg_type_d.h"
#include "fmgr.h"
#include "node.h"
#include "nodes/nodeFuncs.h"
#include "plan/check_plan.h"
#include "plan/finish/plan_tree.h"
#include "tcop/tcopprot.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"

/* A number that no column, plan, parameter or node of a test's plan has. */
#define NO_NUMBER 100

/* PostgreSQL 15's PG_FUNCTION_INFO_V1 does not export the function itself. */
extern PGDLLEXPORT Datum gpusort_test_check_plan(PG_FUNCTION_ARGS);

PG_FUNCTION_INFO_V1(gpusort_test_check_plan);

/* Finds the nodes of a kind in an expression. */
typedef struct NodeSearch
{
	NodeTag tag;
	List *found;
} NodeSearch;

static bool
find_nodes(Node *node, void *arg)
{
	NodeSearch *search = arg;

	if (node == NULL)
		return false;
	if (nodeTag(node) == search->tag)
		search->found = lappend(search->found, node);
	return expression_tree_walker(node, find_nodes, arg);
}

/* The n-th node of a kind in a plan's target list, or else in its conditions; NULL: it has fewer. */
static void *
nth_node(const Plan *plan, NodeTag tag, int n)
{
	NodeSearch search = {.tag = tag};

	(void) find_nodes((Node *) plan->targetlist, &search);
	(void) find_nodes((Node *) plan->qual, &search);
	return n < list_length(search.found) ? list_nth(search.found, n) : NULL;
}

/* A Var of the target list that names a column of the plan below. */
static Var *
outer_var(const Plan *plan)
{
	Var *var = nth_node(plan, T_Var, 0);

	return var != NULL && var->varno == OUTER_VAR ? var : NULL;
}

/* Each of these breaks a plan in its way, and returns false where the plan has no place for it. */

static bool
leave_a_gap(Plan *plan)
{
	Aggref *call = nth_node(plan, T_Aggref, 0);

	if (call != NULL)
		call->aggno++;
	return call != NULL;
}

static bool
leave_a_gap_in_states(Plan *plan)
{
	Aggref *call = nth_node(plan, T_Aggref, 0);

	if (call != NULL)
		call->aggtransno++;
	return call != NULL;
}

static bool
number_equal_calls_apart(Plan *plan)
{
	Aggref *call = nth_node(plan, T_Aggref, 1);

	if (call != NULL)
		call->aggno++;
	return call != NULL;
}

static bool
number_calls_together(Plan *plan)
{
	Aggref *call = nth_node(plan, T_Aggref, 1);

	if (call != NULL)
		call->aggno = call->aggtransno = 0;
	return call != NULL;
}

static bool
number_states_together(Plan *plan)
{
	Aggref *call = nth_node(plan, T_Aggref, 1);

	if (call != NULL)
		call->aggtransno = 0;
	return call != NULL;
}

static bool
call_another_part(Plan *plan)
{
	Aggref *call = nth_node(plan, T_Aggref, 0);

	if (call != NULL)
		call->aggsplit = AGGSPLIT_INITIAL_SERIAL;
	return call != NULL;
}

static bool
call_of_another_window(Plan *plan)
{
	WindowFunc *call = nth_node(plan, T_WindowFunc, 0);

	if (call != NULL)
		call->winref++;
	return call != NULL;
}

static bool
name_no_column(Plan *plan)
{
	Var *var = outer_var(plan);

	if (var != NULL)
		var->varattno = NO_NUMBER;
	return var != NULL;
}

static bool
name_no_side(Plan *plan)
{
	Var *var = outer_var(plan);

	if (var != NULL)
		var->varno = INNER_VAR;
	return var != NULL;
}

static bool
change_type(Plan *plan)
{
	Var *var = outer_var(plan);

	if (var != NULL)
		var->vartype = POINTOID;
	return var != NULL;
}

static bool
pass_fewer_columns(Plan *plan)
{
	if (!IsA(plan, Limit))
		return false;
	plan->targetlist = list_truncate(plan->targetlist, list_length(plan->targetlist) - 1);
	return true;
}

static bool
sort_by_no_column(Plan *plan)
{
	if (!IsA(plan, Sort))
		return false;
	((Sort *) plan)->sortColIdx[0] = NO_NUMBER;
	return true;
}

static bool
sort_by_another_type(Plan *plan)
{
	if (!IsA(plan, Sort))
		return false;
	((Sort *) plan)->sortOperators[0] = TextLessOperator;
	return true;
}

static bool
group_by_no_column(Plan *plan)
{
	if (!IsA(plan, Agg) || ((Agg *) plan)->numCols == 0)
		return false;
	((Agg *) plan)->grpColIdx[0] = NO_NUMBER;
	return true;
}

static bool
drop_init_plan(Plan *plan)
{
	bool had = plan->initPlan != NIL;

	plan->initPlan = NIL;
	return had;
}

static bool
depend_on_more(Plan *plan)
{
	plan->extParam = bms_add_member(plan->extParam, NO_NUMBER);
	return true;
}

static bool
depend_on_less(Plan *plan)
{
	bool had = !bms_is_empty(plan->allParam);

	plan->allParam = NULL;
	return had;
}

static bool
share_a_number(Plan *plan)
{
	bool is_another = plan->plan_node_id > 0;

	plan->plan_node_id = 0;
	return is_another;
}

static bool
name_no_subplan(Plan *plan)
{
	SubPlan *subplan = nth_node(plan, T_SubPlan, 0);

	if (subplan != NULL)
		subplan->plan_id = NO_NUMBER;
	return subplan != NULL;
}

static bool
gather_twice(Plan *plan)
{
	Gather *another;

	if (!IsA(plan, Gather))
		return false;
	another = makeNode(Gather);
	*another = *(Gather *) plan;
	another->plan.plan_node_id = NO_NUMBER;
	another->plan.parallel_safe = true;
	another->plan.extParam = another->plan.allParam = another->plan.lefttree->allParam;
	another->plan.targetlist = gpusort_plan_columns(another->plan.lefttree, list_length(plan->targetlist));
	another->rescan_param = -1;
	plan->lefttree = &another->plan;
	return true;
}

static bool
send_no_parameters(Plan *plan)
{
	if (!IsA(plan, Gather) || bms_is_empty(((Gather *) plan)->initParam))
		return false;
	((Gather *) plan)->initParam = NULL;
	return true;
}

static bool
be_aware_of_nobody(Plan *plan)
{
	plan->parallel_aware = true;
	return true;
}

/* Of the scan, for that is below the Gather. */
static bool
call_what_workers_must_not(Plan *plan)
{
	OpExpr *call = IsA(plan, SeqScan) ? nth_node(plan, T_OpExpr, 0) : NULL;

	if (call != NULL)
		call->opfuncid = F_PG_BACKEND_PID;
	return call != NULL;
}

/* Tells a GpuSort that the node above makes this of the order. */
static bool
tell_use(Plan *plan, GpuSortUseKind kind)
{
	const GpuSortUse use = {.kind = kind};

	if (!gpusort_plan_is(plan, &gpusort_scan_methods))
		return false;
	gpusort_plan_set_use((CustomScan *) plan, &use);
	return true;
}

static bool
tell_no_use(Plan *plan)
{
	return tell_use(plan, GPUSORT_USE_UNKNOWN);
}

static bool
tell_of_window(Plan *plan)
{
	return tell_use(plan, GPUSORT_USE_RUNNING);
}

static bool
tell_of_numbers(Plan *plan)
{
	return tell_use(plan, GPUSORT_USE_NUMBERS);
}

/* Names an index by whose ranges a GpuSort reads that has no table below it. */
static bool
read_blocks_of_no_table(Plan *plan)
{
	const GpuSortBlockIndex index = {.index = NO_NUMBER, .column = 1};

	if (!gpusort_plan_is(plan, &gpusort_scan_methods) || IsA(outerPlan(plan), SeqScan))
		return false;
	gpusort_plan_set_block_index((CustomScan *) plan, &index);
	return true;
}

static bool
sort_the_other_way(Plan *plan)
{
	Aggref *call = nth_node(plan, T_Aggref, 0);

	if (call == NULL || call->aggorder == NIL)
		return false;
	linitial_node(SortGroupClause, call->aggorder)->nulls_first ^= true;
	return true;
}

static const struct Defect
{
	const char *name;
	bool (*make)(Plan *plan);
} defects[] = {
	{"gap", leave_a_gap},
	{"gap in states", leave_a_gap_in_states},
	{"equal calls apart", number_equal_calls_apart},
	{"calls together", number_calls_together},
	{"states together", number_states_together},
	{"another part", call_another_part},
	{"another window", call_of_another_window},
	{"no column", name_no_column},
	{"no side", name_no_side},
	{"type", change_type},
	{"fewer columns", pass_fewer_columns},
	{"no sort column", sort_by_no_column},
	{"sort operator", sort_by_another_type},
	{"no group column", group_by_no_column},
	{"no initPlan", drop_init_plan},
	{"more parameters", depend_on_more},
	{"fewer parameters", depend_on_less},
	{"shared number", share_a_number},
	{"no subplan", name_no_subplan},
	{"two Gathers", gather_twice},
	{"nothing sent", send_no_parameters},
	{"aware of nobody", be_aware_of_nobody},
	{"unsafe call", call_what_workers_must_not},
	{"no use", tell_no_use},
	{"use of a window", tell_of_window},
	{"use of numbers", tell_of_numbers},
	{"the other way", sort_the_other_way},
	{"blocks of no table", read_blocks_of_no_table},
};

/* A defect, made at the first place that there is. */
typedef struct Breaking
{
	const struct Defect *defect;
	bool done;
} Breaking;

static void
break_plan(Plan **link, void *arg)
{
	Breaking *breaking = arg;

	breaking->done = breaking->done || breaking->defect->make(*link);
	if (!breaking->done)
		gpusort_plan_each_child(*link, break_plan, arg);
}

/*
 * gpusort_test_check_plan(statement text, defect text) RETURNS text
 *
 * Plans a statement, breaks the plan by a defect, unless that is 'none', and has it checked.  Returns the defect where
 * it was not seen.
 */
Datum
gpusort_test_check_plan(PG_FUNCTION_ARGS)
{
	char *statement = text_to_cstring(PG_GETARG_TEXT_PP(0));
	char *defect = text_to_cstring(PG_GETARG_TEXT_PP(1));
	RawStmt *parsed = linitial_node(RawStmt, pg_parse_query(statement));
	Query *query = linitial_node(Query, pg_analyze_and_rewrite_fixedparams(parsed, statement, NULL, 0, NULL));
	PlannedStmt *stmt = copyObject(PG_PLAN_QUERY(query, statement, CURSOR_OPT_PARALLEL_OK));
	Breaking breaking = {0};

	for (int i = 0; i < lengthof(defects); i++)
	{
		if (strcmp(defects[i].name, defect) == 0)
			breaking.defect = &defects[i];
	}
	if (breaking.defect != NULL)
		gpusort_plan_each_of_statement(stmt, break_plan, &breaking);
	if (!breaking.done && strcmp(defect, "none") != 0)
		ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("the plan has no place for \"%s\"", defect));
	gpusort_check_plan(stmt);
	PG_RETURN_TEXT_P(cstring_to_text(defect));
}
