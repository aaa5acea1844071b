/*-------------------------------------------------------------------------
 *
 * merge_load.c
 *	  The threads that load partitions of a merge, ahead of the rows that are given out.
 *
 * A partition that is waited for gets memory before those that will be: these are closed for it.  One that does not
 * fit by itself is cut in two.  What is loaded and idle other sorts may have closed.  Where others keep the memory,
 * partitions become smaller and smaller: those others may wait for this sort's rows, as those above it in a plan do.
 *
 *-------------------------------------------------------------------------
 */
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "service/clock.h"
#include "service/errors.h"
#include "service/external/merge_state.h"
#include "service/memory_share.h"

/* Loaders do not make partitions smaller than this: each takes memory of the engine besides its rows'. */
#define PARTITION_BYTES ((uint64_t) 16 << 20)

/* Waits look for a cancel every so many milliseconds. */
#define LOOK_MS 50

/*
 * Memory that others have is waited for so long before a large partition is cut in two, in such looks; before smaller
 * ones are; and before it is an error.
 */
#define CUT_LOOKS     2
#define SMALLER_LOOKS 5
#define BUSY_LOOKS    1200

/*
 * Other sorts have a partition closed, to have its memory, if no row of it was asked for in so long, in milliseconds.
 */
#define IDLE_MS 250

/* A partition that is not open any more.  With the lock held. */
void
gpusort_merge_close_partition(GpuSortMerge *merge, GpuSortMergePartition *partition)
{
	gpusort_partition_close(&merge->source, partition);
	partition->state = GPUSORT_PARTITION_CLOSED;
	merge->open--;
	merge->no_room = false;
	pthread_cond_broadcast(&merge->change);
}

/* The key that a partition ends before.  Without the lock. */
static const uint64_t *
end_key_of(GpuSortMerge *merge, const GpuSortMergePartition *partition)
{
	const uint64_t *key;

	pthread_mutex_lock(&merge->lock);
	key = gpusort_merge_end_key(merge, gpusort_merge_place_of(merge, partition));
	pthread_mutex_unlock(&merge->lock);
	return key;
}

/* Which partition is to be loaded now: one that is waited for, or one that will be; NULL: none.  With the lock held. */
static GpuSortMergePartition *
choose_partition(const GpuSortMerge *merge)
{
	const GpuSortMergePartition *from = merge->wanted != NULL ? merge->wanted : merge->latest;
	uint64_t limit = merge->source.request->limit;

	/* one without rows is closed when it was loaded, and waited for until the sort's thread sees that */
	if (merge->wanted != NULL && merge->wanted->state == GPUSORT_PARTITION_CLOSED && merge->wanted->rows != 0)
		return merge->wanted;
	if (from == NULL || merge->no_room || merge->open >= merge->capacity)
		return NULL;
	for (uint32_t at = gpusort_merge_place_of(merge, from) + 1, ahead = 1;
		 at < merge->count && ahead < merge->capacity; at++, ahead++)
	{
		GpuSortMergePartition *partition = merge->partitions[at];

		if (limit > 0 && (partition->first_row == GPUSORT_ROWS_UNKNOWN || partition->first_row >= limit))
			return NULL;
		if (partition->state == GPUSORT_PARTITION_CLOSED && partition->rows != 0)
			return partition;
	}
	return NULL;
}

/* Closes an open partition that is not needed now; false if there is none.  With the lock held. */
static bool
evict(GpuSortMerge *merge)
{
	for (uint32_t at = merge->count; at-- > 0;)
	{
		GpuSortMergePartition *partition = merge->partitions[at];

		if (partition->state == GPUSORT_PARTITION_OPEN && partition != merge->emitted && partition != merge->wanted &&
			partition->rows > 0)
		{
			gpusort_merge_close_partition(merge, partition);
			return true;
		}
	}
	return false;
}

/*
 * Closes all open partitions that rows are not being given out of;
 * returns true if there were any.  With the lock held.
 */
static bool
close_idle(GpuSortMerge *merge)
{
	double now = gpusort_clock_ms();
	bool closed = false;

	for (uint32_t at = 0; at < merge->count; at++)
	{
		GpuSortMergePartition *partition = merge->partitions[at];

		if (partition->state == GPUSORT_PARTITION_OPEN && partition != merge->emitted && partition != merge->wanted &&
			(partition->emitted == 0 || now - partition->used >= IDLE_MS))
		{
			gpusort_merge_close_partition(merge, partition);
			closed = true;
		}
	}
	/* or it would be loaded again at once */
	merge->no_room |= closed;
	return closed;
}

/* GpuSortMemoryHolder.reclaim: closes what was loaded ahead, and what nobody has asked for rows of lately. */
static bool
reclaim(GpuSortMemoryHolder *holder)
{
	GpuSortMerge *merge = (GpuSortMerge *) ((char *) holder - offsetof(GpuSortMerge, holder));
	bool closed;

	if (pthread_mutex_trylock(&merge->lock) != 0)
		return false;
	closed = close_idle(merge);
	pthread_mutex_unlock(&merge->lock);
	return closed;
}

