/*-------------------------------------------------------------------------
 *
 * ties.c
 *	  Runs of rows with equal truncated keys, which need a tie-break: text beyond its
 *	  prefix, numerics of many digits.
 *
 * The service marks the rows of such a run (GPUSORT_ROW_TIE_NEXT on all but the
 * last); here they are put into order by PostgreSQL's own comparators.  A run
 * that lies within one chunk is sorted as an array of pointers into it.  One
 * that goes on in the next chunk, or holds rows kept in the overflow file, is
 * handed to a tuplesort, which keeps to work_mem whatever the length of the run.
 *
 * Rows that are equal to the comparators too stay in the order in which they
 * arrived, which is the one they were put in: neither sort is stable, so the row's
 * place in its chunk, or its number in the run, is compared last.
 *
 * Legal order: create, (collect, next until it returns false)*.  A run in hand
 * keeps the reader's chunk: no chunk may be asked for before it is emitted.
 * Everything belongs to the memory context that was current at create, but for
 * the tuplesort, which ends with its run or with reset.
 *
 *-------------------------------------------------------------------------
 */
#include "sort/ties.h"

#include "client/elapsed.h"
#include "miscadmin.h"
#include "server/reasons.h"
#include "utils/memutils.h"
#include "utils/sortsupport.h"

/*
 * A row of a run, with its value of the first column to compare: most comparisons end there.  Its values of the others
 * are taken out when they are first asked for, because rows that are equal throughout are compared several times.
 */
typedef struct TieRow
{
	char *row;
	Datum value;
	bool isnull;
	bool has_others;
	NullableDatum *others; /* of the columns from the second on, if has_others */
} TieRow;

struct GpuSortTies
{
	int count;
	GpuSortColumn *columns;
	SortSupport supports;
	GpuSortRows *rows_of;
	MemoryContext context;
	MemoryContext scratch; /* what comparators leave behind */

	/* the current run: one of the two */
	TieRow *rows; /* in order, from next to nrows */
	int nrows;
	int next;
	int capacity;
	NullableDatum *others; /* room for the rows' values of all columns but the first */
	Tuplesortstate *sort;  /* NULL: the array */

	double ms; /* spent on runs so far */
};

/*
 * Makes what orders runs by these columns, those that the keys do not decide.
 * Belongs to the current memory context.
 */
GpuSortTies *
gpusort_ties_create(GpuSortColumn *columns, int count, GpuSortRows *rows)
{
	GpuSortTies *ties = palloc0(sizeof(GpuSortTies));

	ties->count = count;
	ties->columns = columns;
	ties->rows_of = rows;
	ties->context = CurrentMemoryContext;
	ties->scratch = AllocSetContextCreate(CurrentMemoryContext, "gpusort ties", ALLOCSET_DEFAULT_SIZES);
	ties->capacity = 256;
	ties->rows = palloc(ties->capacity * sizeof(TieRow));
	ties->others = palloc(ties->capacity * (count - 1) * sizeof(NullableDatum));
	ties->supports = palloc0(count * sizeof(SortSupportData));
	for (int i = 0; i < count; i++)
	{
		SortSupport support = &ties->supports[i];

		support->ssup_cxt = CurrentMemoryContext;
		support->ssup_collation = columns[i].collation;
		support->ssup_nulls_first = columns[i].nulls_first;
		support->ssup_attno = columns[i].attno;
		PrepareSortSupportFromOrderingOp(columns[i].sort_operator, support);
	}
	return ties;
}

/* Returns a row's values of the columns from the second on, on which those before it have to agree. */
static const NullableDatum *
others_of(const GpuSortTies *ties, TieRow *tied)
{
	if (!tied->has_others)
	{
		tied->has_others = true;
		for (int i = 1; i < ties->count; i++)
		{
			NullableDatum *other = &tied->others[i - 1];

			other->value =
				gpusort_rows_value(ties->rows_of, tied->row, ties->supports[i].ssup_attno, &other->isnull);
		}
	}
	return tied->others;
}

static int
compare_rows(const void *a, const void *b, void *arg)
{
	const TieRow *left = a;
	const TieRow *right = b;
	GpuSortTies *ties = arg;
	int first = ApplySortComparator(left->value, left->isnull, right->value, right->isnull, &ties->supports[0]);

	CHECK_FOR_INTERRUPTS();
	if (first != 0)
		return first;
	if (ties->count > 1)
	{
		const NullableDatum *left_others = others_of(ties, (TieRow *) a);
		const NullableDatum *right_others = others_of(ties, (TieRow *) b);

		for (int i = 1; i < ties->count; i++)
		{
			const NullableDatum *of_left = &left_others[i - 1];
			const NullableDatum *of_right = &right_others[i - 1];
			int order =
				ApplySortComparator(of_left->value, of_left->isnull, of_right->value, of_right->isnull, &ties->supports[i]);

			if (order != 0)
				return order;
		}
	}
	return left->row < right->row ? -1 : left->row > right->row;
}

