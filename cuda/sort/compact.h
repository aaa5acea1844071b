/*-------------------------------------------------------------------------
 *
 * compact.h
 *	  Key compaction: what is the same in every row cannot matter to the order, so
 *	  it is taken away and the rest is closed up, most significant first, into a
 *	  packed key of as few bits as possible.
 *
 * WHAT IS TAKEN AWAY
 *	A word is cut in two at a place k from 0 to 64, counted from its least bit:
 *
 *	  high part, word >> k		its minimum is subtracted, and as many bits are kept
 *								as its maximum then needs
 *	  low part, word mod 2^k	bits that never vary are dropped; a bit varies when
 *								the OR of it over all rows is not its AND
 *
 *	k = 64 only drops bits, k = 0 only subtracts.  The k that leaves the fewest bits
 *	is taken; the largest of several.  The high part's minimum and maximum follow
 *	from the word's, as x >> k never decreases while x grows.  Those of the low part
 *	do not, so it cannot lose its own minimum.
 *
 *	So a word that holds one column costs the bits of its range, and a word that
 *	starts with a column of small range loses that column's minimum and the constant
 *	bits of those after it: NULL bits, leading zeros, padding.
 *
 * WHY IT IS EXACT, for the rows that minimum, maximum, OR and AND were taken over
 *	1. Subtracting the minimum from the high part keeps order and equality, and the
 *	   result fits the bits kept: high(x) - high(min) <= high(max) - high(min).
 *	2. Two low parts that differ do so first, from the top, at a bit that varies, and
 *	   that bit is kept; bits that never vary differ nowhere.  So dropping them
 *	   keeps order and equality.
 *	3. Parts are compared like letters of a word, the most significant first: keys
 *	   compare as the first part does in which they differ.  By 1 and 2 the packed
 *	   parts differ first in the same part and compare alike there.  All rows have
 *	   the same number of bits in each packed part, so the parts side by side, read
 *	   as one number, compare as the parts do one by one.
 *
 * HOW
 *	With base = min >> k << k, word - base borrows nothing across k: its high part is
 *	high(word) - high(min), its low part that of the word.  So a word is packed by
 *	one subtraction and by closing up the bits of a mask, whatever k was.
 *
 *	Closing up is the compress function of Warren, Hacker's Delight (2nd ed.,
 *	section 7-4) on halves of 32 bits, the width of the device's arithmetic: five
 *	conditional moves by 1, 2, 4, 8, 16 places, whose masks depend on the bits kept
 *	alone and are computed once, on the host.  Bits move up, since the bits m of x
 *	that move up by s places then make it x + m (2^s - 1): one multiplication and
 *	addition, which the device does beside its logical operations, where moving down
 *	takes a shift and two more of these.  A half that keeps one run of bits is shifted
 *	instead, one that keeps none costs nothing.
 *
 *	Kernels that want the same window of all keys take a plan that keeps nothing else
 *	(gpusort_pack_window_plan), so what the window cuts off is dropped by the same
 *	masks and nothing about it is left to decide for each key.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_COMPACT_H
#define GPUSORT_COMPACT_H

#include <stdint.h>

#include "sort/key_stats.h"
#include "sort/portable.h"

#define GPUSORT_COMPRESS_STEPS 5

/* What to do with half a key word. */
typedef struct GpuSortPackHalf
{
	uint32_t kept;                          /* the bits that are kept */
	uint32_t moves[GPUSORT_COMPRESS_STEPS]; /* bits that move up by 2^step */
	uint32_t position;                      /* of its least bit in the packed key */
	uint16_t bits;                          /* how many are kept */
	uint16_t up;                            /* from the only run of kept bits to the top, or GPUSORT_PACK_RUNS */
} GpuSortPackHalf;

#define GPUSORT_PACK_RUNS 0xFFFF

/* What to do with one key word. */
typedef struct GpuSortPackWord
{
	uint64_t base;             /* to subtract */
	uint64_t kept;             /* the bits of the difference that are kept */
	GpuSortPackHalf halves[2]; /* of the difference, the low one first */
	uint32_t position;         /* of its least bit in the packed key */
	uint32_t bits;             /* how many are kept */
} GpuSortPackWord;

typedef struct GpuSortPackPlan
{
	uint32_t key_words;
	uint32_t packed_bits;
	GpuSortPackWord words[GPUSORT_DEVICE_SORT_MAX_KEY_WORDS];
} GpuSortPackPlan;

/* 2^bits - 1, for up to 64 bits. */
GPUSORT_HD static inline uint64_t
gpusort_ones(uint32_t bits)
{
	return bits < 64 ? (UINT64_C(1) << bits) - 1 : ~UINT64_C(0);
}

