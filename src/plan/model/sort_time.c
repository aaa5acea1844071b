/*-------------------------------------------------------------------------
 *
 * sort_time.c
 *	  How long a sort takes over its input: GpuSort's, and PostgreSQL's own.
 *
 * Of a GpuSort a row has three parts, each of which grows with the row's bytes: ingest, which parallel processes
 * share; order, which all wait for; emit, which is the reader's.  Below LIMIT only the first rows
 * are ordered and emitted; where they are few each process finds those of its rows, without the service.
 * gpusort.setup_cost and gpusort.row_cost scale what constants.c has of the setup and
 * of rows: at their defaults the table holds as it is.
 *
 * PostgreSQL's sort compares rows * log2(rows) times; more for strings, of which the C library's
 * collations are the dearest; less for rows that are in order already.  What does not fit work_mem it
 * writes and reads.  A later version that sorts faster takes NATIVE_SORT_TIME of that (compat.h).
 *
 *-------------------------------------------------------------------------
 */
#include "plan/model/sort_time.h"

#include <math.h>

#include "catalog/pg_am_d.h"
#include "catalog/pg_class.h"
#include "facts/table_column.h"
#include "keys/types.h"
#include "miscadmin.h"
#include "node.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "plan/model/constants.h"
#include "plan/model/key_column.h"
#include "plan/model/shape.h"
#include "settings.h"
#include "sort/row.h"
#include "sort/top_rows.h"
#include "utils/selfuncs.h"
#include "utils/syscache.h"
#include "utils/tuplesort.h"

/* The settings at which the table of constants holds as it is. */
#define DEFAULT_SETUP_COST 80.0
#define DEFAULT_ROW_COST   0.03

/*
 * A row that LIMIT does not ask for is read and its key made, but it is dropped then: so much of the ingest.  Where
 * rows come by the page that takes no longer than the scan would for giving the row out, which counts as the input's.
 */
#define DROPPED_PART 0.55

/*
 * A process that finds the first rows by itself takes so much of the time of PostgreSQL's heap, which copies each row
 * before it compares; for rows that are dropped none where they come by the page, likewise.
 */
#define TOP_PART 0.5

/* Bytes that a row in the heap of the first rows has more; where the heap does not fit, all rows are sorted. */
#define TOP_N_OVERHEAD 64.0

/*
 * What comparing takes per row, where the encoded columns have so many different
 * values: as PostgreSQL's sort, for the rows that are equal in these.
 */
static double
compare_time(double rows, double groups)
{
	return NATIVE_SORT_TIME * gpusort_constant(GPUSORT_TIME_COMPARISON, false) * log2(Max(rows / groups, 1));
}

/* How many times as long as a number PostgreSQL's sort takes for a first key of this encoding. */
static double
string_factor(GpuSortEncoding encoding)
{
	const GpuSortKeyType *type = &gpusort_key_types[encoding];

	if (encoding == GPUSORT_ENCODE_NONE || type->string == GPUSORT_STRING_NONE)
		return 1;
	switch (type->source)
	{
		case GPUSORT_SOURCE_LIBC:
			return gpusort_constant(GPUSORT_TIME_STRING_LIBC, false);
		case GPUSORT_SOURCE_ICU:
			return gpusort_constant(GPUSORT_TIME_STRING_ICU, false);
		case GPUSORT_SOURCE_PARTS:
			return gpusort_constant(GPUSORT_TIME_PARTS, false);
		case GPUSORT_SOURCE_ABBREVIATION:
			return gpusort_constant(GPUSORT_TIME_ABBREVIATION, false);
		default:
			return gpusort_constant(GPUSORT_TIME_STRING, false);
	}
}

static GpuSortEncoding
path_key_encoding(const PathKey *key)
{
	const EquivalenceMember *member = linitial_node(EquivalenceMember, key->pk_eclass->ec_members);
	const char *why_not;

	return gpusort_key_encoding(key->pk_opfamily, member->em_datatype, exprType((Node *) member->em_expr),
								key->pk_eclass->ec_collation, &why_not);
}

/* The same for a path's key. */
double
gpusort_string_factor(const PathKey *key)
{
	return string_factor(path_key_encoding(key));
}

