/*-------------------------------------------------------------------------
 *
 * tasks.c
 *	  The node GpuSortTaskScan: all processes of a plan read what Citus asks of its nodes.
 *
 * Citus reads the rows of all of its tasks in one process, keeps them, and gives them to the plan above.  Here each
 * process asks for some tasks at once, by a COPY of each over a connection of its own, and reads one after the other:
 * meanwhile the nodes compute the rest.  A task has a snapshot of its own, as it has by Citus.  So nothing can be read
 * twice.
 *
 * If the statement may not use other connections (transaction.c), the leader reads all by Citus's own node, without
 * parallel mode (executor.c).
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/parallel.h"
#include "commands/explain.h"
#include "executor/executor.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "node.h"
#include "pgstat.h"
#include "port/atomics.h"
#include "port/pg_bswap.h"
#include "settings.h"
#include "shards/citus.h"
#include "shards/connection.h"
#include "shards/transaction.h"
#include "storage/latch.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

/* For so long a process tries again to get a connection that no other may be about to give up, after milliseconds. */
#define CONNECT_SECONDS 2
#define TRY_AGAIN_MS    50

/* What a binary COPY begins with: a signature, flags, and the length of what else there is, which is none. */
#define COPY_BEGINNING 19

typedef struct TaskScanShared
{
	pg_atomic_uint32 at_once;      /* tasks that a process asks for */
	Oid user;                      /* as whom the statement reads */
	char application[NAMEDATALEN]; /* what connections are named */
	pg_atomic_uint32 over;         /* 1: nobody wants rows any more */
	pg_atomic_uint32 reading;      /* processes with connections, which look for tasks afterwards */
	pg_atomic_uint32 connections;
	pg_atomic_uint32 taken[FLEXIBLE_ARRAY_MEMBER]; /* of each task: 1: a process reads it, or has */
} TaskScanShared;

/* A task that this process has asked for */
typedef struct TaskStream
{
	GpuSortShardConnection *connection;
	bool begun; /* the beginning of the COPY has come */
} TaskStream;

typedef struct TaskScanState
{
	CustomScanState css; /* must be first field */
	const GpuSortCitusTask **tasks;
	int ntasks;
	Plan *citus;         /* the plan of Citus's own node; NULL: in a worker */
	const char *why_not; /* the statement may not use connections of its own; NULL: it may */
	Oid user;
	TaskScanShared *shared;         /* NULL: no processes share the scan */
	const ParallelContext *workers; /* NULL: this is one, or there are none */

	/* Of this process */
	MemoryContext context; /* of connections and their texts */
	TaskStream *streams;   /* what was asked for last; NULL: nothing was */
	int nstreams;
	int stream; /* that is read */
	bool read;  /* something has been asked for */
	bool ended;
	StringInfoData message; /* of the stream, of which rows are still to be taken off */
	FmgrInfo *receive;      /* of the columns */
	Oid *receive_params;

	PlanState *whole; /* Citus's node; NULL: it is not used */

	/* For EXPLAIN, of the leader's */
	uint32 connections;
} TaskScanState;

/* --- what processes share --------------------------------------------------------------------- */

static bool
are_for_one_node(const GpuSortCitusTask *one, const GpuSortCitusTask *other)
{
	return one->port == other->port && strcmp(one->host, other->host) == 0;
}

/* Returns how many nodes the tasks are for. */
static int
count_nodes(const TaskScanState *state)
{
	int count = 0;

	for (int i = 0; i < state->ntasks; i++)
	{
		int before = 0;

		while (before < i && !are_for_one_node(state->tasks[before], state->tasks[i]))
			before++;
		count += before == i;
	}
	return count;
}

static Size
shared_size(const TaskScanState *state)
{
	return offsetof(TaskScanShared, taken) + state->ntasks * sizeof(pg_atomic_uint32);
}

/* So many processes open no more connections to a node on average than are allowed. */
static void
divide_connections(const TaskScanState *state, int processes)
{
	const int share = (state->ntasks + processes - 1) / processes;
	const int connections = gpusort_shard_connections * count_nodes(state) / processes;

	pg_atomic_write_u32(&state->shared->at_once, Max(1, Min(share, connections)));
}

