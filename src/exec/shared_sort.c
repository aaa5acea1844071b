/*-------------------------------------------------------------------------
 *
 * shared_sort.c
 *	  A GpuSort whose rows are put and read by several processes.
 *
 * The node below a GpuSortOutput, parallel-aware.  In the leader and in every worker it
 * puts the rows of its child, this process's part; when all have, the leader has
 * the rows sorted and cut into ranges, and each process reads those that its
 * GpuSortOutput claims.  Rows that are equal in info.range_columns are in one range.
 *
 * There may be several, below a merge join: they are cut at the same borders.  The
 * functions here are for all of one GpuSortOutput, which calls them in this order:
 *
 *	  leader		begin, before workers start, or refuse
 *	  each process	ingest: puts its part
 *	  leader		order, when all have (shared_order.c)
 *	  worker		open: to read, with a connection of its own; the order is verified now (joint_check.c)
 *	  each process	(ask; gpusort_stream_begin_range, and then the plan above reads the range)*
 *	  worker		close
 *	  leader		verify, when workers have ended; release
 *	  each process	end at any time: the next is begin or, in a worker, nothing
 *
 * Two ranges may be asked for: the one at hand and the next.  Within a range rows go
 * up as ever (stream.c), and so do ties, marks and long rows.  A rescan of the node is the
 * beginning of the range that was begun: the child is not read again.
 *
 * When the rows are lost (lose) the node says that there are no more, and sets
 * sorts->lost: what is above it in this process must be thrown away.  The leader
 * decides what comes of it: refuse has PostgreSQL sort in the leader alone.
 *
 * Memory: the connection, ties and whatever else is of one sort is in
 * sort_context; the shared memory is Gather's, or where there are no workers the query's.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/shared_sort.h"

#include "access/parallel.h"
#include "sort/collation_check.h"
#include "parallel/joint_ingest.h"
#include "sort/prefixes.h"
#include "exec/service_sort.h"
#include "exec/shared_sort_state.h"
#include "exec/sort_set.h"
#include "sort/ties.h"
#include "executor/executor.h"
#include "settings.h"

/* The node is one whose rows several processes read: makes what it needs for that. */
void
gpusort_shared_sort_create(GpuSortScanState *state)
{
	state->shared = palloc0(sizeof(GpuSortSharedSort));
	state->shared->joint.keys = state->keys;
	state->shared->joint.first = &state->first;
}

/*
 * The rows are lost: the node has no more, and what was made of them is void.  With a failure of reason NONE
 * they are just not wanted any more.
 */
void
gpusort_shared_sort_lose(GpuSortScanState *state, const GpuSortFailure *failure)
{
	state->stage = GPUSORT_STAGE_LOST;
	state->shared->failure = *failure;
	state->shared->sorts->lost = true;
}

/* This process puts no more rows into the sort of another, if it has not left that yet. */
void
gpusort_shared_sort_drop(GpuSortScanState *state)
{
	GpuSortJointIngest *joint = &state->shared->joint;

	if (joint->client != NULL)
		gpusort_client_end(joint->client);
	joint->client = NULL;
}

/* Returns why this process is to sort alone, or has lost its rows. */
const GpuSortFailure *
gpusort_shared_sort_failure(const GpuSortScanState *state)
{
	return &state->shared->failure;
}

/* Returns true if none of the rows that this process reads is wanted any more. */
bool
gpusort_shared_sort_is_stopped(const GpuSortScanState *state)
{
	return *state->shared->stop;
}

/* Returns the rows of all processes, which the leader has had sorted. */
GpuSortOrderedRows *
gpusort_shared_sort_rows(const GpuSortScanState *state)
{
	return state->shared->sorted;
}

Size
gpusort_shared_sort_estimate(CustomScanState *node, ParallelContext *pcxt)
{
	GpuSortScanState *state = (GpuSortScanState *) node;

	if (state->shared == NULL)
		return 0;
	return add_size(offsetof(GpuSortSortShared, joint), gpusort_joint_ingest_bytes(state->keys, pcxt->nworkers, false));
}

void
gpusort_shared_sort_reinitialize(CustomScanState *node, ParallelContext *pcxt, void *coordinate)
{
	GpuSortSharedSort *own = ((GpuSortScanState *) node)->shared;

	if (own == NULL || own->shared == NULL)
		return;
	SharedFileSetDeleteAll(&own->shared->files);
	own->shared->long_rows = false;
	own->shared->sorted.ranges = 0;
	own->shared->whole = (GpuSortWhole){0};
	own->shared->leader_put = (GpuSortPut){0};
	own->shared->outcome.key_bits = 0;
	gpusort_joint_ingest_publish(&own->joint);
}

