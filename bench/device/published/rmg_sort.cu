/*-------------------------------------------------------------------------
 *
 * rmg_sort.cu
 *	  RMG sort: most significant digits first over several GPUs, with one exchange
 *	  of keys (Ilic, Tolovski, Rabl: "RMG Sort: Radix-Partitioning-Based Multi-GPU
 *	  Sorting", BTW 2023, section 3).
 *
 *	upload		a chunk of equal size to each device
 *	partition	(3.1) Buckets are what agrees in the digits looked at so far; in the
 *				beginning all keys are one.  Buckets in their order, laid over chunks of
 *				equal size, tell which device gets what.  A bucket over which the border
 *				of two devices falls would be torn apart: every device splits its keys of
 *				it by the next eight bits, and so on until no border falls into a bucket,
 *				or into one only of whose keys all bits have been looked at.
 *	exchange	(3.2) Every device sends each device its buckets; once, whatever the
 *				number of devices.
 *	sort		(3.3) Each bucket by the bits that have not been looked at; it is
 *				downloaded while the next is sorted.
 *
 * A border that falls so near to an end of a bucket that no more than 0.5 % of a
 * chunk is beyond moves to that end; that is the room that a device's buffers have at
 * either end of the chunk.  So uniform keys need one pass.
 *
 * Neighbours that have been split equally often and together stay below 1 % of a
 * chunk are sorted as one, also by the bits in which their digits differ.  When a
 * device has more than 128 buckets even so, it sorts all it has by all bits.
 *
 * The host decides where buckets go, from histograms that all devices send it (rmg_plan.cu).
 * What is equal in its digit on a device is not scattered (5.3), and a device whose
 * keys are all where they belong is left out of the exchange.
 *
 * Device memory per key of K bytes: 2 K and 1 %, and 512 / tile for the tiles'
 * histograms, besides CUB's temporary storage.
 *
 * Differences: splits of single buckets are copied back into the buffer that holds
 * the rest, so that the exchange has one source and one target; borders are decided
 * one by one instead of bucket by bucket, which is the same.  Each copy of the
 * exchange is given to its source's stream in the order of buckets, as in the
 * authors' program: all sources begin with the same target.
 *
 *-------------------------------------------------------------------------
 */
#include <cuda_runtime.h>

#include <stdlib.h>
#include <string.h>

#include "published/rmg_plan.h"

#define DIGITS GPUSORT_RMG_RADIX

/* ---- memory ---- */

static void
close_rmg(GpuSortMultiContext *context)
{
	if (context == NULL)
		return;
	(void) gpusort_reference_wait(&context->devices);
	for (int d = 0; d < context->devices.count; d++)
	{
		GpuSortRmgLane *lane = &context->lanes[d];

		(void) cudaSetDevice(context->devices.device[d].ordinal);
		if (lane->tiles != NULL)
			(void) cudaFree(lane->tiles);
		if (lane->histograms != NULL)
			(void) cudaFree(lane->histograms);
		if (lane->cursors != NULL)
			(void) cudaFree(lane->cursors);
		if (lane->counted != NULL)
			(void) cudaFreeHost(lane->counted);
		free(lane->segments);
	}
	gpusort_reference_close_devices(&context->devices);
	for (int i = 0; i < 2; i++)
	{
		free(context->buckets[i]);
		free(context->pieces[i]);
	}
	free(context->moves);
	free(context);
}

