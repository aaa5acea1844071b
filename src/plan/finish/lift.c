/*-------------------------------------------------------------------------
 *
 * lift.c
 *	  Has parallel processes run what is above a sort, too.
 *
 * Where a finished plan may run range by range of its sorted rows (range_plan.c says so), the Gather below
 * the sort is lifted above that plan:
 *
 *	  WindowAgg					GpuSortExchange
 *	    GpuSort			->		  Gather
 *	      Gather				    GpuSortOutput
 *	        GpuSortIngest		      WindowAgg
 *	          partial plan			    GpuSort
 *									      partial plan
 *
 * It is lifted over as many nodes as the path of the GpuSort said (offer/path_time.c), not counting those that pass
 * rows on or project them.  What is above a GpuSort that took the place of a Sort in the finished plan, of which no
 * path knew, stays with one process.
 *
 * Of the Gathers below a merge join the first stays, with as many workers as any of them had.  A second
 * window's sort is PostgreSQL's again, one in each process, of the rows of a range.
 *
 * An aggregate of all rows, over what may run range by range, is lifted in part where its aggregates can be
 * combined: processes aggregate the rows of each range, and one puts these together (combine.c).  So is a LIMIT of few
 * rows over a sort by something else: processes pass the first rows of each range on, by that order.
 *
 * What comes with it:
 *
 *	  - The plans below GpuSortOutput start over for each range by way of the Gather's rescan_param, as
 *		they do for a rescan: so all of them down to the GpuSorts have it among their parameters.
 *	  - InitPlans of what is lifted move to GpuSortExchange.  Gather has those run of whose values workers
 *		have need, before it starts them.
 *	  - The rows are passed on as they are, from the lifted plan up to GpuSortExchange, whose columns,
 *		number of rows and costs are those of the plan in whose place it is.
 *
 * Not lifted: a plan that gives other rows, or does something more, when it is read again, since a
 * fallback may read it again; scrollable cursors' plans, which are read backward; what a merge join goes
 * back in, by marks; what a nested loop reads again for each row, which would have the processes start
 * over, where a GpuSort goes back to its first row.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/finish/lift.h"

#include "facts/limits.h"
#include "node.h"
#include "nodes/bitmapset.h"
#include "nodes/parsenodes.h"
#include "optimizer/optimizer.h"
#include "plan/admission.h"
#include "plan/finish/combine.h"
#include "plan/finish/node_safety.h"
#include "plan/finish/plan_tree.h"
#include "plan/finish/range_plan.h"
#include "settings.h"
#include "tcop/tcopprot.h"

/* Into how many ranges rows are thought to be cut, where that has to be known before. */
#define RANGES_GUESSED 256

/* A statement whose plans are gone through. */
typedef struct Lift
{
	PlannedStmt *stmt;
	GpuSortSafety safety;
	int last_node_id; /* 0: not known yet */
	GpuSortDecisions *decisions;
} Lift;

/* Where in the plans we are. */
typedef struct LiftPlace
{
	Lift *lift;
	const Plan *above;   /* the plan right above; NULL if there is none */
	const char *why_not; /* that one was not lifted; NULL if there is nothing to say */
	bool marked;         /* the plan here has to mark and restore positions */
} LiftPlace;

/* One plan that is lifted. */
typedef struct Lifted
{
	Gather *gather;          /* the one that stays */
	int range_columns;       /* of each GpuSort */
	const Oid *key_types;    /* whose keys these have */
	double processes;        /* that share the rows, as the planner counts the leader */
	List *init_plans;        /* of all nodes down to the partial plans */
	Bitmapset *params;       /* that any of these nodes depends on */
	Bitmapset *used_params;  /* that any of these nodes reads, of those that initPlans set */
	Bitmapset *other_params; /* rescan_params of all Gathers, the one that stays aside */
	GpuSortDecisions *decisions;
} Lifted;

