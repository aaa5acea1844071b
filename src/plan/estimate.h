/*-------------------------------------------------------------------------
 *
 * estimate.h
 *	  How long a statement takes by the model, and what gpusort saves of it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ESTIMATE_H
#define GPUSORT_ESTIMATE_H

#include "compat.h"

#include "nodes/parsenodes.h"
#include "nodes/plannodes.h"

/* In nanoseconds.  Does not contain what processes save by sharing the work above a sort. */
typedef struct GpuSortEstimate
{
	double native; /* the plan without gpusort */
	double saved;  /* negative if gpusort.force makes it take longer */
} GpuSortEstimate;

extern PlannedStmt *gpusort_estimate_plan(Query *query, const char *text, GpuSortEstimate *estimate);
extern bool gpusort_estimate_is_wanted(void);
extern void gpusort_estimate_add(double native, double saved);

#endif /* GPUSORT_ESTIMATE_H */
