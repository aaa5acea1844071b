/*-------------------------------------------------------------------------
 *
 * order.cu
 *	  After the sort: is it in order, which neighbours are equal, the rows' refs in
 *	  that order, and where each row ends in the output.
 *
 * Neighbours whose partial keys differ are compared by them.  Where the partial key is not
 * the whole packed key and is equal, or where there are no partial keys, the rows' own
 * keys decide, which also checks that packing kept the order.  Row ids are checked
 * to be a permutation by range, sum and exclusive or.  Of the first rows alone
 * that is no check; there every row of the sort is compared with the last of them.
 *
 * The inclusive scan of rows' words takes three kernels: each block of order_refs adds
 * up its tile, one block scans the tiles, and then every tile its rows.
 *
 *-------------------------------------------------------------------------
 */
#include "engine/check.h"
#include "engine/device.h"
#include "engine/steps.h"

#define GPUSORT_WARPS (GPUSORT_THREADS / 32)

/* Rows that a thread, a warp and a block of the scan take; a tile is a block's. */
#define GPUSORT_THREAD_ROWS 16
#define GPUSORT_WARP_ROWS   (32 * GPUSORT_THREAD_ROWS)
#define GPUSORT_TILE_ROWS   (GPUSORT_WARPS * GPUSORT_WARP_ROWS)

/* Rows as kernels see them: where each one's key is. */
typedef struct KeyedRows
{
	const GpuSortDeviceChunk *chunks; /* all of the sort */
	uint32_t key_words;
	uint32_t rows;
	const GpuSortRowRef *refs; /* of each row */
} KeyedRows;

/* Adds to *counter the threads whose vote is true; called by whole warps. */
static __device__ void
count_votes(bool vote, uint32_t *counter)
{
	uint32_t votes = __ballot_sync(GPUSORT_FULL_WARP, vote);

	if (threadIdx.x % 32 == 0 && votes != 0)
		atomicAdd(counter, (uint32_t) __popc(votes));
}

/* Writes the bits of 32 rows; called by whole warps, whose first thread has row i. */
static __device__ void
note_equal(bool is_equal, uint32_t i, uint32_t rows, uint32_t *equal)
{
	uint32_t votes = __ballot_sync(GPUSORT_FULL_WARP, is_equal);

	if (equal != NULL && threadIdx.x % 32 == 0 && i < rows)
		equal[i / 32] = votes;
}

/* Returns a number below 0, 0 or above 0, as the key of the row that ref a stands for is to that of b. */
static __device__ int
compare_keys(const KeyedRows &keyed, GpuSortRowRef ref_a, GpuSortRowRef ref_b)
{
	const uint32_t key_words = keyed.key_words;
	const uint64_t *a = gpusort_ref_row(keyed.chunks, ref_a);
	const uint64_t *b = gpusort_ref_row(keyed.chunks, ref_b);

	for (uint32_t w = 0; w < key_words; w++)
	{
		uint64_t left = a[(int64_t) w - key_words];
		uint64_t right = b[(int64_t) w - key_words];

		if (left != right)
			return left < right ? -1 : 1;
	}
	return 0;
}

/* The same; and whether they are equal in their first so many bits. */
static __device__ int
compare_keys_and_runs(const KeyedRows &keyed, GpuSortRowRef ref_a, GpuSortRowRef ref_b, uint32_t run_bits,
					  bool *in_run)
{
	const uint32_t key_words = keyed.key_words;
	const uint64_t *a = gpusort_ref_row(keyed.chunks, ref_a);
	const uint64_t *b = gpusort_ref_row(keyed.chunks, ref_b);

	*in_run = true;
	for (uint32_t w = 0; w < key_words; w++)
	{
		uint64_t left = a[(int64_t) w - key_words];
		uint64_t right = b[(int64_t) w - key_words];

		if (left != right)
		{
			*in_run = 64 * w + __clzll((long long) (left ^ right)) >= run_bits;
			return left < right ? -1 : 1;
		}
	}
	return 0;
}

