/*-------------------------------------------------------------------------
 *
 * row_queue.c
 *	  Rows that a parallel worker has made, on their way to the leader.
 *
 * Legal order of calls: the leader's create and open_reader, before the worker
 * starts; then the worker's open_writer, (put*, end_range)*, close_writer, beside the
 * leader's next, until it says GONE, and close_reader, which is legal at any time:
 * put and end_range return false then.  To start over, when the worker has ended:
 * close_reader, create, open_reader.
 *
 * A batch is rows, each a MinimalTuple padded to 8 bytes, and at the end of a range a
 * word of zeros behind the last: no row has length 0.  Rows of any length are taken: one
 * that is longer than a batch is a message by itself, which shm_mq sends in pieces.
 * In a queue of bytes a batch has those of as many rows as fit in the place of one row: put_bytes, and
 * put_row_among_bytes for a row that was not formed, stand for put then.
 *
 * RUNNING AHEAD
 *	The leader reads ranges in their order, so a worker whose range is not due finds its ring
 *	full.  It goes on, with batches that wait in its own memory, up to work_mem: else
 *	ranges whose rows are more than a ring would be made one after the other.  They go into the ring,
 *	as it takes them, whenever another batch is sent or a range ends.
 *
 * A CLIENT THAT STOPS READING
 *	A leader that waits for its client reads no queue, and workers would wait as long as the client likes.  If none of
 *	the leader's queues was read for PATIENCE_MS and it is that which it waits for, a worker puts all it
 *	has, and all that follows, into a temporary file, and ends: the leader reads the file behind what is in the ring.
 *	Not where temp_file_limit is set, for then the statement could fail by that.
 *
 * WAITS
 *	put and end_range wait while the ring is full and as much waits already as may, on the
 *	process latch, as shm_mq_send would, and end on cancel like it; close_writer waits until all is in
 *	the ring, or in the file.  next never waits: after EMPTY the caller waits for
 *	its latch, which shm_mq sets, resets it, and asks again.
 *
 *	shm_mq keeps a quarter of the ring back before it tells the leader.  So that the leader
 *	does not wait for rows that are there, it says so in the queue (WAITING) before EMPTY,
 *	and the worker looks at that with each row: then it sends what it has, one row at the
 *	beginning of a range, twice as much each time until whole batches go.  Not to see it at
 *	once costs time only: end_range tells the leader in any case, and so does
 *	close_writer.
 *
 * Nothing here is registered to be done at an error.  A worker that fails tells the leader
 * by PostgreSQL's error queue, whose message sets the leader's latch; workers of a leader
 * that fails are terminated, also while they wait in put.  A close in an abort would be
 * wrong: the memory may be gone by then.
 *
 * Memory: writer and reader, and what shm_mq allocates for them, belong to the context
 * that was current when they were opened.
 *
 *-------------------------------------------------------------------------
 */
#include "parallel/row_queue.h"

#include "sort/rowform.h"
#include "lib/ilist.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "server/wait_events.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/wait_event.h"

/*
 * Of rows in a batch: enough to make a message worth while, and less than a core's fastest cache.  Of bytes more, since
 * each batch is a write of the leader's: one of 128 kB takes three quarters of the time a byte.
 */
#define BATCH_BYTES      ((Size) 32 << 10)
#define LONG_BATCH_BYTES ((Size) 128 << 10)

/* The least worth while to send early, but for the first row of a range. */
#define EARLY_BYTES ((Size) 256)

/* So long a leader that waits for its client is waited for. */
#define PATIENCE_MS 2000

/* What the worker is to know of the leader. */
#define WAITING UINT32_C(1) /* it has read all that has come, and waits for more */
#define CLOSED  UINT32_C(2) /* it reads no more */

/* In shared memory; the ring is behind it. */
struct GpuSortRowQueue
{
	union
	{
		struct
		{
			pg_atomic_uint32 leader; /* flags above */
			pg_atomic_uint32 filed;  /* not 0: the worker has a file, which is behind what is in the ring */
		};
		char line[PG_CACHE_LINE_SIZE];
	} u;
};
typedef struct GpuSortRowQueue GpuSortRowQueue;

/* A message: a batch, or a long row by itself. */
typedef struct Message
{
	slist_node node;
	Size bytes;
	bool tell;                                                              /* the leader is to know of it at once */
	pg_attribute_aligned(MAXIMUM_ALIGNOF) char data[FLEXIBLE_ARRAY_MEMBER]; /* batch_space or more */
} Message;

