/*-------------------------------------------------------------------------
 *
 * path_time.c
 *	  How long a path takes, where PostgreSQL's costs do not say.
 *
 * PostgreSQL's costs tell its own plans from each other.  What a unit of them takes depends
 * on the node: in a Sort five microseconds, in a scan two, in a hash table of many groups
 * thirty, since there is no term for rows that are in no cache, for fresh pages and for
 * groups.  So a path over GpuSort that competes with hashing is not given a cost made of
 * such parts: what both paths take is estimated here, node by node, and the path over
 * GpuSort gets PostgreSQL's cost of the other, times the ratio of the two times.
 *
 * Times are in a unit of 5 us, that of PostgreSQL 15's sort and of GpuSort's cost there (cost.c), and come
 * from bench/costs.
 * Nodes that are not known, scans above all, take what their cost says, but for pages that processes share.
 *
 * What is above a GpuSort with parallel ingest runs in all processes, if lift.c finds that
 * it may: so the time of such a path has two parts, until the rows are in order and above
 * that, of which the second is divided.  Whether it may is guessed here, from paths: the
 * sort's first column is one that each node groups by, and expressions are parallel safe.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/model/path_time.h"

#include <math.h>

#include "executor/nodeAgg.h"
#include "keys/types.h"
#include "miscadmin.h"
#include "node.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "optimizer/tlist.h"
#include "plan/model/node_time.h"
#include "plan/offer/paths.h"
#include "plan/model/shard_time.h"
#include "settings.h"
#include "utils/spccache.h"

/* What strings take PostgreSQL's sort more than its cost says; GpuSort's cost is too low by as much (cost.c). */
#define STRING_FACTOR 2.0

/* Rows on their way through Gather's queues, of which parallel_tuple_cost says several times that. */
#define GATHER_ROW       (0.16 * parallel_tuple_cost)
#define GATHER_MERGE_ROW (0.35 * parallel_tuple_cost)

/* A worker's start, beside parallel_setup_cost */
#define WORKER_START (0.1 * parallel_setup_cost)

/* A row that is looked up in a table of so many bytes, over one that lies in the cache. */
#define CACHE_BYTES    (512.0 * 1024)
#define CACHE_DOUBLING NS(25)
#define CACHE_MISS_MAX NS(300)

#define HASH_ROW        NS(55)
#define HASH_GROUP      NS(250)
#define HASH_GROUP_BYTE NS(0.7)
#define HASH_SPILL_ROW  NS(300)
#define HASH_SPILL_BYTE NS(0.7)
#define APPEND_ROW      NS(5)
#define MERGED_ROW      NS(20)

#define BUILD_ROW  NS(150)
#define BUILD_BYTE NS(0.6)
#define PROBE_ROW  NS(90)

/* Hash tables are this much larger than what is in them. */
#define HASH_ROW_BYTES 48.0

/*
 * A path over GpuSort has to be faster by so much, for what is written here is not known that well; but not
 * where hashing, if there are MORE_GROUPS times as many groups as estimated, takes WORSE times as long as it.
 */
#define MARGIN      1.2
#define MORE_GROUPS 100.0
#define WORSE       2.5

/* What is asked of all nodes. */
typedef struct Estimate
{
	PlannerInfo *root;
	double groups; /* times the estimated number of groups */
} Estimate;

/* What is known of a path. */
typedef struct PathTime
{
	double rows;   /* that it emits, in each process */
	double before; /* all of the time, or until rows are in order */
	double above;  /* from there on, divided if there are */
	double processes;
	double start;             /* of before, what it takes to start these */
	const PathKey *range_key; /* by whose values the rows are shared out; NULL: by none, above belongs to one process */
	bool works;               /* a node above the sort has something to do */
} PathTime;

static PathTime path_time(const Estimate *estimate, const Path *path);

/* Returns all of the time of a path. */
static double
total_time(const PathTime *time)
{
	if (time->range_key != NULL && time->works)
		return time->before + Min(time->above, gpusort_time_in_ranges(time->above, time->rows, time->processes));
	return time->before + time->above;
}

/* What a lookup in a table of so many bytes takes more than one in the cache. */
static double
cache_misses(double bytes)
{
	return bytes <= CACHE_BYTES ? 0 : Min(CACHE_DOUBLING * log2(bytes / CACHE_BYTES), CACHE_MISS_MAX);
}

