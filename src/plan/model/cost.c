/*-------------------------------------------------------------------------
 *
 * cost.c
 *	  What the planner thinks that a GpuSort costs over its input.
 *
 * Costs are in PostgreSQL's unit, and fitted so that GpuSort's are to those of
 * PostgreSQL's sort as their times are; doc/design.md says how.  setup_cost is
 * what a sort costs before its first row: the service's answer and the first
 * chunk.  row_cost is what a row without a byte costs from ingest to emit.  Parallel
 * processes share the ingest; below LIMIT only the first rows are emitted.  Settings
 * and constants come from bench/costs; see doc/measurements.md.
 *
 * What does not fit the memory is written to runs and read again, once, at what PostgreSQL's sort
 * takes a page of its own runs for; processes share that as they share PostgreSQL's.
 *
 * They were fitted to PostgreSQL 15.  A later version that sorts faster has the same estimate
 * of its own sort; so GpuSort costs the more there, by NATIVE_SORT_TIME (compat.h).
 *
 *-------------------------------------------------------------------------
 */
#include "plan/model/cost.h"

#include <math.h>

#include "access/stratnum.h"
#include "catalog/pg_statistic.h"
#include "column_stats.h"
#include "keys/first_level.h"
#include "miscadmin.h"
#include "node.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "settings.h"
#include "table_column.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/selfuncs.h"
#include "utils/syscache.h"

/* So many bytes of a row cost once more what the row does, over what PostgreSQL's sort takes for them. */
#define BYTES_LIKE_A_ROW 1000.0

/*
 * A sort's cost over its time, in units that take PostgreSQL's sort as long: settings were fitted with a margin, and
 * to two cores without a GPU.  With one a sort takes half of the time.
 */
#define HOST_MARGIN 1.7
#define CUDA_MARGIN 3.3

/*
 * What comes to the setup where a GPU sorts, for launches and copies that wait
 * for each other: so much setup again, of any key.
 */
#define CUDA_SETUPS 2.0

/* What comes to the setup of a connection's first sort, which maps the staging pool: so much setup again. */
#define FIRST_USE_SETUPS 4.0

/*
 * Rows that are in order already: PostgreSQL's sort notices, is done in a third
 * of the time that it is thought to take, and wins up to 10,000 rows.
 */
#define IN_ORDER_CORRELATION 0.999
#define IN_ORDER_SETUPS      4.0

/*
 * Strings cost PostgreSQL's sort two to three times as much as its estimate,
 * which takes all keys for alike.  GpuSort's has to be too low by as much.
 */
#define STRING_KEY_FACTOR 0.5

/*
 * The parts of a row's cost: ingest; the sort; the rest is emit.  A GPU's sort is next to nothing,
 * the host's copies rows in order with the cores that the backends would have.
 */
#define INGEST_PART     0.5
#define HOST_ORDER_PART 0.15
#define CUDA_ORDER_PART 0.05

/* A row that is kept in a run in the host's memory, beside a GPU: so much of a row's cost to write it, and again to read it. */
#define MEMORY_RUN_PART 0.1

/* Pages of a run in a file are read, and written, one after another as often as PostgreSQL's sort expects of its own. */
#define RUN_PAGE_COST (seq_page_cost * 0.75 + random_page_cost * 0.25)

/* A row that LIMIT does not ask for is read and its key made, but it is dropped then: so much of the ingest. */
#define DROPPED_PART 0.55

/*
 * PostgreSQL's sort of the first rows alone: every row is copied and compared with the last of
 * the heap; one that goes into it, or comes out of it at the end, takes so much for each level.
 */
#define TOP_N_ROW   (3.0 * cpu_operator_cost)
#define TOP_N_LEVEL (3.6 * cpu_operator_cost)

/* A comparison of strings takes so many of a number's there, at least: the heap knows no abbreviated keys. */
#define TOP_N_STRING 2.5

