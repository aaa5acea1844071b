/*-------------------------------------------------------------------------
 *
 * parallel_sort.c
 *	  A sort whose rows several processes put, and read by ranges, or the leader alone.
 *
 * The leader and every worker put the rows of the sort's source, which are this process's part (parallel_ingest.c);
 * when all have, one process lets the service sort the rows and cut them into ranges, and each process reads those that
 * it claims.
 * Rows that are equal in range_columns are in one range.
 *
 * Two ranges may be asked for: the current one and the next.  Within a range rows are read
 * as those of any sort are, with ties, marks and long rows.
 *
 * Long rows are in files of a set that all processes open.
 *
 * Where the leader alone reads the rows nothing is done with ranges: there are none but those by which the processes
 * verify the order.  It reads the sort as it does one of its own, which falls back by itself, and which is a parallel
 * one in the service only if its order is verified.  Long rows come to the leader (exec/ingest.c), whose file no
 * other process opens.
 *
 *-------------------------------------------------------------------------
 */
#include "parallel/parallel_sort.h"

#include "access/parallel.h"
#include "parallel/parallel_ingest.h"
#include "server/reasons.h"
#include "server/statistics.h"
#include "sort/collation_check.h"
#include "sort/service_sort.h"
#include "storage/sharedfileset.h"

/* In dynamic shared memory. */
typedef struct ParallelSortShared
{
	dsm_handle segment;
	SharedFileSet files;
	bool long_rows; /* somebody has put some into the files */
	GpuSortOrderedRows sorted;
	GpuSortPut leader_put;  /* once the leader has left the ingest to others, if workers order */
	GpuSortOutcome outcome; /* this and the times are for EXPLAIN in the leader, whoever has ordered the rows */
	GpuSortTimes ms;
	GpuSortWhole whole;                 /* ranges that workers have read to their ends; guarded by ingest.lock */
	GpuSortParallelIngestShared ingest; /* variable length: must be last field */
} ParallelSortShared;

struct GpuSortParallelSort
{
	GpuSortState *sort;
	int range_columns;          /* rows that are equal in so many leading columns are in one range; 0: all rows are */
	bool leader_reads;          /* all rows, and not by ranges */
	ParallelSortShared *shared; /* NULL: there are no workers */
	GpuSortOrderedRows *sorted; /* shared's, or this process's own */
	GpuSortParallelIngest ingest;
	bool workers_order;     /* as in GpuSortSortSet */
	GpuSortFailure refusal; /* why PostgreSQL is to sort, in this process alone; reason NONE: it is not */
	GpuSortFailure unlike;  /* what was read is not what was put; reason NONE: nothing was found wrong */
	MemoryContext context;
};

/*
 * Makes a parallel sort of a sort; range_columns is as in the struct.  part: the leader alone reads it, and this is the
 * process's part of the rows, not the sort's own input; NULL: all read it.  It belongs to the current memory context.
 */
GpuSortParallelSort *
gpusort_parallel_sort_create(GpuSortState *sort, int range_columns, GpuSortInput *part)
{
	GpuSortParallelSort *own = palloc0(sizeof(GpuSortParallelSort));

	own->sort = sort;
	own->range_columns = range_columns;
	own->ingest.keys = sort->keys;
	own->leader_reads = part != NULL;
	own->ingest.input = part != NULL ? part : &sort->input;
	own->context = CurrentMemoryContext;
	return own;
}

/* Returns this process's part in the ingest, for one whose rows the leader alone reads. */
GpuSortParallelIngest *
gpusort_parallel_sort_part(GpuSortParallelSort *own)
{
	return &own->ingest;
}

GpuSortState *
gpusort_parallel_sort_sort(const GpuSortParallelSort *own)
{
	return own->sort;
}

int
gpusort_parallel_sort_range_columns(const GpuSortParallelSort *own)
{
	return own->range_columns;
}

bool
gpusort_parallel_sort_leader_reads(const GpuSortParallelSort *own)
{
	return own->leader_reads;
}

/* Returns why PostgreSQL has to sort, in this process alone; its reason is NONE if the service takes the sort. */
const GpuSortFailure *
gpusort_parallel_sort_refusal(const GpuSortParallelSort *own)
{
	return &own->refusal;
}

/* Returns the rows of all processes, which one of them has ordered. */
GpuSortOrderedRows *
gpusort_parallel_sort_rows(const GpuSortParallelSort *own)
{
	return own->sorted;
}

/* Drops this process's part in another's sort, if it has not left that yet: it puts no more rows. */
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
	return add_size(offsetof(ParallelSortShared, ingest), gpusort_parallel_ingest_bytes(&own->ingest, nworkers));
}

/* Sets what is shared back to the start: no process has put a row. */
static void
start_shared(GpuSortParallelSort *own)
{
	ParallelSortShared *shared = own->shared;

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
	gpusort_parallel_ingest_create(&own->ingest, &own->shared->ingest, nworkers);
	start_shared(own);
}

/* Starts over what the processes share: workers are about to start again; the sort may have been begun, or not. */
void
gpusort_parallel_sort_reinitialize(GpuSortParallelSort *own)
{
	if (own->shared == NULL)
		return;
	SharedFileSetDeleteAll(&own->shared->files);
	start_shared(own);
}

