/*-------------------------------------------------------------------------
 *
 * path_tree.c
 *	  Finds its way in trees of paths, GpuSort's own among them.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/offer/path_tree.h"

#include "optimizer/paths.h"
#include "plan/offer/paths.h"

#define ONE_CHILD(type)                                                                               \
	do                                                                                                \
	{                                                                                                 \
		StaticAssertStmt(offsetof(type, subpath) == offsetof(ProjectionPath, subpath), "one layout"); \
		children.size = sizeof(type);                                                                 \
		children.links[0] = &((type *) path)->subpath;                                                \
	} while (0)

/* Returns true if a path joins two others. */
bool
gpusort_path_is_join(const Path *path)
{
	return IsA(path, NestPath) || IsA(path, MergePath) || IsA(path, HashPath);
}

/* Returns true if a path reads all rows once for each order of its aggregates (orders_apart.c). */
bool
gpusort_path_reads_again(const Path *path)
{
	if (IsA(path, ProjectionPath))
		return gpusort_path_reads_again(((const ProjectionPath *) path)->subpath);
	return IS_UPPER_REL(path->parent) && IsA(path, NestPath);
}

/* Returns where a path has what is below it: size is 0 if nobody needs to go through it. */
GpuSortPathChildren
gpusort_path_children(Path *path)
{
	GpuSortPathChildren children = {0};

	switch (nodeTag(path))
	{
		case T_ProjectionPath:
			ONE_CHILD(ProjectionPath);
			break;
		case T_ProjectSetPath:
			ONE_CHILD(ProjectSetPath);
			break;
		case T_SortPath:
			ONE_CHILD(SortPath);
			break;
		case T_IncrementalSortPath:
			children.size = sizeof(IncrementalSortPath);
			children.links[0] = &((IncrementalSortPath *) path)->spath.subpath;
			break;
		case T_GroupPath:
			ONE_CHILD(GroupPath);
			break;
		case T_UpperUniquePath:
			ONE_CHILD(UpperUniquePath);
			break;
		case T_AggPath:
			ONE_CHILD(AggPath);
			break;
		case T_GroupingSetsPath:
			ONE_CHILD(GroupingSetsPath);
			break;
		case T_WindowAggPath:
			ONE_CHILD(WindowAggPath);
			break;
		case T_LimitPath:
			ONE_CHILD(LimitPath);
			break;
		case T_LockRowsPath:
			ONE_CHILD(LockRowsPath);
			break;
		case T_ModifyTablePath:
			ONE_CHILD(ModifyTablePath);
			break;
		case T_MaterialPath:
			ONE_CHILD(MaterialPath);
			break;
		case T_SubqueryScanPath:
			ONE_CHILD(SubqueryScanPath);
			break;
		case T_SetOpPath:
			children.size = sizeof(SetOpPath);
#ifdef SET_OPERATIONS_READ_APPEND
			children.links[0] = &((SetOpPath *) path)->subpath;
#else
			children.links[0] = &((SetOpPath *) path)->leftpath;
			children.links[1] = &((SetOpPath *) path)->rightpath;
#endif
			break;
		case T_NestPath:
			children.size = sizeof(NestPath);
			break;
		case T_GatherPath:
			ONE_CHILD(GatherPath);
			break;
		case T_GatherMergePath:
			ONE_CHILD(GatherMergePath);
			break;
		case T_MergePath:
			children.size = sizeof(MergePath);
			break;
		case T_HashPath:
			children.size = sizeof(HashPath);
			break;
		case T_AppendPath:
			children.size = sizeof(AppendPath);
			children.list = &((AppendPath *) path)->subpaths;
			break;
		case T_MergeAppendPath:
			children.size = sizeof(MergeAppendPath);
			children.list = &((MergeAppendPath *) path)->subpaths;
			break;
		default:
			break;
	}
	if (gpusort_path_is_join(path))
	{
		children.links[0] = &((JoinPath *) path)->outerjoinpath;
		children.links[1] = &((JoinPath *) path)->innerjoinpath;
	}
	return children;
}

/*
 * Returns true if a path gives rows while it reads a child, with link 0 or 1, or in a list (2): the child is read only
 * as far as the path is.
 */
