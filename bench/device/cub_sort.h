/*-------------------------------------------------------------------------
 *
 * cub_sort.h
 *	  CUB's radix sort, the benchmark's rival and judge.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_BENCH_CUB_SORT_H
#define GPUSORT_BENCH_CUB_SORT_H

#include <cuda_runtime.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Sorts keys[0] and, unless ids[0] is NULL, ids[0] with them; keys[1] and ids[1] are
 * as large.  What is in order is keys[0] and ids[0] when it returns: the pointers
 * are exchanged.  wide_count: the number of rows is an int64_t to CUB, for which it
 * has other kernels than for a uint32_t.  With temp NULL only sets *temp_bytes.
 */
typedef struct BenchCubArgs
{
	void *temp;
	size_t *temp_bytes;
	void *keys[2];
	uint32_t *ids[2];
	uint64_t rows;
	bool wide_count;
} BenchCubArgs;

extern cudaError_t bench_cub_sort_u32(BenchCubArgs *args, cudaStream_t stream);
extern cudaError_t bench_cub_sort_u64(BenchCubArgs *args, cudaStream_t stream);
extern cudaError_t bench_cub_sort_float(BenchCubArgs *args, cudaStream_t stream);

#endif /* GPUSORT_BENCH_CUB_SORT_H */
