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
	double first; /* number of rows that are wanted, or -1 for all */
	double stops; /* so many rows may do, of which only those know who give them while they read; -1: all are read */
	bool alone;   /* one process reads it once, so it may contain Gathers */
	bool once;    /* the statement reads it once: it is not in a SubPlan */
	bool shared;  /* each process of a Gather reads a part of its rows, once */
	bool last;    /* it returns the rows of its query, in the query's order if that has one */
	bool ordered; /* the reader relies on the order of PostgreSQL's path */
	bool sought;  /* the reader looks for columns by what they are, whatever their order */
} GpuSortPathPlace;

/* The candidates for a place. */
typedef struct GpuSortChoice
{
	const GpuSortPathPlace *place;
	const Path *path;   /* PostgreSQL's path */
	const Path *native; /* the same over what was chosen below it */
	List *joins;        /* the rels that native joins */
	List *partial;      /* those of them that it joins in several processes */
	bool forced;        /* chosen by gpusort.force, whatever its time */
	Path *best;
	double best_time; /* -1 until it is computed */
	double own_time;  /* the time of path */
} GpuSortChoice;

extern GpuSortChoice gpusort_choice_begin(const GpuSortPathPlace *place, const Path *path, Path *taken);
extern void gpusort_choice_compete(GpuSortChoice *choice, Path *path);
extern Path *gpusort_choice_end(const GpuSortChoice *choice);

#endif /* GPUSORT_CHOICE_H */
