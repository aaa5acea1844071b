/*-------------------------------------------------------------------------
 *
 * ingest.c
 *	  That the host engine knows the same of rows that several threads took in as of
 *	  those that one did, and that it is right; that none takes in what makes no sense.
 *	  Calls host/rows.c itself: no client sees what it knows.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include "service/host/rows.h"
#include "testlib.h"

#define CHUNKS 3

/* So many bytes behind what is taken in are to stay as they are; there is a page. */
#define BEYOND 64

typedef enum Order
{
	ORDER_ASCENDING,
	ORDER_DESCENDING,
	ORDER_EQUAL, /* counts as ascending */
	ORDER_MIXED,
	ORDER_ONE_LOWER, /* ascending but for one row */
	ORDER_ONE_AGAIN, /* descending but for a row that equals the one before */
	ORDER_COUNT
} Order;

static const char *const order_names[ORDER_COUNT] = {
	"ascending", "descending", "equal", "mixed", "ascending but for one", "descending but for one"};

/* Rows in chunks, as a client puts them. */
typedef struct Shape
{
	uint32_t words;
	uint32_t rows; /* per chunk */
	uint32_t length;
	Order order;
	uint32_t odd; /* the row that is not as the others, of the last chunk */
} Shape;

/* A sort, but for what has nothing to do with taking in. */
typedef struct Taker
{
	GpuSort sort;
	GpuSortHostChunk chunk;
} Taker;

static const int never;
static char *chunk;
static GpuSortThreads *threads[2];
static Taker takers[2]; /* with one thread, and with many */

static void
make_key(const Shape *shape, uint32_t c, uint32_t row, uint64_t *key)
{
	const uint64_t all = CHUNKS * (uint64_t) shape->rows;
	const bool odd = c + 1 == CHUNKS && row == shape->odd;
	uint64_t number = c * (uint64_t) shape->rows + row;

	if (shape->order == ORDER_ONE_LOWER && odd)
		number -= 2;
	if (shape->order == ORDER_ONE_AGAIN && odd)
		number--;
	for (uint32_t w = 0; w < shape->words; w++)
		key[w] = UINT64_C(0x8000000000000000) + w;
	switch (shape->order)
	{
		case ORDER_ASCENDING:
		case ORDER_ONE_LOWER:
			key[shape->words - 1] = number;
			break;
		case ORDER_DESCENDING:
		case ORDER_ONE_AGAIN:
			key[shape->words - 1] = all - number;
			break;
		case ORDER_MIXED:
			for (uint32_t w = 0; w < shape->words; w++)
				key[w] = (number * 7 + w) * UINT64_C(0x9E3779B97F4A7C15);
			break;
		case ORDER_EQUAL:
		case ORDER_COUNT:
			break;
	}
}

/* Makes a chunk; returns its bytes. */
static uint32_t
fill(const Shape *shape, uint32_t c)
{
	const uint32_t record = 8 * shape->words + GPUSORT_ALIGN8(shape->length);

	if (shape->rows * (record + sizeof(uint32_t)) > GPUSORT_CHUNK_BYTES)
		bail("too many rows");
	for (uint32_t row = 0; row < shape->rows; row++)
	{
		char *at = chunk + (size_t) row * record;

		memset(at, row + c, record);
		make_key(shape, c, row, (uint64_t *) at);
		memcpy(at + 8 * shape->words, &shape->length, 4);
		*gpusort_chunk_offset(chunk, row) = row * record;
	}
	return shape->rows * record;
}

static void
start(Taker *taker, const Shape *shape, GpuSortThreads *with)
{
	memset(&taker->sort, 0, sizeof(taker->sort));
	taker->sort.threads = with;
	taker->sort.cancelled = &never;
	taker->sort.key_words = shape->words;
	taker->sort.inline_words = shape->words <= GPUSORT_HOST_INLINE_WORDS ? shape->words : 0;
	taker->sort.entry_words = taker->sort.inline_words + 1;
	taker->sort.may_tie = true;
	taker->sort.ascending = taker->sort.descending = true;
	memset(taker->sort.all, 0xFF, sizeof(taker->sort.all));
}

static int
take(Taker *taker, uint32_t rows, uint32_t bytes)
{
	GpuSortError error;

	memset(taker->chunk.records, 0xA5, bytes + BEYOND);
	memset(taker->chunk.entries, 0xA5, rows * taker->sort.entry_words * sizeof(uint64_t) + BEYOND);
	if (gpusort_host_ingest(&taker->sort, chunk, rows, bytes, &taker->chunk, &error) != 0)
		return error.reason;
	taker->sort.rows += rows;
	taker->sort.nchunks++;
	return 0;
}

/* Returns true if both know and have the same, of so many rows and bytes. */
static bool
same(uint32_t rows, uint32_t bytes)
{
	const GpuSort *a = &takers[0].sort;
	const GpuSort *b = &takers[1].sort;

	return a->rows == b->rows && a->row_bytes == b->row_bytes && a->ref_sum == b->ref_sum &&
		a->ascending == b->ascending && a->descending == b->descending &&
		memcmp(a->any, b->any, sizeof(a->any)) == 0 && memcmp(a->all, b->all, sizeof(a->all)) == 0 &&
		memcmp(a->last_key, b->last_key, sizeof(a->last_key)) == 0 &&
		memcmp(takers[0].chunk.records, takers[1].chunk.records, bytes + BEYOND) == 0 &&
		memcmp(takers[0].chunk.entries, takers[1].chunk.entries, rows * a->entry_words * sizeof(uint64_t) + BEYOND) == 0;
}

