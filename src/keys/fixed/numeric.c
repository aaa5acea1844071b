/*-------------------------------------------------------------------------
 *
 * numeric.c
 *	  Numeric values as bits that order like them.
 *
 * A numeric on disk is a sign, a weight and base-10000 digits without leading
 * or trailing zero digits, so its magnitude is ordered by (weight, digits) with
 * missing digits read as zero.  The encoding has GPUSORT_NUMERIC_BITS bits:
 *
 *	  3		class: -Infinity 0, negative 1, zero 2, positive 3, Infinity 4, NaN 5
 *	 16		weight + 32768
 *	 70		the first five digits, 14 bits each: 17 to 20 decimal digits
 *	  1		there are more digits
 *
 * with the last 87 inverted for negative values.  Two values with more digits
 * and the same bits tie; any other two are told apart, since a value without
 * more digits is nearer to zero than one that goes on.  Trailing zeros after
 * the point (1.0, 1.00) are display only and not among the digits, and every
 * NaN is equal: so equal bits without the last one mean equal values.
 *
 * The layout of the digits is private to PostgreSQL's numeric.c, but fixed by
 * what is on disk: header bits 0xC000 tell long (positive, negative), short and
 * special values apart.
 *
 *-------------------------------------------------------------------------
 */
#include "keys/encoders.h"

#define ENCODED_DIGITS 5
#define DIGIT_BITS     14

#define HEADER_KIND     0xC000
#define HEADER_LONG_POS 0x0000
#define HEADER_LONG_NEG 0x4000
#define HEADER_SHORT    0x8000
#define HEADER_SPECIAL  0xC000

#define SPECIAL_KIND 0xF000
#define SPECIAL_NAN  0xC000
#define SPECIAL_PINF 0xD000
#define SPECIAL_NINF 0xF000

#define SHORT_NEGATIVE    0x2000
#define SHORT_WEIGHT_SIGN 0x0040
#define SHORT_WEIGHT_MASK 0x003F

enum
{
	CLASS_NINF,
	CLASS_NEGATIVE,
	CLASS_ZERO,
	CLASS_POSITIVE,
	CLASS_PINF,
	CLASS_NAN,
};

#define LOW_BITS    64
#define HIGH_BITS   (GPUSORT_NUMERIC_BITS - LOW_BITS)
#define CLASS_SHIFT (HIGH_BITS - 3)

/*
 * Encodes a detoasted (possibly short-headed) numeric in GPUSORT_NUMERIC_BITS bits.
 * Returns false if the value has more digits than these hold.
 */
bool
gpusort_numeric_encode(void *state, Datum value, GpuSortBits *bits)
{
	const struct varlena *numeric = (const struct varlena *) DatumGetPointer(value);
	const char *data = VARDATA_ANY(numeric);
	int bytes = VARSIZE_ANY_EXHDR(numeric);
	uint16 header;
	uint16 digit;
	int weight;
	int ndigits;
	bool negative;
	uint64 first; /* weight and the beginning of the digits */
	uint64 rest;

	memcpy(&header, data, sizeof(header));
	data += sizeof(header);
	bytes -= sizeof(header);
	bits->low = 0;

	if ((header & HEADER_KIND) == HEADER_SPECIAL)
	{
		int special = header & SPECIAL_KIND;

		bits->high = (uint64) (special == SPECIAL_NINF ? CLASS_NINF : special == SPECIAL_PINF ? CLASS_PINF
																							  : CLASS_NAN)
			<< CLASS_SHIFT;
		return true;
	}
	if ((header & HEADER_KIND) == HEADER_SHORT)
	{
		negative = (header & SHORT_NEGATIVE) != 0;
		weight = ((header & SHORT_WEIGHT_SIGN) ? ~SHORT_WEIGHT_MASK : 0) | (header & SHORT_WEIGHT_MASK);
	}
	else
	{
		int16 long_weight;

		negative = (header & HEADER_KIND) == HEADER_LONG_NEG;
		memcpy(&long_weight, data, sizeof(long_weight));
		data += sizeof(long_weight);
		bytes -= sizeof(long_weight);
		weight = long_weight;
	}
	ndigits = bytes / (int) sizeof(digit);
	if (ndigits == 0)
	{
		bits->high = (uint64) CLASS_ZERO << CLASS_SHIFT;
		return true;
	}

	/* 16 bits of weight and the first 7 of the 71 bits of digits go high, 64 low. */
	first = 0;
	rest = 0;
	for (int i = 0; i < ENCODED_DIGITS; i++)
	{
		digit = 0;
		if (i < ndigits)
			memcpy(&digit, data + i * sizeof(digit), sizeof(digit));
		if (i == 0)
		{
			first = digit >> 7;
			rest = digit & 0x7F;
		}
		else
			rest = (rest << DIGIT_BITS) | digit;
	}
	bits->low = (rest << 1) | (ndigits > ENCODED_DIGITS);
	bits->high = ((uint64) (weight + 32768) << 7) | first;
	if (negative)
	{
		bits->low = ~bits->low;
		bits->high = ~bits->high & ((UINT64CONST(1) << CLASS_SHIFT) - 1);
	}
	bits->high |= (uint64) (negative ? CLASS_NEGATIVE : CLASS_POSITIVE) << CLASS_SHIFT;
	return ndigits <= ENCODED_DIGITS;
}
