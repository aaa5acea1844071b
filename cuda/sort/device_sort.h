/*-------------------------------------------------------------------------
 *
 * device_sort.h
 *	  The device library's interface: the order of rows that lie in device memory,
 *	  by keys of 1 to GPUSORT_DEVICE_SORT_MAX_KEY_WORDS words of 64 bits, the most
 *	  significant first, compared as unsigned numbers.
 *
 * The result is the rows' numbers, 0 to rows - 1, in the order of their keys;
 * rows with equal keys stay in the order they have.  Keys and rows are not moved.
 *
 * How: the pack plan (compact.h) drops the bits that cannot matter.  The partial key,
 * which is the packed key's top min(32, packed_bits) bits, right-aligned in a
 * uint32_t, is made for all rows and sorted with the row numbers (radix/radix_sort.h, which
 * has a choice of cores).  Only rows that tie on it are looked at again (tie_break.h), by the
 * bits that follow.  Where keys are skewed, so that the top bits would leave many rows tied,
 * a quantile map makes the partial key (quantile_map.h).  With a limit, a radix select finds
 * the rows that can be among the first, and only they are sorted (top_k.cu).
 *
 * Rules of every function:
 *	 - The caller owns all memory.  temp is device memory of the size that the
 *	   function's ..._bytes tells for the same arguments, aligned to 256 bytes.
 *	   Nothing is allocated or kept.  Inputs are not changed but where said.
 *	 - The status returned is a cudaError_t, or what the caller's wait returned.
 *	   After an error the outputs are undefined, and work may still be under way
 *	   on the stream.
 *	 - Work goes to one stream of the current device.  Where the host has to
 *	   know something the function waits for the stream, and says so.
 *	 - 0 to GPUSORT_DEVICE_SORT_MAX_ROWS rows.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DEVICE_SORT_H
#define GPUSORT_DEVICE_SORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sort/compact.h"
#include "sort/key_source.h"

#define GPUSORT_DEVICE_SORT_MAX_ROWS (UINT32_MAX - 1)

/* Bytes of memory that the host and the device share; see GpuSortDeviceWait. */
#define GPUSORT_DEVICE_SORT_MIRROR_BYTES 4096

/* cudaStream_t */
typedef struct CUstream_st *GpuSortStream;

/* The order that the rows are known to have. */
typedef enum GpuSortInputOrder
{
	GPUSORT_INPUT_UNKNOWN,
	GPUSORT_INPUT_SORTED,   /* no key is larger than the next */
	GPUSORT_INPUT_REVERSED, /* each key is larger than the next */
} GpuSortInputOrder;

/*
 * How the host waits, and what it reads then.
 *
 * mirror is GPUSORT_DEVICE_SORT_MIRROR_BYTES of host memory, pinned if copies are
 * not to block; one sort at a time may use it.  wait returns 0 once all work given
 * to the stream before is done; anything else ends the sort, which returns it: a
 * CUDA error, or the caller's own code, say because the sort was cancelled.  It is
 * called at least once per round over tied rows.  NULL: cudaStreamSynchronize.
 */
typedef struct GpuSortDeviceWait
{
	void *mirror;
	int (*wait)(void *context, GpuSortStream stream);
	void *context;
} GpuSortDeviceWait;

typedef struct GpuSortDeviceSort
{
	GpuSortKeySource source;
	const GpuSortPackPlan *plan; /* of the same key_words; right for all rows */
	uint32_t rows;
	GpuSortInputOrder order;

	/*
	 * The partial keys of all rows, in row order, in device memory, if the caller has
	 * made them; they are gone afterwards.  NULL: they are made from the source.
	 */
	uint32_t *partial_keys;

	/* The caller has counted the digits of these partial keys; see gpusort_device_sort_begin. */
	bool counted;

	/* Device memory for the partial keys in order, or NULL; may be partial_keys.  Undefined with a limit. */
	uint32_t *sorted_partial_keys;

	/*
	 * The sort may use other numbers than the top bits of packed keys and put those where
	 * partial keys are wanted: of two rows the one with the smaller number has the smaller key, of
	 * two with equal ones nothing is known.  Up to 32 packed bits they are the partial keys.
	 * Always allowed if partial keys are neither given nor wanted.
	 */
	bool any_partial_keys;

	/* Only the first so many rows are wanted; 0: all. */
	uint32_t limit;

	/* With a limit: all rows whose key equals the last wanted row's are wanted as well. */
	bool limit_ties;

	/* Used if packed_bits > 32, or with a limit. */
	GpuSortDeviceWait wait;
} GpuSortDeviceSort;

/* What a sort gives beside the row ids. */
typedef struct GpuSortDeviceSorted
{
	uint32_t rows;  /* so many of the ids are the result */
	bool has_codes; /* sorted_partial_keys are not the top bits of packed keys (any_partial_keys) */
} GpuSortDeviceSorted;

/*
 * Bytes of temp for a sort.  The memory that *sort points to need not be there yet:
 * all that matters of partial_keys and sorted_partial_keys is whether they are NULL.  About
 * 20.1 bytes per row, 20.4 beyond 32 packed bits (with CUB as the core 20.2 and 28.6), 4 less
 * with partial keys given.
 */
extern int gpusort_device_sort_bytes(const GpuSortDeviceSort *sort, size_t *temp_bytes);

/*
 * Begins a sort whose caller makes the partial keys and counts their digits in the same pass,
 * which saves a read of them.  sort->partial_keys is set.  *histogram is memory in temp, zero
 * when the stream gets there, for the counts, as gpusort_radix_begin in radix_sort.h says;
 * NULL if the core does not use them.  After that gpusort_device_sort is called with the same
 * sort, `counted` set, and the same temp.
 */
extern int gpusort_device_sort_begin(const GpuSortDeviceSort *sort, void *temp, size_t temp_bytes,
									 uint32_t **histogram, GpuSortStream stream);

/*
 * Sorts.  ids is device memory for `rows` uint32_t whatever the limit is; the first
 * sorted->rows of them are the result, the others undefined: all rows without a limit.
 * sorted may be NULL.
 *
 * Does not wait up to 32 packed bits and for input in order, unless there is a limit.
 * Otherwise waits at least once, twice per round over long runs
 * of tied rows, and with many rows once or twice for a sample;
 * the last kernels may still be under way when it returns.
 */
extern int gpusort_device_sort(const GpuSortDeviceSort *sort, void *temp, size_t temp_bytes, uint32_t *ids,
							   GpuSortDeviceSorted *sorted, GpuSortStream stream);

#endif /* GPUSORT_DEVICE_SORT_H */
