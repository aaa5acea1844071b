/*-------------------------------------------------------------------------
 *
 * copy_choice.h
 *	  Decides whether gpusort is to copy a table's rows in the order of an index, and says why not.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_COPY_CHOICE_H
#define GPUSORT_COPY_CHOICE_H

#include "compat.h"

#include "index/build_choice.h"
#include "utils/relcache.h"

extern bool gpusort_cluster_order(Relation table, Relation index, GpuSortIndexOrder *order, const char **why_not);
extern double gpusort_cluster_estimate(Relation table, int *width);
extern int gpusort_cluster_workers(Relation table, Relation index);
extern bool gpusort_cluster_is_chosen(Relation table, Relation index, bool native_sorts);

#endif /* GPUSORT_COPY_CHOICE_H */
