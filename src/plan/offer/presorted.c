/*-------------------------------------------------------------------------
 *
 * presorted.c
 *	  Takes sorts out of aggregates whose rows come in order.
 *
 * PostgreSQL's Agg sorts the rows of each group for each aggregate with ORDER BY or DISTINCT, unless the planner, from
 * 16 on, has told the aggregate that they come in order.  When the path of a query is chosen, the aggregates of each
 * Agg over a GpuSort, with a Unique between or without, are looked at:
 *
 *	- one with ORDER BY has that taken away, if the GpuSort sorts by it, as far as the rows of a group differ;
 *	- one with DISTINCT likewise, if the Unique leaves each value once in a group, too;
 *	- without a Unique, where others have need of all rows, a window between numbers the rows of each value, and the
 *	  aggregate gets a FILTER for the first of them:
 *
 *			count(DISTINCT x)						count(x) FILTER (WHERE row_number() OVER w = 1)
 *			count(DISTINCT x) FILTER (WHERE f)		count(x) FILTER (WHERE count(*) FILTER (WHERE f) OVER w = 1 AND f)
 *
 *	  w has the rows of a group that are equal in x, from the first up to the current one.
 *
 * rank() and its like become numbers of rows (counted.c), dense_rank() that of the first rows of their values, but
 * where all of an Agg's read rows by number (exec/percentiles.c).  mode() of all rows is had from the number of rows of
 * each value (mode.c).
 *
 * So the Agg's path has other aggregates than the query, or, of aggregates apart (orders_apart.c), some of them.  The
 * executor keeps them in arrays by their numbers, which must leave no gap: PostgreSQL's own function numbers them
 * again, as if they were a query's.  What is above refers to columns as the query has them: a node of ours stands
 * between, with these, until the plan is finished (gpusort_columns_path).
 *
 * What is only sorted by, and not aggregated, is no argument then.  EXPLAIN (VERBOSE) shows the aggregates as
 * they are computed.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/offer/presorted.h"

#include "catalog/pg_aggregate.h"
#include "catalog/pg_type_d.h"
#include "facts/aggregates.h"
#include "nodes/bitmapset.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/prep.h"
#include "optimizer/tlist.h"
#include "plan/offer/counted.h"
#include "plan/offer/path_tree.h"
#include "plan/offer/paths.h"
#include "plan/offer/rollup.h"
#include "rewrite/rewriteManip.h"
#include "utils/fmgroids.h"
#include "utils/typcache.h"

/* The number of the only window of a WindowAgg that is made here */
#define WINDOW_NUMBER 1

/* An Agg over sorted rows. */
typedef struct Presorted
{
	PlannerInfo *root;
	const AggPath *agg;
	Path *below;                   /* what it reads */
	const UpperUniquePath *unique; /* the same, if it is one; else NULL */
	List *group_keys;              /* pathkeys of its groups */
	WindowAggPath *window;         /* that stands between; NULL: none does */
	List *window_keys;             /* what parts its rows, beside groups */
} Presorted;

/* Returns true if one of these keys is by a class of columns that are equal. */
static bool
has_class(List *keys, const EquivalenceClass *class)
{
	ListCell *cell;

	foreach(cell, keys)
	{
		if (lfirst_node(PathKey, cell)->pk_eclass == class)
			return true;
	}
	return false;
}

/* The keys of an aggregate's clauses, each once, without constants. */
static List *
keys_of(const Presorted *presorted, const Aggref *aggregate, List *clauses)
{
	return make_pathkeys_for_sortclauses(presorted->root, clauses, aggregate->args);
}

/* How many of an aggregate's clauses are by columns. */
static int
count_columns(const Aggref *aggregate, List *clauses)
{
	int columns = 0;
	ListCell *cell;

	foreach(cell, clauses)
		columns += !IsA(get_sortgroupclause_expr(lfirst(cell), aggregate->args), Const);
	return columns;
}

/*
 * Returns true if the rows of each group come sorted by these clauses of an aggregate.  What the query makes constant,
 * or equal, is not: it is sorted as fast.
 */
