/*-------------------------------------------------------------------------
 *
 * device_sort.cu
 *	  The device sort from end to end; device_sort.h is its contract.
 *
 *	1. Partial keys of all rows, if the caller has not made them: the key is read, 4
 *	   bytes are written.  Where many rows would tie on them a quantile map makes them
 *	   (quantile_map.cu).
 *	2. Radix sort of (partial key, row number) (radix_sort.cu).  Up to 32 packed bits
 *	   that is all, and partial keys need not leave it.
 *	3. Rows that tie on the partial key (tie_break.cu).
 *
 * With a small limit, rows are selected by their partial keys first (top_k.cu).  What the
 * select keeps is in no order, so it is sorted by row number, its partial keys are made
 * again, and 2 and 3 follow for these rows alone.
 *
 * Input in order, or strictly in the opposite order, is only numbered.
 *
 *-------------------------------------------------------------------------
 */
#include "sort/device_sort.h"

#include <cuda_runtime.h>

#include "sort/launch.h"
#include "sort/partial_keys.h"
#include "sort/quantile_map.h"
#include "sort/radix/radix_sort.h"
#include "sort/region.h"
#include "sort/sort_step.h"
#include "sort/tie_break.h"
#include "sort/top_k.h"

#define NUMBER_THREADS 256
#define NUMBER_ITEMS   32

/* Everything in temp. */
typedef struct SortTemp
{
	GpuSortQuantileMap *map; /* NULL: partial keys are the packed keys' top bits */
	uint32_t *partial_keys;  /* the caller's, if it made them */
	void *sorting;
	size_t sorting_bytes;
	void *tie_end;

	/* with a select, in the place of sorting */
	uint32_t *kept_ids;
	uint32_t *kept_in_row_order;
	void *select;
	size_t select_bytes;
} SortTemp;

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

/* Returns true if there is anything to do but numbering rows. */
static bool
needs_sorting(const GpuSortDeviceSort *sort)
{
	return sort->order == GPUSORT_INPUT_UNKNOWN && sort->plan->packed_bits > 0 && sort->rows > 1;
}

bool
gpusort_may_map(const GpuSortDeviceSort *sort)
{
	return needs_sorting(sort) && !gpusort_select_pays(sort) &&
		gpusort_quantile_map_considered(sort->plan, sort->rows) &&
		(sort->any_partial_keys || (sort->partial_keys == NULL && sort->sorted_partial_keys == NULL));
}

