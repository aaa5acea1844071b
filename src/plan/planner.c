/*-------------------------------------------------------------------------
 *
 * planner.c
 *	  Where GpuSort goes into plans.
 *
 * At UPPERREL_ORDERED, where PostgreSQL puts a Sort on its cheapest input, paths of
 * GpuSort over the same input (paths.c) compete with it by cost.
 *
 * Windows, DISTINCT, GROUP BY, set operations (upper_paths.c) and joins (join_paths.c) get
 * paths over GpuSort beside PostgreSQL's, which may hash.
 *
 * Last, GpuSort takes the place of the Sorts that the finished plan still has
 * (sort_nodes.c).
 *
 * What is not legal, or cannot win, is left to PostgreSQL; with
 * gpusort.log_decisions the log says why, once for each Sort that the finished plan keeps, and
 * so does EXPLAIN (GPUSORT) (explain_option.c).
 *
 *-------------------------------------------------------------------------
 */
#include "plan/planner.h"

#include "miscadmin.h"
#include "node.h"
#include "nodes/makefuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"
#include "plan/offer/admission.h"
#include "plan/model/cost.h"
#include "plan/tell/decisions.h"
#include "plan/tell/explain_option.h"
#include "plan/offer/join_paths.h"
#include "plan/finish/junk.h"
#include "plan/finish/lift.h"
#include "plan/finish/partial_ranges.h"
#include "plan/model/path_time.h"
#include "plan/offer/paths.h"
#include "plan/finish/plan_tree.h"
#include "plan/model/shard_time.h"
#include "plan/finish/sort_nodes.h"
#include "plan/offer/upper_paths.h"
#include "settings.h"

static planner_hook_type previous_planner = NULL;
static create_upper_paths_hook_type previous_create_upper_paths = NULL;
static set_join_pathlist_hook_type previous_set_join_pathlist = NULL;

/* How many of its rows the query asks its last sort for. */
typedef struct Wanted
{
	double first;     /* that PostgreSQL's sort will be asked for; -1: all */
	double estimated; /* that PostgreSQL's estimate of its cost counts with; -1: all */
} Wanted;

/* Returns true if the query's rows go to a LIMIT of the query around it as they are. */
static bool
passes_limit_on(PlannerInfo *root)
{
	const PlannerInfo *parent = root->parent_root;
	int relid;

	return parent != NULL && root->tuple_fraction >= 1 && parent->parse->limitOption == LIMIT_OPTION_COUNT &&
		!parent->parse->hasWindowFuncs && !parent->parse->hasTargetSRFs &&
		bms_get_singleton_member(parent->all_baserels, &relid) && parent->simple_rel_array[relid] != NULL &&
		parent->simple_rel_array[relid]->baserestrictinfo == NIL;
}

static Wanted
wanted_rows(PlannerInfo *root, double rows)
{
	Query *parse = root->parse;
	Wanted wanted = {-1, -1};
	bool known;

	if (parse->hasTargetSRFs)
		return wanted; /* they may come after the sort, which is then asked for nobody knows how many rows */
	if (parse->limitCount == NULL)
	{
		if (passes_limit_on(root))
			wanted.first = root->tuple_fraction;
		return wanted;
	}
	wanted.first = gpusort_limit_rows(estimate_expression_value(root, parse->limitCount),
									  estimate_expression_value(root, parse->limitOffset), rows, &known);
	if (known)
		wanted.estimated = wanted.first;
	if (parse->limitOption == LIMIT_OPTION_WITH_TIES)
		wanted.first = -1; /* sorts all rows, which PostgreSQL's estimate does not know */
	return wanted;
}

/*
 * How many times its own cost PostgreSQL's estimate of its sort of input is, where LIMIT asks for the first
 * rows: by so much GpuSort's cost in its place is scaled, and the two compare.
 */
static double
native_scale(PlannerInfo *root, const Path *input, List *pathkeys, Wanted wanted, const GpuSortAdmission *admission)
{
	Path estimate;
	double cost = -1;

	if (wanted.first < 0 && wanted.estimated < 0)
		return 1;
	if (wanted.first >= 0)
		cost = gpusort_top_n_cost(input->rows, wanted.first, input->pathtarget->width, admission->string_key);
	if (cost < 0)
	{
		COST_SORT(&estimate, root, pathkeys, input, -1);
		cost = estimate.total_cost - input->total_cost;
	}
	COST_SORT(&estimate, root, pathkeys, input, wanted.estimated);
	return (estimate.total_cost - input->total_cost) / cost;
}

