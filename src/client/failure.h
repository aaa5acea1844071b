/*-------------------------------------------------------------------------
 *
 * failure.h
 *	  Why a backend has no sort in the service, or no more of it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_FAILURE_H
#define GPUSORT_FAILURE_H

#include "compat.h"

#include "service/protocol.h"

/* Why there is no sort, or no more of it: the protocol's GpuSortError, or the backend's own. */
typedef struct GpuSortFailure
{
	int reason; /* GpuSortReason or one of shared.h's own; NONE: all is well */
	char text[GPUSORT_TEXT_BYTES];
} GpuSortFailure;

extern bool gpusort_failure_set(GpuSortFailure *failure, int reason, const char *format, ...) pg_attribute_printf(3, 4);
extern void gpusort_failure_copy(GpuSortFailure *failure, const GpuSortMessage *message);
extern bool gpusort_failure_unexpected(GpuSortFailure *failure, const GpuSortMessage *message);

#endif /* GPUSORT_FAILURE_H */
