/*-------------------------------------------------------------------------
 *
 * scan.c
 *	  The node GpuSortShardScan: all processes of a plan read a foreign table of postgres_fdw.
 *
 * The table is divided into parts by the row numbers (ctid) that its rows have in the shard, and each process takes one
 * part after another, whose rows it asks for by a COPY over a connection of its own.  All are in the snapshot that the
 * leader's connection has exported.  What is no table in the shard, but a view, say, is one part.
 *
 * The rows are what postgres_fdw would have: by its text of the query, the same settings of the session, and input
 * functions for what comes as text.  Conditions that it does not send are evaluated here.
 *
 * If the statement may not use other connections (transaction.c), or the leader gets none, there are no workers, and
 * the leader reads the whole table by postgres_fdw's own node.
 *
 * A process that has no row any more says so for all: PostgreSQL begins a Parallel Append's scan in no other one then,
 * and a Parallel Hash takes its table for complete.  So a worker that gets no connection says it when all parts are
 * taken, and tries again before.  The leader, which has one, takes them in any case.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <math.h>

#include "access/parallel.h"
#include "access/table.h"
#include "commands/explain.h"
#include "executor/executor.h"
#include "fmgr.h"
#include "foreign/fdwapi.h"
#include "foreign/foreign.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "node.h"
#include "optimizer/optimizer.h"
#include "pgstat.h"
#include "port/atomics.h"
#include "settings.h"
#include "shards/connection.h"
#include "shards/transaction.h"
#include "storage/block.h"
#include "storage/latch.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

/* A part has so many pages at least: a query for it takes about a millisecond beside its rows. */
#define PART_PAGES 256

/* Parts that each process has on average, so that all end at about the same time */
#define PARTS_PER_PROCESS 4

/* For so long a process that gets no connection tries again, after so many milliseconds. */
#define CONNECT_SECONDS 30
#define TRY_AGAIN_MS    50

/* PostgreSQL versions from this one on read a range of row numbers without the rest of the table. */
#define READS_RANGES_FROM 140000

typedef struct ShardScanShared
{
	bool own;     /* processes read over connections of their own; else the leader by postgres_fdw's */
	uint32 parts; /* number of them */
	uint32 pages; /* of a part; the last has all that come after it, too */
	char snapshot[GPUSORT_SNAPSHOT_NAME_BYTES];
	Oid user;              /* as whom the statement reads */
	pg_atomic_uint32 over; /* 1: nobody wants rows any more */
	pg_atomic_uint32 next; /* part */
	pg_atomic_uint32 connections;
} ShardScanShared;

typedef struct ShardScanState
{
	CustomScanState css; /* must be first field */
	GpuSortShardScanInfo info;
	Oid server;
	Oid user;
	const char *why_not;     /* the statement may not use connections of its own; NULL: it may */
	ShardScanShared *shared; /* NULL: the leader is alone */

	/* Of this process */
	GpuSortShardConnection *connection; /* NULL: it has none */
	bool reading;                       /* a part, of which rows are still to come */
	bool ended;
	MemoryContext text_context; /* of the part's query */
	FmgrInfo *input;            /* of the table's columns */
	Oid *input_params;

	ForeignScanState *whole; /* postgres_fdw's node; NULL: it is not used */

	/* For EXPLAIN, of the leader's */
	bool shown;
	uint32 parts;
	uint32 connections;
} ShardScanState;

/* --- the leader ------------------------------------------------------------------------------- */

/* Adds an identifier, quoted in any case. */
static void
add_name(StringInfo text, const char *name)
{
	appendStringInfoChar(text, '"');
	for (; *name != '\0'; name++)
	{
		if (*name == '"')
			appendStringInfoChar(text, '"');
		appendStringInfoChar(text, *name);
	}
	appendStringInfoChar(text, '"');
}

