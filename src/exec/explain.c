/*-------------------------------------------------------------------------
 *
 * explain.c
 *	  What EXPLAIN shows for a GpuSort node.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/explain.h"

#include "commands/explain.h"
#include "exec/percentiles.h"
#include "exec/scan_state.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "parser/parsetree.h"
#include "server/reasons.h"
#include "server/statistics.h"
#include "sort/service_sort.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/ruleutils.h"
#include "utils/typcache.h"

/* Appends what differs from the plain order of the key's type, as EXPLAIN does for Sort. */
static void
append_order(StringInfo text, const GpuSortColumn *column, Node *expression)
{
	Oid type = exprType(expression);
	TypeCacheEntry *entry = lookup_type_cache(type, TYPECACHE_LT_OPR | TYPECACHE_GT_OPR);
	bool descending = false;

	if (OidIsValid(column->collation) && column->collation != get_typcollation(type))
	{
		char *name = get_collation_name(column->collation);

		if (name == NULL)
			elog(ERROR, "cache lookup failed for collation %u", column->collation);
		appendStringInfo(text, " COLLATE %s", quote_identifier(name));
	}
	if (column->sort_operator == entry->gt_opr)
	{
		appendStringInfoString(text, " DESC");
		descending = true;
	}
	else if (column->sort_operator != entry->lt_opr)
	{
		char *name = get_opname(column->sort_operator);

		if (name == NULL)
			elog(ERROR, "cache lookup failed for operator %u", column->sort_operator);
		appendStringInfo(text, " USING %s", name);
		(void) get_equality_op_for_ordering_op(column->sort_operator, &descending);
	}
	if (column->nulls_first != descending)
		appendStringInfoString(text, column->nulls_first ? " NULLS FIRST" : " NULLS LAST");
}

/* Shows the first columns that the node sorts by, under this label. */
void
gpusort_explain_keys(GpuSortScanState *state, const char *label, int columns, List *ancestors, ExplainState *es)
{
	Plan *plan = gpusort_plan_state(state)->plan;
	List *context = set_deparse_context_plan(es->deparse_cxt, plan, ancestors);
	bool use_prefix = list_length(es->rtable) > 1 || es->verbose;
	List *result = NIL;

	for (int i = 0; i < columns; i++)
	{
		const GpuSortColumn *column = &state->info.columns[i];
		TargetEntry *entry = get_tle_by_resno(((CustomScan *) plan)->custom_scan_tlist, column->attno);
		StringInfoData text;
		Var *key;

		if (entry == NULL)
			elog(ERROR, "no targetlist entry for key column %d", column->attno);

		/* Shown as Sort shows it: by what the plan below calls it. */
		key = makeVarFromTargetEntry(OUTER_VAR, entry);
		initStringInfo(&text);
		appendStringInfoString(&text, deparse_expression((Node *) key, context, use_prefix, true));
		append_order(&text, column, (Node *) key);
		result = lappend(result, text.data);
	}
	ExplainPropertyList(label, result, es);
}

static void
show_key_bits(const GpuSortOutcome *outcome, ExplainState *es)
{
	if (es->format == EXPLAIN_FORMAT_TEXT)
	{
		char *text = psprintf("%u, packed to %u", outcome->key_bits, outcome->packed_bits);

		ExplainPropertyText("Key Bits", text, es);
		return;
	}
	ExplainOpenGroup("Key Bits", "Key Bits", true, es);
	ExplainPropertyInteger("Encoded", NULL, outcome->key_bits, es);
	ExplainPropertyInteger("Packed", NULL, outcome->packed_bits, es);
	ExplainCloseGroup("Key Bits", "Key Bits", true, es);
}

/* Shows where the runs of a sort larger than memory were kept; most sorts have none. */
static void
show_run_storage(const GpuSortOutcome *outcome, ExplainState *es)
{
	uint64 disk_kb = (outcome->run_disk + 1023) / 1024;
	const char *storage = "memory";

	if (outcome->runs == 0)
		return;
	if (outcome->run_disk > 0)
		storage = outcome->run_memory > 0 ? "memory and disk" : "disk";
	ExplainPropertyText("Run Storage", storage, es);
	if (es->format != EXPLAIN_FORMAT_TEXT)
		ExplainPropertyUInteger("Disk", "kB", disk_kb, es);
	else if (disk_kb > 0)
		ExplainPropertyText("Disk", psprintf(UINT64_FORMAT "kB", disk_kb), es);
}

