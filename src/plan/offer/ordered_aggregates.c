/*-------------------------------------------------------------------------
 *
 * ordered_aggregates.c
 *	  Aggregates that want their rows in an order, or each value once, over a GpuSort that gives them so.
 *
 * array_agg(x ORDER BY y), count(DISTINCT x) and percentile_cont(f) WITHIN GROUP (ORDER BY x) have PostgreSQL's Agg
 * sort the rows of each group, one aggregate after the other, in one process; from 16 on it has them sorted below
 * for the first two.  Where one order does for all aggregates of a query, what is offered is
 *
 *	  Agg					Agg						Agg
 *	    GpuSort				  Unique				  GpuSort
 *							    GpuSort
 *	  ORDER BY,				DISTINCT alone			percentiles alone,
 *	  all kinds together							and rank() alone, or
 *													mode(), without GROUP BY
 *
 * sorted by the columns of GROUP BY, if there are any, and then by the aggregates'.  As paths these give the right
 * answer as they are, with Aggs that sort, though nothing is left to be sorted.  What is gained comes when they are
 * chosen: presorted.c takes ORDER BY and DISTINCT out of their aggregates, Unique and Agg run in all
 * processes (exchange_paths.c), percentiles, and where another row would stand, are read by the numbers of their rows
 * when the plan is run, and for mode() the rows of each value are counted (mode.c).  Percentiles and mode() of groups,
 * or beside others, sort all the same, but rows that are in order, which takes a third of the time.  rank() and its
 * like of groups, or beside others, count the rows before another one, if that is constant, in whatever order they
 * come, and
 * dense_rank() the first ones of their values, as DISTINCT has them.
 *
 * Other aggregates may be there, too, if the order of rows is nothing to them: then all rows are needed.  Of aggregates
 * of several orders those of one are served, and the others sort as ever.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/offer/ordered_aggregates.h"

#include "catalog/pg_aggregate.h"
#include "facts/aggregates.h"
#include "facts/parallel_safety.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"
#include "optimizer/prep.h"
#include "optimizer/tlist.h"
#include "plan/model/native_time.h"
#include "plan/offer/paths.h"
#include "plan/offer/rollup.h"
#include "utils/fmgroids.h"
#include "utils/selfuncs.h"

/* So many orders are tried. */
#define MAX_ORDERS 4

/* What is known of a node's aggregates. */
typedef struct OrderedAggregates
{
	GpuSortServed served;
	List *group_keys;  /* of GROUP BY */
	List *keys;        /* and then those by which the aggregates' rows are sorted */
	List *exprs;       /* these, as expressions: for each key all that aggregates have */
	List *distinct;    /* those of the keys that rows are equal in of which DISTINCT leaves one; NIL: there is none */
	Bitmapset *own;    /* transitions that sort their rows all the same */
	Bitmapset *sets;   /* those of ordered sets, which do so with rows that are in order */
	Bitmapset *halved; /* those that find the place of a row by halving, where all read rows by number */
} OrderedAggregates;

/* Of an aggregate's sort clauses those by columns: constants sort nothing. */
static List *
clauses_of_columns(const Aggref *aggregate, List *clauses)
{
	List *result = NIL;
	ListCell *cell;

	foreach(cell, clauses)
	{
		if (!IsA(get_sortgroupclause_expr(lfirst(cell), aggregate->args), Const))
			result = lappend(result, lfirst(cell));
	}
	return result;
}

