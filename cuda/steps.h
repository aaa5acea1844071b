/*-------------------------------------------------------------------------
 *
 * steps.h
 *	  The steps between the last chunk and rows in order.  Each starts its kernels
 *	  on the sort's compute stream and returns; sort.cu calls them in this order
 *	  and waits where a result is needed on the host.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_STEPS_H
#define GPUSORT_STEPS_H

#include <cuda_runtime.h>

#include "sort_state.h"

/*
 * compact.cu: refs, ids, and packed keys of 32 bits (plan->packed_bits up to 32) or
 * 64; for more than 64 bits no keys.
 */
extern int	gpusort_pack_rows(GpuSort *sort, const GpuSortPackPlan *plan, GpuSortError *error);

/* compact.cu: packed word number `index` of every row, in the order of ids[0]. */
extern int	gpusort_pack_word(GpuSort *sort, const GpuSortPackPlan *plan, uint32_t index, GpuSortError *error);

/*
 * radix_sort.cu: bytes of temporary storage for what follows with so many rows; 32
 * or 64 bits wide keys.
 */
extern cudaError_t gpusort_radix_temp_bytes(uint32_t rows, bool wide, size_t *bytes);

/*
 * radix_sort.cu: sorts (keys, ids) stably by the low `bits` bits, 1 to 32 or 64, of the
 * keys.  keys[0] and ids[0] are current before and after.
 */
extern cudaError_t gpusort_radix_sort(GpuSortWork *work, uint32_t rows, bool wide, int bits, cudaStream_t stream);

/* radix_sort.cu: ends[i] = words of the rows 0 to i of sorted_refs. */
extern cudaError_t gpusort_running_words(GpuSortWork *work, uint32_t rows, cudaStream_t stream);

/* order.cu: state->unordered, and equal. */
extern int	gpusort_check_order(GpuSort *sort, const GpuSortPackPlan *plan, GpuSortError *error);

/* order.cu: sorted_refs; state->bad_ids, id_sum and id_xor.  keys are gone after it. */
extern int	gpusort_order_refs(GpuSort *sort, GpuSortError *error);

/* tie_rows.cu: state->ties, and equal cleared where the row is not INEXACT.  Only with may_tie. */
extern int	gpusort_mark_ties(GpuSort *sort, GpuSortError *error);

/* tie_rows.cu: how many of state->ties there are. */
extern uint32_t gpusort_tie_blocks(uint32_t rows);

/* sort.cu, gather.cu: as GpuSortEngineOps says. */
extern int	gpusort_cuda_sort(GpuSort *sort, GpuSortSorted *sorted, GpuSortError *error);
extern int	gpusort_cuda_emit(GpuSort *sort, void *chunk, GpuSortEmitted *emitted, GpuSortError *error);
extern int	gpusort_cuda_rewind(GpuSort *sort, GpuSortError *error);

/* gather.cu: starts gathering the next rows into a staging buffer, if rows are left. */
extern int	gpusort_gather_ahead(GpuSort *sort, int buffer, GpuSortError *error);

#endif							/* GPUSORT_STEPS_H */
