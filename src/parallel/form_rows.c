/*-------------------------------------------------------------------------
 *
 * form_rows.c
 *	  Rows that a leader gives out and all processes form, within one call.
 *
 * The leader puts rows, and so fills one batch after another, each of which a worker claims; when it has put all it
 * forms batches, too.  Bytes of a batch go where those of others end: nobody knows before how many there will be.
 *
 * ERRORS
 *	A row that cannot be formed, as the client's encoding may lack a letter, fails when it is fetched, if it is.  So an
 *	error is caught in each process, and forgotten (form/attempt.h).  The process forms no more.
 *
 * ROOM
 *	There may be no room for a segment of that size: that is no error either.
 *
 *-------------------------------------------------------------------------
 */
#include "parallel/form_rows.h"

#include "executor/tuptable.h"
#include "form/attempt.h"
#include "miscadmin.h"
#include "parallel/claims.h"
#include "server/statistics.h"
#include "server/wait_events.h"
#include "utils/memutils.h"

/* Rows of so many bytes make a batch. */
#define BATCH_BYTES ((Size) 32 << 10)

extern PGDLLEXPORT void gpusort_form_rows_worker(dsm_segment *segment, shm_toc *toc);

/* What the command of the workers shares beside the segment. */
typedef struct FormRowsCommand
{
	GpuSortClaims claims; /* must be first field: for the build alone */
	dsm_handle segment;
} FormRowsCommand;

/* A process that forms. */
typedef struct BatchFormer
{
	GpuSortFormedSegment *shared;
	TupleTableSlot *slot;
	uint64 rows;
	uint64 bytes;
} BatchFormer;

/* The descriptor of the rows. */
static TupleDesc
make_desc(const GpuSortFormedSegment *shared)
{
	const GpuSortRowColumn *columns = (const GpuSortRowColumn *) ((const char *) shared + shared->columns);
	TupleDesc desc = CreateTemplateTupleDesc(shared->ncolumns);

	for (int i = 0; i < shared->ncolumns; i++)
		TupleDescInitEntry(desc, i + 1, NULL, columns[i].type, columns[i].typmod, 0);
	TupleDescFinalize(desc);
	return desc;
}

/* Claims a batch, and waits until there is one; NULL: no more are to come. */
static GpuSortRowBatch *
claim(GpuSortFormedSegment *shared)
{
	uint32 next = pg_atomic_read_u32(&shared->next);

	for (;;)
	{
		const bool ended = pg_atomic_read_u32(&shared->ended) != 0;

		pg_read_barrier();
		if (next < pg_atomic_read_u32(&shared->ready))
		{
			if (pg_atomic_compare_exchange_u32(&shared->next, &next, next + 1))
				break;
			continue;
		}
		if (ended)
			break;
		ConditionVariableSleep(&shared->changed, gpusort_wait_event(GPUSORT_WAIT_RANGES));
		next = pg_atomic_read_u32(&shared->next);
	}
	ConditionVariableCancelSleep();
	if (next >= pg_atomic_read_u32(&shared->ready))
		return NULL;
	pg_read_barrier();
	return (GpuSortRowBatch *) ((char *) shared + shared->batches) + next;
}

/* Forms the rows of a batch; false if there is no room for what was formed, or one is too long. */
static bool
form_batch(BatchFormer *own, GpuSortFormer *former, GpuSortRowBatch *batch)
{
	GpuSortFormedSegment *shared = own->shared;
	const StringInfo bytes = &former->caught.bytes;
	char *row = (char *) shared + batch->first;

	CHECK_FOR_INTERRUPTS();
	gpusort_former_clear(former);
	for (uint32 i = 0; i < batch->rows; i++)
	{
		MinimalTuple tuple = (MinimalTuple) row;

		ExecStoreMinimalTuple(tuple, own->slot, false);
		if (!gpusort_former_row(former, own->slot) || (Size) bytes->len > shared->end - shared->room)
			return false;
		row += MAXALIGN(tuple->t_len);
	}
	batch->bytes = pg_atomic_fetch_add_u64(&shared->filled, bytes->len);
	if (batch->bytes + bytes->len > shared->end)
		return false;
	memcpy((char *) shared + batch->bytes, bytes->data, bytes->len);
	batch->length = bytes->len;
	batch->formed = true;
	own->rows += batch->rows;
	own->bytes += bytes->len;
	return true;
}

