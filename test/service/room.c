/*-------------------------------------------------------------------------
 *
 * room.c
 *	  That a sort of the host engine has all memory it takes when it has a reserve:
 *	  put, sort and emit ask for none, and a reserve that gets none leaves
 *	  what was put to be sorted.
 *
 * Linked so that the engine's malloc, calloc, realloc and mmap are those here.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "service/engine.h"
#include "testlib.h"

#define ROW_BYTES 24

extern void *__real_malloc(size_t size);
extern void *__real_calloc(size_t n, size_t size);
extern void *__real_realloc(void *old, size_t size);
extern void *__real_mmap(void *start, size_t size, int protection, int flags, int file, off_t offset);

/* The engine's thread that gives memory back works beside us, but asks for none. */
static bool denied;   /* everything that is asked for now is */
static int countdown; /* the so many-th thing asked for is; 0: none */
static bool lasting;  /* and all after it */
static int asked;     /* how much was denied */

static bool
is_denied(void)
{
	bool result = denied || (countdown > 0 && --countdown == 0);

	denied = denied || (result && lasting);
	asked += result;
	return result;
}

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_mmap(void *start, size_t size, int protection, int flags, int file, off_t offset);

void *
__wrap_malloc(size_t size)
{
	return is_denied() ? NULL : __real_malloc(size);
}

void *
__wrap_calloc(size_t n, size_t size)
{
	return is_denied() ? NULL : __real_calloc(n, size);
}

void *
__wrap_realloc(void *old, size_t size)
{
	return is_denied() ? NULL : __real_realloc(old, size);
}

void *
__wrap_mmap(void *start, size_t size, int protection, int flags, int file, off_t offset)
{
	return is_denied() ? MAP_FAILED : __real_mmap(start, size, protection, flags, file, offset);
}

static const GpuSortEngineOps *ops = &gpusort_host_engine;
static GpuSortEngine *engine;
static char *chunk;
static uint32_t words; /* of keys */

/*
 * Word by word one bit of the row's number, written all over the word, and the rest in the last
 * one: so every word but the last leaves runs of equal keys for all threads.
 */
static void
make_key(uint64_t *key, uint64_t row)
{
	uint64_t mixed = row * UINT64_C(0x9E3779B97F4A7C15);

	for (uint32_t w = 0; w + 1 < words; w++)
		key[w] = w < 2 && (mixed >> (63 - w) & 1) ? UINT64_MAX : 0;
	key[words - 1] = mixed;
}

/* Fills the chunk with rows from a number on; returns its bytes. */
static uint32_t
fill(uint64_t from, uint32_t rows)
{
	const uint32_t record = 8 * words + ROW_BYTES;

	for (uint32_t i = 0; i < rows; i++)
	{
		char *at = chunk + i * record;
		const uint32_t length = ROW_BYTES;

		make_key((uint64_t *) at, from + i);
		memset(at + 8 * words, 0, ROW_BYTES);
		memcpy(at + 8 * words, &length, 4);
		memcpy(at + 8 * words + 8, at + 8 * (words - 1), 8);
		memcpy(at + 8 * words + 16, at, 8);
		*gpusort_chunk_offset(chunk, i) = i * record;
	}
	return rows * record;
}

/* Reads so many rows, which are all; returns how many came, in order. */
static uint64_t
read_rows(GpuSort *sort, uint64_t all)
{
	GpuSortEmitted emitted = {.last = 0};
	uint64_t before[2] = {0, 0}; /* first and last word */
	uint64_t rows = 0;

	while (!emitted.last)
	{
		GpuSortError error;

		if (ops->emit(sort, rows, all, false, chunk, &emitted, &error) != 0)
			return 0;
		for (uint32_t i = 0; i < emitted.rows; i++, rows++)
		{
			uint64_t key[2];

			memcpy(&key[0], chunk + i * ROW_BYTES + 16, 8);
			memcpy(&key[1], chunk + i * ROW_BYTES + 8, 8);
			if (key[0] < before[0] || (words < 3 && key[0] == before[0] && key[1] < before[1]))
				return 0;
			memcpy(before, key, sizeof(key));
		}
	}
	return rows;
}

/* Sorts what was put, without any memory; returns true if all rows come, twice. */
static bool
sort_without_memory(GpuSort *sort, uint64_t rows)
{
	GpuSortOutcome outcome;
	GpuSortError error;
	bool good;

	denied = true;
	asked = 0;
	good = ops->sort(sort, &outcome, &error) == 0 && read_rows(sort, rows) == rows &&
		read_rows(sort, rows) == rows;
	denied = false;
	if (!good)
		diag("%s", error.text);
	return good && asked == 0;
}

/* Opens the engine with nothing mapped. */
static void
open_engine(void)
{
	GpuSortEngineConfig config = {.memory_limit = UINT64_C(1) << 30, .threads = 3};
	GpuSortError error;

	if (ops->open(&config, &engine, &error) != 0)
		bail("open: %s", error.text);
}

static GpuSort *
begin(void)
{
	static const int never = 0;
	GpuSortRequest request = {.key_words = words, .may_tie = 1};
	GpuSortPlace place;
	GpuSortError error;
	GpuSort *sort;

	if (ops->begin(engine, &request, &never, &sort, &place, &error) != 0)
		bail("begin: %s", error.text);
	return sort;
}

