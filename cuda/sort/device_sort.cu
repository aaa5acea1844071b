/*-------------------------------------------------------------------------
 *
 * device_sort.cu
 *	  The device sort from end to end; device_sort.h is its contract.
 *
 *	1. Prefixes of all rows, if the caller has not made them: the key is read, 4
 *	   bytes are written.  An array of uint32_t that loses no bits is its own.  Where many
 *	   rows would tie on them prefixes are made by a map that fits the keys (prefix_map.cu).
 *	2. Radix sort of (prefix, row number) (radix_sort.cu).  Up to 32 packed bits
 *	   that is all, and prefixes need not leave it.
 *	3. Rows that tie on the prefix (segments.cu).
 *
 * With a small limit, rows are selected by their prefixes first (top_k.cu).  What the
 * select keeps is in no order, so it is sorted by row number, its prefixes are made
 * again, and 2 and 3 follow for these rows alone.
 *
 * Input in order, or strictly in the opposite order, is only numbered.
 *
 * Of a plain array, statistics and prefixes take one read of the keys: the plan is
 * guessed from a sample, and made again in the rare case that the statistics say it
 * does not serve.  Keys that want a map are read once for each.
 *
 *-------------------------------------------------------------------------
 */
#include "sort/device_sort.h"

#include <cuda_runtime.h>

#include "sort/digit_counts.cuh"
#include "sort/key_source.h"
#include "sort/key_stats.h"
#include "sort/launch.h"
#include "sort/prefix_map.h"
#include "sort/radix/radix_sort.h"
#include "sort/segments.h"
#include "sort/top_k.h"

#define PREFIX_THREADS 256
#define PREFIX_ITEMS   4

/* A block that counts digits has a multiprocessor to itself. */
#define COUNT_THREADS 1024
#define COUNT_BLOCKS  512
#define COUNT_COPIES  32

#define NUMBER_THREADS 256
#define NUMBER_ITEMS   32

/*
 * Rows of a sample that a plan is guessed from.  It pays where the sample is a small part
 * of the rows; tests make it a small one.
 */
#ifndef GPUSORT_SAMPLE_ROWS
#ifdef __CUDACC__
#define GPUSORT_SAMPLE_ROWS 65536
#else
#define GPUSORT_SAMPLE_ROWS 16
#endif
#endif
#define SAMPLE_STEP_MIN 64

/*
 * Fewer rows of keys of 32 bits are sorted as they are: statistics take 28 us on an H200, their
 * wait and all, when a sort of 2^20 rows takes 73.
 */
#ifndef GPUSORT_STATS_ROWS_MIN
#define GPUSORT_STATS_ROWS_MIN (UINT32_C(1) << 21)
#endif

/* Everything in temp. */
typedef struct SortTemp
{
	GpuSortPrefixMap *map; /* NULL: prefixes are the packed keys' top bits */
	uint32_t *prefixes;    /* the caller's, if it made them */
	void *sorting;
	size_t sorting_bytes;
	void *tie_end;

	/* with a select, in the place of sorting */
	uint32_t *kept_ids;
	uint32_t *kept_in_row_order;
	void *select;
	size_t select_bytes;
} SortTemp;

/* prefixes[i] = prefix of row i, or of row ids[i]; the plan keeps nothing else. */
template <int FORM>
static __global__ void
__launch_bounds__(PREFIX_THREADS)
	make_prefixes(const __grid_constant__ GpuSortKeySource source, const __grid_constant__ GpuSortPackPlan window,
				  const uint32_t *ids, uint32_t rows, uint32_t *prefixes)
{
	const uint64_t start = (uint64_t) blockIdx.x * (PREFIX_THREADS * PREFIX_ITEMS) + threadIdx.x;
	const uint64_t *places[PREFIX_ITEMS];
	uint64_t made[PREFIX_ITEMS];
	uint32_t packed[PREFIX_ITEMS];

	GPUSORT_UNROLL
	for (int k = 0; k < PREFIX_ITEMS; k++)
	{
		const uint64_t i = start + k * PREFIX_THREADS;
		const uint32_t there = i < rows ? (uint32_t) i : rows - 1;

		places[k] = gpusort_source_key<FORM>(&source, ids != NULL ? ids[there] : there, &made[k]);
	}
	gpusort_pack_keys(&window, places, packed);
	GPUSORT_UNROLL
	for (int k = 0; k < PREFIX_ITEMS; k++)
	{
		const uint64_t i = start + k * PREFIX_THREADS;

		if (i < rows)
			prefixes[i] = packed[k];
	}
}

