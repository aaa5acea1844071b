/*-------------------------------------------------------------------------
 *
 * exchange.cu
 *	  Splitters, partition and the reading of pieces; see exchange.h.
 *
 * The partition makes a histogram, scans and scatters, like one pass of a radix sort
 * (Satish et al., section 4; Merrill and Grimshaw), with the splitters' bin in the
 * digit's place.  A chunk is read twice; counting and scattering find each bin
 * anew by a binary search in shared memory, which costs less than writing it down.
 * A look-back in the place of the scan would save the second read, but the bus
 * delivers rows several times slower than this takes them.
 *
 *-------------------------------------------------------------------------
 */
#include <algorithm>

#include "multi/exchange.h"
#include "sort/bisect.h"
#include "sort/launch.h"

#define GPUSORT_EXCHANGE_THREADS 256
#define GPUSORT_EXCHANGE_WARPS   (GPUSORT_EXCHANGE_THREADS / 32)
#define GPUSORT_EXCHANGE_ITEMS   16 /* rows of a thread */
#define GPUSORT_EXCHANGE_TILE    (GPUSORT_EXCHANGE_THREADS * GPUSORT_EXCHANGE_ITEMS)

#define GPUSORT_EXCHANGE_GRID 2048  /* blocks of kernels that loop */
#define GPUSORT_SEGMENT_BYTES 32768 /* of pieces that a block reads at a time */
#define GPUSORT_READS_AHEAD   8     /* loads of a thread under way before it stores */

static_assert(GPUSORT_EXCHANGE_THREADS == GPUSORT_EXCHANGE_MAX_BINS, "a thread for each bin");

/* ---- splitters ---- */

/* A number that looks random: Steele, Lea and Flood's SplitMix64. */
static uint64_t
mix_bits(uint64_t x)
{
	x += 0x9E3779B97F4A7C15;
	x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
	x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
	return x ^ (x >> 31);
}

static bool
splitter_below(const GpuSortSplitter &a, const GpuSortSplitter &b)
{
	return a.key != b.key ? a.key < b.key : a.row < b.row;
}

void
gpusort_choose_splitters(const void *keys, uint32_t key_bytes, uint64_t rows, uint32_t bins, uint64_t samples,
						 uint64_t seed, GpuSortSplitter *scratch, GpuSortSplitter *splitters)
{
	const uint64_t step = rows / samples;
	const uint64_t longer = rows % samples; /* so many of the ranges have a row more */

	for (uint64_t i = 0; i < samples; i++)
	{
		uint64_t length = step + (i < longer);
		uint64_t row = i * step + std::min(i, longer) + mix_bits(seed + i) % length;

		scratch[i].row = row;
		scratch[i].key = key_bytes == 4 ? ((const uint32_t *) keys)[row] : ((const uint64_t *) keys)[row];
	}
	std::sort(scratch, scratch + samples, splitter_below);
	for (uint32_t b = 1; b < bins; b++)
		splitters[b - 1] = scratch[samples * b / bins];
}

/* ---- partition ---- */

/* A block's copy of the splitters, filled up to a power of two less one. */
template <typename Key>
struct SplitterTable
{
	Key keys[GPUSORT_EXCHANGE_MAX_BINS];
	uint32_t ties[GPUSORT_EXCHANGE_MAX_BINS]; /* rows of the chunk below are below the splitter of equal key */
};

/* By all threads of a block; a barrier must follow. */
template <typename Key>
static __device__ inline void
load_splitters(SplitterTable<Key> *table, const GpuSortSplitter *splitters, uint32_t bins, uint64_t first_row)
{
	GpuSortSplitter splitter = {~(uint64_t) 0, ~(uint64_t) 0};
	uint64_t tie = UINT32_MAX;

	if (threadIdx.x + 1 < bins)
	{
		splitter = splitters[threadIdx.x];
		tie = splitter.row <= first_row ? 0 : splitter.row - first_row;
	}
	table->keys[threadIdx.x] = (Key) splitter.key;
	table->ties[threadIdx.x] = tie < UINT32_MAX ? (uint32_t) tie : UINT32_MAX;
}

