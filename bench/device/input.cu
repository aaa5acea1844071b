/*-------------------------------------------------------------------------
 *
 * input.cu
 *	  Keys made on the device, and results checked there; see bench.h.
 *
 * Row i's key is a function of i alone, so keys can be made part by part, and made
 * again from a row id when a result is checked.
 *
 *-------------------------------------------------------------------------
 */
#include "bench.h"

#include <string.h>

#include "sort/launch.h"

#define BLOCK_THREADS 256
#define PART_ROWS     ((uint64_t) 1 << 25) /* of host memory, checked at a time */

/* The bits of a composite key that vary: 14, 13 and 13; the others are those of CONSTANT. */
#define VARYING_0 UINT64_C(0x4210842108421085)
#define VARYING_1 UINT64_C(0x0108421084210843)
#define VARYING_2 UINT64_C(0x2108421084210841)
#define CONSTANT  UINT64_C(0x9E3779B97F4A7C15)

/* A key as it is compared: words, the most significant first. */
typedef struct KeyWords
{
	uint64_t words[3];
} KeyWords;

/* What is wrong with a result. */
typedef struct Faults
{
	unsigned long long out_of_range; /* ids */
	unsigned long long twice;        /* ids */
	unsigned long long disorder;     /* neighbours */
	unsigned long long unstable;     /* equal neighbours, the later row first */
	unsigned long long strange;      /* keys that are not their row's */
	unsigned long long sum;          /* of the keys' hashes, or rows up to the last of the first ones */
} Faults;

static unsigned int
grid_of(uint64_t rows)
{
	uint64_t blocks = (rows + BLOCK_THREADS - 1) / BLOCK_THREADS;

	return (unsigned int) (blocks < 1 ? 1 : blocks > 2112 ? 2112
														  : blocks);
}

/* ---- keys ---- */

/* Spreads the low bits of `bits` over the bits of the mask. */
__device__ static inline uint64_t
spread_bits(uint64_t bits, uint64_t mask)
{
	uint64_t spread = 0;

	for (; mask != 0; mask &= mask - 1, bits >>= 1)
	{
		if (bits & 1)
			spread |= mask & (~mask + 1);
	}
	return spread;
}

__device__ static inline void
store_key(BenchKey key, void *keys, uint64_t at, int distribution, uint64_t row, uint64_t rows, uint64_t seed)
{
	uint64_t value;
	uint64_t *words;

	switch (key)
	{
		case BENCH_U32:
			((uint32_t *) keys)[at] = gpusort_distribution_key32(distribution, row, rows, seed);
			break;
		case BENCH_U64:
			((uint64_t *) keys)[at] = gpusort_distribution_key64(distribution, row, rows, seed);
			break;
		case BENCH_FLOAT:
			((float *) keys)[at] =
				(float) (int32_t) (gpusort_distribution_key32(distribution, row, rows, seed) ^ 0x80000000u);
			break;
		default:
			/* zipf's keys are small numbers */
			value = gpusort_distribution_key64(distribution, row, rows, seed);
			value = distribution < GPUSORT_ZIPF_HALF ? value >> 24 : value & ((UINT64_C(1) << 40) - 1);
			words = (uint64_t *) keys + 3 * at;
			words[0] = (CONSTANT & ~VARYING_0) | spread_bits(value >> 26, VARYING_0);
			words[1] = (CONSTANT & ~VARYING_1) | spread_bits(value >> 13, VARYING_1);
			words[2] = (CONSTANT & ~VARYING_2) | spread_bits(value, VARYING_2);
			break;
	}
}

static __global__ void
fill_keys(BenchKey key, void *keys, int distribution, uint64_t first, uint64_t count, uint64_t rows, uint64_t seed)
{
	for (uint64_t i = blockIdx.x * (uint64_t) blockDim.x + threadIdx.x; i < count;
		 i += (uint64_t) gridDim.x * blockDim.x)
		store_key(key, keys, i, distribution, first + i, rows, seed);
}

int
bench_input_fill(const BenchInput *input, uint64_t first, uint64_t count, void *keys, cudaStream_t stream)
{
	if (count == 0)
		return 0;
	GPUSORT_START_KERNEL(fill_keys, grid_of(count), BLOCK_THREADS, stream, input->key, keys, input->distribution, first,
						 count, input->rows, input->seed);
	BENCH_CUDA(cudaGetLastError());
	return 0;
}

