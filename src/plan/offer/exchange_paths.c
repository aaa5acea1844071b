/*-------------------------------------------------------------------------
 *
 * exchange_paths.c
 *	  Paths of what all processes do above sorts, range by range.
 *
 * When the path of a query is chosen, its time says which nodes above a GpuSort run by ranges of the sorted rows
 * (path_time.c).  Their Gather moves above them:
 *
 *	  WindowAgg					GpuSortExchange
 *	    GpuSort			->		  Gather
 *	      Gather				    GpuSortOutput
 *	        GpuSortIngest		      WindowAgg
 *	          partial plan			    GpuSort
 *									      partial plan
 *
 * So PostgreSQL makes the plan, and finds out what its nodes depend on.  Of several Gathers, below a merge join, one is
 * left, with as many workers as any of them had.
 *
 * An aggregate of all rows, which can be put together from those of ranges, stays above, and reads what it needs of
 * each range: a path of groups stands for that below GpuSortOutput, where the finished plan has a part of the aggregate
 * (finish/ranges.c).
 *
 * A LIMIT of few rows, over a sort by something else of what runs by ranges, comes in both places: processes pass the
 * first rows of each range on, by that order.
 *
 * InitPlans of a subquery that is below GpuSortExchange become the query's around it, so that the leader runs them,
 * before workers start.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/offer/exchange_paths.h"

#include "catalog/pg_type_d.h"
#include "facts/limits.h"
#include "facts/parallel_safety.h"
#include "nodes/bitmapset.h"
#include "nodes/makefuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "plan/model/shape.h"
#include "plan/offer/path_tree.h"
#include "plan/offer/paths.h"
#include "settings.h"

/* Into how many ranges rows are thought to be cut, where that has to be known before. */
#define RANGES_GUESSED 256

/* What all processes are to do. */
typedef struct Sharing
{
	PlannerInfo *root; /* the query that the GpuSortExchange is of */
	int workers;       /* as many as any of the sorts has */
	double processes;  /* that share the rows, as the planner counts the leader */
} Sharing;

/* Returns the first GpuSort that a path reads; NULL if there is none. */
static const GpuSortPath *
first_sort(const Path *path)
{
	while (path != NULL && (!gpusort_path_is_sort(path) || ((const GpuSortPath *) path)->by_range))
	{
		GpuSortPathChildren children = gpusort_path_children((Path *) path);

		path = gpusort_path_is_sort(path) ? gpusort_path_input(path)
			: children.links[0] != NULL   ? *children.links[0]
										  : NULL;
	}
	return (const GpuSortPath *) path;
}

/* Returns true if a path, with all below it down to its GpuSorts, runs by ranges, and the path above does not. */
static bool
is_top(const Path *path)
{
	const GpuSortPath *sort = first_sort(path);

	return sort != NULL && sort->range_top == path;
}

/* Makes initPlans of a subquery those of the query around it, and of all between. */
static void
move_init_plans(PlannerInfo *root, PlannerInfo *subroot)
{
	ListCell *cell;
	ListCell *param;

	foreach(cell, subroot->init_plans)
	{
		foreach(param, lfirst_node(SubPlan, cell)->setParam)
		{
			for (PlannerInfo *between = subroot; between != root; between = between->parent_root)
				between->outer_params = bms_add_member(between->outer_params, lfirst_int(param));
		}
	}
	root->init_plans = list_concat(root->init_plans, subroot->init_plans);
	subroot->init_plans = NIL;
}

/*
 * Returns the partial path whose rows a GpuSort is to take in, in each process: its own, or that of a Gather of
 * PostgreSQL's right below it.
 */
static Path *
partial_input(PlannerInfo *root, const GpuSortPath *sort)
{
	Path *input = (Path *) sort->input;

	if (sort->gathered)
		return input;
	if (IsA(input, ProjectionPath))
		return (Path *) create_projection_path(
			root, input->parent, ((GatherPath *) ((ProjectionPath *) input)->subpath)->subpath, input->pathtarget);
	return castNode(GatherPath, input)->subpath;
}

