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
 * An aggregate of all rows, which can be put together from those of ranges, stays above: each range has a partial
 * aggregate, whose states it combines, as PostgreSQL has them above a Gather.
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
#include "facts/aggregates.h"
#include "facts/limits.h"
#include "facts/parallel_safety.h"
#include "nodes/bitmapset.h"
#include "nodes/makefuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "plan/model/shape.h"
#include "plan/offer/mode.h"
#include "plan/offer/partial_sets.h"
#include "plan/offer/path_tree.h"
#include "plan/offer/paths.h"
#include "plan/offer/presorted.h"
#include "plan/offer/rollup.h"
#include "plan/offer/run_counts.h"
#include "settings.h"

/* Into how many ranges rows are thought to be cut, where that has to be known before. */
#define RANGES_GUESSED 256

/* What all processes do. */
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
 * Returns the partial path whose rows a GpuSort takes in, in each process: its own, or that of a Gather of
 * PostgreSQL's below it, without what is computed above the Gather.
 */
static Path *
gathered_path(const GpuSortPath *sort)
{
	Path *input = (Path *) sort->input;

	if (sort->gathered)
		return input;
	if (IsA(input, ProjectionPath))
		input = ((ProjectionPath *) input)->subpath;
	return castNode(GatherPath, input)->subpath;
}

/* Returns the same with what is computed above the Gather. */
static Path *
partial_input(PlannerInfo *root, const GpuSortPath *sort)
{
	Path *partial = gathered_path(sort);

	if (sort->gathered || !IsA(sort->input, ProjectionPath))
		return partial;
	return (Path *) create_projection_path(root, sort->input->parent, partial, sort->input->pathtarget);
}

/* Finds how many workers the sorts below a path have. */
static void
find_workers(const Path *path, int *workers)
{
	GpuSortPathChildren children = gpusort_path_children((Path *) path);

	if (gpusort_path_is_sort(path) && ((const GpuSortPath *) path)->by_range)
		find_workers(gpusort_path_input(path), workers);
	else if (gpusort_path_is_sort(path))
		*workers = Max(*workers, gathered_path((const GpuSortPath *) path)->parallel_workers);
	for (int i = 0; i < 2; i++)
	{
		if (children.links[i] != NULL)
			find_workers(*children.links[i], workers);
	}
}

/*
 * Returns an Agg with the columns of a projection above it, which are its own in the plan, too; the same path, if it is
 * something else.
 */
static Path *
projected_aggregate(Path *path)
{
	Path *below = IsA(path, ProjectionPath) ? ((ProjectionPath *) path)->subpath : NULL;
	Path *agg;

	if (below == NULL || (!IsA(below, AggPath) && !gpusort_path_is_sets_of_groups(below)) || is_top(below))
		return path;
	agg = memcpy(palloc(gpusort_path_children(below).size), below, gpusort_path_children(below).size);
	*agg = *path;
	agg->type = below->type;
	agg->pathtype = below->pathtype;
	agg->parent = below->parent;
	return agg;
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
	path = projected_aggregate(path);
	children = gpusort_path_children(path);
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
	return IsA(copy, AggPath) ? gpusort_run_counts_path(root, gpusort_presorted_path(root, (AggPath *) copy, true)) : copy;
}

static Sharing
sharing_of(PlannerInfo *root, const Path *path)
{
	Sharing sharing = {.root = root};

	find_workers(path, &sharing.workers);
	sharing.processes = gpusort_plan_processes(sharing.workers);
	return sharing;
}

/* Returns a path that runs by ranges in all processes. */
static Path *
exchange(PlannerInfo *root, Path *path)
{
	const Sharing sharing = sharing_of(root, path);

	return gpusort_exchange_path(root, share(&sharing, root, path), path, sharing.workers, first_sort(path)->only_formed);
}

/* Returns true if an Agg of all rows has nothing but aggregates that can be put together from those of ranges. */
static bool
may_be_parted(PlannerInfo *root, const AggPath *agg, List *calls)
{
	ListCell *cell;

	foreach(cell, calls)
	{
		const Aggref *aggregate = lfirst(cell);

		if (!IsA(aggregate, Aggref) || aggregate->aggorder != NIL || aggregate->aggdistinct != NIL ||
			!gpusort_aggregate_is_of_parts(aggregate->aggfnoid))
			return false;
	}
	return calls != NIL && agg->aggstrategy == AGG_PLAIN && agg->aggsplit == AGGSPLIT_SIMPLE &&
		gpusort_expression_is_safe(root, (Node *) calls);
}

