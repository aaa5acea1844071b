/*-------------------------------------------------------------------------
 *
 * run_rows.c
 *	  Runs of few rows, for tests: every sort has some then, however small it is.
 *
 * Runs grow with the sort, so that one of millions
 * of rows has some dozens of them, not thousands.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>

#include "service/external/run_rows.h"

/* A run is as large as this part of the rows before it, */
#define PART_OF_ROWS 8

/* and a partition of more rows than this part of all is said not to fit into the memory. */
#define PARTITION_PART 16

static uint64_t run_rows; /* 0: as the memory allows */

/* Reads the environment, before the first sort. */
void
gpusort_run_rows_init(void)
{
	const char *rows = getenv("GPUSORT_RUN_ROWS");

	run_rows = rows != NULL ? strtoul(rows, NULL, 10) : 0;
}

/* Returns true if runs are to be of few rows. */
bool
gpusort_run_rows_are_few(void)
{
	return run_rows > 0;
}

/* The most rows of a run of a sort that has so many in the runs before it. */
uint64_t
gpusort_run_rows_most(uint64_t before)
{
	if (run_rows == 0)
		return UINT64_MAX;
	return before / PART_OF_ROWS > run_rows ? before / PART_OF_ROWS : run_rows;
}

/* The most rows of a partition, at least 1, of a sort that has so many in all its runs. */
uint64_t
gpusort_run_rows_partition(uint64_t rows)
{
	if (run_rows == 0)
		return UINT64_MAX;
	return rows / PARTITION_PART > run_rows / 2 ? rows / PARTITION_PART : (run_rows + 1) / 2;
}
