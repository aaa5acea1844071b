/*-------------------------------------------------------------------------
 *
 * shape.c
 *	  How long a node takes, beside what is below it: the one formula for each kind of node.
 *
 * All constants are those of constants.c, all times are in ns.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/model/shape.h"

#include <math.h>
#include <sched.h>

#include "miscadmin.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "plan/admission.h"
#include "plan/model/constants.h"
#include "plan/model/sort_time.h"
#include "settings.h"

/* Tables up to so many bytes lie in a core's cache. */
#define CACHE_BYTES (512.0 * 1024)

/* Hash tables of joins are this much larger than the rows in them. */
#define HASH_ROW_BYTES 48.0

/* Processes that share work do not get all of what they add. */
#define PROCESS_GAIN 0.85

#define TIME(name) gpusort_constant(GPUSORT_TIME_##name, false)

/* What a lookup in a table of so many bytes takes more than one in the cache. */
static double
cache_miss(double bytes)
{
	return bytes <= CACHE_BYTES ? 0 : Min(TIME(CACHE_DOUBLING) * log2(bytes / CACHE_BYTES), TIME(CACHE_MISS));
}

static double
transition_time(const GpuSortAggregates *aggregates)
{
	return aggregates->values * TIME(TRANSITION) + aggregates->states * TIME(TRANSITION_STATE) +
		(aggregates->sorts + aggregates->sorts_in_order * TIME(IN_ORDER)) * TIME(TRANSITION_SORT);
}

static double
group_time(const GpuSortAggregates *aggregates)
{
	return aggregates->values * TIME(TRANSITION) + aggregates->states * 2 * TIME(TRANSITION_STATE);
}

static double
hash_groups_time(const GpuSortShape *shape)
{
	double bytes = shape->entry * shape->groups;
	double kept = shape->memory > 0 ? Min(bytes, shape->memory) : bytes;
	double others = shape->rows * (1 - shape->frequent);
	double time = shape->rows * (TIME(HASH_ROW) + transition_time(&shape->aggregates)) + others * cache_miss(kept) +
		shape->groups * (TIME(HASH_GROUP) + group_time(&shape->aggregates)) + kept * TIME(HASH_BYTE);

	if (bytes > kept)
		time += others * (1 - kept / bytes) * (TIME(HASH_SPILL_ROW) + TIME(HASH_BYTE) * shape->width);
	return time;
}

static double
hash_join_time(const GpuSortShape *shape)
{
	double width = HASH_ROW_BYTES + shape->inner_width;
	double batches = shape->batches;
	double miss;
	double time;

	if (shape->memory > 0)
		batches = Max(batches, ceil(shape->table_rows * width / shape->memory));
	batches = Max(batches, 1);
	miss = cache_miss(shape->table_rows * width / batches);
	time = shape->inner_rows * (TIME(BUILD_ROW) + miss + TIME(BUILD_BYTE) * width) +
		shape->rows * (TIME(PROBE_ROW) + miss) + shape->rows_out * TIME(JOINED_ROW);
	if (batches > 1)
		time += (1 - 1 / batches) *
			((shape->inner_rows + shape->rows) * TIME(HASH_SPILL_ROW) +
			 TIME(HASH_BYTE) * (shape->inner_rows * width + shape->rows * shape->width));
	return time;
}

/* Each row is compared with the next of the other side, and one that was joined with the mark, too. */
static double
merge_join_time(const GpuSortShape *shape)
{
	const double dearer = Max(shape->comparison, 1) - 1;

	return (shape->rows + shape->inner_rows) * TIME(MERGE_JOIN_ROW) + shape->rows_out * TIME(JOINED_ROW) +
		(shape->rows + shape->inner_rows + shape->rows_out) * TIME(COMPARISON) * dearer;
}