/* Runs of rows whose keys are equal in their first so many bits, as kernels see them. */
typedef struct RunBits
{
	uint32_t bits;
	bool by_partial_keys; /* two rows are of one run if their partial keys are equal without */
	uint32_t shift;       /* so many bits at the low end */
	uint32_t *same;       /* the result: a bit per row */
} RunBits;

/*
 * Row i of the order against row i + 1, for all i below rows.  The order is ids, which are of
 * by_id's rows.  partial_keys are in order, or NULL; whole says that nothing is in the key beside
 * them.  ids out of range are order_refs' business.  equal may be NULL.
 */
template <bool RUNS>
static __global__ void
check_order(const __grid_constant__ KeyedRows by_id, const uint32_t *ids, uint32_t rows, const uint32_t *partial_keys,
			bool whole, uint32_t *equal, const __grid_constant__ RunBits runs, GpuSortDeviceState *state)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
	int order = -1;
	bool in_run = false;

	if (i < rows && i + 1 < rows)
	{
		if (partial_keys != NULL)
		{
			uint32_t here = partial_keys[i];
			uint32_t next = partial_keys[i + 1];

			order = here < next ? -1 : here > next;
			if (RUNS)
				in_run = order == 0 || (runs.by_partial_keys && (uint64_t) (here ^ next) >> runs.shift == 0);
		}
		if (partial_keys == NULL || (order == 0 && !whole) || (RUNS && order != 0 && !runs.by_partial_keys))
		{
			uint32_t id = ids[i];
			uint32_t next_id = ids[i + 1];

			if (id < by_id.rows && next_id < by_id.rows)
			{
				if (RUNS)
					order = compare_keys_and_runs(by_id, by_id.refs[id], by_id.refs[next_id], runs.bits, &in_run);
				else
					order = compare_keys(by_id, by_id.refs[id], by_id.refs[next_id]);
			}
		}
	}
	count_votes(order > 0, &state->unordered);
	note_equal(order == 0, i, rows, equal);
	if (RUNS)
		note_equal(in_run, i, rows, runs.same);
}

/*
 * Counts in state->up_to the rows that come no later than the row `bound` in the order of
 * keys, and of ids where keys are equal.
 */
static __global__ void
count_up_to(const __grid_constant__ KeyedRows by_id, const uint32_t *bound, GpuSortDeviceState *state)
{
	const uint32_t bound_id = *bound;
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
	bool up_to = false;

	if (i < by_id.rows && bound_id < by_id.rows)
	{
		int order = compare_keys(by_id, by_id.refs[i], by_id.refs[bound_id]);

		up_to = order < 0 || (order == 0 && i <= bound_id);
	}
	count_votes(up_to, &state->up_to);
}

/* Counts in state->equal_rows the rows whose key is that of the row `bound`, whichever shard has it. */
static __global__ void
count_equal(const __grid_constant__ KeyedRows by_id, const GpuSortRowRef *bound, GpuSortDeviceState *state)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
	bool is_equal = i < by_id.rows && compare_keys(by_id, by_id.refs[i], *bound) == 0;

	count_votes(is_equal, &state->equal_rows);
}

/* The last row of a shard against the first one of the next shard.  One thread. */
static __global__ void
check_boundary(const __grid_constant__ KeyedRows sorted, const GpuSortRowRef *next_refs, uint32_t *equal,
			   GpuSortDeviceState *state)
{
	const uint32_t last = sorted.rows - 1;
	const int order = compare_keys(sorted, sorted.refs[last], next_refs[0]);

	if (order > 0)
		state->unordered++;
	if (order == 0 && equal != NULL)
		equal[last / 32] |= 1u << last % 32;
}

