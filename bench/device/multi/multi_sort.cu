/*-------------------------------------------------------------------------
 *
 * multi_sort.cu
 *	  Sorts over several devices, host to host: contexts, splitters, and the plan
 *	  of what lies where.  multi_sort.h tells the whole, multi_device.cu does what
 *	  each device does.
 *
 * Room.  A device's store holds its chunks, a row more or less per chunk.  A bin
 * has room for twice the mean; the sample makes a larger one unlikely (a bin's share
 * varies by 1 / sqrt(sample_per_bin), so with 64 it is 8 deviations off).  If there
 * is one, the sort begins again with other samples, twice as many: a sample of all
 * rows cuts them evenly, so that comes to an end.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <algorithm>

#include "multi/multi_state.h"
#include "sort/radix/radix_sort.h"
#include "sort/region.h"

#define GPUSORT_MULTI_CHUNK_BYTES (32u << 20) /* of one upload: enough for the bus's full speed */
#define GPUSORT_MULTI_BIN_ROWS    (1u << 20)  /* of small sorts: fewer are not worth a bin */
#define GPUSORT_MULTI_SAMPLE      64          /* rows per bin */
#define GPUSORT_MULTI_MAX_ROWS    ((uint64_t) 1 << 40)

/* Chunks that are at least so long are a multiple of GPUSORT_MULTI_CHUNK_UNIT rows, for aligned copies. */
#define GPUSORT_MULTI_CHUNK_ALIGNED 65536
#define GPUSORT_MULTI_CHUNK_UNIT    256

static double
milliseconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

static uint64_t
divide_up(uint64_t a, uint64_t b)
{
	return (a + b - 1) / b;
}

/* ---- how many, how large ---- */

/*
 * Equal chunks, as many for each device, none longer than chunk_room: so all devices
 * have as much to upload.
 */
static uint32_t
chunk_rows_of(const GpuSortMulti *multi, uint64_t rows)
{
	uint64_t rounds = divide_up(rows, (uint64_t) multi->device_count * multi->chunk_room);
	uint64_t chunk_rows = divide_up(rows, multi->device_count * rounds);

	if (chunk_rows >= GPUSORT_MULTI_CHUNK_ALIGNED)
		chunk_rows = divide_up(chunk_rows, GPUSORT_MULTI_CHUNK_UNIT) * GPUSORT_MULTI_CHUNK_UNIT;
	return (uint32_t) chunk_rows;
}

/*
 * Bins that a device has done while others still work cost at most one bin's time at the
 * end, and the first bin's sort is not hidden: so there are many, but none so small
 * that kernels do not fill the device.
 */
static uint32_t
bins_of(const GpuSortMulti *multi, uint64_t rows)
{
	const uint32_t devices = multi->device_count;
	uint64_t bins = devices <= 4 ? 128 : GPUSORT_EXCHANGE_MAX_BINS;

	if (multi->config.bins_per_device > 0)
		bins = std::min((uint64_t) multi->config.bins_per_device * devices, (uint64_t) GPUSORT_EXCHANGE_MAX_BINS);
	else
		bins = std::max(std::min(bins, divide_up(rows, GPUSORT_MULTI_BIN_ROWS)), (uint64_t) devices);
	return (uint32_t) std::min(bins, rows);
}

