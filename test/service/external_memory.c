/*-------------------------------------------------------------------------
 *
 * external_memory.c
 *	  Sorts that do not fit the memory, when there are others: memory that comes and goes,
 *	  sorts side by side, and sorts that wait.
 *
 *-------------------------------------------------------------------------
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "external_case.h"

/* One sort among others takes so many times as long at most as what was sorted before it in the same test. */
#define TIMES_MOST 20

/* Runs of another engine's sort are kept in the host's memory, as far as there is any. */
void
test_runs_in_memory(void)
{
	GpuSortEngineOps device_ops = gpusort_host_engine;
	GpuSortEngine *engine = open_engine(16 * MIB);
	Sort sort;
	Rows rows;
	const char *problem;

	device_ops.kind = GPUSORT_ENGINE_CUDA;
	run_memory = gpusort_host_memory_create(40 * MIB);
	rows_make(&rows, 500000, 1, KEYS_RANDOM, 80, 140, 20);
	external_begin_with(&sort, &device_ops, engine, (GpuSortRequest){.key_words = 1, .may_tie = 1});
	problem = sort_rows(&sort, &rows);
	if (problem == NULL)
		problem = read_rows(&sort, &rows, 0, rows.n);
	if (problem == NULL && (sort.outcome.run_memory == 0 || sort.outcome.run_disk == 0))
		problem = "runs are in one place alone";
	ok(problem == NULL, "%llu MB of runs in memory, %llu in files: %s",
	   (unsigned long long) (sort.outcome.run_memory / MIB),
	   (unsigned long long) (sort.outcome.run_disk / MIB), told(problem));
	external_end(&sort);
	ok(is_idle(engine) && gpusort_host_memory_used(run_memory) == 0, "all memory is back");
	rows_free(&rows);
	gpusort_host_engine.close(engine);
	gpusort_host_memory_destroy(run_memory);
	run_memory = NULL;
}

/* Another sort that takes memory, and gives it back, time and again. */
typedef struct Hog
{
	pthread_t thread;
	GpuSortEngine *engine;
	int stop;  /* atomic */
	int holds; /* atomic: how often it had what it could get */
} Hog;

static void *
hog_main(void *arg)
{
	Hog *hog = arg;
	const int never = 0;

	while (!__atomic_load_n(&hog->stop, __ATOMIC_RELAXED))
	{
		GpuSortRequest request = {.key_words = 1};
		GpuSortPlace place;
		GpuSortError error;
		GpuSort *sort;

		if (gpusort_host_engine.begin(hog->engine, &request, &never, &sort, &place, &error) == 0)
		{
			while (gpusort_host_engine.reserve(sort, 20000, &error) == 0)
				;
			__atomic_fetch_add(&hog->holds, 1, __ATOMIC_RELAXED);
			usleep(1000 + rand() % 60000);
			gpusort_host_engine.end(sort);
		}
		usleep(rand() % 20000);
	}
	return NULL;
}

static void
test_scarce_memory(Keys keys, uint64_t memory, int hogs, int cpus)
{
	Hog hog[4];
	GpuSortEngine *engine = open_engine(memory);
	Sort sort;
	Rows rows;
	const char *problem;
	double start = now_ms();
	int holds = 0;
	int before = processors;

	processors = cpus;
	for (int i = 0; i < hogs; i++)
	{
		hog[i] = (Hog){.engine = engine};
		pthread_create(&hog[i].thread, NULL, hog_main, &hog[i]);
	}
	rows_make(&rows, 350000, 1, keys, 80, 140, 20);
	external_begin(&sort, engine, (GpuSortRequest){.key_words = 1, .may_tie = 1});
	problem = sort_rows(&sort, &rows);
	for (int i = 0; i < 2 && problem == NULL; i++)
		problem = read_rows(&sort, &rows, 0, rows.n);
	for (int i = 0; i < hogs; i++)
	{
		__atomic_store_n(&hog[i].stop, 1, __ATOMIC_RELAXED);
		pthread_join(hog[i].thread, NULL);
		holds += hog[i].holds;
	}
	ok(problem == NULL, "%d others take %llu MB, keys %d, %d processors: %u runs, %d times, %.0f ms: %s", hogs,
	   (unsigned long long) (memory / MIB), keys, cpus, sort.outcome.runs, holds, now_ms() - start, told(problem));
	external_end(&sort);
	ok(is_idle(engine), "all memory is back");
	rows_free(&rows);
	gpusort_host_engine.close(engine);
	processors = before;
}

/* Two sorts of one engine at once. */
typedef struct Sorter
{
	pthread_t thread;
	GpuSortEngine *engine;
	Rows rows;
	const char *problem;
	char text[GPUSORT_TEXT_BYTES];
} Sorter;

