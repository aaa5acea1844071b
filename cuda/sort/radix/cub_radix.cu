/*-------------------------------------------------------------------------
 *
 * cub_radix.cu
 *	  CUB's radix sort as a radix core; see radix_backend.h.
 *
 * CUB sorts pairs from one place to another.  What it lacks takes room in temp: row numbers
 * where no ids are given, keys where none are wanted, and outputs of a sort in place, which
 * are copied at the end.
 * 16.2 bytes of temp a row, half of them CUB's own.
 *
 * Where CUDA is emulated, std::stable_sort stands in.
 *
 *-------------------------------------------------------------------------
 */
#include "sort/radix/radix_backend.h"

#include <stdint.h>

#include "sort/launch.h"
#include "sort/region.h"

#define NUMBER_THREADS 256

/* Where things are in temp. */
typedef struct CubLayout
{
	size_t keys; /* for keys that are not wanted, or not to be written yet */
	size_t ids;  /* row numbers, or ids that are not to be written yet */
	size_t cub;
	size_t cub_bytes;
	size_t end;
} CubLayout;

/* One call of CUB's; nothing overlaps. */
typedef struct CubPairs
{
	const uint32_t *keys_in;
	uint32_t *keys_out;
	const uint32_t *ids_in;
	uint32_t *ids_out;
	uint32_t rows;
	int bits;
} CubPairs;

#ifdef __CUDACC__

#include <cub/device/device_radix_sort.cuh>

/* With counts of 32 bits CUB has hung close to 2^32 rows; those of 64 take a sixth longer. */
#define COUNT_32_ROWS_MAX (UINT32_MAX - (UINT32_C(1) << 20))

/* With temp NULL only sets *temp_bytes. */
static cudaError_t
sort_pairs(void *temp, size_t *temp_bytes, const CubPairs *pairs, cudaStream_t stream)
{
	if (pairs->rows > COUNT_32_ROWS_MAX)
		return cub::DeviceRadixSort::SortPairs(temp, *temp_bytes, pairs->keys_in, pairs->keys_out, pairs->ids_in,
											   pairs->ids_out, (uint64_t) pairs->rows, 0, pairs->bits, stream);
	return cub::DeviceRadixSort::SortPairs(temp, *temp_bytes, pairs->keys_in, pairs->keys_out, pairs->ids_in,
										   pairs->ids_out, pairs->rows, 0, pairs->bits, stream);
}

#else

#include <string.h>

#include <algorithm>
#include <numeric>
#include <vector>

/* As a kernel of one thread, so that it takes its turn in the stream. */
static void
sort_on_host(void *temp, size_t temp_bytes, CubPairs pairs)
{
	const uint32_t mask = pairs.bits == 32 ? UINT32_MAX : (1u << pairs.bits) - 1;
	std::vector<uint32_t> order(pairs.rows);

	memset(temp, 0xEE, temp_bytes);
	std::iota(order.begin(), order.end(), 0);
	std::stable_sort(order.begin(), order.end(), [=](uint32_t a, uint32_t b)
					 { return (pairs.keys_in[a] & mask) < (pairs.keys_in[b] & mask); });
	for (uint32_t i = 0; i < pairs.rows; i++)
	{
		pairs.keys_out[i] = pairs.keys_in[order[i]];
		pairs.ids_out[i] = pairs.ids_in[order[i]];
	}
}

static cudaError_t
sort_pairs(void *temp, size_t *temp_bytes, const CubPairs *pairs, cudaStream_t stream)
{
	const size_t needed = (size_t) pairs->rows * sizeof(uint64_t) + 1;

	if (temp == NULL)
		*temp_bytes = needed;
	else if (*temp_bytes < needed)
		return cudaErrorInvalidValue;
	else
		GPUSORT_START_KERNEL(sort_on_host, 1, 1, stream, temp, *temp_bytes, *pairs);
	return cudaSuccess;
}

#endif

static __global__ void
number_ids(uint32_t *ids, uint32_t rows)
{
	const uint64_t row = (uint64_t) blockIdx.x * NUMBER_THREADS + threadIdx.x;

	if (row < rows)
		ids[row] = (uint32_t) row;
}

