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
	int processes; /* that sort so many rows each */
	bool tell;     /* somebody wants to know why it is refused */

	/* what it is sorted by: of a path, or of a finished plan; the other one is NULL */
	List *pathkeys;
	const Sort *sort;
} GpuSortCandidate;

/* What has been found out of a sort that was admitted, for its cost. */
typedef struct GpuSortAdmission
{
	int encodable;         /* leading keys that have an encoding; 0: the sort is refused */
	char *why_not;         /* it is; NULL if nobody wants to know */
	bool tell;             /* somebody does */
	GpuSortEncoding first; /* of the first key */
	bool partial_key;      /* its keys may not tell all values apart: as gpusort_key_is_partial has it */
	bool verified;         /* the order of all rows is: by the C library, or by comparators of abbreviated values */
	bool descending;       /* it is sorted down */
	bool cuda;             /* a GPU would sort */
	bool pool_mapped;      /* this backend has the staging pool mapped, by a sort before */

	/* Parts of the rows that do not fit what sorts them, and are kept in runs meanwhile */
	double memory_run_part; /* in the host's memory, beside a GPU */
	double disk_run_part;   /* in temporary files */
} GpuSortAdmission;

extern GpuSortAdmission gpusort_admit(const GpuSortCandidate *candidate);
extern bool gpusort_sorts_on_cuda(void);

#endif /* GPUSORT_ADMISSION_H */
