/*-------------------------------------------------------------------------
 *
 * page_writer.c
 *	  Writes the pages of a relation that nobody else sees yet, past the buffers.
 *
 * They are logged if the relation is, as whole pages, several in a record, and then written.  Nothing is flushed at the
 * end: the next checkpoint is told to flush the file, as with pages that come from buffers.  A checkpoint that begins
 * between a record and the writes would let replay begin behind the record, and not know of the writes: so those that
 * begin then wait for the writes.  They look from time to time for a moment at which no process is there, which may not
 * come while many write; so when a checkpoint has begun, each process pauses once.  What is not logged PostgreSQL
 * flushes itself at the end of the transaction.
 *
 * Processes that write to one file wait for each other in the kernel, call by call, and keep the CPUs busy with it.
 * So successive pages are written by one call: from 17 on by smgrwritev; before, the storage manager takes them one by
 * one, and so they are written past it to the file that it would write to, and the checkpoint is told as it would.
 * And processes that share a file give a lock, which they wait for asleep; it is held while pages are written, but not
 * while they are logged.
 *
 * Legal order of calls: create, put for each page in any order, each once, flush.  A page that comes before others
 * of lower numbers leaves zeros in their place.  Several processes may each have a writer, for pages that the file has
 * (put_many).  Errors of the disk are raised, and the abort of the transaction removes the file.  All belongs to the
 * memory context that was current at create.
 *
 *-------------------------------------------------------------------------
 */
#include "pages/page_writer.h"

#include "access/xlog.h"
#include "access/xloginsert.h"
#include "access/xlogrecord.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "port/pg_iovec.h"
#include "storage/fd.h"
#include "storage/proc.h"
#include "storage/smgr.h"
#include "storage/sync.h"
#include "utils/rel.h"

#include "compat.h"

/* Pages that are logged and written together: as many as a record takes. */
#define PAGES XLR_MAX_BLOCK_ID

/* In microseconds; a checkpoint looks every 10 ms, and a process is there for some milliseconds. */
#define CHECKPOINT_PAUSE 50000

#ifdef HAVE_SMGRWRITEV
StaticAssertDecl(PAGES <= PG_IOV_MAX, "one call writes as many");
#endif

struct GpuSortPageWriter
{
	Relation relation;
	bool logged;
	XLogRecPtr redo; /* where replay would begin, as far as is known: it moves when a checkpoint begins */
	BlockNumber end; /* of the file: pages from here on are not in it */
	char *zeros;
	int count; /* of pages that wait, in rising order */
	BlockNumber blocks[PAGES];
	Page pages[PAGES]; /* in memory, PAGES of them, in the order of the blocks */
};

/* Begins to write pages of a relation whose file has so many blocks. */
GpuSortPageWriter *
gpusort_page_writer_create(Relation relation, BlockNumber end)
{
	GpuSortPageWriter *writer = palloc0(sizeof(GpuSortPageWriter));
	char *memory = palloc0((PAGES + 1) * BLCKSZ + PAGE_ALIGNMENT);

	memory = (char *) TYPEALIGN(PAGE_ALIGNMENT, memory);
	writer->relation = relation;
	writer->end = end;
	writer->logged = RelationNeedsWAL(relation);
	writer->redo = GetRedoRecPtr();
	for (int i = 0; i < PAGES; i++)
		writer->pages[i] = memory + i * BLCKSZ;
	writer->zeros = memory + PAGES * BLCKSZ;
	return writer;
}

/* Writes a page, in the file or behind its end; skip_fsync: a checkpoint is not told. */
static void
write_page(GpuSortPageWriter *writer, BlockNumber block, Page page, bool skip_fsync)
{
	SMgrRelation file = RelationGetSmgr(writer->relation);

	PageSetChecksumInplace(page, block);
	for (; writer->end < block; writer->end++)
		smgrextend(file, MAIN_FORKNUM, writer->end, writer->zeros, true);
	if (block < writer->end)
		smgrwrite(file, MAIN_FORKNUM, block, page, skip_fsync);
	else
	{
		smgrextend(file, MAIN_FORKNUM, block, page, skip_fsync);
		writer->end = block + 1;
	}
}

