/*-------------------------------------------------------------------------
 *
 * advise.c
 *	  The function gpusort_advise(): what gpusort would change in the plans of the
 *	  statements that pg_stat_statements knows.
 *
 * Each statement that only reads is planned with gpusort, which takes places in the plan that PostgreSQL makes
 * without it, as its caller would plan it, and with parameters that are not known where it has some.  None is
 * run.  One that cannot be planned, for want of a right or of a table, has the error as its reason.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/transam.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/namespace.h"
#include "catalog/pg_class_d.h"
#include "commands/extension.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "node.h"
#include "nodes/nodeFuncs.h"
#include "nodes/value.h"
#include "parser/analyze.h"
#include "plan/decisions.h"
#include "plan/estimate.h"
#include "plan/finish/plan_tree.h"
#include "plan/planner.h"
#include "plan/tell/counted_text.h"
#include "tcop/tcopprot.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/tuplestore.h"

/* PostgreSQL 15's PG_FUNCTION_INFO_V1 does not export the function itself. */
extern PGDLLEXPORT Datum gpusort_advise(PG_FUNCTION_ARGS);

PG_FUNCTION_INFO_V1(gpusort_advise);

/* What pg_stat_statements has of a statement. */
typedef struct Statement
{
	int64 id;
	const char *text;
	int64 calls;
	double time; /* in milliseconds */
	int64 temp_blocks;
} Statement;

/* What there is to say of it. */
typedef struct Advice
{
	bool reads;        /* tables of users, and nothing else */
	bool changes;      /* gpusort has a node in its plan */
	const char *nodes; /* which, with how many of each */
	double native;     /* milliseconds of one run by the model, without gpusort; 0: not known */
	double ours;       /* and with it */
	const char *reason;
} Advice;

#define ADVICE_COLUMNS 11

static void
require(bool there, const char *what, const char *hint)
{
	if (!there)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("gpusort_advise() needs %s", what),
				 errhint("%s", hint)));
}

/* Returns the schema of an extension, quoted; names in the query are of pg_catalog. */
static const char *
find_schema(const char *extension)
{
	StringInfoData query;

	initStringInfo(&query);
	appendStringInfo(&query,
					 "SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace"
					 " WHERE e.extname = '%s'",
					 extension);
	if (SPI_execute(query.data, true, 1) != SPI_OK_SELECT || SPI_processed != 1)
		return NULL;
	return quote_identifier(SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1));
}

static int64
get_int64(HeapTuple tuple, int column)
{
	bool null;
	Datum value = SPI_getbinval(tuple, SPI_tuptable->tupdesc, column, &null);

	return null ? 0 : DatumGetInt64(value);
}

/* Returns the statements of this database that the caller may see, those that took longest first. */
static List *
read_statements(void)
{
	MemoryContext caller = CurrentMemoryContext;
	int level = NewGUCNestLevel();
	List *statements = NIL;
	const char *schema;
	StringInfoData query;

	(void) set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true,
							 0, false);
	SPI_connect();
	schema = find_schema("pg_stat_statements");
	require(schema != NULL, "the extension pg_stat_statements", "CREATE EXTENSION pg_stat_statements.");
	initStringInfo(&query);
	appendStringInfo(
		&query,
		"SELECT queryid, query, sum(calls)::bigint, sum(total_exec_time)::float8,"
		" sum(temp_blks_read + temp_blks_written)::bigint"
		" FROM %s.pg_stat_statements WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())"
		" AND queryid IS NOT NULL AND query IS NOT NULL GROUP BY queryid, query"
		" ORDER BY sum(total_exec_time) DESC, sum(temp_blks_read + temp_blks_written) DESC",
		schema);
	if (SPI_execute(query.data, true, 0) != SPI_OK_SELECT)
		elog(ERROR, "pg_stat_statements cannot be read");
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		HeapTuple tuple = SPI_tuptable->vals[i];
		MemoryContext before = MemoryContextSwitchTo(caller);
		Statement *statement = palloc(sizeof(Statement));
		bool null;

		statement->id = get_int64(tuple, 1);
		statement->text = SPI_getvalue(tuple, SPI_tuptable->tupdesc, 2);
		statement->calls = get_int64(tuple, 3);
		statement->time = DatumGetFloat8(SPI_getbinval(tuple, SPI_tuptable->tupdesc, 4, &null));
		statement->temp_blocks = get_int64(tuple, 5);
		statements = lappend(statements, statement);
		MemoryContextSwitchTo(before);
	}
	SPI_finish();
	AtEOXact_GUC(true, level);
	return statements;
}

