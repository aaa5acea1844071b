/*-------------------------------------------------------------------------
 *
 * overflow.c
 *	  Rows longer than a quarter of a chunk, in a temporary file of the backend.
 *
 * A short row that says where it is travels through the service in the place of
 * each (GPUSORT_ROW_OVERFLOW).
 *
 * The file belongs to the resource owner that was current when its first row was
 * stored, and to whoever calls gpusort_overflow_close.
 *
 *-------------------------------------------------------------------------
 */
#include "client/overflow.h"

#include "client/rowform.h"
#include "service/protocol.h"
#include "utils/memutils.h"

/* What travels in place of a row in the file; laid out like one as far as others look. */
typedef struct OverflowRow
{
	uint32 length; /* of this struct */
	uint8 flags;
	uint8 unused[3];
	uint32 tuple_length;
	int32 fileno;
	int64 offset;
} OverflowRow;

StaticAssertDecl(sizeof(OverflowRow) == GPUSORT_OVERFLOW_ROW_BYTES, "the length of an overflow row is known to its reader");

/*
 * Moves the row in slot to the file, and writes at row what stands for it.  Returns the length of
 * that in bytes.  Errors: those of temporary files, and of detoasting.
 */
Size
gpusort_overflow_store(GpuSortOverflow *overflow, TupleTableSlot *slot, char *row)
{
	OverflowRow where = {.length = sizeof(OverflowRow), .flags = GPUSORT_ROW_OVERFLOW};
	bool should_free;
	MinimalTuple tuple = ExecFetchSlotMinimalTuple(slot, &should_free);
	int fileno;
	off_t offset;

	if (overflow->file == NULL)
		overflow->file = BufFileCreateTemp(false);
	BufFileTell(overflow->file, &fileno, &offset);
	BufFileWrite(overflow->file, tuple, tuple->t_len);

	where.tuple_length = tuple->t_len;
	where.fileno = fileno;
	where.offset = offset;
	memcpy(row, &where, sizeof(where));
	if (should_free)
		heap_free_minimal_tuple(tuple);
	return sizeof(where);
}

/*
 * The row that one with GPUSORT_ROW_OVERFLOW stands for, palloc'd; there must be a file.  Errors: it cannot be
 * read, or has no such row.
 */
MinimalTuple
gpusort_overflow_fetch(GpuSortOverflow *overflow, const char *row)
{
	OverflowRow where;
	MinimalTuple tuple;

	memcpy(&where, row, sizeof(where));
	if (where.tuple_length < GPUSORT_ROW_BYTES_MIN || where.tuple_length > MaxAllocSize)
		gpusort_row_report_damaged();
	tuple = palloc(where.tuple_length);
	if (BufFileSeek(overflow->file, where.fileno, where.offset, SEEK_SET) != 0 ||
		BufFileRead(overflow->file, tuple, where.tuple_length) != where.tuple_length)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not read a row back from gpusort's temporary file: %m")));
	if (tuple->t_len != where.tuple_length)
		gpusort_row_report_damaged();
	return tuple;
}

/* Deletes the file, with all rows in it; there may be none. */
void
gpusort_overflow_close(GpuSortOverflow *overflow)
{
	if (overflow->file != NULL)
		BufFileClose(overflow->file);
	overflow->file = NULL;
}
