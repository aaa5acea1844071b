/*-------------------------------------------------------------------------
 *
 * pack.cu
 *	  Row refs and the partial keys of packed keys, from the chunks in device memory;
 *	  compact.h says what a packed key is, device_sort.h what its partial key.
 *
 *-------------------------------------------------------------------------
 */
#include "engine/check.h"
#include "engine/device.h"
#include "engine/steps.h"

/* Blocks that share a chunk; a chunk of 100-byte rows then takes ten turns of each. */
#define GPUSORT_BLOCKS_PER_CHUNK 16

/* The largest second dimension of a grid. */
#define GPUSORT_GRID_Y_MAX 65535

/*
 * Refs of all rows, in the order they were put, and their partial keys, which are all that
 * the plan keeps; partial_keys may be NULL.  The rows were found good by gpusort_key_stats_chunk.
 */
static __global__ void
pack_rows(const GpuSortDeviceChunk *chunks, uint32_t chunk_count, const __grid_constant__ GpuSortPackPlan window,
		  GpuSortRowRef *refs, uint32_t *partial_keys)
{
	for (uint32_t number = blockIdx.y; number < chunk_count; number += gridDim.y)
	{
		const GpuSortDeviceChunk chunk = chunks[number];
		const char *base = (const char *) chunk.base;
		const uint32_t *offsets = (const uint32_t *) (base + gpusort_chunk_offsets_at(chunk.bytes));

		for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < chunk.rows; i += gridDim.x * blockDim.x)
		{
			uint32_t row = chunk.first_row + i;
			uint32_t offset = offsets[chunk.rows - 1 - i];

			refs[row] = gpusort_ref_of(base, number, offset, window.key_words);
			if (partial_keys != NULL)
				partial_keys[row] = gpusort_pack_key(&window, (const uint64_t *) (base + offset));
		}
	}
}

int
gpusort_pack_shard(GpuSortShard *shard, const GpuSortPackPlan *plan, GpuSortError *error)
{
	const GpuSort *sort = shard->sort;
	GpuSortWork *work = &shard->work;
	dim3 grid(GPUSORT_BLOCKS_PER_CHUNK,
			  sort->chunk_count < GPUSORT_GRID_Y_MAX ? sort->chunk_count : GPUSORT_GRID_Y_MAX);
	GpuSortPackPlan window;

	gpusort_pack_window_plan(&window, plan, 0, 32);
	GPUSORT_LAUNCH(shard->device, error, pack_rows, grid, GPUSORT_THREADS, shard->lane->compute,
				   work->chunks, sort->chunk_count, window, work->refs, work->partial_keys);
	return 0;
}