/* Shows how long the sort waited for others before it began; most have not. */
static void
show_queue(const GpuSortTimes *ms, ExplainState *es)
{
	if (ms->queue > 0)
		ExplainPropertyFloat("Queue Wait", "ms", ms->queue, 3, es);
}

/* Shows what has been verified: the rows, by their tails; their order, by the C library or their comparators. */
static void
show_verified(const GpuSortFigures *figures, ExplainState *es)
{
	if (es->format != EXPLAIN_FORMAT_TEXT)
	{
		if (figures->verified)
			ExplainPropertyText("Verified", "rows", es);
		if (figures->pairs > 0)
			ExplainPropertyUInteger("Verified Pairs", NULL, figures->pairs, es);
	}
	else if (figures->pairs > 0)
	{
		const char *rows = figures->verified ? "rows, " : "";

		ExplainPropertyText("Verified", psprintf("%s" UINT64_FORMAT " pairs", rows, figures->pairs), es);
	}
	else if (figures->verified)
		ExplainPropertyText("Verified", "rows", es);
}

static void
show_phases(const GpuSortTimes *ms, const GpuSortFigures *figures, ExplainState *es)
{
	if (es->format == EXPLAIN_FORMAT_TEXT)
	{
		char *verify = figures->pairs > 0 ? psprintf(" verify=%.3f", figures->verify_ms) : "";
		char *text = psprintf("ingest=%.3f upload wait=%.3f sort=%.3f%s gather=%.3f emit=%.3f ties=%.3f ms",
							  ms->ingest, ms->upload_wait, ms->sort, verify, ms->gather, ms->emit, ms->ties);

		ExplainPropertyText("Phases", text, es);
		return;
	}
	ExplainOpenGroup("Phases", "Phases", true, es);
	ExplainPropertyFloat("Ingest", "ms", ms->ingest, 3, es);
	ExplainPropertyFloat("Upload Wait", "ms", ms->upload_wait, 3, es);
	ExplainPropertyFloat("Sort", "ms", ms->sort, 3, es);
	if (figures->pairs > 0)
		ExplainPropertyFloat("Verify", "ms", figures->verify_ms, 3, es);
	ExplainPropertyFloat("Gather", "ms", ms->gather, 3, es);
	ExplainPropertyFloat("Emit", "ms", ms->emit, 3, es);
	ExplainPropertyFloat("Ties", "ms", ms->ties, 3, es);
	ExplainCloseGroup("Phases", "Phases", true, es);
}

/* Shows how many rows LIMIT did not ask for, and how many of these were never sorted. */
static void
show_removed(const GpuSortState *sort, ExplainState *es)
{
	const GpuSortFigures *figures = &sort->figures;
	const uint64 taken = figures->dropped + figures->outcome.rows_in;

	if (sort->bound > 0 && taken > figures->outcome.rows)
		ExplainPropertyUInteger("Rows Removed by Limit", NULL, taken - figures->outcome.rows, es);
	if (figures->dropped > 0)
		ExplainPropertyUInteger("Rows Removed Before Sort", NULL, figures->dropped, es);
}

/* Shows what became of rows of which the first alone were kept, in this process. */
static void
show_top(const GpuSortState *sort, ExplainState *es)
{
	ExplainPropertyText("Sort Method", "first rows", es);
	ExplainPropertyInteger("Rows", NULL, sort->figures.outcome.rows, es);
	show_removed(sort, es);
	ExplainPropertyUInteger("Memory", "kB", (gpusort_top_rows_bytes(sort->top) + 1023) / 1024, es);
}

/* Returns true if the service took no part in a parallel sort, which another process may have done alone. */
static bool
is_refused(const GpuSortScanState *state)
{
	return state->sort->stage == GPUSORT_STAGE_INPUT && state->parallel != NULL &&
		gpusort_parallel_sort_refusal(state->parallel)->reason != GPUSORT_REASON_NONE;
}

/* Returns true if there is nothing to tell about a sort; a parallel one may have emitted no row in this process. */
static bool
is_untold(const GpuSortScanState *state)
{
	if (state->sort->stage == GPUSORT_STAGE_LOST)
		return true;
	if (is_refused(state))
		return false;
	return state->sort->stage == GPUSORT_STAGE_INPUT &&
		(state->parallel == NULL || state->sort->figures.outcome.key_bits == 0);
}

