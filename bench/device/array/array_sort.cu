/*-------------------------------------------------------------------------
 *
 * array_sort.cu
 *	  The sort of an array of which nothing is known: statistics, plan, sort; see array_sort.h.
 *
 * Statistics and partial keys take one read of the keys: the plan is guessed from a sample,
 * and made again in the rare case that the statistics say it does not serve.  Keys
 * that want a quantile map are read once for each.
 *
 *-------------------------------------------------------------------------
 */
#include "array/array_sort.h"

#include <cuda_runtime.h>

#include "array/array_stats.h"
#include "sort/key_stats.cuh"
#include "sort/quantile_map.h"
#include "sort/radix/radix_sort.h"
#include "sort/region.h"
#include "sort/sort_step.h"

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

/* The part of temp that statistics and what follows them take, before that of the sort. */
static size_t
stats_bytes(void)
{
	size_t end = 0;

	(void) gpusort_region_lay(&end, sizeof(GpuSortKeyStats) + sizeof(GpuSortSkewCheck));
	return end;
}

/* Where the check that goes with the statistics is once they have been read back. */
static GpuSortSkewCheck *
mirrored_check(const GpuSortDeviceWait *wait)
{
	return (GpuSortSkewCheck *) ((GpuSortKeyStats *) wait->mirror + 1);
}

