/*-------------------------------------------------------------------------
 *
 * run_counts.c
 *	  Groups that are counted where they are sorted.
 *
 * Where a query wants no more of its groups than how many rows they have, the service gives one row for each, with that
 * number: after the sort equal keys are side by side.
 *
 *	  GroupAggregate			Finalize GroupAggregate
 *	    GpuSort			->		  GpuSort		groups, and the states of count()
 *	      rows					    rows
 *
 * More than one row may come of a group: the service sorts in runs and on several devices, and tells apart all rows
 * whose keys do not hold their values whole.  So each row is what a partial Agg would give, and PostgreSQL's own Agg
 * adds the numbers up.  It may run in ranges, as any above a sort.
 *
 * count(x) of a column that is grouped by is 0 or the number of rows.  While paths are chosen the path is that of the
 * rows, so that counting changes no choice.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/offer/run_counts.h"

#include "facts/aggregates.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "plan/offer/paths.h"
#include "plan/offer/rollup.h"
#include "utils/fmgroids.h"

/* The place of an expression among others, from 0; -1: it is not there. */
static int
find_expression(List *exprs, const Node *expr)
{
	ListCell *cell;

	foreach(cell, exprs)
	{
		if (equal(lfirst(cell), expr))
			return foreach_current_index(cell);
	}
	return -1;
}

/*
 * Returns true if an aggregate is told by the number of a group's rows, which have these columns, all of them grouped
 * by.  *column is set to the number of that where it counts the values of; 0: it counts rows.
 */
static bool
counts_rows(const Aggref *aggregate, List *exprs, AttrNumber *column)
{
	const Node *argument;

	*column = 0;
	if (aggregate->aggfilter != NULL || aggregate->aggdistinct != NIL || aggregate->aggorder != NIL ||
		aggregate->aggsplit != AGGSPLIT_SIMPLE)
		return false;
	if (aggregate->aggfnoid == F_COUNT_)
		return true;
	if (aggregate->aggfnoid != F_COUNT_ANY)
		return false;
	argument = (const Node *) linitial_node(TargetEntry, aggregate->args)->expr;
	if (IsA(argument, Const))
		return !((const Const *) argument)->constisnull;
	*column = find_expression(exprs, argument) + 1;
	return *column > 0 && !contain_volatile_functions((Node *) argument);
}

/* Returns true if a GpuSort sorts by just the columns that its rows have, and these are the columns of a GROUP BY. */
static bool
has_groups_alone(const GpuSortPath *sort, List *clauses)
{
	const PathTarget *target = sort->custom.path.pathtarget;
	const int columns = list_length(target->exprs);
	ListCell *cell;

	if (list_length(clauses) != columns || list_length(sort->custom.path.pathkeys) != columns)
		return false;
	for (int i = 0; i < columns; i++)
	{
		const Index ref = get_pathtarget_sortgroupref(target, i);

		if (ref == 0 || get_sortgroupref_clause_noerr(ref, clauses) == NULL)
			return false;
	}
	foreach(cell, sort->custom.path.pathkeys)
	{
		if (gpusort_path_key_columns(&sort->custom.path, lfirst_node(PathKey, cell)) != 1)
			return false;
	}
	return true;
}

/*
 * Returns true if the GpuSort right below an Agg of a query may count its groups.  Where the order of all rows is
 * verified, all of them come.
 */
static bool
counts_runs(PlannerInfo *root, const AggPath *agg)
{
	const GpuSortPath *sort = (const GpuSortPath *) agg->subpath;
	List *aggregates;
	AttrNumber column;
	ListCell *cell;

	if (agg->aggstrategy != AGG_SORTED || agg->aggsplit != AGGSPLIT_SIMPLE || root->parse->groupingSets != NIL ||
		!gpusort_path_is_sort(agg->subpath) || sort->by_range || sort->counted != NIL ||
		sort->time.verified || !has_groups_alone(sort, agg->groupClause))
		return false;
	aggregates = gpusort_calls_of(agg->path.pathtarget, agg->qual);
	foreach(cell, aggregates)
	{
		if (IsA(lfirst(cell), Aggref) &&
			!counts_rows(lfirst_node(Aggref, cell), sort->custom.path.pathtarget->exprs, &column))
			return false;
	}
	return gpusort_aggregates_of(root, agg->path.pathtarget, agg->qual) != NIL;
}

/* Returns a GpuSort that counts its groups for these aggregates. */
static Path *
counting_sort(PlannerInfo *root, const GpuSortPath *rows, List *aggregates)
{
	GpuSortPath *sort = palloc(sizeof(GpuSortPath));
	PathTarget *target = copy_pathtarget(rows->custom.path.pathtarget);
	ListCell *cell;

	*sort = *rows;
	foreach(cell, gpusort_partial_target(root, aggregates)->exprs)
		add_column_to_pathtarget(target, lfirst(cell), 0);
	sort->custom.path.pathtarget = set_pathtarget_cost_width(root, target);
	foreach(cell, aggregates)
	{
		AttrNumber column;

		(void) counts_rows(lfirst_node(Aggref, cell), rows->custom.path.pathtarget->exprs, &column);
		sort->counted = lappend_int(sort->counted, column);
	}
	return &sort->custom.path;
}

/* Returns an Agg of a chosen path over a GpuSort that counts its groups; the same path, if that is not to be. */
Path *
gpusort_run_counts_path(PlannerInfo *root, Path *path)
{
	const AggPath *agg = (const AggPath *) path;
	List *aggregates = NIL;
	AggPath *over;
	ListCell *cell;

	if (!IsA(path, AggPath) || !counts_runs(root, agg))
		return path;
	foreach(cell, gpusort_calls_of(agg->path.pathtarget, agg->qual))
	{
		if (IsA(lfirst(cell), Aggref))
			aggregates = list_append_unique(aggregates, lfirst(cell));
	}
	over = makeNode(AggPath);
	*over = *agg;
	over->aggsplit = AGGSPLIT_FINAL_DESERIAL;
	over->subpath = counting_sort(root, (const GpuSortPath *) agg->subpath, aggregates);
	return &over->path;
}
