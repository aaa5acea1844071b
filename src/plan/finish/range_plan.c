/*-------------------------------------------------------------------------
 *
 * range_plan.c
 *	  By which columns a finished plan runs range by range of sorted rows.
 *
 * The path has decided that the plan over GpuSorts runs once for each range of the sorted rows, in whatever process
 * (plan/node_kinds.c has its rules), for their first column at least.  Here is found how many of the first sort columns
 * may part ranges, of which these hold:
 *
 *	  - the plan needs to see together only rows that are equal in them: its windows' PARTITION BY, its groups, DISTINCT,
 *		its join's clauses have these columns among theirs.  A window may need other ranges in no more than what the
 *		GpuSort below it says (GpuSortUse), and then its ORDER BY's columns count, too;
 *	  - it keeps the order of the rows by them.
 *
 * Columns are followed from the sort up through the target lists.
 * What a node takes for equal must be what the sort does not tell apart:
 * its equality operators must be of the family of the sort's operator, and of its collation.
 *
 * A merge join has two sorts, whose rows are cut at the same borders.  That takes keys that are bit by
 * bit the same for the same values: those of numbers of one type are, and integers and floats can have those of
 * the wider type; those of strings are laid out alike by the executor.  Those of enums depend on when they are looked
 * up.  It holds for all kinds of joins: each row of both sides is in just one range, with all rows that it matches. But
 * where rows without a match are extended by NULLs, the columns of the other side say nothing any more.  A set
 * operation of two inputs is like a merge join by all columns.
 *
 * A Sort in between, as for a second window, sorts the rows of each range;
 * its keys must begin with those columns.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/finish/range_plan.h"

#include "access/stratnum.h"
#include "keys/types.h"
#include "node.h"
#include "nodes/bitmapset.h"
#include "plan/finish/plan_tree.h"
#include "plan/node_kinds.h"
#include "utils/lsyscache.h"

struct GpuSortRangeColumn
{
	Oid opfamily;
	Oid type; /* whose keys the sorts have: that which the sort operator compares, or a wider one */
	Oid collation;
	bool descending;
	bool nulls_first;
	GpuSortEncoding encoding;
	Bitmapset *attnos; /* of the plan's rows that have its values */
};

static bool find_ranges(const Plan *plan, GpuSortRangePlan *ranges);

/* Returns true if plan is a GpuSort whose rows all processes take in, each its part, and read. */
static bool
is_shared_sort(const Plan *plan)
{
	return gpusort_plan_is(plan, &gpusort_scan_methods) && plan->parallel_aware;
}

/* How a sort operator orders a column; its attributes are left open.  Returns false if it has no key. */
static bool
describe_column(Oid sort_operator, Oid value_type, Oid collation, bool nulls_first, GpuSortRangeColumn *column)
{
	CompareType order;
	const char *why_not;

	if (!get_ordering_op_properties(sort_operator, &column->opfamily, &column->type, &order))
		return false;
	column->collation = collation;
	column->nulls_first = nulls_first;
	column->attnos = NULL;
	column->encoding = gpusort_operator_encoding(sort_operator, value_type, collation, &column->descending, &why_not);
	return column->encoding != GPUSORT_ENCODE_NONE;
}

/* The columns of a GpuSort by which ranges of its rows could be told apart. */
static bool
sort_ranges(const CustomScan *scan, GpuSortRangePlan *ranges)
{
	GpuSortPlanInfo info;

	gpusort_plan_unpack(scan, &info);
	ranges->sorts = list_make1((void *) scan);
	ranges->use = info.use.kind;
	ranges->columns = palloc0(info.ncolumns * sizeof(GpuSortRangeColumn));
	while (ranges->ncolumns < info.ncolumns)
	{
		const GpuSortColumn *sort = &info.columns[ranges->ncolumns];
		GpuSortRangeColumn *column = &ranges->columns[ranges->ncolumns];

		if (!describe_column(sort->sort_operator, sort->value_type, sort->collation, sort->nulls_first, column))
			break;
		column->attnos = bms_make_singleton(sort->attno);
		ranges->ncolumns++;
	}
	return ranges->ncolumns > 0;
}

/* Returns true if the node groups by this column of the child's, and takes equal what the sort takes equal. */
static bool
groups_by(const GpuSortGrouping *grouping, const GpuSortRangeColumn *column)
{
	for (int i = 0; i < grouping->count; i++)
	{
		if (bms_is_member(grouping->attnos[i], column->attnos) && grouping->collations[i] == column->collation &&
			get_op_opfamily_strategy(grouping->operators[i], column->opfamily) == BTEqualStrategyNumber)
			return true;
	}
	return false;
}

