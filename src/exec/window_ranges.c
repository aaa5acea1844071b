/*-------------------------------------------------------------------------
 *
 * window_ranges.c
 *	  A window below a GpuSortOutput that goes on from one range of the sorted rows to the next.
 *
 * The rows of a window without PARTITION BY, or with few partitions, are cut where no partition ends.  A range gets
 * what its rows need of those before in one of two ways, which the GpuSort's plan names:
 *
 *	  - Running windows (running.c): in a first pass over the rows processes find out what each range comes to, range by
 *		range as they claim them, and leave that in shared memory.  When all have, each process adds up what the ranges
 *		before its next one come to, in their order, and makes the window go on from there.  No first pass is needed where
 *		it is enough to know how many rows there are before the range.
 *	  - Windows that need rows near a row: a range is read with so many rows before it and behind it, of which
 *		PostgreSQL's WindowAgg computes the values, too, which are thrown away.
 *
 * The first pass runs the window alone, without what is above it.  Since nothing has been emitted then, there is a way
 * back, as from the sort.
 *
 * Whether ranges are cut so is found out when the rows have been sorted (sort_set.c): where partitions are small
 * enough none goes on, and there is one pass.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/window_ranges.h"

#include "exec/running.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "parallel/sort_set.h"

/* Returns the WindowAgg below ps that is right above a GpuSort. */
static WindowAggState *
find_window(PlanState *ps, PlanState *scan)
{
	while (outerPlanState(ps) != scan)
		ps = IsA(ps, SubqueryScanState) ? ((SubqueryScanState *) ps)->subplan : outerPlanState(ps);
	return castNode(WindowAggState, ps);
}

/* Emits the next row of a range, as the window's ExecProcNode, where rows near the range are read with it. */
static TupleTableSlot *
exec_near(PlanState *ps)
{
	GpuSortWindowRanges *ranges = ((GpuSortScanState *) outerPlanState(ps))->window;

	if (((WindowAggState *) ps)->all_first)
	{
		ranges->left_before = ranges->skip;
		ranges->left = ranges->keep;
	}
	for (; ranges->left_before > 0; ranges->left_before--)
	{
		TupleTableSlot *row = ranges->native(ps);

		if (TupIsNull(row))
			return NULL; /* they are lost */
	}
	if (ranges->left == 0)
		return NULL;
	ranges->left--;
	return ranges->native(ps);
}

/* Begins the window that goes on in a finished plan, if there is one; it and the GpuSort below must have been begun. */
void
gpusort_window_ranges_init(GpuSortWindowRanges *ranges, PlanState *plan, const GpuSortOutputInfo *info,
						   GpuSortNodes *nodes)
{
	const GpuSortUse *use;

	if (info->partition_columns < 0)
		return;
	Assert(nodes->set.count == 1);
	ranges->scan = nodes->nodes[0];
	ranges->window = find_window(plan, &ranges->scan->css.ss.ps);
	nodes->set.continues = true;
	nodes->set.whole_columns = info->partition_columns;
	use = &ranges->scan->info.use;
	if (use->kind == GPUSORT_USE_RUNNING)
		return;
	nodes->set.before = use->before;
	nodes->set.after = use->after;
	ranges->native = ranges->window->ss.ps.ExecProcNodeReal;
	ranges->scan->window = ranges;
	ExecSetExecProcNode(&ranges->window->ss.ps, exec_near);
}

/* Makes the window read what comes next from its first row on, and go on from nothing. */
void
gpusort_window_ranges_reset(GpuSortWindowRanges *ranges)
{
	ranges->added = 0;
	ranges->skip = 0;
	ranges->keep = PG_UINT64_MAX;
	if (ranges->window != NULL && ranges->native == NULL)
	{
		gpusort_running_reset(ranges->scan->running, 0);
		gpusort_running_alone(ranges->scan->running);
	}
}

/* Frees what ranges came to, when no process reads it any more. */
void
gpusort_window_ranges_free(GpuSortWindowShared *shared, dsa_area *area)
{
	if (DsaPointerIsValid(shared->totals))
	{
		dsa_pointer *totals = dsa_get_address(area, shared->totals);

		for (uint32 i = 0; i < shared->ranges; i++)
		{
			if (DsaPointerIsValid(totals[i]))
				dsa_free(area, totals[i]);
		}
		dsa_free(area, shared->totals);
	}
	*shared = (GpuSortWindowShared){.totals = InvalidDsaPointer};
}

/* Leaves what the current range comes to for all processes; false if its rows are lost. */
static bool
total_range(GpuSortWindowRanges *ranges, GpuSortNodes *nodes, const GpuSortWindowShared *shared)
{
	Size bytes;
	char *total = gpusort_running_total(ranges->scan->running, &bytes);
	dsa_pointer *totals = dsa_get_address(ranges->area, shared->totals);
	dsa_pointer place;

	if (nodes->set.lost)
		return false;
	place = dsa_allocate(ranges->area, bytes);
	memcpy(dsa_get_address(ranges->area, place), total, bytes);
	totals[nodes->set.range] = place;
	pfree(total);
	return true;
}

