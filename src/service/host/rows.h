/*-------------------------------------------------------------------------
 *
 * rows.h
 *	  Rows of the host engine: from chunks into records, and back into chunks.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_HOST_ROWS_H
#define GPUSORT_HOST_ROWS_H

#include "service/host/sort_state.h"

extern int gpusort_host_ingest(GpuSort *sort, const char *chunk, uint32_t rows, uint32_t bytes,
							   GpuSortHostChunk *ingested, GpuSortError *error);
extern void gpusort_host_emit(const GpuSort *sort, uint64_t first, uint64_t end, bool records, char *chunk,
							  GpuSortEmitted *emitted);

#endif /* GPUSORT_HOST_ROWS_H */
