/*-------------------------------------------------------------------------
 *
 * gather.cu
 *	  Emit: rows in order, chunk by chunk, from any row on.
 *
 * A kernel of one block finds how many rows fill a chunk, by a search in the inclusive
 * scan of row lengths, and writes that into the host's memory; the gather kernel
 * copies them into a staging buffer, from where they leave by a D2H copy.  While the gather
 * runs the host starts that copy, which waits for it on the device.
 *
 * During the copy of one chunk what follows it, of the rows asked for, is gathered into the
 * other of two staging buffers.  A reader that goes on from there has it at once; for another
 * the work is lost, but no time, as it takes less than the copy.
 *
 * The gather is by output, not by rows: each block fills one tile of the chunk,
 * each thread a word of 8 bytes at a time, and finds the row that the word belongs
 * to by a search among the tile's rows in shared memory.  So writes are contiguous,
 * reads are as long as rows are, and a row of megabytes is spread over as many
 * blocks as rows of 16 bytes would be.
 *
 * Records are rows with their keys, which lie right before them in their chunks: the same, with
 * each row key_words longer.
 *
 *-------------------------------------------------------------------------
 */
#include "engine/check.h"
#include "engine/device.h"
#include "engine/shard.h"
#include "engine/steps.h"
#include "engine/warp_search.cuh"

/* Words that a block fills. */
#define GPUSORT_TILE_WORDS 1024

/* Words of all rows up to and with this one; of RECORDS, with keys of key_words. */
template <bool RECORDS>
static __device__ uint64_t
words_to(const uint64_t *ends, uint32_t row, uint32_t key_words)
{
	return RECORDS ? ends[row] + ((uint64_t) row + 1) * key_words : ends[row];
}

/*
 * Cuts: how many rows from `first` on, and none from `end` on, fill a chunk.  Both cuts are
 * filled in, one on the device and one on the host.  ties is a bit per row, or NULL.  One block.
 */
template <bool RECORDS>
static __global__ void
find_cut(const uint64_t *ends, const uint32_t *ties, uint32_t key_words, uint32_t first, uint32_t end, GpuSortCut *cut,
		 GpuSortCut *told)
{
	__shared__ uint32_t cut_end;
	__shared__ uint32_t tie_rows;
	const uint64_t first_word = first > 0 ? words_to<RECORDS>(ends, first - 1, key_words) : 0;

	if (threadIdx.x < 32)
	{
		const uint32_t most = end - first < GPUSORT_CHUNK_WORDS ? end : first + (uint32_t) GPUSORT_CHUNK_WORDS;
		const uint64_t limit = first_word + GPUSORT_CHUNK_WORDS;
		const uint32_t found = gpusort_first_beyond(first, most, [=](uint32_t row)
													{ return words_to<RECORDS>(ends, row, key_words) > limit; });

		if (threadIdx.x == 0)
		{
			cut_end = found;
			tie_rows = 0;
		}
	}
	__syncthreads();

	if (ties != NULL && cut_end > first)
	{
		const uint32_t last_word = (cut_end - 1) / 32;
		uint32_t count = 0;

		for (uint32_t word = first / 32 + threadIdx.x; word <= last_word; word += blockDim.x)
		{
			uint32_t bits = ties[word];

			if (word == first / 32)
				bits &= UINT32_MAX << first % 32;
			if (word == last_word)
				bits &= UINT32_MAX >> (31 - (cut_end - 1) % 32);
			count += __popc(bits);
		}
		if (count > 0)
			atomicAdd(&tie_rows, count);
	}
	__syncthreads();

	if (threadIdx.x == 0)
	{
		GpuSortCut found;

		found.first_word = first_word;
		found.first_row = first;
		found.rows = cut_end - first;
		found.words = cut_end > first ? (uint32_t) (words_to<RECORDS>(ends, cut_end - 1, key_words) - first_word) : 0;
		found.tie_rows = tie_rows;
		*cut = found;
		*told = found;
	}
}

/*
 * Fills out with the rows of cut.  One block per tile of what the chunk may hold; those
 * beyond the cut's words have nothing to do.  ties is a bit per row, or NULL.
 */
