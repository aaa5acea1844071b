/*-------------------------------------------------------------------------
 *
 * range_scan.c
 *	  A sequential scan that reads ranges of blocks, those first that can have the first rows.
 *
 * Where so many first rows of a sort are wanted, and a BRIN index has its leading key, the ranges of the table's blocks
 * are read best first (block_ranges.c), and rows that are behind as many others are dropped as they come
 * (first_keys.c).  When so many rows have come, the scan ends before the first range whose best value is behind all of
 * them: no row of it, or of a later range, is wanted.
 *
 * Of unequal keys no more ranges are read than rows are wanted, however the rows lie, if each of those rows fulfils the
 * conditions and is still there: a range that is read has a row that is among the first.
 *
 * The scan is the node's own, with limits to its blocks, so all else stays PostgreSQL's.  It is begun here, for it is
 * not to be synchronised with others, and a few blocks may stay in the buffers.  A rescan of it for each range counts
 * as one scan.
 *
 * The index is read once, when the executor starts, for all readings: the snapshot of the statement stays the same.
 *
 * Legal order of calls: create; then for each reading of the rows begin, and while it is in use next, when the scan
 * has ended or is_between says so, and keep for the rows of each batch.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/range_scan.h"

#include "access/heapam.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "exec/block_ranges.h"
#include "exec/first_keys.h"
#include "executor/executor.h"
#include "pgstat.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

struct GpuSortRangeScan
{
	SeqScanState *node;
	int key; /* of the values of a row, the place of the first sort column's */
	GpuSortFirstKeys *first;
	GpuSortBlockRanges ranges;

	uint64 wanted; /* rows; 0: it is not in use */
	bool between;  /* no range is being read */
	uint32 next;   /* range */
};

/*
 * Returns the scan of a node that reads ranges as the index says, for a sort by these columns of its rows; NULL if the
 * index does not hold for the snapshot.  Belongs to the current memory context.
 */
GpuSortRangeScan *
gpusort_range_scan_create(SeqScanState *node, const GpuSortBlockIndex *index, const GpuSortColumn *columns,
						  int ncolumns)
{
	GpuSortRangeScan *scan;

	if (!IsMVCCSnapshot(node->ss.ps.state->es_snapshot) || (SUMMARIES_LACK_OLD_ROWS && IsolationUsesXactSnapshot()))
		return NULL;
	scan = palloc0(sizeof(GpuSortRangeScan));
	scan->node = node;
	scan->key = columns[0].attno - 1;
	scan->first = gpusort_first_keys_create(columns, ncolumns);
	scan->ranges = gpusort_block_ranges_read(node->ss.ss_currentRelation, index->index, index->column,
											 gpusort_first_keys_order(scan->first));
	return scan;
}

/* Begins with the first range; so many rows are wanted, 0: all. */
void
gpusort_range_scan_begin(GpuSortRangeScan *scan, uint64 wanted)
{
	ScanState *node = &scan->node->ss;

	scan->wanted = wanted <= GPUSORT_FIRST_KEYS_MAX ? wanted : 0;
	scan->between = true;
	scan->next = 0;
	if (scan->wanted == 0)
		return;
	gpusort_first_keys_reset(scan->first, scan->wanted);
	if (node->ss_currentScanDesc == NULL)
		node->ss_currentScanDesc = table_beginscan_strat(node->ss_currentRelation, node->ps.state->es_snapshot, 0, NULL,
														 false, false);
}

/* Begins with the first range again, for as many rows. */
void
gpusort_range_scan_restart(GpuSortRangeScan *scan)
{
	gpusort_range_scan_begin(scan, scan->wanted);
}

/* Returns true if the scan is read by ranges. */
bool
gpusort_range_scan_is_in_use(const GpuSortRangeScan *scan)
{
	return scan->wanted > 0;
}

/* Returns true if no range is being read; then call next before you ask the scan for a row. */
bool
gpusort_range_scan_is_between(const GpuSortRangeScan *scan)
{
	return scan->between;
}

/* Goes to the next range; false if no other can have a row that is wanted. */
bool
gpusort_range_scan_next(GpuSortRangeScan *scan)
{
	PlanState *ps = &scan->node->ss.ps;
	const GpuSortBlockRange *range = &scan->ranges.ranges[scan->next];
	TableScanDesc desc;

	scan->between = true;
	if (scan->next == scan->ranges.count ||
		(range->summarised && !gpusort_first_keys_may_hold(scan->first, range->best, range->null)))
		return false;
	if (scan->next == 0 && ps->chgParam != NULL)
		ExecReScan(ps);
	desc = scan->node->ss.ss_currentScanDesc;
	table_rescan(desc, NULL);
	if (pgstat_should_count_relation(desc->rs_rd))
		TABLE_SCANS_COUNTED(desc->rs_rd)
	--;
	heap_setscanlimits(desc, range->start, range->blocks);
	scan->next++;
	scan->between = false;
	return true;
}

/* Keeps those of n rows that can be among the first, and returns how many. */
int
gpusort_range_scan_keep(GpuSortRangeScan *scan, GpuSortRow *rows, int n)
{
	GpuSortFirstKeys *first = scan->first;
	int taken = 0;
	int kept = 0;

	for (int i = 0; i < n; i++)
	{
		if (gpusort_first_keys_take(first, rows[i].values[scan->key], rows[i].nulls[scan->key]))
			rows[taken++] = rows[i];
	}
	/* Of rows in the opposite order each displaces one before it. */
	for (int i = 0; i < taken; i++)
	{
		if (gpusort_first_keys_hold(first, rows[i].values[scan->key], rows[i].nulls[scan->key]))
			rows[kept++] = rows[i];
	}
	return kept;
}

GpuSortRangeCounts
gpusort_range_scan_counts(const GpuSortRangeScan *scan)
{
	return (GpuSortRangeCounts){.in_use = scan->wanted > 0, .read = scan->next, .ranges = scan->ranges.count};
}
