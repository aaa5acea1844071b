/*-------------------------------------------------------------------------
 *
 * promises.c
 *	  Whether finished plans run by ranges what their paths were thought to.
 *
 * A path over GpuSort is chosen for its time, and that depends on which nodes above the sort run in all processes.  If
 * the finished plan runs other nodes in all processes, the time was wrong, and so may be the choice.  No test of
 * answers finds that.  So builds that check plans note in each GpuSort which nodes the path promised, when the query's
 * path is chosen, and compare when the plan is finished.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/check/promises.h"

#include "lib/stringinfo.h"
#include "node.h"
#include "plan/finish/plan_tree.h"
#include "plan/node_kinds.h"
#include "plan/offer/path_time.h"
#include "plan/offer/path_tree.h"
#include "plan/offer/paths.h"
#include "tcop/tcopprot.h"

/* A way down from a node to a GpuSort. */
typedef struct Descent
{
	const Plan *sort;
	StringInfoData names; /* of the nodes on it, from below, those aside that pass rows on */
	bool found;
} Descent;

static void
add_name(StringInfo names, const GpuSortNodeRow *row)
{
	if (row != NULL && row->name != NULL)
		appendStringInfo(names, "%s%s", names->len > 0 ? ", " : "", row->name);
}

/* Adds the names of the nodes from a sort up to a path; returns false, and adds none, if the sort is not below it. */
static bool
describe_path(const Path *path, const Path *sort, StringInfo names)
{
	const Path *child = gpusort_path_only_child(path);
	GpuSortPathChildren children;
	bool found;

	if (path == sort)
		return true;
	children = gpusort_path_children((Path *) path);
	if (child != NULL)
		found = describe_path(child, sort, names);
	else
		found = (children.links[0] != NULL && describe_path(*children.links[0], sort, names)) ||
			(children.links[1] != NULL && describe_path(*children.links[1], sort, names));
	if (found)
		add_name(names, gpusort_path_is_sort(path) ? NULL : gpusort_path_row(path));
	return found;
}

/* Makes the promises of the GpuSorts of a path. */
static void
note_sorts(Path *path)
{
	GpuSortPathChildren children = gpusort_path_children(path);
	ListCell *cell;

	if (gpusort_path_is_sort(path))
	{
		GpuSortPath *sort = (GpuSortPath *) path;
		StringInfoData names;

		initStringInfo(&names);
		if (sort->ranges_top != NULL)
			(void) describe_path(sort->ranges_top, path, &names);
		sort->promise = sort->is_noted ? names.data : NULL;
		note_sorts((Path *) sort->input);
		return;
	}
	if (gpusort_path_is_output(path))
		note_sorts(gpusort_output_path_child(path));
	for (int i = 0; i < 2; i++)
	{
		if (children.links[i] != NULL)
			note_sorts(*children.links[i]);
	}
	foreach(cell, children.list != NULL ? *children.list : NIL)
		note_sorts(lfirst(cell));
}

/* Notes what a path that was chosen promises, where so many of its rows are wanted (-1: all). */
void
gpusort_promises_note(PlannerInfo *root, Path *path, double first)
{
	gpusort_path_note_ranges(root, path, first);
	note_sorts(path);
}

/* Adds the names of the nodes from the sort up to a plan, where the sort is below it. */
static void
describe_plan(Plan **link, void *arg)
{
	Descent *descent = arg;
	const bool found_before = descent->found;

	if (*link == descent->sort)
	{
		descent->found = true;
		return;
	}
	gpusort_plan_each_child(*link, describe_plan, descent);
	if (descent->found && !found_before)
		add_name(&descent->names, gpusort_node_row(*link));
}

/* Compares a GpuSort's promise; output is the GpuSortOutput above it, or NULL. */
static void
check_sort(const CustomScan *scan, Plan *output)
{
	const char *promise = gpusort_plan_promise(scan);
	Descent descent = {.sort = &scan->scan.plan};

	if (promise == NULL)
		return;
	initStringInfo(&descent.names);
	if (output != NULL)
		describe_plan(&output->lefttree, &descent);
	if (strcmp(promise, descent.names.data) != 0)
		ereport(LOG,
				(errmsg("gpusort: the finished plan does not run by ranges what its path did"),
				 errdetail("By the path these run by ranges: \"%s\"; by the plan \"%s\".", promise, descent.names.data),
				 debug_query_string != NULL ? errcontext("query: %.2000s", debug_query_string) : 0));
}

static void
check_plan(Plan **link, void *arg)
{
	Plan *output = arg;

	if (gpusort_plan_is(*link, &gpusort_output_scan_methods))
		output = *link;
	else if (gpusort_plan_is(*link, &gpusort_scan_methods))
		check_sort((CustomScan *) *link, output);
	gpusort_plan_each_child(*link, check_plan, output);
}

/* Compares what the plans of a statement run by ranges with what their paths promised. */
void
gpusort_promises_check(PlannedStmt *stmt)
{
	gpusort_plan_each_of_statement(stmt, check_plan, NULL);
}
