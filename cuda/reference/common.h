/*-------------------------------------------------------------------------
 *
 * common.h
 *	  Steps that several reference sorts share: prefix sums of counts, the range of
 *	  keys, (key, row id) packed into one word, and memory cut from temp.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_REFERENCE_COMMON_H
#define GPUSORT_REFERENCE_COMMON_H

#include "../check.h"
#include "../portable.h"
#include "block.h"
#include "reference.h"

/* Returns the status of a call that fails. */
#define GPUSORT_TRY(call) \
	do { \
		cudaError_t status_ = (call); \
		if (status_ != cudaSuccess) \
			return status_; \
	} while (0)

/* Starts a kernel and returns its status if that fails. */
#define GPUSORT_TRY_KERNEL(kernel, grid, block, stream, ...) \
	do { \
		GPUSORT_START_KERNEL(kernel, grid, block, stream, __VA_ARGS__); \
		GPUSORT_TRY(cudaGetLastError()); \
	} while (0)

static inline uint32_t
gpusort_blocks(uint64_t items, uint32_t per_block)
{
	return (uint32_t) ((items + per_block - 1) / per_block);
}

/* ---- temporary memory: cut off piece by piece, first with base NULL to learn its size ---- */

typedef struct GpuSortTemp
{
	char	   *base;
	size_t		used;
} GpuSortTemp;

template <typename Type>
static inline Type *
gpusort_take(GpuSortTemp *temp, uint64_t count)
{
	Type	   *piece = temp->base != NULL ? (Type *) (temp->base + temp->used) : NULL;

	temp->used += (count * sizeof(Type) + 255) / 256 * 256;
	return piece;
}

/* ---- prefix sums (prefix_sum.cu) ---- */

/* How many words of scratch the sum of so many counts takes. */
extern uint64_t gpusort_prefix_sum_scratch(uint64_t count);

/* Turns each count into the sum of those before it, modulo 2^32. */
extern cudaError_t gpusort_prefix_sum(uint32_t *counts, uint64_t count, uint32_t *scratch, cudaStream_t stream);

/* ---- key ranges (key_range.cu) ---- */

/* The smallest and the largest of rows > 0 keys, into device memory: range[0] and range[1]. */
extern cudaError_t gpusort_key_range(const void *keys, uint32_t rows, int key_bytes, uint64_t *range,
									 cudaStream_t stream);

/* ---- (key, row id) in a word (pack_words.cu) ---- */

/* What a sort of words has to sort for args: words of this many bytes. */
static inline int
gpusort_word_bytes(int key_bytes, bool with_ids)
{
	return with_ids ? 8 : key_bytes;
}

/*
 * Makes `words` words of rows keys: the keys themselves, or with_ids the (32-bit key, row id),
 * the key on top; and, from `rows` on, the largest words as padding.
 */
extern cudaError_t gpusort_pack_words(const GpuSortReferenceArgs *args, void *words, uint64_t count,
									  cudaStream_t stream);

/* Writes the first rows words to keys_out, ids_out. */
extern cudaError_t gpusort_unpack_words(const GpuSortReferenceArgs *args, const void *words, cudaStream_t stream);

#endif							/* GPUSORT_REFERENCE_COMMON_H */
