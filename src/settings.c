/*-------------------------------------------------------------------------
 *
 * settings.c
 *	  Settings of the extension.
 *
 *-------------------------------------------------------------------------
 */
#include "settings.h"

#include <limits.h>
#include <unistd.h>

#include "access/parallel.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "server/service_state.h"
#include "service/protocol.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/plancache.h"

bool gpusort_enable = true;
bool gpusort_force = false;
bool gpusort_verify_rows = false;
bool gpusort_verify_collation = true;
bool gpusort_parallel_output = true;
bool gpusort_parallel_cursors = true;
bool gpusort_spill = true;
bool gpusort_index_builds = true;
bool gpusort_page_scan = true;
bool gpusort_allowed = true;
bool gpusort_log_decisions = false;
int gpusort_engine = GPUSORT_ENGINE_AUTO;
int gpusort_min_rows = 2000;
int gpusort_shard_connections = 0;
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

#define MAX_DEVICES           64
#define MAX_MEMORY_MB         1073741823
#define MIN_HOST_MEMORY_MB    16
#define MAX_THREADS           1024
#define MIN_STAGING_MEMORY_MB 16
#define MAX_STAGING_MEMORY_MB 65536

#define NUMBER_TEXT(number) CppAsString2(number)

StaticAssertDecl(MAX_MEMORY_MB == INT_MAX / 2, "limits are those of an int, in kB");
StaticAssertDecl(MIN_HOST_MEMORY_MB == GPUSORT_MEMORY_MIN >> 20, "the service has its own limit");

static const char *
skip_blanks(const char *text)
{
	while (*text == ' ' || *text == '\t')
		text++;
	return text;
}

/* A check hook: accepts "all", "none", or distinct ordinals separated by commas, with blanks or without. */
static bool
check_devices(char **value, void **extra, GucSource source)
{
	const char *rest = *value;
	uint64 seen = 0;

	if (strcmp(rest, "all") == 0 || strcmp(rest, "none") == 0)
		return true;
	for (;;)
	{
		char *end;
		long ordinal;

		rest = skip_blanks(rest);
		if (*rest < '0' || *rest > '9')
			break;
		ordinal = strtol(rest, &end, 10);
		if (ordinal >= MAX_DEVICES)
			break;
		if (seen & (UINT64CONST(1) << ordinal))
		{
			GUC_check_errdetail("Device %ld is listed twice.", ordinal);
			return false;
		}
		seen |= UINT64CONST(1) << ordinal;
		rest = skip_blanks(end);
		if (*rest == '\0')
			return true;
		if (*rest != ',')
			break;
		rest++;
	}
	GUC_check_errdetail("Valid values are \"all\", \"none\", or device numbers from 0 to %d, separated by commas.",
						MAX_DEVICES - 1);
	return false;
}

/* Returns true if a user's statement gives the value that a check hook looks at: SET, ALTER ROLE, ALTER SYSTEM. */
static bool
is_users(GucSource source)
{
	return (source == PGC_S_SESSION || source == PGC_S_TEST || source == PGC_S_FILE) && IsNormalProcessingMode() &&
		IsTransactionState() && !IsParallelWorker() && debug_query_string != NULL;
}

/*
 * A check hook: accepts 0, or what one sort at least can be done with.  More than the machine has is accepted, too, for
 * it may have more tomorrow: the log tells at the start and with each reload, and who sets it is told.
 */
static bool
check_host_memory(int *value, void **extra, GucSource source)
{
	const int64 machine_mb = (int64) sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) >> 20;

	if (*value != 0 && *value < MIN_HOST_MEMORY_MB)
	{
		GUC_check_errdetail("The minimum is %d MB.", MIN_HOST_MEMORY_MB);
		GUC_check_errhint("0 means a quarter of the memory that the server may use.");
		return false;
	}
	if (*value > machine_mb && (!IsUnderPostmaster || is_users(source)))
		ereport(IsUnderPostmaster ? NOTICE : WARNING,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("gpusort.host_memory (%d MB) exceeds the machine's memory (" INT64_FORMAT " MB)", *value,
						machine_mb),
				 errhint("Sorts could exhaust the machine's memory. 0 means a quarter of the memory that "
						 "the server may use.")));
	return true;
}

