/*-------------------------------------------------------------------------
 *
 * ranges_path.c
 *	  Partial paths of what processes do with ranges of sorted rows.
 *
 * A path over GpuSorts that all processes read (gpusort_shared_path) may run once for each range of the
 * sorted rows, in whatever process, on the terms of range_plan.c.  Then GpuSortOutput over it is a partial path: each row
 * comes from one process, in no order, and partial joins and aggregates may stand above it, up to a Gather.
 *
 * What is checked here of paths is what range_plan.c will find in the plan, for the first column that is sorted by:
 * with that alone ranges can be cut.  Plan nodes get the Gather's parameter for rescans, by which they start over for
 * each range, from PostgreSQL, as they are below parallel-aware ones; what else the plan needs to know is
 * settled when it is finished (partial_ranges.c).
 *
 *-------------------------------------------------------------------------
 */
#include "plan/offer/ranges_path.h"

#include "keys/types.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "plan/model/path_time.h"
#include "plan/offer/paths.h"
#include "settings.h"

/* A path that is looked at, and what is found. */
typedef struct Ranges
{
	PlannerInfo *root;
	const PathKey *key; /* the first that the sorts below are by; NULL: its rows cannot be shared out */
	int workers;        /* that the inputs are planned for */
} Ranges;

static bool find_ranges(Ranges *ranges, const Path *path);

/* A row of a window function's arguments in its place: whether it may run in workers is told by these and by its own function. */
static Node *
without_window_functions(Node *node, void *context)
{
	WindowFunc *function = (WindowFunc *) node;
	List *args;

	if (node == NULL || !IsA(node, WindowFunc))
		return node == NULL ? NULL : expression_tree_mutator(node, without_window_functions, context);
	args = list_copy(function->args);
	if (function->aggfilter != NULL)
		args = lappend(args, function->aggfilter);
	return (Node *) makeFuncExpr(function->winfnoid, function->wintype, args, function->wincollid, function->inputcollid, COERCE_EXPLICIT_CALL);
}

/* Returns true if workers may compute it; window functions they may, as all rows that these see are in one process. */
static bool
is_safe(const Ranges *ranges, const void *expression)
{
	Node *node = (Node *) expression;

	if (ranges->root->parse->hasWindowFuncs)
		node = without_window_functions(node, NULL);
	return is_parallel_safe(ranges->root, node);
}

/* Returns true if the path's rows have one column with the values of a key, so that it is plain which the plan sorts by. */
static bool
has_one_column(const Path *path, const PathKey *key)
{
	int columns = 0;
	ListCell *cell;
	ListCell *member;

	foreach(cell, path->pathtarget->exprs)
	{
		foreach(member, key->pk_eclass->ec_members)
		{
			if (equal(lfirst_node(EquivalenceMember, member)->em_expr, lfirst(cell)))
			{
				columns++;
				break;
			}
		}
	}
	return columns == 1;
}

static bool
sort_ranges(Ranges *ranges, const GpuSortPath *sort)
{
	const PathKey *key = linitial_node(PathKey, sort->custom.path.pathkeys);
	const EquivalenceMember *member = linitial_node(EquivalenceMember, key->pk_eclass->ec_members);
	const char *why_not;

	if (!sort->shared || !has_one_column(sort->input, key) || PATH_REQ_OUTER(sort->input) != NULL ||
		gpusort_key_encoding(key->pk_opfamily, member->em_datatype, key->pk_eclass->ec_collation, &why_not) == GPUSORT_ENCODE_NONE)
		return false;
	ranges->key = key;
	ranges->workers = Max(ranges->workers, sort->custom.path.parallel_workers);
	return true;
}

static bool
join_ranges(Ranges *ranges, const MergePath *path)
{
	Ranges inner = *ranges;

	if (path->outersortkeys != NIL || path->innersortkeys != NIL ||
		(path->jpath.jointype != JOIN_INNER && path->jpath.jointype != JOIN_LEFT && path->jpath.jointype != JOIN_SEMI &&
		 path->jpath.jointype != JOIN_ANTI && path->jpath.jointype != JOIN_RIGHT && path->jpath.jointype != JOIN_FULL) ||
		!find_ranges(ranges, path->jpath.outerjoinpath) || !find_ranges(&inner, path->jpath.innerjoinpath))
		return false;
	ranges->workers = Max(ranges->workers, inner.workers);
	return gpusort_joins_range_keys(path, ranges->key, inner.key) && is_safe(ranges, path->jpath.joinrestrictinfo);
}

/* Groups by so many clauses, of which one must be of the key. */
static bool
group_ranges(const Ranges *ranges, List *clauses, List *tlist)
{
	return gpusort_groups_by_key(ranges->key, clauses, tlist);
}

static bool
find_ranges(Ranges *ranges, const Path *path)
{
	List *tlist = ranges->root->processed_tlist;

	if (!is_safe(ranges, path->pathtarget->exprs))
		return false;
	switch (nodeTag(path))
	{
		case T_CustomPath:
			return gpusort_path_is_sort(path) && sort_ranges(ranges, (const GpuSortPath *) path);
		case T_MergePath:
			return join_ranges(ranges, (const MergePath *) path);
		case T_ProjectionPath:
			return find_ranges(ranges, ((const ProjectionPath *) path)->subpath);
		case T_AggPath:
			{
				const AggPath *agg = (const AggPath *) path;

				return agg->aggstrategy == AGG_SORTED && (agg->aggsplit == AGGSPLIT_SIMPLE || agg->aggsplit == AGGSPLIT_INITIAL_SERIAL) && find_ranges(ranges, agg->subpath) &&
					group_ranges(ranges, agg->groupClause, tlist) && is_safe(ranges, agg->qual);
			}
		case T_GroupPath:
			{
				const GroupPath *group = (const GroupPath *) path;

				return find_ranges(ranges, group->subpath) && group_ranges(ranges, group->groupClause, tlist) &&
					is_safe(ranges, group->qual);
			}
		case T_UpperUniquePath:
			{
				const UpperUniquePath *unique = (const UpperUniquePath *) path;

				/* by the first of what it is sorted by */
				return unique->numkeys > 0 && find_ranges(ranges, unique->subpath);
			}
		case T_WindowAggPath:
			{
				const WindowAggPath *window = (const WindowAggPath *) path;

				return find_ranges(ranges, window->subpath) &&
					group_ranges(ranges, window->winclause->partitionClause, tlist) &&
					is_safe(ranges, window->winclause->startOffset) && is_safe(ranges, window->winclause->endOffset);
			}
		default:
			return false;
	}
}

/*
 * Returns a partial path of the rows of child, for rel, each from one process; NULL if child cannot run range by range.
 * child is a path over GpuSorts that gpusort_shared_path has made, and must be read once by each process: not on the
 * inner side of a nested loop.  Its costs and rows are taken to be those of one process.
 */
Path *
gpusort_ranges_path(PlannerInfo *root, RelOptInfo *rel, Path *child)
{
	Ranges ranges = {.root = root};

	if (!gpusort_parallel_output || !gpusort_spill || !parallel_leader_participation || PATH_REQ_OUTER(child) != NULL ||
		gpusort_path_is_sort(child) || !find_ranges(&ranges, child))
		return NULL;
	return gpusort_output_path(root, rel, child, ranges.workers);
}
