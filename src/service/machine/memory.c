/*-------------------------------------------------------------------------
 *
 * memory.c
 *	  Memory of the host engine.
 *
 * Two things that are kept apart on purpose:
 *
 *	The account (charge, discharge) is what gpusort.host_memory limits.  A sort
 *	charges before it takes, and charges the worst case first, so that a sort
 *	that was let in can be finished.  Who may have how much of it memory_share.h
 *	says; what a sort is charged for the sort itself knows, and tells with each call.
 *
 *	Extents (get, put) are the memory itself: whole pages of large mappings.  A
 *	page touched for the first time costs many times what copying into it costs,
 *	most of all on a virtual machine, so extents come back to a list of free ones
 *	and stay mapped, until gpusort_host_memory_age finds that they were not needed
 *	for a while.  The list is in order of address and neighbours are joined.  The
 *	kernel maps from high addresses to low ones; taking from the high end of the
 *	list therefore prefers what was in use before over what is fresh.
 *
 *	What is free may be too scattered for who wants it in one piece.  It is then
 *	moved together: pages keep what they are, and only get other addresses.  That
 *	goes block by block of a huge page's size and alignment, as are all mappings
 *	and what is unmapped of them: so no block is of two mappings, which the
 *	kernel would not move at once, and it moves a block by one entry of its tables.
 *
 * Every function may be called from any thread.
 * What get returns belongs to the caller until it is put back,
 * whole or page by page; destroy unmaps only what was put back.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "service/machine/memory.h"
#include "service/memory_share.h"

#define HUGE_BYTES    ((size_t) 2 << 20)
#define MAPPING_BYTES ((size_t) 32 << 20)

/* A huge page that is free comes in less: zeroing it takes a tenth of that. */
#define HUGE_PAGE_MS 2

#define ROUND_UP(n, unit) (((n) + (unit) -1) / (unit) * (unit))

/* The first and the last border of huge pages at an address or beyond it. */
#define HUGE_UP(address)   ((char *) ROUND_UP((uintptr_t) (address), HUGE_BYTES))
#define HUGE_DOWN(address) ((char *) ((uintptr_t) (address) / HUGE_BYTES * HUGE_BYTES))

typedef struct Extent
{
	char *start;
	size_t bytes;
} Extent;

struct GpuSortHostMemory
{
	pthread_mutex_t lock;

	GpuSortMemoryShare share; /* the account */

	/* free extents, by rising address */
	Extent *extents;
	size_t count;
	size_t room;
	uint64_t cached; /* bytes in them */
	uint64_t mapped; /* bytes in all mappings, free or not */
	uint64_t peak;   /* the most bytes in use since the last age */
	bool huge_pages; /* they came soon when they were last asked for; asked again after each age */
};

/* Memory of which sorts may take limit bytes, none of it mapped yet; NULL if the system has none. */
GpuSortHostMemory *
gpusort_host_memory_create(uint64_t limit)
{
	GpuSortHostMemory *memory = calloc(1, sizeof(GpuSortHostMemory));

	if (memory == NULL)
		return NULL;
	pthread_mutex_init(&memory->lock, NULL);
	memory->share.limit = limit;
	memory->huge_pages = true;
	return memory;
}

/* Unmaps what is free; everything should be. */
void
gpusort_host_memory_destroy(GpuSortHostMemory *memory)
{
	for (size_t i = 0; i < memory->count; i++)
		munmap(memory->extents[i].start, memory->extents[i].bytes);
	free(memory->extents);
	pthread_mutex_destroy(&memory->lock);
	free(memory);
}

/* Bytes that sorts may be charged for. */
uint64_t
gpusort_host_memory_limit(GpuSortHostMemory *memory)
{
	return memory->share.limit;
}

/* Bytes that sorts are charged for. */
uint64_t
gpusort_host_memory_used(GpuSortHostMemory *memory)
{
	uint64_t used;

	pthread_mutex_lock(&memory->lock);
	used = memory->share.used;
	pthread_mutex_unlock(&memory->lock);
	return used;
}

/* A sort is there that will be charged, or is to be. */
void
gpusort_host_memory_begin(GpuSortHostMemory *memory)
{
	pthread_mutex_lock(&memory->lock);
	memory->share.sorts++;
	pthread_mutex_unlock(&memory->lock);
}

/* It has ended, and is charged for nothing. */
void
gpusort_host_memory_end(GpuSortHostMemory *memory)
{
	pthread_mutex_lock(&memory->lock);
	memory->share.sorts--;
	pthread_mutex_unlock(&memory->lock);
}

/*
 * Fails if a charge of that many bytes, to a sort that is charged for own, would not
 * succeed now: with MEMORY_BUSY if it would without other sorts, else with
 * MEMORY_LIMIT.  With the lock held.
 */
