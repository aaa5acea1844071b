/*-------------------------------------------------------------------------
 *
 * ranges_path.c
 *	  Partial paths of what processes do with ranges of sorted rows.
 *
 * A path over GpuSorts that all processes read (gpusort_shared_path) may run once for each range of the
 * sorted rows, in whatever process, on the terms of node_kinds.c.  Then GpuSortOutput over it is a partial path: each
 * row comes from one process, in no order, and partial joins and aggregates may stand above it, up to a Gather.
 *
 * The first column that is sorted by decides: with that alone ranges can be cut.  Plan nodes get the Gather's parameter
 * for rescans, by which they start over for each range, from PostgreSQL, as they are below parallel-aware ones.  How
 * many columns there are is found when the plan is finished (finish/range_plan.c).
 *
 *-------------------------------------------------------------------------
 */
#include "plan/offer/ranges_path.h"

#include "keys/types.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "plan/node_kinds.h"
#include "plan/offer/paths.h"

/* A path that is looked at, and what is found. */
typedef struct Ranges
{
	GpuSortPathRanges of; /* by the first key of the sorts below; NULL if the path cannot run by ranges */
	int workers;          /* that the inputs are planned for */
} Ranges;

static bool find_ranges(Ranges *ranges, const Path *path);

static bool
sort_ranges(Ranges *ranges, const GpuSortPath *sort)
{
	const PathKey *key = linitial_node(PathKey, sort->custom.path.pathkeys);
	const EquivalenceMember *member = linitial_node(EquivalenceMember, key->pk_eclass->ec_members);
	const char *why_not;

	if (!sort->shared || gpusort_path_key_columns(sort->input, key) != 1 || PATH_REQ_OUTER(sort->input) != NULL ||
		gpusort_key_encoding(key->pk_opfamily, member->em_datatype, exprType((Node *) member->em_expr),
							 key->pk_eclass->ec_collation, &why_not) == GPUSORT_ENCODE_NONE)
		return false;
	ranges->of.key = key;
	ranges->workers = Max(ranges->workers, sort->custom.path.parallel_workers);
	return true;
}

static bool
join_ranges(Ranges *ranges, const MergePath *path)
{
	Ranges inner = *ranges;

	if (path->outersortkeys != NIL || path->innersortkeys != NIL || !find_ranges(ranges, path->jpath.outerjoinpath) ||
		!find_ranges(&inner, path->jpath.innerjoinpath))
		return false;
	ranges->workers = Max(ranges->workers, inner.workers);
	if (!gpusort_joins_range_keys(path, ranges->of.key, inner.of.key))
		return false;
	ranges->of.key = gpusort_joined_range_key(path, ranges->of.key, inner.of.key);
	return true;
}

static bool
find_ranges(Ranges *ranges, const Path *path)
{
	bool found = false;

	if (gpusort_path_is_sort(path))
		found = sort_ranges(ranges, (const GpuSortPath *) path);
	else if (IsA(path, MergePath))
		found = join_ranges(ranges, (const MergePath *) path);
	else if (IsA(path, AggPath))
		found = find_ranges(ranges, ((const AggPath *) path)->subpath);
	return found && gpusort_path_may_run_by_ranges(&ranges->of, path);
}

/*
 * Returns a partial path of the rows of child, for rel, each from one process; NULL if child cannot run range by range.
 * child is a path over GpuSorts that gpusort_shared_path has made, where processes may share ranges (offers.c).  Its
 * costs and rows are taken to be those of one process.
 */
Path *
gpusort_ranges_path(PlannerInfo *root, RelOptInfo *rel, Path *child)
{
	Ranges ranges = {.of.root = root, .of.shared = true};

	if (PATH_REQ_OUTER(child) != NULL || gpusort_path_is_sort(child) || !find_ranges(&ranges, child))
		return NULL;
	return gpusort_output_path(root, rel, child, ranges.workers);
}
