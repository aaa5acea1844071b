/*-------------------------------------------------------------------------
 *
 * digit_histogram.cuh
 *	  Histograms: how often each digit of 8 bits occurs in keys of up to 32 bits, counted
 *	  in shared memory by kernels that read keys, or make them.
 *
 * Each lane of a warp has counters of its own, in its own bank of shared memory, so that
 * none waits for another, whatever the keys are.
 *
 * Two digits share the 256 bytes of a value, so that a counter's place is the
 * lane's share, a byte, and above it the value, a byte of the key: one instruction
 * puts it together.  Counting is arithmetic for the most part, and that was half of it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DIGIT_HISTOGRAM_CUH
#define GPUSORT_DIGIT_HISTOGRAM_CUH

#include <stdint.h>

#include <cuda_runtime.h>

#include "sort/portable.h"

#define GPUSORT_DIGIT_BITS 8
#define GPUSORT_BINS       256
#define GPUSORT_MAX_PASSES 4

/* Counters of each value: one for each lane of a warp. */
#define GPUSORT_HISTOGRAM_COPIES 32

/* Bytes of shared memory: [digit / 2][value][digit % 2][copy] */
#define GPUSORT_HISTOGRAM_SHARED(digits) \
	((size_t) (((digits) + 1) / 2 * 2) * GPUSORT_BINS * GPUSORT_HISTOGRAM_COPIES * sizeof(uint32_t))

#ifdef __CUDACC__
/*
 * Byte `place` of a key, 0 the least significant; 4 is 0 for every key.  One instruction,
 * cheaper than a register to keep its result in, hence volatile.
 */
static __device__ __forceinline__ uint32_t
byte_of(uint32_t key, uint32_t place)
{
	uint32_t byte;

	asm volatile("prmt.b32 %0, %1, 0, %2;"
				 : "=r"(byte)
				 : "r"(key), "r"(0x4440 + place));
	return byte;
}

/* The lane's byte, and above it byte `place` of a key. */
static __device__ __forceinline__ uint32_t
byte_above(uint32_t key, uint32_t place, uint32_t lane_byte)
{
	uint32_t both;

	asm("prmt.b32 %0, %1, %2, %3;"
		: "=r"(both)
		: "r"(key), "r"(lane_byte), "r"(0x7604 + (place << 4)));
	return both;
}
#else
#define byte_of(key, place)               ((place) < 4 ? (key) >> 8 * (place) &0xFF : 0)
#define byte_above(key, place, lane_byte) (byte_of(key, place) << 8 | (lane_byte))
#endif

/* Where a counter is. */
static __device__ __forceinline__ uint32_t
histogram_place(uint32_t digit, uint32_t value, uint32_t copy)
{
	return ((digit / 2 * GPUSORT_BINS + value) * 2 + digit % 2) * GPUSORT_HISTOGRAM_COPIES + copy;
}

/* All threads of the block, before they count; ends with a barrier. */
template <int THREADS>
static __device__ __forceinline__ void
clear_histogram(uint32_t *bins, int digits)
{
	const int counters = (int) (GPUSORT_HISTOGRAM_SHARED(digits) / sizeof(uint32_t));

	for (int i = threadIdx.x; i < counters; i += THREADS)
		bins[i] = 0;
	__syncthreads();
}

/* Counts the low `digits` digits of some keys. */
template <int KEYS>
static __device__ __forceinline__ void
count_key_digits(uint32_t *bins, int digits, const uint32_t (&keys)[KEYS])
{
	const uint32_t copy = threadIdx.x % GPUSORT_HISTOGRAM_COPIES;

	GPUSORT_UNROLL
	for (int digit = 0; digit < GPUSORT_MAX_PASSES; digit++)
	{
		if (digit >= digits)
			break;
		GPUSORT_UNROLL
		for (int k = 0; k < KEYS; k++)
		{
			atomicAdd((uint32_t *) ((char *) (bins + histogram_place(digit, 0, 0)) +
									byte_above(keys[k], digit, copy * sizeof(uint32_t))),
					  1u);
		}
	}
}

/* Adds what the block has counted to histogram[digit][value] in device memory; all threads. */
template <int THREADS>
static __device__ __forceinline__ void
add_histogram(const uint32_t *bins, int digits, uint32_t *histogram)
{
	const uint32_t copy = threadIdx.x % GPUSORT_HISTOGRAM_COPIES;

	__syncthreads();

	/* in turned order, so that the threads of a warp read different banks */
	for (int i = threadIdx.x; i < digits * GPUSORT_BINS; i += THREADS)
	{
		uint32_t sum = 0;

		for (int k = 0; k < GPUSORT_HISTOGRAM_COPIES; k++)
			sum += bins[histogram_place(i / GPUSORT_BINS, i % GPUSORT_BINS, (k + copy) % GPUSORT_HISTOGRAM_COPIES)];
		if (sum > 0)
			atomicAdd(&histogram[i], sum);
	}
}

#endif /* GPUSORT_DIGIT_HISTOGRAM_CUH */