StaticAssertDecl(offsetof(Message, data) % MAXIMUM_ALIGNOF == 0, "rows are formed in place and aligned");

struct GpuSortRowQueueWriter
{
	GpuSortRowQueue *queue;
	GpuSortRowQueues *queues;
	int worker;
	shm_mq_handle *messages;
	BufFile *file; /* where all goes; NULL: to the ring */
	MemoryContext context;
	Size batch_bytes;     /* of rows, or of what they were formed as, in a batch */
	GpuSortRowForm *form; /* of rows that are no tuples yet; NULL: there was none */
	Size early;           /* so many bytes are sent to a leader that waits */
	char *cursor;         /* where the next row goes */
	Message *batch;       /* the current one */

	/* Where the bytes of rows begin that are the last of the batch, and how many they are; NULL: there are none. */
	GpuSortRowBytes *formed;

	slist_head waiting; /* messages for which the ring had no room, oldest first; the first may be in it in part */
	slist_node *newest; /* of them, if there are any */
	Size waiting_bytes;
	slist_head spare; /* batches to be used again */
};

/* The bytes of a batch, with room for the end of a range behind them. */
static Size
batch_space(const GpuSortRowQueueWriter *writer)
{
	return writer->batch_bytes + sizeof(uint64);
}

static shm_mq *
queue_messages(GpuSortRowQueue *queue)
{
	return (shm_mq *) (queue + 1);
}

/* Returns the bytes that a queue takes in shared memory, whole cache lines. */
Size
gpusort_row_queue_bytes(void)
{
	return sizeof(GpuSortRowQueue) + GPUSORT_ROW_QUEUE_BYTES;
}

/* Makes, in the leader, what its queues have in common, in memory of that segment. */
void
gpusort_row_queues_create(GpuSortRowQueues *queues, dsm_segment *segment)
{
	queues->segment = dsm_segment_handle(segment);
	SharedFileSetInit(&queues->files, segment);
	pg_atomic_init_u64(&queues->taken, 0);
}

/* Drops the files of workers that have ended; others are about to start. */
void
gpusort_row_queues_start(GpuSortRowQueues *queues)
{
	SharedFileSetDeleteAll(&queues->files);
}

static void
file_name(int worker, char *name)
{
	snprintf(name, MAXPGPATH, "queue%d", worker);
}

/* Makes, in the leader, an empty queue at shared, which is aligned to 8 bytes, whatever is there. */
void
gpusort_row_queue_create(void *shared)
{
	GpuSortRowQueue *queue = shared;

	pg_atomic_init_u32(&queue->u.leader, 0);
	pg_atomic_init_u32(&queue->u.filed, 0);
	(void) shm_mq_create(queue_messages(queue), GPUSORT_ROW_QUEUE_BYTES);
}

/* Begins an empty batch. */
static void
begin_batch(GpuSortRowQueueWriter *writer)
{
	if (slist_is_empty(&writer->spare))
		writer->batch = MemoryContextAllocZero(writer->context, offsetof(Message, data) + batch_space(writer));
	else
		writer->batch = slist_container(Message, node, slist_pop_head_node(&writer->spare));
	writer->cursor = writer->batch->data;
}

/*
 * Opens the queue of this worker, one of those, that the leader has opened, of rows or of bytes, to write to it; one
 * process may, once.
 */
GpuSortRowQueueWriter *
gpusort_row_queue_open_writer(void *shared, GpuSortRowQueues *queues, int worker, bool of_bytes)
{
	GpuSortRowQueueWriter *writer = palloc0(sizeof(GpuSortRowQueueWriter));

	writer->queue = shared;
	writer->queues = queues;
	writer->worker = worker;
	writer->context = CurrentMemoryContext;
	writer->batch_bytes = of_bytes ? LONG_BATCH_BYTES : BATCH_BYTES;
	slist_init(&writer->waiting);
	slist_init(&writer->spare);
	begin_batch(writer);
	shm_mq_set_sender(queue_messages(writer->queue), MyProc);
	writer->messages = shm_mq_attach(queue_messages(writer->queue), NULL, NULL);
	return writer;
}

