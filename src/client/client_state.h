/*-------------------------------------------------------------------------
 *
 * client_state.h
 *	  What a client of the service consists of; for client.c and client_output.c alone.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_CLIENT_STATE_H
#define GPUSORT_CLIENT_STATE_H

#include "compat.h"

#include <math.h>

#include "client/connection.h"
#include "client/failure.h"
#include "client/space.h"
#include "service/protocol.h"

/* A chunk, and the number of rows that it may be filled with. */
typedef struct Grant
{
	uint32 chunk;
	uint32 rows_max;
} Grant;

/* Rows of a shared sort, by their numbers. */
typedef struct RowInterval
{
	uint64 first;
	uint64 end; /* the row after the last */
} RowInterval;

struct GpuSortClient
{
	GpuSortConnection connection;
	GpuSortEngineKind engine;
	char device[GPUSORT_NAME_BYTES];
	bool ecc;
	uint64 token;
	double queue_ms;
	MemoryContextCallback on_reset;

	/* Chunks granted and not put yet, oldest first. */
	Grant granted[GPUSORT_JOB_CHUNKS_MAX];
	int ngranted;
	uint32 current; /* the chunk that get_chunk returned */
	bool full;
	GpuSortFailure full_reason;
	GpuSortSpace space;

	/*
	 * What DATA are the next rows: how often the rows were rewound; of a shared sort the number of the
	 * current interval, the first one asked for that is not over.
	 */
	uint32 epoch;
	uint64 next_row; /* the number of the row that comes next */

	bool shared;
	bool void_grants;                         /* granted chunks may be invalid after another's SORT */
	bool in_runs;                             /* they are read back, sorted and merged as they come, which may take long */
	uint64 sorted_rows;                       /* that can be read, after sort */
	RowInterval intervals[GPUSORT_READS_MAX]; /* asked for and not over, oldest first */
	int nintervals;

	/* DATA of intervals behind the current one, in the order in which they came; their chunks are ours */
	GpuSortMessage early[GPUSORT_JOB_CHUNKS_MAX];
	int nearly;
};

/* Returns true if ms are milliseconds that something may have taken. */
static inline bool
gpusort_is_duration(double ms)
{
	return isfinite(ms) && ms >= 0;
}

#endif /* GPUSORT_CLIENT_STATE_H */
