/*-------------------------------------------------------------------------
 *
 * marks.cu
 *	  The speeds that were to be reached, and what is; see bench.h.
 *
 *	1	(u32 key, row id), random: the radix core against CUB's SortPairs
 *	2	(u64 key, row id), random: statistics, plan and sort against CUB
 *	3	192-bit composite keys of 40 varying bits: the same, against CUB on u64
 *	4	sorted input		5	reversed input: the same, u64 keys
 *	6	(u64, row id) and rows of 64 bytes moved into order, against the time that the
 *		bytes moved take at the speed of a copy from device to device
 *	7	u32 keys, host to host, several GPUs, against RMG sort's program
 *	8	(u64 key, row id), host to host, several GPUs against one
 *	9	the first 1000 of (u64 key, row id), against CUB's sort of all; no speed was set
 *
 * CUB's time is the better of a uint32_t and an int64_t number of items.
 *
 *-------------------------------------------------------------------------
 */
#include "bench.h"

#include <string.h>

#include <algorithm>

#include "sort/launch.h"

#define MOST_MS        5000.0
#define ROW_BYTES      64
#define GATHER_THREADS 256
#define RING_ROWS      ((uint64_t) 1 << 27) /* 8 GiB: many times the cache */

static bool
wanted(const BenchOptions *options, const char *number)
{
	return bench_listed(options->rows, number);
}

/* Measures one algorithm and records it; the median in *ms. */
static int
measure(const BenchOptions *options, const char *name, const BenchInput *input, double *ms)
{
	const BenchAlgorithm *algorithm = bench_algorithm(name);
	BenchTimes times;
	BenchResult result = {};

	if (bench_measure(algorithm, input, options->repeat, MOST_MS, &times) != 0)
		return -1;
	result.section = "marks";
	result.algorithm = name;
	result.key = bench_key_name(input->key);
	result.distribution = gpusort_distribution_name(input->distribution);
	result.rows = input->rows;
	result.devices = 1;
	result.with_ids = algorithm->with_ids;
	if (input->distribution == GPUSORT_UNIFORM)
		result.bytes_per_row = algorithm->bytes_per_row(algorithm, input->key, input->rows);
	bench_record(&result, &times);
	*ms = times.median;
	return 0;
}

/* The better of CUB's two kinds of kernels. */
static int
measure_cub(const BenchOptions *options, const BenchInput *input, double *ms)
{
	double narrow;
	double wide;

	if (measure(options, "cub", input, &narrow) != 0 || measure(options, "cub-int64", input, &wide) != 0)
		return -1;
	*ms = std::min(narrow, wide);
	return 0;
}

/* A row of the table where CUB is the rival. */
static void
against(const char *work, const char *mark, double wanted_ratio, double own_ms, double cub_ms, const char *note)
{
	char got[BENCH_TEXT];
	char own[32];
	char cub[32];

	snprintf(got, sizeof(got), "%s, CUB %s", bench_duration(own_ms, own), bench_duration(cub_ms, cub));
	bench_mark(work, mark, got, own_ms > 0 ? cub_ms / own_ms : 0, wanted_ratio, note);
}

static void
mark_u32(const BenchOptions *options)
{
	const char *work = "(u32 key, row id) 2^28, random";
	const char *mark = "1.4x CUB SortPairs";
	BenchInput input = {};
	double core;
	double all;
	double cub;
	char text[32];
	char note[BENCH_TEXT];

	if (bench_input_make(&input, BENCH_U32, GPUSORT_UNIFORM, ((uint64_t) 1 << 28) >> options->shrink,
						 options->seed) == 0 &&
		measure_cub(options, &input, &cub) == 0 && measure(options, "gpusort-core", &input, &core) == 0 &&
		measure(options, "gpusort", &input, &all) == 0)
	{
		snprintf(note, sizeof(note), "%s with statistics", bench_duration(all, text));
		against(work, mark, 1.4, core, cub, note);
	}
	else
		bench_mark(work, mark, "", 0, 1.4, "failed");
	bench_input_free(&input);
}

