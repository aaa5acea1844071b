/*-------------------------------------------------------------------------
 *
 * page_writer.c
 *	  Writes the pages of an index that nobody else sees yet, past the buffers.
 *
 * They are written as PostgreSQL writes those of a btree that it builds.  They are logged if the index is, as whole
 * pages, several in a record; then written; and at the end the file is flushed to disk if it was logged, because a
 * checkpoint that comes meanwhile knows nothing of these writes, and replay may begin behind the records.  PostgreSQL
 * flushes what is not logged at the end of the transaction, or not at all.
 *
 * Legal order of calls: create, put for each page in any order, each once, finish.  A page that comes before others
 * of lower numbers leaves zeros in their place.  Several processes may each have a writer, for pages that the file has
 * (put_many); one of them puts what is left when they have ended, and finishes.  Errors of the disk are raised, and the
 * abort of the transaction removes the file.  All belongs to the memory context that was current at create.
 *
 *-------------------------------------------------------------------------
 */
#include "pages/page_writer.h"

#include "access/xloginsert.h"
#include "access/xlogrecord.h"
#include "miscadmin.h"
#include "storage/smgr.h"
#include "utils/rel.h"

/* Pages that are logged and written together: as many as a record takes. */
#define PAGES XLR_MAX_BLOCK_ID

struct GpuSortPageWriter
{
	Relation index;
	bool logged;
	BlockNumber end; /* of the file: pages from here on are not in it */
	char *zeros;
	int count; /* of pages that wait, in rising order */
	BlockNumber blocks[PAGES];
	Page pages[PAGES]; /* in memory, PAGES of them, in the order of the blocks */
};

/* Begins to write pages of an index whose file has so many blocks. */
GpuSortPageWriter *
gpusort_page_writer_create(Relation index, BlockNumber end)
{
	GpuSortPageWriter *writer = palloc0(sizeof(GpuSortPageWriter));
	char *memory = palloc0((PAGES + 1) * BLCKSZ + PAGE_ALIGNMENT);

	memory = (char *) TYPEALIGN(PAGE_ALIGNMENT, memory);
	writer->index = index;
	writer->end = end;
	writer->logged = RelationNeedsWAL(index);
	for (int i = 0; i < PAGES; i++)
		writer->pages[i] = memory + i * BLCKSZ;
	writer->zeros = memory + PAGES * BLCKSZ;
	return writer;
}

/* Writes a page, in the file or behind its end. */
static void
write_page(GpuSortPageWriter *writer, BlockNumber block, Page page)
{
	SMgrRelation file = RelationGetSmgr(writer->index);

	PageSetChecksumInplace(page, block);
	for (; writer->end < block; writer->end++)
		smgrextend(file, MAIN_FORKNUM, writer->end, writer->zeros, true);
	if (block < writer->end)
		smgrwrite(file, MAIN_FORKNUM, block, page, true);
	else
	{
		smgrextend(file, MAIN_FORKNUM, block, page, true);
		writer->end = block + 1;
	}
}

/* Logs pages, PAGES at most, and writes them. */
static void
write_pages(GpuSortPageWriter *writer, BlockNumber *blocks, Page *pages, int count)
{
	CHECK_FOR_INTERRUPTS();
	if (writer->logged && count > 0)
		log_newpages(&RELATION_LOCATOR(writer->index), MAIN_FORKNUM, count, blocks, pages, true);
	for (int i = 0; i < count; i++)
		write_page(writer, blocks[i], pages[i]);
}

/* Logs and writes the pages that wait. */
static void
flush(GpuSortPageWriter *writer)
{
	write_pages(writer, writer->blocks, writer->pages, writer->count);
	writer->count = 0;
}

/* Logs and writes pages of successive blocks from first on, at once, from where they lie; they stay the caller's. */
void
gpusort_page_writer_put_many(GpuSortPageWriter *writer, BlockNumber first, Page *pages, int count)
{
	BlockNumber blocks[PAGES];

	Assert(writer->count == 0);
	for (int done = 0; done < count; done += PAGES)
	{
		const int batch = Min(count - done, PAGES);

		for (int i = 0; i < batch; i++)
			blocks[i] = first + done + i;
		write_pages(writer, blocks, pages + done, batch);
	}
}

/* Takes a page, which is copied. */
void
gpusort_page_writer_put(GpuSortPageWriter *writer, BlockNumber block, const char *page)
{
	int place = writer->count;
	Page memory;

	if (place == PAGES)
	{
		flush(writer);
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

/* Finishes, when all pages have come: they are on disk then, as far as they have to be. */
void
gpusort_page_writer_finish(GpuSortPageWriter *writer)
{
	flush(writer);
	if (writer->logged)
		smgrimmedsync(RelationGetSmgr(writer->index), MAIN_FORKNUM);
	else if (writer->index->rd_rel->relpersistence == RELPERSISTENCE_UNLOGGED)
		REGISTER_UNLOGGED_SYNC(RelationGetSmgr(writer->index));
}
