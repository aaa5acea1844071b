/*-------------------------------------------------------------------------
 *
 * upload.cu
 *	  Taking chunks in; see upload.h.
 *
 * A chunk's records and offsets go to the device as they are, packed densely
 * into slabs, and stay there: everything later works on them in place.  The
 * unused middle of a chunk is not copied.
 *
 * As soon as a chunk has arrived, a kernel checks every offset and length in it
 * and adds its keys to the OR and the AND of each key word.  The chunk's memory is
 * the caller's again once the copy is through; nobody waits for the kernel.
 *
 * RESERVES
 *	reserve is the only place that asks for memory while rows come in, so put
 *	never fails for want of it.  A reserve holds a whole chunk's room in a slab
 *	and work memory for as many rows as a chunk can hold; put then gives back
 *	what its chunk did not take.
 *
 *	Slabs with f bytes free have room for f / GPUSORT_CHUNK_BYTES reserves.  A put
 *	goes into the first slab where it fits, and takes the room of one reserve at
 *	most, its own.
 *
 *-------------------------------------------------------------------------
 */
#include "upload.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "device.h"

/* Slabs of the smallest size take two chunks; then they double. */
#define GPUSORT_SLAB_MIN		(2 * GPUSORT_CHUNK_BYTES)
#define GPUSORT_SLAB_MAX		(64 * GPUSORT_CHUNK_BYTES)

/* Chunks start at multiples of this, which divides GPUSORT_CHUNK_BYTES. */
#define GPUSORT_CHUNK_ALIGN		256

/*
 * Work memory per row: ref 8, packed key 2 x 8, row id 2 x 4; tie bits and CUB's own
 * (mostly 256 counts of 4 bytes per tile of thousands of rows) surely below 2.
 */
#define GPUSORT_WORK_PER_ROW	34
#define GPUSORT_WORK_FIXED		((uint64_t) 1 << 20)

#define GPUSORT_INSPECT_BLOCKS	64

/*
 * Checks a chunk's rows and adds its keys to state.  Shapes: `rows` records of
 * key_words words and a row each, anywhere in the first `bytes` bytes at base;
 * their offsets, the last one first, behind them.  Reads nothing outside, whatever
 * the offsets and lengths are.
 */
static __global__ void
inspect_chunk(const char *base, uint32_t rows, uint32_t bytes, uint32_t key_words, GpuSortState *state)
{
	__shared__ unsigned long long block_or[GPUSORT_MAX_KEY_WORDS];
	__shared__ unsigned long long block_and[GPUSORT_MAX_KEY_WORDS];
	const uint32_t *offsets = (const uint32_t *) (base + gpusort_chunk_offsets_at(bytes));
	const uint32_t first = blockIdx.x * blockDim.x + threadIdx.x;
	const uint32_t stride = gridDim.x * blockDim.x;
	uint32_t	bad = 0;

	if (threadIdx.x < GPUSORT_MAX_KEY_WORDS)
	{
		block_or[threadIdx.x] = 0;
		block_and[threadIdx.x] = ~0ull;
	}
	__syncthreads();

	for (uint32_t row = first; row < rows; row += stride)
	{
		uint32_t	offset = offsets[rows - 1 - row];

		if (!gpusort_record_readable(offset, bytes, key_words) ||
			!gpusort_row_length_ok(offset, *(const uint32_t *) (base + offset + 8 * key_words), bytes, key_words))
			bad++;
	}
	if (bad > 0)
		atomicAdd(&state->bad_rows, bad);

	for (uint32_t w = 0; w < key_words; w++)
	{
		uint64_t	key_or = 0;
		uint64_t	key_and = ~UINT64_C(0);
		uint32_t	or_low;
		uint32_t	or_high;
		uint32_t	and_low;
		uint32_t	and_high;

		for (uint32_t row = first; row < rows; row += stride)
		{
			uint32_t	offset = offsets[rows - 1 - row];
			uint64_t	key;

			if (!gpusort_record_readable(offset, bytes, key_words))
				continue;
			key = ((const uint64_t *) (base + offset))[w];
			key_or |= key;
			key_and &= key;
		}

		or_low = __reduce_or_sync(0xFFFFFFFF, (uint32_t) key_or);
		or_high = __reduce_or_sync(0xFFFFFFFF, (uint32_t) (key_or >> 32));
		and_low = __reduce_and_sync(0xFFFFFFFF, (uint32_t) key_and);
		and_high = __reduce_and_sync(0xFFFFFFFF, (uint32_t) (key_and >> 32));
		if (threadIdx.x % 32 == 0)
		{
			atomicOr(&block_or[w], (unsigned long long) or_high << 32 | or_low);
			atomicAnd(&block_and[w], (unsigned long long) and_high << 32 | and_low);
		}
	}
	__syncthreads();

	/* After the first chunks there is rarely a bit left to set or clear: look before writing. */
	if (threadIdx.x < key_words)
	{
		unsigned long long *key_or = (unsigned long long *) &state->keys.key_or[threadIdx.x];
		unsigned long long *key_and = (unsigned long long *) &state->keys.key_and[threadIdx.x];

		if (block_or[threadIdx.x] & ~*(volatile unsigned long long *) key_or)
			atomicOr(key_or, block_or[threadIdx.x]);
		if (~block_and[threadIdx.x] & *(volatile unsigned long long *) key_and)
			atomicAnd(key_and, block_and[threadIdx.x]);
	}
}

