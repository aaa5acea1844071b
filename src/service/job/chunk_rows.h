/*-------------------------------------------------------------------------
 *
 * chunk_rows.h
 *	  With how many rows at most a chunk may be filled.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_CHUNK_ROWS_H
#define GPUSORT_CHUNK_ROWS_H

#include "service/protocol.h"

/* What is known about a sort's rows; belongs to its job. */
typedef struct GpuSortChunkRows
{
	uint32_t most;  /* the most rows that a chunk can hold */
	uint32_t first; /* rows for a chunk before the first one was put */
	uint64_t rows;  /* number of rows put */
	uint64_t bytes; /* of them in chunks: keys, rows, offsets */
	uint32_t last_rows;
	uint32_t last_bytes; /* the same of the last chunk */
} GpuSortChunkRows;

extern void gpusort_chunk_rows_init(GpuSortChunkRows *known, const GpuSortRequest *request);
extern void gpusort_chunk_rows_note(GpuSortChunkRows *known, uint32_t rows, uint32_t bytes);
extern uint32_t gpusort_chunk_rows_choose(const GpuSortChunkRows *known);

#endif /* GPUSORT_CHUNK_ROWS_H */
