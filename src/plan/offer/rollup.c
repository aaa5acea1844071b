/*-------------------------------------------------------------------------
 *
 * rollup.c
 *	  Grouping sets with a grand total, in two parts of which one has groups.
 *
 * ROLLUP (a, b, c) has four grouping sets, and all but the last, the empty one, have
 * a in common: their groups can be shared out among processes that have all rows of an
 * a each (exchange_paths.c).  The grand total cannot, for it is a group of all rows.  So it is
 * computed beside them, by an aggregate without groups, which PostgreSQL runs in
 * parallel itself where the aggregates have combine functions:
 *
 *	  Append
 *	    GroupAggregate		the sets with groups
 *	      ...
 *	    Aggregate			the grand total; every group column is NULL there
 *	      ...
 *
 * The input is read twice, which pays where the groups would be one process's work
 * otherwise, and is right where it is the same both times.  Legal order of calls: split; then the caller has the
 * groups' path sorted as it likes; join.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/offer/rollup.h"

#include "catalog/pg_class_d.h"
#include "facts/aggregates.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/planner.h"
#include "optimizer/prep.h"
#include "optimizer/tlist.h"
#include "plan/offer/set_columns.h"
#include "utils/fmgroids.h"

/* Returns true if the path's sets are one empty one, and others that all have a column in common. */
static bool
has_grand_total(const GroupingSetsPath *path)
{
	List *common = NIL;
	bool first = true;
	int empty = 0;
	ListCell *cell;
	ListCell *set_cell;

	if (path->aggstrategy != AGG_SORTED)
		return false;
	foreach(cell, path->rollups)
	{
		const RollupData *rollup = lfirst_node(RollupData, cell);

		if (rollup->is_hashed)
			return false;
		foreach(set_cell, rollup->gsets_data)
		{
			List *set = lfirst_node(GroupingSetData, set_cell)->set;

			if (set == NIL)
				empty++;
			else
			{
				common = first ? list_copy(set) : list_intersection_int(common, set);
				first = false;
			}
		}
	}
	return empty == 1 && common != NIL;
}

/* Returns true if each scan of a table has rows of its own: of samples, and of what is not under our snapshot. */
static bool
differs_by_scan(const RangeTblEntry *rte)
{
	return rte->tablesample != NULL || (rte->rtekind == RTE_RELATION && rte->relkind == RELKIND_FOREIGN_TABLE);
}

/* The walker: finds a function whose value goes by the order in which rows that are equal to it come. */
static bool
goes_by_order(Node *node, void *arg)
{
	if (node == NULL || IsA(node, Query))
		return false;
	if (IsA(node, Aggref) && !gpusort_aggregate_is_of_parts(((const Aggref *) node)->aggfnoid))
		return true;
	if (IsA(node, WindowFunc))
	{
		switch (((const WindowFunc *) node)->winfnoid)
		{
			case F_RANK_:
			case F_DENSE_RANK_:
			case F_PERCENT_RANK_:
			case F_CUME_DIST_:
				break;
			default:
				return true;
		}
	}
	return expression_tree_walker(node, goes_by_order, arg);
}

/*
 * Returns true if a query may give other rows when its tables give the same in another order, as they do in several
 * processes: what a LIMIT leaves, say.  OFFSET 0 leaves all.
 */
static bool
differs_by_order(const Query *query)
{
	Query folded = *query;

	folded.limitCount = eval_const_expressions(NULL, query->limitCount);
	folded.limitOffset = eval_const_expressions(NULL, query->limitOffset);
	return limit_needed(&folded) || query->hasDistinctOn || goes_by_order((Node *) query->targetList, NULL) ||
		goes_by_order(query->havingQual, NULL);
}

/* Returns true if a query, or one in it, gives rows of its own each time; arg is the PlannerGlobal of SubPlans. */
static bool
has_differing_rows(Node *node, void *arg)
{
	if (node == NULL)
		return false;
	if (IsA(node, Query))
		return differs_by_order((const Query *) node) ||
			query_tree_walker((Query *) node, has_differing_rows, arg, QTW_EXAMINE_RTES_BEFORE);
	if (IsA(node, RangeTblEntry))
		return differs_by_scan((const RangeTblEntry *) node);
	if (IsA(node, SubPlan))
	{
		const PlannerGlobal *glob = arg;
		Query *query = list_nth_node(PlannerInfo, glob->subroots, ((const SubPlan *) node)->plan_id - 1)->parse;

		if (has_differing_rows((Node *) query, arg) || contain_volatile_functions((Node *) query))
			return true;
	}
	return expression_tree_walker(node, has_differing_rows, arg);
}

