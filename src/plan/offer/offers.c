/*-------------------------------------------------------------------------
 *
 * offers.c
 *	  Puts GpuSort into places of the plan that PostgreSQL chose.
 *
 * The one rule: while PostgreSQL plans, it sees its own paths alone.  What gpusort could do at an upper rel (its
 * windows, groups, DISTINCT, set operation, ORDER BY) is kept aside, as offers.  When all of PostgreSQL's paths of a
 * query are there, at UPPERREL_FINAL, the tree of the path that it has chosen is gone through from below: where
 * a node sorts, groups or joins, and an offer does the same and takes less time by the model (path_time.c), the offer
 * stands in for it, with the node's cost.  So no join order, no parallelism and no
 * choice above depends on gpusort: the tree of joined relations is the same with it and without.
 *
 * The trees of subqueries in FROM are gone through with the query that reads them, when it is known where they run;
 * those of CTEs and SubPlans, whose plans PostgreSQL makes at once, for themselves.
 *
 * An offer takes a place only if
 *
 *	  - it gives the same rows, in the order of the path in the place if what reads them relies on it;
 *	  - it joins the same relations in the same steps, those that PostgreSQL would have joined in several processes too;
 *	  - none of its inputs costs more than the path in the place, so that no path costs less than its inputs;
 *	  - it takes less time: than PostgreSQL's path by GPUSORT_MARGIN of what it does itself, and some least gain, and
 * than that with what has taken places below it by anything; and, for estimates can
 * be wrong by ten, the worst that it takes with ten times or a tenth of the groups,
 * or of the rows on a join's side, is no worse than the worst of the other.
 *
 * Below a Gather a join or group of PostgreSQL's in all processes stays there: what takes its place is a
 * partial path, too, of ranges that all processes sort (ranges_path.c).  Else GpuSort takes the place of Sorts alone
 * there, in the finished plan (sort_nodes.c).  Paths that a nested loop reads again and again stay as they are, what
 * has all of a query done elsewhere (a foreign server, say), and joins of which another module advises, with what is
 * below them.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/offer/offers.h"

#include <math.h>

#include "executor/executor.h"
#include "facts/limits.h"
#include "node.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"
#include "plan/admission.h"
#include "plan/estimate.h"
#include "plan/model/shape.h"
#include "plan/model/sort_time.h"
#include "plan/offer/block_ranges.h"
#include "plan/offer/choice.h"
#include "plan/offer/exchange_paths.h"
#include "plan/offer/join_paths.h"
#include "plan/offer/ordered_aggregates.h"
#include "plan/offer/partial_sets.h"
#include "plan/offer/path_time.h"
#include "plan/offer/path_tree.h"
#include "plan/offer/paths.h"
#include "plan/statement.h"
#include "settings.h"

/* Paths over GpuSort that could take the place of a rel's, or of one of its paths alone. */
typedef struct RelOffers
{
	const RelOptInfo *rel;
	const Path *native; /* NULL: any of the rel's */
	Cost native_cost;   /* tells it from what its memory can be used for when it was freed */
	List *paths;
	bool asked; /* they compete for a place: not again for what is below it */
} RelOffers;

struct GpuSortOffers
{
	List *rels; /* of RelOffers */
};

static GpuSortOffers *offers = NULL;

static Path *take(const GpuSortPathPlace *place, Path *path);

/* Begins to plan a statement, with offers or without.  The caller must hand the result to end, whatever happens. */
GpuSortOffers *
gpusort_offers_begin(bool wanted)
{
	GpuSortOffers *before = offers;

	offers = wanted ? palloc0(sizeof(GpuSortOffers)) : NULL;
	return before;
}

void
gpusort_offers_end(GpuSortOffers *before)
{
	offers = before;
}

/* Returns true if offers are taken while this statement is planned. */
bool
gpusort_offers_are_wanted(void)
{
	return offers != NULL;
}

