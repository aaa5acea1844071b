/*-------------------------------------------------------------------------
 *
 * sort.cu
 *	  From the last chunk to rows in order.
 *
 *	1. Read the statistics of the keys back, plan the packed key (compact.h).
 *	2. Refs and partial keys of packed keys (pack.cu); of a sort of several shards, each on
 *	   the device that is to sort the row (redistribute.h).
 *	3. Row ids in order (device_sort.h).
 *	4. Check the order, note equal neighbours, put the refs in order (order.cu); then
 *	   the same where one shard ends and the next begins.
 *	5. With run_rows, the first rows of each run alone from here on (pick.cu).
 *	   Tie flags (tie_flags.cu), and where each row ends in the output (order.cu).
 *	6. Read checks and totals back; start gathering the first chunk (gather.cu).
 *
 * Rows that were put in order have no partial keys and are not sorted, but checked.
 *
 * The host waits in 1 and 6, in 3 if the partial key is not the whole packed key, and in 5 with run_rows.
 * As it may wait in the midst of 3, each shard has a thread of its own for 3 and 4.
 * Everything lives in one work block per shard, allocated in 2 and released by end.
 *
 *-------------------------------------------------------------------------
 */
#include <pthread.h>
#include <time.h>

#include "engine/check.h"
#include "engine/device.h"
#include "engine/redistribute.h"
#include "engine/shard.h"
#include "engine/steps.h"
#include "engine/upload.h"
#include "sort/region.h"

/* What a wait returns that has filled the error itself; no CUDA status. */
#define GPUSORT_WAIT_FAILED (-1)

static double
milliseconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

/* ---- what each device does by itself ---- */

typedef struct SortWait
{
	GpuSortShard *shard;
	GpuSortError *error;
} SortWait;

/* GpuSortDeviceWait.wait of a shard. */
static int
wait_for_sort(void *context, GpuSortStream)
{
	SortWait *wait = (SortWait *) context;
	GpuSortShard *shard = wait->shard;
	cudaError_t status = cudaEventRecord(shard->lane->computed, shard->lane->compute);

	if (status != cudaSuccess)
		return status;
	if (gpusort_wait(shard->device, shard->lane->computed, wait->error) != 0 ||
		gpusort_check_cancel(shard->sort, wait->error) != 0)
		return GPUSORT_WAIT_FAILED;
	return 0;
}

/* The order of a shard's rows, to be sorted. */
static GpuSortDeviceSort
describe_sort(const GpuSortShard *shard, const GpuSortPackPlan *plan, SortWait *wait)
{
	GpuSortDeviceSort described = {};

	described.source.key_words = shard->sort->key_words;
	described.source.refs = shard->work.refs;
	described.source.chunks = shard->work.chunks;
	described.plan = plan;
	described.rows = shard->rows;
	described.order = shard->sort->order;
	described.partial_keys = shard->work.partial_keys;
	described.sorted_partial_keys = shard->work.partial_keys;
	described.any_partial_keys = true;
	if (shard->wanted < shard->rows)
		described.limit = shard->wanted;
	described.limit_ties = shard->sort->may_tie;
	described.wait.mirror = shard->lane->sort_mirror;
	described.wait.wait = wait_for_sort;
	described.wait.context = wait;
	return described;
}

