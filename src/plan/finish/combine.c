/*-------------------------------------------------------------------------
 *
 * combine.c
 *	  Splits an aggregate of all rows into those of parts of them, and one that puts these together.
 *
 * As PostgreSQL does while it plans (convert_combining_aggrefs in its setrefs.c), but of a finished plan: the Agg below
 * emits the state of each aggregate, serialised where that is a pointer, and the Agg above combines these states and
 * computes the columns.  Only of aggregates whose result does not depend on how the rows are parted (aggregates.c).
 *
 *-------------------------------------------------------------------------
 */
#include "plan/finish/combine.h"

#include "aggregates.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/planner.h"

/* What the Agg below emits. */
typedef struct Parts
{
	List *targetlist;
} Parts;

/* Returns true if there is an aggregate that cannot be combined, or wants its rows in an order, or once. */
static bool
find_other(Node *node, void *found)
{
	if (node == NULL)
		return false;
	if (IsA(node, Aggref))
	{
		const Aggref *aggregate = (const Aggref *) node;

		*(bool *) found = true;
		return aggregate->aggdistinct != NIL || aggregate->aggorder != NIL || aggregate->aggsplit != AGGSPLIT_SIMPLE ||
			!gpusort_aggregate_is_of_any_order(aggregate->aggfnoid);
	}
	return expression_tree_walker(node, find_other, found);
}

/* Returns true if an Agg has one row, and aggregates that can be combined. */
bool
gpusort_combine_may(const Agg *agg)
{
	bool found = false;

	return agg->aggstrategy == AGG_PLAIN && agg->aggsplit == AGGSPLIT_SIMPLE && agg->numCols == 0 &&
		agg->groupingSets == NIL && agg->chain == NIL && !find_other((Node *) agg->plan.targetlist, &found) &&
		!find_other((Node *) agg->plan.qual, &found) && found;
}

/* Returns the column of the states of an aggregate, which is added if it is not there. */
static Var *
part_of(Parts *parts, const Aggref *aggregate)
{
	Aggref *part = copyObject((Aggref *) aggregate);
	TargetEntry *entry;
	ListCell *cell;

	mark_partial_aggref(part, AGGSPLIT_INITIAL_SERIAL);
	foreach(cell, parts->targetlist)
	{
		entry = lfirst_node(TargetEntry, cell);
		if (equal(entry->expr, part))
			return makeVarFromTargetEntry(OUTER_VAR, entry);
	}
	entry = makeTargetEntry((Expr *) part, list_length(parts->targetlist) + 1, NULL, false);
	parts->targetlist = lappend(parts->targetlist, entry);
	return makeVarFromTargetEntry(OUTER_VAR, entry);
}

/* The expression with aggregates that combine states in the place of those of rows. */
static Node *
combine_mutator(Node *node, void *arg)
{
	const Aggref *aggregate = (const Aggref *) node;
	Aggref *whole;

	if (node == NULL)
		return NULL;
	if (!IsA(node, Aggref))
		return expression_tree_mutator(node, combine_mutator, arg);
	whole = makeNode(Aggref);
	*whole = *aggregate;
	whole->args = list_make1(makeTargetEntry((Expr *) part_of(arg, aggregate), 1, NULL, false));
	whole->aggfilter = NULL;
	mark_partial_aggref(whole, AGGSPLIT_FINAL_DESERIAL);
	return (Node *) whole;
}

/*
 * Returns an Agg of parts of the rows, with that number, which reads what agg did; agg puts together what comes of it
 * now, and is to read that.  It must be one that may.
 */
Agg *
gpusort_combine_split(Agg *agg, int plan_node_id)
{
	Agg *part = makeNode(Agg);
	Parts parts = {0};

	*part = *agg;
	agg->plan.targetlist = (List *) combine_mutator((Node *) agg->plan.targetlist, &parts);
	agg->plan.qual = (List *) combine_mutator((Node *) agg->plan.qual, &parts);
	agg->aggsplit = AGGSPLIT_FINAL_DESERIAL;
	part->plan.targetlist = parts.targetlist;
	part->plan.qual = NIL;
	part->plan.initPlan = NIL;
	part->plan.plan_node_id = plan_node_id;
	part->aggsplit = AGGSPLIT_INITIAL_SERIAL;
	return part;
}
