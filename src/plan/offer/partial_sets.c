/*-------------------------------------------------------------------------
 *
 * partial_sets.c
 *	  Grouping sets of groups that processes make of their rows.
 *
 * Where one of the sets, the finest, has the columns of all others, these can be made of its groups.  If they are far
 * fewer than the rows, all sets are offered so: each process hashes its rows into the groups of the finest set, and the
 * leader these into all sets, as if they were rows.
 *
 *	  MixedAggregate				Finalize MixedAggregate
 *	    Gather				->		  Gather
 *	      partial plan				    Partial HashAggregate, by the columns of the finest set
 *									      partial plan
 *
 * PostgreSQL's executor knows no difference, though its planner never asks for it.  While paths are chosen, the path is
 * one of all sets over a Gather of groups, which are a path of ours (GpuSortGroupsPath).  Of that which is chosen these
 * become a partial Agg, and the sets have aggregates that combine its states (gpusort_sets_over_parts).  Their Agg has
 * no word of this in its path: what it is told when the plan is finished (gpusort_columns_path).
 *
 * The same is offered where PostgreSQL's own path has all sets over a Gather of rows.
 *
 * If they are many, as those of ROLLUP (few, some, many), sets are computed apart, and others, which have fewer groups,
 * as above, beside them (sets_apart.c).
 *
 *-------------------------------------------------------------------------
 */
#include "plan/offer/partial_sets.h"

#include "facts/aggregates.h"
#include "facts/parallel_safety.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"
#include "optimizer/prep.h"
#include "optimizer/tlist.h"
#include "plan/offer/paths.h"
#include "plan/offer/rollup.h"
#include "plan/offer/set_columns.h"
#include "plan/statement.h"

/* All sets of a path, of GroupingSetData. */
List *
gpusort_sets_of(const GroupingSetsPath *path)
{
	List *sets = NIL;
	ListCell *cell;

	foreach(cell, path->rollups)
		sets = list_concat(sets, lfirst_node(RollupData, cell)->gsets_data);
	return sets;
}

/* The set that has the columns of all others; NULL if there is none, or if it has no column. */
static GroupingSetData *
finest_of(List *sets)
{
	GroupingSetData *finest = NULL;
	ListCell *cell;

	foreach(cell, sets)
	{
		GroupingSetData *set = lfirst_node(GroupingSetData, cell);

		if (finest == NULL || list_length(set->set) > list_length(finest->set))
			finest = set;
	}
	foreach(cell, sets)
	{
		if (list_difference_int(lfirst_node(GroupingSetData, cell)->set, finest->set) != NIL)
			return NULL;
	}
	return finest != NULL && finest->set != NIL ? finest : NULL;
}

/*
 * Returns how many groups that of a path's sets has that has the fewest, but for empty ones: among no more processes
 * are rows shared out, which is by the columns that all of these have.
 */
double
gpusort_sets_fewest_groups(const GroupingSetsPath *path)
{
	double fewest = path->path.rows;
	ListCell *cell;

	foreach(cell, gpusort_sets_of(path))
	{
		const GroupingSetData *set = lfirst_node(GroupingSetData, cell);

		if (set->set != NIL)
			fewest = Min(fewest, set->numGroups);
	}
	return fewest;
}

/* The clauses of a set. */
List *
gpusort_set_clauses(PlannerInfo *root, const GroupingSetData *set)
{
	List *clauses = NIL;
	ListCell *cell;

	foreach(cell, set->set)
		clauses = lappend(clauses, get_sortgroupref_clause(lfirst_int(cell), PROCESSED_GROUP_CLAUSE(root)));
	return clauses;
}

/* Returns true if all aggregates of a query can be put together from those of parts of the rows, which workers make. */
static bool
aggregates_are_partial(PlannerInfo *root)
{
	ListCell *cell;

	foreach(cell, root->agginfos)
	{
		const Aggref *aggregate = AGG_INFO_AGGREF(lfirst(cell));

		if (!gpusort_aggregate_may_be_partial(aggregate) || !gpusort_expression_is_safe(root, (Node *) aggregate))
			return false;
	}
	return true;
}

