/*-------------------------------------------------------------------------
 *
 * planner.c
 *	  Where GpuSort goes into plans.
 *
 * At UPPERREL_ORDERED, where PostgreSQL puts a Sort on its cheapest input, paths of
 * GpuSort over the same input (paths.c) compete with it by cost.
 *
 * For windows, DISTINCT, GROUP BY and merge joins the cheapest path that PostgreSQL
 * has found is looked through: where it sorts, the same path with GpuSort in the
 * Sort's place is added.  That changes no choice between sorting and hashing, but
 * lets parallel processes ingest rows where PostgreSQL would sort in one.
 *
 * Last, GpuSort takes the place of the Sorts that the finished plan still has
 * (sort_nodes.c).
 *
 * What is not legal, or cannot win, is left to PostgreSQL; with
 * gpusort.log_decisions the log says why, once for each Sort that the finished plan keeps.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/planner.h"

#include "miscadmin.h"
#include "node.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"
#include "plan/admission.h"
#include "plan/cost.h"
#include "plan/junk.h"
#include "plan/lift.h"
#include "plan/paths.h"
#include "plan/rollup.h"
#include "plan/set_operations.h"
#include "plan/sort_nodes.h"
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

/* Asks whether input's rows may be sorted by the service. */
static GpuSortAdmission
admit_path(const Path *input, List *pathkeys)
{
	const GpuSortCandidate candidate = {
		.rows = input->rows,
		.width = input->pathtarget->width,
		.processes = 1,
		.pathkeys = pathkeys,
	};

	return gpusort_admit(&candidate);
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
	admission = admit_path(input, root->sort_pathkeys);
	if (admission.encodable == 0)
		return;

	wanted = wanted_rows(root, input->rows);
	cost = gpusort_path_cost(root, input, root->sort_pathkeys, &admission);
	scaled = gpusort_cost_scaled(cost, native_scale(root, input, root->sort_pathkeys, wanted, &admission));
	paths[npaths++] = gpusort_make_path(root, ordered_rel, input, root->sort_pathkeys, input->rows, scaled);
	if (input_rel->consider_parallel && input_rel->partial_pathlist != NIL)
	{
		Path *partial = linitial(input_rel->partial_pathlist);

		scaled = gpusort_cost_scaled(cost, native_scale(root, partial, root->sort_pathkeys, wanted, &admission));
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
	if (gpusort_force)
	{
		ordered_rel->pathlist = NIL;
		ordered_rel->partial_pathlist = NIL;
	}
	for (int i = 0; i < npaths; i++)
		add_path(ordered_rel, paths[i]);
}

/* Returns true if the path's target has the columns that it is to be sorted by. */
static bool
has_sort_columns(const Path *path, List *pathkeys)
{
	ListCell *key;
	ListCell *cell;

	foreach(key, pathkeys)
	{
		bool found = false;

		foreach(cell, lfirst_node(PathKey, key)->pk_eclass->ec_members)
		{
			if (list_member(path->pathtarget->exprs, lfirst_node(EquivalenceMember, cell)->em_expr))
				found = true;
		}
		if (!found)
			return false;
	}
	return true;
}

/* Returns true if partial gives path's rows in parallel, with what they are to be sorted by. */
static bool
may_ingest(const Path *path, const Path *partial, List *pathkeys)
{
	return equal(path->pathtarget->exprs, partial->pathtarget->exprs) && has_sort_columns(partial, pathkeys);
}

/*
 * The cheapest GpuSort path of input's rows, for rel, or NULL.  partial, if there
 * is one, gives the same rows in parallel.
 */
static Path *
sorted_path(PlannerInfo *root, RelOptInfo *rel, Path *input, Path *partial, List *pathkeys)
{
	GpuSortAdmission admission;
	GpuSortCost cost;
	Path *serial;
	Path *parallel;

	if (PATH_REQ_OUTER(input) != NULL)
		return NULL;
	admission = admit_path(input, pathkeys);
	if (admission.encodable == 0)
		return NULL;
	cost = gpusort_path_cost(root, input, pathkeys, &admission);
	serial = gpusort_make_path(root, rel, input, pathkeys, input->rows, cost);
	if (partial == NULL || !may_ingest(input, partial, pathkeys))
		return serial;
	parallel = gpusort_make_parallel_path(root, rel, partial, pathkeys, input->rows, cost);
	return parallel->total_cost < serial->total_cost ? parallel : serial;
}

/* The best partial path that gives the same rows as a path; NULL if there is none. */
static Path *
partial_of(const Path *path)
{
	const RelOptInfo *rel = path->parent;

	return rel->consider_parallel && rel->partial_pathlist != NIL ? linitial(rel->partial_pathlist) : NULL;
}

static Size
path_size(const Path *path)
{
	switch (nodeTag(path))
	{
		case T_ProjectionPath:
			return sizeof(ProjectionPath);
		case T_ProjectSetPath:
			return sizeof(ProjectSetPath);
		case T_GroupPath:
			return sizeof(GroupPath);
		case T_UpperUniquePath:
			return sizeof(UpperUniquePath);
		case T_AggPath:
			return sizeof(AggPath);
		case T_GroupingSetsPath:
			return sizeof(GroupingSetsPath);
		case T_WindowAggPath:
			return sizeof(WindowAggPath);
		default:
			return 0;
	}
}

/* The path with GpuSort in the place of the Sorts that it reads from; NULL if there are none to replace. */
static Path *
with_gpusort(PlannerInfo *root, Path *path)
{
	Size size = path_size(path);
	Path *copy;
	Path *below;
	Path *below_with;

	if (IsA(path, GatherMergePath) && IsA(((GatherMergePath *) path)->subpath, SortPath))
	{
		Path *partial = ((SortPath *) ((GatherMergePath *) path)->subpath)->subpath;
		GpuSortAdmission admission;
		GpuSortCost cost;

		if (!may_ingest(path, partial, path->pathkeys))
			return NULL;
		admission = admit_path(path, path->pathkeys);
		if (admission.encodable == 0)
			return NULL;
		cost = gpusort_path_cost(root, partial, path->pathkeys, &admission);
		return gpusort_make_parallel_path(root, path->parent, partial, path->pathkeys, path->rows, cost);
	}
	if (IsA(path, SortPath))
	{
		below = ((SortPath *) path)->subpath;
		below_with = with_gpusort(root, below);
		return sorted_path(root, path->parent, below_with != NULL ? below_with : below,
						   below_with != NULL ? NULL : partial_of(below), path->pathkeys);
	}
	if (size == 0)
		return NULL;

	/* All of these paths have what is below them in the same place. */
	below = ((ProjectionPath *) path)->subpath;
	below_with = with_gpusort(root, below);
	if (below_with == NULL)
		return NULL;
	copy = palloc(size);
	memcpy(copy, path, size);
	((ProjectionPath *) copy)->subpath = below_with;
	copy->parallel_safe = false;
	EXCHANGE_DISABLED_NODES(copy, below, below_with);
	copy->startup_cost += below_with->startup_cost - below->startup_cost;
	copy->total_cost += below_with->total_cost - below->total_cost;
	return copy;
}

/* Adds the like of a path of grouping sets with the grand total beside the groups, and those sorted by GpuSort. */
static void
consider_rollup(PlannerInfo *root, RelOptInfo *input_rel, RelOptInfo *output_rel, const GroupingSetsPath *sets,
				const GroupPathExtraData *extra)
{
	GpuSortRollup parts;
	Path *groups;

	if (!gpusort_parallel_output ||
		!gpusort_rollup_split(root, output_rel, input_rel, sets, extra->havingQual, &parts))
		return;
	groups = with_gpusort(root, &parts.groups->path);
	if (groups != NULL)
		add_path(output_rel, gpusort_rollup_join(root, output_rel, groups, parts.total));
}

/* Adds the like of INTERSECT's or EXCEPT's path, hashed or not, over GpuSort. */
static void
consider_set_operation(PlannerInfo *root, RelOptInfo *rel)
{
	GpuSortSetOpInput input;
	Path *sorted;

	if (rel->pathlist == NIL || !gpusort_set_operation_input(root, linitial(rel->pathlist), &input))
		return;
	sorted = sorted_path(root, rel, input.rows, input.partial, input.pathkeys);
	if (sorted != NULL)
		add_path(rel, gpusort_set_operation_over(root, rel, linitial(rel->pathlist), sorted));
}

/* Adds the cheapest path's like with GpuSort to an upper rel that may have been sorted for. */
static void
consider_upper(PlannerInfo *root, RelOptInfo *output_rel)
{
	Path *path;

	if (output_rel->pathlist == NIL)
		return;
	path = with_gpusort(root, linitial(output_rel->pathlist));
	if (path != NULL)
		add_path(output_rel, path);
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
			if (output_rel->pathlist != NIL && IsA(linitial(output_rel->pathlist), GroupingSetsPath))
				consider_rollup(root, input_rel, output_rel, linitial(output_rel->pathlist), extra);
			consider_upper(root, output_rel);
			break;
		case UPPERREL_SETOP:
			consider_set_operation(root, output_rel);
			break;
		case UPPERREL_WINDOW:
		case UPPERREL_DISTINCT:
			consider_upper(root, output_rel);
			break;
		default:
			break;
	}
}

