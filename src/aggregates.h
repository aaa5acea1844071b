/*-------------------------------------------------------------------------
 *
 * aggregates.h
 *	  What is known of PostgreSQL's aggregates.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_AGGREGATES_H
#define GPUSORT_AGGREGATES_H

#include "compat.h"

extern bool gpusort_aggregate_is_of_any_order(Oid aggregate);

#endif /* GPUSORT_AGGREGATES_H */
