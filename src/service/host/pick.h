/*-------------------------------------------------------------------------
 *
 * pick.h
 *	  The first rows of each run of equal keys.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_HOST_PICK_H
#define GPUSORT_HOST_PICK_H

#include "service/host/sort_state.h"

extern int gpusort_host_pick(GpuSort *sort, GpuSortError *error);

#endif /* GPUSORT_HOST_PICK_H */
