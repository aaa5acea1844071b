/*-------------------------------------------------------------------------
 *
 * native_time.c
 *	  How long PostgreSQL's own nodes take, read off paths, in ns.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/model/native_time.h"

#include "catalog/pg_type_d.h"
#include "executor/nodeAgg.h"
#include "facts/aggregates.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "optimizer/tlist.h"
#include "plan/model/constants.h"
#include "plan/model/sort_time.h"
#include "utils/lsyscache.h"
#include "utils/spccache.h"

/* How many sorts of numbers in no order take as long as that of an aggregate's rows, which come as input gives them. */
static double
sort_weight(PlannerInfo *root, const Aggref *aggregate, const Path *input)
{
	List *clauses = aggregate->aggdistinct != NIL ? aggregate->aggdistinct : aggregate->aggorder;
	List *keys = make_pathkeys_for_sortclauses(root, clauses, aggregate->args);
	const PathKey *key;
	double factor;

	if (keys == NIL)
		return 1;
	key = linitial_node(PathKey, keys);
	factor = gpusort_string_factor(key);
	/* Values that do not fit a register, numerics say, are copied, too. */
	if (!get_typbyval(exprType(get_sortgroupclause_expr(linitial(clauses), aggregate->args))))
		factor = Max(factor, gpusort_constant(GPUSORT_TIME_STRING, false));
	return factor *
		(input != NULL && gpusort_path_is_in_order(root, input, key) ? gpusort_constant(GPUSORT_TIME_IN_ORDER, false) : 1);
}

/* The transitions for which an Agg sorts its rows: aggregates that have one in common sort once. */
static Bitmapset *
find_sorts(List *aggregates)
{
	Bitmapset *transitions = NULL;
	ListCell *cell;

	foreach(cell, aggregates)
	{
		const Aggref *aggregate = lfirst_node(Aggref, cell);

		if (aggregate->aggorder != NIL || aggregate->aggdistinct != NIL)
			transitions = bms_add_member(transitions, aggregate->aggtransno);
	}
	return transitions;
}

/*
 * Returns how many sorts of numbers take as long as those of these transitions of the aggregates, of all rows of input;
 * NULL: these come in no order.
 */
double
gpusort_transition_sorts(PlannerInfo *root, List *aggregates, const Bitmapset *transitions, const Path *input)
{
	Bitmapset *left = bms_copy(transitions);
	double sorts = 0;
	ListCell *cell;

	foreach(cell, left != NULL ? aggregates : NIL)
	{
		const Aggref *aggregate = lfirst_node(Aggref, cell);

		if (!bms_is_member(aggregate->aggtransno, left))
			continue;
		left = bms_del_member(left, aggregate->aggtransno);
		sorts += sort_weight(root, aggregate, input);
	}
	return sorts;
}

/*
 * Returns what aggregates (Aggref) do of the rows of an input; in_groups: of groups of them, which come in no order;
 * sorts are those that they do of the rows of a group, all other counts in it are 0; NULL: each that wants an order
 * sorts.
 */
GpuSortAggregates
gpusort_aggregates_shape(PlannerInfo *root, List *aggregates, const Path *input, bool in_groups,
						 const GpuSortAggregates *sorts)
{
	GpuSortAggregates found = {
		.sorts = sorts != NULL
			? sorts->sorts
			: gpusort_transition_sorts(root, aggregates, find_sorts(aggregates), in_groups ? NULL : input),
		.sorts_in_order = sorts != NULL ? sorts->sorts_in_order : 0,
	};
	Bitmapset *transitions = NULL;
	int transition = -1;
	ListCell *cell;

	foreach(cell, aggregates)
		transitions = bms_add_member(transitions, lfirst_node(Aggref, cell)->aggtransno);
	while ((transition = bms_next_member(transitions, transition)) >= 0)
	{
		const AggTransInfo *info = list_nth(root->aggtransinfos, transition);

		if (info->transtypeByVal && info->aggtranstype != INTERNALOID)
			found.values++;
		else
			found.states++;
	}
	return found;
}

