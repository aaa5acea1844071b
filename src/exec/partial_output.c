/*-------------------------------------------------------------------------
 *
 * partial_output.c
 *	  The GpuSortOutput node whose rows go to the node above it in the same process.
 *
 *	  Gather					or Gather Merge
 *	    plan					of processes that share its rows: partial joins, aggregates
 *	      GpuSortOutput			in the leader and in each worker
 *	        plan
 *	          GpuSort			one or several (parallel/joint_sort.h)
 *	            partial plan
 *
 * Each row comes from exactly one process, as of any partial plan, and in no order over all.  In every process that
 * asks for a row, in this order:
 *
 *	1. The GpuSorts put this process's part of the rows, unless the ingest is sealed: then nothing
 *	   may be left.
 *	2. The last to have put seals the ingest and has the rows sorted and cut; all verify their order, where that
 *	   is to be done.
 *	3. The process claims a range, has the plan below start over on it and gives its rows out, until no range is left.
 *
 * The leader of the plan leads nothing here: it may come last, since it reads what workers send first, or never, where
 * no more rows are wanted.  It begins the sorts in the service before workers start, and its connection
 * keeps them until Gather has ended its workers.  Whoever is here waits only for processes that are putting rows, or
 * having them sorted, and these wait for nobody but the service (claims.c).  One exception: a worker that the service
 * does not let put rows, or have them sorted, since others have all of the staging pool, leaves that to others, and
 * if there are none yet waits for the leader, who is sure to come while rows are wanted: its connection has what it
 * needs.  With parallel_leader_participation off it would not, so the service takes no part then.
 *
 * Where the service takes no part, which is known before workers start, one process, the first to
 * come, runs the plan as a whole, with PostgreSQL's sort in the GpuSorts, and the others give no rows: as the plans
 * below are partial ones, that process gets all of their rows.
 *
 * Nothing can be read again, so when rows are lost, in whatever process, the query ends with an error.
 *
 * When no more rows are wanted workers that wait here must end before Gather waits for them: by the node's
 * shutdown and end, which come before Gather's, and when Gather starts over by a callback of its expression context.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/partial_output.h"

#include "access/parallel.h"
#include "commands/explain.h"
#include "exec/explain.h"
#include "parallel/joint_check.h"
#include "exec/partial_share.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "server/wait_events.h"
#include "storage/latch.h"

/* A worker waits so long before it raises the error that rows are lost. */
#define OTHER_ERRORS_MS      200
#define OTHER_ERRORS_STEP_MS 10

static GpuSortProcessFigures *
own_figures(GpuSortPartialState *state)
{
	return &state->shared->figures[ParallelWorkerNumber + 1];
}

/*
 * Waits until it is known by what another process has failed, if rows are lost because it has: it told the leader so
 * before its connection to the service closed.  The leader ends this process then, or finds an error to raise.
 */
static void
wait_for_other_errors(void)
{
	CHECK_FOR_INTERRUPTS();
	for (int i = 0; IsParallelWorker() && i < OTHER_ERRORS_MS / OTHER_ERRORS_STEP_MS; i++)
	{
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, OTHER_ERRORS_STEP_MS,
						 gpusort_wait_event(GPUSORT_WAIT_RANGES));
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
}

/* Rows are lost, which is an error, or not wanted any more, so that this process has none. */
static void
stop_here(GpuSortPartialState *state)
{
	GpuSortClaims *claims = &state->shared->claims;

	state->stage = GPUSORT_PARTIAL_ENDED;
	if (claims->failure.reason == GPUSORT_REASON_NONE)
		return;
	wait_for_other_errors();
	gpusort_sort_report_lost(claims->published, &claims->failure);
}

/* Puts this process's part of the rows, unless it has come too late to have one. */
static void
ingest(GpuSortPartialState *state)
{
	GpuSortClaims *claims = &state->shared->claims;
	GpuSortFailure failure;
	bool whole;

	if (!gpusort_claims_register(claims))
	{
		if (!claims->stop && gpusort_joint_sorts_have_rows(&state->nodes.sorts))
			elog(ERROR, "a process has rows that came too late to be sorted");
		return;
	}
	if (!gpusort_joint_sorts_ingest(&state->nodes.sorts, &claims->stop, &whole, &failure))
	{
		gpusort_claims_stop(claims, &failure);
		whole = false;
	}
	gpusort_claims_sign_off_or_seal(claims, whole);
}

