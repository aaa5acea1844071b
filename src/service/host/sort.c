/*-------------------------------------------------------------------------
 *
 * sort.c
 *	  Radix sort of elements by their 64-bit keys, by all threads.
 *
 * A range of elements is sorted from the most significant digit down,
 * out of place, back and forth between two arrays.
 * The digit starts at the highest bit that varies within the range,
 * so bits that a bin has in common cost nothing, however skewed
 * the keys are; a range that is in order already is left as it is.
 *
 *	parallel	All threads partition the range together: each takes a part of
 *				it, makes its histogram, and after an exclusive scan over bins
 *				and parts scatters its part.  Elements gather in a line of cache
 *				per bin first, and only full lines are written, past the cache
 *				(software write combining, as in Satish et al., SIGMOD 2010).
 *				Bins that are still large are partitioned in the same way one
 *				after another, the others are tasks for the threads.  If a
 *				sample says that some bins would be much larger than others,
 *				as with text, the digit is wider, and each bin has so many
 *				neighbouring values that bins are about as large.
 *	small		One thread, within its cache (sort_small.c).
 *
 * Rejected: least significant digit first over the whole array (a pass over
 * memory per digit, and all bits must be sorted: three times slower for random
 * 64-bit keys), and comparison sorts.
 *
 * Every step is stable.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#if defined(__SSE2__) && !defined(GPUSORT_PORTABLE)
#define HAVE_STREAM 1
#include <emmintrin.h>
#endif

#include "service/errors.h"
#include "service/host/sort.h"

/* One thread sorts up to this many; more are partitioned by all threads. */
#define SMALL_MAX ((size_t) 1 << 17)

/* Digits are no wider than this: counters must stay in the first-level cache. */
#define PARALLEL_DIGIT_BITS 10

/* A partition aims at bins of two to the power of this many elements. */
#define BIN_BITS 12

/* Digits whose values are grouped to bins have this many bits: what bin each value is in has to stay in the cache. */
#define GROUPED_DIGIT_BITS 14

/* Values are grouped if the largest bin would have so many times the elements of an average one. */
#define GROUPED_SKEW 4

/* Keys that are looked at to know that. */
#define SAMPLE_KEYS 16384

/* Elements in a cache line. */
#define LINE 4

/* A range being partitioned by all threads. */
typedef struct Partition
{
	const GpuSort *sort;
	GpuSortElement *in;
	GpuSortElement *out;
	size_t n;
	bool swap; /* the result belongs into out */

	/* parts, one task each */
	uint32_t parts;
	uint64_t *any; /* per part */
	uint64_t *all;
	bool *disorder;

	/* a few keys of each part, in out before anything else is */
	uint64_t *sample;
	uint32_t sample_keys; /* of each */

	/* the digit */
	uint32_t shift;
	uint32_t mask;
	uint32_t bins;
	uint16_t *groups; /* the bin of each of its values; NULL: that of the same number */
	uint32_t skew;    /* elements from the cache line that out starts in to out */
	/* per part and bin: the histogram, then where to write, from that cache line on */
	uint64_t *part_offsets;
	uint64_t bin_offsets[(1 << PARALLEL_DIGIT_BITS) + 1]; /* and the end */
} Partition;

/*
 * Parts of n elements: short enough for a cancel to be seen soon, and long enough for
 * the lines that are not full at their ends not to count.
 */
static uint32_t
count_parts(const GpuSort *sort, size_t n)
{
	uint32_t parts = gpusort_threads_count(sort->threads);

	while (n / parts > (size_t) 1 << 20)
		parts *= 2;
	return parts;
}

/* Bytes of any, all and disorder of so many parts. */
static size_t
summary_bytes(uint32_t parts)
{
	return GPUSORT_ALIGN8(parts * (2 * sizeof(uint64_t) + sizeof(bool)));
}

/* Bytes of part_offsets of so many parts. */
static size_t
offsets_bytes(uint32_t parts)
{
	return parts * sizeof(uint64_t) * (1 << PARALLEL_DIGIT_BITS);
}

