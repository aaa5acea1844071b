/*-------------------------------------------------------------------------
 *
 * upper_paths.c
 *	  What GpuSort could do for windows, GROUP BY, DISTINCT, set operations and ORDER BY.
 *
 * The cheapest path that PostgreSQL has found is looked through: where it sorts, the like
 * with GpuSort in the Sort's place is an offer.  Where rows are grouped, so is
 * grouping them by sorting, whatever PostgreSQL's cheapest path does: hashing, most often;
 * but not with enable_sort = off; and so are aggregates over rows in the order that they want
 * (ordered_aggregates.c).  Where an order is wanted, so is GpuSort over the cheapest path of
 * them, whatever gives the order in PostgreSQL's: an index, say.
 * Grouping sets are offered over groups that processes make of their rows, too (partial_sets.c).
 * Each comes with a serial and with a parallel ingest.  offers.c decides which of them takes PostgreSQL's place.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/offer/upper_paths.h"

#include "node.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"
#include "optimizer/prep.h"
#include "optimizer/tlist.h"
#include "plan/model/shard_time.h"
#include "plan/offer/offers.h"
#include "plan/offer/ordered_aggregates.h"
#include "plan/offer/orders_apart.h"
#include "plan/offer/path_tree.h"
#include "plan/offer/partial_sets.h"
#include "plan/offer/paths.h"
#include "plan/offer/rollup.h"
#include "plan/offer/set_operations.h"
#include "plan/offer/sets_apart.h"
#include "plan/statement.h"
#include "utils/selfuncs.h"

/* An upper rel for which paths are looked for. */
typedef struct Offer
{
	PlannerInfo *root;
	RelOptInfo *input_rel; /* NULL for set operations */
	RelOptInfo *rel;
	const GroupPathExtraData *grouping; /* of GROUP BY */
	Path *native;                       /* PostgreSQL's cheapest */
	bool parallel;                      /* with parallel ingest, where it can be had */
} Offer;

/*
 * Returns true if a path of an upper rel does something to the
 * rows of one path below it, of which one process reads all.
 */
static bool
is_looked_through(const Path *path)
{
	switch (nodeTag(path))
	{
		case T_ProjectionPath:
		case T_ProjectSetPath:
		case T_GroupPath:
		case T_UpperUniquePath:
		case T_AggPath:
		case T_GroupingSetsPath:
		case T_WindowAggPath:
		case T_IncrementalSortPath:
			return true;
		default:
			return false;
	}
}

/* GpuSort of what a Merge Append merges, where that is rows of shards, which can be read at once; else NULL. */
static Path *
unmerged(const Offer *offer, MergeAppendPath *merge)
{
	RelOptInfo *rel = merge->path.parent;
	Path *input = rel->cheapest_total_path;

	if (!enable_sort || !gpusort_paths_are_of_shards(merge->subpaths) || input == NULL ||
		!gpusort_path_reads_shards_at_once(input) || !equal(input->pathtarget->exprs, merge->path.pathtarget->exprs))
		return NULL;
	return gpusort_sorted_path(offer->root, rel, input, offer->parallel ? gpusort_partial_of(input) : NULL,
							   merge->path.pathkeys);
}

/* The path with GpuSort in the place of the Sorts that it reads from; NULL if there are none to replace. */
static Path *
with_gpusort(const Offer *offer, Path *path)
{
	GpuSortPathChildren children;
	Path *copy;
	Path *below;
	Path *below_with;

	if (IsA(path, GatherMergePath) && IsA(((GatherMergePath *) path)->subpath, SortPath))
		return gpusort_sorted_path(offer->root, path->parent, path,
								   ((SortPath *) ((GatherMergePath *) path)->subpath)->subpath, path->pathkeys);
	if (IsA(path, SortPath))
	{
		below = ((SortPath *) path)->subpath;
		below_with = with_gpusort(offer, below);
		if (below_with != NULL)
			return gpusort_sorted_path(offer->root, path->parent, below_with, NULL, path->pathkeys);
		return gpusort_sorted_path(offer->root, path->parent, below, offer->parallel ? gpusort_partial_of(below) : NULL,
								   path->pathkeys);
	}
	if (IsA(path, MergeAppendPath))
		return unmerged(offer, (MergeAppendPath *) path);
	if (!is_looked_through(path))
		return NULL;

	children = gpusort_path_children(path);
	below = *children.links[0];
	below_with = with_gpusort(offer, below);
	if (below_with == NULL)
		return NULL;
	copy = memcpy(palloc(children.size), path, children.size);
	*gpusort_path_children(copy).links[0] = below_with;
	copy->parallel_safe = false;
	EXCHANGE_DISABLED_NODES(copy, below, below_with);
	copy->startup_cost += below_with->startup_cost - below->startup_cost;
	copy->total_cost += below_with->total_cost - below->total_cost;
	return copy;
}

