/*-------------------------------------------------------------------------
 *
 * order.c
 *	  After the elements are sorted by the first word of the packed key: proof
 *	  of the order, further words, ties.
 *
 * A range is finished in two steps:
 *
 *	1. Keys are compared with their neighbours.  One out of order is an error,
 *	   never an answer.  Of the whole sort, the sum of the refs must be what it
 *	   was before, so no row was lost or doubled.
 *	2. Runs of equal keys are looked at, if there is anything to do for them.
 *	   Where the packed key has another word, a run's elements get that word as
 *	   their key, are sorted by it, and are finished in turn; so only tied rows
 *	   are ever touched again.  At the last word a run is rows with equal keys,
 *	   and its marks are set.
 *
 * Blocks of the range are tasks for the threads.  Blocks end where runs end, so
 * no two tasks touch the same run.  Runs too long for one thread are left over
 * and done by all threads, one after the other.
 *
 *-------------------------------------------------------------------------
 */
#include <pthread.h>
#include <string.h>

#include "service/errors.h"
#include "service/host/order.h"
#include "service/host/packing.h"
#include "service/host/sort.h"

#define BLOCK_ROWS ((size_t) 1 << 16)

/* Runs longer than this are sorted by all threads. */
#define LONG_RUN ((size_t) 1 << 17)

/* A range being finished. */
typedef struct Finish
{
	GpuSort *sort;
	GpuSortElement *elements;
	GpuSortElement *other;
	size_t n;
	uint32_t word; /* of the packed key, that the keys are */

	/* results, under the lock */
	pthread_mutex_t lock;
	bool disorder;
	uint64_t ref_sum;
	uint64_t tie_rows;
	GpuSortHostRun *long_runs;
	size_t nlong_runs;
} Finish;

/* Blocks of a range of n elements. */
static uint32_t
count_blocks(size_t n)
{
	return (n + BLOCK_ROWS - 1) / BLOCK_ROWS;
}

/* Work space for any range of a sort of so many rows: number of block_starts. */
size_t
gpusort_host_block_starts(uint64_t rows)
{
	return count_blocks(rows) + 1;
}

/* The same of long_runs.  A range may lie in a long run of the range of the word before. */
size_t
gpusort_host_long_runs(const GpuSort *sort, uint64_t rows)
{
	return (rows / LONG_RUN + 1) * sort->key_words;
}

static bool
out_of_order(const GpuSortElement *elements, size_t n)
{
	bool disorder = false;

	for (size_t i = 1; i < n; i++)
		disorder |= elements[i].key < elements[i - 1].key;
	return disorder;
}

static void
check_block(void *arg, uint32_t task)
{
	Finish *finish = arg;
	size_t start = task * BLOCK_ROWS;
	size_t n = finish->n - start;
	uint64_t ref_sum = 0;
	bool disorder;

	if (gpusort_host_cancelled(finish->sort))
		return;

	/* one more than the block has, to compare across its end */
	disorder = out_of_order(finish->elements + start, n > BLOCK_ROWS ? BLOCK_ROWS + 1 : n);
	for (size_t i = start; i < start + (n > BLOCK_ROWS ? BLOCK_ROWS : n); i++)
		ref_sum += finish->elements[i].ref >> 1;
	pthread_mutex_lock(&finish->lock);
	finish->disorder |= disorder;
	finish->ref_sum += ref_sum;
	pthread_mutex_unlock(&finish->lock);
}

/* Gives n elements that tie so far the next word of their packed keys. */
static void
load_word(const GpuSort *sort, GpuSortElement *elements, size_t n, uint32_t word)
{
	for (size_t i = 0; i < n; i++)
	{
		if (i + 8 < n)
			__builtin_prefetch(gpusort_host_key(sort, elements[i + 8].ref));
		elements[i].key = gpusort_packing_word(&sort->packing,
											   gpusort_host_key(sort, elements[i].ref), word);
	}
}

