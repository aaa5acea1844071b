/*-------------------------------------------------------------------------
 *
 * citus.c
 *	  What Citus has planned for its nodes.
 *
 * For a query over several shards Citus has PostgreSQL plan another one at the coordinator, whose only table is a
 * CustomScan of Citus's that gives the rows of all tasks: each is the text of a query for one node.  The structs of
 * these are Citus's own.  But it writes them as text for nodeToString(), with names, as PostgreSQL does with its nodes.
 * That is what is read here.  Where a name is missing, or something is not as simple as it has to be, there are no
 * tasks, and Citus reads them itself.
 *
 * Tried with Citus 13.2.
 *
 *-------------------------------------------------------------------------
 */
#include "shards/citus.h"

#include "access/genam.h"
#include "access/table.h"
#include "catalog/pg_namespace_d.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "nodes/nodes.h"
#include "parser/parse_func.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

/* The node that runs tasks, and gives out what they return */
#define CITUS_SCAN "Citus Adaptive"

/* The path of it */
#define CITUS_PATH "CitusCustomScanPath"

/* The field that has the type of a node that is an extension's */
#define NODE_TYPE "extnodename"

/* --- the text of a node ----------------------------------------------------------------------- */

static const char *
skip_spaces(const char *at)
{
	return at + strspn(at, " \t\n");
}

/* Returns what is behind the word that begins here. */
static const char *
skip_word(const char *at)
{
	while (*at != '\0' && strchr(" \t\n(){}", *at) == NULL)
		at += at[0] == '\\' && at[1] != '\0' ? 2 : 1;
	return at;
}

/* Returns what is behind the node, list or word that begins here. */
static const char *
skip_value(const char *at)
{
	int depth = 0;

	do
	{
		at = skip_spaces(at);
		if (*at == '{' || *at == '(')
			depth++;
		else if (*at == '}' || *at == ')')
			depth--;
		else if (*at != '\0')
		{
			at = skip_word(at);
			continue;
		}
		else
			break;
		at++;
	} while (depth > 0);
	return at;
}

/* Returns where the value of a node's field begins; NULL: it has no such field, or this is no node. */
static const char *
find_field(const char *node, const char *name)
{
	const size_t length = strlen(name);
	const char *at;

	if (node == NULL || *node != '{')
		return NULL;
	for (at = skip_spaces(skip_word(node + 1)); *at != '\0' && *at != '}'; at = skip_spaces(skip_value(at)))
	{
		if (at[0] == ':' && strncmp(at + 1, name, length) == 0 && skip_word(at) == at + 1 + length)
			return skip_spaces(at + 1 + length);
	}
	return NULL;
}

/* Returns true if a node's field has a value that is this word. */
static bool
field_is(const char *node, const char *name, const char *word)
{
	const char *value = find_field(node, name);

	return value != NULL && strncmp(value, word, strlen(word)) == 0 && skip_word(value) == value + strlen(word);
}

/* Returns the string that is a node's field, without what protects its characters; NULL: there is none. */
static char *
string_field(const char *node, const char *name)
{
	const char *value = find_field(node, name);
	const char *end;
	StringInfoData text;

	if (value == NULL || strchr("{(<", *value) != NULL)
		return NULL;
	end = skip_word(value);
	initStringInfo(&text);
	for (; value < end; value++)
	{
		if (*value == '\\' && value + 1 < end)
			value++;
		appendStringInfoChar(&text, *value);
	}
	return text.data;
}

/* --- tasks ------------------------------------------------------------------------------------ */

/* Returns true if a query's text may have a parameter in it: where a dollar and a digit are only written, too. */
static bool
may_have_parameter(const char *sql)
{
	while ((sql = strchr(sql, '$')) != NULL)
	{
		if (sql[1] >= '0' && sql[1] <= '9')
			return true;
		sql++;
	}
	return false;
}

/* Returns what a task asks of which node, in the text of a task; NULL: it is not that simple. */
static GpuSortCitusTask *
read_task(const char *text)
{
	const char *placements = find_field(text, "taskPlacementList");
	const char *first = placements != NULL && *placements == '(' ? skip_spaces(placements + 1) : NULL;
	GpuSortCitusTask *task = palloc0(sizeof(GpuSortCitusTask));
	char *port;

	if (!field_is(text, NODE_TYPE, "Task") || !field_is(first, NODE_TYPE, "ShardPlacement") ||
		!field_is(text, "taskType", "1") || !field_is(text, "dependentTaskList", "<>") ||
		!field_is(text, "relationRowLockList", "<>") || !field_is(text, "modifyWithSubquery", "false"))
		return NULL;
	task->sql = string_field(text, "taskQuery.data.queryStringLazy");
	task->host = string_field(first, "nodeName");
	port = string_field(first, "nodePort");
	/* Citus would try others */
	if (*skip_spaces(skip_value(first)) != ')')
		return NULL;
	if (task->sql == NULL || task->host == NULL || port == NULL || strncmp(task->sql, "SELECT ", 7) != 0 ||
		may_have_parameter(task->sql))
		return NULL;
	task->port = atoi(port);
	return task;
}

