/*-------------------------------------------------------------------------
 *
 * satish_merge.cu
 *	  The merge sort for GPUs of N. Satish, C. Kim, J. Chhugani, A. D. Nguyen, V. W. Lee,
 *	  D. Kim, P. Dubey, Fast Sort on CPUs, GPUs and Intel MIC Architectures (Intel
 *	  Labs, 2010), section 3.1, whose details are those of its reference 22, N. Satish,
 *	  M. Harris, M. Garland, Designing efficient sorting algorithms for manycore
 *	  GPUs (IPDPS 2009).
 *
 *	1. Tiles are sorted by a bitonic network in shared memory.
 *	2. Sorted runs are merged in pairs, until there is one.  For that many blocks have to
 *	   work on one pair: every SPLIT-th row of either run is a splitter, and its rank in
 *	   the other run is searched for.  The splitters in order cut both runs into parts
 *	   of at most SPLIT rows each, which fit into shared memory, and can be merged by one
 *	   block each: by the last stage of a bitonic network.
 *
 * A splitter's place among all splitters of its pair needs no sort: it is its number
 * among those of its own run, plus how many of the other's lie before its rank.
 * Among equal keys the first run's come first, on either side of the search.
 *
 * What differs from the papers, and why: tiles and parts are larger (2048 rows, not
 * 256), as there is more shared memory; the reversal of the second half that
 * section 3.1 finds costly is folded into the network's first step (block.h); and
 * comparisons of rows with equal keys fall back on the row ids, as the network
 * alone would not keep their order.
 *
 *-------------------------------------------------------------------------
 */
#include "published/common.h"

#define THREADS   256
#define TILE      2048       /* rows of a first run; a power of two */
#define SPLIT     (TILE / 2) /* distance of splitters: parts of two runs fill a tile */
#define MOST_ROWS (UINT32_MAX - 1)

/* Two neighbouring runs: rows [first, second) and [second, end), the last pair's may be short or empty. */
typedef struct RunPair
{
	uint64_t first;
	uint64_t second;
	uint64_t end;
} RunPair;

static __device__ inline RunPair
pair_of_row(uint64_t row, uint64_t run_rows, uint64_t rows)
{
	RunPair pair;

	pair.first = row / (2 * run_rows) * (2 * run_rows);
	pair.second = pair.first + run_rows < rows ? pair.first + run_rows : rows;
	pair.end = pair.second + run_rows < rows ? pair.second + run_rows : rows;
	return pair;
}

template <typename Key, bool WITH_IDS>
static __global__ void
sort_tiles(const Key *keys_in, uint32_t rows, Key *keys_out, uint32_t *ids_out)
{
	__shared__ Key keys[TILE];
	__shared__ uint32_t ids[WITH_IDS ? TILE : 1];
	const uint64_t start = (uint64_t) blockIdx.x * TILE;

	for (int place = threadIdx.x; place < TILE; place += THREADS)
	{
		const bool row = start + place < rows;

		keys[place] = row ? keys_in[start + place] : (Key) ~(Key) 0;
		if (WITH_IDS)
			ids[place] = row ? (uint32_t) (start + place) : GPUSORT_PAD_ID;
	}
	__syncthreads();
	gpusort_block_sort<Key, WITH_IDS>(keys, ids, TILE);
	for (int place = threadIdx.x; place < TILE && start + place < rows; place += THREADS)
	{
		keys_out[start + place] = keys[place];
		if (WITH_IDS)
			ids_out[start + place] = ids[place];
	}
}

/*
 * Cuts pairs into parts: cuts[p] is where part p starts in its first run, cuts[parts + p] where in its
 * second, as rows of the whole input.  A thread per splitter; there are as many parts.
 */
template <typename Key>
static __global__ void
find_cuts(const Key *keys, uint32_t rows, uint64_t run_rows, uint32_t parts, uint32_t *cuts)
{
	const uint32_t splitter = blockIdx.x * THREADS + threadIdx.x;
	const uint64_t row = (uint64_t) splitter * SPLIT;
	RunPair pair;
	bool in_first;
	Key key;
	uint64_t low;
	uint64_t high;
	uint64_t other;
	uint32_t part;

	if (splitter >= parts)
		return;
	pair = pair_of_row(row, run_rows, rows);
	in_first = row < pair.second;
	key = keys[row];
	other = in_first ? pair.second : pair.first;
	low = other;
	high = in_first ? pair.end : pair.second;
	while (low < high)
	{
		const uint64_t middle = (low + high) / 2;
		const Key there = keys[middle];

		if (there < key || (!in_first && there == key))
			low = middle + 1;
		else
			high = middle;
	}

	/* The own run's splitters before this one, the other's before its rank, all other pairs' before. */
	part = (uint32_t) (pair.first / SPLIT + (row - (in_first ? pair.first : pair.second)) / SPLIT +
					   (low - other + SPLIT - 1) / SPLIT);
	cuts[part] = (uint32_t) (in_first ? row : low);
	cuts[parts + part] = (uint32_t) (in_first ? low : row);
}

