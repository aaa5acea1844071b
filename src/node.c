/*-------------------------------------------------------------------------
 *
 * node.c
 *	  What a finished plan tells the executor: the layout of custom_private.
 *
 * Lists of integers and Oids, a string and an expression, so that plans can be copied, and read back by parallel
 * workers.
 *
 *-------------------------------------------------------------------------
 */
#include "node.h"

#include "nodes/nodeFuncs.h"
#include "nodes/value.h"
#include "parser/parsetree.h"

/* What is in custom_private: lists, of which those before the scalars have an entry for every sort column. */
typedef enum PlanPrivate
{
	PLAN_ATTNOS,
	PLAN_OPERATORS,
	PLAN_COLLATIONS,
	PLAN_NULLS_FIRST,
	PLAN_VALUE_TYPES,
	PLAN_KEY_TYPES,
	PLAN_SCALARS,
	PLAN_BLOCK_INDEX, /* an Oid */
	PLAN_WHY_ALONE,   /* a String; empty: NULL */
	PLAN_KEPT_BOUND,  /* an expression, or nothing */
	PLAN_COUNTED,     /* integers */
	PLAN_PRIVATE_Count,
} PlanPrivate;

/* The entries of PLAN_SCALARS. */
typedef enum PlanScalar
{
	SCALAR_RESCANNABLE,
	SCALAR_WIDTH,
	SCALAR_VISIBLE,
	SCALAR_RANGE_COLUMNS,
	SCALAR_USE,
	SCALAR_USE_BEFORE,
	SCALAR_USE_AFTER,
	SCALAR_USE_ROWS,
	SCALAR_USE_TOTALS,
	SCALAR_STARTS_WORKERS,
	SCALAR_BLOCK_COLUMN,
	SCALAR_KEPT_COLUMNS,
	SCALAR_KEPT_LESS,
	SCALAR_KEPT_PEERS,
	SCALAR_KEPT_ONLY_ONE,
	SCALAR_Count,
} PlanScalar;

/* Returns true if a node of a finished plan is one of gpusort's whose rows are those of the node below it. */
bool
gpusort_node_is_ours(const Plan *plan)
{
	const CustomScanMethods *methods = IsA(plan, CustomScan) ? ((const CustomScan *) plan)->methods : NULL;

	return methods == &gpusort_scan_methods || methods == &gpusort_ingest_scan_methods ||
		methods == &gpusort_exchange_scan_methods || methods == &gpusort_output_scan_methods;
}

/* Returns true if a node of a finished plan is a GpuSortShardScan. */
bool
gpusort_node_is_shard_scan(const Plan *plan)
{
	return IsA(plan, CustomScan) && ((const CustomScan *) plan)->methods == &gpusort_shard_scan_methods;
}

/* Returns true if a node of a finished plan is a GpuSortTaskScan. */
bool
gpusort_node_is_task_scan(const Plan *plan)
{
	return IsA(plan, CustomScan) && ((const CustomScan *) plan)->methods == &gpusort_task_scan_methods;
}

/* Returns the type of the values of a Sort's key number i, from 0. */
Oid
gpusort_sort_value_type(const Sort *sort, int i)
{
	return exprType((Node *) get_tle_by_resno(sort->plan.targetlist, sort->sortColIdx[i])->expr);
}

/*
 * Returns custom_private for a node in the place of sort.  All attributes are visible, the child is taken to give
 * other rows when it is read again, and nothing is known of the node above, until the functions below say otherwise.
 */
List *
gpusort_plan_pack(const Sort *sort)
{
	List *attnos = NIL;
	List *operators = NIL;
	List *collations = NIL;
	List *nulls_first = NIL;
	List *value_types = NIL;
	List *key_types = NIL;
	List *lists;
	List *scalars = NIL;
	const int values[SCALAR_Count] = {
		[SCALAR_WIDTH] = sort->plan.plan_width,
		[SCALAR_VISIBLE] = list_length(sort->plan.targetlist),
		[SCALAR_USE] = GPUSORT_USE_UNKNOWN,
	};

	for (int i = 0; i < sort->numCols; i++)
	{
		attnos = lappend_int(attnos, sort->sortColIdx[i]);
		operators = lappend_oid(operators, sort->sortOperators[i]);
		collations = lappend_oid(collations, sort->collations[i]);
		nulls_first = lappend_int(nulls_first, sort->nullsFirst[i]);
		value_types = lappend_oid(value_types, gpusort_sort_value_type(sort, i));
		key_types = lappend_oid(key_types, InvalidOid);
	}
	lists = list_make5(attnos, operators, collations, nulls_first, value_types);
	lists = lappend(lists, key_types);
	for (int i = 0; i < SCALAR_Count; i++)
		scalars = lappend_int(scalars, values[i]);
	lists = lappend(lappend(lists, scalars), list_make1_oid(InvalidOid));
	lists = lappend(lappend(lappend(lists, makeString("")), NIL), NIL);
	Assert(list_length(lists) == PLAN_PRIVATE_Count);
	return lists;
}

