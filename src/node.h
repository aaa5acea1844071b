/*-------------------------------------------------------------------------
 *
 * plan_info.h
 *	  What a finished plan tells the executor.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PLAN_INFO_H
#define GPUSORT_PLAN_INFO_H

#include "compat.h"

#include "access/htup_details.h"
#include "keys/keys.h"
#include "nodes/extensible.h"
#include "nodes/plannodes.h"

#define GPUSORT_NODE_NAME        "GpuSort"
#define GPUSORT_INGEST_NODE_NAME "GpuSortIngest"

/* What a finished plan of either node carries in custom_private. */
typedef struct GpuSortPlanInfo
{
	GpuSortColumn *columns;
	int ncolumns;
	bool rescannable; /* the child gives the same rows when read again */
	int given;        /* so many of the first columns are given out; the others are for sorting */
	uint64 estimated_rows;
	uint32 estimated_width; /* bytes of a row's data */
} GpuSortPlanInfo;

extern List *gpusort_plan_pack(const Sort *sort);
extern void gpusort_plan_unpack(const CustomScan *plan, GpuSortPlanInfo *info);
extern void gpusort_plan_move_keys(CustomScan *plan, const AttrNumber *new_attnos);
extern void gpusort_plan_set_rescannable(CustomScan *plan, bool rescannable);
extern void gpusort_plan_set_given(CustomScan *plan, int given);

extern bool gpusort_plan_is(const Plan *plan, const CustomScanMethods *methods);
typedef void (*GpuSortPlanCallback)(Plan **child, void *arg);
extern void gpusort_plan_each_child(Plan *plan, GpuSortPlanCallback callback, void *arg);

/* Bytes of a row in a chunk, for a width as the planner estimates it. */
static inline uint64
gpusort_row_bytes(uint32 width)
{
	return MAXALIGN(SizeofMinimalTupleHeader) + MAXALIGN(width);
}

#endif /* GPUSORT_PLAN_INFO_H */
