/*-------------------------------------------------------------------------
 *
 * parallel_order.c
 *	  Has the rows of parallel sorts sorted, and cut into ranges.
 *
 * Once, when all processes have put theirs (parallel_sort.c has the order of calls).  All sorts of a plan are cut at the
 * borders of the longest.
 *
 *-------------------------------------------------------------------------
 */
#include "parallel/parallel_sort.h"

#include "access/parallel.h"
#include "client/elapsed.h"
#include "server/reasons.h"
#include "sort/service_sort.h"
#include "parallel/parallel_sort_state.h"
#include "settings.h"

/*
 * A range has about so many bytes of rows, half a chunk: a range begins a chunk, so that smaller ones wait for the
 * service and its device more often.
 */
#define RANGE_BYTES ((uint64) 2 << 20)

/*
 * Or fewer, for so many ranges a process, since one has more to do than another and the last to end is waited for; but
 * not fewer than what fits a core's cache, with what is made of it.
 */
#define RANGES_PER_PROCESS 32
#define RANGE_BYTES_MIN    ((uint64) 512 << 10)

/* Ranges are smaller where there would be fewer than these for each process. */
#define RANGES_PER_PROCESS_MIN 4

/*
 * No range has fewer rows, or gpusort.min_rows if that is less, but where there are no more: starting the plan
 * above over takes as long as some hundred rows.
 */
#define RANGE_ROWS_MIN 2000

/*
 * Where something ends at borders, about so many ranges a process, but none of fewer bytes, which are a hundred pages
 * even where equal tuples become one, nor of more: what is made of a range is kept in memory.
 */
#define BORDERED_RANGES_PER_PROCESS 8
#define BORDERED_RANGE_BYTES_MIN    ((uint64) 4 << 20)
#define BORDERED_RANGE_BYTES_MAX    ((uint64) 16 << 20)

/* Has the rows sorted that all processes have put; false, with a reason, if they are lost. */
static bool
order_rows(GpuSortParallelSort *own, GpuSortFailure *failure)
{
	GpuSortState *sort = own->sort;
	GpuSortPut put = {0};
	instr_time ingested;

	if (own->sorted == NULL)
		own->sorted = MemoryContextAlloc(own->context, sizeof(GpuSortOrderedRows));
	own->sorted->pairs = 0;
	gpusort_parallel_ingest_settle_common_prefixes(&own->ingest);
	INSTR_TIME_SET_CURRENT(ingested);
	gpusort_parallel_ingest_collect(&own->ingest, &put);
	if (IsParallelWorker())
	{
		/* The leader's own are not in shared memory where it is the leader that orders: its writer has them. */
		put.rows += own->shared->leader_put.rows;
		put.truncated += own->shared->leader_put.truncated;
		put.bytes += own->shared->leader_put.bytes;
		put.sum += own->shared->leader_put.sum;
	}
	if (!gpusort_service_sort_order(sort, &put, 0, &own->sorted->expected, failure))
		return false;
	if (own->shared != NULL && own->shared->long_rows)
		own->sorted->expected.flags |= GPUSORT_ROW_OVERFLOW;
	gpusort_service_sort_note_times(sort, ingested);
	if (own->shared != NULL)
	{
		own->shared->outcome = sort->figures.outcome;
		own->shared->ms = sort->figures.ms;
	}
	return true;
}

/* Returns how many ranges are wanted for so many processes where something ends at borders. */
static uint32
bordered_ranges_wanted(const GpuSortExpected *expected, int processes)
{
	uint64 ranges = (uint64) processes * BORDERED_RANGES_PER_PROCESS;

	ranges = Min(ranges, expected->bytes / BORDERED_RANGE_BYTES_MIN);
	ranges = Max(ranges, expected->bytes / BORDERED_RANGE_BYTES_MAX);
	return Max(Min(ranges, GPUSORT_RANGES_MAX), 1);
}

/* Returns into how many ranges rows are to be cut for so many processes. */
static uint32
ranges_wanted(const GpuSortSortSet *set, const GpuSortExpected *expected, int processes)
{
	uint64 ranges = Min(expected->bytes / RANGE_BYTES_MIN, (uint64) processes * RANGES_PER_PROCESS);

	if (processes == 1)
		return 1; /* one process reads all rows: the plan above need not start over */
	if (set->bordered && gpusort_min_rows >= RANGE_ROWS_MIN)
		return bordered_ranges_wanted(expected, processes);
	ranges = Max(ranges, expected->bytes / RANGE_BYTES);
	ranges = Max(ranges, (uint64) processes * RANGES_PER_PROCESS_MIN);
	ranges = Min(ranges, expected->rows / Max(Min(gpusort_min_rows, RANGE_ROWS_MIN), 1));
	return Max(Min(ranges, GPUSORT_RANGES_MAX), 1);
}

