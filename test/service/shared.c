/*-------------------------------------------------------------------------
 *
 * shared.c
 *	  Tests of the sort service: sorts whose rows several processes read.
 *
 *-------------------------------------------------------------------------
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "shared_case.h"

/* Takes RANGES into first_rows, with the number of rows behind the last; returns how many ranges there are. */
static uint32_t
expect_ranges(Client *owner, uint64_t rows)
{
	GpuSortMessage message = client_expect(owner, GPUSORT_MSG_RANGES);
	uint32_t ranges = message.u.ranges.ranges;

	if (ranges > GPUSORT_RANGES_MAX || (ranges == 0) != (message.u.ranges.chunk == UINT32_MAX))
		bail("%u ranges in chunk %u", ranges, message.u.ranges.chunk);
	if (ranges > 0)
	{
		memcpy(first_rows, client_chunk(owner, message.u.ranges.chunk), ranges * sizeof(uint64_t));
		free_chunk(owner, message.u.ranges.chunk);
	}
	first_rows[ranges] = rows;
	return ranges;
}

/* Asks for ranges in turns, ahead, and reads them. */
typedef struct Range
{
	uint64_t first;
	uint64_t end;
	uint32_t number;
	uint64_t place; /* so far */
} Range;

typedef struct Reader
{
	Client client;
	Range asked[GPUSORT_READS_MAX];
	int nasked;
} Reader;

/* Takes one DATA; NULL or what is wrong.  *read counts rows. */
static const char *
take_data(Reader *reader, const Rows *rows, uint64_t *read)
{
	GpuSortMessage data;
	Range *range = &reader->asked[0];
	const char *problem;

	if (!client_receive(&reader->client, &data, ANSWER_MS) || data.type != GPUSORT_MSG_DATA)
		return "no DATA came";
	if (data.u.data.epoch == reader->asked[1].number && reader->nasked > 1)
		range = &reader->asked[1];
	else if (data.u.data.epoch != range->number)
		return "rows of another READ";
	if (data.u.data.first != range->place)
		return "DATA tells another number of rows before it";
	problem = rows_check(rows, range->place, client_chunk(&reader->client, data.u.data.chunk), &data);
	free_chunk(&reader->client, data.u.data.chunk);
	if (problem != NULL)
		return problem;
	range->place += data.u.data.emitted.rows;
	*read += data.u.data.emitted.rows;
	if (range->place > range->end || data.u.data.emitted.last != (range->place == range->end))
		return "a range that ends elsewhere";
	if (!data.u.data.emitted.last)
		return NULL;
	if (range != &reader->asked[0])
		return "a later range is over first";
	reader->asked[0] = reader->asked[1];
	reader->nasked--;
	return NULL;
}

/* All ranges, in rising or random order, by the owner and as many readers. */
static void
test_readers(uint64_t n, Keys keys, uint32_t words, uint32_t bits, uint32_t most, int readers, bool shuffled)
{
	Reader all[MOST] = {0};
	uint32_t order[GPUSORT_RANGES_MAX];
	uint64_t read = 0;
	uint32_t next = 0;
	uint32_t ranges;
	const char *problem = NULL;
	uint64_t token;
	Rows rows;
	int busy;

	rows_make(&rows, n, words, keys, 16, 300, 20);
	token = sort_shared(&all[0].client, &rows);
	ranges = cut(&all[0].client, &rows, bits, most);
	for (int i = 1; i <= readers; i++)
		must_join(&all[i].client, token);
	for (uint32_t i = 0; i < ranges; i++)
	{
		uint32_t j = shuffled ? random64() % (i + 1) : i;

		order[i] = order[j];
		order[j] = i;
	}
	do
	{
		struct pollfd events[MOST];

		for (int i = 0; i <= readers; i++)
		{
			while (next < ranges && all[i].nasked < GPUSORT_READS_MAX)
			{
				Range *range = &all[i].asked[all[i].nasked++];
				uint32_t r = order[next++];

				*range = (Range){.first = first_rows[r], .end = first_rows[r + 1], .place = first_rows[r]};
				range->number = ask_rows(&all[i].client, range->first, range->end);
			}
		}
		busy = 0;
		for (int i = 0; i <= readers; i++)
		{
			if (all[i].nasked > 0)
				events[busy++] = (struct pollfd){.fd = all[i].client.socket, .events = POLLIN};
		}
		if (busy > 0 && poll(events, busy, ANSWER_MS) <= 0)
			problem = "no rows come";
		for (int e = 0; e < busy && problem == NULL; e++)
		{
			for (int i = 0; i <= readers && problem == NULL; i++)
			{
				if (events[e].revents != 0 && all[i].client.socket == events[e].fd)
					problem = take_data(&all[i], &rows, &read);
			}
		}
	} while (busy > 0 && problem == NULL);
	if (problem == NULL && read != n)
		problem = "not all rows were read";
	ok(problem == NULL, "%llu rows, keys %d of %u words by %u bits: %u ranges, %d readers, %s order: %s",
	   (unsigned long long) n, keys,
	   words, bits, ranges, readers, shuffled ? "any" : "rising", told(problem));
	for (int i = readers; i >= 0; i--)
		client_close(&all[i].client);
	rows_free(&rows);
}

