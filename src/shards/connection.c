/*-------------------------------------------------------------------------
 *
 * connection.c
 *	  Connections to the servers of postgres_fdw, for reading in one snapshot from several processes, and to the nodes
 *	  of Citus, for reading in a snapshot each.
 *
 * postgres_fdw has one connection to a server in a session, and lets nobody use it.  These are others, made of the same
 * options of server and user mapping, under the rules that postgres_fdw has for them, and set up as it sets up its own.
 * The first one that a statement opens to a server exports its snapshot; those in other processes import it.  So all
 * of them see the same rows.
 *
 * Citus has connections for a query of a shard each, as its user, and no snapshot that they share.  So have these.
 *
 * A connection belongs to a statement, and is closed when that ends, however it ends.  A query that still runs in the
 * shard then finds out by itself that nobody reads its rows.
 *
 * Legal order of calls: snapshot, in the leader; in each process connect; or connect_to_node alone; then ask, or
 * copy_begin and copy_row until that returns NULL; close, of a node, or release, after which the connection may be used
 * for the next.  What is released before the last row has come is closed, and with the leader's the snapshot may go: so
 * that is for the statement's end.
 *
 *-------------------------------------------------------------------------
 */
#include "shards/connection.h"

#include "access/xact.h"
#include "catalog/pg_user_mapping.h"
#include "commands/dbcommands.h"
#include "commands/defrem.h"
#include "foreign/foreign.h"
#include "lib/ilist.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "shards/libpq.h"
#include "storage/fd.h"
#include "storage/latch.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

/* Seconds after which a server that has not answered is given up, where no option says how many */
#define CONNECT_TIMEOUT 30

struct GpuSortShardConnection
{
	dlist_node link; /* in connections */
	EState *estate;  /* of the statement that it belongs to; NULL: to a node of Citus */
	Oid server;
	Oid user;
	bool used;           /* by a node, which has not released it */
	bool copying;        /* rows are still to come */
	bool starting;       /* the server has not said yet that they will */
	bool failed;         /* a statement of the transaction has */
	bool has_fd;         /* a file descriptor is counted for it */
	bool own_snapshot;   /* which it has exported, or was to */
	const char *why_not; /* it could not be opened, for this reason */
	char snapshot[GPUSORT_SNAPSHOT_NAME_BYTES];
	PGconn *conn;     /* NULL: closed */
	char *row;        /* the last that came, of libpq's memory */
	const char *node; /* of Citus: its host and port, for messages; else NULL */
	const char *sql;  /* what runs, likewise */
	MemoryContextCallback at_end;
};

/* Those of this process */
static dlist_head connections = DLIST_STATIC_INIT(connections);

/* --- options ---------------------------------------------------------------------------------- */

/* Returns an option of a server, a user mapping or a foreign table; NULL if it is not set. */
DefElem *
gpusort_shard_option(const List *options, const char *name)
{
	ListCell *cell;

	foreach(cell, options)
	{
		DefElem *option = lfirst_node(DefElem, cell);

		if (strcmp(option->defname, name) == 0)
			return option;
	}
	return NULL;
}

/* Keywords and values for libpq, whose last keyword is NULL */
typedef struct ConnectionOptions
{
	const char **keywords;
	const char **values;
	int count;
} ConnectionOptions;

static void
add_option(ConnectionOptions *options, const char *keyword, const char *value)
{
	options->keywords[options->count] = keyword;
	options->values[options->count++] = value;
}

/* Returns true if an option is one of libpq's that postgres_fdw passes on. */
static bool
is_passed_on(const PQconninfoOption *known, const char *name)
{
	for (; known->keyword != NULL; known++)
	{
		if (strcmp(known->keyword, name) == 0)
			return strchr(known->dispchar, 'D') == NULL && strcmp(name, "fallback_application_name") != 0 &&
				strcmp(name, "client_encoding") != 0;
	}
	return false;
}