/* What an order of its rows would do for an aggregate, which wants them sorted by *clauses; NIL: any will do. */
static GpuSortServed
wanted_by(const Aggref *aggregate, bool grouped, List **clauses)
{
	*clauses = NIL;
	if (contain_volatile_functions((Node *) aggregate->args) ||
		contain_volatile_functions((Node *) aggregate->aggfilter) || contain_subplans((Node *) aggregate->args))
		return GPUSORT_SERVED_NONE;
	*clauses = aggregate->aggdistinct != NIL ? aggregate->aggdistinct : aggregate->aggorder;
	if (gpusort_aggregate_may_be_counted(aggregate) && aggregate->aggfnoid == F_DENSE_RANK_ANY)
		return GPUSORT_SERVED_FIRST_ROWS;
	if (gpusort_aggregate_may_be_counted(aggregate) && grouped)
	{
		*clauses = NIL;
		return GPUSORT_SERVED_ORDER;
	}
	if (gpusort_aggregate_is_percentile(aggregate->aggfnoid) || gpusort_aggregate_is_hypothetical(aggregate->aggfnoid))
		return aggregate->aggfilter == NULL && !grouped && aggregate->aggfnoid != F_DENSE_RANK_ANY &&
				list_length(clauses_of_columns(aggregate, *clauses)) == list_length(*clauses)
			? GPUSORT_SERVED_PERCENTILES
			: GPUSORT_SERVED_ORDER;
	if (aggregate->aggfnoid == F_MODE)
		return aggregate->aggfilter == NULL && !grouped ? GPUSORT_SERVED_MODE : GPUSORT_SERVED_ORDER;
	if (aggregate->aggkind != AGGKIND_NORMAL)
		return GPUSORT_SERVED_NONE;
	if (aggregate->aggdistinct != NIL && aggregate->aggfilter != NULL)
		return contain_subplans((Node *) aggregate->aggfilter) ? GPUSORT_SERVED_NONE : GPUSORT_SERVED_FIRST_ROWS;
	if (aggregate->aggdistinct != NIL)
		return GPUSORT_SERVED_DISTINCT;
	if (aggregate->aggorder != NIL || gpusort_aggregate_is_of_any_order(aggregate->aggfnoid))
		return GPUSORT_SERVED_ORDER;
	return GPUSORT_SERVED_NONE;
}

/* What serves aggregates that are served so, and others beside them. */
static GpuSortServed
both_served(GpuSortServed one, GpuSortServed other)
{
	if (one == other || one == GPUSORT_SERVED_NONE)
		return other;
	if (one == GPUSORT_SERVED_DISTINCT || one == GPUSORT_SERVED_FIRST_ROWS || other == GPUSORT_SERVED_DISTINCT ||
		other == GPUSORT_SERVED_FIRST_ROWS)
		return GPUSORT_SERVED_FIRST_ROWS;
	return GPUSORT_SERVED_ORDER;
}

/* The pathkeys with others behind them, each once. */
static List *
with_keys(List *keys, List *others)
{
	ListCell *cell;

	keys = list_copy(keys);
	foreach(cell, others)
		keys = list_append_unique_ptr(keys, lfirst(cell)); /* they are canonical */
	return keys;
}

/*
 * Returns true if an aggregate with a FILTER sorts by what is computed: that is done of no other rows than the filter
 * lets through, as it can end in an error.
 */
static bool
computes_filtered(const Aggref *aggregate, List *clauses)
{
	ListCell *cell;

	foreach(cell, aggregate->aggfilter != NULL ? clauses : NIL)
	{
		const Node *expr = get_sortgroupclause_expr(lfirst(cell), aggregate->args);

		while (IsA(expr, RelabelType))
			expr = (const Node *) ((const RelabelType *) expr)->arg;
		if (!IsA(expr, Var))
			return true;
	}
	return false;
}

