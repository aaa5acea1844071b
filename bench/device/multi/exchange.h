/*-------------------------------------------------------------------------
 *
 * exchange.h
 *	  What sorts over several devices are made of: splitters, the partition of a
 *	  chunk into bins, and the reading of a bin's pieces from all devices.
 *
 * Rows are ordered by (key, row number).  Splitters are such pairs, ascending;
 * bin b holds the rows that are not below splitter b - 1 and below splitter b.  As
 * no two pairs are equal, any row can be a splitter and a key that all rows share
 * is cut as well as any other.
 *
 * Each device partitions what it has into all bins, in its own memory and stably.
 * A bin's pieces are then read by the device that sorts it, in the order of their
 * rows: so the bin is in row order before it is sorted, and a stable sort by the
 * key alone gives the order of the pairs.  Nothing needs room for more rows than
 * there are: sizes are known when pieces are read.
 *
 * Bytes of device memory moved per row of K bytes: partition 2 K read, K written,
 * and 4 written for row numbers; reading a piece K + 4 over the link and K + 4
 * written.
 *
 * Nothing here waits for the device.  Work goes to a stream of the current device;
 * memory is the caller's.  Where a status is returned, it is cudaErrorInvalidValue for
 * arguments out of range and otherwise that of the kernels' start.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_EXCHANGE_H
#define GPUSORT_EXCHANGE_H

#include <stddef.h>
#include <stdint.h>

#include <cuda_runtime.h>

#define GPUSORT_EXCHANGE_MAX_BINS    256
#define GPUSORT_EXCHANGE_MAX_SOURCES 16
#define GPUSORT_PARTITION_MAX_ROWS   0x80000000u

typedef struct GpuSortSplitter
{
	uint64_t key;
	uint64_t row;
} GpuSortSplitter;

/*
 * Host only.  Takes `samples` rows (at most one per row), one at random from each of as many
 * equal ranges of the rows, and sets bins - 1 splitters that cut the sorted sample
 * evenly.  samples is at least bins, key_bytes is 4 or 8.  scratch holds `samples`
 * splitters.  A bin's share of the rows varies by about 1 / sqrt(samples / bins).
 */
extern void gpusort_choose_splitters(const void *keys, uint32_t key_bytes, uint64_t rows, uint32_t bins,
									 uint64_t samples, uint64_t seed, GpuSortSplitter *scratch,
									 GpuSortSplitter *splitters);

typedef struct GpuSortPartition
{
	const void *keys;                 /* unsigned, of key_bytes */
	uint32_t key_bytes;               /* 4 or 8 */
	uint32_t rows;                    /* at most GPUSORT_PARTITION_MAX_ROWS */
	uint64_t first_row;               /* number of the first of them */
	const GpuSortSplitter *splitters; /* bins - 1, in device memory */
	uint32_t bins;                    /* 1 to GPUSORT_EXCHANGE_MAX_BINS */

	/* Out: bin after bin, within a bin in the order of the rows. */
	void *keys_out;
	uint32_t *rows_out; /* the rows' numbers, low 32 bits, or NULL */
	uint32_t *bin_rows; /* rows of each bin */
} GpuSortPartition;

/* Returns the bytes of device memory that gpusort_partition takes for so many rows and bins. */
extern size_t gpusort_partition_temp_bytes(uint32_t rows, uint32_t bins);

/* Partitions a chunk's rows, stably.  temp is device memory, aligned to 4 bytes. */
extern cudaError_t gpusort_partition(const GpuSortPartition *partition, void *temp, cudaStream_t stream);

/* Rows of a bin that lie side by side: what one chunk has of it. */
typedef struct GpuSortBinPiece
{
	uint64_t from_row; /* in its source's array */
	uint32_t source;
	uint32_t rows;   /* not 0 */
	uint32_t to_row; /* in the bin: the sum of rows of the pieces before */
	uint32_t unused;
} GpuSortBinPiece;

/* The same array on each source. */
typedef struct GpuSortSources
{
	const void *base[GPUSORT_EXCHANGE_MAX_SOURCES];
} GpuSortSources;

/*
 * Reads the pieces' rows of row_bytes, a multiple of 4, to `to`.  pieces is in device
 * memory; the sources' memory must be accessible to the current device.  `rows` is
 * the pieces' sum.  All pieces are read at a time, so devices that read do not queue
 * for one source after the other.  At most GPUSORT_EXCHANGE_MAX_SOURCES sources.
 */
extern cudaError_t gpusort_read_pieces(const GpuSortSources *sources, uint32_t row_bytes, const GpuSortBinPiece *pieces,
									   uint32_t piece_count, uint32_t rows, void *to, cudaStream_t stream);

/* to[i] = from[numbers[i] - first], rows of row_bytes, a multiple of 4. */
extern cudaError_t gpusort_move_rows(const void *from, uint32_t row_bytes, const uint32_t *numbers, uint32_t first,
									 uint32_t rows, void *to, cudaStream_t stream);

/* words[i] = the 32 bits of keys[numbers[i]] from bit `shift` on; numbers NULL: of keys[i]. */
extern cudaError_t gpusort_key_words(const uint64_t *keys, const uint32_t *numbers, uint32_t rows, int shift,
									 uint32_t *words, cudaStream_t stream);

#endif /* GPUSORT_EXCHANGE_H */
