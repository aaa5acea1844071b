/*-------------------------------------------------------------------------
 *
 * gather.cu
 *	  Emit: rows in order, chunk by chunk.
 *
 * During the D2H copy of one chunk the next is gathered into the other of two staging
 * buffers: a kernel of one warp finds how many rows fill a chunk, by a search in the
 * inclusive scan of row lengths, and the gather kernel copies them.
 *
 * The gather goes by output, not by rows: each block fills one tile of the chunk,
 * each thread a word of 8 bytes at a time, and finds the row that the word belongs
 * to by a search among the tile's rows in shared memory.  So writes are contiguous,
 * reads are as long as rows are, and a row of megabytes is spread over as many
 * blocks as rows of 16 bytes would be.
 *
 *-------------------------------------------------------------------------
 */
#include "engine/check.h"
#include "engine/device.h"
#include "engine/shard.h"
#include "engine/steps.h"

/* Words that a block fills. */
#define GPUSORT_TILE_WORDS 1024

/*
 * The first row in [low, high) whose end lies beyond `limit` words, or high.  Called
 * by whole warps with the same arguments in all threads.  Looks at 32 places at once,
 * so half a million rows take four turns.
 */
static __device__ uint32_t
first_row_beyond(const uint64_t *ends, uint32_t low, uint32_t high, uint64_t limit)
{
	const uint32_t lane = threadIdx.x % 32;

	while (low < high)
	{
		uint32_t step = (high - low + 31) / 32;
		uint64_t place = (uint64_t) low + lane * step;
		bool beyond = place >= high || ends[place] > limit;
		uint32_t votes = __ballot_sync(GPUSORT_FULL_WARP, beyond);
		uint32_t first = votes != 0 ? __ffs(votes) - 1 : 32;
		uint64_t upper = (uint64_t) low + first * step;

		if (first == 0)
			break;

		/* the place before `first` is not beyond, the one at `first` is */
		low = low + (first - 1) * step + 1;
		high = upper < high ? (uint32_t) upper : high;
	}
	return low;
}

/* Cuts: how many rows from first_row on, which starts at first_word, fill a chunk.  One warp. */
static __global__ void
find_cut(const uint64_t *ends, uint32_t rows, uint32_t first_row, uint64_t first_word, GpuSortCut *cut)
{
	uint32_t most = rows - first_row < GPUSORT_CHUNK_WORDS ? rows : first_row + (uint32_t) GPUSORT_CHUNK_WORDS;
	uint32_t end = first_row_beyond(ends, first_row, most, first_word + GPUSORT_CHUNK_WORDS);

	if (threadIdx.x == 0)
	{
		cut->first_word = first_word;
		cut->first_row = first_row;
		cut->rows = end - first_row;
		cut->words = end > first_row ? (uint32_t) (ends[end - 1] - first_word) : 0;
		cut->tie_rows = 0;
	}
}

/*
 * Fills out with the rows of cut.  One block per tile of what the chunk may hold; those
 * beyond the cut's words have nothing to do.  ties is a bit per row, or NULL.
 */
