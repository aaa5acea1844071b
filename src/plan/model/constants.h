/*-------------------------------------------------------------------------
 *
 * constants.h
 *	  What the model of time rests on: one table, in nanoseconds.
 *
 * constants.c has the table, with where each value comes from.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_CONSTANTS_H
#define GPUSORT_CONSTANTS_H

#include "compat.h"

/* A place in the table.  What is of rows, groups or bytes is for each of them, in one process. */
typedef enum GpuSortConstant
{
	/* GpuSort, over its input */
	GPUSORT_TIME_SETUP,      /* before the first row: the service's answer, the first chunk */
	GPUSORT_TIME_FIRST_USE,  /* a connection's first sort maps the staging pool */
	GPUSORT_TIME_INGEST_ROW, /* in each process that has a part of the rows */
	GPUSORT_TIME_ORDER_ROW,  /* all wait for it */
	GPUSORT_TIME_EMIT_ROW,   /* in the process that reads it */
	GPUSORT_TIME_VERIFY_ROW, /* compared with the one before it, where a collation of the C library's is verified */
	GPUSORT_TIME_ROW_BYTE,   /* of a row in a chunk, in all of these by their parts */
	GPUSORT_TIME_MEMORY_RUN, /* a row, and another for each byte of it: written to a run in host memory, and read */
	GPUSORT_TIME_DISK_PAGE,  /* of a run in a file: written, and read */
	GPUSORT_TIME_SUMMARY,    /* of a range of blocks, read from a BRIN index */

	/* PostgreSQL's sort */
	GPUSORT_TIME_COMPARISON, /* of two rows by a number, where all rows are sorted: rows * log2(rows) of them */
	GPUSORT_TIME_STRING,     /* a string takes so many times as long: "C" */
	GPUSORT_TIME_STRING_ICU,
	GPUSORT_TIME_STRING_LIBC,
	GPUSORT_TIME_PARTS,         /* likewise a value that is made of others */
	GPUSORT_TIME_ABBREVIATION,  /* likewise one that its operator class abbreviates */
	GPUSORT_TIME_IN_ORDER,      /* rows that are in order already: a part */
	GPUSORT_TIME_SORT_PAGE,     /* of a run, written or read */
	GPUSORT_TIME_HEAP_ROW,      /* compared with the last of the first rows, of which there is a heap */
	GPUSORT_TIME_HEAP_LEVEL,    /* that a row sinks in the heap */
	GPUSORT_TIME_SORT_EMIT_ROW, /* out of PostgreSQL's sort */

	/* parallel plans */
	GPUSORT_TIME_GATHER,       /* started: the segment, the plan in it */
	GPUSORT_TIME_WORKER,       /* started */
	GPUSORT_TIME_GATHER_ROW,   /* through a worker's queue to the leader */
	GPUSORT_TIME_MERGE_ROW,    /* the same, by Gather Merge */
	GPUSORT_TIME_RANGES,       /* a process that reads ranges, before its first row and after its last */
	GPUSORT_TIME_EXCHANGE_ROW, /* of GATHER_ROW the leader's part, where rows come by range; the rest is shared */

	/* rows for a client */
	GPUSORT_TIME_OUTPUT_ROW,   /* taken apart, and put into a message */
	GPUSORT_TIME_OUTPUT_VALUE, /* in it, of most types (output_time.c) */

	/* rows and groups by hashing */
	GPUSORT_TIME_HASH_ROW,
	GPUSORT_TIME_HASH_GROUP,
	GPUSORT_TIME_HASH_BYTE, /* of a group in the table, or of a row that is written and read */
	GPUSORT_TIME_HASH_SPILL_ROW,
	GPUSORT_TIME_BUILD_ROW,
	GPUSORT_TIME_BUILD_BYTE,
	GPUSORT_TIME_PROBE_ROW,
	GPUSORT_TIME_CACHE_DOUBLING, /* a look-up in a table, for each time that it is twice CACHE_BYTES */
	GPUSORT_TIME_CACHE_MISS,     /* at most */

	/* over rows in order, or any rows */
	GPUSORT_TIME_TRANSITION,       /* of an aggregate whose state is a value; for a group the same once more */
	GPUSORT_TIME_TRANSITION_STATE, /* or has memory of its own; for a group twice: it is made, and finished */
	GPUSORT_TIME_TRANSITION_SORT,  /* with DISTINCT or ORDER BY: the rows of each group are sorted */
	GPUSORT_TIME_SORTED_ROW,       /* grouped */
	GPUSORT_TIME_SORTED_GROUP,
	GPUSORT_TIME_UNIQUE_ROW,
	GPUSORT_TIME_MERGE_JOIN_ROW, /* of either side, there or of INTERSECT and EXCEPT */
	GPUSORT_TIME_JOINED_ROW,
	GPUSORT_TIME_WINDOW_ROW,
	GPUSORT_TIME_NUMBERED_ROW, /* by row_number() or rank(), over a GpuSort */
	GPUSORT_TIME_RUNNING_ROW,  /* by other functions that follow from the rows before, beside their transitions */
	GPUSORT_TIME_MERGED_ROW,   /* by Merge Append */

	/* rows of shards */
	GPUSORT_TIME_FETCHED_ROW,
	GPUSORT_TIME_FETCHED_BYTE,
	GPUSORT_TIME_SENT_ROW,
	GPUSORT_TIME_SENT_SORTED_ROW,
	GPUSORT_TIME_CONNECTION, /* to a shard, until it reads */

	/* builds of btrees */
	GPUSORT_TIME_FORM_ROW,        /* scanned, and made a tuple of the index */
	GPUSORT_TIME_LOAD_ROW,        /* by PostgreSQL: put on its page, and that written */
	GPUSORT_TIME_LOAD_SORTED_ROW, /* the same of tuples that lie in order */

	/* tables that are clustered */
	GPUSORT_TIME_REWRITE_ROW,        /* by PostgreSQL: read, formed anew, and written, in one process */
	GPUSORT_TIME_REWRITE_BY_INDEX,   /* the same by an index, in its order: more than that */
	GPUSORT_TIME_REWRITE_SORTED_ROW, /* by ours: the same, beside the sort */

	/* the least gain, since the model fails at small inputs: by a sort for a sort, by another place */
	GPUSORT_TIME_SORT_GAIN,
	GPUSORT_TIME_TOP_GAIN,
	GPUSORT_TIME_GAIN,

	/* all else: a unit of PostgreSQL's cost */
	GPUSORT_TIME_COST,

	GPUSORT_TIME_Count
} GpuSortConstant;

extern double gpusort_constant(GpuSortConstant constant, bool cuda);

#endif /* GPUSORT_CONSTANTS_H */