/* The bin of the chunk's row number `row`: how many splitters are not above it.  2^levels >= bins. */
template <typename Key>
static __device__ inline uint32_t
find_bin(const SplitterTable<Key> *table, int levels, Key key, uint32_t row)
{
	uint32_t bin = 0;

	for (uint32_t step = (1u << levels) >> 1; step > 0; step >>= 1)
	{
		Key splitter = table->keys[bin + step - 1];

		if (splitter < key || (splitter == key && table->ties[bin + step - 1] <= row))
			bin += step;
	}
	return bin;
}

/* Returns the sum of the values of the threads before this one, and in *total that of all.  All threads of a block. */
static __device__ inline uint64_t
block_exclusive_scan(uint64_t value, uint64_t *total)
{
	__shared__ uint64_t warp_sums[GPUSORT_EXCHANGE_WARPS];
	const uint32_t lane = threadIdx.x % 32;
	const uint32_t warp = threadIdx.x / 32;
	uint64_t sum = value;
	uint64_t before = 0;

	for (uint32_t places = 1; places < 32; places *= 2)
	{
		uint64_t left = __shfl_up_sync(0xFFFFFFFF, sum, places);

		if (lane >= places)
			sum += left;
	}
	if (lane == 31)
		warp_sums[warp] = sum;
	__syncthreads();
	*total = 0;
	for (uint32_t w = 0; w < GPUSORT_EXCHANGE_WARPS; w++)
	{
		if (w == warp)
			before = *total;
		*total += warp_sums[w];
	}
	__syncthreads();
	return before + sum - value;
}

/* histogram[bin * tiles + tile] = rows of the tile in the bin.  2^levels >= bins. */
template <typename Key>
static __global__ void
__launch_bounds__(GPUSORT_EXCHANGE_THREADS)
	count_bins(const __grid_constant__ GpuSortPartition partition, int levels, uint32_t *histogram)
{
	const Key *keys = (const Key *) partition.keys;
	const uint32_t rows = partition.rows;
	const uint32_t bins = partition.bins;
	__shared__ SplitterTable<Key> table;
	__shared__ uint32_t bin_rows[GPUSORT_EXCHANGE_MAX_BINS];
	const uint32_t first = blockIdx.x * GPUSORT_EXCHANGE_TILE;
	Key mine[GPUSORT_EXCHANGE_ITEMS];

	load_splitters(&table, partition.splitters, bins, partition.first_row);
	bin_rows[threadIdx.x] = 0;
#pragma unroll
	for (int i = 0; i < GPUSORT_EXCHANGE_ITEMS; i++)
	{
		uint32_t row = first + i * GPUSORT_EXCHANGE_THREADS + threadIdx.x;

		mine[i] = row < rows ? keys[row] : 0;
	}
	__syncthreads();
#pragma unroll
	for (int i = 0; i < GPUSORT_EXCHANGE_ITEMS; i++)
	{
		uint32_t row = first + i * GPUSORT_EXCHANGE_THREADS + threadIdx.x;

		if (row < rows)
			atomicAdd(&bin_rows[find_bin(&table, levels, mine[i], row)], 1u);
	}
	__syncthreads();
	if (threadIdx.x < bins)
		histogram[(size_t) threadIdx.x * gridDim.x + blockIdx.x] = bin_rows[threadIdx.x];
}

/* One block per bin: its histogram becomes the rows of the bin in the tiles before; bin_rows, those in all tiles. */
static __global__ void
__launch_bounds__(GPUSORT_EXCHANGE_THREADS)
	scan_tiles(uint32_t *histogram, uint32_t tiles, uint32_t *bin_rows)
{
	uint32_t *bin_histogram = histogram + (size_t) blockIdx.x * tiles;
	uint64_t sum = 0;

	for (uint32_t first = 0; first < tiles; first += GPUSORT_EXCHANGE_THREADS)
	{
		uint32_t tile = first + threadIdx.x;
		uint64_t total;
		uint64_t before = block_exclusive_scan(tile < tiles ? bin_histogram[tile] : 0, &total);

		if (tile < tiles)
			bin_histogram[tile] = (uint32_t) (sum + before);
		sum += total;
	}
	if (threadIdx.x == 0)
		bin_rows[blockIdx.x] = (uint32_t) sum;
}

