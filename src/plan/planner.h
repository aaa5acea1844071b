/*-------------------------------------------------------------------------
 *
 * planner.h
 *	  Where GpuSort goes into plans.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PLANNER_H
#define GPUSORT_PLANNER_H

#include "compat.h"

extern void gpusort_planner_init(void);
extern bool gpusort_planner_is_hooked(void);

#endif /* GPUSORT_PLANNER_H */
