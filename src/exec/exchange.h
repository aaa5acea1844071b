/*-------------------------------------------------------------------------
 *
 * exchange.h
 *	  What GpuSortExchange gives to who sends its rows out of the server: bytes in place of rows (rows_out.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_EXEC_EXCHANGE_H
#define GPUSORT_EXEC_EXCHANGE_H

#include "compat.h"

#include "nodes/execnodes.h"
#include "form/format.h"

/* What some rows were formed as, one after another. */
typedef struct GpuSortFormedRows
{
	const char *data;
	Size length;
	uint64 rows;
	bool own; /* the leader has formed them, by the receiver that its former is over */
} GpuSortFormedRows;

extern bool gpusort_is_exchange(const PlanState *ps);
extern void gpusort_exchange_form_rows(PlanState *ps, const GpuSortFormat *format, GpuSortFormer *former);
extern const GpuSortFormedRows *gpusort_exchange_formed_rows(const PlanState *ps, const TupleTableSlot *slot);

#endif /* GPUSORT_EXEC_EXCHANGE_H */