/* Notes that the leader is about to get all that was written, so that it is not told again. */
static void
note_told(GpuSortRowQueueWriter *writer)
{
	if (pg_atomic_read_u32(&writer->queue->u.leader) & WAITING)
		(void) pg_atomic_fetch_and_u32(&writer->queue->u.leader, ~WAITING);
}

/* Releases the memory of a message, which is in the ring, to be used again. */
static void
release_message(GpuSortRowQueueWriter *writer, Message *message)
{
	if (message->bytes <= batch_space(writer))
		slist_push_head(&writer->spare, &message->node);
	else
		pfree(message);
}

/*
 * Waits, since the ring is full, until the leader has read from it, or something else happens.  Returns false if it is
 * not to be waited for any longer.
 */
static bool
wait_for_room(GpuSortRowQueueWriter *writer)
{
	const uint64 taken = pg_atomic_read_u64(&writer->queues->taken);
	const int limited = temp_file_limit < 0 ? WL_TIMEOUT : 0;
	const int events = WaitLatch(MyLatch, WL_LATCH_SET | WL_EXIT_ON_PM_DEATH | limited, PATIENCE_MS,
								 gpusort_wait_event(GPUSORT_WAIT_EXCHANGE_ROOM));
	const PGPROC *leader;

	ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
	if ((events & WL_LATCH_SET) || !(events & WL_TIMEOUT) || pg_atomic_read_u64(&writer->queues->taken) != taken)
		return true;
	leader = shm_mq_get_receiver(queue_messages(writer->queue));
	return leader->wait_event_info != WAIT_EVENT_CLIENT_WRITE;
}

/* Puts the oldest message that waits into the file; its memory is released. */
static void
file_oldest(GpuSortRowQueueWriter *writer)
{
	Message *message = slist_container(Message, node, slist_pop_head_node(&writer->waiting));

	BufFileWrite(writer->file, &message->bytes, sizeof(message->bytes));
	BufFileWrite(writer->file, message->data, message->bytes);
	writer->waiting_bytes -= message->bytes;
	release_message(writer, message);
}

/* Makes the file where all goes from now on, in place of the ring, which may have part of the first message. */
static void
begin_file(GpuSortRowQueueWriter *writer)
{
	MemoryContext caller = MemoryContextSwitchTo(writer->context);
	char name[MAXPGPATH];

	SharedFileSetAttach(&writer->queues->files, dsm_find_mapping(writer->queues->segment));
	file_name(writer->worker, name);
	writer->file = BufFileCreateFileSet(&writer->queues->files.fs, name);
	MemoryContextSwitchTo(caller);
}

/* Puts all that waits into the file. */
static void
file_waiting(GpuSortRowQueueWriter *writer)
{
	while (!slist_is_empty(&writer->waiting))
		file_oldest(writer);
}

/*
 * Puts what waits into the ring, as much as it takes, and waits for it until no more than most bytes are left.
 * Returns false if the leader reads no more.
 */
static bool
push_waiting(GpuSortRowQueueWriter *writer, Size most)
{
	if (writer->file != NULL)
	{
		file_waiting(writer);
		return !(pg_atomic_read_u32(&writer->queue->u.leader) & CLOSED);
	}
	while (!slist_is_empty(&writer->waiting))
	{
		Message *message = slist_head_element(Message, node, &writer->waiting);
		shm_mq_result result;

		message->tell |= (pg_atomic_read_u32(&writer->queue->u.leader) & WAITING) != 0;
		if (message->tell)
			note_told(writer);
		result = shm_mq_send(writer->messages, message->bytes, message->data, true, message->tell);
		if (result == SHM_MQ_WOULD_BLOCK && writer->waiting_bytes > most)
		{
			if (wait_for_room(writer))
				continue;
			begin_file(writer);
			file_waiting(writer);
			return true;
		}
		if (result != SHM_MQ_SUCCESS)
			return result == SHM_MQ_WOULD_BLOCK;
		slist_pop_head_node(&writer->waiting);
		writer->waiting_bytes -= message->bytes;
		release_message(writer, message);
	}
	return true;
}

/* Sends a message, which belongs to the queue from now on, after those that wait; false if the leader reads no more. */
static bool
send_message(GpuSortRowQueueWriter *writer, Message *message, Size bytes, bool tell)
{
	message->bytes = bytes;
	message->tell = tell;
	if (slist_is_empty(&writer->waiting))
		slist_push_head(&writer->waiting, &message->node);
	else
		slist_insert_after(writer->newest, &message->node);
	writer->newest = &message->node;
	writer->waiting_bytes += bytes;
	return push_waiting(writer, (Size) work_mem * 1024);
}