/* Finds how many workers the sorts below a path have. */
static void
find_workers(PlannerInfo *root, const Path *path, int *workers)
{
	GpuSortPathChildren children = gpusort_path_children((Path *) path);

	if (gpusort_path_is_sort(path) && ((const GpuSortPath *) path)->by_range)
		find_workers(root, gpusort_path_input(path), workers);
	else if (gpusort_path_is_sort(path))
		*workers = Max(*workers, partial_input(root, (const GpuSortPath *) path)->parallel_workers);
	for (int i = 0; i < 2; i++)
	{
		if (children.links[i] != NULL)
			find_workers(IsA(path, SubqueryScanPath) ? path->parent->subroot : root, *children.links[i], workers);
	}
}

/* Returns what each process does of a path, down to the partial paths. */
static Path *
share(const Sharing *sharing, PlannerInfo *root, Path *path)
{
	GpuSortPathChildren children = gpusort_path_children(path);
	Path *copy;

	if (gpusort_path_is_sort(path) && ((const GpuSortPath *) path)->by_range)
	{
		copy = share(sharing, root, gpusort_path_input(path));
		copy = (Path *) create_sort_path(root, path->parent, copy, path->pathkeys, -1);
		copy->parallel_safe = true;
		return copy;
	}
	if (gpusort_path_is_sort(path))
		return gpusort_path_in_ranges(path, partial_input(root, (const GpuSortPath *) path));
	if (IsA(path, SubqueryScanPath))
	{
		root = path->parent->subroot;
		move_init_plans(sharing->root, root);
	}
	Assert(children.size > 0 && children.list == NULL);
	copy = memcpy(palloc(children.size), path, children.size);
	copy->rows = clamp_row_est(path->rows / sharing->processes);
	copy->parallel_safe = true;
	children = gpusort_path_children(copy);
	for (int i = 0; i < 2; i++)
	{
		if (children.links[i] != NULL)
			*children.links[i] = share(sharing, root, *children.links[i]);
	}
	return copy;
}

static Sharing
sharing_of(PlannerInfo *root, const Path *path)
{
	Sharing sharing = {.root = root};

	find_workers(root, path, &sharing.workers);
	sharing.processes = gpusort_plan_processes(sharing.workers);
	return sharing;
}

/* Returns a path that runs by ranges in all processes: with a part of the aggregate above, if that is to be. */
static Path *
exchange(PlannerInfo *root, Path *path)
{
	const Sharing sharing = sharing_of(root, path);
	Path *shared = share(&sharing, root, path);

	if (first_sort(path)->range_parts)
		shared = gpusort_groups_path(path->parent, shared, 1, NIL, 0);
	return gpusort_exchange_path(root, shared, path, sharing.workers, first_sort(path)->only_formed);
}

/* Returns true if workers may compute what a path is sorted by, where that is none of its columns. */
static bool
may_sort(PlannerInfo *root, const Path *path, List *pathkeys)
{
	return gpusort_expression_is_safe(root, (Node *) gpusort_path_missing_columns(path, pathkeys));
}

/* Returns the path that a sort in one process reads, PostgreSQL's or a GpuSort; NULL: path is none. */
static Path *
sorted_serially(const Path *path)
{
	if (IsA(path, SortPath))
		return ((const SortPath *) path)->subpath;
	return gpusort_path_is_sort(path) && !((const GpuSortPath *) path)->gathered ? gpusort_path_input(path) : NULL;
}

/*
 * Returns the sort below a LIMIT with the LIMIT's rows of each range in the place of its input, which runs by ranges;
 * NULL: that is not so, or too many.
 */
