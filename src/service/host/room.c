/*-------------------------------------------------------------------------
 *
 * room.c
 *	  The memory of a sort in the host engine.
 *
 * Legal order of calls: (reserve, take)*, close, sorted, free; free at any time.
 *
 * A reserve is for a chunk of GPUSORT_CHUNK_BYTES and of the rows it names, and
 * both charges and maps what these take at most; take, by put, then corrects the
 * charge to what the chunk did take.  What is mapped is not touched, so it costs
 * no memory yet.  (Work space is not charged: a row takes a hundredth of a byte.)
 *
 *	Slabs hold what is kept of chunks: records, then an entry per row.  Chunks fill
 *	a slab from its end downwards.  Extents are taken downwards too (memory.c), so
 *	a slab that has become too small mostly grows at its start, and no room is
 *	lost between chunks; where it cannot, the sort gets another one.
 *
 *	One more extent has the elements, twice, and the work space of sort.c and
 *	order.c, for all rows that were put or reserved.  Nothing is in it before the
 *	sort, so it is not grown but replaced by a larger one.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include "service/errors.h"
#include "service/host/order.h"
#include "service/host/room.h"
#include "service/host/sort.h"

/* Slabs get larger with the sort, but not by more than this at once. */
#define SLAB_STEP_MAX ((size_t) 32 << 20)

/* Rows may be read this far past their end (rows.c). */
#define RECORDS_SLACK 64

/* Elements in a page, of which both halves of the extent are a multiple. */
#define PAGE_ELEMENTS (GPUSORT_HOST_PAGE_BYTES / sizeof(GpuSortElement))

static size_t
whole_pages(size_t bytes)
{
	return (bytes + GPUSORT_HOST_PAGE_BYTES - 1) / GPUSORT_HOST_PAGE_BYTES * GPUSORT_HOST_PAGE_BYTES;
}

/* Bytes of the records of a chunk, of so many bytes, with the room behind them. */
static size_t
records_bytes(size_t bytes)
{
	return GPUSORT_ALIGN8(bytes) + RECORDS_SLACK;
}

/* Bytes of a slab that a chunk of so many rows takes. */
static size_t
chunk_bytes(const GpuSort *sort, size_t bytes, uint32_t rows)
{
	return whole_pages(records_bytes(bytes) + rows * sort->entry_words * sizeof(uint64_t));
}

/* Bytes charged for a reserve. */
static uint64_t
reserve_bytes(const GpuSort *sort, uint32_t rows_max)
{
	return chunk_bytes(sort, GPUSORT_CHUNK_BYTES, rows_max) + rows_max * 2 * sizeof(GpuSortElement);
}

/* The bytes that a sort takes at least, to sort anything: a reserve for one row. */
uint64_t
gpusort_host_least_bytes(const GpuSort *sort)
{
	return reserve_bytes(sort, 1);
}

/* The bytes that a row takes besides its record. */
uint64_t
gpusort_host_bytes_per_row(const GpuSort *sort)
{
	return sort->entry_words * sizeof(uint64_t) + 2 * sizeof(GpuSortElement);
}

static void
discharge(GpuSort *sort, uint64_t bytes)
{
	gpusort_host_memory_discharge(sort->memory, bytes, sort->charged);
	sort->charged -= bytes;
}

/*
 * Slabs
 */

static size_t
slab_left(const GpuSortHostSlab *slab)
{
	return slab->bytes - slab->used - slab->promised;
}

/* Gives back what is left of a slab that gets no more reserves, if none is to be used up yet. */
static void
trim_slab(GpuSort *sort, GpuSortHostSlab *slab)
{
	if (slab->promised > 0 || slab->used == slab->bytes)
		return;
	gpusort_host_memory_put(sort->memory, slab->start, slab->bytes - slab->used);
	slab->start += slab->bytes - slab->used;
	slab->bytes = slab->used;
}

/* Makes an array of count items hold one more. */
static int
grow(void **array, uint32_t count, uint32_t *room, size_t item_bytes, GpuSortError *error)
{
	uint32_t larger = *room > 0 ? *room * 2 : 16;
	void *moved;

	if (count < *room)
		return 0;
	moved = realloc(*array, larger * item_bytes);
	if (moved == NULL)
		return gpusort_error_memory(error);
	*array = moved;
	*room = larger;
	return 0;
}