/* Returns true if what is known of the keys follows from how they were made. */
static bool
right(const Shape *shape)
{
	const GpuSort *sort = &takers[1].sort;
	uint64_t any[GPUSORT_MAX_KEY_WORDS] = {0};
	uint64_t all[GPUSORT_MAX_KEY_WORDS];
	uint64_t key[GPUSORT_MAX_KEY_WORDS];

	memset(all, 0xFF, sizeof(all));
	for (uint32_t c = 0; c < CHUNKS; c++)
	{
		for (uint32_t row = 0; row < shape->rows; row++)
		{
			make_key(shape, c, row, key);
			for (uint32_t w = 0; w < shape->words; w++)
			{
				any[w] |= key[w];
				all[w] &= key[w];
			}
		}
	}
	return sort->rows == CHUNKS * (uint64_t) shape->rows &&
		sort->row_bytes == sort->rows * GPUSORT_ALIGN8(shape->length) &&
		sort->ascending == (shape->order == ORDER_ASCENDING || shape->order == ORDER_EQUAL) &&
		sort->descending == (shape->order == ORDER_DESCENDING) &&
		memcmp(sort->any, any, sizeof(any)) == 0 && memcmp(sort->all, all, sizeof(all)) == 0 &&
		memcmp(sort->last_key, key, 8 * shape->words) == 0;
}

static bool
test_shape(const Shape *shape)
{
	bool good = true;

	for (int t = 0; t < 2; t++)
		start(&takers[t], shape, threads[t]);
	for (uint32_t c = 0; c < CHUNKS; c++)
	{
		uint32_t bytes = fill(shape, c);

		for (int t = 0; t < 2; t++)
			good = take(&takers[t], shape->rows, bytes) == 0 && good;
		good = good && same(shape->rows, bytes) && memcmp(takers[1].chunk.records, chunk, bytes) == 0;
	}
	return good && right(shape);
}

static void
test_shapes(uint32_t words)
{
	/* around what is taken in by one thread, few rows that are long, and many */
	static const struct
	{
		uint32_t rows;
		uint32_t length;
	} sizes[] = {{2, 9}, {250, 9}, {1000, 100}, {3, 100000}, {7, 50001}, {8, 50000}, {9, 50000}, {9999, 24}};

	for (int order = 0; order < ORDER_COUNT; order++)
	{
		bool good = true;

		for (int i = 0; i < 8; i++)
		{
			Shape shape = {.words = words, .rows = sizes[i].rows, .length = sizes[i].length, .order = order};

			/* the odd row anywhere, also where one part ends and the next begins */
			for (uint32_t p = 0; p <= 8; p++)
			{
				shape.odd = p * shape.rows / 8;
				shape.odd -= shape.odd == shape.rows;
				good = test_shape(&shape) && good;
				if (order != ORDER_ONE_LOWER && order != ORDER_ONE_AGAIN)
					break;
			}
		}
		ok(good, "%u words, %s: eight threads know what one does", words, order_names[order]);
	}
}

/* A row that makes no sense is found wherever it is, and the sort is as it was. */
static void
test_damage(uint32_t words)
{
	const Shape shape = {.words = words, .rows = 4000, .length = 24, .order = ORDER_MIXED};
	bool good = true;

	for (uint32_t p = 0; p < 16; p++)
	{
		const uint32_t row = p * shape.rows / 16 + p;
		GpuSort before;
		uint32_t bytes = fill(&shape, 0);

		for (int t = 0; t < 2; t++)
		{
			start(&takers[t], &shape, threads[t]);
			good = take(&takers[t], shape.rows, bytes) == 0 && good;
		}
		if (p % 2)
			*gpusort_chunk_offset(chunk, row) = bytes - 8;
		else
			memset(chunk + *gpusort_chunk_offset(chunk, row) + 8 * words, 0, 4);
		for (int t = 0; t < 2; t++)
		{
			before = takers[t].sort;
			good = take(&takers[t], shape.rows, bytes) == GPUSORT_REASON_BAD_CHUNK && good;
			good = memcmp(&before, &takers[t].sort, sizeof(before)) == 0 && good;
		}
	}
	ok(good, "%u words: a row that makes no sense is found wherever it is", words);
}

int
main(void)
{
	static const uint32_t widths[] = {1, 2, 3, 4, 5, 32};

	chunk = aligned_alloc(4096, GPUSORT_CHUNK_BYTES);
	for (int t = 0; t < 2; t++)
	{
		threads[t] = gpusort_threads_create(t ? 8 : 1);
		takers[t].chunk.records = aligned_alloc(4096, GPUSORT_CHUNK_BYTES + 4096);
		takers[t].chunk.entries = aligned_alloc(4096, GPUSORT_CHUNK_BYTES + 4096);
		if (chunk == NULL || threads[t] == NULL || takers[t].chunk.records == NULL || takers[t].chunk.entries == NULL)
			bail("no memory");
	}
	for (int i = 0; i < 6; i++)
	{
		test_shapes(widths[i]);
		test_damage(widths[i]);
	}
	for (int t = 0; t < 2; t++)
	{
		gpusort_threads_destroy(threads[t]);
		free(takers[t].chunk.records);
		free(takers[t].chunk.entries);
	}
	free(chunk);
	return done_testing();
}
