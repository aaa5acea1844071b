/*-------------------------------------------------------------------------
 *
 * shared.c
 *	  Shared memory: the state of the service, the running sorts.
 *
 * The segment is reserved at server start when gpusort is preloaded, and taken
 * from the server's slack by the first session that needs it otherwise: it is
 * a few tens of kB, once per server.  Its name has the module's build: sessions that
 * load modules of two builds share nothing, so neither is read by the rules of the
 * other.
 *
 * Where the slack is used up a session gets memory of its own in the segment's place.
 * No service is ever seen there, nor started: PostgreSQL sorts.
 *
 *-------------------------------------------------------------------------
 */
#include "server/shared.h"

#include <signal.h>

#include "miscadmin.h"
#include "server/installation.h"
#include "storage/ipc.h"
#include "storage/shmem.h"
#include "utils/backend_status.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

static GpuSortShared *shared = NULL;
static bool shared_is_private = false; /* it is this session's own */
static bool preloaded = false;         /* the server has loaded this module before any session */
static shmem_request_hook_type previous_shmem_request = NULL;
static shmem_startup_hook_type previous_shmem_startup = NULL;

/* What gpusort_service calls a state. */
const char *
gpusort_service_state_name(GpuSortServiceState state)
{
	switch (state)
	{
		case GPUSORT_SERVICE_NONE:
			return "none";
		case GPUSORT_SERVICE_STARTING:
			return "starting";
		case GPUSORT_SERVICE_READY:
			return "ready";
		case GPUSORT_SERVICE_DRAINING:
			return "draining";
		case GPUSORT_SERVICE_HUNG:
			return "hung";
		case GPUSORT_SERVICE_BACKOFF:
			return "backing off";
	}
	return "unknown";
}

static void
request_shared_memory(void)
{
	if (previous_shmem_request)
		previous_shmem_request();
	RequestAddinShmemSpace(MAXALIGN(sizeof(GpuSortShared)));
}

static void
init_shared(GpuSortShared *state, int tranche)
{
	memset(state, 0, sizeof(*state));
	LWLockInitialize(&state->lock, tranche);
	ConditionVariableInit(&state->service_changed);
	state->stats.reset = GetCurrentTimestamp();
}

/*
 * Finds the segment, or makes it.  Errors: out of shared memory, or of tranches, after which the segment has
 * none until one is found; AddinShmemInitLock is still held then.
 */
static void
attach_shared_memory(void)
{
	char name[NAMEDATALEN];
	GpuSortShared *state;
	bool found;

	snprintf(name, sizeof(name), "gpusort %016llx", (unsigned long long) gpusort_module_build());
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	state = ShmemInitStruct(name, sizeof(GpuSortShared), &found);
	if (!found)
		state->lock.tranche = 0;
	if (state->lock.tranche == 0)
		init_shared(state, LW_LOCK_NEW_TRANCHE("gpusort"));
	LWLockRelease(AddinShmemInitLock);
	shared = state;
	LWLockRegisterTranche(shared->lock.tranche, "gpusort");
}

/* The same in a session: one that finds no room gets memory of its own. */
static void
attach_or_do_without(void)
{
	MemoryContext caller = CurrentMemoryContext;
	uint32 holdoff = InterruptHoldoffCount;

	PG_TRY();
	{
		attach_shared_memory();
	}
	PG_CATCH();
	{
		ErrorData *error;

		/* Raising an error has forgotten who holds interrupts off: the lock, and our callers */
		InterruptHoldoffCount = holdoff + 1;
		LWLockRelease(AddinShmemInitLock);
		MemoryContextSwitchTo(caller);
		error = CopyErrorData();
		FlushErrorState();
		shared = MemoryContextAlloc(TopMemoryContext, sizeof(GpuSortShared));
		shared_is_private = true;
		/* Nobody else has its lock, and tranches are few: any will do */
		init_shared(shared, LWTRANCHE_PARALLEL_QUERY_DSA);
		ereport(LOG,
				(errcode(error->sqlerrcode),
				 errmsg("gpusort is not used in this session: %s", error->message),
				 errhint("Add gpusort to shared_preload_libraries.")));
		FreeErrorData(error);
	}
	PG_END_TRY();
}

static void
startup_shared_memory(void)
{
	if (previous_shmem_startup)
		previous_shmem_startup();
	attach_shared_memory();
}

/* To be called while shared_preload_libraries are loaded. */
void
gpusort_shared_init(void)
{
	preloaded = true;
	previous_shmem_request = shmem_request_hook;
	shmem_request_hook = request_shared_memory;
	previous_shmem_startup = shmem_startup_hook;
	shmem_startup_hook = startup_shared_memory;
}

/* Returns the shared state; made now if the server did not preload gpusort. */
GpuSortShared *
gpusort_shared(void)
{
	if (shared == NULL)
		attach_or_do_without();
	return shared;
}

