/*-------------------------------------------------------------------------
 *
 * offers.c
 *	  GpuSort in places of the plan that PostgreSQL chose.
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
 *	  - it takes less time: than PostgreSQL's path by GPUSORT_MARGIN of what it does itself, and some least gain, and than
 *		that with what has taken places below it by anything; and, for estimates can
 *		be wrong by ten, the worst that it takes with ten times or a tenth of the groups, or of the rows on a join's
 *		side, is no worse than the worst of the other.
 *
 * Below a Gather a join or group of PostgreSQL's in all processes stays there: what takes its place is a
 * partial path, too, of ranges that all processes sort (ranges_path.c).  Else GpuSort takes the place of Sorts alone
 * there, in the finished plan (sort_nodes.c).  Paths that a nested loop reads again and again stay as they are, and joins of which another
 * module advises, with what is below them.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/offer/offers.h"

#include "node.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "plan/model/path_time.h"
#include "plan/model/shape.h"
#include "plan/model/sort_time.h"
#include "plan/offer/admission.h"
#include "plan/offer/join_paths.h"
#include "plan/offer/paths.h"
#include "plan/tell/estimate.h"
#include "settings.h"

/* Estimated numbers of rows can be wrong by so much. */
#define GUESS 10.0

/* Where hashing is as good by the estimate, but gets so many times worse if there are many more groups, it has no margin. */
#define MORE_GROUPS 100.0
#define WORSE       2.5

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

/* A place in the tree of paths. */
typedef struct PathPlace
{
	PlannerInfo *root;
	double first; /* so many rows are wanted; -1: all */
	bool alone;   /* one process reads it, once: Gathers may be in it */
	bool once;    /* so does the statement: it is not of a SubPlan */
	bool shared;  /* processes of a Gather have a part of its rows each, which they read once */
	bool last;    /* it gives the rows of its query: in its order, if that has one */
	bool ordered; /* what reads it relies on the order of PostgreSQL's path */
} PathPlace;

/* What could stand in a place. */
typedef struct Choice
{
	const PathPlace *place;
	const Path *native;
	List *joins;   /* rels that native joins */
	List *partial; /* those of them that it joins in several processes */
	bool forced;   /* by gpusort.force: whatever time it takes */
	Path *best;
	double best_time;
	double own_time; /* of PostgreSQL's path without what takes places below it */
} Choice;

static GpuSortOffers *offers = NULL;

static Path *take(const PathPlace *place, Path *path);

/* Begins to plan a statement, with offers or without; returns what is to be handed to end, whatever happens. */
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

		if (of_rel->rel == rel && of_rel->native == native && (native == NULL || of_rel->native_cost == native->total_cost))
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

/* How a path refers to what is below it. */
typedef struct Children
{
	Size size;       /* of the path; 0: it is not gone through */
	Path **links[2]; /* NULL: none */
	List **list;     /* of paths; NULL: none */
} Children;

#define ONE_CHILD(type)                                                                               \
	do                                                                                                \
	{                                                                                                 \
		StaticAssertStmt(offsetof(type, subpath) == offsetof(ProjectionPath, subpath), "one layout"); \
		children.size = sizeof(type);                                                                 \
		children.links[0] = &((type *) path)->subpath;                                                \
	} while (0)

static bool
is_join(const Path *path)
{
	return IsA(path, NestPath) || IsA(path, MergePath) || IsA(path, HashPath);
}

