/*-------------------------------------------------------------------------
 *
 * het_merge_sort.cu
 *	  Heterogeneous merge sort: GPUs sort chunks, the CPU merges them (Gowanlock,
 *	  Karsin: "Sorting Large Datasets with Heterogeneous CPU/GPU Architectures",
 *	  IPDPS workshops 2018; "HET merge sort" in Ilic, Tolovski, Rabl 2023, section
 *	  5.2).
 *
 * One chunk per device.  The merge is the GNU library's parallel multiway merge on
 * all of the CPU's threads; it needs as much memory again on the host.
 *
 * The paper also sorts what is larger than all devices, in more chunks; that is
 * left out, as in the comparison that this stands for.
 *
 *-------------------------------------------------------------------------
 */
#include <cuda_runtime.h>

#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include <functional>
#include <parallel/algorithm>
#include <utility>

#include "published/multi_devices.h"

struct GpuSortMultiContext
{
	GpuSortReferenceDevices devices;
	char *runs; /* the sorted chunks, pinned */
};

static void
close_het(GpuSortMultiContext *context)
{
	if (context == NULL)
		return;
	gpusort_reference_close_devices(&context->devices);
	if (context->runs != NULL)
		(void) cudaFreeHost(context->runs);
	free(context);
}

static cudaError_t
open_het(const int *ordinals, int count, uint64_t rows, int key_bytes, GpuSortMultiContext **context)
{
	uint64_t chunk = count > 0 ? gpusort_reference_chunk(rows, count) : 0;

	*context = (GpuSortMultiContext *) calloc(1, sizeof(GpuSortMultiContext));
	if (*context == NULL)
		return cudaErrorMemoryAllocation;
	GPUSORT_TRY(gpusort_reference_open_devices(&(*context)->devices, ordinals, count, rows, key_bytes, chunk));
	return cudaMallocHost((void **) &(*context)->runs, (rows + (rows == 0)) * (size_t) key_bytes);
}

template <typename Key>
static void
merge_on_host(Key *runs, uint64_t rows, int run_count, Key *sorted)
{
	const uint64_t chunk = gpusort_reference_chunk(rows, run_count);
	std::pair<Key *, Key *> ranges[GPUSORT_MULTI_REFERENCE_DEVICES];
	int filled = 0;

	for (uint64_t first = 0; first < rows; first += chunk)
		ranges[filled++] = {runs + first, runs + first + gpusort_reference_min(chunk, rows - first)};
	__gnu_parallel::multiway_merge(ranges, ranges + filled, sorted, (int64_t) rows, std::less<Key>(),
								   __gnu_parallel::parallel_tag((unsigned int) omp_get_max_threads()));
}

static cudaError_t
sort_het(GpuSortMultiContext *context, void *host_keys, uint64_t rows, GpuSortMultiTimes *times)
{
	const int count = context->devices.count;
	double begun = gpusort_reference_clock();
	double last = begun;

	memset(times, 0, sizeof(*times));
	if (rows > context->devices.rows)
		return cudaErrorInvalidValue;
	if (rows == 0)
		return cudaSuccess;

	GPUSORT_TRY(gpusort_reference_upload(&context->devices, host_keys, rows));
	times->upload = gpusort_reference_lap(&last);
	GPUSORT_TRY(gpusort_reference_sort_chunks(&context->devices, rows));
	times->sort = gpusort_reference_lap(&last);
	GPUSORT_TRY(gpusort_reference_download(&context->devices, count == 1 ? host_keys : context->runs, rows));
	times->download = gpusort_reference_lap(&last);
	if (count > 1 && context->devices.key_bytes == 4)
		merge_on_host((uint32_t *) context->runs, rows, count, (uint32_t *) host_keys);
	else if (count > 1)
		merge_on_host((uint64_t *) context->runs, rows, count, (uint64_t *) host_keys);
	times->merge = gpusort_reference_lap(&last);
	times->total = last - begun;
	times->fullest = gpusort_reference_chunk(rows, count);
	return cudaSuccess;
}

const GpuSortMultiReference gpusort_het_merge_sort = {
	"het_merge_sort", "Gowanlock, Karsin 2018", false, open_het, sort_het, close_het};
