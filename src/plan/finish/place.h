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

/* A statement whose plans are finished. */
typedef struct GpuSortFinish
{
	PlannedStmt *stmt;
	bool rescannable; /* plans give the same rows, and do nothing more, when they are read again */
	GpuSortSafety safety;
	GpuSortDecisions *decisions; /* NULL: nobody wants the reasons */
	int last_node_id;            /* 0: not known yet */
} GpuSortFinish;

/* A place in the plans: what is above it. */
typedef struct GpuSortPlanPlace
{
	GpuSortFinish *finish;
	const Plan *above;  /* the plan right above; NULL: there is none */
	int processes;      /* that run the plan here */
	const Limit *limit; /* above, which asks for the first rows alone; NULL: all are asked for */
	bool foreign;       /* below another extension's node */
	bool in_ranges;     /* between GpuSortOutput and the GpuSorts below it */
	int rescan_param;   /* of the Gather, or Gather Merge, above; -1: there is none */

	/* of a Gather Merge right above, why it and the Sort were not replaced together; otherwise NULL */
	const char *merge_why_not;
} GpuSortPlanPlace;

/* What a plan that cannot run as its path said is: an error in builds that check plans. */
#ifdef GPUSORT_CHECK_PLANS
#define GPUSORT_BROKEN_PLAN ERROR
#else
#define GPUSORT_BROKEN_PLAN DEBUG1
#endif

extern int gpusort_finish_node_id(GpuSortFinish *finish);

#endif /* GPUSORT_PLACE_H */
