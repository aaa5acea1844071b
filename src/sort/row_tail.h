/*-------------------------------------------------------------------------
 *
 * row_tail.h
 *	  What a row has behind it where rows are verified.
 *
 * The writer appends it, the reader checks it and cuts it off.  The service takes
 * it for a part of the row: the row's length counts it.
 *
 *	  | row, padded to 8 | key | own | check |
 *
 *	  key	the words of the row's key, again: the service emits none
 *	  own	uint32, the row's length without padding and tail, and its flags as they
 *			were put, shifted by GPUSORT_TAIL_FLAGS_SHIFT
 *	  check	uint32, CRC-32C from behind the row's length and flags up to here,
 *			begun with a seed of the sort's own
 *
 * The length on top is not in the check because it follows from own, the flags
 * because the service changes them.  The number of a row that carries one (counted_rows.c)
 * is in it as it was put.  A CRC misses no error of up to 32 neighbouring
 * bits, and takes an instruction for each word where the processor has one for it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ROW_TAIL_H
#define GPUSORT_ROW_TAIL_H

#include "compat.h"

#include "port/pg_crc32c.h"
#include "service/protocol.h"

/* Rows in chunks are at most this long, so that a tail has room for their flags and length. */
#define GPUSORT_TAIL_FLAGS_SHIFT 24
#define GPUSORT_TAIL_LENGTH_MASK ((UINT32_C(1) << GPUSORT_TAIL_FLAGS_SHIFT) - 1)

/* The check covers these two bytes first, then all from the second offset on. */
#define GPUSORT_CHECKED_FIRST  (GPUSORT_ROW_FLAGS_OFFSET + 2)
#define GPUSORT_CHECKED_OFFSET sizeof(uint64)

/* What follows the words of the key. */
typedef struct GpuSortTailEnd
{
	uint32 own;
	uint32 check;
} GpuSortTailEnd;

/* Returns the bytes of a tail with a key of so many words, a multiple of 8. */
static inline uint32
gpusort_tail_bytes(uint32 key_words)
{
	return key_words * sizeof(uint64) + sizeof(GpuSortTailEnd);
}

#ifdef __x86_64__
/* Continues a CRC-32C with a word, by the instruction, which only SSE 4.2 has. */
static inline uint64
gpusort_crc_word(uint64 crc, const uint64 *word)
{
	__asm__("crc32q %1, %0"
			: "+r"(crc)
			: "m"(*word));
	return crc;
}
#endif

/* Returns the seed of a sort's checks, which differs between sorts, so that their rows cannot be confused. */
static inline uint32
gpusort_tail_seed(uint64 token)
{
	return (uint32) token ^ (uint32) (token >> 32);
}

/*
 * Returns the check of a row whose tail ends with end,
 * of the sort with that seed.  Between them lie whole words,
 * so that the instruction is used for it without the call that PostgreSQL's CRC is.
 */
static pg_attribute_always_inline uint32
gpusort_tail_check(const char *row, const GpuSortTailEnd *end, uint32 seed)
{
	pg_crc32c check;
	uint16 first;

	/* As the beginning of the CRC they cost nothing. */
	memcpy(&first, row + GPUSORT_CHECKED_FIRST, sizeof(first));
	INIT_CRC32C(check);
	check ^= first ^ seed;
#ifdef __x86_64__
	if (likely(__builtin_cpu_supports("sse4.2")))
	{
		const uint64 *word = (const uint64 *) (row + GPUSORT_CHECKED_OFFSET);
		uint64 words = check;

		if (((const char *) end - row) % (2 * sizeof(uint64)) == 0)
			words = gpusort_crc_word(words, word++);
		for (; word < (const uint64 *) end; word += 2)
			words = gpusort_crc_word(gpusort_crc_word(words, word), word + 1);
		check = words;
		__asm__("crc32l %1, %0"
				: "+r"(check)
				: "m"(end->own));
		FIN_CRC32C(check);
		return check;
	}
#endif
	COMP_CRC32C(check, row + GPUSORT_CHECKED_OFFSET, (const char *) &end->check - (row + GPUSORT_CHECKED_OFFSET));
	FIN_CRC32C(check);
	return check;
}

#endif /* GPUSORT_ROW_TAIL_H */
