/*-------------------------------------------------------------------------
 *
 * scan_state.h
 *	  The state of a GpuSort node, for the files of exec/ alone.
 *
 * Made by executor.c.  Each part is written by the file named with it; others may
 * read it.  A sort's parts begin in gpusort_sort_input and end in gpusort_end_sort.
 * What several nodes share, or is of use without a node, has a type of its own
 * elsewhere and is reached by its functions: client/ for rows on their way, ties,
 * first rows, ingest.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SCAN_STATE_H
#define GPUSORT_SCAN_STATE_H

#include "compat.h"

#include "client/client.h"
#include "sort/reader.h"
#include "sort/slots.h"
#include "sort/writer.h"
#include "sort/first_rows.h"
#include "exec/ranks.h"
#include "keys/keys.h"
#include "node.h"
#include "nodes/execnodes.h"
#include "server/shared.h"
#include "utils/tuplesort.h"
#include "utils/tuplestore.h"

/* Where the rows of the node come from. */
typedef enum GpuSortStage
{
	GPUSORT_STAGE_INPUT,     /* nowhere yet: the child has not been read */
	GPUSORT_STAGE_STREAM,    /* the service */
	GPUSORT_STAGE_TUPLESORT, /* PostgreSQL's own sort */
	GPUSORT_STAGE_LOST,      /* nowhere any more: the rows of a shared sort are lost (shared_sort.c) */
} GpuSortStage;

/* The sort in the service: service_sort.c's, but for writer, which input.c adds rows with, and reader. */
typedef struct GpuSortServiceSort
{
	GpuSortClient *client; /* NULL: there is none */
	GpuSortWriter writer;
	GpuSortReader reader; /* read by stream.c, or by fallback.c */
	struct GpuSortTies *ties;
	bool check_order;                    /* a column is under a collation of the C library, and the order is to be verified */
	struct GpuSortCollationCheck *check; /* NULL: not made */
	bool by_ranges;                      /* it is a shared sort in the service */
	int readers;                         /* of a sort whose rows several processes read: so many, if all start; shared_sort.c's */
	GpuSortJobSlot *job;                 /* for gpusort_jobs; NULL: not listed */
	MemoryContextCallback job_callback;
	bool unreported; /* it is done, not lost, and the statistics have not been told */
} GpuSortServiceSort;

/* The rows emitted out of the service: stream.c's. */
typedef struct GpuSortRowStream
{
	bool emitted;           /* a row, since the start or the last rescan: too late to fall back */
	bool in_ties;           /* ties has a run that was not emitted whole */
	bool ended;             /* there is no row after those in store */
	bool range_ended;       /* of a shared sort: no row is left of the range at hand */
	bool keeping;           /* every row emitted goes into store; rows come from there first */
	Tuplestorestate *store; /* rows emitted, for going back to; NULL: none yet */
	bool marked;            /* mark is set: a position in the reader's chunk */
	GpuSortReaderMark mark;
} GpuSortRowStream;

/* PostgreSQL's own sort: fallback.c's. */
typedef struct GpuSortFallback
{
	Tuplesortstate *sort;  /* NULL: none */
	GpuSortFailure reason; /* of the last sort; reason NONE: it did not fall back */
	bool few_logged;       /* that there were few rows has been said once */
} GpuSortFallback;

/* What EXPLAIN and the statistics say of the last sort in the service: service_sort.c's and input.c's. */
typedef struct GpuSortFigures
{
	GpuSortEngineKind engine;
	char device[GPUSORT_NAME_BYTES];
	bool verified;  /* rows have tails (sort/row_tail.h) */
	uint64 dropped; /* rows that were not put, since they are not among the first ones */
	uint64 skipped; /* rows that are not read, since OFFSET drops them */
	GpuSortOutcome outcome;
	uint64 pairs;     /* of neighbours that have been compared under collations of the C library */
	double verify_ms; /* which that took */
	GpuSortTimes ms;  /* without the times that reader and ties keep: see gpusort_service_sort_times */
} GpuSortFigures;

typedef struct GpuSortScanState
{
	GpuSortRankedScan ranked; /* must be first field: the node, and what a WindowAgg above counts */

	/* from the plan */
	GpuSortPlanInfo info;
	int eflags;

	/* made once */
	GpuSortKeys *keys;
	GpuSortRowForm *form;
	GpuSortSlots slots;
	GpuSortFirstRows first;
	struct GpuSortIngestState *ingest; /* below Gather; NULL: the child is read by this process alone */
	struct GpuSortSharedSort *shared;  /* several processes read the rows; NULL: this one reads all */
	LimitState *limit;                 /* above: only its rows are wanted; NULL: all */

	/* one sort of the child's rows; gpusort_end_sort resets it */
	GpuSortStage stage;
	uint64 bound;               /* so many rows were wanted when it began; 0: all */
	MemoryContext sort_context; /* of everything that belongs to it */
	GpuSortServiceSort service;
	GpuSortRowStream stream;
	GpuSortFallback fallback;

	GpuSortFigures figures;
} GpuSortScanState;

/* The node as PostgreSQL sees it. */
static inline PlanState *
gpusort_plan_state(GpuSortScanState *state)
{
	return &state->ranked.css.ss.ps;
}

/* The node whose rows are sorted. */
static inline PlanState *
gpusort_child(GpuSortScanState *state)
{
	return outerPlanState(gpusort_plan_state(state));
}

#endif /* GPUSORT_SCAN_STATE_H */
