/*-------------------------------------------------------------------------
 *
 * merge_runs.h
 *	  Two sorted runs of keys into one, on one device (merge_runs.cu).
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_MERGE_RUNS_H
#define GPUSORT_MERGE_RUNS_H

#include <cuda_runtime.h>
#include <stdint.h>

/* Bytes of temporary device memory for `count` keys in all. */
extern uint64_t gpusort_merge_temp_bytes(uint64_t count, int key_bytes);

/* keys[0 .. first_count) and keys[first_count .. count) are sorted; merged may not overlap them. */
extern cudaError_t gpusort_merge_runs(const void *keys, uint64_t first_count, uint64_t count, int key_bytes,
									  void *merged, void *temp, cudaStream_t stream);

#endif /* GPUSORT_MERGE_RUNS_H */
