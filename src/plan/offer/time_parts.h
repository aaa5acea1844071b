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

/* The time of a path, and what is known about it. */
typedef struct GpuSortParts
{
	double rows;   /* number of rows that it emits, in each process */
	double before; /* time until the rows are in order, or all of the time */
	double above;  /* time from there on, which processes share if there are several */
	double again;  /* additional time if they share it (gpusort_window_again_time) */
	double processes;
	double uneven;            /* size of the largest part of above divided by that of the others, or 0 */
	double start;             /* the part of before that starts the processes */
	const PathKey *range_key; /* rows are divided by its values; NULL if one process does all of above */
	const char *why_alone;    /* why one process does above though rows could be divided, or NULL */
	bool shared;              /* times and rows are those of one process of several that share ranges below a Gather */
	bool goes_on;             /* a window below continues from one range to the next */
	int nodes;                /* number of working nodes above the sort that run by ranges */
	const Path *top;          /* the highest of these nodes, including those that only pass rows on */
	bool in_parts;            /* an aggregate above top runs for each range in parts */
	List *sorts;              /* the GpuSorts below that take notes, or NIL */
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
