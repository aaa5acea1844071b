/*-------------------------------------------------------------------------
 *
 * fetch_out.c
 *	  Rows that a client gets by FETCH leave the server without a tuplestore.
 *
 * PostgreSQL runs a FETCH as a command: it puts the cursor's rows into a tuplestore, and when the command has come to
 * its end it reads them, and forms what the client gets.  Here they are formed at once, as the command gets them from
 * the cursor's query, by PostgreSQL's own receiver for a client, and wait as bytes (form/late_rows.h).  Beyond so many
 * bytes, and from a row on that cannot be formed, rows go into the tuplestore, which is sent behind them.  So an error
 * of an output function comes when it did: behind the rows before it, and when the cursor has moved on.
 *
 * A hook of ProcessUtility sees the FETCH, and which portal has it, whose formats are those of the columns.  The hook
 * of ExecutorRun sees the cursor's query, whose rows go to the command's receiver.  Nothing of that is done for another
 * FETCH than that of a simple query, for a cursor without a node of ours on top, or a type whose output function is not
 * parallel safe, of which nothing is known: one may look at what the command has changed.
 *
 * Rows that are formed already, ahead of the FETCH, are taken as they are (ahead.h): as in rows_out.c, one slot stands
 * for all of them, and the executor is asked for as many fewer.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/fetch_out.h"

#include "access/printtup.h"
#include "client/elapsed.h"
#include "exec/ahead.h"
#include "facts/output_functions.h"
#include "form/attempt.h"
#include "form/former.h"
#include "form/late_rows.h"
#include "miscadmin.h"
#include "node.h"
#include "replication/walsender.h"
#include "settings.h"
#include "tcop/pquery.h"
#include "tcop/utility.h"

/* Fewer rows are not worth what is looked at before the first. */
#define ROWS_MIN 100

/* Rows are formed at once up to so many bytes, or work_mem. */
#define BYTES_MAX ((Size) 64 << 20)

/* A FETCH that is run. */
typedef struct FetchOut
{
	DestReceiver pub;    /* must be first field */
	DestReceiver *store; /* PostgreSQL's, of the command */
	Portal portal;       /* that has the command */
	QueryDesc *query;    /* the cursor's; NULL: it is not run, or its rows go to the store */
	instr_time begin;
	GpuSortFormer former;
	Size most_bytes;
	uint64 stands_for; /* what the first slot stands for; 0: itself */
	uint64 taken_rows; /* that had been formed, and their bytes */
	Size taken_bytes;
	uint64 rows;         /* all that go as bytes */
	bool full;           /* further rows go to the store */
	ResourceOwner owner; /* of attempts to form rows */
	bool good;           /* none has failed */
	TupleTableSlot *slot;
	bool formed; /* what is in slot */
} FetchOut;

static ProcessUtility_hook_type previous_process_utility = NULL;

/* The FETCH that is run; NULL: none, or not of this way. */
static FetchOut *current = NULL;

/* Starts both receivers up: rows may go to each. */
static void
start_up(DestReceiver *self, int operation, TupleDesc desc)
{
	FetchOut *out = (FetchOut *) self;
	GpuSortFormer *former = &out->former;

	out->store->rStartup(out->store, operation, desc);
	former->desc = desc;
	/* that of an Execute does not describe the rows */
	former->receiver = printtup_create_DR(DestRemoteExecute);
	SetRemoteDestReceiverParams(former->receiver, out->portal);
	former->receiver->rStartup(former->receiver, operation, desc);
	out->owner = gpusort_attempts_begin();
	out->good = true;
}

static void
shut_down(DestReceiver *self)
{
	FetchOut *out = (FetchOut *) self;
	DestReceiver *receiver = out->former.receiver;

	gpusort_ahead_note(out->query, out->rows - out->taken_rows, out->former.caught.bytes.len - out->taken_bytes,
					   out->taken_rows, gpusort_ms_since(out->begin));
	gpusort_attempts_end(out->owner, out->good);
	receiver->rShutdown(receiver);
	receiver->rDestroy(receiver);
	out->store->rShutdown(out->store);
}

static void
destroy(DestReceiver *self)
{
}

/* Counts the rows that the slot stands for, which have been taken. */
static bool
receive_taken(FetchOut *out)
{
	out->query->estate->es_processed += out->stands_for - 1;
	out->rows += out->stands_for;
	out->stands_for = 0;
	return true;
}

static void
form(void *arg)
{
	FetchOut *out = arg;

	out->formed = gpusort_former_row(&out->former, out->slot);
}

/* Forms a row; false if it is too long, or cannot be formed, which fails when it is sent. */
static bool
form_row(FetchOut *out, TupleTableSlot *slot)
{
	out->slot = slot;
	out->formed = false;
	out->good = gpusort_attempt(out->owner, form, out);
	if (unlikely(!out->good))
		gpusort_catch_end(NULL);
	return out->formed;
}

static bool
receive(TupleTableSlot *slot, DestReceiver *self)
{
	FetchOut *out = (FetchOut *) self;

	if (unlikely(out->stands_for > 0))
		return receive_taken(out);
	if (likely(!out->full) && form_row(out, slot))
	{
		out->rows++;
		out->full = out->former.caught.bytes.len >= out->most_bytes;
		return true;
	}
	out->full = true;
	return out->store->receiveSlot(slot, out->store);
}

