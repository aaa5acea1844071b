/*-------------------------------------------------------------------------
 *
 * algorithms.cu
 *	  The sorts that the benchmark knows; see bench.h.
 *
 * All get their keys in device memory and leave them as they are, or get them back
 * before each sort, which is not timed.  CUB gets row ids with them; gpusort and
 * the references make their own, within the time.
 *
 *-------------------------------------------------------------------------
 */
#include "bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "array/array_sort.h"
#include "array/array_stats.h"
#include "cub_sort.h"
#include "published/reference.h"
#include "sort/launch.h"
#include "sort/radix/radix_sort.h"

#define SECTOR_BYTES 32
#define FIRST_ROWS   1000

/* ---- gpusort ---- */

enum
{
	LIBRARY_ARRAY,   /* statistics, plan, sort */
	LIBRARY_FIRST,   /* the same for the first rows alone */
	LIBRARY_PLANNED, /* statistics and plan are there before */
	LIBRARY_CORE,    /* the radix sort of 32-bit keys, as it is */
};

static GpuSortKeySource
key_source(const BenchInput *input)
{
	GpuSortKeySource source = {};

	source.kind = input->key == BENCH_U32 ? GPUSORT_KEYS_UINT32 : input->key == BENCH_FLOAT ? GPUSORT_KEYS_FLOAT
																							: GPUSORT_KEYS_WORDS;
	source.key_words = input->key == BENCH_COMPOSITE ? 3 : 1;
	source.stride_words = source.key_words;
	source.base = input->keys;
	return source;
}

static bool
can_any(const BenchAlgorithm *algorithm, BenchKey key, uint64_t rows)
{
	return rows <= GPUSORT_DEVICE_SORT_MAX_ROWS && (algorithm->variant != LIBRARY_CORE || key == BENCH_U32);
}

/* The limit of rows wanted, 0 for all. */
static uint32_t
library_limit(const BenchRun *run)
{
	return run->algorithm->variant == LIBRARY_FIRST ? FIRST_ROWS : 0;
}

static GpuSortDeviceSort
device_sort(const BenchRun *run)
{
	GpuSortDeviceSort sort = {};

	sort.source = key_source(run->input);
	sort.plan = &run->plan;
	sort.rows = (uint32_t) run->input->rows;
	sort.order = (GpuSortInputOrder) run->order;
	sort.wait.mirror = run->pinned;
	return sort;
}

static int
library_plan(BenchRun *run)
{
	GpuSortKeySource source = key_source(run->input);
	uint32_t rows = (uint32_t) run->input->rows;
	GpuSortKeyStats *on_device;
	GpuSortKeyStats stats;
	cudaError_t status;

	if (bench_device_alloc((void **) &on_device, sizeof(stats)) != 0)
		return -1;
	status = (cudaError_t) gpusort_key_stats_reset(on_device, (GpuSortStream) run->stream);
	if (status == cudaSuccess)
		status = (cudaError_t) gpusort_key_stats_array(&source, rows, on_device, (GpuSortStream) run->stream);
	if (status == cudaSuccess)
		status = cudaMemcpyAsync(&stats, on_device, sizeof(stats), cudaMemcpyDeviceToHost, run->stream);
	if (status == cudaSuccess)
		status = cudaStreamSynchronize(run->stream);
	(void) cudaFree(on_device);
	BENCH_CUDA(status);
	gpusort_pack_plan(&run->plan, source.key_words, &stats);
	run->order = gpusort_key_stats_sorted(&stats, rows) ? GPUSORT_INPUT_SORTED
		: gpusort_key_stats_reversed(&stats, rows)      ? GPUSORT_INPUT_REVERSED
														: GPUSORT_INPUT_UNKNOWN;
	return 0;
}

static int
library_open(BenchRun *run)
{
	GpuSortKeySource source = key_source(run->input);
	uint32_t rows = (uint32_t) run->input->rows;
	GpuSortDeviceSort sort;

	BENCH_CUDA(cudaHostAlloc(&run->pinned, GPUSORT_DEVICE_SORT_MIRROR_BYTES, 0));
	if (run->algorithm->variant == LIBRARY_CORE)
		BENCH_CUDA(gpusort_radix_temp_bytes(rows, 32, &run->temp_bytes));
	else if (run->algorithm->variant != LIBRARY_PLANNED)
		BENCH_CUDA((cudaError_t) gpusort_array_sort_bytes(&source, rows, library_limit(run), &run->temp_bytes));
	else
	{
		if (library_plan(run) != 0)
			return -1;
		sort = device_sort(run);
		BENCH_CUDA((cudaError_t) gpusort_device_sort_bytes(&sort, &run->temp_bytes));
	}
	if (bench_device_alloc(&run->memory[0], run->temp_bytes) != 0 ||
		bench_device_alloc(&run->memory[1], (size_t) rows * 4) != 0)
		return -1;
	run->output.ids = (uint32_t *) run->memory[1];
	run->output.stable = true;
	run->output.count = library_limit(run);
	return 0;
}