/* What all sorts have in common. */
static GpuSortTime
base_time(const GpuSortAdmission *admission, int width, bool in_order)
{
	const bool cuda = admission->cuda;
	const double bytes = gpusort_row_bytes(width);
	const double setup_scale = gpusort_setup_cost / DEFAULT_SETUP_COST;
	double ingest = gpusort_constant(GPUSORT_TIME_INGEST_ROW, cuda);
	double order = gpusort_constant(GPUSORT_TIME_ORDER_ROW, cuda);
	double emit = gpusort_constant(GPUSORT_TIME_EMIT_ROW, cuda);
	double row_scale = gpusort_row_cost / DEFAULT_ROW_COST *
		(1 + bytes * gpusort_constant(GPUSORT_TIME_ROW_BYTE, cuda) / (ingest + order + emit));
	GpuSortTime time = {
		.width = width,
		.setup = gpusort_constant(GPUSORT_TIME_SETUP, cuda) * setup_scale,
		.ingest = ingest * row_scale,
		.order = order * row_scale,
		.emit = emit * row_scale,
		.string_factor = string_factor(admission->first),
		.in_order = in_order,
		.verified = admission->verified,
	};

	if (!admission->pool_mapped)
		time.setup += gpusort_constant(GPUSORT_TIME_FIRST_USE, cuda) * setup_scale;
	time.ingest += admission->memory_run_part * gpusort_constant(GPUSORT_TIME_MEMORY_RUN, cuda) * row_scale +
		admission->disk_run_part * bytes / BLCKSZ * gpusort_constant(GPUSORT_TIME_DISK_PAGE, cuda);
	return time;
}

/* Returns true if the input is a table whose rows lie in the order of the first key. */
bool
gpusort_path_is_in_order(PlannerInfo *root, const Path *input, const PathKey *key)
{
	const bool descending = key->pk_cmptype == COMPARE_GT;
	ListCell *cell;

	if (input->pathtype != T_SeqScan)
		return false;
	foreach(cell, key->pk_eclass->ec_members)
	{
		const Var *var = (Var *) lfirst_node(EquivalenceMember, cell)->em_expr;

		if (IsA(var, Var) && var->varno == input->parent->relid && var->varlevelsup == 0 &&
			gpusort_column_is_in_order(planner_rt_fetch(var->varno, root)->relid, var->varattno, descending))
			return true;
	}
	return false;
}

/* Returns true if the rows of a table's sequential scan come by the page (exec/page_source.c). */
bool
gpusort_table_is_by_page(Oid table)
{
	HeapTuple class = SearchSysCache1(RELOID, ObjectIdGetDatum(table));
	bool is_heap = HeapTupleIsValid(class) && ((Form_pg_class) GETSTRUCT(class))->relam == HEAP_TABLE_AM_OID;

	if (HeapTupleIsValid(class))
		ReleaseSysCache(class);
	return is_heap && gpusort_page_scan;
}

/* Returns true if they do, and nothing is computed of them: these, expressions or targets, are columns. */
static bool
scan_is_by_page(Oid table, List *exprs)
{
	ListCell *cell;

	foreach(cell, exprs)
	{
		const Node *node = lfirst(cell);

		if (IsA(node, TargetEntry))
			node = (const Node *) ((const TargetEntry *) node)->expr;
		while (IsA(node, RelabelType))
			node = (const Node *) ((const RelabelType *) node)->arg;
		if (!IsA(node, Var) || ((const Var *) node)->varattno <= 0)
			return false;
	}
	return gpusort_table_is_by_page(table);
}

/* Returns true if all of a path's rows come by the page. */
static bool
path_is_by_page(PlannerInfo *root, const Path *path)
{
	List *exprs = path->pathtarget->exprs;
	ListCell *cell;

	if (IsA(path, ProjectionPath))
		path = ((const ProjectionPath *) path)->subpath;
	else if (IsA(path, AppendPath))
	{
		foreach(cell, ((const AppendPath *) path)->subpaths)
		{
			if (!path_is_by_page(root, lfirst(cell)))
				return false;
		}
		return true;
	}
	return path->pathtype == T_SeqScan && scan_is_by_page(planner_rt_fetch(path->parent->relid, root)->relid, exprs);
}