/* Bytes that a row in the heap has more than cost_sort knows; where the heap does not fit, all rows are sorted. */
#define TOP_N_OVERHEAD 64.0

/* Returns true if the rows of a table lie in the order of a column, as far as statistics say. */
static bool
column_is_in_order(Oid table, AttrNumber attno, bool descending)
{
	float correlation = 0;
	HeapTuple tuple = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(table), Int16GetDatum(attno),
									  BoolGetDatum(false));
	AttStatsSlot slot;

	if (!HeapTupleIsValid(tuple))
		return false;
	if (get_attstatsslot(&slot, tuple, STATISTIC_KIND_CORRELATION, InvalidOid, ATTSTATSSLOT_NUMBERS))
	{
		correlation = slot.numbers[0];
		free_attstatsslot(&slot);
	}
	ReleaseSysCache(tuple);
	return descending ? correlation <= -IN_ORDER_CORRELATION : correlation >= IN_ORDER_CORRELATION;
}

/*
 * What comparing costs per row, where the encoded columns have so many different
 * values: as cost_sort has it, for the rows that are equal in these.
 */
static double
compare_cost(double rows, double groups)
{
	return 2.0 * cpu_operator_cost * log2(Max(rows / groups, 1));
}

/* What all sorts have in common. */
static GpuSortCost
base_cost(const GpuSortAdmission *admission, int width, bool in_order)
{
	GpuSortCost cost;
	double setup = gpusort_setup_cost / NATIVE_SORT_TIME;
	double row = gpusort_row_cost / NATIVE_SORT_TIME * (1 + gpusort_row_bytes(width) / BYTES_LIKE_A_ROW);
	double order_part = admission->cuda ? CUDA_ORDER_PART : HOST_ORDER_PART;
	double run = admission->memory_run_part * MEMORY_RUN_PART * row +
		admission->disk_run_part * gpusort_row_bytes(width) / BLCKSZ * RUN_PAGE_COST;

	cost.margin = admission->cuda ? CUDA_MARGIN : HOST_MARGIN;
	cost.setup = setup;
	if (!admission->pool_mapped)
		cost.setup += setup * FIRST_USE_SETUPS;
	if (in_order)
		cost.setup += setup * IN_ORDER_SETUPS;
	if (admission->string_key)
	{
		cost.setup *= STRING_KEY_FACTOR;
		row *= STRING_KEY_FACTOR;
	}
	cost.ingest = INGEST_PART * row + 2 * run;
	cost.order = order_part * row;
	cost.emit = (1 - INGEST_PART - order_part) * row + cpu_operator_cost;
	if (admission->cuda)
		cost.setup += setup * CUDA_SETUPS;
	cost.compare = 0;
	cost.ties = 0;
	return cost;
}

/* Returns true if the input is a table whose rows lie in the order of the first key. */
static bool
path_is_in_order(PlannerInfo *root, const Path *input, const PathKey *key, bool descending)
{
	ListCell *cell;

	if (input->pathtype != T_SeqScan)
		return false;
	foreach(cell, key->pk_eclass->ec_members)
	{
		const Var *var = (Var *) lfirst_node(EquivalenceMember, cell)->em_expr;

		if (IsA(var, Var) && var->varno == input->parent->relid && var->varlevelsup == 0 &&
			column_is_in_order(planner_rt_fetch(var->varno, root)->relid, var->varattno, descending))
			return true;
	}
	return false;
}

/* How many different values the first columns of pathkeys have. */
static double
estimate_groups(PlannerInfo *root, List *pathkeys, int columns, double rows)
{
	List *exprs = NIL;

	for (int i = 0; i < columns; i++)
	{
		const EquivalenceClass *eclass = list_nth_node(PathKey, pathkeys, i)->pk_eclass;
		Expr *expr = linitial_node(EquivalenceMember, eclass->ec_members)->em_expr;

		/* Columns of set operations have no statistics: the guess that cost_incremental_sort makes. */
		if (bms_is_member(0, pull_varnos(root, (Node *) expr)))
			return DEFAULT_NUM_DISTINCT;
		exprs = lappend(exprs, expr);
	}
	return estimate_num_groups(root, exprs, rows, NULL, NULL);
}

