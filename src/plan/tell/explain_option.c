/*-------------------------------------------------------------------------
 *
 * explain_option.c
 *	  EXPLAIN (GPUSORT): why sorts are done as they are.
 *
 * From PostgreSQL 18 on modules can have options of EXPLAIN.  This one says below each sort that
 * stayed PostgreSQL's why it did, below what one process does above a GpuSort why not several, and at
 * the end how the service is.
 *
 * The reasons are those that were kept when the plan was made (decisions.c): by this EXPLAIN, or before while
 * gpusort.log_decisions was on.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/tell/explain_option.h"

#ifdef HAVE_EXPLAIN_OPTIONS
#include "commands/defrem.h"
#include "commands/explain.h"
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#include "nodes/execnodes.h"
#include "plan/decisions.h"
#include "plan/tell/plan_reasons.h"

/* What one EXPLAIN is asked for, and has found out. */
typedef struct ExplainOption
{
	bool on;
	const PlannedStmt *stmt; /* whose decisions there are; NULL: none yet */
	List *decisions;
} ExplainOption;

static int extension_id;
static explain_per_node_hook_type previous_per_node = NULL;
static explain_per_plan_hook_type previous_per_plan = NULL;

/* The handler of the option */
static void
set_option(ExplainState *explain, DefElem *value, ParseState *pstate)
{
	ExplainOption *option = GetExplainExtensionState(explain, extension_id);

	if (option == NULL)
	{
		option = palloc0(sizeof(ExplainOption));
		SetExplainExtensionState(explain, extension_id, option);
	}
	option->on = defGetBoolean(value);
	if (option->on)
		gpusort_decisions_ask();
}

/* Returns true if the EXPLAIN has the option; NULL is none. */
bool
gpusort_explain_option_is_on(struct ExplainState *explain)
{
	const ExplainOption *option = explain != NULL ? GetExplainExtensionState(explain, extension_id) : NULL;

	return option != NULL && option->on;
}

/* A hook: says below a node what was decided of it. */
static void
show_node(PlanState *planstate, List *ancestors, const char *relationship, const char *plan_name, ExplainState *explain)
{
	if (previous_per_node != NULL)
		previous_per_node(planstate, ancestors, relationship, plan_name, explain);
	if (gpusort_explain_option_is_on(explain))
	{
		ExplainOption *option = GetExplainExtensionState(explain, extension_id);
		List *texts;
		ListCell *cell;

		if (option->stmt != explain->pstmt)
		{
			option->decisions = gpusort_plan_reasons(explain->pstmt);
			option->stmt = explain->pstmt;
		}
		texts = gpusort_decisions_of_node(option->decisions, planstate->plan->plan_node_id);
		if (explain->format != EXPLAIN_FORMAT_TEXT && texts != NIL)
			ExplainPropertyList(GPUSORT_REASON_LABEL, texts, explain);
		else
		{
			foreach(cell, texts)
				ExplainPropertyText(GPUSORT_REASON_LABEL, lfirst(cell), explain);
		}
	}
}

/* A hook: says behind a plan how the service is. */
static void
show_plan(PlannedStmt *stmt, IntoClause *into, ExplainState *explain, const char *query_string, ParamListInfo params,
		  QueryEnvironment *environment)
{
	if (previous_per_plan != NULL)
		previous_per_plan(stmt, into, explain, query_string, params, environment);
	if (gpusort_explain_option_is_on(explain))
		ExplainPropertyText(GPUSORT_SERVICE_LABEL, gpusort_plan_service(), explain);
}

/* To be called once, at load. */
void
gpusort_explain_option_init(void)
{
	extension_id = GetExplainExtensionId("gpusort");
	REGISTER_EXPLAIN_OPTION("gpusort", set_option);
	previous_per_node = explain_per_node_hook;
	explain_per_node_hook = show_node;
	previous_per_plan = explain_per_plan_hook;
	explain_per_plan_hook = show_plan;
}
#endif
