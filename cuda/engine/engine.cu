/*-------------------------------------------------------------------------
 *
 * engine.cu
 *	  The cuda engine behind src/service/engine.h: devices, begin and end.
 *
 * open makes everything warm, by running small sorts through every kernel, so that
 * the first query costs no more than the next.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "build_id.h"
#include "engine/check.h"
#include "engine/device.h"
#include "engine/host_buffers.h"
#include "engine/reclaimer.h"
#include "engine/redistribute.h"
#include "engine/reservation.h"
#include "engine/shard.h"
#include "engine/steps.h"
#include "engine/upload.h"

/* Sorts that may begin at once without anything being made for them. */
#define GPUSORT_WARM_SORTS 4

/* More rows than one block sorts. */
#define GPUSORT_WARM_ROWS 12000

/* Enough for runs of all lengths that tied rows are treated by. */
#define GPUSORT_WARM_TIES 2000

struct GpuSortEngine
{
	GpuSortDeviceSet set;
	GpuSortHostBuffers buffers;
	GpuSortReclaimer reclaimer;
	void *pool;         /* NULL unless pinned */
	bool pool_unpinned; /* there is one, but it could not be pinned */
};

/*
 * In the environment: sorts of so many estimated rows begin on all devices.  Without it
 * only those do that fit no single one: 50M rows took 4.9 ms on one H200 and 5.9 on two, and
 * the devices left alone serve other sorts.
 */
#define GPUSORT_LARGE_NAME "GPUSORT_SPREAD_ROWS"

static void engine_close(GpuSortEngine *engine);
static void engine_end(GpuSort *sort);

/*
 * Reads the setting's list of devices into chosen, an array of `present` flags.
 * Returns how many are chosen, or -1.
 */
static int
choose_devices(const char *list, int present, bool *chosen, GpuSortError *error)
{
	int count = 0;

	if (list == NULL || list[0] == '\0' || strcmp(list, "all") == 0)
	{
		for (int i = 0; i < present; i++)
			chosen[i] = true;
		return present;
	}
	for (;;)
	{
		char *end;
		long ordinal = strtol(list, &end, 10);

		while (*end == ' ')
			end++;
		if (end == list || (*end != ',' && *end != '\0'))
			return gpusort_fail(error, GPUSORT_REASON_NO_ENGINE,
								"gpusort.devices is neither \"all\" nor a list of numbers");
		if (ordinal < 0 || ordinal >= present)
			return gpusort_fail(error, GPUSORT_REASON_NO_ENGINE,
								"gpusort.devices names device %ld, but there are %d, from 0 on", ordinal, present);
		if (!chosen[ordinal])
			count++;
		chosen[ordinal] = true;
		if (*end == '\0')
			return count;
		list = end + 1;
	}
}

/* Begins a sort on the set's devices. */
static int
begin_sort(const GpuSortDeviceSet *set, const GpuSortRequest *request, const int *cancelled, GpuSort **begun,
		   GpuSortError *error)
{
	GpuSort *sort;

	if (request->key_words < 1 || request->key_words > GPUSORT_MAX_KEY_WORDS)
		return gpusort_fail(error, GPUSORT_REASON_INTERNAL, "a key of %u words", request->key_words);

	sort = (GpuSort *) calloc(1, sizeof(GpuSort));
	if (sort == NULL)
		return gpusort_fail(error, GPUSORT_REASON_NO_MEMORY, "out of memory");
	sort->set = set;
	sort->cancelled = cancelled;
	sort->key_words = request->key_words;
	sort->may_tie = request->may_tie != 0;
	sort->spill = request->spill != 0;
	sort->limit = request->limit;
	sort->run_bits = request->run_bits;
	sort->run_rows = request->run_rows;
	sort->run_exact = request->run_exact != 0;
	sort->run_peers = request->run_peers != 0 || (sort->run_exact && sort->may_tie);
	sort->run_counts = request->run_counts != 0;
	gpusort_key_stats_none(&sort->boundary_stats);
	if (gpusort_shards_begin(sort, request->estimated_rows, request->estimated_bytes, error) != 0)
	{
		engine_end(sort);
		return -1;
	}
	*begun = sort;
	return 0;
}

