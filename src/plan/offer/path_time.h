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

/* Numbers of rows in place of those that are estimated: so many times as many. */
typedef struct GpuSortGuess
{
	double groups;          /* of all nodes that group */
	const RelOptInfo *join; /* of this join alone: */
	const Bitmapset *one_side;
	double one_rows;
	double other_rows;
	double input; /* scans, and all that is not known, take so many times as long; 0: as estimated */
	bool limits;  /* a Limit takes what the rows take that it wants; else what its cost says, in any place the same */
} GpuSortGuess;

/* Numbers of rows as they are estimated. */
extern const GpuSortGuess gpusort_as_estimated;

/* The same, for what a whole statement takes. */
extern const GpuSortGuess gpusort_with_limits;

extern double gpusort_path_time(PlannerInfo *root, const Path *path, double first, const GpuSortGuess *guess);
extern void gpusort_path_note_ranges(PlannerInfo *root, const Path *path, double first);
extern bool gpusort_path_finds_top(const PlannerInfo *root, const Path *path, double first);
extern double gpusort_limit_path_rows(PlannerInfo *root, const LimitPath *path);

#endif /* GPUSORT_PATH_TIME_H */