/* Returns the offers for a path of rel, or for the rel; NULL if there are none. */
static RelOffers *
offers_of(const RelOptInfo *rel, const Path *native)
{
	ListCell *cell;

	foreach(cell, offers->rels)
	{
		RelOffers *of_rel = lfirst(cell);

		if (of_rel->rel == rel && of_rel->native == native &&
			(native == NULL || of_rel->native_cost == native->total_cost))
			return of_rel;
	}
	return NULL;
}

/*
 * Keeps a path over GpuSort aside, which may be NULL: of all rows of rel, as any of its paths gives them, or, if
 * native is not NULL, of those of that path.
 */
void
gpusort_offer(const RelOptInfo *rel, const Path *native, Path *path)
{
	RelOffers *found = path != NULL ? offers_of(rel, native) : NULL;

	if (path == NULL)
		return;
	if (found == NULL)
	{
		found = palloc0(sizeof(RelOffers));
		found->rel = rel;
		found->native = native;
		found->native_cost = native != NULL ? native->total_cost : 0;
		offers->rels = lappend(offers->rels, found);
	}
	found->paths = lappend(found->paths, path);
}

/* Returns true if a path is above all that its rel's other paths do: what it reads is in the place. */
static bool
passes_on(const Path *path)
{
	return IsA(path, LimitPath) || IsA(path, LockRowsPath) || IsA(path, ModifyTablePath) || IsA(path, ProjectSetPath);
}

/*
 * Returns true if a path sorts all that a query gives, its LIMIT cut off, for who reads it: from 17 on PostgreSQL does
 * so for set operations.  What is offered for the query is of a place below.
 */
static bool
sorts_for_reader(PlannerInfo *root, const Path *path)
{
	return (IsA(path, SortPath) || IsA(path, IncrementalSortPath)) &&
		path->parent == fetch_upper_rel(root, UPPERREL_FINAL, NULL);
}

/*
 * Returns true if a path does all that a query wants, its LIMIT and locks too, and has no path for what is below these:
 * that of a foreign data wrapper, say, which has all of it done elsewhere.
 */
static bool
is_whole_query(PlannerInfo *root, const Path *path)
{
	return !passes_on(path) && (limit_needed(root->parse) || root->parse->rowMarks != NIL) &&
		list_member_ptr(fetch_upper_rel(root, UPPERREL_FINAL, NULL)->pathlist, path);
}

/*
 * Returns true if the plan below a Gather may be read by ranges: it starts over only together with the Gather, the
 * leader takes part, all rows are wanted, and sorts have room.
 */
static bool
may_share(const GpuSortPathPlace *place, const Path *path)
{
	return place->alone && place->once && place->first < 0 && gpusort_statement_shares_output() && gpusort_spill &&
		parallel_leader_participation && place->root->parse->commandType == CMD_SELECT &&
		!(IsA(path, GatherPath) && ((const GatherPath *) path)->single_copy);
}

/* How many rows of a path's child may do where so many of its own do; -1: it may read all. */
static double
stops_below(double stops, const Path *path, const Path *child, int link)
{
	if (stops < 0 || path->rows <= 0 || !gpusort_path_passes_rows(path, child, link))
		return -1;
	return ceil(stops * Max(child->rows / path->rows, 1)) + 1;
}

/* How many rows of what is below a Limit may do, its OFFSET included; -1: it may read all. */
static double
stops_below_limit(const GpuSortPathPlace *place, const LimitPath *path)
{
	const double rows = path->subpath->rows;
	double stops = -1;
	bool known;

	if (path->limitCount != NULL)
		stops = gpusort_limit_rows(estimate_expression_value(place->root, path->limitCount),
								   estimate_expression_value(place->root, path->limitOffset), rows, &known);
	if (place->stops >= 0)
	{
		double skipped = path->limitOffset != NULL
			? gpusort_limit_rows(estimate_expression_value(place->root, path->limitOffset), NULL, rows, &known)
			: 0;

		stops = stops < 0 ? place->stops + skipped : Min(stops, place->stops + skipped);
	}
	return stops;
}