static bool
comes_in_order(const Presorted *presorted, const Aggref *aggregate, List *clauses)
{
	List *sorted = presorted->below->pathkeys;
	int next = 0;
	List *keys;
	ListCell *cell;

	if (clauses == NIL)
		return true;
	if (contain_volatile_functions((Node *) aggregate->args))
		return false;
	keys = keys_of(presorted, aggregate, clauses);
	if (list_length(keys) != count_columns(aggregate, clauses))
		return false;
	foreach(cell, keys)
	{
		const PathKey *key = lfirst_node(PathKey, cell);

		if (has_class(presorted->group_keys, key->pk_eclass))
			continue;
		while (next < list_length(sorted) &&
			   has_class(presorted->group_keys, list_nth_node(PathKey, sorted, next)->pk_eclass))
			next++;
		if (next == list_length(sorted) || list_nth(sorted, next++) != key)
			return false;
	}
	return true;
}

/* Returns true if each value that an aggregate wants once is in one row of a group. */
static bool
comes_once(const Presorted *presorted, const Aggref *aggregate)
{
	const UpperUniquePath *unique = presorted->unique;
	List *distinct;

	if (unique == NULL || aggregate->aggfilter != NULL)
		return false;
	distinct = keys_of(presorted, aggregate, aggregate->aggdistinct);
	for (int i = 0; i < unique->numkeys; i++)
	{
		const EquivalenceClass *class = list_nth_node(PathKey, unique->path.pathkeys, i)->pk_eclass;

		if (!has_class(presorted->group_keys, class) && !has_class(distinct, class))
			return false;
	}
	return true;
}

/*
 * Returns a path's rows whose columns that are these expressions have sortgrouprefs, by which windows and groups name
 * columns: where they have none, others than the query's.  NULL: one is no column.
 */
Path *
gpusort_with_refs(PlannerInfo *root, Path *path, List *exprs)
{
	PathTarget *target = copy_pathtarget(path->pathtarget);
	Path *named;
	Index last = 0;
	ListCell *cell;

	foreach(cell, root->processed_tlist)
		last = Max(last, lfirst_node(TargetEntry, cell)->ressortgroupref);
	if (target->sortgrouprefs == NULL)
		target->sortgrouprefs = palloc0(list_length(target->exprs) * sizeof(Index));
	foreach(cell, exprs)
	{
		const int column = gpusort_find_column(target->exprs, lfirst(cell));

		if (column < 0)
			return NULL;
		if (target->sortgrouprefs[column] == 0)
			target->sortgrouprefs[column] = ++last;
	}
	named = (Path *) create_projection_path(root, path->parent, path, target);
	named->parallel_safe = path->parallel_safe;
	return named;
}

/*
 * Returns the clauses of a window over the rows below that parts them by group, and by what an aggregate's DISTINCT
 * takes for one, and these rows; false if they have no columns that say so.
 */
static bool
find_partition(const Presorted *presorted, const Aggref *aggregate, Path **rows, List **partition)
{
	List *clauses = NIL;
	List *exprs = NIL;
	ListCell *cell;
	ListCell *expr;

	foreach(cell, aggregate->aggdistinct)
	{
		SortGroupClause *clause = lfirst_node(SortGroupClause, cell);
		List *keys = keys_of(presorted, aggregate, list_make1(clause));

		if (keys == NIL || has_class(presorted->group_keys, linitial_node(PathKey, keys)->pk_eclass))
			continue;
		clauses = lappend(clauses, copyObject(clause));
		exprs = lappend(exprs, get_sortgroupclause_expr(clause, aggregate->args));
	}
	*rows = gpusort_with_refs(presorted->root, presorted->below, exprs);
	if (*rows == NULL)
		return false;
	forboth(cell, clauses, expr, exprs)
	{
		const PathTarget *target = (*rows)->pathtarget;

		lfirst_node(SortGroupClause, cell)->tleSortGroupRef =
			get_pathtarget_sortgroupref(target, gpusort_find_column(target->exprs, lfirst(expr)));
	}
	*partition = list_concat_copy(presorted->agg->groupClause, clauses);
	return true;
}

