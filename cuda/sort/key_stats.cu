/*-------------------------------------------------------------------------
 *
 * key_stats.cu
 *	  One pass over keys; see key_stats.h.
 *
 * Threads gather for themselves, then warps, blocks and the device join.  What
 * blocks find is mostly known already, so they look before they write: atomic
 * operations of every block on the same few words would be what takes the time.
 *
 *-------------------------------------------------------------------------
 */
#include "sort/key_stats.h"

#include <cuda_runtime.h>

#include "sort/digit_histogram.cuh"
#include "sort/key_source.h"
#include "sort/launch.h"
#include "sort/radix/radix_sort.h"

#define GPUSORT_STATS_THREADS 256

/* Blocks of a chunk: up to 16384 rows each thread has one, and the bus is slower in any case. */
#define GPUSORT_STATS_CHUNK_BLOCKS 64

/* Blocks of an array: several turns for each place on the device, so that all end at much the same time. */
#define GPUSORT_STATS_ARRAY_BLOCKS 8192

/* Words of a key that a thread gathers at a time, in registers. */
#define GPUSORT_STATS_GROUP GPUSORT_STATS_PARTIAL_KEY_WORDS

/* Rows of an array that a thread reads at a time: enough bytes on their way, few enough registers. */
#define GPUSORT_STATS_ITEMS(key_bytes, pack)                 \
	((key_bytes) > 24 ? 2 : (key_bytes) > 8 ? (pack) ? 3 : 2 \
											: 32 / (key_bytes))

/*
 * A block that makes partial keys has a multiprocessor to itself, for the sake of the digits'
 * counters.
 */
#define GPUSORT_PARTIAL_KEY_THREADS 1024
#define GPUSORT_PARTIAL_KEY_BLOCKS  512

/* What array_stats with PACK makes beside the statistics. */
typedef struct ArrayPartialKeys
{
	GpuSortPackPlan window; /* keeps the partial key, and nothing else */
	uint32_t *partial_keys;
	uint32_t *histogram;
	int digits; /* 0: not counted */
} ArrayPartialKeys;

/* What a thread knows of one word. */
template <typename Word>
struct WordStats
{
	Word key_or;
	Word key_and;
	Word key_min;
	Word key_max;
};

/* What a block knows. */
typedef struct BlockStats
{
	unsigned long long key_or[GPUSORT_DEVICE_SORT_MAX_KEY_WORDS];
	unsigned long long key_and[GPUSORT_DEVICE_SORT_MAX_KEY_WORDS];
	unsigned long long key_min[GPUSORT_DEVICE_SORT_MAX_KEY_WORDS];
	unsigned long long key_max[GPUSORT_DEVICE_SORT_MAX_KEY_WORDS];
	unsigned int pairs;
	unsigned int descents;
	unsigned int bad_rows;
} BlockStats;

template <typename Word>
static __device__ inline void
word_stats_none(WordStats<Word> *stats)
{
	stats->key_or = stats->key_max = 0;
	stats->key_and = stats->key_min = (Word) ~(Word) 0;
}

/* Without RANGE the minimum and the maximum are left as they are; so in block_join. */
template <bool RANGE, typename Word>
static __device__ inline void
word_stats_add(WordStats<Word> *stats, Word key)
{
	stats->key_or |= key;
	stats->key_and &= key;
	if (!RANGE)
		return;
	if (key < stats->key_min)
		stats->key_min = key;
	if (key > stats->key_max)
		stats->key_max = key;
}

static __device__ inline uint32_t
warp_or(uint32_t value)
{
	return __reduce_or_sync(0xFFFFFFFF, value);
}

static __device__ inline uint64_t
warp_or(uint64_t value)
{
	uint32_t high = warp_or((uint32_t) (value >> 32));

	return (uint64_t) high << 32 | warp_or((uint32_t) value);
}

static __device__ inline uint32_t
warp_min(uint32_t value)
{
	return __reduce_min_sync(0xFFFFFFFF, value);
}

/* The least upper half, and the least lower half of those that have it. */
static __device__ inline uint64_t
warp_min(uint64_t value)
{
	uint32_t high = warp_min((uint32_t) (value >> 32));
	uint32_t low = high == (uint32_t) (value >> 32) ? (uint32_t) value : UINT32_MAX;

	return (uint64_t) high << 32 | warp_min(low);
}