/* Intervals that no cut made, of one row too, again and again. */
static void
test_intervals(void)
{
	Client owner;
	Rows rows;
	const char *problem = NULL;

	rows_make(&rows, 120000, 1, KEYS_RANDOM, 16, 200, 10);
	sort_shared(&owner, &rows);
	for (int i = 0; i < 60 && problem == NULL; i++)
	{
		uint64_t first = random64() % rows.n;
		uint64_t end = i % 3 == 0 ? first + 1 : i % 3 == 1 ? rows.n
														   : first + 1 + random64() % (rows.n - first);

		problem = sort_read_interval(&owner, &rows, first, end);
	}
	ok(problem == NULL, "intervals of all sizes: %s", told(problem));
	client_close(&owner);
	rows_free(&rows);
}

/* What is skipped does not come any more, and its chunks are others'. */
static void
test_skip(void)
{
	Client owner;
	Rows rows;
	GpuSortMessage data;
	const char *problem = NULL;

	rows_make(&rows, 150000, 1, KEYS_RANDOM, 100, 200, 0);
	sort_shared(&owner, &rows);
	for (int i = 0; i < 40 && problem == NULL; i++)
	{
		uint32_t number = ask_rows(&owner, 0, rows.n);

		/* at once, after a chunk, or a second READ behind it */
		if (i % 3 == 1)
		{
			data = client_expect(&owner, GPUSORT_MSG_DATA);
			free_chunk(&owner, data.u.data.chunk);
		}
		else if (i % 3 == 2)
			number = ask_rows(&owner, 10, 70000);
		client_send(&owner, GPUSORT_MSG_SKIP, (GpuSortMessage){.u.skip.number = number});
		problem = sort_read_interval(&owner, &rows, 5 * i, 5 * i + 60000);
		/* one that is over, and one twice */
		client_send(&owner, GPUSORT_MSG_SKIP, (GpuSortMessage){.u.skip.number = owner.epoch});
		client_send(&owner, GPUSORT_MSG_SKIP, (GpuSortMessage){.u.skip.number = number});
	}
	ok(problem == NULL, "rows after SKIP: %s", told(problem));
	ask_rows(&owner, 0, rows.n);
	ask_rows(&owner, 0, 100);
	client_send(&owner, GPUSORT_MSG_SKIP, (GpuSortMessage){.u.skip.number = owner.epoch - 1});
	do
	{
		data = client_expect(&owner, GPUSORT_MSG_DATA);
		free_chunk(&owner, data.u.data.chunk);
	} while (data.u.data.epoch != owner.epoch);
	ok(data.u.data.first == 0 && data.u.data.emitted.rows == 100 && data.u.data.emitted.last,
	   "the READ behind a skipped one goes on");
	client_close(&owner);
	rows_free(&rows);
}

/* A sort of no rows, and cuts that come after each other. */
static void
test_cuts(void)
{
	Client owner;
	Rows rows;
	Rows none;
	uint32_t chunks[2];
	uint32_t ranges;

	rows_make(&none, 0, 1, KEYS_RANDOM, 16, 16, 0);
	sort_shared(&owner, &none);
	ok(cut(&owner, &none, 64, 10) == 0, "no rows are no range");
	ok(cut(&owner, &none, 64, 1) == 0, "and no chunk is held for them");
	client_close(&owner);
	rows_free(&none);

	rows_make(&rows, 200000, 1, KEYS_RANDOM, 100, 100, 0);
	sort_shared(&owner, &rows);
	ok(cut(&owner, &rows, 64, 1) == 1 && first_rows[0] == 0, "one range is all rows");
	ok(cut(&owner, &rows, 1, 1000) == 2, "one bit is two ranges");
	ranges = cut(&owner, &rows, 64, GPUSORT_RANGES_MAX);
	ok(ranges == GPUSORT_RANGES_MAX, "as many ranges as there may be: %u", ranges);

	/* all chunks are the client's when it asks */
	ask_rows(&owner, 0, rows.n);
	for (int i = 0; i < 2; i++)
		chunks[i] = client_expect(&owner, GPUSORT_MSG_DATA).u.data.chunk;
	client_send(&owner, GPUSORT_MSG_SKIP, (GpuSortMessage){.u.skip.number = owner.epoch});
	send_cut(&owner, 64, 10, 0);
	free_chunk(&owner, chunks[0]);
	free_chunk(&owner, chunks[1]);
	for (GpuSortMessage message = {.magic = 0}; message.type != GPUSORT_MSG_RANGES;)
	{
		if (!client_receive(&owner, &message, ANSWER_MS))
			bail("no answer to CUT");
		if (message.type == GPUSORT_MSG_DATA || message.type == GPUSORT_MSG_RANGES)
			free_chunk(&owner, message.type == GPUSORT_MSG_DATA ? message.u.data.chunk : message.u.ranges.chunk);
	}
	ok(sort_read_interval(&owner, &rows, 0, rows.n) == NULL, "CUT waits for a chunk, and rows come after it");
	client_close(&owner);
	rows_free(&rows);
}

