/*-------------------------------------------------------------------------
 *
 * participants.c
 *	  What each participant of a parallel sort does until ranges of its rows can be read.
 *
 * The leader and its workers do the same, in this order:
 *
 *	1. ingest: a process registers before it reads a row, puts its part of the rows, and signs off when the service
 *	   has confirmed them.  The last to sign off seals the ingest; whoever comes later must find no row.
 *	2. await_ranges: one of the processes that may do so orders the rows and cuts them into ranges.  It verifies their
 *	   order, if that is wanted (order_check.c), and finds out what ranges come to, where somebody needs
 *	   that (total); the other processes take part in both.  Then it publishes the ranges.
 *	3. open: lets this process read.  Ranges are then claimed (claims.h) and read (sort_set.h).
 *
 * Where the leader alone reads the rows it is the same, but that processes put theirs by themselves, as rows may come
 * up to the leader, which signs off last (exec/ingest.c); the others are done when the ranges are published.
 *
 * A process waits for others that put rows, or sort them, and these wait for nobody but the service.  A worker that
 * the service does not let put, sort or read rows, because it has no chunks for it, leaves that to others.
 *
 * Where the service takes no part, each process sorts its part by PostgreSQL's sort (sort_part), and one of them merges
 * the parts (merge_parts), which come from there by temporary files.
 *
 * What goes wrong in any process is noted in the claims and ends the work of all, without an error here: the
 * caller knows whether there is another way to the rows.
 *
 *-------------------------------------------------------------------------
 */
#include "parallel/participants.h"

#include "access/parallel.h"
#include "parallel/order_check.h"
#include "parallel/sort_set.h"

/* Logs that a worker leaves to others what it cannot do itself. */
static void
leave_to_others(const char *what, const GpuSortFailure *failure)
{
	ereport(DEBUG1,
			(errmsg_internal("gpusort: a parallel worker leaves %s to others: %s", what, failure->text)));
}

/* Registers this process for its part of the rows.  Returns false if it comes too late: a row is an error then. */
static bool
register_part(const GpuSortParticipant *own)
{
	if (gpusort_claims_register(own->claims))
		return true;
	if (!own->claims->stop && gpusort_sort_set_have_rows(own->set))
		elog(ERROR, "a process has rows that came too late to be sorted");
	return false;
}

/* Puts this process's part of the rows, unless it comes too late. */
void
gpusort_participant_ingest(const GpuSortParticipant *own)
{
	GpuSortClaims *claims = own->claims;
	GpuSortFailure failure;
	bool whole;

	if (!register_part(own))
		return;
	if (!gpusort_sort_set_ingest(own->set, &claims->stop, &whole, &failure))
	{
		gpusort_claims_stop(claims, &failure);
		whole = false;
	}
	gpusort_claims_sign_off(claims, whole);
}

/* Sorts this process's part of the rows by PostgreSQL's sort, unless it comes too late. */
void
gpusort_participant_sort_part(const GpuSortParticipant *own)
{
	if (!register_part(own))
		return;
	gpusort_sort_set_sort_part(own->set);
	gpusort_claims_sign_off(own->claims, true);
}

/*
 * Waits until all parts are sorted, and merges them in this process, which is the only one to have rows then; false if
 * it is another, or no rows are wanted any more.  The claims' failure says why PostgreSQL sorts.
 */
bool
gpusort_participant_merge_parts(const GpuSortParticipant *own)
{
	GpuSortClaims *claims = own->claims;

	if (gpusort_claims_await_task(claims, true, GPUSORT_PARTS_NONE) != GPUSORT_TASK_ORDER)
		return false;
	gpusort_claims_publish(claims, 0); /* which the others wait for */
	gpusort_sort_set_merge_parts(own->set, claims->signed_off, &claims->failure);
	return true;
}

/*
 * Orders the rows, verifies and totals them with the other participants, and publishes the ranges; false if another
 * process is to do that, since this one cannot.
 */
static bool
order(const GpuSortParticipant *own)
{
	GpuSortFailure failure;
	uint32 ranges;

	if (IsParallelWorker() && !gpusort_sort_set_join_to_order(own->set, &failure))
	{
		leave_to_others("the sort", &failure);
		gpusort_claims_yield_order(own->claims);
		return false;
	}
	if (gpusort_sort_set_order(own->set, own->processes, &ranges, &failure) &&
		gpusort_sort_set_open(own->set, &own->claims->stop, &failure) &&
		gpusort_order_check_lead(own->set, own->claims, own->processes, &failure) &&
		(own->total == NULL || own->total(own->arg, true, ranges, &failure)))
		gpusort_claims_publish(own->claims, ranges);
	else
		gpusort_claims_stop(own->claims, &failure);
	return true;
}

/* Takes part in what is done with parts of the sorted rows; false if this process cannot read them. */
static bool
follow(const GpuSortParticipant *own, GpuSortPartsPhase phase)
{
	GpuSortFailure failure;
	bool good;

	if (!gpusort_participant_open(own))
		return false;
	if (phase == GPUSORT_PARTS_VERIFY)
		good = gpusort_order_check_follow(own->set, own->claims, &failure);
	else
		good = own->total(own->arg, false, 0, &failure);
	if (!good)
		gpusort_claims_stop(own->claims, &failure);
	return true;
}

/*
 * Does what this process can do until the ranges are published.  false if no rows are wanted any more, as when they are
 * lost (the claims' stop and failure), or this process cannot read them.
 */
bool
gpusort_participant_await_ranges(const GpuSortParticipant *own)
{
	GpuSortPartsPhase done = GPUSORT_PARTS_NONE;
	bool orders = own->set->workers_order || !IsParallelWorker();

	for (;;)
	{
		switch (gpusort_claims_await_task(own->claims, orders, done))
		{
			case GPUSORT_TASK_NONE:
				return false;
			case GPUSORT_TASK_ORDER:
				orders = order(own);
				break;
			case GPUSORT_TASK_VERIFY:
				done = GPUSORT_PARTS_VERIFY;
				if (!follow(own, done))
					return false;
				break;
			case GPUSORT_TASK_TOTAL:
				done = GPUSORT_PARTS_TOTAL;
				if (!follow(own, done))
					return false;
				break;
			case GPUSORT_TASK_READ:
				return true;
		}
	}
}

/* Lets this process read the rows, which are in order, unless it may already; false if it cannot. */
bool
gpusort_participant_open(const GpuSortParticipant *own)
{
	GpuSortFailure failure;

	if (gpusort_sort_set_open(own->set, &own->claims->stop, &failure))
		return true;
	/* The process that has ordered the rows reads all that others do not. */
	leave_to_others("all ranges", &failure);
	return false;
}