static void
set_scalar(CustomScan *plan, PlanScalar scalar, int value)
{
	lfirst_int(list_nth_cell(list_nth(plan->custom_private, PLAN_SCALARS), scalar)) = value;
}

/* Makes the plan sort by attribute new_attnos[n] where it sorted by attribute n (1-based). */
void
gpusort_plan_move_keys(CustomScan *plan, const AttrNumber *new_attnos)
{
	ListCell *cell;

	foreach(cell, list_nth(plan->custom_private, PLAN_ATTNOS))
		lfirst_int(cell) = new_attnos[lfirst_int(cell)];
}

/* Says whether the child gives the same rows when it is read again. */
void
gpusort_plan_set_rescannable(CustomScan *plan, bool rescannable)
{
	set_scalar(plan, SCALAR_RESCANNABLE, rescannable);
}

/* Makes the plan show only the first attributes of its rows to the node above: the others are resjunk. */
void
gpusort_plan_set_visible(CustomScan *plan, int visible)
{
	set_scalar(plan, SCALAR_VISIBLE, visible);
}

/*
 * Makes the plan give one row for all that are equal in what it sorts by, or a few, with columns behind the child's
 * that say for how many.  counted has an entry for each of these: 0, or the number of a column of the child's, of whose
 * values that are not NULL it is the number.  NIL: there are none, and each row comes.
 */
void
gpusort_plan_set_counted(CustomScan *plan, List *counted)
{
	lfirst(list_nth_cell(plan->custom_private, PLAN_COUNTED)) = counted;
}

/* Returns what that function has set. */
List *
gpusort_plan_counted(const CustomScan *plan)
{
	return list_nth(plan->custom_private, PLAN_COUNTED);
}

/*
 * Makes all processes read the rows, those that are equal in so many
 * leading columns together, which have the keys of these types.
 */
void
gpusort_plan_set_range_columns(CustomScan *plan, int range_columns, const Oid *key_types)
{
	for (int i = 0; i < range_columns; i++)
		lfirst_oid(list_nth_cell(list_nth(plan->custom_private, PLAN_KEY_TYPES), i)) = key_types[i];
	set_scalar(plan, SCALAR_RANGE_COLUMNS, range_columns);
}

/* Says why one process runs what is above the sort, which may be NULL. */
void
gpusort_plan_set_why_alone(CustomScan *plan, const char *why_alone)
{
	lfirst(list_nth_cell(plan->custom_private, PLAN_WHY_ALONE)) = makeString(pstrdup(why_alone != NULL ? why_alone : ""));
}

/* Says what the node above makes of the order. */
void
gpusort_plan_set_use(CustomScan *plan, const GpuSortUse *use)
{
	set_scalar(plan, SCALAR_USE, use->kind);
	set_scalar(plan, SCALAR_USE_BEFORE, use->before);
	set_scalar(plan, SCALAR_USE_AFTER, use->after);
	set_scalar(plan, SCALAR_USE_ROWS, use->rows);
	set_scalar(plan, SCALAR_USE_TOTALS, use->totals);
}

/* Says which rows of each group the nodes above look at. */
void
gpusort_plan_set_kept_rows(CustomScan *plan, const GpuSortKeptRows *kept)
{
	lfirst(list_nth_cell(plan->custom_private, PLAN_KEPT_BOUND)) = list_make1(copyObject(kept->bound));
	set_scalar(plan, SCALAR_KEPT_COLUMNS, kept->columns);
	set_scalar(plan, SCALAR_KEPT_LESS, kept->less);
	set_scalar(plan, SCALAR_KEPT_PEERS, kept->peers);
	set_scalar(plan, SCALAR_KEPT_ONLY_ONE, kept->only_one);
}

/* Has an index tell which blocks of the child's table can have the first rows. */
void
gpusort_plan_set_block_index(CustomScan *plan, const GpuSortBlockIndex *index)
{
	linitial_oid(list_nth(plan->custom_private, PLAN_BLOCK_INDEX)) = index->index;
	set_scalar(plan, SCALAR_BLOCK_COLUMN, index->column);
}

/* Lets workers take rows in even where PostgreSQL runs the statement without. */
void
gpusort_plan_set_starts_workers(CustomScan *plan)
{
	set_scalar(plan, SCALAR_STARTS_WORKERS, true);
}

