/*-------------------------------------------------------------------------
 *
 * sort.cu
 *	  From the last chunk to rows in order.
 *
 *	1. Read the statistics of the keys back, plan the packed key (compact.h).
 *	2. Refs and prefixes of packed keys (pack.cu); of a sort of several parts, each on
 *	   the device that is to sort the row (spread.h).
 *	3. Row ids in order (device_sort.h).
 *	4. Check the order, note equal neighbours, put the refs in order (order.cu); then
 *	   the same where one part ends and the next begins.
 *	5. Tie bits (tie_rows.cu), and where each row ends in the output (order.cu).
 *	6. Read checks and totals back; start gathering the first chunk (gather.cu).
 *
 * Rows that were put in order have no prefixes and are not sorted, but checked.
 *
 * The host waits in 1 and 6, and in 3 if the prefix is not the whole packed key.
 * As it may wait in the midst of 3, each part has a thread of its own for 3 and 4.
 * Everything lives in one work block per part, taken in 2 and given back by end.
 *
 *-------------------------------------------------------------------------
 */
#include <pthread.h>
#include <time.h>

#include "engine/check.h"
#include "engine/device.h"
#include "engine/redistribute.h"
#include "engine/steps.h"
#include "engine/upload.h"

/* Regions of the work block start at multiples of this. */
#define GPUSORT_REGION_ALIGN 256

/* What a wait returns that has filled the error itself; no CUDA status. */
#define GPUSORT_WAIT_FAILED (-1)

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

/* Lays a region behind those before it; returns where it starts. */
static uint64_t
lay_region(uint64_t *end, uint64_t bytes)
{
	uint64_t start = *end;

	*end += region_align(bytes);
	return start;
}

/* ---- what each device does by itself ---- */

typedef struct SortWait
{
	GpuSortPart *part;
	GpuSortError *error;
} SortWait;

/* GpuSortDeviceWait.wait of a part. */
static int
wait_for_sort(void *context, GpuSortStream)
{
	SortWait *wait = (SortWait *) context;
	GpuSortPart *part = wait->part;
	cudaError_t status = cudaEventRecord(part->lane->computed, part->lane->compute);

	if (status != cudaSuccess)
		return status;
	if (gpusort_wait(part->device, part->lane->computed, wait->error) != 0 ||
		gpusort_check_cancel(part->sort, wait->error) != 0)
		return GPUSORT_WAIT_FAILED;
	return 0;
}

/* The order of a part's rows, to be sorted. */
static GpuSortDeviceSort
describe_sort(const GpuSortPart *part, const GpuSortPackPlan *plan, SortWait *wait)
{
	GpuSortDeviceSort described = {};

	described.source.kind = GPUSORT_KEYS_REFS;
	described.source.key_words = part->sort->key_words;
	described.source.refs = part->work.refs;
	described.source.chunks = part->work.chunks;
	described.plan = plan;
	described.rows = part->rows;
	described.order = part->sort->order;
	described.prefixes = part->work.prefixes;
	described.sorted_prefixes = part->work.prefixes;
	described.any_prefixes = true;
	if (part->wanted < part->rows)
		described.limit = part->wanted;
	described.limit_ties = part->sort->may_tie;
	described.wait.mirror = part->lane->sort_mirror;
	described.wait.wait = wait_for_sort;
	described.wait.context = wait;
	return described;
}

