/*-------------------------------------------------------------------------
 *
 * pack_words.cu
 *	  (key, row id) as one word, for the comparison sorts that move single words: the
 *	  bitonic sorts and GPU-Quicksort.
 *
 * As the row id is the lower half, no two words are equal, their order is that of
 * a stable sort, and the padding, the largest word, comes after every row.
 *
 *-------------------------------------------------------------------------
 */
#include "published/common.h"

#define THREADS     256
#define MOST_BLOCKS 4096

template <typename Word>
static __global__ void
pack_keys(const Word *keys, uint32_t rows, Word *words, uint64_t count)
{
	const uint64_t step = (uint64_t) gridDim.x * THREADS;

	for (uint64_t i = (uint64_t) blockIdx.x * THREADS + threadIdx.x; i < count; i += step)
		words[i] = i < rows ? keys[i] : (Word) ~(Word) 0;
}

static __global__ void
pack_pairs(const uint32_t *keys, uint32_t rows, uint64_t *words, uint64_t count)
{
	const uint64_t step = (uint64_t) gridDim.x * THREADS;

	for (uint64_t i = (uint64_t) blockIdx.x * THREADS + threadIdx.x; i < count; i += step)
		words[i] = i < rows ? (uint64_t) keys[i] << 32 | i : ~(uint64_t) 0;
}

static __global__ void
unpack_pairs(const uint64_t *words, uint32_t rows, uint32_t *keys, uint32_t *ids)
{
	const uint64_t step = (uint64_t) gridDim.x * THREADS;

	for (uint64_t i = (uint64_t) blockIdx.x * THREADS + threadIdx.x; i < rows; i += step)
	{
		const uint64_t word = words[i];

		keys[i] = (uint32_t) (word >> 32);
		ids[i] = (uint32_t) word;
	}
}

static uint32_t
blocks_for(uint64_t items)
{
	const uint64_t blocks = (items + THREADS - 1) / THREADS;

	return blocks < MOST_BLOCKS ? (uint32_t) blocks : MOST_BLOCKS;
}

cudaError_t
gpusort_pack_words(const GpuSortReferenceArgs *args, void *words, uint64_t count, cudaStream_t stream)
{
	const uint32_t blocks = blocks_for(count);

	if (args->ids_out != NULL)
		GPUSORT_TRY_KERNEL(pack_pairs, blocks, THREADS, stream, (const uint32_t *) args->keys_in, args->rows,
						   (uint64_t *) words, count);
	else if (args->key_bytes == 4)
		GPUSORT_TRY_KERNEL(pack_keys<uint32_t>, blocks, THREADS, stream, (const uint32_t *) args->keys_in,
						   args->rows, (uint32_t *) words, count);
	else
		GPUSORT_TRY_KERNEL(pack_keys<uint64_t>, blocks, THREADS, stream, (const uint64_t *) args->keys_in,
						   args->rows, (uint64_t *) words, count);
	return cudaSuccess;
}

cudaError_t
gpusort_unpack_words(const GpuSortReferenceArgs *args, const void *words, cudaStream_t stream)
{
	if (args->ids_out == NULL)
		return cudaMemcpyAsync(args->keys_out, words, (size_t) args->rows * args->key_bytes,
							   cudaMemcpyDeviceToDevice, stream);
	GPUSORT_TRY_KERNEL(unpack_pairs, blocks_for(args->rows), THREADS, stream, (const uint64_t *) words, args->rows,
					   (uint32_t *) args->keys_out, args->ids_out);
	return cudaSuccess;
}