/* At most one bucket per border is split in a pass, so there are no more lists than that. */
static cudaError_t
open_lanes(GpuSortMultiContext *context)
{
	GpuSortReferenceDevices *devices = &context->devices;
	const size_t count = (size_t) devices->count;
	const size_t lists = count * DIGITS * sizeof(uint64_t);
	const uint64_t tiles = gpusort_rmg_tiles(devices->capacity, devices->key_bytes) + count;

	/* section 3.2; one more list for the first bucket and what is left of the division */
	context->bucket_limit = DIGITS * ((count - 1) * (uint64_t) (gpusort_rmg_pass_limit(context) - 1) + 2);
	context->moves = (GpuSortRmgMove *) malloc((context->bucket_limit + 1) * count * 2 * sizeof(GpuSortRmgMove));
	if (context->moves == NULL)
		return cudaErrorMemoryAllocation;
	for (int i = 0; i < 2; i++)
	{
		context->buckets[i] = (GpuSortRmgBucket *) malloc(context->bucket_limit * sizeof(GpuSortRmgBucket));
		context->pieces[i] = (GpuSortRmgPiece *) malloc(context->bucket_limit * count * sizeof(GpuSortRmgPiece));
		if (context->buckets[i] == NULL || context->pieces[i] == NULL)
			return cudaErrorMemoryAllocation;
	}
	for (int d = 0; d < devices->count; d++)
	{
		GpuSortRmgLane *lane = &context->lanes[d];

		GPUSORT_TRY(cudaSetDevice(devices->device[d].ordinal));
		GPUSORT_TRY(cudaMalloc((void **) &lane->tiles, tiles * DIGITS * sizeof(uint16_t)));
		GPUSORT_TRY(cudaMalloc((void **) &lane->histograms, lists));
		GPUSORT_TRY(cudaMalloc((void **) &lane->cursors, lists));
		GPUSORT_TRY(cudaMallocHost((void **) &lane->counted, lists));
		lane->segments = (GpuSortRmgSegment *) malloc((context->bucket_limit + 1) * sizeof(GpuSortRmgSegment));
		if (lane->segments == NULL)
			return cudaErrorMemoryAllocation;
	}
	return cudaSuccess;
}

static cudaError_t
open_rmg(const int *ordinals, int count, uint64_t rows, int key_bytes, GpuSortMultiContext **context)
{
	uint64_t chunk = count > 0 ? gpusort_reference_chunk(rows, count) : 0;

	*context = (GpuSortMultiContext *) calloc(1, sizeof(GpuSortMultiContext));
	if (*context == NULL)
		return cudaErrorMemoryAllocation;
	GPUSORT_TRY(gpusort_reference_open_devices(&(*context)->devices, ordinals, count, rows, key_bytes,
											   chunk + 2 * (chunk / GPUSORT_RMG_SLACK_PARTS)));
	return open_lanes(*context);
}

/* ---- partition ---- */

/* What device d has to split of a bucket; tiles is where its tiles' histograms are. */
static GpuSortRmgStretch
stretch_of(const GpuSortMultiContext *context, const GpuSortRmgBucket *bucket, int d, uint64_t tiles)
{
	const GpuSortReferenceDevice *device = &context->devices.device[d];
	const GpuSortRmgLane *lane = &context->lanes[d];
	const uint64_t b = (uint64_t) (bucket - context->buckets[0]);
	const GpuSortRmgPiece *piece = &context->pieces[0][b * (uint64_t) context->devices.count + (uint64_t) d];
	const size_t bytes = piece->offset * (size_t) context->devices.key_bytes;
	GpuSortRmgStretch stretch;

	stretch.keys = device->keys[0] + bytes;
	stretch.split = device->keys[1] + bytes;
	stretch.count = piece->count;
	stretch.tiles = lane->tiles + tiles * DIGITS;
	stretch.histogram = lane->histograms + bucket->spanning * DIGITS;
	stretch.cursors = lane->cursors + bucket->spanning * DIGITS;
	stretch.shift = 8 * context->devices.key_bytes - GPUSORT_RMG_BITS * (bucket->passes + 1);
	return stretch;
}

