/*-------------------------------------------------------------------------
 *
 * sort.cu
 *	  From the last chunk to rows in order.
 *
 *	1. Read the OR and the AND of the keys back, plan the packed key (compact.h).
 *	2. Refs, ids and packed keys (compact.cu).
 *	3. Radix sort of (packed key, id) (radix_sort.cu); packed keys of more than 64
 *	   bits one word after the other, the least significant first, which a stable
 *	   sort makes right.
 *	4. Check the order, note equal neighbours, put the refs in order (order.cu).
 *	5. Tie bits (tie_rows.cu), and where each row ends in the output (radix_sort.cu).
 *	6. Read checks and totals back; start gathering the first chunk (gather.cu).
 *
 * The host waits twice, in 1 and 6.  Everything lives in one work block, taken in
 * 1 and given back by end.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>
#include <time.h>

#include "check.h"
#include "device.h"
#include "steps.h"
#include "upload.h"

/* Regions of the work block start at multiples of this. */
#define GPUSORT_REGION_ALIGN	256

int
gpusort_check_cancel(const GpuSort *sort, GpuSortError *error)
{
	if (__atomic_load_n(sort->cancelled, __ATOMIC_RELAXED))
		return gpusort_fail(error, GPUSORT_REASON_INTERNAL, "the sort was cancelled");
	return 0;
}

static double
milliseconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

static uint64_t
region_align(uint64_t bytes)
{
	return (bytes + GPUSORT_REGION_ALIGN - 1) / GPUSORT_REGION_ALIGN * GPUSORT_REGION_ALIGN;
}

/* The offset of a region of so many bytes, after those laid out before. */
static uint64_t
lay_region(uint64_t *end, uint64_t bytes)
{
	uint64_t	start = *end;

	*end += region_align(bytes);
	return start;
}

/* Takes the work block and says what is where. */
static int
take_work(GpuSort *sort, const GpuSortPackPlan *plan, GpuSortError *error)
{
	const uint64_t rows = sort->rows;
	const bool	wide = plan->packed_bits > 32;
	const uint64_t keys_bytes = region_align(rows * (wide ? sizeof(uint64_t) : sizeof(uint32_t)));
	const uint64_t ids_bytes = region_align(rows * sizeof(uint32_t));
	GpuSortWork *work = &sort->work;
	uint64_t	end = 0;
	uint64_t	refs;
	uint64_t	keys;
	uint64_t	ids;
	uint64_t	equal;
	uint64_t	chunks;
	uint64_t	temp;
	size_t		block_bytes;
	char	   *base;

	GPUSORT_CUDA(sort->device, error, gpusort_radix_temp_bytes((uint32_t) rows, wide, &work->temp_bytes));

	refs = lay_region(&end, rows * sizeof(GpuSortRowRef));
	keys = lay_region(&end, 2 * keys_bytes);
	ids = lay_region(&end, 2 * ids_bytes);
	equal = lay_region(&end, sort->may_tie ? rows / 8 + sizeof(uint32_t) : 0);
	chunks = lay_region(&end, sort->chunk_count * sizeof(GpuSortDeviceChunk));
	temp = lay_region(&end, work->temp_bytes);
	block_bytes = gpusort_block_size(end);

	if (gpusort_promise_work(sort, block_bytes, error) != 0 ||
		gpusort_block_take(sort->device, block_bytes, &sort->work_block, error) != 0)
		return -1;

	base = (char *) sort->work_block.base;
	work->refs = (GpuSortRowRef *) (base + refs);
	work->keys[0] = base + keys;
	work->keys[1] = base + keys + keys_bytes;
	work->ids[0] = (uint32_t *) (base + ids);
	work->ids[1] = (uint32_t *) (base + ids + ids_bytes);
	work->sorted_refs = (GpuSortRowRef *) (base + keys);
	work->ends = (uint64_t *) (base + ids);
	work->equal = sort->may_tie ? (uint32_t *) (base + equal) : NULL;
	work->chunks = (GpuSortDeviceChunk *) (base + chunks);
	work->temp = base + temp;

	GPUSORT_CUDA(sort->device, error, cudaMemcpyAsync(work->chunks, sort->chunks,
													  sort->chunk_count * sizeof(GpuSortDeviceChunk),
													  cudaMemcpyHostToDevice, sort->lane->compute));
	return 0;
}

/* Steps 2 and 3. */
static int
sort_keys(GpuSort *sort, const GpuSortPackPlan *plan, GpuSortError *error)
{
	const uint32_t rows = (uint32_t) sort->rows;
	cudaStream_t stream = sort->lane->compute;

	if (gpusort_pack_rows(sort, plan, error) != 0)
		return -1;
	if (plan->packed_bits == 0)
		return 0;
	if (plan->packed_bits <= 64)
	{
		GPUSORT_CUDA(sort->device, error, gpusort_radix_sort(&sort->work, rows, plan->packed_bits > 32,
															 (int) plan->packed_bits, stream));
		return 0;
	}
	for (uint32_t i = 0; i < gpusort_packed_words(plan); i++)
	{
		if (gpusort_check_cancel(sort, error) != 0 || gpusort_pack_word(sort, plan, i, error) != 0)
			return -1;
		GPUSORT_CUDA(sort->device, error, gpusort_radix_sort(&sort->work, rows, true,
															 gpusort_packed_word_bits(plan, i), stream));
	}
	return 0;
}