void
gpusort_shared_sort_initialize(CustomScanState *node, ParallelContext *pcxt, void *coordinate)
{
	GpuSortSharedSort *own = ((GpuSortScanState *) node)->shared;
	GpuSortSortShared *shared = coordinate;

	/* Without a segment there is but this process. */
	if (own == NULL || pcxt->seg == NULL)
		return;
	shared->segment = dsm_segment_handle(pcxt->seg);
	SharedFileSetInit(&shared->files, pcxt->seg);
	shared->long_rows = false;
	shared->sorted.ranges = 0;
	shared->whole = (GpuSortWhole){0};
	shared->leader_put = (GpuSortPut){0};
	shared->outcome.key_bits = 0;
	gpusort_joint_ingest_create(&shared->joint, pcxt->nworkers, false);
	own->shared = shared;
	own->sorted = &shared->sorted;
	own->joint.shared = &shared->joint;
	gpusort_joint_ingest_publish(&own->joint);
}

void
gpusort_shared_sort_initialize_worker(CustomScanState *node, shm_toc *toc, void *coordinate)
{
	GpuSortSharedSort *own = ((GpuSortScanState *) node)->shared;
	GpuSortSortShared *shared = coordinate;

	/* GpuSortOutput has found out whether the leader's module is ours, and does not use the node if it is another. */
	if (own == NULL)
		return;
	own->shared = shared;
	own->sorted = &shared->sorted;
	own->joint.shared = &shared->joint;
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
 * reason, if they are others.  Says nothing of a sort of which some rows were read by nobody.
 */
static bool
verify_sort(const GpuSortScanState *state, GpuSortFailure *failure)
{
	const GpuSortSortShared *shared = state->shared->shared;
	const GpuSortExpected *expected = &state->shared->sorted->expected;
	GpuSortWhole whole = state->service.reader.whole;

	if (shared != NULL)
		add_whole(&whole, &shared->whole);
	return whole.rows != expected->rows || gpusort_reader_check_whole(expected, &whole, failure);
}

/* The same of all sorts. */
bool
gpusort_shared_sorts_verify(GpuSortSharedSorts *sorts, GpuSortFailure *failure)
{
	for (int i = 0; i < sorts->count; i++)
	{
		if (!verify_sort(sorts->sorts[i], failure))
			return false;
	}
	return true;
}

/*
 * The leader learns what came of a sort that any process has had done, for EXPLAIN and the statistics, and verifies it: while
 * the shared memory is there.
 */
static void
finish_sort(GpuSortScanState *state)
{
	GpuSortSharedSort *own = state->shared;

	if (own->shared == NULL || own->shared->outcome.key_bits == 0)
		return;
	if (state->figures.outcome.key_bits == 0)
	{
		state->figures.outcome = own->shared->outcome;
		state->figures.ms = own->shared->ms;
		state->service.unreported = true;
	}
	state->figures.pairs = own->shared->sorted.pairs;
	own->shared->outcome.key_bits = 0;
	(void) verify_sort(state, &own->unlike);
}

/* Does so for all sorts that have not done it; false, with a reason, if other rows were read of one than were put. */
bool
gpusort_shared_sorts_finish(GpuSortSharedSorts *sorts, GpuSortFailure *failure)
{
	for (int i = 0; i < sorts->count; i++)
	{
		GpuSortSharedSort *own = sorts->sorts[i]->shared;

		finish_sort(sorts->sorts[i]);
		*failure = own->unlike;
		own->unlike.reason = GPUSORT_REASON_NONE;
		if (failure->reason != GPUSORT_REASON_NONE)
			return false;
	}
	return true;
}

/* The shared memory goes after this. */
void
gpusort_shared_sort_shutdown(CustomScanState *node)
{
	GpuSortScanState *state = (GpuSortScanState *) node;
	GpuSortSharedSort *own = state->shared;

	if (own == NULL || own->shared == NULL)
		return;
	if (own->sorts != NULL && own->sorts->partial && !IsParallelWorker())
		finish_sort(state); /* before GpuSortOutput, whose shutdown comes later */
	gpusort_slots_clear(&state->slots);
	gpusort_overflow_close(&state->slots.overflow);
	own->shared = NULL;
	own->sorted = NULL;
	own->joint.shared = NULL;
}

/* Begins one of the sorts in the service; false, with a reason, if that is not to be. */
static bool
begin_sort(GpuSortScanState *state, GpuSortSharedSorts *sorts, GpuSortPrefix *prefixes, bool common_later,
		   GpuSortFailure *failure)
{
	GpuSortSharedSort *own = state->shared;

	state->fallback.reason.reason = GPUSORT_REASON_NONE;
	state->service.reader = (GpuSortReader){0};
	own->sorts = sorts;
	INSTR_TIME_SET_CURRENT(own->begun);
	gpusort_keys_lay_out(state->keys, prefixes, common_later);
	if (!gpusort_collation_check_allows(state->keys, failure))
		return false;
	if (!gpusort_service_sort_begin(state, failure))
		return false;
	gpusort_joint_ingest_start(&own->joint, &state->service.writer, state->keys, common_later);
	return true;
}

/*
 * Begins the sorts in the service, before workers start; false, with a reason, if that is not to be: then
 * refuse must follow.  readers: processes that will read the rows, if all that are planned start.
 */
bool
gpusort_shared_sorts_begin(GpuSortSharedSorts *sorts, int readers, GpuSortFailure *failure)
{
	GpuSortPrefix **prefixes;
	bool *common_later;

	if (gpusort_plan_state(sorts->sorts[0])->state->es_epq_active != NULL)
		return gpusort_failure_set(failure, GPUSORT_REASON_RECHECK, "a row is being rechecked after a concurrent update");
	if (!gpusort_allowed)
		return gpusort_failure_set(failure, GPUSORT_REASON_NOT_ALLOWED, "gpusort.allowed is off");
	sorts->lost = false;
	prefixes = palloc(sorts->count * sizeof(GpuSortPrefix *));
	common_later = palloc(sorts->count * sizeof(bool));
	for (int i = 0; i < sorts->count; i++)
	{
		GpuSortScanState *state = sorts->sorts[i];

		prefixes[i] = MemoryContextAlloc(state->sort_context, state->keys->strings * sizeof(GpuSortPrefix));
		common_later[i] = !gpusort_prefixes_choose(state->keys, gpusort_child(state), NULL, state->info.estimated_rows,
												   prefixes[i]);
		if (gpusort_prefixes_tell_little(state->keys, prefixes[i], failure))
			return false;
	}
	if (sorts->count > 1)
		gpusort_shared_sorts_unify(sorts, prefixes, common_later);
	else
		gpusort_shared_sorts_keep_ranges(sorts->sorts[0], prefixes[0]);
	for (int i = 0; i < sorts->count; i++)
	{
		sorts->sorts[i]->service.readers = readers;
		if (!begin_sort(sorts->sorts[i], sorts, prefixes[i], common_later[i], failure))
			return false;
	}
	return true;
}

/*
 * Has PostgreSQL sort, in this process alone: the next row asked for has the child read.  Whoever calls sees
 * to it that the child gives all rows then.
 */
void
gpusort_shared_sorts_refuse(GpuSortSharedSorts *sorts, const GpuSortFailure *failure)
{
	const GpuSortFailure reason = *failure;

	gpusort_shared_sorts_end(sorts);
	for (int i = 0; i < sorts->count; i++)
		sorts->sorts[i]->shared->failure = reason;
}

/* Has the children read from their starts where these parameters have changed. */
void
gpusort_shared_sorts_rescan(GpuSortSharedSorts *sorts, Bitmapset *changed)
{
	for (int i = 0; i < sorts->count; i++)
		UpdateChangedParamSet(gpusort_child(sorts->sorts[i]), changed);
}

/* Lets long rows of all processes be read by all. */
static void
share_long_rows(GpuSortScanState *state)
{
	GpuSortSharedSort *own = state->shared;
	MemoryContext caller;

	if (own->shared == NULL || state->slots.overflow.fileset != NULL)
		return;
	caller = MemoryContextSwitchTo(state->sort_context);
	if (IsParallelWorker())
		SharedFileSetAttach(&own->shared->files, dsm_find_mapping(own->shared->segment));
	gpusort_overflow_share(&state->slots.overflow, &own->shared->files, ParallelWorkerNumber + 1);
	MemoryContextSwitchTo(caller);
}

/* A worker joins a sort; false, with a reason, if it is to take no part in it. */
static bool
join_sort(GpuSortScanState *state, GpuSortFailure *failure)
{
	MemoryContext caller = MemoryContextSwitchTo(state->sort_context);
	bool joined = gpusort_joint_ingest_join(&state->shared->joint, state->form, &state->slots.overflow, failure);

	MemoryContextSwitchTo(caller);
	return joined;
}

/* The leader's rows are all put, and others may have them sorted; false, with a reason, if they are lost. */
static bool
leave_to_others(GpuSortScanState *state, GpuSortFailure *failure)
{
	GpuSortSharedSort *own = state->shared;

	if (own->shared == NULL)
		return true;
	if (!gpusort_writer_finish(&state->service.writer, failure) || !gpusort_client_leave(state->service.client, failure))
		return false;
	own->shared->leader_put = gpusort_writer_put(&state->service.writer);
	return true;
}

/* Puts this process's part of a sort's rows; false, with a reason, if the sort is full or lost. */
static bool
ingest_rows(GpuSortScanState *state, const volatile bool *stop, GpuSortFailure *failure)
{
	GpuSortJointIngest *joint = &state->shared->joint;

	(void) gpusort_joint_ingest_rows(joint, gpusort_child(state), stop, failure);
	if (failure->reason != GPUSORT_REASON_NONE)
		return false;
	gpusort_first_rows_clear(&state->first);
	if (state->slots.overflow.file != NULL && state->shared->shared != NULL)
	{
		gpusort_overflow_export(&state->slots.overflow);
		state->shared->shared->long_rows = true;
	}
	if (IsParallelWorker())
		return gpusort_joint_ingest_leave(joint, failure);
	return !state->shared->sorts->partial || leave_to_others(state, failure);
}

/*
 * Puts this process's part of the rows of each sort, or stops when *stop says that none are wanted; false, with a
 * reason, if one is full or lost.  A worker that cannot join a sort leaves its part to others, who find it in their
 * children; *whole becomes false then.
 */
bool
gpusort_shared_sorts_ingest(GpuSortSharedSorts *sorts, const volatile bool *stop, bool *whole, GpuSortFailure *failure)
{
	*whole = true;
	for (int i = 0; i < sorts->count && !*stop; i++)
	{
		GpuSortScanState *state = sorts->sorts[i];

		state->shared->sorts = sorts;
		if (IsParallelWorker())
			INSTR_TIME_SET_CURRENT(state->shared->begun);
		share_long_rows(state);
		if (IsParallelWorker() && !join_sort(state, failure))
		{
			if (failure->reason == GPUSORT_REASON_COLLATION)
				return false;
			*whole = false;
			ereport(DEBUG1,
					(errmsg_internal("gpusort: a parallel worker leaves its rows to others: %s", failure->text)));
			continue;
		}
		if (!ingest_rows(state, stop, failure))
			return false;
	}
	return true;
}

/* Returns true if this process has a part of the rows of any of the sorts that it has not put. */
bool
gpusort_shared_sorts_have_rows(GpuSortSharedSorts *sorts)
{
	for (int i = 0; i < sorts->count; i++)
	{
		if (!TupIsNull(ExecProcNode(gpusort_child(sorts->sorts[i]))))
			return true;
	}
	return false;
}

/* A worker joins a sort to read it, once it is sorted, or to have it sorted before; false, with a reason, if it cannot. */
static bool
open_sort(GpuSortScanState *state, bool sorted, GpuSortFailure *failure)
{
	GpuSortSharedSort *own = state->shared;
	GpuSortServiceSort *service = &state->service;
	MemoryContext caller;

	if (!gpusort_joint_ingest_lay_out_keys(&own->joint, failure))
		return false;
	caller = MemoryContextSwitchTo(state->sort_context);
	service->client = gpusort_client_join(own->shared->joint.token, own->shared->joint.generation, true, failure);
	if (service->client != NULL)
	{
		service->ties = gpusort_ties_create(state->info.columns + state->keys->exact_columns,
											state->info.ncolumns - state->keys->exact_columns, &state->slots);
		if (sorted)
			gpusort_reader_init(&service->reader, service->client, &own->sorted->expected);
	}
	MemoryContextSwitchTo(caller);
	return service->client != NULL;
}

/*
 * Lets a worker have the sorts' rows sorted, which all processes have put; false, with a reason, if it cannot:
 * another process is to do it.
 */
bool
gpusort_shared_sorts_join_to_order(GpuSortSharedSorts *sorts, GpuSortFailure *failure)
{
	int joined = 0;

	for (; joined < sorts->count; joined++)
	{
		GpuSortScanState *state = sorts->sorts[joined];

		if (!open_sort(state, false, failure))
			break;
		state->service.by_ranges = true;
		state->service.check_order = gpusort_verify_collation && gpusort_keys_by_libc(state->keys);
		state->figures.verified = state->shared->shared->joint.verified;
	}
	if (joined == sorts->count)
		return true;
	while (joined-- > 0)
	{
		GpuSortFailure ignored;

		/* Should it be lost with that, others will find it so. */
		(void) gpusort_client_leave(sorts->sorts[joined]->service.client, &ignored);
		gpusort_service_sort_release(sorts->sorts[joined]);
	}
	return false;
}

/*
 * Lets this process read ranges, once the rows are ordered, unless it may; false, with a reason, if it cannot.  stop
 * says, while it reads, that no rows are wanted any more.
 */
bool
gpusort_shared_sorts_open(GpuSortSharedSorts *sorts, const volatile bool *stop, GpuSortFailure *failure)
{
	sorts->lost = false;
	for (int i = 0; i < sorts->count; i++)
	{
		GpuSortScanState *state = sorts->sorts[i];

		state->shared->sorts = sorts;
		state->shared->stop = stop;
		share_long_rows(state);
		if (IsParallelWorker() && state->service.client == NULL && !open_sort(state, true, failure))
			return false;
		if (!IsParallelWorker() && sorts->partial && state->service.reader.client == NULL)
			gpusort_reader_init(&state->service.reader, state->service.client, &state->shared->sorted->expected);
	}
	return true;
}

/* Asks for the rows of a range, to be read after those asked for before; false, with a reason, if they are lost. */
bool
gpusort_shared_sorts_ask(GpuSortSharedSorts *sorts, uint32 range, GpuSortFailure *failure)
{
	for (int i = 0; i < sorts->count; i++)
	{
		GpuSortScanState *state = sorts->sorts[i];
		const uint64 *first = &state->shared->sorted->first_rows[range];

		if (!gpusort_reader_ask(&state->service.reader, first[0], first[1], failure))
			return false;
	}
	return true;
}

/* A worker reads no more; what it has read whole is added to what the others have. */
void
gpusort_shared_sorts_close(GpuSortSharedSorts *sorts)
{
	for (int i = 0; i < sorts->count; i++)
	{
		GpuSortScanState *state = sorts->sorts[i];
		GpuSortSortShared *shared = state->shared->shared;

		LWLockAcquire(&shared->joint.lock, LW_EXCLUSIVE);
		add_whole(&shared->whole, &state->service.reader.whole);
		LWLockRelease(&shared->joint.lock);
		gpusort_slots_clear(&state->slots);
		gpusort_service_sort_release(state);
	}
}

/* Shows others in gpusort_jobs that the ranges before this one have been emitted. */
void
gpusort_shared_sorts_show(GpuSortSharedSorts *sorts, uint32 range)
{
	for (int i = 0; i < sorts->count; i++)
	{
		GpuSortScanState *state = sorts->sorts[i];

		gpusort_service_sort_show(state, GPUSORT_PHASE_EMIT, state->shared->sorted->first_rows[range]);
	}
}

/* Ends the sorts in the service, of which no row is wanted any more; what is known of them stays. */
void
gpusort_shared_sorts_release(GpuSortSharedSorts *sorts)
{
	for (int i = 0; i < sorts->count; i++)
	{
		gpusort_slots_clear(&sorts->sorts[i]->slots);
		gpusort_service_sort_release(sorts->sorts[i]);
	}
}

/* Drops the sorts, in whatever state they are. */
void
gpusort_shared_sorts_end(GpuSortSharedSorts *sorts)
{
	for (int i = 0; i < sorts->count; i++)
	{
		GpuSortScanState *state = sorts->sorts[i];

		gpusort_shared_sort_drop(state);
		gpusort_end_sort(state);
		gpusort_joint_ingest_reset(&state->shared->joint);
		state->shared->failure.reason = GPUSORT_REASON_NONE;
	}
	sorts->lost = false;
}