static int
check_share(GpuSortHostMemory *memory, uint64_t bytes, uint64_t own, GpuSortError *error)
{
	GpuSortMemoryShare *share = &memory->share;
	bool fits_alone = bytes <= share->limit && gpusort_share_fits_alone(share, own + bytes);

	/* Estimates may be so large that adding to them might overflow. */
	if (bytes <= share->limit && gpusort_share_allows(share, own, bytes))
		return 0;
	error->reason = fits_alone ? GPUSORT_REASON_MEMORY_BUSY : GPUSORT_REASON_MEMORY_LIMIT;
	snprintf(error->text, sizeof(error->text),
			 "gpusort.host_memory allows %llu MB, sorts use %llu MB of it, and %llu MB more are needed",
			 (unsigned long long) (share->limit >> 20), (unsigned long long) (share->used >> 20),
			 (unsigned long long) ((bytes >> 20) + 1));
	return -1;
}

/* Fails as a charge of that many bytes, to a sort that is charged for own, would; charges nothing. */
int
gpusort_host_memory_would_fit(GpuSortHostMemory *memory, uint64_t bytes, uint64_t own, GpuSortError *error)
{
	int rc;

	pthread_mutex_lock(&memory->lock);
	rc = check_share(memory, bytes, own, error);
	pthread_mutex_unlock(&memory->lock);
	return rc;
}

/*
 * Charges a sort that is charged for own so far for bytes that it will get, or fails
 * with MEMORY_BUSY or MEMORY_LIMIT.
 */
int
gpusort_host_memory_charge(GpuSortHostMemory *memory, uint64_t bytes, uint64_t own, GpuSortError *error)
{
	int rc;

	pthread_mutex_lock(&memory->lock);
	rc = check_share(memory, bytes, own, error);
	if (rc == 0)
		gpusort_share_take(&memory->share, own, bytes);
	pthread_mutex_unlock(&memory->lock);
	return rc;
}

/* Takes back so many bytes of the charge of a sort that is charged for own. */
void
gpusort_host_memory_discharge(GpuSortHostMemory *memory, uint64_t bytes, uint64_t own)
{
	pthread_mutex_lock(&memory->lock);
	gpusort_share_give_back(&memory->share, own, bytes);
	pthread_mutex_unlock(&memory->lock);
}

/* Makes room for one more free extent.  With the lock held. */
static bool
room_for_one_more(GpuSortHostMemory *memory)
{
	size_t room = memory->room ? memory->room * 2 : 64;
	Extent *extents;

	if (memory->count < memory->room)
		return true;
	extents = realloc(memory->extents, room * sizeof(Extent));
	if (extents == NULL)
		return false;
	memory->extents = extents;
	memory->room = room;
	return true;
}

static void
remove_extent(GpuSortHostMemory *memory, size_t i)
{
	memory->count--;
	memmove(memory->extents + i, memory->extents + i + 1,
			(memory->count - i) * sizeof(Extent));
}

/* Puts bytes from start into the list.  With the lock held. */
static void
insert_extent(GpuSortHostMemory *memory, char *start, size_t bytes)
{
	size_t low = 0;
	size_t high = memory->count;
	bool joins_left;
	bool joins_right;

	memory->cached += bytes;
	while (low < high)
	{
		size_t middle = (low + high) / 2;

		if (memory->extents[middle].start < start)
			low = middle + 1;
		else
			high = middle;
	}
	joins_left = low > 0 &&
		memory->extents[low - 1].start + memory->extents[low - 1].bytes == start;
	joins_right = low < memory->count && start + bytes == memory->extents[low].start;
	if (joins_left)
	{
		memory->extents[low - 1].bytes += bytes;
		if (joins_right)
		{
			memory->extents[low - 1].bytes += memory->extents[low].bytes;
			remove_extent(memory, low);
		}
	}
	else if (joins_right)
	{
		memory->extents[low].start = start;
		memory->extents[low].bytes += bytes;
	}
	else if (room_for_one_more(memory))
	{
		memmove(memory->extents + low + 1, memory->extents + low,
				(memory->count - low) * sizeof(Extent));
		memory->extents[low].start = start;
		memory->extents[low].bytes = bytes;
		memory->count++;
	}
	else
	{
		/* No list entry to be had: the extent itself can go. */
		memory->cached -= bytes;
		memory->mapped -= bytes;
		munmap(start, bytes);
	}
}

/*
 * Takes what is from low up to high, of extent i, out of the list; what lies on
 * both sides of it stays.  Returns false if there is no list entry for that.  With the lock held.
 */
static bool
cut_extent(GpuSortHostMemory *memory, size_t i, char *low, char *high)
{
	Extent extent = memory->extents[i];

	if (!room_for_one_more(memory))
		return false;
	memory->cached -= extent.bytes;
	remove_extent(memory, i);
	if (low > extent.start)
		insert_extent(memory, extent.start, low - extent.start);
	if (extent.start + extent.bytes > high)
		insert_extent(memory, high, extent.start + extent.bytes - high);
	return true;
}