/*
 * Returns true if two plans can be made of each subquery in FROM.  Each of them has PostgreSQL's set_plan_references()
 * go over what the subquery is planned with: what that changes in place must not be there, nor InitPlans, which both
 * plans would have.
 */
static bool
may_plan_subqueries_twice(const PlannerInfo *root)
{
	for (int i = 1; i < root->simple_rel_array_size; i++)
	{
		const PlannerInfo *subroot = root->simple_rel_array[i] != NULL ? root->simple_rel_array[i]->subroot : NULL;

		if (subroot != NULL &&
			(subroot->append_rel_list != NIL || subroot->rowMarks != NIL || subroot->init_plans != NIL ||
			 !may_plan_subqueries_twice(subroot)))
			return false;
	}
	return true;
}

/* Returns true if two plans of the query's input, run one after the other, give the same rows. */
bool
gpusort_may_read_twice(PlannerInfo *root)
{
	/* Two scans of a recursive query's working table would share their place in it. */
	for (const PlannerInfo *level = root; level != NULL; level = level->parent_root)
	{
		if (level->wt_param_id >= 0)
			return false;
	}
	/* partitions among them */
	for (int i = 1; i < root->simple_rel_array_size; i++)
	{
		if (root->simple_rte_array[i] != NULL && differs_by_scan(root->simple_rte_array[i]))
			return false;
	}
	/* A CTE that has not become a subquery keeps its rows. */
	return may_plan_subqueries_twice(root) && !contain_volatile_functions((Node *) root->parse) &&
		!query_tree_walker(root->parse, has_differing_rows, root->glob,
						   QTW_EXAMINE_RTES_BEFORE | QTW_IGNORE_CTE_SUBQUERIES);
}

/* Returns a copy of the path's rollups without the empty set. */
static List *
rollups_with_groups(const GroupingSetsPath *path)
{
	List *result = NIL;
	ListCell *cell;

	foreach(cell, path->rollups)
	{
		RollupData *rollup = makeNode(RollupData);
		ListCell *set_cell;

		*rollup = *lfirst_node(RollupData, cell);
		rollup->gsets = NIL;
		rollup->gsets_data = NIL;
		foreach(set_cell, lfirst_node(RollupData, cell)->gsets)
		{
			if (lfirst(set_cell) != NIL)
				rollup->gsets = lappend(rollup->gsets, lfirst(set_cell));
		}
		foreach(set_cell, lfirst_node(RollupData, cell)->gsets_data)
		{
			GroupingSetData *data = lfirst_node(GroupingSetData, set_cell);

			if (data->set != NIL)
				rollup->gsets_data = lappend(rollup->gsets_data, data);
			else
				rollup->numGroups--;
		}
		if (rollup->gsets != NIL)
			result = lappend(result, rollup);
	}
	return result;
}

/* Returns what total and having read: Aggrefs, and of rows what is not in these. */
List *
gpusort_calls_of(const PathTarget *total, List *having)
{
	return pull_var_clause((Node *) list_concat_copy(total->exprs, having),
						   PVC_INCLUDE_AGGREGATES | PVC_RECURSE_WINDOWFUNCS | PVC_INCLUDE_PLACEHOLDERS);
}

/* Returns true if total and having read nothing of rows but by aggregates. */
bool
gpusort_reads_aggregates_alone(const PathTarget *total, List *having)
{
	ListCell *cell;

	foreach(cell, gpusort_calls_of(total, having))
	{
		if (!IsA(lfirst(cell), Aggref))
			return false;
	}
	return true;
}

/* Returns what an Agg of a part of the rows emits: the transition states of these aggregates. */
PathTarget *
gpusort_partial_target(PlannerInfo *root, List *aggregates)
{
	PathTarget *partial = create_empty_pathtarget();
	ListCell *cell;

	add_new_columns_to_pathtarget(partial, aggregates);
	foreach(cell, partial->exprs)
	{
		Aggref *aggregate = makeNode(Aggref);

		*aggregate = *lfirst_node(Aggref, cell);
		mark_partial_aggref(aggregate, AGGSPLIT_INITIAL_SERIAL);
		lfirst(cell) = aggregate;
	}
	return set_pathtarget_cost_width(root, partial);
}

