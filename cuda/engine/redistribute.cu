/*-------------------------------------------------------------------------
 *
 * spread.cu
 *	  The rows of a sort over several devices; see spread.h.
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
#include "engine/upload.h"

/*
 * Rows of the sample per part, and bytes of all of it at most.  The share of a part is
 * then off by 1/64, its standard deviation; work memory has room for five times that.
 */
#define GPUSORT_SPREAD_SAMPLE 4096
#define GPUSORT_SPREAD_BYTES  ((uint64_t) 4 << 20)

#define GPUSORT_REGION_ALIGN 256

/* What a part has on its device in its spread_block. */
typedef struct SpreadPart
{
	GpuSortDeviceChunk *chunks; /* all */
	uint32_t *numbers;          /* of the part's own chunks */
	uint32_t *counts;           /* by own chunk and part: rows, then the place of the first */
	GpuSortRowPlace *picked;    /* rows of the sample that lie here, or the splitters */
	uint64_t *keys;             /* of them */
} SpreadPart;

/* The sort's, in host memory. */
struct GpuSortSpread
{
	SpreadPart parts[GPUSORT_PARTS_MAX];
	uint32_t own[GPUSORT_PARTS_MAX];    /* chunks that a part has */
	uint32_t picked[GPUSORT_PARTS_MAX]; /* rows of the sample that it has */
	uint32_t *numbers;                  /* of chunks: part 0's, part 1's ... */
	uint32_t *counts;                   /* by chunk in that order, and part */
	GpuSortRowPlace *places;            /* of the sample's rows: part 0's, part 1's ... */
	uint64_t *keys;                     /* of them */
	uint32_t *order;                    /* of the sample */
	GpuSortRowPlace splitters[GPUSORT_PARTS_MAX];
	uint64_t splitter_keys[GPUSORT_PARTS_MAX * GPUSORT_MAX_KEY_WORDS];
};

static uint64_t
align_region(uint64_t bytes)
{
	return (bytes + GPUSORT_REGION_ALIGN - 1) / GPUSORT_REGION_ALIGN * GPUSORT_REGION_ALIGN;
}

void
gpusort_spread_free(GpuSort *sort)
{
	GpuSortSpread *spread = sort->spread;

	if (spread == NULL)
		return;
	free(spread->numbers);
	free(spread->counts);
	free(spread->places);
	free(spread->keys);
	free(spread->order);
	free(spread);
	sort->spread = NULL;
}

