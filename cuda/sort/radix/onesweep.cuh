/*-------------------------------------------------------------------------
 *
 * onesweep.cuh
 *	  The radix core: one pass over the rows per digit of 8 bits.
 *
 * The scheme is Onesweep (Adinets and Merrill, arXiv 2206.01784): the digits of
 * all passes are counted in one read of the keys; then each pass reads a tile of
 * rows, ranks them, learns where its bins begin by looking back at the tiles before
 * it, and writes the rows to their places, so a pass reads and writes every row
 * once.  What differs from it:
 *
 *	- Between the passes a row is one 64-bit word, the key above the id, so there is
 *	  one exchange in shared memory and one run of writes per bin, twice as long as
 *	  with keys and ids apart (Ha, Krueger and Silva found the same for their scatter).
 *	- The first pass reads keys alone and makes the ids; the last writes ids, and keys
 *	  only where they are wanted.  Where they are not, ids alone are exchanged: the digit
 *	  at a place follows from the places where digits begin.
 *	- The look back has several tiles' status on their way at a time, so that its
 *	  length is bounded by bandwidth rather than by the latency of one load per tile.
 *	- A tile's status carries the number of its pass, so the array is cleared
 *	  once and not before every pass.
 *
 * The kernels are in onesweep_pass.cuh;
 * here is where things are in memory, and what is launched.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ONESWEEP_CUH
#define GPUSORT_ONESWEEP_CUH

#include <stdint.h>

#include <cuda_runtime.h>

#include "sort/digit_histogram.cuh"
#include "sort/launch.h"
#include "sort/radix/onesweep_pass.cuh"
#include "sort/radix/radix_sort.h"
#include "sort/region.h"

/*
 * The kernels with one set of parameters; see sort_pass.  A launch is of PORTION rows at
 * most, whole tiles: what stands in for missing rows would count where the next begins.
 */
template <int THREADS, int ITEMS, int BLOCKS, int GROUP, int WINDOW,
		  uint32_t PORTION_TILES = GPUSORT_STATUS_ROWS_MAX / (THREADS * ITEMS)>
struct GpuSortOnesweep
{
	static constexpr uint32_t TILE = THREADS * ITEMS;
	static constexpr uint32_t PORTION = PORTION_TILES * TILE;
	/* The most shared memory that a block takes: of the count of all digits, or of a pass. */
	static constexpr size_t COUNT_SHARED = GPUSORT_HISTOGRAM_SHARED(GPUSORT_MAX_PASSES);
	static constexpr size_t SHARED = COUNT_SHARED > GPUSORT_PASS_SHARED(THREADS, ITEMS)
		? COUNT_SHARED
		: GPUSORT_PASS_SHARED(THREADS, ITEMS);

	static constexpr int COUNT_THREADS = 1024;
	static constexpr int COUNT_UNROLL = 8;
	static constexpr uint32_t COUNT_KEYS = 16 * COUNT_THREADS; /* of a block, at least */

	/* Where things are in temp. */
	struct Layout
	{
		size_t rows[2];
		size_t tile_status;
		size_t tile_status_bytes;
		size_t histograms; /* [pass][GPUSORT_BINS], later bin offsets; then the next portion's offsets, twice */
		size_t histograms_bytes;
		size_t end;
	};

	static Layout
	lay_out(uint32_t rows, int passes)
	{
		const uint32_t portion = rows < PORTION ? rows : PORTION;
		const size_t rows_bytes = gpusort_region_bytes((size_t) rows * sizeof(uint64_t));
		Layout layout = {};

		if (rows <= TILE)
			return layout;
		layout.rows[1] = passes > 1 ? rows_bytes : 0;
		layout.tile_status = layout.rows[1] + (passes > 2 ? rows_bytes : 0);
		layout.tile_status_bytes =
			gpusort_region_bytes((size_t) ((portion + TILE - 1) / TILE) * GPUSORT_BINS * sizeof(uint32_t));
		layout.histograms = layout.tile_status + layout.tile_status_bytes;
		layout.histograms_bytes = (GPUSORT_MAX_PASSES + 2) * GPUSORT_BINS * sizeof(uint32_t);
		layout.end = layout.histograms + layout.histograms_bytes;
		return layout;
	}

	/* How many bytes hold so many bits; the last counts as one also when there are none. */
	static int
	count_digits_of(int bits)
	{
		return bits > GPUSORT_DIGIT_BITS ? (bits + GPUSORT_DIGIT_BITS - 1) / GPUSORT_DIGIT_BITS : 1;
	}

