/*-------------------------------------------------------------------------
 *
 * command_workers.h
 *	  Parallel workers for a command that sorts rows without a plan, or forms some.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_COMMAND_WORKERS_H
#define GPUSORT_COMMAND_WORKERS_H

#include "compat.h"

#include "access/parallel.h"
#include "executor/instrument.h"
#include "parallel/parallel_sort.h"
#include "storage/shm_toc.h"

/* The leader's workers, if it has any. */
typedef struct GpuSortCommandWorkers
{
	ParallelContext *context; /* NULL: there are none */
	WalUsage *wal;            /* by worker */
	BufferUsage *buffers;
} GpuSortCommandWorkers;

/* What a worker has been given. */
typedef struct GpuSortCommandWorker
{
	shm_toc *toc;
	void *shared; /* what the leader shares with all; NULL if it is of another build, and the worker does nothing */
} GpuSortCommandWorker;

/* The leader's */
extern void *gpusort_command_workers_prepare(GpuSortCommandWorkers *workers, const char *entry, int wanted, Size bytes,
											 GpuSortParallelSort *sort);
extern void gpusort_command_workers_launch(const GpuSortCommandWorkers *workers);
extern int gpusort_command_workers_processes(const GpuSortCommandWorkers *workers);
extern void gpusort_command_workers_finish(const GpuSortCommandWorkers *workers);
extern void gpusort_command_workers_end(GpuSortCommandWorkers *workers);

/* A worker's */
extern GpuSortCommandWorker gpusort_command_worker_begin(shm_toc *toc);
extern void gpusort_command_worker_attach(const GpuSortCommandWorker *worker, GpuSortParallelSort *sort);
extern void gpusort_command_worker_end(const GpuSortCommandWorker *worker);

#endif /* GPUSORT_COMMAND_WORKERS_H */
