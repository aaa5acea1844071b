/*-------------------------------------------------------------------------
 *
 * exchange.h
 *	  What GpuSortExchange gives to who takes its rows: bytes in place of rows, or pages of a new table (rows_out.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_EXEC_EXCHANGE_H
#define GPUSORT_EXEC_EXCHANGE_H

#include "compat.h"

#include "nodes/execnodes.h"
#include "form/format.h"
#include "pages/heap_pages.h"

/* The formed bytes of some rows, one after another; data is NULL if the rows are in a table's pages. */
typedef struct GpuSortFormedRows
{
	const char *data;
	Size length;
	uint64 rows;
	bool own; /* the leader has formed them, by the receiver that its former is over */
} GpuSortFormedRows;

extern bool gpusort_is_exchange(const PlanState *ps);
extern void gpusort_exchange_form_rows(PlanState *ps, const GpuSortFormat *format, GpuSortFormer *former);
extern bool gpusort_exchange_reads_tables(const PlanState *ps);
extern void gpusort_exchange_fill_table(PlanState *ps, const GpuSortNewTable *table, Relation inserted_into);
extern const GpuSortFormedRows *gpusort_exchange_formed_rows(const PlanState *ps, const TupleTableSlot *slot);

#endif /* GPUSORT_EXEC_EXCHANGE_H */
