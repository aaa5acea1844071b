/*-------------------------------------------------------------------------
 *
 * radix_sort.h
 *	  The radix core: rows of (32-bit key, 32-bit id) sorted stably by the keys'
 *	  low bits, least significant digit first.
 *
 * Nothing here waits for the device;
 * work is given to the stream, whose device must be current.
 * Memory belongs to the caller and is the stream's until the work is done.
 * Sorts on different streams with memory of their own are independent.
 *
 * There are two cores: our own (onesweep.cu), and CUB's (cub_radix.cu) for devices whose
 * blocks have too little shared memory for it, and to compare with.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_RADIX_SORT_H
#define GPUSORT_RADIX_SORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda_runtime.h>

/* The most rows of a sort: ids are of 32 bits. */
#define GPUSORT_RADIX_MAX_ROWS 0xFFFFFFFEu

/*
 * Which core sorts, for the whole process.  AUTO, the default, takes ours wherever a block
 * has the shared memory for it.  GPUSORT_RADIX in the environment, "onesweep" or "cub",
 * is looked at once and stands in for AUTO; with anything else in it every function here
 * returns cudaErrorInvalidValue.
 *
 * Between asking for the size of temp and the end of the sort the choice must not change.
 */
typedef enum GpuSortRadixChoice
{
	GPUSORT_RADIX_AUTO,
	GPUSORT_RADIX_ONESWEEP,
	GPUSORT_RADIX_CUB,
} GpuSortRadixChoice;

extern void gpusort_radix_choose(GpuSortRadixChoice choice);

/* *name is that of the core that sorts on the current device: "onesweep" or "cub". */
extern cudaError_t gpusort_radix_chosen(const char **name);

/*
 * Bytes of temp that gpusort_radix_sort needs for so many rows and bits; temp must be
 * aligned to 256 bytes, and serves fewer rows and bits as well.
 */
extern cudaError_t gpusort_radix_temp_bytes(uint32_t rows, int bits, size_t *temp_bytes);

/*
 * Rows (keys_in[i], ids_in[i]), to be sorted stably by the low `bits` bits, 0 to 32, of the
 * keys into keys_out and ids_out.
 *
 * Bits above `bits` are carried along.  keys_out may be keys_in,
 * and ids_out may be ids_in; otherwise outputs overlap
 * neither inputs nor temp, and inputs are left as they are.
 */
typedef struct GpuSortRadixSort
{
	void *temp;
	size_t temp_bytes;
	const uint32_t *keys_in;
	const uint32_t *ids_in; /* NULL: the ids are the row numbers 0 to rows - 1, made on the way */
	uint32_t rows;
	int bits;
	bool counted;       /* digits have been counted since gpusort_radix_begin */
	uint32_t *keys_out; /* NULL: keys are not wanted, which saves our core 4 bytes a row */
	uint32_t *ids_out;
} GpuSortRadixSort;

/*
 * Sorts.  In place, a sort by 8 bits or fewer takes our core two passes instead of one.
 * Fails with cudaErrorInvalidValue on bad arguments, or with what a launch returned.
 */
extern cudaError_t gpusort_radix_sort(const GpuSortRadixSort *sort, cudaStream_t stream);

/*
 * Begins a sort whose caller makes the keys and counts their digits in the same kernel
 * (digit_histogram.cuh), which saves a read of the keys.  *histogram is device memory in temp,
 * histogram[digit of 8 bits, the least significant first][256], zero when the stream gets
 * there; the caller adds how often each digit occurs in the keys' low `bits` bits.  After that
 * gpusort_radix_sort is called with `counted` and the same temp, rows and bits; bits above
 * `bits` are zero in all keys.
 *
 * *histogram is NULL with CUB, which counts digits itself;
 * then gpusort_radix_sort is called without `counted`.
 */
extern cudaError_t gpusort_radix_begin(void *temp, size_t temp_bytes, uint32_t rows, int bits, uint32_t **histogram,
									   cudaStream_t stream);

/* Digits of so many bits. */
static inline int
gpusort_radix_digits(int bits)
{
	return (bits + 7) / 8;
}

/*
 * Inputs and outputs of a sort inside its own temp, for a caller without other memory:
 * the places where a sort of so many rows and bits leaves the outputs whole.
 * Inputs and outputs may overlap.  temp of gpusort_radix_room_bytes
 * has room for any number of rows up to `rows`, by any number of bits.
 */
typedef struct GpuSortRadixRoom
{
	uint32_t *keys_in;
	uint32_t *ids_in;
	uint32_t *keys_out;
	uint32_t *ids_out;
} GpuSortRadixRoom;

extern cudaError_t gpusort_radix_room_bytes(uint32_t rows, size_t *temp_bytes);
extern cudaError_t gpusort_radix_room(void *temp, uint32_t rows, int bits, GpuSortRadixRoom *room);

#endif /* GPUSORT_RADIX_SORT_H */
