/*-------------------------------------------------------------------------
 *
 * chunk_buffer.c
 *	  Memory for a chunk that an engine copies from and to; see chunk_buffer.h.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>

#include "service/external/storage/chunk_buffer.h"

/* A buffer for chunks of an engine, or of none (NULL); its start is NULL if the system has no memory. */
GpuSortChunkBuffer
gpusort_chunk_buffer_get(const GpuSortEngineHandle *handle)
{
	GpuSortChunkBuffer buffer = {.start = NULL};

	if (handle != NULL && handle->ops->get_buffer != NULL)
		buffer.start = handle->ops->get_buffer(handle->engine);
	buffer.is_engines = buffer.start != NULL;
	if (!buffer.is_engines)
		buffer.start = malloc(GPUSORT_CHUNK_BYTES);
	return buffer;
}

/* Gives a buffer back, if it is one, to where it came from: the engine is the same. */
void
gpusort_chunk_buffer_put(const GpuSortEngineHandle *handle, GpuSortChunkBuffer *buffer)
{
	if (buffer->is_engines)
		handle->ops->put_buffer(handle->engine, buffer->start);
	else
		free(buffer->start);
	*buffer = (GpuSortChunkBuffer){.start = NULL};
}
