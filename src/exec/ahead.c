/*-------------------------------------------------------------------------
 *
 * ahead.c
 *	  Rows of a cursor that all processes form before the client fetches them.
 *
 * The cursor's plan has a GpuSort on top, whose rows are in order in the service.  The leader reads rows from there,
 * for it alone can, and workers form them (parallel/form_rows.h): reading takes a fifth of the time.  A client that
 * reads the first rows only pays nothing: it must have fetched some before.  Each time as many rows are read ahead as
 * have been fetched so far, as far as some memory goes.
 *
 * Short rows, or processors that others use, are formed no faster so.  What a row takes both ways is measured, and if
 * it is not enough faster, no more rows are formed ahead.
 *
 * AS ROWS
 *	While rows are ahead another function emits the node's rows (exec_ahead): the first of those that are ahead, and in
 *	the end the sort's own again.  So a MOVE, a FETCH in a function or one of another format gets the same rows.  Who
 *	goes back, or starts over, drops them: the sort gives them again (stream.c).
 *
 * AS BYTES
 *	A value's text may depend on settings, which may have changed since, and on catalogs.  So the values of settings are
 *	kept with the bytes, and no bytes are formed ahead of types whose output looks at anything else: of those of which
 *	PostgreSQL says that it is stable, a few are known to look at settings alone.
 *
 *	Bytes end where a row could not be formed.  It comes as a row then, and the FETCH that gets it raises the error.
 *
 *-------------------------------------------------------------------------
 */
#include "exec/ahead.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include "access/parallel.h"
#include "access/xact.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type_d.h"
#include "exec/stream.h"
#include "executor/executor.h"
#include "form/format.h"
#include "miscadmin.h"
#include "node.h"
#include "optimizer/cost.h"
#include "parallel/form_rows.h"
#include "settings.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

/* A client that has fetched so many rows is taken for one that reads to the end. */
#define FETCHED_MIN 20000

/* Fewer rows are not worth the start of workers. */
#define ROWS_MIN 50000

/*
 * What rows that are ahead take at most, with their bytes; and the part of the room for shared memory that is left,
 * which is 64 MB in all in a container that nobody has given more: others need some.
 */
#define SEGMENT_BYTES_MAX ((Size) 64 << 20)
#define SEGMENT_PART_MAX  4
#define SHARED_MEMORY     "/dev/shm"

/* What workers share beside the segment: without room for it PostgreSQL cannot start them, and fails. */
#define WORKERS_ROOM ((Size) 4 << 20)

/* The leader can read rows for so many workers. */
#define WORKERS_MAX 6

/* So many milliseconds have to be saved, by half of what could be; and a row must take this part of the time. */
#define GAIN_MS   50
#define GAIN_PART 0.9

/* A guess at the bytes of a row, of which it is known how many are formed of it. */
#define ROW_BYTES(formed) ((formed) + 32.0)

typedef struct GpuSortAhead
{
	GpuSortFormRows form;
	MemoryContextCallback callback; /* lets go of the segment with the query's memory */
	bool refused;                   /* nothing is to be read ahead, or there was no room for a segment */
	uint64 next_try;                /* not before so many rows have been fetched */

	/* the client's */
	uint64 fetched; /* rows, by FETCHes that form them */
	double formed;  /* bytes of some of these, the last that were ahead or those before, and their number */
	double formed_rows;
	double row_bytes; /* of a row that was ahead, the last time */

	/* milliseconds that the client's FETCHes took, and rows: those without rows that were ahead, and the others */
	double alone_ms;
	double alone_rows;
	double ahead_ms;
	double ahead_rows;

	/* rows that are ahead */
	uint64 rows; /* all that were read, and how many of them have been taken */
	uint64 taken;
	MinimalTuple last; /* that had no place in the segment, or NULL */
	TupleTableSlot *slot;
	bool stands_for_taken; /* the next slot stands for rows that were taken as bytes */

	/* the batch that the next row is in, the number of its first row, and where a row and its bytes are */
	uint32 batch;
	uint64 batch_first;
	uint64 row_number;
	Size row_at;
	uint64 bytes_number;
	Size bytes_at;

	/* what the bytes were formed by */
	GpuSortFormat *format;
	char *settings;
} GpuSortAhead;

/* Settings on which the text of values depends, or may: other modules' types have no others that are known. */
static const char *const output_settings[] = {"DateStyle", "IntervalStyle", "TimeZone", "bytea_output",
											  "extra_float_digits", "lc_monetary", "client_encoding", "xmlbinary"};

