/*-------------------------------------------------------------------------
 *
 * counted.c
 *	  rank(), dense_rank(), percent_rank() and cume_dist() WITHIN GROUP, as numbers of rows.
 *
 * PostgreSQL's Agg sorts the rows of each group with one more, which the arguments are, and reads up to that.  But
 * where a row would stand is how many come before it, and whether one does a condition tells, if the arguments are
 * constants:
 *
 *	  rank(7) WITHIN GROUP (ORDER BY x)			1 + count(*) FILTER (WHERE x < 7)
 *	  percent_rank(7)							count(*) FILTER (WHERE x < 7) / count(*), 0 of no rows
 *	  cume_dist(7)								(1 + count(*) FILTER (WHERE x <= 7)) / (1 + count(*))
 *	  dense_rank(7)								1 + count(*) FILTER (WHERE x < 7 and the row is the first of its value)
 *
 * Of several columns a row comes before if it does in the first in which it is not equal.  NULLs come where the order
 * has them.  Which row is the first of its value presorted.c sees to, which puts all this together.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/offer/counted.h"

#include "catalog/pg_aggregate.h"
#include "catalog/pg_type_d.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/fmgroids.h"

/* count(*) of the rows that an aggregate is given; it gets its numbers later (presorted.c). */
static Aggref *
make_count(const Aggref *aggregate)
{
	Aggref *count = makeNode(Aggref);

	count->aggfnoid = F_COUNT_;
	count->aggtype = count->aggtranstype = INT8OID;
	count->aggstar = true;
	count->aggfilter = copyObject(aggregate->aggfilter);
	count->aggkind = AGGKIND_NORMAL;
	count->aggsplit = AGGSPLIT_SIMPLE;
	count->aggno = count->aggtransno = -1;
	count->location = -1;
	return count;
}

/* Lets an aggregate see fewer rows. */
static void
restrict_to(Aggref *count, Expr *condition)
{
	count->aggfilter = count->aggfilter != NULL ? make_andclause(list_make2(count->aggfilter, condition)) : condition;
}

/* An operator over a column and a constant. */
static Expr *
compare(Oid operator, Expr * column, Const *value)
{
	OpExpr *expr = (OpExpr *) make_opclause(operator, BOOLOID, false, copyObject(column), (Expr *) copyObject(value),
											InvalidOid, exprCollation((Node *) column));

	set_opfuncid(expr);
	return (Expr *) expr;
}

static Expr *
is_null(Expr *column, NullTestType type)
{
	NullTest *test = makeNode(NullTest);

	test->arg = copyObject(column);
	test->nulltesttype = type;
	test->location = -1;
	return (Expr *) test;
}

/* What tells that a column comes before a value, or NULL if it never does. */
static Expr *
comes_before(const SortGroupClause *clause, Expr *column, Const *value)
{
	Expr *before;

	if (value->constisnull)
		return clause->nulls_first ? NULL : is_null(column, IS_NOT_NULL);
	before = compare(clause->sortop, column, value);
	return clause->nulls_first ? make_orclause(list_make2(is_null(column, IS_NULL), before)) : before;
}

/* What tells that a column is as a value. */
static Expr *
is_equal(const SortGroupClause *clause, Expr *column, Const *value)
{
	return value->constisnull ? is_null(column, IS_NULL) : compare(clause->eqop, column, value);
}

/* What tells that a row comes before the arguments, or for cume_dist() is as these; NULL: none does. */
static Expr *
row_comes_before(const Aggref *aggregate)
{
	Expr *condition = NULL;

	for (int i = list_length(aggregate->aggorder) - 1; i >= 0; i--)
	{
		const SortGroupClause *clause = list_nth_node(SortGroupClause, aggregate->aggorder, i);
		Expr *column = get_sortgroupclause_tle((SortGroupClause *) clause, aggregate->args)->expr;
		Const *value = list_nth_node(Const, aggregate->aggdirectargs, i);
		Expr *before = comes_before(clause, column, value);
		const bool last = i == list_length(aggregate->aggorder) - 1;

		if (last && aggregate->aggfnoid == F_CUME_DIST_ANY)
			condition = is_equal(clause, column, value);
		else if (condition != NULL)
			condition = make_andclause(list_make2(is_equal(clause, column, value), condition));
		if (before != NULL)
			condition = condition != NULL ? make_orclause(list_make2(before, condition)) : before;
	}
	return condition;
}

/* Returns the number of rows that come before the arguments of an aggregate, which may be counted. */
Aggref *
gpusort_counted_before(const Aggref *aggregate)
{
	Aggref *count = make_count(aggregate);
	Expr *condition = row_comes_before(aggregate);

	restrict_to(count, condition != NULL ? condition : (Expr *) makeBoolConst(false, false));
	return count;
}

/* Returns true if an aggregate's value is a part of all of its rows. */
bool
gpusort_counted_needs_all(const Aggref *aggregate)
{
	return aggregate->aggfnoid == F_PERCENT_RANK_ANY || aggregate->aggfnoid == F_CUME_DIST_ANY;
}

/* Returns the number of all its rows. */
Aggref *
gpusort_counted_all(const Aggref *aggregate)
{
	return make_count(aggregate);
}

static Expr *
call(Oid function, Oid type, Expr *left, Expr *right)
{
	List *arguments = right != NULL ? list_make2(left, right) : list_make1(left);

	return (Expr *) makeFuncExpr(function, type, arguments, InvalidOid, InvalidOid, COERCE_EXPLICIT_CALL);
}

static Expr *
make_int8(int64 value)
{
	return (Expr *) makeConst(INT8OID, -1, InvalidOid, sizeof(int64), Int64GetDatum(value), false, FLOAT8PASSBYVAL);
}

static Expr *
add_one(Expr *number)
{
	return call(F_INT8PL, INT8OID, number, make_int8(1));
}

static Expr *
divide(Expr *number, Expr *by)
{
	return call(F_FLOAT8DIV, FLOAT8OID, call(F_FLOAT8_INT8, FLOAT8OID, number, NULL),
				call(F_FLOAT8_INT8, FLOAT8OID, by, NULL));
}

/* That part of all rows, or 0 of none. */
static Expr *
part_of_rows(const Aggref *before, const Aggref *all)
{
	CaseExpr *expr = makeNode(CaseExpr);
	CaseWhen *none = makeNode(CaseWhen);

	none->expr = call(F_INT8EQ, BOOLOID, copyObject((Expr *) all), make_int8(0));
	none->result = (Expr *) makeConst(FLOAT8OID, -1, InvalidOid, sizeof(float8), Float8GetDatum(0), false,
									  FLOAT8PASSBYVAL);
	none->location = expr->location = -1;
	expr->casetype = FLOAT8OID;
	expr->args = list_make1(none);
	expr->defresult = divide((Expr *) before, (Expr *) all);
	return (Expr *) expr;
}

/* Returns an aggregate's value, of these numbers of rows; all may be NULL where it is not needed. */
Expr *
gpusort_counted_value(const Aggref *aggregate, Aggref *before, Aggref *all)
{
	switch (aggregate->aggfnoid)
	{
		case F_PERCENT_RANK_ANY:
			return part_of_rows(before, all);
		case F_CUME_DIST_ANY:
			return divide(add_one((Expr *) before), add_one((Expr *) all));
		default:
			return add_one((Expr *) before);
	}
}
