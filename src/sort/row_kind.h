/*-------------------------------------------------------------------------
 *
 * row_kind.h
 *	  Kinds of rows: the methods that put rows into chunks and take them out again.
 *
 * A kind is a constant table of methods; the rows of one sort, with what the kind needs to know of them, are a
 * struct that begins with GpuSortRows.  What all kinds have in common is a row's form in a chunk, and in the memory of
 * first rows and in the overflow file:
 *
 *	  | length, uint32 | flags, uint8 | the kind's own, at least 11 bytes |
 *
 * begun at a multiple of 8, of at least GPUSORT_ROW_BYTES_MIN bytes (row.h).
 *
 *	  kind		   file			a row in a chunk							GpuSortRow.tuple			shown as
 *	  heap rows	   heap_rows.c	MinimalTuple, or two (rowform.c)		a heap tuple's end		TupleTableSlot
 *	  counted rows	   counted_rows.c	number, MinimalTuple				the same				TupleTableSlot
 *	  index tuples	   index_rows.c	IndexTuple and whether it is dead		the same				the same
 *	  table tuples	   table_rows.c	whole heap tuple						the same				the same
 *	  single datums	   datum_rows.c	value									none: values[0]			GpuSortDatum
 *
 * To add a kind: a file with its methods, its put_rows made by put_rows.h; nothing else asks which kind it is.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ROW_KIND_H
#define GPUSORT_ROW_KIND_H

#include "compat.h"

#include "client/failure.h"
#include "keys/keys.h"
#include "sort/overflow.h"
#include "sort/row.h"
#include "sort/source.h"
#include "utils/tuplesort.h"

typedef struct GpuSortRows GpuSortRows;
struct GpuSortInput;
struct GpuSortWriter;

typedef struct GpuSortRowKind
{
	/*
	 * ROWS OF A SOURCE.  put_rows writes rows of the input into chunks, until there are none or *stop, which may be
	 * NULL, says that none are wanted.  false: the input's next row was not taken, as gpusort_put_rows has it.
	 */
	bool (*put_rows)(GpuSortRows *rows, struct GpuSortWriter *writer, struct GpuSortInput *input,
					 const volatile bool *stop, GpuSortFailure *failure);

	/* Makes a row in memory, palloc'd, of a row of a source. */
	char *(*copy)(GpuSortRows *rows, const GpuSortRow *row);

	/*
	 * Makes a row of a source of one in memory, with so many values;
	 * it points into that, and is valid until the next call.
	 */
	void (*open)(GpuSortRows *rows, char *copy, int attributes, GpuSortRow *row);

	/*
	 * ROWS IN MEMORY, a chunk or whatever else.  value returns that of an attribute (1-based); it may point into the
	 * row.  show returns what the sort's reader gets of a row, valid until the row goes and until the next call; to be
	 * called once for each row.
	 */
	Datum (*value)(const GpuSortRows *rows, const char *row, AttrNumber attno, bool *isnull);
	void *(*show)(GpuSortRows *rows, char *row);

	/* Nothing is shown any more. */
	void (*clear)(GpuSortRows *rows);

	/*
	 * POSTGRESQL'S OWN SORT, by these columns, within work_mem; options are tuplesort's.  It belongs to the current
	 * memory context.  numbered: rows that are equal stay in the order of their numbers, where the kind has one at
	 * all.  get returns what show would, valid until the next call; NULL after the last row.
	 */
	Tuplesortstate *(*tuplesort_begin)(GpuSortRows *rows, const GpuSortColumn *columns, int count, bool numbered,
									   int options);
	void (*tuplesort_put)(GpuSortRows *rows, Tuplesortstate *sort, const GpuSortRow *row);
	void (*tuplesort_put_back)(GpuSortRows *rows, Tuplesortstate *sort, char *row, bool numbered, int64 number);
	void *(*tuplesort_get)(GpuSortRows *rows, Tuplesortstate *sort, bool numbered, bool forward);
} GpuSortRowKind;

/* The rows of a sort. */
struct GpuSortRows
{
	const GpuSortRowKind *kind;
	bool counted;             /* each carries the number of equal rows that it stands for (counted_rows.c) */
	MemoryContext context;    /* the context that this belongs to */
	GpuSortOverflow overflow; /* long rows of the current sort */
	char *fetched;            /* a long row in memory, or NULL */
};

/* Returns the value of an attribute (1-based) of a row in memory; it may point into that. */
static inline Datum
gpusort_rows_value(const GpuSortRows *rows, const char *row, AttrNumber attno, bool *isnull)
{
	return rows->kind->value(rows, row, attno, isnull);
}

/*
 * Returns the row that one in a chunk stands for: that is itself, or a long one, in memory until the next call, or
 * gpusort_rows_clear.  Errors: those of the overflow file.
 */
static inline char *
gpusort_rows_fetch(GpuSortRows *rows, char *row)
{
	MemoryContext caller;

	if (likely(!(gpusort_row_flags(row) & GPUSORT_ROW_OVERFLOW)))
		return row;
	if (rows->fetched != NULL)
		pfree(rows->fetched);
	rows->fetched = NULL;
	caller = MemoryContextSwitchTo(rows->context);
	rows->fetched = gpusort_overflow_fetch(&rows->overflow, row);
	if (rows->counted)
		gpusort_row_set_count(rows->fetched, gpusort_row_count(row));
	MemoryContextSwitchTo(caller);
	return rows->fetched;
}

/*
 * Moves a long row of a source to an overflow file, and writes at to what stands for it; returns the length of that in
 * bytes.  Errors: those of the file, and of detoasting.
 */
static inline Size
gpusort_rows_store(GpuSortRows *rows, const GpuSortRow *row, GpuSortOverflow *overflow, char *to)
{
	char *copy = rows->kind->copy(rows, row);
	Size length = gpusort_overflow_store(overflow, copy, to);

	pfree(copy);
	return length;
}

/* Nothing is shown, or fetched, any more. */
static inline void
gpusort_rows_clear(GpuSortRows *rows)
{
	rows->kind->clear(rows);
	if (rows->fetched != NULL)
		pfree(rows->fetched);
	rows->fetched = NULL;
}

#endif /* GPUSORT_ROW_KIND_H */