static cudaError_t
lay_out(uint32_t rows, int bits, CubLayout *layout)
{
	const size_t rows_bytes = gpusort_region_bytes((size_t) rows * sizeof(uint32_t));
	CubPairs pairs = {};
	cudaError_t status = cudaSuccess;

	*layout = {};
	pairs.rows = rows;
	pairs.bits = bits;
	if (rows > 0 && bits > 0)
		status = sort_pairs(NULL, &layout->cub_bytes, &pairs, NULL);
	layout->ids = rows_bytes;
	layout->cub = 2 * rows_bytes;
	layout->end = layout->cub + gpusort_region_bytes(layout->cub_bytes);
	return status;
}

static cudaError_t
cub_temp_bytes(uint32_t rows, int bits, size_t *temp_bytes)
{
	CubLayout layout;
	cudaError_t status = lay_out(rows, bits, &layout);

	*temp_bytes = layout.end;
	return status;
}

/* CUB counts digits itself. */
static cudaError_t
cub_begin(void *, size_t, uint32_t, int, uint32_t **histogram, cudaStream_t)
{
	*histogram = NULL;
	return cudaSuccess;
}

static cudaError_t
copy_words(uint32_t *to, const uint32_t *from, uint32_t rows, cudaStream_t stream)
{
	return cudaMemcpyAsync(to, from, rows * sizeof(uint32_t), cudaMemcpyDeviceToDevice, stream);
}

static cudaError_t
cub_sort(const GpuSortRadixSort *sort, cudaStream_t stream)
{
	CubLayout layout;
	CubPairs pairs = {};
	cudaError_t status = lay_out(sort->rows, sort->bits, &layout);
	char *base = (char *) sort->temp;
	const bool keys_apart = sort->keys_out == NULL || sort->keys_out == sort->keys_in;
	const bool ids_apart = sort->ids_out == sort->ids_in;

	if (status != cudaSuccess)
		return status;
	if (layout.end > sort->temp_bytes)
		return cudaErrorInvalidValue;
	pairs.keys_in = sort->keys_in;
	pairs.keys_out = keys_apart ? (uint32_t *) (base + layout.keys) : sort->keys_out;
	pairs.ids_in = sort->ids_in;
	pairs.ids_out = ids_apart ? (uint32_t *) (base + layout.ids) : sort->ids_out;
	pairs.rows = sort->rows;
	pairs.bits = sort->bits;
	if (sort->ids_in == NULL)
	{
		uint32_t *ids = (uint32_t *) (base + layout.ids);

		GPUSORT_START_KERNEL(number_ids, (sort->rows - 1) / NUMBER_THREADS + 1, NUMBER_THREADS, stream, ids,
							 sort->rows);
		if ((status = cudaGetLastError()) != cudaSuccess)
			return status;
		pairs.ids_in = ids;
	}

	/* by no bits the order is what it was */
	if (sort->bits > 0)
		status = sort_pairs(base + layout.cub, &layout.cub_bytes, &pairs, stream);
	else if ((status = copy_words(pairs.keys_out, pairs.keys_in, sort->rows, stream)) == cudaSuccess)
		status = copy_words(pairs.ids_out, pairs.ids_in, sort->rows, stream);
	if (status == cudaSuccess && sort->keys_out != NULL && keys_apart)
		status = copy_words(sort->keys_out, pairs.keys_out, sort->rows, stream);
	if (status == cudaSuccess && ids_apart)
		status = copy_words(sort->ids_out, pairs.ids_out, sort->rows, stream);
	return status;
}

/* Inputs lie behind what a sort takes of temp, outputs where it would put what is not wanted. */
static cudaError_t
cub_room_bytes(uint32_t rows, size_t *temp_bytes)
{
	CubLayout layout;
	cudaError_t status = lay_out(rows, 32, &layout);

	*temp_bytes = layout.end + 2 * gpusort_region_bytes((size_t) rows * sizeof(uint32_t));
	return status;
}

static cudaError_t
cub_room(void *temp, uint32_t rows, int bits, GpuSortRadixRoom *room)
{
	CubLayout layout;
	cudaError_t status = lay_out(rows, bits, &layout);
	char *in = (char *) temp + layout.end;

	room->keys_in = (uint32_t *) in;
	room->ids_in = (uint32_t *) (in + gpusort_region_bytes((size_t) rows * sizeof(uint32_t)));
	room->keys_out = (uint32_t *) ((char *) temp + layout.keys);
	room->ids_out = (uint32_t *) ((char *) temp + layout.ids);
	return status;
}

const GpuSortRadixBackend gpusort_cub_backend = {
	"cub",
	0,
	cub_temp_bytes,
	cub_begin,
	cub_sort,
	cub_room_bytes,
	cub_room,
};
