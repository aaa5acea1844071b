/*-------------------------------------------------------------------------
 *
 * late_rows.h
 *	  Rows of a FETCH that were formed before the server says what they are: they leave behind that.
 *
 * A FETCH reads all of its rows first, and PostgreSQL keeps them in a tuplestore meanwhile.  Here they wait as the
 * bytes that will be sent.  Then come, in the simple protocol, the message that describes the rows, then the rows of
 * the tuplestore, then the message that the command is complete, with the number of these.  What waits leaves behind
 * the first of these messages, or before another of them, and is added to the number.  All other messages pass.
 *
 * Legal order of calls: begin lends a buffer, into which rows are put; send_later takes it back once the FETCH has read
 * all; or drop, which whoever sees an error between them calls.  Errors after that drop what waits by themselves.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_LATE_ROWS_H
#define GPUSORT_LATE_ROWS_H

#include "compat.h"

#include "form/messages.h"

extern GpuSortCatch gpusort_late_rows_begin(void);
extern void gpusort_late_rows_send_later(const GpuSortCatch *rows, uint64 count);
extern void gpusort_late_rows_drop(void);

#endif /* GPUSORT_LATE_ROWS_H */
