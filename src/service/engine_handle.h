/*-------------------------------------------------------------------------
 *
 * engine_handle.h
 *	  What the service has of an engine beside engine.h, which engines see.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ENGINE_HANDLE_H
#define GPUSORT_ENGINE_HANDLE_H

#include "service/engine.h"

/* An open engine. */
typedef struct GpuSortEngineHandle
{
	const GpuSortEngineOps *ops; /* NULL: there is no such engine */
	GpuSortEngine *engine;
} GpuSortEngineHandle;

struct GpuSortHostMemory;

/*
 * Has the host engine that is opened next take its sorts' memory from what the service has, in place of as much as
 * memory_limit says; the memory belongs to the caller, and must be there until the engine is closed.
 */
extern void gpusort_host_engine_take_memory(struct GpuSortHostMemory *memory);

#endif /* GPUSORT_ENGINE_HANDLE_H */
