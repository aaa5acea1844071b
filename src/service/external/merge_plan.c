/*-------------------------------------------------------------------------
 *
 * merge_plan.c
 *	  Which partitions a merge has, by the keys that they begin with, and which rows are theirs.
 *
 * A partition's rows are known when it was loaded, or when those below its keys were counted in the runs.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include "service/external/merge_state.h"

#include <stdlib.h>
#include <string.h>

#include "service/errors.h"

typedef struct Start
{
	const uint64_t *key;
	uint32_t bytes;
} Start;

static int
compare_starts(const void *a, const void *b, void *words)
{
	return gpusort_compare_keys(((const Start *) a)->key, ((const Start *) b)->key, *(const uint32_t *) words);
}

/* All blocks by the keys that they begin with; the caller frees them.  NULL: there is no memory. */
static Start *
sort_starts(const GpuSortRuns *runs, uint64_t *count)
{
	uint32_t words = runs->key_words;
	Start *starts;
	uint64_t n = 0;

	for (uint32_t r = 0; r < runs->nruns; r++)
		n += runs->runs[r].nblocks;
	starts = malloc((n + 1) * sizeof(Start));
	*count = n;
	n = 0;
	for (uint32_t r = 0; starts != NULL && r < runs->nruns; r++)
	{
		const GpuSortRun *run = &runs->runs[r];

		for (uint32_t b = 0; b < run->nblocks; b++)
			starts[n++] = (Start){run->first_keys + (size_t) b * words, run->blocks[b].bytes};
	}
	if (starts != NULL)
		qsort_r(starts, n, sizeof(Start), compare_starts, &words);
	return starts;
}

/* Adds a partition at a place in the list that begins with a key, which is copied; NULL: from the first key on. */
int
gpusort_merge_insert(GpuSortMerge *merge, uint32_t at, const uint64_t *key, GpuSortError *error)
{
	size_t key_bytes = merge->source.request->key_words * sizeof(uint64_t);
	GpuSortMergePartition *partition = calloc(1, sizeof(GpuSortMergePartition));

	if (partition != NULL && key != NULL)
	{
		partition->first_key = malloc(key_bytes);
		if (partition->first_key != NULL)
			memcpy(partition->first_key, key, key_bytes);
	}
	if (merge->count == merge->room)
	{
		uint32_t room = merge->room > 0 ? 2 * merge->room : 64;
		GpuSortMergePartition **moved = realloc(merge->partitions, room * sizeof(GpuSortMergePartition *));

		if (moved != NULL)
		{
			merge->partitions = moved;
			merge->room = room;
		}
	}
	if (partition == NULL || (key != NULL && partition->first_key == NULL) || merge->count == merge->room)
	{
		if (partition != NULL)
			free(partition->first_key);
		free(partition);
		return gpusort_error_memory(error);
	}
	partition->first_row = at == 0 ? 0 : GPUSORT_ROWS_UNKNOWN;
	partition->rows = GPUSORT_ROWS_UNKNOWN;
	memmove(merge->partitions + at + 1, merge->partitions + at, (merge->count - at) * sizeof(GpuSortMergePartition *));
	merge->partitions[at] = partition;
	merge->count++;
	return 0;
}

/* Copies a key without the bits that do not count. */
static void
mask_key(uint64_t *to, const uint64_t *from, uint32_t words, uint32_t bits)
{
	for (uint32_t w = 0; w < words; w++)
	{
		uint32_t left = bits > 64 * w ? bits - 64 * w : 0;

		to[w] = left >= 64 ? from[w] : left == 0 ? 0
												 : from[w] & ~(UINT64_MAX >> left);
	}
}

/* Appends a partition that begins with a key, if that is above the last one's. */
static int
append_partition(GpuSortMerge *merge, const uint64_t *key, GpuSortError *error)
{
	const GpuSortMergePartition *last = merge->partitions[merge->count - 1];

	if (last->first_key != NULL && gpusort_compare_keys(key, last->first_key, merge->source.request->key_words) <= 0)
		return 0;
	return gpusort_merge_insert(merge, merge->count, key, error);
}

/* The key of a border, without bits behind its own. */
static void
border_key(const GpuSortMerge *merge, const GpuSortBorders *borders, uint32_t i, uint64_t *key)
{
	memset(key, 0, GPUSORT_MAX_KEY_WORDS * sizeof(uint64_t));
	memcpy(key, borders->keys + (size_t) i * borders->words, borders->words * sizeof(uint64_t));
	mask_key(key, key, merge->source.request->key_words, borders->bits);
}

/* Makes partitions of about so many bytes, and one begin at each border. */
int
gpusort_merge_plan(GpuSortMerge *merge, uint64_t bytes, const GpuSortBorders *like, GpuSortError *error)
{
	uint32_t words = merge->source.request->key_words;
	uint32_t borders = like != NULL && like->ranges > 0 ? like->ranges - 1 : 0;
	uint32_t border = 0;
	uint64_t key[GPUSORT_MAX_KEY_WORDS];
	uint64_t at_border[GPUSORT_MAX_KEY_WORDS];
	uint64_t count;
	uint64_t sum = 0;
	Start *starts = sort_starts(merge->source.runs, &count);
	int rc = starts != NULL ? gpusort_merge_insert(merge, 0, NULL, error) : gpusort_error_memory(error);

	for (uint64_t i = 0; rc == 0 && i < count; i++)
	{
		mask_key(key, starts[i].key, words, merge->bits);
		for (; rc == 0 && border < borders; border++)
		{
			border_key(merge, like, border, at_border);
			if (gpusort_compare_keys(at_border, key, words) > 0)
				break;
			rc = append_partition(merge, at_border, error);
			sum = 0;
		}
		if (rc == 0 && sum >= bytes)
		{
			uint32_t before = merge->count;

			rc = append_partition(merge, key, error);
			if (merge->count > before)
				sum = 0;
		}
		sum += starts[i].bytes;
	}
	for (; rc == 0 && border < borders; border++)
	{
		border_key(merge, like, border, at_border);
		rc = append_partition(merge, at_border, error);
	}
	free(starts);
	return rc;
}

