/*-------------------------------------------------------------------------
 *
 * satish_radix.cu
 *	  The radix sort of N. Satish, C. Kim, J. Chhugani, A. D. Nguyen, V. W. Lee, D. Kim,
 *	  P. Dubey, Fast Sort on CPUs, GPUs and Intel MIC Architectures (Intel Labs,
 *	  2010), section 2.1: digits of four bits, least significant first, each sorted
 *	  within a tile by four splits of one bit.
 *
 * A pass has the paper's three steps:
 *
 *	1. Count the digits of each tile: every thread has its own 16 counters, of a
 *	   byte each, so no two threads ever want the same one.
 *	2. Prefix sums over the counts of (digit, tile), digit first.
 *	3. Sort the tile by the digit in shared memory, by four stable splits into rows
 *	   with a 0 and rows with a 1.  For a split each thread counts its own
 *	   consecutive rows, the counts are summed over the block, and each thread
 *	   works out its rows' places from that ("vertical" scan).  Then write the tile: rows
 *	   of one digit are neighbours, and go to neighbouring places.
 *
 * What differs from the paper, and why:
 *
 *	A tile is 256 threads of 15 rows instead of 128 of 13: sm_90 has 14 times the
 *	shared memory of the GTX 280, and 240 rows of a digit make longer runs than 104.
 *	15 is odd as 13 is, so a thread's consecutive rows cause no bank conflicts.
 *
 *	The sums over a warp are by shuffles, where the paper's go through shared
 *	memory.
 *
 * Row ids move with the keys in step 3 (section 4 of the paper), also in each split.
 *
 *-------------------------------------------------------------------------
 */
#include "published/common.h"

#define THREADS    256
#define ITEMS      15 /* rows per thread, odd */
#define TILE       (THREADS * ITEMS)
#define DIGIT_BITS 4
#define DIGITS     (1 << DIGIT_BITS)
#define MOST_ROWS  (UINT32_MAX - 1)

/* Step 1: counts[digit * tiles + tile]. */
template <typename Key>
static __global__ void
count_digits(const Key *keys, uint32_t rows, int shift, uint32_t *counts)
{
	__shared__ uint32_t counters[DIGITS * THREADS / 4];
	uint8_t *mine = (uint8_t *) counters + threadIdx.x;
	const uint32_t start = blockIdx.x * TILE;
	const uint32_t left = rows - start;
	const int digit = threadIdx.x / (THREADS / DIGITS);
	const int part = threadIdx.x % (THREADS / DIGITS);
	uint32_t sum = 0;

	for (int i = 0; i < DIGITS; i++)
		mine[i * THREADS] = 0;
	for (int i = 0; i < ITEMS; i++)
	{
		const uint32_t place = i * THREADS + threadIdx.x;

		if (place < left)
			mine[(uint32_t) (keys[start + place] >> shift) % DIGITS * THREADS]++;
	}
	__syncthreads();

	/* 16 threads add up a digit's 256 counters, 16 each. */
	for (int i = 0; i < 4; i++)
	{
		const uint32_t four = counters[digit * (THREADS / 4) + part * 4 + i];

		sum += (four & 0xFF) + (four >> 8 & 0xFF) + (four >> 16 & 0xFF) + (four >> 24);
	}
	for (int places = 1; places < THREADS / DIGITS; places *= 2)
		sum += __shfl_xor_sync(0xFFFFFFFF, sum, places);
	if (part == 0)
		counts[(uint64_t) digit * gridDim.x + blockIdx.x] = sum;
}

/*
 * Step 3.  `offsets` are the prefix sums of the counts.  ids_in NULL: the ids are the row numbers.
 */
