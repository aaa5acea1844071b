/*-------------------------------------------------------------------------
 *
 * ties.h
 *	  Runs of rows with equal truncated keys, which need a tie-break.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_TIES_H
#define GPUSORT_TIES_H

#include "compat.h"

#include "keys/keys.h"
#include "sort/reader.h"
#include "sort/row_kind.h"

typedef struct GpuSortTies GpuSortTies;

extern GpuSortTies *gpusort_ties_create(GpuSortColumn *columns, int count, GpuSortRows *rows);
extern bool gpusort_ties_collect(GpuSortTies *ties, GpuSortReader *reader, char *first,
								 GpuSortFailure *failure);
extern void *gpusort_ties_next(GpuSortTies *ties);
extern void gpusort_ties_reset(GpuSortTies *ties);
extern double gpusort_ties_ms(const GpuSortTies *ties);

#endif /* GPUSORT_TIES_H */
