/*-------------------------------------------------------------------------
 *
 * icu_state.h
 *	  What is known of an ICU collation; for icu.c and icu_strings.c alone.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ICU_STATE_H
#define GPUSORT_ICU_STATE_H

#include "compat.h"

#include "keys/encoders.h"
#include "keys/bytes/icu_library.h"

#define GPUSORT_ICU_ASCII_CHARS 128

/* A character's first-level bytes, in memory order, with these above; 0: it is not simple. */
#define GPUSORT_ICU_WEIGHT_BYTES     3
#define GPUSORT_ICU_WEIGHT_LENGTH(w) ((w) >> 24 & 3)
#define GPUSORT_ICU_WEIGHT_CONTRACTS ((uint32) 1 << 31) /* it begins a pair that is not simple */

/* ICU's bytes between levels, and of common weights and those above them beyond the first level. */
#define GPUSORT_ICU_LEVEL_SEPARATOR 1
#define GPUSORT_ICU_COMMON          5
#define GPUSORT_ICU_TERTIARY_HIGH   (GPUSORT_ICU_COMMON + 0xC0)

/* A pair of characters below GPUSORT_ICU_PAIR_CHARS as a number, and the slots for what is known of pairs. */
#define GPUSORT_ICU_PAIR_CHARS     0x800
#define GPUSORT_ICU_PAIR_SLOTS     8192 /* 2^13 */
#define GPUSORT_ICU_PAIR_KEY(a, b) ((uint64) (a) << 11 | (b))

/* A collation; belongs to the backend. */
typedef struct GpuSortIcu
{
	struct GpuSortIcu *next;
	const UCollator *collator; /* PostgreSQL's, which lives as long as the backend */
	UCollator *keys;           /* what makes sort keys: the same, or of the first level only */
	bool deterministic;
	bool decides;          /* sort keys that are equal mean strings that are */
	UConverter *converter; /* to UTF-16; NULL: strings are UTF-8 */
	UChar *units;          /* for its results */
	int capacity;          /* units */

	/* what is known of ASCII characters */
	int levels;                                                   /* of sort keys, 1 to 3; 0: only the first is known */
	bool pairs[GPUSORT_ICU_ASCII_CHARS][GPUSORT_ICU_ASCII_CHARS]; /* where the weight contracts: which are not simple */
	uint32 weights[256];                                          /* by byte */
	unsigned char tertiary[GPUSORT_ICU_ASCII_CHARS];              /* 0: the common weight */

	/* and of pairs */
	uint64 *entries; /* 0: a free slot.  NULL: strings are not UTF-8, or ICU does not do as expected */
	int nentries;
	uint32 *contractions; /* tailored ones, as pairs of characters, or parts of them */
	int ncontractions;
} GpuSortIcu;

extern void gpusort_icu_check(UErrorCode error);
extern int gpusort_icu_ask(GpuSortIcu *state, const char *data, int length, char *bytes, int room);
extern int gpusort_icu_simple(const GpuSortIcu *state, const char *data, int length, char *bytes, int room);

#endif /* GPUSORT_ICU_STATE_H */