/* Bytes of work space for the histograms of any range of a sort of so many rows. */
size_t
gpusort_host_histogram_bytes(const GpuSort *sort, uint64_t rows)
{
	uint32_t parts = count_parts(sort, rows);

	if (rows <= SMALL_MAX)
		return 0;
	return summary_bytes(parts) + offsets_bytes(parts) + sizeof(uint16_t) * (1 << GROUPED_DIGIT_BITS);
}

/* Where part p starts. */
static inline size_t
part_start(const Partition *partition, uint32_t p)
{
	return (size_t) ((unsigned __int128) partition->n * p / partition->parts);
}

static void
examine_part(void *arg, uint32_t p)
{
	Partition *partition = arg;
	const GpuSortElement *in = partition->in;
	size_t start = part_start(partition, p);
	size_t end = part_start(partition, p + 1);
	uint64_t *sample = partition->sample + (size_t) p * partition->sample_keys;
	uint64_t previous = start > 0 ? in[start - 1].key : 0;
	uint64_t any = 0;
	uint64_t all = ~UINT64_C(0);
	bool disorder = false;

	for (size_t i = start; i < end; i++)
	{
		uint64_t key = in[i].key;

		any |= key;
		all &= key;
		disorder |= key < previous;
		previous = key;
	}
	for (uint32_t i = 0; i < partition->sample_keys; i++)
		sample[i] = in[start + (end - start) * i / partition->sample_keys].key;
	partition->any[p] = any;
	partition->all[p] = all;
	partition->disorder[p] = disorder;
}

/* The bin of a key; grouped is whether there are groups, for the compiler to make a loop for each case. */
static inline __attribute__((always_inline)) uint32_t
bin_of(const Partition *partition, uint64_t key, const bool grouped)
{
	uint32_t value = key >> partition->shift & partition->mask;

	return grouped ? partition->groups[value] : value;
}

static inline __attribute__((always_inline)) void
count_bins(const Partition *partition, uint32_t p, const bool grouped)
{
	const GpuSortElement *in = partition->in;
	uint64_t *histogram = partition->part_offsets + (size_t) p * partition->bins;
	size_t end = part_start(partition, p + 1);

	for (size_t i = part_start(partition, p); i < end; i++)
		histogram[bin_of(partition, in[i].key, grouped)]++;
}

static void
histogram_part(void *arg, uint32_t p)
{
	const Partition *partition = arg;

	memset(partition->part_offsets + (size_t) p * partition->bins, 0, partition->bins * sizeof(uint64_t));
	if (gpusort_host_cancelled(partition->sort))
		return;
	if (partition->groups != NULL)
		count_bins(partition, p, true);
	else
		count_bins(partition, p, false);
}

/* Writes a full line of elements, past the cache where the CPU can. */
static inline void
write_line(GpuSortElement *to, const GpuSortElement *line)
{
#ifdef HAVE_STREAM
	for (int i = 0; i < LINE; i++)
		_mm_stream_si128((__m128i *) (to + i), _mm_load_si128((const __m128i *) (line + i)));
#else
	memcpy(to, line, LINE * sizeof(GpuSortElement));
#endif
}

static inline __attribute__((always_inline)) void
scatter(const Partition *partition, uint32_t p, const bool grouped)
{
	const GpuSortElement *in = partition->in;
	GpuSortElement *out = partition->out - partition->skew;
	uint64_t *offsets = partition->part_offsets + (size_t) p * partition->bins;
	uint32_t bins = partition->bins;
	size_t end = part_start(partition, p + 1);
	GpuSortElement lines[1 << PARALLEL_DIGIT_BITS][LINE] __attribute__((aligned(64)));
	uint64_t first[1 << PARALLEL_DIGIT_BITS];

	memcpy(first, offsets, bins * sizeof(uint64_t));
	for (size_t i = part_start(partition, p); i < end; i++)
	{
		GpuSortElement element = in[i];
		uint32_t d = bin_of(partition, element.key, grouped);
		uint64_t place = offsets[d]++;

		lines[d][place % LINE] = element;
		if (place % LINE == LINE - 1)
		{
			uint64_t start = place - (LINE - 1);

			/* The first line of a bin may start with another part's elements. */
			if (start >= first[d])
				write_line(out + start, lines[d]);
			else
				for (uint64_t j = first[d]; j <= place; j++)
					out[j] = lines[d][j % LINE];
		}
	}
	for (uint32_t d = 0; d < bins; d++)
	{
		uint64_t start = offsets[d] / LINE * LINE;

		for (uint64_t j = start > first[d] ? start : first[d]; j < offsets[d]; j++)
			out[j] = lines[d][j % LINE];
	}
#ifdef HAVE_STREAM
	_mm_sfence();
#endif
}

