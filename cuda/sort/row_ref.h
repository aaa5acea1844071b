/*-------------------------------------------------------------------------
 *
 * row_ref.h
 *	  Rows that lie in chunks of device memory, and where a row is, in 8 bytes: the
 *	  chunk, the row's place in it, its padded length, and whether its key is
 *	  truncated, which is the caller's to say and to read.
 *
 *	  63             39 38            20 19             1  0
 *	  | chunk number   | place / 8      | length / 8     | truncated |
 *
 * A chunk has 2^22 bytes, so a place or a length in units of 8 bytes takes 19
 * bits: a row is shorter than its chunk because a key stands before it.
 *
 * The place is that of the row; its key ends there.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ROW_REF_H
#define GPUSORT_ROW_REF_H

#include <stdbool.h>
#include <stdint.h>

#include "sort/portable.h"

#define GPUSORT_REF_CHUNK_SHIFT 39
#define GPUSORT_REF_PLACE_SHIFT 20
#define GPUSORT_REF_WORDS_SHIFT 1
#define GPUSORT_REF_MASK        UINT64_C(0x7FFFF)
#define GPUSORT_REF_MAX_CHUNKS  (UINT32_C(1) << 25)

/* The most bytes of a chunk: every place and every length fits its field. */
#define GPUSORT_REF_CHUNK_BYTES (8 * (GPUSORT_REF_MASK + 1))

/* A row's least length.  Its first 32 bits are its length in bytes. */
#define GPUSORT_ROW_BYTES_MIN 8

typedef uint64_t GpuSortRowRef;

/* A chunk as it lies in device memory: records, padded to 8, then offsets. */
typedef struct GpuSortDeviceChunk
{
	uint64_t base;  /* device address of the first record */
	uint32_t bytes; /* of the records */
	uint32_t rows;
	uint32_t first_row; /* row id of its first row */
	uint32_t shard;     /* of its sort, the one on whose device it lies */
} GpuSortDeviceChunk;

GPUSORT_HD static inline GpuSortRowRef
gpusort_ref_make(uint32_t chunk, uint32_t place, uint32_t length, bool truncated)
{
	return (uint64_t) chunk << GPUSORT_REF_CHUNK_SHIFT |
		(uint64_t) (place / 8) << GPUSORT_REF_PLACE_SHIFT |
		((uint64_t) length + 7) / 8 << GPUSORT_REF_WORDS_SHIFT |
		(truncated ? 1 : 0);
}

GPUSORT_HD static inline uint32_t
gpusort_ref_chunk(GpuSortRowRef ref)
{
	return (uint32_t) (ref >> GPUSORT_REF_CHUNK_SHIFT);
}

/* Bytes from the start of the chunk to the row. */
GPUSORT_HD static inline uint32_t
gpusort_ref_place(GpuSortRowRef ref)
{
	return (uint32_t) (ref >> GPUSORT_REF_PLACE_SHIFT & GPUSORT_REF_MASK) * 8;
}

/* The row's padded length in units of 8 bytes. */
GPUSORT_HD static inline uint32_t
gpusort_ref_words(GpuSortRowRef ref)
{
	return (uint32_t) (ref >> GPUSORT_REF_WORDS_SHIFT & GPUSORT_REF_MASK);
}

GPUSORT_HD static inline bool
gpusort_ref_truncated(GpuSortRowRef ref)
{
	return (ref & 1) != 0;
}

/* The row that a ref stands for; its key ends there. */
GPUSORT_HD static inline const uint64_t *
gpusort_ref_row(const GpuSortDeviceChunk *chunks, GpuSortRowRef ref)
{
	return (const uint64_t *) (uintptr_t) (chunks[gpusort_ref_chunk(ref)].base + gpusort_ref_place(ref));
}

/* Returns true if the key and the row's first word may be read at this offset. */
GPUSORT_HD static inline bool
gpusort_record_readable(uint32_t offset, uint32_t bytes, uint32_t key_words)
{
	return offset % 8 == 0 &&
		(uint64_t) offset + 8 * (uint64_t) key_words + GPUSORT_ROW_BYTES_MIN <= bytes;
}

/* Returns true if a row of this length fits.  The offset is known to be readable. */
GPUSORT_HD static inline bool
gpusort_row_length_ok(uint32_t offset, uint32_t length, uint32_t bytes, uint32_t key_words)
{
	return length >= GPUSORT_ROW_BYTES_MIN &&
		(uint64_t) offset + 8 * (uint64_t) key_words + length <= bytes;
}

/* Where the offsets start, counted from the chunk's base; the last row's comes first. */
GPUSORT_HD static inline uint64_t
gpusort_chunk_offsets_at(uint32_t bytes)
{
	return ((uint64_t) bytes + 7) / 8 * 8;
}

#endif /* GPUSORT_ROW_REF_H */
