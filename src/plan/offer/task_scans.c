/*-------------------------------------------------------------------------
 *
 * task_scans.c
 *	  Partial paths of what Citus asks of its nodes: its rows come to all processes of a plan.
 *
 * Citus plans what the coordinator does with the rows of its tasks as a query of its own, over one table, for which it
 * has one path, of no cost and always as many rows, for one process.  A GpuSortTaskScan reads them in several.  Where
 * it may, and the rows are so many that it pays, Citus's path is told how many they are, as a node estimates them, and
 * what it takes to read them, so that the two compare.
 *
 * Citus plans that query without parallel mode, whatever was asked for, since nothing of it could use it.  So it is
 * looked at here whether the query could, and that is noted where PostgreSQL looks for it, as insert_select.c does.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/offer/task_scans.h"

#include <math.h>

#include "catalog/pg_proc.h"
#include "common/hashfn.h"
#include "facts/output_functions.h"
#include "miscadmin.h"
#include "node.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "plan/model/constants.h"
#include "plan/model/shape.h"
#include "plan/model/shard_time.h"
#include "plan/statement.h"
#include "settings.h"
#include "shards/citus.h"
#include "shards/connection.h"
#include "shards/transaction.h"
#include "utils/memutils.h"

typedef struct TaskScanPath
{
	CustomPath path;         /* must be first field */
	List *tasks;             /* each a GpuSortCitusTask */
	const CustomScan *citus; /* Citus's own node of them */
} TaskScanPath;

/* --- plans ------------------------------------------------------------------------------------ */

/* Returns targets that are the columns of a CustomScan, as setrefs.c writes them. */
static List *
own_columns(const CustomScan *scan)
{
	List *targets = NIL;
	ListCell *cell;

	foreach(cell, scan->custom_scan_tlist)
	{
		TargetEntry *target = flatCopyTargetEntry(lfirst_node(TargetEntry, cell));

		target->expr = (Expr *) makeVarFromTargetEntry(INDEX_VAR, target);
		targets = lappend(targets, target);
	}
	return targets;
}

static Plan *
plan_path(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses, List *custom_plans)
{
	CustomScan *scan = makeNode(CustomScan);
	CustomScan *citus = (CustomScan *) copyObjectImpl(((TaskScanPath *) path)->citus);

	scan->scan.plan.targetlist = tlist;
	scan->custom_scan_tlist = copyObject(citus->custom_scan_tlist);
	scan->flags = path->flags;
	scan->methods = &gpusort_task_scan_methods;

	/* PostgreSQL does not finish that plan, which it does not see */
	citus->scan.plan.targetlist = own_columns(citus);
	scan->custom_private = gpusort_task_plan_pack(((TaskScanPath *) path)->tasks, &citus->scan.plan);

	/* It is planned for a transaction in which it may connect, as a user who may. */
	root->glob->transientPlan = true;
	root->glob->dependsOnRole = true;
	return &scan->scan.plan;
}

static const CustomPathMethods path_methods = {
	.CustomName = GPUSORT_TASK_NODE_NAME,
	.PlanCustomPath = plan_path,
};

/* --- how many rows there are ------------------------------------------------------------------ */

/* Returns how many rows a plan has, as EXPLAIN writes it; -1: that is not there. */
static double
explained_rows(const char *text)
{
	const char *const name = "\"Plan Rows\": ";
	const char *at = strstr(text, name);

	return at != NULL ? strtod(at + strlen(name), NULL) : -1;
}

