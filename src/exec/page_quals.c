/*-------------------------------------------------------------------------
 *
 * page_quals.c
 *	  Conditions of a scan that are decided for a page's tuples at once, without the executor's expressions.
 *
 * The types' own btree operator families, those that PostgreSQL comes with, tell which operators they may have:
 * within one of them <, <=, =, >=, > and the negation of = say how two values compare, so that each condition is a
 * set of the three answers that there are.  All values compare as integers of 64 bits, or as float8.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/page_quals.h"

#include <math.h>

#include "access/stratnum.h"
#include "access/transam.h"
#include "catalog/pg_type_d.h"
#include "exec/tuple_columns.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

/* How a column's values are read. */
typedef enum ValueKind
{
	VALUE_NONE, /* not at all */
	VALUE_BYTE, /* bool, and "char", which compares without a sign */
	VALUE_INT16,
	VALUE_INT32,
	VALUE_INT64,
	VALUE_OID,
	VALUE_FLOAT4,
	VALUE_FLOAT8,
} ValueKind;

/* What a value may be to the constant. */
#define IS_LESS    (1 << 0)
#define IS_EQUAL   (1 << 1)
#define IS_GREATER (1 << 2)

struct GpuSortPageQual
{
	AttrNumber attno; /* of the table */
	int32 offset;     /* bytes from the start of a tuple's data, where there are no NULLs; -1: that varies */
	ValueKind kind;
	int wanted; /* set of IS_* */
	bool wants_nulls;
	int64 constant;
	float8 float_constant;
};

static ValueKind
value_kind(Oid type)
{
	switch (type)
	{
		case BOOLOID:
		case CHAROID:
			return VALUE_BYTE;
		case INT2OID:
			return VALUE_INT16;
		case INT4OID:
		case DATEOID:
			return VALUE_INT32;
		case INT8OID:
		case TIMEOID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
		case MONEYOID:
			return VALUE_INT64;
		case OIDOID:
			return VALUE_OID;
		case FLOAT4OID:
			return VALUE_FLOAT4;
		case FLOAT8OID:
			return VALUE_FLOAT8;
		default:
			return VALUE_NONE;
	}
}

/* Returns true if values of two types compare as what is read of them: integers, floats, or those of one type. */
static bool
are_comparable(Oid left, Oid right)
{
	const bool integers = left == INT2OID || left == INT4OID || left == INT8OID;
	const bool floats = left == FLOAT4OID || left == FLOAT8OID;

	return left == right ||
		(integers && (right == INT2OID || right == INT4OID || right == INT8OID)) ||
		(floats && (right == FLOAT4OID || right == FLOAT8OID));
}

static pg_attribute_always_inline int64
integer_value(ValueKind kind, Datum value)
{
	switch (kind)
	{
		case VALUE_BYTE:
			return (uint8) DatumGetChar(value);
		case VALUE_INT16:
			return DatumGetInt16(value);
		case VALUE_INT32:
			return DatumGetInt32(value);
		case VALUE_OID:
			return DatumGetObjectId(value);
		default:
			return DatumGetInt64(value);
	}
}

static pg_attribute_always_inline float8
float_value(ValueKind kind, Datum value)
{
	return kind == VALUE_FLOAT4 ? DatumGetFloat4(value) : DatumGetFloat8(value);
}

/* Returns how a compares with b; as for PostgreSQL, a NaN equals another and is above all else. */
static pg_attribute_always_inline int
compare_floats(float8 a, float8 b)
{
	if (unlikely(isnan(a)))
		return isnan(b) ? IS_EQUAL : IS_GREATER;
	if (unlikely(isnan(b)))
		return IS_LESS;
	return (a < b) * IS_LESS + (a == b) * IS_EQUAL + (a > b) * IS_GREATER;
}

/* Returns the set of answers for which op, of type's btree family, is true; 0 if it is not in that. */
static int
answers_of_member(Oid op, Oid type)
{
	Oid family = lookup_type_cache(type, TYPECACHE_BTREE_OPFAMILY)->btree_opf;

	if (!OidIsValid(family) || family >= FirstUnpinnedObjectId)
		return 0;
	switch (get_op_opfamily_strategy(op, family))
	{
		case BTLessStrategyNumber:
			return IS_LESS;
		case BTLessEqualStrategyNumber:
			return IS_LESS | IS_EQUAL;
		case BTEqualStrategyNumber:
			return IS_EQUAL;
		case BTGreaterEqualStrategyNumber:
			return IS_GREATER | IS_EQUAL;
		case BTGreaterStrategyNumber:
			return IS_GREATER;
		default:
			return 0;
	}
}

