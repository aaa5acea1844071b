/*-------------------------------------------------------------------------
 *
 * engines.h
 *	  The engines the service has, and which one a sort gets.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ENGINES_H
#define GPUSORT_ENGINES_H

#include <stdbool.h>

#include "service/engine.h"

#define GPUSORT_DEVICES_MAX 32

typedef struct GpuSortEngineHandle
{
	const GpuSortEngineOps *ops; /* NULL: there is no such engine */
	GpuSortEngine *engine;
} GpuSortEngineHandle;

/* The service's options about engines, and its pool. */
typedef struct GpuSortEnginesConfig
{
	GpuSortEngineKind kind;   /* HOST: the cuda engine is not looked for */
	const char *cuda_library; /* NULL: the one beside this program */
	const char *devices;
	uint64_t device_memory;
	uint64_t host_memory;
	int threads;
	void *pool;
	size_t pool_bytes;
} GpuSortEnginesConfig;

extern bool gpusort_engines_open(const GpuSortEnginesConfig *config);
extern void gpusort_engines_close(void);
extern uint32_t gpusort_engines_mask(void);
extern const GpuSortEngineHandle *gpusort_engines_find(GpuSortEngineKind kind);
extern void gpusort_engines_ready(GpuSortMessage *message);

#endif /* GPUSORT_ENGINES_H */