/* Returns these settings, in the current context. */
static char *
current_settings(void)
{
	StringInfoData all;

	initStringInfo(&all);
	for (int i = 0; i < (int) lengthof(output_settings); i++)
		appendStringInfo(&all, "%s\n", GetConfigOption(output_settings[i], true, false));
	return all.data;
}

/* Returns true if a type's output looks at settings alone. */
static bool
depends_on_settings_alone(Oid type)
{
	const Oid base = getBaseType(type);
	const Oid element = get_element_type(base);
	Oid function;
	bool is_varlena;

	if (OidIsValid(element))
		return depends_on_settings_alone(element);
	switch (base)
	{
		case DATEOID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
		case CASHOID:
			return true;
		default:
			getTypeOutputInfo(base, &function, &is_varlena);
			return func_volatile(function) == PROVOLATILE_IMMUTABLE;
	}
}

static bool
depend_on_settings_alone(TupleDesc desc)
{
	for (int i = 0; i < desc->natts; i++)
	{
		if (!depends_on_settings_alone(TupleDescAttr(desc, i)->atttypid))
			return false;
	}
	return true;
}

/* Returns true if what compares rows that the service finds equal may be called in parallel mode. */
static bool
is_compared_safely(const GpuSortScanState *state)
{
	for (int i = 0; i < state->info.ncolumns; i++)
	{
		if (func_parallel(get_opcode(state->info.columns[i].sort_operator)) != PROPARALLEL_SAFE)
			return false;
	}
	return true;
}

/* Returns how many rows are ahead. */
static uint64
left(const GpuSortAhead *ahead)
{
	return ahead->rows - ahead->taken;
}

/* Goes to the batch that has the next row; NULL if none has. */
static const GpuSortRowBatch *
find_batch(GpuSortAhead *ahead)
{
	const GpuSortFormRows *form = &ahead->form;

	while (ahead->batch < form->count && ahead->taken >= ahead->batch_first + form->batches[ahead->batch].rows)
	{
		ahead->batch_first += form->batches[ahead->batch].rows;
		ahead->batch++;
	}
	return ahead->batch < form->count ? &form->batches[ahead->batch] : NULL;
}

/* Returns the next row; there is one. */
static MinimalTuple
next_row(GpuSortAhead *ahead)
{
	const GpuSortRowBatch *batch = find_batch(ahead);

	if (batch == NULL)
	{
		ahead->taken++;
		return ahead->last;
	}
	if (ahead->row_number < ahead->batch_first || ahead->row_number > ahead->taken)
	{
		ahead->row_number = ahead->batch_first;
		ahead->row_at = batch->first;
	}
	for (;;)
	{
		MinimalTuple row = (MinimalTuple) gpusort_form_rows_at(&ahead->form, ahead->row_at);

		ahead->row_at += MAXALIGN(row->t_len);
		if (ahead->row_number++ < ahead->taken)
			continue;
		ahead->taken++;
		return row;
	}
}

/* Takes the bytes of so many rows at most, of the next row's batch; returns how many.  They have been formed. */
static uint64
take_bytes(GpuSortAhead *ahead, const GpuSortRowBatch *batch, uint64 most, StringInfo bytes)
{
	const char *all = gpusort_form_rows_at(&ahead->form, batch->bytes);
	const uint64 rows = Min(most, ahead->batch_first + batch->rows - ahead->taken);
	Size begin = 0;
	Size end;

	if (ahead->taken > ahead->batch_first)
	{
		/* rows may have been taken as rows */
		if (ahead->bytes_number < ahead->batch_first || ahead->bytes_number > ahead->taken)
		{
			ahead->bytes_number = ahead->batch_first;
			ahead->bytes_at = 0;
		}
		for (; ahead->bytes_number < ahead->taken; ahead->bytes_number++)
			ahead->bytes_at += gpusort_message_length(all + ahead->bytes_at);
		begin = ahead->bytes_at;
	}
	ahead->taken += rows;
	end = batch->length;
	if (ahead->taken < ahead->batch_first + batch->rows)
	{
		end = begin;
		for (uint64 i = 0; i < rows; i++)
			end += gpusort_message_length(all + end);
		ahead->bytes_number = ahead->taken;
		ahead->bytes_at = end;
	}
	appendBinaryStringInfo(bytes, all + begin, end - begin);
	return rows;
}

/* Takes the bytes of so many rows at most, and so many bytes, or few more; returns how many rows. */
static uint64
take(GpuSortAhead *ahead, uint64 count, Size most, StringInfo bytes)
{
	uint64 rows = 0;

	while (rows < count && left(ahead) > 0 && bytes->len < most)
	{
		const GpuSortRowBatch *batch = find_batch(ahead);

		if (batch == NULL || !batch->formed)
			break;
		rows += take_bytes(ahead, batch, count - rows, bytes);
	}
	return rows;
}

