/*-------------------------------------------------------------------------
 *
 * engine.c
 *	  The host engine: sorts with the CPU's threads in the host's memory.
 *
 * The methods of service/engine.h are here, with what a sort's memory is and who
 * may have how much of it; sort_state.h says where the rest is.
 *
 * MEMORY
 *	A row takes its record, an entry, two elements while it is sorted and one
 *	from then on.  Of all that, reserve charges and maps the most that its chunk
 *	could take, put corrects that to what the chunk did take (room.c).  So neither
 *	put nor sort can run out of what is allowed, or of what the system has to
 *	give.
 *
 *	end gives everything back, whatever happened before.  What is free stays
 *	mapped for the next sort; a thread of the engine gives back to the system
 *	what sorts have not needed for a while.
 *
 *-------------------------------------------------------------------------
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "service/clock.h"
#include "service/errors.h"
#include "service/host/search.h"
#include "service/machine/machine.h"
#include "service/host/order.h"
#include "service/host/packing.h"
#include "service/host/pick.h"
#include "service/host/room.h"
#include "service/host/rows.h"
#include "service/host/sort.h"

/* Memory goes back to the system when it was free for so many seconds, and twice that at most. */
#define AGE_SECONDS 30

struct GpuSortEngine
{
	GpuSortHostMemory *memory;
	bool own_memory; /* it is the engine's to free */
	GpuSortThreads *threads;
	uint64_t memory_total; /* bytes that the service may use, limit or not */
	char name[GPUSORT_NAME_BYTES];

	/* the thread that gives back idle memory */
	pthread_t reclaimer;
	pthread_mutex_t lock;
	pthread_cond_t change; /* closing, or a sort began while it was asleep */
	bool asleep;
	bool closing;
	uint32_t jobs;
};

static int
error_order_of_calls(GpuSortError *error, const char *what)
{
	error->reason = GPUSORT_REASON_INTERNAL;
	snprintf(error->text, sizeof(error->text), "the host engine was called out of order: %s", what);
	return -1;
}

static void
read_cpu_name(char *name, size_t size)
{
	FILE *file = fopen("/proc/cpuinfo", "r");
	char line[256];

	snprintf(name, size, "host");
	if (file == NULL)
		return;
	while (fgets(line, sizeof(line), file) != NULL)
	{
		char *colon = strchr(line, ':');

		if (strncmp(line, "model name", 10) == 0 && colon != NULL)
		{
			colon += strspn(colon, ": \t");
			colon[strcspn(colon, "\n")] = '\0';
			snprintf(name, size, "%.*s", (int) size - 1, colon);
			break;
		}
	}
	fclose(file);
}

/* Lets kept memory age while there is any; sleeps while there is none. */
static void *
reclaimer_main(void *arg)
{
	GpuSortEngine *engine = arg;

	pthread_mutex_lock(&engine->lock);
	while (!engine->closing)
	{
		struct timespec until;
		int rc = 0;

		if (engine->jobs == 0 && gpusort_host_memory_cached(engine->memory) == 0)
		{
			engine->asleep = true;
			pthread_cond_wait(&engine->change, &engine->lock);
			engine->asleep = false;
			continue;
		}
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_sec += AGE_SECONDS;
		while (rc == 0 && !engine->closing)
			rc = pthread_cond_timedwait(&engine->change, &engine->lock, &until);
		if (rc == ETIMEDOUT)
		{
			pthread_mutex_unlock(&engine->lock);
			gpusort_host_memory_age(engine->memory);
			pthread_mutex_lock(&engine->lock);
		}
	}
	pthread_mutex_unlock(&engine->lock);
	return NULL;
}

