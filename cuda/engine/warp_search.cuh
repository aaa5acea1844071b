/*-------------------------------------------------------------------------
 *
 * warp_search.cuh
 *	  The search for a row by whole warps.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_WARP_SEARCH_CUH
#define GPUSORT_WARP_SEARCH_CUH

#include "engine/sort_state.h"

/*
 * The first row in [low, high) that is beyond, or high; all rows after it are beyond as well.
 * Called by whole warps with the same arguments in all threads.  Looks at 32 places at once,
 * so half a million rows take four turns.
 */
template <typename Beyond>
static __device__ uint32_t
gpusort_first_beyond(uint32_t low, uint32_t high, Beyond is_beyond)
{
	const uint32_t lane = threadIdx.x % 32;

	while (low < high)
	{
		uint32_t step = (high - low + 31) / 32;
		uint64_t place = (uint64_t) low + lane * (uint64_t) step;
		bool beyond = place >= high || is_beyond((uint32_t) place);
		uint32_t votes = __ballot_sync(GPUSORT_FULL_WARP, beyond);
		uint32_t first = votes != 0 ? __ffs(votes) - 1 : 32;
		uint64_t upper = (uint64_t) low + first * (uint64_t) step;

		if (first == 0)
			break;

		/* the place before `first` is not beyond, the one at `first` is */
		low = low + (first - 1) * step + 1;
		high = upper < high ? (uint32_t) upper : high;
	}
	return low;
}

#endif /* GPUSORT_WARP_SEARCH_CUH */