/* Cuts a sort's rows, at the borders of like if that is another. */
static bool
cut_rows(GpuSortParallelSort *own, GpuSortParallelSort *like, uint32 bits, uint32 most, GpuSortFailure *failure)
{
	GpuSortOrderedRows *sorted = own->sorted;
	uint64 token = own == like ? 0 : gpusort_client_token(like->sort->service.client);

	sorted->expected.range_bits = bits;
	if (most == 1)
	{
		sorted->ranges = like->sorted->expected.rows > 0;
		sorted->first_rows[0] = 0;
	}
	else if (!gpusort_client_cut(own->sort->service.client, bits, most, token, sorted->first_rows, &sorted->ranges,
								 failure))
		return false;
	sorted->first_rows[sorted->ranges] = sorted->expected.rows;
	if (sorted->ranges != like->sorted->ranges)
		return gpusort_failure_set(failure, GPUSORT_REASON_VERIFY,
								   "the sort service cut one sort into %u ranges, and another into %u",
								   like->sorted->ranges, sorted->ranges);
	return true;
}

/* Returns true if none of so many processes has more to do than its share, as ranges of these rows are claimed. */
static bool
are_even(const GpuSortOrderedRows *rows, int processes)
{
	for (uint32 i = 0; i < rows->ranges; i++)
	{
		if ((rows->first_rows[i + 1] - rows->first_rows[i]) * processes > rows->expected.rows)
			return false;
	}
	return true;
}

/* Returns true if rows can be read from any number on: not where one may tie with others, or is verified. */
static bool
can_overlap(const GpuSortParallelSort *own)
{
	const GpuSortExpected *expected = &own->sorted->expected;

	return !expected->verified && (!own->sort->keys->may_tie || (!expected->in_runs && expected->tie_rows == 0));
}

/*
 * Cuts the rows of a sort, most ranges at most, so that no range depends on another, if that leaves each process its
 * share; else by all bits that they can be cut by.
 */
static bool
cut_continued_rows(GpuSortSortSet *set, uint32 bits, uint32 most, int processes, GpuSortFailure *failure)
{
	GpuSortParallelSort *own = set->sorts[0];
	const GpuSortKeys *keys = own->sort->keys;
	const uint32 whole_bits =
		Min(gpusort_keys_range_bits(keys, Min(set->whole_columns, keys->encoded)), bits);
	const bool may = set->before + set->after == 0 || can_overlap(own);

	set->continued = false;
	if (!cut_rows(own, own, whole_bits, whole_bits == 0 ? 1 : most, failure))
		return false;
	if (!may || most == 1 || are_even(own->sorted, processes))
		return true;
	set->continued = true;
	return cut_rows(own, own, bits, most, failure);
}

/*
 * Has the rows sorted, when all processes have put theirs, and cuts them into *ranges ranges for so many processes;
 * false, with a reason, if they are lost.  Workers may read when this has returned.
 */
bool
gpusort_sort_set_order(GpuSortSortSet *set, int processes, uint32 *ranges, GpuSortFailure *failure)
{
	GpuSortParallelSort *longest = set->sorts[0];
	uint32 bits;
	uint32 most;

	for (int i = 0; i < set->count; i++)
	{
		GpuSortParallelSort *own = set->sorts[i];

		if (!order_rows(own, failure))
			return false;
		if (own->sort->figures.outcome.bytes > longest->sort->figures.outcome.bytes)
			longest = own;
	}
	bits = gpusort_sort_set_range_bits(set);
	most = bits == 0 ? 1 : ranges_wanted(set, &longest->sorted->expected, processes);
	if (!(set->continues ? cut_continued_rows(set, bits, most, processes, failure)
						 : cut_rows(longest, longest, bits, most, failure)))
		return false;
	for (int i = 0; i < set->count; i++)
	{
		GpuSortParallelSort *own = set->sorts[i];

		if (own != longest && !cut_rows(own, longest, bits, most, failure))
			return false;
		gpusort_service_sort_open(own->sort, &own->sorted->expected, !IsParallelWorker());
	}
	*ranges = longest->sorted->ranges;
	return true;
}
