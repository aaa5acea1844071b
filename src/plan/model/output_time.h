/*-------------------------------------------------------------------------
 *
 * output_time.h
 *	  How long it takes to form rows for a client, or for a file that COPY writes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_OUTPUT_TIME_H
#define GPUSORT_OUTPUT_TIME_H

#include "compat.h"

#include "nodes/pathnodes.h"

extern double gpusort_output_time(const PathTarget *target, double rows);

#endif /* GPUSORT_OUTPUT_TIME_H */
