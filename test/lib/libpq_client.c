/*-------------------------------------------------------------------------
 *
 * libpq_client.c
 *	  A client that asks for one query's rows in each way that libpq has, and prints every byte of them.
 *
 * Compiled and run by test/t/clients.t:
 *
 *	  libpq_client CONNECTION WAY QUERY [ROWS]
 *
 *	  simple, extended, binary, prepared	all rows in one result
 *	  single, binary-single, chunks			row by row, or so many rows at a time
 *	  pipeline								several queries in a pipeline, one of them row by row
 *	  copy									COPY (QUERY) TO STDOUT
 *	  cancel, leave							asks to cancel, or ends without a word, after ROWS rows
 *	  stop									goes on after ROWS rows when its input ends
 *
 *-------------------------------------------------------------------------
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <libpq-fe.h>

static PGconn *connection;

static void
fail(const char *what)
{
	fprintf(stderr, "%s: %s", what, PQerrorMessage(connection));
	exit(1);
}

static void
check(int succeeded, const char *what)
{
	if (!succeeded)
		fail(what);
}

/* Prints a result; returns how many rows it has. */
static int
print_result(const PGresult *result)
{
	const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);

	for (int row = 0; row < PQntuples(result); row++)
	{
		for (int column = 0; column < PQnfields(result); column++)
		{
			if (PQgetisnull(result, row, column))
			{
				printf("NULL\t");
				continue;
			}
			printf("%d:", PQgetlength(result, row, column));
			fwrite(PQgetvalue(result, row, column), 1, PQgetlength(result, row, column), stdout);
			putchar('\t');
		}
		putchar('\n');
	}
	if (PQresultStatus(result) != PGRES_SINGLE_TUPLE)
		printf("%s %s %s\n", PQresStatus(PQresultStatus(result)), PQcmdStatus((PGresult *) result),
			   state != NULL ? state : "");
	return PQntuples(result);
}

/* Prints all results of a query that was sent. */
static void
print_results(void)
{
	PGresult *result;

	while ((result = PQgetResult(connection)) != NULL)
	{
		(void) print_result(result);
		PQclear(result);
	}
}

static void
cancel(void)
{
	char text[256];
	PGcancel *request = PQgetCancel(connection);

	check(request != NULL && PQcancel(request, text, sizeof(text)), "cancel");
	PQfreeCancel(request);
}

/* Reads row by row, and does after so many rows what the way says, while most of the others have not been sent. */
static void
read_some(const char *query, const char *way, int rows)
{
	const bool cancels = strcmp(way, "cancel") == 0;
	const int bytes = 65536;
	PGresult *result;
	int count = 0;

	/* or the kernel may let it grow until all of them fit in */
	check(setsockopt(PQsocket(connection), SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)) == 0, "a small buffer");
	check(PQsendQuery(connection, query) && PQsetSingleRowMode(connection), way);
	while ((result = PQgetResult(connection)) != NULL)
	{
		/* how many rows come before the error is not known */
		if (!cancels || PQresultStatus(result) != PGRES_SINGLE_TUPLE)
			count += print_result(result);
		else
			count++;
		PQclear(result);
		if (count != rows)
			continue;
		if (cancels)
			cancel();
		else if (strcmp(way, "leave") == 0)
			_exit(0);
		else
		{
			puts("stopped");
			fflush(stdout);
			while (getchar() != EOF)
				;
		}
	}
}

static void
read_pipeline(const char *query)
{
	const int queries = 4;

	check(PQenterPipelineMode(connection), "pipeline");
	for (int i = 0; i < queries; i++)
		check(PQsendQueryParams(connection, query, 0, NULL, NULL, NULL, NULL, i % 2), "query");
	check(PQpipelineSync(connection), "sync");
	for (int i = 0; i < queries; i++)
	{
		if (i == 2)
			check(PQsetSingleRowMode(connection), "row by row");
		print_results();
	}
	print_results();
	check(PQexitPipelineMode(connection), "end");
}

static void
read_copy(const char *query)
{
	char *statement = malloc(strlen(query) + 100);
	PGresult *result;
	char *row;
	int length;

	sprintf(statement, "COPY (%s) TO STDOUT", query);
	result = PQexec(connection, statement);
	(void) print_result(result);
	PQclear(result);
	while ((length = PQgetCopyData(connection, &row, false)) > 0)
	{
		fwrite(row, 1, length, stdout);
		PQfreemem(row);
	}
	print_results();
	free(statement);
}

int
main(int argc, char **argv)
{
	const char *way = argv[2];
	const char *query = argv[3];
	PGresult *result = NULL;

	connection = PQconnectdb(argv[1]);
	check(PQstatus(connection) == CONNECTION_OK, "connection");
	if (strcmp(way, "simple") == 0)
		result = PQexec(connection, query);
	else if (strcmp(way, "extended") == 0 || strcmp(way, "binary") == 0)
		result = PQexecParams(connection, query, 0, NULL, NULL, NULL, NULL, strcmp(way, "binary") == 0);
	else if (strcmp(way, "prepared") == 0)
	{
		PQclear(PQprepare(connection, "q", query, 0, NULL));
		for (int i = 0; i < 7; i++)
		{
			result = PQexecPrepared(connection, "q", 0, NULL, NULL, NULL, i % 2);
			(void) print_result(result);
			PQclear(result);
		}
		result = NULL;
	}
	else if (strcmp(way, "single") == 0 || strcmp(way, "binary-single") == 0)
	{
		check(PQsendQueryParams(connection, query, 0, NULL, NULL, NULL, NULL, way[0] == 'b') &&
				  PQsetSingleRowMode(connection),
			  way);
		print_results();
	}
#ifdef LIBPQ_HAS_CHUNK_MODE
	else if (strcmp(way, "chunks") == 0)
	{
		check(PQsendQuery(connection, query) && PQsetChunkedRowsMode(connection, 100), way);
		print_results();
	}
#endif
	else if (strcmp(way, "pipeline") == 0)
		read_pipeline(query);
	else if (strcmp(way, "copy") == 0)
		read_copy(query);
	else if (argc > 4)
		read_some(query, way, atoi(argv[4]));
	else
		puts("libpq has no such way");
	if (result != NULL)
	{
		(void) print_result(result);
		PQclear(result);
	}
	PQfinish(connection);
	return 0;
}
