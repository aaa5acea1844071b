/*-------------------------------------------------------------------------
 *
 * rmg_plan.h
 *	  What the host decides in RMG sort (rmg_sort.cu): which buckets are split, which device
 *	  gets which keys, and what is sorted together.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_RMG_PLAN_H
#define GPUSORT_RMG_PLAN_H

#include "published/multi_devices.h"
#include "published/rmg_partition.h"

#define GPUSORT_RMG_SLACK_PARTS 200 /* of a chunk */

/* Keys with the same top `passes` digits. */
typedef struct GpuSortRmgBucket
{
	uint64_t prefix; /* these digits */
	int passes;
	uint64_t begin; /* among all keys */
	uint64_t count;
	int spanning; /* its number among those to split, or -1 */
} GpuSortRmgBucket;

/* A bucket's keys on a device. */
typedef struct GpuSortRmgPiece
{
	uint64_t offset; /* in keys[0] */
	uint64_t count;
} GpuSortRmgPiece;

/* Keys that go from a device's keys[0] to a device's keys[1]. */
typedef struct GpuSortRmgMove
{
	int from;
	int to;
	uint64_t from_offset;
	uint64_t to_offset;
	uint64_t count;
} GpuSortRmgMove;

/* Keys of a device that are sorted and downloaded together. */
typedef struct GpuSortRmgSegment
{
	uint64_t first;
	uint64_t count;
	uint64_t first_prefix;
	int passes;
	int bits; /* to sort by; 0: already in order */
} GpuSortRmgSegment;

typedef struct GpuSortRmgLane
{
	uint16_t *tiles;
	uint64_t *histograms; /* of each bucket to split */
	uint64_t *cursors;
	uint64_t *counted; /* histograms on the host */
	GpuSortRmgSegment *segments;
	uint64_t segment_count;
} GpuSortRmgLane;

struct GpuSortMultiContext
{
	GpuSortReferenceDevices devices;
	GpuSortRmgLane lanes[GPUSORT_MULTI_REFERENCE_DEVICES];
	uint64_t borders[GPUSORT_MULTI_REFERENCE_DEVICES + 1]; /* device d gets keys d to d + 1 */
	uint64_t bucket_limit;
	uint64_t bucket_count;
	GpuSortRmgBucket *buckets[2]; /* [1]: room for the next list */
	GpuSortRmgPiece *pieces[2];   /* of bucket b on device d: b * devices + d */
	GpuSortRmgMove *moves;
	uint64_t move_count;

	/* of the sort that runs */
	uint64_t rows;
	uint64_t chunk;
	uint64_t slack;
	int spanning_count;
};

/* Passes after which all bits of keys have been looked at. */
extern int gpusort_rmg_pass_limit(const GpuSortMultiContext *context);

/* Partition: all keys are one bucket; then, pass by pass, borders, and buckets split by the digits counted. */
extern void gpusort_rmg_begin_buckets(GpuSortMultiContext *context);
extern void gpusort_rmg_draw_borders(GpuSortMultiContext *context);
extern void gpusort_rmg_split_buckets(GpuSortMultiContext *context);

/* Exchange: context->moves */
extern void gpusort_rmg_plan_moves(GpuSortMultiContext *context);

/* Sort: the segments of device d's lane */
extern void gpusort_rmg_plan_segments(GpuSortMultiContext *context, int d);

#endif /* GPUSORT_RMG_PLAN_H */