/* Ends the bytes of rows at the end of the batch, if there are any. */
static inline void
end_formed(GpuSortRowQueueWriter *writer)
{
	char *padded;

	if (writer->formed == NULL)
		return;
	writer->formed->bytes = writer->cursor - (char *) writer->formed;
	padded = (char *) writer->formed + MAXALIGN(writer->formed->bytes);
	memset(writer->cursor, 0, padded - writer->cursor);
	writer->cursor = padded;
	writer->formed = NULL;
}

/* Sends the current batch, which may be empty, and begins another. */
static bool
send_batch(GpuSortRowQueueWriter *writer, bool tell)
{
	Message *batch = writer->batch;
	Size bytes;
	bool sent;

	end_formed(writer);
	bytes = writer->cursor - batch->data;
	if (bytes == 0)
		return true;
	sent = send_message(writer, batch, bytes, tell);
	begin_batch(writer);
	return sent;
}

/* Writes the row in slot to the batch; returns its length in bytes, or 0 when it does not fit. */
static inline Size
write_row(GpuSortRowQueueWriter *writer, TupleTableSlot *slot)
{
	char *limit = writer->batch->data + writer->batch_bytes;
	MinimalTuple minimal_tuple = gpusort_slot_minimal_tuple(slot);
	HeapTuple heap_tuple = gpusort_slot_heap_tuple(slot);

	GpuSortRow row = {0};

	if (minimal_tuple != NULL)
		return gpusort_copy_tuple((const char *) minimal_tuple, minimal_tuple->t_len, writer->cursor, limit);
	if (heap_tuple != NULL)
	{
		row.tuple = gpusort_tuple_end(heap_tuple, &row.length);
		return gpusort_copy_tuple(row.tuple, row.length, writer->cursor, limit);
	}
	if (unlikely(writer->form == NULL))
	{
		MemoryContext caller = MemoryContextSwitchTo(writer->context);

		writer->form = gpusort_rowform_create(slot->tts_tupleDescriptor, slot->tts_tupleDescriptor->natts);
		MemoryContextSwitchTo(caller);
	}
	slot_getallattrs(slot);
	row.values = slot->tts_values;
	row.nulls = slot->tts_isnull;
	return gpusort_rowform_fill(writer->form, &row, writer->cursor, limit);
}

/* Makes a message of its own for so many bytes. */
static Message *
make_message(GpuSortRowQueueWriter *writer, Size bytes)
{
	return MemoryContextAllocHuge(writer->context, offsetof(Message, data) + Max(bytes, batch_space(writer)));
}

/* Sends the row in slot by itself; the current batch is empty. */
static bool
send_long_row(GpuSortRowQueueWriter *writer, TupleTableSlot *slot)
{
	bool should_free;
	MinimalTuple tuple = ExecFetchSlotMinimalTuple(slot, &should_free);
	Message *message = make_message(writer, tuple->t_len);
	Size bytes = tuple->t_len;

	memcpy(message->data, tuple, bytes);
	if (should_free)
		heap_free_minimal_tuple(tuple);
	return send_message(writer, message, bytes, true);
}

/* Sends bytes by themselves, behind what is in the current batch. */
static bool
send_long_bytes(GpuSortRowQueueWriter *writer, const char *data, Size length, uint32 rows)
{
	const Size bytes = offsetof(GpuSortRowBytes, data) + length;
	Message *message;
	GpuSortRowBytes *item;

	if (!send_batch(writer, true))
		return false;
	message = make_message(writer, MAXALIGN(bytes));
	item = (GpuSortRowBytes *) message->data;
	item->bytes = bytes;
	item->rows = rows;
	memcpy(item->data, data, length);
	return send_message(writer, message, bytes, true);
}

/* Does what the leader's flags ask for; false if it reads no more. */
static pg_noinline bool
heed_leader(GpuSortRowQueueWriter *writer, uint32 leader)
{
	Size bytes = writer->cursor - writer->batch->data;

	if (leader & CLOSED)
		return false;
	if (!slist_is_empty(&writer->waiting))
		return push_waiting(writer, (Size) work_mem * 1024);
	if (bytes < writer->early)
		return true;
	writer->early = Min(Max(2 * bytes, EARLY_BYTES), writer->batch_bytes);
	return send_batch(writer, true);
}

