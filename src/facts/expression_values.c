/*-------------------------------------------------------------------------
 *
 * expression_values.c
 *	  How many values an expression of a table's columns has.
 *
 * PostgreSQL expects of an expression as many values as its columns have, unless there are statistics of it.  But
 * k % 500 has no more than 999, whatever k has, and date_trunc('day', t) one for each day between the first and the
 * last t.
 *
 *-------------------------------------------------------------------------
 */
#include "facts/expression_values.h"

#include <math.h>

#include "catalog/pg_proc.h"
#include "catalog/pg_type_d.h"
#include "facts/column_stats.h"
#include "nodes/nodeFuncs.h"
#include "nodes/primnodes.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

/* What date_trunc() and extract() know */
typedef struct Field
{
	const char *name;
	double seconds; /* that date_trunc() puts together; 0: it is no unit of time */
	double values;  /* of extract(); INFINITY: they grow with time */
} Field;

static const Field fields[] = {
	{"second", 1, INFINITY},
	{"minute", 60, 60},
	{"hour", 3600, 24},
	{"day", 86400, 31},
	{"week", 7 * 86400, 53},
	{"month", 28 * 86400, 12},
	{"quarter", 90 * 86400, 4},
	{"year", 365 * 86400, INFINITY},
	{"dow", 0, 7},
	{"isodow", 0, 7},
	{"doy", 0, 366},
};

/* The times of a column's statistics */
typedef struct Span
{
	Oid type;
	double first;
	double last; /* in seconds */
} Span;

static const Field *
find_field(const Node *name)
{
	const Const *value = (const Const *) name;

	if (!IsA(name, Const) || value->constisnull || value->consttype != TEXTOID)
		return NULL;
	for (int i = 0; i < (int) lengthof(fields); i++)
	{
		if (pg_strcasecmp(TextDatumGetCString(value->constvalue), fields[i].name) == 0)
			return &fields[i];
	}
	return NULL;
}

static void
add_time(Datum value, int count, void *arg)
{
	Span *span = arg;
	double seconds;

	if (span->type == DATEOID)
		seconds = DATE_NOT_FINITE(DatumGetDateADT(value)) ? NAN : DatumGetDateADT(value) * (double) SECS_PER_DAY;
	else
		seconds = TIMESTAMP_NOT_FINITE(DatumGetTimestamp(value))
			? NAN
			: DatumGetTimestamp(value) / (double) USECS_PER_SEC;
	span->first = fmin(span->first, seconds);
	span->last = fmax(span->last, seconds);
}

/* How many parts of so many seconds there are between the first and the last time of a column. */
static double
parts_of_time(Oid table, const Node *expr, double seconds)
{
	const FuncExpr *cast = (const FuncExpr *) expr;
	const Var *var;
	Span span = {.first = INFINITY, .last = -INFINITY};
	GpuSortTableColumn column = {.table = table};

	if (IsA(expr, FuncExpr) && (cast->funcid == F_TIMESTAMP_DATE || cast->funcid == F_TIMESTAMPTZ_DATE))
		expr = linitial(cast->args);
	var = (const Var *) expr;
	if (!IsA(expr, Var) || seconds == 0)
		return INFINITY;
	span.type = var->vartype;
	if (span.type != DATEOID && span.type != TIMESTAMPOID && span.type != TIMESTAMPTZOID)
		return INFINITY;
	column.attno = var->varattno;
	(void) gpusort_column_values(&column, span.type, add_time, &span);
	return span.last >= span.first ? floor((span.last - span.first) / seconds) + 2 : INFINITY;
}

/* How many remainders of a division by a constant there are: as many below 0 as above. */
static double
remainders(const Const *divisor)
{
	double value;

	if (!IsA(divisor, Const) || divisor->constisnull)
		return INFINITY;
	switch (divisor->consttype)
	{
		case INT2OID:
			value = DatumGetInt16(divisor->constvalue);
			break;
		case INT4OID:
			value = DatumGetInt32(divisor->constvalue);
			break;
		default:
			value = (double) DatumGetInt64(divisor->constvalue);
			break;
	}
	return Max(2 * fabs(value) - 1, 1);
}

/* What is known of the values of a function, of these arguments; INFINITY: nothing. */
static double
function_values(Oid table, Oid function, const List *arguments)
{
	const Node *first = list_length(arguments) >= 2 ? linitial(arguments) : NULL;
	const Node *second = list_length(arguments) >= 2 ? lsecond(arguments) : NULL;
	const Field *field;

	switch (function)
	{
		case F_INT2MOD:
		case F_INT4MOD:
		case F_INT8MOD:
		case F_MOD_INT2_INT2:
		case F_MOD_INT4_INT4:
		case F_MOD_INT8_INT8:
			return remainders((const Const *) second);
		case F_EXTRACT_TEXT_DATE:
		case F_EXTRACT_TEXT_TIMESTAMP:
		case F_EXTRACT_TEXT_TIMESTAMPTZ:
		case F_DATE_PART_TEXT_DATE:
		case F_DATE_PART_TEXT_TIMESTAMP:
		case F_DATE_PART_TEXT_TIMESTAMPTZ:
			field = find_field(first);
			return field != NULL ? field->values : INFINITY;
		case F_DATE_TRUNC_TEXT_TIMESTAMP:
		case F_DATE_TRUNC_TEXT_TIMESTAMPTZ:
			field = find_field(first);
			return field != NULL ? parts_of_time(table, second, field->seconds) : INFINITY;
		case F_DATE_TIMESTAMP:
		case F_DATE_TIMESTAMPTZ:
			return parts_of_time(table, linitial(arguments), SECS_PER_DAY);
		default:
			return INFINITY;
	}
}

/* The values of a function: one for each set of arguments, if it is not volatile. */
static double
call_values(Oid table, Oid function, const List *arguments)
{
	double values = func_volatile(function) == PROVOLATILE_VOLATILE ? INFINITY : 1;
	ListCell *cell;

	foreach(cell, arguments)
		values *= gpusort_expression_values(table, lfirst(cell));
	return Min(values, function_values(table, function, arguments) + 1);
}

static double
case_values(const CaseExpr *expr)
{
	ListCell *cell;

	foreach(cell, expr->args)
	{
		if (!IsA(lfirst_node(CaseWhen, cell)->result, Const))
			return INFINITY;
	}
	return expr->defresult == NULL || IsA(expr->defresult, Const) ? list_length(expr->args) + 1 : INFINITY;
}

/*
 * Returns how many values an expression of a table's columns has at most, NULL among them, as far as it and statistics
 * tell; INFINITY: they do not.
 */
double
gpusort_expression_values(Oid table, const Node *expr)
{
	GpuSortTableColumn column = {.table = table};
	double values = INFINITY;

	switch (nodeTag(expr))
	{
		case T_Const:
			return 1;
		case T_Var:
			column.attno = ((const Var *) expr)->varattno;
			(void) gpusort_column_known_values(&column, ((const Var *) expr)->vartype, NULL, NULL, &values);
			return values + 1;
		case T_RelabelType:
			return gpusort_expression_values(table, (const Node *) ((const RelabelType *) expr)->arg);
		case T_FuncExpr:
			values = call_values(table, ((const FuncExpr *) expr)->funcid, ((const FuncExpr *) expr)->args);
			break;
		case T_OpExpr:
			values = call_values(table, get_opcode(((const OpExpr *) expr)->opno), ((const OpExpr *) expr)->args);
			break;
		case T_CaseExpr:
			values = case_values((const CaseExpr *) expr);
			break;
		default:
			break;
	}
	return exprType(expr) == BOOLOID ? Min(values, 3) : values;
}