/*
 * Makes the sets of a path read the groups that processes make of their rows of a partial path, so many rows of all
 * processes.  false: they cannot be made of groups.
 */
static bool
read_groups(PlannerInfo *root, GroupingSetsPath *path, Path *partial, double rows)
{
	const GroupingSetData *finest;
	List *clauses;
	Path *groups;

	if (!gpusort_statement_shares_output() || !enable_hashagg || !aggregates_are_partial(root))
		return false;
	finest = finest_of(gpusort_sets_of(path));
	clauses = finest != NULL ? gpusort_set_clauses(root, finest) : NIL;
	if (clauses == NIL || !grouping_is_hashable(clauses) ||
		gpusort_reads_ungrouped(root, path->path.pathtarget, path->qual))
		return false;
	groups = gpusort_groups_path(path->path.parent, partial, clauses, finest->numGroups,
								 gpusort_aggregates_of(root, path->path.pathtarget, path->qual), path->transitionSpace);
	if (partial->rows > 0)
		rows *= groups->rows / partial->rows;
	path->subpath = (Path *) create_gather_path(root, path->path.parent, groups, groups->pathtarget, NULL, &rows);
	return true;
}

/* Returns a path of PostgreSQL's with grouping sets over a Gather, over processes' groups; NULL: it cannot be. */
Path *
gpusort_sets_of_groups_path(PlannerInfo *root, const Path *path)
{
	const GroupingSetsPath *sets = (const GroupingSetsPath *) path;
	const GatherPath *gather = (const GatherPath *) sets->subpath;
	GroupingSetsPath *copy;

	if (!IsA(sets, GroupingSetsPath) || !IsA(gather, GatherPath) || gather->single_copy ||
		gather->subpath->parallel_workers == 0 || gpusort_path_is_groups(gather->subpath) ||
		!equal(gather->path.pathtarget->exprs, gather->subpath->pathtarget->exprs))
		return NULL;
	copy = makeNode(GroupingSetsPath);
	*copy = *sets;
	return read_groups(root, copy, gather->subpath, gather->path.rows) ? &copy->path : NULL;
}

/* Each of the sets by hashing, but empty ones, which are a group each: those come last. */
static List *
hashed_rollups(PlannerInfo *root, List *sets)
{
	RollupData *empty = makeNode(RollupData);
	List *rollups = NIL;
	ListCell *cell;

	foreach(cell, sets)
	{
		GroupingSetData *set = lfirst_node(GroupingSetData, cell);
		RollupData *rollup = set->set == NIL ? empty : makeNode(RollupData);
		List *columns = NIL;

		for (int i = 0; i < list_length(set->set); i++)
			columns = lappend_int(columns, i);
		rollup->groupClause = gpusort_set_clauses(root, set);
		rollup->gsets = lappend(rollup->gsets, columns);
		rollup->gsets_data = lappend(rollup->gsets_data, set);
		rollup->numGroups += set->set == NIL ? 1 : set->numGroups;
		rollup->hashable = rollup->is_hashed = set->set != NIL;
		if (rollup != empty)
			rollups = lappend(rollups, rollup);
	}
	return empty->gsets != NIL ? lappend(rollups, empty) : rollups;
}

/*
 * Returns a path of these sets, over groups that processes make, with the other path's columns and conditions; NULL if
 * there is none.
 */
