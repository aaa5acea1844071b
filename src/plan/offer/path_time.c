/*-------------------------------------------------------------------------
 *
 * path_time.c
 *	  How long a path takes: the model's adaptor for paths.
 *
 * PostgreSQL's costs tell its own plans from each other.  What a unit of them takes depends on the node: in a Sort five
 * microseconds, in a scan two, in a hash table of many groups thirty, since there is no term for rows that are in no
 * cache, for fresh pages and for groups.  So where a path over GpuSort could take the place of another, what both take
 * is estimated here, node by node, in ns, and the ratio of the two decides (offers.c).  Nodes that are not known, scans
 * above all, take what their cost says, but for pages that processes share.
 *
 * What is above a GpuSort with parallel ingest can run by ranges, in all processes: so the time of such a path has two
 * parts, until the rows are in order and above that, of which the second is divided.  A node may run by ranges if it
 * groups by the sort's first column and its expressions are parallel safe (node_kinds.c).  It does if that takes less
 * time: the path's GpuSorts note what does (gpusort_path_note_ranges), for exchange_paths.c.
 *
 * Below a Gather all times and rows are those of one process of several.  Where these share ranges of sorted rows (a
 * GpuSortOutput) the order is what all wait for, and the rest each does for its part; the Gather above counts what
 * the processes take from each other, as of any partial path.
 *
 * Estimates of rows can be wrong by ten and more.  So times are also asked for as if there were
 * more groups, or fewer, or as many times the rows on one side of a join (GpuSortGuess).
 *
 *-------------------------------------------------------------------------
 */
#include "plan/offer/path_time.h"

#include <math.h>

#include "catalog/pg_type_d.h"
#include "executor/nodeAgg.h"
#include "facts/aggregates.h"
#include "facts/limits.h"
#include "facts/parallel_safety.h"
#include "miscadmin.h"
#include "node.h"
#include "nodes/bitmapset.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "optimizer/tlist.h"
#include "plan/admission.h"
#include "plan/model/constants.h"
#include "plan/model/native_time.h"
#include "plan/model/output_time.h"
#include "plan/model/shape.h"
#include "plan/model/shard_time.h"
#include "plan/model/skew.h"
#include "plan/model/sort_time.h"
#include "plan/node_kinds.h"
#include "plan/offer/ordered_aggregates.h"
#include "plan/offer/partial_sets.h"
#include "plan/offer/path_tree.h"
#include "plan/offer/paths.h"
#include "plan/offer/shard_scans.h"
#include "plan/offer/task_scans.h"
#include "plan/offer/time_parts.h"
#include "plan/statement.h"
#include "settings.h"
#include "tcop/pquery.h"
#include "utils/selfuncs.h"

const GpuSortGuess gpusort_as_estimated = {.groups = 1};
const GpuSortGuess gpusort_with_limits = {.groups = 1, .limits = true};

/* What the caller of path_time asks, for all nodes of a path. */
typedef struct Estimate
{
	PlannerInfo *root;
	const GpuSortGuess *guess;
	double first;  /* so many rows are wanted of the path; -1: all */
	double kept;   /* so many are looked at by the node above, the first of each group; 0: all */
	bool limited;  /* a LIMIT may want none but its first rows */
	bool repeated; /* a nested loop reads the path again and again */

	/* What the path computes in place of its own columns; NULL: these */
	const PathTarget *projected;
	List *sorted_by; /* what it computes beside them, for a sort right above */
	bool note;       /* what runs by ranges, in the GpuSorts below it */
} Estimate;

static GpuSortParts path_time(const Estimate *estimate, const Path *path);
static GpuSortParts other_time(const Estimate *estimate, const Path *path);

/* What a path takes of which all rows are read, for a node that gives out rows while it reads. */
static GpuSortParts
stream_time(const Estimate *estimate, const Path *path)
{
	Estimate all = *estimate;

	all.first = -1;
	all.kept = 0;
	all.projected = NULL;
	all.sorted_by = NIL;
	return path_time(&all, path);
}

/* The same for a node that gives out none before it has read all. */
static GpuSortParts
input_time(const Estimate *estimate, const Path *path)
{
	Estimate all = *estimate;

	all.limited = false;
	return stream_time(&all, path);
}

/* What a path takes for a node that keeps all rows, and so reads them once. */
static GpuSortParts
kept_time(const Estimate *estimate, const Path *path)
{
	Estimate once = *estimate;

	once.repeated = false;
	return input_time(&once, path);
}

/* The same for a sort, which has the path compute what it is sorted by. */
static GpuSortParts
sorted_time(const Estimate *estimate, const Path *path, List *pathkeys)
{
	Estimate once = *estimate;

	once.first = -1;
	once.kept = 0;
	once.limited = once.repeated = false;
	once.projected = NULL;
	once.sorted_by = gpusort_path_missing_columns(path, pathkeys);
	return path_time(&once, path);
}

/* Notes why a path does not run in all processes that share the rows below it, if those come as they were sorted. */
static void
note_why_alone(const GpuSortParts *below, const char *why)
{
	if (below->nodes == 0 && why != NULL)
		gpusort_parts_note_alone(below, why);
}

/* Returns true if what a path does may run in all processes that share the rows below it. */
static bool
may_share(const Estimate *estimate, const Path *path, const GpuSortParts *below)
{
	GpuSortPathRanges ranges = {.root = estimate->root, .key = below->range_key, .shared = below->shared};

	if (gpusort_path_may_run_by_ranges(&ranges, path) &&
		(estimate->projected == NULL || gpusort_may_run_in_ranges(&ranges, (Node *) estimate->projected->exprs)) &&
		gpusort_may_run_in_ranges(&ranges, (Node *) estimate->sorted_by))
		return true;
	note_why_alone(below, ranges.why_not);
	return false;
}

static double
more_groups(const Estimate *estimate, double groups, double rows)
{
	return Max(Min(groups * estimate->guess->groups, rows), 1);
}

