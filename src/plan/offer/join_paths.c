/*-------------------------------------------------------------------------
 *
 * join_paths.c
 *	  Merge joins of what GpuSort has sorted, in the place of a join that PostgreSQL has chosen.
 *
 * PostgreSQL decides which relations are joined in which order.  A hash join, or a merge join that sorts,
 * can be done by a merge join of both sides sorted by GpuSort.
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
#include "optimizer/prep.h"
#include "optimizer/restrictinfo.h"
#include "optimizer/tlist.h"
#include "plan/offer/paths.h"
#include "plan/offer/ranges_path.h"
#include "settings.h"
#include "utils/selfuncs.h"

/* A join that another could take the place of. */
typedef struct JoinPlace
{
	PlannerInfo *root;
	RelOptInfo *rel;
	Path *outer;
	Path *inner;
	JoinType type;
	JoinPathExtraData extra;
	GpuSortJoinInput input;
} JoinPlace;

/* The path, with columns for sort keys that are computed; NULL if they cannot be computed here. */
static Path *
with_sort_columns(PlannerInfo *root, Path *path, List *pathkeys)
{
	PathTarget *target = path->pathtarget;
	ListCell *cell;

	foreach(cell, pathkeys)
	{
		EquivalenceClass *eclass = lfirst_node(PathKey, cell)->pk_eclass;
		EquivalenceMember *member =
			find_computable_ec_member(root, eclass, path->pathtarget->exprs, path->parent->relids, true);

		if (member == NULL)
			return NULL;
		if (gpusort_count_columns(target->exprs, member) > 0)
			continue;
		if (target == path->pathtarget)
			target = copy_pathtarget(target);
		add_column_to_pathtarget(target, (Expr *) copyObject(member->em_expr), 0);
	}
	if (target == path->pathtarget)
		return path;
	return (Path *) create_projection_path(root, path->parent, path, set_pathtarget_cost_width(root, target));
}

/* A side's rows in order: by GpuSort, if they do not come so. */
static Path *
sorted_side(const JoinPlace *join, Path *input, List *pathkeys)
{
	Path *partial = join->input == GPUSORT_JOIN_GATHERED ? gpusort_partial_of(input) : NULL;
	Path *rows = partial != NULL ? with_sort_columns(join->root, input, pathkeys) : input;

	if (pathkeys_contained_in(pathkeys, input->pathkeys))
		return input;
	if (partial != NULL)
		partial = with_sort_columns(join->root, partial, pathkeys);
	if (rows == NULL)
		rows = input;
	return gpusort_sorted_path(join->root, input->parent, rows, partial, pathkeys);
}

/*
 * Returns a path of the Sort that a merge join of PostgreSQL's has for one of its sides, where create_plan makes it
 * without one; NULL if the side comes in order, or there is no such path.
 */
Path *
gpusort_sorted_side_path(PlannerInfo *root, MergePath *join, bool outer)
{
	List *pathkeys = outer ? join->outersortkeys : join->innersortkeys;
	Path *side = outer ? join->jpath.outerjoinpath : join->jpath.innerjoinpath;

	if (pathkeys == NIL || (outer && MERGE_PATH_IS_INCREMENTAL(join)))
		return NULL;
	side = with_sort_columns(root, side, pathkeys);
	return side != NULL ? (Path *) create_sort_path(root, side->parent, side, pathkeys, -1) : NULL;
}

/* A side's rows in order, by GpuSort, of which all processes read ranges. */
static Path *
shared_side(const JoinPlace *join, Path *input, List *pathkeys)
{
	Path *partial = input->parallel_workers > 0 ? input : gpusort_partial_of(input);

	if (partial != NULL)
		partial = with_sort_columns(join->root, partial, pathkeys);
	return partial != NULL ? gpusort_shared_path(join->root, partial, pathkeys) : NULL;
}

/* Returns true if a clause compares a column of one side with one of the other, and notes which is which. */
static bool
is_between_sides(const JoinPlace *join, RestrictInfo *clause)
{
	if (bms_is_subset(clause->left_relids, join->outer->parent->relids) &&
		bms_is_subset(clause->right_relids, join->inner->parent->relids))
		clause->outer_is_left = true;
	else if (bms_is_subset(clause->left_relids, join->inner->parent->relids) &&
			 bms_is_subset(clause->right_relids, join->outer->parent->relids))
		clause->outer_is_left = false;
	else
		return false;
	return true;
}