static int
host_open(const GpuSortEngineConfig *config, GpuSortEngine **result, GpuSortError *error)
{
	GpuSortEngine *engine = calloc(1, sizeof(GpuSortEngine));
	int threads = config->threads;
	const GpuSortMachine *machine = gpusort_machine();
	pthread_condattr_t attributes;

	if (engine == NULL)
		return gpusort_error_memory(error);
	engine->memory_total = machine->memory;
	if (threads <= 0)
		threads = machine->cpus;
	read_cpu_name(engine->name, sizeof(engine->name));

	engine->own_memory = config->memory == NULL;
	engine->memory = engine->own_memory
		? gpusort_host_memory_create(gpusort_machine_memory_limit(machine, config->memory_limit))
		: config->memory;
	engine->threads = gpusort_threads_create(threads);
	pthread_mutex_init(&engine->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&engine->change, &attributes);
	pthread_condattr_destroy(&attributes);
	if (engine->memory == NULL || engine->threads == NULL ||
		pthread_create(&engine->reclaimer, NULL, reclaimer_main, engine) != 0)
	{
		if (engine->threads != NULL)
			gpusort_threads_destroy(engine->threads);
		if (engine->own_memory && engine->memory != NULL)
			gpusort_host_memory_destroy(engine->memory);
		free(engine);
		return gpusort_error_memory(error);
	}
	*result = engine;
	return 0;
}

static void
host_close(GpuSortEngine *engine)
{
	pthread_mutex_lock(&engine->lock);
	engine->closing = true;
	pthread_cond_signal(&engine->change);
	pthread_mutex_unlock(&engine->lock);
	pthread_join(engine->reclaimer, NULL);
	gpusort_threads_destroy(engine->threads);
	if (engine->own_memory)
		gpusort_host_memory_destroy(engine->memory);
	pthread_cond_destroy(&engine->change);
	pthread_mutex_destroy(&engine->lock);
	free(engine);
}

static int
host_describe(GpuSortEngine *engine, GpuSortDevice *devices, int max)
{
	if (max < 1)
		return 1;
	memset(devices, 0, sizeof(*devices));
	devices->memory_total = engine->memory_total;
	devices->memory_limit = gpusort_host_memory_limit(engine->memory);
	devices->sort_limit = devices->memory_limit;
	devices->memory_used = gpusort_host_memory_used(engine->memory);
	devices->jobs = __atomic_load_n(&engine->jobs, __ATOMIC_RELAXED);
	memcpy(devices->name, engine->name, sizeof(devices->name));
	snprintf(devices->detail, sizeof(devices->detail), "%d thread%s", gpusort_threads_count(engine->threads),
			 gpusort_threads_count(engine->threads) == 1 ? "" : "s");
	return 1;
}

static void
count_job(GpuSortEngine *engine, int change)
{
	pthread_mutex_lock(&engine->lock);
	__atomic_store_n(&engine->jobs, engine->jobs + change, __ATOMIC_RELAXED);
	if (change > 0 && engine->asleep)
		pthread_cond_signal(&engine->change);
	pthread_mutex_unlock(&engine->lock);
}

static int
host_begin(GpuSortEngine *engine, const GpuSortRequest *request, const int *cancelled,
		   GpuSort **result, GpuSortPlace *place, GpuSortError *error)
{
	/* One that may be kept in runs needs no more at once than what a run can be made with. */
	const uint64_t rows = request->spill ? 0 : request->estimated_rows;
	GpuSort *sort;
	uint64_t estimate;

	if (request->key_words < 1 || request->key_words > GPUSORT_MAX_KEY_WORDS)
		return error_order_of_calls(error, "key_words is out of range");
	sort = calloc(1, sizeof(GpuSort));
	if (sort == NULL)
		return gpusort_error_memory(error);
	sort->engine = engine;
	sort->memory = engine->memory;
	sort->threads = engine->threads;
	sort->cancelled = cancelled;
	sort->key_words = request->key_words;
	sort->inline_words = request->key_words <= GPUSORT_HOST_INLINE_WORDS ? request->key_words : 0;
	sort->entry_words = sort->inline_words + 1;
	sort->may_tie = request->may_tie != 0;
	sort->limit = request->limit;
	sort->run_bits = request->run_bits;
	sort->run_rows = request->run_rows;
	sort->run_exact = request->run_exact != 0;
	sort->run_peers = request->run_peers != 0 || (sort->run_exact && sort->may_tie);
	sort->run_counts = request->run_counts != 0;
	sort->ascending = true;
	sort->descending = true;
	memset(sort->all, 0xFF, sizeof(sort->all));

	/* Estimates are not trusted so far that adding them up might overflow. */
	if (rows > GPUSORT_MAX_ROWS)
	{
		free(sort);
		return gpusort_error_rows(error);
	}
	estimate = rows * gpusort_host_bytes_per_row(sort);
	estimate = request->estimated_bytes > UINT64_MAX - estimate ? UINT64_MAX : request->estimated_bytes + estimate;
	if (request->spill)
		estimate = gpusort_host_least_bytes(sort);
	gpusort_host_memory_begin(engine->memory);
	if (gpusort_host_memory_would_fit(engine->memory, estimate, 0, error) != 0)
	{
		gpusort_host_memory_end(engine->memory);
		free(sort);
		return -1;
	}
	count_job(engine, 1);
	place->ordinal = 0;
	place->ecc = 1; /* as good as what PostgreSQL itself sorts in */
	memcpy(place->device, engine->name, sizeof(place->device));
	*result = sort;
	return 0;
}