/* Checks the config and sets what follows from it. */
static cudaError_t
set_room(GpuSortMulti *multi, const GpuSortMultiConfig *config)
{
	const uint32_t row_bytes = config->key_bytes + config->payload_bytes;
	uint64_t rows = config->max_rows;
	uint64_t rounds;
	uint64_t bin_room;

	if (config->device_count < 1 || config->device_count > GPUSORT_MULTI_MAX_DEVICES ||
		(config->key_bytes != 4 && config->key_bytes != 8) ||
		config->payload_bytes % 4 != 0 || config->payload_bytes > GPUSORT_MULTI_MAX_PAYLOAD ||
		rows > GPUSORT_MULTI_MAX_ROWS ||
		((config->flags & GPUSORT_MULTI_IDS) != 0 && rows > GPUSORT_RADIX_MAX_ROWS) ||
		(config->flags & ~(GPUSORT_MULTI_IDS | GPUSORT_MULTI_COPY)) != 0 ||
		config->chunk_rows > GPUSORT_PARTITION_MAX_ROWS ||
		config->bins_per_device > GPUSORT_EXCHANGE_MAX_BINS)
		return cudaErrorInvalidValue;

	rows = std::max(rows, (uint64_t) 1);
	multi->config = *config;
	multi->device_count = (uint32_t) config->device_count;
	multi->has_ids = (config->flags & GPUSORT_MULTI_IDS) != 0;
	if (multi->config.sample_per_bin == 0)
		multi->config.sample_per_bin = GPUSORT_MULTI_SAMPLE;
	multi->chunk_room = config->chunk_rows != 0 ? config->chunk_rows : GPUSORT_MULTI_CHUNK_BYTES / row_bytes;
	if (multi->chunk_room >= GPUSORT_MULTI_CHUNK_ALIGNED)
		multi->chunk_room =
			(uint32_t) divide_up(multi->chunk_room, GPUSORT_MULTI_CHUNK_UNIT) * GPUSORT_MULTI_CHUNK_UNIT;
	multi->chunk_room = (uint32_t) std::min((uint64_t) multi->chunk_room,
											divide_up(rows, multi->device_count) + GPUSORT_MULTI_CHUNK_UNIT);

	rounds = divide_up(rows, (uint64_t) multi->device_count * multi->chunk_room);
	multi->chunks_room = (uint32_t) rounds;
	multi->store_rows = divide_up(rows, multi->device_count) + rounds * GPUSORT_MULTI_CHUNK_UNIT;

	multi->bins_room = bins_of(multi, rows);
	bin_room = 2 * divide_up(rows, multi->bins_room);
	if (config->bins_per_device == 0)
		bin_room = std::max(bin_room, (uint64_t) 2 * GPUSORT_MULTI_BIN_ROWS); /* smaller sorts have fewer bins */
	bin_room = std::min(bin_room, rows);
	if (bin_room > GPUSORT_RADIX_MAX_ROWS)
		return cudaErrorMemoryAllocation;
	multi->bin_room = (uint32_t) bin_room;
	return gpusort_radix_temp_bytes(multi->bin_room, 32, &multi->radix_temp_bytes);
}

/* ---- memory ---- */

/* The place of so many bytes in a block that is laid out from base on; base NULL: only counts. */
static char *
lay(char *base, size_t *end, uint64_t bytes)
{
	const size_t start = gpusort_region_lay(end, bytes);

	return base != NULL ? base + start : NULL;
}

