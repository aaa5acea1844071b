/*-------------------------------------------------------------------------
 *
 * file_space.h
 *	  Space in temporary files: what was given, and what of it is used; writing and reading them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_EXTERNAL_FILE_SPACE_H
#define GPUSORT_EXTERNAL_FILE_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "service/protocol.h"

/* The most bytes of a piece of space that may be wasted because a larger block did not fit. */
#define GPUSORT_FILE_SLACK ((uint64_t) GPUSORT_CHUNK_BYTES)

/* An owner's file. */
typedef struct GpuSortSpaceFile
{
	uint64_t owner;
	int descriptor;    /* belongs to the space */
	uint64_t end;      /* end of the space that was given */
	uint64_t used_end; /* end of the space that was taken */
} GpuSortSpaceFile;

/* A free piece of a file. */
typedef struct GpuSortFreeSpace
{
	uint32_t file;
	uint64_t start;
	uint64_t end;
} GpuSortFreeSpace;

/* All zero to begin with; under its owner's lock. */
typedef struct GpuSortFileSpace
{
	GpuSortSpaceFile *files;
	uint32_t nfiles;
	GpuSortFreeSpace *free;
	uint32_t nfree;
	uint32_t turn; /* the file to take from next */
} GpuSortFileSpace;

extern int gpusort_file_space_add(GpuSortFileSpace *space, uint64_t owner, int descriptor, uint64_t start,
								  uint64_t bytes, GpuSortError *error);
extern uint64_t gpusort_file_space_left(const GpuSortFileSpace *space);
extern bool gpusort_file_space_take(GpuSortFileSpace *space, uint64_t bytes, uint32_t *file, uint64_t *place);
extern void gpusort_file_space_trim(GpuSortFileSpace *space);
extern void gpusort_file_space_close(GpuSortFileSpace *space);

extern int gpusort_file_error(GpuSortError *error, int system_error, const char *what);
extern int gpusort_file_write(int descriptor, const char *from, size_t bytes, uint64_t place);
extern int gpusort_file_read(int descriptor, char *to, size_t bytes, uint64_t place, bool *short_read);

#endif /* GPUSORT_EXTERNAL_FILE_SPACE_H */
