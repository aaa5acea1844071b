/*-------------------------------------------------------------------------
 *
 * compact.cu
 *	  Packed keys and row refs from the chunks in device memory; compact.h says
 *	  what a packed key is.
 *
 * Keys of up to 64 packed bits are made for all rows at once, in the order they
 * were put.  Wider keys are sorted word by word, the least significant first, and
 * each packed word is made from the rows just before its turn, in the order that
 * the words before it left: that takes no memory for the other words.
 *
 *-------------------------------------------------------------------------
 */
#include "check.h"
#include "device.h"
#include "steps.h"

/* Blocks that share a chunk; a chunk of 100-byte rows then takes ten turns of each. */
#define GPUSORT_BLOCKS_PER_CHUNK	16

/* The largest second dimension of a grid. */
#define GPUSORT_GRID_Y_MAX			65535

/*
 * Refs, ids and packed keys of all rows, in the order they were put.  The rows were
 * found good by inspect_chunk.  Key is uint32_t or uint64_t; keys is NULL when
 * packed keys are not wanted.
 */
template <typename Key>
static __global__ void
pack_rows(const GpuSortDeviceChunk *chunks, uint32_t chunk_count, const __grid_constant__ GpuSortPackPlan plan,
		  GpuSortRowRef *refs, uint32_t *ids, Key *keys)
{
	for (uint32_t number = blockIdx.y; number < chunk_count; number += gridDim.y)
	{
		const GpuSortDeviceChunk chunk = chunks[number];
		const char *base = (const char *) chunk.base;
		const uint32_t *offsets = (const uint32_t *) (base + gpusort_chunk_offsets_at(chunk.bytes));

		for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < chunk.rows; i += gridDim.x * blockDim.x)
		{
			uint32_t	row = chunk.first_row + i;
			uint32_t	offset = offsets[chunk.rows - 1 - i];
			uint32_t	place = offset + 8 * plan.key_words;
			uint64_t	head = *(const uint64_t *) (base + place);

			refs[row] = gpusort_ref_make(number, place, (uint32_t) head,
										 (uint8_t) (head >> 8 * GPUSORT_ROW_FLAGS_OFFSET));
			ids[row] = row;
			if (keys != NULL)
				keys[row] = (Key) gpusort_pack_key(&plan, (const uint64_t *) (base + offset), 0);
		}
	}
}

/* keys[i] = packed word `index` of row ids[i]. */
static __global__ void
pack_word(const GpuSortDeviceChunk *chunks, const __grid_constant__ GpuSortPackPlan plan, uint32_t index,
		  const GpuSortRowRef *refs, const uint32_t *ids, uint32_t rows, uint64_t *keys)
{
	uint32_t	i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < rows)
	{
		GpuSortRowRef ref = refs[ids[i]];
		const char *row = (const char *) chunks[gpusort_ref_chunk(ref)].base + gpusort_ref_place(ref);

		keys[i] = gpusort_pack_key(&plan, (const uint64_t *) row - plan.key_words, index);
	}
}

int
gpusort_pack_rows(GpuSort *sort, const GpuSortPackPlan *plan, GpuSortError *error)
{
	GpuSortWork *work = &sort->work;
	dim3		grid(GPUSORT_BLOCKS_PER_CHUNK,
					 sort->chunk_count < GPUSORT_GRID_Y_MAX ? sort->chunk_count : GPUSORT_GRID_Y_MAX);

	if (plan->packed_bits <= 32)
		GPUSORT_LAUNCH(sort->device, error, pack_rows<uint32_t>, grid, GPUSORT_THREADS, sort->lane->compute,
					   work->chunks, sort->chunk_count, *plan, work->refs, work->ids[0],
					   (uint32_t *) work->keys[0]);
	else
		GPUSORT_LAUNCH(sort->device, error, pack_rows<uint64_t>, grid, GPUSORT_THREADS, sort->lane->compute,
					   work->chunks, sort->chunk_count, *plan, work->refs, work->ids[0],
					   plan->packed_bits <= 64 ? (uint64_t *) work->keys[0] : (uint64_t *) NULL);
	return 0;
}

int
gpusort_pack_word(GpuSort *sort, const GpuSortPackPlan *plan, uint32_t index, GpuSortError *error)
{
	GpuSortWork *work = &sort->work;
	uint32_t	rows = (uint32_t) sort->rows;

	GPUSORT_LAUNCH(sort->device, error, pack_word, (rows + GPUSORT_THREADS - 1) / GPUSORT_THREADS, GPUSORT_THREADS,
				   sort->lane->compute, work->chunks, *plan, index, work->refs, work->ids[0], rows,
				   (uint64_t *) work->keys[0]);
	return 0;
}
