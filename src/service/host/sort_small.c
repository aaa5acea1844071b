/*-------------------------------------------------------------------------
 *
 * sort_small.c
 *	  Radix sort of elements by their 64-bit keys, on one thread within its cache.
 *
 * Histogram, scatter, and insertion sort for bins of a few elements, or the same again
 * for larger ones.  As in sort.c the digit starts at the highest bit that varies, what
 * is in order already is left as it is, and every step is stable.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "service/host/sort.h"

/* Up to this many elements are sorted by insertion. */
#define INSERTION_MAX 24

/* Digits are no wider than this: counters must stay in the first-level cache. */
#define SMALL_DIGIT_BITS 11

/*
 * Sorts n elements of "from" into "to", which may be the same array.
 */
static inline void
sort_by_insertion(const GpuSortElement *from, GpuSortElement *to, size_t n)
{
	for (size_t i = 0; i < n; i++)
	{
		GpuSortElement element = from[i];
		size_t j = i;

		while (j > 0 && to[j - 1].key > element.key)
		{
			to[j] = to[j - 1];
			j--;
		}
		to[j] = element;
	}
}

/*
 * Sorts n elements on this thread, which are in "in".  The result goes to "out" if swap is
 * set, else back to "in"; the other one has anything in it then.
 */
void
gpusort_host_sort_small(GpuSortElement *in, GpuSortElement *out, size_t n, bool swap)
{
	uint32_t offsets[(1 << SMALL_DIGIT_BITS) + 1];
	uint64_t any = 0;
	uint64_t all = ~UINT64_C(0);
	uint64_t previous = 0;
	bool disorder = false;
	uint32_t varying;
	uint32_t bits;
	uint32_t shift;
	uint32_t bins;
	uint32_t mask;
	uint32_t largest = 0;
	uint32_t start = 0;

	if (n <= INSERTION_MAX)
	{
		sort_by_insertion(in, swap ? out : in, n);
		return;
	}

	for (size_t i = 0; i < n; i++)
	{
		uint64_t key = in[i].key;

		any |= key;
		all &= key;
		disorder |= key < previous;
		previous = key;
	}
	if (!disorder)
	{
		if (swap)
			memcpy(out, in, n * sizeof(GpuSortElement));
		return;
	}

	/* Something varies, or there would be no disorder. */
	varying = 64 - __builtin_clzll(any ^ all);
	bits = 63 - __builtin_clzll(n);
	if (bits > SMALL_DIGIT_BITS)
		bits = SMALL_DIGIT_BITS;
	if (bits > varying)
		bits = varying;
	shift = varying - bits;
	bins = 1 << bits;
	mask = bins - 1;

	/* offsets[d + 1]: how many elements have digit d, then where its bin begins, then where that ends. */
	memset(offsets, 0, (bins + 1) * sizeof(uint32_t));
	for (size_t i = 0; i < n; i++)
		offsets[(in[i].key >> shift & mask) + 1]++;
	for (uint32_t d = 1; d <= bins; d++)
	{
		uint32_t count = offsets[d];

		if (count > largest)
			largest = count;
		offsets[d] = start;
		start += count;
	}
	for (size_t i = 0; i < n; i++)
		out[offsets[(in[i].key >> shift & mask) + 1]++] = in[i];

	if (shift == 0)
	{
		if (!swap)
			memcpy(in, out, n * sizeof(GpuSortElement));
	}
	else if (largest <= INSERTION_MAX)
	{
		/* Elements are in their bin already, so none moves far. */
		sort_by_insertion(out, swap ? out : in, n);
	}
	else
	{
		for (uint32_t d = 0; d < bins; d++)
		{
			uint32_t from = offsets[d];
			uint32_t count = offsets[d + 1] - from;

			if (count == 1)
			{
				if (!swap)
					in[from] = out[from];
			}
			else if (count > 0)
				gpusort_host_sort_small(out + from, in + from, count, !swap);
		}
	}
}
