/*-------------------------------------------------------------------------
 *
 * numeric.h
 *	  Numeric values as bits that order like them.
 *
 * A numeric's magnitude is ordered by (weight, digits), as numeric_digits.h has them.  The encoding has
 * GPUSORT_NUMERIC_BITS(n) bits for n digits in the key:
 *
 *	  3		class: -Infinity 0, negative 1, zero 2, positive 3, Infinity 4, NaN 5
 *	 16		weight + 32768
 *	14n		the first n digits, 14 bits each, which are 4n - 3 to 4n decimal ones
 *	  1		there are more digits
 *
 * with all but the class inverted for negative values.  Two values with more digits
 * and the same bits tie; any other two are told apart, since a value without
 * more digits is nearer to zero than one that goes on.  Equal bits without the last one mean equal values.
 *
 * What is here makes those of GPUSORT_NUMERIC_DIGITS digits, encode.c those of more, where
 * a sort's values ask for them.  Signs are often random: nothing branches by them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_NUMERIC_H
#define GPUSORT_NUMERIC_H

#include "keys/bit_writer.h"
#include "keys/fixed/numeric_digits.h"
#include "keys/types.h"

/*
 * Encodes a detoasted (possibly short-headed) numeric, GPUSORT_NUMERIC_DIGITS digits of it.
 * Returns false if the value has more digits than these hold.
 */
static pg_attribute_always_inline bool
gpusort_numeric_encode(void *state, Datum value, GpuSortBits *bits)
{
	const int class_shift = GPUSORT_NUMERIC_BITS(GPUSORT_NUMERIC_DIGITS) - 64 - 3;
	const GpuSortNumericDigits read = gpusort_numeric_read((const struct varlena *) DatumGetPointer(value));
	const uint64 flip = read.class == GPUSORT_NUMERIC_NEGATIVE ? PG_UINT64_MAX : 0;
	uint64 four = 0; /* digits, 56 bits */
	uint64 fifth = 0;

	if (unlikely(read.class != GPUSORT_NUMERIC_NEGATIVE && read.class != GPUSORT_NUMERIC_POSITIVE))
	{
		bits->high = (uint64) read.class << class_shift;
		bits->low = 0;
		return true;
	}
	StaticAssertStmt(GPUSORT_NUMERIC_DIGITS == 5, "there are five digits");
	if (read.count >= GPUSORT_NUMERIC_DIGITS)
	{
		four = (uint64) gpusort_numeric_digit(&read, 0) << 42 | (uint64) gpusort_numeric_digit(&read, 1) << 28 |
			(uint64) gpusort_numeric_digit(&read, 2) << 14 | gpusort_numeric_digit(&read, 3);
		fifth = gpusort_numeric_digit(&read, 4);
	}
	else
	{
		for (int i = 0; i < read.count; i++)
			four = four << 14 | gpusort_numeric_digit(&read, i);
		four <<= 14 * (GPUSORT_NUMERIC_DIGITS - 1 - read.count);
	}

	/* 16 bits of weight and the first 7 of the 71 bits of digits go high, 64 low. */
	bits->high = (uint64) read.class << class_shift |
		((((uint64) (read.weight + 32768) << 7 | four >> 49) ^ flip) & gpusort_low_mask(class_shift));
	bits->low = (four << 15 | fifth << 1 | (read.count > GPUSORT_NUMERIC_DIGITS)) ^ flip;
	return read.count <= GPUSORT_NUMERIC_DIGITS;
}

#endif /* GPUSORT_NUMERIC_H */