/* Adds a node to what is below it; if it cannot run in several processes, range_key becomes NULL. */
static void
add_node(PathTime *time, double work, double rows, bool may_lift, bool works)
{
	if (time->range_key != NULL && !may_lift)
	{
		time->before = total_time(time);
		time->above = 0;
		time->range_key = NULL;
	}
	time->above += work;
	time->rows = rows;
	time->works |= works;
}

/* Returns true if workers may compute a path's columns. */
static bool
target_is_safe(const Estimate *estimate, const Path *path)
{
	return is_parallel_safe(estimate->root, (Node *) path->pathtarget->exprs);
}

/* Returns true if one of the clauses' columns, SortGroupClauses of tlist, has the values of a key; not if that is NULL. */
bool
gpusort_groups_by_key(const PathKey *key, List *clauses, List *tlist)
{
	ListCell *cell;

	if (key == NULL)
		return false;
	foreach(cell, clauses)
	{
		Node *expr = get_sortgroupclause_expr(lfirst_node(SortGroupClause, cell), tlist);
		ListCell *member;

		foreach(member, key->pk_eclass->ec_members)
		{
			if (equal(lfirst_node(EquivalenceMember, member)->em_expr, expr))
				return true;
		}
	}
	return false;
}

/* Returns true if that is what the rows are shared out by. */
static bool
groups_by_range_key(const PathTime *time, List *clauses, List *tlist)
{
	return gpusort_groups_by_key(time->range_key, clauses, tlist);
}

/* What transitions of a query's aggregates take for a row, and their states for a group. */
static void
aggregate_times(const PlannerInfo *root, double *row, double *group)
{
	ListCell *cell;

	*row = TRANSITION_SORT * root->numOrderedAggs;
	*group = 0;
	foreach(cell, root->aggtransinfos)
	{
		const AggTransInfo *info = lfirst(cell);
		bool state = !info->transtypeByVal || info->aggtranstype == INTERNALOID;

		gpusort_add_transition_times(state, row, group);
	}
}

/* Grouping so many rows by hashing. */
static double
hash_time(const Estimate *estimate, const Path *input, double rows, double groups, uint64 transition_space)
{
	const PlannerInfo *root = estimate->root;
	double entry = hash_agg_entry_size(list_length(root->aggtransinfos), input->pathtarget->width, transition_space);
	double limit = get_hash_memory_limit();
	double bytes = entry * groups;
	double row;
	double group;
	double time;

	aggregate_times(root, &row, &group);
	time = rows * (HASH_ROW + row + cache_misses(Min(bytes, limit))) + groups * (HASH_GROUP + group) +
		Min(bytes, limit) * HASH_GROUP_BYTE;
	if (bytes > limit)
		time += rows * (1 - limit / bytes) * (HASH_SPILL_ROW + HASH_SPILL_BYTE * input->pathtarget->width);
	return time;
}

/* Grouping so many rows that are in order. */
static double
sorted_time(const Estimate *estimate, double rows, double groups)
{
	double row;
	double group;

	aggregate_times(estimate->root, &row, &group);
	return rows * (SORTED_ROW + row) + groups * (SORTED_GROUP + group);
}

static double
more_groups(const Estimate *estimate, double groups, double rows)
{
	return Max(Min(groups * estimate->groups, rows), 1);
}

/* Rows that are left of groups by HAVING, by PostgreSQL's estimate. */
static double
rows_of_groups(const Path *path, double estimated_groups, double groups)
{
	return estimated_groups > 0 ? path->rows * groups / estimated_groups : groups;
}

static PathTime
aggregate_time(const Estimate *estimate, const AggPath *path)
{
	PathTime time = path_time(estimate, path->subpath);
	double groups = more_groups(estimate, path->numGroups, time.rows);
	bool hashed = path->aggstrategy == AGG_HASHED;
	bool may_lift = path->aggstrategy == AGG_SORTED && !DO_AGGSPLIT_SKIPFINAL(path->aggsplit) &&
		groups_by_range_key(&time, path->groupClause, estimate->root->processed_tlist) &&
		target_is_safe(estimate, &path->path) && is_parallel_safe(estimate->root, (Node *) path->qual);

	add_node(&time, hashed ? hash_time(estimate, path->subpath, time.rows, groups, path->transitionSpace) : sorted_time(estimate, time.rows, groups),
			 rows_of_groups(&path->path, path->numGroups, groups), may_lift, true);
	return time;
}

