/*-------------------------------------------------------------------------
 *
 * bitonic.cu
 *	  The bitonic sorts of E. Bainville, OpenCL Sorting (2011), "Parallel bitonic":
 *	  kernels A, B2, B4, B8, B16, and the sort that ends in local memory.
 *
 * A bitonic sort of 2^L words has L stages; stage s merges sequences of `length` = 2^s
 * words by s steps, which compare words at the distances length/2, length/4, ... 1.
 *
 *	A		one step per kernel, from one array to another; a thread per word, so each
 *			comparison is made twice
 *	B2		one step per kernel in place, a thread per two words
 *	B4, B8, B16	two, three, four steps per kernel: a thread keeps 4, 8, 16 words, which
 *			these steps compare among themselves only, in registers
 *	local	steps within 2048 words: by one block in shared memory, all that are left of
 *			a stage in one kernel, and all of the first 11 stages in one
 *
 * Which direction a sequence is sorted in is told by the bit `length` of its place,
 * as in the text; the last stage has no such bit and ascends.
 *
 * "bitonic-b8" means the best of B2, B4 and B8 for what is left of a stage, as in the
 * text's tables; "bitonic-local" has all of them above 2048 words.
 *
 * What differs from the text, and why: a pair is one 64-bit word, (key, row id), and
 * compared as such (pack_words.cu), because padding has to be told from rows with the
 * largest key; any number of rows is padded to a power of two, where the text
 * has powers of two only; and places are 64-bit, for more than 2^27 words.  The text's
 * "inc >> 1;" is taken to mean "inc >>= 1;".
 *
 *-------------------------------------------------------------------------
 */
#include "published/common.h"

#define THREADS    256
#define TILE       2048       /* words of a block with local memory */
#define TILE_STEPS 11         /* its logarithm */
#define MOST_ROWS  (1u << 31) /* padded, they are no more */

/* Kernel A: word i is compared with word i ^ inc. */
template <typename Word>
static __global__ void
step_a(const Word *in, Word *out, uint64_t count, uint64_t inc, uint64_t length)
{
	const uint64_t i = (uint64_t) blockIdx.x * THREADS + threadIdx.x;
	const uint64_t j = i ^ inc;
	Word mine;
	Word other;
	bool smaller;
	bool swap;

	if (i >= count)
		return;
	mine = in[i];
	other = in[j];
	smaller = other < mine || (other == mine && j < i);
	swap = smaller ^ (j < i) ^ ((length & i) != 0);
	out[i] = swap ? other : mine;
}

/* Compares words, and puts them in order, or in the reverse of it. */
template <typename Word>
static __device__ inline void
order(Word *a, Word *b, bool ascending)
{
	const Word x = *a;
	const Word y = *b;
	const bool swap = ascending ^ (x < y);

	*a = swap ? y : x;
	*b = swap ? x : y;
}

/*
 * Kernels B2 to B16: the steps of distance inc, inc/2, ... down to inc * 2 / 2^STEPS.  Each thread has
 * 2^STEPS words, that far apart.
 */
template <typename Word, int STEPS>
static __global__ void
steps_b(Word *words, uint64_t count, uint64_t inc, uint64_t length)
{
	const int mine = 1 << STEPS;
	const uint64_t thread = (uint64_t) blockIdx.x * THREADS + threadIdx.x;
	const uint64_t least = inc >> (STEPS - 1);
	const uint64_t low = thread & (least - 1);
	const uint64_t start = ((thread - low) << STEPS) + low;
	const bool ascending = (length & start) == 0;
	Word x[1 << STEPS];

	if (start >= count)
		return;
	GPUSORT_UNROLL
	for (int i = 0; i < mine; i++)
		x[i] = words[start + i * least];
	GPUSORT_UNROLL
	for (int distance = mine / 2; distance > 0; distance /= 2)
	{
		GPUSORT_UNROLL
		for (int i = 0; i < mine; i++)
		{
			if ((i & distance) == 0)
				order(&x[i], &x[i + distance], ascending);
		}
	}
	GPUSORT_UNROLL
	for (int i = 0; i < mine; i++)
		words[start + i * least] = x[i];
}

