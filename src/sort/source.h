/*-------------------------------------------------------------------------
 *
 * source.h
 *	  Where the rows of a sort come from, in batches.
 *
 * A plan's rows are one source, a batch for each (exec/plan_source.c); the tuples of a heap page are another,
 * whose batch is the page (exec/page_source.c).  The struct of a source begins with a GpuSortSource.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SOURCE_H
#define GPUSORT_SOURCE_H

#include "compat.h"

#include "access/htup_details.h"
#include "facts/table_column.h"

/* The most rows of a batch: those of a heap page. */
#define GPUSORT_BATCH_ROWS MaxHeapTuplesPerPage

/* A row of a source, valid until the next batch is asked for. */
typedef struct GpuSortRow
{
	const Datum *values; /* by attribute: those of sort columns, or all if tuple is not the whole row */
	const bool *nulls;
	const char *tuple; /* bytes that can be copied as they are (row_kind.h), or NULL */
	uint32 length;     /* bytes of tuple */
} GpuSortRow;

/*
 * What a sort of which the first rows alone are wanted tells its source: rows whose value of the first column to sort
 * by is behind this one.  A source that can tell soon may leave them out; other rows it must give.
 */
typedef struct GpuSortThreshold GpuSortThreshold;

/*
 * Returns true if a value is behind a threshold, where little work tells; raises no errors, and leaves no memory.
 */
typedef bool (*GpuSortIsBehind)(GpuSortThreshold *threshold, Datum value, bool isnull);

struct GpuSortThreshold
{
	bool known;    /* there is such a value */
	bool by_value; /* it is of a builtin number, date or time that is passed by value */
	bool isnull;
	Datum value;
	bool equal_wanted; /* rows with this value may be among the first */
	bool descending;
	bool nulls_first;

	/* NULL: nothing but by_value tells. */
	GpuSortIsBehind is_behind;

	/* Brings value up to what is known of the rows that the source has given. */
	void (*settle)(GpuSortThreshold *threshold);
};

typedef struct GpuSortSource GpuSortSource;

typedef struct GpuSortSourceMethods
{
	/*
	 * Fills in rows, 1 to n of them (n is GPUSORT_BATCH_ROWS at most), and returns how many; 0: there are no more, and the
	 * source is not asked again unless it is restarted.  Errors: those of whatever makes the rows.
	 */
	int (*next_batch)(GpuSortSource *source, GpuSortRow *rows, int n);

	/*
	 * Makes the next batch the first one again; called where
	 * may_restart says so, and only before a row has been given out.
	 */
	void (*restart)(GpuSortSource *source);

	/*
	 * Finds the column of a table that attribute attno has the values of, and its type here, to look into its
	 * statistics; false: there is none, or nobody knows.
	 */
	bool (*table_column)(GpuSortSource *source, AttrNumber attno, GpuSortTableColumn *column, Oid *type);
} GpuSortSourceMethods;

struct GpuSortSource
{
	const GpuSortSourceMethods *methods;
	bool may_restart;            /* it can return the same rows again */
	int attributes;              /* set by the sort: of a tuple it reads the values of these leading ones */
	GpuSortThreshold *threshold; /* set by the sort; NULL: all rows are wanted */
	uint64 left_out;             /* rows that were, by threshold */
};

#endif /* GPUSORT_SOURCE_H */