/*
 * prefixes[i] = prefix of row i, and adds their digits to counts; the plan keeps nothing else.  Keys have WORDS words, up
 * to 4, which are all on their way before the first is waited for; or any number, for 0.
 */
template <int FORM, int WORDS>
static __global__ void
__launch_bounds__(COUNT_THREADS)
	count_prefixes(const __grid_constant__ GpuSortKeySource source, const __grid_constant__ GpuSortPackPlan window,
				   uint32_t rows, uint32_t *prefixes, int digits, uint32_t *counts)
{
	GPUSORT_DYNAMIC_SHARED(uint32_t, bins);
	constexpr int words = WORDS > 0 ? WORDS : 1;
	constexpr int items = WORDS == 1 ? 8 : WORDS == 4 ? 2
													  : 4;

	clear_digit_counts<COUNT_THREADS, COUNT_COPIES>(bins, digits);
	for (uint64_t start = (uint64_t) blockIdx.x * (COUNT_THREADS * items) + threadIdx.x; start < rows;
		 start += (uint64_t) gridDim.x * (COUNT_THREADS * items))
	{
		uint64_t keys[words][items];
		const uint64_t *places[items];
		uint64_t made[items];
		uint32_t prefix[items];

		GPUSORT_UNROLL
		for (int k = 0; k < items; k++)
		{
			const uint64_t row = start + k * COUNT_THREADS;
			const uint64_t *key = gpusort_source_key<FORM>(&source, (uint32_t) (row < rows ? row : rows - 1), &made[k]);

			places[k] = key;
			GPUSORT_UNROLL
			for (int w = 0; w < WORDS; w++)
				keys[w][k] = key[w];
			prefix[k] = 0;
		}
		if (WORDS == 0)
			gpusort_pack_keys(&window, places, prefix);
		GPUSORT_UNROLL
		for (int w = 0; w < WORDS; w++)
			gpusort_pack_word(&window.words[w], keys[w], prefix);
		GPUSORT_UNROLL
		for (int k = 0; k < items; k++)
		{
			const uint64_t row = start + k * COUNT_THREADS;
			const uint32_t own[1] = {prefix[k]};

			if (row >= rows)
				break;
			prefixes[row] = own[0];
			count_key_digits<COUNT_COPIES>(bins, digits, own);
		}
	}
	add_digit_counts<COUNT_THREADS, COUNT_COPIES>(bins, digits, counts);
}

/* ids[i] = i, or counted from the last row back. */
static __global__ void
__launch_bounds__(NUMBER_THREADS)
	number_rows(uint32_t rows, uint32_t written, bool backwards, uint32_t *ids)
{
	const uint64_t start = (uint64_t) blockIdx.x * (NUMBER_THREADS * NUMBER_ITEMS) + threadIdx.x;

	GPUSORT_UNROLL
	for (int k = 0; k < NUMBER_ITEMS; k++)
	{
		const uint64_t i = start + k * NUMBER_THREADS;

		if (i < written)
			ids[i] = backwards ? rows - 1 - (uint32_t) i : (uint32_t) i;
	}
}

static uint32_t
blocks_of(uint64_t items, uint32_t per_block)
{
	return (uint32_t) ((items + per_block - 1) / per_block);
}

