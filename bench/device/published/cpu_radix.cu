/*-------------------------------------------------------------------------
 *
 * cpu_radix.cu
 *	  The buffered radix sort for CPUs of N. Satish, C. Kim, J. Chhugani, A. D. Nguyen,
 *	  V. W. Lee, D. Kim, P. Dubey, Fast Sort on CPUs, GPUs and Intel MIC Architectures
 *	  (Intel Labs, 2010), sections 2 and 3.1 ("scalar buffer version"), as their
 *	  reference 29 (SIGMOD 2010) tells it.
 *
 * Digits of eight bits, least significant first.  In a pass each thread
 *
 *	1. counts the digits of its share of the rows,
 *	2. finds from all threads' counts where its rows of each digit go,
 *	3. reads its share again and puts each row into the buffer of its digit, a cache
 *	   line; a full buffer is written to memory at once.
 *
 * So a pass writes whole lines instead of single rows to 256 places, and what it
 * keeps at hand, 256 lines, stays in the first-level cache and its TLB.  A
 * buffer's places are those of the line in memory that it will become, so the first
 * and the last line of a digit, which belong to two digits or threads, are written
 * row by row, and all others with stores that do not read the line first, where
 * the processor has them (SSE2).
 *
 * Row ids (section 4) have buffers of their own.  The paper keeps key and id side by
 * side; two arrays are what the output is here, and cost no more lines.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "published/common.h"
#include "published/cpu_team.h"

#define DIGIT_BITS 8
#define DIGITS     (1 << DIGIT_BITS)
#define LINE       64 /* bytes of a cache line */
#define MOST_ROWS  (UINT32_MAX - 1)

/* A line per digit, for one of the arrays that a thread scatters to. */
template <typename Item>
struct Lines
{
	static const uint32_t PER_LINE = LINE / sizeof(Item);

	alignas(LINE) Item items[DIGITS][LINE / sizeof(Item)];
	Item *out;
	uint32_t shift; /* of out's first item in its line */
};

/* Writes a whole line. */
static inline void
write_line(void *to, const void *line)
{
#if defined(__SSE2__)
	for (int i = 0; i < LINE / 16; i++)
		_mm_stream_si128((__m128i *) to + i, _mm_load_si128((const __m128i *) line + i));
#else
	memcpy(to, line, LINE);
#endif
}

template <typename Item>
static inline void
start_lines(Lines<Item> *lines, Item *out)
{
	lines->out = out;
	lines->shift = (uint32_t) ((uintptr_t) out % LINE / sizeof(Item));
}

/* Puts an item of this digit to place `place` of the output; the digit's first place is `first`. */
template <typename Item>
static inline void
put(Lines<Item> *lines, uint32_t digit, uint64_t place, uint64_t first, Item item)
{
	const uint32_t slot = (uint32_t) (place + lines->shift) % Lines<Item>::PER_LINE;

	lines->items[digit][slot] = item;
	if (slot < Lines<Item>::PER_LINE - 1)
		return;
	if (place >= first + slot)
		write_line(lines->out + (place - slot), lines->items[digit]);
	else
	{
		/* the line begins with somebody else's rows */
		const uint32_t mine = (uint32_t) (place - first);

		memcpy(lines->out + first, &lines->items[digit][slot - mine], (mine + 1) * sizeof(Item));
	}
}

/* Writes what is left of a digit, whose places are [first, end). */
template <typename Item>
static inline void
finish(Lines<Item> *lines, uint32_t digit, uint64_t first, uint64_t end)
{
	const uint32_t slots = (uint32_t) (end + lines->shift) % Lines<Item>::PER_LINE;
	const uint32_t left = end - first < slots ? (uint32_t) (end - first) : slots;

	memcpy(lines->out + (end - left), &lines->items[digit][slots - left], left * sizeof(Item));
}

typedef struct Job
{
	const GpuSortReferenceArgs *args;
	void *keys;
	uint32_t *ids;
	uint32_t (*counts)[DIGITS]; /* of each thread */
} Job;

