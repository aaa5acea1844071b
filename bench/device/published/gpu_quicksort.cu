/*-------------------------------------------------------------------------
 *
 * gpu_quicksort.cu
 *	  GPU-Quicksort of D. Cederman, P. Tsigas, On Sorting and Load Balancing on Graphics
 *	  Processors (MCC 2008; A Practical Quicksort Algorithm for Graphics Processors,
 *	  ESA 2008).
 *
 * Not in place: sequences are partitioned from one array into the other.  To partition
 * is the same in both phases: every thread looks at every T-th word (T threads, so
 * that reads coalesce) and counts those below and those above the pivot; prefix sums over
 * the counts say where each thread writes; a second look writes.  Words equal to the
 * pivot are not moved: the gap that is left between the two sides is filled with
 * the pivot, in the output, as its words are where they belong.
 *
 *	Phase one	A sequence is partitioned by many blocks.  A block takes the room for its
 *				words from the sequence's two ends by fetch-and-add, and also finds the
 *				smallest and the largest on either side; the middle between them is the
 *				pivot of that side later.  After each round the host reads what became
 *				of the sequences and plans the next.
 *	Phase two	Each sequence that is left belongs to one block, which goes on by itself
 *				with a stack in shared memory: the longer side is pushed first, so the
 *				stack stays short.  The pivot is the median of the first, the middle and the
 *				last word.  What fits into shared memory is sorted there, by the bitonic
 *				network.
 *
 * It ends on any input: in phase one the values of a sequence span at most half of
 * what they did a round before, so a 64-bit key takes at most 65 rounds; all equal keys take one.
 * In phase two, after DEEP splits by medians, pivots are the middle of the values that are
 * possible, with the same effect.
 *
 * Pairs are sorted as one 64-bit word each, (key, row id): the gap is filled with copies
 * of the pivot, which words alone allow.  So there are no pairs with 64-bit keys.
 *
 * What differs from the paper, and why: phase one goes on until every sequence is short,
 * and not until there are enough of them, as skewed keys would leave long ones to
 * single blocks; the gap is filled by a kernel of its own, by all blocks of the
 * sequence instead of its last one, as it may be most of the input, and because
 * in every other round it lies where other blocks still read.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>

#include "published/common.h"

#define THREADS        256
#define SMALL          2048 /* words sorted in shared memory; a power of two */
#define MOST_SEQUENCES 4096 /* partitioned in one round */
#define MOST_PIECES    (2 * MOST_SEQUENCES)
#define MOST_ROUNDS    66    /* of phase one */
#define LEAST_LIMIT    16384 /* words of a sequence for phase two, at least */
#define STACK          32    /* sequences; the longest of phase two has 2^19 words */
#define DEEP           24
#define MOST_ROWS      (1u << 31)

/* Where a sequence's words are. */
enum
{
	IN_INPUT,
	IN_TEMP,
	IN_OUTPUT,
};

/* A sequence that is partitioned in phase one. */
template <typename Word>
struct Sequence
{
	uint32_t begin;
	uint32_t end;
	Word pivot;
	uint32_t below; /* words written at its beginning so far */
	uint32_t above; /* and at its end */
	unsigned long long below_least;
	unsigned long long below_most;
	unsigned long long above_least;
	unsigned long long above_most;
};

/* A block's share of it. */
typedef struct Piece
{
	uint32_t sequence;
	uint32_t begin;
	uint32_t end;
} Piece;

/* A sequence for phase two, with bounds of its values. */
template <typename Word>
struct ShortSequence
{
	uint32_t begin;
	uint32_t end;
	uint32_t place; /* IN_* */
	uint32_t splits;
	Word least;
	Word most;
};

/* Adds a thread's least and most word to those of a sequence's side. */
template <typename Word>
static __device__ inline void
add_range(Word least, Word most, unsigned long long *to_least, unsigned long long *to_most)
{
	for (int places = GPUSORT_WARP / 2; places > 0; places /= 2)
	{
		const Word other_least = __shfl_xor_sync(0xFFFFFFFF, least, places);
		const Word other_most = __shfl_xor_sync(0xFFFFFFFF, most, places);

		least = other_least < least ? other_least : least;
		most = other_most > most ? other_most : most;
	}
	if (threadIdx.x % GPUSORT_WARP == 0 && least <= most)
	{
		atomicMin(to_least, (unsigned long long) least);
		atomicMax(to_most, (unsigned long long) most);
	}
}