static bool
idle(void)
{
	GpuSortDevice device;

	ops->describe(engine, &device, 1);
	return device.memory_used == 0 && device.jobs == 0;
}

/* Chunks of all sizes, with reserves of more rows than they have, and several at a time. */
static void
test_sort(uint32_t key_words, uint64_t rows)
{
	uint32_t rows_max;
	GpuSort *sort;
	GpuSortError error;
	uint64_t put = 0;
	uint32_t reserved = 0;
	bool good = true;

	words = key_words;
	rows_max = GPUSORT_CHUNK_BYTES / (8 * words + ROW_BYTES + 4);
	sort = begin();
	for (uint32_t turn = 0; put < rows && good; turn++)
	{
		uint32_t n = turn % 4 == 3 ? 1 + rows_max / 3 : rows_max;

		while (reserved < 1 + turn % 3 && good)
		{
			good = ops->reserve(sort, rows_max, &error) == 0;
			reserved++;
		}
		n = n < rows - put ? n : rows - put;
		denied = true;
		asked = 0;
		good = good && ops->put(sort, chunk, n, fill(put, n), rows_max, &error) == 0 && asked == 0;
		denied = false;
		put += n;
		reserved--;
	}
	ok(good, "%u words: no put asks for memory", words);
	ok(sort_without_memory(sort, rows), "nor does the sort, or the output");
	ops->end(sort);
	ok(idle(), "all is given back");
}

/* The so many-th thing that reserves ask for is denied, once some rows were put, and perhaps all after it. */
static void
test_reserve(int which, bool all_after)
{
	GpuSort *sort;
	GpuSortError error;
	uint64_t put = 0;
	int rc = 0;

	words = 1;
	lasting = all_after;
	open_engine();
	sort = begin();
	for (int i = 0; i < 60; i++)
	{
		uint32_t n = 1000 + i * 1900;

		if (i == 2)
			countdown = which;
		rc = ops->reserve(sort, n, &error);
		if (rc != 0)
			break;
		if (ops->put(sort, chunk, n, fill(put, n), n, &error) != 0)
			bail("put: %s", error.text);
		put += n;
	}
	if (countdown > 0)
		bail("thing %d was never asked for", which);
	denied = false;
	ok(rc == 0 ? !all_after : error.reason == GPUSORT_REASON_NO_MEMORY, "thing %d that is asked for%s is denied: %s",
	   which, all_after ? ", and all after it," : "", rc == 0 ? "the reserve does without" : "no reserve");
	ok(sort_without_memory(sort, put), "what was put is sorted");
	ops->end(sort);
	ok(idle(), "all is given back");
	ops->close(engine);
}

/* Begins a sort of so many rows and bytes; returns why it is refused. */
static GpuSortReason
begin_estimated(GpuSort **sort, bool spill, uint64_t rows, uint64_t bytes)
{
	static const int never = 0;
	GpuSortRequest request = {.key_words = 1, .spill = spill, .estimated_rows = rows, .estimated_bytes = bytes};
	GpuSortPlace place;
	GpuSortError error;

	if (ops->begin(engine, &request, &never, sort, &place, &error) == 0)
		return GPUSORT_REASON_NONE;
	return error.reason;
}

/* What is estimated is no matter to a sort that may be kept in runs, but that there is memory for one. */
static void
test_spill(void)
{
	const uint32_t rows_max = 1;
	GpuSort *sorts[8];
	GpuSort *refused;
	GpuSortError error;
	GpuSortReason reason = GPUSORT_REASON_NONE;
	int n = 0;

	open_engine();
	ok(begin_estimated(&refused, false, 1000, UINT64_C(1) << 40) == GPUSORT_REASON_MEMORY_LIMIT,
	   "what is larger than memory is refused");
	ok(begin_estimated(&sorts[n], true, UINT64_MAX, UINT64_MAX) == GPUSORT_REASON_NONE,
	   "unless it may be kept in runs");
	n++;
	while (ops->reserve(sorts[0], rows_max, &error) == 0)
		;
	ok(error.reason == GPUSORT_REASON_MEMORY_LIMIT, "it gets what there is");
	while (reason == GPUSORT_REASON_NONE && n < 8)
	{
		reason = begin_estimated(&sorts[n], true, UINT64_MAX, 0);
		if (reason != GPUSORT_REASON_NONE)
			break;
		while (ops->reserve(sorts[n], rows_max, &error) == 0)
			;
		n++;
	}
	ok(n > 4 && reason == GPUSORT_REASON_MEMORY_BUSY, "%d sorts at once get some, and one more is to wait", n);
	while (n > 0)
		ops->end(sorts[--n]);
	ok(idle(), "all is given back");
	ok(begin_estimated(&sorts[0], false, 0, 900 << 20) == GPUSORT_REASON_NONE, "also what is kept for others");
	ops->end(sorts[0]);
	ops->close(engine);
}

int
main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	chunk = aligned_alloc(4096, GPUSORT_CHUNK_BYTES);
	if (chunk == NULL)
		bail("no memory");
	test_spill();
	for (int which = 1; which <= 4; which++)
	{
		test_reserve(which, false);
		test_reserve(which, true);
	}

	/* the first with nothing mapped, the others with what those before have left */
	open_engine();
	test_sort(3, 700000);
	test_sort(1, 700000);
	test_sort(2, 700000);
	test_sort(5, 100000);
	ops->close(engine);
	return done_testing();
}