/* Lets a sort, in a worker, use what the leader has made in shared memory. */
void
gpusort_parallel_sort_attach(GpuSortParallelSort *own, void *shared)
{
	own->shared = shared;
	own->sorted = &own->shared->sorted;
	own->ingest.shared = &own->shared->ingest;
}

/*
 * Begins the sort in the service, with keys of these prefixes.  Returns false, with a reason, if it cannot.
 * common_later: the keys' common prefixes are chosen later, by whoever has rows.
 */
bool
gpusort_parallel_sort_begin(GpuSortParallelSort *own, const GpuSortPrefix *prefixes, bool common_later,
							int participants, bool workers_order, GpuSortFailure *failure)
{
	GpuSortState *sort = own->sort;

	own->workers_order = workers_order;
	sort->reason.reason = GPUSORT_REASON_NONE;
	sort->service.reader = (GpuSortReader){0};
	INSTR_TIME_SET_CURRENT(sort->begun);
	gpusort_keys_lay_out(sort->keys, prefixes, common_later);
	if (own->leader_reads && !gpusort_service_sort_checks_order(sort))
		participants = 0;
	if (!gpusort_collation_check_allows(sort->keys, failure) ||
		!gpusort_service_sort_begin(sort, participants, failure))
		return false;
	gpusort_parallel_ingest_start(&own->ingest, &sort->service.writer, sort->keys, common_later);
	return true;
}

/* Leaves the sort, which is ended, to PostgreSQL, in this process alone. */
void
gpusort_parallel_sort_refuse(GpuSortParallelSort *own, const GpuSortFailure *reason)
{
	own->refusal = *reason;
}

/* Lets all processes read the long rows of all. */
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

/* Joins the ingest, in a worker; false, with a reason, if it is to take no part in it. */
static bool
join_ingest(GpuSortParallelSort *own, GpuSortFailure *failure)
{
	MemoryContext caller = MemoryContextSwitchTo(own->sort->context);
	bool joined = gpusort_parallel_ingest_join(&own->ingest, &own->sort->rows->overflow, failure);

	MemoryContextSwitchTo(caller);
	return joined;
}

/* Leaves the leader's rows, which are all put, for others to order; false, with a reason, if they are lost. */
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

/* Puts this process's part of the rows; false, with a reason, if the sort is full or lost. */
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
 * Puts this process's part of the rows; false, with a reason, if the sort is full or lost.  A worker that cannot join
 * leaves its part to others, and *whole becomes false.
 */
bool
gpusort_parallel_sort_ingest(GpuSortParallelSort *own, bool workers_order, const volatile bool *stop, bool *whole,
							 GpuSortFailure *failure)
{
	own->workers_order = workers_order;
	if (IsParallelWorker())
		INSTR_TIME_SET_CURRENT(own->sort->begun);
	share_long_rows(own);
	if (IsParallelWorker() && !join_ingest(own, failure))
	{
		if (failure->reason == GPUSORT_REASON_COLLATION)
			return false;
		*whole = false;
		ereport(DEBUG1,
				(errmsg_internal("gpusort: a parallel worker leaves its rows to others: %s", failure->text)));
		return true;
	}
	return ingest_rows(own, stop, failure);
}

/*
 * Joins the sort, in a worker, to read it once it is sorted, or before to order it; false, with a reason, if it
 * cannot.
 */
bool
gpusort_parallel_sort_join(GpuSortParallelSort *own, bool sorted, GpuSortFailure *failure)
{
	return gpusort_parallel_ingest_lay_out_keys(&own->ingest, failure) &&
		gpusort_service_sort_join(own->sort, own->shared->ingest.token, own->shared->ingest.generation,
								  sorted ? &own->sorted->expected : NULL, own->shared->ingest.verified, failure);
}

/* Orders the rows that all processes have put: the service sorts them; false, with a reason, if they are lost. */
bool
gpusort_parallel_sort_order(GpuSortParallelSort *own, GpuSortFailure *failure)
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
	if (!gpusort_service_sort_order(sort, &put, gpusort_service_sort_first(sort, false), &own->sorted->expected, failure))
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

/*
 * Cuts the rows into ranges that differ in so many leading bits of the key, so many ranges at most, at the borders of
 * like if that is another sort; false, with a reason, if the rows are lost.
 */
bool
gpusort_parallel_sort_cut(GpuSortParallelSort *own, const GpuSortParallelSort *like, uint32 bits, uint32 most,
						  GpuSortFailure *failure)
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

/*
 * Lets this process read ranges, once the rows are ordered, unless it may; false, with a reason, if it cannot.  *stop
 * says, while it reads, that no rows are wanted any more; *lost becomes true if rows are lost.
 */
