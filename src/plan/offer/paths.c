/*-------------------------------------------------------------------------
 *
 * paths.c
 *	  The paths of GpuSort and GpuSortIngest, and the plans made of them.
 *
 * A CustomPath's child is a SortPath: from that, create_plan makes the finished
 * Sort plan, with its columns, operators and collations settled, of which the
 * CustomScan takes the place.
 *
 * A parallel sort is GpuSort over Gather over GpuSortIngest over a partial path.
 * Both custom nodes get their sort columns from a SortPath of their own; the target
 * list is the same from the partial path up, so the columns are, too.  No row goes
 * through Gather but in exceptions (ingest.c), so it is planned for none.
 *
 * A shared sort is GpuSort over a partial path, a partial path itself (ranges_path.c).
 *
 *-------------------------------------------------------------------------
 */
#include "plan/offer/paths.h"

#include "node.h"
#include "nodes/extensible.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "plan/offer/admission.h"

/*
 * The CustomScan that takes the place of the finished Sort.  Like a Sort, it passes
 * its child's rows on as they are.  What its columns refer to is settled when the
 * plan is finished (sort_nodes.c).
 */
static Plan *
replace_sort(PlannerInfo *root, CustomPath *path, List *custom_plans, const CustomScanMethods *methods)
{
	Sort *sort = linitial_node(Sort, custom_plans);
	CustomScan *scan = makeNode(CustomScan);

	scan->scan.plan.targetlist = sort->plan.targetlist;
	scan->scan.plan.lefttree = sort->plan.lefttree;
	scan->scan.scanrelid = 0;
	scan->flags = path->flags;
	scan->custom_scan_tlist = copyObject(scan->scan.plan.targetlist);
	scan->methods = methods;
	scan->custom_private = gpusort_plan_pack(sort);
	return &scan->scan.plan;
}

/* The PlanCustomPath callbacks */
static Plan *
plan_gpusort_path(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses,
				  List *custom_plans)
{
	return replace_sort(root, path, custom_plans, &gpusort_scan_methods);
}

static Plan *
plan_ingest_path(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses,
				 List *custom_plans)
{
	return replace_sort(root, path, custom_plans, &gpusort_ingest_scan_methods);
}

static const CustomPathMethods path_methods = {
	.CustomName = GPUSORT_NODE_NAME,
	.PlanCustomPath = plan_gpusort_path,
};

static const CustomPathMethods ingest_path_methods = {
	.CustomName = GPUSORT_INGEST_NODE_NAME,
	.PlanCustomPath = plan_ingest_path,
};

/* A path of one of the two nodes over input, without its costs. */
static CustomPath *
make_custom_path(PlannerInfo *root, RelOptInfo *rel, Path *input, List *pathkeys,
				 const CustomPathMethods *methods)
{
	CustomPath *path = (CustomPath *) newNode(sizeof(GpuSortPath), T_CustomPath);

	path->path.pathtype = T_CustomScan;
	path->path.parent = rel;
	path->path.pathtarget = input->pathtarget;
	INHERIT_DISABLED_NODES(&path->path, input);
	path->custom_paths = list_make1(create_sort_path(root, rel, input, pathkeys, -1));
	path->methods = methods;
	return path;
}

/* Returns true if path is one of GpuSort, a GpuSortPath. */
bool
gpusort_path_is_sort(const Path *path)
{
	return IsA(path, CustomPath) && ((const CustomPath *) path)->methods == &path_methods;
}

/*
 * Returns a path of GpuSort over input, for rel: so many rows, in the order of
 * pathkeys, at the cost of input and cost.  enable_sort = off counts against it as
 * against a Sort.
 */
Path *
gpusort_make_path(PlannerInfo *root, RelOptInfo *rel, Path *input, List *pathkeys, double rows, GpuSortCost cost)
{
	CustomPath *path = make_custom_path(root, rel, input, pathkeys, &path_methods);
	GpuSortPath *sort = (GpuSortPath *) path;

	path->path.rows = rows;
	path->path.startup_cost = input->total_cost + cost.setup + (cost.ingest + cost.order + cost.compare) * rows;
	path->path.total_cost = path->path.startup_cost + cost.emit * rows;
	if (!enable_sort)
		DISABLE_PATH(&path->path);
	path->path.pathkeys = pathkeys;
	path->flags = CUSTOMPATH_SUPPORT_BACKWARD_SCAN | CUSTOMPATH_SUPPORT_MARK_RESTORE;
	sort->input = input;
	sort->cost = cost;
	return &path->path;
}