/* A window over rows, of those of each part from the first up to the current one. */
static WindowAggPath *
make_window(Path *rows, List *partition)
{
	WindowClause *clause = makeNode(WindowClause);
	WindowAggPath *window = makeNode(WindowAggPath);

	clause->name = "w";
	clause->partitionClause = partition;
	clause->frameOptions =
		FRAMEOPTION_NONDEFAULT | FRAMEOPTION_ROWS | FRAMEOPTION_START_UNBOUNDED_PRECEDING | FRAMEOPTION_END_CURRENT_ROW;
	clause->winref = WINDOW_NUMBER;
	window->path = *rows;
	window->path.type = T_WindowAggPath;
	window->path.pathtype = T_WindowAgg;
	window->path.parallel_aware = false;
	window->path.pathtarget = copy_pathtarget(rows->pathtarget);
	window->subpath = rows;
	window->winclause = clause;
	window->topwindow = true;
	return window;
}

/* The column of a window that numbers the rows that a filter lets through, or all; it is added if it is not there. */
static WindowFunc *
number_of(WindowAggPath *window, Expr *filter)
{
	PathTarget *target = window->path.pathtarget;
	WindowFunc *function;
	ListCell *cell;

	foreach(cell, target->exprs)
	{
		if (IsA(lfirst(cell), WindowFunc) && equal(lfirst_node(WindowFunc, cell)->aggfilter, filter))
			return lfirst(cell);
	}
	function = makeNode(WindowFunc);
	function->winfnoid = filter != NULL ? F_COUNT_ : F_ROW_NUMBER;
	function->wintype = INT8OID;
	function->aggfilter = copyObject(filter);
	function->winref = window->winclause->winref;
	function->winstar = function->winagg = filter != NULL;
	function->location = -1;
	add_column_to_pathtarget(target, (Expr *) function, 0);
	target->width += sizeof(int64);
	return function;
}

/*
 * Lets an aggregate with DISTINCT, whose rows come in order, see only the first row of each value; false if that
 * cannot be.
 */
static bool
see_first_rows(Presorted *presorted, Aggref *aggregate)
{
	Expr *filter = aggregate->aggfilter;
	List *keys;
	Path *rows;
	List *partition;
	OpExpr *first;
	Const *one;

	if (presorted->unique != NULL || contain_volatile_functions((Node *) filter) || contain_subplans((Node *) filter))
		return false;
	keys = keys_of(presorted, aggregate, aggregate->aggdistinct);
	if (presorted->window == NULL)
	{
		if (!find_partition(presorted, aggregate, &rows, &partition))
			return false;
		presorted->window = make_window(rows, partition);
		presorted->window_keys = keys;
	}
	else if (compare_pathkeys(presorted->window_keys, keys) != PATHKEYS_EQUAL)
		return false;
	one = makeConst(INT8OID, -1, InvalidOid, sizeof(int64), Int64GetDatum(1), false, FLOAT8PASSBYVAL);
	first = (OpExpr *) make_opclause(lookup_type_cache(INT8OID, TYPECACHE_EQ_OPR)->eq_opr, BOOLOID, false,
									 (Expr *) number_of(presorted->window, filter), (Expr *) one, InvalidOid, InvalidOid);
	first->opfuncid = F_INT8EQ;
	aggregate->aggfilter = filter != NULL ? make_andclause(list_make2(first, filter)) : (Expr *) first;
	return true;
}

/* The arguments that are aggregated. */
static List *
without_resjunk(List *arguments)
{
	List *result = NIL;
	ListCell *cell;

	foreach(cell, arguments)
	{
		if (!lfirst_node(TargetEntry, cell)->resjunk)
			result = lappend(result, lfirst(cell));
	}
	return result;
}

/* Takes ORDER BY and DISTINCT out of the aggregates of an expression that get their rows so. */
static bool
settle_aggregates(Node *node, void *arg)
{
	Presorted *presorted = arg;
	Aggref *aggregate;

	if (node == NULL)
		return false;
	if (!IsA(node, Aggref))
		return expression_tree_walker(node, settle_aggregates, arg);
	aggregate = (Aggref *) node;
	if (aggregate->aggkind != AGGKIND_NORMAL || AGGREF_IS_PRESORTED(aggregate))
		return false;
	if (!comes_in_order(presorted, aggregate,
						aggregate->aggdistinct != NIL ? aggregate->aggdistinct : aggregate->aggorder))
		return false;
	if (aggregate->aggdistinct != NIL && !comes_once(presorted, aggregate) && !see_first_rows(presorted, aggregate))
		return false;
	aggregate->aggdistinct = NIL;
	aggregate->aggorder = NIL;
	aggregate->args = without_resjunk(aggregate->args);
	return false;
}