static cudaError_t
start_prefixes(const GpuSortKeySource *source, const GpuSortPackPlan *plan, const uint32_t *ids, uint32_t rows,
			   uint32_t *prefixes, cudaStream_t stream)
{
	GpuSortPackPlan window;

	if (rows == 0)
		return cudaSuccess;
	gpusort_pack_window_plan(&window, plan, 0, 32);
#define MAKE_PREFIXES(FORM) make_prefixes<FORM>
	GPUSORT_START_BY_FORM(source, MAKE_PREFIXES, blocks_of(rows, PREFIX_THREADS * PREFIX_ITEMS), PREFIX_THREADS, stream,
						  *source, window, ids, rows, prefixes);
#undef MAKE_PREFIXES
	return cudaGetLastError();
}

/* The same for all rows, and their digits. */
template <int FORM, int WORDS>
static void
start_counted_of(const GpuSortKeySource *source, const GpuSortPackPlan *plan, uint32_t rows, uint32_t *prefixes,
				 uint32_t *counts, cudaStream_t stream)
{
	const uint32_t wanted = blocks_of(rows, COUNT_THREADS);
	auto kernel = count_prefixes<FORM, WORDS>;
	GpuSortPackPlan window;
	int digits;

	gpusort_pack_window_plan(&window, plan, 0, 32);
	digits = gpusort_radix_digits((int) window.packed_bits);
	GPUSORT_START_KERNEL_SHARED_OF(kernel, wanted < COUNT_BLOCKS ? wanted : COUNT_BLOCKS, COUNT_THREADS,
								   GPUSORT_DIGIT_COUNTS_SHARED(digits, COUNT_COPIES),
								   GPUSORT_DIGIT_COUNTS_SHARED(GPUSORT_MAX_PASSES, COUNT_COPIES), stream, *source, window, rows,
								   prefixes, digits, counts);
}

static cudaError_t
start_counted_prefixes(const GpuSortKeySource *source, const GpuSortPackPlan *plan, uint32_t rows, uint32_t *prefixes,
					   uint32_t *counts, cudaStream_t stream)
{
	const GpuSortKeyForm form = gpusort_source_form(source);

	if (form == GPUSORT_FORM_REFS)
		start_counted_of<GPUSORT_FORM_REFS, 0>(source, plan, rows, prefixes, counts, stream);
	else if (form == GPUSORT_FORM_PLAIN)
		start_counted_of<GPUSORT_FORM_PLAIN, 1>(source, plan, rows, prefixes, counts, stream);
	else if (source->key_words == 1)
		start_counted_of<GPUSORT_FORM_WORDS, 1>(source, plan, rows, prefixes, counts, stream);
	else if (source->key_words == 2)
		start_counted_of<GPUSORT_FORM_WORDS, 2>(source, plan, rows, prefixes, counts, stream);
	else if (source->key_words == 3)
		start_counted_of<GPUSORT_FORM_WORDS, 3>(source, plan, rows, prefixes, counts, stream);
	else if (source->key_words == 4)
		start_counted_of<GPUSORT_FORM_WORDS, 4>(source, plan, rows, prefixes, counts, stream);
	else
		start_counted_of<GPUSORT_FORM_WORDS, 0>(source, plan, rows, prefixes, counts, stream);
	return cudaGetLastError();
}

int
gpusort_device_prefixes(const GpuSortKeySource *source, const GpuSortPackPlan *plan, uint32_t rows, uint32_t *prefixes,
						GpuSortStream stream)
{
	return start_prefixes(source, plan, NULL, rows, prefixes, (cudaStream_t) stream);
}

/*
 * The array that is its own prefixes, or NULL.  The radix core goes by the low bits, so
 * constant bits above them are in nobody's way unless it is prefixes that are wanted.
 */
static const uint32_t *
own_prefixes(const GpuSortDeviceSort *sort)
{
	const GpuSortPackWord *word = &sort->plan->words[0];

	if (sort->prefixes != NULL || sort->source.kind != GPUSORT_KEYS_UINT32 || word->base != 0 ||
		word->kept != gpusort_ones(word->bits))
		return NULL;
	if (word->bits < 32 && (sort->sorted_prefixes != NULL || gpusort_select_pays(sort)))
		return NULL;
	return (const uint32_t *) sort->source.base;
}

/* Is there anything to do but numbering rows? */
static bool
needs_sorting(const GpuSortDeviceSort *sort)
{
	return sort->order == GPUSORT_INPUT_UNKNOWN && sort->plan->packed_bits > 0 && sort->rows > 1;
}