static void *
sorter_main(void *arg)
{
	Sorter *sorter = arg;
	Sort sort;

	external_begin(&sort, sorter->engine, (GpuSortRequest){.key_words = sorter->rows.key_words, .may_tie = 1});
	sorter->problem = sort_rows(&sort, &sorter->rows);
	if (sorter->problem == NULL)
		sorter->problem = read_rows(&sort, &sorter->rows, 0, sorter->rows.n);
	if (sorter->problem != NULL)
	{
		snprintf(sorter->text, sizeof(sorter->text), "%s", sorter->problem);
		sorter->problem = sorter->text;
	}
	external_end(&sort);
	return NULL;
}

static void
test_side_by_side(uint64_t memory)
{
	Sorter sorters[4] = {0};
	GpuSortEngine *engine = open_engine(memory);
	int good = 0;

	for (int i = 0; i < 4; i++)
	{
		sorters[i].engine = engine;
		rows_make(&sorters[i].rows, 150000, 1 + i % 2, i == 2 ? KEYS_EQUAL : KEYS_RANDOM, 80, 140, 10);
	}
	for (int i = 0; i < 4; i++)
		pthread_create(&sorters[i].thread, NULL, sorter_main, &sorters[i]);
	for (int i = 0; i < 4; i++)
	{
		pthread_join(sorters[i].thread, NULL);
		if (sorters[i].problem != NULL)
			diag("sort %d: %s", i, sorters[i].problem);
		good += sorters[i].problem == NULL;
		rows_free(&sorters[i].rows);
	}
	ok(good == 4, "4 sorts at once in %llu MB", (unsigned long long) (memory / MIB));
	ok(is_idle(engine), "all memory is back");
	gpusort_host_engine.close(engine);
}

/*
 * Sorts that are read a little and then left, as by cursors, each by several readers: they give way to one that
 * needs what they have, and go on later.
 */
static void
test_left_sorts(uint64_t memory, uint32_t readers)
{
	GpuSortEngine *engine = open_engine(memory);
	Sort sorts[4];
	Rows rows[4];
	uint64_t next[4];
	const char *problem = NULL;
	double start = now_ms();

	for (int i = 0; i < 4; i++)
	{
		rows_make(&rows[i], 200000, 1, KEYS_RANDOM, 80, 140, 10);
		external_begin(&sorts[i], engine,
					   (GpuSortRequest){.key_words = 1, .may_tie = 1, .shared = readers > 0, .readers = readers});
		if (problem == NULL)
			problem = sort_rows(&sorts[i], &rows[i]);
		next[i] = 0;
		for (uint32_t part = 0; problem == NULL && part <= readers; part++)
		{
			uint64_t at = part * 50000;

			problem = emit_chunk(&sorts[i], &rows[i], part == 0 ? &next[i] : &at, rows[i].n);
		}
	}
	for (int i = 4; problem == NULL && i-- > 0;)
		problem = read_rows(&sorts[i], &rows[i], next[i], rows[i].n);
	ok(problem == NULL, "4 sorts in %llu MB, of which 3 are left for a while, %u readers: %.0f ms: %s",
	   (unsigned long long) (memory / MIB), readers, now_ms() - start, told(problem));
	for (int i = 0; i < 4; i++)
	{
		external_end(&sorts[i]);
		rows_free(&rows[i]);
	}
	ok(is_idle(engine), "all memory is back");
	gpusort_host_engine.close(engine);
}

/* Sorts what was not put yet of the rows of each of n sorts, reads it all, and ends them; NULL, or what went wrong. */
static const char *
finish_sorts(Sort *sorts, int n, const Rows *rows)
{
	const char *problem = NULL;

	for (int i = 0; i < n; i++)
	{
		if (problem == NULL)
			problem = sort_rows(&sorts[i], rows);
		if (problem == NULL)
			problem = read_rows(&sorts[i], rows, 0, rows->n);
		external_end(&sorts[i]);
	}
	return problem;
}

/*
 * Sorts that begin when another one has its runs, and wait for rows, as those above it in a plan do: they have the room
 * for their first chunk, as many as there can be, and give it up to the one that is read.
 */
