/*-------------------------------------------------------------------------
 *
 * runs.c
 *	  Sorted runs of records, in blocks, and where keys are in them.
 *
 * A run is what an engine has sorted when its memory was full: the records, in order, cut
 * into blocks.  Of each block the key of its first record stays in memory, a hundredth of a
 * per cent of the rows; what is between two of them is found by reading a block.
 *
 * Runs are numbered as their rows were put, and each was sorted stably: of two equal keys the
 * one in the lower run, or earlier in the same run, was put first.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/external/run_rows.h"
#include "service/external/runs.h"

/* What was read is not what a run can be. */
int
gpusort_runs_damaged(GpuSortError *error)
{
	*error = (GpuSortError){.reason = GPUSORT_REASON_STORAGE, .text = "a run of sorted rows is damaged: records are not what was written"};
	return -1;
}

int
gpusort_runs_no_memory(GpuSortError *error)
{
	*error = (GpuSortError){.reason = GPUSORT_REASON_NO_MEMORY, .text = "the sort service has no memory left"};
	return -1;
}

int
gpusort_runs_cancelled(GpuSortError *error)
{
	*error = (GpuSortError){.reason = GPUSORT_REASON_INTERNAL, .text = "the sort was cancelled"};
	return -1;
}

/* Blocks of a run: so many, if they are neither very small nor too large. */
#define RUN_BLOCKS      512
#define BLOCK_BYTES_MIN ((uint64_t) 16 << 10)
#define BLOCK_BYTES_FEW ((uint64_t) 1 << 10) /* the least where runs are of few rows */

/*
 * How large the blocks of a run of so many bytes are: each border between partitions costs a block of each
 * run to read, and runs are as small as the memory is.
 */
static uint32_t
choose_block_bytes(uint64_t bytes)
{
	uint64_t chosen = bytes / RUN_BLOCKS;
	uint64_t least = gpusort_run_rows_are_few() ? BLOCK_BYTES_FEW : BLOCK_BYTES_MIN;

	if (chosen < least)
		return least;
	return chosen < GPUSORT_BLOCK_BYTES ? chosen : GPUSORT_BLOCK_BYTES;
}

/* Blocks that so many bytes of records take at most: two neighbours in a buffer, or two buffers, are more than one full. */
static uint64_t
blocks_most(uint64_t bytes, uint32_t block_bytes)
{
	return 2 * (bytes / block_bytes) + 2 * (bytes / (GPUSORT_CHUNK_BYTES / 2)) + 8;
}

/* Adds a run without blocks, with room for so many; NULL: there is no memory. */
static GpuSortRun *
add_run(GpuSortRuns *runs, uint64_t blocks)
{
	GpuSortRun *run;

	if (blocks > UINT32_MAX)
		return NULL;
	if (runs->nruns == runs->room)
	{
		uint32_t room = runs->room > 0 ? 2 * runs->room : 16;
		GpuSortRun *moved = realloc(runs->runs, room * sizeof(GpuSortRun));

		if (moved == NULL)
			return NULL;
		runs->runs = moved;
		runs->room = room;
	}
	run = &runs->runs[runs->nruns];
	*run = (GpuSortRun){
		.blocks = calloc(blocks, sizeof(GpuSortRunBlock)),
		.first_keys = malloc(blocks * runs->key_words * sizeof(uint64_t)),
		.rows_before = malloc(blocks * sizeof(uint64_t))};
	runs->nruns++;
	return run->blocks != NULL && run->first_keys != NULL && run->rows_before != NULL ? run : NULL;
}

/* Cuts a buffer of so many rows and bytes into blocks, behind those that the run has; fails if they are not. */
static int
cut_blocks(const GpuSortRuns *runs, GpuSortRun *run, const char *buffer, const GpuSortEmitted *emitted, uint64_t room,
		   uint32_t block_bytes, GpuSortError *error)
{
	GpuSortRunBlock *block = NULL;
	uint32_t rows = 0;

	for (uint32_t at = 0; at < emitted->bytes;)
	{
		uint32_t bytes = gpusort_record_bytes(buffer + at, runs->key_words, emitted->bytes - at);

		if (bytes == 0)
			return gpusort_runs_damaged(error);
		if (block == NULL || block->bytes + bytes > block_bytes)
		{
			if (run->nblocks == room)
				return gpusort_runs_damaged(error);
			memcpy(run->first_keys + (size_t) run->nblocks * runs->key_words, buffer + at,
				   runs->key_words * sizeof(uint64_t));
			run->rows_before[run->nblocks] = run->rows + rows;
			block = &run->blocks[run->nblocks++];
		}
		block->bytes += bytes;
		block->rows++;
		rows++;
		at += bytes;
	}
	return rows == emitted->rows && rows > 0 ? 0 : gpusort_runs_damaged(error);
}