/* A number for a node that the plan did not have. */
static int
new_node_id(Lift *lift)
{
	if (lift->last_node_id == 0)
		lift->last_node_id = gpusort_plan_last_node_id(lift->stmt);
	return ++lift->last_node_id;
}

/* The parameters, with the rescan_param that stays in the place of others. */
static Bitmapset *
with_rescan_param(const Bitmapset *params, const Lifted *lifted)
{
	return bms_add_member(bms_difference(params, lifted->other_params), lifted->gather->rescan_param);
}

/* A partial plan that was below another Gather starts over with the one that stays. */
static void
change_rescan_param(Plan **link, void *arg)
{
	const Lifted *lifted = arg;
	Plan *plan = *link;

	if (bms_overlap(plan->allParam, lifted->other_params))
		plan->allParam = with_rescan_param(plan->allParam, lifted);
	if (bms_overlap(plan->extParam, lifted->other_params))
		plan->extParam = with_rescan_param(plan->extParam, lifted);
	gpusort_plan_each_child(plan, change_rescan_param, arg);
}

/* The parameters that a list of initPlans sets. */
static Bitmapset *
set_params(List *init_plans)
{
	Bitmapset *params = NULL;
	ListCell *cell;
	ListCell *param;

	foreach(cell, init_plans)
	{
		foreach(param, lfirst_node(SubPlan, cell)->setParam)
			params = bms_add_member(params, lfirst_int(param));
	}
	return params;
}

/* Notes a node's parameters and takes its initPlans.  The node depends no more on what these set and nobody reads. */
static void
take_params(Lifted *lifted, Plan *plan)
{
	lifted->params = bms_add_members(lifted->params, plan->allParam);
	plan->allParam =
		bms_difference(plan->allParam, bms_difference(set_params(plan->initPlan), lifted->used_params));
	lifted->init_plans = list_concat(lifted->init_plans, plan->initPlan);
	plan->initPlan = NIL;
}

/* The Sort that does what a GpuSort would, of the rows of a range in each process. */
static Plan *
make_sort(const CustomScan *scan)
{
	Sort *sort = makeNode(Sort);
	GpuSortPlanInfo info;

	gpusort_plan_unpack(scan, &info);
	sort->plan = scan->scan.plan;
	sort->plan.type = T_Sort;
	sort->plan.targetlist = list_copy(scan->custom_scan_tlist);
	sort->numCols = info.ncolumns;
	sort->sortColIdx = palloc(info.ncolumns * sizeof(AttrNumber));
	sort->sortOperators = palloc(info.ncolumns * sizeof(Oid));
	sort->collations = palloc(info.ncolumns * sizeof(Oid));
	sort->nullsFirst = palloc(info.ncolumns * sizeof(bool));
	for (int i = 0; i < info.ncolumns; i++)
	{
		sort->sortColIdx[i] = info.columns[i].attno;
		sort->sortOperators[i] = info.columns[i].sort_operator;
		sort->collations[i] = info.columns[i].collation;
		sort->nullsFirst[i] = info.columns[i].nulls_first;
	}
	return &sort->plan;
}

/* Takes Gather and GpuSortIngest out from below a GpuSort, which ingests each process's rows itself then. */
static void
share_sort(Lifted *lifted, CustomScan *scan)
{
	Plan *gather = outerPlan(scan);
	Plan *ingest = outerPlan(gather);

	take_params(lifted, gather);
	take_params(lifted, ingest);
	scan->scan.plan.lefttree = outerPlan(ingest);
	scan->scan.plan.parallel_aware = true;
	gpusort_plan_refer_to_child(scan);
	gpusort_plan_set_range_columns(scan, lifted->range_columns, lifted->key_types);
	change_rescan_param(&scan->scan.plan.lefttree, lifted);
}

static void
add_params(Plan **link, void *arg)
{
	Bitmapset **params = arg;

	*params = bms_add_members(*params, (*link)->allParam);
}

