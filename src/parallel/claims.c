/*-------------------------------------------------------------------------
 *
 * claims.c
 *	  How far the processes of a parallel sort are, and whose each range of its rows is.
 *
 * LEGAL ORDER OF CALLS
 *	leader				create once, and start before workers start, each time
 *	worker				are_ours, before all else
 *	each participant	register, before it reads a row, and if that returns true sign_off, when it has put its part;
 *						await_task, until it is to read, or no rows are wanted; next, until there is no range left
 *	anybody				stop, at any time
 *
 *	A participant does what await_task returns before it calls it again.  For ORDER it calls begin_parts, next_part and
 *	done_part until there is no part left, and finish_parts, for each phase that is needed, and then publish; or, instead
 *	of all this, yield_order.  For VERIFY and TOTAL it calls next_part and done_part until there is no part left.
 *	Instead of next, the leader may ask for the owner of each range in rising order.
 *
 * The last of those that have registered to sign off seals the ingest, if one of them has found the end of the rows.
 * Nobody waits for a process that has not registered, and one that has waits for nobody before it has signed off: the
 * leader may be the last to come, or busy with rows that workers send (exec/output.c).
 *
 * Ranges are claimed in rising order, so that the leader, which emits them in that order, never waits for
 * one whose turn among the workers is far off.
 *
 *-------------------------------------------------------------------------
 */
#include "parallel/claims.h"

#include "access/parallel.h"
#include "miscadmin.h"
#include "server/installation.h"
#include "server/shared.h"
#include "server/wait_events.h"
#include "storage/latch.h"

/* Makes what is shared; start must follow. */
void
gpusort_claims_create(GpuSortClaims *claims)
{
	claims->build = gpusort_module_build();
	claims->leader = MyProc;
	ConditionVariableInit(&claims->changed);
	gpusort_shared_init_lock(&claims->lock);
}

/*
 * Returns true if this process takes part: a worker that has loaded another build than its leader, after make install,
 * must leave everything to others.
 */
bool
gpusort_claims_are_ours(const GpuSortClaims *claims)
{
	return claims->build == gpusort_module_build();
}

/* Sets the state back to the start of a run: nothing ingested, no ranges. */
void
gpusort_claims_start(GpuSortClaims *claims)
{
	claims->stop = false;
	claims->registered = 0;
	claims->signed_off = 0;
	claims->sealed = false;
	claims->published = false;
	claims->whole = 0;
	claims->ordering = false;
	claims->taken = false;
	claims->ranges = 0;
	claims->next = 0;
	claims->phase = GPUSORT_PARTS_NONE;
	claims->parts = 0;
	claims->next_part = 0;
	claims->done_parts = 0;
	claims->failure.reason = GPUSORT_REASON_NONE;
}

/* Makes all processes look at what has changed. */
static void
wake_all(GpuSortClaims *claims)
{
	ConditionVariableBroadcast(&claims->changed);
	SetLatch(&claims->leader->procLatch);
}

/*
 * Ends the work of all processes.  failure says why, unless another reason was noted first; NULL: the rows are just not
 * wanted any more.
 */
void
gpusort_claims_stop(GpuSortClaims *claims, const GpuSortFailure *failure)
{
	LWLockAcquire(&claims->lock, LW_EXCLUSIVE);
	if (!claims->stop && failure != NULL)
		claims->failure = *failure;
	claims->stop = true;
	LWLockRelease(&claims->lock);
	wake_all(claims);
}

/* Registers a process that is about to read rows; false if it comes too late for that, and must find none. */
bool
gpusort_claims_register(GpuSortClaims *claims)
{
	bool sealed;

	LWLockAcquire(&claims->lock, LW_EXCLUSIVE);
	sealed = claims->sealed;
	if (!sealed)
		claims->registered++;
	LWLockRelease(&claims->lock);
	return !sealed;
}

/*
 * Signs off a process that has registered and has put its rows; whole: all that it found, up to the end.  Seals the
 * ingest if all have, and somebody found the end: what a process has left to others they have put.
 */
void
gpusort_claims_sign_off(GpuSortClaims *claims, bool whole)
{
	LWLockAcquire(&claims->lock, LW_EXCLUSIVE);
	claims->signed_off++;
	claims->whole += whole;
	claims->sealed = claims->whole > 0 && claims->registered == claims->signed_off;
	LWLockRelease(&claims->lock);
	wake_all(claims);
}

/* Returns how many processes have signed off with all that they found, and wait for a task now. */
int
gpusort_claims_waiting(GpuSortClaims *claims)
{
	int waiting;

	LWLockAcquire(&claims->lock, LW_SHARED);
	waiting = claims->stop ? 0 : claims->whole;
	LWLockRelease(&claims->lock);
	return waiting;
}

/* Returns what a process is to do, or NONE; ORDER is claimed with that, for this process alone. */
static GpuSortClaimsTask
find_task(GpuSortClaims *claims, bool orders, GpuSortPartsPhase done)
{
	GpuSortClaimsTask task = GPUSORT_TASK_NONE;

	LWLockAcquire(&claims->lock, LW_EXCLUSIVE);
	if (claims->published)
		task = GPUSORT_TASK_READ;
	else if (claims->phase > done)
		task = claims->phase == GPUSORT_PARTS_VERIFY ? GPUSORT_TASK_VERIFY : GPUSORT_TASK_TOTAL;
	else if (claims->sealed && !claims->ordering && orders)
	{
		claims->ordering = true;
		task = GPUSORT_TASK_ORDER;
	}
	LWLockRelease(&claims->lock);
	return task;
}