/* Begins the scan for so many processes. */
static void
init_shared(const TaskScanState *state, int processes)
{
	TaskScanShared *shared = state->shared;

	memset(shared, 0, shared_size(state));
	pg_atomic_init_u32(&shared->at_once, 0);
	divide_connections(state, processes);
	shared->user = state->user;
	strlcpy(shared->application, gpusort_citus_application_name(), NAMEDATALEN);
	pg_atomic_init_u32(&shared->over, 0);
	pg_atomic_init_u32(&shared->reading, 0);
	pg_atomic_init_u32(&shared->connections, 0);
	for (int i = 0; i < state->ntasks; i++)
		pg_atomic_init_u32(&shared->taken[i], 0);
}

static Size
estimate_shared(CustomScanState *css, ParallelContext *pcxt)
{
	return shared_size((const TaskScanState *) css);
}

static void
begin_shared(CustomScanState *css, ParallelContext *pcxt, void *coordinate)
{
	TaskScanState *state = (TaskScanState *) css;

	state->shared = coordinate;
	state->workers = pcxt;
	init_shared(state, 1 + pcxt->nworkers);
}

/* --- tasks ------------------------------------------------------------------------------------ */

/* Closes the connections of what was asked for. */
static void
close_streams(TaskScanState *state)
{
	if (state->context != NULL)
		MemoryContextReset(state->context);
	state->streams = NULL;
	state->nstreams = state->stream = 0;
	state->message.len = state->message.cursor = 0;
}

/* Takes a task that nobody has taken, and returns its number; -1: there is none. */
static int
take_task(TaskScanState *state)
{
	for (int i = 0; i < state->ntasks && pg_atomic_read_u32(&state->shared->over) == 0; i++)
	{
		if (pg_atomic_read_u32(&state->shared->taken[i]) == 0 &&
			pg_atomic_exchange_u32(&state->shared->taken[i], 1) == 0)
			return i;
	}
	return -1;
}

/* Sends a task to its node; false, with a reason, if there is no connection to be had. */
static bool
send_task(TaskScanState *state, const GpuSortCitusTask *task, const char **why_not)
{
	const GpuSortNode node = gpusort_citus_node(task, state->user, state->shared->application);
	TaskStream *stream = &state->streams[state->nstreams];
	MemoryContext caller = MemoryContextSwitchTo(state->context);

	stream->connection = gpusort_shard_connect_to_node(&node, why_not);
	if (stream->connection != NULL)
	{
		state->read = true;
		if (state->nstreams++ == 0)
			pg_atomic_fetch_add_u32(&state->shared->reading, 1);
		pg_atomic_fetch_add_u32(&state->shared->connections, 1);
		gpusort_shard_copy_begin(stream->connection, psprintf("COPY (%s) TO STDOUT (FORMAT binary)", task->sql));
	}
	MemoryContextSwitchTo(caller);
	return stream->connection != NULL;
}

/*
 * There was no connection for a task, and this process has none that others could wait for.  Waits, and returns true if
 * it is to try again.  The leader does not wait for workers, which may wait for it to take their rows, but leaves them
 * the task.  Throws an error if nobody has had a connection for a while.
 */
static bool
wait_for_connection(TaskScanState *state, const GpuSortCitusTask *task, TimestampTz *until, const char *why_not)
{
	const TimestampTz now = GetCurrentTimestamp();

	if (pg_atomic_read_u32(&state->shared->reading) > 0)
	{
		if (!IsParallelWorker())
			return false;
		*until = 0;
	}
	else if (*until == 0)
		*until = now + CONNECT_SECONDS * USECS_PER_SEC;
	else if (now >= *until)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_UNABLE_TO_ESTABLISH_CONNECTION),
				 errmsg("could not read from node %s:%d over another connection: %s", task->host, task->port, why_not),
				 errhint("gpusort.shard_connections = 0 prevents that.")));
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, TRY_AGAIN_MS, PG_WAIT_EXTENSION);
	ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
	return true;
}

/*
 * Asks for the next tasks; false: there are none for this process.  One for which its node has no connection left is
 * given back, for whoever looks for tasks next.
 */