static int
library_sort(BenchRun *run)
{
	GpuSortKeySource source = key_source(run->input);
	uint32_t rows = (uint32_t) run->input->rows;
	uint32_t *ids = (uint32_t *) run->memory[1];
	GpuSortDeviceSort sort;

	if (run->algorithm->variant == LIBRARY_CORE)
	{
		GpuSortRadixSort core = {};

		core.temp = run->memory[0];
		core.temp_bytes = run->temp_bytes;
		core.keys_in = (const uint32_t *) run->input->keys;
		core.rows = rows;
		core.bits = 32;
		core.ids_out = ids;
		BENCH_CUDA(gpusort_radix_sort(&core, run->stream));
	}
	else if (run->algorithm->variant != LIBRARY_PLANNED)
	{
		GpuSortDeviceWait wait = {};

		wait.mirror = run->pinned;
		BENCH_CUDA((cudaError_t) gpusort_array_sort(&source, rows, library_limit(run), &wait,
													run->memory[0], run->temp_bytes, ids, (GpuSortStream) run->stream));
	}
	else
	{
		sort = device_sort(run);
		BENCH_CUDA((cudaError_t) gpusort_array_sort_planned(&sort, run->memory[0], run->temp_bytes, ids,
															(GpuSortStream) run->stream));
	}
	return 0;
}

/*
 * The core: keys are read for the histograms; passes of 8 bits read and write 8 bytes a row, but
 * the first, which makes the ids, reads 4, and the last writes 4 if keys are not wanted.
 */
static double
core_bytes(int bits, bool keys_kept)
{
	int passes = (bits + 7) / 8;

	return 4 + 16.0 * passes - 4 - (keys_kept ? 0 : 4);
}

/*
 * Uniform keys: an array of u32 is its own partial keys, which the statistics read again.  Other keys
 * are read once for statistics and partial keys, if those of a sample serve.  Where there are more than
 * 32 bits the sorted partial keys are read again, and of rows that tie the id is read and written and a
 * sector of the key read.
 */
double
bench_gpusort_bytes(BenchKey key, uint64_t rows, bool with_statistics)
{
	double key_bytes = (double) bench_key_bytes(key);
	double tied = 1 - exp(-(double) rows / 4294967296.0);

	if (key == BENCH_U32)
		return (with_statistics ? key_bytes : 0) + core_bytes(32, false);
	if (key == BENCH_FLOAT)
		return key_bytes + 4 + core_bytes(32, false);
	return key_bytes + 4 + core_bytes(32, true) + 4 + tied * (4 + 4 + SECTOR_BYTES);
}

static double
library_bytes(const BenchAlgorithm *algorithm, BenchKey key, uint64_t rows)
{
	if (algorithm->variant == LIBRARY_CORE)
		return core_bytes(32, false);
	if (algorithm->variant == LIBRARY_FIRST)
		/* partial keys, and two looks at them */
		return (double) bench_key_bytes(key) + (key == BENCH_U32 ? 0 : 4) + 8;
	return bench_gpusort_bytes(key, rows, algorithm->variant != LIBRARY_PLANNED);
}

/* ---- CUB ---- */

enum
{
	CUB_COUNT_32,
	CUB_COUNT_64,
};

static __global__ void
number_rows(uint32_t *ids, uint32_t rows)
{
	for (uint64_t i = blockIdx.x * (uint64_t) blockDim.x + threadIdx.x; i < rows;
		 i += (uint64_t) gridDim.x * blockDim.x)
		ids[i] = (uint32_t) i;
}

static bool
cub_can(const BenchAlgorithm *algorithm, BenchKey key, uint64_t rows)
{
	/* below 2^32 by some, as counts of 32 bits have hung there */
	return key != BENCH_COMPOSITE && (algorithm->variant == CUB_COUNT_64 || rows <= UINT32_MAX - (1u << 20));
}

static cudaError_t
cub_call(BenchRun *run, void *temp)
{
	BenchCubArgs args = {};
	cudaError_t status;

	args.temp = temp;
	args.temp_bytes = &run->temp_bytes;
	args.rows = run->input->rows;
	args.wide_count = run->algorithm->variant == CUB_COUNT_64;
	for (int i = 0; i < 2; i++)
	{
		args.keys[i] = run->memory[i];
		args.ids[i] = (uint32_t *) run->memory[2 + i];
	}
	status = run->input->key == BENCH_U32 ? bench_cub_sort_u32(&args, run->stream)
		: run->input->key == BENCH_U64    ? bench_cub_sort_u64(&args, run->stream)
										  : bench_cub_sort_float(&args, run->stream);
	run->output.keys = args.keys[0];
	run->output.ids = args.ids[0];
	return status;
}

