/*-------------------------------------------------------------------------
 *
 * rows_out.c
 *	  Rows of a GpuSortExchange leave the server as bytes that all processes form.
 *
 * A hook of ExecutorRun looks where a query's rows go.  If its plan has a GpuSortExchange on top, and the rows go to a
 * client, or to the file or program of a COPY (copy_file.c), in one call, by PostgreSQL's own receiver, that of a
 * SELECT (printtup) or of a COPY, the node has the rows formed (gpusort_exchange_form_rows), and a receiver of this
 * file stands before PostgreSQL's: it sends the bytes of rows that were formed as they are, and leaves other rows to
 * PostgreSQL's.  What starts up and shuts down is PostgreSQL's receiver in any case.
 *
 * A FETCH of a cursor's rows has a receiver of its own (fetch_out.c).
 *
 * If they go to a new table, table_out.c has a receiver for that, and for an INSERT a way without.
 *
 * Otherwise, and where anything is not known, such as another module's receiver or a type whose output is not parallel
 * safe, rows come as rows.
 *
 * A slot stands for many rows then: the executor counts it as one, and the others are added here, to COPY's count and
 * progress, too.
 *
 * In a worker the same hook hands COPY the rows for which it was begun there (copy_former.c).
 *
 *-------------------------------------------------------------------------
 */
#include "exec/rows_out.h"

#include "access/parallel.h"
#include "access/printtup.h"
#include "access/transam.h"
#include "commands/copy.h"
#include "commands/defrem.h"
#include "commands/progress.h"
#include "exec/copy_file.h"
#include "exec/exchange.h"
#include "exec/fetch_out.h"
#include "exec/insert_batches.h"
#include "exec/receiver.h"
#include "exec/table_out.h"
#include "executor/executor.h"
#include "facts/output_functions.h"
#include "form/copy_former.h"
#include "form/format.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "settings.h"
#include "tcop/pquery.h"
#include "utils/backend_progress.h"
#include "utils/backend_status.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

/* Stands before a receiver of PostgreSQL's. */
typedef struct RowsOut
{
	GpuSortReceiver base;  /* must be first field */
	GpuSortFormer *former; /* over the receiver */
	GpuSortCopyFile *file; /* NULL: rows go to the client */
	bool head_sent;        /* what COPY puts before the first row, or it puts nothing there */

	/* Of a COPY: rows that were sent, and bytes, without what is around messages */
	uint64 rows;
	int64 receiver_bytes; /* of rows that the receiver has formed */
	int64 other_bytes;    /* of others */
	int64 shown_bytes;
} RowsOut;

static ExecutorRun_hook_type previous_executor_run = NULL;

/* What receives a row in PostgreSQL's receivers for a SELECT and for a COPY; NULL: not asked for yet. */
static bool (*print_row)(TupleTableSlot *slot, DestReceiver *self) = NULL;
static bool (*copy_row)(TupleTableSlot *slot, DestReceiver *self) = NULL;

static bool
is_copy(const RowsOut *out)
{
	return out->base.receiver->mydest == DestCopyOut;
}

/*
 * Shows the bytes that COPY has sent.  Its receiver shows those of its own rows only, whenever it forms one: what is
 * shown is that, or what was shown here last.
 */
static void
show_copy_bytes(RowsOut *out)
{
	int64 shown = MyBEEntry != NULL ? MyBEEntry->st_progress_param[PROGRESS_COPY_BYTES_PROCESSED] : 0;

	if (shown != out->shown_bytes)
		out->receiver_bytes = shown;
	out->shown_bytes = out->receiver_bytes + out->other_bytes;
	pgstat_progress_update_param(PROGRESS_COPY_BYTES_PROCESSED, out->shown_bytes);
}

/*
 * Counts and shows rows that were sent, for COPY; bytes: of those that its receiver has not formed.  The receiver has
 * counted all that it has formed, also what was not sent.
 */
static void
count_copied(RowsOut *out, uint64 rows, int64 bytes)
{
	GpuSortCopyReceiver *copy = (GpuSortCopyReceiver *) out->base.receiver;

	if (!is_copy(out))
		return;
	out->rows += rows;
	copy->processed = out->rows;
	out->other_bytes += bytes;
	pgstat_progress_update_param(PROGRESS_COPY_TUPLES_PROCESSED, out->rows);
	show_copy_bytes(out);
}

/* Sends whole messages, or bytes of a file. */
static void
send_bytes(RowsOut *out, const char *bytes, Size length)
{
	if (out->file != NULL)
		gpusort_copy_file_write(out->file, bytes, length);
	else
		gpusort_messages_send(bytes, length);
}

/* Sends what COPY puts before the first row, and what has been put behind it: to a client in one message. */
static void
send_head(RowsOut *out)
{
	StringInfo head = &out->former->head;

	if (out->file != NULL)
		send_bytes(out, head->data, head->len);
	else
		gpusort_message_send('d', head->data, head->len);
	pfree(head->data);
	out->other_bytes -= gpusort_former_null_row_bytes(out->former); /* the row of NULLs is none */
	out->head_sent = true;
}

