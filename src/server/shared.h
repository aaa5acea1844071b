/*-------------------------------------------------------------------------
 *
 * shared.h
 *	  What the backends and the supervisor share: the state of the service,
 *	  the running sorts, the statistics.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SHARED_H
#define GPUSORT_SHARED_H

#include "compat.h"

#include "datatype/timestamp.h"
#include "nodes/pg_list.h"
#include "port/atomics.h"
#include "server/statistics.h"
#include "service/protocol.h"
#include "storage/condition_variable.h"
#include "storage/lwlock.h"

typedef enum GpuSortServiceState
{
	GPUSORT_SERVICE_NONE = 0, /* no supervisor has run yet */
	GPUSORT_SERVICE_STARTING, /* spawned, not ready yet */
	GPUSORT_SERVICE_READY,
	GPUSORT_SERVICE_DRAINING, /* settings changed: ends after its last sort, another is about to start */
	GPUSORT_SERVICE_HUNG,     /* does not answer; is being killed */
	GPUSORT_SERVICE_BACKOFF,  /* ended or would not start; tried again later */
} GpuSortServiceState;

/*
 * The life of one service, by its generation.  The supervisor writes it as long as the service is
 * there, also when another one has taken its place.
 */
typedef struct GpuSortPulse
{
	uint32 generation; /* whose; 0: nobody's */
	bool lost;         /* hung, killed or ended: whatever it held is lost */
	TimestampTz alive; /* when it last answered */
} GpuSortPulse;

#define GPUSORT_PULSES 8

/*
 * The service that takes sorts now; a copy is taken under the lock.  Each start of one has another
 * generation, which names its socket.
 */
typedef struct GpuSortService
{
	GpuSortServiceState state;
	TimestampTz since;    /* it is in this state */
	pid_t supervisor_pid; /* 0: none */
	pid_t pid;            /* the service's; 0: none */
	uint32 generation;    /* from 1 */
	uint32 leaving;       /* services of older generations that end their last sorts, or cannot be killed */
	TimestampTz started;  /* the service was; 0: never */
	uint32 engines;       /* bit mask of 1 << GpuSortEngineKind */
	uint32 devices;
	uint64 device_limit;                 /* bytes */
	uint64 host_limit;                   /* bytes */
	char report[GPUSORT_TEXT_BYTES];     /* what it said before it was ready, or why there is none; empty: nothing */
	GpuSortPulse pulses[GPUSORT_PULSES]; /* of generation g in g % GPUSORT_PULSES */
} GpuSortService;

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

/* A collation of the C library whose order is not that of its keys: left alone until the server restarts. */
typedef struct GpuSortDistrusted
{
	Oid database;
	Oid collation;
} GpuSortDistrusted;

/* When so many are distrusted, all others are. */
#define GPUSORT_DISTRUSTED_MAX 64

typedef struct GpuSortShared
{
	LWLock lock; /* guards all of it but what GpuSortJobSlot says */
	ConditionVariable service_changed;
	GpuSortService service;
	GpuSortAllStats stats;
	int ndistrusted;
	GpuSortDistrusted distrusted[GPUSORT_DISTRUSTED_MAX];
	GpuSortJobSlot jobs[GPUSORT_JOB_SLOTS];
} GpuSortShared;

extern void gpusort_shared_init(void);
extern GpuSortShared *gpusort_shared(void);
extern bool gpusort_shared_is_private(void);
extern bool gpusort_shared_is_preloaded(void);
extern GpuSortService gpusort_shared_service(void);
extern const char *gpusort_service_state_name(GpuSortServiceState state);
extern void gpusort_shared_init_lock(LWLock *lock);

/* The supervisor's alone */
extern bool gpusort_shared_claim_service(void);
extern void gpusort_shared_release_service(void);
extern void gpusort_shared_set_service(GpuSortServiceState service_state, pid_t pid, uint32 generation, uint32 leaving);
extern void gpusort_shared_set_engines(const GpuSortMessage *ready);
extern void gpusort_shared_set_report(const char *fmt, ...) pg_attribute_printf(1, 2);
extern void gpusort_shared_set_pulse(uint32 generation, bool lost);

extern GpuSortJobSlot *gpusort_shared_job_start(uint64 estimated_rows);
extern void gpusort_shared_job_begun(GpuSortJobSlot *slot, GpuSortEngineKind engine, const char *device);
extern void gpusort_shared_job_add(GpuSortJobSlot *slot, uint64 rows, uint64 bytes, uint64 temp_bytes);
extern void gpusort_shared_job_end(GpuSortJobSlot *slot);
extern void gpusort_shared_jobs(GpuSortJobSlot jobs[GPUSORT_JOB_SLOTS]);

extern bool gpusort_shared_distrust_collation(Oid collation);
extern List *gpusort_shared_distrusted_collations(bool *all);
extern bool gpusort_shared_distrusts_collation(Oid collation);


#endif /* GPUSORT_SHARED_H */