/* sorted_refs[i] = refs[ids[i]], the checks of ids, and the words of each tile. */
static __global__ void
order_refs(const GpuSortRowRef *refs, uint32_t ref_rows, const uint32_t *ids, uint32_t rows,
		   GpuSortRowRef *sorted_refs, uint64_t *tile_words, GpuSortDeviceState *state)
{
	__shared__ unsigned long long block_sum;
	__shared__ unsigned long long block_words;
	__shared__ uint32_t block_xor;
	const uint32_t first = blockIdx.x * GPUSORT_TILE_ROWS + threadIdx.x;

	if (threadIdx.x == 0)
	{
		block_sum = 0;
		block_words = 0;
		block_xor = 0;
	}
	__syncthreads();

	for (uint32_t k = 0; k < GPUSORT_TILE_ROWS / GPUSORT_THREADS; k++)
	{
		uint32_t i = first + k * GPUSORT_THREADS;
		uint32_t id = 0;
		uint32_t words = 0;
		uint32_t warp_sum_low;
		uint32_t warp_sum_high;
		uint32_t warp_words;
		uint32_t warp_xor;

		if (i < rows)
		{
			GpuSortRowRef ref;

			id = ids[i];
			if (id >= ref_rows)
			{
				atomicAdd(&state->bad_ids, 1u);
				id = 0;
			}
			ref = refs[id];
			words = gpusort_ref_words(ref);
			sorted_refs[i] = ref;
		}

		/* 32 halves of 16 bits each, and 32 times 19 bits, do not overflow 32 bits */
		warp_sum_low = __reduce_add_sync(GPUSORT_FULL_WARP, id & 0xFFFF);
		warp_sum_high = __reduce_add_sync(GPUSORT_FULL_WARP, id >> 16);
		warp_words = __reduce_add_sync(GPUSORT_FULL_WARP, words);
		warp_xor = __reduce_xor_sync(GPUSORT_FULL_WARP, id);
		if (threadIdx.x % 32 == 0)
		{
			atomicAdd(&block_sum, ((unsigned long long) warp_sum_high << 16) + warp_sum_low);
			atomicAdd(&block_words, (unsigned long long) warp_words);
			atomicXor(&block_xor, warp_xor);
		}
	}
	__syncthreads();

	if (threadIdx.x == 0)
	{
		atomicAdd((unsigned long long *) &state->id_sum, block_sum);
		atomicXor(&state->id_xor, block_xor);
		tile_words[blockIdx.x] = block_words;
	}
}

/* Returns the sum of the values of a warp's threads up to and with this one. */
template <typename Value>
static __device__ Value
warp_inclusive_scan(Value value)
{
	for (uint32_t step = 1; step < 32; step *= 2)
	{
		Value other = __shfl_up_sync(GPUSORT_FULL_WARP, value, step);

		if (threadIdx.x % 32 >= step)
			value += other;
	}
	return value;
}

/* Exclusive scan: tile_words[i] becomes the words of all tiles before tile i.  One block. */
static __global__ void
scan_tiles(uint64_t *tile_words, uint32_t tiles)
{
	__shared__ uint64_t warp_words[GPUSORT_WARPS];
	const uint32_t warp = threadIdx.x / 32;
	uint64_t before = 0;

	for (uint32_t start = 0; start < tiles; start += GPUSORT_THREADS)
	{
		uint32_t i = start + threadIdx.x;
		uint64_t words = i < tiles ? tile_words[i] : 0;
		uint64_t sum = warp_inclusive_scan(words);
		uint64_t here = before;

		if (threadIdx.x % 32 == 31)
			warp_words[warp] = sum;
		__syncthreads();
		for (uint32_t w = 0; w < GPUSORT_WARPS; w++)
		{
			if (w == warp && i < tiles)
				tile_words[i] = here + sum - words;
			here += warp_words[w];
		}
		before = here;

		/* warp_words is written again in the next turn */
		__syncthreads();
	}
}

