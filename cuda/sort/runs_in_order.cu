/*-------------------------------------------------------------------------
 *
 * runs_in_order.cu
 *	  Which long runs of tied rows are in order already.
 *
 * Long runs are mostly rows with equal keys, which no level of sorting would change.
 * A run in which no row's key is smaller than that of the row before it is in order,
 * and in that of a stable sort: rows with equal keys have the order that they shall
 * have, as whatever sorted them so far was stable.  In turn:
 *
 *	sample_runs		looks at SAMPLE_PAIRS neighbours of each run.  A descent says that the
 *					run is mixed; it is open otherwise.
 *	count_equal		where open runs have many of the rows, and are few: goes over the keys
 *					of all rows, in the order in which they lie, and counts how many equal
 *					the first row of each open run; their keys are in a hash table in
 *					shared memory.  Rows with equal keys are all in the same run.  So a
 *					run of which all rows were counted is one of equal keys, and done.
 *					This costs a read of the keys from end to end, where the next step
 *					fetches each row's from wherever it lies.
 *	check_runs		compares all neighbours in the runs that are open still.  A block
 *					leaves a run alone once it is known to be mixed.
 *	keep_mixed_runs	lists the mixed runs anew.
 *
 * So what is in no order costs next to nothing, and what is in order is looked at once.
 *
 *-------------------------------------------------------------------------
 */
#include "sort/tied_runs.h"

#include "sort/launch.h"
#include "sort/region.h"

/* Pairs of neighbours of a run that a warp looks at first. */
#define SAMPLE_PAIRS 64
#define SAMPLE_WARPS 8

#define CHECK_BLOCKS 4096

/*
 * What count_equal is for: so many runs with so long keys, in a table of this many places; at
 * least a part of the rows in open runs; and not for small sorts, but in tests.
 */
#define EQUAL_RUNS   1024
#define EQUAL_WORDS  4
#define EQUAL_PLACES 4096
#define EQUAL_SHARE  4
#ifdef __CUDACC__
#define EQUAL_ROWS_MIN (1u << 20)
#else
#define EQUAL_ROWS_MIN 4000
#endif

#define EQUAL_THREADS 512
#define EQUAL_BLOCKS  792 /* on an H200 three fit a multiprocessor if keys have one word, else two: 2 and 3 rounds */

static_assert(SAMPLE_PAIRS < GPUSORT_BLOCK_RUN, "a sample is of different pairs");
static_assert(EQUAL_RUNS < UINT16_MAX && 2 * EQUAL_RUNS <= EQUAL_PLACES, "every search ends at an empty place");

typedef enum RunState
{
	RUN_OPEN,  /* may be in order */
	RUN_MIXED, /* is not */
	RUN_DONE,  /* is */
} RunState;

/* Keys of the first rows of open runs. */
typedef struct EqualTable
{
	uint32_t count;               /* of them; 0: nothing to be done */
	uint32_t numbers[EQUAL_RUNS]; /* of the runs */
	uint32_t counts[EQUAL_RUNS];  /* of rows with the same key */
	uint64_t keys[EQUAL_WORDS][EQUAL_RUNS];
	uint32_t places[EQUAL_PLACES]; /* index of a key plus 1, or 0 */
} EqualTable;

/*
 * Returns true if the key of row b, which comes right after row a, is smaller than a's.  Both tie
 * on the bits before `from`.
 */
template <int FORM>
static __device__ inline bool
is_descent(const GpuSortKeySource &source, const GpuSortPackPlan &plan, uint32_t from, uint64_t window_a, uint32_t a,
		   uint64_t window_b, uint32_t b)
{
	if (window_a != window_b || from + GPUSORT_TIE_WINDOW >= plan.packed_bits)
		return window_b < window_a;
	return compare_after<FORM>(source, plan, from + GPUSORT_TIE_WINDOW, b, a) < 0;
}

