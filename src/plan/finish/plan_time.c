/*-------------------------------------------------------------------------
 *
 * plan_time.c
 *	  How long grouping sets take, of rows or of groups that processes make of these.
 *
 * The times are the model's (shape.c), of shapes that are read off the nodes.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/finish/plan_time.h"

#include "catalog/pg_type_d.h"
#include "executor/nodeAgg.h"
#include "miscadmin.h"
#include "nodes/bitmapset.h"
#include "nodes/nodeFuncs.h"
#include "plan/model/constants.h"
#include "plan/model/shape.h"
#include "utils/lsyscache.h"

/* The aggregates of a node. */
typedef struct Aggregates
{
	Bitmapset *seen; /* their transitions: several can have one in common */
	GpuSortAggregates found;
} Aggregates;

static bool
find_aggregates(Node *node, void *arg)
{
	Aggregates *found = arg;

	if (node == NULL)
		return false;
	if (IsA(node, Aggref))
	{
		const Aggref *aggregate = (const Aggref *) node;
		if (bms_is_member(aggregate->aggtransno, found->seen))
			return false;
		found->seen = bms_add_member(found->seen, aggregate->aggtransno);
		if (!get_typbyval(aggregate->aggtranstype) || aggregate->aggtranstype == INTERNALOID)
			found->found.states++;
		else
			found->found.values++;
		if (aggregate->aggorder != NIL || aggregate->aggdistinct != NIL)
			found->found.sorts++;
		return false;
	}
	return expression_tree_walker(node, find_aggregates, arg);
}

/* The shape of an Agg, of rows of the node below it. */
static GpuSortShape
agg_shape(const Plan *agg, const Plan *below)
{
	Aggregates found = {0};

	(void) find_aggregates((Node *) agg->targetlist, &found);
	(void) find_aggregates((Node *) agg->qual, &found);
	return (GpuSortShape){.width = below->plan_width, .aggregates = found.found};
}

/* Returns what an Agg takes of so many rows, by one set or by all of the chain's. */
static double
groups_time(const Agg *agg, const GpuSortShape *given, double rows, AggStrategy strategy, double groups, int sets)
{
	GpuSortShape shape = *given;

	shape.kind = strategy == AGG_HASHED ? GPUSORT_NODE_HASH_GROUPS : GPUSORT_NODE_SORTED_GROUPS;
	shape.rows = rows * Max(sets, 1);
	shape.groups = Max(Min(groups, rows), 1);
	shape.memory = get_hash_memory_limit();
	shape.entry = hash_agg_entry_size(shape.aggregates.values + shape.aggregates.states, shape.width,
									  agg->transitionSpace);
	return gpusort_node_time(&shape);
}

/* Returns what the grouping sets of an Agg take, of so many rows of below. */
static double
sets_time(const Agg *agg, const GpuSortShape *shape, double rows)
{
	const bool hashed = agg->aggstrategy == AGG_HASHED || agg->aggstrategy == AGG_MIXED;
	double time = groups_time(agg, shape, rows, hashed ? AGG_HASHED : AGG_SORTED, agg->numGroups,
							  list_length(agg->groupingSets));
	ListCell *cell;

	foreach(cell, agg->chain)
	{
		const Agg *other = lfirst_node(Agg, cell);

		time += groups_time(agg, shape, rows, other->aggstrategy, other->numGroups, list_length(other->groupingSets));
	}
	return time;
}

/* Returns true if grouping sets take less time of the groups that processes make of the rows that a Gather has. */
bool
gpusort_partial_groups_save_time(const Agg *agg, const Gather *gather, const GpuSortFinestSet *finest)
{
	const Plan *rows = outerPlan(gather);
	const double all = gather->plan.plan_rows;
	const double groups = Min(finest->groups, rows->plan_rows);
	const double gathered = all / Max(rows->plan_rows, 1) * groups;
	const double gather_row = gpusort_constant(GPUSORT_TIME_GATHER_ROW, false);
	const GpuSortShape shape = agg_shape(&agg->plan, &gather->plan);

	return groups_time(agg, &shape, rows->plan_rows, AGG_HASHED, groups, 1) * gpusort_crowd(gather->num_workers) +
		gathered * gather_row + sets_time(agg, &shape, gathered) <
		all * gather_row + sets_time(agg, &shape, all);
}
