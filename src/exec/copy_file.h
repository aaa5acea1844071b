/*-------------------------------------------------------------------------
 *
 * copy_file.h
 *	  The file, or program, that COPY TO writes.
 *
 * Legal order of calls: find, when COPY runs its query; then write.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_COPY_FILE_H
#define GPUSORT_COPY_FILE_H

#include "compat.h"

#include "executor/execdesc.h"
#include "nodes/parsenodes.h"
#include "tcop/dest.h"

/* The receiver of a COPY, alike in 15 to 19 (commands/copyto.c). */
typedef struct GpuSortCopyReceiver
{
	DestReceiver pub;
	struct CopyToStateData *state;
	uint64 processed;
} GpuSortCopyReceiver;

typedef struct GpuSortCopyFile
{
	DestReceiver former; /* has COPY form a row as a message, as if it were for a client; must be first field */
	GpuSortCopyReceiver *copy;
	FILE *stream;
} GpuSortCopyFile;

extern GpuSortCopyFile *gpusort_copy_file_find(const QueryDesc *query, const CopyStmt *copy);
extern void gpusort_copy_file_write(GpuSortCopyFile *file, const char *bytes, Size length);

#endif /* GPUSORT_COPY_FILE_H */
