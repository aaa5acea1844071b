/*-------------------------------------------------------------------------
 *
 * merge.c
 *	  Sorted runs as one order of rows, given out by partitions of their keys.
 *
 * Keys are cut into partitions, each small enough that several fit into the memory, at keys that
 * blocks of the runs begin with: those are known, and tell how many bytes are between them but
 * for a block of each run.  A partition is loaded when rows of it are asked for, by a thread of its
 * own, which then goes on with those that will be asked for next while rows are given out.
 *
 * One that does not fit after all is cut again in the middle of its keys.  As memory is shared
 * with other sorts, what fits may change from one partition to the next.  A sort that waits for
 * memory has other merges close what they do not need just now: a cursor may be left where it is
 * for as long as its user likes.
 *
 * THREADS
 *	Loaders open partitions; the sort's thread, which calls the functions here, closes them when their
 *	last row was given out.  A loader may also close one that it needs the memory of, unless rows are
 *	just being given out of it, and so may other sorts' threads.  A partition is its loader's while LOADING,
 *	and so is what follows it in the list, for nobody else cuts it in two; the rest is under the lock.
 *
 *-------------------------------------------------------------------------
 */
#include "service/external/merge_state.h"
#include "service/memory_share.h"

#include <stdlib.h>

#include "service/clock.h"
#include "service/errors.h"

/* More readers than so many share what is open. */
#define READERS_MAX 64

/*
 * Plans how sorted runs are merged: partitions begin at keys that differ in the first so many bits, and, with
 * like, where those borders are.  NULL: it cannot be, *error tells.
 */
GpuSortMerge *
gpusort_merge_create(const GpuSortMergeSource *source, uint32_t bits, const GpuSortBorders *like, GpuSortError *error)
{
	GpuSortMerge *merge = calloc(1, sizeof(GpuSortMerge));
	uint32_t readers = source->request->shared ? source->request->readers : 0;
	pthread_condattr_t attributes;

	if (merge == NULL)
	{
		(void) gpusort_error_memory(error);
		return NULL;
	}
	if (readers > READERS_MAX)
		readers = READERS_MAX;
	merge->source = *source;
	merge->bits = bits;
	merge->nloaders = gpusort_merge_choose_loaders(source->cpus, source->runs->largest);
	merge->busy_bytes = GPUSORT_SHARE_SURE / 4;
	merge->capacity = merge->nloaders + PARTITIONS_BESIDE;
	if (readers > merge->capacity - PARTITIONS_BESIDE)
		merge->capacity = readers + PARTITIONS_BESIDE;
	pthread_mutex_init(&merge->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&merge->change, &attributes);
	pthread_condattr_destroy(&attributes);
	if (gpusort_merge_make_loaders(merge, error) != 0 ||
		gpusort_merge_plan(merge, source->runs->largest / merge->capacity, like, error) != 0)
	{
		gpusort_merge_free(merge);
		return NULL;
	}
	return merge;
}

/* The last partition that is known to begin at a row or before.  With the lock held. */
static uint32_t
find_known(const GpuSortMerge *merge, uint64_t row)
{
	uint32_t at = merge->count - 1;

	while (merge->partitions[at]->first_row == GPUSORT_ROWS_UNKNOWN || merge->partitions[at]->first_row > row)
		at--;
	return at;
}

/*
 * Finds out which partition has a row, where it is not the next one of those that are known: by what is below the
 * keys that partitions begin with, without loading those before it.
 */
static int
find_row(GpuSortMerge *merge, uint64_t row, GpuSortError *error)
{
	char *buffer = NULL;
	int rc = 0;

	pthread_mutex_lock(&merge->lock);
	while (rc == 0)
	{
		uint32_t low = find_known(merge, row);
		uint32_t high = low + 1;
		GpuSortMergePartition *middle;
		uint64_t rows_below;

		if (merge->partitions[low]->first_row == row || merge->partitions[low]->rows != GPUSORT_ROWS_UNKNOWN)
			break;
		while (high < merge->count && merge->partitions[high]->first_row == GPUSORT_ROWS_UNKNOWN)
			high++;
		if (high - low == 1)
			break;
		middle = merge->partitions[low + (high - low) / 2];
		pthread_mutex_unlock(&merge->lock);
		if (buffer == NULL)
			buffer = malloc(2 * GPUSORT_CHUNK_BYTES);
		rc = buffer != NULL ? gpusort_merge_rows_below(merge, middle->first_key, buffer, &rows_below, error)
							: gpusort_error_memory(error);
		pthread_mutex_lock(&merge->lock);
		if (rc == 0)
		{
			middle->first_row = rows_below;
			gpusort_merge_note_rows(merge, gpusort_merge_place_of(merge, middle)); /* it may have been loaded ahead */
		}
	}
	pthread_mutex_unlock(&merge->lock);
	free(buffer);
	return rc;
}

