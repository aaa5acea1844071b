/*-------------------------------------------------------------------------
 *
 * first_rows.h
 *	  The first rows of a sort's input, kept back until they have been looked at.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_FIRST_ROWS_H
#define GPUSORT_FIRST_ROWS_H

#include "compat.h"

#include "access/htup_details.h"
#include "executor/executor.h"
#include "executor/tuptable.h"
#include "nodes/execnodes.h"

typedef struct GpuSortFirstRows
{
	MemoryContext context; /* the rows', emptied by clear */
	TupleTableSlot *slot;  /* shows them, one by one */
	MinimalTuple *rows;
	int count;
	int capacity;
	int next; /* the first one not passed on */
	Size bytes;
	bool ended; /* the child has no others */
} GpuSortFirstRows;

extern void gpusort_first_rows_init(GpuSortFirstRows *first, PlanState *child);
extern bool gpusort_first_rows_read(GpuSortFirstRows *first, PlanState *child, int count);
extern void gpusort_first_rows_clear(GpuSortFirstRows *first);

/* The next row of the child: one kept back, then those it still has; NULL or an empty slot after the last. */
static inline TupleTableSlot *
gpusort_first_rows_next(GpuSortFirstRows *first, PlanState *child)
{
	if (unlikely(first->next < first->count))
		return ExecStoreMinimalTuple(first->rows[first->next++], first->slot, false);
	if (unlikely(first->ended))
		return NULL;
	return ExecProcNode(child);
}

#endif /* GPUSORT_FIRST_ROWS_H */