bool
gpusort_parallel_sort_open(GpuSortParallelSort *own, const volatile bool *stop, bool *lost, GpuSortFailure *failure)
{
	GpuSortState *sort = own->sort;

	if (!own->leader_reads)
	{
		sort->stop = stop;
		sort->lost = lost;
		share_long_rows(own);
	}
	else if (IsParallelWorker() && (own->sorted->expected.flags & GPUSORT_ROW_OVERFLOW))
		return gpusort_failure_set(failure, GPUSORT_REASON_UNAVAILABLE, "the leader has long rows");
	if (IsParallelWorker() && sort->service.client == NULL && !gpusort_parallel_sort_join(own, true, failure))
		return false;
	if (!IsParallelWorker() && own->workers_order && sort->service.reader.client == NULL)
		gpusort_service_sort_open(sort, &own->sorted->expected, sort->service.unreported);
	/* The leader may have come too late to put rows. */
	gpusort_parallel_ingest_settle_common_prefixes(&own->ingest);
	return true;
}

static void
add_whole(GpuSortWhole *sum, const GpuSortWhole *whole)
{
	sum->rows += whole->rows;
	sum->bytes += whole->bytes;
	sum->sum += whole->sum;
	sum->count += whole->count;
}

/* Ends a worker's reading; adds what it has read whole to what the others have. */
void
gpusort_parallel_sort_close(GpuSortParallelSort *own)
{
	ParallelSortShared *shared = own->shared;

	LWLockAcquire(&shared->ingest.lock, LW_EXCLUSIVE);
	add_whole(&shared->whole, &own->sort->service.reader.whole);
	LWLockRelease(&shared->ingest.lock);
	gpusort_rows_clear(own->sort->rows);
	gpusort_service_sort_release(own->sort);
}

/*
 * Compares the rows that all processes have read with those that were put, when workers have ended; false, with a
 * reason, if they are others.  Says nothing of a sort some of whose rows nobody has read, unless all rows are to stay
 * on disk.
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
 * Lets the leader learn what came of the sort, which any process may have had done, for EXPLAIN and the statistics, and
 * verifies it.  The shared memory must be there still.
 */
static void
finish_sort(GpuSortParallelSort *own)
{
	ParallelSortShared *shared = own->shared;

	if (own->sorted == NULL || (shared != NULL && shared->outcome.key_bits == 0))
		return;
	if (shared != NULL)
	{
		gpusort_service_sort_learn(own->sort, &shared->outcome, &shared->ms, shared->sorted.pairs);
		shared->outcome.key_bits = 0;
	}
	(void) verify_sort(own, &own->unlike);
}

/* Does so unless it has been done; false, with a reason, if other rows were read than were put. */
bool
gpusort_parallel_sort_finish(GpuSortParallelSort *own, GpuSortFailure *failure)
{
	finish_sort(own);
	*failure = own->unlike;
	own->unlike.reason = GPUSORT_REASON_NONE;
	return failure->reason == GPUSORT_REASON_NONE;
}

/* Returns true if some rows are in files that processes share, as they are long. */
bool
gpusort_parallel_sort_has_long_rows(const GpuSortParallelSort *own)
{
	return own->shared != NULL && own->shared->long_rows;
}

/* For gpusort_sort_set_keep; no long rows may be there. */
void
gpusort_parallel_sort_keep(GpuSortParallelSort *own, const volatile bool *stop)
{
	ParallelSortShared *shared = own->shared;

	if (shared == NULL)
		return;
	Assert(!shared->long_rows);
	if (shared->outcome.key_bits != 0)
		gpusort_service_sort_learn(own->sort, &shared->outcome, &shared->ms, shared->sorted.pairs);
	add_whole(&own->sort->service.reader.whole, &shared->whole);
	gpusort_overflow_close(&own->sort->rows->overflow);
	own->sort->stop = stop;
	own->sorted = MemoryContextAlloc(own->context, sizeof(GpuSortOrderedRows));
	*own->sorted = shared->sorted;
	own->shared = NULL;
	own->ingest.shared = NULL;
}

/* Lets go of the shared memory, which goes after this. */
void
gpusort_parallel_sort_detach(GpuSortParallelSort *own)
{
	if (own->shared == NULL)
		return;
	if (own->workers_order && !IsParallelWorker())
		finish_sort(own); /* before the set's finish, which comes too late */
	if (!own->leader_reads)
	{
		gpusort_rows_clear(own->sort->rows);
		gpusort_overflow_close(&own->sort->rows->overflow);
	}
	own->shared = NULL;
	own->sorted = NULL;
	own->ingest.shared = NULL;
}

/*
 * Moves the rows that all processes have put into PostgreSQL's sort, which has the others, where the leader alone reads
 * them.  full says why.
 */
void
gpusort_parallel_sort_take_back(GpuSortParallelSort *own, const GpuSortFailure *full)
{
	GpuSortPut put = {0};

	gpusort_parallel_ingest_collect(&own->ingest, &put);
	(void) gpusort_sort_take_back(own->sort, &put, full);
}

/* Drops the sort, in whatever state it is. */
void
gpusort_parallel_sort_end(GpuSortParallelSort *own)
{
	gpusort_parallel_sort_drop(own);
	gpusort_sort_end(own->sort);
	gpusort_parallel_ingest_reset(&own->ingest);
	own->refusal.reason = GPUSORT_REASON_NONE;
}
