/*-------------------------------------------------------------------------
 *
 * memory.c
 *	  What the host engine's memory keeps for the next sort, and for how long; who of
 *	  several sorts may have how much of it.  Calls host/memory.c itself: in the
 *	  service an interval takes 30 seconds.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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

/* A sort that is charged for some memory. */
typedef struct Sort
{
	uint64_t own;
	GpuSortReason refused; /* why it was the last time */
} Sort;

static Sort
begin(void)
{
	gpusort_host_memory_begin(memory);
	return (Sort){.own = 0};
}

static bool
charge(Sort *sort, uint64_t bytes)
{
	GpuSortError error;

	if (gpusort_host_memory_charge(memory, bytes, sort->own, &error) != 0)
	{
		sort->refused = error.reason;
		return false;
	}
	sort->own += bytes;
	return true;
}

static void
discharge(Sort *sort, uint64_t bytes)
{
	gpusort_host_memory_discharge(memory, bytes, sort->own);
	sort->own -= bytes;
}

static void
end(Sort *sort)
{
	discharge(sort, sort->own);
	gpusort_host_memory_end(memory);
}

/* Takes all that a sort gets. */
static void
fill(Sort *sort)
{
	while (charge(sort, 8 * MIB))
		;
}

/* Who gets how much of what the sorts share. */
static void
test_shares(void)
{
	const uint64_t limit = 1024 * MIB;
	const uint64_t most = limit - 64 * MIB; /* what is kept for four newcomers is not for one sort alone */
	GpuSortError error;
	Sort large;
	Sort other;
	Sort few[5];
	bool good = true;

	memory = gpusort_host_memory_create(limit);
	if (memory == NULL)
		bail("no memory");
	large = begin();
	ok(gpusort_host_memory_would_fit(memory, most, 0, &error) == 0 && gpusort_host_memory_used(memory) == 0,
	   "one sort could have nearly all, which charges nothing");
	ok(gpusort_host_memory_would_fit(memory, most + 1, 0, &error) != 0 && error.reason == GPUSORT_REASON_MEMORY_LIMIT,
	   "but no more");
	ok(gpusort_host_memory_would_fit(memory, UINT64_MAX, 0, &error) != 0 && error.reason == GPUSORT_REASON_MEMORY_LIMIT,
	   "and nothing that is beyond all numbers");
	fill(&large);
	ok(large.own == most && large.refused == GPUSORT_REASON_MEMORY_LIMIT, "it has nearly all, and is told that the limit is in its way");

	for (int i = 0; i < 4; i++)
	{
		few[i] = begin();
		good = charge(&few[i], 8 * MIB) && charge(&few[i], 8 * MIB) && good;
	}
	ok(good && gpusort_host_memory_used(memory) == limit, "newcomers find 16 MB each");
	ok(!charge(&few[0], 8 * MIB) && few[0].refused == GPUSORT_REASON_MEMORY_BUSY, "more they do not get while the large one has it");
	few[4] = begin();
	ok(!charge(&few[4], 8 * MIB) && few[4].refused == GPUSORT_REASON_MEMORY_BUSY, "nor does one more get any");

	discharge(&large, 512 * MIB);
	ok(!charge(&large, 8 * MIB) && large.refused == GPUSORT_REASON_MEMORY_BUSY, "what the large one gives back it does not get again at once");
	ok(charge(&few[4], 8 * MIB) && charge(&few[0], 8 * MIB), "those who were refused do");
	usleep(600 * 1000);
	ok(charge(&large, 8 * MIB), "it does when nobody was refused for a while");

	for (int i = 0; i < 5; i++)
		end(&few[i]);
	end(&large);
	ok(gpusort_host_memory_used(memory) == 0, "all is given back");

	/* with two each may have half, and what others do not take */
	large = begin();
	other = begin();
	ok(charge(&other, 100 * MIB), "the second of two gets something");
	fill(&large);
	ok(large.own > limit / 2 && large.refused == GPUSORT_REASON_MEMORY_BUSY, "the first more than half, until the second is in its way");
	ok(!charge(&other, 400 * MIB), "that one starves now");
	end(&large);
	ok(charge(&other, 700 * MIB), "until it is alone");
	end(&other);
	large = begin();
	ok(charge(&large, most), "nothing is kept for those that have ended");
	end(&large);
	gpusort_host_memory_destroy(memory);
}

/* Returns true if the page there is still in memory. */
static bool
resident(void *page)
{
	unsigned char state = 0;

	return mincore(page, 4096, &state) == 0 && (state & 1);
}

/* What is kept of what sorts give back, and for how long. */
static void
test_age(void)
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
}

int
main(void)
{
	test_age();
	test_shares();
	return done_testing();
}
