/*-------------------------------------------------------------------------
 *
 * multi_sort.h
 *	  Sorts rows that lie in host memory on one or several GPUs, and puts them into
 *	  host memory in order: a C edge for benchmarks and other programs.
 *
 * A row is an unsigned key of 32 or 64 bits, on wish its row id (the row's number,
 * made on the device, never uploaded), on wish a payload of fixed size.  The sort
 * is stable: of equal keys the row that came first comes first.
 *
 *	gpusort_multi_device_bytes	what a context takes on each device
 *	gpusort_multi_open			takes memory, streams and threads' state once
 *	gpusort_multi_sort			any number of times, one at a time
 *	gpusort_multi_close
 *
 * How it sorts.  The bus between host and devices decides, so each step but the
 * bus's own is hidden behind it:
 *
 *	1. Rows are cut into chunks of equal size; chunk c goes to device c mod g, all
 *	   devices at once.  While the first chunks are on their way, the host takes a
 *	   sample and cuts the sorted sample into bins, g * S of them.  A splitter is a
 *	   pair (key, row number), so bins stay equal in size however often a key
 *	   repeats.
 *	2. A chunk that has arrived is partitioned into the bins on its own device,
 *	   stably (exchange.h), while the next one arrives.
 *	3. When all chunks are, the host knows exactly how many rows of each chunk are in
 *	   each bin, and so where each bin starts in the output.
 *	4. Devices take bins in turn, whoever is free first.  A bin's pieces, one per
 *	   chunk, are read from all devices' memory in the order of the chunks, sorted,
 *	   and downloaded to their place, while the next bin is read and sorted.
 *
 * So what the bus waits for is the partition of the last chunk and the exchange and
 * sort of the first bin.  The splitters decide balance alone, never the result.
 *
 * RMG sort (Ilic et al., BTW 2023, section 3) instead uploads everything, then
 * partitions by radix digits (again for buckets that span devices), then swaps all
 * keys at once, then sorts.  Exchanging bin by bin during the download needs no
 * digit statistics and no room for skew, and lets devices share the work by speed.
 *
 * Devices without access to each other's memory exchange by copies, which CUDA
 * stages through the host.  An ordinal may be given several times: each counts as a
 * device of its own.
 *
 * Status is a cudaError_t: 0 is success; cudaErrorInvalidValue (1) for arguments
 * out of range; cudaErrorMemoryAllocation (2) when rows do not fit the devices or
 * the host is out of memory.  After an error the output is undefined, nothing is
 * being written any more, and the context can only be closed.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_MULTI_SORT_H
#define GPUSORT_MULTI_SORT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C"
{
#endif

#define GPUSORT_MULTI_MAX_DEVICES 16
#define GPUSORT_MULTI_MAX_PAYLOAD 4096 /* bytes */

/* Flags of a context. */
#define GPUSORT_MULTI_IDS  1 /* rows have row ids */
#define GPUSORT_MULTI_COPY 2 /* exchange by copies, not by kernels that read peers' memory */

	typedef struct GpuSortMultiConfig
	{
		int device_count;                       /* 1 to GPUSORT_MULTI_MAX_DEVICES */
		int devices[GPUSORT_MULTI_MAX_DEVICES]; /* ordinals */
		uint64_t max_rows;                      /* of one sort; below 2^32 - 1 with ids or payload, else to 2^40 */
		uint32_t key_bytes;                     /* 4 or 8 */
		uint32_t payload_bytes;                 /* a multiple of 4, or 0 */
		uint32_t flags;

		/* 0 is a good choice made from the above. */
		uint32_t chunk_rows;      /* at most, of one upload */
		uint32_t bins_per_device; /* bins in all: 256 at most */
		uint32_t sample_per_bin;
	} GpuSortMultiConfig;

	/*
 * Host arrays, pinned for speed.  Outputs may be NULL when not wanted.  All input
 * has been read before the first output is written, so keys_out may be keys and
 * payload_out may be payload.
 */
	typedef struct GpuSortMultiJob
	{
		uint64_t rows;
		const void *keys;    /* rows * key_bytes */
		const void *payload; /* rows * payload_bytes */
		void *keys_out;
		uint32_t *ids_out; /* with GPUSORT_MULTI_IDS */
		void *payload_out;
	} GpuSortMultiJob;

	/*
 * What a device did, in milliseconds since the sort's start as the device's clock
 * has it, but for the sums.
 */
	typedef struct GpuSortMultiPhases
	{
		double uploaded;     /* its last chunk had arrived */
		double partitioned;  /* and was partitioned */
		double exchanged;    /* its first bin was there */
		double sorted;       /* and in order: its download began */
		double downloaded;   /* its last bin was in the host's memory */
		double exchange_sum; /* of all its bins */
		double sort_sum;
		double download_sum;
		uint64_t rows; /* of its bins */
		uint32_t bins;
	} GpuSortMultiPhases;

	typedef struct GpuSortMultiReport
	{
		double total_ms;  /* by the host's clock, from call to return */
		double sample_ms; /* the sample and the splitters */
		uint32_t bins;
		uint32_t chunks;
		uint64_t largest_bin; /* rows */
		uint32_t attempts;    /* 1, or more if a sample was poor */
		int peer_access;      /* exchanged by kernels */
		GpuSortMultiPhases devices[GPUSORT_MULTI_MAX_DEVICES];
	} GpuSortMultiReport;

	typedef struct GpuSortMulti GpuSortMulti;

	/* *bytes: of device memory, for each entry of devices, with the current device's radix core (radix_sort.h). */
	extern int gpusort_multi_device_bytes(const GpuSortMultiConfig *config, size_t *bytes);

	/*
 * Takes everything that sorts need: device memory as gpusort_multi_device_bytes says, pinned
 * host memory, streams.  On error *multi is NULL and nothing is left behind.
 */
	extern int gpusort_multi_open(const GpuSortMultiConfig *config, GpuSortMulti **multi);

	/* Sorts; returns when the output is in the job's arrays.  report may be NULL. */
	extern int gpusort_multi_sort(GpuSortMulti *multi, const GpuSortMultiJob *job, GpuSortMultiReport *report);

	/* Gives everything back; no sort may be running.  NULL is legal. */
	extern void gpusort_multi_close(GpuSortMulti *multi);

#ifdef __cplusplus
}
#endif

#endif /* GPUSORT_MULTI_SORT_H */