/* Phase one: a block partitions a piece. */
template <typename Word>
static __global__ void
partition_pieces(const Word *from, Word *to, Sequence<Word> *sequences, const Piece *pieces)
{
	__shared__ uint32_t warp_sums[THREADS / GPUSORT_WARP];
	__shared__ uint32_t room_below;
	__shared__ uint32_t room_above;
	const Piece piece = pieces[blockIdx.x];
	Sequence<Word> *sequence = &sequences[piece.sequence];
	const Word pivot = sequence->pivot;
	const Word largest = (Word) ~(Word) 0;
	Word below_least = largest;
	Word below_most = 0;
	Word above_least = largest;
	Word above_most = 0;
	uint32_t below = 0;
	uint32_t above = 0;
	uint32_t all_below;
	uint32_t all_above;

	for (uint32_t i = piece.begin + threadIdx.x; i < piece.end; i += THREADS)
	{
		const Word word = from[i];

		if (word < pivot)
		{
			below++;
			below_least = word < below_least ? word : below_least;
			below_most = word > below_most ? word : below_most;
		}
		else if (word > pivot)
		{
			above++;
			above_least = word < above_least ? word : above_least;
			above_most = word > above_most ? word : above_most;
		}
	}
	below = gpusort_block_sum_before(below, warp_sums, &all_below);
	above = gpusort_block_sum_before(above, warp_sums, &all_above);
	add_range(below_least, below_most, &sequence->below_least, &sequence->below_most);
	add_range(above_least, above_most, &sequence->above_least, &sequence->above_most);
	if (threadIdx.x == 0)
	{
		room_below = atomicAdd(&sequence->below, all_below);
		room_above = atomicAdd(&sequence->above, all_above);
	}
	__syncthreads();
	below += sequence->begin + room_below;
	above = sequence->end - room_above - above;
	for (uint32_t i = piece.begin + threadIdx.x; i < piece.end; i += THREADS)
	{
		const Word word = from[i];

		if (word < pivot)
			to[below++] = word;
		else if (word > pivot)
			to[--above] = word;
	}
}

/* Phase one: the words between the sides, each block within its piece. */
template <typename Word>
static __global__ void
fill_gaps(Word *out, const Sequence<Word> *sequences, const Piece *pieces)
{
	const Piece piece = pieces[blockIdx.x];
	const Sequence<Word> *sequence = &sequences[piece.sequence];
	const Word pivot = sequence->pivot;
	const uint32_t gap_begin = sequence->begin + sequence->below;
	const uint32_t gap_end = sequence->end - sequence->above;
	const uint32_t begin = piece.begin > gap_begin ? piece.begin : gap_begin;
	const uint32_t end = piece.end < gap_end ? piece.end : gap_end;

	for (uint32_t i = begin + threadIdx.x; i < end; i += THREADS)
		out[i] = pivot;
}

template <typename Word>
static __device__ inline Word
middle(Word least, Word most)
{
	return least + (most - least) / 2;
}

template <typename Word>
static __device__ inline Word
median(Word a, Word b, Word c)
{
	const Word low = a < b ? a : b;
	const Word high = a < b ? b : a;

	return c < low ? low : c > high ? high
									: c;
}