/* May the sort go by prefixes of its own choice, and is it worth looking whether to? */
static bool
may_map(const GpuSortDeviceSort *sort)
{
	return needs_sorting(sort) && !gpusort_select_pays(sort) && gpusort_map_considered(sort->plan, sort->rows) &&
		(sort->any_prefixes || (sort->prefixes == NULL && sort->sorted_prefixes == NULL));
}

static int
prefix_bits(const GpuSortPackPlan *plan)
{
	return plan->packed_bits < 32 ? (int) plan->packed_bits : 32;
}

/* Bytes that the core and the rounds, which take turns, need for so many rows. */
static cudaError_t
sorting_bytes(const GpuSortPackPlan *plan, uint32_t rows, size_t *temp_bytes)
{
	size_t ties = 0;
	cudaError_t status = gpusort_radix_temp_bytes(rows, 32, temp_bytes);

	if (status == cudaSuccess)
		status = gpusort_order_ties_bytes(rows, plan->packed_bits, &ties);
	if (*temp_bytes < ties)
		*temp_bytes = ties;
	return status;
}

/* Lays temp out; base may be NULL when only the size is wanted. */
static cudaError_t
lay_out(const GpuSortDeviceSort *sort, char *base, SortTemp *work, size_t *temp_bytes)
{
	const bool selects = gpusort_select_pays(sort);
	size_t end = 0;
	size_t start = 0;
	cudaError_t status = cudaSuccess;

	*work = {};
	if (may_map(sort))
		work->map = (GpuSortPrefixMap *) (base + gpusort_lay_temp(&end, sizeof(GpuSortPrefixMap)));
	if (needs_sorting(sort))
	{
		work->prefixes = sort->prefixes;
		if (sort->prefixes == NULL && (own_prefixes(sort) == NULL || selects))
			work->prefixes = (uint32_t *) (base + gpusort_lay_temp(&end, sort->rows * sizeof(uint32_t)));

		start = end;
		status = sorting_bytes(sort->plan, sort->rows, &work->sorting_bytes);
		work->sorting = base + gpusort_lay_temp(&end, work->sorting_bytes);
	}
	if (status == cudaSuccess && needs_sorting(sort) && selects)
	{
		/* A select that does not keep few rows leaves its memory to the sort of all. */
		const uint32_t capacity = gpusort_select_capacity(sort);
		size_t select_end = start;

		work->kept_ids = (uint32_t *) (base + gpusort_lay_temp(&select_end, capacity * sizeof(uint32_t)));
		work->kept_in_row_order = (uint32_t *) (base + gpusort_lay_temp(&select_end, capacity * sizeof(uint32_t)));
		status = sorting_bytes(sort->plan, capacity, &work->select_bytes);
		if (work->select_bytes < gpusort_select_bytes(sort))
			work->select_bytes = gpusort_select_bytes(sort);
		work->select = base + gpusort_lay_temp(&select_end, work->select_bytes);
		if (end < select_end)
			end = select_end;
	}

	/* For gpusort_tie_end, when sorting is done. */
	work->tie_end = base + gpusort_lay_temp(&end, sizeof(uint32_t));
	*temp_bytes = end;
	return status;
}

int
gpusort_device_sort_bytes(const GpuSortDeviceSort *sort, size_t *temp_bytes)
{
	SortTemp work;

	return lay_out(sort, NULL, &work, temp_bytes);
}

int
gpusort_device_sort_begin(const GpuSortDeviceSort *sort, void *temp, size_t temp_bytes, uint32_t **counts,
						  GpuSortStream stream)
{
	SortTemp work;
	size_t needed;
	cudaError_t status;

	*counts = NULL;
	if ((status = lay_out(sort, (char *) temp, &work, &needed)) != cudaSuccess)
		return status;
	if (needed > temp_bytes)
		return cudaErrorInvalidValue;
	if (!needs_sorting(sort) || work.kept_ids != NULL)
		return cudaSuccess;
	return gpusort_radix_begin(work.sorting, work.sorting_bytes, sort->rows, prefix_bits(sort->plan), counts,
							   (cudaStream_t) stream);
}

