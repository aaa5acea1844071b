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
	double largest;  /* part of the rows that the largest group has; 0: not known */
	double frequent; /* that all frequent ones have together */
	double more;     /* so many times as many groups as PostgreSQL estimates are to be expected */
} GpuSortSkew;

extern GpuSortSkew gpusort_path_skew(PlannerInfo *root, const Path *path);

#endif /* GPUSORT_SKEW_H */
