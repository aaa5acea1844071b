/*-------------------------------------------------------------------------
 *
 * page_source.c
 *	  The rows of a sequential scan, a page of its table at a time.
 *
 * A sequential scan of a heap table finds out once a page which of its tuples are visible, and keeps their list in the
 * scan's descriptor, to give them out one by one, each through the table's access method, a slot, conditions and
 * projection.  Here the access method is asked for the first tuple of each page, and the others are taken from that
 * list.  So all else of a scan stays PostgreSQL's: blocks and their sharing among processes, prefetching,
 * synchronised scans, visibility, predicate locks.  What it counts by the tuple is counted here, by the page, in the
 * node's figures for EXPLAIN and the table's statistics.
 *
 * The source has no place in the scan of its own: how far it has come stands in the descriptor, where PostgreSQL's own
 * next call finds it.  So it is legal at any time to rescan the node, and to ask it for its next row, which is also how
 * a scan is begun: the first row is the node's, and pages follow once the scan is under way.
 *
 * Where only the first rows of a sort are wanted, and an index tells which blocks can have them, the scan is begun, and
 * led from one range of blocks to the next, by range_scan.c.
 *
 * A batch is a page's rows, or as many of them as there is room for values of.  The tuples, and the values, lie in the
 * page, which the scan keeps pinned until it goes to the next: nobody moves or removes them there.
 *
 * Where the sort wants the first rows alone, and has so many, those behind its threshold are left out before anything
 * is made of them; unless something is computed, which may have effects.  The threshold is asked before the conditions
 * where these take longer, and nobody can see whether they were asked: they raise no errors and have no effects.
 *
 * Rows are the table's tuples as they are, with the values of the columns to sort by, or columns of these, or what
 * the executor computes of them: a slot is set to each tuple then, and where there are results that are not by value,
 * which the next row's overwrite, a batch is a row.  A slot also gives the values of columns that lie far behind others
 * of any length, so that the way to them is walked once for the conditions and the values.  Left to the node, row by
 * row, are scans of other access methods and of samples, those that recheck a row for EvalPlanQual, and snapshots that
 * no list is made for.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/page_source.h"

#include "access/heapam.h"
#include "access/relscan.h"
#include "access/tableam.h"
#include "exec/page_ahead.h"
#include "exec/page_quals.h"
#include "exec/tuple_columns.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "settings.h"
#include "nodes/nodeFuncs.h"
#include "storage/bufmgr.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

/* The scan's fields that are read and written here, as they are in all versions. */
StaticAssertDecl(sizeof(((HeapScanDesc) NULL)->rs_vistuples[0]) == sizeof(OffsetNumber) &&
					 sizeof(((HeapScanDesc) NULL)->rs_cindex) == sizeof(int) &&
					 sizeof(((HeapScanDesc) NULL)->rs_ntuples) == sizeof(int) &&
					 lengthof(((HeapScanDesc) NULL)->rs_vistuples) == MaxHeapTuplesPerPage,
				 "a heap scan has a list of the visible tuples of its page");
StaticAssertDecl(GPUSORT_BATCH_ROWS >= MaxHeapTuplesPerPage, "a batch has room for a page");

/* Values of a batch at most, but for those of one row: as many as the processor's first cache holds. */
#define BATCH_VALUES 2048

/*
 * Columns walked over at most where there are conditions: a slot walks over them once, for these and for the rest; to
 * walk over 30 strings twice a row takes longer than what is saved.
 */
#define MAX_WALK 8

struct GpuSortPageSource
{
	SeqScanState *node;
	Relation table;
	bool with_tuples; /* rows have the tuples as they are */
	bool computes;    /* the executor computes some of their values */
	bool by_slot;     /* the executor makes their values, of a slot */
	GpuSortPageQuals *quals;
	ExprState *other_quals;      /* all conditions, where quals are not; NULL: none */
	HeapTupleData tuple;         /* that other_quals are asked about */
	GpuSortTupleColumns *key;    /* the first column to sort by; NULL: it is none of the table's */
	GpuSortPageQuals *threshold; /* of it, where it is by value; NULL: it is not */
	bool threshold_first;        /* it may be asked before the conditions */
	GpuSortPageAhead ahead;
	GpuSortRangeScan *ranges; /* NULL: blocks are read in their order */

	GpuSortTupleColumns *columns; /* what a row has values of, unless something is computed */
	int nvalues;
	int room; /* rows of a batch at most */
	Datum *values;
	bool *nulls;
};

