/*-------------------------------------------------------------------------
 *
 * quantile_map.cu
 *	  Partial keys by a map that a sample of the keys makes; see quantile_map.h.
 *
 * Whether a map is wanted at all is found by comparing all rows of a small sample with each
 * other, in a few microseconds.  Then one block takes the sample, sorts it by a bitonic
 * network (Batcher), makes the map and counts what ties, in some 75.
 *
 * A row's bucket is found by a binary search in shared memory, eight steps without a branch.
 * The splitters that it looks at lie there level by level, as in a heap: the few that the first steps look
 * at are neighbours, in different banks of shared memory, where the middles of a sorted array
 * would all be in the same.
 *
 *-------------------------------------------------------------------------
 */
#include "sort/quantile_map.h"

#include "sort/digit_histogram.cuh"
#include "sort/key_source.h"
#include "sort/launch.h"
#include "sort/radix/radix_sort.h"
#include "sort/sort_step.h"

#define BUCKETS      GPUSORT_MAP_BUCKETS
#define SAMPLE       GPUSORT_MAP_SAMPLE
#define MAKE_THREADS 1024

#define CHECKED      GPUSORT_MAP_CHECKED
#define CHECK_BLOCKS GPUSORT_MAP_CHECK_BLOCKS
#define CHECK_LANES  8

/* As the kernel that makes plain partial keys: a block has a multiprocessor to itself. */
#define MAP_THREADS 1024
#define MAP_BLOCKS  512
#define MAP_ITEMS   4

/* Fewer rows are sorted before it is known whether a map pays; tests look at fewer, too. */
#ifndef GPUSORT_MAP_ROWS_MIN
#ifdef __CUDACC__
#define GPUSORT_MAP_ROWS_MIN (UINT32_C(1) << 23)
#else
#define GPUSORT_MAP_ROWS_MIN (UINT32_C(1) << 11)
#endif
#endif

/* A map is tried from one row in so many of a sample on that ties with other keys on the top 32 bits. */
#define TIED_SHARE 16

static_assert(BUCKETS >= 32 && (BUCKETS & (BUCKETS - 1)) == 0 && BUCKETS <= MAKE_THREADS, "a thread for each bucket");
static_assert(CHECKED / CHECK_BLOCKS * CHECK_LANES == CHECKED, "a thread for each row, and for its lanes");
static_assert((SAMPLE & (SAMPLE - 1)) == 0 && SAMPLE % MAKE_THREADS == 0, "what the network sorts");

/* What make_map has in shared memory. */
typedef struct MapWork
{
	uint64_t sample[SAMPLE];
	uint32_t codes[SAMPLE];
	uint64_t splitters[BUCKETS];
	uint64_t scales[BUCKETS];
	uint32_t sums[BUCKETS];
	uint32_t buckets;
	uint32_t last_code;
	uint32_t plain_ties;
	uint32_t mapped_ties;
	GpuSortDecided decided;
} MapWork;

/* The map as map_partial_keys has it in shared memory. */
typedef struct SharedMap
{
	uint64_t tree[BUCKETS]; /* [1] halves the buckets; [2 i], [2 i + 1] those below and above [i] */
	uint64_t splitters[BUCKETS];
	uint64_t scales[BUCKETS];
} SharedMap;

