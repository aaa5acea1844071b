/*-------------------------------------------------------------------------
 *
 * engine_share.c
 *	  Several sorts that want more of a device's memory than there is.  See
 *	  engine_test.h.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <unistd.h>

#include "engine_test.h"

#define SHARED_BYTES (UINT64_C(512) << 20)

/* Rows of a chunk that is reserved, but where said otherwise: little beside the chunk. */
#define FEW_ROWS 1000

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

/* While a sort is starved what falls free is not for one that has more than its fair share. */
static bool
starved(CaseFailure *failure)
{
	GpuSort *brief = begin(0, failure);
	GpuSort *large = begin(0, failure);
	GpuSort *small = begin(0, failure);
	GpuSortReason reason;

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
		end(brief);
		brief = NULL;
		if (reserve(large, 1, FEW_ROWS, &reason) != 0 || reason != GPUSORT_REASON_MEMORY_BUSY)
			case_failed(failure, "the large sort grew before the small one");
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