bool
gpusort_kernels_present(void)
{
	cudaFuncAttributes attributes;
	cudaError_t status = cudaFuncGetAttributes(&attributes, inspect_chunk);

	(void) cudaGetLastError();
	return status == cudaSuccess;
}

uint64_t
gpusort_work_bytes(uint64_t rows, uint64_t chunks)
{
	return gpusort_block_size(GPUSORT_WORK_FIXED + rows * GPUSORT_WORK_PER_ROW +
							  chunks * sizeof(GpuSortDeviceChunk));
}

GpuSortShare
gpusort_first_share(uint64_t estimated_rows, uint64_t estimated_bytes)
{
	GpuSortShare share;
	uint64_t	chunks;

	/* An estimate that overflows is too large for any device. */
	if (estimated_rows > UINT64_MAX / 256)
		estimated_rows = UINT64_MAX / 256;
	if (estimated_bytes > UINT64_MAX / 4)
		estimated_bytes = UINT64_MAX / 4;

	/* records and their offsets, and one chunk for what the last ones leave unused */
	estimated_bytes += estimated_rows * sizeof(uint32_t);
	chunks = estimated_bytes / GPUSORT_CHUNK_BYTES + 1;
	share.need = GPUSORT_STAGING_BYTES + gpusort_work_bytes(0, 0);
	share.estimate = GPUSORT_STAGING_BYTES + gpusort_work_bytes(estimated_rows, chunks) +
		chunks * GPUSORT_CHUNK_BYTES;
	return share;
}

/* Bytes of a slab's that no chunk has taken. */
static size_t
slab_left(const GpuSortSlab *slab)
{
	return slab->block.bytes - slab->used;
}

static uint32_t
reserves_held(const GpuSort *sort)
{
	uint64_t	held = 0;

	for (uint32_t i = 0; i < sort->slab_count; i++)
		held += slab_left(&sort->slabs[i]) / GPUSORT_CHUNK_BYTES;
	return (uint32_t) held;
}

/* The share of a sort with so much work memory, and new_slab bytes more of slabs. */
static GpuSortShare
share_with(const GpuSort *sort, uint64_t work_bytes, uint64_t new_slab)
{
	GpuSortShare share = sort->share;

	share.need = GPUSORT_STAGING_BYTES + work_bytes + new_slab;
	for (uint32_t i = 0; i < sort->slab_count; i++)
		share.need += sort->slabs[i].block.bytes;
	return share;
}

/* Work memory for the rows put and for as many as `reserves` more chunks can hold. */
static uint64_t
worst_work_bytes(const GpuSort *sort, uint32_t reserves)
{
	return gpusort_work_bytes(sort->rows + (uint64_t) reserves * gpusort_chunk_rows_max(sort->key_words),
							  (uint64_t) sort->chunk_count + reserves);
}

/* A slab as large as all before it, within bounds, and large enough for what is expected at once. */
static size_t
next_slab_size(const GpuSort *sort)
{
	uint64_t	wanted = GPUSORT_SLAB_MIN;
	uint64_t	before = 0;
	size_t		size = GPUSORT_SLAB_MIN;

	for (uint32_t i = 0; i < sort->slab_count; i++)
		before += sort->slabs[i].block.bytes;
	if (sort->slab_count > 0)
		wanted = before;
	else if (sort->share.estimate > sort->share.need)
		wanted = sort->share.estimate - sort->share.need;
	while (size < wanted && size < GPUSORT_SLAB_MAX)
		size *= 2;
	return size;
}

/* Makes an array of count items of item_bytes hold one more. */
static int
grow(void **array, uint32_t count, uint32_t *size, size_t item_bytes, GpuSortError *error)
{
	uint32_t	larger = *size > 0 ? 2 * *size : 64;
	void	   *moved;

	if (count < *size)
		return 0;
	moved = realloc(*array, larger * item_bytes);
	if (moved == NULL)
		return gpusort_fail(error, GPUSORT_REASON_NO_MEMORY, "out of memory");
	*array = moved;
	*size = larger;
	return 0;
}

