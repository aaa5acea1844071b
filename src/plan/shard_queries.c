/*-------------------------------------------------------------------------
 *
 * shard_queries.c
 *	  Asks each shard for its groups or first rows where a statement asks for all rows of all shards.
 *
 * A shard is a foreign table that is a partition of another one.  If it is a query's whole FROM, a foreign data wrapper
 * may ask the shard to sort, to group and to stop at a LIMIT; of a partition among others PostgreSQL asks for all rows
 * that WHERE leaves, unless each group is in one of them.  Partial aggregates cannot be asked for: postgres_fdw
 * deparses whole ones alone, and nobody else knows its paths.  So of
 *
 *	  SELECT a, count(*), avg(b) FROM t WHERE c GROUP BY a HAVING d
 *	  SELECT a, count(DISTINCT b) FROM t WHERE c GROUP BY a
 *	  SELECT DISTINCT a, b FROM t WHERE c
 *	  SELECT a, b FROM t WHERE c ORDER BY s LIMIT n
 *
 * there is another form, which a copy of the statement gets, as if its text said so:
 *
 *	  SELECT a, sum(n)::int8, sum(s) / sum(m) FROM shards GROUP BY a HAVING d
 *	  SELECT a, count(DISTINCT b) FROM shards GROUP BY a
 *	  SELECT a, b FROM shards GROUP BY a, b
 *	  SELECT a, b FROM shards ORDER BY s LIMIT n
 *
 * where shards are, of the partitions t1 and t2 that PostgreSQL's plan reads,
 *
 *	  ((SELECT a, count(*) AS n, sum(b) AS s, count(b) AS m FROM t1 WHERE c GROUP BY a) UNION ALL
 *	   (SELECT ... FROM t2 ...) OFFSET 0)
 *	  ((SELECT a, b FROM t1 WHERE c GROUP BY a, b) UNION ALL ... OFFSET 0)
 *	  ((SELECT a, b, s FROM t1 WHERE c ORDER BY s LIMIT n) UNION ALL ... OFFSET 0)
 *
 * OFFSET 0 keeps PostgreSQL from merging what shards have sorted, for which it would wait for one after the other: all
 * of them are asked at once, where the wrapper can do that.  There is none where conditions around the query may leave
 * out groups, so that these reach the shards.  planner.c plans both forms, and keeps this one if far fewer rows come.
 * A partition that is a table of this server's own is asked likewise.
 *
 * The answer is the same, bit by bit: only aggregates that can be put together so are taken, and those of DISTINCT that
 * count.  Nothing in the statement is volatile, as planner.c knows.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/shard_queries.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/partition.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_class_d.h"
#include "catalog/pg_type_d.h"
#include "facts/aggregates.h"
#include "facts/expression_values.h"
#include "facts/limits.h"
#include "facts/table_column.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "parser/parse_relation.h"
#include "parser/parsetree.h"
#include "plan/finish/plan_tree.h"
#include "rewrite/rewriteManip.h"
#include "utils/acl.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

/*
 * Of more first rows none are asked of each shard: if an index gives a shard's rows in order, PostgreSQL's merge reads
 * no more of each than it needs.
 */
#define FIRST_ROWS_MAX 10000

/* A statement, which changes */
typedef struct ShardStatement
{
	const List *tables;   /* RangeTblEntries that PostgreSQL's plan reads */
	ParamListInfo params; /* NULL: there are none */
	bool merges;          /* the plan reads shards in an order, and may stop for a LIMIT */
	bool stops;           /* it may stop for something else, as a cursor's */
	bool first_only;      /* it may need the first shard alone, whose rows come before those of others */
	bool changed;
	double most; /* rows that a shard gives, as far as expressions tell */
} ShardStatement;

/* A query of one table whose partitions are shards */
typedef struct ShardQuery
{
	Index rtindex;
	Oid table;
	List *quals;          /* of WHERE, and those of HAVING that need no aggregate */
	List *columns;        /* TargetEntries: what each shard computes, of the columns of the table */
	List *groups;         /* clauses by which each shard groups its rows */
	List *order;          /* clauses by which each shard sorts them */
	Node *limit;          /* how many each gives; NULL: all */
	const Node *distinct; /* what an aggregate wants each value of once; NULL: there is none */
	bool filtered;        /* conditions around the query may leave out groups */
	bool impossible;      /* something cannot be computed of what shards give */
} ShardQuery;

