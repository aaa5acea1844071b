/*-------------------------------------------------------------------------
 *
 * engine_test.h
 *	  What the parts of engine_test share: engine_test.c runs them, engine_order.c,
 *	  engine_failure.c and engine_share.c are what it runs.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ENGINE_TEST_H
#define GPUSORT_ENGINE_TEST_H

#include "sort_case.h"

/* Tests on several threads have so many, each with two chunks of the pool. */
#define ENGINE_TEST_THREADS 8

typedef struct EngineTest
{
	const GpuSortEngineOps *ops;
	GpuSortEngine *engine; /* the one that is open */
	char *pool;            /* two chunks for each thread */
	uint64_t seed;         /* the generator's state */
	int patience_ms;
	uint64_t most_rows;       /* no case has more */
	uint32_t most_chunk_rows; /* no chunk has more, unless its case says; 0: as fit */
} EngineTest;

extern EngineTest test;

/* Prints a point; failure is read if it did not pass. */
extern void test_report(bool passed, const char *name, const CaseFailure *failure);

/* Runs a case and reports it, within what most_rows and most_chunk_rows say, or as it is. */
extern void test_case(const char *name, CaseSpec spec);
extern void test_whole_case(const char *name, CaseSpec spec);

/* Reports whether no device has a sort or memory in use; prints what devices there are. */
extern void test_idle(const char *name);

/* engine_order.c: rows of many kinds come out in order. */

/* Shapes and distributions that are hard in some way; the largest of `large` rows. */
extern void test_shapes(uint64_t large);

/* The first rows only; where rows may tie, up to the end of a run. */
extern void test_limits(void);

/* The first rows of each run only, with their peers, and counts. */
extern void test_runs(void);

/* So many cases with everything random. */
extern void test_random(int rounds);

/* Several sorts at once. */
extern void test_threads(void);

/* engine_failure.c: what is wrong or too much is told, and all is given back. */

/* Bad chunks, each between good ones: put or sort says so. */
extern void test_damage(void);

/* Whatever a sort is doing, it stops soon, with an error. */
extern void test_cancel(void);

/* With an engine of its own, on this device alone, that may use little memory. */
extern void test_memory(GpuSortEngineConfig config, uint32_t device);

/* engine_share.c: sorts that want more than there is, with an engine of its own on this device; cuda only. */
extern void test_share(GpuSortEngineConfig config, uint32_t device);

/* engine_share.c: device memory that sorts no longer need goes back; only with emulated CUDA. */
extern void test_age(GpuSortEngineConfig config, const char *library);

/* Whichever call of CUDA fails, the sort fails with its error, and all is given back. */
extern void test_faults(GpuSortEngineConfig config, void (*emulate_fail)(long call));

/*
 * With an engine of its own, on all devices, that may use so little on each that a sort takes
 * several; only where the engine has one sort use several.
 */
extern void test_several(GpuSortEngineConfig config);

#endif /* GPUSORT_ENGINE_TEST_H */