/* Makes *block that of no rows.  All threads; ends with a barrier. */
static __device__ inline void
block_start(BlockStats *block)
{
	if (threadIdx.x < GPUSORT_DEVICE_SORT_MAX_KEY_WORDS)
	{
		block->key_or[threadIdx.x] = block->key_max[threadIdx.x] = 0;
		block->key_and[threadIdx.x] = block->key_min[threadIdx.x] = ~0ull;
	}
	if (threadIdx.x == 0)
		block->pairs = block->descents = block->bad_rows = 0;
	__syncthreads();
}

/* Adds what the threads of a warp know of word w.  Whole warps. */
template <bool RANGE, typename Word>
static __device__ inline void
block_join(BlockStats *block, uint32_t w, const WordStats<Word> *stats)
{
	Word key_or = warp_or(stats->key_or);
	Word key_and = (Word) ~warp_or((Word) ~stats->key_and);
	Word key_min = RANGE ? warp_min(stats->key_min) : 0;
	Word key_max = RANGE ? (Word) ~warp_min((Word) ~stats->key_max) : 0;

	if (threadIdx.x % 32 == 0)
	{
		atomicOr(&block->key_or[w], (unsigned long long) key_or);
		atomicAnd(&block->key_and[w], (unsigned long long) key_and);
	}
	if (RANGE && threadIdx.x % 32 == 0)
	{
		atomicMin(&block->key_min[w], (unsigned long long) key_min);
		atomicMax(&block->key_max[w], (unsigned long long) key_max);
	}
}

/* Adds to a count of the block's.  Whole warps. */
static __device__ inline void
block_count(unsigned int *count, uint32_t more)
{
	uint32_t sum = __reduce_add_sync(0xFFFFFFFF, more);

	if (threadIdx.x % 32 == 0 && sum > 0)
		atomicAdd(count, sum);
}

/* Adds what the block knows of `words` key words from first_word on, and its pairs.  All threads. */
static __device__ inline void
block_publish(const BlockStats *block, uint32_t first_word, uint32_t words, GpuSortKeyStats *stats)
{
	__syncthreads();
	if (threadIdx.x < words)
	{
		const uint32_t w = first_word + threadIdx.x;
		unsigned long long *key_or = (unsigned long long *) &stats->key_or[w];
		unsigned long long *key_and = (unsigned long long *) &stats->key_and[w];
		unsigned long long *key_min = (unsigned long long *) &stats->key_min[w];
		unsigned long long *key_max = (unsigned long long *) &stats->key_max[w];

		if (block->key_or[w] & ~*(volatile unsigned long long *) key_or)
			atomicOr(key_or, block->key_or[w]);
		if (~block->key_and[w] & *(volatile unsigned long long *) key_and)
			atomicAnd(key_and, block->key_and[w]);
		if (block->key_min[w] < *(volatile unsigned long long *) key_min)
			atomicMin(key_min, block->key_min[w]);
		if (block->key_max[w] > *(volatile unsigned long long *) key_max)
			atomicMax(key_max, block->key_max[w]);
	}
	if (threadIdx.x == 0 && block->pairs > 0)
		atomicAdd((unsigned long long *) &stats->pairs, (unsigned long long) block->pairs);
	if (threadIdx.x == 0 && block->descents > 0)
		atomicAdd((unsigned long long *) &stats->descents, (unsigned long long) block->descents);
}

/*
 * A chunk's rows.  Shapes: `rows` records of key_words words and a row each, anywhere
 * in the first `bytes` bytes at base; their offsets, the last one first, behind
 * them.  Reads nothing outside, whatever the offsets and lengths are.
 */
