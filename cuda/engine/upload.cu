/*-------------------------------------------------------------------------
 *
 * upload.cu
 *	  Ingest of chunks; see upload.h.
 *
 * A chunk's records and offsets go to the device as they are, packed densely
 * into slabs, and stay there: everything later works on them in place.  The
 * unused middle of a chunk is not copied.
 *
 * As soon as a chunk has arrived, a kernel checks every offset and length in it
 * and gathers statistics of its keys (key_stats.h).  The chunk's memory is the
 * caller's again once the copy is through; the kernel is not waited for.
 *
 * RESERVES
 *	reserve is the only place that asks for memory while rows come in, so put
 *	never fails for want of it.  A reserve holds a whole chunk's room in a slab
 *	and work memory for its rows_max rows, both on one device; put then gives
 *	back what its chunk did not take.
 *
 *	Slabs with f bytes free have room for f / GPUSORT_CHUNK_BYTES reserves.  A put
 *	goes into the first slab where it fits, and takes the room of one reserve at
 *	most, its own.
 *
 *	The shards of a sort take turns.  One that is full is passed over; when all are,
 *	the sort gets another one, if it may.
 *
 *-------------------------------------------------------------------------
 */
#include "engine/upload.h"

#include <stdlib.h>
#include <string.h>

#include "engine/check.h"
#include "engine/device.h"
#include "engine/reservation.h"
#include "engine/shard.h"

/* Slabs of the smallest size take two chunks; then they double. */
#define GPUSORT_SLAB_MIN (2 * GPUSORT_CHUNK_BYTES)
#define GPUSORT_SLAB_MAX (64 * GPUSORT_CHUNK_BYTES)

/* Chunks start at multiples of this, which divides GPUSORT_CHUNK_BYTES. */
#define GPUSORT_CHUNK_ALIGN 256

/* Bytes of a slab's that no chunk has taken. */
static size_t
slab_left(const GpuSortSlab *slab)
{
	return slab->block.bytes - slab->used;
}

static uint32_t
reserves_held(const GpuSortShard *shard)
{
	uint64_t held = 0;

	for (uint32_t i = 0; i < shard->slab_count; i++)
		held += slab_left(&shard->slabs[i]) / GPUSORT_CHUNK_BYTES;
	return (uint32_t) held;
}

/* The reservation of a shard with so many bytes of work memory, and new_slab bytes more of slabs. */
static GpuSortDeviceReservation
reservation_with(const GpuSortShard *shard, uint64_t work_bytes, uint64_t new_slab)
{
	GpuSortDeviceReservation reservation = shard->reservation;

	reservation.need = GPUSORT_STAGING_BYTES + shard->redistribution_block.bytes + work_bytes + new_slab;
	for (uint32_t i = 0; i < shard->slab_count; i++)
		reservation.need += shard->slabs[i].block.bytes;
	return reservation;
}

/* Work memory for the rows put, those reserved, and so many more in so many more chunks. */
static uint64_t
worst_work_bytes(const GpuSortShard *shard, uint32_t rows, uint32_t chunks)
{
	return gpusort_work_bytes(shard->sort->set, shard->rows_put + shard->rows_reserved + rows,
							  (uint64_t) shard->sort->chunk_count + shard->chunks_reserved + chunks);
}

/* A slab as large as all before it, within bounds, and large enough for what is expected at once. */
static size_t
next_slab_size(const GpuSortShard *shard)
{
	uint64_t wanted = GPUSORT_SLAB_MIN;
	uint64_t before = 0;
	size_t size = GPUSORT_SLAB_MIN;

	for (uint32_t i = 0; i < shard->slab_count; i++)
		before += shard->slabs[i].block.bytes;
	if (shard->slab_count > 0)
		wanted = before;
	else if (shard->reservation.estimate > shard->reservation.need)
		wanted = shard->reservation.estimate - shard->reservation.need;
	while (size < wanted && size < GPUSORT_SLAB_MAX)
		size *= 2;
	return size;
}

/* Makes an array of count items of item_bytes hold one more. */
static int
grow(void **array, uint32_t count, uint32_t *size, size_t item_bytes, GpuSortError *error)
{
	uint32_t larger = *size > 0 ? 2 * *size : 64;
	void *moved;

	if (count < *size)
		return 0;
	moved = realloc(*array, larger * item_bytes);
	if (moved == NULL)
		return gpusort_fail(error, GPUSORT_REASON_NO_MEMORY, "out of memory");
	*array = moved;
	*size = larger;
	return 0;
}

