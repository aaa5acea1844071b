/*-------------------------------------------------------------------------
 *
 * lateral_limits.c
 *	  Asks for the first rows of all groups at once where a statement asks for those of one group after another.
 *
 * PostgreSQL runs a subquery in LATERAL for each row beside it.  Where an index gives its rows in order, that is quick;
 * where none does, it reads and sorts the whole table as often.  So of
 *
 *	  FROM g, LATERAL (SELECT a, f(b) FROM t WHERE t.k = g.k AND c ORDER BY s LIMIT n) x
 *
 * there is another form, which a copy of the statement gets, as if its text said so:
 *
 *	  FROM g, (SELECT a, f(b), k, s
 *			   FROM (SELECT a, b, k, s, row_number() OVER (PARTITION BY k ORDER BY s) AS position
 *					 FROM t WHERE c) rows
 *			   WHERE position <= n) x
 *	  WHERE x.k = g.k
 *
 * LIMIT ... WITH TIES asks for rank().  planner.c plans both forms, and keeps the cheaper one.
 *
 * The answer is the same.  The rows that are equal to one g.k are a group: PARTITION BY goes by the operator family and
 * the collation of "=".  Now rows are looked at that belong to no g.k; so nothing that PostgreSQL may compute before
 * the join with g may fail: the subquery, conditions that name its columns, and what reads them in LATERAL.  The same
 * goes for a subquery that has it all in its FROM.  Only what the query returns, sorts and groups by is computed behind
 * the join for sure.
 *
 * The order is the same where the statement says what it is.  Where it says nothing, people still expect the rows of
 * one g as they were sorted: so the statement is sorted by g.k and s.  Where something above depends on the order,
 * nothing is changed.
 *
 * The subquery has nothing but FROM, WHERE, ORDER BY, LIMIT and OFFSET, and is of what stands beside it in its columns
 * and in the "="s alone.  It is in FROM itself, or the right side of a JOIN or LEFT JOIN with what it is of on the
 * left.  Nothing in the statement is volatile, as planner.c knows.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/lateral_limits.h"

#include "access/stratnum.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_opfamily.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "common/int.h"
#include "facts/aggregates.h"
#include "facts/limits.h"
#include "facts/table_column.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "parser/parse_clause.h"
#include "parser/parse_oper.h"
#include "parser/parsetree.h"
#include "rewrite/rewriteManip.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

typedef struct Lateral
{
	Query *query;       /* a subquery in LATERAL, which changes */
	Index rtindex;      /* of it in the query around it */
	List *equalities;   /* the clauses of its WHERE that name what stands beside it, each an OpExpr */
	List *own;          /* of each of them the side that is the subquery's */
	List *beside;       /* the other side, which names nothing of the subquery */
	List *others;       /* the other clauses of its WHERE, which name nothing beside it */
	int64 skipped;      /* rows, by OFFSET */
	int64 wanted;       /* rows, by LIMIT */
	List *columns;      /* TargetEntries: what the subquery computes of all rows */
	List *groups;       /* those of the columns that own is in, one for each equality */
	List *orders;       /* those that ORDER BY sorts by, one for each of its clauses */
	List *sort_clauses; /* its clauses */
} Lateral;

/* What a query is sorted by whose text says no order */
typedef struct Order
{
	Node *expr;
	const SortGroupClause *like; /* another clause that sorts as this one is to; NULL: as the type does */
} Order;

/* A copy of a statement, which changes */
typedef struct LateralStatement
{
	ParamListInfo params; /* NULL: there are none */
	bool changed;
} LateralStatement;

/* A table in FROM whose whole row is looked for */
typedef struct WholeRow
{
	Index rtindex;
	Index level; /* how far below the query that has the table */
} WholeRow;

/* Returns true if an operator compares, as sorts do. */
static bool
is_comparison(Oid op)
{
	return GET_BTREE_INTERPRETATION(op) != NIL;
}

/* The walker: returns true if an expression is more than constants. */
static bool
varies(Node *node, void *arg)
{
	if (node == NULL)
		return false;
	if (IsA(node, Var) || IsA(node, Param) || IsA(node, Query))
		return true;
	return expression_tree_walker(node, varies, arg);
}

