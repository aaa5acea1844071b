/*-------------------------------------------------------------------------
 *
 * parallel_sort.c
 *	  Sorts whose rows several processes put, and read by ranges.
 *
 * In the leader and in every worker the rows of a sort's source, this process's part, are put (parallel_ingest.c); when
 * all have, one process has the rows sorted and cut into ranges (parallel_order.c), and each process reads those that it
 * claims.  Rows that are equal in range_columns are in one range.
 *
 * Two ranges may be asked for: the one at hand and the next.  Within a range rows are read
 * as of any sort, and so are ties, marks and long rows.
 *
 * Long rows are in files of a set that all processes open.
 *
 *-------------------------------------------------------------------------
 */
#include "parallel/parallel_sort.h"

#include "access/parallel.h"
#include "parallel/claims.h"
#include "parallel/parallel_ingest.h"
#include "parallel/parallel_sort_state.h"
#include "server/jobs.h"
#include "server/reasons.h"
#include "settings.h"
#include "sort/collation_check.h"
#include "sort/prefixes.h"
#include "sort/service_sort.h"

/*
 * Makes a parallel sort of a sort whose rows several processes put; range_columns is as in its struct.  Belongs to the
 * current memory context.
 */
GpuSortParallelSort *
gpusort_parallel_sort_create(GpuSortState *sort, int range_columns)
{
	GpuSortParallelSort *own = palloc0(sizeof(GpuSortParallelSort));

	own->sort = sort;
	own->range_columns = range_columns;
	own->ingest.keys = sort->keys;
	own->ingest.input = &sort->input;
	own->context = CurrentMemoryContext;
	return own;
}

GpuSortState *
gpusort_parallel_sort_sort(const GpuSortParallelSort *own)
{
	return own->sort;
}

/* Returns why PostgreSQL is to sort, in this process alone; of reason NONE: it is not to. */
const GpuSortFailure *
gpusort_parallel_sort_refusal(const GpuSortParallelSort *own)
{
	return &own->refusal;
}

/* Returns the rows of all processes, which one of them has had sorted. */
GpuSortOrderedRows *
gpusort_parallel_sort_rows(const GpuSortParallelSort *own)
{
	return own->sorted;
}

/* This process puts no more rows into the sort of another, if it has not left that yet. */
void
gpusort_parallel_sort_drop(GpuSortParallelSort *own)
{
	if (own->ingest.client != NULL)
		gpusort_client_end(own->ingest.client);
	own->ingest.client = NULL;
}

/* Returns the bytes of shared memory for so many workers. */
Size
gpusort_parallel_sort_estimate(const GpuSortParallelSort *own, int nworkers)
{
	return add_size(offsetof(GpuSortParallelSortShared, ingest), gpusort_parallel_ingest_bytes(own->sort->keys, nworkers, false));
}

/* Sets what is shared back to the start: no process has put a row. */
static void
start_shared(GpuSortParallelSort *own)
{
	GpuSortParallelSortShared *shared = own->shared;

	shared->long_rows = false;
	shared->sorted.ranges = 0;
	shared->whole = (GpuSortWhole){0};
	shared->leader_put = (GpuSortPut){0};
	shared->outcome.key_bits = 0;
	gpusort_parallel_ingest_publish(&own->ingest);
}

/* Makes, in the leader, what the processes share, in memory of that segment; the sort may have been begun, or not. */
void
gpusort_parallel_sort_initialize(GpuSortParallelSort *own, void *shared, dsm_segment *segment, int nworkers)
{
	gpusort_parallel_sort_attach(own, shared);
	own->shared->segment = dsm_segment_handle(segment);
	SharedFileSetInit(&own->shared->files, segment);
	gpusort_parallel_ingest_create(&own->shared->ingest, nworkers, false);
	start_shared(own);
}

/* Workers are about to start again; the sort may have been begun, or not. */
void
gpusort_parallel_sort_reinitialize(GpuSortParallelSort *own)
{
	if (own->shared == NULL)
		return;
	SharedFileSetDeleteAll(&own->shared->files);
	start_shared(own);
}

/* In a worker: the sort uses what the leader has made in shared memory. */
void
gpusort_parallel_sort_attach(GpuSortParallelSort *own, void *shared)
{
	own->shared = shared;
	own->sorted = &own->shared->sorted;
	own->ingest.shared = &own->shared->ingest;
}

static void
add_whole(GpuSortWhole *sum, const GpuSortWhole *whole)
{
	sum->rows += whole->rows;
	sum->bytes += whole->bytes;
	sum->sum += whole->sum;
}

