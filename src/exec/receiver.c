/*-------------------------------------------------------------------------
 *
 * receiver.c
 *	  A receiver that stands before PostgreSQL's, for rows of a GpuSortExchange.
 *
 * PostgreSQL's receiver starts up and shuts down as ever, and belongs to who made it.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/receiver.h"

static void
start_up(DestReceiver *self, int operation, TupleDesc desc)
{
	GpuSortReceiver *before = (GpuSortReceiver *) self;

	before->receiver->rStartup(before->receiver, operation, desc);
}

static void
shut_down(DestReceiver *self)
{
	GpuSortReceiver *before = (GpuSortReceiver *) self;

	before->receiver->rShutdown(before->receiver);
}

static void
destroy(DestReceiver *self)
{
}

/*
 * Returns a receiver of so many bytes, which begins with a GpuSortReceiver, for a query that has been started and has a
 * GpuSortExchange on top.  The rest of it is zero.
 */
void *
gpusort_receiver_create(QueryDesc *query, Size bytes, bool (*receive)(TupleTableSlot *, DestReceiver *))
{
	GpuSortReceiver *before = palloc0(bytes);

	before->pub.receiveSlot = receive;
	before->pub.rStartup = start_up;
	before->pub.rShutdown = shut_down;
	before->pub.rDestroy = destroy;
	before->pub.mydest = query->dest->mydest;
	before->receiver = query->dest;
	before->estate = query->estate;
	before->exchange = query->planstate;
	return before;
}
