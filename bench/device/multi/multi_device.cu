/*-------------------------------------------------------------------------
 *
 * multi_device.cu
 *	  What one device does in a sort over several: H2D copies of its chunks and their
 *	  partition, then bins read, sorted and copied to the host.  multi_sort.h tells the whole.
 *
 * Work of a kind is a stream, so that the copy engines of both directions, the
 * links to other devices and the device's own memory are all busy at a time.  In
 * the first half nothing is waited for; in the second the host keeps
 * GPUSORT_MULTI_SLOTS bins under way and takes the next when one is done, which
 * is how devices that are slower get fewer.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "multi/multi_state.h"
#include "sort/radix/radix_sort.h"

/* ---- chunks ---- */

static uint32_t
count_chunks(const GpuSortMultiDevice *device)
{
	const GpuSortMulti *multi = device->multi;

	return multi->chunks / multi->device_count + (device->number < multi->chunks % multi->device_count);
}

/* First row and rows of this device's chunk number `index`. */
static uint64_t
chunk_first(const GpuSortMultiDevice *device, uint32_t index)
{
	const GpuSortMulti *multi = device->multi;

	return ((uint64_t) index * multi->device_count + device->number) * multi->chunk_rows;
}

static uint32_t
chunk_length(const GpuSortMultiDevice *device, uint32_t index)
{
	const GpuSortMulti *multi = device->multi;
	uint64_t left = multi->job.rows - chunk_first(device, index);

	return left < multi->chunk_rows ? (uint32_t) left : multi->chunk_rows;
}

static cudaError_t
upload_chunk(GpuSortMultiDevice *device, uint32_t index)
{
	const GpuSortMulti *multi = device->multi;
	const uint32_t key_bytes = multi->config.key_bytes;
	const uint32_t payload_bytes = multi->config.payload_bytes;
	const uint64_t first = chunk_first(device, index);
	const uint32_t rows = chunk_length(device, index);
	GpuSortMultiReceiveBuffer *buffer = &device->receive_buffers[index % GPUSORT_MULTI_RECEIVE_BUFFERS];

	if (index >= GPUSORT_MULTI_RECEIVE_BUFFERS)
		GPUSORT_MULTI_TRY(cudaStreamWaitEvent(device->upload, buffer->partitioned, 0));
	GPUSORT_MULTI_TRY(cudaMemcpyAsync(buffer->keys, (const char *) multi->job.keys + first * key_bytes,
									  (size_t) rows * key_bytes, cudaMemcpyHostToDevice, device->upload));
	if (payload_bytes > 0)
		GPUSORT_MULTI_TRY(cudaMemcpyAsync(buffer->payload,
										  (const char *) multi->job.payload + first * payload_bytes,
										  (size_t) rows * payload_bytes, cudaMemcpyHostToDevice, device->upload));
	return cudaEventRecord(buffer->uploaded, device->upload);
}

static cudaError_t
partition_chunk(GpuSortMultiDevice *device, uint32_t index)
{
	const GpuSortMulti *multi = device->multi;
	const uint32_t payload_bytes = multi->config.payload_bytes;
	const uint64_t stored = (uint64_t) index * multi->chunk_rows;
	GpuSortMultiReceiveBuffer *buffer = &device->receive_buffers[index % GPUSORT_MULTI_RECEIVE_BUFFERS];
	GpuSortPartition partition = {};

	partition.keys = buffer->keys;
	partition.key_bytes = multi->config.key_bytes;
	partition.rows = chunk_length(device, index);
	partition.first_row = chunk_first(device, index);
	partition.splitters = device->splitters;
	partition.bins = multi->bins;
	partition.keys_out = device->store_keys + stored * multi->config.key_bytes;
	partition.rows_out = multi->has_ids ? device->store_ids + stored : device->numbers;
	partition.bin_rows = device->histograms + (size_t) index * multi->bins;

	GPUSORT_MULTI_TRY(cudaStreamWaitEvent(device->compute, buffer->uploaded, 0));
	GPUSORT_MULTI_TRY(gpusort_partition(&partition, device->partition_temp, device->compute));
	if (payload_bytes > 0)
		GPUSORT_MULTI_TRY(gpusort_move_rows(buffer->payload, payload_bytes, partition.rows_out,
											(uint32_t) partition.first_row, partition.rows,
											device->store_payload + stored * payload_bytes, device->compute));
	return cudaEventRecord(buffer->partitioned, device->compute);
}