/*
 * The walker: returns true if an expression, or one in a query, may raise an error for some rows, or a query locks the
 * rows.
 */
static bool
may_fail(Node *node, void *arg)
{
	Oid function = InvalidOid;

	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_Query:
			return ((const Query *) node)->rowMarks != NIL ||
				query_tree_walker((Query *) node, may_fail, arg, QTW_EXAMINE_RTES_BEFORE);
		case T_RangeTblEntry:
			return ((const RangeTblEntry *) node)->rtekind == RTE_RELATION &&
				gpusort_has_virtual_columns(((const RangeTblEntry *) node)->relid);
		case T_List:
		case T_TargetEntry:
		case T_FromExpr:
		case T_JoinExpr:
		case T_RangeTblRef:
		case T_RangeTblFunction:
		case T_SortGroupClause:
		case T_Var:
		case T_Param:
		case T_RelabelType:
		case T_CollateExpr:
		case T_BoolExpr:
		case T_NullTest:
		case T_BooleanTest:
		case T_CoalesceExpr:
			break;
		case T_OpExpr:
			if (!is_comparison(((const OpExpr *) node)->opno))
				function = get_opcode(((const OpExpr *) node)->opno);
			break;
		case T_ScalarArrayOpExpr:
			if (!is_comparison(((const ScalarArrayOpExpr *) node)->opno))
				function = get_opcode(((const ScalarArrayOpExpr *) node)->opno);
			break;
		case T_FuncExpr:
			function = ((const FuncExpr *) node)->funcid;
			break;
		default:
			return varies(node, NULL);
	}
	if (OidIsValid(function) && !get_func_leakproof(function))
		return varies(node, NULL);
	return expression_tree_walker(node, may_fail, arg);
}

/* Returns true if what two collations say is equal is the same. */
static bool
have_the_same_equals(Oid collation, Oid other)
{
	return collation == other ||
		(OidIsValid(collation) && OidIsValid(other) && get_collation_isdeterministic(collation) &&
		 get_collation_isdeterministic(other));
}

/*
 * Takes a clause of a subquery's WHERE for one of its "=", if it is one whose rows are a group of those that are equal
 * to each other.
 */
static bool
take_equality(Lateral *lateral, Node *clause)
{
	const OpExpr *equality = (const OpExpr *) clause;
	Node *own;
	Node *beside;
	Oid less;
	Oid equal;

	if (!IsA(clause, OpExpr) || list_length(equality->args) != 2)
		return false;
	own = linitial(equality->args);
	beside = lsecond(equality->args);
	if (contain_vars_of_level(own, 1))
	{
		own = lsecond(equality->args);
		beside = linitial(equality->args);
	}
	/* "=" of other types that goes by the time zone may take two for equal to a third that are not equal. */
	if (contain_vars_of_level(own, 1) || !contain_vars_of_level(own, 0) || contain_vars_of_level(beside, 0) ||
		!contain_vars_of_level(beside, 1) ||
		!op_mergejoinable(equality->opno, exprType(linitial(equality->args))) ||
		op_volatile(equality->opno) != PROVOLATILE_IMMUTABLE)
		return false;
	get_sort_group_operators(exprType(own), false, false, false, &less, &equal, NULL, NULL);
	if (!OidIsValid(less) || !OidIsValid(equal) || !equality_ops_are_compatible(equality->opno, equal) ||
		!have_the_same_equals(equality->inputcollid, exprCollation(own)))
		return false;
	get_sort_group_operators(exprType(beside), false, false, false, &less, &equal, NULL, NULL);
	if (!OidIsValid(less))
		return false;
	lateral->equalities = lappend(lateral->equalities, clause);
	lateral->own = lappend(lateral->own, own);
	lateral->beside = lappend(lateral->beside, beside);
	return true;
}

/* Returns true if a subquery has nothing but FROM, WHERE, ORDER BY, LIMIT and OFFSET. */
static bool
is_plain(const Query *query)
{
	return query->commandType == CMD_SELECT && query->setOperations == NULL && !query->hasAggs &&
		!query->hasWindowFuncs && !query->hasTargetSRFs && !query->hasSubLinks && query->cteList == NIL &&
		query->groupClause == NIL && query->groupingSets == NIL && query->havingQual == NULL &&
		query->distinctClause == NIL && query->rowMarks == NIL && query->sortClause != NIL;
}