static void
add_options(ConnectionOptions *options, const PQconninfoOption *known, const List *list)
{
	ListCell *cell;

	foreach(cell, list)
	{
		DefElem *option = lfirst_node(DefElem, cell);

		/* what stands for something in an application_name is postgres_fdw's */
		if (!is_passed_on(known, option->defname) ||
			(strcmp(option->defname, "application_name") == 0 && strchr(defGetString(option), '%') != NULL))
			continue;
		add_option(options, option->defname, defGetString(option));
	}
}

/* Returns whether a user mapping is one that postgres_fdw wants a password for. */
static bool
wants_password(const UserMapping *mapping)
{
	DefElem *required = gpusort_shard_option(mapping->options, "password_required");

	return !superuser_arg(mapping->userid) && (required == NULL || defGetBoolean(required));
}

static bool
has_password(const UserMapping *mapping)
{
	DefElem *password = gpusort_shard_option(mapping->options, "password");

	return password != NULL && defGetString(password)[0] != '\0';
}

/* Returns after how many seconds a server that has not answered is given up; 0: never. */
static int
connect_timeout(const ForeignServer *server)
{
	DefElem *timeout = gpusort_shard_option(server->options, "connect_timeout");

	return timeout != NULL ? atoi(defGetString(timeout)) : CONNECT_TIMEOUT;
}

/* Returns the options for a connection; *known is to be freed by the caller when they are no more used. */
static ConnectionOptions
options_of(const ForeignServer *server, const UserMapping *mapping, PQconninfoOption *known)
{
	const int most = list_length(server->options) + list_length(mapping->options) + 3;
	ConnectionOptions options = {
		.keywords = palloc(most * sizeof(char *)),
		.values = palloc(most * sizeof(char *)),
	};

	add_options(&options, known, server->options);
	add_options(&options, known, mapping->options);
	add_option(&options, "fallback_application_name", "gpusort");
	add_option(&options, "client_encoding", GetDatabaseEncodingName());
	add_option(&options, NULL, NULL);
	return options;
}

/* Returns true if there is a user mapping for a user, or for all. */
static bool
has_mapping(Oid server, Oid user)
{
	return SearchSysCacheExists2(USERMAPPINGUSERSERVER, ObjectIdGetDatum(user), ObjectIdGetDatum(server)) ||
		SearchSysCacheExists2(USERMAPPINGUSERSERVER, ObjectIdGetDatum(InvalidOid), ObjectIdGetDatum(server));
}

/* Returns true if a connection may lead to one of several servers, of which each has its own snapshots. */
static bool
has_several_hosts(const ForeignServer *server)
{
	const char *const names[] = {"host", "hostaddr"};

	for (int i = 0; i < lengthof(names); i++)
	{
		DefElem *hosts = gpusort_shard_option(server->options, names[i]);

		if (hosts != NULL && strchr(defGetString(hosts), ',') != NULL)
			return true;
	}
	return false;
}

/* Returns true if a user may connect to a server in a way that this file has: not by delegated credentials, say. */
bool
gpusort_shard_may_connect(Oid server, Oid user)
{
	const UserMapping *mapping;

	if (!has_mapping(server, user) || has_several_hosts(GetForeignServer(server)))
		return false;
	mapping = GetUserMapping(user, server);
	return !wants_password(mapping) || has_password(mapping);
}

/* --- opening and closing ---------------------------------------------------------------------- */

static void
close_connection(GpuSortShardConnection *connection)
{
	const GpuSortLibpq *libpq = gpusort_libpq();

	if (connection->row != NULL)
		libpq->PQfreemem(connection->row);
	connection->row = NULL;
	if (connection->conn != NULL)
		libpq->PQfinish(connection->conn);
	connection->conn = NULL;
	if (connection->has_fd)
		ReleaseExternalFD();
	connection->has_fd = false;
}

/* The statement ends. */
static void
end_connection(void *arg)
{
	GpuSortShardConnection *connection = arg;

	close_connection(connection);
	dlist_delete(&connection->link);
}

/* Waits until something comes, or may be sent; false: not until then. */
static bool
wait_for(GpuSortShardConnection *connection, int events, TimestampTz until)
{
	const GpuSortLibpq *libpq = gpusort_libpq();
	long timeout = -1;
	int happened;

	if (until != 0)
	{
		timeout = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), until);
		if (timeout <= 0)
			return false;
		events |= WL_TIMEOUT;
	}
	happened = WaitLatchOrSocket(MyLatch, events | WL_LATCH_SET | WL_EXIT_ON_PM_DEATH, libpq->PQsocket(connection->conn),
								 timeout, PG_WAIT_EXTENSION);
	if (happened & WL_LATCH_SET)
	{
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
	return true;
}

