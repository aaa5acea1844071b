/*-------------------------------------------------------------------------
 *
 * implicit_radix.cu
 *	  The implicit radix sort of L. Ha, J. Krueger, C. T. Silva, Implicit radix sorting on
 *	  GPUs (2010), section 3: digits of four bits, each sorted within a tile by two
 *	  stable four-way splits whose counters share one word, and rows scattered as
 *	  records (array of structures) but sorted as columns (structure of arrays).
 *
 * Implicit counting (3.1).  A word holds three counters of ten bits, for the digits
 * 0, 1 and 2.  A row adds 1 << 10 * digit, or nothing if its digit is 3; so one prefix
 * sum counts all four digits, as the rows before place i with digit 3 are those
 * of the i that the other counters miss.
 *
 * A tile has 1024 rows.  Ten bits count up to 1023, which is enough for the rows
 * *before* one, but not for all of a tile: when all have one digit, the sum over the
 * tile carries into the next counter.  So that sum is never formed.  What starts
 * where in the tile comes from the counters before the last thread's rows, whose
 * own rows are then added one digit at a time.
 *
 * Hybrid data (3.2).  A pass has three steps:
 *
 *	1. Each tile reads records, sorts them by the digit in shared memory, and writes
 *	   keys and ids as columns in their tile's order, with the counts and starts of the 16
 *	   digits.  The first pass reads columns: the input.
 *	2. Prefix sums over the counts of (digit, tile), digit first.
 *	3. Each tile reads its columns again and scatters records: runs of whole records are
 *	   twice as wide as runs of keys.  The last pass scatters columns: the output.
 *
 * In shared memory the rows that one thread owns (four consecutive ones) lie in four
 * arrays, which keeps wide accesses free of bank conflicts (figure 3); here each is
 * 8 words longer than the thread count, which keeps the strided ones free, too.
 *
 * Range limiter (3.3, a reference of its own): the smallest key is subtracted while
 * sorting, and digits above the range are not sorted.  Floating-point keys squeezed
 * into fewer bits, which sort approximately only, are left out.
 *
 * What differs from the paper, and why: prefix sums go by shuffles and through one
 * word per warp; records are read by 16-byte loads rather than textures; 64-bit keys,
 * which the paper has not, make records of 16 bytes.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "published/common.h"

#define THREADS      256
#define ITEMS        4 /* rows per thread: the paper's int2 x 4 */
#define TILE         (THREADS * ITEMS)
#define COLUMN       (THREADS + 8) /* places of one of the ITEMS arrays in shared memory */
#define SPLIT_BITS   2
#define COUNTER_BITS 10
#define COUNTER_MASK ((1u << COUNTER_BITS) - 1)
#define DIGIT_BITS   4
#define DIGITS       (1 << DIGIT_BITS)
#define MOST_ROWS    (UINT32_MAX - 1)

/* A row as it is scattered; all of its bytes are written. */
template <typename Key, bool WITH_IDS>
struct Record;

template <>
struct Record<uint32_t, true>
{
	uint32_t key;
	uint32_t id;
};

template <>
struct Record<uint64_t, true>
{
	uint64_t key;
	uint32_t id;
	uint32_t unused;
};

template <typename Key>
struct Record<Key, false>
{
	Key key;
};

/* What one thread reads at once. */
template <typename Type>
struct __align__(16) Four
{
	Type items[ITEMS];
};

static __device__ inline void
set_id(Record<uint32_t, true> *record, uint32_t id)
{
	record->id = id;
}

static __device__ inline void
set_id(Record<uint64_t, true> *record, uint32_t id)
{
	record->id = id;
	record->unused = 0;
}

template <typename Key>
static __device__ inline void
set_id(Record<Key, false> *, uint32_t)
{
}

static __device__ inline uint32_t
id_of(const Record<uint32_t, true> *record)
{
	return record->id;
}

static __device__ inline uint32_t
id_of(const Record<uint64_t, true> *record)
{
	return record->id;
}