static PathTime
grouping_sets_time(const Estimate *estimate, const GroupingSetsPath *path)
{
	PathTime time = path_time(estimate, path->subpath);
	double rows = time.rows;
	double groups = more_groups(estimate, path->path.rows, rows);
	bool may_lift = path->aggstrategy == AGG_SORTED && target_is_safe(estimate, &path->path) &&
		is_parallel_safe(estimate->root, (Node *) path->qual);
	double work = 0;
	ListCell *cell;
	ListCell *set;

	foreach(cell, path->rollups)
	{
		const RollupData *rollup = lfirst_node(RollupData, cell);

		if (rollup->is_hashed)
		{
			work += hash_time(estimate, path->subpath, rows, more_groups(estimate, rollup->numGroups, rows),
							  path->transitionSpace);
			may_lift = false;
		}
		else
			work += sorted_time(estimate, rows * list_length(rollup->gsets), more_groups(estimate, rollup->numGroups, rows));
		foreach(set, rollup->gsets_data)
		{
			if (lfirst_node(GroupingSetData, set)->set == NIL)
				may_lift = false;
		}
		if (!groups_by_range_key(&time, rollup->groupClause, estimate->root->processed_tlist))
			may_lift = false;
	}
	add_node(&time, work, groups, may_lift, true);
	return time;
}

static PathTime
window_time(const Estimate *estimate, const WindowAggPath *path)
{
	PathTime time = path_time(estimate, path->subpath);
	bool may_lift = groups_by_range_key(&time, path->winclause->partitionClause, estimate->root->processed_tlist) &&
		target_is_safe(estimate, &path->path);
	double row = gpusort_window_row_time(path->path.pathtarget->exprs, path->winclause->winref,
										 WINDOW_PATH_RUN_CONDITION(path), gpusort_path_is_sort(path->subpath));

	add_node(&time, row * time.rows, path->path.rows, may_lift, true);
	return time;
}

/* The type of a key's first member. */
static Oid
first_type(const PathKey *key)
{
	return linitial_node(EquivalenceMember, key->pk_eclass->ec_members)->em_datatype;
}

/*
 * Returns true if the rows of both sides can be cut at the same borders, as range_plan.c will find: their keys are
 * of one type, which is no enum, or of such that have the same keys.  Not without a key.
 */
static bool
has_same_keys(const PathKey *key)
{
	List *members = key != NULL ? key->pk_eclass->ec_members : NIL;
	const char *why_not;
	ListCell *cell;

	foreach(cell, members)
	{
		const EquivalenceMember *member = lfirst_node(EquivalenceMember, cell);
		GpuSortEncoding encoding =
			gpusort_key_encoding(key->pk_opfamily, member->em_datatype, key->pk_eclass->ec_collation, &why_not);

		if (!OidIsValid(gpusort_common_key_type(key->pk_opfamily, member->em_datatype, first_type(key))) || encoding == GPUSORT_ENCODE_NONE ||
			(gpusort_key_types[encoding].string == GPUSORT_STRING_NONE && gpusort_key_types[encoding].create != NULL))
			return false;
	}
	return members != NIL;
}

/* PostgreSQL's sort of a path's rows, by keys; nothing if there are none. */
static double
native_sort_time(const Estimate *estimate, List *keys, const Path *input)
{
	Path sorted;

	if (keys == NIL)
		return 0;
	COST_SORT(&sorted, estimate->root, keys, input, -1);
	return NATIVE_SORT_TIME * (sorted.total_cost - input->total_cost);
}

/* Returns true if the first clause of a merge join compares what the rows of its sides are shared out by. */
bool
gpusort_joins_range_keys(const MergePath *path, const PathKey *outer, const PathKey *inner)
{
	const RestrictInfo *clause;

	if (!has_same_keys(outer) || !has_same_keys(inner) || path->path_mergeclauses == NIL)
		return false;
	if (outer->pk_eclass == inner->pk_eclass)
		return true;
	/* The sides of an outer join's clause are not equal in its rows, so they are of two classes. */
	clause = linitial_node(RestrictInfo, path->path_mergeclauses);
	return ((clause->left_ec == outer->pk_eclass && clause->right_ec == inner->pk_eclass) ||
			(clause->left_ec == inner->pk_eclass && clause->right_ec == outer->pk_eclass)) &&
		outer->pk_opfamily == inner->pk_opfamily && outer->pk_eclass->ec_collation == inner->pk_eclass->ec_collation &&
		OidIsValid(gpusort_common_key_type(outer->pk_opfamily, first_type(outer), first_type(inner)));
}

