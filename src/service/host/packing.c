/*-------------------------------------------------------------------------
 *
 * packing.c
 *	  Packed keys of the host engine.
 *
 * A bit that is the same in every key cannot matter to the order.
 * The bits that vary, OR xor AND, are taken out of each key,
 * most significant first, and put next to each other.
 * What was several columns in several words is then one word most of the time,
 * and radix passes are not spent on bits that say nothing.
 *
 * Taking bits out of a word is one instruction with BMI2 (pext).  Where there
 * is none, or where it is microcode, the mask is cut into runs of bits, which a
 * shift and a mask move each.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "service/host/packing.h"

#if defined(__x86_64__) && !defined(GPUSORT_PORTABLE)
#include <immintrin.h>
#define HAVE_PEXT 1
#endif

static bool
pext_is_fast(void)
{
#ifdef HAVE_PEXT
	/* Zen 1 and 2 have pext but take hundreds of cycles for it. */
	return __builtin_cpu_supports("bmi2") &&
		!__builtin_cpu_is("znver1") && !__builtin_cpu_is("znver2");
#else
	return false;
#endif
}

/* The highest n bits that are set in mask. */
static uint64_t
highest_bits(uint64_t mask, uint32_t n)
{
	while ((uint32_t) __builtin_popcountll(mask) > n)
		mask &= mask - 1;
	return mask;
}

/* Adds the moves of the bits of mask; they end shift bits above the low end. */
static uint32_t
add_moves(GpuSortPacking *packing, uint32_t n, uint32_t word, uint64_t mask, uint32_t shift)
{
	while (mask != 0)
	{
		uint64_t moved = mask;
		uint32_t bits;

		if (!packing->pext)
		{
			/* the lowest run of ones: what a carry from its low end changes */
			uint64_t carried = mask + (mask & -mask);

			moved = mask & ~carried;
		}
		bits = __builtin_popcountll(moved);
		packing->moves[n++] = (GpuSortBitMove){.word = word, .shift = shift, .mask = moved};
		shift += bits;
		mask &= ~moved;
	}
	return n;
}

/* Finds out which bits vary, from the OR and the AND of each word of all keys, and how to pack them. */
void
gpusort_packing_plan(GpuSortPacking *packing, const uint64_t *any, const uint64_t *all,
					 uint32_t key_words)
{
	uint32_t moves = 0;
	uint32_t left;      /* bits that the current packed word still takes */
	uint32_t bits_left; /* bits not placed yet */
	uint32_t word = 0;

	packing->pext = pext_is_fast();
	packing->bits = 0;
	for (uint32_t w = 0; w < key_words; w++)
		packing->bits += __builtin_popcountll(any[w] ^ all[w]);
	packing->words = packing->bits > 64 ? (packing->bits + 63) / 64 : 1;

	bits_left = packing->bits;
	left = bits_left < 64 ? bits_left : 64;
	packing->first[0] = 0;
	for (uint32_t w = 0; w < key_words; w++)
	{
		uint64_t mask = any[w] ^ all[w];

		while (mask != 0)
		{
			uint64_t part = highest_bits(mask, left);
			uint32_t bits = __builtin_popcountll(part);

			left -= bits;
			bits_left -= bits;
			mask &= ~part;
			moves = add_moves(packing, moves, w, part, left);
			if (left == 0 && bits_left > 0)
			{
				packing->first[++word] = moves;
				left = bits_left < 64 ? bits_left : 64;
			}
		}
	}
	packing->first[packing->words] = moves;
}

/* Word "word" of the packed key; works on every CPU. */
static inline uint64_t
pack_by_runs(const GpuSortPacking *packing, const uint64_t *key, uint32_t word)
{
	uint64_t packed = 0;

	for (uint32_t i = packing->first[word]; i < packing->first[word + 1]; i++)
	{
		const GpuSortBitMove *move = &packing->moves[i];

		packed |= (key[move->word] & move->mask) >> __builtin_ctzll(move->mask) << move->shift;
	}
	return packed;
}