/*
 * Compares the rows that all processes have read with those that were put, when workers have ended; false, with a
 * reason, if they are others.  Says nothing of a sort of which some rows were read by nobody, unless all rows are to
 * stay on disk.
 */
static bool
verify_sort(const GpuSortParallelSort *own, GpuSortFailure *failure)
{
	const GpuSortExpected *expected = &own->sorted->expected;
	GpuSortWhole whole = own->sort->service.reader.whole;

	if (own->shared != NULL)
		add_whole(&whole, &own->shared->whole);
	if (whole.rows == expected->rows)
		return gpusort_reader_check_whole(expected, &whole, failure);
	return !own->sort->stays ||
		gpusort_failure_set(failure, GPUSORT_REASON_VERIFY, UINT64_FORMAT " rows were read of " UINT64_FORMAT, whole.rows,
							expected->rows);
}

/*
 * The leader learns what came of a sort that any process has had done, for EXPLAIN and the statistics, and verifies
 * it: while the shared memory is there.
 */
static void
finish_sort(GpuSortParallelSort *own)
{
	GpuSortParallelSortShared *shared = own->shared;

	if (own->sorted == NULL || (shared != NULL && shared->outcome.key_bits == 0))
		return;
	if (shared != NULL)
	{
		gpusort_service_sort_learn(own->sort, &shared->outcome, &shared->ms, shared->sorted.pairs);
		shared->outcome.key_bits = 0;
	}
	(void) verify_sort(own, &own->unlike);
}

/* Does so for all sorts that have not done it; false, with a reason, if other rows were read of one than were put. */
bool
gpusort_sort_set_finish(GpuSortSortSet *set, GpuSortFailure *failure)
{
	for (int i = 0; i < set->count; i++)
	{
		GpuSortParallelSort *own = set->sorts[i];

		finish_sort(own);
		*failure = own->unlike;
		own->unlike.reason = GPUSORT_REASON_NONE;
		if (failure->reason != GPUSORT_REASON_NONE)
			return false;
	}
	return true;
}

/* The shared memory goes after this. */
void
gpusort_parallel_sort_detach(GpuSortParallelSort *own)
{
	if (own->shared == NULL)
		return;
	if (own->workers_order && !IsParallelWorker())
		finish_sort(own); /* before the sorts' finish, which comes too late */
	gpusort_rows_clear(own->sort->rows);
	gpusort_overflow_close(&own->sort->rows->overflow);
	own->shared = NULL;
	own->sorted = NULL;
	own->ingest.shared = NULL;
}

/* Begins one of the sorts in the service; false, with a reason, if that is not to be. */
static bool
begin_sort(GpuSortParallelSort *own, GpuSortSortSet *set, int readers, const GpuSortPrefix *prefixes,
		   bool common_later, GpuSortFailure *failure)
{
	GpuSortState *sort = own->sort;

	own->workers_order = set->workers_order;
	INSTR_TIME_SET_CURRENT(sort->begun);
	gpusort_keys_lay_out(sort->keys, prefixes, common_later);
	if (!gpusort_collation_check_allows(sort->keys, failure) || !gpusort_service_sort_begin_shared(sort, readers, failure))
		return false;
	gpusort_parallel_ingest_start(&own->ingest, &sort->service.writer, sort->keys, common_later);
	return true;
}

/*
 * Begins the sorts in the service, before workers start; false, with a reason, if that is not to be: then
 * refuse must follow.  readers: processes that will read the rows, if all that are planned start.
 */
bool
gpusort_sort_set_begin(GpuSortSortSet *set, int readers, GpuSortFailure *failure)
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
		GpuSortState *sort = set->sorts[i]->sort;

		prefixes[i] = MemoryContextAlloc(sort->context, sort->keys->sized * sizeof(GpuSortPrefix));
		common_later[i] = !gpusort_prefixes_choose(sort->keys, &sort->input, false, sort->estimated_rows, prefixes[i]);
		if (gpusort_prefixes_too_many_ties(sort->keys, prefixes[i], failure))
			return false;
	}
	if (set->count > 1)
		gpusort_sort_set_unify(set, prefixes, common_later);
	else
		gpusort_sort_set_keep_ranges(set, prefixes[0]);
	for (int i = 0; i < set->count; i++)
	{
		if (!begin_sort(set->sorts[i], set, readers, prefixes[i], common_later[i], failure))
			return false;
	}
	return true;
}

/*
 * Has PostgreSQL sort, in this process alone: the sorts can be begun natively.  Whoever calls sees
 * to it that the sources give all rows then.
 */
void
gpusort_sort_set_refuse(GpuSortSortSet *set, const GpuSortFailure *failure)
{
	const GpuSortFailure reason = *failure;

	gpusort_sort_set_end(set);
	for (int i = 0; i < set->count; i++)
		set->sorts[i]->refusal = reason;
}

