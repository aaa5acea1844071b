/*-------------------------------------------------------------------------
 *
 * time_parts.h
 *	  The time of a path in its parts: until its rows are in order, and above that, which processes may share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_TIME_PARTS_H
#define GPUSORT_TIME_PARTS_H

#include "compat.h"

#include "nodes/pathnodes.h"
#include "plan/model/shape.h"

/* What is known of a path. */
typedef struct GpuSortParts
{
	double rows;   /* that it emits, in each process */
	double before; /* all of the time, or until rows are in order */
	double above;  /* from there on, divided if there are */
	double again;  /* what these do more, if there are (gpusort_window_again_time) */
	double processes;
	double uneven;            /* the largest part of above is so many times as large as the others; 0: it is not */
	double start;             /* of before, what it takes to start these */
	const PathKey *range_key; /* by whose values the rows are shared out; NULL: by none, above belongs to one process */
	const char *why_alone;    /* why it does all the same, where that is noted; NULL: it does not */
	bool shared;              /* all of these are one process's, of those that share ranges below a Gather: rows, too */
	bool goes_on;             /* a window below goes on from one range to the next: its partitions do not end with them */
	int nodes;                /* above the sort that run by ranges and have something to do */
	const Path *top;          /* the highest of these, with those that pass rows on */
	bool in_parts;            /* what an aggregate, which is above top, has below it, or its part of each range */
	List *sorts;              /* the GpuSorts below, if they note that; otherwise NIL */
} GpuSortParts;

extern double gpusort_parts_total(const GpuSortParts *time);
extern void gpusort_parts_note_formed(const GpuSortParts *time, double output);
extern void gpusort_parts_note_alone(const GpuSortParts *time, const char *why);
extern void gpusort_parts_end(GpuSortParts *time);
extern void gpusort_parts_add(GpuSortParts *time, double work, double rows, bool may_share, bool works);
extern void gpusort_parts_largest(GpuSortParts *time, double part);
extern GpuSortParts gpusort_parts_gathered(GpuSortParts time, int workers, double processes,
										   GpuSortNodeKind kind);

#endif /* GPUSORT_TIME_PARTS_H */
