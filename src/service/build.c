/*-------------------------------------------------------------------------
 *
 * build.c
 *	  Which sources this service was built of.
 *
 * A unit of its own, since it is compiled again with every change of any.
 *
 *-------------------------------------------------------------------------
 */
#include "service/build.h"

#include "build_id.h"

const uint64_t gpusort_service_build = GPUSORT_BUILD;