/* --- what each shard computes --------------------------------------------------------------------------- */

/* Returns a Var of a column of the shards', which are all, or the first, that is in FROM. */
static Expr *
shards_var(const TargetEntry *column)
{
	return (Expr *) makeVarFromTargetEntry(1, (TargetEntry *) column);
}

/* Returns the column that has an expression; NULL: there is none. */
static TargetEntry *
find_column(const ShardQuery *shards, const Node *expr)
{
	ListCell *cell;

	foreach(cell, shards->columns)
	{
		if (equal(lfirst_node(TargetEntry, cell)->expr, expr))
			return lfirst(cell);
	}
	return NULL;
}

/* Returns the column that has an expression, which is added if it is not there. */
static TargetEntry *
column_of(ShardQuery *shards, Expr *expr)
{
	TargetEntry *column = find_column(shards, (Node *) expr);
	char name[NAMEDATALEN];

	if (column != NULL)
		return column;
	snprintf(name, sizeof(name), "column%d", list_length(shards->columns) + 1);
	column = makeTargetEntry(copyObject(expr), list_length(shards->columns) + 1, pstrdup(name), false);
	shards->columns = lappend(shards->columns, column);
	return column;
}

/* Adds a clause by which shards group or sort to a list, as another clause, of the query's, does. */
static void
add_clause(ShardQuery *shards, List **clauses, Expr *expr, const SortGroupClause *like)
{
	TargetEntry *column = column_of(shards, expr);
	SortGroupClause *clause;

	if (IsA(expr, Const)) /* it would be the number of a column */
		shards->impossible = true;
	if (column->ressortgroupref != 0)
		return;
	column->ressortgroupref = list_length(*clauses) + 1;
	clause = copyObject(unconstify(SortGroupClause *, like));
	clause->tleSortGroupRef = column->ressortgroupref;
	*clauses = lappend(*clauses, clause);
}

/* Returns an aggregate of one argument. */
static Aggref *
make_aggregate(Oid function, Oid type, Expr *argument)
{
	Aggref *aggregate = makeNode(Aggref);

	aggregate->aggfnoid = function;
	aggregate->aggtype = type;
	aggregate->args = list_make1(makeTargetEntry(argument, 1, NULL, false));
	aggregate->aggargtypes = list_make1_oid(exprType((Node *) argument));
	aggregate->aggkind = AGGKIND_NORMAL;
	aggregate->aggno = aggregate->aggtransno = -1;
	aggregate->location = -1;
	return aggregate;
}

/* The sum of what shards give in a column, which is an int8 or a numeric. */
static Expr *
sum_of(const TargetEntry *column)
{
	const Oid function = exprType((Node *) column->expr) == INT8OID ? F_SUM_INT8 : F_SUM_NUMERIC;

	return (Expr *) make_aggregate(function, NUMERICOID, shards_var(column));
}

static Expr *
call(Oid function, Oid type, List *arguments)
{
	return (Expr *) makeFuncExpr(function, type, arguments, InvalidOid, InvalidOid, COERCE_EXPLICIT_CALL);
}

static Const *
int8_of(int64 value)
{
	return makeConst(INT8OID, -1, InvalidOid, sizeof(int64), Int64GetDatum(value), false, FLOAT8PASSBYVAL);
}

/* The sum of numbers of rows; without groups there may be none, of which a count is 0. */
static Expr *
whole_count(const TargetEntry *column)
{
	CoalesceExpr *count = makeNode(CoalesceExpr);

	count->coalescetype = INT8OID;
	count->args = list_make2(call(F_INT8_NUMERIC, INT8OID, list_make1(sum_of(column))), int8_of(0));
	count->location = -1;
	return (Expr *) count;
}

/* The same aggregate, of the same rows, by another function. */
static Expr *
instead(const Aggref *aggregate, Oid function, Oid type)
{
	Aggref *other = copyObject(unconstify(Aggref *, aggregate));

	other->aggfnoid = function;
	other->aggtype = type;
	return (Expr *) other;
}

