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

/* What is said of a plan node, before the reason. */
#define GPUSORT_NOT_USED    "not used"
#define GPUSORT_ONE_PROCESS "only one process does this"

/* The reason of a Sort between GpuSortOutput and the GpuSorts below it. */
#define GPUSORT_WHY_SORTED_BY_RANGE "each process sorts the rows of one range after another"

/* Of one statement; where a pointer to it is NULL nobody asks for reasons, and none are made. */
typedef struct GpuSortDecisions
{
	bool log;  /* they go to the server's log, those that somebody may wonder about */
	bool keep; /* all of them go to list */
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
