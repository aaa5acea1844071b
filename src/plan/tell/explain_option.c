/*-------------------------------------------------------------------------
 *
 * explain_option.c
 *	  EXPLAIN (GPUSORT): why sorts are done as they are.
 *
 * From PostgreSQL 18 on modules can have options of EXPLAIN.  This one says below each sort that
 * stayed PostgreSQL's why it did, below what one process does above a GpuSort why not several, and at
 * the end how the service is.
 *
 * From 19 on the planner is told of the EXPLAIN that it plans for: then its reasons are kept with the
 * plan, as they are while gpusort.log_decisions is on.  Other plans, those of prepared statements
 * and of auto_explain for example, are gone through again by the rules that they were planned by:
 * what they say is how settings, statistics and the service are now.
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
#include "plan/finish/lift.h"
#include "plan/finish/sort_nodes.h"
#include "server/service_state.h"
#include "settings.h"

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
}

/* Returns true if the EXPLAIN has the option; NULL is none. */
bool
gpusort_explain_option_is_on(struct ExplainState *explain)
{
	const ExplainOption *option = explain != NULL ? GetExplainExtensionState(explain, extension_id) : NULL;

	return option != NULL && option->on;
}

/* Finds the reasons of a plan: those that were kept with it, or those that there are now. */
static List *
find_decisions(PlannedStmt *stmt)
{
	GpuSortDecisions found = {.keep = true};
	ListCell *cell;

	foreach(cell, KEPT_WITH_PLAN(stmt))
	{
		const DefElem *kept = lfirst_node(DefElem, cell);

		if (strcmp(kept->defname, GPUSORT_KEPT_NAME) == 0)
			return (List *) kept->arg;
	}
	gpusort_sort_nodes_look(stmt, &found);
	gpusort_lift_look(stmt, &found);
	return found.list;
}

/* A hook: says below a node what was decided of it. */
static void
show_node(PlanState *planstate, List *ancestors, const char *relationship, const char *plan_name, ExplainState *explain)
{
	if (previous_per_node != NULL)
		previous_per_node(planstate, ancestors, relationship, plan_name, explain);
	if (gpusort_explain_option_is_on(explain) && gpusort_settings_enabled())
	{
		ExplainOption *option = GetExplainExtensionState(explain, extension_id);
		List *texts;
		ListCell *cell;

		if (option->stmt != explain->pstmt)
		{
			option->decisions = find_decisions(explain->pstmt);
			option->stmt = explain->pstmt;
		}
		texts = gpusort_decisions_of_node(option->decisions, planstate->plan->plan_node_id);
		if (explain->format != EXPLAIN_FORMAT_TEXT && texts != NIL)
			ExplainPropertyList("GpuSort", texts, explain);
		else
		{
			foreach(cell, texts)
				ExplainPropertyText("GpuSort", lfirst(cell), explain);
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
	{
		const GpuSortService service = gpusort_shared_service();
		const char *text = gpusort_service_state_name(service.state);

		if (!gpusort_settings_enabled())
			text = gpusort_allowed ? "not asked, gpusort.enable is off" : "not asked, gpusort.allowed is off";
		else if (service.engines & (1 << GPUSORT_ENGINE_CUDA))
			text = psprintf("%s, on %u GPUs and the host", text, service.devices);
		else if (service.engines != 0)
			text = psprintf("%s, on the host", text);
		ExplainPropertyText("GpuSort Service", text, explain);
	}
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
