/*-------------------------------------------------------------------------
 *
 * place.h
 *	  A place in the finished plans of a statement, and what the steps of the pass over them know of it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PLACE_H
#define GPUSORT_PLACE_H

#include "compat.h"

#include "facts/parallel_safety.h"
#include "nodes/plannodes.h"
#include "plan/decisions.h"
#include "plan/finish/kept_rows.h"

/* A statement whose plans are finished. */
typedef struct GpuSortFinish
{
	PlannedStmt *stmt;
	bool rescannable; /* plans return the same rows, without side effects, if they are read again */
	GpuSortSafety safety;
	GpuSortDecisions *decisions; /* NULL if reasons are not wanted */
	int last_node_id;            /* 0 while it is not known */
} GpuSortFinish;

/* A place in the plans, described by what is above it. */
typedef struct GpuSortPlanPlace
{
	GpuSortFinish *finish;
	const Plan *above;       /* the plan right above, or NULL */
	int processes;           /* number of processes that run the plan here */
	const Limit *limit;      /* a Limit above that needs only the first rows, or NULL */
	GpuSortLooksAt looks_at; /* what the plan above looks at */
	bool foreign;            /* below another extension's node */
	bool in_ranges;          /* between GpuSortOutput and the GpuSorts below it */
	int rescan_param;        /* that of the Gather or Gather Merge above, or -1 */

	/* why a Gather Merge right above was not replaced together with the Sort, or NULL */
	const char *merge_why_not;
} GpuSortPlanPlace;

/* How a plan that cannot run as its path said is reported: as an error in builds that check plans. */
#ifdef GPUSORT_CHECK_PLANS
#define GPUSORT_BROKEN_PLAN ERROR
#else
#define GPUSORT_BROKEN_PLAN DEBUG1
#endif

extern int gpusort_finish_node_id(GpuSortFinish *finish);

#endif /* GPUSORT_PLACE_H */