/* Returns true if the rows of a path are groups of rows: of these no part is in one of them. */
static bool
are_groups(const Path *path)
{
	while (!IsA(path, AggPath) && !IsA(path, GroupPath) && !IsA(path, UpperUniquePath))
	{
		if (gpusort_path_is_sort(path))
			path = ((const GpuSortPath *) path)->input;
		else if (gpusort_path_is_output(path))
			path = gpusort_partial_path_child(path);
		else if (IsA(path, ProjectionPath) || IsA(path, SortPath) || IsA(path, GatherPath) || IsA(path, GatherMergePath))
			path = ((const ProjectionPath *) path)->subpath;
		else
			return false;
	}
	return true;
}

/* What statistics say of the groups that a node makes of the rows of a path. */
static GpuSortSkew
find_skew(const Estimate *estimate, const Path *path, const Path *below)
{
	GpuSortSkew skew = gpusort_path_skew(estimate->root, path);

	if (are_groups(below))
		skew.largest = skew.frequent = 0;
	return skew;
}

/* Rows that are left of groups by HAVING, by PostgreSQL's estimate. */
static double
rows_of_groups(const Path *path, double estimated_groups, double groups)
{
	return estimated_groups > 0 ? path->rows * groups / estimated_groups : groups;
}

/* Percentiles read rows by their numbers; of those that their keys do not tell apart all, twice at most. */
static GpuSortParts
percentiles_time(const GpuSortPath *sort, GpuSortParts input, int halvings)
{
	/* Each row that is asked for comes with up to so many behind it, a chunk of them. */
	input.before += halvings * log2(Max(input.rows, 2)) * Min(input.rows, 400000) * sort->time.emit;
	if (sort->time.compare > 0 || sort->time.verified)
		input.before += 2 * input.above;
	return (GpuSortParts){.rows = 1, .before = input.before, .processes = 1};
}

static GpuSortParts
aggregate_time(const Estimate *estimate, const AggPath *path)
{
	GpuSortParts time =
		path->aggstrategy == AGG_SORTED   ? stream_time(estimate, path->subpath)
		: path->aggstrategy == AGG_HASHED ? kept_time(estimate, path->subpath)
										  : input_time(estimate, path->subpath);
	GpuSortSkew skew = find_skew(estimate, &path->path, path->subpath);
	double groups = more_groups(estimate, path->numGroups * skew.more, time.rows);
	GpuSortNodeKind kind = path->aggstrategy == AGG_HASHED ? GPUSORT_NODE_HASH_GROUPS : GPUSORT_NODE_SORTED_GROUPS;
	List *aggregates = gpusort_aggregates_of(estimate->root, path->path.pathtarget, path->qual);
	GpuSortAggregates sorts = {0};
	GpuSortServed served = gpusort_aggregates_served(estimate->root, path, aggregates, &sorts);
	GpuSortAggregates shape;
	bool mode = served == GPUSORT_SERVED_MODE && path->numGroups > 1; /* as mode.c has it */
	bool combines;
	bool shared;

	if (served == GPUSORT_SERVED_PERCENTILES)
	{
		(void) may_share(estimate, &path->path, &time); /* it is not, for a reason that is noted */
		return percentiles_time((const GpuSortPath *) path->subpath, time, sorts.sorts);
	}
	if (served == GPUSORT_SERVED_FIRST_ROWS)
		gpusort_parts_add(&time, gpusort_first_rows_time(aggregates, time.rows), time.rows, true, true);
	combines = path->aggstrategy == AGG_PLAIN && path->aggsplit == AGGSPLIT_SIMPLE && !time.shared && time.nodes > 0 &&
		sorts.sorts == 0 && gpusort_aggregates_combine(estimate->root, aggregates, served);
	shape = gpusort_aggregates_shape(estimate->root, aggregates, path->subpath, groups > 1,
									 served != GPUSORT_SERVED_NONE ? &sorts : NULL);
	gpusort_parts_largest(&time, skew.largest);
	shared = may_share(estimate, &path->path, &time);
	time.in_parts = !shared && (mode || combines || served == GPUSORT_SERVED_FIRST_ROWS);
	gpusort_parts_add(&time,
					  gpusort_path_group_time(estimate->root, kind, path->subpath, time.rows, groups, skew.frequent,
											  path->transitionSpace, &shape),
					  mode ? groups : rows_of_groups(&path->path, path->numGroups, groups), mode || combines || shared, true);
	if (combines)
		gpusort_parts_end(&time);
	/* The first of the values by how many rows they have (mode.c) */
	if (mode)
		gpusort_parts_add(&time, gpusort_native_sort_time(groups, path->subpath->pathtarget->width, 1, 1, false), 1, false,
						  true);
	return time;
}

/* The same as stream_time, for a node that looks at no more than so many rows, the first of each group. */
static GpuSortParts
first_rows_time(const Estimate *estimate, const Path *path, double kept)
{
	Estimate first_rows = *estimate;

	first_rows.first = -1;
	first_rows.kept = kept;
	first_rows.projected = NULL;
	first_rows.sorted_by = NIL;
	return path_time(&first_rows, path);
}

/* Groups of rows in order, without aggregates; qual: those that HAVING leaves. */
static GpuSortParts
unique_time(const Estimate *estimate, const Path *path, const Path *below, List *qual)
{
	GpuSortSkew skew = find_skew(estimate, path, below);
	GpuSortParts time =
		first_rows_time(estimate, below, qual == NIL ? more_groups(estimate, path->rows * skew.more, below->rows) : 0);

	gpusort_parts_largest(&time, skew.largest);
	gpusort_parts_add(&time, gpusort_rows_time(GPUSORT_NODE_UNIQUE, time.rows),
					  more_groups(estimate, path->rows * skew.more, time.rows),
					  may_share(estimate, path, &time), true);
	return time;
}