/* Returns true if a table or view is neither the system's nor of what tells of statements. */
static bool
is_users(Oid relation)
{
	Oid extension;

	if (relation < FirstNormalObjectId)
		return false;
	extension = getExtensionOfObject(RelationRelationId, relation);
	if (!OidIsValid(extension))
		return true;
	return extension != get_extension_oid("gpusort", true) && extension != get_extension_oid("pg_stat_statements", true);
}

/* Returns true if a statement that is only parsed names a table that may be a user's: also one that is gone. */
static bool
find_name(Node *node, void *arg)
{
	if (node == NULL)
		return false;
	if (IsA(node, RangeVar))
	{
		Oid relation = RangeVarGetRelid((RangeVar *) node, NoLock, true);

		return !OidIsValid(relation) || is_users(relation);
	}
	return raw_expression_tree_walker(node, find_name, arg);
}

/* Returns true if a query reads a table that is a user's. */
static bool
find_table(Node *node, void *arg)
{
	if (node == NULL)
		return false;
	if (IsA(node, RangeTblEntry))
	{
		const RangeTblEntry *entry = (RangeTblEntry *) node;

		return entry->rtekind == RTE_RELATION && is_users(entry->relid);
	}
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, find_table, arg, QTW_EXAMINE_RTES_BEFORE);
	return expression_tree_walker(node, find_table, arg);
}

/*
 * Returns the one query of a statement's text, analyzed; NULL if it does something else than reading tables of users.
 * *text gets what was analyzed.
 */
static Query *
analyze(const char **text)
{
	List *parsed = gpusort_parse_counted(text);
	Oid *types = NULL;
	int ntypes = 0;
	List *queries;
	Query *query;

	if (list_length(parsed) != 1 || !IsA(linitial_node(RawStmt, parsed)->stmt, SelectStmt) ||
		!find_name(linitial_node(RawStmt, parsed)->stmt, NULL))
		return NULL;
	/* a number is missing where a parameter was replaced: pg_analyze_and_rewrite_varparams would not have that */
	queries = pg_rewrite_query(parse_analyze_varparams(linitial_node(RawStmt, parsed), *text, &types, &ntypes, NULL));
	if (list_length(queries) != 1)
		return NULL;
	query = linitial_node(Query, queries);
	if (query->commandType != CMD_SELECT || query->rowMarks != NIL || query->hasModifyingCTE)
		return NULL;
	return find_table((Node *) query, NULL) ? query : NULL;
}

static const CustomScanMethods *const kinds[] = {
	&gpusort_scan_methods, &gpusort_ingest_scan_methods, &gpusort_output_scan_methods, &gpusort_exchange_scan_methods,
	&gpusort_shard_scan_methods};

/* A GpuSortPlanCallback: counts the nodes of each of our kinds, in arg, an array. */
static void
count_nodes(Plan **link, void *arg)
{
	for (int i = 0; i < lengthof(kinds); i++)
		((int *) arg)[i] += gpusort_plan_is(*link, kinds[i]);
	gpusort_plan_each_child(*link, count_nodes, arg);
}

/* Returns the names of our nodes in a plan, NULL if it has none. */
static const char *
name_nodes(PlannedStmt *stmt)
{
	int counts[lengthof(kinds)] = {0};
	StringInfoData names;

	gpusort_plan_each_of_statement(stmt, count_nodes, counts);
	initStringInfo(&names);
	for (int i = 0; i < lengthof(kinds); i++)
	{
		if (counts[i] > 0)
			appendStringInfo(&names, "%s%s", names.len > 0 ? ", " : "", kinds[i]->CustomName);
		if (counts[i] > 1)
			appendStringInfo(&names, " x %d", counts[i]);
	}
	return names.len > 0 ? names.data : NULL;
}