static __global__ void
gather_rows(const GpuSortDeviceChunk *chunks, const GpuSortRowRef *refs, const uint64_t *ends, const uint32_t *ties,
			GpuSortCut *cut, uint64_t *out)
{
	__shared__ int32_t starts[GPUSORT_TILE_WORDS];   /* in words of the tile; the first may be below 0 */
	__shared__ uint64_t sources[GPUSORT_TILE_WORDS]; /* addresses; bit 0 set: TIE_NEXT */
	__shared__ uint32_t first_row;
	__shared__ uint32_t last_row;
	__shared__ uint32_t tie_rows;
	const uint32_t tile_start = blockIdx.x * GPUSORT_TILE_WORDS;
	const uint32_t cut_words = cut->words;
	const uint32_t cut_row = cut->first_row;
	const uint32_t cut_end = cut_row + cut->rows;
	const uint64_t tile_word = cut->first_word + tile_start;
	uint32_t tile_words;
	uint32_t tile_rows;

	/* the same for all threads of the block */
	if (tile_start >= cut_words)
		return;
	tile_words = cut_words - tile_start < GPUSORT_TILE_WORDS ? cut_words - tile_start : GPUSORT_TILE_WORDS;

	/* the rows that the tile's first and last words belong to, each found by a warp */
	if (threadIdx.x < 64)
	{
		bool second = threadIdx.x >= 32;
		uint32_t row = first_row_beyond(ends, cut_row, cut_end, tile_word + (second ? tile_words - 1 : 0));

		if (threadIdx.x == 0)
		{
			first_row = row;
			tie_rows = 0;
		}
		if (threadIdx.x == 32)
			last_row = row;
	}
	__syncthreads();
	tile_rows = last_row - first_row + 1;

	for (uint32_t i = threadIdx.x; i < tile_rows; i += blockDim.x)
	{
		uint32_t row = first_row + i;
		uint64_t start = row > 0 ? ends[row - 1] : 0;
		GpuSortRowRef ref = refs[row];
		bool tie = ties != NULL && (ties[row / 32] >> row % 32 & 1);

		starts[i] = (int32_t) ((int64_t) start - (int64_t) tile_word);
		sources[i] = (chunks[gpusort_ref_chunk(ref)].base + gpusort_ref_place(ref)) | (tie ? 1 : 0);

		/* a row counts where it starts */
		if (tie && start >= tile_word)
			atomicAdd(&tie_rows, 1u);
	}
	__syncthreads();

	for (uint32_t word = threadIdx.x; word < tile_words; word += blockDim.x)
	{
		uint32_t row = 0;
		uint32_t beyond = tile_rows;
		uint64_t source;
		uint32_t inside;
		uint64_t value;

		/* the last row that starts here or before; row 0 does */
		while (beyond - row > 1)
		{
			uint32_t middle = (row + beyond) / 2;

			if (starts[middle] <= (int32_t) word)
				row = middle;
			else
				beyond = middle;
		}
		source = sources[row];
		inside = (uint32_t) ((int32_t) word - starts[row]);
		value = ((const uint64_t *) (source & ~UINT64_C(1)))[inside];
		if (inside == 0)
			value = gpusort_row_head_out(value, source & 1);
		out[tile_start + word] = value;
	}

	if (threadIdx.x == 0 && tie_rows > 0)
		atomicAdd(&cut->tie_rows, tie_rows);
}

int
gpusort_gather_ahead(GpuSortShard *shard, int buffer, GpuSortError *error)
{
	GpuSortWork *work = &shard->work;
	GpuSortLane *lane = shard->lane;
	GpuSortCut *cut = &lane->state->cuts[buffer];
	uint64_t *out = (uint64_t *) ((char *) shard->staging.base + buffer * GPUSORT_CHUNK_BYTES);
	uint64_t words_left = lane->mirror->total_words - shard->next_word;

	shard->ahead = -1;
	if (shard->next_row >= shard->rows_out)
		return 0;
	if (words_left > GPUSORT_CHUNK_WORDS)
		words_left = GPUSORT_CHUNK_WORDS;

	GPUSORT_CUDA(shard->device, error, cudaEventRecord(lane->gather_begun[buffer], lane->compute));
	GPUSORT_LAUNCH(shard->device, error, find_cut, 1, 32, lane->compute,
				   work->ends, shard->rows_out, (uint32_t) shard->next_row, shard->next_word, cut);
	GPUSORT_LAUNCH(shard->device, error, gather_rows,
				   (unsigned int) ((words_left + GPUSORT_TILE_WORDS - 1) / GPUSORT_TILE_WORDS), GPUSORT_THREADS,
				   lane->compute, work->chunks, work->sorted_refs, work->ends, work->equal, cut, out);
	GPUSORT_CUDA(shard->device, error,
				 cudaMemcpyAsync(&lane->mirror->cuts[buffer], cut, sizeof(GpuSortCut), cudaMemcpyDeviceToHost,
								 lane->compute));
	GPUSORT_CUDA(shard->device, error, cudaEventRecord(lane->gathered[buffer], lane->compute));
	shard->ahead = buffer;
	return 0;
}

