/*-------------------------------------------------------------------------
 *
 * fault_spoil.h
 *	  What is wrong with a message of a fault point, and with the chunk that comes with
 *	  it (fault_spoil.c).
 *
 * There is a function for each point of GPUSORT_FAULTS_SENT, of its name.  They are of
 * the main thread, which sends messages.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_FAULT_SPOIL_H
#define GPUSORT_FAULT_SPOIL_H

#include "service/fault.h"
#include "service/session/session_state.h"

/* A message on its way to a client, to be spoilt. */
typedef struct Answer
{
	GpuSortSession *session;
	GpuSortMessage message;
	size_t bytes;          /* of it, that are sent */
	int times;             /* it is sent */
	unsigned seed;         /* decides where there is a choice */
	uint32_t chunk_before; /* of the DATA that was sent last */
} Answer;

/* Spoils an answer; false if this one does not lend itself to it. */
typedef bool (*Spoil)(Answer *answer);

#define GPUSORT_FAULT_DECLARE(name, where, text) extern bool name(Answer *answer);
GPUSORT_FAULTS_SENT(GPUSORT_FAULT_DECLARE)

#endif /* GPUSORT_FAULT_SPOIL_H */