/* Returns the column of the table that a target of the scan is, as it is stored; 0 if it is none. */
static AttrNumber
stored_column(const TargetEntry *target, Index relid)
{
	const Expr *expr = target->expr;
	const Var *var;

	while (IsA(expr, RelabelType))
		expr = ((const RelabelType *) expr)->arg;
	var = (const Var *) expr;
	return IsA(var, Var) && var->varno == (int) relid && var->varattno > 0 ? var->varattno : 0;
}

/* Sets the columns of the table that the targets of the scan are, 0 for others; returns true if all are. */
static bool
find_stored_columns(const Scan *scan, AttrNumber *attnos)
{
	bool all = true;
	ListCell *lc;

	foreach(lc, scan->plan.targetlist)
	{
		AttrNumber *attno = &attnos[foreach_current_index(lc)];

		*attno = stored_column(lfirst(lc), scan->scanrelid);
		all &= *attno != 0;
	}
	return all;
}

/* Returns true if the results of all targets that are computed are by value. */
static bool
are_results_by_value(const Scan *scan, const AttrNumber *attnos)
{
	ListCell *lc;

	foreach(lc, scan->plan.targetlist)
	{
		if (attnos[foreach_current_index(lc)] == 0 &&
			!get_typbyval(exprType((const Node *) lfirst_node(TargetEntry, lc)->expr)))
			return false;
	}
	return true;
}

/* Makes rows tuples as they are, with values of the columns to sort by. */
static void
take_tuples(GpuSortPageSource *pages, const GpuSortColumn *columns, int ncolumns)
{
	AttrNumber *attnos = palloc0(RelationGetDescr(pages->table)->natts * sizeof(AttrNumber));

	pages->with_tuples = true;
	pages->nvalues = 0;
	for (int i = 0; i < ncolumns; i++)
	{
		attnos[columns[i].attno - 1] = columns[i].attno;
		pages->nvalues = Max(pages->nvalues, columns[i].attno);
	}
	pages->columns = gpusort_tuple_columns_create(RelationGetDescr(pages->table), attnos, pages->nvalues);
}

/* Makes rows the columns that the targets are, or if not all are columns what the executor computes. */
static void
take_targets(GpuSortPageSource *pages, const Scan *scan)
{
	AttrNumber *attnos;

	pages->nvalues = list_length(scan->plan.targetlist);
	attnos = palloc(pages->nvalues * sizeof(AttrNumber));
	if (find_stored_columns(scan, attnos))
		pages->columns = gpusort_tuple_columns_create(RelationGetDescr(pages->table), attnos, pages->nvalues);
	else
	{
		pages->computes = pages->by_slot = true;
		if (!are_results_by_value(scan, attnos))
			pages->room = 1;
	}
}

/* Makes what decides the conditions of the scan, and says whether a slot makes the values. */
static void
make_quals(GpuSortPageSource *pages, const Scan *scan)
{
	TupleDesc desc = RelationGetDescr(pages->table);
	List *conditions = scan->plan.qual;

	pages->quals = gpusort_page_quals_create(conditions, scan->scanrelid, desc);
	if (conditions != NIL && !pages->computes && pages->quals->columns->walk + pages->columns->walk > MAX_WALK)
		pages->by_slot = true;
	if (pages->quals->columns->walk > MAX_WALK)
		pages->quals = gpusort_page_quals_create(NIL, scan->scanrelid, desc);
	if (pages->quals->count < list_length(conditions))
		pages->other_quals = pages->node->ss.ps.qual;
}

/* Makes what looks at the first column to sort by, to leave rows out that are behind a threshold. */
static void
make_threshold(GpuSortPageSource *pages, const Scan *scan, const GpuSortColumn *column)
{
	TupleDesc desc = RelationGetDescr(pages->table);
	AttrNumber attno = column->attno;
	Oid left;
	Oid right;

	if (pages->node->ss.ps.ps_ProjInfo != NULL)
		attno = stored_column(list_nth_node(TargetEntry, scan->plan.targetlist, attno - 1), scan->scanrelid);
	if (pages->computes || attno == 0)
		return;
	pages->key = gpusort_tuple_columns_create(desc, &attno, 1);
	pages->threshold_first = scan->plan.qual != NIL && pages->key->walk <= MAX_WALK &&
		gpusort_page_quals_are_harmless(scan->plan.qual);
	op_input_types(column->sort_operator, &left, &right);
	pages->threshold = gpusort_page_quals_create_threshold(attno, desc, left);
}

