/*-------------------------------------------------------------------------
 *
 * cpu_merge.cu
 *	  The merge sort for CPUs of N. Satish, C. Kim, J. Chhugani, A. D. Nguyen, V. W. Lee,
 *	  D. Kim, P. Dubey, Fast Sort on CPUs, GPUs and Intel MIC Architectures (Intel
 *	  Labs, 2010), section 3.1, which is that of its reference 9, J. Chhugani et al.,
 *	  Efficient implementation of sorting on multi-core SIMD CPU architectures
 *	  (VLDB 2008).
 *
 *	1. As many vectors as they have lanes are sorted by a network of minima and maxima,
 *	   lane by lane; transposed, they are runs of a vector's length.
 *	2. Runs are merged in pairs, a vector at a time: a bitonic network merges the
 *	   vector at hand with the next of the run whose next word is smaller; its
 *	   lower half goes out, its upper half stays at hand.  Within a block that fits
 *	   into the cache, each thread does that on its own.
 *	3. Blocks are merged in pairs, too, with all threads on every pair: each makes an equal
 *	   share of the output, and finds by binary search where that share
 *	   begins in either run.
 *
 * A pair is one 64-bit word, (key, row id), as in the sorts of pack_words.cu; so there
 * are no pairs with 64-bit keys.
 *
 * What differs from the papers, and why: vectors are the compiler's, of 32 bytes, where
 * theirs are SSE's of 16, as AVX2 has them (chosen when the program runs); and
 * blocks are merged in pairs and not many at a time, which costs a pass over memory per
 * doubling but keeps it short.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "published/common.h"
#include "published/cpu_team.h"

#define VECTOR    32        /* bytes */
#define BLOCK     (1 << 17) /* bytes that one thread sorts on its own, in two arrays of that size */
#define MOST_ROWS (UINT32_MAX - 1)

#define INLINE static inline __attribute__((always_inline))

template <typename Word>
struct Vectors
{
	static const int LANES = VECTOR / sizeof(Word);
	static const int BLOCK_WORDS = BLOCK / sizeof(Word);

	typedef Word Vector __attribute__((vector_size(VECTOR)));
};

typedef Vectors<uint32_t>::Vector Vector8;
typedef Vectors<uint64_t>::Vector Vector4;

template <typename Vector>
INLINE void
order(Vector *a, Vector *b)
{
	const Vector x = *a;
	const Vector y = *b;

	*a = x < y ? x : y;
	*b = x < y ? y : x;
}

/* Sorts a vector whose words go up, then down, or the other way round (a bitonic one). */
INLINE void
sort_bitonic(Vector8 *v)
{
	Vector8 low = __builtin_shuffle(*v, (Vector8){4, 5, 6, 7, 0, 1, 2, 3});
	Vector8 high = *v;

	order(&low, &high);
	*v = __builtin_shuffle(low, high, (Vector8){0, 1, 2, 3, 12, 13, 14, 15});
	low = __builtin_shuffle(*v, (Vector8){2, 3, 0, 1, 6, 7, 4, 5});
	high = *v;
	order(&low, &high);
	*v = __builtin_shuffle(low, high, (Vector8){0, 1, 10, 11, 4, 5, 14, 15});
	low = __builtin_shuffle(*v, (Vector8){1, 0, 3, 2, 5, 4, 7, 6});
	high = *v;
	order(&low, &high);
	*v = __builtin_shuffle(low, high, (Vector8){0, 9, 2, 11, 4, 13, 6, 15});
}

INLINE void
sort_bitonic(Vector4 *v)
{
	Vector4 low = __builtin_shuffle(*v, (Vector4){2, 3, 0, 1});
	Vector4 high = *v;

	order(&low, &high);
	*v = __builtin_shuffle(low, high, (Vector4){0, 1, 6, 7});
	low = __builtin_shuffle(*v, (Vector4){1, 0, 3, 2});
	high = *v;
	order(&low, &high);
	*v = __builtin_shuffle(low, high, (Vector4){0, 5, 2, 7});
}

