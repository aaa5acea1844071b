/*-------------------------------------------------------------------------
 *
 * orders_apart.c
 *	  Aggregates of all rows that want several orders, those of each order in an Agg of its own.
 *
 * PostgreSQL's Agg sorts all rows for one aggregate after the other, in one process.  Of one order that is
 * ordered_aggregates.c's: percentiles read two rows, DISTINCT counts in all processes.  So the aggregates are parted by
 * the order that they want, and by what it does for them; those that want none are PostgreSQL's to compute, in all
 * processes where they can be combined.  SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY a), count(DISTINCT b),
 * sum(c):
 *
 *	  Nested Loop
 *	    Nested Loop
 *	      Aggregate					percentile_cont(0.5) ...
 *	        GpuSort ...
 *	      Materialize
 *	        Aggregate				count(DISTINCT b)
 *	          ...
 *	    Materialize
 *	      Finalize Aggregate		sum(c)
 *	        ...
 *
 * Each Agg has one row, and the joins, which have no condition, put them side by side.  The input is read as many
 * times.  What a Materialize reads never starts over, so it may run by ranges (path_time.c).  In the path that is
 * chosen the aggregates of each Agg are numbered anew (presorted.c).
 *
 *-------------------------------------------------------------------------
 */
#include "plan/offer/orders_apart.h"

#include "facts/aggregates.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "plan/offer/ordered_aggregates.h"
#include "plan/offer/rollup.h"

/* Of more orders none is apart: each reads all rows. */
#define ORDERS_MAX 8

/* The target of these aggregates. */
static PathTarget *
target_of(PlannerInfo *root, List *aggregates)
{
	PathTarget *target = create_empty_pathtarget();

	add_new_columns_to_pathtarget(target, aggregates);
	return set_pathtarget_cost_width(root, target);
}

/* The path, which has one row, where it is read beside another. */
static Path *
material_of(Path *path)
{
	MaterialPath *material = makeNode(MaterialPath);

	material->path = *path;
	material->path.type = T_MaterialPath;
	material->path.pathtype = T_Material;
	material->subpath = path;
	return &material->path;
}

/* Two paths of one row, side by side. */
static Path *
beside(RelOptInfo *rel, Path *one, Path *other, PathTarget *target)
{
	NestPath *path = makeNode(NestPath);

	path->jpath.path = *one;
	path->jpath.path.type = T_NestPath;
	path->jpath.path.pathtype = T_NestLoop;
	path->jpath.path.parent = rel;
	path->jpath.path.pathtarget = target;
	path->jpath.path.startup_cost += other->startup_cost;
	path->jpath.path.total_cost += other->total_cost;
	path->jpath.path.parallel_safe &= other->parallel_safe;
	path->jpath.jointype = JOIN_INNER;
	path->jpath.inner_unique = true;
	path->jpath.outerjoinpath = one;
	path->jpath.innerjoinpath = material_of(other);
	return &path->jpath.path;
}

/* The aggregates that want their rows in an order, or those that do not. */
static List *
aggregates_that(List *aggregates, bool want_order)
{
	List *found = NIL;
	ListCell *cell;

	foreach(cell, aggregates)
	{
		const Aggref *aggregate = lfirst_node(Aggref, cell);

		if ((aggregate->aggorder != NIL || aggregate->aggdistinct != NIL) == want_order)
			found = lappend(found, lfirst(cell));
	}
	return found;
}

/* Returns true if the order of their rows is nothing to aggregates; to sums of floats it is. */
static bool
are_of_any_order(List *aggregates)
{
	ListCell *cell;

	foreach(cell, aggregates)
	{
		if (!gpusort_aggregate_is_of_any_order(lfirst_node(Aggref, cell)->aggfnoid))
			return false;
	}
	return true;
}

/*
 * Returns a path of a query's one row in which the aggregates of each order are apart; NULL: there is one order, or an
 * aggregate that no order serves, or the input is not the same twice.  rel is that of the row, input_rel of the rows.
 */
Path *
gpusort_orders_apart_path(PlannerInfo *root, RelOptInfo *rel, RelOptInfo *input_rel,
						  const GroupPathExtraData *grouping, bool parallel)
{
	List *all;
	List *plain;
	List *left;
	List *done = NIL;
	Path *path = NULL;

	if (root->numOrderedAggs == 0 || list_length(root->agginfos) < 2 || root->parse->groupClause != NIL ||
		root->parse->groupingSets != NIL || grouping->havingQual != NULL || IS_OTHER_REL(input_rel) ||
		input_rel->cheapest_total_path == NULL || !gpusort_reads_aggregates_alone(rel->reltarget, NIL) ||
		!gpusort_may_read_twice(root))
		return NULL;
	all = gpusort_aggregates_of(root, rel->reltarget, NIL);
	plain = aggregates_that(all, false);
	left = aggregates_that(all, true);
	for (int i = 0; left != NIL; i++)
	{
		List *served = gpusort_aggregates_of_one_order(root, left);
		Path *apart = served != NIL && i < ORDERS_MAX
			? gpusort_ordered_aggregates_path(root, rel, input_rel, grouping, target_of(root, served), parallel)
			: NULL;

		if (apart == NULL || list_length(served) == list_length(all))
			return NULL;
		left = list_difference_ptr(left, served);
		done = list_concat_copy(done, served);
		path = path == NULL ? apart : beside(rel, path, apart, target_of(root, done));
	}
	if (path == NULL)
		return NULL;
	if (plain != NIL)
		path = beside(rel, path,
					  gpusort_total_path(root, rel, input_rel, target_of(root, plain), NULL, are_of_any_order(plain)),
					  rel->reltarget);
	path->pathtarget = rel->reltarget;
	return path;
}