/* A row of the i-th of `parts` even parts of the rows, at random so that no period in them matters. */
static __device__ inline uint32_t
sampled_row(uint32_t i, uint32_t parts, uint32_t rows)
{
	const uint64_t start = (uint64_t) i * rows / parts;
	const uint64_t end = (uint64_t) (i + 1) * rows / parts;
	uint64_t mixed = (i + 1) * UINT64_C(0x9E3779B97F4A7C15);

	if (end <= start)
		return (uint32_t) start;
	mixed = (mixed ^ mixed >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	return (uint32_t) (start + (mixed >> 32) % (end - start));
}

/* A block compares CHECKED / CHECK_BLOCKS rows with all, CHECK_LANES lanes each. */
template <int FORM>
static __global__ void
__launch_bounds__(CHECKED)
	check_ties(const __grid_constant__ GpuSortKeySource source, const __grid_constant__ GpuSortPackPlan plan,
			   uint32_t rows, GpuSortSkewCheck *check)
{
	__shared__ uint32_t tops[CHECKED];
	__shared__ uint32_t rests[CHECKED];
	__shared__ uint32_t ties;
	const uint32_t rest_bits = gpusort_pack_window_bits(&plan, 32, 32);
	const uint32_t t = threadIdx.x;
	const uint32_t own = blockIdx.x * (CHECKED / CHECK_BLOCKS) + t / CHECK_LANES;
	const uint32_t lanes = ((1u << CHECK_LANES) - 1) << (t % 32 / CHECK_LANES * CHECK_LANES);
	uint64_t made;
	const uint64_t *key = gpusort_source_key<FORM>(&source, sampled_row(t, CHECKED, rows), &made);
	const uint64_t window = gpusort_pack_window64(&plan, key, 0, 64);
	bool tied = false;
	uint32_t votes;

	tops[t] = (uint32_t) (window >> rest_bits);
	rests[t] = (uint32_t) (window & gpusort_ones(rest_bits));
	if (t == 0)
		ties = 0;
	__syncthreads();
	for (uint32_t i = t % CHECK_LANES; i < CHECKED; i += CHECK_LANES)
		tied = tied || (tops[i] == tops[own] && rests[i] != rests[own]);
	votes = __ballot_sync(0xFFFFFFFF, tied);
	if (t % CHECK_LANES == 0 && (votes & lanes) != 0)
		atomicAdd(&ties, 1u);
	__syncthreads();
	if (t == 0)
		check->ties[blockIdx.x] = ties;
}

/* Sorts the sample; all threads, which have put it there and are past a barrier.  Ends with one. */
static __device__ void
sort_sample(uint64_t *sample)
{
	for (uint32_t size = 2; size <= SAMPLE; size *= 2)
	{
		for (uint32_t step = size / 2; step > 0; step /= 2)
		{
			for (uint32_t pair = threadIdx.x; pair < SAMPLE / 2; pair += MAKE_THREADS)
			{
				const uint32_t i = 2 * pair - (pair & (step - 1));
				const uint64_t a = sample[i];
				const uint64_t b = sample[i + step];

				if ((a > b) == ((i & size) == 0))
				{
					sample[i] = b;
					sample[i + step] = a;
				}
			}
			__syncthreads();
		}
	}
}

/* The sum of the values of threads 0 to this one, of the first BUCKETS threads; modulo 2^32.  All threads. */
static __device__ uint32_t
inclusive_scan(uint32_t *sums, uint32_t value)
{
	if (threadIdx.x < BUCKETS)
		sums[threadIdx.x] = value;
	__syncthreads();
	for (uint32_t step = 1; step < BUCKETS; step *= 2)
	{
		const uint32_t before = threadIdx.x < BUCKETS && threadIdx.x >= step ? sums[threadIdx.x - step] : 0;

		__syncthreads();
		if (threadIdx.x < BUCKETS)
			sums[threadIdx.x] += before;
		__syncthreads();
	}
	return threadIdx.x < BUCKETS ? sums[threadIdx.x] : 0;
}

/* Place number `number`, 1 to BUCKETS - 2, of even distances in the sample. */
static __device__ inline uint64_t
quantile(const uint64_t *sample, uint32_t number)
{
	return sample[(number - 1) * SAMPLE / (BUCKETS - 2)];
}

/* Splitter number `number` of the map; they do not fall, and may be equal. */
static __device__ uint64_t
splitter(const uint64_t *sample, uint64_t largest, uint32_t number)
{
	uint64_t low;

	if (number == 0)
		return 0;
	low = number < BUCKETS - 1 ? quantile(sample, number) : sample[SAMPLE - 1];
	if (low < largest && (number == BUCKETS - 1 || (number > 1 && quantile(sample, number - 1) == low)))
		low++;
	return low;
}

/* What row i of the sample would be sorted by. */
template <bool MAPPED>
static __device__ inline uint32_t
partial_key_at(const MapWork *work, uint32_t bits, uint32_t i)
{
	return MAPPED ? work->codes[i] : (uint32_t) (work->sample[i] >> (bits - 32));
}

/* Returns true if row i of the sorted sample shares its partial key with a row that has another window. */
template <bool MAPPED>
static __device__ bool
ties_with_others(const MapWork *work, uint32_t bits, uint32_t i)
{
	const uint32_t partial_key = partial_key_at<MAPPED>(work, bits, i);
	uint32_t first = 0;
	uint32_t last = SAMPLE - 1;
	uint32_t known = i;

	while (first < known)
	{
		const uint32_t middle = (first + known) / 2;

		if (partial_key_at<MAPPED>(work, bits, middle) == partial_key)
			known = middle;
		else
			first = middle + 1;
	}
	known = i;
	while (known < last)
	{
		const uint32_t middle = (known + last + 1) / 2;

		if (partial_key_at<MAPPED>(work, bits, middle) == partial_key)
			known = middle;
		else
			last = middle - 1;
	}
	return work->sample[first] != work->sample[last];
}

/* Rows of the sample below a window. */
static __device__ uint32_t
rows_below(const uint64_t *sample, uint64_t window)
{
	uint32_t below = 0;

	for (uint32_t step = SAMPLE / 2; step > 0; step /= 2)
	{
		if (sample[below + step - 1] < window)
			below += step;
	}
	return below + (sample[below] < window);
}

/*
 * The codes of the stretch of buckets with shift 0 that has most rows of the sample.  One
 * thread; work->sums are the rows of each bucket.
 */
static __device__ GpuSortDecided
find_decided(const MapWork *work)
{
	GpuSortDecided best = {0, 0};
	uint32_t best_rows = 0;
	uint32_t first = 0;
	uint32_t rows = 0;

	for (uint32_t k = 0; k < work->buckets; k++)
	{
		const uint32_t end = k + 1 < work->buckets ? (uint32_t) work->scales[k + 1] : work->last_code + 1;

		if (work->scales[k] >> 32 != 0)
		{
			rows = 0;
			continue;
		}
		if (rows == 0)
			first = (uint32_t) work->scales[k];
		rows += work->sums[k];
		if (rows > best_rows)
		{
			best_rows = rows;
			best = GpuSortDecided{first, end - first};
		}
	}
	return best;
}

/* One block. */
template <int FORM>
static __global__ void
__launch_bounds__(MAKE_THREADS)
	make_map(const __grid_constant__ GpuSortKeySource source, const __grid_constant__ GpuSortPackPlan plan,
			 uint32_t rows, GpuSortQuantileMap *map)
{
	GPUSORT_DYNAMIC_SHARED(MapWork, work);
	const uint32_t bits = gpusort_pack_window_bits(&plan, 0, 64);
	const uint64_t largest = gpusort_ones(bits);
	const uint32_t t = threadIdx.x;
	uint64_t low = 0;
	uint64_t span = 0;
	uint32_t shift = 0;
	uint32_t codes = 0;
	uint32_t before;
	uint32_t plain = 0;
	uint32_t mapped = 0;
	bool is_bucket = false;

	GPUSORT_UNROLL
	for (uint32_t k = 0; k < SAMPLE / MAKE_THREADS; k++)
	{
		const uint32_t i = k * MAKE_THREADS + t;
		uint64_t made;

		work->sample[i] =
			gpusort_pack_window64(&plan, gpusort_source_key<FORM>(&source, sampled_row(i, SAMPLE, rows), &made), 0, 64);
	}
	if (t == 0)
		work->plain_ties = work->mapped_ties = 0;
	__syncthreads();
	sort_sample(work->sample);

	/* Splitters, each once; what is over is as the header says. */
	if (t < BUCKETS)
	{
		low = splitter(work->sample, largest, t);
		is_bucket = t == 0 || splitter(work->sample, largest, t - 1) != low;
		work->splitters[t] = largest;
	}
	before = inclusive_scan(work->sums, is_bucket);
	if (is_bucket)
		work->splitters[before - 1] = low;
	if (t == BUCKETS - 1)
		work->buckets = before;
	__syncthreads();

	/* How many codes each bucket takes, and where they begin. */
	is_bucket = t < work->buckets;
	if (is_bucket)
	{
		const uint64_t most = (UINT64_C(1) << 32) / work->buckets - 1;

		low = work->splitters[t];
		span = (t + 1 < work->buckets ? work->splitters[t + 1] - 1 : largest) - low;
		while (span >> shift > most)
			shift++;
		codes = (uint32_t) (span >> shift) + 1;
	}
	before = inclusive_scan(work->sums, codes) - codes;
	if (is_bucket)
		work->scales[t] = (uint64_t) shift << 32 | before;
	if (is_bucket && t + 1 == work->buckets)
		work->last_code = before + (codes - 1);
	__syncthreads();
	if (t < BUCKETS && !is_bucket)
		work->scales[t] = work->last_code;
	__syncthreads();

	/* What equals if it ties. */
	if (is_bucket)
		work->sums[t] = (t + 1 < work->buckets ? rows_below(work->sample, work->splitters[t + 1]) : SAMPLE) -
			rows_below(work->sample, low);
	__syncthreads();
	if (t == 0)
		work->decided = plan.packed_bits <= 64 ? find_decided(work) : GpuSortDecided{0, 0};

	/* What ties. */
	for (uint32_t i = t; i < SAMPLE; i += MAKE_THREADS)
		work->codes[i] = gpusort_quantile_code(work->splitters, work->scales, work->sample[i]);
	__syncthreads();
	for (uint32_t i = t; i < SAMPLE; i += MAKE_THREADS)
	{
		plain += ties_with_others<false>(work, bits, i);
		mapped += ties_with_others<true>(work, bits, i);
	}
	if (plain > 0)
		atomicAdd(&work->plain_ties, plain);
	if (mapped > 0)
		atomicAdd(&work->mapped_ties, mapped);
	__syncthreads();

	if (t < BUCKETS)
	{
		map->splitters[t] = work->splitters[t];
		map->scales[t] = work->scales[t];
	}
	if (t == 0)
	{
		map->pays = work->plain_ties * TIED_SHARE >= SAMPLE && work->mapped_ties * 2 < work->plain_ties;
		map->code_bits = work->last_code > 1 ? 32 - (uint32_t) __clz((int) work->last_code) : 1;
		map->buckets = work->buckets;
		map->plain_ties = work->plain_ties;
		map->mapped_ties = work->mapped_ties;
		map->decided = work->decided;
	}
}

/* All threads; ends with a barrier. */
static __device__ void
load_map(SharedMap *shared, const GpuSortQuantileMap *map)
{
	for (uint32_t i = threadIdx.x; i < BUCKETS; i += MAP_THREADS)
	{
		shared->splitters[i] = map->splitters[i];
		shared->scales[i] = map->scales[i];
		shared->tree[i] = 0;
		if (i > 0)
		{
			const uint32_t level = 31 - (uint32_t) __clz((int) i);

			shared->tree[i] = map->splitters[(2 * (i - (1u << level)) + 1) * (BUCKETS / 2 >> level)];
		}
	}
	__syncthreads();
}

/* partial_keys[i] = code of row i; with COUNTED adds their digits to histogram. */
template <int FORM, bool COUNTED>
static __global__ void
__launch_bounds__(MAP_THREADS)
	map_partial_keys(const __grid_constant__ GpuSortKeySource source, const __grid_constant__ GpuSortPackPlan window,
					 uint32_t rows, const GpuSortQuantileMap *map, uint32_t *partial_keys, int digits,
					 uint32_t *histogram)
{
	__shared__ SharedMap shared;
	GPUSORT_DYNAMIC_SHARED(uint32_t, bins);

	if (COUNTED)
		clear_histogram<MAP_THREADS>(bins, digits);
	load_map(&shared, map);
	for (uint64_t start = (uint64_t) blockIdx.x * (MAP_THREADS * MAP_ITEMS) + threadIdx.x; start < rows;
		 start += (uint64_t) gridDim.x * (MAP_THREADS * MAP_ITEMS))
	{
		uint64_t windows[MAP_ITEMS];
		uint32_t buckets[MAP_ITEMS];

		gpusort_pack_rows<FORM, MAP_THREADS>(source, window, start, rows, windows);
		GPUSORT_UNROLL
		for (int k = 0; k < MAP_ITEMS; k++)
			buckets[k] = 1;

		/* all rows take a step before any takes the next: none waits for its own alone */
		GPUSORT_UNROLL
		for (int step = 1; step < BUCKETS; step *= 2)
		{
			GPUSORT_UNROLL
			for (int k = 0; k < MAP_ITEMS; k++)
				buckets[k] = 2 * buckets[k] + (shared.tree[buckets[k]] <= windows[k]);
		}
		GPUSORT_UNROLL
		for (int k = 0; k < MAP_ITEMS; k++)
		{
			const uint64_t row = start + k * MAP_THREADS;
			const uint32_t bucket = buckets[k] - BUCKETS;
			const uint32_t code[1] = {gpusort_bucket_code(windows[k], shared.splitters[bucket], shared.scales[bucket])};

			if (row >= rows)
				break;
			partial_keys[row] = code[0];
			if (COUNTED)
				count_key_digits(bins, digits, code);
		}
	}
	if (COUNTED)
		add_histogram<MAP_THREADS>(bins, digits, histogram);
}

bool
gpusort_quantile_map_considered(const GpuSortPackPlan *plan, uint32_t rows)
{
	return plan->packed_bits > 32 && rows >= GPUSORT_MAP_ROWS_MIN;
}

cudaError_t
gpusort_skew_check(const GpuSortKeySource *source, const GpuSortPackPlan *plan, uint32_t rows, GpuSortSkewCheck *check,
				   cudaStream_t stream)
{
	if (rows == 0 || plan->packed_bits <= 32)
		return cudaErrorInvalidValue;
#define CHECK_TIES(FORM) check_ties<FORM>
	GPUSORT_START_BY_FORM(source, CHECK_TIES, CHECK_BLOCKS, CHECKED, stream, *source, *plan, rows, check);
#undef CHECK_TIES
	return cudaGetLastError();
}

bool
gpusort_quantile_map_wanted(const GpuSortSkewCheck *check)
{
	uint32_t ties = 0;

	for (int i = 0; i < CHECK_BLOCKS; i++)
		ties += check->ties[i];
	return ties * TIED_SHARE >= CHECKED;
}

cudaError_t
gpusort_quantile_map_make(const GpuSortKeySource *source, const GpuSortPackPlan *plan, uint32_t rows,
						  GpuSortQuantileMap *map, cudaStream_t stream)
{
	if (rows == 0 || plan->packed_bits <= 32)
		return cudaErrorInvalidValue;
#define MAKE_MAP(FORM) \
	GPUSORT_START_KERNEL_SHARED(make_map<FORM>, 1, MAKE_THREADS, sizeof(MapWork), stream, *source, *plan, rows, map)
	GPUSORT_CALL_BY_FORM(source, MAKE_MAP);
#undef MAKE_MAP
	return cudaGetLastError();
}

int
gpusort_quantile_map_find(const GpuSortKeySource *source, const GpuSortPackPlan *plan, uint32_t rows,
						  const GpuSortDeviceWait *wait, GpuSortQuantileMap *map, GpuSortMapUse *use,
						  cudaStream_t stream)
{
	const GpuSortQuantileMap *found = (const GpuSortQuantileMap *) wait->mirror;
	cudaError_t status;
	int waited;

	static_assert(offsetof(GpuSortQuantileMap, splitters) <= GPUSORT_DEVICE_SORT_MIRROR_BYTES,
				  "what is read back fits the mirror");
	*use = {};
	if (wait->mirror == NULL)
		return cudaErrorInvalidValue;
	if ((status = gpusort_skew_check(source, plan, rows, &map->check, stream)) != cudaSuccess ||
		(status = cudaMemcpyAsync(wait->mirror, &map->check, sizeof(map->check), cudaMemcpyDeviceToHost,
								  stream)) != cudaSuccess)
		return status;
	if ((waited = gpusort_device_wait(wait, stream)) != 0)
		return waited;
	if (!gpusort_quantile_map_wanted(&found->check))
		return cudaSuccess;

	if ((status = gpusort_quantile_map_make(source, plan, rows, map, stream)) != cudaSuccess ||
		(status = cudaMemcpyAsync(wait->mirror, map, offsetof(GpuSortQuantileMap, splitters), cudaMemcpyDeviceToHost,
								  stream)) != cudaSuccess)
		return status;
	if ((waited = gpusort_device_wait(wait, stream)) != 0)
		return waited;
	if (found->pays)
		*use = GpuSortMapUse{found->code_bits, found->decided};
	return cudaSuccess;
}

cudaError_t
gpusort_quantile_map_codes(const GpuSortKeySource *source, const GpuSortPackPlan *plan, uint32_t rows,
						   const GpuSortQuantileMap *map, uint32_t code_bits, uint32_t *partial_keys,
						   uint32_t *histogram, cudaStream_t stream)
{
	const uint32_t wanted = (uint32_t) (((uint64_t) rows + MAP_THREADS - 1) / MAP_THREADS);
	const uint32_t blocks = wanted < MAP_BLOCKS ? wanted : MAP_BLOCKS;
	const int digits = gpusort_radix_digits((int) code_bits);
	GpuSortPackPlan window;

	if (rows == 0)
		return cudaSuccess;
	gpusort_pack_window_plan(&window, plan, 0, 64);

#define MAP_COUNTED(FORM)                                                                                 \
	GPUSORT_START_KERNEL_SHARED_OF((map_partial_keys<FORM, true>), blocks, MAP_THREADS,                   \
								   GPUSORT_HISTOGRAM_SHARED(digits),                                      \
								   GPUSORT_HISTOGRAM_SHARED(GPUSORT_MAX_PASSES), stream, *source, window, \
								   rows, map, partial_keys, digits, histogram)
#define MAP_UNCOUNTED(FORM) map_partial_keys<FORM, false>
	if (histogram != NULL)
		GPUSORT_CALL_BY_FORM(source, MAP_COUNTED);
	else
		GPUSORT_START_BY_FORM(source, MAP_UNCOUNTED, blocks, MAP_THREADS, stream, *source, window, rows, map,
							  partial_keys, digits, histogram);
#undef MAP_COUNTED
#undef MAP_UNCOUNTED
	return cudaGetLastError();
}
