/*-------------------------------------------------------------------------
 *
 * planner.c
 *	  Where GpuSort goes into plans.
 *
 * At UPPERREL_ORDERED, where PostgreSQL puts a Sort on its cheapest input, a
 * CustomPath over the same input competes with it by cost.  The path's child is
 * a SortPath: from that, create_plan makes the finished Sort plan, with its
 * columns, operators and collations settled, of which the CustomScan takes the
 * place.
 *
 * Where the input has a partial path a second one competes: GpuSort over Gather
 * over GpuSortIngest over that.  Both custom nodes get their sort columns from a
 * SortPath of their own; the target list is the same from the partial path up, so
 * the columns are, too.  No row goes through Gather but in exceptions (ingest.c),
 * so it is planned for none.
 *
 * What is not legal, or cannot win, is left to PostgreSQL; with
 * gpusort.log_decisions the log says why.
 *
 *-------------------------------------------------------------------------
 */
#include "planner.h"

#include "cost.h"
#include "executor.h"
#include "gpusort.h"
#include "ingest.h"
#include "miscadmin.h"
#include "nodes/extensible.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"
#include "parser/parsetree.h"
#include "plan_info.h"
#include "shared.h"
#include "supervisor.h"
#include "utils/lsyscache.h"

/* The part of a row's cost that falls on its way in: two fifths measured with the host engine, two thirds with a GPU. */
#define INGEST_PART				0.5

static create_upper_paths_hook_type previous_create_upper_paths = NULL;

static void
refuse(const char *fmt,...) pg_attribute_printf(1, 2);

static void
refuse(const char *fmt,...)
{
	StringInfoData text;

	if (!gpusort_log_decisions)
		return;
	initStringInfo(&text);
	for (;;)
	{
		va_list		values;
		int			needed;

		va_start(values, fmt);
		needed = appendStringInfoVA(&text, fmt, values);
		va_end(values);
		if (needed == 0)
			break;
		enlargeStringInfo(&text, needed);
	}
	ereport(LOG,
			(errmsg("gpusort: not used: %s", text.data)));
	pfree(text.data);
}

/*
 * How many rows LIMIT and OFFSET ask for: -1 for all, 0 for "known only at run
 * time".
 */
static double
limit_rows(PlannerInfo *root)
{
	Query	   *parse = root->parse;
	double		rows = 0;

	if (parse->limitCount == NULL || parse->limitOption == LIMIT_OPTION_WITH_TIES)
		return -1;				/* WITH TIES sorts all rows */
	for (int i = 0; i < 2; i++)
	{
		Node	   *bound = i == 0 ? parse->limitCount : parse->limitOffset;

		if (bound == NULL)
			continue;
		bound = estimate_expression_value(root, bound);
		if (!IsA(bound, Const))
			return 0;
		if (((Const *) bound)->constisnull)
		{
			if (i == 0)
				return -1;		/* LIMIT NULL is no limit */
			continue;
		}
		rows += Max(DatumGetInt64(((Const *) bound)->constvalue), 0);
	}
	return Max(rows, 1);
}

/*
 * Would PostgreSQL sort into a heap of as many rows as LIMIT asks for?  The same
 * rule as cost_sort's.
 */
static bool
is_top_n(PlannerInfo *root, const Path *input)
{
	double		rows = limit_rows(root);
	double		bytes_per_row = gpusort_row_bytes(input->pathtarget->width);
	double		memory = work_mem * 1024.0;

	if (rows < 0 || rows >= input->rows)
		return false;
	if (rows == 0)
		return true;			/* it may be: PostgreSQL finds out at run time, we cannot */
	return rows * bytes_per_row <= memory &&
		(input->rows > 2 * rows || input->rows * bytes_per_row > memory);
}

/*
 * How many leading sort keys have an encoding; the comparators order rows by the
 * others.  The finished plan sorts by any one of an equivalence class's members,
 * so all of them must have one.
 */
static int
encodable_keys(PlannerInfo *root)
{
	int			number = 0;
	ListCell   *key;
	ListCell   *cell;

	foreach(key, root->sort_pathkeys)
	{
		PathKey    *pathkey = lfirst_node(PathKey, key);

		foreach(cell, pathkey->pk_eclass->ec_members)
		{
			const EquivalenceMember *member = lfirst_node(EquivalenceMember, cell);
			const char *why_not;

			if (gpusort_key_encoding(pathkey->pk_opfamily, member->em_datatype,
									 pathkey->pk_eclass->ec_collation, &why_not) == GPUSORT_ENCODE_NONE)
			{
				if (number == 0)
					refuse("sort key 1 %s", why_not);
				return number;
			}
		}
		number++;
	}
	return number;
}