/*
 * Puts a tile's rows into their bins.  A warp takes 32 * ITEMS rows that lie side by
 * side; lanes whose rows fall into one bin find each other by ballots over the bin's
 * bits, so ranks follow the order of the rows.  Rows go through shared memory in
 * the order of their bins, for each bin to be written in one run.  offsets is the histogram
 * after scan_tiles.
 */
template <typename Key>
static __global__ void
__launch_bounds__(GPUSORT_EXCHANGE_THREADS)
	scatter_bins(const __grid_constant__ GpuSortPartition partition, int levels, const uint32_t *offsets)
{
	const Key *keys = (const Key *) partition.keys;
	Key *keys_out = (Key *) partition.keys_out;
	uint32_t *rows_out = partition.rows_out;
	const uint32_t *bin_rows = partition.bin_rows;
	const uint32_t rows = partition.rows;
	const uint32_t bins = partition.bins;
	__shared__ SplitterTable<Key> table;
	__shared__ Key slot_keys[GPUSORT_EXCHANGE_TILE]; /* then the rows' numbers in the chunk */
	__shared__ uint8_t slot_bins[GPUSORT_EXCHANGE_TILE];
	__shared__ uint16_t warp_counts[GPUSORT_EXCHANGE_WARPS][GPUSORT_EXCHANGE_MAX_BINS];
	__shared__ uint32_t bin_offsets[GPUSORT_EXCHANGE_MAX_BINS]; /* of each bin's slot 0 in the output */
	const uint32_t lane = threadIdx.x % 32;
	const uint32_t warp = threadIdx.x / 32;
	const uint32_t tile_first = blockIdx.x * GPUSORT_EXCHANGE_TILE;
	const uint32_t tile_rows = rows - tile_first < GPUSORT_EXCHANGE_TILE ? rows - tile_first : GPUSORT_EXCHANGE_TILE;
	const uint32_t first = warp * 32 * GPUSORT_EXCHANGE_ITEMS + lane; /* in the tile */
	Key mine[GPUSORT_EXCHANGE_ITEMS];
	uint32_t slots[GPUSORT_EXCHANGE_ITEMS]; /* bin << 16 | rank in the warp, then the slot */

	load_splitters(&table, partition.splitters, bins, partition.first_row);
	for (int w = 0; w < GPUSORT_EXCHANGE_WARPS; w++)
		warp_counts[w][threadIdx.x] = 0;
#pragma unroll
	for (int i = 0; i < GPUSORT_EXCHANGE_ITEMS; i++)
		mine[i] = first + 32 * i < tile_rows ? keys[tile_first + first + 32 * i] : 0;
	__syncthreads();

	/* Past the chunk's end: last in the last bin, where they disturb nobody and are not written. */
#pragma unroll
	for (int i = 0; i < GPUSORT_EXCHANGE_ITEMS; i++)
	{
		uint32_t bin = bins - 1;
		uint32_t peers = 0xFFFFFFFF;
		uint32_t before;

		if (first + 32 * i < tile_rows)
			bin = find_bin(&table, levels, mine[i], tile_first + first + 32 * i);
		for (int level = 0; level < levels; level++)
		{
			uint32_t ones = __ballot_sync(0xFFFFFFFF, bin >> level & 1);

			peers &= (bin >> level & 1) != 0 ? ones : ~ones;
		}
		before = warp_counts[warp][bin];
		__syncwarp();
		if ((peers & ((1u << lane) - 1)) == 0)
			warp_counts[warp][bin] = (uint16_t) (before + __popc(peers));
		__syncwarp();
		slots[i] = bin << 16 | (before + __popc(peers & ((1u << lane) - 1)));
	}
	__syncthreads();

	/* A thread for each bin: where its rows of each warp start in the tile, and in the output. */
	{
		const uint32_t bin = threadIdx.x;
		uint32_t tile_count = 0;
		uint64_t total;
		uint64_t starts;

		for (int w = 0; w < GPUSORT_EXCHANGE_WARPS; w++)
			tile_count += warp_counts[w][bin];
		starts = block_exclusive_scan((uint64_t) (bin < bins ? bin_rows[bin] : 0) << 32 | tile_count, &total);
		if (bin < bins)
			bin_offsets[bin] = (uint32_t) (starts >> 32) + offsets[(size_t) bin * gridDim.x + blockIdx.x] -
				(uint32_t) starts;
		for (int w = 0; w < GPUSORT_EXCHANGE_WARPS; w++)
		{
			uint16_t count = warp_counts[w][bin];

			warp_counts[w][bin] = (uint16_t) starts;
			starts += count;
		}
	}
	__syncthreads();

#pragma unroll
	for (int i = 0; i < GPUSORT_EXCHANGE_ITEMS; i++)
	{
		uint32_t bin = slots[i] >> 16;

		slots[i] = warp_counts[warp][bin] + (slots[i] & 0xFFFF);
		slot_keys[slots[i]] = mine[i];
		slot_bins[slots[i]] = (uint8_t) bin;
	}
	__syncthreads();
#pragma unroll
	for (int i = 0; i < GPUSORT_EXCHANGE_ITEMS; i++)
	{
		uint32_t slot = i * GPUSORT_EXCHANGE_THREADS + threadIdx.x;

		if (slot < tile_rows)
			keys_out[bin_offsets[slot_bins[slot]] + slot] = slot_keys[slot];
	}
	if (rows_out == NULL)
		return;

	__syncthreads();
#pragma unroll
	for (int i = 0; i < GPUSORT_EXCHANGE_ITEMS; i++)
		slot_keys[slots[i]] = (Key) (first + 32 * i);
	__syncthreads();
#pragma unroll
	for (int i = 0; i < GPUSORT_EXCHANGE_ITEMS; i++)
	{
		uint32_t slot = i * GPUSORT_EXCHANGE_THREADS + threadIdx.x;

		if (slot < tile_rows)
			rows_out[bin_offsets[slot_bins[slot]] + slot] =
				(uint32_t) partition.first_row + tile_first + (uint32_t) slot_keys[slot];
	}
}

