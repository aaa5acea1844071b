/*-------------------------------------------------------------------------
 *
 * unique.c
 *	  A Unique over rows that GpuSort emits, which compares values as they are stored.
 *
 * A Unique copies each row that it gives out, and calls the equality function of each column for the next.  That takes
 * longer than GpuSort takes to emit the row.  Of columns of a fixed length whose values are equal only if their bytes
 * are, the values of the last row are kept instead, and rows pass through.  Which columns these are the types' btree
 * families say (the support function equalimage); text is none, as its bytes may be compressed.
 *
 * It stays PostgreSQL's node, as a window does (running.c): only what computes the next row is changed.  A Unique
 * starts over when its result slot is empty, which a rescan sees to; so that slot holds a row of NULLs meanwhile.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/unique.h"

#include "access/nbtree.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"

/* A column that rows are told apart by, and its value in the row given out last. */
typedef struct UniqueColumn
{
	int index; /* among the columns of the row, from 0 */
	int bytes; /* of a value that is none by itself, at the address in value; 0: value is the value */
	bool is_null;
	Datum value;
} UniqueColumn;

struct GpuSortUnique
{
	int needed; /* how many columns of a row are looked at, from the first */
	int count;
	UniqueColumn columns[FLEXIBLE_ARRAY_MEMBER];
};

/* Returns true if values of a column are equal, as that operator has it, only if their bytes are. */
static bool
equals_are_images(Oid op, Oid collation)
{
	List *families = get_mergejoin_opfamilies(op);
	Oid type;
	Oid right_type;
	bool found = false;
	ListCell *cell;

	op_input_types(op, &type, &right_type);
	foreach(cell, families)
	{
		const Oid function = get_opfamily_proc(lfirst_oid(cell), type, type, BTEQUALIMAGE_PROC);

		found |= type == right_type && OidIsValid(function) &&
			DatumGetBool(OidFunctionCall1Coll(function, collation, ObjectIdGetDatum(type)));
	}
	list_free(families);
	return found;
}

/* Returns true if a row differs from the one given out last; then keeps its values. */
static inline bool
is_another(struct GpuSortUnique *unique, TupleTableSlot *row, bool is_first)
{
	bool differs = is_first;

	slot_getsomeattrs(row, unique->needed);
	for (int i = 0; !differs && i < unique->count; i++)
	{
		const UniqueColumn *column = &unique->columns[i];
		const Datum value = row->tts_values[column->index];
		const bool is_null = row->tts_isnull[column->index];

		if (is_null || column->is_null)
			differs = is_null != column->is_null;
		else if (column->bytes == 0)
			differs = value != column->value;
		else
			differs = memcmp(DatumGetPointer(value), DatumGetPointer(column->value), column->bytes) != 0;
	}
	for (int i = 0; differs && i < unique->count; i++)
	{
		UniqueColumn *column = &unique->columns[i];
		const Datum value = row->tts_values[column->index];

		column->is_null = row->tts_isnull[column->index];
		if (column->bytes == 0)
			column->value = value;
		else if (!column->is_null)
			memcpy(DatumGetPointer(column->value), DatumGetPointer(value), column->bytes);
	}
	return differs;
}

/* The node's ExecProcNode: returns the next row that differs from the one before, an empty slot after the last. */
static TupleTableSlot *
exec_unique(PlanState *ps)
{
	PlanState *child = outerPlanState(ps);
	struct GpuSortUnique *unique = ((GpuSortScanState *) child)->unique;
	TupleTableSlot *started = ps->ps_ResultTupleSlot;

	for (;;)
	{
		TupleTableSlot *row;

		CHECK_FOR_INTERRUPTS();
		row = ExecProcNode(child);

		if (TupIsNull(row))
		{
			ExecClearTuple(started);
			return NULL;
		}
		if (is_another(unique, row, TTS_EMPTY(started)))
		{
			if (TTS_EMPTY(started))
				ExecStoreAllNullTuple(started);
			return row;
		}
	}
}

/*
 * Changes how a Unique right above a GpuSort computes its rows, if its columns allow that and GpuSort's rows are such
 * as the Unique's.  Both must have been begun.
 */
void
gpusort_unique_begin(UniqueState *unique, GpuSortScanState *scan)
{
	const Unique *plan = (const Unique *) unique->ps.plan;
	const TupleDesc desc = ExecGetResultType(gpusort_plan_state(scan));
	EState *estate = unique->ps.state;
	struct GpuSortUnique *new;

	if (!gpusort_plan_state(scan)->resultopsfixed || gpusort_plan_state(scan)->resultops != unique->ps.resultops)
		return;
	new = MemoryContextAllocZero(estate->es_query_cxt,
								 offsetof(struct GpuSortUnique, columns) + plan->numCols * sizeof(UniqueColumn));
	for (int i = 0; i < plan->numCols; i++)
	{
		const int index = plan->uniqColIdx[i] - 1;
		const int length = TupleDescAttr(desc, index)->attlen;
		const bool by_value = TupleDescAttr(desc, index)->attbyval;

		if (length <= 0 || !equals_are_images(plan->uniqOperators[i], plan->uniqCollations[i]))
			return;
		new->columns[i] = (UniqueColumn){.index = index, .bytes = by_value ? 0 : length};
		if (!by_value)
			new->columns[i].value = PointerGetDatum(MemoryContextAlloc(estate->es_query_cxt, length));
		new->needed = Max(new->needed, index + 1);
	}
	new->count = plan->numCols;
	scan->unique = new;
	ExecSetExecProcNode(&unique->ps, exec_unique);
}
