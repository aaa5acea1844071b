/*-------------------------------------------------------------------------
 *
 * registry.h
 *	  The engines the service has, and which one a sort gets.
 *
 * engine.h says what an engine is; this is the list of those that are open.
 * open comes first and close last, both from the main thread; the rest reads.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_REGISTRY_H
#define GPUSORT_REGISTRY_H

#include <stdbool.h>

#include "service/engine.h"

#define GPUSORT_DEVICES_MAX 32

/* The service's options about engines, and its pool; 0 leaves a choice to the engine. */
typedef struct GpuSortRegistryConfig
{
	GpuSortEngineKind kind;   /* HOST: the cuda engine is not looked for */
	const char *cuda_library; /* NULL: the one beside this program */
	const char *devices;
	uint64_t device_memory;                /* bytes per device */
	struct GpuSortHostMemory *host_memory; /* of the host engine; outlives it */
	int threads;                           /* of the host engine */
	void *pool;
	size_t pool_bytes;
} GpuSortRegistryConfig;

extern bool gpusort_registry_open(const GpuSortRegistryConfig *config);
extern void gpusort_registry_close(void);
extern uint32_t gpusort_registry_mask(void);
extern const GpuSortEngineHandle *gpusort_registry_find(GpuSortEngineKind kind);
extern void gpusort_registry_ready(GpuSortMessage *message);

#endif /* GPUSORT_REGISTRY_H */
