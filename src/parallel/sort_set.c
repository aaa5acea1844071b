/*-------------------------------------------------------------------------
 *
 * sort_set.c
 *	  The sorts whose rows several processes put, and read by ranges that are cut at the same borders.
 *
 * There is one sort below most plans, two are below a merge join.  All are cut at the borders of the longest, once,
 * when all processes have put their rows.
 *
 *-------------------------------------------------------------------------
 */
#include "parallel/sort_set.h"

#include "access/parallel.h"
#include "parallel/set_keys.h"
#include "server/jobs.h"
#include "server/reasons.h"
#include "settings.h"
#include "sort/prefixes.h"
#include "sort/service_sort.h"

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

/*
 * Where the leader reads all rows, so many ranges a process, for the verification of their order alone: small ones,
 * as a part of some (order_check.c) is read with the range behind it.
 */
#define VERIFIED_RANGES_PER_PROCESS 32
#define VERIFIED_RANGE_ROWS_MIN     500

/* Adds a sort; the set grows in the current memory context. */
void
gpusort_sort_set_add(GpuSortSortSet *set, GpuSortParallelSort *sort)
{
	if (set->sorts == NULL)
		set->sorts = palloc(sizeof(GpuSortParallelSort *));
	else
		set->sorts = repalloc(set->sorts, (set->count + 1) * sizeof(GpuSortParallelSort *));
	set->sorts[set->count++] = sort;
}

/*
 * Begins the sorts in the service, before workers start.  Returns false, with a reason, if it cannot; the caller must
 * call refuse then.  participants: processes that will read the rows, if all that are planned start.
 */
bool
gpusort_sort_set_begin(GpuSortSortSet *set, int participants, GpuSortFailure *failure)
{
	GpuSortPrefix **prefixes;
	bool *common_later;

	if (!gpusort_allowed)
		return gpusort_failure_set(failure, GPUSORT_REASON_NOT_ALLOWED, "gpusort.allowed is off");
	set->lost = false;
	set->asked = 0;
	prefixes = palloc(set->count * sizeof(GpuSortPrefix *));
	common_later = palloc(set->count * sizeof(bool));
	for (int i = 0; i < set->count; i++)
	{
		const GpuSortState *sort = gpusort_parallel_sort_sort(set->sorts[i]);

		prefixes[i] = MemoryContextAlloc(sort->context, sort->keys->sized * sizeof(GpuSortPrefix));
		common_later[i] = !gpusort_prefixes_choose(sort->keys, &sort->input, false, sort->estimated_rows, prefixes[i]);
		if (gpusort_prefixes_too_many_ties(sort->keys, prefixes[i], failure))
			return false;
	}
	gpusort_set_keys_choose(set, prefixes, common_later);
	for (int i = 0; i < set->count; i++)
	{
		if (!gpusort_parallel_sort_begin(set->sorts[i], prefixes[i], common_later[i], participants, set->workers_order,
										 failure))
			return false;
	}
	return true;
}

/*
 * Leaves the sorts to PostgreSQL, in this process alone: they can be begun natively.  The caller sees
 * to it that the sources give all rows then.
 */
void
gpusort_sort_set_refuse(GpuSortSortSet *set, const GpuSortFailure *failure)
{
	const GpuSortFailure reason = *failure;

	gpusort_sort_set_end(set);
	for (int i = 0; i < set->count; i++)
		gpusort_parallel_sort_refuse(set->sorts[i], &reason);
}

/*
 * Puts this process's part of the rows of each sort, or stops when *stop says that none are wanted; false, with a
 * reason, if one is full or lost.  A worker that cannot join a sort leaves its part to others, who find it in their
 * sources; *whole becomes false then.
 */
bool
gpusort_sort_set_ingest(GpuSortSortSet *set, const volatile bool *stop, bool *whole, GpuSortFailure *failure)
{
	*whole = true;
	for (int i = 0; i < set->count && !*stop; i++)
	{
		if (!gpusort_parallel_sort_ingest(set->sorts[i], set->workers_order, stop, whole, failure))
			return false;
	}
	return true;
}

/* Returns true if this process has a part of the rows of any of the sorts that it has not put. */
bool
gpusort_sort_set_have_rows(GpuSortSortSet *set)
{
	for (int i = 0; i < set->count; i++)
	{
		if (gpusort_input_next(&gpusort_parallel_sort_sort(set->sorts[i])->input) != NULL)
			return true;
	}
	return false;
}

/*
 * Joins the sorts, in a worker, to order their rows, which all processes have put; false, with a reason, if it cannot,
 * and another process is to do it.
 */
