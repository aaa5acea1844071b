/*-------------------------------------------------------------------------
 *
 * plan_reasons.c
 *	  What EXPLAIN (GPUSORT) and gpusort_explain() say of a plan.
 *
 * The reasons that were noted when it was made, if the backend has kept them (decisions.c).
 *
 *-------------------------------------------------------------------------
 */
#include "plan/tell/plan_reasons.h"

#include "plan/decisions.h"
#include "server/service_state.h"
#include "settings.h"

/* Returns the decisions about a plan; none where gpusort is off. */
List *
gpusort_plan_reasons(PlannedStmt *stmt)
{
	return gpusort_settings_enabled() ? gpusort_decisions_of_plan(stmt) : NIL;
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
