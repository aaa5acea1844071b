/*-------------------------------------------------------------------------
 *
 * element.h
 *	  What the host engine sorts: a word of a packed key, and where its row is.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_HOST_ELEMENT_H
#define GPUSORT_HOST_ELEMENT_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A ref says where a row is:
 *
 *	 63      39 38       20 19        1    0
 *	| chunk    | offset / 8 | length / 8 | mark |
 *
 * offset is the row's within the records of its chunk, behind its key; length
 * is padded to 8.  mark is "key is truncated" until the ties are known, then
 * "ties with the next row".
 */
#define GPUSORT_HOST_REF_MARK       ((uint64_t) 1)
#define GPUSORT_HOST_REF_CHUNKS_MAX ((uint32_t) 1 << 25)

static inline uint64_t
gpusort_host_ref_make(uint32_t chunk, uint32_t offset, uint32_t padded_length, bool mark)
{
	return (uint64_t) chunk << 39 | (uint64_t) (offset >> 3) << 20 |
		(uint64_t) (padded_length >> 3) << 1 | mark;
}

static inline uint32_t
gpusort_host_ref_chunk(uint64_t ref)
{
	return ref >> 39;
}

static inline uint32_t
gpusort_host_ref_offset(uint64_t ref)
{
	return (ref >> 20 & 0x7FFFF) << 3;
}

static inline uint32_t
gpusort_host_ref_length(uint64_t ref)
{
	return (ref >> 1 & 0x7FFFF) << 3;
}

/* What is sorted. */
typedef struct GpuSortElement
{
	uint64_t key; /* 64 bits of the packed key */
	uint64_t ref;
} GpuSortElement;

#endif /* GPUSORT_HOST_ELEMENT_H */
