/*-------------------------------------------------------------------------
 *
 * explain_function.c
 *	  The function gpusort_explain(): the plan of a statement, with what EXPLAIN (GPUSORT) says of its sorts.
 *
 * Before PostgreSQL 18 no module can have an option of EXPLAIN.  So PostgreSQL explains the plan here, and lines are
 * put between its own: of a node behind its properties, before the nodes below it.  Which line is which node's is told
 * by its estimated width, in the place of which the plan has the node's number while it is printed.
 *
 * The statement is planned as its caller would plan it, and not run.  It is not counted by pg_stat_statements.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "commands/explain.h"
#ifdef HAVE_EXPLAIN_OPTIONS
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#endif
#include "executor/executor.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "plan/decisions.h"
#include "plan/finish/plan_tree.h"
#include "plan/planner.h"
#include "plan/tell/plan_reasons.h"
#include "tcop/cmdtag.h"
#include "tcop/tcopprot.h"
#include "tcop/utility.h"
#include "utils/builtins.h"
#include "utils/snapmgr.h"
#include "utils/tuplestore.h"

/* PostgreSQL 15's PG_FUNCTION_INFO_V1 does not export the function itself. */
extern PGDLLEXPORT Datum gpusort_explain_statement(PG_FUNCTION_ARGS);

PG_FUNCTION_INFO_V1(gpusort_explain_statement);

/* What a node's width begins at that stands for its number: more than any row has bytes. */
#define NUMBER_AT 1500000000

/* A plan whose nodes' widths were taken for their numbers. */
typedef struct Numbered
{
	int nodes;   /* one more than the highest number */
	int *widths; /* by number */
} Numbered;

/* Returns the one query of a text, rewritten.  Errors: those of parsing, and if there is another number of them. */
static Query *
analyze(const char *text)
{
	List *parsed = pg_parse_query(text);
	Oid *types = NULL;
	int ntypes = 0;
	List *queries;

	if (list_length(parsed) != 1)
		ereport(ERROR,
				(errcode(ERRCODE_SYNTAX_ERROR),
				 errmsg("gpusort_explain() takes one statement, not %d", list_length(parsed))));
	queries = pg_analyze_and_rewrite_varparams(linitial_node(RawStmt, parsed), text, &types, &ntypes, NULL);
	if (list_length(queries) != 1)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("gpusort_explain() takes one statement, and rules turn this one into %d",
						list_length(queries))));
	if (linitial_node(Query, queries)->commandType == CMD_UTILITY)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("gpusort_explain() does not explain %s",
						GetCommandTagName(CreateCommandTag(linitial_node(Query, queries)->utilityStmt))),
				 errhint("Give it a SELECT, INSERT, UPDATE, DELETE or MERGE.")));
	return linitial_node(Query, queries);
}

/* A GpuSortPlanCallback: puts a node's number in the place of its width, of which arg gets a copy. */
static void
number_node(Plan **link, void *arg)
{
	Numbered *numbered = arg;
	Plan *plan = *link;

	if (plan->plan_node_id >= 0 && plan->plan_node_id < numbered->nodes && plan->plan_width < NUMBER_AT)
	{
		numbered->widths[plan->plan_node_id] = plan->plan_width;
		plan->plan_width = NUMBER_AT + plan->plan_node_id;
	}
	gpusort_plan_each_child(plan, number_node, arg);
}

/* Returns what PostgreSQL's EXPLAIN prints of a plan, numbered.  Errors: those of rights, and of starting it. */
static char *
explain(PlannedStmt *stmt, const char *text, Numbered *numbered)
{
	ExplainState *state = NewExplainState();
	QueryDesc *query;

	state->costs = true;
	PushCopiedSnapshot(GetActiveSnapshot());
	UpdateActiveSnapshotCommandId();
	query = CreateQueryDesc(stmt, text, GetActiveSnapshot(), InvalidSnapshot, None_Receiver, NULL, NULL, 0);
	ExecutorStart(query, EXEC_FLAG_EXPLAIN_ONLY | EXPLAIN_WITHOUT_PARAMETERS);
	gpusort_plan_each_of_statement(stmt, number_node, numbered); /* nodes have been started by their own widths */
	ExplainPrintPlan(state, query);
	ExecutorEnd(query);
	FreeQueryDesc(query);
	PopActiveSnapshot();
	return state->str->data;
}