/* Returns what runs in each range of the rows that an Agg reads: its part, if that can be; else these rows. */
static Path *
part_of(PlannerInfo *root, const AggPath *agg)
{
	List *calls = gpusort_calls_of(agg->path.pathtarget, agg->qual);
	const AggClauseCosts costs = {0};
	Path *part;

	if (!may_be_parted(root, agg, calls))
		return agg->subpath;
	part = (Path *) create_agg_path(root, agg->path.parent, agg->subpath, gpusort_partial_target(root, calls), AGG_PLAIN,
									AGGSPLIT_INITIAL_SERIAL, NIL, NIL, &costs, 1);
	part->parallel_safe = true;
	return part;
}

/* Returns an Agg that has something in the ranges of what it reads, beside what runs by ranges there. */
static Path *
exchange_parts(PlannerInfo *root, AggPath *agg)
{
	const Sharing sharing = sharing_of(root, agg->subpath);
	Path *part = share(&sharing, root, agg->subpath);
	const Aggref *mode = gpusort_mode_of(root, agg, part);
	AggPath *over = makeNode(AggPath);
	AggPath *settled;

	*over = *agg;
	if (mode != NULL)
	{
		part = gpusort_mode_most_frequent(root, agg, mode, gpusort_mode_counts(root, agg, mode, part));
		part = gpusort_exchange_path(root, part, part, sharing.workers, false);
		over->subpath = gpusort_mode_most_frequent(root, agg, mode, part);
		return gpusort_presorted_path(root, over, false);
	}
	over->subpath = part;
	settled = gpusort_presorted_settle(root, over, true);
	part = part_of(root, settled);
	if (gpusort_path_is_sort(part))
		return gpusort_presorted_path(root, agg, false); /* there is nothing to be done in ranges */
	if (part != settled->subpath)
		settled->aggsplit = AGGSPLIT_FINAL_DESERIAL;
	settled->subpath = gpusort_exchange_path(root, part, agg->subpath, sharing.workers, false);
	return gpusort_presorted_columns(agg, settled);
}

/* Returns an Agg of a query as it runs over what it reads now. */
static Path *
aggregate_over(PlannerInfo *root, AggPath *agg)
{
	const Aggref *mode = gpusort_path_is_sort(agg->subpath) ? gpusort_mode_of(root, agg, agg->subpath) : NULL;
	AggPath *over;

	if (mode == NULL)
		return gpusort_run_counts_path(root, gpusort_presorted_path(root, agg, false));
	over = makeNode(AggPath);
	*over = *agg;
	over->subpath = gpusort_mode_counts(root, agg, mode, agg->subpath);
	over->subpath = gpusort_mode_most_frequent(root, agg, mode, over->subpath);
	return gpusort_presorted_path(root, over, false);
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
note_alone(Path *path, const char *why)
{
	GpuSortPathChildren children = gpusort_path_children(path);

	if (gpusort_path_is_sort(path))
		((GpuSortPath *) path)->why_alone = why;
	for (int i = 0; i < 2; i++)
	{
		if (children.links[i] != NULL)
			note_alone(*children.links[i], why);
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
	path = projected_aggregate(path);
	children = gpusort_path_children(path);
	if (IsA(path, AggPath) && is_top(*children.links[0]) && first_sort(*children.links[0])->range_parts)
		return exchange_parts(root, (AggPath *) path);
	if (gpusort_path_is_sort(path))
	{
		Path *input = gpusort_path_input(path);
		Path *taken = input;

		if (!((GpuSortPath *) path)->gathered && !((GpuSortPath *) path)->shared)
			taken = gpusort_with_exchanges(root, input);
		return taken == input ? path : gpusort_path_over(path, taken);
	}
	if (gpusort_path_is_sets_of_groups(path))
		return gpusort_sets_over_parts(root, (GroupingSetsPath *) path);
	first_rows = IsA(path, LimitPath) ? with_first_rows(root, (LimitPath *) path) : NULL;
	for (int i = 0; i < 2; i++)
	{
		Path *child = children.links[i] != NULL ? *children.links[i] : NULL;
		Path *taken = child;

		if (first_rows != NULL)
			taken = first_rows;
		else if (child != NULL && is_marked(path, i) && is_top(child))
			note_alone(child, "a merge join moves back in it");
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
	copy = copy != NULL ? copy : path;
	return IsA(copy, AggPath) ? aggregate_over(root, (AggPath *) copy) : copy;
}
