/*-------------------------------------------------------------------------
 *
 * copy_former.h
 *	  Rows that PostgreSQL's own COPY TO forms in a worker, though they are not of its query.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_COPY_FORMER_H
#define GPUSORT_COPY_FORMER_H

#include "compat.h"

#include "executor/execdesc.h"
#include "form/former.h"
#include "nodes/parsenodes.h"

extern char *gpusort_copy_statement_text(const CopyStmt *copy, TupleDesc desc);
extern void gpusort_with_copy_former(const char *statement, TupleDesc desc, bool binary, bool for_file, int encoding,
									 GpuSortFormerCallback callback, void *arg);
extern bool gpusort_copy_former_takes_run(QueryDesc *query);

#endif /* GPUSORT_COPY_FORMER_H */