/* Returns true if a line begins a node that is not the first. */
static bool
begins_node(const char *line)
{
	return strncmp(line + strspn(line, " "), "->", 2) == 0;
}

/* Returns the number of the node that a line is the first of, and where its width stands; -1: it is none's. */
static int
node_of_line(const char *line, bool is_first, const Numbered *numbered, const char **width, const char **behind)
{
	const char *found = is_first || begins_node(line) ? strstr(line, " width=") : NULL;
	char *end;
	long value;

	/* the last: what is before may be a name */
	for (const char *next = found; next != NULL; next = strstr(next + 1, " width="))
		found = next;
	if (found == NULL)
		return -1;
	*width = found + strlen(" width=");
	value = strtol(*width, &end, 10);
	*behind = end;
	if (*end != ')' || value < NUMBER_AT || value >= NUMBER_AT + (long) numbered->nodes)
		return -1;
	return value - NUMBER_AT;
}

/* Returns true if a line behind a node's first one is no property of it any more. */
static bool
begins_other(const char *line)
{
	if (begins_node(line))
		return true;
	line += strspn(line, " ");
	return strncmp(line, "InitPlan ", 9) == 0 || strncmp(line, "SubPlan ", 8) == 0 || strncmp(line, "CTE ", 4) == 0;
}

static void
put_line(ReturnSetInfo *result, const char *line)
{
	Datum value = CStringGetTextDatum(line);
	bool null = false;

	tuplestore_putvalues(result->setResult, result->setDesc, &value, &null);
}

/* Puts the lines about a node, whose properties are so far to the right. */
static void
put_reasons(ReturnSetInfo *result, List *reasons, int node, int indent)
{
	ListCell *cell;

	if (node < 0)
		return;
	foreach(cell, gpusort_decisions_of_node(reasons, node))
		put_line(result, psprintf("%*s%s: %s", indent, "", GPUSORT_REASON_LABEL, (const char *) lfirst(cell)));
}

/* Puts PostgreSQL's lines of a numbered plan, with the reasons between. */
static void
put_plan(ReturnSetInfo *result, char *lines, const Numbered *numbered, List *reasons)
{
	int node = -1;
	int indent = 0;

	for (char *line = strtok(lines, "\n"), *first = line; line != NULL; line = strtok(NULL, "\n"))
	{
		const char *width;
		const char *behind;
		int found = node_of_line(line, line == first, numbered, &width, &behind);

		if (found >= 0 || begins_other(line))
		{
			put_reasons(result, reasons, node, indent);
			node = found;
		}
		if (found >= 0)
		{
			indent = strspn(line, " ") + (line[strspn(line, " ")] == '-' ? 6 : 2);
			put_line(result, psprintf("%.*s%d%s", (int) (width - line), line, numbered->widths[found], behind));
		}
		else
			put_line(result, line);
	}
	put_reasons(result, reasons, node, indent);
}

/* The lines of gpusort_explain(). */
Datum
gpusort_explain_statement(PG_FUNCTION_ARGS)
{
	const char *source = text_to_cstring(PG_GETARG_TEXT_PP(0));
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	Numbered numbered;
	PlannedStmt *stmt;
	List *reasons;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	if (!gpusort_planner_is_hooked())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("gpusort_explain() needs gpusort to be loaded by the server or the session"),
				 errhint("Add gpusort to shared_preload_libraries, or LOAD 'gpusort'.")));
	gpusort_decisions_ask();
	stmt = PG_PLAN_QUERY(analyze(source), source, CURSOR_OPT_PARALLEL_OK);
	stmt->queryId = 0;
	reasons = gpusort_plan_reasons(stmt);
	numbered.nodes = gpusort_plan_last_node_id(stmt) + 1;
	numbered.widths = palloc0(numbered.nodes * sizeof(int));
	put_plan(result, explain(stmt, source, &numbered), &numbered, reasons);
	put_line(result, psprintf("%s: %s", GPUSORT_SERVICE_LABEL, gpusort_plan_service()));
	return (Datum) 0;
}
