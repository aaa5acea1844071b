/*-------------------------------------------------------------------------
 *
 * parallel_ingest.h
 *	  One process's part in the ingest of a sort to which several processes add rows.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PARALLEL_INGEST_H
#define GPUSORT_PARALLEL_INGEST_H

#include "compat.h"

#include "keys/keys.h"
#include "server/jobs.h"
#include "sort/input.h"
#include "sort/writer.h"
#include "storage/lwlock.h"

/*
 * In dynamic shared memory.  The leader writes it before workers start; then each
 * worker writes its own entry, which the leader reads when the worker has left.
 */
typedef struct GpuSortParallelIngestShared
{
	uint64 token;        /* of the sort to join; 0 if there is none */
	uint32 generation;   /* of the service that sorts */
	GpuSortJobSlot *job; /* as in GpuSortWriter; at the same address in every process */
	bool verified;       /* rows have tails */
	bool has_cutoff;     /* only the first rows are wanted, and participants count together */
	bool drops_repeats;  /* no row is wanted again, and each participant drops what it has put */
	bool common_later;   /* the first participant with rows chooses the common prefixes */
	uint64 libc_hash;    /* hash of the leader's C library collations of keys; 0 if there are none */
	int nworkers;
	bool bounded; /* there is room for a cutoff */
	LWLock lock;  /* guards the common prefixes and common_chosen */
	bool common_chosen;
	GpuSortPut put[FLEXIBLE_ARRAY_MEMBER]; /* by ParallelWorkerNumber; then a GpuSortPrefix for each string column; then,
											 * if there is one, a GpuSortCutoffShared */
} GpuSortParallelIngestShared;

/* One process's part. */
typedef struct GpuSortParallelIngest
{
	GpuSortParallelIngestShared *shared; /* NULL if no other process takes part */
	GpuSortKeys *keys;
	GpuSortInput *input;
	GpuSortWriter *writer; /* where rows go, or NULL */
	bool settled;          /* our keys use the common prefixes of all participants */

	/* in a worker */
	GpuSortClient *client;
	GpuSortWriter own_writer;

	/* in the leader */
	bool common_later;
} GpuSortParallelIngest;

/* For the leader */
extern Size gpusort_parallel_ingest_bytes(const GpuSortParallelIngest *ingest, int nworkers);
extern void gpusort_parallel_ingest_create(GpuSortParallelIngest *ingest, GpuSortParallelIngestShared *shared,
										   int nworkers);
extern void gpusort_parallel_ingest_start(GpuSortParallelIngest *ingest, GpuSortWriter *writer, GpuSortKeys *keys,
										  bool common_later);
extern void gpusort_parallel_ingest_publish(GpuSortParallelIngest *ingest);
extern void gpusort_parallel_ingest_collect(const GpuSortParallelIngest *ingest, GpuSortPut *put);
extern void gpusort_parallel_ingest_reset(GpuSortParallelIngest *ingest);

/* For a worker */
extern bool gpusort_parallel_ingest_lay_out_keys(GpuSortParallelIngest *ingest, GpuSortFailure *failure);
extern bool gpusort_parallel_ingest_join(GpuSortParallelIngest *ingest, GpuSortOverflow *overflow,
										 GpuSortFailure *failure);
extern bool gpusort_parallel_ingest_leave(GpuSortParallelIngest *ingest, GpuSortFailure *failure);

/* For any participant */
extern void gpusort_parallel_ingest_settle_common_prefixes(GpuSortParallelIngest *ingest);
extern bool gpusort_parallel_ingest_rows(GpuSortParallelIngest *ingest, const volatile bool *stop,
										 GpuSortFailure *failure);

#endif /* GPUSORT_PARALLEL_INGEST_H */