/* Takes the clauses of a subquery's WHERE apart; returns false if one of them is none that it may have. */
static bool
take_clauses(Lateral *lateral)
{
	ListCell *cell;

	foreach(cell, make_ands_implicit((Expr *) lateral->query->jointree->quals))
	{
		Node *clause = lfirst(cell);

		if (!contain_vars_of_level(clause, 1))
			lateral->others = lappend(lateral->others, clause);
		else if (!take_equality(lateral, clause))
			return false;
	}
	return lateral->equalities != NIL;
}

/*
 * Returns true if a subquery can be computed of all rows: nothing in it but its columns and its "="s is of what stands
 * beside it, and nothing in it may fail.
 */
static bool
is_of_all_rows(const Lateral *lateral)
{
	Query rest = *lateral->query;
	FromExpr from = *rest.jointree;
	ListCell *cell;

	rest.limitCount = NULL;
	rest.limitOffset = NULL;
	if (may_fail((Node *) &rest, NULL))
		return false;
	foreach(cell, rest.sortClause)
	{
		if (contain_vars_of_level(get_sortgroupclause_expr(lfirst(cell), rest.targetList), 1))
			return false;
	}
	from.quals = (Node *) lateral->others;
	rest.jointree = &from;
	rest.targetList = NIL;
	return !contain_vars_of_level((Node *) &rest, 1);
}

/* The walker: returns true if the whole row is named. */
static bool
names_whole_row(Node *node, void *arg)
{
	WholeRow *row = arg;

	if (node == NULL)
		return false;
	if (IsA(node, Var))
	{
		const Var *var = (const Var *) node;

		return var->varno == (int) row->rtindex && var->varlevelsup == row->level && var->varattno == 0;
	}
	if (IsA(node, Query))
	{
		bool found;

		row->level++;
		found = query_tree_walker((Query *) node, names_whole_row, arg, 0);
		row->level--;
		return found;
	}
	return expression_tree_walker(node, names_whole_row, arg);
}

/* Returns true if an expression of a query may be of a table in FROM: it names it, or what stands for columns. */
static bool
may_be_of(const Query *query, Index rtindex, Node *expr)
{
	const Bitmapset *names = pull_varnos_of_level(NULL, expr, 0);
	int name = -1;

	while ((name = bms_next_member(names, name)) >= 0)
	{
		switch (rt_fetch(name, query->rtable)->rtekind)
		{
			case RTE_RELATION:
			case RTE_SUBQUERY:
			case RTE_FUNCTION:
			case RTE_VALUES:
			case RTE_CTE:
				if (name == (int) rtindex)
					return true;
				break;
			default:
				return true;
		}
	}
	return false;
}

/* Returns true if clauses, in ANDs, that may be of a table in FROM may fail. */
static bool
clauses_may_fail(const Query *query, Index rtindex, Node *clauses)
{
	ListCell *cell;

	foreach(cell, make_ands_implicit((Expr *) clauses))
	{
		if (may_be_of(query, rtindex, lfirst(cell)) && may_fail(lfirst(cell), NULL))
			return true;
	}
	return false;
}

/* Returns true if clauses of WHERE or ON, in a part of FROM, that may be of a table may fail. */
static bool
joins_may_fail(const Query *query, Index rtindex, Node *node)
{
	ListCell *cell;

	if (IsA(node, JoinExpr))
	{
		const JoinExpr *join = (const JoinExpr *) node;

		return clauses_may_fail(query, rtindex, join->quals) || joins_may_fail(query, rtindex, join->larg) ||
			joins_may_fail(query, rtindex, join->rarg);
	}
	if (IsA(node, FromExpr))
	{
		foreach(cell, ((const FromExpr *) node)->fromlist)
		{
			if (joins_may_fail(query, rtindex, lfirst(cell)))
				return true;
		}
		return clauses_may_fail(query, rtindex, ((const FromExpr *) node)->quals);
	}
	return false;
}

/*
 * Returns true if what a query computes of a table in FROM before it has joined it may fail: conditions, and other
 * subqueries in LATERAL.
 */
