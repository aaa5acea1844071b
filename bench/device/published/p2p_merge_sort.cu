/*-------------------------------------------------------------------------
 *
 * p2p_merge_sort.cu
 *	  P2P merge sort over 2^k GPUs: chunks are sorted on their devices, which then
 *	  exchange and merge in pairs (Tanasic, Vilanova, Jorda, Cabezas, Gelado,
 *	  Navarro, Hwu: "Comparison Based Sorting for Systems with Multiple GPUs", GPGPU-6
 *	  2013; as Ilic, Tolovski, Rabl 2023, section 5.2, and Maltenberger, Ilic,
 *	  Tolovski, Rabl: "Evaluating Multi-GPU Sorting with Modern Interconnects",
 *	  SIGMOD 2022, describe it).
 *
 *	exchange	A group of devices whose left half is in order, and whose right half is,
 *				looks for the pivot: the fewest keys p such that, when the left half's
 *				last p keys change places with the right half's first p, none on the left
 *				is greater than one on the right.  They are swapped, and every device
 *				that now has two runs merges them.
 *	merge		of a group: its halves; the exchange between them; and its halves again,
 *				whose devices are sorted, but not among each other.
 *
 * Exchanges in a row are so g - 1 for g devices, which is what the papers mean by
 * transfers that scale linearly with g.  Groups of one size work at the same time.
 *
 * A pivot is found by binary search; the host reads the keys, as in the authors'
 * program, for all groups at once.
 *
 * Differences: any number of rows (the last chunks are smaller or empty); keys that
 * stay are copied beside those that come, because the merge wants both in one
 * buffer.
 *
 *-------------------------------------------------------------------------
 */
#include <cuda_runtime.h>

#include <stdlib.h>
#include <string.h>

#include "published/merge_runs.h"
#include "published/multi_devices.h"

#define GROUPS_MAX (GPUSORT_MULTI_REFERENCE_DEVICES / 2)

/* Positions are among all keys; device d has those from d * chunk on. */
typedef struct Group
{
	uint64_t begin;  /* of the left half */
	uint64_t middle; /* of the right half */
	uint64_t end;
	uint64_t low; /* bounds of p while it is looked for */
	uint64_t high;
} Group;

struct GpuSortMultiContext
{
	GpuSortReferenceDevices devices;
	void *cuts[GPUSORT_MULTI_REFERENCE_DEVICES]; /* of the merges */
	uint64_t *probes;                            /* two keys for each group, on the host */

	/* of the sort that runs */
	uint64_t rows;
	uint64_t chunk;
	uint64_t sent;
};

static void
close_p2p(GpuSortMultiContext *context)
{
	if (context == NULL)
		return;
	(void) gpusort_reference_wait(&context->devices);
	for (int d = 0; d < context->devices.count; d++)
	{
		(void) cudaSetDevice(context->devices.device[d].ordinal);
		if (context->cuts[d] != NULL)
			(void) cudaFree(context->cuts[d]);
	}
	gpusort_reference_close_devices(&context->devices);
	if (context->probes != NULL)
		(void) cudaFreeHost(context->probes);
	free(context);
}

static cudaError_t
open_p2p(const int *ordinals, int count, uint64_t rows, int key_bytes, GpuSortMultiContext **context)
{
	uint64_t chunk;

	*context = NULL;
	if (count < 1 || (count & (count - 1)) != 0)
		return cudaErrorInvalidValue;
	*context = (GpuSortMultiContext *) calloc(1, sizeof(GpuSortMultiContext));
	if (*context == NULL)
		return cudaErrorMemoryAllocation;
	chunk = gpusort_reference_chunk(rows, count);
	GPUSORT_TRY(gpusort_reference_open_devices(&(*context)->devices, ordinals, count, rows, key_bytes, chunk));
	for (int d = 0; d < count; d++)
	{
		GPUSORT_TRY(cudaSetDevice(ordinals[d]));
		GPUSORT_TRY(cudaMalloc(&(*context)->cuts[d], gpusort_merge_temp_bytes(chunk, key_bytes)));
	}
	return cudaMallocHost((void **) &(*context)->probes, 2 * GROUPS_MAX * sizeof(uint64_t));
}