/* Phase two: a block sorts a sequence. */
template <typename Word>
static __global__ void
sort_short(const ShortSequence<Word> *sequences, const Word *input, Word *temp, Word *out)
{
	__shared__ Word words[SMALL];
	__shared__ ShortSequence<Word> stack[STACK];
	__shared__ int depth;
	__shared__ uint32_t warp_sums[THREADS / GPUSORT_WARP];

	/*
	 * Aligned for the compiler's sake: it reads 16 bytes at a time, and read a word of warp_sums,
	 * which it did not use, with those of `top` beside it, while that was written.
	 */
	__shared__ __align__(16) ShortSequence<Word> top;

	if (threadIdx.x == 0)
	{
		stack[0] = sequences[blockIdx.x];
		depth = 1;
	}
	for (;;)
	{
		ShortSequence<Word> now;
		const Word *from;
		Word *to;
		Word pivot;
		uint32_t rows;
		uint32_t below = 0;
		uint32_t above = 0;
		uint32_t all_below;
		uint32_t all_above;

		if (threadIdx.x == 0)
		{
			top.begin = top.end = 0;
			if (depth > 0)
				top = stack[--depth];
		}
		__syncthreads();
		now = top;
		rows = now.end - now.begin;
		if (rows == 0)
			return;
		from = now.place == IN_INPUT ? input : now.place == IN_TEMP ? temp
																	: out;
		to = now.place == IN_TEMP ? out : temp;

		if (rows <= SMALL)
		{
			int places = 1;

			while (places < (int) rows)
				places *= 2;
			for (int i = threadIdx.x; i < places; i += THREADS)
				words[i] = i < (int) rows ? from[now.begin + i] : (Word) ~(Word) 0;
			__syncthreads();
			gpusort_block_sort<Word, false>(words, NULL, places);
			for (int i = threadIdx.x; i < (int) rows; i += THREADS)
				out[now.begin + i] = words[i];
			continue;
		}

		if (now.splits < DEEP)
			pivot = median(from[now.begin], from[now.begin + rows / 2], from[now.end - 1]);
		else
			pivot = middle(now.least, now.most);
		for (uint32_t i = now.begin + threadIdx.x; i < now.end; i += THREADS)
		{
			const Word word = from[i];

			below += word < pivot ? 1 : 0;
			above += word > pivot ? 1 : 0;
		}
		below = gpusort_block_sum_before(below, warp_sums, &all_below);
		above = gpusort_block_sum_before(above, warp_sums, &all_above);
		below += now.begin;
		above = now.end - above;
		for (uint32_t i = now.begin + threadIdx.x; i < now.end; i += THREADS)
		{
			const Word word = from[i];

			if (word < pivot)
				to[below++] = word;
			else if (word > pivot)
				to[--above] = word;
		}

		/* The gap may lie where words were just read from. */
		__syncthreads();
		for (uint32_t i = now.begin + all_below + threadIdx.x; i < now.end - all_above; i += THREADS)
			out[i] = pivot;

		if (threadIdx.x == 0)
		{
			ShortSequence<Word> side[2];
			const int longer = all_below >= all_above ? 0 : 1;

			side[0].begin = now.begin;
			side[0].end = now.begin + all_below;
			side[0].least = now.least;
			side[0].most = pivot - 1;
			side[1].begin = now.end - all_above;
			side[1].end = now.end;
			side[1].least = pivot + 1;
			side[1].most = now.most;
			for (int i = 0; i < 2; i++)
			{
				ShortSequence<Word> *pushed = &side[i == 0 ? longer : 1 - longer];

				pushed->place = now.place == IN_TEMP ? IN_OUTPUT : IN_TEMP;
				pushed->splits = now.splits + 1;
				if (pushed->begin < pushed->end)
					stack[depth++] = *pushed;
			}
		}
	}
}

typedef struct Buffers
{
	void *words; /* pairs only: what is sorted, and where it ends */
	void *sorted;
	void *other; /* what is partitioned from and to, beside the output */
	void *sequences;
	Piece *pieces;
	void *shorts;
	uint64_t *range;
} Buffers;

/* A sequence of at most so many words is left to phase two. */
static uint32_t
short_limit(uint32_t rows)
{
	const uint32_t share = rows / MOST_SEQUENCES;

	return share > LEAST_LIMIT ? share : LEAST_LIMIT;
}

/* How many short sequences there may be: a partition leaves at most one more than there were. */
static uint64_t
most_shorts(uint32_t rows)
{
	const uint64_t long_ones = rows / short_limit(rows) + 1;

	return long_ones * MOST_ROUNDS + 1;
}

static Buffers
cut_temp(GpuSortTemp *temp, uint32_t rows, int key_bytes, bool with_ids)
{
	const uint64_t bytes = (uint64_t) rows * gpusort_word_bytes(key_bytes, with_ids);
	Buffers buffers;

	buffers.words = gpusort_take<char>(temp, with_ids ? bytes : 0);
	buffers.sorted = gpusort_take<char>(temp, with_ids ? bytes : 0);
	buffers.other = gpusort_take<char>(temp, bytes);
	buffers.sequences = gpusort_take<Sequence<uint64_t>>(temp, MOST_SEQUENCES);
	buffers.pieces = gpusort_take<Piece>(temp, MOST_PIECES);
	buffers.shorts = gpusort_take<ShortSequence<uint64_t>>(temp, most_shorts(rows));
	buffers.range = gpusort_take<uint64_t>(temp, 2);
	return buffers;
}

/* The host's side of phase one. */
template <typename Word>
struct Plan
{
	Sequence<Word> *sequences;
	Piece *pieces;
	ShortSequence<Word> *shorts;
	uint32_t sequence_count;
	uint32_t short_count;
	uint32_t limit; /* of a short sequence */
};

