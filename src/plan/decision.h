/*-------------------------------------------------------------------------
 *
 * decision.h
 *	  Whether a sort can go to the service, and the log of why not.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DECISION_H
#define GPUSORT_DECISION_H

#include "compat.h"

extern void gpusort_refuse(const char *fmt, ...) pg_attribute_printf(1, 2);
extern bool gpusort_service_would_take(double rows, double row_bytes);

#endif /* GPUSORT_DECISION_H */
