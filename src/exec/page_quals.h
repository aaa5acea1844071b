/*-------------------------------------------------------------------------
 *
 * page_quals.h
 *	  Conditions of a scan that are decided for a page's tuples at once, without the executor's expressions.
 *
 * These are "column op constant" of builtin numbers, dates and times, booleans and "char", and IS [NOT] NULL: they
 * have no effects and raise no errors.  Legal order of calls: create, once; then for each page filter.
 *
 * A threshold, behind which a sort wants no rows, is such a condition, too, which changes: set_threshold before filter.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PAGE_QUALS_H
#define GPUSORT_PAGE_QUALS_H

#include "compat.h"

#include "access/htup_details.h"
#include "access/tupdesc.h"
#include "exec/page_ahead.h"
#include "nodes/pg_list.h"
#include "sort/source.h"
#include "storage/bufpage.h"

typedef struct GpuSortPageQual GpuSortPageQual;

typedef struct GpuSortPageQuals
{
	int count;
	GpuSortPageQual *quals;
	struct GpuSortTupleColumns *columns; /* the column of each condition */
	Datum *values;                       /* their values in a tuple */
	bool *nulls;
} GpuSortPageQuals;

extern bool gpusort_page_quals_are_harmless(List *conditions);
extern GpuSortPageQuals *gpusort_page_quals_create(List *conditions, Index relid, TupleDesc desc);
extern GpuSortPageQuals *gpusort_page_quals_create_threshold(AttrNumber attno, TupleDesc desc, Oid type);
extern void gpusort_page_quals_set_threshold(GpuSortPageQuals *quals, const GpuSortThreshold *threshold);
extern int gpusort_page_quals_filter(const GpuSortPageQuals *quals, Page page, OffsetNumber *tuples, int n,
									 GpuSortPageAhead *ahead);

/* Returns the tuple at this line of a page. */
static inline HeapTupleHeader
gpusort_page_tuple(Page page, OffsetNumber line)
{
	return (HeapTupleHeader) PageGetItem(page, PageGetItemId(page, line));
}

#endif /* GPUSORT_PAGE_QUALS_H */