static GpuSortParts
gather_time(const Estimate *estimate, const Path *path, const Path *below, GpuSortNodeKind kind)
{
	Estimate of_part = *estimate;

	of_part.kept = 0;
	return gpusort_parts_gathered(path_time(&of_part, below), below->parallel_workers,
								  below->rows > 0 ? path->rows / below->rows : 1, kind);
}

/* The groups that a process makes of its rows, for grouping sets. */
static GpuSortParts
partial_groups_time(const Estimate *estimate, const GpuSortGroupsPath *path)
{
	const Path *rows = gpusort_partial_path_child(&path->custom.path);
	GpuSortParts time = input_time(estimate, rows);
	double groups = more_groups(estimate, path->groups, time.rows);
	const GpuSortAggregates shape = gpusort_aggregates_shape(estimate->root, path->aggregates, rows, groups > 1, NULL);

	gpusort_parts_add(&time,
					  gpusort_path_group_time(estimate->root, GPUSORT_NODE_HASH_GROUPS, rows, time.rows, groups, 0,
											  path->transition_space, &shape),
					  groups, false, true);
	return time;
}

static GpuSortParts
grouping_sets_time(const Estimate *estimate, const GroupingSetsPath *path)
{
	GpuSortParts time = stream_time(estimate, path->subpath);
	double groups = more_groups(estimate, path->path.rows, time.rows);

	time.processes = Min(time.processes, more_groups(estimate, gpusort_sets_fewest_groups(path), time.rows));
	gpusort_parts_add(&time, gpusort_path_sets_time(estimate->root, path, time.rows, estimate->guess->groups), groups,
					  may_share(estimate, &path->path, &time), true);
	return time;
}

/* Returns true if PostgreSQL puts a Result above the plan of a path of ours: it has conditions without a column. */
static bool
is_gated(const PlannerInfo *root, const Path *path)
{
	ListCell *cell;

	foreach(cell, root->hasPseudoConstantQuals ? path->parent->baserestrictinfo : NIL)
	{
		if (lfirst_node(RestrictInfo, cell)->pseudoconstant)
			return true;
	}
	return false;
}

/* Returns how many rows a window looks at if it needs the first ones of each partition alone; 0: all, or unknown. */
static double
window_kept_rows(const Estimate *estimate, const WindowAggPath *path)
{
	PlannerInfo *root = estimate->root;
	const double rows = path->subpath->rows;
	GpuSortKeptRows kept;
	const Const *bound;
	List *exprs;
	double first;

	if (path->winclause->partitionClause == NIL || !gpusort_window_path_keeps(path, &kept) || !IsA(kept.bound, Const))
		return 0;
	bound = (const Const *) kept.bound;
	if (bound->constisnull)
		return 0;
	first = bound->consttype == INT2OID ? DatumGetInt16(bound->constvalue)
		: bound->consttype == INT4OID   ? DatumGetInt32(bound->constvalue)
										: (double) DatumGetInt64(bound->constvalue);
	first -= kept.less;
	if (first < 1 || (kept.only_one && first > 1))
		return 0;
	exprs = get_sortgrouplist_exprs(path->winclause->partitionClause, root->processed_tlist);
	return Min(estimate_num_groups(root, exprs, rows, NULL, NULL) * first, rows);
}

static GpuSortParts
window_time(const Estimate *estimate, const WindowAggPath *path)
{
	const GpuSortWindowNeeds needs = gpusort_window_path_needs(path);
	GpuSortParts time = first_rows_time(estimate, path->subpath, window_kept_rows(estimate, path));
	GpuSortShape shape = {.kind = GPUSORT_NODE_WINDOW, .rows = time.rows};
	bool shared = may_share(estimate, &path->path, &time);

	if (gpusort_path_is_sort(path->subpath))
	{
		shape.kind = gpusort_window_kind(&needs, &shape.aggregates);
		if (estimate->note && !is_gated(estimate->root, path->subpath))
			((GpuSortPath *) path->subpath)->use = needs.use;
	}
	if (shared && path->winclause->partitionClause == NIL && time.why_alone == NULL)
	{
		time.again = gpusort_window_again_time(&needs, time.rows);
		shared = !estimate->limited || time.again == 0 || gpusort_force;
		if (!shared)
			gpusort_parts_note_alone(&time, "a LIMIT may need only the first rows, and all would be read");
	}
	time.goes_on |= path->winclause->partitionClause == NIL;
	gpusort_parts_add(&time, gpusort_node_time(&shape), path->path.rows, shared, true);
	return time;
}

/* Returns why processes cannot share the rows of both sides of a join, or a set operation, together. */
static const char *
why_not_together(const Path *path, const GpuSortParts *outer, const GpuSortParts *inner)
{
	const bool parted = outer->range_key != NULL && inner->range_key != NULL;

	if (IsA(path, SetOpPath))
		return parted ? "the two sorts of the set operation do not begin with the same column"
					  : "one side of the set operation is not a GpuSort with parallel ingest";
	return parted
		? "the two sorts of the merge join do not begin with columns of a join clause that have the same key encoding"
		: "one side of the merge join is not a GpuSort with parallel ingest";
}

/* A node over both sides' rows in order: in all processes, if it may, which takes the same keys of both. */
static GpuSortParts
both_sides_time(const Estimate *estimate, const Path *path, GpuSortParts outer, const GpuSortParts *inner, double work,
				bool same_keys)
{
	if (!same_keys)
	{
		const char *why = why_not_together(path, &outer, inner);

		note_why_alone(&outer, why);
		note_why_alone(inner, why);
	}
	if (!same_keys || outer.goes_on || inner->goes_on || !may_share(estimate, path, &outer))
		return (GpuSortParts){
			.rows = path->rows,
			.before = gpusort_parts_total(&outer) + gpusort_parts_total(inner),
			.above = work,
			.processes = 1,
		};
	/* Both sides are read by the same processes, which are started once. */
	outer.before += inner->before - Min(outer.start, inner->start);
	outer.above += inner->above;
	outer.start = Max(outer.start, inner->start);
	outer.why_alone = outer.why_alone != NULL ? outer.why_alone : inner->why_alone;
	outer.sorts = list_concat(outer.sorts, inner->sorts);
	outer.nodes += inner->nodes;
	outer.processes = Max(outer.processes, inner->processes);
	gpusort_parts_add(&outer, work, path->rows, true, true);
	return outer;
}