INLINE void
reverse(Vector8 *v)
{
	*v = __builtin_shuffle(*v, (Vector8){7, 6, 5, 4, 3, 2, 1, 0});
}

INLINE void
reverse(Vector4 *v)
{
	*v = __builtin_shuffle(*v, (Vector4){3, 2, 1, 0});
}

/* Batcher's odd-even merge sort, lane by lane. */
INLINE void
sort_lanes(Vector8 *v)
{
	static const unsigned char low[] = {0, 2, 4, 6, 0, 1, 4, 5, 1, 5, 0, 1, 2, 3, 2, 3, 1, 3, 5};
	static const unsigned char high[] = {1, 3, 5, 7, 2, 3, 6, 7, 2, 6, 4, 5, 6, 7, 4, 5, 2, 4, 6};

	for (int i = 0; i < 19; i++)
		order(&v[low[i]], &v[high[i]]);
}

INLINE void
sort_lanes(Vector4 *v)
{
	order(&v[0], &v[1]);
	order(&v[2], &v[3]);
	order(&v[0], &v[2]);
	order(&v[1], &v[3]);
	order(&v[1], &v[2]);
}

/* Merges two vectors in order: the lower half of the words to *low, the others to *high. */
template <typename Vector>
INLINE void
merge_vectors(Vector *low, Vector *high)
{
	reverse(high);
	order(low, high);
	sort_bitonic(low);
	sort_bitonic(high);
}

template <typename Word>
INLINE void
merge_words(const Word *a, const Word *a_end, const Word *b, const Word *b_end, Word *out)
{
	while (a < a_end && b < b_end)
	{
		const bool from_b = *b < *a;

		*out++ = from_b ? *b : *a;
		a += from_b ? 0 : 1;
		b += from_b ? 1 : 0;
	}
	memcpy(out, a, (size_t) (a_end - a) * sizeof(Word));
	memcpy(out + (a_end - a), b, (size_t) (b_end - b) * sizeof(Word));
}

/* Merges two runs. */
template <typename Word>
INLINE void
merge_runs(const Word *a, const Word *a_end, const Word *b, const Word *b_end, Word *out)
{
	typedef typename Vectors<Word>::Vector Vector;
	const int LANES = Vectors<Word>::LANES;
	Word kept[VECTOR / sizeof(Word)];
	Word left[2 * VECTOR / sizeof(Word)];
	Vector low;
	Vector high;
	bool from_b;

	if (a_end - a < LANES || b_end - b < LANES)
	{
		merge_words(a, a_end, b, b_end, out);
		return;
	}
	memcpy(&low, a, sizeof(low));
	memcpy(&high, b, sizeof(high));
	a += LANES;
	b += LANES;
	for (;;)
	{
		merge_vectors(&low, &high);
		memcpy(out, &low, sizeof(low));
		out += LANES;
		from_b = a == a_end || (b < b_end && *b < *a);
		if ((from_b ? b_end - b : a_end - a) < LANES)
			break;
		memcpy(&low, from_b ? b : a, sizeof(low));
		a += from_b ? 0 : LANES;
		b += from_b ? LANES : 0;
	}

	/* What is at hand, the run that has less than a vector, then the other run. */
	memcpy(kept, &high, sizeof(high));
	if (from_b)
	{
		merge_words(kept, kept + LANES, b, b_end, left);
		merge_words(a, a_end, (const Word *) left, (const Word *) left + LANES + (b_end - b), out);
	}
	else
	{
		merge_words(kept, kept + LANES, a, a_end, left);
		merge_words((const Word *) left, (const Word *) left + LANES + (a_end - a), b, b_end, out);
	}
}