static __global__ void
chunk_stats(const char *base, uint32_t rows, uint32_t bytes, uint32_t key_words, GpuSortKeyStats *stats,
			uint32_t *bad_rows)
{
	__shared__ BlockStats block;
	const uint32_t *offsets = (const uint32_t *) (base + gpusort_chunk_offsets_at(bytes));
	uint32_t pairs = 0;
	uint32_t descents = 0;
	uint32_t bad = 0;

	block_start(&block);
	for (uint32_t first_word = 0; first_word < key_words; first_word += GPUSORT_STATS_GROUP)
	{
		WordStats<uint64_t> own[GPUSORT_STATS_GROUP];

		for (uint32_t i = 0; i < GPUSORT_STATS_GROUP; i++)
			word_stats_none(&own[i]);
		for (uint32_t row = blockIdx.x * blockDim.x + threadIdx.x; row < rows; row += gridDim.x * blockDim.x)
		{
			uint32_t offset = offsets[rows - 1 - row];
			const uint64_t *key = (const uint64_t *) (base + offset);

			if (!gpusort_record_readable(offset, bytes, key_words))
			{
				bad += first_word == 0;
				continue;
			}
			for (uint32_t i = 0; i < GPUSORT_STATS_GROUP; i++)
			{
				if (first_word + i < key_words)
					word_stats_add<true>(&own[i], key[first_word + i]);
			}
			if (first_word > 0)
				continue;
			if (!gpusort_row_length_ok(offset, *(const uint32_t *) &key[key_words], bytes, key_words))
				bad++;
			if (row + 1 < rows)
			{
				uint32_t next = offsets[rows - 2 - row];

				if (gpusort_record_readable(next, bytes, key_words))
				{
					pairs++;
					descents += gpusort_key_larger(key, (const uint64_t *) (base + next), key_words);
				}
			}
		}
		for (uint32_t i = 0; i < GPUSORT_STATS_GROUP; i++)
		{
			if (first_word + i < key_words)
				block_join<true>(&block, first_word + i, &own[i]);
		}
	}
	block_count(&block.pairs, pairs);
	block_count(&block.descents, descents);
	block_count(&block.bad_rows, bad);
	block_publish(&block, 0, key_words, stats);
	if (threadIdx.x == 0 && block.bad_rows > 0)
		atomicAdd(bad_rows, block.bad_rows);
}

/*
 * WORDS words, from first_word on, of the keys of an array: the first row's at base,
 * the others' stride bytes apart.  KIND says what a word is made of; one of 32 bits
 * has a key of 32 bits.  With first_word = 0 also the pairs.  At least one row.
 *
 * Rows past the last one are taken to be it, which changes nothing.
 *
 * With PACK also the rows' partial keys by a plan, of keys that have no more than WORDS words,
 * and how often the partial keys' digits occur; but no minimum and maximum.
 */
template <typename Word, int KIND, int WORDS, bool PACK, int THREADS>
static __global__ void
__launch_bounds__(THREADS)
	array_stats(const char *base, uint32_t stride, uint32_t key_words, uint32_t first_word, uint32_t rows,
				GpuSortKeyStats *stats, const __grid_constant__ ArrayPartialKeys wanted)
{
	constexpr uint32_t items = GPUSORT_STATS_ITEMS(WORDS * sizeof(Word), PACK);
	constexpr uint32_t tile_rows = items * THREADS;
	__shared__ BlockStats block;
	GPUSORT_DYNAMIC_SHARED(uint32_t, digit_bins);
	WordStats<Word> own[WORDS];
	uint32_t descents = 0;

	block_start(&block);
	if (PACK && wanted.digits > 0)
		clear_histogram<THREADS>(digit_bins, wanted.digits);
	for (int w = 0; w < WORDS; w++)
		word_stats_none(&own[w]);
	for (uint64_t tile = (uint64_t) blockIdx.x * tile_rows; tile < rows; tile += (uint64_t) gridDim.x * tile_rows)
	{
		const char *tile_base = base + tile * stride;
		const uint32_t last = (uint32_t) (rows - 1 - tile);
		const char *place[items];
		const char *next_place[items];
		Word key[items][WORDS];
		Word next[items];

		for (uint32_t i = 0; i < items; i++)
		{
			uint32_t row = i * THREADS + threadIdx.x;
			uint32_t next_row = row < last ? row + 1 : last;

			place[i] = tile_base + (uint64_t) (row < last ? row : last) * stride;
			next_place[i] = tile_base + (uint64_t) next_row * stride;
			for (uint32_t w = 0; w < WORDS; w++)
				key[i][w] = KIND == GPUSORT_KEYS_WORDS ? (Word) ((const uint64_t *) place[i])[first_word + w] : (Word) gpusort_plain_key((GpuSortKeyKind) KIND, place[i], 0);
			if (first_word == 0)
				next[i] = KIND == GPUSORT_KEYS_WORDS ? (Word) * (const uint64_t *) next_place[i] : (Word) gpusort_plain_key((GpuSortKeyKind) KIND, next_place[i], 0);
		}
		if (PACK)
		{
			uint32_t partial_key[items] = {};

			GPUSORT_UNROLL
			for (int w = 0; w < WORDS; w++)
			{
				uint64_t column[items];

				GPUSORT_UNROLL
				for (uint32_t i = 0; i < items; i++)
					column[i] = key[i][w];
				gpusort_pack_word(&wanted.window.words[w], column, partial_key);
			}
			GPUSORT_UNROLL
			for (uint32_t i = 0; i < items; i++)
			{
				const uint32_t own_partial_key[1] = {partial_key[i]};

				if (i * THREADS + threadIdx.x > last)
					break;
				wanted.partial_keys[tile + i * THREADS + threadIdx.x] = own_partial_key[0];
				if (wanted.digits > 0)
					count_key_digits(digit_bins, wanted.digits, own_partial_key);
			}
		}
		GPUSORT_UNROLL
		for (uint32_t i = 0; i < items; i++)
		{
			GPUSORT_UNROLL
			for (int w = 0; w < WORDS; w++)
				word_stats_add<!PACK>(&own[w], key[i][w]);
			if (first_word > 0)
				continue;
			if (key[i][0] > next[i])
				descents++;
			else if (KIND == GPUSORT_KEYS_WORDS && key[i][0] == next[i] && key_words > 1)
				descents += gpusort_key_larger((const uint64_t *) place[i] + 1, (const uint64_t *) next_place[i] + 1,
											   key_words - 1);
		}
	}
	for (int w = 0; w < WORDS; w++)
		block_join<!PACK>(&block, first_word + w, &own[w]);
	block_count(&block.descents, descents);
	if (first_word == 0 && blockIdx.x == 0 && threadIdx.x == 0)
		block.pairs = rows - 1;
	block_publish(&block, first_word, WORDS, stats);
	if (PACK && wanted.digits > 0)
		add_histogram<THREADS>(digit_bins, wanted.digits, wanted.histogram);
}

