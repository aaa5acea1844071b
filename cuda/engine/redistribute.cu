/*-------------------------------------------------------------------------
 *
 * redistribute.cu
 *	  The rows of a sort over several devices; see redistribute.h.
 *
 *-------------------------------------------------------------------------
 */
#include "engine/redistribute.h"

#include <algorithm>
#include <stdlib.h>
#include <string.h>

#include "engine/check.h"
#include "engine/device.h"
#include "engine/redistribute_kernels.cuh"
#include "engine/shard.h"
#include "engine/upload.h"
#include "sort/region.h"

/*
 * Rows of the sample per shard, and bytes of all of it at most.  The size of a shard is
 * then off by 1/64, its standard deviation; work memory has room for five times that.
 */
#define GPUSORT_REDISTRIBUTION_SAMPLE 4096
#define GPUSORT_REDISTRIBUTION_BYTES  ((uint64_t) 4 << 20)

/* What a shard has in its redistribution_block, on its device. */
typedef struct RedistributionShard
{
	GpuSortDeviceChunk *chunks; /* all */
	uint32_t *numbers;          /* of the shard's own chunks */
	uint32_t *histograms;       /* by own chunk and shard: rows, then, scanned, the place of the first */
	GpuSortRowPlace *picked;    /* rows of the sample that lie here, or the splitters */
	uint64_t *keys;             /* of them */
} RedistributionShard;

/* The sort's, in host memory. */
struct GpuSortRedistribution
{
	RedistributionShard shards[GPUSORT_SHARDS_MAX];
	uint32_t own[GPUSORT_SHARDS_MAX];    /* chunks that a shard has */
	uint32_t picked[GPUSORT_SHARDS_MAX]; /* rows of the sample that it has */
	uint32_t *numbers;                   /* of chunks: shard 0's, shard 1's ... */
	uint32_t *histograms;                /* by chunk in that order, and shard; scanned like those on the devices */
	GpuSortRowPlace *places;             /* of the sample's rows: shard 0's, shard 1's ... */
	uint64_t *keys;                      /* of them */
	uint32_t *order;                     /* of the sample */
	GpuSortRowPlace splitters[GPUSORT_SHARDS_MAX];
	uint64_t splitter_keys[GPUSORT_SHARDS_MAX * GPUSORT_MAX_KEY_WORDS];
};

void
gpusort_redistribution_free(GpuSort *sort)
{
	GpuSortRedistribution *redistribution = sort->redistribution;

	if (redistribution == NULL)
		return;
	free(redistribution->numbers);
	free(redistribution->histograms);
	free(redistribution->places);
	free(redistribution->keys);
	free(redistribution->order);
	free(redistribution);
	sort->redistribution = NULL;
}

/* Allocates the host's memory and lists which chunks each shard has. */
static int
start_redistribution(GpuSort *sort, uint32_t sample, GpuSortError *error)
{
	GpuSortRedistribution *redistribution = (GpuSortRedistribution *) calloc(1, sizeof(GpuSortRedistribution));
	uint32_t first[GPUSORT_SHARDS_MAX];
	uint32_t next = 0;

	sort->redistribution = redistribution;
	if (redistribution == NULL)
		return gpusort_fail(error, GPUSORT_REASON_NO_MEMORY, "out of memory");
	redistribution->numbers = (uint32_t *) malloc(sort->chunk_count * sizeof(uint32_t));
	redistribution->histograms = (uint32_t *) malloc((size_t) sort->chunk_count * sort->shard_count * sizeof(uint32_t));
	redistribution->places = (GpuSortRowPlace *) malloc(sample * sizeof(GpuSortRowPlace));
	redistribution->keys = (uint64_t *) malloc((size_t) sample * sort->key_words * sizeof(uint64_t));
	redistribution->order = (uint32_t *) malloc(sample * sizeof(uint32_t));
	if (redistribution->numbers == NULL || redistribution->histograms == NULL || redistribution->places == NULL ||
		redistribution->keys == NULL || redistribution->order == NULL)
		return gpusort_fail(error, GPUSORT_REASON_NO_MEMORY, "out of memory");

	for (uint32_t c = 0; c < sort->chunk_count; c++)
		redistribution->own[sort->chunks[c].shard]++;
	for (uint32_t p = 0; p < sort->shard_count; p++)
	{
		first[p] = next;
		next += redistribution->own[p];
	}
	for (uint32_t c = 0; c < sort->chunk_count; c++)
		redistribution->numbers[first[sort->chunks[c].shard]++] = c;
	return 0;
}

/* splitmix64's mixing: a random number for each number */
static uint64_t
mix(uint64_t z)
{
	z += UINT64_C(0x9E3779B97F4A7C15);
	z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
	return z ^ z >> 31;
}

