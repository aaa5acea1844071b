/*-------------------------------------------------------------------------
 *
 * judge.h
 *	  Who says what the right order is where there are too many rows for one host
 *	  thread: CUB on a GPU.  Where CUDA is emulated, std::stable_sort.
 *
 * All pointers are to device memory.  The functions wait for the device.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_JUDGE_H
#define GPUSORT_JUDGE_H

#include <cuda_runtime.h>
#include <stdint.h>

/* ids[i] = the row that is i-th by the low `bits` bits of the keys; rows that tie by number. */
extern cudaError_t judge_order_32(const uint32_t *keys, uint32_t rows, int bits, uint32_t *ids);

/* *differences = how many of the words differ. */
extern cudaError_t judge_compare(const uint32_t *a, const uint32_t *b, uint64_t words, uint64_t *differences);

#endif /* GPUSORT_JUDGE_H */
