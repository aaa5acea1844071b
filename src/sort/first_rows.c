/*-------------------------------------------------------------------------
 *
 * first_rows.c
 *	  The first rows of a sort's input, kept back until they have been looked at.
 *
 * They tell two things before the service is asked for anything: whether there
 * are so few that PostgreSQL sorts them faster, and what the strings to sort by
 * have in common.  Legal order: init once; then for each reading of the child
 * read, next as often as wanted, clear.
 *
 * Memory: copies of the rows, as many as asked for and FIRST_ROWS_BYTES at most,
 * with one row more; in a context of their own below the one current at init.
 *
 *-------------------------------------------------------------------------
 */
#include "sort/first_rows.h"

#include "utils/memutils.h"

/* Wide rows tell enough when they are fewer: copying these takes a fifth of a millisecond. */
#define FIRST_ROWS_BYTES ((Size) 1 << 20)

/* Makes first empty, for rows of child, whose descriptor must be known. */
void
gpusort_first_rows_init(GpuSortFirstRows *first, PlanState *child)
{
	memset(first, 0, sizeof(*first));
	first->slot = ExecInitExtraTupleSlot(child->state, ExecGetResultType(child), &TTSOpsMinimalTuple);
	first->context = AllocSetContextCreate(CurrentMemoryContext, "gpusort first rows", ALLOCSET_DEFAULT_SIZES);
}

/*
 * Reads up to count rows of the child, of which nothing has been read yet, or as many as
 * FIRST_ROWS_BYTES hold.  Returns false if the child has fewer.
 */
bool
gpusort_first_rows_read(GpuSortFirstRows *first, PlanState *child, int count)
{
	Assert(first->count == 0 && !first->ended);
	while (first->count < count && first->bytes < FIRST_ROWS_BYTES)
	{
		TupleTableSlot *row = ExecProcNode(child);
		MemoryContext caller;

		if (TupIsNull(row))
		{
			first->ended = true;
			return false;
		}
		caller = MemoryContextSwitchTo(first->context);
		if (first->count == first->capacity)
		{
			first->capacity = Max(2 * first->capacity, 64);
			if (first->rows == NULL)
				first->rows = palloc(first->capacity * sizeof(MinimalTuple));
			else
				first->rows = repalloc(first->rows, first->capacity * sizeof(MinimalTuple));
		}
		first->rows[first->count] = ExecCopySlotMinimalTuple(row);
		first->bytes += first->rows[first->count++]->t_len;
		MemoryContextSwitchTo(caller);
	}
	return true;
}

/* Forgets them; the child is to be read from its start next. */
void
gpusort_first_rows_clear(GpuSortFirstRows *first)
{
	ExecClearTuple(first->slot);
	MemoryContextReset(first->context);
	first->rows = NULL;
	first->count = 0;
	first->capacity = 0;
	first->next = 0;
	first->bytes = 0;
	first->ended = false;
}