/* Returns when the chunks' histograms are on the host. */
static cudaError_t
ingest_chunks(GpuSortMultiDevice *device)
{
	const GpuSortMulti *multi = device->multi;
	const uint32_t chunks = count_chunks(device);

	GPUSORT_MULTI_TRY(cudaEventRecord(device->begun, device->upload));
	for (uint32_t i = 0; i < chunks && i < GPUSORT_MULTI_RECEIVE_BUFFERS; i++)
		GPUSORT_MULTI_TRY(upload_chunk(device, i));

	GPUSORT_MULTI_TRY(gpusort_multi_barrier(device->multi)); /* splitters */
	GPUSORT_MULTI_TRY(cudaMemcpyAsync(device->splitters, multi->splitters,
									  (multi->bins - 1) * sizeof(GpuSortSplitter), cudaMemcpyHostToDevice,
									  device->compute));
	for (uint32_t i = 0; i < chunks; i++)
	{
		GPUSORT_MULTI_TRY(partition_chunk(device, i));
		if (i + GPUSORT_MULTI_RECEIVE_BUFFERS < chunks)
			GPUSORT_MULTI_TRY(upload_chunk(device, i + GPUSORT_MULTI_RECEIVE_BUFFERS));
	}
	GPUSORT_MULTI_TRY(cudaMemcpyAsync(device->host_histograms, device->histograms,
									  (size_t) chunks * multi->bins * sizeof(uint32_t), cudaMemcpyDeviceToHost,
									  device->compute));
	return cudaStreamSynchronize(device->compute);
}

/* ---- bins ---- */

/* Fills slot->host_pieces; returns how many there are. */
static uint32_t
list_pieces(const GpuSortMulti *multi, uint32_t bin, GpuSortMultiSlot *slot)
{
	uint32_t count = 0;
	uint32_t to_row = 0;

	for (uint32_t chunk = 0; chunk < multi->chunks; chunk++)
	{
		const uint32_t source = chunk % multi->device_count;
		const uint32_t index = chunk / multi->device_count;
		const uint32_t rows = multi->devices[source].host_histograms[(size_t) index * multi->bins + bin];
		GpuSortBinPiece *piece = &slot->host_pieces[count];

		if (rows == 0)
			continue;
		piece->from_row =
			(uint64_t) index * multi->chunk_rows + multi->piece_offsets[(size_t) chunk * multi->bins + bin];
		piece->source = source;
		piece->rows = rows;
		piece->to_row = to_row;
		piece->unused = 0;
		to_row += rows;
		count++;
	}
	return count;
}

/* Which array of a store. */
typedef enum StoreArray
{
	STORE_KEYS,
	STORE_IDS,
	STORE_PAYLOAD,
} StoreArray;

static const char *
store_array(const GpuSortMultiDevice *device, StoreArray array)
{
	if (array == STORE_KEYS)
		return device->store_keys;
	return array == STORE_IDS ? (const char *) device->store_ids : device->store_payload;
}

