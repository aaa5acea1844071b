/*-------------------------------------------------------------------------
 *
 * external_case.h
 *	  What the tests of sorts that do not fit the memory share: a sort over an engine with
 *	  files of its own, rows put into it and read from it, and its tests by file.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_EXTERNAL_CASE_H
#define GPUSORT_EXTERNAL_CASE_H

#include "service/external/external_sort.h"
#include "testlib.h"

/* Of processor time.  Sanitizers make everything slow. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ROUNDS   1
#define QUICK_MS 10000
#else
#define ROUNDS   3
#define QUICK_MS 1000
#endif

#define MIB    ((uint64_t) 1 << 20)
#define OWNERS 3

/* A sort, and what it has. */
typedef struct Sort
{
	GpuSortEngine *engine;
	GpuSortExternal *external;
	GpuSortRequest request;
	int cancelled; /* atomic */
	uint32_t ticks;
	uint32_t steps;
	GpuSortCallWatch watch;
	GpuSortCallWatch loader_watches[GPUSORT_JOB_LOADERS];
	SpaceFile files[OWNERS]; /* by second descriptors of theirs */
	int asked;               /* times for space */
	int flags;               /* of the files: how they are opened */
	uint64_t put;            /* rows, so far */
	GpuSortOutcome outcome;
	GpuSortError error;
	char *chunk;
	uint64_t digest; /* of what was emitted, and in which order */
} Sort;

/* For runs in the host's memory, of sorts that are not the host engine's. */
extern GpuSortHostMemory *run_memory;

/* Processors, as many as a test wants. */
extern int processors;

/* An engine of so many bytes */
extern GpuSortEngine *open_engine(uint64_t memory);
extern bool is_idle(GpuSortEngine *engine);

/* A sort, in this order */
extern void external_begin(Sort *sort, GpuSortEngine *engine, GpuSortRequest request);
extern void external_begin_with(Sort *sort, const GpuSortEngineOps *ops, GpuSortEngine *engine,
								GpuSortRequest request);
extern bool external_try_begin(Sort *sort, GpuSortEngine *engine);
extern int give_space(Sort *sort, uint64_t lacking);
extern bool put_chunk(Sort *sort, uint32_t rows, uint32_t bytes);
extern const char *put_rows(Sort *sort, const Rows *rows, uint64_t end);
extern const char *sort_rows(Sort *sort, const Rows *rows);
extern const char *emit_chunk(Sort *sort, const Rows *rows, uint64_t *place, uint64_t end);
extern const char *read_rows(Sort *sort, const Rows *rows, uint64_t first, uint64_t end);
extern void external_end(Sort *sort);

/* external_pick.c */
extern void test_first_rows(void);

/* external_cut.c */
extern void test_shared(Keys keys, uint32_t words, uint32_t bits, uint32_t most, uint32_t readers, uint64_t memory);
extern void test_all_shared(void);

/* external_memory.c */
extern void test_runs_in_memory(void);
extern void test_all_scarce_memory(void);

/* external_faults.c */
extern void test_cancel(void);
extern void test_damages(void);
extern void test_bad_space(void);
extern void test_overlapping_rows(void);
extern void test_too_little_memory(void);

#endif /* GPUSORT_EXTERNAL_CASE_H */