	/* The bits of the last byte that count. */
	static uint32_t
	last_mask(int bits)
	{
		return (1u << (bits - GPUSORT_DIGIT_BITS * (count_digits_of(bits) - 1))) - 1;
	}

	/*
	 * In place, the last pass writes where the first one reads, so they must be two: a sort of one digit takes
	 * another pass first, whose digit is 0 in all rows.  Its histogram may be anything from 1 up; none is made.
	 */
	static int
	count_idle(int bits, bool in_place)
	{
		return in_place && count_digits_of(bits) == 1 ? 1 : 0;
	}

	static size_t
	temp_bytes(uint32_t rows, int bits)
	{
		return lay_out(rows, count_digits_of(bits) + count_idle(bits, true)).end;
	}

	/* The most that find_room hands out, whatever the bits; rows of one tile are sorted without temp. */
	static size_t
	room_bytes(uint32_t rows)
	{
		return rows > TILE ? lay_out(rows, GPUSORT_MAX_PASSES).end : rows * sizeof(uint64_t);
	}

	/*
	 * See gpusort_radix_room.  Pass i writes rows[i % 2] and reads the other, but for what
	 * the first one reads and the last one writes.  So of 3 and 4 passes the first may read
	 * from rows[1], and the last may write to the rows it does not read.  Fewer leave
	 * temp behind what they use.
	 */
	static GpuSortRadixRoom
	find_room(char *temp, uint32_t rows, int bits)
	{
		const int passes = count_digits_of(bits);
		const Layout layout = lay_out(rows, passes);
		const size_t keys_bytes = (size_t) rows * sizeof(uint32_t);
		char *in = temp + layout.end;
		char *out = in;
		GpuSortRadixRoom room;

		if (rows > TILE && passes == 1)
			out = in + 2 * keys_bytes;
		else if (rows > TILE && passes > 2)
		{
			in = temp + layout.rows[1];
			out = temp + layout.rows[passes % 2 == 0 ? 1 : 0];
		}
		room.keys_in = (uint32_t *) in;
		room.ids_in = (uint32_t *) (in + keys_bytes);
		room.keys_out = (uint32_t *) out;
		room.ids_out = (uint32_t *) (out + keys_bytes);
		return room;
	}

	template <GpuSortPassInput INPUT, GpuSortPassOutput OUTPUT>
	static void
	start_pass_of(const GpuSortPass *pass, cudaStream_t stream)
	{
		auto kernel = sort_pass<THREADS, ITEMS, BLOCKS, GROUP, WINDOW, INPUT, OUTPUT>;

		GPUSORT_START_KERNEL_SHARED(kernel, (pass->rows + TILE - 1) / TILE, THREADS,
									GPUSORT_PASS_SHARED(THREADS, ITEMS), stream, *pass);
	}

	template <GpuSortPassInput INPUT>
	static void
	start_pass_from(const GpuSortPass *pass, bool last, cudaStream_t stream)
	{
		if (!last)
			start_pass_of<INPUT, GPUSORT_OUTPUT_ROWS>(pass, stream);
		else if (pass->keys_out == NULL)
			start_pass_of<INPUT, GPUSORT_OUTPUT_IDS>(pass, stream);
		else
			start_pass_of<INPUT, GPUSORT_OUTPUT_PAIRS>(pass, stream);
	}

	static cudaError_t
	start_pass(const GpuSortPass *pass, bool first, bool last, cudaStream_t stream)
	{
		if (!first)
			start_pass_from<GPUSORT_INPUT_ROWS>(pass, last, stream);
		else if (pass->ids_in == NULL)
			start_pass_from<GPUSORT_INPUT_KEYS>(pass, last, stream);
		else
			start_pass_from<GPUSORT_INPUT_PAIRS>(pass, last, stream);
		return cudaGetLastError();
	}

	/*
	 * Adds to the histograms of the passes' digits.  Blocks are as many
	 * as run at a time, so that each clears and adds its counters once.
	 */
	static cudaError_t
	count(const uint32_t *keys, uint32_t rows, int bits, uint32_t *histograms, cudaStream_t stream)
	{
		auto kernel = count_digits<COUNT_THREADS, COUNT_UNROLL>;
		const int digits = count_digits_of(bits);
		const uint32_t wanted = (uint32_t) (((uint64_t) rows + COUNT_KEYS - 1) / COUNT_KEYS);
		int device;
		int processors;
		cudaError_t status = cudaGetDevice(&device);

		if (status == cudaSuccess)
			status = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
		if (status != cudaSuccess)
			return status;
		GPUSORT_START_KERNEL_SHARED_OF(kernel, wanted < (uint32_t) processors ? wanted : (uint32_t) processors,
									   COUNT_THREADS, GPUSORT_HISTOGRAM_SHARED(digits), COUNT_SHARED, stream, keys,
									   rows, digits, last_mask(bits), histograms);
		return cudaGetLastError();
	}

