/*-------------------------------------------------------------------------
 *
 * pool.c
 *	  The staging pool: one memfd of chunks, and the account of who has which.
 *
 * The memory is touched when the pool is made, so that no sort pays for it and
 * a pool that does not fit fails at once and not with SIGBUS later; it has huge
 * pages if there are some.  The memfd
 * is sealed: no client can shrink it under the others.  Free chunks are kept on
 * a stack; the one given back last is warm in the cache and goes out first.
 *
 * WHO GETS CHUNKS
 *	A sort that was admitted has a guaranteed minimum of GPUSORT_JOB_CHUNKS_MIN.
 *	What the admitted ones do not hold of that is the deficit, and as many chunks
 *	are reserved.  What is free beyond the deficit may be borrowed on top, up to
 *	GPUSORT_JOB_CHUNKS_MAX, but by nobody more than a sixteenth of what is left:
 *	a reader that pauses keeps what it has borrowed, and the scarcer chunks get,
 *	the less anybody may borrow, so that newcomers still find their minimum.
 *
 * Main thread only, but for gpusort_pool_chunk.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "service/clock.h"
#include "service/machine/machine.h"
#include "service/pool.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif

#define DEFAULT_BYTES ((uint64_t) 256 << 20)

/* More of the memory that the service may use than this fraction is surely a mistake. */
#define MEMORY_FRACTION 2

/* A sort borrows no more than this fraction of what is free. */
#define BORROW_FRACTION 16

typedef struct Chunk
{
	GpuSortPoolShare *share; /* who holds it, NULL if it is free */
	GpuSortChunkState state;
	uint32_t rows_max; /* that it was last granted for */
} Chunk;

struct GpuSortPool
{
	uint64_t id;
	int descriptor;
	char *start;
	uint32_t nchunks;
	Chunk *chunks;
	uint32_t *free; /* stack */
	uint32_t nfree;
	uint32_t deficit; /* chunks that are guaranteed to admitted sorts but not held by them */
};

/* Of x86-64, and of arm64 with pages of 4 KiB. */
#define HUGE_PAGE_BYTES ((size_t) 2 << 20)

/*
 * Maps all of a memfd where huge pages can be mapped as such: at a multiple of their size.  Returns
 * MAP_FAILED with errno if it cannot be.
 */