/* Looks at neighbours in each run, evenly spread over it.  A warp for each run. */
template <int FORM>
static __global__ void
__launch_bounds__(SAMPLE_WARPS * 32)
	sample_runs(const __grid_constant__ GpuSortKeySource source, const __grid_constant__ GpuSortPackPlan plan,
				uint32_t from, const __grid_constant__ GpuSortLongRuns runs, const uint32_t *ids, uint32_t *states,
				GpuSortRunCounts *counts)
{
	const uint32_t number = blockIdx.x * SAMPLE_WARPS + threadIdx.x / 32;
	const uint32_t lane = threadIdx.x % 32;
	bool descends = false;

	if (number >= runs.count)
		return;
	const uint32_t start = runs.runs[number].start;
	const uint32_t last = run_offset_end(runs, number) - runs.runs[number].offset - 1;

	for (uint32_t pair = lane; pair < SAMPLE_PAIRS; pair += 32)
	{
		const uint32_t at = start + (uint32_t) ((uint64_t) (last - 1) * pair / (SAMPLE_PAIRS - 1));

		descends = descends || compare_after<FORM>(source, plan, from, ids[at + 1], ids[at]) < 0;
	}
	descends = __any_sync(GPUSORT_ALL_LANES, descends);
	if (lane == 0)
	{
		states[number] = descends ? RUN_MIXED : RUN_OPEN;
		if (!descends)
			atomicAdd(&counts->open_runs, 1ull << 32 | (last + 1));
	}
}

/* Where the search for a key of `words` words begins; from Knuth's multiplicative hashing. */
template <int WORDS>
static __device__ inline uint32_t
first_place(const uint64_t (&key)[WORDS], uint32_t words)
{
	uint64_t hash = 0;

	GPUSORT_UNROLL
	for (uint32_t w = 0; w < WORDS; w++)
	{
		if (w == 0 || w < words)
			hash = (hash ^ key[w]) * UINT64_C(0x9E3779B97F4A7C15);
	}
	return (uint32_t) (hash >> 40) % EQUAL_PLACES;
}

/* The words of a row's key, zeros after them. */
template <int FORM, int WORDS>
static __device__ inline void
load_key(const GpuSortKeySource &source, uint32_t row, uint64_t (&key)[WORDS])
{
	uint64_t made;
	const uint64_t *words = gpusort_source_key<FORM>(&source, row, &made);

	GPUSORT_UNROLL
	for (uint32_t w = 0; w < WORDS; w++)
		key[w] = w == 0 || w < source.key_words ? words[w] : 0;
}

/* Makes the table of the open runs, or an empty one if they have few of the rows.  One block. */
template <int FORM>
static __global__ void
__launch_bounds__(EQUAL_RUNS) make_table(const __grid_constant__ GpuSortKeySource source, uint32_t all_rows,
										 const __grid_constant__ GpuSortLongRuns runs, const uint32_t *ids,
										 const uint32_t *states, const GpuSortRunCounts *counts, EqualTable *table)
{
	__shared__ uint32_t places[EQUAL_PLACES];
	__shared__ uint32_t listed;
	uint64_t key[EQUAL_WORDS];

	if (threadIdx.x == 0)
		listed = 0;
	for (uint32_t i = threadIdx.x; i < EQUAL_PLACES; i += EQUAL_RUNS)
		places[i] = 0;
	__syncthreads();
	if (threadIdx.x < runs.count && states[threadIdx.x] == RUN_OPEN &&
		(uint32_t) counts->open_runs >= all_rows / EQUAL_SHARE)
	{
		const uint32_t index = atomicAdd(&listed, 1u);

		load_key<FORM, EQUAL_WORDS>(source, ids[runs.runs[threadIdx.x].start], key);
		table->numbers[index] = threadIdx.x;
		table->counts[index] = 0;
		for (int w = 0; w < EQUAL_WORDS; w++)
			table->keys[w][index] = key[w];
		for (uint32_t place = first_place(key, source.key_words); atomicCAS(&places[place], 0u, index + 1) != 0;)
			place = (place + 1) % EQUAL_PLACES;
	}
	__syncthreads();
	for (uint32_t i = threadIdx.x; i < EQUAL_PLACES; i += EQUAL_RUNS)
		table->places[i] = places[i];
	if (threadIdx.x == 0)
		table->count = listed;
}