/* Rows 2 to 5: CUB on u64 keys of the same distribution, gpusort on `key`. */
static void
mark_wide(const BenchOptions *options, const char *work, const char *mark, double ratio, BenchKey key, int distribution,
		  double *cub)
{
	BenchInput input = {};
	uint64_t rows = ((uint64_t) 1 << 28) >> options->shrink;
	double planned;
	double all;
	char text[32];
	char note[BENCH_TEXT];
	int status = 0;

	if (*cub == 0)
	{
		status = bench_input_make(&input, BENCH_U64, distribution, rows, options->seed);
		if (status == 0)
			status = measure_cub(options, &input, cub);
	}
	if (status == 0 && (input.keys == NULL || input.key != key))
	{
		bench_input_free(&input);
		status = bench_input_make(&input, key, distribution, rows, options->seed);
	}
	if (status == 0 && measure(options, "gpusort", &input, &all) == 0 &&
		measure(options, "gpusort-planned", &input, &planned) == 0)
	{
		snprintf(note, sizeof(note), "%s if statistics are there", bench_duration(planned, text));
		against(work, mark, ratio, all, *cub, note);
	}
	else
		bench_mark(work, mark, "", 0, ratio, "failed");
	bench_input_free(&input);
}

static void
mark_first(const BenchOptions *options, double *cub)
{
	const char *work = "the first 1000 of (u64 key, row id) 2^28, random";
	BenchInput input = {};
	double first;

	if (bench_input_make(&input, BENCH_U64, GPUSORT_UNIFORM, ((uint64_t) 1 << 28) >> options->shrink,
						 options->seed) == 0 &&
		(*cub > 0 || measure_cub(options, &input, cub) == 0) && measure(options, "gpusort-first", &input, &first) == 0)
		against(work, "", 0, first, *cub, "CUB sorts all");
	else
		bench_mark(work, "", "", 0, 0, "failed");
	bench_input_free(&input);
}

/* ---- rows moved into order ---- */

/* Word `word` of row `row`, a word being 16 bytes. */
__host__ __device__ static inline uint4
row_word(uint64_t row, uint32_t word)
{
	uint64_t a = gpusort_row_random(4711, row, word);
	uint4 bits;

	bits.x = (uint32_t) a;
	bits.y = (uint32_t) (a >> 32);
	bits.z = (uint32_t) row;
	bits.w = word;
	return bits;
}

static __global__ void
make_rows(uint4 *table, uint64_t rows)
{
	const uint64_t words = rows * (ROW_BYTES / 16);

	for (uint64_t i = blockIdx.x * (uint64_t) blockDim.x + threadIdx.x; i < words;
		 i += (uint64_t) gridDim.x * blockDim.x)
		table[i] = row_word(i / 4, (uint32_t) (i % 4));
}

/*
 * Rows ids[0 .. rows) into `out`, 16 bytes at a time: the four threads of a row read 64 bytes side
 * by side, a warp writes 512.  Each thread has four reads under way.
 */
static __global__ void
gather_rows(const uint4 *table, const uint32_t *ids, uint64_t rows, uint4 *out)
{
	const uint64_t words = rows * (ROW_BYTES / 16);
	const uint64_t first = blockIdx.x * (uint64_t) (4 * GATHER_THREADS) + threadIdx.x;
	uint4 bits[4];

	for (uint32_t i = 0; i < 4; i++)
	{
		const uint64_t word = first + i * GATHER_THREADS;

		if (word < words)
			bits[i] = table[(uint64_t) ids[word / 4] * 4 + word % 4];
	}
	for (uint32_t i = 0; i < 4; i++)
	{
		const uint64_t word = first + i * GATHER_THREADS;

		if (word < words)
			out[word] = bits[i];
	}
}

static __global__ void
check_rows(const uint4 *out, const uint32_t *ids, uint64_t rows, unsigned long long *wrong)
{
	const uint64_t words = rows * (ROW_BYTES / 16);

	for (uint64_t i = blockIdx.x * (uint64_t) blockDim.x + threadIdx.x; i < words;
		 i += (uint64_t) gridDim.x * blockDim.x)
	{
		uint4 found = out[i];
		uint4 right = row_word(ids[i / 4], (uint32_t) (i % 4));

		if (found.x != right.x || found.y != right.y || found.z != right.z || found.w != right.w)
			atomicAdd(wrong, 1ULL);
	}
}