/*
 * Puts the row in slot into the queue; waits as the head of this file says.  Returns false, for this row and all
 * after it, if the leader reads no more.  Expanded values are flattened; toasted ones stay so.
 */
bool
gpusort_row_queue_put(GpuSortRowQueueWriter *writer, TupleTableSlot *slot)
{
	Size length = write_row(writer, slot);
	uint32 leader = pg_atomic_read_u32(&writer->queue->u.leader);

	if (unlikely(length == 0))
	{
		if ((leader & CLOSED) || !send_batch(writer, (leader & WAITING) != 0))
			return false;
		length = write_row(writer, slot);
		if (length == 0)
			return send_long_row(writer, slot);
	}
	writer->cursor += MAXALIGN(length);
	return likely(leader == 0) || heed_leader(writer, leader);
}

/* Begins the bytes of rows at the end of a batch, or goes on with them; returns false if so many do not fit. */
static inline bool
make_room(GpuSortRowQueueWriter *writer, Size length)
{
	const char *limit = writer->batch->data + writer->batch_bytes;
	const Size begin = writer->formed == NULL ? offsetof(GpuSortRowBytes, data) : 0;

	/* The batch's end is aligned, so there is room to pad. */
	if (begin + length > (Size) (limit - writer->cursor))
		return false;
	if (writer->formed == NULL)
	{
		writer->formed = (GpuSortRowBytes *) writer->cursor;
		writer->formed->rows = 0;
		writer->cursor = writer->formed->data;
	}
	return true;
}

/* Does for a queue of bytes what put does: these are what a row was formed as. */
bool
gpusort_row_queue_put_bytes(GpuSortRowQueueWriter *writer, const char *data, Size length)
{
	uint32 leader = pg_atomic_read_u32(&writer->queue->u.leader);

	if (unlikely(!make_room(writer, length)))
	{
		if ((leader & CLOSED) || !send_batch(writer, (leader & WAITING) != 0))
			return false;
		if (!make_room(writer, length))
			return send_long_bytes(writer, data, length, 1);
	}
	memcpy(writer->cursor, data, length);
	writer->cursor += length;
	writer->formed->rows++;
	return likely(leader == 0) || heed_leader(writer, leader);
}

/* The same for a row that was not formed. */
bool
gpusort_row_queue_put_row_among_bytes(GpuSortRowQueueWriter *writer, TupleTableSlot *slot)
{
	bool should_free;
	MinimalTuple tuple = ExecFetchSlotMinimalTuple(slot, &should_free);
	bool sent = send_long_bytes(writer, (const char *) tuple, tuple->t_len, 0);

	if (should_free)
		heap_free_minimal_tuple(tuple);
	return sent;
}

/* Ends a range, whose rows are those put since the one before; false if the leader reads no more. */
bool
gpusort_row_queue_end_range(GpuSortRowQueueWriter *writer)
{
	end_formed(writer);
	memset(writer->cursor, 0, sizeof(uint64));
	writer->cursor += sizeof(uint64);
	writer->early = 0;
	return send_batch(writer, true);
}

/*
 * Closes the writer, which is gone then; waits until all is in the ring, or in the file.  Rows of a range that was not
 * ended are lost.
 */
void
gpusort_row_queue_close_writer(GpuSortRowQueueWriter *writer)
{
	(void) push_waiting(writer, 0);
	if (writer->file != NULL)
	{
		BufFileExportFileSet(writer->file);
		BufFileClose(writer->file);
		pg_atomic_write_u32(&writer->queue->u.filed, 1);
		pg_write_barrier();
	}
	shm_mq_detach(writer->messages);
	while (!slist_is_empty(&writer->waiting))
		pfree(slist_container(Message, node, slist_pop_head_node(&writer->waiting)));
	while (!slist_is_empty(&writer->spare))
		pfree(slist_container(Message, node, slist_pop_head_node(&writer->spare)));
	pfree(writer->batch);
	pfree(writer);
}

/* Opens the new queue of this worker, one of those, to read it, before the process that writes to it starts. */
GpuSortRowQueueReader *
gpusort_row_queue_open_reader(void *shared, GpuSortRowQueues *queues, int worker)
{
	GpuSortRowQueueReader *reader = palloc0(sizeof(GpuSortRowQueueReader));

	reader->queue = shared;
	reader->queues = queues;
	reader->worker = worker;
	reader->context = CurrentMemoryContext;
	shm_mq_set_receiver(queue_messages(reader->queue), MyProc);
	reader->messages = shm_mq_attach(queue_messages(reader->queue), NULL, NULL);
	return reader;
}