/*
 * Returns the source of child's rows, for a sort by these columns of them; NULL if they must be read row by row.
 * whole: the rows have no resjunk attributes; stored: the visible ones of them are the table's tuple as it is; index
 * tells which blocks can have the first rows, where it is not NULL.
 * The source belongs to the current memory context, and child to the caller.
 */
GpuSortPageSource *
gpusort_page_source_create(PlanState *child, bool whole, bool stored, const GpuSortColumn *columns, int ncolumns,
						   const GpuSortBlockIndex *index)
{
	SeqScanState *node = (SeqScanState *) child;
	GpuSortPageSource *pages;
	const Scan *scan;

	if (!gpusort_page_scan || !IsA(child, SeqScanState) || child->state->es_epq_active != NULL ||
		node->ss.ss_currentRelation->rd_tableam != GetHeapamTableAmRoutine())
		return NULL;
	scan = (const Scan *) child->plan;
	pages = palloc0(sizeof(GpuSortPageSource));
	pages->node = node;
	pages->table = node->ss.ss_currentRelation;
	pages->with_tuples = stored;
	pages->room = MaxHeapTuplesPerPage;
	if (whole && child->ps_ProjInfo == NULL)
		take_tuples(pages, columns, ncolumns);
	else
		take_targets(pages, scan);
	make_quals(pages, scan);
	make_threshold(pages, scan, &columns[0]);
	if (index != NULL)
		pages->ranges = gpusort_range_scan_create(node, index, columns);
	pages->room = Min(pages->room, Max(BATCH_VALUES / Max(pages->nvalues, 1), 1));
	pages->values = palloc(pages->room * pages->nvalues * sizeof(Datum));
	pages->nulls = palloc(pages->room * pages->nvalues * sizeof(bool));
	ereport(DEBUG1,
			(errmsg_internal("gpusort: rows of \"%s\" come by the page", RelationGetRelationName(pages->table))));
	return pages;
}

static HeapScanDesc
heap_scan(const GpuSortPageSource *pages)
{
	return (HeapScanDesc) pages->node->ss.ss_currentScanDesc;
}

/* Returns what leads the scan from one range of blocks to the next; NULL if nothing does. */
GpuSortRangeScan *
gpusort_page_source_ranges(const GpuSortPageSource *pages)
{
	return pages->ranges;
}

static bool
reads_ranges(const GpuSortPageSource *pages)
{
	return pages->ranges != NULL && gpusort_range_scan_is_in_use(pages->ranges);
}

/*
 * Returns true if next is legal: the scan has given out a row since it began, and makes lists of visible tuples, or it
 * reads ranges.
 */
bool
gpusort_page_source_is_under_way(const GpuSortPageSource *pages)
{
	HeapScanDesc scan = heap_scan(pages);

	if (reads_ranges(pages))
		return true;
	return scan != NULL && scan->rs_inited && (scan->rs_base.rs_flags & SO_ALLOW_PAGEMODE) != 0 &&
		pages->node->ss.ps.chgParam == NULL;
}

/* Goes to the first tuple of the next page that has a visible one, whose list the scan makes; false at the end. */
static bool
next_page(GpuSortPageSource *pages, const GpuSortSource *source)
{
	const bool ranges = reads_ranges(pages);

	for (;;)
	{
		if ((!ranges || !gpusort_range_scan_is_between(pages->ranges)) &&
			table_scan_getnextslot(&heap_scan(pages)->rs_base, ForwardScanDirection, pages->node->ss.ss_ScanTupleSlot))
			return true;
		if (!ranges || !gpusort_range_scan_next(pages->ranges, source->threshold))
			return false;
	}
}

/*
 * Takes the next visible tuples from the scan, those of one page and at most limit, and sets their lines; returns how
 * many, 0 if there are no more.
 */
static int
take_lines(GpuSortPageSource *pages, const GpuSortSource *source, OffsetNumber *lines, int limit)
{
	HeapScanDesc scan = heap_scan(pages);
	int first = (int) scan->rs_cindex + 1;
	int counted = 0;
	int n;

	if ((reads_ranges(pages) && gpusort_range_scan_is_between(pages->ranges)) || first >= (int) scan->rs_ntuples)
	{
		if (!next_page(pages, source))
			return 0;
		first = scan->rs_cindex;
		counted = 1;
	}
	n = Min((int) scan->rs_ntuples - first, Min(pages->room, limit));
	memcpy(lines, &scan->rs_vistuples[first], n * sizeof(OffsetNumber));
	scan->rs_cindex = first + n - 1;

	/* The same as for each of them pgstat_count_heap_getnext. */
	pgstat_count_index_tuples(pages->table, n - counted);
	return n;
}

