/*-------------------------------------------------------------------------
 *
 * run_counts.h
 *	  Groups that are counted where they are sorted.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_RUN_COUNTS_H
#define GPUSORT_RUN_COUNTS_H

#include "compat.h"

#include "nodes/pathnodes.h"

extern Path *gpusort_run_counts_path(PlannerInfo *root, Path *path);

#endif /* GPUSORT_RUN_COUNTS_H */