/* Forms one batch after another; a GpuSortFormerCallback. */
static void
form_batches(GpuSortFormer *former, void *arg)
{
	BatchFormer *own = arg;
	GpuSortRowBatch *batch;

	do
	{
		batch = claim(own->shared);
	} while (batch != NULL && form_batch(own, former, batch));
}

static void
form_all(void *arg)
{
	BatchFormer *own = arg;
	const TupleDesc desc = make_desc(own->shared);

	own->slot = MakeSingleTupleTableSlot(desc, &TTSOpsMinimalTuple);
	gpusort_with_former((GpuSortFormat *) ((char *) own->shared + own->shared->format), desc, form_batches, own);
	ExecDropSingleTupleTableSlot(own->slot);
}

/* What each process does. */
static BatchFormer
form(GpuSortFormedSegment *shared)
{
	BatchFormer own = {.shared = shared};
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "gpusort forms rows", ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);

	(void) gpusort_attempt_once(form_all, &own);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
	return own;
}

/* Where a worker starts. */
void
gpusort_form_rows_worker(dsm_segment *ignored, shm_toc *toc)
{
	const GpuSortCommandWorker worker = gpusort_command_worker_begin(toc);
	const FormRowsCommand *command = worker.shared;
	dsm_segment *segment;

	if (command == NULL)
		return;
	segment = dsm_attach(command->segment);
	if (segment != NULL)
	{
		const BatchFormer own = form(dsm_segment_address(segment));

		if (own.rows > 0)
			gpusort_stats_count_formed(own.rows, own.bytes);
		dsm_detach(segment);
	}
	gpusort_command_worker_end(&worker);
}

/* A segment to be made. */
typedef struct SegmentWish
{
	Size bytes;
	dsm_segment *segment;
} SegmentWish;

static void
create_segment(void *arg)
{
	SegmentWish *wish = arg;

	wish->segment = dsm_create(wish->bytes, DSM_CREATE_NULL_IF_MAXSEGMENTS);
	if (wish->segment != NULL)
		dsm_pin_mapping(wish->segment);
}

/* Makes a segment of so many bytes in the place of that before; false if there is no room. */
bool
gpusort_form_rows_create(GpuSortFormRows *own, Size bytes)
{
	SegmentWish wish = {.bytes = bytes};

	gpusort_form_rows_drop(own);
	if (!gpusort_attempt_once(create_segment, &wish) || wish.segment == NULL)
		return false;
	own->segment = wish.segment;
	own->shared = dsm_segment_address(wish.segment);
	return true;
}

void
gpusort_form_rows_drop(GpuSortFormRows *own)
{
	if (own->segment != NULL)
		dsm_detach(own->segment);
	*own = (GpuSortFormRows){0};
}

/* Returns the bytes of the segment; 0: there is none. */
Size
gpusort_form_rows_size(const GpuSortFormRows *own)
{
	return own->segment != NULL ? dsm_segment_map_length(own->segment) : 0;
}

/* Takes a place for something of so many bytes. */
static Size
place(Size *at, Size bytes)
{
	const Size taken = *at;

	*at += MAXALIGN(bytes);
	return taken;
}

