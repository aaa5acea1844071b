/*-------------------------------------------------------------------------
 *
 * mode.h
 *	  mode() of all rows, by counting the rows of each value.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_MODE_H
#define GPUSORT_MODE_H

#include "compat.h"

#include "nodes/pathnodes.h"

extern const Aggref *gpusort_mode_of(PlannerInfo *root, const AggPath *agg, const Path *rows);
extern Path *gpusort_mode_counts(PlannerInfo *root, const AggPath *agg, const Aggref *mode, Path *rows);
extern Path *gpusort_mode_most_frequent(PlannerInfo *root, const AggPath *agg, const Aggref *mode, Path *counts);

#endif /* GPUSORT_MODE_H */
