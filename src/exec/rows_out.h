/*-------------------------------------------------------------------------
 *
 * rows_out.h
 *	  Rows of a GpuSortExchange leave the server as bytes that all processes form.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ROWS_OUT_H
#define GPUSORT_ROWS_OUT_H

#include "compat.h"

extern void gpusort_rows_out_init(void);

#endif /* GPUSORT_ROWS_OUT_H */