/* Adds an aggregate, which wants its rows by these clauses; false if the order so far does not do for it. */
static bool
add_aggregate(PlannerInfo *root, const Aggref *aggregate, List *clauses, OrderedAggregates *found)
{
	List *columns = clauses_of_columns(aggregate, clauses);
	List *own = make_pathkeys_for_sortclauses(root, columns, aggregate->args);
	List *keys = with_keys(found->group_keys, own);
	const bool distinct = aggregate->aggdistinct != NIL || aggregate->aggfnoid == F_DENSE_RANK_ANY;

	/* What a clause of the query makes constant is no key: percentiles.c would not find it. */
	if (columns == NIL || list_length(own) != list_length(columns) || computes_filtered(aggregate, columns))
		return false;
	if (distinct && found->distinct != NIL && compare_pathkeys(found->distinct, keys) != PATHKEYS_EQUAL)
		return false;
	if (!pathkeys_contained_in(keys, found->keys))
	{
		if (!pathkeys_contained_in(found->keys, keys))
			return false;
		found->keys = keys;
	}
	found->exprs = list_union(found->exprs, get_sortgrouplist_exprs(columns, aggregate->args));
	if (distinct)
		found->distinct = keys;
	return true;
}

/* Notes an aggregate, and what the order of rows does for it; false: it does harm. */
static bool
note_aggregate(PlannerInfo *root, const Aggref *aggregate, OrderedAggregates *found)
{
	List *clauses;
	GpuSortServed served = wanted_by(aggregate, root->parse->groupClause != NIL, &clauses);
	const bool hypothetical = gpusort_aggregate_is_hypothetical(aggregate->aggfnoid);
	const bool counted = gpusort_aggregate_may_be_counted(aggregate);
	bool sorts;

	if (served == GPUSORT_SERVED_NONE)
		return false;
	/* Another row, which is not among them, is sorted with all in whatever order they come, but where it is counted. */
	if (hypothetical && !counted && served != GPUSORT_SERVED_PERCENTILES)
		sorts = true;
	else
		sorts = clauses != NIL && !add_aggregate(root, aggregate, clauses, found);
	if (sorts)
		served = GPUSORT_SERVED_ORDER;
	if (hypothetical && served == GPUSORT_SERVED_PERCENTILES)
		found->halved = bms_add_member(found->halved, aggregate->aggtransno);
	if (hypothetical)
		sorts = !counted || (sorts && aggregate->aggfnoid == F_DENSE_RANK_ANY);
	if (sorts)
		found->own = bms_add_member(found->own, aggregate->aggtransno);
	else if (!hypothetical && aggregate->aggkind != AGGKIND_NORMAL)
		found->sets = bms_add_member(found->sets, aggregate->aggtransno);
	found->served = both_served(found->served, served);
	return true;
}

/* Returns true if all aggregates are percentiles of all rows, which are read by their numbers. */
static bool
are_percentiles(PlannerInfo *root, List *aggregates)
{
	ListCell *cell;

	foreach(cell, aggregates)
	{
		const Aggref *aggregate = lfirst_node(Aggref, cell);

		if (root->parse->groupClause != NIL || !gpusort_aggregate_is_percentile(aggregate->aggfnoid) ||
			aggregate->aggfilter != NULL)
			return false;
	}
	return true;
}

/* Returns true if PostgreSQL, from 16 on, has told one of the aggregates what order it can rely on. */
static bool
have_order(List *aggregates)
{
	for (int i = 0; i < list_length(aggregates); i++)
	{
		if (AGGREF_IS_PRESORTED(list_nth_node(Aggref, aggregates, i)))
			return true;
	}
	return false;
}

/* Finds out what the order that one of the aggregates wants does for all of them. */
static OrderedAggregates
find_by_order_of(PlannerInfo *root, const Aggref *first, List *aggregates)
{
	List *group_clauses = PROCESSED_GROUP_CLAUSE(root);
	const bool percentiles = are_percentiles(root, aggregates);
	OrderedAggregates found = {0};
	const OrderedAggregates none = {0};
	ListCell *cell;

	found.group_keys = make_pathkeys_for_sortclauses(root, group_clauses, root->processed_tlist);
	if (!note_aggregate(root, percentiles ? gpusort_aggregate_without_cast(first) : first, &found))
		return none;
	foreach(cell, aggregates)
	{
		const Aggref *aggregate = lfirst_node(Aggref, cell);

		if (aggregate != first &&
			!note_aggregate(root, percentiles ? gpusort_aggregate_without_cast(aggregate) : aggregate, &found))
			return none;
	}
	/* Columns that a condition makes equal may look different: rows are read by the number of one alone. */
	if (found.served == GPUSORT_SERVED_PERCENTILES && list_length(found.exprs) > list_length(found.keys))
		found.served = GPUSORT_SERVED_ORDER;
	if (found.served == GPUSORT_SERVED_PERCENTILES)
		found.own = bms_del_members(found.own, found.halved);
	if (found.keys == NIL && found.served == GPUSORT_SERVED_ORDER)
		found.keys = found.group_keys;
	if (found.keys == NIL ||
		((group_clauses != NIL || have_order(aggregates)) &&
		 !pathkeys_contained_in(root->group_pathkeys, found.keys)))
		return none;
	return found;
}