/* Returns how many of the first of these pages can be written by one call, to one segment of the file: at least 1. */
static int
count_successive(const GpuSortPageWriter *writer, const BlockNumber *blocks, const Page *pages, int count)
{
	int successive = 1;

	while (successive < count && blocks[successive] == blocks[0] + successive &&
		   blocks[successive] / RELSEG_SIZE == blocks[0] / RELSEG_SIZE && blocks[successive] < writer->end
#ifndef HAVE_SMGRWRITEV
		   && pages[successive] == pages[0] + successive * BLCKSZ
#endif
	)
		successive++;
	return successive;
}

#ifdef HAVE_SMGRWRITEV
/* Writes so many successive pages of the file, more than one. */
static void
write_successive(GpuSortPageWriter *writer, BlockNumber first, Page *pages, int count, LWLock *lock)
{
	if (lock != NULL)
		LWLockAcquire(lock, LW_EXCLUSIVE);
	PG_TRY();
	{
		smgrwritev(RelationGetSmgr(writer->relation), MAIN_FORKNUM, first, (const void **) pages, count, false);
	}
	PG_CATCH();
	{
		/* who reads the error may wait for it */
		if (lock != NULL)
		{
			HOLD_INTERRUPTS(); /* which the error has ended */
			LWLockRelease(lock);
		}
		PG_RE_THROW();
	}
	PG_END_TRY();
	if (lock != NULL)
		LWLockRelease(lock);
}
#else
/* Opens a segment of the relation's file; < 0: it cannot be. */
static File
open_segment(const GpuSortPageWriter *writer, BlockNumber segment)
{
	char *relation = relpathbackend(RELATION_LOCATOR(writer->relation), writer->relation->rd_backend, MAIN_FORKNUM);
	char path[MAXPGPATH];

	if (segment == 0)
		strlcpy(path, relation, sizeof(path));
	else
		snprintf(path, sizeof(path), "%s.%u", relation, segment);
	pfree(relation);
	return PathNameOpenFile(path, O_RDWR | PG_BINARY);
}

/*
 * Tells the next checkpoint to flush a segment, or flushes it if it cannot be told.  Closes the file.  Where that fails
 * the kernel may have dropped pages that others have written, so it is an error as in PostgreSQL's own files.
 */
static void
tell_checkpoint(const GpuSortPageWriter *writer, File file, BlockNumber segment)
{
	const FileTag tag = {SYNC_HANDLER_MD, MAIN_FORKNUM, RELATION_LOCATOR(writer->relation), segment};
	const char *name = RelationGetRelationName(writer->relation);
	const bool flushed = SmgrIsTemp(RelationGetSmgr(writer->relation)) ||
		RegisterSyncRequest(&tag, SYNC_REQUEST, false) || FileSync(file, WAIT_EVENT_DATA_FILE_SYNC) >= 0;
	const int error = errno;

	FileClose(file);
	errno = error;
	if (!flushed)
		ereport(data_sync_elevel(ERROR),
				(errcode_for_file_access(), errmsg("could not fsync a file of relation \"%s\": %m", name)));
}

/* Writes so many successive pages of the file, more than one. */
static void
write_successive(GpuSortPageWriter *writer, BlockNumber first, Page *pages, int count, LWLock *lock)
{
	const BlockNumber segment = first / RELSEG_SIZE;
	const File file = open_segment(writer, segment);
	const int bytes = count * BLCKSZ;
	bool written = false;

	if (file >= 0)
	{
		if (lock != NULL)
			LWLockAcquire(lock, LW_EXCLUSIVE);
		written = FileWrite(file, pages[0], bytes, (off_t) (first % RELSEG_SIZE) * BLCKSZ,
							WAIT_EVENT_DATA_FILE_WRITE) == bytes;
		if (lock != NULL)
			LWLockRelease(lock);
		tell_checkpoint(writer, file, segment);
	}
	/* The storage manager raises the error, if there is one. */
	for (int i = 0; !written && i < count; i++)
		write_page(writer, first + i, pages[i], i + 1 < count);
}
#endif