template <bool RECORDS>
static __global__ void
gather_rows(const GpuSortDeviceChunk *chunks, const GpuSortRowRef *refs, const uint64_t *ends, const uint32_t *ties,
			uint32_t key_words, const GpuSortCut *cut, uint64_t *out)
{
	__shared__ int32_t starts[GPUSORT_TILE_WORDS];   /* in words of the tile; the first may be below 0 */
	__shared__ uint64_t sources[GPUSORT_TILE_WORDS]; /* addresses; bit 0 set: TIE_NEXT */
	__shared__ uint32_t first_row;
	__shared__ uint32_t last_row;
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
		uint64_t word = tile_word + (second ? tile_words - 1 : 0);
		uint32_t row = gpusort_first_beyond(cut_row, cut_end, [=](uint32_t at)
											{ return words_to<RECORDS>(ends, at, key_words) > word; });

		if (threadIdx.x == 0)
			first_row = row;
		if (threadIdx.x == 32)
			last_row = row;
	}
	__syncthreads();
	tile_rows = last_row - first_row + 1;

	for (uint32_t i = threadIdx.x; i < tile_rows; i += blockDim.x)
	{
		uint32_t row = first_row + i;
		uint64_t start = row > 0 ? words_to<RECORDS>(ends, row - 1, key_words) : 0;
		GpuSortRowRef ref = refs[row];
		uint64_t source = chunks[gpusort_ref_chunk(ref)].base + gpusort_ref_place(ref);
		bool tie = ties != NULL && (ties[row / 32] >> row % 32 & 1);

		starts[i] = (int32_t) ((int64_t) start - (int64_t) tile_word);
		if (RECORDS)
			source -= key_words * sizeof(uint64_t);
		sources[i] = source | (tie ? 1 : 0);
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
		if (RECORDS && inside == key_words)
			value = gpusort_record_head_out(value);
		if (!RECORDS && inside == 0)
			value = gpusort_row_head_out(value, source & 1);
		out[tile_start + word] = value;
	}
}

char *
gpusort_staging_buffer(const GpuSortShard *shard, int buffer)
{
	return (char *) shard->staging.base + buffer * GPUSORT_CHUNK_BYTES;
}

/* Starts the kernels of gpusort_gather_ahead. */
template <bool RECORDS>
static int
start_gather(GpuSortShard *shard, int buffer, uint32_t first, uint32_t end, GpuSortError *error)
{
	const uint32_t key_words = RECORDS ? shard->sort->key_words : 0;
	GpuSortWork *work = &shard->work;
	GpuSortLane *lane = shard->lane;
	GpuSortCut *cut = &lane->state->cuts[buffer];
	const uint32_t *ties = RECORDS ? NULL : work->equal;
	uint64_t words = lane->mirror->total_words + (uint64_t) shard->rows_out * key_words;

	if (words > GPUSORT_CHUNK_WORDS)
		words = GPUSORT_CHUNK_WORDS;

	GPUSORT_LAUNCH(shard->device, error, find_cut<RECORDS>, 1, GPUSORT_THREADS, lane->compute,
				   work->ends, ties, key_words, first, end, cut, &lane->mirror->cuts[buffer]);
	GPUSORT_CUDA(shard->device, error, cudaEventRecord(lane->computed, lane->compute));
	GPUSORT_LAUNCH(shard->device, error, gather_rows<RECORDS>,
				   (unsigned int) ((words + GPUSORT_TILE_WORDS - 1) / GPUSORT_TILE_WORDS), GPUSORT_THREADS,
				   lane->compute, work->chunks, work->sorted_refs, work->ends, ties, key_words, cut,
				   (uint64_t *) gpusort_staging_buffer(shard, buffer));
	return 0;
}

int
gpusort_gather_ahead(GpuSortShard *shard, int buffer, uint32_t first, uint32_t end, bool records, GpuSortError *error)
{
	GpuSortLane *lane = shard->lane;

	GPUSORT_CUDA(shard->device, error, cudaEventRecord(lane->gather_begun[buffer], lane->compute));
	if ((records ? start_gather<true>(shard, buffer, first, end, error)
				 : start_gather<false>(shard, buffer, first, end, error)) != 0)
		return -1;
	GPUSORT_CUDA(shard->device, error, cudaEventRecord(lane->gathered[buffer], lane->compute));
	shard->ahead = buffer;
	shard->ahead_first = first;
	shard->ahead_end = end;
	shard->ahead_records = records;
	return 0;
}

/*
 * Gathers the shard's rows from `first` on, none from `end` on, unless they are ahead; waits
 * until it is known how many a chunk takes.  They are in buffer *buffer, or will be.
 */
static int
gather_chunk(GpuSortShard *shard, uint32_t first, uint32_t end, bool records, int *buffer, GpuSortCut *cut,
			 GpuSortError *error)
{
	const GpuSortLane *lane = shard->lane;

	*buffer = shard->ahead >= 0 ? shard->ahead : 0;
	if (shard->ahead >= 0 && shard->ahead_first == first && shard->ahead_records == records)
	{
		uint64_t cut_end;

		if (gpusort_wait(shard->device, lane->computed, error) != 0)
			return -1;
		*cut = lane->mirror->cuts[*buffer];
		cut_end = (uint64_t) cut->first_row + cut->rows;

		/* where a full chunk was cut, `end` has no part in it */
		if (shard->ahead_end == end || (cut_end < shard->ahead_end && cut_end <= end))
			return 0;
	}

	/* What was gathered ahead is overwritten, in the order of the stream. */
	if (gpusort_gather_ahead(shard, *buffer, first, end, records, error) != 0 ||
		gpusort_wait(shard->device, lane->computed, error) != 0)
		return -1;
	*cut = lane->mirror->cuts[*buffer];
	return 0;
}

