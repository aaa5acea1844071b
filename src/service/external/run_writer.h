/*-------------------------------------------------------------------------
 *
 * run_writer.h
 *	  Has an engine's sort sorted and written as a run, beside the caller.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_EXTERNAL_RUN_WRITER_H
#define GPUSORT_EXTERNAL_RUN_WRITER_H

#include <pthread.h>

#include "service/call_watch.h"
#include "service/external/runs.h"

typedef struct GpuSortRunWriter
{
	/* set by its owner */
	const GpuSortEngineOps *ops;
	GpuSortRuns *runs; /* belongs to the thread while it is busy */
	const int *cancelled;
	GpuSortCallWatch *watch; /* the thread's */

	/* run_writer.c's */
	pthread_t thread;
	bool busy;         /* the thread was started and not yet waited for */
	uint32_t finished; /* atomic: runs that are written, and whose memory is free */
	GpuSort *sort;
	uint64_t bytes;
	int rc;
	GpuSortError error;
	double sort_ms; /* of all runs, as what follows */
	uint32_t key_bits;
	uint32_t packed_bits;
} GpuSortRunWriter;

extern int gpusort_run_writer_start(GpuSortRunWriter *writer, GpuSort *sort, uint64_t bytes, GpuSortError *error);
extern int gpusort_run_writer_wait(GpuSortRunWriter *writer, GpuSortError *error);

#endif /* GPUSORT_EXTERNAL_RUN_WRITER_H */