/* Returns how many processes may read ranges; a worker does not know how many have started. */
static int
processes(const GpuSortPartialState *state)
{
	return state->workers != NULL ? 1 + state->workers->nworkers_launched : state->shared->nprocesses;
}

/* Logs that a worker leaves to others what it cannot do itself. */
static void
leave_to_others(const char *what, const GpuSortFailure *failure)
{
	ereport(DEBUG1,
			(errmsg_internal("gpusort: a parallel worker leaves %s to others: %s", what, failure->text)));
}

/* Has the rows sorted, and their order verified, and publishes the ranges; false if that is another process's to do. */
static bool
order(GpuSortPartialState *state)
{
	GpuSortClaims *claims = &state->shared->claims;
	GpuSortFailure failure;
	uint32 ranges;

	if (IsParallelWorker() && !gpusort_joint_sorts_join_to_order(&state->nodes.sorts, &failure))
	{
		leave_to_others("the sort", &failure);
		gpusort_claims_yield_order(claims);
		return false;
	}
	if (gpusort_joint_sorts_order(&state->nodes.sorts, processes(state), &ranges, &failure) &&
		gpusort_joint_sorts_open(&state->nodes.sorts, &claims->stop, &failure) &&
		gpusort_joint_check_lead(&state->nodes.sorts, claims, processes(state), &failure))
		gpusort_claims_publish(claims, ranges);
	else
		gpusort_claims_stop(claims, &failure);
	return true;
}

/* Returns true if this process may read the rows, which are in order. */
static bool
open_sorts(GpuSortPartialState *state)
{
	GpuSortFailure failure;

	if (gpusort_joint_sorts_open(&state->nodes.sorts, &state->shared->claims.stop, &failure))
		return true;
	/* Whoever has had the rows sorted reads all that others do not. */
	leave_to_others("all ranges", &failure);
	state->stage = GPUSORT_PARTIAL_ENDED;
	return false;
}

/* No row is left for this process. */
static void
end_ranges(GpuSortPartialState *state)
{
	state->stage = GPUSORT_PARTIAL_ENDED;
	if (state->shared->claims.stop)
		stop_here(state);
	else if (IsParallelWorker())
		gpusort_joint_sorts_close(&state->nodes.sorts);
}

/* Asks for the rows of the next range, if there is one, and makes it this process's; false if rows are lost. */
static bool
ask_next(GpuSortPartialState *state, GpuSortFailure *failure)
{
	state->asked = gpusort_claims_next(&state->shared->claims, ParallelWorkerNumber + 1);
	return state->asked < 0 || gpusort_joint_sorts_ask(&state->nodes.sorts, state->asked, failure);
}

/* Goes to the next range, or to the end. */
static void
next_range(GpuSortPartialState *state)
{
	GpuSortFailure failure;

	CHECK_FOR_INTERRUPTS();
	if (state->asked < 0)
	{
		end_ranges(state);
		return;
	}
	own_figures(state)->ranges++;
	/* What is left of the range before must be given up before another is asked for. */
	if (!gpusort_nodes_begin_range(&state->nodes, outerPlanState(state), &failure) ||
		!ask_next(state, &failure))
	{
		gpusort_claims_stop(&state->shared->claims, &failure);
		stop_here(state);
	}
}

/* Begins with the ranges, once they are published. */
static void
begin_ranges(GpuSortPartialState *state)
{
	GpuSortFailure failure;

	if (!open_sorts(state))
		return;
	state->stage = GPUSORT_PARTIAL_RANGES;
	if (ask_next(state, &failure))
		next_range(state);
	else
	{
		gpusort_claims_stop(&state->shared->claims, &failure);
		stop_here(state);
	}
}

/*
 * Does what comes before ranges can be read: puts rows, and orders and
 * verifies them if that falls to this process.
 */
