/*-------------------------------------------------------------------------
 *
 * decisions.h
 *	  Why the sorts of a statement are done as they are.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DECISIONS_H
#define GPUSORT_DECISIONS_H

#include "compat.h"

#include "nodes/plannodes.h"

/* What precedes the reason in messages about a plan node. */
#define GPUSORT_NOT_USED    "not used"
#define GPUSORT_ONE_PROCESS "only one process does this"

/* The reason of a Sort between GpuSortOutput and the GpuSorts below it. */
#define GPUSORT_WHY_SORTED_BY_RANGE "each process sorts the rows of one range after another"

/* The reasons for one statement.  A NULL pointer to this means that no reasons are wanted. */
typedef struct GpuSortDecisions
{
	bool log;  /* reasons that users may ask about go to the server's log */
	bool keep; /* all reasons go to list */
	List *list;
} GpuSortDecisions;

extern void gpusort_decide_refused(GpuSortDecisions *decisions, const Plan *sort, const char *why_not);
extern void gpusort_decide_left(GpuSortDecisions *decisions, const Plan *sort, const char *why_not);
extern void gpusort_decide_alone(GpuSortDecisions *decisions, const Plan *above, const char *why_not);

extern void gpusort_decisions_ask(void);
extern bool gpusort_decisions_are_logged(const PlannedStmt *stmt);
extern bool gpusort_decisions_are_kept(void);
extern void gpusort_decisions_keep(PlannedStmt *stmt, List *list);
extern List *gpusort_decisions_of_plan(PlannedStmt *stmt);
extern List *gpusort_decisions_of_node(List *list, int plan_node_id);

#endif /* GPUSORT_DECISIONS_H */
