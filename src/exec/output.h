/*-------------------------------------------------------------------------
 *
 * output.h
 *	  The GpuSortOutput node: runs the plan below it for ranges of sorted rows, in each participant of a parallel plan.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_OUTPUT_H
#define GPUSORT_OUTPUT_H

#include "compat.h"

#include "client/failure.h"
#include "exec/nodes.h"
#include "exec/window_ranges.h"
#include "nodes/execnodes.h"
#include "nodes/extensible.h"
#include "form/format.h"
#include "pages/heap_pages.h"
#include "parallel/claims.h"
#include "parallel/row_queue.h"

/* Where the rows of this process come from. */
typedef enum GpuSortOutputStage
{
	GPUSORT_OUTPUT_BEGIN,  /* none yet */
	GPUSORT_OUTPUT_RANGES, /* the ranges that it claims */
	GPUSORT_OUTPUT_ALONE,  /* the whole plan below, which this process runs alone */
	GPUSORT_OUTPUT_ENDED,  /* none; all were returned */
} GpuSortOutputStage;

/*
 * In dynamic shared memory, or where there are no workers in the leader's.  Below a GpuSortExchange the workers' row
 * queues follow, and behind them the format, if there is one; or a GpuSortNewTableShared alone.
 */
typedef struct GpuSortOutputShared
{
	GpuSortClaims claims;
	bool alone;              /* one process does everything, without the service */
	int nprocesses;          /* number of processes, if all workers start */
	bool formed;             /* workers form their rows, and queues carry bytes */
	bool leads_all;          /* the leader reads all rows, as one range */
	bool into;               /* all processes write their rows into a new table's pages, without queues */
	GpuSortRowQueues queues; /* if there are row queues */
	GpuSortWindowShared window;
	GpuSortProcessFigures figures[FLEXIBLE_ARRAY_MEMBER]; /* by process; each writes its own */
} GpuSortOutputShared;

/* For output.c and output_share.c alone, but that GpuSortExchange looks at stage and shared. */
typedef struct GpuSortOutputState
{
	CustomScanState css; /* must be first field */
	bool partial;        /* each process passes its rows to the node above, not to a GpuSortExchange */
	bool only_formed;    /* workers run ranges only if they form the rows, or put them into a table */
	bool reads_tables;   /* as in GpuSortOutputInfo */
	bool starts_workers; /* likewise */
	GpuSortNodes nodes;
	GpuSortWindowRanges window;
	GpuSortOutputShared *shared; /* NULL until it is made */
	GpuSortOutputStage stage;
	int asked; /* the next range that this process has claimed, or -1 */

	/* in the leader */
	PlanState *gather;
	ParallelContext *workers;       /* NULL if there are no workers, and shared is not in Gather's memory */
	const GpuSortFormat *format;    /* how workers form their rows, or NULL */
	const GpuSortNewTable *into;    /* the new table that takes the rows, or NULL */
	GpuSortOutputShared *own;       /* the shared state if there are no workers, or NULL */
	GpuSortFailure lost;            /* why it runs the plan alone the next time; reason NONE if it does not */
	GpuSortRowQueueReader **queues; /* by worker; NULL if none is open */
	TupleTableSlot *empty_row;

	/* for EXPLAIN, of the last run */
	uint32 ranges;
	int nprocesses;
	GpuSortProcessFigures *figures; /* or NULL */
} GpuSortOutputState;

extern void gpusort_output_note_gather(PlanState *ps, PlanState *gather);

/* For GpuSortExchange */
extern GpuSortOutputState *gpusort_output_find(PlanState *gather);
extern void gpusort_output_await_claim(GpuSortOutputState *state);
extern int gpusort_output_claim(GpuSortOutputState *state, uint32 range);
extern int gpusort_output_claim_next(GpuSortOutputState *state);
extern GpuSortRowQueueReader *gpusort_output_queue(GpuSortOutputState *state, int process);
extern bool gpusort_output_ask(GpuSortOutputState *state, uint32 range);
extern bool gpusort_output_begin_range(GpuSortOutputState *state);
extern TupleTableSlot *gpusort_output_row(GpuSortOutputState *state);
extern TupleTableSlot *gpusort_output_uncounted_row(GpuSortOutputState *state);
extern void gpusort_output_count_rows(GpuSortOutputState *state, uint64 rows);
extern bool gpusort_output_begin_all(GpuSortOutputState *state);
extern void gpusort_output_put_into_table(GpuSortOutputState *state);
extern void gpusort_output_fall_back(GpuSortOutputState *state);
pg_noreturn extern void gpusort_output_report_lost(GpuSortOutputState *state, bool emitted);

/* output_share.c: what the participants share, and when it begins and ends */
extern void *gpusort_output_queue_place(GpuSortOutputShared *shared, int worker);
extern GpuSortNewTableShared *gpusort_output_into(GpuSortOutputShared *shared);
extern const GpuSortFormat *gpusort_output_format(GpuSortOutputShared *shared);
extern void gpusort_output_begin_without_workers(GpuSortOutputState *state);
extern void gpusort_output_stop(GpuSortOutputState *state);
extern bool gpusort_output_keep(GpuSortOutputState *state);
extern void gpusort_output_finish(GpuSortOutputState *state);
extern void gpusort_output_take_figures(GpuSortOutputState *state);
extern Size gpusort_output_estimate_shared(CustomScanState *node, ParallelContext *pcxt);
extern void gpusort_output_initialize_shared(CustomScanState *node, ParallelContext *pcxt, void *coordinate);
extern void gpusort_output_reinitialize_shared(CustomScanState *node, ParallelContext *pcxt, void *coordinate);
extern void gpusort_output_initialize_worker(CustomScanState *node, shm_toc *toc, void *coordinate);
extern void gpusort_output_shutdown(CustomScanState *node);

/* Returns the GpuSort whose keys the ranges are of. */
static inline GpuSortScanState *
gpusort_output_first_sort(const GpuSortOutputState *state)
{
	return state->nodes.nodes[0];
}

/* Returns true if a process has lost rows; the ranges must be there. */
static inline bool
gpusort_output_has_failed(const GpuSortOutputState *state)
{
	return state->shared->claims.stop;
}

/* Returns true if Gather has been shut down, which had workers. */
static inline bool
gpusort_output_is_shut_down(const GpuSortOutputState *state)
{
	return state->shared == NULL;
}

#endif /* GPUSORT_OUTPUT_H */
