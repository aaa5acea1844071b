/*-------------------------------------------------------------------------
 *
 * chunk_rows.c
 *	  With how many rows at most a chunk may be filled.
 *
 * An engine needs memory for each row beside the row itself, and has to have it
 * before the client fills the chunk.  A chunk can hold 209,715 rows of 8 bytes;
 * of 100 bytes it holds 37,000.  So a chunk is granted with a number of rows that
 * is likely to fill it: half as many again as rows so far would, twice as many
 * as rows of the estimated length would.
 *
 * A client whose rows are shorter hands its chunk over before it is full, and the
 * next one is granted for more.  How bad that may get is bounded: a chunk takes a
 * sixteenth of the rows that it can hold at least.
 *
 *-------------------------------------------------------------------------
 */
#include "service/job/chunk_rows.h"

/* A chunk takes this fraction of the most rows at least. */
#define LEAST_FRACTION 16

/* Rows that fill a chunk, of which so many take so many bytes in chunks; most if nothing is known. */
static uint64_t
fill_rows(const GpuSortChunkRows *known, uint64_t rows, uint64_t bytes)
{
	uint64_t fill;

	if (rows == 0 || bytes == 0)
		return known->most;
	fill = (double) rows / bytes * GPUSORT_CHUNK_BYTES;
	return fill < known->most ? fill : known->most;
}

static uint32_t
within_bounds(const GpuSortChunkRows *known, uint64_t rows)
{
	uint32_t least = known->most / LEAST_FRACTION;

	if (rows < least)
		return least;
	return rows < known->most ? rows : known->most;
}

/* Makes *known what a request says of its rows. */
void
gpusort_chunk_rows_init(GpuSortChunkRows *known, const GpuSortRequest *request)
{
	uint64_t first;

	*known = (GpuSortChunkRows){.most = gpusort_chunk_rows_most(request->key_words)};
	first = fill_rows(known, request->estimated_rows, request->estimated_bytes);
	if (request->estimated_rows > 0 && request->estimated_rows < first)
		first = request->estimated_rows;
	known->first = within_bounds(known, 2 * first);
}

/* Takes note of a chunk that was put. */
void
gpusort_chunk_rows_note(GpuSortChunkRows *known, uint32_t rows, uint32_t bytes)
{
	known->last_rows = rows;
	known->last_bytes = bytes + rows * sizeof(uint32_t);
	known->rows += rows;
	known->bytes += known->last_bytes;
}

/* The most rows that the next chunk is to be filled with. */
uint32_t
gpusort_chunk_rows_choose(const GpuSortChunkRows *known)
{
	uint64_t all;
	uint64_t last;

	if (known->rows == 0)
		return known->first;
	all = fill_rows(known, known->rows, known->bytes);
	last = fill_rows(known, known->last_rows, known->last_bytes);
	return within_bounds(known, (all > last ? all : last) * 3 / 2);
}
