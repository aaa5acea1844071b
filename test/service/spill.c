/*-------------------------------------------------------------------------
 *
 * spill.c
 *	  Tests of the sort service: sorts larger than memory, for which clients give
 *	  space in files.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "testlib.h"

#define MIB ((uint64_t) 1 << 20)

/* The pool is as small as makes what is lost show. */
#define POOL_CHUNKS 12

static const GpuSortMessage nothing = {.magic = 0};

static Service service;
static int descriptors; /* that it has in the beginning */
static Rows many_rows;  /* more than the memory */

/* Returns true if the service comes to have as many as when it began. */
static bool
has_descriptors(void)
{
	double end = now_ms() + ANSWER_MS;

	while (now_ms() < end)
	{
		if (count_descriptors(service.pid) == descriptors)
			return true;
		usleep(10000);
	}
	diag("%d descriptors, not %d", count_descriptors(service.pid), descriptors);
	return false;
}

/* Begins a sort, as soon as it is let in; returns the token to join it by. */
static uint64_t
begin(Client *client, uint32_t key_words, bool shared)
{
	double end = now_ms() + ANSWER_MS;

	while (now_ms() < end)
	{
		GpuSortMessage message = {
			.u.job_begin = {.key_words = key_words, .may_tie = 1, .spill = 1, .shared = shared, .readers = 2}};

		client_open(client, &service);
		client_send(client, GPUSORT_MSG_JOB_BEGIN, message);
		if (client_receive(client, &message, ANSWER_MS) && message.type == GPUSORT_MSG_JOB)
			return message.u.job.token;
		if (message.type != GPUSORT_MSG_REFUSED)
			bail("no answer to JOB_BEGIN");
		client_close(client);
		usleep(50000);
	}
	bail("a sort is refused all the time");
}

/* Joins a sort, to put rows or to read them. */
static void
join(Client *client, uint64_t token, bool reader)
{
	client_open(client, &service);
	client_send(client, GPUSORT_MSG_JOB_JOIN, (GpuSortMessage){.u.job_join = {.token = token, .reader = reader}});
	client_expect(client, GPUSORT_MSG_JOB);
}

/* Puts rows until SPACE comes; returns the bytes that are wanted. */
static uint64_t
put_until_space(Client *client, uint64_t *next)
{
	for (;;)
	{
		GpuSortMessage message;

		if (!client_receive(client, &message, ANSWER_MS))
			bail("neither CHUNK nor SPACE came");
		if (message.type == GPUSORT_MSG_SPACE)
			return message.u.space.bytes;
		if (message.type != GPUSORT_MSG_CHUNK)
			bail("message %d came in place of CHUNK or SPACE: %s", message.type, message.u.failure.text);
		if (*next == many_rows.n)
			*next = 0;
		*next = space_put_chunk(client, &many_rows, *next, &message);
	}
}

/* Waits for FAILED; the text of it, or NULL. */
static const char *
fails(Client *client, GpuSortMessage *message)
{
	while (client_receive(client, message, ANSWER_MS))
	{
		if (message->type == GPUSORT_MSG_FAILED)
			return message->u.failure.text;
	}
	return NULL;
}

/* Whole sorts, one after another and several times over. */
static void
test_sorts(void)
{
	static const Keys kinds[] = {KEYS_RANDOM, KEYS_SKEWED, KEYS_EQUAL};
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
	{
		Client client;
		SpaceFile file = {.descriptor = -1};
		GpuSortMessage message = {.magic = 0};
		Rows rows;
		const char *problem;

		rows_make(&rows, 250000, 1, kinds[k], 80, 140, 20);
		begin(&client, 1, false);
		problem = space_sort(&client, &rows, 0, &file, &message);
		if (problem == NULL && (message.u.sorted.runs < 2 || message.u.sorted.run_disk == 0))
			problem = "it was in memory";
		if (problem == NULL)
			problem = sort_read(&client, &rows);
		if (problem == NULL)
		{
			client_send(&client, GPUSORT_MSG_REWIND, (GpuSortMessage){.u.rewind.epoch = ++client.epoch});
			problem = sort_read(&client, &rows);
		}
		ok(problem == NULL, "keys %d are sorted in runs, and read twice: %s", kinds[k], told(problem));
		space_close(&client, &file);
		rows_free(&rows);
	}
	ok(client_sees_idle(&service) && has_descriptors(), "memory and descriptors are back");
}