bool
gpusort_sort_set_join_to_order(GpuSortSortSet *set, GpuSortFailure *failure)
{
	int joined = 0;

	while (joined < set->count && gpusort_parallel_sort_join(set->sorts[joined], false, failure))
		joined++;
	if (joined == set->count)
		return true;
	while (joined-- > 0)
	{
		GpuSortState *sort = gpusort_parallel_sort_sort(set->sorts[joined]);
		GpuSortFailure ignored;

		/* Nothing is done about an error here: the process that orders the rows meets it, too. */
		(void) gpusort_client_leave(sort->service.client, &ignored);
		gpusort_service_sort_release(sort);
	}
	return false;
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

/* Returns how many ranges there should be for so many processes. */
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

/*
 * Returns into how many ranges to cut the rows for so many processes, and in *bits by how many leading bits of the
 * keys.  No two ranges have the same value in these bits.
 */
static uint32
ranges_to_cut(const GpuSortSortSet *set, const GpuSortParallelSort *longest, int processes, uint32 *bits)
{
	const GpuSortExpected *expected = &gpusort_parallel_sort_rows(longest)->expected;

	if (!gpusort_parallel_sort_leader_reads(longest))
	{
		*bits = gpusort_set_keys_range_bits(set);
		return *bits == 0 ? 1 : ranges_wanted(set, expected, processes);
	}
	*bits = 64 * expected->key_words;
	if (!gpusort_parallel_sort_sort(longest)->service.check_order)
		return 1;
	return Max(Min(Min((uint64) processes * VERIFIED_RANGES_PER_PROCESS, expected->rows / VERIFIED_RANGE_ROWS_MIN),
				   GPUSORT_RANGES_MAX),
			   1);
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

/* Returns true if rows can be read from any number on.  They cannot where one may tie with others, or is verified. */
static bool
can_overlap(const GpuSortParallelSort *own)
{
	const GpuSortExpected *expected = &gpusort_parallel_sort_rows(own)->expected;
	const bool may_tie = gpusort_parallel_sort_sort(own)->keys->may_tie;

	return !expected->verified && (!may_tie || (!expected->in_runs && expected->tie_rows == 0));
}

/*
 * Cuts the rows of the one sort, most ranges at most, so that no range depends on another, if that leaves each process
 * its share; else by all bits that they can be cut by.
 */
static bool
cut_continued_rows(GpuSortSortSet *set, uint32 bits, uint32 most, int processes, GpuSortFailure *failure)
{
	GpuSortParallelSort *own = set->sorts[0];
	const GpuSortKeys *keys = gpusort_parallel_sort_sort(own)->keys;
	const uint32 whole_bits =
		Min(gpusort_keys_range_bits(keys, Min(set->whole_columns, keys->encoded)), bits);
	const bool may = set->before + set->after == 0 || can_overlap(own);

	set->continued = false;
	if (!gpusort_parallel_sort_cut(own, own, whole_bits, whole_bits == 0 ? 1 : most, failure))
		return false;
	if (!may || most == 1 || are_even(gpusort_parallel_sort_rows(own), processes))
		return true;
	set->continued = true;
	return gpusort_parallel_sort_cut(own, own, bits, most, failure);
}

/* Returns how many bytes of rows a sort has, which are ordered. */
static uint64
ordered_bytes(const GpuSortParallelSort *own)
{
	return gpusort_parallel_sort_sort(own)->figures.outcome.bytes;
}

/*
 * Orders the rows, when all processes have put theirs, and cuts them into *ranges ranges for so many processes; false,
 * with a reason, if they are lost.  Workers may read when this has returned.
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

		if (!gpusort_parallel_sort_order(own, failure))
			return false;
		if (ordered_bytes(own) > ordered_bytes(longest))
			longest = own;
	}
	most = ranges_to_cut(set, longest, processes, &bits);
	if (!(set->continues ? cut_continued_rows(set, bits, most, processes, failure)
						 : gpusort_parallel_sort_cut(longest, longest, bits, most, failure)))
		return false;
	for (int i = 0; i < set->count; i++)
	{
		GpuSortParallelSort *own = set->sorts[i];

		if (own != longest && !gpusort_parallel_sort_cut(own, longest, bits, most, failure))
			return false;
		gpusort_service_sort_open(gpusort_parallel_sort_sort(own), &gpusort_parallel_sort_rows(own)->expected,
								  !IsParallelWorker());
	}
	*ranges = gpusort_parallel_sort_rows(longest)->ranges;
	return true;
}

/*
 * Lets this process read ranges, once the rows are ordered, unless it may; false, with a reason, if it cannot.  *stop
 * says, while it reads, that no rows are wanted any more.
 */
bool
gpusort_sort_set_open(GpuSortSortSet *set, const volatile bool *stop, GpuSortFailure *failure)
{
	set->lost = false;
	set->asked = 0;
	for (int i = 0; i < set->count; i++)
	{
		if (!gpusort_parallel_sort_open(set->sorts[i], stop, &set->lost, failure))
			return false;
	}
	return true;
}

/* Returns how many rows before a range are read with it; *after becomes how many behind it are. */
uint64
gpusort_sort_set_near(const GpuSortSortSet *set, uint32 range, uint64 *after)
{
	const GpuSortOrderedRows *sorted = gpusort_parallel_sort_rows(set->sorts[0]);

	*after = 0;
	if (!set->continued)
		return 0;
	*after = Min(set->after, sorted->expected.rows - sorted->first_rows[range + 1]);
	return Min(set->before, sorted->first_rows[range]);
}

/* Asks for the rows of so many ranges, and for those before and after that are read with them. */
static bool
ask(GpuSortSortSet *set, uint32 range, uint32 ranges, uint64 before, uint64 after, GpuSortFailure *failure)
{
	for (int i = 0; i < set->count; i++)
	{
		GpuSortReader *reader = &gpusort_parallel_sort_sort(set->sorts[i])->service.reader;
		const uint64 *first = &gpusort_parallel_sort_rows(set->sorts[i])->first_rows[range];

		if (!gpusort_reader_ask(reader, first[0] - before, first[ranges] + after,
								set->again || before + after > 0, failure))
			return false;
	}
	Assert(set->asked < GPUSORT_READS_MAX);
	set->asked_ranges[set->asked++] = range;
	return true;
}

/* Asks for the rows of a range, to be read after those asked for before; false, with a reason, if they are lost. */
bool
gpusort_sort_set_ask(GpuSortSortSet *set, uint32 range, GpuSortFailure *failure)
{
	uint64 after;
	const uint64 before = gpusort_sort_set_near(set, range, &after);

	return ask(set, range, 1, before, after, failure);
}

/* The same for all rows, as if they were one range. */
bool
gpusort_sort_set_ask_all(GpuSortSortSet *set, GpuSortFailure *failure)
{
	Assert(!set->continued);
	return ask(set, 0, gpusort_parallel_sort_rows(set->sorts[0])->ranges, 0, 0, failure);
}

/*
 * Begins the range that was asked for first: the next rows of each sort are the range's.  false, with a reason, if they
 * are lost.
 */
bool
gpusort_sort_set_begin_range(GpuSortSortSet *set, GpuSortFailure *failure)
{
	Assert(set->asked > 0);
	set->range = set->asked_ranges[0];
	set->asked--;
	memmove(set->asked_ranges, set->asked_ranges + 1, set->asked * sizeof(set->asked_ranges[0]));
	for (int i = 0; i < set->count; i++)
	{
		if (!gpusort_sort_begin_range(gpusort_parallel_sort_sort(set->sorts[i]), failure))
			return false;
	}
	return true;
}

/* Ends the work of all, since this process has lost rows of the current range. */
void
gpusort_sort_set_note_lost(const GpuSortSortSet *set, GpuSortClaims *claims)
{
	for (int i = 0; i < set->count; i++)
	{
		const GpuSortState *sort = gpusort_parallel_sort_sort(set->sorts[i]);

		if (sort->stage == GPUSORT_STAGE_LOST)
			gpusort_claims_stop(claims, &sort->reason);
	}
}

/* Ends a worker's reading; adds what it has read whole to what the others have. */
void
gpusort_sort_set_close(GpuSortSortSet *set)
{
	for (int i = 0; i < set->count; i++)
		gpusort_parallel_sort_close(set->sorts[i]);
}

/* Shows others in gpusort_jobs that the ranges before this one have been emitted. */
void
gpusort_sort_set_show(GpuSortSortSet *set, uint32 range)
{
	for (int i = 0; i < set->count; i++)
		gpusort_service_sort_show(gpusort_parallel_sort_sort(set->sorts[i]), GPUSORT_PHASE_EMIT,
								  gpusort_parallel_sort_rows(set->sorts[i])->first_rows[range]);
}

/*
 * Lets the leader learn what came of the sorts that it has not learnt yet, and verifies them, when workers have ended;
 * false, with a reason, if other rows were read of one than were put.
 */
bool
gpusort_sort_set_finish(GpuSortSortSet *set, GpuSortFailure *failure)
{
	for (int i = 0; i < set->count; i++)
	{
		if (!gpusort_parallel_sort_finish(set->sorts[i], failure))
			return false;
	}
	return true;
}

/* Ends the sorts in the service, of which no row is wanted any more; what is known of them stays. */
void
gpusort_sort_set_release(GpuSortSortSet *set)
{
	for (int i = 0; i < set->count; i++)
	{
		GpuSortState *sort = gpusort_parallel_sort_sort(set->sorts[i]);

		gpusort_rows_clear(sort->rows);
		gpusort_service_sort_release(sort);
	}
}

/*
 * Lets the leader, who reads all rows from here on, do so without the shared memory, which goes after this, and without
 * workers, who have ended; *stop is as in open.  Returns false, and does nothing, if long rows are there.
 */
bool
gpusort_sort_set_keep(GpuSortSortSet *set, const volatile bool *stop)
{
	for (int i = 0; i < set->count; i++)
	{
		if (gpusort_parallel_sort_has_long_rows(set->sorts[i]))
			return false;
	}
	for (int i = 0; i < set->count; i++)
		gpusort_parallel_sort_keep(set->sorts[i], stop);
	return true;
}

/* Drops the sorts, in whatever state they are. */
void
gpusort_sort_set_end(GpuSortSortSet *set)
{
	for (int i = 0; i < set->count; i++)
		gpusort_parallel_sort_end(set->sorts[i]);
	set->lost = false;
}