/* The words of each tile, of refs that order_refs has not seen as they are now. */
static __global__ void
sum_tiles(const GpuSortRowRef *sorted_refs, uint32_t rows, uint64_t *tile_words)
{
	__shared__ unsigned long long block_words;
	const uint32_t first = blockIdx.x * GPUSORT_TILE_ROWS + threadIdx.x;

	if (threadIdx.x == 0)
		block_words = 0;
	__syncthreads();
	for (uint32_t k = 0; k < GPUSORT_TILE_ROWS / GPUSORT_THREADS; k++)
	{
		const uint32_t i = first + k * GPUSORT_THREADS;
		const uint32_t words = __reduce_add_sync(GPUSORT_FULL_WARP, i < rows ? gpusort_ref_words(sorted_refs[i]) : 0);

		if (threadIdx.x % 32 == 0)
			atomicAdd(&block_words, (unsigned long long) words);
	}
	__syncthreads();
	if (threadIdx.x == 0)
		tile_words[blockIdx.x] = block_words;
}

/* Inclusive scan: ends[i] = words of the rows 0 to i. */
static __global__ void
scan_rows(const GpuSortRowRef *sorted_refs, uint32_t rows, const uint64_t *tile_words, uint64_t *ends)
{
	__shared__ uint32_t warp_words[GPUSORT_WARPS];
	const uint32_t warp = threadIdx.x / 32;
	const uint32_t lane = threadIdx.x % 32;
	const uint32_t first = blockIdx.x * GPUSORT_TILE_ROWS + warp * GPUSORT_WARP_ROWS + lane;
	uint32_t words[GPUSORT_THREAD_ROWS];
	uint32_t sum = 0;
	uint64_t before = tile_words[blockIdx.x];

	/* a thread's rows are 32 apart, so a warp reads them one after the other; a tile has less than 2^31 words */
	for (uint32_t k = 0; k < GPUSORT_THREAD_ROWS; k++)
	{
		uint32_t i = first + 32 * k;

		words[k] = i < rows ? gpusort_ref_words(sorted_refs[i]) : 0;
		sum += words[k];
	}
	sum = __reduce_add_sync(GPUSORT_FULL_WARP, sum);
	if (lane == 0)
		warp_words[warp] = sum;
	__syncthreads();
	for (uint32_t w = 0; w < warp; w++)
		before += warp_words[w];

	for (uint32_t k = 0; k < GPUSORT_THREAD_ROWS; k++)
	{
		uint32_t i = first + 32 * k;
		uint32_t scanned = warp_inclusive_scan(words[k]);

		if (i < rows)
			ends[i] = before + scanned;
		before += __shfl_sync(GPUSORT_FULL_WARP, scanned, 31);
	}
}

static uint32_t
blocks_for(uint32_t rows)
{
	return rows / GPUSORT_THREADS + (rows % GPUSORT_THREADS > 0);
}

uint32_t
gpusort_order_tiles(uint32_t rows)
{
	return rows / GPUSORT_TILE_ROWS + (rows % GPUSORT_TILE_ROWS > 0);
}

/* All rows that the shard sorts, by id. */
static KeyedRows
rows_by_id(const GpuSortShard *shard)
{
	return {shard->work.chunks, shard->sort->key_words, shard->rows, shard->work.refs};
}

/*
 * How runs are told.  Partial keys do where all that is taken from the key for its first bits is at their top, or
 * more than they have: not where a word's base was taken away across the end of those bits, nor where codes stand for
 * them.
 */
static RunBits
describe_runs(const GpuSortShard *shard, const GpuSortPackPlan *plan)
{
	const uint32_t bits = shard->sort->run_bits;
	const uint32_t partial_bits = gpusort_pack_window_bits(plan, 0, 32);
	RunBits runs = {bits, !shard->work.has_codes, 0, shard->work.same};
	uint32_t packed = 0;

	for (uint32_t w = 0; 64 * w < bits; w++)
	{
		const uint32_t behind = bits - 64 * w < 64 ? 64 - (bits - 64 * w) : 0; /* of its bits */

		if (behind > 0 && plan->words[w].base != 0)
			runs.by_partial_keys = false;
		packed += (uint32_t) __builtin_popcountll(plan->words[w].kept >> behind);
	}
	runs.shift = packed < partial_bits ? partial_bits - packed : 0;
	return runs;
}