/* Returns the tasks of which Citus's node gives the rows, each a GpuSortCitusTask; NIL: they are not that simple. */
List *
gpusort_citus_tasks(const CustomScan *scan)
{
	const char *plan;
	const char *job;
	const char *at;
	List *tasks = NIL;

	if (strcmp(scan->methods->CustomName, CITUS_SCAN) != 0 || list_length(scan->custom_private) != 1)
		return NIL;
	plan = nodeToString(linitial(scan->custom_private));
	job = find_field(plan, "workerJob");
	at = find_field(job, "taskList");
	if (!field_is(plan, NODE_TYPE, "DistributedPlan") || !field_is(job, NODE_TYPE, "Job") ||
		!field_is(plan, "modLevel", "1") || !field_is(plan, "subPlanList", "<>") ||
		!field_is(plan, "usedSubPlanNodeList", "<>") || !field_is(plan, "planningError", "<>") ||
		!field_is(job, "dependentJobList", "<>") || !field_is(job, "deferredPruning", "false") ||
		!field_is(job, "requiresCoordinatorEvaluation", "false") || at == NULL || *at != '(')
		return NIL;
	for (at = skip_spaces(at + 1); *at == '{'; at = skip_spaces(skip_value(at)))
	{
		GpuSortCitusTask *task = read_task(at);

		if (task == NULL)
			return NIL;
		tasks = lappend(tasks, task);
	}
	return *at == ')' ? tasks : NIL;
}

/* Returns the node of Citus's that gives the rows of a rel; NULL: that is no such one. */
CustomScan *
gpusort_citus_scan(PlannerInfo *root, RelOptInfo *rel)
{
	CustomPath *path = list_length(rel->pathlist) == 1 ? linitial(rel->pathlist) : NULL;
	Plan *plan;

	if (path == NULL || !IsA(path, CustomPath) || strcmp(path->methods->CustomName, CITUS_PATH) != 0 ||
		rel->baserestrictinfo != NIL)
		return NULL;
	/* it has made the node before, and sets its targets here, again when the path is the one that is taken */
	plan = path->methods->PlanCustomPath(root, rel, path, NIL, NIL, NIL);
	return IsA(plan, CustomScan) ? (CustomScan *) plan : NULL;
}

/* --- nodes ------------------------------------------------------------------------------------ */

static const char *
setting(const char *name)
{
	const char *value = GetConfigOption(name, true, false);

	return value != NULL ? value : "";
}

/*
 * Returns the name of Citus's connections.  By it nodes know what is a part of a query at this coordinator: that may
 * not have distributed queries of its own, sees shards, and does not count as a client's.
 */
const char *
gpusort_citus_application_name(void)
{
	const Oid function =
		LookupFuncName(list_make2(makeString("pg_catalog"), makeString("citus_backend_gpid")), 0, NULL, true);

	if (!OidIsValid(function))
		return "gpusort";
	return psprintf("citus_internal gpid=" INT64_FORMAT, DatumGetInt64(OidFunctionCall0(function)));
}

/* Returns what a connection to a task's node is made of, for a user, which has this name. */
GpuSortNode
gpusort_citus_node(const GpuSortCitusTask *task, Oid user, const char *application)
{
	return (GpuSortNode){
		.host = task->host,
		.port = task->port,
		.user = user,
		.conninfo = setting("citus.node_conninfo"),
		.application = application,
		.timeout = Max(1, atoi(setting("citus.node_connection_timeout")) / 1000),
	};
}

/* Returns true if one of Citus's tables has rows. */
static bool
has_rows(const char *name)
{
	const Oid oid = get_relname_relid(name, PG_CATALOG_NAMESPACE);
	Relation table;
	SysScanDesc scan;
	bool has;

	if (!OidIsValid(oid))
		return false;
	table = table_open(oid, AccessShareLock);
	scan = systable_beginscan(table, InvalidOid, false, NULL, 0, NULL);
	has = HeapTupleIsValid(systable_getnext(scan));
	systable_endscan(scan);
	table_close(table, AccessShareLock);
	return has;
}

/*
 * Returns why other connections to the nodes would not be like Citus's own: of a password, a pool or settings of a
 * transaction that these have, or since values do not come in their binary form as they are in this database.  NULL:
 * they would.
 */
const char *
gpusort_citus_why_not_connect(void)
{
	const char *const propagated = setting("citus.propagate_set_commands");

	if (propagated[0] != '\0' && strcmp(propagated, "none") != 0)
		return "citus.propagate_set_commands is set";
	if (strcmp(setting("citus.enable_binary_protocol"), "on") != 0)
		return "citus.enable_binary_protocol is off";
	if (pg_get_client_encoding() != GetDatabaseEncoding())
		return "the client's encoding is not the database's";
	if (has_rows("pg_dist_authinfo"))
		return "pg_dist_authinfo has rows";
	return has_rows("pg_dist_poolinfo") ? "pg_dist_poolinfo has rows" : NULL;
}