template <typename Key>
static __device__ inline uint32_t
id_of(const Record<Key, false> *)
{
	return 0;
}

/* Four consecutive items from `place` on, of which the first `left` are there. */
template <typename Type>
static __device__ inline Four<Type>
load_four(const Type *items, uint32_t place, uint32_t left)
{
	Four<Type> four;

	if (left >= ITEMS)
		return *(const Four<Type> *) (items + place);
	for (int i = 0; i < ITEMS; i++)
	{
		if (i < (int) left)
			four.items[i] = items[place + i];
		else
			memset(&four.items[i], 0, sizeof(Type));
	}
	return four;
}

/* Where place p of a tile lies in shared memory. */
static __device__ inline uint32_t
column_place(uint32_t place)
{
	return place % ITEMS * COLUMN + place / ITEMS;
}

template <typename Key>
static __device__ inline uint32_t
digit_at(Key key, int shift, int bits)
{
	return (uint32_t) (key >> shift) & ((1u << bits) - 1);
}

/*
 * Sorts the tile in shared memory stably by the two bits at `shift`; each thread brings its four
 * rows, and finds four others afterwards.
 */
template <typename Key, bool WITH_IDS>
static __device__ inline void
split_four_ways(Key *my_keys, uint32_t *my_ids, int shift, Key *keys, uint32_t *ids, uint32_t *warp_sums,
				uint32_t *starts)
{
	uint32_t before[ITEMS];
	uint32_t sum = 0;

	for (int i = 0; i < ITEMS; i++)
	{
		const uint32_t digit = digit_at(my_keys[i], shift, SPLIT_BITS);

		before[i] = sum;
		sum += (uint32_t) (digit < 3) << (COUNTER_BITS * digit);
	}
	sum = gpusort_block_sum_before(sum, warp_sums, NULL);

	if (threadIdx.x == THREADS - 1)
	{
		uint32_t counts[3];

		for (uint32_t digit = 0; digit < 3; digit++)
		{
			counts[digit] = sum >> (COUNTER_BITS * digit) & COUNTER_MASK;
			for (int i = 0; i < ITEMS; i++)
				counts[digit] += digit_at(my_keys[i], shift, SPLIT_BITS) == digit ? 1 : 0;
		}
		starts[0] = 0;
		starts[1] = counts[0];
		starts[2] = counts[0] + counts[1];
		starts[3] = counts[0] + counts[1] + counts[2];
	}
	__syncthreads();

	for (int i = 0; i < ITEMS; i++)
	{
		const uint32_t digit = digit_at(my_keys[i], shift, SPLIT_BITS);
		const uint32_t counters = sum + before[i];
		uint32_t place = starts[digit];

		if (digit < 3)
			place += counters >> (COUNTER_BITS * digit) & COUNTER_MASK;
		else
			place += threadIdx.x * ITEMS + i - (counters & COUNTER_MASK) -
				(counters >> COUNTER_BITS & COUNTER_MASK) - (counters >> (2 * COUNTER_BITS) & COUNTER_MASK);
		place = column_place(place);
		keys[place] = my_keys[i];
		if (WITH_IDS)
			ids[place] = my_ids[i];
	}
	__syncthreads();
	for (int i = 0; i < ITEMS; i++)
	{
		my_keys[i] = keys[i * COLUMN + threadIdx.x];
		if (WITH_IDS)
			my_ids[i] = ids[i * COLUMN + threadIdx.x];
	}
}

/* One pass, by the digit at `shift`. */
template <typename Key, bool WITH_IDS>
struct Pass
{
	const Key *columns; /* the input, in the first pass; else NULL: records are read */
	Key bias;           /* what is subtracted from the input's keys, and added to the output's */
	Record<Key, WITH_IDS> *records;
	uint32_t rows;
	int shift;
	bool last;     /* writes the output, not records */
	Key *keys;     /* in order within each tile */
	uint32_t *ids; /* of them */
	Key *keys_out; /* in the last pass */
	uint32_t *ids_out;
};

