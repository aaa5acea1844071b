/*-------------------------------------------------------------------------
 *
 * redistribute_kernels.cuh
 *	  The kernels that bring rows to the devices that sort them; see redistribute.h.
 *
 * A device sees the rows of its own chunks only,
 * and writes to the memory of all devices.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_REDISTRIBUTE_KERNELS_CUH
#define GPUSORT_REDISTRIBUTE_KERNELS_CUH

#include "engine/sort_state.h"

/* Rows that a block of redistribute_rows takes at a time, and how many groups of a warp's that is. */
#define GPUSORT_REDISTRIBUTE_TURNS  4
#define GPUSORT_REDISTRIBUTE_TILE   (GPUSORT_REDISTRIBUTE_TURNS * GPUSORT_THREADS)
#define GPUSORT_REDISTRIBUTE_GROUPS (GPUSORT_REDISTRIBUTE_TILE / 32)

/* A row, by where it was put. */
typedef struct GpuSortRowPlace
{
	uint32_t chunk;
	uint32_t row; /* of the chunk's */
} GpuSortRowPlace;

/* A device's own chunks, and the splitters; all arrays in its memory. */
typedef struct GpuSortOwnChunks
{
	const GpuSortDeviceChunk *chunks; /* all of the sort, by number */
	const uint32_t *numbers;          /* of the own ones */
	uint32_t count;                   /* of them */
	uint32_t key_words;
	uint32_t shards; /* one more than there are splitters */
	const GpuSortRowPlace *splitters;
	const uint64_t *splitter_keys; /* key_words each */
} GpuSortOwnChunks;

/* Where rows go: the arrays of each shard, in its device's memory. */
typedef struct GpuSortTargets
{
	GpuSortRowRef *refs[GPUSORT_SHARDS_MAX];
	uint32_t *partial_keys[GPUSORT_SHARDS_MAX];
} GpuSortTargets;

/* Returns true if the row of this key and place is before that one in the total order. */
GPUSORT_HD static inline bool
row_before(const uint64_t *key, GpuSortRowPlace place, const uint64_t *other_key, GpuSortRowPlace other,
		   uint32_t key_words)
{
	for (uint32_t w = 0; w < key_words; w++)
	{
		if (key[w] != other_key[w])
			return key[w] < other_key[w];
	}
	return place.chunk != other.chunk ? place.chunk < other.chunk : place.row < other.row;
}

/* keys[i] = the key of the row at picked[i]. */
static __global__ void
pick_keys(const GpuSortDeviceChunk *chunks, uint32_t key_words, const GpuSortRowPlace *picked, uint32_t count,
		  uint64_t *keys)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < count)
	{
		const GpuSortDeviceChunk chunk = chunks[picked[i].chunk];
		const char *base = (const char *) chunk.base;
		const uint32_t *offsets = (const uint32_t *) (base + gpusort_chunk_offsets_at(chunk.bytes));
		const uint64_t *key = (const uint64_t *) (base + offsets[chunk.rows - 1 - picked[i].row]);

		for (uint32_t w = 0; w < key_words; w++)
			keys[(uint64_t) i * key_words + w] = key[w];
	}
}

/* Splitters as kernels use them: in shared memory. */
struct SharedSplitters
{
	uint64_t keys[(GPUSORT_SHARDS_MAX - 1) * GPUSORT_MAX_KEY_WORDS];
	GpuSortRowPlace places[GPUSORT_SHARDS_MAX - 1];
};

/* Called by the whole block. */
static __device__ void
load_splitters(SharedSplitters *shared, const GpuSortOwnChunks &own)
{
	const uint32_t splitters = own.shards - 1;

	for (uint32_t i = threadIdx.x; i < splitters * own.key_words; i += blockDim.x)
		shared->keys[i] = own.splitter_keys[i];
	for (uint32_t i = threadIdx.x; i < splitters; i += blockDim.x)
		shared->places[i] = own.splitters[i];
	__syncthreads();
}