/* Lays out a device's memory; returns its size. */
static size_t
lay_device(const GpuSortMulti *multi, GpuSortMultiDevice *device, char *base)
{
	const uint64_t key_bytes = multi->config.key_bytes;
	const uint64_t payload_bytes = multi->config.payload_bytes;
	const uint64_t id_bytes = multi->has_ids ? sizeof(uint32_t) : 0;
	const uint64_t chunk_rows = multi->chunk_room;
	const uint64_t bin_rows = multi->bin_room;
	const uint64_t max_pieces = (uint64_t) multi->chunks_room * multi->device_count;
	size_t end = 0;

	for (int i = 0; i < GPUSORT_MULTI_RECEIVE_BUFFERS; i++)
	{
		device->receive_buffers[i].keys = lay(base, &end, chunk_rows * key_bytes);
		device->receive_buffers[i].payload = lay(base, &end, chunk_rows * payload_bytes);
	}
	device->store_keys = lay(base, &end, multi->store_rows * key_bytes);
	device->store_ids = (uint32_t *) lay(base, &end, multi->store_rows * id_bytes);
	device->store_payload = lay(base, &end, multi->store_rows * payload_bytes);
	device->numbers = NULL;
	if (payload_bytes > 0 && id_bytes == 0)
		device->numbers = (uint32_t *) lay(base, &end, chunk_rows * sizeof(uint32_t));
	device->splitters = (GpuSortSplitter *) lay(base, &end, multi->bins_room * sizeof(GpuSortSplitter));
	device->histograms = (uint32_t *) lay(base, &end,
										  (uint64_t) multi->chunks_room * multi->bins_room * sizeof(uint32_t));
	device->partition_temp = (uint32_t *) lay(base, &end,
											  gpusort_partition_temp_bytes(multi->chunk_room, multi->bins_room));
	for (int i = 0; i < GPUSORT_MULTI_SLOTS; i++)
	{
		GpuSortMultiSlot *slot = &device->slots[i];

		slot->keys = lay(base, &end, bin_rows * key_bytes);
		slot->ids = (uint32_t *) lay(base, &end, bin_rows * id_bytes);
		slot->payload = lay(base, &end, bin_rows * payload_bytes);
		slot->sorted_keys = lay(base, &end, bin_rows * key_bytes);
		slot->sorted_ids = (uint32_t *) lay(base, &end, bin_rows * id_bytes);
		slot->sorted_payload = lay(base, &end, bin_rows * payload_bytes);
		slot->pieces = (GpuSortBinPiece *) lay(base, &end, max_pieces * sizeof(GpuSortBinPiece));
	}
	device->words = (uint32_t *) lay(base, &end, key_bytes == 8 ? bin_rows * sizeof(uint32_t) : 0);
	device->orders[0] = (uint32_t *) lay(base, &end, bin_rows * sizeof(uint32_t));
	device->orders[1] = (uint32_t *) lay(base, &end, key_bytes == 8 ? bin_rows * sizeof(uint32_t) : 0);
	device->radix_temp = lay(base, &end, multi->radix_temp_bytes);
	return end;
}

int
gpusort_multi_device_bytes(const GpuSortMultiConfig *config, size_t *bytes)
{
	GpuSortMulti *multi = (GpuSortMulti *) calloc(1, sizeof(GpuSortMulti));
	cudaError_t status;

	if (multi == NULL)
		return cudaErrorMemoryAllocation;
	status = set_room(multi, config);
	if (status == cudaSuccess)
		*bytes = lay_device(multi, &multi->devices[0], NULL);
	free(multi);
	return status;
}

/* ---- open and close ---- */

static cudaError_t
open_device(GpuSortMulti *multi, GpuSortMultiDevice *device)
{
	const size_t max_pieces = (size_t) multi->chunks_room * multi->device_count;

	GPUSORT_MULTI_TRY(cudaSetDevice(device->ordinal));
	GPUSORT_MULTI_TRY(cudaMalloc(&device->memory, lay_device(multi, device, NULL)));
	lay_device(multi, device, (char *) device->memory);
	GPUSORT_MULTI_TRY(cudaMallocHost((void **) &device->host_histograms,
									 (size_t) multi->chunks_room * multi->bins_room * sizeof(uint32_t)));
	GPUSORT_MULTI_TRY(cudaStreamCreateWithFlags(&device->upload, cudaStreamNonBlocking));
	GPUSORT_MULTI_TRY(cudaStreamCreateWithFlags(&device->exchange, cudaStreamNonBlocking));
	GPUSORT_MULTI_TRY(cudaStreamCreateWithFlags(&device->compute, cudaStreamNonBlocking));
	GPUSORT_MULTI_TRY(cudaStreamCreateWithFlags(&device->download, cudaStreamNonBlocking));
	GPUSORT_MULTI_TRY(cudaEventCreate(&device->begun));
	for (int i = 0; i < GPUSORT_MULTI_RECEIVE_BUFFERS; i++)
	{
		GPUSORT_MULTI_TRY(cudaEventCreate(&device->receive_buffers[i].uploaded));
		GPUSORT_MULTI_TRY(cudaEventCreate(&device->receive_buffers[i].partitioned));
	}
	for (int i = 0; i < GPUSORT_MULTI_SLOTS; i++)
	{
		GpuSortMultiSlot *slot = &device->slots[i];

		GPUSORT_MULTI_TRY(cudaMallocHost((void **) &slot->host_pieces, max_pieces * sizeof(GpuSortBinPiece)));
		GPUSORT_MULTI_TRY(cudaEventCreate(&slot->read_begun));
		GPUSORT_MULTI_TRY(cudaEventCreate(&slot->read));
		GPUSORT_MULTI_TRY(cudaEventCreate(&slot->sort_begun));
		GPUSORT_MULTI_TRY(cudaEventCreate(&slot->sorted));
		GPUSORT_MULTI_TRY(cudaEventCreate(&slot->download_begun));
		GPUSORT_MULTI_TRY(cudaEventCreate(&slot->downloaded));
	}
	return cudaSuccess;
}