static bool
ask_for_tasks(TaskScanState *state)
{
	TimestampTz until = 0;
	int at_once;
	int task;

	if (state->nstreams > 0)
		pg_atomic_fetch_sub_u32(&state->shared->reading, 1);
	close_streams(state);
	/* where not all workers have started each process may have more connections */
	if (state->workers != NULL && !state->read)
		divide_connections(state, 1 + state->workers->nworkers_launched);
	at_once = pg_atomic_read_u32(&state->shared->at_once);
	state->streams = MemoryContextAllocZero(state->context, at_once * sizeof(TaskStream));
	while (state->nstreams < at_once && (task = take_task(state)) >= 0)
	{
		const char *why_not = NULL;

		if (send_task(state, state->tasks[task], &why_not))
			continue;
		/* a barrier: who still counts as reading looks for tasks later */
		pg_atomic_exchange_u32(&state->shared->taken[task], 0);
		if (state->nstreams > 0 || !wait_for_connection(state, state->tasks[task], &until, why_not))
			break;
	}
	return state->nstreams > 0;
}

/* --- rows ------------------------------------------------------------------------------------- */

/* A value that a receive function refuses comes of this column. */
typedef struct TaskColumn
{
	TupleDesc desc;
	int column;
} TaskColumn;

static void
tell_column(void *arg)
{
	const TaskColumn *at = arg;

	errcontext("column \"%s\" of a node's rows", NameStr(TupleDescAttr(at->desc, at->column)->attname));
}

pg_noreturn static void
fail_format(void)
{
	ereport(ERROR, (errcode(ERRCODE_PROTOCOL_VIOLATION), errmsg("a node of Citus sent a row in an unknown format")));
}

/* Takes so many bytes off the message. */
static char *
take_bytes(StringInfo message, int count)
{
	char *bytes = message->data + message->cursor;

	if (count < 0 || count > message->len - message->cursor)
		fail_format();
	message->cursor += count;
	return bytes;
}

static int16
take_int16(StringInfo message)
{
	uint16 value;

	memcpy(&value, take_bytes(message, sizeof(value)), sizeof(value));
	return (int16) pg_ntoh16(value);
}

static int32
take_int32(StringInfo message)
{
	uint32 value;

	memcpy(&value, take_bytes(message, sizeof(value)), sizeof(value));
	return (int32) pg_ntoh32(value);
}

/* Takes a value off the message, for column number i. */
static void
take_value(TaskScanState *state, int i, TupleTableSlot *slot)
{
	StringInfo message = &state->message;
	const int32 length = take_int32(message);
	const int32 typmod = TupleDescAttr(slot->tts_tupleDescriptor, i)->atttypmod;
	StringInfoData value = {0};
	char behind;

	slot->tts_isnull[i] = length == -1;
	if (length == -1)
	{
		slot->tts_values[i] = ReceiveFunctionCall(&state->receive[i], NULL, state->receive_params[i], typmod);
		return;
	}
	value.data = take_bytes(message, length);
	value.len = length;
	value.maxlen = length + 1;
	/* receive functions may want a zero behind; libpq has one behind the message */
	behind = value.data[length];
	value.data[length] = '\0';
	slot->tts_values[i] = ReceiveFunctionCall(&state->receive[i], &value, state->receive_params[i], typmod);
	value.data[length] = behind;
	if (value.cursor != value.len)
		ereport(ERROR, (errcode(ERRCODE_INVALID_BINARY_REPRESENTATION), errmsg("incorrect binary data format")));
}

/* Takes a row off the message, whose values last as long as the current memory context; false: there are no more. */
static bool
take_row(TaskScanState *state, TupleTableSlot *slot)
{
	const int16 columns = take_int16(&state->message);
	TaskColumn at = {.desc = slot->tts_tupleDescriptor};
	ErrorContextCallback callback = {.callback = tell_column, .arg = &at, .previous = error_context_stack};

	if (columns == -1)
		return false;
	if (columns != at.desc->natts)
		fail_format();
	error_context_stack = &callback;
	for (; at.column < columns; at.column++)
		take_value(state, at.column, slot);
	error_context_stack = callback.previous;
	ExecStoreVirtualTuple(slot);
	return true;
}

