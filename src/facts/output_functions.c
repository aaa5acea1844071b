/*-------------------------------------------------------------------------
 *
 * output_functions.c
 *	  Whether parallel workers may give out values of a type.
 *
 * A type's output function (text) or send function (binary) must be parallel safe.  Those of arrays, composite types
 * and ranges call the functions of what values are made of, so these must be, too.  Of an anonymous record, and of
 * pseudo-types that can be arrays, it is known when a value is there only: workers may not.  All of PostgreSQL's
 * own types have parallel safe functions.
 *
 *-------------------------------------------------------------------------
 */
#include "facts/output_functions.h"

#include "access/htup_details.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

static bool may_give_out(Oid type, bool binary);

/* Returns true if workers may give out all columns of a composite type. */
static bool
may_give_out_columns(Oid type, bool binary)
{
	TupleDesc desc = lookup_rowtype_tupdesc_copy(type, -1);
	bool may = true;

	for (int i = 0; may && i < desc->natts; i++)
	{
		if (!TupleDescAttr(desc, i)->attisdropped)
			may = may_give_out(TupleDescAttr(desc, i)->atttypid, binary);
	}
	FreeTupleDesc(desc);
	return may;
}

static bool
may_give_out(Oid type, bool binary)
{
	Oid base = getBaseType(type);
	Oid element;
	HeapTuple tuple;
	Oid function;
	char kind;

	check_stack_depth();
	tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(base));
	if (!HeapTupleIsValid(tuple))
		return false;
	kind = ((Form_pg_type) GETSTRUCT(tuple))->typtype;
	function = binary ? ((Form_pg_type) GETSTRUCT(tuple))->typsend : ((Form_pg_type) GETSTRUCT(tuple))->typoutput;
	ReleaseSysCache(tuple);
	if (!OidIsValid(function) || func_parallel(function) != PROPARALLEL_SAFE)
		return false;
	switch (kind)
	{
		case TYPTYPE_BASE:
			/* int2vector and its like have elements, too */
			element = get_element_type(base);
			return !OidIsValid(element) || may_give_out(element, binary);
		case TYPTYPE_ENUM:
			return true;
		case TYPTYPE_COMPOSITE:
			return may_give_out_columns(base, binary);
		case TYPTYPE_RANGE:
			return may_give_out(get_range_subtype(base), binary);
		case TYPTYPE_MULTIRANGE:
			return may_give_out(get_multirange_range(base), binary);
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
		if (!may_give_out(attribute->atttypid, formats[i] == 1))
			return psprintf("the output of column \"%s\" is not known to be parallel safe", NameStr(attribute->attname));
	}
	return NULL;
}
