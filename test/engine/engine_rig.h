/*-------------------------------------------------------------------------
 *
 * engine_rig.h
 *	  What engine_test and engine_bench share: getting hold of an engine, random
 *	  numbers, and made-up rows.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ENGINE_RIG_H
#define GPUSORT_ENGINE_RIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "service/engine.h"

/* The engine named "host", or "cuda" from this library.  Exits the program with a message if it is not there. */
extern const GpuSortEngineOps *rig_engine(const char *name, const char *library);

/* The library's emulate_fail (emulate/cuda_runtime.h), or NULL: it is none of emulated CUDA. */
extern void (*rig_emulate_fail(const char *library))(long call);

/* What the library calls by this name, of emulated CUDA or of the engine's own; NULL: it keeps it to itself. */
extern void *rig_symbol(const char *library, const char *name);

/* A staging pool of so many chunks; never freed. */
extern char *rig_pool(uint32_t chunks);

/* splitmix64; *state is the seed, then the generator's own. */
extern uint64_t rig_random(uint64_t *state);

/* Returns a random number below n; n is not 0. */
extern uint64_t rig_random_below(uint64_t *state, uint64_t n);

/* How keys are distributed.  Text names as the bench's command line has them. */
typedef enum RigKeys
{
	RIG_KEYS_RANDOM,
	RIG_KEYS_EQUAL,
	RIG_KEYS_SORTED,   /* distinct, in order */
	RIG_KEYS_REVERSED, /* distinct, in reverse order */
	RIG_KEYS_FEW,      /* about a dozen values */
	RIG_KEYS_HIGH_BIT, /* only the very first bit varies */
	RIG_KEYS_LOW_BIT,  /* only the very last bit varies */
	RIG_KEYS_SPARSE,   /* random bits here and there vary */
	RIG_KEYS_SUFFIX,   /* only the last word varies, in a few values */
	RIG_KEYS_EXTREME,  /* words of all zeros and all ones */
	RIG_KEYS_SKEWED,   /* numbers of any size, small ones as often as large */
	RIG_KEYS_COUNT
} RigKeys;

/* By RigKeys. */
extern const char *const rig_keys_names[RIG_KEYS_COUNT];

/*
 * Fills in the key of row number `row` of `rows`.  The same salt and arguments give the same
 * key.
 */
extern void rig_key(uint64_t *key, uint32_t key_words, RigKeys keys, uint64_t salt, uint64_t row, uint64_t rows);

/* A chunk being filled; belongs to the caller. */
typedef struct RigChunk
{
	char *base; /* GPUSORT_CHUNK_BYTES */
	uint32_t rows;
	uint32_t bytes;
} RigChunk;

/* Makes *chunk an empty one. */
extern void rig_chunk_start(RigChunk *chunk, char *base);

/* Adds a record (key, then row) and returns where it goes, or NULL when a row of this length does not fit. */
extern char *rig_chunk_add(RigChunk *chunk, uint32_t key_words, uint32_t row_bytes);

/* Returns the time by a clock that only goes forward. */
extern double rig_milliseconds(void);

#endif /* GPUSORT_ENGINE_RIG_H */
