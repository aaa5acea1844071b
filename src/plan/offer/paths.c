/*-------------------------------------------------------------------------
 *
 * paths.c
 *	  The paths of GpuSort and its other nodes, and of such as stand for something, and the plans made of them.
 *
 * A CustomPath's child is a SortPath: from that, create_plan makes the finished
 * Sort plan, with its columns, operators and collations settled, of which the
 * CustomScan takes the place.
 *
 * A parallel sort is GpuSort over Gather over GpuSortIngest over a partial path.
 * Both these nodes get their sort columns from a SortPath of their own; the target
 * list is the same from the partial path up, so the columns are, too.  No row goes
 * through Gather but in exceptions (ingest.c), so it is planned for none.
 *
 * A shared sort is GpuSort over a partial path, a partial path itself; GpuSortOutput is over what processes do with
 * ranges of such sorts' rows, below any Gather (ranges_path.c).
 *
 * PostgreSQL has no path of grouping sets that are made of groups.  While paths are chosen, one of ours stands for the
 * groups, with their number of rows and their time (partial_sets.c).
 *
 * Of an Agg whose aggregates are computed otherwise than the query has them (presorted.c) those above see a path of
 * ours, with the query's columns.  The finished plan is without its node (finish/finish.c).
 *
 *-------------------------------------------------------------------------
 */
#include "plan/offer/paths.h"

#include "node.h"
#include "nodes/extensible.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/tlist.h"
#include "plan/admission.h"
#include "plan/model/shape.h"
#include "plan/statement.h"
#include "utils/lsyscache.h"

/*
 * Returns the columns of the plan below, for a node that passes its rows on.  setrefs.c looks for each of them in the
 * node's own list, by the number of its Var, and raises an error if the first that it finds is made NULL by other joins
 * or grouping sets: so all of a number are as the first.  Those above find the first, too.  What a column refers to
 * is told by its place when the plan is finished.
 */
static List *
columns_passed_on(List *targetlist)
{
	List *columns = copyObject(targetlist);
	ListCell *cell;
	ListCell *earlier;

	foreach(cell, columns)
	{
		Var *var = (Var *) lfirst_node(TargetEntry, cell)->expr;

		if (!IsA(var, Var))
			continue;
		foreach(earlier, columns)
		{
			const Var *first = (const Var *) lfirst_node(TargetEntry, earlier)->expr;

			if (IsA(first, Var) && first->varno == var->varno && first->varattno == var->varattno)
			{
				TAKE_NULLINGRELS(var, first);
				break;
			}
		}
	}
	return columns;
}

/*
 * The CustomScan that takes the place of the finished Sort.  Like a Sort, it passes
 * its child's rows on as they are.  What its columns refer to is settled when the
 * plan is finished (sort_nodes.c).
 */
static Plan *
replace_sort(PlannerInfo *root, CustomPath *path, List *custom_plans, const CustomScanMethods *methods)
{
	Sort *sort = linitial_node(Sort, custom_plans);
	CustomScan *scan = makeNode(CustomScan);

	scan->scan.plan.targetlist = columns_passed_on(sort->plan.targetlist);
	scan->scan.plan.lefttree = sort->plan.lefttree;
	scan->scan.scanrelid = 0;
	scan->flags = path->flags;
	scan->custom_scan_tlist = copyObject(scan->scan.plan.targetlist);
	scan->methods = methods;
	scan->custom_private = gpusort_plan_pack(sort);
	return &scan->scan.plan;
}

/* Adds the columns of a GpuSort that say how many rows a row stands for, which are the target's last ones. */
static void
add_counts(CustomScan *scan, const PathTarget *target, List *counted)
{
	const int rows_columns = list_length(scan->scan.plan.targetlist);
	ListCell *cell;

	Assert(list_length(target->exprs) == rows_columns + list_length(counted));
	for_each_from(cell, target->exprs, rows_columns)
	{
		TargetEntry *entry = makeTargetEntry(lfirst(cell), foreach_current_index(cell) + 1, NULL, false);

		scan->scan.plan.targetlist = lappend(scan->scan.plan.targetlist, entry);
		scan->custom_scan_tlist = lappend(scan->custom_scan_tlist, copyObject(entry));
	}
	gpusort_plan_set_counted(scan, counted);
}

