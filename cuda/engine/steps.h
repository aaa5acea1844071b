/*-------------------------------------------------------------------------
 *
 * steps.h
 *	  The steps between the last chunk and rows in order.  Each starts its kernels
 *	  on the shard's compute stream and returns; sort.cu calls them in this order
 *	  and waits where a result is needed on the host.  The shard's device is the calling
 *	  thread's.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_STEPS_H
#define GPUSORT_STEPS_H

#include <cuda_runtime.h>

#include "engine/sort_state.h"

/* pack.cu: refs of all rows in row order, and partial keys unless work->partial_keys is NULL. */
extern int gpusort_pack_shard(GpuSortShard *shard, const GpuSortPackPlan *plan, GpuSortError *error);

/* order.cu: state->unordered, up_to if not all rows are emitted, equal and same. */
extern int gpusort_check_order(GpuSortShard *shard, const GpuSortPackPlan *plan, GpuSortError *error);

/* order.cu: sorted_refs; state->bad_ids, id_sum and id_xor; tile_words.  Partial keys and temp are gone after it. */
extern int gpusort_order_refs(GpuSortShard *shard, GpuSortError *error);

/*
 * order.cu: state->equal_rows, how many of the shard's rows have the key of the last row that
 * `bound`, another shard, emits.
 */
extern int gpusort_count_equal(GpuSortShard *shard, const GpuSortShard *bound, GpuSortError *error);

/*
 * order.cu: state->unordered and equal of a shard's last row, for the next shard that emits
 * rows.  Both have sorted_refs, and the next shard's device is not working on them.
 */
extern int gpusort_check_boundary(GpuSortShard *shard, const GpuSortShard *next, GpuSortError *error);

/*
 * pick.cu: of a sort with run_rows, leaves in sorted_refs and equal the rows that are kept, in the order: so many
 * as state->kept_rows then says, less one; state->short_rows.  ids, refs and same are gone after it, and
 * tile_words and rows_out are not of these rows yet.
 */
extern int gpusort_pick_rows(GpuSortShard *shard, GpuSortError *error);

/* pick.cu: returns how many bytes of work->ids' room it takes for so many rows. */
extern uint64_t gpusort_pick_bytes(uint32_t rows);

/* order.cu: tile_words, of rows_out rows of sorted_refs. */
extern int gpusort_sum_tiles(GpuSortShard *shard, GpuSortError *error);

/* order.cu: exclusive scan of so many numbers in device memory, in place. */
extern int gpusort_scan_tiles(GpuSortShard *shard, uint64_t *numbers, uint32_t count, GpuSortError *error);

/* order.cu: ends, the inclusive scan of the sorted rows' words; refs are gone after it. */
extern int gpusort_scan_rows(GpuSortShard *shard, GpuSortError *error);

/* order.cu: returns how many tile_words so many rows have. */
extern uint32_t gpusort_order_tiles(uint32_t rows);

/* tie_flags.cu: state->ties, and equal cleared where the row is not KEY_TRUNCATED.  Only with may_tie. */
extern int gpusort_flag_ties(GpuSortShard *shard, GpuSortError *error);

/* tie_flags.cu: returns how many of state->ties so many rows have. */
extern uint32_t gpusort_tie_blocks(uint32_t rows);

/* sort.cu, gather.cu, lookup.cu: as GpuSortEngineOps says. */
extern int gpusort_cuda_sort(GpuSort *sort, GpuSortOutcome *outcome, GpuSortError *error);
extern int gpusort_cuda_emit(GpuSort *sort, uint64_t first, uint64_t end, bool records, void *chunk,
							 GpuSortEmitted *emitted, GpuSortError *error);
extern int gpusort_cuda_keys_at(GpuSort *sort, const uint64_t *rows, uint32_t count, uint64_t *keys,
								GpuSortError *error);
extern int gpusort_cuda_rows_below(GpuSort *sort, uint32_t bits, const uint64_t *keys, uint32_t count, uint64_t *rows,
								   GpuSortError *error);

/*
 * gather.cu: starts gathering the shard's rows from `first` on, none from `end` on, into a staging
 * buffer, with their keys if records.  They are numbered from the shard's own first one; first < end.
 */
extern int gpusort_gather_ahead(GpuSortShard *shard, int buffer, uint32_t first, uint32_t end, bool records,
								GpuSortError *error);

/* gather.cu: returns the place of staging buffer 0 or 1. */
extern char *gpusort_staging_buffer(const GpuSortShard *shard, int buffer);

#endif /* GPUSORT_STEPS_H */
