/*-------------------------------------------------------------------------
 *
 * external_sort.c
 *	  A sort of any size: an engine's, and when that has no memory left, runs of it
 *	  that are merged by ranges of keys.
 *
 * PATH OF THE DATA
 *	external_sort.c		put: chunks into a sort of the engine, until it has no memory for one
 *	run_writer.c		then that is sorted beside the next, and
 *	runs.c				its records are written as a run
 *	storage.c			runs in the host's memory, or in temporary files of the client's
 *	merge.c				when all is put: partitions of all runs' keys (merge_plan.c), loaded ahead (merge_load.c)
 *	interval_reader.c	a partition's records, run by run
 *	partition.c			put into a sort of the engine, sorted, and given out
 *
 * Where only the first rows of runs of equal keys are wanted, each run that is written has those of its own
 * rows, and the merge gives out all of them.
 *
 * As long as all rows fit into the memory this is the engine's sort and nothing else.  Memory for a chunk
 * is asked for when it is put: those that clients are filling take none of it.
 *
 * Legal order of calls: create, begin (again while it is busy), reserve; (put, add_space)*, sort, (emit | cut)*,
 * end.  end is legal after any of them.  All are the job's thread's.
 *
 *-------------------------------------------------------------------------
 */
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "service/external/external_sort.h"
#include "service/external/reclaim.h"
#include "service/external/merge.h"
#include "service/external/run_writer.h"
#include "service/external/run_rows.h"

/* Memory that others have is waited for so long, a look each 10 ms, before a sort that has rows fails. */
#define BUSY_LOOKS 6000

/* Runs are not made small to be filled and written at once, if they were smaller than this. */
#define RUN_BYTES_LEAST ((uint64_t) 32 << 20)

struct GpuSortExternal
{
	GpuSortExternalMeans means;
	GpuSortRequest request;

	/* what is put now; the job's thread has the lock as long as it is at it */
	pthread_mutex_t lock;
	GpuSortMemoryHolder holder;
	bool begun;
	bool ingests;  /* has begun, and sort was not called */
	GpuSort *sort; /* the engine's; NULL before begin, where runs are alone, and when it made way for others */
	bool reserved; /* for a first chunk: */
	uint32_t reserved_rows;
	uint64_t put_bytes; /* records of the current sort */
	uint64_t put_rows;
	uint64_t rows_in; /* of all */

	/* what did not fit */
	GpuSortRunWriter writer;
	uint64_t run_bytes; /* that a run is to have from the second on; 0: as many as there is memory for */
	uint32_t handed_over;
	GpuSortRuns runs;
	GpuSortMergeSource source;
	GpuSortMerge *merge;
	GpuSortOutcome outcome; /* of sort, once that has succeeded */
};

/* Returns true if there may be the memory when others have given theirs back. */
static bool
is_for_a_moment(const GpuSortError *error)
{
	return error->reason == GPUSORT_REASON_MEMORY_BUSY || error->reason == GPUSORT_REASON_NO_MEMORY;
}

/*
 * GpuSortMemoryHolder.reclaim: a sort that waits for its first rows gives up the room for them.  In a plan those may
 * be another sort's, whose merge then waits for memory as long as this one waits for rows.
 */
static bool
reclaim(GpuSortMemoryHolder *holder)
{
	GpuSortExternal *external = (GpuSortExternal *) ((char *) holder - offsetof(GpuSortExternal, holder));
	bool gives;

	if (pthread_mutex_trylock(&external->lock) != 0)
		return false;
	gives = external->ingests && external->request.spill && external->sort != NULL && external->put_rows == 0;
	if (gives)
	{
		external->means.handle.ops->end(external->sort);
		external->sort = NULL;
		external->reserved = false;
	}
	pthread_mutex_unlock(&external->lock);
	return gives;
}