/* The PlanCustomPath callbacks */
static Plan *
plan_gpusort_path(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses,
				  List *custom_plans)
{
	Plan *plan = replace_sort(root, path, custom_plans, &gpusort_scan_methods);
	const GpuSortPath *sort = (const GpuSortPath *) path;

	gpusort_plan_set_why_alone((CustomScan *) plan, sort->why_alone);
	gpusort_plan_set_use((CustomScan *) plan, &sort->use);
	gpusort_plan_set_block_index((CustomScan *) plan, &sort->block_index);
	if (sort->counted != NIL)
		add_counts((CustomScan *) plan, path->path.pathtarget, sort->counted);
	return plan;
}

static Plan *
plan_ingest_path(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses,
				 List *custom_plans)
{
	return replace_sort(root, path, custom_plans, &gpusort_ingest_scan_methods);
}

/* A CustomScan that passes the rows of the plan below it on, as these columns. */
static CustomScan *
make_scan(Plan *child, List *targetlist, const CustomScanMethods *methods)
{
	CustomScan *scan = makeNode(CustomScan);

	scan->scan.plan.targetlist = columns_passed_on(targetlist);
	scan->scan.plan.lefttree = child;
	scan->custom_scan_tlist = copyObject(scan->scan.plan.targetlist);
	scan->methods = methods;
	return scan;
}

/* What a GpuSortOutput's columns refer to, and more, is settled when the plan is finished, too (finish/ranges.c). */
static Plan *
plan_output_path(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses, List *custom_plans)
{
	const GpuSortOutputInfo info = {.rescan_param = -1, .partial = true, .partition_columns = -1};
	Plan *child = linitial(custom_plans);
	CustomScan *scan = make_scan(child, child->targetlist, &gpusort_output_scan_methods);

	scan->custom_private = gpusort_output_plan_pack(&info);
	return &scan->scan.plan;
}

/*
 * GpuSortExchange over a Gather over GpuSortOutput, which is no partial path's.  The Gather has the columns of
 * GpuSortOutput, and this has those of its plan.
 */
static Plan *
plan_exchange_path(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses, List *custom_plans)
{
	const GpuSortOutputInfo info = {.rescan_param = -1,
									.partition_columns = -1,
									.only_formed = linitial_int(path->custom_private) != 0,
									.reads_tables = gpusort_statement_reads_tables()};
	Plan *gather = linitial(custom_plans);
	CustomScan *output = castNode(CustomScan, outerPlan(gather));

	output->custom_private = gpusort_output_plan_pack(&info);
	gather->targetlist = columns_passed_on(output->scan.plan.targetlist);
	return &make_scan(gather, gather->targetlist, &gpusort_exchange_scan_methods)->scan.plan;
}

/* Groups are made a path of PostgreSQL's when they are chosen (partial_sets.c). */
static Plan *
plan_groups_path(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses, List *custom_plans)
{
	elog(ERROR, "%s is no path of a plan", path->methods->CustomName);
}

static Node *
refuse_to_run(CustomScan *scan)
{
	elog(ERROR, "%s is no node that runs", scan->methods->CustomName);
}

/* Stands above an Agg that computes its columns otherwise than the query has them, which this has (finish.c). */
const CustomScanMethods gpusort_columns_scan_methods = {
	.CustomName = "GpuSortColumns",
	.CreateCustomScanState = refuse_to_run,
};

static Plan *
plan_columns_path(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses, List *custom_plans)
{
	CustomScan *scan = make_scan(linitial(custom_plans), tlist, &gpusort_columns_scan_methods);

	scan->custom_private = path->custom_private;
	return &scan->scan.plan;
}

static const CustomPathMethods path_methods = {
	.CustomName = GPUSORT_NODE_NAME,
	.PlanCustomPath = plan_gpusort_path,
};

static const CustomPathMethods ingest_path_methods = {
	.CustomName = GPUSORT_INGEST_NODE_NAME,
	.PlanCustomPath = plan_ingest_path,
};

