/*-------------------------------------------------------------------------
 *
 * constants.c
 *	  What the model of time rests on: one table, in nanoseconds.
 *
 * Each row: the value, and where another holds with a GPU, that.  They were read off runs whose latest figures are
 * in the files of bench/results that are named above them.  What depends on PostgreSQL's version is in compat.h:
 * NATIVE_SORT_TIME.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/model/constants.h"

typedef struct Constant
{
	double host;
	double cuda; /* 0: the same */
} Constant;

static const Constant constants[] = {
	/* costs.csv */
	[GPUSORT_TIME_SETUP] = {235e3, 363e3},
	[GPUSORT_TIME_FIRST_USE] = {940e3, 484e3},
	/* cluster.csv */
	[GPUSORT_TIME_REWRITE_ROW] = {350},
	[GPUSORT_TIME_REWRITE_BY_INDEX] = {50},
	[GPUSORT_TIME_REWRITE_SORTED_ROW] = {150},

	/* grid.csv */
	[GPUSORT_TIME_INGEST_ROW] = {44, 33},
	[GPUSORT_TIME_ORDER_ROW] = {13, 2.3},
	[GPUSORT_TIME_EMIT_ROW] = {38, 24},
	/* collation.csv */
	[GPUSORT_TIME_VERIFY_ROW] = {75},
	/* costs.csv */
	[GPUSORT_TIME_ROW_BYTE] = {0.088, 0.045},
	/* any-size.csv */
	[GPUSORT_TIME_MEMORY_RUN] = {0, 9},
	/* any-size.csv */
	[GPUSORT_TIME_DISK_PAGE] = {10.3e3, 5.3e3},
	/* brin.csv */
	[GPUSORT_TIME_SUMMARY] = {1200},

	/* costs.csv */
	[GPUSORT_TIME_COMPARISON] = {25},
	/* strings.csv */
	[GPUSORT_TIME_STRING] = {2},
	/* icu.csv */
	[GPUSORT_TIME_STRING_ICU] = {2.6},
	/* collation.csv */
	[GPUSORT_TIME_STRING_LIBC] = {6},
	/* keys.csv */
	[GPUSORT_TIME_PARTS] = {4},
	/* keys.csv */
	[GPUSORT_TIME_ABBREVIATION] = {1.6},
	/* costs.csv */
	[GPUSORT_TIME_IN_ORDER] = {0.33},
	[GPUSORT_TIME_SORT_PAGE] = {8750},
	[GPUSORT_TIME_HEAP_ROW] = {22},
	[GPUSORT_TIME_HEAP_LEVEL] = {30},
	[GPUSORT_TIME_SORT_EMIT_ROW] = {12.5},

	/* grid.csv */
	[GPUSORT_TIME_GATHER] = {5e6},
	[GPUSORT_TIME_WORKER] = {500e3},
	[GPUSORT_TIME_GATHER_ROW] = {80},
	[GPUSORT_TIME_MERGE_ROW] = {175},
	[GPUSORT_TIME_RANGES] = {280e3},
	[GPUSORT_TIME_EXCHANGE_ROW] = {20},
	/* statements.csv, and what single values take */
	[GPUSORT_TIME_OUTPUT_ROW] = {140},
	[GPUSORT_TIME_OUTPUT_VALUE] = {60},

	/* grid.csv */
	[GPUSORT_TIME_HASH_ROW] = {55},
	[GPUSORT_TIME_HASH_GROUP] = {250},
	[GPUSORT_TIME_HASH_BYTE] = {0.7},
	[GPUSORT_TIME_HASH_SPILL_ROW] = {300},
	[GPUSORT_TIME_BUILD_ROW] = {150},
	[GPUSORT_TIME_BUILD_BYTE] = {0.6},
	[GPUSORT_TIME_PROBE_ROW] = {90},
	[GPUSORT_TIME_CACHE_DOUBLING] = {25},
	[GPUSORT_TIME_CACHE_MISS] = {300},

	/* grid.csv */
	[GPUSORT_TIME_TRANSITION] = {15},
	[GPUSORT_TIME_TRANSITION_STATE] = {45},
	[GPUSORT_TIME_TRANSITION_SORT] = {300},
	[GPUSORT_TIME_SORTED_ROW] = {30},
	[GPUSORT_TIME_SORTED_GROUP] = {60},
	[GPUSORT_TIME_UNIQUE_ROW] = {45},
	[GPUSORT_TIME_MERGE_JOIN_ROW] = {60},
	[GPUSORT_TIME_JOINED_ROW] = {40},
	[GPUSORT_TIME_WINDOW_ROW] = {300},
	[GPUSORT_TIME_NUMBERED_ROW] = {75},
	/* above-windows.csv */
	[GPUSORT_TIME_RUNNING_ROW] = {100},
	/* grid.csv */
	[GPUSORT_TIME_MERGED_ROW] = {20},

	/* scale-out.csv */
	[GPUSORT_TIME_FETCHED_ROW] = {200},
	[GPUSORT_TIME_FETCHED_BYTE] = {1.6},
	[GPUSORT_TIME_SENT_ROW] = {300},
	[GPUSORT_TIME_SENT_SORTED_ROW] = {170},
	/* with TLS and a password */
	[GPUSORT_TIME_CONNECTION] = {10e6},

	/* builds.csv */
	[GPUSORT_TIME_FORM_ROW] = {500},
	[GPUSORT_TIME_LOAD_ROW] = {200},
	[GPUSORT_TIME_LOAD_SORTED_ROW] = {450},

	/* grid.csv */
	[GPUSORT_TIME_SORT_GAIN] = {300e3},
	[GPUSORT_TIME_TOP_GAIN] = {30e3},
	[GPUSORT_TIME_GAIN] = {3e6},
	[GPUSORT_TIME_COST] = {2000},
};

StaticAssertDecl(lengthof(constants) == GPUSORT_TIME_Count, "each constant has its row");

/* Returns a constant, in nanoseconds or as a factor, where a GPU sorts or the host engine. */
double
gpusort_constant(GpuSortConstant constant, bool cuda)
{
	return cuda && constants[constant].cuda > 0 ? constants[constant].cuda : constants[constant].host;
}