/* Sends the first rows that were formed, behind what COPY puts before them: that is in the message of the first. */
static void
send_first(RowsOut *out, const char *bytes, Size length)
{
	const int before = GPUSORT_MESSAGE_HEAD_BYTES;
	Size sent = 0;

	gpusort_former_take_head(out->former);
	if (out->file == NULL)
	{
		sent = gpusort_message_length(bytes);
		appendBinaryStringInfo(&out->former->head, bytes + before, sent - before);
	}
	send_head(out);
	send_bytes(out, bytes + sent, length - sent);
}

/* Sends rows that were formed. */
static void
send_formed(RowsOut *out, const GpuSortFormedRows *formed)
{
	int64 bytes = 0;

	CHECK_FOR_INTERRUPTS();
	if (out->head_sent)
		send_bytes(out, formed->data, formed->length);
	else
		send_first(out, formed->data, formed->length);
	out->base.estate->es_processed += formed->rows - 1;
	if (!formed->own)
		bytes = formed->length - formed->rows * gpusort_former_message_head_bytes(out->former);
	count_copied(out, formed->rows, bytes);
}

/* Sends a row by PostgreSQL's receiver. */
static bool
send_row(RowsOut *out, TupleTableSlot *slot)
{
	GpuSortFormer *former = out->former;
	bool more = true;

	/* the head has been taken where rows that come later were formed before */
	if (!out->head_sent && former->head_taken)
	{
		gpusort_former_first_row(former, slot);
		send_head(out);
	}
	else
	{
		out->head_sent = former->head_taken = true;
		more = out->base.receiver->receiveSlot(slot, out->base.receiver);
	}
	count_copied(out, 1, 0);
	return more;
}

static bool
receive(TupleTableSlot *slot, DestReceiver *self)
{
	RowsOut *out = (RowsOut *) self;
	const GpuSortFormedRows *formed = gpusort_exchange_formed_rows(out->base.exchange, slot);

	if (formed == NULL)
		return send_row(out, slot);
	send_formed(out, formed);
	return true;
}

/* Finds out what receives a row in PostgreSQL's receivers. */
static void
find_receivers(void)
{
	DestReceiver *print = printtup_create_DR(DestRemote);
	DestReceiver *copy = CreateCopyDestReceiver();

	print_row = print->receiveSlot;
	copy_row = copy->receiveSlot;
	print->rDestroy(print);
	copy->rDestroy(copy);
}

/* Returns true if a query is run to its end at once. */
static bool
runs_at_once(const QueryDesc *query, ScanDirection direction, uint64 count)
{
	return ScanDirectionIsForward(direction) && count == 0 && !query->already_executed;
}

/* Returns true if a query reads all rows of a GpuSortExchange, as it emits them. */
static bool
reads_exchange(const QueryDesc *query)
{
	return query->operation == CMD_SELECT && gpusort_is_exchange(query->planstate) &&
		query->estate->es_junkFilter == NULL;
}

/* Returns true if a query inserts these. */
static bool
inserts_exchange(const QueryDesc *query)
{
	return query->operation == CMD_INSERT && IsA(query->planstate, ModifyTableState) &&
		gpusort_is_exchange(outerPlanState(query->planstate));
}

/*
 * Returns the statement of the COPY whose query this is; NULL: it is none.  One that a function runs has another text.
 */
static const CopyStmt *
copy_statement(const QueryDesc *query)
{
	const PlannedStmt *stmt = list_length(ActivePortal->stmts) == 1 ? linitial(ActivePortal->stmts) : NULL;
	const CopyStmt *copy;

	if (stmt == NULL || !IsA(stmt, PlannedStmt) || stmt->utilityStmt == NULL || !IsA(stmt->utilityStmt, CopyStmt) ||
		query->sourceText != ActivePortal->sourceText)
		return NULL;
	copy = (const CopyStmt *) stmt->utilityStmt;
	return copy->query != NULL && !copy->is_from ? copy : NULL;
}

/* Returns why workers may not form rows as JSON; NULL if they may, as far as output functions let them. */
static const char *
why_no_json(TupleDesc desc, bool array)
{
	if (array)
		return "COPY makes one array of all rows";
	/* others may have a cast to JSON */
	for (int i = 0; i < desc->natts; i++)
	{
		if (getBaseType(TupleDescAttr(desc, i)->atttypid) >= FirstNormalObjectId)
			return psprintf("the JSON of column \"%s\" is not known to be parallel safe",
							NameStr(TupleDescAttr(desc, i)->attname));
	}
	return NULL;
}