/* What an average is made of. */
static Expr *
whole_average(ShardQuery *shards, const Aggref *aggregate, Oid sum, Oid sum_type)
{
	const TargetEntry *sums = column_of(shards, instead(aggregate, sum, sum_type));
	const TargetEntry *counts = column_of(shards, instead(aggregate, F_COUNT_ANY, INT8OID));

	return call(F_NUMERIC_DIV, NUMERICOID, list_make2(sum_of(sums), sum_of(counts)));
}

/* count(DISTINCT x): each shard gives each of its values once. */
static Expr *
whole_distinct(ShardQuery *shards, const Aggref *aggregate)
{
	Aggref *whole = copyObject(unconstify(Aggref *, aggregate));
	TargetEntry *argument = linitial_node(TargetEntry, whole->args);

	if (aggregate->aggfnoid != F_COUNT_ANY || aggregate->aggfilter != NULL || list_length(aggregate->args) != 1 ||
		(shards->distinct != NULL && !equal(shards->distinct, argument->expr)))
	{
		shards->impossible = true;
		return (Expr *) whole;
	}
	shards->distinct = (Node *) copyObject(argument->expr);
	add_clause(shards, &shards->groups, argument->expr, linitial_node(SortGroupClause, aggregate->aggdistinct));
	argument->expr = shards_var(column_of(shards, argument->expr));
	return (Expr *) whole;
}

/* Returns an aggregate of all rows, of what shards have computed of theirs. */
static Expr *
whole_aggregate(ShardQuery *shards, const Aggref *aggregate)
{
	const TargetEntry *column;

	if (aggregate->aggorder != NIL || aggregate->aggkind != AGGKIND_NORMAL || aggregate->agglevelsup > 0)
		shards->impossible = true;
	if (aggregate->aggdistinct != NIL)
		return whole_distinct(shards, aggregate);
	switch (aggregate->aggfnoid)
	{
		case F_AVG_INT2:
			return whole_average(shards, aggregate, F_SUM_INT2, INT8OID);
		case F_AVG_INT4:
			return whole_average(shards, aggregate, F_SUM_INT4, INT8OID);
		case F_AVG_INT8:
			return whole_average(shards, aggregate, F_SUM_INT8, NUMERICOID);
		case F_AVG_NUMERIC:
			return whole_average(shards, aggregate, F_SUM_NUMERIC, NUMERICOID);
		default:
			break;
	}
	column = column_of(shards, (Expr *) aggregate);
	switch (aggregate->aggfnoid)
	{
		case F_COUNT_:
		case F_COUNT_ANY:
			return whole_count(column);
		case F_SUM_INT2:
		case F_SUM_INT4:
			return call(F_INT8_NUMERIC, INT8OID, list_make1(sum_of(column)));
		case F_SUM_INT8:
		case F_SUM_NUMERIC:
			return sum_of(column);
		default:
			break;
	}
	/* The least and the greatest, and of booleans: of what they give of parts they give that of all. */
	if (!gpusort_aggregate_is_of_any_order(aggregate->aggfnoid))
		shards->impossible = true;
	return (Expr *) make_aggregate(aggregate->aggfnoid, aggregate->aggtype, shards_var(column));
}

/* The mutator: an expression of a query, of what shards give.  Columns of theirs come as they are where rows do. */
static Node *
of_shards(Node *node, void *arg)
{
	ShardQuery *shards = arg;
	const TargetEntry *column;

	if (node == NULL || shards->impossible)
		return node;
	if (IsA(node, Aggref))
		return (Node *) whole_aggregate(shards, (const Aggref *) node);
	column = IsA(node, TargetEntry) || IsA(node, List) || IsA(node, Const) ? NULL : find_column(shards, node);
	if (column != NULL && (column->ressortgroupref != 0 || shards->order != NIL))
		return (Node *) shards_var(column);
	if (IsA(node, Var))
	{
		if (shards->order == NIL)
			shards->impossible = true; /* it follows from what is grouped by */
		return (Node *) shards_var(column_of(shards, (Expr *) node));
	}
	return expression_tree_mutator(node, of_shards, arg);
}

/* --- queries --------------------------------------------------------------------------------------------- */

/* What a query of a shard has in the place of one of the table */
typedef struct ShardColumns
{
	Index rtindex;
	Oid table;
	Oid shard;
} ShardColumns;

