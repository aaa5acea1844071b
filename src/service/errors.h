/*-------------------------------------------------------------------------
 *
 * errors.h
 *	  Errors that any step of a sort may meet.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ERRORS_H
#define GPUSORT_ERRORS_H

#include "service/engine.h"

extern int gpusort_error_cancelled(GpuSortError *error);
extern int gpusort_error_memory(GpuSortError *error);
extern int gpusort_error_rows(GpuSortError *error);

#endif /* GPUSORT_ERRORS_H */