/* Takes the work block for part->rows rows, says what is where, and copies the chunk table there. */
static int
take_work(GpuSortPart *part, const GpuSortPackPlan *plan, GpuSortError *error)
{
	const GpuSort *sort = part->sort;
	const uint64_t rows = part->rows;
	const bool has_prefixes = sort->order == GPUSORT_INPUT_UNKNOWN;
	const uint64_t refs_bytes = rows * sizeof(GpuSortRowRef);
	GpuSortWork *work = &part->work;
	GpuSortDeviceSort described;
	uint64_t end = 0;
	uint64_t refs;
	uint64_t ids;
	uint64_t prefixes;
	uint64_t temp;
	uint64_t tiles;
	uint64_t equal;
	uint64_t chunks;
	uint64_t prefixes_bytes = has_prefixes ? region_align(rows * sizeof(uint32_t)) : 0;
	uint64_t temp_bytes;
	size_t block_bytes;
	char *base;
	int status;

	/* the size depends on whether there are prefixes, not on where */
	work->prefixes = has_prefixes ? (uint32_t *) part->staging.base : NULL;
	described = describe_sort(part, plan, NULL);
	status = gpusort_device_sort_bytes(&described, &work->temp_bytes);
	if (status != 0)
		return gpusort_cuda_failed(part->device, (cudaError_t) status, "gpusort_device_sort_bytes", error);

	/* refs in order take the place of prefixes and temp */
	temp_bytes = work->temp_bytes;
	if (prefixes_bytes + temp_bytes < refs_bytes)
		temp_bytes = refs_bytes - prefixes_bytes;

	refs = lay_region(&end, refs_bytes);
	ids = lay_region(&end, rows * sizeof(uint32_t));
	prefixes = lay_region(&end, prefixes_bytes);
	temp = lay_region(&end, temp_bytes);
	tiles = lay_region(&end, gpusort_order_tiles(part->rows) * sizeof(uint64_t));
	equal = lay_region(&end, sort->may_tie ? rows / 8 + sizeof(uint32_t) : 0);
	chunks = lay_region(&end, sort->chunk_count * sizeof(GpuSortDeviceChunk));
	block_bytes = gpusort_block_size(end);

	if (gpusort_promise_work(part, block_bytes, error) != 0 ||
		gpusort_block_take(part->device, block_bytes, &part->work_block, error) != 0)
		return -1;

	base = (char *) part->work_block.base;
	work->refs = (GpuSortRowRef *) (base + refs);
	work->ids = (uint32_t *) (base + ids);
	work->prefixes = has_prefixes ? (uint32_t *) (base + prefixes) : NULL;
	work->temp = base + temp;
	work->sorted_refs = (GpuSortRowRef *) (base + prefixes);
	work->ends = (uint64_t *) (base + refs);
	work->tile_words = (uint64_t *) (base + tiles);
	work->equal = sort->may_tie ? (uint32_t *) (base + equal) : NULL;
	work->chunks = (GpuSortDeviceChunk *) (base + chunks);

	GPUSORT_CUDA(part->device, error, cudaMemcpyAsync(work->chunks, sort->chunks, sort->chunk_count * sizeof(GpuSortDeviceChunk), cudaMemcpyHostToDevice, part->lane->compute));
	return 0;
}

/* Steps 3 and 4. */
static int
order_part(GpuSortPart *part, const GpuSortPackPlan *plan, GpuSortError *error)
{
	GpuSortWork *work = &part->work;
	SortWait wait = {part, error};
	GpuSortDeviceSort described = describe_sort(part, plan, &wait);
	int status;

	status = gpusort_device_sort(&described, work->temp, work->temp_bytes, work->ids, &part->rows_out,
								 (GpuSortStream) part->lane->compute);
	if (status == GPUSORT_WAIT_FAILED)
		return -1;
	if (status != 0)
		return gpusort_cuda_failed(part->device, (cudaError_t) status, "gpusort_device_sort", error);
	if (gpusort_check_cancel(part->sort, error) != 0 ||
		gpusort_check_order(part, plan, work->prefixes != NULL && described.limit == 0, error) != 0)
		return -1;
	return gpusort_order_refs(part, error);
}

/* What was started up to here is what wait_for_part waits for. */
static int
note_computed(GpuSortPart *part, GpuSortError *error)
{
	GPUSORT_CUDA(part->device, error, cudaEventRecord(part->lane->computed, part->lane->compute));
	return 0;
}

/* Has *state copied to the mirror, with so many tie summaries, and what finish_part found. */
static int
start_reading(GpuSortPart *part, uint32_t ties, GpuSortError *error)
{
	GpuSortLane *lane = part->lane;

	GPUSORT_CUDA(part->device, error, cudaMemcpyAsync(lane->mirror, lane->state, offsetof(GpuSortState, ties) + ties * sizeof(GpuSortTieSummary), cudaMemcpyDeviceToHost, lane->compute));
	if (part->rows_out > 0)
		GPUSORT_CUDA(part->device, error, cudaMemcpyAsync(&lane->mirror->total_words, part->work.ends + part->rows_out - 1, sizeof(uint64_t), cudaMemcpyDeviceToHost, lane->compute));
	return note_computed(part, error);
}

static uint32_t
tie_blocks(const GpuSortPart *part)
{
	return part->sort->may_tie ? gpusort_tie_blocks(part->rows_out) : 0;
}

/* Step 5, and the start of 6. */
static int
finish_part(GpuSortPart *part, GpuSortError *error)
{
	if (gpusort_device_use(part->device, error) != 0 ||
		(part->sort->may_tie && gpusort_mark_ties(part, error) != 0) ||
		gpusort_running_words(part, error) != 0)
		return -1;
	return start_reading(part, tie_blocks(part), error);
}

static int
wait_for_part(GpuSortPart *part, GpuSortError *error)
{
	if (gpusort_device_use(part->device, error) != 0)
		return -1;
	return gpusort_wait(part->device, part->lane->computed, error);
}

/* The exclusive or of 0 to rows - 1: four numbers from a multiple of 4 on cancel out. */
static uint32_t
xor_below(uint32_t rows)
{
	uint32_t result = 0;

	for (uint32_t i = rows / 4 * 4; i < rows; i++)
		result ^= i;
	return result;
}

