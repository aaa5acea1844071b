/*-------------------------------------------------------------------------
 *
 * jobs.c
 *	  The sorts that run now: what gpusort_jobs shows.
 *
 *-------------------------------------------------------------------------
 */
#include "server/jobs.h"

#include "miscadmin.h"
#include "server/shared_state.h"
#include "utils/backend_status.h"
#include "utils/timestamp.h"

/*
 * Takes a slot for a sort of this backend that is about
 * to ask the service, or returns NULL when all are taken:
 * the sort then goes on unlisted.  The caller must end it.
 */
GpuSortJobSlot *
gpusort_shared_job_start(uint64 estimated_rows)
{
	GpuSortSharedState *state = gpusort_shared();
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
	GpuSortSharedState *state = gpusort_shared();

	if (slot == NULL)
		return;
	LWLockAcquire(&state->lock, LW_EXCLUSIVE);
	slot->pid = 0;
	LWLockRelease(&state->lock);
}

/* Copies all slots, those that are free included. */
void
gpusort_shared_jobs(GpuSortJobSlot jobs[GPUSORT_JOB_SLOTS])
{
	GpuSortSharedState *state = gpusort_shared();

	LWLockAcquire(&state->lock, LW_SHARED);
	memcpy(jobs, state->jobs, sizeof(state->jobs));
	LWLockRelease(&state->lock);
}
