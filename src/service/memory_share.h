/*-------------------------------------------------------------------------
 *
 * memory_share.h
 *	  Who of several sorts may have how much of a memory that they share.
 *
 * A sort takes what it needs while there is some.  Three rules keep one from having
 * what others cannot do without:
 *
 *	- Every sort, and those that are to come, is sure of GPUSORT_SHARE_SURE bytes: as many are
 *	  kept for those that have less, and for some newcomers.
 *	- A sort that is refused while it has less than its fair share, the same for all, is
 *	  starved.  For a while after that those that have more than theirs get nothing: they write
 *	  what they have to a run, which sets it free.
 *	- What does not fit with that is refused as BUSY; what does not fit even alone, as LIMIT.
 *
 * The account is its owner's, under the owner's lock.  Used by both engines, of which one is in
 * C++: functions are inline.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_MEMORY_SHARE_H
#define GPUSORT_MEMORY_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include "service/clock.h"

/* What a sort is sure of: enough to sort a few chunks. */
#define GPUSORT_SHARE_SURE ((uint64_t) 16 << 20)

/* Sorts to come that it is kept for, and the part of the memory that is kept at most. */
#define GPUSORT_SHARE_NEWCOMERS 4
#define GPUSORT_SHARE_KEPT_PART 4

/* So long others wait for a sort that was starved, in milliseconds. */
#define GPUSORT_SHARE_STARVED_MS 500

typedef struct GpuSortMemoryShare
{
	uint64_t limit;
	uint64_t used;  /* by all sorts */
	uint64_t sure;  /* of that, what each has of the first GPUSORT_SHARE_SURE bytes */
	uint32_t sorts; /* that have a part, or will */
	bool starving;  /* a sort was starved */
	double starved; /* when, by gpusort_clock_ms */
} GpuSortMemoryShare;

static inline uint64_t
gpusort_share_sure_part(uint64_t own)
{
	return own < GPUSORT_SHARE_SURE ? own : GPUSORT_SHARE_SURE;
}

/* Bytes that are kept for others than a sort that has own, and for newcomers. */
static inline uint64_t
gpusort_share_kept(const GpuSortMemoryShare *share, uint64_t own)
{
	uint64_t others = share->sorts > 0 ? share->sorts - 1 : 0;
	uint64_t promised = (others + GPUSORT_SHARE_NEWCOMERS) * GPUSORT_SHARE_SURE;
	uint64_t taken = share->sure - gpusort_share_sure_part(own);
	uint64_t kept = promised > taken ? promised - taken : 0;
	uint64_t most = share->limit / GPUSORT_SHARE_KEPT_PART;

	return kept < most ? kept : most;
}

/* Returns true if a sort that has own may have so many bytes more; notes that it is starved if it may not and should. */
static inline bool
gpusort_share_allows(GpuSortMemoryShare *share, uint64_t own, uint64_t bytes)
{
	uint64_t fair = share->limit / (share->sorts > 0 ? share->sorts : 1);
	uint64_t left = share->limit > share->used ? share->limit - share->used : 0;
	bool is_sure = own + bytes <= GPUSORT_SHARE_SURE;
	double now = 0;

	if (share->starving)
	{
		now = gpusort_clock_ms();
		share->starving = now - share->starved < GPUSORT_SHARE_STARVED_MS;
	}
	if (bytes <= left &&
		(is_sure || (bytes + gpusort_share_kept(share, own) <= left && !(share->starving && share->sorts > 1 && own + bytes > fair))))
		return true;
	if (share->sorts > 1 && own + bytes <= fair)
	{
		share->starving = true;
		share->starved = gpusort_clock_ms();
	}
	return false;
}

/* Returns true if a sort could have so many bytes without others: where it is refused others are in the way. */
static inline bool
gpusort_share_fits_alone(const GpuSortMemoryShare *share, uint64_t bytes)
{
	GpuSortMemoryShare alone = {share->limit, 0, 0, 1, false, 0};

	return bytes <= share->limit && (bytes <= GPUSORT_SHARE_SURE || bytes + gpusort_share_kept(&alone, 0) <= share->limit);
}

/* A sort that has own takes so many bytes more. */
static inline void
gpusort_share_take(GpuSortMemoryShare *share, uint64_t own, uint64_t bytes)
{
	share->used += bytes;
	share->sure += gpusort_share_sure_part(own + bytes) - gpusort_share_sure_part(own);
}

/* A sort that has own gives so many of them back. */
static inline void
gpusort_share_give_back(GpuSortMemoryShare *share, uint64_t own, uint64_t bytes)
{
	share->used -= bytes;
	share->sure -= gpusort_share_sure_part(own) - gpusort_share_sure_part(own - bytes);
}

#endif /* GPUSORT_MEMORY_SHARE_H */
