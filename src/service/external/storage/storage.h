/*-------------------------------------------------------------------------
 *
 * storage.h
 *	  Where the runs of a sort are kept: blocks of records, in the host's memory or
 *	  in temporary files.
 *
 *	  create, set_*, (reserve, add_space*, (buffer, write)*, finish_run)*, finish, read*, destroy
 *
 * A run is reserved with the bytes of all its records, and goes wholly
 * to memory or wholly to files.  All is called from one thread, its sort's;
 * but read from any, also by several at once.  What was written can
 * be read after finish_run.  destroy is legal, and due, after any of them,
 * also while runs are being written; no read may be under way then.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_EXTERNAL_STORAGE_H
#define GPUSORT_EXTERNAL_STORAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "service/engine.h"
#include "service/external/storage/compression.h"
#include "service/machine/memory.h"
#include "service/protocol.h"

/* Of one sort; belongs to whoever created it. */
typedef struct GpuSortStorage GpuSortStorage;

/* A buffer is as large as a chunk; a block is at most this large, but for a single record that is larger. */
#define GPUSORT_BLOCK_BYTES ((uint32_t) 256 << 10)

/* Some records, as they are kept. */
typedef struct GpuSortRunBlock
{
	uint32_t bytes;    /* of the records */
	uint32_t rows;     /* for the owner */
	uint32_t stored;   /* bytes as it is stored */
	uint32_t checksum; /* of what is stored */
	uint32_t file;     /* GPUSORT_BLOCK_IN_MEMORY, or the number of a file */
	uint64_t place;    /* an address, or bytes from the start of the file */
} GpuSortRunBlock;

#define GPUSORT_BLOCK_IN_MEMORY UINT32_MAX

/* What a buffer has: blocks back to back.  The owner's, and stays where it is until finish_run has returned. */
typedef struct GpuSortRunPart
{
	GpuSortRunBlock *blocks; /* bytes and rows are set, the rest is filled by and by */
	uint32_t count;

	/*
	 * NULL: the blocks are there.  Else it makes them of the buffer, by the thread that writes it; fails with
	 * *error filled, as then the storage does.
	 */
	int (*cut)(struct GpuSortRunPart *part, const char *buffer, GpuSortError *error);
} GpuSortRunPart;

/* What is kept now, in bytes. */
typedef struct GpuSortStored
{
	uint64_t memory;
	uint64_t disk;
} GpuSortStored;

extern GpuSortStorage *gpusort_storage_create(GpuSortHostMemory *memory, int cpus, const int *cancelled,
											  uint32_t *steps, GpuSortError *error);
extern void gpusort_storage_destroy(GpuSortStorage *storage);

extern int gpusort_storage_add_space(GpuSortStorage *storage, uint64_t owner, int descriptor, uint64_t start,
									 uint64_t bytes, GpuSortError *error);
extern bool gpusort_storage_reserve(GpuSortStorage *storage, uint64_t bytes, uint64_t *lacking);

extern void gpusort_storage_set_engine(GpuSortStorage *storage, const GpuSortEngineHandle *handle);
extern void gpusort_storage_set_compression(GpuSortStorage *storage, GpuSortCompressionMode mode);

extern char *gpusort_storage_buffer(GpuSortStorage *storage, GpuSortError *error);
extern void gpusort_storage_write(GpuSortStorage *storage, char *buffer, GpuSortRunPart *part);
extern int gpusort_storage_finish_run(GpuSortStorage *storage, GpuSortError *error);
extern void gpusort_storage_finish(GpuSortStorage *storage, GpuSortStored *stored);

extern int gpusort_storage_read(GpuSortStorage *storage, const GpuSortRunBlock *blocks, uint32_t count, char *to,
								GpuSortError *error);

#endif /* GPUSORT_EXTERNAL_STORAGE_H */