static void *
map_aligned(int descriptor, size_t bytes)
{
	char *reserved = mmap(NULL, bytes + HUGE_PAGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	size_t before;
	void *start;

	if (reserved == MAP_FAILED)
		return MAP_FAILED;
	before = -(uintptr_t) reserved % HUGE_PAGE_BYTES;
	start = mmap(reserved + before, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, descriptor, 0);
	if (start == MAP_FAILED)
	{
		int saved_errno = errno;

		(void) munmap(reserved, bytes + HUGE_PAGE_BYTES);
		errno = saved_errno;
		return MAP_FAILED;
	}
	if (before > 0)
		(void) munmap(reserved, before);
	(void) munmap(reserved + before + bytes, HUGE_PAGE_BYTES - before);
	return start;
}

/*
* Makes the kernel use huge pages for the memory at start, whatever the system grants shared memory: every
 * process that maps a chunk is done with two page faults then, and its processor finds more in fewer
 * entries.  A piece needs a page to begin with.  As long as they are to be had: where memory is in
 * fragments the kernel moves pages about for them, and that is given up when it takes much longer than
 * touching small ones, 1 ms a piece.
 */
static void
use_huge_pages(char *start, size_t bytes)
{
	const size_t page_bytes = sysconf(_SC_PAGESIZE);
	double give_up = gpusort_clock_ms() + 200;

	for (size_t at = 0; at + HUGE_PAGE_BYTES <= bytes && gpusort_clock_ms() < give_up; at += HUGE_PAGE_BYTES)
	{
		if (madvise(start + at, page_bytes, MADV_POPULATE_WRITE) != 0 ||
			madvise(start + at, HUGE_PAGE_BYTES, MADV_COLLAPSE) != 0)
			return;
		give_up += 4;
	}
}

/* Maps the memfd and touches all of it. */
static bool
map_pool(GpuSortPool *pool, size_t bytes)
{
	void *start;

	pool->descriptor = memfd_create("gpusort-pool", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (pool->descriptor < 0)
		return false;
	if (ftruncate(pool->descriptor, bytes) != 0)
		return false;
	start = map_aligned(pool->descriptor, bytes);
	if (start == MAP_FAILED)
		return false;
	pool->start = start;

	(void) madvise(start, bytes, MADV_HUGEPAGE);
	use_huge_pages(start, bytes);
	if (madvise(start, bytes, MADV_POPULATE_WRITE) != 0 && errno != EINVAL)
		return false;
	if (fallocate(pool->descriptor, 0, 0, bytes) != 0)
		return false;
	return fcntl(pool->descriptor, F_ADD_SEALS,
				 F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
}

/*
 * A pool of about that many bytes, 0 for the default; NULL with a text in
 * error if there is none to be had.
 */
GpuSortPool *
gpusort_pool_create(uint64_t bytes, char *error, size_t error_size)
{
	uint64_t memory = gpusort_machine()->memory;
	GpuSortPool *pool;

	if (bytes == 0)
		bytes = DEFAULT_BYTES;
	if (bytes > memory / MEMORY_FRACTION)
	{
		snprintf(error, error_size,
				 "gpusort.staging_memory of %llu MB is more than half of the %llu MB that the service may use",
				 (unsigned long long) (bytes >> 20), (unsigned long long) (memory >> 20));
		return NULL;
	}
	pool = calloc(1, sizeof(GpuSortPool));
	if (pool == NULL)
	{
		snprintf(error, error_size, "no memory");
		return NULL;
	}
	pool->descriptor = -1;
	pool->nchunks = bytes / GPUSORT_CHUNK_BYTES;
	if (pool->nchunks < GPUSORT_JOB_CHUNKS_MIN)
		pool->nchunks = GPUSORT_JOB_CHUNKS_MIN;
	pool->chunks = calloc(pool->nchunks, sizeof(Chunk));
	pool->free = calloc(pool->nchunks, sizeof(uint32_t));
	if (pool->chunks == NULL || pool->free == NULL ||
		!map_pool(pool, pool->nchunks * GPUSORT_CHUNK_BYTES))
	{
		snprintf(error, error_size, "could not get %u MB of staging memory (gpusort.staging_memory): %s",
				 pool->nchunks * (uint32_t) (GPUSORT_CHUNK_BYTES >> 20), strerror(errno));
		gpusort_pool_destroy(pool);
		return NULL;
	}
	while (pool->nfree < pool->nchunks)
	{
		pool->free[pool->nfree] = pool->nchunks - 1 - pool->nfree;
		pool->nfree++;
	}
	while (pool->id == 0)
	{
		if (getrandom(&pool->id, sizeof(pool->id), 0) != sizeof(pool->id))
			pool->id = getpid();
	}
	return pool;
}

/* Unmaps and closes the pool; clients that have mapped it keep their mapping. */
void
gpusort_pool_destroy(GpuSortPool *pool)
{
	if (pool->start != NULL)
		munmap(pool->start, pool->nchunks * GPUSORT_CHUNK_BYTES);
	if (pool->descriptor >= 0)
		close(pool->descriptor);
	free(pool->chunks);
	free(pool->free);
	free(pool);
}

/* What tells this pool from those of earlier services; never 0. */
uint64_t
gpusort_pool_id(const GpuSortPool *pool)
{
	return pool->id;
}

/* How many chunks it has, free or not. */
uint32_t
gpusort_pool_chunks(const GpuSortPool *pool)
{
	return pool->nchunks;
}

/* The memfd, for clients to map; it stays the pool's. */
int
gpusort_pool_descriptor(const GpuSortPool *pool)
{
	return pool->descriptor;
}

/* Where the chunks lie, one behind the other. */
void *
gpusort_pool_start(const GpuSortPool *pool)
{
	return pool->start;
}

/* Where a chunk lies; from any thread. */
void *
gpusort_pool_chunk(const GpuSortPool *pool, uint32_t chunk)
{
	return pool->start + chunk * GPUSORT_CHUNK_BYTES;
}

/* What share adds to the deficit. */
static uint32_t
share_deficit(const GpuSortPoolShare *share)
{
	if (!share->guaranteed || share->held >= GPUSORT_JOB_CHUNKS_MIN)
		return 0;
	return GPUSORT_JOB_CHUNKS_MIN - share->held;
}

/* How many chunks a sort is sure to get, borrowed ones not counted; of one that takes no more, how many it holds. */
uint32_t
gpusort_pool_share_chunks(const GpuSortPoolShare *share)
{
	return share->guaranteed ? GPUSORT_JOB_CHUNKS_MIN : share->held;
}

/* Guarantees a sort its minimum; false if that cannot be done now, with so many chunks left for others. */
bool
gpusort_pool_admit(GpuSortPool *pool, GpuSortPoolShare *share, uint32_t spare)
{
	if (pool->nfree - pool->deficit < GPUSORT_JOB_CHUNKS_MIN + spare)
		return false;
	share->guaranteed = true;
	pool->deficit += share_deficit(share);
	return true;
}

/* The sort will take no more chunks.  What it holds it still has to give back. */
void
gpusort_pool_dismiss(GpuSortPool *pool, GpuSortPoolShare *share)
{
	pool->deficit -= share_deficit(share);
	share->guaranteed = false;
}

/* Takes a chunk for an admitted sort, or returns GPUSORT_NO_CHUNK. */
uint32_t
gpusort_pool_take(GpuSortPool *pool, GpuSortPoolShare *share, GpuSortChunkState state)
{
	uint32_t chunk;

	if (!share->guaranteed)
		return GPUSORT_NO_CHUNK;
	if (share->held >= GPUSORT_JOB_CHUNKS_MIN &&
		(share->held >= GPUSORT_JOB_CHUNKS_MAX ||
		 share->held >= (pool->nfree - pool->deficit) / BORROW_FRACTION))
		return GPUSORT_NO_CHUNK;

	pool->deficit -= share_deficit(share);
	share->held++;
	pool->deficit += share_deficit(share);
	chunk = pool->free[--pool->nfree];
	pool->chunks[chunk].share = share;
	pool->chunks[chunk].state = state;
	return chunk;
}

/* Gives back a chunk that a sort holds, in whatever state. */
void
gpusort_pool_give_back(GpuSortPool *pool, uint32_t chunk)
{
	GpuSortPoolShare *share = pool->chunks[chunk].share;

	pool->deficit -= share_deficit(share);
	share->held--;
	pool->deficit += share_deficit(share);
	pool->chunks[chunk].share = NULL;
	pool->chunks[chunk].state = GPUSORT_CHUNK_FREE;
	pool->free[pool->nfree++] = chunk;
}

/* Gives back all of a sort's chunks that are in a state. */
void
gpusort_pool_give_back_all(GpuSortPool *pool, GpuSortPoolShare *share, GpuSortChunkState state)
{
	for (uint32_t chunk = 0; share->held > 0 && chunk < pool->nchunks; chunk++)
	{
		if (pool->chunks[chunk].share == share && pool->chunks[chunk].state == state)
			gpusort_pool_give_back(pool, chunk);
	}
}

/* Returns true if chunk, whatever number that is, is one that share holds in that state. */
bool
gpusort_pool_is(const GpuSortPool *pool, uint32_t chunk, const GpuSortPoolShare *share,
				GpuSortChunkState state)
{
	return chunk < pool->nchunks && pool->chunks[chunk].share == share &&
		pool->chunks[chunk].state == state;
}

/* Changes the state of a chunk that a sort holds. */
void
gpusort_pool_set(GpuSortPool *pool, uint32_t chunk, GpuSortChunkState state)
{
	pool->chunks[chunk].state = state;
}

/* Grants a chunk that a sort holds to its client, to be filled with so many rows at most. */
void
gpusort_pool_grant(GpuSortPool *pool, uint32_t chunk, uint32_t rows_max)
{
	pool->chunks[chunk].state = GPUSORT_CHUNK_GRANTED;
	pool->chunks[chunk].rows_max = rows_max;
}

/* The most rows of a granted chunk. */
uint32_t
gpusort_pool_rows_max(const GpuSortPool *pool, uint32_t chunk)
{
	return pool->chunks[chunk].rows_max;
}