int
gpusort_key_stats_reset(GpuSortKeyStats *stats, struct CUstream_st *stream)
{
	cudaError_t status = cudaMemsetAsync(stats, 0, sizeof(*stats), (cudaStream_t) stream);

	/* key_and and key_min, which lie side by side */
	if (status == cudaSuccess)
		status = cudaMemsetAsync(stats->key_and, 0xFF, sizeof(stats->key_and) + sizeof(stats->key_min),
								 (cudaStream_t) stream);
	return status;
}

int
gpusort_key_stats_chunk(const GpuSortDeviceChunk *chunk, uint32_t key_words, GpuSortKeyStats *stats,
						uint32_t *bad_rows, struct CUstream_st *stream)
{
	uint32_t blocks = (chunk->rows + GPUSORT_STATS_THREADS - 1) / GPUSORT_STATS_THREADS;

	if (chunk->rows == 0)
		return cudaSuccess;
	if (blocks > GPUSORT_STATS_CHUNK_BLOCKS)
		blocks = GPUSORT_STATS_CHUNK_BLOCKS;
	GPUSORT_START_KERNEL(chunk_stats, blocks, GPUSORT_STATS_THREADS, (cudaStream_t) stream,
						 (const char *) chunk->base, chunk->rows, chunk->bytes, key_words, stats, bad_rows);
	return cudaGetLastError();
}

template <typename Word, int KIND, int WORDS>
static int
start_array(const GpuSortKeySource *source, uint32_t first_word, uint32_t rows, GpuSortKeyStats *stats,
			uint32_t step, const ArrayPartialKeys *wanted, cudaStream_t stream)
{
	const uint64_t stride = (KIND == GPUSORT_KEYS_WORDS ? source->stride_words * sizeof(uint64_t) : sizeof(Word)) * step;
	const uint32_t threads = wanted->partial_keys != NULL ? GPUSORT_PARTIAL_KEY_THREADS : GPUSORT_STATS_THREADS;
	const uint32_t most = wanted->partial_keys != NULL ? GPUSORT_PARTIAL_KEY_BLOCKS : GPUSORT_STATS_ARRAY_BLOCKS;
	const uint32_t items = GPUSORT_STATS_ITEMS(WORDS * sizeof(Word), wanted->partial_keys != NULL);
	uint32_t blocks = (rows - 1) / (items * threads) + 1;

	if (stride > UINT32_MAX)
		return cudaErrorInvalidValue;
	if (blocks > most)
		blocks = most;
	if (wanted->partial_keys != NULL && wanted->digits > 0)
		GPUSORT_START_KERNEL_SHARED_OF((array_stats<Word, KIND, WORDS, true, GPUSORT_PARTIAL_KEY_THREADS>), blocks, threads,
									   GPUSORT_HISTOGRAM_SHARED(wanted->digits),
									   GPUSORT_HISTOGRAM_SHARED(GPUSORT_MAX_PASSES), stream,
									   (const char *) source->base, (uint32_t) stride, source->key_words, first_word,
									   rows, stats, *wanted);
	else if (wanted->partial_keys != NULL)
		GPUSORT_START_KERNEL((array_stats<Word, KIND, WORDS, true, GPUSORT_PARTIAL_KEY_THREADS>), blocks, threads, stream,
							 (const char *) source->base, (uint32_t) stride, source->key_words, first_word, rows, stats,
							 *wanted);
	else
		GPUSORT_START_KERNEL((array_stats<Word, KIND, WORDS, false, GPUSORT_STATS_THREADS>), blocks, threads, stream,
							 (const char *) source->base, (uint32_t) stride, source->key_words, first_word, rows, stats,
							 *wanted);
	return cudaGetLastError();
}

