/*-------------------------------------------------------------------------
 *
 * loud_type.c
 *	  Output functions for a type of integers, which say something when they are called.
 *
 * Loaded into a server by test/t/output_types.t.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"

PG_MODULE_MAGIC;

/* A notice, not in ASCII, for the number 3000. */
PG_FUNCTION_INFO_V1(loud_out);
Datum
loud_out(PG_FUNCTION_ARGS)
{
	int32 number = PG_GETARG_INT32(0);

	if (number == 3000)
		ereport(NOTICE, (errmsg("größer: %d", number), errdetail("é"), errhint("plain")));
	PG_RETURN_CSTRING(psprintf("ü %d", number));
}

/* An error for the number 4000. */
PG_FUNCTION_INFO_V1(failing_out);
Datum
failing_out(PG_FUNCTION_ARGS)
{
	int32 number = PG_GETARG_INT32(0);

	if (number == 4000)
		ereport(ERROR, (errcode(ERRCODE_DATA_EXCEPTION), errmsg("größer: %d", number)));
	PG_RETURN_CSTRING(psprintf("ü %d", number));
}
