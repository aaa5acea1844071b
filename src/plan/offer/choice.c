/*-------------------------------------------------------------------------
 *
 * choice.c
 *	  Which path stands in a place of the tree that PostgreSQL chose.
 *
 * PostgreSQL's path is there to begin with.  Those over GpuSort compete for the place one after the other, and the
 * last one that has won has the place, at the cost of PostgreSQL's.  The rules are told in offers.c.
 *
 * Legal order of calls: begin, compete*, end.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/offer/choice.h"

#include "node.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "plan/model/shape.h"
#include "plan/model/sort_time.h"
#include "plan/offer/path_time.h"
#include "plan/offer/path_tree.h"
#include "plan/offer/paths.h"

/* So many times as long as estimated can it take to read a table again. */
#define GUESS_CACHED 2.0

/*
 * Where hashing is as good by the estimate, but gets so many
 * times worse if there are many more groups, it has no margin.
 */
#define MORE_GROUPS 100.0
#define WORSE       2.5

/* Returns a place with PostgreSQL's path in it; taken is that with what takes places below it. */
GpuSortChoice
gpusort_choice_begin(const GpuSortPathPlace *place, const Path *path, Path *taken)
{
	GpuSortChoice choice = {
		.place = place,
		.native = taken,
		.joins = gpusort_path_add_joins(NIL, taken, false),
		.best = taken,
		.path = path,
		.best_time = -1,
	};

	/* Below a Gather all paths are partial. */
	if (!place->shared)
		choice.partial = gpusort_path_add_joins(NIL, taken, true);
	return choice;
}

/*
 * Returns true if a path has the order that is needed and the joins
 * of the one in its place, those of several processes in several.
 */
static bool
fits(const GpuSortChoice *choice, const Path *path)
{
	const GpuSortPathPlace *place = choice->place;
	const Path *native = choice->native;
	List *order = place->ordered ? native->pathkeys : place->last ? place->root->sort_pathkeys
																  : NIL;
	List *joins;

	if (MORE_DISABLED_NODES(path, native) > 0 || PATH_REQ_OUTER(path) != NULL ||
		!pathkeys_contained_in(order, path->pathkeys))
		return false;
	joins = gpusort_path_add_joins(NIL, path, false);
	return list_length(joins) == list_length(choice->joins) && list_difference_ptr(joins, choice->joins) == NIL &&
		list_difference_ptr(choice->partial, gpusort_path_add_joins(NIL, path, true)) == NIL;
}

/*
 * Returns false if one of the paths of PostgreSQL's that path
 * reads costs more than the one in whose place it would be.
 */
static bool
inputs_cost_less(const Path *path, double cost)
{
	const Path *child = gpusort_path_only_child(path);
	GpuSortPathChildren children;
	ListCell *cell;

	if (gpusort_path_is_sort(path))
		return child->total_cost <= cost;
	if (child != NULL)
		return inputs_cost_less(child, cost);
	children = gpusort_path_children((Path *) path);
	for (int i = 0; i < 2; i++)
	{
		if (children.links[i] != NULL && !inputs_cost_less(*children.links[i], cost))
			return false;
	}
	foreach(cell, children.list != NULL ? *children.list : NIL)
	{
		if (!inputs_cost_less(lfirst(cell), cost))
			return false;
	}
	return true;
}

/*
 * What a path takes before its GpuSorts, or processes' groups, begin: others' work, which the model does not have to
 * know well.  Where PostgreSQL has the same workers, these are part of that (merged).
 */
static double
input_time(PlannerInfo *root, const Path *path, bool merged)
{
	const Path *child = gpusort_path_only_child(path);
	GpuSortPathChildren children;
	double time = 0;

	if (gpusort_path_is_sort(path))
	{
		const GpuSortPath *sort = (const GpuSortPath *) path;
		const int workers = sort->input->parallel_workers;

		time = gpusort_path_time(root, sort->input, -1, &gpusort_as_estimated);
		return merged && sort->gathered ? time * gpusort_crowd(workers) + gpusort_start_time(workers) : time;
	}
	if (gpusort_path_is_groups(path))
		return gpusort_path_time(root, child, -1, &gpusort_as_estimated) * gpusort_crowd(path->parallel_workers) +
			gpusort_start_time(path->parallel_workers);
	if (child != NULL)
		return input_time(IsA(path, SubqueryScanPath) ? path->parent->subroot : root, child, merged);
	children = gpusort_path_children((Path *) path);
	for (int i = 0; i < 2; i++)
	{
		if (children.links[i] != NULL)
			time += input_time(root, *children.links[i], merged);
	}
	return time;
}