/* Finds out what one order of the rows does for the aggregates: that which leaves the least to sort. */
static OrderedAggregates
find_ordered(PlannerInfo *root, List *aggregates)
{
	OrderedAggregates best = {0};
	double best_sorts = 0;
	int tried = 0;
	ListCell *cell;

	/* GROUP BY of constants, which PostgreSQL drops from 16 on, still has no group where there are no rows. */
	if (root->numOrderedAggs == 0 || root->parse->groupingSets != NIL ||
		(root->parse->groupClause != NIL && PROCESSED_GROUP_CLAUSE(root) == NIL) ||
		!grouping_is_sortable(PROCESSED_GROUP_CLAUSE(root)))
		return best;
	foreach(cell, aggregates)
	{
		const Aggref *aggregate = lfirst_node(Aggref, cell);
		OrderedAggregates found;
		double sorts;

		if ((aggregate->aggorder == NIL && aggregate->aggdistinct == NIL) || tried++ == MAX_ORDERS)
			continue;
		found = find_by_order_of(root, aggregate, aggregates);
		if (found.served == GPUSORT_SERVED_NONE)
			continue;
		sorts = gpusort_transition_sorts(root, aggregates, found.own, NULL);
		if (best.served == GPUSORT_SERVED_NONE || sorts < best_sorts)
		{
			best = found;
			best_sorts = sorts;
		}
		if (best.served != GPUSORT_SERVED_NONE && best.own == NULL)
			break;
	}
	return best;
}

/* The columns of the rows that are sorted: the input's with those sorted by, or these alone where no other is read. */
static PathTarget *
sorted_target(PlannerInfo *root, const Path *input, const OrderedAggregates *found)
{
	const bool reads_others = found->served == GPUSORT_SERVED_ORDER || found->served == GPUSORT_SERVED_FIRST_ROWS ||
		root->parse->groupClause != NIL;
	PathTarget *target = reads_others ? copy_pathtarget(input->pathtarget) : create_empty_pathtarget();
	ListCell *cell;

	foreach(cell, found->exprs)
	{
		if (gpusort_find_column(target->exprs, lfirst(cell)) < 0)
			add_column_to_pathtarget(target, lfirst(cell), 0);
	}
	if (equal(target->exprs, input->pathtarget->exprs))
		return input->pathtarget;
	return set_pathtarget_cost_width(root, target);
}

/* The path with that target, which may be its own; NULL of NULL. */
static Path *
project(PlannerInfo *root, Path *path, PathTarget *target)
{
	if (path == NULL || path->pathtarget == target)
		return path;
	return (Path *) create_projection_path(root, path->parent, path, target);
}

/* GpuSort of the rows below, with the columns that aggregates are sorted by. */
static Path *
sorted_input(PlannerInfo *root, RelOptInfo *rel, RelOptInfo *input_rel, const OrderedAggregates *found, bool parallel)
{
	Path *input = input_rel->cheapest_total_path;
	Path *partial = parallel ? gpusort_partial_of(input) : NULL;
	PathTarget *target = sorted_target(root, input, found);

	if (parallel && (partial == NULL || !equal(partial->pathtarget->exprs, input->pathtarget->exprs)))
		return NULL;
	input = project(root, input, target);
	partial = project(root, partial, target);
	if (parallel && !partial->parallel_safe)
		return NULL;
	return gpusort_sorted_path(root, rel, input, partial, found->keys);
}

