/*-------------------------------------------------------------------------
 *
 * set_operations.c
 *	  INTERSECT and EXCEPT by sorting, with an input that several processes can read.
 *
 * Up to PostgreSQL 17 a SetOp reads an Append of both sides, whose rows carry the
 * number of their side in a last column, and PostgreSQL makes no partial path of that:
 * here one is made of the sides' own.  From 18 on a SetOp has two inputs, each of
 * which is sorted for itself; those are left as they are.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/set_operations.h"

#include "miscadmin.h"
#include "optimizer/cost.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/tlist.h"
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

#ifdef SET_OPERATIONS_READ_APPEND
/* Fills in what a set operation's path reads; false if path is none, or does not compare rows by sorting. */
bool
gpusort_set_operation_input(PlannerInfo *root, const Path *path, GpuSortSetOpInput *input)
{
	const SetOpPath *setop = (const SetOpPath *) path;
	Path *rows;

	if (!IsA(path, SetOpPath) || setop->distinctList == NIL || !grouping_is_sortable(setop->distinctList))
		return false;
	rows = setop->subpath;
	if (IsA(rows, SortPath))
		rows = ((SortPath *) rows)->subpath;
	if (!IsA(rows, AppendPath))
		return false;
	input->rows = rows;
	input->partial = gpusort_partial_append(root, path->parent, (AppendPath *) rows);
	input->pathkeys = make_pathkeys_for_sortclauses(root, setop->distinctList,
													make_tlist_from_pathtarget(rows->pathtarget));
	return true;
}

/* Returns the like of a set operation's path, for rel, over its input in order. */
Path *
gpusort_set_operation_over(PlannerInfo *root, RelOptInfo *rel, const Path *path, Path *sorted)
{
	const SetOpPath *setop = (const SetOpPath *) path;

	return (Path *) create_setop_path(root, rel, sorted, setop->cmd, SETOP_SORTED, setop->distinctList,
									  setop->flagColIdx, -1, setop->numGroups, path->rows);
}
#else
bool
gpusort_set_operation_input(PlannerInfo *root, const Path *path, GpuSortSetOpInput *input)
{
	return false;
}

Path *
gpusort_set_operation_over(PlannerInfo *root, RelOptInfo *rel, const Path *path, Path *sorted)
{
	return NULL; /* never called */
}
#endif