/* Local memory: the steps below TILE of the stages from first_length to last_length. */
template <typename Word>
static __global__ void
steps_local(Word *words, uint64_t first_length, uint64_t last_length)
{
	__shared__ Word tile[TILE];
	const uint64_t start = (uint64_t) blockIdx.x * TILE;

	for (int i = threadIdx.x; i < TILE; i += THREADS)
		tile[i] = words[start + i];
	__syncthreads();
	for (uint64_t length = first_length; length <= last_length; length *= 2)
	{
		for (int inc = length < TILE ? (int) length / 2 : TILE / 2; inc > 0; inc /= 2)
		{
			for (int thread = threadIdx.x; thread < TILE / 2; thread += THREADS)
			{
				const int low = thread & (inc - 1);
				const int i = 2 * thread - low;

				order(&tile[i], &tile[i + inc], (length & (start + i)) == 0);
			}
			__syncthreads();
		}
	}
	for (int i = threadIdx.x; i < TILE; i += THREADS)
		words[start + i] = tile[i];
}

template <typename Word, int STEPS>
static cudaError_t
start_b(Word *words, uint64_t count, uint64_t inc, uint64_t length, cudaStream_t stream)
{
	auto kernel = steps_b<Word, STEPS>;

	GPUSORT_TRY_KERNEL(kernel, gpusort_blocks(count >> STEPS, THREADS), THREADS, stream, words, count, inc, length);
	return cudaSuccess;
}

/* How many words are sorted for so many rows. */
static uint64_t
padded(uint32_t rows)
{
	uint64_t count = TILE;

	while (count < rows)
		count *= 2;
	return count;
}

/* Kernel A alone; which of the two arrays has the result is returned in *words. */
template <typename Word>
static cudaError_t
sort_a(Word **words, Word *other, uint64_t count, cudaStream_t stream)
{
	for (uint64_t length = 2; length <= count; length *= 2)
	{
		for (uint64_t inc = length / 2; inc > 0; inc /= 2)
		{
			Word *from = *words;

			GPUSORT_TRY_KERNEL(step_a<Word>, gpusort_blocks(count, THREADS), THREADS, stream, (const Word *) from,
							   other, count, inc, length);
			*words = other;
			other = from;
		}
	}
	return cudaSuccess;
}

/* Kernels B of up to most_steps steps, and local memory if wanted. */
template <typename Word>
static cudaError_t
sort_b(Word *words, uint64_t count, int most_steps, bool local, cudaStream_t stream)
{
	const int local_steps = local ? TILE_STEPS : 0;
	int stage = 1;

	if (local)
	{
		GPUSORT_TRY_KERNEL(steps_local<Word>, gpusort_blocks(count, TILE), THREADS, stream, words, (uint64_t) 2,
						   (uint64_t) TILE);
		stage = TILE_STEPS + 1;
	}
	for (; (uint64_t) 1 << stage <= count; stage++)
	{
		const uint64_t length = (uint64_t) 1 << stage;
		int left = stage;

		while (left > local_steps)
		{
			const uint64_t inc = (uint64_t) 1 << (left - 1);
			const int steps = left - local_steps < most_steps ? left - local_steps : most_steps;

			if (steps == 4)
				GPUSORT_TRY((start_b<Word, 4>(words, count, inc, length, stream)));
			else if (steps == 3)
				GPUSORT_TRY((start_b<Word, 3>(words, count, inc, length, stream)));
			else if (steps == 2)
				GPUSORT_TRY((start_b<Word, 2>(words, count, inc, length, stream)));
			else
				GPUSORT_TRY((start_b<Word, 1>(words, count, inc, length, stream)));
			left -= steps;
		}
		if (local)
			GPUSORT_TRY_KERNEL(steps_local<Word>, gpusort_blocks(count, TILE), THREADS, stream, words, length,
							   length);
	}
	return cudaSuccess;
}

typedef struct Buffers
{
	void *words;
} Buffers;