/* The shard that has row number `row` of the sort's, which is below sort->rows_out. */
static GpuSortShard *
shard_of_row(GpuSort *sort, uint64_t row)
{
	GpuSortShard *shard = sort->shards;

	while (row - shard->first_out >= shard->rows_out)
		shard++;
	return shard;
}

/* The number in the shard of the row before which row number `end` of the sort's, or the next shard, begins. */
static uint32_t
end_in_shard(const GpuSortShard *shard, uint64_t end)
{
	const uint64_t own = end - shard->first_out;

	return own < shard->rows_out ? (uint32_t) own : shard->rows_out;
}

/* Gathers ahead what follows when rows of `shard`, from `buffer`, are followed by those from `next` on, below end. */
static int
gather_next(GpuSort *sort, GpuSortShard *shard, int buffer, uint64_t next, uint64_t end, bool records,
			GpuSortError *error)
{
	GpuSortShard *following;
	uint32_t first;
	uint32_t following_end;

	shard->ahead = -1;
	if (next == end)
		return 0;
	following = shard_of_row(sort, next);
	first = (uint32_t) (next - following->first_out);
	following_end = end_in_shard(following, end);

	/* The other buffer is free: the emit that filled a chunk from there waited for its copy. */
	if (following == shard)
		return gpusort_gather_ahead(shard, 1 - buffer, first, following_end, records, error);

	if (following->ahead >= 0 && following->ahead_first == first && following->ahead_end == following_end &&
		following->ahead_records == records)
		return 0;
	if (gpusort_device_use(following->device, error) != 0 ||
		gpusort_gather_ahead(following, 0, first, following_end, records, error) != 0)
		return -1;
	return gpusort_device_use(shard->device, error);
}

int
gpusort_cuda_emit(GpuSort *sort, uint64_t first, uint64_t end, bool records, void *chunk, GpuSortEmitted *emitted,
				  GpuSortError *error)
{
	GpuSortShard *shard;
	GpuSortCudaDevice *device;
	GpuSortLane *lane;
	GpuSortCut cut;
	float gather_ms = 0;
	uint32_t first_own;
	int buffer;

	*emitted = {};
	if (gpusort_check_cancel(sort, error) != 0)
		return -1;
	if (!sort->sorted || first >= end || end > sort->rows_out)
		return gpusort_fail(error, GPUSORT_REASON_INTERNAL, "rows %llu to %llu of %llu were asked for",
							(unsigned long long) first, (unsigned long long) end,
							(unsigned long long) sort->rows_out);

	shard = shard_of_row(sort, first);
	device = shard->device;
	lane = shard->lane;
	first_own = (uint32_t) (first - shard->first_out);
	if (gpusort_device_use(device, error) != 0 ||
		gather_chunk(shard, first_own, end_in_shard(shard, end), records, &buffer, &cut, error) != 0)
		return -1;
	if (cut.first_row != first_own || cut.rows == 0 || cut.words > GPUSORT_CHUNK_WORDS)
		return gpusort_fail(error, GPUSORT_REASON_INTERNAL, "%u rows of %u words were cut for a chunk",
							cut.rows, cut.words);

	GPUSORT_CUDA(device, error, cudaStreamWaitEvent(lane->copies, lane->gathered[buffer], 0));
	GPUSORT_CUDA(device, error,
				 cudaMemcpyAsync(chunk, gpusort_staging_buffer(shard, buffer), (size_t) cut.words * 8,
								 cudaMemcpyDeviceToHost, lane->copies));
	GPUSORT_CUDA(device, error, cudaEventRecord(lane->downloaded, lane->copies));
	if (gather_next(sort, shard, buffer, first + cut.rows, end, records, error) != 0 ||
		gpusort_wait(device, lane->downloaded, error) != 0)
		return -1;

	GPUSORT_CUDA(device, error, cudaEventElapsedTime(&gather_ms, lane->gather_begun[buffer], lane->gathered[buffer]));
	emitted->rows = cut.rows;
	emitted->bytes = cut.words * 8;
	emitted->tie_rows = cut.tie_rows;
	emitted->last = first + cut.rows == end;
	emitted->gather_ms = gather_ms;
	return 0;
}