static bool
may_fail_before_join(const Query *query, Index rtindex)
{
	for (Index i = 1; i <= (Index) list_length(query->rtable); i++)
	{
		RangeTblEntry *other = rt_fetch(i, query->rtable);

		if (i != rtindex && other->lateral && range_table_entry_walker(other, may_fail, NULL, 0))
			return true;
	}
	return joins_may_fail(query, rtindex, (Node *) query->jointree) ||
		clauses_may_fail(query, rtindex, query->havingQual);
}

/*
 * Returns what is known of a table in FROM with these beside it on the left; NULL: it is no subquery with a LIMIT that
 * may be asked for at once.
 */
static Lateral *
find_lateral(Query *query, Index rtindex, const Bitmapset *left, ParamListInfo params)
{
	const RangeTblEntry *rte = rt_fetch(rtindex, query->rtable);
	Lateral *lateral = palloc0(sizeof(Lateral));
	WholeRow row = {.rtindex = rtindex};
	int64 last;

	lateral->rtindex = rtindex;
	lateral->query = rte->subquery;
	if (rte->rtekind != RTE_SUBQUERY || !rte->lateral || rte->security_barrier || !is_plain(rte->subquery) ||
		!gpusort_known_limit(rte->subquery->limitCount, params, &lateral->wanted) || lateral->wanted < 1 ||
		(rte->subquery->limitOffset != NULL &&
		 (!gpusort_known_limit(rte->subquery->limitOffset, params, &lateral->skipped) || lateral->skipped < 0)) ||
		pg_add_s64_overflow(lateral->skipped, lateral->wanted, &last) ||
		(lateral->skipped > 0 && rte->subquery->limitOption == LIMIT_OPTION_WITH_TIES) ||
		!take_clauses(lateral) || !is_of_all_rows(lateral) || may_fail_before_join(query, rtindex) ||
		!bms_is_subset(pull_varnos_of_level(NULL, (Node *) lateral->beside, 1), left) ||
		query_tree_walker(query, names_whole_row, &row, 0))
		return NULL;
	return lateral;
}

/* Returns the TargetEntry of an expression that is computed of all rows. */
static TargetEntry *
column_of(Lateral *lateral, Node *expr, char *name)
{
	TargetEntry *column;
	ListCell *cell;

	foreach(cell, lateral->columns)
	{
		column = lfirst_node(TargetEntry, cell);
		if (equal(column->expr, expr))
			return column;
	}
	if (name == NULL && IsA(expr, Var) && ((const Var *) expr)->varlevelsup == 0)
		name = get_rte_attribute_name(rt_fetch(((const Var *) expr)->varno, lateral->query->rtable),
									  ((const Var *) expr)->varattno);
	column = makeTargetEntry((Expr *) copyObject(expr), list_length(lateral->columns) + 1, name ? name : "key", false);
	lateral->columns = lappend(lateral->columns, column);
	return column;
}

/* Returns a Var of a column of what computes the positions, which is all that is in FROM there. */
static Node *
position_var(const TargetEntry *column)
{
	return (Node *) makeVarFromTargetEntry(1, (TargetEntry *) column);
}

/* The mutator: takes the columns of a subquery from what computes the positions. */
static Node *
take_from_positions(Node *node, void *arg)
{
	if (node == NULL)
		return NULL;
	if (IsA(node, Var) && ((const Var *) node)->varlevelsup == 0)
		return position_var(column_of(arg, node, NULL));
	return expression_tree_mutator(node, take_from_positions, arg);
}

/* Appends an expression to the columns of a query. */
static TargetEntry *
append_column(Query *query, Node *expr, char *name, bool junk)
{
	TargetEntry *column = makeTargetEntry((Expr *) expr, list_length(query->targetList) + 1, name, junk);

	query->targetList = lappend(query->targetList, column);
	return column;
}

/* Returns a clause that sorts or groups by a column among others, as another clause does; NULL: as its type does. */
static SortGroupClause *
clause_by(TargetEntry *column, List *columns, const SortGroupClause *like)
{
	SortGroupClause *clause = makeNode(SortGroupClause);

	if (like != NULL)
		*clause = *like;
	else
		get_sort_group_operators(exprType((Node *) column->expr), true, true, false, &clause->sortop, &clause->eqop,
								 NULL, &clause->hashable);
	clause->tleSortGroupRef = assignSortGroupRef(column, columns);
	return clause;
}

