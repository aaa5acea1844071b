/*-------------------------------------------------------------------------
 *
 * node_kinds.c
 *	  The nodes that may run range by range of sorted rows: one table, of paths and of finished plans.
 *
 * A node that can run in all processes above a sort has its row here.  Its path says whether it may (path_time.c
 * asks), and why not.  Its plan only says what it does to ranges: range_plan.c follows the columns through it.
 *
 * A path that is not in the table ends what processes share.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/node_kinds.h"

#include "catalog/pg_type_d.h"
#include "facts/parallel_safety.h"
#include "keys/types.h"
#include "node.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "plan/finish/plan_tree.h"
#include "plan/offer/paths.h"
#include "rewrite/rewriteManip.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"

/* Returns true if workers may compute an expression, or a list of them; otherwise why_not says why. */
bool
gpusort_may_run_in_ranges(GpuSortPathRanges *ranges, Node *expression)
{
	const char *hazard = gpusort_expression_hazard(ranges->root, expression);

	if (hazard != NULL)
		ranges->why_not = hazard;
	return hazard == NULL;
}

static bool
refuse(GpuSortPathRanges *ranges, const char *why_not)
{
	ranges->why_not = why_not;
	return false;
}

/* Returns true if one of the clauses' columns has the values of the key. */
static bool
groups_by_key(const GpuSortPathRanges *ranges, List *clauses)
{
	PlannerInfo *root = ranges->root;
	ListCell *cell;

	foreach(cell, clauses)
	{
		Node *expr = get_sortgroupclause_expr(lfirst_node(SortGroupClause, cell), root->processed_tlist);
		ListCell *member;

		expr = WITHOUT_GROUPING_NULLS(root, expr);
		foreach(member, ranges->key->pk_eclass->ec_members)
		{
			if (equal(WITHOUT_GROUPING_NULLS(root, lfirst_node(EquivalenceMember, member)->em_expr), expr))
				return true;
		}
	}
	return false;
}

/* The type of a key's first member. */
static Oid
first_type(const PathKey *key)
{
	return linitial_node(EquivalenceMember, key->pk_eclass->ec_members)->em_datatype;
}

/*
 * Returns true if the rows of both sides can be cut at the same borders: its members are
 * of one type, which is no enum and not made of others, or of such that have the same keys.  Not without a key.
 */
bool
gpusort_key_parts_both_sides(const PathKey *key)
{
	List *members = key != NULL ? key->pk_eclass->ec_members : NIL;
	const char *why_not;
	ListCell *cell;

	foreach(cell, members)
	{
		const EquivalenceMember *member = lfirst_node(EquivalenceMember, cell);
		GpuSortEncoding encoding =
			gpusort_key_encoding(key->pk_opfamily, member->em_datatype, exprType((Node *) member->em_expr),
								 key->pk_eclass->ec_collation, &why_not);

		if (!OidIsValid(gpusort_common_key_type(key->pk_opfamily, member->em_datatype, first_type(key))) ||
			encoding == GPUSORT_ENCODE_NONE || !gpusort_keys_are_same_everywhere(encoding))
			return false;
	}
	return members != NIL;
}

/*
 * Returns true if a side of a merge clause is found among its input's columns, which are of the class's members: an
 * expression that the class has with another collation is computed once more for the clause.
 */
static bool
is_column_of(const Node *argument, const EquivalenceClass *eclass)
{
	const Node *bare = argument;
	ListCell *cell;

	while (IsA(bare, RelabelType))
		bare = (const Node *) ((const RelabelType *) bare)->arg;
	if (IsA(bare, Var))
		return true;
	foreach(cell, eclass->ec_members)
	{
		if (equal(lfirst_node(EquivalenceMember, cell)->em_expr, argument))
			return true;
	}
	return false;
}

