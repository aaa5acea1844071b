/*-------------------------------------------------------------------------
 *
 * combine.c
 *	  Splits grouping sets into groups of parts of the rows, and sets of these.
 *
 * As PostgreSQL does while it plans (convert_combining_aggrefs in its setrefs.c), but of a finished plan: the Agg below
 * emits the state of each aggregate, serialised where that is a pointer, and the Agg above combines these states and
 * computes the columns.
 *
 * One of the sets has the columns of all others.  The Agg below has the groups of that set, the finest; the one above
 * has all sets, of these groups as if they were rows.  PostgreSQL's executor knows no difference, though its planner
 * never asks for it.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/finish/combine.h"

#include "facts/aggregates.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/planner.h"
#include "plan/finish/plan_tree.h"

/* What the Agg below emits. */
typedef struct Parts
{
	List *targetlist;
	const GpuSortFinestSet *finest; /* whose columns come first; NULL: there are no groups */
} Parts;

/* What is looked for in the columns of grouping sets. */
typedef struct SetColumns
{
	const GpuSortFinestSet *finest;
	List *aggregates; /* that were found */
} SetColumns;

/* Returns the place of a column among those of the finest set, from 0; -1 if it is none of them. */
static int
column_place(const GpuSortFinestSet *finest, AttrNumber attno)
{
	for (int i = 0; i < finest->count; i++)
	{
		if (finest->attnos[i] == attno)
			return i;
	}
	return -1;
}

/* Returns true if the sets of an Agg of the chain have none but the finest set's columns, told apart alike. */
static bool
has_finest_columns(const GpuSortFinestSet *finest, const Agg *agg)
{
	for (int i = 0; i < agg->numCols; i++)
	{
		int place = column_place(finest, agg->grpColIdx[i]);

		if (place < 0 || finest->operators[place] != agg->grpOperators[i] ||
			finest->collations[place] != agg->grpCollations[i])
			return false;
	}
	return true;
}

/* The Agg of the chain that has the most columns. */
static const Agg *
widest(const Agg *agg)
{
	const Agg *found = agg;
	ListCell *cell;

	foreach(cell, agg->chain)
	{
		if (lfirst_node(Agg, cell)->numCols > found->numCols)
			found = lfirst_node(Agg, cell);
	}
	return found;
}

/*
 * Returns true if there is an aggregate that PostgreSQL would not have workers begin, or a column that is not grouped
 * by, as there can be beside a primary key.
 */
static bool
find_unfit(Node *node, void *arg)
{
	SetColumns *columns = arg;

	if (node == NULL)
		return false;
	if (IsA(node, Aggref))
	{
		columns->aggregates = lappend(columns->aggregates, node);
		return !gpusort_aggregate_may_be_partial((const Aggref *) node);
	}
	if (IsA(node, GroupingFunc))
		return false;
	if (IsA(node, Var))
		return ((const Var *) node)->varno != OUTER_VAR || column_place(columns->finest, ((const Var *) node)->varattno) < 0;
	return expression_tree_walker(node, find_unfit, arg);
}

/* Returns true if an Agg's grouping sets can be computed of the groups of one of them, which is told. */
bool
gpusort_combine_may_sets(const Agg *agg, GpuSortFinestSet *finest)
{
	const Agg *first = widest(agg);
	SetColumns columns = {.finest = finest};
	ListCell *cell;

	*finest = (GpuSortFinestSet){
		.count = first->numCols,
		.attnos = first->grpColIdx,
		.operators = first->grpOperators,
		.collations = first->grpCollations,
		.groups = first->numGroups,
	};
	if (agg->groupingSets == NIL || agg->aggsplit != AGGSPLIT_SIMPLE || first->numCols == 0)
		return false;
	foreach(cell, agg->chain)
	{
		if (!has_finest_columns(finest, lfirst_node(Agg, cell)))
			return false;
	}
	if (!has_finest_columns(finest, agg) || find_unfit((Node *) agg->plan.targetlist, &columns) ||
		find_unfit((Node *) agg->plan.qual, &columns))
		return false;
	finest->aggregates = columns.aggregates;
	return true;
}

/* Returns the column of the states of an aggregate, which is added if it is not there. */
static Var *
part_of(Parts *parts, const Aggref *aggregate)
{
	Aggref *part;
	TargetEntry *entry;
	ListCell *cell;

	foreach(cell, parts->targetlist)
	{
		entry = lfirst_node(TargetEntry, cell);
		if (IsA(entry->expr, Aggref) && ((const Aggref *) entry->expr)->aggno == aggregate->aggno)
			return makeVarFromTargetEntry(OUTER_VAR, entry);
	}
	part = copyObject((Aggref *) aggregate);
	mark_partial_aggref(part, AGGSPLIT_INITIAL_SERIAL);
	entry = makeTargetEntry((Expr *) part, list_length(parts->targetlist) + 1, NULL, false);
	parts->targetlist = lappend(parts->targetlist, entry);
	return makeVarFromTargetEntry(OUTER_VAR, entry);
}

