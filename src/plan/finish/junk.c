/*-------------------------------------------------------------------------
 *
 * junk.c
 *	  Takes sort keys that nobody asked for out of the rows that are emitted.
 *
 * A key that is not in the SELECT list is a resjunk column at the end of the rows:
 * the Sort needs it, and above the plan the executor's junk filter takes every
 * row apart to leave it out.  That costs more than all the rest of emitting a
 * row.  A finished plan with GpuSort on top (or below a Limit), be it of the whole
 * query or of a subquery, is therefore changed here in two ways:
 *
 *	- A resjunk column that is another column under a compatible type, which is
 *	  what ORDER BY t COLLATE "C" makes, is dropped: the keys are read from the
 *	  other column.  Often the plan below then needs no projection at all.
 *	- Of the columns, only the visible ones (not resjunk) are emitted.  The others
 *	  travel behind the row (rowform.c), for ties and for a fallback to
 *	  tuplesort, and the plan's target list ends before them, so that the
 *	  executor makes no junk filter.
 *
 * Both nodes of a parallel sort are changed alike.  Of a WindowAgg on top, with
 * GpuSort below it, the junk at the end of its target list is cut off; so it is of what
 * runs below GpuSortExchange, by a projection if it has none of its own; a GpuSort there does as one on top.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/finish/junk.h"

#include "access/sysattr.h"
#include "node.h"
#include "nodes/bitmapset.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "plan/finish/plan_tree.h"
#include "plan/node_kinds.h"
#include "utils/lsyscache.h"

/* The expression that computes the bits of a column, whatever type they are called. */
static Expr *
strip_relabels(Expr *expr)
{
	while (IsA(expr, RelabelType))
		expr = ((RelabelType *) expr)->arg;
	return expr;
}

static bool
same_storage(const Expr *a, const Expr *b)
{
	int16 a_length;
	int16 b_length;
	bool a_by_value;
	bool b_by_value;
	char a_align;
	char b_align;

	get_typlenbyvalalign(exprType((const Node *) a), &a_length, &a_by_value, &a_align);
	get_typlenbyvalalign(exprType((const Node *) b), &b_length, &b_by_value, &b_align);
	return a_length == b_length && a_by_value == b_by_value && a_align == b_align;
}

/* Which of the first columns of tlist holds the same value as a resjunk one does; 0: none. */
static AttrNumber
find_same_column(List *tlist, int columns, const TargetEntry *junk)
{
	Expr *expr = strip_relabels(junk->expr);

	if (contain_volatile_functions((Node *) expr))
		return 0;
	for (int i = 0; i < columns; i++)
	{
		TargetEntry *entry = list_nth_node(TargetEntry, tlist, i);

		if (equal(strip_relabels(entry->expr), expr) && same_storage(entry->expr, junk->expr))
			return entry->resno;
	}
	return 0;
}

/* How many visible columns tlist begins with; 0 if there are others behind resjunk ones. */
static int
visible_columns(List *tlist)
{
	int columns = 0;
	ListCell *cell;

	foreach(cell, tlist)
	{
		const TargetEntry *entry = lfirst_node(TargetEntry, cell);

		if (entry->resjunk)
			continue;
		if (entry->resno != columns + 1)
			return 0;
		columns++;
	}
	return columns;
}

static List *
without_columns(List *tlist, const Bitmapset *drop)
{
	List *result = NIL;
	ListCell *cell;

	foreach(cell, tlist)
	{
		TargetEntry *entry = lfirst_node(TargetEntry, cell);

		if (bms_is_member(entry->resno, drop))
			continue;
		result = lappend(result, entry);
		entry->resno = list_length(result);
	}
	return result;
}

/*
 * Returns true if the rest of this target list, of Vars that refer to the list below
 * it, does without the columns in drop.
 */
static bool
can_shift_vars(List *tlist, int varno, const Bitmapset *drop)
{
	ListCell *cell;

	foreach(cell, tlist)
	{
		const TargetEntry *entry = lfirst_node(TargetEntry, cell);
		const Var *var = (const Var *) entry->expr;

		if (IsA(entry->expr, Const))
			continue; /* constants stand for themselves */
		if (!IsA(var, Var) || var->varno != varno ||
			(!bms_is_member(entry->resno, drop) && bms_is_member(var->varattno, drop)))
			return false;
	}
	return true;
}

/* That list without the columns in drop; new_attnos[n] is where column n of the list below is then. */
static List *
shift_vars(List *tlist, const Bitmapset *drop, const AttrNumber *new_attnos)
{
	ListCell *cell;

	tlist = without_columns(tlist, drop);
	foreach(cell, tlist)
	{
		Var *var = (Var *) lfirst_node(TargetEntry, cell)->expr;

		if (IsA(var, Var))
			var->varattno = new_attnos[var->varattno];
	}
	return tlist;
}

