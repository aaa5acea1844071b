/*-------------------------------------------------------------------------
 *
 * estimate.c
 *	  How long a statement takes by the model, and what gpusort saves of it.
 *
 * Of the statement that gpusort_estimate_plan plans;
 * what puts GpuSort into plans (offers.c, sort_nodes.c) adds what it knows.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/estimate.h"

#include "tcop/tcopprot.h"
#include "utils/guc.h"

static GpuSortEstimate *current = NULL; /* NULL: nobody asks */

/* Plans a query as with gpusort.enable = on, and says how long it takes.  Errors: those of planning. */
PlannedStmt *
gpusort_estimate_plan(Query *query, const char *text, GpuSortEstimate *estimate)
{
	int level = NewGUCNestLevel();
	PlannedStmt *volatile stmt = NULL;

	*estimate = (GpuSortEstimate){0};
	(void) set_config_option("gpusort.enable", "on", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	current = estimate;
	PG_TRY();
	{
		stmt = PG_PLAN_QUERY(copyObject(query), text, CURSOR_OPT_PARALLEL_OK);
	}
	PG_FINALLY();
	{
		current = NULL;
	}
	PG_END_TRY();
	AtEOXact_GUC(true, level);
	return stmt;
}

/* Returns true if somebody asks: what is added takes time to find out. */
bool
gpusort_estimate_is_wanted(void)
{
	return current != NULL;
}

/* Adds nanoseconds of a part of the statement: what it takes without gpusort, and what is saved of that. */
void
gpusort_estimate_add(double native, double saved)
{
	if (current == NULL)
		return;
	current->native += native;
	current->saved += saved;
}