/* Returns why sorts of a plan stay PostgreSQL's, each reason once; NULL if none does. */
static const char *
find_reasons(PlannedStmt *stmt)
{
	List *texts = NIL;
	StringInfoData reasons;
	ListCell *cell;

	foreach(cell, gpusort_decisions_of_plan(stmt))
	{
		const DefElem *decision = lfirst_node(DefElem, cell);

		if (strcmp(decision->defname, GPUSORT_NOT_USED) == 0)
			texts = list_append_unique(texts, lsecond((List *) decision->arg));
	}
	initStringInfo(&reasons);
	foreach(cell, texts)
		appendStringInfo(&reasons, "%s%s", reasons.len > 0 ? "; " : "", strVal(lfirst(cell)));
	return reasons.len > 0 ? reasons.data : NULL;
}

/* Plans a statement.  Errors: those of planning, and of rights. */
static void
plan_statement(const Statement *statement, Advice *advice)
{
	GpuSortEstimate estimate;
	const char *text = statement->text;
	Query *query = analyze(&text);
	PlannedStmt *stmt;

	if (query == NULL)
		return;
	advice->reads = true;
	gpusort_decisions_ask();
	stmt = gpusort_estimate_plan(query, text, &estimate);
	CHECK_PERMISSIONS(stmt);
	advice->nodes = name_nodes(stmt);
	advice->changes = advice->nodes != NULL;
	if (advice->changes && estimate.saved < estimate.native)
	{
		advice->native = estimate.native / 1e6;
		advice->ours = (estimate.native - estimate.saved) / 1e6;
	}
	advice->reason = find_reasons(stmt);
	if (!advice->changes && advice->reason == NULL)
		advice->reason = "its plan has no sort";
}

/* The same in a subtransaction, whose error becomes the reason; what there is to say is in the current context. */
static Advice
advise(const Statement *statement)
{
	MemoryContext caller = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	Advice advice = {0};

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(caller);
	PG_TRY();
	{
		plan_statement(statement, &advice);
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		ErrorData *error;

		MemoryContextSwitchTo(caller);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		if (error->sqlerrcode == ERRCODE_QUERY_CANCELED || error->sqlerrcode == ERRCODE_ADMIN_SHUTDOWN)
			ReThrowError(error);
		advice = (Advice){.reads = true, .reason = psprintf("cannot be planned: %s", error->message)};
	}
	PG_END_TRY();
	MemoryContextSwitchTo(caller);
	CurrentResourceOwner = owner;
	return advice;
}

static void
put_text(const char *text, Datum *value, bool *null)
{
	*null = text == NULL;
	if (text != NULL)
		*value = CStringGetTextDatum(text);
}

/* The rows of gpusort_advise(): of so many statements that only read. */
Datum
gpusort_advise(PG_FUNCTION_ARGS)
{
	int wanted = PG_GETARG_INT32(0);
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	List *statements;
	ListCell *cell;

	InitMaterializedSRF(fcinfo, 0);
	require(gpusort_planner_is_hooked(), "gpusort to be loaded by the server or the session",
			"Add gpusort to shared_preload_libraries, or LOAD 'gpusort'.");
	require(GetConfigOption("pg_stat_statements.max", true, false) != NULL, "the library pg_stat_statements",
			"Add pg_stat_statements to shared_preload_libraries, and restart the server.");
	statements = read_statements();
	foreach(cell, statements)
	{
		const Statement *statement = lfirst(cell);
		Datum values[ADVICE_COLUMNS] = {0};
		bool nulls[ADVICE_COLUMNS] = {0};
		Advice advice;

		CHECK_FOR_INTERRUPTS();
		if (wanted <= 0)
			break;
		advice = advise(statement);
		if (!advice.reads)
			continue;
		wanted--;
		values[0] = Int64GetDatum(statement->id);
		values[1] = CStringGetTextDatum(statement->text);
		values[2] = Int64GetDatum(statement->calls);
		values[3] = Float8GetDatum(statement->time);
		values[4] = Int64GetDatum(statement->temp_blocks);
		values[5] = BoolGetDatum(advice.changes);
		put_text(advice.nodes, &values[6], &nulls[6]);
		nulls[7] = nulls[9] = nulls[10] = advice.native == 0;
		values[7] = Float8GetDatum(advice.native == 0 ? 0 : advice.native / advice.ours);
		put_text(advice.reason, &values[8], &nulls[8]);
		values[9] = Float8GetDatum(advice.native);
		values[10] = Float8GetDatum(advice.ours);
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return (Datum) 0;
}