/* Has keys checked whether they want a map, and the answer put into the mirror.  Does not wait. */
static int
check_map(const GpuSortKeySource *source, const GpuSortPackPlan *plan, uint32_t rows, GpuSortKeyStats *stats,
		  const GpuSortDeviceWait *wait, cudaStream_t stream)
{
	GpuSortSkewCheck *check = (GpuSortSkewCheck *) (stats + 1);
	cudaError_t status = gpusort_skew_check(source, plan, rows, check, stream);

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
gpusort_array_sort_bytes(const GpuSortKeySource *source, uint32_t rows, uint32_t limit, size_t *temp_bytes)
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

/*
 * Returns true if a plan made of some rows serves others as well, which have these statistics:
 * if it subtracts nothing and keeps all bits that vary.  That it also may otherwise is not
 * looked into.
 */
static bool
plan_covers(const GpuSortPackPlan *plan, const GpuSortKeyStats *stats)
{
	for (uint32_t w = 0; w < plan->key_words; w++)
	{
		const GpuSortPackWord *word = &plan->words[w];

		if (word->base != 0 || ((stats->key_or[w] ^ stats->key_and[w]) & ~word->kept) != 0)
			return false;
	}
	return true;
}

/* Reads statistics back into the mirror.  Waits. */
static int
read_stats(const GpuSortKeyStats *stats, const GpuSortDeviceWait *wait, cudaStream_t stream)
{
	cudaError_t status = cudaMemcpyAsync(wait->mirror, stats, sizeof(*stats), cudaMemcpyDeviceToHost, stream);

	return status == cudaSuccess ? gpusort_device_wait(wait, stream) : status;
}

/*
 * Guesses a plan from a sample of the rows, so that partial keys can be made in the pass that
 * gathers the statistics; *guessed tells if that is worth trying.  A plan that subtracts
 * minimums would hardly serve all rows, and rows that seem to be in order need no
 * partial keys.
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
	if (step < SAMPLE_STEP_MIN || source->key_words > GPUSORT_STATS_GROUP ||
		source->kind == GPUSORT_KEYS_UINT32)
		return cudaSuccess;
	sampled = rows / step + (rows % step > 0);
	if ((ended = gpusort_key_stats_reset(stats, (GpuSortStream) stream)) != 0 ||
		(ended = gpusort_key_stats_sample(source, rows, step, stats, (GpuSortStream) stream)) != 0 ||
		(ended = read_stats(stats, wait, stream)) != 0)
		return ended;
	gpusort_pack_plan(plan, source->key_words, found);
	*guessed = plan_covers(plan, found) && !gpusort_key_stats_sorted(found, sampled) &&
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

/*
 * Returns true if the array is its own partial keys, and there is nothing to do but to sort by
 * them.  The radix core goes by the low bits; constant bits above them do not matter to it.
 */
static bool
is_own_partial_keys(const GpuSortDeviceSort *sort)
{
	const GpuSortPackWord *word = &sort->plan->words[0];

	return sort->source.kind == GPUSORT_KEYS_UINT32 && sort->partial_keys == NULL &&
		sort->sorted_partial_keys == NULL && word->base == 0 && word->kept == gpusort_ones(word->bits) &&
		sort->order == GPUSORT_INPUT_UNKNOWN && sort->limit == 0 && sort->plan->packed_bits > 0 && sort->rows > 1;
}

int
gpusort_array_sort_planned(const GpuSortDeviceSort *sort, void *temp, size_t temp_bytes, uint32_t *ids,
						   GpuSortStream stream)
{
	GpuSortRadixSort core = {};

	if (!is_own_partial_keys(sort))
		return gpusort_device_sort(sort, temp, temp_bytes, ids, NULL, stream);
	core.temp = temp;
	core.temp_bytes = temp_bytes;
	core.keys_in = (const uint32_t *) sort->source.base;
	core.rows = sort->rows;
	core.bits = (int) sort->plan->packed_bits;
	core.ids_out = ids;
	return gpusort_radix_sort(&core, (cudaStream_t) stream);
}

int
gpusort_array_sort(const GpuSortKeySource *source, uint32_t rows, uint32_t limit, const GpuSortDeviceWait *wait,
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

	static_assert(sizeof(GpuSortKeyStats) + sizeof(GpuSortSkewCheck) <= GPUSORT_DEVICE_SORT_MIRROR_BYTES,
				  "statistics fit the mirror");
	if (wait->mirror == NULL || source->kind == GPUSORT_KEYS_REFS || rows > GPUSORT_DEVICE_SORT_MAX_ROWS)
		return cudaErrorInvalidValue;
	if ((ended = gpusort_array_sort_bytes(source, rows, limit, &start)) != 0)
		return ended;
	if (temp_bytes < start)
		return cudaErrorInvalidValue;
	start = stats_bytes();

	if (rows < GPUSORT_STATS_ROWS_MIN && gpusort_plain_bytes(source->kind) == 4)
	{
		plan_whole(&plan);
		describe_array(source, &plan, rows, limit, wait, &sort);
		return gpusort_array_sort_planned(&sort, (char *) temp + start, temp_bytes - start, ids, stream);
	}
	if ((ended = guess_plan(source, rows, wait, stats, &plan, &guessed, (cudaStream_t) stream)) != 0 ||
		(ended = gpusort_key_stats_reset(stats, stream)) != 0)
		return ended;

	/* Whether the keys are skewed is read together with the statistics: a wait for it costs more than it may save. */
	describe_array(source, &plan, rows, limit, wait, &sort);
	checked = guessed && gpusort_may_map(&sort);
	if (checked && (ended = check_map(source, &plan, rows, stats, wait, (cudaStream_t) stream)) != 0)
		return ended;
	if (guessed)
	{
		uint32_t *histogram;

		/* partial keys lie where the sort would make them; the rest of temp is for a sort that is given them */
		sort.partial_keys = (uint32_t *) ((char *) temp + start);
		(void) gpusort_region_lay(&start, rows * sizeof(uint32_t));
		ended = gpusort_device_sort_begin(&sort, (char *) temp + start, temp_bytes - start, &histogram, stream);
		sort.counted = histogram != NULL;
		if (ended == 0)
			ended = gpusort_key_stats_partial_keys(source, &plan, rows, stats, sort.partial_keys, histogram, stream);
	}
	else
		ended = gpusort_key_stats_array(source, rows, stats, stream);
	if (ended != 0 || (ended = read_stats(stats, wait, (cudaStream_t) stream)) != 0)
		return ended;

	if (checked && gpusort_quantile_map_wanted(mirrored_check(wait)) && plan_covers(&plan, found))
	{
		/* the sort makes the partial keys itself */
		describe_array(source, &plan, rows, limit, wait, &sort);
		start = stats_bytes();
	}
	else if (!guessed || !plan_covers(&plan, found))
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
	return gpusort_array_sort_planned(&sort, (char *) temp + start, temp_bytes - start, ids, stream);
}