/* Finds out into how many parts a table is to be divided; false, with a reason, if the shard does not say. */
static bool
find_parts(ShardScanState *state, GpuSortShardConnection *connection, int processes, const char **why_not)
{
	ShardScanShared *shared = state->shared;
	StringInfoData name;
	StringInfoData sql;
	char *values[2];
	double pages;

	shared->parts = 1;
	if (state->info.part_sql[0] == '\0' || gpusort_shard_version(connection) < READS_RANGES_FROM)
		return true;
	initStringInfo(&name);
	add_name(&name, state->info.schema);
	appendStringInfoChar(&name, '.');
	add_name(&name, state->info.table);
	initStringInfo(&sql);
	appendStringInfo(&sql,
					 "SELECT c.relkind IN ('r', 'm'), pg_catalog.pg_relation_size(c.oid) / "
					 "pg_catalog.current_setting('block_size')::int8 FROM pg_catalog.pg_class c "
					 "WHERE c.oid = %s::pg_catalog.regclass",
					 quote_literal_cstr(name.data));
	if (!gpusort_shard_ask(connection, sql.data, values, 2, why_not))
		return false;
	if (values[0][0] != 't')
		return true;
	pages = strtod(values[1], NULL);
	shared->pages = Max(PART_PAGES, ceil(pages / (PARTS_PER_PROCESS * processes)));
	shared->parts = Max(1, ceil(pages / shared->pages));
	return true;
}

/* Throws an error for which other connections are the reason. */
pg_noreturn static void
fail(const ShardScanState *state, const char *why)
{
	ereport(ERROR,
			(errcode(ERRCODE_FDW_UNABLE_TO_ESTABLISH_CONNECTION),
			 errmsg("could not read foreign table \"%s\" over another connection: %s",
					RelationGetRelationName(state->css.ss.ss_currentRelation), why),
			 errhint("gpusort.shard_connections = 0 prevents that.")));
}

/*
 * Opens the leader's connection, whose snapshot others import, and divides the table; false: that cannot be done, and
 * state tells why.  Once another table of the server may have been read so, that is an error: postgres_fdw would read
 * in another snapshot.
 */
static bool
begin_parts(ShardScanState *state, int processes)
{
	EState *estate = state->css.ss.ps.state;
	GpuSortShardConnection *connection;
	const char *snapshot;
	const char *why_not;

	if (state->why_not == NULL && !parallel_leader_participation)
		state->why_not = "parallel_leader_participation is off";
	if (state->why_not != NULL)
		return false;
	snapshot = gpusort_shard_snapshot(estate, state->server, state->user, &state->why_not);
	if (snapshot == NULL)
		return false;
	strlcpy(state->shared->snapshot, snapshot, sizeof(state->shared->snapshot));
	connection = gpusort_shard_connect(estate, state->server, state->user, snapshot, &why_not);
	if (connection == NULL || !find_parts(state, connection, processes, &why_not))
		fail(state, why_not);
	gpusort_shard_release(connection);
	return true;
}

static Size
estimate_shared(CustomScanState *css, ParallelContext *pcxt)
{
	return sizeof(ShardScanShared);
}

/* Begins the scan for all processes, before any of them reads. */
static void
begin_shared(CustomScanState *css, ParallelContext *pcxt, void *coordinate)
{
	ShardScanState *state = (ShardScanState *) css;

	state->shared = coordinate;
	memset(state->shared, 0, sizeof(ShardScanShared));
	state->shared->user = state->user;
	state->ended = false;
	pg_atomic_init_u32(&state->shared->over, 0);
	pg_atomic_init_u32(&state->shared->next, 0);
	pg_atomic_init_u32(&state->shared->connections, 0);
	state->shared->own = begin_parts(state, pcxt->nworkers + 1);
	/* other nodes may want more workers; the leader has a connection, too */
	pcxt->nworkers_to_launch =
		state->shared->own ? Min(pcxt->nworkers_to_launch, Max(gpusort_shard_connections - 1, 0)) : 0;
}

/* --- rows ------------------------------------------------------------------------------------- */

/* Puts a literal for a row number in the place of the only text that stands for it. */
static void
put_row_number(StringInfo sql, const char *text, const char *stands_for, uint32 page)
{
	const char *at = strstr(text, stands_for);

	if (at == NULL)
		elog(ERROR, "the text of a part has no \"%s\"", stands_for);
	appendBinaryStringInfo(sql, text, at - text);
	appendStringInfo(sql, "(%u,0)", page);
	appendStringInfoString(sql, at + strlen(stands_for));
}