/* A plan depends on what initPlans below it set, which now stand above it, if a plan below it does. */
static void
depend_on_init_plans(const Lifted *lifted, Plan *plan)
{
	Bitmapset *params = NULL;

	gpusort_plan_each_child(plan, add_params, &params);
	params = bms_int_members(params, set_params(lifted->init_plans));
	plan->allParam = plan->extParam = bms_union(plan->allParam, params);
}

/* Makes all processes run a plan that one did, down to the partial plans. */
static void
share_plan(Plan **link, void *arg)
{
	Lifted *lifted = arg;
	Plan *plan = *link;

	take_params(lifted, plan);
	plan->allParam = plan->extParam = with_rescan_param(plan->allParam, lifted);
	plan->parallel_safe = true;
	if (gpusort_is_gathered_sort(plan))
	{
		share_sort(lifted, (CustomScan *) plan);
		depend_on_init_plans(lifted, plan);
		return;
	}
	plan->plan_rows = clamp_row_est(plan->plan_rows / lifted->processes);
	if (gpusort_plan_is(plan, &gpusort_scan_methods))
	{
		*link = make_sort((CustomScan *) plan);
		gpusort_decide_left(lifted->decisions, *link, GPUSORT_WHY_SORTED_BY_RANGE);
	}
	gpusort_plan_each_child(*link, share_plan, lifted);
	depend_on_init_plans(lifted, *link);
}

/* Fills in a node that passes the rows of child on: with its columns, costs and number of rows. */
static void
pass_rows_on(Plan *plan, Plan *child)
{
	gpusort_plan_take_estimates(plan, child);
	plan->allParam = plan->extParam = child->allParam;
	plan->lefttree = child;
	plan->targetlist = gpusort_plan_columns(child, list_length(child->targetlist));
}

static CustomScan *
make_scan(Lift *lift, Plan *child, const CustomScanMethods *methods)
{
	CustomScan *scan = makeNode(CustomScan);

	pass_rows_on(&scan->scan.plan, child);
	scan->scan.plan.plan_node_id = new_node_id(lift);
	scan->methods = methods;
	gpusort_plan_refer_to_child(scan);
	return scan;
}

/* In builds that check plans, tells the log of a sort above which other nodes run by ranges than its path said. */
static void
check_nodes(const Plan *sort, int nodes, const char *why_not)
{
#ifdef GPUSORT_CHECK_PLANS
	GpuSortPlanInfo info;

	gpusort_plan_unpack((const CustomScan *) sort, &info);
	if (info.range_nodes != nodes)
		ereport(LOG, errmsg("gpusort: %d nodes run by ranges, %d were planned to", nodes, info.range_nodes),
				why_not != NULL ? errdetail("Reason: %s.", why_not) : 0,
				debug_query_string != NULL ? errcontext("query: %.2000s", debug_query_string) : 0);
#endif
}