/* Makes the last slab one that has need bytes left. */
static int
make_slab(GpuSort *sort, size_t need, GpuSortError *error)
{
	GpuSortHostSlab *last;
	size_t bytes = 0;
	char *start;

	if (grow((void **) &sort->slabs, sort->nslabs, &sort->slabs_room, sizeof(GpuSortHostSlab), error) != 0)
		return -1;
	last = sort->nslabs > 0 ? &sort->slabs[sort->nslabs - 1] : NULL;
	if (last != NULL && slab_left(last) >= need)
		return 0;

	/* As much as there is already, within bounds; but rather less than that than nothing. */
	for (uint32_t i = 0; i < sort->nslabs && bytes < SLAB_STEP_MAX; i++)
		bytes += sort->slabs[i].bytes;
	bytes = bytes < SLAB_STEP_MAX ? bytes : SLAB_STEP_MAX;
	bytes = bytes > need ? bytes : need;
	start = gpusort_host_memory_get(sort->memory, bytes, error);
	if (start == NULL && bytes > need)
	{
		bytes = need;
		start = gpusort_host_memory_get(sort->memory, bytes, error);
	}
	if (start == NULL)
		return -1;

	if (last != NULL && start + bytes == last->start)
	{
		last->start = start;
		last->bytes += bytes;
		return 0;
	}
	if (last != NULL)
		trim_slab(sort, last);
	sort->slabs[sort->nslabs++] = (GpuSortHostSlab){.start = start, .bytes = bytes};
	return 0;
}

/*
 * Elements and work space
 */

/* Bytes of the work space for so many rows. */
static size_t
work_bytes(const GpuSort *sort, uint64_t rows)
{
	return whole_pages(GPUSORT_ALIGN8(gpusort_host_histogram_bytes(sort, rows)) +
					   gpusort_host_block_starts(rows) * sizeof(size_t) +
					   gpusort_host_long_runs(sort, rows) * sizeof(GpuSortHostRun));
}

/* Gives back all elements, and the work space; nothing is in them. */
static void
free_elements(GpuSort *sort)
{
	if (sort->elements != NULL)
		gpusort_host_memory_put(sort->memory, sort->elements, sort->rows_room * sizeof(GpuSortElement));
	if (sort->other != NULL)
	{
		gpusort_host_memory_put(sort->memory, sort->other, sort->rows_room * sizeof(GpuSortElement));
		gpusort_host_memory_put(sort->memory, sort->histograms, sort->work_bytes);
	}
	sort->elements = sort->other = NULL;
	sort->rows_room = 0;
}

/* Makes elements and work space be there for so many rows. */
static int
replace_elements(GpuSort *sort, uint64_t rows, GpuSortError *error)
{
	uint64_t room = (rows + PAGE_ELEMENTS - 1) / PAGE_ELEMENTS * PAGE_ELEMENTS;
	size_t work = work_bytes(sort, room);
	GpuSortElement *elements = gpusort_host_memory_get(sort->memory, 2 * room * sizeof(GpuSortElement) + work, error);

	if (elements == NULL)
		return -1;
	free_elements(sort);
	sort->elements = elements;
	sort->other = elements + room;
	sort->rows_room = room;
	sort->work_bytes = work;
	sort->histograms = elements + 2 * room;
	sort->block_starts = (size_t *) ((char *) sort->histograms + GPUSORT_ALIGN8(gpusort_host_histogram_bytes(sort, room)));
	sort->long_runs = (GpuSortHostRun *) (sort->block_starts + gpusort_host_block_starts(room));
	return 0;
}

static int
make_elements(GpuSort *sort, uint64_t rows, GpuSortError *error)
{
	uint64_t larger = sort->rows_room + sort->rows_room / 2;

	if (rows <= sort->rows_room || (larger > rows && replace_elements(sort, larger, error) == 0))
		return 0;
	return replace_elements(sort, rows, error);
}

/*
 * Reserves
 */

/* GpuSortEngineOps.reserve, while rows are put. */
int
gpusort_host_room_reserve(GpuSort *sort, uint32_t rows_max, GpuSortError *error)
{
	uint64_t rows = sort->rows + sort->rows_reserved + rows_max;
	size_t slab_bytes = chunk_bytes(sort, GPUSORT_CHUNK_BYTES, rows_max);

	if (rows > GPUSORT_MAX_ROWS || sort->nchunks + sort->nreserves + 1 > GPUSORT_HOST_REF_CHUNKS_MAX)
		return gpusort_error_rows(error);
	if (gpusort_host_memory_charge(sort->memory, reserve_bytes(sort, rows_max), sort->charged, error) != 0)
		return -1;
	sort->charged += reserve_bytes(sort, rows_max);

	/* What is found to be there of these stays for a reserve of fewer rows. */
	if (grow((void **) &sort->reserves, sort->nreserves, &sort->reserves_room, sizeof(GpuSortHostReserve), error) != 0 ||
		grow((void **) &sort->chunks, sort->nchunks + sort->nreserves, &sort->chunks_room, sizeof(GpuSortHostChunk),
			 error) != 0 ||
		make_elements(sort, rows, error) != 0 || make_slab(sort, slab_bytes, error) != 0)
	{
		discharge(sort, reserve_bytes(sort, rows_max));
		return -1;
	}
	sort->slabs[sort->nslabs - 1].promised += slab_bytes;
	sort->reserves[sort->nreserves++] = (GpuSortHostReserve){.rows_max = rows_max, .slab = sort->nslabs - 1};
	sort->rows_reserved += rows_max;
	return 0;
}