static Path *
gathered_sets(PlannerInfo *root, RelOptInfo *grouped_rel, const RelOptInfo *input_rel, const GroupingSetsPath *like,
			  List *sets, PathTarget *target, List *having)
{
	const Path *input = input_rel->cheapest_total_path;
	GroupingSetsPath *path = makeNode(GroupingSetsPath);
	Path *partial;
	ListCell *cell;

	if (!enable_hashagg || !MAY_GATHER(input_rel) || input_rel->partial_pathlist == NIL || input == NULL)
		return NULL;
	partial = linitial(input_rel->partial_pathlist);
	if (!partial->parallel_safe || !equal(partial->pathtarget->exprs, input->pathtarget->exprs))
		return NULL;
	*path = *like;
	path->rollups = hashed_rollups(root, sets);
	path->aggstrategy = llast_node(RollupData, path->rollups)->is_hashed ? AGG_HASHED : AGG_MIXED;
	path->qual = having;
	path->path.pathtarget = target;
	path->path.pathkeys = NIL;
	path->path.parallel_safe = false;
	path->path.rows = 0;
	foreach(cell, path->rollups)
		path->path.rows += lfirst_node(RollupData, cell)->numGroups;
	if (!read_groups(root, path, partial, input->rows))
		return NULL;
	path->path.startup_cost = path->subpath->total_cost;
	path->path.total_cost = path->subpath->total_cost + like->path.total_cost - like->subpath->total_cost;
	INHERIT_DISABLED_NODES(&path->path, path->subpath);
	return &path->path;
}

/*
 * Returns a path of all grouping sets of a query, of groups that processes make, or NULL: if no set has the columns of
 * all others, or an aggregate cannot be combined.  like is a path of PostgreSQL's of the same.
 */
Path *
gpusort_partial_sets_path(PlannerInfo *root, RelOptInfo *grouped_rel, const RelOptInfo *input_rel,
						  const GroupingSetsPath *like)
{
	return gathered_sets(root, grouped_rel, input_rel, like, gpusort_sets_of(like), like->path.pathtarget, like->qual);
}

/* Returns some of a path's sets, over groups that processes make; NULL: they cannot be. */
Path *
gpusort_other_sets_path(PlannerInfo *root, RelOptInfo *grouped_rel, const RelOptInfo *input_rel,
						const GroupingSetsPath *like, List *others)
{
	const GroupingSetData *next = finest_of(others);
	GpuSortSetColumns columns = {.root = root};

	if (next == NULL)
		return NULL;
	columns.refs = next->set;
	return gathered_sets(root, grouped_rel, input_rel, like, others, gpusort_set_target(&columns, like->path.pathtarget),
						 gpusort_set_having(&columns, like->qual));
}

/* The column of a path's rows that has a sortgroupref. */
static Expr *
column_of_ref(const PathTarget *target, Index ref)
{
	ListCell *cell;

	foreach(cell, target->exprs)
	{
		if (get_pathtarget_sortgroupref(target, foreach_current_index(cell)) == ref)
			return lfirst(cell);
	}
	elog(ERROR, "rows lack a column that they are grouped by");
}

/*
 * What processes make of rows: the columns of the groups, and the states of aggregates.  PostgreSQL looks for all
 * columns of GROUP BY: those that no set has are NULL.
 */
static PathTarget *
target_of_groups(PlannerInfo *root, const PathTarget *rows, List *clauses, List *aggregates)
{
	PathTarget *target = create_empty_pathtarget();
	ListCell *cell;

	foreach(cell, PROCESSED_GROUP_CLAUSE(root))
	{
		const Index ref = lfirst_node(SortGroupClause, cell)->tleSortGroupRef;
		Expr *column = column_of_ref(rows, ref);

		if (get_sortgroupref_clause_noerr(ref, clauses) == NULL)
			column = (Expr *) gpusort_null_of((Node *) column);
		add_column_to_pathtarget(target, column, ref);
	}
	foreach(cell, gpusort_partial_target(root, aggregates)->exprs)
		add_column_to_pathtarget(target, lfirst(cell), 0);
	return set_pathtarget_cost_width(root, target);
}

