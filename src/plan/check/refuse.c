/*-------------------------------------------------------------------------
 *
 * refuse.c
 *	  The error about a finished plan that breaks a rule.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/check/rules.h"

#include "nodes/print.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"

/* Raises the error; format tells what is wrong, with the plan node for its subject. */
void
gpusort_refuse_plan(const Plan *plan, const char *format, ...)
{
	char what[256];
	va_list args;

	va_start(args, format);
	(void) vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	elog_node_display(DEBUG1, "broken plan", plan, Debug_pretty_print);
	ereport(ERROR, errcode(ERRCODE_INTERNAL_ERROR),
			errmsg("the finished plan is broken: plan node %d %s", plan->plan_node_id, what));
}