/* Returns true if columns may be dropped from the target list of this plan, below GpuSort. */
static bool
can_drop_below(Plan *plan, const Bitmapset *drop)
{
	switch (nodeTag(plan))
	{
		case T_Gather:
			{
				Plan *ingest = outerPlan(plan);

				if (!gpusort_plan_is(ingest, &gpusort_ingest_scan_methods))
					return true;
				return can_shift_vars(plan->targetlist, OUTER_VAR, drop) &&
					can_shift_vars(ingest->targetlist, INDEX_VAR, drop) && can_drop_below(outerPlan(ingest), drop);
			}

			/* These read nothing by the position of a column of their own. */
		case T_SeqScan:
		case T_SampleScan:
		case T_IndexScan:
		case T_IndexOnlyScan:
		case T_BitmapHeapScan:
		case T_TidScan:
		case T_TidRangeScan:
		case T_SubqueryScan:
		case T_FunctionScan:
		case T_CteScan:
		case T_NestLoop:
		case T_MergeJoin:
		case T_HashJoin:
		case T_Result:
		case T_Agg:
			return true;
		default:
			return false;
	}
}

static void drop_below(Plan *plan, const Bitmapset *drop, const AttrNumber *new_attnos);

/* Drops columns from the rows of either node, which sorts by others from now on. */
static void
drop_columns(CustomScan *scan, const Bitmapset *drop, const AttrNumber *new_attnos)
{
	gpusort_plan_move_keys(scan, new_attnos);
	scan->custom_scan_tlist = shift_vars(scan->custom_scan_tlist, drop, new_attnos);
	scan->scan.plan.targetlist = shift_vars(scan->scan.plan.targetlist, drop, new_attnos);
	drop_below(outerPlan(scan), drop, new_attnos);
}

static void
drop_below(Plan *plan, const Bitmapset *drop, const AttrNumber *new_attnos)
{
	if (IsA(plan, Gather) && gpusort_plan_is(outerPlan(plan), &gpusort_ingest_scan_methods))
	{
		plan->targetlist = shift_vars(plan->targetlist, drop, new_attnos);
		drop_columns((CustomScan *) outerPlan(plan), drop, new_attnos);
	}
	else
		plan->targetlist = without_columns(plan->targetlist, drop);
}

/* What the node's columns are in the plan that computes them. */
static List *
source_columns(const CustomScan *scan)
{
	const Plan *below = outerPlan(scan);

	if (IsA(below, Gather) && gpusort_plan_is(outerPlan(below), &gpusort_ingest_scan_methods))
		below = outerPlan(outerPlan(below));
	return below->targetlist;
}

/*
* Lets the sort read its keys from visible columns, where they are the same,
 * and drops the resjunk ones that have become needless.
 */
static void
drop_duplicates(CustomScan *scan, int visible)
{
	List *tlist = source_columns(scan);
	int columns = list_length(tlist);
	AttrNumber *new_attnos = palloc((columns + 1) * sizeof(AttrNumber));
	Bitmapset *drop = NULL;

	for (int attno = 1; attno <= columns; attno++)
	{
		AttrNumber same = 0;

		if (attno > visible)
			same = find_same_column(tlist, visible, list_nth_node(TargetEntry, tlist, attno - 1));
		if (same != 0)
			drop = bms_add_member(drop, attno);
		new_attnos[attno] = same != 0 ? same : attno - bms_num_members(drop);
	}
	if (drop != NULL && can_shift_vars(scan->scan.plan.targetlist, INDEX_VAR, drop) &&
		can_drop_below(outerPlan(scan), drop))
		drop_columns(scan, drop, new_attnos);
}

/* Sets how many columns a GpuSort emits. */
static void
show_visible(CustomScan *scan, int visible)
{
	drop_duplicates(scan, visible);
	scan->scan.plan.targetlist = list_truncate(scan->scan.plan.targetlist, visible);
	gpusort_plan_set_visible(scan, visible);
}

/*
 * A WindowAgg computes its columns, and takes those of its PARTITION BY and ORDER BY
 * from the plan below: it need not emit them.
 */
static void
end_targetlist(Plan *limit, Plan *window)
{
	int visible = visible_columns(window->targetlist);

	if (visible == 0 || window->qual != NIL || ((WindowAgg *) window)->runCondition != NIL)
		return;
	window->targetlist = list_truncate(window->targetlist, visible);
	if (limit != NULL)
		limit->targetlist = list_truncate(limit->targetlist, visible);
}

/* Returns true if a plan computes its columns, and can do without the last of them. */
static bool
can_end_targetlist(const Plan *plan)
{
	const GpuSortNodeRow *row = gpusort_node_row(plan);

	return row != NULL && row->can_end_columns &&
		(!IsA(plan, WindowAgg) || (plan->qual == NIL && ((const WindowAgg *) plan)->runCondition == NIL));
}