/* Adds a sequence to the next round, or to phase two. */
template <typename Word>
static void
add_sequence(Plan<Word> *plan, uint32_t begin, uint32_t end, Word least, Word most, uint32_t place)
{
	if (begin == end)
		return;
	if (end - begin <= plan->limit)
	{
		ShortSequence<Word> *added = &plan->shorts[plan->short_count++];

		added->begin = begin;
		added->end = end;
		added->place = place;
		added->splits = 0;
		added->least = least;
		added->most = most;
	}
	else
	{
		Sequence<Word> *added = &plan->sequences[plan->sequence_count++];

		added->begin = begin;
		added->end = end;
		added->pivot = least + (most - least) / 2;
		added->below = 0;
		added->above = 0;
		added->below_least = added->above_least = ~0ull;
		added->below_most = added->above_most = 0;
	}
}

/* Divides the sequences of a round into pieces of about the same size; returns how many. */
template <typename Word>
static uint32_t
plan_pieces(Plan<Word> *plan)
{
	uint64_t rows = 0;
	uint64_t piece_rows;
	uint32_t count = 0;

	for (uint32_t s = 0; s < plan->sequence_count; s++)
		rows += plan->sequences[s].end - plan->sequences[s].begin;
	piece_rows = (rows + MOST_SEQUENCES - 1) / MOST_SEQUENCES;
	if (piece_rows < LEAST_LIMIT / 4)
		piece_rows = LEAST_LIMIT / 4;
	for (uint32_t s = 0; s < plan->sequence_count; s++)
	{
		const uint64_t end = plan->sequences[s].end;

		for (uint64_t begin = plan->sequences[s].begin; begin < end; begin += piece_rows)
		{
			plan->pieces[count].sequence = s;
			plan->pieces[count].begin = (uint32_t) begin;
			plan->pieces[count].end = (uint32_t) (begin + piece_rows < end ? begin + piece_rows : end);
			count++;
		}
	}
	return count;
}

/* Phase one: rounds until no sequence is longer than the limit. */
template <typename Word>
static cudaError_t
split_long(Plan<Word> *plan, Sequence<Word> *done, const Word *in, Word *out, const Buffers *buffers,
		   cudaStream_t stream)
{
	Sequence<Word> *sequences = (Sequence<Word> *) buffers->sequences;
	Word *other = (Word *) buffers->other;
	const Word *from = in;

	for (bool to_out = false; plan->sequence_count > 0; to_out = !to_out)
	{
		const uint32_t pieces = plan_pieces(plan);
		const uint32_t count = plan->sequence_count;
		Word *to = to_out ? out : other;

		GPUSORT_TRY(cudaMemcpyAsync(sequences, plan->sequences, count * sizeof(*sequences), cudaMemcpyHostToDevice,
									stream));
		GPUSORT_TRY(cudaMemcpyAsync(buffers->pieces, plan->pieces, pieces * sizeof(Piece), cudaMemcpyHostToDevice,
									stream));
		GPUSORT_TRY_KERNEL(partition_pieces<Word>, pieces, THREADS, stream, from, to, sequences,
						   (const Piece *) buffers->pieces);
		GPUSORT_TRY_KERNEL(fill_gaps<Word>, pieces, THREADS, stream, out, (const Sequence<Word> *) sequences,
						   (const Piece *) buffers->pieces);
		GPUSORT_TRY(cudaMemcpyAsync(done, sequences, count * sizeof(*sequences), cudaMemcpyDeviceToHost, stream));
		GPUSORT_TRY(cudaStreamSynchronize(stream));

		plan->sequence_count = 0;
		for (uint32_t s = 0; s < count; s++)
		{
			const Sequence<Word> *d = &done[s];
			const uint32_t place = to_out ? IN_OUTPUT : IN_TEMP;

			add_sequence(plan, d->begin, d->begin + d->below, (Word) d->below_least, (Word) d->below_most, place);
			add_sequence(plan, d->end - d->above, d->end, (Word) d->above_least, (Word) d->above_most, place);
		}
		from = to;
	}
	return cudaSuccess;
}

