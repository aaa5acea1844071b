/*-------------------------------------------------------------------------
 *
 * engine.c
 *	  The host engine: sorts with the CPU's threads in the host's memory.
 *
 * The methods of service/engine.h are here, with what a sort's memory is and who
 * may have how much of it; sort_state.h says where the rest is.
 *
 * MEMORY
 *	A chunk that was put is one extent: its records, and an entry per row.  A
 *	row also takes two elements while it is sorted and one from then on.  Of
 *	all that, reserve charges the most that a chunk could take, put corrects the
 *	charge to what the chunk did take, so that sort cannot run out of what is
 *	allowed.  (Work space of fixed size is not counted.)
 *
 *	end gives everything back, whatever happened before.  What is free stays
 *	mapped for the next sort; a thread of the engine gives back to the system
 *	what sorts have not needed for a while.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "service/host/errors.h"
#include "service/host/order.h"
#include "service/host/packing.h"
#include "service/host/rows.h"
#include "service/host/sort.h"

/* Memory goes back to the system when it was free for so many seconds, and twice that at most. */
#define AGE_SECONDS 30

/* Rows may be read this far past their end (rows.c). */
#define RECORDS_SLACK 64

struct GpuSortEngine
{
	GpuSortHostMemory *memory;
	GpuSortThreads *threads;
	uint64_t memory_total;
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

static double
now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
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

/* Has memory age while there is any; sleeps while there is none. */
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
	uint64_t limit = config->memory_limit;
	int threads = config->threads;
	pthread_condattr_t attributes;

	if (engine == NULL)
		return gpusort_host_error_memory(error);
	engine->memory_total = (uint64_t) sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
	if (limit == 0)
		limit = engine->memory_total / 4;
	if (threads <= 0)
	{
		cpu_set_t cpus;

		threads = sched_getaffinity(0, sizeof(cpus), &cpus) == 0 ? CPU_COUNT(&cpus) : sysconf(_SC_NPROCESSORS_ONLN);
	}
	read_cpu_name(engine->name, sizeof(engine->name));

	engine->memory = gpusort_host_memory_create(limit);
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
		if (engine->memory != NULL)
			gpusort_host_memory_destroy(engine->memory);
		free(engine);
		return gpusort_host_error_memory(error);
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
	snprintf(devices->detail, sizeof(devices->detail), "%d threads",
			 gpusort_threads_count(engine->threads));
	return 1;
}

/* The bytes that a row takes besides its record. */
static uint64_t
bytes_per_row(const GpuSort *sort)
{
	return sort->entry_words * sizeof(uint64_t) + 2 * sizeof(GpuSortElement);
}

