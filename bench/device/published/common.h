/*-------------------------------------------------------------------------
 *
 * common.h
 *	  What several reference sorts share: the checks that they begin with and memory cut
 *	  from temp; prefix sums of counts, the range of keys, and (key, row id) packed into
 *	  one word.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_REFERENCE_COMMON_H
#define GPUSORT_REFERENCE_COMMON_H

#include "published/block.h"
#include "published/references.h"
#include "sort/launch.h"
#include "sort/portable.h"

/* Returns the status of a call that fails. */
#define GPUSORT_TRY(call)             \
	do                                \
	{                                 \
		cudaError_t status_ = (call); \
		if (status_ != cudaSuccess)   \
			return status_;           \
	} while (0)

/* Starts a kernel and returns its status if that fails. */
#define GPUSORT_TRY_KERNEL(kernel, grid, block, stream, ...)            \
	do                                                                  \
	{                                                                   \
		GPUSORT_START_KERNEL(kernel, grid, block, stream, __VA_ARGS__); \
		GPUSORT_TRY(cudaGetLastError());                                \
	} while (0)

static inline uint32_t
gpusort_blocks(uint64_t items, uint32_t per_block)
{
	return (uint32_t) ((items + per_block - 1) / per_block);
}

/* ---- temporary memory: cut off piece by piece, first with base NULL to learn its size ---- */

typedef struct GpuSortTemp
{
	char *base;
	size_t used;
} GpuSortTemp;

template <typename Type>
static inline Type *
gpusort_take(GpuSortTemp *temp, uint64_t count)
{
	Type *piece = temp->base != NULL ? (Type *) (temp->base + temp->used) : NULL;

	temp->used += (count * sizeof(Type) + 255) / 256 * 256;
	return piece;
}

/* ---- the beginning of a sort ---- */

/*
 * temp_bytes() of a reference.  cut(temp, rows, key_bytes, with_ids) takes all that it needs of
 * temp, and returns the pieces in a struct of its own.
 */
template <const GpuSortReference *reference, auto cut>
static inline cudaError_t
gpusort_cut_bytes(uint32_t rows, int key_bytes, bool with_ids, size_t *bytes)
{
	GpuSortTemp temp = {NULL, 0};

	if (!gpusort_reference_can(reference, rows, key_bytes, with_ids))
		return cudaErrorInvalidValue;
	(void) cut(&temp, rows, key_bytes, with_ids);
	*bytes = temp.used;
	return cudaSuccess;
}

/* sort() of a reference: checks args, cuts temp, and if there are rows calls steps(args, pieces, stream). */
template <const GpuSortReference *reference, auto cut, auto steps>
static inline cudaError_t
gpusort_cut_and_sort(const GpuSortReferenceArgs *args, cudaStream_t stream)
{
	GpuSortTemp temp = {(char *) args->temp, 0};

	GPUSORT_TRY(gpusort_reference_check(reference, args));
	if (args->rows == 0)
		return cudaSuccess;

	auto pieces = cut(&temp, args->rows, args->key_bytes, args->ids_out != NULL);

	return steps(args, &pieces, stream);
}

/* Calls function<Key, WITH_IDS>(...) as args want it. */
#define GPUSORT_BY_TYPE(args, function, ...)                                                                          \
	((args)->key_bytes == 4                                                                                           \
		 ? ((args)->ids_out != NULL ? function<uint32_t, true>(__VA_ARGS__) : function<uint32_t, false>(__VA_ARGS__)) \
		 : ((args)->ids_out != NULL ? function<uint64_t, true>(__VA_ARGS__) : function<uint64_t, false>(__VA_ARGS__)))

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

#endif /* GPUSORT_REFERENCE_COMMON_H */