static Children
children_of(Path *path)
{
	Children children = {0};

	switch (nodeTag(path))
	{
		case T_ProjectionPath:
			ONE_CHILD(ProjectionPath);
			break;
		case T_ProjectSetPath:
			ONE_CHILD(ProjectSetPath);
			break;
		case T_SortPath:
			ONE_CHILD(SortPath);
			break;
		case T_IncrementalSortPath:
			children.size = sizeof(IncrementalSortPath);
			children.links[0] = &((IncrementalSortPath *) path)->spath.subpath;
			break;
		case T_GroupPath:
			ONE_CHILD(GroupPath);
			break;
		case T_UpperUniquePath:
			ONE_CHILD(UpperUniquePath);
			break;
		case T_AggPath:
			ONE_CHILD(AggPath);
			break;
		case T_GroupingSetsPath:
			ONE_CHILD(GroupingSetsPath);
			break;
		case T_WindowAggPath:
			ONE_CHILD(WindowAggPath);
			break;
		case T_LimitPath:
			ONE_CHILD(LimitPath);
			break;
		case T_LockRowsPath:
			ONE_CHILD(LockRowsPath);
			break;
		case T_ModifyTablePath:
			ONE_CHILD(ModifyTablePath);
			break;
		case T_MaterialPath:
			ONE_CHILD(MaterialPath);
			break;
		case T_SubqueryScanPath:
			ONE_CHILD(SubqueryScanPath);
			break;
		case T_SetOpPath:
			children.size = sizeof(SetOpPath);
#ifdef SET_OPERATIONS_READ_APPEND
			children.links[0] = &((SetOpPath *) path)->subpath;
#else
			children.links[0] = &((SetOpPath *) path)->leftpath;
			children.links[1] = &((SetOpPath *) path)->rightpath;
#endif
			break;
		case T_NestPath:
			children.size = sizeof(NestPath);
			break;
		case T_GatherPath:
			ONE_CHILD(GatherPath);
			break;
		case T_GatherMergePath:
			ONE_CHILD(GatherMergePath);
			break;
		case T_MergePath:
			children.size = sizeof(MergePath);
			break;
		case T_HashPath:
			children.size = sizeof(HashPath);
			break;
		case T_AppendPath:
			children.size = sizeof(AppendPath);
			children.list = &((AppendPath *) path)->subpaths;
			break;
		case T_MergeAppendPath:
			children.size = sizeof(MergeAppendPath);
			children.list = &((MergeAppendPath *) path)->subpaths;
			break;
		default:
			break;
	}
	if (is_join(path))
	{
		children.links[0] = &((JoinPath *) path)->outerjoinpath;
		children.links[1] = &((JoinPath *) path)->innerjoinpath;
	}
	return children;
}

/* The path that a node reads; NULL if there is none, or several. */
static const Path *
only_child(const Path *path)
{
	Children children;

	if (IsA(path, MemoizePath))
		return ((const MemoizePath *) path)->subpath;
	if (gpusort_path_is_output(path))
		return gpusort_output_path_child(path);
	if (IsA(path, CustomPath))
		return gpusort_path_is_sort(path) ? ((const GpuSortPath *) path)->input : NULL;
	children = children_of((Path *) path);
	return children.links[0] != NULL && children.links[1] == NULL ? *children.links[0] : NULL;
}

/* Adds the rels that a path joins to a list, each once: all of them, or those that it joins in several processes. */
static List *
add_joins(List *joins, const Path *path, bool partial_only)
{
	const Path *child = only_child(path);
	Children children;
	ListCell *cell;

	if (IsA(path, GatherPath) || IsA(path, GatherMergePath) || (gpusort_path_is_sort(path) && ((const GpuSortPath *) path)->gathered))
		partial_only = false;
	if (child != NULL)
		return add_joins(joins, child, partial_only);
	children = children_of((Path *) path);
	if (children.links[0] != NULL)
	{
		if (!IsA(path, SetOpPath) && !partial_only)
			joins = list_append_unique_ptr(joins, path->parent);
		joins = add_joins(add_joins(joins, *children.links[0], partial_only), *children.links[1], partial_only);
	}
	foreach(cell, children.list != NULL ? *children.list : NIL)
		joins = add_joins(joins, lfirst(cell), partial_only);
	return joins;
}

/* Returns true if a path has the order that is needed and the joins of the one in its place, those of several processes in several. */
static bool
fits(const Choice *choice, const Path *path)
{
	const PathPlace *place = choice->place;
	const Path *native = choice->native;
	List *order = place->ordered ? native->pathkeys : place->last ? place->root->sort_pathkeys
																  : NIL;
	List *joins;

	if (MORE_DISABLED_NODES(path, native) > 0 || PATH_REQ_OUTER(path) != NULL ||
		!pathkeys_contained_in(order, path->pathkeys))
		return false;
	joins = add_joins(NIL, path, false);
	return list_length(joins) == list_length(choice->joins) && list_difference_ptr(joins, choice->joins) == NIL &&
		list_difference_ptr(choice->partial, add_joins(NIL, path, true)) == NIL;
}

