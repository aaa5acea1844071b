/*-------------------------------------------------------------------------
 *
 * table_out.c
 *	  Rows of a GpuSortExchange are put into a new table's pages by all processes.
 *
 * CREATE TABLE AS, SELECT INTO and the like give a query's rows to a receiver of PostgreSQL's, whose startup makes the
 * table and opens it; REFRESH MATERIALIZED VIEW, and from 18 on CREATE, to another one, for a table that was made
 * before.  A receiver of this file stands before it.  When the table is there, it has the node put all rows into its
 * pages (gpusort_exchange_fill_table), and is given one slot that stands for all of them.  Where that cannot be, rows
 * come as rows, and are PostgreSQL's receiver's: all of them, since it makes the same file longer.
 *
 * An INSERT has no receiver: where ModifyTable would insert the rows of a GpuSortExchange into a table that nobody else
 * sees (facts/new_table.h), the node puts them behind the table's pages, and ModifyTable gets none.
 *
 * What PostgreSQL's receivers know is theirs alone, so it is declared here again, and not believed without looking: the
 * methods must be PostgreSQL's own, a receiver made for the purpose must have what it was given where it is
 * expected, and the table's identity must stand there twice.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/table_out.h"

#include "access/heapam.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/catalog.h"
#include "catalog/objectaddress.h"
#include "catalog/pg_class.h"
#include "commands/createas.h"
#include "commands/matview.h"
#include "exec/exchange.h"
#include "exec/receiver.h"
#include "executor/executor.h"
#include "facts/new_table.h"
#include "pgstat.h"
#include "settings.h"
#include "storage/bufmgr.h"
#include "storage/predicate.h"
#include "utils/rel.h"

/* The receiver of CREATE TABLE AS, as in commands/createas.c. */
typedef struct IntoReceiver
{
	DestReceiver pub;
	IntoClause *into;
	Relation table;
	ObjectAddress address;
	CommandId cid;
	int options;
	BulkInsertState bulk; /* NULL: rows are not wanted */
} IntoReceiver;

/* The receiver of REFRESH MATERIALIZED VIEW, as in commands/matview.c. */
typedef struct TransientReceiver
{
	DestReceiver pub;
	Oid id;
	Relation table;
	CommandId cid;
	int options;
	BulkInsertState bulk;
} TransientReceiver;

/* Stands before one of these. */
typedef struct TableOut
{
	GpuSortReceiver base; /* must be first field */
	GpuSortNewTable table;
} TableOut;

typedef bool (*ReceiveSlot)(TupleTableSlot *slot, DestReceiver *self);

/* The methods of these; NULL: they are not what they were. */
static ReceiveSlot into_receive = NULL;
static ReceiveSlot transient_receive = NULL;
static bool methods_known = false;

/* Any object's address and id do to see whether a receiver keeps them where it should. */
static void
find_methods(void)
{
	IntoClause *into = makeNode(IntoClause);
	const Oid id = RelationRelationId;
	DestReceiver *receiver = CreateIntoRelDestReceiver(into);

	if (((IntoReceiver *) receiver)->into == into)
		into_receive = receiver->receiveSlot;
	receiver->rDestroy(receiver);
	receiver = CreateTransientRelDestReceiver(id);
	if (((TransientReceiver *) receiver)->id == id)
		transient_receive = receiver->receiveSlot;
	receiver->rDestroy(receiver);
	pfree(into);
	methods_known = true;
}

/* Returns true if a receiver is PostgreSQL's own, and fills a new table. */
static bool
fills_table(const DestReceiver *receiver)
{
	if (receiver->mydest != DestIntoRel && receiver->mydest != DestTransientRel)
		return false;
	if (!methods_known)
		find_methods();
	return receiver->receiveSlot == (receiver->mydest == DestIntoRel ? into_receive : transient_receive);
}

/* Returns the table of such a receiver that has been started up; NULL: it has none. */
static Relation
receiver_table(const DestReceiver *receiver)
{
	const IntoReceiver *into = (const IntoReceiver *) receiver;
	const TransientReceiver *transient = (const TransientReceiver *) receiver;
	Relation table;
	Oid id;

	if (receiver->mydest == DestIntoRel)
	{
		if (into->bulk == NULL || into->address.classId != RelationRelationId)
			return NULL;
		table = into->table;
		id = into->address.objectId;
	}
	else
	{
		table = transient->table;
		id = transient->id;
	}
	return table != NULL && RelationGetRelid(table) == id ? table : NULL;
}

/* Returns true if rows of a query, as they are formed, are rows of a table. */
static bool
has_rows_like(Relation table, TupleDesc desc)
{
	const TupleDesc own = RelationGetDescr(table);

	if (own->natts != desc->natts)
		return false;
	for (int i = 0; i < desc->natts; i++)
	{
		const FormData_pg_attribute *column = TupleDescAttr(own, i);
		const FormData_pg_attribute *given = TupleDescAttr(desc, i);

		if (column->attisdropped || column->attlen != given->attlen || column->attalign != given->attalign ||
			column->attbyval != given->attbyval)
			return false;
	}
	return true;
}

/*
 * Describes a table that takes rows of this transaction.  Returns why its pages cannot be written, or NULL.  Assigns
 * the transaction's id.
 */
