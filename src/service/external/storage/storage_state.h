/*-------------------------------------------------------------------------
 *
 * storage_state.h
 *	  What a storage is made of; for its own files only.
 *
 *	storage_space.c		where runs go: files' space and memory; begin and end
 *	storage_write.c		buffers, and the threads that write them
 *	storage_read.c		reading
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_EXTERNAL_STORAGE_STATE_H
#define GPUSORT_EXTERNAL_STORAGE_STATE_H

#include <pthread.h>

#include "service/external/storage/chunk_buffer.h"
#include "service/external/storage/file_space.h"
#include "service/external/storage/storage.h"

/* Threads that write, at most, and where runs are in files alone; a buffer is filled and one waits meanwhile. */
#define GPUSORT_WRITERS_MAX       8
#define GPUSORT_FILE_WRITERS_MAX  4
#define GPUSORT_WRITE_BUFFERS_MAX (GPUSORT_WRITERS_MAX + 2)

/* Memory of a run. */
typedef struct GpuSortRunMemory
{
	char *start;
	uint64_t bytes; /* whole pages */
} GpuSortRunMemory;

/* A buffer to be written. */
typedef struct GpuSortWrite
{
	char *buffer;
	GpuSortRunPart *part;
} GpuSortWrite;

/* Memory of a buffer's size that is not in use; in its first bytes. */
typedef struct GpuSortSpare
{
	struct GpuSortSpare *next;
} GpuSortSpare;

struct GpuSortStorage
{
	GpuSortHostMemory *memory; /* NULL: files alone */
	int cpus;                  /* that the process may use */
	const int *cancelled;
	uint32_t *steps;
	const GpuSortEngineHandle *handle; /* that fills the buffers, or NULL */

	/* of the sort's thread */
	GpuSortRunMemory *runs; /* in memory */
	uint32_t nruns;
	bool has_run; /* the last of runs is for the run that is written now */
	uint64_t charged;
	GpuSortChunkBuffer all_buffers[GPUSORT_WRITE_BUFFERS_MAX];
	uint32_t nbuffers;
	bool started; /* the writers, as far as there are any */
	pthread_t writers[GPUSORT_WRITERS_MAX];
	uint32_t nwriters;

	/* the rest is under the lock */
	pthread_mutex_t lock;
	pthread_cond_t arrived; /* something to write, or closing */
	pthread_cond_t written; /* a buffer became free */
	GpuSortFileSpace space;
	char *run_next; /* in memory, if the run that is written now is there */
	char *run_end;
	GpuSortWrite queue[GPUSORT_WRITE_BUFFERS_MAX];
	uint32_t first; /* of the queue */
	uint32_t waiting;
	uint32_t writing;
	bool closing;
	bool failed;
	GpuSortError error; /* the first */
	GpuSortCompression compression;
	GpuSortStored stored;
	GpuSortSpare *buffers; /* that can be filled */
	GpuSortSpare *scratch; /* for compressed blocks */
};

extern char *gpusort_storage_get_scratch(GpuSortStorage *storage);
extern void gpusort_storage_put_scratch(GpuSortStorage *storage, char *scratch);
extern void gpusort_storage_stop_writers(GpuSortStorage *storage);

#endif /* GPUSORT_EXTERNAL_STORAGE_STATE_H */
