/*-------------------------------------------------------------------------
 *
 * junk.h
 *	  Takes sort keys that nobody asked for out of the rows that are emitted.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_JUNK_H
#define GPUSORT_JUNK_H

#include "compat.h"

#include "nodes/plannodes.h"

extern void gpusort_junk_remove(PlannedStmt *stmt);

#endif /* GPUSORT_JUNK_H */