/* Where a child of a path is: link 0 or 1, or one of a list (2). */
static GpuSortPathPlace
place_below(const GpuSortPathPlace *place, const Path *path, const Path *child, int link)
{
	GpuSortPathPlace below = {
		.root = place->root,
		.first = -1,
		.stops = stops_below(place->stops, path, child, link),
		.alone = place->alone,
		.once = place->once,
		.shared = place->shared,
		.last = place->last && (passes_on(path) || sorts_for_reader(place->root, path)),
		.sought = IsA(path, WindowAggPath),
	};
	const bool needed = place->ordered || (place->last && place->root->sort_pathkeys != NIL);

	/*
	 * Nodes that pass rows on need an order if it is needed of them,
	 * those that sort or hash none, others that of what they read.
	 */
	switch (nodeTag(path))
	{
		case T_SortPath:
		case T_HashPath:
		case T_GatherPath:
			below.ordered = false;
			break;
		case T_AggPath:
			below.ordered = ((const AggPath *) path)->aggstrategy != AGG_HASHED;
			break;
		case T_CustomPath:
			below.ordered = !gpusort_path_is_groups(path);
			break;
		case T_LimitPath:
		case T_LockRowsPath:
		case T_ModifyTablePath:
		case T_ProjectSetPath:
		case T_ProjectionPath:
		case T_MaterialPath:
		case T_SubqueryScanPath:
			below.ordered = needed;
			break;
		case T_NestPath:
		case T_AppendPath:
			below.ordered = needed && path->pathkeys != NIL;
			break;
		default:
			below.ordered = true;
			break;
	}
	switch (nodeTag(path))
	{
		case T_LimitPath:
			below.first = gpusort_limit_path_rows(place->root, (const LimitPath *) path);
			below.stops = stops_below_limit(place, (const LimitPath *) path);
			break;
		case T_ProjectionPath:
			below.first = place->first;
			break;
		case T_SubqueryScanPath:
			below.root = path->parent->subroot;
			below.last = true;
			if (path->parent->baserestrictinfo == NIL)
				below.first = place->first;
			break;
		case T_NestPath:
			if (link == 1)
				below.alone = below.shared = false;
			break;
		case T_GatherPath:
		case T_GatherMergePath:
			below.shared = may_share(place, path);
			below.alone = false;
			break;
		case T_AppendPath:
			if (path->parallel_aware)
				below.alone = false;
			break;
		default:
			break;
	}
	return below;
}

/* Returns true if a path that is taken lacks an order that the one in its place has. */
static bool
loses_order(const Path *path, const Path *taken)
{
	return !pathkeys_contained_in(path->pathkeys, taken->pathkeys);
}

/* A merge join sorts no side that comes in order now. */
static void
drop_sorts(MergePath *join)
{
	const Path *outer = join->jpath.outerjoinpath;
	Path *inner = join->jpath.innerjoinpath;

	if (pathkeys_contained_in(join->outersortkeys, outer->pathkeys))
		join->outersortkeys = NIL;
	if (join->innersortkeys == NIL || !pathkeys_contained_in(join->innersortkeys, inner->pathkeys))
		return;
	join->innersortkeys = NIL;
	/* The Sort could go back to a row that it had given; GpuSort can, too. */
	join->materialize_inner = !join->skip_mark_restore && !ExecSupportsMarkRestore(inner);
}

/*
 * Returns a path with what takes the places below it: the same, if nothing does.  It has no order that it passed on
 * from below and that is not there any more: a merge join that is made of it sorts.
 */
