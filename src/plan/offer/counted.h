/*-------------------------------------------------------------------------
 *
 * counted.h
 *	  rank(), dense_rank(), percent_rank() and cume_dist() WITHIN GROUP, as numbers of rows.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_COUNTED_H
#define GPUSORT_COUNTED_H

#include "compat.h"

#include "nodes/primnodes.h"

extern Aggref *gpusort_counted_before(const Aggref *aggregate);
extern bool gpusort_counted_needs_all(const Aggref *aggregate);
extern Aggref *gpusort_counted_all(const Aggref *aggregate);
extern Expr *gpusort_counted_value(const Aggref *aggregate, Aggref *before, Aggref *all);

#endif /* GPUSORT_COUNTED_H */