static int
reserve_on(GpuSortShard *shard, uint32_t rows_max, GpuSortError *error)
{
	GpuSort *sort = shard->sort;
	size_t slab_bytes = 0;
	uint64_t work_bytes;
	uint64_t room;
	GpuSortDeviceReservation before;
	GpuSortBlock block;

	if (gpusort_device_use(shard->device, error) != 0)
		return -1;

	if (sort->spill)
		gpusort_memory_yield(shard->device, &shard->reservation);
	if (reserves_held(shard) < shard->chunks_reserved + 1)
		slab_bytes = next_slab_size(shard);
	work_bytes = worst_work_bytes(shard, rows_max, 1);
	before = shard->reservation;

	/* A smaller slab than is due, if that fits; a sort is starved if not even the smallest does. */
	room = gpusort_memory_room(shard->device, &shard->reservation);
	while (slab_bytes > GPUSORT_CHUNK_BYTES && reservation_with(shard, work_bytes, slab_bytes).need > room)
		slab_bytes /= 2;
	while (gpusort_memory_reserve(shard->device, &shard->reservation,
								  reservation_with(shard, work_bytes, slab_bytes), error) != 0)
	{
		if (slab_bytes <= GPUSORT_CHUNK_BYTES)
			return -1;
		slab_bytes /= 2;
	}

	if (slab_bytes > 0)
	{
		if (grow((void **) &shard->slabs, shard->slab_count, &shard->slabs_size, sizeof(GpuSortSlab), error) != 0 ||
			gpusort_block_acquire(shard->device, slab_bytes, &block, error) != 0)
		{
			GpuSortError ignored;

			/* Giving back what was just reserved cannot fail. */
			(void) gpusort_memory_reserve(shard->device, &shard->reservation, before, &ignored);
			return -1;
		}
		shard->slabs[shard->slab_count].block = block;
		shard->slabs[shard->slab_count].used = 0;
		shard->slab_count++;
	}
	shard->chunks_reserved++;
	shard->rows_reserved += rows_max;
	sort->reserves[sort->reserve_count].rows_max = rows_max;
	sort->reserves[sort->reserve_count].shard = (uint32_t) (shard - sort->shards);
	sort->reserve_count++;
	return 0;
}

/* Takes the oldest reserve of so many rows off the list; returns its shard, or NULL. */
static GpuSortShard *
use_reserve(GpuSort *sort, uint32_t rows_max)
{
	GpuSortShard *shard;
	uint32_t i = 0;

	while (i < sort->reserve_count && sort->reserves[i].rows_max != rows_max)
		i++;
	if (i == sort->reserve_count)
		return NULL;
	shard = &sort->shards[sort->reserves[i].shard];
	sort->reserve_count--;
	memmove(&sort->reserves[i], &sort->reserves[i + 1], (sort->reserve_count - i) * sizeof(GpuSortChunkReserve));
	shard->chunks_reserved--;
	shard->rows_reserved -= rows_max;
	return shard;
}

/* The key of a chunk's row, or NULL if its offset is out of bounds. */
static const uint64_t *
key_in_chunk(const void *chunk, uint32_t row, uint32_t bytes, uint32_t key_words)
{
	uint32_t offset = __atomic_load_n(gpusort_chunk_offset((void *) chunk, row), __ATOMIC_RELAXED);

	if (!gpusort_record_readable(offset, bytes, key_words))
		return NULL;
	return (const uint64_t *) ((const char *) chunk + offset);
}

/* Compares a chunk's first key with the last one of the chunk before it: no kernel sees both. */
static void
note_boundary(GpuSort *sort, const void *chunk, uint32_t rows, uint32_t bytes)
{
	const uint64_t *first = key_in_chunk(chunk, 0, bytes, sort->key_words);
	const uint64_t *last = key_in_chunk(chunk, rows - 1, bytes, sort->key_words);

	if (sort->last_key_known && first != NULL)
		gpusort_key_stats_pair(&sort->boundary_stats, sort->last_key, first, sort->key_words);
	sort->last_key_known = last != NULL;
	if (last != NULL)
		memcpy(sort->last_key, last, sort->key_words * sizeof(uint64_t));
}

