/*-------------------------------------------------------------------------
 *
 * copy_former.c
 *	  Rows that PostgreSQL's own COPY TO forms in a worker, though they are not of its query.
 *
 * All that COPY keeps is private.  So a COPY to the client is begun for a query that never runs, of as many NULLs as
 * there are columns, of their names and types.  When COPY runs that query, the hook of ExecutorRun asks here
 * (takes_run), and COPY's receiver is given the rows.  Text, CSV, JSON and binary, quoting, NULL strings and encodings
 * are PostgreSQL's so, of each version.  What COPY sends before its rows and behind them is caught and dropped.  A file
 * gets what is in the messages.
 *
 * The statement reaches workers as text: its options, without the header, which the leader's COPY sends, with the
 * encoding by name, and with all columns in the place of a star; and the columns' names, which a worker's plan does not
 * have.
 *
 *-------------------------------------------------------------------------
 */
#include "form/copy_former.h"

#include "commands/copy.h"
#include "mb/pg_wchar.h"
#include "nodes/makefuncs.h"
#include "nodes/value.h"
#include "parser/parse_node.h"
#include "utils/backend_progress.h"

/* A COPY that is about to run its query. */
typedef struct PendingRun
{
	GpuSortFormer former;
	int encoding;
	GpuSortFormerCallback callback;
	void *arg;
} PendingRun;

static PendingRun *pending = NULL;

/* Returns a statement as text for workers, palloc'd. */
char *
gpusort_copy_statement_text(const CopyStmt *copy, TupleDesc desc)
{
	List *names = NIL;
	List *options = NIL;
	bool encoding = false;
	ListCell *cell;

	for (int i = 0; i < desc->natts; i++)
		names = lappend(names, makeString(NameStr(TupleDescAttr(desc, i)->attname)));
	foreach(cell, copy->options)
	{
		DefElem *option = lfirst_node(DefElem, cell);

		if (strcmp(option->defname, "header") == 0)
			continue;
		if (strcmp(option->defname, "encoding") == 0)
			encoding = true;
		if (option->arg != NULL && IsA(option->arg, A_Star))
			option = makeDefElem(option->defname, (Node *) names, -1);
		options = lappend(options, option);
	}
	if (!encoding)
	{
		char *name = pstrdup(pg_encoding_to_char(pg_get_client_encoding()));

		options = lappend(options, makeDefElem("encoding", (Node *) makeString(name), -1));
	}
	return nodeToString(list_make2(names, options));
}

/* Returns a query of NULLs, of one row with these columns. */
static RawStmt *
query_of_nulls(TupleDesc desc, List *names)
{
	SelectStmt *select = makeNode(SelectStmt);
	RawStmt *raw = makeNode(RawStmt);

	for (int i = 0; i < desc->natts; i++)
	{
		const Form_pg_attribute attribute = TupleDescAttr(desc, i);
		A_Const *null = makeNode(A_Const);
		TypeCast *cast = makeNode(TypeCast);
		ResTarget *target = makeNode(ResTarget);

		null->isnull = true;
		null->location = -1;
		cast->arg = (Node *) null;
		cast->typeName = makeTypeNameFromOid(attribute->atttypid, attribute->atttypmod);
		cast->location = -1;
		target->name = strVal(list_nth(names, i));
		target->val = (Node *) cast;
		target->location = -1;
		select->targetList = lappend(select->targetList, target);
	}
	raw->stmt = (Node *) select;
	return raw;
}

/*
 * Calls back with a former for rows of this descriptor, as the COPY of this text forms them.
 */
void
gpusort_with_copy_former(const char *statement, TupleDesc desc, bool binary, bool for_file, int encoding,
						 GpuSortFormerCallback callback, void *arg)
{
	PendingRun run = {
		.former = {.desc = desc, .has_head = binary, .for_file = for_file},
		.encoding = encoding,
		.callback = callback,
		.arg = arg,
	};
	List *told = stringToNode(statement);
	ParseState *pstate = make_parsestate(NULL);
	GpuSortCatch around;
	CopyToState copy;

	pstate->p_sourcetext = "";
	copy = BEGIN_COPY_TO(pstate, query_of_nulls(desc, linitial(told)), lsecond(told));
	pgstat_progress_end_command(); /* the leader's COPY is the one to be shown */
	gpusort_catch_init(&around, false);
	pending = &run;
	PG_TRY();
	{
		(void) gpusort_catch_begin(&around);
		(void) DoCopyTo(copy);
	}
	PG_FINALLY();
	{
		gpusort_catch_end(NULL);
		pending = NULL;
	}
	PG_END_TRY();
	EndCopyTo(copy);
	free_parsestate(pstate);
}

/*
 * For the hook of ExecutorRun: if this is the query of a COPY that was begun here, forms the rows that COPY is there
 * for, and returns true.
 */
bool
gpusort_copy_former_takes_run(QueryDesc *query)
{
	PendingRun *run = pending;

	if (run == NULL || query->dest->mydest != DestCopyOut)
		return false;
	pending = NULL;
	run->former.receiver = query->dest;
	gpusort_former_run(&run->former, run->encoding, run->callback, run->arg);
	return true;
}