/* Sorts words from `in` to `out`, with the host's memory of *plan and done. */
template <typename Word>
static cudaError_t
sort_planned(Plan<Word> *plan, Sequence<Word> *done, uint32_t rows, const Word *in, Word *out,
			 const Buffers *buffers, cudaStream_t stream)
{
	ShortSequence<Word> *shorts = (ShortSequence<Word> *) buffers->shorts;
	uint64_t range[2] = {0, (Word) ~(Word) 0};

	plan->limit = short_limit(rows);
	if (rows > plan->limit)
	{
		GPUSORT_TRY(gpusort_key_range(in, rows, sizeof(Word), buffers->range, stream));
		GPUSORT_TRY(cudaMemcpyAsync(range, buffers->range, sizeof(range), cudaMemcpyDeviceToHost, stream));
		GPUSORT_TRY(cudaStreamSynchronize(stream));
	}
	add_sequence(plan, 0, rows, (Word) range[0], (Word) range[1], IN_INPUT);
	GPUSORT_TRY(split_long(plan, done, in, out, buffers, stream));
	if (plan->short_count == 0)
		return cudaSuccess;
	GPUSORT_TRY(cudaMemcpyAsync(shorts, plan->shorts, plan->short_count * sizeof(*shorts), cudaMemcpyHostToDevice,
								stream));
	GPUSORT_TRY_KERNEL(sort_short<Word>, plan->short_count, THREADS, stream, (const ShortSequence<Word> *) shorts, in,
					   (Word *) buffers->other, out);

	/* The plan's memory may be read until here. */
	return cudaStreamSynchronize(stream);
}

template <typename Word>
static cudaError_t
sort_words(uint32_t rows, const Word *in, Word *out, const Buffers *buffers, cudaStream_t stream)
{
	Plan<Word> plan = {};
	Sequence<Word> *done = (Sequence<Word> *) malloc(MOST_SEQUENCES * sizeof(*done));
	cudaError_t status = cudaErrorMemoryAllocation;

	plan.sequences = (Sequence<Word> *) malloc(MOST_SEQUENCES * sizeof(*plan.sequences));
	plan.pieces = (Piece *) malloc(MOST_PIECES * sizeof(*plan.pieces));
	plan.shorts = (ShortSequence<Word> *) malloc(most_shorts(rows) * sizeof(*plan.shorts));
	if (done != NULL && plan.sequences != NULL && plan.pieces != NULL && plan.shorts != NULL)
	{
		status = sort_planned(&plan, done, rows, in, out, buffers, stream);

		/* After an error, copies from this memory may still be under way. */
		if (status != cudaSuccess)
			(void) cudaStreamSynchronize(stream);
	}
	free(done);
	free(plan.sequences);
	free(plan.pieces);
	free(plan.shorts);
	return status;
}

static cudaError_t
sort_typed(const GpuSortReferenceArgs *args, const Buffers *buffers, cudaStream_t stream)
{
	if (args->ids_out != NULL)
	{
		GPUSORT_TRY(gpusort_pack_words(args, buffers->words, args->rows, stream));
		GPUSORT_TRY(sort_words(args->rows, (const uint64_t *) buffers->words, (uint64_t *) buffers->sorted, buffers,
							   stream));
		return gpusort_unpack_words(args, buffers->sorted, stream);
	}
	if (args->key_bytes == 4)
		return sort_words(args->rows, (const uint32_t *) args->keys_in, (uint32_t *) args->keys_out, buffers, stream);
	return sort_words(args->rows, (const uint64_t *) args->keys_in, (uint64_t *) args->keys_out, buffers, stream);
}

/*
 * For keys at random, which each partition halves: it reads its words twice and writes them once,
 * until SMALL are left, which are read and written; before that, a look for the range.
 */
static double
bytes_per_row(uint32_t rows, int key_bytes, bool with_ids)
{
	const int word = gpusort_word_bytes(key_bytes, with_ids);
	double bytes = (rows > short_limit(rows) ? 3.0 : 2.0) * word;

	for (uint32_t length = rows; length > SMALL; length /= 2)
		bytes += 3.0 * word;
	return bytes + (with_ids ? 2.0 * (key_bytes + 2 + word) : 0);
}

const GpuSortReference gpusort_quicksort = {
	"gpu-quicksort",
	"Cederman, Tsigas, On Sorting and Load Balancing on Graphics Processors, 2008",
	false,
	GPUSORT_REFERENCE_KEYS_4 | GPUSORT_REFERENCE_KEYS_8 | GPUSORT_REFERENCE_PAIRS_4,
	true,
	true,
	MOST_ROWS,
	gpusort_cut_bytes<&gpusort_quicksort, cut_temp>,
	gpusort_cut_and_sort<&gpusort_quicksort, cut_temp, sort_typed>,
	bytes_per_row,
};