static const CustomPathMethods output_path_methods = {
	.CustomName = GPUSORT_OUTPUT_NODE_NAME,
	.PlanCustomPath = plan_output_path,
};

static const CustomPathMethods exchange_path_methods = {
	.CustomName = GPUSORT_EXCHANGE_NODE_NAME,
	.PlanCustomPath = plan_exchange_path,
};

static const CustomPathMethods groups_path_methods = {
	.CustomName = "GpuSortGroups",
	.PlanCustomPath = plan_groups_path,
};

static const CustomPathMethods columns_path_methods = {
	.CustomName = "GpuSortColumns",
	.PlanCustomPath = plan_columns_path,
};

/* A path of one of the first two nodes over input, without its costs. */
static CustomPath *
make_custom_path(PlannerInfo *root, RelOptInfo *rel, Path *input, List *pathkeys,
				 const CustomPathMethods *methods)
{
	CustomPath *path = (CustomPath *) newNode(sizeof(GpuSortPath), T_CustomPath);

	path->path.pathtype = T_CustomScan;
	path->path.parent = rel;
	path->path.pathtarget = input->pathtarget;
	INHERIT_DISABLED_NODES(&path->path, input);
	path->custom_paths = list_make1(create_sort_path(root, rel, input, pathkeys, -1));
	path->methods = methods;
	return path;
}

/* Returns true if path is one of GpuSort, a GpuSortPath. */
bool
gpusort_path_is_sort(const Path *path)
{
	return IsA(path, CustomPath) && ((const CustomPath *) path)->methods == &path_methods;
}

/*
 * What a node that takes so many ns costs: PostgreSQL's sort of numbers as it was fitted takes 5 us a unit.  The cost
 * decides nothing, a path over GpuSort has that of the path in whose place it is (offers.c); it is for EXPLAIN.
 */
static double
cost_of_time(double time)
{
	return time / 5000 * cpu_operator_cost / DEFAULT_CPU_OPERATOR_COST;
}

/* The path that a GpuSort reads, as the plan will have it. */
Path *
gpusort_path_input(const Path *path)
{
	return linitial_node(SortPath, ((const CustomPath *) path)->custom_paths)->subpath;
}

/* Returns a GpuSort that reads another path of the same rows, in one process. */
Path *
gpusort_path_over(const Path *path, Path *input)
{
	GpuSortPath *copy = palloc(sizeof(GpuSortPath));
	SortPath *sort = makeNode(SortPath);

	*copy = *(const GpuSortPath *) path;
	*sort = *linitial_node(SortPath, copy->custom.custom_paths);
	sort->subpath = input;
	copy->custom.custom_paths = list_make1(sort);
	copy->input = input;
	return &copy->custom.path;
}

/* Returns a GpuSort of the same rows, of which each process takes its part in, from partial, and all read ranges. */
Path *
gpusort_path_in_ranges(const Path *path, Path *partial)
{
	GpuSortPath *copy = (GpuSortPath *) gpusort_path_over(path, partial);

	copy->custom.path.parallel_aware = true;
	copy->custom.path.parallel_safe = true;
	copy->custom.path.parallel_workers = partial->parallel_workers;
	copy->gathered = false;
	copy->shared = true;
	return &copy->custom.path;
}

/*
 * A path of GpuSort over input, for rel: so many rows, in the order of pathkeys.
 * enable_sort = off counts against it as against a Sort.
 */
static GpuSortPath *
make_path(PlannerInfo *root, RelOptInfo *rel, Path *input, List *pathkeys, double rows, const GpuSortTime *time)
{
	CustomPath *path = make_custom_path(root, rel, input, pathkeys, &path_methods);
	GpuSortPath *sort = (GpuSortPath *) path;

	path->path.rows = rows;
	path->path.startup_cost =
		input->total_cost + cost_of_time(time->setup + (time->ingest + time->order + time->compare) * rows);
	path->path.total_cost = path->path.startup_cost + cost_of_time(time->emit * rows);
	if (!enable_sort)
		DISABLE_PATH(&path->path);
	path->path.pathkeys = pathkeys;
	path->flags = CUSTOMPATH_SUPPORT_BACKWARD_SCAN | CUSTOMPATH_SUPPORT_MARK_RESTORE;
	sort->input = input;
	sort->rows = rows;
	sort->time = *time;
	return sort;
}