/* NULL: there is no memory. */
GpuSortExternal *
gpusort_external_create(const GpuSortExternalMeans *means, const GpuSortRequest *request)
{
	GpuSortExternal *external = calloc(1, sizeof(GpuSortExternal));

	if (external == NULL)
		return NULL;
	external->means = *means;
	external->request = *request;
	if (request->spill && request->estimated_rows > GPUSORT_MAX_ROWS)
		external->request.estimated_rows = external->request.estimated_bytes = 0; /* more than one run, however large */
	external->runs.key_words = request->key_words;
	external->writer = (GpuSortRunWriter){
		.ops = means->handle.ops, .runs = &external->runs, .cancelled = means->cancelled, .watch = means->loader_watches};
	external->source = (GpuSortMergeSource){
		.handle = &external->means.handle,
		.cpus = means->cpus,
		.request = &external->request,
		.runs = &external->runs,
		.cancelled = means->cancelled,
		.watch = means->loader_watches};
	pthread_mutex_init(&external->lock, NULL);
	external->holder.reclaim = reclaim;
	external->holder.to_merges = true;
	gpusort_memory_holder_add(&external->holder);
	return external;
}

/* Returns true if memory that was lacking was given back by other sorts, which can do without. */
static bool
reclaim_from_others(const GpuSortError *error)
{
	return is_for_a_moment(error) && gpusort_memory_reclaim(NULL);
}

/* GpuSortEngineOps.begin.  If it failed with MEMORY_BUSY it may be called again. */
int
gpusort_external_begin(GpuSortExternal *external, GpuSortPlace *place, GpuSortError *error)
{
	int rc;

	pthread_mutex_lock(&external->lock);
	do
	{
		rc = external->means.handle.ops->begin(external->means.handle.engine, &external->request, external->means.cancelled,
											   &external->sort, place, error);
	} while (rc != 0 && reclaim_from_others(error));
	if (rc != 0)
		external->sort = NULL;
	external->begun = external->ingests = rc == 0;
	pthread_mutex_unlock(&external->lock);
	return rc;
}

/* Returns true if begin has succeeded. */
bool
gpusort_external_has_begun(const GpuSortExternal *external)
{
	return external->begun;
}

/* Returns how many runs there are so far, and the memory that they took in the engine is free. */
uint32_t
gpusort_external_runs(const GpuSortExternal *external)
{
	return __atomic_load_n(&external->writer.finished, __ATOMIC_ACQUIRE);
}

/*
 * Makes sure that a chunk of rows_max rows can be put: of a sort that spills the first, for any other can once
 * that can.  Failing is no failure of the sort.
 */
int
gpusort_external_reserve(GpuSortExternal *external, uint32_t rows_max, GpuSortError *error)
{
	int rc = 0;

	pthread_mutex_lock(&external->lock);
	if (external->request.spill && (external->reserved || external->rows_in > 0 || external->sort == NULL))
	{
		pthread_mutex_unlock(&external->lock);
		return 0;
	}
	do
	{
		rc = external->means.handle.ops->reserve(external->sort, rows_max, error);
	} while (rc != 0 && reclaim_from_others(error));
	if (rc == 0 && external->request.spill)
	{
		external->reserved = true;
		external->reserved_rows = rows_max;
	}
	pthread_mutex_unlock(&external->lock);
	return rc;
}

/*
 * After error, lets a moment pass in which others give memory back, unless looks has had them all.  Fails if error is
 * of another kind, and if the sort is cancelled.
 */
static int
await_memory(const GpuSortExternal *external, int *looks, GpuSortError *error)
{
	const struct timespec pause = {.tv_nsec = 10000000};

	if (!is_for_a_moment(error) || (*looks)++ == BUSY_LOOKS)
		return -1;
	if (__atomic_load_n(external->means.cancelled, __ATOMIC_RELAXED))
		return gpusort_error_cancelled(error);
	if (!reclaim_from_others(error))
		nanosleep(&pause, NULL);
	return 0;
}

