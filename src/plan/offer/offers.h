/*-------------------------------------------------------------------------
 *
 * offers.h
 *	  GpuSort in places of the plan that PostgreSQL chose.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_OFFERS_H
#define GPUSORT_OFFERS_H

#include "compat.h"

#include "nodes/pathnodes.h"

/* What has been offered while a statement is planned; planner.c keeps it. */
typedef struct GpuSortOffers GpuSortOffers;

extern GpuSortOffers *gpusort_offers_begin(bool wanted);
extern void gpusort_offers_end(GpuSortOffers *before);
extern bool gpusort_offers_are_wanted(void);
extern void gpusort_offer(const RelOptInfo *rel, const Path *native, Path *path);
extern void gpusort_offers_take(PlannerInfo *root, RelOptInfo *final_rel);

#endif /* GPUSORT_OFFERS_H */