/* Returns the window that puts the rows of each group in order. */
static WindowClause *
window_of(Lateral *lateral)
{
	WindowClause *window = makeNode(WindowClause);
	ListCell *cell;

	foreach(cell, lateral->own)
	{
		TargetEntry *column = column_of(lateral, lfirst(cell), NULL);

		if (column->ressortgroupref == 0)
			window->partitionClause = lappend(window->partitionClause, clause_by(column, lateral->columns, NULL));
		lateral->groups = lappend(lateral->groups, column);
	}
	lateral->sort_clauses = lateral->query->sortClause;
	foreach(cell, lateral->sort_clauses)
	{
		TargetEntry *column =
			column_of(lateral, get_sortgroupclause_expr(lfirst(cell), lateral->query->targetList), NULL);

		window->orderClause = lappend(window->orderClause, clause_by(column, lateral->columns, lfirst(cell)));
		lateral->orders = lappend(lateral->orders, column);
	}
	window->frameOptions = FRAMEOPTION_DEFAULTS;
	window->winref = 1;
	return window;
}

/* Returns the column that tells each row's position in its group. */
static TargetEntry *
position_of(Lateral *lateral)
{
	const bool with_ties = lateral->query->limitOption == LIMIT_OPTION_WITH_TIES;
	WindowFunc *position = makeNode(WindowFunc);

	position->winfnoid = with_ties ? F_RANK_ : F_ROW_NUMBER;
	position->wintype = INT8OID;
	position->winref = 1;
	position->location = -1;
	return column_of(lateral, (Node *) position, "position");
}

/* Returns the clause that compares a position with a number. */
static Node *
compare_position(const TargetEntry *position, int strategy, int64 number)
{
	const Oid op = get_opfamily_member(INTEGER_BTREE_FAM_OID, INT8OID, INT8OID, strategy);
	Const *constant =
		makeConst(INT8OID, -1, InvalidOid, sizeof(int64), Int64GetDatum(number), false, FLOAT8PASSBYVAL);

	return (Node *) make_opclause(op, BOOLOID, false, (Expr *) position_var(position), (Expr *) constant,
								  InvalidOid, InvalidOid);
}

/* Returns what a subquery becomes: the first of the rows whose positions its former self computes, with its columns. */
static Query *
first_rows(Lateral *lateral)
{
	Query *all = lateral->query;
	Query *first = makeNode(Query);
	RangeTblEntry *rte = makeNode(RangeTblEntry);
	RangeTblRef *ref = makeNode(RangeTblRef);
	const TargetEntry *position;
	ListCell *cell;
	List *names = NIL;
	List *quals;

	all->windowClause = list_make1(window_of(lateral));
	position = position_of(lateral);
	quals = list_make1(
		compare_position(position, BTLessEqualStrategyNumber, lateral->skipped + lateral->wanted));
	if (lateral->skipped > 0)
		quals = lappend(quals, compare_position(position, BTGreaterStrategyNumber, lateral->skipped));

	first->commandType = CMD_SELECT;
	first->querySource = all->querySource;
	first->canSetTag = all->canSetTag;
	foreach(cell, all->targetList)
	{
		TargetEntry *column = lfirst_node(TargetEntry, cell);

		if (column->resjunk)
			continue;
		column = flatCopyTargetEntry(column);
		column->expr = (Expr *) take_from_positions((Node *) column->expr, lateral);
		column->ressortgroupref = 0;
		first->targetList = lappend(first->targetList, column);
	}
	foreach(cell, lateral->columns)
		names = lappend(names, makeString(pstrdup(lfirst_node(TargetEntry, cell)->resname)));

	all->targetList = lateral->columns;
	all->hasWindowFuncs = true;
	all->sortClause = NIL;
	all->limitCount = NULL;
	all->limitOffset = NULL;
	all->limitOption = LIMIT_OPTION_COUNT;
	all->jointree->quals = lateral->others != NIL ? (Node *) make_ands_explicit(lateral->others) : NULL;
	IncrementVarSublevelsUp((Node *) all, 1, 1);

	rte->rtekind = RTE_SUBQUERY;
	rte->subquery = all;
	rte->alias = NULL;
	rte->eref = makeAlias("positions", names);
	rte->inFromCl = true;
	ref->rtindex = 1;
	first->rtable = list_make1(rte);
	first->jointree = makeFromExpr(list_make1(ref), (Node *) make_ands_explicit(quals));
	return first;
}