/* Returns the shard that a row goes to: how many splitters are not after it. */
static __device__ uint32_t
shard_of(const SharedSplitters *shared, uint32_t splitters, const uint64_t *key, GpuSortRowPlace place,
		 uint32_t key_words)
{
	uint32_t low = 0;
	uint32_t high = splitters;

	while (low < high)
	{
		uint32_t middle = (low + high) / 2;

		if (row_before(key, place, shared->keys + middle * key_words, shared->places[middle], key_words))
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* histograms[c * shards + p] = rows of own chunk c that go to shard p.  One block per own chunk. */
static __global__ void
count_rows(const __grid_constant__ GpuSortOwnChunks own, uint32_t *histograms)
{
	const uint32_t *numbers = own.numbers;
	const uint32_t shards = own.shards;
	__shared__ SharedSplitters splitters;
	__shared__ uint32_t block_counts[GPUSORT_SHARDS_MAX];
	const uint32_t lane = threadIdx.x % 32;

	load_splitters(&splitters, own);
	for (uint32_t c = blockIdx.x; c < own.count; c += gridDim.x)
	{
		const GpuSortDeviceChunk chunk = own.chunks[numbers[c]];
		const char *base = (const char *) chunk.base;
		const uint32_t *offsets = (const uint32_t *) (base + gpusort_chunk_offsets_at(chunk.bytes));
		uint32_t mine = 0; /* rows that go to shard `lane` */

		if (threadIdx.x < GPUSORT_SHARDS_MAX)
			block_counts[threadIdx.x] = 0;
		__syncthreads();

		/* the same turns for all threads of a warp */
		for (uint32_t start = 0; start < chunk.rows; start += blockDim.x)
		{
			uint32_t i = start + threadIdx.x;
			uint32_t shard = shards;

			if (i < chunk.rows)
				shard = shard_of(&splitters, shards - 1, (const uint64_t *) (base + offsets[chunk.rows - 1 - i]),
								 {numbers[c], i}, own.key_words);
			for (uint32_t p = 0; p < shards; p++)
			{
				uint32_t votes = __ballot_sync(GPUSORT_FULL_WARP, shard == p);

				if (lane == p)
					mine += __popc(votes);
			}
		}
		if (lane < shards)
			atomicAdd(&block_counts[lane], mine);
		__syncthreads();
		if (threadIdx.x < shards)
			histograms[(uint64_t) c * shards + threadIdx.x] = block_counts[threadIdx.x];

		/* block_counts is cleared in the next turn */
		__syncthreads();
	}
}

/*
 * Writes refs and partial keys of the own chunks' rows to their shards; the plan keeps the partial key
 * alone, or nothing, and then there are no partial keys.  shard_offsets[c * shards + p] says where those
 * of own chunk c start in shard p.  One block per own chunk.
 *
 * A tile of rows is laid out by shard in shared memory first, each shard's in the
 * order of the chunk, so that writes to another device are as long as can be.  Where
 * a row goes in the tile: rows of the shards before, those of its shard in the groups
 * of 32 rows before, and in its own group before it.
 */
static __global__ void
redistribute_rows(const __grid_constant__ GpuSortOwnChunks own, const __grid_constant__ GpuSortPackPlan window,
				  const uint32_t *shard_offsets, const __grid_constant__ GpuSortTargets targets)
{
	const uint32_t shards = own.shards;
	__shared__ SharedSplitters splitters;
	__shared__ GpuSortRowRef tile_refs[GPUSORT_REDISTRIBUTE_TILE];
	__shared__ uint32_t tile_partial_keys[GPUSORT_REDISTRIBUTE_TILE];
	__shared__ uint32_t before[GPUSORT_REDISTRIBUTE_GROUPS][GPUSORT_SHARDS_MAX]; /* its rows in groups before */
	__shared__ uint32_t starts[GPUSORT_SHARDS_MAX + 1];                          /* of each shard in the tile */
	__shared__ uint32_t next[GPUSORT_SHARDS_MAX];                                /* of the tile's rows in each shard */
	const uint32_t lane = threadIdx.x % 32;

	load_splitters(&splitters, own);
	for (uint32_t c = blockIdx.x; c < own.count; c += gridDim.x)
	{
		const uint32_t number = own.numbers[c];
		const GpuSortDeviceChunk chunk = own.chunks[number];
		const char *base = (const char *) chunk.base;
		const uint32_t *offsets = (const uint32_t *) (base + gpusort_chunk_offsets_at(chunk.bytes));

		if (threadIdx.x < shards)
			next[threadIdx.x] = shard_offsets[(uint64_t) c * shards + threadIdx.x];

		for (uint32_t start = 0; start < chunk.rows; start += GPUSORT_REDISTRIBUTE_TILE)
		{
			GpuSortRowRef refs[GPUSORT_REDISTRIBUTE_TURNS];
			uint32_t partial_keys[GPUSORT_REDISTRIBUTE_TURNS];
			uint32_t shard[GPUSORT_REDISTRIBUTE_TURNS];
			uint32_t rank[GPUSORT_REDISTRIBUTE_TURNS];

			for (uint32_t k = 0; k < GPUSORT_REDISTRIBUTE_TURNS; k++)
			{
				uint32_t i = start + k * GPUSORT_THREADS + threadIdx.x;
				uint32_t group = (k * GPUSORT_THREADS + threadIdx.x) / 32;

				shard[k] = shards;
				rank[k] = 0;
				refs[k] = 0;
				partial_keys[k] = 0;
				if (i < chunk.rows)
				{
					uint32_t offset = offsets[chunk.rows - 1 - i];
					const uint64_t *key = (const uint64_t *) (base + offset);

					shard[k] = shard_of(&splitters, shards - 1, key, {number, i}, window.key_words);
					refs[k] = gpusort_ref_of(base, number, offset, window.key_words);
					if (window.packed_bits > 0)
						partial_keys[k] = gpusort_pack_key(&window, key);
				}
				for (uint32_t p = 0; p < shards; p++)
				{
					uint32_t votes = __ballot_sync(GPUSORT_FULL_WARP, shard[k] == p);

					if (shard[k] == p)
						rank[k] = __popc(votes & ((1u << lane) - 1));
					if (lane == p)
						before[group][p] = __popc(votes);
				}
			}
			__syncthreads();

			/* counts of groups become sums of those before; all of a shard for its start */
			if (threadIdx.x < shards)
			{
				uint32_t sum = 0;

				for (uint32_t g = 0; g < GPUSORT_REDISTRIBUTE_GROUPS; g++)
				{
					uint32_t here = before[g][threadIdx.x];

					before[g][threadIdx.x] = sum;
					sum += here;
				}
				starts[threadIdx.x + 1] = sum;
			}
			__syncthreads();
			if (threadIdx.x == 0)
			{
				starts[0] = 0;
				for (uint32_t p = 0; p < shards; p++)
					starts[p + 1] += starts[p];
			}
			__syncthreads();

			for (uint32_t k = 0; k < GPUSORT_REDISTRIBUTE_TURNS; k++)
			{
				if (shard[k] < shards)
				{
					uint32_t group = (k * GPUSORT_THREADS + threadIdx.x) / 32;
					uint32_t slot = starts[shard[k]] + before[group][shard[k]] + rank[k];

					tile_refs[slot] = refs[k];
					tile_partial_keys[slot] = partial_keys[k];
				}
			}
			__syncthreads();

			for (uint32_t slot = threadIdx.x; slot < starts[shards]; slot += blockDim.x)
			{
				uint32_t p = 0;
				uint32_t place;

				while (slot >= starts[p + 1])
					p++;
				place = next[p] + slot - starts[p];
				targets.refs[p][place] = tile_refs[slot];
				if (window.packed_bits > 0)
					targets.partial_keys[p][place] = tile_partial_keys[slot];
			}
			__syncthreads();
			if (threadIdx.x < shards)
				next[threadIdx.x] += starts[threadIdx.x + 1] - starts[threadIdx.x];
			__syncthreads();
		}

		/* next is written again in the next turn, by the threads that wrote it last */
	}
}

#endif /* GPUSORT_REDISTRIBUTE_KERNELS_CUH */
