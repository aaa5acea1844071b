/*-------------------------------------------------------------------------
 *
 * transaction.c
 *	  Whether a statement may read foreign tables over connections of its own.
 *
 * In a transaction postgres_fdw reads all of a server's rows in one snapshot, that of its first query there, and sees
 * what the transaction has changed there.  Other connections do neither.  So a statement may only use them if nothing
 * before it in its transaction can have changed or read a foreign table, if it is no part of another statement, which
 * may have several such parts, and if PostgreSQL itself would read its own tables in a new snapshot for each statement.
 *
 * Of Citus's tables it is not known what uses them: a function that Citus calls in a node, a lock that it takes in all.
 * So a statement has to be the first of its transaction.
 *
 *-------------------------------------------------------------------------
 */
#include "shards/transaction.h"

#include "access/xact.h"
#include "catalog/pg_class_d.h"
#include "nodes/parsenodes.h"
#include "optimizer/optimizer.h"
#include "storage/proc.h"

/* The transaction in which foreign tables may have been used last */
static LocalTransactionId used_in = InvalidLocalTransactionId;

/* Statements of a transaction that have begun and not ended, cursors among them; after an error there may be fewer */
static LocalTransactionId running_in = InvalidLocalTransactionId;
static int running = 0;

/* The transaction in which a statement has begun last, or a command that is no mere setting */
static LocalTransactionId begun_in = InvalidLocalTransactionId;

/* How many scans have begun that read alone, without parallel mode */
static uint64 alone = 0;

/* Returns why the statement that is planned or begins may not; NULL if it may. */
const char *
gpusort_shards_why_not_read(void)
{
	if (IsolationUsesXactSnapshot())
		return "the transaction reads all of its rows in one snapshot";
	if (used_in != InvalidLocalTransactionId && used_in == MY_TRANSACTION)
		return "the transaction may have used foreign tables before";
	if (running > 0 && running_in == MY_TRANSACTION)
		return "another statement runs";
	if (!parallel_leader_participation)
		return "parallel_leader_participation is off";
	return NULL;
}

/* The same of a statement that would read Citus's tables. */
const char *
gpusort_tasks_why_not_read(void)
{
	if (begun_in != InvalidLocalTransactionId && begun_in == MY_TRANSACTION)
		return "the statement is not the first of its transaction";
	return gpusort_shards_why_not_read();
}

/* A scan of the statement that begins reads alone, and must not be run in parallel mode. */
void
gpusort_shards_note_alone(void)
{
	alone++;
}

/* Returns how many such scans have begun. */
uint64
gpusort_shards_alone(void)
{
	return alone;
}

/* Something may use a foreign table by postgres_fdw. */
void
gpusort_shards_note_use(void)
{
	used_in = MY_TRANSACTION;
}

static bool
has_foreign_table(const PlannedStmt *stmt)
{
	ListCell *cell;

	foreach(cell, stmt->rtable)
	{
		const RangeTblEntry *rte = lfirst(cell);

		if (rte->rtekind == RTE_RELATION && rte->relkind == RELKIND_FOREIGN_TABLE)
			return true;
	}
	return false;
}

/*
 * A statement has begun, which runs or is only explained.  What it writes may go to foreign partitions, which it does
 * not name.
 */
void
gpusort_shards_note_start(const PlannedStmt *stmt, bool runs)
{
	if (runs && (stmt->commandType != CMD_SELECT || stmt->hasModifyingCTE || has_foreign_table(stmt)))
		gpusort_shards_note_use();
	if (runs)
		begun_in = MY_TRANSACTION;
	if (running_in != MY_TRANSACTION)
		running = 0;
	running_in = MY_TRANSACTION;
	running++;
}

/* A statement has ended. */
void
gpusort_shards_note_end(void)
{
	if (running > 0 && running_in == MY_TRANSACTION)
		running--;
}

/* Returns true if a command gives out the rows of a query. */
static bool
is_copy_of_query(const Node *command)
{
	return IsA(command, CopyStmt) && ((const CopyStmt *) command)->query != NULL;
}

/* Returns true if all that a command does is to begin, show or set something, or to run a statement. */
static bool
is_plain(const Node *command)
{
	switch (nodeTag(command))
	{
		case T_CopyStmt:
			return is_copy_of_query(command);
		case T_DeallocateStmt:
		case T_ExecuteStmt:
		case T_ExplainStmt:
		case T_PrepareStmt:
		case T_TransactionStmt:
		case T_VariableSetStmt:
		case T_VariableShowStmt:
			return true;
		default:
			return false;
	}
}

/* A command begins, which may use foreign tables in another way. */
void
gpusort_shards_note_command(const Node *command)
{
	if ((IsA(command, CopyStmt) && !is_copy_of_query(command)) || IsA(command, TruncateStmt) ||
		IsA(command, ImportForeignSchemaStmt) || IsA(command, VacuumStmt))
		gpusort_shards_note_use();
	if (!is_plain(command))
		begun_in = MY_TRANSACTION;
}