/* Begins the engine's sort for the next rows; waits where others have the memory. */
static int
begin_next(GpuSortExternal *external, GpuSortError *error)
{
	GpuSortRequest request = external->request;
	GpuSortPlace ignored;
	int looks = 0;

	request.estimated_rows = request.estimated_bytes = 0;
	for (;;)
	{
		int rc;

		gpusort_watch_enter(external->means.watch, GPUSORT_CALL_BEGIN);
		rc = external->means.handle.ops->begin(external->means.handle.engine, &request, external->means.cancelled,
											   &external->sort, &ignored, error);
		gpusort_watch_leave(external->means.watch);
		if (rc == 0)
			return 0;
		external->sort = NULL;
		if (is_for_a_moment(error) && external->writer.busy)
			rc = gpusort_run_writer_wait(&external->writer, error);
		else
			rc = await_memory(external, &looks, error);
		if (rc != 0)
			return -1;
	}
}

/*
* Makes the current sort a run, when the one before is written.  Those that follow take half of the memory
 * that the first one had, if that is not little: then one is filled while another is written.
 */
static GpuSortProgress
hand_over(GpuSortExternal *external, uint64_t *lacking, GpuSortError *error)
{
	GpuSort *sort = external->sort;

	if (gpusort_run_writer_wait(&external->writer, error) != 0)
		return GPUSORT_PROGRESS_FAILED;
	if (external->runs.storage == NULL)
	{
		external->runs.storage =
			gpusort_storage_create(external->means.run_memory, external->means.cpus, external->means.cancelled,
								   external->means.steps, error);
		if (external->runs.storage == NULL)
			return GPUSORT_PROGRESS_FAILED;
		gpusort_storage_set_engine(external->runs.storage, &external->means.handle);
	}
	if (!gpusort_storage_reserve(external->runs.storage, external->put_bytes, lacking))
		return GPUSORT_PROGRESS_LACKS_SPACE;
	if (external->handed_over == 0 && external->put_bytes / 2 >= RUN_BYTES_LEAST)
		external->run_bytes = external->put_bytes / 2;
	external->sort = NULL;
	external->handed_over++;
	external->reserved = false;
	if (gpusort_run_writer_start(&external->writer, sort, external->put_bytes, error) != 0)
		return GPUSORT_PROGRESS_FAILED;
	external->put_bytes = external->put_rows = 0;
	return GPUSORT_PROGRESS_DONE;
}

/* Makes room in the engine for a chunk of so many rows. */
static GpuSortProgress
make_room(GpuSortExternal *external, uint32_t rows, uint64_t *lacking, GpuSortError *error)
{
	int looks = 0;

	for (;;)
	{
		int rc = 0;

		if (external->sort == NULL)
			rc = begin_next(external, error);
		if (rc == 0)
		{
			gpusort_watch_enter(external->means.watch, GPUSORT_CALL_RESERVE);
			rc = external->means.handle.ops->reserve(external->sort, rows, error);
			gpusort_watch_leave(external->means.watch);
			if (rc == 0)
				return GPUSORT_PROGRESS_DONE;
		}
		if (external->sort == NULL || !gpusort_runs_lack_memory(error))
			return GPUSORT_PROGRESS_FAILED;
		if (external->writer.busy)
		{
			if (gpusort_run_writer_wait(&external->writer, error) != 0)
				return GPUSORT_PROGRESS_FAILED;
			continue;
		}
		if (external->put_rows > 0)
		{
			GpuSortProgress progress = hand_over(external, lacking, error);

			if (progress != GPUSORT_PROGRESS_DONE)
				return progress;
			continue;
		}
		/* not even one chunk: others have what it is sure of, for a moment */
		if (await_memory(external, &looks, error) != 0)
			return GPUSORT_PROGRESS_FAILED;
	}
}

/* Returns true if what was put is to be a run, whether or not there is memory for so many rows more. */
static bool
is_run_full(const GpuSortExternal *external, uint32_t rows)
{
	return (external->run_bytes > 0 && external->put_bytes >= external->run_bytes) ||
		external->put_rows + rows > gpusort_run_rows_most(external->rows_in - external->put_rows);
}

