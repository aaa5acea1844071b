/*-------------------------------------------------------------------------
 *
 * sort_state.h
 *	  What one sort knows, and the steps it goes through, each in its own file
 *	  in the order of the data's path:
 *
 *		shard.cu		a sort's beginning and end on each of its devices
 *		upload.cu		reserve and put: chunks to a device, statistics of the keys
 *		sort.cu			the steps from the last chunk to rows in order
 *		pack.cu			row refs and the partial keys of packed keys
 *		redistribute.cu	the same, each on the device that sorts the row
 *		device_sort.cu	row ids in order
 *		order.cu		check, equal neighbours, refs in order, where rows end
 *		pick.cu			the first rows of runs, if only those are wanted
 *		tie_flags.cu	rows that need a tie-break
 *		gather.cu		emit: rows in order, chunk by chunk
 *		lookup.cu		sorted rows' keys by number, and numbers by key
 *
 * A sort has a shard on each device that it uses, mostly one.  Its chunks are
 * numbered in the order they were put, whatever device they lie on, and a row is
 * told by its chunk and its place there (row_ref.h) on every device.
 *
 * A sort belongs to one thread.  All kernels of a shard run on its
 * lane's compute stream, so each sees what those before it wrote;
 * the copies stream only moves chunks.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_STATE_H
#define GPUSORT_SORT_STATE_H

#include <stddef.h>
#include <stdint.h>

#include "engine/chunk.h"
#include "engine/device_memory.h"
#include "engine/tie_flags.h"
#include "service/engine.h"
#include "sort/compact.h"
#include "sort/device_sort.h"
#include "sort/key_stats.h"

struct GpuSortCudaDevice;
struct GpuSortDeviceSet;
struct GpuSortLane;
struct GpuSortRedistribution;

/* The most devices that one sort uses. */
#define GPUSORT_SHARDS_MAX 16

/* Leaves room for kernels that count beyond the last row. */
#define GPUSORT_CUDA_MAX_ROWS (UINT32_MAX - (UINT32_C(1) << 20))

/* Threads of every block of every kernel. */
#define GPUSORT_THREADS 256

/* All lanes of a warp, as a mask. */
#define GPUSORT_FULL_WARP 0xFFFFFFFF

/* At most so many blocks count ties, each writing one summary. */
#define GPUSORT_TIE_BLOCKS 1024

/* Rows of one output chunk. */
typedef struct GpuSortCut
{
	uint64_t first_word; /* words of all rows before them */
	uint32_t first_row;
	uint32_t rows;
	uint32_t words;
	uint32_t tie_rows; /* of the rows, with TIE_NEXT */
} GpuSortCut;

/* What kernels tell the host; one in device memory, one mirror in pinned memory. */
typedef struct GpuSortDeviceState
{
	/* over all rows put */
	GpuSortKeyStats keys;
	uint32_t bad_rows; /* rows whose offset or length is out of bounds */

	/* checks of the result */
	uint32_t unordered;  /* pairs of neighbours that are out of order */
	uint32_t bad_ids;    /* row ids that no row has */
	uint32_t short_rows; /* rows without room for a count */
	uint32_t up_to;      /* rows that come no later than the last one emitted */
	uint32_t id_xor;
	uint32_t equal_rows; /* rows with the key of the last row that another shard emits */
	uint64_t id_sum;

	uint64_t total_words; /* of all rows; in the mirror only */
	uint64_t kept_rows;   /* pick.cu's, and one more */
	GpuSortCut cuts[2];   /* one per staging buffer */
	GpuSortTieSummary ties[GPUSORT_TIE_BLOCKS];
} GpuSortDeviceState;

/* Where things are in a shard's work block; regions are reused as they fall free. */
typedef struct GpuSortWork
{
	GpuSortRowRef *refs; /* by row id */
	uint32_t *ids;       /* in order, once they are sorted */
	/* of packed keys: by row id, then in order; NULL if the input is in order already */
	uint32_t *partial_keys;
	bool has_ordered_keys; /* partial_keys are in order */
	bool has_codes;        /* and codes for skewed keys (quantile_map.h), not the packed keys' first bits */
	void *temp;            /* the device sort's */
	size_t temp_bytes;
	/* in the room of partial keys and temp, once the order is checked; pick.cu: in that of refs */
	GpuSortRowRef *sorted_refs;
	/* in the room of refs, after sorted_refs, or the other way round: words of all rows up to and with this one */
	uint64_t *ends;
	uint64_t *tile_words; /* words of a tile's rows, then of all rows before it (order.cu) */
	/*
	 * a bit per sorted row: its key equals the next one's, and from tie_flags.cu on: and the
	 * row's key is truncated. NULL unless may_tie, or, until pick.cu, run_peers
	 */
	uint32_t *equal;
	uint32_t *same;             /* with run_rows, a bit per sorted row: the next one is of the same run */
	GpuSortDeviceChunk *chunks; /* by chunk number; a copy on each device */
} GpuSortWork;

