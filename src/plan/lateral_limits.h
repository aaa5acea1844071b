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

extern bool gpusort_has_lateral_limit(const Query *query);
extern bool gpusort_lateral_limits_as_windows(Query *query, ParamListInfo params);

#endif /* GPUSORT_LATERAL_LIMITS_H */
