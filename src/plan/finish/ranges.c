/*-------------------------------------------------------------------------
 *
 * ranges.c
 *	  Tells nodes of finished plans by which columns processes share rows.
 *
 * A GpuSortOutput runs the plan below it for ranges of sorted rows.  Paths have decided that (offer/exchange_paths.c,
 * offer/ranges_path.c).  Here it gets the number of its Gather's parameter for rescans, and the GpuSorts below it how
 * many of their first columns part ranges, and whose keys these have, as range_plan.c finds in the plan.
 *
 * An aggregate of all rows that is put together from those of ranges gets its two Aggs here (combine.c): below
 * GpuSortOutput stands a node for that of each range.
 *
 * Should range_plan.c find that a plan cannot run range by range, though its path could, the GpuSorts get no such
 * column, and at run time one process does it all.  Builds that check plans raise an error.
 *
 * Where one process runs what is above a sort whose rows several take in, the reason is told here.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/finish/ranges.h"

#include "node.h"
#include "nodes/bitmapset.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "plan/finish/combine.h"
#include "plan/finish/plan_tree.h"
#include "plan/finish/range_plan.h"
#include "plan/offer/paths.h"

static const char *const why_alone[] = {
	[GPUSORT_ALONE_NO_PATH] = "the sort is in the finished plan alone, where no more is decided than who sorts",
	[GPUSORT_ALONE_REREAD] = "the query does not give the same rows when it is read again",
	[GPUSORT_ALONE_SCROLL] = "the cursor can scroll",
	[GPUSORT_ALONE_SETTING] = "gpusort.parallel_output is off",
	[GPUSORT_ALONE_REPEATED] = "a nested loop reads it for each row",
	[GPUSORT_ALONE_LIMIT] = "a LIMIT may want its first rows alone, and all would be read before",
	[GPUSORT_ALONE_MARKED] = "a merge join goes back in it",
	[GPUSORT_ALONE_TIME] = "several would take longer, for the rows that come of it have to be passed on",
};

/*
 * Tells the GpuSorts below a GpuSortOutput which ranges there are, and it what it has to know of them: by the plan
 * below it that runs range by range.
 */
static void
settle(GpuSortFinish *finish, CustomScan *output, const Plan *plan, GpuSortOutputInfo info)
{
	GpuSortSafety *safety = &finish->safety;
	GpuSortRangePlan ranges;
	ListCell *cell;

	if (info.rescan_param < 0)
		elog(ERROR, "there is no Gather above GpuSortOutput");
	if (gpusort_range_plan_find(plan, info.partial, safety, &ranges) && (ranges.nodes > 0 || info.only_formed))
	{
		info.window = ranges.window != NULL ? ranges.window->plan.plan_node_id : -1;
		info.partition_columns = ranges.partition_columns;
	}
	else
	{
		elog(GPUSORT_BROKEN_PLAN, "gpusort: rows below GpuSortOutput cannot be shared out: %s",
			 safety->why_not != NULL ? safety->why_not : "the plan is of an unknown kind");
		ranges.sorts = NIL;
	}
	output->custom_private = gpusort_output_plan_pack(&info);
	foreach(cell, ranges.sorts)
	{
		gpusort_plan_set_range_columns(lfirst_node(CustomScan, cell), ranges.ncolumns,
									   gpusort_range_key_types(&ranges));
		/* The leader reads all rows again by starting Gather over, in a partial plan nobody can. */
		gpusort_plan_set_rescannable(lfirst_node(CustomScan, cell), finish->rescannable && !info.partial);
	}
}

/* Settles a GpuSortOutput of a partial path.  To be called when all else below it is settled. */
void
gpusort_ranges_settle_partial(const GpuSortPlanPlace *place, CustomScan *output)
{
	gpusort_plan_refer_to_child(output);
	settle(place->finish, output, outerPlan(output),
		   (GpuSortOutputInfo){.rescan_param = place->rescan_param, .partial = true, .window = -1});
}

/*
 * Returns the place of the plan whose rows a part of an aggregate reads, below the GpuSortExchange that the aggregate
 * reads; NULL: there is none.
 */
Plan **
gpusort_ranges_part_below(Plan *plan)
{
	Plan *output;

	if (!gpusort_plan_is(plan, &gpusort_exchange_scan_methods))
		return NULL;
	output = outerPlan(outerPlan(plan));
	return gpusort_plan_is(outerPlan(output), &gpusort_groups_scan_methods) ? &outerPlan(outerPlan(output)) : NULL;
}

/* Gives a node that passes the rows of the plan below it on all columns of these. */
static void
pass_all_columns(Plan *plan)
{
	plan->targetlist = gpusort_plan_columns(outerPlan(plan), list_length(outerPlan(plan)->targetlist));
	if (IsA(plan, CustomScan))
		gpusort_plan_refer_to_child((CustomScan *) plan);
}

/* Makes a node depend on parameters, too. */
static void
add_params(Plan *plan, const Bitmapset *params)
{
	plan->extParam = bms_union(plan->extParam, params);
	plan->allParam = bms_union(plan->allParam, params);
}

/*
 * Puts a plan into the place below an aggregate's GpuSortExchange where its part is to be.  All nodes in between pass
 * its rows on, and depend on what it does.  by_ranges is what runs range by range of it.
 */
