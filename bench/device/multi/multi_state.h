/*-------------------------------------------------------------------------
 *
 * multi_state.h
 *	  What multi_sort.cu and multi_device.cu share: the state of a context and of
 *	  each of its devices.
 *
 * Each device has a thread of its own for the time of a sort, and only that thread
 * gives work to its streams and waits for them.  Threads wait at three barriers:
 *
 *	splitters	the caller's thread has written splitters; others have sent first chunks
 *	counted		each device's chunks are partitioned, their histograms on the host
 *	planned		the caller's thread has written piece_offsets, bin_offsets and again
 *
 * What is written before a barrier is only read after it.  After the last one,
 * devices read each other's stores, which nobody writes, and share next_bin.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_MULTI_STATE_H
#define GPUSORT_MULTI_STATE_H

#include <pthread.h>

#include "multi/exchange.h"
#include "multi/multi_sort.h"

/* Chunks being copied to a device at a time, and bins being exchanged, sorted and copied from it. */
#define GPUSORT_MULTI_RECEIVE_BUFFERS 4
#define GPUSORT_MULTI_SLOTS           3

#define GPUSORT_MULTI_TRY(call)       \
	do                                \
	{                                 \
		cudaError_t status_ = (call); \
		if (status_ != cudaSuccess)   \
			return status_;           \
	} while (0)

/* Where the H2D copy of a chunk goes; its rows go on into the store, partitioned. */
typedef struct GpuSortMultiReceiveBuffer
{
	char *keys;
	char *payload;
	cudaEvent_t uploaded;
	cudaEvent_t partitioned;
} GpuSortMultiReceiveBuffer;

/* A bin under way: its rows as they were read, and in order. */
typedef struct GpuSortMultiSlot
{
	char *keys;
	uint32_t *ids;
	char *payload;
	char *sorted_keys;
	uint32_t *sorted_ids;
	char *sorted_payload;
	GpuSortBinPiece *pieces;      /* on the device */
	GpuSortBinPiece *host_pieces; /* pinned */
	cudaEvent_t read_begun;
	cudaEvent_t read;
	cudaEvent_t sort_begun;
	cudaEvent_t sorted;
	cudaEvent_t download_begun;
	cudaEvent_t downloaded;
	bool busy; /* a bin is under way */
} GpuSortMultiSlot;

typedef struct GpuSortMultiDevice
{
	struct GpuSortMulti *multi;
	uint32_t number; /* among the context's devices */
	int ordinal;
	pthread_t thread;
	GpuSortMultiPhases phases;

	/* the work of each kind, in order */
	cudaStream_t upload;
	cudaStream_t exchange;
	cudaStream_t compute;
	cudaStream_t download;
	cudaEvent_t begun;

	void *memory; /* all that follows lies in it */
	GpuSortMultiReceiveBuffer receive_buffers[GPUSORT_MULTI_RECEIVE_BUFFERS];
	char *store_keys;    /* chunk after chunk, each partitioned */
	uint32_t *store_ids; /* NULL without ids */
	char *store_payload;
	uint32_t *numbers; /* of a chunk's rows, for its payload; NULL with ids */
	GpuSortSplitter *splitters;
	uint32_t *histograms; /* of each chunk: rows of each bin */
	uint32_t *partition_temp;
	GpuSortMultiSlot slots[GPUSORT_MULTI_SLOTS];
	uint32_t *words;     /* 32 bits of each key of a bin */
	uint32_t *orders[2]; /* row numbers within a bin */
	void *radix_temp;

	uint32_t *host_histograms; /* pinned */
} GpuSortMultiDevice;

/* Where threads wait for each other, or learn that one of them has failed. */
typedef struct GpuSortMultiBarrier
{
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint32_t expected;
	uint32_t arrived;
	uint32_t turn;
	cudaError_t status; /* the first error */
} GpuSortMultiBarrier;

typedef struct GpuSortMulti
{
	GpuSortMultiConfig config; /* nothing left 0 that has a default */
	bool has_ids;
	bool by_copies;     /* exchange by copies */
	cudaError_t broken; /* an error of an earlier sort */

	/* room, for max_rows */
	uint64_t store_rows;  /* of a device */
	uint32_t chunk_room;  /* rows */
	uint32_t chunks_room; /* of a device */
	uint32_t bins_room;
	uint32_t bin_room; /* rows */
	size_t radix_temp_bytes;

	GpuSortSplitter *sample;
	uint64_t sample_room;
	uint32_t *piece_offsets;    /* [chunk][bin]: first row of the piece in its chunk */
	uint64_t *bin_offsets;      /* first row of each bin in the output; [bins] is the end */
	GpuSortSplitter *splitters; /* pinned */

	/* of the running sort */
	GpuSortMultiJob job;
	uint32_t chunk_rows;
	uint32_t chunks;
	uint32_t bins;
	uint32_t next_bin; /* atomic */
	bool again;        /* a bin does not fit */
	GpuSortMultiBarrier barrier;

	uint32_t device_count;
	GpuSortMultiDevice devices[GPUSORT_MULTI_MAX_DEVICES];
} GpuSortMulti;

/*
 * Waits until all devices' threads and the caller's have called it; returns the first error of
 * any of them, at once when there is one.
 */
extern cudaError_t gpusort_multi_barrier(GpuSortMulti *multi);

/* Tells all threads of an error; returns it. */
extern cudaError_t gpusort_multi_fail(GpuSortMulti *multi, cudaError_t status);

/* A device's thread; the argument is its GpuSortMultiDevice.  Returns NULL; errors go to the barrier. */
extern void *gpusort_multi_device_main(void *device);

#endif /* GPUSORT_MULTI_STATE_H */
