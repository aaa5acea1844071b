/*-------------------------------------------------------------------------
 *
 * insert_select.c
 *	  Lets PostgreSQL plan the SELECT of an INSERT for several processes.
 *
 * PostgreSQL makes parallel plans for SELECT alone, since a statement that writes must not run in parallel mode, and it
 * decides so once, for the whole statement: PlannerGlobal.parallelModeOK.  An INSERT whose GpuSorts start their workers
 * themselves, and end them before a row is inserted, may have them.  So while its SELECT is planned,
 * which is a query of its own in FROM, the statement may have parallel plans:
 *
 *	  from	the first table that is looked at for the SELECT, or for what is in it
 *	  to	the end of the SELECT's own planning, when all of its paths are there
 *
 * What the INSERT itself computes is planned outside of that: defaults, RETURNING, ON CONFLICT, views' checks.  What
 * the SELECT may have done by workers its own hazard tells, as that of a statement would.
 *
 * planner.c keeps the plan if all its workers are GpuSorts' own (finish/own_workers.h), and has PostgreSQL run it
 * without parallel mode.
 *
 * BY PAGES.  Where nobody else sees the table, and nothing hangs on it (facts/new_table.h), all processes put the rows
 * into its pages.  Then a GpuSortExchange is right below the ModifyTable, with all that the INSERT computes below it.
 * As pages are written past the buffers, nothing in the statement may read the table: it is named once, and functions
 * that are not PostgreSQL's own are called only if they are immutable, and thus read no tables.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/insert_select.h"

#include "access/table.h"
#include "access/transam.h"
#include "catalog/pg_proc.h"
#include "facts/new_table.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/pathnode.h"
#include "optimizer/plancat.h"
#include "parser/parsetree.h"
#include "plan/statement.h"
#include "settings.h"
#include "utils/lsyscache.h"

static TableHook previous_table_hook = NULL;

/* What is looked for in an INSERT. */
typedef struct TableReads
{
	Oid table;
	int named; /* so often the table is */
} TableReads;

/* A check_function_callback */
static bool
may_read_tables(Oid function, void *arg)
{
	/* what an aggregate calls is not looked at */
	return function >= FirstNormalObjectId &&
		(func_volatile(function) != PROVOLATILE_IMMUTABLE || get_func_prokind(function) == PROKIND_AGGREGATE);
}

/* The walker: returns true if something in a query may read tables that it does not name; counts the table's names. */
static bool
find_reads(Node *node, void *arg)
{
	TableReads *reads = arg;

	if (node == NULL)
		return false;
	if (IsA(node, RangeTblEntry))
	{
		const RangeTblEntry *rte = (const RangeTblEntry *) node;

		reads->named += rte->relid == reads->table;
		return rte->tablesample != NULL;
	}
	if (check_functions_in_node(node, may_read_tables, NULL))
		return true;
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, find_reads, reads, QTW_EXAMINE_RTES_BEFORE);
	return expression_tree_walker(node, find_reads, reads);
}

/* Returns true if all processes may put the rows of a query that is planned into pages of a table. */
bool
gpusort_insert_fills_pages(const Query *query, const GpuSortStatement *statement)
{
	TableReads reads = {0};
	Relation table;
	bool may;

	if (query->commandType != CMD_INSERT || !statement->rescannable || !gpusort_parallel_output || !query->canSetTag ||
		query->returningList != NIL || query->onConflict != NULL || query->withCheckOptions != NIL)
		return false;
	reads.table = rt_fetch(query->resultRelation, query->rtable)->relid;
	table = table_open(reads.table, NoLock);
	may = gpusort_why_not_inserted_by_pages(table) == NULL;
	table_close(table, NoLock);
	return may && !find_reads((Node *) query, &reads) && reads.named == 1;
}

/*
 * Returns the query in the FROM of an INSERT that a query is, or is part of; NULL: there is none.  What expressions of
 * the INSERT read is planned before it has relations.
 */
static const PlannerInfo *
select_around(const PlannerInfo *root)
{
	const PlannerInfo *parent = root->parent_root;

	while (parent != NULL && parent->parent_root != NULL)
	{
		root = parent;
		parent = root->parent_root;
	}
	return parent != NULL && parent->parse->commandType == CMD_INSERT && parent->simple_rel_array != NULL ? root : NULL;
}

static void
look_at_table(TABLE_HOOK_PARAMETERS)
{
	const char hazard = gpusort_statement_select_hazard();

	if (previous_table_hook != NULL)
		previous_table_hook(TABLE_HOOK_ARGUMENTS);
	if (hazard == 0 || root->glob->parallelModeOK || select_around(root) == NULL)
		return;
	root->glob->maxParallelHazard = hazard;
	root->glob->parallelModeOK = true;
}

/* To be called when a query has all of its paths: if it is the SELECT of an INSERT, what follows is of one process. */
void
gpusort_insert_select_end(const PlannerInfo *root)
{
	if (gpusort_statement_select_hazard() != 0 && select_around(root) == root)
		root->glob->parallelModeOK = false;
}

/* Installs the hook; to be called once, at load. */
void
gpusort_insert_select_init(void)
{
	previous_table_hook = TABLE_HOOK;
	TABLE_HOOK = look_at_table;
}
