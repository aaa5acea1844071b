/*-------------------------------------------------------------------------
 *
 * node_time.h
 *	  How long nodes take, for paths (path_time.c) and for finished plans (lift_time.c).
 *
 * In the unit of GpuSort's cost (cost.c), 5 us.  From bench/costs and bench/above.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_NODE_TIME_H
#define GPUSORT_NODE_TIME_H

#include "compat.h"

#include "miscadmin.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "settings.h"

/* Nanoseconds in units. */
#define NS(n) ((n) *0.0002)

/* Of a scan's cost, and of all that is not known: a unit is 2 us. */
#define OTHER_UNIT 0.4

/* Through the exchange: the leader reads them, those who make them share the rest. */
#define EXCHANGE_ROW         NS(20)
#define EXCHANGE_ROW_WRITTEN NS(60)

/* What a process that reads ranges does before its first row and after its last: 100,000 rows do not pay for fifteen. */
#define RANGES_START (0.7 * gpusort_setup_cost)

/* Processes that share work do not get all of what they add. */
#define PROCESS_GAIN 0.85

/* Aggregates: a transition, and what each group has of them; with a state by value, or one of its own. */
#define TRANSITION       NS(15)
#define TRANSITION_STATE NS(45)
#define GROUP_TRANSITION NS(15)
#define GROUP_STATE      NS(90)
/* one with DISTINCT or ORDER BY, which sorts the rows of each group */
#define TRANSITION_SORT  NS(300)

/* Over rows that are in order */
#define SORTED_ROW   NS(30)
#define SORTED_GROUP NS(60)
#define UNIQUE_ROW   NS(45)
#define SETOP_ROW    NS(60)
#define MERGE_ROW    NS(60)
#define JOINED_ROW   NS(40)

extern double gpusort_window_row_time(List *columns, Index window, List *run_condition, bool over_gpusort);

/* Adds what an aggregate's transition takes for a row and for a group; state says whether it has one that is not a value. */
static inline void
gpusort_add_transition_times(bool state, double *row, double *group)
{
	*row += state ? TRANSITION_STATE : TRANSITION;
	*group += state ? GROUP_STATE : GROUP_TRANSITION;
}

/* How many processes read ranges, where so many workers are planned: a leader of many workers has enough to do with their rows. */
static inline double
gpusort_range_processes(int workers)
{
	return Min(workers, max_parallel_workers) + (workers < 4 ? 1 : 0);
}

/* What takes so long in one process, in several that read ranges, if so many rows come of it. */
static inline double
gpusort_time_in_ranges(double above, double rows, double processes)
{
	return RANGES_START * processes + above / (processes * PROCESS_GAIN) +
		rows * (EXCHANGE_ROW + EXCHANGE_ROW_WRITTEN / processes);
}

#endif /* GPUSORT_NODE_TIME_H */
