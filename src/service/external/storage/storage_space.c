/*-------------------------------------------------------------------------
 *
 * storage_space.c
 *	  Where runs are kept; how a storage begins and ends.
 *
 * A run goes to the host's memory if the account there has room for all of its
 * records, else to files if there is space for all of them, as they are: what
 * compression saves is there for the next run.  So nothing that was reserved runs
 * out of space while it is written, but for the file system's own.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "service/external/storage/storage_state.h"
#include "service/errors.h"

/* What is asked for is whole ones of these. */
#define SPACE_UNIT ((uint64_t) 1 << 20)

#define ROUND_UP(n, unit) (((n) + (unit) -1) / (unit) * (unit))

/*
 * A storage for one sort; the caller destroys it.  memory: the account for runs in the
 * host's memory, or NULL for files alone.  cpus: that the process may use.  *cancelled is read with __atomic_load_n
 * until destroy: not 0 asks every call to return soon with an error.  *steps is counted up for each read.
 */
GpuSortStorage *
gpusort_storage_create(GpuSortHostMemory *memory, int cpus, const int *cancelled, uint32_t *steps,
					   GpuSortError *error)
{
	GpuSortStorage *storage = calloc(1, sizeof(GpuSortStorage));

	error->system_error = 0;
	if (storage == NULL)
	{
		(void) gpusort_error_memory(error);
		return NULL;
	}
	storage->memory = memory;
	storage->cpus = cpus;
	if (memory != NULL)
		gpusort_host_memory_begin(memory);
	storage->cancelled = cancelled;
	storage->steps = steps;
	pthread_mutex_init(&storage->lock, NULL);
	pthread_cond_init(&storage->arrived, NULL);
	pthread_cond_init(&storage->written, NULL);
	return storage;
}

/* Takes back a charge. */
static void
discharge(GpuSortStorage *storage, uint64_t bytes)
{
	gpusort_host_memory_discharge(storage->memory, bytes, storage->charged);
	storage->charged -= bytes;
}

/* Gives a part of a run's memory back, from a page on to its end. */
static void
cut_run(GpuSortStorage *storage, GpuSortRunMemory *run, uint64_t keep)
{
	uint64_t bytes = run->bytes - keep;

	if (bytes == 0)
		return;
	gpusort_host_memory_put(storage->memory, run->start + keep, bytes);
	discharge(storage, bytes);
	run->bytes = keep;
}

/* Ends a storage, and what it is doing, closes its files and gives its memory back. */
void
gpusort_storage_destroy(GpuSortStorage *storage)
{
	gpusort_storage_stop_writers(storage);
	while (storage->scratch != NULL)
	{
		GpuSortSpare *scratch = storage->scratch;

		storage->scratch = scratch->next;
		munmap(scratch, GPUSORT_CHUNK_BYTES);
	}
	for (uint32_t i = 0; i < storage->nruns; i++)
		cut_run(storage, &storage->runs[i], 0);
	if (storage->memory != NULL)
		gpusort_host_memory_end(storage->memory);
	free(storage->runs);
	gpusort_file_space_close(&storage->space);
	pthread_cond_destroy(&storage->written);
	pthread_cond_destroy(&storage->arrived);
	pthread_mutex_destroy(&storage->lock);
	free(storage);
}

/*
 * Adds space in a file of an owner: so many bytes from start on, behind what the owner
 * gave before.  The descriptor comes with an owner's first and belongs to the storage
 * from then on, also where this fails; else it is -1.  Fails with INTERNAL if there is
 * something wrong with it.
 */
int
gpusort_storage_add_space(GpuSortStorage *storage, uint64_t owner, int descriptor, uint64_t start, uint64_t bytes,
						  GpuSortError *error)
{
	int rc;

	pthread_mutex_lock(&storage->lock);
	rc = gpusort_file_space_add(&storage->space, owner, descriptor, start, bytes, error);
	pthread_mutex_unlock(&storage->lock);
	return rc;
}