template <typename Key, bool WITH_IDS>
static __global__ void
merge_parts(const Key *keys_in, const uint32_t *ids_in, uint32_t rows, uint64_t run_rows, const uint32_t *cuts,
			Key *keys_out, uint32_t *ids_out)
{
	__shared__ Key keys[TILE];
	__shared__ uint32_t ids[WITH_IDS ? TILE : 1];
	const uint32_t parts = gridDim.x;
	const uint32_t part = blockIdx.x;
	const RunPair pair = pair_of_row((uint64_t) part * SPLIT, run_rows, rows);
	const bool last = part + 1 == parts || (uint64_t) (part + 1) * SPLIT >= pair.end;
	const uint64_t first = cuts[part];
	const uint64_t second = cuts[parts + part];
	const uint32_t first_rows = (uint32_t) ((last ? pair.second : cuts[part + 1]) - first);
	const uint32_t second_rows = (uint32_t) ((last ? pair.end : cuts[parts + part + 1]) - second);
	const uint64_t target = first + (second - pair.second);

	for (uint32_t place = threadIdx.x; place < TILE; place += THREADS)
	{
		const bool in_first = place < SPLIT;
		const uint32_t within = place % SPLIT;
		const bool row = within < (in_first ? first_rows : second_rows);
		const uint64_t source = (in_first ? first : second) + within;

		keys[place] = row ? keys_in[source] : (Key) ~(Key) 0;
		if (WITH_IDS)
			ids[place] = row ? ids_in[source] : GPUSORT_PAD_ID;
	}
	__syncthreads();
	gpusort_block_merge<Key, WITH_IDS>(keys, ids, TILE, TILE);
	for (uint32_t place = threadIdx.x; place < first_rows + second_rows; place += THREADS)
	{
		keys_out[target + place] = keys[place];
		if (WITH_IDS)
			ids_out[target + place] = ids[place];
	}
}

typedef struct Buffers
{
	void *keys;
	uint32_t *ids;
	uint32_t *cuts;
} Buffers;

static Buffers
cut_temp(GpuSortTemp *temp, uint32_t rows, int key_bytes, bool with_ids)
{
	Buffers buffers;

	buffers.keys = gpusort_take<char>(temp, (uint64_t) rows * key_bytes);
	buffers.ids = gpusort_take<uint32_t>(temp, with_ids ? rows : 0);
	buffers.cuts = gpusort_take<uint32_t>(temp, 2 * (uint64_t) gpusort_blocks(rows, SPLIT));
	return buffers;
}

static int
merge_passes(uint32_t rows)
{
	int passes = 0;

	for (uint64_t run_rows = TILE; run_rows < rows; run_rows *= 2)
		passes++;
	return passes;
}

template <typename Key, bool WITH_IDS>
static cudaError_t
sort_rows(const GpuSortReferenceArgs *args, const Buffers *buffers, cudaStream_t stream)
{
	const uint32_t rows = args->rows;
	const uint32_t parts = gpusort_blocks(rows, SPLIT);
	auto sort_first = sort_tiles<Key, WITH_IDS>;
	auto merge = merge_parts<Key, WITH_IDS>;
	bool to_out = merge_passes(rows) % 2 == 0; /* such that the last pass is */
	Key *keys = (Key *) (to_out ? args->keys_out : buffers->keys);
	uint32_t *ids = to_out ? args->ids_out : buffers->ids;

	GPUSORT_TRY_KERNEL(sort_first, gpusort_blocks(rows, TILE), THREADS, stream, (const Key *) args->keys_in, rows,
					   keys, ids);
	for (uint64_t run_rows = TILE; run_rows < rows; run_rows *= 2)
	{
		Key *keys_to;
		uint32_t *ids_to;

		to_out = !to_out;
		keys_to = (Key *) (to_out ? args->keys_out : buffers->keys);
		ids_to = to_out ? args->ids_out : buffers->ids;
		GPUSORT_TRY_KERNEL(find_cuts<Key>, gpusort_blocks(parts, THREADS), THREADS, stream, (const Key *) keys, rows,
						   run_rows, parts, buffers->cuts);
		GPUSORT_TRY_KERNEL(merge, parts, THREADS, stream, (const Key *) keys, (const uint32_t *) ids, rows, run_rows,
						   (const uint32_t *) buffers->cuts, keys_to, ids_to);
		keys = keys_to;
		ids = ids_to;
	}
	return cudaSuccess;
}

static cudaError_t
sort_typed(const GpuSortReferenceArgs *args, const Buffers *buffers, cudaStream_t stream)
{
	return GPUSORT_BY_TYPE(args, sort_rows, args, buffers, stream);
}

/* Tiles read no ids; each merge reads and writes all.  The search for splitters is a few sectors per 1024 rows. */
static double
bytes_per_row(uint32_t rows, int key_bytes, bool with_ids)
{
	const int passes = 1 + merge_passes(rows);

	return 2.0 * passes * key_bytes + (with_ids ? 4.0 * (2 * passes - 1) : 0);
}

const GpuSortReference gpusort_satish_merge = {
	"satish-merge",
	"Satish et al., Fast Sort on CPUs, GPUs and Intel MIC Architectures, 2010, 3.1",
	false,
	GPUSORT_REFERENCE_KEYS_4 | GPUSORT_REFERENCE_KEYS_8 | GPUSORT_REFERENCE_PAIRS_4 | GPUSORT_REFERENCE_PAIRS_8,
	true,
	false,
	MOST_ROWS,
	gpusort_cut_bytes<&gpusort_satish_merge, cut_temp>,
	gpusort_cut_and_sort<&gpusort_satish_merge, cut_temp, sort_typed>,
	bytes_per_row,
};