/* Emits the next row while there are some ahead: the node's ExecProcNode. */
static TupleTableSlot *
exec_ahead(PlanState *ps)
{
	GpuSortScanState *state = (GpuSortScanState *) ps;
	GpuSortAhead *ahead = state->ahead;

	if (ahead->stands_for_taken)
	{
		ahead->stands_for_taken = false;
		return ExecStoreAllNullTuple(ahead->slot);
	}
	if (left(ahead) > 0 && ScanDirectionIsForward(ps->state->es_direction))
		return ExecStoreMinimalTuple(next_row(ahead), ahead->slot, false);
	gpusort_ahead_drop(state);
	return gpusort_stream_exec(ps);
}

/* Forgets the row that had no place in the segment. */
static void
forget_last(GpuSortAhead *ahead)
{
	if (ahead->last == NULL)
		return;
	ExecClearTuple(ahead->slot);
	pfree(ahead->last);
	ahead->last = NULL;
}

/* Forgets rows that are ahead: the node emits the sort's own again, of which those have not been emitted. */
void
gpusort_ahead_drop(GpuSortScanState *state)
{
	GpuSortAhead *ahead = state->ahead;

	if (ahead == NULL || ahead->slot == NULL)
		return;
	ExecClearTuple(ahead->slot);
	state->stream.emitted -= left(ahead);
	ahead->rows = ahead->taken = 0;
	ahead->form.count = 0;
	forget_last(ahead);
	ExecSetExecProcNode(gpusort_plan_state(state), gpusort_stream_exec);
}

static void
let_go(void *arg)
{
	gpusort_form_rows_drop(&((GpuSortAhead *) arg)->form);
}

/* Returns the state of a GpuSort; NULL for another node. */
static GpuSortScanState *
scan_state(PlanState *ps)
{
	const Plan *plan = ps->plan;

	return IsA(plan, CustomScan) && ((const CustomScan *) plan)->methods == &gpusort_scan_methods
		? (GpuSortScanState *) ps
		: NULL;
}

/* Makes what there is for a node once its rows have been fetched. */
static GpuSortAhead *
create(GpuSortScanState *state)
{
	const PlanState *ps = gpusort_plan_state(state);
	MemoryContext context = ps->state->es_query_cxt;
	GpuSortAhead *ahead = MemoryContextAllocZero(context, sizeof(GpuSortAhead));

	ahead->refused = !is_compared_safely(state) || !depend_on_settings_alone(ps->ps_ResultTupleDesc);
	ahead->callback.func = let_go;
	ahead->callback.arg = ahead;
	MemoryContextRegisterResetCallback(context, &ahead->callback);
	return ahead;
}

/* Returns how many rows are left in the sort; 0: none, or it is not known, or the rows are not to be read ahead. */
static uint64
left_in_sort(const GpuSortScanState *state)
{
	const GpuSortState *sort = state->sort;

	if (sort->stage != GPUSORT_STAGE_SERVICE || state->stream.keeping || state->stream.marked ||
		(state->eflags & EXEC_FLAG_MARK) != 0 || sort->figures.outcome.rows < state->stream.emitted)
		return 0;
	return sort->figures.outcome.rows - state->stream.emitted;
}

/* Returns true if workers may be started here and now. */
static bool
may_start_workers(const EState *estate)
{
	return gpusort_parallel_cursors && max_parallel_workers_per_gather > 0 && IsUnderPostmaster && !IsInParallelMode() &&
		estate->es_epq_active == NULL && !estate->es_use_parallel_mode;
}

/* Returns how many bytes a segment may have; what the present one has is free for it. */
static Size
most_bytes(const GpuSortAhead *ahead)
{
	struct statvfs room;
	uint64 left;

	if (statvfs(SHARED_MEMORY, &room) != 0)
		return SEGMENT_BYTES_MAX;
	left = (uint64) room.f_bavail * room.f_frsize;
	if (left < WORKERS_ROOM)
		return 0;
	left += gpusort_form_rows_size(&ahead->form);
	return Min(SEGMENT_BYTES_MAX, left / SEGMENT_PART_MAX);
}

/*
 * Returns how many rows are to be read ahead, of which so many are wanted at once and so many are left, and sets *bytes
 * to what they take, and *share to that of rows in these.
 */
