/*-------------------------------------------------------------------------
 *
 * executor.h
 *	  The GpuSort and GpuSortIngest nodes at run time: all that others call.
 *
 * Plans name the nodes by the method tables in node.h.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_EXECUTOR_H
#define GPUSORT_EXECUTOR_H

#include "compat.h"

extern void gpusort_executor_init(void);

#endif /* GPUSORT_EXECUTOR_H */