static void
prepare(GpuSortPartialState *state)
{
	GpuSortClaims *claims = &state->shared->claims;
	GpuSortFailure failure;
	bool orders = true;
	bool verifies = true;

	if (!claims->stop)
		ingest(state);
	for (;;)
	{
		switch (gpusort_claims_await_task(claims, orders, verifies))
		{
			case GPUSORT_TASK_NONE:
				stop_here(state);
				return;
			case GPUSORT_TASK_ORDER:
				orders = order(state);
				break;
			case GPUSORT_TASK_VERIFY:
				verifies = false;
				if (!open_sorts(state))
					return;
				if (!gpusort_joint_check_follow(&state->nodes.sorts, claims, &failure))
					gpusort_claims_stop(claims, &failure);
				break;
			case GPUSORT_TASK_READ:
				begin_ranges(state);
				return;
		}
	}
}

/* The first row is asked for. */
static void
begin(GpuSortPartialState *state)
{
	/* Others may take the end of its rows for the end of all: so does a parallel Append. */
	if (state->shared == NULL && IsParallelWorker())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("a parallel worker has loaded another build of gpusort than its leader"),
				 errhint("Run the query again in a new session.")));
	if (state->shared == NULL)
		gpusort_partial_begin_without_workers(state);
	state->nodes.sorts.partial = true;
	if (!state->shared->alone)
		prepare(state);
	else if (gpusort_claims_take_all(&state->shared->claims))
	{
		gpusort_joint_sorts_refuse(&state->nodes.sorts, &state->shared->claims.failure);
		state->stage = GPUSORT_PARTIAL_ALONE;
	}
	else
		state->stage = GPUSORT_PARTIAL_ENDED;
}

/* The node's ExecProcNode. */
static TupleTableSlot *
exec_partial(PlanState *ps)
{
	GpuSortPartialState *state = (GpuSortPartialState *) ps;

	for (;;)
	{
		switch (state->stage)
		{
			case GPUSORT_PARTIAL_BEGIN:
				begin(state);
				break;
			case GPUSORT_PARTIAL_RANGES:
				{
					TupleTableSlot *row = ExecProcNode(outerPlanState(state));

					if (unlikely(state->nodes.sorts.lost))
					{
						gpusort_joint_sorts_note_lost(&state->nodes.sorts, &state->shared->claims);
						stop_here(state);
					}
					else if (likely(!TupIsNull(row)))
					{
						own_figures(state)->rows++;
						return row;
					}
					else
						next_range(state);
					break;
				}
			case GPUSORT_PARTIAL_ALONE:
				return ExecProcNode(outerPlanState(state));
			case GPUSORT_PARTIAL_ENDED:
				return NULL;
		}
	}
}

static TupleTableSlot *
exec_partial_node(CustomScanState *node)
{
	return exec_partial(&node->ss.ps);
}

static void
begin_partial_node(CustomScanState *node, EState *estate, int eflags)
{
	GpuSortPartialState *state = (GpuSortPartialState *) node;
	PlanState *ps = &node->ss.ps;
	const GpuSortOutputInfo info = gpusort_output_plan_unpack((CustomScan *) ps->plan);
	MemoryContext caller = MemoryContextSwitchTo(estate->es_query_cxt);

	Assert(!(eflags & (EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK)));
	outerPlanState(node) = ExecInitNode(outerPlan(ps->plan), estate, eflags & ~EXEC_FLAG_REWIND);
	ps->resultops = ExecGetResultSlotOps(outerPlanState(node), NULL);
	ps->resultopsset = true;
	ps->resultopsfixed = false;
	ps->ps_ProjInfo = NULL;
	ps->ExecProcNode = exec_partial;
	gpusort_nodes_find(&state->nodes, outerPlanState(node), info.rescan_param);
	if (state->nodes.sorts.count == 0)
		elog(ERROR, "there is no GpuSort below GpuSortOutput");
	state->nodes.sorts.partial = true;
	MemoryContextSwitchTo(caller);
}

