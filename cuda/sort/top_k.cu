/*-------------------------------------------------------------------------
 *
 * top_k.cu
 *	  Radix select: from many rows to the few that can be among the first k.
 *
 * A level is a set of rows with a window of up to 32 bits of each one's key: first all
 * rows with their partial keys.  Its digits of 11 bits, the most significant first, are
 * counted and the one found in which the k-th row lies, until all bits of the window
 * are fixed or the rows up to that digit are few enough to keep them all.
 * (Alabi et al., "Fast k-selection algorithms for graphics processing units", 2012.)
 *
 * Rows below the digits are kept.  Those that tie with them make the next level, with the
 * next 32 bits; when no bits are left the window is the row's number, which no two rows
 * share and which is what a stable sort goes by.
 *
 * The rows kept are in no order: what sorts them has to start by their numbers.
 *
 * Moved per row of a level: 4 bytes per digit counted, 4 to collect.  Even digits need
 * one count, so that a select from all rows reads 8 bytes a row.
 *
 *-------------------------------------------------------------------------
 */
#include "sort/top_k.h"

#include "sort/key_source.h"
#include "sort/launch.h"
#include "sort/region.h"
#include "sort/sort_step.h"

#define SELECT_THREADS    256
#define SELECT_TILE       4096
#define DIGIT_BITS        11
#define DIGITS            (1 << DIGIT_BITS)
#define DIGITS_PER_WINDOW 3

/* Blocks that share the counting of a level. */
#define COUNT_BLOCKS 2048

/* Fewer rows are sorted before the kernels of a select have started; tests select from fewer, too. */
#ifndef GPUSORT_SELECT_ROWS_MIN
#ifdef __CUDACC__
#define GPUSORT_SELECT_ROWS_MIN (UINT32_C(1) << 20)
#else
#define GPUSORT_SELECT_ROWS_MIN (UINT32_C(1) << 10)
#endif
#endif

typedef struct SelectState
{
	/* of the level */
	uint32_t wanted;   /* rows that are to be found in it */
	uint32_t capacity; /* rows that may be kept of it */
	uint32_t shift;    /* bits of the window that are not fixed */
	uint32_t digits;   /* the fixed ones, right-aligned */
	uint32_t below;    /* rows whose fixed bits are less */
	uint32_t equal;    /* rows whose fixed bits are these */
	uint32_t done;
	uint32_t listed; /* rows of the next level */

	/* of all levels */
	uint32_t kept;

	uint32_t histogram[DIGITS]; /* of the digit that is fixed next */
} SelectState;

/* Rows that a select looks at, with a window of each one's key. */
typedef struct SelectLevel
{
	const uint32_t *windows;
	const uint32_t *ids; /* NULL: 0, 1, 2... */
	uint32_t rows;
	uint32_t bits;     /* of the windows */
	uint32_t wanted;   /* rows that are to be found */
	uint32_t capacity; /* rows that may be kept */
} SelectLevel;

static __global__ void
begin_level(SelectState *state, uint32_t wanted, uint32_t capacity, uint32_t bits)
{
	for (uint32_t i = threadIdx.x; i < DIGITS; i += SELECT_THREADS)
		state->histogram[i] = 0;
	if (threadIdx.x == 0)
	{
		state->wanted = wanted;
		state->capacity = capacity;
		state->shift = bits;
		state->digits = 0;
		state->below = 0;
		state->equal = 0;
		state->done = 0;
		state->listed = 0;
	}
}

GPUSORT_HD static inline uint32_t
digit_bits(uint32_t shift)
{
	return shift < DIGIT_BITS ? shift : DIGIT_BITS;
}

/* A shift by 32 leaves nothing. */
GPUSORT_HD static inline uint32_t
bits_above(uint32_t window, uint32_t shift)
{
	return (uint32_t) ((uint64_t) window >> shift);
}