static int
partial_key_bits(const GpuSortPackPlan *plan)
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
		status = gpusort_break_ties_bytes(rows, plan->packed_bits, &ties);
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
	if (gpusort_may_map(sort))
		work->map = (GpuSortQuantileMap *) (base + gpusort_region_lay(&end, sizeof(GpuSortQuantileMap)));
	if (needs_sorting(sort))
	{
		work->partial_keys = sort->partial_keys;
		if (sort->partial_keys == NULL)
			work->partial_keys = (uint32_t *) (base + gpusort_region_lay(&end, sort->rows * sizeof(uint32_t)));

		start = end;
		status = sorting_bytes(sort->plan, sort->rows, &work->sorting_bytes);
		work->sorting = base + gpusort_region_lay(&end, work->sorting_bytes);
	}
	if (status == cudaSuccess && needs_sorting(sort) && selects)
	{
		/* A select that does not keep few rows leaves its memory to the sort of all. */
		const uint32_t capacity = gpusort_select_capacity(sort);
		size_t select_end = start;

		work->kept_ids = (uint32_t *) (base + gpusort_region_lay(&select_end, capacity * sizeof(uint32_t)));
		work->kept_in_row_order = (uint32_t *) (base + gpusort_region_lay(&select_end, capacity * sizeof(uint32_t)));
		status = sorting_bytes(sort->plan, capacity, &work->select_bytes);
		if (work->select_bytes < gpusort_select_bytes(sort))
			work->select_bytes = gpusort_select_bytes(sort);
		work->select = base + gpusort_region_lay(&select_end, work->select_bytes);
		if (end < select_end)
			end = select_end;
	}

	/* For gpusort_tie_end, when sorting is done. */
	work->tie_end = base + gpusort_region_lay(&end, sizeof(uint32_t));
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
gpusort_device_sort_begin(const GpuSortDeviceSort *sort, void *temp, size_t temp_bytes, uint32_t **histogram,
						  GpuSortStream stream)
{
	SortTemp work;
	size_t needed;
	cudaError_t status;

	*histogram = NULL;
	if ((status = lay_out(sort, (char *) temp, &work, &needed)) != cudaSuccess)
		return status;
	if (needed > temp_bytes)
		return cudaErrorInvalidValue;
	if (!needs_sorting(sort) || work.kept_ids != NULL)
		return cudaSuccess;
	return gpusort_radix_begin(work.sorting, work.sorting_bytes, sort->rows, partial_key_bits(sort->plan), histogram,
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

	GPUSORT_START_KERNEL(number_rows, blocks_of(written, NUMBER_THREADS * NUMBER_ITEMS), NUMBER_THREADS, stream,
						 sort->rows, written, backwards, ids);
	if ((status = cudaGetLastError()) != cudaSuccess || sort->sorted_partial_keys == NULL || sort->limit > 0)
		return status;
	return gpusort_make_partial_keys(&sort->source, sort->plan, backwards ? ids : NULL, sort->rows,
									 sort->sorted_partial_keys, stream);
}

/*
 * Makes the partial keys of all rows, of `bits` bits, and begins their sort: the top bits of the
 * packed keys, or the codes of a map.  *counted: their digits have been counted for it.
 */
static cudaError_t
begin_with_partial_keys(const GpuSortDeviceSort *sort, const SortTemp *work, const GpuSortQuantileMap *map, int bits,
						bool *counted, cudaStream_t stream)
{
	uint32_t *histogram;
	cudaError_t status = gpusort_radix_begin(work->sorting, work->sorting_bytes, sort->rows, bits, &histogram, stream);

	*counted = histogram != NULL;
	if (status != cudaSuccess)
		return status;
	if (map != NULL)
		return gpusort_quantile_map_codes(&sort->source, sort->plan, sort->rows, map, (uint32_t) bits,
										  work->partial_keys, histogram, stream);
	if (histogram != NULL)
		return gpusort_make_counted_partial_keys(&sort->source, sort->plan, sort->rows, work->partial_keys, histogram,
												 stream);
	return gpusort_make_partial_keys(&sort->source, sort->plan, NULL, sort->rows, work->partial_keys, stream);
}

/* Sorts all rows; partial keys are made already or NULL.  *has_codes: as in GpuSortDeviceSorted. */
static int
sort_all(const GpuSortDeviceSort *sort, const SortTemp *work, const uint32_t *partial_keys, uint32_t *ids,
		 bool *has_codes, cudaStream_t stream)
{
	const bool rounds = sort->plan->packed_bits > 32;
	int bits = partial_key_bits(sort->plan);
	bool counted = sort->counted && partial_keys != NULL;
	uint32_t *sorted = sort->sorted_partial_keys;
	GpuSortMapUse use = {};
	GpuSortRadixSort core = {};
	GpuSortTiedRows tied;
	cudaError_t status = cudaSuccess;

	if (work->map != NULL)
	{
		int ended =
			gpusort_quantile_map_find(&sort->source, sort->plan, sort->rows, &sort->wait, work->map, &use, stream);

		if (ended != 0)
			return ended;
		if (use.code_bits > 0)
		{
			partial_keys = NULL;
			bits = (int) use.code_bits;
			*has_codes = true;
		}
	}
	if (partial_keys == NULL)
	{
		partial_keys = work->partial_keys;
		status = begin_with_partial_keys(sort, work, use.code_bits > 0 ? work->map : NULL, bits, &counted, stream);
	}
	if (status != cudaSuccess)
		return status;
	if (sorted == NULL && rounds)
		sorted = work->partial_keys;
	core.temp = work->sorting;
	core.temp_bytes = work->sorting_bytes;
	core.keys_in = partial_keys;
	core.rows = sort->rows;
	core.bits = bits;
	core.counted = counted;
	core.keys_out = sorted;
	core.ids_out = ids;
	status = gpusort_radix_sort(&core, stream);
	if (status != cudaSuccess || !rounds)
		return status;
	tied = GpuSortTiedRows{sorted, ids, sort->rows, use.code_bits > 0 ? 0u : 32u, use.decided};
	return gpusort_break_ties(sort, &tied, work->sorting, work->sorting_bytes, stream);
}

/* Selects rows by their partial keys and sorts those; *kept is 0 if all are to be sorted. */
static int
sort_selected(const GpuSortDeviceSort *sort, const SortTemp *work, const uint32_t *partial_keys, uint32_t *ids,
			  uint32_t *kept, cudaStream_t stream)
{
	const GpuSortSelectMemory memory = {work->kept_ids, ids, work->partial_keys, work->select, work->select_bytes};
	GpuSortRadixSort core = {};
	GpuSortTiedRows tied;
	cudaError_t status;
	int ended = gpusort_select(sort, partial_keys, &memory, kept, stream);

	if (ended != 0 || *kept == 0)
		return ended;

	/* By row number first: keys are the numbers; the core's ids are not needed and go to ids. */
	core.temp = work->select;
	core.temp_bytes = work->select_bytes;
	core.keys_in = work->kept_ids;
	core.rows = *kept;
	core.bits = 32;
	core.keys_out = work->kept_in_row_order;
	core.ids_out = ids;
	status = gpusort_radix_sort(&core, stream);
	if (status == cudaSuccess)
		status = gpusort_make_partial_keys(&sort->source, sort->plan, work->kept_in_row_order, *kept,
										   work->partial_keys, stream);
	if (status == cudaSuccess)
	{
		core.keys_in = work->partial_keys;
		core.ids_in = work->kept_in_row_order;
		core.bits = partial_key_bits(sort->plan);
		core.keys_out = work->partial_keys;
		status = gpusort_radix_sort(&core, stream);
	}
	if (status != cudaSuccess)
		return status;
	tied = GpuSortTiedRows{work->partial_keys, ids, *kept, 32, {0, 0}};
	return gpusort_break_ties(sort, &tied, work->select, work->select_bytes, stream);
}

int
gpusort_device_sort(const GpuSortDeviceSort *sort, void *temp, size_t temp_bytes, uint32_t *ids,
					GpuSortDeviceSorted *sorted, GpuSortStream gpusort_stream)
{
	const cudaStream_t stream = (cudaStream_t) gpusort_stream;
	const bool limited = sort->limit > 0 && sort->limit < sort->rows;
	const uint32_t *partial_keys;
	uint32_t sorted_rows = sort->rows;
	uint32_t end = limited ? sort->limit : sort->rows;
	bool has_codes = false;
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

		partial_keys = sort->partial_keys;
		ended = 0;
		if (work.kept_ids != NULL)
		{
			if (partial_keys == NULL)
			{
				ended =
					gpusort_make_partial_keys(&sort->source, sort->plan, NULL, sort->rows, work.partial_keys, stream);
				partial_keys = work.partial_keys;
			}
			if (ended == 0)
				ended = sort_selected(sort, &work, partial_keys, ids, &kept, stream);
			if (partial_keys == work.partial_keys)
				partial_keys = NULL; /* gone */
		}
		if (ended == 0 && kept == 0)
			ended = sort_all(sort, &work, partial_keys, ids, &has_codes, stream);
		if (kept > 0)
			sorted_rows = kept;
	}
	if (ended == 0 && limited && sort->limit_ties)
		ended = gpusort_tie_end(sort, ids, sorted_rows, sort->limit, &end, work.tie_end, stream);
	if (sorted != NULL)
		*sorted = GpuSortDeviceSorted{end, has_codes};
	return ended;
}
