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
 *	- one with DISTINCT likewise, if the Unique leaves each value once in a group, too.
 *
 * What is only sorted by, and not aggregated, is no argument then.  EXPLAIN (VERBOSE) shows the aggregates as
 * they are computed.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/finish/presorted.h"

#include "catalog/pg_aggregate.h"
#include "node.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "plan/finish/plan_tree.h"

/* An Agg over sorted rows. */
typedef struct Presorted
{
	const Agg *agg;
	const Unique *unique; /* between; NULL: there is none */
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
	const Presorted *presorted = arg;
	Aggref *aggregate;

	if (node == NULL)
		return false;
	if (!IsA(node, Aggref))
		return expression_tree_walker(node, settle_aggregates, arg);
	aggregate = (Aggref *) node;
	if (aggregate->aggkind != AGGKIND_NORMAL || AGGREF_IS_PRESORTED(aggregate))
		return false;
	if (aggregate->aggdistinct != NIL
			? !comes_in_order(presorted, aggregate, aggregate->aggdistinct) || !comes_once(presorted, aggregate)
			: !comes_in_order(presorted, aggregate, aggregate->aggorder))
		return false;
	aggregate->aggdistinct = NIL;
	aggregate->aggorder = NIL;
	aggregate->args = without_resjunk(aggregate->args);
	return false;
}

static void
visit(Plan **link, void *arg)
{
	Plan *plan = *link;
	Plan *below = outerPlan(plan);
	Presorted presorted = {0};

	if (IsA(plan, Agg))
	{
		presorted.agg = (const Agg *) plan;
		if (IsA(below, Unique))
		{
			presorted.unique = (const Unique *) below;
			below = outerPlan(below);
		}
		if (presorted.agg->aggsplit == AGGSPLIT_SIMPLE && presorted.agg->aggstrategy != AGG_HASHED &&
			presorted.agg->groupingSets == NIL && presorted.agg->chain == NIL &&
			gpusort_plan_is(below, &gpusort_scan_methods))
		{
			gpusort_plan_unpack((const CustomScan *) below, &presorted.sort);
			(void) settle_aggregates((Node *) plan->targetlist, &presorted);
			(void) settle_aggregates((Node *) plan->qual, &presorted);
		}
	}
	gpusort_plan_each_child(plan, visit, arg);
}

/*
 * Changes the plans of a statement as the head of this file says.  To be called when GpuSort is where it is to be
 * (sort_nodes.c), and before other nodes of ours come between (lift.c).
 */
void
gpusort_presorted_settle(PlannedStmt *stmt)
{
	gpusort_plan_each_of_statement(stmt, visit, NULL);
}