/* Reads a bin's rows of one array. */
static cudaError_t
read_array(GpuSortMultiDevice *device, const GpuSortMultiSlot *slot, uint32_t piece_count, uint32_t rows,
		   StoreArray array, uint32_t row_bytes, void *to)
{
	const GpuSortMulti *multi = device->multi;
	GpuSortSources sources = {};

	if (!multi->by_copies)
	{
		for (uint32_t i = 0; i < multi->device_count; i++)
			sources.base[i] = store_array(&multi->devices[i], array);
		return gpusort_read_pieces(&sources, row_bytes, slot->pieces, piece_count, rows, to, device->exchange);
	}
	for (uint32_t i = 0; i < piece_count; i++)
	{
		/* begin with another source than the other devices do */
		const GpuSortBinPiece *piece = &slot->host_pieces[(i + device->number) % piece_count];
		const GpuSortMultiDevice *source = &multi->devices[piece->source];
		const char *from = store_array(source, array) + piece->from_row * row_bytes;
		const size_t bytes = (size_t) piece->rows * row_bytes;
		char *piece_to = (char *) to + (size_t) piece->to_row * row_bytes;

		if (source->ordinal == device->ordinal)
			GPUSORT_MULTI_TRY(cudaMemcpyAsync(piece_to, from, bytes, cudaMemcpyDeviceToDevice, device->exchange));
		else
			GPUSORT_MULTI_TRY(cudaMemcpyPeerAsync(piece_to, device->ordinal, from, source->ordinal, bytes,
												  device->exchange));
	}
	return cudaSuccess;
}

static cudaError_t
read_bin(GpuSortMultiDevice *device, GpuSortMultiSlot *slot, uint32_t bin, uint32_t rows)
{
	const GpuSortMulti *multi = device->multi;
	const GpuSortMultiJob *job = &multi->job;
	const uint32_t piece_count = list_pieces(multi, bin, slot);

	GPUSORT_MULTI_TRY(cudaEventRecord(slot->read_begun, device->exchange));
	if (!multi->by_copies)
		GPUSORT_MULTI_TRY(cudaMemcpyAsync(slot->pieces, slot->host_pieces, piece_count * sizeof(GpuSortBinPiece),
										  cudaMemcpyHostToDevice, device->exchange));
	GPUSORT_MULTI_TRY(read_array(device, slot, piece_count, rows, STORE_KEYS, multi->config.key_bytes, slot->keys));
	if (job->ids_out != NULL)
		GPUSORT_MULTI_TRY(read_array(device, slot, piece_count, rows, STORE_IDS, sizeof(uint32_t), slot->ids));
	if (job->payload_out != NULL)
		GPUSORT_MULTI_TRY(read_array(device, slot, piece_count, rows, STORE_PAYLOAD, multi->config.payload_bytes,
									 slot->payload));
	return cudaEventRecord(slot->read, device->exchange);
}

/* How many low bits can differ among a bin's keys: those above are the same in both of its splitters. */
static int
bin_key_bits(const GpuSortMulti *multi, uint32_t bin)
{
	const uint64_t largest = multi->config.key_bytes == 4 ? UINT32_MAX : UINT64_MAX;
	uint64_t low = bin == 0 ? 0 : multi->splitters[bin - 1].key;
	uint64_t high = bin == multi->bins - 1 ? largest : multi->splitters[bin].key;

	return low == high ? 0 : 64 - __builtin_clzll(low ^ high);
}