/*
 * Returns a path of the query's groups, or of its one row, with a GpuSort by what the aggregates of target want, or
 * NULL; rel is that of the groups, input_rel that of the rows.  Without GROUP BY columns may be read outside of
 * aggregates, of any row, though SQL has no such queries: in Citus's over what its workers give, of a SELECT with
 * HAVING alone.
 */
Path *
gpusort_ordered_aggregates_path(PlannerInfo *root, RelOptInfo *rel, RelOptInfo *input_rel,
								const GroupPathExtraData *grouping, PathTarget *target, bool parallel)
{
	List *clauses = PROCESSED_GROUP_CLAUSE(root);
	List *having = (List *) grouping->havingQual;
	const OrderedAggregates found = find_ordered(root, gpusort_aggregates_of(root, target, having));
	AggClauseCosts costs = {0};
	double groups = 1;
	Path *path;

	if (found.served == GPUSORT_SERVED_NONE || IS_OTHER_REL(input_rel) || input_rel->cheapest_total_path == NULL ||
		(clauses == NIL && !gpusort_reads_aggregates_alone(target, having)))
		return NULL;
	path = sorted_input(root, rel, input_rel, &found, parallel);
	if (path == NULL)
		return NULL;
	if (clauses != NIL)
		groups = estimate_num_groups(root, get_sortgrouplist_exprs(clauses, grouping->targetList), path->rows, NULL,
									 NULL);
	else if (found.served == GPUSORT_SERVED_MODE)
		groups = estimate_num_groups(root, found.exprs, path->rows, NULL, NULL); /* which the Agg of all rows tells mode.c */
	if (found.served == GPUSORT_SERVED_DISTINCT)
	{
		List *exprs = list_concat(get_sortgrouplist_exprs(clauses, grouping->targetList), found.exprs);
		double values = estimate_num_groups(root, exprs, path->rows, NULL, NULL);

		path = (Path *) create_upper_unique_path(root, rel, path, list_length(found.keys), values);
	}
	else if (found.served == GPUSORT_SERVED_PERCENTILES)
		((GpuSortPath *) path)->use.kind = GPUSORT_USE_NUMBERS;
	get_agg_clause_costs(root, AGGSPLIT_SIMPLE, &costs);
	return (Path *) create_agg_path(root, rel, path, target, clauses != NIL ? AGG_SORTED : AGG_PLAIN, AGGSPLIT_SIMPLE,
									clauses, having, &costs, groups);
}

/* Returns those of the aggregates that the order of the first serves, and likewise; NIL: it serves none. */
List *
gpusort_aggregates_of_one_order(PlannerInfo *root, List *aggregates)
{
	const Aggref *first = linitial_node(Aggref, aggregates);
	List *served = list_make1(linitial(aggregates));
	const OrderedAggregates alone = find_by_order_of(root, first, served);
	ListCell *cell;

	if (alone.served == GPUSORT_SERVED_NONE || alone.own != NULL)
		return NIL;
	for_each_from(cell, aggregates, 1)
	{
		List *together = lappend(list_copy(served), lfirst(cell));
		const OrderedAggregates found = find_by_order_of(root, first, together);

		if (found.served == alone.served && found.own == NULL)
			served = together;
	}
	return served;
}

/*
 * Returns true if one of the aggregates, beside those that sort rows of their own, is to see the first row of each
 * value alone.  From 16 on PostgreSQL's executor drops the others itself where it was told of the order.
 */
static bool
need_first_rows(List *aggregates, const Bitmapset *own)
{
	ListCell *cell;

	foreach(cell, aggregates)
	{
		const Aggref *aggregate = lfirst_node(Aggref, cell);

		if (!bms_is_member(aggregate->aggtransno, own) && !AGGREF_IS_PRESORTED(aggregate) &&
			(aggregate->aggdistinct != NIL || aggregate->aggfnoid == F_DENSE_RANK_ANY))
			return true;
	}
	return false;
}