/*
 * The partition that has a row, if that is known;
 * NULL and *unknown, the first of which it is not.  With the lock held.
 */
static GpuSortMergePartition *
find_partition(const GpuSortMerge *merge, uint64_t row, GpuSortMergePartition **unknown)
{
	GpuSortMergePartition *known = merge->partitions[find_known(merge, row)];

	*unknown = known->rows == GPUSORT_ROWS_UNKNOWN ? known : NULL;
	return *unknown == NULL && row - known->first_row < known->rows ? known : NULL;
}

/* Waits until the partition that has a row is open; NULL: it cannot be, *error tells.  With the lock held. */
static GpuSortMergePartition *
open_partition(GpuSortMerge *merge, uint64_t row, GpuSortError *error)
{
	GpuSortMergePartition *unknown;
	GpuSortMergePartition *partition;

	for (;;)
	{
		partition = find_partition(merge, row, &unknown);
		if (partition == NULL && unknown == NULL)
		{
			(void) gpusort_runs_damaged(error);
			break;
		}
		if (partition != NULL && partition->state == GPUSORT_PARTITION_OPEN)
			break;
		if (merge->failed || __atomic_load_n(merge->source.cancelled, __ATOMIC_RELAXED))
		{
			if (merge->failed)
				*error = merge->error;
			else
				(void) gpusort_error_cancelled(error);
			partition = NULL;
			break;
		}
		if (merge->wanted != (partition != NULL ? partition : unknown))
		{
			merge->wanted = partition != NULL ? partition : unknown;
			pthread_cond_broadcast(&merge->change);
		}
		gpusort_merge_wait(merge);
	}
	merge->wanted = NULL;
	return partition;
}

/* Fills a chunk with rows from number first on, as GpuSortEngineOps.emit does. */
int
gpusort_merge_emit(GpuSortMerge *merge, uint64_t first, uint64_t end, char *chunk, GpuSortEmitted *emitted,
				   GpuSortError *error)
{
	GpuSortMergePartition *partition;
	uint64_t own_end;
	int rc;

	if (find_row(merge, first, error) != 0 || gpusort_merge_start_loaders(merge, error) != 0)
		return -1;
	pthread_mutex_lock(&merge->lock);
	partition = open_partition(merge, first, error);
	if (partition == NULL)
	{
		pthread_mutex_unlock(&merge->lock);
		return -1;
	}
	merge->emitted = partition;
	if (merge->latest != partition)
	{
		if (merge->latest == NULL ||
			gpusort_merge_place_of(merge, partition) > gpusort_merge_place_of(merge, merge->latest) ||
			!merge->source.request->shared)
			merge->latest = partition;
		merge->no_room = false;
		pthread_cond_broadcast(&merge->change);
	}
	own_end = end - partition->first_row < partition->rows ? end - partition->first_row : partition->rows;
	pthread_mutex_unlock(&merge->lock);

	rc = gpusort_partition_emit(&merge->source, partition, first - partition->first_row, own_end, chunk, emitted, error);
	if (rc == 0)
		emitted->last = first + emitted->rows == end;

	pthread_mutex_lock(&merge->lock);
	merge->emitted = NULL;
	partition->used = gpusort_clock_ms();
	if (partition->emitted >= partition->rows)
		gpusort_merge_close_partition(merge, partition);
	pthread_mutex_unlock(&merge->lock);
	return rc;
}

void
gpusort_merge_free(GpuSortMerge *merge)
{
	if (merge == NULL)
		return;
	if (merge->started > 0)
		gpusort_memory_holder_remove(&merge->holder);
	gpusort_merge_end_loaders(merge);
	for (uint32_t at = 0; at < merge->count; at++)
	{
		GpuSortMergePartition *partition = merge->partitions[at];

		if (partition->state == GPUSORT_PARTITION_OPEN)
			gpusort_partition_close(&merge->source, partition);
		free(partition->first_key);
		free(partition->only_key);
		free(partition);
	}
	free(merge->partitions);
	pthread_cond_destroy(&merge->change);
	pthread_mutex_destroy(&merge->lock);
	free(merge);
}