/* Chooses what is subtracted from a word and which bits are kept. */
static inline void
gpusort_pack_choose(GpuSortPackWord *word, uint64_t varying, uint64_t min, uint64_t max)
{
	word->base = 0;
	word->kept = varying;
	word->bits = (uint32_t) __builtin_popcountll(varying);
	for (uint32_t k = 64; k-- > 0;)
	{
		uint64_t range = (max >> k) - (min >> k);
		uint32_t range_bits = range > 0 ? 64 - (uint32_t) __builtin_clzll(range) : 0;
		uint64_t low = varying & gpusort_ones(k);
		uint32_t bits = range_bits + (uint32_t) __builtin_popcountll(low);

		if (bits < word->bits)
		{
			word->base = min >> k << k;
			word->kept = gpusort_ones(range_bits) << k | low;
			word->bits = bits;
		}
	}
}

/* How the bits kept of half a word close up to `position` in the packed key. */
static inline void
gpusort_pack_half(GpuSortPackHalf *half, uint32_t kept, uint32_t position)
{
	uint32_t left = kept;
	uint32_t dropped_above = ~kept >> 1;

	half->kept = kept;
	half->position = position;
	half->bits = (uint16_t) __builtin_popcount(kept);
	half->up = kept != 0 ? (uint16_t) __builtin_clz(kept) : 0;
	if (half->bits > 0 && (kept << half->up) >> (32 - half->bits) != gpusort_ones(half->bits))
		half->up = GPUSORT_PACK_RUNS;
	for (int step = 0; step < GPUSORT_COMPRESS_STEPS; step++)
	{
		/* parity of the dropped bits above each bit, by a running exclusive or */
		uint32_t parity = dropped_above;

		for (int shift = 1; shift < 32; shift *= 2)
			parity ^= parity >> shift;
		half->moves[step] = parity & left;
		left = (left ^ half->moves[step]) | (half->moves[step] << (1 << step));
		dropped_above &= ~parity;
	}
}

/* The plan for keys of key_words words; of no rows, a plan of no bits. */
static inline void
gpusort_pack_plan(GpuSortPackPlan *plan, uint32_t key_words, const GpuSortKeyStats *stats)
{
	uint32_t position = 0;

	plan->key_words = key_words;
	for (uint32_t w = key_words; w-- > 0;)
	{
		GpuSortPackWord *word = &plan->words[w];

		if (stats->key_min[w] > stats->key_max[w])
			gpusort_pack_choose(word, 0, 0, 0);
		else
			gpusort_pack_choose(word, stats->key_or[w] ^ stats->key_and[w], stats->key_min[w], stats->key_max[w]);
		gpusort_pack_half(&word->halves[0], (uint32_t) word->kept, position);
		gpusort_pack_half(&word->halves[1], (uint32_t) (word->kept >> 32), position + word->halves[0].bits);
		word->position = position;
		position += word->bits;
	}
	plan->packed_bits = position;
}

/* How many of `bits` bits that begin from_top bits below the packed key's top there are. */
GPUSORT_HD static inline uint32_t
gpusort_pack_window_bits(const GpuSortPackPlan *plan, uint32_t from_top, uint32_t bits)
{
	uint32_t left = from_top < plan->packed_bits ? plan->packed_bits - from_top : 0;

	return left < bits ? left : bits;
}

/* The kept bits of half a word that are bits low to low + bits - 1 of the packed key. */
static inline uint32_t
gpusort_pack_kept_between(const GpuSortPackHalf *half, uint32_t low, uint32_t bits)
{
	uint32_t between = 0;
	uint32_t position = half->position;

	for (uint32_t left = half->kept; left != 0; left &= left - 1, position++)
	{
		if (position >= low && position - low < bits)
			between |= left & (~left + 1);
	}
	return between;
}

/*
 * The plan whose packed keys are a window of another plan's: `bits` bits that begin
 * from_top bits below the top, or as many as there are.
 */
static inline void
gpusort_pack_window_plan(GpuSortPackPlan *window, const GpuSortPackPlan *plan, uint32_t from_top, uint32_t bits)
{
	const uint32_t there = gpusort_pack_window_bits(plan, from_top, bits);
	const uint32_t low = plan->packed_bits - from_top - there;
	uint32_t position = 0;

	*window = *plan;
	for (uint32_t w = plan->key_words; w-- > 0;)
	{
		GpuSortPackWord *word = &window->words[w];
		const uint32_t kept_low = gpusort_pack_kept_between(&plan->words[w].halves[0], low, there);
		const uint32_t kept_high = gpusort_pack_kept_between(&plan->words[w].halves[1], low, there);

		word->kept = (uint64_t) kept_high << 32 | kept_low;
		word->position = position;
		word->bits = (uint32_t) __builtin_popcountll(word->kept);
		gpusort_pack_half(&word->halves[0], kept_low, position);
		gpusort_pack_half(&word->halves[1], kept_high, position + word->halves[0].bits);
		position += word->bits;
	}
	window->packed_bits = position;
}