/* The same over Gather over GpuSortIngest over a partial path; rows is what all processes have together. */
static GpuSortPath *
make_parallel_path(PlannerInfo *root, RelOptInfo *rel, Path *partial, List *pathkeys, double rows,
				   const GpuSortTime *time)
{
	CustomPath *ingest = make_custom_path(root, rel, partial, pathkeys, &ingest_path_methods);
	GpuSortTime leader_time = *time;
	double rows_gathered = 0;
	GatherPath *gather;
	GpuSortPath *sort;

	ingest->path.parallel_aware = true;
	ingest->path.parallel_safe = true;
	ingest->path.parallel_workers = partial->parallel_workers;
	ingest->path.rows = rows_gathered;
	ingest->path.startup_cost = partial->total_cost + cost_of_time(time->ingest * partial->rows);
	ingest->path.total_cost = ingest->path.startup_cost;
	gather = create_gather_path(root, rel, &ingest->path, ingest->path.pathtarget, NULL, &rows_gathered);
	leader_time.ingest = 0;
	sort = make_path(root, rel, &gather->path, pathkeys, rows, &leader_time);
	sort->input = partial;
	sort->gathered = true;
	sort->time = *time;
	return sort;
}

/* Asks whether input's rows, so many, may be sorted by the service. */
static GpuSortAdmission
admit_path(const Path *input, double rows, List *pathkeys)
{
	const GpuSortCandidate candidate = {
		.rows = rows,
		.width = input->pathtarget->width,
		.processes = 1,
		.pathkeys = pathkeys,
	};

	return gpusort_admit(&candidate);
}

static const Expr *
without_labels(const Expr *expr)
{
	while (IsA(expr, RelabelType))
		expr = ((const RelabelType *) expr)->arg;
	return expr;
}

/*
 * Returns how many of these expressions have the values of a member
 * of what is sorted by, as PostgreSQL looks for it: relabelled or not.
 */
int
gpusort_count_columns(List *exprs, const EquivalenceMember *member)
{
	int columns = 0;
	ListCell *cell;

	foreach(cell, exprs)
		columns += equal(without_labels(lfirst(cell)), without_labels(member->em_expr));
	return columns;
}

/* Returns true if strings that are equal by one collation are by the other: if they are the same bytes by both. */
static bool
tell_apart_alike(Oid one, Oid other)
{
	return one == other ||
		(OidIsValid(one) && OidIsValid(other) && get_collation_isdeterministic(one) &&
		 get_collation_isdeterministic(other));
}

/*
 * Returns the place of the first of these expressions that has the values of another, and tells them apart alike, from
 * 0; -1 if none does.
 */
int
gpusort_find_column(List *exprs, const Expr *expr)
{
	ListCell *cell;

	foreach(cell, exprs)
	{
		if (equal(without_labels(lfirst(cell)), without_labels(expr)) &&
			tell_apart_alike(exprCollation(lfirst(cell)), exprCollation((const Node *) expr)))
			return foreach_current_index(cell);
	}
	return -1;
}

/* Returns how many columns of a path's rows have the values of a key; if one has, the plan sorts by that. */
int
gpusort_path_key_columns(const Path *path, const PathKey *key)
{
	int columns = 0;
	ListCell *cell;

	foreach(cell, key->pk_eclass->ec_members)
		columns += gpusort_count_columns(path->pathtarget->exprs, lfirst_node(EquivalenceMember, cell));
	return columns;
}

/* Returns what is sorted by and is no column of a path, so that the plan below the sort computes it. */
List *
gpusort_path_missing_columns(const Path *path, List *pathkeys)
{
	List *missing = NIL;
	ListCell *cell;

	foreach(cell, pathkeys)
	{
		const PathKey *key = lfirst_node(PathKey, cell);

		if (gpusort_path_key_columns(path, key) == 0)
			missing = lappend(missing, linitial_node(EquivalenceMember, key->pk_eclass->ec_members)->em_expr);
	}
	return missing;
}