/* ---- pivots ---- */

/* Begins to read the key at a position. */
static cudaError_t
probe_key(GpuSortMultiContext *context, uint64_t position, uint64_t *key)
{
	const size_t key_bytes = (size_t) context->devices.key_bytes;
	GpuSortReferenceDevice *device = &context->devices.device[position / context->chunk];

	*key = 0;
	GPUSORT_TRY(cudaSetDevice(device->ordinal));
	return cudaMemcpyAsync(key, device->keys[0] + position % context->chunk * key_bytes, key_bytes,
						   cudaMemcpyDeviceToHost, device->streams[0]);
}

/*
 * Sets each group's low to its p.  The left half's key p from its end falls as p grows, the
 * right half's key p rises: the first p with left <= right is where to stop.
 */
static cudaError_t
find_pivots(GpuSortMultiContext *context, Group *groups, int group_count)
{
	for (;;)
	{
		bool searching = false;

		for (int g = 0; g < group_count; g++)
		{
			Group *group = &groups[g];
			uint64_t p = group->low + (group->high - group->low) / 2;

			if (group->low == group->high)
				continue;
			searching = true;
			GPUSORT_TRY(probe_key(context, group->middle - 1 - p, &context->probes[2 * g]));
			GPUSORT_TRY(probe_key(context, group->middle + p, &context->probes[2 * g + 1]));
		}
		if (!searching)
			return cudaSuccess;
		GPUSORT_TRY(gpusort_reference_wait(&context->devices));
		for (int g = 0; g < group_count; g++)
		{
			Group *group = &groups[g];
			uint64_t p = group->low + (group->high - group->low) / 2;

			if (group->low == group->high)
				continue;
			if (context->probes[2 * g] <= context->probes[2 * g + 1])
				group->high = p;
			else
				group->low = p + 1;
		}
	}
}

/* ---- exchange and merge ---- */

/* Keys at `from` of the devices' keys[0] to `to` of their keys[1]. */
static cudaError_t
copy_keys(GpuSortMultiContext *context, uint64_t to, uint64_t from, uint64_t count)
{
	const uint64_t chunk = context->chunk;
	const size_t key_bytes = (size_t) context->devices.key_bytes;

	while (count > 0)
	{
		GpuSortReferenceDevice *source = &context->devices.device[from / chunk];
		GpuSortReferenceDevice *target = &context->devices.device[to / chunk];
		uint64_t part = gpusort_reference_min(count, gpusort_reference_min(chunk - from % chunk, chunk - to % chunk));

		GPUSORT_TRY(cudaSetDevice(source->ordinal));
		GPUSORT_TRY(cudaMemcpyPeerAsync(target->keys[1] + to % chunk * key_bytes, target->ordinal,
										source->keys[0] + from % chunk * key_bytes, source->ordinal, part * key_bytes,
										source->streams[0]));
		if (source != target)
			context->sent += part;
		to += part;
		from += part;
		count -= part;
	}
	return cudaSuccess;
}

/* The left half's last p keys for the right half's first, and what stays on the two devices in between. */
static cudaError_t
swap_keys(GpuSortMultiContext *context, const Group *group)
{
	const uint64_t chunk = context->chunk;
	const uint64_t left = group->middle - group->low;
	const uint64_t right = group->middle + group->low;

	if (group->low == 0)
		return cudaSuccess;
	GPUSORT_TRY(copy_keys(context, left, group->middle, group->low));
	GPUSORT_TRY(copy_keys(context, group->middle, left, group->low));
	GPUSORT_TRY(copy_keys(context, left - left % chunk, left - left % chunk, left % chunk));
	if (right % chunk != 0)
		GPUSORT_TRY(copy_keys(context, right, right,
							  gpusort_reference_min(right - right % chunk + chunk, group->end) - right));
	return cudaSuccess;
}

