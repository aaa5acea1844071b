/*-------------------------------------------------------------------------
 *
 * peers.h
 *	  Other processes that put rows into a sort whose rows one process reads: what the sort asks of whoever leads them.
 *
 * That is the GpuSortIngest node below a Gather (exec/ingest.c).  Its struct begins with a GpuSortPeers.  The methods
 * are called in the order in which they stand here, stop and reset at any time; all but reset after start only.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PEERS_H
#define GPUSORT_PEERS_H

#include "compat.h"

#include "client/failure.h"
#include "sort/writer.h"

struct GpuSortState;
typedef struct GpuSortPeers GpuSortPeers;

typedef struct GpuSortPeersMethods
{
	/*
	 * Rows go to the sort from now on, in this process by its writer.  common_later: its keys have no common
	 * prefixes yet, but are laid out for some, which anybody may choose.  The source is read after this.
	 */
	void (*start)(GpuSortPeers *peers, struct GpuSortState *sort, bool common_later);

	/* The source has ended, and with it what others put: adds that to *put. */
	void (*collect)(GpuSortPeers *peers, GpuSortPut *put);

	/* Returns true if others are there to verify the order of the rows with this process. */
	bool (*may_verify)(GpuSortPeers *peers);

	/*
	 * Has all verify the order; adds the pairs compared to *pairs.
	 * false, with a reason: rows are out of order, or lost.
	 */
	bool (*verify)(GpuSortPeers *peers, struct GpuSortState *sort, uint64 *pairs, GpuSortFailure *failure);

	/*
	 * Others are to end.  false, with a reason, if the keys of one
	 * of them may have been others than ours.  Errors: theirs.
	 */
	bool (*finish)(GpuSortPeers *peers, GpuSortFailure *failure);

	/* The sort takes no more rows: others, too, give theirs to the source. */
	void (*stop)(GpuSortPeers *peers);

	/* There is no sort any more. */
	void (*reset)(GpuSortPeers *peers);
} GpuSortPeersMethods;

struct GpuSortPeers
{
	const GpuSortPeersMethods *methods;
	int verifiers; /* processes that would verify the order, this one included; 0: this one alone */
};

#endif /* GPUSORT_PEERS_H */
