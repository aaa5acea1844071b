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
			 errmsg("the sort service returned a damaged row"),
			 errhint("Run the query again. If it recurs, set gpusort.enable = off and report it.")));
}