/*
 * Marks the rows of a run of equal keys; returns how many of them count as tied.
 * With a limit only the runs that start before it are emitted, and count.
 * With run_rows this is done when it is known which rows are kept (pick.c).
 */
static uint64_t
mark_run(const GpuSort *sort, GpuSortElement *elements, size_t length)
{
	uint64_t marks = 0;

	if (sort->run_rows > 0)
		return 0;
	for (size_t i = 0; i < length; i++)
		marks |= elements[i].ref & GPUSORT_HOST_REF_MARK;
	elements[length - 1].ref &= ~GPUSORT_HOST_REF_MARK;
	if (length == 1 || marks == 0)
		return 0;
	return sort->limit == 0 || (uint64_t) (elements - sort->elements) < sort->limit ? length : 0;
}

/*
 * Finishes n sorted elements on this thread,
 * adding to *tie_rows; false if they are out of order.
 * Runs of LONG_RUN and more are only noted in finish, if it is there.
 */
static bool
finish_runs(GpuSort *sort, GpuSortElement *elements, GpuSortElement *other, size_t n, uint32_t word,
			uint64_t *tie_rows, Finish *finish, size_t offset)
{
	bool last_word = word + 1 == sort->packing.words;
	size_t end;

	for (size_t start = 0; start < n; start = end)
	{
		uint64_t key = elements[start].key;
		size_t length;

		for (end = start + 1; end < n && elements[end].key == key; end++)
			;
		length = end - start;
		if (length == 1 || last_word)
			*tie_rows += mark_run(sort, elements + start, length);
		else if (length > LONG_RUN && finish != NULL)
		{
			pthread_mutex_lock(&finish->lock);
			finish->long_runs[finish->nlong_runs++] = (GpuSortHostRun){.start = offset + start, .length = length};
			pthread_mutex_unlock(&finish->lock);
		}
		else
		{
			load_word(sort, elements + start, length, word + 1);
			gpusort_host_sort_small(elements + start, other + start, length, false);
			if (out_of_order(elements + start, length) ||
				!finish_runs(sort, elements + start, other + start, length, word + 1, tie_rows,
							 NULL, 0))
				return false;
		}
	}
	return true;
}

/* The first element at or after i that does not have the key of the one before it. */
static size_t
run_boundary(const Finish *finish, size_t i)
{
	const GpuSortElement *elements = finish->elements;
	size_t high = finish->n;
	uint64_t key;

	if (i == 0 || i >= finish->n)
		return i < finish->n ? i : finish->n;
	key = elements[i - 1].key;
	while (i < high)
	{
		size_t middle = i + (high - i) / 2;

		if (elements[middle].key == key)
			i = middle + 1;
		else
			high = middle;
	}
	return i;
}

/* Blocks of a range, by where they start; one more for the end. */
typedef struct Blocks
{
	Finish *finish;
	size_t *starts;
} Blocks;

static void
finish_block(void *arg, uint32_t task)
{
	Blocks *blocks = arg;
	Finish *finish = blocks->finish;
	size_t start = blocks->starts[task];
	size_t n = blocks->starts[task + 1] - start;
	uint64_t tie_rows = 0;
	bool good;

	if (n == 0 || gpusort_host_cancelled(finish->sort))
		return;
	good = finish_runs(finish->sort, finish->elements + start,
					   finish->other + start, n,
					   finish->word, &tie_rows, finish, start);
	pthread_mutex_lock(&finish->lock);
	finish->tie_rows += tie_rows;
	if (!good)
		finish->disorder = true;
	pthread_mutex_unlock(&finish->lock);
}

typedef struct Load
{
	const GpuSort *sort;
	GpuSortElement *elements;
	size_t n;
	uint32_t word;
} Load;

