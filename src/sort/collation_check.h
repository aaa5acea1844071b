/*-------------------------------------------------------------------------
 *
 * collation_check.h
 *	  Verifies with the C library that rows sorted under its collations are in order.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_COLLATION_CHECK_H
#define GPUSORT_COLLATION_CHECK_H

#include "compat.h"

#include "keys/keys.h"
#include "sort/reader.h"
#include "sort/row_kind.h"

typedef struct GpuSortCollationCheck GpuSortCollationCheck;

extern GpuSortCollationCheck *gpusort_collation_check_create(const GpuSortKeys *keys, GpuSortRows *rows);
extern bool gpusort_collation_check_rows(GpuSortCollationCheck *check, GpuSortReader *reader, uint64 rows,
										 uint64 *pairs, GpuSortFailure *failure);
pg_noreturn extern void gpusort_collation_check_report(Oid collation);
extern bool gpusort_collation_check_allows(const GpuSortKeys *keys, GpuSortFailure *failure);

#endif /* GPUSORT_COLLATION_CHECK_H */