/* Lets long rows of all processes be read by all. */
static void
share_long_rows(GpuSortParallelSort *own)
{
	GpuSortOverflow *overflow = &own->sort->rows->overflow;
	MemoryContext caller;

	if (own->shared == NULL || overflow->fileset != NULL)
		return;
	caller = MemoryContextSwitchTo(own->sort->context);
	if (IsParallelWorker())
		SharedFileSetAttach(&own->shared->files, dsm_find_mapping(own->shared->segment));
	gpusort_overflow_share(overflow, &own->shared->files, ParallelWorkerNumber + 1);
	MemoryContextSwitchTo(caller);
}

/* A worker joins a sort; false, with a reason, if it is to take no part in it. */
static bool
join_sort(GpuSortParallelSort *own, GpuSortFailure *failure)
{
	MemoryContext caller = MemoryContextSwitchTo(own->sort->context);
	bool joined = gpusort_parallel_ingest_join(&own->ingest, &own->sort->rows->overflow, failure);

	MemoryContextSwitchTo(caller);
	return joined;
}

/* The leader's rows are all put, and others may have them sorted; false, with a reason, if they are lost. */
static bool
leave_to_others(GpuSortParallelSort *own, GpuSortFailure *failure)
{
	GpuSortServiceSort *service = &own->sort->service;

	if (own->shared == NULL)
		return true;
	if (!gpusort_writer_finish(&service->writer, failure) || !gpusort_client_leave(service->client, failure))
		return false;
	own->shared->leader_put = gpusort_writer_put(&service->writer);
	return true;
}

/* Puts this process's part of a sort's rows; false, with a reason, if the sort is full or lost. */
static bool
ingest_rows(GpuSortParallelSort *own, const volatile bool *stop, GpuSortFailure *failure)
{
	GpuSortState *sort = own->sort;

	if (!gpusort_parallel_ingest_rows(&own->ingest, stop, failure))
		return false;
	gpusort_input_clear(&sort->input);
	if (sort->rows->overflow.file != NULL && own->shared != NULL)
	{
		gpusort_overflow_export(&sort->rows->overflow);
		own->shared->long_rows = true;
	}
	if (IsParallelWorker())
		return gpusort_parallel_ingest_leave(&own->ingest, failure);
	return !own->workers_order || leave_to_others(own, failure);
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
		GpuSortParallelSort *own = set->sorts[i];

		own->workers_order = set->workers_order;
		if (IsParallelWorker())
			INSTR_TIME_SET_CURRENT(own->sort->begun);
		share_long_rows(own);
		if (IsParallelWorker() && !join_sort(own, failure))
		{
			if (failure->reason == GPUSORT_REASON_COLLATION)
				return false;
			*whole = false;
			ereport(DEBUG1,
					(errmsg_internal("gpusort: a parallel worker leaves its rows to others: %s", failure->text)));
			continue;
		}
		if (!ingest_rows(own, stop, failure))
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
		if (gpusort_input_next(&set->sorts[i]->sort->input) != NULL)
			return true;
	}
	return false;
}

/*
 * A worker joins a sort to read it, once it is sorted,
 * or to have it sorted before; false, with a reason, if it cannot.
 */
static bool
open_sort(GpuSortParallelSort *own, bool sorted, GpuSortFailure *failure)
{
	return gpusort_parallel_ingest_lay_out_keys(&own->ingest, failure) &&
		gpusort_service_sort_join(own->sort, own->shared->ingest.token, own->shared->ingest.generation,
								  sorted ? &own->sorted->expected : NULL, own->shared->ingest.verified, failure);
}

/*
 * Lets a worker have the sorts' rows sorted, which all processes have put; false, with a reason, if it cannot:
 * another process is to do it.
 */
bool
gpusort_sort_set_join_to_order(GpuSortSortSet *set, GpuSortFailure *failure)
{
	int joined = 0;

	while (joined < set->count && open_sort(set->sorts[joined], false, failure))
		joined++;
	if (joined == set->count)
		return true;
	while (joined-- > 0)
	{
		GpuSortState *sort = set->sorts[joined]->sort;
		GpuSortFailure ignored;

		/* Nothing is done about an error here: the process that has the rows sorted meets it, too. */
		(void) gpusort_client_leave(sort->service.client, &ignored);
		gpusort_service_sort_release(sort);
	}
	return false;
}

/*
 * Lets this process read ranges, once the rows are ordered, unless it may; false, with a reason, if it cannot.  stop
 * says, while it reads, that no rows are wanted any more.
 */
