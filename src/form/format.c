/*-------------------------------------------------------------------------
 *
 * format.c
 *	  How processes form rows.
 *
 *-------------------------------------------------------------------------
 */
#include "form/format.h"

#include "access/printtup.h"
#include "form/copy_former.h"
#include "mb/pg_wchar.h"
#include "nodes/nodes.h"
#include "tcop/pquery.h"

static GpuSortFormat *
make_format(GpuSortMessages messages, bool binary, const void *data, Size length)
{
	GpuSortFormat *format = palloc0(offsetof(GpuSortFormat, data) + length);

	format->bytes = offsetof(GpuSortFormat, data) + length;
	format->messages = messages;
	format->encoding = pg_get_client_encoding();
	format->binary = binary;
	memcpy(format->data, data, length);
	return format;
}

/* Describes rows of a SELECT, whose columns have these formats. */
GpuSortFormat *
gpusort_format_of_portal(TupleDesc desc, const int16 *columns)
{
	return make_format(GPUSORT_DATA_ROWS, false, columns, desc->natts * sizeof(int16));
}

/* Describes rows of a COPY. */
GpuSortFormat *
gpusort_format_of_copy(const CopyStmt *copy, TupleDesc desc, bool binary)
{
	const char *text = gpusort_copy_statement_text(copy, desc);

	return make_format(copy->filename != NULL ? GPUSORT_COPY_FILE : GPUSORT_COPY_DATA, binary, text, strlen(text) + 1);
}

/* Calls back with a former of DataRow messages. */
static void
with_row_former(const GpuSortFormat *format, TupleDesc desc, GpuSortFormerCallback callback, void *arg)
{
	PortalData *portal = palloc0(sizeof(PortalData));
	GpuSortFormer former = {.receiver = printtup_create_DR(DestRemoteExecute), .desc = desc};

	portal->formats = (int16 *) format->data;
	SetRemoteDestReceiverParams(former.receiver, portal);
	former.receiver->rStartup(former.receiver, CMD_SELECT, desc);
	gpusort_former_run(&former, format->encoding, callback, arg);
	former.receiver->rShutdown(former.receiver);
	former.receiver->rDestroy(former.receiver);
	pfree(portal);
}

/* Calls back with a former for rows of this descriptor, in a worker; it is valid until then. */
void
gpusort_with_former(const GpuSortFormat *format, TupleDesc desc, GpuSortFormerCallback callback, void *arg)
{
	switch (format->messages)
	{
		case GPUSORT_DATA_ROWS:
			with_row_former(format, desc, callback, arg);
			return;
		case GPUSORT_COPY_DATA:
		case GPUSORT_COPY_FILE:
			gpusort_with_copy_former(format->data, desc, format->binary, format->messages == GPUSORT_COPY_FILE,
									 format->encoding, callback, arg);
			return;
	}
}