/* Returns true if there was no memory to share: the state is this session's own, and no service is in it. */
bool
gpusort_shared_is_private(void)
{
	(void) gpusort_shared();
	return shared_is_private;
}

/* Returns true if the server has loaded this module by shared_preload_libraries. */
bool
gpusort_shared_is_preloaded(void)
{
	return preloaded;
}

/* Makes it the state of no service, whose generations go on all the same; the lock is held. */
static void
reset_service(GpuSortService *service)
{
	GpuSortService none = {.generation = service->generation, .since = GetCurrentTimestamp()};

	for (int i = 0; i < GPUSORT_PULSES; i++)
	{
		none.pulses[i] = service->pulses[i];
		none.pulses[i].lost = true;
	}
	*service = none;
}

/*
 * Makes this process the supervisor, which alone writes the service's state; false if there is one
 * already.  Generations go on where the last one's ended.
 */
bool
gpusort_shared_claim_service(void)
{
	GpuSortShared *state = gpusort_shared();
	pid_t other;
	bool claimed;

	LWLockAcquire(&state->lock, LW_EXCLUSIVE);
	other = state->service.supervisor_pid;
	claimed = other == 0 || other == MyProcPid || kill(other, 0) != 0;
	if (claimed)
	{
		reset_service(&state->service);
		state->service.state = GPUSORT_SERVICE_STARTING;
		state->service.started = state->service.since;
		state->service.supervisor_pid = MyProcPid;
	}
	LWLockRelease(&state->lock);
	return claimed;
}

/* Ends what claim began: there is no service any more. */
void
gpusort_shared_release_service(void)
{
	GpuSortShared *state = gpusort_shared();

	LWLockAcquire(&state->lock, LW_EXCLUSIVE);
	if (state->service.supervisor_pid == MyProcPid)
		reset_service(&state->service);
	LWLockRelease(&state->lock);
	ConditionVariableBroadcast(&state->service_changed);
}

/* Tells the backends, and those that wait, of the current service: pid 0 if there is none. */
void
gpusort_shared_set_service(GpuSortServiceState service_state, pid_t pid, uint32 generation, uint32 leaving)
{
	GpuSortShared *state = gpusort_shared();
	TimestampTz now = GetCurrentTimestamp();

	LWLockAcquire(&state->lock, LW_EXCLUSIVE);
	if (state->service.state != service_state)
		state->service.since = now;
	state->service.state = service_state;
	state->service.pid = pid;
	if (pid != 0 && state->service.generation != generation)
	{
		state->service.generation = generation;
		state->service.started = now;
	}
	state->service.leaving = leaving;
	LWLockRelease(&state->lock);
	ConditionVariableBroadcast(&state->service_changed);
}

/* Notes what the current service said of its engines when it was ready. */
void
gpusort_shared_set_engines(const GpuSortMessage *ready)
{
	GpuSortShared *state = gpusort_shared();

	LWLockAcquire(&state->lock, LW_EXCLUSIVE);
	state->service.engines = ready->u.ready.engines;
	state->service.devices = ready->u.ready.devices;
	state->service.device_limit = ready->u.ready.device_limit;
	state->service.host_limit = ready->u.ready.host_limit;
	LWLockRelease(&state->lock);
}

/* Notes what the current service says before it is ready, or why there is none; formatted as by printf. */
void
gpusort_shared_set_report(const char *fmt, ...)
{
	GpuSortShared *state = gpusort_shared();
	va_list values;

	LWLockAcquire(&state->lock, LW_EXCLUSIVE);
	va_start(values, fmt);
	vsnprintf(state->service.report, sizeof(state->service.report), fmt, values);
	va_end(values);
	LWLockRelease(&state->lock);
}

/* Tells those that wait for a service that it lives, or that what it held is lost. */
void
gpusort_shared_set_pulse(uint32 generation, bool lost)
{
	GpuSortShared *state = gpusort_shared();
	GpuSortPulse *pulse = &state->service.pulses[generation % GPUSORT_PULSES];

	LWLockAcquire(&state->lock, LW_EXCLUSIVE);
	pulse->generation = generation;
	pulse->lost = lost;
	pulse->alive = GetCurrentTimestamp();
	LWLockRelease(&state->lock);
}

/*
 * Initializes a lock that is the caller's, in memory that only some processes
 * share.  Those that wait for it are shown as waiting for gpusort.
 */
void
gpusort_shared_init_lock(LWLock *lock)
{
	LWLockInitialize(lock, gpusort_shared()->lock.tranche);
}

/* Returns a consistent copy of the service's state. */
GpuSortService
gpusort_shared_service(void)
{
	GpuSortShared *state = gpusort_shared();
	GpuSortService service;

	LWLockAcquire(&state->lock, LW_SHARED);
	service = state->service;
	LWLockRelease(&state->lock);
	return service;
}

/*
 * Takes a slot for a sort of this backend that is about to ask the service, or
 * returns NULL when all are taken: the sort then goes on unlisted.  The caller must
 * end it.
 */
