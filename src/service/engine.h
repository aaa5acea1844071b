/*-------------------------------------------------------------------------
 *
 * engine.h
 *	  What a sort engine does for the service.  There are two: the host engine,
 *	  built in (host/engine.c), and the cuda engine, loaded with dlopen
 *	  (gpusort_cuda.so, cuda/engine/engine.cu).  registry.c knows which are open.
 *
 * An engine is opened once, by the service's main thread,
 * and lives as long as the service.  A sort belongs to one thread,
 * its job's: begin to end are called from that thread alone,
 * in this order, and each call blocks until it is done:
 *
 *	  begin, (reserve, put)*, sort, (emit | keys_at | rows_below)*, end
 *
 * end is legal, and due, after any of them, also after one that failed; after
 * a failure nothing but end is.  Several sorts run side by side on threads of
 * their own.  describe, get_buffer and put_buffer may be called from any thread.
 *
 * No call exits the process, throws, or leaves memory behind that end or close
 * does not free.  A call that fails fills *error.
 *
 * Compiles as C11 and as C++14;
 * nothing here is a function, whose name C++ would change.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ENGINE_H
#define GPUSORT_ENGINE_H

#include <stdbool.h>

#include "service/protocol.h"

/* Bumped with every change here: an engine of another version is not loaded. */
#define GPUSORT_ENGINE_ABI 8

typedef struct GpuSortEngine GpuSortEngine; /* opaque, the engine's own */
typedef struct GpuSort GpuSort;             /* opaque, the engine's own */

typedef struct GpuSortEngineConfig
{
	const char *devices;              /* cuda: "all" or ordinals "0,2" */
	uint64_t memory_limit;            /* bytes per device, or of the host; 0: the engine's own choice */
	int threads;                      /* host: 0: as many as the process may use */
	struct GpuSortHostMemory *memory; /* host: its sorts' memory, in place of memory_limit; may be NULL */
	void *pool;                       /* the staging pool, for pinning; may be NULL (tests) */
	size_t pool_bytes;
} GpuSortEngineConfig;

/* 0 is success; anything else means *error is filled. */
typedef struct GpuSortEngineOps
{
	uint32_t abi; /* GPUSORT_ENGINE_ABI; must be first field */
	GpuSortEngineKind kind;
	uint64_t build; /* GPUSORT_BUILD of a library that is loaded: the service takes it of its own build only */

	/* Makes the engine warm: contexts, streams, buffers, pinning of the pool. */
	int (*open)(const GpuSortEngineConfig *config, GpuSortEngine **engine, GpuSortError *error);
	void (*close)(GpuSortEngine *engine);

	/* Fills up to max devices, returns how many there are.  The host is one device. */
	int (*describe)(GpuSortEngine *engine, GpuSortDevice *devices, int max);

	/*
	 * Starts a sort.  Picks the device and tells which.  Fails with MEMORY_LIMIT
	 * when the estimate does not fit the limit, with MEMORY_BUSY when it does but
	 * other sorts leave too little, saying which setting it is; so does reserve.
	 * *cancelled is read with __atomic_load_n until end: not 0 asks every call
	 * to return soon with an error.
	 */
	int (*begin)(GpuSortEngine *engine, const GpuSortRequest *request, const int *cancelled,
				 GpuSort **sort, GpuSortPlace *place, GpuSortError *error);

	/*
	 * Makes sure that one more chunk, of rows_max rows or fewer and however many bytes, can
	 * be put and later sorted: its memory is not just counted, it is there (but for the cuda
	 * engine's work memory, see cuda/README.md).  rows_max is
	 * gpusort_chunk_rows_most at most.  Failing here is no failure of the sort (the
	 * exception to the rule above): what was put can still be sorted.
	 */
	int (*reserve)(GpuSort *sort, uint32_t rows_max, GpuSortError *error);

	/*
	 * Ingests a chunk, which uses up a reserve of just so many rows_max; its memory is the
	 * caller's again on return.  Never fails for want of memory; BAD_CHUNK when there are
	 * more rows than reserved.
	 */
	int (*put)(GpuSort *sort, const void *chunk, uint32_t rows, uint32_t bytes, uint32_t rows_max,
			   GpuSortError *error);

	/* Sorts what was put, stably, and checks that the result is in order. */
	int (*sort)(GpuSort *sort, GpuSortOutcome *outcome, GpuSortError *error);

	/*
	 * Fills chunk with the rows from number first on, as many as it takes and none from number end on;
	 * first < end <= outcome.rows.  emitted->last: the row before end is among them.  Rows are asked for
	 * in any order; the fastest is where each call goes on where the one before ended.  With records
	 * each row has its key before it, key_words words, and the flags that it was put with (no TIE_NEXT,
	 * and tie_rows is 0): records as in a chunk of ingest, without offsets.
	 */
	int (*emit)(GpuSort *sort, uint64_t first, uint64_t end, bool records, void *chunk, GpuSortEmitted *emitted,
				GpuSortError *error);

	/* Copies the keys of the rows of these numbers, key_words words each, as they were put. */
	int (*keys_at)(GpuSort *sort, const uint64_t *rows, uint32_t count, uint64_t *keys, GpuSortError *error);

	/*
	 * Of each of these keys, of key_words words each: counts the rows whose first so many bits are less
	 * than the key's.  That is the number of the first row whose are not.  1 <= bits <= 64 * key_words.
	 */
	int (*rows_below)(GpuSort *sort, uint32_t bits, const uint64_t *keys, uint32_t count, uint64_t *rows,
					  GpuSortError *error);

	void (*end)(GpuSort *sort);

	/*
	 * GPUSORT_CHUNK_BYTES of memory that puts and emits of this engine copy from and to the fastest, with
	 * anything in it; it goes back before close.  NULL: there is none to be had, and other memory will do.
	 * Any thread may call both.  Where any memory is as good both are NULL.
	 */
	void *(*get_buffer)(GpuSortEngine *engine);
	void (*put_buffer)(GpuSortEngine *engine, void *buffer);
} GpuSortEngineOps;

/* An open engine. */
typedef struct GpuSortEngineHandle
{
	const GpuSortEngineOps *ops; /* NULL: there is no such engine */
	GpuSortEngine *engine;
} GpuSortEngineHandle;

/* The host engine (host/engine.c).  The cuda engine's library exports the like under the name below. */
extern const GpuSortEngineOps gpusort_host_engine;

#define GPUSORT_CUDA_ENGINE_SYMBOL "gpusort_cuda_engine"

#endif /* GPUSORT_ENGINE_H */
