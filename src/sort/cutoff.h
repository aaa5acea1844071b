/*-------------------------------------------------------------------------
 *
 * cutoff.h
 *	  The key beyond which no row is among the first so many of a sort.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_CUTOFF_H
#define GPUSORT_CUTOFF_H

#include "compat.h"

/*
 * Where a LIMIT asks for at most one of so many rows, those that it does not ask for are dropped while rows are
 * taken in: of rows in no order less than half are left then.
 */
#define GPUSORT_ROWS_PER_WANTED 4

/* How many leading words of keys are compared; rows that are equal in these are kept. */
#define GPUSORT_CUTOFF_WORDS 8

/* What the participants of a sort have counted together, in shared memory. */
typedef struct GpuSortCutoffShared GpuSortCutoffShared;

/* One participant's part. */
typedef struct GpuSortCutoff
{
	uint32 words;                       /* number of words of a key that are compared */
	uint64 limit[GPUSORT_CUTOFF_WORDS]; /* rows with greater keys are not wanted */
	bool useless;                       /* it drops too few rows, and is not asked any more */
	uint64 dropped;                     /* number of rows that this process dropped */
	struct GpuSortCutoffBatch *batch;   /* keys of rows that the others do not know of */
	GpuSortCutoffShared *shared;
} GpuSortCutoff;

extern Size gpusort_cutoff_shared_bytes(void);
extern void gpusort_cutoff_shared_init(GpuSortCutoffShared *shared, uint32 key_words, uint64 wanted);
extern GpuSortCutoff *gpusort_cutoff_create(uint32 key_words, uint64 wanted);
extern GpuSortCutoff *gpusort_cutoff_join(GpuSortCutoffShared *shared);
extern void gpusort_cutoff_share(GpuSortCutoff *cutoff, GpuSortCutoffShared *shared);
extern void gpusort_cutoff_took(GpuSortCutoff *cutoff, const uint64 *key);
extern void gpusort_cutoff_tell(GpuSortCutoff *cutoff);

/* Returns true if a row of this key is not wanted. */
static inline bool
gpusort_cutoff_is_beyond(const GpuSortCutoff *cutoff, const uint64 *key)
{
	uint32 word = 0;

	while (word < cutoff->words - 1 && key[word] == cutoff->limit[word])
		word++;
	return key[word] > cutoff->limit[word];
}

/* The same, and counts it then. */
static inline bool
gpusort_cutoff_drops(GpuSortCutoff *cutoff, const uint64 *key)
{
	if (!gpusort_cutoff_is_beyond(cutoff, key))
		return false;
	cutoff->dropped++;
	return true;
}

#endif /* GPUSORT_CUTOFF_H */
