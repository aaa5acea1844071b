/*-------------------------------------------------------------------------
 *
 * ranges.h
 *	  Cuts sorted rows into ranges, for several readers.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_RANGES_H
#define GPUSORT_RANGES_H

#include "service/engine.h"

/*
 * Where rows were cut.  All rows of a range are below the border behind it, and
 * none below the one before it, by the first so many bits of their keys.
 */
typedef struct GpuSortBorders
{
	uint32_t bits;
	uint32_t words;  /* per border: as many as the bits take */
	uint32_t ranges; /* 0: there are no rows */
	uint64_t keys[]; /* of ranges - 1 borders in rising order, with zeros behind the bits */
} GpuSortBorders;

/* What is to be cut: a sort that has its rows in order. */
typedef struct GpuSortRangeSource
{
	const GpuSortEngineOps *ops;
	GpuSort *sort;
	uint32_t key_words;
	uint64_t rows;
} GpuSortRangeSource;

extern int gpusort_ranges_cut(const GpuSortRangeSource *sorted, uint32_t bits, uint32_t most, uint64_t *first_rows,
							  GpuSortBorders **borders, GpuSortError *error);
extern int gpusort_ranges_cut_like(const GpuSortRangeSource *sorted, const GpuSortBorders *borders,
								   uint64_t *first_rows, GpuSortError *error);
extern GpuSortBorders *gpusort_borders_make(uint32_t bits, uint32_t count);
extern GpuSortBorders *gpusort_borders_copy(const GpuSortBorders *borders);

#endif /* GPUSORT_RANGES_H */