/* Device d of a group after swap_keys(): its keys in order into keys[0]. */
static cudaError_t
merge_device(GpuSortMultiContext *context, const Group *group, int d)
{
	GpuSortReferenceDevice *device = &context->devices.device[d];
	const uint64_t begin = context->chunk * (uint64_t) d;
	const uint64_t end = gpusort_reference_min(begin + context->chunk, context->rows);
	const uint64_t cut = begin < group->middle ? group->middle - group->low : group->middle + group->low;

	if (begin >= end || (begin < group->middle ? cut >= end : cut <= begin))
		return cudaSuccess; /* all its keys stay */
	if (cut <= begin || cut >= end)
	{
		gpusort_reference_swap_buffers(device);
		return cudaSuccess; /* all are new, and one run */
	}
	GPUSORT_TRY(cudaSetDevice(device->ordinal));
	return gpusort_merge_runs(device->keys[1], cut - begin, end - begin, context->devices.key_bytes, device->keys[0],
							  context->cuts[d], device->streams[0]);
}

static cudaError_t
exchange_groups(GpuSortMultiContext *context, int width)
{
	const int count = context->devices.count;
	Group groups[GROUPS_MAX];
	int group_count = 0;

	for (int first = 0; first < count; first += width)
	{
		Group *group = &groups[group_count++];

		group->begin = gpusort_reference_min(context->chunk * (uint64_t) first, context->rows);
		group->middle = gpusort_reference_min(context->chunk * (uint64_t) (first + width / 2), context->rows);
		group->end = gpusort_reference_min(context->chunk * (uint64_t) (first + width), context->rows);
		group->low = 0;
		group->high = gpusort_reference_min(group->middle - group->begin, group->end - group->middle);
	}
	GPUSORT_TRY(find_pivots(context, groups, group_count));
	for (int g = 0; g < group_count; g++)
		GPUSORT_TRY(swap_keys(context, &groups[g]));
	GPUSORT_TRY(gpusort_reference_wait(&context->devices));
	for (int d = 0; d < count; d++)
	{
		if (groups[d / width].low > 0)
			GPUSORT_TRY(merge_device(context, &groups[d / width], d));
	}
	return gpusort_reference_wait(&context->devices);
}

/* Every device's keys are in order; afterwards those of every group of `width` devices are. */
static cudaError_t
merge_groups(GpuSortMultiContext *context, int width)
{
	if (width < 2)
		return cudaSuccess;
	GPUSORT_TRY(merge_groups(context, width / 2));
	GPUSORT_TRY(exchange_groups(context, width));
	return merge_groups(context, width / 2);
}

static cudaError_t
sort_p2p(GpuSortMultiContext *context, void *host_keys, uint64_t rows, GpuSortMultiTimes *times)
{
	double begun = gpusort_reference_clock();
	double last = begun;

	memset(times, 0, sizeof(*times));
	if (rows > context->devices.rows)
		return cudaErrorInvalidValue;
	if (rows == 0)
		return cudaSuccess;
	context->rows = rows;
	context->chunk = gpusort_reference_chunk(rows, context->devices.count);
	context->sent = 0;

	GPUSORT_TRY(gpusort_reference_upload(&context->devices, host_keys, rows));
	times->upload = gpusort_reference_lap(&last);
	GPUSORT_TRY(gpusort_reference_sort_chunks(&context->devices, rows));
	times->sort = gpusort_reference_lap(&last);
	GPUSORT_TRY(merge_groups(context, context->devices.count));
	times->exchange = gpusort_reference_lap(&last);
	GPUSORT_TRY(gpusort_reference_download(&context->devices, host_keys, rows));
	times->download = gpusort_reference_lap(&last);
	times->total = last - begun;
	times->sent = context->sent;
	times->fullest = context->chunk;
	return cudaSuccess;
}

const GpuSortMultiReference gpusort_p2p_merge_sort = {
	"p2p_merge_sort", "Tanasic et al. 2013", true, open_p2p, sort_p2p, close_p2p};