/* Gets the next message of the stream; false: it has ended. */
static bool
next_message(TaskScanState *state, TaskStream *stream)
{
	StringInfo message = &state->message;

	message->data = gpusort_shard_copy_row(stream->connection, &message->len);
	message->cursor = 0;
	if (message->data == NULL)
	{
		message->len = 0;
		return false;
	}
	if (!stream->begun)
		(void) take_bytes(message, COPY_BEGINNING);
	stream->begun = true;
	return true;
}

/* Stores the next row of a stream; false: it has ended. */
static bool
next_of_stream(TaskScanState *state, TaskStream *stream, TupleTableSlot *slot)
{
	for (;;)
	{
		/* behind the last row is what says so, and nothing */
		if (state->message.cursor < state->message.len && take_row(state, slot))
			return true;
		if (!next_message(state, stream))
			return false;
	}
}

/* Returns the next row of the tasks that this process reads; NULL: there is none. */
static TupleTableSlot *
next_own(TaskScanState *state)
{
	TupleTableSlot *slot = state->css.ss.ss_ScanTupleSlot;
	MemoryContext caller = MemoryContextSwitchTo(state->css.ss.ps.ps_ExprContext->ecxt_per_tuple_memory);

	ExecClearTuple(slot);
	while (!state->ended)
	{
		if (state->stream < state->nstreams)
		{
			if (next_of_stream(state, &state->streams[state->stream], slot))
				break;
			gpusort_shard_close(state->streams[state->stream].connection);
			state->stream++;
		}
		else
			state->ended = !ask_for_tasks(state);
	}
	MemoryContextSwitchTo(caller);
	return slot;
}

/* The same of all tasks, by Citus's own node. */
static TupleTableSlot *
next_whole(TaskScanState *state)
{
	TupleTableSlot *row = ExecProcNode(state->whole);

	if (TupIsNull(row))
		return ExecClearTuple(state->css.ss.ss_ScanTupleSlot);
	return ExecCopySlot(state->css.ss.ss_ScanTupleSlot, row);
}

/* Begins Citus's own node, in place of this one. */
static void
begin_whole(TaskScanState *state)
{
	EState *estate = state->css.ss.ps.state;
	MemoryContext caller = MemoryContextSwitchTo(estate->es_query_cxt);

	state->whole = ExecInitNode(state->citus, estate, estate->es_top_eflags);
	MemoryContextSwitchTo(caller);
}

static TupleTableSlot *
next_row(ScanState *ss)
{
	TaskScanState *state = (TaskScanState *) ss;

	if (state->ended)
		return ExecClearTuple(ss->ss_ScanTupleSlot);
	if (state->shared == NULL && state->whole == NULL)
	{
		/* a portal's rows are wanted in parts, and other statements, which may take locks, come between */
		state->why_not = "the statement is run in parts";
		begin_whole(state);
	}
	return state->whole != NULL ? next_whole(state) : next_own(state);
}

/* A row is never checked again: no statement that locks rows has workers. */
static bool
recheck(ScanState *ss, TupleTableSlot *slot)
{
	return true;
}

static TupleTableSlot *
exec(CustomScanState *css)
{
	return ExecScan(&css->ss, next_row, recheck);
}

/* --- beginning and end ------------------------------------------------------------------------ */

static void
find_receive_functions(TaskScanState *state)
{
	TupleDesc desc = state->css.ss.ss_ScanTupleSlot->tts_tupleDescriptor;

	state->receive = palloc0(desc->natts * sizeof(FmgrInfo));
	state->receive_params = palloc0(desc->natts * sizeof(Oid));
	for (int i = 0; i < desc->natts; i++)
	{
		Oid function;

		getTypeBinaryInputInfo(TupleDescAttr(desc, i)->atttypid, &function, &state->receive_params[i]);
		fmgr_info(function, &state->receive[i]);
	}
}

