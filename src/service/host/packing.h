/*-------------------------------------------------------------------------
 *
 * packing.h
 *	  Packed keys of the host engine: only the bits that vary, next to each other.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_HOST_PACKING_H
#define GPUSORT_HOST_PACKING_H

#include "service/engine.h"
#include "service/host/element.h"

/*
 * How to get packed keys.  Of a packed key of "bits" bits, word 0 holds the
 * first 64, and so on; the last word holds what is left, in its low bits.  Each
 * move takes the bits of mask from a word of the key and puts them, next to each
 * other, into a word of the packed key, shift bits from its low end.
 */
typedef struct GpuSortBitMove
{
	uint32_t word;
	uint32_t shift;
	uint64_t mask;
} GpuSortBitMove;

typedef struct GpuSortPacking
{
	uint32_t bits;
	uint32_t words; /* at least 1 */
	bool pext;      /* the CPU gathers bits in one instruction */
	/* moves of word w: first[w] up to first[w + 1] */
	uint32_t first[GPUSORT_MAX_KEY_WORDS + 1];
	/* without pext a move is of a run of bits, of which a word has 32 at most */
	GpuSortBitMove moves[GPUSORT_MAX_KEY_WORDS * 33];
} GpuSortPacking;

extern void gpusort_packing_plan(GpuSortPacking *packing, const uint64_t *any, const uint64_t *all,
								 uint32_t key_words);
extern uint64_t gpusort_packing_word(const GpuSortPacking *packing, const uint64_t *key, uint32_t word);
extern void gpusort_host_extract(GpuSort *sort, GpuSortElement *elements, bool backwards);

#endif /* GPUSORT_HOST_PACKING_H */
