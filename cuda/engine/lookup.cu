/*-------------------------------------------------------------------------
 *
 * lookup.cu
 *	  Between sorted rows' numbers and keys: the keys of given rows, and how many rows
 *	  are below given keys.
 *
 * Each shard answers for its own rows, and the answers are added up:
 * the key of a row is all zeros but from the shard that has it,
 * and the rows below a key are those of all shards.
 *
 * Questions and answers take the staging buffer that nothing is gathered into, so that
 * no memory is asked for.
 *
 *-------------------------------------------------------------------------
 */
#include <algorithm>
#include <stdlib.h>

#include "engine/check.h"
#include "engine/device.h"
#include "engine/shard.h"
#include "engine/steps.h"
#include "engine/warp_search.cuh"

#define GPUSORT_WARPS (GPUSORT_THREADS / 32)

/* A shard's sorted rows as kernels see them. */
typedef struct SortedRows
{
	const GpuSortDeviceChunk *chunks; /* all of the sort */
	const GpuSortRowRef *refs;        /* in order */
	uint32_t key_words;
	uint32_t rows;
	uint64_t first; /* number of the first one in the sort's order */
} SortedRows;

static __device__ const uint64_t *
sorted_key(const SortedRows &sorted, uint32_t row)
{
	return gpusort_ref_row(sorted.chunks, sorted.refs[row]) - sorted.key_words;
}

/* The keys of rows by their numbers; zeros for those of other shards.  One thread per word. */
static __global__ void
copy_keys(const __grid_constant__ SortedRows sorted, const uint64_t *rows, uint32_t count, uint64_t *keys)
{
	const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
	const uint32_t asked = i / sorted.key_words;

	if (asked < count)
	{
		const uint64_t row = rows[asked] - sorted.first;

		keys[i] = row < sorted.rows ? sorted_key(sorted, (uint32_t) row)[i % sorted.key_words] : 0;
	}
}

/* Returns true if the first `bits` bits of a key are less than another's. */
static __device__ bool
less_by_bits(const uint64_t *key, const uint64_t *than, uint32_t bits)
{
	const uint32_t words = bits / 64;
	const uint32_t rest = bits % 64;

	for (uint32_t w = 0; w < words; w++)
	{
		if (key[w] != than[w])
			return key[w] < than[w];
	}
	return rest > 0 && key[words] >> (64 - rest) < than[words] >> (64 - rest);
}

/* How many rows' first `bits` bits are less than each key's.  One warp per key. */
static __global__ void
count_below(const __grid_constant__ SortedRows sorted, uint32_t bits, const uint64_t *keys, uint32_t count,
			uint64_t *below)
{
	const uint32_t asked = blockIdx.x * GPUSORT_WARPS + threadIdx.x / 32;

	if (asked < count)
	{
		const uint64_t *key = keys + (uint64_t) asked * sorted.key_words;
		const uint32_t found = gpusort_first_beyond(
			0, sorted.rows, [&](uint32_t row)
			{ return !less_by_bits(sorted_key(sorted, row), key, bits); });

		if (threadIdx.x % 32 == 0)
			below[asked] = found;
	}
}

static SortedRows
sorted_rows(const GpuSortShard *shard)
{
	return {shard->work.chunks, shard->work.sorted_refs, shard->sort->key_words, shard->rows_out, shard->first_out};
}

/* What is asked of all shards. */
typedef struct Question
{
	uint32_t bits;      /* of rows_below; 0: keys_at */
	uint32_t count;     /* of rows or keys asked for */
	const uint64_t *in; /* host memory, in_words of it for each of them */
	uint32_t in_words;
	uint32_t out_words; /* of the answer to each of them */
} Question;

static uint32_t
blocks_of(uint64_t items, uint32_t per_block)
{
	return (uint32_t) ((items + per_block - 1) / per_block);
}

