/*-------------------------------------------------------------------------
 *
 * plan_source.c
 *	  The rows of a plan, as the source of a sort.
 *
 * A batch is a row, since what a plan returns is valid until it is asked for the next; but where the plan is a
 * sequential scan that can be read by the page, or an Append of some, it is a page's rows (page_source.c).  A row's
 * values are those of the slot that the plan returns, where they lie.  Its tuple is the one that the slot has, if any;
 * where rows have resjunk attributes it is the one that the child makes its rows of, if that is their visible
 * attributes as it is.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/plan_source.h"

#include "exec/page_source.h"
#include "executor/executor.h"

/* Makes row show the row in slot, all of whose attributes are visible. */
static pg_attribute_always_inline void
show_whole(TupleTableSlot *slot, int attributes, GpuSortRow *row)
{
	HeapTuple heap_tuple = gpusort_slot_heap_tuple(slot);
	MinimalTuple minimal_tuple = gpusort_slot_minimal_tuple(slot);

	if (heap_tuple != NULL)
	{
		row->tuple = gpusort_tuple_end(heap_tuple, &row->length);
		slot_getsomeattrs(slot, attributes);
	}
	else if (minimal_tuple != NULL)
	{
		row->tuple = (const char *) minimal_tuple;
		row->length = minimal_tuple->t_len;
		slot_getsomeattrs(slot, attributes);
	}
	else
	{
		row->tuple = NULL;
		slot_getallattrs(slot);
	}
	row->values = slot->tts_values;
	row->nulls = slot->tts_isnull;
}

/* Makes row show the row in slot, some of whose attributes are resjunk; stored is as in GpuSortPlanSource. */
static pg_attribute_always_inline void
show_parts(TupleTableSlot *slot, TupleTableSlot *stored, GpuSortRow *row)
{
	HeapTuple visible = stored != NULL ? gpusort_slot_heap_tuple(stored) : NULL;

	row->tuple = visible != NULL ? gpusort_tuple_end(visible, &row->length) : NULL;
	slot_getallattrs(slot);
	row->values = slot->tts_values;
	row->nulls = slot->tts_isnull;
}

/* The method next_batch, where all attributes are visible. */
static int
next_whole(GpuSortSource *source, GpuSortRow *rows, int n)
{
	TupleTableSlot *slot = ExecProcNode(((GpuSortPlanSource *) source)->child);

	if (TupIsNull(slot))
		return 0;
	show_whole(slot, source->attributes, rows);
	return 1;
}

/* The method next_batch, where some are resjunk. */
static int
next_parts(GpuSortSource *source, GpuSortRow *rows, int n)
{
	GpuSortPlanSource *plan = (GpuSortPlanSource *) source;
	TupleTableSlot *slot = ExecProcNode(plan->child);

	if (TupIsNull(slot))
		return 0;
	show_parts(slot, plan->stored, rows);
	return 1;
}

/* The method next_batch, where rows come by the page, but for the first, which the scan itself begins with. */
static int
next_page(GpuSortSource *source, GpuSortRow *rows, int n)
{
	GpuSortPlanSource *plan = (GpuSortPlanSource *) source;

	if (likely(gpusort_page_source_is_under_way(plan->pages[0])))
		return gpusort_page_source_next(plan->pages[0], source, rows, n);
	return plan->whole ? next_whole(source, rows, n) : next_parts(source, rows, n);
}

/* Returns the part that the Append has begun to read, if its next rows come by the page; else NULL. */
static GpuSortPageSource *
part_under_way(const GpuSortPlanSource *plan)
{
	const AppendState *append = plan->append;
	GpuSortPageSource *pages;

	if (append->ps.chgParam != NULL || append->as_whichplan < 0)
		return NULL;
	pages = plan->pages[append->as_whichplan];
	return pages != NULL && gpusort_page_source_is_under_way(pages) ? pages : NULL;
}

/*
 * The method next_batch, where the rows of an Append's parts come by the page.  The Append still says which of them
 * this process reads: it is asked for the next as it asks itself, when one has no more rows.
 */
static int
next_page_of_parts(GpuSortSource *source, GpuSortRow *rows, int n)
{
	GpuSortPlanSource *plan = (GpuSortPlanSource *) source;
	AppendState *append = plan->append;
	GpuSortPageSource *pages = part_under_way(plan);
	const uint64 left_out = source->left_out;
	int read = 0;
	bool ended = false;

	if (pages != NULL)
	{
		if (append->ps.instrument != NULL)
			InstrStartNode(append->ps.instrument);
		read = gpusort_page_source_next(pages, source, rows, n);
		ended = read == 0 && !append->choose_next_subplan(append);
		if (append->ps.instrument != NULL)
			InstrStopNode(append->ps.instrument, read + source->left_out - left_out);
	}
	if (read > 0 || ended)
		return read;
	return plan->whole ? next_whole(source, rows, n) : next_parts(source, rows, n);
}

/* Makes row show the row in slot, which the plan has returned. */
void
gpusort_plan_source_show(GpuSortPlanSource *plan, TupleTableSlot *slot, GpuSortRow *row)
{
	if (plan->whole)
		show_whole(slot, plan->source.attributes, row);
	else
		show_parts(slot, plan->stored, row);
}