/* Returns false if one of the paths of PostgreSQL's that path reads costs more than the one in whose place it would be. */
static bool
inputs_cost_less(const Path *path, double cost)
{
	const Path *child = only_child(path);
	Children children;
	ListCell *cell;

	if (gpusort_path_is_sort(path))
		return child->total_cost <= cost;
	if (child != NULL)
		return inputs_cost_less(child, cost);
	children = children_of((Path *) path);
	for (int i = 0; i < 2; i++)
	{
		if (children.links[i] != NULL && !inputs_cost_less(*children.links[i], cost))
			return false;
	}
	foreach(cell, children.list != NULL ? *children.list : NIL)
	{
		if (!inputs_cost_less(lfirst(cell), cost))
			return false;
	}
	return true;
}

/* What a path takes before its GpuSorts begin: others' work, which the model does not have to know well. */
static double
input_time(PlannerInfo *root, const Path *path)
{
	static const GpuSortGuess estimated = {.groups = 1};
	const Path *child = only_child(path);
	Children children;
	double time = 0;

	if (gpusort_path_is_sort(path))
		return gpusort_path_time(root, ((const GpuSortPath *) path)->input, -1, &estimated);
	if (child != NULL)
		return input_time(IsA(path, SubqueryScanPath) ? path->parent->subroot : root, child);
	children = children_of((Path *) path);
	for (int i = 0; i < 2; i++)
	{
		if (children.links[i] != NULL)
			time += input_time(root, *children.links[i]);
	}
	return time;
}

/* Returns true if a path groups rows, so that the number of groups counts. */
static bool
groups(const Path *path)
{
	return IsA(path, AggPath) || IsA(path, GroupPath) || IsA(path, UpperUniquePath) || IsA(path, GroupingSetsPath) ||
		IsA(path, SetOpPath) || (IsA(path, ProjectionPath) && groups(((const ProjectionPath *) path)->subpath));
}

/* Returns true if the worst that ours takes by any of the guesses is no worse than the worst of native. */
static bool
worst_is_no_worse(const Choice *choice, const Path *ours, const GpuSortGuess *guesses, int count)
{
	const PathPlace *place = choice->place;
	double our_worst = 0;
	double native_worst = 0;

	for (int i = 0; i < count; i++)
	{
		our_worst = Max(our_worst, gpusort_path_time(place->root, ours, place->first, &guesses[i]));
		native_worst = Max(native_worst, gpusort_path_time(place->root, choice->native, place->first, &guesses[i]));
	}
	return our_worst <= native_worst;
}

/* Returns true if ours is worth taking the place even where numbers of rows are estimated badly. */
static bool
is_safe(const Choice *choice, const Path *ours)
{
	const Path *native = choice->native;

	if (IsA(native, HashPath) || IsA(native, MergePath))
	{
		const JoinPath *join = (const JoinPath *) native;
		const Relids one = join->outerjoinpath->parent->relids;
		const GpuSortGuess guesses[] = {
			{1, join->path.parent, one, 1, 1},
			{1, join->path.parent, one, GUESS, 1},
			{1, join->path.parent, one, 1, GUESS},
			{1, join->path.parent, one, 1 / GUESS, 1},
			{1, join->path.parent, one, 1, 1 / GUESS},
		};

		return worst_is_no_worse(choice, ours, guesses, lengthof(guesses));
	}
	if (groups(native))
	{
		const GpuSortGuess guesses[] = {{.groups = 1}, {.groups = GUESS}, {.groups = 1 / GUESS}};

		return worst_is_no_worse(choice, ours, guesses, lengthof(guesses));
	}
	return true;
}

/* Returns true if hashing, of so long by the estimate, would suffer by many more groups than estimated, and ours not. */
static bool
hashing_may_suffer(const Choice *choice, const Path *ours)
{
	const GpuSortGuess many = {.groups = MORE_GROUPS};
	const PathPlace *place = choice->place;

	return groups(choice->native) &&
		gpusort_path_time(place->root, choice->native, place->first, &many) >=
		WORSE * gpusort_path_time(place->root, ours, place->first, &many);
}