int
bench_input_make(BenchInput *input, BenchKey key, int distribution, uint64_t rows, uint64_t seed)
{
	input->key = key;
	input->distribution = distribution;
	input->rows = rows;
	input->seed = seed;
	input->keys = NULL;
	if (bench_device_alloc(&input->keys, rows * bench_key_bytes(key)) != 0)
		return -1;
	if (bench_input_fill(input, 0, rows, input->keys, 0) != 0)
		return -1;
	BENCH_CUDA(cudaDeviceSynchronize());
	return 0;
}

void
bench_input_free(BenchInput *input)
{
	if (input->keys != NULL)
		(void) cudaFree(input->keys);
	memset(input, 0, sizeof(*input));
}

/* ---- checks ---- */

__device__ static inline KeyWords
load_key(BenchKey key, const void *keys, uint64_t at)
{
	KeyWords words = {};
	uint32_t bits;

	switch (key)
	{
		case BENCH_U32:
			words.words[0] = ((const uint32_t *) keys)[at];
			break;
		case BENCH_U64:
			words.words[0] = ((const uint64_t *) keys)[at];
			break;
		case BENCH_FLOAT:
			/* inputs have neither -0 nor NaN */
			bits = ((const uint32_t *) keys)[at];
			words.words[0] = bits & 0x80000000u ? (uint32_t) ~bits : bits | 0x80000000u;
			break;
		default:
			for (int w = 0; w < 3; w++)
				words.words[w] = ((const uint64_t *) keys)[3 * at + w];
			break;
	}
	return words;
}

__device__ static inline int
compare_keys(const KeyWords &a, const KeyWords &b)
{
	for (int w = 0; w < 3; w++)
	{
		if (a.words[w] != b.words[w])
			return a.words[w] < b.words[w] ? -1 : 1;
	}
	return 0;
}

__device__ static inline uint64_t
hash_key(const KeyWords &key)
{
	return gpusort_row_random(key.words[0], key.words[1], 1) ^ key.words[2];
}

/* A result on the device, or a part of one that came from the host. */
typedef struct Sorted
{
	const void *keys;    /* in order; NULL: there are ids alone */
	const uint32_t *ids; /* NULL: there are keys alone */
	uint64_t count;
	bool stable;   /* rows with equal keys are to be in the input's order */
	bool has_next; /* a part: one more row follows, which belongs to the next part */
} Sorted;

/* That the ids are different rows of the input, the order that they put its keys into, and the result's keys. */
static __global__ void
check_ids(BenchKey key, const void *keys, uint64_t rows, Sorted sorted, uint32_t *seen, Faults *faults)
{
	const uint32_t *ids = sorted.ids;
	const uint64_t count = sorted.count;

	for (uint64_t i = blockIdx.x * (uint64_t) blockDim.x + threadIdx.x; i < count;
		 i += (uint64_t) gridDim.x * blockDim.x)
	{
		uint32_t id = ids[i];
		uint32_t next = i + 1 < count ? ids[i + 1] : id;
		uint32_t bit = 1u << id % 32;
		KeyWords own;
		int order;

		if (id >= rows || next >= rows)
		{
			atomicAdd(&faults->out_of_range, 1ULL);
			continue;
		}
		if (atomicOr(&seen[id / 32], bit) & bit)
			atomicAdd(&faults->twice, 1ULL);
		own = load_key(key, keys, id);
		order = compare_keys(own, load_key(key, keys, next));
		if (order > 0)
			atomicAdd(&faults->disorder, 1ULL);
		else if (order == 0 && sorted.stable && id > next)
			atomicAdd(&faults->unstable, 1ULL);
		if (sorted.keys != NULL && compare_keys(own, load_key(key, sorted.keys, i)) != 0)
			atomicAdd(&faults->strange, 1ULL);
	}
}

/* How many rows a stable sort puts up to row ids[count - 1], itself included. */
static __global__ void
count_first(BenchKey key, const void *keys, const uint32_t *ids, uint64_t count, uint64_t rows, Faults *faults)
{
	const uint32_t last = ids[count - 1] < rows ? ids[count - 1] : 0;
	const KeyWords last_key = load_key(key, keys, last);
	unsigned long long sum = 0;

	for (uint64_t i = blockIdx.x * (uint64_t) blockDim.x + threadIdx.x; i < rows;
		 i += (uint64_t) gridDim.x * blockDim.x)
	{
		int order = compare_keys(load_key(key, keys, i), last_key);

		sum += order < 0 || (order == 0 && i <= last);
	}
	atomicAdd(&faults->sum, sum);
}