/* The bits kept of half a word (less its base), closed up at the top of 32. */
GPUSORT_HD static inline uint32_t
gpusort_compress(const GpuSortPackHalf *half, uint32_t value)
{
	value &= half->kept;
	if (half->up != GPUSORT_PACK_RUNS)
		return value << half->up;
	GPUSORT_UNROLL
	for (int step = 0; step < GPUSORT_COMPRESS_STEPS; step++)
		value += (value & half->moves[step]) * ((1u << (1 << step)) - 1);
	return value;
}

/*
 * `bits` bits, up to 64, of a key's packed key, that begin from_top bits below its
 * top; right-aligned.  A window that reaches past the end is that much shorter: it
 * has the gpusort_pack_window_bits that are left, right-aligned too, with nothing
 * in the place of those missing, and is 0 if there are none.  Never touches key
 * words that have no bit in the window.
 */
GPUSORT_HD static inline uint64_t
gpusort_pack_window64(const GpuSortPackPlan *plan, const uint64_t *key, uint32_t from_top, uint32_t bits)
{
	const uint32_t there = gpusort_pack_window_bits(plan, from_top, bits);
	const uint32_t low = plan->packed_bits - from_top - there;
	uint64_t packed = 0;

	for (uint32_t w = 0; w < plan->key_words; w++)
	{
		const GpuSortPackWord *word = &plan->words[w];
		uint64_t value;

		if (word->position >= low + there || word->bits == 0)
			continue;
		if (word->position + word->bits <= low)
			break;
		value = key[w] - word->base;
		GPUSORT_UNROLL
		for (int i = 0; i < 2; i++)
		{
			const GpuSortPackHalf *half = &word->halves[i];
			uint64_t closed;

			if (half->bits == 0 || half->position >= low + there || half->position + half->bits <= low)
				continue;
			closed = gpusort_compress(half, (uint32_t) (value >> 32 * i)) >> (32 - half->bits);
			packed |= half->position >= low ? closed << (half->position - low) : closed >> (low - half->position);
		}
	}
	return packed & gpusort_ones(there);
}

/* The same for up to 32 bits. */
GPUSORT_HD static inline uint32_t
gpusort_pack_window(const GpuSortPackPlan *plan, const uint64_t *key, uint32_t from_top, uint32_t bits)
{
	return (uint32_t) gpusort_pack_window64(plan, key, from_top, bits);
}

#ifdef __cplusplus

/*
 * Adds to packed keys what one word of ROWS keys has in them.  Packed is uint32_t or uint64_t,
 * and the plan keeps no more bits than that has.
 */
template <int ROWS, typename Packed>
GPUSORT_HD static inline void
gpusort_pack_word(const GpuSortPackWord *word, const uint64_t (&keys)[ROWS], Packed (&packed)[ROWS])
{
	uint64_t values[ROWS];

	/* a test of the plan costs less than subtracting 0 from every key */
	GPUSORT_UNROLL
	for (int r = 0; r < ROWS; r++)
		values[r] = keys[r];
	if (word->base != 0)
	{
		GPUSORT_UNROLL
		for (int r = 0; r < ROWS; r++)
			values[r] -= word->base;
	}
	GPUSORT_UNROLL
	for (int i = 0; i < 2; i++)
	{
		const GpuSortPackHalf half = word->halves[i];
		const uint32_t down = 8 * sizeof(Packed) - half.bits - half.position;

		if (half.bits == 0)
			continue;
		GPUSORT_UNROLL
		for (int r = 0; r < ROWS; r++)
			packed[r] |=
				(Packed) gpusort_compress(&half, (uint32_t) (values[r] >> 32 * i)) << (8 * sizeof(Packed) - 32) >> down;
	}
}

/*
 * The packed keys of ROWS keys at a time, of as many bits as Packed has at most.  What the plan says is fetched
 * and looked at once for all of them, which costs more than the packing.  Never touches
 * key words of which nothing is kept.
 */
template <int ROWS, typename Packed>
GPUSORT_HD static inline void
gpusort_pack_keys(const GpuSortPackPlan *plan, const uint64_t *const (&keys)[ROWS], Packed (&packed)[ROWS])
{
	GPUSORT_UNROLL
	for (int r = 0; r < ROWS; r++)
		packed[r] = 0;
	for (uint32_t w = 0; w < plan->key_words; w++)
	{
		const GpuSortPackWord *word = &plan->words[w];
		uint64_t values[ROWS];

		if (word->bits == 0)
			continue;
		GPUSORT_UNROLL
		for (int r = 0; r < ROWS; r++)
			values[r] = keys[r][w];
		gpusort_pack_word(word, values, packed);
	}
}

/* The packed key of one key, up to 32 bits. */
GPUSORT_HD static inline uint32_t
gpusort_pack_key(const GpuSortPackPlan *plan, const uint64_t *key)
{
	const uint64_t *const keys[1] = {key};
	uint32_t packed[1];

	gpusort_pack_keys(plan, keys, packed);
	return packed[0];
}

#endif /* __cplusplus */

#endif /* GPUSORT_COMPACT_H */