static void
load_block(void *arg, uint32_t task)
{
	Load *load = arg;
	size_t start = task * BLOCK_ROWS;
	size_t n = load->n - start < BLOCK_ROWS ? load->n - start : BLOCK_ROWS;

	if (!gpusort_host_cancelled(load->sort))
		load_word(load->sort, load->elements + start, n, load->word);
}

static int finish_range(GpuSort *sort, GpuSortElement *elements, GpuSortElement *other, size_t n,
						uint32_t word, GpuSortHostRun *long_runs, GpuSortError *error);

/* The next word for a run too long for one thread; long_runs: work space. */
static int
finish_long_run(const Finish *range, GpuSortHostRun run, GpuSortHostRun *long_runs, GpuSortError *error)
{
	GpuSort *sort = range->sort;
	GpuSortElement *elements = range->elements + run.start;
	GpuSortElement *other = range->other + run.start;
	uint32_t word = range->word + 1;
	Load load = {.sort = sort, .elements = elements, .n = run.length, .word = word};

	gpusort_threads_run(sort->threads, count_blocks(run.length), load_block, &load);
	if (gpusort_host_sort_parallel(sort, elements, other, run.length, false, error) != 0)
		return -1;
	return finish_range(sort, elements, other, run.length, word, long_runs, error);
}

/* The second step of a range: its runs. */
static int
finish_all_runs(Finish *finish, GpuSortError *error)
{
	GpuSort *sort = finish->sort;
	uint32_t nblocks = count_blocks(finish->n);
	Blocks blocks = {.finish = finish, .starts = sort->block_starts};

	for (uint32_t b = 0; b <= nblocks; b++)
		blocks.starts[b] = run_boundary(finish, b * BLOCK_ROWS);
	gpusort_threads_run(sort->threads, nblocks, finish_block, &blocks);
	sort->tie_rows += finish->tie_rows;
	for (size_t i = 0; i < finish->nlong_runs; i++)
	{
		if (finish_long_run(finish, finish->long_runs[i], finish->long_runs + finish->nlong_runs, error) != 0)
			return -1;
	}
	return 0;
}

static int
error_disorder(GpuSortError *error)
{
	error->reason = GPUSORT_REASON_ORDER_CHECK;
	strcpy(error->text, "the host engine found its sorted rows out of order or not all there");
	return -1;
}

/* Finishes a range that is sorted by a word of the packed key; long_runs: work space. */
static int
finish_range(GpuSort *sort, GpuSortElement *elements, GpuSortElement *other, size_t n, uint32_t word,
			 GpuSortHostRun *long_runs, GpuSortError *error)
{
	Finish finish = {.sort = sort,
					 .elements = elements,
					 .other = other,
					 .n = n,
					 .word = word,
					 .long_runs = long_runs,
					 .lock = PTHREAD_MUTEX_INITIALIZER};
	int rc = 0;

	gpusort_threads_run(sort->threads, count_blocks(n), check_block, &finish);
	if (gpusort_host_cancelled(sort))
		rc = gpusort_error_cancelled(error);
	else if (finish.disorder || (word == 0 && finish.ref_sum != sort->ref_sum))
		rc = error_disorder(error);
	else if (word + 1 < sort->packing.words || (sort->may_tie && sort->run_rows == 0))
	{
		rc = finish_all_runs(&finish, error);
		if (rc == 0 && finish.disorder)
			rc = error_disorder(error);
	}
	pthread_mutex_destroy(&finish.lock);
	if (rc == 0 && gpusort_host_cancelled(sort))
		rc = gpusort_error_cancelled(error);
	return rc;
}

/*
 * Finishes the sort: its elements, which are sorted by the first word of the
 * packed key, are in their final order then, with their marks, and tie_rows is
 * filled, both unless there is run_rows.  Fails with ORDER_CHECK when rows are out of order or not all there.
 */
int
gpusort_host_finish(GpuSort *sort, GpuSortError *error)
{
	sort->tie_rows = 0;
	return finish_range(sort, sort->elements, sort->other, sort->rows, 0, sort->long_runs, error);
}