/* The sum of hashes of keys, and their order if that is asked for. */
static __global__ void
check_keys(BenchKey key, const void *keys, uint64_t rows, bool in_order, Faults *faults)
{
	unsigned long long sum = 0;

	for (uint64_t i = blockIdx.x * (uint64_t) blockDim.x + threadIdx.x; i < rows;
		 i += (uint64_t) gridDim.x * blockDim.x)
	{
		KeyWords own = load_key(key, keys, i);

		sum += hash_key(own);
		if (in_order && i + 1 < rows && compare_keys(own, load_key(key, keys, i + 1)) > 0)
			atomicAdd(&faults->disorder, 1ULL);
	}
	atomicAdd(&faults->sum, sum);
}

/*
 * A part of a result.  The keys of the input, which has `rows` rows, are made again.
 */
static __global__ void
check_part(BenchKey key, Sorted part, int distribution, uint64_t rows, uint64_t seed, uint32_t *seen, Faults *faults)
{
	const void *keys = part.keys;
	const uint32_t *ids = part.ids;
	const uint64_t count = part.count;
	unsigned long long sum = 0;

	for (uint64_t i = blockIdx.x * (uint64_t) blockDim.x + threadIdx.x; i < count;
		 i += (uint64_t) gridDim.x * blockDim.x)
	{
		KeyWords own = load_key(key, keys, i);
		bool followed = i + 1 < count || part.has_next;
		int order = followed ? compare_keys(own, load_key(key, keys, i + 1)) : -1;

		sum += hash_key(own);
		if (order > 0)
			atomicAdd(&faults->disorder, 1ULL);
		if (ids != NULL)
		{
			uint32_t id = ids[i];
			uint32_t bit = 1u << id % 32;
			uint64_t again[3];

			if (id >= rows)
			{
				atomicAdd(&faults->out_of_range, 1ULL);
				continue;
			}
			if (atomicOr(&seen[id / 32], bit) & bit)
				atomicAdd(&faults->twice, 1ULL);
			if (order == 0 && id > ids[i + 1])
				atomicAdd(&faults->unstable, 1ULL);
			store_key(key, again, 0, distribution, id, rows, seed);
			if (compare_keys(own, load_key(key, again, 0)) != 0)
				atomicAdd(&faults->strange, 1ULL);
		}
	}
	atomicAdd(&faults->sum, sum);
}

/* The sum of hashes of an input's keys, which are made again. */
static __global__ void
sum_input(BenchKey key, int distribution, uint64_t rows, uint64_t seed, Faults *faults)
{
	unsigned long long sum = 0;

	for (uint64_t i = blockIdx.x * (uint64_t) blockDim.x + threadIdx.x; i < rows;
		 i += (uint64_t) gridDim.x * blockDim.x)
	{
		uint64_t made[3];

		store_key(key, made, 0, distribution, i, rows, seed);
		sum += hash_key(load_key(key, made, 0));
	}
	atomicAdd(&faults->sum, sum);
}

/* Memory of a check. */
typedef struct Check
{
	Faults *faults;
	uint32_t *seen; /* a bit per row */
	void *keys;     /* parts */
	uint32_t *ids;
} Check;

static void
check_close(Check *check)
{
	(void) cudaFree(check->faults);
	(void) cudaFree(check->seen);
	(void) cudaFree(check->keys);
	(void) cudaFree(check->ids);
}

static int
check_open(Check *check, const BenchInput *input, bool with_ids, uint64_t part_rows)
{
	size_t seen_bytes = (input->rows + 31) / 32 * 4;

	if (bench_device_alloc((void **) &check->faults, sizeof(Faults)) != 0)
		return -1;
	BENCH_CUDA(cudaMemset(check->faults, 0, sizeof(Faults)));
	if (with_ids)
	{
		if (bench_device_alloc((void **) &check->seen, seen_bytes) != 0)
			return -1;
		BENCH_CUDA(cudaMemset(check->seen, 0, seen_bytes));
	}
	if (part_rows > 0 && bench_device_alloc(&check->keys, part_rows * bench_key_bytes(input->key)) != 0)
		return -1;
	if (part_rows > 0 && with_ids && bench_device_alloc((void **) &check->ids, part_rows * 4) != 0)
		return -1;
	return 0;
}

/* Fetches the faults and says what they are; sum is to be `sum`. */
static int
check_end(Check *check, unsigned long long sum, const char *what)
{
	Faults faults;

	BENCH_CUDA(cudaGetLastError());
	BENCH_CUDA(cudaDeviceSynchronize());
	BENCH_CUDA(cudaMemcpy(&faults, check->faults, sizeof(faults), cudaMemcpyDeviceToHost));
	if (faults.out_of_range + faults.twice + faults.disorder + faults.unstable + faults.strange > 0 ||
		faults.sum != sum)
		return bench_failed("%s: WRONG RESULT: %llu ids out of range, %llu twice, %llu neighbours out of order, "
							"%llu equal ones swapped, %llu keys of other rows%s",
							what, faults.out_of_range,
							faults.twice, faults.disorder, faults.unstable, faults.strange,
							faults.sum != sum ? ", other keys or rows than there should be" : "");
	return 0;
}

