/*-------------------------------------------------------------------------
 *
 * statement.h
 *	  What is known of the statement that is being planned.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_STATEMENT_H
#define GPUSORT_STATEMENT_H

#include "compat.h"

#include "nodes/parsenodes.h"

typedef struct GpuSortStatement
{
	bool rescannable; /* its plans give the same rows when they are read again */
	bool scrollable;  /* it is a cursor's that can scroll */

	bool starts_workers; /* its GpuSorts may have workers of their own, where it runs without (own_workers.h) */
	bool one_reader;     /* it is planned for that: one process gives its rows out */
	char select_hazard;  /* max_parallel_hazard of the SELECT that an INSERT is planned with for that; else 0 */
} GpuSortStatement;

extern GpuSortStatement gpusort_statement_of(const Query *query, int cursor_options);
extern Query *gpusort_inserted_select(const Query *query);
extern GpuSortStatement gpusort_statement_begin(const GpuSortStatement *statement);
extern void gpusort_statement_end(const GpuSortStatement *before);
extern const char *gpusort_statement_why_alone(void);
extern bool gpusort_statement_shares_output(void);
extern char gpusort_statement_select_hazard(void);

#endif /* GPUSORT_STATEMENT_H */