/* gpusort_external_put with the lock held. */
static GpuSortProgress
put_chunk(GpuSortExternal *external, const void *chunk, uint32_t rows, uint32_t bytes, uint32_t rows_max,
		  uint64_t *lacking, GpuSortError *error)
{
	int rc;

	if (external->request.spill)
	{
		if (external->put_rows > 0 && is_run_full(external, rows))
		{
			GpuSortProgress progress = hand_over(external, lacking, error);

			if (progress != GPUSORT_PROGRESS_DONE)
				return progress;
		}
		if (external->reserved && rows <= external->reserved_rows)
		{
			rows_max = external->reserved_rows;
			external->reserved = false;
		}
		else
		{
			GpuSortProgress progress = make_room(external, rows, lacking, error);

			if (progress != GPUSORT_PROGRESS_DONE)
				return progress;
			rows_max = rows;
		}
	}
	gpusort_watch_enter(external->means.watch, GPUSORT_CALL_PUT);
	rc = external->means.handle.ops->put(external->sort, chunk, rows, bytes, rows_max, error);
	gpusort_watch_leave(external->means.watch);
	if (rc != 0)
		return GPUSORT_PROGRESS_FAILED;
	external->put_bytes += bytes;
	external->put_rows += rows;
	external->rows_in += rows;
	return GPUSORT_PROGRESS_DONE;
}

/* GpuSortEngineOps.put.  Of a sort that spills it needs no reserve. */
GpuSortProgress
gpusort_external_put(GpuSortExternal *external, const void *chunk, uint32_t rows, uint32_t bytes, uint32_t rows_max,
					 uint64_t *lacking, GpuSortError *error)
{
	GpuSortProgress progress;

	pthread_mutex_lock(&external->lock);
	progress = put_chunk(external, chunk, rows, bytes, rows_max, lacking, error);
	pthread_mutex_unlock(&external->lock);
	return progress;
}

/* More space in a file; see gpusort_storage_add_space.  The descriptor is taken, whatever comes of it. */
int
gpusort_external_add_space(GpuSortExternal *external, uint64_t owner, int descriptor, uint64_t start, uint64_t bytes,
						   GpuSortError *error)
{
	return gpusort_storage_add_space(external->runs.storage, owner, descriptor, start, bytes, error);
}

/* Plans the merge; where partitions begin keys differ in the first so many bits. */
static int
plan_merge(GpuSortExternal *external, uint32_t bits, const GpuSortBorders *like, GpuSortError *error)
{
	gpusort_merge_free(external->merge);
	external->merge = gpusort_merge_create(&external->source, bits, like, error);
	return external->merge != NULL ? 0 : -1;
}

/* GpuSortEngineOps.sort. */
GpuSortProgress
gpusort_external_sort(GpuSortExternal *external, GpuSortOutcome *outcome, uint64_t *lacking, GpuSortError *error)
{
	GpuSortStored stored;
	int rc;

	pthread_mutex_lock(&external->lock);
	external->ingests = false;
	pthread_mutex_unlock(&external->lock);
	if (external->sort == NULL && external->handed_over == 0 && begin_next(external, error) != 0)
		return GPUSORT_PROGRESS_FAILED;
	if (external->handed_over == 0 && !(external->request.spill && external->put_rows > 0 && gpusort_run_rows_are_few()))
	{
		gpusort_watch_enter(external->means.watch, GPUSORT_CALL_SORT);
		rc = external->means.handle.ops->sort(external->sort, outcome, error);
		gpusort_watch_leave(external->means.watch);
		outcome->runs = 0;
		outcome->run_memory = outcome->run_disk = 0;
		external->outcome = *outcome;
		return rc == 0 ? GPUSORT_PROGRESS_DONE : GPUSORT_PROGRESS_FAILED;
	}
	if (external->put_rows > 0)
	{
		GpuSortProgress progress = hand_over(external, lacking, error);

		if (progress != GPUSORT_PROGRESS_DONE)
			return progress;
	}
	if (gpusort_run_writer_wait(&external->writer, error) != 0)
		return GPUSORT_PROGRESS_FAILED;
	if (external->sort != NULL)
		external->means.handle.ops->end(external->sort);
	external->sort = NULL;
	gpusort_storage_finish(external->runs.storage, &stored);
	if (!external->request.shared && plan_merge(external, 64 * external->request.key_words, NULL, error) != 0)
		return GPUSORT_PROGRESS_FAILED;
	external->outcome.sort_ms = external->writer.sort_ms;
	external->outcome.key_bits = external->writer.key_bits;
	external->outcome.packed_bits = external->writer.packed_bits;
	external->outcome.rows_in = external->rows_in;
	external->outcome.rows = external->runs.rows;
	external->outcome.bytes = external->runs.row_bytes;
	external->outcome.runs = external->runs.nruns;
	external->outcome.run_memory = stored.memory;
	external->outcome.run_disk = stored.disk;
	*outcome = external->outcome;
	return GPUSORT_PROGRESS_DONE;
}

