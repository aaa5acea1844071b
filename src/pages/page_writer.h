/*-------------------------------------------------------------------------
 *
 * page_writer.h
 *	  Writes the pages of a relation that nobody else sees yet, past the buffers.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PAGE_WRITER_H
#define GPUSORT_PAGE_WRITER_H

#include "compat.h"

#include "storage/bufpage.h"
#include "storage/lwlock.h"
#include "utils/relcache.h"

/* Alignment of memory that is written, for which direct I/O may ask. */
#define PAGE_ALIGNMENT 4096

typedef struct GpuSortPageWriter GpuSortPageWriter;

extern GpuSortPageWriter *gpusort_page_writer_create(Relation relation, BlockNumber end);
extern void gpusort_page_writer_put(GpuSortPageWriter *writer, BlockNumber block, const char *page);
extern void gpusort_page_writer_put_many(GpuSortPageWriter *writer, BlockNumber first, Page *pages, int count,
										 LWLock *lock);
extern void gpusort_page_writer_flush(GpuSortPageWriter *writer);

#endif /* GPUSORT_PAGE_WRITER_H */