	/* As gpusort_radix_begin.  One digit is not worth it, and in place there would be an idle pass. */
	static cudaError_t
	begin(void *temp, size_t temp_size, uint32_t rows, int bits, uint32_t **histogram, cudaStream_t stream)
	{
		const Layout layout = lay_out(rows, count_digits_of(bits));

		*histogram = NULL;
		if (rows <= TILE || count_digits_of(bits) == 1)
			return cudaSuccess;
		if (layout.end > temp_size)
			return cudaErrorInvalidValue;
		*histogram = (uint32_t *) ((char *) temp + layout.histograms);
		return cudaMemsetAsync((char *) temp + layout.tile_status, 0, layout.end - layout.tile_status, stream);
	}

	/* As gpusort_radix_sort. */
	static cudaError_t
	sort(const GpuSortRadixSort *sort, cudaStream_t stream)
	{
		const uint32_t rows = sort->rows;
		const int bits = sort->bits;
		const int idle = count_idle(bits, sort->keys_out == sort->keys_in || sort->ids_out == sort->ids_in);
		const int passes = count_digits_of(bits) + idle;
		const Layout layout = lay_out(rows, passes);
		char *base = (char *) sort->temp;
		uint32_t *histograms = (uint32_t *) (base + layout.histograms);
		GpuSortPass pass = {};
		cudaError_t status;

		if (layout.end > sort->temp_bytes)
			return cudaErrorInvalidValue;
		pass.keys_in = sort->keys_in;
		pass.ids_in = sort->ids_in;
		pass.keys_out = sort->keys_out;
		pass.ids_out = sort->ids_out;
		pass.digit_mask = last_mask(bits);
		if (rows <= TILE)
		{
			auto kernel = sort_block<THREADS, ITEMS, GROUP>;

			pass.rows = rows;
			GPUSORT_START_KERNEL_SHARED(kernel, 1, THREADS, GPUSORT_PASS_SHARED(THREADS, ITEMS), stream, pass,
										count_digits_of(bits));
			return cudaGetLastError();
		}

		/* tile status and histograms lie beside each other */
		status = cudaSuccess;
		if (!sort->counted || count_digits_of(bits) == 1)
		{
			status = cudaMemsetAsync(base + layout.tile_status, 0, layout.end - layout.tile_status, stream);
			if (status == cudaSuccess)
				status = count(sort->keys_in, rows, bits, histograms + idle * GPUSORT_BINS, stream);
		}
		if (status == cudaSuccess)
		{
			GPUSORT_START_KERNEL(scan_histograms, passes, GPUSORT_BINS, stream, histograms);
			status = cudaGetLastError();
		}
		for (int i = 0; i < passes && status == cudaSuccess; i++)
		{
			uint32_t *next = histograms + GPUSORT_MAX_PASSES * GPUSORT_BINS;

			pass.rows_in = (const uint64_t *) (base + layout.rows[(i + 1) % 2]);
			pass.rows_out = (uint64_t *) (base + layout.rows[i % 2]);
			pass.tile_status = (uint32_t *) (base + layout.tile_status);
			pass.bin_offsets = histograms + i * GPUSORT_BINS;
			pass.byte = i < idle ? 4 : i - idle;

			/* a portion ends where the next one starts, bin by bin */
			for (uint64_t first = 0; first < rows && status == cudaSuccess; first += PORTION)
			{
				const uint64_t left = rows - first;

				pass.first_row = (uint32_t) first;
				pass.rows = left < PORTION ? (uint32_t) left : PORTION;
				pass.next_bin_offsets = left > PORTION ? next : NULL;
				status = start_pass(&pass, i == 0, i == passes - 1, stream);
				pass.number++;
				pass.bin_offsets = next;
				next = histograms +
					(GPUSORT_MAX_PASSES + (next == histograms + GPUSORT_MAX_PASSES * GPUSORT_BINS)) * GPUSORT_BINS;
			}
		}
		return status;
	}
};

#endif /* GPUSORT_ONESWEEP_CUH */