/*
 * Returns true if a portal is of a simple query, which gets all of its rows at once.  Of one that is executed by the
 * extended protocol that is not known: the most rows that are wanted are known to PortalRun alone.
 */
static bool
is_of_simple_query(const Portal portal)
{
	return portal->name[0] == '\0' && !portal->visible;
}

/* Returns true if a command is the FETCH of a client that gets all of its rows at once. */
static bool
is_fetch(const PlannedStmt *plan, ProcessUtilityContext context, const DestReceiver *receiver)
{
	const FetchStmt *fetch = (const FetchStmt *) plan->utilityStmt;

	return IsA(fetch, FetchStmt) && !fetch->ismove && fetch->direction == FETCH_FORWARD && fetch->howMany >= ROWS_MIN &&
		context == PROCESS_UTILITY_TOPLEVEL && receiver->mydest == DestTuplestore && ActivePortal != NULL &&
		ActivePortal->strategy == PORTAL_UTIL_SELECT && is_of_simple_query(ActivePortal) &&
		linitial(ActivePortal->stmts) == plan && ActivePortal->formats != NULL && gpusort_parallel_output && !am_walsender &&
		gpusort_settings_enabled() && gpusort_messages_are_sent();
}

/* Returns true if a query's rows are of such types as the command is known to have. */
static bool
has_columns(const QueryDesc *query, const Portal portal)
{
	const TupleDesc desc = portal->tupDesc;

	if (desc == NULL || desc->natts != query->tupDesc->natts)
		return false;
	for (int i = 0; i < desc->natts; i++)
	{
		if (TupleDescAttr(desc, i)->atttypid != TupleDescAttr(query->tupDesc, i)->atttypid)
			return false;
	}
	return true;
}

/* Returns true if a query is the cursor's whose rows the current FETCH gets, in this way. */
static bool
is_fetched(const QueryDesc *query, ScanDirection direction)
{
	return query->dest == current->store && current->query == NULL && ActivePortal != NULL &&
		ActivePortal->queryDesc == query && ScanDirectionIsForward(direction) && query->operation == CMD_SELECT &&
		query->planstate != NULL && gpusort_node_is_ours(query->planstate->plan) &&
		has_columns(query, current->portal) && gpusort_why_no_output(query->tupDesc, current->portal->formats) == NULL;
}

/*
 * Returns the receiver for so many rows of a query, 0 for all, if it is a cursor's and the client gets them in this
 * way; *count becomes that of slots.  Returns NULL otherwise.
 */
DestReceiver *
gpusort_fetch_out_begin(QueryDesc *query, ScanDirection direction, uint64 *count)
{
	FetchOut *out = current;

	if (likely(out == NULL) || !is_fetched(query, direction))
		return NULL;
	out->query = query;
	INSTR_TIME_SET_CURRENT(out->begin);
	out->former = (GpuSortFormer){.encoding = -1, .caught = gpusort_late_rows_begin()};
	out->stands_for =
		gpusort_ahead_take(query, out->portal->formats, *count, out->most_bytes, &out->former.caught.bytes);
	out->taken_rows = out->stands_for;
	out->taken_bytes = out->former.caught.bytes.len;
	if (out->stands_for > 0 && *count > 0)
		*count -= out->stands_for - 1;
	out->full = out->former.caught.bytes.len >= out->most_bytes;
	return &out->pub;
}

static void
run_next(PlannedStmt *plan, const char *query, bool read_only, ProcessUtilityContext context, ParamListInfo params,
		 QueryEnvironment *environment, DestReceiver *receiver, QueryCompletion *completion)
{
	if (previous_process_utility != NULL)
		previous_process_utility(plan, query, read_only, context, params, environment, receiver, completion);
	else
		standard_ProcessUtility(plan, query, read_only, context, params, environment, receiver, completion);
}

/* The hook. */
static void
process_utility(PlannedStmt *plan, const char *query, bool read_only, ProcessUtilityContext context,
				ParamListInfo params, QueryEnvironment *environment, DestReceiver *receiver,
				QueryCompletion *completion)
{
	FetchOut out;

	if (!is_fetch(plan, context, receiver))
	{
		run_next(plan, query, read_only, context, params, environment, receiver, completion);
		return;
	}
	out = (FetchOut){
		.pub = {.receiveSlot = receive, .rStartup = start_up, .rShutdown = shut_down, .rDestroy = destroy},
		.store = receiver,
		.portal = ActivePortal,
		.most_bytes = Min((Size) work_mem * 1024, BYTES_MAX)};
	out.pub.mydest = receiver->mydest;
	current = &out;
	PG_TRY();
	{
		run_next(plan, query, read_only, context, params, environment, receiver, completion);
	}
	PG_CATCH();
	{
		current = NULL;
		gpusort_late_rows_drop();
		PG_RE_THROW();
	}
	PG_END_TRY();
	current = NULL;
	if (out.query != NULL)
		gpusort_late_rows_send_later(&out.former.caught, out.rows);
}

/* To be called once, at load. */
void
gpusort_fetch_out_init(void)
{
	previous_process_utility = ProcessUtility_hook;
	ProcessUtility_hook = process_utility;
}