/* The same over Gather over GpuSortIngest over a partial path; rows is what all processes have together. */
Path *
gpusort_make_parallel_path(PlannerInfo *root, RelOptInfo *rel, Path *partial, List *pathkeys, double rows,
						   GpuSortCost cost)
{
	CustomPath *ingest = make_custom_path(root, rel, partial, pathkeys, &ingest_path_methods);
	GpuSortCost leader_cost = cost;
	double rows_gathered = 0;
	GatherPath *gather;
	GpuSortPath *sort;

	ingest->path.parallel_aware = true;
	ingest->path.parallel_safe = true;
	ingest->path.parallel_workers = partial->parallel_workers;
	ingest->path.rows = rows_gathered;
	ingest->path.startup_cost = partial->total_cost + cost.ingest * partial->rows;
	ingest->path.total_cost = ingest->path.startup_cost;
	gather = create_gather_path(root, rel, &ingest->path, ingest->path.pathtarget, NULL, &rows_gathered);
	leader_cost.ingest = 0;
	sort = (GpuSortPath *) gpusort_make_path(root, rel, &gather->path, pathkeys, rows, leader_cost);
	sort->input = partial;
	sort->gathered = true;
	sort->cost = cost;
	return &sort->custom.path;
}

/*
 * Returns a path of GpuSort over a partial path, whose rows all processes read by ranges, each of them a part of those in
 * order: only below a path that gpusort_ranges_path knows.  rows is what all processes have together.
 */
Path *
gpusort_make_shared_path(PlannerInfo *root, RelOptInfo *rel, Path *partial, List *pathkeys, double rows, GpuSortCost cost)
{
	CustomPath *path = make_custom_path(root, rel, partial, pathkeys, &path_methods);
	GpuSortPath *sort = (GpuSortPath *) path;

	path->path.parallel_aware = true;
	path->path.parallel_safe = true;
	path->path.parallel_workers = partial->parallel_workers;
	path->path.rows = partial->rows;
	path->path.startup_cost = partial->total_cost + cost.setup + cost.ingest * partial->rows + cost.order * rows;
	path->path.total_cost = path->path.startup_cost + (cost.emit + cost.compare) * partial->rows;
	if (!enable_sort)
		DISABLE_PATH(&path->path);
	path->path.pathkeys = pathkeys;
	path->flags = CUSTOMPATH_SUPPORT_MARK_RESTORE;
	sort->input = partial;
	sort->shared = true;
	sort->cost = cost;
	return &path->path;
}

/* Asks whether input's rows may be sorted by the service. */
GpuSortAdmission
gpusort_admit_path(const Path *input, List *pathkeys)
{
	const GpuSortCandidate candidate = {
		.rows = input->rows,
		.width = input->pathtarget->width,
		.processes = 1,
		.pathkeys = pathkeys,
	};

	return gpusort_admit(&candidate);
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

/* The best partial path that gives the same rows as a path; NULL if there is none. */
Path *
gpusort_partial_of(const Path *path)
{
	const RelOptInfo *rel = path->parent;

	/* Its rows are not the rel's, but each value's once: the processes would have it once each. */
	if (IsA(path, UniquePath))
		return NULL;
	if (IsA(path, GatherPath) && !((const GatherPath *) path)->single_copy)
		return ((const GatherPath *) path)->subpath;
	return rel->consider_parallel && rel->partial_pathlist != NIL ? linitial(rel->partial_pathlist) : NULL;
}

/*
 * Returns a GpuSort path of input's rows, for rel, or NULL: with the ingest of partial, if there is such a path
 * and it gives the same rows.
 */
Path *
gpusort_sorted_path(PlannerInfo *root, RelOptInfo *rel, Path *input, Path *partial, List *pathkeys)
{
	GpuSortAdmission admission;
	GpuSortCost cost;

	if (PATH_REQ_OUTER(input) != NULL)
		return NULL;
	admission = gpusort_admit_path(input, pathkeys);
	if (admission.encodable == 0)
		return NULL;
	cost = gpusort_path_cost(root, input, pathkeys, &admission);
	if (partial != NULL && MAY_GATHER(rel) && MAY_GATHER(partial->parent) && may_ingest(input, partial, pathkeys))
		return gpusort_make_parallel_path(root, rel, partial, pathkeys, input->rows, cost);
	return gpusort_make_path(root, rel, input, pathkeys, input->rows, cost);
}
