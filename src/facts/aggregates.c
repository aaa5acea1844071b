/*-------------------------------------------------------------------------
 *
 * aggregates.c
 *	  What is known of PostgreSQL's aggregates.
 *
 * Sums of floats depend on the order of their addition; so does what min() and max() give of values that are equal and
 * look different, as 1.0 and 1.00 do.  What is not known here is not taken to be of any order.
 *
 *-------------------------------------------------------------------------
 */
#include "facts/aggregates.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_type_d.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "parser/parse_agg.h"
#include "utils/fmgroids.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

/*
 * Returns true if an aggregate gives the same, bit by bit, in whatever order its rows come, and put together from what
 * parts of them give.
 */
bool
gpusort_aggregate_is_of_any_order(Oid aggregate)
{
	switch (aggregate)
	{
		case F_COUNT_:
		case F_COUNT_ANY:
		case F_SUM_INT2:
		case F_SUM_INT4:
		case F_SUM_INT8:
		case F_SUM_NUMERIC:
		case F_AVG_INT2:
		case F_AVG_INT4:
		case F_AVG_INT8:
		case F_AVG_NUMERIC:
		case F_MIN_INT2:
		case F_MIN_INT4:
		case F_MIN_INT8:
		case F_MIN_DATE:
		case F_MIN_TIMESTAMP:
		case F_MIN_TIMESTAMPTZ:
		case F_MAX_INT2:
		case F_MAX_INT4:
		case F_MAX_INT8:
		case F_MAX_DATE:
		case F_MAX_TIMESTAMP:
		case F_MAX_TIMESTAMPTZ:
		case F_BOOL_AND:
		case F_BOOL_OR:
		case F_EVERY:
			return true;
		default:
			return false;
	}
}

/*
 * Returns true if an aggregate gives the same, bit by bit, put together from what parts of its rows give, each after
 * those of the rows before: also the least and the greatest value of any type, of which equal ones that look different
 * come in one order.
 */
bool
gpusort_aggregate_is_of_parts(Oid aggregate)
{
	HeapTuple tuple;
	Form_pg_aggregate form;
	bool found;

	if (gpusort_aggregate_is_of_any_order(aggregate))
		return true;
	if (aggregate >= FirstNormalObjectId)
		return false;
	tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(aggregate));
	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_aggregate) GETSTRUCT(tuple);
	found = OidIsValid(form->aggsortop) && form->aggcombinefn == form->aggtransfn && !OidIsValid(form->aggfinalfn);
	ReleaseSysCache(tuple);
	return found;
}

/* Returns true if an aggregate is a percentile, which one row or two of those in order tell. */
bool
gpusort_aggregate_is_percentile(Oid aggregate)
{
	switch (aggregate)
	{
		case F_PERCENTILE_DISC_FLOAT8_ANYELEMENT:
		case F_PERCENTILE_DISC__FLOAT8_ANYELEMENT:
		case F_PERCENTILE_CONT_FLOAT8_FLOAT8:
		case F_PERCENTILE_CONT__FLOAT8_FLOAT8:
		case F_PERCENTILE_CONT_FLOAT8_INTERVAL:
		case F_PERCENTILE_CONT__FLOAT8_INTERVAL:
			return true;
		default:
			return false;
	}
}

/* Returns true if an aggregate tells where a row would stand that is not among its rows. */
bool
gpusort_aggregate_is_hypothetical(Oid aggregate)
{
	switch (aggregate)
	{
		case F_RANK_ANY:
		case F_DENSE_RANK_ANY:
		case F_PERCENT_RANK_ANY:
		case F_CUME_DIST_ANY:
			return true;
		default:
			return false;
	}
}

/*
 * Returns true if an aggregate is one of these that needs no more than to count rows, of which a condition tells
 * whether they come before that row: its values are constants.
 */
bool
gpusort_aggregate_may_be_counted(const Aggref *aggregate)
{
	ListCell *cell;

	if (!gpusort_aggregate_is_hypothetical(aggregate->aggfnoid) ||
		list_length(aggregate->aggdirectargs) != list_length(aggregate->aggorder) ||
		contain_volatile_functions((Node *) aggregate->args) ||
		contain_volatile_functions((Node *) aggregate->aggfilter) || contain_subplans((Node *) aggregate->args) ||
		contain_subplans((Node *) aggregate->aggfilter))
		return false;
	foreach(cell, aggregate->aggdirectargs)
	{
		if (!IsA(lfirst(cell), Const))
			return false;
	}
	return true;
}

/* Returns true if an expression reads what another plan gives. */
static bool
reads_other_plans(Node *node, void *arg)
{
	if (node == NULL)
		return false;
	if (IsA(node, SubPlan) || IsA(node, AlternativeSubPlan) ||
		(IsA(node, Param) && ((const Param *) node)->paramkind == PARAM_EXEC))
		return true;
	return expression_tree_walker(node, reads_other_plans, arg);
}

/* Returns true if an aggregate's states can be combined, and passed on from one process to another. */
static bool
has_partial_states(const Aggref *aggregate)
{
	HeapTuple tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(aggregate->aggfnoid));
	Form_pg_aggregate form;
	bool found;

	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_aggregate) GETSTRUCT(tuple);
	found = OidIsValid(form->aggcombinefn) &&
		(aggregate->aggtranstype != INTERNALOID ||
		 (OidIsValid(form->aggserialfn) && OidIsValid(form->aggdeserialfn) && AGG_ARGUMENTS_TRAVEL(aggregate)));
	ReleaseSysCache(tuple);
	return found;
}