/* Shows the index that tells which blocks can have the first rows, and with ANALYZE how many ranges were read. */
static void
show_ranges(const GpuSortScanState *state, ExplainState *es)
{
	const GpuSortRangeScan *scan = gpusort_plan_source_ranges(&state->source);
	const GpuSortRangeCounts counts =
		es->analyze && scan != NULL ? gpusort_range_scan_counts(scan) : (GpuSortRangeCounts){0};
	const char *index = get_rel_name(state->info.block_index.index);
	const char *read = "";

	if (index == NULL)
		elog(ERROR, "cache lookup failed for index %u", state->info.block_index.index);
	if (es->format != EXPLAIN_FORMAT_TEXT)
	{
		ExplainPropertyText("BRIN Index", index, es);
		if (counts.in_use)
		{
			ExplainPropertyUInteger("Block Ranges Read", NULL, counts.read, es);
			ExplainPropertyUInteger("Block Ranges", NULL, counts.ranges, es);
		}
		return;
	}
	if (counts.in_use)
		read = psprintf("%u of %u ", counts.read, counts.ranges);
	else if (es->analyze)
		read = "all, not ";
	ExplainPropertyText("Block Ranges", psprintf("%sby BRIN index %s", read, quote_identifier(index)), es);
}

/* Shows which rows of each group are looked at above, or that they are counted. */
static void
show_kept(const GpuSortGroupRows *group, bool counted, ExplainState *es)
{
	if (counted)
		ExplainPropertyText("Rows Kept", "first 1 of each group, counted", es);
	else if (group->rows > 0)
		ExplainPropertyText("Rows Kept",
							psprintf("first %u of each group%s", group->rows, group->peers ? ", with ties" : ""), es);
}

/* Shows the keys, and with ANALYZE what happened, as the ExplainCustomScan callback. */
void
gpusort_explain(CustomScanState *node, List *ancestors, ExplainState *es)
{
	GpuSortScanState *state = (GpuSortScanState *) node;
	const GpuSortState *sort = state->sort;
	const GpuSortFigures *figures = &sort->figures;
	GpuSortTimes ms;

	gpusort_explain_keys(state, "Sort Key", state->info.ncolumns, ancestors, es);
	show_kept(&sort->group, state->info.counted != NIL, es);
	if (OidIsValid(state->info.block_index.index))
		show_ranges(state, es);
	if (state->percentiles != NULL)
		gpusort_percentiles_explain(state->percentiles, es);
	if (!es->analyze || is_untold(state))
		return;

	if (sort->stage == GPUSORT_STAGE_TOP)
	{
		show_top(sort, es);
		return;
	}
	if (sort->stage == GPUSORT_STAGE_NATIVE || is_refused(state))
	{
		const GpuSortFailure *reason = is_refused(state) ? gpusort_parallel_sort_refusal(state->parallel) : &sort->reason;

		ExplainPropertyText("Sort Method", "fallback: tuplesort", es);
		ExplainPropertyText("Fallback Reason", psprintf("%s: %s", gpusort_reason_name(reason->reason), reason->text),
							es);
		return;
	}

	ExplainPropertyText("Sort Method", figures->engine == GPUSORT_ENGINE_CUDA ? "gpu radix" : "cpu radix", es);
	ExplainPropertyText("Device", figures->device, es);
	show_key_bits(&figures->outcome, es);
	ExplainPropertyInteger("Rows", NULL, figures->outcome.rows, es);
	show_removed(sort, es);
	if (figures->skipped > 0)
		ExplainPropertyUInteger("Rows Skipped", NULL, figures->skipped, es);
	ExplainPropertyInteger("Bytes", NULL, figures->outcome.bytes, es);
	ExplainPropertyUInteger("Runs", NULL, gpusort_service_sort_runs(sort), es);
	show_run_storage(&figures->outcome, es);
	ExplainPropertyUInteger("Tie Rows", NULL, gpusort_service_sort_tie_rows(sort), es);
	show_verified(figures, es);
	/* They cost nothing, like the times of the whole statement, and are shown with them or with those of nodes. */
	if (es->timing || es->summary)
	{
		ms = gpusort_service_sort_times(sort);
		show_queue(&ms, es);
		show_phases(&ms, figures, es);
	}
}

/* Shows with VERBOSE how many rows and ranges each process has read. */
void
gpusort_explain_processes(const GpuSortProcessFigures *figures, int nprocesses, ExplainState *es)
{
	List *by_process = NIL;

	if (!es->verbose)
		return;
	for (int i = 0; i < nprocesses; i++)
	{
		char *name = i == GPUSORT_LEADER_PROCESS ? pstrdup("leader") : psprintf("worker %d", i - 1);
		char *text = psprintf("%s " UINT64_FORMAT " of " UINT64_FORMAT " ranges", name, figures[i].rows, figures[i].ranges);

		by_process = lappend(by_process, text);
	}
	ExplainPropertyList("Rows by Process", by_process, es);
}
