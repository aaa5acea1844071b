/*-------------------------------------------------------------------------
 *
 * partition.c
 *	  The rows of all runs whose keys are in one interval, in order.
 *
 * All rows that the runs have are given out.  Rows that a run left out are not part of it (GpuSortRequest.run_rows).
 *
 * A partition is read run by run and put into a sort of the engine, which is stable: so equal keys come
 * out as they were put in the first place.  Of rows that all have one key and do not fit into the memory
 * nothing is sorted: they are given out as they are read.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "service/external/partition.h"
#include "service/external/run_rows.h"

/* Keys that are looked at to find one in the middle. */
#define SAMPLE_KEYS 255

/* A chunk that is being filled with records, to be put into an engine's sort. */
typedef struct ChunkFilling
{
	const GpuSortMergeSource *source;
	GpuSort *sort;
	char *chunk;
	char *scratch;
	uint32_t bytes;
	uint32_t rows;
} ChunkFilling;

/* Puts the chunk. */
static GpuSortLoad
put_chunk(ChunkFilling *filling, GpuSortError *error)
{
	const GpuSortEngineOps *ops = filling->source->handle->ops;
	GpuSortLoad result = GPUSORT_LOAD_DONE;

	if (filling->rows == 0)
		return result;
	gpusort_watch_enter(filling->source->watch, GPUSORT_CALL_PUT);
	if (ops->reserve(filling->sort, filling->rows, error) != 0)
		result = gpusort_runs_lack_memory(error) ? GPUSORT_LOAD_NO_ROOM : GPUSORT_LOAD_FAILED;
	else if (ops->put(filling->sort, filling->chunk, filling->rows, filling->bytes, filling->rows, error) != 0)
		result = GPUSORT_LOAD_FAILED;
	gpusort_watch_leave(filling->source->watch);
	filling->bytes = filling->rows = 0;
	return result;
}

/* Takes note of so many rows that were read to the end of what the chunk has. */
static int
append_offsets(ChunkFilling *filling, uint32_t bytes, uint32_t rows, GpuSortError *error)
{
	uint32_t key_words = filling->source->request->key_words;
	uint32_t end = filling->bytes + bytes;

	for (uint32_t i = 0; i < rows; i++)
	{
		uint32_t record = gpusort_record_bytes(filling->chunk + filling->bytes, key_words, end - filling->bytes);

		if (record == 0)
			return gpusort_runs_damaged(error);
		*gpusort_chunk_offset(filling->chunk, filling->rows++) = filling->bytes;
		filling->bytes += record;
	}
	return filling->bytes == end ? 0 : gpusort_runs_damaged(error);
}

/* Reads all records of an interval and puts them. */
static GpuSortLoad
put_interval(ChunkFilling *filling, const GpuSortKeyInterval *interval, GpuSortError *error)
{
	GpuSortIntervalReader reader;

	gpusort_interval_reader_init(&reader, filling->source->runs, interval, filling->scratch);
	for (;;)
	{
		uint32_t room = GPUSORT_CHUNK_BYTES - filling->bytes - filling->rows * sizeof(uint32_t);
		uint32_t bytes;
		uint32_t rows;

		if (__atomic_load_n(filling->source->cancelled, __ATOMIC_RELAXED))
			return gpusort_error_cancelled(error);
		if (gpusort_interval_read(&reader, filling->chunk + filling->bytes, room, sizeof(uint32_t), &bytes, &rows,
								  error) != 0)
			return GPUSORT_LOAD_FAILED;
		if (rows > 0)
		{
			if (append_offsets(filling, bytes, rows, error) != 0)
				return GPUSORT_LOAD_FAILED;
			continue;
		}
		if (bytes > 0 && filling->rows == 0)
			return gpusort_runs_damaged(error); /* no chunk takes it */
		if (filling->rows > 0)
		{
			GpuSortLoad result = put_chunk(filling, error);

			if (result != GPUSORT_LOAD_DONE)
				return result;
		}
		if (bytes == 0)
			return GPUSORT_LOAD_DONE;
	}
}