/*
 * Returns true if rel's cheapest path is there and needs a sort to come in the order of the query.
 *
 * It may not be there: PostgreSQL has added rel's paths that are in order to the ordered rel as they
 * are, where add_path frees those that others dominate, and rel still points to them.  A path that
 * needs a sort was not added itself (a Sort over it was), so it is never freed.  That decides:
 *
 *	- a path that the ordered rel has is there, and in order;
 *	- one whose parent is another rel was freed, and its memory used for something else: paths that were
 *	  made since have the ordered rel for parent, or are ours;
 *	- one whose parent is rel is there, or was freed and is as it was: then it is in order.
 *
 * A freed path is read for no more than that, its parent and its pathkeys, whose list nobody frees; and
 * it can be read, for a memory context keeps small pieces until it is reset, which ours is not before
 * the plan is made.  The last step of a set operation belongs to a rel of its own.
 */
static bool
needs_sort(PlannerInfo *root, const RelOptInfo *rel, const RelOptInfo *ordered_rel)
{
	const Path *path = rel->cheapest_total_path;

	if (path == NULL || root->sort_pathkeys == NIL || list_member_ptr(ordered_rel->pathlist, path))
		return false;
	if (path->parent != rel && !list_member_ptr(root->upper_rels[UPPERREL_SETOP], path->parent))
		return false;
	return !pathkeys_contained_in(root->sort_pathkeys, path->pathkeys);
}

/* Adds GpuSort paths to the ordered rel, if they are legal and may win. */
static void
consider_gpusort(PlannerInfo *root, RelOptInfo *input_rel, RelOptInfo *ordered_rel)
{
	Path *input = input_rel->cheapest_total_path;
	PathTarget *target = root->upper_targets[UPPERREL_ORDERED];
	GpuSortAdmission admission;
	GpuSortCost cost;
	GpuSortCost scaled;
	Wanted wanted;
	Path *paths[2];
	int npaths = 0;

	if (!needs_sort(root, input_rel, ordered_rel))
		return;
	admission = gpusort_admit_path(input, root->sort_pathkeys);
	if (admission.encodable == 0)
		return;

	wanted = wanted_rows(root, input->rows);
	cost = gpusort_path_cost(root, input, root->sort_pathkeys, &admission);
	if (admission.verified && wanted.first >= 0)
	{
		/* All rows are read, to be verified, before the first is emitted. */
		cost.order += cost.emit;
		cost.emit = 0;
	}
	else if (wanted.first >= 0)
		cost = gpusort_cost_of_first(cost, input->rows, wanted.first);
	scaled = gpusort_cost_scaled(cost, native_scale(root, input, root->sort_pathkeys, wanted, &admission));
	paths[npaths++] = gpusort_make_path(root, ordered_rel, input, root->sort_pathkeys, input->rows, scaled);
	if (input_rel->consider_parallel && input_rel->partial_pathlist != NIL)
	{
		Path *partial = linitial(input_rel->partial_pathlist);

		double scale = native_scale(root, partial, root->sort_pathkeys, wanted, &admission);

		scaled = gpusort_cost_scaled(cost, scale);
		scaled.setup += (Max(scale, 1) - 1) * parallel_setup_cost; /* Gather's cost has it once */
		paths[npaths++] = gpusort_make_parallel_path(root, ordered_rel, partial, root->sort_pathkeys, input->rows, scaled);
	}
	if (target != NULL) /* set operations have none */
	{
		for (int i = 0; i < npaths; i++)
		{
			if (paths[i]->pathtarget != target)
				paths[i] = apply_projection_to_path(root, ordered_rel, paths[i], target);
		}
	}
	if (enable_sort && wanted.first < 0 && wanted.estimated < 0 && gpusort_path_reads_shards_at_once(input))
	{
		const Path *merge = gpusort_find_merge_of_shards(ordered_rel);

		if (merge != NULL)
			gpusort_path_set_cost(paths[0], merge, gpusort_path_advantage(root, paths[0], merge));
	}
	if (gpusort_force)
	{
		ordered_rel->pathlist = NIL;
		ordered_rel->partial_pathlist = NIL;
	}
	for (int i = 0; i < npaths; i++)
		add_path(ordered_rel, paths[i]);
}

