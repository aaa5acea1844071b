/*-------------------------------------------------------------------------
 *
 * heap_source.h
 *	  The tuples of a heap that an index is built of, as the source of a sort.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_HEAP_SOURCE_H
#define GPUSORT_HEAP_SOURCE_H

#include "compat.h"

#include "nodes/execnodes.h"
#include "port/atomics.h"
#include "sort/index_rows.h"
#include "sort/source.h"

/* Which part of the heap belongs to which process; in shared memory if there are several. */
typedef struct GpuSortHeapShare
{
	pg_atomic_uint64 next; /* the first block that nobody has claimed */
	BlockNumber blocks;    /* of the heap */
} GpuSortHeapShare;

/* For heap_source.c alone, but for the totals. */
typedef struct GpuSortHeapSource
{
	GpuSortSource source; /* must be first field */
	Relation heap;
	Relation index;
	IndexInfo *info;
	GpuSortIndexRows *form;
	GpuSortHeapShare *share;
	bool progress; /* progress is reported */

	/* the current part of the heap */
	MemoryContext context; /* of its rows */
	char **rows;
	int count;
	int capacity;
	int next; /* the first that has not been given out */
	Size bytes;
	BlockNumber blocks; /* of the next part */
	bool counted;       /* this process has read one */

	/* the current batch */
	Datum *values;
	bool *nulls;

	/* totals */
	double heap_tuples; /* that are alive, in the parts that were read */
	double tuples;      /* of the index, that were given out */
} GpuSortHeapSource;

extern void gpusort_heap_share_init(GpuSortHeapShare *share, Relation heap);
extern void gpusort_heap_source_init(GpuSortHeapSource *scan, GpuSortIndexRows *form, IndexInfo *info,
									 GpuSortHeapShare *share, bool progress);

#endif /* GPUSORT_HEAP_SOURCE_H */
