/*-------------------------------------------------------------------------
 *
 * sort_nodes.c
 *	  Puts GpuSort in the place of the Sort nodes of a finished plan.
 *
 * The planner sorts in many places, and only some let an extension add a path.
 * A finished plan tells all of them: below a merge join, a window, DISTINCT,
 * GROUP BY, a set operation, in a subquery or a CTE, every sort of all its input
 * is a Sort node, which GpuSort can do in its place, by cost:
 *
 *	  Sort						GpuSort
 *	    plan			->		  plan
 *
 *	  Gather Merge				GpuSort
 *	    Sort			->		  Gather
 *	      partial plan			    GpuSortIngest
 *							          partial plan
 *
 *	  Sort						GpuSort
 *	    Gather			->		  Gather
 *	      partial plan			    GpuSortIngest
 *							          partial plan
 *
 * What a Gather projects, such as a sort key that is an expression, is projected below
 * GpuSortIngest then, by a Result.
 *
 * Columns refer to the plan below, as set_plan_references leaves them in a Sort:
 * the custom scan's own list of columns (custom_scan_tlist) is one
 * of references to the plan below, and its target list refers to that.
 * So it is made here for the nodes that come from paths, too:
 * as PostgreSQL leaves theirs, it would have to stand for itself in EXPLAIN,
 * which columns of set operations and fields of records cannot.
 *
 * Not touched: Incremental Sort, which is cheap by what is in order already; the
 * Sorts in an Agg's chain, which are no nodes but say how the Agg sorts; and
 * what is directly below another extension's node, which may look at it.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/finish/sort_nodes.h"

#include "facts/limits.h"
#include "facts/windows.h"
#include "node.h"
#include "optimizer/optimizer.h"
#include "plan/admission.h"
#include "plan/estimate.h"
#include "plan/finish/plan_tree.h"
#include "plan/model/constants.h"
#include "plan/model/shape.h"
#include "plan/model/sort_time.h"
#include "settings.h"

/*
 * Returns true if GpuSort does the work of sort in less time, of so many rows in each process, of which PostgreSQL
 * merges the rows of so many processes, or none; ingest_processes share the ingest.  Otherwise *why_not
 * gets the reason, if somebody wants it.
 */
static bool
is_worth_it(const GpuSortPlanPlace *place, const Sort *sort, double rows, int ingest_processes, const char **why_not)
{
	const GpuSortCandidate candidate = {
		.rows = rows,
		.width = sort->plan.plan_width,
		.processes = gpusort_force ? 1 : place->processes,
		.tell = place->finish->decisions != NULL,
		.sort = sort,
	};
	GpuSortAdmission admission;
	GpuSortGain gain = GPUSORT_GAIN_SORT;
	GpuSortTime time;
	double first = -1;
	bool bounded = false;
	double ours;
	double native;

	admission = gpusort_admit(&candidate);
	*why_not = admission.why_not;
	if (admission.encodable == 0)
		return false;
	if (gpusort_force && !gpusort_estimate_is_wanted())
		return true;
	if (place->limit != NULL)
	{
		bool known;

		first = gpusort_limit_rows(place->limit->limitCount, place->limit->limitOffset, rows, &known);
		bounded = known && place->processes == 1; /* workers are not told */
	}
	time = gpusort_node_sort_time(place->finish->stmt->rtable, sort, rows, &admission);
	if (bounded && gpusort_sort_finds_top(&time, rows, first))
		gain = GPUSORT_GAIN_TOP;
	time = gpusort_sort_time_of_first(time, rows, first, bounded);
	native =
		gpusort_native_sort_time(sort->plan.plan_rows, sort->plan.plan_width, first, time.string_factor, time.in_order);
	if (ingest_processes > 1)
		native = native * gpusort_crowd(ingest_processes - 1) +
			(first < 0 ? rows : Min(first, rows)) * gpusort_constant(GPUSORT_TIME_MERGE_ROW, false);
	ours = (time.setup + time.order * rows) * place->processes +
		(time.ingest / ingest_processes * gpusort_crowd(ingest_processes - 1) + time.compare + time.emit) * rows;
	if (gpusort_force || gpusort_saves_enough(ours, ours, native, gain))
	{
		gpusort_estimate_add(0, native - ours);
		return true;
	}
	if (place->finish->decisions != NULL)
		*why_not = psprintf("the sort alone would take %.2f ms, PostgreSQL's %.2f ms%s; "
							"gpusort has to be %.1f times as fast and to save %.2f ms%s",
							ours / 1e6, native / 1e6,
							first >= 0 && first < rows && !time.verified ? " for the rows that LIMIT asks for" : "",
							GPUSORT_MARGIN, gpusort_least_gain(gain) / 1e6,
							time.ties * rows <= ours / 2 ? ""
								: admission.first == GPUSORT_ENCODE_ABBREVIATION
								? "; too many values have equal abbreviated keys"
								: "; too many strings are equal but for case, accents and punctuation");
	return false;
}