/* The sort of a bin whose rows are in row order.  Stable, so ids of equal keys ascend. */
static cudaError_t
sort_rows(GpuSortMultiDevice *device, GpuSortMultiSlot *slot, uint32_t rows, int bits)
{
	const GpuSortMulti *multi = device->multi;
	const GpuSortMultiJob *job = &multi->job;
	uint32_t *order = device->orders[0];
	GpuSortRadixSort core = {};

	core.temp = device->radix_temp;
	core.temp_bytes = multi->radix_temp_bytes;
	core.rows = rows;
	core.ids_out = order;
	if (multi->config.key_bytes == 4)
	{
		core.keys_in = (const uint32_t *) slot->keys;
		core.bits = bits;
		core.keys_out = job->keys_out != NULL ? (uint32_t *) slot->sorted_keys : NULL;

		/* Without a payload, ids themselves are what is sorted along. */
		if (job->payload_out == NULL && job->ids_out != NULL)
		{
			core.ids_in = slot->ids;
			core.ids_out = slot->sorted_ids;
		}
		GPUSORT_MULTI_TRY(gpusort_radix_sort(&core, device->compute));
		if (job->payload_out == NULL)
			return cudaSuccess;
	}
	else
	{
		const uint64_t *keys = (const uint64_t *) slot->keys;

		GPUSORT_MULTI_TRY(gpusort_key_words(keys, NULL, rows, 0, device->words, device->compute));
		core.keys_in = device->words;
		core.bits = bits < 32 ? bits : 32;
		GPUSORT_MULTI_TRY(gpusort_radix_sort(&core, device->compute));
		if (bits > 32)
		{
			GPUSORT_MULTI_TRY(gpusort_key_words(keys, order, rows, 32, device->words, device->compute));
			core.ids_in = order;
			core.bits = bits - 32;
			core.ids_out = device->orders[1];
			GPUSORT_MULTI_TRY(gpusort_radix_sort(&core, device->compute));
			order = device->orders[1];
		}
		if (job->keys_out != NULL)
			GPUSORT_MULTI_TRY(gpusort_move_rows(keys, sizeof(uint64_t), order, 0, rows, slot->sorted_keys,
												device->compute));
	}
	if (job->ids_out != NULL)
		GPUSORT_MULTI_TRY(gpusort_move_rows(slot->ids, sizeof(uint32_t), order, 0, rows, slot->sorted_ids,
											device->compute));
	if (job->payload_out != NULL)
		GPUSORT_MULTI_TRY(gpusort_move_rows(slot->payload, multi->config.payload_bytes, order, 0, rows,
											slot->sorted_payload, device->compute));
	return cudaSuccess;
}

static cudaError_t
sort_bin(GpuSortMultiDevice *device, GpuSortMultiSlot *slot, uint32_t bin, uint32_t rows)
{
	GPUSORT_MULTI_TRY(cudaStreamWaitEvent(device->compute, slot->read, 0));
	GPUSORT_MULTI_TRY(cudaEventRecord(slot->sort_begun, device->compute));
	GPUSORT_MULTI_TRY(sort_rows(device, slot, rows, bin_key_bits(device->multi, bin)));
	return cudaEventRecord(slot->sorted, device->compute);
}

static cudaError_t
download_array(GpuSortMultiDevice *device, void *to, const void *from, uint32_t row_bytes, uint64_t first,
			   uint32_t rows)
{
	if (to == NULL)
		return cudaSuccess;
	return cudaMemcpyAsync((char *) to + first * row_bytes, from, (size_t) rows * row_bytes,
						   cudaMemcpyDeviceToHost, device->download);
}

static cudaError_t
download_bin(GpuSortMultiDevice *device, GpuSortMultiSlot *slot, uint32_t bin, uint32_t rows)
{
	const GpuSortMulti *multi = device->multi;
	const uint64_t first = multi->bin_offsets[bin];

	GPUSORT_MULTI_TRY(cudaStreamWaitEvent(device->download, slot->sorted, 0));
	GPUSORT_MULTI_TRY(cudaEventRecord(slot->download_begun, device->download));
	GPUSORT_MULTI_TRY(download_array(device, multi->job.keys_out, slot->sorted_keys, multi->config.key_bytes, first,
									 rows));
	GPUSORT_MULTI_TRY(download_array(device, multi->job.ids_out, slot->sorted_ids, sizeof(uint32_t), first, rows));
	GPUSORT_MULTI_TRY(download_array(device, multi->job.payload_out, slot->sorted_payload,
									 multi->config.payload_bytes, first, rows));
	return cudaEventRecord(slot->downloaded, device->download);
}

/* Adds the milliseconds between two events to *sum. */
static cudaError_t
add_time(double *sum, cudaEvent_t begun, cudaEvent_t ended)
{
	float ms;

	GPUSORT_MULTI_TRY(cudaEventElapsedTime(&ms, begun, ended));
	*sum += ms;
	return cudaSuccess;
}