static void
scatter_part(void *arg, uint32_t p)
{
	const Partition *partition = arg;

	/* The histogram is not of the whole part then, so offsets would be wrong. */
	if (gpusort_host_cancelled(partition->sort))
		return;
	if (partition->groups != NULL)
		scatter(partition, p, true);
	else
		scatter(partition, p, false);
}

static void
sort_bin(void *arg, uint32_t d)
{
	Partition *partition = arg;
	uint64_t start = partition->bin_offsets[d];
	uint64_t count = partition->bin_offsets[d + 1] - start;

	if (count == 0 || count > SMALL_MAX || gpusort_host_cancelled(partition->sort))
		return;
	gpusort_host_sort_small(partition->out + start, partition->in + start, count, !partition->swap);
}

static void
copy_part(void *arg, uint32_t p)
{
	Partition *partition = arg;
	size_t start = part_start(partition, p);
	size_t end = part_start(partition, p + 1);

	memcpy(partition->out + start, partition->in + start, (end - start) * sizeof(GpuSortElement));
}

/*
 * Makes bins of neighbouring values of a wider digit, no more of them than there would be; false, and nothing
 * changed, if the sample says that those are alike, or that this would not help.
 */
static bool
group_values(Partition *partition, uint32_t varying)
{
	uint32_t bits = varying < GROUPED_DIGIT_BITS ? varying : GROUPED_DIGIT_BITS;
	uint32_t shift = varying - bits;
	uint32_t mask = (1 << bits) - 1;
	uint32_t sample_keys = partition->parts * partition->sample_keys;
	uint32_t *counts = (uint32_t *) (partition->sample + sample_keys);
	uint32_t per_bin = (mask + 1) / partition->bins; /* values */
	uint32_t largest_value = 0;
	uint32_t largest_bin = 0;
	uint32_t target = 2 * sample_keys / partition->bins + 1;
	uint32_t bin = 0;
	uint32_t sum = 0;

	memset(counts, 0, (mask + 1) * sizeof(uint32_t));
	for (uint32_t i = 0; i < sample_keys; i++)
		counts[partition->sample[i] >> shift & mask]++;
	for (uint32_t value = 0; value <= mask; value++)
	{
		sum = (value % per_bin == 0 ? 0 : sum) + counts[value];
		if (counts[value] > largest_value)
			largest_value = counts[value];
		if (sum > largest_bin)
			largest_bin = sum;
	}
	if (largest_bin <= GROUPED_SKEW * (sample_keys / partition->bins + 1) || largest_value > largest_bin / 2)
		return false;

	/* A bin ends where two of them would have more than twice the average, so there are not more than before. */
	sum = 0;
	for (uint32_t value = 0; value <= mask; value++)
	{
		if (sum > 0 && sum + counts[value] > target)
		{
			bin++;
			sum = 0;
		}
		partition->groups[value] = bin;
		sum += counts[value];
	}
	partition->shift = shift;
	partition->mask = mask;
	partition->bins = bin + 1;
	return true;
}

/*
 * Finds the digit to partition by; false if the range is in order already.
 */
static bool
choose_digit(Partition *partition, GpuSortThreads *threads)
{
	uint64_t any = 0;
	uint64_t all = ~UINT64_C(0);
	bool disorder = false;
	uint32_t varying;
	uint32_t bits;

	gpusort_threads_run(threads, partition->parts, examine_part, partition);
	for (uint32_t p = 0; p < partition->parts; p++)
	{
		any |= partition->any[p];
		all &= partition->all[p];
		disorder |= partition->disorder[p];
	}
	if (!disorder)
		return false;

	varying = 64 - __builtin_clzll(any ^ all);
	bits = 63 - __builtin_clzll(partition->n);
	bits = bits > BIN_BITS + 1 ? bits - BIN_BITS : 1;
	if (bits > PARALLEL_DIGIT_BITS)
		bits = PARALLEL_DIGIT_BITS;
	if (bits > varying)
		bits = varying;
	partition->bins = 1 << bits;
	partition->mask = partition->bins - 1;
	partition->shift = varying - bits;
	if (!group_values(partition, varying))
		partition->groups = NULL;
	return true;
}

