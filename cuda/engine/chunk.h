/*-------------------------------------------------------------------------
 *
 * chunk.h
 *	  What the protocol says of chunks and row headers, for the engine's kernels:
 *	  how a chunk may be shaped, the ref of a record, and a row's header as it is
 *	  to leave.
 *
 * The sort library finds rows in chunks by its own rules (sort/row_ref.h); that these
 * are the protocol's is asserted here.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_CHUNK_H
#define GPUSORT_CHUNK_H

#include "service/protocol.h"
#include "sort/key_stats.h"
#include "sort/portable.h"
#include "sort/row_ref.h"

#define GPUSORT_CHUNK_WORDS (GPUSORT_CHUNK_BYTES / 8)

static_assert(GPUSORT_REF_CHUNK_BYTES == GPUSORT_CHUNK_BYTES, "a row ref reaches all of a chunk");
static_assert(GPUSORT_DEVICE_SORT_MAX_KEY_WORDS == GPUSORT_MAX_KEY_WORDS, "the sort takes every key");
static_assert(GPUSORT_ROW_BYTES_MIN == GPUSORT_ALIGN8(GPUSORT_ROW_FLAGS_OFFSET + 1), "every row has flags");

/* The ref of the record at an offset of chunk number `chunk`, which lies at base. */
GPUSORT_HD static inline GpuSortRowRef
gpusort_ref_of(const char *base, uint32_t chunk, uint32_t offset, uint32_t key_words)
{
	uint32_t place = offset + 8 * key_words;
	uint64_t head = *(const uint64_t *) (base + place);

	return gpusort_ref_make(chunk, place, (uint32_t) head,
							(head >> 8 * GPUSORT_ROW_FLAGS_OFFSET & GPUSORT_ROW_KEY_TRUNCATED) != 0);
}

/* Returns true if a chunk can be laid out so; says nothing of what is in it. */
GPUSORT_HD static inline bool
gpusort_chunk_shape_ok(uint32_t rows, uint32_t bytes, uint32_t key_words)
{
	return (uint64_t) rows * (8 * (uint64_t) key_words + GPUSORT_ROW_BYTES_MIN) <= bytes &&
		gpusort_chunk_offsets_at(bytes) + (uint64_t) rows * sizeof(uint32_t) <= GPUSORT_CHUNK_BYTES;
}

/* A row's first word, which holds its length and flags, as it is to leave. */
GPUSORT_HD static inline uint64_t
gpusort_row_head_out(uint64_t head, bool tie_next)
{
	head &= ~((uint64_t) (GPUSORT_ROW_KEY_TRUNCATED | GPUSORT_ROW_TIE_NEXT) << 8 * GPUSORT_ROW_FLAGS_OFFSET);
	if (tie_next)
		head |= (uint64_t) GPUSORT_ROW_TIE_NEXT << 8 * GPUSORT_ROW_FLAGS_OFFSET;
	return head;
}

/* The same word of a row that leaves in a record, to be sorted once more: as it was put. */
GPUSORT_HD static inline uint64_t
gpusort_record_head_out(uint64_t head)
{
	return head & ~((uint64_t) GPUSORT_ROW_TIE_NEXT << 8 * GPUSORT_ROW_FLAGS_OFFSET);
}

#endif /* GPUSORT_CHUNK_H */
