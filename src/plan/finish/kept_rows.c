/*-------------------------------------------------------------------------
 *
 * kept_rows.c
 *	  Which rows of each group the nodes above a finished sort look at.
 *
 * A Unique gives out the first row of each group of equal rows, and a Group likewise.  An Agg whose aggregates all are
 * DISTINCT in columns that are sorted by needs no row twice.  A window may stop at a row number (facts/windows.c).
 *
 * The GpuSort below is told, and the service may leave other rows out.  More may come, and PostgreSQL's nodes above
 * stay as they are.  It is a note only: no path depends on it.
 *
 * What a node takes for equal must be what the sort does not tell apart: its equality operators must be of the family
 * of the sort's operator, and of its collation.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/finish/kept_rows.h"

#include "access/stratnum.h"
#include "catalog/pg_aggregate_d.h"
#include "catalog/pg_type_d.h"
#include "facts/windows.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "plan/finish/plan_tree.h"
#include "utils/lsyscache.h"

static const GpuSortLooksAt all_rows = {0};

/* The first row of each group. */
static GpuSortLooksAt
first_of(GpuSortGrouping groups)
{
	Const *one = makeConst(INT4OID, -1, InvalidOid, sizeof(int32), Int32GetDatum(1), false, true);

	return (GpuSortLooksAt){.kept.bound = (Node *) one, .groups = groups};
}

/* More columns than so many are not looked at. */
#define COLUMNS_MAX 32

/* The columns in which all aggregates are DISTINCT. */
typedef struct DistinctColumns
{
	int count;
	bool others; /* an aggregate needs rows that are equal to others */
	AttrNumber attnos[COLUMNS_MAX];
	Oid operators[COLUMNS_MAX];
	Oid collations[COLUMNS_MAX];
} DistinctColumns;

static void
add_column(DistinctColumns *columns, AttrNumber attno, Oid operator, Oid collation)
{
	if (columns->count == COLUMNS_MAX)
	{
		columns->others = true;
		return;
	}
	columns->attnos[columns->count] = attno;
	columns->operators[columns->count] = operator;
	columns->collations[columns->count++] = collation;
}

/* Adds the columns of an aggregate; false if its result changes with rows that are equal in these. */
static bool
add_aggregate(DistinctColumns *columns, const Aggref *aggregate)
{
	if (aggregate->aggdistinct == NIL || aggregate->aggkind != AGGKIND_NORMAL || aggregate->aggfilter != NULL ||
		list_length(aggregate->aggdistinct) != list_length(aggregate->args))
		return false;
	for (int i = 0; i < list_length(aggregate->aggdistinct); i++)
	{
		const SortGroupClause *clause = list_nth_node(SortGroupClause, aggregate->aggdistinct, i);
		const TargetEntry *entry = get_sortgroupclause_tle((SortGroupClause *) clause, aggregate->args);
		const Node *expr = (const Node *) entry->expr;

		while (IsA(expr, RelabelType))
			expr = (const Node *) ((const RelabelType *) expr)->arg;
		if (IsA(expr, Const))
			continue;
		if (!IsA(expr, Var) || ((const Var *) expr)->varno != OUTER_VAR || !OidIsValid(clause->eqop))
			return false;
		add_column(columns, ((const Var *) expr)->varattno, clause->eqop, exprCollation((Node *) entry->expr));
	}
	return true;
}

/* The walker: adds the columns of aggregates. */
static bool
find_aggregates(Node *node, void *arg)
{
	DistinctColumns *columns = arg;

	if (node == NULL)
		return false;
	if (IsA(node, Aggref))
	{
		columns->others |= !add_aggregate(columns, (const Aggref *) node);
		return columns->others;
	}
	return expression_tree_walker(node, find_aggregates, arg);
}

/* An Agg of rows in order, which sees equal ones one after the other. */
static GpuSortLooksAt
agg_looks_at(const Agg *agg)
{
	DistinctColumns *columns;

	if (agg->groupingSets != NIL || agg->chain != NIL || (agg->aggstrategy != AGG_SORTED && agg->aggstrategy != AGG_PLAIN))
		return all_rows;
	columns = palloc0(sizeof(DistinctColumns));
	for (int i = 0; i < agg->numCols; i++)
		add_column(columns, agg->grpColIdx[i], agg->grpOperators[i], agg->grpCollations[i]);
	(void) find_aggregates((Node *) agg->plan.targetlist, columns);
	(void) find_aggregates((Node *) agg->plan.qual, columns);
	if (columns->others)
		return all_rows;
	return first_of((GpuSortGrouping){.count = columns->count,
									  .attnos = columns->attnos,
									  .operators = columns->operators,
									  .collations = columns->collations});
}