/* Returns the row that the sample has of its j-th stretch of rows: any of them, against patterns of the input. */
static uint64_t
sample_row(const GpuSort *sort, uint32_t sample, uint32_t j)
{
	uint64_t from = sort->rows * j / sample;
	uint64_t to = sort->rows * (j + 1) / sample;

	return from + mix(from) % (to - from);
}

/* Picks the rows of the sample, shard by shard. */
static void
pick_rows(GpuSort *sort, uint32_t sample)
{
	GpuSortRedistribution *redistribution = sort->redistribution;
	uint32_t next = 0;

	for (uint32_t p = 0; p < sort->shard_count; p++)
	{
		uint32_t chunk = 0;

		for (uint32_t j = 0; j < sample; j++)
		{
			uint64_t row = sample_row(sort, sample, j);

			while (row >= (uint64_t) sort->chunks[chunk].first_row + sort->chunks[chunk].rows)
				chunk++;
			if (sort->chunks[chunk].shard == p)
			{
				GpuSortRowPlace *place = &redistribution->places[next + redistribution->picked[p]++];

				place->chunk = chunk;
				place->row = (uint32_t) (row - sort->chunks[chunk].first_row);
			}
		}
		next += redistribution->picked[p];
	}
}

/* Allocates a shard's redistribution_block, fills it, and starts the D2H copy of the sample's keys. */
static int
start_sample(GpuSortShard *shard, uint32_t first_own, uint32_t first_picked, GpuSortError *error)
{
	GpuSort *sort = shard->sort;
	GpuSortRedistribution *redistribution = sort->redistribution;
	const uint32_t p = (uint32_t) (shard - sort->shards);
	const uint32_t picked = std::max(redistribution->picked[p], (uint32_t) GPUSORT_SHARDS_MAX);
	RedistributionShard *mine = &redistribution->shards[p];
	cudaStream_t stream = shard->lane->compute;
	const size_t numbers_bytes = redistribution->own[p] * sizeof(uint32_t);
	const size_t key_bytes = sort->key_words * sizeof(uint64_t);
	uint64_t end = 0;
	const uint64_t chunks = gpusort_region_lay(&end, sort->chunk_count * sizeof(GpuSortDeviceChunk));
	const uint64_t numbers = gpusort_region_lay(&end, numbers_bytes);
	const uint64_t histograms = gpusort_region_lay(&end, numbers_bytes * sort->shard_count);
	const uint64_t places = gpusort_region_lay(&end, picked * sizeof(GpuSortRowPlace));
	const uint64_t keys = gpusort_region_lay(&end, picked * key_bytes);
	char *base;

	if (gpusort_device_use(shard->device, error) != 0 ||
		gpusort_block_acquire(shard->device, gpusort_block_size(end), &shard->redistribution_block, error) != 0)
		return -1;
	base = (char *) shard->redistribution_block.base;
	mine->chunks = (GpuSortDeviceChunk *) (base + chunks);
	mine->numbers = (uint32_t *) (base + numbers);
	mine->histograms = (uint32_t *) (base + histograms);
	mine->picked = (GpuSortRowPlace *) (base + places);
	mine->keys = (uint64_t *) (base + keys);

	GPUSORT_CUDA(shard->device, error,
				 cudaMemcpyAsync(mine->chunks, sort->chunks, sort->chunk_count * sizeof(GpuSortDeviceChunk),
								 cudaMemcpyHostToDevice, stream));
	if (redistribution->own[p] > 0)
		GPUSORT_CUDA(shard->device, error,
					 cudaMemcpyAsync(mine->numbers, redistribution->numbers + first_own, numbers_bytes,
									 cudaMemcpyHostToDevice, stream));
	if (redistribution->picked[p] > 0)
	{
		const uint32_t rows = redistribution->picked[p];

		GPUSORT_CUDA(shard->device, error,
					 cudaMemcpyAsync(mine->picked, redistribution->places + first_picked,
									 rows * sizeof(GpuSortRowPlace), cudaMemcpyHostToDevice, stream));
		GPUSORT_LAUNCH(shard->device, error, pick_keys, (rows + GPUSORT_THREADS - 1) / GPUSORT_THREADS,
					   GPUSORT_THREADS, stream, mine->chunks, sort->key_words, mine->picked, rows, mine->keys);
		GPUSORT_CUDA(shard->device, error,
					 cudaMemcpyAsync((char *) redistribution->keys + first_picked * key_bytes, mine->keys,
									 rows * key_bytes, cudaMemcpyDeviceToHost, stream));
	}
	GPUSORT_CUDA(shard->device, error, cudaEventRecord(shard->lane->computed, stream));
	return 0;
}

