/*-------------------------------------------------------------------------
 *
 * presorted.h
 *	  Takes sorts out of aggregates whose rows come in order.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PRESORTED_H
#define GPUSORT_PRESORTED_H

#include "compat.h"

#include "plan/finish/place.h"

extern void gpusort_presorted_settle(const GpuSortPlanPlace *place, Agg *agg);

#endif /* GPUSORT_PRESORTED_H */