/* Returns the same, also for the negation of one that is in the family. */
static int
answers_of(Oid op, Oid type)
{
	int answers = answers_of_member(op, type);
	Oid negator;

	if (answers != 0)
		return answers;
	negator = get_negator(op);
	answers = OidIsValid(negator) ? answers_of_member(negator, type) : 0;
	return answers == 0 ? 0 : (IS_LESS | IS_EQUAL | IS_GREATER) & ~answers;
}

/* Returns the answers for (b, a), where answers are those for (a, b). */
static int
commuted(int answers)
{
	return (answers & IS_EQUAL) | (answers & IS_LESS ? IS_GREATER : 0) | (answers & IS_GREATER ? IS_LESS : 0);
}

/* Returns true if LIKE by this pattern raises no error for any string: it does not end with an escape. */
static bool
is_sound_pattern(const Const *pattern, Oid collation)
{
	const text *string;
	const char *bytes;
	int length;
	int escapes = 0;

	if (!IsA(pattern, Const) || pattern->constisnull || pattern->consttype != TEXTOID || !OidIsValid(collation) ||
		!get_collation_isdeterministic(collation))
		return false;
	string = DatumGetTextPP(pattern->constvalue);
	bytes = VARDATA_ANY(string);
	length = (int) VARSIZE_ANY_EXHDR(string);
	while (escapes < length && bytes[length - 1 - escapes] == '\\')
		escapes++;
	return escapes % 2 == 0;
}

/*
 * Returns true if an operator raises no error for any values: it is leakproof, compares numerics, or dates and times of
 * different types, or is LIKE.
 */
static bool
never_fails(Oid op, Oid function, List *args, Oid collation)
{
	switch (function)
	{
		case F_TEXTLIKE:
		case F_TEXTNLIKE:
		case F_BPCHARLIKE:
		case F_BPCHARNLIKE:
		case F_NAMELIKE:
		case F_NAMENLIKE:
			return is_sound_pattern(lsecond(args), collation);
		default:
			return get_func_leakproof(function) || answers_of(op, NUMERICOID) != 0 || answers_of(op, TIMESTAMPOID) != 0;
	}
}

/*
 * Returns true if an expression may raise an error for a row that is behind others for which it raised none.  What has
 * no columns raises none if it raised none before, but in branches, not NULL, it may not have been computed before.
 */
static bool
may_fail(Node *node, void *in_branch)
{
	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_Var:
		case T_Const:
			return false;
		case T_BoolExpr:
			return expression_tree_walker(node, may_fail, node);
		case T_List:
		case T_NullTest:
		case T_BooleanTest:
		case T_RelabelType:
			return expression_tree_walker(node, may_fail, in_branch);
		case T_OpExpr:
			{
				const OpExpr *op = (const OpExpr *) node;

				if (never_fails(op->opno, op->opfuncid, op->args, op->inputcollid))
					return expression_tree_walker(node, may_fail, in_branch);
				break;
			}
		case T_ScalarArrayOpExpr:
			{
				const ScalarArrayOpExpr *op = (const ScalarArrayOpExpr *) node;

				if (never_fails(op->opno, op->opfuncid, op->args, op->inputcollid))
					return expression_tree_walker(node, may_fail, in_branch);
				break;
			}
		default:
			break;
	}
	return in_branch != NULL || contain_leaked_vars(node);
}

/* Returns true if nobody can see of which rows conditions are asked, where they are asked of all that pass. */
bool
gpusort_page_quals_are_harmless(List *conditions)
{
	return !may_fail((Node *) conditions, NULL) && !contain_volatile_functions((Node *) conditions);
}

/* Returns the column of the scanned table that expr is, or NULL. */
static const Var *
scanned_column(const Expr *expr, Index relid)
{
	const Var *var = (const Var *) expr;

	return IsA(expr, Var) && var->varno == (int) relid && var->varattno > 0 ? var : NULL;
}

/* Makes qual out of a comparison; false if it is not one of those that are decided here. */
static bool
set_comparison(GpuSortPageQual *qual, const OpExpr *op, Index relid)
{
	const Var *var;
	const Const *constant;
	Oid left;
	Oid right;
	bool is_turned;

	if (list_length(op->args) != 2)
		return false;
	is_turned = IsA(linitial(op->args), Const);
	var = scanned_column(is_turned ? lsecond(op->args) : linitial(op->args), relid);
	constant = is_turned ? linitial(op->args) : lsecond(op->args);
	if (var == NULL || !IsA(constant, Const) || constant->constisnull)
		return false;
	qual->kind = value_kind(var->vartype);
	if (qual->kind == VALUE_NONE || !are_comparable(var->vartype, constant->consttype))
		return false;
	op_input_types(op->opno, &left, &right);
	if ((is_turned ? right : left) != var->vartype || (is_turned ? left : right) != constant->consttype)
		return false;
	qual->wanted = answers_of(op->opno, var->vartype);
	if (is_turned)
		qual->wanted = commuted(qual->wanted);
	if (qual->kind == VALUE_FLOAT4 || qual->kind == VALUE_FLOAT8)
		qual->float_constant = float_value(value_kind(constant->consttype), constant->constvalue);
	else
		qual->constant = integer_value(value_kind(constant->consttype), constant->constvalue);
	qual->wants_nulls = false;
	qual->attno = var->varattno;
	return qual->wanted != 0;
}