/* A check hook: accepts all, and tells who sets what no sort can be done with now. */
static bool
check_engine(int *value, void **extra, GucSource source)
{
	GpuSortService service;

	if (*value != GPUSORT_ENGINE_CUDA || !is_users(source))
		return true;
	service = gpusort_shared_service();
	if (service.state == GPUSORT_SERVICE_READY && (service.engines & (1 << GPUSORT_ENGINE_CUDA)) == 0)
		ereport(NOTICE,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("gpusort.engine is cuda, but the service has no CUDA device; PostgreSQL sorts"),
				 errhint("With \"auto\" the CPU cores sort if there is no device.")));
	return true;
}

/*
 * Assign hooks of the settings by which statements are planned.  Plans that are cached, of prepared statements and
 * functions, are planned again when such a setting changes, also when a transaction's end takes the change back.
 */
#define PLANNER_SETTING(name, type)                    \
	static void assign_##name(type value, void *extra) \
	{                                                  \
		if (value != gpusort_##name)                   \
			ResetPlanCache();                          \
	}

PLANNER_SETTING(enable, bool)
PLANNER_SETTING(allowed, bool)
PLANNER_SETTING(force, bool)
PLANNER_SETTING(verify_collation, bool)
PLANNER_SETTING(parallel_output, bool)
PLANNER_SETTING(parallel_cursors, bool)
PLANNER_SETTING(spill, bool)
PLANNER_SETTING(engine, int)
PLANNER_SETTING(min_rows, int)
PLANNER_SETTING(shard_connections, int)
PLANNER_SETTING(setup_cost, double)
PLANNER_SETTING(row_cost, double)

/*
 * Settings that keep users or gpusort from something.  One that was given before the module was there
 * and is not legal must not leave them with their defaults, which keep nobody from anything.
 */
typedef struct Restriction
{
	const char *name;
	const char *strictest; /* the value that allows least; of a number the least that is a limit */
	const char *most;      /* of a number the highest, else NULL */
	int unit;              /* of a number: a flag of guc.h, or 0 */
	char *given;           /* before the setting was defined; NULL if it was not */
} Restriction;

static Restriction restrictions[] = {
	{.name = "gpusort.enable", .strictest = "off"},
	{.name = "gpusort.allowed", .strictest = "off"},
	{.name = "gpusort.spill", .strictest = "off"},
	{.name = "gpusort.verify_rows", .strictest = "on"},
	{.name = "gpusort.verify_collation", .strictest = "on"},
	{.name = "gpusort.engine", .strictest = "host"},
	{.name = "gpusort.devices", .strictest = "none"},
	{.name = "gpusort.device_memory", .strictest = "1", .most = NUMBER_TEXT(MAX_MEMORY_MB), .unit = GUC_UNIT_MB},
	{.name = "gpusort.host_memory",
	 .strictest = NUMBER_TEXT(MIN_HOST_MEMORY_MB),
	 .most = NUMBER_TEXT(MAX_MEMORY_MB),
	 .unit = GUC_UNIT_MB},
	{.name = "gpusort.host_threads", .strictest = "1", .most = NUMBER_TEXT(MAX_THREADS)},
	{.name = "gpusort.staging_memory",
	 .strictest = NUMBER_TEXT(MIN_STAGING_MEMORY_MB),
	 .most = NUMBER_TEXT(MAX_STAGING_MEMORY_MB),
	 .unit = GUC_UNIT_MB},
};

/* Keeps what was given for settings that are not defined yet. */
static void
note_given(void)
{
	for (int i = 0; i < lengthof(restrictions); i++)
	{
		const char *given = GetConfigOption(restrictions[i].name, true, false);

		restrictions[i].given = given == NULL ? NULL : pstrdup(given);
	}
}

/* Returns the legal value for one that is not: of a number the nearest that is a limit, else the strictest. */
static const char *
legal_value(const Restriction *restriction)
{
	double number;

	if (restriction->most != NULL && parse_real(restriction->given, &number, restriction->unit, NULL) &&
		number > strtod(restriction->most, NULL))
		return restriction->most;
	return restriction->strictest;
}

/* Returns true if a number is positive and would be rounded to 0, which is no limit. */
static bool
is_rounded_off(const Restriction *restriction)
{
	double number;

	return restriction->most != NULL && parse_real(restriction->given, &number, restriction->unit, NULL) && number > 0 &&
		number < 1;
}

/* Puts a value in the place of the default, which any legal one that was given or comes later replaces. */
static bool
put_value(const char *name, const char *value, GucSource source)
{
	return set_config_option(name, value, PGC_SIGHUP, source, GUC_ACTION_SET, true, WARNING, false) > 0;
}

/* Gives restrictions a legal value that were given one that is not: PostgreSQL has warned and taken the default. */
static void
replace_refused(void)
{
	for (int i = 0; i < lengthof(restrictions); i++)
	{
		const Restriction *restriction = &restrictions[i];
		const char *name = restriction->name;

		if (restriction->given == NULL)
			continue;
		if (is_rounded_off(restriction))
		{
			/* it has been taken, from the file or the command line */
			if (!put_value(name, restriction->strictest, PGC_S_FILE))
				(void) put_value(name, restriction->strictest, PGC_S_ARGV);
		}
		/* not from a user: the postmaster has none to ask for, and assertions say so */
		else if (set_config_option(name, restriction->given, PGC_POSTMASTER, PGC_S_OVERRIDE, GUC_ACTION_SET, false,
								   DEBUG5, false) == 0)
			(void) put_value(name, legal_value(restriction), PGC_S_DYNAMIC_DEFAULT);
		else
			continue;
		ereport(WARNING,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s is set to \"%s\" instead of \"%s\"", name, GetConfigOptionByName(name, NULL, false),
						restriction->given),
				 errdetail("The configured value is invalid; the strictest valid value is used instead of the default.")));
	}
}