/* Of the attributes with a column's values those are left that the node groups by: others can be NULL in its rows. */
static void
keep_grouped(const GpuSortGrouping *grouping, GpuSortRangeColumn *column)
{
	Bitmapset *grouped = NULL;

	for (int i = 0; i < grouping->count; i++)
		grouped = bms_add_member(grouped, grouping->attnos[i]);
	column->attnos = bms_intersect(column->attnos, grouped);
}

/* Returns how many of the columns, from the first on, a node groups by. */
static int
count_grouped(const GpuSortGrouping *grouping, const GpuSortRangePlan *ranges)
{
	int columns = 0;

	while (columns < ranges->ncolumns && groups_by(grouping, &ranges->columns[columns]))
		columns++;
	return columns;
}

/* Only columns that the node groups by may part its ranges. */
static bool
group_ranges(const Plan *plan, const GpuSortNodeRow *row, GpuSortRangePlan *ranges)
{
	const GpuSortGrouping grouping = row->grouping(plan);
	ListCell *cell;

	ranges->ncolumns = count_grouped(&grouping, ranges);
	if (!IsA(plan, Agg))
		return ranges->ncolumns > 0;
	for (int i = 0; ((const Agg *) plan)->groupingSets != NIL && i < ranges->ncolumns; i++)
		keep_grouped(&grouping, &ranges->columns[i]);
	foreach(cell, ((const Agg *) plan)->chain)
	{
		if (!group_ranges(lfirst(cell), row, ranges))
			return false;
	}
	return ranges->ncolumns > 0;
}

/* The columns of a window's PARTITION BY, and those of its ORDER BY behind them. */
static GpuSortGrouping
partition_and_order(const WindowAgg *window)
{
	const int count = window->partNumCols + window->ordNumCols;
	AttrNumber *attnos = palloc(count * sizeof(AttrNumber));
	Oid *operators = palloc(count * sizeof(Oid));
	Oid *collations = palloc(count * sizeof(Oid));

	for (int i = 0; i < count; i++)
	{
		const int order = i - window->partNumCols;

		attnos[i] = order < 0 ? window->partColIdx[i] : window->ordColIdx[order];
		operators[i] = order < 0 ? window->partOperators[i] : window->ordOperators[order];
		collations[i] = order < 0 ? window->partCollations[i] : window->ordCollations[order];
	}
	return (GpuSortGrouping){.count = count, .attnos = attnos, .operators = operators, .collations = collations};
}

/*
 * The rows of a window's partition stay together.  Only the window right above the sort may go on from the rows before,
 * or with those near a row, if the sort's plan says so, and it gives out all rows.
 */
static bool
window_ranges(const WindowAgg *window, const GpuSortNodeRow *row, GpuSortRangePlan *ranges)
{
	const GpuSortGrouping partition = row->grouping(&window->plan);
	const GpuSortGrouping both = partition_and_order(window);
	const int partition_columns = count_grouped(&partition, ranges);

	if (outerPlan(window) != linitial(ranges->sorts) || window->runCondition != NIL ||
		(ranges->use != GPUSORT_USE_RUNNING && ranges->use != GPUSORT_USE_NEAR))
		return group_ranges(&window->plan, row, ranges);
	if (ranges->use == GPUSORT_USE_RUNNING)
		ranges->ncolumns = count_grouped(&both, ranges);
	ranges->partition_columns = partition_columns;
	return ranges->ncolumns > 0;
}

/* Makes ranges be of whole partitions of the window that went on, if there is one. */
static void
keep_partitions(GpuSortRangePlan *ranges)
{
	if (ranges->partition_columns >= 0)
		ranges->ncolumns = Min(ranges->ncolumns, ranges->partition_columns);
	ranges->partition_columns = -1;
}

/* Key number i of a Sort, or of a GpuSort, above rows that are in order; false if it has no such key. */
static bool
sort_key(const Plan *plan, int i, AttrNumber *attno, GpuSortRangeColumn *column)
{
	if (IsA(plan, CustomScan))
	{
		GpuSortPlanInfo info;

		gpusort_plan_unpack((const CustomScan *) plan, &info);
		if (i >= info.ncolumns)
			return false;
		*attno = info.columns[i].attno;
		return describe_column(info.columns[i].sort_operator, info.columns[i].value_type, info.columns[i].collation,
							   info.columns[i].nulls_first, column);
	}
	else
	{
		const Sort *sort = (const Sort *) plan; /* IncrementalSort begins with one */

		if (i >= sort->numCols)
			return false;
		*attno = sort->sortColIdx[i];
		return describe_column(sort->sortOperators[i], gpusort_sort_value_type(sort, i), sort->collations[i],
							   sort->nullsFirst[i], column);
	}
}