/* Counts the rows whose keys, of up to WORDS words, are in the table. */
template <int FORM, int WORDS>
static __global__ void
__launch_bounds__(EQUAL_THREADS)
	count_equal(const __grid_constant__ GpuSortKeySource source, uint32_t rows, EqualTable *table)
{
	constexpr int items = WORDS == 1 ? 8 : 4; /* all on their way before the first is waited for */
	__shared__ uint64_t keys[WORDS][EQUAL_RUNS];
	__shared__ uint32_t counts[EQUAL_RUNS];
	__shared__ uint16_t places[EQUAL_PLACES];
	const uint32_t count = table->count;

	if (count == 0)
		return;
	for (uint32_t i = threadIdx.x; i < count; i += EQUAL_THREADS)
	{
		counts[i] = 0;
		for (int w = 0; w < WORDS; w++)
			keys[w][i] = table->keys[w][i];
	}
	for (uint32_t i = threadIdx.x; i < EQUAL_PLACES; i += EQUAL_THREADS)
		places[i] = (uint16_t) table->places[i];
	__syncthreads();

	for (uint64_t start = (uint64_t) blockIdx.x * (EQUAL_THREADS * items) + threadIdx.x; start < rows;
		 start += (uint64_t) gridDim.x * (EQUAL_THREADS * items))
	{
		uint64_t own[items][WORDS];

		GPUSORT_UNROLL
		for (int k = 0; k < items; k++)
		{
			const uint64_t row = start + k * EQUAL_THREADS;

			load_key<FORM, WORDS>(source, (uint32_t) (row < rows ? row : rows - 1), own[k]);
		}
		GPUSORT_UNROLL
		for (int k = 0; k < items; k++)
		{
			uint32_t place = first_place(own[k], source.key_words);
			uint32_t found;

			if (start + k * EQUAL_THREADS >= rows)
				break;
			while ((found = places[place]) != 0)
			{
				bool equal = keys[0][found - 1] == own[k][0];

				GPUSORT_UNROLL
				for (uint32_t w = 1; w < WORDS; w++)
				{
					if (w < source.key_words)
						equal = equal && keys[w][found - 1] == own[k][w];
				}
				if (equal)
				{
					atomicAdd(&counts[found - 1], 1u);
					break;
				}
				place = (place + 1) % EQUAL_PLACES;
			}
		}
	}
	__syncthreads();
	for (uint32_t i = threadIdx.x; i < count; i += EQUAL_THREADS)
	{
		if (counts[i] > 0)
			atomicAdd(&table->counts[i], counts[i]);
	}
}

/* Closes the runs all of whose rows have been counted. */
static __global__ void
close_equal_runs(const __grid_constant__ GpuSortLongRuns runs, const EqualTable *table, uint32_t *states,
				 GpuSortRunCounts *counts)
{
	const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < table->count)
	{
		const uint32_t number = table->numbers[i];
		const uint32_t run_rows = run_offset_end(runs, number) - runs.runs[number].offset;

		if (table->counts[i] == run_rows)
		{
			states[number] = RUN_DONE;
			atomicAdd(&counts->open_runs, 0 - (1ull << 32 | run_rows));
		}
	}
}

/*
 * Marks the open runs in which some row's key is smaller than that of the row before it.  Of runs
 * that are marked nothing more is looked at.
 */
