/*-------------------------------------------------------------------------
 *
 * compact.h
 *	  Key compaction: bits that are the same in every row cannot matter to the
 *	  order, so they are dropped and the rest is closed up, most significant
 *	  first, into a packed key of as few bits as possible.
 *
 * A bit varies when the OR of it over all rows is not its AND.  Dropping
 * constant bits keeps both order and equality.
 *
 * Extraction is the compress function of Warren, Hacker's Delight (2nd ed.,
 * section 7-4): six conditional moves by 1, 2, 4, ... 32 places, whose masks
 * depend on the bits kept alone and are computed once, on the host.
 *
 * A packed key of more than 64 bits is several packed words; word 0 is the least
 * significant, and all but the most significant one are full.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_COMPACT_H
#define GPUSORT_COMPACT_H

#include <stdint.h>

#include "../src/service/protocol.h"
#include "portable.h"

#define GPUSORT_COMPRESS_STEPS	6

/* What to do with one key word. */
typedef struct GpuSortPackWord
{
	uint64_t	kept;			/* the bits that vary */
	uint64_t	moves[GPUSORT_COMPRESS_STEPS];	/* bits that move right by 2^step */
	uint32_t	position;		/* of its least bit in the packed key */
	uint32_t	bits;			/* how many are kept */
} GpuSortPackWord;

typedef struct GpuSortPackPlan
{
	uint32_t	key_words;
	uint32_t	packed_bits;
	GpuSortPackWord words[GPUSORT_MAX_KEY_WORDS];
} GpuSortPackPlan;

/* The plan for keys of key_words words with these ORs and ANDs over all rows. */
static inline void
gpusort_pack_plan(GpuSortPackPlan *plan, uint32_t key_words, const uint64_t *key_or, const uint64_t *key_and)
{
	uint32_t	position = 0;

	plan->key_words = key_words;
	for (uint32_t w = key_words; w-- > 0;)
	{
		GpuSortPackWord *word = &plan->words[w];
		uint64_t	kept = key_or[w] ^ key_and[w];
		uint64_t	left = kept;
		uint64_t	dropped_below = ~kept << 1;

		word->kept = kept;
		for (int step = 0; step < GPUSORT_COMPRESS_STEPS; step++)
		{
			/* parity of the dropped bits below each bit, by a running exclusive or */
			uint64_t	parity = dropped_below;

			for (int shift = 1; shift < 64; shift *= 2)
				parity ^= parity << shift;
			word->moves[step] = parity & left;
			left = (left ^ word->moves[step]) | (word->moves[step] >> (1 << step));
			dropped_below &= ~parity;
		}
		word->position = position;
		word->bits = (uint32_t) __builtin_popcountll(kept);
		position += word->bits;
	}
	plan->packed_bits = position;
}

/* The kept bits of a key word, closed up to the right. */
GPUSORT_HD static inline uint64_t
gpusort_compress(const GpuSortPackWord *word, uint64_t key)
{
	key &= word->kept;
	for (int step = 0; step < GPUSORT_COMPRESS_STEPS; step++)
	{
		uint64_t	moved = key & word->moves[step];

		key = (key ^ moved) | (moved >> (1 << step));
	}
	return key;
}

/* Packed word number `index` of a key. */
GPUSORT_HD static inline uint64_t
gpusort_pack_key(const GpuSortPackPlan *plan, const uint64_t *key, uint32_t index)
{
	uint64_t	packed = 0;
	uint32_t	low = 64 * index;

	for (uint32_t w = 0; w < plan->key_words; w++)
	{
		const GpuSortPackWord *word = &plan->words[w];

		/* skip words that have no bit in this packed word, and never touch their key */
		if (word->bits == 0 || word->position >= low + 64 || word->position + word->bits <= low)
			continue;
		if (word->position >= low)
			packed |= gpusort_compress(word, key[w]) << (word->position - low);
		else
			packed |= gpusort_compress(word, key[w]) >> (low - word->position);
	}
	return packed;
}

/* How many packed words there are, and how many bits the most significant has. */
GPUSORT_HD static inline uint32_t
gpusort_packed_words(const GpuSortPackPlan *plan)
{
	return (plan->packed_bits + 63) / 64;
}

GPUSORT_HD static inline int
gpusort_packed_word_bits(const GpuSortPackPlan *plan, uint32_t index)
{
	uint32_t	left = plan->packed_bits - 64 * index;

	return left < 64 ? (int) left : 64;
}

#endif							/* GPUSORT_COMPACT_H */