/* A sort in between: of the columns those are left by which it sorts first. */
static bool
sort_again_ranges(const Plan *plan, GpuSortRangePlan *ranges)
{
	int columns = 0;
	AttrNumber attno;
	GpuSortRangeColumn key;

	while (columns < ranges->ncolumns && sort_key(plan, columns, &attno, &key))
	{
		const GpuSortRangeColumn *column = &ranges->columns[columns];

		if (!bms_is_member(attno, column->attnos) || key.opfamily != column->opfamily ||
			key.collation != column->collation || key.descending != column->descending ||
			key.nulls_first != column->nulls_first)
			break;
		columns++;
	}
	ranges->ncolumns = columns;
	return columns > 0;
}

/* Which columns of tlist hold what attributes of the plan below do, to which its Vars refer by varno. */
static Bitmapset *
follow_column(List *tlist, int varno, const Bitmapset *attnos)
{
	Bitmapset *above = NULL;
	ListCell *cell;

	foreach(cell, tlist)
	{
		const TargetEntry *entry = lfirst_node(TargetEntry, cell);
		const Node *node = (const Node *) entry->expr;

		while (IsA(node, RelabelType))
			node = (const Node *) ((const RelabelType *) node)->arg;
		if (IsA(node, Var) && ((const Var *) node)->varno == varno &&
			bms_is_member(((const Var *) node)->varattno, attnos))
			above = bms_add_member(above, entry->resno);
	}
	return above;
}

/* The Var of one side that a merge clause's argument is; NULL if it is something else. */
static const Var *
clause_var(Node *node, int varno)
{
	while (IsA(node, RelabelType))
		node = (Node *) ((RelabelType *) node)->arg;
	return IsA(node, Var) && ((Var *) node)->varno == varno ? (Var *) node : NULL;
}

/* Returns true if columns of two sorts can have the same keys for the same values: those of *type. */
static bool
is_alike(const GpuSortRangeColumn *a, const GpuSortRangeColumn *b, Oid *type)
{
	if (a->opfamily != b->opfamily || a->collation != b->collation || a->descending != b->descending ||
		a->nulls_first != b->nulls_first || !gpusort_keys_are_same_everywhere(a->encoding))
		return false;
	*type = gpusort_common_key_type(a->opfamily, a->type, b->type);
	return OidIsValid(*type);
}

/* Returns true if merge clause i joins column i of both sides. */
static bool
joins_column(const MergeJoin *join, int i, const GpuSortRangeColumn *outer, const GpuSortRangeColumn *inner)
{
	const OpExpr *clause;
	const Var *outer_var;
	const Var *inner_var;

	if (i >= list_length(join->mergeclauses))
		return false;
	clause = list_nth_node(OpExpr, join->mergeclauses, i);
	outer_var = clause_var(linitial(clause->args), OUTER_VAR);
	inner_var = clause_var(lsecond(clause->args), INNER_VAR);
	return outer_var != NULL && inner_var != NULL && bms_is_member(outer_var->varattno, outer->attnos) &&
		bms_is_member(inner_var->varattno, inner->attnos) && clause->inputcollid == outer->collation &&
		get_op_opfamily_strategy(clause->opno, outer->opfamily) == BTEqualStrategyNumber;
}

/* Finds the ranges of both inputs of a node, which reads them in order. */
static bool
find_sides(const Plan *plan, GpuSortRangePlan *outer, GpuSortRangePlan *inner)
{
	const Plan *inner_plan = IsA(innerPlan(plan), Material) ? outerPlan(innerPlan(plan)) : innerPlan(plan);

	*inner = (GpuSortRangePlan){.partition_columns = -1};
	if (!find_ranges(outerPlan(plan), outer) || !find_ranges(inner_plan, inner))
		return false;
	keep_partitions(outer);
	keep_partitions(inner);
	outer->sorts = list_concat(outer->sorts, inner->sorts);
	return true;
}

static bool
join_ranges(const MergeJoin *join, GpuSortRangePlan *ranges)
{
	GpuSortRangePlan inner;
	int columns = 0;
	Oid type;

	if (!find_sides(&join->join.plan, ranges, &inner))
		return false;
	while (columns < Min(ranges->ncolumns, inner.ncolumns) &&
		   is_alike(&ranges->columns[columns], &inner.columns[columns], &type) &&
		   joins_column(join, columns, &ranges->columns[columns], &inner.columns[columns]))
		ranges->columns[columns++].type = type;
	ranges->ncolumns = columns;
	for (int i = 0; i < columns; i++)
	{
		List *tlist = join->join.plan.targetlist;
		GpuSortRangeColumn *column = &ranges->columns[i];

		column->attnos = gpusort_join_keeps_side(join->join.jointype, true)
			? follow_column(tlist, OUTER_VAR, column->attnos)
			: NULL;
		if (gpusort_join_keeps_side(join->join.jointype, false))
			column->attnos = bms_add_members(column->attnos, follow_column(tlist, INNER_VAR, inner.columns[i].attnos));
	}
	return columns > 0;
}