/* Returns true if a path groups rows, so that the number of groups counts. */
static bool
groups(const Path *path)
{
	return IsA(path, AggPath) || IsA(path, GroupPath) || IsA(path, UpperUniquePath) || IsA(path, GroupingSetsPath) ||
		IsA(path, SetOpPath) || (IsA(path, ProjectionPath) && groups(((const ProjectionPath *) path)->subpath));
}

/* Returns true if it has one group whatever is estimated. */
static bool
is_of_all_rows(const Path *path)
{
	return IsA(path, AggPath) && ((const AggPath *) path)->aggstrategy == AGG_PLAIN;
}

/* Returns true if the worst that ours takes by any of the guesses is no worse than the worst of native. */
static bool
worst_is_no_worse(const GpuSortChoice *choice, const Path *ours, const GpuSortGuess *guesses, int count)
{
	const GpuSortPathPlace *place = choice->place;
	double our_worst = 0;
	double native_worst = 0;

	for (int i = 0; i < count; i++)
	{
		our_worst = Max(our_worst, gpusort_path_time(place->root, ours, place->first, &guesses[i]));
		native_worst = Max(native_worst, gpusort_path_time(place->root, choice->native, place->first, &guesses[i]));
	}
	return our_worst <= native_worst;
}

/* Returns true if all that is read is one table that the system's cache can hold. */
static bool
reads_cached_table(const GpuSortChoice *choice)
{
	const PlannerInfo *root = choice->place->root;
	int rel = -1;

	while ((rel = bms_next_member(root->all_baserels, rel)) >= 0)
	{
		if (root->simple_rte_array[rel]->rtekind != RTE_RELATION)
			return false;
	}
	return choice->joins == NIL && root->total_table_pages <= effective_cache_size;
}

/* Returns true if ours reads its input once, or takes no longer than another path even where that is slow to read. */
static bool
may_read_again(const GpuSortChoice *choice, const Path *ours, const Path *other)
{
	const GpuSortPathPlace *place = choice->place;
	const GpuSortGuess slow_input = {.groups = 1, .input = reads_cached_table(choice) ? GUESS_CACHED : GPUSORT_GUESS};

	return !gpusort_path_reads_again(ours) ||
		gpusort_path_time(place->root, ours, place->first, &slow_input) <=
		gpusort_path_time(place->root, other, place->first, &slow_input);
}

/* Returns true if ours is worth taking the place even where numbers of rows are estimated badly. */
static bool
is_safe(const GpuSortChoice *choice, const Path *ours)
{
	const Path *native = choice->native;

	if (IsA(native, HashPath) || IsA(native, MergePath))
	{
		const JoinPath *join = (const JoinPath *) native;
		const Relids one = join->outerjoinpath->parent->relids;
		const GpuSortGuess guesses[] = {
			{1, join->path.parent, one, 1, 1},
			{1, join->path.parent, one, GPUSORT_GUESS, 1},
			{1, join->path.parent, one, 1, GPUSORT_GUESS},
			{1, join->path.parent, one, 1 / GPUSORT_GUESS, 1},
			{1, join->path.parent, one, 1, 1 / GPUSORT_GUESS},
		};

		return worst_is_no_worse(choice, ours, guesses, lengthof(guesses));
	}
	if (groups(native))
	{
		const GpuSortGuess guesses[] = {{.groups = 1}, {.groups = GPUSORT_GUESS}, {.groups = 1 / GPUSORT_GUESS}};

		return worst_is_no_worse(choice, ours, guesses, lengthof(guesses)) &&
			may_read_again(choice, ours, native);
	}
	return true;
}

/*
 * Returns true if hashing, of so long by the estimate, would suffer by many more groups than estimated, and ours not.
 */
static bool
hashing_may_suffer(const GpuSortChoice *choice, const Path *ours)
{
	const GpuSortGuess many = {.groups = MORE_GROUPS};
	const GpuSortPathPlace *place = choice->place;

	return groups(choice->native) && !is_of_all_rows(choice->native) &&
		gpusort_path_time(place->root, choice->native, place->first, &many) >=
		WORSE * gpusort_path_time(place->root, ours, place->first, &many);
}

/* Returns true if a path does no more than to sort: in one process, or in several whose rows are merged. */
static bool
only_sorts(const Path *path)
{
	return IsA(path, SortPath) || (IsA(path, GatherMergePath) && IsA(((const GatherMergePath *) path)->subpath, SortPath));
}

/*
 * Returns true if first rows are wanted of an Incremental Sort: it reads its input only as far as these go, which the
 * model does not know, and a process that finds them by itself reads all of it.
 */
