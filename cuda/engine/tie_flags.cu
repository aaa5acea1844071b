/*-------------------------------------------------------------------------
 *
 * tie_flags.cu
 *	  Flags the sorted rows that need a tie-break with the next one: equal keys, and
 *	  this row's is truncated.  Counts the rows of such runs; tie_flags.h has
 *	  the arithmetic.
 *
 * Each block takes a contiguous stretch of the sorted rows, a tile at a time, and
 * leaves one summary; the host joins the blocks' summaries.
 *
 *-------------------------------------------------------------------------
 */
#include "engine/check.h"
#include "engine/device.h"
#include "engine/steps.h"

/* Words of 32 rows that a block takes at a time: one per thread. */
#define GPUSORT_TIE_TILE GPUSORT_THREADS

/* Tiles per block, so that GPUSORT_TIE_BLOCKS blocks take all rows. */
static uint32_t
tiles_per_block(uint32_t rows)
{
	uint32_t words = rows / 32 + (rows % 32 > 0);
	uint32_t tiles = (words + GPUSORT_TIE_TILE - 1) / GPUSORT_TIE_TILE;

	return (tiles + GPUSORT_TIE_BLOCKS - 1) / GPUSORT_TIE_BLOCKS;
}

uint32_t
gpusort_tie_blocks(uint32_t rows)
{
	uint32_t words = rows / 32 + (rows % 32 > 0);
	uint32_t tiles = (words + GPUSORT_TIE_TILE - 1) / GPUSORT_TIE_TILE;
	uint32_t per_block = tiles_per_block(rows);

	return (tiles + per_block - 1) / per_block;
}

/*
 * Clears in equal the bits of rows that are not KEY_TRUNCATED, and sums up each block's
 * rows in summaries[blockIdx.x].  rows is at least 1.
 */
static __global__ void
flag_ties(const GpuSortRowRef *sorted_refs, uint32_t rows, uint32_t tiles, uint32_t *equal,
		  GpuSortTieSummary *summaries)
{
	__shared__ GpuSortTieSummary partial[GPUSORT_TIE_TILE];
	__shared__ uint32_t truncated_bits[GPUSORT_TIE_TILE];
	GpuSortTieSummary sum = gpusort_ties_none();

	for (uint32_t tile = 0; tile < tiles; tile++)
	{
		uint64_t first_word = ((uint64_t) blockIdx.x * tiles + tile) * GPUSORT_TIE_TILE;
		uint64_t word = first_word + threadIdx.x;
		uint64_t row = word * 32;

		/* The same for all threads of the block. */
		if (first_word * 32 >= rows)
			break;

		/* A warp reads 32 refs at once, for one word after the other. */
		for (uint32_t k = 0; k < 32; k++)
		{
			uint32_t slot = threadIdx.x / 32 * 32 + k;
			uint64_t mine = (first_word + slot) * 32 + threadIdx.x % 32;
			uint32_t votes = __ballot_sync(GPUSORT_FULL_WARP, mine < rows && gpusort_ref_truncated(sorted_refs[mine]));

			if (threadIdx.x % 32 == 0)
				truncated_bits[slot] = votes;
		}
		__syncthreads();

		partial[threadIdx.x] = gpusort_ties_none();
		if (row < rows)
		{
			uint32_t here = rows - row < 32 ? (uint32_t) (rows - row) : 32;
			uint32_t bits = equal[word];

			partial[threadIdx.x] = gpusort_ties_of_bits(bits, truncated_bits[threadIdx.x], here);
			equal[word] = bits & truncated_bits[threadIdx.x];
		}
		__syncthreads();

		/* Neighbours join, then pairs of neighbours, and so on: the order is kept. */
		for (uint32_t step = 1; step < GPUSORT_TIE_TILE; step *= 2)
		{
			if (threadIdx.x % (2 * step) == 0)
				partial[threadIdx.x] = gpusort_ties_join(partial[threadIdx.x], partial[threadIdx.x + step]);
			__syncthreads();
		}
		if (threadIdx.x == 0)
			sum = gpusort_ties_join(sum, partial[0]);

		/* partial is written again in the next turn */
		__syncthreads();
	}
	if (threadIdx.x == 0)
		summaries[blockIdx.x] = sum;
}

int
gpusort_flag_ties(GpuSortShard *shard, GpuSortError *error)
{
	GpuSortWork *work = &shard->work;
	uint32_t rows = shard->rows_out;

	GPUSORT_LAUNCH(shard->device, error, flag_ties, gpusort_tie_blocks(rows), GPUSORT_THREADS, shard->lane->compute,
				   work->sorted_refs, rows, tiles_per_block(rows), work->equal, shard->lane->state->ties);
	return 0;
}
