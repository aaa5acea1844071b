/*-------------------------------------------------------------------------
 *
 * partial_keys.cu
 *	  Partial keys of rows by a plan; see partial_keys.h.
 *
 * The key is read, 4 bytes are written; where the radix core wants it the digits are
 * counted on the way, which saves it a read.
 *
 *-------------------------------------------------------------------------
 */
#include "sort/partial_keys.h"

#include "sort/digit_histogram.cuh"
#include "sort/key_source.h"
#include "sort/launch.h"
#include "sort/radix/radix_sort.h"

#define PARTIAL_KEY_THREADS 256
#define PARTIAL_KEY_ITEMS   4

/* A block that counts digits has a multiprocessor to itself. */
#define COUNT_THREADS 1024
#define COUNT_BLOCKS  512

/* partial_keys[i] = partial key of row i, or of row ids[i]; the plan keeps nothing else. */
template <int FORM>
static __global__ void
__launch_bounds__(PARTIAL_KEY_THREADS)
	make_partial_keys(const __grid_constant__ GpuSortKeySource source, const __grid_constant__ GpuSortPackPlan window,
					  const uint32_t *ids, uint32_t rows, uint32_t *partial_keys)
{
	const uint64_t start = (uint64_t) blockIdx.x * (PARTIAL_KEY_THREADS * PARTIAL_KEY_ITEMS) + threadIdx.x;
	const uint64_t *places[PARTIAL_KEY_ITEMS];
	uint64_t made[PARTIAL_KEY_ITEMS];
	uint32_t packed[PARTIAL_KEY_ITEMS];

	GPUSORT_UNROLL
	for (int k = 0; k < PARTIAL_KEY_ITEMS; k++)
	{
		const uint64_t i = start + k * PARTIAL_KEY_THREADS;
		const uint32_t there = i < rows ? (uint32_t) i : rows - 1;

		places[k] = gpusort_source_key<FORM>(&source, ids != NULL ? ids[there] : there, &made[k]);
	}
	gpusort_pack_keys(&window, places, packed);
	GPUSORT_UNROLL
	for (int k = 0; k < PARTIAL_KEY_ITEMS; k++)
	{
		const uint64_t i = start + k * PARTIAL_KEY_THREADS;

		if (i < rows)
			partial_keys[i] = packed[k];
	}
}

/*
 * partial_keys[i] = partial key of row i,
 * and adds their digits to histogram; the plan keeps nothing else.
 */
template <int FORM>
static __global__ void
__launch_bounds__(COUNT_THREADS)
	count_partial_keys(const __grid_constant__ GpuSortKeySource source, const __grid_constant__ GpuSortPackPlan window,
					   uint32_t rows, uint32_t *partial_keys, int digits, uint32_t *histogram)
{
	GPUSORT_DYNAMIC_SHARED(uint32_t, bins);

	clear_histogram<COUNT_THREADS>(bins, digits);
	for (uint64_t start = (uint64_t) blockIdx.x * (COUNT_THREADS * PARTIAL_KEY_ITEMS) + threadIdx.x; start < rows;
		 start += (uint64_t) gridDim.x * (COUNT_THREADS * PARTIAL_KEY_ITEMS))
	{
		uint32_t partial_key[PARTIAL_KEY_ITEMS];

		gpusort_pack_rows<FORM, COUNT_THREADS>(source, window, start, rows, partial_key);
		GPUSORT_UNROLL
		for (int k = 0; k < PARTIAL_KEY_ITEMS; k++)
		{
			const uint64_t row = start + k * COUNT_THREADS;
			const uint32_t own[1] = {partial_key[k]};

			if (row >= rows)
				break;
			partial_keys[row] = own[0];
			count_key_digits(bins, digits, own);
		}
	}
	add_histogram<COUNT_THREADS>(bins, digits, histogram);
}

static uint32_t
blocks_of(uint64_t items, uint32_t per_block)
{
	return (uint32_t) ((items + per_block - 1) / per_block);
}

cudaError_t
gpusort_make_partial_keys(const GpuSortKeySource *source, const GpuSortPackPlan *plan, const uint32_t *ids,
						  uint32_t rows, uint32_t *partial_keys, cudaStream_t stream)
{
	GpuSortPackPlan window;

	if (rows == 0)
		return cudaSuccess;
	gpusort_pack_window_plan(&window, plan, 0, 32);
#define MAKE_PARTIAL_KEYS(FORM) make_partial_keys<FORM>
	GPUSORT_START_BY_FORM(source, MAKE_PARTIAL_KEYS, blocks_of(rows, PARTIAL_KEY_THREADS * PARTIAL_KEY_ITEMS),
						  PARTIAL_KEY_THREADS, stream, *source, window, ids, rows, partial_keys);
#undef MAKE_PARTIAL_KEYS
	return cudaGetLastError();
}

cudaError_t
gpusort_make_counted_partial_keys(const GpuSortKeySource *source, const GpuSortPackPlan *plan, uint32_t rows,
								  uint32_t *partial_keys, uint32_t *histogram, cudaStream_t stream)
{
	const uint32_t wanted = blocks_of(rows, COUNT_THREADS);
	GpuSortPackPlan window;
	int digits;

	gpusort_pack_window_plan(&window, plan, 0, 32);
	digits = gpusort_radix_digits((int) window.packed_bits);
#define COUNT_PARTIAL_KEYS(FORM)                                                                                \
	GPUSORT_START_KERNEL_SHARED_OF(count_partial_keys<FORM>, wanted < COUNT_BLOCKS ? wanted : COUNT_BLOCKS,     \
								   COUNT_THREADS, GPUSORT_HISTOGRAM_SHARED(digits),                             \
								   GPUSORT_HISTOGRAM_SHARED(GPUSORT_MAX_PASSES), stream, *source, window, rows, \
								   partial_keys, digits, histogram)
	GPUSORT_CALL_BY_FORM(source, COUNT_PARTIAL_KEYS);
#undef COUNT_PARTIAL_KEYS
	return cudaGetLastError();
}
