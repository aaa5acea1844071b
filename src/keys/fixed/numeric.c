/*-------------------------------------------------------------------------
 *
 * numeric.c
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
 * a sort's values ask for them.
 *
 *-------------------------------------------------------------------------
 */
#include "keys/encoders.h"
#include "keys/fixed/numeric_digits.h"

#define DIGIT_BITS 14

#define LOW_BITS    64
#define HIGH_BITS   (GPUSORT_NUMERIC_BITS(GPUSORT_NUMERIC_DIGITS) - LOW_BITS)
#define CLASS_SHIFT (HIGH_BITS - 3)

/*
 * Encodes a detoasted (possibly short-headed) numeric, GPUSORT_NUMERIC_DIGITS digits of it.
 * Returns false if the value has more digits than these hold.
 */
bool
gpusort_numeric_encode(void *state, Datum value, GpuSortBits *bits)
{
	GpuSortNumericDigits read = gpusort_numeric_read((const struct varlena *) DatumGetPointer(value));
	uint64 first = 0; /* weight and the beginning of the digits */
	uint64 rest = 0;

	bits->low = 0;
	bits->high = (uint64) read.class << CLASS_SHIFT;
	if (read.class != GPUSORT_NUMERIC_NEGATIVE && read.class != GPUSORT_NUMERIC_POSITIVE)
		return true;

	/* 16 bits of weight and the first 7 of the 71 bits of digits go high, 64 low. */
	for (int i = 0; i < GPUSORT_NUMERIC_DIGITS; i++)
	{
		uint16 digit = i < read.count ? gpusort_numeric_digit(&read, i) : 0;

		if (i == 0)
		{
			first = (uint64) (read.weight + 32768) << 7 | digit >> 7;
			rest = digit & 0x7F;
		}
		else
			rest = (rest << DIGIT_BITS) | digit;
	}
	rest = (rest << 1) | (read.count > GPUSORT_NUMERIC_DIGITS);
	if (read.class == GPUSORT_NUMERIC_NEGATIVE)
	{
		rest = ~rest;
		first = ~first & ((UINT64CONST(1) << CLASS_SHIFT) - 1);
	}
	bits->low = rest;
	bits->high |= first;
	return read.count <= GPUSORT_NUMERIC_DIGITS;
}