/* Reads *state back; with so many tie summaries.  Waits. */
static int
read_state(GpuSort *sort, uint32_t ties, GpuSortError *error)
{
	GpuSortLane *lane = sort->lane;

	GPUSORT_CUDA(sort->device, error, cudaMemcpyAsync(lane->mirror, lane->state,
													  offsetof(GpuSortState, ties) + ties * sizeof(GpuSortTieSummary),
													  cudaMemcpyDeviceToHost, lane->compute));
	if (sort->work.ends != NULL)
		GPUSORT_CUDA(sort->device, error, cudaMemcpyAsync(&lane->mirror->total_words, sort->work.ends + sort->rows - 1,
														  sizeof(uint64_t), cudaMemcpyDeviceToHost, lane->compute));
	GPUSORT_CUDA(sort->device, error, cudaEventRecord(lane->computed, lane->compute));
	return gpusort_wait(sort->device, lane->computed, error);
}

/* The exclusive or of 0 to rows - 1: four numbers from a multiple of 4 on cancel out. */
static uint32_t
xor_below(uint32_t rows)
{
	uint32_t	result = 0;

	for (uint32_t i = rows / 4 * 4; i < rows; i++)
		result ^= i;
	return result;
}

/* What the kernels found on their way. */
static int
check_result(const GpuSort *sort, GpuSortError *error)
{
	const GpuSortState *found = sort->lane->mirror;

	if (found->unordered > 0)
		return gpusort_fail(error, GPUSORT_REASON_ORDER_CHECK, "%u of %llu sorted keys are out of order",
							found->unordered, (unsigned long long) sort->rows);
	if (found->bad_ids > 0 || found->id_sum != sort->rows * (sort->rows - 1) / 2 ||
		found->id_xor != xor_below((uint32_t) sort->rows))
		return gpusort_fail(error, GPUSORT_REASON_ORDER_CHECK, "the sorted row ids are no permutation of %llu rows",
							(unsigned long long) sort->rows);
	return 0;
}

int
gpusort_cuda_sort(GpuSort *sort, GpuSortSorted *sorted, GpuSortError *error)
{
	const double begun = milliseconds_now();
	const uint32_t rows = (uint32_t) sort->rows;
	const uint32_t tie_blocks = sort->may_tie && rows > 0 ? gpusort_tie_blocks(rows) : 0;
	GpuSortTieSummary ties = gpusort_ties_none();
	GpuSortKeyStats stats;
	GpuSortPackPlan plan;

	*sorted = {};
	sorted->key_bits = 64 * sort->key_words;
	if (gpusort_check_cancel(sort, error) != 0 || gpusort_device_use(sort->device, error) != 0)
		return -1;
	if (sort->sorted)
		return gpusort_fail(error, GPUSORT_REASON_INTERNAL, "sort was called twice");
	if (rows == 0)
	{
		sort->sorted = true;
		return gpusort_promise_work(sort, 0, error);
	}

	if (read_state(sort, 0, error) != 0)
		return -1;
	if (sort->lane->mirror->bad_rows > 0)
		return gpusort_fail(error, GPUSORT_REASON_BAD_CHUNK, "%u rows have an offset or a length out of bounds",
							sort->lane->mirror->bad_rows);
	/* no minimum is below the AND, and no maximum above the OR */
	stats = sort->lane->mirror->keys;
	memcpy(stats.key_min, stats.key_and, sizeof(stats.key_min));
	memcpy(stats.key_max, stats.key_or, sizeof(stats.key_max));
	gpusort_pack_plan(&plan, sort->key_words, &stats);

	if (take_work(sort, &plan, error) != 0 ||
		sort_keys(sort, &plan, error) != 0 ||
		gpusort_check_cancel(sort, error) != 0 ||
		gpusort_check_order(sort, &plan, error) != 0 ||
		gpusort_order_refs(sort, error) != 0)
		return -1;
	if (sort->may_tie && gpusort_mark_ties(sort, error) != 0)
		return -1;
	GPUSORT_CUDA(sort->device, error, gpusort_running_words(&sort->work, rows, sort->lane->compute));
	if (read_state(sort, tie_blocks, error) != 0 || check_result(sort, error) != 0)
		return -1;

	for (uint32_t i = 0; i < tie_blocks; i++)
		ties = gpusort_ties_join(ties, sort->lane->mirror->ties[i]);
	sorted->rows = sort->rows;
	sorted->bytes = 8 * sort->lane->mirror->total_words;
	sorted->tie_rows = gpusort_ties_total(ties);
	sorted->packed_bits = plan.packed_bits;
	sorted->sort_ms = milliseconds_now() - begun;

	sort->sorted = true;
	return gpusort_gather_ahead(sort, 0, error);
}