/* How many times the estimated rows a side of a join is guessed to have, if it is the join that is asked for. */
static double
guessed_side(const Estimate *estimate, const Path *join, const Path *side)
{
	if (join->parent != estimate->guess->join)
		return 1;
	return bms_equal(side->parent->relids, estimate->guess->one_side) ? estimate->guess->one_rows
																	  : estimate->guess->other_rows;
}

static GpuSortParts
merge_join_time(const Estimate *estimate, const MergePath *path)
{
	const Path *outer_path = path->jpath.outerjoinpath;
	const Path *inner_path = path->jpath.innerjoinpath;
	double outer_factor = guessed_side(estimate, &path->jpath.path, outer_path);
	double inner_factor = guessed_side(estimate, &path->jpath.path, inner_path);
	List *keys = path->outersortkeys != NIL ? path->outersortkeys : outer_path->pathkeys;
	GpuSortParts outer = input_time(estimate, outer_path);
	GpuSortParts inner = input_time(estimate, inner_path);
	GpuSortShape shape = {.kind = GPUSORT_NODE_MERGE_JOIN,
						  .rows_out = path->jpath.path.rows * outer_factor * inner_factor};
	bool same_keys = gpusort_joins_range_keys(path, outer.range_key, inner.range_key);
	GpuSortParts joined;

	if (keys != NIL)
		shape.comparison = gpusort_string_factor(linitial_node(PathKey, keys));
	outer.before += gpusort_path_more_rows_time(outer_path, outer.rows, outer_factor);
	inner.before += gpusort_path_more_rows_time(inner_path, inner.rows, inner_factor);
	shape.rows = outer.rows *= outer_factor;
	shape.inner_rows = inner.rows *= inner_factor;
	outer.above += gpusort_path_native_sort_time(estimate->root, path->outersortkeys, outer_path, outer.rows, -1);
	inner.above += gpusort_path_native_sort_time(estimate->root, path->innersortkeys, inner_path, inner.rows, -1);
	joined = both_sides_time(estimate, &path->jpath.path, outer, &inner, gpusort_node_time(&shape), same_keys);
	if (joined.range_key != NULL)
		joined.range_key = gpusort_joined_range_key(path, outer.range_key, inner.range_key);
	return joined;
}

static GpuSortParts
hash_join_time(const Estimate *estimate, const HashPath *path)
{
	const Path *outer_path = path->jpath.outerjoinpath;
	const Path *inner_path = path->jpath.innerjoinpath;
	double outer_factor = guessed_side(estimate, &path->jpath.path, outer_path);
	double inner_factor = guessed_side(estimate, &path->jpath.path, inner_path);
	GpuSortParts outer = input_time(estimate, outer_path);
	GpuSortParts inner = input_time(estimate, inner_path);
	bool one_table = path->jpath.path.parallel_aware;
	const GpuSortShape shape = {
		.kind = GPUSORT_NODE_HASH_JOIN,
		.rows = outer.rows * outer_factor,
		.inner_rows = inner.rows * inner_factor,
		.rows_out = path->jpath.path.rows * outer_factor * inner_factor,
		.width = outer_path->pathtarget->width,
		.inner_width = inner_path->pathtarget->width,
		.memory = get_hash_memory_limit() * (one_table ? path->jpath.path.parallel_workers + 1.0 : 1.0),
		.table_rows = Max(one_table ? path->inner_rows_total : inner.rows, inner.rows) * inner_factor,
		.batches = path->num_batches,
	};

	return (GpuSortParts){
		.rows = shape.rows_out,
		.processes = 1,
		.before = gpusort_parts_total(&outer) + gpusort_parts_total(&inner) + gpusort_node_time(&shape),
	};
}

#ifndef SET_OPERATIONS_READ_APPEND
/* The numbers of a path's columns that have the values of a key: of a set operation those of its left side. */
static Bitmapset *
columns_of_key(const Path *path, const PathKey *key)
{
	Bitmapset *columns = NULL;
	ListCell *cell;

	while (IsA(path, SetOpPath) || IsA(path, SortPath))
		path = IsA(path, SetOpPath) ? ((const SetOpPath *) path)->leftpath : ((const SortPath *) path)->subpath;
	foreach(cell, path->pathtarget->exprs)
	{
		ListCell *member;

		foreach(member, key->pk_eclass->ec_members)
		{
			if (gpusort_count_columns(list_make1(lfirst(cell)), lfirst_node(EquivalenceMember, member)) > 0)
				columns = bms_add_member(columns, foreach_current_index(cell));
		}
	}
	return columns;
}

/*
 * Returns true if these keys, of both sides, are of one column of a set operation, and part the rows alike: a side with
 * a constant in the first column is sorted by another one.
 */
static bool
part_one_column(const SetOpPath *path, const PathKey *left, const PathKey *right)
{
	return gpusort_key_parts_both_sides(left) && gpusort_key_parts_both_sides(right) &&
		bms_overlap(columns_of_key(path->leftpath, left), columns_of_key(path->rightpath, right));
}
#endif