static Path *
with_first_rows(PlannerInfo *root, const LimitPath *path)
{
	Path *sort = path->subpath;
	Path *input = sorted_serially(sort);
	double first;
	double rows;
	bool known;
	Sharing sharing;
	Path *part;
	LimitPath *limit;

	if (input == NULL || path->limitCount == NULL || path->limitOption != LIMIT_OPTION_COUNT)
		return NULL;
	first = gpusort_limit_rows(path->limitCount, path->limitOffset, input->rows, &known);
	if (!known || first < 0 || first > PG_INT32_MAX || !is_top(input) || first_sort(input)->range_parts ||
		!may_sort(root, input, sort->pathkeys))
		return NULL;
	rows = Min(first * RANGES_GUESSED, input->rows);
	if (!gpusort_force && rows > input->rows / 2)
		return NULL;
	sharing = sharing_of(root, input);
	part = (Path *) create_sort_path(root, sort->parent, share(&sharing, root, input), sort->pathkeys, -1);
	part->rows = rows;
	part->parallel_safe = true;
	limit = makeNode(LimitPath);
	*limit = *path;
	limit->path.pathtarget = part->pathtarget;
	limit->path.pathkeys = part->pathkeys;
	limit->path.rows = rows;
	limit->path.parallel_safe = true;
	limit->subpath = part;
	limit->limitOffset = NULL;
	limit->limitCount =
		(Node *) makeConst(INT8OID, -1, InvalidOid, sizeof(int64), Int64GetDatum((int64) first), false, FLOAT8PASSBYVAL);
	part = gpusort_exchange_path(root, &limit->path, &limit->path, sharing.workers, false);
	if (gpusort_path_is_sort(sort))
		return gpusort_path_over(sort, part);
	return (Path *) create_sort_path(root, sort->parent, part, sort->pathkeys, -1);
}

/* Notes why one process runs what is above the GpuSorts below a path. */
static void
note_alone(Path *path, GpuSortAlone alone)
{
	GpuSortPathChildren children = gpusort_path_children(path);

	if (gpusort_path_is_sort(path))
		((GpuSortPath *) path)->alone = alone;
	for (int i = 0; i < 2; i++)
	{
		if (children.links[i] != NULL)
			note_alone(*children.links[i], alone);
	}
}

/* Returns true if a path is the inner side of a merge join that goes back in its rows, which GpuSortExchange cannot. */
static bool
is_marked(const Path *path, int link)
{
	const MergePath *join = (const MergePath *) path;

	return IsA(path, MergePath) && link == 1 && !join->skip_mark_restore && !join->materialize_inner &&
		join->innersortkeys == NIL;
}

/*
 * Returns a path with GpuSortExchange above what runs by ranges, as gpusort_path_note_ranges has noted right before:
 * the same path, if nothing does.
 */
Path *
gpusort_with_exchanges(PlannerInfo *root, Path *path)
{
	GpuSortPathChildren children = gpusort_path_children(path);
	PlannerInfo *below = IsA(path, SubqueryScanPath) ? path->parent->subroot : root;
	Path *copy = NULL;
	Path *first_rows;

	if (is_top(path))
		return exchange(root, path);
	if (gpusort_path_is_sort(path))
	{
		Path *input = gpusort_path_input(path);
		Path *taken = input;

		if (!((GpuSortPath *) path)->gathered && !((GpuSortPath *) path)->shared)
			taken = gpusort_with_exchanges(root, input);
		return taken == input ? path : gpusort_path_over(path, taken);
	}
	first_rows = IsA(path, LimitPath) ? with_first_rows(root, (LimitPath *) path) : NULL;
	for (int i = 0; i < 2; i++)
	{
		Path *child = children.links[i] != NULL ? *children.links[i] : NULL;
		Path *taken = child;

		if (first_rows != NULL)
			taken = first_rows;
		else if (child != NULL && is_marked(path, i) && is_top(child))
			note_alone(child, GPUSORT_ALONE_MARKED);
		else if (child != NULL)
			taken = gpusort_with_exchanges(below, child);
		if (taken == child)
			continue;
		if (copy == NULL)
			copy = memcpy(palloc(children.size), path, children.size);
		*gpusort_path_children(copy).links[i] = taken;
		if (first_rows != NULL)
			break;
	}
	if (children.list != NULL)
	{
		List *list = NIL;
		bool changed = false;
		ListCell *cell;

		foreach(cell, *children.list)
		{
			list = lappend(list, gpusort_with_exchanges(root, lfirst(cell)));
			changed |= llast(list) != lfirst(cell);
		}
		if (changed)
		{
			copy = memcpy(palloc(children.size), path, children.size);
			*gpusort_path_children(copy).list = list;
		}
	}
	return copy != NULL ? copy : path;
}
