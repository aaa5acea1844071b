/*-------------------------------------------------------------------------
 *
 * memory.c
 *	  What the host engine's memory keeps for the next sort, and for how long; who of
 *	  several sorts may have how much of it.  Calls host/memory.c itself: in the
 *	  service an interval takes 30 seconds.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "service/machine/memory.h"
#include "service/memory_share.h"
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
	bool late;
	double refused;
	const double guard = now_ms() + ANSWER_MS;

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
	ok(large.own == most && large.refused == GPUSORT_REASON_MEMORY_LIMIT,
	   "it has nearly all, and is told that the limit is in its way");

	for (int i = 0; i < 4; i++)
	{
		few[i] = begin();
		good = charge(&few[i], 8 * MIB) && charge(&few[i], 8 * MIB) && good;
	}
	ok(good && gpusort_host_memory_used(memory) == limit, "newcomers find 16 MB each");
	ok(!charge(&few[0], 8 * MIB) && few[0].refused == GPUSORT_REASON_MEMORY_BUSY,
	   "more they do not get while the large one has it");
	few[4] = begin();
	ok(!charge(&few[4], 8 * MIB) && few[4].refused == GPUSORT_REASON_MEMORY_BUSY, "nor does one more get any");

	/* tried again where it was not at once */
	do
	{
		refused = now_ms();
		if (charge(&few[4], 8 * MIB))
			bail("the large one has not all");
		discharge(&large, 512 * MIB);
		good = !charge(&large, 8 * MIB) && large.refused == GPUSORT_REASON_MEMORY_BUSY;
		late = now_ms() - refused >= GPUSORT_SHARE_STARVED_MS;
		if (!good && late)
			fill(&large);
	} while (!good && late && now_ms() < guard);
	ok(good, "what the large one gives back it does not get again at once");
	ok(charge(&few[4], 8 * MIB) && charge(&few[0], 8 * MIB), "those who were refused do");
	usleep(2 * GPUSORT_SHARE_STARVED_MS * 1000);
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
	ok(large.own > limit / 2 && large.refused == GPUSORT_REASON_MEMORY_BUSY,
	   "the first more than half, until the second is in its way");
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

/* The so many-th mremap from now on fails, after it has unmapped where pages were to go, or before; 0: none. */
static int fail_move;
static bool fail_unmapped;
static int moves;

extern void *__real_mremap(void *from, size_t size, size_t new_size, int flags, void *to);
void *__wrap_mremap(void *from, size_t size, size_t new_size, int flags, void *to);

void *
__wrap_mremap(void *from, size_t size, size_t new_size, int flags, void *to)
{
	moves++;
	if (fail_move == 0 || --fail_move > 0)
		return __real_mremap(from, size, new_size, flags, to);
	if (fail_unmapped)
		munmap(to, new_size);
	return MAP_FAILED;
}

/* Bytes of all mappings of this process. */
static uint64_t
mapped(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	unsigned long pages;

	if (file == NULL || fscanf(file, "%lu", &pages) != 1)
		bail("/proc/self/statm");
	fclose(file);
	return pages * UINT64_C(4096);
}

/* Pages that are scattered are moved together, and not given back for fresh ones. */
static void
test_gather(void)
{
	char *pieces[32];
	char *whole;
	bool stay = true;
	bool hold = true;

	memory = gpusort_host_memory_create(4 * LARGE);
	if (memory == NULL)
		bail("no memory");
	for (int i = 0; i < 32; i++)
	{
		pieces[i] = take(6 * MIB);
		memset(pieces[i], i + 1, 6 * MIB);
	}
	for (int i = 0; i < 32; i += 2)
		gpusort_host_memory_put(memory, pieces[i], 6 * MIB);
	moves = 0;
	whole = take(64 * MIB);
	for (size_t at = 0; at < 64 * MIB; at += 4096)
		stay = stay && resident(whole + at) && whole[at] % 2 == 1 && whole[at + 4095] == whole[at];
	ok(moves == 32 && stay, "a large piece is made of the pages of small ones (%d moves)", moves);
	memset(whole, 99, 64 * MIB);
	for (int i = 1; i < 32; i += 2)
		for (size_t at = 0; at < 6 * MIB; at += 4096)
			hold = hold && pieces[i][at] == i + 1;
	ok(hold && whole[0] == 99 && whole[64 * MIB - 1] == 99, "which can be used, and what is out is left alone");
	ok(gpusort_host_memory_cached(memory) == 32 * MIB, "what was moved is counted");
	gpusort_host_memory_put(memory, whole, 64 * MIB);
	for (int i = 1; i < 32; i += 2)
		gpusort_host_memory_put(memory, pieces[i], 6 * MIB);
	ok(gpusort_host_memory_cached(memory) == 192 * MIB, "nothing more was mapped");
	gpusort_host_memory_destroy(memory);
}

