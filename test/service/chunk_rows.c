/*-------------------------------------------------------------------------
 *
 * chunk_rows.c
 *	  With how many rows chunks are granted: near what they will hold, whatever was
 *	  estimated, so that little memory is counted that nobody needs.
 *
 * The choice itself is asked first (service/job/chunk_rows.c), then the service.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>
#include <time.h>

#include "service/job/chunk_rows.h"
#include "testlib.h"

#define MIB UINT64_C(1048576)

/* Rows that fill a chunk of a sort with one key word, padded rows of so many bytes. */
static uint32_t
filled_by(uint32_t row_bytes)
{
	return GPUSORT_CHUNK_BYTES / (8 + row_bytes + 4);
}

static void
test_choice(void)
{
	GpuSortRequest request = {.key_words = 1, .estimated_rows = 1000000, .estimated_bytes = 112000000};
	const uint32_t most = gpusort_chunk_rows_most(1);
	GpuSortChunkRows known;
	uint32_t rows;

	ok(most == 209715, "a chunk can hold 209715 rows");
	gpusort_chunk_rows_init(&known, &request);
	rows = gpusort_chunk_rows_choose(&known);
	ok(rows > filled_by(100) * 19 / 10 && rows <= filled_by(100) * 2, "at first twice what the estimate says: %u", rows);
	gpusort_chunk_rows_note(&known, filled_by(100), filled_by(100) * 108);
	rows = gpusort_chunk_rows_choose(&known);
	ok(rows > filled_by(100) * 14 / 10 && rows <= filled_by(100) * 3 / 2, "then half more than there were: %u", rows);
	gpusort_chunk_rows_note(&known, filled_by(16), filled_by(16) * 24);
	ok(gpusort_chunk_rows_choose(&known) > filled_by(16), "a chunk of shorter rows counts more than all before it");
	gpusort_chunk_rows_note(&known, filled_by(1000), filled_by(1000) * 1008);
	rows = gpusort_chunk_rows_choose(&known);
	ok(rows > filled_by(100), "one of longer rows does not");

	request.estimated_rows = 5000;
	request.estimated_bytes = 560000;
	gpusort_chunk_rows_init(&known, &request);
	ok(gpusort_chunk_rows_choose(&known) == most / 16, "of few rows it is a sixteenth of the most");
	request.estimated_rows = request.estimated_bytes = 0;
	gpusort_chunk_rows_init(&known, &request);
	ok(gpusort_chunk_rows_choose(&known) == most, "with no estimate it is the most");
	request.estimated_rows = request.estimated_bytes = UINT64_MAX;
	gpusort_chunk_rows_init(&known, &request);
	ok(gpusort_chunk_rows_choose(&known) == most, "estimates of any size do no harm");
	request.estimated_rows = 1;
	gpusort_chunk_rows_init(&known, &request);
	ok(gpusort_chunk_rows_choose(&known) == most / 16, "nor do those that cannot be");
	gpusort_chunk_rows_note(&known, 1, UINT32_MAX - 4);
	ok(gpusort_chunk_rows_choose(&known) == most / 16, "nor a row longer than a chunk");
}

/* Bytes that all sorts are charged for. */
static uint64_t
used(const Service *service)
{
	GpuSortMessage device = {.magic = 0};
	Client client;
	uint64_t bytes = 0;

	client_open(&client, service);
	client_send(&client, GPUSORT_MSG_STATUS, device);
	do
	{
		device = client_expect(&client, GPUSORT_MSG_DEVICE);
		bytes += device.u.device.state.memory_used;
	} while (!device.u.device.last);
	client_close(&client);
	return bytes;
}

/* What is counted for a sort beside the rows that it has put. */
static void
test_charge(const Service *service)
{
	Client client;
	Rows rows;
	GpuSortMessage message;
	uint64_t bytes;

	rows_make(&rows, 200000, 1, KEYS_RANDOM, 100, 100, 0);
	client_open(&client, service);
	client_begin(&client, 1, false, rows.n, rows.n * 116);
	(void) client_expect(&client, GPUSORT_MSG_CHUNK);
	(void) client_expect(&client, GPUSORT_MSG_CHUNK);
	(void) client_expect(&client, GPUSORT_MSG_CHUNK);
	bytes = used(service);
	ok(bytes < 3 * 8 * MIB, "three chunks for rows of 100 bytes are charged %.1f MB each", bytes / 3.0 / MIB);
	client_close(&client);
	ok(client_sees_idle(service), "all is given back");

	client_open(&client, service);
	client_begin(&client, 1, false, rows.n, rows.n * 116);
	ok(sort_put(&client, &rows) == NULL, "all rows are put");
	for (int i = 0; i < 3; i++)
		(void) client_expect(&client, GPUSORT_MSG_CHUNK);
	bytes = used(service) - rows.n * (104 + 8 + 16 + 32);
	ok(bytes < 3 * 15 * MIB / 2, "then %.1f MB each, beside the rows", bytes / 3.0 / MIB);
	ok(sort_finish(&client, &rows, &message) == NULL && sort_read(&client, &rows) == NULL, "and are sorted");
	client_close(&client);
	rows_free(&rows);
}

/* Estimates wrong by a thousand times, one way and the other, and by two processes. */
static void
test_wrong_estimates(const Service *service)
{
	static const uint32_t lengths[] = {8, 100, 8000};

	for (int i = 0; i < 3; i++)
	{
		for (int wrong = -1; wrong <= 1; wrong++)
		{
			uint64_t bytes = GPUSORT_ALIGN8(lengths[i]) + 12;
			Client client;
			Rows rows;
			GpuSortMessage message;
			const char *problem;

			rows_make(&rows, i == 2 ? 3000 : 300000, 1, KEYS_RANDOM, lengths[i], lengths[i], 0);
			bytes = wrong < 0 ? bytes / 1000 : wrong > 0 ? bytes * 1000
														 : bytes;
			client_open(&client, service);
			message = client_begin(&client, 1, false, wrong > 0 ? 30 : rows.n, (wrong > 0 ? 30 : rows.n) * bytes);
			problem = message.type == GPUSORT_MSG_JOB ? sort_put(&client, &rows) : "refused";
			if (problem == NULL)
				problem = sort_finish(&client, &rows, &message);
			if (problem == NULL)
				problem = sort_read(&client, &rows);
			ok(problem == NULL, "rows of %u bytes, %s: %s", lengths[i],
			   wrong < 0 ? "thought a thousand times shorter" : wrong > 0 ? "thought a thousand times longer"
																		  : "well estimated",
			   problem == NULL ? "sorted" : problem);
			client_close(&client);
			rows_free(&rows);
		}
	}
}

int
main(void)
{
	const char *const options[] = {"--host-memory", "1073741824", "--threads", "2", NULL};
	Service service;

	random_seed(time(NULL));
	test_choice();
	service_start(&service, options);
	test_charge(&service);
	test_wrong_estimates(&service);
	ok(client_sees_idle(&service), "all memory is given back");
	service_stop(&service);
	return done_testing();
}