static void
test_waiting_sorts(uint64_t memory)
{
	GpuSortEngine *engine = open_engine(memory);
	Sort waiting[8];
	Sort sort;
	Rows rows;
	Rows few;
	const char *problem;
	double start;
	double sorting;
	int n = 0;

	rows_make(&rows, 200000, 1, KEYS_RANDOM, 80, 140, 10);
	rows_make(&few, 1000, 1, KEYS_RANDOM, 80, 140, 10);
	start = now_ms();
	external_begin(&sort, engine, (GpuSortRequest){.key_words = 1, .may_tie = 1});
	problem = sort_rows(&sort, &rows);
	sorting = now_ms() - start;
	while (n < 8 && external_try_begin(&waiting[n], engine))
		n++;
	start = now_ms();
	if (problem == NULL)
		problem = read_rows(&sort, &rows, 0, rows.n);
	ok(problem == NULL && now_ms() - start < TIMES_MOST * sorting,
	   "%d sorts wait for rows in %llu MB while one of %u runs is read: %.0f ms: %s", n,
	   (unsigned long long) (memory / MIB), sort.outcome.runs, now_ms() - start, told(problem));
	external_end(&sort);
	problem = finish_sorts(waiting, n, &few);
	ok(problem == NULL, "they sort their rows after it: %s", told(problem));
	ok(is_idle(engine), "all memory is back");
	rows_free(&rows);
	rows_free(&few);
	gpusort_host_engine.close(engine);
}

/*
 * A sort that waits for its rows, as one above others in a plan does, while these are sorted, as many as there can be,
 * and keep what they have: when its rows come it has the room that was made for them.
 */
static void
test_room_kept(uint64_t memory)
{
	GpuSortEngine *engine = open_engine(memory);
	Sort below[16];
	Sort above;
	Rows few;
	const char *problem = NULL;
	double start;
	double below_all;
	int n = 0;

	rows_make(&few, 60000, 1, KEYS_RANDOM, 80, 140, 10);
	if (!external_try_begin(&above, engine))
		bail("no memory for one sort");
	start = now_ms();
	while (problem == NULL && n < 16 && external_try_begin(&below[n], engine))
		problem = sort_rows(&below[n++], &few);
	ok(problem == NULL && n < 16, "%d sorts fit into %llu MB beside one that waits: %s", n,
	   (unsigned long long) (memory / MIB), told(problem));
	below_all = now_ms() - start;
	start = now_ms();
	problem = sort_rows(&above, &few);
	if (problem == NULL)
		problem = read_rows(&above, &few, 0, few.n);
	ok(problem == NULL && now_ms() - start < TIMES_MOST * below_all,
	   "it sorts its rows while they keep theirs: %.0f ms: %s", now_ms() - start, told(problem));
	external_end(&above);
	while (n > 0)
		external_end(&below[--n]);
	ok(is_idle(engine), "all memory is back");
	rows_free(&few);
	gpusort_host_engine.close(engine);
}

/*
 * Sorts that have taken some rows in, as many sorts as there can be, and wait for more while another one is read, as
 * those above others in a plan do: its merge makes do with what memory is left.
 */
static void
test_rows_kept(uint64_t memory)
{
	GpuSortEngine *engine = open_engine(memory);
	Sort above[16];
	Sort below;
	Rows many;
	Rows some;
	const char *problem;
	int n = 0;

	rows_make(&many, 200000, 1, KEYS_RANDOM, 80, 140, 10);
	rows_make(&some, 120000, 1, KEYS_RANDOM, 80, 140, 10);
	external_begin(&below, engine, (GpuSortRequest){.key_words = 1, .may_tie = 1});
	problem = sort_rows(&below, &many);
	while (problem == NULL && n < 16 && external_try_begin(&above[n], engine))
		problem = put_rows(&above[n++], &some, 60000);
	if (problem == NULL)
		problem = read_rows(&below, &many, 0, many.n);
	ok(problem == NULL && below.outcome.runs > 1 && n > 1,
	   "a sort of %u runs is read in %llu MB while %d that have rows wait for more: %s", below.outcome.runs,
	   (unsigned long long) (memory / MIB), n, told(problem));
	external_end(&below);
	problem = finish_sorts(above, n, &some);
	ok(problem == NULL, "they sort all their rows after it: %s", told(problem));
	ok(is_idle(engine), "all memory is back");
	rows_free(&many);
	rows_free(&some);
	gpusort_host_engine.close(engine);
}

void
test_all_scarce_memory(void)
{
	test_scarce_memory(KEYS_RANDOM, 64 * MIB, 1, 2);
	test_scarce_memory(KEYS_RANDOM, 64 * MIB, 2, 8);
	test_scarce_memory(KEYS_SKEWED, 48 * MIB, 3, 8);
	test_side_by_side(64 * MIB);
	test_side_by_side(40 * MIB);
	test_left_sorts(40 * MIB, 0);
	test_left_sorts(32 * MIB, 3);
	test_waiting_sorts(24 * MIB);
	test_waiting_sorts(40 * MIB);
	test_room_kept(64 * MIB);
	test_rows_kept(24 * MIB);
}