/*
 * Logs pages and writes them.  A checkpoint is told of the last in each segment of the file.  The WAL writer is told of
 * each record: it writes WAL pages many by one call, while processes that find no room in the WAL buffers write one.
 */
static void
log_and_write(GpuSortPageWriter *writer, BlockNumber *blocks, Page *pages, int count, LWLock *lock)
{
	int successive;

	if (writer->logged)
	{
		log_newpages(&RELATION_LOCATOR(writer->relation), MAIN_FORKNUM, count, blocks, pages, true);
		XLogSetAsyncXactLSN(XactLastRecEnd);
	}
	for (int i = 0; i < count; i += successive)
	{
		const BlockNumber *next = &blocks[i + 1];

		successive = count_successive(writer, &blocks[i], &pages[i], count - i);
		if (successive > 1)
		{
			for (int page = i; page < i + successive; page++)
				PageSetChecksumInplace(pages[page], blocks[page]);
			write_successive(writer, blocks[i], &pages[i], successive, lock);
		}
		else
			write_page(writer, blocks[i], pages[i], i + 1 < count && *next / RELSEG_SIZE == blocks[i] / RELSEG_SIZE);
	}
}

/* Lets a checkpoint that has begun find that no process is between a record and its writes. */
static void
give_way(GpuSortPageWriter *writer)
{
	const XLogRecPtr redo = GetRedoRecPtr();

	if (redo == writer->redo)
		return;
	writer->redo = redo;
	pg_usleep(CHECKPOINT_PAUSE);
}

/* Logs pages and writes them, PAGES at most in rising order, while no checkpoint begins. */
static void
write_pages(GpuSortPageWriter *writer, BlockNumber *blocks, Page *pages, int count, LWLock *lock)
{
	CHECK_FOR_INTERRUPTS();
	if (count == 0)
		return;
	if (!writer->logged)
	{
		log_and_write(writer, blocks, pages, count, lock);
		return;
	}
	give_way(writer);
	MyProc->delayChkptFlags |= DELAY_CHKPT_START;
	PG_TRY();
	{
		log_and_write(writer, blocks, pages, count, lock);
	}
	PG_FINALLY();
	{
		/* a subtransaction that aborts does not do it */
		MyProc->delayChkptFlags &= ~DELAY_CHKPT_START;
	}
	PG_END_TRY();
}

/*
 * Logs and writes pages of successive blocks from first on, at once, from where they lie; they stay the caller's.  The
 * lock is that of the first's segment of the file.
 */
void
gpusort_page_writer_put_many(GpuSortPageWriter *writer, BlockNumber first, Page *pages, int count, LWLock *lock)
{
	BlockNumber blocks[PAGES];

	Assert(writer->count == 0);
	for (int done = 0; done < count; done += PAGES)
	{
		const int batch = Min(count - done, PAGES);

		for (int i = 0; i < batch; i++)
			blocks[i] = first + done + i;
		write_pages(writer, blocks, pages + done, batch, lock);
	}
}

/* Logs and writes the pages that wait. */
void
gpusort_page_writer_flush(GpuSortPageWriter *writer)
{
	write_pages(writer, writer->blocks, writer->pages, writer->count, NULL);
	writer->count = 0;
}

/* Takes a page, which is copied. */
void
gpusort_page_writer_put(GpuSortPageWriter *writer, BlockNumber block, const char *page)
{
	int place = writer->count;
	Page memory;

	if (place == PAGES)
	{
		gpusort_page_writer_flush(writer);
		place = 0;
	}
	memory = writer->pages[writer->count];
	memcpy(memory, page, BLCKSZ);
	for (; place > 0 && writer->blocks[place - 1] > block; place--)
	{
		writer->blocks[place] = writer->blocks[place - 1];
		writer->pages[place] = writer->pages[place - 1];
	}
	writer->blocks[place] = block;
	writer->pages[place] = memory;
	writer->count++;
}
