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
 * As pages are written past the buffers, nothing in the statement may read the table: it is named once, and no function
 * is called that may read tables (GpuSortStatement).
 *
 *-------------------------------------------------------------------------
 */
#include "plan/insert_select.h"

#include "access/table.h"
#include "facts/new_table.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/pathnode.h"
#include "optimizer/plancat.h"
#include "parser/parsetree.h"
#include "plan/statement.h"
#include "settings.h"
#include "utils/lsyscache.h"

static TableHook previous_table_hook = NULL;

/* How often a query names a table. */
typedef struct TableNames
{
	Oid table;
	int count;
} TableNames;

/* The walker, which goes through all of the query. */
static bool
count_names(Node *node, void *arg)
{
	TableNames *names = arg;

	if (node == NULL)
		return false;
	if (IsA(node, RangeTblEntry))
	{
		names->count += ((const RangeTblEntry *) node)->relid == names->table;
		return false;
	}
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, count_names, arg, QTW_EXAMINE_RTES_BEFORE);
	return expression_tree_walker(node, count_names, arg);
}

/* Returns true if all processes may put the rows of a query that is planned into pages of a table. */
bool
gpusort_insert_fills_pages(const Query *query, const GpuSortStatement *statement)
{
	TableNames names = {0};
	Relation table;
	bool may;

	if (query->commandType != CMD_INSERT || !statement->rescannable || statement->reads_tables ||
		!gpusort_parallel_output || !query->canSetTag ||
		query->returningList != NIL || query->onConflict != NULL || query->withCheckOptions != NIL)
		return false;
	names.table = rt_fetch(query->resultRelation, query->rtable)->relid;
	table = table_open(names.table, NoLock);
	may = gpusort_why_not_inserted_by_pages(table) == NULL;
	table_close(table, NoLock);
	if (may)
		(void) count_names((Node *) query, &names);
	return may && names.count == 1;
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
