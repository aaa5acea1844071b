/*-------------------------------------------------------------------------
 *
 * array_stats.cu
 *	  One pass over the keys of an array; see array_stats.h.
 *
 *-------------------------------------------------------------------------
 */
#include "array/array_stats.h"

#include <cuda_runtime.h>

#include "sort/digit_histogram.cuh"
#include "sort/key_stats.cuh"
#include "sort/launch.h"
#include "sort/radix/radix_sort.h"

#define GPUSORT_STATS_THREADS 256

/* Blocks of an array: several turns for each place on the device, so that all end at much the same time. */
#define GPUSORT_STATS_ARRAY_BLOCKS 8192

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

/* Word w of the key at place; plain values have one. */
template <typename Word, int KIND>
static __device__ inline Word
word_at(const char *place, uint32_t w)
{
	if (KIND == GPUSORT_KEYS_WORDS)
		return (Word) ((const uint64_t *) place)[w];
	return (Word) gpusort_plain_key((GpuSortKeyKind) KIND, place, 0);
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
				key[i][w] = word_at<Word, KIND>(place[i], first_word + w);
			if (first_word == 0)
				next[i] = word_at<Word, KIND>(next_place[i], 0);
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

template <typename Word, int KIND, int WORDS>
static int
start_array(const GpuSortKeySource *source, uint32_t first_word, uint32_t rows, GpuSortKeyStats *stats,
			uint32_t step, const ArrayPartialKeys *wanted, cudaStream_t stream)
{
	const uint64_t stride =
		(KIND == GPUSORT_KEYS_WORDS ? source->stride_words * sizeof(uint64_t) : sizeof(Word)) * step;
	const uint32_t threads = wanted->partial_keys != NULL ? GPUSORT_PARTIAL_KEY_THREADS : GPUSORT_STATS_THREADS;
	const uint32_t most = wanted->partial_keys != NULL ? GPUSORT_PARTIAL_KEY_BLOCKS : GPUSORT_STATS_ARRAY_BLOCKS;
	const uint32_t items = GPUSORT_STATS_ITEMS(WORDS * sizeof(Word), wanted->partial_keys != NULL);
	uint32_t blocks = (rows - 1) / (items * threads) + 1;

	if (stride > UINT32_MAX)
		return cudaErrorInvalidValue;
	if (blocks > most)
		blocks = most;
	if (wanted->partial_keys != NULL && wanted->digits > 0)
		GPUSORT_START_KERNEL_SHARED_OF(
			(array_stats<Word, KIND, WORDS, true, GPUSORT_PARTIAL_KEY_THREADS>), blocks, threads,
			GPUSORT_HISTOGRAM_SHARED(wanted->digits), GPUSORT_HISTOGRAM_SHARED(GPUSORT_MAX_PASSES), stream,
			(const char *) source->base, (uint32_t) stride, source->key_words, first_word, rows, stats, *wanted);
	else if (wanted->partial_keys != NULL)
		GPUSORT_START_KERNEL((array_stats<Word, KIND, WORDS, true, GPUSORT_PARTIAL_KEY_THREADS>), blocks, threads,
							 stream, (const char *) source->base, (uint32_t) stride, source->key_words, first_word,
							 rows, stats, *wanted);
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
						status = start_array<uint64_t, GPUSORT_KEYS_WORDS, GPUSORT_STATS_GROUP>(source, w, rows, stats,
																								step, wanted, on);
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

	if (source->key_words > GPUSORT_STATS_GROUP)
		return cudaErrorInvalidValue;
	gpusort_pack_window_plan(&wanted.window, plan, 0, 32);
	wanted.partial_keys = partial_keys;
	wanted.histogram = histogram;
	wanted.digits = histogram != NULL ? gpusort_radix_digits((int) wanted.window.packed_bits) : 0;
	return pass_over_array(source, rows, stats, 1, &wanted, stream);
}