/* Where a partition is in the list. */
uint32_t
gpusort_merge_place_of(const GpuSortMerge *merge, const GpuSortMergePartition *partition)
{
	uint32_t at = 0;

	while (merge->partitions[at] != partition)
		at++;
	return at;
}

/* The key that partition number at ends before, or NULL. */
const uint64_t *
gpusort_merge_end_key(const GpuSortMerge *merge, uint32_t at)
{
	return at + 1 < merge->count ? merge->partitions[at + 1]->first_key : NULL;
}

/* Takes note of a partition's rows, and of where the next one begins.  With the lock held. */
void
gpusort_merge_note_rows(GpuSortMerge *merge, uint32_t at)
{
	GpuSortMergePartition **partitions = merge->partitions;

	for (; partitions[at]->first_row != GPUSORT_ROWS_UNKNOWN && partitions[at]->rows != GPUSORT_ROWS_UNKNOWN &&
		 at + 1 < merge->count;
		 at++)
		partitions[at + 1]->first_row = partitions[at]->first_row + partitions[at]->rows;
}

/* Counts the rows of all runs whose keys are below one. */
int
gpusort_merge_rows_below(const GpuSortMerge *merge, const uint64_t *key, char *scratch, uint64_t *rows,
						 GpuSortError *error)
{
	const GpuSortRuns *runs = merge->source.runs;

	*rows = 0;
	for (uint32_t r = 0; r < runs->nruns; r++)
	{
		GpuSortRunPlace place;

		if (__atomic_load_n(merge->source.cancelled, __ATOMIC_RELAXED))
			return gpusort_error_cancelled(error);
		if (gpusort_runs_find(runs, r, key, scratch, &place, error) != 0)
			return -1;
		*rows += gpusort_runs_rows_before(&runs->runs[r], place);
	}
	return 0;
}

/* Finds how many rows each partition has, before the first row is given out: what cut needs. */
int
gpusort_merge_find_rows(GpuSortMerge *merge, GpuSortError *error)
{
	uint64_t before = 0;

	for (uint32_t at = 0; at < merge->count; at++)
	{
		GpuSortMergePartition *partition = merge->partitions[at];
		const uint64_t *end = gpusort_merge_end_key(merge, at);
		uint64_t rows_below_end = merge->source.runs->rows;

		if (end != NULL &&
			gpusort_merge_rows_below(merge, end, merge->loaders[0].memory.scratch, &rows_below_end, error) != 0)
			return -1;
		partition->first_row = before;
		partition->rows = rows_below_end - before;
		before = rows_below_end;
	}
	return 0;
}

/*
 * Cuts rows into at most so many ranges, each of some partitions and none empty, whose numbers of rows are known
 * (find_rows): first_rows gets the first of each, *borders is the caller's to free.
 */
int
gpusort_merge_cut(const GpuSortMerge *merge, uint32_t most, uint64_t *first_rows, GpuSortBorders **borders,
				  GpuSortError *error)
{
	uint64_t rows = merge->source.runs->rows;
	GpuSortBorders *made = gpusort_borders_make(merge->bits, most);
	uint64_t per_range = rows / most;

	if (made == NULL)
		return gpusort_error_memory(error);
	made->ranges = 1;
	first_rows[0] = 0;
	for (uint32_t at = 1; at < merge->count && made->ranges < most; at++)
	{
		const GpuSortMergePartition *partition = merge->partitions[at];

		if (partition->first_row <= first_rows[made->ranges - 1] || partition->first_row >= rows ||
			partition->first_row - first_rows[made->ranges - 1] < per_range)
			continue;
		memcpy(made->keys + (size_t) (made->ranges - 1) * made->words, partition->first_key, made->words * sizeof(uint64_t));
		first_rows[made->ranges++] = partition->first_row;
	}
	*borders = made;
	return 0;
}

/* The same where the borders are given, at which partitions begin; ranges may be empty. */
int
gpusort_merge_cut_like(const GpuSortMerge *merge, const GpuSortBorders *borders, uint64_t *first_rows,
					   GpuSortError *error)
{
	uint32_t words = merge->source.request->key_words;
	uint32_t at = 0;

	if (borders->ranges > 0)
		first_rows[0] = 0;
	for (uint32_t i = 1; i < borders->ranges; i++)
	{
		uint64_t key[GPUSORT_MAX_KEY_WORDS];

		border_key(merge, borders, i - 1, key);
		while (at < merge->count &&
			   (merge->partitions[at]->first_key == NULL ||
				gpusort_compare_keys(merge->partitions[at]->first_key, key, words) < 0))
			at++;
		if (at < merge->count && gpusort_compare_keys(merge->partitions[at]->first_key, key, words) == 0)
			first_rows[i] = merge->partitions[at]->first_row;
		else
		{
			*error = (GpuSortError){.reason = GPUSORT_REASON_ORDER_CHECK,
									.text = "no partition of a merge begins at a border of ranges"};
			return -1;
		}
	}
	return 0;
}