static void
begin(CustomScanState *css, EState *estate, int eflags)
{
	TaskScanState *state = (TaskScanState *) css;
	List *tasks = gpusort_task_plan_unpack((CustomScan *) css->ss.ps.plan, &state->citus);
	ListCell *cell;

	state->tasks = palloc(list_length(tasks) * sizeof(GpuSortCitusTask *));
	foreach(cell, tasks)
		state->tasks[state->ntasks++] = lfirst(cell);
	if ((eflags & EXEC_FLAG_EXPLAIN_ONLY) != 0)
		return;
	state->user = GetUserId();
	state->context = AllocSetContextCreate(estate->es_query_cxt, "GpuSortTaskScan", ALLOCSET_SMALL_SIZES);
	find_receive_functions(state);
	if (IsParallelWorker())
		return;
	state->why_not = gpusort_tasks_why_not_read();
	if (state->why_not == NULL)
		state->why_not = gpusort_citus_why_not_connect();
	if (state->why_not == NULL)
		return;
	gpusort_shards_note_alone();
	begin_whole(state);
}

static void
begin_worker(CustomScanState *css, shm_toc *toc, void *coordinate)
{
	TaskScanState *state = (TaskScanState *) css;

	state->shared = coordinate;
	state->user = state->shared->user;
}

static void
rescan(CustomScanState *css)
{
	TaskScanState *state = (TaskScanState *) css;

	if (state->whole != NULL)
		ExecReScan(state->whole);
	else if (state->read || state->ended)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("the rows of Citus's nodes cannot be read twice"),
				 errhint("gpusort.shard_connections = 0 prevents that.")));
	ExecScanReScan(&css->ss);
}

static void
begin_again(CustomScanState *css, ParallelContext *pcxt, void *coordinate)
{
	TaskScanState *state = (TaskScanState *) css;

	state->shared = coordinate;
	state->workers = pcxt;
}

/* Nobody wants rows any more.  What processes share goes with the workers; figures may be asked for later. */
static void
shut_down(CustomScanState *css)
{
	TaskScanState *state = (TaskScanState *) css;

	if (state->shared == NULL || IsParallelWorker())
		return;
	state->connections = pg_atomic_read_u32(&state->shared->connections);
	pg_atomic_write_u32(&state->shared->over, 1);
	state->shared = NULL;
	state->workers = NULL;
	state->ended = true;
}

static void
end(CustomScanState *css)
{
	TaskScanState *state = (TaskScanState *) css;

	close_streams(state);
	if (state->whole != NULL)
		ExecEndNode(state->whole);
}

static void
explain(CustomScanState *css, List *ancestors, ExplainState *es)
{
	TaskScanState *state = (TaskScanState *) css;

	ExplainPropertyInteger("Tasks", NULL, state->ntasks, es);
	if (es->verbose)
	{
		ExplainPropertyText("First Task", state->tasks[0]->sql, es);
		ExplainPropertyText("Node of First Task", psprintf("%s:%d", state->tasks[0]->host, state->tasks[0]->port), es);
	}
	if (!es->analyze)
		return;
	if (state->why_not != NULL)
		ExplainPropertyText("Read Alone", state->why_not, es);
	else
		ExplainPropertyInteger("Connections", NULL, state->connections, es);
}

static const CustomExecMethods exec_methods = {
	.CustomName = GPUSORT_TASK_NODE_NAME,
	.BeginCustomScan = begin,
	.ExecCustomScan = exec,
	.EndCustomScan = end,
	.ReScanCustomScan = rescan,
	.EstimateDSMCustomScan = estimate_shared,
	.InitializeDSMCustomScan = begin_shared,
	.ReInitializeDSMCustomScan = begin_again,
	.InitializeWorkerCustomScan = begin_worker,
	.ShutdownCustomScan = shut_down,
	.ExplainCustomScan = explain,
};

static Node *
create_state(CustomScan *plan)
{
	TaskScanState *state = (TaskScanState *) newNode(sizeof(TaskScanState), T_CustomScanState);

	state->css.methods = &exec_methods;
	return (Node *) state;
}

const CustomScanMethods gpusort_task_scan_methods = {
	.CustomName = GPUSORT_TASK_NODE_NAME,
	.CreateCustomScanState = create_state,
};
