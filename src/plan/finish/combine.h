/*-------------------------------------------------------------------------
 *
 * combine.h
 *	  Splits an aggregate of all rows into those of parts of them, and one that puts these together.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_COMBINE_H
#define GPUSORT_COMBINE_H

#include "compat.h"

#include "nodes/plannodes.h"

extern bool gpusort_combine_may(const Agg *agg);
extern Agg *gpusort_combine_split(Agg *agg, int plan_node_id);

#endif /* GPUSORT_COMBINE_H */