/* Makes qual out of IS [NOT] NULL; false if it is not one of those that are decided here. */
static bool
set_null_test(GpuSortPageQual *qual, const NullTest *test, Index relid)
{
	const Var *var = scanned_column(test->arg, relid);

	if (var == NULL || test->argisrow)
		return false;
	qual->kind = VALUE_NONE;
	qual->wants_nulls = test->nulltesttype == IS_NULL;
	qual->wanted = qual->wants_nulls ? 0 : IS_EQUAL;
	qual->attno = var->varattno;
	return true;
}

/*
 * Returns the leading ones of these conditions on tuples of relation relid, with this descriptor, that are decided
 * here; those behind the first other one are not among them, so that all are asked in their order.  They belong to the
 * current memory context.
 */
GpuSortPageQuals *
gpusort_page_quals_create(List *conditions, Index relid, TupleDesc desc)
{
	GpuSortPageQuals *quals = palloc0(sizeof(GpuSortPageQuals));
	AttrNumber *attnos = palloc(list_length(conditions) * sizeof(AttrNumber));
	ListCell *lc;

	quals->quals = palloc0(list_length(conditions) * sizeof(GpuSortPageQual));
	foreach(lc, conditions)
	{
		const Node *condition = lfirst(lc);
		GpuSortPageQual *qual = &quals->quals[quals->count];

		if (!(IsA(condition, OpExpr) && set_comparison(qual, (const OpExpr *) condition, relid)) &&
			!(IsA(condition, NullTest) && set_null_test(qual, (const NullTest *) condition, relid)))
			break;
		attnos[quals->count++] = qual->attno;
	}
	quals->columns = gpusort_tuple_columns_create(desc, attnos, quals->count);
	for (int i = 0; i < quals->count; i++)
		quals->quals[i].offset = quals->columns->stored[quals->quals[i].attno - 1].offset;
	quals->values = palloc(quals->count * sizeof(Datum));
	quals->nulls = palloc(quals->count * sizeof(bool));
	return quals;
}

/*
 * Returns the condition of a threshold for values of this column, which compare as those of a type that the column's is
 * coerced to as it is, such as int4 to oid; NULL if it cannot be decided here.  It belongs to the current memory
 * context.
 */
GpuSortPageQuals *
gpusort_page_quals_create_threshold(AttrNumber attno, TupleDesc desc, Oid type)
{
	GpuSortPageQuals *quals;
	const ValueKind kind = value_kind(type);

	if (kind == VALUE_NONE)
		return NULL;
	quals = palloc0(sizeof(GpuSortPageQuals));
	quals->count = 1;
	quals->quals = palloc0(sizeof(GpuSortPageQual));
	quals->columns = gpusort_tuple_columns_create(desc, &attno, 1);
	quals->quals[0].attno = attno;
	quals->quals[0].kind = kind;
	quals->quals[0].offset = quals->columns->stored[attno - 1].offset;
	quals->values = palloc(sizeof(Datum));
	quals->nulls = palloc(sizeof(bool));
	return quals;
}

/* Makes the condition that of a threshold that is known. */
void
gpusort_page_quals_set_threshold(GpuSortPageQuals *quals, const GpuSortThreshold *threshold)
{
	GpuSortPageQual *qual = &quals->quals[0];

	qual->wanted = (threshold->descending ? IS_GREATER : IS_LESS) | (threshold->equal_wanted ? IS_EQUAL : 0);
	qual->wants_nulls = threshold->nulls_first || threshold->isnull;
	if (threshold->isnull)
		qual->wanted = threshold->nulls_first ? 0 : IS_LESS | IS_EQUAL | IS_GREATER;
	else if (qual->kind == VALUE_FLOAT4 || qual->kind == VALUE_FLOAT8)
		qual->float_constant = float_value(qual->kind, threshold->value);
	else
		qual->constant = integer_value(qual->kind, threshold->value);
}

/* Returns the value of a column that is read as kind. */
static pg_attribute_always_inline Datum
fetch_value(ValueKind kind, const char *data)
{
	switch (kind)
	{
		case VALUE_NONE:
			return (Datum) 0;
		case VALUE_BYTE:
			return fetch_att(data, true, sizeof(char));
		case VALUE_INT16:
			return fetch_att(data, true, sizeof(int16));
		case VALUE_INT32:
		case VALUE_OID:
		case VALUE_FLOAT4:
			return fetch_att(data, true, sizeof(int32));
		default:
			return fetch_att(data, true, sizeof(int64));
	}
}

