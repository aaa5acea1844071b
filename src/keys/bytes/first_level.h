/*-------------------------------------------------------------------------
 *
 * first_level.h
 *	  How many strings the first level of a libc collation tells apart.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_FIRST_LEVEL_H
#define GPUSORT_FIRST_LEVEL_H

#include "compat.h"

#include "keys/keys.h"

#define GPUSORT_FIRST_LEVEL_STRINGS 512

/* A sample of a column's strings. */
typedef struct GpuSortFirstLevels
{
	const GpuSortKeys *keys;
	const GpuSortColumn *column;
	int count;
	struct
	{
		uint64 level; /* hashes: of the first level */
		uint64 whole; /* and of the string */
	} strings[GPUSORT_FIRST_LEVEL_STRINGS];
} GpuSortFirstLevels;

extern void gpusort_first_levels_add(GpuSortFirstLevels *levels, Datum value);
extern double gpusort_first_levels_tied(GpuSortFirstLevels *levels, double rows);

#endif /* GPUSORT_FIRST_LEVEL_H */