/* Makes the first shard from `from` on that has rows the one whose rows are due; returns false if there is none. */
static bool
emit_next_shard(GpuSort *sort, uint32_t from)
{
	sort->emitting = from;
	while (sort->emitting < sort->shard_count && sort->shards[sort->emitting].rows_out == 0)
		sort->emitting++;
	sort->at_end = sort->emitting == sort->shard_count;
	return !sort->at_end;
}

int
gpusort_cuda_emit(GpuSort *sort, void *chunk, GpuSortEmitted *emitted, GpuSortError *error)
{
	GpuSortShard *shard;
	GpuSortCudaDevice *device;
	GpuSortLane *lane;
	GpuSortCut cut;
	float gather_ms = 0;
	int buffer;

	*emitted = {};
	if (gpusort_check_cancel(sort, error) != 0)
		return -1;
	if (!sort->sorted || sort->at_end)
		return gpusort_fail(error, GPUSORT_REASON_INTERNAL, "emit was called before sort or after the last row");
	if (sort->emitting == 0 && !emit_next_shard(sort, 0))
	{
		emitted->last = 1;
		return 0;
	}

	shard = &sort->shards[sort->emitting];
	device = shard->device;
	lane = shard->lane;
	buffer = shard->ahead;
	if (gpusort_device_use(device, error) != 0 || gpusort_wait(device, lane->gathered[buffer], error) != 0)
		return -1;
	cut = lane->mirror->cuts[buffer];
	if (cut.first_row != shard->next_row || cut.rows == 0 || cut.words > GPUSORT_CHUNK_WORDS)
		return gpusort_fail(error, GPUSORT_REASON_INTERNAL, "%u rows of %u words were cut for a chunk",
							cut.rows, cut.words);

	GPUSORT_CUDA(device, error,
				 cudaMemcpyAsync(chunk, (char *) shard->staging.base + buffer * GPUSORT_CHUNK_BYTES,
								 (size_t) cut.words * 8, cudaMemcpyDeviceToHost, lane->copies));
	GPUSORT_CUDA(device, error, cudaEventRecord(lane->downloaded, lane->copies));

	/* The other buffer is free: the emit that filled it from there waited for its copy. */
	shard->next_row += cut.rows;
	shard->next_word += cut.words;
	if (gpusort_gather_ahead(shard, 1 - buffer, error) != 0 ||
		gpusort_wait(device, lane->downloaded, error) != 0)
		return -1;

	GPUSORT_CUDA(device, error, cudaEventElapsedTime(&gather_ms, lane->gather_begun[buffer], lane->gathered[buffer]));
	emitted->rows = cut.rows;
	emitted->bytes = cut.words * 8;
	emitted->tie_rows = cut.tie_rows;
	emitted->last = shard->next_row == shard->rows_out && !emit_next_shard(sort, sort->emitting + 1);
	emitted->gather_ms = gather_ms;
	return 0;
}

int
gpusort_cuda_rewind(GpuSort *sort, GpuSortError *error)
{
	if (gpusort_check_cancel(sort, error) != 0)
		return -1;
	if (!sort->sorted)
		return gpusort_fail(error, GPUSORT_REASON_INTERNAL, "rewind was called before sort");

	/* What was gathered ahead is overwritten, in the order of the stream. */
	for (uint32_t p = 0; p < sort->shard_count; p++)
	{
		GpuSortShard *shard = &sort->shards[p];

		shard->next_row = 0;
		shard->next_word = 0;
		if (gpusort_device_use(shard->device, error) != 0 || gpusort_gather_ahead(shard, 0, error) != 0)
			return -1;
	}
	sort->emitting = 0;
	sort->at_end = false;
	return 0;
}
