/*-------------------------------------------------------------------------
 *
 * shared_ends.c
 *	  Tests of the sort service: shared sorts whose readers, owners or sorters go, and that
 *	  have no room, no service or no device any more.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <unistd.h>

#include "shared_case.h"

/* Readers go as they like, and nothing but their part is lost. */
void
test_readers_that_go(void)
{
	Client owner;
	Rows rows;
	uint64_t token;
	const char *problem = NULL;

	rows_make(&rows, 100000, 1, KEYS_RANDOM, 100, 200, 0);
	token = sort_shared(&owner, &rows);
	for (int round = 0; round < 15 && problem == NULL; round++)
	{
		Client readers[READERS];

		for (int i = 0; i < READERS; i++)
		{
			must_join(&readers[i], token);
			for (int r = 0; r < round % 3; r++)
				ask_rows(&readers[i], r * 1000, rows.n);
			if (round % 3 > 0 && i % 2 == 0)
				client_expect(&readers[i], GPUSORT_MSG_DATA);
			if (round % 5 == 4)
				client_send(&readers[i], GPUSORT_MSG_HELLO, nothing);
		}
		problem = sort_read_interval(&owner, &rows, 10, 30000);
		for (int i = 0; i < READERS; i++)
			client_close(&readers[i]);
		/* the service hears of that in time */
		while (!client_sees_room(&service, MOST - 1))
			;
	}
	ok(problem == NULL, "readers that go, or are shut out: %s", told(problem));
	ok(sort_read_interval(&owner, &rows, 0, rows.n) == NULL, "the owner reads on");
	client_close(&owner);
	ok(client_sees_room(&service, MOST), "all chunks are back");
	rows_free(&rows);
}

/* The end of the sort is the end for its readers. */
void
test_owner_that_goes(bool shut_out)
{
	int failed = 0;

	for (int round = 0; round < 10; round++)
	{
		Client owner;
		Client readers[3];
		uint64_t token = sort_shared(&owner, &some_rows);

		for (int i = 0; i < 3; i++)
		{
			must_join(&readers[i], token);
			for (int r = 0; r < i; r++)
				ask_rows(&readers[i], 0, some_rows.n);
			if (i == 2)
				client_expect(&readers[i], GPUSORT_MSG_DATA);
		}
		if (shut_out)
			client_send(&owner, GPUSORT_MSG_HELLO, nothing);
		else
			client_close(&owner);
		for (int i = 0; i < 3; i++)
		{
			failed += fails(&readers[i]);
			/* what is on its way is ignored */
			ask_rows(&readers[i], 0, 10);
			if (client_is_closed(&readers[i], 10))
				failed--;
			client_close(&readers[i]);
		}
		if (shut_out)
			client_close(&owner);
	}
	ok(failed == 30, "when an owner %s its readers are told: %d of 30", shut_out ? "is shut out" : "goes", failed);
	ok(client_sees_idle(&service), "the sort's memory is back");
	ok(client_sees_room(&service, MOST), "and so are all chunks");
}

/*
 * Begins a shared sort of some_rows and puts them, all in the beginner, which leaves it to others to have them
 * sorted; returns the token.
 */
static uint64_t
put_and_leave(Client *owner)
{
	GpuSortMessage message;
	uint64_t token;

	client_open(owner, &service);
	token = client_begin_shared(owner, 1).u.job.token;
	if (sort_put(owner, &some_rows) != NULL)
		bail("rows are not taken");
	client_send(owner, GPUSORT_MSG_LEAVE, nothing);
	do
	{
		if (!client_receive(owner, &message, ANSWER_MS))
			bail("LEFT did not come");
	} while (message.type == GPUSORT_MSG_CHUNK);
	if (message.type != GPUSORT_MSG_LEFT)
		bail("no LEFT came");
	return token;
}

/* A member has the rows sorted and cut, whose beginner does not, and all of them read. */
void
test_sorter(void)
{
	Client owner;
	Client sorter;
	Client reader;
	GpuSortMessage message;
	uint64_t token = put_and_leave(&owner);
	const char *problem;
	uint32_t ranges;

	must_join(&sorter, token);
	problem = sort_finish(&sorter, &some_rows, &message);
	ok(problem == NULL, "a sorter has rows sorted: %s", told(problem));
	ranges = cut(&sorter, &some_rows, 64, 20);
	must_join(&reader, token);
	for (uint32_t i = 0; problem == NULL && i < ranges; i++)
		problem = sort_read_interval(i % 3 == 0 ? &owner : i % 3 == 1 ? &sorter
																	  : &reader,
									 &some_rows, first_rows[i], first_rows[i + 1]);
	ok(problem == NULL && ranges > 2, "owner, sorter and reader read %u ranges: %s", ranges, told(problem));
	client_close(&sorter);
	ok(sort_read_interval(&owner, &some_rows, 0, some_rows.n) == NULL, "the owner reads on when the sorter has gone");
	client_close(&reader);
	client_close(&owner);

	/* one that leaves it to another, or to the owner */
	for (int by_owner = 0; by_owner < 2; by_owner++)
	{
		token = put_and_leave(&owner);
		must_join(&sorter, token);
		client_send(&sorter, GPUSORT_MSG_LEAVE, nothing);
		client_expect(&sorter, GPUSORT_MSG_LEFT);
		client_close(&sorter);
		if (!by_owner)
			must_join(&sorter, token);
		problem = sort_finish(by_owner ? &owner : &sorter, &some_rows, &message);
		if (problem == NULL)
			problem = sort_read_interval(&owner, &some_rows, 0, some_rows.n);
		ok(problem == NULL, "a sorter may leave it to %s: %s", by_owner ? "the owner" : "another", told(problem));
		if (!by_owner)
			client_close(&sorter);
		client_close(&owner);
	}
	ok(client_sees_idle(&service) && client_sees_room(&service, MOST), "nothing is left");
}

