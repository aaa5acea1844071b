/*-------------------------------------------------------------------------
 *
 * participants.h
 *	  What each participant of a parallel sort does until ranges of its rows can be read.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PARTICIPANTS_H
#define GPUSORT_PARTICIPANTS_H

#include "compat.h"

#include "parallel/claims.h"
#include "parallel/sort_set.h"

/* One participant.  The caller owns it and fills it in. */
typedef struct GpuSortParticipant
{
	GpuSortSortSet *set;
	GpuSortClaims *claims; /* in shared memory */
	int processes;         /* number of processes that may read ranges, this one included */

	/*
	 * Finds out what ranges come to, before they are read; NULL: they come to nothing.  ordered: this process has cut
	 * the rows into so many ranges, and lets the others take part if that is needed; else it takes part.  false,
	 * with a reason, if rows are lost.
	 */
	bool (*total)(void *arg, bool ordered, uint32 ranges, GpuSortFailure *failure);
	void *arg;
} GpuSortParticipant;

extern void gpusort_participant_ingest(const GpuSortParticipant *own);
extern bool gpusort_participant_await_ranges(const GpuSortParticipant *own);
extern bool gpusort_participant_open(const GpuSortParticipant *own);

#endif /* GPUSORT_PARTICIPANTS_H */