/* Returns GpuSortExchange over a Gather and GpuSortOutput, which run a plan in the ranges that are told. */
static Plan *
lift_plan(Lift *lift, Plan *plan, const GpuSortRangePlan *ranges)
{
	const Plan top = *plan;
	Gather *gather = (Gather *) outerPlan(linitial_node(CustomScan, ranges->sorts));
	Lifted lifted = {
		.gather = gather,
		.range_columns = ranges->ncolumns,
		.key_types = gpusort_range_key_types(ranges),
		.used_params = lift->safety.used_params,
		.decisions = lift->decisions,
	};
	GpuSortOutputInfo info = {
		.window = ranges->window != NULL ? ranges->window->plan.plan_node_id : -1,
		.partition_columns = ranges->partition_columns,
	};
	CustomScan *output;
	CustomScan *exchange;
	ListCell *cell;

	/* Now, for soon the Gather is in no plan. */
	if (lift->last_node_id == 0)
		lift->last_node_id = gpusort_plan_last_node_id(lift->stmt);
	gather->initParam = bms_union(gather->initParam, lift->safety.used_params);
	foreach(cell, ranges->sorts)
	{
		const Gather *other = (const Gather *) outerPlan(lfirst_node(CustomScan, cell));

		check_nodes(lfirst(cell), ranges->nodes, NULL);
		gather->num_workers = Max(gather->num_workers, other->num_workers);
		gather->initParam = bms_add_members(gather->initParam, other->initParam);
		if (other != gather)
			lifted.other_params = bms_add_member(lifted.other_params, other->rescan_param);
	}
	lifted.processes = gpusort_plan_processes(gather->num_workers);
	share_plan(&plan, &lifted);

	output = make_scan(lift, plan, &gpusort_output_scan_methods);
	output->scan.plan.parallel_aware = true;
	output->scan.plan.parallel_safe = true;
	info.rescan_param = gather->rescan_param;
	output->custom_private = gpusort_output_plan_pack(&info);

	pass_rows_on(&gather->plan, &output->scan.plan);
	gather->plan.plan_rows = 0;
	gather->plan.allParam = gather->plan.extParam =
		bms_del_member(bms_copy(gather->plan.allParam), gather->rescan_param);

	exchange = make_scan(lift, &gather->plan, &gpusort_exchange_scan_methods);
	exchange->scan.plan.plan_rows = top.plan_rows;
	exchange->scan.plan.initPlan = lifted.init_plans;
	exchange->scan.plan.allParam =
		bms_del_member(bms_difference(lifted.params, lifted.other_params), gather->rescan_param);
	exchange->scan.plan.extParam = bms_difference(exchange->scan.plan.allParam, set_params(lifted.init_plans));
	return &exchange->scan.plan;
}

/* Returns true if the plan at this place has to mark and restore positions, as merge joins ask of their inner side. */
static bool
is_marked(const LiftPlace *place, Plan *const *link)
{
	if (place->above != NULL && IsA(place->above, MergeJoin) && link == &place->above->righttree)
		return !((const MergeJoin *) place->above)->skip_mark_restore;
	/* a Result has its child do it */
	return place->marked && IsA(place->above, Result);
}

static const char *const why_alone[] = {
	[GPUSORT_ALONE_NO_PATH] = "the sort is in the finished plan alone, where no more is decided than who sorts",
	[GPUSORT_ALONE_REREAD] = "the query does not give the same rows when it is read again",
	[GPUSORT_ALONE_SCROLL] = "the cursor can scroll",
	[GPUSORT_ALONE_SETTING] = "gpusort.parallel_output is off",
	[GPUSORT_ALONE_REPEATED] = "a nested loop reads it for each row",
	[GPUSORT_ALONE_LIMIT] = "a LIMIT may want its first rows alone, and all would be read before",
	[GPUSORT_ALONE_TIME] = "several would take longer, for the rows that come of it have to be passed on",
};

/* Returns the reason that was noted not to run a plan by ranges, which could be; NULL if it is to. */
static const char *
why_not_lifted(const GpuSortRangePlan *ranges, const LiftPlace *at)
{
	GpuSortPlanInfo info;

	gpusort_plan_unpack(linitial_node(CustomScan, ranges->sorts), &info);
	if (at->marked)
		return "a merge join goes back in it";
	return ranges->nodes > info.range_nodes ? why_alone[info.alone] : NULL;
}

/*
 * Has processes aggregate the rows of their ranges, where an aggregate of all rows can be put together from that, which
 * is what agg does then.  false: it is as it was.
 */
static bool
lift_combined(Lift *lift, Agg *agg, const LiftPlace *at)
{
	GpuSortRangePlan ranges;

	if (!gpusort_combine_may(agg) || !gpusort_range_plan_find(outerPlan(agg), &lift->safety, &ranges) ||
		!gpusort_safety_of_node(&lift->safety, &agg->plan))
		return false;
	ranges.nodes++; /* the aggregate of each range */
	if (why_not_lifted(&ranges, at) != NULL)
		return false;
	agg->plan.lefttree = lift_plan(lift, &gpusort_combine_split(agg, new_node_id(lift))->plan, &ranges);
	return true;
}

