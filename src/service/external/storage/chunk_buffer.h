/*-------------------------------------------------------------------------
 *
 * chunk_buffer.h
 *	  Memory for a chunk that an engine copies from and to: its own, if it has some,
 *	  or ordinary.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_EXTERNAL_CHUNK_BUFFER_H
#define GPUSORT_EXTERNAL_CHUNK_BUFFER_H

#include "service/engine.h"

typedef struct GpuSortChunkBuffer
{
	char *start; /* GPUSORT_CHUNK_BYTES; NULL: none */
	bool is_engines;
} GpuSortChunkBuffer;

extern GpuSortChunkBuffer gpusort_chunk_buffer_get(const GpuSortEngineHandle *handle);
extern void gpusort_chunk_buffer_put(const GpuSortEngineHandle *handle, GpuSortChunkBuffer *buffer);

#endif /* GPUSORT_EXTERNAL_CHUNK_BUFFER_H */