/* Allocates the work block for shard->rows rows, says what is where, and copies the chunk table there. */
static int
acquire_work(GpuSortShard *shard, const GpuSortPackPlan *plan, GpuSortError *error)
{
	const GpuSort *sort = shard->sort;
	const uint64_t rows = shard->rows;
	const bool has_partial_keys = sort->order == GPUSORT_INPUT_UNKNOWN;
	const bool has_equal = sort->may_tie || sort->run_peers;
	const uint64_t refs_bytes = rows * sizeof(GpuSortRowRef);
	GpuSortWork *work = &shard->work;
	GpuSortDeviceSort described;
	uint64_t end = 0;
	uint64_t refs;
	uint64_t ids;
	uint64_t partial_keys;
	uint64_t temp;
	uint64_t tiles;
	uint64_t equal;
	uint64_t same;
	uint64_t chunks;
	uint64_t ids_bytes = rows * sizeof(uint32_t);
	uint64_t partial_keys_bytes = has_partial_keys ? gpusort_region_bytes(rows * sizeof(uint32_t)) : 0;
	uint64_t temp_bytes;
	size_t block_bytes;
	char *base;
	int status;

	/* the size depends on whether there are partial keys, not on where */
	work->partial_keys = has_partial_keys ? (uint32_t *) shard->staging.base : NULL;
	described = describe_sort(shard, plan, NULL);
	status = gpusort_device_sort_bytes(&described, &work->temp_bytes);
	if (status != 0)
		return gpusort_cuda_failed(shard->device, (cudaError_t) status, "gpusort_device_sort_bytes", error);

	/* refs in order take the place of partial keys and temp */
	temp_bytes = work->temp_bytes;
	if (partial_keys_bytes + temp_bytes < refs_bytes)
		temp_bytes = refs_bytes - partial_keys_bytes;

	/* what picks rows takes the place of ids */
	if (sort->run_rows > 0 && ids_bytes < gpusort_pick_bytes(shard->rows))
		ids_bytes = gpusort_pick_bytes(shard->rows);

	refs = gpusort_region_lay(&end, refs_bytes);
	ids = gpusort_region_lay(&end, ids_bytes);
	partial_keys = gpusort_region_lay(&end, partial_keys_bytes);
	temp = gpusort_region_lay(&end, temp_bytes);
	tiles = gpusort_region_lay(&end, gpusort_order_tiles(shard->rows) * sizeof(uint64_t));
	equal = gpusort_region_lay(&end, has_equal ? gpusort_row_bits_bytes(rows) : 0);
	same = gpusort_region_lay(&end, sort->run_rows > 0 ? gpusort_row_bits_bytes(rows) : 0);
	chunks = gpusort_region_lay(&end, sort->chunk_count * sizeof(GpuSortDeviceChunk));
	block_bytes = gpusort_block_size(end);

	if (gpusort_reserve_work(shard, block_bytes, error) != 0 ||
		gpusort_block_acquire(shard->device, block_bytes, &shard->work_block, error) != 0)
		return -1;

	base = (char *) shard->work_block.base;
	work->refs = (GpuSortRowRef *) (base + refs);
	work->ids = (uint32_t *) (base + ids);
	work->partial_keys = has_partial_keys ? (uint32_t *) (base + partial_keys) : NULL;
	work->temp = base + temp;
	work->sorted_refs = (GpuSortRowRef *) (base + partial_keys);
	work->ends = (uint64_t *) (base + refs);
	work->tile_words = (uint64_t *) (base + tiles);
	work->equal = has_equal ? (uint32_t *) (base + equal) : NULL;
	work->same = sort->run_rows > 0 ? (uint32_t *) (base + same) : NULL;
	work->chunks = (GpuSortDeviceChunk *) (base + chunks);

	GPUSORT_CUDA(shard->device, error,
				 cudaMemcpyAsync(work->chunks, sort->chunks, sort->chunk_count * sizeof(GpuSortDeviceChunk),
								 cudaMemcpyHostToDevice, shard->lane->compute));
	return 0;
}

/* Steps 3 and 4. */
static int
order_shard(GpuSortShard *shard, const GpuSortPackPlan *plan, GpuSortError *error)
{
	GpuSortWork *work = &shard->work;
	SortWait wait = {shard, error};
	GpuSortDeviceSort described = describe_sort(shard, plan, &wait);
	GpuSortDeviceSorted sorted = {};
	int status;

	status = gpusort_device_sort(&described, work->temp, work->temp_bytes, work->ids, &sorted,
								 (GpuSortStream) shard->lane->compute);
	if (status == GPUSORT_WAIT_FAILED)
		return -1;
	if (status != 0)
		return gpusort_cuda_failed(shard->device, (cudaError_t) status, "gpusort_device_sort", error);
	shard->rows_out = sorted.rows;
	work->has_ordered_keys = work->partial_keys != NULL && described.limit == 0;
	work->has_codes = sorted.has_codes;
	if (gpusort_check_cancel(shard->sort, error) != 0 || gpusort_check_order(shard, plan, error) != 0)
		return -1;
	return gpusort_order_refs(shard, error);
}

/* Makes wait_for_shard wait for what was started up to here. */
static int
note_computed(GpuSortShard *shard, GpuSortError *error)
{
	GPUSORT_CUDA(shard->device, error, cudaEventRecord(shard->lane->computed, shard->lane->compute));
	return 0;
}