/* Finds out what the ranges come to that this process claims, until none is left; false, with a reason, if lost. */
static bool
total_ranges(GpuSortWindowRanges *ranges, GpuSortNodes *nodes, const GpuSortWindowShared *shared,
			 GpuSortClaims *claims, GpuSortFailure *failure)
{
	int range = gpusort_claims_next_part(claims, GPUSORT_PARTS_TOTAL);

	if (range >= 0 && !gpusort_sort_set_ask(&nodes->set, range, failure))
		return false;
	while (range >= 0)
	{
		CHECK_FOR_INTERRUPTS();
		range = gpusort_claims_next_part(claims, GPUSORT_PARTS_TOTAL);
		if (!gpusort_nodes_begin_range(nodes, &ranges->window->ss.ps, failure) ||
			(range >= 0 && !gpusort_sort_set_ask(&nodes->set, range, failure)))
			return false;
		if (!total_range(ranges, nodes, shared))
		{
			*failure = nodes->nodes[0]->sort->reason;
			return false;
		}
		gpusort_claims_done_part(claims, NULL, 0);
	}
	return true;
}

/* Learns, in each process, when the leader has cut the rows, whether ranges go on from others. */
void
gpusort_window_ranges_join(GpuSortWindowRanges *ranges, GpuSortNodes *nodes, const GpuSortWindowShared *shared)
{
	nodes->set.continued = shared->continued;
	ranges->area = ranges->window != NULL ? ranges->window->ss.ps.state->es_query_dsa : NULL;
	gpusort_window_ranges_reset(ranges);
}

/* Takes part in the first pass, in a worker or the leader; false, with a reason, if rows are lost. */
bool
gpusort_window_ranges_follow(GpuSortWindowRanges *ranges, GpuSortNodes *nodes, const GpuSortWindowShared *shared,
							 GpuSortClaims *claims, GpuSortFailure *failure)
{
	bool done;

	nodes->set.again = true;
	done = total_ranges(ranges, nodes, shared, claims, failure);
	nodes->set.again = false;
	return done;
}

/*
 * Makes a first pass over the rows with all processes, where that is needed, in the process that has cut them into so
 * many ranges; false, with a reason, if rows are lost.
 */
bool
gpusort_window_ranges_lead(GpuSortWindowRanges *ranges, GpuSortNodes *nodes, GpuSortWindowShared *shared,
						   GpuSortClaims *claims, uint32 count, GpuSortFailure *failure)
{
	shared->continued = nodes->set.continued;
	gpusort_window_ranges_join(ranges, nodes, shared);
	ranges->passes = 1;
	if (!shared->continued || ranges->native != NULL || !gpusort_running_needs_totals(ranges->scan->running))
		return true;
	ranges->passes = 2;
	shared->totals = dsa_allocate0(ranges->area, count * sizeof(dsa_pointer));
	shared->ranges = count;
	gpusort_claims_begin_parts(claims, GPUSORT_PARTS_TOTAL, count);
	if (!gpusort_window_ranges_follow(ranges, nodes, shared, claims, failure))
		return false;
	gpusort_claims_finish_parts(claims);
	return true;
}

/* Lets the window read all ranges as one, in the leader, so that none goes on. */
void
gpusort_window_ranges_lead_all(GpuSortWindowRanges *ranges, GpuSortNodes *nodes)
{
	nodes->set.continued = false;
	ranges->passes = 1;
	gpusort_window_ranges_reset(ranges);
}

/* Makes a running window go on from what the ranges before this one come to. */
static void
go_on(GpuSortWindowRanges *ranges, const GpuSortWindowShared *shared, const GpuSortOrderedRows *rows, uint32 range)
{
	GpuSortRunning *running = ranges->scan->running;

	if (DsaPointerIsValid(shared->totals))
	{
		const dsa_pointer *totals = dsa_get_address(ranges->area, shared->totals);

		/* Ranges are claimed in rising order. */
		for (; ranges->added < range; ranges->added++)
			gpusort_running_add(running, dsa_get_address(ranges->area, totals[ranges->added]));
	}
	else
		gpusort_running_reset(running, rows->first_rows[range]);
	gpusort_running_go_on(running, rows->expected.rows);
}

/* Prepares the window for the current range, on which the plan is about to start. */
void
gpusort_window_ranges_begin(GpuSortWindowRanges *ranges, const GpuSortNodes *nodes, const GpuSortWindowShared *shared)
{
	const uint32 range = nodes->set.range;
	const GpuSortOrderedRows *rows;
	uint64 after;

	if (ranges->window == NULL || !shared->continued)
		return;
	rows = gpusort_parallel_sort_rows(nodes->set.sorts[0]);
	if (ranges->native == NULL)
	{
		go_on(ranges, shared, rows, range);
		return;
	}
	ranges->skip = gpusort_sort_set_near(&nodes->set, range, &after);
	ranges->keep = rows->first_rows[range + 1] - rows->first_rows[range];
}

/* Returns what EXPLAIN says of how the window goes on. */
const char *
gpusort_window_ranges_text(const GpuSortWindowRanges *ranges)
{
	const GpuSortUse *use = &ranges->scan->info.use;

	if (use->kind == GPUSORT_USE_RUNNING)
		return gpusort_running_needs_totals(ranges->scan->running) ? "totals of those before" : "rows of those before";
	return psprintf("%d rows before, %d after", use->before, use->after);
}
