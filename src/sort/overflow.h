/*-------------------------------------------------------------------------
 *
 * overflow.h
 *	  Rows longer than a quarter of a chunk, in temporary files.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_OVERFLOW_H
#define GPUSORT_OVERFLOW_H

#include "compat.h"

#include "storage/buffile.h"
#include "storage/sharedfileset.h"

/* The length of what travels in the place of a long row. */
#define GPUSORT_OVERFLOW_ROW_BYTES 32

/* The long rows of one sort. */
typedef struct GpuSortOverflow
{
	BufFile *file; /* this process's file, NULL until there is a row */

	/* if several processes have files: */
	SharedFileSet *fileset; /* NULL if there is no other process */
	int process;
	MemoryContext context;
	BufFile **others; /* nothers files by process; NULL if not opened */
	int nothers;
} GpuSortOverflow;

extern void gpusort_overflow_share(GpuSortOverflow *overflow, SharedFileSet *fileset, int process);
extern Size gpusort_overflow_store(GpuSortOverflow *overflow, const char *row, char *instead);
extern void gpusort_overflow_export(GpuSortOverflow *overflow);
extern char *gpusort_overflow_fetch(GpuSortOverflow *overflow, const char *instead);
extern void gpusort_overflow_close(GpuSortOverflow *overflow);

#endif /* GPUSORT_OVERFLOW_H */