static Path *
with_children(const GpuSortPathPlace *place, Path *path)
{
	GpuSortPathChildren children = gpusort_path_children(path);
	Path *copy = NULL;

	if (gpusort_path_is_sort(path) && !((GpuSortPath *) path)->gathered)
	{
		const GpuSortPathPlace below = place_below(place, path, gpusort_path_input(path), 0);
		Path *input = gpusort_path_input(path);
		Path *taken = take(&below, input);

		return taken == input ? path : gpusort_path_over(path, taken);
	}
	if (gpusort_path_is_groups(path))
	{
		const GpuSortPathPlace below = place_below(place, path, gpusort_partial_path_child(path), 0);
		Path *rows = gpusort_partial_path_child(path);
		Path *taken = take(&below, rows);

		return taken == rows ? path : gpusort_groups_path_over(path, taken);
	}
	for (int i = 0; i < 2; i++)
	{
		Path *child = children.links[i] != NULL ? *children.links[i] : NULL;
		GpuSortPathPlace below;
		Path *taken;

		if (child == NULL)
			continue;
		below = place_below(place, path, child, i);
		taken = take(&below, child);
		if (taken == child)
			continue;
		if (copy == NULL)
			copy = memcpy(palloc(children.size), path, children.size);
		*gpusort_path_children(copy).links[i] = taken;
		copy->parallel_safe &= taken->parallel_safe;
		if (i == 0 && !IsA(path, SortPath) && loses_order(child, taken))
			copy->pathkeys = NIL;
	}
	if (children.list != NULL)
	{
		List *list = NIL;
		bool safe = path->parallel_safe;
		bool changed = false;
		bool unordered = false;
		ListCell *cell;

		foreach(cell, *children.list)
		{
			const GpuSortPathPlace below = place_below(place, path, lfirst(cell), 2);
			Path *taken = take(&below, lfirst(cell));

			changed |= taken != lfirst(cell);
			unordered |= loses_order(lfirst(cell), taken);
			safe &= taken->parallel_safe;
			list = lappend(list, taken);
		}
		if (changed)
		{
			copy = memcpy(palloc(children.size), path, children.size);
			*gpusort_path_children(copy).list = list;
			copy->parallel_safe = safe;
			if (unordered)
				copy->pathkeys = NIL;
		}
	}
	if (copy == NULL)
		return path;
	if (IsA(copy, MergePath))
		drop_sorts((MergePath *) copy);
	/* What takes a place can be in an order that was sorted for. */
	if (IsA(copy, SortPath) && pathkeys_contained_in(copy->pathkeys, ((SortPath *) copy)->subpath->pathkeys))
		return ((SortPath *) copy)->subpath;
	return copy;
}

/*
 * Sorts by GpuSort in the place of a sort of PostgreSQL's, or of a Gather Merge of sorts.  PostgreSQL puts the columns
 * first that a window sorts by; in the table's order rows are taken as they are stored.
 */
static void
compete_sorts(GpuSortChoice *choice, Path *path)
{
	PlannerInfo *root = choice->place->root;
	const bool sought = choice->place->sought;
	Path *input;
	Path *alone;
	Path *partial;

	if (IsA(path, SortPath))
	{
		input = ((SortPath *) path)->subpath;
		partial = gpusort_partial_of(input);
		alone = sought ? gpusort_path_in_table_order(root, input) : input;
		gpusort_choice_compete(choice, gpusort_sorted_path(root, path->parent, alone, NULL, path->pathkeys));
	}
	else if (IsA(path, GatherMergePath) && IsA(((GatherMergePath *) path)->subpath, SortPath))
	{
		input = path;
		partial = ((SortPath *) ((GatherMergePath *) path)->subpath)->subpath;
	}
	else
		return;
	if (partial == NULL || partial->parallel_workers == 0)
		return;
	if (sought && equal(input->pathtarget->exprs, partial->pathtarget->exprs))
	{
		partial = gpusort_path_in_table_order(root, partial);
		if (!equal(input->pathtarget->exprs, partial->pathtarget->exprs))
			input = (Path *) create_projection_path(root, input->parent, input, partial->pathtarget);
	}
	gpusort_choice_compete(choice, gpusort_sorted_path(root, path->parent, input, partial, path->pathkeys));
}

