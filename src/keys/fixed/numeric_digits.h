/*-------------------------------------------------------------------------
 *
 * numeric_digits.h
 *	  What a numeric is on disk; for src/keys alone.
 *
 * A sign, a weight and base-10000 digits without leading or trailing zero digits: the magnitude is ordered
 * by (weight, digits) with missing digits read as zero.  Trailing zeros after the point (1.0, 1.00) are
 * display only and not among the digits, and every NaN is equal.
 *
 * The layout is private to PostgreSQL's numeric.c, but fixed by what is on disk: header bits 0xC000 tell
 * long (positive, negative), short and special values apart.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_NUMERIC_DIGITS_H
#define GPUSORT_NUMERIC_DIGITS_H

#include "compat.h"

#define GPUSORT_NUMERIC_HEADER_KIND     0xC000
#define GPUSORT_NUMERIC_HEADER_LONG_POS 0x0000
#define GPUSORT_NUMERIC_HEADER_LONG_NEG 0x4000
#define GPUSORT_NUMERIC_HEADER_SHORT    0x8000
#define GPUSORT_NUMERIC_HEADER_SPECIAL  0xC000

#define GPUSORT_NUMERIC_SPECIAL_KIND 0xF000
#define GPUSORT_NUMERIC_SPECIAL_NAN  0xC000
#define GPUSORT_NUMERIC_SPECIAL_PINF 0xD000
#define GPUSORT_NUMERIC_SPECIAL_NINF 0xF000

#define GPUSORT_NUMERIC_SHORT_NEGATIVE    0x2000
#define GPUSORT_NUMERIC_SHORT_WEIGHT_SIGN 0x0040
#define GPUSORT_NUMERIC_SHORT_WEIGHT_MASK 0x003F

/* In their order */
typedef enum GpuSortNumericClass
{
	GPUSORT_NUMERIC_NINF,
	GPUSORT_NUMERIC_NEGATIVE,
	GPUSORT_NUMERIC_ZERO,
	GPUSORT_NUMERIC_POSITIVE,
	GPUSORT_NUMERIC_PINF,
	GPUSORT_NUMERIC_NAN,
} GpuSortNumericClass;

typedef struct GpuSortNumericDigits
{
	GpuSortNumericClass class;
	int weight;
	int count;
	const char *digits; /* count of them, two bytes each, not aligned */
} GpuSortNumericDigits;

/* Reads a detoasted, perhaps short-headed numeric; of others than positive and negative ones the class alone. */
static inline GpuSortNumericDigits
gpusort_numeric_read(const struct varlena *numeric)
{
	GpuSortNumericDigits read = {.digits = VARDATA_ANY(numeric)};
	int bytes = VARSIZE_ANY_EXHDR(numeric);
	bool negative;
	uint16 header;

	memcpy(&header, read.digits, sizeof(header));
	read.digits += sizeof(header);
	bytes -= sizeof(header);
	if ((header & GPUSORT_NUMERIC_HEADER_KIND) == GPUSORT_NUMERIC_HEADER_SPECIAL)
	{
		switch (header & GPUSORT_NUMERIC_SPECIAL_KIND)
		{
			case GPUSORT_NUMERIC_SPECIAL_NINF:
				read.class = GPUSORT_NUMERIC_NINF;
				break;
			case GPUSORT_NUMERIC_SPECIAL_PINF:
				read.class = GPUSORT_NUMERIC_PINF;
				break;
			default:
				read.class = GPUSORT_NUMERIC_NAN;
		}
		return read;
	}
	if ((header & GPUSORT_NUMERIC_HEADER_KIND) == GPUSORT_NUMERIC_HEADER_SHORT)
	{
		negative = (header & GPUSORT_NUMERIC_SHORT_NEGATIVE) != 0;
		read.weight = ((header & GPUSORT_NUMERIC_SHORT_WEIGHT_SIGN) ? ~GPUSORT_NUMERIC_SHORT_WEIGHT_MASK : 0) |
			(header & GPUSORT_NUMERIC_SHORT_WEIGHT_MASK);
	}
	else
	{
		int16 weight;

		negative = (header & GPUSORT_NUMERIC_HEADER_KIND) == GPUSORT_NUMERIC_HEADER_LONG_NEG;
		memcpy(&weight, read.digits, sizeof(weight));
		read.digits += sizeof(weight);
		bytes -= sizeof(weight);
		read.weight = weight;
	}
	read.count = bytes / (int) sizeof(uint16);
	read.class = read.count == 0 ? GPUSORT_NUMERIC_ZERO : negative ? GPUSORT_NUMERIC_NEGATIVE
																   : GPUSORT_NUMERIC_POSITIVE;
	return read;
}

/* Returns digit i. */
static inline uint16
gpusort_numeric_digit(const GpuSortNumericDigits *read, int i)
{
	uint16 digit;

	memcpy(&digit, read->digits + i * sizeof(digit), sizeof(digit));
	return digit;
}

#endif /* GPUSORT_NUMERIC_DIGITS_H */
