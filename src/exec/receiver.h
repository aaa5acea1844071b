/*-------------------------------------------------------------------------
 *
 * receiver.h
 *	  A receiver that stands before PostgreSQL's, for rows of a GpuSortExchange.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_RECEIVER_H
#define GPUSORT_RECEIVER_H

#include "compat.h"

#include "executor/execdesc.h"
#include "tcop/dest.h"

/* The start of such a receiver. */
typedef struct GpuSortReceiver
{
	DestReceiver pub;       /* must be first field */
	DestReceiver *receiver; /* PostgreSQL's */
	EState *estate;
	PlanState *exchange;
} GpuSortReceiver;

extern void *gpusort_receiver_create(QueryDesc *query, Size bytes, bool (*receive)(TupleTableSlot *, DestReceiver *));

#endif /* GPUSORT_RECEIVER_H */