/* Returns what a node takes, in ns, beside what is below it. */
double
gpusort_node_time(const GpuSortShape *shape)
{
	switch (shape->kind)
	{
		case GPUSORT_NODE_HASH_GROUPS:
			return hash_groups_time(shape);
		case GPUSORT_NODE_SORTED_GROUPS:
			return shape->rows * (TIME(SORTED_ROW) + transition_time(&shape->aggregates)) +
				shape->groups * (TIME(SORTED_GROUP) + group_time(&shape->aggregates));
		case GPUSORT_NODE_UNIQUE:
			return shape->rows * TIME(UNIQUE_ROW);
		case GPUSORT_NODE_SETOP:
			return (shape->rows + shape->inner_rows) * TIME(MERGE_JOIN_ROW);
		case GPUSORT_NODE_WINDOW:
			return shape->rows * TIME(WINDOW_ROW);
		case GPUSORT_NODE_NUMBERING:
			return shape->rows * TIME(NUMBERED_ROW);
		case GPUSORT_NODE_RUNNING:
			return shape->rows *
				(TIME(RUNNING_ROW) + transition_time(&shape->aggregates) + group_time(&shape->aggregates));
		case GPUSORT_NODE_HASH_JOIN:
			return hash_join_time(shape);
		case GPUSORT_NODE_MERGE_JOIN:
			return merge_join_time(shape);
		case GPUSORT_NODE_MERGE_APPEND:
			return shape->rows * TIME(MERGED_ROW);
		case GPUSORT_NODE_GATHER:
			return shape->rows * TIME(GATHER_ROW);
		case GPUSORT_NODE_GATHER_MERGE:
			return shape->rows * TIME(MERGE_ROW);
		case GPUSORT_NODE_OTHER:
			return Max(shape->cost, 0) * TIME(COST);
	}
	return 0;
}

/*
 * Returns what starting so many workers takes the leader;
 * parallel_setup_cost scales it, as the table has its default.
 */
double
gpusort_start_time(int workers)
{
	return (TIME(GATHER) + TIME(WORKER) * workers) * parallel_setup_cost / DEFAULT_PARALLEL_SETUP_COST;
}

/*
 * Returns how many times as long as alone a process takes of which a Gather has so many beside the leader's.  With
 * gpusort.force each has a core, so that plans are the same on all machines.
 */
double
gpusort_crowd(int workers)
{
	static int cores = 0;

	if (cores == 0)
	{
		cpu_set_t set;

		cores = sched_getaffinity(0, sizeof(set), &set) == 0 ? Max(CPU_COUNT(&set), 1) : workers + 1;
	}
	return gpusort_force ? 1 : Max((double) (workers + 1) / cores, 1);
}

/*
 * Returns how many processes read ranges, where so many workers are planned:
 * a leader of many has enough to do with their rows.
 */
double
gpusort_range_processes(int workers)
{
	workers = Min(workers, max_parallel_workers);
	return (workers + (workers < 4 ? 1 : 0)) / gpusort_crowd(workers);
}

/* Returns what takes so long in one process, in several that read ranges, if so many rows come of it. */
double
gpusort_time_in_ranges(double above, double rows, double processes)
{
	return gpusort_ranges_time() * processes + above / Max(processes * PROCESS_GAIN, 1) +
		rows * (TIME(EXCHANGE_ROW) + (TIME(GATHER_ROW) - TIME(EXCHANGE_ROW)) / processes);
}

/* Returns what it takes at most to store so many rows of so many bytes and to read them: as in a table for a join. */
double
gpusort_store_time(double rows, double width)
{
	return rows * (TIME(BUILD_ROW) + TIME(BUILD_BYTE) * width);
}

/*
 * Returns what a process takes for its part of the ranges of so many,
 * below a Gather, of rows that would take it so long in one go.
 */
double
gpusort_time_of_part(double above, double processes)
{
	return gpusort_ranges_time() * processes + above / PROCESS_GAIN;
}

/* Returns how a window of a GpuSort's rows runs (exec/running.c), and tells what of its functions takes time then. */
GpuSortNodeKind
gpusort_window_kind(const GpuSortWindowNeeds *needs, GpuSortAggregates *aggregates)
{
	if (needs->use.kind != GPUSORT_USE_RUNNING || needs->use.rows)
		return GPUSORT_NODE_WINDOW;
	if (needs->only_numbers)
		return GPUSORT_NODE_NUMBERING;
	*aggregates = (GpuSortAggregates){.values = needs->values, .states = needs->states};
	return GPUSORT_NODE_RUNNING;
}

/*
 * Returns what all processes together do more for a window, of so many rows in the order of a GpuSort, where it goes on
 * from range to range: the first of two passes (exec/window_ranges.c).
 */
double
gpusort_window_again_time(const GpuSortWindowNeeds *needs, double rows)
{
	const GpuSortAggregates aggregates = {.values = needs->values, .states = needs->states};

	if (!needs->use.totals)
		return 0;
	return rows * (gpusort_constant(GPUSORT_TIME_EMIT_ROW, gpusort_sorts_on_cuda()) + transition_time(&aggregates));
}

/* How many processes' work the planner counts on below a Gather: costsize.c's get_parallel_divisor. */
double
gpusort_plan_processes(int workers)
{
	return workers + (parallel_leader_participation ? Max(1.0 - 0.3 * workers, 0) : 0);
}
