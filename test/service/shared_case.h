/*-------------------------------------------------------------------------
 *
 * shared_case.h
 *	  What the tests of shared sorts share: a service with a small pool, a sort whose rows
 *	  several processes read, its readers, and its tests by file.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SHARED_CASE_H
#define GPUSORT_SHARED_CASE_H

#include "testlib.h"

/* The pool is as small as makes what is lost show. */
#define POOL_CHUNKS 16
#define MOST        (POOL_CHUNKS / GPUSORT_JOB_CHUNKS_MIN) /* clients with chunks */
#define READERS     (MOST - 2)                             /* of one sort: an eighth is left for others */

static const GpuSortMessage nothing = {.magic = 0};

extern Service service;
extern Rows some_rows;                              /* 100,000 of a random key */
extern uint64_t first_rows[GPUSORT_RANGES_MAX + 1]; /* of the ranges that a sort was last cut into */

extern uint64_t sort_shared(Client *owner, const Rows *rows);
extern GpuSortMessage join(Client *reader, uint64_t token);
extern void must_join(Client *reader, uint64_t token);
extern void free_chunk(Client *client, uint32_t chunk);
extern uint32_t ask_rows(Client *client, uint64_t first, uint64_t end);
extern bool send_cut(Client *owner, uint32_t bits, uint32_t most, uint64_t like);
extern uint32_t cut(Client *owner, const Rows *rows, uint32_t bits, uint32_t most);
extern bool fails(Client *client);

/* shared_misbehaviour.c */
extern void test_misbehaviour(void);

/* shared_ends.c */
extern void test_readers_that_go(void);
extern void test_owner_that_goes(bool shut_out);
extern void test_sorter(void);
extern void test_sorters_that_fail(void);
extern void test_exhausted_pool(void);
extern void test_drain(const char *const *options);
extern void test_failing_device(void);

#endif /* GPUSORT_SHARED_CASE_H */