GpuSortJobSlot *
gpusort_shared_job_start(uint64 estimated_rows)
{
	GpuSortShared *state = gpusort_shared();
	GpuSortJobSlot *slot = NULL;

	LWLockAcquire(&state->lock, LW_EXCLUSIVE);
	for (int i = 0; i < GPUSORT_JOB_SLOTS; i++)
	{
		if (state->jobs[i].pid == 0)
		{
			slot = &state->jobs[i];
			memset(slot, 0, sizeof(*slot));
			pg_atomic_init_u64(&slot->rows_in, 0);
			pg_atomic_init_u64(&slot->bytes, 0);
			pg_atomic_init_u64(&slot->temp_bytes, 0);
			slot->pid = MyProcPid;
			slot->database = MyDatabaseId;
			slot->user = GetUserId();
			slot->query_id = pgstat_get_my_query_id();
			slot->estimated_rows = estimated_rows;
			slot->phase = GPUSORT_PHASE_QUEUE;
			slot->engine = GPUSORT_ENGINE_AUTO;
			slot->started = GetCurrentTimestamp();
			break;
		}
	}
	LWLockRelease(&state->lock);
	return slot;
}

/* Shows that the service has taken the sort; slot may be NULL. */
void
gpusort_shared_job_begun(GpuSortJobSlot *slot, GpuSortEngineKind engine, const char *device)
{
	if (slot == NULL)
		return;
	strlcpy(slot->device, device, sizeof(slot->device));
	slot->engine = engine;
	slot->phase = GPUSORT_PHASE_INGEST;
}

/* Shows that so many more rows were ingested, and temporary files have grown; slot may be NULL. */
void
gpusort_shared_job_add(GpuSortJobSlot *slot, uint64 rows, uint64 bytes, uint64 temp_bytes)
{
	if (slot == NULL)
		return;
	(void) pg_atomic_fetch_add_u64(&slot->rows_in, rows);
	(void) pg_atomic_fetch_add_u64(&slot->bytes, bytes);
	(void) pg_atomic_fetch_add_u64(&slot->temp_bytes, temp_bytes);
}

/* Gives the slot back; it may be NULL. */
void
gpusort_shared_job_end(GpuSortJobSlot *slot)
{
	if (slot == NULL)
		return;
	LWLockAcquire(&shared->lock, LW_EXCLUSIVE);
	slot->pid = 0;
	LWLockRelease(&shared->lock);
}

/* Copies all slots, those that are free included. */
void
gpusort_shared_jobs(GpuSortJobSlot jobs[GPUSORT_JOB_SLOTS])
{
	GpuSortShared *state = gpusort_shared();

	LWLockAcquire(&state->lock, LW_SHARED);
	memcpy(jobs, state->jobs, sizeof(state->jobs));
	LWLockRelease(&state->lock);
}

/* Returns true if this collation of the current database is distrusted; the lock is held. */
static bool
is_distrusted(const GpuSortShared *state, Oid collation)
{
	if (state->ndistrusted == GPUSORT_DISTRUSTED_MAX)
		return true;
	for (int i = 0; i < state->ndistrusted; i++)
	{
		if (state->distrusted[i].database == MyDatabaseId && state->distrusted[i].collation == collation)
			return true;
	}
	return false;
}

/* Has nobody sort by this collation's keys until the server restarts; true if that is news. */
bool
gpusort_shared_distrust_collation(Oid collation)
{
	GpuSortShared *state = gpusort_shared();
	bool news;

	LWLockAcquire(&state->lock, LW_EXCLUSIVE);
	news = !is_distrusted(state, collation);
	if (news)
		state->distrusted[state->ndistrusted++] = (GpuSortDistrusted){.database = MyDatabaseId, .collation = collation};
	LWLockRelease(&state->lock);
	return news;
}

/* Returns true if nobody is to sort by this collation's keys. */
bool
gpusort_shared_distrusts_collation(Oid collation)
{
	GpuSortShared *state = gpusort_shared();
	bool distrusts;

	LWLockAcquire(&state->lock, LW_SHARED);
	distrusts = is_distrusted(state, collation);
	LWLockRelease(&state->lock);
	return distrusts;
}

/* Returns the collations of the current database that are distrusted; *all is whether all others are, too. */
List *
gpusort_shared_distrusted_collations(bool *all)
{
	GpuSortDistrusted distrusted[GPUSORT_DISTRUSTED_MAX];
	GpuSortShared *state = gpusort_shared();
	List *collations = NIL;
	int count;

	LWLockAcquire(&state->lock, LW_SHARED);
	count = state->ndistrusted;
	memcpy(distrusted, state->distrusted, sizeof(distrusted));
	LWLockRelease(&state->lock);
	*all = count == GPUSORT_DISTRUSTED_MAX;
	for (int i = 0; i < count; i++)
	{
		if (distrusted[i].database == MyDatabaseId)
			collations = lappend_oid(collations, distrusted[i].collation);
	}
	return collations;
}
