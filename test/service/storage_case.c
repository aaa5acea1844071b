/*-------------------------------------------------------------------------
 *
 * storage_case.c
 *	  A storage, the runs that are written to it, and what should be read: for its tests.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "storage_case.h"

const int never = 0;
GpuSortError last_error;

/* Word number i of all that is written. */
static uint64_t
word_at(Records records, uint64_t i)
{
	uint64_t mixed = (i + 1) * UINT64_C(0x9E3779B97F4A7C15);

	if (records == REPETITIVE || (records == MIXED && (i >> 14) % 3 == 0))
		return i >> 6;
	return (mixed ^ mixed >> 29) * UINT64_C(0xBF58476D1CE4E5B9);
}

/* A new file without a name. */
int
make_file(const char *directory)
{
	char path[300];
	int descriptor;

	snprintf(path, sizeof(path), "%s/run.XXXXXX", directory);
	descriptor = mkostemp(path, O_CLOEXEC);
	if (descriptor < 0)
		bail("%s: %s", path, strerror(errno));
	unlink(path);
	return descriptor;
}

/* A storage with space in one file of directory, if that is not NULL. */
Case *
storage_begin(GpuSortHostMemory *memory, const int *cancelled, Records records, const char *directory)
{
	static uint32_t steps;
	Case *begun = calloc(1, sizeof(Case));

	memset(&last_error, 0, sizeof(last_error));
	begun->records = records;
	begun->storage = gpusort_storage_create(memory, 2, cancelled, &steps, &last_error);
	if (begun->storage == NULL)
		bail("%s", last_error.text);
	if (directory != NULL &&
		gpusort_storage_add_space(begun->storage, 1, make_file(directory), 0, SPACE, &last_error) != 0)
		bail("%s", last_error.text);
	return begun;
}

void
storage_end(Case *ended)
{
	gpusort_storage_destroy(ended->storage);
	free(ended);
}

/* Hands over a buffer with so many blocks. */
void
write_part(Case *run, char *buffer, GpuSortRunBlock *blocks, uint32_t count)
{
	GpuSortRunPart *part = &run->parts[run->nparts++];

	*part = (GpuSortRunPart){.blocks = blocks, .count = count};
	gpusort_storage_write(run->storage, buffer, part);
}

/* Writes a run of so many bytes in blocks of at most block_bytes, of changing size; 0 or -1 with last_error. */
int
write_run(Case *run, uint64_t bytes, uint32_t block_bytes)
{
	uint64_t run_end = run->bytes + bytes;

	while (run->bytes < run_end)
	{
		char *buffer = gpusort_storage_buffer(run->storage, &last_error);
		uint32_t first = run->count;
		uint32_t filled = 0;

		if (buffer == NULL)
		{
			GpuSortError later;

			if (gpusort_storage_finish_run(run->storage, &later) == 0 && last_error.reason == GPUSORT_REASON_STORAGE)
				bail("an error is forgotten");
			return -1;
		}
		while (run->bytes < run_end && run->count < BLOCKS_MAX)
		{
			uint32_t size = block_bytes - 8 * (run->count % 5);

			if (size > run_end - run->bytes)
				size = (uint32_t) (run_end - run->bytes);
			if (size > BUFFER_SIZE - filled)
				break;
			for (uint32_t i = 0; i < size; i += 8)
			{
				uint64_t word = word_at(run->records, (run->bytes + i) / 8);

				memcpy(buffer + filled + i, &word, 8);
			}
			run->blocks[run->count++] = (GpuSortRunBlock){.bytes = size, .rows = run->count};
			filled += size;
			run->bytes += size;
		}
		if (run->count == first)
			bail("too many blocks");
		write_part(run, buffer, &run->blocks[first], run->count - first);
	}
	return gpusort_storage_finish_run(run->storage, &last_error);
}

/* Reads blocks from one number on and compares; NULL if it is well. */
const char *
read_blocks(const Case *run, uint32_t first, uint32_t count, GpuSortError *failure)
{
	const char *wrong = NULL;
	uint64_t bytes = 0;
	uint64_t before = 0;
	char *to;

	for (uint32_t i = 0; i < first + count; i++)
		*(i < first ? &before : &bytes) += run->blocks[i].bytes;
	to = malloc(bytes + 1);
	to[bytes] = 77;
	if (gpusort_storage_read(run->storage, &run->blocks[first], count, to, failure) != 0)
		wrong = failure->text;
	for (uint64_t i = 0; wrong == NULL && i < bytes; i += 8)
	{
		uint64_t word = word_at(run->records, (before + i) / 8);

		if (memcmp(to + i, &word, 8) != 0)
			wrong = "other records were read";
	}
	if (wrong == NULL && to[bytes] != 77)
		wrong = "more was read";
	free(to);
	return wrong;
}

const char *
read_all(const Case *run)
{
	return read_blocks(run, 0, run->count, &last_error);
}