/* To be called once, at load: makes the settings known to the server. */
void
gpusort_settings_init(void)
{
	note_given();
	DefineCustomBoolVariable("gpusort.enable",
							 "Lets the planner use GpuSort.",
							 NULL,
							 &gpusort_enable, true, PGC_USERSET, GUC_EXPLAIN, NULL, assign_enable, NULL);
	DefineCustomEnumVariable("gpusort.engine",
							 "Chooses what sorts: a CUDA device, the CPU cores, or a CUDA device if there is one.",
							 NULL,
							 &gpusort_engine, GPUSORT_ENGINE_AUTO, engine_options, PGC_USERSET, GUC_EXPLAIN,
							 check_engine, assign_engine, NULL);
	DefineCustomBoolVariable("gpusort.force",
							 "Uses GpuSort wherever possible, whatever the cost.",
							 NULL,
							 &gpusort_force, false, PGC_USERSET, GUC_EXPLAIN, NULL, assign_force, NULL);
	DefineCustomIntVariable("gpusort.min_rows",
							"Sets the minimum estimated number of rows for a GpuSort.",
							NULL,
							&gpusort_min_rows, 2000, 0, INT_MAX, PGC_USERSET, GUC_EXPLAIN, NULL, assign_min_rows, NULL);
	DefineCustomIntVariable("gpusort.shard_connections",
							"Sets how many connections a Gather's processes may open to each server of postgres_fdw or Citus.",
							"All processes read by these. 0 means that one process does, by connections of postgres_fdw or Citus.",
							&gpusort_shard_connections, 0, 0, 1024, PGC_USERSET, GUC_EXPLAIN, NULL,
							assign_shard_connections, NULL);
	DefineCustomRealVariable("gpusort.setup_cost",
							 "Sets the planner's estimate of the cost of a GpuSort before its first row.",
							 NULL,
							 &gpusort_setup_cost, 80.0, 0, 1e10, PGC_USERSET, GUC_EXPLAIN, NULL, assign_setup_cost, NULL);
	DefineCustomRealVariable("gpusort.row_cost",
							 "Sets the planner's estimate of the cost of a GpuSort per row.",
							 NULL,
							 &gpusort_row_cost, 0.03, 0, 1e10, PGC_USERSET, GUC_EXPLAIN, NULL, assign_row_cost, NULL);
	DefineCustomBoolVariable("gpusort.log_decisions",
							 "Logs why a sort stays with PostgreSQL.",
							 NULL,
							 &gpusort_log_decisions, false, PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("gpusort.verify_rows",
							 "Verifies each row that comes back from the sort service, and that none is missing.",
							 NULL,
							 &gpusort_verify_rows, false, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("gpusort.verify_collation",
							 "Verifies with strcoll() that strings under collations of the C library are in order.",
							 NULL,
							 &gpusort_verify_collation, true, PGC_USERSET, GUC_EXPLAIN, NULL, assign_verify_collation, NULL);
	DefineCustomBoolVariable("gpusort.parallel_output",
							 "Runs windows, groups, DISTINCT and joins above a GpuSort in all processes of a parallel plan.",
							 "They also form the rows for a client or a file and write the pages of a new table.",
							 &gpusort_parallel_output, true, PGC_USERSET, GUC_EXPLAIN, NULL, assign_parallel_output, NULL);
	DefineCustomBoolVariable("gpusort.parallel_cursors",
							 "Lets parallel workers read the input of sorts for cursors and for INSERT ... SELECT.",
							 "Without gpusort PostgreSQL runs these in one process.",
							 &gpusort_parallel_cursors, true, PGC_USERSET, GUC_EXPLAIN, NULL, assign_parallel_cursors, NULL);
	DefineCustomBoolVariable("gpusort.spill",
							 "Lets sorts that do not fit their memory use runs, in memory and in temporary files.",
							 "If off, PostgreSQL does these sorts.",
							 &gpusort_spill, true, PGC_USERSET, GUC_EXPLAIN, NULL, assign_spill, NULL);
	DefineCustomBoolVariable("gpusort.index_builds",
							 "Lets gpusort build btree indexes and sort the rows of CLUSTER if that is faster.",
							 NULL,
							 &gpusort_index_builds, true, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("gpusort.page_scan",
							 "Reads the rows of sequential scans page by page.",
							 "For comparisons only.",
							 &gpusort_page_scan, true, PGC_USERSET, GUC_NOT_IN_SAMPLE, NULL, NULL, NULL);
	DefineCustomBoolVariable("gpusort.allowed",
							 "Lets users use gpusort.",
							 "Like gpusort.enable, but for administrators.",
							 &gpusort_allowed, true, PGC_SUSET, GUC_EXPLAIN, NULL, assign_allowed, NULL);

	DefineCustomStringVariable("gpusort.devices",
							   "Sets the CUDA devices to use: \"all\", \"none\", or device numbers separated by commas.",
							   NULL,
							   &gpusort_devices, "all", PGC_SIGHUP, 0, check_devices, NULL, NULL);
	DefineCustomIntVariable("gpusort.device_memory",
							"Sets the memory that sorts may use on each CUDA device.",
							"0 means 90 % of the memory that is free when the service starts.",
							&gpusort_device_memory, 0, 0, MAX_MEMORY_MB, PGC_SIGHUP, GUC_UNIT_MB | GUC_EXPLAIN,
							NULL, NULL, NULL);
	DefineCustomIntVariable("gpusort.host_memory",
							"Sets the memory that sorts on CPU cores may use.",
							"0 means a quarter of the memory that the server may use.",
							&gpusort_host_memory, 0, 0, MAX_MEMORY_MB, PGC_SIGHUP, GUC_UNIT_MB | GUC_EXPLAIN,
							check_host_memory, NULL, NULL);
	DefineCustomIntVariable("gpusort.host_threads",
							"Sets the number of threads that sort on CPU cores.",
							"0 means the number of processors that the server may use.",
							&gpusort_host_threads, 0, 0, MAX_THREADS, PGC_SIGHUP, 0,
							NULL, NULL, NULL);
	DefineCustomIntVariable("gpusort.staging_memory",
							"Sets the size of the memory through which backends and the sort service exchange rows.",
							NULL,
							&gpusort_staging_memory, 256, MIN_STAGING_MEMORY_MB, MAX_STAGING_MEMORY_MB, PGC_SIGHUP, GUC_UNIT_MB,
							NULL, NULL, NULL);
	MarkGUCPrefixReserved("gpusort");
	replace_refused();
}
