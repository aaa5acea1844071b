/*-------------------------------------------------------------------------
 *
 * settings.c
 *	  Settings of the extension.
 *
 *-------------------------------------------------------------------------
 */
#include "settings.h"

#include <limits.h>

#include "service/protocol.h"
#include "utils/guc.h"

bool gpusort_enable = true;
bool gpusort_force = false;
bool gpusort_verify_rows = false;
bool gpusort_verify_collation = true;
bool gpusort_parallel_output = true;
bool gpusort_spill = true;
bool gpusort_allowed = true;
bool gpusort_log_decisions = false;
int gpusort_engine = GPUSORT_ENGINE_AUTO;
int gpusort_min_rows = 2000;
double gpusort_setup_cost = 80.0;
double gpusort_row_cost = 0.03;

char *gpusort_devices = NULL;
int gpusort_device_memory = 0;
int gpusort_host_memory = 0;
int gpusort_host_threads = 0;
int gpusort_staging_memory = 256;

static const struct config_enum_entry engine_options[] = {
	{"auto", GPUSORT_ENGINE_AUTO, false},
	{"cuda", GPUSORT_ENGINE_CUDA, false},
	{"host", GPUSORT_ENGINE_HOST, false},
	{NULL, 0, false},
};

#define MAX_DEVICES   64
#define MAX_MEMORY_MB (INT_MAX / 2)
#define MIN_MEMORY_MB ((int) (GPUSORT_MEMORY_MIN >> 20))

/* A check hook: accepts "all", or distinct ordinals separated by commas. */
static bool
check_devices(char **value, void **extra, GucSource source)
{
	const char *rest = *value;
	uint64 seen = 0;

	if (strcmp(rest, "all") == 0)
		return true;
	for (;;)
	{
		char *end;
		long ordinal;

		if (*rest < '0' || *rest > '9')
			break;
		ordinal = strtol(rest, &end, 10);
		if (ordinal >= MAX_DEVICES || (seen & (UINT64CONST(1) << ordinal)))
			break;
		seen |= UINT64CONST(1) << ordinal;
		if (*end == '\0')
			return true;
		if (*end != ',')
			break;
		rest = end + 1;
	}
	GUC_check_errdetail("Device ordinals from 0 to %d, separated by commas without spaces, or \"all\".",
						MAX_DEVICES - 1);
	return false;
}

/* A check hook: accepts 0, or what one sort at least can be done with. */
static bool
check_host_memory(int *value, void **extra, GucSource source)
{
	if (*value == 0 || *value >= MIN_MEMORY_MB)
		return true;
	GUC_check_errdetail("Sorts of the host engine have %d MB at least.", MIN_MEMORY_MB);
	GUC_check_errhint("With 0 it is a quarter of the memory that the server may use.");
	return false;
}

/* To be called once, at load: makes the settings known to the server. */
void
gpusort_settings_init(void)
{
	DefineCustomBoolVariable("gpusort.enable",
							 "Lets the planner use GpuSort.",
							 NULL,
							 &gpusort_enable, true, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomEnumVariable("gpusort.engine",
							 "What sorts: a CUDA device, the host's cores, or the first of the two that is there.",
							 NULL,
							 &gpusort_engine, GPUSORT_ENGINE_AUTO, engine_options, PGC_USERSET, 0,
							 NULL, NULL, NULL);
	DefineCustomBoolVariable("gpusort.force",
							 "Uses GpuSort wherever it is legal, whatever the cost.",
							 NULL,
							 &gpusort_force, false, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("gpusort.min_rows",
							"Sorts of fewer estimated rows stay with PostgreSQL.",
							NULL,
							&gpusort_min_rows, 2000, 0, INT_MAX, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomRealVariable("gpusort.setup_cost",
							 "The planner's estimate of what a GpuSort costs before its first row.",
							 NULL,
							 &gpusort_setup_cost, 80.0, 0, 1e10, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomRealVariable("gpusort.row_cost",
							 "The planner's estimate of what a GpuSort costs per row.",
							 NULL,
							 &gpusort_row_cost, 0.03, 0, 1e10, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("gpusort.log_decisions",
							 "Logs why a sort stays with PostgreSQL.",
							 NULL,
							 &gpusort_log_decisions, false, PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("gpusort.verify_rows",
							 "Verifies each row that comes back from the sort service, and that none is missing.",
							 NULL,
							 &gpusort_verify_rows, false, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("gpusort.verify_collation",
							 "Verifies with the C library that rows sorted under one of its collations are in order.",
							 NULL,
							 &gpusort_verify_collation, true, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("gpusort.parallel_output",
							 "Runs windows, groups, DISTINCT and joins above a GpuSort in all processes of a parallel plan.",
							 NULL,
							 &gpusort_parallel_output, true, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("gpusort.spill",
							 "Keeps what does not fit the memory for sorts in sorted runs, in memory and in temporary files.",
							 "Without it PostgreSQL does sorts that do not fit.",
							 &gpusort_spill, true, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("gpusort.allowed",
							 "Lets users have their sorts done by gpusort.",
							 "What gpusort.enable is to a user this is to an administrator.",
							 &gpusort_allowed, true, PGC_SUSET, 0, NULL, NULL, NULL);

	DefineCustomStringVariable("gpusort.devices",
							   "The CUDA devices to use: \"all\", or their ordinals separated by commas.",
							   NULL,
							   &gpusort_devices, "all", PGC_SIGHUP, 0, check_devices, NULL, NULL);
	DefineCustomIntVariable("gpusort.device_memory",
							"The memory that sorts may use on each CUDA device.",
							"0 is 90 % of what is free when the service starts.",
							&gpusort_device_memory, 0, 0, MAX_MEMORY_MB, PGC_SIGHUP, GUC_UNIT_MB,
							NULL, NULL, NULL);
	DefineCustomIntVariable("gpusort.host_memory",
							"The memory that sorts of the host engine may use.",
							"0 is a quarter of the memory that the server may use.",
							&gpusort_host_memory, 0, 0, MAX_MEMORY_MB, PGC_SIGHUP, GUC_UNIT_MB,
							check_host_memory, NULL, NULL);
	DefineCustomIntVariable("gpusort.host_threads",
							"The threads that the host engine sorts with.",
							"0 is as many as the server may use processors.",
							&gpusort_host_threads, 0, 0, 1024, PGC_SIGHUP, 0,
							NULL, NULL, NULL);
	DefineCustomIntVariable("gpusort.staging_memory",
							"The memory through which rows travel between backends and the sort service.",
							NULL,
							&gpusort_staging_memory, 256, 16, 65536, PGC_SIGHUP, GUC_UNIT_MB,
							NULL, NULL, NULL);
	MarkGUCPrefixReserved("gpusort");
}
