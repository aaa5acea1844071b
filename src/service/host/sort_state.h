/*-------------------------------------------------------------------------
 *
 * host_engine.h
 *	  What the parts of the host engine share: the sort, its chunks and its
 *	  elements.  Nobody else includes this.
 *
 * PATH OF THE DATA
 *	host_rows.c		put: chunk -> records (a copy) and entries, as they come
 *	host_keys.c		entries -> elements (packed key, ref), only bits that vary
 *	host_sort.c		elements by packed key
 *	host_order.c	check of the order; wider keys word by word; ties
 *	host_rows.c		emit: records in the order of the elements -> chunks
 *	engine_host.c	the methods of engine.h, memory, life and death
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_HOST_ENGINE_H
#define GPUSORT_HOST_ENGINE_H

#include <stdbool.h>

#include "service/engine.h"
#include "service/host/memory.h"
#include "service/host/threads.h"

/*
 * A ref says where a row is:
 *
 *	 63      39 38       20 19        1    0
 *	| chunk    | offset / 8 | length / 8 | mark |
 *
 * offset is the row's within the records of its chunk, behind its key; length
 * is padded to 8.  mark is "inexact" until the ties are known, then "ties with
 * the next row".
 */
#define GPUSORT_REF_MARK       ((uint64_t) 1)
#define GPUSORT_REF_CHUNKS_MAX ((uint32_t) 1 << 25)

static inline uint64_t
gpusort_ref_make(uint32_t chunk, uint32_t offset, uint32_t padded_length, bool mark)
{
	return (uint64_t) chunk << 39 | (uint64_t) (offset >> 3) << 20 |
		(uint64_t) (padded_length >> 3) << 1 | mark;
}

static inline uint32_t
gpusort_ref_chunk(uint64_t ref)
{
	return ref >> 39;
}

static inline uint32_t
gpusort_ref_offset(uint64_t ref)
{
	return (ref >> 20 & 0x7FFFF) << 3;
}

static inline uint32_t
gpusort_ref_length(uint64_t ref)
{
	return (ref >> 1 & 0x7FFFF) << 3;
}

/* What is sorted. */
typedef struct GpuSortElement
{
	uint64_t key; /* 64 bits of the packed key */
	uint64_t ref;
} GpuSortElement;

/*
 * Keys of up to this many words are copied into the entries, next to each
 * other, so that extracting bits from them does not drag whole rows through
 * the cache.  Wider keys are read from the records.
 */
#define GPUSORT_HOST_INLINE_WORDS 4

/* A chunk that was put. */
typedef struct GpuSortHostChunk
{
	char *records;     /* belongs to the sort; entries follow in the same extent */
	uint64_t *entries; /* per row: inline words of the key, then the ref */
	size_t extent_bytes;
	uint32_t rows;
	uint64_t first; /* number of its first row in the sort */
} GpuSortHostChunk;

/*
 * How to get packed keys.  Of a packed key of "bits" bits, word 0 holds the
 * first 64, and so on; the last word holds what is left, in its low bits.  Each
 * piece takes the bits of mask from a word of the key and puts them, next to
 * each other, into a word of the packed key, shift bits from its low end.
 */
typedef struct GpuSortPiece
{
	uint32_t word;
	uint32_t shift;
	uint64_t mask;
} GpuSortPiece;

typedef struct GpuSortPacking
{
	uint32_t bits;
	uint32_t words; /* at least 1 */
	bool pext;      /* the CPU gathers bits in one instruction */
	/* pieces of word w: first[w] up to first[w + 1] */
	uint32_t first[GPUSORT_MAX_KEY_WORDS + 1];
	/* without pext a piece is a run of bits, of which a word has 32 at most */
	GpuSortPiece pieces[GPUSORT_MAX_KEY_WORDS * 33];
} GpuSortPacking;

struct GpuSort
{
	GpuSortEngine *engine;
	GpuSortMemory *memory;
	GpuSortThreads *threads;
	const int *cancelled;

	/* how keys lie */
	uint32_t key_words;
	uint32_t inline_words; /* key_words or 0 */
	uint32_t entry_words;  /* inline_words + 1 */
	bool may_tie;
	uint64_t limit; /* rows wanted; 0: all */

	/* what was put */
	GpuSortHostChunk *chunks;
	uint32_t nchunks;
	uint32_t chunks_room;
	uint64_t rows;
	uint64_t row_bytes;                  /* padded, without keys */
	uint64_t ref_sum;                    /* of the refs without their marks */
	uint64_t any[GPUSORT_MAX_KEY_WORDS]; /* OR of each word of all keys */
	uint64_t all[GPUSORT_MAX_KEY_WORDS]; /* AND */
	uint64_t last_key[GPUSORT_MAX_KEY_WORDS];
	bool ascending;  /* keys came in order so far */
	bool descending; /* each key came strictly below the one before */

	/* memory */
	uint32_t reserved;      /* reserves not used up yet */
	uint64_t reserve_bytes; /* charged for each of them */
	uint64_t charged;       /* all that is charged now */

	/* the sort */
	GpuSortPacking packing;
	GpuSortElement *elements; /* rows of them, sorted in the end */
	GpuSortElement *other;    /* as many again, while sorting */
	uint64_t tie_rows;

	/* output */
	uint64_t rows_out; /* that are given out: all, or the first of them */
	uint64_t emitted;  /* rows */
};

static inline bool
gpusort_host_cancelled(const GpuSort *sort)
{
	return __atomic_load_n(sort->cancelled, __ATOMIC_RELAXED) != 0;
}

/* The key of the row that ref means. */
static inline const uint64_t *
gpusort_host_key(const GpuSort *sort, uint64_t ref)
{
	return (const uint64_t *) (sort->chunks[gpusort_ref_chunk(ref)].records +
							   gpusort_ref_offset(ref)) -
		sort->key_words;
}

/* host_rows.c */
extern int gpusort_host_take(GpuSort *sort, const char *chunk, uint32_t rows, uint32_t bytes,
							 GpuSortHostChunk *taken, GpuSortError *error);
extern void gpusort_host_give(GpuSort *sort, char *chunk, GpuSortEmitted *emitted);

/* host_keys.c */
extern void gpusort_packing_plan(GpuSortPacking *packing, const uint64_t *any, const uint64_t *all,
								 uint32_t key_words);
extern uint64_t gpusort_packing_word(const GpuSortPacking *packing, const uint64_t *key, uint32_t word);
extern void gpusort_host_extract(GpuSort *sort, GpuSortElement *elements, bool backwards);

/* host_sort.c */
extern void gpusort_host_sort_few(GpuSortElement *elements, GpuSortElement *other, size_t n);
extern int gpusort_host_sort_many(GpuSort *sort, GpuSortElement *elements, GpuSortElement *other,
								  size_t n, bool in_other, GpuSortError *error);

/* host_order.c */
extern int gpusort_host_finish(GpuSort *sort, GpuSortError *error);

/* engine_host.c */
extern int gpusort_host_error_cancelled(GpuSortError *error);
extern int gpusort_host_error_memory(GpuSortError *error);

#endif /* GPUSORT_HOST_ENGINE_H */