static uint32_t
count_tiles(uint32_t rows)
{
	return (uint32_t) (((uint64_t) rows + GPUSORT_EXCHANGE_TILE - 1) / GPUSORT_EXCHANGE_TILE);
}

size_t
gpusort_partition_temp_bytes(uint32_t rows, uint32_t bins)
{
	return (size_t) count_tiles(rows) * bins * sizeof(uint32_t);
}

template <typename Key>
static cudaError_t
partition_keys(const GpuSortPartition *p, uint32_t *histogram, cudaStream_t stream)
{
	const uint32_t tiles = count_tiles(p->rows);
	int levels = 0;
	cudaError_t status;

	while (1u << levels < p->bins)
		levels++;
	GPUSORT_START_KERNEL(count_bins<Key>, tiles, GPUSORT_EXCHANGE_THREADS, stream, *p, levels, histogram);
	if ((status = cudaGetLastError()) != cudaSuccess)
		return status;
	GPUSORT_START_KERNEL(scan_tiles, p->bins, GPUSORT_EXCHANGE_THREADS, stream, histogram, tiles, p->bin_rows);
	if ((status = cudaGetLastError()) != cudaSuccess)
		return status;
	GPUSORT_START_KERNEL(scatter_bins<Key>, tiles, GPUSORT_EXCHANGE_THREADS, stream, *p, levels,
						 (const uint32_t *) histogram);
	return cudaGetLastError();
}