/* The host's memory, and which chunks each part has. */
static int
make_spread(GpuSort *sort, uint32_t sample, GpuSortError *error)
{
	GpuSortSpread *spread = (GpuSortSpread *) calloc(1, sizeof(GpuSortSpread));
	uint32_t first[GPUSORT_PARTS_MAX];
	uint32_t next = 0;

	sort->spread = spread;
	if (spread == NULL)
		return gpusort_fail(error, GPUSORT_REASON_NO_MEMORY, "out of memory");
	spread->numbers = (uint32_t *) malloc(sort->chunk_count * sizeof(uint32_t));
	spread->counts = (uint32_t *) malloc((size_t) sort->chunk_count * sort->part_count * sizeof(uint32_t));
	spread->places = (GpuSortRowPlace *) malloc(sample * sizeof(GpuSortRowPlace));
	spread->keys = (uint64_t *) malloc((size_t) sample * sort->key_words * sizeof(uint64_t));
	spread->order = (uint32_t *) malloc(sample * sizeof(uint32_t));
	if (spread->numbers == NULL || spread->counts == NULL || spread->places == NULL || spread->keys == NULL ||
		spread->order == NULL)
		return gpusort_fail(error, GPUSORT_REASON_NO_MEMORY, "out of memory");

	for (uint32_t c = 0; c < sort->chunk_count; c++)
		spread->own[sort->chunks[c].part]++;
	for (uint32_t p = 0; p < sort->part_count; p++)
	{
		first[p] = next;
		next += spread->own[p];
	}
	for (uint32_t c = 0; c < sort->chunk_count; c++)
		spread->numbers[first[sort->chunks[c].part]++] = c;
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

/* The row of the sample's j-th stretch of rows that is in it: any, so that no pattern of the input is. */
static uint64_t
sample_row(const GpuSort *sort, uint32_t sample, uint32_t j)
{
	uint64_t from = sort->rows * j / sample;
	uint64_t to = sort->rows * (j + 1) / sample;

	return from + mix(from) % (to - from);
}

/* Which rows are in the sample, part by part. */
static void
pick_rows(GpuSort *sort, uint32_t sample)
{
	GpuSortSpread *spread = sort->spread;
	uint32_t next = 0;

	for (uint32_t p = 0; p < sort->part_count; p++)
	{
		uint32_t chunk = 0;

		for (uint32_t j = 0; j < sample; j++)
		{
			uint64_t row = sample_row(sort, sample, j);

			while (row >= (uint64_t) sort->chunks[chunk].first_row + sort->chunks[chunk].rows)
				chunk++;
			if (sort->chunks[chunk].part == p)
			{
				spread->places[next + spread->picked[p]].chunk = chunk;
				spread->places[next + spread->picked[p]].row = (uint32_t) (row - sort->chunks[chunk].first_row);
				spread->picked[p]++;
			}
		}
		next += spread->picked[p];
	}
}

/* Takes a part's spread_block, fills it, and has the sample's keys copied to the host. */
static int
start_sample(GpuSortPart *part, uint32_t first_own, uint32_t first_picked, GpuSortError *error)
{
	GpuSort *sort = part->sort;
	GpuSortSpread *spread = sort->spread;
	const uint32_t p = (uint32_t) (part - sort->parts);
	const uint32_t picked = std::max(spread->picked[p], (uint32_t) GPUSORT_PARTS_MAX);
	SpreadPart *mine = &spread->parts[p];
	cudaStream_t stream = part->lane->compute;
	const uint64_t sizes[] = {
		sort->chunk_count * sizeof(GpuSortDeviceChunk),
		spread->own[p] * sizeof(uint32_t),
		(uint64_t) spread->own[p] * sort->part_count * sizeof(uint32_t),
		picked * sizeof(GpuSortRowPlace),
		(uint64_t) picked * sort->key_words * sizeof(uint64_t),
	};
	uint64_t bytes = 0;
	char *at;

	for (uint64_t size : sizes)
		bytes += align_region(size);
	if (gpusort_device_use(part->device, error) != 0 ||
		gpusort_block_take(part->device, gpusort_block_size(bytes), &part->spread_block, error) != 0)
		return -1;
	at = (char *) part->spread_block.base;
	mine->chunks = (GpuSortDeviceChunk *) at;
	mine->numbers = (uint32_t *) (at += align_region(sizes[0]));
	mine->counts = (uint32_t *) (at += align_region(sizes[1]));
	mine->picked = (GpuSortRowPlace *) (at += align_region(sizes[2]));
	mine->keys = (uint64_t *) (at += align_region(sizes[3]));

	GPUSORT_CUDA(part->device, error, cudaMemcpyAsync(mine->chunks, sort->chunks, sizes[0], cudaMemcpyHostToDevice, stream));
	if (spread->own[p] > 0)
		GPUSORT_CUDA(part->device, error, cudaMemcpyAsync(mine->numbers, spread->numbers + first_own, sizes[1], cudaMemcpyHostToDevice, stream));
	if (spread->picked[p] > 0)
	{
		const uint64_t key_bytes = sort->key_words * sizeof(uint64_t);

		GPUSORT_CUDA(part->device, error, cudaMemcpyAsync(mine->picked, spread->places + first_picked, spread->picked[p] * sizeof(GpuSortRowPlace), cudaMemcpyHostToDevice, stream));
		GPUSORT_LAUNCH(part->device, error, pick_keys, (spread->picked[p] + GPUSORT_THREADS - 1) / GPUSORT_THREADS,
					   GPUSORT_THREADS, stream, mine->chunks, sort->key_words, mine->picked, spread->picked[p],
					   mine->keys);
		GPUSORT_CUDA(part->device, error, cudaMemcpyAsync((char *) spread->keys + first_picked * key_bytes, mine->keys, spread->picked[p] * key_bytes, cudaMemcpyDeviceToHost, stream));
	}
	GPUSORT_CUDA(part->device, error, cudaEventRecord(part->lane->computed, stream));
	return 0;
}

/* Puts the sample in order and takes the splitters from it. */
static void
choose_splitters(GpuSort *sort, uint32_t sample)
{
	GpuSortSpread *spread = sort->spread;
	const uint32_t key_words = sort->key_words;
	uint64_t rows_before = 0;

	for (uint32_t i = 0; i < sample; i++)
		spread->order[i] = i;
	std::sort(spread->order, spread->order + sample, [spread, key_words](uint32_t a, uint32_t b)
			  { return row_before(spread->keys + (size_t) a * key_words, spread->places[a],
								  spread->keys + (size_t) b * key_words, spread->places[b], key_words); });
	for (uint32_t p = 0; p + 1 < sort->part_count; p++)
	{
		uint32_t at;

		/* all rows of the sample are before a splitter at its end, but that row */
		rows_before += sort->parts[p].rows_put;
		at = (uint32_t) std::min((uint64_t) ((double) rows_before / sort->rows * sample), (uint64_t) sample - 1);
		spread->splitters[p] = spread->places[spread->order[at]];
		memcpy(spread->splitter_keys + (size_t) p * key_words, spread->keys + (size_t) spread->order[at] * key_words,
			   key_words * sizeof(uint64_t));
	}
}

/* Has a part's rows counted, by chunk and the part they go to. */
static int
start_counting(GpuSortPart *part, uint32_t first_own, GpuSortError *error)
{
	GpuSort *sort = part->sort;
	GpuSortSpread *spread = sort->spread;
	const uint32_t p = (uint32_t) (part - sort->parts);
	const uint32_t splitters = sort->part_count - 1;
	SpreadPart *mine = &spread->parts[p];
	cudaStream_t stream = part->lane->compute;

	if (gpusort_device_use(part->device, error) != 0)
		return -1;
	GPUSORT_CUDA(part->device, error, cudaMemcpyAsync(mine->picked, spread->splitters, splitters * sizeof(GpuSortRowPlace), cudaMemcpyHostToDevice, stream));
	GPUSORT_CUDA(part->device, error, cudaMemcpyAsync(mine->keys, spread->splitter_keys, (size_t) splitters * sort->key_words * sizeof(uint64_t), cudaMemcpyHostToDevice, stream));
	if (spread->own[p] > 0)
	{
		GPUSORT_LAUNCH(part->device, error, count_rows, spread->own[p], GPUSORT_THREADS, stream,
					   mine->chunks, mine->numbers, spread->own[p], sort->key_words, mine->picked, mine->keys,
					   sort->part_count, mine->counts);
		GPUSORT_CUDA(part->device, error, cudaMemcpyAsync(spread->counts + (size_t) first_own * sort->part_count, mine->counts, (size_t) spread->own[p] * sort->part_count * sizeof(uint32_t), cudaMemcpyDeviceToHost, stream));
	}
	GPUSORT_CUDA(part->device, error, cudaEventRecord(part->lane->computed, stream));
	return 0;
}

/* Waits for what was started on all parts. */
static int
wait_for_parts(GpuSort *sort, GpuSortError *error)
{
	for (uint32_t p = 0; p < sort->part_count; p++)
	{
		if (gpusort_device_use(sort->parts[p].device, error) != 0 ||
			gpusort_wait(sort->parts[p].device, sort->parts[p].lane->computed, error) != 0)
			return -1;
	}
	return gpusort_check_cancel(sort, error);
}

/* Turns counts into places, chunks in the order they were put, and into the parts' rows. */
static int
place_rows(GpuSort *sort, GpuSortError *error)
{
	GpuSortSpread *spread = sort->spread;
	const uint32_t parts = sort->part_count;
	uint64_t rows[GPUSORT_PARTS_MAX] = {0};
	uint64_t all = 0;
	uint32_t next[GPUSORT_PARTS_MAX];

	next[0] = 0;
	for (uint32_t p = 1; p < parts; p++)
		next[p] = next[p - 1] + spread->own[p - 1];
	for (uint32_t c = 0; c < sort->chunk_count; c++)
	{
		uint32_t *counts = spread->counts + (size_t) next[sort->chunks[c].part]++ * parts;
		uint64_t here = 0;

		for (uint32_t p = 0; p < parts; p++)
		{
			uint32_t count = counts[p];

			counts[p] = (uint32_t) rows[p];
			rows[p] += count;
			here += count;
		}
		if (here != sort->chunks[c].rows)
			return gpusort_fail(error, GPUSORT_REASON_ORDER_CHECK, "%llu of a chunk's %u rows were counted",
								(unsigned long long) here, sort->chunks[c].rows);
	}
	for (uint32_t p = 0; p < parts; p++)
	{
		sort->parts[p].rows = (uint32_t) rows[p];
		all += rows[p];
	}
	return all == sort->rows ? 0 : gpusort_fail(error, GPUSORT_REASON_ORDER_CHECK, "%llu of %llu rows were counted", (unsigned long long) all, (unsigned long long) sort->rows);
}

int
gpusort_spread_count(GpuSort *sort, GpuSortError *error)
{
	const uint64_t fit = GPUSORT_SPREAD_BYTES / (sizeof(GpuSortRowPlace) + sort->key_words * sizeof(uint64_t));
	const uint64_t good = (uint64_t) GPUSORT_SPREAD_SAMPLE * sort->part_count;
	const uint32_t sample = (uint32_t) std::min(sort->rows, std::min(fit, good));
	GpuSortSpread *spread;
	uint32_t own = 0;
	uint32_t picked = 0;

	if (make_spread(sort, sample, error) != 0)
		return -1;
	spread = sort->spread;
	pick_rows(sort, sample);
	for (uint32_t p = 0; p < sort->part_count; p++)
	{
		if (start_sample(&sort->parts[p], own, picked, error) != 0)
			return -1;
		own += spread->own[p];
		picked += spread->picked[p];
	}
	if (wait_for_parts(sort, error) != 0)
		return -1;

	choose_splitters(sort, sample);
	own = 0;
	for (uint32_t p = 0; p < sort->part_count; p++)
	{
		if (start_counting(&sort->parts[p], own, error) != 0)
			return -1;
		own += spread->own[p];
	}
	if (wait_for_parts(sort, error) != 0)
		return -1;
	return place_rows(sort, error);
}

int
gpusort_spread_rows(GpuSort *sort, const GpuSortPackPlan *plan, GpuSortError *error)
{
	GpuSortSpread *spread = sort->spread;
	GpuSortTargets targets = {};
	GpuSortPackPlan window;
	uint32_t own = 0;

	/* rows that are in order need no prefixes */
	gpusort_pack_window_plan(&window, plan, 0, sort->order != GPUSORT_INPUT_UNKNOWN ? 0 : 32);

	for (uint32_t p = 0; p < sort->part_count; p++)
	{
		targets.refs[p] = sort->parts[p].work.refs;
		targets.prefixes[p] = sort->parts[p].work.prefixes;
	}
	for (uint32_t p = 0; p < sort->part_count; p++)
	{
		GpuSortPart *part = &sort->parts[p];
		SpreadPart *mine = &spread->parts[p];

		if (gpusort_device_use(part->device, error) != 0)
			return -1;
		if (spread->own[p] > 0)
		{
			GPUSORT_CUDA(part->device, error,
						 cudaMemcpyAsync(mine->counts, spread->counts + (size_t) own * sort->part_count,
										 (size_t) spread->own[p] * sort->part_count * sizeof(uint32_t),
										 cudaMemcpyHostToDevice, part->lane->compute));
			GPUSORT_LAUNCH(part->device, error, spread_rows, spread->own[p], GPUSORT_THREADS, part->lane->compute,
						   mine->chunks, mine->numbers, spread->own[p], window, mine->picked, mine->keys,
						   sort->part_count, mine->counts, targets);
		}
		GPUSORT_CUDA(part->device, error, cudaEventRecord(part->lane->computed, part->lane->compute));
		own += spread->own[p];
	}
	if (wait_for_parts(sort, error) != 0)
		return -1;

	for (uint32_t p = 0; p < sort->part_count; p++)
		gpusort_block_give(sort->parts[p].device, &sort->parts[p].spread_block);
	gpusort_spread_free(sort);
	return 0;
}
