/*-------------------------------------------------------------------------
 *
 * tuple_source.h
 *	  The tuples of a table that is to be rewritten, as the source of a sort.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_TUPLE_SOURCE_H
#define GPUSORT_TUPLE_SOURCE_H

#include "compat.h"

#include "cluster/copy.h"
#include "index/heap_source.h"
#include "port/atomics.h"
#include "sort/source.h"
#include "storage/bufmgr.h"

/* Which tuples are whose, and what was found; in shared memory, where several processes read them. */
typedef struct GpuSortTupleShare
{
	GpuSortHeapShare heap;
	pg_atomic_uint64 tuples; /* that were given out */
	pg_atomic_uint64 dead;
} GpuSortTupleShare;

/* Ends the work of all, as there is a tuple that PostgreSQL must copy. */
typedef void (*GpuSortTupleUnfit)(void *arg);

/* For tuple_source.c alone. */
typedef struct GpuSortTupleSource
{
	GpuSortSource source; /* must be first field */
	GpuSortClusterTask task;
	GpuSortTupleShare *share;
	GpuSortTupleUnfit unfit;
	void *arg;
	BufferAccessStrategy strategy;
	bool may_copy; /* a tuple with all columns has the form that it would be given */

	/* columns to sort by, of the table */
	AttrNumber *attnos;
	int nattnos;
	int nvalues; /* of a row: up to the last of them */

	BlockNumber next_block; /* the next that this process has claimed */
	BlockNumber end_block;  /* behind the last */

	/* the current page's rows */
	MemoryContext context; /* of those that were formed anew */
	char *copied;          /* the others */
	char **rows;
	int count;
	int next; /* the first that has not been given out */

	/* the current batch */
	int room;
	Datum *values;
	bool *nulls;

	/* of a tuple that is formed anew */
	Datum *all_values;
	bool *all_nulls;
} GpuSortTupleSource;

extern void gpusort_tuple_share_init(GpuSortTupleShare *share, Relation table);
extern void gpusort_tuple_source_init(GpuSortTupleSource *scan, const GpuSortClusterTask *task,
									  GpuSortTupleShare *share, const GpuSortColumn *columns, int count);

#endif /* GPUSORT_TUPLE_SOURCE_H */