/* The order that the input has; all of it where the end of a tie is looked for. */
static cudaError_t
number_all(const GpuSortDeviceSort *sort, uint32_t *ids, cudaStream_t stream)
{
	const bool backwards = sort->order == GPUSORT_INPUT_REVERSED;
	const bool first = sort->limit > 0 && sort->limit < sort->rows && !sort->limit_ties;
	const uint32_t written = first ? sort->limit : sort->rows;
	cudaError_t status;

	GPUSORT_START_KERNEL(number_rows, blocks_of(written, NUMBER_THREADS * NUMBER_ITEMS), NUMBER_THREADS, stream, sort->rows, written,
						 backwards, ids);
	if ((status = cudaGetLastError()) != cudaSuccess || sort->sorted_prefixes == NULL || sort->limit > 0)
		return status;
	return start_prefixes(&sort->source, sort->plan, backwards ? ids : NULL, sort->rows, sort->sorted_prefixes, stream);
}

/*
 * Makes the prefixes of all rows, of `bits` bits, and begins their sort: the top bits of the
 * packed keys, or the codes of a map.  *counted: their digits have been counted for it.
 */
static cudaError_t
begin_with_prefixes(const GpuSortDeviceSort *sort, const SortTemp *work, const GpuSortPrefixMap *map, int bits,
					bool *counted, cudaStream_t stream)
{
	uint32_t *counts;
	cudaError_t status = gpusort_radix_begin(work->sorting, work->sorting_bytes, sort->rows, bits, &counts, stream);

	*counted = counts != NULL;
	if (status != cudaSuccess)
		return status;
	if (map != NULL)
		return gpusort_map_prefixes(&sort->source, sort->plan, sort->rows, map, (uint32_t) bits, work->prefixes, counts,
									stream);
	if (counts != NULL)
		return start_counted_prefixes(&sort->source, sort->plan, sort->rows, work->prefixes, counts, stream);
	return start_prefixes(&sort->source, sort->plan, NULL, sort->rows, work->prefixes, stream);
}

/* Sorts all rows; prefixes are made already or NULL. */
static int
sort_all(const GpuSortDeviceSort *sort, const SortTemp *work, const uint32_t *prefixes, uint32_t *ids,
		 cudaStream_t stream)
{
	const bool rounds = sort->plan->packed_bits > 32;
	int bits = prefix_bits(sort->plan);
	bool counted = sort->counted && prefixes != NULL;
	uint32_t *sorted = sort->sorted_prefixes;
	GpuSortMapUse use = {};
	cudaError_t status = cudaSuccess;

	if (work->map != NULL)
	{
		int ended = gpusort_map_find(&sort->source, sort->plan, sort->rows, &sort->wait, work->map, &use, stream);

		if (ended != 0)
			return ended;
		if (use.code_bits > 0)
		{
			prefixes = NULL;
			bits = (int) use.code_bits;
		}
	}
	if (prefixes == NULL)
	{
		prefixes = work->prefixes;
		status = begin_with_prefixes(sort, work, use.code_bits > 0 ? work->map : NULL, bits, &counted, stream);
	}
	if (status != cudaSuccess)
		return status;
	if (sorted == NULL && rounds)
		sorted = work->prefixes;
	if (counted)
		status = gpusort_radix_sort_counted(work->sorting, work->sorting_bytes, prefixes, NULL, sort->rows, bits,
											sorted, ids, stream);
	else
		status = gpusort_radix_sort(work->sorting, work->sorting_bytes, prefixes, NULL, sort->rows, bits, sorted, ids,
									stream);
	if (status != cudaSuccess || !rounds)
		return status;
	return gpusort_order_ties(sort, use.code_bits > 0 ? 0 : 32, use.decided, sort->rows, sorted, ids, work->sorting,
							  work->sorting_bytes, stream);
}