/* A node over both sides' rows in order: in all processes, if it may, which takes range keys of both. */
static PathTime
both_sides_time(const Estimate *estimate, const Path *path, PathTime outer, const PathTime *inner, double work, bool may_lift)
{
	if (!may_lift || !target_is_safe(estimate, path))
		return (PathTime){
			.rows = path->rows,
			.before = total_time(&outer) + total_time(inner),
			.above = work,
			.processes = 1,
		};
	/* The same processes are of both sides. */
	outer.before += inner->before - Min(outer.start, inner->start);
	outer.above += inner->above;
	outer.start = Max(outer.start, inner->start);
	outer.processes = Max(outer.processes, inner->processes);
	add_node(&outer, work, path->rows, true, true);
	return outer;
}

static PathTime
merge_join_time(const Estimate *estimate, const MergePath *path)
{
	PathTime outer = path_time(estimate, path->jpath.outerjoinpath);
	PathTime inner = path_time(estimate, path->jpath.innerjoinpath);
	double work = (outer.rows + inner.rows) * MERGE_ROW + path->jpath.path.rows * JOINED_ROW;
	bool may_lift = gpusort_joins_range_keys(path, outer.range_key, inner.range_key) &&
		is_parallel_safe(estimate->root, (Node *) path->jpath.joinrestrictinfo);

	outer.above += native_sort_time(estimate, path->outersortkeys, path->jpath.outerjoinpath);
	inner.above += native_sort_time(estimate, path->innersortkeys, path->jpath.innerjoinpath);
	return both_sides_time(estimate, &path->jpath.path, outer, &inner, work, may_lift);
}

static PathTime
hash_join_time(const Estimate *estimate, const HashPath *path)
{
	const Path *inner_path = path->jpath.innerjoinpath;
	PathTime outer = path_time(estimate, path->jpath.outerjoinpath);
	PathTime inner = path_time(estimate, inner_path);
	double width = HASH_ROW_BYTES + inner_path->pathtarget->width;
	double miss = cache_misses(Max(path->inner_rows_total, inner.rows) * width / Max(path->num_batches, 1));
	PathTime time = {.rows = path->jpath.path.rows, .processes = 1};

	time.before = total_time(&outer) + total_time(&inner) + inner.rows * (BUILD_ROW + miss + BUILD_BYTE * width) +
		outer.rows * (PROBE_ROW + miss) + time.rows * JOINED_ROW;
	if (path->num_batches > 1)
		time.before += (1 - 1.0 / path->num_batches) *
			((inner.rows + outer.rows) * HASH_SPILL_ROW +
			 HASH_SPILL_BYTE * (inner.rows * width + outer.rows * path->jpath.outerjoinpath->pathtarget->width));
	return time;
}

/* What a node takes that has one path below it, and of whose work PostgreSQL's cost is not far off. */
static PathTime
over_time(const Estimate *estimate, const Path *path, const Path *below, double work)
{
	PathTime time = path_time(estimate, below);

	add_node(&time, work, below->rows > 0 ? path->rows * time.rows / below->rows : path->rows, target_is_safe(estimate, path),
			 false);
	return time;
}

static PathTime
set_operation_time(const Estimate *estimate, const SetOpPath *path)
{
	bool hashed = path->strategy == SETOP_HASHED;
#ifdef SET_OPERATIONS_READ_APPEND
	PathTime time = path_time(estimate, path->subpath);
	double groups = more_groups(estimate, path->numGroups, time.rows);

	add_node(&time, hashed ? hash_time(estimate, path->subpath, time.rows, groups, 0) : SETOP_ROW * time.rows,
			 path->path.rows, !hashed && target_is_safe(estimate, &path->path), true);
	return time;
#else
	PathTime left = path_time(estimate, path->leftpath);
	PathTime right = path_time(estimate, path->rightpath);
	double rows = left.rows + right.rows;
	double groups = more_groups(estimate, path->numGroups, left.rows);
	bool may_lift = !hashed && has_same_keys(left.range_key) && has_same_keys(right.range_key);

	return both_sides_time(estimate, &path->path, left, &right,
						   hashed ? hash_time(estimate, path->leftpath, rows, groups, 0) : SETOP_ROW * rows, may_lift);
#endif
}

