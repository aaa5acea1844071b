/*-------------------------------------------------------------------------
 *
 * storage_case.h
 *	  What the tests of where runs are kept share: a storage and the runs that were written
 *	  to it, and its tests by file.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_STORAGE_CASE_H
#define GPUSORT_STORAGE_CASE_H

#include "service/external/storage/storage.h"
#include "testlib.h"

#define MIB         ((uint64_t) 1 << 20)
#define BLOCKS_MAX  4096
#define SPACE       (256 * MIB)
#define BUFFER_SIZE ((uint32_t) GPUSORT_CHUNK_BYTES)

/* What records are like. */
typedef enum Records
{
	RANDOM,     /* cannot be compressed */
	REPETITIVE, /* can */
	MIXED,      /* some blocks can */
} Records;

/* A storage and the runs that were written to it. */
typedef struct Case
{
	GpuSortStorage *storage;
	Records records;
	GpuSortRunBlock blocks[BLOCKS_MAX];
	uint32_t count;
	GpuSortRunPart parts[BLOCKS_MAX];
	uint32_t nparts;
	uint64_t bytes;
} Case;

/* For storages that nobody cancels */
extern const int never;

/* What went wrong last */
extern GpuSortError last_error;

extern int make_file(const char *directory);
extern Case *storage_begin(GpuSortHostMemory *memory, const int *cancelled, Records records, const char *directory);
extern void write_part(Case *run, char *buffer, GpuSortRunBlock *blocks, uint32_t count);
extern int write_run(Case *run, uint64_t bytes, uint32_t block_bytes);
extern const char *read_blocks(const Case *run, uint32_t first, uint32_t count, GpuSortError *failure);
extern const char *read_all(const Case *run);
extern void storage_end(Case *ended);

/* storage_faults.c */
extern void test_wrong_space(const char *directory);
extern void test_damage(const char *directory, GpuSortCompressionMode mode);
extern void test_write_errors(const char *directory);
extern void test_ends(const char *directory);

#endif /* GPUSORT_STORAGE_CASE_H */
