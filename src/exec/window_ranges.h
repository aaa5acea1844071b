/*-------------------------------------------------------------------------
 *
 * window_ranges.h
 *	  A window below a GpuSortOutput that goes on from one range of the sorted rows to the next.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_WINDOW_RANGES_H
#define GPUSORT_WINDOW_RANGES_H

#include "compat.h"

#include "exec/nodes.h"
#include "node.h"
#include "nodes/execnodes.h"
#include "parallel/claims.h"
#include "utils/dsa.h"

/* In shared memory.  The leader writes it before ranges are totalled or published. */
typedef struct GpuSortWindowShared
{
	bool continued;     /* ranges continue from others */
	uint32 ranges;      /* in totals */
	dsa_pointer totals; /* array of dsa_pointers to each range's total, which the process that claimed it writes */
} GpuSortWindowShared;

/* In each process; for window_ranges.c only. */
typedef struct GpuSortWindowRanges
{
	WindowAggState *window; /* a window that continues from range to range, or NULL */
	GpuSortScanState *scan; /* right below it */
	ExecProcNodeMtd native; /* PostgreSQL's way to run the window, if it reads rows near a range */
	dsa_area *area;         /* of totals */
	uint32 added;           /* number of ranges whose totals the window has added */

	/* about the current range, if rows near it are read with it */
	uint64 skip;        /* number of rows before it */
	uint64 keep;        /* number of its own rows */
	uint64 left;        /* own rows left */
	uint64 left_before; /* rows before it that are left */

	int passes; /* passes over the rows, in the leader, for EXPLAIN; 0 if rows were not divided */
} GpuSortWindowRanges;

extern void gpusort_window_ranges_init(GpuSortWindowRanges *ranges, PlanState *plan, const GpuSortOutputInfo *info,
									   GpuSortNodes *nodes);
extern void gpusort_window_ranges_reset(GpuSortWindowRanges *ranges);
extern void gpusort_window_ranges_free(GpuSortWindowShared *shared, dsa_area *area);
extern bool gpusort_window_ranges_lead(GpuSortWindowRanges *ranges, GpuSortNodes *nodes, GpuSortWindowShared *shared,
									   GpuSortClaims *claims, uint32 count, GpuSortFailure *failure);
extern void gpusort_window_ranges_join(GpuSortWindowRanges *ranges, GpuSortNodes *nodes,
									   const GpuSortWindowShared *shared);
extern bool gpusort_window_ranges_follow(GpuSortWindowRanges *ranges, GpuSortNodes *nodes,
										 const GpuSortWindowShared *shared, GpuSortClaims *claims,
										 GpuSortFailure *failure);
extern void gpusort_window_ranges_lead_all(GpuSortWindowRanges *ranges, GpuSortNodes *nodes);
extern void gpusort_window_ranges_begin(GpuSortWindowRanges *ranges, const GpuSortNodes *nodes,
										const GpuSortWindowShared *shared);
extern const char *gpusort_window_ranges_text(const GpuSortWindowRanges *ranges);

#endif /* GPUSORT_WINDOW_RANGES_H */
