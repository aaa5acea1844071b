/*-------------------------------------------------------------------------
 *
 * key_stats.cu
 *	  One pass over the keys of a chunk; see key_stats.h.
 *
 *-------------------------------------------------------------------------
 */
#include "sort/key_stats.h"

#include <cuda_runtime.h>

#include "sort/key_stats.cuh"
#include "sort/launch.h"

#define GPUSORT_STATS_THREADS 256

/* Blocks of a chunk: up to 16384 rows each thread has one, and the bus is slower in any case. */
#define GPUSORT_STATS_CHUNK_BLOCKS 64

/*
 * A chunk's rows.  Shapes: `rows` records of key_words words and a row each, anywhere
 * in the first `bytes` bytes at base; their offsets, the last one first, behind
 * them.  Reads nothing outside, whatever the offsets and lengths are.
 */
static __global__ void
chunk_stats(const char *base, uint32_t rows, uint32_t bytes, uint32_t key_words, GpuSortKeyStats *stats,
			uint32_t *bad_rows)
{
	__shared__ BlockStats block;
	const uint32_t *offsets = (const uint32_t *) (base + gpusort_chunk_offsets_at(bytes));
	uint32_t pairs = 0;
	uint32_t descents = 0;
	uint32_t bad = 0;

	block_start(&block);
	for (uint32_t first_word = 0; first_word < key_words; first_word += GPUSORT_STATS_GROUP)
	{
		WordStats<uint64_t> own[GPUSORT_STATS_GROUP];

		for (uint32_t i = 0; i < GPUSORT_STATS_GROUP; i++)
			word_stats_none(&own[i]);
		for (uint32_t row = blockIdx.x * blockDim.x + threadIdx.x; row < rows; row += gridDim.x * blockDim.x)
		{
			uint32_t offset = offsets[rows - 1 - row];
			const uint64_t *key = (const uint64_t *) (base + offset);

			if (!gpusort_record_readable(offset, bytes, key_words))
			{
				bad += first_word == 0;
				continue;
			}
			for (uint32_t i = 0; i < GPUSORT_STATS_GROUP; i++)
			{
				if (first_word + i < key_words)
					word_stats_add<true>(&own[i], key[first_word + i]);
			}
			if (first_word > 0)
				continue;
			if (!gpusort_row_length_ok(offset, *(const uint32_t *) &key[key_words], bytes, key_words))
				bad++;
			if (row + 1 < rows)
			{
				uint32_t next = offsets[rows - 2 - row];

				if (gpusort_record_readable(next, bytes, key_words))
				{
					pairs++;
					descents += gpusort_key_larger(key, (const uint64_t *) (base + next), key_words);
				}
			}
		}
		for (uint32_t i = 0; i < GPUSORT_STATS_GROUP; i++)
		{
			if (first_word + i < key_words)
				block_join<true>(&block, first_word + i, &own[i]);
		}
	}
	block_count(&block.pairs, pairs);
	block_count(&block.descents, descents);
	block_count(&block.bad_rows, bad);
	block_publish(&block, 0, key_words, stats);
	if (threadIdx.x == 0 && block.bad_rows > 0)
		atomicAdd(bad_rows, block.bad_rows);
}

int
gpusort_key_stats_reset(GpuSortKeyStats *stats, struct CUstream_st *stream)
{
	cudaError_t status = cudaMemsetAsync(stats, 0, sizeof(*stats), (cudaStream_t) stream);

	/* key_and and key_min, which lie side by side */
	if (status == cudaSuccess)
		status = cudaMemsetAsync(stats->key_and, 0xFF, sizeof(stats->key_and) + sizeof(stats->key_min),
								 (cudaStream_t) stream);
	return status;
}

int
gpusort_key_stats_chunk(const GpuSortDeviceChunk *chunk, uint32_t key_words, GpuSortKeyStats *stats,
						uint32_t *bad_rows, struct CUstream_st *stream)
{
	uint32_t blocks = (chunk->rows + GPUSORT_STATS_THREADS - 1) / GPUSORT_STATS_THREADS;

	if (chunk->rows == 0)
		return cudaSuccess;
	if (blocks > GPUSORT_STATS_CHUNK_BLOCKS)
		blocks = GPUSORT_STATS_CHUNK_BLOCKS;
	GPUSORT_START_KERNEL(chunk_stats, blocks, GPUSORT_STATS_THREADS, (cudaStream_t) stream,
						 (const char *) chunk->base, chunk->rows, chunk->bytes, key_words, stats, bad_rows);
	return cudaGetLastError();
}
