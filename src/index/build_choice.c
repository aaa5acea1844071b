/*-------------------------------------------------------------------------
 *
 * build_choice.c
 *	  Decides whether gpusort is to build an index, and says why not.
 *
 * What is not known to be right is left to PostgreSQL: other tables than heaps, columns whose order is not one of those
 * that have keys, exclusion constraints.
 *
 * Then time decides, by the model of sorts and the constants of index builds (plan/model): both ways scan the heap and
 * form tuples, in as many processes; PostgreSQL's sorts them, merges what its processes have sorted, and makes pages of
 * tuples that lie as the scan has left them; here they come from the service in order, and all processes make the
 * pages.  gpusort.force overrules time.
 *
 *-------------------------------------------------------------------------
 */
#include "index/build_choice.h"

#include <math.h>

#include "access/heapam.h"
#include "access/nbtree.h"
#include "access/sysattr.h"
#include "catalog/pg_operator_d.h"
#include "catalog/pg_type_d.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "optimizer/plancat.h"
#include "plan/admission.h"
#include "plan/model/constants.h"
#include "plan/model/shape.h"
#include "plan/model/sort_time.h"
#include "settings.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

/* Bytes of a value of any length, where nothing is known of its column. */
#define UNKNOWN_WIDTH 32

#define TIME(constant) gpusort_constant(GPUSORT_TIME_##constant, false)

/* Finds the operator that an index's key column number i, from 0, is sorted by; false if it is not that alone. */
static bool
find_operator(Relation index, int i, GpuSortColumn *column)
{
	const int16 option = index->rd_indoption[i];
	const int16 strategy = option & INDOPTION_DESC ? BTGreaterStrategyNumber : BTLessStrategyNumber;
	const Oid opfamily = index->rd_opfamily[i];
	const Oid type = index->rd_opcintype[i];
	Oid found_opfamily;
	Oid found_type;
	CompareType order;

	column->attno = i + 1;
	column->sort_operator = get_opfamily_member(opfamily, type, type, strategy);
	column->collation = index->rd_indcollation[i];
	column->nulls_first = (option & INDOPTION_NULLS_FIRST) != 0;
	column->value_type = TupleDescAttr(RelationGetDescr(index), i)->atttypid;
	/* keys go by the operator: it must not be that of another order, too */
	return OidIsValid(column->sort_operator) &&
		get_ordering_op_properties(column->sort_operator, &found_opfamily, &found_type, &order) &&
		found_opfamily == opfamily && found_type == type;
}

/*
 * Finds what an index's tuples are sorted by; columns are palloc'd.  If they cannot be sorted returns false, and why as
 * the rest of a sentence that begins with the index.
 */
bool
gpusort_index_order(Relation index, GpuSortIndexOrder *order, const char **why_not)
{
	const int keys = IndexRelationGetNumberOfKeyAttributes(index);

	order->count = keys + 1;
	order->columns = palloc0(order->count * sizeof(GpuSortColumn));
	for (int i = 0; i < keys; i++)
	{
		GpuSortColumn *column = &order->columns[i];
		const char *why = "is stored as another type";
		bool descending;

		if (!find_operator(index, i, column))
			why = "has an operator class without a key encoding";
		else if (column->value_type != CSTRINGOID &&
				 gpusort_operator_encoding(column->sort_operator, column->value_type, column->collation, &descending,
										   &why) != GPUSORT_ENCODE_NONE)
			continue;
		*why_not = psprintf("column %d %s", i + 1, why);
		return false;
	}
	order->columns[keys].attno = IndexRelationGetNumberOfAttributes(index) + 1;
	order->columns[keys].sort_operator = TIDLessOperator;
	order->columns[keys].value_type = TIDOID;
	return true;
}

/* Returns the bytes that an attribute's values take, about. */
static int
attribute_width(Relation heap, const Form_pg_attribute attribute, AttrNumber column)
{
	int width = 0;

	if (attribute->attlen > 0)
		return attribute->attlen;
	if (column > 0)
		width = get_attavgwidth(RelationGetRelid(heap), column);
	return width > 0 ? width : UNKNOWN_WIDTH;
}

/* Estimates the rows of a table; a partial index may have fewer. */
double
gpusort_index_estimate_rows(Relation heap)
{
	BlockNumber pages;
	double all_visible;
	double rows;

	estimate_rel_size(heap, NULL, &pages, &rows, &all_visible);
	return rows * Min((double) RelationGetNumberOfBlocks(heap) / Max(pages, 1), 1); /* new ones are thought to grow */
}

/* Estimates the rows and their width. */
static void
estimate(Relation heap, Relation index, const IndexInfo *info, GpuSortIndexOrder *order)
{
	const TupleDesc desc = RelationGetDescr(index);

	order->rows = gpusort_index_estimate_rows(heap);
	order->width = sizeof(IndexTupleData);
	for (int i = 0; i < desc->natts; i++)
		order->width += attribute_width(heap, TupleDescAttr(desc, i), info->ii_IndexAttrNumbers[i]);
}

/* Makes the column of a plan that stands for an attribute of the index: the table's column, or else a NULL. */
static Expr *
make_expression(Relation index, const IndexInfo *info, int i)
{
	const Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(index), i);

	if (info->ii_IndexAttrNumbers[i] > 0)
		return (Expr *) makeVar(1, info->ii_IndexAttrNumbers[i], attribute->atttypid, attribute->atttypmod,
								attribute->attcollation, 0);
	return (Expr *) makeNullConst(attribute->atttypid, attribute->atttypmod, attribute->attcollation);
}