/* Appends one of the columns that were computed of all rows to those of the subquery in FROM; returns a Var of it. */
static Node *
export_column(const Lateral *lateral, RangeTblEntry *rte, const TargetEntry *computed)
{
	const TargetEntry *column = append_column(rte->subquery, position_var(computed), computed->resname, false);

	rte->eref->colnames = lappend(rte->eref->colnames, makeString(pstrdup(computed->resname)));
	return (Node *) makeVarFromTargetEntry(lateral->rtindex, (TargetEntry *) column);
}

/* Returns an expression of a subquery that names only what stands beside it as one of the query around. */
static Node *
from_around(const Node *expr)
{
	Node *copy = copyObject(unconstify(Node *, expr));

	IncrementVarSublevelsUp(copy, -1, 1);
	return copy;
}

static void
append_order(List **orders, Node *expr, const SortGroupClause *like)
{
	Order *order = palloc(sizeof(Order));

	*order = (Order){.expr = expr, .like = like};
	*orders = lappend(*orders, order);
}

/* Tells those of the orders from this one on that an outer join makes these tables NULL. */
static void
make_nullable(List *orders, int from, const Bitmapset *tables, Index join)
{
	for (int i = from; i < list_length(orders); i++)
	{
		Order *order = list_nth(orders, i);

		order->expr = WITH_NULLING_JOIN(order->expr, tables, join);
	}
}

/*
 * If a table in FROM is a subquery that may be asked for at once, with these beside it on the left, changes it.  Adds
 * its "="s to the clauses of the join, and what it was in order by to the orders.
 */
static void
change_table(LateralStatement *statement, Query *query, Node *table, const Bitmapset *left, Node **quals, List **orders)
{
	Lateral *lateral;
	RangeTblEntry *rte;
	List *clauses = make_ands_implicit((Expr *) *quals);

	if (!IsA(table, RangeTblRef))
		return;
	lateral = find_lateral(query, ((const RangeTblRef *) table)->rtindex, left, statement->params);
	if (lateral == NULL)
		return;
	rte = rt_fetch(lateral->rtindex, query->rtable);
	rte->subquery = first_rows(lateral);
	rte->lateral = contain_vars_of_level((Node *) rte->subquery, 1);
	for (int i = 0; i < list_length(lateral->equalities); i++)
	{
		OpExpr *equality = list_nth(lateral->equalities, i);
		Node *own = export_column(lateral, rte, list_nth(lateral->groups, i));
		Node *beside = from_around(list_nth(lateral->beside, i));
		const bool own_is_first = linitial(equality->args) == list_nth(lateral->own, i);

		equality->args = own_is_first ? list_make2(own, beside) : list_make2(beside, own);
		clauses = lappend(clauses, equality);
		append_order(orders, from_around(list_nth(lateral->beside, i)), NULL);
	}
	for (int i = 0; i < list_length(lateral->orders); i++)
		append_order(orders, export_column(lateral, rte, list_nth(lateral->orders, i)),
					 list_nth(lateral->sort_clauses, i));
	*quals = (Node *) make_ands_explicit(clauses);
	statement->changed = true;
}

/* Changes what may be changed in FROM, or in a part of it; returns the tables and joins there. */
static Bitmapset *
change_from(LateralStatement *statement, Query *query, Node *node, List **orders)
{
	Bitmapset *tables = NULL;

	if (IsA(node, RangeTblRef))
		tables = bms_make_singleton(((const RangeTblRef *) node)->rtindex);
	else if (IsA(node, FromExpr))
	{
		FromExpr *from = (FromExpr *) node;
		ListCell *cell;

		foreach(cell, from->fromlist)
		{
			change_table(statement, query, lfirst(cell), tables, &from->quals, orders);
			tables = bms_add_members(tables, change_from(statement, query, lfirst(cell), orders));
		}
	}
	else
	{
		JoinExpr *join = castNode(JoinExpr, node);
		const bool left_is_nulled = join->jointype == JOIN_RIGHT || join->jointype == JOIN_FULL;
		const bool right_is_nulled = join->jointype == JOIN_LEFT || join->jointype == JOIN_FULL;
		const int before = list_length(*orders);
		int between;
		Bitmapset *right;

		tables = change_from(statement, query, join->larg, orders);
		if (left_is_nulled)
			make_nullable(*orders, before, tables, join->rtindex);
		between = list_length(*orders);
		if (join->jointype == JOIN_INNER || join->jointype == JOIN_LEFT)
			change_table(statement, query, join->rarg, tables, &join->quals, orders);
		right = change_from(statement, query, join->rarg, orders);
		if (right_is_nulled)
			make_nullable(*orders, between, right, join->rtindex);
		tables = bms_add_member(bms_add_members(tables, right), join->rtindex);
	}
	return tables;
}

