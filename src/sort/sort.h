/*-------------------------------------------------------------------------
 *
 * sort.h
 *	  A sort: takes rows of any source and returns them in order.  The service sorts, or PostgreSQL if it does not.
 *
 * LEGAL ORDER OF CALLS
 *	create, once; then for each sort
 *
 *		begin		keeps the first rows of the source back, and asks the service; or decides that
 *					PostgreSQL sorts
 *		put			reads the source to its end
 *		perform		waits for the order, and verifies it if that is wanted
 *		next*		returns one row after another; rewind starts again with the first
 *
 *	and end at any time, after which begin may be called again.  begin_native instead of begin makes PostgreSQL sort.
 *	is_empty, before begin, looks for the first row; no sort need follow.
 *	If few of the rows are wanted (bound), the process finds them by itself, and no service is asked (top_rows.h).
 *	If the service is full, or lost before a row was read, PostgreSQL sorts, and the caller need not know (fallback.c).
 *
 *	An example, for rows that a function makes, as values and nulls, 100 at a time:
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
 *	If several processes put rows, or read them by ranges, parallel/sort_set.h begins the sort in the service.  Such a
 *	sort never falls back by itself.
 *
 * ROWS THAT OTHERS PUT
 *	Other processes may put rows into the sort too, while only this process reads.  parallel/ begins and orders such a
 *	sort as well, but it falls back by itself: put_own, take_back and complete replace put and perform (exec/ingest.c).
 *
 * WHO ELSE
 *	row_kind.h has the kinds of rows, source.h where rows come from.  This header knows neither the service nor nodes.
 *
 * MEMORY
 *	What create makes belongs to the memory context that was current then.  So does the field context, which has
 *	everything that belongs to one sort: resetting it closes the connection, and so ends the sort in the service.  An
 *	error does the same.  Temporary files belong to the resource owner that was current when they were made.
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
	GPUSORT_STAGE_INPUT,   /* in the source; some may be in the service or in PostgreSQL's sort */
	GPUSORT_STAGE_SERVICE, /* in the service, in order */
	GPUSORT_STAGE_NATIVE,  /* in PostgreSQL's own sort, in order */
	GPUSORT_STAGE_TOP,     /* in top, in order */
	GPUSORT_STAGE_LOST,    /* lost; only if the field lost is set */
} GpuSortStage;

/* The sort in the service; for service_sort.c, except writer, which put_rows uses, and reader. */
typedef struct GpuSortServiceSort
{
	GpuSortClient *client; /* or NULL */
	GpuSortWriter writer;
	GpuSortReader reader;
	GpuSortTies *ties;
	uint32 run_rows;                     /* it may leave out all but so many rows of each group; 0: none */
	bool check_order;                    /* the order is to be verified, of libc's strings or abbreviated values */
	struct GpuSortCollationCheck *check; /* or NULL */
	bool parallel;                       /* rows are read by ranges; the protocol calls it shared */
	GpuSortJobSlot *job;                 /* for gpusort_jobs, or NULL */
	MemoryContextCallback job_callback;
	bool unreported; /* the sort is done, and not yet counted in the statistics */
} GpuSortServiceSort;

/* What EXPLAIN and the statistics report about the last sort in the service. */
typedef struct GpuSortFigures
{
	GpuSortEngineKind engine;
	char device[GPUSORT_NAME_BYTES];
	bool verified;  /* rows have tails (row_tail.h) */
	uint64 dropped; /* rows that were not put, because they are not among the first ones */
	uint64 skipped; /* rows that are not read, because OFFSET drops them */
	GpuSortOutcome outcome;
	uint64 pairs;     /* pairs of neighbours that were compared, under collations of the C library */
	double verify_ms; /* the time of these comparisons */
	GpuSortTimes ms;  /* without the times that reader and ties keep (gpusort_service_sort_times) */
} GpuSortFigures;

/* Which rows are wanted of each group of rows, which are equal in the first columns. */
typedef struct GpuSortGroupRows
{
	int columns;
	uint32 rows; /* the first so many of each; 0: all rows are wanted */
	bool peers;  /* and those that are equal to the last of them in all columns */
} GpuSortGroupRows;

