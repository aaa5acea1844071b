/*-------------------------------------------------------------------------
 *
 * ahead.h
 *	  Rows of a cursor that all processes form before the client fetches them.
 *
 * PostgreSQL has no parallel worker for a cursor, and there may be none between two FETCHes.  So within one FETCH of a
 * client that has fetched many rows workers are started, form as many rows as it has fetched so far, and end.  The
 * FETCHes that follow take bytes.
 *
 * Who else reads from the cursor, or in another format, gets the rows out of the same memory.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_AHEAD_H
#define GPUSORT_AHEAD_H

#include "compat.h"

#include "executor/execdesc.h"
#include "exec/scan_state.h"
#include "lib/stringinfo.h"

extern uint64 gpusort_ahead_take(QueryDesc *query, int16 *formats, uint64 count, Size most, StringInfo bytes);
extern void gpusort_ahead_note(QueryDesc *query, uint64 rows, Size bytes, uint64 taken, double ms);
extern void gpusort_ahead_drop(GpuSortScanState *state);

#endif /* GPUSORT_AHEAD_H */