/*
 * A sort of so many made-up rows, with keys of 32 bits that differ,
 * or keys whose first 32 bits are few: half of all rows have
 * the first value, half of the rest the second, and so on; of those the
 * first alone, and their counts, if run_rows is 1.
 */
static int
warm_sort(const GpuSortDeviceSet *set, uint32_t rows, bool tied, uint32_t run_rows, char *chunk, GpuSortError *error)
{
	static const int never = 0;
	const uint32_t length = run_rows > 0 ? GPUSORT_ROW_COUNT_OFFSET + 8 : GPUSORT_ROW_BYTES_MIN;
	const uint32_t record = 8 + length;
	uint64_t mixed = 1;
	GpuSortRequest request = {};
	GpuSortOutcome outcome;
	GpuSortEmitted emitted;
	GpuSort *sort;
	uint64_t row = rows / 2;
	uint64_t key;
	int result;

	for (uint32_t i = 0; i < rows; i++)
	{
		uint64_t *words = (uint64_t *) (chunk + (size_t) i * record);

		mixed = mixed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		words[0] = mixed >> 32;
		if (tied)
			words[0] |= (uint64_t) (UINT32_C(0x9E3779B9) * (1 + __builtin_clzll(mixed | 1))) << 32;
		words[1] = length | (uint64_t) GPUSORT_ROW_KEY_TRUNCATED << 8 * GPUSORT_ROW_FLAGS_OFFSET;
		*gpusort_chunk_offset(chunk, i) = i * record;
	}

	request.key_words = 1;
	request.may_tie = 1;
	request.run_rows = run_rows;
	request.run_bits = run_rows > 0 ? 32 : 0;
	request.run_counts = run_rows > 0;
	if (begin_sort(set, &request, &never, &sort, error) != 0)
		return -1;
	result = gpusort_cuda_reserve(sort, rows, error);
	if (result == 0)
		result = gpusort_cuda_put(sort, chunk, rows, rows * record, rows, error);
	if (result == 0)
		result = gpusort_cuda_sort(sort, &outcome, error);
	if (result == 0)
		result = gpusort_cuda_emit(sort, 0, outcome.rows, false, chunk, &emitted, error);
	if (result == 0)
		result = gpusort_cuda_emit(sort, 0, outcome.rows, true, chunk, &emitted, error);
	if (result == 0)
		result = gpusort_cuda_keys_at(sort, &row, 1, &key, error);
	if (result == 0)
		result = gpusort_cuda_rows_below(sort, 64, &key, 1, &row, error);
	engine_end(sort);
	return result;
}

/* Every kernel, and what sorts that begin at once need. */
static int
warm_device(GpuSortCudaDevice *device, GpuSortError *error)
{
	static const int never = 0;
	const GpuSortDeviceSet alone = {device, 1, false, UINT64_MAX};
	GpuSort *sorts[GPUSORT_WARM_SORTS];
	GpuSortRequest request = {};
	GpuSortError ignored;
	int begun = 0;
	char *chunk = (char *) calloc(1, GPUSORT_CHUNK_BYTES);
	int result;

	if (chunk == NULL)
		return gpusort_fail(error, GPUSORT_REASON_NO_MEMORY, "out of memory");
	result = warm_sort(&alone, GPUSORT_WARM_ROWS, false, 0, chunk, error);
	if (result == 0)
		result = warm_sort(&alone, GPUSORT_WARM_TIES, true, 0, chunk, error);
	if (result == 0)
		result = warm_sort(&alone, GPUSORT_WARM_TIES, true, 1, chunk, error);
	free(chunk);
	if (result != 0)
		return -1;

	/* With little memory fewer will do. */
	request.key_words = 1;
	while (begun < GPUSORT_WARM_SORTS && begin_sort(&alone, &request, &never, &sorts[begun], &ignored) == 0)
		begun++;
	while (begun > 0)
		engine_end(sorts[--begun]);
	gpusort_memory_keep(&device->memory);
	return 0;
}

