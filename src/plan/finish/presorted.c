/*-------------------------------------------------------------------------
 *
 * presorted.c
 *	  Takes sorts out of aggregates whose rows come in order.
 *
 * PostgreSQL's Agg sorts the rows of each group for each aggregate with ORDER BY or DISTINCT, unless the planner, from
 * 16 on, has told the aggregate that they come in order.  Of an Agg over a GpuSort, with a Unique between or without,
 * each aggregate is looked at:
 *
 *	- one with ORDER BY has that taken away, if the GpuSort sorts by it, as far as the rows of a group differ;
 *	- one with DISTINCT likewise, if the Unique leaves each value once in a group, too;
 *	- without a Unique, where others have need of all rows, a window between numbers the rows of each value, and the
 *	  aggregate gets a FILTER for the first of them:
 *
 *			count(DISTINCT x)						count(x) FILTER (WHERE row_number() OVER w = 1)
 *			count(DISTINCT x) FILTER (WHERE f)		count(x) FILTER (WHERE count(*) FILTER (WHERE f) OVER w = 1 AND f)
 *
 *	  w has the rows of a group that are equal in x, from the first up to the one at hand.
 *
 * rank() and its like become numbers of rows (counted.c), dense_rank() that of the first rows of their values, but
 * where all of an Agg's read rows by number (exec/percentiles.c).  mode() of all rows is had from the number of rows of
 * each value (mode.c).
 *
 * What is only sorted by, and not aggregated, is no argument then.  EXPLAIN (VERBOSE) shows the aggregates as
 * they are computed.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/finish/presorted.h"

#include "catalog/pg_aggregate.h"
#include "catalog/pg_type_d.h"
#include "facts/aggregates.h"
#include "node.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "plan/finish/aggregate_numbers.h"
#include "plan/finish/counted.h"
#include "plan/finish/mode.h"
#include "plan/finish/plan_tree.h"
#include "plan/finish/ranges.h"
#include "plan/finish/sort_nodes.h"
#include "utils/fmgroids.h"
#include "utils/typcache.h"

/* The number of the only window of a WindowAgg that is made here */
#define WINDOW_NUMBER 1

/* An Agg over sorted rows. */
typedef struct Presorted
{
	const Agg *agg;
	const Unique *unique; /* between; NULL: there is none */
	Plan *below;          /* the GpuSort */
	WindowAgg *window;    /* that is to be between; NULL: none is */
	GpuSortPlanInfo sort;
} Presorted;

/* The column of the rows below that an aggregate's argument is; NULL if it is something else. */
static const Var *
column_of(const TargetEntry *argument)
{
	const Expr *expr = argument->expr;

	while (IsA(expr, RelabelType))
		expr = ((const RelabelType *) expr)->arg;
	return IsA(expr, Var) && ((const Var *) expr)->varno == OUTER_VAR ? (const Var *) expr : NULL;
}

/* Returns true if the rows of a group are all equal in a column, by this operator; InvalidOid: by any. */
static bool
is_grouped_by(const Agg *agg, AttrNumber attno, Oid equal, Oid collation)
{
	for (int i = 0; i < agg->numCols; i++)
	{
		if (agg->grpColIdx[i] == attno &&
			(!OidIsValid(equal) || (agg->grpOperators[i] == equal && agg->grpCollations[i] == collation)))
			return true;
	}
	return false;
}

/* Returns true if the rows of each group come sorted by these clauses of an aggregate. */
static bool
comes_in_order(const Presorted *presorted, const Aggref *aggregate, List *clauses)
{
	const GpuSortPlanInfo *sort = &presorted->sort;
	int next = 0;
	ListCell *cell;

	foreach(cell, clauses)
	{
		const SortGroupClause *clause = lfirst_node(SortGroupClause, cell);
		const TargetEntry *argument = get_sortgroupclause_tle((SortGroupClause *) clause, aggregate->args);
		const Oid collation = exprCollation((Node *) argument->expr);
		const Var *column = column_of(argument);
		const GpuSortColumn *key;

		if (IsA(argument->expr, Const))
			continue;
		if (column == NULL)
			return false;
		if (is_grouped_by(presorted->agg, column->varattno, clause->eqop, collation))
			continue;
		while (next < sort->ncolumns &&
			   is_grouped_by(presorted->agg, sort->columns[next].attno, InvalidOid, InvalidOid))
			next++;
		if (next == sort->ncolumns)
			return false;
		key = &sort->columns[next++];
		if (key->attno != column->varattno || key->sort_operator != clause->sortop || key->collation != collation ||
			key->nulls_first != clause->nulls_first)
			return false;
	}
	return true;
}