static uint64
rows_to_read(const GpuSortAhead *ahead, uint64 wanted, uint64 left, Size *bytes, double *share)
{
	const double formed = ahead->formed / ahead->formed_rows + 1;
	const double row = (ahead->row_bytes > 0 ? ahead->row_bytes : ROW_BYTES(formed)) + 1;
	const Size most = Max(most_bytes(ahead), 2 * BLCKSZ) - BLCKSZ;
	uint64 rows = Max(ahead->fetched, ROWS_MIN);

	if (wanted < left)
		rows = Max(rows, wanted);
	rows = Min(rows, left);
	rows = Min(rows, (uint64) (most / (row + formed)));
	*bytes = Min(most, (Size) (rows * (row + formed) * 1.05) + ((Size) 128 << 10)) + BLCKSZ;
	*share = row / (row + formed);
	return rows;
}

/* Reads so many rows, which processes form. */
static void
read_rows(GpuSortScanState *state, uint64 rows)
{
	GpuSortAhead *ahead = state->ahead;
	EState *estate = gpusort_plan_state(state)->state;
	MemoryContext caller = MemoryContextSwitchTo(estate->es_query_cxt);

	estate->es_direction = ForwardScanDirection;
	while (ahead->rows < rows && ahead->last == NULL)
	{
		TupleTableSlot *slot = gpusort_stream_row(&state->css);
		MinimalTuple row;
		bool is_copy;

		if (TupIsNull(slot))
		{
			/* nobody has seen the end yet */
			state->stream.ended = false;
			break;
		}
		row = ExecFetchSlotMinimalTuple(slot, &is_copy);
		ahead->rows++;
		if (!gpusort_form_rows_put(&ahead->form, row))
			ahead->last = ExecCopySlotMinimalTuple(slot);
		if (is_copy)
			heap_free_minimal_tuple(row);
	}
	MemoryContextSwitchTo(caller);
}

/* Notes what rows and their bytes have taken, of which the next will take as much. */
static void
note_bytes(GpuSortAhead *ahead)
{
	const GpuSortFormRows *form = &ahead->form;
	double rows = 0;
	double bytes = 0;

	for (uint32 i = 0; i < form->count; i++)
	{
		if (form->batches[i].formed)
		{
			rows += form->batches[i].rows;
			bytes += form->batches[i].length;
		}
	}
	ahead->row_bytes = (double) gpusort_form_rows_bytes(form) / Max(ahead->rows, 1);
	if (rows == 0)
	{
		ahead->next_try = 2 * ahead->fetched;
		return;
	}
	ahead->formed = bytes;
	ahead->formed_rows = rows;
}

/* Begins with the rows that have been read. */
static void
begin_rows(GpuSortScanState *state)
{
	GpuSortAhead *ahead = state->ahead;
	PlanState *ps = gpusort_plan_state(state);
	MemoryContext caller = MemoryContextSwitchTo(ps->state->es_query_cxt);

	if (ahead->slot == NULL)
		ahead->slot = ExecInitExtraTupleSlot(ps->state, ps->ps_ResultTupleDesc, &TTSOpsMinimalTuple);
	MemoryContextSwitchTo(caller);
	ahead->taken = 0;
	ahead->batch = 0;
	ahead->batch_first = 0;
	ahead->row_number = ahead->bytes_number = UINT64_MAX;
	ExecSetExecProcNode(ps, exec_ahead);
}

/* Keeps what the bytes are formed by, until the next time. */
static void
keep_format(GpuSortScanState *state, const GpuSortFormat *format)
{
	GpuSortAhead *ahead = state->ahead;
	MemoryContext caller = MemoryContextSwitchTo(gpusort_plan_state(state)->state->es_query_cxt);

	if (ahead->format != NULL)
		pfree(ahead->format);
	if (ahead->settings != NULL)
		pfree(ahead->settings);
	ahead->format = memcpy(palloc(format->bytes), format, format->bytes);
	ahead->settings = current_settings();
	MemoryContextSwitchTo(caller);
}

/* Returns true if the bytes are what would be formed now. */
static bool
is_formed_so(const GpuSortAhead *ahead, const GpuSortFormat *format)
{
	char *settings;
	bool same;

	if (left(ahead) == 0 || ahead->format->bytes != format->bytes ||
		memcmp(ahead->format, format, format->bytes) != 0)
		return false;
	settings = current_settings();
	same = strcmp(settings, ahead->settings) == 0;
	pfree(settings);
	return same;
}

