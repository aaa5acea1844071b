/*-------------------------------------------------------------------------
 *
 * admission.h
 *	  Whether a sort may go to the service, and why not.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ADMISSION_H
#define GPUSORT_ADMISSION_H

#include "compat.h"

#include "keys/types.h"
#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"

/* A sort that may go to the service. */
typedef struct GpuSortCandidate
{
	double rows;
	int width;     /* bytes of a row's data, as the planner estimates it */
	int processes; /* number of processes that each sort this many rows */
	bool tell;     /* a reason for a refusal is wanted */

	/* what it is sorted by: pathkeys of a path, or a finished Sort; the other one is NULL */
	List *pathkeys;
	const Sort *sort;
} GpuSortCandidate;

/* What is known about a sort after its admission was decided. */
typedef struct GpuSortAdmission
{
	int encodable;         /* number of leading keys that have an encoding; 0 if the sort is refused */
	char *why_not;         /* the reason for a refusal; NULL if it is not wanted */
	bool tell;             /* the reason is wanted */
	GpuSortEncoding first; /* the encoding of the first key */
	bool partial_key;      /* different values may have equal keys (gpusort_key_is_partial) */
	bool verified;         /* the C library, or comparators of abbreviated values, verify the order of all rows */
	bool descending;       /* the first key is sorted descending */
	bool cuda;             /* a GPU would sort */
	bool pool_mapped;      /* an earlier sort of this backend has mapped the staging pool */

	/* The fractions of the rows that are kept in runs, because they do not fit the engine's memory */
	double memory_run_part; /* in the host's memory, beside a GPU */
	double disk_run_part;   /* in temporary files */
} GpuSortAdmission;

extern GpuSortAdmission gpusort_admit(const GpuSortCandidate *candidate);
extern bool gpusort_sorts_on_cuda(void);

#endif /* GPUSORT_ADMISSION_H */
