/*-------------------------------------------------------------------------
 *
 * junk.h
 *	  Takes sort keys that nobody asked for out of the rows that are emitted.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_JUNK_H
#define GPUSORT_JUNK_H

#include "compat.h"

#include "plan/finish/place.h"

extern void gpusort_junk_remove_of_subquery(GpuSortFinish *finish, SubqueryScan *scan);
extern void gpusort_junk_remove(GpuSortFinish *finish, Plan *plan);

#endif /* GPUSORT_JUNK_H */
