/*-------------------------------------------------------------------------
 *
 * build.h
 *	  Builds a btree by a sort in the service.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_BUILD_H
#define GPUSORT_BUILD_H

#include "compat.h"

#include "access/genam.h"
#include "nodes/execnodes.h"

extern IndexBuildResult *gpusort_index_build(Relation heap, Relation index, IndexInfo *info);

#endif /* GPUSORT_BUILD_H */
