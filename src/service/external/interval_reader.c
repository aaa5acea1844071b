/*-------------------------------------------------------------------------
 *
 * interval_reader.c
 *	  The records of an interval of keys, from all runs.
 *
 * The records come run by run and not in the order of their keys; of equal keys the one that was
 * put first comes first, so that a stable sort of what is read here is a stable sort of all.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include "service/external/interval_reader.h"

/* Finds a key in each run; NULL: the beginning of all, or their end. */
static int
find_places(const GpuSortRuns *runs, const uint64_t *key, bool end, char *scratch, GpuSortRunPlace *places,
			GpuSortError *error)
{
	for (uint32_t r = 0; r < runs->nruns; r++)
	{
		if (key == NULL)
			places[r] = (GpuSortRunPlace){end ? runs->runs[r].nblocks : 0, 0, 0};
		else if (gpusort_runs_find(runs, r, key, scratch, &places[r], error) != 0)
			return -1;
	}
	return 0;
}

/* Bytes of the records of a run between two places. */
static uint64_t
bytes_between(const GpuSortRun *run, GpuSortRunPlace start, GpuSortRunPlace end)
{
	uint64_t bytes = end.byte;

	for (uint32_t b = start.block; b < end.block; b++)
		bytes += run->blocks[b].bytes;
	return bytes - start.byte;
}

/*
 * Finds where the keys from first_key on (NULL: all) and below end_key (NULL: all) are in the runs.  scratch is
 * GPUSORT_CHUNK_BYTES of room.  What is in *interval is the caller's to free.
 */
int
gpusort_interval_create(const GpuSortRuns *runs, const uint64_t *first_key, const uint64_t *end_key, char *scratch,
						GpuSortKeyInterval *interval, GpuSortError *error)
{
	*interval = (GpuSortKeyInterval){
		.starts = malloc(runs->nruns * sizeof(GpuSortRunPlace)),
		.ends = malloc(runs->nruns * sizeof(GpuSortRunPlace))};
	if (interval->starts == NULL || interval->ends == NULL)
	{
		gpusort_interval_free(interval);
		return gpusort_error_memory(error);
	}
	if (find_places(runs, first_key, false, scratch, interval->starts, error) != 0 ||
		find_places(runs, end_key, true, scratch, interval->ends, error) != 0)
	{
		gpusort_interval_free(interval);
		return -1;
	}
	for (uint32_t r = 0; r < runs->nruns; r++)
	{
		const GpuSortRun *run = &runs->runs[r];

		interval->rows += gpusort_runs_rows_before(run, interval->ends[r]) -
			gpusort_runs_rows_before(run, interval->starts[r]);
		interval->bytes += bytes_between(run, interval->starts[r], interval->ends[r]);
	}
	return 0;
}

void
gpusort_interval_free(GpuSortKeyInterval *interval)
{
	free(interval->starts);
	free(interval->ends);
	*interval = (GpuSortKeyInterval){0};
}

/* The reader is before the first record of the interval. */
void
gpusort_interval_reader_init(GpuSortIntervalReader *reader, const GpuSortRuns *runs, const GpuSortKeyInterval *interval,
							 char *scratch)
{
	*reader = (GpuSortIntervalReader){.runs = runs, .interval = interval, .at = interval->starts[0], .scratch = scratch};
}

/* Goes on to the run that the next record is in; false if there is none. */
static bool
find_run(GpuSortIntervalReader *reader)
{
	while (reader->run < reader->runs->nruns)
	{
		GpuSortRunPlace end = reader->interval->ends[reader->run];

		if (reader->at.block < end.block || (reader->at.block == end.block && reader->at.byte < end.byte))
			return true;
		reader->run++;
		if (reader->run < reader->runs->nruns)
			reader->at = reader->interval->starts[reader->run];
	}
	return false;
}

/* What is next in the current run: a part of a block, or so many whole ones as there is room for. */
typedef struct Part
{
	uint32_t blocks;
	uint32_t bytes;
	uint32_t rows;
	bool whole;
} Part;

static Part
next_part(const GpuSortIntervalReader *reader, uint32_t room, uint32_t room_per_row)
{
	const GpuSortRun *run = &reader->runs->runs[reader->run];
	GpuSortRunPlace at = reader->at;
	GpuSortRunPlace end = reader->interval->ends[reader->run];
	const GpuSortRunBlock *block = &run->blocks[at.block];
	Part part = {.blocks = 1, .bytes = block->bytes - at.byte, .rows = block->rows - at.row, .whole = at.byte == 0};

	if (at.block == end.block)
	{
		part.bytes = end.byte - at.byte;
		part.rows = end.row - at.row;
		part.whole = false;
		return part;
	}
	while (part.whole && at.block + part.blocks < end.block)
	{
		const GpuSortRunBlock *next = block + part.blocks;

		if (part.bytes + (uint64_t) next->bytes + (uint64_t) room_per_row * (part.rows + next->rows) > room)
			break;
		part.blocks++;
		part.bytes += next->bytes;
		part.rows += next->rows;
	}
	return part;
}

/* Goes on behind a part. */
static void
pass(GpuSortIntervalReader *reader, const Part *part)
{
	const GpuSortRunBlock *block = &reader->runs->runs[reader->run].blocks[reader->at.block];

	if (part->whole || reader->at.byte + part->bytes == block->bytes)
		reader->at = (GpuSortRunPlace){reader->at.block + part->blocks, 0, 0};
	else
		reader->at = (GpuSortRunPlace){reader->at.block, reader->at.row + part->rows, reader->at.byte + part->bytes};
}

/*
 * Reads the next records, back to back, to "to", where there is room for so many bytes, of which each row takes
 * room_per_row besides its record.  *rows is 0 if there is too little room, or, with *bytes 0 too, no record
 * left; else *bytes says how much room the next ones take.
 */
int
gpusort_interval_read(GpuSortIntervalReader *reader, char *to, uint32_t room, uint32_t room_per_row, uint32_t *bytes,
					  uint32_t *rows, GpuSortError *error)
{
	const GpuSortRunBlock *block;
	Part part;

	*bytes = *rows = 0;
	if (!find_run(reader))
		return 0;
	part = next_part(reader, room, room_per_row);
	block = &reader->runs->runs[reader->run].blocks[reader->at.block];
	*bytes = part.bytes;
	if (part.bytes + (uint64_t) room_per_row * part.rows > room)
		return 0;
	if (gpusort_storage_read(reader->runs->storage, block, part.blocks, part.whole ? to : reader->scratch, error) != 0)
		return -1;
	if (!part.whole)
		memcpy(to, reader->scratch + reader->at.byte, part.bytes);
	*rows = part.rows;
	pass(reader, &part);
	return 0;
}

/* Passes over whole parts of no more rows than that; *skipped says how many they had. */
void
gpusort_interval_skip(GpuSortIntervalReader *reader, uint64_t rows, uint64_t *skipped)
{
	*skipped = 0;
	while (find_run(reader))
	{
		Part part = next_part(reader, 0, 0);

		if (part.rows > rows - *skipped)
			return;
		*skipped += part.rows;
		pass(reader, &part);
	}
}
