/*-------------------------------------------------------------------------
 *
 * model_times.c
 *	  The function gpusort_model_times(): how long a statement takes by the model, and what that depends on.
 *
 * It is no object of the extension: bench/costs fit, which fits the model's constants to times, makes it where it runs
 * (CREATE FUNCTION ... LANGUAGE C, which takes a superuser).
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "fmgr.h"
#include "funcapi.h"
#include "plan/estimate.h"
#include "plan/model/constants.h"
#include "plan/planner.h"
#include "settings.h"
#include "tcop/tcopprot.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

/* PostgreSQL 15's PG_FUNCTION_INFO_V1 does not export the function itself. */
extern PGDLLEXPORT Datum gpusort_model_times(PG_FUNCTION_ARGS);

PG_FUNCTION_INFO_V1(gpusort_model_times);

/* Returns what a query takes by the model, in ms, as it is planned now: with gpusort, or without it. */
static double
model_time(Query *query, const char *text)
{
	const bool with_gpusort = gpusort_enable;
	GpuSortEstimate estimate;

	/* There is an estimate only where gpusort looks at plans. */
	(void) gpusort_estimate_plan(query, text, &estimate);
	return (estimate.native - (with_gpusort ? estimate.saved : 0)) / 1e6;
}

static void
put_time(ReturnSetInfo *result, const char *constant, double ms)
{
	Datum values[] = {CStringGetTextDatum(constant), Float8GetDatum(ms)};
	bool nulls[lengthof(values)] = {0};

	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

/*
 * Rows (constant text, ms float8) for a statement that is not run: what it takes by the model, for the constant '', and
 * with each constant in turn 5 % higher; with gpusort.enable = off what PostgreSQL's own plan takes.
 */
Datum
gpusort_model_times(PG_FUNCTION_ARGS)
{
	const char *statement = text_to_cstring(PG_GETARG_TEXT_PP(0));
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	List *parsed = pg_parse_query(statement);
	List *queries;

	InitMaterializedSRF(fcinfo, 0);
	if (list_length(parsed) != 1 || !IsA(linitial_node(RawStmt, parsed)->stmt, SelectStmt))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("gpusort_model_times() takes one SELECT")));
	queries = pg_analyze_and_rewrite_fixedparams(linitial_node(RawStmt, parsed), statement, NULL, 0, NULL);
	PG_TRY();
	{
		put_time(result, "", model_time(linitial_node(Query, queries), statement));
		for (GpuSortConstant i = 0; i < GPUSORT_TIME_Count; i++)
		{
			gpusort_constant_raise(i);
			put_time(result, gpusort_constant_name(i), model_time(linitial_node(Query, queries), statement));
		}
	}
	PG_FINALLY();
	{
		gpusort_constant_raise(GPUSORT_TIME_Count);
	}
	PG_END_TRY();
	return (Datum) 0;
}