/* Returns what is formed of the rows of a COPY; NULL, and why not, if workers may not do it. */
static GpuSortFormat *
copy_format(const CopyStmt *copy, TupleDesc desc, const char **why_not)
{
	int16 *columns = palloc0(desc->natts * sizeof(int16));
	const char *format = "text";
	bool array = false;
	bool binary;
	ListCell *cell;

	foreach(cell, copy->options)
	{
		DefElem *option = lfirst_node(DefElem, cell);

		if (strcmp(option->defname, "format") == 0)
			format = defGetString(option);
		else if (strcmp(option->defname, "force_array") == 0)
			array = defGetBoolean(option);
	}
	binary = strcmp(format, "binary") == 0;
	if (strcmp(format, "json") == 0)
		*why_not = why_no_json(desc, array);
	else if (!binary && strcmp(format, "text") != 0 && strcmp(format, "csv") != 0)
		*why_not = psprintf("COPY's format \"%s\" is not known", format);
	if (*why_not != NULL)
		return NULL;
	for (int i = 0; i < desc->natts; i++)
		columns[i] = binary;
	*why_not = gpusort_why_no_output(desc, columns);
	return *why_not == NULL ? gpusort_format_of_copy(copy, desc, binary) : NULL;
}

/* The same of the rows of a SELECT, for the client that the running portal is for. */
static GpuSortFormat *
row_format(TupleDesc desc, const char **why_not)
{
	const int16 *columns = ActivePortal->formats != NULL ? ActivePortal->formats : palloc0(desc->natts * sizeof(int16));

	*why_not = gpusort_why_no_output(desc, columns);
	return *why_not == NULL ? gpusort_format_of_portal(desc, columns) : NULL;
}

/*
 * Returns what is formed of a query's rows, and the file that they go to; NULL: they do not leave the server in a way
 * that is known, or workers may not form them (*why_not).
 */
static GpuSortFormat *
find_format(const QueryDesc *query, GpuSortCopyFile **file, const char **why_not)
{
	const CopyStmt *copy;

	*file = NULL;
	*why_not = NULL;
	if (ActivePortal == NULL)
		return NULL;
	if (print_row == NULL)
		find_receivers();
	switch (query->dest->mydest)
	{
		case DestRemote:
		case DestRemoteExecute:
			if (query->dest->receiveSlot != print_row || ActivePortal->queryDesc != query ||
				!gpusort_messages_are_sent())
				return NULL;
			return row_format(query->tupDesc, why_not);
		case DestCopyOut:
			copy = query->dest->receiveSlot == copy_row ? copy_statement(query) : NULL;
			if (copy == NULL || (copy->filename == NULL && !gpusort_messages_are_sent()))
				return NULL;
			if (copy->filename != NULL)
				*file = gpusort_copy_file_find(query, copy);
			if (copy->filename != NULL && *file == NULL)
			{
				*why_not = "what COPY writes to is not known";
				return NULL;
			}
			return copy_format(copy, query->tupDesc, why_not);
		default:
			return NULL;
	}
}

/* Returns what stands before the receiver of a query whose rows processes are to form; file: NULL for the client. */
static RowsOut *
make(QueryDesc *query, const GpuSortFormat *format, GpuSortCopyFile *file)
{
	RowsOut *out = gpusort_receiver_create(query, sizeof(RowsOut), receive);

	out->file = file;
	out->head_sent = !format->binary;
	out->former = gpusort_former_over(file != NULL ? &file->former : out->base.receiver, query->tupDesc, format->binary,
									  file != NULL);
	gpusort_exchange_form_rows(out->base.exchange, format, out->former);
	return out;
}

/* Returns what stands before a query's receiver; NULL: nothing. */
static pg_noinline DestReceiver *
begin(QueryDesc *query, ScanDirection direction, uint64 count)
{
	MemoryContext caller;
	GpuSortFormat *format;
	GpuSortCopyFile *file;
	const char *why_not;
	DestReceiver *out;

	const bool inserts = inserts_exchange(query);

	if (!runs_at_once(query, direction, count) || !gpusort_parallel_output)
		return NULL;
	if (!inserts && !reads_exchange(query))
	{
		gpusort_insert_batches(query);
		return NULL;
	}
	caller = MemoryContextSwitchTo(query->estate->es_query_cxt);
	if (inserts)
	{
		gpusort_table_out_insert(query);
		MemoryContextSwitchTo(caller);
		return NULL;
	}
	out = gpusort_table_out_create(query);
	format = out == NULL ? find_format(query, &file, &why_not) : NULL;
	if (format != NULL)
		out = &make(query, format, file)->base.pub;
	else if (out == NULL && why_not != NULL && gpusort_log_decisions)
		ereport(LOG, (errmsg("gpusort: only one process forms the rows that leave: %s", why_not)));
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
	DestReceiver *const receiver = query->dest;
	DestReceiver *out;

	if (IsParallelWorker() && gpusort_copy_former_takes_run(query))
		return;
	out = gpusort_fetch_out_begin(query, direction, &count);
	if (out == NULL)
		out = begin(query, direction, count);
	if (out == NULL)
	{
		run_next(EXECUTOR_RUN_ARGUMENTS);
		return;
	}
	query->dest = out;
	PG_TRY();
	{
		run_next(EXECUTOR_RUN_ARGUMENTS);
	}
	PG_FINALLY();
	{
		gpusort_catch_end(NULL);
		query->dest = receiver;
	}
	PG_END_TRY();
}

/* To be called once, at load. */
void
gpusort_rows_out_init(void)
{
	previous_executor_run = ExecutorRun_hook;
	ExecutorRun_hook = executor_run;
	gpusort_fetch_out_init();
}
