/*-------------------------------------------------------------------------
 *
 * multi_reference.h
 *	  Sorts over several GPUs as the papers describe them, for tests and for the
 *	  benchmark; no part of the engine.
 *
 * All sort unsigned keys of 4 or 8 bytes, without row ids, in place in host memory.
 * The times are the host's clock.  As in the papers, memory is taken beforehand:
 *
 *		open		takes device memory, and staging memory on the host
 *		sort		any number of times, of at most open's rows
 *		close		frees it; also after an error, and for what open left behind
 *
 * The host array should be pinned, or copies do not overlap with work.  A status
 * other than cudaSuccess leaves the keys in no useful state.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_MULTI_REFERENCE_H
#define GPUSORT_MULTI_REFERENCE_H

#include <cuda_runtime.h>
#include <stdbool.h>
#include <stdint.h>

#define GPUSORT_MULTI_REFERENCE_DEVICES 64 /* at most */

/* Milliseconds by phase, and what else is worth a column. */
typedef struct GpuSortMultiTimes
{
	double total;
	double upload;
	double partition; /* histograms and scatters (RMG sort) */
	double exchange;  /* between devices, with what is merged in between (P2P merge sort) */
	double sort;      /* on the devices; RMG sort downloads meanwhile */
	double download;  /* that does not overlap with sorting */
	double merge;     /* on the CPU (heterogeneous merge sort) */
	int passes;       /* of partitioning */
	uint64_t sent;    /* keys that went from a device to another */
	uint64_t fullest; /* keys on the device that held most in the end */
} GpuSortMultiTimes;

/* Belongs to the reference that opened it. */
typedef struct GpuSortMultiContext GpuSortMultiContext;

typedef struct GpuSortMultiReference
{
	const char *name;
	const char *paper;
	bool power_of_two; /* so must be the number of devices */

	/* devices: ordinals, `count` of them.  On an error *context may be set, and is for close. */
	cudaError_t (*open)(const int *devices, int count, uint64_t rows, int key_bytes, GpuSortMultiContext **context);
	cudaError_t (*sort)(GpuSortMultiContext *context, void *host_keys, uint64_t rows, GpuSortMultiTimes *times);
	void (*close)(GpuSortMultiContext *context); /* NULL does nothing */
} GpuSortMultiReference;

#ifdef __cplusplus
extern "C"
{
#endif

	extern const GpuSortMultiReference gpusort_rmg_sort;
	extern const GpuSortMultiReference gpusort_p2p_merge_sort;
	extern const GpuSortMultiReference gpusort_het_merge_sort;

	/* All of them; the last entry is NULL. */
	extern const GpuSortMultiReference *const gpusort_multi_references[];

#ifdef __cplusplus
}
#endif

#endif /* GPUSORT_MULTI_REFERENCE_H */