cudaError_t
gpusort_partition(const GpuSortPartition *partition, void *temp, cudaStream_t stream)
{
	if (partition->bins < 1 || partition->bins > GPUSORT_EXCHANGE_MAX_BINS ||
		partition->rows > GPUSORT_PARTITION_MAX_ROWS ||
		(partition->key_bytes != 4 && partition->key_bytes != 8))
		return cudaErrorInvalidValue;
	if (partition->rows == 0)
		return cudaMemsetAsync(partition->bin_rows, 0, partition->bins * sizeof(uint32_t), stream);
	if (partition->key_bytes == 4)
		return partition_keys<uint32_t>(partition, (uint32_t *) temp, stream);
	return partition_keys<uint64_t>(partition, (uint32_t *) temp, stream);
}

/* ---- moving rows ---- */

/* What rows are moved by: the widest that divides them. */
struct alignas(16) Unit16
{
	uint64_t words[2];
};

template <typename Unit>
static __device__ inline void
copy_units(const Unit *from, uint64_t count, Unit *to)
{
	for (uint64_t first = threadIdx.x; first < count; first += GPUSORT_READS_AHEAD * GPUSORT_EXCHANGE_THREADS)
	{
		Unit ahead[GPUSORT_READS_AHEAD];

#pragma unroll
		for (int i = 0; i < GPUSORT_READS_AHEAD; i++)
		{
			if (first + i * GPUSORT_EXCHANGE_THREADS < count)
				ahead[i] = from[first + i * GPUSORT_EXCHANGE_THREADS];
		}
#pragma unroll
		for (int i = 0; i < GPUSORT_READS_AHEAD; i++)
		{
			if (first + i * GPUSORT_EXCHANGE_THREADS < count)
				to[first + i * GPUSORT_EXCHANGE_THREADS] = ahead[i];
		}
	}
}

/*
 * A block takes segments of the bin, wherever pieces begin and end, so that one large
 * piece keeps all blocks busy too.
 */
template <typename Unit>
static __global__ void
__launch_bounds__(GPUSORT_EXCHANGE_THREADS)
	read_pieces(const __grid_constant__ GpuSortSources sources, uint32_t row_units, const GpuSortBinPiece *pieces,
				uint32_t piece_count, uint32_t rows, uint32_t segment_rows, Unit *to)
{
	const uint32_t segments = (rows - 1) / segment_rows + 1;

	for (uint32_t segment = blockIdx.x; segment < segments; segment += gridDim.x)
	{
		uint32_t row = segment * segment_rows;
		uint32_t end = rows - row < segment_rows ? rows : row + segment_rows;
		uint32_t number = gpusort_last_not_above(piece_count, row, [&](uint32_t i)
												 { return pieces[i].to_row; });

		for (; row < end; number++)
		{
			const GpuSortBinPiece piece = pieces[number];
			uint32_t skipped = row - piece.to_row;
			uint32_t left = piece.rows - skipped;
			uint32_t count = end - row < left ? end - row : left;

			copy_units((const Unit *) sources.base[piece.source] + (piece.from_row + skipped) * row_units,
					   (uint64_t) count * row_units, to + (uint64_t) row * row_units);
			row += count;
		}
	}
}

/* As gpusort_move_rows, by units: `units` of them in all. */
template <typename Unit>
static __global__ void
__launch_bounds__(GPUSORT_EXCHANGE_THREADS)
	move_rows(const Unit *from, uint32_t row_units, const uint32_t *numbers, uint32_t first, uint64_t units, Unit *to)
{
	for (uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; i < units;
		 i += (uint64_t) gridDim.x * blockDim.x)
	{
		uint32_t row = row_units == 1 ? (uint32_t) i : (uint32_t) (i / row_units);

		to[i] = from[(uint64_t) (numbers[row] - first) * row_units + (i - (uint64_t) row * row_units)];
	}
}

