/*-------------------------------------------------------------------------
 *
 * judge.cu
 *	  The order that is right, by CUB or std::stable_sort; see judge.h.
 *
 *-------------------------------------------------------------------------
 */
#include "judge.h"

#ifdef __CUDACC__

#include <cub/device/device_radix_sort.cuh>
#include <stdio.h>

/* Says which of the judge's own steps failed. */
static cudaError_t
judge_step(const char *step, cudaError_t status)
{
	if (status != cudaSuccess)
		printf("# the judge: %s: %s\n", step, cudaGetErrorString(status));
	return status;
}

__global__ static void
number_rows(uint32_t *ids, uint32_t rows)
{
	uint64_t row = blockIdx.x * (uint64_t) blockDim.x + threadIdx.x;

	if (row < rows)
		ids[row] = (uint32_t) row;
}

__global__ static void
count_differences(const uint32_t *a, const uint32_t *b, uint64_t words, unsigned long long *differences)
{
	for (uint64_t i = blockIdx.x * (uint64_t) blockDim.x + threadIdx.x; i < words;
		 i += (uint64_t) gridDim.x * blockDim.x)
	{
		if (a[i] != b[i])
			atomicAdd(differences, 1ULL);
	}
}

cudaError_t
judge_order_32(const uint32_t *keys, uint32_t rows, int bits, uint32_t *ids)
{
	size_t temp_bytes = 0;
	char *memory = NULL;
	size_t at_ids;
	size_t at_temp;
	cudaError_t status;

	if (rows == 0)
		return cudaSuccess;
	/* CUB takes an error that someone left behind for its own, and may hang close to 2^32 rows of uint32_t */
	status = judge_step("an error before", cudaGetLastError());
	if (status != cudaSuccess)
		return status;
	status = judge_step(
		"CUB's memory",
		cub::DeviceRadixSort::SortPairs(NULL, temp_bytes, keys, (uint32_t *) NULL, ids, ids, (int64_t) rows, 0, bits));
	at_ids = ((size_t) rows * sizeof(uint32_t) + 255) / 256 * 256;
	at_temp = at_ids + ((size_t) rows * 4 + 255) / 256 * 256;
	if (status == cudaSuccess)
		status = judge_step("memory", cudaMalloc((void **) &memory, at_temp + temp_bytes));
	if (status != cudaSuccess)
		return status;
	number_rows<<<(uint32_t) (((uint64_t) rows + 255) / 256), 256>>>((uint32_t *) (memory + at_ids), rows);
	status = judge_step("row numbers", cudaDeviceSynchronize());
	if (status == cudaSuccess)
		status =
			judge_step("CUB's sort",
					   cub::DeviceRadixSort::SortPairs(memory + at_temp, temp_bytes, keys, (uint32_t *) memory,
													   (uint32_t *) (memory + at_ids), ids, (int64_t) rows, 0, bits));
	if (status == cudaSuccess)
		status = judge_step("CUB's kernels", cudaDeviceSynchronize());
	(void) cudaFree(memory);
	return status;
}

cudaError_t
judge_compare(const uint32_t *a, const uint32_t *b, uint64_t words, uint64_t *differences)
{
	unsigned long long *count = NULL;
	cudaError_t status = cudaMalloc((void **) &count, sizeof(*count));

	if (status != cudaSuccess)
		return status;
	status = cudaMemset(count, 0, sizeof(*count));
	if (status == cudaSuccess)
	{
		count_differences<<<1024, 256>>>(a, b, words, count);
		status = cudaMemcpy(differences, count, sizeof(*count), cudaMemcpyDeviceToHost);
	}
	(void) cudaFree(count);
	return status;
}

#else

#include <algorithm>
#include <numeric>

cudaError_t
judge_order_32(const uint32_t *keys, uint32_t rows, int bits, uint32_t *ids)
{
	const uint32_t mask = bits == 32 ? ~0U : (1U << bits) - 1;

	std::iota(ids, ids + rows, 0);
	std::stable_sort(ids, ids + rows, [=](uint32_t a, uint32_t b)
					 { return (keys[a] & mask) < (keys[b] & mask); });
	return cudaSuccess;
}

cudaError_t
judge_compare(const uint32_t *a, const uint32_t *b, uint64_t words, uint64_t *differences)
{
	*differences = 0;
	for (uint64_t i = 0; i < words; i++)
		*differences += a[i] != b[i];
	return cudaSuccess;
}

#endif
