/*-------------------------------------------------------------------------
 *
 * statement.c
 *	  What is known of the statement that is being planned.
 *
 * Planning a statement can plan another one, when it computes a constant: planner.c begins and ends each.
 *
 *-------------------------------------------------------------------------
 */
#include "plan/statement.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_proc.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "settings.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

static GpuSortStatement current;

/* Returns the SELECT whose rows an INSERT inserts, and nothing of which it computes elsewhere; NULL: there is none. */
Query *
gpusort_inserted_select(const Query *query)
{
	const RangeTblEntry *rte;

	if (query->commandType != CMD_INSERT || query->hasModifyingCTE || query->cteList != NIL ||
		query->jointree->quals != NULL || list_length(query->jointree->fromlist) != 1 ||
		!IsA(linitial(query->jointree->fromlist), RangeTblRef))
		return NULL;
	rte = rt_fetch(linitial_node(RangeTblRef, query->jointree->fromlist)->rtindex, query->rtable);
	return rte->rtekind == RTE_SUBQUERY ? rte->subquery : NULL;
}

/* Returns true if a statement reads, with all that it calls, and does nothing else. */
static bool
only_reads(const Query *query)
{
	return !query->hasModifyingCTE && !contain_volatile_functions((Node *) query);
}

static bool may_read_tables(Oid function, void *arg);

/* Returns true if an aggregate, which is always said to be immutable, calls a function that may read tables. */
static bool
aggregate_may_read_tables(Oid aggregate)
{
	HeapTuple tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(aggregate));
	Form_pg_aggregate form;
	bool may = true;

	if (!HeapTupleIsValid(tuple))
		return may;
	form = (Form_pg_aggregate) GETSTRUCT(tuple);
	may = may_read_tables(form->aggtransfn, NULL) || may_read_tables(form->aggfinalfn, NULL) ||
		may_read_tables(form->aggcombinefn, NULL) || may_read_tables(form->aggserialfn, NULL) ||
		may_read_tables(form->aggdeserialfn, NULL) || may_read_tables(form->aggmtransfn, NULL) ||
		may_read_tables(form->aggminvtransfn, NULL) || may_read_tables(form->aggmfinalfn, NULL);
	ReleaseSysCache(tuple);
	return may;
}

/*
 * A check_function_callback: returns true if a function may read tables that the statement does not name.  Those of
 * PostgreSQL's own that do are not for parallel workers.
 */
static bool
may_read_tables(Oid function, void *arg)
{
	if (function < FirstNormalObjectId)
		return false;
	return func_volatile(function) != PROVOLATILE_IMMUTABLE ||
		(get_func_prokind(function) == PROKIND_AGGREGATE && aggregate_may_read_tables(function));
}

/* The walker: returns true if something in a query may read tables that it does not name. */
static bool
find_reads(Node *node, void *arg)
{
	if (node == NULL)
		return false;
	if (IsA(node, RangeTblEntry))
	{
		const TableSampleClause *sample = ((const RangeTblEntry *) node)->tablesample;

		return sample != NULL && may_read_tables(sample->tsmhandler, NULL);
	}
	if (check_functions_in_node(node, may_read_tables, NULL))
		return true;
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, find_reads, arg, QTW_EXAMINE_RTES_BEFORE);
	return expression_tree_walker(node, find_reads, arg);
}

/*
 * Returns what is known of a statement that is not planned yet: planning changes the query.  It may be planned as a
 * part of another one.
 */
GpuSortStatement
gpusort_statement_of(const Query *query, int cursor_options, bool part)
{
	const Query *inserted = gpusort_inserted_select(query);
	const bool rescannable = only_reads(query);

	return (GpuSortStatement){
		.rescannable = rescannable,
		.scrollable = (cursor_options & CURSOR_OPT_SCROLL) != 0,
		.reads_tables = find_reads((Node *) query, NULL),
		.has_workers = !part && (cursor_options & CURSOR_OPT_PARALLEL_OK) != 0 && query->commandType == CMD_SELECT &&
			rescannable,
		.starts_workers = gpusort_parallel_cursors &&
			(query->commandType == CMD_SELECT ? rescannable
											  : inserted != NULL && (rescannable || only_reads(inserted))),
	};
}

/* Begins to plan a statement.  Returns what was known of the one before it, for gpusort_statement_end. */
GpuSortStatement
gpusort_statement_begin(const GpuSortStatement *statement)
{
	const GpuSortStatement before = current;

	current = *statement;
	return before;
}

/* To be called whatever happens. */
void
gpusort_statement_end(const GpuSortStatement *before)
{
	current = *before;
}

/*
 * Returns why what is above a sort must not run by ranges, in all processes: a fallback could not read the rows again,
 * or a cursor could not go backward.  NULL: it may.
 */
const char *
gpusort_statement_why_alone(void)
{
	if (!current.rescannable)
		return "reading the input again might give other rows";
	if (current.scrollable)
		return "the cursor can scroll";
	if (!gpusort_parallel_output)
		return "gpusort.parallel_output is off";
	return current.own_workers == GPUSORT_OWN_WORKERS_TAKE_IN ? "its rows go to a cursor or an INSERT" : NULL;
}

/* Returns true if a function that the statement calls may read tables that it does not name. */
bool
gpusort_statement_reads_tables(void)
{
	return current.reads_tables;
}

/* Returns true if processes that share rows may hand over what they make of them. */
bool
gpusort_statement_shares_output(void)
{
	return gpusort_parallel_output && current.own_workers == GPUSORT_NO_OWN_WORKERS;
}

/* Returns true if the leader stores rows that all processes make, until they are read. */
bool
gpusort_statement_stores_rows(void)
{
	return current.own_workers == GPUSORT_OWN_WORKERS_COMPUTE;
}

/* Returns true if the statement is an INSERT whose rows all processes may put into pages of a table. */
bool
gpusort_statement_fills_pages(void)
{
	return current.own_workers == GPUSORT_OWN_WORKERS_FILL;
}

/* Returns true if somebody asks how long the path of the statement is expected to take. */
bool
gpusort_statement_time_is_wanted(void)
{
	return current.time != NULL;
}

/* Notes it, in ns, for who asks. */
void
gpusort_statement_note_time(double time)
{
	*current.time = time;
}

/* Returns the hazard of the SELECT that an INSERT is planned with for several processes; 0: it is not. */
char
gpusort_statement_select_hazard(void)
{
	return current.select_hazard;
}

/* Returns true if postgres_fdw alone reads the statement's foreign tables. */
bool
gpusort_statement_leaves_shards(void)
{
	return current.leaves_shards;
}

/* Returns true if PostgreSQL may plan the statement for several processes, and it is no part of another one. */
bool
gpusort_statement_has_workers(void)
{
	return current.has_workers;
}
