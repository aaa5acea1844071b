/*-------------------------------------------------------------------------
 *
 * service_state.h
 *	  The state of the service, as the supervisor tells it to the backends.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SERVICE_STATE_H
#define GPUSORT_SERVICE_STATE_H

#include "compat.h"

#include "datatype/timestamp.h"
#include "service/protocol.h"

typedef enum GpuSortServiceState
{
	GPUSORT_SERVICE_NONE = 0, /* no supervisor has run yet */
	GPUSORT_SERVICE_STARTING, /* spawned, not ready yet */
	GPUSORT_SERVICE_READY,
	GPUSORT_SERVICE_DRAINING, /* settings changed: ends after its last sort, another is about to start */
	GPUSORT_SERVICE_HUNG,     /* does not answer; is being killed */
	GPUSORT_SERVICE_BACKOFF,  /* ended or did not start; it is started again later */
} GpuSortServiceState;

/*
 * The life of one service, by its generation.  The supervisor writes it as long as the service is
 * there, also when another one has taken its place.
 */
typedef struct GpuSortPulse
{
	uint32 generation; /* whose pulse it is; 0 if free */
	bool lost;         /* hung, killed or ended; its sorts are lost */
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
	TimestampTz since;    /* since when it is in this state */
	pid_t supervisor_pid; /* 0: none */
	pid_t pid;            /* the service's; 0: none */
	uint32 generation;    /* from 1 */
	uint32 leaving;       /* services of older generations that end their last sorts, or cannot be killed */
	TimestampTz started;  /* when the service was started; 0 if never */
	uint32 engines;       /* bit mask of 1 << GpuSortEngineKind */
	uint32 devices;
	uint64 device_limit;                 /* bytes */
	uint64 host_limit;                   /* bytes */
	char report[GPUSORT_TEXT_BYTES];     /* what it reported before it was ready, or why there is none; may be empty */
	GpuSortPulse pulses[GPUSORT_PULSES]; /* of generation g in g % GPUSORT_PULSES */
} GpuSortService;

extern GpuSortService gpusort_shared_service(void);
extern const char *gpusort_service_state_name(GpuSortServiceState state);

/* The supervisor's alone */
extern bool gpusort_shared_claim_service(void);
extern void gpusort_shared_release_service(void);
extern void gpusort_shared_set_service(GpuSortServiceState service_state, pid_t pid, uint32 generation, uint32 leaving);
extern void gpusort_shared_set_engines(const GpuSortMessage *ready);
extern void gpusort_shared_set_report(const char *fmt, ...) pg_attribute_printf(1, 2);
extern void gpusort_shared_set_pulse(uint32 generation, bool lost);

#endif /* GPUSORT_SERVICE_STATE_H */