/* Has *state copied to the mirror, with so many tie summaries, and what finish_shard found. */
static int
start_reading(GpuSortShard *shard, uint32_t ties, GpuSortError *error)
{
	GpuSortLane *lane = shard->lane;

	GPUSORT_CUDA(shard->device, error,
				 cudaMemcpyAsync(lane->mirror, lane->state,
								 offsetof(GpuSortDeviceState, ties) + ties * sizeof(GpuSortTieSummary),
								 cudaMemcpyDeviceToHost, lane->compute));
	if (shard->rows_out > 0)
		GPUSORT_CUDA(shard->device, error,
					 cudaMemcpyAsync(&lane->mirror->total_words, shard->work.ends + shard->rows_out - 1,
									 sizeof(uint64_t), cudaMemcpyDeviceToHost, lane->compute));
	return note_computed(shard, error);
}

static uint32_t
tie_blocks(const GpuSortShard *shard)
{
	return shard->sort->may_tie ? gpusort_tie_blocks(shard->rows_out) : 0;
}

/* Step 5, and the start of 6. */
static int
finish_shard(GpuSortShard *shard, GpuSortError *error)
{
	if (gpusort_device_use(shard->device, error) != 0 ||
		(shard->sort->may_tie && gpusort_flag_ties(shard, error) != 0) ||
		gpusort_scan_rows(shard, error) != 0)
		return -1;
	return start_reading(shard, tie_blocks(shard), error);
}

