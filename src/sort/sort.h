/*-------------------------------------------------------------------------
 *
 * sort.h
 *	  A sort: rows of any source in, the same in order out, by the service or, where that takes no part, by PostgreSQL.
 *
 * LEGAL ORDER OF CALLS
 *	create, once; then for each sort
 *
 *		begin		keeps the first rows of the source back, and asks the service, or finds out that
 *					PostgreSQL is to sort
 *		put			reads the source to its end
 *		perform		waits for the order; verifies it, where that is to be done
 *		next*		one row after another; rewind: from the first again
 *
 *	and end at any time, after which begin is legal again.  begin_native in the place of begin has PostgreSQL sort.
 *	is_empty, before begin, looks for the first row; there need be no sort after it.
 *	Where few of the rows are wanted (bound), the process finds them by itself, and no service is asked (top_rows.h).
 *	What goes wrong on the way is the sort's own to see to: when the service is full, or lost before a row was read,
 *	PostgreSQL sorts, and nobody has to know (fallback.c).
 *
 *	An example, of rows that some function makes, as values and nulls, 100 at a time:
 *
 *		typedef struct MySource { GpuSortSource source; ... } MySource;
 *		static int my_next_batch(GpuSortSource *source, GpuSortRow *rows, int n) { ... }
 *		static bool my_table_column(...) { return false; }
 *		static const GpuSortSourceMethods my_methods = {.next_batch = my_next_batch, .table_column = my_table_column};
 *
 *		MySource my = {.source.methods = &my_methods};
 *		GpuSortHeapRows *rows = gpusort_heap_rows_create(desc, desc);
 *		GpuSortColumn columns[] = {{.attno = 1, .sort_operator = Int4LessOperator}};
 *		GpuSortState *sort = gpusort_sort_create(&rows->rows, &my.source, columns, lengthof(columns));
 *
 *		sort->estimated_rows = 1000000;
 *		sort->estimated_width = 8;
 *		gpusort_sort_begin(sort);
 *		gpusort_sort_put(sort);
 *		gpusort_sort_perform(sort);
 *		while ((slot = gpusort_sort_next(sort, true)) != NULL)
 *			...
 *		gpusort_sort_drop(sort);
 *
 * RANGES
 *	Rows that several processes put, or read, by ranges and from any row on: parallel/sort_set.h.  Such a sort is
 *	begun in the service by that, and never falls back by itself.
 *
 * ROWS THAT OTHERS PUT
 *	Others may put rows into the sort in the service beside those of the source, while this process alone reads all.
 *	Such a sort is begun and ordered by parallel/, too, but falls back by itself: put_own, take_back and complete take
 *	the places of put and perform (exec/ingest.c).
 *
 * WHO ELSE
 *	The kind of row is row_kind.h's, which has the list of them, where rows come from source.h's.  Of the service, and
 *	of nodes, nothing is seen here.
 *
 * MEMORY
 *	What create makes belongs to the memory context that was current then, and so does context, which all that is of one
 *	sort is in: resetting it closes the connection, and with it ends everything in the service; so does an error.
 *	Temporary files belong to the resource owner that was current when they were made.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_H
#define GPUSORT_SORT_H

#include "compat.h"

#include "client/client.h"
#include "keys/keys.h"
#include "portability/instr_time.h"
#include "server/jobs.h"
#include "server/statistics.h"
#include "sort/input.h"
#include "sort/reader.h"
#include "sort/row_kind.h"
#include "sort/ties.h"
#include "sort/top_rows.h"
#include "sort/writer.h"
#include "utils/tuplesort.h"

/* Where the rows are. */
typedef enum GpuSortStage
{
	GPUSORT_STAGE_INPUT,   /* in the source, and some in the service or in PostgreSQL's sort */
	GPUSORT_STAGE_SERVICE, /* in the service, in order */
	GPUSORT_STAGE_NATIVE,  /* in PostgreSQL's own sort, in order */
	GPUSORT_STAGE_TOP,     /* in top, in order */
	GPUSORT_STAGE_LOST,    /* nowhere any more; only where lost is set */
} GpuSortStage;

/* The sort in the service: service_sort.c's, but for writer, which the rows' put_rows adds rows with, and reader. */
typedef struct GpuSortServiceSort
{
	GpuSortClient *client; /* NULL: there is none */
	GpuSortWriter writer;
	GpuSortReader reader;
	GpuSortTies *ties;
	bool check_order;                    /* is to be verified: libc's strings, abbreviated values */
	struct GpuSortCollationCheck *check; /* NULL: not made */
	bool parallel;                       /* rows are read by ranges; the protocol calls it shared */
	GpuSortJobSlot *job;                 /* for gpusort_jobs; NULL: not listed */
	MemoryContextCallback job_callback;
	bool unreported; /* it is done, not lost, and the statistics have not been told */
} GpuSortServiceSort;

/* What EXPLAIN and the statistics say of the last sort in the service. */
typedef struct GpuSortFigures
{
	GpuSortEngineKind engine;
	char device[GPUSORT_NAME_BYTES];
	bool verified;  /* rows have tails (row_tail.h) */
	uint64 dropped; /* rows that were not put, since they are not among the first ones */
	uint64 skipped; /* rows that are not read, since OFFSET drops them */
	GpuSortOutcome outcome;
	uint64 pairs;     /* of neighbours that have been compared under collations of the C library */
	double verify_ms; /* which that took */
	GpuSortTimes ms;  /* without the times that reader and ties keep: see gpusort_service_sort_times */
} GpuSortFigures;

