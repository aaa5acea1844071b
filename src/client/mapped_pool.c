/*-------------------------------------------------------------------------
 *
 * mapped_pool.c
 *	  A backend's mapping of the staging pool.
 *
 * Legal order of calls: take, or map; then (has_chunk | chunk)*, release.  A pool
 * stays mapped as long as a connection uses it.
 *
 * The newest pool stays mapped beyond that: the next sort finds its page tables
 * filled.  But an idle backend holds on to the memory of a service that may have
 * ended long ago, so a timeout gives it back.  That is a signal handler, and all it
 * does is one system call and to say so in the pool; the rest happens when the next
 * one is mapped.  While the lists here are changed it does nothing: the release that
 * follows sets the timeout again.  An error disables all timeouts, so the end of the
 * transaction sets it again too.
 *
 *-------------------------------------------------------------------------
 */
#include "client/mapped_pool.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "access/xact.h"
#include "port/atomics.h"
#include "server/reasons.h"
#include "service/protocol.h"
#include "utils/memutils.h"
#include "utils/timeout.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* Linux 5.14 */
#endif

/* Of x86-64, and of arm64 with pages of 4 KiB. */
#define HUGE_PAGE_BYTES ((size_t) 2 << 20)

/*
 * The service guarantees the sorts of one process no more than this fraction of the pool, but lets two of them in
 * (service/session/session_begin.c).
 */
#define PROCESS_FRACTION 2

/* An unused pool stays mapped for so long. */
#define IDLE_MS 15000

struct GpuSortMappedPool
{
	uint64 id;
	uint32 generation;   /* of the service */
	char *volatile base; /* NULL: given back */
	size_t bytes;
	uint32 chunks;
	volatile int connections;              /* that use it */
	bool populated[FLEXIBLE_ARRAY_MEMBER]; /* by chunk: its pages are in our page tables */
};

static GpuSortMappedPool *volatile newest_pool = NULL;

/* The timeout handler keeps away. */
static volatile sig_atomic_t handler_waits = false;

static TimeoutId idle_timeout;
static bool idle_timeout_registered = false;

static void
keep_handler_away(void)
{
	handler_waits = true;
	pg_compiler_barrier();
}

static void
let_handler_in(void)
{
	pg_compiler_barrier();
	handler_waits = false;
}

/* The timeout's handler, in a signal handler: gives the newest pool back if nobody uses it. */
static void
give_back_idle_pool(void)
{
	GpuSortMappedPool *pool = newest_pool;

	if (handler_waits || pool == NULL || pool->base == NULL || pool->connections > 0)
		return;
	munmap(pool->base, pool->bytes);
	pool->base = NULL;
}

/* Sees to it that an unused pool is given back. */
static void
watch_idle_pool(void)
{
	if (newest_pool != NULL && newest_pool->base != NULL && newest_pool->connections == 0)
		enable_timeout_after(idle_timeout, IDLE_MS);
}

/* An XactCallback */
static void
transaction_ended(XactEvent event, void *arg)
{
	if ((event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT || event == XACT_EVENT_PREPARE) &&
		!get_timeout_active(idle_timeout))
		watch_idle_pool();
}

static void
free_pool(GpuSortMappedPool *pool)
{
	if (pool->base != NULL)
		munmap(pool->base, pool->bytes);
	pfree(pool);
}

/* Returns true if this backend has a staging pool mapped, so that its next sort need not. */
bool
gpusort_mapped_pool_exists(void)
{
	return newest_pool != NULL && newest_pool->base != NULL;
}

/*
 * Returns true if this backend's open sorts have all that the service of that generation guarantees one process of its
 * pool: it would refuse another one.
 */
bool
gpusort_mapped_pool_is_used_up(uint32 generation)
{
	const GpuSortMappedPool *pool = newest_pool;
	uint32 sorts;

	if (pool == NULL || pool->base == NULL || pool->generation != generation)
		return false;
	sorts = pool->connections + 1;
	return sorts > 2 && sorts * GPUSORT_JOB_CHUNKS_MIN > pool->chunks / PROCESS_FRACTION;
}

/* Returns the pool that is mapped, for a connection; NULL if there is none.  The caller must release it. */
GpuSortMappedPool *
gpusort_mapped_pool_take(void)
{
	GpuSortMappedPool *pool;

	keep_handler_away();
	pool = gpusort_mapped_pool_exists() ? newest_pool : NULL;
	if (pool != NULL)
		pool->connections++;
	let_handler_in();
	return pool;
}

