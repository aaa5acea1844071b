/*-------------------------------------------------------------------------
 *
 * planner.h
 *	  Where GpuSort goes into plans, and what the plan tells the executor.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PLANNER_H
#define GPUSORT_PLANNER_H

#include "compat.h"

#include "access/htup_details.h"
#include "keys.h"
#include "nodes/plannodes.h"

#define GPUSORT_NODE_NAME			"GpuSort"
#define GPUSORT_INGEST_NODE_NAME	"GpuSortIngest"

/* What a finished plan of either node carries in custom_private. */
typedef struct GpuSortPlanInfo
{
	GpuSortColumn *columns;
	int			ncolumns;
	bool		rescannable;	/* the child gives the same rows when read again */
	uint64		estimated_rows;
	uint32		estimated_width;	/* bytes of a row's data */
} GpuSortPlanInfo;

extern void gpusort_planner_init(void);
extern void gpusort_plan_unpack(const CustomScan *plan, GpuSortPlanInfo *info);

/* Bytes of a row in a chunk, for a width as the planner estimates it. */
static inline uint64
gpusort_row_bytes(uint32 width)
{
	return MAXALIGN(SizeofMinimalTupleHeader) + MAXALIGN(width);
}

#endif							/* GPUSORT_PLANNER_H */
