/*-------------------------------------------------------------------------
 *
 * reasons.h
 *	  Why a sort was left to PostgreSQL: the reasons, and their names.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_REASONS_H
#define GPUSORT_REASONS_H

#include "compat.h"

#include "service/protocol.h"

/* The client's own reasons, beside those of the protocol. */
#define GPUSORT_REASON_UNAVAILABLE (GPUSORT_REASON_INTERNAL + 1) /* no service to talk to */
#define GPUSORT_REASON_LOST        (GPUSORT_REASON_INTERNAL + 2) /* the service went away */
#define GPUSORT_REASON_RECHECK     (GPUSORT_REASON_INTERNAL + 3) /* EvalPlanQual's few rows */
#define GPUSORT_REASON_FEW_ROWS    (GPUSORT_REASON_INTERNAL + 4) /* not worth asking the service */
#define GPUSORT_REASON_NOT_ALLOWED (GPUSORT_REASON_INTERNAL + 5) /* gpusort.allowed was turned off since */
#define GPUSORT_REASON_VERIFY      (GPUSORT_REASON_INTERNAL + 6) /* what came back is not what was put */
#define GPUSORT_REASON_COLLATION   (GPUSORT_REASON_INTERNAL + 7) /* strings are not in the order of their keys */
#define GPUSORT_REASON_TIES        (GPUSORT_REASON_INTERNAL + 8) /* too many rows have equal keys */
#define GPUSORT_REASONS            (GPUSORT_REASON_INTERNAL + 9)

extern const char *gpusort_reason_name(int reason);

#endif /* GPUSORT_REASONS_H */
