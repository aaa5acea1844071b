/*-------------------------------------------------------------------------
 *
 * plan_reasons.c
 *	  What EXPLAIN (GPUSORT) and gpusort_explain() say of a plan.
 *
 * Where reasons were kept with a plan (planner.c) these are told.  Other plans are gone through again by the rules
 * that they were planned by: what is said of them is how settings, statistics and the service are now.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/tell/plan_reasons.h"

#include "nodes/parsenodes.h"
#include "plan/decisions.h"
#include "plan/finish/lift.h"
#include "plan/finish/sort_nodes.h"
#include "server/service_state.h"
#include "settings.h"

/* Returns the decisions about a plan; none where gpusort is off. */
List *
gpusort_plan_reasons(PlannedStmt *stmt)
{
	GpuSortDecisions found = {.keep = true};
	ListCell *cell;

	if (!gpusort_settings_enabled())
		return NIL;
	foreach(cell, KEPT_WITH_PLAN(stmt))
	{
		const DefElem *kept = lfirst_node(DefElem, cell);

		if (strcmp(kept->defname, GPUSORT_KEPT_NAME) == 0)
			return (List *) kept->arg;
	}
	gpusort_sort_nodes_look(stmt, &found);
	gpusort_lift_look(stmt, &found);
	return found.list;
}

/* Returns how the service is. */
const char *
gpusort_plan_service(void)
{
	const GpuSortService service = gpusort_shared_service();
	const char *state = gpusort_service_state_name(service.state);

	if (!gpusort_settings_enabled())
		return gpusort_allowed ? "not asked, gpusort.enable is off" : "not asked, gpusort.allowed is off";
	if (service.engines & (1 << GPUSORT_ENGINE_CUDA))
		return psprintf("%s, on %u GPU%s and the host", state, service.devices, service.devices == 1 ? "" : "s");
	if (service.engines != 0)
		return psprintf("%s, on the host", state);
	return state;
}