void
gpusort_ranges_put_part(GpuSortFinish *finish, Agg *agg, Plan *part, const Plan *by_ranges)
{
	Plan *exchange = outerPlan(agg);
	Gather *gather = (Gather *) outerPlan(exchange);
	Plan *output = outerPlan(gather);
	Bitmapset *outside = bms_del_member(bms_copy(part->extParam), gather->rescan_param);

	outerPlan(output) = part;
	pass_all_columns(output);
	pass_all_columns(&gather->plan);
	pass_all_columns(exchange);
	add_params(output, part->extParam);
	add_params(&gather->plan, outside);
	add_params(exchange, outside);
	gather->initParam = bms_union(gather->initParam, bms_intersect(outside, finish->safety.known_params));
	settle(finish, (CustomScan *) output, by_ranges,
		   (GpuSortOutputInfo){.rescan_param = gather->rescan_param, .window = -1});
}

/* Returns true if a subquery's scan gives some of its columns, as they are. */
static bool
picks_columns(const SubqueryScan *scan)
{
	ListCell *cell;

	foreach(cell, scan->scan.plan.targetlist)
	{
		const Var *var = (const Var *) lfirst_node(TargetEntry, cell)->expr;

		if (!IsA(var, Var) || var->varno != scan->scan.scanrelid || var->varattno <= 0)
			return false;
	}
	return scan->scan.plan.qual == NIL && scan->scan.plan.initPlan == NIL;
}

/* The expression with columns of a subquery's plan in the place of those of its scan. */
static Node *
pick_mutator(Node *node, void *arg)
{
	const SubqueryScan *scan = arg;
	Var *var;

	if (node == NULL)
		return NULL;
	if (!IsA(node, Var))
		return expression_tree_mutator(node, pick_mutator, arg);
	var = copyObject((Var *) node);
	var->varattno =
		((const Var *) list_nth_node(TargetEntry, scan->scan.plan.targetlist, var->varattno - 1)->expr)->varattno;
	return (Node *) var;
}

/* Makes a part of an aggregate read the rows of a plan: of a subquery that only picks columns its own. */
static void
read_rows(Agg *part, Plan *rows)
{
	if (IsA(rows, SubqueryScan) && picks_columns((SubqueryScan *) rows))
	{
		part->plan.targetlist = (List *) pick_mutator((Node *) part->plan.targetlist, rows);
		rows = ((SubqueryScan *) rows)->subplan;
	}
	outerPlan(part) = rows;
	add_params(&part->plan, rows->extParam);
}

/* Makes the part of an aggregate that each range has, where that is to be and has not been made yet, if it can be. */
void
gpusort_ranges_settle_aggregate(GpuSortFinish *finish, Agg *agg)
{
	Plan **below = gpusort_ranges_part_below(outerPlan(agg));
	Agg *part;

	if (below == NULL)
		return;
	if (!gpusort_combine_may(agg))
	{
		/* A window that tells the aggregate which rows to see (presorted.c) */
		gpusort_ranges_put_part(finish, agg, *below, *below);
		return;
	}
	part = gpusort_combine_split(agg, gpusort_finish_node_id(finish));
	read_rows(part, *below);
	part->plan.parallel_safe = true;
	gpusort_ranges_put_part(finish, agg, &part->plan, outerPlan(part));
}

/* Settles a GpuSortExchange.  To be called when all else below it is settled. */
void
gpusort_ranges_settle_exchange(GpuSortFinish *finish, CustomScan *exchange)
{
	Gather *gather = (Gather *) outerPlan(exchange);
	CustomScan *output = (CustomScan *) outerPlan(gather);
	GpuSortOutputInfo info;
	const Plan *plan;
	ListCell *cell;

	if (gpusort_plan_is(outerPlan(output), &gpusort_groups_scan_methods))
		return; /* the aggregate above is to make its part first */
	gpusort_plan_refer_to_child(output);
	foreach(cell, gather->plan.targetlist)
	{
		TargetEntry *entry = lfirst_node(TargetEntry, cell);

		entry->expr = (Expr *) makeVarFromTargetEntry(
			OUTER_VAR, list_nth_node(TargetEntry, output->scan.plan.targetlist, entry->resno - 1));
	}
	gpusort_plan_refer_to_child(exchange);
	plan = outerPlan(output);
	if (IsA(plan, Limit))
		plan = outerPlan(outerPlan(plan)); /* the first rows of each range, by another order */
	info = gpusort_output_plan_unpack(output);
	info.rescan_param = gather->rescan_param;
	settle(finish, output, plan, info);
}

/* The GpuSortPlanCallback of the next function. */
static void
tell_of_sort(Plan **link, void *arg)
{
	const GpuSortPlanPlace *above = arg;
	GpuSortFinish *finish = above->finish;
	GpuSortRangePlan ranges;
	GpuSortPlanInfo info;

	if (!gpusort_is_gathered_sort(*link))
		return;
	if (gpusort_range_plan_find(above->above, false, &finish->safety, &ranges) && ranges.nodes > 0)
	{
		gpusort_plan_unpack((CustomScan *) *link, &info);
		gpusort_decide_alone(finish->decisions, above->above, why_alone[info.alone]);
	}
	else if (finish->safety.why_not != NULL)
		gpusort_decide_alone(finish->decisions, above->above, finish->safety.why_not);
}

/* Tells why one process runs a plan that is right above a sort whose rows several take in, if anybody wants to know. */
void
gpusort_ranges_tell_alone(const GpuSortPlanPlace *place, const Plan *plan)
{
	GpuSortPlanPlace here = *place;

	here.above = plan;
	if (place->finish->decisions != NULL)
		gpusort_plan_each_child((Plan *) plan, tell_of_sort, &here);
}