/* Makes a plan that sorts the table as the index is sorted, for those who know plans; *rtable is its table. */
static Sort *
make_sort(Relation heap, Relation index, const IndexInfo *info, const GpuSortIndexOrder *order, List **rtable)
{
	RangeTblEntry *entry = makeNode(RangeTblEntry);
	SeqScan *scan = makeNode(SeqScan);
	Sort *sort = makeNode(Sort);
	Plan *input = (Plan *) scan;
	const int natts = RelationGetDescr(index)->natts;
	Var *tid;

	entry->rtekind = RTE_RELATION;
	entry->relid = RelationGetRelid(heap);
	entry->relkind = heap->rd_rel->relkind;
	*rtable = list_make1(entry);
	scan->scan.scanrelid = 1;
	for (int i = 0; i < natts; i++)
		input->targetlist = lappend(input->targetlist, makeTargetEntry(make_expression(index, info, i), i + 1, NULL, false));
	tid = makeVar(1, SelfItemPointerAttributeNumber, TIDOID, -1, InvalidOid, 0);
	input->targetlist = lappend(input->targetlist, makeTargetEntry((Expr *) tid, natts + 1, NULL, false));
	input->plan_rows = order->rows;
	input->plan_width = order->width;
	outerPlan(sort) = input;
	sort->plan.targetlist = input->targetlist;
	sort->plan.plan_width = order->width;
	sort->numCols = order->count;
	sort->sortColIdx = palloc(order->count * sizeof(AttrNumber));
	sort->sortOperators = palloc(order->count * sizeof(Oid));
	sort->collations = palloc(order->count * sizeof(Oid));
	sort->nullsFirst = palloc(order->count * sizeof(bool));
	for (int i = 0; i < order->count; i++)
	{
		sort->sortColIdx[i] = order->columns[i].attno;
		sort->sortOperators[i] = order->columns[i].sort_operator;
		sort->collations[i] = order->columns[i].collation;
		sort->nullsFirst[i] = order->columns[i].nulls_first;
	}
	return sort;
}

/* Returns false, and why, if gpusort builds no index of such a table, or no such index. */
static bool
is_legal(Relation heap, Relation index, const IndexInfo *info, const char **why_not)
{
	if (heap->rd_tableam != GetHeapamTableAmRoutine())
		*why_not = "its table is not a heap";
	else if (info->ii_ExclusionOps != NULL)
		*why_not = "it is for an exclusion constraint";
	else if (RelationGetNumberOfBlocks(index) != 0)
		*why_not = "the index is not empty";
	else
		return true;
	return false;
}

/* Returns the ns that PostgreSQL's sort takes for so many rows, until one is out; processes: those that sort. */
double
gpusort_index_native_sort_time(const GpuSortTime *time, double rows, double processes)
{
	const double comparison = NATIVE_SORT_TIME * TIME(COMPARISON) * time->string_factor;
	const double sort = comparison * log2(Max(rows / processes, 2)) * (time->in_order ? TIME(IN_ORDER) : 1);
	const double merge = comparison * log2(processes);

	return rows * (sort / processes + merge);
}

/* Returns the ns that PostgreSQL's build takes for so many rows, beside the scan; processes: those that sort. */
static double
native_time(const GpuSortTime *time, double rows, double processes)
{
	return gpusort_index_native_sort_time(time, rows, processes) + rows * (TIME(SORT_EMIT_ROW) + TIME(LOAD_ROW));
}

/* Returns the same for ours. */
static double
own_time(const GpuSortTime *time, double rows, double processes)
{
	return time->setup +
		rows * ((time->ingest + time->compare + time->emit + TIME(LOAD_SORTED_ROW)) / processes + time->order);
}

/* Returns true if our build as a whole is faster by the margin. */
static bool
is_faster(const GpuSortTime *time, double rows, int workers)
{
	const double processes = (workers + 1) / gpusort_crowd(workers);
	const double scan = rows * TIME(FORM_ROW) / processes;

	return scan + native_time(time, rows, processes) > GPUSORT_MARGIN * (scan + own_time(time, rows, processes));
}

/*
 * Returns true if the service may sort rows by an order that gpusort_index_order has found; *time becomes what
 * that takes.  Else why not, as the rest of a sentence.  May start the service.
 */
bool
gpusort_index_is_sortable(Relation heap, Relation index, const IndexInfo *info, const GpuSortIndexOrder *order,
						  GpuSortTime *time, const char **why_not)
{
	GpuSortCandidate candidate = {
		.rows = order->rows,
		.width = order->width,
		.processes = 1,
		.tell = gpusort_log_decisions};
	GpuSortAdmission admission;
	List *rtable;
	Sort *sort = make_sort(heap, index, info, order, &rtable);

	candidate.sort = sort;
	admission = gpusort_admit(&candidate);
	if (admission.encodable == 0)
	{
		*why_not = admission.why_not;
		return false;
	}
	*time = gpusort_node_sort_time(rtable, sort, order->rows, &admission);
	return true;
}

/*
 * Returns true if gpusort is to build the index, and fills in *order; else why not, as the rest of a sentence.  May
 * start the service.
 */
bool
gpusort_index_is_chosen(Relation heap, Relation index, const IndexInfo *info, GpuSortIndexOrder *order,
						const char **why_not)
{
	GpuSortTime time;

	*why_not = "";
	if (!is_legal(heap, index, info, why_not) || !gpusort_index_order(index, order, why_not))
		return false;
	estimate(heap, index, info, order);
	if (!gpusort_index_is_sortable(heap, index, info, order, &time, why_not))
		return false;
	if (gpusort_force || is_faster(&time, order->rows, info->ii_ParallelWorkers))
		return true;
	*why_not = "gpusort would save too little";
	return false;
}