/* All memory of row 6. */
typedef struct Table
{
	BenchInput input;
	uint4 *rows;
	uint4 *ring; /* ring_rows rows */
	uint64_t ring_rows;
	unsigned long long *wrong;
	BenchRun run;
	BenchTimer timer;
} Table;

static int
gather_all(Table *table, bool check)
{
	const uint32_t *ids = table->run.output.ids;

	for (uint64_t first = 0; first < table->input.rows; first += table->ring_rows)
	{
		uint64_t count = std::min(table->ring_rows, table->input.rows - first);

		GPUSORT_START_KERNEL(gather_rows, (unsigned int) ((count + GATHER_THREADS - 1) / GATHER_THREADS),
							 GATHER_THREADS, table->run.stream, table->rows, ids + first, count, table->ring);
		BENCH_CUDA(cudaGetLastError());
		if (check)
		{
			GPUSORT_START_KERNEL(check_rows, (unsigned int) std::min((count * 4 + 255) / 256, (uint64_t) 2112), 256,
								 table->run.stream, table->ring, ids + first, count, table->wrong);
			BENCH_CUDA(cudaGetLastError());
		}
	}
	return 0;
}

static int
table_open(Table *table, const BenchOptions *options)
{
	uint64_t rows = UINT64_C(1000000000) >> options->shrink;

	table->ring_rows = std::max(RING_ROWS >> options->shrink, (uint64_t) 1);
	BENCH_CUDA(cudaStreamCreateWithFlags(&table->run.stream, cudaStreamNonBlocking));
	if (bench_timer_open(&table->timer) != 0 ||
		bench_input_make(&table->input, BENCH_U64, GPUSORT_UNIFORM, rows, options->seed) != 0)
		return -1;
	table->run.algorithm = bench_algorithm("gpusort");
	table->run.input = &table->input;
	if (table->run.algorithm->open(&table->run) != 0 ||
		bench_device_alloc((void **) &table->rows, rows * ROW_BYTES) != 0 ||
		bench_device_alloc((void **) &table->ring, table->ring_rows * ROW_BYTES) != 0 ||
		bench_device_alloc((void **) &table->wrong, sizeof(*table->wrong)) != 0)
		return -1;
	GPUSORT_START_KERNEL(make_rows, (unsigned int) std::min((rows * 4 + 255) / 256, (uint64_t) 2112), 256,
						 table->run.stream, table->rows, rows);
	BENCH_CUDA(cudaGetLastError());
	BENCH_CUDA(cudaMemsetAsync(table->wrong, 0, sizeof(*table->wrong), table->run.stream));
	return 0;
}

static void
table_close(Table *table)
{
	if (table->run.stream != NULL)
		(void) cudaStreamSynchronize(table->run.stream);
	for (void *memory : table->run.memory)
		(void) cudaFree(memory);
	if (table->run.pinned != NULL)
		(void) cudaFreeHost(table->run.pinned);
	(void) cudaFree(table->rows);
	(void) cudaFree(table->ring);
	(void) cudaFree(table->wrong);
	bench_input_free(&table->input);
	bench_timer_close(&table->timer);
	if (table->run.stream != NULL)
		(void) cudaStreamDestroy(table->run.stream);
}

