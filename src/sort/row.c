/*-------------------------------------------------------------------------
 *
 * row.c
 *	  The error for rows in a chunk that are damaged.
 *
 *-------------------------------------------------------------------------
 */
#include "sort/row.h"

/* Ends the query: a row that came back is not as it was formed. */
void
gpusort_row_report_damaged(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("gpusort got a row back damaged"),
			 errhint("Run the query again, with gpusort.verify_rows = on, or gpusort.enable = off if it recurs.")));
}