static int
host_reserve(GpuSort *sort, uint32_t rows_max, GpuSortError *error)
{
	if (sort->sorting)
		return error_order_of_calls(error, "reserve after sort");
	if (rows_max > gpusort_chunk_rows_most(sort->key_words))
		return error_order_of_calls(error, "reserve of more rows than a chunk can hold");
	return gpusort_host_room_reserve(sort, rows_max, error);
}

static int
host_put(GpuSort *sort, const void *chunk, uint32_t rows, uint32_t bytes, uint32_t rows_max,
		 GpuSortError *error)
{
	GpuSortHostChunk *ingested;

	if (sort->sorting)
		return error_order_of_calls(error, "put after sort");
	if (rows > rows_max || bytes > GPUSORT_CHUNK_BYTES - rows * sizeof(uint32_t))
	{
		error->reason = GPUSORT_REASON_BAD_CHUNK;
		snprintf(error->text, sizeof(error->text), "a chunk for %u rows cannot hold %u rows of %u bytes",
				 rows_max, rows, bytes);
		return -1;
	}
	if (gpusort_host_cancelled(sort))
		return gpusort_error_cancelled(error);

	ingested = &sort->chunks[sort->nchunks];
	if (sort->nreserves == 0 || !gpusort_host_room_take(sort, rows_max, rows, bytes, ingested))
		return error_order_of_calls(error, "put without reserve");
	if (rows == 0)
		return 0;
	ingested->rows = rows;
	ingested->first = sort->rows;
	if (gpusort_host_ingest(sort, chunk, rows, bytes, ingested, error) != 0)
		return -1;
	sort->nchunks++;
	sort->rows += rows;
	return 0;
}

/* Puts the rows into order: elements, refs and marks are final after this. */
static int
sort_elements(GpuSort *sort, GpuSortError *error)
{
	bool in_order = sort->ascending || sort->descending;

	gpusort_packing_plan(&sort->packing, sort->any, sort->all, sort->key_words);
	gpusort_host_extract(sort, in_order ? sort->elements : sort->other, !sort->ascending && in_order);
	if (gpusort_host_cancelled(sort))
		return gpusort_error_cancelled(error);
	if (!in_order &&
		gpusort_host_sort_parallel(sort, sort->elements, sort->other, sort->rows, true, error) != 0)
		return -1;
	return gpusort_host_finish(sort, error);
}

/* Returns true if the row at place i of the order has the same key as the one after it. */
static bool
key_goes_on(const GpuSort *sort, uint64_t i)
{
	return memcmp(gpusort_host_key(sort, sort->elements[i].ref), gpusort_host_key(sort, sort->elements[i + 1].ref),
				  sort->key_words * sizeof(uint64_t)) == 0;
}

/*
 * With a limit: so many rows are emitted, and with may_tie those after them whose
 * keys equal the last one's.  tie_rows is of these rows already (order.c).
 */
