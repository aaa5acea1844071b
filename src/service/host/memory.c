/*-------------------------------------------------------------------------
 *
 * memory.c
 *	  Memory of the host engine.
 *
 * Two things that are kept apart on purpose:
 *
 *	The account (charge, discharge) is what gpusort.host_memory limits.  A sort
 *	charges before it takes, and charges the worst case first, so that a sort
 *	that was let in can be finished.
 *
 *	Extents (get, put) are the memory itself: whole pages of large mappings.  A
 *	page touched for the first time costs many times what copying into it costs,
 *	most of all on a virtual machine, so extents come back to a list of free ones
 *	and stay mapped, until gpusort_host_memory_age finds that they were not needed
 *	for a while.  The list is in order of address and neighbours are joined.  The
 *	kernel maps from high addresses to low ones; taking from the high end of the
 *	list therefore prefers what was in use before over what is fresh.
 *
 * Every function may be called from any thread.  What get returns belongs to
 * the caller until it is put back, whole or page by page; destroy unmaps only
 * what was put back.
 *
 *-------------------------------------------------------------------------
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "service/host/memory.h"

#define HUGE_BYTES        ((size_t) 2 << 20)
#define MAPPING_BYTES     ((size_t) 32 << 20)
#define ROUND_UP(n, unit) (((n) + (unit) -1) / (unit) * (unit))

typedef struct Extent
{
	char *start;
	size_t bytes;
} Extent;

struct GpuSortHostMemory
{
	pthread_mutex_t lock;

	/* the account */
	uint64_t limit;
	uint64_t used;

	/* free extents, by rising address */
	Extent *extents;
	size_t count;
	size_t room;
	uint64_t cached; /* bytes in them */
	uint64_t mapped; /* bytes in all mappings, free or not */
	uint64_t peak;   /* the most bytes in use since the last age */
};

/* Memory of which sorts may take limit bytes, none of it mapped yet; NULL if the system has none. */
GpuSortHostMemory *
gpusort_host_memory_create(uint64_t limit)
{
	GpuSortHostMemory *memory = calloc(1, sizeof(GpuSortHostMemory));

	if (memory == NULL)
		return NULL;
	pthread_mutex_init(&memory->lock, NULL);
	memory->limit = limit;
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
	return memory->limit;
}

/* Bytes that sorts are charged for. */
uint64_t
gpusort_host_memory_used(GpuSortHostMemory *memory)
{
	return __atomic_load_n(&memory->used, __ATOMIC_RELAXED);
}

/*
 * Fails if a charge of that many bytes, to a sort that is charged for own, would not
 * succeed now: with MEMORY_BUSY if it would without other sorts, else with
 * MEMORY_LIMIT.  With the lock held.
 */
static int
check_limit(GpuSortHostMemory *memory, uint64_t bytes, uint64_t own, GpuSortError *error)
{
	if (bytes <= memory->limit && memory->used <= memory->limit - bytes)
		return 0;
	error->reason = bytes <= memory->limit && own <= memory->limit - bytes ? GPUSORT_REASON_MEMORY_BUSY
																		   : GPUSORT_REASON_MEMORY_LIMIT;
	snprintf(error->text, sizeof(error->text),
			 "gpusort.host_memory allows %llu MB, sorts use %llu MB of it, and %llu MB more are needed",
			 (unsigned long long) (memory->limit >> 20), (unsigned long long) (memory->used >> 20),
			 (unsigned long long) ((bytes >> 20) + 1));
	return -1;
}

/* Fails as the first charge of a sort, of that many bytes, would; charges nothing. */
int
gpusort_host_memory_would_fit(GpuSortHostMemory *memory, uint64_t bytes, GpuSortError *error)
{
	int rc;

	pthread_mutex_lock(&memory->lock);
	rc = check_limit(memory, bytes, 0, error);
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
	rc = check_limit(memory, bytes, own, error);
	if (rc == 0)
		__atomic_store_n(&memory->used, memory->used + bytes, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&memory->lock);
	return rc;
}

/* Takes back a charge, or a part of it. */
void
gpusort_host_memory_discharge(GpuSortHostMemory *memory, uint64_t bytes)
{
	pthread_mutex_lock(&memory->lock);
	__atomic_store_n(&memory->used, memory->used - bytes, __ATOMIC_RELAXED);
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
		char *low = (char *) ROUND_UP((uintptr_t) extent.start, HUGE_BYTES);
		char *high = (char *) ((uintptr_t) (extent.start + extent.bytes) / HUGE_BYTES * HUGE_BYTES);

		if (high <= low)
		{
			i++;
			continue;
		}
		if (memory->cached - (uint64_t) (high - low) < keep)
			high = low + ROUND_UP(memory->cached - keep, HUGE_BYTES);

		/* A piece may be left on both sides, which takes one entry more. */
		if (!room_for_one_more(memory))
			return;
		if (munmap(low, high - low) != 0)
			return;
		memory->mapped -= high - low;
		memory->cached -= extent.bytes;
		remove_extent(memory, i);
		if (low > extent.start)
		{
			insert_extent(memory, extent.start, low - extent.start);
			i++;
		}
		if (extent.start + extent.bytes > high)
		{
			insert_extent(memory, high, extent.start + extent.bytes - high);
			i++;
		}
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

/* Maps at least that many bytes and puts them into the list.  With the lock held. */
static bool
map_more(GpuSortHostMemory *memory, size_t bytes)
{
	size_t size = bytes > MAPPING_BYTES ? ROUND_UP(bytes, HUGE_BYTES) : MAPPING_BYTES;
	char *start;
	char *aligned;

	/* What is free but too scattered must not add to what the limit allows. */
	if (memory->mapped + size > memory->limit)
		trim(memory, 0);

	start = mmap(NULL, size + HUGE_BYTES, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (start == MAP_FAILED)
		return false;
	aligned = (char *) ROUND_UP((uintptr_t) start, HUGE_BYTES);
	if (aligned > start)
		munmap(start, aligned - start);
	if (aligned < start + HUGE_BYTES)
		munmap(aligned + size, start + HUGE_BYTES - aligned);

	/*
	 * Huge pages are up to the system.  Asked for, they come from memory that
	 * nobody has used lately, and a virtual machine may have to be given that
	 * first: seconds, for a gain in reading rows that was not to be measured.
	 */
	memory->mapped += size;
	insert_extent(memory, aligned, size);
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
				 "the system has no %llu MB of memory left for a sort",
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
