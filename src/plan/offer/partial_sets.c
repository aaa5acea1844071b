/*-------------------------------------------------------------------------
 *
 * partial_sets.c
 *	  Grouping sets of groups that processes make of their rows.
 *
 * Where one of the sets, the finest, has the columns of all others, these can be made of its groups.  If they are far
 * fewer than the rows, all sets are offered so: each process hashes its rows into the groups of the finest set, and the
 * leader these into all sets.  PostgreSQL's paths know no such plan.  So the path is one of all sets over a Gather of
 * groups, which are a path of ours (GpuSortGroupsPath), and the finished plan has an Agg in its place
 * (plan/finish/partial_groups.c).  The same is offered where PostgreSQL's own path has all sets over a Gather of rows.
 *
 * If they are many, as those of ROLLUP (few, some, many), sets are computed apart, and others, which have fewer groups,
 * as above, beside them (sets_apart.c).
 *
 *-------------------------------------------------------------------------
 */
#include "plan/offer/partial_sets.h"

#include "facts/aggregates.h"
#include "facts/parallel_safety.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
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
	Path *groups;

	if (!gpusort_statement_shares_output() || !enable_hashagg || !aggregates_are_partial(root))
		return false;
	finest = finest_of(gpusort_sets_of(path));
	if (finest == NULL || !grouping_is_hashable(gpusort_set_clauses(root, finest)) ||
		gpusort_reads_ungrouped(root, path->path.pathtarget, path->qual))
		return false;
	groups = gpusort_groups_path(path->path.parent, partial, finest->numGroups,
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
