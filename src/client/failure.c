/*-------------------------------------------------------------------------
 *
 * failure.c
 *	  Why a backend has no sort in the service, or no more of it.
 *
 * Whoever fails fills a GpuSortFailure of its caller's, and PostgreSQL's own sort is what most
 * come to.  Not so where a run of a sort larger than memory was not written, or is not what was
 * written: a sort of PostgreSQL's would fare no better, or the machine is not to be
 * trusted.  That is an error of the query at once, in whatever process hears of it.
 *
 *-------------------------------------------------------------------------
 */
#include "client/failure.h"

#include <stdarg.h>

/* Fills *failure; returns false, for the caller to return. */
bool
gpusort_failure_set(GpuSortFailure *failure, int reason, const char *format, ...)
{
	va_list args;

	failure->reason = reason;
	va_start(args, format);
	vsnprintf(failure->text, sizeof(failure->text), format, args);
	va_end(args);
	return false;
}

/* Fills *failure with the service's own words, whatever it put behind the end of them, and a reason that there is. */
void
gpusort_failure_copy(GpuSortFailure *failure, const GpuSortMessage *message)
{
	failure->reason = message->u.failure.reason;
	if (failure->reason <= GPUSORT_REASON_NONE || failure->reason > GPUSORT_REASON_INTERNAL)
		failure->reason = GPUSORT_REASON_INTERNAL;
	memcpy(failure->text, message->u.failure.text, sizeof(failure->text));
	failure->text[sizeof(failure->text) - 1] = '\0';
}

/* Ends the query: a run could not be written or read, for this errno, or if that is 0 is damaged. */
pg_noreturn static void
report_storage(const char *text, int system_error)
{
	if (system_error == 0)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("a sorted run was not read back as it was written: %s", text),
				 errhint("Run the query again. If it recurs, test the disk and the memory.")));
	errno = system_error;
	ereport(ERROR,
			(errcode_for_file_access(),
			 strstr(text, strerror(system_error)) != NULL ? errmsg("gpusort: %s", text) : errmsg("gpusort: %s: %m", text),
			 system_error != ENOSPC ? 0 : errhint("Check free disk space.")));
}

/*
 * Fills *failure for a message that is not legal where it came;
 * returns false.  Errors: it tells of a run that is lost.
 */
bool
gpusort_failure_unexpected(GpuSortFailure *failure, const GpuSortMessage *message)
{
	if (message->type != GPUSORT_MSG_FAILED && message->type != GPUSORT_MSG_REFUSED)
		return gpusort_failure_set(failure, GPUSORT_REASON_INTERNAL,
								   "unexpected message %d from the sort service", message->type);
	gpusort_failure_copy(failure, message);
	if (failure->reason == GPUSORT_REASON_STORAGE)
		report_storage(failure->text, message->u.failure.system_error);
	return false;
}