/* Is there a service that would take rows x width bytes? */
static bool
service_would_take(double rows, double row_bytes)
{
	GpuSortService service = gpusort_shared_service();
	bool		cuda;
	uint64		limit;

	switch (service.state)
	{
		case GPUSORT_SERVICE_NONE:
			if (!gpusort_supervisor_wake())
			{
				refuse("there is no background worker slot for the supervisor");
				return false;
			}
			return true;		/* the executor waits for it, and falls back */
		case GPUSORT_SERVICE_STARTING:
			return true;
		case GPUSORT_SERVICE_BACKOFF:
			refuse("the sort service is not running");
			return false;
		case GPUSORT_SERVICE_READY:
		case GPUSORT_SERVICE_DRAINING:
			break;
	}
	if (gpusort_engine == GPUSORT_ENGINE_CUDA && !(service.engines & (1 << GPUSORT_ENGINE_CUDA)))
	{
		refuse("gpusort.engine is cuda and the service has no CUDA device");
		return false;
	}
	cuda = gpusort_would_use_cuda(service.engines);
	limit = cuda ? service.device_limit : service.host_limit;
	if (rows > (double) GPUSORT_MAX_ROWS)
	{
		refuse("%.0f rows are more than one sort takes", rows);
		return false;
	}
	if (rows * row_bytes > (double) limit)
	{
		refuse("about %.0f MB of rows are more than %s allows", rows * row_bytes / (1024 * 1024),
			   cuda ? "gpusort.device_memory" : "gpusort.host_memory");
		return false;
	}
	return true;
}

/* Would the child, read again, give the same rows, and do nothing a second time? */
static bool
is_rescannable(PlannerInfo *root)
{
	ListCell   *cell;

	for (PlannerInfo *level = root; level != NULL; level = level->parent_root)
	{
		if (level->parse->hasModifyingCTE || level->parse->commandType != CMD_SELECT)
			return false;
	}
	if (contain_volatile_functions((Node *) root->parse))
		return false;
	foreach(cell, root->glob->subroots)
	{
		PlannerInfo *subroot = lfirst_node(PlannerInfo, cell);

		if (subroot->parse->hasModifyingCTE || contain_volatile_functions((Node *) subroot->parse))
			return false;
	}
	return true;
}

/*
 * How long the prefixes of a string key should be: what statistics say of a
 * plain column, else the short one.
 */
static int
choose_prefix_bytes(PlannerInfo *root, const Sort *sort, int i)
{
	TargetEntry *entry = get_tle_by_resno(sort->plan.targetlist, sort->sortColIdx[i]);
	Node	   *expression = strip_implicit_coercions((Node *) entry->expr);
	bool		descending;
	int32		width = 0;

	if (!gpusort_key_encoding_is_string(gpusort_operator_encoding(sort->sortOperators[i], sort->collations[i],
																  &descending)))
		return 0;
	if (IsA(expression, Var) && ((Var *) expression)->varlevelsup == 0 && ((Var *) expression)->varno > 0 &&
		((Var *) expression)->varno < root->simple_rel_array_size)
	{
		RangeTblEntry *rte = planner_rt_fetch(((Var *) expression)->varno, root);

		if (rte->rtekind == RTE_RELATION)
			width = get_attavgwidth(rte->relid, ((Var *) expression)->varattno);
	}
	/* The width that statistics keep has a byte of header. */
	return width > GPUSORT_PREFIX_SHORT + 1 ? GPUSORT_PREFIX_LONG : GPUSORT_PREFIX_SHORT;
}

/* The plan that gives a set operation's columns their names: its first input, at any depth. */
static Plan *
first_input(Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_Append:
			return linitial(((Append *) plan)->appendplans);
		case T_MergeAppend:
			return linitial(((MergeAppend *) plan)->mergeplans);
		default:
			return outerPlan(plan);
	}
}

/*
 * The columns of set operations are Vars of no relation, which nothing but a
 * reference to the plan below can show in EXPLAIN; a custom scan's target list
 * must stand for itself.  Replaces them by what the first input calls them.
 */