/* Waits for a change, not for long.  With the lock held. */
void
gpusort_merge_wait(GpuSortMerge *merge)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += LOOK_MS * 1000000;
	if (until.tv_nsec >= 1000000000)
	{
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	(void) pthread_cond_timedwait(&merge->change, &merge->lock, &until);
}

/*
 * Whether a partition that is waited for is to be cut in two, as there is no memory for it; others have had it for so
 * many looks.
 */
static bool
is_to_be_cut(const GpuSortMerge *merge, const GpuSortMergePartition *partition, const GpuSortError *error, int looks)
{
	if (partition->loaded <= 1)
		return false;
	if (error->reason != GPUSORT_REASON_MEMORY_BUSY)
		return true;
	return looks >= CUT_LOOKS && partition->bytes > merge->busy_bytes;
}

/* Cuts a partition in two that does not fit into the memory; it is waited for, so that its first row is known. */
static int
split(GpuSortMergeLoader *loader, GpuSortMergePartition *partition, GpuSortError *error)
{
	GpuSortMerge *merge = loader->merge;
	uint32_t words = merge->source.request->key_words;
	uint64_t key[GPUSORT_MAX_KEY_WORDS];
	uint64_t rows_below = 0;
	bool single;
	int rc;

	if (gpusort_partition_middle_key(&loader->source, partition, end_key_of(merge, partition), &loader->memory, key,
									 &single, error) != 0 ||
		(!single && gpusort_merge_rows_below(merge, key, loader->memory.scratch, &rows_below, error) != 0))
		return -1;
	pthread_mutex_lock(&merge->lock);
	if (single)
	{
		partition->only_key = malloc(words * sizeof(uint64_t));
		if (partition->only_key != NULL)
			memcpy(partition->only_key, key, words * sizeof(uint64_t));
		rc = partition->only_key != NULL ? 0 : gpusort_error_memory(error);
	}
	else
	{
		uint32_t at = gpusort_merge_place_of(merge, partition);

		rc = gpusort_merge_insert(merge, at + 1, key, error);
		if (rc == 0)
		{
			GpuSortMergePartition *upper = merge->partitions[at + 1];

			upper->first_row = rows_below;
			if (partition->rows != GPUSORT_ROWS_UNKNOWN)
				upper->rows = partition->first_row + partition->rows - rows_below;
			partition->rows = rows_below - partition->first_row;
		}
	}
	pthread_mutex_unlock(&merge->lock);
	return rc;
}

/*
 * Loads a partition, which is LOADING.  Returns LOAD_NO_ROOM if it was only to be loaded ahead, or was cut in two:
 * it is CLOSED again then.  Without the lock.
 */
static GpuSortLoad
load(GpuSortMergeLoader *loader, GpuSortMergePartition *partition, GpuSortError *error)
{
	GpuSortMerge *merge = loader->merge;

	for (int looks = 0;;)
	{
		GpuSortLoad result =
			gpusort_partition_load(&loader->source, partition, end_key_of(merge, partition), &loader->memory, error);
		bool evicted;
		bool is_wanted;

		if (result == GPUSORT_LOAD_DONE)
			return result;
		gpusort_partition_close(&loader->source, partition);
		if (result == GPUSORT_LOAD_FAILED || __atomic_load_n(merge->source.cancelled, __ATOMIC_RELAXED))
			return GPUSORT_LOAD_FAILED;

		pthread_mutex_lock(&merge->lock);
		is_wanted = merge->wanted == partition;
		evicted = is_wanted && evict(merge);
		if (is_wanted && !evicted && merge->loading > 1)
		{
			/* what others load can be closed when they have */
			gpusort_merge_wait(merge);
			evicted = true;
		}
		/* or others would load ahead again with what was set free */
		merge->no_room |= is_wanted;
		pthread_mutex_unlock(&merge->lock);
		if (evicted)
			continue;
		if (!is_wanted)
			return GPUSORT_LOAD_NO_ROOM;
		if (error->reason == GPUSORT_REASON_MEMORY_BUSY && gpusort_memory_reclaim(&merge->holder))
			continue;
		if (is_to_be_cut(merge, partition, error, looks))
			return split(loader, partition, error) == 0 ? GPUSORT_LOAD_NO_ROOM : GPUSORT_LOAD_FAILED;
		if (error->reason != GPUSORT_REASON_MEMORY_BUSY || ++looks == BUSY_LOOKS)
			return GPUSORT_LOAD_FAILED;
		if (looks % SMALLER_LOOKS == 0)
			merge->busy_bytes /= 2;
		pthread_mutex_lock(&merge->lock);
		gpusort_merge_wait(merge);
		pthread_mutex_unlock(&merge->lock);
	}
}

