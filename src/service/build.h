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

/* Equal only in a module, service and engines that were built together. */
extern const uint64_t gpusort_service_build;

#endif /* GPUSORT_SERVICE_BUILD_H */