/* What the kernels found on their way. */
static int
check_result(const GpuSortPart *part, GpuSortError *error)
{
	const GpuSortState *found = part->lane->mirror;
	const uint64_t rows = part->rows;

	if (found->unordered > 0)
		return gpusort_fail(error, GPUSORT_REASON_ORDER_CHECK, "%u of %u sorted keys are out of order",
							found->unordered, part->rows_out);
	if (found->bad_ids > 0 ||
		(part->rows_out == rows && (found->id_sum != rows * (rows - 1) / 2 || found->id_xor != xor_below(part->rows))))
		return gpusort_fail(error, GPUSORT_REASON_ORDER_CHECK, "the sorted row ids are no permutation of %u rows",
							part->rows);
	if (part->rows_out < rows && found->up_to != part->rows_out)
		return gpusort_fail(error, GPUSORT_REASON_ORDER_CHECK, "%u rows come before the last of the first %u",
							found->up_to, part->rows_out);
	return 0;
}

/* ---- what they do together ---- */

/* A thread that orders a part. */
typedef struct OrderThread
{
	pthread_t thread;
	bool started;
	GpuSortPart *part;
	const GpuSortPackPlan *plan;
	int result;
	GpuSortError error;
} OrderThread;

static void *
order_main(void *argument)
{
	OrderThread *order = (OrderThread *) argument;
	GpuSortPart *part = order->part;

	order->result = gpusort_device_use(part->device, &order->error);
	if (order->result == 0)
		order->result = order_part(part, order->plan, &order->error);

	/* other devices read the refs in order next */
	if (order->result == 0)
		order->result = note_computed(part, &order->error);
	if (order->result == 0)
		order->result = wait_for_part(part, &order->error);
	return NULL;
}

/* Steps 3 and 4 of all parts that rows are wanted of, at once. */
static int
order_parts(GpuSort *sort, const GpuSortPackPlan *plan, GpuSortError *error)
{
	OrderThread orders[GPUSORT_PARTS_MAX];
	int result = 0;

	for (uint32_t p = 0; p < sort->part_count; p++)
	{
		OrderThread *order = &orders[p];

		order->part = &sort->parts[p];
		order->plan = plan;
		order->result = 0;
		order->started = order->part->wanted > 0 &&
			pthread_create(&order->thread, NULL, order_main, order) == 0;
	}
	for (uint32_t p = 0; p < sort->part_count; p++)
	{
		OrderThread *order = &orders[p];

		if (order->started)
			pthread_join(order->thread, NULL);
		else if (order->part->wanted > 0)
			(void) order_main(order);
		if (order->result != 0 && result == 0)
		{
			*error = order->error;
			result = -1;
		}
	}
	return result;
}

/*
 * If rows are wanted up to the end of a part, and may tie: wants and orders those of the
 * parts after it that have the key of the last one.
 */
static int
order_ties(GpuSort *sort, const GpuSortPackPlan *plan, GpuSortError *error)
{
	GpuSortPart *bound = NULL;

	for (uint32_t p = 0; p < sort->part_count; p++)
	{
		GpuSortPart *part = &sort->parts[p];
		OrderThread order = {};

		if (part->rows == 0)
			continue;
		if (part->wanted == 0 && bound != NULL)
		{
			if (gpusort_device_use(part->device, error) != 0 || gpusort_count_equal(part, bound, error) != 0 ||
				start_reading(part, 0, error) != 0 || wait_for_part(part, error) != 0)
				return -1;
			part->wanted = part->lane->mirror->equal_rows;
			order.part = part;
			order.plan = plan;
			if (part->wanted > 0)
				(void) order_main(&order);
			if (order.result != 0)
			{
				*error = order.error;
				return -1;
			}
		}
		if (part->rows_out < part->rows)
			break;
		bound = part;
	}
	return 0;
}

/* Where one part's rows end and the next one's begin. */
static int
check_borders(GpuSort *sort, GpuSortError *error)
{
	GpuSortPart *before = NULL;

	for (uint32_t p = 0; p < sort->part_count; p++)
	{
		GpuSortPart *part = &sort->parts[p];

		if (part->rows_out == 0)
			continue;
		if (before != NULL &&
			(gpusort_device_use(before->device, error) != 0 || gpusort_check_border(before, part, error) != 0))
			return -1;
		before = part;
	}
	return 0;
}