/* GpuSort of the rows of the rel below. */
static Path *
sorted_input(const Offer *offer, List *pathkeys)
{
	RelOptInfo *rel = offer->input_rel;
	Path *input = rel->cheapest_total_path;

	if (pathkeys == NIL || input == NULL || pathkeys_contained_in(pathkeys, input->pathkeys))
		return NULL;
	return gpusort_sorted_path(offer->root, offer->rel, input, offer->parallel ? gpusort_partial_of(input) : NULL,
							   pathkeys);
}

/* GROUP BY by sorting. */
static Path *
grouped_path(const Offer *offer)
{
	PlannerInfo *root = offer->root;
	List *clauses = PROCESSED_GROUP_CLAUSE(root);
	List *having = (List *) offer->grouping->havingQual;
	AggClauseCosts costs = {0};
	double groups;
	Path *sorted;

	if (clauses == NIL || root->parse->groupingSets != NIL || !grouping_is_sortable(clauses) ||
		IS_OTHER_REL(offer->input_rel))
		return NULL;
	sorted = sorted_input(offer, root->group_pathkeys);
	if (sorted == NULL)
		return NULL;
	groups = estimate_num_groups(root, get_sortgrouplist_exprs(clauses, offer->grouping->targetList), sorted->rows,
								 NULL, NULL);
	if (!root->parse->hasAggs)
		return (Path *) create_group_path(root, offer->rel, sorted, clauses, having, groups);
	get_agg_clause_costs(root, AGGSPLIT_SIMPLE, &costs);
	return (Path *) create_agg_path(root, offer->rel, sorted, offer->rel->reltarget, AGG_SORTED, AGGSPLIT_SIMPLE,
									clauses, having, &costs, groups);
}

/* Offers grouping sets by sorting; PostgreSQL's path of that is there for its order, if it is not the cheapest. */
static void
offer_grouping_sets(const Offer *offer)
{
	const GroupingSetsPath *like = NULL;
	GpuSortRollup parts;
	ListCell *cell;

	foreach(cell, offer->rel->pathlist)
	{
		GroupingSetsPath *path = lfirst(cell);
		Path *groups;

		if (!IsA(path, GroupingSetsPath))
			continue;
		if (like == NULL)
			like = path;
		if (path->aggstrategy != AGG_SORTED)
			continue;
		gpusort_offer(offer->rel, NULL, with_gpusort(offer, &path->path));
		if (!gpusort_statement_shares_output())
			continue;
		if (!gpusort_rollup_split(offer->root, offer->rel, offer->input_rel, path, &parts))
			continue;
		groups = with_gpusort(offer, &parts.groups->path);
		if (groups != NULL)
			gpusort_offer(offer->rel, NULL,
						  gpusort_sets_join(offer->root, offer->rel, path, list_make2(groups, parts.total)));
	}
	if (like == NULL || IS_OTHER_REL(offer->input_rel))
		return;
	foreach(cell, gpusort_sets_apart_paths(offer->root, offer->rel, offer->input_rel, like, offer->parallel))
		gpusort_offer(offer->rel, NULL, lfirst(cell));
	if (!offer->parallel)
		return;
	gpusort_offer(offer->rel, NULL, gpusort_partial_sets_path(offer->root, offer->rel, offer->input_rel, like));
}

/* DISTINCT and DISTINCT ON by sorting. */
static Path *
distinct_path(const Offer *offer)
{
	PlannerInfo *root = offer->root;
	List *pathkeys = root->distinct_pathkeys;
	Path *sorted;

	if (!grouping_is_sortable(PROCESSED_DISTINCT_CLAUSE(root)))
		return NULL;
	if (root->parse->hasDistinctOn && list_length(pathkeys) < list_length(root->sort_pathkeys))
		pathkeys = root->sort_pathkeys;
	sorted = sorted_input(offer, pathkeys);
	if (sorted == NULL)
		return NULL;
	return (Path *) create_upper_unique_path(root, offer->rel, sorted, list_length(root->distinct_pathkeys),
											 offer->native->rows);
}

/*
 * UNION by sorting, if PostgreSQL does it by hashing.  The path of that may compute other columns of its groups, as
 * one side of another set operation.
 */
static Path *
union_path(const Offer *offer)
{
	const AggPath *native = (const AggPath *) offer->native;
	Path *partial = NULL;
	List *pathkeys;
	Path *sorted;
	Path *path;

	if (!IsA(native, AggPath) || native->aggstrategy != AGG_HASHED || !grouping_is_sortable(native->groupClause) ||
		native->subpath->pathtarget->sortgrouprefs == NULL)
		return NULL;
	pathkeys = make_pathkeys_for_sortclauses(offer->root, native->groupClause,
											 make_tlist_from_pathtarget(native->subpath->pathtarget));
	if (pathkeys == NIL)
		return NULL;
	if (offer->parallel && IsA(native->subpath, AppendPath))
		partial = gpusort_partial_append(offer->root, offer->rel, (AppendPath *) native->subpath);
	else if (offer->parallel)
		partial = gpusort_partial_of(native->subpath);
	sorted = gpusort_sorted_path(offer->root, offer->rel, native->subpath, partial, pathkeys);
	if (sorted == NULL)
		return NULL;
	path = (Path *) create_upper_unique_path(offer->root, offer->rel, sorted, list_length(pathkeys), native->path.rows);
	if (!equal(path->pathtarget->exprs, native->path.pathtarget->exprs))
		path = apply_projection_to_path(offer->root, offer->rel, path, native->path.pathtarget);
	return path;
}