template <int FORM>
static __global__ void
__launch_bounds__(GPUSORT_RUNS_THREADS)
	check_runs(const __grid_constant__ GpuSortKeySource source, const __grid_constant__ GpuSortPackPlan plan,
			   uint32_t from, const __grid_constant__ GpuSortLongRuns runs, const uint32_t *ids, uint32_t *states,
			   const GpuSortRunCounts *counts)
{
	constexpr int items = GPUSORT_RUNS_TILE / GPUSORT_RUNS_THREADS;
	__shared__ TileRuns tile;
	__shared__ bool open[2];
	__shared__ uint64_t tile_windows[GPUSORT_RUNS_TILE + 1]; /* of the row before the tile, and its own */
	__shared__ uint32_t tile_ids[GPUSORT_RUNS_TILE + 1];

	if (counts->open_runs >> 32 == 0)
		return;
	for (uint64_t start = (uint64_t) blockIdx.x * GPUSORT_RUNS_TILE; start < runs.rows;
		 start += (uint64_t) gridDim.x * GPUSORT_RUNS_TILE)
	{
		uint32_t own[items];
		uint64_t made;

		find_tile_runs(&tile, runs, (uint32_t) start);
		if (threadIdx.x < 2)
			open[threadIdx.x] = tile.first + threadIdx.x < runs.count &&
				*(volatile const uint32_t *) &states[tile.first + threadIdx.x] == RUN_OPEN;
		__syncthreads();

		/* all ids, then all keys: each fetch waits for nothing but what it needs */
		GPUSORT_UNROLL
		for (int k = 0; k < items; k++)
		{
			const uint64_t j = start + k * GPUSORT_RUNS_THREADS + threadIdx.x;
			const uint32_t which = j >= tile.next_offset;

			own[k] = j < runs.rows && open[which]
				? ids[tile.runs[which].start + ((uint32_t) j - tile.runs[which].offset)]
				: 0;
		}
		GPUSORT_UNROLL
		for (int k = 0; k < items; k++)
		{
			const uint32_t i = k * GPUSORT_RUNS_THREADS + threadIdx.x;

			if (start + i < runs.rows && open[start + i >= tile.next_offset])
			{
				tile_ids[i + 1] = own[k];
				tile_windows[i + 1] = gpusort_pack_window64(&plan, gpusort_source_key<FORM>(&source, own[k], &made),
															from, GPUSORT_TIE_WINDOW);
			}
		}
		if (threadIdx.x == 0 && start > tile.runs[0].offset && open[0])
		{
			const uint32_t id = ids[tile.runs[0].start + ((uint32_t) start - tile.runs[0].offset) - 1];

			tile_ids[0] = id;
			tile_windows[0] = gpusort_pack_window64(&plan, gpusort_source_key<FORM>(&source, id, &made), from,
													GPUSORT_TIE_WINDOW);
		}
		__syncthreads();
		for (int k = 0; k < items; k++)
		{
			const uint32_t i = k * GPUSORT_RUNS_THREADS + threadIdx.x;
			const uint32_t which = start + i >= tile.next_offset;

			/* the first row of a run has no row before it */
			if (start + i >= runs.rows || start + i == tile.runs[which].offset || !open[which])
				continue;
			if (is_descent<FORM>(source, plan, from, tile_windows[i], tile_ids[i], tile_windows[i + 1],
								 tile_ids[i + 1]))
				states[tile.first + which] = RUN_MIXED;
		}

		/* the next tile takes the place of this one */
		__syncthreads();
	}
}

/* Lists those runs anew that are mixed. */
static __global__ void
keep_mixed_runs(const __grid_constant__ GpuSortLongRuns runs, const uint32_t *states, GpuSortRunCounts *counts,
				GpuSortLongRun *kept)
{
	for (uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; i < runs.count; i += gridDim.x * blockDim.x)
	{
		if (states[i] == RUN_MIXED)
			list_long_run(counts, kept, runs.runs[i].start, run_offset_end(runs, (uint32_t) i) - runs.runs[i].offset);
	}
}

static size_t
lay_out(char *base, uint32_t all_rows, uint32_t **states, EqualTable **table)
{
	size_t end = 0;

	*states = (uint32_t *) (base + gpusort_region_lay(&end, all_rows / (GPUSORT_BLOCK_RUN + 1) * sizeof(uint32_t)));
	*table = all_rows >= EQUAL_ROWS_MIN ? (EqualTable *) (base + gpusort_region_lay(&end, sizeof(EqualTable))) : NULL;
	return end;
}