/* Puts the sample in order and takes the splitters from it. */
static void
choose_splitters(GpuSort *sort, uint32_t sample)
{
	GpuSortRedistribution *redistribution = sort->redistribution;
	const uint32_t key_words = sort->key_words;
	const uint64_t *keys = redistribution->keys;
	const GpuSortRowPlace *places = redistribution->places;
	uint64_t rows_before = 0;

	for (uint32_t i = 0; i < sample; i++)
		redistribution->order[i] = i;
	std::sort(redistribution->order, redistribution->order + sample, [keys, places, key_words](uint32_t a, uint32_t b)
			  { return row_before(keys + (size_t) a * key_words, places[a], keys + (size_t) b * key_words, places[b],
								  key_words); });
	for (uint32_t p = 0; p + 1 < sort->shard_count; p++)
	{
		uint32_t at;

		/* all rows of the sample are before a splitter at its end, but that row */
		rows_before += sort->shards[p].rows_put;
		at = (uint32_t) std::min((uint64_t) ((double) rows_before / sort->rows * sample), (uint64_t) sample - 1);
		at = redistribution->order[at];
		redistribution->splitters[p] = places[at];
		memcpy(redistribution->splitter_keys + (size_t) p * key_words, keys + (size_t) at * key_words,
			   key_words * sizeof(uint64_t));
	}
}

/* A shard's own chunks, once the splitters are where its sample was. */
static GpuSortOwnChunks
own_chunks(const GpuSortShard *shard)
{
	const GpuSort *sort = shard->sort;
	const uint32_t p = (uint32_t) (shard - sort->shards);
	const RedistributionShard *mine = &sort->redistribution->shards[p];
	GpuSortOwnChunks own = {};

	own.chunks = mine->chunks;
	own.numbers = mine->numbers;
	own.count = sort->redistribution->own[p];
	own.key_words = sort->key_words;
	own.shards = sort->shard_count;
	own.splitters = mine->picked;
	own.splitter_keys = mine->keys;
	return own;
}

/* Starts the histograms of a shard's chunks, and their D2H copy. */
static int
start_histograms(GpuSortShard *shard, uint32_t first_own, GpuSortError *error)
{
	GpuSort *sort = shard->sort;
	GpuSortRedistribution *redistribution = sort->redistribution;
	const uint32_t p = (uint32_t) (shard - sort->shards);
	const uint32_t splitters = sort->shard_count - 1;
	RedistributionShard *mine = &redistribution->shards[p];
	cudaStream_t stream = shard->lane->compute;

	if (gpusort_device_use(shard->device, error) != 0)
		return -1;
	GPUSORT_CUDA(shard->device, error,
				 cudaMemcpyAsync(mine->picked, redistribution->splitters, splitters * sizeof(GpuSortRowPlace),
								 cudaMemcpyHostToDevice, stream));
	GPUSORT_CUDA(shard->device, error,
				 cudaMemcpyAsync(mine->keys, redistribution->splitter_keys,
								 (size_t) splitters * sort->key_words * sizeof(uint64_t), cudaMemcpyHostToDevice,
								 stream));
	if (redistribution->own[p] > 0)
	{
		GPUSORT_LAUNCH(shard->device, error, count_rows, redistribution->own[p], GPUSORT_THREADS, stream,
					   own_chunks(shard), mine->histograms);
		GPUSORT_CUDA(shard->device, error,
					 cudaMemcpyAsync(redistribution->histograms + (size_t) first_own * sort->shard_count,
									 mine->histograms,
									 (size_t) redistribution->own[p] * sort->shard_count * sizeof(uint32_t),
									 cudaMemcpyDeviceToHost, stream));
	}
	GPUSORT_CUDA(shard->device, error, cudaEventRecord(shard->lane->computed, stream));
	return 0;
}

/* Waits for what was started on all shards. */
static int
wait_for_shards(GpuSort *sort, GpuSortError *error)
{
	for (uint32_t p = 0; p < sort->shard_count; p++)
	{
		if (gpusort_device_use(sort->shards[p].device, error) != 0 ||
			gpusort_wait(sort->shards[p].device, sort->shards[p].lane->computed, error) != 0)
			return -1;
	}
	return gpusort_check_cancel(sort, error);
}

