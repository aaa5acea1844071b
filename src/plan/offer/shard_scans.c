/*-------------------------------------------------------------------------
 *
 * shard_scans.c
 *	  Partial paths of foreign tables: their rows come to all processes of a plan.
 *
 * postgres_fdw's scans have no partial paths, since each process would have a connection of its own, and on each the
 * rows of another moment.  A GpuSortShardScan has connections in one snapshot (shards/), so it has them; PostgreSQL
 * makes a Parallel Append of the partitions', and all that it makes of partial paths above, and gpusort its own.
 *
 * PostgreSQL asks a wrapper's routine whether its tables' scans are parallel safe, and thinks of no partial path where
 * they are not.  A rel has a copy of the routine for itself, which is changed here, so that the answer is yes.  But
 * postgres_fdw's own paths stay in the leader: they are marked so as soon as they are there.
 *
 * How the shard's rows are divided is known when they are read.  So the query of a part is written with two row numbers
 * for which others will stand, by postgres_fdw itself, from conditions on ctid.  They are such that the text has each
 * of them once.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/offer/shard_scans.h"

#include <math.h>

#include "access/sysattr.h"
#include "catalog/pg_operator_d.h"
#include "catalog/pg_type_d.h"
#include "commands/defrem.h"
#include "facts/output_functions.h"
#include "foreign/fdwapi.h"
#include "foreign/foreign.h"
#include "miscadmin.h"
#include "node.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/plancat.h"
#include "optimizer/planmain.h"
#include "optimizer/restrictinfo.h"
#include "parser/parsetree.h"
#include "plan/model/constants.h"
#include "plan/model/shape.h"
#include "plan/model/shard_time.h"
#include "settings.h"
#include "shards/connection.h"
#include "shards/transaction.h"
#include "storage/itemptr.h"
#include "utils/lsyscache.h"

/* postgres_fdw's */
static GetForeignJoinPaths_function native_join_paths = NULL;
static GetForeignUpperPaths_function native_upper_paths = NULL;

/* --- the routine ------------------------------------------------------------------------------ */

/* postgres_fdw's own paths are for the leader alone. */
static void
keep_in_leader(const List *paths)
{
	ListCell *cell;

	foreach(cell, paths)
	{
		if (IsA(lfirst(cell), ForeignPath))
			((Path *) lfirst(cell))->parallel_safe = false;
	}
}

static bool
scan_is_parallel_safe(PlannerInfo *root, RelOptInfo *rel, RangeTblEntry *rte)
{
	return true;
}

static void
join_paths(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outerrel, RelOptInfo *innerrel, JoinType jointype,
		   JoinPathExtraData *extra)
{
	native_join_paths(root, joinrel, outerrel, innerrel, jointype, extra);
	keep_in_leader(joinrel->pathlist);
}

static void
upper_paths(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input_rel, RelOptInfo *output_rel, void *extra)
{
	native_upper_paths(root, stage, input_rel, output_rel, extra);
	keep_in_leader(output_rel->pathlist);
}

/* Returns true if a foreign table is of postgres_fdw. */
static bool
is_of_postgres_fdw(const RelOptInfo *rel)
{
	const ForeignDataWrapper *wrapper = GetForeignDataWrapper(GetForeignServer(rel->serverid)->fdwid);
	const char *handler = get_func_name(wrapper->fdwhandler);

	return handler != NULL && strcmp(handler, "postgres_fdw_handler") == 0;
}

/* Returns true if postgres_fdw asks a table's shard for estimates. */
static bool
has_remote_estimates(Oid table, Oid server)
{
	const char *const name = "use_remote_estimate";
	DefElem *option = gpusort_shard_option(GetForeignTable(table)->options, name);

	if (option == NULL)
		option = gpusort_shard_option(GetForeignServer(server)->options, name);
	return option != NULL && defGetBoolean(option);
}

/* Returns true if a table is read by the user who runs the statement, and may be over connections of its own. */
static bool
may_have_connections(PlannerInfo *root, const RelOptInfo *rel)
{
	return gpusort_shard_connections > 1 && root->glob->parallelModeOK && root->parse->commandType == CMD_SELECT &&
		rel->fdwroutine->IsForeignScanParallelSafe == NULL &&
		(!OidIsValid(rel->userid) || rel->userid == GetUserId()) && gpusort_shards_why_not_read() == NULL &&
		gpusort_shard_may_connect(rel->serverid, GetUserId());
}

/*
 * Lets PostgreSQL think of partial paths of a table that it is about to plan, if that is a foreign one; or not, but
 * notes the use of one whose shard postgres_fdw asks for estimates now, in the snapshot of its transaction there.
 */