/* Returns true if all of a finished plan's rows come by the page. */
static bool
plan_is_by_page(List *rtable, const Plan *plan)
{
	ListCell *cell;

	if (IsA(plan, Append))
	{
		foreach(cell, ((const Append *) plan)->appendplans)
		{
			if (!plan_is_by_page(rtable, lfirst(cell)))
				return false;
		}
		return true;
	}
	return IsA(plan, SeqScan) &&
		scan_is_by_page(rt_fetch(((const Scan *) plan)->scanrelid, rtable)->relid, plan->targetlist);
}

/* What is sorted by: of a path, or, where sort is not NULL, of a finished plan; so many rows. */
typedef struct SortKeys
{
	int count;
	double rows;

	PlannerInfo *root;
	List *pathkeys;

	List *rtable;
	const Sort *sort;
} SortKeys;

static GpuSortEncoding
key_encoding(const SortKeys *keys, int i)
{
	const Sort *sort = keys->sort;
	const char *why_not;
	bool descending;

	if (sort == NULL)
		return path_key_encoding(list_nth_node(PathKey, keys->pathkeys, i));
	return gpusort_operator_encoding(sort->sortOperators[i], gpusort_sort_value_type(sort, i), sort->collations[i],
									 &descending, &why_not);
}

/* Finds the table's column that a key has its values from; false if it is none. */
static bool
find_key_column(const SortKeys *keys, int i, GpuSortKeyColumn *found)
{
	return keys->sort != NULL
		? gpusort_sort_key_column(keys->rtable, keys->sort, i, found)
		: gpusort_path_key_column(keys->root, list_nth_node(PathKey, keys->pathkeys, i), found);
}

/* Returns true if a path's key is partial, as gpusort_key_is_partial has it. */
static bool
path_key_is_partial(const PathKey *key)
{
	const EquivalenceMember *member = linitial_node(EquivalenceMember, key->pk_eclass->ec_members);

	return gpusort_key_is_partial(path_key_encoding(key), exprType((Node *) member->em_expr),
								  key->pk_eclass->ec_collation);
}

/* How many different values the first columns of a path's keys have. */
static double
path_groups(const SortKeys *keys, int columns)
{
	List *exprs = NIL;

	for (int i = 0; i < columns; i++)
	{
		const EquivalenceClass *eclass = list_nth_node(PathKey, keys->pathkeys, i)->pk_eclass;
		Expr *expr = linitial_node(EquivalenceMember, eclass->ec_members)->em_expr;

		/* Columns of set operations have no statistics: the guess that cost_incremental_sort makes. */
		if (bms_is_member(0, pull_varnos(keys->root, (Node *) expr)))
			return DEFAULT_NUM_DISTINCT;
		exprs = lappend(exprs, expr);
	}
	return estimate_num_groups(keys->root, exprs, keys->rows, NULL, NULL);
}

/* The same of a finished plan's, as far as statistics say. */
static double
node_groups(const SortKeys *keys, int columns)
{
	double groups = 1;

	for (int i = 0; i < columns; i++)
	{
		GpuSortKeyColumn key;

		if (find_key_column(keys, i, &key) && !key.column.one_of_several)
			groups = Min(groups * gpusort_column_groups(&key.column, keys->rows), keys->rows);
	}
	return groups;
}

static double
key_groups(const SortKeys *keys, int columns)
{
	return keys->sort != NULL ? node_groups(keys, columns) : path_groups(keys, columns);
}

/*
 * What comparing takes per row where the key ends with column number i, of strings, for this part of the rows: strings
 * that are equal, and the columns behind of rows that are equal up to there.  There can be more rows than estimated, of
 * as many groups.
 */
static double
end_time(const SortKeys *keys, int i, double part)
{
	const double groups = key_groups(keys, i + 1);
	double equal = gpusort_constant(GPUSORT_TIME_COMPARISON, false) * gpusort_constant(GPUSORT_TIME_STRING, false) *
		Max(1 - groups / keys->rows, 0);
	double behind = 0;

	for (int j = i + 1; j < keys->count; j++)
		behind += string_factor(key_encoding(keys, j));
	return part * (equal + (behind > 0 ? (1 + behind) * compare_time(GPUSORT_GUESS * keys->rows, groups) : 0));
}