/* Counts the next digit of the rows whose fixed bits are the level's. */
static __global__ void
__launch_bounds__(SELECT_THREADS)
	count_digit(const uint32_t *windows, uint32_t rows, SelectState *state)
{
	__shared__ uint32_t histogram[DIGITS];
	const uint32_t fixed = state->shift;
	const uint32_t digits = state->digits;
	const uint32_t shift = fixed - digit_bits(fixed);
	const uint32_t mask = (1u << digit_bits(fixed)) - 1;

	if (state->done)
		return;
	for (uint32_t i = threadIdx.x; i < DIGITS; i += SELECT_THREADS)
		histogram[i] = 0;
	__syncthreads();

	/* Whole warps stay together, to count a digit that all rows share at once. */
	for (uint64_t i = (uint64_t) blockIdx.x * SELECT_THREADS; i < rows; i += (uint64_t) gridDim.x * SELECT_THREADS)
	{
		const uint64_t row = i + threadIdx.x;
		const uint32_t window = row < rows ? windows[row] : 0;
		const bool counted = row < rows && bits_above(window, fixed) == digits;
		const uint32_t digit = window >> shift & mask;
		const uint32_t first_digit = __shfl_sync(0xFFFFFFFF, digit, 0);
		const uint32_t votes = __ballot_sync(0xFFFFFFFF, counted && digit == first_digit);

		if (votes == 0xFFFFFFFF)
		{
			if (threadIdx.x % 32 == 0)
				atomicAdd(&histogram[digit], 32u);
		}
		else if (counted)
			atomicAdd(&histogram[digit], 1u);
	}
	__syncthreads();
	for (uint32_t i = threadIdx.x; i < DIGITS; i += SELECT_THREADS)
	{
		if (histogram[i] > 0)
			atomicAdd(&state->histogram[i], histogram[i]);
	}
}

/* Fixes the digit in which the last wanted row lies; one block. */
static __global__ void
__launch_bounds__(SELECT_THREADS)
	fix_digit(SelectState *state)
{
	__shared__ uint32_t sums[SELECT_THREADS];
	const uint32_t first = threadIdx.x * (DIGITS / SELECT_THREADS);
	const uint32_t fixed = state->shift;
	const uint32_t digits = state->digits;
	const uint32_t below = state->below;
	const uint32_t wanted = state->wanted - below;
	uint32_t counts[DIGITS / SELECT_THREADS];
	uint32_t sum = 0;

	if (state->done)
		return;
	for (int i = 0; i < DIGITS / SELECT_THREADS; i++)
	{
		counts[i] = state->histogram[first + i];
		state->histogram[first + i] = 0;
		sum += counts[i];
	}
	sums[threadIdx.x] = sum;
	__syncthreads();
	for (uint32_t step = 1; step < SELECT_THREADS; step *= 2)
	{
		const uint32_t more = threadIdx.x >= step ? sums[threadIdx.x - step] : 0;

		__syncthreads();
		sums[threadIdx.x] += more;
		__syncthreads();
	}

	/* The counts cover all wanted rows, so exactly one thread finds its digit. */
	sum = sums[threadIdx.x] - sum;
	for (int i = 0; i < DIGITS / SELECT_THREADS; i++)
	{
		if (sum < wanted && wanted <= sum + counts[i])
		{
			state->shift = fixed - digit_bits(fixed);
			state->digits = digits << digit_bits(fixed) | (first + i);
			state->below = below + sum;
			state->equal = counts[i];
			state->done = fixed == digit_bits(fixed) || (uint64_t) below + sum + counts[i] <= state->capacity;
		}
		sum += counts[i];
	}
}

/*
 * Keeps the rows of a level below its digits, and those that tie as well if keep_equal;
 * otherwise these go to next_list.  ids are the rows' numbers; NULL: 0, 1, 2...
 */
static __global__ void
__launch_bounds__(SELECT_THREADS)
	collect_rows(const uint32_t *windows, const uint32_t *ids, uint32_t rows, bool keep_equal, SelectState *state,
				 uint32_t *kept_ids, uint32_t *next_list)
{
	__shared__ uint32_t found[2];
	__shared__ uint32_t places[2];
	const int turns = SELECT_TILE / SELECT_THREADS;
	const uint32_t fixed = state->shift;
	const uint32_t digits = state->digits;
	const uint32_t lanes_below = (1u << threadIdx.x % 32) - 1;
	const uint64_t start = (uint64_t) blockIdx.x * SELECT_TILE + threadIdx.x;
	uint32_t is_kept = 0; /* bit i: the row of turn i is */
	uint32_t is_listed = 0;
	uint32_t kept = 0; /* of this warp's rows */
	uint32_t listed = 0;

	if (threadIdx.x < 2)
		found[threadIdx.x] = 0;
	for (int i = 0; i < turns; i++)
	{
		const uint64_t row = start + i * SELECT_THREADS;

		if (row < rows)
		{
			const uint32_t above = bits_above(windows[row], fixed);

			is_kept |= (uint32_t) (above < digits || (above == digits && keep_equal)) << i;
			is_listed |= (uint32_t) (above == digits && !keep_equal) << i;
		}
	}
	kept = __reduce_add_sync(0xFFFFFFFF, __popc(is_kept));
	listed = __reduce_add_sync(0xFFFFFFFF, __popc(is_listed));
	__syncthreads();

	/* A place among the block's for the warp, then among all for the block. */
	if (threadIdx.x % 32 == 0)
	{
		kept = kept > 0 ? atomicAdd(&found[0], kept) : 0;
		listed = listed > 0 ? atomicAdd(&found[1], listed) : 0;
	}
	__syncthreads();
	if (threadIdx.x == 0)
	{
		places[0] = found[0] > 0 ? atomicAdd(&state->kept, found[0]) : 0;
		places[1] = found[1] > 0 ? atomicAdd(&state->listed, found[1]) : 0;
	}
	__syncthreads();
	if (found[0] + found[1] == 0)
		return;
	kept = __shfl_sync(0xFFFFFFFF, kept, 0) + places[0];
	listed = __shfl_sync(0xFFFFFFFF, listed, 0) + places[1];

	for (int i = 0; i < turns; i++)
	{
		const uint64_t row = start + i * SELECT_THREADS;
		const uint32_t kept_votes = __ballot_sync(0xFFFFFFFF, (is_kept >> i & 1) != 0);
		const uint32_t listed_votes = __ballot_sync(0xFFFFFFFF, (is_listed >> i & 1) != 0);

		if (is_kept >> i & 1)
			kept_ids[kept + __popc(kept_votes & lanes_below)] = ids != NULL ? ids[row] : (uint32_t) row;
		if (is_listed >> i & 1)
			next_list[listed + __popc(listed_votes & lanes_below)] = ids != NULL ? ids[row] : (uint32_t) row;
		kept += __popc(kept_votes);
		listed += __popc(listed_votes);
	}
}

