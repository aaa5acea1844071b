/*-------------------------------------------------------------------------
 *
 * join_paths.c
 *	  Merge joins of what GpuSort has sorted.
 *
 * Two kinds of paths are offered beside PostgreSQL's: its cheapest path's like, if that is a
 * merge join that sorts, with GpuSort in the Sorts' place; and a merge join of both
 * inputs in an order of GpuSort's, where PostgreSQL's cheapest path may be a hash join, in
 * one process or in all.  What each takes decides (path_time.c).
 *
 *-------------------------------------------------------------------------
 */
#include "plan/offer/join_paths.h"

#include "miscadmin.h"
#include "node.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "optimizer/tlist.h"
#include "plan/model/path_time.h"
#include "plan/offer/paths.h"
#include "plan/offer/ranges_path.h"
#include "settings.h"

bool gpusort_partial_trial = false;

/* A join for which paths are looked for. */
typedef struct JoinOffer
{
	PlannerInfo *root;
	RelOptInfo *rel;
	RelOptInfo *outer;
	RelOptInfo *inner;
	JoinType type;
	JoinPathExtraData *extra;
	bool parallel; /* with parallel ingest, where it can be had */
} JoinOffer;

/* The path with columns for what it is to be sorted by, if that is computed; NULL if it cannot be computed here. */
static Path *
with_sort_columns(const JoinOffer *join, Path *path, List *pathkeys)
{
	PathTarget *target = path->pathtarget;
	ListCell *cell;

	foreach(cell, pathkeys)
	{
		EquivalenceClass *eclass = lfirst_node(PathKey, cell)->pk_eclass;
		EquivalenceMember *member =
			find_computable_ec_member(join->root, eclass, path->pathtarget->exprs, path->parent->relids, false);

		if (member == NULL)
			return NULL;
		if (list_member(target->exprs, member->em_expr))
			continue;
		if (target == path->pathtarget)
			target = copy_pathtarget(target);
		add_column_to_pathtarget(target, (Expr *) copyObject(member->em_expr), 0);
	}
	if (target == path->pathtarget)
		return path;
	return (Path *) create_projection_path(join->root, path->parent, path,
										   set_pathtarget_cost_width(join->root, target));
}

/* GpuSort of a join's input. */
static Path *
sorted_input(const JoinOffer *join, RelOptInfo *rel, Path *input, List *pathkeys)
{
	Path *partial = join->parallel ? gpusort_partial_of(input) : NULL;
	Path *rows = partial != NULL ? with_sort_columns(join, input, pathkeys) : input;

	if (partial != NULL)
		partial = with_sort_columns(join, partial, pathkeys);
	if (rows == NULL)
		rows = input;
	return gpusort_sorted_path(join->root, rel, rows, partial, pathkeys);
}

/*
 * A merge join's input in order: GpuSort of it, if PostgreSQL would sort it.
 * Takes the cost of PostgreSQL's sort from the join's, and adds its own.
 */
static bool
sort_join_input(const JoinOffer *join, MergePath *path, Path **input, List **sort_keys)
{
	Path native;
	Path *sorted;

	if (*sort_keys == NIL)
		return false;
	sorted = sorted_input(join, (*input)->parent, *input, *sort_keys);
	if (sorted == NULL)
		return false;
	COST_SORT(&native, join->root, *sort_keys, *input, -1);
	EXCHANGE_DISABLED_NODES(&path->jpath.path, &native, sorted);
	path->jpath.path.startup_cost += sorted->startup_cost - native.startup_cost;
	path->jpath.path.total_cost += sorted->startup_cost - native.startup_cost;
	*input = sorted;
	*sort_keys = NIL;
	return true;
}

/* The like of a merge join with GpuSort in the place of its Sorts; NULL if path is none, or there are none. */
static Path *
with_gpusort(const JoinOffer *join, const Path *path)
{
	MergePath *copy;

	if (!IsA(path, MergePath) || MERGE_PATH_IS_INCREMENTAL((const MergePath *) path))
		return NULL;
	copy = makeNode(MergePath);
	*copy = *(const MergePath *) path;
	copy->jpath.path.parallel_safe = false;
	if (!(sort_join_input(join, copy, &copy->jpath.outerjoinpath, &copy->outersortkeys) |
		  sort_join_input(join, copy, &copy->jpath.innerjoinpath, &copy->innersortkeys)))
		return NULL;
	return &copy->jpath.path;
}