static void
close_event(cudaEvent_t event)
{
	if (event != NULL)
		(void) cudaEventDestroy(event);
}

static void
close_stream(cudaStream_t stream)
{
	if (stream != NULL)
		(void) cudaStreamDestroy(stream);
}

static void
close_device(GpuSortMultiDevice *device)
{
	if (cudaSetDevice(device->ordinal) != cudaSuccess)
		(void) cudaGetLastError();
	close_event(device->begun);
	for (int i = 0; i < GPUSORT_MULTI_RECEIVE_BUFFERS; i++)
	{
		close_event(device->receive_buffers[i].uploaded);
		close_event(device->receive_buffers[i].partitioned);
	}
	for (int i = 0; i < GPUSORT_MULTI_SLOTS; i++)
	{
		GpuSortMultiSlot *slot = &device->slots[i];

		close_event(slot->read_begun);
		close_event(slot->read);
		close_event(slot->sort_begun);
		close_event(slot->sorted);
		close_event(slot->download_begun);
		close_event(slot->downloaded);
		if (slot->host_pieces != NULL)
			(void) cudaFreeHost(slot->host_pieces);
	}
	close_stream(device->upload);
	close_stream(device->exchange);
	close_stream(device->compute);
	close_stream(device->download);
	if (device->host_histograms != NULL)
		(void) cudaFreeHost(device->host_histograms);
	if (device->memory != NULL)
		(void) cudaFree(device->memory);
}

/* Lets every device read every other one's memory, or finds that they cannot. */
static cudaError_t
open_peers(GpuSortMulti *multi)
{
	multi->by_copies = (multi->config.flags & GPUSORT_MULTI_COPY) != 0;
	for (uint32_t i = 0; i < multi->device_count && !multi->by_copies; i++)
	{
		for (uint32_t j = 0; j < multi->device_count; j++)
		{
			const int device = multi->devices[i].ordinal;
			const int peer = multi->devices[j].ordinal;
			int can = 1;

			if (device != peer)
				GPUSORT_MULTI_TRY(cudaDeviceCanAccessPeer(&can, device, peer));
			if (!can)
				multi->by_copies = true;
		}
	}
	for (uint32_t i = 0; i < multi->device_count && !multi->by_copies; i++)
	{
		GPUSORT_MULTI_TRY(cudaSetDevice(multi->devices[i].ordinal));
		for (uint32_t j = 0; j < multi->device_count; j++)
		{
			cudaError_t status = cudaSuccess;

			if (multi->devices[i].ordinal != multi->devices[j].ordinal)
				status = cudaDeviceEnablePeerAccess(multi->devices[j].ordinal, 0);
			if (status == cudaErrorPeerAccessAlreadyEnabled)
				status = cudaGetLastError() == status ? cudaSuccess : status; /* takes it off the record */
			GPUSORT_MULTI_TRY(status);
		}
	}
	return cudaSuccess;
}

static cudaError_t
open_context(GpuSortMulti *multi)
{
	const size_t max_chunks = (size_t) multi->chunks_room * multi->device_count;

	multi->sample_room = (uint64_t) multi->bins_room * multi->config.sample_per_bin;
	multi->sample = (GpuSortSplitter *) malloc(multi->sample_room * sizeof(GpuSortSplitter));
	multi->piece_offsets = (uint32_t *) malloc(max_chunks * multi->bins_room * sizeof(uint32_t));
	multi->bin_offsets = (uint64_t *) malloc((multi->bins_room + 1) * sizeof(uint64_t));
	if (multi->sample == NULL || multi->piece_offsets == NULL || multi->bin_offsets == NULL)
		return cudaErrorMemoryAllocation;
	GPUSORT_MULTI_TRY(cudaMallocHost((void **) &multi->splitters, multi->bins_room * sizeof(GpuSortSplitter)));
	GPUSORT_MULTI_TRY(open_peers(multi));
	for (uint32_t i = 0; i < multi->device_count; i++)
		GPUSORT_MULTI_TRY(open_device(multi, &multi->devices[i]));
	return cudaSuccess;
}

