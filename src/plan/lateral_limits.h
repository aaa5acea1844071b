/*-------------------------------------------------------------------------
 *
 * lateral_limits.h
 *	  Asks for the first rows of all groups at once where a statement asks for those of one group after another.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_LATERAL_LIMITS_H
#define GPUSORT_LATERAL_LIMITS_H

#include "compat.h"

#include "nodes/params.h"
#include "nodes/parsenodes.h"

extern Query *gpusort_lateral_limits_as_windows(const Query *query, ParamListInfo params);

#endif /* GPUSORT_LATERAL_LIMITS_H */
