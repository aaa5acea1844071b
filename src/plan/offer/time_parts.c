/*-------------------------------------------------------------------------
 *
 * time_parts.c
 *	  The time of a path in its parts: until its rows are in order, and above that, which processes may share.
 *
 * What path_time.c finds below a node comes as these, and the node's own work is added.  All times are in ns.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/offer/time_parts.h"

#include "plan/model/native_time.h"
#include "plan/offer/paths.h"
#include "plan/statement.h"
#include "settings.h"

/* Notes in the GpuSorts that the nodes above them, so far, run by ranges of their rows, or do not. */
static void
note(const GpuSortParts *time, bool by_ranges, bool only_formed)
{
	ListCell *cell;

	foreach(cell, time->sorts)
	{
		GpuSortPath *sort = lfirst(cell);

		sort->range_top = by_ranges ? time->top : NULL;
		sort->range_parts = by_ranges && time->in_parts;
		sort->only_formed = only_formed;
	}
}

/* What is above the sort takes so long, by ranges of its rows, until the leader has read them where it stores them. */
static double
time_in_ranges(const GpuSortParts *time, double more)
{
	double in_ranges = gpusort_time_in_ranges(time->above + time->again + more, time->rows, time->processes);

	if (gpusort_statement_stores_rows())
		in_ranges += gpusort_store_time(time->rows, time->top->pathtarget->width);
	return in_ranges;
}

/* Notes in the GpuSorts why one process runs what is above them. */
void
gpusort_parts_note_alone(const GpuSortParts *time, const char *why)
{
	ListCell *cell;

	foreach(cell, time->sorts)
		((GpuSortPath *) lfirst(cell))->why_alone = why;
}

/* Returns all of the time of a path. */
double
gpusort_parts_total(const GpuSortParts *time)
{
	double in_ranges;
	bool by_ranges;

	note(time, false, false);
	if (time->shared)
		return time->before + gpusort_time_of_part(time->above * Max(time->uneven, 1), time->processes);
	if (time->range_key == NULL || time->nodes == 0)
		return time->before + time->above;
	if (time->why_alone != NULL)
	{
		gpusort_parts_note_alone(time, time->why_alone);
		return time->before + time->above;
	}
	in_ranges = time_in_ranges(time, 0);
	by_ranges = in_ranges < time->above || gpusort_force;
	note(time, by_ranges, false);
	if (!by_ranges)
		gpusort_parts_note_alone(time, "several processes would take longer, because they have to pass the result on");
	return time->before + Min(time->above, in_ranges);
}

/*
 * Notes in the GpuSorts of a path, all of whose nodes may run by ranges, that they do where its rows are formed as
 * the bytes that leave the server, for forming them takes so long in one process.  To be called after
 * gpusort_parts_total, which has noted what runs by ranges wherever the rows go.  gpusort.force changes nothing here:
 * what is forced are sorts.  Not if a window goes on from range to range: elsewhere all rows are one range.
 */
void
gpusort_parts_note_formed(const GpuSortParts *time, double output)
{
	const GpuSortPath *first = time->sorts != NIL ? linitial(time->sorts) : NULL;

	if (first == NULL || time->why_alone != NULL || time->in_parts || time->goes_on || first->range_top != NULL)
		return;
	if (time_in_ranges(time, output) < time->above + output)
		note(time, true, true);
}

/* The node above has groups, the largest of which has such a part of the rows: one process has all of these. */
void
gpusort_parts_largest(GpuSortParts *time, double part)
{
	const double uneven = part * time->processes;

	if (uneven <= 1)
		return;
	if (time->shared)
		time->uneven = uneven;
	else if (time->range_key != NULL)
		time->processes = 1 / part;
}

/* What is above does not run in several processes. */
void
gpusort_parts_end(GpuSortParts *time)
{
	time->before = gpusort_parts_total(time);
	time->above = time->again = 0;
	time->range_key = NULL;
	time->why_alone = NULL;
	time->sorts = NIL;
	time->nodes = 0;
	time->shared = time->goes_on = time->in_parts = false;
}

/* Adds a node to what is below it; if it cannot run in several processes, range_key becomes NULL. */
void
gpusort_parts_add(GpuSortParts *time, double work, double rows, bool may_share, bool works)
{
	if (time->range_key != NULL && !may_share)
		gpusort_parts_end(time);
	time->above += work;
	time->rows = rows;
	time->nodes += works;
}

/* What processes take together for the rows that a Gather has of each; time is that of one, all of it. */
GpuSortParts
gpusort_parts_gathered(GpuSortParts time, int workers, double processes, GpuSortNodeKind kind)
{
	const double rows = time.rows * Max(processes, 1);

	return (GpuSortParts){
		.rows = rows,
		.processes = 1,
		.before = gpusort_parts_total(&time) * gpusort_crowd(workers) + gpusort_start_time(workers),
		.above = gpusort_rows_time(kind, rows),
	};
}