/* Returns true if an aggregate's DISTINCT has a column that a Unique goes by, with the same equality. */
static bool
tells_apart(const Aggref *aggregate, AttrNumber attno, Oid equal, Oid collation)
{
	ListCell *cell;

	foreach(cell, aggregate->aggdistinct)
	{
		const SortGroupClause *clause = lfirst_node(SortGroupClause, cell);
		const TargetEntry *argument = get_sortgroupclause_tle((SortGroupClause *) clause, aggregate->args);
		const Var *column = column_of(argument);

		if (column != NULL && column->varattno == attno && clause->eqop == equal &&
			exprCollation((Node *) argument->expr) == collation)
			return true;
	}
	return false;
}

/* Returns true if each value that an aggregate wants once is in one row of a group. */
static bool
comes_once(const Presorted *presorted, const Aggref *aggregate)
{
	const Unique *unique = presorted->unique;

	if (unique == NULL || aggregate->aggfilter != NULL)
		return false;
	for (int i = 0; i < unique->numCols; i++)
	{
		const AttrNumber attno = unique->uniqColIdx[i];
		const Oid equal = unique->uniqOperators[i];
		const Oid collation = unique->uniqCollations[i];

		if (!is_grouped_by(presorted->agg, attno, equal, collation) &&
			!tells_apart(aggregate, attno, equal, collation))
			return false;
	}
	return true;
}

/* Has a window part its rows by a column, too. */
static void
add_partition_column(WindowAgg *window, AttrNumber attno, Oid equal, Oid collation)
{
	const int i = window->partNumCols++;

	window->partColIdx[i] = attno;
	window->partOperators[i] = equal;
	window->partCollations[i] = collation;
}

/* A window over the rows below, of those of a group that an aggregate's DISTINCT takes for one. */
static WindowAgg *
make_window(const Presorted *presorted, const Aggref *aggregate)
{
	const Agg *agg = presorted->agg;
	const int room = agg->numCols + list_length(aggregate->aggdistinct);
	WindowAgg *window = makeNode(WindowAgg);
	Plan *plan = &window->plan;
	ListCell *cell;

	gpusort_plan_take_estimates(plan, presorted->below);
	plan->parallel_safe = presorted->below->parallel_safe;
	plan->lefttree = presorted->below;
	plan->targetlist = gpusort_plan_columns(presorted->below, list_length(presorted->below->targetlist));
	window->winref = WINDOW_NUMBER;
	SET_WINDOW_NAME(window, "w");
	window->topWindow = true;
	window->frameOptions =
		FRAMEOPTION_NONDEFAULT | FRAMEOPTION_ROWS | FRAMEOPTION_START_UNBOUNDED_PRECEDING | FRAMEOPTION_END_CURRENT_ROW;
	window->partColIdx = palloc(room * sizeof(AttrNumber));
	window->partOperators = palloc(room * sizeof(Oid));
	window->partCollations = palloc(room * sizeof(Oid));
	for (int i = 0; i < agg->numCols; i++)
		add_partition_column(window, agg->grpColIdx[i], agg->grpOperators[i], agg->grpCollations[i]);
	foreach(cell, aggregate->aggdistinct)
	{
		const SortGroupClause *clause = lfirst_node(SortGroupClause, cell);
		const TargetEntry *argument = get_sortgroupclause_tle((SortGroupClause *) clause, aggregate->args);
		const Oid collation = exprCollation((Node *) argument->expr);
		const Var *column = column_of(argument);

		if (column != NULL && !is_grouped_by(agg, column->varattno, clause->eqop, collation))
			add_partition_column(window, column->varattno, clause->eqop, collation);
	}
	return window;
}

/* Returns true if two windows part their rows alike. */
static bool
are_of_same_rows(const WindowAgg *one, const WindowAgg *other)
{
	const int count = one->partNumCols;

	return count == other->partNumCols &&
		memcmp(one->partColIdx, other->partColIdx, count * sizeof(AttrNumber)) == 0 &&
		memcmp(one->partOperators, other->partOperators, count * sizeof(Oid)) == 0 &&
		memcmp(one->partCollations, other->partCollations, count * sizeof(Oid)) == 0;
}

