/*-------------------------------------------------------------------------
 *
 * sort_state.h
 *	  What one sort knows, and the steps it goes through, each in its own file
 *	  in the order of the data's path:
 *
 *		upload.cu		reserve and put: chunks to the device, OR and AND of the keys
 *		sort.cu			the steps from the last chunk to rows in order
 *		compact.cu		packed keys and row refs
 *		radix_sort.cu	(packed key, row id) by CUB; running sums
 *		order.cu		check, equal neighbours, refs in order
 *		tie_rows.cu			rows that tie
 *		gather.cu		emit and rewind: rows in order, chunk by chunk
 *
 * A sort belongs to one thread.  All of its kernels run on its lane's compute
 * stream, so each sees what those before it wrote; the copies stream only moves
 * chunks.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_STATE_H
#define GPUSORT_SORT_STATE_H

#include <stddef.h>
#include <stdint.h>

#include "../src/service/engine.h"
#include "compact.h"
#include "device_memory.h"
#include "row_ref.h"
#include "tie_rows.h"

struct GpuSortCudaDevice;
struct GpuSortLane;

/* CUB has been seen to hang with unsigned counts next to 2^32. */
#define GPUSORT_CUDA_MAX_ROWS	(UINT32_MAX - (UINT32_C(1) << 20))

/* Threads of every block of every kernel. */
#define GPUSORT_THREADS			256

/* At most so many blocks count ties, each writing one summary. */
#define GPUSORT_TIE_BLOCKS		1024

/* Rows of one output chunk. */
typedef struct GpuSortCut
{
	uint64_t	first_word;		/* words of all rows before them */
	uint32_t	first_row;
	uint32_t	rows;
	uint32_t	words;
	uint32_t	tie_rows;		/* of them, with TIE_NEXT */
} GpuSortCut;

/* What kernels tell the host; one in device memory, one mirror in pinned memory. */
typedef struct GpuSortState
{
	/* over all rows put */
	GpuSortKeyStats keys;
	uint32_t	bad_rows;		/* rows whose offset or length is out of bounds */

	/* checks of the result */
	uint32_t	unordered;		/* pairs of neighbours that are out of order */
	uint32_t	bad_ids;		/* row ids that no row has */
	uint32_t	id_xor;
	uint64_t	id_sum;

	uint64_t	total_words;	/* of all rows; in the mirror only */
	GpuSortCut	cuts[2];		/* one per staging buffer */
	GpuSortTieSummary ties[GPUSORT_TIE_BLOCKS];
} GpuSortState;

/* Where things are in the sort's work block; regions are reused as they fall free. */
typedef struct GpuSortWork
{
	uint64_t   *refs;			/* by row id */
	void	   *keys[2];		/* packed keys, two buffers; [0] is current */
	uint32_t   *ids[2];			/* row ids, likewise */
	GpuSortRowRef *sorted_refs; /* in the room of keys, once the order is checked */
	uint64_t   *ends;			/* in the room of ids, after sorted_refs: words of all rows up to
								 * and with this one */
	uint32_t   *equal;			/* a bit per sorted row: its key equals the next one's, and from
								 * tie_rows.cu on: and the row is INEXACT.  NULL unless may_tie */
	GpuSortDeviceChunk *chunks; /* by chunk number */
	void	   *temp;			/* CUB's */
	size_t		temp_bytes;
} GpuSortWork;

/* A piece of device memory that takes chunks in, one after the other. */
typedef struct GpuSortSlab
{
	GpuSortBlock block;
	size_t		used;
} GpuSortSlab;

struct GpuSort
{
	struct GpuSortCudaDevice *device;
	struct GpuSortLane *lane;
	const int  *cancelled;		/* belongs to the caller */
	uint32_t	key_words;
	bool		may_tie;

	/* taking in */
	uint64_t	rows;
	uint32_t	reserved;		/* chunks that may be put */
	GpuSortShare share;
	GpuSortSlab *slabs;
	uint32_t	slab_count;
	uint32_t	slabs_size;
	GpuSortDeviceChunk *chunks; /* host memory, by chunk number */
	uint32_t	chunk_count;
	uint32_t	chunks_size;

	/* sorting */
	GpuSortBlock work_block;
	GpuSortWork work;
	bool		sorted;

	/* giving out */
	GpuSortBlock staging;		/* two buffers of GPUSORT_CHUNK_BYTES */
	int			ahead;			/* the buffer that the next rows are gathered into, or -1 */
	uint64_t	next_row;		/* the first row not gathered yet */
	uint64_t	next_word;
	bool		at_end;			/* the last chunk was emitted */
};

/* Fails when the sort was cancelled. */
extern int	gpusort_check_cancel(const GpuSort *sort, GpuSortError *error);

#endif							/* GPUSORT_SORT_STATE_H */