/* Selects rows by their prefixes and sorts those; *kept is 0 if all are to be sorted. */
static int
sort_selected(const GpuSortDeviceSort *sort, const SortTemp *work, const uint32_t *prefixes, uint32_t *ids,
			  uint32_t *kept, cudaStream_t stream)
{
	cudaError_t status;
	int ended = gpusort_select(sort, prefixes, work->prefixes, work->kept_ids, ids, kept, work->select,
							   work->select_bytes, stream);

	if (ended != 0 || *kept == 0)
		return ended;

	/* By row number first: keys are the numbers, and ids, which nobody wants, take place in ids. */
	status = gpusort_radix_sort(work->select, work->select_bytes, work->kept_ids, NULL, *kept, 32,
								work->kept_in_row_order, ids, stream);
	if (status == cudaSuccess)
		status = start_prefixes(&sort->source, sort->plan, work->kept_in_row_order, *kept, work->prefixes, stream);
	if (status == cudaSuccess)
		status = gpusort_radix_sort(work->select, work->select_bytes, work->prefixes, work->kept_in_row_order, *kept,
									prefix_bits(sort->plan), work->prefixes, ids, stream);
	if (status != cudaSuccess)
		return status;
	return gpusort_order_ties(sort, 32, GpuSortDecided{0, 0}, *kept, work->prefixes, ids, work->select, work->select_bytes, stream);
}

int
gpusort_device_sort(const GpuSortDeviceSort *sort, void *temp, size_t temp_bytes, uint32_t *ids, uint32_t *wanted,
					GpuSortStream gpusort_stream)
{
	const cudaStream_t stream = (cudaStream_t) gpusort_stream;
	const bool limited = sort->limit > 0 && sort->limit < sort->rows;
	const uint32_t *prefixes;
	uint32_t sorted_rows = sort->rows;
	uint32_t end = limited ? sort->limit : sort->rows;
	SortTemp work;
	size_t needed;
	cudaError_t status;
	int ended;

	if (sort->rows > GPUSORT_DEVICE_SORT_MAX_ROWS || sort->plan->key_words > GPUSORT_DEVICE_SORT_MAX_KEY_WORDS)
		return cudaErrorInvalidValue;
	if ((status = lay_out(sort, (char *) temp, &work, &needed)) != cudaSuccess)
		return status;
	if (needed > temp_bytes)
		return cudaErrorInvalidValue;

	if (sort->rows == 0)
		ended = 0;
	else if (!needs_sorting(sort))
		ended = number_all(sort, ids, stream);
	else
	{
		uint32_t kept = 0;

		prefixes = sort->prefixes != NULL ? sort->prefixes : own_prefixes(sort);
		ended = 0;
		if (work.kept_ids != NULL)
		{
			if (prefixes == NULL)
			{
				ended = start_prefixes(&sort->source, sort->plan, NULL, sort->rows, work.prefixes, stream);
				prefixes = work.prefixes;
			}
			if (ended == 0)
				ended = sort_selected(sort, &work, prefixes, ids, &kept, stream);
			if (prefixes == work.prefixes)
				prefixes = NULL; /* gone */
		}
		if (ended == 0 && kept == 0)
			ended = sort_all(sort, &work, prefixes, ids, stream);
		if (kept > 0)
			sorted_rows = kept;
	}
	if (ended == 0 && limited && sort->limit_ties)
		ended = gpusort_tie_end(sort, ids, sorted_rows, sort->limit, &end, work.tie_end, stream);
	if (wanted != NULL)
		*wanted = end;
	return ended;
}

/* The part of temp that statistics and what follows them take, before that of the sort. */
static size_t
stats_bytes(void)
{
	size_t end = 0;

	(void) gpusort_lay_temp(&end, sizeof(GpuSortKeyStats) + sizeof(GpuSortMapCheck));
	return end;
}

/* Where the check that goes with the statistics is once they have been read back. */
static GpuSortMapCheck *
mirrored_check(const GpuSortDeviceWait *wait)
{
	return (GpuSortMapCheck *) ((GpuSortKeyStats *) wait->mirror + 1);
}