/* Asks a task's node how many rows the task gives; -1: it does not say. */
static double
ask_for_rows(const GpuSortCitusTask *task)
{
	const GpuSortNode node = gpusort_citus_node(task, GetUserId(), gpusort_citus_application_name());
	MemoryContext context =
		AllocSetContextCreate(CurrentMemoryContext, "gpusort: a node's estimate", ALLOCSET_SMALL_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	GpuSortShardConnection *connection;
	const char *why_not;
	double rows = -1;
	char *text;

	connection = gpusort_shard_connect_to_node(&node, &why_not);
	if (connection != NULL &&
		gpusort_shard_ask(connection, psprintf("EXPLAIN (FORMAT json) %s", task->sql), &text, 1, &why_not))
		rows = explained_rows(text);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
	return rows;
}

/* So many estimates a session remembers, and each for so many statements, for a connection takes milliseconds. */
#define REMEMBERED      64
#define REMEMBERED_USES 100

typedef struct RememberedRows
{
	uint64 task; /* a hash of its text */
	double rows;
	int uses; /* that are left */
} RememberedRows;

/* Returns how many rows a task gives, as its node estimates them, or has a while ago; -1: it does not say. */
static double
estimated_rows(const GpuSortCitusTask *task)
{
	static RememberedRows remembered[REMEMBERED];
	const uint64 hash = hash_bytes_extended((const unsigned char *) task->sql, strlen(task->sql), GetUserId());
	RememberedRows *last = &remembered[hash % REMEMBERED];

	if (last->task != hash || last->uses <= 0)
	{
		last->uses = 0;
		last->rows = ask_for_rows(task);
		last->task = hash;
		last->uses = last->rows < 0 ? 1 : REMEMBERED_USES;
	}
	last->uses--;
	return last->rows;
}

/*
 * How many times the time of a connection the rows take in one process that are worth more connections, as in
 * shard_scans.c.
 */
#define WORTH_CONNECTIONS 10

/* Returns true if reading so many rows takes so long that more connections pay. */
static bool
is_worth_connections(const RelOptInfo *rel, double rows)
{
	return gpusort_force ||
		gpusort_fetch_time(rows, rel->reltarget->width) >
		WORTH_CONNECTIONS * gpusort_constant(GPUSORT_TIME_CONNECTION, false);
}

/* --- paths ------------------------------------------------------------------------------------ */

/* Returns true if what is done with the rows of all tasks may take long: not if they are only passed on. */
static bool
uses_rows(const Query *query)
{
	return query->sortClause != NIL || query->groupClause != NIL || query->groupingSets != NIL ||
		query->distinctClause != NIL || query->hasAggs || query->hasWindowFuncs;
}

/* Returns the hazard of a query without its only table, a function that stands for the rows of all tasks. */
static char
hazard_of(const PlannerInfo *root, const RelOptInfo *rel)
{
	Query *query = copyObject(root->parse);

	list_nth_node(RangeTblEntry, query->rtable, rel->relid - 1)->functions = NIL;
	return max_parallel_hazard(query);
}

/* Returns true if all columns of the tasks' rows may come in binary form. */
static bool
may_columns_come(const CustomScan *citus)
{
	ListCell *cell;

	foreach(cell, citus->custom_scan_tlist)
	{
		if (!gpusort_may_receive(exprType((Node *) lfirst_node(TargetEntry, cell)->expr)))
			return false;
	}
	return citus->custom_scan_tlist != NIL;
}

/* Returns true if the statement may have connections of its own to Citus's nodes, and processes for them. */
static bool
may_have_connections(PlannerInfo *root, const RelOptInfo *rel)
{
	return gpusort_shard_connections > 1 && max_parallel_workers_per_gather > 0 && IsUnderPostmaster &&
		!IsParallelWorker() && gpusort_statement_has_workers() && !gpusort_statement_leaves_shards() &&
		root->parent_root == NULL && root->parse->commandType == CMD_SELECT && root->parse->rowMarks == NIL &&
		bms_membership(root->all_baserels) == BMS_SINGLETON && uses_rows(root->parse) &&
		gpusort_tasks_why_not_read() == NULL && gpusort_citus_why_not_connect() == NULL;
}

/* Sets what is known of the rows of all tasks. */
static void
set_rows(RelOptInfo *rel, double rows)
{
	Path *citus = linitial(rel->pathlist);

	rel->rows = citus->rows = rows;
	citus->total_cost =
		gpusort_fetch_time(rows, rel->reltarget->width) / gpusort_constant(GPUSORT_TIME_COST, false);
	/* Citus keeps all rows before it gives one out */
	citus->startup_cost = citus->total_cost;
}

/* Adds the partial path of a rel that is the rows of these tasks. */
static void
add_task_scan(RelOptInfo *rel, List *tasks, const CustomScan *citus, int workers)
{
	const Path *whole = linitial(rel->pathlist);
	TaskScanPath *scan = (TaskScanPath *) newNode(sizeof(TaskScanPath), T_CustomPath);
	Path *path = &scan->path.path;

	path->pathtype = T_CustomScan;
	path->parent = rel;
	path->pathtarget = rel->reltarget;
	path->parallel_aware = true;
	path->parallel_safe = true;
	path->parallel_workers = workers;
	path->rows = clamp_row_est(whole->rows / gpusort_plan_processes(workers));
	scan->path.flags = CUSTOMPATH_SUPPORT_PROJECTION;
	scan->path.methods = &path_methods;
	scan->tasks = tasks;
	scan->citus = citus;
	path->startup_cost =
		gpusort_force ? 0 : gpusort_constant(GPUSORT_TIME_CONNECTION, false) / gpusort_constant(GPUSORT_TIME_COST, false);
	path->total_cost = path->startup_cost + whole->total_cost * gpusort_task_scan_rows(path) / whole->rows;
	add_partial_path(rel, path);
}

/*
 * Adds a partial path to a rel that is the rows of several of Citus's tasks, if the query may be planned for several
 * processes, and these rows pay.  A node is asked for how many there are, but where a LIMIT tells enough.
 */
void
gpusort_task_scans_add(PlannerInfo *root, RelOptInfo *rel)
{
	const int workers = Min(max_parallel_workers_per_gather, gpusort_shard_connections - 1);
	const CustomScan *citus;
	List *tasks;
	double rows;
	char hazard;

	if (rel->rtekind != RTE_FUNCTION || !may_have_connections(root, rel))
		return;
	citus = gpusort_citus_scan(root, rel);
	if (citus == NULL || !may_columns_come(citus))
		return;
	hazard = hazard_of(root, rel);
	if (hazard == PROPARALLEL_UNSAFE)
		return;
	tasks = gpusort_citus_tasks(citus);
	if (list_length(tasks) < 2 ||
		(root->limit_tuples >= 0 && !is_worth_connections(rel, root->limit_tuples * list_length(tasks))))
		return;
	rows = estimated_rows(linitial(tasks)) * list_length(tasks);
	if (rows < 0 || !is_worth_connections(rel, rows))
		return;
	root->glob->maxParallelHazard = hazard;
	if (!is_parallel_safe(root, (Node *) rel->reltarget->exprs))
		return;
	root->glob->parallelModeOK = true;
	rel->consider_parallel = true;
	set_rows(rel, clamp_row_est(rows));
	add_task_scan(rel, tasks, citus, workers);
}

/* Returns true if a path is one of this file. */
bool
gpusort_path_is_task_scan(const Path *path)
{
	if (IsA(path, ProjectionPath) && ((const ProjectionPath *) path)->dummypp)
		path = ((const ProjectionPath *) path)->subpath;
	return IsA(path, CustomPath) && ((const CustomPath *) path)->methods == &path_methods;
}

/* Returns how many rows the process reads that reads most of them: there may be fewer tasks than processes. */
double
gpusort_task_scan_rows(const Path *path)
{
	const CustomPath *custom;
	double processes = gpusort_plan_processes(path->parallel_workers);
	double tasks;

	if (IsA(path, ProjectionPath))
		path = ((const ProjectionPath *) path)->subpath;
	custom = (const CustomPath *) path;
	tasks = list_length(((const TaskScanPath *) custom)->tasks);
	return path->rows * processes / Min(processes, tasks);
}