static bool
is_string_key(const Path *path)
{
	return path->pathkeys != NIL && OidIsValid(linitial_node(PathKey, path->pathkeys)->pk_eclass->ec_collation);
}

static PathTime
sort_time(const Estimate *estimate, const Path *path, const Path *below)
{
	double cost = NATIVE_SORT_TIME * (path->total_cost - below->total_cost);

	return over_time(estimate, path, below, is_string_key(path) ? STRING_FACTOR * cost : cost);
}

static PathTime
gpusort_time(const Estimate *estimate, const GpuSortPath *path)
{
	/* The cost's margin is not wanted twice. */
	double unit = NATIVE_SORT_TIME / path->cost.margin * (is_string_key(&path->custom.path) ? STRING_FACTOR : 1);
	const Path *input = path->input;
	PathTime time = path_time(estimate, input);
	GpuSortCost cost = gpusort_cost_scaled(path->cost, unit);
	double rows = path->custom.path.rows;
	PathTime sorted = {.rows = rows, .processes = 1};

	/* Ties are compared as PostgreSQL's sort does it. */
	cost.compare += path->cost.ties * (STRING_FACTOR - unit);
	sorted.before = total_time(&time) + cost.setup + (cost.order + cost.compare) * rows +
		cost.ingest * (path->gathered ? input->rows : rows);
	sorted.above = cost.emit * rows;
	if (path->gathered && gpusort_parallel_output)
	{
		sorted.start = parallel_setup_cost + WORKER_START * input->parallel_workers;
		sorted.before += sorted.start;
		sorted.processes = gpusort_range_processes(input->parallel_workers);
		sorted.range_key = linitial_node(PathKey, path->custom.path.pathkeys);
	}
	return sorted;
}

static PathTime
gather_time(const Estimate *estimate, const Path *path, const Path *below, double row)
{
	PathTime time = path_time(estimate, below);
	double processes = below->rows > 0 ? path->rows / below->rows : 1;

	time.before = total_time(&time) + parallel_setup_cost + WORKER_START * below->parallel_workers;
	time.rows *= Max(processes, 1);
	time.above = time.rows * row;
	time.range_key = NULL;
	return time;
}

/* What is below an Append, or a Merge Append, which sorts by keys what does not come in order. */
static PathTime
append_time(const Estimate *estimate, const Path *path, List *subpaths, List *keys)
{
	PathTime time = {.processes = 1};
	bool of_shards = gpusort_paths_are_of_shards(subpaths);
	bool at_once = gpusort_path_reads_shards_at_once(path);
	ListCell *cell;

	foreach(cell, subpaths)
	{
		const Path *below = lfirst(cell);
		PathTime part = {.rows = below->rows};

		if (of_shards && gpusort_shard_path(below) != NULL)
			part.before = gpusort_shard_time(below, at_once);
		else
			part = path_time(estimate, below);
		if (!pathkeys_contained_in(keys, below->pathkeys))
			part.above += native_sort_time(estimate, keys, below);
		time.before += total_time(&part);
		time.rows += part.rows;
	}
	time.before += time.rows * (keys == NIL ? APPEND_ROW : MERGED_ROW);
	return time;
}

/*
 * What a parallel scan of a table in memory costs each process too much: PostgreSQL has them share rows, but each pay
 * for all of the pages, as if a disk gave them.  Half of a wide row's cost are its pages.
 */
static double
shared_pages_cost(const Estimate *estimate, const Path *path)
{
	const RelOptInfo *rel = path->parent;
	double page_cost;
	double cost = 0;
	ListCell *cell;

	if (path->parallel_workers == 0)
		return 0;
	if (IsA(path, AppendPath))
	{
		foreach(cell, ((const AppendPath *) path)->subpaths)
			cost += shared_pages_cost(estimate, lfirst(cell));
		return cost;
	}
	if (path->pathtype != T_SeqScan || estimate->root->total_table_pages > effective_cache_size)
		return 0;
	get_tablespace_page_costs(rel->reltablespace, NULL, &page_cost);
	return rel->pages * page_cost * (1 - Min(path->rows / Max(rel->rows, 1), 1));
}

