/*-------------------------------------------------------------------------
 *
 * claims.h
 *	  How far the participants of a parallel sort are, and which process has claimed each range of its rows.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_CLAIMS_H
#define GPUSORT_CLAIMS_H

#include "compat.h"

#include "client/failure.h"
#include "service/protocol.h"
#include "storage/condition_variable.h"
#include "storage/lwlock.h"
#include "storage/proc.h"

/* Number of the leader among the processes; worker i (ParallelWorkerNumber) is i + 1. */
#define GPUSORT_LEADER_PROCESS 0

/* What a process has contributed. */
typedef struct GpuSortProcessFigures
{
	uint64 ranges;
	uint64 rows;
} GpuSortProcessFigures;

/* What participants do with all sorted rows, part by part, before ranges are published; one phase at a time. */
typedef enum GpuSortPartsPhase
{
	GPUSORT_PARTS_NONE,
	GPUSORT_PARTS_VERIFY, /* verify the order */
	GPUSORT_PARTS_TOTAL,  /* compute each range's total, for the ranges behind it */
} GpuSortPartsPhase;

/*
 * In shared memory, and the first there.  For claims.c alone, but for stop, registered once sealed, ranges once
 * published, and failure once stopped.
 */
typedef struct GpuSortClaims
{
	uint64 build;              /* build of the leader's module; another build must read nothing else */
	PGPROC *leader;            /* its latch wakes the leader */
	volatile bool stop;        /* all participants have to end */
	ConditionVariable changed; /* signalled when stop or a field below changes */
	LWLock lock;               /* guards what follows */
	int registered;            /* number of participants that have begun to ingest */
	int signed_off;            /* number of those that have finished */
	bool sealed;               /* nobody may register any more */
	bool published;            /* ranges may be claimed */
	int whole;                 /* number of those signed off that found the end of their input */
	bool ordering;             /* a process is ordering the rows */
	bool taken;                /* one process does everything */
	uint32 ranges;
	uint32 next; /* the first range that is not claimed */
	GpuSortFailure failure;

	/* about the current phase */
	GpuSortPartsPhase phase;
	uint32 parts;
	uint32 next_part;                 /* the first part that is not claimed */
	uint32 done_parts;                /* number of finished parts */
	int16 owners[GPUSORT_RANGES_MAX]; /* by range before next: the process that claimed it */
} GpuSortClaims;

/* What a participant is to do. */
typedef enum GpuSortClaimsTask
{
	GPUSORT_TASK_NONE,   /* nothing; no rows are wanted any more */
	GPUSORT_TASK_ORDER,  /* order the rows and publish the ranges, or yield */
	GPUSORT_TASK_VERIFY, /* claim parts of the phase VERIFY */
	GPUSORT_TASK_TOTAL,  /* claim parts of the phase TOTAL */
	GPUSORT_TASK_READ,   /* claim ranges */
} GpuSortClaimsTask;

/* For the leader */
extern void gpusort_claims_create(GpuSortClaims *claims);
extern void gpusort_claims_start(GpuSortClaims *claims);
extern int gpusort_claims_waiting(GpuSortClaims *claims);
extern bool gpusort_claims_begun(GpuSortClaims *claims);
extern int gpusort_claims_owner(GpuSortClaims *claims, uint32 range);

/* For the process that orders the rows */
extern void gpusort_claims_yield_order(GpuSortClaims *claims);
extern void gpusort_claims_begin_parts(GpuSortClaims *claims, GpuSortPartsPhase phase, uint32 parts);
extern void gpusort_claims_finish_parts(GpuSortClaims *claims);
extern void gpusort_claims_publish(GpuSortClaims *claims, uint32 ranges);

/* For any participant */
extern bool gpusort_claims_are_ours(const GpuSortClaims *claims);
extern bool gpusort_claims_register(GpuSortClaims *claims);
extern void gpusort_claims_sign_off(GpuSortClaims *claims, bool whole);
extern GpuSortClaimsTask gpusort_claims_await_task(GpuSortClaims *claims, bool orders, GpuSortPartsPhase done);
extern int gpusort_claims_next_part(GpuSortClaims *claims, GpuSortPartsPhase phase);
extern void gpusort_claims_done_part(GpuSortClaims *claims, uint64 *sum, uint64 pairs);
extern int gpusort_claims_next(GpuSortClaims *claims, int process);
extern void gpusort_claims_stop(GpuSortClaims *claims, const GpuSortFailure *failure);
extern bool gpusort_claims_take_all(GpuSortClaims *claims);

#endif /* GPUSORT_CLAIMS_H */