int
gpusort_cuda_reserve(GpuSort *sort, uint32_t rows_max, GpuSortError *error)
{
	uint64_t rows = sort->rows + rows_max;
	GpuSortError other;

	for (uint32_t p = 0; p < sort->shard_count; p++)
		rows += sort->shards[p].rows_reserved;
	if (gpusort_check_cancel(sort, error) != 0)
		return -1;
	if (rows > GPUSORT_CUDA_MAX_ROWS || sort->chunk_count + sort->reserve_count + 1 > GPUSORT_REF_MAX_CHUNKS)
		return gpusort_fail(error, GPUSORT_REASON_TOO_MANY_ROWS, "a sort takes at most %u rows in %u chunks",
							GPUSORT_CUDA_MAX_ROWS, GPUSORT_REF_MAX_CHUNKS);
	if (grow((void **) &sort->reserves, sort->reserve_count, &sort->reserves_size, sizeof(GpuSortChunkReserve),
			 error) != 0 ||
		grow((void **) &sort->chunks, sort->chunk_count + sort->reserve_count, &sort->chunks_size,
			 sizeof(GpuSortDeviceChunk), error) != 0)
		return -1;

	for (uint32_t i = 0; i < sort->shard_count; i++)
	{
		uint32_t p = (sort->reserve_turn + i) % sort->shard_count;

		if (reserve_on(&sort->shards[p], rows_max, error) == 0)
		{
			sort->reserve_turn = p + 1;
			return 0;
		}
		if (!gpusort_lacks_memory(error))
			return -1;
	}

	/* All are full, and the last one's error says so, whatever becomes of others. */
	while (gpusort_shard_add(sort, &other) == 0)
	{
		if (reserve_on(&sort->shards[sort->shard_count - 1], rows_max, &other) == 0)
		{
			sort->reserve_turn = 0;
			return 0;
		}
	}
	return -1;
}

int
gpusort_cuda_put(GpuSort *sort, const void *chunk, uint32_t rows, uint32_t bytes, uint32_t rows_max,
				 GpuSortError *error)
{
	const size_t offsets_at = gpusort_chunk_offsets_at(bytes);
	const size_t length = offsets_at + (size_t) rows * sizeof(uint32_t);
	GpuSortShard *shard;
	GpuSortCudaDevice *device;
	GpuSortLane *lane;
	GpuSortSlab *slab;
	GpuSortDeviceChunk *placed;
	char *base;

	if (gpusort_check_cancel(sort, error) != 0)
		return -1;
	if (rows > rows_max || !gpusort_chunk_shape_ok(rows, bytes, sort->key_words))
		return gpusort_fail(error, GPUSORT_REASON_BAD_CHUNK,
							"a chunk for %u rows cannot hold %u rows with keys of %u words in %u bytes",
							rows_max, rows, sort->key_words, bytes);
	shard = use_reserve(sort, rows_max);
	if (shard == NULL)
		return gpusort_fail(error, GPUSORT_REASON_INTERNAL, "a chunk was put without a reserve");
	device = shard->device;
	lane = shard->lane;
	slab = shard->slabs;
	if (gpusort_device_use(device, error) != 0)
		return -1;
	if (rows == 0)
		return 0;

	/* Some slab has room: the reserve saw to that. */
	while (slab_left(slab) < length)
		slab++;
	base = (char *) slab->block.base + slab->used;

	placed = &sort->chunks[sort->chunk_count];
	placed->base = (uint64_t) (uintptr_t) base;
	placed->bytes = bytes;
	placed->rows = rows;
	placed->first_row = (uint32_t) sort->rows;
	placed->shard = (uint32_t) (shard - sort->shards);

	GPUSORT_CUDA(device, error, cudaMemcpyAsync(base, chunk, offsets_at, cudaMemcpyHostToDevice, lane->copies));
	GPUSORT_CUDA(device, error,
				 cudaMemcpyAsync(base + offsets_at, gpusort_chunk_offset((void *) chunk, rows - 1),
								 rows * sizeof(uint32_t), cudaMemcpyHostToDevice, lane->copies));
	GPUSORT_CUDA(device, error, cudaEventRecord(lane->uploaded, lane->copies));
	GPUSORT_CUDA(device, error, cudaStreamWaitEvent(lane->compute, lane->uploaded, 0));

	GPUSORT_CUDA(device, error,
				 (cudaError_t) gpusort_key_stats_chunk(placed, sort->key_words, &lane->state->keys,
													   &lane->state->bad_rows, (GpuSortStream) lane->compute));
	note_boundary(sort, chunk, rows, bytes);

	slab->used += (length + GPUSORT_CHUNK_ALIGN - 1) / GPUSORT_CHUNK_ALIGN * GPUSORT_CHUNK_ALIGN;
	sort->chunk_count++;
	sort->rows += rows;
	shard->rows_put += rows;

	/* In place of the worst case, what it was.  Less is needed, so it cannot fail. */
	if (gpusort_memory_reserve(device, &shard->reservation,
							   reservation_with(shard, worst_work_bytes(shard, 0, 0), 0), error) != 0)
		return -1;

	return gpusort_wait(device, lane->uploaded, error);
}

int
gpusort_reserve_work(GpuSortShard *shard, uint64_t work_bytes, GpuSortError *error)
{
	GpuSortDeviceReservation reservation = reservation_with(shard, work_bytes, 0);

	shard->chunks_reserved = 0;
	shard->rows_reserved = 0;
	reservation.estimate = 0;
	return gpusort_memory_reserve_last(shard->device, &shard->reservation, reservation, error);
}