/* Turns the histograms of the parts into offsets, by an exclusive scan, bin by bin. */
static void
scan_histograms(Partition *partition)
{
	uint64_t place = partition->skew;

	for (uint32_t d = 0; d < partition->bins; d++)
	{
		partition->bin_offsets[d] = place - partition->skew;
		for (uint32_t p = 0; p < partition->parts; p++)
		{
			uint64_t *entry = &partition->part_offsets[(size_t) p * partition->bins + d];
			uint64_t count = *entry;

			*entry = place;
			place += count;
		}
	}
	partition->bin_offsets[partition->bins] = place - partition->skew;
}

static int sort_range(const GpuSort *sort, GpuSortElement *in, GpuSortElement *out, size_t n, bool swap,
					  GpuSortError *error);

/* The steps of sort_range for more than SMALL_MAX elements. */
static int
sort_partitioned(Partition *partition, GpuSortError *error)
{
	const GpuSort *sort = partition->sort;
	GpuSortThreads *threads = sort->threads;

	if (!choose_digit(partition, threads))
	{
		if (partition->swap)
			gpusort_threads_run(threads, partition->parts, copy_part, partition);
		return 0;
	}
	gpusort_threads_run(threads, partition->parts, histogram_part, partition);
	if (gpusort_host_cancelled(sort))
		return gpusort_error_cancelled(error);
	scan_histograms(partition);
	gpusort_threads_run(threads, partition->parts, scatter_part, partition);
	if (gpusort_host_cancelled(sort))
		return gpusort_error_cancelled(error);

	for (uint32_t d = 0; d < partition->bins; d++)
	{
		uint64_t start = partition->bin_offsets[d];
		uint64_t count = partition->bin_offsets[d + 1] - start;

		if (count > SMALL_MAX &&
			sort_range(sort, partition->out + start, partition->in + start, count, !partition->swap,
					   error) != 0)
			return -1;
	}
	gpusort_threads_run(threads, partition->bins, sort_bin, partition);
	if (gpusort_host_cancelled(sort))
		return gpusort_error_cancelled(error);
	return 0;
}

/*
 * As gpusort_host_sort_small, for any number of elements, by all threads.
 */
static int
sort_range(const GpuSort *sort, GpuSortElement *in, GpuSortElement *out, size_t n, bool swap,
		   GpuSortError *error)
{
	Partition partition;

	if (gpusort_host_cancelled(sort))
		return gpusort_error_cancelled(error);
	if (n <= SMALL_MAX)
	{
		gpusort_host_sort_small(in, out, n, swap);
		return 0;
	}

	/* Ranges within this one use the same work space when this one is done with it. */
	partition.sort = sort;
	partition.in = in;
	partition.out = out;
	partition.n = n;
	partition.swap = swap;
	partition.skew = (uintptr_t) out / sizeof(GpuSortElement) % LINE;
	partition.parts = count_parts(sort, n);
	partition.sample = (uint64_t *) out;
	partition.sample_keys = SAMPLE_KEYS / partition.parts;
	partition.any = sort->histograms;
	partition.all = partition.any + partition.parts;
	partition.disorder = (bool *) (partition.all + partition.parts);
	partition.part_offsets = (uint64_t *) ((char *) sort->histograms + summary_bytes(partition.parts));
	partition.groups = (uint16_t *) ((char *) partition.part_offsets + offsets_bytes(partition.parts));
	return sort_partitioned(&partition, error);
}

/*
 * Sorts n elements with all threads; they are in "other" if in_other is set,
 * else in "elements", where the result goes in any case.  Fails when the sort is
 * cancelled, and for nothing else.
 */
int
gpusort_host_sort_parallel(GpuSort *sort, GpuSortElement *elements, GpuSortElement *other,
						   size_t n, bool in_other, GpuSortError *error)
{
	if (in_other)
		return sort_range(sort, other, elements, n, true, error);
	return sort_range(sort, elements, other, n, false, error);
}
