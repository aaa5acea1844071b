/*-------------------------------------------------------------------------
 *
 * array_stats.h
 *	  What one pass over the keys of an array tells of them, as key_stats.h does of a
 *	  chunk's; the same rules hold.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ARRAY_STATS_H
#define GPUSORT_ARRAY_STATS_H

#include "sort/device_sort.h"
#include "sort/key_stats.h"

/*
 * Adds rows 0 to rows - 1 of a source that is not REFS (array_source.h).  One read of
 * the keys; from 5 words on in one launch per 4 words.
 */
extern int gpusort_key_stats_array(const GpuSortKeySource *source, uint32_t rows, GpuSortKeyStats *stats,
								   struct CUstream_st *stream);

/* The same of every step-th row, from row 0 on; pairs are of rows that follow each other in the sample. */
extern int gpusort_key_stats_sample(const GpuSortKeySource *source, uint32_t rows, uint32_t step,
									GpuSortKeyStats *stats, struct CUstream_st *stream);

/*
 * As gpusort_key_stats_array, and the rows' partial keys by a plan on the way: where the plan
 * is guessed, and the statistics tell whether it serves.  That needs
 * no minimum and no maximum, so these are left as they are.
 * Adds the partial keys' digits to histogram as radix_sort.h wants them, if that is not
 * NULL.  Keys have GPUSORT_STATS_GROUP (key_stats.cuh) words at most.
 */
extern int gpusort_key_stats_partial_keys(const GpuSortKeySource *source, const GpuSortPackPlan *plan,
										  uint32_t rows, GpuSortKeyStats *stats, uint32_t *partial_keys,
										  uint32_t *histogram, struct CUstream_st *stream);

#endif /* GPUSORT_ARRAY_STATS_H */
