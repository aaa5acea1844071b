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

/* The time of a GpuSort without its input, in ns. */
typedef struct GpuSortTime
{
	double setup;
	double index; /* of setup: to read an index by which the first rows lead the scan; 0: there is none */

	/* per row */
	double ingest;  /* shared by parallel processes */
	double order;   /* between the last row in and the first row out: all processes wait */
	double emit;    /* by the reader */
	double compare; /* comparisons of rows with equal keys, by the reader */
	double ties;    /* the part of compare for different strings that are equal on a collation's first level */

	uint32 width;  /* of a row, bytes of its data */
	bool verified; /* all rows are read and verified before the first one is emitted */
	bool whole;    /* keys hold nearly all values whole, so that the service may leave rows of a group out */
	bool by_page;  /* rows are read by the page, not from the scan node */

	/* about PostgreSQL's own sort of the same rows */
	double string_factor; /* how many times as long as a number its key takes to compare */
	bool in_order;        /* its rows are in order already */
} GpuSortTime;

/* What takes the place of what, which decides how much time must at least be gained. */
typedef enum GpuSortGain
{
	GPUSORT_GAIN_MORE, /* something that does more than sort */
	GPUSORT_GAIN_SORT, /* a sort, of a sort's place */
	GPUSORT_GAIN_TOP,  /* likewise, where a process finds the first rows by itself */
} GpuSortGain;

extern GpuSortTime gpusort_path_sort_time(PlannerInfo *root, const Path *input, double rows, List *pathkeys,
										  const GpuSortAdmission *admission);
extern GpuSortTime gpusort_node_sort_time(List *rtable, const Sort *sort, double rows,
										  const GpuSortAdmission *admission);
extern bool gpusort_sort_finds_top(const GpuSortTime *time, double rows, double first);
extern GpuSortTime gpusort_sort_time_of_first(GpuSortTime time, double rows, double first, bool bounded);
extern double gpusort_native_sort_time(double rows, int width, double first, double string_factor, bool in_order);
extern double gpusort_string_factor(const PathKey *key);
extern bool gpusort_path_is_in_order(PlannerInfo *root, const Path *input, const PathKey *key);
extern bool gpusort_table_is_by_page(Oid table);
extern double gpusort_ranges_time(void);
extern double gpusort_least_gain(GpuSortGain gain);
extern bool gpusort_saves_enough(double time, double own, double native, GpuSortGain gain);

#endif /* GPUSORT_SORT_TIME_H */