/* Gets the next message if there is one; asks the worker for what it has before it says that there is none. */
static shm_mq_result
receive_message(GpuSortRowQueueReader *reader, Size *bytes, void **data)
{
	pg_atomic_uint32 *leader = &reader->queue->u.leader;
	shm_mq_result result = shm_mq_receive(reader->messages, bytes, data, true);

	if (result == SHM_MQ_WOULD_BLOCK && !(pg_atomic_read_u32(leader) & WAITING))
	{
		(void) pg_atomic_fetch_or_u32(leader, WAITING);
		result = shm_mq_receive(reader->messages, bytes, data, true);
	}
	if (result == SHM_MQ_SUCCESS && (pg_atomic_read_u32(leader) & WAITING))
		(void) pg_atomic_fetch_and_u32(leader, ~WAITING);
	return result;
}

static void
report_unreadable(void)
{
	ereport(ERROR, (errcode_for_file_access(), errmsg("could not read rows back from gpusort's temporary file: %m")));
}

/* Gets the next message of the worker's file, which is whole; false if there is none, or no file. */
static bool
read_message(GpuSortRowQueueReader *reader, Size *bytes, void **data)
{
	Size got;

	if (reader->file == NULL)
	{
		MemoryContext caller;
		char name[MAXPGPATH];

		pg_read_barrier();
		if (pg_atomic_read_u32(&reader->queue->u.filed) == 0)
			return false;
		file_name(reader->worker, name);
		caller = MemoryContextSwitchTo(reader->context);
		reader->file = BufFileOpenFileSet(&reader->queues->files.fs, name, O_RDONLY, false);
		MemoryContextSwitchTo(caller);
	}
	got = BufFileRead(reader->file, bytes, sizeof(*bytes));
	if (got == 0)
		return false;
	if (got != sizeof(*bytes))
		report_unreadable();
	if (*bytes > reader->allocated)
	{
		if (reader->message != NULL)
			pfree(reader->message);
		reader->message = MemoryContextAllocHuge(reader->context, *bytes);
		reader->allocated = *bytes;
	}
	if (BufFileRead(reader->file, reader->message, *bytes) != *bytes)
		report_unreadable();
	*data = reader->message;
	return true;
}

/* Does what gpusort_row_queue_next does, where no row is left in the current batch. */
GpuSortRowQueueRead
gpusort_row_queue_next_batch(GpuSortRowQueueReader *reader, MinimalTuple *row)
{
	Size bytes;
	void *data;

	if (reader->cursor == reader->end)
	{
		switch (receive_message(reader, &bytes, &data))
		{
			case SHM_MQ_SUCCESS:
				break;
			case SHM_MQ_WOULD_BLOCK:
				return GPUSORT_ROW_QUEUE_EMPTY;
			case SHM_MQ_DETACHED:
				if (!read_message(reader, &bytes, &data))
					return GPUSORT_ROW_QUEUE_GONE;
				break;
		}
		(void) pg_atomic_fetch_add_u64(&reader->queues->taken, 1);
		reader->cursor = data;
		reader->end = reader->cursor + MAXALIGN(bytes);
	}

	*row = (MinimalTuple) reader->cursor;
	if ((*row)->t_len == 0)
	{
		reader->cursor += sizeof(uint64);
		Assert(reader->cursor == reader->end);
		return GPUSORT_ROW_QUEUE_RANGE_END;
	}
	reader->cursor += MAXALIGN((*row)->t_len);
	Assert(reader->cursor <= reader->end);
	return GPUSORT_ROW_QUEUE_ROW;
}

/* Closes the reader, which is gone then; the worker hears of it when it puts its next row, or waits to put one. */
void
gpusort_row_queue_close_reader(GpuSortRowQueueReader *reader)
{
	(void) pg_atomic_fetch_or_u32(&reader->queue->u.leader, CLOSED);
	shm_mq_detach(reader->messages);
	if (reader->file != NULL)
		BufFileClose(reader->file);
	if (reader->message != NULL)
		pfree(reader->message);
	pfree(reader);
}