/* Waits until the connection is there; false: it has failed, or nothing has come in time. */
static bool
wait_for_server(GpuSortShardConnection *connection, int seconds)
{
	const GpuSortLibpq *libpq = gpusort_libpq();
	const TimestampTz until = seconds > 0 ? GetCurrentTimestamp() + seconds * USECS_PER_SEC : 0;
	PostgresPollingStatusType status = PGRES_POLLING_WRITING;

	if (libpq->PQstatus(connection->conn) == CONNECTION_BAD)
		return false;
	while (status == PGRES_POLLING_READING || status == PGRES_POLLING_WRITING)
	{
		if (!wait_for(connection, status == PGRES_POLLING_READING ? WL_SOCKET_READABLE : WL_SOCKET_WRITEABLE, until))
			return false;
		status = libpq->PQconnectPoll(connection->conn);
	}
	return status == PGRES_POLLING_OK;
}

/* Returns the next result of what was sent; NULL: there are no more. */
static PGresult *
next_result(GpuSortShardConnection *connection)
{
	const GpuSortLibpq *libpq = gpusort_libpq();

	while (libpq->PQisBusy(connection->conn))
	{
		wait_for(connection, WL_SOCKET_READABLE, 0);
		if (!libpq->PQconsumeInput(connection->conn))
			break;
	}
	return libpq->PQgetResult(connection->conn);
}

static const char *
message_of(const GpuSortShardConnection *connection)
{
	return pchomp(gpusort_libpq()->PQerrorMessage(connection->conn));
}

/*
 * Runs statements of which the last may give a row, whose values are set, in the current memory context; false, with
 * the server's reason, if one fails, or there is no such row.
 */
bool
gpusort_shard_ask(GpuSortShardConnection *connection, const char *sql, char **values, int count, const char **why_not)
{
	const GpuSortLibpq *libpq = gpusort_libpq();
	bool good = libpq->PQsendQuery(connection->conn, sql);
	int found = 0;
	PGresult *result;

	while ((result = next_result(connection)) != NULL)
	{
		const ExecStatusType status = libpq->PQresultStatus(result);

		good &= status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
		if (status == PGRES_TUPLES_OK && libpq->PQntuples(result) == 1 && libpq->PQnfields(result) == count)
		{
			for (found = 0; found < count; found++)
				values[found] = pstrdup(libpq->PQgetvalue(result, 0, found));
		}
		libpq->PQclear(result);
	}
	if (good && found == count)
		return true;
	connection->failed = true;
	*why_not = good ? "no row came" : message_of(connection);
	return false;
}

/* Tells a server to look whether somebody still reads its rows, if it can; else it goes on until it has one to send. */
static void
check_for_reader(GpuSortShardConnection *connection)
{
	const char *ignored;

	if (gpusort_shard_version(connection) >= 140000)
		gpusort_shard_ask(connection, "SET client_connection_check_interval = '1s'", NULL, 0, &ignored);
	connection->failed = false;
}

/* Sets a connection up as postgres_fdw does, and begins a transaction in a snapshot; NULL: one of its own. */
static bool
begin_transaction(GpuSortShardConnection *connection, const char *snapshot, const char **why_not)
{
	StringInfoData sql;
	char *exported;

	check_for_reader(connection);
	initStringInfo(&sql);
	appendStringInfoString(&sql,
						   "START TRANSACTION ISOLATION LEVEL REPEATABLE READ; SET search_path = pg_catalog;"
						   "SET timezone = 'GMT'; SET datestyle = ISO; SET intervalstyle = postgres;"
						   "SET extra_float_digits = 3; SET idle_in_transaction_session_timeout = 0;");
	if (snapshot != NULL)
	{
		appendStringInfo(&sql, "SET TRANSACTION SNAPSHOT %s", quote_literal_cstr(snapshot));
		strlcpy(connection->snapshot, snapshot, sizeof(connection->snapshot));
		return gpusort_shard_ask(connection, sql.data, NULL, 0, why_not);
	}
	appendStringInfoString(&sql, "SELECT pg_catalog.pg_export_snapshot()");
	if (!gpusort_shard_ask(connection, sql.data, &exported, 1, why_not))
		return false;
	if (strlcpy(connection->snapshot, exported, sizeof(connection->snapshot)) >= sizeof(connection->snapshot))
	{
		*why_not = "the name of a snapshot is too long";
		return false;
	}
	return true;
}

