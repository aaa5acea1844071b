/*-------------------------------------------------------------------------
 *
 * build.h
 *	  Which sources this service was built of.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SERVICE_BUILD_H
#define GPUSORT_SERVICE_BUILD_H

#include <stdint.h>

/* The same in the module and the engines that are built with it, and in no others. */
extern const uint64_t gpusort_service_build;

#endif /* GPUSORT_SERVICE_BUILD_H */
