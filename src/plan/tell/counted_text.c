/*-------------------------------------------------------------------------
 *
 * counted_text.c
 *	  Statements as pg_stat_statements keeps them, parsed.
 *
 * It writes $1 in the place of each constant, and such a text is not always a statement.  What the
 * constants were can be told in these cases:
 *
 *	  date $1, interval $1 day			$1::date, $1::interval day
 *	  extract($1 FROM ...)				a year, say
 *	  $1 + $2, - $1, current_date - $1	what has no type, or is added to a date: integers
 *	  sum(CASE ... THEN $1 ELSE $2 END)	they would be texts: integers
 *	  SELECT f($1) ... GROUP BY f(7)	it keeps the constant in the second place alone
 *
 *-------------------------------------------------------------------------
 */
#include "plan/tell/counted_text.h"

#include "mb/pg_wchar.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "tcop/tcopprot.h"
#include "utils/memutils.h"

static bool
is_of_word(char c)
{
	return isalnum((unsigned char) c) || c == '_' || IS_HIGHBIT_SET(c);
}

/* Returns where the word begins that ends before text[end], leaving out spaces; end if there is none. */
static int
word_before(const char *text, int end)
{
	int begin = end;

	while (begin > 0 && isspace((unsigned char) text[begin - 1]))
		begin--;
	if (begin == 0 || !is_of_word(text[begin - 1]))
		return end;
	while (begin > 0 && is_of_word(text[begin - 1]))
		begin--;
	return begin;
}

/* Returns where the name of a type begins that ends before text[end]; end if there is none. */
static int
type_before(const char *text, int end)
{
	int begin = word_before(text, end);
	int words = 0;

	/* timestamp with time zone, double precision, character varying */
	if (pg_strncasecmp(text + begin, "zone", 4) == 0)
		words = 3;
	else if (pg_strncasecmp(text + begin, "precision", 9) == 0 || pg_strncasecmp(text + begin, "varying", 7) == 0)
		words = 1;
	while (words-- > 0)
		begin = word_before(text, begin);
	return begin;
}

/* Returns true if extract( ends before text[end]. */
static bool
is_extract(const char *text, int end)
{
	while (end > 0 && isspace((unsigned char) text[end - 1]))
		end--;
	return end > 0 && text[end - 1] == '(' &&
		pg_strncasecmp(text + word_before(text, end - 1), "extract", strlen("extract")) == 0;
}

/* Returns a text with something else for the parameter at this place, where none can stand; else NULL. */
static char *
replace_parameter(const char *text, int place)
{
	int type = type_before(text, place);
	int end = place + 1;

	if (text[place] != '$')
		return NULL;
	while (isdigit((unsigned char) text[end]))
		end++;
	if (is_extract(text, place))
		return psprintf("%.*syear%s", place, text, text + end);
	if (type == place)
		return NULL;
	return psprintf("%.*s%.*s::%.*s%s", type, text, end - place, text + place, place - type, text + type, text + end);
}

/*
 * Parses a text, in which parameters that PostgreSQL's parser does not take are replaced.  Each time there is one
 * parameter less, or one word less in front of it, so there is an end.  The parser holds nothing but memory: its
 * errors need no subtransaction.
 */
static List *
parse(const char **text)
{
	MemoryContext context = CurrentMemoryContext;

	for (;;)
	{
		List *volatile parsed = NIL;
		char *volatile changed = NULL;

		PG_TRY();
		{
			parsed = pg_parse_query(*text);
		}
		PG_CATCH();
		{
			ErrorData *error;
			int place = 0;

			MemoryContextSwitchTo(context);
			error = CopyErrorData();
			if (error->sqlerrcode != ERRCODE_SYNTAX_ERROR)
				PG_RE_THROW();
			for (int i = 1; i < error->cursorpos; i++)
				place += pg_mblen(*text + place);
			changed = error->cursorpos > 0 ? replace_parameter(*text, place) : NULL;
			if (changed == NULL)
				PG_RE_THROW();
			FlushErrorState();
		}
		PG_END_TRY();
		if (changed == NULL)
			return parsed;
		*text = changed;
	}
}

static bool
is_parameter(const Node *node)
{
	return node != NULL && IsA(node, ParamRef);
}

static Node *
as_integer(Node *node)
{
	TypeCast *cast = makeNode(TypeCast);

	if (!is_parameter(node))
		return node;
	cast->arg = node;
	cast->typeName = makeTypeNameFromNameList(list_make2(makeString("pg_catalog"), makeString("int4")));
	cast->location = -1;
	return (Node *) cast;
}

