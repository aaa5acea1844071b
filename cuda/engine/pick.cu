/*-------------------------------------------------------------------------
 *
 * pick.cu
 *	  Keeps only the first rows of each run of equal keys, once all rows are in order.
 *
 * A run is rows whose first run_bits bits are equal; where only the key can tell, a row that is
 * KEY_TRUNCATED is a run of its own.  A group is rows whose whole keys are equal.  order.cu has
 * written a bit for each row that the next one is of the same run, and one that it is of the same
 * group.  What is kept of a run is always its beginning, so a row needs to know no more than
 * where its run and its group begin.
 *
 *	1. break_runs	truncated rows become runs of their own, where they are to
 *	2. find_starts	where the last run and the last group of each tile of rows begin
 *	3. choose_rows	which rows are kept; each tile looks back for what it begins in
 *	4. scan_tiles	how many are kept before each tile (order.cu)
 *	5. sum_counts	the counts of rows that are left out, to the row kept before them;
 *	   sum_leads	and of those whose kept row is another warp's
 *	6. move_refs	the kept rows' refs and group bits, without gaps
 *
 * Behind the last row there is one more in 3 to 6 that has no ref, and is kept: its bit says whether the
 * last row kept is of one group with the first of the next shard.
 *
 * The work takes the room of the ids and of the refs by row id, neither of which is used any more.
 *
 *-------------------------------------------------------------------------
 */
#include "engine/check.h"
#include "engine/device.h"
#include "engine/steps.h"
#include "sort/region.h"

#define GPUSORT_WARPS (GPUSORT_THREADS / 32)

/* Words of 32 rows that a block takes, one per thread; a tile is a block's, a part is a warp's. */
#define GPUSORT_TILE_WORDS GPUSORT_THREADS
#define GPUSORT_TILE_ROWS  (32 * GPUSORT_TILE_WORDS)

/* A row's words that its count is in. */
#define GPUSORT_COUNT_WORD (GPUSORT_ROW_COUNT_OFFSET / 8)
#define GPUSORT_COUNT_END  (GPUSORT_ROW_COUNT_OFFSET + 8)

/* No row of a part is kept. */
#define GPUSORT_NO_REF UINT64_MAX

/* What the kernels work on. */
typedef struct Picking
{
	const GpuSortDeviceChunk *chunks;
	const GpuSortRowRef *refs; /* in order */
	uint32_t rows;
	uint32_t run_rows;
	bool peers;
	uint32_t *same;        /* a bit per row: the next one is of its run */
	const uint32_t *equal; /* and of its group; may be NULL */

	uint32_t *kept;   /* a bit per row, as the next */
	uint32_t *joined; /* of a kept row: it is of one group with the one kept before it */
	/* of each tile, where the last ones begin, plus 1; 0: none does */
	uint32_t *last_runs;
	uint32_t *last_groups;
	uint64_t *tile_kept; /* rows kept of each tile, then of all before it; one more at the end */
	/* of each part, with counts: */
	uint64_t *leads;         /* those of rows before the first one kept */
	GpuSortRowRef *last_ref; /* of the last row kept */

	GpuSortRowRef *kept_refs; /* the result */
	uint32_t *kept_equal;     /* all zeros at first; NULL if equal is */
} Picking;

