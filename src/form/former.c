/*-------------------------------------------------------------------------
 *
 * former.c
 *	  Forms rows as the bytes that leave the server, by a receiver of PostgreSQL's, in any process.
 *
 * CLIENT_ENCODING
 *	A worker has the setting, but not in force: what it sends to its leader is in the database's encoding, errors
 *	above all.  So the client's is in force while a row is formed, and no longer, also after an error.
 *	All other settings on which values' text depends are in force in workers.
 *
 * HEAD
 *	A binary COPY keeps its signature until the first row.  So the first row that a receiver is given is one of NULLs,
 *	whose length is known: what stands before it is the head.
 *
 *-------------------------------------------------------------------------
 */
#include "form/former.h"

#include "mb/pg_wchar.h"

/* Fills in what is neither zero nor the caller's. */
static void
init(GpuSortFormer *former)
{
	former->encoding = -1;
	gpusort_catch_init(&former->caught, former->for_file);
}

/* Returns a former over a receiver for rows of this descriptor, in the leader. */
GpuSortFormer *
gpusort_former_over(DestReceiver *receiver, TupleDesc desc, bool has_head, bool for_file)
{
	GpuSortFormer *former = palloc(sizeof(GpuSortFormer));

	*former = (GpuSortFormer){.receiver = receiver, .desc = desc, .has_head = has_head, .for_file = for_file};
	init(former);
	return former;
}

/* Puts an encoding into force that is prepared. */
static void
set_encoding(int encoding)
{
	if (SetClientEncoding(encoding) < 0)
		elog(ERROR, "the encoding \"%s\" is not prepared", pg_encoding_to_char(encoding));
}

/* Calls the receiver, which forms a row behind those formed before. */
static void
form(GpuSortFormer *former, TupleTableSlot *slot)
{
	GpuSortCatch *previous;

	if (former->encoding >= 0)
		set_encoding(former->encoding);
	previous = gpusort_catch_begin(&former->caught);
	(void) former->receiver->receiveSlot(slot, former->receiver);
	gpusort_catch_end(previous);
	if (former->encoding >= 0)
		set_encoding(GetDatabaseEncoding());
}

/* Takes what the receiver puts before the first row, unless that was done. */
void
gpusort_former_take_head(GpuSortFormer *former)
{
	StringInfo bytes = &former->caught.bytes;
	const int before = gpusort_former_message_head_bytes(former);
	const int row = gpusort_former_null_row_bytes(former);
	TupleTableSlot *nulls;

	if (!former->has_head || former->head_taken)
		return;
	former->head_taken = true;
	nulls = MakeSingleTupleTableSlot(former->desc, &TTSOpsVirtual);
	ExecStoreAllNullTuple(nulls);
	gpusort_former_clear(former);
	form(former, nulls);
	ExecDropSingleTupleTableSlot(nulls);
	if (bytes->len < before + row)
		elog(ERROR, "a row of NULLs has %d bytes", bytes->len);
	initStringInfo(&former->head);
	appendBinaryStringInfo(&former->head, bytes->data + before, bytes->len - before - row);
	gpusort_former_clear(former);
}

/*
 * Forms the row in slot, behind those formed before.  Returns false if it is too long, and leaves the bytes as they
 * were.
 */
bool
gpusort_former_row(GpuSortFormer *former, TupleTableSlot *slot)
{
	if (unlikely(former->has_head))
		gpusort_former_take_head(former);
	form(former, slot);
	return !former->caught.too_long;
}

/* Forms the first row of all behind the head, which has been taken, as the rest of its message, however long it is. */
void
gpusort_former_first_row(GpuSortFormer *former, TupleTableSlot *slot)
{
	const GpuSortCatch rows = former->caught;

	former->caught = (GpuSortCatch){.bytes = former->head, .bodies_alone = true, .of_any_length = true};
	form(former, slot);
	former->head = former->caught.bytes;
	former->caught = rows;
}

/*
 * Calls back with a former, in a worker, for a client that has such an encoding.  The caller has filled in receiver,
 * desc, has_head and for_file.
 */
void
gpusort_former_run(GpuSortFormer *former, int encoding, GpuSortFormerCallback callback, void *arg)
{
	init(former);
	if (encoding != pg_get_client_encoding())
	{
		if (PrepareClientEncoding(encoding) < 0)
			elog(ERROR, "there is no conversion to \"%s\"", pg_encoding_to_char(encoding));
		former->encoding = encoding;
	}
	PG_TRY();
	{
		callback(former, arg);
	}
	PG_CATCH();
	{
		gpusort_catch_end(NULL);
		if (former->encoding >= 0)
			(void) SetClientEncoding(GetDatabaseEncoding());
		PG_RE_THROW();
	}
	PG_END_TRY();
	pfree(former->caught.bytes.data);
}