/* Returns custom_private for a GpuSortOutput. */
List *
gpusort_output_plan_pack(const GpuSortOutputInfo *info)
{
	return list_make1(lappend_int(list_make5_int(info->rescan_param, info->partial, info->partition_columns,
												 info->only_formed, info->reads_tables),
								  info->starts_workers));
}

/* Reads what gpusort_output_plan_pack wrote. */
GpuSortOutputInfo
gpusort_output_plan_unpack(const CustomScan *plan)
{
	const List *numbers = linitial(plan->custom_private);

	Assert(list_length(numbers) == 6);
	return (GpuSortOutputInfo){
		.rescan_param = linitial_int(numbers),
		.partial = lsecond_int(numbers) != 0,
		.partition_columns = lthird_int(numbers),
		.only_formed = lfourth_int(numbers) != 0,
		.reads_tables = list_nth_int(numbers, 4) != 0,
		.starts_workers = list_nth_int(numbers, 5) != 0,
	};
}

/* Reads what gpusort_plan_pack wrote.  columns is palloc'd. */
void
gpusort_plan_unpack(const CustomScan *plan, GpuSortPlanInfo *info)
{
	List *lists = plan->custom_private;
	List *attnos = list_nth(lists, PLAN_ATTNOS);
	List *scalars = list_nth(lists, PLAN_SCALARS);

	Assert(list_length(lists) == PLAN_PRIVATE_Count);
	Assert(list_length(scalars) == SCALAR_Count);
	info->ncolumns = list_length(attnos);
	info->columns = palloc0(info->ncolumns * sizeof(GpuSortColumn));
	for (int i = 0; i < info->ncolumns; i++)
	{
		GpuSortColumn *column = &info->columns[i];

		column->attno = list_nth_int(attnos, i);
		column->sort_operator = list_nth_oid(list_nth(lists, PLAN_OPERATORS), i);
		column->collation = list_nth_oid(list_nth(lists, PLAN_COLLATIONS), i);
		column->nulls_first = list_nth_int(list_nth(lists, PLAN_NULLS_FIRST), i) != 0;
		column->value_type = list_nth_oid(list_nth(lists, PLAN_VALUE_TYPES), i);
		column->key_type = list_nth_oid(list_nth(lists, PLAN_KEY_TYPES), i);
	}
	info->rescannable = list_nth_int(scalars, SCALAR_RESCANNABLE) != 0;
	info->estimated_width = list_nth_int(scalars, SCALAR_WIDTH);
	info->visible = list_nth_int(scalars, SCALAR_VISIBLE);
	info->counted = list_nth(lists, PLAN_COUNTED);
	info->range_columns = list_nth_int(scalars, SCALAR_RANGE_COLUMNS);
	info->why_alone = strVal(list_nth(lists, PLAN_WHY_ALONE));
	if (info->why_alone[0] == '\0')
		info->why_alone = NULL;
	info->use = (GpuSortUse){
		.kind = (GpuSortUseKind) list_nth_int(scalars, SCALAR_USE),
		.before = list_nth_int(scalars, SCALAR_USE_BEFORE),
		.after = list_nth_int(scalars, SCALAR_USE_AFTER),
		.rows = list_nth_int(scalars, SCALAR_USE_ROWS) != 0,
		.totals = list_nth_int(scalars, SCALAR_USE_TOTALS) != 0,
	};
	info->kept = (GpuSortKeptRows){
		.columns = list_nth_int(scalars, SCALAR_KEPT_COLUMNS),
		.less = list_nth_int(scalars, SCALAR_KEPT_LESS) != 0,
		.peers = list_nth_int(scalars, SCALAR_KEPT_PEERS) != 0,
		.only_one = list_nth_int(scalars, SCALAR_KEPT_ONLY_ONE) != 0,
	};
	if (info->kept.columns > 0)
		info->kept.bound = linitial(list_nth(lists, PLAN_KEPT_BOUND));
	info->block_index = (GpuSortBlockIndex){
		.index = linitial_oid(list_nth(lists, PLAN_BLOCK_INDEX)),
		.column = list_nth_int(scalars, SCALAR_BLOCK_COLUMN),
	};
	info->starts_workers = list_nth_int(scalars, SCALAR_STARTS_WORKERS) != 0;
	info->estimated_rows = plan->scan.plan.plan_rows;
}

/* The entries of a GpuSortShardScan's custom_private: Strings, and integers */
typedef enum ShardPrivate
{
	SHARD_SQL,
	SHARD_PART_SQL,
	SHARD_FROM,
	SHARD_TO,
	SHARD_SCHEMA,
	SHARD_TABLE,
	SHARD_COLUMNS,
} ShardPrivate;

