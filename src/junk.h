/*-------------------------------------------------------------------------
 *
 * junk.h
 *	  Takes sort keys that nobody asked for out of the rows given out.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_JUNK_H
#define GPUSORT_JUNK_H

#include "compat.h"

extern void gpusort_junk_init(void);

#endif							/* GPUSORT_JUNK_H */
