/*-------------------------------------------------------------------------
 *
 * planner.c
 *	  Where GpuSort goes into plans: the planner's hooks.
 *
 * While PostgreSQL plans, it is not told of GpuSort.  At each upper rel what GpuSort could do there is kept aside
 * (upper_paths.c); when all paths of a query are there, such offers, and merge joins of GpuSorts
 * (join_paths.c), take places in the path that PostgreSQL has chosen, where that saves time (offers.c).
 *
 * Last, one pass over the finished plan does what no path can say (finish/finish.c): GpuSort takes the place of the
 * Sorts that are left, and what processes share rows by is settled.
 *
 * What is not legal, or cannot win, is left to PostgreSQL; with
 * gpusort.log_decisions the log says why, once for each Sort that the finished plan keeps, and
 * so does EXPLAIN (GPUSORT) (explain_option.c).
 *
 *-------------------------------------------------------------------------
 */
#include "plan/planner.h"

#include "commands/explain.h"
#include "optimizer/optimizer.h"
#include "optimizer/planner.h"
#include "plan/check_plan.h"
#include "plan/decisions.h"
#include "plan/finish/finish.h"
#include "plan/offer/offers.h"
#include "plan/offer/upper_paths.h"
#include "plan/statement.h"
#include "plan/tell/explain_option.h"
#include "settings.h"

static bool hooked = false;
static planner_hook_type previous_planner = NULL;
static create_upper_paths_hook_type previous_create_upper_paths = NULL;

static void
create_upper_paths(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input_rel,
				   RelOptInfo *output_rel, void *extra)
{
	if (previous_create_upper_paths)
		previous_create_upper_paths(root, stage, input_rel, output_rel, extra);
	if (!gpusort_offers_are_wanted())
		return;
	switch (stage)
	{
		case UPPERREL_GROUP_AGG:
		case UPPERREL_SETOP:
		case UPPERREL_WINDOW:
		case UPPERREL_DISTINCT:
		case UPPERREL_ORDERED:
			gpusort_offer_upper_paths(root, stage, input_rel, output_rel, extra);
			break;
		case UPPERREL_FINAL:
			gpusort_offers_take(root, output_rel);
			break;
		default:
			break;
	}
}

/* Returns false if the plan of parse has no Sort for sure: quickly, for short statements. */
static bool
may_sort(const Query *parse)
{
	return parse->sortClause != NIL || parse->groupClause != NIL || parse->groupingSets != NIL ||
		parse->distinctClause != NIL || parse->windowClause != NIL || parse->setOperations != NULL || parse->hasAggs ||
		parse->cteList != NIL || parse->hasSubLinks || list_length(parse->rtable) > 1 ||
		(parse->rtable != NIL && linitial_node(RangeTblEntry, parse->rtable)->rtekind != RTE_RELATION);
}

/* Plans a statement as PostgreSQL does, with offers if they are wanted. */
static PlannedStmt *
plan_with_offers(bool wanted, const GpuSortStatement *statement, PLANNER_PARAMETERS)
{
	const GpuSortStatement statement_before = gpusort_statement_begin(statement);
	GpuSortOffers *before = gpusort_offers_begin(wanted);
	PlannedStmt *volatile stmt = NULL;

	PG_TRY();
	{
		if (previous_planner != NULL)
			stmt = previous_planner(PLANNER_ARGUMENTS);
		else
			stmt = standard_planner(PLANNER_ARGUMENTS);
	}
	PG_FINALLY();
	{
		gpusort_offers_end(before);
		gpusort_statement_end(&statement_before);
	}
	PG_END_TRY();
	return stmt;
}

/* Plans a statement, and puts GpuSort in the place of the Sorts that are left. */
static PlannedStmt *
plan_statement(PLANNER_PARAMETERS)
{
	bool sorts = gpusort_settings_enabled() && may_sort(parse);
	const GpuSortStatement statement = sorts ? gpusort_statement_of(parse, cursor_options) : (GpuSortStatement){0};
	PlannedStmt *stmt = plan_with_offers(sorts, &statement, PLANNER_ARGUMENTS);

	if (sorts)
	{
		GpuSortDecisions asked = {.log = gpusort_decisions_are_logged(stmt), .keep = gpusort_decisions_are_kept()};
		GpuSortDecisions *decisions = asked.log || asked.keep ? &asked : NULL;

		gpusort_finish(stmt, statement.rescannable, decisions);
		if (asked.keep)
			gpusort_decisions_keep(stmt, asked.list);
	}
#ifdef GPUSORT_CHECK_PLANS
	gpusort_check_plan(stmt);
#endif
	return stmt;
}

/* Returns true if plans of this session are gone through. */
bool
gpusort_planner_is_hooked(void)
{
	return hooked;
}

/* To be called once, at load. */
void
gpusort_planner_init(void)
{
#ifdef HAVE_EXPLAIN_OPTIONS
	gpusort_explain_option_init();
#endif
	hooked = true;
	previous_planner = planner_hook;
	planner_hook = plan_statement;
	previous_create_upper_paths = create_upper_paths_hook;
	create_upper_paths_hook = create_upper_paths;
}