static Node *
name_setop_columns(Node *node, Plan *child)
{
	if (node == NULL)
		return NULL;
	if (IsA(node, Var) && ((Var *) node)->varno == 0)
	{
		AttrNumber	attno = ((Var *) node)->varattno;

		for (Plan *plan = child; plan != NULL; plan = first_input(plan))
		{
			TargetEntry *entry = get_tle_by_resno(plan->targetlist, attno);

			if (entry == NULL)
				break;
			if (!IsA(entry->expr, Var) || ((Var *) entry->expr)->varno != 0)
				return (Node *) copyObject(entry->expr);
			attno = ((Var *) entry->expr)->varattno;
		}
		elog(ERROR, "no input of a set operation has column %d", attno);
	}
	return expression_tree_mutator(node, name_setop_columns, (void *) child);
}

/* The CustomScan that takes the place of the finished Sort. */
static Plan *
replace_sort(PlannerInfo *root, CustomPath *path, List *custom_plans, const CustomScanMethods *methods)
{
	Sort	   *sort = linitial_node(Sort, custom_plans);
	CustomScan *scan = makeNode(CustomScan);
	List	   *prefix_bytes = NIL;

	for (int i = 0; i < sort->numCols; i++)
		prefix_bytes = lappend_int(prefix_bytes, choose_prefix_bytes(root, sort, i));

	/* Like a Sort, the node passes its child's rows on as they are. */
	scan->scan.plan.targetlist = (List *) name_setop_columns((Node *) sort->plan.targetlist, outerPlan(sort));
	scan->scan.plan.lefttree = sort->plan.lefttree;
	scan->scan.scanrelid = 0;
	scan->flags = path->flags;
	scan->custom_scan_tlist = copyObject(scan->scan.plan.targetlist);
	scan->methods = methods;
	scan->custom_private = gpusort_plan_pack(sort, prefix_bytes, is_rescannable(root));
	return &scan->scan.plan;
}

/* The PlanCustomPath callbacks */
static Plan *
plan_gpusort_path(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses,
				  List *custom_plans)
{
	return replace_sort(root, path, custom_plans, &gpusort_scan_methods);
}

static Plan *
plan_ingest_path(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses,
				 List *custom_plans)
{
	return replace_sort(root, path, custom_plans, &gpusort_ingest_scan_methods);
}

static const CustomPathMethods path_methods = {
	.CustomName = GPUSORT_NODE_NAME,
	.PlanCustomPath = plan_gpusort_path,
};

static const CustomPathMethods ingest_path_methods = {
	.CustomName = GPUSORT_INGEST_NODE_NAME,
	.PlanCustomPath = plan_ingest_path,
};

/* A path of one of the two nodes over input, without its costs. */
static CustomPath *
make_custom_path(PlannerInfo *root, RelOptInfo *ordered_rel, Path *input, const CustomPathMethods *methods)
{
	CustomPath *path = makeNode(CustomPath);

	path->path.pathtype = T_CustomScan;
	path->path.parent = ordered_rel;
	path->path.pathtarget = input->pathtarget;
	INHERIT_DISABLED_NODES(&path->path, input);
	path->custom_paths = list_make1(create_sort_path(root, ordered_rel, input, root->sort_pathkeys, -1));
	path->methods = methods;
	return path;
}

/* GpuSort of rows from input */
static Path *
make_gpusort_path(PlannerInfo *root, RelOptInfo *ordered_rel, Path *input, double rows, GpuSortCost cost)
{
	CustomPath *path = make_custom_path(root, ordered_rel, input, &path_methods);

	path->path.rows = rows;
	path->path.startup_cost = input->total_cost + cost.setup + (cost.row + cost.compare) * rows;
	path->path.total_cost = path->path.startup_cost + cpu_operator_cost * rows;
	path->path.pathkeys = root->sort_pathkeys;
	path->flags = CUSTOMPATH_SUPPORT_BACKWARD_SCAN | CUSTOMPATH_SUPPORT_MARK_RESTORE;
	return &path->path;
}

