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
	*error = (GpuSortError){.reason = GPUSORT_REASON_STORAGE,
							.text = "a sorted run is damaged: its records are not those that were written"};
	return -1;
}

/*
 * Returns true if an engine has refused rows for want of memory,
 * or of numbers for them: they may be more than one run.
 */
bool
gpusort_runs_lack_memory(const GpuSortError *error)
{
	return error->reason == GPUSORT_REASON_MEMORY_LIMIT || error->reason == GPUSORT_REASON_MEMORY_BUSY ||
		error->reason == GPUSORT_REASON_NO_MEMORY || error->reason == GPUSORT_REASON_TOO_MANY_ROWS;
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

/* What a buffer is cut into, by the thread that writes it. */
typedef struct BufferPart
{
	GpuSortRunPart part; /* first, as cut_blocks gets that */
	struct BufferPart *next;
	uint32_t key_words;
	uint32_t block_bytes;
	uint32_t rows; /* that the engine says are in it, and: */
	uint32_t bytes;
	uint64_t *first_keys; /* key_words for each block */
} BufferPart;

/* All of a run, in order. */
typedef struct BufferParts
{
	BufferPart *first;
	BufferPart **end;
} BufferParts;

/* Appends a part without blocks; NULL: there is no memory. */
static BufferPart *
append_part(BufferParts *parts, uint32_t key_words, uint32_t block_bytes)
{
	BufferPart *part = calloc(1, sizeof(BufferPart));

	if (part == NULL)
		return NULL;
	part->key_words = key_words;
	part->block_bytes = block_bytes;
	*parts->end = part;
	parts->end = &part->next;
	return part;
}

static void
free_parts(BufferParts *parts)
{
	while (parts->first != NULL)
	{
		BufferPart *part = parts->first;

		parts->first = part->next;
		free(part->part.blocks);
		free(part->first_keys);
		free(part);
	}
}

/* GpuSortRunPart.cut: fails if what is in the buffer is not the records that it should have. */
static int
cut_blocks(GpuSortRunPart *cut, const char *buffer, GpuSortError *error)
{
	BufferPart *part = (BufferPart *) cut;
	size_t key_bytes = part->key_words * sizeof(uint64_t);
	uint32_t most = 2 * (part->bytes / part->block_bytes) + 2; /* two neighbours are more than one full */
	GpuSortRunBlock *block = NULL;
	uint32_t rows = 0;

	cut->blocks = calloc(most, sizeof(GpuSortRunBlock));
	part->first_keys = malloc(most * key_bytes);
	if (cut->blocks == NULL || part->first_keys == NULL)
		return gpusort_error_memory(error);
	for (uint32_t at = 0; at < part->bytes;)
	{
		uint32_t bytes = gpusort_record_bytes(buffer + at, part->key_words, part->bytes - at);

		if (bytes == 0)
			return gpusort_runs_damaged(error);
		if (block == NULL || block->bytes + bytes > part->block_bytes)
		{
			if (cut->count == most)
				return gpusort_runs_damaged(error);
			memcpy((char *) part->first_keys + cut->count * key_bytes, buffer + at, key_bytes);
			block = &cut->blocks[cut->count++];
		}
		block->bytes += bytes;
		block->rows++;
		rows++;
		at += bytes;
	}
	return rows == part->rows ? 0 : gpusort_runs_damaged(error);
}

/* Adds a run of all parts' blocks; NULL: there is no memory. */
static GpuSortRun *
add_run(GpuSortRuns *runs, const BufferParts *parts)
{
	size_t key_bytes = runs->key_words * sizeof(uint64_t);
	uint64_t blocks = 0;
	GpuSortRun *run;

	for (const BufferPart *part = parts->first; part != NULL; part = part->next)
		blocks += part->part.count;
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
		.blocks = malloc(blocks * sizeof(GpuSortRunBlock)),
		.first_keys = malloc(blocks * key_bytes),
		.rows_before = malloc(blocks * sizeof(uint64_t))};
	runs->nruns++;
	if (run->blocks == NULL || run->first_keys == NULL || run->rows_before == NULL)
		return NULL;
	for (const BufferPart *part = parts->first; part != NULL; part = part->next)
	{
		memcpy((char *) run->first_keys + run->nblocks * key_bytes, part->first_keys, part->part.count * key_bytes);
		for (uint32_t i = 0; i < part->part.count; i++)
		{
			run->blocks[run->nblocks] = part->part.blocks[i];
			run->rows_before[run->nblocks++] = run->rows;
			run->rows += part->part.blocks[i].rows;
			run->bytes += part->part.blocks[i].bytes;
		}
	}
	return run;
}

/*
* Emits all rows of an engine's sort and hands them over to the storage.  What fails there is known when the run
 * is finished, if not before.
 */
static int
write_parts(const GpuSortRuns *runs, const GpuSortEngineOps *ops, GpuSort *sort, uint64_t rows, uint32_t block_bytes,
			const int *cancelled, BufferParts *parts, GpuSortError *error)
{
	for (uint64_t row = 0; row < rows;)
	{
		BufferPart *part = append_part(parts, runs->key_words, block_bytes);
		GpuSortEmitted emitted = {.rows = 0};
		char *buffer;
		int rc;

		if (part == NULL)
			return gpusort_error_memory(error);
		buffer = gpusort_storage_buffer(runs->storage, error);
		if (buffer == NULL)
			return -1;
		if (__atomic_load_n(cancelled, __ATOMIC_RELAXED))
			rc = gpusort_error_cancelled(error);
		else
			rc = ops->emit(sort, row, rows, true, buffer, &emitted, error);
		if (rc == 0 && (emitted.rows == 0 || emitted.rows > rows - row || emitted.bytes > GPUSORT_CHUNK_BYTES))
			rc = gpusort_runs_damaged(error);
		if (rc == 0)
		{
			part->rows = emitted.rows;
			part->bytes = emitted.bytes;
			part->part.cut = cut_blocks;
		}
		gpusort_storage_write(runs->storage, buffer, &part->part);
		if (rc != 0)
			return -1;
		row += emitted.rows;
	}
	return 0;
}

/*
 * Writes the sorted rows of an engine's sort as the next run; so many, whose records are so many bytes at
 * most, for which the storage has room.
 */
int
gpusort_runs_write(GpuSortRuns *runs, const GpuSortEngineOps *ops, GpuSort *sort, uint64_t rows, uint64_t bytes,
				   const int *cancelled, GpuSortError *error)
{
	BufferParts parts = {.first = NULL, .end = &parts.first};
	GpuSortRun *run = NULL;
	GpuSortError write_error;
	int rc = write_parts(runs, ops, sort, rows, choose_block_bytes(bytes), cancelled, &parts, error);

	/* The parts are the storage's until then, whatever went wrong. */
	if (gpusort_storage_finish_run(runs->storage, &write_error) != 0 && rc == 0)
	{
		*error = write_error;
		rc = -1;
	}
	if (rc == 0)
	{
		run = add_run(runs, &parts);
		rc = run != NULL ? 0 : gpusort_error_memory(error);
	}
	free_parts(&parts);
	if (rc != 0)
		return -1;
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