/*
 * Unmaps free extents, lowest addresses first, until no more than keep bytes
 * are cached.  Works in whole huge pages: a part of one would be split by the
 * kernel and stay slow.  With the lock held.
 */
static void
trim(GpuSortHostMemory *memory, uint64_t keep)
{
	size_t i = 0;

	while (memory->cached > keep && i < memory->count)
	{
		Extent extent = memory->extents[i];
		char *low = HUGE_UP(extent.start);
		char *high = HUGE_DOWN(extent.start + extent.bytes);

		if (high <= low)
		{
			i++;
			continue;
		}
		if (memory->cached - (uint64_t) (high - low) < keep)
			high = low + ROUND_UP(memory->cached - keep, HUGE_BYTES);
		if (!cut_extent(memory, i, low, high))
			return;
		if (munmap(low, high - low) != 0)
		{
			insert_extent(memory, low, high - low);
			return;
		}
		memory->mapped -= high - low;
		i += (low > extent.start) + (extent.start + extent.bytes > high);
	}
}

/*
 * Gives back to the system what is free and would have been free even at the
 * busiest moment since the last call.  Called at intervals, it leaves what sorts
 * keep taking, and after an interval without any it leaves nothing.
 */
void
gpusort_host_memory_age(GpuSortHostMemory *memory)
{
	uint64_t out;

	pthread_mutex_lock(&memory->lock);
	out = memory->mapped - memory->cached;
	trim(memory, memory->peak - out);
	memory->peak = out;
	memory->huge_pages = true;
	pthread_mutex_unlock(&memory->lock);
}

/* Bytes that are mapped and free. */
uint64_t
gpusort_host_memory_cached(GpuSortHostMemory *memory)
{
	uint64_t cached;

	pthread_mutex_lock(&memory->lock);
	cached = memory->cached;
	pthread_mutex_unlock(&memory->lock);
	return cached;
}

