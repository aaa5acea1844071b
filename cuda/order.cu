/*-------------------------------------------------------------------------
 *
 * order.cu
 *	  After the sort: is it in order, which neighbours are equal, and the rows'
 *	  refs in that order.
 *
 * Packed keys that are still there (up to 64 bits) are compared as they lie.  For
 * wider ones the rows' own keys are, which also checks that packing kept the
 * order.  Row ids are checked to be a permutation by range, sum and exclusive or.
 *
 *-------------------------------------------------------------------------
 */
#include "check.h"
#include "device.h"
#include "steps.h"

/* Counts a pair out of order; called by whole warps. */
static __device__ void
note_unordered(bool unordered, GpuSortState *state)
{
	uint32_t	votes = __ballot_sync(0xFFFFFFFF, unordered);

	if (threadIdx.x % 32 == 0 && votes != 0)
		atomicAdd(&state->unordered, (uint32_t) __popc(votes));
}

/* Writes the bits of 32 rows; called by whole warps, whose first thread has row i. */
static __device__ void
note_equal(bool is_equal, uint32_t i, uint32_t rows, uint32_t *equal)
{
	uint32_t	votes = __ballot_sync(0xFFFFFFFF, is_equal);

	if (equal != NULL && threadIdx.x % 32 == 0 && i < rows)
		equal[i / 32] = votes;
}

/* Key i against key i + 1, for all i; equal may be NULL. */
template <typename Key>
static __global__ void
check_packed(const Key *keys, uint32_t rows, uint32_t *equal, GpuSortState *state)
{
	uint32_t	i = blockIdx.x * blockDim.x + threadIdx.x;
	bool		unordered = false;
	bool		is_equal = false;

	if (i < rows && i + 1 < rows)
	{
		Key			here = keys[i];
		Key			next = keys[i + 1];

		unordered = here > next;
		is_equal = here == next;
	}
	note_unordered(unordered, state);
	note_equal(is_equal, i, rows, equal);
}

/* The same by the rows' own keys.  ids out of range are order_refs' business. */
static __global__ void
check_keys(const GpuSortDeviceChunk *chunks, uint32_t key_words, const GpuSortRowRef *refs, const uint32_t *ids,
		   uint32_t rows, uint32_t *equal, GpuSortState *state)
{
	uint32_t	i = blockIdx.x * blockDim.x + threadIdx.x;
	bool		unordered = false;
	bool		is_equal = false;

	if (i < rows && i + 1 < rows && ids[i] < rows && ids[i + 1] < rows)
	{
		GpuSortRowRef ref = refs[ids[i]];
		GpuSortRowRef next_ref = refs[ids[i + 1]];
		const uint64_t *key = (const uint64_t *)
			((const char *) chunks[gpusort_ref_chunk(ref)].base + gpusort_ref_place(ref)) - key_words;
		const uint64_t *next = (const uint64_t *)
			((const char *) chunks[gpusort_ref_chunk(next_ref)].base + gpusort_ref_place(next_ref)) - key_words;
		uint32_t	w = 0;

		while (w < key_words && key[w] == next[w])
			w++;
		is_equal = w == key_words;
		unordered = !is_equal && key[w] > next[w];
	}
	note_unordered(unordered, state);
	note_equal(is_equal, i, rows, equal);
}

/* sorted_refs[i] = refs[ids[i]], and the checks of ids. */
static __global__ void
order_refs(const GpuSortRowRef *refs, const uint32_t *ids, uint32_t rows, GpuSortRowRef *sorted_refs,
		   GpuSortState *state)
{
	__shared__ unsigned long long block_sum;
	__shared__ uint32_t block_xor;
	uint32_t	i = blockIdx.x * blockDim.x + threadIdx.x;
	uint32_t	id = 0;
	uint32_t	warp_sum_low;
	uint32_t	warp_sum_high;
	uint32_t	warp_xor;

	if (threadIdx.x == 0)
	{
		block_sum = 0;
		block_xor = 0;
	}
	__syncthreads();

	if (i < rows)
	{
		id = ids[i];
		if (id >= rows)
		{
			atomicAdd(&state->bad_ids, 1u);
			id = 0;
		}
		sorted_refs[i] = refs[id];
	}

	/* 32 halves of 16 bits each do not overflow 32 bits */
	warp_sum_low = __reduce_add_sync(0xFFFFFFFF, id & 0xFFFF);
	warp_sum_high = __reduce_add_sync(0xFFFFFFFF, id >> 16);
	warp_xor = __reduce_xor_sync(0xFFFFFFFF, id);
	if (threadIdx.x % 32 == 0)
	{
		atomicAdd(&block_sum, ((unsigned long long) warp_sum_high << 16) + warp_sum_low);
		atomicXor(&block_xor, warp_xor);
	}
	__syncthreads();

	if (threadIdx.x == 0)
	{
		atomicAdd((unsigned long long *) &state->id_sum, block_sum);
		atomicXor(&state->id_xor, block_xor);
	}
}

int
gpusort_check_order(GpuSort *sort, const GpuSortPackPlan *plan, GpuSortError *error)
{
	GpuSortWork *work = &sort->work;
	uint32_t	rows = (uint32_t) sort->rows;
	uint32_t	blocks = (rows + GPUSORT_THREADS - 1) / GPUSORT_THREADS;

	if (plan->packed_bits <= 32)
		GPUSORT_LAUNCH(sort->device, error, check_packed<uint32_t>, blocks, GPUSORT_THREADS, sort->lane->compute,
					   (const uint32_t *) work->keys[0], rows, work->equal, sort->lane->state);
	else if (plan->packed_bits <= 64)
		GPUSORT_LAUNCH(sort->device, error, check_packed<uint64_t>, blocks, GPUSORT_THREADS, sort->lane->compute,
					   (const uint64_t *) work->keys[0], rows, work->equal, sort->lane->state);
	else
		GPUSORT_LAUNCH(sort->device, error, check_keys, blocks, GPUSORT_THREADS, sort->lane->compute,
					   work->chunks, sort->key_words, work->refs, work->ids[0], rows, work->equal,
					   sort->lane->state);
	return 0;
}

int
gpusort_order_refs(GpuSort *sort, GpuSortError *error)
{
	GpuSortWork *work = &sort->work;
	uint32_t	rows = (uint32_t) sort->rows;

	GPUSORT_LAUNCH(sort->device, error, order_refs, (rows + GPUSORT_THREADS - 1) / GPUSORT_THREADS, GPUSORT_THREADS,
				   sort->lane->compute, work->refs, work->ids[0], rows, work->sorted_refs, sort->lane->state);
	return 0;
}
