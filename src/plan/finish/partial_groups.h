/*-------------------------------------------------------------------------
 *
 * partial_groups.h
 *	  Makes processes group rows that the leader would group by grouping sets.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PARTIAL_GROUPS_H
#define GPUSORT_PARTIAL_GROUPS_H

#include "compat.h"

#include "plan/finish/place.h"

extern void gpusort_partial_groups_settle(GpuSortFinish *finish, Agg *agg);

#endif /* GPUSORT_PARTIAL_GROUPS_H */
