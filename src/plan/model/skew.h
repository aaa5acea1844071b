/*-------------------------------------------------------------------------
 *
 * skew.h
 *	  Groups of which a few have a large part of the rows, as far as statistics say.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SKEW_H
#define GPUSORT_SKEW_H

#include "compat.h"

#include "nodes/pathnodes.h"

typedef struct GpuSortSkew
{
	double largest;  /* fraction of the rows in the largest group; 0 if it is not known */
	double frequent; /* fraction of the rows in all frequent groups */
	double more;     /* expected number of groups divided by PostgreSQL's estimate */
} GpuSortSkew;

extern GpuSortSkew gpusort_path_skew(PlannerInfo *root, const Path *path);

#endif /* GPUSORT_SKEW_H */
