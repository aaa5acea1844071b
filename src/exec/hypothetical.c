/*-------------------------------------------------------------------------
 *
 * hypothetical.c
 *	  rank(), percent_rank() and cume_dist() WITHIN GROUP, of all rows of a GpuSort.
 *
 * PostgreSQL's Agg sorts all rows with one more, which the arguments are, and reads up to that.  Where rows are in
 * order, halving finds how many come before it.  Where rows cannot be read from any number on, those before it
 * are read.  dense_rank() asks how many of them differ, for which they would have to be read: it is left alone.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/hypothetical.h"

#include "executor/executor.h"
#include "utils/fmgroids.h"
#include "utils/sortsupport.h"

/* A column that the rows are sorted by, and what the row that is not among them has in it. */
typedef struct Column
{
	AttrNumber attno;
	SortSupportData order;
	ExprState *argument;
	Datum value;
	bool is_null;
} Column;

struct GpuSortHypothetical
{
	Oid aggregate;
	int ncolumns;
	Column columns[FLEXIBLE_ARRAY_MEMBER];
};

/* Returns what computes an aggregate of rows that are sorted by these columns, in the current memory context. */
GpuSortHypothetical *
gpusort_hypothetical_create(const AggStatePerAggData *aggregate, const GpuSortColumn *columns)
{
	const int ncolumns = list_length(aggregate->aggdirectargs);
	GpuSortHypothetical *hypothetical =
		palloc0(offsetof(GpuSortHypothetical, columns) + ncolumns * sizeof(Column));

	hypothetical->aggregate = aggregate->aggref->aggfnoid;
	hypothetical->ncolumns = ncolumns;
	for (int i = 0; i < ncolumns; i++)
	{
		const GpuSortColumn *key = &columns[i];
		Column *column = &hypothetical->columns[i];

		column->attno = key->attno;
		column->argument = list_nth(aggregate->aggdirectargs, i);
		column->order.ssup_cxt = CurrentMemoryContext;
		column->order.ssup_collation = key->collation;
		column->order.ssup_nulls_first = key->nulls_first;
		PrepareSortSupportFromOrderingOp(key->sort_operator, &column->order);
	}
	return hypothetical;
}

/* Returns true if a row comes before the one that is not among them; for cume_dist() rows that are like it do, too. */
static bool
comes_before(GpuSortHypothetical *hypothetical, TupleTableSlot *row)
{
	for (int i = 0; i < hypothetical->ncolumns; i++)
	{
		Column *column = &hypothetical->columns[i];
		bool is_null;
		const Datum value = slot_getattr(row, column->attno, &is_null);
		const int order = ApplySortComparator(value, is_null, column->value, column->is_null, &column->order);

		if (order != 0)
			return order < 0;
	}
	return hypothetical->aggregate == F_CUME_DIST_ANY;
}

/* Counts the rows that come before by reading them; false if the rows are lost. */
static bool
count_by_reading(GpuSortHypothetical *hypothetical, GpuSortNumberedRows *rows, uint64 *before)
{
	for (*before = 0; *before < gpusort_numbered_count(rows); (*before)++)
	{
		TupleTableSlot *row = gpusort_numbered_next(rows);

		if (row == NULL)
			return false;
		if (!comes_before(hypothetical, row))
			break;
	}
	return true;
}

/* Counts them by halving. */
static bool
count_by_halving(GpuSortHypothetical *hypothetical, GpuSortNumberedRows *rows, uint64 *before)
{
	uint64 high = gpusort_numbered_count(rows);

	*before = 0;
	while (*before < high)
	{
		const uint64 middle = *before + (high - *before) / 2;
		TupleTableSlot *row = gpusort_numbered_row(rows, middle);

		if (row == NULL)
			return false;
		if (comes_before(hypothetical, row))
			*before = middle + 1;
		else
			high = middle;
	}
	return true;
}

/* Computes the aggregate of rows; false if they are lost. */
bool
gpusort_hypothetical_value(GpuSortHypothetical *hypothetical, GpuSortNumberedRows *rows, ExprContext *context,
						   Datum *value)
{
	const uint64 count = gpusort_numbered_count(rows);
	uint64 before = 0;

	for (int i = 0; i < hypothetical->ncolumns; i++)
	{
		Column *column = &hypothetical->columns[i];

		column->value = ExecEvalExpr(column->argument, context, &column->is_null);
	}
	if (count > 0)
	{
		if (!gpusort_numbered_go_to(rows, count - 1))
			return false;
		if (!(rows->next == 0 ? count_by_reading(hypothetical, rows, &before)
							  : count_by_halving(hypothetical, rows, &before)))
			return false;
	}
	switch (hypothetical->aggregate)
	{
		case F_PERCENT_RANK_ANY:
			*value = Float8GetDatum(count == 0 ? 0.0 : (double) before / (double) count);
			break;
		case F_CUME_DIST_ANY:
			*value = Float8GetDatum((double) (before + 1) / (double) (count + 1));
			break;
		default:
			*value = Int64GetDatum(before + 1);
			break;
	}
	return true;
}