static const char *
describe(Relation relation, GpuSortNewTable *table)
{
	table->xid = GetCurrentTransactionId();
	/* what a table is rewritten to is not decoded */
	if (RelationIsLogicallyLogged(relation) && !OidIsValid(relation->rd_rel->relrewrite))
		return "logical decoding may read the table's changes";
	table->table = RelationGetRelid(relation);
	table->pages = RelationGetNumberOfBlocks(relation);
	return NULL;
}

/*
 * The same for the table of such a receiver, which has been started up for rows like desc of a GpuSortExchange.  What a
 * query reads of a table by its name is in buffers, and no pages that have been written are; what REFRESH fills has a
 * name that nobody knows.
 */
static const char *
describe_table(const DestReceiver *receiver, const PlanState *exchange, TupleDesc desc, GpuSortNewTable *table)
{
	const bool is_into = receiver->mydest == DestIntoRel;
	const int options =
		is_into ? ((const IntoReceiver *) receiver)->options : ((const TransientReceiver *) receiver)->options;
	Relation relation = receiver_table(receiver);
	const char *why_not = relation != NULL ? gpusort_why_no_pages(relation) : "the receiver has no table";

	if (why_not != NULL)
		return why_not;
	if (relation->rd_rel->relkind != RELKIND_RELATION && relation->rd_rel->relkind != RELKIND_MATVIEW)
		return "it is not a table";
	if (!has_rows_like(relation, desc))
		return "the table has other columns";
	if ((options & ~(TABLE_INSERT_SKIP_FSM | TABLE_INSERT_FROZEN)) != 0)
		return "rows are inserted with options that are not supported";
	if (RelationGetNumberOfBlocks(relation) != 0)
		return "the table is not empty";
	if (is_into && gpusort_exchange_reads_tables(exchange))
		return "a function of the query may read the table";
	table->cid = is_into ? ((const IntoReceiver *) receiver)->cid : ((const TransientReceiver *) receiver)->cid;
	table->options = options;
	return describe(relation, table);
}

/* Tells, if it is logged, why one process writes a table. */
static void
log_alone(const char *why_not)
{
	if (gpusort_log_decisions)
		ereport(LOG, (errmsg("gpusort: only one process writes the new table: %s", why_not)));
}

static void
start_up(DestReceiver *self, int operation, TupleDesc desc)
{
	TableOut *out = (TableOut *) self;
	const char *why_not;

	out->base.receiver->rStartup(out->base.receiver, operation, desc);
	why_not = describe_table(out->base.receiver, out->base.exchange, desc, &out->table);
	if (why_not == NULL)
		gpusort_exchange_fill_table(out->base.exchange, &out->table, NULL);
	else
		log_alone(why_not);
}

static bool
receive(TupleTableSlot *slot, DestReceiver *self)
{
	TableOut *out = (TableOut *) self;
	const GpuSortFormedRows *placed = gpusort_exchange_formed_rows(out->base.exchange, slot);

	if (placed == NULL)
		return out->base.receiver->receiveSlot(slot, out->base.receiver);
	pgstat_count_heap_insert(receiver_table(out->base.receiver), placed->rows);
	out->base.estate->es_processed += placed->rows - 1;
	return true;
}

/* Returns what stands before the receiver of a query of a GpuSortExchange; NULL: its rows fill no new table. */
DestReceiver *
gpusort_table_out_create(QueryDesc *query)
{
	TableOut *out;

	if (!fills_table(query->dest))
		return NULL;
	out = gpusort_receiver_create(query, sizeof(TableOut), receive);
	out->base.pub.rStartup = start_up;
	return &out->base.pub;
}

/* Describes the table of an INSERT of rows like desc.  Returns why its pages cannot be written, or NULL. */
static const char *
describe_inserted(const ResultRelInfo *result, const EState *estate, TupleDesc desc, GpuSortNewTable *table)
{
	Relation relation = result->ri_RelationDesc;
	const char *why_not = gpusort_why_not_inserted_by_pages(relation);

	if (why_not != NULL)
		return why_not;
	if (!has_rows_like(relation, desc))
		return "the table has other columns";
	if (RelationGetDescr(relation)->constr != NULL && RelationGetDescr(relation)->constr->has_not_null)
		table->checked = result->ri_RangeTableIndex;
	table->cid = estate->es_output_cid;
	return describe(relation, table);
}

/*
 * Lets all processes put into pages what an INSERT inserts, which reads all rows of a GpuSortExchange, where that may
 * be.  It may be if the plan was made for it (plan/insert_select.h).  If the table has changed since then PostgreSQL
 * makes a kept plan anew.  The table is looked at again all the same, and if it is not as it was rows come as rows.
 */
void
gpusort_table_out_insert(QueryDesc *query)
{
	const ModifyTableState *modify = castNode(ModifyTableState, query->planstate);
	PlanState *exchange = outerPlanState(modify);
	Relation relation = modify->resultRelInfo->ri_RelationDesc;
	GpuSortNewTable *table = palloc0(sizeof(GpuSortNewTable));
	const char *why_not =
		describe_inserted(modify->resultRelInfo, query->estate, ExecGetResultType(exchange), table);

	if (why_not != NULL)
	{
		log_alone(why_not);
		return;
	}
	CheckForSerializableConflictIn(relation, NULL, InvalidBlockNumber);
	gpusort_exchange_fill_table(exchange, table, relation);
}