/* Casts the results of a CASE that are all parameters, or NULL. */
static void
cast_results(CaseExpr *expr)
{
	ListCell *cell;

	foreach(cell, expr->args)
	{
		if (!is_parameter((Node *) lfirst_node(CaseWhen, cell)->result))
			return;
	}
	if (expr->defresult != NULL && !is_parameter((Node *) expr->defresult))
		return;
	foreach(cell, expr->args)
	{
		CaseWhen *when = lfirst(cell);

		when->result = (Expr *) as_integer((Node *) when->result);
	}
	expr->defresult = (Expr *) as_integer((Node *) expr->defresult);
}

static bool
is_arithmetic(const A_Expr *expr)
{
	const char *name = strVal(llast(expr->name));

	return expr->kind == AEXPR_OP && name[0] != '\0' && name[1] == '\0' && strchr("+-*/%", name[0]) != NULL;
}

/* Returns true if it is known to be a date before it is analyzed. */
static bool
is_date(const Node *node)
{
	if (node == NULL)
		return false;
	if (IsA(node, TypeCast))
		return strcmp(strVal(llast(((const TypeCast *) node)->typeName->names)), "date") == 0;
	return IsA(node, SQLValueFunction) && ((const SQLValueFunction *) node)->op == SVFOP_CURRENT_DATE;
}

static bool
is_constant(const Node *node)
{
	return node != NULL && (IsA(node, ParamRef) || IsA(node, A_Const));
}

/* Takes constants and parameters out of an expression: arguments, operands, and what is cast. */
static bool
take_constants_out(Node *node, void *arg)
{
	if (node == NULL)
		return false;
	if (IsA(node, List))
	{
		ListCell *cell;

		foreach(cell, (List *) node)
		{
			if (is_constant(lfirst(cell)))
				lfirst(cell) = NULL;
		}
	}
	if (IsA(node, A_Expr))
	{
		A_Expr *expr = (A_Expr *) node;

		expr->lexpr = is_constant(expr->lexpr) ? NULL : expr->lexpr;
		expr->rexpr = is_constant(expr->rexpr) ? NULL : expr->rexpr;
	}
	if (IsA(node, TypeCast) && is_constant(((TypeCast *) node)->arg))
		((TypeCast *) node)->arg = NULL;
	return raw_expression_tree_walker(node, take_constants_out, arg);
}

static Node *
without_constants(const Node *node)
{
	Node *copy = copyObject((Node *) node);

	take_constants_out(copy, NULL);
	return copy;
}

/* Gives columns of a SELECT that are like an expression of its GROUP BY or ORDER BY the constants of that. */
static void
take_constants_of(const Node *by, List *columns)
{
	ListCell *cell;

	if (by == NULL || IsA(by, ColumnRef) || is_constant(by))
		return;
	foreach(cell, columns)
	{
		ResTarget *column = lfirst_node(ResTarget, cell);

		if (column->val != NULL && nodeTag(column->val) == nodeTag(by) &&
			equal(without_constants(column->val), without_constants(by)))
			column->val = copyObject((Node *) by);
	}
}

/* Casts parameters that nothing else tells the type of, and finds what constants were. */
static bool
mend(Node *node, void *arg)
{
	if (node == NULL)
		return false;
	if (IsA(node, SelectStmt))
	{
		SelectStmt *select = (SelectStmt *) node;
		ListCell *cell;

		foreach(cell, select->groupClause)
			take_constants_of(lfirst(cell), select->targetList);
		foreach(cell, select->sortClause)
			take_constants_of(lfirst_node(SortBy, cell)->node, select->targetList);
	}
	if (IsA(node, A_Expr))
	{
		A_Expr *expr = (A_Expr *) node;

		if (is_arithmetic(expr) && is_parameter(expr->rexpr) &&
			(expr->lexpr == NULL || is_parameter(expr->lexpr) || is_date(expr->lexpr)))
		{
			expr->lexpr = as_integer(expr->lexpr);
			expr->rexpr = as_integer(expr->rexpr);
		}
	}
	if (IsA(node, FuncCall))
	{
		FuncCall *call = (FuncCall *) node;
		const char *name = strVal(llast(call->funcname));

		if (list_length(call->args) == 1 && (strcmp(name, "sum") == 0 || strcmp(name, "avg") == 0))
		{
			linitial(call->args) = as_integer(linitial(call->args));
			if (IsA(linitial(call->args), CaseExpr))
				cast_results(linitial(call->args));
		}
	}
	return raw_expression_tree_walker(node, mend, arg);
}

/* Returns what a text is parsed to; *text gets what positions of errors are in.  Errors: PostgreSQL's parser's. */
List *
gpusort_parse_counted(const char **text)
{
	List *parsed = parse(text);
	ListCell *cell;

	foreach(cell, parsed)
	{
		Node *statement = lfirst_node(RawStmt, cell)->stmt;

		if (IsA(statement, SelectStmt))
			mend(statement, NULL);
	}
	return parsed;
}
