/*-------------------------------------------------------------------------
 *
 * engine_share.c
 *	  Several sorts that want more of a device's memory than there is, and what becomes
 *	  of it when they want no more.  See engine_test.h.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine_test.h"
#include "service/memory_share.h"

#define SHARED_BYTES (UINT64_C(512) << 20)

/* Rows of a chunk that is reserved, but where said otherwise: little beside the chunk. */
#define FEW_ROWS 1000

/* Of a sort's smallest blocks. */
#define SMALL_BYTES (UINT64_C(24) << 20)

/* Longer than others wait for a sort that was starved. */
#define STARVED_US 700000

/* Begins a sort that may spill. */
static GpuSort *
begin(uint64_t estimated_bytes, CaseFailure *failure)
{
	GpuSortRequest request = {.key_words = 1, .may_tie = 1, .spill = 1, .estimated_bytes = estimated_bytes};
	GpuSort *sort;
	GpuSortPlace place;
	GpuSortError error;

	if (test.ops->begin(test.engine, &request, &sort_case_never_cancelled, &sort, &place, &error) == 0)
		return sort;
	case_failed(failure, "begin: %s", error.text);
	return NULL;
}

static void
end(GpuSort *sort)
{
	if (sort != NULL)
		test.ops->end(sort);
}

/* Reserves chunks for so many rows each; returns how many it got, at most `most`, and why no more. */
static int
reserve(GpuSort *sort, int most, uint32_t rows, GpuSortReason *reason)
{
	GpuSortError error;
	int got = 0;

	*reason = GPUSORT_REASON_NONE;
	while (got < most && test.ops->reserve(sort, rows, &error) == 0)
		got++;
	if (got < most)
		*reason = error.reason;
	return got;
}

/* One sort has all that it can get, and knows no better: two newcomers put a chunk of the shortest rows each. */
static bool
newcomers(CaseFailure *failure)
{
	GpuSort *first = begin(UINT64_C(1) << 40, failure);
	GpuSort *later[2] = {NULL, NULL};
	GpuSortReason reason;
	int got = first != NULL ? reserve(first, 1000, FEW_ROWS, &reason) : 0;

	if (first != NULL && (got < 50 || got == 1000 || reason != GPUSORT_REASON_MEMORY_LIMIT))
		case_failed(failure, "%d chunks, then reason %d", got, reason);
	for (int i = 0; i < 2 && failure->text[0] == '\0'; i++)
	{
		later[i] = begin(UINT64_C(1) << 40, failure);
		if (later[i] != NULL && reserve(later[i], 1, gpusort_chunk_rows_most(1), &reason) != 1)
			case_failed(failure, "newcomer %d: reason %d", i, reason);
	}
	end(first);
	end(later[0]);
	end(later[1]);
	return failure->text[0] == '\0';
}

/*
 * While a sort is starved what falls free is not for one that has more than its fair share.  Sets *late, and is to be
 * tried again, if so much time went by that the large one may have some again.
 */
static bool
try_starved(CaseFailure *failure, bool *late)
{
	GpuSort *brief = begin(0, failure);
	GpuSort *large = begin(0, failure);
	GpuSort *small = begin(0, failure);
	GpuSortReason reason;
	double refused;

	*late = false;
	if (brief != NULL && large != NULL && small != NULL)
	{
		if (reserve(brief, 15, FEW_ROWS, &reason) != 15)
			case_failed(failure, "the first sort got less than 60 MB: reason %d", reason);
		(void) reserve(large, 1000, FEW_ROWS, &reason);
		if (reason != GPUSORT_REASON_MEMORY_BUSY)
			case_failed(failure, "the large sort: reason %d", reason);
		(void) reserve(small, 1000, FEW_ROWS, &reason);
		if (reason != GPUSORT_REASON_MEMORY_BUSY)
			case_failed(failure, "the small sort: reason %d", reason);
		refused = rig_milliseconds();
		if (reserve(small, 1, FEW_ROWS, &reason) != 0)
			case_failed(failure, "the small sort is not refused again");
		end(brief);
		brief = NULL;
		if (reserve(large, 1, FEW_ROWS, &reason) != 0 || reason != GPUSORT_REASON_MEMORY_BUSY)
		{
			*late = failure->text[0] == '\0' && rig_milliseconds() - refused >= GPUSORT_SHARE_STARVED_MS;
			case_failed(failure, "the large sort grew before the small one");
		}
		if (reserve(small, 1, FEW_ROWS, &reason) != 1)
			case_failed(failure, "the small sort stays starved: reason %d", reason);
		usleep(STARVED_US);
		if (reserve(large, 1, FEW_ROWS, &reason) != 1)
			case_failed(failure, "the large sort stays refused: reason %d", reason);
	}
	end(brief);
	end(large);
	end(small);
	return failure->text[0] == '\0';
}