/* windows[i] = `bits` bits of the key of row ids[i]. */
template <int FORM>
static __global__ void
make_windows(const __grid_constant__ GpuSortKeySource source, const __grid_constant__ GpuSortPackPlan plan,
			 uint32_t from, uint32_t bits, const uint32_t *ids, uint32_t rows, uint32_t *windows)
{
	const uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x;
	uint64_t made;

	if (i < rows)
		windows[i] = gpusort_pack_window(&plan, gpusort_source_key<FORM>(&source, ids[i], &made), from, bits);
}

/* One thread. */
template <int FORM>
static __global__ void
find_tie_end(const __grid_constant__ GpuSortKeySource source, const __grid_constant__ GpuSortPackPlan plan,
			 const uint32_t *ids, uint32_t rows, uint32_t limit, uint32_t *end)
{
	uint64_t made[2];
	const uint64_t *key = gpusort_source_key<FORM>(&source, ids[limit - 1], &made[0]);
	uint32_t known = limit;
	uint32_t past = rows;

	while (known < past)
	{
		const uint32_t middle = known + (past - known) / 2;
		const uint64_t *other = gpusort_source_key<FORM>(&source, ids[middle], &made[1]);
		uint32_t from = 0;

		while (from < plan.packed_bits &&
			   gpusort_pack_window64(&plan, key, from, 64) == gpusort_pack_window64(&plan, other, from, 64))
			from += 64;
		if (from >= plan.packed_bits)
			known = middle + 1;
		else
			past = middle;
	}
	*end = known;
}

int
gpusort_tie_end(const GpuSortDeviceSort *sort, const uint32_t *ids, uint32_t rows, uint32_t limit, uint32_t *end,
				void *temp, cudaStream_t stream)
{
	cudaError_t status;
	int waited;

	if (sort->wait.mirror == NULL)
		return cudaErrorInvalidValue;
#define FIND_TIE_END(FORM) find_tie_end<FORM>
	GPUSORT_START_BY_FORM(&sort->source, FIND_TIE_END, 1, 1, stream, sort->source, *sort->plan, ids, rows, limit,
						  (uint32_t *) temp);
#undef FIND_TIE_END
	if ((status = cudaGetLastError()) != cudaSuccess)
		return status;
	status = cudaMemcpyAsync(sort->wait.mirror, temp, sizeof(uint32_t), cudaMemcpyDeviceToHost, stream);
	if (status != cudaSuccess)
		return status;
	if ((waited = gpusort_device_wait(&sort->wait, stream)) != 0)
		return waited;
	*end = *(const uint32_t *) sort->wait.mirror;
	return cudaSuccess;
}

bool
gpusort_select_pays(const GpuSortDeviceSort *sort)
{
	return sort->limit > 0 && sort->limit <= sort->rows / 4 && sort->rows >= GPUSORT_SELECT_ROWS_MIN;
}

uint32_t
gpusort_select_capacity(const GpuSortDeviceSort *sort)
{
	const uint32_t few = sort->rows / 64;

	return 2 * sort->limit > few ? 2 * sort->limit : few;
}