/* Waits until the slot's bin, if it has one, is in the host's memory. */
static cudaError_t
finish_slot(GpuSortMultiDevice *device, GpuSortMultiSlot *slot)
{
	GpuSortMultiPhases *phases = &device->phases;

	if (!slot->busy)
		return cudaSuccess;
	GPUSORT_MULTI_TRY(cudaEventSynchronize(slot->downloaded));
	slot->busy = false;
	if (phases->bins++ == 0)
	{
		GPUSORT_MULTI_TRY(add_time(&phases->exchanged, device->begun, slot->read));
		GPUSORT_MULTI_TRY(add_time(&phases->sorted, device->begun, slot->sorted));
	}
	phases->downloaded = 0;
	GPUSORT_MULTI_TRY(add_time(&phases->downloaded, device->begun, slot->downloaded));
	GPUSORT_MULTI_TRY(add_time(&phases->exchange_sum, slot->read_begun, slot->read));
	GPUSORT_MULTI_TRY(add_time(&phases->sort_sum, slot->sort_begun, slot->sorted));
	return add_time(&phases->download_sum, slot->download_begun, slot->downloaded);
}

static cudaError_t
take_bins(GpuSortMultiDevice *device)
{
	GpuSortMulti *multi = device->multi;
	uint32_t taken = 0;

	for (;;)
	{
		GpuSortMultiSlot *slot = &device->slots[taken % GPUSORT_MULTI_SLOTS];
		uint32_t bin;
		uint32_t rows;

		GPUSORT_MULTI_TRY(finish_slot(device, slot));
		bin = __atomic_fetch_add(&multi->next_bin, 1, __ATOMIC_RELAXED);
		if (bin >= multi->bins || __atomic_load_n(&multi->barrier.status, __ATOMIC_RELAXED) != cudaSuccess)
			break;
		rows = (uint32_t) (multi->bin_offsets[bin + 1] - multi->bin_offsets[bin]);
		if (rows == 0)
			continue;
		GPUSORT_MULTI_TRY(read_bin(device, slot, bin, rows));
		GPUSORT_MULTI_TRY(sort_bin(device, slot, bin, rows));
		GPUSORT_MULTI_TRY(download_bin(device, slot, bin, rows));
		slot->busy = true;
		device->phases.rows += rows;
		taken++;
	}

	/* In the order in which they were taken. */
	for (uint32_t i = 0; i < GPUSORT_MULTI_SLOTS; i++)
		GPUSORT_MULTI_TRY(finish_slot(device, &device->slots[(taken + i) % GPUSORT_MULTI_SLOTS]));
	return cudaSuccess;
}

/* ---- a device's thread ---- */

static cudaError_t
run_device(GpuSortMultiDevice *device)
{
	GpuSortMulti *multi = device->multi;
	const uint32_t chunks = count_chunks(device);

	memset(&device->phases, 0, sizeof(device->phases));
	for (uint32_t i = 0; i < GPUSORT_MULTI_SLOTS; i++)
		device->slots[i].busy = false;
	GPUSORT_MULTI_TRY(cudaSetDevice(device->ordinal));
	GPUSORT_MULTI_TRY(ingest_chunks(device));
	if (chunks > 0)
	{
		GpuSortMultiReceiveBuffer *last = &device->receive_buffers[(chunks - 1) % GPUSORT_MULTI_RECEIVE_BUFFERS];

		GPUSORT_MULTI_TRY(add_time(&device->phases.uploaded, device->begun, last->uploaded));
		GPUSORT_MULTI_TRY(add_time(&device->phases.partitioned, device->begun, last->partitioned));
	}
	GPUSORT_MULTI_TRY(gpusort_multi_barrier(multi)); /* counted */
	GPUSORT_MULTI_TRY(gpusort_multi_barrier(multi)); /* planned */
	return multi->again ? cudaSuccess : take_bins(device);
}

void *
gpusort_multi_device_main(void *argument)
{
	GpuSortMultiDevice *device = (GpuSortMultiDevice *) argument;
	cudaError_t status = run_device(device);

	if (status != cudaSuccess)
	{
		gpusort_multi_fail(device->multi, status);

		/* Leave nothing under way that reads or writes the caller's memory. */
		(void) cudaStreamSynchronize(device->upload);
		(void) cudaStreamSynchronize(device->compute);
		(void) cudaStreamSynchronize(device->exchange);
		(void) cudaStreamSynchronize(device->download);
	}
	return NULL;
}
