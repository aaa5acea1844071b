/*-------------------------------------------------------------------------
 *
 * sort_time.h
 *	  How long a sort takes over its input: GpuSort's, and PostgreSQL's own.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_TIME_H
#define GPUSORT_SORT_TIME_H

#include "compat.h"

#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"
#include "plan/admission.h"

/* What a GpuSort takes over its input, in ns. */
typedef struct GpuSortTime
{
	double setup;

	/* per row */
	double ingest;  /* shared by parallel processes */
	double order;   /* from ingest to the first row: all wait for it */
	double emit;    /* the reader's */
	double compare; /* of rows that the keys do not tell apart, the reader's */
	double ties;    /* of that: of different strings that are alike in the first level of a collation */

	bool verified; /* all rows are read, to be verified, before the first is emitted */
	bool by_page;  /* rows come by the page of a table, and the scan gives none out */

	/* of the sort that PostgreSQL would do in its place */
	double string_factor; /* its key takes so many times as long as a number */
	bool in_order;        /* its rows are in order already */
} GpuSortTime;

extern GpuSortTime gpusort_path_sort_time(PlannerInfo *root, const Path *input, double rows, List *pathkeys,
										  const GpuSortAdmission *admission);
extern GpuSortTime gpusort_node_sort_time(List *rtable, const Sort *sort, double rows,
										  const GpuSortAdmission *admission);
extern GpuSortTime gpusort_sort_time_of_first(GpuSortTime time, double rows, double first);
extern double gpusort_native_sort_time(double rows, int width, double first, double string_factor, bool in_order);
extern double gpusort_string_factor(const PathKey *key);
extern bool gpusort_path_is_in_order(PlannerInfo *root, const Path *input, const PathKey *key);
extern bool gpusort_table_is_by_page(Oid table);
extern double gpusort_ranges_time(void);
extern double gpusort_least_gain(bool sort);
extern bool gpusort_saves_enough(double time, double own, double native, bool sort);

#endif /* GPUSORT_SORT_TIME_H */