/* Returns true if a clause compares a column of one side with one of the other, and notes which is which. */
static bool
is_between_sides(const JoinOffer *join, RestrictInfo *clause)
{
	if (bms_is_subset(clause->left_relids, join->outer->relids) && bms_is_subset(clause->right_relids, join->inner->relids))
		clause->outer_is_left = true;
	else if (bms_is_subset(clause->left_relids, join->inner->relids) &&
			 bms_is_subset(clause->right_relids, join->outer->relids))
		clause->outer_is_left = false;
	else
		return false;
	return true;
}

/* The join's clauses that a merge join can use, as PostgreSQL selects them. */
static List *
merge_clauses(const JoinOffer *join)
{
	List *clauses = NIL;
	ListCell *cell;

	foreach(cell, join->extra->restrictlist)
	{
		RestrictInfo *clause = lfirst_node(RestrictInfo, cell);

		if (IS_OUTER_JOIN(join->type) && RINFO_IS_PUSHED_DOWN(clause, join->rel->relids))
			continue;
		if (!clause->can_join || clause->mergeopfamilies == NIL || !is_between_sides(join, clause))
			continue;
		update_mergeclause_eclasses(join->root, clause);
		if (!EC_MUST_BE_REDUNDANT(clause->left_ec) && !EC_MUST_BE_REDUNDANT(clause->right_ec))
			clauses = lappend(clauses, clause);
	}
	return clauses;
}

/* A merge join of both inputs sorted by GpuSort; NULL if there is none. */
static Path *
merge_join(const JoinOffer *join)
{
	PlannerInfo *root = join->root;
	JoinCostWorkspace workspace;
	List *clauses = merge_clauses(join);
	List *outer_keys;
	Path *outer;
	Path *inner;

	if (clauses == NIL)
		return NULL;
	outer_keys = select_outer_pathkeys_for_merge(root, clauses, join->rel);
	clauses = find_mergeclauses_for_outer_pathkeys(root, outer_keys, clauses);
	outer = sorted_input(join, join->outer, join->outer->cheapest_total_path, outer_keys);
	if (outer == NULL)
		return NULL;
	inner = sorted_input(join, join->inner, join->inner->cheapest_total_path,
						 make_inner_pathkeys_for_merge(root, clauses, outer_keys));
	if (inner == NULL)
		return NULL;
	INITIAL_COST_MERGEJOIN(root, &workspace, join->type, clauses, outer, inner, join->extra);
	return (Path *) CREATE_MERGEJOIN_PATH(root, join->rel, join->type, &workspace, join->extra, outer, inner,
										  join->extra->restrictlist,
										  build_join_pathkeys(root, join->rel, join->type, outer_keys), clauses);
}

/* For trial: a partial path's rows in order, all processes reading them. */
static Path *
shared_input(const JoinOffer *join, RelOptInfo *rel, List *pathkeys)
{
	Path *input = rel->cheapest_total_path;
	Path *partial = rel->consider_parallel && rel->partial_pathlist != NIL ? linitial(rel->partial_pathlist) : NULL;
	GpuSortAdmission admission;

	if (partial == NULL || !partial->parallel_safe || partial->parallel_workers == 0)
		return NULL;
	partial = with_sort_columns(join, partial, pathkeys);
	if (partial == NULL)
		return NULL;
	admission = gpusort_admit_path(input, pathkeys);
	if (admission.encodable == 0)
		return NULL;
	return gpusort_make_shared_path(join->root, rel, partial, pathkeys, input->rows,
									gpusort_path_cost(join->root, input, pathkeys, &admission));
}

