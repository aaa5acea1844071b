/*-------------------------------------------------------------------------
 *
 * range_scan.c
 *	  A sequential scan that reads ranges of blocks, those first that can have the first rows.
 *
 * Where so many first rows of a sort are wanted, and a BRIN index has its leading key, the ranges of the table's blocks
 * are read best first (block_ranges.c).  The sort finds these rows by itself (sort/top_rows.h), and tells of the last
 * of those that have come.  A range whose best value is behind it has no row that is wanted, and nor have those after
 * it: the scan has ended.  Where the sort tells nothing all ranges are read.
 *
 * Of unequal keys few more ranges are read than rows are wanted, however the rows lie, if each of those rows fulfils
 * the conditions and is still there: a range that is read has a row that is among the first.
 *
 * The scan is the node's own, with limits to its blocks, so all else stays PostgreSQL's.  It is begun here, for it is
 * not to be synchronised with others, and a few blocks may stay in the buffers.  A rescan of it for each range counts
 * as one scan.
 *
 * The index is read once, when the executor starts, for all readings: the snapshot of the statement stays the same.
 *
 * Legal order of calls: create; then for each reading of the rows begin, and while it is in use next, when the scan
 * has ended or is_between says so.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/range_scan.h"

#include "access/heapam.h"
#include "access/parallel.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "exec/block_ranges.h"
#include "executor/executor.h"
#include "pgstat.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/sortsupport.h"

struct GpuSortRangeScan
{
	SeqScanState *node;
	SortSupportData order; /* of the first sort column */
	GpuSortBlockRanges ranges;

	bool in_use;
	bool between; /* no range is being read */
	uint32 next;  /* range */
};

/*
 * The executor registers a statement's snapshot twice, for its QueryDesc and its EState; more often, if the statement
 * around has it, too.
 */
#define OWN_REGISTRATIONS 2

/*
 * Returns true if a snapshot may be much older than the statement that runs with it: in a transaction that has one for
 * all of its statements, and in a function that is not volatile, whose statements have that of the one around.  A
 * worker has a copy, of which nobody knows; and so may be taken for old what EXECUTE runs for a client.
 */
static bool
may_be_old(Snapshot snapshot)
{
	return IsolationUsesXactSnapshot() || IsParallelWorker() || snapshot->regd_count > OWN_REGISTRATIONS;
}

/*
 * Returns the scan of a node that reads ranges as the index says, for a sort by this column before others; NULL if the
 * index does not hold for the snapshot.  Belongs to the current memory context.
 */
GpuSortRangeScan *
gpusort_range_scan_create(SeqScanState *node, const GpuSortBlockIndex *index, const GpuSortColumn *column)
{
	const Snapshot snapshot = node->ss.ps.state->es_snapshot;
	GpuSortRangeScan *scan;

	/* The server that summarises knows nothing of a standby's snapshots. */
	if (!IsMVCCSnapshot(snapshot) || ((SUMMARIES_LACK_OLD_ROWS || RecoveryInProgress()) && may_be_old(snapshot)))
		return NULL;
	scan = palloc0(sizeof(GpuSortRangeScan));
	scan->node = node;
	scan->order.ssup_cxt = CurrentMemoryContext;
	scan->order.ssup_collation = column->collation;
	scan->order.ssup_nulls_first = column->nulls_first;
	PrepareSortSupportFromOrderingOp(column->sort_operator, &scan->order);
	scan->ranges = gpusort_block_ranges_read(node->ss.ss_currentRelation, index->index, index->column, &scan->order,
											 snapshot);
	return scan;
}

/* Begins with the first range, where ranges are to be read. */
void
gpusort_range_scan_begin(GpuSortRangeScan *scan, bool in_use)
{
	ScanState *node = &scan->node->ss;

	scan->in_use = in_use;
	scan->between = true;
	scan->next = 0;
	if (in_use && node->ss_currentScanDesc == NULL)
		node->ss_currentScanDesc = table_beginscan_strat(node->ss_currentRelation, node->ps.state->es_snapshot, 0, NULL,
														 false, false);
}

/* Begins with the first range again. */
void
gpusort_range_scan_restart(GpuSortRangeScan *scan)
{
	gpusort_range_scan_begin(scan, scan->in_use);
}

/* Returns true if the scan is read by ranges. */
bool
gpusort_range_scan_is_in_use(const GpuSortRangeScan *scan)
{
	return scan->in_use;
}

/* Returns true if no range is being read; then call next before you ask the scan for a row. */
bool
gpusort_range_scan_is_between(const GpuSortRangeScan *scan)
{
	return scan->between;
}

/* Returns true if a range may have a row that is not behind the threshold; NULL: there is none. */
static bool
may_have_first(GpuSortRangeScan *scan, const GpuSortBlockRange *range, GpuSortThreshold *threshold)
{
	if (threshold == NULL || !range->summarised)
		return true;
	threshold->settle(threshold);
	return !threshold->known ||
		ApplySortComparator(range->best, range->null, threshold->value, threshold->isnull, &scan->order) <
		(threshold->equal_wanted ? 1 : 0);
}

/* Goes to the next range; false if no other can have a row that the threshold, where it is not NULL, leaves. */
bool
gpusort_range_scan_next(GpuSortRangeScan *scan, GpuSortThreshold *threshold)
{
	PlanState *ps = &scan->node->ss.ps;
	const GpuSortBlockRange *range = &scan->ranges.ranges[scan->next];
	TableScanDesc desc;

	scan->between = true;
	if (scan->next == scan->ranges.count || !may_have_first(scan, range, threshold))
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

GpuSortRangeCounts
gpusort_range_scan_counts(const GpuSortRangeScan *scan)
{
	return (GpuSortRangeCounts){.in_use = scan->in_use, .read = scan->next, .ranges = scan->ranges.count};
}
