/*-------------------------------------------------------------------------
 *
 * reader.c
 *	  Reads the rows of a sort out of the chunks in which they arrive.
 *
 * Legal order of calls: init; then next_chunk whenever the reader is at the end of
 * its chunk, until it says that there are no more; in between row, and mark and
 * restore within a chunk.  rewind at any time.  The rows stay where they arrived:
 * the reader owns nothing but the chunk at hand, which goes back with the client.
 *
 *-------------------------------------------------------------------------
 */
#include "client/reader.h"

#include "client/elapsed.h"

/* Begins at the first row of a sort that client has had done; there is no chunk yet. */
void
gpusort_reader_init(GpuSortReader *reader, GpuSortClient *client)
{
	memset(reader, 0, sizeof(*reader));
	reader->client = client;
}

/*
 * Lets go of the chunk at hand, whose rows have all been read, and waits for
 * the next one.  Returns true with a row to read, or false with failure->reason
 * NONE when there are no more, or false with the reason why the sort is lost.
 */
bool
gpusort_reader_next_chunk(GpuSortReader *reader, GpuSortFailure *failure)
{
	instr_time start;

	failure->reason = GPUSORT_REASON_NONE;
	Assert(gpusort_reader_at_end(reader));
	gpusort_client_free_data(reader->client, &reader->data);
	if (reader->last)
		return false;

	INSTR_TIME_SET_CURRENT(start);
	if (!gpusort_client_next_data(reader->client, &reader->data, failure))
		return false;
	reader->wait_ms += gpusort_ms_since(start);
	reader->gather_ms += reader->data.emitted.gather_ms;
	reader->last = reader->data.emitted.last != 0;
	reader->cursor = reader->data.rows;
	reader->left = reader->data.emitted.rows;
	reader->rows += reader->data.emitted.rows;
	return reader->left > 0;
}

/* Starts again at the first row; false, with a reason, if the sort is lost. */
bool
gpusort_reader_rewind(GpuSortReader *reader, GpuSortFailure *failure)
{
	gpusort_client_free_data(reader->client, &reader->data);
	reader->left = 0;
	reader->last = false;
	return gpusort_client_rewind(reader->client, failure);
}
