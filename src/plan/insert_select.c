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
 *-------------------------------------------------------------------------
 */
#include "plan/insert_select.h"

#include "optimizer/pathnode.h"
#include "optimizer/plancat.h"
#include "plan/statement.h"

static TableHook previous_table_hook = NULL;

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