/* Returns true if the path's target has the columns to sort it by. */
static bool
has_sort_columns(const Path *path, List *pathkeys)
{
	ListCell *key;

	foreach(key, pathkeys)
	{
		if (gpusort_path_key_columns(path, lfirst_node(PathKey, key)) == 0)
			return false;
	}
	return true;
}

/* Returns true if partial gives path's rows in parallel, with what to sort them by. */
static bool
may_ingest(const Path *path, const Path *partial, List *pathkeys)
{
	return equal(path->pathtarget->exprs, partial->pathtarget->exprs) && has_sort_columns(partial, pathkeys);
}

/* The best partial path that gives the same rows as a path; NULL if there is none. */
Path *
gpusort_partial_of(const Path *path)
{
	const RelOptInfo *rel = path->parent;

	/* Its rows are not the rel's, but each value's once: the processes would have it once each. */
	if (IsA(path, UniquePath))
		return NULL;
	if (IsA(path, GatherPath) && !((const GatherPath *) path)->single_copy)
		return ((const GatherPath *) path)->subpath;
	return rel->consider_parallel && rel->partial_pathlist != NIL ? linitial(rel->partial_pathlist) : NULL;
}

/* Returns the scan of a table that a path is, or over which it only projects; NULL if it is none. */
static const Path *
table_scan(const Path *path)
{
	if (IsA(path, ProjectionPath))
		path = ((const ProjectionPath *) path)->subpath;
	return IsA(path, Path) && path->pathtype == T_SeqScan ? path : NULL;
}

/* Returns the path of a scan of all columns of a table with these in the table's order; any other path as it is. */
Path *
gpusort_path_in_table_order(PlannerInfo *root, Path *path)
{
	const Path *scan = table_scan(path);
	const int natts = scan != NULL ? scan->parent->max_attr : 0;
	PathTarget *target = path->pathtarget;
	PathTarget *ordered;
	int *places;
	ListCell *cell;

	if (natts == 0 || list_length(target->exprs) != natts)
		return path;
	places = palloc0(natts * sizeof(int)); /* in the target, from 1 */
	foreach(cell, target->exprs)
	{
		const Var *var = lfirst(cell);

		if (!IsA(var, Var) || var->varno != (int) scan->parent->relid || var->varattno <= 0 ||
			places[var->varattno - 1] > 0)
			return path;
		places[var->varattno - 1] = foreach_current_index(cell) + 1;
	}
	ordered = create_empty_pathtarget();
	for (int i = 0; i < natts; i++)
		add_column_to_pathtarget(ordered, list_nth(target->exprs, places[i] - 1),
								 get_pathtarget_sortgroupref(target, places[i] - 1));
	if (equal(ordered->exprs, target->exprs))
		return path;
	return (Path *) create_projection_path(root, path->parent, path, set_pathtarget_cost_width(root, ordered));
}

/*
 * Returns a GpuSort path of input's rows, for rel, or NULL: with the ingest of partial, if there is such a path
 * and it gives the same rows; else not of rows that come in order, as those of the Gather Merge that it would replace.
 */
Path *
gpusort_sorted_path(PlannerInfo *root, RelOptInfo *rel, Path *input, Path *partial, List *pathkeys)
{
	GpuSortAdmission admission;
	GpuSortTime time;
	GpuSortPath *path;

	if (PATH_REQ_OUTER(input) != NULL)
		return NULL;
	admission = admit_path(input, input->rows, pathkeys);
	if (admission.encodable == 0)
		return NULL;
	if (partial != NULL && (!MAY_GATHER(rel) || !MAY_GATHER(partial->parent) || !may_ingest(input, partial, pathkeys)))
		partial = NULL;
	if (partial == NULL && pathkeys_contained_in(pathkeys, input->pathkeys))
		return NULL;
	time = gpusort_path_sort_time(root, partial != NULL ? partial : input, input->rows, pathkeys, &admission);
	if (partial != NULL)
		path = make_parallel_path(root, rel, partial, pathkeys, input->rows, &time);
	else
		path = make_path(root, rel, input, pathkeys, input->rows, &time);
	return &path->custom.path;
}

/*
 * Returns a GpuSort path of the first rows of a scan, for rel, or NULL: of the scan so many rows are read, from the
 * blocks that can have them by an index, which takes this time to read.
 */