static GpuSortParts
set_operation_time(const Estimate *estimate, const SetOpPath *path)
{
	bool hashed = path->strategy == SETOP_HASHED;
#ifdef SET_OPERATIONS_READ_APPEND
	GpuSortParts time = input_time(estimate, path->subpath);
	double groups = more_groups(estimate, path->numGroups, time.rows);

	gpusort_parts_add(
		&time,
		hashed ? gpusort_path_group_time(estimate->root, GPUSORT_NODE_HASH_GROUPS, path->subpath, time.rows, groups, 0, 0,
										 NULL)
			   : gpusort_rows_time(GPUSORT_NODE_SETOP, time.rows),
		path->path.rows, may_share(estimate, &path->path, &time), true);
	return time;
#else
	GpuSortParts left = input_time(estimate, path->leftpath);
	GpuSortParts right = input_time(estimate, path->rightpath);
	double rows = left.rows + right.rows;
	double groups = more_groups(estimate, path->numGroups, left.rows);
	bool same_keys = part_one_column(path, left.range_key, right.range_key);

	return both_sides_time(
		estimate, &path->path, left, &right,
		hashed ? gpusort_path_group_time(estimate->root, GPUSORT_NODE_HASH_GROUPS, path->leftpath, rows, groups, 0, 0,
										 NULL)
			   : gpusort_rows_time(GPUSORT_NODE_SETOP, rows),
		same_keys);
#endif
}

/* PostgreSQL's sort of what takes this time below; an incremental one has small parts to sort. */
static GpuSortParts
native_sort_time(const Estimate *estimate, const Path *path, const Path *below, GpuSortParts time, int presorted)
{
	double work = gpusort_path_native_sort_time(estimate->root, path->pathkeys, below, time.rows, estimate->first);

	if (presorted > 0)
		work = Min(work, gpusort_cost_time((path->total_cost - below->total_cost)));
	gpusort_parts_add(&time, work, below->rows > 0 ? path->rows * time.rows / below->rows : path->rows,
					  may_share(estimate, path, &time), false);
	if (estimate->first >= 0)
		time.rows = Min(time.rows, estimate->first);
	return time;
}

static GpuSortParts
sort_time(const Estimate *estimate, const Path *path, const Path *below, int presorted)
{
	GpuSortParts time = sorted_time(estimate, below, path->pathkeys);

	return native_sort_time(estimate, path, below, time, presorted);
}

/* A sort whose rows all processes take in, each its part, and read by ranges, below a Gather. */
static GpuSortParts
shared_sort_time(const GpuSortPath *path, const GpuSortParts *input)
{
	const int workers = path->custom.path.parallel_workers;
	const GpuSortTime *sort = &path->time;

	return (GpuSortParts){
		.rows = input->rows,
		.before = gpusort_parts_total(input) + sort->ingest * input->rows + sort->setup / gpusort_crowd(workers) +
			gpusort_path_shared_order_time(path),
		.above = (sort->emit + sort->compare) * input->rows,
		.processes = gpusort_range_processes(workers),
		.range_key = linitial_node(PathKey, path->custom.path.pathkeys),
		.shared = true,
	};
}

/*
 * Returns a GpuSort's input as its plan reads it: rows of a Gather are taken in below that (finish/sort_nodes.c), if
 * workers may compute what the Gather does.  *gathered is set if several processes take them in.
 */
static const Path *
input_in_plan(const Estimate *estimate, const GpuSortPath *path, bool *gathered)
{
	const Path *input = IsA(path->input, ProjectionPath) ? ((const ProjectionPath *) path->input)->subpath : path->input;

	*gathered = true;
	if (!path->gathered && IsA(input, GatherPath) && !((const GatherPath *) input)->single_copy &&
		gpusort_expression_is_safe(estimate->root, (Node *) path->input->pathtarget->exprs))
		return ((const GatherPath *) input)->subpath;
	*gathered = path->gathered;
	return path->input;
}

/*
 * Returns true if it is a LIMIT of so many rows that asks for a path's first rows, of its query or of one around it:
 * the sort is told when it runs.  A cursor tells nobody, and where the number is not known yet it may be a large one.
 */
static bool
is_bounded(const PlannerInfo *root)
{
	const Query *query = root->parse;

	while (query->limitCount == NULL && root->parent_root != NULL)
	{
		root = root->parent_root;
		query = root->parse;
	}
	return query->limitCount != NULL && IsA(query->limitCount, Const) &&
		(query->limitOffset == NULL || IsA(query->limitOffset, Const));
}

/*
 * Returns true if a path is a GpuSort of which each process finds the first rows by itself, if so many are wanted (-1:
 * all).
 */
bool
gpusort_path_finds_top(const PlannerInfo *root, const Path *path, double first)
{
	if (IsA(path, ProjectionPath))
		path = ((const ProjectionPath *) path)->subpath;
	return gpusort_path_is_sort(path) && is_bounded(root) &&
		gpusort_sort_finds_top(&((const GpuSortPath *) path)->time, ((const GpuSortPath *) path)->custom.path.rows, first);
}

/*
 * For the choice of a path the rows of a Gather that PostgreSQL has come up through it, which takes longer than what
 * will be: less is gained by a plan that is new above a Gather.
 */