bool
gpusort_sort_set_open(GpuSortSortSet *set, const volatile bool *stop, GpuSortFailure *failure)
{
	set->lost = false;
	set->asked = 0;
	for (int i = 0; i < set->count; i++)
	{
		GpuSortParallelSort *own = set->sorts[i];
		GpuSortState *sort = own->sort;

		sort->stop = stop;
		sort->lost = &set->lost;
		share_long_rows(own);
		if (IsParallelWorker() && sort->service.client == NULL && !open_sort(own, true, failure))
			return false;
		if (!IsParallelWorker() && set->workers_order && sort->service.reader.client == NULL)
			gpusort_service_sort_open(sort, &own->sorted->expected, sort->service.unreported);
		/* The leader may have come too late to put rows. */
		gpusort_parallel_ingest_settle_common_prefixes(&own->ingest);
	}
	return true;
}

/*
 * Returns how many rows before a range are read with it, and makes *after how many behind it.
 */
uint64
gpusort_sort_set_near(const GpuSortSortSet *set, uint32 range, uint64 *after)
{
	const GpuSortOrderedRows *sorted = set->sorts[0]->sorted;

	*after = 0;
	if (!set->continued)
		return 0;
	*after = Min(set->after, sorted->expected.rows - sorted->first_rows[range + 1]);
	return Min(set->before, sorted->first_rows[range]);
}

/* Asks for the rows of a range, to be read after those asked for before; false, with a reason, if they are lost. */
bool
gpusort_sort_set_ask(GpuSortSortSet *set, uint32 range, GpuSortFailure *failure)
{
	uint64 after;
	const uint64 before = gpusort_sort_set_near(set, range, &after);

	for (int i = 0; i < set->count; i++)
	{
		GpuSortParallelSort *own = set->sorts[i];
		const uint64 *first = &own->sorted->first_rows[range];

		if (!gpusort_reader_ask(&own->sort->service.reader, first[0] - before, first[1] + after,
								set->again || before + after > 0, failure))
			return false;
	}
	Assert(set->asked < GPUSORT_READS_MAX);
	set->asked_ranges[set->asked++] = range;
	return true;
}

/*
 * The next rows of each sort are those of the range that was asked for first; false, with a reason, if they are lost.
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
		if (!gpusort_sort_begin_range(set->sorts[i]->sort, failure))
			return false;
	}
	return true;
}

/* This process has lost rows of the range at hand: ends the work of all. */
void
gpusort_sort_set_note_lost(const GpuSortSortSet *set, GpuSortClaims *claims)
{
	for (int i = 0; i < set->count; i++)
	{
		GpuSortState *sort = set->sorts[i]->sort;

		if (sort->stage == GPUSORT_STAGE_LOST)
			gpusort_claims_stop(claims, &sort->reason);
	}
}

/* A worker reads no more; what it has read whole is added to what the others have. */
void
gpusort_sort_set_close(GpuSortSortSet *set)
{
	for (int i = 0; i < set->count; i++)
	{
		GpuSortParallelSort *own = set->sorts[i];
		GpuSortParallelSortShared *shared = own->shared;

		LWLockAcquire(&shared->ingest.lock, LW_EXCLUSIVE);
		add_whole(&shared->whole, &own->sort->service.reader.whole);
		LWLockRelease(&shared->ingest.lock);
		gpusort_rows_clear(own->sort->rows);
		gpusort_service_sort_release(own->sort);
	}
}

/* Shows others in gpusort_jobs that the ranges before this one have been emitted. */
void
gpusort_sort_set_show(GpuSortSortSet *set, uint32 range)
{
	for (int i = 0; i < set->count; i++)
		gpusort_service_sort_show(set->sorts[i]->sort, GPUSORT_PHASE_EMIT, set->sorts[i]->sorted->first_rows[range]);
}

/* Ends the sorts in the service, of which no row is wanted any more; what is known of them stays. */
void
gpusort_sort_set_release(GpuSortSortSet *set)
{
	for (int i = 0; i < set->count; i++)
	{
		gpusort_rows_clear(set->sorts[i]->sort->rows);
		gpusort_service_sort_release(set->sorts[i]->sort);
	}
}

/* Drops the sorts, in whatever state they are. */
void
gpusort_sort_set_end(GpuSortSortSet *set)
{
	for (int i = 0; i < set->count; i++)
	{
		GpuSortParallelSort *own = set->sorts[i];

		gpusort_parallel_sort_drop(own);
		gpusort_sort_end(own->sort);
		gpusort_parallel_ingest_reset(&own->ingest);
		own->refusal.reason = GPUSORT_REASON_NONE;
	}
	set->lost = false;
}
