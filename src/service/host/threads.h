/*-------------------------------------------------------------------------
 *
 * threads.h
 *	  Worker threads of the host engine, shared by all its sorts.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_HOST_THREADS_H
#define GPUSORT_HOST_THREADS_H

#include <stdint.h>

typedef struct GpuSortThreads GpuSortThreads;

/* Does task number "task" of what arg says. */
typedef void (*GpuSortTask)(void *arg, uint32_t task);

extern GpuSortThreads *gpusort_threads_create(int threads);
extern void gpusort_threads_destroy(GpuSortThreads *threads);
extern int gpusort_threads_count(GpuSortThreads *threads);
extern void gpusort_threads_run(GpuSortThreads *threads, uint32_t ntasks, GpuSortTask run, void *arg);

#endif /* GPUSORT_HOST_THREADS_H */