static void *
loader_main(void *arg)
{
	GpuSortMergeLoader *loader = arg;
	GpuSortMerge *merge = loader->merge;

	pthread_mutex_lock(&merge->lock);
	while (!merge->closing && !merge->failed)
	{
		GpuSortMergePartition *partition = choose_partition(merge);
		GpuSortError error = {.reason = GPUSORT_REASON_NONE};
		GpuSortLoad result;
		bool was_wanted;

		if (partition == NULL)
		{
			pthread_cond_wait(&merge->change, &merge->lock);
			continue;
		}
		partition->state = GPUSORT_PARTITION_LOADING;
		merge->open++;
		merge->loading++;
		was_wanted = merge->wanted == partition;
		pthread_mutex_unlock(&merge->lock);
		result = load(loader, partition, &error);
		pthread_mutex_lock(&merge->lock);
		merge->loading--;
		if (result == GPUSORT_LOAD_DONE && partition->rows != GPUSORT_ROWS_UNKNOWN && partition->rows != partition->loaded)
		{
			gpusort_partition_close(&merge->source, partition);
			result = gpusort_runs_damaged(&error);
		}
		if (result == GPUSORT_LOAD_DONE)
		{
			partition->state = GPUSORT_PARTITION_OPEN;
			partition->rows = partition->loaded;
			gpusort_merge_note_rows(merge, gpusort_merge_place_of(merge, partition));
			if (partition->rows == 0)
				gpusort_merge_close_partition(merge, partition);
		}
		else
		{
			partition->state = GPUSORT_PARTITION_CLOSED;
			merge->open--;
			merge->no_room |= result == GPUSORT_LOAD_NO_ROOM && !was_wanted;
			if (result == GPUSORT_LOAD_FAILED && !merge->failed)
			{
				merge->failed = true;
				merge->error = error;
			}
		}
		pthread_cond_broadcast(&merge->change);
	}
	pthread_mutex_unlock(&merge->lock);
	return NULL;
}

/* Makes what loaders need, but for their threads. */
int
gpusort_merge_make_loaders(GpuSortMerge *merge, GpuSortError *error)
{
	for (uint32_t i = 0; i < merge->nloaders; i++)
	{
		GpuSortMergeLoader *loader = &merge->loaders[i];

		loader->merge = merge;
		loader->source = merge->source;
		loader->source.watch = merge->source.watch + i;
		loader->chunk = gpusort_chunk_buffer_get(merge->source.handle);
		loader->memory = (GpuSortLoadMemory){.chunk = loader->chunk.start, .scratch = malloc(GPUSORT_CHUNK_BYTES)};
		if (loader->memory.chunk == NULL || loader->memory.scratch == NULL)
			return gpusort_error_memory(error);
	}
	return 0;
}

/* How many loaders there are to be where a run, and so the memory, has so many bytes. */
uint32_t
gpusort_merge_choose_loaders(int cpus, uint64_t bytes)
{
	uint32_t loaders = ((uint32_t) cpus + 1) / 2;
	uint64_t partitions = bytes / PARTITION_BYTES;
	uint64_t most = partitions > PARTITIONS_BESIDE ? partitions - PARTITIONS_BESIDE : 1;

	if (loaders > GPUSORT_JOB_LOADERS)
		loaders = GPUSORT_JOB_LOADERS;
	return loaders < most ? loaders : (uint32_t) most;
}

/* Starts the loaders, or as many as there can be; from then on other sorts may have partitions closed. */
int
gpusort_merge_start_loaders(GpuSortMerge *merge, GpuSortError *error)
{
	if (merge->started > 0)
		return 0;
	while (merge->started < merge->nloaders &&
		   pthread_create(&merge->loaders[merge->started].thread, NULL, loader_main, &merge->loaders[merge->started]) == 0)
		merge->started++;
	if (merge->started > 0)
	{
		merge->holder.reclaim = reclaim;
		gpusort_memory_holder_add(&merge->holder);
		return 0;
	}
	*error = (GpuSortError){.reason = GPUSORT_REASON_NO_MEMORY, .text = "the sort service could not start a thread"};
	return -1;
}

/* Ends the loaders; engine calls of theirs end first, soon if the sort was cancelled. */
void
gpusort_merge_end_loaders(GpuSortMerge *merge)
{
	pthread_mutex_lock(&merge->lock);
	merge->closing = true;
	pthread_cond_broadcast(&merge->change);
	pthread_mutex_unlock(&merge->lock);
	for (uint32_t i = 0; i < merge->started; i++)
		pthread_join(merge->loaders[i].thread, NULL);
	for (uint32_t i = 0; i < merge->nloaders; i++)
	{
		gpusort_chunk_buffer_put(merge->source.handle, &merge->loaders[i].chunk);
		free(merge->loaders[i].memory.scratch);
	}
}