/* Returns custom_private for a GpuSortShardScan. */
List *
gpusort_shard_plan_pack(const GpuSortShardScanInfo *info)
{
	const char *const strings[] = {info->sql, info->part_sql, info->from, info->to, info->schema, info->table};
	List *packed = NIL;

	for (int i = 0; i < lengthof(strings); i++)
		packed = lappend(packed, makeString(pstrdup(strings[i])));
	return lappend(packed, info->columns);
}

/* Returns what a plan of a GpuSortShardScan says. */
GpuSortShardScanInfo
gpusort_shard_plan_unpack(const CustomScan *plan)
{
	const List *packed = plan->custom_private;

	return (GpuSortShardScanInfo){
		.sql = strVal(list_nth(packed, SHARD_SQL)),
		.part_sql = strVal(list_nth(packed, SHARD_PART_SQL)),
		.from = strVal(list_nth(packed, SHARD_FROM)),
		.to = strVal(list_nth(packed, SHARD_TO)),
		.schema = strVal(list_nth(packed, SHARD_SCHEMA)),
		.table = strVal(list_nth(packed, SHARD_TABLE)),
		.columns = list_nth(packed, SHARD_COLUMNS),
	};
}

/* --- tasks ------------------------------------------------------------------------------------ */

/*
 * A plan that is copied with the plan in whose custom_private it is, but never written for parallel workers: Citus can
 * write its own, and cannot read them.
 */
typedef struct LeadersPlan
{
	ExtensibleNode node; /* must be first field */
	Plan *plan;          /* NULL: in a worker */
} LeadersPlan;

#define LEADERS_PLAN "GpuSortLeadersPlan"

static void
copy_leaders_plan(ExtensibleNode *to, const ExtensibleNode *from)
{
	((LeadersPlan *) to)->plan = copyObject(((const LeadersPlan *) from)->plan);
}

static bool
equal_leaders_plans(const ExtensibleNode *one, const ExtensibleNode *other)
{
	return ((const LeadersPlan *) one)->plan == ((const LeadersPlan *) other)->plan;
}

static void
write_leaders_plan(StringInfo text, const ExtensibleNode *node)
{
}

static void
read_leaders_plan(ExtensibleNode *node)
{
}

static const ExtensibleNodeMethods leaders_plan_methods = {
	.extnodename = LEADERS_PLAN,
	.node_size = sizeof(LeadersPlan),
	.nodeCopy = copy_leaders_plan,
	.nodeEqual = equal_leaders_plans,
	.nodeOut = write_leaders_plan,
	.nodeRead = read_leaders_plan,
};

/* Lets plans of GpuSortTaskScans be copied and read back; to be called once, at load. */
void
gpusort_task_plans_init(void)
{
	RegisterExtensibleNodeMethods(&leaders_plan_methods);
}

/* What custom_private of a GpuSortTaskScan has before its tasks, of which each is a list */
#define TASK_CITUS 0
#define TASK_FIRST 1

/* What a task's list has */
typedef enum TaskPrivate
{
	TASK_HOST,
	TASK_PORT,
	TASK_SQL,
} TaskPrivate;

/* Returns custom_private for a GpuSortTaskScan of these tasks, each a GpuSortCitusTask, which Citus's plan reads. */
List *
gpusort_task_plan_pack(const List *tasks, Plan *citus)
{
	LeadersPlan *kept = (LeadersPlan *) newNode(sizeof(LeadersPlan), T_ExtensibleNode);
	List *packed;
	ListCell *cell;

	kept->node.extnodename = LEADERS_PLAN;
	kept->plan = citus;
	packed = list_make1(kept);
	foreach(cell, tasks)
	{
		const GpuSortCitusTask *task = lfirst(cell);
		List *values = list_make2(makeString(pstrdup(task->host)), makeInteger(task->port));

		packed = lappend(packed, lappend(values, makeString(pstrdup(task->sql))));
	}
	return packed;
}

/*
 * Returns the tasks that a plan of a GpuSortTaskScan has, each a GpuSortCitusTask, and sets Citus's plan, NULL in a
 * worker.
 */
List *
gpusort_task_plan_unpack(const CustomScan *plan, Plan **citus)
{
	List *tasks = NIL;
	ListCell *cell;

	*citus = ((LeadersPlan *) list_nth(plan->custom_private, TASK_CITUS))->plan;
	for_each_from(cell, plan->custom_private, TASK_FIRST)
	{
		const List *packed = lfirst(cell);
		GpuSortCitusTask *task = palloc(sizeof(GpuSortCitusTask));

		task->host = strVal(list_nth(packed, TASK_HOST));
		task->port = intVal(list_nth(packed, TASK_PORT));
		task->sql = strVal(list_nth(packed, TASK_SQL));
		tasks = lappend(tasks, task);
	}
	return tasks;
}
