/*-------------------------------------------------------------------------
 *
 * former.c
 *	  Forms rows as the bytes that leave the server, by PostgreSQL's own receivers, in any process.
 *
 * CLIENT_ENCODING
 *	A worker has the setting, but not in force: what it sends to its leader is in the database's encoding, errors
 *	above all.  So the client's is in force while a row is formed, and no longer, also after an error.
 *
 * All other settings on which values' text depends are in force in workers.
 *
 *-------------------------------------------------------------------------
 */
#include "form/former.h"

#include "access/printtup.h"
#include "mb/pg_wchar.h"
#include "nodes/nodes.h"
#include "tcop/pquery.h"

/* Describes what the portal that runs wants rows of this descriptor to be formed as. */
GpuSortFormat *
gpusort_format_of_portal(TupleDesc desc)
{
	const int16 *columns = ActivePortal->formats;
	const Size bytes = offsetof(GpuSortFormat, columns) + desc->natts * sizeof(int16);
	GpuSortFormat *format = palloc0(bytes);

	format->bytes = bytes;
	format->encoding = pg_get_client_encoding();
	for (int i = 0; columns != NULL && i < desc->natts; i++)
		format->columns[i] = columns[i];
	return format;
}

/* Puts the client's encoding into force, or the database's again. */
static void
set_encoding(int encoding)
{
	if (SetClientEncoding(encoding) < 0)
		elog(ERROR, "the encoding \"%s\" is not prepared", pg_encoding_to_char(encoding));
}

static void
init(GpuSortFormer *former, DestReceiver *receiver, int encoding)
{
	former->receiver = receiver;
	former->encoding = -1;
	gpusort_catch_init(&former->caught);
	if (encoding < 0 || encoding == pg_get_client_encoding())
		return;
	if (PrepareClientEncoding(encoding) < 0)
		elog(ERROR, "there is no conversion to \"%s\"", pg_encoding_to_char(encoding));
	former->encoding = encoding;
}

/*
 * Calls back with a former for rows of this descriptor, in a worker.  The former is valid until then.
 */
void
gpusort_with_former(const GpuSortFormat *format, TupleDesc desc, GpuSortFormerCallback callback, void *arg)
{
	PortalData *portal = palloc0(sizeof(PortalData));
	DestReceiver *receiver = printtup_create_DR(DestRemoteExecute);
	GpuSortFormer former;

	portal->formats = (int16 *) format->columns;
	SetRemoteDestReceiverParams(receiver, portal);
	receiver->rStartup(receiver, CMD_SELECT, desc);
	init(&former, receiver, format->encoding);
	PG_TRY();
	{
		callback(&former, arg);
	}
	PG_FINALLY();
	{
		gpusort_catch_end();
		if (former.encoding >= 0)
			(void) SetClientEncoding(GetDatabaseEncoding());
	}
	PG_END_TRY();
	receiver->rShutdown(receiver);
	receiver->rDestroy(receiver);
	pfree(former.caught.bytes.data);
	pfree(portal);
}

/* Returns a former over a receiver that has been started up, in the leader. */
GpuSortFormer *
gpusort_former_over(DestReceiver *receiver)
{
	GpuSortFormer *former = palloc(sizeof(GpuSortFormer));

	init(former, receiver, -1);
	return former;
}

/*
 * Forms the row in slot, behind those formed before.  Returns false if it is too long, and leaves the bytes as they
 * were.
 */
bool
gpusort_former_row(GpuSortFormer *former, TupleTableSlot *slot)
{
	if (former->encoding >= 0)
		set_encoding(former->encoding);
	gpusort_catch_begin(&former->caught);
	(void) former->receiver->receiveSlot(slot, former->receiver);
	gpusort_catch_end();
	if (former->encoding >= 0)
		set_encoding(GetDatabaseEncoding());
	return !former->caught.too_long;
}