/*
 * Waits until there is something to do, and returns it.  orders: the process may order the rows; done: the last
 * of the phases that it has taken part in.
 */
GpuSortClaimsTask
gpusort_claims_await_task(GpuSortClaims *claims, bool orders, GpuSortPartsPhase done)
{
	const GpuSortWait wait = IsParallelWorker() ? GPUSORT_WAIT_RANGES : GPUSORT_WAIT_WORKERS;
	GpuSortClaimsTask task = GPUSORT_TASK_NONE;

	ConditionVariablePrepareToSleep(&claims->changed);
	while (!claims->stop && (task = find_task(claims, orders, done)) == GPUSORT_TASK_NONE)
		ConditionVariableSleep(&claims->changed, gpusort_wait_event(wait));
	ConditionVariableCancelSleep();
	return task;
}

/* Leaves the order to another process, since the one that was to order the rows cannot. */
void
gpusort_claims_yield_order(GpuSortClaims *claims)
{
	LWLockAcquire(&claims->lock, LW_EXCLUSIVE);
	claims->ordering = false;
	LWLockRelease(&claims->lock);
	wake_all(claims);
}

/* Returns true to the first process that asks, which is to do everything alone. */
bool
gpusort_claims_take_all(GpuSortClaims *claims)
{
	bool first;

	LWLockAcquire(&claims->lock, LW_EXCLUSIVE);
	first = !claims->taken;
	claims->taken = true;
	LWLockRelease(&claims->lock);
	return first;
}

/*
 * Begins a phase of so many parts of the rows, which are in order as far as their keys say.  A phase that was begun
 * before must be finished.
 */
void
gpusort_claims_begin_parts(GpuSortClaims *claims, GpuSortPartsPhase phase, uint32 parts)
{
	LWLockAcquire(&claims->lock, LW_EXCLUSIVE);
	claims->parts = parts;
	claims->next_part = 0;
	claims->done_parts = 0;
	claims->phase = phase;
	LWLockRelease(&claims->lock);
	wake_all(claims);
}

/* Waits until all parts are done, of which none is left to claim, or stop. */
void
gpusort_claims_finish_parts(GpuSortClaims *claims)
{
	const GpuSortWait wait = claims->phase == GPUSORT_PARTS_VERIFY ? GPUSORT_WAIT_VERIFY : GPUSORT_WAIT_WORKERS;
	bool finished = false;

	ConditionVariablePrepareToSleep(&claims->changed);
	while (!claims->stop && !finished)
	{
		LWLockAcquire(&claims->lock, LW_SHARED);
		finished = claims->done_parts == claims->parts;
		LWLockRelease(&claims->lock);
		if (!finished)
			ConditionVariableSleep(&claims->changed, gpusort_wait_event(wait));
	}
	ConditionVariableCancelSleep();
}

/* Claims the next part of a phase; returns its number, or -1 if there is none. */
int
gpusort_claims_next_part(GpuSortClaims *claims, GpuSortPartsPhase phase)
{
	int part = -1;

	LWLockAcquire(&claims->lock, LW_EXCLUSIVE);
	if (!claims->stop && claims->phase == phase && claims->next_part < claims->parts)
		part = claims->next_part++;
	LWLockRelease(&claims->lock);
	return part;
}

/* Notes that a part is done; adds its pairs of neighbours that are in order to *sum, which is shared, or NULL. */
void
gpusort_claims_done_part(GpuSortClaims *claims, uint64 *sum, uint64 pairs)
{
	bool finished;

	LWLockAcquire(&claims->lock, LW_EXCLUSIVE);
	if (sum != NULL)
		*sum += pairs;
	finished = ++claims->done_parts == claims->parts;
	LWLockRelease(&claims->lock);
	if (finished)
		wake_all(claims);
}

/* Publishes so many ranges, into which the rows have been cut, and which may be claimed from now on. */
void
gpusort_claims_publish(GpuSortClaims *claims, uint32 ranges)
{
	LWLockAcquire(&claims->lock, LW_EXCLUSIVE);
	claims->ranges = ranges;
	claims->published = true;
	LWLockRelease(&claims->lock);
	wake_all(claims);
}

/* Claims the next range for a process; returns its number, or -1 if there is none. */
int
gpusort_claims_next(GpuSortClaims *claims, int process)
{
	int range = -1;

	LWLockAcquire(&claims->lock, LW_EXCLUSIVE);
	if (!claims->stop && claims->next < claims->ranges)
	{
		range = claims->next++;
		claims->owners[range] = process;
	}
	LWLockRelease(&claims->lock);
	return range;
}

/* Returns true if a range has been claimed, or none will be. */
bool
gpusort_claims_begun(GpuSortClaims *claims)
{
	bool begun;

	LWLockAcquire(&claims->lock, LW_SHARED);
	begun = claims->stop || claims->ranges == 0 || claims->next > 0;
	LWLockRelease(&claims->lock);
	return begun;
}

/*
 * Returns the process that has claimed this range; if none has, claims it for the leader.  All ranges before it must
 * have been claimed.
 */
int
gpusort_claims_owner(GpuSortClaims *claims, uint32 range)
{
	int owner;

	LWLockAcquire(&claims->lock, LW_EXCLUSIVE);
	if (claims->next == range)
		claims->owners[claims->next++] = GPUSORT_LEADER_PROCESS;
	owner = claims->owners[range];
	LWLockRelease(&claims->lock);
	return owner;
}