/*
 * Uses up a reserve of rows_max rows for a chunk of so many rows,
 * rows_max or fewer, and bytes of records:
 * says where in *chunk they go.  false: there is no such reserve.
 */
bool
gpusort_host_room_take(GpuSort *sort, uint32_t rows_max, uint32_t rows, uint32_t bytes, GpuSortHostChunk *chunk)
{
	size_t taken = rows > 0 ? chunk_bytes(sort, bytes, rows) : 0;
	GpuSortHostSlab *slab;
	uint32_t i = 0;

	while (i < sort->nreserves && sort->reserves[i].rows_max != rows_max)
		i++;
	if (i == sort->nreserves)
		return false;
	slab = &sort->slabs[sort->reserves[i].slab];
	memmove(&sort->reserves[i], &sort->reserves[i + 1], (--sort->nreserves - i) * sizeof(GpuSortHostReserve));
	sort->rows_reserved -= rows_max;

	slab->promised -= chunk_bytes(sort, GPUSORT_CHUNK_BYTES, rows_max);
	slab->used += taken;
	chunk->records = slab->start + slab->bytes - slab->used;
	chunk->entries = (uint64_t *) (chunk->records + records_bytes(bytes));
	if (slab != &sort->slabs[sort->nslabs - 1])
		trim_slab(sort, slab);
	discharge(sort, reserve_bytes(sort, rows_max) - taken - rows * 2 * sizeof(GpuSortElement));
	return true;
}

/* No chunk comes any more: gives back what was kept for more than the rows there are. */
void
gpusort_host_room_close(GpuSort *sort)
{
	uint64_t room = (sort->rows + PAGE_ELEMENTS - 1) / PAGE_ELEMENTS * PAGE_ELEMENTS;
	size_t left = (sort->rows_room - room) * sizeof(GpuSortElement);

	for (uint32_t i = 0; i < sort->nreserves; i++)
		discharge(sort, reserve_bytes(sort, sort->reserves[i].rows_max));
	sort->nreserves = 0;
	sort->rows_reserved = 0;
	for (uint32_t i = 0; i < sort->nslabs; i++)
	{
		sort->slabs[i].promised = 0;
		trim_slab(sort, &sort->slabs[i]);
	}
	if (left == 0)
		return;
	gpusort_host_memory_put(sort->memory, sort->elements + room, left);
	gpusort_host_memory_put(sort->memory, sort->other + room, left);
	sort->rows_room = room;
}

/* Gives back what only sorting needs: the second array of elements, those that are not emitted, the work space. */
void
gpusort_host_room_sorted(GpuSort *sort)
{
	uint64_t room = (sort->rows_out + PAGE_ELEMENTS - 1) / PAGE_ELEMENTS * PAGE_ELEMENTS;
	size_t left = (sort->rows_room - room) * sizeof(GpuSortElement);

	if (sort->other == NULL)
		return;
	gpusort_host_memory_put(sort->memory, sort->other, sort->rows_room * sizeof(GpuSortElement));
	gpusort_host_memory_put(sort->memory, sort->histograms, sort->work_bytes);
	sort->other = NULL;
	discharge(sort, (2 * sort->rows - sort->rows_out) * sizeof(GpuSortElement));
	if (left == 0)
		return;
	gpusort_host_memory_put(sort->memory, sort->elements + room, left);
	sort->rows_room = room;
}

/* Gives back everything. */
void
gpusort_host_room_free(GpuSort *sort)
{
	for (uint32_t i = 0; i < sort->nslabs; i++)
	{
		sort->slabs[i].promised = 0;
		if (sort->slabs[i].bytes > 0)
			gpusort_host_memory_put(sort->memory, sort->slabs[i].start, sort->slabs[i].bytes);
	}
	free_elements(sort);
	discharge(sort, sort->charged);
	free(sort->slabs);
	free(sort->reserves);
	free(sort->chunks);
}
