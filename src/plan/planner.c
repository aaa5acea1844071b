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
 * Some statements are planned once more in another form: one that asks for the first rows of one group after another,
 * to ask for them at once (lateral_limits.c), and one that asks for all rows of shards, to ask for their groups or
 * first rows (shard_queries.c).  That plan is kept if it is far cheaper.
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

#include <math.h>

#include "access/parallel.h"
#include "catalog/pg_proc.h"
#include "commands/explain.h"
#include "miscadmin.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/plancat.h"
#include "optimizer/planner.h"
#include "plan/check_plan.h"
#include "plan/decisions.h"
#include "plan/estimate.h"
#include "plan/finish/finish.h"
#include "plan/finish/own_workers.h"
#include "plan/insert_select.h"
#include "plan/lateral_limits.h"
#include "plan/offer/offers.h"
#include "plan/offer/shard_scans.h"
#include "plan/offer/task_scans.h"
#include "plan/offer/upper_paths.h"
#include "plan/shard_queries.h"
#include "plan/shard_snapshots.h"
#include "plan/statement.h"
#include "plan/tell/explain_option.h"
#include "settings.h"
#include "utils/guc.h"

static bool hooked = false;
static planner_hook_type previous_planner = NULL;
static create_upper_paths_hook_type previous_create_upper_paths = NULL;
static TableHook previous_table = NULL;
static set_rel_pathlist_hook_type previous_pathlist = NULL;

/* The table that is first in the range table of the statement that is planned. */
static Oid first_asked_for = InvalidOid;

/* So many statements are planned, each a part of the one before. */
static int planning = 0;

/* Returns the table that is first in a query's range table, or InvalidOid. */
static Oid
first_table(const Query *parse)
{
	const RangeTblEntry *rte = parse->rtable != NIL ? linitial_node(RangeTblEntry, parse->rtable) : NULL;

	return rte != NULL && rte->rtekind == RTE_RELATION ? rte->relid : InvalidOid;
}

/*
 * Returns true if what is planned is not what the planner was asked for, but a part of it that an extension plans by
 * itself, from another table.  Citus does so where the only shard of a short query is in this server, and keeps the
 * plan in its own: nothing of ours could be finished in there.
 */
static bool
is_planned_aside(const PlannerInfo *root)
{
	Oid first;

	while (root->parent_root != NULL)
		root = root->parent_root;
	first = first_table(root->parse);
	return OidIsValid(first) && first != first_asked_for;
}

static void
look_at_table(TABLE_HOOK_PARAMETERS)
{
	if (previous_table != NULL)
		previous_table(TABLE_HOOK_ARGUMENTS);
	gpusort_shard_scans_prepare(root, rel,
								gpusort_offers_are_wanted() && !is_planned_aside(root) &&
									!gpusort_statement_leaves_shards());
}

static void
look_at_paths(PlannerInfo *root, RelOptInfo *rel, Index rti, RangeTblEntry *rte)
{
	if (previous_pathlist != NULL)
		previous_pathlist(root, rel, rti, rte);
	gpusort_shard_scans_add(root, rel);
	if (gpusort_offers_are_wanted() && !is_planned_aside(root))
		gpusort_task_scans_add(root, rel);
}

static void
create_upper_paths(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input_rel,
				   RelOptInfo *output_rel, void *extra)
{
	if (previous_create_upper_paths)
		previous_create_upper_paths(root, stage, input_rel, output_rel, extra);
	if (!gpusort_offers_are_wanted() || is_planned_aside(root))
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
	const Oid first_before = first_asked_for;
	PlannedStmt *volatile stmt = NULL;

	first_asked_for = first_table(parse);
	planning++;
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
		first_asked_for = first_before;
		planning--;
	}
	PG_END_TRY();
	return stmt;
}

/*
 * Plans a statement, and puts GpuSort in the place of the Sorts that are left.  If some of a server's tables would be
 * read by postgres_fdw alone, and others by all processes, in another snapshot, it is planned again without that.
 */