/* Sort and gather; the first time checked.  times: of both, gather: of that alone. */
static int
table_measure(Table *table, int repeat, BenchTimes *times, BenchTimes *gather)
{
	unsigned long long wrong = 0;
	double ms;

	if (table->run.algorithm->sort(&table->run) != 0 || gather_all(table, true) != 0)
		return -1;
	BENCH_CUDA(cudaStreamSynchronize(table->run.stream));
	BENCH_CUDA(cudaMemcpy(&wrong, table->wrong, sizeof(wrong), cudaMemcpyDeviceToHost));
	if (wrong > 0)
		return bench_failed("%llu words of rows are wrong", wrong);
	if (bench_check(&table->input, &table->run.output, "the order of rows of 64 bytes") != 0)
		return -1;
	for (int i = 0; i < repeat; i++)
	{
		if (bench_timer_begin(&table->timer, table->run.stream) != 0 || table->run.algorithm->sort(&table->run) != 0 ||
			gather_all(table, false) != 0 || bench_timer_end(&table->timer, table->run.stream, &ms) != 0)
			return -1;
		bench_times_add(times, ms);
		if (bench_timer_begin(&table->timer, table->run.stream) != 0 || gather_all(table, false) != 0 ||
			bench_timer_end(&table->timer, table->run.stream, &ms) != 0)
			return -1;
		bench_times_add(gather, ms);
	}
	return 0;
}

static void
mark_rows(const BenchOptions *options)
{
	const char *work = "1e9 (u64, row id) with 64-byte rows moved into order";
	const char *mark = "within 1.5x of the DRAM floor";
	/* an id read, a row read and written */
	const double gather_bytes = 4 + 2 * ROW_BYTES;
	double bandwidth = bench_copy_bandwidth();
	Table table = {};
	BenchTimes times = {};
	BenchTimes gather = {};
	BenchResult result = {};
	double floor_ms;
	char got[BENCH_TEXT];
	char note[BENCH_TEXT];
	char text[3][32];

	if (table_open(&table, options) == 0 &&
		table_measure(&table, std::min(options->repeat, 5), &times, &gather) == 0)
	{
		result.section = "marks";
		result.algorithm = "gpusort+rows";
		result.key = "u64";
		result.distribution = "uniform";
		result.rows = table.input.rows;
		result.devices = 1;
		result.with_ids = true;
		result.bytes_per_row = bench_gpusort_bytes(BENCH_U64, table.input.rows, true) + gather_bytes;
		result.detail = "sort, and rows of 64 bytes into a ring of buffers";
		bench_record(&result, &times);
		floor_ms = bandwidth > 0 ? result.bytes_per_row * (double) result.rows / bandwidth * 1e3 : 0;
		result.algorithm = "rows";
		result.bytes_per_row = gather_bytes;
		bench_record(&result, &gather);
		snprintf(got, sizeof(got), "%s, floor %s", bench_duration(times.median, text[0]),
				 bench_duration(floor_ms, text[1]));
		snprintf(note, sizeof(note), "%s of it moves the rows; floor: %.0f bytes a row at %.2f TB/s",
				 bench_duration(gather.median, text[2]),
				 bench_gpusort_bytes(BENCH_U64, table.input.rows, true) + gather_bytes, bandwidth / 1e12);
		bench_mark(work, mark, got, times.median > 0 ? floor_ms / times.median : 0, 1 / 1.5, note);
	}
	else
		bench_mark(work, mark, "", 0, 1 / 1.5, "failed, or not enough memory");
	table_close(&table);
}

void
bench_marks(const BenchOptions *options)
{
	double cub = 0;
	double none = 0;

	if (wanted(options, "1"))
		mark_u32(options);
	if (wanted(options, "2"))
		mark_wide(options, "(u64 key, row id) 2^28, random 64 bits, full order", "2x CUB", 2, BENCH_U64,
				  GPUSORT_UNIFORM, &cub);
	if (wanted(options, "3"))
		mark_wide(options, "3-column key of 192 bits, 40 of them varying, 2^28", "2x CUB on u64", 2, BENCH_COMPOSITE,
				  GPUSORT_UNIFORM, &cub);
	if (wanted(options, "4"))
		mark_wide(options, "sorted input, u64, 2^28", "4x CUB", 4, BENCH_U64, GPUSORT_SORTED, &none);
	none = 0;
	if (wanted(options, "5"))
		mark_wide(options, "reversed input, u64, 2^28", "4x CUB", 4, BENCH_U64, GPUSORT_REVERSE, &none);
	if (wanted(options, "6"))
		mark_rows(options);
	bench_multi_marks(options);
	if (wanted(options, "9"))
		mark_first(options, &cub);
}
