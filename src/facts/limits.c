/*-------------------------------------------------------------------------
 *
 * limits.c
 *	  How many rows LIMIT and OFFSET ask for.
 *
 *-------------------------------------------------------------------------
 */
#include "facts/limits.h"

#include "catalog/pg_type_d.h"
#include "nodes/primnodes.h"
#include "utils/fmgroids.h"

/* What a LIMIT or OFFSET that is known only at run time is thought to be, of the rows: as PostgreSQL guesses. */
#define UNKNOWN_PART 0.1

/*
 * How many of so many rows LIMIT count OFFSET offset asks for; -1 for all.  offset may be NULL.  If one of
 * them is not known before the query runs, *known becomes false.
 */
double
gpusort_limit_rows(Node *count, Node *offset, double rows, bool *known)
{
	double first = 0;

	*known = true;
	for (int i = 0; i < 2; i++)
	{
		const Const *bound = (const Const *) (i == 0 ? count : offset);

		if (bound == NULL)
			continue;
		if (!IsA(bound, Const))
		{
			*known = false;
			first += UNKNOWN_PART * rows;
		}
		else if (!bound->constisnull)
			first += Max(DatumGetInt64(bound->constvalue), 0);
		else if (i == 0)
			return -1; /* LIMIT NULL is no limit */
	}
	return Max(first, 1);
}

/*
 * Sets the number of rows that a LIMIT or OFFSET of a statement says that is not planned yet; returns false if it is
 * not known yet, or is none.  params are what its parameters are known to be; they may be NULL.
 */
bool
gpusort_known_limit(Node *limit, ParamListInfo params, int64 *number)
{
	if (limit != NULL && IsA(limit, FuncExpr) && ((const FuncExpr *) limit)->funcid == F_INT8_INT4)
		limit = linitial(((const FuncExpr *) limit)->args);
	if (limit == NULL)
		return false;
	if (IsA(limit, Const) && !((const Const *) limit)->constisnull)
	{
		const Const *value = (const Const *) limit;

		*number = value->consttype == INT4OID ? DatumGetInt32(value->constvalue) : DatumGetInt64(value->constvalue);
		return value->consttype == INT4OID || value->consttype == INT8OID;
	}
	if (IsA(limit, Param) && ((const Param *) limit)->paramkind == PARAM_EXTERN && params != NULL)
	{
		const int id = ((const Param *) limit)->paramid;
		const ParamExternData *value;
		ParamExternData fetched;

		if (id < 1 || id > params->numParams)
			return false;
		value = params->paramFetch != NULL ? params->paramFetch(params, id, true, &fetched) : &params->params[id - 1];
		if ((value->pflags & PARAM_FLAG_CONST) == 0 || value->isnull)
			return false;
		*number = value->ptype == INT4OID ? DatumGetInt32(value->value) : DatumGetInt64(value->value);
		return value->ptype == INT4OID || value->ptype == INT8OID;
	}
	return false;
}