/*
 * Returns what the order of a path's input does for its aggregates, these: as presorted.c and percentiles.c will find;
 * *sorts are those that it leaves, unless that is nothing, and where rows are read by number those that are had by
 * halving.
 */
GpuSortServed
gpusort_aggregates_served(PlannerInfo *root, const AggPath *path, List *aggregates, GpuSortAggregates *sorts)
{
	const Path *input = path->subpath;
	const bool unique = IsA(input, UpperUniquePath);
	OrderedAggregates found;

	if (unique)
		input = ((const UpperUniquePath *) input)->subpath;
	if (DO_AGGSPLIT_SKIPFINAL(path->aggsplit) || DO_AGGSPLIT_COMBINE(path->aggsplit) ||
		path->aggstrategy == AGG_HASHED || !gpusort_path_is_sort(input))
		return GPUSORT_SERVED_NONE;
	found = find_ordered(root, aggregates);
	if (found.served == GPUSORT_SERVED_NONE || !pathkeys_contained_in(found.keys, input->pathkeys) ||
		unique != (found.served == GPUSORT_SERVED_DISTINCT))
		return GPUSORT_SERVED_NONE;
	sorts->sorts = found.served == GPUSORT_SERVED_PERCENTILES ? bms_num_members(found.halved)
															  : gpusort_transition_sorts(root, aggregates, found.own, NULL);
	sorts->sorts_in_order = bms_num_members(bms_difference(found.sets, found.own));
	return found.served == GPUSORT_SERVED_FIRST_ROWS && !need_first_rows(aggregates, found.own) ? GPUSORT_SERVED_ORDER
																								: found.served;
}

/*
 * Returns what the window takes that presorted.c puts between so many rows and aggregates of which some are to see the
 * first row of each value alone, in ns.
 */
double
gpusort_first_rows_time(List *aggregates, double rows)
{
	ListCell *cell;

	foreach(cell, aggregates)
	{
		const Aggref *aggregate = lfirst_node(Aggref, cell);

		if (aggregate->aggdistinct != NIL && aggregate->aggfilter != NULL)
			return gpusort_rows_time(GPUSORT_NODE_RUNNING, rows);
	}
	return gpusort_rows_time(GPUSORT_NODE_NUMBERING, rows);
}

/*
 * Returns true if aggregates of all rows can be put together from those of ranges of them (exchange_paths.c); served:
 * what the order of these rows does for them.
 */
bool
gpusort_aggregates_combine(PlannerInfo *root, List *aggregates, GpuSortServed served)
{
	const bool once = served == GPUSORT_SERVED_DISTINCT || served == GPUSORT_SERVED_FIRST_ROWS;
	ListCell *cell;

	foreach(cell, aggregates)
	{
		const Aggref *aggregate = lfirst_node(Aggref, cell);

		if (AGGREF_IS_PRESORTED(aggregate) || !gpusort_expression_is_safe(root, (Node *) aggregate))
			return false;
		if (gpusort_aggregate_may_be_counted(aggregate))
			continue;
		if (!gpusort_aggregate_is_of_parts(aggregate->aggfnoid) ||
			(!once && (aggregate->aggorder != NIL || aggregate->aggdistinct != NIL)))
			return false;
	}
	return true;
}

/* Returns true if a path is an Agg that may sort rows itself, for aggregates for which one order would do. */
bool
gpusort_path_sorts_for_aggregates(PlannerInfo *root, const Path *path)
{
	const AggPath *agg = (const AggPath *) path;

	return IsA(path, AggPath) && agg->aggstrategy != AGG_HASHED &&
		find_ordered(root, gpusort_aggregates_of(root, path->pathtarget, agg->qual)).served != GPUSORT_SERVED_NONE;
}