/* Returns the COPY of part number n, in the current memory context. */
static char *
part_command(const ShardScanState *state, uint32 n)
{
	const ShardScanShared *shared = state->shared;
	StringInfoData begin;
	StringInfoData sql;

	initStringInfo(&sql);
	appendStringInfoString(&sql, "COPY (");
	if (shared->parts == 1)
		appendStringInfoString(&sql, state->info.sql);
	else
	{
		initStringInfo(&begin);
		put_row_number(&begin, state->info.part_sql, state->info.from, n * shared->pages);
		put_row_number(&sql, begin.data, state->info.to,
					   n + 1 < shared->parts ? (n + 1) * shared->pages : InvalidBlockNumber);
	}
	appendStringInfoString(&sql, ") TO STDOUT");
	return sql.data;
}

/* Returns true if there are parts that nobody has taken. */
static bool
are_parts_left(const ShardScanState *state)
{
	return pg_atomic_read_u32(&state->shared->next) < state->shared->parts &&
		pg_atomic_read_u32(&state->shared->over) == 0;
}

/* Gets this process a connection; false: others have taken all parts before it got one. */
static bool
get_connection(ShardScanState *state)
{
	const TimestampTz until = GetCurrentTimestamp() + CONNECT_SECONDS * USECS_PER_SEC;
	const char *why_not = NULL;

	while (state->connection == NULL)
	{
		if (!are_parts_left(state))
			return false;
		state->connection = gpusort_shard_connect(state->css.ss.ps.state, state->server, state->user,
												  state->shared->snapshot, &why_not);
		if (state->connection != NULL)
		{
			pg_atomic_fetch_add_u32(&state->shared->connections, 1);
			break;
		}
		if (GetCurrentTimestamp() >= until)
			fail(state, why_not);
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, TRY_AGAIN_MS, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
	return true;
}

/* Lets other nodes of this process use the connection. */
static void
leave_connection(ShardScanState *state)
{
	if (state->connection != NULL)
		gpusort_shard_release(state->connection);
	state->connection = NULL;
	state->reading = false;
}

/* Begins to read the next part; false: there is none for this process. */
static bool
begin_part(ShardScanState *state)
{
	MemoryContext caller;
	uint32 part;

	part = state->shared->parts;
	if (are_parts_left(state) && get_connection(state))
		part = pg_atomic_fetch_add_u32(&state->shared->next, 1);
	if (part >= state->shared->parts)
	{
		leave_connection(state);
		return false;
	}
	MemoryContextReset(state->text_context);
	caller = MemoryContextSwitchTo(state->text_context);
	gpusort_shard_copy_begin(state->connection, part_command(state, part));
	MemoryContextSwitchTo(caller);
	return true;
}

/* The control characters that COPY writes with a backslash and a letter */
static char
unescaped(char letter)
{
	switch (letter)
	{
		case 'b':
			return '\b';
		case 'f':
			return '\f';
		case 'n':
			return '\n';
		case 'r':
			return '\r';
		case 't':
			return '\t';
		case 'v':
			return '\v';
		default:
			return letter;
	}
}

/*
 * Takes a value off a row of COPY's, of which *row is what is left, and makes it a string, in place; returns NULL for
 * NULL.
 */
static char *
take_value(char **row)
{
	char *value = *row;
	char *to;
	char *from;

	if (value[0] == '\\' && value[1] == 'N')
	{
		*row = value + 3;
		return NULL;
	}
	from = value + strcspn(value, "\t\n\\");
	for (to = from; *from != '\t' && *from != '\n'; from++)
		*to++ = *from == '\\' ? unescaped(*++from) : *from;
	*to = '\0';
	*row = from + 1;
	return value;
}

/* A value that an input function refuses comes of this column. */
typedef struct ShardColumn
{
	Relation table;
	int attno;
} ShardColumn;

static void
tell_column(void *arg)
{
	const ShardColumn *column = arg;

	if (column->attno > 0)
		errcontext("column \"%s\" of foreign table \"%s\"",
				   NameStr(TupleDescAttr(RelationGetDescr(column->table), column->attno - 1)->attname),
				   RelationGetRelationName(column->table));
}

/* Stores a row of COPY's, whose values last as long as the current memory context. */
static void
store_row(ShardScanState *state, char *row, int length, TupleTableSlot *slot)
{
	TupleDesc desc = slot->tts_tupleDescriptor;
	char *const end = row + length;
	ShardColumn column = {.table = state->css.ss.ss_currentRelation};
	ErrorContextCallback callback = {.callback = tell_column, .arg = &column, .previous = error_context_stack};
	ListCell *cell;

	ExecClearTuple(slot);
	memset(slot->tts_isnull, true, desc->natts * sizeof(bool));
	error_context_stack = &callback;
	foreach(cell, state->info.columns)
	{
		const int i = lfirst_int(cell) - 1;
		char *value;

		if (row >= end)
			ereport(ERROR, (errcode(ERRCODE_FDW_ERROR), errmsg("a row of a shard has too few columns")));
		value = take_value(&row);
		column.attno = i + 1;
		slot->tts_values[i] = InputFunctionCall(&state->input[i], value, state->input_params[i],
												TupleDescAttr(desc, i)->atttypmod);
		slot->tts_isnull[i] = value == NULL;
	}
	error_context_stack = callback.previous;
	ExecStoreVirtualTuple(slot);
}

/* Returns the next row of the parts that this process reads; NULL: there is none. */
static TupleTableSlot *
next_own(ShardScanState *state)
{
	TupleTableSlot *slot = state->css.ss.ss_ScanTupleSlot;
	MemoryContext caller;
	char *row = NULL;
	int length;

	while (!state->ended)
	{
		if (state->reading)
			row = gpusort_shard_copy_row(state->connection, &length);
		if (row != NULL)
			break;
		state->reading = begin_part(state);
		state->ended = !state->reading;
	}
	if (row == NULL)
		return ExecClearTuple(slot);
	caller = MemoryContextSwitchTo(state->css.ss.ps.ps_ExprContext->ecxt_per_tuple_memory);
	store_row(state, row, length, slot);
	MemoryContextSwitchTo(caller);
	return slot;
}

/* Begins postgres_fdw's own node, as the user with whom the statement has begun. */
static void
begin_whole(ShardScanState *state)
{
	CustomScan *plan = (CustomScan *) state->css.ss.ps.plan;
	EState *estate = state->css.ss.ps.state;
	MemoryContext caller = MemoryContextSwitchTo(estate->es_query_cxt);
	Oid user;
	int security;

	/* an error puts the user back */
	GetUserIdAndSecContext(&user, &security);
	SetUserIdAndSecContext(state->user, security | SECURITY_LOCAL_USERID_CHANGE);
	state->whole = castNode(ForeignScanState, ExecInitNode(linitial(plan->custom_plans), estate, 0));
	SetUserIdAndSecContext(user, security);
	MemoryContextSwitchTo(caller);
}

/* The same of the whole table, by postgres_fdw's own node. */
static TupleTableSlot *
next_whole(ShardScanState *state)
{
	MemoryContext caller;
	ExprContext *econtext;
	TupleTableSlot *row;

	if (state->whole == NULL)
		begin_whole(state);
	econtext = state->whole->ss.ps.ps_ExprContext;
	ResetExprContext(econtext);
	caller = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
	row = state->whole->fdwroutine->IterateForeignScan(state->whole);
	MemoryContextSwitchTo(caller);
	if (TupIsNull(row))
		return ExecClearTuple(state->css.ss.ss_ScanTupleSlot);
	return ExecCopySlot(state->css.ss.ss_ScanTupleSlot, row);
}

static TupleTableSlot *
next_row(ScanState *ss)
{
	ShardScanState *state = (ShardScanState *) ss;

	if (state->ended)
		return ExecClearTuple(ss->ss_ScanTupleSlot);
	return state->shared != NULL && state->shared->own ? next_own(state) : next_whole(state);
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
find_input_functions(ShardScanState *state)
{
	TupleDesc desc = RelationGetDescr(state->css.ss.ss_currentRelation);
	ListCell *cell;

	state->input = palloc0(desc->natts * sizeof(FmgrInfo));
	state->input_params = palloc0(desc->natts * sizeof(Oid));
	foreach(cell, state->info.columns)
	{
		const int i = lfirst_int(cell) - 1;
		Oid function;

		getTypeInputInfo(TupleDescAttr(desc, i)->atttypid, &function, &state->input_params[i]);
		fmgr_info(function, &state->input[i]);
	}
}

static void
begin(CustomScanState *css, EState *estate, int eflags)
{
	ShardScanState *state = (ShardScanState *) css;

	state->info = gpusort_shard_plan_unpack((CustomScan *) css->ss.ps.plan);
	if ((eflags & EXEC_FLAG_EXPLAIN_ONLY) != 0)
		return;
	state->ended = false;
	state->server = GetForeignTable(RelationGetRelid(css->ss.ss_currentRelation))->serverid;
	state->user = GetUserId();
	state->why_not = gpusort_shards_why_not_read();
	state->text_context = AllocSetContextCreate(estate->es_query_cxt, "GpuSortShardScan", ALLOCSET_SMALL_SIZES);
	find_input_functions(state);
}

static void
begin_worker(CustomScanState *css, shm_toc *toc, void *coordinate)
{
	ShardScanState *state = (ShardScanState *) css;

	state->shared = coordinate;
	state->user = state->shared->user;
}

static void
rescan(CustomScanState *css)
{
	ShardScanState *state = (ShardScanState *) css;
	int length;

	/* The leader's connection keeps the snapshot of all, so it is not closed: what still comes is thrown away. */
	while (state->reading && gpusort_shard_copy_row(state->connection, &length) != NULL)
		CHECK_FOR_INTERRUPTS();
	leave_connection(state);
	state->ended = false;
	if (state->whole != NULL)
		ExecReScan(&state->whole->ss.ps);
	ExecScanReScan(&css->ss);
}

static void
begin_again(CustomScanState *css, ParallelContext *pcxt, void *coordinate)
{
	ShardScanState *state = (ShardScanState *) css;

	state->shared = coordinate;
	pg_atomic_write_u32(&state->shared->over, 0);
	pg_atomic_write_u32(&state->shared->next, 0);
}

/* Nobody wants rows any more.  What processes share goes with the workers; figures may be asked for later. */
static void
shut_down(CustomScanState *css)
{
	ShardScanState *state = (ShardScanState *) css;

	if (state->shared == NULL || IsParallelWorker())
		return;
	state->shown = state->shared->own;
	state->parts = state->shared->parts;
	state->connections = pg_atomic_read_u32(&state->shared->connections);
	pg_atomic_write_u32(&state->shared->over, 1);
	state->shared = NULL;
	state->ended = true;
}

static void
end(CustomScanState *css)
{
	ShardScanState *state = (ShardScanState *) css;

	leave_connection(state);
	if (state->whole != NULL)
		ExecEndNode(&state->whole->ss.ps);
}

static void
explain(CustomScanState *css, List *ancestors, ExplainState *es)
{
	ShardScanState *state = (ShardScanState *) css;

	if (es->verbose)
		ExplainPropertyText("Remote SQL", state->info.sql, es);
	if (!es->analyze)
		return;
	if (state->shown)
	{
		ExplainPropertyInteger("Parts", NULL, state->parts, es);
		ExplainPropertyInteger("Connections", NULL, state->connections, es);
	}
	else if (state->why_not != NULL)
		ExplainPropertyText("Read Alone", state->why_not, es);
}

static const CustomExecMethods exec_methods = {
	.CustomName = GPUSORT_SHARD_NODE_NAME,
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
	ShardScanState *state = (ShardScanState *) newNode(sizeof(ShardScanState), T_CustomScanState);

	state->css.methods = &exec_methods;
	return (Node *) state;
}

const CustomScanMethods gpusort_shard_scan_methods = {
	.CustomName = GPUSORT_SHARD_NODE_NAME,
	.CreateCustomScanState = create_state,
};