/* A rescan of Gather's: what the GpuSorts read is not read through the plan, so they are told here. */
static void
rescan_partial_node(CustomScanState *node)
{
	GpuSortPartialState *state = (GpuSortPartialState *) node;
	PlanState *child = outerPlanState(node);
	MemoryContext caller = MemoryContextSwitchTo(child->state->es_query_cxt);

	if (IsParallelWorker() && state->stage != GPUSORT_PARTIAL_BEGIN)
		elog(ERROR, "GpuSortOutput cannot start over while Gather does not");
	gpusort_nodes_rescan(&state->nodes, node->ss.ps.chgParam);
	/* With workers the sorts have been begun anew (reinitialize_shared). */
	if (state->workers == NULL && !IsParallelWorker())
	{
		gpusort_joint_sorts_end(&state->nodes.sorts);
		state->shared = NULL;
		state->stage = GPUSORT_PARTIAL_BEGIN;
	}
	if (child->chgParam == NULL)
		ExecReScan(child);
	MemoryContextSwitchTo(caller);
}

/* In the leader, the shared memory goes after this, and workers that still run must end. */
static void
shutdown_partial_node(CustomScanState *node)
{
	GpuSortPartialState *state = (GpuSortPartialState *) node;

	if (IsParallelWorker() || state->shared == NULL)
		return;
	gpusort_partial_stop_workers(state);
	gpusort_partial_take_figures(state);
	gpusort_joint_sorts_release(&state->nodes.sorts);
	if (state->workers != NULL)
		state->shared = NULL;
	state->workers = NULL;
	if (state->stage != GPUSORT_PARTIAL_BEGIN)
		state->stage = GPUSORT_PARTIAL_ENDED;
}

/* Has workers that wait end; the GpuSorts end with the plan below. */
static void
end_partial_node(CustomScanState *node)
{
	GpuSortPartialState *state = (GpuSortPartialState *) node;

	gpusort_partial_stop_workers(state);
	state->workers = NULL;
	state->shared = NULL;
	ExecEndNode(outerPlanState(node));
}

static void
explain_partial_node(CustomScanState *node, List *ancestors, ExplainState *es)
{
	GpuSortPartialState *state = (GpuSortPartialState *) node;
	GpuSortScanState *sort = state->nodes.nodes[0];

	gpusort_explain_keys(sort, "Range Key", sort->info.range_columns, ancestors, es);
	if (!es->analyze || state->nprocesses == 0)
		return;
	ExplainPropertyUInteger("Ranges", NULL, state->ranges, es);
	gpusort_explain_processes(state->figures, state->nprocesses, es);
}

static const CustomExecMethods exec_methods = {
	.CustomName = GPUSORT_OUTPUT_NODE_NAME,
	.BeginCustomScan = begin_partial_node,
	.ExecCustomScan = exec_partial_node,
	.EndCustomScan = end_partial_node,
	.ReScanCustomScan = rescan_partial_node,
	.EstimateDSMCustomScan = gpusort_partial_estimate_shared,
	.InitializeDSMCustomScan = gpusort_partial_initialize_shared,
	.ReInitializeDSMCustomScan = gpusort_partial_reinitialize_shared,
	.InitializeWorkerCustomScan = gpusort_partial_initialize_worker,
	.ShutdownCustomScan = shutdown_partial_node,
	.ExplainCustomScan = explain_partial_node,
};

/* The state of a GpuSortOutput whose plan says that it is a partial one. */
Node *
gpusort_partial_output_create_state(void)
{
	GpuSortPartialState *state = (GpuSortPartialState *) newNode(sizeof(GpuSortPartialState), T_CustomScanState);

	state->css.methods = &exec_methods;
	return (Node *) state;
}

/*
 * Tells a node below a Gather or Gather Merge, when the executor has begun, which one
 * that is; other nodes than partial outputs are passed over.
 */
void
gpusort_partial_output_note_gather(PlanState *ps, PlanState *gather)
{
	if (IsA(ps, CustomScanState) && ((CustomScanState *) ps)->methods == &exec_methods)
		((GpuSortPartialState *) ps)->gather = gather;
}
