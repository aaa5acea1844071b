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

#include "nodes/pathnodes.h"

extern bool gpusort_index_may_serve_command(const PlannerInfo *root, Oid table);
extern void gpusort_index_init(void);

#endif /* GPUSORT_INDEX_H */