/* Returns true if all of these are aggregates that can be put together from those of parts of the rows. */
static bool
may_be_partial(List *calls)
{
	ListCell *cell;

	foreach(cell, calls)
	{
		if (!IsA(lfirst(cell), Aggref) || !gpusort_aggregate_may_be_partial(lfirst_node(Aggref, cell)))
			return false;
	}
	return true;
}

/* Returns the cheapest path of one row of PostgreSQL's, of all rows, with this target; parallel: of processes, too. */
Path *
gpusort_total_path(PlannerInfo *root, RelOptInfo *grouped_rel, const RelOptInfo *input_rel, PathTarget *target,
				   List *having, bool parallel)
{
	AggClauseCosts costs = {0};
	Path *serial;
	Path *path;
	PathTarget *partial;
	AggClauseCosts partial_costs = {0};
	/* Of aggregates that are not in the target there may be some that cannot be combined: no costs can be asked for. */
	const bool others = root->hasNonPartialAggs || root->hasNonSerialAggs;
	List *calls = gpusort_calls_of(target, having);
	double groups = 1;

	get_agg_clause_costs(root, AGGSPLIT_SIMPLE, &costs);
	serial = (Path *) create_agg_path(root, grouped_rel, input_rel->cheapest_total_path, target, AGG_PLAIN,
									  AGGSPLIT_SIMPLE, NIL, having, &costs, 1);
	if (!parallel || !grouped_rel->consider_parallel || input_rel->partial_pathlist == NIL)
		return serial;
	if (!may_be_partial(calls))
		return serial;
	partial = gpusort_partial_target(root, calls);
	get_agg_clause_costs(root, others ? AGGSPLIT_SIMPLE : AGGSPLIT_INITIAL_SERIAL, &partial_costs);
	path = (Path *) create_agg_path(root, grouped_rel, linitial(input_rel->partial_pathlist), partial, AGG_PLAIN,
									AGGSPLIT_INITIAL_SERIAL, NIL, NIL, &partial_costs, 1);
	if (!path->parallel_safe)
		return serial;
	groups = path->parallel_workers + 1;
	path = (Path *) create_gather_path(root, grouped_rel, path, partial, NULL, &groups);
	costs = (AggClauseCosts){0};
	get_agg_clause_costs(root, others ? AGGSPLIT_SIMPLE : AGGSPLIT_FINAL_DESERIAL, &costs);
	path = (Path *) create_agg_path(root, grouped_rel, path, target, AGG_PLAIN, AGGSPLIT_FINAL_DESERIAL, NIL,
									having, &costs, 1);
	return path->total_cost < serial->total_cost ? path : serial;
}

/*
 * Returns a path of the empty set alone; NULL if that reads more of a row than aggregates do: there may be no row.
 * like is a path of PostgreSQL's of all sets.
 */
Path *
gpusort_grand_total_path(PlannerInfo *root, RelOptInfo *grouped_rel, const RelOptInfo *input_rel,
						 const GroupingSetsPath *like)
{
	GpuSortSetColumns none = {.root = root, .one_set = true};
	PathTarget *target = gpusort_set_target(&none, like->path.pathtarget);
	List *having = gpusort_set_having(&none, like->qual);

	return gpusort_reads_ungrouped(root, target, having)
		? NULL
		: gpusort_total_path(root, grouped_rel, input_rel, target, having, true);
}

/*
 * Splits a path of grouping sets by sorting, over input_rel, in two, if one set is empty, the others have
 * a column in common, and the input can be read twice; false if not.
 */
bool
gpusort_rollup_split(PlannerInfo *root, RelOptInfo *grouped_rel, const RelOptInfo *input_rel,
					 const GroupingSetsPath *sorted, GpuSortRollup *parts)
{
	if (!has_grand_total(sorted) || !gpusort_may_read_twice(root))
		return false;
	parts->groups = makeNode(GroupingSetsPath);
	*parts->groups = *sorted;
	parts->groups->rollups = rollups_with_groups(sorted);
	parts->groups->path.rows = Max(sorted->path.rows - 1, 1);
	parts->total = gpusort_grand_total_path(root, grouped_rel, input_rel, sorted);
	return parts->total != NULL;
}

/* Returns the path of all sets, of those of parts of them; like is one of PostgreSQL's of the same. */
Path *
gpusort_sets_join(PlannerInfo *root, RelOptInfo *grouped_rel, const GroupingSetsPath *like, List *parts)
{
	Path *path = (Path *) CREATE_APPEND_PATH(root, grouped_rel, parts, NIL, 0, false);

	path->pathtarget = like->path.pathtarget;
	return path;
}