static int
wait_for_shard(GpuSortShard *shard, GpuSortError *error)
{
	if (gpusort_device_use(shard->device, error) != 0)
		return -1;
	return gpusort_wait(shard->device, shard->lane->computed, error);
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
check_result(const GpuSortShard *shard, GpuSortError *error)
{
	const GpuSortDeviceState *found = shard->lane->mirror;
	const uint64_t rows = shard->rows;

	if (found->unordered > 0)
		return gpusort_fail(error, GPUSORT_REASON_ORDER_CHECK, "%u of %u sorted keys are out of order",
							found->unordered, shard->rows_out);
	if (found->bad_ids > 0 ||
		(shard->rows_out == rows &&
		 (found->id_sum != rows * (rows - 1) / 2 || found->id_xor != xor_below(shard->rows))))
		return gpusort_fail(error, GPUSORT_REASON_ORDER_CHECK, "the sorted row ids are no permutation of %u rows",
							shard->rows);
	if (shard->rows_out < rows && found->up_to != shard->rows_out)
		return gpusort_fail(error, GPUSORT_REASON_ORDER_CHECK, "%u rows come before the last of the first %u",
							found->up_to, shard->rows_out);
	if (found->short_rows > 0)
		return gpusort_fail(error, GPUSORT_REASON_BAD_CHUNK, "%u rows have no room for a count", found->short_rows);
	return 0;
}

/* ---- what they do together ---- */

/* A thread that orders a shard. */
typedef struct OrderThread
{
	pthread_t thread;
	bool started;
	GpuSortShard *shard;
	const GpuSortPackPlan *plan;
	int result;
	GpuSortError error;
} OrderThread;

static void *
order_main(void *argument)
{
	OrderThread *order = (OrderThread *) argument;
	GpuSortShard *shard = order->shard;

	order->result = gpusort_device_use(shard->device, &order->error);
	if (order->result == 0)
		order->result = order_shard(shard, order->plan, &order->error);

	/* other devices read the refs in order next */
	if (order->result == 0)
		order->result = note_computed(shard, &order->error);
	if (order->result == 0)
		order->result = wait_for_shard(shard, &order->error);
	return NULL;
}

/* Steps 3 and 4 of all shards that rows are wanted of, at once. */
static int
order_shards(GpuSort *sort, const GpuSortPackPlan *plan, GpuSortError *error)
{
	OrderThread orders[GPUSORT_SHARDS_MAX];
	int result = 0;

	for (uint32_t p = 0; p < sort->shard_count; p++)
	{
		OrderThread *order = &orders[p];

		order->shard = &sort->shards[p];
		order->plan = plan;
		order->result = 0;
		order->started = order->shard->wanted > 0 &&
			pthread_create(&order->thread, NULL, order_main, order) == 0;
	}
	for (uint32_t p = 0; p < sort->shard_count; p++)
	{
		OrderThread *order = &orders[p];

		if (order->started)
			pthread_join(order->thread, NULL);
		else if (order->shard->wanted > 0)
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
 * If rows are wanted up to the end of a shard, and may tie: wants and orders those of the
 * shards after it that have the key of the last one.
 */
static int
order_ties(GpuSort *sort, const GpuSortPackPlan *plan, GpuSortError *error)
{
	GpuSortShard *bound = NULL;

	for (uint32_t p = 0; p < sort->shard_count; p++)
	{
		GpuSortShard *shard = &sort->shards[p];
		OrderThread order = {};

		if (shard->rows == 0)
			continue;
		if (shard->wanted == 0 && bound != NULL)
		{
			if (gpusort_device_use(shard->device, error) != 0 || gpusort_count_equal(shard, bound, error) != 0 ||
				start_reading(shard, 0, error) != 0 || wait_for_shard(shard, error) != 0)
				return -1;
			shard->wanted = shard->lane->mirror->equal_rows;
			order.shard = shard;
			order.plan = plan;
			if (shard->wanted > 0)
				(void) order_main(&order);
			if (order.result != 0)
			{
				*error = order.error;
				return -1;
			}
		}
		if (shard->rows_out < shard->rows)
			break;
		bound = shard;
	}
	return 0;
}

/* Where one shard's rows end and the next one's begin. */
static int
check_boundaries(GpuSort *sort, GpuSortError *error)
{
	GpuSortShard *before = NULL;

	for (uint32_t p = 0; p < sort->shard_count; p++)
	{
		GpuSortShard *shard = &sort->shards[p];

		if (shard->rows_out == 0)
			continue;
		if (before != NULL &&
			(gpusort_device_use(before->device, error) != 0 || gpusort_check_boundary(before, shard, error) != 0))
			return -1;
		before = shard;
	}
	return 0;
}

/* Steps 2 to 4 of a sort of several shards. */
static int
order_redistributed(GpuSort *sort, const GpuSortPackPlan *plan, GpuSortError *error)
{
	uint64_t wanted = sort->limit > 0 ? sort->limit : sort->rows;

	if (gpusort_redistribution_plan(sort, error) != 0)
		return -1;
	for (uint32_t p = 0; p < sort->shard_count; p++)
	{
		GpuSortShard *shard = &sort->shards[p];

		shard->wanted = shard->rows < wanted ? shard->rows : (uint32_t) wanted;
		wanted -= shard->wanted;
		if (gpusort_device_use(shard->device, error) != 0 || acquire_work(shard, plan, error) != 0)
			return -1;
	}
	if (gpusort_redistribute_rows(sort, plan, error) != 0 || order_shards(sort, plan, error) != 0 ||
		(sort->may_tie && sort->limit > 0 && order_ties(sort, plan, error) != 0))
		return -1;
	return check_boundaries(sort, error);
}

/* The same of a sort of one shard. */
static int
order_alone(GpuSort *sort, const GpuSortPackPlan *plan, GpuSortError *error)
{
	GpuSortShard *shard = &sort->shards[0];

	shard->rows = (uint32_t) sort->rows;
	shard->wanted = sort->limit > 0 && sort->limit < sort->rows ? (uint32_t) sort->limit : shard->rows;
	if (gpusort_device_use(shard->device, error) != 0 || acquire_work(shard, plan, error) != 0 ||
		gpusort_pack_shard(shard, plan, error) != 0)
		return -1;
	return order_shard(shard, plan, error);
}

/*
 * The beginning of step 5, with run_rows: rows_out is that of the rows kept then.  No shard reads
 * another's refs in order any more.
 */
static int
pick_rows(GpuSort *sort, GpuSortError *error)
{
	for (uint32_t p = 0; p < sort->shard_count; p++)
	{
		GpuSortShard *shard = &sort->shards[p];

		if (shard->rows_out > 0 &&
			(gpusort_device_use(shard->device, error) != 0 || gpusort_pick_rows(shard, error) != 0 ||
			 start_reading(shard, 0, error) != 0))
			return -1;
	}
	for (uint32_t p = 0; p < sort->shard_count; p++)
	{
		GpuSortShard *shard = &sort->shards[p];
		uint64_t kept;

		if (shard->rows_out == 0)
			continue;
		if (wait_for_shard(shard, error) != 0 || check_result(shard, error) != 0)
			return -1;
		kept = shard->lane->mirror->kept_rows - 1;
		if (kept < 1 || kept > shard->rows_out)
			return gpusort_fail(error, GPUSORT_REASON_ORDER_CHECK, "%llu of %u sorted rows are kept",
								(unsigned long long) kept, shard->rows_out);
		shard->rows_out = (uint32_t) kept;
	}
	for (uint32_t p = 0; p < sort->shard_count; p++)
	{
		GpuSortShard *shard = &sort->shards[p];

		if (shard->rows_out > 0 &&
			(gpusort_device_use(shard->device, error) != 0 || gpusort_sum_tiles(shard, error) != 0))
			return -1;
	}
	return 0;
}

/* Step 1. */
static int
plan_sort(GpuSort *sort, GpuSortPackPlan *plan, GpuSortError *error)
{
	uint64_t bad_rows = 0;
	GpuSortKeyStats stats = sort->boundary_stats;

	for (uint32_t p = 0; p < sort->shard_count; p++)
	{
		if (gpusort_device_use(sort->shards[p].device, error) != 0 || start_reading(&sort->shards[p], 0, error) != 0)
			return -1;
	}
	for (uint32_t p = 0; p < sort->shard_count; p++)
	{
		GpuSortShard *shard = &sort->shards[p];

		if (wait_for_shard(shard, error) != 0)
			return -1;
		bad_rows += shard->lane->mirror->bad_rows;
		gpusort_key_stats_join(&stats, &shard->lane->mirror->keys);
	}
	if (bad_rows > 0)
		return gpusort_fail(error, GPUSORT_REASON_BAD_CHUNK, "%llu rows have an offset or a length out of bounds",
							(unsigned long long) bad_rows);
	gpusort_pack_plan(plan, sort->key_words, &stats);
	if (gpusort_key_stats_sorted(&stats, sort->rows))
		sort->order = GPUSORT_INPUT_SORTED;
	else if (gpusort_key_stats_reversed(&stats, sort->rows))
		sort->order = GPUSORT_INPUT_REVERSED;
	else
		sort->order = GPUSORT_INPUT_UNKNOWN;
	return 0;
}

int
gpusort_cuda_sort(GpuSort *sort, GpuSortOutcome *outcome, GpuSortError *error)
{
	const double begun = milliseconds_now();
	GpuSortTieSummary ties = gpusort_ties_none();
	GpuSortPackPlan plan;

	*outcome = {};
	outcome->key_bits = 64 * sort->key_words;
	if (gpusort_check_cancel(sort, error) != 0)
		return -1;
	if (sort->sorted)
		return gpusort_fail(error, GPUSORT_REASON_INTERNAL, "sort was called twice");
	if (sort->rows == 0)
	{
		sort->sorted = true;
		for (uint32_t p = 0; p < sort->shard_count; p++)
		{
			if (gpusort_reserve_work(&sort->shards[p], 0, error) != 0)
				return -1;
		}
		return 0;
	}

	if (plan_sort(sort, &plan, error) != 0 ||
		(sort->shard_count == 1 ? order_alone(sort, &plan, error) : order_redistributed(sort, &plan, error)) != 0 ||
		(sort->run_rows > 0 && pick_rows(sort, error) != 0))
		return -1;
	for (uint32_t p = 0; p < sort->shard_count; p++)
	{
		if (sort->shards[p].rows_out > 0 && finish_shard(&sort->shards[p], error) != 0)
			return -1;
	}
	for (uint32_t p = 0; p < sort->shard_count; p++)
	{
		GpuSortShard *shard = &sort->shards[p];

		if (shard->rows_out == 0)
			continue;
		if (wait_for_shard(shard, error) != 0 || (sort->run_rows == 0 && check_result(shard, error) != 0))
			return -1;
		for (uint32_t i = 0; i < tie_blocks(shard); i++)
			ties = gpusort_ties_join(ties, shard->lane->mirror->ties[i]);
		outcome->rows += shard->rows_out;
		outcome->bytes += 8 * shard->lane->mirror->total_words;
		if (gpusort_gather_ahead(shard, 0, 0, shard->rows_out, false, error) != 0)
			return -1;
	}
	for (uint32_t p = 0; p < sort->shard_count; p++)
	{
		sort->shards[p].first_out = sort->rows_out;
		sort->rows_out += sort->shards[p].rows_out;
	}
	outcome->rows_in = sort->rows;
	outcome->tie_rows = gpusort_ties_total(ties);
	outcome->packed_bits = plan.packed_bits;
	outcome->sort_ms = milliseconds_now() - begun;
	sort->sorted = true;
	return 0;
}