static bool
starved(CaseFailure *failure)
{
	bool late;

	for (int tries = 1; !try_starved(failure, &late); tries++)
	{
		if (!late || tries == 100)
			return false;
		failure->text[0] = '\0';
	}
	return true;
}

/* What a sort only expects to need it gives up to one that is starved. */
static bool
expected(CaseFailure *failure)
{
	GpuSort *large = begin(UINT64_C(350) << 20, failure);
	GpuSort *small = begin(0, failure);
	GpuSortReason reason;

	if (large != NULL && small != NULL)
	{
		(void) reserve(small, 1000, FEW_ROWS, &reason);
		if (reason != GPUSORT_REASON_MEMORY_BUSY)
			case_failed(failure, "the small sort: reason %d", reason);
		if (reserve(large, 1, FEW_ROWS, &reason) != 1)
			case_failed(failure, "the large sort: reason %d", reason);
		if (reserve(small, 20, FEW_ROWS, &reason) != 20)
			case_failed(failure, "the small sort stays starved: reason %d", reason);
	}
	end(large);
	end(small);
	return failure->text[0] == '\0';
}

void
test_share(GpuSortEngineConfig config, uint32_t device)
{
	CaseFailure failure = {.text = ""};
	GpuSortError error;
	char devices[16];

	snprintf(devices, sizeof(devices), "%u", device);
	config.devices = devices;
	config.memory_limit = SHARED_BYTES;
	if (test.ops->open(&config, &test.engine, &error) != 0)
	{
		case_failed(&failure, "open: %s", error.text);
		test_report(false, "opened with memory to share", &failure);
		return;
	}
	test_report(newcomers(&failure), "who comes later finds some memory", &failure);
	failure.text[0] = '\0';
	test_report(starved(&failure), "a starved sort comes before those that have much", &failure);
	failure.text[0] = '\0';
	test_report(expected(&failure), "an estimate gives way to a starved sort", &failure);
	test_idle("all shares are given back");
	test.ops->close(test.engine);
}

static uint64_t (*allocated)(void);
static void (*age)(GpuSortEngine *engine);

/* A sort that takes some 100 MB. */
static GpuSort *
begin_large(CaseFailure *failure)
{
	GpuSort *sort = begin(0, failure);
	GpuSortReason reason;

	if (sort != NULL && reserve(sort, 24, FEW_ROWS, &reason) != 24)
		case_failed(failure, "a sort was refused: reason %d", reason);
	return sort;
}

/* Small blocks are warm ones here and others there: what is kept may be some more. */
static bool
expect_allocated(const char *when, uint64_t right, uint64_t more, CaseFailure *failure)
{
	const uint64_t now = allocated();

	return (now >= right && now <= right + more) ||
		case_failed(failure, "%s: %llu bytes are allocated, not %llu", when, (unsigned long long) now,
					(unsigned long long) right);
}

