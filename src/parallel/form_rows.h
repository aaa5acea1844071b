/*-------------------------------------------------------------------------
 *
 * form_rows.h
 *	  Rows that a leader gives out and all processes form, within one call.
 *
 * They lie in a segment of dynamic shared memory, which stays when workers have ended: rows in the order in which they
 * were put, in batches, and behind them the bytes that were formed of each batch.  An error while a row is formed is
 * none of the leader's: the batch has no bytes then, and its rows remain.
 *
 * Legal order of calls: create, if there is no segment of that size; begin, then if there are workers put for each row,
 * end.  Then rows and bytes of batches are there until the next begin.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_FORM_ROWS_H
#define GPUSORT_FORM_ROWS_H

#include "compat.h"

#include "access/htup_details.h"
#include "form/format.h"
#include "parallel/command_workers.h"
#include "port/atomics.h"
#include "storage/condition_variable.h"
#include "storage/dsm.h"

/* Rows that one process forms. */
typedef struct GpuSortRowBatch
{
	Size first; /* where in the segment the first row is */
	uint32 rows;
	bool formed; /* by whoever claimed it; for who has waited for that */
	Size bytes;  /* where in the segment what was formed is, and its length */
	Size length;
} GpuSortRowBatch;

/* A column, as processes must know it. */
typedef struct GpuSortRowColumn
{
	Oid type;
	int32 typmod;
} GpuSortRowColumn;

/* The start of the segment. */
typedef struct GpuSortFormedSegment
{
	int ncolumns;
	Size columns; /* where these are, and the format, the batches, and what bytes may fill */
	Size format;
	Size batches;
	Size room;
	Size end;
	pg_atomic_uint64 filled; /* up to where bytes have been put, or would have been */
	pg_atomic_uint32 ready;  /* number of batches that may be formed */
	pg_atomic_uint32 next;   /* the first that nobody has claimed */
	pg_atomic_uint32 ended;  /* 1: no more are to come */
	ConditionVariable changed;
} GpuSortFormedSegment;

/* The leader's side. */
typedef struct GpuSortFormRows
{
	dsm_segment *segment; /* NULL: none */
	GpuSortFormedSegment *shared;
	GpuSortRowBatch *batches;
	GpuSortCommandWorkers workers;
	Size at; /* where the next row goes, and up to where rows may */
	Size rows_end;
	uint32 count; /* batches with rows */
} GpuSortFormRows;

extern bool gpusort_form_rows_create(GpuSortFormRows *own, Size bytes);
extern void gpusort_form_rows_drop(GpuSortFormRows *own);
extern Size gpusort_form_rows_size(const GpuSortFormRows *own);
extern bool gpusort_form_rows_begin(GpuSortFormRows *own, const GpuSortFormat *format, TupleDesc desc, int workers,
									double row_share);
extern bool gpusort_form_rows_put(GpuSortFormRows *own, MinimalTuple row);
extern void gpusort_form_rows_end(GpuSortFormRows *own);

/* Returns how many bytes of rows have been put. */
static inline Size
gpusort_form_rows_bytes(const GpuSortFormRows *own)
{
	return own->at - own->batches[0].first;
}

/* Returns what is at a place of the segment. */
static inline char *
gpusort_form_rows_at(const GpuSortFormRows *own, Size place)
{
	return (char *) own->shared + place;
}

#endif /* GPUSORT_FORM_ROWS_H */
