/*-------------------------------------------------------------------------
 *
 * executor.h
 *	  The GpuSort node at run time.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_EXECUTOR_H
#define GPUSORT_EXECUTOR_H

#include "compat.h"

#include "client/client.h"
#include "client/rows.h"
#include "commands/explain.h"
#include "exec/bound.h"
#include "exec/first_rows.h"
#include "exec/ingest.h"
#include "exec/prefixes.h"
#include "exec/ranks.h"
#include "exec/ties.h"
#include "keys/keys.h"
#include "node.h"
#include "nodes/execnodes.h"
#include "nodes/extensible.h"
#include "server/shared.h"
#include "utils/tuplesort.h"
#include "utils/tuplestore.h"

/* Where the rows of the node come from. */
typedef enum GpuSortStage
{
	GPUSORT_STAGE_INPUT,     /* nowhere yet: the child has not been read */
	GPUSORT_STAGE_STREAM,    /* the service */
	GPUSORT_STAGE_TUPLESORT, /* PostgreSQL's own sort */
} GpuSortStage;

/* A position in the chunk at hand, to go back to. */
typedef struct GpuSortMark
{
	bool set;
	char *cursor; /* of the reader, as it was then */
	uint32 left;
} GpuSortMark;

typedef struct GpuSortState
{
	CustomScanState css; /* must be first field */

	/* from the plan */
	GpuSortPlanInfo info;
	int eflags;

	/* made once */
	GpuSortKeys *keys;
	GpuSortRowForm *form;
	GpuSortSlots slots;
	GpuSortIngestState *ingest; /* below Gather; NULL: the child is read by this process alone */

	/* one sort of the child's rows; all of it goes with sort_context */
	GpuSortStage stage;
	uint64 bound; /* so many rows were wanted when it began; 0: all */
	MemoryContext sort_context;
	GpuSortClient *client;
	GpuSortWriter writer;
	GpuSortReader reader;
	GpuSortTies *ties;
	GpuSortJobSlot *job;
	MemoryContextCallback job_callback;
	GpuSortFirstRows first;
	bool sorted;    /* outcome is filled, statistics are due */
	bool row_given; /* since the start or the last rescan: too late to fall back */
	bool in_ties;   /* ties has a run that was not given out whole */
	bool stream_ended;
	Tuplestorestate *store; /* rows given out, for going back to; NULL: none yet */
	bool keeping;           /* every row given out goes into store; rows come from there first */
	GpuSortMark mark;
	Tuplesortstate *fallback;

	/* of nodes above */
	GpuSortRanks ranks;      /* of a WindowAgg */
	const LimitState *limit; /* only its rows are wanted; NULL: all */

	/* for EXPLAIN and statistics: the last sort's */
	char device[GPUSORT_NAME_BYTES];
	GpuSortEngineKind engine;
	GpuSortOutcome outcome;
	GpuSortTimes ms;
	GpuSortFailure fallback_reason; /* reason NONE: it did not fall back */
	bool few_logged;                /* that there were few rows has been said once */
} GpuSortState;

extern void gpusort_executor_init(void);
extern GpuSortState *gpusort_state_of(PlanState *ps);
extern GpuSortRanks *gpusort_ranks_of(PlanState *ps);

/* executor.c, for the two below */
extern void gpusort_end_sort(GpuSortState *state);
extern void gpusort_sort_input(GpuSortState *state);
extern bool gpusort_sort_in_service(GpuSortState *state, GpuSortFailure *failure);
extern void gpusort_release_job_slot(void *state);

/* Shows others how far the sort is; rows taken in are shown where they are. */
static inline void
gpusort_show_progress(GpuSortState *state, GpuSortPhase phase, uint64 rows_out)
{
	if (state->job == NULL)
		return;
	state->job->phase = phase;
	state->job->rows_out = rows_out;
}

/* stream.c */
extern TupleTableSlot *gpusort_stream_row(CustomScanState *node);
extern TupleTableSlot *gpusort_stream_exec(PlanState *ps);
extern void gpusort_stream_keep(GpuSortState *state);
extern void gpusort_stream_mark(GpuSortState *state);

/* fallback.c */
extern void gpusort_fallback_few(GpuSortState *state);
extern void gpusort_fallback_refused(GpuSortState *state, const GpuSortFailure *failure);
extern void gpusort_fallback_full(GpuSortState *state, TupleTableSlot *row, const GpuSortFailure *full);
extern void gpusort_fallback_lost(GpuSortState *state, const GpuSortFailure *failure);
pg_noreturn extern void gpusort_report_lost(GpuSortState *state, const GpuSortFailure *failure);

/* explain.c */
extern void gpusort_explain(CustomScanState *node, List *ancestors, ExplainState *es);

#endif /* GPUSORT_EXECUTOR_H */
