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

/* In shared memory: the leader's to write, before ranges are totalled or published. */
typedef struct GpuSortWindowShared
{
	bool continued;     /* ranges go on from others */
	uint32 ranges;      /* in totals */
	dsa_pointer totals; /* of dsa_pointers, by range: what each comes to, for who has claimed it to write */
} GpuSortWindowShared;

/* In each process: for window_ranges.c alone. */
typedef struct GpuSortWindowRanges
{
	WindowAggState *window; /* NULL: there is none that goes on */
	GpuSortScanState *scan; /* right below it */
	ExecProcNodeMtd native; /* how the window runs by itself, where it reads rows near a range */
	dsa_area *area;         /* of totals */
	uint32 added;           /* ranges of which the window has added what they come to */

	/* of the current range, where rows near it are read with it */
	uint64 skip;        /* rows before it */
	uint64 keep;        /* its own */
	uint64 left;        /* of these */
	uint64 left_before; /* of those before it */

	int passes; /* over the rows, in the leader: for EXPLAIN; 0: they were not shared out */
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
extern void gpusort_window_ranges_begin(GpuSortWindowRanges *ranges, const GpuSortNodes *nodes,
										const GpuSortWindowShared *shared);
extern const char *gpusort_window_ranges_text(const GpuSortWindowRanges *ranges);

#endif /* GPUSORT_WINDOW_RANGES_H */
