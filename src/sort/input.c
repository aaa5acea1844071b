/*-------------------------------------------------------------------------
 *
 * input.c
 *	  The input of a sort: the rows of its source, the first of which are kept back until they have been looked at.
 *
 * First rows tell two things before the service is asked for anything: whether there
 * are so few that PostgreSQL sorts them faster, and what the strings to sort by
 * have in common.  Legal order: init once; then for each reading of the
 * source read_first, once more to keep more of them, next as often as wanted, clear.
 *
 * Memory: copies of the rows, as many as asked for and FIRST_ROWS_BYTES at most,
 * with one batch more; in a context of their own below the one current at init.
 *
 *-------------------------------------------------------------------------
 */
#include "sort/input.h"

#include "utils/memutils.h"

/* Wide rows tell enough when they are fewer: copying these takes a fifth of a millisecond. */
#define FIRST_ROWS_BYTES ((Size) 1 << 20)

/* Begins at the first row of source, of which nothing has been read. */
void
gpusort_input_init(GpuSortInput *input, GpuSortSource *source, GpuSortRows *rows)
{
	input->source = source;
	input->rows = rows;
	input->first = (GpuSortFirstRows){0};
	input->first.context = AllocSetContextCreate(CurrentMemoryContext, "gpusort first rows", ALLOCSET_DEFAULT_SIZES);
	input->at_first = false;
	input->count = 0;
	input->next = 0;
}

/* Keeps a row back. */
static void
keep(GpuSortInput *input, const GpuSortRow *row)
{
	GpuSortFirstRows *first = &input->first;

	if (first->count == first->capacity)
	{
		first->capacity = Max(2 * first->capacity, 64);
		if (first->rows == NULL)
			first->rows = palloc(first->capacity * sizeof(char *));
		else
			first->rows = repalloc(first->rows, first->capacity * sizeof(char *));
	}
	first->rows[first->count] = input->rows->kind->copy(input->rows, row);
	first->bytes += gpusort_row_length(first->rows[first->count++]);
}

/*
 * Keeps back the first count rows, or as many as FIRST_ROWS_BYTES hold, and what comes in one batch with the last of
 * them; none has been passed on yet.  Returns false if there are fewer.
 */
bool
gpusort_input_read_first(GpuSortInput *input, int count)
{
	GpuSortFirstRows *first = &input->first;
	GpuSortSource *source = input->source;

	Assert(first->next == 0 && input->count == 0);
	source->attributes = 0;
	input->at_first = true;
	while (!first->ended && first->count < count && first->bytes < FIRST_ROWS_BYTES)
	{
		int wanted = Min(count - first->count, GPUSORT_BATCH_ROWS);
		int read = source->methods->next_batch(source, input->batch, wanted);
		MemoryContext caller;

		if (read == 0)
		{
			first->ended = true;
			break;
		}
		caller = MemoryContextSwitchTo(first->context);
		for (int i = 0; i < read; i++)
			keep(input, &input->batch[i]);
		MemoryContextSwitchTo(caller);
	}
	return !first->ended || first->count >= count;
}

/*
 * Returns the next row that has been kept back, in a batch of its own, or the first behind them; NULL: there is none.
 */
const GpuSortRow *
gpusort_input_next_kept(GpuSortInput *input)
{
	GpuSortFirstRows *first = &input->first;

	if (first->next >= first->count)
	{
		if (first->ended)
			return NULL;
		input->at_first = false;
		return gpusort_input_next(input);
	}
	input->rows->kind->open(input->rows, first->rows[first->next++], input->source->attributes, input->batch);
	input->count = 1;
	input->next = 1;
	return input->batch;
}

/*
 * Keeps these rows back in the place of all that have been passed on, before those that the source still has; ended: it
 * has none.  The current batch must have been passed on; rows, and what they are listed in, are of first.context.
 */
void
gpusort_input_keep(GpuSortInput *input, char **rows, int count, bool ended)
{
	GpuSortFirstRows *first = &input->first;

	Assert(input->next >= input->count);
	*first = (GpuSortFirstRows){.context = first->context, .rows = rows, .count = count, .capacity = count};
	for (int i = 0; i < count; i++)
		first->bytes += gpusort_row_length(rows[i]);
	first->ended = ended;
	input->at_first = true;
	input->count = 0;
	input->next = 0;
}

/* Forgets all rows; the caller must read the source from its start next. */
void
gpusort_input_clear(GpuSortInput *input)
{
	GpuSortFirstRows *first = &input->first;

	MemoryContextReset(first->context);
	*first = (GpuSortFirstRows){.context = first->context};
	input->at_first = false;
	input->count = 0;
	input->next = 0;
}