/*
 * Step 1.  To pass.keys and ids.  starts[tile * 16 + digit] is where the digit starts in the
 * tile, counts[digit * tiles + tile] how many there are.
 */
template <typename Key, bool WITH_IDS>
static __global__ void
sort_tiles(const Pass<Key, WITH_IDS> pass, uint16_t *starts, uint32_t *counts)
{
	const Record<Key, WITH_IDS> *records = pass.records;
	const Key *columns = pass.columns;
	const Key bias = pass.bias;
	const uint32_t rows = pass.rows;
	const int shift = pass.shift;
	__shared__ Key keys[ITEMS * COLUMN];
	__shared__ uint32_t ids[WITH_IDS ? ITEMS * COLUMN : 1];
	__shared__ uint32_t warp_sums[THREADS / GPUSORT_WARP];
	__shared__ uint32_t split_starts[1 << SPLIT_BITS];
	__shared__ uint32_t first[DIGITS];
	__shared__ uint32_t end[DIGITS];
	const uint32_t start = blockIdx.x * TILE;
	const uint32_t valid = rows - start < TILE ? rows - start : TILE;
	const uint32_t place = threadIdx.x * ITEMS;
	const uint32_t mine = place < valid ? valid - place : 0;
	Key my_keys[ITEMS];
	uint32_t my_ids[ITEMS] = {0};

	if (columns != NULL)
	{
		const Four<Key> four = load_four(columns + start, place, mine);

		for (int i = 0; i < ITEMS; i++)
		{
			my_keys[i] = four.items[i] - bias;
			my_ids[i] = start + place + i;
		}
	}
	else
	{
		const Four<Record<Key, WITH_IDS>> four = load_four(records + start, place, mine);

		for (int i = 0; i < ITEMS; i++)
		{
			my_keys[i] = four.items[i].key;
			my_ids[i] = id_of(&four.items[i]);
		}
	}

	/* Padding has the largest digit and is last, so it stays last. */
	for (int i = 0; i < ITEMS; i++)
	{
		if (i >= (int) mine)
		{
			my_keys[i] = (Key) ~(Key) 0;
			my_ids[i] = GPUSORT_PAD_ID;
		}
	}

	if (threadIdx.x < DIGITS)
		first[threadIdx.x] = end[threadIdx.x] = 0;
	for (int split = 0; split < DIGIT_BITS; split += SPLIT_BITS)
		split_four_ways<Key, WITH_IDS>(my_keys, my_ids, shift + split, keys, ids, warp_sums, split_starts);

	for (uint32_t p = threadIdx.x; p < valid; p += THREADS)
	{
		const Key key = keys[column_place(p)];
		const uint32_t digit = digit_at(key, shift, DIGIT_BITS);

		if (p == 0)
			first[digit] = 0;
		else
		{
			const uint32_t previous = digit_at(keys[column_place(p - 1)], shift, DIGIT_BITS);

			if (previous != digit)
			{
				first[digit] = p;
				end[previous] = p;
			}
		}
		if (p == valid - 1)
			end[digit] = valid;
		pass.keys[start + p] = key;
		if (WITH_IDS)
			pass.ids[start + p] = ids[column_place(p)];
	}
	__syncthreads();
	if (threadIdx.x < DIGITS)
	{
		starts[(uint64_t) blockIdx.x * DIGITS + threadIdx.x] = (uint16_t) first[threadIdx.x];
		counts[(uint64_t) threadIdx.x * gridDim.x + blockIdx.x] = end[threadIdx.x] - first[threadIdx.x];
	}
}

