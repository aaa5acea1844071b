/*-------------------------------------------------------------------------
 *
 * emulate.h
 *	  What the files of the emulation share; others include cuda_runtime.h.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_EMULATE_H
#define GPUSORT_EMULATE_H

#include <atomic>

#include "cuda_runtime.h"

/* A call has failed; every later one does, too. */
extern std::atomic<bool> emulate_spoilt;

/* Counts a call; returns true if it is the one to fail. */
extern bool emulate_call_fails();

/* The status of a call that can fail and does nothing else. */
extern cudaError_t emulate_plain_call();

/* Bytes of dynamic shared memory that a block may have. */
extern size_t emulate_shared_most();

#endif /* GPUSORT_EMULATE_H */