/* Opens the chosen devices and makes them warm.  With "all", those that cannot be are left out. */
static int
open_devices(GpuSortEngine *engine, const GpuSortEngineConfig *config, GpuSortError *error)
{
	const bool all = config->devices == NULL || config->devices[0] == '\0' || strcmp(config->devices, "all") == 0;
	int present = 0;
	bool *chosen;
	int count;
	cudaError_t status = cudaGetDeviceCount(&present);

	if (status != cudaSuccess || present == 0)
	{
		(void) cudaGetLastError();
		return gpusort_fail(error, GPUSORT_REASON_NO_ENGINE, "no CUDA device: %s",
							status != cudaSuccess ? cudaGetErrorString(status) : "none is there");
	}

	engine->set.devices = (GpuSortCudaDevice *) calloc(present, sizeof(GpuSortCudaDevice));
	chosen = (bool *) calloc(present, sizeof(bool));
	if (engine->set.devices == NULL || chosen == NULL)
	{
		free(chosen);
		return gpusort_fail(error, GPUSORT_REASON_NO_MEMORY, "out of memory");
	}

	count = choose_devices(config->devices, present, chosen, error);
	for (int i = 0; i < present && count > 0; i++)
	{
		GpuSortCudaDevice *device = &engine->set.devices[engine->set.count];

		if (!chosen[i])
			continue;
		if (gpusort_device_open(device, i, config->memory_limit, error) == 0 &&
			gpusort_find_work_per_row(device, error) == 0 && warm_device(device, error) == 0)
			engine->set.count++;
		else
		{
			gpusort_device_close(device);
			if (!all)
				count = -1;
		}
	}
	free(chosen);
	if (count > 0 && engine->set.count > 0)
		gpusort_devices_join(&engine->set);

	/* *error tells why the last one was left out */
	return count > 0 && engine->set.count > 0 ? 0 : -1;
}

static int
engine_open(const GpuSortEngineConfig *config, GpuSortEngine **opened, GpuSortError *error)
{
	GpuSortEngine *engine = (GpuSortEngine *) calloc(1, sizeof(GpuSortEngine));
	const char *large_rows = getenv(GPUSORT_LARGE_NAME);
	int result;

	if (engine == NULL)
		return gpusort_fail(error, GPUSORT_REASON_NO_MEMORY, "out of memory");

	/* Load all kernels with the context, not each at its first launch.  Read by the driver at its start. */
	(void) setenv("CUDA_MODULE_LOADING", "EAGER", 0);

	gpusort_host_buffers_init(&engine->buffers);
	engine->set.large_rows = large_rows != NULL ? strtoull(large_rows, NULL, 10) : UINT64_MAX;
	result = open_devices(engine, config, error);
	if (result == 0)
		result = gpusort_reclaimer_start(&engine->reclaimer, &engine->set, &engine->buffers, error);
	if (result == 0 && config->pool != NULL)
	{
		/* Without pinning copies are slower, but right. */
		if (cudaHostRegister(config->pool, config->pool_bytes, cudaHostRegisterPortable) == cudaSuccess)
			engine->pool = config->pool;
		else
		{
			(void) cudaGetLastError();
			engine->pool_unpinned = true;
		}
	}
	if (result != 0)
	{
		engine_close(engine);
		return -1;
	}
	*opened = engine;
	return 0;
}

static void
engine_close(GpuSortEngine *engine)
{
	gpusort_reclaimer_stop(&engine->reclaimer);
	if (engine->set.count > 0)
		(void) cudaSetDevice(engine->set.devices[0].ordinal);
	if (engine->pool != NULL)
		(void) cudaHostUnregister(engine->pool);
	gpusort_host_buffers_free(&engine->buffers);
	(void) cudaGetLastError();
	for (int i = 0; i < engine->set.count; i++)
		gpusort_device_close(&engine->set.devices[i]);
	free(engine->set.devices);
	free(engine);
}

