/*-------------------------------------------------------------------------
 *
 * input.h
 *	  The input of a sort: the rows of its source, the first of which are kept back until they have been looked at.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INPUT_H
#define GPUSORT_INPUT_H

#include "compat.h"

#include "sort/row_kind.h"
#include "sort/source.h"

/* The first rows. */
typedef struct GpuSortFirstRows
{
	MemoryContext context; /* of the rows; gpusort_input_clear resets it */
	char **rows;           /* in memory */
	int count;
	int capacity;
	int next; /* the first row that was not passed on */
	Size bytes;
	bool ended; /* the source has no other rows */
} GpuSortFirstRows;

typedef struct GpuSortInput
{
	GpuSortSource *source;
	GpuSortRows *rows; /* for the rows' kind */
	GpuSortFirstRows first;
	bool at_first; /* the next batch comes from first, which may also be at its end */

	/* the current batch */
	int count;
	int next; /* the first row of it that was not passed on */
	GpuSortRow batch[GPUSORT_BATCH_ROWS];
} GpuSortInput;

extern void gpusort_input_init(GpuSortInput *input, GpuSortSource *source, GpuSortRows *rows);
extern bool gpusort_input_read_first(GpuSortInput *input, int count);
extern const GpuSortRow *gpusort_input_next_kept(GpuSortInput *input);
extern void gpusort_input_keep(GpuSortInput *input, char **rows, int count, bool ended);
extern void gpusort_input_clear(GpuSortInput *input);

/*
 * Returns the next row: one kept back, then those that the source still has;
 * NULL after the last.  Valid until the next call.
 */
static pg_attribute_always_inline const GpuSortRow *
gpusort_input_next(GpuSortInput *input)
{
	if (input->next >= input->count)
	{
		if (unlikely(input->at_first))
			return gpusort_input_next_kept(input);
		input->next = 0;
		input->count = input->source->methods->next_batch(input->source, input->batch, GPUSORT_BATCH_ROWS);
		if (unlikely(input->count == 0))
		{
			input->first.ended = input->at_first = true;
			return NULL;
		}
	}
	return &input->batch[input->next++];
}

/* The row passed on last is the next one again. */
static inline void
gpusort_input_put_back(GpuSortInput *input)
{
	input->next--;
}

#endif /* GPUSORT_INPUT_H */
