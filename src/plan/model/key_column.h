/*-------------------------------------------------------------------------
 *
 * key_column.h
 *	  The table's column that a sort key has its values from, and what statistics say of it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_COLUMN_H
#define GPUSORT_KEY_COLUMN_H

#include "compat.h"

#include "facts/table_column.h"
#include "keys/types.h"
#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"

typedef struct GpuSortKeyColumn
{
	GpuSortTableColumn column;
	Oid type;      /* of its values */
	Oid less_than; /* or another ordering operator */
	Oid collation;
	GpuSortEncoding encoding;
} GpuSortKeyColumn;

extern bool gpusort_path_key_column(PlannerInfo *root, const PathKey *key, GpuSortKeyColumn *found);
extern bool gpusort_sort_key_column(List *rtable, const Sort *sort, int i, GpuSortKeyColumn *found);

/* What plans ask for again and again, and is remembered until statistics change */
extern double gpusort_column_tied_part(const GpuSortKeyColumn *column, double rows);
extern double gpusort_column_ends_part(const GpuSortKeyColumn *column);

extern double gpusort_column_groups(const GpuSortTableColumn *column, double rows);
extern bool gpusort_column_is_in_order(Oid table, AttrNumber attno, bool descending);

#endif /* GPUSORT_KEY_COLUMN_H */
