/*-------------------------------------------------------------------------
 *
 * device_sort.h
 *	  The device library's C edge: the order of rows that lie in device memory,
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
 *	   After an error the outputs hold nothing of use, and work may still be
 *	   under way on the stream.
 *	 - Work goes to one stream of the current device.  Where the host has to
 *	   know something the function waits for the stream, and says so.
 *	 - 0 to GPUSORT_DEVICE_SORT_MAX_ROWS rows.
 *
 * This header is C11 and C++17.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DEVICE_SORT_H
#define GPUSORT_DEVICE_SORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sort/compact.h"
#include "sort/row_ref.h"

#ifdef __cplusplus
extern "C"
{
#endif

#define GPUSORT_DEVICE_SORT_MAX_ROWS (UINT32_MAX - 1)

/* Bytes of memory that the host and the device share; see GpuSortDeviceWait. */
#define GPUSORT_DEVICE_SORT_MIRROR_BYTES 4096

	/* cudaStream_t */
	typedef struct CUstream_st *GpuSortStream;

	/* Where the keys lie, and in what form. */
	typedef enum GpuSortKeyKind
	{
		GPUSORT_KEYS_WORDS, /* key_words words each, stride_words apart, from base on */
		GPUSORT_KEYS_REFS,  /* key_words words before each row, found through refs and chunks */

		/* arrays of plain values at base, each a key of one word, made when it is read: */
		GPUSORT_KEYS_UINT32,
		GPUSORT_KEYS_INT32,
		GPUSORT_KEYS_INT64,
		GPUSORT_KEYS_FLOAT, /* PostgreSQL's order: -0 = 0, all NaN equal and largest */
		GPUSORT_KEYS_DOUBLE,
	} GpuSortKeyKind;

	typedef struct GpuSortKeySource
	{
		GpuSortKeyKind kind;
		uint32_t key_words;
		uint64_t stride_words;            /* WORDS: from one row's key to the next one's */
		const void *base;                 /* all but REFS: row 0's key */
		const GpuSortRowRef *refs;        /* REFS: of each row */
		const GpuSortDeviceChunk *chunks; /* REFS */
	} GpuSortKeySource;

	/* What is known of the order that the rows have. */
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

		/* Device memory for the partial keys in order, or NULL; may be partial_keys.  With a limit of no use. */
		uint32_t *sorted_partial_keys;

		/*
	 * The sort may go by other numbers than the top bits of packed keys and put those where
	 * partial keys are wanted: of two rows the one with the smaller number has the smaller key, of
	 * two with equal ones nothing is known.  Up to 32 packed bits they are the partial keys.
	 * Without partial keys that are given or wanted it may in any case.
	 */
		bool any_partial_keys;

		/* Only the first so many rows are wanted; 0: all. */
		uint32_t limit;

		/* With a limit: all rows whose key equals the last wanted row's are wanted as well. */
		bool limit_ties;

		/* Used if packed_bits > 32, or with a limit. */
		GpuSortDeviceWait wait;
	} GpuSortDeviceSort;

	/*
 * Bytes of temp for a sort.  The memory that *sort points to need not be there yet:
 * all that matters of partial_keys and sorted_partial_keys is whether they are NULL.  About
 * 20.1 bytes per row, 20.4 beyond 32 packed bits (with CUB as the core 20.2 and 28.6), 4 less
 * with partial keys given.
 */
	extern int gpusort_device_sort_bytes(const GpuSortDeviceSort *sort, size_t *temp_bytes);

	/*
 * For who makes partial keys and can count their digits on the way, which saves a read of
 * them.  *histogram is memory in temp, zero when the stream gets there, for how often each
 * digit occurs, as gpusort_radix_begin in radix_sort.h says; NULL if that is of no use.
 * Once they are made gpusort_device_sort takes the same sort with `counted`, and the
 * same temp.  sort->partial_keys is set.
 */
	extern int gpusort_device_sort_begin(const GpuSortDeviceSort *sort, void *temp, size_t temp_bytes, uint32_t **histogram,
										 GpuSortStream stream);

	/*
 * Sorts.  ids is device memory for `rows` uint32_t whatever the limit is; the first
 * *wanted of them are the result, the others undefined.  wanted may be NULL; it
 * is rows without a limit.
 *
 * Does not wait up to 32 packed bits and for input in order, unless there is a
 * limit.  Otherwise waits at least once, twice per round over long runs of tied rows,
 * and with many rows once or twice for a sample; the last kernels may still be under way
 * when it returns.
 */
	extern int gpusort_device_sort(const GpuSortDeviceSort *sort, void *temp, size_t temp_bytes, uint32_t *ids,
								   uint32_t *wanted, GpuSortStream stream);

	/*
 * gpusort_device_sort for an array of which nothing is known: statistics of the keys
 * in one pass, plan, sort; without statistics where there are few rows of 4 bytes, to
 * which they cost more than they save.  source.kind is not REFS.  ids is device memory for `rows`
 * uint32_t; with a limit the first so many are the result.  Waits.
 */
	extern int gpusort_device_sort_array_bytes(const GpuSortKeySource *source, uint32_t rows, uint32_t limit,
											   size_t *temp_bytes);
	extern int gpusort_device_sort_array(const GpuSortKeySource *source, uint32_t rows, uint32_t limit,
										 const GpuSortDeviceWait *wait, void *temp, size_t temp_bytes, uint32_t *ids,
										 GpuSortStream stream);

#ifdef __cplusplus
}
#endif

#endif /* GPUSORT_DEVICE_SORT_H */
