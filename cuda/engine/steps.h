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

#include "engine/sort_state.h"

/* pack.cu: refs of all rows in row order, and prefixes unless work->prefixes is NULL. */
extern int gpusort_pack_rows(GpuSortPart *part, const GpuSortPackPlan *plan, GpuSortError *error);

/*
 * order.cu: state->unordered, up_to if not all rows are given out, and equal.  prefixes
 * are in order if has_prefixes.
 */
extern int gpusort_check_order(GpuSortPart *part, const GpuSortPackPlan *plan, bool has_prefixes,
							   GpuSortError *error);

/* order.cu: sorted_refs; state->bad_ids, id_sum and id_xor; tile_words.  prefixes and temp are gone after it. */
extern int gpusort_order_refs(GpuSortPart *part, GpuSortError *error);

/*
 * order.cu: state->equal_rows, how many of the part's rows have the key of the last row that
 * another part gives out.
 */
extern int gpusort_count_equal(GpuSortPart *part, const GpuSortPart *bound, GpuSortError *error);

/*
 * order.cu: state->unordered and equal of a part's last row, for the next part that gives
 * out rows.  Both have sorted_refs, and the next part's device is not working on them.
 */
extern int gpusort_check_border(GpuSortPart *part, const GpuSortPart *next, GpuSortError *error);

/* order.cu: ends; refs are gone after it. */
extern int gpusort_running_words(GpuSortPart *part, GpuSortError *error);

/* order.cu: how many tile_words there are. */
extern uint32_t gpusort_order_tiles(uint32_t rows);

/* tie_rows.cu: state->ties, and equal cleared where the row is not KEY_TRUNCATED.  Only with may_tie. */
extern int gpusort_mark_ties(GpuSortPart *part, GpuSortError *error);

/* tie_rows.cu: how many of state->ties there are. */
extern uint32_t gpusort_tie_blocks(uint32_t rows);

/* sort.cu, gather.cu: as GpuSortEngineOps says. */
extern int gpusort_cuda_sort(GpuSort *sort, GpuSortOutcome *outcome, GpuSortError *error);
extern int gpusort_cuda_emit(GpuSort *sort, void *chunk, GpuSortEmitted *emitted, GpuSortError *error);
extern int gpusort_cuda_rewind(GpuSort *sort, GpuSortError *error);

/* gather.cu: starts gathering the part's next rows into a staging buffer, if rows are left. */
extern int gpusort_gather_ahead(GpuSortPart *part, int buffer, GpuSortError *error);

#endif /* GPUSORT_STEPS_H */
