/*-------------------------------------------------------------------------
 *
 * external_case.c
 *	  A sort over an engine, with files of its own: for the tests of sorts that do not fit
 *	  the memory.
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

#include "external_case.h"

GpuSortHostMemory *run_memory;
int processors;

GpuSortEngine *
open_engine(uint64_t memory)
{
	GpuSortEngineConfig config = {.memory_limit = memory, .threads = 2};
	GpuSortEngine *engine;
	GpuSortError error;

	if (gpusort_host_engine.open(&config, &engine, &error) != 0)
		bail("%s", error.text);
	return engine;
}

/* Returns true if no sort has anything of an engine's. */
bool
is_idle(GpuSortEngine *engine)
{
	GpuSortDevice device;

	gpusort_host_engine.describe(engine, &device, 1);
	return device.memory_used == 0 && device.jobs == 0;
}

/* Makes a sort that has not begun. */
static void
prepare(Sort *sort, const GpuSortEngineOps *ops, GpuSortEngine *engine, GpuSortRequest request)
{
	const GpuSortExternalMeans means = {.handle = {.ops = ops, .engine = engine},
										.run_memory = ops->kind == GPUSORT_ENGINE_HOST ? NULL : run_memory,
										.cpus = processors,
										.cancelled = &sort->cancelled,
										.watch = &sort->watch,
										.loader_watches = sort->loader_watches,
										.steps = &sort->steps};

	memset(sort, 0, sizeof(*sort));
	sort->engine = engine;
	sort->request = request;
	sort->request.spill = 1;
	sort->flags = O_RDWR;
	gpusort_watch_init(&sort->watch, &sort->ticks, &sort->steps);
	for (int i = 0; i < GPUSORT_JOB_LOADERS; i++)
		gpusort_watch_init(&sort->loader_watches[i], &sort->ticks, &sort->steps);
	for (int i = 0; i < OWNERS; i++)
		sort->files[i].descriptor = -1;
	sort->chunk = malloc(GPUSORT_CHUNK_BYTES);
	sort->external = gpusort_external_create(&means, &sort->request);
	if (sort->external == NULL)
		bail("no memory");
}

void
external_begin_with(Sort *sort, const GpuSortEngineOps *ops, GpuSortEngine *engine, GpuSortRequest request)
{
	GpuSortPlace place;

	prepare(sort, ops, engine, request);
	while (gpusort_external_begin(sort->external, &place, &sort->error) != 0)
	{
		if (sort->error.reason != GPUSORT_REASON_MEMORY_BUSY)
			bail("begin: %s", sort->error.text);
		usleep(1000);
	}
}

void
external_begin(Sort *sort, GpuSortEngine *engine, GpuSortRequest request)
{
	external_begin_with(sort, &gpusort_host_engine, engine, request);
}

void
external_end(Sort *sort)
{
	gpusort_external_end(sort->external);
	for (int i = 0; i < OWNERS; i++)
	{
		if (sort->files[i].descriptor >= 0)
			close(sort->files[i].descriptor);
	}
	free(sort->chunk);
}

/* Begins a sort and makes room for its first chunk, if there is the memory now. */
bool
external_try_begin(Sort *sort, GpuSortEngine *engine)
{
	GpuSortPlace place;

	prepare(sort, &gpusort_host_engine, engine, (GpuSortRequest){.key_words = 1, .may_tie = 1});
	if (gpusort_external_begin(sort->external, &place, &sort->error) == 0 &&
		gpusort_external_reserve(sort->external, 40000, &sort->error) == 0)
		return true;
	external_end(sort);
	return false;
}

/* Gives a sort the space that it lacks, one file after the other. */
int
give_space(Sort *sort, uint64_t lacking)
{
	SpaceFile *file = &sort->files[sort->asked % OWNERS];
	uint64_t number = 100 + sort->asked % OWNERS;
	int passed = -1;
	int rc;

	sort->asked++;
	if (file->descriptor < 0)
	{
		char path[300];

		snprintf(path, sizeof(path), "%s/space.XXXXXX", test_directory());
		file->descriptor = mkostemp(path, O_CLOEXEC);
		passed = open(path, sort->flags | O_CLOEXEC);
		if (file->descriptor < 0 || passed < 0)
			bail("%s: %s", path, strerror(errno));
		unlink(path);
	}
	rc = gpusort_external_add_space(sort->external, number, passed, file->given, lacking, &sort->error);
	file->given += lacking;
	return rc;
}

