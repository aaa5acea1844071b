/*-------------------------------------------------------------------------
 *
 * output_functions.h
 *	  Whether parallel workers may give out values of a type, or take them in.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_OUTPUT_FUNCTIONS_H
#define GPUSORT_OUTPUT_FUNCTIONS_H

#include "compat.h"

#include "access/tupdesc.h"

extern bool gpusort_may_input(Oid type);
extern bool gpusort_may_receive(Oid type);
extern const char *gpusort_why_no_output(TupleDesc desc, const int16 *formats);

#endif /* GPUSORT_OUTPUT_FUNCTIONS_H */