/* GpuSort over Gather over GpuSortIngest over a partial path; rows is what all processes have. */
static Path *
make_parallel_path(PlannerInfo *root, RelOptInfo *ordered_rel, Path *partial, double rows, GpuSortCost cost)
{
	CustomPath *ingest = make_custom_path(root, ordered_rel, partial, &ingest_path_methods);
	double		rows_gathered = 0;
	GatherPath *gather;

	ingest->path.parallel_aware = true;
	ingest->path.parallel_safe = true;
	ingest->path.parallel_workers = partial->parallel_workers;
	ingest->path.rows = rows_gathered;
	ingest->path.startup_cost = partial->total_cost + INGEST_PART * cost.row * partial->rows;
	ingest->path.total_cost = ingest->path.startup_cost;
	gather = create_gather_path(root, ordered_rel, &ingest->path, ingest->path.pathtarget, NULL, &rows_gathered);
	cost.row *= 1 - INGEST_PART;
	return make_gpusort_path(root, ordered_rel, &gather->path, rows, cost);
}

/*
 * Is path still one of rel's?  Paths of the input that are in order already have
 * been added to the ordered rel as they are, where add_path frees those that
 * others dominate, and nobody clears rel's pointer to them.  What was freed and
 * used again for something else has another parent.  The last step of a set
 * operation belongs to a rel of its own.
 */
static bool
is_path_of(PlannerInfo *root, const Path *path, const RelOptInfo *rel)
{
	return path->parent == rel || list_member_ptr(root->upper_rels[UPPERREL_SETOP], path->parent);
}

/* Adds GpuSort paths to the ordered rel, if they are legal and may win. */
static void
consider_gpusort(PlannerInfo *root, RelOptInfo *input_rel, RelOptInfo *ordered_rel)
{
	Path	   *input = input_rel->cheapest_total_path;
	PathTarget *target = root->upper_targets[UPPERREL_ORDERED];
	int			encodable;
	GpuSortCost	cost;
	Path	   *paths[2];
	int			npaths = 0;

	if (input == NULL || root->sort_pathkeys == NIL || !is_path_of(root, input, input_rel) ||
		pathkeys_contained_in(root->sort_pathkeys, input->pathkeys))
		return;
	if (!gpusort_force)
	{
		if (input->rows < gpusort_min_rows)
		{
			refuse("%.0f rows are fewer than gpusort.min_rows", input->rows);
			return;
		}
		if (is_top_n(root, input))
		{
			refuse("LIMIT asks for a small part of the rows");
			return;
		}
	}
	encodable = encodable_keys(root);
	if (encodable == 0 ||
		!service_would_take(input->rows, gpusort_row_bytes(input->pathtarget->width)))
		return;

	cost = gpusort_estimate_cost(root, input, encodable);
	paths[npaths++] = make_gpusort_path(root, ordered_rel, input, input->rows, cost);
	if (input_rel->consider_parallel && input_rel->partial_pathlist != NIL)
		paths[npaths++] = make_parallel_path(root, ordered_rel, linitial(input_rel->partial_pathlist), input->rows, cost);
	if (target != NULL)			/* set operations have none */
	{
		for (int i = 0; i < npaths; i++)
		{
			if (paths[i]->pathtarget != target)
				paths[i] = apply_projection_to_path(root, ordered_rel, paths[i], target);
		}
	}
	if (gpusort_force)
	{
		ordered_rel->pathlist = NIL;
		ordered_rel->partial_pathlist = NIL;
	}
	else if (gpusort_log_decisions)
	{
		double		ours = Min(paths[0]->total_cost, paths[npaths - 1]->total_cost);
		double		best = ours;

		for (int i = 0; i < list_length(ordered_rel->pathlist); i++)
			best = Min(best, ((Path *) list_nth(ordered_rel->pathlist, i))->total_cost);
		if (best < ours)
			refuse("its cost of %.0f is above the %.0f of another plan", ours, best);
	}
	for (int i = 0; i < npaths; i++)
		add_path(ordered_rel, paths[i]);
}

static void
create_upper_paths(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input_rel,
				   RelOptInfo *output_rel, void *extra)
{
	if (previous_create_upper_paths)
		previous_create_upper_paths(root, stage, input_rel, output_rel, extra);
	if (stage == UPPERREL_ORDERED && gpusort_enable)
		consider_gpusort(root, input_rel, output_rel);
}

/* To be called once, at load. */
void
gpusort_planner_init(void)
{
	previous_create_upper_paths = create_upper_paths_hook;
	create_upper_paths_hook = create_upper_paths;
}