/* What columns that are verified take per row, where these have keys: verifying and comparing. */
static double
verified_time(const SortKeys *keys, int columns)
{
	double time = gpusort_constant(GPUSORT_TIME_VERIFY_ROW, false);
	double part = 1;

	for (int i = 0; i < columns && part > 0; i++)
	{
		GpuSortKeyColumn key;
		double ends = 0;

		/* Of what is no table's column nothing is known: processes that share ranges do without ranks then. */
		if (find_key_column(keys, i, &key))
			ends = part * gpusort_column_ends_part(&key);
		else if (keys->sort == NULL && path_key_is_partial(list_nth_node(PathKey, keys->pathkeys, i)))
			ends = part;
		if (ends > 0)
			time += end_time(keys, i, ends);
		part -= ends;
	}
	return time;
}

/*
 * What comparing takes per row where a first key that is partial is a table's column and
 * its values tie though they differ: the part of PostgreSQL's comparisons.
 */
static double
tie_time(const SortKeys *keys)
{
	GpuSortKeyColumn first;

	if (!find_key_column(keys, 0, &first))
		return 0;
	return gpusort_column_tied_part(&first, keys->rows) * compare_time(keys->rows, 1) * string_factor(first.encoding);
}

/* Returns true if none of the keys is of strings, which may be longer than what of them is in the key. */
static bool
are_whole(const SortKeys *keys, const GpuSortAdmission *admission)
{
	for (int i = 0; i < keys->count; i++)
	{
		const GpuSortKeyType *type = &gpusort_key_types[key_encoding(keys, i)];

		if (type->string != GPUSORT_STRING_NONE)
			return false;
	}
	return admission->encodable == keys->count && !admission->verified;
}

/* What a sort by these keys takes over its input, of rows of so many bytes. */
static GpuSortTime
sort_time(const SortKeys *keys, const GpuSortAdmission *admission, int width, bool in_order, bool by_page)
{
	GpuSortTime time = base_time(admission, width, in_order);

	time.by_page = by_page;
	time.whole = are_whole(keys, admission);
	if (admission->encodable < keys->count)
		time.compare = compare_time(keys->rows, key_groups(keys, admission->encodable));
	if (admission->partial_key)
		time.compare += time.ties = tie_time(keys);
	if (admission->verified)
		time.compare += verified_time(keys, admission->encodable);
	return time;
}

/*
 * Returns what sorting input's rows, so many of all processes,
 * by pathkeys takes over the input, for a sort that was admitted.
 */
GpuSortTime
gpusort_path_sort_time(PlannerInfo *root, const Path *input, double rows, List *pathkeys,
					   const GpuSortAdmission *admission)
{
	const SortKeys keys = {.count = list_length(pathkeys), .rows = rows, .root = root, .pathkeys = pathkeys};

	return sort_time(&keys, admission, input->pathtarget->width,
					 gpusort_path_is_in_order(root, input, linitial_node(PathKey, pathkeys)),
					 path_is_by_page(root, input));
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
		gpusort_column_is_in_order(column.table, column.attno, descending);
}

/* The same as gpusort_path_sort_time for a finished Sort of so many rows. */
GpuSortTime
gpusort_node_sort_time(List *rtable, const Sort *sort, double rows, const GpuSortAdmission *admission)
{
	const SortKeys keys = {.count = sort->numCols, .rows = rows, .rtable = rtable, .sort = sort};

	return sort_time(&keys, admission, outerPlan(sort)->plan_width,
					 sort_is_in_order(rtable, sort, admission->descending), plan_is_by_page(rtable, outerPlan(sort)));
}

/* What the first of so many rows take in a heap: as it fills, others in their places, and out at the end. */
static double
moves_time(double rows, double first)
{
	return gpusort_constant(GPUSORT_TIME_HEAP_LEVEL, false) * first * (2 + log(rows / first)) * log2(Max(first, 2));
}

/* PostgreSQL's sort of the first rows, in a heap; -1 if it would sort all rows. */
static double
top_n_time(double rows, double first, int width, double string_factor)
{
	const double row_bytes = gpusort_row_bytes(width);
	const double memory = work_mem * 1024.0;

	if (first >= rows || first * (row_bytes + TOP_N_OVERHEAD) > memory ||
		(rows <= 2 * first && rows * row_bytes <= memory))
		return -1;
	return gpusort_constant(GPUSORT_TIME_HEAP_ROW, false) * rows * string_factor + moves_time(rows, first);
}

/*
 * Returns what PostgreSQL's sort of so many rows takes over its input; first: of which so many are wanted, -1 for
 * all; string_factor: how many times as long as a number a key takes.
 */
