/*-------------------------------------------------------------------------
 *
 * choice.h
 *	  Which path stands in a place of the tree that PostgreSQL chose.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_CHOICE_H
#define GPUSORT_CHOICE_H

#include "compat.h"

#include "nodes/pathnodes.h"

/* A place in the tree of paths. */
typedef struct GpuSortPathPlace
{
	PlannerInfo *root;
	double first; /* so many rows are wanted; -1: all */
	bool alone;   /* one process reads it, once: Gathers may be in it */
	bool once;    /* so does the statement: it is not of a SubPlan */
	bool shared;  /* processes of a Gather have a part of its rows each, which they read once */
	bool last;    /* it gives the rows of its query: in its order, if that has one */
	bool ordered; /* what reads it relies on the order of PostgreSQL's path */
} GpuSortPathPlace;

/* What could stand in a place. */
typedef struct GpuSortChoice
{
	const GpuSortPathPlace *place;
	const Path *path;   /* PostgreSQL's */
	const Path *native; /* the same with what takes places below it */
	List *joins;        /* rels that native joins */
	List *partial;      /* those of them that it joins in several processes */
	bool forced;        /* by gpusort.force: whatever time it takes */
	Path *best;
	double best_time; /* -1: nobody has asked yet */
	double own_time;  /* of path */
} GpuSortChoice;

extern GpuSortChoice gpusort_choice_begin(const GpuSortPathPlace *place, const Path *path, Path *taken);
extern void gpusort_choice_compete(GpuSortChoice *choice, Path *path);
extern Path *gpusort_choice_end(const GpuSortChoice *choice);

#endif /* GPUSORT_CHOICE_H */
