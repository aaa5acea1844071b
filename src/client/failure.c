/*-------------------------------------------------------------------------
 *
 * failure.c
 *	  Why a backend has no sort in the service, or no more of it.
 *
 * Whoever fails fills a GpuSortFailure of its caller's; nothing here raises an
 * error.
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

/* Fills *failure for a message that is not legal where it came; returns false. */
bool
gpusort_failure_unexpected(GpuSortFailure *failure, const GpuSortMessage *message)
{
	if (message->type != GPUSORT_MSG_FAILED && message->type != GPUSORT_MSG_REFUSED)
		return gpusort_failure_set(failure, GPUSORT_REASON_INTERNAL,
								   "unexpected message %d from the sort service", message->type);
	gpusort_failure_copy(failure, message);
	return false;
}