bool
gpusort_path_passes_rows(const Path *path, const Path *child, int link)
{
	switch (nodeTag(path))
	{
		case T_ProjectionPath:
		case T_ProjectSetPath:
		case T_SubqueryScanPath:
		case T_LockRowsPath:
		case T_IncrementalSortPath:
		case T_GroupPath:
		case T_UpperUniquePath:
		case T_WindowAggPath:
		case T_GatherPath:
		case T_GatherMergePath:
		case T_AppendPath:
			return true;
		case T_AggPath:
			return ((const AggPath *) path)->aggstrategy == AGG_SORTED;
		case T_MergeAppendPath:
			return pathkeys_contained_in(path->pathkeys, child->pathkeys);
		case T_NestPath:
			return link == 0;
		case T_HashPath:
			return link == 0 && !path->parallel_aware;
		case T_MergePath:
			return link == 0 ? ((const MergePath *) path)->outersortkeys == NIL
							 : ((const MergePath *) path)->innersortkeys == NIL;
		default:
			return false;
	}
}

/*
 * Returns true if a path of PostgreSQL's gives rows while it reads, down to its scans, so that who wants the first rows
 * alone has them for a part of its cost: an index's order, say.  It is not known of foreign scans that are sorted
 * elsewhere.
 */
bool
gpusort_path_streams(const Path *path)
{
	const GpuSortPathChildren children = gpusort_path_children((Path *) path);
	ListCell *cell;

	switch (nodeTag(path))
	{
		case T_Path:
		case T_IndexPath:
		case T_BitmapHeapPath:
		case T_TidPath:
		case T_TidRangePath:
			return !IS_UPPER_REL(path->parent);
		case T_ForeignPath:
			return path->pathkeys == NIL;
		default:
			break;
	}
	if (children.size == 0)
		return false;
	/* How a nested loop or a hash join reads its inner side does not matter. */
	for (int i = 0; i < (IsA(path, MergePath) ? 2 : 1); i++)
	{
		const Path *child = children.links[i] != NULL ? *children.links[i] : NULL;

		if (child != NULL && (!gpusort_path_passes_rows(path, child, i) || !gpusort_path_streams(child)))
			return false;
	}
	foreach(cell, children.list != NULL ? *children.list : NIL)
	{
		if (!gpusort_path_passes_rows(path, lfirst(cell), 2) || !gpusort_path_streams(lfirst(cell)))
			return false;
	}
	return true;
}

/* Returns the path that a path reads; NULL if there is none, or several. */
const Path *
gpusort_path_only_child(const Path *path)
{
	GpuSortPathChildren children;

	if (IsA(path, MemoizePath))
		return ((const MemoizePath *) path)->subpath;
	if (gpusort_path_is_output(path) || gpusort_path_is_groups(path))
		return gpusort_partial_path_child(path);
	if (IsA(path, CustomPath))
		return gpusort_path_is_sort(path) ? ((const GpuSortPath *) path)->input : NULL;
	children = gpusort_path_children((Path *) path);
	return children.links[0] != NULL && children.links[1] == NULL ? *children.links[0] : NULL;
}

/* Adds the rels that a path joins to a list, each once: all of them, or those that it joins in several processes. */
List *
gpusort_path_add_joins(List *joins, const Path *path, bool partial_only)
{
	const Path *child = gpusort_path_only_child(path);
	GpuSortPathChildren children;
	ListCell *cell;

	if (IsA(path, GatherPath) || IsA(path, GatherMergePath) ||
		(gpusort_path_is_sort(path) && ((const GpuSortPath *) path)->gathered))
		partial_only = false;
	if (child != NULL)
		return gpusort_path_add_joins(joins, child, partial_only);
	children = gpusort_path_children((Path *) path);
	if (children.links[0] != NULL)
	{
		if (!IS_UPPER_REL(path->parent) && !partial_only)
			joins = list_append_unique_ptr(joins, path->parent);
		joins = gpusort_path_add_joins(gpusort_path_add_joins(joins, *children.links[0], partial_only),
									   *children.links[1], partial_only);
	}
	foreach(cell, children.list != NULL ? *children.list : NIL)
		joins = gpusort_path_add_joins(joins, lfirst(cell), partial_only);
	return joins;
}
