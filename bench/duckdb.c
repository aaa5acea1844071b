/*
 * duckdb.c - sorts in DuckDB, for bench/run:
 *	  duckdb THREADS REPEATS ROWS 'DIRECTORY/ *.csv' < QUERIES
 *
 * Reads the yardstick's table t, in CSV files of ROWS rows together, into memory, then runs each of
 * the queries ("name SELECT ...", one a line) REPEATS times as CREATE TABLE AS, taking turns.
 * Prints "name repeat milliseconds duckdb version, seconds to load" for each; the time is that of
 * CREATE TABLE AS alone.  Exits with 1 and a message if anything fails.
 *
 * Packages of the library come without its header: what is used of DuckDB's C API is declared here.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef uint64_t idx_t;
typedef struct duckdb_database *duckdb_database;
typedef struct duckdb_connection *duckdb_connection;
typedef enum duckdb_state
{
	DuckDBSuccess = 0,
	DuckDBError = 1
} duckdb_state;
typedef struct duckdb_result
{
	idx_t deprecated_column_count;
	idx_t deprecated_row_count;
	idx_t deprecated_rows_changed;
	void *deprecated_columns;
	char *deprecated_error_message;
	void *internal_data;
} duckdb_result;

extern duckdb_state duckdb_open(const char *path, duckdb_database *database);
extern duckdb_state duckdb_connect(duckdb_database database, duckdb_connection *connection);
extern duckdb_state duckdb_query(duckdb_connection connection, const char *query, duckdb_result *result);
extern const char *duckdb_result_error(duckdb_result *result);
extern int64_t duckdb_value_int64(duckdb_result *result, idx_t column, idx_t row);
extern void duckdb_destroy_result(duckdb_result *result);
extern void duckdb_disconnect(duckdb_connection *connection);
extern void duckdb_close(duckdb_database *database);
extern const char *duckdb_library_version(void);

#define MAX_QUERIES 16

static duckdb_connection connection;

static void
fail(const char *what, const char *why)
{
	fprintf(stderr, "duckdb: %s: %s\n", what, why);
	exit(1);
}

/* Runs a statement; returns the first value of its first row, for those that give a number. */
static int64_t
run(const char *statement)
{
	duckdb_result result;
	int64_t value;

	if (duckdb_query(connection, statement, &result) != DuckDBSuccess)
		fail(statement, duckdb_result_error(&result));
	value = duckdb_value_int64(&result, 0, 0);
	duckdb_destroy_result(&result);
	return value;
}

static double
seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double) now.tv_sec + (double) now.tv_nsec * 1e-9;
}

int
main(int argc, char **argv)
{
	duckdb_database database;
	char statement[4096];
	char *queries[MAX_QUERIES];
	char *name[MAX_QUERIES];
	char line[1024];
	int nqueries = 0;
	int64_t rows;
	double load_seconds;

	if (argc != 5)
		fail("usage", "duckdb THREADS REPEATS ROWS FILES < QUERIES");
	rows = strtoll(argv[3], NULL, 10);
	while (fgets(line, sizeof(line), stdin) != NULL)
	{
		char *space = strchr(line, ' ');

		if (space == NULL || nqueries == MAX_QUERIES)
			fail(line, "not \"name query\", or too many");
		line[strcspn(line, "\n")] = '\0';
		*space = '\0';
		name[nqueries] = strdup(line);
		queries[nqueries++] = strdup(space + 1);
	}

	if (duckdb_open(NULL, &database) != DuckDBSuccess || duckdb_connect(database, &connection) != DuckDBSuccess)
		fail("open", "no database in memory");
	snprintf(statement, sizeof(statement), "SET threads = %d", atoi(argv[1]));
	run(statement);
	load_seconds = seconds();
	snprintf(statement, sizeof(statement),
			 "CREATE TABLE t AS SELECT * FROM read_csv('%s', header = false, columns = {'id': 'BIGINT', "
			 "'k8': 'BIGINT', 'f8': 'DOUBLE', 'k4': 'INTEGER', 't': 'VARCHAR'})",
			 argv[4]);
	run(statement);
	load_seconds = seconds() - load_seconds;
	if (run("SELECT count(*) FROM t") != rows)
		fail("load", "not as many rows as there should be");

	for (int repeat = 1; repeat <= atoi(argv[2]); repeat++)
	{
		for (int i = 0; i < nqueries; i++)
		{
			double start;

			snprintf(statement, sizeof(statement), "CREATE TABLE sorted AS %s", queries[i]);
			start = seconds();
			run(statement);
			printf("%s %d %.3f duckdb %s; loaded in %.1f s\n", name[i], repeat, (seconds() - start) * 1e3,
				   duckdb_library_version(), load_seconds);
			if (run("SELECT count(*) FROM sorted") != rows)
				fail(queries[i], "not as many rows as there should be");
			run("DROP TABLE sorted");
		}
	}
	duckdb_disconnect(&connection);
	duckdb_close(&database);
	return 0;
}