/*
 * One of our nodes over child: for the rest like model, whose columns it has, with
 * these sort columns, as gpusort_plan_pack has them.
 */
static CustomScan *
make_scan(const Plan *model, List *sort_columns, Plan *child, const CustomScanMethods *methods)
{
	CustomScan *scan = makeNode(CustomScan);
	Plan *plan = &scan->scan.plan;

	gpusort_plan_take_estimates(plan, model);
	plan->parallel_safe = model->parallel_safe;
	plan->plan_node_id = model->plan_node_id;
	plan->initPlan = model->initPlan;
	plan->extParam = model->extParam;
	plan->allParam = model->allParam;
	plan->lefttree = child;
	plan->targetlist = model->targetlist;
	scan->flags = CUSTOMPATH_SUPPORT_BACKWARD_SCAN | CUSTOMPATH_SUPPORT_MARK_RESTORE;
	scan->methods = methods;
	scan->custom_private = sort_columns;
	return scan;
}

/* GpuSortIngest over a partial plan, with the columns of model. */
static Plan *
make_ingest(const Plan *model, List *sort_columns, Plan *partial)
{
	Plan *ingest = &make_scan(model, sort_columns, partial, &gpusort_ingest_scan_methods)->scan.plan;

	ingest->plan_rows = 0;
	ingest->parallel_aware = true;
	ingest->parallel_safe = true;
	return ingest;
}

/* GpuSort in the place of a Gather Merge and the Sort below it. */
static Plan *
replace_gather_merge(const GpuSortPlanPlace *place, GatherMerge *merge)
{
	Plan *plan = &merge->plan;
	Sort *sort = (Sort *) outerPlan(merge);
	Plan *partial = outerPlan(sort);
	Gather *gather = makeNode(Gather);
	CustomScan *scan;

	gather->plan = *plan;
	gather->plan.type = T_Gather;
	gather->plan.plan_rows = 0;
	gather->plan.initPlan = NIL;
	gather->plan.plan_node_id = gpusort_finish_node_id(place->finish);
	gather->plan.lefttree = make_ingest(&sort->plan, gpusort_plan_pack(sort), partial);
	gather->num_workers = merge->num_workers;
	gather->rescan_param = merge->rescan_param;
	gather->initParam = merge->initParam;
	/* Unlike the Gather Merge, it depends on the initPlans that stay above it. */
	gather->plan.extParam = bms_del_member(bms_copy(sort->plan.extParam), merge->rescan_param);
	gather->plan.allParam = bms_del_member(bms_copy(sort->plan.allParam), merge->rescan_param);
	scan = make_scan(plan, gpusort_plan_pack(sort), &gather->plan, &gpusort_scan_methods);
	return &scan->scan.plan;
}

/*
 * Makes processes below a Gather compute what it projects, for GpuSortIngest needs the columns that are
 * sorted by.  Returns false if only the leader may.
 */
