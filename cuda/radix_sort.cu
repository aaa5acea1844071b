/*-------------------------------------------------------------------------
 *
 * radix_sort.cu
 *	  The only place that uses CUB: the radix sort of (packed key, row id) and the
 *	  running sum of row lengths.
 *
 * Kept apart because CUB's templates take nearly all of the build's time: two
 * sorts (32-bit and 64-bit keys, ascending, unsigned, 32-bit ids) and one sum.
 *
 * The count of rows is passed as uint32_t, for which CUB has faster kernels than
 * for 64-bit counts; keys and ids are double buffers, so CUB's temporary storage
 * stays below a byte per row.
 *
 *-------------------------------------------------------------------------
 */
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <thrust/iterator/transform_iterator.h>

#include "steps.h"

/* A ref's length in words. */
struct RefWords
{
	__host__ __device__ uint64_t
	operator()(GpuSortRowRef ref) const
	{
		return gpusort_ref_words(ref);
	}
};

/* With temp = NULL only sets *temp_bytes, as CUB does. */
template <typename Key>
static cudaError_t
sort_pairs(void *temp, size_t *temp_bytes, GpuSortWork *work, uint32_t rows, int bits, cudaStream_t stream)
{
	cub::DoubleBuffer<Key> keys((Key *) work->keys[0], (Key *) work->keys[1]);
	cub::DoubleBuffer<uint32_t> ids(work->ids[0], work->ids[1]);
	cudaError_t status = cub::DeviceRadixSort::SortPairs(temp, *temp_bytes, keys, ids, rows, 0, bits, stream);

	if (status == cudaSuccess && temp != NULL)
	{
		work->keys[0] = keys.Current();
		work->keys[1] = keys.Alternate();
		work->ids[0] = ids.Current();
		work->ids[1] = ids.Alternate();
	}
	return status;
}

static cudaError_t
sum_words(void *temp, size_t *temp_bytes, const GpuSortRowRef *refs, uint64_t *ends, uint32_t rows,
		  cudaStream_t stream)
{
	return cub::DeviceScan::InclusiveSum(temp, *temp_bytes, thrust::make_transform_iterator(refs, RefWords()),
										 ends, (int64_t) rows, stream);
}

cudaError_t
gpusort_radix_temp_bytes(uint32_t rows, bool wide, size_t *bytes)
{
	GpuSortWork none = {};
	size_t		for_sort = 0;
	size_t		for_sum = 0;
	cudaError_t status;

	/* More bits never take less. */
	if (wide)
		status = sort_pairs<uint64_t>(NULL, &for_sort, &none, rows, 64, 0);
	else
		status = sort_pairs<uint32_t>(NULL, &for_sort, &none, rows, 32, 0);
	if (status == cudaSuccess)
		status = sum_words(NULL, &for_sum, NULL, NULL, rows, 0);
	*bytes = for_sort > for_sum ? for_sort : for_sum;
	return status;
}

cudaError_t
gpusort_radix_sort(GpuSortWork *work, uint32_t rows, bool wide, int bits, cudaStream_t stream)
{
	size_t		temp_bytes = work->temp_bytes;

	if (wide)
		return sort_pairs<uint64_t>(work->temp, &temp_bytes, work, rows, bits, stream);
	return sort_pairs<uint32_t>(work->temp, &temp_bytes, work, rows, bits, stream);
}

cudaError_t
gpusort_running_words(GpuSortWork *work, uint32_t rows, cudaStream_t stream)
{
	size_t		temp_bytes = work->temp_bytes;

	return sum_words(work->temp, &temp_bytes, work->sorted_refs, work->ends, rows, stream);
}
