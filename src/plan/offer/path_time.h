/*-------------------------------------------------------------------------
 *
 * path_time.h
 *	  How long a path takes: the model's adaptor for paths.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PATH_TIME_H
#define GPUSORT_PATH_TIME_H

#include "compat.h"

#include "nodes/pathnodes.h"

/* Factors for estimated numbers of rows. */
typedef struct GpuSortGuess
{
	double groups;          /* for all nodes that group */
	const RelOptInfo *join; /* the join to which the next three apply */
	const Bitmapset *one_side;
	double one_rows;
	double other_rows;
	double input; /* factor for the time of scans and unknown nodes; 0 means as estimated */
	bool limits;  /* a Limit takes the time of the rows that it needs; otherwise what its cost says */
} GpuSortGuess;

/* All numbers as estimated. */
extern const GpuSortGuess gpusort_as_estimated;

/* The same, for the time of a whole statement. */
extern const GpuSortGuess gpusort_with_limits;

extern double gpusort_path_time(PlannerInfo *root, const Path *path, double first, const GpuSortGuess *guess);
extern double gpusort_path_fetch_time(PlannerInfo *root, const Path *path, double first);
extern void gpusort_path_note_ranges(PlannerInfo *root, const Path *path, double first);
extern bool gpusort_path_finds_top(const PlannerInfo *root, const Path *path, double first);
extern double gpusort_limit_path_rows(PlannerInfo *root, const LimitPath *path);

#endif /* GPUSORT_PATH_TIME_H */