/* Has the answer of a shard copied into out; waits. */
static int
ask_shard(GpuSortShard *shard, const Question *question, uint64_t *out, GpuSortError *error)
{
	GpuSortCudaDevice *device = shard->device;
	cudaStream_t stream = shard->lane->compute;
	const uint64_t in_words = (uint64_t) question->count * question->in_words;
	const uint64_t out_words = (uint64_t) question->count * question->out_words;
	uint64_t *device_in = (uint64_t *) gpusort_staging_buffer(shard, shard->ahead == 0 ? 1 : 0);
	uint64_t *device_out = device_in + in_words;

	if (gpusort_device_use(device, error) != 0)
		return -1;
	GPUSORT_CUDA(device, error,
				 cudaMemcpyAsync(device_in, question->in, in_words * 8, cudaMemcpyHostToDevice, stream));
	if (question->bits == 0)
		GPUSORT_LAUNCH(device, error, copy_keys, blocks_of(out_words, GPUSORT_THREADS), GPUSORT_THREADS, stream,
					   sorted_rows(shard), device_in, question->count, device_out);
	else
		GPUSORT_LAUNCH(device, error, count_below, blocks_of(question->count, GPUSORT_WARPS), GPUSORT_THREADS, stream,
					   sorted_rows(shard), question->bits, device_in, question->count, device_out);
	GPUSORT_CUDA(device, error, cudaMemcpyAsync(out, device_out, out_words * 8, cudaMemcpyDeviceToHost, stream));
	GPUSORT_CUDA(device, error, cudaEventRecord(shard->lane->computed, stream));
	return gpusort_wait(device, shard->lane->computed, error);
}

/* Sets out to the sum of all shards' answers; part is room for one, or NULL where there is one shard. */
static int
ask_shards(GpuSort *sort, const Question *question, uint64_t *out, uint64_t *part, GpuSortError *error)
{
	const uint64_t out_words = (uint64_t) question->count * question->out_words;

	if (part == NULL)
		return sort->shards[0].rows_out > 0 ? ask_shard(&sort->shards[0], question, out, error) : 0;
	for (uint32_t p = 0; p < sort->shard_count; p++)
	{
		if (sort->shards[p].rows_out == 0)
			continue;
		if (ask_shard(&sort->shards[p], question, part, error) != 0)
			return -1;
		for (uint64_t i = 0; i < out_words; i++)
			out[i] += part[i];
	}
	return 0;
}

/* Asks for as many at once as a staging buffer takes; out is set to their answers. */
static int
ask(GpuSort *sort, Question question, uint64_t *out, GpuSortError *error)
{
	const uint32_t most = (uint32_t) GPUSORT_CHUNK_WORDS / (question.in_words + question.out_words);
	const uint32_t all = question.count;
	uint64_t *part = NULL;
	int result = 0;

	if (gpusort_check_cancel(sort, error) != 0)
		return -1;
	if (!sort->sorted)
		return gpusort_fail(error, GPUSORT_REASON_INTERNAL, "sorted rows were asked for before sort");
	if (sort->shard_count > 1)
	{
		part = (uint64_t *) malloc(std::max(std::min(all, most), 1u) * question.out_words * sizeof(uint64_t));
		if (part == NULL)
			return gpusort_fail(error, GPUSORT_REASON_NO_MEMORY, "out of memory");
	}
	std::fill(out, out + (uint64_t) all * question.out_words, 0);
	for (uint32_t done = 0; done < all && result == 0; done += question.count)
	{
		question.count = std::min(all - done, most);
		result = ask_shards(sort, &question, out + (uint64_t) done * question.out_words, part, error);
		question.in += (uint64_t) question.count * question.in_words;
	}
	free(part);
	return result;
}

int
gpusort_cuda_keys_at(GpuSort *sort, const uint64_t *rows, uint32_t count, uint64_t *keys, GpuSortError *error)
{
	const Question question = {0, count, rows, 1, sort->key_words};

	for (uint32_t i = 0; i < count; i++)
	{
		if (rows[i] >= sort->rows_out)
			return gpusort_fail(error, GPUSORT_REASON_INTERNAL, "the key of row %llu of %llu was asked for",
								(unsigned long long) rows[i], (unsigned long long) sort->rows_out);
	}
	return ask(sort, question, keys, error);
}

int
gpusort_cuda_rows_below(GpuSort *sort, uint32_t bits, const uint64_t *keys, uint32_t count, uint64_t *rows,
						GpuSortError *error)
{
	const Question question = {bits, count, keys, sort->key_words, 1};

	if (bits < 1 || bits > 64 * sort->key_words)
		return gpusort_fail(error, GPUSORT_REASON_INTERNAL, "%u bits of a key of %u words", bits, sort->key_words);
	return ask(sort, question, rows, error);
}