void
gpusort_shard_scans_prepare(PlannerInfo *root, RelOptInfo *rel, bool wanted)
{
	FdwRoutine *routine = rel->fdwroutine;

	if (!OidIsValid(rel->serverid) || routine == NULL || !is_of_postgres_fdw(rel))
		return;
	if (has_remote_estimates(planner_rt_fetch(rel->relid, root)->relid, rel->serverid))
		gpusort_shards_note_use();
	if (!wanted || !may_have_connections(root, rel))
		return;
	native_join_paths = routine->GetForeignJoinPaths;
	native_upper_paths = routine->GetForeignUpperPaths;
	routine->IsForeignScanParallelSafe = scan_is_parallel_safe;
	routine->GetForeignJoinPaths = join_paths;
	routine->GetForeignUpperPaths = upper_paths;
}

/* --- plans ------------------------------------------------------------------------------------ */

/* Two row numbers that stand for others */
typedef struct RowNumbers
{
	ItemPointerData from;
	ItemPointerData to;
	char from_text[32];
	char to_text[32];
} RowNumbers;

static RowNumbers
row_numbers(int attempt)
{
	RowNumbers numbers;
	const BlockNumber from = 4294900001u + 2 * attempt;

	ItemPointerSet(&numbers.from, from, 60001);
	ItemPointerSet(&numbers.to, from + 1, 60002);
	snprintf(numbers.from_text, sizeof(numbers.from_text), "(%u,60001)", from);
	snprintf(numbers.to_text, sizeof(numbers.to_text), "(%u,60002)", from + 1);
	return numbers;
}

/* Returns the condition that a row's number has to a given one. */
static RestrictInfo *
row_number_condition(PlannerInfo *root, Index relid, Oid operator, ItemPointer number)
{
	Var *ctid = makeVar(relid, SelfItemPointerAttributeNumber, TIDOID, -1, InvalidOid, 0);
	Const *value = makeConst(TIDOID, -1, InvalidOid, sizeof(ItemPointerData), PointerGetDatum(number), false, false);
	Expr *clause = make_opclause(operator, BOOLOID, false, (Expr *) ctid, (Expr *) value, InvalidOid, InvalidOid);

	set_opfuncid((OpExpr *) clause);
	return make_simple_restrictinfo(root, clause);
}

/* Returns the query of a scan that postgres_fdw has planned; NULL: its plan is not as it is known to be. */
static const char *
query_of(const ForeignScan *scan)
{
	Node *first = scan->fdw_private != NIL ? linitial(scan->fdw_private) : NULL;

	return first != NULL && IsA(first, String) && scan->fdw_exprs == NIL ? strVal(first) : NULL;
}

static int
occurrences(const char *text, const char *of)
{
	int count = 0;

	while ((text = strstr(text, of)) != NULL)
	{
		text += strlen(of);
		count++;
	}
	return count;
}

/*
 * Sets the query of the rows between two row numbers: that which postgres_fdw writes if there are such conditions, too.
 * whole is its plan of the table, of which it may evaluate no other conditions here.
 */
static void
set_part_query(GpuSortShardScanInfo *info, PlannerInfo *root, RelOptInfo *rel, ForeignPath *path, List *tlist,
			   List *clauses, const ForeignScan *whole)
{
	info->part_sql = info->from = info->to = "";
	for (int attempt = 0; attempt < 3; attempt++)
	{
		RowNumbers *numbers = palloc(sizeof(RowNumbers));
		List *conditions;
		ForeignScan *scan;
		const char *sql;

		*numbers = row_numbers(attempt);
		conditions = list_make2(row_number_condition(root, rel->relid, TIDGreaterEqOperator, &numbers->from),
								row_number_condition(root, rel->relid, TIDLessOperator, &numbers->to));
		scan = rel->fdwroutine->GetForeignPlan(root, rel, planner_rt_fetch(rel->relid, root)->relid, path, tlist,
											   list_concat_copy(clauses, conditions), NULL);
		sql = query_of(scan);
		if (sql == NULL || list_length(scan->scan.plan.qual) != list_length(whole->scan.plan.qual))
			return;
		if (occurrences(sql, numbers->from_text) != 1 || occurrences(sql, numbers->to_text) != 1)
			continue;
		info->part_sql = sql;
		info->from = numbers->from_text;
		info->to = numbers->to_text;
		return;
	}
}

/* Sets the name that a foreign table has in its shard. */
static void
set_name(GpuSortShardScanInfo *info, Oid table)
{
	const List *options = GetForeignTable(table)->options;
	DefElem *schema = gpusort_shard_option(options, "schema_name");
	DefElem *name = gpusort_shard_option(options, "table_name");

	info->schema = schema != NULL ? defGetString(schema) : get_namespace_name(get_rel_namespace(table));
	info->table = name != NULL ? defGetString(name) : get_rel_name(table);
}