/* Sets the node's slot, and its expressions, to a tuple of the current page. */
static void
set_slot(GpuSortPageSource *pages, Page page, OffsetNumber line)
{
	HeapScanDesc scan = heap_scan(pages);
	TupleTableSlot *slot = pages->node->ss.ss_ScanTupleSlot;
	ExprContext *context = pages->node->ss.ps.ps_ExprContext;

	CHECK_FOR_INTERRUPTS();
	gpusort_page_ahead_fetch(&pages->ahead);
	ResetExprContext(context);
	pages->tuple.t_tableOid = RelationGetRelid(pages->table);
	pages->tuple.t_data = gpusort_page_tuple(page, line);
	pages->tuple.t_len = ItemIdGetLength(PageGetItemId(page, line));
	ItemPointerSet(&pages->tuple.t_self, scan->rs_cblock, line);
	ExecStoreBufferHeapTuple(&pages->tuple, slot, scan->rs_cbuf);
	context->ecxt_scantuple = slot;
}

/* Keeps those of n tuples of a page that fulfil all conditions, as the executor knows them; returns how many. */
static int
filter_by_executor(GpuSortPageSource *pages, Page page, OffsetNumber *lines, int n)
{
	ExprContext *context = pages->node->ss.ps.ps_ExprContext;
	int kept = 0;

	for (int i = 0; i < n; i++)
	{
		const OffsetNumber line = lines[i];

		set_slot(pages, page, line);
		if (ExecQual(pages->other_quals, context))
			lines[kept++] = line;
	}
	ResetExprContext(context);
	return kept;
}

/* Makes row i show a tuple of a page, whose values it has. */
static pg_attribute_always_inline void
show_row(GpuSortPageSource *pages, Page page, OffsetNumber line, int i, GpuSortRow *row)
{
	ItemId id = PageGetItemId(page, line);

	row->values = pages->values + (Size) i * pages->nvalues;
	row->nulls = pages->nulls + (Size) i * pages->nvalues;
	row->tuple = pages->with_tuples ? (const char *) PageGetItem(page, id) + MINIMAL_TUPLE_OFFSET : NULL;
	row->length = ItemIdGetLength(id) - MINIMAL_TUPLE_OFFSET;
}

/* Returns the slot of the node's result for the tuple that its slot is set to, with the values that a row has. */
static TupleTableSlot *
make_result(PlanState *ps, int nvalues)
{
	TupleTableSlot *slot;

	if (ps->ps_ProjInfo != NULL)
		return ExecProject(ps->ps_ProjInfo);
	slot = ps->ps_ExprContext->ecxt_scantuple;
	slot_getsomeattrs(slot, nvalues);
	return slot;
}

/*
 * Makes rows show what the executor makes of those of n tuples of a page that fulfil all conditions; returns how many.
 * Computes conditions and results for one tuple after the other, in the order in which the node does.
 */
static int
make_rows(GpuSortPageSource *pages, Page page, const OffsetNumber *lines, int n, GpuSortRow *rows)
{
	PlanState *ps = &pages->node->ss.ps;
	int kept = 0;

	for (int i = 0; i < n; i++)
	{
		const Size first = (Size) kept * pages->nvalues;
		TupleTableSlot *slot;

		set_slot(pages, page, lines[i]);
		if (pages->other_quals != NULL && !ExecQual(pages->other_quals, ps->ps_ExprContext))
			continue;
		slot = make_result(ps, pages->nvalues);
		memcpy(pages->values + first, slot->tts_values, pages->nvalues * sizeof(Datum));
		memcpy(pages->nulls + first, slot->tts_isnull, pages->nvalues * sizeof(bool));
		show_row(pages, page, lines[i], kept, &rows[kept]);
		kept++;
	}
	return kept;
}

