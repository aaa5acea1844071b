/*-------------------------------------------------------------------------
 *
 * copy_file.c
 *	  The file, or program, that COPY TO writes.
 *
 * COPY keeps the stream, and all else that it knows, for itself.  So the beginning of its state is declared here
 * again, and not believed without looking: the query and the name must stand where they are expected, and the stream
 * must be of the file that has this name, or of a pipe.
 *
 * ERRORS
 *	Bytes go into the stream into which PostgreSQL writes rows of its own, by the same call.  If that fails, the error
 *	is the one that PostgreSQL would raise.  To give its receiver a row more, for it to find the stream's error, was
 *	considered: that row would stay in the stream, and be written when it is closed.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/copy_file.h"

#include <sys/stat.h>

#include "lib/stringinfo.h"
#include "storage/fd.h"
#include "utils/wait_event.h"

/* Where rows go, as in commands/copyto.c. */
typedef enum CopyTarget
{
	COPY_TO_FILE, /* or to a program */
	COPY_TO_CLIENT,
} CopyTarget;

/* The beginning of what COPY keeps, as there. */
struct CopyToStateData
{
	COPY_TO_STATE_BEGIN
	CopyTarget target;
	FILE *stream;
	StringInfo message;
	int encoding;
	bool converts;
	bool embeds_ascii;
	Relation table;
	QueryDesc *query;
	List *columns;
	char *name;
	bool is_program;
};

/* Returns true if COPY's state is as it is declared here, and that of this statement. */
static bool
is_state_of(const struct CopyToStateData *state, const QueryDesc *query, const CopyStmt *copy)
{
	return state != NULL && state->query == query && state->table == NULL && state->target == COPY_TO_FILE &&
		state->stream != NULL && state->name != NULL && strcmp(state->name, copy->filename) == 0 &&
		state->is_program == copy->is_program;
}

/* Returns true if a stream is of the file that has this name, or of the pipe to a program. */
static bool
is_stream_of(FILE *stream, const CopyStmt *copy)
{
	struct stat opened;
	struct stat named;

	if (fstat(fileno(stream), &opened) != 0)
		return false;
	if (copy->is_program)
		return S_ISFIFO(opened.st_mode);
	return stat(copy->filename, &named) == 0 && named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
}

/* Has COPY form a row as a message. */
static bool
form(TupleTableSlot *slot, DestReceiver *self)
{
	GpuSortCopyReceiver *copy = ((GpuSortCopyFile *) self)->copy;
	bool more;

	copy->state->target = COPY_TO_CLIENT;
	more = copy->pub.receiveSlot(slot, &copy->pub);
	copy->state->target = COPY_TO_FILE;
	return more;
}

/* Returns what the query's COPY, whose statement this is, writes; NULL: it is not known. */
GpuSortCopyFile *
gpusort_copy_file_find(const QueryDesc *query, const CopyStmt *copy)
{
	GpuSortCopyReceiver *receiver = (GpuSortCopyReceiver *) query->dest;
	GpuSortCopyFile *file;

	if (!is_state_of(receiver->state, query, copy) || !is_stream_of(receiver->state->stream, copy))
		return NULL;
	file = palloc0(sizeof(GpuSortCopyFile));
	file->former.receiveSlot = form;
	file->former.mydest = receiver->pub.mydest;
	file->copy = receiver;
	file->stream = receiver->state->stream;
	return file;
}

/* Raises the error of a stream that takes no more, errno's; or that of the program, if it failed. */
pg_noreturn static void
report_error(const GpuSortCopyFile *file)
{
	const struct CopyToStateData *state = file->copy->state;

	if (!state->is_program)
		ereport(ERROR, (errcode_for_file_access(), errmsg("could not write to COPY file: %m")));
	if (errno == EPIPE)
	{
		const int status = ClosePipeStream(file->stream);

		if (status == -1)
			ereport(ERROR, (errcode_for_file_access(), errmsg("could not close pipe to external command: %m")));
		if (status != 0)
			ereport(ERROR,
					(errcode(ERRCODE_EXTERNAL_ROUTINE_EXCEPTION), errmsg("program \"%s\" failed", state->name),
					 errdetail_internal("%s", wait_result_to_str(status))));
		errno = EPIPE;
	}
	ereport(ERROR, (errcode_for_file_access(), errmsg("could not write to COPY program: %m")));
}

/* Writes bytes of rows. */
void
gpusort_copy_file_write(GpuSortCopyFile *file, const char *bytes, Size length)
{
	if (length == 0)
		return;
	REPORT_COPY_WRITE();
	if (fwrite(bytes, length, 1, file->stream) != 1 || ferror(file->stream))
		report_error(file);
	pgstat_report_wait_end();
}
