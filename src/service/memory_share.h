/*-------------------------------------------------------------------------
 *
 * memory_share.h
 *	  Who of several sorts may have how much of a memory that they share.
 *
 * A sort takes what it needs while there is some.  Three rules keep one from having
 * what others cannot do without:
 *
 *	- Every sort, and those that are to come, is sure of some bytes (GPUSORT_SHARE_SURE, or what
 *	  the owner says): as many are kept for those that have less, and for some newcomers.
 *	- A sort that is refused while it has less than its fair share, the same for all, or than
 *	  it is sure of, is starved.  For a while after that those that have more than theirs get nothing: they write
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
#include "service/protocol.h"

/* What a sort is sure of: enough to sort a few chunks. */
#define GPUSORT_SHARE_SURE GPUSORT_MEMORY_MIN

/* Sorts to come that it is kept for, and the part of the memory that is kept at most. */
#define GPUSORT_SHARE_NEWCOMERS 4
#define GPUSORT_SHARE_KEPT_PART 4

/*
 * So long others wait for a sort that was starved, in milliseconds: those that are taking rows in ask for memory far
 * more often than that, and so does a starved one.
 */
#define GPUSORT_SHARE_STARVED_MS 50

typedef struct GpuSortMemoryShare
{
	uint64_t limit;
	uint64_t used;  /* by all sorts */
	uint64_t sure;  /* of that, what each has of the bytes that it is sure of */
	uint32_t sorts; /* that have a part, or will */
	bool starving;  /* a sort was starved */
	double starved; /* when, by gpusort_clock_ms */
	uint64_t each;  /* bytes that a sort is sure of; 0: GPUSORT_SHARE_SURE */
} GpuSortMemoryShare;

/* Bytes that a sort is sure of. */
static inline uint64_t
gpusort_share_each(const GpuSortMemoryShare *share)
{
	return share->each > 0 ? share->each : GPUSORT_SHARE_SURE;
}

static inline uint64_t
gpusort_share_sure_part(const GpuSortMemoryShare *share, uint64_t own)
{
	return own < gpusort_share_each(share) ? own : gpusort_share_each(share);
}

/* Bytes that are kept for others than a sort that has own, and for newcomers. */
static inline uint64_t
gpusort_share_kept(const GpuSortMemoryShare *share, uint64_t own)
{
	uint64_t others = share->sorts > 0 ? share->sorts - 1 : 0;
	uint64_t promised = (others + GPUSORT_SHARE_NEWCOMERS) * gpusort_share_each(share);
	uint64_t taken = share->sure - gpusort_share_sure_part(share, own);
	uint64_t kept = promised > taken ? promised - taken : 0;
	uint64_t most = share->limit / GPUSORT_SHARE_KEPT_PART;

	return kept < most ? kept : most;
}

/* The same part for all sorts. */
static inline uint64_t
gpusort_share_fair(const GpuSortMemoryShare *share)
{
	return share->limit / (share->sorts > 0 ? share->sorts : 1);
}

/* Returns true if a sort was starved lately, so that no other gets more than its fair share. */
static inline bool
gpusort_share_starving(GpuSortMemoryShare *share)
{
	if (share->starving)
		share->starving = gpusort_clock_ms() - share->starved < GPUSORT_SHARE_STARVED_MS;
	return share->starving && share->sorts > 1;
}

/* Returns how many bytes more a sort that has own may have now. */
static inline uint64_t
gpusort_share_room(GpuSortMemoryShare *share, uint64_t own)
{
	uint64_t fair = gpusort_share_fair(share);
	uint64_t left = share->limit > share->used ? share->limit - share->used : 0;
	uint64_t kept = gpusort_share_kept(share, own);
	uint64_t room = left > kept ? left - kept : 0;
	uint64_t sure = gpusort_share_each(share) - gpusort_share_sure_part(share, own);

	if (sure > left)
		sure = left;
	if (gpusort_share_starving(share) && room > (fair > own ? fair - own : 0))
		room = fair > own ? fair - own : 0;
	return room < sure ? sure : room;
}

/* Returns true if a sort that has own may have so many bytes more; if it may not but should, notes that it starves. */
static inline bool
gpusort_share_allows(GpuSortMemoryShare *share, uint64_t own, uint64_t bytes)
{
	if (bytes <= gpusort_share_room(share, own))
		return true;
	if (share->sorts > 1 && (own + bytes <= gpusort_share_fair(share) || own + bytes <= gpusort_share_each(share)))
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
	GpuSortMemoryShare alone = {share->limit, 0, 0, 1, false, 0, share->each};

	return bytes <= gpusort_share_room(&alone, 0);
}

/* A sort that has own takes so many bytes more. */
static inline void
gpusort_share_take(GpuSortMemoryShare *share, uint64_t own, uint64_t bytes)
{
	share->used += bytes;
	share->sure += gpusort_share_sure_part(share, own + bytes) - gpusort_share_sure_part(share, own);
}

/* A sort that has own gives so many of them back. */
static inline void
gpusort_share_give_back(GpuSortMemoryShare *share, uint64_t own, uint64_t bytes)
{
	share->used -= bytes;
	share->sure -= gpusort_share_sure_part(share, own) - gpusort_share_sure_part(share, own - bytes);
}

#endif /* GPUSORT_MEMORY_SHARE_H */