/* The mutator: an expression of the table's columns, of a partition's, which have the same names. */
static Node *
of_partition(Node *node, void *arg)
{
	const ShardColumns *columns = arg;

	if (node == NULL)
		return NULL;
	if (IsA(node, Var) && ((const Var *) node)->varno == (int) columns->rtindex)
	{
		Var *var = copyObject((Var *) node);

		var->varattno = get_attnum(columns->shard, get_attname(columns->table, var->varattno, false));
		var->varno = var->varnosyn = 1;
		var->varattnosyn = var->varattno;
		return (Node *) var;
	}
	return expression_tree_mutator(node, of_partition, arg);
}

/* Returns a RangeTblEntry of a subquery with such columns. */
static RangeTblEntry *
subquery_entry(Query *subquery, const char *name, const List *columns)
{
	RangeTblEntry *rte = makeNode(RangeTblEntry);
	List *names = NIL;
	ListCell *cell;

	foreach(cell, columns)
		names = lappend(names, makeString(pstrdup(lfirst_node(TargetEntry, cell)->resname)));
	rte->rtekind = RTE_SUBQUERY;
	rte->subquery = subquery;
	rte->eref = makeAlias(name, names);
	rte->inFromCl = true;
	return rte;
}

static RangeTblRef *
table_ref(Index rtindex)
{
	RangeTblRef *ref = makeNode(RangeTblRef);

	ref->rtindex = rtindex;
	return ref;
}

static Query *
new_query(const Query *like)
{
	Query *query = makeNode(Query);

	query->commandType = CMD_SELECT;
	query->querySource = like->querySource;
	query->canSetTag = like->canSetTag;
	return query;
}

/* Returns the query of one shard, a table of these. */
static Query *
query_of_shard(const Query *query, const ShardQuery *shards, const RangeTblEntry *table)
{
	ShardColumns columns = {.rtindex = shards->rtindex, .table = shards->table, .shard = table->relid};
	Query *result = new_query(query);
	RangeTblEntry *rte = makeNode(RangeTblEntry);
	Relation relation = table_open(table->relid, NoLock); /* it has been planned with */
	List *names = NIL;

	for (int i = 0; i < RelationGetNumberOfAttributes(relation); i++)
		names = lappend(names, makeString(pstrdup(NameStr(TupleDescAttr(RelationGetDescr(relation), i)->attname))));
	rte->rtekind = RTE_RELATION;
	rte->relid = table->relid;
	rte->relkind = table->relkind;
	rte->rellockmode = AccessShareLock;
	rte->eref = makeAlias(RelationGetRelationName(relation), names);
	rte->inFromCl = true;
	table_close(relation, NoLock);
	result->rtable = list_make1(rte);
	ASK_FOR_SELECT(result, rte);
	result->jointree =
		makeFromExpr(list_make1(table_ref(1)), of_partition((Node *) make_ands_explicit(shards->quals), &columns));
	result->targetList = (List *) of_partition((Node *) shards->columns, &columns);
	result->groupClause = copyObject(shards->groups);
	result->sortClause = copyObject(shards->order);
	result->limitCount = copyObject(shards->limit);
	result->hasAggs = contain_aggs_of_level((Node *) result->targetList, 0);
	return result;
}

/* Returns a query of the rows of all shards, one after the other, which stays one of its own if nothing filters it. */
static Query *
all_shards(const Query *query, const ShardQuery *shards, List *tables)
{
	Query *all = new_query(query);
	Node *tree = NULL;
	ListCell *cell;

	foreach(cell, tables)
	{
		Query *shard = query_of_shard(query, shards, lfirst(cell));
		SetOperationStmt *both;
		ListCell *column;

		all->rtable = lappend(all->rtable, subquery_entry(shard, "shard", shards->columns));
		if (tree == NULL)
		{
			tree = (Node *) table_ref(1);
			continue;
		}
		both = makeNode(SetOperationStmt);
		both->op = SETOP_UNION;
		both->all = true;
		both->larg = tree;
		both->rarg = (Node *) table_ref(list_length(all->rtable));
		foreach(column, shards->columns)
		{
			const Node *expr = (const Node *) lfirst_node(TargetEntry, column)->expr;

			both->colTypes = lappend_oid(both->colTypes, exprType(expr));
			both->colTypmods = lappend_int(both->colTypmods, exprTypmod(expr));
			both->colCollations = lappend_oid(both->colCollations, exprCollation(expr));
		}
		tree = (Node *) both;
	}
	foreach(cell, shards->columns)
	{
		const TargetEntry *column = lfirst_node(TargetEntry, cell);

		all->targetList =
			lappend(all->targetList, makeTargetEntry(shards_var(column), column->resno, pstrdup(column->resname), false));
	}
	if (IsA(tree, SetOperationStmt))
		all->setOperations = tree;
	all->jointree = makeFromExpr(all->setOperations != NULL ? NIL : list_make1(tree), NULL);
	if (!shards->filtered)
		all->limitOffset = (Node *) int8_of(0);
	return all;
}