/* Makes rows show n tuples of a page. */
static void
show_rows(GpuSortPageSource *pages, Page page, const OffsetNumber *lines, int n, GpuSortRow *rows)
{
	Datum *values = pages->values;
	bool *nulls = pages->nulls;

	for (int i = 0; i < n; i++)
	{
		gpusort_page_ahead_fetch(&pages->ahead);
		gpusort_tuple_columns_read(pages->columns, gpusort_page_tuple(page, lines[i]), values, nulls);
		show_row(pages, page, lines[i], i, &rows[i]);
		values += pages->nvalues;
		nulls += pages->nvalues;
	}
}

/* Keeps those of n tuples of a page that a threshold does not tell to be behind it; returns how many. */
static int
filter_by_key(GpuSortPageSource *pages, GpuSortThreshold *threshold, Page page, OffsetNumber *lines, int n)
{
	int kept = 0;

	for (int i = 0; i < n; i++)
	{
		const OffsetNumber line = lines[i];
		Datum value;
		bool isnull;

		gpusort_page_ahead_fetch(&pages->ahead);
		gpusort_tuple_columns_read(pages->key, gpusort_page_tuple(page, line), &value, &isnull);
		lines[kept] = line;
		kept += !threshold->is_behind(threshold, value, isnull);
	}
	return kept;
}

/* Returns true if a sort's threshold can be asked about tuples where they lie. */
static bool
may_ask_threshold(const GpuSortPageSource *pages, const GpuSortThreshold *threshold)
{
	return threshold != NULL && threshold->known && pages->key != NULL &&
		((threshold->by_value && pages->threshold != NULL) || threshold->is_behind != NULL);
}

/* Keeps those of n tuples of a page that the sort may want; returns how many. */
static int
filter_by_threshold(GpuSortPageSource *pages, GpuSortSource *source, Page page, OffsetNumber *lines, int n)
{
	GpuSortThreshold *threshold = source->threshold;
	int kept;

	if (!may_ask_threshold(pages, threshold))
		return n;
	if (threshold->by_value && pages->threshold != NULL)
	{
		gpusort_page_quals_set_threshold(pages->threshold, threshold);
		kept = gpusort_page_quals_filter(pages->threshold, page, lines, n, &pages->ahead);
	}
	else
		kept = filter_by_key(pages, threshold, page, lines, n);
	source->left_out += n - kept;
	return kept;
}

/*
 * Returns true if the threshold is to be asked before the conditions: it decides of nearly all rows, and conditions on
 * columns that are reached sooner are asked sooner.
 */
static bool
asks_threshold_first(const GpuSortPageSource *pages, const GpuSortSource *source)
{
	if (!pages->threshold_first || !may_ask_threshold(pages, source->threshold))
		return false;
	if (pages->by_slot || pages->other_quals != NULL)
		return true;
	if (source->threshold->by_value && pages->threshold != NULL)
		return pages->key->walk <= pages->quals->columns->walk;
	return pages->quals->columns->walk > 0;
}

/*
 * Fills in rows, of which there is room for limit, for source, and returns how many, 0 if there are no more that are
 * wanted.  They are valid until the next call.  Raises the errors of the scan and of its conditions.
 */
int
gpusort_page_source_next(GpuSortPageSource *pages, GpuSortSource *source, GpuSortRow *rows, int limit)
{
	PlanState *ps = &pages->node->ss.ps;
	OffsetNumber lines[MaxHeapTuplesPerPage];
	double passed = 0;
	int kept = 0;

	if (ps->instrument != NULL)
		InstrStartNode(ps->instrument);
	while (kept == 0)
	{
		int n = take_lines(pages, source, lines, limit);
		bool threshold_first;
		Page page;

		if (n == 0)
			break;
		page = BufferGetPage(heap_scan(pages)->rs_cbuf);
		gpusort_page_ahead_begin(&pages->ahead, heap_scan(pages));
		threshold_first = asks_threshold_first(pages, source);
		if (threshold_first)
			n = filter_by_threshold(pages, source, page, lines, n);
		kept = gpusort_page_quals_filter(pages->quals, page, lines, n, &pages->ahead);
		if (pages->by_slot)
			kept = make_rows(pages, page, lines, kept, rows);
		else if (pages->other_quals != NULL)
			kept = filter_by_executor(pages, page, lines, kept);
		InstrCountFiltered1(&pages->node->ss, n - kept);
		passed += kept;
		if (!pages->by_slot)
		{
			if (!threshold_first)
				kept = filter_by_threshold(pages, source, page, lines, kept);
			show_rows(pages, page, lines, kept, rows);
		}
	}
	if (ps->instrument != NULL)
		InstrStopNode(ps->instrument, passed);
	return kept;
}
