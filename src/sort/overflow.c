/*-------------------------------------------------------------------------
 *
 * overflow.c
 *	  Rows longer than a quarter of a chunk, in temporary files.
 *
 * A short row that says where it is travels through the service in the place of
 * each (GPUSORT_ROW_OVERFLOW).
 *
 * The file belongs to the resource owner that was current when its first row was
 * stored, and to whoever calls gpusort_overflow_close.
 *
 * PARALLEL SORTS
 *	Any process may read any row, whoever stored it.  Each has a file of its own, in a
 *	set of files, and the row that travels says which.  share comes first; a process that
 *	has stored its last row calls export, and when all have, any of them may fetch any.
 *	Files of the set stay until the set is deleted, or all processes are detached from it.
 *	All that is opened belongs to the memory context that was current at share.
 *
 *-------------------------------------------------------------------------
 */
#include "sort/overflow.h"

#include "sort/row.h"
#include "service/protocol.h"
#include "utils/memutils.h"

/* What travels in place of a row in the file; laid out like one as far as others look. */
typedef struct OverflowRow
{
	uint32 length; /* of this struct */
	uint8 flags;
	uint8 unused;
	uint16 process; /* in a parallel sort: whose file */
	uint64 count;   /* of rows that carry a number, how many it stands for */
	uint32 row_length;
	int32 fileno;
	int64 offset;
} OverflowRow;

StaticAssertDecl(sizeof(OverflowRow) == GPUSORT_OVERFLOW_ROW_BYTES,
				 "the length of an overflow row is known to its reader");
StaticAssertDecl(offsetof(OverflowRow, count) == GPUSORT_ROW_COUNT_OFFSET, "the service adds these numbers up");

/* Writes the name of a process's file to name, of MAXPGPATH bytes. */
static void
file_name(int process, char *name)
{
	snprintf(name, MAXPGPATH, "gpusort.%d", process);
}

/*
 * Puts the rows of several processes into files of fileset; each process, this one too, has a number of its own below
 * 65536.  It must be called before the first row is stored.
 */
void
gpusort_overflow_share(GpuSortOverflow *overflow, SharedFileSet *fileset, int process)
{
	Assert(overflow->file == NULL && process >= 0 && process <= PG_UINT16_MAX);
	overflow->fileset = fileset;
	overflow->process = process;
	overflow->context = CurrentMemoryContext;
}

/* Makes the file of this process. */
static void
create_file(GpuSortOverflow *overflow)
{
	char name[MAXPGPATH];
	MemoryContext caller;

	if (overflow->fileset == NULL)
	{
		overflow->file = BufFileCreateTemp(false);
		return;
	}
	file_name(overflow->process, name);
	caller = MemoryContextSwitchTo(overflow->context);
	overflow->file = BufFileCreateFileSet(&overflow->fileset->fs, name);
	MemoryContextSwitchTo(caller);
}

/*
 * Copies a row in memory to the file, and writes at instead what stands for it.  Returns the length of
 * that in bytes.  Errors: those of temporary files.
 */
Size
gpusort_overflow_store(GpuSortOverflow *overflow, const char *row, char *instead)
{
	OverflowRow where = {
		.length = sizeof(OverflowRow), .flags = GPUSORT_ROW_OVERFLOW, .process = overflow->process, .count = 1};
	int fileno;
	off_t offset;

	if (overflow->file == NULL)
		create_file(overflow);
	BufFileTell(overflow->file, &fileno, &offset);
	where.row_length = gpusort_row_length(row);
	where.fileno = fileno;
	where.offset = offset;
	BufFileWrite(overflow->file, (void *) row, where.row_length);
	memcpy(instead, &where, sizeof(where));
	return sizeof(where);
}

/* Lets the other processes of a parallel sort fetch the rows that this one has stored; it stores no more. */
void
gpusort_overflow_export(GpuSortOverflow *overflow)
{
	if (overflow->file != NULL)
		BufFileExportFileSet(overflow->file);
}

/* Returns the file of another process of a parallel sort; NULL if it has none. */
static BufFile *
other_file(GpuSortOverflow *overflow, int process)
{
	if (process >= overflow->nothers)
	{
		int nothers = process + 1;
		BufFile **others = MemoryContextAllocZero(overflow->context, nothers * sizeof(BufFile *));

		if (overflow->others != NULL)
		{
			memcpy(others, overflow->others, overflow->nothers * sizeof(BufFile *));
			pfree(overflow->others);
		}
		overflow->others = others;
		overflow->nothers = nothers;
	}
	if (overflow->others[process] == NULL)
	{
		char name[MAXPGPATH];
		MemoryContext caller = MemoryContextSwitchTo(overflow->context);

		file_name(process, name);
		overflow->others[process] = BufFileOpenFileSet(&overflow->fileset->fs, name, O_RDONLY, true);
		MemoryContextSwitchTo(caller);
	}
	return overflow->others[process];
}

/*
 * The row that one with GPUSORT_ROW_OVERFLOW stands for, palloc'd; there must have been one stored.  Errors: it
 * cannot be read, or there is no such row.
 */
char *
gpusort_overflow_fetch(GpuSortOverflow *overflow, const char *instead)
{
	OverflowRow where;
	BufFile *file;
	char *row;

	memcpy(&where, instead, sizeof(where));
	if (where.row_length < GPUSORT_ROW_BYTES_MIN || where.row_length > MaxAllocSize)
		gpusort_row_report_damaged();
	file = where.process == overflow->process ? overflow->file
		: overflow->fileset != NULL           ? other_file(overflow, where.process)
											  : NULL;
	if (file == NULL)
		gpusort_row_report_damaged();
	row = palloc(where.row_length);
	if (BufFileSeek(file, where.fileno, where.offset, SEEK_SET) != 0 ||
		BufFileRead(file, row, where.row_length) != where.row_length)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not read a row back from gpusort's temporary file: %m")));
	if (gpusort_row_length(row) != where.row_length)
		gpusort_row_report_damaged();
	return row;
}

/* Closes all files; one that is not shared is deleted, with all rows in it.  Nothing is shared any more. */
void
gpusort_overflow_close(GpuSortOverflow *overflow)
{
	if (overflow->file != NULL)
		BufFileClose(overflow->file);
	for (int i = 0; i < overflow->nothers; i++)
	{
		if (overflow->others[i] != NULL)
			BufFileClose(overflow->others[i]);
	}
	if (overflow->others != NULL)
		pfree(overflow->others);
	*overflow = (GpuSortOverflow){0};
}
