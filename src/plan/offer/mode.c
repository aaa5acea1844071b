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
 * gives the same.  Where all processes have parts of it (exchange_paths.c), each finds the most frequent value of
 * each range, and the leader that of these.  A NULL is no value: it is counted as none.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/offer/mode.h"

#include "catalog/pg_aggregate.h"
#include "catalog/pg_type_d.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/tlist.h"
#include "plan/offer/presorted.h"
#include "utils/fmgroids.h"
#include "utils/typcache.h"

/* What is looked for in an Agg's columns. */
typedef struct ModeSearch
{
	PlannerInfo *root;
	const PathKey *key; /* that the rows are sorted by */
	const Aggref *mode; /* NULL: none has been found */
} ModeSearch;

/* What an aggregate sorts by, of this list; it has one column. */
static const SortGroupClause *
clause_of(const Aggref *aggregate)
{
	return linitial_node(SortGroupClause, aggregate->aggorder);
}

/* Returns true if there is another aggregate than mode() of the rows by that key; else found has one of those. */
static bool
find_other(Node *node, void *arg)
{
	ModeSearch *found = arg;
	const Aggref *aggregate = (const Aggref *) node;
	List *keys;

	if (node == NULL)
		return false;
	if (!IsA(node, Aggref))
		return expression_tree_walker(node, find_other, arg);
	if (aggregate->aggfnoid != F_MODE || aggregate->aggfilter != NULL)
		return true;
	found->mode = aggregate;
	keys = make_pathkeys_for_sortclauses(found->root, aggregate->aggorder, aggregate->args);
	return keys == NIL || linitial(keys) != found->key;
}

/*
 * Returns the aggregate of an Agg over these sorted rows, if the Agg has no groups and computes only mode() of the
 * column that they are sorted by, with so many values that it pays to count them; otherwise NULL.
 */
const Aggref *
gpusort_mode_of(PlannerInfo *root, const AggPath *agg, const Path *rows)
{
	ModeSearch found = {.root = root};

	/* So many groups has ordered_aggregates.c estimated; another path has one. */
	if (agg->aggstrategy != AGG_PLAIN || agg->aggsplit != AGGSPLIT_SIMPLE || agg->numGroups <= 1 ||
		rows->pathkeys == NIL || list_length(rows->pathtarget->exprs) != 1)
		return NULL;
	found.key = linitial_node(PathKey, rows->pathkeys);
	if (find_other((Node *) agg->path.pathtarget->exprs, &found) || find_other((Node *) agg->qual, &found))
		return NULL;
	return found.mode;
}

/* count() of a column */
static Aggref *
make_count(Expr *value)
{
	Aggref *count = makeNode(Aggref);

	count->aggfnoid = F_COUNT_ANY;
	count->aggtype = count->aggtranstype = INT8OID;
	count->aggargtypes = list_make1_oid(exprType((Node *) value));
	count->args = list_make1(makeTargetEntry(copyObject(value), 1, NULL, false));
	count->aggkind = AGGKIND_NORMAL;
	count->aggsplit = AGGSPLIT_SIMPLE;
	count->aggno = count->aggtransno = -1;
	count->location = -1;
	return count;
}

/* Gives a path the costs of what it reads. */
static void
take_costs(Path *path, const Path *from)
{
	INHERIT_DISABLED_NODES(path, from);
	path->startup_cost = from->startup_cost;
	path->total_cost = from->total_cost;
	path->parallel_safe = from->parallel_safe;
}

/* Returns a path of the number of rows of each value of the rows that an Agg would read. */
Path *
gpusort_mode_counts(PlannerInfo *root, const AggPath *agg, const Aggref *mode, Path *rows)
{
	const AggClauseCosts costs = {0};
	SortGroupClause *clause = copyObject((SortGroupClause *) clause_of(mode));
	PathTarget *target;
	Path *path;

	rows = gpusort_with_refs(root, rows, rows->pathtarget->exprs);
	target = copy_pathtarget(rows->pathtarget);
	clause->tleSortGroupRef = get_pathtarget_sortgroupref(target, 0);
	add_column_to_pathtarget(target, (Expr *) make_count(linitial(target->exprs)), 0);
	target->width += sizeof(int64);
	gpusort_number_aggregates(root, target, NIL);
	path = (Path *) create_agg_path(root, agg->path.parent, rows, target, AGG_SORTED, AGGSPLIT_SIMPLE,
									list_make1(clause), NIL, &costs, agg->numGroups);
	take_costs(path, rows);
	return path;
}

/* The keys of values and their counts: the most frequent first, then as mode() sorts them. */
static List *
keys_of_counts(PlannerInfo *root, const Aggref *mode, const Path *counts)
{
	SortGroupClause *count = makeNode(SortGroupClause);
	SortGroupClause *value = copyObject((SortGroupClause *) clause_of(mode));
	const TypeCacheEntry *type = lookup_type_cache(INT8OID, TYPECACHE_GT_OPR | TYPECACHE_EQ_OPR);
	List *columns = make_tlist_from_pathtarget(counts->pathtarget);

	value->tleSortGroupRef = linitial_node(TargetEntry, columns)->ressortgroupref;
	count->tleSortGroupRef = value->tleSortGroupRef + 1;
	lsecond_node(TargetEntry, columns)->ressortgroupref = count->tleSortGroupRef;
	count->eqop = type->eq_opr;
	count->sortop = type->gt_opr;
	SET_REVERSE_SORT(count);
	count->nulls_first = true;
	return make_pathkeys_for_sortclauses(root, list_make2(count, value), columns);
}

/* Returns a path of the most frequent of the values of such a path. */
Path *
gpusort_mode_most_frequent(PlannerInfo *root, const AggPath *agg, const Aggref *mode, Path *counts)
{
	Path *sort = (Path *) create_sort_path(root, agg->path.parent, counts, keys_of_counts(root, mode, counts), -1);
	LimitPath *limit = makeNode(LimitPath);

	take_costs(sort, counts);
	limit->path = *sort;
	limit->path.type = T_LimitPath;
	limit->path.pathtype = T_Limit;
	limit->path.rows = 1;
	limit->subpath = sort;
	limit->limitOption = LIMIT_OPTION_COUNT;
	limit->limitCount =
		(Node *) makeConst(INT8OID, -1, InvalidOid, sizeof(int64), Int64GetDatum(1), false, FLOAT8PASSBYVAL);
	return &limit->path;
}