#ifndef SET_OPERATIONS_READ_APPEND
/* Returns true if a set operation compares a column of one side with this one of the other. */
static bool
compares_column(const SetOp *setop, const GpuSortRangeColumn *outer, const GpuSortRangeColumn *inner)
{
	for (int i = 0; i < setop->numCols; i++)
	{
		AttrNumber attno = setop->cmpColIdx[i];

		if (bms_is_member(attno, outer->attnos) && bms_is_member(attno, inner->attnos) &&
			setop->cmpCollations[i] == outer->collation && op_in_opfamily(setop->cmpOperators[i], outer->opfamily))
			return true;
	}
	return false;
}

/* Rows that a set operation compares are in one range; those that it gives out are the outer side's. */
static bool
set_operation_ranges(const SetOp *setop, GpuSortRangePlan *ranges)
{
	GpuSortRangePlan inner;
	int columns = 0;
	Oid type;

	if (!find_sides(&setop->plan, ranges, &inner))
		return false;
	while (columns < Min(ranges->ncolumns, inner.ncolumns) &&
		   is_alike(&ranges->columns[columns], &inner.columns[columns], &type) &&
		   compares_column(setop, &ranges->columns[columns], &inner.columns[columns]))
		ranges->columns[columns++].type = type;
	ranges->ncolumns = columns;
	for (int i = 0; i < columns; i++)
		ranges->columns[i].attnos = follow_column(setop->plan.targetlist, OUTER_VAR, ranges->columns[i].attnos);
	return columns > 0;
}
#endif

/* What a node makes of the ranges of what it reads, which are in ranges if that is one child. */
static bool
node_ranges(const Plan *plan, const GpuSortNodeRow *row, GpuSortRangePlan *ranges)
{
	switch (row->ranges)
	{
		case GPUSORT_RANGES_GROUP:
			return group_ranges(plan, row, ranges);
		case GPUSORT_RANGES_WINDOW:
			return window_ranges((const WindowAgg *) plan, row, ranges);
		case GPUSORT_RANGES_SORT:
			return sort_again_ranges(plan, ranges);
		case GPUSORT_RANGES_JOIN:
			return join_ranges((const MergeJoin *) plan, ranges);
		case GPUSORT_RANGES_SETS:
#ifndef SET_OPERATIONS_READ_APPEND
			return set_operation_ranges((const SetOp *) plan, ranges);
#endif
		case GPUSORT_RANGES_PASS:
			break;
	}
	return true;
}

/* By what number Vars of a node's target list refer to the rows that it reads. */
static int
child_varno(const Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_SubqueryScan:
			return ((const SubqueryScan *) plan)->scan.scanrelid;
		case T_CustomScan:
			return INDEX_VAR; /* columns of its own, which are the child's, one by one */
		default:
			return OUTER_VAR;
	}
}

static bool
find_ranges(const Plan *plan, GpuSortRangePlan *ranges)
{
	const GpuSortNodeRow *row = gpusort_node_row(plan);
	const Plan *child = IsA(plan, SubqueryScan) ? ((const SubqueryScan *) plan)->subplan : outerPlan(plan);

	if (is_shared_sort(plan))
		return sort_ranges((const CustomScan *) plan, ranges);
	if (row == NULL || child == NULL)
		return false;
	if (row->ranges == GPUSORT_RANGES_JOIN || row->ranges == GPUSORT_RANGES_SETS)
		return node_ranges(plan, row, ranges);
	if (!find_ranges(child, ranges) || !node_ranges(plan, row, ranges))
		return false;
	for (int i = 0; i < ranges->ncolumns; i++)
		ranges->columns[i].attnos = follow_column(plan->targetlist, child_varno(plan), ranges->columns[i].attnos);
	return true;
}

/* Returns the types whose keys all sorts of a plan have in the columns that part ranges. */
Oid *
gpusort_range_key_types(const GpuSortRangePlan *ranges)
{
	Oid *types = palloc(ranges->ncolumns * sizeof(Oid));

	for (int i = 0; i < ranges->ncolumns; i++)
		types[i] = ranges->columns[i].type;
	return types;
}

/* Finds the columns that part the ranges by which a plan runs; false: there are none, which its path did not know. */
bool
gpusort_range_plan_find(const Plan *plan, GpuSortRangePlan *ranges)
{
	*ranges = (GpuSortRangePlan){.partition_columns = -1};
	if (!find_ranges(plan, ranges))
		return false;
	if (ranges->ncolumns <= ranges->partition_columns)
		ranges->partition_columns = -1;
	return true;
}