/* The column of a window that numbers the rows that a filter lets through, or all; it is added if it is not there. */
static Var *
number_of(WindowAgg *window, Expr *filter)
{
	WindowFunc *function;
	TargetEntry *entry;
	ListCell *cell;

	foreach(cell, window->plan.targetlist)
	{
		entry = lfirst_node(TargetEntry, cell);
		if (IsA(entry->expr, WindowFunc) && equal(((const WindowFunc *) entry->expr)->aggfilter, filter))
			return makeVarFromTargetEntry(OUTER_VAR, entry);
	}
	function = makeNode(WindowFunc);
	function->winfnoid = filter != NULL ? F_COUNT_ : F_ROW_NUMBER;
	function->wintype = INT8OID;
	function->aggfilter = copyObject(filter);
	function->winref = window->winref;
	function->winstar = function->winagg = filter != NULL;
	function->location = -1;
	entry = makeTargetEntry((Expr *) function, list_length(window->plan.targetlist) + 1, NULL, false);
	window->plan.targetlist = lappend(window->plan.targetlist, entry);
	window->plan.plan_width += sizeof(int64);
	return makeVarFromTargetEntry(OUTER_VAR, entry);
}

/*
 * Has an aggregate with DISTINCT, whose rows come in order, see none but the first row of each value; false if that
 * cannot be.
 */
static bool
see_first_rows(Presorted *presorted, Aggref *aggregate)
{
	Expr *filter = aggregate->aggfilter;
	WindowAgg *window;
	OpExpr *first;
	Const *one;

	if (presorted->unique != NULL || contain_volatile_functions((Node *) filter) || contain_subplans((Node *) filter))
		return false;
	window = make_window(presorted, aggregate);
	if (presorted->window == NULL)
		presorted->window = window;
	else if (!are_of_same_rows(presorted->window, window))
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

/* Has a number of rows leave out all but the first of each value that an aggregate sorts by; false if it cannot. */
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

/* Has an Agg count rows for the aggregates that can be had so, unless all of its read rows by number. */
static void
count_rows(Agg *agg, Presorted *presorted)
{
	if (presorted->sort.use.kind == GPUSORT_USE_NUMBERS)
		return;
	agg->plan.targetlist = (List *) count_mutator((Node *) agg->plan.targetlist, presorted);
	agg->plan.qual = (List *) count_mutator((Node *) agg->plan.qual, presorted);
}

/* Returns true if a plan is a GpuSort, or a Sort in the place of one, of each range; *info says how it sorts. */
static bool
is_sort(const Plan *plan, bool in_ranges, GpuSortPlanInfo *info)
{
	CustomScan like = {.scan.plan.type = T_CustomScan};

	if (gpusort_plan_is(plan, &gpusort_scan_methods))
		gpusort_plan_unpack((const CustomScan *) plan, info);
	else if (in_ranges && IsA(plan, Sort))
	{
		like.custom_private = gpusort_plan_pack((const Sort *) plan);
		gpusort_plan_unpack(&like, info);
	}
	else
		return false;
	return true;
}

/* Changes an Agg as the head of this file says.  Call it when what is below it is settled. */
void
gpusort_presorted_settle(const GpuSortPlanPlace *place, Agg *agg)
{
	GpuSortFinish *finish = place->finish;
	Plan **part = gpusort_ranges_part_below(outerPlan(agg));
	Plan **below = part != NULL ? part : &outerPlan(agg);
	Presorted presorted = {.agg = agg, .below = *below};

	if (IsA(presorted.below, Unique))
	{
		presorted.unique = (const Unique *) presorted.below;
		presorted.below = outerPlan(presorted.below);
	}
	if (agg->aggsplit == AGGSPLIT_SIMPLE && agg->aggstrategy != AGG_HASHED && agg->groupingSets == NIL &&
		agg->chain == NIL && is_sort(presorted.below, place->in_ranges || part != NULL, &presorted.sort))
	{
		if (!gpusort_mode_by_counts(finish, agg, *below, &presorted.sort))
		{
			count_rows(agg, &presorted);
			(void) settle_aggregates((Node *) agg->plan.targetlist, &presorted);
			(void) settle_aggregates((Node *) agg->plan.qual, &presorted);
			gpusort_number_aggregates(agg);
		}
	}
	if (presorted.window != NULL)
	{
		presorted.window->plan.plan_node_id = gpusort_finish_node_id(finish);
		gpusort_plan_take_params(&presorted.window->plan);
		if (gpusort_plan_is(presorted.below, &gpusort_scan_methods))
			gpusort_sort_node_note_window((CustomScan *) presorted.below, presorted.window);
		*below = &presorted.window->plan;
	}
	if (!gpusort_aggregates_are_numbered(agg))
		gpusort_number_aggregates(agg);
}