/* Sorts what was put, and sees that it is what belongs to the partition. */
static int
sort_partition(const GpuSortMergeSource *source, GpuSortMergePartition *partition, const uint64_t *end_key,
			   GpuSort *sort, GpuSortError *error)
{
	const GpuSortEngineOps *ops = source->handle->ops;
	const uint64_t ends[2] = {0, partition->loaded - 1};
	uint64_t keys[2 * GPUSORT_MAX_KEY_WORDS];
	uint32_t words = source->request->key_words;
	GpuSortOutcome outcome;
	int rc;

	gpusort_watch_enter(source->watch, GPUSORT_CALL_SORT);
	rc = ops->sort(sort, &outcome, error);
	if (rc == 0 && outcome.rows != partition->loaded)
		rc = gpusort_runs_damaged(error);
	if (rc == 0)
		rc = ops->keys_at(sort, ends, 2, keys, error);
	gpusort_watch_leave(source->watch);
	if (rc == 0 &&
		((partition->first_key != NULL && gpusort_compare_keys(keys, partition->first_key, words) < 0) ||
		 (end_key != NULL && gpusort_compare_keys(keys + words, end_key, words) >= 0)))
		rc = gpusort_runs_damaged(error);
	return rc;
}

/* Opens a partition of one key, or without rows: nothing is sorted. */
static int
open_unsorted(const GpuSortMergeSource *source, GpuSortMergePartition *partition, GpuSortKeyInterval *interval,
			  GpuSortError *error)
{
	if (partition->loaded == 0)
	{
		gpusort_interval_free(interval);
		return 0;
	}
	partition->interval = *interval;
	partition->buffer = malloc(2 * GPUSORT_CHUNK_BYTES);
	partition->reader_row = partition->buffered = partition->taken = 0;
	gpusort_interval_reader_init(&partition->reader, source->runs, &partition->interval,
								 partition->buffer + GPUSORT_CHUNK_BYTES);
	return partition->buffer != NULL ? 0 : gpusort_error_memory(error);
}

/*
 * Loads a partition that ends before end_key (NULL: with the last of all).
 * After anything but DONE it is to be closed.
 */
GpuSortLoad
gpusort_partition_load(const GpuSortMergeSource *source, GpuSortMergePartition *partition, const uint64_t *end_key,
					   const GpuSortLoadMemory *memory, GpuSortError *error)
{
	GpuSortRequest request = {.key_words = source->request->key_words, .may_tie = source->request->may_tie, .spill = 1};
	ChunkFilling filling = {.source = source, .chunk = memory->chunk, .scratch = memory->scratch};
	GpuSortKeyInterval interval;
	GpuSortPlace place;
	GpuSortLoad result;

	if (gpusort_interval_create(source->runs, partition->first_key, end_key, memory->scratch, &interval, error) != 0)
		return GPUSORT_LOAD_FAILED;
	partition->loaded = interval.rows;
	partition->bytes = interval.bytes;
	if (partition->loaded == 0 || partition->only_key != NULL)
		return open_unsorted(source, partition, &interval, error);
	if (interval.rows > gpusort_run_rows_partition(source->runs->rows))
	{
		gpusort_interval_free(&interval);
		*error = (GpuSortError){.reason = GPUSORT_REASON_MEMORY_LIMIT,
								.text = "a partition has more rows than GPUSORT_RUN_ROWS allows"};
		return GPUSORT_LOAD_NO_ROOM;
	}

	request.estimated_rows = interval.rows;
	request.estimated_bytes = interval.bytes;
	gpusort_watch_enter(source->watch, GPUSORT_CALL_BEGIN);
	if (source->handle->ops->begin(source->handle->engine, &request, source->cancelled, &partition->sort, &place,
								   error) != 0)
	{
		partition->sort = NULL;
		result = gpusort_runs_lack_memory(error) ? GPUSORT_LOAD_NO_ROOM : GPUSORT_LOAD_FAILED;
	}
	else
		result = GPUSORT_LOAD_DONE;
	gpusort_watch_leave(source->watch);
	filling.sort = partition->sort;
	if (result == GPUSORT_LOAD_DONE)
		result = put_interval(&filling, &interval, error);
	gpusort_interval_free(&interval);
	if (result == GPUSORT_LOAD_DONE && sort_partition(source, partition, end_key, partition->sort, error) != 0)
		result = GPUSORT_LOAD_FAILED;
	return result;
}

/* Frees what an open partition has, or one that could not be loaded. */
void
gpusort_partition_close(const GpuSortMergeSource *source, GpuSortMergePartition *partition)
{
	if (partition->sort != NULL)
		source->handle->ops->end(partition->sort);
	gpusort_interval_free(&partition->interval);
	free(partition->buffer);
	partition->sort = NULL;
	partition->buffer = NULL;
	partition->emitted = 0;
}

