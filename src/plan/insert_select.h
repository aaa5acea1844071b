/*-------------------------------------------------------------------------
 *
 * insert_select.h
 *	  Lets PostgreSQL plan the SELECT of an INSERT for several processes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INSERT_SELECT_H
#define GPUSORT_INSERT_SELECT_H

#include "compat.h"

#include "nodes/pathnodes.h"
#include "plan/statement.h"

extern bool gpusort_insert_fills_pages(const Query *query, const GpuSortStatement *statement);
extern void gpusort_insert_select_end(const PlannerInfo *root);
extern void gpusort_insert_select_init(void);

#endif /* GPUSORT_INSERT_SELECT_H */
