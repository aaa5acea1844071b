/*-------------------------------------------------------------------------
 *
 * table_out.h
 *	  Rows of a GpuSortExchange are put into a new table's pages by all processes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_TABLE_OUT_H
#define GPUSORT_TABLE_OUT_H

#include "compat.h"

#include "executor/execdesc.h"

extern DestReceiver *gpusort_table_out_create(QueryDesc *query);
extern void gpusort_table_out_insert(QueryDesc *query);

#endif /* GPUSORT_TABLE_OUT_H */