/*
 * A column of the groups below.  GROUPING() may name others, which no set has: it does not evaluate them, and their
 * number is 0.
 */
static Node *
place_var(const GpuSortFinestSet *finest, const Var *var)
{
	int place = column_place(finest, var->varattno);
	Var *placed;

	if (place < 0)
		return (Node *) makeNullConst(var->vartype, var->vartypmod, var->varcollid);
	placed = copyObject((Var *) var);
	placed->varattno = place + 1;
	return (Node *) placed;
}

/* The expression with aggregates that combine states in the place of those of rows, and columns of groups. */
static Node *
combine_mutator(Node *node, void *arg)
{
	const Parts *parts = arg;

	if (node == NULL)
		return NULL;
	if (IsA(node, Aggref))
	{
		Aggref *whole = makeNode(Aggref);

		*whole = *(const Aggref *) node;
		whole->args = list_make1(makeTargetEntry((Expr *) part_of(arg, (const Aggref *) node), 1, NULL, false));
		whole->aggfilter = NULL;
		mark_partial_aggref(whole, AGGSPLIT_FINAL_DESERIAL);
		return (Node *) whole;
	}
	if (parts->finest != NULL && IsA(node, Var))
		return place_var(parts->finest, (const Var *) node);
	if (parts->finest != NULL && IsA(node, GroupingFunc))
	{
		GroupingFunc *grouping = (GroupingFunc *) expression_tree_mutator(node, combine_mutator, arg);
		ListCell *cell;

		foreach(cell, grouping->cols)
			lfirst_int(cell) = column_place(parts->finest, lfirst_int(cell)) + 1;
		return (Node *) grouping;
	}
	return expression_tree_mutator(node, combine_mutator, arg);
}

/* Has an Agg compute its columns of what the parts emit; returns the Agg of these. */
static Agg *
split(Agg *agg, Parts *parts, int plan_node_id)
{
	Agg *part = makeNode(Agg);

	*part = *agg;
	agg->plan.targetlist = (List *) combine_mutator((Node *) agg->plan.targetlist, parts);
	agg->plan.qual = (List *) combine_mutator((Node *) agg->plan.qual, parts);
	agg->aggsplit = AGGSPLIT_FINAL_DESERIAL;
	part->plan.targetlist = parts->targetlist;
	part->plan.qual = NIL;
	part->plan.initPlan = NIL;
	if (!contain_subplans((Node *) parts->targetlist))
		gpusort_plan_take_params(&part->plan);
	part->plan.plan_node_id = plan_node_id;
	part->aggsplit = AGGSPLIT_INITIAL_SERIAL;
	return part;
}

/* The numbers of columns, where the finest set's come first. */
static AttrNumber *
place_columns(const GpuSortFinestSet *finest, int count, const AttrNumber *attnos)
{
	AttrNumber *placed = palloc(Max(count, 1) * sizeof(AttrNumber));

	for (int i = 0; i < count; i++)
		placed[i] = column_place(finest, attnos[i]) + 1;
	return placed;
}

/* Has an Agg of the chain, and the sort of its rows, read the finest set's columns first. */
static void
place_groups(const GpuSortFinestSet *finest, Agg *agg, Sort *sort)
{
	agg->grpColIdx = place_columns(finest, agg->numCols, agg->grpColIdx);
	agg->aggsplit = AGGSPLIT_FINAL_DESERIAL;
	if (sort != NULL)
		sort->sortColIdx = place_columns(finest, sort->numCols, sort->sortColIdx);
}

/*
 * The same of grouping sets that may: an Agg of the groups of the finest set, by hashing or of rows in order, of the
 * rows of below, which agg would read.
 */
Agg *
gpusort_combine_split_sets(Agg *agg, const GpuSortFinestSet *finest, AggStrategy strategy, Plan *below,
						   int plan_node_id)
{
	Parts parts = {.finest = finest};
	Agg *part;
	ListCell *cell;

	for (int i = 0; i < finest->count; i++)
	{
		TargetEntry *column = list_nth_node(TargetEntry, below->targetlist, finest->attnos[i] - 1);
		TargetEntry *entry = flatCopyTargetEntry(column);

		entry->expr = (Expr *) makeVarFromTargetEntry(OUTER_VAR, column);
		entry->resno = i + 1;
		entry->resjunk = false;
		parts.targetlist = lappend(parts.targetlist, entry);
	}
	part = split(agg, &parts, plan_node_id);
	part->aggstrategy = strategy;
	part->numCols = finest->count;
	part->grpColIdx = finest->attnos;
	part->grpOperators = finest->operators;
	part->grpCollations = finest->collations;
	part->numGroups = finest->groups;
	part->groupingSets = NIL;
	part->chain = NIL;
	part->plan.lefttree = below;
	place_groups(finest, agg, NULL);
	foreach(cell, agg->chain)
		place_groups(finest, lfirst_node(Agg, cell), (Sort *) outerPlan(lfirst_node(Agg, cell)));
	return part;
}