/* Two sorts of one process, and of others. */
static void
test_like(void)
{
	Client one;
	Client two;
	Client stranger;
	Rows rows;
	Rows fewer;
	uint64_t token;
	uint32_t ranges;
	uint64_t border;
	bool good = true;

	rows_make(&rows, 50000, 2, KEYS_RANDOM, 16, 16, 0);
	rows_make(&fewer, 20000, 1, KEYS_RANDOM, 16, 16, 0);
	clients_are_one_process(true);
	token = sort_shared(&one, &rows);
	ranges = cut(&one, &rows, 40, 20);
	border = rows.keys[2 * rows.order[first_rows[7]]];
	sort_shared(&two, &fewer);
	send_cut(&two, 40, 20, token);
	good = expect_ranges(&two, fewer.n) == ranges;
	ok(good && ranges == 20 && fewer.keys[fewer.order[first_rows[7] - 1]] >> 24 < border >> 24 &&
		   fewer.keys[fewer.order[first_rows[7]]] >> 24 >= border >> 24,
	   "a sort is cut at another one's borders");
	send_cut(&two, 40, 19, token);
	ok(fails(&two), "not into fewer ranges");
	client_close(&two);
	sort_shared(&two, &fewer);
	send_cut(&two, 41, 20, token);
	ok(fails(&two), "not by other bits");
	client_close(&two);
	sort_shared(&two, &fewer);
	send_cut(&two, 40, 20, token + 1);
	ok(fails(&two), "not like a sort that there is not");
	client_close(&two);
	token = sort_shared(&two, &fewer);
	send_cut(&two, 40, 20, token);
	ok(fails(&two), "not like itself");
	client_close(&two);

	token = sort_shared(&two, &fewer);
	send_cut(&one, 40, 20, token);
	ok(fails(&one), "not like a sort that was not cut");
	client_close(&one);
	cut(&two, &fewer, 40, 20);
	clients_are_one_process(false);
	sort_shared(&stranger, &fewer);
	send_cut(&stranger, 40, 20, token);
	ok(fails(&stranger), "not like a sort of another process");
	client_close(&stranger);
	client_close(&two);
	rows_free(&rows);
	rows_free(&fewer);
}

int
main(void)
{
	const char *const options[] = {"--staging-memory", "67108864", "--threads", "2", NULL};
	uint64_t seed = time(NULL);

	setvbuf(stdout, NULL, _IOLBF, 0);
	diag("seed %llu", (unsigned long long) seed);
	random_seed(seed);
	rows_make(&some_rows, 100000, 1, KEYS_RANDOM, 100, 200, 0);
	service_start(&service, options);

	test_readers(300000, KEYS_RANDOM, 1, 64, 64, 0, false);
	test_readers(300000, KEYS_RANDOM, 1, 64, 64, 1, false);
	test_readers(300000, KEYS_RANDOM, 2, 70, 64, READERS, false);
	test_readers(300000, KEYS_RANDOM, 2, 20, 1000, READERS, true);
	test_readers(300000, KEYS_SKEWED, 1, 64, 100, 3, true);
	test_readers(300000, KEYS_FEW, 3, 100, 100, 3, false);
	test_readers(300000, KEYS_EQUAL, 1, 64, 100, 3, false);
	test_readers(10, KEYS_RANDOM, 1, 64, 100, 3, true);
	test_readers(1, KEYS_RANDOM, 32, 2048, 100, 2, false);
	test_readers(0, KEYS_RANDOM, 1, 64, 100, 2, false);
	test_intervals();
	test_skip();
	test_cuts();
	test_like();
	test_misbehaviour();
	test_readers_that_go();
	test_owner_that_goes(false);
	test_owner_that_goes(true);
	test_sorter();
	test_sorters_that_fail();
	test_exhausted_pool();
	test_drain(options);
	if (getenv("FAKE_ENGINE") != NULL)
		test_failing_device();

	ok(client_sees_idle(&service), "no sort is left");
	ok(client_sees_room(&service, MOST), "all chunks are back");
	ok(service_stop(&service) == 0, "the service ends");
	rows_free(&some_rows);
	return done_testing();
}
