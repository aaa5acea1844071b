/*
 * duckdb.c - queries in DuckDB, for bench/run:
 *	  duckdb THREADS REPEATS [TABLE ROWS COLUMNS 'DIRECTORY/ *.csv']... < QUERIES
 *
 * Reads each table, in CSV files of ROWS rows together, into memory, or into the database file DUCKDB_FILE
 * with DUCKDB_MEMORY_LIMIT, if they are in the environment; COLUMNS are 'name': 'type', ...
 * Then runs each of the queries ("name rows SELECT ...", one a line; rows: those of the result, 0: not known)
 * REPEATS times as CREATE TABLE AS, taking turns; a COPY runs as it is.  Prints "name repeat milliseconds duckdb
 * version, seconds to load" for each; the time is that of CREATE TABLE AS alone.  Exits with 1 and a message
 * if anything fails.
 *
 * Packages of the library come without its header: what is used of DuckDB's C API is declared here.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdbool.h>
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

#define MAX_QUERIES 32

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

/* Reads a table's CSV files. */
static void
load(const char *table, int64_t rows, const char *columns, const char *files)
{
	char statement[4096];

	snprintf(statement, sizeof(statement),
			 "CREATE TABLE %s AS SELECT * FROM read_csv('%s', header = false, columns = {%s})", table, files, columns);
	run(statement);
	snprintf(statement, sizeof(statement), "SELECT count(*) FROM %s", table);
	if (run(statement) != rows)
		fail(table, "not as many rows as there should be");
}

int
main(int argc, char **argv)
{
	duckdb_database database;
	char statement[4096];
	char *queries[MAX_QUERIES];
	char *name[MAX_QUERIES];
	int64_t result_rows[MAX_QUERIES];
	char line[2048];
	int nqueries = 0;
	double load_seconds;

	if (argc < 3 || (argc - 3) % 4 != 0)
		fail("usage", "duckdb THREADS REPEATS [TABLE ROWS COLUMNS FILES]... < QUERIES");
	while (fgets(line, sizeof(line), stdin) != NULL)
	{
		char *rows = strchr(line, ' ');
		char *query;

		if (rows == NULL || nqueries == MAX_QUERIES)
			fail(line, "not \"name rows query\", or too many");
		*rows++ = '\0';
		result_rows[nqueries] = strtoll(rows, &query, 10);
		query[strcspn(query, "\n")] = '\0';
		name[nqueries] = strdup(line);
		queries[nqueries++] = strdup(query);
	}

	if (duckdb_open(getenv("DUCKDB_FILE"), &database) != DuckDBSuccess ||
		duckdb_connect(database, &connection) != DuckDBSuccess)
		fail("open", "no database");
	if (getenv("DUCKDB_MEMORY_LIMIT") != NULL)
	{
		snprintf(statement, sizeof(statement), "SET memory_limit = '%s'", getenv("DUCKDB_MEMORY_LIMIT"));
		run(statement);
		run("SET preserve_insertion_order = false"); /* as DuckDB's manual advises where memory is short */
	}
	snprintf(statement, sizeof(statement), "SET threads = %d", atoi(argv[1]));
	run(statement);
	load_seconds = seconds();
	for (int i = 3; i < argc; i += 4)
		load(argv[i], strtoll(argv[i + 1], NULL, 10), argv[i + 2], argv[i + 3]);
	load_seconds = seconds() - load_seconds;

	for (int repeat = 1; repeat <= atoi(argv[2]); repeat++)
	{
		for (int i = 0; i < nqueries; i++)
		{
			const bool copies = strncmp(queries[i], " COPY ", 6) == 0;
			double start;

			snprintf(statement, sizeof(statement), "%s%s", copies ? "" : "CREATE TABLE result AS", queries[i]);
			start = seconds();
			run(statement);
			printf("%s %d %.3f duckdb %s; loaded in %.1f s\n", name[i], repeat, (seconds() - start) * 1e3,
				   duckdb_library_version(), load_seconds);
			fflush(stdout);
			if (copies)
				continue;
			if (result_rows[i] > 0 && run("SELECT count(*) FROM result") != result_rows[i])
				fail(queries[i], "not as many rows as there should be");
			run("DROP TABLE result");
		}
	}
	duckdb_disconnect(&connection);
	duckdb_close(&database);
	return 0;
}