/* Returns a merge join of PostgreSQL's with GpuSort in the place of the Sorts that create_plan would put below it. */
static Path *
with_sorted_sides(const GpuSortPathPlace *place, Path *path)
{
	MergePath *join = (MergePath *) path;

	for (int i = 0; i < 2; i++)
	{
		const GpuSortPathPlace below = place_below(place, path, *gpusort_path_children(path).links[i], i);
		Path *sort = gpusort_sorted_side_path(place->root, (MergePath *) path, i == 0);
		GpuSortChoice choice;
		Path *input;
		Path *taken;

		if (sort == NULL)
			continue;
		choice = gpusort_choice_begin(&below, sort, sort);
		choice.forced = gpusort_force;
		input = ((SortPath *) sort)->subpath;
		gpusort_choice_compete(&choice, gpusort_sorted_path(place->root, sort->parent, input, NULL, sort->pathkeys));
		taken = gpusort_choice_end(&choice);
		if (taken == sort)
			continue;
		if (&join->jpath.path == path)
			join = memcpy(palloc(sizeof(MergePath)), path, sizeof(MergePath));
		*gpusort_path_children(&join->jpath.path).links[i] = taken;
		drop_sorts(join);
		join->jpath.path.parallel_safe = false;
	}
	return &join->jpath.path;
}

/* Lets the offers for a rel compete, which may be NULL. */
static void
compete_offers(GpuSortChoice *choice, const RelOffers *of_rel)
{
	ListCell *cell;

	foreach(cell, of_rel != NULL ? of_rel->paths : NIL)
		gpusort_choice_compete(choice, with_children(choice->place, lfirst(cell)));
}

/* Returns true if a path is a GpuSort of the blocks that an index tells, whatever is computed of its rows. */
static bool
reads_few_blocks(const Path *path)
{
	while (IsA(path, ProjectionPath))
		path = ((const ProjectionPath *) path)->subpath;
	return gpusort_path_is_sort(path) && OidIsValid(((const GpuSortPath *) path)->block_index.index);
}

/*
 * Lets all candidates for a place compete; PostgreSQL's paths, kept among them, have what was chosen below them.
 */
static Path *
choose(const GpuSortPathPlace *place, Path *path, Path *kept, const RelOffers *of_rel, const RelOffers *of_order)
{
	Path *taken = kept;
	const bool joins = IsA(taken, HashPath) || IsA(taken, MergePath);
	const bool sorts = IsA(taken, SortPath) || IsA(taken, GatherMergePath);
	Path *groups = gpusort_sets_of_groups_path(place->root, taken);
	GpuSortChoice choice;

	if (of_rel == NULL && of_order == NULL && !joins && !sorts && groups == NULL)
		return taken;
	choice = gpusort_choice_begin(place, path, taken);
	choice.forced = gpusort_force && !reads_few_blocks(taken) &&
		(of_order != NULL || sorts || gpusort_path_sorts_for_aggregates(place->root, taken));
	compete_offers(&choice, of_rel);
	compete_offers(&choice, of_order);
	if (sorts && of_order == NULL)
		compete_sorts(&choice, taken);
	if (sorts)
		gpusort_choice_compete(&choice, gpusort_block_ranges_path(place->root, taken, place->first));
	if (joins)
	{
		gpusort_choice_compete(&choice, gpusort_joined_path(place->root, (JoinPath *) taken, GPUSORT_JOIN_GATHERED));
		gpusort_choice_compete(&choice, gpusort_joined_path(place->root, (JoinPath *) taken, GPUSORT_JOIN_SERIAL));
	}
	choice.forced |= gpusort_force && groups != NULL;
	gpusort_choice_compete(&choice, groups);
	taken = gpusort_choice_end(&choice);
	if (taken == choice.native && IsA(taken, MergePath) && place->root->parse->commandType == CMD_SELECT)
		return with_sorted_sides(place, taken);
	return taken;
}