/* Returns true if the first clause of a merge join compares what the rows of its sides are shared out by. */
bool
gpusort_joins_range_keys(const MergePath *path, const PathKey *outer, const PathKey *inner)
{
	const RestrictInfo *clause;

	if (!gpusort_key_parts_both_sides(outer) || !gpusort_key_parts_both_sides(inner) || path->path_mergeclauses == NIL)
		return false;
	clause = linitial_node(RestrictInfo, path->path_mergeclauses);
	if (!is_column_of(get_leftop(clause->clause), clause->left_ec) ||
		!is_column_of(get_rightop(clause->clause), clause->right_ec))
		return false;
	if (outer->pk_eclass == inner->pk_eclass)
		return true;
	/* The sides of an outer join's clause are not equal in its rows, so they are of two classes. */
	return ((clause->left_ec == outer->pk_eclass && clause->right_ec == inner->pk_eclass) ||
			(clause->left_ec == inner->pk_eclass && clause->right_ec == outer->pk_eclass)) &&
		outer->pk_opfamily == inner->pk_opfamily && outer->pk_eclass->ec_collation == inner->pk_eclass->ec_collation &&
		OidIsValid(gpusort_common_key_type(outer->pk_opfamily, first_type(outer), first_type(inner)));
}

/* Returns true if rows of a join have the outer (or inner) side's columns as they were. */
bool
gpusort_join_keeps_side(JoinType type, bool outer)
{
	switch (type)
	{
		case JOIN_INNER:
			return true;
		case JOIN_LEFT:
		case JOIN_SEMI:
		case JOIN_ANTI:
			return outer;
		case JOIN_RIGHT:
			return !outer;
		default:
			return false;
	}
}

/* Returns a key that nothing is equal to, in the place of one that says nothing any more. */
PathKey *
gpusort_unknown_key(const PathKey *key)
{
	PathKey *unknown = makeNode(PathKey);

	*unknown = *key;
	unknown->pk_eclass = makeNode(EquivalenceClass);
	return unknown;
}

/*
 * Returns the key by whose values the rows of a merge join are shared out, as those of its sides are: one that nothing
 * is equal to, where the join makes both sides' columns NULL.
 */
const PathKey *
gpusort_joined_range_key(const MergePath *path, const PathKey *outer, const PathKey *inner)
{
	if (gpusort_join_keeps_side(path->jpath.jointype, true))
		return outer;
	return gpusort_join_keeps_side(path->jpath.jointype, false) ? inner : gpusort_unknown_key(outer);
}

/* --- WindowAgg --- */

static GpuSortGrouping
window_grouping(const Plan *plan)
{
	const WindowAgg *window = (const WindowAgg *) plan;

	return (GpuSortGrouping){
		.count = window->partNumCols,
		.attnos = window->partColIdx,
		.operators = window->partOperators,
		.collations = window->partCollations,
	};
}

/* The window of a path. */
static GpuSortWindow
path_window(const WindowAggPath *path)
{
	const WindowClause *clause = path->winclause;

	return (GpuSortWindow){
		.columns = path->path.pathtarget->exprs,
		.winref = clause->winref,
		.partition_columns = list_length(clause->partitionClause),
		.order_columns = list_length(clause->orderClause),
		.frame_options = clause->frameOptions,
		.start_offset = clause->startOffset,
		.end_offset = clause->endOffset,
		.leaves_out = path->qual != NIL || (WINDOW_PATH_RUN_CONDITION(path) != NIL && !path->topwindow),
		.stops_at = path->topwindow ? WINDOW_PATH_RUN_CONDITION(path) : NIL,
	};
}

/* Says what the window of a path needs of other rows. */
GpuSortWindowNeeds
gpusort_window_path_needs(const WindowAggPath *path)
{
	const GpuSortWindow window = path_window(path);

	return gpusort_window_needs(&window);
}

/* Returns true if the window of a path needs no rows of a partition but first ones, which *kept becomes. */
bool
gpusort_window_path_keeps(const WindowAggPath *path, GpuSortKeptRows *kept)
{
	const GpuSortWindow window = path_window(path);

	return gpusort_window_keeps(&window, kept);
}