/* For trial: adds the merge join of ranges to the join's partial paths, at a cost that wins; false if there is none. */
static bool
try_partial_join(const JoinOffer *join)
{
	PlannerInfo *root = join->root;
	JoinCostWorkspace workspace;
	List *clauses = merge_clauses(join);
	List *outer_keys;
	Path *outer;
	Path *inner;
	Path *path;

	if (clauses == NIL || !join->rel->consider_parallel)
		return false;
	outer_keys = select_outer_pathkeys_for_merge(root, clauses, join->rel);
	clauses = find_mergeclauses_for_outer_pathkeys(root, outer_keys, clauses);
	outer = shared_input(join, join->outer, outer_keys);
	inner = shared_input(join, join->inner, make_inner_pathkeys_for_merge(root, clauses, outer_keys));
	if (outer == NULL || inner == NULL)
		return false;
	INITIAL_COST_MERGEJOIN(root, &workspace, join->type, clauses, outer, inner, join->extra);
	path = (Path *) CREATE_MERGEJOIN_PATH(root, join->rel, join->type, &workspace, join->extra, outer, inner,
										  join->extra->restrictlist,
										  build_join_pathkeys(root, join->rel, join->type, outer_keys), clauses);
	path = gpusort_ranges_path(root, join->rel, path);
	if (path == NULL)
		return false;
	path->startup_cost = path->total_cost = ((Path *) linitial(join->rel->pathlist))->total_cost / 1000;
	add_partial_path(join->rel, path);
	return true;
}

/* Returns true if both inputs have a path that is no business of other rels, of rows enough to sort. */
static bool
has_inputs(const JoinOffer *join)
{
	const Path *outer = join->outer->cheapest_total_path;
	const Path *inner = join->inner->cheapest_total_path;

	return enable_sort && MAY_MERGE_JOIN(join->extra) && (join->type == JOIN_INNER || join->type == JOIN_LEFT || join->type == JOIN_SEMI || join->type == JOIN_ANTI) &&
		outer != NULL && inner != NULL && PATH_REQ_OUTER(outer) == NULL && PATH_REQ_OUTER(inner) == NULL &&
		join->rel->lateral_relids == NULL && join->extra->restrictlist != NIL && !IS_OTHER_REL(join->rel) &&
		(gpusort_force || (outer->rows >= gpusort_min_rows && inner->rows >= gpusort_min_rows));
}

/* What PostgreSQL would most likely do with the join alone: its cheapest path, of one process or of all. */
static Path *
native_path(const JoinOffer *join)
{
	Path *serial = join->rel->pathlist != NIL ? linitial(join->rel->pathlist) : NULL;
	Path *parallel;

	if (!join->rel->consider_parallel || join->rel->partial_pathlist == NIL)
		return serial;
	parallel = (Path *) create_gather_path(join->root, join->rel, linitial(join->rel->partial_pathlist),
										   join->rel->reltarget, NULL, NULL);
	return serial == NULL || parallel->total_cost < serial->total_cost ? parallel : serial;
}

/* Adds the best path over GpuSort of a join that has all of PostgreSQL's paths, if there is one. */
void
gpusort_add_join_paths(PlannerInfo *root, RelOptInfo *join_rel, RelOptInfo *outer_rel, RelOptInfo *inner_rel,
					   JoinType type, JoinPathExtraData *extra)
{
	JoinOffer join = {.root = root, .rel = join_rel, .outer = outer_rel, .inner = inner_rel, .type = type, .extra = extra};
	Path *best = NULL;
	double best_advantage = 0;
	Path *native;

	if (join_rel->pathlist == NIL || (!has_inputs(&join) && !IsA(linitial(join_rel->pathlist), MergePath)))
		return;
	if (gpusort_partial_trial && gpusort_force && has_inputs(&join) && try_partial_join(&join))
		return;
	native = native_path(&join);
	for (int parallel = 1; parallel >= 0; parallel--)
	{
		Path *candidates[2] = {NULL, NULL};

		join.parallel = parallel;
		candidates[0] = with_gpusort(&join, linitial(join_rel->pathlist));
		if (has_inputs(&join))
			candidates[1] = merge_join(&join);
		for (int i = 0; i < 2; i++)
		{
			double advantage = candidates[i] != NULL ? gpusort_path_advantage(root, candidates[i], native) : 0;

			if (advantage > 0 && (best == NULL || MORE_DISABLED_NODES(best, candidates[i]) > 0 || (MORE_DISABLED_NODES(best, candidates[i]) == 0 && advantage > best_advantage)))
			{
				best = candidates[i];
				best_advantage = advantage;
			}
		}
	}
	if (best == NULL)
		return;
	gpusort_path_set_cost(best, native, best_advantage);
	if (IsA(native, GatherPath))
		gpusort_path_raise_cost(root, best, ((GatherPath *) native)->subpath);
	add_path(join_rel, best);
}
