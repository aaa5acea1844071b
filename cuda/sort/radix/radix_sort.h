/*-------------------------------------------------------------------------
 *
 * radix_sort.h
 *	  The radix core: rows of (32-bit key, 32-bit id) sorted stably by the keys'
 *	  low bits, least significant digit first.
 *
 * Nothing here waits for the device; work is given to the stream, whose device
 * must be current.  Memory belongs to the caller and is the stream's until the
 * work is done.  Sorts on different streams with memory of their own are
 * independent.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_RADIX_SORT_H
#define GPUSORT_RADIX_SORT_H

#include <stddef.h>
#include <stdint.h>

#include <cuda_runtime.h>

/* The most rows of a sort: ids are of 32 bits. */
#define GPUSORT_RADIX_MAX_ROWS 0xFFFFFFFEu

/*
 * Bytes of temp that gpusort_radix_sort needs for so many rows and bits; temp must be
 * aligned to 256 bytes.
 */
extern cudaError_t gpusort_radix_temp_bytes(uint32_t rows, int bits, size_t *temp_bytes);

/*
 * Sorts `rows` rows (keys_in[i], ids_in[i]) stably by the low `bits` bits, 0 to 32, of
 * the keys into keys_out and ids_out.
 *
 *	ids_in NULL		the ids are the row numbers 0 to rows - 1, made on the way
 *	keys_out NULL	keys are not wanted: saves 4 bytes a row
 *
 * Bits above `bits` are carried along.  keys_out may be keys_in, and ids_out may be
 * ids_in; otherwise outputs overlap neither inputs nor temp, and inputs are left as
 * they are.  In place, a sort by 8 bits or fewer takes two passes instead of one.  Fails with
 * cudaErrorInvalidValue on bad arguments, or with what a launch returned.
 */
extern cudaError_t gpusort_radix_sort(void *temp, size_t temp_bytes, const uint32_t *keys_in, const uint32_t *ids_in,
									  uint32_t rows, int bits, uint32_t *keys_out, uint32_t *ids_out,
									  cudaStream_t stream);

/*
 * For who makes the keys, and can count their digits on the way (digit_counts.cuh), which
 * saves a read of the keys.  gpusort_radix_begin begins a sort in temp: *counts is device
 * memory of counts[digit of 8 bits, the least significant first][256], which is zero when
 * the stream gets there; how often each occurs in the keys' low `bits` bits is to be added.
 * *counts is NULL if that is of no use, or the device has too little shared memory for
 * it; gpusort_radix_sort then sorts.  Else gpusort_radix_sort_counted, with the same temp,
 * rows and bits, is gpusort_radix_sort; bits above `bits` are zero in all keys.
 */
extern cudaError_t gpusort_radix_begin(void *temp, size_t temp_bytes, uint32_t rows, int bits, uint32_t **counts,
									   cudaStream_t stream);
extern cudaError_t gpusort_radix_sort_counted(void *temp, size_t temp_bytes, const uint32_t *keys_in,
											  const uint32_t *ids_in, uint32_t rows, int bits, uint32_t *keys_out,
											  uint32_t *ids_out, cudaStream_t stream);

/* Digits of so many bits. */
static inline int
gpusort_radix_digits(int bits)
{
	return (bits + 7) / 8;
}

/*
 * Places for rows inside temp, for who has no memory but temp: a sort of so many rows
 * and bits whose inputs and outputs lie there leaves the outputs whole.  Inputs and
 * outputs may overlap.  temp of gpusort_radix_room_bytes has room for any number of rows
 * up to `rows`, by any number of bits.
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
