/*-------------------------------------------------------------------------
 *
 * sets_apart.c
 *	  Grouping sets of many groups, each of a sort of its own.
 *
 * PostgreSQL computes all sets in one process: by hash tables, or of rows that are sorted, once more for each set that
 * does not begin like the one before.  But each set alone is a GROUP BY, whose groups all processes make of ranges of
 * sorted rows (exchange_paths.c).  So those with the most groups, one, two or more of them, are offered apart, and the
 * rest, if there are others, beside them: of groups that processes make (partial_sets.c), or the empty set alone
 * (rollup.c).
 * CUBE (many, many2):
 *
 *	  Append
 *	    GroupAggregate		(many, many2)
 *	      GpuSort ...
 *	    GroupAggregate		(many)
 *	      GpuSort ...
 *	    GroupAggregate		(many2)
 *	      GpuSort ...
 *	    Finalize Aggregate	()
 *	      ...
 *
 * The input is read as many times, as rollup.c has it twice, and aggregates need not be combined.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/offer/sets_apart.h"

#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"
#include "optimizer/prep.h"
#include "optimizer/tlist.h"
#include "plan/offer/partial_sets.h"
#include "plan/offer/paths.h"
#include "plan/offer/rollup.h"
#include "plan/offer/set_columns.h"
#include "rewrite/rewriteManip.h"
#include "plan/statement.h"

/* Of more sets none is offered apart: each reads all rows. */
#define SETS_MAX 8

/* GpuSort of the rows, by a set's columns; NULL: there is none. */
static Path *
sorted_rows(PlannerInfo *root, RelOptInfo *grouped_rel, const RelOptInfo *input_rel, List *clauses, bool parallel)
{
	Path *input = input_rel->cheapest_total_path;
	List *columns = (List *) WITHOUT_GROUPING_NULLS(root, root->processed_tlist);
	List *keys;

	if (input == NULL || !grouping_is_sortable(clauses))
		return NULL;
	keys = make_pathkeys_for_sortclauses(root, clauses, columns);
	if (keys == NIL || pathkeys_contained_in(keys, input->pathkeys))
		return NULL;
	return gpusort_sorted_path(root, grouped_rel, input, parallel ? gpusort_partial_of(input) : NULL, keys);
}

/* One set of a path, of rows that are sorted for it; NULL: they cannot be. */
static Path *
set_path(PlannerInfo *root, RelOptInfo *grouped_rel, const RelOptInfo *input_rel, const GroupingSetsPath *like,
		 const GroupingSetData *set, bool parallel)
{
	List *clauses = gpusort_set_clauses(root, set);
	Path *sorted = sorted_rows(root, grouped_rel, input_rel, clauses, parallel);
	AggClauseCosts costs = {0};
	GpuSortSetColumns columns = {.root = root, .refs = set->set, .one_set = true};

	if (sorted == NULL)
		return NULL;
	get_agg_clause_costs(root, AGGSPLIT_SIMPLE, &costs);
	return (Path *) create_agg_path(root, grouped_rel, sorted, gpusort_set_target(&columns, like->path.pathtarget),
									AGG_SORTED, AGGSPLIT_SIMPLE, clauses, gpusort_set_having(&columns, like->qual),
									&costs, set->numGroups);
}

/* A list_sort comparator: the most groups first, and empty sets last, also behind others of one group. */
static int
compare_groups(const ListCell *a, const ListCell *b)
{
	const GroupingSetData *one = lfirst_node(GroupingSetData, a);
	const GroupingSetData *other = lfirst_node(GroupingSetData, b);

	if ((one->set == NIL) != (other->set == NIL))
		return one->set == NIL ? 1 : -1;
	return one->numGroups > other->numGroups ? -1 : one->numGroups < other->numGroups;
}

/* The path of what is left, after sets of their own: of sets with the rest, and of as many that are empty. */
static List *
rest_paths(PlannerInfo *root, RelOptInfo *grouped_rel, const RelOptInfo *input_rel, const GroupingSetsPath *like,
		   List *rest, bool parallel)
{
	List *paths = NIL;

	if (rest != NIL && linitial_node(GroupingSetData, rest)->set != NIL)
		return parallel ? list_make1(gpusort_other_sets_path(root, grouped_rel, input_rel, like, rest)) : list_make1(NULL);
	for (int i = 0; i < list_length(rest); i++)
		paths = lappend(paths, gpusort_grand_total_path(root, grouped_rel, input_rel, like));
	return paths;
}

/*
 * Returns paths of all grouping sets of a query in which some are computed apart, each with another number of these;
 * NIL: there are none.  like is a path of PostgreSQL's of the same.
 */
List *
gpusort_sets_apart_paths(PlannerInfo *root, RelOptInfo *grouped_rel, RelOptInfo *input_rel,
						 const GroupingSetsPath *like, bool parallel)
{
	List *sets = gpusort_sets_of(like);
	List *apart = NIL;
	List *paths = NIL;

	if (!enable_sort || !gpusort_statement_shares_output() || list_length(sets) > SETS_MAX ||
		!gpusort_may_read_twice(root))
		return NIL;
	list_sort(sets, compare_groups);
	for (int i = 0; i < list_length(sets); i++)
	{
		const GroupingSetData *set = list_nth_node(GroupingSetData, sets, i);
		Path *path = set->set != NIL ? set_path(root, grouped_rel, input_rel, like, set, parallel) : NULL;
		List *rest;

		if (path == NULL)
			break;
		apart = lappend(apart, path);
		rest = rest_paths(root, grouped_rel, input_rel, like, list_copy_tail(sets, i + 1), parallel);
		if (!list_member_ptr(rest, NULL))
			paths = lappend(paths, gpusort_sets_join(root, grouped_rel, like, list_concat_copy(apart, rest)));
	}
	return paths;
}
