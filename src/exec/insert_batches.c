/*-------------------------------------------------------------------------
 *
 * insert_batches.c
 *	  An INSERT's sorted rows are put into a table many at once.
 *
 * PostgreSQL's INSERT puts row by row into a table: for each it looks for a page, locks it, and writes a log record.
 * COPY FROM fills a page at once, by table_multi_insert.  So do the rows of a GpuSort here, where nothing happens
 * between two rows that could tell: the sort has all rows before it gives out the first, only immutable functions are
 * called above it, and the table has nothing that PostgreSQL evaluates for each row but NOT NULL (facts/new_table.h).
 * A long row, which the table may refuse, is inserted before the next is looked at; so the first error is
 * PostgreSQL's.
 *
 * It stays PostgreSQL's node, as a window does (running.c): when it is asked for its first row, it puts all rows into
 * the table, and then runs by itself, and finds no row left.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/insert_batches.h"

#include "access/heaptoast.h"
#include "access/htup_details.h"
#include "access/tableam.h"
#include "executor/executor.h"
#include "facts/new_table.h"
#include "miscadmin.h"
#include "node.h"
#include "nodes/execnodes.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/rel.h"

/* As COPY FROM has it: rows and bytes of a batch. */
#define BATCH_ROWS  1000
#define BATCH_BYTES ((Size) 65535)

/* How a ModifyTable runs by itself: by one function. */
static ExecProcNodeMtd native = NULL;

typedef struct Batch
{
	ResultRelInfo *result;
	EState *estate;
	TupleTableSlot *slots[BATCH_ROWS]; /* NULL until they are needed */
	int count;
	Size bytes;
} Batch;

/* The walker: finds what is computed by a query of its own, or once for all rows, or may call any function. */
static bool
is_computed_apart(Node *node, void *arg)
{
	if (node == NULL)
		return false;
	if (IsA(node, CoerceToDomain) || IsA(node, SubPlan) || IsA(node, AlternativeSubPlan) ||
		(IsA(node, Param) && ((const Param *) node)->paramkind == PARAM_EXEC))
		return true;
	return expression_tree_walker(node, is_computed_apart, arg);
}

/* Returns true if nothing that a node computes can tell whether rows before have been inserted. */
static bool
computes_alike(const PlanState *ps)
{
	Node *const targets = (Node *) ps->plan->targetlist;
	Node *const qual = (Node *) ps->plan->qual;

	return !is_computed_apart(targets, NULL) && !is_computed_apart(qual, NULL) && !contain_mutable_functions(targets) &&
		!contain_mutable_functions(qual);
}

/* Returns true if a node gives out the rows of a GpuSort, and computes of them what may be computed at any time. */
static bool
gives_sorted_rows(const PlanState *ps)
{
	while (IsA(ps, SubqueryScanState) && computes_alike(ps))
		ps = ((const SubqueryScanState *) ps)->subplan;
	return IsA(ps, CustomScanState) && ((const CustomScan *) ps->plan)->methods == &gpusort_scan_methods &&
		computes_alike(ps);
}

/* Returns true if a query does nothing but to insert rows of a GpuSort into a table on which nothing hangs. */
static bool
inserts_sorted_rows(const QueryDesc *query)
{
	const ModifyTableState *modify = (const ModifyTableState *) query->planstate;
	const ModifyTable *plan;
	const ResultRelInfo *result;

	if (query->operation != CMD_INSERT || !IsA(modify, ModifyTableState) || query->plannedstmt->hasModifyingCTE ||
		!gives_sorted_rows(outerPlanState(modify)))
		return false;
	plan = (const ModifyTable *) modify->ps.plan;
	result = modify->resultRelInfo;
	return list_length(plan->resultRelations) == 1 && plan->onConflictAction == ONCONFLICT_NONE &&
		plan->withCheckOptionLists == NIL && plan->returningLists == NIL && result->ri_RootResultRelInfo == NULL &&
		result->ri_FdwRoutine == NULL && gpusort_why_not_inserted_at_once(result->ri_RelationDesc) == NULL &&
		ExecGetResultType(outerPlanState(modify))->natts == RelationGetDescr(result->ri_RelationDesc)->natts;
}

/* Puts the rows that wait into the table. */
static void
insert(Batch *batch)
{
	EState *estate = batch->estate;
	MemoryContext caller = MemoryContextSwitchTo(GetPerTupleMemoryContext(estate));

	CHECK_FOR_INTERRUPTS();
	table_multi_insert(batch->result->ri_RelationDesc, batch->slots, batch->count, estate->es_output_cid, 0, NULL);
	MemoryContextSwitchTo(caller);
	ResetPerTupleExprContext(estate);
	for (int i = 0; i < batch->count; i++)
		ExecClearTuple(batch->slots[i]);
	batch->count = 0;
	batch->bytes = 0;
}

/* Takes a row, and inserts when there are enough. */
static void
take(Batch *batch, TupleTableSlot *row)
{
	Relation table = batch->result->ri_RelationDesc;
	TupleTableSlot *slot = batch->slots[batch->count];
	HeapTuple tuple;
	bool shared;

	if (slot == NULL)
		slot = batch->slots[batch->count] = table_slot_create(table, &batch->estate->es_tupleTable);
	ExecCopySlot(slot, row);
	slot->tts_tableOid = RelationGetRelid(table);
	if (RelationGetDescr(table)->constr != NULL)
		ExecConstraints(batch->result, slot, batch->estate);
	tuple = ExecFetchSlotHeapTuple(slot, false, &shared);
	batch->bytes += tuple->t_len;
	batch->count++;
	if (batch->count == BATCH_ROWS || batch->bytes > BATCH_BYTES || tuple->t_len > TOAST_TUPLE_THRESHOLD ||
		HeapTupleHasExternal(tuple))
		insert(batch);
}

/* Inserts all rows, as the ExecProcNode of a ModifyTable, which is asked again only when it has run by itself. */
static TupleTableSlot *
exec_batches(PlanState *ps)
{
	ModifyTableState *modify = castNode(ModifyTableState, ps);
	EState *estate = ps->state;
	MemoryContext caller = MemoryContextSwitchTo(estate->es_query_cxt);
	Batch *batch = palloc0(sizeof(Batch));
	uint64 rows = 0;
	TupleTableSlot *row;

	batch->result = modify->resultRelInfo;
	batch->estate = estate;
	for (row = ExecProcNode(outerPlanState(modify)); !TupIsNull(row); row = ExecProcNode(outerPlanState(modify)))
	{
		take(batch, row);
		rows++;
	}
	if (batch->count > 0)
		insert(batch);
	MemoryContextSwitchTo(caller);
	if (modify->canSetTag)
		estate->es_processed += rows;
	ExecSetExecProcNode(ps, native);
	return native(ps);
}

/* Changes how a query that has been started inserts its rows, if they may be inserted many at once. */
void
gpusort_insert_batches(QueryDesc *query)
{
	PlanState *ps = query->planstate;

	if (!inserts_sorted_rows(query))
		return;
	if (native == NULL)
		native = ps->ExecProcNodeReal;
	if (ps->ExecProcNodeReal == native)
		ExecSetExecProcNode(ps, exec_batches);
}