size_t
gpusort_drop_runs_bytes(uint32_t all_rows)
{
	uint32_t *states;
	EqualTable *table;

	return lay_out(NULL, all_rows, &states, &table);
}

cudaError_t
gpusort_drop_runs_in_order(const GpuSortDeviceSort *sort, const GpuSortTiedRows *tied, const GpuSortLongRuns *runs,
						   GpuSortRunCounts *counts, GpuSortLongRun *kept, void *temp, cudaStream_t stream)
{
	const uint32_t all_rows = tied->rows;
	const uint32_t tiles = (uint32_t) (((uint64_t) runs->rows + GPUSORT_RUNS_TILE - 1) / GPUSORT_RUNS_TILE);
	uint32_t *states;
	EqualTable *table;
	cudaError_t status = cudaMemsetAsync(counts, 0, sizeof(*counts), stream);

	(void) lay_out((char *) temp, all_rows, &states, &table);
	if (status != cudaSuccess)
		return status;

#define SAMPLE_RUNS(FORM) sample_runs<FORM>
#define MAKE_TABLE(FORM)  make_table<FORM>
#define COUNT_EQUAL(FORM) count_equal<FORM, 1>
#define COUNT_WORDS(FORM) count_equal<FORM, EQUAL_WORDS>
#define CHECK_RUNS(FORM)  check_runs<FORM>
	GPUSORT_START_BY_FORM(&sort->source, SAMPLE_RUNS, (runs->count + SAMPLE_WARPS - 1) / SAMPLE_WARPS,
						  SAMPLE_WARPS * 32, stream, sort->source, *sort->plan, tied->from, *runs, tied->ids, states,
						  counts);
	if ((status = cudaGetLastError()) != cudaSuccess)
		return status;

	/* it counts among all rows of the sort, so it serves only where all are sorted */
	if (table != NULL && all_rows == sort->rows && runs->count <= EQUAL_RUNS && sort->plan->key_words <= EQUAL_WORDS &&
		runs->rows >= all_rows / EQUAL_SHARE)
	{
		GPUSORT_START_BY_FORM(&sort->source, MAKE_TABLE, 1, EQUAL_RUNS, stream, sort->source, all_rows, *runs,
							  tied->ids, states, counts, table);
		if ((status = cudaGetLastError()) != cudaSuccess)
			return status;
		if (sort->plan->key_words == 1)
			GPUSORT_START_BY_FORM(&sort->source, COUNT_EQUAL, EQUAL_BLOCKS, EQUAL_THREADS, stream, sort->source,
								  all_rows, table);
		else
			GPUSORT_START_BY_FORM(&sort->source, COUNT_WORDS, EQUAL_BLOCKS, EQUAL_THREADS, stream, sort->source,
								  all_rows, table);
		if ((status = cudaGetLastError()) != cudaSuccess)
			return status;
		GPUSORT_START_KERNEL(close_equal_runs, EQUAL_RUNS / 256, 256, stream, *runs, table, states, counts);
		if ((status = cudaGetLastError()) != cudaSuccess)
			return status;
	}

	GPUSORT_START_BY_FORM(&sort->source, CHECK_RUNS, tiles < CHECK_BLOCKS ? tiles : CHECK_BLOCKS, GPUSORT_RUNS_THREADS,
						  stream, sort->source, *sort->plan, tied->from, *runs, tied->ids, states, counts);
	if ((status = cudaGetLastError()) != cudaSuccess)
		return status;
	GPUSORT_START_KERNEL(keep_mixed_runs, 64, 256, stream, *runs, states, counts, kept);
#undef SAMPLE_RUNS
#undef MAKE_TABLE
#undef COUNT_EQUAL
#undef COUNT_WORDS
#undef CHECK_RUNS
	return cudaGetLastError();
}