int
gpusort_cuda_reserve(GpuSort *sort, GpuSortError *error)
{
	const uint64_t worst_rows = sort->rows +
		(uint64_t) (sort->reserved + 1) * gpusort_chunk_rows_max(sort->key_words);
	size_t		slab_bytes = 0;
	GpuSortShare before = sort->share;
	GpuSortBlock block;

	if (gpusort_check_cancel(sort, error) != 0 || gpusort_device_use(sort->device, error) != 0)
		return -1;
	if (worst_rows > GPUSORT_CUDA_MAX_ROWS ||
		(uint64_t) sort->chunk_count + sort->reserved + 1 > GPUSORT_REF_MAX_CHUNKS)
		return gpusort_fail(error, GPUSORT_REASON_TOO_MANY_ROWS, "a sort takes at most %u rows in %u chunks",
							GPUSORT_CUDA_MAX_ROWS, GPUSORT_REF_MAX_CHUNKS);

	/* Take a smaller slab than is due rather than none. */
	if (reserves_held(sort) < sort->reserved + 1)
		slab_bytes = next_slab_size(sort);
	while (gpusort_memory_promise(sort->device, &sort->share,
								  share_with(sort, worst_work_bytes(sort, sort->reserved + 1), slab_bytes),
								  error) != 0)
	{
		if (slab_bytes <= GPUSORT_CHUNK_BYTES)
			return -1;
		slab_bytes /= 2;
	}

	if (slab_bytes > 0)
	{
		if (grow((void **) &sort->slabs, sort->slab_count, &sort->slabs_size, sizeof(GpuSortSlab), error) != 0 ||
			gpusort_block_take(sort->device, slab_bytes, &block, error) != 0)
		{
			GpuSortError ignored;

			/* Giving back what was just promised cannot fail. */
			(void) gpusort_memory_promise(sort->device, &sort->share, before, &ignored);
			return -1;
		}
		sort->slabs[sort->slab_count].block = block;
		sort->slabs[sort->slab_count].used = 0;
		sort->slab_count++;
	}
	sort->reserved++;
	return 0;
}

int
gpusort_cuda_put(GpuSort *sort, const void *chunk, uint32_t rows, uint32_t bytes, GpuSortError *error)
{
	GpuSortCudaDevice *device = sort->device;
	GpuSortLane *lane = sort->lane;
	const size_t offsets_at = gpusort_chunk_offsets_at(bytes);
	const size_t length = offsets_at + (size_t) rows * sizeof(uint32_t);
	GpuSortSlab *slab = sort->slabs;
	GpuSortDeviceChunk *placed;
	char	   *base;
	uint32_t	blocks;

	if (gpusort_check_cancel(sort, error) != 0 || gpusort_device_use(device, error) != 0)
		return -1;
	if (sort->reserved == 0)
		return gpusort_fail(error, GPUSORT_REASON_INTERNAL, "a chunk was put without a reserve");
	if (!gpusort_chunk_shape_ok(rows, bytes, sort->key_words))
		return gpusort_fail(error, GPUSORT_REASON_BAD_CHUNK,
							"a chunk cannot hold %u rows with keys of %u words in %u bytes",
							rows, sort->key_words, bytes);
	if (rows == 0)
	{
		sort->reserved--;
		return 0;
	}
	if (grow((void **) &sort->chunks, sort->chunk_count, &sort->chunks_size, sizeof(GpuSortDeviceChunk), error) != 0)
		return -1;

	/* Some slab has room: the reserve saw to that. */
	while (slab_left(slab) < length)
		slab++;
	base = (char *) slab->block.base + slab->used;

	placed = &sort->chunks[sort->chunk_count];
	placed->base = (uint64_t) (uintptr_t) base;
	placed->bytes = bytes;
	placed->rows = rows;
	placed->first_row = (uint32_t) sort->rows;
	placed->unused = 0;

	GPUSORT_CUDA(device, error, cudaMemcpyAsync(base, chunk, offsets_at, cudaMemcpyHostToDevice, lane->copies));
	GPUSORT_CUDA(device, error, cudaMemcpyAsync(base + offsets_at, gpusort_chunk_offset((void *) chunk, rows - 1),
												rows * sizeof(uint32_t), cudaMemcpyHostToDevice, lane->copies));
	GPUSORT_CUDA(device, error, cudaEventRecord(lane->uploaded, lane->copies));
	GPUSORT_CUDA(device, error, cudaStreamWaitEvent(lane->compute, lane->uploaded, 0));

	blocks = (rows + GPUSORT_THREADS - 1) / GPUSORT_THREADS;
	if (blocks > GPUSORT_INSPECT_BLOCKS)
		blocks = GPUSORT_INSPECT_BLOCKS;
	GPUSORT_LAUNCH(device, error, inspect_chunk, blocks, GPUSORT_THREADS, lane->compute,
				   base, rows, bytes, sort->key_words, lane->state);

	slab->used += (length + GPUSORT_CHUNK_ALIGN - 1) / GPUSORT_CHUNK_ALIGN * GPUSORT_CHUNK_ALIGN;
	sort->chunk_count++;
	sort->rows += rows;
	sort->reserved--;

	/* In place of the worst case, what it was.  Less is needed, so it cannot fail. */
	if (gpusort_memory_promise(device, &sort->share,
							   share_with(sort, worst_work_bytes(sort, sort->reserved), 0), error) != 0)
		return -1;

	return gpusort_wait(device, lane->uploaded, error);
}

int
gpusort_promise_work(GpuSort *sort, uint64_t work_bytes, GpuSortError *error)
{
	GpuSortShare share = share_with(sort, work_bytes, 0);

	sort->reserved = 0;
	share.estimate = 0;
	return gpusort_memory_promise(sort->device, &sort->share, share, error);
}