#define OUT_MAX 64

/* An extent that is out: every page has its number at both ends. */
typedef struct Out
{
	char *start;
	size_t bytes;
	uint64_t number;
} Out;

static void
stamp(const Out *out)
{
	for (size_t at = 0; at < out->bytes; at += 4096)
	{
		memcpy(out->start + at, &out->number, 8);
		memcpy(out->start + at + 4088, &out->number, 8);
	}
}

static bool
is_stamped(const Out *out)
{
	for (size_t at = 0; at < out->bytes; at += 4096)
	{
		if (memcmp(out->start + at, &out->number, 8) != 0 || memcmp(out->start + at + 4088, &out->number, 8) != 0)
			return false;
	}
	return true;
}

/* Anything in any order, with a limit that what is scattered would exceed; perhaps with moves that fail. */
static void
test_random(uint64_t seed, bool failing)
{
	const uint64_t limit = 256 * MIB;
	Out outs[OUT_MAX];
	uint64_t before;
	uint64_t out_bytes = 0;
	uint64_t abandoned = 0; /* addresses that a failed move has left */
	int n = 0;
	bool good = true;

	random_seed(seed);
	moves = 0;
	before = mapped();
	memory = gpusort_host_memory_create(limit);
	if (memory == NULL)
		bail("no memory");
	for (int turn = 0; turn < 1500; turn++)
	{
		if (random64() % 2 && n < OUT_MAX)
		{
			size_t most = random64() % 4 ? 4 * MIB : 80 * MIB;
			Out out = {.bytes = (1 + random64() % (most / 4096)) * 4096, .number = turn};

			if (out_bytes + out.bytes > limit)
				continue;
			if (failing && random64() % 8 == 0)
			{
				fail_move = 1 + random64() % 12;
				fail_unmapped = random64() % 2;
			}
			out.start = take(out.bytes);
			if (failing && fail_move == 0 && !fail_unmapped)
				abandoned += 2 * MIB;
			fail_move = 0;
			fail_unmapped = true;
			stamp(&out);
			out_bytes += out.bytes;
			outs[n++] = out;
		}
		else if (n > 0)
		{
			int i = random64() % n;
			Out *out = &outs[i];
			size_t part = random64() % 4 ? out->bytes : (random64() % (out->bytes / 4096 + 1)) * 4096;

			/* whole, or from its start on */
			good = good && is_stamped(out);
			gpusort_host_memory_put(memory, out->start, part);
			out_bytes -= part;
			out->start += part;
			out->bytes -= part;
			if (out->bytes == 0)
				*out = outs[--n];
		}
		if (turn % 500 == 499)
			gpusort_host_memory_age(memory);
	}
	for (int i = 0; i < n; i++)
	{
		good = good && is_stamped(&outs[i]);
		gpusort_host_memory_put(memory, outs[i].start, outs[i].bytes);
	}
	ok(good && moves > 0, "%s: what was taken has been left alone (%d moves)", failing ? "moves fail" : "at random",
	   moves);
	gpusort_host_memory_age(memory);
	gpusort_host_memory_age(memory);
	ok(gpusort_host_memory_cached(memory) == 0, "all that was put back goes back to the system");
	gpusort_host_memory_destroy(memory);
	ok(mapped() <= before + abandoned + MIB, "and nothing stays mapped");
}

int
main(void)
{
	test_age();
	test_gather();
	for (int i = 0; i < 4; i++)
		test_random(42 + i, i % 2);
	test_shares();
	return done_testing();
}
