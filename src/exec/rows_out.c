/*-------------------------------------------------------------------------
 *
 * rows_out.c
 *	  Rows of a GpuSortExchange leave the server as bytes that all processes form.
 *
 * A hook of ExecutorRun looks where a query's rows go.  If its plan has a GpuSortExchange on top, and the rows go to a
 * client, in one call, by PostgreSQL's own receiver (printtup), the node has the rows formed
 * (gpusort_exchange_form_rows), and a receiver of this file stands before PostgreSQL's: it sends the bytes of rows that
 * were formed as they are, and leaves other rows to PostgreSQL's.  What starts up and shuts down is PostgreSQL's
 * receiver in any case.
 *
 * Otherwise, and where anything is not known, such as another module's receiver or a type whose output is not parallel
 * safe, rows come as rows.
 *
 * A slot stands for many rows then: the executor counts it as one, and the others are added here.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/rows_out.h"

#include "access/printtup.h"
#include "exec/exchange.h"
#include "executor/executor.h"
#include "facts/output_functions.h"
#include "miscadmin.h"
#include "form/former.h"
#include "settings.h"
#include "tcop/pquery.h"
#include "utils/memutils.h"

/* Stands before a receiver of PostgreSQL's. */
typedef struct RowsOut
{
	DestReceiver pub; /* must be first field */
	DestReceiver *receiver;
	EState *estate;
	PlanState *exchange;
} RowsOut;

static ExecutorRun_hook_type previous_executor_run = NULL;

/* The methods of PostgreSQL's receiver for clients; NULL: not asked for yet. */
static bool (*print_row)(TupleTableSlot *slot, DestReceiver *self) = NULL;

static void
start_up(DestReceiver *self, int operation, TupleDesc desc)
{
	RowsOut *out = (RowsOut *) self;

	out->receiver->rStartup(out->receiver, operation, desc);
}

static bool
receive(TupleTableSlot *slot, DestReceiver *self)
{
	RowsOut *out = (RowsOut *) self;
	const GpuSortFormedRows *formed = gpusort_exchange_formed_rows(out->exchange, slot);

	if (formed == NULL)
		return out->receiver->receiveSlot(slot, out->receiver);
	CHECK_FOR_INTERRUPTS();
	gpusort_messages_send(formed->data, formed->length);
	out->estate->es_processed += formed->rows - 1;
	return true;
}

static void
shut_down(DestReceiver *self)
{
	RowsOut *out = (RowsOut *) self;

	out->receiver->rShutdown(out->receiver);
}

/* PostgreSQL's receiver belongs to who made it. */
static void
destroy(DestReceiver *self)
{
}

/* Returns true if a receiver is PostgreSQL's own for clients. */
static bool
is_printtup(const DestReceiver *receiver)
{
	if (receiver->mydest != DestRemote && receiver->mydest != DestRemoteExecute)
		return false;
	if (print_row == NULL)
	{
		DestReceiver *own = printtup_create_DR(DestRemote);

		print_row = own->receiveSlot;
		own->rDestroy(own);
	}
	return receiver->receiveSlot == print_row;
}

/* Returns true if all rows of a query are to be read at once, of a GpuSortExchange, as it emits them. */
static bool
reads_exchange(const QueryDesc *query, ScanDirection direction, uint64 count)
{
	return query->operation == CMD_SELECT && gpusort_is_exchange(query->planstate) &&
		query->estate->es_junkFilter == NULL && ScanDirectionIsForward(direction) && count == 0 && !query->already_executed;
}

/* Returns true if the rows of a query go to the client that the running portal is for. */
static bool
goes_to_client(const QueryDesc *query)
{
	return ActivePortal != NULL && ActivePortal->queryDesc == query && gpusort_messages_are_sent() &&
		is_printtup(query->dest);
}

/* Returns what stands before the receiver of a query whose rows processes are to form. */
static RowsOut *
make(QueryDesc *query, const GpuSortFormat *format)
{
	RowsOut *out = palloc0(sizeof(RowsOut));

	out->pub.receiveSlot = receive;
	out->pub.rStartup = start_up;
	out->pub.rShutdown = shut_down;
	out->pub.rDestroy = destroy;
	out->pub.mydest = query->dest->mydest;
	out->receiver = query->dest;
	out->estate = query->estate;
	out->exchange = query->planstate;
	gpusort_exchange_form_rows(out->exchange, format, gpusort_former_over(out->receiver));
	return out;
}

/* The same, or NULL if they are not. */
static RowsOut *
begin(QueryDesc *query, ScanDirection direction, uint64 count)
{
	MemoryContext caller;
	GpuSortFormat *format;
	const char *why_not;
	RowsOut *out = NULL;

	if (!reads_exchange(query, direction, count) || !gpusort_parallel_output || !goes_to_client(query))
		return NULL;
	caller = MemoryContextSwitchTo(query->estate->es_query_cxt);
	format = gpusort_format_of_portal(query->tupDesc);
	why_not = gpusort_why_no_output(query->tupDesc, format->columns);
	if (why_not == NULL)
		out = make(query, format);
	else if (gpusort_log_decisions)
		ereport(LOG, (errmsg("gpusort: one process forms the rows for the client: %s", why_not)));
	MemoryContextSwitchTo(caller);
	return out;
}

static void
run_next(EXECUTOR_RUN_PARAMETERS)
{
	if (previous_executor_run != NULL)
		previous_executor_run(EXECUTOR_RUN_ARGUMENTS);
	else
		standard_ExecutorRun(EXECUTOR_RUN_ARGUMENTS);
}

/* The hook. */
static void
executor_run(EXECUTOR_RUN_PARAMETERS)
{
	RowsOut *out = begin(query, direction, count);

	if (out == NULL)
	{
		run_next(EXECUTOR_RUN_ARGUMENTS);
		return;
	}
	query->dest = &out->pub;
	PG_TRY();
	{
		run_next(EXECUTOR_RUN_ARGUMENTS);
	}
	PG_FINALLY();
	{
		gpusort_catch_end();
		query->dest = out->receiver;
	}
	PG_END_TRY();
}

/* To be called once, at load. */
void
gpusort_rows_out_init(void)
{
	previous_executor_run = ExecutorRun_hook;
	ExecutorRun_hook = executor_run;
}