/* --- statements -------------------------------------------------------------------------------------------- */

/* The walker: returns true if an expression names more than the columns of the tables beside it. */
static bool
names_others(Node *node, void *arg)
{
	if (node == NULL)
		return false;
	if (IsA(node, Var))
		return ((const Var *) node)->varlevelsup > 0 || ((const Var *) node)->varattno <= 0;
	return expression_tree_walker(node, names_others, arg);
}

/* Returns the one table in a query's FROM, if it is partitioned, and has rows for everybody; else 0. */
static Index
only_table(const Query *query)
{
	const List *from = query->jointree != NULL ? query->jointree->fromlist : NIL;
	const RangeTblEntry *rte;
	Index rtindex;

	if (list_length(from) != 1 || !IsA(linitial(from), RangeTblRef))
		return 0;
	rtindex = linitial_node(RangeTblRef, from)->rtindex;
	rte = rt_fetch(rtindex, query->rtable);
	return rte->rtekind == RTE_RELATION && rte->relkind == RELKIND_PARTITIONED_TABLE && rte->inh &&
			rte->tablesample == NULL && rte->securityQuals == NIL
		? rtindex
		: 0;
}

/* Returns true if a query has nothing that its other form has no place for. */
static bool
is_plain(const Query *query)
{
	return query->commandType == CMD_SELECT && query->setOperations == NULL && query->cteList == NIL &&
		query->rowMarks == NIL && query->groupingSets == NIL && !query->hasSubLinks && !query->hasTargetSRFs &&
		!query->hasDistinctOn && !query->hasForUpdate;
}

/* Returns true if a query wants groups of its rows. */
static bool
is_of_groups(const Query *query)
{
	return query->hasAggs || query->groupClause != NIL;
}

/* Returns true if a query wants each row once, and nothing else. */
static bool
is_distinct(const Query *query)
{
	return query->distinctClause != NIL && !is_of_groups(query) && !query->hasWindowFuncs && query->havingQual == NULL;
}

/* Returns true if a query wants the first of its rows. */
static bool
is_of_first_rows(const Query *query)
{
	return query->limitCount != NULL && query->limitOption == LIMIT_OPTION_COUNT && query->sortClause != NIL &&
		query->distinctClause == NIL && !is_of_groups(query) && !query->hasWindowFuncs && query->havingQual == NULL;
}

/* Returns true if a query, or one in its FROM, may be asked of shards. */
bool
gpusort_may_ask_shards(const Query *query)
{
	ListCell *cell;

	if (is_plain(query) && only_table(query) > 0 &&
		(is_of_groups(query) || is_distinct(query) || is_of_first_rows(query)))
		return true;
	foreach(cell, query->rtable)
	{
		const RangeTblEntry *rte = lfirst_node(RangeTblEntry, cell);

		if (rte->rtekind == RTE_SUBQUERY && gpusort_may_ask_shards(rte->subquery))
			return true;
	}
	foreach(cell, query->cteList)
	{
		if (gpusort_may_ask_shards((const Query *) lfirst_node(CommonTableExpr, cell)->ctequery))
			return true;
	}
	return false;
}

/*
 * Returns those of the tables that are partitions of a table, each once; NIL: none of them is a foreign table, or the
 * user may not read one.
 */