/* The most rows that a chunk can hold: key, the shortest row, offset. */
static uint64_t
chunk_rows_max(const GpuSort *sort)
{
	return GPUSORT_CHUNK_BYTES / (8 * sort->key_words + 8 + 4);
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
	GpuSort *sort;
	uint64_t estimate;

	if (request->key_words < 1 || request->key_words > GPUSORT_MAX_KEY_WORDS)
		return error_order_of_calls(error, "key_words is out of range");
	sort = calloc(1, sizeof(GpuSort));
	if (sort == NULL)
		return gpusort_host_error_memory(error);
	sort->engine = engine;
	sort->memory = engine->memory;
	sort->threads = engine->threads;
	sort->cancelled = cancelled;
	sort->key_words = request->key_words;
	sort->inline_words = request->key_words <= GPUSORT_HOST_INLINE_WORDS ? request->key_words : 0;
	sort->entry_words = sort->inline_words + 1;
	sort->may_tie = request->may_tie != 0;
	sort->limit = request->limit;
	sort->ascending = true;
	sort->descending = true;
	memset(sort->all, 0xFF, sizeof(sort->all));
	sort->reserve_bytes = GPUSORT_CHUNK_BYTES + RECORDS_SLACK + 4096 +
		chunk_rows_max(sort) * bytes_per_row(sort);

	/* Estimates are not trusted so far that adding them up might overflow. */
	if (request->estimated_rows > GPUSORT_MAX_ROWS)
	{
		free(sort);
		error->reason = GPUSORT_REASON_TOO_MANY_ROWS;
		snprintf(error->text, sizeof(error->text), "a sort takes %llu rows at most",
				 (unsigned long long) GPUSORT_MAX_ROWS);
		return -1;
	}
	estimate = request->estimated_rows * bytes_per_row(sort);
	estimate = request->estimated_bytes > UINT64_MAX - estimate ? UINT64_MAX : request->estimated_bytes + estimate;
	if (gpusort_host_memory_would_fit(engine->memory, estimate, error) != 0)
	{
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
host_reserve(GpuSort *sort, GpuSortError *error)
{
	if (sort->elements != NULL)
		return error_order_of_calls(error, "reserve after sort");
	if (sort->rows + (sort->reserved + 1) * chunk_rows_max(sort) > GPUSORT_MAX_ROWS ||
		sort->nchunks + sort->reserved + 1 > GPUSORT_HOST_REF_CHUNKS_MAX)
	{
		error->reason = GPUSORT_REASON_TOO_MANY_ROWS;
		snprintf(error->text, sizeof(error->text), "a sort takes %llu rows at most",
				 (unsigned long long) GPUSORT_MAX_ROWS);
		return -1;
	}
	if (gpusort_host_memory_charge(sort->memory, sort->reserve_bytes, error) != 0)
		return -1;
	sort->charged += sort->reserve_bytes;
	sort->reserved++;
	return 0;
}

static void
discharge(GpuSort *sort, uint64_t bytes)
{
	gpusort_host_memory_discharge(sort->memory, bytes);
	sort->charged -= bytes;
}

static int
host_put(GpuSort *sort, const void *chunk, uint32_t rows, uint32_t bytes, GpuSortError *error)
{
	GpuSortHostChunk *ingested;
	size_t records_bytes = GPUSORT_ALIGN8((uint64_t) bytes) + RECORDS_SLACK;

	if (sort->reserved == 0 || sort->elements != NULL)
		return error_order_of_calls(error, "put without reserve");
	if (rows > chunk_rows_max(sort) || bytes > GPUSORT_CHUNK_BYTES - rows * sizeof(uint32_t))
	{
		error->reason = GPUSORT_REASON_BAD_CHUNK;
		snprintf(error->text, sizeof(error->text), "a chunk cannot hold %u rows of %u bytes",
				 rows, bytes);
		return -1;
	}
	if (gpusort_host_cancelled(sort))
		return gpusort_host_error_cancelled(error);
	sort->reserved--;
	if (rows == 0)
	{
		discharge(sort, sort->reserve_bytes);
		return 0;
	}

	if (sort->nchunks == sort->chunks_room)
	{
		uint32_t room = sort->chunks_room ? sort->chunks_room * 2 : 16;
		GpuSortHostChunk *chunks = realloc(sort->chunks, room * sizeof(GpuSortHostChunk));

		if (chunks == NULL)
			return gpusort_host_error_memory(error);
		sort->chunks = chunks;
		sort->chunks_room = room;
	}
	ingested = &sort->chunks[sort->nchunks];
	ingested->rows = rows;
	ingested->first = sort->rows;
	ingested->extent_bytes = records_bytes + rows * sort->entry_words * sizeof(uint64_t);
	ingested->records = gpusort_host_memory_get(sort->memory, ingested->extent_bytes, error);
	if (ingested->records == NULL)
		return -1;
	ingested->entries = (uint64_t *) (ingested->records + records_bytes);
	if (gpusort_host_ingest(sort, chunk, rows, bytes, ingested, error) != 0)
	{
		gpusort_host_memory_put(sort->memory, ingested->records, ingested->extent_bytes);
		return -1;
	}
	sort->nchunks++;
	sort->rows += rows;

	/* Extents are whole pages; a page more was charged for that. */
	discharge(sort, sort->reserve_bytes - 4096 - ingested->extent_bytes - rows * 2 * sizeof(GpuSortElement));
	return 0;
}

/* Gives back the second array of elements, which only sorting needs. */
static void
free_other(GpuSort *sort)
{
	if (sort->other == NULL)
		return;
	gpusort_host_memory_put(sort->memory, sort->other, sort->rows * sizeof(GpuSortElement));
	sort->other = NULL;
}

/* Puts the rows into order: elements, refs and marks are final after this. */
static int
sort_elements(GpuSort *sort, GpuSortError *error)
{
	size_t bytes = sort->rows * sizeof(GpuSortElement);
	bool in_order = sort->ascending || sort->descending;

	sort->elements = gpusort_host_memory_get(sort->memory, bytes, error);
	if (sort->elements == NULL)
		return -1;
	gpusort_packing_plan(&sort->packing, sort->any, sort->all, sort->key_words);
	if (!in_order || sort->packing.words > 1)
	{
		sort->other = gpusort_host_memory_get(sort->memory, bytes, error);
		if (sort->other == NULL)
			return -1;
	}
	gpusort_host_extract(sort, in_order ? sort->elements : sort->other, !sort->ascending && in_order);
	if (gpusort_host_cancelled(sort))
		return gpusort_host_error_cancelled(error);
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
	double start = now_ms();

	if (sort->elements != NULL)
		return error_order_of_calls(error, "sort after sort");
	discharge(sort, sort->reserved * sort->reserve_bytes);
	sort->reserved = 0;

	if (sort->rows > 0)
	{
		if (sort_elements(sort, error) != 0)
			return -1;
		free_other(sort);
		discharge(sort, sort->rows * sizeof(GpuSortElement));
	}
	cut_output(sort);
	outcome->rows_in = sort->rows;
	outcome->rows = sort->rows_out;
	outcome->bytes = sort->row_bytes;
	outcome->tie_rows = sort->tie_rows;
	outcome->key_bits = sort->key_words * 64;
	outcome->packed_bits = sort->packing.bits;
	outcome->sort_ms = now_ms() - start;
	return 0;
}

static int
host_emit(GpuSort *sort, void *chunk, GpuSortEmitted *emitted, GpuSortError *error)
{
	double start = now_ms();

	if (gpusort_host_cancelled(sort))
		return gpusort_host_error_cancelled(error);
	if (sort->rows > 0 && sort->elements == NULL)
		return error_order_of_calls(error, "emit before sort");
	gpusort_host_emit(sort, chunk, emitted);
	emitted->gather_ms = now_ms() - start;
	return 0;
}

static int
host_rewind(GpuSort *sort, GpuSortError *error)
{
	if (sort->rows > 0 && sort->elements == NULL)
		return error_order_of_calls(error, "rewind before sort");
	sort->emitted = 0;
	return 0;
}

static void
host_end(GpuSort *sort)
{
	GpuSortEngine *engine = sort->engine;

	for (uint32_t i = 0; i < sort->nchunks; i++)
		gpusort_host_memory_put(sort->memory, sort->chunks[i].records, sort->chunks[i].extent_bytes);
	free_other(sort);
	if (sort->elements != NULL)
		gpusort_host_memory_put(sort->memory, sort->elements, sort->rows * sizeof(GpuSortElement));
	gpusort_host_memory_discharge(sort->memory, sort->charged);
	free(sort->chunks);
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
	.rewind = host_rewind,
	.end = host_end,
};
