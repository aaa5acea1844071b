/*-------------------------------------------------------------------------
 *
 * environment.h
 *	  What gpusort_check() looks at and SQL cannot see.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ENVIRONMENT_H
#define GPUSORT_ENVIRONMENT_H

#include "compat.h"

extern void gpusort_environment_init(void);

#endif /* GPUSORT_ENVIRONMENT_H */
