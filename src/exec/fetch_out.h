/*-------------------------------------------------------------------------
 *
 * fetch_out.h
 *	  Rows that a client gets by FETCH leave the server without a tuplestore.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_FETCH_OUT_H
#define GPUSORT_FETCH_OUT_H

#include "compat.h"

#include "executor/execdesc.h"
#include "tcop/dest.h"

extern DestReceiver *gpusort_fetch_out_begin(QueryDesc *query, ScanDirection direction, uint64 *count);
extern void gpusort_fetch_out_init(void);

#endif /* GPUSORT_FETCH_OUT_H */