/* Step 3.  To records, or in the last pass to keys_out and ids_out with the bias added again. */
template <typename Key, bool WITH_IDS>
static __global__ void
scatter_tiles(const Pass<Key, WITH_IDS> pass, const uint16_t *starts, const uint32_t *offsets)
{
	Record<Key, WITH_IDS> *records = pass.last ? NULL : pass.records;
	const Key *keys = pass.keys;
	const uint32_t *ids = pass.ids;
	const uint32_t rows = pass.rows;
	const int shift = pass.shift;
	__shared__ uint32_t to_global[DIGITS];
	const uint32_t start = blockIdx.x * TILE;
	const uint32_t valid = rows - start < TILE ? rows - start : TILE;

	if (threadIdx.x < DIGITS)
		to_global[threadIdx.x] = offsets[(uint64_t) threadIdx.x * gridDim.x + blockIdx.x] -
			starts[(uint64_t) blockIdx.x * DIGITS + threadIdx.x];
	__syncthreads();
	for (uint32_t p = threadIdx.x; p < valid; p += THREADS)
	{
		const Key key = keys[start + p];
		const uint32_t target = to_global[digit_at(key, shift, DIGIT_BITS)] + p;

		if (records != NULL)
		{
			Record<Key, WITH_IDS> record;

			record.key = key;
			set_id(&record, WITH_IDS ? ids[start + p] : 0);
			records[target] = record;
		}
		else
		{
			pass.keys_out[target] = key + pass.bias;
			if (WITH_IDS)
				pass.ids_out[target] = ids[start + p];
		}
	}
}

/* All keys are the same: they are in order. */
template <typename Key>
static __global__ void
copy_rows(const Key *keys, uint32_t rows, Key *keys_out, uint32_t *ids_out)
{
	const uint64_t row = (uint64_t) blockIdx.x * THREADS + threadIdx.x;

	if (row >= rows)
		return;
	keys_out[row] = keys[row];
	if (ids_out != NULL)
		ids_out[row] = (uint32_t) row;
}

typedef struct Buffers
{
	void *records;
	void *keys;
	uint32_t *ids;
	uint16_t *starts;
	uint32_t *counts;
	uint32_t *scratch;
	uint64_t *range;
} Buffers;

static int
record_bytes(int key_bytes, bool with_ids)
{
	return with_ids ? 2 * key_bytes : key_bytes;
}

static Buffers
cut_temp(GpuSortTemp *temp, uint32_t rows, int key_bytes, bool with_ids)
{
	const uint64_t counts = (uint64_t) gpusort_blocks(rows, TILE) * DIGITS;
	Buffers buffers;

	buffers.records = gpusort_take<char>(temp, (uint64_t) rows * record_bytes(key_bytes, with_ids));
	buffers.keys = gpusort_take<char>(temp, (uint64_t) rows * key_bytes);
	buffers.ids = gpusort_take<uint32_t>(temp, with_ids ? rows : 0);
	buffers.starts = gpusort_take<uint16_t>(temp, counts);
	buffers.counts = gpusort_take<uint32_t>(temp, counts);
	buffers.scratch = gpusort_take<uint32_t>(temp, gpusort_prefix_sum_scratch(counts));
	buffers.range = gpusort_take<uint64_t>(temp, 2);
	return buffers;
}

/* Sorts by the lowest `bits` bits of (key - start), above which there are none. */
template <typename Key, bool WITH_IDS>
static cudaError_t
sort_rows(const GpuSortReferenceArgs *args, const Buffers *buffers, uint64_t start, int bits, cudaStream_t stream)
{
	const uint32_t tiles = gpusort_blocks(args->rows, TILE);
	auto sort_step = sort_tiles<Key, WITH_IDS>;
	auto scatter_step = scatter_tiles<Key, WITH_IDS>;
	Pass<Key, WITH_IDS> pass = {};

	pass.bias = (Key) start;
	pass.records = (Record<Key, WITH_IDS> *) buffers->records;
	pass.rows = args->rows;
	pass.keys = (Key *) buffers->keys;
	pass.ids = buffers->ids;
	pass.keys_out = (Key *) args->keys_out;
	pass.ids_out = args->ids_out;
	if (bits == 0)
		GPUSORT_TRY_KERNEL(copy_rows<Key>, gpusort_blocks(args->rows, THREADS), THREADS, stream,
						   (const Key *) args->keys_in, args->rows, (Key *) args->keys_out, args->ids_out);
	for (int shift = 0; shift < bits; shift += DIGIT_BITS)
	{
		pass.columns = shift == 0 ? (const Key *) args->keys_in : NULL;
		pass.shift = shift;
		pass.last = shift + DIGIT_BITS >= bits;
		GPUSORT_TRY_KERNEL(sort_step, tiles, THREADS, stream, pass, buffers->starts, buffers->counts);
		GPUSORT_TRY(gpusort_prefix_sum(buffers->counts, (uint64_t) tiles * DIGITS, buffers->scratch, stream));
		GPUSORT_TRY_KERNEL(scatter_step, tiles, THREADS, stream, pass, (const uint16_t *) buffers->starts,
						   (const uint32_t *) buffers->counts);
	}
	return cudaSuccess;
}