/* Has a path over GpuSort compete for the place; it may be NULL. */
static void
compete(Choice *choice, Path *path)
{
	static const GpuSortGuess estimated = {.groups = 1};
	const PathPlace *place = choice->place;
	double time;
	double margin;

	if (path == NULL || !fits(choice, path) || (!choice->forced && !inputs_cost_less(path, choice->native->total_cost)))
		return;
	if (!equal(path->pathtarget->exprs, choice->native->pathtarget->exprs))
		path = apply_projection_to_path(place->root, path->parent, path, choice->native->pathtarget);
	time = gpusort_path_time(place->root, path, place->first, &estimated);
	if (choice->best != choice->native)
	{
		if (time < choice->best_time)
		{
			choice->best = path;
			choice->best_time = time;
		}
		return;
	}
	if (MORE_DISABLED_NODES(choice->native, path) == 0 && !choice->forced)
	{
		margin = hashing_may_suffer(choice, path)
			? 0
			: (GPUSORT_MARGIN - 1) * Max(time - input_time(place->root, path), 0) + gpusort_least_gain(IsA(choice->native, SortPath));
		if (time + margin >= choice->own_time || time >= choice->best_time || !is_safe(choice, path))
			return;
	}
	choice->best = path;
	choice->best_time = time;
}

/* Gives a path the cost of the one in whose place it is, and has nothing below it that is ours cost more than that. */
static void
take_cost(Path *path, double startup_cost, double total_cost)
{
	Children children;

	path->startup_cost = Min(startup_cost, total_cost);
	path->total_cost = total_cost;
	for (Path *below = path; below != NULL;)
	{
		below->total_cost = Min(below->total_cost, total_cost);
		below->startup_cost = Min(below->startup_cost, below->total_cost);
		if (gpusort_path_is_sort(below))
			return;
		children = children_of(below);
		if (children.links[1] != NULL)
		{
			/* the sides of a join of ours are GpuSorts, or PostgreSQL's paths, which cost less */
			for (int i = 0; i < 2; i++)
			{
				if (gpusort_path_is_sort(*children.links[i]))
					take_cost(*children.links[i], (*children.links[i])->startup_cost,
							  Min((*children.links[i])->total_cost, total_cost));
			}
			return;
		}
		below = gpusort_path_is_output(below) ? gpusort_output_path_child(below) : children.links[0] != NULL ? *children.links[0]
																											 : NULL;
	}
}

/* The number of rows that a Limit wants of what is below it; -1: all, or nobody knows. */
static double
limit_of(const PathPlace *place, const LimitPath *path)
{
	PlannerInfo *root = place->root;
	bool known;

	if (path->limitCount == NULL || path->limitOption != LIMIT_OPTION_COUNT)
		return -1;
	return gpusort_limit_rows(estimate_expression_value(root, path->limitCount),
							  path->limitOffset != NULL ? estimate_expression_value(root, path->limitOffset) : NULL,
							  path->subpath->rows, &known);
}

/* Returns true if a path is above all that its rel's other paths do: what it reads is in the place. */
static bool
passes_on(const Path *path)
{
	return IsA(path, LimitPath) || IsA(path, LockRowsPath) || IsA(path, ModifyTablePath) || IsA(path, ProjectSetPath);
}

/*
 * Returns true if what is below a Gather may be read by ranges: it is not to start over but with the Gather, the leader
 * takes part, all rows are wanted, and sorts have room.
 */
static bool
may_share(const PathPlace *place, const Path *path)
{
	return place->alone && place->once && place->first < 0 && gpusort_parallel_output && gpusort_spill && parallel_leader_participation &&
		place->root->parse->commandType == CMD_SELECT && !(IsA(path, GatherPath) && ((const GatherPath *) path)->single_copy);
}