static int
cub_open(BenchRun *run)
{
	size_t key_bytes = bench_key_bytes(run->input->key) * run->input->rows;

	for (int i = 0; i < 2; i++)
	{
		if (bench_device_alloc(&run->memory[i], key_bytes) != 0)
			return -1;
		if (run->algorithm->with_ids && bench_device_alloc(&run->memory[2 + i], run->input->rows * 4) != 0)
			return -1;
	}
	run->output.stable = true;
	BENCH_CUDA(cub_call(run, NULL));
	return bench_device_alloc(&run->memory[4], run->temp_bytes);
}

static int
cub_restore(BenchRun *run)
{
	size_t key_bytes = bench_key_bytes(run->input->key) * run->input->rows;

	if (run->input->rows == 0)
		return 0;
	BENCH_CUDA(cudaMemcpyAsync(run->memory[0], run->input->keys, key_bytes, cudaMemcpyDeviceToDevice, run->stream));
	if (run->algorithm->with_ids)
	{
		GPUSORT_START_KERNEL(number_rows, (unsigned int) std::min(run->input->rows / 256 + 1, (uint64_t) 2112), 256,
							 run->stream, (uint32_t *) run->memory[2], (uint32_t) run->input->rows);
		BENCH_CUDA(cudaGetLastError());
	}
	return 0;
}

static int
cub_sort(BenchRun *run)
{
	BENCH_CUDA(cub_call(run, run->memory[4]));
	return 0;
}

/* The keys are read for the histograms; each pass of 8 bits reads and writes keys and ids. */
static double
cub_bytes(const BenchAlgorithm *algorithm, BenchKey key, uint64_t)
{
	double key_bytes = (double) bench_key_bytes(key);

	return key_bytes + key_bytes * 2 * (key_bytes + (algorithm->with_ids ? 4 : 0));
}

/* ---- the references ---- */

static bool
reference_can(const BenchAlgorithm *algorithm, BenchKey key, uint64_t rows)
{
	const GpuSortReference *reference = (const GpuSortReference *) algorithm->reference;

	return (key == BENCH_U32 || key == BENCH_U64) && rows <= UINT32_MAX &&
		gpusort_reference_can(reference, (uint32_t) rows, (int) bench_key_bytes(key), algorithm->with_ids);
}

static int
host_alloc(void **memory, size_t bytes)
{
	*memory = aligned_alloc(64, (bytes + 64) / 64 * 64);
	return *memory != NULL ? 0 : bench_failed("no %.2f GiB of host memory", (double) bytes / (1 << 30));
}

static int
reference_open(BenchRun *run)
{
	const BenchAlgorithm *algorithm = run->algorithm;
	const GpuSortReference *reference = (const GpuSortReference *) algorithm->reference;
	uint32_t rows = (uint32_t) run->input->rows;
	int key_bytes = (int) bench_key_bytes(run->input->key);
	size_t all_bytes = (size_t) rows * (size_t) key_bytes;

	BENCH_CUDA(reference->temp_bytes(rows, key_bytes, algorithm->with_ids, &run->temp_bytes));
	if (bench_device_alloc(&run->memory[0], reference->on_cpu ? 0 : all_bytes) != 0 ||
		bench_device_alloc(&run->memory[1], reference->on_cpu ? 0 : (size_t) rows * 4) != 0 ||
		bench_device_alloc(&run->memory[2], reference->on_cpu ? 0 : run->temp_bytes) != 0)
		return -1;
	run->output.keys = run->memory[0];
	run->output.ids = (uint32_t *) run->memory[1];
	if (reference->on_cpu)
	{
		/* keys in and, behind them, ids out */
		if (host_alloc(&run->host_memory[0], all_bytes + (size_t) rows * 4 + 64) != 0 ||
			host_alloc(&run->host_memory[1], all_bytes) != 0 || host_alloc(&run->host_memory[2], run->temp_bytes) != 0)
			return -1;
		BENCH_CUDA(cudaMemcpy(run->host_memory[0], run->input->keys, all_bytes, cudaMemcpyDeviceToHost));
		run->output.keys = run->host_memory[1];
		run->output.ids = (uint32_t *) ((char *) run->host_memory[0] + (all_bytes + 63) / 64 * 64);
	}
	if (!algorithm->with_ids)
		run->output.ids = NULL;
	run->output.stable = reference->stable;
	return 0;
}