static __device__ uint32_t
larger_of(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static __device__ uint32_t
low_bits(uint64_t bits)
{
	return bits < 32 ? (1u << bits) - 1 : UINT32_MAX;
}

/* How many rows, with the one behind the last, a word has; 0: it is beyond them. */
static __device__ uint32_t
rows_of_word(const Picking &picking, uint64_t word)
{
	const uint64_t all = (uint64_t) picking.rows + 1;

	return word * 32 >= all ? 0 : all - word * 32 < 32 ? (uint32_t) (all - word * 32)
													   : 32;
}

/* The rows of a word, which has some, that something begins at, from the bits that say where it goes on. */
static __device__ uint32_t
starts_of(const uint32_t *goes_on, uint64_t word, uint32_t rows)
{
	const uint32_t before = word > 0 ? goes_on[word - 1] >> 31 : 0;

	return ~(goes_on[word] << 1 | before) & low_bits(rows);
}

/* The last of these rows of a word, plus 1; 0: there is none. */
static __device__ uint32_t
last_of(uint32_t bits, uint64_t word)
{
	return bits != 0 ? (uint32_t) (word * 32) + 32 - __clz(bits) : 0;
}

/* Combines the values of a block's threads before each one's. */
template <bool SUM>
static __device__ uint32_t
combine_before(uint32_t value)
{
	__shared__ uint32_t warp_values[GPUSORT_WARPS];
	const uint32_t warp = threadIdx.x / 32;
	const uint32_t lane = threadIdx.x % 32;
	uint32_t through = value;
	uint32_t before;

	for (uint32_t step = 1; step < 32; step *= 2)
	{
		uint32_t other = __shfl_up_sync(GPUSORT_FULL_WARP, through, step);

		if (lane >= step)
			through = SUM ? through + other : larger_of(through, other);
	}
	if (lane == 31)
		warp_values[warp] = through;
	before = __shfl_up_sync(GPUSORT_FULL_WARP, through, 1);
	if (lane == 0)
		before = 0;
	__syncthreads();
	for (uint32_t w = 0; w < warp; w++)
		before = SUM ? before + warp_values[w] : larger_of(before, warp_values[w]);

	/* warp_values may be written again next */
	__syncthreads();
	return before;
}

/* The last value that is not 0 of the tiles before this block's; they rise.  0: there is none. */
static __device__ uint32_t
last_before(const uint32_t *tile_values)
{
	__shared__ uint32_t found;

	for (uint32_t end = blockIdx.x; end > 0; end = end > GPUSORT_THREADS ? end - GPUSORT_THREADS : 0)
	{
		uint32_t last;

		if (threadIdx.x == 0)
			found = 0;
		__syncthreads();
		if (threadIdx.x < end && tile_values[end - 1 - threadIdx.x] > 0)
			atomicMax(&found, tile_values[end - 1 - threadIdx.x]);
		__syncthreads();
		last = found;
		__syncthreads();
		if (last > 0)
			return last;
	}
	return 0;
}

/* Each warp takes a word of 32 rows. */
static __global__ void
break_runs(const __grid_constant__ Picking picking)
{
	const uint64_t row = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x;
	const bool breaks = row + 1 < picking.rows &&
		(gpusort_ref_truncated(picking.refs[row]) || gpusort_ref_truncated(picking.refs[row + 1]));
	const uint32_t votes = __ballot_sync(GPUSORT_FULL_WARP, breaks);

	if (threadIdx.x % 32 == 0 && row < picking.rows && votes != 0)
		picking.same[row / 32] &= ~votes;
}

static __global__ void
find_starts(const __grid_constant__ Picking picking)
{
	__shared__ uint32_t last_run;
	__shared__ uint32_t last_group;
	const uint64_t word = (uint64_t) blockIdx.x * GPUSORT_TILE_WORDS + threadIdx.x;
	const uint32_t rows = rows_of_word(picking, word);

	if (threadIdx.x == 0)
		last_run = last_group = 0;
	__syncthreads();
	if (rows > 0)
	{
		const uint32_t run = last_of(starts_of(picking.same, word, rows), word);
		const uint32_t group = picking.equal != NULL ? last_of(starts_of(picking.equal, word, rows), word) : 0;

		if (run > 0)
			atomicMax(&last_run, run);
		if (group > 0)
			atomicMax(&last_group, group);
	}
	__syncthreads();
	if (threadIdx.x == 0)
	{
		picking.last_runs[blockIdx.x] = last_run;
		picking.last_groups[blockIdx.x] = last_group;
	}
}

/* Returns true if a row of a run and a group that begin at these rows is kept. */
static __device__ bool
is_kept(const Picking &picking, uint32_t row, uint32_t run, uint32_t group)
{
	if (picking.peers)
		row = larger_of(run, group);
	return row - run < picking.run_rows;
}

static __global__ void
choose_rows(const __grid_constant__ Picking picking)
{
	__shared__ uint32_t tile_kept;
	const uint64_t word = (uint64_t) blockIdx.x * GPUSORT_TILE_WORDS + threadIdx.x;
	const uint32_t first = (uint32_t) (word * 32);
	const uint32_t rows = rows_of_word(picking, word);
	const uint32_t run_starts = rows > 0 ? starts_of(picking.same, word, rows) : 0;
	const uint32_t group_starts = rows > 0 && picking.equal != NULL ? starts_of(picking.equal, word, rows) : 0;
	uint32_t run = larger_of(last_before(picking.last_runs), combine_before<false>(last_of(run_starts, word)));
	uint32_t group = larger_of(last_before(picking.last_groups), combine_before<false>(last_of(group_starts, word)));
	uint32_t kept = 0;
	uint32_t joined = 0;
	bool kept_before;

	/* of the row before, from here on; there is one in each word but the first */
	run = run > 0 ? run - 1 : 0;
	group = group > 0 ? group - 1 : 0;
	kept_before = first > 0 && is_kept(picking, first - 1, run, group);

	if (threadIdx.x == 0)
		tile_kept = 0;
	__syncthreads();
	for (uint32_t i = 0; i < rows; i++)
	{
		const uint32_t row = first + i;
		const uint32_t run_before = run;
		const bool new_group = group_starts >> i & 1;

		if (run_starts >> i & 1)
			run = row;
		if (new_group)
			group = row;
		if (!is_kept(picking, row, run, group))
		{
			kept_before = false;
			continue;
		}
		/* behind rows left out, it is of the last kept one's group if that has all of them */
		if (row > 0 &&
			(kept_before ? !new_group : !picking.peers && group < (uint64_t) run_before + picking.run_rows))
			joined |= 1u << i;
		kept |= 1u << i;
		kept_before = true;
	}
	if (rows > 0)
	{
		picking.kept[word] = kept;
		picking.joined[word] = joined;
		atomicAdd(&tile_kept, (uint32_t) __popc(kept));
	}
	__syncthreads();
	if (threadIdx.x == 0)
		picking.tile_kept[blockIdx.x] = tile_kept;
	if (threadIdx.x == 0 && blockIdx.x == 0)
		picking.tile_kept[gridDim.x] = 0;
}

/* The bits of `bits` where mask has one, next to each other. */
static __device__ uint32_t
close_up(uint32_t bits, uint32_t mask)
{
	uint32_t closed = 0;

	for (uint32_t to = 0; mask != 0; to++)
	{
		closed |= (bits >> (__ffs(mask) - 1) & 1) << to;
		mask &= mask - 1;
	}
	return closed;
}

/* Adds to a bit array that is all zeros there. */
static __device__ void
add_bits(uint32_t *array, uint32_t at, uint32_t bits)
{
	const uint64_t placed = (uint64_t) bits << at % 32;

	if ((uint32_t) placed != 0)
		atomicOr(&array[at / 32], (uint32_t) placed);
	if (placed >> 32 != 0)
		atomicOr(&array[at / 32 + 1], (uint32_t) (placed >> 32));
}

static __global__ void
move_refs(const __grid_constant__ Picking picking)
{
	__shared__ uint32_t kept[GPUSORT_TILE_WORDS];
	__shared__ uint32_t places[GPUSORT_TILE_WORDS]; /* of each word's first row kept */
	const uint64_t first_word = (uint64_t) blockIdx.x * GPUSORT_TILE_WORDS;
	const uint64_t word = first_word + threadIdx.x;
	const uint32_t lane = threadIdx.x % 32;
	const uint32_t here = rows_of_word(picking, word) > 0 ? picking.kept[word] : 0;
	const uint32_t place = (uint32_t) picking.tile_kept[blockIdx.x] + combine_before<true>(__popc(here));

	kept[threadIdx.x] = here;
	places[threadIdx.x] = place;
	if (picking.kept_equal != NULL && here != 0)
	{
		const uint32_t joined = close_up(picking.joined[word], here);

		/* a row's bit is that of the row kept before it; the very first one's is 0 */
		if (place > 0)
			add_bits(picking.kept_equal, place - 1, joined);
		else
			add_bits(picking.kept_equal, 0, joined >> 1);
	}
	__syncthreads();

	/* A warp moves 32 refs at once, of one word after the other. */
	for (uint32_t k = 0; k < 32; k++)
	{
		const uint32_t slot = threadIdx.x / 32 * 32 + k;
		const uint64_t row = (first_word + slot) * 32 + lane;

		if (row < picking.rows && (kept[slot] >> lane & 1))
			picking.kept_refs[places[slot] + __popc(kept[slot] & low_bits(lane))] = picking.refs[row];
	}
}

static __device__ uint64_t *
row_of(const Picking &picking, GpuSortRowRef ref)
{
	return (uint64_t *) gpusort_ref_row(picking.chunks, ref);
}

/*
 * Sets each kept row's count to the sum of its own and those of the rows behind it that are left out, as far
 * as they are in its part.  A row is read and written by one thread alone, on whatever device it lies.
 */
static __global__ void
sum_counts(const __grid_constant__ Picking picking, GpuSortDeviceState *state)
{
	const uint32_t lane = threadIdx.x % 32;
	const uint32_t part = blockIdx.x * GPUSORT_WARPS + threadIdx.x / 32;
	GpuSortRowRef open = GPUSORT_NO_REF; /* the last row kept so far, the same for all lanes */
	uint64_t sum = 0;                    /* of it, or before the first one */

	for (uint32_t k = 0; k < 32; k++)
	{
		const uint64_t word = (uint64_t) part * 32 + k;
		const uint64_t row = word * 32 + lane;
		const uint32_t valid = word * 32 < picking.rows ? low_bits(picking.rows - word * 32) : 0;
		const uint32_t kept = valid != 0 ? picking.kept[word] & valid : 0;
		const uint32_t above = kept & ~low_bits(lane + 1);
		const uint32_t last = kept != 0 ? 31 - __clz(kept) : 0;
		GpuSortRowRef ref = 0;
		uint64_t *place = NULL;
		uint64_t count = 0;
		uint64_t through;
		uint64_t before;
		uint64_t own;

		/* the same for all lanes */
		if (valid == 0)
			break;
		if (row < picking.rows)
		{
			ref = picking.refs[row];
			place = row_of(picking, ref);
			if ((uint32_t) place[0] >= GPUSORT_COUNT_END)
				count = place[GPUSORT_COUNT_WORD];
			else
				atomicAdd(&state->short_rows, 1u);
		}
		through = count;
		for (uint32_t step = 1; step < 32; step *= 2)
		{
			uint64_t other = __shfl_up_sync(GPUSORT_FULL_WARP, through, step);

			if (lane >= step)
				through += other;
		}

		/* from this row to before the next one kept, or to the end; and from the start to before the first */
		own = __shfl_sync(GPUSORT_FULL_WARP, through, above != 0 ? __ffs(above) - 2 : 31) - (through - count);
		before = __shfl_sync(GPUSORT_FULL_WARP, through, kept == 0 ? 31 : __ffs(kept) - 1);
		before -= kept == 0 ? 0 : __shfl_sync(GPUSORT_FULL_WARP, count, __ffs(kept) - 1);
		sum += before;
		if (kept == 0)
			continue;
		if (lane == 0 && open == GPUSORT_NO_REF)
			picking.leads[part] = sum;
		if (lane == 0 && open != GPUSORT_NO_REF)
			row_of(picking, open)[GPUSORT_COUNT_WORD] = sum;
		if ((kept >> lane & 1) && above != 0 && (uint32_t) place[0] >= GPUSORT_COUNT_END)
			place[GPUSORT_COUNT_WORD] = own;
		open = __shfl_sync(GPUSORT_FULL_WARP, ref, last);
		sum = __shfl_sync(GPUSORT_FULL_WARP, own, last);
	}
	if (lane == 0)
	{
		if (open == GPUSORT_NO_REF)
			picking.leads[part] = sum;
		else
			row_of(picking, open)[GPUSORT_COUNT_WORD] = sum;
		picking.last_ref[part] = open;
	}
}

/* Adds to the last row kept of each part what the parts behind it begin with, up to one that keeps a row. */
static __global__ void
sum_leads(const __grid_constant__ Picking picking, uint32_t parts)
{
	const uint32_t part = blockIdx.x * blockDim.x + threadIdx.x;
	uint64_t sum = 0;

	if (part >= parts || picking.last_ref[part] == GPUSORT_NO_REF)
		return;
	for (uint32_t next = part + 1; next < parts; next++)
	{
		sum += picking.leads[next];
		if (picking.last_ref[next] != GPUSORT_NO_REF)
			break;
	}
	if (sum > 0)
		row_of(picking, picking.last_ref[part])[GPUSORT_COUNT_WORD] += sum;
}

/* Tiles of so many rows and the one behind them. */
static uint32_t
count_tiles(uint32_t rows)
{
	return rows / GPUSORT_TILE_ROWS + 1;
}

/* Says where everything is in `base`; returns the bytes of all that. */
static uint64_t
lay_out(Picking *picking, char *base, uint32_t rows)
{
	const uint64_t bits = gpusort_row_bits_bytes(rows);
	const uint64_t tiles = count_tiles(rows);
	uint64_t end = 0;

	picking->kept = (uint32_t *) (base + gpusort_region_lay(&end, bits));
	picking->joined = (uint32_t *) (base + gpusort_region_lay(&end, bits));
	picking->kept_equal = (uint32_t *) (base + gpusort_region_lay(&end, bits));
	picking->last_runs = (uint32_t *) (base + gpusort_region_lay(&end, tiles * sizeof(uint32_t)));
	picking->last_groups = (uint32_t *) (base + gpusort_region_lay(&end, tiles * sizeof(uint32_t)));
	picking->tile_kept = (uint64_t *) (base + gpusort_region_lay(&end, (tiles + 1) * sizeof(uint64_t)));
	picking->leads = (uint64_t *) (base + gpusort_region_lay(&end, tiles * GPUSORT_WARPS * sizeof(uint64_t)));
	picking->last_ref =
		(GpuSortRowRef *) (base + gpusort_region_lay(&end, tiles * GPUSORT_WARPS * sizeof(GpuSortRowRef)));
	return end;
}

uint64_t
gpusort_pick_bytes(uint32_t rows)
{
	Picking ignored;

	return lay_out(&ignored, NULL, rows);
}

static uint32_t
blocks_for(uint32_t items)
{
	return items / GPUSORT_THREADS + (items % GPUSORT_THREADS > 0);
}

int
gpusort_pick_rows(GpuSortShard *shard, GpuSortError *error)
{
	const GpuSort *sort = shard->sort;
	const cudaStream_t stream = shard->lane->compute;
	const uint32_t tiles = count_tiles(shard->rows_out);
	const uint32_t parts = tiles * GPUSORT_WARPS;
	GpuSortCudaDevice *device = shard->device;
	GpuSortWork *work = &shard->work;
	Picking picking = {};

	(void) lay_out(&picking, (char *) work->ids, shard->rows_out);
	picking.chunks = work->chunks;
	picking.refs = work->sorted_refs;
	picking.rows = shard->rows_out;
	picking.run_rows = sort->run_rows;
	picking.peers = sort->run_peers;
	picking.same = work->same;
	picking.equal = work->equal;
	picking.kept_refs = work->refs;
	if (!sort->may_tie)
		picking.kept_equal = NULL;

	if (sort->may_tie && !sort->run_exact)
		GPUSORT_LAUNCH(device, error, break_runs, blocks_for(shard->rows_out), GPUSORT_THREADS, stream, picking);
	GPUSORT_LAUNCH(device, error, find_starts, tiles, GPUSORT_THREADS, stream, picking);
	GPUSORT_LAUNCH(device, error, choose_rows, tiles, GPUSORT_THREADS, stream, picking);
	if (gpusort_scan_tiles(shard, picking.tile_kept, tiles + 1, error) != 0)
		return -1;
	if (sort->run_counts)
	{
		GPUSORT_LAUNCH(device, error, sum_counts, tiles, GPUSORT_THREADS, stream, picking, shard->lane->state);
		GPUSORT_LAUNCH(device, error, sum_leads, blocks_for(parts), GPUSORT_THREADS, stream, picking, parts);
	}
	if (picking.kept_equal != NULL)
		GPUSORT_CUDA(device, error,
					 cudaMemsetAsync(picking.kept_equal, 0, gpusort_row_bits_bytes(shard->rows_out), stream));
	GPUSORT_LAUNCH(device, error, move_refs, tiles, GPUSORT_THREADS, stream, picking);
	GPUSORT_CUDA(device, error,
				 cudaMemcpyAsync(&shard->lane->state->kept_rows, picking.tile_kept + tiles, sizeof(uint64_t),
								 cudaMemcpyDeviceToDevice, stream));

	/* what was sorted_refs is free for ends */
	work->ends = (uint64_t *) work->sorted_refs;
	work->sorted_refs = picking.kept_refs;
	work->equal = picking.kept_equal;
	return 0;
}
