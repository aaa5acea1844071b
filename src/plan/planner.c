/*-------------------------------------------------------------------------
 *
 * planner.c
 *	  Where GpuSort goes into plans: the planner's hooks.
 *
 * While PostgreSQL plans, it does not know of GpuSort.  At each upper rel what GpuSort could do there is kept aside
 * (upper_paths.c); when all paths of a query are there, such offers, and merge joins of GpuSorts
 * (join_paths.c), take places in the path that PostgreSQL has chosen, where that saves time (offers.c).
 *
 * A statement that PostgreSQL plans for one process, a cursor's or an INSERT, is planned once more, for several, if it
 * has a GpuSort that takes many rows in: such a plan is kept if all workers in it are started by GpuSorts, which end
 * them before they give a row out (finish/own_workers.c, insert_select.c).
 *
 * One that asks for the first rows of one group after another is planned once more, to ask for them at once
 * (lateral_limits.c), and that plan is kept if it is far cheaper.
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

#include "access/parallel.h"
#include "catalog/pg_proc.h"
#include "commands/explain.h"
#include "miscadmin.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/planner.h"
#include "plan/check_plan.h"
#include "plan/decisions.h"
#include "plan/estimate.h"
#include "plan/finish/finish.h"
#include "plan/finish/own_workers.h"
#include "plan/insert_select.h"
#include "plan/lateral_limits.h"
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
			gpusort_insert_select_end(root);
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
plan_and_finish(const GpuSortStatement *statement, GpuSortDecisions *decisions, PLANNER_PARAMETERS)
{
	PlannedStmt *stmt = plan_with_offers(true, statement, PLANNER_ARGUMENTS);

	decisions->log = decisions->log && gpusort_decisions_are_logged(stmt);
	gpusort_finish(stmt, statement, decisions->log || decisions->keep ? decisions : NULL);
	return stmt;
}

/*
 * Returns true if PostgreSQL plans a statement for one process, and it could have GpuSorts that start workers
 * themselves: one whose rows may be fetched from piece by piece, as a cursor's or those of a loop of PL/pgSQL, and an
 * INSERT of rows that are selected.
 */
static bool
may_be_given_workers(const Query *parse, const GpuSortStatement *statement, int cursor_options)
{
	const bool runs_to_end = (cursor_options & CURSOR_OPT_PARALLEL_OK) != 0;

	if (!statement->starts_workers || max_parallel_workers_per_gather == 0 || !IsUnderPostmaster || IsParallelWorker() ||
		gpusort_estimate_is_wanted())
		return false;
	if (parse->commandType == CMD_INSERT)
		return runs_to_end;
	return !runs_to_end && parse->rowMarks == NIL;
}

/*
 * Returns a plan of a statement whose GpuSorts start workers, which PostgreSQL runs without parallel mode; NULL if it
 * would be another one than that.  PostgreSQL's own choice has been made before: it is for who wants first rows soon
 * and has no sort.  Who plans an INSERT by pages says fills_pages.
 */
static PlannedStmt *
plan_with_own_workers(GpuSortStatement statement, GpuSortDecisions *decisions, PLANNER_PARAMETERS)
{
	Query *inserted = gpusort_inserted_select(parse);
	const char hazard = max_parallel_hazard(inserted != NULL && !statement.fills_pages ? inserted : parse);
	PlannedStmt *stmt;

	if (hazard == PROPARALLEL_UNSAFE)
		return NULL;
	statement.one_reader = !statement.fills_pages;
	if (inserted != NULL)
		statement.select_hazard = hazard;
	else
		cursor_options |= CURSOR_OPT_PARALLEL_OK;
	stmt = plan_and_finish(&statement, decisions, PLANNER_ARGUMENTS);
	if (!gpusort_own_workers_settle(stmt))
		return NULL;
	stmt->parallelModeNeeded = false;
	return stmt;
}

/*
 * Plans a statement again whose GpuSorts could do with workers that PostgreSQL does not give it, with these; by pages
 * where rows are inserted so.  Returns NULL if it must not have them.
 */
