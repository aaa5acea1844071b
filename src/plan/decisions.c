/*-------------------------------------------------------------------------
 *
 * decisions.c
 *	  Why the sorts of a statement are done as they are.
 *
 * A decision is a DefElem: what is said of a plan node, with the node's number and the reason.
 *
 * The backend that plans keeps those of its last plans, while gpusort.log_decisions is on or auto_explain logs them,
 * and those of a command that asks for them: EXPLAIN (GPUSORT), gpusort_explain(), gpusort_advise().  A plan is known
 * again by its nodes and their costs, for plans that are cached are copies.  Nothing is decided again to explain a
 * plan: of others no reason is known.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/decisions.h"

#include "access/transam.h"
#include "access/xact.h"
#include "common/hashfn.h"
#include "nodes/makefuncs.h"
#include "nodes/value.h"
#include "plan/finish/plan_tree.h"
#include "settings.h"
#include "utils/guc.h"
#include "utils/memutils.h"

/* The decisions of so many plans are kept. */
#define KEPT_PLANS 32

/* A plan whose decisions are kept. */
typedef struct KeptPlan
{
	uint64 signature;
	MemoryContext context; /* of list; NULL: nothing is kept here yet */
	List *list;
} KeptPlan;

static KeptPlan kept_plans[KEPT_PLANS];
static int kept_count = 0;       /* of all times */
static TimestampTz asked_at = 0; /* when the command began that asks for the reasons of what it plans */

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
				(errmsg("gpusort: only one process does the work above a sort: %s", why_not)));
}

/* The reasons of the statements that the current command plans from here on are kept. */
void
gpusort_decisions_ask(void)
{
	asked_at = GetCurrentStatementStartTimestamp();
}

/* Returns true if auto_explain, which asks when a statement has run, may log it with the option of EXPLAIN. */
static bool
auto_explain_asks(void)
{
#ifdef HAVE_EXPLAIN_OPTIONS
	const char *options = GetConfigOption("auto_explain.log_extension_options", true, false);

	return options != NULL && strstr(options, "gpusort") != NULL;
#else
	return false;
#endif
}

/*
 * Returns true if the log is to have the reasons of a plan.  It has none of what reads the system's catalogs alone, as
 * psql's commands do, which nobody asks about.
 */
bool
gpusort_decisions_are_logged(const PlannedStmt *stmt)
{
	bool reads = false;
	ListCell *cell;

	if (!gpusort_log_decisions)
		return false;
	foreach(cell, stmt->rtable)
	{
		const RangeTblEntry *rte = lfirst_node(RangeTblEntry, cell);

		if (rte->rtekind == RTE_RELATION && rte->relid >= FirstNormalObjectId)
			return true;
		reads |= rte->rtekind == RTE_RELATION;
	}
	return !reads;
}

/* Returns true if the reasons of a statement that is planned now are kept. */
bool
gpusort_decisions_are_kept(void)
{
	return gpusort_log_decisions || asked_at == GetCurrentStatementStartTimestamp() || auto_explain_asks();
}

/* A GpuSortPlanCallback: adds a node to a signature, arg. */
static void
add_node(Plan **link, void *arg)
{
	const Plan *plan = *link;
	const double node[] = {plan->type, plan->plan_node_id, plan->startup_cost, plan->total_cost, plan->plan_rows};

	*(uint64 *) arg = hash_bytes_extended((const unsigned char *) node, sizeof(node), *(uint64 *) arg);
	gpusort_plan_each_child(*link, add_node, arg);
}

static uint64
signature_of(PlannedStmt *stmt)
{
	uint64 signature = 0;

	gpusort_plan_each_of_statement(stmt, add_node, &signature);
	return signature;
}

/* Keeps a copy of the decisions of a plan that is finished. */
void
gpusort_decisions_keep(PlannedStmt *stmt, List *list)
{
	KeptPlan *kept = &kept_plans[kept_count % KEPT_PLANS];
	MemoryContext before;

	if (kept->context == NULL)
		kept->context = AllocSetContextCreate(TopMemoryContext, "gpusort decisions", ALLOCSET_SMALL_SIZES);
	kept->list = NIL;
	MemoryContextReset(kept->context);
	before = MemoryContextSwitchTo(kept->context);
	kept->list = copyObject(list);
	MemoryContextSwitchTo(before);
	kept->signature = signature_of(stmt);
	kept_count = kept_count + 1 < 2 * KEPT_PLANS ? kept_count + 1 : KEPT_PLANS;
}

/* Returns the decisions about a plan as they were when it was made; NIL if they were not kept. */
List *
gpusort_decisions_of_plan(PlannedStmt *stmt)
{
	const uint64 signature = signature_of(stmt);

	for (int i = kept_count - 1; i >= Max(kept_count - KEPT_PLANS, 0); i--)
	{
		if (kept_plans[i % KEPT_PLANS].signature == signature)
			return kept_plans[i % KEPT_PLANS].list;
	}
	return NIL;
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