static List *
shards_of(const List *tables, Oid table)
{
	List *shards = NIL;
	List *seen = NIL;
	bool foreign = false;
	ListCell *cell;

	foreach(cell, tables)
	{
		const RangeTblEntry *rte = lfirst_node(RangeTblEntry, cell);

		if (rte->rtekind != RTE_RELATION || list_member_oid(seen, rte->relid) || !get_rel_relispartition(rte->relid) ||
			rte->relkind == RELKIND_PARTITIONED_TABLE || !list_member_oid(get_partition_ancestors(rte->relid), table))
			continue;
		if (pg_class_aclcheck(rte->relid, GetUserId(), ACL_SELECT) != ACLCHECK_OK)
			return NIL;
		foreign |= rte->relkind == RELKIND_FOREIGN_TABLE;
		seen = lappend_oid(seen, rte->relid);
		shards = lappend(shards, lfirst(cell));
	}
	return foreign ? shards : NIL;
}

/* Returns how many groups a shard gives at most, as far as what it groups by tells. */
static double
most_groups(const ShardQuery *shards)
{
	double most = 1;
	ListCell *cell;

	foreach(cell, shards->groups)
	{
		Node *expr = eval_const_expressions(NULL, get_sortgroupclause_expr(lfirst(cell), shards->columns));

		most *= gpusort_expression_values(shards->table, expr);
	}
	return most;
}

/* Each shard groups its rows as the query groups all, or makes them distinct; columns are the query's. */
static void
take_groups(ShardQuery *shards, const List *clauses, List *columns)
{
	ListCell *cell;

	foreach(cell, clauses)
	{
		SortGroupClause *clause = lfirst_node(SortGroupClause, cell);

		add_clause(shards, &shards->groups, (Expr *) get_sortgroupclause_expr(clause, columns), clause);
	}
}

/* Each shard gives as many of its first rows as the query wants of all; columns are the query's. */
static void
take_first_rows(ShardQuery *shards, const Query *query, List *columns, ParamListInfo params)
{
	int64 wanted;
	int64 skipped = 0;
	ListCell *cell;

	if (!gpusort_known_limit(query->limitCount, params, &wanted) || wanted < 0 || wanted > FIRST_ROWS_MAX ||
		(query->limitOffset != NULL && (!gpusort_known_limit(query->limitOffset, params, &skipped) || skipped < 0)) ||
		skipped > FIRST_ROWS_MAX - wanted)
	{
		shards->impossible = true;
		return;
	}
	foreach(cell, query->sortClause)
	{
		SortGroupClause *clause = lfirst_node(SortGroupClause, cell);

		add_clause(shards, &shards->order, (Expr *) get_sortgroupclause_expr(clause, columns), clause);
	}
	shards->limit = (Node *) int8_of(skipped + wanted);
}

/*
 * Takes the conditions on groups that need no aggregate from HAVING to WHERE, as PostgreSQL does; returns the others.
 */
static Node *
take_having(ShardQuery *shards, const Query *query, Node *having)
{
	List *others = NIL;
	ListCell *cell;

	foreach(cell, make_ands_implicit((Expr *) having))
	{
		if (shards->groups != NIL && !contain_aggs_of_level(lfirst(cell), 0))
			shards->quals = lappend(shards->quals, lfirst(cell));
		else
			others = lappend(others, lfirst(cell));
	}
	return others != NIL ? (Node *) make_ands_explicit(others) : NULL;
}

/*
 * Puts the columns of shards into the order in which the query's columns, and its conditions on groups, name them: a
 * shard is asked at once with others only if its plan needs no projection.
 */
static void
order_columns(ShardQuery *shards, List *columns, Node *having)
{
	List *vars = pull_var_clause((Node *) list_make2(columns, having), PVC_RECURSE_AGGREGATES | PVC_RECURSE_WINDOWFUNCS);
	List *ordered = NIL;
	ListCell *cell;

	foreach(cell, vars)
		ordered = list_append_unique_ptr(
			ordered, list_nth(shards->columns, lfirst_node(Var, cell)->varattno - 1));
	ordered = list_concat_unique_ptr(ordered, shards->columns);
	foreach(cell, vars)
	{
		Var *var = lfirst_node(Var, cell);
		int place = 0;

		while (list_nth(ordered, place) != list_nth(shards->columns, var->varattno - 1))
			place++;
		var->varattno = var->varattnosyn = place + 1;
	}
	foreach(cell, ordered)
		lfirst_node(TargetEntry, cell)->resno = foreach_current_index(cell) + 1;
	shards->columns = ordered;
}

