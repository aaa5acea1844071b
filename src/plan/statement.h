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
	bool rescannable;  /* its plans return the same rows if they are read again */
	bool scrollable;   /* it belongs to a scrollable cursor */
	bool reads_tables; /* a function that it calls may read tables that it does not name */

	bool starts_workers; /* its GpuSorts may start workers, though the statement runs without (own_workers.h) */
	bool one_reader;     /* it is planned with such workers, so one process returns its rows */
	bool fills_pages;    /* it is planned with such workers, and all processes put its rows into pages of a table */
	bool leaves_shards;  /* postgres_fdw alone reads its foreign tables */
	char select_hazard;  /* max_parallel_hazard of what workers may do of an INSERT that is planned so; otherwise 0 */
} GpuSortStatement;

extern GpuSortStatement gpusort_statement_of(const Query *query, int cursor_options);
extern Query *gpusort_inserted_select(const Query *query);
extern GpuSortStatement gpusort_statement_begin(const GpuSortStatement *statement);
extern void gpusort_statement_end(const GpuSortStatement *before);
extern const char *gpusort_statement_why_alone(void);
extern bool gpusort_statement_reads_tables(void);
extern bool gpusort_statement_shares_output(void);
extern bool gpusort_statement_fills_pages(void);
extern char gpusort_statement_select_hazard(void);
extern bool gpusort_statement_leaves_shards(void);

#endif /* GPUSORT_STATEMENT_H */