/* Reads the next row of a run, from the next chunk if need be; NULL, with a reason, if the sort is lost. */
static char *
next_of_run(GpuSortReader *reader, GpuSortFailure *failure)
{
	char *row;

	if (gpusort_reader_at_end(reader) && !gpusort_reader_next_chunk(reader, failure))
	{
		if (failure->reason == GPUSORT_REASON_NONE)
			(void) gpusort_failure_set(failure, GPUSORT_REASON_VERIFY, "a run of ties has no end");
		return NULL;
	}
	row = gpusort_reader_row(reader);
	if (row == NULL)
		*failure = reader->failure;
	return row;
}

/*
 * Reads the run that begins with first,
 * the row that the reader has just read, and orders it;
 * false, with a reason, if the sort is lost.  Errors: those of comparators.
 */
bool
gpusort_ties_collect(GpuSortTies *ties, GpuSortReader *reader, char *first, GpuSortFailure *failure)
{
	MemoryContext caller = MemoryContextSwitchTo(ties->context);
	GpuSortRows *rows = ties->rows_of;
	instr_time start;
	char *row = first;
	bool overflows = false;

	INSTR_TIME_SET_CURRENT(start);
	ties->nrows = 0;
	ties->next = 0;
	for (;;)
	{
		if (ties->nrows == ties->capacity)
		{
			ties->capacity *= 2;
			ties->rows = repalloc_huge(ties->rows, ties->capacity * sizeof(TieRow));
			ties->others =
				repalloc_huge(ties->others, ties->capacity * (ties->count - 1) * sizeof(NullableDatum));
		}
		ties->rows[ties->nrows++].row = row;
		overflows |= (gpusort_row_flags(row) & GPUSORT_ROW_OVERFLOW) != 0;
		if (!(gpusort_row_flags(row) & GPUSORT_ROW_TIE_NEXT) || gpusort_reader_at_end(reader))
			break;
		row = next_of_run(reader, failure);
		if (row == NULL)
		{
			MemoryContextSwitchTo(caller);
			return false;
		}
	}

	if (!(gpusort_row_flags(row) & GPUSORT_ROW_TIE_NEXT) && !overflows)
	{
		MemoryContextSwitchTo(ties->scratch);
		for (int i = 0; i < ties->nrows; i++)
		{
			TieRow *tied = &ties->rows[i];

			tied->has_others = false;
			tied->others = &ties->others[(size_t) i * (ties->count - 1)];
			tied->value = gpusort_rows_value(rows, tied->row, ties->supports[0].ssup_attno, &tied->isnull);
		}
		qsort_arg(ties->rows, ties->nrows, sizeof(TieRow), compare_rows, ties);
		MemoryContextReset(ties->scratch);
	}
	else
	{
		bool goes_on;
		int64 number = 0;

		ties->sort = rows->kind->tuplesort_begin(rows, ties->columns, ties->count, true, TUPLESORT_NONE);
		while (number < ties->nrows)
		{
			rows->kind->tuplesort_put_back(rows, ties->sort, ties->rows[number].row, true, number);
			number++;
		}
		goes_on = (gpusort_row_flags(row) & GPUSORT_ROW_TIE_NEXT) != 0;
		while (goes_on)
		{
			CHECK_FOR_INTERRUPTS();
			row = next_of_run(reader, failure);
			if (row == NULL)
			{
				MemoryContextSwitchTo(caller);
				return false;
			}
			goes_on = (gpusort_row_flags(row) & GPUSORT_ROW_TIE_NEXT) != 0;
			rows->kind->tuplesort_put_back(rows, ties->sort, row, true, number++);
		}
		tuplesort_performsort(ties->sort);
	}
	ties->ms += gpusort_ms_since(start);
	MemoryContextSwitchTo(caller);
	return true;
}

/* Shows the next row of the run, valid until the next call; NULL after the last. */
void *
gpusort_ties_next(GpuSortTies *ties)
{
	GpuSortRows *rows = ties->rows_of;

	if (ties->sort != NULL)
	{
		void *row = rows->kind->tuplesort_get(rows, ties->sort, true, true);

		if (row != NULL)
			return row;
		tuplesort_end(ties->sort);
		ties->sort = NULL;
		ties->nrows = 0;
		return NULL;
	}
	if (ties->next >= ties->nrows)
		return NULL;
	return rows->kind->show(rows, ties->rows[ties->next++].row);
}

/* Drops the current run. */
void
gpusort_ties_reset(GpuSortTies *ties)
{
	if (ties->sort != NULL)
		tuplesort_end(ties->sort);
	ties->sort = NULL;
	ties->nrows = 0;
	ties->next = 0;
}

/* Returns the milliseconds spent on runs so far. */
double
gpusort_ties_ms(const GpuSortTies *ties)
{
	return ties->ms;
}
