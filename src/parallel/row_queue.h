/*-------------------------------------------------------------------------
 *
 * row_queue.h
 *	  Rows that a parallel worker has made, on their way to the leader.
 *
 * A queue is of rows, or of bytes that rows were formed as.
 *
 * Rows are gathered in batches of some 32 kB, MinimalTuples aligned to 8 bytes, bytes in batches of 128 kB, and
 * each batch is a message of PostgreSQL's shm_mq: the leader reads the rows where they
 * lie in its ring.  The queue is in dynamic shared memory that both sides have mapped
 * as long as they have it open.
 *
 * Chunks of the staging pool were considered instead: they cost a worker 8 MiB of what
 * all sorts share, and rows would go by way of memory, where the ring stays in the
 * cache.  So was PostgreSQL's own tuple queue (Gather's): a message, a copy and a
 * function or two for each row.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ROW_QUEUE_H
#define GPUSORT_ROW_QUEUE_H

#include "compat.h"

#include "access/htup_details.h"
#include "executor/tuptable.h"
#include "port/atomics.h"
#include "storage/buffile.h"
#include "storage/dsm.h"
#include "storage/sharedfileset.h"
#include "storage/shm_mq.h"

/* Size of the ring.  A worker may be ahead of the leader by this, and by what it keeps in its own memory. */
#define GPUSORT_ROW_QUEUE_BYTES ((Size) 1 << 20)

typedef struct GpuSortRowQueueWriter GpuSortRowQueueWriter;

/* What the queues of one leader have in common, in dynamic shared memory. */
typedef struct GpuSortRowQueues
{
	dsm_handle segment;
	SharedFileSet files;    /* of workers that did not wait for the leader's client */
	pg_atomic_uint64 taken; /* batches that the leader has read */
} GpuSortRowQueues;

/* What comes next in a queue. */
typedef enum GpuSortRowQueueRead
{
	GPUSORT_ROW_QUEUE_ROW,
	GPUSORT_ROW_QUEUE_RANGE_END, /* the range has no more rows; the next row belongs to the worker's next range */
	GPUSORT_ROW_QUEUE_EMPTY,     /* nothing has come yet; this process's latch is set when something comes */
	GPUSORT_ROW_QUEUE_GONE,      /* the worker has closed the queue, and all rows were read */
} GpuSortRowQueueRead;

/* What is read from a queue of bytes, instead of a row. */
typedef struct GpuSortRowBytes
{
	uint32 bytes; /* length of the whole struct, in the place of a MinimalTuple's length */
	uint32 rows;  /* number of rows in data; 0 if data is one MinimalTuple */
	char data[FLEXIBLE_ARRAY_MEMBER];
} GpuSortRowBytes;

StaticAssertDecl(offsetof(GpuSortRowBytes, data) == MAXIMUM_ALIGNOF, "a row in it is aligned");

/* For row_queue.[ch] alone. */
typedef struct GpuSortRowQueueReader
{
	char *cursor; /* the next row of the current batch */
	char *end;    /* of the batch */
	struct GpuSortRowQueue *queue;
	shm_mq_handle *messages;
	GpuSortRowQueues *queues;
	int worker;
	BufFile *file;  /* what the worker has put there, behind what was in the ring; NULL: not open */
	char *message;  /* the current batch, if it is from the file; or NULL */
	Size allocated; /* bytes for that */
	MemoryContext context;
} GpuSortRowQueueReader;

extern Size gpusort_row_queue_bytes(void);
extern void gpusort_row_queues_create(GpuSortRowQueues *queues, dsm_segment *segment);
extern void gpusort_row_queues_start(GpuSortRowQueues *queues);
extern void gpusort_row_queue_create(void *shared);

extern GpuSortRowQueueWriter *gpusort_row_queue_open_writer(void *shared, GpuSortRowQueues *queues, int worker,
															bool of_bytes);
extern bool gpusort_row_queue_put(GpuSortRowQueueWriter *writer, TupleTableSlot *slot);
extern bool gpusort_row_queue_put_bytes(GpuSortRowQueueWriter *writer, const char *data, Size length);
extern bool gpusort_row_queue_put_row_among_bytes(GpuSortRowQueueWriter *writer, TupleTableSlot *slot);
extern bool gpusort_row_queue_end_range(GpuSortRowQueueWriter *writer);
extern void gpusort_row_queue_close_writer(GpuSortRowQueueWriter *writer);

extern GpuSortRowQueueReader *gpusort_row_queue_open_reader(void *shared, GpuSortRowQueues *queues, int worker);
extern GpuSortRowQueueRead gpusort_row_queue_next_batch(GpuSortRowQueueReader *reader, MinimalTuple *row);
extern void gpusort_row_queue_close_reader(GpuSortRowQueueReader *reader);

/*
 * Reads the next row if it is in the current batch, else returns NULL, and gpusort_row_queue_next tells more.
 * The row is valid until the next call.
 */
static pg_attribute_always_inline MinimalTuple
gpusort_row_queue_ready_row(GpuSortRowQueueReader *reader)
{
	char *next = reader->cursor;
	uint32 length;

	if (unlikely(next >= reader->end))
		return NULL;
	length = ((MinimalTuple) next)->t_len;
	if (unlikely(length == 0))
		return NULL;                 /* the end of the range */
	__builtin_prefetch(next + 1024); /* another core has written it */
	reader->cursor = next + MAXALIGN(length);
	return (MinimalTuple) next;
}

/*
 * Reads what is next, without waiting.  *row is set for ROW, and valid until the next call; of a queue of bytes it is a
 * GpuSortRowBytes.
 */
static inline GpuSortRowQueueRead
gpusort_row_queue_next(GpuSortRowQueueReader *reader, MinimalTuple *row)
{
	*row = gpusort_row_queue_ready_row(reader);
	return likely(*row != NULL) ? GPUSORT_ROW_QUEUE_ROW : gpusort_row_queue_next_batch(reader, row);
}

#endif /* GPUSORT_ROW_QUEUE_H */
