/*-------------------------------------------------------------------------
 *
 * output_functions.c
 *	  Whether parallel workers may give out values of a type, or take them in.
 *
 * A type's output function (text), send function (binary), input or receive function must be parallel safe.  Those of
 * arrays, composite types and ranges call the functions of what values are made of, so these must be, too.  Of an
 * anonymous record, and of pseudo-types that can be arrays, it is known when a value is there only: workers may not.
 * Nor may they check what a domain demands.  All of PostgreSQL's own types have parallel safe functions.
 *
 *-------------------------------------------------------------------------
 */
#include "facts/output_functions.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

/* What is done with values */
typedef enum ValueUse
{
	WRITE_TEXT,
	WRITE_BINARY,
	READ_TEXT,
	READ_BINARY,
} ValueUse;

static bool may_do(Oid type, ValueUse use);

/* Returns true if workers may do that with all columns of a composite type. */
static bool
may_do_columns(Oid type, ValueUse use)
{
	TupleDesc desc = lookup_rowtype_tupdesc_copy(type, -1);
	bool may = true;

	for (int i = 0; may && i < desc->natts; i++)
	{
		if (!TupleDescAttr(desc, i)->attisdropped)
			may = may_do(TupleDescAttr(desc, i)->atttypid, use);
	}
	FreeTupleDesc(desc);
	return may;
}

/* The function of a type for that; InvalidOid: it has none. */
static Oid
function_of(Form_pg_type form, ValueUse use)
{
	switch (use)
	{
		case WRITE_TEXT:
			return form->typoutput;
		case WRITE_BINARY:
			return form->typsend;
		case READ_BINARY:
			return form->typreceive;
		default:
			return form->typinput;
	}
}

/* Returns true if binary values have the number of what they are made of, and other servers may have another. */
static bool
has_own_number(Oid part, ValueUse use)
{
	return use == READ_BINARY && part >= FirstNormalObjectId;
}

static bool
may_do(Oid type, ValueUse use)
{
	Oid base = getBaseType(type);
	Oid element;
	HeapTuple tuple;
	Oid function;
	char kind;

	check_stack_depth();
	if ((use == READ_TEXT || use == READ_BINARY) && base != type && DOMAIN_HAS_CONSTRAINTS(type))
		return false;
	tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(base));
	if (!HeapTupleIsValid(tuple))
		return false;
	kind = ((Form_pg_type) GETSTRUCT(tuple))->typtype;
	function = function_of((Form_pg_type) GETSTRUCT(tuple), use);
	ReleaseSysCache(tuple);
	if (!OidIsValid(function) || func_parallel(function) != PROPARALLEL_SAFE)
		return false;
	switch (kind)
	{
		case TYPTYPE_BASE:
			/* int2vector and its like have elements, too */
			element = get_element_type(base);
			return !OidIsValid(element) || (!has_own_number(element, use) && may_do(element, use));
		case TYPTYPE_ENUM:
			return true;
		case TYPTYPE_COMPOSITE:
			return use != READ_BINARY && may_do_columns(base, use);
		case TYPTYPE_RANGE:
			return may_do(get_range_subtype(base), use);
		case TYPTYPE_MULTIRANGE:
			return may_do(get_multirange_range(base), use);
		default:
			return false;
	}
}

/*
 * Returns why workers may not give out rows of a descriptor, as the rest of a sentence; NULL if they may.  Formats are
 * those of columns, 0 for text and 1 for binary.
 */
const char *
gpusort_why_no_output(TupleDesc desc, const int16 *formats)
{
	for (int i = 0; i < desc->natts; i++)
	{
		const Form_pg_attribute attribute = TupleDescAttr(desc, i);

		if (formats[i] != 0 && formats[i] != 1)
			return "the format of a column is not known";
		if (!may_do(attribute->atttypid, formats[i] == 1 ? WRITE_BINARY : WRITE_TEXT))
			return psprintf("the output of column \"%s\" is not known to be parallel safe", NameStr(attribute->attname));
	}
	return NULL;
}

/* Returns true if workers may take in values of a type as text. */
bool
gpusort_may_input(Oid type)
{
	return may_do(type, READ_TEXT);
}

/* Returns true if workers may take in values of a type as another server has sent them. */
bool
gpusort_may_receive(Oid type)
{
	return may_do(type, READ_BINARY);
}
