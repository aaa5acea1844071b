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
 * Returns why what is above a sort must not run by ranges, in all processes: a fallback could not read the rows again,
 * or a cursor could not go backward.  NULL: it may.
 */
const char *
gpusort_statement_why_alone(void)
{
	if (!current.rescannable)
		return "the query does not give the same rows when it is read again";
	if (current.scrollable)
		return "the cursor can scroll";
	return gpusort_parallel_output ? NULL : "gpusort.parallel_output is off";
}
