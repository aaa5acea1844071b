/*-------------------------------------------------------------------------
 *
 * references.h
 *	  The reference sorts of one GPU and of the CPU by name, for the table of them and
 *	  for their own checks.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_REFERENCES_H
#define GPUSORT_REFERENCES_H

#include "published/reference.h"

extern const GpuSortReference gpusort_satish_radix;
extern const GpuSortReference gpusort_satish_merge;
extern const GpuSortReference gpusort_implicit_radix;
extern const GpuSortReference gpusort_implicit_radix_limited;
extern const GpuSortReference gpusort_quicksort;
extern const GpuSortReference gpusort_bitonic_a;
extern const GpuSortReference gpusort_bitonic_b2;
extern const GpuSortReference gpusort_bitonic_b4;
extern const GpuSortReference gpusort_bitonic_b8;
extern const GpuSortReference gpusort_bitonic_b16;
extern const GpuSortReference gpusort_bitonic_local;
extern const GpuSortReference gpusort_cpu_radix;
extern const GpuSortReference gpusort_cpu_merge;

/* Returns true if this is a sort that the reference can do, with all the memory it needs. */
extern cudaError_t gpusort_reference_check(const GpuSortReference *reference, const GpuSortReferenceArgs *args);

#endif /* GPUSORT_REFERENCES_H */