#ifdef HAVE_PEXT
static inline __attribute__((target("bmi2"))) uint64_t
pack_by_pext(const GpuSortPacking *packing, const uint64_t *key, uint32_t word)
{
	uint64_t packed = 0;

	for (uint32_t i = packing->first[word]; i < packing->first[word + 1]; i++)
	{
		const GpuSortBitMove *move = &packing->moves[i];

		packed |= _pext_u64(key[move->word], move->mask) << move->shift;
	}
	return packed;
}

static __attribute__((target("bmi2"), noinline)) uint64_t
pack_word_by_pext(const GpuSortPacking *packing, const uint64_t *key, uint32_t word)
{
	return pack_by_pext(packing, key, word);
}
#endif

/* Word "word" of the packed key of key. */
uint64_t
gpusort_packing_word(const GpuSortPacking *packing, const uint64_t *key, uint32_t word)
{
#ifdef HAVE_PEXT
	if (packing->pext)
		return pack_word_by_pext(packing, key, word);
#endif
	return pack_by_runs(packing, key, word);
}

typedef struct Extraction
{
	GpuSort *sort;
	GpuSortElement *elements;
	bool backwards;
} Extraction;

/*
 * A function that makes the elements of one chunk: element i is for row i, or
 * for the i-th row from the end.  A macro, because what is compiled for BMI2
 * inlines only what is compiled for it too.
 */
#define DEFINE_EXTRACT_ROWS(name, attributes, pack)                                             \
	static attributes void                                                                      \
	name(const Extraction *extraction, const GpuSortHostChunk *chunk)                           \
	{                                                                                           \
		const GpuSort *sort = extraction->sort;                                                 \
		const GpuSortPacking *packing = &sort->packing;                                         \
		const uint64_t *entry = chunk->entries;                                                 \
		const uint32_t inline_words = sort->inline_words;                                       \
		const uint32_t entry_words = sort->entry_words;                                         \
		const int step = extraction->backwards ? -1 : 1;                                        \
		GpuSortElement *to = extraction->elements +                                             \
			(extraction->backwards ? sort->rows - 1 - chunk->first : chunk->first);             \
		for (uint32_t i = 0; i < chunk->rows; i++)                                              \
		{                                                                                       \
			uint64_t ref = entry[inline_words];                                                 \
			to->key = pack(packing, inline_words > 0 ? entry : gpusort_host_key(sort, ref), 0); \
			to->ref = ref;                                                                      \
			to += step;                                                                         \
			entry += entry_words;                                                               \
		}                                                                                       \
	}

DEFINE_EXTRACT_ROWS(extract_rows_by_runs, , pack_by_runs)
#ifdef HAVE_PEXT
DEFINE_EXTRACT_ROWS(extract_rows_by_pext, __attribute__((target("bmi2"))), pack_by_pext)
#endif

static void
extract_chunk(void *arg, uint32_t task)
{
	const Extraction *extraction = arg;
	const GpuSortHostChunk *chunk = &extraction->sort->chunks[task];

	if (gpusort_host_cancelled(extraction->sort))
		return;
#ifdef HAVE_PEXT
	if (extraction->sort->packing.pext)
	{
		extract_rows_by_pext(extraction, chunk);
		return;
	}
#endif
	extract_rows_by_runs(extraction, chunk);
}

/*
 * Makes the elements of all rows, with the first word of the packed key, in the
 * order in which the rows came or in the opposite one.  Leaves out rows when
 * the sort is cancelled, which the caller looks for.
 */
void
gpusort_host_extract(GpuSort *sort, GpuSortElement *elements, bool backwards)
{
	Extraction extraction = {.sort = sort, .elements = elements, .backwards = backwards};

	gpusort_threads_run(sort->threads, sort->nchunks, extract_chunk, &extraction);
}
