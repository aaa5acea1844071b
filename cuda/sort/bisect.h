/*-------------------------------------------------------------------------
 *
 * bisect.h
 *	  The search for the place of a value among values that do not fall, on host and
 *	  device.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_BISECT_H
#define GPUSORT_BISECT_H

#include <stdint.h>

#include "sort/portable.h"

/*
 * The largest i below count with value_at(i) <= value; 0 if there is none.  value_at(i) does
 * not fall with i; count is at least 1.
 */
template <typename Value, typename ValueAt>
GPUSORT_HD static inline uint32_t
gpusort_last_not_above(uint32_t count, Value value, ValueAt value_at)
{
	uint32_t first = 0;
	uint32_t end = count;

	while (end - first > 1)
	{
		const uint32_t middle = first + (end - first) / 2;

		if (value_at(middle) <= value)
			first = middle;
		else
			end = middle;
	}
	return first;
}

#endif /* GPUSORT_BISECT_H */