/* The join's clauses that a merge join can use, as PostgreSQL selects them. */
static List *
merge_clauses(const JoinPlace *join)
{
	List *clauses = NIL;
	ListCell *cell;

	foreach(cell, join->extra.restrictlist)
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

/* Returns true if a full join has clauses besides those that it merges by, which it could not check. */
static bool
lacks_clauses(const JoinPlace *join, List *clauses)
{
	ListCell *cell;

	if (join->type != JOIN_FULL)
		return false;
	foreach(cell, join->extra.restrictlist)
	{
		RestrictInfo *clause = lfirst_node(RestrictInfo, cell);

		if (!RINFO_IS_PUSHED_DOWN(clause, join->rel->relids) && !list_member_ptr(clauses, clause))
			return true;
	}
	return false;
}

/* Returns true if a merge join may do what the join does, of sides with rows enough to sort. */
static bool
may_merge(const JoinPlace *join)
{
	const Path *outer = join->outer;
	const Path *inner = join->inner;

	if (!enable_sort || !MAY_MERGE_JOIN_REL(join->rel) || join->root->parse->commandType != CMD_SELECT)
		return false;
	if (join->type != JOIN_INNER && join->type != JOIN_LEFT && join->type != JOIN_FULL && join->type != JOIN_SEMI &&
		join->type != JOIN_ANTI)
		return false;
	if (PATH_REQ_OUTER(outer) != NULL || PATH_REQ_OUTER(inner) != NULL || join->rel->lateral_relids != NULL ||
		join->extra.restrictlist == NIL || IS_OTHER_REL(join->rel))
		return false;
	return gpusort_force || (outer->rows >= gpusort_min_rows && inner->rows >= gpusort_min_rows);
}

/* The join that a path does; one that keeps the inner side's rows is turned round. */
static JoinPlace
describe(PlannerInfo *root, JoinPath *path, SpecialJoinInfo *info, GpuSortJoinInput input)
{
	JoinPlace join = {
		.root = root,
		.rel = path->path.parent,
		.outer = path->outerjoinpath,
		.inner = path->innerjoinpath,
		.type = path->jointype,
		.extra = {.restrictlist = path->joinrestrictinfo, .inner_unique = path->inner_unique},
		.input = input,
	};

	if (TURNED_JOIN(path->jointype) != path->jointype)
	{
		join.outer = path->innerjoinpath;
		join.inner = path->outerjoinpath;
		join.type = TURNED_JOIN(path->jointype);
		join.extra.inner_unique = false;
	}
	*info = (SpecialJoinInfo){
		.type = T_SpecialJoinInfo,
		.jointype = join.type,
		.min_lefthand = join.outer->parent->relids,
		.min_righthand = join.inner->parent->relids,
		.syn_lefthand = join.outer->parent->relids,
		.syn_righthand = join.inner->parent->relids,
	};
	join.extra.sjinfo = info;
	TAKE_JOIN_STRATEGIES(&join.extra, join.rel);
	return join;
}

/*
 * Returns a merge join, of sides that GpuSort sorts, with such an ingest where it can be had, that gives the rows of
 * a join of PostgreSQL's; NULL if there is none, or nothing would be GpuSort's.
 */
Path *
gpusort_joined_path(PlannerInfo *root, JoinPath *native, GpuSortJoinInput input)
{
	SpecialJoinInfo info;
	JoinPlace join = describe(root, native, &info, input);
	Path *(*side)(const JoinPlace *, Path *, List *) = input == GPUSORT_JOIN_SHARED ? shared_side : sorted_side;
	JoinCostWorkspace workspace;
	List *clauses;
	List *outer_keys;
	Path *outer;
	Path *inner;

	if (!may_merge(&join))
		return NULL;
	clauses = merge_clauses(&join);
	if (clauses == NIL)
		return NULL;
	outer_keys = select_outer_pathkeys_for_merge(root, clauses, join.rel);
	clauses = find_mergeclauses_for_outer_pathkeys(root, outer_keys, clauses);
	if (lacks_clauses(&join, clauses))
		return NULL;
	outer = side(&join, join.outer, outer_keys);
	if (outer == NULL)
		return NULL;
	inner = side(&join, join.inner, make_inner_pathkeys_for_merge(root, clauses, outer_keys));
	if (inner == NULL || (!gpusort_path_is_sort(outer) && !gpusort_path_is_sort(inner)))
		return NULL;
	INITIAL_COST_MERGEJOIN(root, &workspace, join.type, clauses, outer, inner, &join.extra);
	return (Path *) CREATE_MERGEJOIN_PATH(root, join.rel, join.type, &workspace, &join.extra, outer, inner,
										  join.extra.restrictlist,
										  build_join_pathkeys(root, join.rel, join.type, outer_keys), clauses);
}

/*
 * A merge join in the place of a partial join, of ranges of both sides,
 * which all processes sort; NULL if there is none.
 */
static Path *
joined_ranges(PlannerInfo *root, JoinPath *native)
{
	Path *join = native->jointype != JOIN_FULL ? gpusort_joined_path(root, native, GPUSORT_JOIN_SHARED) : NULL;

	if (join == NULL)
		return NULL;
	((MergePath *) join)->materialize_inner = false;
	/* PostgreSQL takes the rel for unsafe now, if the query's columns are, which a Gather computes above all its paths. */
	join->parallel_safe = native->path.parallel_safe;
	if (!equal(join->pathtarget->exprs, native->path.pathtarget->exprs))
		join = apply_projection_to_path(root, join->parent, join, native->path.pathtarget);
	return join;
}

/* Returns a partial path of the rows of a partial join of PostgreSQL's, by ranges; NULL if there is none. */
Path *
gpusort_joined_ranges_path(PlannerInfo *root, JoinPath *native)
{
	Path *join = joined_ranges(root, native);

	return join != NULL ? gpusort_ranges_path(root, join->parent, join) : NULL;
}

/*
 * Returns a partial path of the groups of a partial aggregate of PostgreSQL's over a join, by ranges: each group from
 * one process, so that there is one of it to combine.  NULL if there is none, or the join by ranges, which may have
 * been made already, gives its rows in another order than that of the groups.
 *
 * If rows are sorted for the groups alone, it takes less time to make whole groups in all processes, which no Finalize
 * has to combine.  There is no path for that here.
 */
Path *
gpusort_grouped_ranges_path(PlannerInfo *root, const AggPath *native, bool ordered)
{
	RelOptInfo *rel = native->path.parent;
	Path *join = IsA(native->subpath, SortPath) ? ((SortPath *) native->subpath)->subpath : native->subpath;
	AggClauseCosts costs = {0};
	double groups;
	Path *path;

	if (native->aggsplit != AGGSPLIT_INITIAL_SERIAL || native->groupClause == NIL || root->group_pathkeys == NIL ||
		!grouping_is_sortable(native->groupClause))
		return NULL;
	if (gpusort_path_is_output(join))
		join = gpusort_partial_path_child(join);
	else if (IsA(join, HashPath) || IsA(join, MergePath))
		join = joined_ranges(root, (JoinPath *) join);
	else
		return NULL;
	if (join == NULL || !pathkeys_contained_in(root->group_pathkeys, join->pathkeys))
		return NULL;
	groups = estimate_num_groups(root, get_sortgrouplist_exprs(native->groupClause, root->processed_tlist),
								 join->parent->rows, NULL, NULL);
	get_agg_clause_costs(root, AGGSPLIT_INITIAL_SERIAL, &costs);
	path = (Path *) create_agg_path(root, rel, join, native->path.pathtarget, AGG_SORTED, AGGSPLIT_INITIAL_SERIAL,
									native->groupClause, native->qual, &costs,
									Max(groups * join->rows / join->parent->rows, 1));
	path = gpusort_ranges_path(root, rel, path);
	if (path != NULL && ordered)
		path = (Path *) create_sort_path(root, rel, path, native->path.pathkeys, -1);
	return path;
}