/* The expression with aggregates that combine states of groups, by these clauses, in the place of those of rows. */
static Node *
combine_mutator(Node *node, void *clauses)
{
	if (node == NULL)
		return NULL;
	if (IsA(node, Aggref))
	{
		Aggref *part = copyObject((Aggref *) node);
		Aggref *whole = makeNode(Aggref);

		mark_partial_aggref(part, AGGSPLIT_INITIAL_SERIAL);
		*whole = *(Aggref *) node;
		whole->args = list_make1(makeTargetEntry((Expr *) part, 1, NULL, false));
		whole->aggfilter = NULL;
		mark_partial_aggref(whole, AGGSPLIT_FINAL_DESERIAL);
		return (Node *) whole;
	}
	if (IsA(node, GroupingFunc))
	{
		GroupingFunc *grouping = copyObject((GroupingFunc *) node);
		ListCell *cell;
		ListCell *ref;

		forboth(cell, grouping->args, ref, grouping->refs)
		{
			if (get_sortgroupref_clause_noerr(lfirst_int(ref), clauses) == NULL)
				lfirst(cell) = gpusort_null_of(lfirst(cell));
		}
		return (Node *) grouping;
	}
	return expression_tree_mutator(node, combine_mutator, clauses);
}

/* The aggregates of a target and of conditions. */
static List *
aggregates_in(const PathTarget *target, List *having)
{
	List *aggregates = NIL;
	ListCell *cell;

	foreach(cell, gpusort_calls_of(target, having))
	{
		if (IsA(lfirst(cell), Aggref))
			aggregates = lappend(aggregates, lfirst(cell));
	}
	return aggregates;
}

/* The partial Agg that groups stand for, of these aggregates. */
static Path *
part_of(PlannerInfo *root, const GpuSortGroupsPath *groups, List *aggregates)
{
	const Path *like = &groups->custom.path;
	const AggClauseCosts costs = {0};
	Path *rows = gpusort_partial_path_child(like);
	AggPath *part = create_agg_path(root, like->parent, rows,
									target_of_groups(root, rows->pathtarget, groups->clauses, aggregates), AGG_HASHED,
									AGGSPLIT_INITIAL_SERIAL, groups->clauses, NIL, &costs, groups->groups);

	part->transitionSpace = groups->transition_space;
	part->path.parallel_safe = true;
	part->path.rows = like->rows;
	part->path.startup_cost = part->path.total_cost = like->total_cost;
	INHERIT_DISABLED_NODES(&part->path, like);
	return &part->path;
}

/* Returns true if a path has grouping sets over groups that processes make. */
bool
gpusort_path_is_sets_of_groups(const Path *path)
{
	const Path *gather = IsA(path, GroupingSetsPath) ? ((const GroupingSetsPath *) path)->subpath : NULL;

	return gather != NULL && IsA(gather, GatherPath) && gpusort_path_is_groups(((const GatherPath *) gather)->subpath);
}

/* Returns such a path as it runs: over a partial Agg, whose states it combines. */
Path *
gpusort_sets_over_parts(PlannerInfo *root, const GroupingSetsPath *sets)
{
	GroupingSetsPath *over = makeNode(GroupingSetsPath);
	GatherPath *gather = makeNode(GatherPath);
	const GpuSortGroupsPath *groups;

	*over = *sets;
	*gather = *castNode(GatherPath, sets->subpath);
	groups = (const GpuSortGroupsPath *) gather->subpath;
	gather->subpath = part_of(root, groups, aggregates_in(sets->path.pathtarget, sets->qual));
	gather->path.pathtarget = gather->subpath->pathtarget;
	over->subpath = &gather->path;
	over->path.pathtarget = copy_pathtarget(sets->path.pathtarget);
	over->path.pathtarget->exprs = (List *) combine_mutator((Node *) sets->path.pathtarget->exprs, groups->clauses);
	over->qual = (List *) combine_mutator((Node *) sets->qual, groups->clauses);
	return gpusort_columns_path(&over->path, AGGSPLIT_FINAL_DESERIAL, sets->path.pathtarget);
}