/* What was needed at once since the age before stays. */
static bool
idle_memory(CaseFailure *failure)
{
	const uint64_t warm = allocated();
	uint64_t one;
	uint64_t two;
	GpuSort *sorts[2];

	sorts[0] = begin_large(failure);
	one = allocated();
	sorts[1] = begin_large(failure);
	two = allocated();
	end(sorts[0]);
	end(sorts[1]);
	if (failure->text[0] != '\0')
		return false;

	age(test.engine);
	if (one <= warm || two <= one || !expect_allocated("after two sorts", two, 0, failure))
		return false;
	end(begin_large(failure));
	age(test.engine);
	if (!expect_allocated("after one sort", one, SMALL_BYTES, failure))
		return false;
	end(begin_large(failure));
	age(test.engine);
	if (!expect_allocated("after one more sort", one, SMALL_BYTES, failure))
		return false;
	age(test.engine);
	return expect_allocated("after none", warm, 0, failure);
}

/* A sort that goes on does not wait for more than a few blocks to be freed, nor for any soon. */
static bool
idle_beside_sorts(CaseFailure *failure)
{
	GpuSort *brief = begin_large(failure);
	GpuSort *sort = begin(0, failure);
	const uint64_t all = allocated();
	uint64_t before = all;
	int ages = 0;
	int fewer = 0;

	end(brief);
	for (; ages < 20 && failure->text[0] == '\0'; ages++)
	{
		age(test.engine);
		fewer += allocated() < before;
		before = allocated();
		if (ages < 3)
			expect_allocated("soon after a sort", all, 0, failure);
	}
	end(sort);
	if (fewer == 0 || all - before < UINT64_C(90) << 20)
		case_failed(failure, "%llu bytes of %llu are left, freed in %d steps", (unsigned long long) before,
					(unsigned long long) all, fewer);
	return failure->text[0] == '\0';
}

/* More buffers than any engine has. */
#define BUFFERS_MOST 1000

/* Gets buffers until there are none, fills each, and puts all back; returns how many there were. */
static int
take_buffers(CaseFailure *failure)
{
	static char *buffers[BUFFERS_MOST];
	int count = 0;

	while (count < BUFFERS_MOST && (buffers[count] = test.ops->get_buffer(test.engine)) != NULL)
	{
		memset(buffers[count], count, GPUSORT_CHUNK_BYTES);
		count++;
	}
	for (int i = 0; i < count; i++)
	{
		if (buffers[i][0] != (char) i || buffers[i][GPUSORT_CHUNK_BYTES - 1] != (char) i)
			case_failed(failure, "buffer %d of %d is another's", i, count);
		test.ops->put_buffer(test.engine, buffers[i]);
	}
	return count;
}

static bool
buffers_age(CaseFailure *failure)
{
	int count = take_buffers(failure);
	char *first = test.ops->get_buffer(test.engine);
	char *again;

	if (count == 0 || count == BUFFERS_MOST)
		case_failed(failure, "there are %d buffers", count);
	test.ops->put_buffer(test.engine, first);
	again = test.ops->get_buffer(test.engine);
	if (again != first)
		case_failed(failure, "a buffer that was put back is not got again");

	/* all but one are freed by the second of these */
	for (int i = 0; i < 3; i++)
		age(test.engine);
	memset(again, 1, GPUSORT_CHUNK_BYTES);
	test.ops->put_buffer(test.engine, again);
	if (take_buffers(failure) != count)
		case_failed(failure, "there are fewer buffers than there were");
	return failure->text[0] == '\0';
}

void
test_age(GpuSortEngineConfig config, const char *library)
{
	CaseFailure failure = {.text = ""};
	GpuSortError error;

	*(void **) &allocated = rig_symbol(library, "emulate_allocated");
	*(void **) &age = rig_symbol(library, "gpusort_cuda_age");
	if (allocated == NULL || age == NULL)
		return;
	config.devices = "0";
	if (test.ops->open(&config, &test.engine, &error) != 0)
	{
		case_failed(&failure, "open: %s", error.text);
		test_report(false, "opened to age", &failure);
		return;
	}
	test_report(idle_memory(&failure), "memory that no sort needs goes back", &failure);
	failure.text[0] = '\0';
	test_report(idle_beside_sorts(&failure), "memory goes back beside a sort, later and in parts", &failure);
	failure.text[0] = '\0';
	if (test.ops->get_buffer != NULL)
		test_report(buffers_age(&failure), "buffers are there again after they went back", &failure);
	test.ops->close(test.engine);
}