/* A GpuSortValueCallback. */
static void
add_string(Datum value, int count, void *arg)
{
	for (int i = 0; i < count; i++)
		gpusort_first_levels_add(arg, value);
}

/*
 * What comparing costs per row, of so many, where a first key under a libc collation is a table's column and
 * its values tie though they differ: the part of PostgreSQL's comparisons.
 */
static double
tie_cost(const GpuSortTableColumn *column, Oid sort_operator, Oid collation, double rows)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "gpusort statistics", ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	GpuSortColumn key = {.sort_operator = sort_operator, .collation = collation};
	GpuSortFirstLevels *levels = palloc0(sizeof(GpuSortFirstLevels));
	double tied = 0;

	levels->keys = gpusort_keys_create(&key, 1);
	levels->column = &key;
	if (levels->keys->encodable > 0 && gpusort_column_is_libc(&key))
	{
		Oid opfamily;
		Oid type;
		CompareType order;

		get_ordering_op_properties(sort_operator, &opfamily, &type, &order);
		(void) gpusort_column_values(column, type, add_string, levels);
		tied = gpusort_first_levels_tied(levels, rows);
	}
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
	return tied * compare_cost(rows, 1);
}

/* The same for a path's first key: for one of its members, and only of a table's own column. */
static double
path_tie_cost(PlannerInfo *root, const PathKey *key, double rows)
{
	ListCell *cell;

	foreach(cell, key->pk_eclass->ec_members)
	{
		const EquivalenceMember *member = lfirst_node(EquivalenceMember, cell);
		const Node *node = strip_implicit_coercions((Node *) member->em_expr);
		const Var *var = (const Var *) node;
		const RangeTblEntry *entry;
		GpuSortTableColumn column;
		Oid less_than;

		if (!IsA(node, Var) || var->varno <= 0 || var->varno >= root->simple_rel_array_size || var->varlevelsup > 0)
			continue;
		entry = planner_rt_fetch(var->varno, root);
		less_than = get_opfamily_member(key->pk_opfamily, member->em_datatype, member->em_datatype, BTLessStrategyNumber);
		if (entry->rtekind != RTE_RELATION || var->varattno <= 0 || !OidIsValid(less_than))
			continue;
		column = (GpuSortTableColumn){.table = entry->relid, .attno = var->varattno};
		return tie_cost(&column, less_than, key->pk_eclass->ec_collation, rows);
	}
	return 0;
}

/* Returns what GpuSort of input's rows by pathkeys costs over the input, for a sort that was admitted. */
GpuSortCost
gpusort_path_cost(PlannerInfo *root, const Path *input, List *pathkeys, const GpuSortAdmission *admission)
{
	bool in_order = path_is_in_order(root, input, linitial_node(PathKey, pathkeys), admission->descending);
	GpuSortCost cost = base_cost(admission, input->pathtarget->width, in_order);

	if (admission->encodable < list_length(pathkeys))
		cost.compare = compare_cost(input->rows, estimate_groups(root, pathkeys, admission->encodable, input->rows));
	if (admission->libc_key)
		cost.ties = path_tie_cost(root, linitial_node(PathKey, pathkeys), input->rows);
	cost.compare += cost.ties;
	return cost;
}

/*
 * Returns true if a finished Sort's input is a table whose rows lie in the order of the
 * first key.  Under another type or collation a column may have another order.
 */