int
gpusort_multi_open(const GpuSortMultiConfig *config, GpuSortMulti **result)
{
	GpuSortMulti *multi = (GpuSortMulti *) calloc(1, sizeof(GpuSortMulti));
	cudaError_t status;
	int device_before;

	*result = NULL;
	if (multi == NULL)
		return cudaErrorMemoryAllocation;
	status = cudaGetDevice(&device_before);
	if (status == cudaSuccess)
		status = set_room(multi, config);
	if (status != cudaSuccess)
	{
		free(multi);
		return status;
	}
	for (uint32_t i = 0; i < multi->device_count; i++)
	{
		multi->devices[i].multi = multi;
		multi->devices[i].number = i;
		multi->devices[i].ordinal = config->devices[i];
	}
	pthread_mutex_init(&multi->barrier.lock, NULL);
	pthread_cond_init(&multi->barrier.changed, NULL);
	status = open_context(multi);
	if (status != cudaSuccess)
	{
		(void) cudaGetLastError(); /* memory that is not there is no error of the next call */
		gpusort_multi_close(multi);
	}
	else
		*result = multi;
	(void) cudaSetDevice(device_before);
	return status;
}

void
gpusort_multi_close(GpuSortMulti *multi)
{
	int device_before = 0;

	if (multi == NULL)
		return;
	(void) cudaGetDevice(&device_before);
	for (uint32_t i = 0; i < multi->device_count; i++)
		close_device(&multi->devices[i]);
	if (multi->splitters != NULL)
		(void) cudaFreeHost(multi->splitters);
	(void) cudaSetDevice(device_before);
	free(multi->sample);
	free(multi->piece_offsets);
	free(multi->bin_offsets);
	pthread_cond_destroy(&multi->barrier.changed);
	pthread_mutex_destroy(&multi->barrier.lock);
	free(multi);
}

/* ---- a sort ---- */

/* Takes splitters from a sample of so many rows. */
static cudaError_t
choose_splitters(GpuSortMulti *multi, uint64_t samples, uint32_t attempt)
{
	if (samples > multi->sample_room)
	{
		GpuSortSplitter *larger = (GpuSortSplitter *) realloc(multi->sample, samples * sizeof(GpuSortSplitter));

		if (larger == NULL)
			return cudaErrorMemoryAllocation;
		multi->sample = larger;
		multi->sample_room = samples;
	}
	gpusort_choose_splitters(multi->job.keys, multi->config.key_bytes, multi->job.rows, multi->bins, samples,
							 (uint64_t) attempt << 32, multi->sample, multi->splitters);
	return cudaSuccess;
}

/* What lies where, from the histograms; *largest: the rows of the largest bin. */
static void
plan_bins(GpuSortMulti *multi, uint64_t *largest)
{
	uint64_t end = 0;

	memset(multi->bin_offsets, 0, (multi->bins + 1) * sizeof(uint64_t));
	for (uint32_t chunk = 0; chunk < multi->chunks; chunk++)
	{
		const GpuSortMultiDevice *device = &multi->devices[chunk % multi->device_count];
		const uint32_t *histogram = device->host_histograms + (size_t) (chunk / multi->device_count) * multi->bins;
		uint32_t *offsets = multi->piece_offsets + (size_t) chunk * multi->bins;
		uint32_t offset = 0;

		for (uint32_t bin = 0; bin < multi->bins; bin++)
		{
			offsets[bin] = offset;
			offset += histogram[bin];
			multi->bin_offsets[bin] += histogram[bin];
		}
	}
	*largest = 0;
	for (uint32_t bin = 0; bin <= multi->bins; bin++)
	{
		uint64_t rows = multi->bin_offsets[bin];

		*largest = std::max(*largest, rows);
		multi->bin_offsets[bin] = end;
		end += rows;
	}
}