/* Others may read it; only the room sort/, and parallel/ for a sort of its own, write what is not the caller's. */
typedef struct GpuSortState
{
	/* the caller's, before begin */
	uint64 estimated_rows;
	uint32 estimated_width; /* bytes of a row's data */
	bool may_reread;        /* rows are asked for again, or backwards, or marked in PostgreSQL's sort */
	uint64 bound;           /* only so many rows are wanted; 0: all */
	bool with_ties;         /* and those that are equal to the last of them */
	uint64 offset;          /* so many of them need not be given out; before perform, and before rewind */
	bool stays;             /* what is made of the rows stays on disk: they are verified, whatever the settings say */

	/* for a sort whose rows are read by ranges, parallel/'s */
	const volatile bool *stop; /* no rows are wanted any more */
	bool *lost;                /* set when rows are, and there is no fallback then; NULL: there is */

	/* made once */
	GpuSortRows *rows;
	GpuSortColumn *columns;
	int ncolumns;
	GpuSortKeys *keys;
	MemoryContext context; /* of everything that belongs to one sort */

	/* one sort; gpusort_sort_end resets it */
	GpuSortStage stage;
	instr_time begun;
	bool emitted;     /* a row, since perform or the last rewind: too late to fall back */
	bool in_ties;     /* service.ties has a run that was not given out whole */
	bool range_ended; /* no row is left of the current range */
	GpuSortServiceSort service;
	Tuplesortstate *native; /* PostgreSQL's own sort; NULL: none */
	bool finds_top;         /* top has the rows, or gets them */
	GpuSortTopRows *top;    /* made once; NULL: not yet */

	/* of the last sort */
	GpuSortFailure reason; /* why PostgreSQL sorted, or rows are lost; reason NONE: neither */
	GpuSortFigures figures;
	bool few_logged; /* that there were few rows has been said once */

	GpuSortInput input;
} GpuSortState;

extern GpuSortState *gpusort_sort_create(GpuSortRows *rows, GpuSortSource *source, GpuSortColumn *columns,
										 int ncolumns);
extern bool gpusort_sort_is_empty(GpuSortState *sort);
extern bool gpusort_sort_wants_top(const GpuSortState *sort);
extern bool gpusort_sort_find_top(GpuSortState *sort);
extern bool gpusort_sort_admits(const GpuSortState *sort, Datum value, bool isnull);
extern void gpusort_sort_begin(GpuSortState *sort);
extern void gpusort_sort_begin_native(GpuSortState *sort, const GpuSortFailure *reason);
extern void gpusort_sort_put(GpuSortState *sort);
extern void gpusort_sort_perform(GpuSortState *sort);
extern void *gpusort_sort_next_other(GpuSortState *sort, bool forward);
extern bool gpusort_sort_rewind(GpuSortState *sort, GpuSortFailure *failure);
extern void gpusort_sort_end(GpuSortState *sort);
extern void gpusort_sort_drop(GpuSortState *sort);
pg_noreturn extern void gpusort_sort_report_lost(bool emitted, const GpuSortFailure *failure);

/* In the places of put and perform where others put rows, too */
extern bool gpusort_sort_put_own(GpuSortState *sort, GpuSortFailure *full);
extern bool gpusort_sort_take_back(GpuSortState *sort, const GpuSortPut *others, const GpuSortFailure *full);
extern void gpusort_sort_complete(GpuSortState *sort, bool good, const GpuSortFailure *failure);

/* For a parallel sort: the rows of the next range that reader was asked for */
extern bool gpusort_sort_begin_range(GpuSortState *sort, GpuSortFailure *failure);

/* Returns how many rows are wanted of whoever finds rows by their number alone; 0: all. */
static inline uint64
gpusort_sort_bound(const GpuSortState *sort)
{
	return sort->with_ties ? 0 : sort->bound;
}

/* In stage TOP: shows the next row, or going backwards the one before; NULL if there is none. */
static inline void *
gpusort_sort_next_top(GpuSortState *sort, bool forward)
{
	char *row = gpusort_top_rows_next(sort->top, forward);

	return row == NULL ? NULL : sort->rows->kind->show(sort->rows, row);
}

/* Of a run that needs a tie-break and was not given out whole (in_ties): shows the next row; NULL after the last. */
static inline void *
gpusort_sort_next_tied(GpuSortState *sort)
{
	void *row = gpusort_ties_next(sort->service.ties);

	sort->in_ties = row != NULL;
	return row;
}

/* In stage NATIVE: shows the next row, or going backwards the one before; NULL after the last. */
static inline void *
gpusort_sort_next_native(GpuSortState *sort, bool forward)
{
	return sort->rows->kind->tuplesort_get(sort->rows, sort->native, false, forward);
}

/*
 * Returns the next row, as its kind shows it, valid until the next call; NULL after the last, where rows are read by
 * ranges after the last of the current range, and when they are lost (stage LOST).  Only PostgreSQL's sort and the
 * first rows alone go backwards.  Errors: rows are lost, and one was given out; those of comparators and of temporary
 * files.
 */
static inline void *
gpusort_sort_next(GpuSortState *sort, bool forward)
{
	if (likely(sort->stage == GPUSORT_STAGE_SERVICE && !sort->in_ties))
	{
		char *row = gpusort_reader_plain_row(&sort->service.reader);

		if (likely(row != NULL))
		{
			sort->emitted = true;
			return sort->rows->kind->show(sort->rows, row);
		}
	}
	return gpusort_sort_next_other(sort, forward);
}

#endif /* GPUSORT_SORT_H */