static Plan *
plan_path(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses, List *custom_plans)
{
	ForeignScan *whole = linitial_node(ForeignScan, custom_plans);
	CustomScan *scan = makeNode(CustomScan);
	GpuSortShardScanInfo info = {.sql = query_of(whole)};

	if (info.sql == NULL)
		elog(ERROR, "postgres_fdw has made an unknown plan");
	info.columns = lsecond(whole->fdw_private);
	set_name(&info, planner_rt_fetch(rel->relid, root)->relid);
	set_part_query(&info, root, rel, linitial_node(ForeignPath, path->custom_paths), tlist, clauses, whole);
	scan->scan.plan.targetlist = tlist;
	scan->scan.plan.qual = copyObject(whole->scan.plan.qual);
	scan->scan.scanrelid = rel->relid;
	scan->flags = path->flags;
	scan->custom_plans = custom_plans;
	scan->custom_private = gpusort_shard_plan_pack(&info);
	scan->methods = &gpusort_shard_scan_methods;
	whole->scan.plan.parallel_safe = true; /* where it is executed, there are no workers */

	/* It is planned for a transaction in which it may connect, by a user who may. */
	root->glob->transientPlan = true;
	root->glob->dependsOnRole = true;
	return &scan->scan.plan;
}

static const CustomPathMethods path_methods = {
	.CustomName = GPUSORT_SHARD_NODE_NAME,
	.PlanCustomPath = plan_path,
};

/* --- paths ------------------------------------------------------------------------------------ */

static bool
has_param(Node *node, void *context)
{
	if (node == NULL)
		return false;
	return IsA(node, Param) || expression_tree_walker(node, has_param, context);
}

/* Returns true if a table's conditions can be evaluated in any process, by a shard or here. */
static bool
has_plain_conditions(const RelOptInfo *rel)
{
	ListCell *cell;

	foreach(cell, rel->baserestrictinfo)
	{
		const RestrictInfo *condition = lfirst_node(RestrictInfo, cell);

		if (condition->pseudoconstant || has_param((Node *) condition->clause, NULL) ||
			contain_subplans((Node *) condition->clause))
			return false;
	}
	return true;
}

/* Returns true if a column of a table can come by COPY, and any process may take it in: not a system column. */
static bool
may_come(Oid table, AttrNumber attno)
{
	return attno > 0 && gpusort_may_input(get_atttype(table, attno));
}

/* Returns true if all columns of a table that are wanted may come. */
static bool
may_columns_come(const PlannerInfo *root, const RelOptInfo *rel)
{
	const Oid table = planner_rt_fetch(rel->relid, root)->relid;
	Bitmapset *columns = NULL;
	int member = -1;
	ListCell *cell;

	pull_varattnos((Node *) rel->reltarget->exprs, rel->relid, &columns);
	foreach(cell, rel->baserestrictinfo)
		pull_varattnos((Node *) lfirst_node(RestrictInfo, cell)->clause, rel->relid, &columns);
	/* the whole row */
	if (bms_is_member(0 - FirstLowInvalidHeapAttributeNumber, columns))
	{
		columns = bms_del_member(columns, 0 - FirstLowInvalidHeapAttributeNumber);
		for (AttrNumber attno = 1; attno <= rel->max_attr; attno++)
		{
			if (OidIsValid(get_atttype(table, attno)))
				columns = bms_add_member(columns, attno - FirstLowInvalidHeapAttributeNumber);
		}
	}
	while ((member = bms_next_member(columns, member)) >= 0)
	{
		if (!may_come(table, member + FirstLowInvalidHeapAttributeNumber))
			return false;
	}
	return true;
}

/*
 * Returns a copy of postgres_fdw's path of all rows in no order; NULL: there is none.  The path itself is freed where
 * the planner finds a better one.
 */
static ForeignPath *
copy_whole_path(const RelOptInfo *rel)
{
	ForeignPath *copy;
	ListCell *cell;

	foreach(cell, rel->pathlist)
	{
		Path *path = lfirst(cell);

		if (!IsA(path, ForeignPath) || path->pathkeys != NIL || path->param_info != NULL ||
			((ForeignPath *) path)->fdw_outerpath != NULL)
			continue;
		copy = makeNode(ForeignPath);
		*copy = *(ForeignPath *) path;
		return copy;
	}
	return NULL;
}

/*
 * How many times the time of a connection the rows of a table take in one process that are worth more connections.  If
 * a tenth of them comes, no more time is lost than their rest would have taken.
 */
#define WORTH_CONNECTIONS 10

