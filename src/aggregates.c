/*-------------------------------------------------------------------------
 *
 * aggregates.c
 *	  What is known of PostgreSQL's aggregates.
 *
 * Sums of floats depend on the order of their addition; so does what min() and max() give of values that are equal and
 * look different, as 1.0 and 1.00 do.  What is not known here is not taken to be of any order.
 *
 *-------------------------------------------------------------------------
 */
#include "aggregates.h"

#include "utils/fmgroids.h"

/*
 * Returns true if an aggregate gives the same, bit by bit, in whatever order its rows come, and put together from what
 * parts of them give.
 */
bool
gpusort_aggregate_is_of_any_order(Oid aggregate)
{
	switch (aggregate)
	{
		case F_COUNT_:
		case F_COUNT_ANY:
		case F_SUM_INT2:
		case F_SUM_INT4:
		case F_SUM_INT8:
		case F_SUM_NUMERIC:
		case F_AVG_INT2:
		case F_AVG_INT4:
		case F_AVG_INT8:
		case F_AVG_NUMERIC:
		case F_MIN_INT2:
		case F_MIN_INT4:
		case F_MIN_INT8:
		case F_MIN_DATE:
		case F_MIN_TIMESTAMP:
		case F_MIN_TIMESTAMPTZ:
		case F_MAX_INT2:
		case F_MAX_INT4:
		case F_MAX_INT8:
		case F_MAX_DATE:
		case F_MAX_TIMESTAMP:
		case F_MAX_TIMESTAMPTZ:
		case F_BOOL_AND:
		case F_BOOL_OR:
		case F_EVERY:
			return true;
		default:
			return false;
	}
}
