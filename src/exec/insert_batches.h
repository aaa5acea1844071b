/*-------------------------------------------------------------------------
 *
 * insert_batches.h
 *	  An INSERT's sorted rows are put into a table many at once.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_INSERT_BATCHES_H
#define GPUSORT_INSERT_BATCHES_H

#include "compat.h"

#include "executor/execdesc.h"

extern void gpusort_insert_batches(QueryDesc *query);

#endif /* GPUSORT_INSERT_BATCHES_H */
