/*-------------------------------------------------------------------------
 *
 * reasons.c
 *	  The names of the reasons why a sort was left to PostgreSQL.
 *
 *-------------------------------------------------------------------------
 */
#include "server/reasons.h"

/* Indexed by GpuSortReason and the client's own; also the keys of gpusort_stats.fallback_reasons. */
static const char *const reason_names[GPUSORT_REASONS] = {
	[GPUSORT_REASON_NONE] = "none",
	[GPUSORT_REASON_NO_ENGINE] = "no engine",
	[GPUSORT_REASON_MEMORY_LIMIT] = "memory limit",
	[GPUSORT_REASON_MEMORY_BUSY] = "memory in use",
	[GPUSORT_REASON_NO_MEMORY] = "out of memory",
	[GPUSORT_REASON_POOL] = "staging pool",
	[GPUSORT_REASON_TOO_MANY_ROWS] = "too many rows",
	[GPUSORT_REASON_DRAINING] = "service restarting",
	[GPUSORT_REASON_BUILD] = "another build",
	[GPUSORT_REASON_DEVICE] = "device error",
	[GPUSORT_REASON_ORDER_CHECK] = "order check",
	[GPUSORT_REASON_BAD_CHUNK] = "bad chunk",
	[GPUSORT_REASON_STORAGE] = "run storage",
	[GPUSORT_REASON_INTERNAL] = "internal",
	[GPUSORT_REASON_UNAVAILABLE] = "service unavailable",
	[GPUSORT_REASON_LOST] = "service lost",
	[GPUSORT_REASON_RECHECK] = "row recheck",
	[GPUSORT_REASON_FEW_ROWS] = "few rows",
	[GPUSORT_REASON_NOT_ALLOWED] = "not allowed",
	[GPUSORT_REASON_VERIFY] = "verification",
	[GPUSORT_REASON_COLLATION] = "collation",
	[GPUSORT_REASON_TIES] = "ties",
};

/* Returns the name of a GpuSortReason, or of one of the client's own. */
const char *
gpusort_reason_name(int reason)
{
	return reason >= 0 && reason < GPUSORT_REASONS ? reason_names[reason] : "unknown";
}
