/*-------------------------------------------------------------------------
 *
 * statement.c
 *	  What is known of the statement that is being planned.
 *
 * Planning a statement can plan another one, when it computes a constant: planner.c begins and ends each.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/statement.h"

#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "settings.h"

static GpuSortStatement current;

/* Returns what is known of a statement that is not planned yet: planning changes the query. */
GpuSortStatement
gpusort_statement_of(const Query *query, int cursor_options)
{
	return (GpuSortStatement){
		.rescannable = !query->hasModifyingCTE && !contain_volatile_functions((Node *) query),
		.scrollable = (cursor_options & CURSOR_OPT_SCROLL) != 0,
	};
}

/* Begins to plan a statement.  Returns what was known of the one before it, for gpusort_statement_end. */
GpuSortStatement
gpusort_statement_begin(const GpuSortStatement *statement)
{
	const GpuSortStatement before = current;

	current = *statement;
	return before;
}

/* To be called whatever happens. */
void
gpusort_statement_end(const GpuSortStatement *before)
{
	current = *before;
}

/*
 * Returns true if what is above a sort may run by ranges, in all processes.  Otherwise a fallback could not read the
 * rows again, or a cursor could not go backward, and *why_not says which.
 */
bool
gpusort_statement_may_run_by_ranges(GpuSortAlone *why_not)
{
	if (!current.rescannable)
		*why_not = GPUSORT_ALONE_REREAD;
	else if (current.scrollable)
		*why_not = GPUSORT_ALONE_SCROLL;
	else if (!gpusort_parallel_output)
		*why_not = GPUSORT_ALONE_SETTING;
	else
		return true;
	return false;
}
