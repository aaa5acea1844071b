/*-------------------------------------------------------------------------
 *
 * constants.c
 *	  What the model of time rests on: one table, in nanoseconds.
 *
 * Each row: the value with the host engine and with a GPU, how far off each may be (a part of it: 0.1 is
 * ten percent; 0: the grid says nothing of it), and where the times are, a CSV in bench/results.
 *
 * bench/costs fit writes values, errors and sources: it asks gpusort_model_times() how the model's time of each plan
 * that was timed depends on each constant, and changes those by which all come closest (least squares of logarithms).
 *
 * What depends on PostgreSQL's version is in compat.h: NATIVE_SORT_TIME.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/model/constants.h"

typedef struct Constant
{
	const char *name;
	double host;
	double cuda;
	double host_error;
	double cuda_error;
	const char *source;
} Constant;

/* By how much gpusort_model_times() raises a constant. */
#define RAISED 1.05

#define COSTS "2026-11-21-costs-*.csv"
#define GRID  "2026-11-24-grid-host-2-cores.csv, 2026-11-25-grid-h200-16-cores.csv"
#define INDEX "2026-11-25-index-builds-host-2-cores.csv"

static const Constant constants[] = {
	[GPUSORT_TIME_SETUP] = {"setup", 235e3, 363e3, 0, 0.5, COSTS},
	[GPUSORT_TIME_FIRST_USE] = {"first_use", 940e3, 484e3, 0, 0, COSTS},
	[GPUSORT_TIME_INGEST_ROW] = {"ingest_row", 44, 33, 0.36, 0.5, GRID},
	[GPUSORT_TIME_ORDER_ROW] = {"order_row", 13, 2.3, 0, 0, GRID},
	[GPUSORT_TIME_EMIT_ROW] = {"emit_row", 38, 24, 0.5, 0.5, GRID},
	[GPUSORT_TIME_VERIFY_ROW] = {"verify_row", 75, 75, 0, 0, "2026-11-23-collation-host-2-cores.csv"},
	[GPUSORT_TIME_ROW_BYTE] = {"row_byte", 0.088, 0.045, 0, 0, COSTS},
	[GPUSORT_TIME_MEMORY_RUN] = {"memory_run", 0, 9, 0, 0, "2026-11-23-any-size-h100-16-cores.csv"},
	[GPUSORT_TIME_DISK_PAGE] = {"disk_page", 10.3e3, 5.3e3, 0, 0, "2026-11-23-any-size-files-h100-16-cores.csv"},

	[GPUSORT_TIME_COMPARISON] = {"comparison", 25, 25, 0.034, 0.034, COSTS},
	[GPUSORT_TIME_STRING] = {"string", 2, 2, 0.18, 0.18, "2026-11-21-strings-2-cores.csv"},
	[GPUSORT_TIME_STRING_ICU] = {"string_icu", 2.6, 2.6, 0, 0, "2026-11-21-icu-host-2-cores.csv"},
	[GPUSORT_TIME_STRING_LIBC] = {"string_libc", 6, 6, 0, 0, "2026-11-23-collation-host-2-cores.csv"},
	[GPUSORT_TIME_PARTS] = {"parts", 4, 4, 0, 0, "2026-11-25-nested-host-2-cores.csv"},
	[GPUSORT_TIME_ABBREVIATION] = {"abbreviation", 1.6, 1.6, 0, 0, "2026-11-25-keys-host-2-cores.csv"},
	[GPUSORT_TIME_IN_ORDER] = {"in_order", 0.33, 0.33, 0, 0, COSTS},
	[GPUSORT_TIME_SORT_PAGE] = {"sort_page", 8750, 8750, 0.5, 0.5, COSTS},
	[GPUSORT_TIME_HEAP_ROW] = {"heap_row", 22, 22, 0.34, 0.34, COSTS},
	[GPUSORT_TIME_HEAP_LEVEL] = {"heap_level", 30, 30, 0.21, 0.21, COSTS},
	[GPUSORT_TIME_SORT_EMIT_ROW] = {"sort_emit_row", 12.5, 12.5, 0, 0, COSTS},

	[GPUSORT_TIME_GATHER] = {"gather", 5e6, 5e6, 0.5, 0.5, GRID},
	[GPUSORT_TIME_WORKER] = {"worker", 500e3, 500e3, 0, 0, GRID},
	[GPUSORT_TIME_GATHER_ROW] = {"gather_row", 80, 80, 0.5, 0.5, GRID},
	[GPUSORT_TIME_MERGE_ROW] = {"merge_row", 175, 175, 0.5, 0.5, GRID},
	[GPUSORT_TIME_RANGES] = {"ranges", 280e3, 280e3, 0, 0, GRID},
	[GPUSORT_TIME_EXCHANGE_ROW] = {"exchange_row", 20, 20, 0, 0, GRID},
	[GPUSORT_TIME_EXCHANGE_PUT] = {"exchange_put", 60, 60, 0, 0, GRID},

	[GPUSORT_TIME_HASH_ROW] = {"hash_row", 55, 55, 0.5, 0.5, GRID},
	[GPUSORT_TIME_HASH_GROUP] = {"hash_group", 250, 250, 0.47, 0.47, GRID},
	[GPUSORT_TIME_HASH_GROUP_BYTE] = {"hash_group_byte", 0.7, 0.7, 0.5, 0.5, GRID},
	[GPUSORT_TIME_HASH_SPILL_ROW] = {"hash_spill_row", 300, 300, 0.5, 0.5, GRID},
	[GPUSORT_TIME_HASH_SPILL_BYTE] = {"hash_spill_byte", 0.7, 0.7, 0, 0, GRID},
	[GPUSORT_TIME_BUILD_ROW] = {"build_row", 150, 150, 0.41, 0.41, GRID},
	[GPUSORT_TIME_BUILD_BYTE] = {"build_byte", 0.6, 0.6, 0, 0, GRID},
	[GPUSORT_TIME_PROBE_ROW] = {"probe_row", 90, 90, 0.5, 0.5, GRID},
	[GPUSORT_TIME_CACHE_DOUBLING] = {"cache_doubling", 25, 25, 0.5, 0.5, GRID},
	[GPUSORT_TIME_CACHE_MISS] = {"cache_miss", 300, 300, 0, 0, GRID},

	[GPUSORT_TIME_TRANSITION] = {"transition", 15, 15, 0.35, 0.35, GRID},
	[GPUSORT_TIME_TRANSITION_STATE] = {"transition_state", 45, 45, 0.21, 0.21, GRID},
	[GPUSORT_TIME_TRANSITION_SORT] = {"transition_sort", 300, 300, 0, 0, GRID},
	[GPUSORT_TIME_GROUP] = {"group", 15, 15, 0, 0, GRID},
	[GPUSORT_TIME_GROUP_STATE] = {"group_state", 90, 90, 0.5, 0.5, GRID},
	[GPUSORT_TIME_SORTED_ROW] = {"sorted_row", 30, 30, 0.5, 0.5, GRID},
	[GPUSORT_TIME_SORTED_GROUP] = {"sorted_group", 60, 60, 0.5, 0.5, GRID},
	[GPUSORT_TIME_UNIQUE_ROW] = {"unique_row", 45, 45, 0.5, 0.5, GRID},
	[GPUSORT_TIME_SETOP_ROW] = {"setop_row", 60, 60, 0, 0, GRID},
	[GPUSORT_TIME_MERGE_JOIN_ROW] = {"merge_join_row", 60, 60, 0.5, 0.5, GRID},
	[GPUSORT_TIME_JOINED_ROW] = {"joined_row", 40, 40, 0, 0, GRID},
	[GPUSORT_TIME_WINDOW_ROW] = {"window_row", 300, 300, 0.35, 0.35, GRID},
	[GPUSORT_TIME_NUMBERED_ROW] = {"numbered_row", 75, 75, 0, 0, GRID},
	[GPUSORT_TIME_RUNNING_ROW] = {"running_row", 100, 100, 0, 0, "2026-11-26-windows-host-2-cores.csv"},
	[GPUSORT_TIME_APPEND_ROW] = {"append_row", 5, 5, 0, 0, GRID},
	[GPUSORT_TIME_MERGED_ROW] = {"merged_row", 20, 20, 0, 0, GRID},

	[GPUSORT_TIME_FETCHED_ROW] = {"fetched_row", 200, 200, 0, 0, "2026-11-24-scale-out-h100-16-cores.csv"},
	[GPUSORT_TIME_FETCHED_BYTE] = {"fetched_byte", 1.6, 1.6, 0, 0, "2026-11-24-scale-out-h100-16-cores.csv"},
	[GPUSORT_TIME_SENT_ROW] = {"sent_row", 300, 300, 0, 0, "2026-11-24-scale-out-h100-16-cores.csv"},
	[GPUSORT_TIME_SENT_SORTED_ROW] = {"sent_sorted_row", 170, 170, 0, 0, "2026-11-24-scale-out-h100-16-cores.csv"},

	[GPUSORT_TIME_FORM_ROW] = {"form_row", 500, 500, 0, 0, INDEX},
	[GPUSORT_TIME_LOAD_ROW] = {"load_row", 200, 200, 0, 0, INDEX},
	[GPUSORT_TIME_LOAD_SORTED_ROW] = {"load_sorted_row", 450, 450, 0, 0, INDEX},

	[GPUSORT_TIME_SORT_GAIN] = {"sort_gain", 300e3, 300e3, 0, 0, GRID},
	[GPUSORT_TIME_GAIN] = {"gain", 3e6, 3e6, 0, 0, GRID},
	[GPUSORT_TIME_COST] = {"cost", 2000, 2000, 0.039, 0.039, GRID},
};

StaticAssertDecl(lengthof(constants) == GPUSORT_TIME_Count, "each constant has its row");

static GpuSortConstant raised = GPUSORT_TIME_Count; /* or none */

/* Returns a constant, in nanoseconds or as a factor, where a GPU sorts or the host engine. */
double
gpusort_constant(GpuSortConstant constant, bool cuda)
{
	const double value = cuda ? constants[constant].cuda : constants[constant].host;

	return unlikely(constant == raised) ? value * RAISED : value;
}

const char *
gpusort_constant_name(GpuSortConstant constant)
{
	return constants[constant].name;
}

/* Has a constant be higher, by RAISED, until another is; GPUSORT_TIME_Count: none. */
void
gpusort_constant_raise(GpuSortConstant constant)
{
	raised = constant;
}
