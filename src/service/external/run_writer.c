/*-------------------------------------------------------------------------
 *
 * run_writer.c
 *	  Has an engine's sort sorted and written as a run, beside the caller.
 *
 * While a run is written the rows that come are put into the next sort, so that neither clients nor
 * disks wait for each other as long as memory is left for both.
 *
 * Legal order of calls: (start, wait)*.  Runs and their storage are the writer's from start to wait.
 *
 *-------------------------------------------------------------------------
 */
#include "service/external/run_writer.h"

static void *
writer_main(void *arg)
{
	GpuSortRunWriter *writer = arg;
	GpuSortOutcome outcome;

	gpusort_watch_enter(writer->watch, GPUSORT_CALL_SORT);
	writer->rc = writer->ops->sort(writer->sort, &outcome, &writer->error);
	gpusort_watch_leave(writer->watch);
	if (writer->rc == 0)
	{
		writer->sort_ms += outcome.sort_ms;
		writer->key_bits = outcome.key_bits;
		if (outcome.packed_bits > writer->packed_bits)
			writer->packed_bits = outcome.packed_bits;
		writer->rc = gpusort_runs_write(writer->runs, writer->ops, writer->sort, outcome.rows, writer->bytes,
										writer->cancelled, &writer->error);
	}
	writer->ops->end(writer->sort);
	__atomic_fetch_add(&writer->finished, 1, __ATOMIC_RELEASE);
	return NULL;
}

/*
* Makes a sort, of records of at most so many bytes, for which the storage has room, the next run.  The sort
 * is the writer's to end, whatever comes of it.
 */
int
gpusort_run_writer_start(GpuSortRunWriter *writer, GpuSort *sort, uint64_t bytes, GpuSortError *error)
{
	writer->sort = sort;
	writer->bytes = bytes;
	if (pthread_create(&writer->thread, NULL, writer_main, writer) != 0)
	{
		writer->ops->end(sort);
		*error = (GpuSortError){.reason = GPUSORT_REASON_NO_MEMORY, .text = "the sort service could not start a thread"};
		return -1;
	}
	writer->busy = true;
	return 0;
}

/* Waits until the run that was started is written, if one was; fails as that did. */
int
gpusort_run_writer_wait(GpuSortRunWriter *writer, GpuSortError *error)
{
	if (!writer->busy)
		return 0;
	pthread_join(writer->thread, NULL);
	writer->busy = false;
	if (writer->rc != 0)
		*error = writer->error;
	return writer->rc;
}
