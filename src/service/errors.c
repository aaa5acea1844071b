/*-------------------------------------------------------------------------
 *
 * errors.c
 *	  Errors that any step of a sort may meet.
 *
 * Each fills *error and returns -1, for the caller to return.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <string.h>

#include "service/errors.h"

/* For a sort that was told to stop. */
int
gpusort_error_cancelled(GpuSortError *error)
{
	error->reason = GPUSORT_REASON_INTERNAL;
	strcpy(error->text, "the sort was cancelled");
	return -1;
}

/* For an allocation that failed. */
int
gpusort_error_memory(GpuSortError *error)
{
	error->reason = GPUSORT_REASON_NO_MEMORY;
	strcpy(error->text, "the system has no memory left for a sort");
	return -1;
}

/* The sort has, or is expected to have, more rows than ids. */
int
gpusort_error_rows(GpuSortError *error)
{
	error->reason = GPUSORT_REASON_TOO_MANY_ROWS;
	snprintf(error->text, sizeof(error->text), "a sort takes at most %llu rows", (unsigned long long) GPUSORT_MAX_ROWS);
	return -1;
}
