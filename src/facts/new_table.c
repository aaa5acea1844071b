/*-------------------------------------------------------------------------
 *
 * new_table.c
 *	  Whether all processes may put rows into pages of a table, or one many rows at once.
 *
 * Pages are written past the buffers, so nobody may read the table meanwhile.  The table of CREATE TABLE AS nobody else
 * sees.  One that rows are inserted into must be so, too: its file is of this transaction, which holds the lock that
 * excludes all others, or it is a temporary table of this session.  PostgreSQL's INSERT does nothing for such a table
 * but to put rows into it, if it has no triggers, indexes, constraints (but NOT NULL), generated columns, parents nor
 * children.
 *
 *-------------------------------------------------------------------------
 */
#include "facts/new_table.h"

#include "access/heapam.h"
#include "access/tableam.h"
#include "catalog/catalog.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "storage/lmgr.h"
#include "utils/rel.h"

#define NOT_HEAP "the table's access method is not heap"

/* Returns why pages of a table that nobody else sees are not for all processes, as the rest of a sentence, or NULL. */
const char *
gpusort_why_no_pages(Relation table)
{
	if (table->rd_tableam != GetHeapamTableAmRoutine())
		return NOT_HEAP;
	if (RelationUsesLocalBuffers(table) && OidIsValid(table->rd_rel->reltoastrelid))
		return "the table is temporary, and its values may be toasted";
	return NULL;
}

/* Returns true if nobody but this session can see what is in a table's file, while the transaction lasts. */
static bool
is_own(Relation table)
{
	if (table->rd_islocaltemp)
		return true;
	return (table->rd_createSubid != InvalidSubTransactionId ||
			NEW_LOCATOR_SUBID(table) != InvalidSubTransactionId) &&
		CheckRelationLockedByMe(table, AccessExclusiveLock, false);
}

static bool
has_dropped_columns(TupleDesc desc)
{
	for (int i = 0; i < desc->natts; i++)
	{
		if (TupleDescAttr(desc, i)->attisdropped)
			return true;
	}
	return false;
}

/*
 * Returns why an INSERT has more to do for a table than to put rows into it and look for NULLs, or must know of each
 * row before the next, as the rest of a sentence; or NULL.
 */
const char *
gpusort_why_not_inserted_at_once(Relation table)
{
	const TupleDesc desc = RelationGetDescr(table);
	const TupleConstr *constr = desc->constr;

	if (table->rd_rel->relkind != RELKIND_RELATION || table->rd_rel->relispartition)
		return "it is not a plain table";
	if (table->trigdesc != NULL)
		return "the table has triggers";
	if (RelationGetIndexList(table) != NIL)
		return "the table has indexes";
	if (constr != NULL && (constr->num_check > 0 || HAS_GENERATED(constr)))
		return "the table has constraints or generated columns";
	if (has_dropped_columns(desc))
		return "the table has dropped columns";
	if (has_subclass(RelationGetRelid(table)) || has_superclass(RelationGetRelid(table)))
		return "the table has parents or children";
	if (table->rd_tableam != GetHeapamTableAmRoutine())
		return NOT_HEAP;
	return NULL;
}

/* Returns why rows may not be inserted into pages of a table by all processes, as the rest of a sentence, or NULL. */
const char *
gpusort_why_not_inserted_by_pages(Relation table)
{
	const char *why_not = gpusort_why_not_inserted_at_once(table);

	if (why_not != NULL)
		return why_not;
	if (!is_own(table))
		return "the table is not new in this transaction";
	if (RelationIsLogicallyLogged(table))
		return "logical decoding may read the table's changes";
	return gpusort_why_no_pages(table);
}