/* Gives back what a run's blocks do not take of the memory for them; they are not moved about any more. */
static void
shrink_run(GpuSortRun *run, uint32_t key_words)
{
	void *blocks = realloc(run->blocks, run->nblocks * sizeof(GpuSortRunBlock));
	void *keys = realloc(run->first_keys, (size_t) run->nblocks * key_words * sizeof(uint64_t));
	void *rows = realloc(run->rows_before, run->nblocks * sizeof(uint64_t));

	if (blocks != NULL)
		run->blocks = blocks;
	if (keys != NULL)
		run->first_keys = keys;
	if (rows != NULL)
		run->rows_before = rows;
}

/*
 * Writes the sorted rows of an engine's sort as the next run; so many, whose records are so many bytes at
 * most, for which the storage has room.
 */
int
gpusort_runs_write(GpuSortRuns *runs, const GpuSortEngineOps *ops, GpuSort *sort, uint64_t rows, uint64_t bytes,
				   const int *cancelled, GpuSortError *error)
{
	uint32_t block_bytes = choose_block_bytes(bytes);
	uint64_t room = blocks_most(bytes, block_bytes);
	GpuSortRun *run = add_run(runs, room);
	int rc = run != NULL ? 0 : gpusort_runs_no_memory(error);
	GpuSortError write_error;

	for (uint64_t row = 0; rc == 0 && row < rows;)
	{
		GpuSortEmitted emitted;
		uint32_t first_block = run->nblocks;
		char *buffer = gpusort_storage_buffer(runs->storage, error);

		if (buffer == NULL)
		{
			rc = -1;
			break;
		}
		if (__atomic_load_n(cancelled, __ATOMIC_RELAXED))
			rc = gpusort_runs_cancelled(error);
		else
			rc = ops->emit(sort, row, rows, true, buffer, &emitted, error);
		if (rc == 0)
			rc = cut_blocks(runs, run, buffer, &emitted, room, block_bytes, error);
		gpusort_storage_write(runs->storage, buffer, run->blocks + first_block, rc == 0 ? run->nblocks - first_block : 0);
		if (rc == 0)
		{
			row += emitted.rows;
			run->rows += emitted.rows;
			run->bytes += emitted.bytes;
		}
	}

	/* The blocks are the storage's until then, whatever went wrong. */
	if (gpusort_storage_finish_run(runs->storage, &write_error) != 0 && rc == 0)
	{
		*error = write_error;
		rc = -1;
	}
	if (rc != 0)
		return -1;
	shrink_run(run, runs->key_words);
	runs->rows += run->rows;
	runs->record_bytes += run->bytes;
	runs->row_bytes += run->bytes - run->rows * runs->key_words * sizeof(uint64_t);
	if (run->bytes > runs->largest)
		runs->largest = run->bytes;
	return 0;
}

/* The number of blocks of a run that begin with a key below this one. */
static uint32_t
blocks_below(const GpuSortRun *run, const uint64_t *key, uint32_t key_words)
{
	uint32_t low = 0;
	uint32_t high = run->nblocks;

	while (low < high)
	{
		uint32_t middle = low + (high - low) / 2;

		if (gpusort_compare_keys(run->first_keys + (size_t) middle * key_words, key, key_words) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/*
 * Finds the place in a run of the first record that is not below a key.  scratch is room for a block, of
 * GPUSORT_CHUNK_BYTES.  Reads one block at most.
 */
int
gpusort_runs_find(const GpuSortRuns *runs, uint32_t number, const uint64_t *key, char *scratch, GpuSortRunPlace *place,
				  GpuSortError *error)
{
	const GpuSortRun *run = &runs->runs[number];
	uint32_t below = blocks_below(run, key, runs->key_words);
	const GpuSortRunBlock *block;
	uint32_t at = 0;
	uint32_t row = 0;

	*place = (GpuSortRunPlace){0, 0, 0};
	if (below == 0)
		return 0;
	block = &run->blocks[below - 1];
	if (block->rows > 1)
	{
		if (gpusort_storage_read(runs->storage, block, 1, scratch, error) != 0)
			return -1;
		while (at < block->bytes && gpusort_compare_keys((const uint64_t *) (scratch + at), key, runs->key_words) < 0)
		{
			uint32_t bytes = gpusort_record_bytes(scratch + at, runs->key_words, block->bytes - at);

			if (bytes == 0 || row == block->rows)
				return gpusort_runs_damaged(error);
			at += bytes;
			row++;
		}
	}
	if (block->rows == 1 || at == block->bytes)
		*place = (GpuSortRunPlace){below, 0, 0};
	else
		*place = (GpuSortRunPlace){below - 1, row, at};
	return 0;
}

/* The number of rows of a run that are before a place in it. */
uint64_t
gpusort_runs_rows_before(const GpuSortRun *run, GpuSortRunPlace place)
{
	return place.block < run->nblocks ? run->rows_before[place.block] + place.row : run->rows;
}

/* Frees what is known of the runs; the storage is its owner's. */
void
gpusort_runs_free(GpuSortRuns *runs)
{
	for (uint32_t i = 0; i < runs->nruns; i++)
	{
		free(runs->runs[i].blocks);
		free(runs->runs[i].first_keys);
		free(runs->runs[i].rows_before);
	}
	free(runs->runs);
	runs->runs = NULL;
	runs->nruns = runs->room = 0;
}
