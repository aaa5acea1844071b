/*-------------------------------------------------------------------------
 *
 * transaction.c
 *	  Whether a statement may read foreign tables over connections of its own.
 *
 * In a transaction postgres_fdw reads all of a server's rows in one snapshot, that of its first query there, and sees
 * what the transaction has changed there.  Other connections do neither.  So a statement may only use them if it is
 * the first of its transaction that has to do with foreign tables, and if PostgreSQL itself would read its own tables
 * in a new snapshot for each statement.
 *
 *-------------------------------------------------------------------------
 */
#include "shards/transaction.h"

#include "access/xact.h"
#include "catalog/pg_class_d.h"
#include "nodes/parsenodes.h"
#include "optimizer/optimizer.h"
#include "storage/proc.h"

/* The transaction in which foreign tables were last used */
static LocalTransactionId used_in = InvalidLocalTransactionId;

/* Returns why the statement that begins may not; NULL if it may. */
const char *
gpusort_shards_why_not_read(void)
{
	if (IsolationUsesXactSnapshot())
		return "the transaction reads all of its rows in one snapshot";
	if (used_in != InvalidLocalTransactionId && used_in == MY_TRANSACTION)
		return "the transaction has used foreign tables before";
	if (!parallel_leader_participation)
		return "parallel_leader_participation is off";
	return NULL;
}

/* A statement has begun: no later one of its transaction may, if it has foreign tables. */
void
gpusort_shards_note_statement(const PlannedStmt *stmt)
{
	ListCell *cell;

	foreach(cell, stmt->rtable)
	{
		const RangeTblEntry *rte = lfirst(cell);

		if (rte->rtekind == RTE_RELATION && rte->relkind == RELKIND_FOREIGN_TABLE)
		{
			used_in = MY_TRANSACTION;
			return;
		}
	}
}

/* A command begins, which may use foreign tables in another way. */
void
gpusort_shards_note_command(const Node *command)
{
	if (IsA(command, CopyStmt) || IsA(command, TruncateStmt) || IsA(command, ImportForeignSchemaStmt))
		used_in = MY_TRANSACTION;
}
