/*-------------------------------------------------------------------------
 *
 * cub_sort.cu
 *	  CUB's radix sort; see cub_sort.h.
 *
 * Compiled once for each type of keys, -DBENCH_CUB_KEY=u32, u64 or float, as its
 * templates take most of the build's time.  Where CUDA is emulated,
 * std::stable_sort stands in.
 *
 *-------------------------------------------------------------------------
 */
#include "cub_sort.h"

#define NAME_OF(key) bench_cub_sort_##key
#define NAME(key)    NAME_OF(key)
#define TYPE_OF(key) key_type_##key
#define TYPE(key)    TYPE_OF(key)

typedef uint32_t key_type_u32;
typedef uint64_t key_type_u64;
typedef float key_type_float;

typedef TYPE(BENCH_CUB_KEY) Key;

#ifdef __CUDACC__

#include <cub/device/device_radix_sort.cuh>

template <typename Count>
static cudaError_t
sort_rows(BenchCubArgs *args, Count rows, cudaStream_t stream)
{
	cub::DoubleBuffer<Key> keys((Key *) args->keys[0], (Key *) args->keys[1]);
	cub::DoubleBuffer<uint32_t> ids(args->ids[0], args->ids[1]);
	cudaError_t status;

	if (args->ids[0] != NULL || args->ids[1] != NULL)
		status = cub::DeviceRadixSort::SortPairs(args->temp, *args->temp_bytes, keys, ids, rows, 0,
												 (int) sizeof(Key) * 8, stream);
	else
		status = cub::DeviceRadixSort::SortKeys(args->temp, *args->temp_bytes, keys, rows, 0, (int) sizeof(Key) * 8,
												stream);
	if (status == cudaSuccess && args->temp != NULL)
	{
		args->keys[0] = keys.Current();
		args->keys[1] = keys.Alternate();
		args->ids[0] = ids.Current();
		args->ids[1] = ids.Alternate();
	}
	return status;
}

#else

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

template <typename Count>
static cudaError_t
sort_rows(BenchCubArgs *args, Count rows, cudaStream_t stream)
{
	Key *keys = (Key *) args->keys[0];
	std::vector<uint32_t> order((size_t) rows);

	*args->temp_bytes = 1;
	if (args->temp == NULL)
		return cudaSuccess;
	(void) cudaStreamSynchronize(stream);
	std::iota(order.begin(), order.end(), 0);
	std::stable_sort(order.begin(), order.end(), [=](uint32_t a, uint32_t b)
					 { return keys[a] < keys[b]; });
	for (size_t i = 0; i < order.size(); i++)
	{
		((Key *) args->keys[1])[i] = keys[order[i]];
		if (args->ids[0] != NULL)
			args->ids[1][i] = args->ids[0][order[i]];
	}
	std::swap(args->keys[0], args->keys[1]);
	std::swap(args->ids[0], args->ids[1]);
	return cudaSuccess;
}

#endif

cudaError_t
NAME(BENCH_CUB_KEY)(BenchCubArgs *args, cudaStream_t stream)
{
	if (args->wide_count)
		return sort_rows<int64_t>(args, (int64_t) args->rows, stream);
	return sort_rows<uint32_t>(args, (uint32_t) args->rows, stream);
}