static bool
project_below(const GpuSortPlanPlace *place, Gather *gather)
{
	Plan *partial = outerPlan(gather);
	Result *result = gpusort_plan_project(partial, gather->plan.targetlist, 0);
	GpuSortSafety *safety = &place->finish->safety;

	safety->used_params = NULL;
	if (!gpusort_safety_of_expression(safety, (Node *) result->plan.targetlist))
		return false;
	result->plan.plan_node_id = gpusort_finish_node_id(place->finish);
	result->plan.plan_width = gather->plan.plan_width;
	result->plan.allParam = bms_union(partial->allParam, safety->used_params);
	result->plan.extParam = bms_union(partial->extParam, safety->used_params);
	gather->initParam = bms_union(gather->initParam, safety->used_params);
	gather->plan.targetlist = gpusort_plan_columns(&result->plan, list_length(result->plan.targetlist));
	gather->plan.lefttree = &result->plan;
	return true;
}

/* GpuSortIngest below the Gather that a GpuSort reads from, if there is one without. */
static void
add_ingest(const GpuSortPlanPlace *place, CustomScan *scan)
{
	Plan *gather = outerPlan(scan);
	Plan *ingest;

	if (!IsA(gather, Gather) || ((Gather *) gather)->single_copy ||
		gpusort_plan_is(outerPlan(gather), &gpusort_ingest_scan_methods) ||
		(!gpusort_plan_passes_rows_on(gather) && !project_below(place, (Gather *) gather)))
		return;
	ingest = make_ingest(gather, copyObject(scan->custom_private), outerPlan(gather));
	ingest->plan_node_id = gpusort_finish_node_id(place->finish);
	ingest->initPlan = NIL;
	ingest->extParam = outerPlan(ingest)->extParam;
	ingest->allParam = outerPlan(ingest)->allParam;
	gather->lefttree = ingest;
	gather->plan_rows = 0;
}

/* GpuSort in the place of a Sort. */
static Plan *
replace_sort(Sort *sort)
{
	return &make_scan(&sort->plan, gpusort_plan_pack(sort), outerPlan(sort), &gpusort_scan_methods)->scan.plan;
}

/*
 * A merge join can have a Material over the Sort of its inner side, because rows
 * that were sorted on disk are slow to go back to.  GpuSort's are not.
 */
void
gpusort_merge_join_drop_material(MergeJoin *join)
{
	Plan *plan = innerPlan(join);

	if (IsA(plan, Material) && gpusort_plan_is(outerPlan(plan), &gpusort_scan_methods) && plan->initPlan == NIL &&
		gpusort_plan_passes_rows_on(plan))
		innerPlan(join) = outerPlan(plan);
}

/* Sets *found, a bool, if the plan gives this process a part of the rows, which depends on what others have had. */
static void
find_part(Plan **link, void *found)
{
	const Plan *plan = *link;

	if (plan->parallel_aware)
		*(bool *) found = true;
	else if (!IsA(plan, Gather) && !IsA(plan, GatherMerge))
		gpusort_plan_each_child(*link, find_part, found);
}

/*
 * Puts GpuSort in the place of a Gather Merge over a Sort, if it is worth it.  Otherwise *why_not gets the reason.
 * Its rows are those of all processes: up to 17 PostgreSQL leaves the leader's out of account.
 */
static void
consider_gather_merge(const GpuSortPlanPlace *place, Plan **link, const char **why_not)
{
	GatherMerge *merge = (GatherMerge *) *link;
	Sort *sort = (Sort *) outerPlan(merge);

	const double rows = clamp_row_est(sort->plan.plan_rows * gpusort_plan_processes(merge->num_workers));

	if (is_worth_it(place, sort, rows, merge->num_workers + 1, why_not))
		*link = replace_gather_merge(place, merge);
}