/* Returns what leads the scan from one range of blocks to the next; NULL if nothing does. */
GpuSortRangeScan *
gpusort_plan_source_ranges(const GpuSortPlanSource *plan)
{
	return plan->pages != NULL && plan->append == NULL && plan->pages[0] != NULL
		? gpusort_page_source_ranges(plan->pages[0])
		: NULL;
}

/* The method restart. */
void
gpusort_plan_source_restart(GpuSortSource *source)
{
	PlanState *child = ((GpuSortPlanSource *) source)->child;
	GpuSortRangeScan *ranges = gpusort_plan_source_ranges((GpuSortPlanSource *) source);

	/* Else it starts over by itself. */
	if (child->chgParam == NULL)
		ExecReScan(child);
	if (ranges != NULL)
		gpusort_range_scan_restart(ranges);
}

/* The method table_column. */
bool
gpusort_plan_source_table_column(GpuSortSource *source, AttrNumber attno, GpuSortTableColumn *column, Oid *type)
{
	PlanState *child = ((GpuSortPlanSource *) source)->child;

	*type = TupleDescAttr(ExecGetResultType(child), attno - 1)->atttypid;
	return gpusort_find_table_column(child->state->es_range_table, child->plan, attno, column);
}

static const GpuSortSourceMethods whole_methods = {
	.next_batch = next_whole,
	.restart = gpusort_plan_source_restart,
	.table_column = gpusort_plan_source_table_column,
};

static const GpuSortSourceMethods parts_methods = {
	.next_batch = next_parts,
	.restart = gpusort_plan_source_restart,
	.table_column = gpusort_plan_source_table_column,
};

static const GpuSortSourceMethods page_methods = {
	.next_batch = next_page,
	.restart = gpusort_plan_source_restart,
	.table_column = gpusort_plan_source_table_column,
};

static const GpuSortSourceMethods parts_page_methods = {
	.next_batch = next_page_of_parts,
	.restart = gpusort_plan_source_restart,
	.table_column = gpusort_plan_source_table_column,
};

/*
 * Returns the slot with the stored tuple that child makes its rows of, if that tuple, as it is, is
 * their visible attributes; else NULL.  A child that computes a key beside all columns of its table
 * takes the tuple apart, but nobody has to put it together again.
 */
static TupleTableSlot *
stored_slot(PlanState *child, const GpuSortRowForm *form)
{
	Index relid;
	TupleTableSlot *stored;
	int natts;

	switch (nodeTag(child))
	{
		case T_SeqScanState:
		case T_SampleScanState:
		case T_IndexScanState:
		case T_BitmapHeapScanState:
		case T_TidScanState:
		case T_TidRangeScanState:
			break;
		default:
			return NULL;
	}
	relid = ((Scan *) child->plan)->scanrelid;
	stored = ((ScanState *) child)->ss_ScanTupleSlot;
	natts = stored->tts_tupleDescriptor->natts;
	if (!gpusort_rowform_has_resjunk(form) || !gpusort_rowform_is_visible(form, stored->tts_tupleDescriptor))
		return NULL;
	for (int i = 0; i < natts; i++)
	{
		const Var *var = (const Var *) list_nth_node(TargetEntry, child->plan->targetlist, i)->expr;

		if (!IsA(var, Var) || var->varno != relid || var->varattno != i + 1)
			return NULL;
	}
	return stored;
}

/* Finds the scans whose rows come by the page; false if there are none. */
static bool
find_pages(GpuSortPlanSource *plan, const GpuSortColumn *columns, int ncolumns, const GpuSortBlockIndex *index)
{
	AppendState *append = IsA(plan->child, AppendState) ? (AppendState *) plan->child : NULL;
	PlanState **scans = append != NULL ? append->appendplans : &plan->child;
	const int count = append != NULL ? append->as_nplans : 1;
	bool any = false;

	if (append != NULL && append->as_nasyncplans > 0)
		return false;
	plan->append = append;
	plan->pages = palloc0(count * sizeof(GpuSortPageSource *));
	for (int i = 0; i < count; i++)
	{
		plan->pages[i] = gpusort_page_source_create(scans[i], plan->whole, plan->stored != NULL, columns, ncolumns,
													append == NULL ? index : NULL);
		any |= plan->pages[i] != NULL;
	}
	return any;
}

/*
 * Begins at the first row of child, for a sort of such rows by these columns of them; may_restart: it gives the same
 * when it is read again; index tells which blocks can have the first rows, where it is not NULL.
 */
void
gpusort_plan_source_init(GpuSortPlanSource *plan, PlanState *child, const GpuSortHeapRows *rows,
						 const GpuSortColumn *columns, int ncolumns, bool may_restart, const GpuSortBlockIndex *index)
{
	plan->whole = !gpusort_rowform_has_resjunk(rows->form);
	plan->source.may_restart = may_restart;
	plan->source.attributes = 0;
	plan->source.threshold = NULL;
	plan->source.left_out = 0;
	plan->child = child;
	plan->stored = stored_slot(child, rows->form);
	if (find_pages(plan, columns, ncolumns, index))
		plan->source.methods = plan->append != NULL ? &parts_page_methods : &page_methods;
	else
		plan->source.methods = plan->whole ? &whole_methods : &parts_methods;
}