static int
pass_over_array(const GpuSortKeySource *source, uint32_t rows, GpuSortKeyStats *stats, uint32_t step,
				const ArrayPartialKeys *wanted, struct CUstream_st *stream)
{
	cudaStream_t on = (cudaStream_t) stream;
	int status = cudaSuccess;

	if (rows == 0)
		return cudaSuccess;
	switch (source->kind)
	{
		case GPUSORT_KEYS_UINT32:
			return start_array<uint32_t, GPUSORT_KEYS_UINT32, 1>(source, 0, rows, stats, step, wanted, on);
		case GPUSORT_KEYS_INT32:
			return start_array<uint32_t, GPUSORT_KEYS_INT32, 1>(source, 0, rows, stats, step, wanted, on);
		case GPUSORT_KEYS_FLOAT:
			return start_array<uint32_t, GPUSORT_KEYS_FLOAT, 1>(source, 0, rows, stats, step, wanted, on);
		case GPUSORT_KEYS_INT64:
			return start_array<uint64_t, GPUSORT_KEYS_INT64, 1>(source, 0, rows, stats, step, wanted, on);
		case GPUSORT_KEYS_DOUBLE:
			return start_array<uint64_t, GPUSORT_KEYS_DOUBLE, 1>(source, 0, rows, stats, step, wanted, on);
		case GPUSORT_KEYS_WORDS:
			for (uint32_t w = 0; w < source->key_words && status == cudaSuccess; w += GPUSORT_STATS_GROUP)
			{
				switch (source->key_words - w)
				{
					case 1:
						status = start_array<uint64_t, GPUSORT_KEYS_WORDS, 1>(source, w, rows, stats, step, wanted, on);
						break;
					case 2:
						status = start_array<uint64_t, GPUSORT_KEYS_WORDS, 2>(source, w, rows, stats, step, wanted, on);
						break;
					case 3:
						status = start_array<uint64_t, GPUSORT_KEYS_WORDS, 3>(source, w, rows, stats, step, wanted, on);
						break;
					default:
						status = start_array<uint64_t, GPUSORT_KEYS_WORDS, GPUSORT_STATS_GROUP>(source, w, rows,
																								stats, step, wanted, on);
						break;
				}
			}
			return status;
		default:
			return cudaErrorInvalidValue;
	}
}

int
gpusort_key_stats_array(const GpuSortKeySource *source, uint32_t rows, GpuSortKeyStats *stats,
						struct CUstream_st *stream)
{
	const ArrayPartialKeys none = {};

	return pass_over_array(source, rows, stats, 1, &none, stream);
}

int
gpusort_key_stats_sample(const GpuSortKeySource *source, uint32_t rows, uint32_t step, GpuSortKeyStats *stats,
						 struct CUstream_st *stream)
{
	const ArrayPartialKeys none = {};

	return pass_over_array(source, rows / step + (rows % step > 0), stats, step, &none, stream);
}

int
gpusort_key_stats_partial_keys(const GpuSortKeySource *source, const GpuSortPackPlan *plan, uint32_t rows,
							   GpuSortKeyStats *stats, uint32_t *partial_keys, uint32_t *histogram,
							   struct CUstream_st *stream)
{
	ArrayPartialKeys wanted = {};

	if (source->key_words > GPUSORT_STATS_PARTIAL_KEY_WORDS)
		return cudaErrorInvalidValue;
	gpusort_pack_window_plan(&wanted.window, plan, 0, 32);
	wanted.partial_keys = partial_keys;
	wanted.histogram = histogram;
	wanted.digits = histogram != NULL ? gpusort_radix_digits((int) wanted.window.packed_bits) : 0;
	return pass_over_array(source, rows, stats, 1, &wanted, stream);
}
