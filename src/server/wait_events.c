/*-------------------------------------------------------------------------
 *
 * wait_events.c
 *	  What pg_stat_activity says that a process waits for.
 *
 * From PostgreSQL 17 on each kind of wait has an event of its own, of the type Extension;
 * before there is one for all, Extension.  doc/views.md tells what each means.
 *
 * The server has room for so many names of all extensions.  Where it is used up the process
 * waits as Extension, too: that is no reason for a query to fail.
 *
 *-------------------------------------------------------------------------
 */
#include "server/wait_events.h"

#include "miscadmin.h"
#include "storage/lwlock.h"
#include "utils/memutils.h"
#include "utils/wait_event.h"

#ifdef HAVE_WAIT_EVENT_NAMES
static const char *const wait_names[] = {
	[GPUSORT_WAIT_START] = "GpusortStart",
	[GPUSORT_WAIT_CONNECT] = "GpusortConnect",
	[GPUSORT_WAIT_STATUS] = "GpusortStatus",
	[GPUSORT_WAIT_QUEUE] = "GpusortQueue",
	[GPUSORT_WAIT_INGEST] = "GpusortIngest",
	[GPUSORT_WAIT_SORT] = "GpusortSort",
	[GPUSORT_WAIT_EMIT] = "GpusortEmit",
	[GPUSORT_WAIT_WORKERS] = "GpusortWorkers",
	[GPUSORT_WAIT_RANGES] = "GpusortRanges",
	[GPUSORT_WAIT_VERIFY] = "GpusortVerify",
	[GPUSORT_WAIT_EXCHANGE] = "GpusortExchange",
	[GPUSORT_WAIT_EXCHANGE_ROOM] = "GpusortExchangeRoom",
	[GPUSORT_WAIT_SUPERVISOR] = "GpusortSupervisorMain",
};

/* Finds the event of a name, or makes it; PG_WAIT_EXTENSION if there is no room for it. */
static uint32
find_event(const char *name)
{
	MemoryContext caller = CurrentMemoryContext;
	uint32 holdoff = InterruptHoldoffCount;
	volatile uint32 event = PG_WAIT_EXTENSION;

	PG_TRY();
	{
		event = WaitEventExtensionNew(name);
	}
	PG_CATCH();
	{
		/* Raising an error has forgotten who holds interrupts off: the lock, if it is held, and our callers */
		InterruptHoldoffCount = holdoff;
		if (LWLockHeldByMe(WaitEventCustomLock))
		{
			InterruptHoldoffCount++;
			LWLockRelease(WaitEventCustomLock);
		}
		MemoryContextSwitchTo(caller);
		FlushErrorState();
	}
	PG_END_TRY();
	return event;
}

/* Returns the wait event of a wait, for WaitLatch and its like. */
uint32
gpusort_wait_event(GpuSortWait wait)
{
	static uint32 events[lengthof(wait_names)]; /* 0: not known yet */

	/* All of them at once: pg_wait_events has the whole list then. */
	if (unlikely(events[wait] == 0))
	{
		for (int i = 0; i < lengthof(wait_names); i++)
			events[i] = find_event(wait_names[i]);
	}
	return events[wait];
}
#else
uint32
gpusort_wait_event(GpuSortWait wait)
{
	return PG_WAIT_EXTENSION;
}
#endif