static int
reference_sort(BenchRun *run)
{
	const GpuSortReference *reference = (const GpuSortReference *) run->algorithm->reference;
	GpuSortReferenceArgs args = {};

	args.keys_in = reference->on_cpu ? run->host_memory[0] : run->input->keys;
	args.keys_out = (void *) run->output.keys;
	args.ids_out = (uint32_t *) run->output.ids;
	args.rows = (uint32_t) run->input->rows;
	args.key_bytes = (int) bench_key_bytes(run->input->key);
	args.temp = reference->on_cpu ? run->host_memory[2] : run->memory[2];
	args.temp_bytes = run->temp_bytes;
	BENCH_CUDA(reference->sort(&args, run->stream));
	return 0;
}

static double
reference_bytes(const BenchAlgorithm *algorithm, BenchKey key, uint64_t rows)
{
	const GpuSortReference *reference = (const GpuSortReference *) algorithm->reference;

	if (reference->on_cpu || reference->bytes_per_row == NULL)
		return 0;
	return reference->bytes_per_row((uint32_t) rows, (int) bench_key_bytes(key), algorithm->with_ids);
}

/* ---- the list ---- */

static BenchAlgorithm
make_algorithm(const char *name, const char *what, int variant, bool with_ids)
{
	BenchAlgorithm algorithm = {};

	algorithm.name = name;
	algorithm.what = what;
	algorithm.variant = variant;
	algorithm.with_ids = with_ids;
	return algorithm;
}

static void
add_library(std::vector<BenchAlgorithm> *list, const char *name, const char *what, int variant)
{
	BenchAlgorithm algorithm = make_algorithm(name, what, variant, true);

	algorithm.can = can_any;
	algorithm.open = library_open;
	algorithm.sort = library_sort;
	algorithm.bytes_per_row = library_bytes;
	list->push_back(algorithm);
}

static void
add_cub(std::vector<BenchAlgorithm> *list, const char *name, const char *what, int variant, bool with_ids)
{
	BenchAlgorithm algorithm = make_algorithm(name, what, variant, with_ids);

	algorithm.can = cub_can;
	algorithm.open = cub_open;
	algorithm.restore = cub_restore;
	algorithm.sort = cub_sort;
	algorithm.bytes_per_row = cub_bytes;
	list->push_back(algorithm);
}

static void
add_reference(std::vector<BenchAlgorithm> *list, const GpuSortReference *reference, bool with_ids)
{
	static std::deque<std::string> names; /* stay where they are */
	BenchAlgorithm algorithm;

	names.push_back(std::string(reference->name) + (with_ids ? "" : "-keys"));
	algorithm = make_algorithm(names.back().c_str(), reference->paper, 0, with_ids);
	algorithm.on_cpu = reference->on_cpu;
	algorithm.reference = reference;
	algorithm.can = reference_can;
	algorithm.open = reference_open;
	algorithm.sort = reference_sort;
	algorithm.bytes_per_row = reference_bytes;
	list->push_back(algorithm);
}

static std::vector<BenchAlgorithm>
make_list(void)
{
	const unsigned int pairs = GPUSORT_REFERENCE_PAIRS_4 | GPUSORT_REFERENCE_PAIRS_8;
	const unsigned int keys = GPUSORT_REFERENCE_KEYS_4 | GPUSORT_REFERENCE_KEYS_8;
	std::vector<BenchAlgorithm> list;

	add_library(&list, "gpusort", "statistics, plan and sort", LIBRARY_ARRAY);
	add_library(&list, "gpusort-planned", "the sort, statistics being there", LIBRARY_PLANNED);
	add_library(&list, "gpusort-first", "the first 1000 rows", LIBRARY_FIRST);
	add_library(&list, "gpusort-core", "the radix sort of 32-bit keys alone", LIBRARY_CORE);
	add_cub(&list, "cub", "CUB, uint32_t num_items", CUB_COUNT_32, true);
	add_cub(&list, "cub-int64", "CUB, int64_t num_items", CUB_COUNT_64, true);
	add_cub(&list, "cub-keys", "CUB, uint32_t num_items", CUB_COUNT_32, false);
	add_cub(&list, "cub-int64-keys", "CUB, int64_t num_items", CUB_COUNT_64, false);
	for (int i = 0; i < gpusort_reference_count; i++)
	{
		if (gpusort_references[i].sorts & pairs)
			add_reference(&list, &gpusort_references[i], true);
		if (gpusort_references[i].sorts & keys)
			add_reference(&list, &gpusort_references[i], false);
	}
	return list;
}

const BenchAlgorithm *
bench_algorithms(int *count)
{
	static const std::vector<BenchAlgorithm> list = make_list();

	*count = (int) list.size();
	return list.data();
}

const BenchAlgorithm *
bench_algorithm(const char *name)
{
	int count;
	const BenchAlgorithm *list = bench_algorithms(&count);

	for (int i = 0; i < count; i++)
	{
		if (strcmp(list[i].name, name) == 0)
			return &list[i];
	}
	return NULL;
}
