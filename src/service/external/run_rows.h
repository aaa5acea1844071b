/*-------------------------------------------------------------------------
 *
 * run_rows.h
 *	  Runs of few rows, for tests, so that even a small sort has several.
 *
 * The environment variable GPUSORT_RUN_ROWS says how many rows the first run of a
 * sort has at most; a later one has that many, or an eighth of the rows before it.
 * Where it is not set, or 0, runs are as large as the memory.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_EXTERNAL_RUN_ROWS_H
#define GPUSORT_EXTERNAL_RUN_ROWS_H

#include <stdbool.h>
#include <stdint.h>

extern void gpusort_run_rows_init(void);
extern bool gpusort_run_rows_are_few(void);
extern uint64_t gpusort_run_rows_most(uint64_t before);
extern uint64_t gpusort_run_rows_partition(uint64_t rows);

#endif /* GPUSORT_EXTERNAL_RUN_ROWS_H */
