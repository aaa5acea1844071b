/*-------------------------------------------------------------------------
 *
 * views.c
 *	  The functions behind gpusort_devices, gpusort_service, gpusort_stats, gpusort_stats_database and gpusort_jobs.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "client/client.h"
#include "commands/dbcommands.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "server/jobs.h"
#include "server/reasons.h"
#include "server/service_state.h"
#include "server/shared.h"
#include "server/statistics.h"
#include "storage/procarray.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/json.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

/* PostgreSQL 15's PG_FUNCTION_INFO_V1 does not export the function itself. */
extern PGDLLEXPORT Datum gpusort_version(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum gpusort_show_devices(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum gpusort_show_service(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum gpusort_show_stats(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum gpusort_show_stats_database(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum gpusort_stats_reset(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum gpusort_show_jobs(PG_FUNCTION_ARGS);

PG_FUNCTION_INFO_V1(gpusort_version);
PG_FUNCTION_INFO_V1(gpusort_show_devices);
PG_FUNCTION_INFO_V1(gpusort_show_service);
PG_FUNCTION_INFO_V1(gpusort_show_stats);
PG_FUNCTION_INFO_V1(gpusort_show_stats_database);
PG_FUNCTION_INFO_V1(gpusort_stats_reset);
PG_FUNCTION_INFO_V1(gpusort_show_jobs);

/*
 * Rows are made of the columns that a function has in the extension that is installed, which may be
 * older than the module: what a version adds stands at the end.
 */
#define STATS_COLUMNS 21
#define JOBS_COLUMNS  15

/* The version of the module, whatever version of the SQL objects is installed. */
Datum
gpusort_version(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(cstring_to_text(GPUSORT_VERSION));
}

static const char *
engine_name(GpuSortEngineKind engine)
{
	return engine == GPUSORT_ENGINE_CUDA ? "cuda" : "host";
}

/* A GpuSortDeviceCallback: adds a row of gpusort_devices to arg, the result. */
static void
put_device(const GpuSortMessage *message, void *arg)
{
	ReturnSetInfo *result = arg;
	Datum values[8];
	bool nulls[8] = {0};

	values[0] = CStringGetTextDatum(engine_name(message->u.device.engine));
	values[1] = Int32GetDatum(message->u.device.state.ordinal);
	values[2] = CStringGetTextDatum(message->u.device.state.name);
	values[3] = CStringGetTextDatum(message->u.device.state.detail);
	values[4] = Int64GetDatum(message->u.device.state.memory_total);
	values[5] = Int64GetDatum(message->u.device.state.memory_limit);
	values[6] = Int64GetDatum(message->u.device.state.memory_used);
	values[7] = Int32GetDatum(message->u.device.state.jobs);
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

/* The devices that the service sorts on; none, with a warning, when there is no service. */
Datum
gpusort_show_devices(PG_FUNCTION_ARGS)
{
	GpuSortFailure failure;

	InitMaterializedSRF(fcinfo, 0);
	if (!gpusort_client_devices(put_device, fcinfo->resultinfo, &failure))
		ereport(WARNING,
				(errmsg("the sort service cannot be asked: %s", failure.text)));
	return (Datum) 0;
}

/* Errors: this session shares nothing, so there is nothing to be shown or reset. */
static void
require_shared(void)
{
	if (gpusort_shared_is_private())
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("gpusort has no shared memory"),
				 errhint("Add gpusort to shared_preload_libraries.")));
}

/* The row that a function is to return: its type. */
static TupleDesc
result_row(FunctionCallInfo fcinfo)
{
	TupleDesc desc;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	return BlessTupleDesc(desc);
}

/* Fills in a name, or NULL for what is there no more. */
static void
put_name(const char *name, Datum *value, bool *null)
{
	*null = name == NULL;
	if (name != NULL)
		*value = DirectFunctionCall1(namein, CStringGetDatum(name));
}

/* Returns the names of the engines in a mask, as text[]. */
static Datum
engine_names(uint32 engines)
{
	Datum names[2];
	int n = 0;

	for (int engine = GPUSORT_ENGINE_CUDA; engine <= GPUSORT_ENGINE_HOST; engine++)
	{
		if (engines & (1 << engine))
			names[n++] = CStringGetTextDatum(engine_name(engine));
	}
	return PointerGetDatum(construct_array(names, n, TEXTOID, -1, false, TYPALIGN_INT));
}

/* The row of gpusort_service. */
Datum
gpusort_show_service(PG_FUNCTION_ARGS)
{
	TupleDesc desc = result_row(fcinfo);
	GpuSortService service;
	Datum values[12];
	bool nulls[12] = {0};

	require_shared();
	service = gpusort_shared_service();
	values[0] = CStringGetTextDatum(gpusort_service_state_name(service.state));
	values[1] = TimestampTzGetDatum(service.since);
	nulls[1] = service.since == 0;
	values[2] = Int32GetDatum(service.pid);
	nulls[2] = service.pid == 0;
	values[3] = Int32GetDatum(service.supervisor_pid);
	nulls[3] = service.supervisor_pid == 0;
	values[4] = Int64GetDatum(service.generation);
	values[5] = Int32GetDatum(service.leaving);
	values[6] = TimestampTzGetDatum(service.started);
	nulls[6] = service.started == 0;
	values[7] = engine_names(service.engines);
	values[8] = Int32GetDatum(service.devices);
	values[9] = Int64GetDatum(service.device_limit);
	values[10] = Int64GetDatum(service.host_limit);
	nulls[11] = service.report[0] == '\0';
	values[11] = CStringGetTextDatum(service.report);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(desc, values, nulls)));
}

/* Returns the counts by reason that are not 0, as a jsonb object. */
static Datum
fallbacks_by_reason(const GpuSortStats *stats)
{
	StringInfoData json;

	initStringInfo(&json);
	appendStringInfoChar(&json, '{');
	for (int reason = 0; reason < GPUSORT_REASONS; reason++)
	{
		if (stats->fallbacks_by_reason[reason] == 0)
			continue;
		if (json.len > 1)
			appendStringInfoChar(&json, ',');
		escape_json(&json, gpusort_reason_name(reason));
		appendStringInfo(&json, ":" UINT64_FORMAT, stats->fallbacks_by_reason[reason]);
	}
	appendStringInfoChar(&json, '}');
	return DirectFunctionCall1(jsonb_in, CStringGetDatum(json.data));
}

/* Fills in the columns of gpusort_stats(). */
static void
stats_columns(const GpuSortStats *stats, TimestampTz reset, Datum values[STATS_COLUMNS])
{
	int i = 0;

	values[i++] = Int64GetDatum(stats->sorts);
	values[i++] = Int64GetDatum(stats->rows);
	values[i++] = Int64GetDatum(stats->bytes);
	values[i++] = Int64GetDatum(stats->runs);
	values[i++] = Int64GetDatum(stats->tie_rows);
	values[i++] = Float8GetDatum(stats->ms.ingest);
	values[i++] = Float8GetDatum(stats->ms.upload_wait);
	values[i++] = Float8GetDatum(stats->ms.sort);
	values[i++] = Float8GetDatum(stats->ms.gather);
	values[i++] = Float8GetDatum(stats->ms.emit);
	values[i++] = Float8GetDatum(stats->ms.ties);
	values[i++] = Int64GetDatum(stats->small_sorts);
	values[i++] = Int64GetDatum(stats->fallbacks);
	values[i++] = fallbacks_by_reason(stats);
	values[i++] = TimestampTzGetDatum(reset);
	values[i++] = Float8GetDatum(stats->ms.queue);
	values[i++] = Int64GetDatum(stats->temp_bytes);
	values[i++] = Int64GetDatum(stats->index_builds);
	values[i++] = Int64GetDatum(stats->declined_builds);
	values[i++] = Int64GetDatum(stats->formed_rows);
	values[i++] = Int64GetDatum(stats->formed_bytes);
	Assert(i == STATS_COLUMNS);
}

/* The row of gpusort_stats(). */
Datum
gpusort_show_stats(PG_FUNCTION_ARGS)
{
	TupleDesc desc = result_row(fcinfo);
	GpuSortAllStats *all = palloc(sizeof(GpuSortAllStats));
	GpuSortStats sum;
	Datum values[STATS_COLUMNS];
	bool nulls[STATS_COLUMNS] = {0};

	require_shared();
	gpusort_stats_get(all);
	sum = gpusort_stats_sum(all);
	stats_columns(&sum, all->reset, values);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(desc, values, nulls)));
}

/* The rows of gpusort_stats_database(): the same for each database that has sorted. */
Datum
gpusort_show_stats_database(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	GpuSortAllStats *all = palloc(sizeof(GpuSortAllStats));

	require_shared();
	InitMaterializedSRF(fcinfo, 0);
	gpusort_stats_get(all);
	for (int i = 0; i < all->count; i++)
	{
		Oid database = all->databases[i].database;
		Datum values[2 + STATS_COLUMNS];
		bool nulls[2 + STATS_COLUMNS] = {0};

		nulls[0] = !OidIsValid(database);
		values[0] = ObjectIdGetDatum(database);
		put_name(get_database_name(database), &values[1], &nulls[1]);
		stats_columns(&all->databases[i], all->reset, values + 2);
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return (Datum) 0;
}

/* Starts gpusort_stats anew. */
Datum
gpusort_stats_reset(PG_FUNCTION_ARGS)
{
	require_shared();
	gpusort_stats_clear();
	PG_RETURN_VOID();
}

static const char *
phase_name(GpuSortPhase phase)
{
	switch (phase)
	{
		case GPUSORT_PHASE_QUEUE:
			return "queue";
		case GPUSORT_PHASE_INGEST:
			return "ingest";
		case GPUSORT_PHASE_SORT:
			return "sort";
		case GPUSORT_PHASE_VERIFY:
			return "verify";
		case GPUSORT_PHASE_EMIT:
			return "emit";
	}
	return "unknown";
}

/* The rows of gpusort_jobs(): the sorts that run now. */
Datum
gpusort_show_jobs(PG_FUNCTION_ARGS)
{
	GpuSortJobSlot *jobs = palloc(GPUSORT_JOB_SLOTS * sizeof(GpuSortJobSlot));
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;

	require_shared();
	InitMaterializedSRF(fcinfo, 0);
	gpusort_shared_jobs(jobs);
	for (int i = 0; i < GPUSORT_JOB_SLOTS; i++)
	{
		GpuSortJobSlot *job = &jobs[i];
		Datum values[JOBS_COLUMNS];
		bool nulls[JOBS_COLUMNS] = {0};

		if (job->pid == 0)
			continue;
		values[0] = Int32GetDatum(job->pid);
		values[1] = ObjectIdGetDatum(job->database);
		values[2] = ObjectIdGetDatum(job->user);
		values[3] = CStringGetTextDatum(phase_name(job->phase));
		/* Which engine it gets is not known before. */
		nulls[4] = nulls[5] = job->phase == GPUSORT_PHASE_QUEUE;
		values[4] = CStringGetTextDatum(engine_name(job->engine));
		values[5] = CStringGetTextDatum(job->device);
		values[6] = Int64GetDatum(pg_atomic_read_u64(&job->rows_in));
		values[7] = Int64GetDatum(job->rows_out);
		values[8] = Int64GetDatum(pg_atomic_read_u64(&job->bytes));
		values[9] = TimestampTzGetDatum(job->started);
		put_name(get_database_name(job->database), &values[10], &nulls[10]);
		put_name(GetUserNameFromId(job->user, true), &values[11], &nulls[11]);
		nulls[12] = job->query_id == 0;
		values[12] = Int64GetDatum(job->query_id);
		values[13] = Int64GetDatum(job->estimated_rows);
		values[14] = Int64GetDatum(pg_atomic_read_u64(&job->temp_bytes));
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return (Datum) 0;
}