/* A shared sort, read by its owner and another process. */
static void
test_shared(void)
{
	Client owner;
	Client reader;
	SpaceFile file = {.descriptor = -1};
	GpuSortMessage message = {.magic = 0};
	uint64_t first_rows[GPUSORT_RANGES_MAX + 1];
	uint32_t ranges = 0;
	uint64_t token = begin(&owner, 1, true);
	const char *problem = space_sort(&owner, &many_rows, 0, &file, &message);

	if (problem == NULL)
		problem = sort_cut(&owner, &many_rows, 64, 20, first_rows, &ranges);
	join(&reader, token, true);
	for (uint32_t i = 0; problem == NULL && i < ranges; i++)
		problem = sort_read_interval(i % 3 ? &reader : &owner, &many_rows, first_rows[i], first_rows[i + 1]);
	for (uint32_t i = ranges; problem == NULL && i-- > 0;)
		problem = sort_read_interval(i % 3 ? &owner : &reader, &many_rows, first_rows[i], first_rows[i + 1]);
	ok(problem == NULL && ranges > 2, "two processes read %u ranges of a shared sort: %s", ranges, told(problem));
	client_close(&reader);
	space_close(&owner, &file);
	ok(client_sees_idle(&service), "memory is back");
}

/* Too little space is taken, and more asked for. */
static void
test_little_space(void)
{
	Client client;
	SpaceFile file = {.descriptor = -1};
	GpuSortMessage message = {.magic = 0};
	uint64_t next = 0;
	int asked = 0;
	const char *problem;

	begin(&client, 1, false);
	(void) put_until_space(&client, &next);
	do
	{
		space_give(&client, &file, 5 * MIB);
		asked++;
		message.type = 0;
		while (client_receive(&client, &message, ANSWER_MS) && message.type == GPUSORT_MSG_CHUNK && next < many_rows.n)
			next = space_put_chunk(&client, &many_rows, next, &message);
	} while (message.type == GPUSORT_MSG_SPACE && asked < 2);
	ok(asked == 2 && message.type == GPUSORT_MSG_SPACE, "of too little space more is asked for, %d times", asked);
	space_give(&client, &file, message.u.space.bytes);
	problem = space_sort(&client, &many_rows, next, &file, &message);
	if (problem == NULL)
		problem = sort_read(&client, &many_rows);
	ok(problem == NULL, "and it is sorted: %s", told(problem));
	space_close(&client, &file);
}

