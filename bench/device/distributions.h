/*-------------------------------------------------------------------------
 *
 * distributions.h
 *	  The distributions of keys that the papers measure, for the benchmark and
 *	  for tests: the key of row i of n, computed from i alone, on the device or
 *	  on the host.
 *
 * Keys are unsigned numbers of `bits` bits, R = 2^bits.  Definitions:
 *
 *	uniform			every key equally likely
 *	gaussian		the average of four uniform keys (Cederman and Tsigas 2008, after
 *					Helman, Bader, JaJa 1998, as are bucket and staggered)
 *	bucket			p blocks of rows; in each, the j-th of p parts has keys between
 *					j R/p and (j + 1) R/p
 *	staggered		p blocks of rows; block i of the first half has keys of bucket 2i + 1,
 *					block i of the second half those of bucket 2(i - p/2)
 *	sorted			row i has a key between i R/n and (i + 1) R/n
 *	nearly			sorted, and to each key the size of a normal number of mean 0 and
 *					deviation 2 R/n added (RMG sort's "nearly-sorted")
 *	reverse			sorted, backward
 *	zero			all keys 0
 *	zipf			key k from 1 to R - 1 with a probability proportional to k^-z (RMG sort)
 *	few				1000 keys between 0 and R - 1, every one equally likely; not part of a
 *					sweep unless it is asked for
 *
 * with p = 128.  Where n < p^2, bucket's parts are a row or none; that is still a
 * distribution, but not one of note.
 *
 * Zipf numbers come from rejection inversion (Hörmann and Derflinger, 1996): exact
 * and without a table.  Host and device may differ in the last bit of a pow() or
 * exp(), and so in a key; all others are the same on both.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DISTRIBUTIONS_H
#define GPUSORT_DISTRIBUTIONS_H

#include <math.h>
#include <stdint.h>

#include "sort/portable.h"

typedef enum GpuSortDistribution
{
	GPUSORT_UNIFORM,
	GPUSORT_GAUSSIAN,
	GPUSORT_BUCKET,
	GPUSORT_STAGGERED,
	GPUSORT_SORTED,
	GPUSORT_NEARLY,
	GPUSORT_REVERSE,
	GPUSORT_ZERO,
	GPUSORT_ZIPF_HALF, /* z = 0.5 */
	GPUSORT_ZIPF_ONE,
	GPUSORT_ZIPF_TWO,
	GPUSORT_FEW,
	GPUSORT_DISTRIBUTIONS
} GpuSortDistribution;

/* Those that are swept unless others are asked for; bits. */
#define GPUSORT_SWEPT_DISTRIBUTIONS ((1u << GPUSORT_FEW) - 1)

#define GPUSORT_DISTRIBUTION_BLOCKS 128 /* p */
#define GPUSORT_FEW_KEYS            1000

static inline const char *
gpusort_distribution_name(int distribution)
{
	static const char *const names[GPUSORT_DISTRIBUTIONS] = {
		"uniform", "gaussian", "bucket", "staggered", "sorted", "nearly", "reverse", "zero",
		"zipf0.5", "zipf1", "zipf2", "few"};

	return names[distribution];
}

/* Random number `draw` of row `row`: SplitMix64's mixing of a counter. */
GPUSORT_HD static inline uint64_t
gpusort_row_random(uint64_t seed, uint64_t row, uint32_t draw)
{
	uint64_t z = seed + UINT64_C(0x9E3779B97F4A7C15) * (row + 1) + UINT64_C(0xD1B54A32D192ED03) * draw;

	z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
	return z ^ z >> 31;
}

/* 0 < result < 1 */
GPUSORT_HD static inline double
gpusort_row_real(uint64_t seed, uint64_t row, uint32_t draw)
{
	return ((double) (gpusort_row_random(seed, row, draw) >> 12) + 0.5) * 0x1p-52;
}

/* part * R / parts, where R = 2^64 */
GPUSORT_HD static inline uint64_t
gpusort_share(uint64_t part, uint64_t parts)
{
	uint64_t step = ~UINT64_C(0) / parts;
	uint64_t rest = ~UINT64_C(0) % parts + 1; /* step * parts + rest == R */

	/* rows number at most 2^32: this does not overflow */
	return step * part + rest * part / parts;
}

/* The integral of x^-z, up to a constant, and its inverse. */
GPUSORT_HD static inline double
gpusort_zipf_integral(double x, double z)
{
	return z == 1 ? log(x) : pow(x, 1 - z) / (1 - z);
}

