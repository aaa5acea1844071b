/*-------------------------------------------------------------------------
 *
 * references.cu
 *	  The table of reference sorts of one GPU and of the CPU, and what their
 *	  arguments have in common.
 *
 *-------------------------------------------------------------------------
 */
#include "published/references.h"

/* Filled in at the program's start, as the entries lie in other units. */
const GpuSortReference gpusort_references[] = {
	gpusort_satish_radix,
	gpusort_satish_merge,
	gpusort_implicit_radix,
	gpusort_implicit_radix_limited,
	gpusort_quicksort,
	gpusort_bitonic_a,
	gpusort_bitonic_b2,
	gpusort_bitonic_b4,
	gpusort_bitonic_b8,
	gpusort_bitonic_b16,
	gpusort_bitonic_local,
	gpusort_cpu_radix,
	gpusort_cpu_merge,
};

const int gpusort_reference_count = sizeof(gpusort_references) / sizeof(gpusort_references[0]);

cudaError_t
gpusort_reference_check(const GpuSortReference *reference, const GpuSortReferenceArgs *args)
{
	const bool with_ids = args->ids_out != NULL;
	size_t bytes;
	cudaError_t status;

	if (args->rows == 0)
		return cudaSuccess;
	if (args->keys_in == NULL || args->keys_out == NULL || args->keys_in == args->keys_out)
		return cudaErrorInvalidValue;
	status = reference->temp_bytes(args->rows, args->key_bytes, with_ids, &bytes);
	if (status == cudaSuccess && (bytes > args->temp_bytes || (bytes > 0 && args->temp == NULL)))
		status = cudaErrorInvalidValue;
	return status;
}