/* Has keys checked whether they want a map, and the answer put into the mirror.  Does not wait. */
static int
check_map(const GpuSortKeySource *source, const GpuSortPackPlan *plan, uint32_t rows, GpuSortKeyStats *stats,
		  const GpuSortDeviceWait *wait, cudaStream_t stream)
{
	GpuSortMapCheck *check = (GpuSortMapCheck *) (stats + 1);
	cudaError_t status = gpusort_map_check(source, plan, rows, check, stream);

	if (status != cudaSuccess)
		return status;
	return cudaMemcpyAsync(mirrored_check(wait), check, sizeof(*check), cudaMemcpyDeviceToHost, stream);
}

/* The sort of an array of whose keys nothing is known. */
static void
describe_array(const GpuSortKeySource *source, const GpuSortPackPlan *plan, uint32_t rows, uint32_t limit,
			   const GpuSortDeviceWait *wait, GpuSortDeviceSort *sort)
{
	*sort = {};
	sort->source = *source;
	sort->plan = plan;
	sort->rows = rows;
	sort->limit = limit;
	if (wait != NULL)
		sort->wait = *wait;
}

int
gpusort_device_sort_array_bytes(const GpuSortKeySource *source, uint32_t rows, uint32_t limit, size_t *temp_bytes)
{
	GpuSortPackPlan plan;
	GpuSortDeviceSort sort;
	int status;

	/* No plan takes more than one that keeps all bits and subtracts something. */
	plan = {};
	plan.key_words = source->key_words;
	plan.packed_bits = gpusort_plain_bytes(source->kind) == 4 ? 32 : 64 * source->key_words;
	plan.words[0].base = 1;
	describe_array(source, &plan, rows, limit, NULL, &sort);
	status = gpusort_device_sort_bytes(&sort, temp_bytes);
	*temp_bytes += stats_bytes();
	return status;
}

/* Reads statistics back into the mirror.  Waits. */
static int
read_stats(const GpuSortKeyStats *stats, const GpuSortDeviceWait *wait, cudaStream_t stream)
{
	cudaError_t status = cudaMemcpyAsync(wait->mirror, stats, sizeof(*stats), cudaMemcpyDeviceToHost, stream);

	return status == cudaSuccess ? gpusort_device_wait(wait, stream) : status;
}

/*
 * Guesses a plan from a sample of the rows, so that prefixes can be made in the pass that
 * gathers the statistics; *guessed tells if that is worth trying.  A plan that subtracts
 * minimums would hardly serve all rows, and rows that seem to be in order need no
 * prefixes.
 */
static int
guess_plan(const GpuSortKeySource *source, uint32_t rows, const GpuSortDeviceWait *wait, GpuSortKeyStats *stats,
		   GpuSortPackPlan *plan, bool *guessed, cudaStream_t stream)
{
	const GpuSortKeyStats *found = (const GpuSortKeyStats *) wait->mirror;
	const uint32_t step = rows / GPUSORT_SAMPLE_ROWS;
	uint32_t sampled;
	int ended;

	*guessed = false;
	if (step < SAMPLE_STEP_MIN || source->key_words > GPUSORT_STATS_PREFIX_WORDS ||
		source->kind == GPUSORT_KEYS_UINT32)
		return cudaSuccess;
	sampled = rows / step + (rows % step > 0);
	if ((ended = gpusort_key_stats_reset(stats, (GpuSortStream) stream)) != 0 ||
		(ended = gpusort_key_stats_sample(source, rows, step, stats, (GpuSortStream) stream)) != 0 ||
		(ended = read_stats(stats, wait, stream)) != 0)
		return ended;
	gpusort_pack_plan(plan, source->key_words, found);
	*guessed = gpusort_pack_covers(plan, found) && !gpusort_key_stats_sorted(found, sampled) &&
		!gpusort_key_stats_reversed(found, sampled);
	return cudaSuccess;
}

/* The plan that keeps all 32 bits of a plain value. */
static void
plan_whole(GpuSortPackPlan *plan)
{
	GpuSortKeyStats any = {};

	any.key_or[0] = any.key_max[0] = UINT32_MAX;
	gpusort_pack_plan(plan, 1, &any);
}