/* Scans the histograms, chunks in the order they were put, into places; the totals are the shards' rows. */
static int
scan_histograms(GpuSort *sort, GpuSortError *error)
{
	GpuSortRedistribution *redistribution = sort->redistribution;
	const uint32_t shards = sort->shard_count;
	uint64_t rows[GPUSORT_SHARDS_MAX] = {0};
	uint64_t all = 0;
	uint32_t next[GPUSORT_SHARDS_MAX];

	next[0] = 0;
	for (uint32_t p = 1; p < shards; p++)
		next[p] = next[p - 1] + redistribution->own[p - 1];
	for (uint32_t c = 0; c < sort->chunk_count; c++)
	{
		uint32_t *histogram = redistribution->histograms + (size_t) next[sort->chunks[c].shard]++ * shards;
		uint64_t here = 0;

		for (uint32_t p = 0; p < shards; p++)
		{
			uint32_t count = histogram[p];

			histogram[p] = (uint32_t) rows[p];
			rows[p] += count;
			here += count;
		}
		if (here != sort->chunks[c].rows)
			return gpusort_fail(error, GPUSORT_REASON_ORDER_CHECK, "%llu of a chunk's %u rows were counted",
								(unsigned long long) here, sort->chunks[c].rows);
	}
	for (uint32_t p = 0; p < shards; p++)
	{
		sort->shards[p].rows = (uint32_t) rows[p];
		all += rows[p];
	}
	if (all != sort->rows)
		return gpusort_fail(error, GPUSORT_REASON_ORDER_CHECK, "%llu of %llu rows were counted",
							(unsigned long long) all, (unsigned long long) sort->rows);
	return 0;
}

int
gpusort_redistribution_plan(GpuSort *sort, GpuSortError *error)
{
	const uint64_t fit = GPUSORT_REDISTRIBUTION_BYTES / (sizeof(GpuSortRowPlace) + sort->key_words * sizeof(uint64_t));
	const uint64_t good = (uint64_t) GPUSORT_REDISTRIBUTION_SAMPLE * sort->shard_count;
	const uint32_t sample = (uint32_t) std::min(sort->rows, std::min(fit, good));
	GpuSortRedistribution *redistribution;
	uint32_t own = 0;
	uint32_t picked = 0;

	if (start_redistribution(sort, sample, error) != 0)
		return -1;
	redistribution = sort->redistribution;
	pick_rows(sort, sample);
	for (uint32_t p = 0; p < sort->shard_count; p++)
	{
		if (start_sample(&sort->shards[p], own, picked, error) != 0)
			return -1;
		own += redistribution->own[p];
		picked += redistribution->picked[p];
	}
	if (wait_for_shards(sort, error) != 0)
		return -1;

	choose_splitters(sort, sample);
	own = 0;
	for (uint32_t p = 0; p < sort->shard_count; p++)
	{
		if (start_histograms(&sort->shards[p], own, error) != 0)
			return -1;
		own += redistribution->own[p];
	}
	if (wait_for_shards(sort, error) != 0)
		return -1;
	return scan_histograms(sort, error);
}

int
gpusort_redistribute_rows(GpuSort *sort, const GpuSortPackPlan *plan, GpuSortError *error)
{
	GpuSortRedistribution *redistribution = sort->redistribution;
	GpuSortTargets targets = {};
	GpuSortPackPlan window;
	uint32_t own = 0;

	/* rows that are in order need no partial keys */
	gpusort_pack_window_plan(&window, plan, 0, sort->order != GPUSORT_INPUT_UNKNOWN ? 0 : 32);

	for (uint32_t p = 0; p < sort->shard_count; p++)
	{
		targets.refs[p] = sort->shards[p].work.refs;
		targets.partial_keys[p] = sort->shards[p].work.partial_keys;
	}
	for (uint32_t p = 0; p < sort->shard_count; p++)
	{
		GpuSortShard *shard = &sort->shards[p];
		RedistributionShard *mine = &redistribution->shards[p];

		if (gpusort_device_use(shard->device, error) != 0)
			return -1;
		if (redistribution->own[p] > 0)
		{
			GPUSORT_CUDA(shard->device, error,
						 cudaMemcpyAsync(mine->histograms,
										 redistribution->histograms + (size_t) own * sort->shard_count,
										 (size_t) redistribution->own[p] * sort->shard_count * sizeof(uint32_t),
										 cudaMemcpyHostToDevice, shard->lane->compute));
			GPUSORT_LAUNCH(shard->device, error, redistribute_rows, redistribution->own[p], GPUSORT_THREADS,
						   shard->lane->compute, own_chunks(shard), window, mine->histograms, targets);
		}
		GPUSORT_CUDA(shard->device, error, cudaEventRecord(shard->lane->computed, shard->lane->compute));
		own += redistribution->own[p];
	}
	if (wait_for_shards(sort, error) != 0)
		return -1;

	for (uint32_t p = 0; p < sort->shard_count; p++)
		gpusort_block_release(sort->shards[p].device, &sort->shards[p].redistribution_block);
	gpusort_redistribution_free(sort);
	return 0;
}