static cudaError_t
sort_all_bits(const GpuSortReferenceArgs *args, const Buffers *buffers, cudaStream_t stream)
{
	return GPUSORT_BY_TYPE(args, sort_rows, args, buffers, 0, 8 * args->key_bytes, stream);
}

/* Waits for the range, on which the number of passes depends. */
static cudaError_t
sort_limited(const GpuSortReferenceArgs *args, const Buffers *buffers, cudaStream_t stream)
{
	uint64_t range[2];
	int bits = 0;

	GPUSORT_TRY(gpusort_key_range(args->keys_in, args->rows, args->key_bytes, buffers->range, stream));
	GPUSORT_TRY(cudaMemcpyAsync(range, buffers->range, sizeof(range), cudaMemcpyDeviceToHost, stream));
	GPUSORT_TRY(cudaStreamSynchronize(stream));
	for (uint64_t width = range[1] - range[0]; width != 0; width >>= 1)
		bits++;
	return GPUSORT_BY_TYPE(args, sort_rows, args, buffers, range[0], bits, stream);
}

/* Each of a pass's two kernels reads and writes all rows; the first and the last know no records. */
static double
bytes_per_row(uint32_t, int key_bytes, bool with_ids)
{
	const int passes = 8 * key_bytes / DIGIT_BITS;
	const int row = key_bytes + (with_ids ? 4 : 0);
	const double counts = (4.0 * 5 + 2 * 2) * DIGITS / TILE; /* counts as in satish-radix, starts */

	return passes * (2.0 * row + counts) + key_bytes + row + (passes - 1) * 2.0 * record_bytes(key_bytes, with_ids);
}

/* The same for keys at random, which have all bits, and the look for their range. */
static double
bytes_per_row_limited(uint32_t rows, int key_bytes, bool with_ids)
{
	return key_bytes + bytes_per_row(rows, key_bytes, with_ids);
}

const GpuSortReference gpusort_implicit_radix = {
	"implicit-radix",
	"Ha, Krueger, Silva, Implicit radix sorting on GPUs, 2010, 3.1 and 3.2",
	false,
	GPUSORT_REFERENCE_KEYS_4 | GPUSORT_REFERENCE_KEYS_8 | GPUSORT_REFERENCE_PAIRS_4 | GPUSORT_REFERENCE_PAIRS_8,
	true,
	false,
	MOST_ROWS,
	gpusort_cut_bytes<&gpusort_implicit_radix, cut_temp>,
	gpusort_cut_and_sort<&gpusort_implicit_radix, cut_temp, sort_all_bits>,
	bytes_per_row,
};

const GpuSortReference gpusort_implicit_radix_limited = {
	"implicit-radix-limited",
	"Ha, Krueger, Silva, Implicit radix sorting on GPUs, 2010, 3.3",
	false,
	GPUSORT_REFERENCE_KEYS_4 | GPUSORT_REFERENCE_KEYS_8 | GPUSORT_REFERENCE_PAIRS_4 | GPUSORT_REFERENCE_PAIRS_8,
	true,
	true,
	MOST_ROWS,
	gpusort_cut_bytes<&gpusort_implicit_radix_limited, cut_temp>,
	gpusort_cut_and_sort<&gpusort_implicit_radix_limited, cut_temp, sort_limited>,
	bytes_per_row_limited,
};
