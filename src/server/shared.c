/*-------------------------------------------------------------------------
 *
 * shared.c
 *	  The memory that backends and the supervisor share.
 *
 * The segment is reserved at server start when gpusort is preloaded, and taken
 * from the server's slack by the first session that needs it otherwise: it is a few
 * tens of kB, once per server.  Its name has the module's build: sessions that load
 * modules of two builds share nothing, so neither is read by the rules of the other.
 *
 * Where the slack is used up a session gets memory of its own in the segment's place.
 * No service is ever seen there, nor started: PostgreSQL sorts.
 *
 *-------------------------------------------------------------------------
 */
#include "server/shared.h"

#include "miscadmin.h"
#include "server/installation.h"
#include "server/shared_state.h"
#include "storage/ipc.h"
#include "storage/shmem.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

static GpuSortSharedState *shared = NULL;
static bool shared_is_private = false; /* it is this session's own */
static bool preloaded = false;         /* the server has loaded this module before any session */
static shmem_request_hook_type previous_shmem_request = NULL;
static shmem_startup_hook_type previous_shmem_startup = NULL;

static void
request_shared_memory(void)
{
	if (previous_shmem_request)
		previous_shmem_request();
	RequestAddinShmemSpace(MAXALIGN(sizeof(GpuSortSharedState)));
}

static void
init_shared(GpuSortSharedState *state, int tranche)
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
	GpuSortSharedState *state;
	bool found;

	snprintf(name, sizeof(name), "gpusort %016llx", (unsigned long long) gpusort_module_build());
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	state = ShmemInitStruct(name, sizeof(GpuSortSharedState), &found);
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
		shared = MemoryContextAlloc(TopMemoryContext, sizeof(GpuSortSharedState));
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
GpuSortSharedState *
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

/*
 * Initializes a lock that is the caller's, in memory that only some processes
 * share.  Those that wait for it are shown as waiting for gpusort.
 */
void
gpusort_shared_init_lock(LWLock *lock)
{
	LWLockInitialize(lock, gpusort_shared()->lock.tranche);
}
