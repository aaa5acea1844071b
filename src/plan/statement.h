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
} GpuSortStatement;

extern GpuSortStatement gpusort_statement_of(const Query *query, int cursor_options);
extern GpuSortStatement gpusort_statement_begin(const GpuSortStatement *statement);
extern void gpusort_statement_end(const GpuSortStatement *before);
extern const char *gpusort_statement_why_alone(void);

#endif /* GPUSORT_STATEMENT_H */