static bool
reads_less(const GpuSortChoice *choice, const Path *ours)
{
	const GpuSortPathPlace *place = choice->place;
	const Path *native = choice->path;

	if (IsA(native, ProjectionPath))
		native = ((const ProjectionPath *) native)->subpath;
	if (IsA(native, GatherMergePath))
		native = ((const GatherMergePath *) native)->subpath;
	return place->first >= 0 && IsA(native, IncrementalSortPath) &&
		gpusort_path_finds_top(place->root, ours, place->first);
}

/* Returns true if a path, which takes this time, is so much faster than PostgreSQL's as it has to be. */
static bool
saves_enough(const GpuSortChoice *choice, const Path *path, double time)
{
	const bool sorts = only_sorts(choice->native);
	const bool merged = sorts && IsA(choice->native, GatherMergePath);
	GpuSortGain gain = GPUSORT_GAIN_MORE;

	if (hashing_may_suffer(choice, path))
		return time < choice->own_time;
	if (sorts)
		gain = gpusort_path_finds_top(choice->place->root, path, choice->place->first) ? GPUSORT_GAIN_TOP
																					   : GPUSORT_GAIN_SORT;
	return gpusort_saves_enough(time, time - input_time(choice->place->root, path, merged), choice->own_time, gain);
}

/* Returns true if a path has the columns of PostgreSQL's as its reader wants them. */
static bool
has_columns(const GpuSortPathPlace *place, const Path *path, const Path *native)
{
	List *columns = path->pathtarget->exprs;
	List *wanted = native->pathtarget->exprs;

	if (equal(columns, wanted))
		return true;
	return place->sought && list_length(columns) == list_length(wanted) && list_difference(wanted, columns) == NIL;
}

/* Compares a path over GpuSort with the best one for the place so far; it may be NULL. */
void
gpusort_choice_compete(GpuSortChoice *choice, Path *path)
{
	const GpuSortPathPlace *place = choice->place;
	double time;

	if (path == NULL || !fits(choice, path) ||
		(!choice->forced && (reads_less(choice, path) || !inputs_cost_less(path, choice->native->total_cost))))
		return;
	if (!has_columns(place, path, choice->native))
	{
		/* A ProjectSet is between them, which returns sets: the path's place is below that. */
		if (expression_returns_set((Node *) choice->native->pathtarget->exprs))
			return;
		path = apply_projection_to_path(place->root, path->parent, path, choice->native->pathtarget);
	}
	if (choice->best_time < 0)
	{
		choice->best_time = gpusort_path_time(place->root, choice->native, place->first, &gpusort_as_estimated);
		choice->own_time = choice->native == choice->path
			? choice->best_time
			: gpusort_path_time(place->root, choice->path, place->first, &gpusort_as_estimated);
	}
	time = gpusort_path_time(place->root, path, place->first, &gpusort_as_estimated);
	if (choice->best != choice->native)
	{
		if (time < choice->best_time && may_read_again(choice, path, choice->best))
		{
			choice->best = path;
			choice->best_time = time;
		}
		return;
	}
	if (MORE_DISABLED_NODES(choice->native, path) == 0 && !choice->forced &&
		(!saves_enough(choice, path, time) || time >= choice->best_time || !is_safe(choice, path)))
		return;
	choice->best = path;
	choice->best_time = time;
}

/* Gives a path the cost of the one in whose place it is, and has nothing below it that is ours cost more than that. */
static void
take_cost(Path *path, double startup_cost, double total_cost)
{
	GpuSortPathChildren children;

	path->startup_cost = Min(startup_cost, total_cost);
	path->total_cost = total_cost;
	for (Path *below = path; below != NULL;)
	{
		below->total_cost = Min(below->total_cost, total_cost);
		below->startup_cost = Min(below->startup_cost, below->total_cost);
		if (gpusort_path_is_sort(below))
			return;
		children = gpusort_path_children(below);
		if (children.links[1] != NULL)
		{
			/* The sides of a join of ours are GpuSorts, or PostgreSQL's paths, which cost less; or rows side by side. */
			for (int i = 0; i < 2; i++)
			{
				if (gpusort_path_is_sort(*children.links[i]) || IS_UPPER_REL(below->parent))
					take_cost(*children.links[i], (*children.links[i])->startup_cost,
							  Min((*children.links[i])->total_cost, total_cost));
			}
			return;
		}
		below = gpusort_path_is_output(below) ? gpusort_partial_path_child(below)
			: children.links[0] != NULL       ? *children.links[0]
											  : NULL;
	}
}

/* Returns what stands in the place, with the cost of PostgreSQL's path. */
Path *
gpusort_choice_end(const GpuSortChoice *choice)
{
	const Path *path = choice->path;

	if (choice->best != choice->native)
		take_cost(choice->best, path->startup_cost,
				  choice->forced ? Max(path->total_cost, choice->best->total_cost) : path->total_cost);
	return choice->best;
}