/* Returns true if a path is a GpuSort of rows that processes take in, not one that sorts what runs by ranges again. */
static bool
reads_parts(const Path *path)
{
	const GpuSortPath *sort = (const GpuSortPath *) path;
	const Path *input;

	if (!gpusort_path_is_sort(path))
		return false;
	input = IsA(sort->input, ProjectionPath) ? ((const ProjectionPath *) sort->input)->subpath : sort->input;
	return sort->gathered || IsA(input, GatherPath);
}

/* Returns why one process runs a window whose partitions the sort does not keep together. */
static const char *
why_whole(const GpuSortWindowNeeds *needs)
{
	const char *not_grouped = "the sort does not begin with a column of the window's PARTITION BY";
	Oid *types;
	bool floats;
	int count;

	if (needs->use.kind != GPUSORT_USE_NONE || !OidIsValid(needs->whole))
		return not_grouped;
	(void) get_func_signature(needs->whole, &types, &count);
	floats = count > 0 && (types[0] == FLOAT4OID || types[0] == FLOAT8OID);
	return psprintf("%s, and %s needs all rows of a partition in order, in one process%s", not_grouped,
					format_procedure(needs->whole), floats ? "; the result for floats depends on the order" : "");
}

/* The walker: finds a parameter that another plan sets. */
static bool
has_plan_param(Node *node, void *arg)
{
	if (node == NULL)
		return false;
	if (IsA(node, Param))
		return ((const Param *) node)->paramkind != PARAM_EXTERN;
	return expression_tree_walker(node, has_plan_param, arg);
}

/* Ranges of the rows may end within a window's partitions if that is right above the sort, and needs no more. */
static bool
window_path_may_run(GpuSortPathRanges *ranges, const Path *path)
{
	const WindowAggPath *window = (const WindowAggPath *) path;
	const WindowClause *clause = window->winclause;
	const GpuSortWindowNeeds needs = gpusort_window_path_needs(window);
	/* Where it stops giving out a partition's rows, it must have the first of them. */
	const bool goes_on = !ranges->shared && reads_parts(window->subpath) && WINDOW_PATH_RUN_CONDITION(window) == NIL &&
		(needs.use.kind == GPUSORT_USE_NEAR ||
		 (needs.use.kind == GPUSORT_USE_RUNNING && groups_by_key(ranges, clause->orderClause)));

	if (!goes_on && !groups_by_key(ranges, clause->partitionClause))
		return refuse(ranges, why_whole(&needs));
	/* PostgreSQL does not count these as the window's own, so a Gather above would not send them. */
	if (has_plan_param((Node *) WINDOW_PATH_RUN_CONDITION(window), NULL))
		return refuse(ranges, "where the window stops depends on a parameter that another plan sets");
	return gpusort_may_run_in_ranges(ranges, clause->startOffset) &&
		gpusort_may_run_in_ranges(ranges, clause->endOffset) &&
		gpusort_may_run_in_ranges(ranges, (Node *) WINDOW_PATH_RUN_CONDITION(window));
}

/* --- Agg: groups, and grouping sets --- */

/* The columns that all grouping sets have, which are the first ones of each in its chain: those of the shortest. */
static GpuSortGrouping
agg_grouping(const Plan *plan)
{
	const Agg *agg = (const Agg *) plan;
	GpuSortGrouping grouping = {
		.count = agg->numCols,
		.attnos = agg->grpColIdx,
		.operators = agg->grpOperators,
		.collations = agg->grpCollations,
	};
	ListCell *cell;

	foreach(cell, agg->groupingSets)
		grouping.count = Min(grouping.count, list_length((List *) lfirst(cell)));
	return grouping;
}

static bool
agg_path_may_run(GpuSortPathRanges *ranges, const Path *path)
{
	const AggPath *agg = (const AggPath *) path;

	if (agg->aggstrategy != AGG_SORTED)
		return refuse(ranges, "an aggregate that hashes, or has no GROUP BY, needs all rows in one process");
	if (DO_AGGSPLIT_SKIPFINAL(agg->aggsplit) && !ranges->shared)
		return refuse(ranges, "PostgreSQL's own parallel plan already computes the aggregate in parts");
	if (!groups_by_key(ranges, agg->groupClause))
		return refuse(ranges, "the sort does not begin with a column of GROUP BY");
	return gpusort_may_run_in_ranges(ranges, (Node *) agg->qual);
}

