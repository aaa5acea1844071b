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

#include "sort/reader.h"
#include "sort/slots.h"
#include "keys/keys.h"
#include "utils/tuplesort.h"

typedef struct GpuSortTies GpuSortTies;

extern GpuSortTies *gpusort_ties_create(GpuSortColumn *columns, int count, GpuSortSlots *slots);
extern bool gpusort_ties_collect(GpuSortTies *ties, GpuSortReader *reader, char *first,
								 GpuSortFailure *failure);
extern TupleTableSlot *gpusort_ties_next(GpuSortTies *ties);
extern void gpusort_ties_reset(GpuSortTies *ties);
extern double gpusort_ties_ms(const GpuSortTies *ties);

extern Tuplesortstate *gpusort_tuplesort_begin(TupleDesc desc, const GpuSortColumn *columns, int count,
											   int options);

#endif /* GPUSORT_TIES_H */