/* Reads the next records of a single partition into its buffer. */
static int
fill_buffer(GpuSortMergePartition *partition, GpuSortError *error)
{
	uint32_t rows;

	partition->taken = 0;
	if (gpusort_interval_read(&partition->reader, partition->buffer, GPUSORT_CHUNK_BYTES, 0, &partition->buffered,
							  &rows, error) != 0)
		return -1;
	return rows > 0 ? 0 : gpusort_runs_damaged(error);
}

/* Moves the reader of a single partition to before a row of it. */
static int
seek_row(const GpuSortMergeSource *source, GpuSortMergePartition *partition, uint64_t row, GpuSortError *error)
{
	uint32_t key_words = source->request->key_words;

	if (row < partition->reader_row)
	{
		gpusort_interval_reader_init(&partition->reader, source->runs, &partition->interval,
									 partition->buffer + GPUSORT_CHUNK_BYTES);
		partition->reader_row = partition->buffered = partition->taken = 0;
	}
	while (partition->reader_row < row)
	{
		uint64_t skipped = 0;
		uint32_t record;

		if (partition->taken == partition->buffered)
		{
			gpusort_interval_skip(&partition->reader, row - partition->reader_row, &skipped);
			partition->reader_row += skipped;
			if (partition->reader_row == row)
				break;
			if (fill_buffer(partition, error) != 0)
				return -1;
		}
		record = gpusort_record_bytes(partition->buffer + partition->taken, key_words,
									  partition->buffered - partition->taken);
		if (record == 0)
			return gpusort_runs_damaged(error);
		partition->taken += record;
		partition->reader_row++;
	}
	return 0;
}

/* Copies the row of a record to a chunk, as an engine gives it out. */
static bool
emit_row(char *to, const char *row, uint32_t length, bool ties)
{
	uint8_t flags = row[GPUSORT_ROW_FLAGS_OFFSET];
	bool tie = ties && (flags & GPUSORT_ROW_KEY_TRUNCATED) != 0;

	memcpy(to, row, length);
	to[GPUSORT_ROW_FLAGS_OFFSET] = (flags & GPUSORT_ROW_OVERFLOW) | (tie ? GPUSORT_ROW_TIE_NEXT : 0);
	return tie;
}

/* Gives out rows of equal keys, as they were put. */
static int
emit_single(const GpuSortMergeSource *source, GpuSortMergePartition *partition, uint64_t first, uint64_t end,
			char *chunk, GpuSortEmitted *emitted, GpuSortError *error)
{
	uint32_t key_bytes = source->request->key_words * sizeof(uint64_t);

	*emitted = (GpuSortEmitted){0};
	if (seek_row(source, partition, first, error) != 0)
		return -1;
	while (partition->reader_row < end)
	{
		const char *record;
		uint32_t bytes;

		if (partition->taken == partition->buffered && fill_buffer(partition, error) != 0)
			return -1;
		record = partition->buffer + partition->taken;
		bytes = gpusort_record_bytes(record, source->request->key_words, partition->buffered - partition->taken);
		if (bytes == 0 ||
			gpusort_compare_keys((const uint64_t *) record, partition->only_key, source->request->key_words) != 0)
			return gpusort_runs_damaged(error);
		if (bytes - key_bytes > GPUSORT_CHUNK_BYTES - emitted->bytes)
			break;
		emitted->tie_rows += emit_row(chunk + emitted->bytes, record + key_bytes, bytes - key_bytes,
									  source->request->may_tie && partition->reader_row + 1 < partition->rows);
		emitted->bytes += bytes - key_bytes;
		emitted->rows++;
		partition->taken += bytes;
		partition->reader_row++;
	}
	emitted->last = partition->reader_row == end;
	return 0;
}

/* Fills a chunk with rows of an open partition, by their numbers in it, as GpuSortEngineOps.emit does. */
int
gpusort_partition_emit(const GpuSortMergeSource *source, GpuSortMergePartition *partition, uint64_t first, uint64_t end,
					   char *chunk, GpuSortEmitted *emitted, GpuSortError *error)
{
	int rc;

	if (partition->only_key != NULL)
		rc = emit_single(source, partition, first, end, chunk, emitted, error);
	else
		rc = source->handle->ops->emit(partition->sort, first, end, false, chunk, emitted, error);
	if (rc == 0)
		partition->emitted += emitted->rows;
	return rc;
}