static int
engine_describe(GpuSortEngine *engine, GpuSortDevice *devices, int max)
{
	uint64_t all = 0;

	for (int i = 0; i < engine->set.count; i++)
		all += engine->set.devices[i].memory.share.limit;
	for (int i = 0; i < engine->set.count && i < max; i++)
	{
		GpuSortCudaDevice *device = &engine->set.devices[i];
		GpuSortDevice *out = &devices[i];

		memset(out, 0, sizeof(*out));
		out->ordinal = device->ordinal;
		out->memory_total = device->memory_total;
		snprintf(out->name, sizeof(out->name), "%s", device->name);
		pthread_mutex_lock(&device->lock);
		out->jobs = device->memory.share.sorts;
		out->memory_limit = device->memory.share.limit;
		out->sort_limit = engine->set.joined ? all : device->memory.share.limit;
		out->memory_used = device->memory.needed;
		snprintf(out->detail, sizeof(out->detail), "%.30s%s%s", device->detail,
				 engine->pool_unpinned ? ", pool not pinned" : "", device->dead ? ", failed" : "");
		pthread_mutex_unlock(&device->lock);
	}
	return engine->set.count;
}

static int
engine_begin(GpuSortEngine *engine, const GpuSortRequest *request, const int *cancelled, GpuSort **sort,
			 GpuSortPlace *place, GpuSortError *error)
{
	const GpuSortCudaDevice *first;

	if (begin_sort(&engine->set, request, cancelled, sort, error) != 0)
		return -1;
	gpusort_reclaimer_wake(&engine->reclaimer);
	first = (*sort)->shards[0].device;
	place->ordinal = first->ordinal;

	/* where devices share sorts, any of them may come to have a part of this one */
	place->ecc = first->ecc;
	for (int i = 0; i < engine->set.count && engine->set.joined; i++)
		place->ecc &= engine->set.devices[i].ecc;
	if ((*sort)->shard_count == 1)
		snprintf(place->device, sizeof(place->device), "%s", first->name);
	else
		snprintf(place->device, sizeof(place->device), "%u x %.50s", (*sort)->shard_count, first->name);
	return 0;
}

static void *
engine_get_buffer(GpuSortEngine *engine)
{
	void *buffer = gpusort_host_buffer_get(&engine->buffers, &engine->set);

	gpusort_reclaimer_wake(&engine->reclaimer);
	return buffer;
}

static void
engine_put_buffer(GpuSortEngine *engine, void *buffer)
{
	gpusort_host_buffer_put(&engine->buffers, buffer);
}

/* Also ends a sort that begin_sort could not finish to begin. */
static void
engine_end(GpuSort *sort)
{
	gpusort_shards_end(sort);
	gpusort_redistribution_free(sort);
	free(sort->reserves);
	free(sort->chunks);
	free(sort);
}

extern "C"
{
	extern void gpusort_cuda_age(GpuSortEngine *engine);

	/* For tests, which do not want to wait. */
	void
	gpusort_cuda_age(GpuSortEngine *engine)
	{
		gpusort_reclaim(&engine->set, &engine->buffers);
	}

	extern __attribute__((visibility("default"))) const GpuSortEngineOps gpusort_cuda_engine;

	const GpuSortEngineOps gpusort_cuda_engine = {
		GPUSORT_ENGINE_ABI,
		GPUSORT_ENGINE_CUDA,
		GPUSORT_BUILD,
		engine_open,
		engine_close,
		engine_describe,
		engine_begin,
		gpusort_cuda_reserve,
		gpusort_cuda_put,
		gpusort_cuda_sort,
		gpusort_cuda_emit,
		gpusort_cuda_keys_at,
		gpusort_cuda_rows_below,
		engine_end,
		engine_get_buffer,
		engine_put_buffer,
	};
}
