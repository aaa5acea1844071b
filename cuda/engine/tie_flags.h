/*-------------------------------------------------------------------------
 *
 * tie_flags.h
 *	  Counting the rows that may need a tie-break: those in a run of equal keys with
 *	  a row whose key is truncated, piece by piece.
 *
 * A run may be as long as the sort, so no thread can walk it.  Instead each
 * piece of the sorted rows is summed up by what its neighbours need to know: the
 * run it starts with, the run it ends with, and how many rows of closed runs
 * between them count.  Two adjacent summaries join into one; joining is
 * associative, so pieces may be joined in any grouping that keeps their order.
 *
 * A run of one row is no tie, whatever its flags.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_TIE_FLAGS_H
#define GPUSORT_TIE_FLAGS_H

#include <stdint.h>

#include "sort/portable.h"

typedef struct GpuSortTieRun
{
	uint64_t rows;
	uint64_t truncated; /* 1 if it holds a KEY_TRUNCATED row, else 0 */
} GpuSortTieRun;

typedef struct GpuSortTieSummary
{
	GpuSortTieRun first;
	GpuSortTieRun last; /* unused while one is set */
	uint64_t counted;   /* rows of runs that lie wholly inside and count */
	uint32_t one;       /* all rows are one run: `first` */
	uint32_t open;      /* the last row's key equals that of the row after the piece */
} GpuSortTieSummary;

/* Returns the summary of no rows: first.rows is 0, and joined with another it leaves that as it is. */
GPUSORT_HD static inline GpuSortTieSummary
gpusort_ties_none(void)
{
	GpuSortTieSummary none = {};

	none.one = 1;
	return none;
}

/* Returns how many of a run's rows count: all or none. */
GPUSORT_HD static inline uint64_t
gpusort_tie_run_count(GpuSortTieRun run)
{
	return run.rows > 1 && run.truncated ? run.rows : 0;
}

/* Returns the summary of a's rows followed by b's. */
GPUSORT_HD static inline GpuSortTieSummary
gpusort_ties_join(GpuSortTieSummary a, GpuSortTieSummary b)
{
	GpuSortTieSummary joined = {};
	GpuSortTieRun left;
	GpuSortTieRun right;

	if (a.first.rows == 0)
		return b;
	if (b.first.rows == 0)
		return a;

	left = a.one ? a.first : a.last;
	right = b.first;
	joined.counted = a.counted + b.counted;
	joined.open = b.open;
	joined.first = a.first;
	joined.last = b.last;

	if (a.open)
	{
		GpuSortTieRun middle;

		middle.rows = left.rows + right.rows;
		middle.truncated = left.truncated | right.truncated;
		if (a.one)
			joined.first = middle;
		if (b.one)
			joined.last = middle;
		joined.one = a.one && b.one;
		if (!a.one && !b.one)
			joined.counted += gpusort_tie_run_count(middle);
	}
	else
	{
		if (!a.one)
			joined.counted += gpusort_tie_run_count(left);
		if (b.one)
			joined.last = right;
		else
			joined.counted += gpusort_tie_run_count(right);
		joined.one = 0;
	}
	return joined;
}

/*
 * Returns the summary of up to 32 rows: bit i of `equal` says that row i's key equals
 * that of the row after it, bit i of `truncated` that row i is KEY_TRUNCATED.
 */
GPUSORT_HD static inline GpuSortTieSummary
gpusort_ties_of_bits(uint32_t equal, uint32_t truncated, uint32_t rows)
{
	GpuSortTieSummary sum = gpusort_ties_none();

	for (uint32_t i = 0; i < rows; i++)
	{
		GpuSortTieSummary row = gpusort_ties_none();

		row.first.rows = 1;
		row.first.truncated = truncated >> i & 1;
		row.open = equal >> i & 1;
		sum = gpusort_ties_join(sum, row);
	}
	return sum;
}

/* Returns how many rows count, when nothing comes before or after the piece. */
GPUSORT_HD static inline uint64_t
gpusort_ties_total(GpuSortTieSummary sum)
{
	return sum.counted + gpusort_tie_run_count(sum.first) + (sum.one ? 0 : gpusort_tie_run_count(sum.last));
}

#endif /* GPUSORT_TIE_FLAGS_H */
