/*-------------------------------------------------------------------------
 *
 * claims.h
 *	  How far the processes of a parallel sort are, and whose each range of its rows is.
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

/* What processes do with all of the sorted rows, part by part, before ranges are published: one phase at a time. */
typedef enum GpuSortPartsPhase
{
	GPUSORT_PARTS_NONE,
	GPUSORT_PARTS_VERIFY, /* their order */
	GPUSORT_PARTS_TOTAL,  /* find out what each range comes to, for the ranges behind it */
} GpuSortPartsPhase;

/*
 * In shared memory, and the first there.  For claims.c alone, but for stop, registered once sealed, ranges once
 * published, and failure once stopped.
 */
typedef struct GpuSortClaims
{
	uint64 build;              /* of the leader's module; one of another build knows no more */
	PGPROC *leader;            /* to be woken */
	volatile bool stop;        /* all are to end */
	ConditionVariable changed; /* any of what follows, or stop */
	LWLock lock;               /* guards what follows */
	int registered;            /* participants that ingest */
	int signed_off;            /* of them: have ingested */
	bool sealed;               /* who has not registered has no part in the ingest */
	bool published;            /* the ranges are there to be claimed */
	int whole;                 /* of those who have signed off: found the end of the rows to ingest */
	bool ordering;             /* a process orders the rows */
	bool taken;                /* a process does everything alone */
	uint32 ranges;
	uint32 next; /* the first range that is nobody's */
	GpuSortFailure failure;

	/* of the phase */
	GpuSortPartsPhase phase;
	uint32 parts;
	uint32 next_part;                 /* the first that is nobody's */
	uint32 done_parts;                /* those that are */
	int16 owners[GPUSORT_RANGES_MAX]; /* processes, of the ranges before next */
} GpuSortClaims;

/* What a participant is to do. */
typedef enum GpuSortClaimsTask
{
	GPUSORT_TASK_NONE,   /* no rows are wanted any more */
	GPUSORT_TASK_ORDER,  /* to order the rows and publish the ranges, or yield */
	GPUSORT_TASK_VERIFY, /* to claim parts of the phase VERIFY */
	GPUSORT_TASK_TOTAL,  /* the same for TOTAL */
	GPUSORT_TASK_READ,   /* to claim ranges */
} GpuSortClaimsTask;

/* The leader's */
extern void gpusort_claims_create(GpuSortClaims *claims);
extern void gpusort_claims_start(GpuSortClaims *claims);
extern int gpusort_claims_waiting(GpuSortClaims *claims);
extern int gpusort_claims_owner(GpuSortClaims *claims, uint32 range);

/* The ordering process's */
extern void gpusort_claims_yield_order(GpuSortClaims *claims);
extern void gpusort_claims_begin_parts(GpuSortClaims *claims, GpuSortPartsPhase phase, uint32 parts);
extern void gpusort_claims_finish_parts(GpuSortClaims *claims);
extern void gpusort_claims_publish(GpuSortClaims *claims, uint32 ranges);

/* Any participant's */
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