/*
 * Returns what grouping takes, of so many rows of a path, by hashing or in order; frequent: the part of them that the
 * large groups have; aggregates: NULL: there are none.
 */
double
gpusort_path_group_time(PlannerInfo *root, GpuSortNodeKind kind, const Path *input, double rows, double groups,
						double frequent, uint64 transition_space, const GpuSortAggregates *aggregates)
{
	const GpuSortAggregates none = {0};
	const GpuSortShape shape = {
		.kind = kind,
		.rows = rows,
		.groups = groups,
		.frequent = frequent,
		.width = input->pathtarget->width,
		.aggregates = aggregates != NULL ? *aggregates : none,
		.memory = get_hash_memory_limit(),
		.entry = hash_agg_entry_size(list_length(root->aggtransinfos), input->pathtarget->width, transition_space),
	};

	return gpusort_node_time(&shape);
}

/* Returns what the grouping sets of a path take, of so many rows, if there are so many times as many groups. */
double
gpusort_path_sets_time(PlannerInfo *root, const GroupingSetsPath *path, double rows, double more)
{
	List *aggregates = gpusort_aggregates_of(root, path->path.pathtarget, path->qual);
	double time = 0;
	ListCell *cell;

	foreach(cell, path->rollups)
	{
		const RollupData *rollup = lfirst_node(RollupData, cell);
		const double groups = Max(Min(rollup->numGroups * more, rows), 1);
		const GpuSortAggregates shape =
			gpusort_aggregates_shape(root, aggregates, path->subpath, groups > 1, NULL);

		if (rollup->is_hashed)
			time += gpusort_path_group_time(root, GPUSORT_NODE_HASH_GROUPS, path->subpath, rows, groups, 0,
											path->transitionSpace, &shape);
		else
			time += gpusort_path_group_time(root, GPUSORT_NODE_SORTED_GROUPS, path->subpath,
											rows * list_length(rollup->gsets), groups, 0, 0, &shape);
	}
	return time;
}

/* Returns what a node takes of which the number of rows is all that counts. */
double
gpusort_rows_time(GpuSortNodeKind kind, double rows)
{
	const GpuSortShape shape = {.kind = kind, .rows = rows};

	return gpusort_node_time(&shape);
}

/* Returns what takes so much of PostgreSQL's cost. */
double
gpusort_cost_time(double cost)
{
	const GpuSortShape shape = {.kind = GPUSORT_NODE_OTHER, .cost = cost};

	return gpusort_node_time(&shape);
}

/* Returns what PostgreSQL's sort takes of so many rows of a path, by keys; 0 if there are none. */
double
gpusort_path_native_sort_time(PlannerInfo *root, List *keys, const Path *input, double rows, double first)
{
	const PathKey *key;

	if (keys == NIL)
		return 0;
	key = linitial_node(PathKey, keys);
	return gpusort_native_sort_time(rows, input->pathtarget->width, first, gpusort_string_factor(key),
									gpusort_path_is_in_order(root, input, key));
}

/*
 * Returns what a parallel scan of a table in memory costs each process too much: PostgreSQL has them share rows, but
 * each pay for all of the pages, as if a disk gave them.  Half of a wide row's cost are its pages.
 */
double
gpusort_shared_pages_cost(PlannerInfo *root, const Path *path)
{
	const RelOptInfo *rel = path->parent;
	double page_cost;
	double cost = 0;
	ListCell *cell;

	if (path->parallel_workers == 0)
		return 0;
	if (IsA(path, AppendPath))
	{
		foreach(cell, ((const AppendPath *) path)->subpaths)
			cost += gpusort_shared_pages_cost(root, lfirst(cell));
		return cost;
	}
	if (path->pathtype != T_SeqScan || root->total_table_pages > effective_cache_size)
		return 0;
	get_tablespace_page_costs(rel->reltablespace, NULL, &page_cost);
	return rel->pages * page_cost * (1 - Min(path->rows / Max(rel->rows, 1), 1));
}