/*
 * Returns true if an aggregate of rows can be put together from those of parts of them, wherever these are computed:
 * where PostgreSQL itself would have parallel workers do so, but of what other plans give.
 */
bool
gpusort_aggregate_may_be_partial(const Aggref *aggregate)
{
	return aggregate->aggsplit == AGGSPLIT_SIMPLE && aggregate->aggkind == AGGKIND_NORMAL &&
		aggregate->aggorder == NIL && aggregate->aggdistinct == NIL && has_partial_states(aggregate) &&
		!contain_volatile_functions((Node *) aggregate) && !reads_other_plans((Node *) aggregate->args, NULL) &&
		!reads_other_plans((Node *) aggregate->aggfilter, NULL);
}

/* Returns true if what a finished aggregate sorts its rows by, this clause, is a column of the sort below. */
bool
gpusort_aggregate_sorts_by(const Aggref *aggregate, const SortGroupClause *clause, const GpuSortColumn *column)
{
	const Node *argument = get_sortgroupclause_expr((SortGroupClause *) clause, aggregate->args);
	const Expr *expr = (const Expr *) argument;

	while (IsA(expr, RelabelType))
		expr = ((const RelabelType *) expr)->arg;
	return IsA(expr, Var) && ((const Var *) expr)->varno == OUTER_VAR &&
		((const Var *) expr)->varattno == column->attno && clause->sortop == column->sort_operator &&
		clause->nulls_first == column->nulls_first && exprCollation(argument) == column->collation;
}

/* Of numerics with no more digits before and behind the point all are floats. */
#define FLOAT_DIGITS 300

/* Returns true if all numerics of a type's modifier can be cast to a float without an error. */
static bool
numerics_are_floats(int32 typmod)
{
	const int32 digits = (typmod - VARHDRSZ) >> 16 & 0xffff;
	const int32 scale = (((typmod - VARHDRSZ) & 0x7ff) ^ 1024) - 1024; /* from 15 on it can be negative */

	return typmod >= (int32) VARHDRSZ && digits - scale <= FLOAT_DIGITS && scale <= FLOAT_DIGITS;
}

/*
 * Returns what is cast to a float8, if the cast never fails and never turns an order round: equal floats may come of
 * different values, but no smaller one of a greater; NULL if the expression is something else.
 */
static Expr *
cast_to_float(const Expr *expr)
{
	const FuncExpr *cast = (const FuncExpr *) expr;
	Expr *argument;

	if (!IsA(expr, FuncExpr) || list_length(cast->args) != 1)
		return NULL;
	argument = linitial(cast->args);
	switch (cast->funcid)
	{
		case F_FLOAT8_INT2:
		case F_FLOAT8_INT4:
		case F_FLOAT8_INT8:
		case F_FLOAT8_FLOAT4:
			return argument;
		case F_FLOAT8_NUMERIC:
			return numerics_are_floats(exprTypmod((Node *) argument)) ? argument : NULL;
		default:
			return NULL;
	}
}

/*
 * Returns an aggregate, which sorts floats by one column, as it is of what these are cast from, sorted likewise; the
 * same if they are not: percentiles are the same rows' by both orders, and of few rows the cast has to be made.
 */
const Aggref *
gpusort_aggregate_without_cast(const Aggref *aggregate)
{
	const TypeCacheEntry *floats = lookup_type_cache(FLOAT8OID, TYPECACHE_LT_OPR | TYPECACHE_GT_OPR);
	const TypeCacheEntry *type;
	const SortGroupClause *clause;
	Expr *argument;
	Aggref *other;

	if (list_length(aggregate->aggorder) != 1 || list_length(aggregate->args) != 1)
		return aggregate;
	clause = linitial_node(SortGroupClause, aggregate->aggorder);
	argument = cast_to_float(linitial_node(TargetEntry, aggregate->args)->expr);
	if (argument == NULL || (clause->sortop != floats->lt_opr && clause->sortop != floats->gt_opr))
		return aggregate;
	type = lookup_type_cache(exprType((Node *) argument), TYPECACHE_LT_OPR | TYPECACHE_GT_OPR | TYPECACHE_EQ_OPR);
	other = makeNode(Aggref);
	*other = *aggregate;
	other->args = copyObject(aggregate->args);
	linitial_node(TargetEntry, other->args)->expr = argument;
	other->aggorder = copyObject(aggregate->aggorder);
	linitial_node(SortGroupClause, other->aggorder)->eqop = type->eq_opr;
	linitial_node(SortGroupClause, other->aggorder)->sortop =
		clause->sortop == floats->lt_opr ? type->lt_opr : type->gt_opr;
	return other;
}

/* Notes the numbers of the aggregates of an expression. */
static bool
find_numbers(Node *node, void *arg)
{
	Bitmapset **numbers = arg;

	if (node == NULL)
		return false;
	if (!IsA(node, Aggref))
		return expression_tree_walker(node, find_numbers, arg);
	*numbers = bms_add_member(*numbers, ((const Aggref *) node)->aggno);
	return false;
}

/* Returns those aggregates of a query that a target and the conditions on its rows have, each once. */
List *
gpusort_aggregates_of(const PlannerInfo *root, const PathTarget *target, List *having)
{
	Bitmapset *numbers = NULL;
	List *aggregates = NIL;
	ListCell *cell;

	(void) find_numbers((Node *) target->exprs, &numbers);
	(void) find_numbers((Node *) having, &numbers);
	foreach(cell, root->agginfos)
	{
		Aggref *aggregate = AGG_INFO_AGGREF(lfirst(cell));

		if (bms_is_member(aggregate->aggno, numbers))
			aggregates = lappend(aggregates, aggregate);
	}
	return aggregates;
}