static PlannedStmt *
plan_again(GpuSortStatement statement, GpuSortDecisions *decisions, PLANNER_PARAMETERS)
{
	const GpuSortDecisions none = *decisions;
	Query *query = parse;
	PlannedStmt *stmt;

	statement.fills_pages = gpusort_insert_fills_pages(parse, &statement);
	if (statement.fills_pages)
	{
		parse = copyObject(query);
		stmt = plan_with_own_workers(statement, decisions, PLANNER_ARGUMENTS);
		if (stmt != NULL)
			return stmt;
		*decisions = none;
		statement.fills_pages = false;
	}
	parse = query;
	return plan_with_own_workers(statement, decisions, PLANNER_ARGUMENTS);
}

/*
 * The cost from which a statement's other form is worth to be planned, which takes a millisecond; and how much cheaper
 * it must be.  PostgreSQL counts a page that an index leads to as one from a disk, and may expect ten times too many
 * groups.  But most of what the other form costs is a sort, which has PostgreSQL's costs and takes a third of its time.
 */
#define LATERAL_COST   10000
#define LATERAL_MARGIN 3

/*
 * Returns a plan of the other form of a statement, which is changed, if it is far cheaper than PostgreSQL's; a copy of
 * that form takes *again's place then, if there is one.  Else NULL.
 */
static PlannedStmt *
plan_laterals_at_once(const GpuSortStatement *statement, const PlannedStmt *native, GpuSortDecisions *decisions,
					  Query **again, PLANNER_PARAMETERS)
{
	const Cost cost = native->planTree->total_cost;
	Query *copy;
	PlannedStmt *stmt;

	if ((cost < LATERAL_COST && !gpusort_force) || !gpusort_lateral_limits_as_windows(parse, params))
		return NULL;
	copy = *again != NULL ? copyObject(parse) : NULL;
	stmt = plan_and_finish(statement, decisions, PLANNER_ARGUMENTS);
	if (stmt->planTree->total_cost * LATERAL_MARGIN > cost && !gpusort_force)
		return NULL;
	*again = copy;
	return stmt;
}

/* Plans a statement, twice if GpuSorts of its plan could do with workers that PostgreSQL does not give it. */
static PlannedStmt *
plan_statement(PLANNER_PARAMETERS)
{
	PlannedStmt *stmt;

	if (gpusort_settings_enabled() && may_sort(parse))
	{
		const GpuSortStatement statement = gpusort_statement_of(parse, cursor_options);
		GpuSortDecisions decisions = {.log = gpusort_log_decisions, .keep = gpusort_decisions_are_kept()};
		const bool may_be_at_once = (cursor_options & CURSOR_OPT_FAST_PLAN) == 0 && statement.rescannable &&
			!gpusort_estimate_is_wanted() && gpusort_has_lateral_limit(parse);
		Query *again = may_be_given_workers(parse, &statement, cursor_options) ? copyObject(parse) : NULL;
		Query *at_once = may_be_at_once ? copyObject(parse) : NULL;

		stmt = plan_and_finish(&statement, &decisions, PLANNER_ARGUMENTS);
		if (at_once != NULL)
		{
			GpuSortDecisions others = {.keep = decisions.keep};
			PlannedStmt *other;

			parse = at_once;
			other = plan_laterals_at_once(&statement, stmt, &others, &again, PLANNER_ARGUMENTS);
			if (other != NULL)
			{
				stmt = other;
				decisions = others;
			}
		}
		if (again != NULL && gpusort_own_workers_would_help(stmt))
		{
			GpuSortDecisions others = {.keep = decisions.keep};
			PlannedStmt *other;

			parse = again;
			other = plan_again(statement, &others, PLANNER_ARGUMENTS);
			if (other != NULL)
			{
				stmt = other;
				decisions = others;
			}
		}
		if (decisions.keep)
			gpusort_decisions_keep(stmt, decisions.list);
	}
	else
		stmt = plan_with_offers(false, &(GpuSortStatement){0}, PLANNER_ARGUMENTS);
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
	gpusort_insert_select_init();
}