/*
 * Splitting
 */

static int
compare_samples(const void *a, const void *b, void *words)
{
	return gpusort_compare_keys(a, b, *(const uint32_t *) words);
}

/* Some keys of an interval, at equal distances, and the greatest and the least of all. */
typedef struct KeySample
{
	uint32_t words;
	uint64_t step; /* every so many rows */
	uint64_t rows;
	uint32_t count;
	uint64_t *keys; /* room for SAMPLE_KEYS + 1 */
	uint64_t least[GPUSORT_MAX_KEY_WORDS];
	uint64_t greatest[GPUSORT_MAX_KEY_WORDS];
} KeySample;

static void
note_key(KeySample *sample, const uint64_t *key)
{
	size_t bytes = sample->words * sizeof(uint64_t);

	if (sample->rows == 0 || gpusort_compare_keys(key, sample->least, sample->words) < 0)
		memcpy(sample->least, key, bytes);
	if (sample->rows == 0 || gpusort_compare_keys(key, sample->greatest, sample->words) > 0)
		memcpy(sample->greatest, key, bytes);
	if (sample->rows % sample->step == 0 && sample->count <= SAMPLE_KEYS)
		memcpy(sample->keys + (size_t) sample->count++ * sample->words, key, bytes);
	sample->rows++;
}

/* Reads all keys of an interval. */
static int
read_keys(const GpuSortMergeSource *source, const GpuSortKeyInterval *interval, const GpuSortLoadMemory *memory,
		  KeySample *sample, GpuSortError *error)
{
	GpuSortIntervalReader reader;

	gpusort_interval_reader_init(&reader, source->runs, interval, memory->scratch);
	for (;;)
	{
		uint32_t at = 0;
		uint32_t bytes;
		uint32_t rows;

		if (__atomic_load_n(source->cancelled, __ATOMIC_RELAXED))
			return gpusort_error_cancelled(error);
		if (gpusort_interval_read(&reader, memory->chunk, GPUSORT_CHUNK_BYTES, 0, &bytes, &rows, error) != 0)
			return -1;
		if (rows == 0)
			return bytes == 0 ? 0 : gpusort_runs_damaged(error);
		while (at < bytes)
		{
			uint32_t record = gpusort_record_bytes(memory->chunk + at, sample->words, bytes - at);

			if (record == 0)
				return gpusort_runs_damaged(error);
			note_key(sample, (const uint64_t *) (memory->chunk + at));
			at += record;
		}
	}
}

/*
 * Finds a key that cuts a partition in two, neither of them empty; *single if all its keys are equal: *key is that
 * one then.  Reads all of it.
 */
int
gpusort_partition_middle_key(const GpuSortMergeSource *source, const GpuSortMergePartition *partition,
							 const uint64_t *end_key, const GpuSortLoadMemory *memory, uint64_t *key, bool *single,
							 GpuSortError *error)
{
	KeySample sample = {.words = source->request->key_words};
	GpuSortKeyInterval interval;
	uint32_t middle;
	int rc;

	if (gpusort_interval_create(source->runs, partition->first_key, end_key, memory->scratch, &interval, error) != 0)
		return -1;
	sample.step = interval.rows / SAMPLE_KEYS + 1;
	sample.keys = malloc((SAMPLE_KEYS + 1) * sample.words * sizeof(uint64_t));
	rc = sample.keys != NULL ? read_keys(source, &interval, memory, &sample, error) : gpusort_error_memory(error);
	gpusort_interval_free(&interval);
	if (rc == 0 && sample.rows == 0)
		rc = gpusort_runs_damaged(error);
	if (rc == 0)
	{
		size_t bytes = sample.words * sizeof(uint64_t);

		qsort_r(sample.keys, sample.count, bytes, compare_samples, &sample.words);
		for (middle = sample.count / 2; middle < sample.count; middle++)
		{
			if (gpusort_compare_keys(sample.keys + (size_t) middle * sample.words, sample.least, sample.words) > 0)
				break;
		}
		*single = gpusort_compare_keys(sample.least, sample.greatest, sample.words) == 0;
		memcpy(key, middle < sample.count ? sample.keys + (size_t) middle * sample.words : sample.greatest, bytes);
	}
	free(sample.keys);
	return rc;
}
