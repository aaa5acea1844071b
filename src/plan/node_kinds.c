/*-------------------------------------------------------------------------
 *
 * node_kinds.c
 *	  The nodes that may run range by range of sorted rows: one table, of finished plans and of paths.
 *
 * A node that is to run in all processes above a sort has its row here: what it does to ranges (range_plan.c follows
 * columns through it), what it computes (finish/node_safety.c asks whether workers may), and whether its path may run
 * so (path_time.c).  The rules on paths decide; those on plans find the columns.  Builds that check plans log where the
 * two differ.
 *
 * A plan that is not in the table ends what processes share.  A path that is not is thought to pass its rows on: there
 * are nodes that come and go between a path and its plan.
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

static void
add_operators(GpuSortComputed *computed, int count, const Oid *operators)
{
	for (int i = 0; i < count; i++)
		computed->functions = lappend_oid(computed->functions, get_opcode(operators[i]));
}

/* Returns true if workers may compute a path's columns. */
static bool
target_is_safe(PlannerInfo *root, const Path *path)
{
	return gpusort_expression_is_safe(root, (Node *) path->pathtarget->exprs);
}

/* Returns true if one of the clauses' columns has the values of a key; not if that is NULL. */
static bool
groups_by_key(PlannerInfo *root, const PathKey *key, List *clauses)
{
	ListCell *cell;

	if (key == NULL)
		return false;
	foreach(cell, clauses)
	{
		Node *expr = get_sortgroupclause_expr(lfirst_node(SortGroupClause, cell), root->processed_tlist);
		ListCell *member;

		expr = WITHOUT_GROUPING_NULLS(root, expr);
		foreach(member, key->pk_eclass->ec_members)
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
 * Returns true if the rows of both sides can be cut at the same borders, as range_plan.c will find: its members are
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

/* Returns true if the first clause of a merge join compares what the rows of its sides are shared out by. */
bool
gpusort_joins_range_keys(const MergePath *path, const PathKey *outer, const PathKey *inner)
{
	const RestrictInfo *clause;

	if (!gpusort_key_parts_both_sides(outer) || !gpusort_key_parts_both_sides(inner) || path->path_mergeclauses == NIL)
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

static void
window_computed(const Plan *plan, GpuSortComputed *computed)
{
	const WindowAgg *window = (const WindowAgg *) plan;

	computed->expressions = list_make3(window->startOffset, window->endOffset, window->runCondition);
	if (OidIsValid(window->startInRangeFunc))
		computed->functions = lappend_oid(computed->functions, window->startInRangeFunc);
	if (OidIsValid(window->endInRangeFunc))
		computed->functions = lappend_oid(computed->functions, window->endInRangeFunc);
	add_operators(computed, window->partNumCols, window->partOperators);
	add_operators(computed, window->ordNumCols, window->ordOperators);
}

/* Says what the window of a path needs of other rows. */
GpuSortWindowNeeds
gpusort_window_path_needs(const WindowAggPath *path)
{
	const WindowClause *clause = path->winclause;
	const GpuSortWindow window = {
		.columns = path->path.pathtarget->exprs,
		.winref = clause->winref,
		.partition_columns = list_length(clause->partitionClause),
		.order_columns = list_length(clause->orderClause),
		.frame_options = clause->frameOptions,
		.start_offset = clause->startOffset,
		.end_offset = clause->endOffset,
		.ends_early = WINDOW_PATH_RUN_CONDITION(path) != NIL || path->qual != NIL,
	};

	return gpusort_window_needs(&window);
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

/* Returns true if ranges of a window's rows, by this key, may end within its partitions (range_plan.c). */
static bool
may_go_on(PlannerInfo *root, const WindowAggPath *path, const PathKey *key)
{
	const GpuSortWindowNeeds needs = gpusort_window_path_needs(path);

	return reads_parts(path->subpath) &&
		(needs.use.kind == GPUSORT_USE_NEAR ||
		 (needs.use.kind == GPUSORT_USE_RUNNING && groups_by_key(root, key, path->winclause->orderClause)));
}

static bool
window_path_may_run(PlannerInfo *root, const Path *path, const PathKey *key, bool shared)
{
	const WindowAggPath *window = (const WindowAggPath *) path;
	const WindowClause *clause = window->winclause;

	return target_is_safe(root, path) && gpusort_expression_is_safe(root, clause->startOffset) &&
		gpusort_expression_is_safe(root, clause->endOffset) &&
		gpusort_expression_is_safe(root, (Node *) WINDOW_PATH_RUN_CONDITION(window)) &&
		(groups_by_key(root, key, window->winclause->partitionClause) ||
		 (!shared && may_go_on(root, window, key)));
}

/* --- Agg: groups, and grouping sets --- */

static bool
agg_may_run(const Plan *plan, bool partial, const char **why_not)
{
	const Agg *agg = (const Agg *) plan;
	ListCell *cell;

	if (agg->aggstrategy != AGG_SORTED)
	{
		*why_not = "an aggregate without GROUP BY, or by hashing, needs all rows in one process";
		return false;
	}
	if (DO_AGGSPLIT_SKIPFINAL(agg->aggsplit) && !partial)
	{
		*why_not = "an aggregate is computed in parts already, by PostgreSQL's own parallel plan";
		return false;
	}
	foreach(cell, agg->chain)
	{
		if (!agg_may_run(lfirst(cell), partial, why_not))
			return false;
	}
	return true;
}

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

static void
agg_computed(const Plan *plan, GpuSortComputed *computed)
{
	const Agg *agg = (const Agg *) plan;
	ListCell *cell;

	add_operators(computed, agg->numCols, agg->grpOperators);
	foreach(cell, agg->chain)
		agg_computed(lfirst(cell), computed);
}

static bool
agg_path_may_run(PlannerInfo *root, const Path *path, const PathKey *key, bool shared)
{
	const AggPath *agg = (const AggPath *) path;

	return agg->aggstrategy == AGG_SORTED && (shared || !DO_AGGSPLIT_SKIPFINAL(agg->aggsplit)) &&
		groups_by_key(root, key, agg->groupClause) && target_is_safe(root, path) &&
		gpusort_expression_is_safe(root, (Node *) agg->qual);
}

static bool
grouping_sets_path_may_run(PlannerInfo *root, const Path *path, const PathKey *key, bool shared)
{
	const GroupingSetsPath *sets = (const GroupingSetsPath *) path;
	ListCell *cell;
	ListCell *set;

	if (sets->aggstrategy != AGG_SORTED || !target_is_safe(root, path) ||
		!gpusort_expression_is_safe(root, (Node *) sets->qual))
		return false;
	foreach(cell, sets->rollups)
	{
		const RollupData *rollup = lfirst_node(RollupData, cell);
		int columns = list_length(rollup->groupClause); /* the first of them, that all sets have */

		foreach(set, rollup->gsets_data)
			columns = Min(columns, list_length(lfirst_node(GroupingSetData, set)->set));
		if (rollup->is_hashed || !groups_by_key(root, key, list_truncate(list_copy(rollup->groupClause), columns)))
			return false;
	}
	return true;
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

static void
group_computed(const Plan *plan, GpuSortComputed *computed)
{
	add_operators(computed, ((const Group *) plan)->numCols, ((const Group *) plan)->grpOperators);
}

static bool
group_path_may_run(PlannerInfo *root, const Path *path, const PathKey *key, bool shared)
{
	const GroupPath *group = (const GroupPath *) path;

	return groups_by_key(root, key, group->groupClause) && target_is_safe(root, path) &&
		gpusort_expression_is_safe(root, (Node *) group->qual);
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

static void
unique_computed(const Plan *plan, GpuSortComputed *computed)
{
	add_operators(computed, ((const Unique *) plan)->numCols, ((const Unique *) plan)->uniqOperators);
}

/* --- SetOp: up to 17 it reads one input, in which a column tells the two apart --- */

static bool
setop_may_run(const Plan *plan, bool partial, const char **why_not)
{
	return ((const SetOp *) plan)->strategy == SETOP_SORTED;
}

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

static void
setop_computed(const Plan *plan, GpuSortComputed *computed)
{
	add_operators(computed, ((const SetOp *) plan)->numCols, SETOP_OPERATORS((const SetOp *) plan));
}

static bool
setop_path_may_run(PlannerInfo *root, const Path *path, const PathKey *key, bool shared)
{
	return ((const SetOpPath *) path)->strategy == SETOP_SORTED && target_is_safe(root, path);
}

/* --- MergeJoin --- */

static bool
is_known_join(JoinType type)
{
	return type == JOIN_INNER || type == JOIN_LEFT || type == JOIN_SEMI || type == JOIN_ANTI || type == JOIN_RIGHT ||
		type == JOIN_FULL;
}

static bool
merge_join_may_run(const Plan *plan, bool partial, const char **why_not)
{
	*why_not = "a merge join is of a kind that is not known to allow it";
	return is_known_join(((const MergeJoin *) plan)->join.jointype);
}

static void
merge_join_computed(const Plan *plan, GpuSortComputed *computed)
{
	const MergeJoin *join = (const MergeJoin *) plan;

	computed->expressions = list_make2(join->mergeclauses, join->join.joinqual);
}

static bool
merge_join_path_may_run(PlannerInfo *root, const Path *path, const PathKey *key, bool shared)
{
	const JoinPath *join = (const JoinPath *) path;

	return is_known_join(join->jointype) && gpusort_expression_is_safe(root, (Node *) join->joinrestrictinfo) &&
		target_is_safe(root, path);
}

/* --- Sort: the rows of a range again --- */

static bool
sort_path_may_run(PlannerInfo *root, const Path *path, const PathKey *key, bool shared)
{
	return path->pathkeys != NIL && linitial_node(PathKey, path->pathkeys) == key && target_is_safe(root, path);
}

/* --- SubqueryScan --- */

static bool
subquery_path_may_run(PlannerInfo *root, const Path *path, const PathKey *key, bool shared)
{
	return target_is_safe(root, path) && gpusort_expression_is_safe(root, (Node *) path->parent->baserestrictinfo);
}

/* --- Result --- */

static void
result_computed(const Plan *plan, GpuSortComputed *computed)
{
	computed->expressions = list_make1(((const Result *) plan)->resconstantqual);
}

static const GpuSortNodeRow rows[] = {
	{.plan = T_WindowAgg,
	 .path = T_WindowAggPath,
	 .ranges = GPUSORT_RANGES_WINDOW,
	 .not_grouped = "the sort does not begin with a column of a window's PARTITION BY",
	 .can_end_columns = true,
	 .grouping = window_grouping,
	 .computed = window_computed,
	 .path_may_run = window_path_may_run},
	{.plan = T_Agg,
	 .path = T_AggPath,
	 .ranges = GPUSORT_RANGES_GROUP,
	 .not_grouped = "the sort does not begin with a column of GROUP BY that all grouping sets have",
	 .can_end_columns = true,
	 .may_run = agg_may_run,
	 .grouping = agg_grouping,
	 .computed = agg_computed,
	 .path_may_run = agg_path_may_run},
	{.plan = T_Invalid, /* an Agg, too */
	 .path = T_GroupingSetsPath,
	 .path_may_run = grouping_sets_path_may_run},
	{.plan = T_Group,
	 .path = T_GroupPath,
	 .ranges = GPUSORT_RANGES_GROUP,
	 .not_grouped = "the sort does not begin with a column of GROUP BY",
	 .can_end_columns = true,
	 .grouping = group_grouping,
	 .computed = group_computed,
	 .path_may_run = group_path_may_run},
	{.plan = T_Unique,
	 .path = T_UpperUniquePath,
	 .ranges = GPUSORT_RANGES_GROUP,
	 .not_grouped = "the sort does not begin with a column of DISTINCT",
	 .grouping = unique_grouping,
	 .computed = unique_computed},
	{.plan = T_SetOp,
	 .path = T_SetOpPath,
	 .ranges = SET_OPERATION_RULE,
	 .not_grouped = "the sort does not begin with a column of the set operation",
	 .may_run = setop_may_run,
	 .grouping = setop_grouping,
	 .computed = setop_computed,
	 .path_may_run = setop_path_may_run},
	{.plan = T_MergeJoin,
	 .path = T_MergePath,
	 .ranges = GPUSORT_RANGES_JOIN,
	 .can_end_columns = true,
	 .may_run = merge_join_may_run,
	 .computed = merge_join_computed,
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
	 .can_end_columns = true,
	 .computed = result_computed},
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

/*
 * Returns true if a path is thought to run by ranges of the values of a key, which is that of the rows below it, or
 * NULL; shared: of rows that processes share already.  Paths that are not in the table pass rows on.
 */
bool
gpusort_path_may_run_by_ranges(PlannerInfo *root, const Path *path, const PathKey *key, bool shared)
{
	if (key == NULL)
		return false;
	for (int i = 0; i < lengthof(rows); i++)
	{
		if (rows[i].path == nodeTag(path))
			return rows[i].path_may_run != NULL ? rows[i].path_may_run(root, path, key, shared) : target_is_safe(root, path);
	}
	return shared && target_is_safe(root, path);
}