static bool
sort_is_in_order(List *rtable, const Sort *sort, bool descending)
{
	const Plan *child = outerPlan(sort);
	const TargetEntry *key = get_tle_by_resno(child->targetlist, sort->sortColIdx[0]);
	GpuSortTableColumn column;

	return IsA(child, SeqScan) && key != NULL && IsA(key->expr, Var) &&
		gpusort_find_table_column(rtable, child, key->resno, &column) &&
		column_is_in_order(column.table, column.attno, descending);
}

/* How many different values a column has among so many rows; 1 if statistics do not say. */
static double
column_groups(Oid table, AttrNumber column, double rows)
{
	double groups = 1;
	HeapTuple tuple = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(table), Int16GetDatum(column),
									  BoolGetDatum(false));

	if (!HeapTupleIsValid(tuple))
		return 1;
	groups = ((Form_pg_statistic) GETSTRUCT(tuple))->stadistinct;
	ReleaseSysCache(tuple);
	return Max(groups < 0 ? -groups * rows : groups, 1);
}

/* The same as gpusort_path_cost for what takes the place of a finished Sort of so many rows. */
GpuSortCost
gpusort_sort_node_cost(List *rtable, const Sort *sort, double rows, const GpuSortAdmission *admission)
{
	const Plan *child = outerPlan(sort);
	GpuSortCost cost = base_cost(admission, child->plan_width, sort_is_in_order(rtable, sort, admission->descending));
	GpuSortTableColumn column;

	if (admission->encodable < sort->numCols)
	{
		double groups = 1;

		for (int i = 0; i < admission->encodable; i++)
		{
			if (gpusort_find_table_column(rtable, child, sort->sortColIdx[i], &column) && !column.one_of_several)
				groups *= column_groups(column.table, column.attno, rows);
		}
		cost.compare = compare_cost(rows, Min(groups, rows));
	}
	if (admission->libc_key && gpusort_find_table_column(rtable, child, sort->sortColIdx[0], &column))
		cost.ties = tie_cost(&column, sort->sortOperators[0], sort->collations[0], rows);
	cost.compare += cost.ties;
	return cost;
}

/*
 * Returns what PostgreSQL's sort costs over its input where it keeps only the first rows, in a heap: in
 * the measure of GpuSort's cost, for its own estimate, made of comparisons alone, is several times too high
 * where few rows are asked for, and too low where many are.  -1 if it would sort all rows.
 */
double
gpusort_top_n_cost(double rows, double first, int width, bool string_key)
{
	double row_bytes = gpusort_row_bytes(width);
	double memory = work_mem * 1024.0;
	double moves;

	if (first >= rows || first * (row_bytes + TOP_N_OVERHEAD) > memory || (rows <= 2 * first && rows * row_bytes <= memory))
		return -1;
	moves = first * (2 + log(rows / first)); /* the first rows, those that displace others, and out at the end */
	return (TOP_N_ROW * rows * (string_key ? TOP_N_STRING * STRING_KEY_FACTOR : 1) + TOP_N_LEVEL * moves * log2(Max(first, 2)) +
			cpu_operator_cost * first) /
		NATIVE_SORT_TIME;
}

/* Returns what a sort of so many rows costs of which the first are asked for: others are dropped while they are taken in. */
GpuSortCost
gpusort_cost_of_first(GpuSortCost cost, double rows, double first)
{
	double taken;

	first = Max(first, 1);
	if (first > rows / GPUSORT_ROWS_PER_WANTED)
		return cost;
	taken = Min(first * (1 + log(rows / first)) / rows, 1);
	cost.ingest *= taken + DROPPED_PART * (1 - taken);
	cost.order *= taken;
	cost.compare *= taken;
	cost.ties *= taken;
	return cost;
}

/* Returns a cost that is so many times as high. */
GpuSortCost
gpusort_cost_scaled(GpuSortCost cost, double factor)
{
	cost.setup *= factor;
	cost.ingest *= factor;
	cost.order *= factor;
	cost.emit *= factor;
	cost.compare *= factor;
	cost.ties *= factor;
	return cost;
}