/* Returns true if a value that is no NULL, of a column that is read as kind, fulfils a condition. */
static pg_attribute_always_inline bool
is_fulfilled_by(const GpuSortPageQual *qual, ValueKind kind, Datum value)
{
	int64 integer;
	int answer;

	if (kind == VALUE_NONE)
		answer = IS_EQUAL;
	else if (kind == VALUE_FLOAT4 || kind == VALUE_FLOAT8)
		answer = compare_floats(float_value(kind, value), qual->float_constant);
	else
	{
		integer = integer_value(kind, value);
		answer = (integer < qual->constant) * IS_LESS + (integer == qual->constant) * IS_EQUAL +
			(integer > qual->constant) * IS_GREATER;
	}
	return (qual->wanted & answer) != 0;
}

/* Returns true if a tuple fulfils all conditions; reads its columns in one go. */
static pg_noinline bool
are_fulfilled_by(const GpuSortPageQuals *quals, HeapTupleHeader tuple)
{
	bool fulfilled = true;

	gpusort_tuple_columns_read(quals->columns, tuple, quals->values, quals->nulls);
	for (int i = 0; i < quals->count; i++)
	{
		const GpuSortPageQual *qual = &quals->quals[i];

		if (unlikely(quals->nulls[i]))
			fulfilled &= qual->wants_nulls;
		else
			fulfilled &= is_fulfilled_by(qual, qual->kind, quals->values[i]);
	}
	return fulfilled;
}

/*
 * Keeps those of n tuples that fulfil a condition on a column that has an offset and is read as kind.  A tuple that may
 * not have it there, or any if qual is NULL, must fulfil all conditions.  No branch goes by an answer, which no
 * processor could foresee.
 */
static pg_attribute_always_inline int
filter_by(const GpuSortPageQuals *quals, const GpuSortPageQual *qual, ValueKind kind, Page page, OffsetNumber *tuples,
		  int n, GpuSortPageAhead *ahead)
{
	int kept = 0;

	for (int i = 0; i < n; i++)
	{
		const OffsetNumber line = tuples[i];
		const HeapTupleHeader tuple = gpusort_page_tuple(page, line);
		bool fulfilled;

		gpusort_page_ahead_fetch(ahead);
		if (qual != NULL &&
			likely(!(tuple->t_infomask & HEAP_HASNULL) && HeapTupleHeaderGetNatts(tuple) >= qual->attno))
			fulfilled = is_fulfilled_by(qual, kind,
										fetch_value(kind, (const char *) tuple + tuple->t_hoff + qual->offset));
		else
			fulfilled = are_fulfilled_by(quals, tuple);
		tuples[kept] = line;
		kept += fulfilled;
	}
	return kept;
}

/* Does the same, compiled for each kind. */
static int
filter_by_column(const GpuSortPageQuals *quals, const GpuSortPageQual *qual, Page page, OffsetNumber *tuples, int n,
				 GpuSortPageAhead *ahead)
{
	switch (qual->kind)
	{
		case VALUE_NONE:
			return filter_by(quals, qual, VALUE_NONE, page, tuples, n, ahead);
		case VALUE_BYTE:
			return filter_by(quals, qual, VALUE_BYTE, page, tuples, n, ahead);
		case VALUE_INT16:
			return filter_by(quals, qual, VALUE_INT16, page, tuples, n, ahead);
		case VALUE_INT32:
			return filter_by(quals, qual, VALUE_INT32, page, tuples, n, ahead);
		case VALUE_INT64:
			return filter_by(quals, qual, VALUE_INT64, page, tuples, n, ahead);
		case VALUE_OID:
			return filter_by(quals, qual, VALUE_OID, page, tuples, n, ahead);
		case VALUE_FLOAT4:
			return filter_by(quals, qual, VALUE_FLOAT4, page, tuples, n, ahead);
		case VALUE_FLOAT8:
			return filter_by(quals, qual, VALUE_FLOAT8, page, tuples, n, ahead);
	}
	pg_unreachable();
}

/*
 * Keeps those of n tuples of a page, named by their lines, that fulfil the conditions; returns how many.  Conditions
 * have no effects, so that their order does not matter: where the columns have offsets, each is asked about the whole
 * page, one after the other; else tuple by tuple.
 */
int
gpusort_page_quals_filter(const GpuSortPageQuals *quals, Page page, OffsetNumber *tuples, int n,
						  GpuSortPageAhead *ahead)
{
	if (quals->columns->fixed < quals->columns->count)
		return filter_by(quals, NULL, VALUE_NONE, page, tuples, n, ahead);
	for (int i = 0; i < quals->count; i++)
		n = filter_by_column(quals, &quals->quals[i], page, tuples, n, ahead);
	return n;
}
