/*-------------------------------------------------------------------------
 *
 * digit_counts.cuh
 *	  How often each digit of 8 bits occurs in keys of up to 32 bits, counted in
 *	  shared memory by kernels that read keys, or make them.
 *
 * A warp's lanes add to COPIES counters of a digit in turn.  With 32 each lane has its own
 * bank of shared memory, so that none waits for another, whatever the keys are.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DIGIT_COUNTS_CUH
#define GPUSORT_DIGIT_COUNTS_CUH

#include <stdint.h>

#include <cuda_runtime.h>

#include "portable.h"

#define GPUSORT_DIGIT_BITS		8
#define GPUSORT_BINS			256
#define GPUSORT_MAX_PASSES		4

/* Bytes of shared memory: [pass][digit][copy] */
#define GPUSORT_DIGIT_COUNTS_SHARED(passes, copies)	((size_t) (passes) * GPUSORT_BINS * (copies) * sizeof(uint32_t))

#ifdef __CUDACC__
/*
 * Byte `place` of a key, 0 the least significant; 4 is 0 for every key.  One instruction,
 * cheaper than a register to keep its result in, hence volatile.
 */
static __device__ __forceinline__ uint32_t
byte_of(uint32_t key, uint32_t place)
{
	uint32_t	byte;

	asm volatile("prmt.b32 %0, %1, 0, %2;" : "=r"(byte) : "r"(key), "r"(0x4440 + place));
	return byte;
}
#else
#define byte_of(key, place)			((place) < 4 ? (key) >> 8 * (place) & 0xFF : 0)
#endif

/* All threads of the block, before they count; ends with a barrier. */
template <int THREADS, int COPIES>
static __device__ __forceinline__ void
clear_digit_counts(uint32_t *bins, int passes)
{
	for (int i = threadIdx.x; i < passes * GPUSORT_BINS * COPIES; i += THREADS)
		bins[i] = 0;
	__syncthreads();
}

/* Counts the digits of some keys, the least significant first, after `idle` passes whose digit is 0. */
template <int COPIES, int KEYS>
static __device__ __forceinline__ void
count_key_digits(uint32_t *bins, int passes, int idle, const uint32_t (&keys)[KEYS])
{
	const uint32_t copy = threadIdx.x % COPIES;

GPUSORT_UNROLL
	for (int pass = 0; pass < GPUSORT_MAX_PASSES; pass++)
	{
		if (pass < passes)
		{
GPUSORT_UNROLL
			for (int k = 0; k < KEYS; k++)
				atomicAdd(&bins[(pass * GPUSORT_BINS + byte_of(keys[k], pass < idle ? 4 : pass - idle)) * COPIES + copy], 1u);
		}
	}
}

/* Adds what the block has counted to counts[pass][digit] in device memory; all threads. */
template <int THREADS, int COPIES>
static __device__ __forceinline__ void
add_digit_counts(const uint32_t *bins, int passes, uint32_t *counts)
{
	const uint32_t copy = threadIdx.x % COPIES;

	__syncthreads();

	/* in turned order, so that the threads of a warp read different banks */
	for (int i = threadIdx.x; i < passes * GPUSORT_BINS; i += THREADS)
	{
		uint32_t	sum = 0;

		for (int k = 0; k < COPIES; k++)
			sum += bins[i * COPIES + (k + copy) % COPIES];
		if (sum > 0)
			atomicAdd(&counts[i], sum);
	}
}

#endif							/* GPUSORT_DIGIT_COUNTS_CUH */