/*
 * A merge join's input in order: GpuSort of it, if PostgreSQL would sort it.
 * Takes the cost of PostgreSQL's sort from the join's, and adds its own.
 */
static bool
sort_join_input(PlannerInfo *root, MergePath *join, Path **input, List **sort_keys)
{
	Path native;
	Path *path;

	if (*sort_keys == NIL)
		return false;
	path = sorted_path(root, (*input)->parent, *input, partial_of(*input), *sort_keys);
	if (path == NULL)
		return false;
	COST_SORT(&native, root, *sort_keys, *input, -1);
	EXCHANGE_DISABLED_NODES(&join->jpath.path, &native, path);
	join->jpath.path.startup_cost += path->startup_cost - native.startup_cost;
	join->jpath.path.total_cost += path->startup_cost - native.startup_cost;
	*input = path;
	*sort_keys = NIL;
	return true;
}

/* Adds the like with GpuSort of a merge join that is the cheapest join so far, and sorts. */
static void
consider_join(PlannerInfo *root, RelOptInfo *join_rel, RelOptInfo *outer_rel, RelOptInfo *inner_rel,
			  JoinType type, JoinPathExtraData *extra)
{
	MergePath *join;

	if (previous_set_join_pathlist)
		previous_set_join_pathlist(root, join_rel, outer_rel, inner_rel, type, extra);
	/* Paths of an UPDATE's or DELETE's columns are not for custom scans: ROWID_VAR. */
	if (!gpusort_settings_enabled() || root->parse->commandType != CMD_SELECT || join_rel->pathlist == NIL ||
		!IsA(linitial(join_rel->pathlist), MergePath) ||
		MERGE_PATH_IS_INCREMENTAL(linitial_node(MergePath, join_rel->pathlist)))
		return;
	join = makeNode(MergePath);
	*join = *linitial_node(MergePath, join_rel->pathlist);
	join->jpath.path.parallel_safe = false;
	if (sort_join_input(root, join, &join->jpath.outerjoinpath, &join->outersortkeys) |
		sort_join_input(root, join, &join->jpath.innerjoinpath, &join->innersortkeys))
		add_path(join_rel, &join->jpath.path);
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

/* Plans a statement, and puts GpuSort in the place of the Sorts that are left. */
static PlannedStmt *
plan_statement(Query *parse, const char *query_string, int cursor_options, ParamListInfo params)
{
	bool sorts = gpusort_settings_enabled() && may_sort(parse);
	bool rescannable = sorts && !parse->hasModifyingCTE && !contain_volatile_functions((Node *) parse);
	PlannedStmt *stmt;

	if (previous_planner != NULL)
		stmt = previous_planner(parse, query_string, cursor_options, params);
	else
		stmt = standard_planner(parse, query_string, cursor_options, params);
	if (sorts)
	{
		gpusort_sort_nodes_replace(stmt, rescannable);
		gpusort_lift(stmt, rescannable, cursor_options);
		gpusort_junk_remove(stmt);
	}
	return stmt;
}

/* To be called once, at load. */
void
gpusort_planner_init(void)
{
	previous_planner = planner_hook;
	planner_hook = plan_statement;
	previous_create_upper_paths = create_upper_paths_hook;
	create_upper_paths_hook = create_upper_paths;
	previous_set_join_pathlist = set_join_pathlist_hook;
	set_join_pathlist_hook = consider_join;
}
