/*-------------------------------------------------------------------------
 *
 * worker.h
 *	  What the processes that build an index share, and what each of them does.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_WORKER_H
#define GPUSORT_WORKER_H

#include "compat.h"

#include "index/build_choice.h"
#include "index/heap_source.h"
#include "pages/range_pages.h"
#include "nodes/execnodes.h"
#include "parallel/sort_set.h"
#include "port/atomics.h"
#include "storage/sharedfileset.h"

/* What a process has found in its parts of the heap. */
typedef struct GpuSortBuildFigures
{
	double heap_tuples;
	double tuples;
	bool broken_chains; /* as in IndexInfo */
} GpuSortBuildFigures;

/*
 * In dynamic shared memory, but where there are no workers.  The leader writes it before workers start; then each
 * process writes its own figures, when it has put its rows, and adds what it has loaded.
 */
typedef struct GpuSortBuildShared
{
	GpuSortClaims claims;
	Oid heap;
	Oid index;
	double rows;             /* estimated */
	int width;               /* estimated bytes */
	bool unique;             /* as the leader is to build it */
	bool concurrent;         /* the table changes meanwhile */
	int workers;             /* that there may be */
	SharedFileSet files;     /* pivots */
	pg_atomic_uint64 loaded; /* rows */
	GpuSortHeapShare share;
	GpuSortRangePlaces places;
	GpuSortBuildFigures figures[FLEXIBLE_ARRAY_MEMBER]; /* the leader's, then by ParallelWorkerNumber */
} GpuSortBuildShared;

/* A process's part of a build. */
typedef struct GpuSortBuild
{
	Relation heap;
	Relation index;
	IndexInfo *info;
	GpuSortIndexOrder order;
	GpuSortBuildShared *shared;
	GpuSortIndexRows *rows;
	GpuSortHeapSource source;
	GpuSortState *sort;
	GpuSortParallelSort *parallel;
	GpuSortSortSet set;
} GpuSortBuild;

extern void gpusort_build_create_sort(GpuSortBuild *build, bool progress);
extern void gpusort_build_note_figures(GpuSortBuild *build);

#endif /* GPUSORT_WORKER_H */