int
gpusort_check_order(GpuSortShard *shard, const GpuSortPackPlan *plan, GpuSortError *error)
{
	const uint32_t blocks = blocks_for(shard->rows_out);
	const bool whole = plan->packed_bits <= 32;
	GpuSortWork *work = &shard->work;
	uint32_t *partial_keys = work->has_ordered_keys ? work->partial_keys : NULL;

	if (shard->sort->run_rows == 0)
		GPUSORT_LAUNCH(shard->device, error, check_order<false>, blocks, GPUSORT_THREADS, shard->lane->compute,
					   rows_by_id(shard), work->ids, shard->rows_out, partial_keys, whole, work->equal, RunBits(),
					   shard->lane->state);
	else
		GPUSORT_LAUNCH(shard->device, error, check_order<true>, blocks, GPUSORT_THREADS, shard->lane->compute,
					   rows_by_id(shard), work->ids, shard->rows_out, partial_keys, whole, work->equal,
					   describe_runs(shard, plan), shard->lane->state);
	if (shard->rows_out < shard->rows)
		GPUSORT_LAUNCH(shard->device, error, count_up_to, blocks_for(shard->rows), GPUSORT_THREADS,
					   shard->lane->compute, rows_by_id(shard), work->ids + shard->rows_out - 1, shard->lane->state);
	return 0;
}

int
gpusort_order_refs(GpuSortShard *shard, GpuSortError *error)
{
	GpuSortWork *work = &shard->work;

	GPUSORT_LAUNCH(shard->device, error, order_refs, gpusort_order_tiles(shard->rows_out), GPUSORT_THREADS,
				   shard->lane->compute, work->refs, shard->rows, work->ids, shard->rows_out, work->sorted_refs,
				   work->tile_words, shard->lane->state);
	return 0;
}

int
gpusort_sum_tiles(GpuSortShard *shard, GpuSortError *error)
{
	GpuSortWork *work = &shard->work;

	GPUSORT_LAUNCH(shard->device, error, sum_tiles, gpusort_order_tiles(shard->rows_out), GPUSORT_THREADS,
				   shard->lane->compute, work->sorted_refs, shard->rows_out, work->tile_words);
	return 0;
}

int
gpusort_scan_tiles(GpuSortShard *shard, uint64_t *numbers, uint32_t count, GpuSortError *error)
{
	GPUSORT_LAUNCH(shard->device, error, scan_tiles, 1, GPUSORT_THREADS, shard->lane->compute, numbers, count);
	return 0;
}

int
gpusort_scan_rows(GpuSortShard *shard, GpuSortError *error)
{
	GpuSortWork *work = &shard->work;
	uint32_t tiles = gpusort_order_tiles(shard->rows_out);

	if (gpusort_scan_tiles(shard, work->tile_words, tiles, error) != 0)
		return -1;
	GPUSORT_LAUNCH(shard->device, error, scan_rows, tiles, GPUSORT_THREADS, shard->lane->compute,
				   work->sorted_refs, shard->rows_out, work->tile_words, work->ends);
	return 0;
}

int
gpusort_count_equal(GpuSortShard *shard, const GpuSortShard *bound, GpuSortError *error)
{
	GPUSORT_LAUNCH(shard->device, error, count_equal, blocks_for(shard->rows), GPUSORT_THREADS, shard->lane->compute,
				   rows_by_id(shard), bound->work.sorted_refs + bound->rows_out - 1, shard->lane->state);
	return 0;
}

int
gpusort_check_boundary(GpuSortShard *shard, const GpuSortShard *next, GpuSortError *error)
{
	GpuSortWork *work = &shard->work;
	const KeyedRows sorted = {work->chunks, shard->sort->key_words, shard->rows_out, work->sorted_refs};

	GPUSORT_LAUNCH(shard->device, error, check_boundary, 1, 1, shard->lane->compute, sorted, next->work.sorted_refs,
				   work->equal, shard->lane->state);
	return 0;
}