static void
create_upper_paths(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input_rel,
				   RelOptInfo *output_rel, void *extra)
{
	if (previous_create_upper_paths)
		previous_create_upper_paths(root, stage, input_rel, output_rel, extra);
	if (!gpusort_settings_enabled())
		return;
	switch (stage)
	{
		case UPPERREL_ORDERED:
			consider_gpusort(root, input_rel, output_rel);
			break;
		case UPPERREL_GROUP_AGG:
		case UPPERREL_SETOP:
		case UPPERREL_WINDOW:
		case UPPERREL_DISTINCT:
			gpusort_add_upper_paths(root, stage, input_rel, output_rel, extra);
			break;
		default:
			break;
	}
}

static void
add_join_paths(PlannerInfo *root, RelOptInfo *join_rel, RelOptInfo *outer_rel, RelOptInfo *inner_rel, JoinType type,
			   JoinPathExtraData *extra)
{
	if (previous_set_join_pathlist)
		previous_set_join_pathlist(root, join_rel, outer_rel, inner_rel, type, extra);
	/* Paths of an UPDATE's or DELETE's columns are not for custom scans: ROWID_VAR. */
	if (gpusort_settings_enabled() && root->parse->commandType == CMD_SELECT)
		gpusort_add_join_paths(root, join_rel, outer_rel, inner_rel, type, extra);
}

/* Returns false if the plan of parse has no Sort for sure: quickly, for short statements. */
static bool
may_sort(const Query *parse)
{
	return parse->sortClause != NIL || parse->groupClause != NIL || parse->groupingSets != NIL ||
		parse->distinctClause != NIL || parse->windowClause != NIL || parse->setOperations != NULL ||
		parse->cteList != NIL || parse->hasSubLinks || list_length(parse->rtable) > 1 ||
		(parse->rtable != NIL && linitial_node(RangeTblEntry, parse->rtable)->rtekind != RTE_RELATION);
}

/* Returns true if the reasons for what is decided are to be kept with the plan: for this EXPLAIN, or for later ones. */
static bool
keeps_decisions(struct ExplainState *explain)
{
#ifdef CAN_KEEP_WITH_PLAN
	return gpusort_log_decisions || gpusort_explain_option_is_on(explain);
#else
	return false;
#endif
}

/* Plans a statement, and puts GpuSort in the place of the Sorts that are left. */
static PlannedStmt *
plan_statement(PLANNER_PARAMETERS)
{
	bool sorts = gpusort_settings_enabled() && may_sort(parse);
	bool rescannable = sorts && !parse->hasModifyingCTE && !contain_volatile_functions((Node *) parse);
	PlannedStmt *stmt;

	if (previous_planner != NULL)
		stmt = previous_planner(PLANNER_ARGUMENTS);
	else
		stmt = standard_planner(PLANNER_ARGUMENTS);
	if (sorts)
	{
		GpuSortDecisions asked = {.log = gpusort_log_decisions, .keep = keeps_decisions(PLANNER_EXPLAIN)};
		GpuSortDecisions *decisions = asked.log || asked.keep ? &asked : NULL;

		gpusort_sort_nodes_replace(stmt, rescannable, decisions);
		gpusort_lift(stmt, cursor_options, decisions);
		gpusort_partial_ranges_settle(stmt);
		gpusort_junk_remove(stmt);
		if (asked.keep)
			KEEP_WITH_PLAN(stmt, makeDefElem(GPUSORT_KEPT_NAME, (Node *) asked.list, -1));
		Assert(gpusort_plan_ids_are_unique(stmt));
	}
	return stmt;
}

/* To be called once, at load. */
void
gpusort_planner_init(void)
{
#ifdef HAVE_EXPLAIN_OPTIONS
	gpusort_explain_option_init();
#endif
	previous_planner = planner_hook;
	planner_hook = plan_statement;
	previous_create_upper_paths = create_upper_paths_hook;
	create_upper_paths_hook = create_upper_paths;
	previous_set_join_pathlist = set_join_pathlist_hook;
	set_join_pathlist_hook = add_join_paths;
}