GPUSORT_HD static inline double
gpusort_zipf_inverse(double y, double z)
{
	return z == 1 ? exp(y) : pow(y * (1 - z), 1 / (1 - z));
}

/* A number from 1 to `most` with a probability proportional to its -z-th power, z > 0. */
GPUSORT_HD static inline uint64_t
gpusort_row_zipf(uint64_t seed, uint64_t row, double z, double most)
{
	double first = gpusort_zipf_integral(1.5, z) - 1;
	double last = gpusort_zipf_integral(most + 0.5, z);

	for (uint32_t draw = 0;; draw++)
	{
		double y = last + gpusort_row_real(seed, row, draw) * (first - last);
		double k = floor(gpusort_zipf_inverse(y, z) + 0.5);

		k = k < 1 ? 1 : k > most ? most
								 : k;
		if (y >= gpusort_zipf_integral(k + 0.5, z) - pow(k, -z))
			return k >= 0x1p64 ? ~UINT64_C(0) : (uint64_t) k;
	}
}

/* The key of row `row` of `rows`, in the high `bits` (32 or 64) of the result; the rest is 0 or noise. */
GPUSORT_HD static inline uint64_t
gpusort_distribution_scaled(int distribution, int bits, uint64_t row, uint64_t rows, uint64_t seed)
{
	const uint64_t blocks = GPUSORT_DISTRIBUTION_BLOCKS;
	const uint64_t bucket = ~UINT64_C(0) / blocks + 1;
	uint64_t block_rows = (rows + blocks - 1) / blocks;
	uint64_t low;
	uint64_t gap;
	double noise;

	switch (distribution)
	{
		case GPUSORT_UNIFORM:
			return gpusort_row_random(seed, row, 0);
		case GPUSORT_GAUSSIAN:
			return (gpusort_row_random(seed, row, 0) >> 2) + (gpusort_row_random(seed, row, 1) >> 2) +
				(gpusort_row_random(seed, row, 2) >> 2) + (gpusort_row_random(seed, row, 3) >> 2);
		case GPUSORT_BUCKET:
			return row % block_rows * blocks / block_rows * bucket + gpusort_row_random(seed, row, 0) % bucket;
		case GPUSORT_STAGGERED:
			low = row / block_rows;
			low = low < blocks / 2 ? 2 * low + 1 : 2 * (low - blocks / 2);
			return low * bucket + gpusort_row_random(seed, row, 0) % bucket;
		case GPUSORT_REVERSE:
		case GPUSORT_SORTED:
		case GPUSORT_NEARLY:
			if (distribution == GPUSORT_REVERSE)
				row = rows - 1 - row;
			low = gpusort_share(row, rows);
			gap = ~UINT64_C(0) / rows;
			low += gpusort_row_random(seed, row, 0) % (gap + (gap == 0));
			if (distribution != GPUSORT_NEARLY)
				return low;
			/* Box and Muller */
			noise = fabs(sqrt(-2 * log(gpusort_row_real(seed, row, 1))) *
						 cos(6.283185307179586 * gpusort_row_real(seed, row, 2))) *
				2 * (double) gap;
			if (noise >= (double) (~UINT64_C(0) - low))
				return ~UINT64_C(0);
			return low + (uint64_t) noise;
		case GPUSORT_ZIPF_HALF:
		case GPUSORT_ZIPF_ONE:
		case GPUSORT_ZIPF_TWO:
			noise = distribution == GPUSORT_ZIPF_HALF ? 0.5 : distribution == GPUSORT_ZIPF_ONE ? 1
																							   : 2;
			return gpusort_row_zipf(seed, row, noise, bits == 32 ? 4294967295.0 : 18446744073709551615.0)
				<< (64 - bits);
		case GPUSORT_FEW:
			return gpusort_row_random(seed, gpusort_row_random(seed, row, 0) % GPUSORT_FEW_KEYS, 1);
		default:
			return 0;
	}
}

GPUSORT_HD static inline uint64_t
gpusort_distribution_key64(int distribution, uint64_t row, uint64_t rows, uint64_t seed)
{
	return gpusort_distribution_scaled(distribution, 64, row, rows, seed);
}

GPUSORT_HD static inline uint32_t
gpusort_distribution_key32(int distribution, uint64_t row, uint64_t rows, uint64_t seed)
{
	return (uint32_t) (gpusort_distribution_scaled(distribution, 32, row, rows, seed) >> 32);
}

#endif /* GPUSORT_DISTRIBUTIONS_H */
