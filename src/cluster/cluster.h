/*-------------------------------------------------------------------------
 *
 * cluster.h
 *	  CLUSTER by gpusort.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_CLUSTER_H
#define GPUSORT_CLUSTER_H

#include "compat.h"

extern void gpusort_cluster_init(void);

#endif /* GPUSORT_CLUSTER_H */
