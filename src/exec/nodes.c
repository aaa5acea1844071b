/*-------------------------------------------------------------------------
 *
 * nodes.c
 *	  The GpuSort nodes below a GpuSortOutput, whose rows several processes read.
 *
 * There is one below most plans, two are below a merge join.  A GpuSortOutput does with their sorts what
 * parallel/sort_set.h tells; what it does with the nodes is here.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/nodes.h"

#include "exec/stream.h"
#include "executor/executor.h"
#include "server/reasons.h"

/*
 * Adds the GpuSorts that ps and what is below it read; all nodes between start over when this
 * parameter changes.  They are kept in the current memory context.
 */
void
gpusort_nodes_find(GpuSortNodes *nodes, PlanState *ps, int rescan_param)
{
	CustomScan *plan;

	nodes->rescan_param = rescan_param;
	if (ps == NULL)
		return;
	plan = (CustomScan *) ps->plan;
	if (!bms_is_member(rescan_param, plan->scan.plan.allParam))
		return;
	if (IsA(ps, CustomScanState) && plan->methods == &gpusort_scan_methods)
	{
		GpuSortScanState *node = (GpuSortScanState *) ps;
		Size bytes = (nodes->set.count + 1) * sizeof(GpuSortScanState *);

		if (node->parallel == NULL)
			return;
		nodes->nodes = nodes->nodes == NULL ? palloc(bytes) : repalloc(nodes->nodes, bytes);
		nodes->nodes[nodes->set.count] = node;
		gpusort_sort_set_add(&nodes->set, node->parallel);
		return;
	}
	gpusort_nodes_find(nodes, IsA(ps, SubqueryScanState) ? ((SubqueryScanState *) ps)->subplan : ps->lefttree,
					   rescan_param);
	gpusort_nodes_find(nodes, ps->righttree, rescan_param);
}

/* Begins the sorts in the service, as gpusort_sort_set_begin does, but where a row is rechecked. */
bool
gpusort_nodes_begin(GpuSortNodes *nodes, int participants, GpuSortFailure *failure)
{
	if (gpusort_plan_state(nodes->nodes[0])->state->es_epq_active != NULL)
		return gpusort_failure_set(failure, GPUSORT_REASON_RECHECK, "a row is being rechecked after a concurrent update");
	return gpusort_sort_set_begin(&nodes->set, participants, failure);
}

/* Makes the children start over where these parameters have changed. */
void
gpusort_nodes_rescan(GpuSortNodes *nodes, Bitmapset *changed)
{
	for (int i = 0; i < nodes->set.count; i++)
		UpdateChangedParamSet(gpusort_child(nodes->nodes[i]), changed);
}

/*
 * Makes plan, which is above the nodes, start over on the range that was asked for first; false, with a reason, if its
 * rows are lost.
 */
bool
gpusort_nodes_begin_range(GpuSortNodes *nodes, PlanState *plan, GpuSortFailure *failure)
{
	if (!gpusort_sort_set_begin_range(&nodes->set, failure))
		return false;
	for (int i = 0; i < nodes->set.count; i++)
		gpusort_stream_start_over(nodes->nodes[i]);
	if (nodes->started)
	{
		MemoryContext caller = MemoryContextSwitchTo(plan->state->es_query_cxt);

		plan->chgParam = bms_add_member(plan->chgParam, nodes->rescan_param);
		MemoryContextSwitchTo(caller);
	}
	nodes->started = true;
	return true;
}