/* Anybody may read it.  Only sort/, and parallel/ for its sorts, write fields that are not the caller's. */
typedef struct GpuSortState
{
	/* set by the caller before begin */
	uint64 estimated_rows;
	uint32 estimated_width; /* bytes of a row's data */
	bool may_reread;        /* rows may be read again, backwards, or from a mark */
	uint64 bound;           /* number of rows that are wanted; 0 means all */
	bool with_ties;         /* and those that are equal to the last of them */
	GpuSortGroupRows group; /* rows that are wanted of each group: others may be left out, and may come */
	bool led;               /* what is found of these leads the source to the blocks that it reads */
	uint64 offset;          /* number of these that are skipped; set before perform, and before rewind */
	bool stays;             /* the result stays on disk, so rows are verified whatever the settings say */

	/* set by parallel/, for a sort whose rows are read by ranges */
	const volatile bool *stop; /* no rows are wanted any more */
	bool *lost;                /* set to true if rows are lost, instead of a fallback; NULL if there is a fallback */

	/* made once */
	GpuSortRows *rows;
	GpuSortColumn *columns;
	int ncolumns;
	GpuSortKeys *keys;
	MemoryContext context; /* has everything that belongs to one sort */

	/* one sort; gpusort_sort_end resets it */
	GpuSortStage stage;
	instr_time begun;
	bool emitted;     /* a row was emitted since perform or the last rewind, so it is too late to fall back */
	bool in_ties;     /* service.ties has a run that was not emitted whole */
	bool range_ended; /* no row is left of the current range */
	GpuSortServiceSort service;
	Tuplesortstate *native; /* PostgreSQL's own sort; NULL: none */
	bool finds_top;         /* top has the rows, or gets them */
	GpuSortTopRows *top;    /* made once; NULL: not yet */

	/* of the last sort */
	GpuSortFailure reason; /* why PostgreSQL sorted, or rows are lost; otherwise reason NONE */
	GpuSortFigures figures;
	bool few_logged; /* it was logged once that there were few rows */

	GpuSortInput input;
} GpuSortState;

extern GpuSortState *gpusort_sort_create(GpuSortRows *rows, GpuSortSource *source, GpuSortColumn *columns,
										 int ncolumns);
extern bool gpusort_sort_is_empty(GpuSortState *sort);
extern bool gpusort_sort_wants_top(const GpuSortState *sort);
extern bool gpusort_sort_find_top(GpuSortState *sort, GpuSortCutoffShared *shared);
extern void gpusort_sort_begin(GpuSortState *sort);
extern void gpusort_sort_begin_native(GpuSortState *sort, const GpuSortFailure *reason);
extern void gpusort_sort_put(GpuSortState *sort);
extern void gpusort_sort_perform(GpuSortState *sort);
extern void *gpusort_sort_next_other(GpuSortState *sort, bool forward);
extern bool gpusort_sort_rewind(GpuSortState *sort, GpuSortFailure *failure);
extern void gpusort_sort_end(GpuSortState *sort);
extern void gpusort_sort_drop(GpuSortState *sort);
pg_noreturn extern void gpusort_sort_report_lost(bool emitted, const GpuSortFailure *failure);

/* Instead of put and perform, if other processes put rows too */
extern bool gpusort_sort_put_own(GpuSortState *sort, GpuSortFailure *full);
extern bool gpusort_sort_take_back(GpuSortState *sort, const GpuSortPut *others, const GpuSortFailure *full);
extern void gpusort_sort_complete(GpuSortState *sort, bool good, const GpuSortFailure *failure);

/* For a parallel sort: the rows of the next range that reader was asked for */
extern bool gpusort_sort_begin_range(GpuSortState *sort, GpuSortFailure *failure);

/* Returns how many rows are wanted by a caller that finds rows by their number alone; 0 means all. */
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

/* Shows the next row of a run that needs a tie-break (in_ties); NULL after the last one. */
static inline void *
gpusort_sort_next_tied(GpuSortState *sort)
{
	void *row = gpusort_ties_next(sort->service.ties);

	sort->in_ties = row != NULL;
	return row;
}

/* In stage NATIVE: shows the next row, or the one before if going backward; NULL after the last one. */
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