template <typename Key, bool WITH_IDS>
static __global__ void
split_and_scatter(const Key *keys_in, const uint32_t *ids_in, uint32_t rows, int shift, const uint32_t *offsets,
				  Key *keys_out, uint32_t *ids_out)
{
	__shared__ Key keys[TILE];
	__shared__ uint32_t ids[WITH_IDS ? TILE : 1];
	__shared__ uint32_t warp_sums[THREADS / GPUSORT_WARP];
	__shared__ uint32_t to_global[DIGITS];
	const uint32_t start = blockIdx.x * TILE;
	const uint32_t valid = rows - start < TILE ? rows - start : TILE;

	/* Padding has the largest digit and is last, so it stays last. */
	for (int i = 0; i < ITEMS; i++)
	{
		const uint32_t place = i * THREADS + threadIdx.x;

		keys[place] = place < valid ? keys_in[start + place] : (Key) ~(Key) 0;
		if (WITH_IDS)
		{
			if (place >= valid)
				ids[place] = GPUSORT_PAD_ID;
			else
				ids[place] = ids_in != NULL ? ids_in[start + place] : start + place;
		}
	}
	__syncthreads();

	for (int bit = 0; bit < DIGIT_BITS; bit++)
	{
		Key my_keys[ITEMS];
		uint32_t my_ids[ITEMS];
		uint32_t zeros = 0;
		uint32_t all_zeros;

		for (int i = 0; i < ITEMS; i++)
		{
			my_keys[i] = keys[threadIdx.x * ITEMS + i];
			if (WITH_IDS)
				my_ids[i] = ids[threadIdx.x * ITEMS + i];
			zeros += ~(uint32_t) (my_keys[i] >> (shift + bit)) & 1;
		}

		/* Its barriers also part the reading above from the writing below. */
		zeros = gpusort_block_sum_before(zeros, warp_sums, &all_zeros);
		for (int i = 0; i < ITEMS; i++)
		{
			const bool one = (my_keys[i] >> (shift + bit) & 1) != 0;
			const uint32_t place = one ? all_zeros + threadIdx.x * ITEMS + i - zeros : zeros;

			keys[place] = my_keys[i];
			if (WITH_IDS)
				ids[place] = my_ids[i];
			zeros += one ? 0 : 1;
		}
		__syncthreads();
	}

	/* From a place in the tile to one in the output: the digit's offset less where it starts in the tile. */
	for (uint32_t place = threadIdx.x; place < valid; place += THREADS)
	{
		const uint32_t digit = (uint32_t) (keys[place] >> shift) % DIGITS;

		if (place == 0 || (uint32_t) (keys[place - 1] >> shift) % DIGITS != digit)
			to_global[digit] = offsets[(uint64_t) digit * gridDim.x + blockIdx.x] - place;
	}
	__syncthreads();
	for (uint32_t place = threadIdx.x; place < valid; place += THREADS)
	{
		const Key key = keys[place];
		const uint32_t target = to_global[(uint32_t) (key >> shift) % DIGITS] + place;

		keys_out[target] = key;
		if (WITH_IDS)
			ids_out[target] = ids[place];
	}
}

typedef struct Buffers
{
	void *keys;
	uint32_t *ids;
	uint32_t *counts;
	uint32_t *scratch;
} Buffers;

static Buffers
cut_temp(GpuSortTemp *temp, uint32_t rows, int key_bytes, bool with_ids)
{
	const uint64_t counts = (uint64_t) gpusort_blocks(rows, TILE) * DIGITS;
	Buffers buffers;

	buffers.keys = gpusort_take<char>(temp, (uint64_t) rows * key_bytes);
	buffers.ids = gpusort_take<uint32_t>(temp, with_ids ? rows : 0);
	buffers.counts = gpusort_take<uint32_t>(temp, counts);
	buffers.scratch = gpusort_take<uint32_t>(temp, gpusort_prefix_sum_scratch(counts));
	return buffers;
}

/* The number of passes is even, so the last one ends in the output. */
template <typename Key, bool WITH_IDS>
static cudaError_t
sort_rows(const GpuSortReferenceArgs *args, const Buffers *buffers, cudaStream_t stream)
{
	const uint32_t tiles = gpusort_blocks(args->rows, TILE);
	auto scatter = split_and_scatter<Key, WITH_IDS>;
	const Key *keys = (const Key *) args->keys_in;
	const uint32_t *ids = NULL;

	for (int shift = 0; shift < 8 * (int) sizeof(Key); shift += DIGIT_BITS)
	{
		const bool last = shift / DIGIT_BITS % 2 == 1;
		Key *keys_to = (Key *) (last ? args->keys_out : buffers->keys);
		uint32_t *ids_to = last ? args->ids_out : buffers->ids;

		GPUSORT_TRY_KERNEL(count_digits<Key>, tiles, THREADS, stream, keys, args->rows, shift, buffers->counts);
		GPUSORT_TRY(gpusort_prefix_sum(buffers->counts, (uint64_t) tiles * DIGITS, buffers->scratch, stream));
		GPUSORT_TRY_KERNEL(scatter, tiles, THREADS, stream, keys, ids, args->rows, shift, buffers->counts, keys_to,
						   ids_to);
		keys = keys_to;
		ids = ids_to;
	}
	return cudaSuccess;
}

static cudaError_t
sort_typed(const GpuSortReferenceArgs *args, const Buffers *buffers, cudaStream_t stream)
{
	return GPUSORT_BY_TYPE(args, sort_rows, args, buffers, stream);
}

/* A pass reads the keys for the counts, then reads and writes the rows; the first reads no ids. */
static double
bytes_per_row(uint32_t, int key_bytes, bool with_ids)
{
	const int passes = 8 * key_bytes / DIGIT_BITS;
	const double counts = 4.0 * 5 * DIGITS / TILE; /* written, summed and read */

	return passes * (3.0 * key_bytes + counts) + (with_ids ? 4.0 * (2 * passes - 1) : 0);
}

const GpuSortReference gpusort_satish_radix = {
	"satish-radix",
	"Satish et al., Fast Sort on CPUs, GPUs and Intel MIC Architectures, 2010, 2.1",
	false,
	GPUSORT_REFERENCE_KEYS_4 | GPUSORT_REFERENCE_KEYS_8 | GPUSORT_REFERENCE_PAIRS_4 | GPUSORT_REFERENCE_PAIRS_8,
	true,
	false,
	MOST_ROWS,
	gpusort_cut_bytes<&gpusort_satish_radix, cut_temp>,
	gpusort_cut_and_sort<&gpusort_satish_radix, cut_temp, sort_typed>,
	bytes_per_row,
};