/* Makes runs of a vector's length; the last may be shorter. */
template <typename Word>
INLINE void
make_runs(Word *words, uint64_t count)
{
	typedef typename Vectors<Word>::Vector Vector;
	const int LANES = Vectors<Word>::LANES;

	for (; count >= LANES * LANES; words += LANES * LANES, count -= LANES * LANES)
	{
		Vector v[VECTOR / sizeof(Word)];

		memcpy(v, words, sizeof(v));
		sort_lanes(v);
		for (int lane = 0; lane < LANES; lane++)
		{
			for (int i = 0; i < LANES; i++)
				words[lane * LANES + i] = v[i][lane];
		}
	}
	for (uint64_t i = 0; i < count; i++)
	{
		const Word word = words[i];
		uint64_t place = i;

		for (; place % LANES > 0 && words[place - 1] > word; place--)
			words[place] = words[place - 1];
		words[place] = word;
	}
}

/* How many of the first `target` words of the merged runs are a's. */
template <typename Word>
INLINE uint64_t
merge_path(const Word *a, uint64_t a_count, const Word *b, uint64_t b_count, uint64_t target)
{
	uint64_t low = target > b_count ? target - b_count : 0;
	uint64_t high = target < a_count ? target : a_count;

	while (low < high)
	{
		const uint64_t middle = (low + high) / 2;

		if (b[target - middle - 1] < a[middle])
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* Merges the runs of run_words each in pairs, but only what becomes words [begin, end) of the output. */
template <typename Word>
INLINE void
merge_share(const Word *from, Word *to, uint64_t count, uint64_t run_words, uint64_t begin, uint64_t end)
{
	while (begin < end)
	{
		const uint64_t first = begin / (2 * run_words) * (2 * run_words);
		const uint64_t second = first + run_words < count ? first + run_words : count;
		const uint64_t pair_end = second + run_words < count ? second + run_words : count;
		const uint64_t share_end = end < pair_end ? end : pair_end;
		const Word *a = from + first;
		const Word *b = from + second;
		const uint64_t a_begin = merge_path(a, second - first, b, pair_end - second, begin - first);
		const uint64_t a_end = merge_path(a, second - first, b, pair_end - second, share_end - first);

		merge_runs(a + a_begin, a + a_end, b + (begin - first - a_begin), b + (share_end - first - a_end), to + begin);
		begin = share_end;
	}
}

typedef struct Job
{
	const GpuSortReferenceArgs *args;
	void *words[2]; /* of which the second is sorted at the end */
} Job;

/* What a thread does in a sort. */
template <typename Word>
INLINE void
sort_share(GpuSortTeam *team, int thread, const Job *job)
{
	const uint64_t BLOCK_WORDS = Vectors<Word>::BLOCK_WORDS;
	const GpuSortReferenceArgs *args = job->args;
	const uint64_t count = args->rows;
	const uint64_t begin = gpusort_team_share(team, thread, count);
	const uint64_t end = gpusort_team_share(team, thread + 1, count);
	const uint64_t blocks = (count + BLOCK_WORDS - 1) / BLOCK_WORDS;
	Word *from = (Word *) job->words[1];
	Word *to = (Word *) job->words[0];
	Word *other;

	/* Such that the last merge ends in the second array. */
	for (uint64_t run_words = BLOCK_WORDS; run_words < count; run_words *= 2)
	{
		other = from;
		from = to;
		to = other;
	}

	for (uint64_t i = gpusort_team_share(team, thread, blocks); i < gpusort_team_share(team, thread + 1, blocks); i++)
	{
		const uint64_t start = i * BLOCK_WORDS;
		const uint64_t words = count - start < BLOCK_WORDS ? count - start : BLOCK_WORDS;

		/* The runs grow from a vector to a block in twelve merges, an even number. */
		if (args->ids_out != NULL)
		{
			for (uint64_t row = start; row < start + words; row++)
				from[row] = (Word) ((uint64_t) ((const uint32_t *) args->keys_in)[row] << 32 | row);
		}
		else
			memcpy(from + start, (const Word *) args->keys_in + start, words * sizeof(Word));
		make_runs(from + start, words);
		for (uint64_t run_words = Vectors<Word>::LANES; run_words < BLOCK_WORDS; run_words *= 4)
		{
			merge_share((const Word *) from + start, to + start, words, run_words, 0, words);
			merge_share((const Word *) to + start, from + start, words, 2 * run_words, 0, words);
		}
	}
	for (uint64_t run_words = BLOCK_WORDS; run_words < count; run_words *= 2)
	{
		gpusort_team_wait(team);
		merge_share((const Word *) from, to, count, run_words, begin, end);
		other = from;
		from = to;
		to = other;
	}
	if (args->ids_out != NULL)
	{
		gpusort_team_wait(team);
		for (uint64_t row = begin; row < end; row++)
		{
			((uint32_t *) args->keys_out)[row] = (uint32_t) ((uint64_t) from[row] >> 32);
			args->ids_out[row] = (uint32_t) from[row];
		}
	}
}

/* The same for the processors that have AVX2, and for all. */
#if defined(__x86_64__)
#define WITH_AVX2 __attribute__((target("avx2")))
#define HAS_AVX2  __builtin_cpu_supports("avx2")

template <typename Word>
WITH_AVX2 static void
sort_share_avx2(GpuSortTeam *team, int thread, void *arg)
{
	sort_share<Word>(team, thread, (const Job *) arg);
}
#else
#define HAS_AVX2        false
#define sort_share_avx2 sort_share_plain
#endif

template <typename Word>
static void
sort_share_plain(GpuSortTeam *team, int thread, void *arg)
{
	sort_share<Word>(team, thread, (const Job *) arg);
}

static Job
cut_temp(GpuSortTemp *temp, uint32_t rows, int key_bytes, bool with_ids)
{
	const uint64_t bytes = (uint64_t) rows * gpusort_word_bytes(key_bytes, with_ids);
	Job job;

	job.args = NULL;
	job.words[0] = gpusort_take<char>(temp, bytes);
	job.words[1] = gpusort_take<char>(temp, with_ids ? bytes : 0);
	return job;
}

static cudaError_t
sort_by_team(const GpuSortReferenceArgs *args, Job *job, cudaStream_t)
{
	GpuSortTeamWork work;

	job->args = args;
	if (args->ids_out == NULL)
		job->words[1] = args->keys_out;
	if (gpusort_word_bytes(args->key_bytes, args->ids_out != NULL) == 4)
		work = HAS_AVX2 ? sort_share_avx2<uint32_t> : sort_share_plain<uint32_t>;
	else
		work = HAS_AVX2 ? sort_share_avx2<uint64_t> : sort_share_plain<uint64_t>;
	gpusort_team_run(args->threads, args->rows, work, job);
	return cudaSuccess;
}

/* Blocks are read and written once, as they stay in the cache; then all words once per doubling. */
static double
bytes_per_row(uint32_t rows, int key_bytes, bool with_ids)
{
	const int word = gpusort_word_bytes(key_bytes, with_ids);
	double bytes = key_bytes + word;

	for (uint64_t run_words = BLOCK / word; run_words < rows; run_words *= 2)
		bytes += 2.0 * word;
	return bytes + (with_ids ? 2.0 * word : 0);
}

const GpuSortReference gpusort_cpu_merge = {
	"cpu-merge",
	"Satish et al., Fast Sort on CPUs, GPUs and Intel MIC Architectures, 2010, 3.1",
	true,
	GPUSORT_REFERENCE_KEYS_4 | GPUSORT_REFERENCE_KEYS_8 | GPUSORT_REFERENCE_PAIRS_4,
	true,
	false,
	MOST_ROWS,
	gpusort_cut_bytes<&gpusort_cpu_merge, cut_temp>,
	gpusort_cut_and_sort<&gpusort_cpu_merge, cut_temp, sort_by_team>,
	bytes_per_row,
};