/* GpuSortEngineOps.emit. */
int
gpusort_external_emit(GpuSortExternal *external, uint64_t first, uint64_t end, void *chunk, GpuSortEmitted *emitted,
					  GpuSortError *error)
{
	int rc;

	if (external->handed_over == 0)
	{
		gpusort_watch_enter(external->means.watch, GPUSORT_CALL_EMIT);
		rc = external->means.handle.ops->emit(external->sort, first, end, false, chunk, emitted, error);
		gpusort_watch_leave(external->means.watch);
		return rc;
	}
	if (external->merge == NULL && plan_merge(external, 64 * external->request.key_words, NULL, error) != 0)
		return -1;
	return gpusort_merge_emit(external->merge, first, end, chunk, emitted, error);
}

/*
 * Cuts rows into ranges that the first so many bits of keys do not differ in, most at most, as gpusort_ranges_cut
 * does; or where *borders says, if that is not NULL, as gpusort_ranges_cut_like does.
 */
int
gpusort_external_cut(GpuSortExternal *external, uint32_t bits, uint32_t most, uint64_t *first_rows,
					 GpuSortBorders **borders, GpuSortError *error)
{
	int rc;

	if (external->handed_over == 0)
	{
		GpuSortRangeSource sorted = {
			.ops = external->means.handle.ops,
			.sort = external->sort,
			.key_words = external->request.key_words,
			.rows = external->outcome.rows,
		};

		gpusort_watch_enter(external->means.watch, GPUSORT_CALL_CUT);
		if (*borders != NULL)
			rc = gpusort_ranges_cut_like(&sorted, *borders, first_rows, error);
		else
			rc = gpusort_ranges_cut(&sorted, bits, most, first_rows, borders, error);
		gpusort_watch_leave(external->means.watch);
		return rc;
	}
	if (plan_merge(external, *borders != NULL ? (*borders)->bits : bits, *borders, error) != 0 ||
		gpusort_merge_find_rows(external->merge, error) != 0)
		return -1;
	if (*borders != NULL)
		return gpusort_merge_cut_like(external->merge, *borders, first_rows, error);
	return gpusort_merge_cut(external->merge, most, first_rows, borders, error);
}

/* Frees everything; NULL is nothing. */
void
gpusort_external_end(GpuSortExternal *external)
{
	GpuSortError ignored;

	if (external == NULL)
		return;
	gpusort_memory_holder_remove(&external->holder);
	(void) gpusort_run_writer_wait(&external->writer, &ignored);
	gpusort_merge_free(external->merge);
	if (external->sort != NULL)
		external->means.handle.ops->end(external->sort);
	if (external->runs.storage != NULL)
		gpusort_storage_destroy(external->runs.storage);
	gpusort_runs_free(&external->runs);
	pthread_mutex_destroy(&external->lock);
	free(external);
}