/* Steps 2 to 4 of a sort of several parts. */
static int
order_spread(GpuSort *sort, const GpuSortPackPlan *plan, GpuSortError *error)
{
	uint64_t wanted = sort->limit > 0 ? sort->limit : sort->rows;

	if (gpusort_spread_count(sort, error) != 0)
		return -1;
	for (uint32_t p = 0; p < sort->part_count; p++)
	{
		GpuSortPart *part = &sort->parts[p];

		part->wanted = part->rows < wanted ? part->rows : (uint32_t) wanted;
		wanted -= part->wanted;
		if (gpusort_device_use(part->device, error) != 0 || take_work(part, plan, error) != 0)
			return -1;
	}
	if (gpusort_spread_rows(sort, plan, error) != 0 || order_parts(sort, plan, error) != 0 ||
		(sort->may_tie && sort->limit > 0 && order_ties(sort, plan, error) != 0))
		return -1;
	return check_borders(sort, error);
}

/* The same of a sort of one part. */
static int
order_alone(GpuSort *sort, const GpuSortPackPlan *plan, GpuSortError *error)
{
	GpuSortPart *part = &sort->parts[0];

	part->rows = (uint32_t) sort->rows;
	part->wanted = sort->limit > 0 && sort->limit < sort->rows ? (uint32_t) sort->limit : part->rows;
	if (gpusort_device_use(part->device, error) != 0 || take_work(part, plan, error) != 0 ||
		gpusort_pack_rows(part, plan, error) != 0)
		return -1;
	return order_part(part, plan, error);
}

/* Step 1. */
static int
plan_sort(GpuSort *sort, GpuSortPackPlan *plan, GpuSortError *error)
{
	uint64_t bad_rows = 0;
	GpuSortKeyStats stats = sort->borders;

	for (uint32_t p = 0; p < sort->part_count; p++)
	{
		if (gpusort_device_use(sort->parts[p].device, error) != 0 || start_reading(&sort->parts[p], 0, error) != 0)
			return -1;
	}
	for (uint32_t p = 0; p < sort->part_count; p++)
	{
		GpuSortPart *part = &sort->parts[p];

		if (wait_for_part(part, error) != 0)
			return -1;
		bad_rows += part->lane->mirror->bad_rows;
		gpusort_key_stats_join(&stats, &part->lane->mirror->keys);
	}
	if (bad_rows > 0)
		return gpusort_fail(error, GPUSORT_REASON_BAD_CHUNK, "%llu rows have an offset or a length out of bounds",
							(unsigned long long) bad_rows);
	gpusort_pack_plan(plan, sort->key_words, &stats);
	sort->order = gpusort_key_stats_sorted(&stats, sort->rows) ? GPUSORT_INPUT_SORTED : gpusort_key_stats_reversed(&stats, sort->rows) ? GPUSORT_INPUT_REVERSED
																																	   : GPUSORT_INPUT_UNKNOWN;
	return 0;
}

int
gpusort_cuda_sort(GpuSort *sort, GpuSortSorted *sorted, GpuSortError *error)
{
	const double begun = milliseconds_now();
	GpuSortTieSummary ties = gpusort_ties_none();
	GpuSortPackPlan plan;

	*sorted = {};
	sorted->key_bits = 64 * sort->key_words;
	if (gpusort_check_cancel(sort, error) != 0)
		return -1;
	if (sort->sorted)
		return gpusort_fail(error, GPUSORT_REASON_INTERNAL, "sort was called twice");
	if (sort->rows == 0)
	{
		sort->sorted = true;
		for (uint32_t p = 0; p < sort->part_count; p++)
		{
			if (gpusort_promise_work(&sort->parts[p], 0, error) != 0)
				return -1;
		}
		return 0;
	}

	if (plan_sort(sort, &plan, error) != 0 ||
		(sort->part_count == 1 ? order_alone(sort, &plan, error) : order_spread(sort, &plan, error)) != 0)
		return -1;
	for (uint32_t p = 0; p < sort->part_count; p++)
	{
		if (sort->parts[p].rows_out > 0 && finish_part(&sort->parts[p], error) != 0)
			return -1;
	}
	for (uint32_t p = 0; p < sort->part_count; p++)
	{
		GpuSortPart *part = &sort->parts[p];

		if (part->rows_out == 0)
			continue;
		if (wait_for_part(part, error) != 0 || check_result(part, error) != 0)
			return -1;
		for (uint32_t i = 0; i < tie_blocks(part); i++)
			ties = gpusort_ties_join(ties, part->lane->mirror->ties[i]);
		sorted->rows += part->rows_out;
		sorted->bytes += 8 * part->lane->mirror->total_words;
		if (gpusort_gather_ahead(part, 0, error) != 0)
			return -1;
	}
	sorted->rows_in = sort->rows;
	sorted->tie_rows = gpusort_ties_total(ties);
	sorted->packed_bits = plan.packed_bits;
	sorted->sort_ms = milliseconds_now() - begun;
	sort->sorted = true;
	return 0;
}