/* What sorters may not do: they are shut out, or the sort is lost. */
void
test_sorters_that_fail(void)
{
	Client owner;
	Client sorter;
	Client other;
	uint64_t token;

	for (int type = 0; type < 2; type++)
	{
		token = put_and_leave(&owner);
		must_join(&sorter, token);
		client_send(&sorter, type == 0 ? GPUSORT_MSG_READ : GPUSORT_MSG_CHUNK_PUT, (GpuSortMessage){.u.read = {0, 1}});
		ok(client_is_closed(&sorter, ANSWER_MS) && fails(&owner), "%s of a sorter before SORT ends the sort",
		   type == 0 ? "READ" : "CHUNK_PUT");
		client_close(&sorter);
		client_close(&owner);
	}
	token = put_and_leave(&owner);
	must_join(&sorter, token);
	client_close(&sorter);
	ok(fails(&owner), "one that closes before SORT ends the sort");
	client_close(&owner);

	token = put_and_leave(&owner);
	must_join(&sorter, token);
	must_join(&other, token);
	client_send(&sorter, GPUSORT_MSG_SORT, nothing);
	ok(fails(&sorter) && fails(&other) && fails(&owner), "so does SORT where there is a second one");
	client_close(&sorter);
	client_close(&other);
	client_close(&owner);

	token = put_and_leave(&owner);
	must_join(&sorter, token);
	client_close(&owner);
	ok(fails(&sorter), "the sort ends with its beginner");
	client_close(&sorter);
	ok(client_sees_idle(&service) && client_sees_room(&service, MOST), "nothing is left");
}

/* Others do without a reader that the pool has no chunks for. */
void
test_exhausted_pool(void)
{
	Client owner;
	Client readers[READERS + 1];
	Client other;
	GpuSortMessage message;
	uint64_t token = sort_shared(&owner, &some_rows);
	int in = 0;

	for (;;)
	{
		message = join(&readers[in], token);
		if (message.type != GPUSORT_MSG_JOB)
			break;
		if (++in > READERS)
			bail("one reader too many was let in");
	}
	ok(in == READERS && message.type == GPUSORT_MSG_REFUSED && message.u.failure.reason == GPUSORT_REASON_POOL,
	   "a reader that the pool has no chunks for is refused, after %d", in);
	client_close(&readers[in]);
	client_open(&other, &service);
	ok(client_begin(&other, 1, false, 0, 0).type == GPUSORT_MSG_JOB, "but another sort finds room");
	client_close(&other);
	ok(sort_read_interval(&readers[0], &some_rows, 0, some_rows.n) == NULL, "another one reads all rows");
	ok(sort_read_interval(&owner, &some_rows, 0, some_rows.n) == NULL, "and so does the owner");
	while (in > 0)
		client_close(&readers[--in]);
	client_close(&owner);
}

/* A service that ends when its sorts have takes no new ones, but readers of those that it has. */
void
test_drain(const char *const *options)
{
	Service sound = service;
	Client owner;
	Client reader;
	uint64_t token;

	service_start(&service, options);
	token = sort_shared(&owner, &some_rows);
	service_send(&service, GPUSORT_MSG_DRAIN);
	if (!service_pong(&service, 1, ANSWER_MS))
		bail("a service that drains does not answer");
	must_join(&reader, token);
	ok(sort_read_interval(&reader, &some_rows, 10, some_rows.n) == NULL, "a reader joins a sort of a service that drains");
	client_close(&owner);
	ok(fails(&reader) && service_wait(&service, ANSWER_MS) == 0, "which ends with the sort, whoever reads");
	client_close(&reader);
	service_stop(&service);
	service = sound;
}

/* A device that fails under a reader fails the sort, for everybody with its reason. */
void
test_failing_device(void)
{
	const char *const options[] = {"--engine", "auto", "--threads", "1", "--cuda-library", getenv("FAKE_ENGINE"), NULL};
	Service sound = service;
	Client owner;
	Client readers[2];
	GpuSortMessage message;
	uint64_t token;
	int told = 0;

	setenv("GPUSORT_FAKE", "emit", 1);
	service_start(&service, options);
	unsetenv("GPUSORT_FAKE");
	token = sort_shared(&owner, &some_rows);
	for (int i = 0; i < 2; i++)
		must_join(&readers[i], token);
	ask_rows(&readers[0], 0, 10);
	for (int i = 0; i < 3; i++)
	{
		Client *client = i == 2 ? &owner : &readers[i];

		message = client_expect(client, GPUSORT_MSG_FAILED);
		told += message.u.failure.reason == GPUSORT_REASON_DEVICE;
	}
	ok(told == 3, "a failing device fails the owner and all readers: %s", message.u.failure.text);
	for (int i = 0; i < 2; i++)
		client_close(&readers[i]);
	client_close(&owner);
	ok(client_sees_idle(&service), "and the sort ends");
	service_stop(&service);
	service = sound;
}