/* A piece of device memory that chunks are copied to, one behind the other. */
typedef struct GpuSortSlab
{
	GpuSortBlock block;
	size_t used;
} GpuSortSlab;

/* A reserve that no put has used up yet. */
typedef struct GpuSortChunkReserve
{
	uint32_t rows_max;
	uint32_t shard; /* where its chunk goes */
} GpuSortChunkReserve;

/* What a sort has on one device. */
typedef struct GpuSortShard
{
	struct GpuSort *sort;
	struct GpuSortCudaDevice *device;
	struct GpuSortLane *lane;

	/* ingest */
	uint64_t rows_put;        /* on this device */
	uint32_t chunks_reserved; /* that may be put here */
	uint64_t rows_reserved;   /* in them, at most */
	GpuSortDeviceReservation reservation;
	GpuSortSlab *slabs;
	uint32_t slab_count;
	uint32_t slabs_size; /* of the array */

	/* sorting */
	uint32_t rows; /* that this device sorts */
	/* of them, the first so many are to be emitted, and rows that tie with the last of them */
	uint32_t wanted;
	GpuSortBlock redistribution_block; /* redistribute.cu's */
	GpuSortBlock work_block;
	GpuSortWork work;

	/* emit */
	uint32_t rows_out;    /* that this device emits: all it sorts, or the first of them or of each run */
	uint64_t first_out;   /* number of the first of them in the order of the whole sort */
	GpuSortBlock staging; /* two buffers of GPUSORT_CHUNK_BYTES */
	int ahead;            /* the buffer that rows were gathered into that are not asked for yet, or -1 */
	/* the first of them, and the row before which they end at the latest; by number in the shard */
	uint32_t ahead_first;
	uint32_t ahead_end;
	bool ahead_records; /* with their keys */
} GpuSortShard;

/* Bytes of an array with a bit for each of so many rows, and for one more. */
static inline uint64_t
gpusort_row_bits_bytes(uint64_t rows)
{
	return (rows / 32 + 1) * sizeof(uint32_t);
}

struct GpuSort
{
	const struct GpuSortDeviceSet *set; /* the engine's */
	const int *cancelled;               /* belongs to the caller */
	uint32_t key_words;
	bool may_tie;
	bool spill;     /* what does not fit goes elsewhere: the estimate is a hope, no need */
	uint64_t limit; /* rows wanted; 0: all */

	/* of each run the first rows alone (pick.cu); with run_peers, and those whose keys equal the last one's */
	uint32_t run_bits;
	uint32_t run_rows; /* 0: all */
	bool run_peers;    /* asked for, or where rows may tie */
	bool run_exact;
	bool run_counts;

	GpuSortShard shards[GPUSORT_SHARDS_MAX];
	uint32_t shard_count; /* at least 1 */

	/* ingest */
	uint64_t rows;
	uint32_t reserve_turn;         /* the shard to try first */
	GpuSortChunkReserve *reserves; /* the oldest first; host memory */
	uint32_t reserve_count;
	uint32_t reserves_size;     /* of the array */
	GpuSortDeviceChunk *chunks; /* host memory, by chunk number */
	uint32_t chunk_count;
	uint32_t chunks_size;                     /* of the array */
	GpuSortKeyStats boundary_stats;           /* of the pairs of rows that two chunks meet at, and nothing else */
	uint64_t last_key[GPUSORT_MAX_KEY_WORDS]; /* of the last row put, if known */
	bool last_key_known;

	/* sorting and emit */
	struct GpuSortRedistribution *redistribution; /* redistribute.cu's */
	GpuSortInputOrder order;                      /* of the rows as they were put */
	bool sorted;
	uint64_t rows_out; /* of all shards */
};

#endif /* GPUSORT_SORT_STATE_H */