/* The same below a Gather, of a partial path: what takes its place is one, too. */
static Path *
choose_shared(const GpuSortPathPlace *place, Path *path)
{
	Path *taken = with_children(place, path);
	GpuSortChoice choice;

	if (JOINS_ARE_ADVISED || (!IsA(taken, HashPath) && !IsA(taken, MergePath) && !IsA(taken, AggPath)))
		return taken;
	choice = gpusort_choice_begin(place, path, taken);
	if (IsA(taken, AggPath))
		gpusort_choice_compete(
			&choice,
			gpusort_grouped_ranges_path(place->root, (AggPath *) taken, place->ordered && taken->pathkeys != NIL));
	else
		gpusort_choice_compete(&choice, gpusort_joined_ranges_path(place->root, (JoinPath *) taken));
	return gpusort_choice_end(&choice);
}

/* Returns the offers for a rel, or a path of it, once; NULL if there are none, or they are being asked already. */
static RelOffers *
ask(const RelOptInfo *rel, const Path *native)
{
	RelOffers *of_rel = offers_of(rel, native);

	if (of_rel == NULL || of_rel->asked)
		return NULL;
	of_rel->asked = true;
	return of_rel;
}

/*
 * Returns which of PostgreSQL's paths may give rows while it reads: with what was chosen below it, as the side of a
 * hash join that is read whole, if it still does.
 */
static Path *
kept_streaming(Path *kept, Path *path)
{
	return gpusort_path_streams(kept) ? kept : path;
}

/*
 * Returns true if a path of PostgreSQL's may give the first rows that do before another one has: as far as these go it
 * takes a part of its cost.
 */
static bool
stops_sooner(const GpuSortPathPlace *place, const Path *path, const Path *taken)
{
	const double first = gpusort_path_streams(taken) ? place->stops : place->first;

	return place->stops >= 0 && place->stops < path->rows && gpusort_path_streams(path) &&
		gpusort_path_time(place->root, path, place->stops, &gpusort_as_estimated) <=
		gpusort_path_time(place->root, taken, first, &gpusort_as_estimated);
}

/* Returns what is to stand in a place, where PostgreSQL has path. */
static Path *
take(const GpuSortPathPlace *place, Path *path)
{
	List *ordered = place->root->upper_rels[UPPERREL_ORDERED];
	RelOffers *of_rel = NULL;
	RelOffers *of_order = NULL;
	Path *kept;
	Path *taken;

	if (path->param_info != NULL || (JOINS_ARE_ADVISED && gpusort_path_is_join(path)))
		return path;
	if (place->shared)
		return path->parallel_workers > 0 ? choose_shared(place, path) : path;
	if (!place->alone)
		return path;
	if (is_whole_query(place->root, path))
		return path;
	if (passes_on(path))
		return with_children(place, path);
	if (place->last && place->root->sort_pathkeys != NIL && ordered != NIL && !sorts_for_reader(place->root, path))
		of_order = ask(linitial(ordered), NULL);
	of_rel = ask(path->parent, NULL);
	if (of_rel == NULL)
		of_rel = ask(path->parent, path);
	kept = with_children(place, path);
	taken = choose(place, path, kept, of_rel, of_order);
	if (of_rel != NULL)
		of_rel->asked = false;
	if (of_order != NULL)
		of_order->asked = false;
	kept = kept_streaming(kept, path);
	return taken != kept && !gpusort_force && stops_sooner(place, kept, taken) ? kept : taken;
}

/*
 * Returns true if the plan of a query is made at once, when it has been planned: a CTE, or a SubPlan of an expression.
 * Both are planned before the query around has arrays of its relations.
 */
static bool
is_planned_alone(const PlannerInfo *root)
{
	return root->parent_root == NULL || root->parent_root->simple_rel_array == NULL;
}

/* Returns true if it is a CTE, which the leader alone reads: they are planned one by one, before SubPlans. */
static bool
is_cte(const PlannerInfo *root)
{
	const PlannerInfo *parent = root->parent_root;

	return parent != NULL && list_length(parent->cte_plan_ids) < list_length(parent->parse->cteList);
}

