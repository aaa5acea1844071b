/*-------------------------------------------------------------------------
 *
 * writer.c
 *	  Writes rows and their keys into the staging pool's chunks.
 *
 * The key of each row, and the row, are written straight into the chunk,
 * with no allocation and no second copy (put_rows.h).  Rows longer than a
 * quarter of a chunk go to the overflow file.
 *
 * Legal order of calls: init, the rows' put_rows*, finish.  A writer owns nothing but the current
 * chunk, which goes back with the client.
 *
 *-------------------------------------------------------------------------
 */
#include "sort/writer.h"

#include "client/elapsed.h"
#include "server/jobs.h"
#include "sort/row.h"
#include "sort/row_tail.h"

/*
 * Begins writing into client's chunks.  overflow: where long rows go; NULL: put_rows stops at them.  job: where
 * progress is shown; NULL: nowhere.  All belong to the caller, and must be there until the writer is done with.
 * verified: rows get tails, in every process that writes or in none.
 */
void
gpusort_writer_init(GpuSortWriter *writer, GpuSortClient *client, const GpuSortKeys *keys, GpuSortOverflow *overflow,
					GpuSortJobSlot *job, bool verified)
{
	memset(writer, 0, sizeof(*writer));
	writer->client = client;
	writer->keys = keys;
	writer->overflow = overflow;
	writer->job = job;
	writer->tail = verified ? gpusort_tail_bytes(keys->words) : 0;
	writer->seed = gpusort_tail_seed(gpusort_client_token(client));
}

/* Returns what was put so far, the rows of the current chunk included. */
GpuSortPut
gpusort_writer_put(const GpuSortWriter *writer)
{
	return (GpuSortPut){
		.rows = writer->rows,
		.truncated = writer->truncated,
		.bytes = writer->bytes,
		.sum = writer->sum,
		.dropped = writer->cutoff != NULL ? writer->cutoff->dropped
			: writer->repeats != NULL     ? writer->repeats->dropped
										  : 0,
	};
}

/* Shows so many more rows, and what has been written of them since the last time, in gpusort_jobs. */
void
gpusort_writer_show(GpuSortWriter *writer, uint32 rows)
{
	uint64 temp_bytes = gpusort_client_temp_bytes(writer->client);

	gpusort_shared_job_add(writer->job, rows, writer->bytes - writer->bytes_shown, temp_bytes - writer->temp_bytes_shown);
	writer->bytes_shown = writer->bytes;
	writer->temp_bytes_shown = temp_bytes;
}

/* Hands over the current chunk; false, with a reason, if the sort is full or lost. */
static bool
flush_chunk(GpuSortWriter *writer, GpuSortFailure *failure)
{
	uint32 bytes = writer->cursor - writer->chunk;
	uint32 rows = writer->rows_max - writer->rows_left;

	writer->chunk = NULL;
	writer->rows_left = 0;
	gpusort_writer_show(writer, rows);
	return gpusort_client_put_chunk(writer->client, rows, bytes, failure);
}

/* Gets another chunk, after handing over the current one; false as above. */
pg_noinline bool
gpusort_writer_next_chunk(GpuSortWriter *writer, GpuSortFailure *failure)
{
	instr_time start;

	/* The client must not be asked again after a failure, but we may be. */
	if (writer->failure.reason == GPUSORT_REASON_NONE &&
		(writer->chunk == NULL || flush_chunk(writer, &writer->failure)))
	{
		INSTR_TIME_SET_CURRENT(start);
		writer->chunk = gpusort_client_get_chunk(writer->client, &writer->rows_max, &writer->failure);
		writer->wait_ms += gpusort_ms_since(start);
	}
	if (writer->chunk == NULL)
	{
		*failure = writer->failure;
		return false;
	}
	writer->cursor = writer->chunk;
	writer->offset = gpusort_chunk_offset(writer->chunk, 0);
	writer->rows_left = writer->rows_max;
	return true;
}

/* Appends the tail to a row of length bytes, whose key is before it.  Returns the length with it. */
Size
gpusort_writer_append_tail(GpuSortWriter *writer, char *row, Size length)
{
	char *tail = row + MAXALIGN(length);
	GpuSortTailEnd *end = (GpuSortTailEnd *) (tail + writer->tail) - 1;

	for (char *from = writer->cursor, *to = tail; to < (char *) end; from += sizeof(uint64), to += sizeof(uint64))
		*(uint64 *) to = *(uint64 *) from;
	end->own = length | (uint32) gpusort_row_flags(row) << GPUSORT_TAIL_FLAGS_SHIFT;
	end->check = gpusort_tail_check(row, end, writer->seed);
	writer->sum += end->check;
	length = tail + writer->tail - row;
	gpusort_row_set_length(row, length);
	return length;
}

/* Hands over the last chunk; false, with a reason, if the sort is full or lost. */
bool
gpusort_writer_finish(GpuSortWriter *writer, GpuSortFailure *failure)
{
	return writer->chunk == NULL || writer->rows_left == writer->rows_max || flush_chunk(writer, failure);
}