/* Returns true if it saves time to form rows ahead, of which so many are left, as far as is known. */
static bool
pays(const GpuSortAhead *ahead, uint64 rows_left)
{
	const double processes = Min(1 + Min(max_parallel_workers_per_gather, WORKERS_MAX), sysconf(_SC_NPROCESSORS_ONLN));
	const double row_ms = ahead->alone_ms / Max(ahead->alone_rows, 1);

	if (gpusort_force)
		return true;
	if (ahead->ahead_rows > 0 && ahead->ahead_ms / ahead->ahead_rows > GAIN_PART * row_ms)
		return false;
	return row_ms * rows_left * (1 - 1 / processes) / 2 > GAIN_MS;
}

/* Returns true if all processes are to form rows now, of which so many are left. */
static bool
is_time(const GpuSortAhead *ahead, const EState *estate, uint64 rows_left)
{
	return left(ahead) == 0 && !ahead->refused && ahead->fetched >= Max(FETCHED_MIN, ahead->next_try) &&
		ahead->formed_rows > 0 && rows_left >= ROWS_MIN && may_start_workers(estate) && pays(ahead, rows_left);
}

/* Has all processes form the next rows, if that is worth while; false if there are no rows ahead. */
static bool
form_ahead(GpuSortScanState *state, const GpuSortFormat *format, uint64 wanted)
{
	GpuSortAhead *ahead = state->ahead;
	PlanState *ps = gpusort_plan_state(state);
	const uint64 rows_left = left_in_sort(state);
	uint64 rows;
	Size bytes;
	double share;

	if (!is_time(ahead, ps->state, rows_left))
		return false;
	rows = rows_to_read(ahead, wanted, rows_left, &bytes, &share);
	if (rows < Min(ROWS_MIN, rows_left))
		return false;
	if (gpusort_form_rows_size(&ahead->form) < bytes && !gpusort_form_rows_create(&ahead->form, bytes))
	{
		ahead->refused = true;
		return false;
	}
	ahead->rows = ahead->taken = 0;
	forget_last(ahead);
	if (!gpusort_form_rows_begin(&ahead->form, format, ps->ps_ResultTupleDesc,
								 Min(max_parallel_workers_per_gather, WORKERS_MAX), share))
	{
		ahead->next_try = 2 * ahead->fetched;
		return false;
	}
	keep_format(state, format);
	read_rows(state, rows);
	gpusort_form_rows_end(&ahead->form);
	note_bytes(ahead);
	begin_rows(state);
	return ahead->rows > 0;
}

/*
 * Takes the bytes of a cursor's next rows, so many at most, 0 for all, and so many bytes or few more, of columns in
 * such formats.  Returns how many; the next slot that the node emits stands for them.
 */
uint64
gpusort_ahead_take(QueryDesc *query, int16 *formats, uint64 count, Size most, StringInfo bytes)
{
	GpuSortScanState *state = scan_state(query->planstate);
	const uint64 wanted = count > 0 ? count : UINT64_MAX;
	GpuSortAhead *ahead = state != NULL ? state->ahead : NULL;
	GpuSortFormat *format;
	uint64 rows = 0;

	if (ahead == NULL || query->estate->es_junkFilter != NULL || query->planstate->instrument != NULL)
		return 0;
	format = gpusort_format_of_portal(query->tupDesc, formats);
	if (is_formed_so(ahead, format))
		rows = take(ahead, wanted, most, bytes);
	while (rows < wanted && bytes->len < most && form_ahead(state, format, wanted - rows))
	{
		const uint64 more = take(ahead, wanted - rows, most, bytes);

		rows += more;
		if (more == 0)
			break;
	}
	pfree(format);
	if (left(ahead) == 0 && left_in_sort(state) == 0)
		gpusort_form_rows_drop(&ahead->form);
	ahead->stands_for_taken = rows > 0;
	ahead->fetched += rows;
	return rows;
}

/*
 * Notes that the client has fetched rows of a cursor: so many that were formed one by one, of so many bytes, and so
 * many that had been formed ahead; and how many milliseconds that took.
 */
void
gpusort_ahead_note(QueryDesc *query, uint64 rows, Size bytes, uint64 taken, double ms)
{
	GpuSortScanState *state = scan_state(query->planstate);
	GpuSortAhead *ahead;

	if (state == NULL || rows + taken == 0)
		return;
	ahead = state->ahead;
	if (ahead == NULL)
		ahead = state->ahead = create(state); /* and rows were sorted meanwhile */
	else if (taken > 0)
	{
		ahead->ahead_ms += ms;
		ahead->ahead_rows += rows + taken;
	}
	else
	{
		ahead->alone_ms += ms;
		ahead->alone_rows += rows;
	}
	ahead->fetched += rows;
	ahead->formed += bytes;
	ahead->formed_rows += rows;
}