/*
 * Returns what is taken for a CTE with no order but that of PostgreSQL's path.  From PostgreSQL 17 on what is planned
 * above knows a CTE's order: groups by sorting in the place of hashed ones would have it join otherwise.  The path
 * itself keeps its own, of which a Unique's plan is made.
 */
static Path *
in_order_of(PlannerInfo *root, const Path *path, Path *taken)
{
	ProjectionPath *same;

	if (pathkeys_contained_in(taken->pathkeys, path->pathkeys))
		return taken;
	same = create_projection_path(root, taken->parent, taken, taken->pathtarget);
	same->path.pathkeys = path->pathkeys;
	return &same->path;
}

/* What is saved by a path that is taken in the place of PostgreSQL's, with which it begins alike. */
static double
saved_time(const GpuSortPathPlace *place, Path *native, Path *taken)
{
	GpuSortPathChildren ours = gpusort_path_children(taken);
	GpuSortPathChildren theirs = gpusort_path_children(native);
	double saved = 0;

	if (native != taken)
		saved = gpusort_path_time(place->root, native, place->first, &gpusort_with_limits) -
			gpusort_path_time(place->root, taken, place->first, &gpusort_with_limits);
	if (native == taken || saved != 0 || nodeTag(native) != nodeTag(taken))
		return saved;
	/* The model knows only the cost of such a node, of a LockRows say, which is that of both. */
	for (int i = 0; i < 2; i++)
	{
		GpuSortPathPlace below;

		if (theirs.links[i] == NULL || ours.links[i] == NULL)
			continue;
		below = place_below(place, native, *theirs.links[i], i);
		saved += saved_time(&below, *theirs.links[i], *ours.links[i]);
	}
	return saved;
}

/*
 * Puts offers into their places in the paths of a query, which has all of them, and GpuSortExchange above what runs by
 * ranges.
 */
void
gpusort_offers_take(PlannerInfo *root, RelOptInfo *final_rel)
{
	Path *cheapest = NULL;
	Path *taken = NULL;
	GpuSortPathPlace chosen = {0};
	ListCell *cell;

	if (!is_planned_alone(root))
		return;
	foreach(cell, final_rel->pathlist)
	{
		Path *path = lfirst(cell);
		GpuSortPathPlace place = {
			.root = root,
			.first = -1,
			.stops = -1,
			.alone = root->parent_root == NULL || is_cte(root) || !path->parallel_safe,
			.once = root->parent_root == NULL || is_cte(root),
			.last = true,
		};

		/* What a cursor is expected to read of its rows, or EXISTS of its query's */
		if (root->tuple_fraction > 0)
			place.first =
				root->tuple_fraction < 1 ? clamp_row_est(root->tuple_fraction * path->rows) : root->tuple_fraction;
		place.stops = place.first;
		if (place.first >= 0 && IsA(path, LimitPath))
			place.first = -1;
		lfirst(cell) = take(&place, path);
		if (is_cte(root))
			lfirst(cell) = in_order_of(root, path, lfirst(cell));
		if (cheapest == NULL || compare_fractional_path_costs(path, cheapest, root->tuple_fraction) < 0)
		{
			cheapest = path;
			taken = lfirst(cell);
			chosen = place;
		}
		if (lfirst(cell) != path)
		{
			/* Paths can have sorts in common, which note this for one path after the other. */
			gpusort_path_note_ranges(root, lfirst(cell), place.first);
			lfirst(cell) = gpusort_with_exchanges(root, lfirst(cell));
		}
	}
	if (root->parent_root == NULL && taken != NULL && gpusort_statement_time_is_wanted())
		gpusort_statement_note_time(gpusort_path_fetch_time(root, taken, chosen.first));
	if (gpusort_estimate_is_wanted() && cheapest != NULL)
		gpusort_estimate_add(gpusort_path_time(root, cheapest, chosen.first, &gpusort_with_limits),
							 saved_time(&chosen, cheapest, taken));
}
