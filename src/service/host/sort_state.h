/*-------------------------------------------------------------------------
 *
 * sort_state.h
 *	  What the parts of the host engine share: the sort and its chunks.  Nobody
 *	  else includes this.
 *
 * PATH OF THE DATA
 *	room.c		reserve: all memory that the steps below take
 *	rows.c		put: chunk -> records (a copy) and entries, as they come
 *	packing.c	entries -> elements (element.h), only bits that vary
 *	sort.c		elements by packed key, with sort_small.c within the cache
 *	order.c		check of the order; wider keys word by word; ties
 *	pick.c		first rows of runs, if only those are wanted, and their ties
 *	rows.c		emit: records in the order of the elements -> chunks
 *	search.c	keys_at, rows_below: keys of the elements' rows
 *	engine.c	the methods of engine.h, memory, life and death
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_HOST_SORT_STATE_H
#define GPUSORT_HOST_SORT_STATE_H

#include "service/engine.h"
#include "service/host/element.h"
#include "service/machine/memory.h"
#include "service/host/threads.h"

/*
 * Keys of up to this many words are copied into the entries, next to each
 * other, so that extracting bits from them does not drag whole rows through
 * the cache.  Wider keys are read from the records.
 */
#define GPUSORT_HOST_INLINE_WORDS 4

/* A chunk that was put. */
typedef struct GpuSortHostChunk
{
	char *records;     /* in a slab; entries follow */
	uint64_t *entries; /* per row: inline words of the key, then the ref */
	uint32_t rows;
	uint64_t first; /* number of its first row in the sort */
} GpuSortHostChunk;

/* Memory that chunks are put into, one behind the other. */
typedef struct GpuSortHostSlab
{
	char *start; /* an extent; belongs to the sort */
	size_t bytes;
	size_t used;     /* bytes used by chunks that were put */
	size_t promised; /* bytes promised to reserves that no put has used yet */
} GpuSortHostSlab;

/* A reserve that no put has used yet. */
typedef struct GpuSortHostReserve
{
	uint32_t rows_max;
	uint32_t slab; /* where its chunk goes */
} GpuSortHostReserve;

/* So many rows with equal words that all threads work on them together. */
typedef struct GpuSortHostRun
{
	size_t start;
	size_t length;
} GpuSortHostRun;

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
	/* without pext a move is a run of bits; a word has at most 32 */
	GpuSortBitMove moves[GPUSORT_MAX_KEY_WORDS * 33];
} GpuSortPacking;

struct GpuSort
{
	GpuSortEngine *engine;
	GpuSortHostMemory *memory;
	GpuSortThreads *threads;
	const int *cancelled;

	/* how keys lie */
	uint32_t key_words;
	uint32_t inline_words; /* key_words or 0 */
	uint32_t entry_words;  /* inline_words + 1 */
	bool may_tie;
	uint64_t limit; /* rows wanted; 0: all */

	/* of each run the first rows alone (pick.c); with run_peers, and those whose keys equal the last one's */
	uint32_t run_bits;
	uint32_t run_rows; /* 0: all */
	bool run_peers;    /* asked for, or where rows may tie */
	bool run_exact;
	bool run_counts; /* elements have counts for keys once rows are picked */

	/* what was put */
	GpuSortHostChunk *chunks;
	uint32_t nchunks;
	uint32_t chunks_room;
	uint64_t rows;
	uint64_t row_bytes;                  /* padded, without keys; finally of the output */
	uint64_t ref_sum;                    /* of the refs without their marks */
	uint64_t any[GPUSORT_MAX_KEY_WORDS]; /* OR of each word of all keys */
	uint64_t all[GPUSORT_MAX_KEY_WORDS]; /* AND */
	uint64_t last_key[GPUSORT_MAX_KEY_WORDS];
	bool ascending;     /* keys came in order so far */
	bool descending;    /* each key came strictly below the one before */
	bool counts_differ; /* with run_counts: some row's is not 1 */

	/* memory; only room.c changes it, except the contents of the work space */
	uint64_t charged; /* all that is charged now */
	GpuSortHostSlab *slabs;
	uint32_t nslabs;
	uint32_t slabs_room;
	GpuSortHostReserve *reserves;
	uint32_t nreserves;
	uint32_t reserves_room;
	uint64_t rows_reserved; /* of all reserves */
	uint64_t rows_room;     /* number of rows that elements and work space suffice for */
	size_t work_bytes;      /* of work space: */
	void *histograms;       /* sort.c's */
	size_t *block_starts;   /* order.c's, and this: */
	GpuSortHostRun *long_runs;

	/* the sort */
	GpuSortPacking packing;
	GpuSortElement *elements; /* an element for each row, finally sorted */
	GpuSortElement *other;    /* as many again, until the rows are sorted */
	bool sorting;             /* sort was called, so no more chunks come */
	uint64_t tie_rows;        /* of the output */

	/* output */
	uint64_t rows_out; /* number of rows that are emitted: all, or the first ones of all or of each run */
};

/* Returns true if the sort was told to stop. */
static inline bool
gpusort_host_cancelled(const GpuSort *sort)
{
	return __atomic_load_n(sort->cancelled, __ATOMIC_RELAXED) != 0;
}

/* Returns the key of the row that ref refers to. */
static inline const uint64_t *
gpusort_host_key(const GpuSort *sort, uint64_t ref)
{
	return (const uint64_t *) (sort->chunks[gpusort_host_ref_chunk(ref)].records +
							   gpusort_host_ref_offset(ref)) -
		sort->key_words;
}

#endif /* GPUSORT_HOST_SORT_STATE_H */