/* What FILE may come with that is no space. */
static void
test_bad_files(void)
{
	static const char *const names[] = {"without a descriptor", "with a pipe", "with two descriptors",
										"with nine descriptors", "with a directory", "with a second file",
										"of bytes given before", "of no bytes", "beyond what there is", "with a file that is added to",
										"with a file that cannot be written"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
	{
		Client client;
		GpuSortMessage message = {.magic = 0};
		uint64_t next = 0;
		uint64_t wanted;
		int sent[9];
		int pipes[2];
		char path[200];
		const char *text;

		if (pipe(pipes) != 0)
			bail("pipe: %s", strerror(errno));
		for (int d = 0; d < 9; d++)
			sent[d] = space_make_file(i == 9 ? O_RDWR | O_APPEND : O_RDWR);
		begin(&client, 1, false);
		wanted = put_until_space(&client, &next);
		switch (i)
		{
			case 0:
				space_send_file(&client, 0, wanted, NULL, 0);
				break;
			case 1:
				space_send_file(&client, 0, wanted, &pipes[1], 1);
				break;
			case 2:
			case 3:
				space_send_file(&client, 0, wanted, sent, i == 2 ? 2 : 9);
				break;
			case 4:
				close(sent[0]);
				sent[0] = open("/", O_RDONLY | O_CLOEXEC);
				space_send_file(&client, 0, wanted, sent, 1);
				break;
			case 5:
			case 6:
				space_send_file(&client, 0, MIB, sent, 1);
				do
				{
					if (!client_receive(&client, &message, ANSWER_MS))
						bail("SPACE did not come again");
				} while (message.type != GPUSORT_MSG_SPACE);
				if (i == 5)
					space_send_file(&client, MIB, wanted, sent + 1, 1);
				else
					space_send_file(&client, MIB - 1, wanted, NULL, 0);
				break;
			case 7:
				space_send_file(&client, 0, 0, sent, 1);
				break;
			case 8:
				space_send_file(&client, UINT64_MAX - 7, wanted, sent, 1);
				break;
			case 9:
				space_send_file(&client, 0, wanted, sent, 1);
				break;
			case 10:
				close(sent[0]);
				snprintf(path, sizeof(path), "%s/read-only", test_directory());
				close(open(path, O_CREAT | O_RDWR, 0600));
				sent[0] = open(path, O_RDONLY | O_CLOEXEC);
				space_send_file(&client, 0, wanted, sent, 1);
				break;
		}
		text = fails(&client, &message);
		ok(text != NULL &&
			   (i == 10 ? message.u.failure.reason == GPUSORT_REASON_STORAGE && message.u.failure.system_error == EBADF
						: message.u.failure.reason == GPUSORT_REASON_INTERNAL),
		   "FILE %s fails the sort: %s", names[i], text != NULL ? text : "it did not");
		client_close(&client);
		for (int d = 0; d < 9; d++)
			close(sent[d]);
		close(pipes[0]);
		close(pipes[1]);
	}
	ok(client_sees_idle(&service) && has_descriptors(), "memory and descriptors are back");
}

/* Descriptors that nobody asked for. */
static void
test_unasked_files(void)
{
	int sent[2] = {space_make_file(O_RDWR), space_make_file(O_RDWR)};
	int closed = 0;

	for (int i = 0; i < 6; i++)
	{
		Client client;
		GpuSortMessage message = {.type = GPUSORT_MSG_STATUS};

		client_open(&client, &service);
		if (i > 2)
			client_send(&client, GPUSORT_MSG_JOB_BEGIN, (GpuSortMessage){.u.job_begin = {.key_words = 1, .spill = i > 3}});
		if (i > 2)
			client_expect(&client, GPUSORT_MSG_JOB);
		if (i == 0)
			space_send_with(&client, message, 0, sent, 1); /* nothing, but a descriptor */
		else if (i == 1)
			space_send_with(&client, message, 10, sent, 2);
		else
			space_send_file(&client, 0, MIB, sent, i == 5 ? 0 : 1);
		closed += client_is_closed(&client, ANSWER_MS);
		client_close(&client);
	}
	ok(closed == 6, "who sends what nobody asked for is closed: %d of 6", closed);
	for (int i = 0; i < 10; i++)
	{
		Client client;
		GpuSortMessage message = {.type = GPUSORT_MSG_STATUS};

		client_open(&client, &service);
		space_send_with(&client, message, sizeof(message), sent, 1 + i % 2);
		client_expect(&client, GPUSORT_MSG_DEVICE);
		client_close(&client);
	}
	ok(has_descriptors(), "and no descriptor stays open");
	close(sent[0]);
	close(sent[1]);
}

/* Clients that go while space is waited for, or when it was just given. */
static void
test_clients_that_go(void)
{
	for (int i = 0; i < POOL_CHUNKS + 2; i++)
	{
		Client client;
		SpaceFile file = {.descriptor = -1};
		uint64_t next = 0;
		uint64_t wanted;

		begin(&client, 1, false);
		wanted = put_until_space(&client, &next);
		if (i % 3 == 1)
			space_give(&client, &file, wanted);
		if (i % 3 == 2)
		{
			space_give(&client, &file, 10 * wanted);
			usleep(random64() % 30000);
		}
		space_close(&client, &file);
	}
	ok(client_sees_idle(&service) && has_descriptors(), "clients that go while they are asked for space leave nothing");
	ok(client_sees_room(&service, 1), "and their chunks are back");
}

/* A member that leaves while its put waits, before it has read SPACE. */
static void
test_member_that_leaves(void)
{
	Client owner;
	Client member;
	SpaceFile file = {.descriptor = -1};
	SpaceFile other = {.descriptor = -1};
	GpuSortMessage message = {.magic = 0};
	uint64_t next = 0;
	uint64_t token = begin(&owner, 1, false);
	uint64_t wanted;
	const char *problem;

	join(&member, token, false);
	wanted = put_until_space(&member, &next);
	client_send(&member, GPUSORT_MSG_LEAVE, nothing);
	client_expect(&member, GPUSORT_MSG_LEFT);
	space_give(&member, &other, wanted);
	ok(!client_is_closed(&member, 100), "a member that has left may answer SPACE");
	problem = space_sort(&owner, &many_rows, next, &file, &message);
	if (problem == NULL)
		problem = sort_read(&owner, &many_rows);
	ok(problem == NULL && file.given > 0, "and the owner gives the space: %s", told(problem));
	space_close(&member, &other);
	space_close(&owner, &file);
	ok(client_sees_idle(&service) && has_descriptors(), "memory and descriptors are back");
}

/* A member's loss while it is asked for space is the sort's. */
static void
test_member_that_goes(void)
{
	Client owner;
	Client member;
	GpuSortMessage message = {.magic = 0};
	uint64_t next = 0;
	uint64_t token = begin(&owner, 1, false);

	join(&member, token, false);
	(void) put_until_space(&member, &next);
	client_close(&member);
	ok(fails(&owner, &message) != NULL, "a member that goes while it is asked for space fails the sort: %s",
	   message.u.failure.text);
	client_close(&owner);
	ok(client_sees_idle(&service) && has_descriptors(), "memory and descriptors are back");
}

/* An owner that is asked and does not answer: a member's space does for both. */
static void
test_silent_owner(bool late)
{
	Client owner;
	Client member;
	SpaceFile file = {.descriptor = -1};
	SpaceFile own = {.descriptor = -1};
	GpuSortMessage message = {.magic = 0};
	uint64_t next = 0;
	uint64_t start;
	uint64_t token = begin(&owner, 1, false);
	uint64_t wanted = put_until_space(&owner, &next);
	const char *problem;

	join(&member, token, false);
	start = next;
	problem = space_put(&member, &many_rows, &next, many_rows.n, &file);
	ok(problem == NULL && next > start, "a member goes on while the owner is silent: %s", told(problem));
	client_send(&member, GPUSORT_MSG_LEAVE, nothing);
	if (!space_await(&member, GPUSORT_MSG_LEFT, &file, &message))
		bail("LEFT did not come");
	if (!late)
		space_give(&owner, &own, wanted);
	client_send(&owner, GPUSORT_MSG_SORT, nothing);
	if (late)
	{
		/* it reads no SPACE before SORTED, if there was enough */
		while (client_receive(&owner, &message, 3000) &&
			   (message.type == GPUSORT_MSG_CHUNK || message.type == GPUSORT_MSG_SPACE))
			;
		space_give(&owner, &own, wanted);
	}
	problem = message.type == GPUSORT_MSG_SORTED || space_await(&owner, GPUSORT_MSG_SORTED, &own, &message)
		? sort_read(&owner, &many_rows)
		: "no SORTED came";
	ok(problem == NULL, "the owner answers %s, and all is sorted: %s", late ? "after SORT" : "before SORT", told(problem));
	space_close(&member, &file);
	space_close(&owner, &own);
	ok(client_sees_idle(&service) && has_descriptors(), "memory and descriptors are back");
}

/* Space that comes when all is sorted already. */
static void
test_space_after_sorted(void)
{
	Client owner;
	Client member;
	SpaceFile file = {.descriptor = -1};
	SpaceFile own = {.descriptor = -1};
	GpuSortMessage message = {.magic = 0};
	uint64_t next = 0;
	uint64_t token = begin(&owner, 1, false);
	uint64_t wanted = put_until_space(&owner, &next);
	const char *problem = NULL;

	/* the member gives enough for both and all that follows */
	join(&member, token, false);
	while (file.given == 0)
	{
		message = nothing;
		if (!client_receive(&member, &message, ANSWER_MS))
			bail("SPACE did not come to the member");
		if (message.type == GPUSORT_MSG_CHUNK)
			next = space_put_chunk(&member, &many_rows, next, &message);
		else
			space_give(&member, &file, 50 * message.u.space.bytes);
	}
	problem = space_put(&member, &many_rows, &next, many_rows.n, &file);
	client_send(&member, GPUSORT_MSG_LEAVE, nothing);
	if (!space_await(&member, GPUSORT_MSG_LEFT, NULL, &message))
		bail("LEFT did not come");
	client_send(&owner, GPUSORT_MSG_SORT, nothing);
	if (!space_await(&owner, GPUSORT_MSG_SORTED, NULL, &message))
		bail("SORTED did not come");
	space_give(&owner, &own, wanted);
	if (problem == NULL)
		problem = sort_read(&owner, &many_rows);
	ok(problem == NULL, "space may come when all is sorted: %s", told(problem));
	space_close(&member, &file);
	space_close(&owner, &own);
	ok(client_sees_idle(&service) && has_descriptors(), "memory and descriptors are back");
}

/* Several sorts at once, each larger than the memory. */
typedef struct Sorter
{
	pthread_t thread;
	Rows rows;
	const char *problem;
} Sorter;

static void *
sorter_main(void *arg)
{
	Sorter *sorter = arg;
	Client client;
	SpaceFile file = {.descriptor = -1};
	GpuSortMessage message;

	begin(&client, sorter->rows.key_words, false);
	sorter->problem = space_sort(&client, &sorter->rows, 0, &file, &message);
	if (sorter->problem == NULL)
		sorter->problem = sort_read(&client, &sorter->rows);
	space_close(&client, &file);
	return NULL;
}

static void
test_many_clients(void)
{
	Sorter sorters[5] = {0};
	int good = 0;

	for (int i = 0; i < 5; i++)
		rows_make(&sorters[i].rows, 100000 + 10000 * i, 1 + i % 3, (Keys) (i % 3), 80, 140, 10);
	for (int i = 0; i < 5; i++)
		pthread_create(&sorters[i].thread, NULL, sorter_main, &sorters[i]);
	for (int i = 0; i < 5; i++)
	{
		pthread_join(sorters[i].thread, NULL);
		good += sorters[i].problem == NULL;
		if (sorters[i].problem != NULL)
			diag("client %d: %s", i, sorters[i].problem);
		rows_free(&sorters[i].rows);
	}
	ok(good == 5, "5 clients sort at once");
	ok(client_sees_idle(&service), "memory is back");
}

/* A client that does not give space is told when memory is full, as ever. */
static void
test_without_spill(void)
{
	Client client;
	GpuSortMessage message = {.magic = 0};
	uint64_t next = 0;

	client_open(&client, &service);
	if (client_begin(&client, 1, false, 0, 0).type != GPUSORT_MSG_JOB)
		bail("refused");
	while (client_receive(&client, &message, ANSWER_MS) && message.type == GPUSORT_MSG_CHUNK && next < many_rows.n)
		next = space_put_chunk(&client, &many_rows, next, &message);
	ok(message.type == GPUSORT_MSG_FULL, "a client that gives no space hears FULL");
	client_close(&client);
}

/* The service ends with a sort that waits for space, or of which it writes a run. */
static void
test_end(const char *const *options)
{
	for (int writes = 0; writes < 2; writes++)
	{
		Client client;
		SpaceFile file = {.descriptor = -1};
		uint64_t next = 0;
		uint64_t wanted;

		if (writes)
			service_start(&service, options);
		begin(&client, 1, false);
		wanted = put_until_space(&client, &next);
		if (writes)
			space_give(&client, &file, wanted);
		ok(service_stop(&service) == 0, "the service ends while a sort %s", writes ? "writes a run" : "waits for space");
		space_close(&client, &file);
	}
}

int
main(void)
{
	const char *const options[] = {"--staging-memory", "50331648", "--host-memory", "25165824", "--threads", "2", NULL};
	uint64_t seed = time(NULL);

	setvbuf(stdout, NULL, _IOLBF, 0);
	diag("seed %llu", (unsigned long long) seed);
	random_seed(seed);
	rows_make(&many_rows, 260000, 1, KEYS_RANDOM, 80, 140, 0);
	service_start(&service, options);
	descriptors = count_descriptors(service.pid);

	test_sorts();
	test_shared();
	test_little_space();
	test_bad_files();
	test_unasked_files();
	test_clients_that_go();
	test_member_that_leaves();
	test_member_that_goes();
	test_silent_owner(false);
	test_silent_owner(true);
	test_space_after_sorted();
	test_many_clients();
	test_without_spill();
	test_end(options);
	rows_free(&many_rows);
	return done_testing();
}