/* Lets a query read what shards give.  Its tables stay in the list, for permissions. */
static void
read_shards(Query *query, Query *all, const List *columns)
{
	List *rtable = list_make1(subquery_entry(all, "shards", columns));
	ListCell *cell;

	foreach(cell, query->rtable)
	{
		if (lfirst_node(RangeTblEntry, cell)->rtekind == RTE_RELATION)
			rtable = lappend(rtable, lfirst(cell));
	}
	query->rtable = rtable;
	query->jointree = makeFromExpr(list_make1(table_ref(1)), NULL);
	FORGET_GROUP_RTE(query);
}

/* Returns true if the user may read a table as who asks, and its columns are what is stored. */
static bool
may_ask_for(const Query *query, RangeTblEntry *rte)
{
	const Oid user = CHECKED_AS_USER(query, rte);

	return (!OidIsValid(user) || user == GetUserId()) && !gpusort_has_virtual_columns(rte->relid);
}

/* What may become of a query's rows */
typedef struct Around
{
	bool filtered; /* conditions may leave out some */
	bool limited;  /* only the first may be wanted */
} Around;

/* Changes a query if it can be asked of shards. */
static void
change_query(ShardStatement *statement, Query *query, Around around)
{
	ShardQuery shards = {.rtindex = is_plain(query) ? only_table(query) : 0};
	RangeTblEntry *rte;
	List *tables;
	List *columns;
	Node *having;

	if (shards.rtindex == 0)
		return;
	rte = rt_fetch(shards.rtindex, query->rtable);
	shards.table = rte->relid;
	columns = (List *) WITHOUT_GROUP_RTE(query, (Node *) query->targetList);
	having = WITHOUT_GROUP_RTE(query, query->havingQual);
	if (!may_ask_for(query, rte) || names_others((Node *) columns, NULL) ||
		names_others(having, NULL) || names_others(query->jointree->quals, NULL))
		return;
	if (around.limited && statement->first_only)
		return;
	if ((is_of_groups(query) || is_distinct(query)) && (statement->stops || (statement->merges && around.limited)))
		return;
	if (is_of_groups(query))
		take_groups(&shards, query->groupClause, columns);
	else if (is_distinct(query))
		take_groups(&shards, query->distinctClause, columns);
	else if (is_of_first_rows(query))
		take_first_rows(&shards, query, columns, statement->params);
	else
		return;
	shards.filtered = around.filtered && shards.limit == NULL;
	shards.quals = make_ands_implicit((Expr *) query->jointree->quals);
	having = take_having(&shards, query, having);
	columns = (List *) of_shards((Node *) columns, &shards);
	having = of_shards(having, &shards);
	if (shards.impossible || list_length(shards.columns) > MaxTupleAttributeNumber)
		return;
	tables = shards_of(statement->tables, shards.table);
	if (tables == NIL)
		return;
	order_columns(&shards, columns, having);
	if (is_distinct(query))
	{
		query->groupClause = query->distinctClause;
		query->distinctClause = NIL;
	}
	read_shards(query, all_shards(query, &shards, tables), shards.columns);
	query->targetList = columns;
	query->havingQual = having;
	statement->changed = true;
	statement->most = Max(statement->most, most_groups(&shards));
}

/* Returns true if conditions of a query may be of a table in its FROM: they name it, or what stands for columns. */
static bool
may_filter(const Query *query, Index rtindex)
{
	const Bitmapset *names = pull_varnos_of_level(NULL, (Node *) query->jointree, 0);
	int name = -1;

	while ((name = bms_next_member(names, name)) >= 0)
	{
		if (name == (int) rtindex || rt_fetch(name, query->rtable)->rtekind == RTE_JOIN)
			return true;
	}
	return query->havingQual != NULL;
}

/* Changes what can be asked of shards in a query, and in those of its FROM and WITH. */
static void
change_queries(ShardStatement *statement, Query *query, Around around)
{
	ListCell *cell;

	around.limited |= query->limitCount != NULL;
	foreach(cell, query->rtable)
	{
		const RangeTblEntry *rte = lfirst_node(RangeTblEntry, cell);
		Around below = around;

		if (rte->rtekind != RTE_SUBQUERY)
			continue;
		below.filtered |= may_filter(query, foreach_current_index(cell) + 1);
		change_queries(statement, rte->subquery, below);
	}
	foreach(cell, query->cteList)
	{
		const CommonTableExpr *cte = lfirst_node(CommonTableExpr, cell);
		Around below = around;

		below.filtered = cte->ctematerialized != CTEMaterializeAlways;
		change_queries(statement, (Query *) cte->ctequery, below);
	}
	change_query(statement, query, around);
}