/* Opens a connection with these options; false, with a reason, if that fails. */
static bool
start_connection(GpuSortShardConnection *connection, const ConnectionOptions *options, int seconds,
				 const char **why_not)
{
	const GpuSortLibpq *libpq = gpusort_libpq();

	if (!AcquireExternalFD())
	{
		*why_not = "too many files are open";
		return false;
	}
	connection->has_fd = true;
	connection->conn = libpq->PQconnectStartParams(options->keywords, options->values, false);
	if (connection->conn == NULL)
	{
		*why_not = "out of memory";
		return false;
	}
	if (!wait_for_server(connection, seconds))
	{
		*why_not = message_of(connection);
		return false;
	}
	return true;
}

/* Opens a connection to a server of postgres_fdw; false, with a reason, if that fails. */
static bool
open_connection(GpuSortShardConnection *connection, const char *snapshot, const char **why_not)
{
	const GpuSortLibpq *libpq = gpusort_libpq();
	const ForeignServer *server = GetForeignServer(connection->server);
	const UserMapping *mapping = GetUserMapping(connection->user, connection->server);
	PQconninfoOption *known;
	ConnectionOptions options;

	if (libpq == NULL)
	{
		*why_not = "libpq is not loaded";
		return false;
	}
	known = libpq->PQconndefaults();
	if (known == NULL)
	{
		*why_not = "out of memory";
		return false;
	}
	options = options_of(server, mapping, known);
	libpq->PQconninfoFree(known);
	if (wants_password(mapping) && !has_password(mapping))
	{
		*why_not = "the user mapping has no password";
		return false;
	}
	if (!start_connection(connection, &options, connect_timeout(server), why_not))
		return false;
	if (wants_password(mapping) && !libpq->PQconnectionUsedPassword(connection->conn))
	{
		*why_not = "the server did not ask for a password";
		return false;
	}
	return begin_transaction(connection, snapshot, why_not);
}

/*
 * Returns a connection of a statement to a server: one that nobody uses, in this snapshot, or, if that is NULL, the one
 * whose snapshot others import, or that could not be opened for that.  Returns NULL if there is none.
 */
static GpuSortShardConnection *
find_connection(const EState *estate, Oid server, Oid user, const char *snapshot)
{
	dlist_iter iter;

	dlist_foreach(iter, &connections)
	{
		GpuSortShardConnection *connection = dlist_container(GpuSortShardConnection, link, iter.cur);

		if (connection->estate != estate || connection->server != server || connection->user != user)
			continue;
		if (snapshot == NULL ? connection->own_snapshot
							 : connection->conn != NULL && !connection->used &&
					strcmp(connection->snapshot, snapshot) == 0)
			return connection;
	}
	return NULL;
}

/* Returns a connection that is to be opened, and is closed with a memory context. */
static GpuSortShardConnection *
allocate_connection(MemoryContext context)
{
	GpuSortShardConnection *connection = MemoryContextAllocZero(context, sizeof(GpuSortShardConnection));

	dlist_push_tail(&connections, &connection->link);
	connection->at_end.func = end_connection;
	connection->at_end.arg = connection;
	MemoryContextRegisterResetCallback(context, &connection->at_end);
	return connection;
}