/* Offers set operations by sorting, in the place of each of PostgreSQL's paths: several operations can have one rel. */
static void
offer_set_operations(Offer *offer)
{
	ListCell *cell;

	foreach(cell, offer->rel->pathlist)
	{
		Path *native = offer->native = lfirst(cell);

		gpusort_offer(native->parent, native, with_gpusort(offer, native));
		gpusort_offer(native->parent, native,
					  gpusort_sorted_set_operation(offer->root, offer->rel, native, offer->parallel));
		if (enable_sort)
			gpusort_offer(native->parent, native, union_path(offer));
	}
}

/*
 * Returns true if rel's cheapest path is there and needs a sort to come in the order of the query.
 *
 * It may not be there: PostgreSQL has added rel's paths that are in order to the ordered rel as they
 * are, where add_path frees those that others dominate, and rel still points to them.  A path that
 * needs a sort was not added itself (a Sort over it was), so it is never freed.  That decides:
 *
 *	- a path that the ordered rel has is there, and in order;
 *	- one whose parent is another rel was freed, and its memory used for something else: paths that were
 *	  made since have the ordered rel for parent, or are ours;
 *	- one whose parent is rel is there, or was freed and is as it was: then it is in order.
 *
 * A freed path is read for no more than that, its parent and its pathkeys, whose list nobody frees; and
 * it can be read, for a memory context keeps small pieces until it is reset, which ours is not before
 * the plan is made.  The last step of a set operation belongs to a rel of its own.
 */
static bool
needs_sort(PlannerInfo *root, const RelOptInfo *rel, const RelOptInfo *ordered_rel)
{
	const Path *path = rel->cheapest_total_path;

	if (path == NULL || root->sort_pathkeys == NIL || list_member_ptr(ordered_rel->pathlist, path))
		return false;
	if (path->parent != rel && !list_member_ptr(root->upper_rels[UPPERREL_SETOP], path->parent))
		return false;
	return !pathkeys_contained_in(root->sort_pathkeys, path->pathkeys);
}

/* Offers GpuSort of all rows of a query in its order. */
static void
offer_order(PlannerInfo *root, RelOptInfo *input_rel, RelOptInfo *ordered_rel)
{
	Path *input = input_rel->cheapest_total_path;
	PathTarget *target = root->upper_targets[UPPERREL_ORDERED];

	if (!needs_sort(root, input_rel, ordered_rel))
		return;
	for (int parallel = 1; parallel >= 0; parallel--)
	{
		Path *partial = parallel && input_rel->partial_pathlist != NIL ? linitial(input_rel->partial_pathlist) : NULL;
		Path *path;

		if (parallel && partial == NULL)
			continue;
		path = gpusort_sorted_path(root, ordered_rel, input, partial, root->sort_pathkeys);
		/* set operations have no target */
		if (path != NULL && target != NULL && path->pathtarget != target)
			path = apply_projection_to_path(root, ordered_rel, path, target);
		gpusort_offer(ordered_rel, NULL, path);
	}
}

/* Offers what GpuSort could do for an upper rel that has all of PostgreSQL's paths. */
void
gpusort_offer_upper_paths(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input_rel, RelOptInfo *output_rel,
						  const GroupPathExtraData *grouping)
{
	Offer offer = {.root = root, .input_rel = input_rel, .rel = output_rel, .grouping = grouping};

	if (output_rel->pathlist == NIL)
		return;
	offer.native = linitial(output_rel->pathlist);
	if (stage == UPPERREL_ORDERED)
	{
		offer_order(root, input_rel, output_rel);
		return;
	}
	for (int parallel = 1; parallel >= 0; parallel--)
	{
		offer.parallel = parallel;
		if (stage == UPPERREL_SETOP)
		{
			offer_set_operations(&offer);
			continue;
		}
		gpusort_offer(output_rel, NULL, with_gpusort(&offer, offer.native));
		if (stage == UPPERREL_GROUP_AGG)
			offer_grouping_sets(&offer);
		if (!enable_sort)
			continue;
		if (stage == UPPERREL_GROUP_AGG)
		{
			gpusort_offer(output_rel, NULL, grouped_path(&offer));
			gpusort_offer(output_rel, NULL,
						  gpusort_ordered_aggregates_path(root, output_rel, input_rel, grouping, output_rel->reltarget,
														  parallel));
			gpusort_offer(output_rel, NULL, gpusort_orders_apart_path(root, output_rel, input_rel, grouping, parallel));
		}
		else if (stage == UPPERREL_DISTINCT)
			gpusort_offer(output_rel, NULL, distinct_path(&offer));
	}
}