/* What the caller's thread does while the devices' threads run. */
static cudaError_t
lead_devices(GpuSortMulti *multi, uint64_t samples, uint32_t attempt, GpuSortMultiReport *report)
{
	const double begun = milliseconds_now();

	GPUSORT_MULTI_TRY(choose_splitters(multi, samples, attempt));
	report->sample_ms = milliseconds_now() - begun;
	GPUSORT_MULTI_TRY(gpusort_multi_barrier(multi)); /* splitters */
	GPUSORT_MULTI_TRY(gpusort_multi_barrier(multi)); /* counted */
	plan_bins(multi, &report->largest_bin);
	if (multi->bin_offsets[multi->bins] != multi->job.rows)
		return cudaErrorUnknown; /* the device is not to be trusted */
	multi->again = report->largest_bin > multi->bin_room;
	return gpusort_multi_barrier(multi); /* planned */
}

static cudaError_t
run_devices(GpuSortMulti *multi, uint64_t samples, uint32_t attempt, GpuSortMultiReport *report)
{
	uint32_t started = 0;
	cudaError_t status = cudaSuccess;

	multi->next_bin = 0;
	multi->again = false;
	multi->barrier.expected = multi->device_count + 1;
	multi->barrier.arrived = 0;
	multi->barrier.status = cudaSuccess;
	while (started < multi->device_count && status == cudaSuccess)
	{
		if (pthread_create(&multi->devices[started].thread, NULL, gpusort_multi_device_main,
						   &multi->devices[started]) == 0)
			started++;
		else
			status = cudaErrorMemoryAllocation;
	}
	if (status == cudaSuccess)
		status = lead_devices(multi, samples, attempt, report);
	if (status != cudaSuccess)
		gpusort_multi_fail(multi, status);
	for (uint32_t i = 0; i < started; i++)
		pthread_join(multi->devices[i].thread, NULL);
	return multi->barrier.status;
}

/* Returns true if the rows are within max_rows and all the arrays are there. */
static bool
job_complete(const GpuSortMulti *multi, const GpuSortMultiJob *job)
{
	return job->rows <= multi->config.max_rows &&
		(job->rows == 0 || job->keys != NULL) &&
		(job->rows == 0 || multi->config.payload_bytes == 0 || job->payload != NULL) &&
		(job->ids_out == NULL || multi->has_ids) &&
		(job->payload_out == NULL || multi->config.payload_bytes > 0);
}

int
gpusort_multi_sort(GpuSortMulti *multi, const GpuSortMultiJob *job, GpuSortMultiReport *report)
{
	const double begun = milliseconds_now();
	GpuSortMultiReport unwanted;
	uint64_t samples;
	cudaError_t status = cudaSuccess;

	if (report == NULL)
		report = &unwanted;
	memset(report, 0, sizeof(*report));
	if (multi->broken != cudaSuccess)
		return multi->broken;
	if (!job_complete(multi, job))
		return cudaErrorInvalidValue;
	if (job->rows == 0)
		return cudaSuccess;

	multi->job = *job;
	multi->chunk_rows = chunk_rows_of(multi, job->rows);
	multi->chunks = (uint32_t) divide_up(job->rows, multi->chunk_rows);
	multi->bins = bins_of(multi, job->rows);
	samples = std::min((uint64_t) multi->bins * multi->config.sample_per_bin, job->rows);
	do
	{
		status = run_devices(multi, samples, report->attempts++, report);
		samples = std::min(2 * samples, job->rows);
	} while (status == cudaSuccess && multi->again);

	multi->broken = status;
	report->total_ms = milliseconds_now() - begun;
	report->bins = multi->bins;
	report->chunks = multi->chunks;
	report->peer_access = !multi->by_copies;
	for (uint32_t i = 0; i < multi->device_count; i++)
		report->devices[i] = multi->devices[i].phases;
	return status;
}