static PlannedStmt *
plan_and_finish(const GpuSortStatement *statement, GpuSortDecisions *decisions, PLANNER_PARAMETERS)
{
	Query *again = gpusort_shard_connections > 1 && !gpusort_estimate_is_wanted() ? copyObject(parse) : NULL;
	PlannedStmt *stmt = plan_with_offers(true, statement, PLANNER_ARGUMENTS);
	GpuSortStatement finished = *statement;

	if (again != NULL && gpusort_reads_shards_in_two_ways(stmt))
	{
		GpuSortStatement native = *statement;

		native.leaves_shards = true;
		parse = again;
		stmt = plan_with_offers(true, &native, PLANNER_ARGUMENTS);
	}
	decisions->log = decisions->log && gpusort_decisions_are_logged(stmt);
	if (gpusort_shard_connections > 1)
		finished.rescannable = finished.rescannable && !gpusort_reads_once(stmt);
	gpusort_finish(stmt, &finished, decisions->log || decisions->keep ? decisions : NULL);
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

/* A statement's plan, and what is kept to make others of it, which is NULL where none are wanted. */
typedef struct Planned
{
	PlannedStmt *stmt;
	GpuSortDecisions decisions;
	Query *again; /* a copy, to be planned with workers of its GpuSorts' own */
} Planned;

/* A plan with workers of its nodes' own. */
typedef struct OwnWorkersPlan
{
	PlannedStmt *stmt; /* NULL: there is none */
	GpuSortDecisions decisions;
	double time; /* that it is expected to take, in ns */
} OwnWorkersPlan;

/*
 * Plans a copy of a statement with own workers of a kind, which PostgreSQL runs without parallel mode.  There is no
 * plan if it would be another one than that.  What all processes compute they compute to the end.
 */
static OwnWorkersPlan
plan_own_workers(GpuSortOwnWorkers kind, GpuSortStatement statement, bool keep_decisions, PLANNER_PARAMETERS)
{
	OwnWorkersPlan plan = {.decisions.keep = keep_decisions, .time = INFINITY};
	Query *inserted = gpusort_inserted_select(parse);
	const bool fills = kind == GPUSORT_OWN_WORKERS_FILL;
	const char hazard = max_parallel_hazard(inserted != NULL && !fills ? inserted : parse);
	PlannedStmt *stmt;

	if (hazard == PROPARALLEL_UNSAFE)
		return plan;
	statement.own_workers = kind;
	statement.time = &plan.time;
	if (inserted != NULL)
		statement.select_hazard = hazard;
	else
		cursor_options |= CURSOR_OPT_PARALLEL_OK;
	if (kind == GPUSORT_OWN_WORKERS_COMPUTE)
		cursor_options &= ~CURSOR_OPT_FAST_PLAN;
	parse = copyObject(parse);
	stmt = plan_and_finish(&statement, &plan.decisions, PLANNER_ARGUMENTS);
	if (!gpusort_own_workers_settle(stmt, kind))
		return (OwnWorkersPlan){.time = INFINITY};
	stmt->parallelModeNeeded = false;
	plan.stmt = stmt;
	return plan;
}

/*
 * Plans a statement, of which there is a plan, again with workers of its nodes' own.  An INSERT is by pages where it
 * may be.  All processes compute rows that are fetched where that takes less time than for the leader to compute as
 * many as are expected to be fetched, and if a cursor that can go back with the first plan still can; but what is
 * stored must not count for temp_file_limit.
 */
static OwnWorkersPlan
plan_again(const GpuSortStatement *statement, const Planned *planned, PLANNER_PARAMETERS)
{
	const bool keep = planned->decisions.keep;
	OwnWorkersPlan plan = {0};
	OwnWorkersPlan taken_in;

	if (gpusort_insert_fills_pages(parse, statement))
		plan = plan_own_workers(GPUSORT_OWN_WORKERS_FILL, *statement, keep, PLANNER_ARGUMENTS);
	if (plan.stmt != NULL)
		return plan;
	if (parse->commandType == CMD_SELECT && temp_file_limit < 0)
		plan = plan_own_workers(GPUSORT_OWN_WORKERS_COMPUTE, *statement, keep, PLANNER_ARGUMENTS);
	if (plan.stmt != NULL &&
		(ExecSupportsBackwardScan(plan.stmt->planTree) || !ExecSupportsBackwardScan(planned->stmt->planTree)))
	{
		if (gpusort_force)
			return plan;
	}
	else
		plan.time = INFINITY;
	taken_in = plan_own_workers(GPUSORT_OWN_WORKERS_TAKE_IN, *statement, keep, PLANNER_ARGUMENTS);
	return plan.time < taken_in.time ? plan : taken_in;
}

/*
 * The cost from which it is worth to ask for groups' first rows at once, which takes a millisecond to plan; and how
 * much cheaper that must be.  PostgreSQL counts a page that an index leads to as one from a disk, and may expect ten
 * times too many groups.  But most of what the other form costs is a sort, which has PostgreSQL's costs and takes a
 * third of its time.
 */
#define LATERAL_COST   10000
#define LATERAL_MARGIN 3

/*
 * The rows of shards from which it is worth to ask for groups or first rows of each; and how many times fewer must
 * come.  Ten times as many groups as PostgreSQL expects make less work here then than all rows, and little in a shard.
 */
#define SHARD_ROWS   10000
#define SHARD_MARGIN 20

/*
 * Changes a statement, of which PostgreSQL has made a plan, into its other form; returns false if it has none.  *most
 * may be set to what each part of that has of the amount at most.
 */
typedef bool (*ChangeForm)(Query *query, PlannedStmt *native, ParamListInfo params, double *most);

/* Another form that a statement can have. */
typedef struct OtherForm
{
	bool (*may_be)(const Query *query); /* quickly, before the statement is planned */
	ChangeForm change;
	double (*amount)(PlannedStmt *stmt, double most); /* what there is to save in a plan */
	double least;                                     /* of a plan that is worth another one */
	double margin;                                    /* how many times less the other plan must have */
	bool depends_on_role;                             /* it asks for what the user may do */
} OtherForm;

static bool
ask_laterals_at_once(Query *query, PlannedStmt *native, ParamListInfo params, double *most)
{
	return gpusort_lateral_limits_as_windows(query, params);
}

static double
cost_of(PlannedStmt *stmt, double most)
{
	return stmt->planTree->total_cost;
}

static const OtherForm other_forms[] = {
	{gpusort_has_lateral_limit, ask_laterals_at_once, cost_of, LATERAL_COST, LATERAL_MARGIN, false},
	{gpusort_may_ask_shards, gpusort_ask_shards, gpusort_fetched_rows, SHARD_ROWS, SHARD_MARGIN, true},
};

/*
 * Plans a statement in its other form, which it is changed to, and keeps that plan if it is far better than the one
 * that there is.
 */
static void
plan_other_form(const OtherForm *form, const GpuSortStatement *statement, Planned *planned, PLANNER_PARAMETERS)
{
	const double native = form->amount(planned->stmt, INFINITY);
	double most = INFINITY;
	GpuSortDecisions decisions = {.keep = planned->decisions.keep};
	Query *again;
	PlannedStmt *stmt;

	if (native == 0 || (native < form->least && !gpusort_force) ||
		!form->change(parse, planned->stmt, params, &most))
		return;
	again = planned->again != NULL ? copyObject(parse) : NULL;
	stmt = plan_and_finish(statement, &decisions, PLANNER_ARGUMENTS);
	if (form->amount(stmt, most) * form->margin > native && !gpusort_force)
		return;
	stmt->dependsOnRole |= form->depends_on_role;
	*planned = (Planned){.stmt = stmt, .decisions = decisions, .again = again};
}

/* Plans a statement for which its nodes start workers, and keeps that plan if there is one. */
static void
plan_workers(const GpuSortStatement *statement, Planned *planned, PLANNER_PARAMETERS)
{
	const OwnWorkersPlan plan = plan_again(statement, planned, PLANNER_ARGUMENTS);

	if (plan.stmt == NULL)
		return;
	plan.stmt->dependsOnRole |= planned->stmt->dependsOnRole;
	planned->stmt = plan.stmt;
	planned->decisions = plan.decisions;
}

/* Returns true if a query has groups, windows or the like, which no plan gives out backward, as it does UNION ALL. */
static bool
computes_rows(const Query *parse)
{
	const SetOperationStmt *operation = (const SetOperationStmt *) parse->setOperations;

	return parse->hasAggs || parse->groupClause != NIL || parse->groupingSets != NIL || parse->hasWindowFuncs ||
		parse->distinctClause != NIL || (operation != NULL && !(operation->op == SETOP_UNION && operation->all));
}

/*
 * Returns true if a statement is a cursor's of which nothing says whether it can go back: it can where the plan can
 * (ExecSupportsBackwardScan), as a Sort, unless it locks rows.
 */
static bool
may_go_back(const Query *parse, int cursor_options)
{
	return (cursor_options & CURSOR_OPT_FAST_PLAN) != 0 &&
		(cursor_options & (CURSOR_OPT_SCROLL | CURSOR_OPT_NO_SCROLL)) == 0 && parse->commandType == CMD_SELECT &&
		parse->rowMarks == NIL && (parse->sortClause != NIL || !computes_rows(parse)) && !gpusort_estimate_is_wanted();
}

/* Returns true if PostgreSQL's own plan of a statement goes back. */
static bool
goes_back(PLANNER_PARAMETERS)
{
	const PlannedStmt *stmt = plan_with_offers(false, &(GpuSortStatement){0}, PLANNER_ARGUMENTS);

	return ExecSupportsBackwardScan(stmt->planTree);
}

static PlannedStmt *plan_sorts(PLANNER_PARAMETERS);

/*
 * Plans a cursor's statement that may have sorts.  A cursor that PostgreSQL lets go back can with gpusort, too: where
 * only PostgreSQL's own plan goes back, the statement is planned again as one of a cursor that scrolls.
 */
static PlannedStmt *
plan_cursor(PLANNER_PARAMETERS)
{
	Query *native = copyObject(parse);
	Query *scrolling = copyObject(parse);
	PlannedStmt *stmt = plan_sorts(PLANNER_ARGUMENTS);

	if (ExecSupportsBackwardScan(stmt->planTree))
		return stmt;
	parse = native;
	if (!goes_back(PLANNER_ARGUMENTS))
		return stmt;
	parse = scrolling;
	cursor_options |= CURSOR_OPT_SCROLL;
	return plan_sorts(PLANNER_ARGUMENTS);
}

/* Plans a statement that may have sorts, in other forms, too, and with workers of its GpuSorts' own. */
static PlannedStmt *
plan_sorts(PLANNER_PARAMETERS)
{
	const GpuSortStatement statement = gpusort_statement_of(parse, cursor_options, planning > 0);
	const bool may_change = (cursor_options & CURSOR_OPT_FAST_PLAN) == 0 && statement.rescannable &&
		!gpusort_estimate_is_wanted();
	Planned planned = {.decisions = {.log = gpusort_log_decisions, .keep = gpusort_decisions_are_kept()}};
	Query *copies[lengthof(other_forms)];

	for (int i = 0; i < (int) lengthof(other_forms); i++)
		copies[i] = may_change && other_forms[i].may_be(parse) ? copyObject(parse) : NULL;
	if (may_be_given_workers(parse, &statement, cursor_options))
		planned.again = copyObject(parse);

	planned.stmt = plan_and_finish(&statement, &planned.decisions, PLANNER_ARGUMENTS);
	for (int i = 0; i < (int) lengthof(other_forms); i++)
	{
		parse = copies[i];
		if (parse != NULL)
			plan_other_form(&other_forms[i], &statement, &planned, PLANNER_ARGUMENTS);
	}
	parse = planned.again;
	if (parse != NULL && gpusort_own_workers_would_help(planned.stmt))
		plan_workers(&statement, &planned, PLANNER_ARGUMENTS);
	if (planned.decisions.keep)
		gpusort_decisions_keep(planned.stmt, planned.decisions.list);
	return planned.stmt;
}

/* The planner's hook. */
static PlannedStmt *
plan_statement(PLANNER_PARAMETERS)
{
	PlannedStmt *stmt;

	if (gpusort_settings_enabled() && may_sort(parse))
		stmt = may_go_back(parse, cursor_options) ? plan_cursor(PLANNER_ARGUMENTS) : plan_sorts(PLANNER_ARGUMENTS);
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
	previous_table = TABLE_HOOK;
	TABLE_HOOK = look_at_table;
	previous_pathlist = set_rel_pathlist_hook;
	set_rel_pathlist_hook = look_at_paths;
}