static void
truncate_scan(Plan *scan, int columns)
{
	scan->targetlist = list_truncate(scan->targetlist, columns);
	((CustomScan *) scan)->custom_scan_tlist = list_truncate(((CustomScan *) scan)->custom_scan_tlist, columns);
}

/* As end_targetlist, of a plan that runs below GpuSortExchange, and of all that passes its rows on. */
static void
end_targetlist_in_ranges(GpuSortFinish *finish, Plan *limit, Plan *exchange)
{
	Plan *gather = outerPlan(exchange);
	Plan *output = outerPlan(gather);
	Plan *plan = outerPlan(output);
	int visible = visible_columns(exchange->targetlist);

	if (visible == 0 || visible == list_length(exchange->targetlist))
		return;
	if (gpusort_plan_is(plan, &gpusort_scan_methods))
		show_visible((CustomScan *) plan, visible);
	else if (can_end_targetlist(plan))
		plan->targetlist = list_truncate(plan->targetlist, visible);
	else
		outerPlan(output) = (Plan *) gpusort_plan_project(plan, gpusort_plan_columns(plan, visible),
														  gpusort_finish_node_id(finish));
	truncate_scan(output, visible);
	gather->targetlist = list_truncate(gather->targetlist, visible);
	truncate_scan(exchange, visible);
	if (limit != NULL)
		limit->targetlist = list_truncate(limit->targetlist, visible);
}

/* Changes the plan of a query, if GpuSort is on top of it, as the head of this file says. */
static void
remove_junk(GpuSortFinish *finish, Plan *top)
{
	Plan *limit = IsA(top, Limit) ? top : NULL;
	Plan *plan = limit != NULL ? outerPlan(limit) : top;
	Plan *gather;
	CustomScan *scan;
	CustomScan *ingest = NULL;
	int visible;

	if (limit != NULL && ((Limit *) limit)->limitOption == LIMIT_OPTION_WITH_TIES)
		return; /* reads the keys of the rows emitted */
	if (gpusort_plan_is(plan, &gpusort_exchange_scan_methods))
	{
		end_targetlist_in_ranges(finish, limit, plan);
		return;
	}
	if (IsA(plan, WindowAgg) && gpusort_plan_is(outerPlan(plan), &gpusort_scan_methods))
	{
		end_targetlist(limit, plan);
		return;
	}
	if (!gpusort_plan_is(plan, &gpusort_scan_methods))
		return;
	scan = (CustomScan *) plan;
	gather = outerPlan(plan);
	if (IsA(gather, Gather) && gpusort_plan_is(outerPlan(gather), &gpusort_ingest_scan_methods))
		ingest = (CustomScan *) outerPlan(gather);

	visible = visible_columns(top->targetlist);
	if (visible == 0 || visible == list_length(top->targetlist) ||
		list_length(plan->targetlist) != list_length(top->targetlist))
		return;
	if (limit != NULL)
	{
		/* A Limit passes its child's rows on as they are. */
		limit->targetlist = list_truncate(limit->targetlist, visible);
	}
	show_visible(scan, visible);
	if (ingest != NULL)
		gpusort_plan_set_visible(ingest, visible);
}

/*
 * Returns true if a subquery's scan reads only visible columns of it.  PostgreSQL may
 * have it pass all of the columns on.
 */
static bool
reads_visible_only(const SubqueryScan *scan)
{
	Bitmapset *attnos = NULL;
	int visible = visible_columns(scan->subplan->targetlist);
	int member = -1;

	pull_varattnos((Node *) scan->scan.plan.targetlist, scan->scan.scanrelid, &attnos);
	pull_varattnos((Node *) scan->scan.plan.qual, scan->scan.scanrelid, &attnos);
	while ((member = bms_next_member(attnos, member)) >= 0)
	{
		if (member + FirstLowInvalidHeapAttributeNumber > visible)
			return false;
	}
	return true;
}

/* Changes the plan of a subquery in FROM as the head of this file says, if nobody reads its junk. */
void
gpusort_junk_remove_of_subquery(GpuSortFinish *finish, SubqueryScan *scan)
{
	if (reads_visible_only(scan))
		remove_junk(finish, scan->subplan);
}

/* Changes the plan of a statement, or of a CTE or expression of it, as the head of this file says. */
void
gpusort_junk_remove(GpuSortFinish *finish, Plan *plan)
{
	const PlannedStmt *stmt = finish->stmt;

	if (plan != stmt->planTree || (stmt->commandType == CMD_SELECT && stmt->rowMarks == NIL))
		remove_junk(finish, plan);
}
