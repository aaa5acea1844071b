/*-------------------------------------------------------------------------
 *
 * bit_writer.h
 *	  Values as bits, and keys written bit by bit; for this folder alone.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_BIT_WRITER_H
#define GPUSORT_BIT_WRITER_H

#include "compat.h"

#include "port/pg_bswap.h"

/*
 * A key being written, bit by bit, the most significant first.  It stays in
 * registers as long as every function that takes one is inlined.
 */
typedef struct GpuSortBitWriter
{
	uint64 *next; /* where the current word will be stored */
	uint64 word;  /* the current word: its bits so far, at the top; zeros below */
	int room;     /* bits left in the current word, 1 to 64 */
} GpuSortBitWriter;

/*
 * What an encoder (types.h) makes of a value: a number of the type's bits, unsigned.
 * Words that a type does not have are not looked at, nor bits above its own.
 */
typedef struct GpuSortBits
{
	uint64 top;  /* bits above 128 */
	uint64 high; /* bits 64 to 127 */
	uint64 low;
} GpuSortBits;

/* The lowest nbits (1 to 64) bits set. */
static inline uint64
gpusort_low_mask(int nbits)
{
	return ~UINT64CONST(0) >> (64 - nbits);
}

/* Adds nbits (1 to 64) bits; value has no others. */
static pg_attribute_always_inline void
gpusort_put_bits(GpuSortBitWriter *key, int nbits, uint64 value)
{
	if (nbits < key->room)
	{
		key->room -= nbits;
		key->word |= value << key->room;
	}
	else
	{
		int rest = nbits - key->room; /* 0 to 63 */

		*key->next++ = key->word | value >> rest;
		key->word = value << 1 << (63 - rest);
		key->room = 64 - rest;
	}
}

/* Adds nbits (1 at least) zeros. */
static pg_attribute_always_inline void
gpusort_put_zeros(GpuSortBitWriter *key, uint32 nbits)
{
	for (; nbits > 64; nbits -= 64)
		gpusort_put_bits(key, 64, 0);
	gpusort_put_bits(key, nbits, 0);
}

/* Fills the rest of a key with zeros, up to end. */
static pg_attribute_always_inline void
gpusort_finish_key(GpuSortBitWriter *key, uint64 *end)
{
	while (key->next < end)
	{
		*key->next++ = key->word;
		key->word = 0;
	}
}

/* The first 8 of left bytes as a big-endian number, zero-padded behind the string's end. */
static inline uint64
gpusort_load_bytes(const char *data, int left)
{
	uint64 value = 0;

	if (likely(left >= 8))
	{
		memcpy(&value, data, 8);
		return pg_ntoh64(value);
	}
	if (left >= 4)
	{
		uint32 first;
		uint32 last;

		memcpy(&first, data, 4);
		memcpy(&last, data + left - 4, 4);
		return (uint64) pg_ntoh32(first) << 32 | (uint64) pg_ntoh32(last) << (64 - 8 * left);
	}
	for (int i = 0; i < left; i++)
		value |= (uint64) (unsigned char) data[i] << (56 - 8 * i);
	return value;
}

#endif /* GPUSORT_BIT_WRITER_H */
