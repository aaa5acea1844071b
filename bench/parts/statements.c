/*
 * statements.c - a client that runs a statement, reads its answer off the socket and throws it away.
 *
 *	statements CONNINFO REPEATS SLEEP SQL STATEMENT...
 *
 * Before each turn of a statement SQL runs, in which %s is "off" in odd turns and "on" in even ones, so that both
 * take turns.  SLEEP: microseconds to wait after each 64 kB, for a client that is slow.  Prints a line for each
 * statement and turn: its number, off or on, milliseconds, bytes, rows.
 *
 * What is read is not looked at but for where messages begin, so the server is what is measured.
 */
#include <errno.h>
#include <libpq-fe.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static char buffer[1 << 18];

static double
milliseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static void
fail(const char *what, const char *why)
{
	fprintf(stderr, "statements: %s: %s\n", what, why);
	exit(1);
}

static void
command(PGconn *connection, const char *sql)
{
	PGresult *result = PQexec(connection, sql);
	ExecStatusType status = PQresultStatus(result);

	if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
		fail(sql, PQerrorMessage(connection));
	PQclear(result);
}

/* Reads up to the message that tells that the server is ready; what libpq has sent by then is a simple query. */
static void
drain(int socket, long pause, uint64_t *bytes, uint64_t *rows)
{
	char head[5]; /* of a message that is cut off */
	size_t in_head = 0;
	uint64_t skip = 0; /* of the body of a message */
	char type = 0;
	uint64_t since_pause = 0;

	*bytes = *rows = 0;
	for (;;)
	{
		ssize_t got = recv(socket, buffer, sizeof(buffer), 0);

		if (got < 0 && (errno == EAGAIN || errno == EINTR))
		{
			struct pollfd ready = {.fd = socket, .events = POLLIN};

			(void) poll(&ready, 1, -1);
			continue;
		}
		if (got <= 0)
			fail("reading", got < 0 ? strerror(errno) : "the server has closed the connection");
		*bytes += got;
		since_pause += got;
		for (ssize_t at = 0; at < got;)
		{
			uint64_t left = got - at;

			if (skip > 0)
			{
				uint64_t step = skip < left ? skip : left;

				at += step;
				skip -= step;
			}
			else
			{
				head[in_head++] = buffer[at++];
				if (in_head == sizeof(head))
				{
					const unsigned char *length = (unsigned char *) head + 1;

					in_head = 0;
					type = head[0];
					skip = ((uint64_t) length[0] << 24 | length[1] << 16 | length[2] << 8 | length[3]) - 4;
					*rows += type == 'D' || type == 'd';
					if (type == 'E')
						fail("the statement", "an error");
				}
			}
			if (type == 'Z' && skip == 0 && in_head == 0)
				return;
		}
		if (pause > 0 && since_pause >= 65536)
		{
			usleep(pause);
			since_pause = 0;
		}
	}
}

/* Sends a simple query past libpq, which would keep the answer. */
static void
run(PGconn *connection, const char *statement, long pause, uint64_t *bytes, uint64_t *rows)
{
	uint32_t length = strlen(statement) + 1;
	uint32_t total = length + 4;
	char head[5] = {'Q', (char) (total >> 24), (char) (total >> 16), (char) (total >> 8), (char) total};

	if (send(PQsocket(connection), head, sizeof(head), 0) != sizeof(head) ||
		send(PQsocket(connection), statement, length, 0) != (ssize_t) length)
		fail("sending", strerror(errno));
	drain(PQsocket(connection), pause, bytes, rows);
}

int
main(int argc, char **argv)
{
	PGconn *connection;
	int repeats;
	long pause;

	if (argc < 6)
	{
		fprintf(stderr, "statements CONNINFO REPEATS SLEEP SQL STATEMENT...\n");
		return 2;
	}
	repeats = atoi(argv[2]);
	pause = atol(argv[3]);
	connection = PQconnectdb(argv[1]);
	if (PQstatus(connection) != CONNECTION_OK)
		fail("connecting", PQerrorMessage(connection));
	if (PQsslInUse(connection))
		fail("connecting", "not over TLS: use a socket of the machine, or sslmode=disable");
	for (int statement = 5; statement < argc; statement++)
	{
		for (int turn = 0; turn < 2 * repeats; turn++)
		{
			const char *variant = turn % 2 == 0 ? "off" : "on";
			char sql[8192];
			uint64_t bytes;
			uint64_t rows;
			double start;

			snprintf(sql, sizeof(sql), argv[4], variant);
			command(connection, sql);
			start = milliseconds();
			run(connection, argv[statement], pause, &bytes, &rows);
			printf("%d %s %.1f %llu %llu\n", statement - 5, variant, milliseconds() - start,
				   (unsigned long long) bytes, (unsigned long long) rows);
			fflush(stdout);
		}
	}
	PQfinish(connection);
	return 0;
}
