/*-------------------------------------------------------------------------
 *
 * aggregate_numbers.h
 *	  The numbers of a finished plan's aggregates.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_AGGREGATE_NUMBERS_H
#define GPUSORT_AGGREGATE_NUMBERS_H

#include "compat.h"

#include "nodes/plannodes.h"

extern bool gpusort_aggregates_are_numbered(const Agg *agg);
extern void gpusort_number_aggregates(Agg *agg);

#endif /* GPUSORT_AGGREGATE_NUMBERS_H */