/* Counts the next digit of the spanning buckets, on all devices, and fetches the counts. */
static cudaError_t
count_digits(GpuSortMultiContext *context)
{
	GpuSortReferenceDevices *devices = &context->devices;
	const size_t bytes = (size_t) context->spanning_count * DIGITS * sizeof(uint64_t);

	for (int d = 0; d < devices->count; d++)
	{
		GpuSortRmgLane *lane = &context->lanes[d];
		cudaStream_t stream = devices->device[d].streams[0];
		uint64_t tiles = 0;

		GPUSORT_TRY(cudaSetDevice(devices->device[d].ordinal));
		GPUSORT_TRY(cudaMemsetAsync(lane->histograms, 0, bytes, stream));
		for (uint64_t b = 0; b < context->bucket_count; b++)
		{
			GpuSortRmgStretch stretch;

			if (context->buckets[0][b].spanning < 0)
				continue;
			stretch = stretch_of(context, &context->buckets[0][b], d, tiles);
			if (stretch.count == 0)
				continue;
			GPUSORT_TRY(gpusort_rmg_count(&stretch, devices->key_bytes, stream));
			tiles += gpusort_rmg_tiles(stretch.count, devices->key_bytes);
		}
		GPUSORT_TRY(cudaMemcpyAsync(lane->counted, lane->histograms, bytes, cudaMemcpyDeviceToHost, stream));
	}
	return gpusort_reference_wait(devices);
}

/* Splits device d's keys of the spanning buckets, but for those that are equal in the digit. */
static cudaError_t
scatter_digits(GpuSortMultiContext *context, int d)
{
	GpuSortReferenceDevices *devices = &context->devices;
	GpuSortReferenceDevice *device = &devices->device[d];
	const uint64_t all = gpusort_reference_min(
		context->chunk, context->rows - gpusort_reference_min(context->chunk * (uint64_t) d, context->rows));
	uint64_t tiles = 0;

	GPUSORT_TRY(cudaSetDevice(device->ordinal));
	for (uint64_t b = 0; b < context->bucket_count; b++)
	{
		const GpuSortRmgBucket *bucket = &context->buckets[0][b];
		GpuSortRmgStretch stretch;
		const uint64_t *counted;
		bool one = false;

		if (bucket->spanning < 0)
			continue;
		stretch = stretch_of(context, bucket, d, tiles);
		tiles += gpusort_rmg_tiles(stretch.count, devices->key_bytes);
		counted = context->lanes[d].counted + bucket->spanning * DIGITS;
		for (int digit = 0; digit < DIGITS; digit++)
			one |= counted[digit] == stretch.count;
		if (one) /* or none */
			continue;
		GPUSORT_TRY(gpusort_rmg_scatter(&stretch, devices->key_bytes, device->streams[0]));
		if (stretch.count == all)
			gpusort_reference_swap_buffers(device);
		else
			GPUSORT_TRY(cudaMemcpyAsync((void *) stretch.keys, stretch.split,
										stretch.count * (size_t) devices->key_bytes, cudaMemcpyDeviceToDevice,
										device->streams[0]));
	}
	return cudaSuccess;
}

static cudaError_t
partition(GpuSortMultiContext *context, int *passes)
{
	gpusort_rmg_begin_buckets(context);
	for (*passes = 0;; (*passes)++)
	{
		gpusort_rmg_draw_borders(context);
		if (context->spanning_count == 0)
			break;
		GPUSORT_TRY(count_digits(context));
		for (int d = 0; d < context->devices.count; d++)
			GPUSORT_TRY(scatter_digits(context, d));
		gpusort_rmg_split_buckets(context);
	}
	return gpusort_reference_wait(&context->devices);
}

/* ---- exchange ---- */

