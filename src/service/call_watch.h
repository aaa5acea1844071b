/*-------------------------------------------------------------------------
 *
 * call_watch.h
 *	  What engine call a thread is in, and since when, for the watchdog.
 *
 * Written by the thread, read by the main thread.  Time is the number of ticks that the main
 * thread has counted.  Waits for disks and for other threads are no engine calls.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_CALL_WATCH_H
#define GPUSORT_CALL_WATCH_H

#include <stdint.h>

/* Calls of GpuSortEngineOps, by name, and other work that may take a thread long. */
typedef enum GpuSortCallType
{
	GPUSORT_CALL_BEGIN,
	GPUSORT_CALL_RESERVE,
	GPUSORT_CALL_PUT,
	GPUSORT_CALL_SORT,
	GPUSORT_CALL_EMIT,
	GPUSORT_CALL_CUT,
	GPUSORT_CALL_SPACE, /* takes space in files */
	GPUSORT_CALL_END,
} GpuSortCallType;

/* Threads that a job may have besides its own. */
#define GPUSORT_JOB_LOADERS 4

typedef struct GpuSortCallWatch
{
	const uint32_t *ticks; /* atomic: counted by the main thread */
	uint32_t *steps;       /* atomic: number of engine calls and reads of runs that the job's threads have begun */
	int call;              /* atomic: 1 + GpuSortCallType, or 0 */
	uint32_t since;        /* atomic: tick when it was entered */
} GpuSortCallWatch;

/* The thread is in no call yet. */
static inline void
gpusort_watch_init(GpuSortCallWatch *watch, const uint32_t *ticks, uint32_t *steps)
{
	*watch = (GpuSortCallWatch){.ticks = ticks, .steps = steps};
}

/* The thread is in an engine call of that type from now on. */
static inline void
gpusort_watch_enter(GpuSortCallWatch *watch, GpuSortCallType type)
{
	__atomic_store_n(&watch->since, __atomic_load_n(watch->ticks, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
	__atomic_store_n(&watch->call, (int) type + 1, __ATOMIC_RELEASE);
	__atomic_fetch_add(watch->steps, 1, __ATOMIC_RELAXED);
}

/* The thread is in none. */
static inline void
gpusort_watch_leave(GpuSortCallWatch *watch)
{
	__atomic_store_n(&watch->call, 0, __ATOMIC_RELEASE);
}

#endif /* GPUSORT_CALL_WATCH_H */