/* MOST_STEPS 0: kernel A, which does not sort in place. */
template <int MOST_STEPS>
static Buffers
cut_temp(GpuSortTemp *temp, uint32_t rows, int key_bytes, bool with_ids)
{
	Buffers buffers;

	buffers.words =
		gpusort_take<char>(temp, padded(rows) * gpusort_word_bytes(key_bytes, with_ids) * (MOST_STEPS == 0 ? 2 : 1));
	return buffers;
}

template <typename Word>
static cudaError_t
sort_words(const GpuSortReferenceArgs *args, const Buffers *buffers, int most_steps, bool local,
		   cudaStream_t stream)
{
	const uint64_t count = padded(args->rows);
	Word *words = (Word *) buffers->words;

	GPUSORT_TRY(gpusort_pack_words(args, words, count, stream));
	if (most_steps == 0)
		GPUSORT_TRY(sort_a(&words, words + count, count, stream));
	else
		GPUSORT_TRY(sort_b(words, count, most_steps, local, stream));
	return gpusort_unpack_words(args, words, stream);
}

template <int MOST_STEPS, bool LOCAL>
static cudaError_t
sort_typed(const GpuSortReferenceArgs *args, const Buffers *buffers, cudaStream_t stream)
{
	if (gpusort_word_bytes(args->key_bytes, args->ids_out != NULL) == 4)
		return sort_words<uint32_t>(args, buffers, MOST_STEPS, LOCAL, stream);
	return sort_words<uint64_t>(args, buffers, MOST_STEPS, LOCAL, stream);
}

/* Each kernel reads and writes all words; A reads them twice. */
template <int MOST_STEPS, bool LOCAL>
static double
bytes_per_row(uint32_t rows, int key_bytes, bool with_ids)
{
	const int word = gpusort_word_bytes(key_bytes, with_ids);
	const int local_steps = LOCAL ? TILE_STEPS : 0;
	const uint64_t count = padded(rows);
	double kernels = LOCAL ? 1 : 0;
	double copies = 2.0 * word + 2.0 * (key_bytes + (with_ids ? 2 : 0)); /* packing reads no ids */

	for (int stage = 1 + local_steps; (uint64_t) 1 << stage <= count; stage++)
	{
		if (MOST_STEPS == 0)
			kernels += stage;
		else
			kernels += (stage - local_steps + MOST_STEPS - 1) / (MOST_STEPS > 0 ? MOST_STEPS : 1) + (LOCAL ? 1 : 0);
	}
	return rows == 0 ? 0 : copies + kernels * word * (MOST_STEPS == 0 ? 3 : 2) * count / rows;
}

#define BITONIC(variable, name, section, most_steps, local)                                   \
	const GpuSortReference variable = {                                                       \
		name,                                                                                 \
		"Bainville, OpenCL Sorting, 2011, Parallel bitonic, " section,                        \
		false,                                                                                \
		GPUSORT_REFERENCE_KEYS_4 | GPUSORT_REFERENCE_KEYS_8 | GPUSORT_REFERENCE_PAIRS_4,      \
		true,                                                                                 \
		false,                                                                                \
		MOST_ROWS,                                                                            \
		gpusort_cut_bytes<&variable, cut_temp<most_steps>>,                                   \
		gpusort_cut_and_sort<&variable, cut_temp<most_steps>, sort_typed<most_steps, local>>, \
		bytes_per_row<most_steps, local>,                                                     \
	}

BITONIC(gpusort_bitonic_a, "bitonic-a", "kernel A", 0, false);
BITONIC(gpusort_bitonic_b2, "bitonic-b2", "kernel B2", 1, false);
BITONIC(gpusort_bitonic_b4, "bitonic-b4", "kernels B2, B4", 2, false);
BITONIC(gpusort_bitonic_b8, "bitonic-b8", "kernels B2, B4, B8", 3, false);
BITONIC(gpusort_bitonic_b16, "bitonic-b16", "kernels B2 to B16", 4, false);
BITONIC(gpusort_bitonic_local, "bitonic-local", "B2 to B16 and local memory", 4, true);
