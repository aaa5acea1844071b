/*-------------------------------------------------------------------------
 *
 * set_operations.c
 *	  INTERSECT and EXCEPT by sorting, with inputs that several processes can read.
 *
 * Up to PostgreSQL 17 a SetOp reads an Append of both sides, whose rows carry the
 * number of their side in a last column, and PostgreSQL makes no partial path of that:
 * here one is made of the sides' own.  From 18 on a SetOp has two inputs, each of
 * which is sorted for itself.  A side that is a subquery has partial paths of its own.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/offer/set_operations.h"

#include "miscadmin.h"
#include "optimizer/cost.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/tlist.h"
#include "plan/offer/paths.h"
#include "port/pg_bitutils.h"

/* Returns the same rows as append in parallel, for rel; NULL if one of its inputs has no path for that. */
Path *
gpusort_partial_append(PlannerInfo *root, RelOptInfo *rel, AppendPath *append)
{
	const bool consider_parallel = rel->consider_parallel;
	List *partial_paths = NIL;
	int workers = 0;
	Path *path;
	ListCell *cell;

	if (append->subpaths == NIL)
		return NULL;
	foreach(cell, append->subpaths)
	{
		const Path *side = lfirst(cell);
		Path *partial;

		if (!side->parent->consider_parallel || side->parent->partial_pathlist == NIL)
			return NULL;
		partial = linitial(side->parent->partial_pathlist);
		if (!partial->parallel_safe || !equal(partial->pathtarget->exprs, side->pathtarget->exprs))
			return NULL;
		workers = Max(workers, partial->parallel_workers);
		partial_paths = lappend(partial_paths, partial);
	}

	/* As PostgreSQL does it for an Append, since processes spread over the sides. */
	if (enable_parallel_append)
		workers = Max(workers, pg_leftmost_one_pos32(list_length(partial_paths)) + 1);
	workers = Min(workers, max_parallel_workers_per_gather);
	if (workers == 0)
		return NULL;
	/* PostgreSQL does not say so of the rel, as it makes no use of it; but each side is safe. */
	rel->consider_parallel = true;
	path = (Path *) CREATE_APPEND_PATH(root, rel, NIL, partial_paths, workers, enable_parallel_append);
	rel->consider_parallel = consider_parallel;
	path->pathtarget = append->path.pathtarget;
	return path;
}

/* Returns true if rows of a path can be sorted for a set operation by these clauses. */
static bool
is_sortable(List *clauses, const Path *path)
{
	return clauses != NIL && grouping_is_sortable(clauses) && path->pathtarget->sortgrouprefs != NULL;
}

/* By which columns they are sorted then; constants are none. */
static List *
side_pathkeys(PlannerInfo *root, List *clauses, const Path *path)
{
	return make_pathkeys_for_sortclauses(root, clauses, make_tlist_from_pathtarget(path->pathtarget));
}

#ifdef SET_OPERATIONS_READ_APPEND
static Path *
over_sorted(PlannerInfo *root, RelOptInfo *rel, const SetOpPath *path, bool parallel)
{
	Path *rows = path->subpath;
	Path *partial;
	Path *sorted;

	if (IsA(rows, SortPath))
		rows = ((SortPath *) rows)->subpath;
	if (!IsA(rows, AppendPath) || !is_sortable(path->distinctList, rows))
		return NULL;
	partial = parallel ? gpusort_partial_append(root, path->path.parent, (AppendPath *) rows) : NULL;
	sorted = gpusort_sorted_path(root, rel, rows, partial, side_pathkeys(root, path->distinctList, rows));
	if (sorted == NULL)
		return NULL;
	return (Path *) create_setop_path(root, rel, sorted, path->cmd, SETOP_SORTED, path->distinctList, path->flagColIdx,
									  -1, path->numGroups, path->path.rows);
}
#else
/*
 * A side's rows in order: as they are, if they come so; sorted by GpuSort; or by PostgreSQL, if they are not for it.
 * NULL if they cannot be sorted here.
 */
static Path *
sorted_side(PlannerInfo *root, const SetOpPath *path, const Path *side, bool parallel)
{
	RelOptInfo *rel = side->parent;
	Path *input = rel->cheapest_total_path;
	Path *partial = NULL;
	List *pathkeys;
	Path *sorted;

	if (!is_sortable(path->groupList, input))
		return NULL;
	pathkeys = side_pathkeys(root, path->groupList, input);
	/* The order of a subquery's rows is known in the columns of the result, too. */
	if (pathkeys_contained_in(pathkeys, input->pathkeys) ||
		(is_sortable(path->groupList, &path->path) &&
		 pathkeys_contained_in(side_pathkeys(root, path->groupList, &path->path), input->pathkeys)))
		return input;
	if (parallel)
		partial = IsA(input, AppendPath) ? gpusort_partial_append(root, rel, (AppendPath *) input)
										 : gpusort_partial_of(input);
	sorted = gpusort_sorted_path(root, rel, input, partial, pathkeys);
	return sorted != NULL ? sorted : (Path *) create_sort_path(root, rel, input, pathkeys, -1);
}

static Path *
over_sorted(PlannerInfo *root, RelOptInfo *rel, const SetOpPath *path, bool parallel)
{
	Path *left = sorted_side(root, path, path->leftpath, parallel);
	Path *right = sorted_side(root, path, path->rightpath, parallel);
	Path *sorted;

	if (left == NULL || right == NULL || (!gpusort_path_is_sort(left) && !gpusort_path_is_sort(right)))
		return NULL;
	sorted = (Path *) create_setop_path(root, rel, left, right, path->cmd, SETOP_SORTED, path->groupList,
										path->numGroups, path->path.rows);
	/* The left side's order, in the columns of the result. */
	if (is_sortable(path->groupList, sorted))
		sorted->pathkeys = side_pathkeys(root, path->groupList, sorted);
	return sorted;
}
#endif

/*
 * Returns a path that does what a set operation's path does, for rel, by sorting with GpuSort,
 * in parallel where asked for and possible; NULL if path is none, or there is none.  It may
 * compute other columns, as one side of another set operation.
 */
Path *
gpusort_sorted_set_operation(PlannerInfo *root, RelOptInfo *rel, Path *path, bool parallel)
{
	const Path *native = IsA(path, ProjectionPath) ? ((ProjectionPath *) path)->subpath : path;
	Path *sorted;

	if (!IsA(native, SetOpPath))
		return NULL;
	sorted = over_sorted(root, rel, (const SetOpPath *) native, parallel);
	if (sorted == NULL || native == path)
		return sorted;
	return apply_projection_to_path(root, rel, sorted, path->pathtarget);
}
