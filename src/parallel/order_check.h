/*-------------------------------------------------------------------------
 *
 * order_check.h
 *	  Verifies the order of a sort's rows in parts, by several processes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ORDER_CHECK_H
#define GPUSORT_ORDER_CHECK_H

#include "compat.h"

#include "sort/reader.h"
#include "parallel/claims.h"
#include "sort/collation_check.h"
#include "service/protocol.h"

/* The rows of a shared sort, in order and cut into ranges; what the leader publishes. */
typedef struct GpuSortOrderedRows
{
	GpuSortExpected expected;
	uint32 ranges;
	uint32 part_ranges;                        /* in a part to be verified, but for the last part; 0: none is */
	uint64 pairs;                              /* of neighbours that have been compared; claims.c adds them up */
	uint64 first_rows[GPUSORT_RANGES_MAX + 1]; /* of each range; then the number of rows */
} GpuSortOrderedRows;

/* What one process reads a sort with, to verify it. */
typedef struct GpuSortOrderReader
{
	GpuSortCollationCheck *check;
	GpuSortReader *reader;
	GpuSortClient *client;
} GpuSortOrderReader;

extern bool gpusort_order_cut(GpuSortClient *client, GpuSortOrderedRows *rows, int processes, GpuSortFailure *failure);
extern uint32 gpusort_order_parts(GpuSortOrderedRows *rows, int processes);
extern bool gpusort_order_check_part(GpuSortCollationCheck *check, GpuSortReader *reader, GpuSortClient *client,
									 const GpuSortOrderedRows *rows, uint32 part, uint64 *pairs, GpuSortFailure *failure);
extern bool gpusort_order_check_parts(const GpuSortOrderReader *own, GpuSortOrderedRows *rows, GpuSortClaims *claims,
									  GpuSortFailure *failure);

/* Returns how many parts the rows have, when they have been divided. */
static inline uint32
gpusort_order_parts_of(const GpuSortOrderedRows *rows)
{
	return rows->part_ranges == 0 ? 0 : (rows->ranges + rows->part_ranges - 1) / rows->part_ranges;
}

#endif /* GPUSORT_ORDER_CHECK_H */
