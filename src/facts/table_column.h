/*-------------------------------------------------------------------------
 *
 * table_column.h
 *	  Which column of which table a column of a finished plan's rows is.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_TABLE_COLUMN_H
#define GPUSORT_TABLE_COLUMN_H

#include "compat.h"

#include "nodes/plannodes.h"

typedef struct GpuSortTableColumn
{
	Oid table;
	AttrNumber attno;
	bool one_of_several; /* tables that rows come from: the first of them, below an Append */
} GpuSortTableColumn;

extern bool gpusort_find_table_column(List *rtable, const Plan *plan, AttrNumber attno, GpuSortTableColumn *column);
extern bool gpusort_has_virtual_columns(Oid table);

#endif /* GPUSORT_TABLE_COLUMN_H */
