/*-------------------------------------------------------------------------
 *
 * mode.c
 *	  mode() of all rows, by counting the rows of each value.
 *
 * PostgreSQL's Agg puts every row into a sort of its own, and then reads all of them to find which value comes most
 * often.  Of sorted rows
 *
 *	  Agg						Agg				mode() of one row
 *	    GpuSort			->		  Limit			the first row
 *								    Sort		the most frequent value first, of equally frequent ones the first in order
 *								      Agg		the number of rows of each value
 *								        GpuSort
 *
 * gives the same.  Where the path has parts of it in all processes (ranges.c), each finds the most frequent value of
 * each range, and the leader that of these.  A NULL is no value: it is counted as none.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/finish/mode.h"

#include "catalog/pg_aggregate.h"
#include "catalog/pg_type_d.h"
#include "facts/aggregates.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "plan/finish/plan_tree.h"
#include "plan/finish/ranges.h"
#include "utils/fmgroids.h"
#include "utils/typcache.h"

/* What is looked for in an Agg's columns. */
typedef struct Found
{
	const GpuSortColumn *key;      /* that the rows are sorted by */
	const SortGroupClause *clause; /* of mode(); NULL: none has been found */
} Found;

/* Returns true if there is another aggregate than mode() of the rows by that key; else found has its clause. */
static bool
find_other(Node *node, void *arg)
{
	Found *found = arg;
	const Aggref *aggregate = (const Aggref *) node;

	if (node == NULL)
		return false;
	if (!IsA(node, Aggref))
		return expression_tree_walker(node, find_other, arg);
	if (aggregate->aggfnoid != F_MODE || aggregate->aggfilter != NULL)
		return true;
	found->clause = linitial_node(SortGroupClause, aggregate->aggorder);
	return !gpusort_aggregate_sorts_by(aggregate, found->clause, found->key);
}

/* count() of a column */
static Aggref *
make_count(const Var *value)
{
	Aggref *count = makeNode(Aggref);

	count->aggfnoid = F_COUNT_ANY;
	count->aggtype = count->aggtranstype = INT8OID;
	count->aggargtypes = list_make1_oid(value->vartype);
	count->args = list_make1(makeTargetEntry((Expr *) copyObject(value), 1, NULL, false));
	count->aggkind = AGGKIND_NORMAL;
	count->aggsplit = AGGSPLIT_SIMPLE;
	count->location = -1;
	return count;
}

/* The number of rows of each value of the sorted rows below. */
static Agg *
make_counts(const Found *found, Plan *below, double values, int plan_node_id)
{
	Agg *agg = makeNode(Agg);
	Var *value = makeVarFromTargetEntry(OUTER_VAR, linitial_node(TargetEntry, below->targetlist));

	gpusort_plan_put_above(&agg->plan, below, plan_node_id);
	agg->plan.plan_rows = values;
	agg->plan.plan_width += sizeof(int64);
	agg->plan.targetlist = list_make2(makeTargetEntry((Expr *) value, 1, NULL, false),
									  makeTargetEntry((Expr *) make_count(value), 2, NULL, false));
	agg->aggstrategy = AGG_SORTED;
	agg->aggsplit = AGGSPLIT_SIMPLE;
	agg->numCols = 1;
	agg->grpColIdx = palloc(sizeof(AttrNumber));
	agg->grpOperators = palloc(sizeof(Oid));
	agg->grpCollations = palloc(sizeof(Oid));
	agg->grpColIdx[0] = found->key->attno;
	agg->grpOperators[0] = found->clause->eqop;
	agg->grpCollations[0] = found->key->collation;
	agg->numGroups = (long) values;
	return agg;
}

/* A sort of values and their counts: the most frequent first, then by value. */
static Sort *
make_sort(const Found *found, Plan *counts, int plan_node_id)
{
	Sort *sort = makeNode(Sort);

	gpusort_plan_put_above(&sort->plan, counts, plan_node_id);
	sort->plan.targetlist = gpusort_plan_columns(counts, 2);
	sort->numCols = 2;
	sort->sortColIdx = palloc(2 * sizeof(AttrNumber));
	sort->sortOperators = palloc(2 * sizeof(Oid));
	sort->collations = palloc(2 * sizeof(Oid));
	sort->nullsFirst = palloc(2 * sizeof(bool));
	sort->sortColIdx[0] = 2;
	sort->sortOperators[0] = lookup_type_cache(INT8OID, TYPECACHE_GT_OPR)->gt_opr;
	sort->collations[0] = InvalidOid;
	sort->nullsFirst[0] = true;
	sort->sortColIdx[1] = 1;
	sort->sortOperators[1] = found->key->sort_operator;
	sort->collations[1] = found->key->collation;
	sort->nullsFirst[1] = found->key->nulls_first;
	return sort;
}

/* The most frequent of these values. */
static Plan *
make_most_frequent(GpuSortFinish *finish, const Found *found, Plan *counts)
{
	Sort *sort = make_sort(found, counts, gpusort_finish_node_id(finish));
	Limit *limit = gpusort_plan_limit(&sort->plan, 1, gpusort_finish_node_id(finish));

	limit->plan.plan_rows = 1;
	return &limit->plan;
}

/*
 * Makes an Agg of all rows of a GpuSort, below, which sorts as info says, read one row in their place, if mode() by the
 * first key is all that it computes.  false: it is as it was.
 */
bool
gpusort_mode_by_counts(GpuSortFinish *finish, Agg *agg, Plan *below, const GpuSortPlanInfo *info)
{
	Found found = {.key = &info->columns[0]};
	const double values = agg->numGroups; /* as ordered_aggregates.c has estimated; 1 of another path */
	Plan *counts;
	Plan *most_frequent;

	if (agg->aggstrategy != AGG_PLAIN || values <= 1 || list_length(below->targetlist) != 1 ||
		find_other((Node *) agg->plan.targetlist, &found) || find_other((Node *) agg->plan.qual, &found) ||
		found.clause == NULL)
		return false;
	counts = &make_counts(&found, below, values, gpusort_finish_node_id(finish))->plan;
	most_frequent = make_most_frequent(finish, &found, counts);
	if (gpusort_ranges_part_below(outerPlan(agg)) != NULL)
	{
		gpusort_ranges_put_part(finish, agg, most_frequent, counts);
		most_frequent = make_most_frequent(finish, &found, outerPlan(agg));
	}
	outerPlan(agg) = most_frequent;
	return true;
}