/* The walker: returns true if an aggregate may tell in which order its rows came. */
static bool
tells_order(Node *node, void *arg)
{
	if (node == NULL)
		return false;
	if (IsA(node, Aggref))
	{
		const Aggref *aggregate = (const Aggref *) node;

		if (aggregate->aggkind == AGGKIND_NORMAL && aggregate->aggorder == NIL && aggregate->aggdistinct == NIL &&
			!gpusort_aggregate_is_of_any_order(aggregate->aggfnoid))
			return true;
	}
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, tells_order, arg, QTW_IGNORE_RANGE_TABLE);
	return expression_tree_walker(node, tells_order, arg);
}

/* Returns true if the rows of a query's FROM may come in another order. */
static bool
may_come_otherwise(const Query *query)
{
	ListCell *cell;

	if (query->rowMarks != NIL ||
		(query->sortClause == NIL && (query->limitCount != NULL || query->limitOffset != NULL)) ||
		tells_order((Node *) query->targetList, NULL) || tells_order(query->havingQual, NULL))
		return false;
	foreach(cell, query->windowClause)
	{
		if (lfirst_node(WindowClause, cell)->orderClause == NIL)
			return false;
	}
	return true;
}

/* Returns true if the rows of a query come in an order that its text does not say, and that people see. */
static bool
shows_order(const Query *query)
{
	return query->sortClause == NIL && query->groupClause == NIL && query->groupingSets == NIL && !query->hasAggs &&
		query->distinctClause == NIL && !query->hasWindowFuncs && query->havingQual == NULL;
}

/* Changes what may be changed in a query. */
static void
change_query(LateralStatement *statement, Query *query)
{
	List *orders = NIL;
	ListCell *cell;

	if (!may_come_otherwise(query))
		return;
	for (Index i = 1; i <= (Index) list_length(query->rtable); i++)
	{
		const RangeTblEntry *rte = rt_fetch(i, query->rtable);

		/* It may become a part of the query. */
		if (rte->rtekind == RTE_SUBQUERY && !may_fail_before_join(query, i) &&
			!may_fail((Node *) rte->subquery->targetList, NULL))
			change_query(statement, rte->subquery);
	}
	if (query->commandType != CMD_SELECT || query->setOperations != NULL)
		return;
	(void) change_from(statement, query, (Node *) query->jointree, &orders);
	if (!shows_order(query))
		return;
	foreach(cell, orders)
	{
		const Order *order = lfirst(cell);
		TargetEntry *column = append_column(query, order->expr, NULL, true);

		query->sortClause = lappend(query->sortClause, clause_by(column, query->targetList, order->like));
	}
}

/* Returns true if a query, or one in it, has a subquery in LATERAL with a LIMIT. */
bool
gpusort_has_lateral_limit(const Query *query)
{
	ListCell *cell;

	foreach(cell, query->rtable)
	{
		const RangeTblEntry *rte = lfirst_node(RangeTblEntry, cell);

		if (rte->rtekind == RTE_SUBQUERY &&
			((rte->lateral && rte->subquery->limitCount != NULL) || gpusort_has_lateral_limit(rte->subquery)))
			return true;
	}
	return false;
}

/*
 * Makes a statement that is not planned yet ask for the rows at once that it asks for one group after another; returns
 * false if there are none.  params are what its parameters are known to be.
 */
bool
gpusort_lateral_limits_as_windows(Query *query, ParamListInfo params)
{
	LateralStatement statement = {.params = params};

	change_query(&statement, query);
	return statement.changed;
}