int
gpusort_device_sort_array(const GpuSortKeySource *source, uint32_t rows, uint32_t limit, const GpuSortDeviceWait *wait,
						  void *temp, size_t temp_bytes, uint32_t *ids, GpuSortStream stream)
{
	GpuSortKeyStats *stats = (GpuSortKeyStats *) temp;
	const GpuSortKeyStats *found = (const GpuSortKeyStats *) wait->mirror;
	size_t start;
	GpuSortPackPlan plan;
	GpuSortDeviceSort sort;
	bool guessed;
	bool checked;
	int ended;

	static_assert(sizeof(GpuSortKeyStats) + sizeof(GpuSortMapCheck) <= GPUSORT_DEVICE_SORT_MIRROR_BYTES, "statistics fit the mirror");
	if (wait->mirror == NULL || source->kind == GPUSORT_KEYS_REFS || rows > GPUSORT_DEVICE_SORT_MAX_ROWS)
		return cudaErrorInvalidValue;
	if ((ended = gpusort_device_sort_array_bytes(source, rows, limit, &start)) != 0)
		return ended;
	if (temp_bytes < start)
		return cudaErrorInvalidValue;
	start = stats_bytes();

	if (rows < GPUSORT_STATS_ROWS_MIN && gpusort_plain_bytes(source->kind) == 4)
	{
		plan_whole(&plan);
		describe_array(source, &plan, rows, limit, wait, &sort);
		return gpusort_device_sort(&sort, (char *) temp + start, temp_bytes - start, ids, NULL, stream);
	}
	if ((ended = guess_plan(source, rows, wait, stats, &plan, &guessed, (cudaStream_t) stream)) != 0 ||
		(ended = gpusort_key_stats_reset(stats, stream)) != 0)
		return ended;

	/* Whether the keys want a map is read together with the statistics: a wait for it alone costs more than it may save. */
	describe_array(source, &plan, rows, limit, wait, &sort);
	checked = guessed && may_map(&sort);
	if (checked && (ended = check_map(source, &plan, rows, stats, wait, (cudaStream_t) stream)) != 0)
		return ended;
	if (guessed)
	{
		uint32_t *counts;

		/* prefixes lie where the sort would make them, the rest of temp is that of a sort to which they are given */
		sort.prefixes = (uint32_t *) ((char *) temp + start);
		(void) gpusort_lay_temp(&start, rows * sizeof(uint32_t));
		ended = gpusort_device_sort_begin(&sort, (char *) temp + start, temp_bytes - start, &counts, stream);
		sort.counted = counts != NULL;
		if (ended == 0)
			ended = gpusort_key_stats_prefixes(source, &plan, rows, stats, sort.prefixes, counts, stream);
	}
	else
		ended = gpusort_key_stats_array(source, rows, stats, stream);
	if (ended != 0 || (ended = read_stats(stats, wait, (cudaStream_t) stream)) != 0)
		return ended;

	if (checked && gpusort_map_wanted(mirrored_check(wait)) && gpusort_pack_covers(&plan, found))
	{
		/* the sort makes the prefixes itself */
		describe_array(source, &plan, rows, limit, wait, &sort);
		start = stats_bytes();
	}
	else if (!guessed || !gpusort_pack_covers(&plan, found))
	{
		/* a plan needs all statistics */
		if (guessed &&
			((ended = gpusort_key_stats_reset(stats, stream)) != 0 ||
			 (ended = gpusort_key_stats_array(source, rows, stats, stream)) != 0 ||
			 (ended = read_stats(stats, wait, (cudaStream_t) stream)) != 0))
			return ended;
		gpusort_pack_plan(&plan, source->key_words, found);
		describe_array(source, &plan, rows, limit, wait, &sort);
		start = stats_bytes();
	}
	if (gpusort_key_stats_sorted(found, rows))
		sort.order = GPUSORT_INPUT_SORTED;
	else if (gpusort_key_stats_reversed(found, rows))
		sort.order = GPUSORT_INPUT_REVERSED;
	return gpusort_device_sort(&sort, (char *) temp + start, temp_bytes - start, ids, NULL, stream);
}
