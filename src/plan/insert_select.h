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

extern void gpusort_insert_select_end(const PlannerInfo *root);
extern void gpusort_insert_select_init(void);

#endif /* GPUSORT_INSERT_SELECT_H */