Path *
gpusort_first_blocks_path(PlannerInfo *root, RelOptInfo *rel, Path *scan, double rows, List *pathkeys,
						  const GpuSortBlockIndex *index, double index_time)
{
	const GpuSortAdmission admission = admit_path(scan, scan->rows, pathkeys);
	GpuSortTime time;
	GpuSortPath *sort;

	if (admission.encodable == 0)
		return NULL;
	scan->rows = clamp_row_est(rows);
	time = gpusort_path_sort_time(root, scan, scan->rows, pathkeys, &admission);
	time.setup += index_time;
	time.index = index_time;
	sort = make_path(root, rel, scan, pathkeys, scan->rows, &time);
	sort->block_index = *index;
	return &sort->custom.path;
}

/*
 * Returns a path of GpuSort over a partial path, for its rel, or NULL: all processes take its rows in, and read them by
 * ranges, each of them a part of those in order.  Only below a path that gpusort_ranges_path knows.  Not where the
 * order has to be verified, under the C library's collations: should it be wrong, nothing can be read again.
 */
Path *
gpusort_shared_path(PlannerInfo *root, Path *partial, List *pathkeys)
{
	const double rows = partial->parent->rows;
	GpuSortAdmission admission;
	GpuSortTime time;
	GpuSortPath *sort;

	if (PATH_REQ_OUTER(partial) != NULL || !partial->parallel_safe || partial->parallel_workers == 0 ||
		!has_sort_columns(partial, pathkeys))
		return NULL;
	admission = admit_path(partial, rows, pathkeys);
	if (admission.encodable == 0 || admission.verified)
		return NULL;
	time = gpusort_path_sort_time(root, partial, rows, pathkeys, &admission);
	sort = make_path(root, partial->parent, partial, pathkeys, partial->rows, &time);
	sort->custom.path.parallel_aware = true;
	sort->custom.path.parallel_safe = true;
	sort->custom.path.parallel_workers = partial->parallel_workers;
	sort->custom.flags = CUSTOMPATH_SUPPORT_MARK_RESTORE;
	linitial_node(SortPath, sort->custom.custom_paths)->path.rows = rows; /* what the service is told of */
	sort->rows = rows;
	sort->shared = true;
	return &sort->custom.path;
}

/* Fills in a partial path that so many workers run, of the rows of child; its costs and rows are child's. */
static void
fill_partial_path(CustomPath *path, RelOptInfo *rel, Path *child, int workers, const CustomPathMethods *methods)
{
	path->path.pathtype = T_CustomScan;
	path->path.parent = rel;
	path->path.pathtarget = child->pathtarget;
	path->path.parallel_safe = true;
	path->path.parallel_workers = workers;
	path->path.rows = child->rows;
	INHERIT_DISABLED_NODES(&path->path, child);
	path->path.startup_cost = child->startup_cost;
	path->path.total_cost = child->total_cost;
	path->custom_paths = list_make1(child);
	path->methods = methods;
}

/*
 * Returns a partial path of GpuSortOutput for rel: of child, which so many workers run range by range, over shared
 * sorts. Its costs and rows are taken to be those of one process.
 */
Path *
gpusort_output_path(PlannerInfo *root, RelOptInfo *rel, Path *child, int workers)
{
	CustomPath *path = makeNode(CustomPath);

	fill_partial_path(path, rel, child, workers, &output_path_methods);
	path->path.parallel_aware = true;
	return &path->path;
}

/*
 * Returns a path of GpuSortExchange for what so many workers do in ranges of sorted rows, over sorts in ranges; all are
 * rows like those of whole, in its order and at its cost.  only_formed is as in GpuSortOutputInfo.  What is below it
 * belongs to no relation, whose conditions would be evaluated again.
 */
