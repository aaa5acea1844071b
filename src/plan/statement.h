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

/* What becomes of the rows of a statement that is planned with workers of its GpuSorts' own (own_workers.h). */
typedef enum GpuSortOwnWorkers
{
	GPUSORT_NO_OWN_WORKERS,      /* it has none */
	GPUSORT_OWN_WORKERS_TAKE_IN, /* workers take rows in, and the leader makes the statement's rows as they are read */
	GPUSORT_OWN_WORKERS_COMPUTE, /* all processes make them, and the leader stores them until they are read */
	GPUSORT_OWN_WORKERS_FILL,    /* all processes put them into pages of a table, which an INSERT is into */
} GpuSortOwnWorkers;

typedef struct GpuSortStatement
{
	bool rescannable;  /* its plans return the same rows if they are read again */
	bool scrollable;   /* it belongs to a scrollable cursor */
	bool reads_tables; /* a function that it calls may read tables that it does not name */

	bool starts_workers; /* its GpuSorts may start workers, though the statement runs without (own_workers.h) */
	bool leaves_shards;  /* postgres_fdw alone reads its foreign tables, and Citus its own */
	bool has_workers;    /* PostgreSQL may plan it for several processes, and it is no part of another one */
	char select_hazard;  /* max_parallel_hazard of what workers may do of an INSERT that is planned so; otherwise 0 */
	GpuSortOwnWorkers own_workers;
	double *time; /* where it is noted how long its path is expected to take, in ns; NULL: nobody asks */
} GpuSortStatement;

extern GpuSortStatement gpusort_statement_of(const Query *query, int cursor_options, bool part);
extern Query *gpusort_inserted_select(const Query *query);
extern GpuSortStatement gpusort_statement_begin(const GpuSortStatement *statement);
extern void gpusort_statement_end(const GpuSortStatement *before);
extern const char *gpusort_statement_why_alone(void);
extern bool gpusort_statement_reads_tables(void);
extern bool gpusort_statement_shares_output(void);
extern bool gpusort_statement_stores_rows(void);
extern bool gpusort_statement_fills_pages(void);
extern bool gpusort_statement_time_is_wanted(void);
extern void gpusort_statement_note_time(double time);
extern char gpusort_statement_select_hazard(void);
extern bool gpusort_statement_leaves_shards(void);
extern bool gpusort_statement_has_workers(void);

#endif /* GPUSORT_STATEMENT_H */