/* Where the child of a path is: link 0 or 1, or one of a list (2). */
static PathPlace
place_below(const PathPlace *place, const Path *path, int link)
{
	PathPlace below = {
		.root = place->root,
		.first = -1,
		.alone = place->alone,
		.once = place->once,
		.shared = place->shared,
		.last = place->last && passes_on(path),
	};
	const bool needed = place->ordered || (place->last && place->root->sort_pathkeys != NIL);

	/* Nodes that pass rows on need an order if it is needed of them, those that sort or hash none, others that of what they read. */
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
			below.first = limit_of(place, (const LimitPath *) path);
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

/* Returns a path with what takes the places below it: the same, if nothing does. */
static Path *
with_children(const PathPlace *place, Path *path)
{
	Children children = children_of(path);
	Path *copy = NULL;

	if (gpusort_path_is_sort(path) && !((GpuSortPath *) path)->gathered)
	{
		const PathPlace below = place_below(place, path, 0);
		Path *input = gpusort_path_input(path);
		Path *taken = take(&below, input);

		return taken == input ? path : gpusort_path_over(path, taken);
	}
	for (int i = 0; i < 2; i++)
	{
		Path *child = children.links[i] != NULL ? *children.links[i] : NULL;
		const PathPlace below = place_below(place, path, i);
		Path *taken = child != NULL ? take(&below, child) : NULL;

		if (taken == child)
			continue;
		if (copy == NULL)
			copy = memcpy(palloc(children.size), path, children.size);
		*children_of(copy).links[i] = taken;
		copy->parallel_safe &= taken->parallel_safe;
	}
	if (children.list != NULL)
	{
		const PathPlace below = place_below(place, path, 2);
		List *list = NIL;
		bool safe = path->parallel_safe;
		bool changed = false;
		ListCell *cell;

		foreach(cell, *children.list)
		{
			Path *taken = take(&below, lfirst(cell));

			changed |= taken != lfirst(cell);
			safe &= taken->parallel_safe;
			list = lappend(list, taken);
		}
		if (changed)
		{
			copy = memcpy(palloc(children.size), path, children.size);
			*children_of(copy).list = list;
			copy->parallel_safe = safe;
		}
	}
	if (copy == NULL)
		return path;
	/* What takes a place can be in an order that was sorted for. */
	if (IsA(copy, SortPath) && pathkeys_contained_in(copy->pathkeys, ((SortPath *) copy)->subpath->pathkeys))
		return ((SortPath *) copy)->subpath;
	return copy;
}

/* Sorts by GpuSort in the place of a sort of PostgreSQL's, or of a Gather Merge of sorts. */
static void
compete_sorts(Choice *choice, Path *path)
{
	PlannerInfo *root = choice->place->root;
	Path *input;
	Path *partial;

	if (IsA(path, SortPath))
	{
		input = ((SortPath *) path)->subpath;
		partial = gpusort_partial_of(input);
		compete(choice, gpusort_sorted_path(root, path->parent, input, NULL, path->pathkeys));
	}
	else if (IsA(path, GatherMergePath) && IsA(((GatherMergePath *) path)->subpath, SortPath))
	{
		input = path;
		partial = ((SortPath *) ((GatherMergePath *) path)->subpath)->subpath;
	}
	else
		return;
	if (partial != NULL && partial->parallel_workers > 0)
		compete(choice, gpusort_sorted_path(root, path->parent, input, partial, path->pathkeys));
}

/* Has the offers for a rel compete, which may be NULL. */
static void
compete_offers(Choice *choice, const RelOffers *of_rel)
{
	ListCell *cell;

	foreach(cell, of_rel != NULL ? of_rel->paths : NIL)
		compete(choice, with_children(choice->place, lfirst(cell)));
}

/* Has all that could stand in a place compete for it; paths of PostgreSQL's are there with what takes places below. */
static Path *
choose(const PathPlace *place, Path *path, const RelOffers *of_rel, const RelOffers *of_order)
{
	static const GpuSortGuess estimated = {.groups = 1};
	Path *taken = with_children(place, path);
	const bool joins = IsA(taken, HashPath) || IsA(taken, MergePath);
	const bool sorts = IsA(taken, SortPath) || IsA(taken, GatherMergePath);
	Choice choice = {.place = place, .native = taken, .best = taken};

	if (of_rel == NULL && of_order == NULL && !joins && !sorts)
		return taken;
	choice.joins = add_joins(NIL, taken, false);
	choice.partial = add_joins(NIL, taken, true);
	choice.forced = gpusort_force && (of_order != NULL || sorts);
	choice.best_time = gpusort_path_time(place->root, taken, place->first, &estimated);
	choice.own_time = taken == path ? choice.best_time : gpusort_path_time(place->root, path, place->first, &estimated);
	compete_offers(&choice, of_rel);
	compete_offers(&choice, of_order);
	if (sorts && of_order == NULL)
		compete_sorts(&choice, taken);
	if (joins)
	{
		compete(&choice, gpusort_joined_path(place->root, (JoinPath *) taken, GPUSORT_JOIN_GATHERED));
		compete(&choice, gpusort_joined_path(place->root, (JoinPath *) taken, GPUSORT_JOIN_SERIAL));
	}
	if (choice.best != taken)
		take_cost(choice.best, path->startup_cost,
				  choice.forced ? Max(path->total_cost, choice.best->total_cost) : path->total_cost);
	return choice.best;
}

/* The same below a Gather, of a partial path: what takes its place is one, too. */
static Path *
choose_shared(const PathPlace *place, Path *path)
{
	static const GpuSortGuess estimated = {.groups = 1};
	Path *taken = with_children(place, path);
	Choice choice = {.place = place, .native = taken, .best = taken};

	if (JOINS_ARE_ADVISED || (!IsA(taken, HashPath) && !IsA(taken, MergePath) && !IsA(taken, AggPath)))
		return taken;
	choice.joins = add_joins(NIL, taken, false);
	choice.best_time = gpusort_path_time(place->root, taken, -1, &estimated);
	choice.own_time = taken == path ? choice.best_time : gpusort_path_time(place->root, path, -1, &estimated);
	if (IsA(taken, AggPath))
		compete(&choice, gpusort_grouped_ranges_path(place->root, (AggPath *) taken, place->ordered && taken->pathkeys != NIL));
	else
		compete(&choice, gpusort_joined_ranges_path(place->root, (JoinPath *) taken));
	if (choice.best != taken)
		take_cost(choice.best, path->startup_cost, path->total_cost);
	return choice.best;
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

/* Returns what is to stand in a place, where PostgreSQL has path. */
static Path *
take(const PathPlace *place, Path *path)
{
	List *ordered = place->root->upper_rels[UPPERREL_ORDERED];
	RelOffers *of_rel = NULL;
	RelOffers *of_order = NULL;
	Path *taken;

	if (path->param_info != NULL || (JOINS_ARE_ADVISED && is_join(path)))
		return path;
	if (place->shared)
		return path->parallel_workers > 0 ? choose_shared(place, path) : path;
	if (!place->alone)
		return path;
	if (passes_on(path))
		return with_children(place, path);
	if (place->last && place->root->sort_pathkeys != NIL && ordered != NIL)
		of_order = ask(linitial(ordered), NULL);
	of_rel = ask(path->parent, NULL);
	if (of_rel == NULL)
		of_rel = ask(path->parent, path);
	taken = choose(place, path, of_rel, of_order);
	if (of_rel != NULL)
		of_rel->asked = false;
	if (of_order != NULL)
		of_order->asked = false;
	return taken;
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

/* What is saved by a path that is taken in the place of PostgreSQL's, with which it begins alike. */
static double
saved_time(const PathPlace *place, Path *native, Path *taken)
{
	static const GpuSortGuess estimated = {.groups = 1};
	Children ours = children_of(taken);
	Children theirs = children_of(native);
	double saved = 0;

	if (native != taken)
		saved = gpusort_path_time(place->root, native, place->first, &estimated) - gpusort_path_time(place->root, taken, place->first, &estimated);
	if (native == taken || saved != 0 || nodeTag(native) != nodeTag(taken))
		return saved;
	/* The model knows only the cost of such a node, of a Limit say, which is that of both. */
	for (int i = 0; i < 2; i++)
	{
		const PathPlace below = place_below(place, native, i);

		if (theirs.links[i] != NULL && ours.links[i] != NULL)
			saved += saved_time(&below, *theirs.links[i], *ours.links[i]);
	}
	return saved;
}

/* Has offers take their places in the paths of a query, which has all of them. */
void
gpusort_offers_take(PlannerInfo *root, RelOptInfo *final_rel)
{
	static const GpuSortGuess estimated = {.groups = 1};
	Path *cheapest = NULL;
	Path *taken = NULL;
	PathPlace chosen = {0};
	ListCell *cell;

	if (!is_planned_alone(root))
		return;
	foreach(cell, final_rel->pathlist)
	{
		Path *path = lfirst(cell);
		PathPlace place = {
			.root = root,
			.first = -1,
			.alone = root->parent_root == NULL || is_cte(root) || !path->parallel_safe,
			.once = root->parent_root == NULL || is_cte(root),
			.last = true,
		};

		/* What a cursor is expected to read of its rows, or EXISTS of its query's */
		if (root->tuple_fraction > 0)
			place.first = root->tuple_fraction < 1 ? clamp_row_est(root->tuple_fraction * path->rows) : root->tuple_fraction;
		if (place.first >= 0 && IsA(path, LimitPath))
			place.first = -1;
		lfirst(cell) = take(&place, path);
		if (cheapest == NULL || path->total_cost < cheapest->total_cost)
		{
			cheapest = path;
			taken = lfirst(cell);
			chosen = place;
		}
	}
	if (gpusort_estimate_is_wanted() && cheapest != NULL)
		gpusort_estimate_add(gpusort_path_time(root, cheapest, chosen.first, &estimated), saved_time(&chosen, cheapest, taken));
}