/* Opens a connection for a statement; NULL, with a reason, if there is none. */
static GpuSortShardConnection *
make_connection(EState *estate, Oid server, Oid user, const char *snapshot, const char **why_not)
{
	MemoryContext caller = MemoryContextSwitchTo(estate->es_query_cxt);
	GpuSortShardConnection *connection = allocate_connection(estate->es_query_cxt);

	connection->estate = estate;
	connection->server = server;
	connection->user = user;
	connection->own_snapshot = snapshot == NULL;
	if (!open_connection(connection, snapshot, &connection->why_not))
	{
		close_connection(connection);
		*why_not = connection->why_not;
	}
	MemoryContextSwitchTo(caller);
	return connection->conn != NULL ? connection : NULL;
}

/*
 * Returns a connection for a statement, in this snapshot of the server; NULL, with a reason, if there is none, and the
 * caller may do without.
 */
GpuSortShardConnection *
gpusort_shard_connect(EState *estate, Oid server, Oid user, const char *snapshot, const char **why_not)
{
	GpuSortShardConnection *connection = find_connection(estate, server, user, snapshot);

	if (connection == NULL)
		connection = make_connection(estate, server, user, snapshot, why_not);
	if (connection != NULL)
		connection->used = true;
	return connection;
}

/*
 * Returns the snapshot of a server that all of a statement's connections read in, in the leader; NULL, with a reason,
 * if there is none, and then there is none for the rest of the statement.  It lasts as long as that.
 */
const char *
gpusort_shard_snapshot(EState *estate, Oid server, Oid user, const char **why_not)
{
	GpuSortShardConnection *connection = find_connection(estate, server, user, NULL);

	if (connection == NULL)
		connection = make_connection(estate, server, user, NULL, why_not);
	else if (connection->why_not != NULL)
	{
		*why_not = connection->why_not;
		return NULL;
	}
	return connection != NULL ? connection->snapshot : NULL;
}

/* Adds the options that Citus's administrator has set for all nodes; what is no text of options is ignored. */
static void
add_conninfo(ConnectionOptions *options, const char *conninfo)
{
	const GpuSortLibpq *libpq = gpusort_libpq();
	PQconninfoOption *parsed = libpq->PQconninfoParse(conninfo, NULL);

	for (const PQconninfoOption *option = parsed; option != NULL && option->keyword != NULL; option++)
	{
		if (option->val != NULL)
			add_option(options, pstrdup(option->keyword), pstrdup(option->val));
	}
	libpq->PQconninfoFree(parsed);
}

/* The options that conninfo may have: more than libpq knows */
#define CONNINFO_OPTIONS 100

/* Opens a connection to a node of Citus, as Citus opens its own; false, with a reason: that fails. */
static bool
open_node(GpuSortShardConnection *connection, const GpuSortNode *node, const char **why_not)
{
	const int most = CONNINFO_OPTIONS + 7;
	ConnectionOptions options = {
		.keywords = palloc(most * sizeof(char *)),
		.values = palloc(most * sizeof(char *)),
	};

	if (gpusort_libpq() == NULL)
	{
		*why_not = "libpq is not loaded";
		return false;
	}
	connection->node = psprintf("%s:%d", node->host, node->port);
	add_conninfo(&options, node->conninfo);
	add_option(&options, "host", node->host);
	add_option(&options, "port", psprintf("%d", node->port));
	add_option(&options, "dbname", get_database_name(MyDatabaseId));
	add_option(&options, "user", GetUserNameFromId(node->user, false));
	add_option(&options, "application_name", node->application);
	add_option(&options, "client_encoding", GetDatabaseEncodingName());
	add_option(&options, NULL, NULL);
	if (!start_connection(connection, &options, node->timeout, why_not))
		return false;
	check_for_reader(connection);
	return true;
}

/*
 * Returns a connection to a node of Citus, which is closed with the current memory context; NULL, with a reason, if
 * there is none.
 */
GpuSortShardConnection *
gpusort_shard_connect_to_node(const GpuSortNode *node, const char **why_not)
{
	GpuSortShardConnection *connection = allocate_connection(CurrentMemoryContext);

	if (open_node(connection, node, why_not))
		return connection;
	close_connection(connection);
	return NULL;
}

/* Lets others of the statement use the connection. */
void
gpusort_shard_release(GpuSortShardConnection *connection)
{
	if (connection->copying || connection->failed)
		close_connection(connection);
	connection->used = false;
}