static GpuSortParts
gpusort_time(const Estimate *estimate, const GpuSortPath *path)
{
	bool gathered = path->gathered;
	const Path *input = estimate->note ? input_in_plan(estimate, path, &gathered) : path->input;
	GpuSortParts time = sorted_time(estimate, input, path->custom.path.pathkeys);
	double rows = path->custom.path.rows;
	/* There may be as many times the groups as estimates can be wrong by. */
	const double kept =
		estimate->kept > 0 && path->time.whole ? Min(estimate->kept * GPUSORT_GUESS, rows) : rows;
	const bool bounded = is_bounded(estimate->root);
	const bool finds_top = bounded && gpusort_sort_finds_top(&path->time, rows, estimate->first);
	const GpuSortTime sort = gpusort_sort_time_of_first(path->time, rows, estimate->first, bounded);
	GpuSortParts sorted = {.rows = kept, .processes = 1};
	GpuSortParts by_range;
	double time_by_range;
	const char *why_alone = gpusort_statement_why_alone();
	const PathKey *key = linitial_node(PathKey, path->custom.path.pathkeys);
	const int key_columns = gpusort_path_key_columns(path->input, key); /* several: which one is meant is not known */

	if (path->shared)
		return shared_sort_time(path, &time);
	by_range = native_sort_time(estimate, &path->custom.path, input, time, 0);
	time_by_range = gpusort_parts_total(&by_range);
	sorted.before = gpusort_parts_total(&time) + sort.ingest * time.rows;
	if (gathered)
	{
		sorted.start = gpusort_start_time(input->parallel_workers);
		sorted.before = sorted.before * gpusort_crowd(input->parallel_workers) + sorted.start;
		if (finds_top)
			sorted.before += estimate->first * input->parallel_workers * gpusort_constant(GPUSORT_TIME_GATHER_ROW, false);
	}
	sorted.before += sort.setup + sort.order * rows;
	sorted.above = sort.compare * rows + sort.emit * kept; /* those who read ranges compare what is in them */
	if (why_alone == NULL && estimate->repeated && !gpusort_force)
		why_alone = "a nested loop reads it again for each row";
	if (gathered && (why_alone == NULL || estimate->note) && key_columns > 0 &&
		!is_gated(estimate->root, &path->custom.path))
	{
		sorted.processes = gpusort_range_processes(input->parallel_workers);
		sorted.range_key = key_columns == 1 ? key : gpusort_unknown_key(key);
		sorted.sorts = estimate->note ? list_make1((void *) path) : NIL;
		sorted.why_alone = why_alone;
	}
	if (estimate->note)
	{
		((GpuSortPath *) path)->range_top = NULL;
		((GpuSortPath *) path)->range_parts = false;
		((GpuSortPath *) path)->by_range = false;
		((GpuSortPath *) path)->why_alone = NULL;
	}
	/* Where its input runs by ranges, it is faster that PostgreSQL sorts each of them, in all processes. */
	if (by_range.range_key != NULL && by_range.why_alone == NULL &&
		(gpusort_force || time_by_range < gpusort_parts_total(&sorted)))
	{
		((GpuSortPath *) path)->by_range = estimate->note;
		return by_range;
	}
	return sorted;
}

/* What processes do with their ranges, below a Gather. */
static GpuSortParts
ranges_time(const Estimate *estimate, const Path *child)
{
	GpuSortParts time = input_time(estimate, child);

	return (GpuSortParts){.rows = time.rows, .before = gpusort_parts_total(&time), .processes = 1};
}

/* What is below an Append, or a Merge Append, which sorts by keys what does not come in order. */
static GpuSortParts
append_time(const Estimate *estimate, const Path *path, List *subpaths, List *keys)
{
	GpuSortParts time = {.processes = 1};
	bool of_shards = gpusort_paths_are_of_shards(subpaths);
	bool at_once = gpusort_path_reads_shards_at_once(path);
	ListCell *cell;

	foreach(cell, subpaths)
	{
		const Path *below = lfirst(cell);
		GpuSortParts part = {.rows = below->rows};

		if (of_shards && gpusort_shard_path(below) != NULL)
			part.before = gpusort_shard_time(below, at_once);
		else
			part = keys == NIL ? stream_time(estimate, below) : input_time(estimate, below);
		if (!pathkeys_contained_in(keys, below->pathkeys))
			part.above += gpusort_path_native_sort_time(estimate->root, keys, below, part.rows, -1);
		time.before += gpusort_parts_total(&part);
		time.rows += part.rows;
	}
	/* Shards are asked for no more of their sorted rows than are wanted. */
	if (of_shards && path->pathkeys != NIL && estimate->first >= 0 && estimate->first < time.rows)
	{
		time.before *= estimate->first / time.rows;
		time.rows = estimate->first;
	}
	if (keys != NIL)
		time.before += gpusort_rows_time(GPUSORT_NODE_MERGE_APPEND, time.rows);
	return time;
}

/* What a process takes for its part of a shard's rows. */
static GpuSortParts
shard_scan_time(const Path *path, double rows)
{
	return (GpuSortParts){
		.rows = path->rows,
		.before = gpusort_constant(GPUSORT_TIME_CONNECTION, false) + gpusort_fetch_time(rows, path->pathtarget->width),
		.processes = 1,
	};
}

/*
 * What a process takes for all rows of a foreign table that others could read, too: its cost says next to nothing of
 * what a row takes on its way.
 */
static GpuSortParts
whole_shard_time(const Estimate *estimate, const Path *path)
{
	GpuSortParts time = other_time(estimate, path);
	double takes = gpusort_shard_time(path, false);

	if (estimate->first >= 0 && estimate->first < path->rows)
		takes *= estimate->first / path->rows;
	time.before = Max(time.before, takes);
	return time;
}

/* What a nested loop takes: its sides', and its own work by cost, in which the inner side is read again and again. */
static GpuSortParts
nested_loop_time(const Estimate *estimate, const JoinPath *path)
{
	const Path *outer_path = path->outerjoinpath;
	GpuSortParts outer = stream_time(estimate, outer_path);
	GpuSortParts time = {.rows = path->path.rows, .before = gpusort_parts_total(&outer), .processes = 1};

	/* Of two rows side by side (orders_apart.c) the other one is as well known. */
	if (IS_UPPER_REL(path->path.parent))
	{
		GpuSortParts inner = input_time(estimate, path->innerjoinpath);

		time.before += gpusort_parts_total(&inner);
	}
	else
		time.before += gpusort_cost_time(path->path.total_cost - outer_path->total_cost);
	if (estimate->note && !IS_UPPER_REL(path->path.parent))
	{
		Estimate again = *estimate;
		GpuSortParts inner;

		again.repeated = true;
		inner = stream_time(&again, path->innerjoinpath);
		(void) gpusort_parts_total(&inner);
	}
	return time;
}

/* A node that passes rows on, or does something with each of them that its cost knows. */
static GpuSortParts
over_time(const Estimate *estimate, const Path *path, const Path *below)
{
	Estimate of_below = *estimate;
	GpuSortParts time;

	if (IsA(path, MaterialPath))
		of_below.repeated = false;
	if (!IsA(path, ProjectionPath))
		of_below.kept = 0;
	if (IsA(path, ProjectionPath) && ((const ProjectionPath *) path)->dummypp)
		of_below.projected = path->pathtarget;
	else
		of_below.sorted_by = NIL;
	time = path_time(&of_below, below);
	gpusort_parts_add(&time, gpusort_cost_time(path->total_cost - below->total_cost),
					  below->rows > 0 ? path->rows * time.rows / below->rows : path->rows, may_share(estimate, path, &time),
					  false);
	return time;
}

