/*-------------------------------------------------------------------------
 *
 * decisions.c
 *	  Why the sorts of a statement are done as they are.
 *
 * A decision is a DefElem: what is said of a plan node, with the node's number and the reason.
 * So a list of them can be kept with a plan, and copied as plans are.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/decisions.h"

#include "nodes/makefuncs.h"
#include "nodes/value.h"

static void
keep(GpuSortDecisions *decisions, const Plan *plan, const char *what, const char *why_not)
{
	if (decisions->keep)
		decisions->list = lappend(
			decisions->list,
			makeDefElem(pstrdup(what),
						(Node *) list_make2(makeInteger(plan->plan_node_id), makeString(pstrdup(why_not))), -1));
}

/* A Sort of a finished plan stays PostgreSQL's.  To be called once for each; paths that are refused are not told of. */
void
gpusort_decide_refused(GpuSortDecisions *decisions, const Plan *sort, const char *why_not)
{
	if (decisions == NULL)
		return;
	keep(decisions, sort, GPUSORT_NOT_USED, why_not);
	if (decisions->log)
		ereport(LOG,
				(errmsg("gpusort: not used: %s", why_not)));
}

/* The same of what gpusort never touches, which the log does not tell. */
void
gpusort_decide_left(GpuSortDecisions *decisions, const Plan *sort, const char *why_not)
{
	if (decisions != NULL)
		keep(decisions, sort, GPUSORT_NOT_USED, why_not);
}

/* One process does what is above a GpuSort. */
void
gpusort_decide_alone(GpuSortDecisions *decisions, const Plan *above, const char *why_not)
{
	if (decisions == NULL)
		return;
	keep(decisions, above, GPUSORT_ONE_PROCESS, why_not);
	if (decisions->log)
		ereport(LOG,
				(errmsg("gpusort: one process does what is above a sort: %s", why_not)));
}

/* Returns what a list of decisions says of a node, as palloc'd strings, each once. */
List *
gpusort_decisions_of_node(List *list, int plan_node_id)
{
	List *texts = NIL;
	ListCell *cell;

	foreach(cell, list)
	{
		const DefElem *decision = lfirst_node(DefElem, cell);
		List *values = (List *) decision->arg;

		if (intVal(linitial(values)) == plan_node_id)
			texts =
				list_append_unique(texts, makeString(psprintf("%s: %s", decision->defname, strVal(lsecond(values)))));
	}
	foreach(cell, texts)
		lfirst(cell) = strVal(lfirst(cell));
	return texts;
}