/* How a plan reads shards */
typedef struct ShardReads
{
	bool prunes;  /* an Append leaves out partitions when it runs */
	bool merges;  /* a Merge Append reads no more of them than is wanted */
	bool limits;  /* a LIMIT says how much that is */
	bool in_turn; /* a LIMIT may want no more than an Append's first part */
} ShardReads;

/* Returns true if a plan gives rows as soon as an Append does. */
static bool
reads_in_turn(const Plan *plan)
{
	while (plan != NULL && !IsA(plan, Append))
	{
		switch (nodeTag(plan))
		{
			case T_SubqueryScan:
				plan = ((const SubqueryScan *) plan)->subplan;
				break;
			case T_Agg:
				plan = ((const Agg *) plan)->aggstrategy == AGG_SORTED ? outerPlan(plan) : NULL;
				break;
			case T_Group:
			case T_Unique:
			case T_WindowAgg:
			case T_Result:
			case T_ProjectSet:
			case T_LockRows:
				plan = outerPlan(plan);
				break;
			default:
				return false;
		}
	}
	return plan != NULL;
}

static void
find_reads(Plan **link, void *arg)
{
	ShardReads *reads = arg;

	if (IsA(*link, Append))
		reads->prunes |= APPEND_PRUNES((Append *) *link);
	if (IsA(*link, MergeAppend))
	{
		reads->prunes |= APPEND_PRUNES((MergeAppend *) *link);
		reads->merges = true;
	}
	if (IsA(*link, Limit))
	{
		reads->limits = true;
		reads->in_turn |= reads_in_turn(outerPlan(*link));
	}
	gpusort_plan_each_child(*link, find_reads, arg);
}

/*
 * Makes a statement that is not planned yet ask shards for their groups or first rows; returns false if it cannot.
 * native is PostgreSQL's plan of it, whose tables are asked: partitions that it leaves out when it runs would be, too.
 * First rows are not asked for where one partition may have them all, nor groups of which the first may do where
 * partitions are merged: an index of a shard may give them soon.  params are what its parameters are known to be.
 * *most is set to how many groups come of a shard at most, as far as is known: of expressions PostgreSQL expects as
 * many values as their columns have.
 */
bool
gpusort_ask_shards(Query *query, PlannedStmt *native, ParamListInfo params, double *most)
{
	ShardStatement statement = {.tables = native->rtable, .params = params};
	ShardReads reads = {0};

	gpusort_plan_each_of_statement(native, find_reads, &reads);
	if (reads.prunes)
		return false;
	statement.merges = reads.merges;
	statement.stops = reads.merges && !reads.limits;
	statement.first_only = reads.in_turn;
	change_queries(&statement, query, (Around){0});
	*most = statement.most;
	return statement.changed;
}

/* Rows that foreign scans give */
typedef struct FetchedRows
{
	double most; /* of groups */
	double rows;
} FetchedRows;

static void
add_fetched_rows(Plan **link, void *arg)
{
	FetchedRows *fetched = arg;
	const ForeignScan *scan = (const ForeignScan *) *link;

	if (IsA(scan, ForeignScan))
	{
		const bool groups = scan->scan.scanrelid == 0 && bms_membership(scan->fs_relids) == BMS_SINGLETON;

		fetched->rows += groups ? Min(scan->scan.plan.plan_rows, fetched->most) : scan->scan.plan.plan_rows;
	}
	gpusort_plan_each_child(*link, add_fetched_rows, arg);
}

/*
 * Returns how many rows a plan's foreign scans give by PostgreSQL's estimates; of groups that a shard makes no more
 * than most each.
 */
double
gpusort_fetched_rows(PlannedStmt *stmt, double most)
{
	FetchedRows fetched = {.most = most};

	gpusort_plan_each_of_statement(stmt, add_fetched_rows, &fetched);
	return fetched.rows;
}
