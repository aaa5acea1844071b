/*-------------------------------------------------------------------------
 *
 * space.h
 *	  The temporary file of a process for a sort larger than memory.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SPACE_H
#define GPUSORT_SPACE_H

#include "compat.h"

#include "storage/fd.h"

/* What the service was given; all zeros before the first of it. */
typedef struct GpuSortSpace
{
	File file; /* 0: none */
	uint64 bytes;
} GpuSortSpace;

extern bool gpusort_space_can_grow(const GpuSortSpace *space, uint64 bytes);
extern uint64 gpusort_space_grow(GpuSortSpace *space, uint64 bytes);
extern void gpusort_space_close(GpuSortSpace *space);

#endif /* GPUSORT_SPACE_H */