double
gpusort_native_sort_time(double rows, int width, double first, double string_factor, bool in_order)
{
	const double memory = work_mem * 1024.0;
	double bytes = rows * (MAXALIGN(SizeofHeapTupleHeader) + MAXALIGN(width));
	double time;

	if (rows < 2)
		return 0;
	if (first >= 0)
	{
		time = top_n_time(rows, first, width, string_factor);
		if (time >= 0)
			return time;
	}
	time = NATIVE_SORT_TIME * gpusort_constant(GPUSORT_TIME_COMPARISON, false) * rows * log2(rows) * string_factor;
	if (in_order)
		time *= gpusort_constant(GPUSORT_TIME_IN_ORDER, false);
	if (bytes > memory)
	{
		double runs = Max(ceil(log(bytes / memory) / log(tuplesort_merge_order(memory))), 1);

		time += 2 * ceil(bytes / BLCKSZ) * runs * gpusort_constant(GPUSORT_TIME_SORT_PAGE, false);
	}
	return time + gpusort_constant(GPUSORT_TIME_SORT_EMIT_ROW, false) * (first >= 0 ? Min(first, rows) : rows);
}

/* Returns true if a process is to find the first of so many rows by itself; -1: all are wanted. */
bool
gpusort_sort_finds_top(const GpuSortTime *time, double rows, double first)
{
	return first >= 0 && gpusort_top_rows_fit(Max(first, 1), rows, time->width, time->index > 0);
}

/* The same as below where each process finds the first of its rows by itself. */
static GpuSortTime
top_time(GpuSortTime time, double rows, double first)
{
	double row = time.by_page ? 0 : gpusort_constant(GPUSORT_TIME_HEAP_ROW, false) * time.string_factor;
	double moves = moves_time(Max(rows, first), Max(first, 1)) / rows;

	time.setup = time.index;
	time.ingest = TOP_PART * (row + moves) * gpusort_row_cost / DEFAULT_ROW_COST;
	time.order = time.compare = time.ties = 0;
	time.emit *= Min(first / rows, 1);
	time.verified = false;
	return time;
}

/*
 * Returns what a sort of so many rows takes a row of which the first are asked for, -1: all.  Others are not emitted,
 * unless all are read to be verified, and where they are many they are dropped while they are taken in.  bounded: the
 * sort is told when it runs.
 */
GpuSortTime
gpusort_sort_time_of_first(GpuSortTime time, double rows, double first, bool bounded)
{
	double taken;

	if (bounded && gpusort_sort_finds_top(&time, rows, first))
		return top_time(time, rows, first);
	if (first < 0 || first >= rows || time.verified)
		return time;
	time.emit *= first / rows;
	first = Max(first, 1);
	if (first > rows / GPUSORT_ROWS_PER_WANTED)
		return time;
	taken = Min(first * (1 + log(rows / first)) / rows, 1);
	time.ingest *= taken + (time.by_page ? 0 : DROPPED_PART * (1 - taken));
	time.order *= taken;
	time.compare *= taken;
	time.ties *= taken;
	return time;
}

/* Returns how much time must at least be gained, in addition to the margin. */
double
gpusort_least_gain(GpuSortGain gain)
{
	static const GpuSortConstant constants[] = {
		[GPUSORT_GAIN_MORE] = GPUSORT_TIME_GAIN,
		[GPUSORT_GAIN_SORT] = GPUSORT_TIME_SORT_GAIN,
		[GPUSORT_GAIN_TOP] = GPUSORT_TIME_TOP_GAIN,
	};

	return gpusort_constant(constants[gain], false) * gpusort_setup_cost / DEFAULT_SETUP_COST;
}

/*
 * The one comparison, of paths and of the Sorts that no path shows: returns true if what takes this time, of which own
 * is its own work, may take the place of what takes native.
 */
bool
gpusort_saves_enough(double time, double own, double native, GpuSortGain gain)
{
	return time + (GPUSORT_MARGIN - 1) * Max(own, 0) + gpusort_least_gain(gain) < native;
}

/* Returns what reading a process's ranges takes beside their rows. */
double
gpusort_ranges_time(void)
{
	return gpusort_constant(GPUSORT_TIME_RANGES, false) * gpusort_setup_cost / DEFAULT_SETUP_COST;
}