/* Lays the segment out; rows get such a share of what is left for rows and bytes. */
static void
lay_out(GpuSortFormRows *own, const GpuSortFormat *format, TupleDesc desc, double row_share)
{
	GpuSortFormedSegment *shared = own->shared;
	const Size end = dsm_segment_map_length(own->segment);
	Size at = MAXALIGN(sizeof(GpuSortFormedSegment));
	GpuSortRowColumn *columns;

	shared->ncolumns = desc->natts;
	shared->columns = place(&at, desc->natts * sizeof(GpuSortRowColumn));
	shared->format = place(&at, format->bytes);
	shared->batches = place(&at, (end / BATCH_BYTES + 2) * sizeof(GpuSortRowBatch));
	own->at = at;
	own->rows_end = at + (Size) ((end - at) * row_share);
	shared->room = TYPEALIGN(PG_CACHE_LINE_SIZE, own->rows_end);
	shared->end = end;
	columns = (GpuSortRowColumn *) gpusort_form_rows_at(own, shared->columns);
	for (int i = 0; i < desc->natts; i++)
		columns[i] = (GpuSortRowColumn){TupleDescAttr(desc, i)->atttypid, TupleDescAttr(desc, i)->atttypmod};
	memcpy(gpusort_form_rows_at(own, shared->format), format, format->bytes);
	own->batches = (GpuSortRowBatch *) gpusort_form_rows_at(own, shared->batches);
	own->count = 0;
	own->batches[0] = (GpuSortRowBatch){.first = own->at};
}

/*
 * Starts so many workers for rows of this descriptor, or fewer; false if there are none.  Nothing else may start some
 * before end.  row_share: what rows are expected to take of the room for them and for what is formed.
 */
bool
gpusort_form_rows_begin(GpuSortFormRows *own, const GpuSortFormat *format, TupleDesc desc, int workers,
						double row_share)
{
	GpuSortFormedSegment *shared = own->shared;
	FormRowsCommand *command =
		gpusort_command_workers_prepare(&own->workers, "gpusort_form_rows_worker", workers, sizeof(FormRowsCommand), NULL);

	if (command == NULL)
		return false;
	lay_out(own, format, desc, row_share);
	pg_atomic_init_u64(&shared->filled, shared->room);
	pg_atomic_init_u32(&shared->ready, 0);
	pg_atomic_init_u32(&shared->next, 0);
	pg_atomic_init_u32(&shared->ended, 0);
	ConditionVariableInit(&shared->changed);
	gpusort_claims_create(&command->claims);
	command->segment = dsm_segment_handle(own->segment);
	gpusort_command_workers_launch(&own->workers);
	if (gpusort_command_workers_processes(&own->workers) > 1)
		return true;
	gpusort_command_workers_end(&own->workers);
	return false;
}

/* Lets the current batch be formed, and begins the next. */
static void
end_batch(GpuSortFormRows *own)
{
	if (own->batches[own->count].rows == 0)
		return;
	own->count++;
	own->batches[own->count] = (GpuSortRowBatch){.first = own->at};
	pg_write_barrier();
	pg_atomic_write_u32(&own->shared->ready, own->count);
	ConditionVariableSignal(&own->shared->changed);
}

/* Puts a row; false if there is no room, neither for this one nor for another. */
bool
gpusort_form_rows_put(GpuSortFormRows *own, MinimalTuple row)
{
	GpuSortRowBatch *batch = &own->batches[own->count];

	if (own->at + MAXALIGN(row->t_len) > own->rows_end)
		return false;
	memcpy(gpusort_form_rows_at(own, own->at), row, row->t_len);
	own->at += MAXALIGN(row->t_len);
	batch->rows++;
	if (own->at - batch->first >= BATCH_BYTES)
		end_batch(own);
	return true;
}

/* Forms with the workers what is left, and ends them. */
void
gpusort_form_rows_end(GpuSortFormRows *own)
{
	end_batch(own);
	pg_write_barrier();
	pg_atomic_write_u32(&own->shared->ended, 1);
	ConditionVariableBroadcast(&own->shared->changed);
	(void) form(own->shared);
	gpusort_command_workers_finish(&own->workers);
	gpusort_command_workers_end(&own->workers);
}
