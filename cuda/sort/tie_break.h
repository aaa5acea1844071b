/*-------------------------------------------------------------------------
 *
 * tie_break.h
 *	  Rows that tie on their partial keys, put in order by the bits after them.
 *	  A step of the device sort (device_sort.h); not for others.
 *
 * In its service: tied_runs.cu finds the runs of rows that tie and orders the shorter ones,
 * runs_in_order.cu tells which of the longer ones are in order already.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_TIE_BREAK_H
#define GPUSORT_TIE_BREAK_H

#include <cuda_runtime.h>

#include "sort/device_sort.h"

/* Bytes of temp for gpusort_break_ties; 0 if keys of so many bits are decided by their partial keys. */
extern cudaError_t gpusort_break_ties_bytes(uint32_t rows, uint32_t packed_bits, size_t *temp_bytes);

/* Partial keys from first on, so many, that rows share only if their whole keys are equal. */
typedef struct GpuSortDecided
{
	uint32_t first;
	uint32_t count;
} GpuSortDecided;

/*
 * Rows in the order of 32-bit keys, on which some may tie: ids[0] to ids[rows - 1] are row
 * numbers, keys[] what they are in order of.  Rows with equal keys are known to have the first
 * `from` bits of the packed key in common, and need not be looked at where keys are decided.
 */
typedef struct GpuSortTiedRows
{
	const uint32_t *keys;
	uint32_t *ids;
	uint32_t rows;
	uint32_t from;
	GpuSortDecided decided;
} GpuSortTiedRows;

/*
 * Puts the ids of each run of equal keys in the order of their rows' whole keys, and of
 * ids as it is among rows whose whole keys are equal.  Keys are partial keys of all rows, or of
 * those that a select has kept.
 */
extern int gpusort_break_ties(const GpuSortDeviceSort *sort, const GpuSortTiedRows *tied, void *temp,
							  size_t temp_bytes, cudaStream_t stream);

#endif /* GPUSORT_TIE_BREAK_H */