static bool
grouping_sets_path_may_run(GpuSortPathRanges *ranges, const Path *path)
{
	const GroupingSetsPath *sets = (const GroupingSetsPath *) path;
	ListCell *cell;
	ListCell *set;

	if (sets->aggstrategy != AGG_SORTED)
		return refuse(ranges, "an aggregate that hashes, or has no GROUP BY, needs all rows in one process");
	foreach(cell, sets->rollups)
	{
		const RollupData *rollup = lfirst_node(RollupData, cell);
		int columns = list_length(rollup->groupClause); /* the first of them, that all sets have */

		foreach(set, rollup->gsets_data)
			columns = Min(columns, list_length(lfirst_node(GroupingSetData, set)->set));
		if (rollup->is_hashed || !groups_by_key(ranges, list_truncate(list_copy(rollup->groupClause), columns)))
			return refuse(ranges, "the sort does not begin with a column of GROUP BY that all grouping sets have");
	}
	return gpusort_may_run_in_ranges(ranges, (Node *) sets->qual);
}

/* --- Group --- */

static GpuSortGrouping
group_grouping(const Plan *plan)
{
	const Group *group = (const Group *) plan;

	return (GpuSortGrouping){
		.count = group->numCols,
		.attnos = group->grpColIdx,
		.operators = group->grpOperators,
		.collations = group->grpCollations,
	};
}

static bool
group_path_may_run(GpuSortPathRanges *ranges, const Path *path)
{
	const GroupPath *group = (const GroupPath *) path;

	if (!groups_by_key(ranges, group->groupClause))
		return refuse(ranges, "the sort does not begin with a column of GROUP BY");
	return gpusort_may_run_in_ranges(ranges, (Node *) group->qual);
}

/* --- Unique --- */

static GpuSortGrouping
unique_grouping(const Plan *plan)
{
	const Unique *unique = (const Unique *) plan;

	return (GpuSortGrouping){
		.count = unique->numCols,
		.attnos = unique->uniqColIdx,
		.operators = unique->uniqOperators,
		.collations = unique->uniqCollations,
	};
}

/* --- SetOp: up to 17 it reads one input, in which a column tells the two apart --- */

#ifdef SET_OPERATIONS_READ_APPEND
#define SET_OPERATION_RULE GPUSORT_RANGES_GROUP

static GpuSortGrouping
setop_grouping(const Plan *plan)
{
	const SetOp *setop = (const SetOp *) plan;

	return (GpuSortGrouping){
		.count = setop->numCols,
		.attnos = setop->dupColIdx,
		.operators = setop->dupOperators,
		.collations = setop->dupCollations,
	};
}
#else
#define SET_OPERATION_RULE GPUSORT_RANGES_SETS
#define setop_grouping     NULL
#endif

static bool
setop_path_may_run(GpuSortPathRanges *ranges, const Path *path)
{
	return ((const SetOpPath *) path)->strategy == SETOP_SORTED;
}

/* --- MergeJoin --- */

static bool
merge_join_path_may_run(GpuSortPathRanges *ranges, const Path *path)
{
	const JoinPath *join = (const JoinPath *) path;

	switch (join->jointype)
	{
		case JOIN_INNER:
		case JOIN_LEFT:
		case JOIN_SEMI:
		case JOIN_ANTI:
		case JOIN_RIGHT:
		case JOIN_FULL:
			return gpusort_may_run_in_ranges(ranges, (Node *) join->joinrestrictinfo);
		default:
			return refuse(ranges, "this kind of merge join is not supported");
	}
}

/* --- Sort: the rows of a range again --- */

static bool
sort_path_may_run(GpuSortPathRanges *ranges, const Path *path)
{
	return (path->pathkeys != NIL && linitial_node(PathKey, path->pathkeys) == ranges->key) ||
		refuse(ranges, "another sort in between begins with another column");
}

