/*-------------------------------------------------------------------------
 *
 * storage_read.c
 *	  Reading runs.
 *
 * Blocks that lie next to each other in a file are read at once,
 * and each is compared with its checksum:
 * what is not what was written is an error, not rows. Blocks as they
 * are go straight to where they are wanted, others by way of scratch.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <string.h>

#include "service/external/storage/checksum.h"
#include "service/external/storage/storage_state.h"
#include "service/errors.h"
#include "service/fault.h"

/* So much is read at once, and any single block: it should stay in a CPU's cache until it is compared. */
#define READ_BYTES ((uint32_t) 1 << 20)

/* Blocks next to each other in a file. */
typedef struct Neighbours
{
	const GpuSortRunBlock *blocks;
	uint32_t count;
	uint32_t stored;
	uint32_t bytes;
} Neighbours;

static Neighbours
find_neighbours(const GpuSortRunBlock *blocks, uint32_t count)
{
	Neighbours found = {.blocks = blocks, .count = 1, .stored = blocks->stored, .bytes = blocks->bytes};

	while (found.count < count)
	{
		const GpuSortRunBlock *next = &blocks[found.count];

		if (next->file != blocks->file || next->place != blocks->place + found.stored ||
			next->stored > READ_BYTES || found.stored > READ_BYTES - next->stored)
			break;
		found.count++;
		found.stored += next->stored;
		found.bytes += next->bytes;
	}
	return found;
}

/* For a block that is not what was written. */
static int
damaged(const GpuSortRunBlock *block, const char *what, GpuSortError *error)
{
	char text[GPUSORT_TEXT_BYTES];

	snprintf(text, sizeof(text), "a run in a temporary file is damaged: %s, %u bytes from %llu on of file %u", what,
			 block->stored, (unsigned long long) block->place, block->file);
	return gpusort_file_error(error, 0, text);
}

/* Compares blocks with their checksums, as they were stored. */
static int
check(const Neighbours *read, const char *from, GpuSortError *error)
{
	for (uint32_t i = 0; i < read->count; i++)
	{
		const GpuSortRunBlock *block = &read->blocks[i];

		if (gpusort_checksum(from, block->stored) != block->checksum)
			return damaged(block, "a block's checksum does not match", error);
		from += block->stored;
	}
	return 0;
}

/* Makes records of blocks as they were stored. */
static int
unpack(const Neighbours *read, const char *from, char *to, GpuSortError *error)
{
	for (uint32_t i = 0; i < read->count; i++)
	{
		const GpuSortRunBlock *block = &read->blocks[i];

		if (block->stored == block->bytes)
			memcpy(to, from, block->bytes);
		else if (!gpusort_decompress(from, block->stored, to, block->bytes))
			return damaged(block, "a block cannot be decompressed", error);
		from += block->stored;
		to += block->bytes;
	}
	return 0;
}

/* Reads blocks of a file; scratch is there if any of them is compressed. */
static int
read_file(GpuSortStorage *storage, const Neighbours *read, char *scratch, char *to, GpuSortError *error)
{
	const GpuSortRunBlock *block = read->blocks;
	char *target = scratch != NULL ? scratch : to;
	bool short_read;
	int descriptor;
	int system_error;

	pthread_mutex_lock(&storage->lock);
	descriptor = storage->space.files[block->file].descriptor;
	pthread_mutex_unlock(&storage->lock);
	system_error = gpusort_file_read(descriptor, target, read->stored, block->place, &short_read);
	if (system_error != 0)
		return gpusort_file_error(error, system_error, "could not read a run from a temporary file");
	if (short_read)
	{
		GpuSortRunBlock all = *block;

		all.stored = read->stored;
		return damaged(&all, "the file is too short", error);
	}
	if (check(read, target, error) != 0)
		return -1;
	return scratch != NULL ? unpack(read, scratch, to, error) : 0;
}

/*
 * Reads blocks, and puts their records back to back where the caller has room for all
 * of them.  Fails with STORAGE if a file cannot be read, or is not what was written to
 * it (system_error is 0).
 */
int
gpusort_storage_read(GpuSortStorage *storage, const GpuSortRunBlock *blocks, uint32_t count, char *to,
					 GpuSortError *error)
{
	error->system_error = 0;
	while (count > 0)
	{
		Neighbours read = find_neighbours(blocks, count);
		char *scratch = NULL;
		int rc;

		if (__atomic_load_n(storage->cancelled, __ATOMIC_RELAXED) != 0)
			return gpusort_error_cancelled(error);
		__atomic_fetch_add(storage->steps, 1, __ATOMIC_RELAXED);
		GPUSORT_FAULT_READ();
		if (blocks->file == GPUSORT_BLOCK_IN_MEMORY)
			memcpy(to, (const char *) (uintptr_t) blocks->place, read.bytes);
		else
		{
			if (read.stored < read.bytes)
			{
				scratch = gpusort_storage_get_scratch(storage);
				if (scratch == NULL)
					return gpusort_error_memory(error);
			}
			rc = read_file(storage, &read, scratch, to, error);
			if (scratch != NULL)
				gpusort_storage_put_scratch(storage, scratch);
			if (rc != 0)
				return rc;
		}
		blocks += read.count;
		to += read.bytes;
		count -= read.count;
	}
	return 0;
}
