/*-------------------------------------------------------------------------
 *
 * aggregate_numbers.c
 *	  The numbers of a finished plan's aggregates.
 *
 * The executor keeps an Agg's aggregates and their transition states in two arrays.  Each Aggref has its place in both:
 * aggno and aggtransno.  Equal calls share a place, and different aggregates of the same rows can share a state.  The
 * executor takes the highest number for the length of an array, so numbers must begin at 0 and leave no gap.
 *
 * PostgreSQL numbers the aggregates of a query once, before it makes paths.  Where an Agg has other aggregates than the
 * query (counted.c, presorted.c), or some of them (orders_apart.c), PostgreSQL's own function numbers them again.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/finish/aggregate_numbers.h"

#include "nodes/bitmapset.h"
#include "nodes/nodeFuncs.h"
#include "nodes/pathnodes.h"
#include "optimizer/prep.h"

/* The numbers that an Agg's aggregates have. */
typedef struct Numbers
{
	Bitmapset *aggregates;
	Bitmapset *transitions;
	bool unset; /* one has none */
} Numbers;

static bool
find_numbers(Node *node, void *arg)
{
	Numbers *numbers = arg;
	const Aggref *aggregate = (const Aggref *) node;

	if (node == NULL)
		return false;
	if (!IsA(node, Aggref))
		return expression_tree_walker(node, find_numbers, arg);
	if (aggregate->aggno < 0 || aggregate->aggtransno < 0)
		numbers->unset = true;
	else
	{
		numbers->aggregates = bms_add_member(numbers->aggregates, aggregate->aggno);
		numbers->transitions = bms_add_member(numbers->transitions, aggregate->aggtransno);
	}
	return false;
}

/* Returns true if these numbers begin at 0 and leave no gap. */
static bool
have_no_gap(const Bitmapset *numbers)
{
	return numbers == NULL || bms_prev_member(numbers, -1) == bms_num_members(numbers) - 1;
}

/* Returns true if the executor can use the numbers of an Agg's aggregates as they are. */
bool
gpusort_aggregates_are_numbered(const Agg *agg)
{
	Numbers numbers = {0};

	(void) find_numbers((Node *) agg->plan.targetlist, &numbers);
	(void) find_numbers((Node *) agg->plan.qual, &numbers);
	return !numbers.unset && have_no_gap(numbers.aggregates) && have_no_gap(numbers.transitions);
}

/* Numbers the aggregates of an Agg's target list and conditions as if these were a query of their own. */
void
gpusort_number_aggregates(Agg *agg)
{
	/* This is all that preprocess_aggrefs() reads and writes: what it has found so far. */
	PlannerInfo *root = makeNode(PlannerInfo);

	preprocess_aggrefs(root, (Node *) agg->plan.targetlist);
	preprocess_aggrefs(root, (Node *) agg->plan.qual);
}