/* Returns a subquery's key as the query around it has it; if it has none, a key that nothing there is equal to. */
static const PathKey *
key_outside(PlannerInfo *root, const SubqueryScanPath *path, const PathKey *key)
{
	List *keys = convert_subquery_pathkeys(root, path->path.parent, list_make1((void *) key),
										   make_tlist_from_pathtarget(path->subpath->pathtarget));

	return keys != NIL ? linitial_node(PathKey, keys) : gpusort_unknown_key(key);
}

static GpuSortParts
subquery_time(const Estimate *estimate, const SubqueryScanPath *path)
{
	Estimate inside = *estimate;
	GpuSortParts time;

	inside.kept = 0;
	inside.root = path->path.parent->subroot;
	inside.projected = NULL;
	inside.sorted_by = NIL;
	if (path->path.param_info != NULL || path->path.parent->baserestrictinfo != NIL)
		inside.first = -1;
	time = path_time(&inside, path->subpath);
	gpusort_parts_add(&time, gpusort_cost_time(path->path.total_cost - path->subpath->total_cost),
					  path->subpath->rows > 0 ? path->path.rows * time.rows / path->subpath->rows : path->path.rows,
					  !time.shared && may_share(estimate, &path->path, &time), path->path.parent->baserestrictinfo != NIL);
	if (time.range_key != NULL)
		time.range_key = key_outside(estimate->root, path, time.range_key);
	return time;
}

/* What a scan takes, and all else that is not known: the part of its cost that the rows that are wanted have. */
static GpuSortParts
other_time(const Estimate *estimate, const Path *path)
{
	double cost = path->total_cost - gpusort_shared_pages_cost(estimate->root, path);

	if (estimate->first >= 0 && path->rows > 0 && estimate->first < path->rows)
		cost = path->startup_cost + (cost - path->startup_cost) * estimate->first / path->rows;
	if (estimate->guess->input > 0)
		cost *= estimate->guess->input;
	return (GpuSortParts){.rows = path->rows, .before = gpusort_cost_time(cost), .processes = 1};
}

/* The number of rows that a Limit wants of what is below it; -1: all, or nobody knows. */
double
gpusort_limit_path_rows(PlannerInfo *root, const LimitPath *path)
{
	bool known;

	if (path->limitCount == NULL || path->limitOption != LIMIT_OPTION_COUNT)
		return -1;
	return gpusort_limit_rows(estimate_expression_value(root, path->limitCount),
							  path->limitOffset != NULL ? estimate_expression_value(root, path->limitOffset) : NULL,
							  path->subpath->rows, &known);
}

/* What is below a Limit, whose rows it wants. */
static GpuSortParts
limit_time(const Estimate *estimate, const LimitPath *path)
{
	Estimate below = *estimate;
	GpuSortParts time;

	below.first = gpusort_limit_path_rows(estimate->root, path);
	below.kept = 0;
	below.limited |= path->limitCount != NULL;
	below.projected = NULL;
	below.sorted_by = NIL;
	time = path_time(&below, path->subpath);
	return (GpuSortParts){.rows = path->path.rows, .before = gpusort_parts_total(&time), .processes = 1};
}

static GpuSortParts
kind_time(const Estimate *estimate, const Path *path)
{
	switch (nodeTag(path))
	{
		case T_ProjectionPath:
			return over_time(estimate, path, ((const ProjectionPath *) path)->subpath);
		case T_ProjectSetPath:
			return over_time(estimate, path, ((const ProjectSetPath *) path)->subpath);
		case T_MaterialPath:
			return over_time(estimate, path, ((const MaterialPath *) path)->subpath);
		case T_SortPath:
			return sort_time(estimate, path, ((const SortPath *) path)->subpath, 0);
		case T_IncrementalSortPath:
			return sort_time(estimate, path, ((const IncrementalSortPath *) path)->spath.subpath,
							 ((const IncrementalSortPath *) path)->nPresortedCols);
		case T_GatherPath:
			return gather_time(estimate, path, ((const GatherPath *) path)->subpath, GPUSORT_NODE_GATHER);
		case T_GatherMergePath:
			return gather_time(estimate, path, ((const GatherMergePath *) path)->subpath, GPUSORT_NODE_GATHER_MERGE);
		case T_AggPath:
			return aggregate_time(estimate, (const AggPath *) path);
		case T_GroupPath:
			return unique_time(estimate, path, ((const GroupPath *) path)->subpath, ((const GroupPath *) path)->qual);
		case T_UpperUniquePath:
			return unique_time(estimate, path, ((const UpperUniquePath *) path)->subpath, NIL);
		case T_GroupingSetsPath:
			return grouping_sets_time(estimate, (const GroupingSetsPath *) path);
		case T_WindowAggPath:
			return window_time(estimate, (const WindowAggPath *) path);
		case T_SetOpPath:
			return set_operation_time(estimate, (const SetOpPath *) path);
		case T_MergePath:
			return merge_join_time(estimate, (const MergePath *) path);
		case T_HashPath:
			return hash_join_time(estimate, (const HashPath *) path);
		case T_NestPath:
			return nested_loop_time(estimate, (const JoinPath *) path);
		case T_SubqueryScanPath:
			return subquery_time(estimate, (const SubqueryScanPath *) path);
		case T_LimitPath:
			if (estimate->guess->limits)
				return limit_time(estimate, (const LimitPath *) path);
			break;
		case T_AppendPath:
			if (path->parallel_workers == 0 || gpusort_path_appends_shard_scans(path))
				return append_time(estimate, path, ((const AppendPath *) path)->subpaths, NIL);
			break;
		case T_MergeAppendPath:
			return append_time(estimate, path, ((const MergeAppendPath *) path)->subpaths, path->pathkeys);
		case T_ForeignPath:
			if (gpusort_path_is_whole_shard(path))
				return whole_shard_time(estimate, path);
			break;
		case T_CustomPath:
			if (gpusort_path_is_sort(path))
				return gpusort_time(estimate, (const GpuSortPath *) path);
			if (gpusort_path_is_output(path))
				return ranges_time(estimate, gpusort_partial_path_child(path));
			if (gpusort_path_is_groups(path))
				return partial_groups_time(estimate, (const GpuSortGroupsPath *) path);
			if (gpusort_path_is_shard_scan(path))
				return shard_scan_time(path, path->rows);
			if (gpusort_path_is_task_scan(path))
				return shard_scan_time(path, gpusort_task_scan_rows(path));
			break;
		default:
			break;
	}
	return other_time(estimate, path);
}