size_t
gpusort_select_bytes(const GpuSortDeviceSort *sort)
{
	size_t end = 0;

	(void) gpusort_region_lay(&end, sizeof(SelectState));
	(void) gpusort_region_lay(&end, (size_t) sort->rows * sizeof(uint32_t));
	return end;
}

/* Fixes the digits of a level and reads what was found into *found.  Waits. */
static int
fix_level(const GpuSortDeviceSort *sort, const SelectLevel *level, SelectState *state, SelectState *found,
		  cudaStream_t stream)
{
	const uint64_t blocks = ((uint64_t) level->rows + SELECT_THREADS - 1) / SELECT_THREADS;
	cudaError_t status;
	int waited;

	GPUSORT_START_KERNEL(begin_level, 1, SELECT_THREADS, stream, state, level->wanted, level->capacity, level->bits);
	for (uint32_t left = level->bits; left > 0; left -= digit_bits(left))
	{
		GPUSORT_START_KERNEL(count_digit, (uint32_t) (blocks < COUNT_BLOCKS ? blocks : COUNT_BLOCKS), SELECT_THREADS,
							 stream, level->windows, level->rows, state);
		GPUSORT_START_KERNEL(fix_digit, 1, SELECT_THREADS, stream, state);
	}
	if ((status = cudaGetLastError()) != cudaSuccess)
		return status;
	status =
		cudaMemcpyAsync(sort->wait.mirror, state, offsetof(SelectState, histogram), cudaMemcpyDeviceToHost, stream);
	if (status != cudaSuccess)
		return status;
	if ((waited = gpusort_device_wait(&sort->wait, stream)) != 0)
		return waited;
	memcpy(found, sort->wait.mirror, offsetof(SelectState, histogram));
	return cudaSuccess;
}

int
gpusort_select(const GpuSortDeviceSort *sort, const uint32_t *partial_keys, const GpuSortSelectMemory *memory,
			   uint32_t *kept, cudaStream_t stream)
{
	const uint32_t packed_bits = sort->plan->packed_bits;
	size_t end = 0;
	SelectState *state = (SelectState *) ((char *) memory->temp + gpusort_region_lay(&end, sizeof(SelectState)));
	uint32_t *lists[2] = {memory->list, (uint32_t *) ((char *) memory->temp + end)};
	uint32_t from = 0;
	SelectLevel level = {};
	cudaError_t status;

	*kept = 0;
	if (memory->temp_bytes < gpusort_select_bytes(sort) || sort->wait.mirror == NULL)
		return cudaErrorInvalidValue;
	level.windows = partial_keys;
	level.rows = sort->rows;
	level.bits = gpusort_pack_window_bits(sort->plan, 0, 32);
	status = cudaMemsetAsync(state, 0, sizeof(SelectState), stream);
	for (int number = 0; status == cudaSuccess; number++)
	{
		const uint32_t blocks = (uint32_t) (((uint64_t) level.rows + SELECT_TILE - 1) / SELECT_TILE);
		SelectState found;
		bool keep_equal;
		int waited;

		level.wanted = sort->limit - *kept;
		level.capacity = gpusort_select_capacity(sort) - *kept;
		waited = fix_level(sort, &level, state, &found, stream);
		if (waited != 0)
			return waited;
		from += level.bits;
		keep_equal = (uint64_t) found.below + found.equal <= level.capacity;
		if (!keep_equal && from >= packed_bits && sort->limit_ties)
		{
			*kept = 0;
			break;
		}

		GPUSORT_START_KERNEL(collect_rows, blocks, SELECT_THREADS, stream, level.windows, level.ids, level.rows,
							 keep_equal, state, memory->kept_ids, lists[number % 2]);
		if ((status = cudaGetLastError()) != cudaSuccess)
			break;
		*kept += found.below + (keep_equal ? found.equal : 0);
		if (keep_equal)
			break;

		/* The next level: those that tie, by the bits that follow, and by their numbers at last. */
		level.ids = lists[number % 2];
		level.rows = found.equal;
		level.bits = gpusort_pack_window_bits(sort->plan, from, 32);
		level.windows = level.bits > 0 ? memory->spare : level.ids;
		if (level.bits > 0)
		{
#define MAKE_WINDOWS(FORM) make_windows<FORM>
			GPUSORT_START_BY_FORM(&sort->source, MAKE_WINDOWS,
								  (uint32_t) (((uint64_t) level.rows + SELECT_THREADS - 1) / SELECT_THREADS),
								  SELECT_THREADS, stream, sort->source, *sort->plan, from, level.bits, level.ids,
								  level.rows, memory->spare);
#undef MAKE_WINDOWS
			status = cudaGetLastError();
		}
		else
			level.bits = 32;
	}
	return status;
}