/* Makes a number of rows count only the first of each value that an aggregate sorts by; false if it cannot. */
static bool
count_first_rows(Presorted *presorted, const Aggref *aggregate, Aggref *count)
{
	Aggref *first = copyObject((Aggref *) aggregate);

	first->aggdistinct = first->aggorder;
	if (!comes_in_order(presorted, aggregate, aggregate->aggorder) || !see_first_rows(presorted, first))
		return false;
	count->aggfilter = make_andclause(list_make2(count->aggfilter, first->aggfilter));
	return true;
}

/* The expression with numbers of rows in the place of aggregates that can be had from these. */
static Node *
count_mutator(Node *node, void *arg)
{
	Presorted *presorted = arg;
	Aggref *aggregate = (Aggref *) node;
	Aggref *before;
	Aggref *all = NULL;

	if (node == NULL)
		return NULL;
	if (!IsA(node, Aggref))
		return expression_tree_mutator(node, count_mutator, arg);
	if (!gpusort_aggregate_may_be_counted(aggregate))
		return node;
	before = gpusort_counted_before(aggregate);
	if (aggregate->aggfnoid == F_DENSE_RANK_ANY && !count_first_rows(presorted, aggregate, before))
		return node;
	if (gpusort_counted_needs_all(aggregate))
		all = gpusort_counted_all(aggregate);
	return (Node *) gpusort_counted_value(aggregate, before, all);
}

/* The aggregates of an expression as they are computed of these rows: it is changed, or another is returned. */
static Node *
settle_expression(Node *expr, Presorted *presorted, bool by_number)
{
	if (!by_number)
		expr = count_mutator(expr, presorted);
	(void) settle_aggregates(expr, presorted);
	return expr;
}

/* The numbers that an Agg's aggregates have. */
typedef struct Numbers
{
	Bitmapset *aggregates;
	Bitmapset *transitions;
} Numbers;

static bool
find_numbers(Node *node, void *arg)
{
	Numbers *numbers = arg;
	const Aggref *aggregate = (const Aggref *) node;

	if (node == NULL)
		return false;
	if (!IsA(node, Aggref))
		return expression_tree_walker(node, find_numbers, arg);
	numbers->aggregates = bms_add_member(numbers->aggregates, aggregate->aggno);
	numbers->transitions = bms_add_member(numbers->transitions, aggregate->aggtransno);
	return false;
}

/* Returns true if these numbers begin at 0 and leave no gap. */
static bool
have_no_gap(const Bitmapset *numbers)
{
	return numbers == NULL || bms_prev_member(numbers, -1) == bms_num_members(numbers) - 1;
}

/* Returns true if the numbers of an Agg's aggregates are as the executor wants them. */
static bool
are_numbered(const AggPath *agg)
{
	Numbers numbers = {0};

	(void) find_numbers((Node *) agg->path.pathtarget->exprs, &numbers);
	(void) find_numbers((Node *) agg->qual, &numbers);
	return have_no_gap(numbers.aggregates) && have_no_gap(numbers.transitions);
}

/* Gives the aggregates of these columns and conditions, which nobody else has, the numbers of a query of their own. */
void
gpusort_number_aggregates(const PlannerInfo *root, const PathTarget *target, List *having)
{
	PlannerInfo *alone = makeNode(PlannerInfo);

	*alone = *root;
	alone->agginfos = alone->aggtransinfos = NIL;
	preprocess_aggrefs(alone, (Node *) target->exprs);
	preprocess_aggrefs(alone, (Node *) having);
}

/*
 * Returns true if an Agg of a query computes its aggregates, of rows or of what a partial Agg below a Gather gives:
 * that of DISTINCT, say, has them from below.
 */
static bool
computes_aggregates(PlannerInfo *root, const AggPath *agg)
{
	const Path *below = agg->subpath;

	return list_member_ptr(root->upper_rels[UPPERREL_GROUP_AGG], agg->path.parent) &&
		(agg->aggsplit == AGGSPLIT_SIMPLE ||
		 (DO_AGGSPLIT_COMBINE(agg->aggsplit) && IsA(below, GatherPath) &&
		  IsA(((const GatherPath *) below)->subpath, AggPath)));
}