/* --- SubqueryScan --- */

static bool
subquery_path_may_run(GpuSortPathRanges *ranges, const Path *path)
{
	return gpusort_may_run_in_ranges(ranges, (Node *) path->parent->baserestrictinfo);
}

static const GpuSortNodeRow rows[] = {
	{.plan = T_WindowAgg,
	 .path = T_WindowAggPath,
	 .ranges = GPUSORT_RANGES_WINDOW,
	 .can_end_columns = true,
	 .grouping = window_grouping,
	 .path_may_run = window_path_may_run},
	{.plan = T_Agg,
	 .path = T_AggPath,
	 .ranges = GPUSORT_RANGES_GROUP,
	 .can_end_columns = true,
	 .grouping = agg_grouping,
	 .path_may_run = agg_path_may_run},
	{.plan = T_Invalid, /* an Agg, too */
	 .path = T_GroupingSetsPath,
	 .path_may_run = grouping_sets_path_may_run},
	{.plan = T_Group,
	 .path = T_GroupPath,
	 .ranges = GPUSORT_RANGES_GROUP,
	 .can_end_columns = true,
	 .grouping = group_grouping,
	 .path_may_run = group_path_may_run},
	{.plan = T_Unique,
	 .path = T_UpperUniquePath,
	 .ranges = GPUSORT_RANGES_GROUP,
	 .grouping = unique_grouping},
	{.plan = T_SetOp,
	 .path = T_SetOpPath,
	 .ranges = SET_OPERATION_RULE,
	 .grouping = setop_grouping,
	 .path_may_run = setop_path_may_run},
	{.plan = T_MergeJoin,
	 .path = T_MergePath,
	 .ranges = GPUSORT_RANGES_JOIN,
	 .can_end_columns = true,
	 .path_may_run = merge_join_path_may_run},
	{.plan = T_Sort,
	 .path = T_SortPath,
	 .ranges = GPUSORT_RANGES_SORT,
	 .path_may_run = sort_path_may_run},
	{.plan = T_IncrementalSort,
	 .path = T_IncrementalSortPath,
	 .ranges = GPUSORT_RANGES_SORT,
	 .path_may_run = sort_path_may_run},
	{.plan = T_CustomScan, /* GpuSort, above rows that are in order already */
	 .path = T_CustomPath,
	 .ranges = GPUSORT_RANGES_SORT,
	 .path_may_run = sort_path_may_run},
	{.plan = T_Result,
	 .path = T_ProjectionPath,
	 .ranges = GPUSORT_RANGES_PASS,
	 .can_end_columns = true},
	{.plan = T_ProjectSet, .path = T_ProjectSetPath, .ranges = GPUSORT_RANGES_PASS},
	{.plan = T_SubqueryScan,
	 .path = T_SubqueryScanPath,
	 .ranges = GPUSORT_RANGES_PASS,
	 .can_end_columns = true,
	 .path_may_run = subquery_path_may_run},
};

/* Returns the row of a plan's node; NULL if there is none: it cannot run range by range. */
const GpuSortNodeRow *
gpusort_node_row(const Plan *plan)
{
	if (IsA(plan, CustomScan) && !gpusort_plan_is(plan, &gpusort_scan_methods))
		return NULL;
	for (int i = 0; i < lengthof(rows); i++)
	{
		if (rows[i].plan == nodeTag(plan))
			return &rows[i];
	}
	return NULL;
}

/* Returns true if a path may run by ranges of the rows below it; otherwise why_not can say why. */
bool
gpusort_path_may_run_by_ranges(GpuSortPathRanges *ranges, const Path *path)
{
	bool known = ranges->shared;

	if (ranges->key == NULL)
		return false;
	for (int i = 0; i < lengthof(rows); i++)
	{
		if (rows[i].path != nodeTag(path))
			continue;
		known = true;
		if (rows[i].path_may_run != NULL && !rows[i].path_may_run(ranges, path))
			return false;
	}
	return known && gpusort_may_run_in_ranges(ranges, (Node *) path->pathtarget->exprs);
}