/* Puts GpuSort in the place of a Sort, or says why not. */
static void
consider_sort(const GpuSortPlanPlace *place, Plan **link)
{
	Sort *sort = (Sort *) *link;
	const char *why_not;

	if (place->foreign)
		gpusort_decide_left(place->finish->decisions, &sort->plan, "another extension's node is right above it");
	else if (place->in_ranges)
		gpusort_decide_left(place->finish->decisions, &sort->plan, GPUSORT_WHY_SORTED_BY_RANGE);
	else if (!gpusort_plan_passes_rows_on(&sort->plan))
		gpusort_decide_left(place->finish->decisions, &sort->plan, "its columns differ from those of the plan below it");
	else if (!is_worth_it(place, sort, sort->plan.plan_rows, 1, &why_not))
		gpusort_decide_refused(place->finish->decisions, &sort->plan,
							   place->merge_why_not != NULL ? place->merge_why_not : why_not);
	else
		*link = replace_sort(sort);
}

/* Says of sorts that gpusort does not touch why. */
static void
consider_others(const GpuSortPlanPlace *place, Plan *plan)
{
	if (IsA(plan, IncrementalSort))
		gpusort_decide_left(
			place->finish->decisions, plan,
			"the rows are already in order by its first columns; an Incremental Sort sorts small parts");
	else if (IsA(plan, Agg))
	{
		ListCell *cell;

		foreach(cell, ((Agg *) plan)->chain)
		{
			if (outerPlan(lfirst(cell)) != NULL)
				gpusort_decide_left(place->finish->decisions, plan,
									"the aggregate does the second and further sorts of grouping sets by itself");
		}
	}
}

/* Tells a GpuSort what the window right above it makes of the order, if no path has shown them together. */
static void
note_window(CustomScan *scan, const WindowAgg *window)
{
	GpuSortPlanInfo info;

	gpusort_plan_unpack(scan, &info);
	if (info.use.kind == GPUSORT_USE_UNKNOWN)
	{
		const GpuSortWindowNeeds needs = gpusort_window_plan_needs(window);

		gpusort_plan_set_use(scan, &needs.use);
	}
}

/* Settles what a GpuSort or GpuSortIngest that is there has to know of the plans below it and above. */
static void
settle(const GpuSortPlanPlace *place, CustomScan *scan)
{
	bool is_sort = gpusort_plan_is(&scan->scan.plan, &gpusort_scan_methods);
	bool part = false;

	if (is_sort && place->above != NULL && IsA(place->above, WindowAgg))
		note_window(scan, (const WindowAgg *) place->above);
	if (is_sort)
		gpusort_note_kept_rows(scan, &place->looks_at);
	if (is_sort)
		add_ingest(place, scan);
	if (is_sort && IsA(outerPlan(scan), Gather) &&
		gpusort_plan_is(outerPlan(outerPlan(scan)), &gpusort_ingest_scan_methods))
		gpusort_plan_set_counted((CustomScan *) outerPlan(outerPlan(scan)), gpusort_plan_counted(scan));
	gpusort_plan_refer_to_child(scan);
	/* A part is not there again when the process reads its plan again alone. */
	if (is_sort)
		gpusort_plan_each_child(&scan->scan.plan, find_part, &part);
	gpusort_plan_set_rescannable(scan, place->finish->rescannable && !part);
}

/*
 * Puts GpuSort in the place of a plan, if it is a Sort, or a Gather Merge over one, and that is worth it.  place gets
 * what the plans below have to know.
 */
void
gpusort_sort_node_replace(GpuSortPlanPlace *place, Plan **link)
{
	Plan *plan = *link;
	const char *merge_why_not = NULL;

	if (IsA(plan, GatherMerge) && IsA(outerPlan(plan), Sort) && !place->foreign && gpusort_plan_passes_rows_on(plan) &&
		gpusort_plan_passes_rows_on(outerPlan(plan)))
		consider_gather_merge(place, link, &merge_why_not);
	else if (IsA(plan, Sort))
		consider_sort(place, link);
	else
		consider_others(place, plan);
	place->merge_why_not = merge_why_not;
	plan = *link;
	if (gpusort_plan_is(plan, &gpusort_scan_methods) || gpusort_plan_is(plan, &gpusort_ingest_scan_methods))
		settle(place, (CustomScan *) plan);
}