/*
 * Maps a file where huge pages, of which the service makes the pool where it can, are mapped as such: at a
 * multiple of their size.  Returns MAP_FAILED with errno if it cannot be.
 */
static void *
map_aligned(int fd, size_t bytes)
{
	char *reserved = mmap(NULL, bytes + HUGE_PAGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	size_t before;
	void *base;

	if (reserved == MAP_FAILED)
		return MAP_FAILED;
	before = TYPEALIGN(HUGE_PAGE_BYTES, reserved) - (uintptr_t) reserved;
	base = mmap(reserved + before, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
	if (base == MAP_FAILED)
	{
		int saved_errno = errno;

		munmap(reserved, bytes + HUGE_PAGE_BYTES);
		errno = saved_errno;
		return MAP_FAILED;
	}
	if (before > 0)
		munmap(reserved, before);
	munmap(reserved + before + bytes, HUGE_PAGE_BYTES - before);
	return base;
}

/*
 * Maps another pool, of so many chunks and the service of that generation, for a connection; the caller must release
 * it.  NULL, with a reason, if it cannot be.  What the service says of the pool is not believed: one that is shorter,
 * or can become so, would end this backend by a signal.
 */
GpuSortMappedPool *
gpusort_mapped_pool_map(uint64 id, uint32 generation, uint64 bytes, uint32 chunks, int fd, GpuSortFailure *failure)
{
	GpuSortMappedPool *pool;
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat status;
	void *base;

	if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(fd, &status) != 0 || status.st_size < bytes ||
		chunks == 0 || bytes < chunks * GPUSORT_CHUNK_BYTES)
	{
		(void) gpusort_failure_set(failure, GPUSORT_REASON_VERIFY,
								   "the sort service's staging pool is too short, or not sealed");
		return NULL;
	}
	if (!idle_timeout_registered)
	{
		idle_timeout = RegisterTimeout(USER_TIMEOUT, give_back_idle_pool);
		RegisterXactCallback(transaction_ended, NULL);
		idle_timeout_registered = true;
	}
	pool = MemoryContextAllocExtended(TopMemoryContext, offsetof(GpuSortMappedPool, populated) + chunks * sizeof(bool),
									  MCXT_ALLOC_NO_OOM | MCXT_ALLOC_ZERO);
	if (pool == NULL)
	{
		(void) gpusort_failure_set(failure, GPUSORT_REASON_NO_MEMORY, "out of memory");
		return NULL;
	}
	base = map_aligned(fd, bytes);
	if (base == MAP_FAILED)
	{
		(void) gpusort_failure_set(failure, GPUSORT_REASON_NO_MEMORY,
								   "could not map the staging pool: %s", strerror(errno));
		pfree(pool);
		return NULL;
	}
	pool->id = id;
	pool->generation = generation;
	pool->base = base;
	pool->bytes = bytes;
	pool->chunks = chunks;
	pool->connections = 1;

	keep_handler_away();
	if (newest_pool != NULL && newest_pool->connections == 0)
		free_pool(newest_pool);
	newest_pool = pool;
	let_handler_in();
	return pool;
}

/* To be called when a connection that has taken or mapped the pool closes. */
void
gpusort_mapped_pool_release(GpuSortMappedPool *pool)
{
	Assert(pool->connections > 0);
	keep_handler_away();
	if (--pool->connections == 0 && pool != newest_pool)
		free_pool(pool);
	let_handler_in();
	watch_idle_pool();
}

/* The pool's id, by which the service knows which one is mapped. */
uint64
gpusort_mapped_pool_id(const GpuSortMappedPool *pool)
{
	return pool->id;
}

/* Returns true if chunk, whatever number that is, is one of the pool's. */
bool
gpusort_mapped_pool_has_chunk(const GpuSortMappedPool *pool, uint32 chunk)
{
	return chunk < pool->chunks;
}

/*
 * Where a chunk is mapped.  Its pages are entered into the page tables in one
 * go when the backend first meets it: a fault for each would take three times as
 * long.  As if they were read: the kernel enters sixteen at once then, and they can be
 * written to all the same, since nobody has to be told that a page of a memfd is.
 */
char *
gpusort_mapped_pool_chunk(GpuSortMappedPool *pool, uint32 chunk)
{
	char *address = pool->base + (size_t) chunk * GPUSORT_CHUNK_BYTES;

	if (!pool->populated[chunk])
	{
		/* A kernel before 5.14 does not know how; then the pages fault in one by one. */
		(void) madvise(address, GPUSORT_CHUNK_BYTES, MADV_POPULATE_READ);
		pool->populated[chunk] = true;
	}
	return address;
}