/* What a thread does in a sort.  The number of passes is even, so the last one ends in the output. */
template <typename Key, bool WITH_IDS>
static void
sort_share(GpuSortTeam *team, int thread, void *arg)
{
	const Job *job = (const Job *) arg;
	const uint64_t begin = gpusort_team_share(team, thread, job->args->rows);
	const uint64_t end = gpusort_team_share(team, thread + 1, job->args->rows);
	const Key *keys = (const Key *) job->args->keys_in;
	const uint32_t *ids = NULL;
	uint32_t *counts = job->counts[thread];
	Lines<Key> key_lines;
	Lines<uint32_t> id_lines;
	uint64_t first[DIGITS];
	uint64_t place[DIGITS];

	for (int shift = 0; shift < 8 * (int) sizeof(Key); shift += DIGIT_BITS)
	{
		const bool last = shift / DIGIT_BITS % 2 == 1;
		Key *keys_to = (Key *) (last ? job->args->keys_out : job->keys);
		uint32_t *ids_to = last ? job->args->ids_out : job->ids;
		uint64_t sum = 0;

		memset(counts, 0, DIGITS * sizeof(*counts));
		for (uint64_t i = begin; i < end; i++)
			counts[keys[i] >> shift & (DIGITS - 1)]++;
		gpusort_team_wait(team);
		for (int digit = 0; digit < DIGITS; digit++)
		{
			for (int other = 0; other < team->threads; other++)
			{
				if (other == thread)
					first[digit] = place[digit] = sum;
				sum += job->counts[other][digit];
			}
		}

		start_lines(&key_lines, keys_to);
		if (WITH_IDS)
			start_lines(&id_lines, ids_to);
		for (uint64_t i = begin; i < end; i++)
		{
			const uint32_t digit = (uint32_t) (keys[i] >> shift) & (DIGITS - 1);
			const uint64_t to = place[digit]++;

			put(&key_lines, digit, to, first[digit], keys[i]);
			if (WITH_IDS)
				put(&id_lines, digit, to, first[digit], ids != NULL ? ids[i] : (uint32_t) i);
		}
		for (int digit = 0; digit < DIGITS; digit++)
		{
			finish(&key_lines, digit, first[digit], place[digit]);
			if (WITH_IDS)
				finish(&id_lines, digit, first[digit], place[digit]);
		}
#if defined(__SSE2__)
		_mm_sfence();
#endif
		gpusort_team_wait(team);
		keys = keys_to;
		ids = ids_to;
	}
}

static Job
cut_temp(GpuSortTemp *temp, uint32_t rows, int key_bytes, bool with_ids)
{
	Job job;

	job.args = NULL;
	job.keys = gpusort_take<char>(temp, (uint64_t) rows * key_bytes);
	job.ids = gpusort_take<uint32_t>(temp, with_ids ? rows : 0);
	job.counts = (uint32_t(*)[DIGITS]) gpusort_take<uint32_t>(temp, GPUSORT_TEAM_MOST * DIGITS);
	return job;
}

static cudaError_t
sort_by_team(const GpuSortReferenceArgs *args, Job *job, cudaStream_t)
{
	GpuSortTeamWork work;

	job->args = args;
	if (args->key_bytes == 4)
		work = args->ids_out != NULL ? sort_share<uint32_t, true> : sort_share<uint32_t, false>;
	else
		work = args->ids_out != NULL ? sort_share<uint64_t, true> : sort_share<uint64_t, false>;
	gpusort_team_run(args->threads, args->rows, work, job);
	return cudaSuccess;
}

/* A pass reads the keys twice and the ids, which the first one makes, once; and writes both. */
static double
bytes_per_row(uint32_t, int key_bytes, bool with_ids)
{
	const int passes = 8 * key_bytes / DIGIT_BITS;

	return 3.0 * passes * key_bytes + (with_ids ? 4.0 * (2 * passes - 1) : 0);
}

const GpuSortReference gpusort_cpu_radix = {
	"cpu-radix",
	"Satish et al., Fast Sort on CPUs, GPUs and Intel MIC Architectures, 2010, 3.1",
	true,
	GPUSORT_REFERENCE_KEYS_4 | GPUSORT_REFERENCE_KEYS_8 | GPUSORT_REFERENCE_PAIRS_4 | GPUSORT_REFERENCE_PAIRS_8,
	true,
	false,
	MOST_ROWS,
	gpusort_cut_bytes<&gpusort_cpu_radix, cut_temp>,
	gpusort_cut_and_sort<&gpusort_cpu_radix, cut_temp, sort_by_team>,
	bytes_per_row,
};