/* Returns true if a path is a GpuSort, or in ranges a Sort in the place of one, or passes on what one sorts. */
static bool
is_sorted(const Path *path, bool in_ranges)
{
	while (IsA(path, SubqueryScanPath) || IsA(path, UpperUniquePath))
		path = gpusort_path_only_child(path);
	return gpusort_path_is_sort(path) || (in_ranges && IsA(path, SortPath));
}

/* Takes from the aggregates of an Agg what the order of its rows does for them.  The Agg and its columns are copies. */
static void
settle(PlannerInfo *root, AggPath *agg, bool in_ranges)
{
	Presorted presorted = {.root = root, .agg = agg, .below = agg->subpath};
	bool by_number;

	if (agg->aggsplit != AGGSPLIT_SIMPLE || agg->aggstrategy == AGG_HASHED || !is_sorted(agg->subpath, in_ranges))
		return;
	if (IsA(agg->subpath, UpperUniquePath))
		presorted.unique = (const UpperUniquePath *) agg->subpath;
	presorted.group_keys = make_pathkeys_for_sortclauses(
		root, agg->groupClause, (List *) WITHOUT_GROUPING_NULLS(root, root->processed_tlist));
	by_number = gpusort_path_is_sort(agg->subpath) &&
		((const GpuSortPath *) agg->subpath)->use.kind == GPUSORT_USE_NUMBERS;
	agg->path.pathtarget->exprs =
		(List *) settle_expression((Node *) agg->path.pathtarget->exprs, &presorted, by_number);
	agg->qual = (List *) settle_expression((Node *) agg->qual, &presorted, by_number);
	if (presorted.window != NULL)
		agg->subpath = &presorted.window->path;
}

/* Gives the partial Agg below a copy of an Agg that puts its states together the same aggregates. */
static void
settle_part(PlannerInfo *root, AggPath *agg)
{
	GatherPath *gather = makeNode(GatherPath);
	AggPath *part = makeNode(AggPath);

	*gather = *(GatherPath *) agg->subpath;
	*part = *(AggPath *) gather->subpath;
	part->path.pathtarget = gather->path.pathtarget =
		gpusort_partial_target(root, gpusort_calls_of(agg->path.pathtarget, agg->qual));
	gather->subpath = &part->path;
	agg->subpath = &gather->path;
}

/*
 * Returns an Agg of a chosen path as it runs over its rows, a copy, as the head of this file says.  in_ranges: it is
 * part of what processes do range by range.
 */
AggPath *
gpusort_presorted_settle(PlannerInfo *root, const AggPath *agg, bool in_ranges)
{
	AggPath *settled = makeNode(AggPath);
	bool changed;

	*settled = *agg;
	if (!computes_aggregates(root, agg))
		return settled;
	settled->path.pathtarget = copy_pathtarget(agg->path.pathtarget);
	settled->path.pathtarget->exprs = copyObject(agg->path.pathtarget->exprs);
	settled->qual = copyObject(agg->qual);
	settle(root, settled, in_ranges);
	changed = !equal(settled->path.pathtarget->exprs, agg->path.pathtarget->exprs) || !equal(settled->qual, agg->qual);
	if (!changed && are_numbered(agg))
	{
		settled->path.pathtarget = agg->path.pathtarget;
		return settled;
	}
	gpusort_number_aggregates(root, settled->path.pathtarget, settled->qual);
	if (DO_AGGSPLIT_COMBINE(agg->aggsplit))
		settle_part(root, settled);
	return settled;
}

/* Returns the path of an Agg that has been settled, with the columns that it had. */
Path *
gpusort_presorted_columns(const AggPath *agg, AggPath *settled)
{
	if (settled->path.pathtarget == agg->path.pathtarget)
		return &settled->path;
	return gpusort_columns_path(&settled->path, settled->aggsplit, agg->path.pathtarget);
}

/* Returns an Agg of a chosen path as it runs over its rows, with the columns that it had; itself, if it runs so. */
Path *
gpusort_presorted_path(PlannerInfo *root, AggPath *agg, bool in_ranges)
{
	AggPath *settled = gpusort_presorted_settle(root, agg, in_ranges);

	return settled->path.pathtarget == agg->path.pathtarget ? &agg->path : gpusort_presorted_columns(agg, settled);
}