/* What a path that gives rows while it reads takes before the first: the hashed sides of joins, for the most part. */
static double
startup_time(const Estimate *estimate, const Path *path)
{
	const JoinPath *join = (const JoinPath *) path;
	Estimate inside = *estimate;
	GpuSortParts inner;

	switch (nodeTag(path))
	{
		case T_HashPath:
			inner = input_time(estimate, join->innerjoinpath);
			return startup_time(estimate, join->outerjoinpath) + gpusort_parts_total(&inner);
		case T_NestPath:
			return startup_time(estimate, join->outerjoinpath);
		case T_MergePath:
			return startup_time(estimate, join->outerjoinpath) + startup_time(estimate, join->innerjoinpath);
		case T_SubqueryScanPath:
			inside.root = path->parent->subroot;
			return startup_time(&inside, ((const SubqueryScanPath *) path)->subpath);
		case T_ProjectionPath:
		case T_ProjectSetPath:
		case T_LockRowsPath:
		case T_WindowAggPath:
			return startup_time(estimate, gpusort_path_only_child(path));
		default:
			return gpusort_cost_time(path->startup_cost);
	}
}

/* What the first rows take of a path that gives rows while it reads: their part of what all take. */
static GpuSortParts
first_of_stream_time(const Estimate *estimate, const Path *path)
{
	Estimate of_all = *estimate;
	GpuSortParts all;
	double time;
	double startup;

	of_all.first = -1;
	all = kind_time(&of_all, path);
	time = gpusort_parts_total(&all);
	startup = Min(startup_time(&of_all, path), time);
	return (GpuSortParts){
		.rows = path->rows,
		.before = startup + (time - startup) * estimate->first / path->rows,
		.processes = 1,
	};
}

static GpuSortParts
path_time(const Estimate *estimate, const Path *path)
{
	const bool stops = estimate->first >= 0 && estimate->first < path->rows && gpusort_path_streams(path);
	GpuSortParts time = stops ? first_of_stream_time(estimate, path) : kind_time(estimate, path);

	if (time.range_key != NULL)
		time.top = path;
	return time;
}

/*
 * Returns true if a query's rows may be a client's, a file's or a new table's: where they go is not known when it is
 * planned.
 * While a SELECT runs, what is planned is a function's query, whose rows stay in the server.
 */
static bool
gives_rows_out(const PlannerInfo *root)
{
	if (gpusort_statement_fills_pages())
		return root->parent_root == NULL;
	return root->parent_root == NULL && root->parse->commandType == CMD_SELECT && !gpusort_statement_stores_rows() &&
		(ActivePortal == NULL || ActivePortal->strategy != PORTAL_ONE_SELECT);
}

/* Returns true if PostgreSQL sorts rows again, range by range, in the place of a GpuSort of a path. */
static bool
sorts_again(const Path *path)
{
	const GpuSortPathChildren children = gpusort_path_children((Path *) path);

	if (gpusort_path_is_sort(path))
		return ((const GpuSortPath *) path)->by_range;
	for (int i = 0; i < 2; i++)
	{
		if (children.links[i] != NULL && sorts_again(*children.links[i]))
			return true;
	}
	return false;
}

/*
 * Notes in the GpuSorts of a path what above them runs by ranges, if so many of the path's rows are wanted (-1: all).
 * Where all processes put rows into a table they do what is below the ModifyTable.
 */
void
gpusort_path_note_ranges(PlannerInfo *root, const Path *path, double first)
{
	const Path *rows = gpusort_statement_fills_pages() && IsA(path, ModifyTablePath)
		? ((const ModifyTablePath *) path)->subpath
		: path;
	const Estimate estimate = {
		.root = root,
		.guess = &gpusort_with_limits,
		.first = first,
		.limited = first >= 0,
		.note = true,
	};
	GpuSortParts time = path_time(&estimate, rows);

	(void) gpusort_parts_total(&time);
	if (first < 0 && time.top == rows && gives_rows_out(root) && !sorts_again(rows))
		gpusort_parts_note_formed(&time, gpusort_output_time(rows->pathtarget, time.rows));
}

/* Returns what a path takes, in ns, if so many of its rows are wanted (-1: all), and numbers of rows are as guessed. */
double
gpusort_path_time(PlannerInfo *root, const Path *path, double first, const GpuSortGuess *guess)
{
	const Estimate estimate = {.root = root, .guess = guess, .first = first, .limited = first >= 0};
	GpuSortParts time = path_time(&estimate, path);

	return gpusort_parts_total(&time);
}

/* Returns what it takes to fetch so many of a path's rows (-1: all), which are made as they are fetched. */
double
gpusort_path_fetch_time(PlannerInfo *root, const Path *path, double first)
{
	const Estimate estimate = {.root = root, .guess = &gpusort_with_limits, .first = first, .limited = first >= 0};
	GpuSortParts time = path_time(&estimate, path);

	if (first >= 0 && first < time.rows)
		time.above *= first / time.rows;
	return gpusort_parts_total(&time);
}