/* A window that stops in each partition. */
static GpuSortLooksAt
window_looks_at(const WindowAgg *window)
{
	GpuSortLooksAt found = {
		.groups = gpusort_node_row(&window->plan)->grouping(&window->plan),
		.order = {.count = window->ordNumCols,
				  .attnos = window->ordColIdx,
				  .operators = window->ordOperators,
				  .collations = window->ordCollations},
	};

	return gpusort_window_plan_keeps(window, &found.kept) ? found : all_rows;
}

/* Finds the columns of the plan below in which a grouping's are; false if one of them is in none. */
static bool
follow_down(const List *tlist, int varno, GpuSortGrouping *grouping)
{
	AttrNumber *attnos = palloc(grouping->count * sizeof(AttrNumber));

	for (int i = 0; i < grouping->count; i++)
	{
		const TargetEntry *entry = list_nth_node(TargetEntry, tlist, grouping->attnos[i] - 1);
		const Var *var = (const Var *) entry->expr;

		if (!IsA(var, Var) || var->varno != varno || var->varattno <= 0)
			return false;
		attnos[i] = var->varattno;
	}
	grouping->attnos = attnos;
	return true;
}

/* A node that gives all rows of one below it, in their order. */
static GpuSortLooksAt
passes_on(const Plan *plan, int varno, const GpuSortLooksAt *above)
{
	GpuSortLooksAt found = *above;

	if (above->kept.bound == NULL || plan->qual != NIL || contain_volatile_functions((Node *) plan->targetlist) ||
		!follow_down(plan->targetlist, varno, &found.groups) || !follow_down(plan->targetlist, varno, &found.order))
		return all_rows;
	return found;
}

/* Returns what a plan looks at of the rows of those below it, of whose own rows a plan above looks at these. */
GpuSortLooksAt
gpusort_plan_looks_at(const Plan *plan, const GpuSortLooksAt *above)
{
	switch (nodeTag(plan))
	{
		case T_Unique:
		case T_Group:
			return first_of(gpusort_node_row(plan)->grouping(plan));
		case T_Agg:
			return agg_looks_at((const Agg *) plan);
		case T_WindowAgg:
			return window_looks_at((const WindowAgg *) plan);
		case T_SubqueryScan:
			return passes_on(plan, ((const SubqueryScan *) plan)->scan.scanrelid, above);
		case T_Result:
		case T_GatherMerge:
			return passes_on(plan, OUTER_VAR, above);
		case T_MergeAppend:
			return *above;
		default:
			return all_rows;
	}
}

/* Returns true if a node tells rows apart by a sort's column, and takes equal what the sort takes equal. */
static bool
tells_apart(const GpuSortGrouping *grouping, int i, const GpuSortColumn *column)
{
	Oid opfamily;
	Oid type;
	CompareType order;

	return grouping->attnos[i] == column->attno && grouping->collations[i] == column->collation &&
		get_ordering_op_properties(column->sort_operator, &opfamily, &type, &order) &&
		get_op_opfamily_strategy(grouping->operators[i], opfamily) == BTEqualStrategyNumber;
}

static bool
has_column(const GpuSortGrouping *grouping, const GpuSortColumn *column)
{
	for (int i = 0; i < grouping->count; i++)
	{
		if (tells_apart(grouping, i, column))
			return true;
	}
	return false;
}

/* Returns how many first columns of a sort tell the groups apart; 0 if there are none that do. */
static int
group_columns(const GpuSortGrouping *groups, const GpuSortPlanInfo *sort)
{
	int columns = 0;

	while (columns < sort->ncolumns && has_column(groups, &sort->columns[columns]))
		columns++;
	for (int i = 0; i < groups->count; i++)
	{
		int j = 0;

		while (j < columns && !tells_apart(groups, i, &sort->columns[j]))
			j++;
		if (j == columns)
			return 0;
	}
	return columns;
}

/* Tells a GpuSort which of its rows the plan above looks at, if that is known. */
void
gpusort_note_kept_rows(CustomScan *scan, const GpuSortLooksAt *above)
{
	GpuSortKeptRows kept = above->kept;
	GpuSortPlanInfo info;

	if (kept.bound == NULL)
		return;
	gpusort_plan_unpack(scan, &info);
	kept.columns = group_columns(&above->groups, &info);
	if (kept.columns == 0)
		return;
	/* Rows that are equal for the window must be equal for the sort. */
	for (int i = kept.columns; kept.peers && i < info.ncolumns; i++)
	{
		if (!has_column(&above->order, &info.columns[i]))
			return;
	}
	gpusort_plan_set_kept_rows(scan, &kept);
}