/* Takes memory for a run of so many bytes, in one piece; false if there is not enough. */
static bool
take_memory(GpuSortStorage *storage, uint64_t bytes)
{
	GpuSortRunMemory *runs;
	GpuSortError error;
	char *start;

	if (storage->memory == NULL)
		return false;
	bytes = ROUND_UP(bytes, GPUSORT_HOST_PAGE_BYTES);
	runs = realloc(storage->runs, (storage->nruns + 1) * sizeof(GpuSortRunMemory));
	if (runs == NULL)
		return false;
	storage->runs = runs;
	if (gpusort_host_memory_charge(storage->memory, bytes, storage->charged, &error) != 0)
		return false;
	storage->charged += bytes;
	start = gpusort_host_memory_get(storage->memory, bytes, &error);
	if (start == NULL)
	{
		discharge(storage, bytes);
		return false;
	}
	storage->runs[storage->nruns++] = (GpuSortRunMemory){.start = start, .bytes = bytes};
	return true;
}

/*
 * Makes sure that a run of so many bytes of records can be written; false, with the
 * bytes in files that it takes for that in *lacking, if it cannot yet.  What an earlier
 * call has reserved is gone, unless a run was finished in between.
 */
bool
gpusort_storage_reserve(GpuSortStorage *storage, uint64_t bytes, uint64_t *lacking)
{
	uint64_t left;

	*lacking = 0;
	if (storage->has_run)
		cut_run(storage, &storage->runs[--storage->nruns], 0);
	storage->has_run = bytes > 0 && take_memory(storage, bytes);
	pthread_mutex_lock(&storage->lock);
	storage->run_next = NULL;
	storage->run_end = NULL;
	if (storage->has_run)
	{
		const GpuSortRunMemory *run = &storage->runs[storage->nruns - 1];

		storage->run_next = run->start;
		storage->run_end = run->start + run->bytes;
	}
	left = gpusort_file_space_left(&storage->space);
	pthread_mutex_unlock(&storage->lock);
	if (storage->has_run || left >= bytes)
		return true;
	*lacking = ROUND_UP(bytes - left + GPUSORT_FILE_SLACK, SPACE_UNIT);
	return false;
}

/* Whose chunks the buffers are for; it outlives the storage.  Before the first buffer is asked for. */
void
gpusort_storage_set_engine(GpuSortStorage *storage, const GpuSortEngineHandle *handle)
{
	storage->handle = handle;
}

/* When runs in files are compressed; AUTO until then.  Before anything is written. */
void
gpusort_storage_set_compression(GpuSortStorage *storage, GpuSortCompressionMode mode)
{
	storage->compression.mode = mode;
}

/*
 * Waits until all of a run is written; after it its blocks can be read.  Fails with the
 * first error since create: STORAGE if it is a file's.
 */
int
gpusort_storage_finish_run(GpuSortStorage *storage, GpuSortError *error)
{
	char *used_end;
	int rc = 0;

	pthread_mutex_lock(&storage->lock);
	while (storage->waiting + storage->writing > 0)
		pthread_cond_wait(&storage->written, &storage->lock);
	used_end = storage->run_next;
	storage->run_next = NULL;
	storage->run_end = NULL;
	if (storage->failed)
	{
		*error = storage->error;
		rc = -1;
	}
	pthread_mutex_unlock(&storage->lock);

	if (storage->has_run)
	{
		GpuSortRunMemory *run = &storage->runs[storage->nruns - 1];

		cut_run(storage, run, ROUND_UP((uint64_t) (used_end - run->start), GPUSORT_HOST_PAGE_BYTES));
		storage->has_run = false;
	}
	return rc;
}

/* All runs are written: gives back what only writing needs, and tells what is kept. */
void
gpusort_storage_finish(GpuSortStorage *storage, GpuSortStored *stored)
{
	gpusort_storage_stop_writers(storage);
	pthread_mutex_lock(&storage->lock);
	gpusort_file_space_trim(&storage->space);
	*stored = storage->stored;
	pthread_mutex_unlock(&storage->lock);
}
