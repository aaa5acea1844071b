/*-------------------------------------------------------------------------
 *
 * region.h
 *	  How a block of device memory is laid out in regions, for the sort library and for
 *	  what is built on it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_REGION_H
#define GPUSORT_REGION_H

#include <stddef.h>

/* Regions begin at multiples of this. */
#define GPUSORT_REGION_ALIGN 256

/* Returns the bytes that a region of so many takes in its block. */
static inline size_t
gpusort_region_bytes(size_t bytes)
{
	return (bytes + GPUSORT_REGION_ALIGN - 1) / GPUSORT_REGION_ALIGN * GPUSORT_REGION_ALIGN;
}

/* Lays a region behind those before it, which end at *end; returns where it starts in the block. */
static inline size_t
gpusort_region_lay(size_t *end, size_t bytes)
{
	size_t start = *end;

	*end += gpusort_region_bytes(bytes);
	return start;
}

#endif /* GPUSORT_REGION_H */
