/*-------------------------------------------------------------------------
 *
 * memory.c
 *	  What the host engine's memory keeps for the next sort, and for how long.
 *	  Calls host/memory.c itself: in the service an interval takes 30 seconds.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>
#include <sys/mman.h>

#include "service/host/memory.h"
#include "testlib.h"

#define MIB   ((size_t) 1 << 20)
#define LARGE (1536 * MIB)
#define SMALL (40 * MIB)

static GpuSortHostMemory *memory;

static void *
take(size_t bytes)
{
	GpuSortError error;
	void *start = gpusort_host_memory_get(memory, bytes, &error);

	if (start == NULL)
		bail("%s", error.text);
	return start;
}

/* Returns true if the page there is still in memory. */
static bool
resident(void *page)
{
	unsigned char state = 0;

	return mincore(page, 4096, &state) == 0 && (state & 1);
}

int
main(void)
{
	char *large;
	char *small;

	memory = gpusort_host_memory_create(4 * LARGE);
	if (memory == NULL)
		bail("no memory");
	ok(gpusort_host_memory_cached(memory) == 0, "nothing is mapped before it is asked for");

	large = take(LARGE);
	large[0] = 1;
	gpusort_host_memory_put(memory, large, LARGE);
	ok(gpusort_host_memory_cached(memory) == LARGE && resident(large), "all that a large sort gives back stays");
	gpusort_host_memory_age(memory);
	ok(gpusort_host_memory_cached(memory) == LARGE, "also at the end of the interval in which it was used");
	ok(take(LARGE) == large && large[0] == 1, "the next large sort gets the same pages");

	gpusort_host_memory_age(memory);
	gpusort_host_memory_put(memory, large, LARGE);
	gpusort_host_memory_age(memory);
	ok(gpusort_host_memory_cached(memory) == LARGE, "what was out when the interval began counts as used in it");

	small = take(SMALL);
	gpusort_host_memory_put(memory, small, SMALL);
	gpusort_host_memory_age(memory);
	ok(gpusort_host_memory_cached(memory) == SMALL, "after an interval with a small sort only, its memory stays");

	small = take(SMALL);
	memset(small, 7, SMALL);
	gpusort_host_memory_age(memory);
	gpusort_host_memory_age(memory);
	ok(small[0] == 7 && small[SMALL - 1] == 7, "what is out is left alone");
	gpusort_host_memory_put(memory, small, SMALL);
	gpusort_host_memory_age(memory);
	gpusort_host_memory_age(memory);
	ok(gpusort_host_memory_cached(memory) == 0, "after an interval without a sort nothing stays");
	ok(!resident(small), "and the system has its pages back");

	gpusort_host_memory_destroy(memory);
	return done_testing();
}
