/*-------------------------------------------------------------------------
 *
 * index.h
 *	  Builds of btree indexes by gpusort.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INDEX_H
#define GPUSORT_INDEX_H

#include "compat.h"

extern void gpusort_index_init(void);

#endif /* GPUSORT_INDEX_H */
