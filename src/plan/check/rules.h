/*-------------------------------------------------------------------------
 *
 * rules.h
 *	  The rules of finished plans (plan/check_plan.c).
 *
 * Each raises an error about the node that breaks it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_RULES_H
#define GPUSORT_RULES_H

#include "compat.h"

#include "nodes/plannodes.h"

/* of a node */
extern void gpusort_check_vars(PlannedStmt *stmt, Plan *plan);
extern void gpusort_check_passed_rows(Plan *plan);
extern void gpusort_check_key_columns(Plan *plan);
extern void gpusort_check_calls(Plan *plan);
extern void gpusort_check_use(Plan *plan);

/* of all plans of a statement */
extern void gpusort_check_params(PlannedStmt *stmt);
extern void gpusort_check_workers(PlannedStmt *stmt);

pg_noreturn extern void gpusort_refuse_plan(const Plan *plan, const char *format, ...) pg_attribute_printf(2, 3);

#endif /* GPUSORT_RULES_H */