/* A Sort of what a sort of one process, Sort or GpuSort, has below it, without initPlans; NULL if a plan is none. */
static Sort *
copy_sort(const Plan *plan)
{
	Sort *sort;

	if (IsA(plan, Sort))
	{
		sort = makeNode(Sort);
		*sort = *(const Sort *) plan;
	}
	else if (gpusort_plan_is(plan, &gpusort_scan_methods) && !gpusort_is_gathered_sort(plan) && !plan->parallel_aware)
		sort = (Sort *) make_sort((const CustomScan *) plan);
	else
		return NULL;
	sort->plan.initPlan = NIL;
	return sort;
}

/*
 * Has processes pass on no more than a LIMIT's rows of each of their ranges, where it takes few of those that a sort
 * puts into another order, of a plan that may run range by range.  false: it is as it was.
 */
static bool
lift_first_rows(Lift *lift, Limit *limit, const LiftPlace *at)
{
	Plan *sort = outerPlan(limit);
	Sort *part = copy_sort(sort);
	GpuSortRangePlan ranges;
	double rows;
	double first;
	bool known;

	if (part == NULL || limit->limitCount == NULL || limit->limitOption != LIMIT_OPTION_COUNT)
		return false;
	rows = outerPlan(sort)->plan_rows;
	first = gpusort_limit_rows(limit->limitCount, limit->limitOffset, rows, &known);
	if (!known || first < 0 || first > PG_INT32_MAX ||
		!gpusort_range_plan_find(outerPlan(sort), &lift->safety, &ranges) ||
		!gpusort_safety_of_node(&lift->safety, &part->plan))
		return false;
	part->plan.plan_rows = Min(first * RANGES_GUESSED, rows);
	if ((!gpusort_force && part->plan.plan_rows > rows / 2) ||
		why_not_lifted(&ranges, at) != NULL)
		return false;
	part->plan.plan_node_id = new_node_id(lift);
	sort->lefttree = lift_plan(lift, &gpusort_plan_limit(&part->plan, (int64) first, new_node_id(lift))->plan, &ranges);
	if (IsA(sort, CustomScan))
		gpusort_plan_refer_to_child((CustomScan *) sort);
	return true;
}

/* Lifts what may be lifted of a plan. */
static void
visit(Plan **link, void *arg)
{
	LiftPlace *place = arg;
	Lift *lift = place->lift;
	LiftPlace below = {.lift = lift, .above = *link, .marked = is_marked(place, link)};
	GpuSortRangePlan ranges;

	/* What is below is in all processes already, and has no Gather. */
	if (gpusort_plan_is(*link, &gpusort_output_scan_methods))
		return;
	if (gpusort_is_gathered_sort(*link))
	{
		check_nodes(*link, 0, place->why_not);
		if (place->why_not != NULL)
			gpusort_decide_alone(lift->decisions, place->above, place->why_not);
		return;
	}
	if (IsA(*link, Agg) && lift_combined(lift, (Agg *) *link, &below))
		return;
	if (IsA(*link, Limit) && lift_first_rows(lift, (Limit *) *link, place))
		return;
	if (gpusort_range_plan_find(*link, &lift->safety, &ranges))
	{
		below.why_not = why_not_lifted(&ranges, &below);
		if (below.why_not == NULL)
		{
			*link = lift_plan(lift, *link, &ranges);
			return;
		}
	}
	else
		below.why_not = lift->safety.why_not;
	gpusort_plan_each_child(*link, visit, &below);
}

/*
 * Changes the plans of a statement as the head of this file says.  To be called when GpuSort is where
 * it is to be in the plans (sort_nodes.c).
 */
void
gpusort_lift(PlannedStmt *stmt, GpuSortDecisions *decisions)
{
	Lift lift = {.stmt = stmt, .decisions = decisions};
	LiftPlace place = {.lift = &lift};

	if (!stmt->parallelModeNeeded || (!gpusort_parallel_output && decisions == NULL))
		return;
	gpusort_safety_init(&lift.safety, stmt);
	gpusort_plan_each_of_statement(stmt, visit, &place);
}
