/*-------------------------------------------------------------------------
 *
 * jobs.h
 *	  The sorts that run now: what gpusort_jobs shows.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_JOBS_H
#define GPUSORT_JOBS_H

#include "compat.h"

#include "datatype/timestamp.h"
#include "port/atomics.h"
#include "service/protocol.h"

typedef enum GpuSortPhase
{
	GPUSORT_PHASE_QUEUE, /* for chunks and memory */
	GPUSORT_PHASE_INGEST,
	GPUSORT_PHASE_SORT,
	GPUSORT_PHASE_VERIFY, /* its order, under a collation of the C library */
	GPUSORT_PHASE_EMIT,
} GpuSortPhase;

/*
 * A running sort.  Its backend alone writes it, but for rows_in, bytes and
 * temp_bytes, to which its parallel workers add.  Only pid is read under the lock: the others
 * may be some chunks behind.
 */
typedef struct GpuSortJobSlot
{
	pid_t pid; /* 0: free */
	Oid database;
	Oid user;
	uint64 query_id; /* 0: not known */
	uint64 estimated_rows;
	GpuSortPhase phase;
	GpuSortEngineKind engine; /* AUTO in QUEUE */
	pg_atomic_uint64 rows_in;
	pg_atomic_uint64 bytes;      /* of the rows ingested */
	pg_atomic_uint64 temp_bytes; /* of temporary files, for runs */
	uint64 rows_out;
	TimestampTz started;
	char device[GPUSORT_NAME_BYTES];
} GpuSortJobSlot;

#define GPUSORT_JOB_SLOTS 128

extern GpuSortJobSlot *gpusort_shared_job_start(uint64 estimated_rows);
extern void gpusort_shared_job_begun(GpuSortJobSlot *slot, GpuSortEngineKind engine, const char *device);
extern void gpusort_shared_job_add(GpuSortJobSlot *slot, uint64 rows, uint64 bytes, uint64 temp_bytes);
extern void gpusort_shared_job_end(GpuSortJobSlot *slot);
extern void gpusort_shared_jobs(GpuSortJobSlot jobs[GPUSORT_JOB_SLOTS]);

#endif /* GPUSORT_JOBS_H */