static int
check_device(Check *check, const BenchInput *input, const BenchOutput *output, const char *what)
{
	uint64_t count = output->count > 0 && output->count < input->rows ? output->count : input->rows;
	unsigned long long sum = 0;

	if (check_open(check, input, output->ids != NULL, 0) != 0)
		return -1;
	if (output->ids != NULL)
	{
		const Sorted sorted = {output->keys, output->ids, count, output->stable, false};

		GPUSORT_START_KERNEL(check_ids, grid_of(count), BLOCK_THREADS, 0, input->key, input->keys, input->rows, sorted,
							 check->seen, check->faults);
		if (count < input->rows)
		{
			BENCH_CUDA(cudaGetLastError());
			GPUSORT_START_KERNEL(count_first, grid_of(input->rows), BLOCK_THREADS, 0, input->key, input->keys,
								 output->ids, count, input->rows, check->faults);
			sum = count;
		}
	}
	else
	{
		GPUSORT_START_KERNEL(check_keys, grid_of(input->rows), BLOCK_THREADS, 0, input->key, input->keys, input->rows,
							 false, check->faults);
		BENCH_CUDA(cudaGetLastError());
		BENCH_CUDA(cudaDeviceSynchronize());
		BENCH_CUDA(cudaMemcpy(&sum, &check->faults->sum, sizeof(sum), cudaMemcpyDeviceToHost));
		BENCH_CUDA(cudaMemset(check->faults, 0, sizeof(Faults)));
		GPUSORT_START_KERNEL(check_keys, grid_of(input->rows), BLOCK_THREADS, 0, input->key, output->keys, input->rows,
							 true, check->faults);
	}
	return check_end(check, sum, what);
}

int
bench_check(const BenchInput *input, const BenchOutput *output, const char *what)
{
	Check check = {};
	int status;

	if (input->rows == 0)
		return 0;
	status = check_device(&check, input, output, what);
	check_close(&check);
	return status;
}

static int
check_host(Check *check, const BenchInput *input, const void *keys, const uint32_t *ids, const char *what)
{
	size_t key_bytes = bench_key_bytes(input->key);
	unsigned long long sum = 0;

	if (check_open(check, input, ids != NULL, (input->rows < PART_ROWS ? input->rows : PART_ROWS) + 1) != 0)
		return -1;
	GPUSORT_START_KERNEL(sum_input, grid_of(input->rows), BLOCK_THREADS, 0, input->key, input->distribution,
						 input->rows, input->seed, check->faults);
	BENCH_CUDA(cudaGetLastError());
	BENCH_CUDA(cudaDeviceSynchronize());
	BENCH_CUDA(cudaMemcpy(&sum, &check->faults->sum, sizeof(sum), cudaMemcpyDeviceToHost));
	BENCH_CUDA(cudaMemset(check->faults, 0, sizeof(Faults)));
	for (uint64_t first = 0; first < input->rows; first += PART_ROWS)
	{
		uint64_t count = input->rows - first < PART_ROWS ? input->rows - first : PART_ROWS;
		bool has_next = first + count < input->rows;

		BENCH_CUDA(cudaMemcpy(check->keys, (const char *) keys + first * key_bytes, (count + has_next) * key_bytes,
							  cudaMemcpyHostToDevice));
		if (ids != NULL)
			BENCH_CUDA(cudaMemcpy(check->ids, ids + first, (count + has_next) * 4, cudaMemcpyHostToDevice));
		const Sorted part = {check->keys, check->ids, count, true, has_next};

		GPUSORT_START_KERNEL(check_part, grid_of(count), BLOCK_THREADS, 0, input->key, part, input->distribution,
							 input->rows, input->seed, check->seen, check->faults);
		BENCH_CUDA(cudaGetLastError());
		BENCH_CUDA(cudaDeviceSynchronize());
	}
	return check_end(check, sum, what);
}

int
bench_check_host(const BenchInput *input, const void *keys, const uint32_t *ids, const char *what)
{
	Check check = {};
	int status;

	if (input->rows == 0)
		return 0;
	status = check_host(&check, input, keys, ids, what);
	check_close(&check);
	return status;
}
