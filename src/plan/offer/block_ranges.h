/*-------------------------------------------------------------------------
 *
 * block_ranges.h
 *	  GpuSort of the first rows of a table, of which a BRIN index tells in which blocks they can be.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_OFFER_BLOCK_RANGES_H
#define GPUSORT_OFFER_BLOCK_RANGES_H

#include "compat.h"

#include "nodes/pathnodes.h"

extern Path *gpusort_block_ranges_path(PlannerInfo *root, const Path *path, double first);

#endif /* GPUSORT_OFFER_BLOCK_RANGES_H */