static void
cut_output(GpuSort *sort)
{
	sort->rows_out = sort->rows;
	if (sort->limit == 0 || sort->limit >= sort->rows)
		return;
	sort->rows_out = sort->limit;
	while (sort->may_tie && sort->rows_out < sort->rows && key_goes_on(sort, sort->rows_out - 1))
		sort->rows_out++;
	sort->row_bytes = 0;
	for (uint64_t i = 0; i < sort->rows_out; i++)
		sort->row_bytes += gpusort_host_ref_length(sort->elements[i].ref);
}

static int
host_sort(GpuSort *sort, GpuSortOutcome *outcome, GpuSortError *error)
{
	double start = gpusort_clock_ms();

	if (sort->sorting)
		return error_order_of_calls(error, "sort after sort");
	sort->sorting = true;
	gpusort_host_room_close(sort);
	if (sort->rows > 0 && sort_elements(sort, error) != 0)
		return -1;
	if (sort->run_rows == 0)
		cut_output(sort);
	else if (sort->rows > 0 && gpusort_host_pick(sort, error) != 0)
		return -1;
	gpusort_host_room_sorted(sort);
	outcome->rows_in = sort->rows;
	outcome->rows = sort->rows_out;
	outcome->bytes = sort->row_bytes;
	outcome->tie_rows = sort->tie_rows;
	outcome->run_memory = 0;
	outcome->run_disk = 0;
	outcome->runs = 0;
	outcome->key_bits = sort->key_words * 64;
	outcome->packed_bits = sort->packing.bits;
	outcome->sort_ms = gpusort_clock_ms() - start;
	return 0;
}

static int
host_emit(GpuSort *sort, uint64_t first, uint64_t end, bool records, void *chunk, GpuSortEmitted *emitted,
		  GpuSortError *error)
{
	double start = gpusort_clock_ms();

	if (gpusort_host_cancelled(sort))
		return gpusort_error_cancelled(error);
	if (!sort->sorting)
		return error_order_of_calls(error, "emit before sort");
	if (first >= end || end > sort->rows_out)
		return error_order_of_calls(error, "emit of rows that there are not");
	gpusort_host_emit(sort, first, end, records, chunk, emitted);
	emitted->gather_ms = gpusort_clock_ms() - start;
	return 0;
}

static int
host_keys_at(GpuSort *sort, const uint64_t *rows, uint32_t count, uint64_t *keys, GpuSortError *error)
{
	if (!sort->sorting)
		return error_order_of_calls(error, "keys_at before sort");
	for (uint32_t i = 0; i < count; i++)
	{
		if (rows[i] >= sort->rows_out)
			return error_order_of_calls(error, "keys_at of rows that there are not");
	}
	gpusort_host_keys_at(sort, rows, count, keys);
	return 0;
}

static int
host_rows_below(GpuSort *sort, uint32_t bits, const uint64_t *keys, uint32_t count, uint64_t *rows, GpuSortError *error)
{
	if (!sort->sorting)
		return error_order_of_calls(error, "rows_below before sort");
	if (bits < 1 || bits > 64 * sort->key_words)
		return error_order_of_calls(error, "rows_below by bits that keys have not");
	gpusort_host_rows_below(sort, bits, keys, count, rows);
	return gpusort_host_cancelled(sort) ? gpusort_error_cancelled(error) : 0;
}

static void
host_end(GpuSort *sort)
{
	GpuSortEngine *engine = sort->engine;

	gpusort_host_room_free(sort);
	gpusort_host_memory_end(engine->memory);
	free(sort);
	count_job(engine, -1);
}

const GpuSortEngineOps gpusort_host_engine = {
	.abi = GPUSORT_ENGINE_ABI,
	.kind = GPUSORT_ENGINE_HOST,
	.open = host_open,
	.close = host_close,
	.describe = host_describe,
	.begin = host_begin,
	.reserve = host_reserve,
	.put = host_put,
	.sort = host_sort,
	.emit = host_emit,
	.keys_at = host_keys_at,
	.rows_below = host_rows_below,
	.end = host_end,
};