/* Closes the connection to a node: nothing of the statement uses it any more. */
void
gpusort_shard_close(GpuSortShardConnection *connection)
{
	close_connection(connection);
}

/* Returns the version of its server, such as 150020. */
int
gpusort_shard_version(const GpuSortShardConnection *connection)
{
	return gpusort_libpq()->PQserverVersion(connection->conn);
}

/* --- rows ------------------------------------------------------------------------------------- */

static char *
field(const PGresult *result, int code)
{
	const char *value = result != NULL ? gpusort_libpq()->PQresultErrorField(result, code) : NULL;

	return value != NULL ? pstrdup(value) : NULL;
}

/* Throws the error that a shard has told of, in a result that is freed, or the connection's own. */
pg_noreturn static void
fail(GpuSortShardConnection *connection, PGresult *result)
{
	char *state = field(result, PG_DIAG_SQLSTATE);
	char *message = field(result, PG_DIAG_MESSAGE_PRIMARY);
	char *detail = field(result, PG_DIAG_MESSAGE_DETAIL);
	char *hint = field(result, PG_DIAG_MESSAGE_HINT);
	char *context = field(result, PG_DIAG_CONTEXT);

	if (message == NULL)
		message = pstrdup(message_of(connection));
	if (result != NULL)
		gpusort_libpq()->PQclear(result);
	ereport(ERROR,
			(errcode(state != NULL && strlen(state) == 5
						 ? MAKE_SQLSTATE(state[0], state[1], state[2], state[3], state[4])
						 : ERRCODE_CONNECTION_FAILURE),
			 errmsg_internal("%s", message[0] != '\0' ? message : "the connection to a shard is lost"),
			 detail != NULL ? errdetail_internal("%s", detail) : 0, hint != NULL ? errhint("%s", hint) : 0,
			 context != NULL ? errcontext("%s", context) : 0,
			 connection->node != NULL ? errcontext("while executing command on %s", connection->node) : 0,
			 errcontext("remote SQL command: %s", connection->sql)));
}

/* Sends a COPY TO STDOUT, and does not wait for its rows.  The caller keeps the text until they have come. */
void
gpusort_shard_copy_begin(GpuSortShardConnection *connection, const char *sql)
{
	connection->sql = sql;
	connection->copying = true;
	connection->starting = true;
	if (!gpusort_libpq()->PQsendQuery(connection->conn, sql))
		fail(connection, NULL);
}

/* Waits until the COPY gives rows. */
static void
start_copy(GpuSortShardConnection *connection)
{
	const GpuSortLibpq *libpq = gpusort_libpq();
	PGresult *result = next_result(connection);

	if (libpq->PQresultStatus(result) != PGRES_COPY_OUT)
		fail(connection, result);
	libpq->PQclear(result);
	connection->starting = false;
}

/* The COPY has come to its end, or to an error. */
static void
end_copy(GpuSortShardConnection *connection)
{
	const GpuSortLibpq *libpq = gpusort_libpq();
	PGresult *result = next_result(connection);

	if (libpq->PQresultStatus(result) != PGRES_COMMAND_OK)
		fail(connection, result);
	libpq->PQclear(result);
	while ((result = next_result(connection)) != NULL)
		libpq->PQclear(result);
	connection->copying = false;
}

/*
 * Returns the next message of rows, which the caller may change, until the next call; NULL: there is none.  It is one
 * row, with its end of line; a binary one may have the beginning and the end of all in front of it and behind.
 */
char *
gpusort_shard_copy_row(GpuSortShardConnection *connection, int *length)
{
	const GpuSortLibpq *libpq = gpusort_libpq();

	if (connection->row != NULL)
		libpq->PQfreemem(connection->row);
	connection->row = NULL;
	if (connection->starting)
		start_copy(connection);
	for (;;)
	{
		*length = libpq->PQgetCopyData(connection->conn, &connection->row, true);
		if (*length > 0)
			return connection->row;
		if (*length < 0)
			break;
		wait_for(connection, WL_SOCKET_READABLE, 0);
		if (!libpq->PQconsumeInput(connection->conn))
			fail(connection, NULL);
	}
	end_copy(connection);
	return NULL;
}