static PathTime
path_time(const Estimate *estimate, const Path *path)
{
	const Path *below;
	PathTime time;

	switch (nodeTag(path))
	{
		case T_ProjectionPath:
			below = ((const ProjectionPath *) path)->subpath;
			return over_time(estimate, path, below, Max(path->total_cost - below->total_cost, 0) * OTHER_UNIT);
		case T_SortPath:
			return sort_time(estimate, path, ((const SortPath *) path)->subpath);
		case T_IncrementalSortPath:
			return sort_time(estimate, path, ((const IncrementalSortPath *) path)->spath.subpath);
		case T_GatherPath:
			return gather_time(estimate, path, ((const GatherPath *) path)->subpath, GATHER_ROW);
		case T_GatherMergePath:
			return gather_time(estimate, path, ((const GatherMergePath *) path)->subpath, GATHER_MERGE_ROW);
		case T_AggPath:
			return aggregate_time(estimate, (const AggPath *) path);
		case T_GroupPath:
			{
				const GroupPath *group = (const GroupPath *) path;

				time = path_time(estimate, group->subpath);
				add_node(&time, UNIQUE_ROW * time.rows,
						 more_groups(estimate, path->rows, time.rows),
						 groups_by_range_key(&time, group->groupClause, estimate->root->processed_tlist) &&
							 target_is_safe(estimate, path) && is_parallel_safe(estimate->root, (Node *) group->qual),
						 true);
				return time;
			}
		case T_UpperUniquePath:
			time = path_time(estimate, ((const UpperUniquePath *) path)->subpath);
			add_node(&time, UNIQUE_ROW * time.rows, more_groups(estimate, path->rows, time.rows), target_is_safe(estimate, path),
					 true);
			return time;
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
		case T_AppendPath:
			if (path->parallel_workers == 0)
				return append_time(estimate, path, ((const AppendPath *) path)->subpaths, NIL);
			break;
		case T_MergeAppendPath:
			if (gpusort_paths_are_of_shards(((const MergeAppendPath *) path)->subpaths))
				return append_time(estimate, path, ((const MergeAppendPath *) path)->subpaths, path->pathkeys);
			break;
		case T_CustomPath:
			if (gpusort_path_is_sort(path))
				return gpusort_time(estimate, (const GpuSortPath *) path);
			break;
		default:
			break;
	}
	return (PathTime){
		.rows = path->rows,
		.before = (path->total_cost - shared_pages_cost(estimate, path)) * OTHER_UNIT,
		.processes = 1,
	};
}

/* How many times as long as ours native takes, if there are so many times the estimated number of groups. */
static double
ratio(PlannerInfo *root, const Path *ours, const Path *native, double groups)
{
	const Estimate estimate = {.root = root, .groups = groups};
	PathTime our_time = path_time(&estimate, ours);
	PathTime native_time = path_time(&estimate, native);

	return total_time(&native_time) / Max(total_time(&our_time), 1e-6);
}

/*
 * How many times as fast as a path of PostgreSQL's one over GpuSort of the same rows is to be thought: with a
 * margin for what is not known, but none where hashing would suffer by many more groups than estimated.
 */
double
gpusort_path_advantage(PlannerInfo *root, const Path *ours, const Path *native)
{
	double advantage = ratio(root, ours, native, 1);

	return ratio(root, ours, native, MORE_GROUPS) >= WORSE ? advantage : advantage / MARGIN;
}

/* Gives ours the cost with which it compares to native as it is so many times as fast. */
void
gpusort_path_set_cost(Path *ours, const Path *native, double advantage)
{
	double startup = ours->total_cost > 0 ? ours->startup_cost / ours->total_cost : 1;

	ours->total_cost = native->total_cost / advantage;
	ours->startup_cost = ours->total_cost * startup;
}

/*
 * Raises the cost of ours to what it is by that of a partial path of PostgreSQL's, if it is below: an aggregate
 * may follow in each process, before the rows have to be gathered, and then they must compare, too.
 */
void
gpusort_path_raise_cost(PlannerInfo *root, Path *ours, const Path *native)
{
	double advantage = ratio(root, ours, native, 1);

	if (native->total_cost / advantage > ours->total_cost)
		gpusort_path_set_cost(ours, native, advantage);
}
