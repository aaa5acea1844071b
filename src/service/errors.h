/*-------------------------------------------------------------------------
 *
 * errors.h
 *	  Errors that any step of a sort in the host engine may meet.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_HOST_ERRORS_H
#define GPUSORT_HOST_ERRORS_H

#include "service/engine.h"

extern int gpusort_host_error_cancelled(GpuSortError *error);
extern int gpusort_host_error_memory(GpuSortError *error);
extern int gpusort_host_error_rows(GpuSortError *error);

#endif /* GPUSORT_HOST_ERRORS_H */