Path *
gpusort_exchange_path(PlannerInfo *root, Path *child, const Path *whole, int workers, bool only_formed)
{
	RelOptInfo *rel = fetch_upper_rel(root, UPPERREL_FINAL, NULL);
	CustomPath *path = makeNode(CustomPath);
	Path *output = gpusort_output_path(root, rel, child, workers);
	double rows = 0; /* none comes up through the Gather */
	Path *gather = (Path *) create_gather_path(root, rel, output, output->pathtarget, NULL, &rows);

	gather->startup_cost = whole->startup_cost;
	gather->total_cost = whole->total_cost;
	fill_partial_path(path, rel, gather, 0, &exchange_path_methods);
	path->path.parent = whole->parent; /* by whose relations joins tell their sides */
	path->path.parallel_safe = false;
	path->path.rows = whole->rows;
	path->path.pathkeys = whole->pathkeys;
	path->custom_private = list_make1_int(only_formed);
	return &path->path;
}

/*
 * Returns a partial path of the groups, by these clauses, that each process makes of its rows of a partial path: so
 * many at most, with the states of these aggregates, for grouping sets.  Its columns are those of the rows.
 */
Path *
gpusort_groups_path(RelOptInfo *rel, Path *partial, List *clauses, double groups, List *aggregates,
					uint64 transition_space)
{
	GpuSortGroupsPath *path = (GpuSortGroupsPath *) newNode(sizeof(GpuSortGroupsPath), T_CustomPath);

	fill_partial_path(&path->custom, rel, partial, partial->parallel_workers, &groups_path_methods);
	path->custom.path.rows = Min(groups, partial->rows);
	path->clauses = clauses;
	path->groups = groups;
	path->aggregates = aggregates;
	path->transition_space = transition_space;
	return &path->custom.path;
}

/* Returns true if path is one of groups, a GpuSortGroupsPath. */
bool
gpusort_path_is_groups(const Path *path)
{
	return IsA(path, CustomPath) && ((const CustomPath *) path)->methods == &groups_path_methods;
}

/* Returns the groups of another path of the same rows. */
Path *
gpusort_groups_path_over(const Path *path, Path *partial)
{
	const GpuSortGroupsPath *like = (const GpuSortGroupsPath *) path;

	return gpusort_groups_path(path->parent, partial, like->clauses, like->groups, like->aggregates,
							   like->transition_space);
}

/*
 * Returns a path of the rows of an Agg that computes them otherwise than the query has them, this part of its
 * aggregates, for those above it, which refer to these columns of the query, as many.
 */
Path *
gpusort_columns_path(Path *agg, AggSplit split, PathTarget *columns)
{
	CustomPath *path = makeNode(CustomPath);

	path->path = *agg;
	path->path.type = T_CustomPath;
	path->path.pathtype = T_CustomScan;
	path->path.pathtarget = columns;
	path->custom_paths = list_make1(agg);
	path->custom_private = list_make1_int(split);
	path->methods = &columns_path_methods;
	return &path->path;
}

/* Returns true if path is one of GpuSortOutput. */
bool
gpusort_path_is_output(const Path *path)
{
	return IsA(path, CustomPath) && ((const CustomPath *) path)->methods == &output_path_methods;
}

/* The path that a GpuSortOutput runs range by range, or whose rows' groups a path of groups has. */
Path *
gpusort_partial_path_child(const Path *path)
{
	return linitial(((const CustomPath *) path)->custom_paths);
}

/*
 * Returns what the processes of a shared sort all wait for, while its rows are put in order: each takes no longer for
 * it where there are more processes than cores.
 */
double
gpusort_path_shared_order_time(const GpuSortPath *path)
{
	return path->time.order * path->rows / gpusort_crowd(path->custom.path.parallel_workers);
}

/* Returns what a path, where it is a GpuSort, takes more of so many times as many rows as estimated. */
double
gpusort_path_more_rows_time(const Path *path, double rows, double factor)
{
	const GpuSortPath *sort = (const GpuSortPath *) path;

	if (factor == 1 || !gpusort_path_is_sort(path))
		return 0;
	if (sort->shared)
		return (factor - 1) *
			(rows * (sort->time.ingest + sort->time.emit + sort->time.compare) + gpusort_path_shared_order_time(sort));
	return (factor - 1) * rows *
		(sort->time.ingest / (sort->gathered ? gpusort_range_processes(sort->input->parallel_workers) : 1) +
		 sort->time.order + sort->time.emit + sort->time.compare);
}