/* Addresses for so many bytes, in whole huge pages, with no memory behind them unless protection lets it be used. */
static char *
map_aligned(size_t size, int protection)
{
	char *start = mmap(NULL, size + HUGE_BYTES, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *aligned;

	if (start == MAP_FAILED)
		return NULL;
	aligned = HUGE_UP(start);
	if (aligned > start)
		munmap(start, aligned - start);
	if (aligned < start + HUGE_BYTES)
		munmap(aligned + size, start + HUGE_BYTES - aligned);
	return aligned;
}

/* Bytes of free extents that lie in whole huge pages.  With the lock held. */
static size_t
count_movable(const GpuSortHostMemory *memory)
{
	size_t bytes = 0;

	for (size_t i = 0; i < memory->count; i++)
	{
		char *low = HUGE_UP(memory->extents[i].start);
		char *high = HUGE_DOWN(memory->extents[i].start + memory->extents[i].bytes);

		bytes += high > low ? high - low : 0;
	}
	return bytes;
}

/*
 * Moves pages, in whole huge pages, to addresses that belong to the caller;
 * returns how many bytes it could.  The system may have unmapped
 * the huge page at which it failed, but not what is there.
 */
static size_t
move_pages(char *to, char *from, size_t bytes)
{
	for (size_t done = 0; done < bytes; done += HUGE_BYTES)
	{
		if (mremap(from + done, HUGE_BYTES, HUGE_BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, to + done) == MAP_FAILED)
			return done;
	}
	return bytes;
}

/*
 * Unmaps the huge page that pages could not be moved to, and size bytes in all, of addresses
 * that nothing was moved to.  The first is left mapped, without memory, where nobody knows
 * whether the system has unmapped it: it could be another thread's by now.
 */
static void
give_up_addresses(char *start, size_t size)
{
	char *probe = mmap(start, HUGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (probe != MAP_FAILED)
		munmap(probe, HUGE_BYTES);
	if (size > HUGE_BYTES)
		munmap(start + HUGE_BYTES, size - HUGE_BYTES);
}

/*
 * Makes an extent of size bytes, in whole huge pages, of moved bytes of free ones, that
 * there are, and of fresh ones, and puts it into the list.  Returns false if the system does
 * not let us; what was moved until then is in the list too.  With the lock held.
 */
static bool
gather(GpuSortHostMemory *memory, size_t size, size_t moved)
{
	char *start = map_aligned(size, PROT_NONE);
	size_t done = 0;
	bool good = true;

	if (start == NULL)
		return false;

	/* from high addresses to low ones, as they are taken */
	for (size_t i = memory->count; i-- > 0 && done < moved;)
	{
		char *low = HUGE_UP(memory->extents[i].start);
		char *high = HUGE_DOWN(memory->extents[i].start + memory->extents[i].bytes);
		size_t bytes;

		if (high <= low)
			continue;
		if ((size_t) (high - low) > moved - done)
			low = high - (moved - done);
		good = cut_extent(memory, i, low, high);
		if (!good)
			break;
		bytes = move_pages(start + done, low, high - low);
		done += bytes;
		if (bytes < (size_t) (high - low))
		{
			insert_extent(memory, low + bytes, high - low - bytes);
			give_up_addresses(start + done, size - done);
			if (done > 0)
				insert_extent(memory, start, done);
			return false;
		}
	}
	if (good && done < size)
	{
		good = mprotect(start + done, size - done, PROT_READ | PROT_WRITE) == 0;
		memory->mapped += good ? size - done : 0;
	}
	if (!good)
		munmap(start + done, size - done);
	if (done > 0 || good)
		insert_extent(memory, start, good ? size : done);
	return good;
}

/*
* Asks the kernel for huge pages for a new mapping, which makes touching it for the first time three times as fast.
 * Returns false if the first of them is long in coming, and there will be small ones then: where memory is in
 * fragments, or a virtual machine has to be given it first, those of a large sort would take seconds.
 */
static bool
use_huge_pages(char *start, size_t size)
{
	double began = gpusort_clock_ms();

	if (madvise(start, size, MADV_HUGEPAGE) != 0)
		return false;
	*(volatile char *) start = 0;
	if (gpusort_clock_ms() - began < HUGE_PAGE_MS)
		return true;
	(void) madvise(start, size, MADV_NOHUGEPAGE);
	return false;
}

/* Makes sure that the list has an extent of at least that many bytes.  With the lock held. */
static bool
map_more(GpuSortHostMemory *memory, size_t bytes)
{
	size_t size = bytes > MAPPING_BYTES ? ROUND_UP(bytes, HUGE_BYTES) : MAPPING_BYTES;
	size_t movable = count_movable(memory);
	char *start;

	if (movable >= ROUND_UP(bytes, HUGE_BYTES))
	{
		if (gather(memory, ROUND_UP(bytes, HUGE_BYTES), ROUND_UP(bytes, HUGE_BYTES)))
			return true;
	}

	/* What is free but too scattered must not add to what the limit allows. */
	else if (memory->mapped + size > memory->share.limit && movable > 0 && gather(memory, size, movable))
		return true;
	if (memory->mapped + size > memory->share.limit)
		trim(memory, 0);

	start = map_aligned(size, PROT_READ | PROT_WRITE);
	if (start == NULL)
		return false;
	if (memory->huge_pages)
		memory->huge_pages = use_huge_pages(start, size);
	memory->mapped += size;
	insert_extent(memory, start, size);
	return true;
}

/* Takes bytes (whole pages) from the list, or returns NULL.  With the lock held. */
static void *
take_extent(GpuSortHostMemory *memory, size_t bytes)
{
	for (size_t i = memory->count; i-- > 0;)
	{
		Extent *extent = &memory->extents[i];

		if (extent->bytes >= bytes)
		{
			char *start = extent->start + extent->bytes - bytes;

			memory->cached -= bytes;
			extent->bytes -= bytes;
			if (extent->bytes == 0)
				remove_extent(memory, i);
			return start;
		}
	}
	return NULL;
}

/*
 * At least bytes of memory, on a page boundary, with anything in it; NULL with
 * *error filled when the system has none.  The caller has charged for it.
 */
void *
gpusort_host_memory_get(GpuSortHostMemory *memory, size_t bytes, GpuSortError *error)
{
	void *start;

	bytes = ROUND_UP(bytes, GPUSORT_HOST_PAGE_BYTES);
	pthread_mutex_lock(&memory->lock);
	start = take_extent(memory, bytes);
	if (start == NULL && map_more(memory, bytes))
		start = take_extent(memory, bytes);
	if (memory->mapped - memory->cached > memory->peak)
		memory->peak = memory->mapped - memory->cached;
	pthread_mutex_unlock(&memory->lock);
	if (start == NULL)
	{
		error->reason = GPUSORT_REASON_NO_MEMORY;
		snprintf(error->text, sizeof(error->text),
				 "the system does not have %llu MB of memory left for a sort",
				 (unsigned long long) ((bytes >> 20) + 1));
	}
	return start;
}

/* Gives back what get returned, or whole pages of it; bytes as they were asked for, or none. */
void
gpusort_host_memory_put(GpuSortHostMemory *memory, void *start, size_t bytes)
{
	if (bytes == 0)
		return;
	pthread_mutex_lock(&memory->lock);
	insert_extent(memory, start, ROUND_UP(bytes, GPUSORT_HOST_PAGE_BYTES));
	pthread_mutex_unlock(&memory->lock);
}