static __global__ void
__launch_bounds__(GPUSORT_EXCHANGE_THREADS)
	key_words(const uint64_t *keys, const uint32_t *numbers, uint32_t rows, int shift, uint32_t *words)
{
	for (uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; i < rows;
		 i += (uint64_t) gridDim.x * blockDim.x)
		words[i] = (uint32_t) (keys[numbers != NULL ? numbers[i] : i] >> shift);
}

/* Returns the blocks of a kernel that loops over so many items. */
static uint32_t
grid_of(uint64_t items)
{
	return (uint32_t) std::min((items + GPUSORT_EXCHANGE_THREADS - 1) / GPUSORT_EXCHANGE_THREADS,
							   (uint64_t) GPUSORT_EXCHANGE_GRID);
}

template <typename Unit>
static cudaError_t
start_read(const GpuSortSources *sources, uint32_t row_bytes, const GpuSortBinPiece *pieces, uint32_t piece_count,
		   uint32_t rows, void *to, cudaStream_t stream)
{
	const uint32_t segment_rows = std::max(GPUSORT_SEGMENT_BYTES / row_bytes, 1u);
	const uint32_t segments = (rows - 1) / segment_rows + 1;

	GPUSORT_START_KERNEL(read_pieces<Unit>, std::min(segments, (uint32_t) GPUSORT_EXCHANGE_GRID),
						 GPUSORT_EXCHANGE_THREADS, stream, *sources, row_bytes / (uint32_t) sizeof(Unit), pieces,
						 piece_count, rows, segment_rows, (Unit *) to);
	return cudaGetLastError();
}

cudaError_t
gpusort_read_pieces(const GpuSortSources *sources, uint32_t row_bytes, const GpuSortBinPiece *pieces,
					uint32_t piece_count, uint32_t rows, void *to, cudaStream_t stream)
{
	if (row_bytes == 0 || row_bytes % 4 != 0)
		return cudaErrorInvalidValue;
	if (rows == 0)
		return cudaSuccess;
	if (row_bytes % 16 == 0)
		return start_read<Unit16>(sources, row_bytes, pieces, piece_count, rows, to, stream);
	if (row_bytes % 8 == 0)
		return start_read<uint64_t>(sources, row_bytes, pieces, piece_count, rows, to, stream);
	return start_read<uint32_t>(sources, row_bytes, pieces, piece_count, rows, to, stream);
}

template <typename Unit>
static cudaError_t
start_move(const void *from, uint32_t row_bytes, const uint32_t *numbers, uint32_t first, uint32_t rows, void *to,
		   cudaStream_t stream)
{
	const uint32_t row_units = row_bytes / (uint32_t) sizeof(Unit);
	const uint64_t units = (uint64_t) rows * row_units;

	GPUSORT_START_KERNEL(move_rows<Unit>, grid_of(units), GPUSORT_EXCHANGE_THREADS, stream, (const Unit *) from,
						 row_units, numbers, first, units, (Unit *) to);
	return cudaGetLastError();
}

cudaError_t
gpusort_move_rows(const void *from, uint32_t row_bytes, const uint32_t *numbers, uint32_t first, uint32_t rows,
				  void *to, cudaStream_t stream)
{
	if (row_bytes == 0 || row_bytes % 4 != 0)
		return cudaErrorInvalidValue;
	if (rows == 0)
		return cudaSuccess;
	if (row_bytes % 16 == 0)
		return start_move<Unit16>(from, row_bytes, numbers, first, rows, to, stream);
	if (row_bytes % 8 == 0)
		return start_move<uint64_t>(from, row_bytes, numbers, first, rows, to, stream);
	return start_move<uint32_t>(from, row_bytes, numbers, first, rows, to, stream);
}

cudaError_t
gpusort_key_words(const uint64_t *keys, const uint32_t *numbers, uint32_t rows, int shift, uint32_t *words,
				  cudaStream_t stream)
{
	if (rows == 0)
		return cudaSuccess;
	GPUSORT_START_KERNEL(key_words, grid_of(rows), GPUSORT_EXCHANGE_THREADS, stream, keys, numbers, rows, shift,
						 words);
	return cudaGetLastError();
}