/* The part of a whole path's cost that a partial one has at most, so that it is still the cheaper one. */
#define NEARLY 0.95

/*
 * Returns true if so many rows come that it pays to open connections for them: of a partition as of all together, on
 * average, for each of them has to be read in parallel, or none is.
 */
static bool
has_enough_rows(const PlannerInfo *root, const RelOptInfo *rel)
{
	const int parent_relid = bms_is_empty(rel->top_parent_relids) ? 0 : bms_next_member(rel->top_parent_relids, -1);
	const RelOptInfo *table = parent_relid > 0 ? root->simple_rel_array[parent_relid] : rel;
	const int parts = bms_is_empty(table->live_parts) ? 1 : bms_num_members(table->live_parts);
	const double rows = table->rows / parts;

	return gpusort_force ||
		gpusort_fetch_time(rows, table->reltarget->width) >
		WORTH_CONNECTIONS * gpusort_constant(GPUSORT_TIME_CONNECTION, false);
}

/*
 * Sets the costs of a partial path: what a process has of the whole one's, but, if it takes longer, that, up to nearly
 * the whole one's.  Before version 17 postgres_fdw counts next to nothing for a row that comes, and PostgreSQL would
 * have all rows of a shard come to join or to count them here in parallel, in place of asking the shard to do that.
 * For paths of ours it is times that decide.
 */
static void
set_costs(Path *path, const Path *whole)
{
	const double unit = gpusort_constant(GPUSORT_TIME_COST, false);
	const double whole_run = whole->total_cost - whole->startup_cost;
	double run = whole_run * path->rows / whole->rows;

	path->startup_cost = whole->startup_cost;
	if (!gpusort_force)
	{
		const double takes = gpusort_fetch_time(path->rows, path->pathtarget->width) / unit;

		path->startup_cost += gpusort_constant(GPUSORT_TIME_CONNECTION, false) / unit;
		run = Max(run, Min(takes, NEARLY * whole_run));
	}
	path->total_cost = path->startup_cost + run;
}

/* Adds the partial path of a foreign table. */
static void
add_shard_scan(PlannerInfo *root, RelOptInfo *rel)
{
	ForeignPath *whole = copy_whole_path(rel);
	const int wanted = compute_parallel_worker(rel, rel->pages, -1, max_parallel_workers_per_gather);
	const int workers = Min(wanted, gpusort_shard_connections - 1);
	CustomPath *scan;
	Path *path;

	if (whole == NULL || workers <= 0)
		return;
	scan = makeNode(CustomPath);
	path = &scan->path;
	path->pathtype = T_CustomScan;
	path->parent = rel;
	path->pathtarget = rel->reltarget;
	path->parallel_aware = true;
	path->parallel_safe = true;
	path->parallel_workers = workers;
	path->rows = clamp_row_est(whole->path.rows / gpusort_plan_processes(workers));
	set_costs(path, &whole->path);
	scan->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	scan->custom_paths = list_make1(whole);
	scan->methods = &path_methods;
	add_partial_path(rel, path);
}

/* Adds a partial path to those of a table, if it has been prepared for that. */
void
gpusort_shard_scans_add(PlannerInfo *root, RelOptInfo *rel)
{
	if (rel->fdwroutine == NULL || rel->fdwroutine->IsForeignScanParallelSafe != scan_is_parallel_safe)
		return;
	keep_in_leader(rel->pathlist);
	if (rel->consider_parallel && bms_is_empty(rel->lateral_relids) && has_enough_rows(root, rel) &&
		has_plain_conditions(rel) && may_columns_come(root, rel))
		add_shard_scan(root, rel);
}

/* Returns true if a path is one of this file. */
bool
gpusort_path_is_shard_scan(const Path *path)
{
	if (IsA(path, ProjectionPath) && ((const ProjectionPath *) path)->dummypp)
		path = ((const ProjectionPath *) path)->subpath;
	return IsA(path, CustomPath) && ((const CustomPath *) path)->methods == &path_methods;
}

/* Returns true if a path is postgres_fdw's of a table that has one of this file, too. */
bool
gpusort_path_is_whole_shard(const Path *path)
{
	const RelOptInfo *rel = path->parent;

	return IsA(path, ForeignPath) && IS_SIMPLE_REL(rel) && path->param_info == NULL && rel->partial_pathlist != NIL &&
		gpusort_path_is_shard_scan(linitial(rel->partial_pathlist));
}

/* Returns true if all that a path appends is of this file. */
bool
gpusort_path_appends_shard_scans(const Path *path)
{
	ListCell *cell;

	foreach(cell, ((const AppendPath *) path)->subpaths)
	{
		if (!gpusort_path_is_shard_scan(lfirst(cell)))
			return false;
	}
	return true;
}