static cudaError_t
exchange(GpuSortMultiContext *context, uint64_t *sent)
{
	GpuSortReferenceDevices *devices = &context->devices;
	const size_t key_bytes = (size_t) devices->key_bytes;
	bool stays[GPUSORT_MULTI_REFERENCE_DEVICES];

	gpusort_rmg_plan_moves(context);
	for (int d = 0; d < devices->count; d++)
		stays[d] = true;
	for (uint64_t m = 0; m < context->move_count; m++)
	{
		const GpuSortRmgMove *move = &context->moves[m];

		if (move->from != move->to || move->from_offset != move->to_offset)
			stays[move->to] = false;
	}
	for (uint64_t m = 0; m < context->move_count; m++)
	{
		const GpuSortRmgMove *move = &context->moves[m];
		GpuSortReferenceDevice *from = &devices->device[move->from];
		GpuSortReferenceDevice *to = &devices->device[move->to];

		if (stays[move->to])
			continue;
		if (move->from != move->to)
			*sent += move->count;
		GPUSORT_TRY(cudaSetDevice(from->ordinal));
		GPUSORT_TRY(cudaMemcpyPeerAsync(to->keys[1] + move->to_offset * key_bytes, to->ordinal,
										from->keys[0] + move->from_offset * key_bytes, from->ordinal,
										move->count * key_bytes, from->streams[0]));
	}
	GPUSORT_TRY(gpusort_reference_wait(devices));
	for (int d = 0; d < devices->count; d++)
	{
		if (!stays[d])
			gpusort_reference_swap_buffers(&devices->device[d]);
	}
	return cudaSuccess;
}

/* ---- sort ---- */

/* Two streams take turns: while one downloads a segment, the other sorts the next. */
static cudaError_t
sort_and_download(GpuSortMultiContext *context, char *host_keys)
{
	GpuSortReferenceDevices *devices = &context->devices;
	const size_t key_bytes = (size_t) devices->key_bytes;
	uint64_t most = 0;

	for (int d = 0; d < devices->count; d++)
	{
		gpusort_rmg_plan_segments(context, d);
		if (context->lanes[d].segment_count > most)
			most = context->lanes[d].segment_count;
	}
	for (uint64_t s = 0; s < most; s++)
	{
		for (int d = 0; d < devices->count; d++)
		{
			GpuSortReferenceDevice *device = &devices->device[d];
			const GpuSortRmgSegment *segment = &context->lanes[d].segments[s];
			const int stream = (int) (s % GPUSORT_REFERENCE_STREAMS);
			int result;

			if (s >= context->lanes[d].segment_count)
				continue;
			GPUSORT_TRY(cudaSetDevice(device->ordinal));
			GPUSORT_TRY(gpusort_reference_sort_range(devices, device, stream, segment->first, segment->count,
													 segment->bits, &result));
			GPUSORT_TRY(cudaMemcpyAsync(host_keys + (context->borders[d] + segment->first) * key_bytes,
										device->keys[result] + segment->first * key_bytes,
										segment->count * key_bytes, cudaMemcpyDeviceToHost, device->streams[stream]));
		}
	}
	return gpusort_reference_wait(devices);
}

static cudaError_t
sort_rmg(GpuSortMultiContext *context, void *host_keys, uint64_t rows, GpuSortMultiTimes *times)
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
	context->slack = context->chunk / GPUSORT_RMG_SLACK_PARTS;

	GPUSORT_TRY(gpusort_reference_upload(&context->devices, host_keys, rows));
	times->upload = gpusort_reference_lap(&last);
	GPUSORT_TRY(partition(context, &times->passes));
	times->partition = gpusort_reference_lap(&last);
	GPUSORT_TRY(exchange(context, &times->sent));
	times->exchange = gpusort_reference_lap(&last);
	GPUSORT_TRY(sort_and_download(context, (char *) host_keys));
	times->sort = gpusort_reference_lap(&last);
	times->total = last - begun;
	for (int d = 0; d < context->devices.count; d++)
	{
		if (context->borders[d + 1] - context->borders[d] > times->fullest)
			times->fullest = context->borders[d + 1] - context->borders[d];
	}
	return cudaSuccess;
}

const GpuSortMultiReference gpusort_rmg_sort = {
	"rmg_sort", "Ilic, Tolovski, Rabl 2023", false, open_rmg, sort_rmg, close_rmg};