/* Puts so many rows and bytes of the sort's chunk, giving the space that is lacking; false: see sort->error. */
bool
put_chunk(Sort *sort, uint32_t rows, uint32_t bytes)
{
	GpuSortProgress progress;
	uint64_t lacking;

	while ((progress = gpusort_external_put(sort->external, sort->chunk, rows, bytes, rows, &lacking, &sort->error)) ==
		   GPUSORT_PROGRESS_LACKS_SPACE)
	{
		if (give_space(sort, lacking) != 0)
			return false;
	}
	return progress == GPUSORT_PROGRESS_DONE;
}

/* Puts the rows before end that were not put yet; NULL, or what went wrong. */
const char *
put_rows(Sort *sort, const Rows *rows, uint64_t end)
{
	while (sort->put < end)
	{
		uint32_t most = end - sort->put < 40000 ? (uint32_t) (end - sort->put) : 40000;
		uint32_t count;
		uint32_t bytes;

		sort->put = rows_fill(rows, sort->put, most, sort->chunk, &count, &bytes);
		if (!put_chunk(sort, count, bytes))
			return sort->error.text;
	}
	return NULL;
}

/* Puts all rows, or those that were not put yet, and sorts them. */
const char *
sort_rows(Sort *sort, const Rows *rows)
{
	const char *problem = put_rows(sort, rows, rows->n);
	GpuSortProgress progress;
	uint64_t lacking;
	uint64_t bytes = 0;

	if (problem != NULL)
		return problem;
	while ((progress = gpusort_external_sort(sort->external, &sort->outcome, &lacking, &sort->error)) ==
		   GPUSORT_PROGRESS_LACKS_SPACE)
	{
		if (give_space(sort, lacking) != 0)
			return sort->error.text;
	}
	if (progress != GPUSORT_PROGRESS_DONE)
		return sort->error.text;
	for (uint64_t i = 0; i < rows->n; i++)
		bytes += GPUSORT_ALIGN8(rows->lengths[i]);
	if (sort->outcome.rows_in != rows->n)
		return "other rows were sorted than put";
	if (sort->request.limit == 0 && sort->request.run_rows == 0 &&
		(sort->outcome.rows != rows->n || sort->outcome.bytes != bytes))
		return "the outcome tells another number of rows, or of their bytes";
	return NULL;
}

/* Mixes some bytes into a digest. */
static void
digest_bytes(uint64_t *digest, const char *bytes, size_t n)
{
	for (size_t i = 0; i + 8 <= n; i += 8)
	{
		uint64_t word;

		memcpy(&word, bytes + i, 8);
		*digest = (*digest ^ word) * UINT64_C(0x9E3779B97F4A7C15);
		*digest ^= *digest >> 29;
	}
}

/* Has a chunk of rows emitted from *place on, compares them and goes on behind them. */
const char *
emit_chunk(Sort *sort, const Rows *rows, uint64_t *place, uint64_t end)
{
	GpuSortMessage data = {.magic = 0};
	GpuSortEmitted *emitted = &data.u.data.emitted;
	const char *problem;

	if (gpusort_external_emit(sort->external, *place, end, sort->chunk, emitted, &sort->error) != 0)
		return sort->error.text;
	if (emitted->rows == 0 || emitted->rows > end - *place)
		return "no rows are emitted, or too many";
	if (emitted->last != (*place + emitted->rows == end))
		return "the last rows are not told, or others";
	problem = rows_check(rows, *place, sort->chunk, &data);
	digest_bytes(&sort->digest, sort->chunk, emitted->bytes);
	*place += emitted->rows;
	return problem;
}

const char *
read_rows(Sort *sort, const Rows *rows, uint64_t first, uint64_t end)
{
	const char *problem = NULL;

	while (problem == NULL && first < end)
		problem = emit_chunk(sort, rows, &first, end);
	return problem;
}
