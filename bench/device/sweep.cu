/*-------------------------------------------------------------------------
 *
 * sweep.cu
 *	  Every algorithm on every distribution, key and size; see bench.h.
 *
 * From the smallest size to the largest, so that what time there is goes to all
 * algorithms.  One that took longer than most_ms at some size is not measured
 * at larger ones of the same key.
 *
 *-------------------------------------------------------------------------
 */
#include "bench.h"

#include <string.h>

#include <vector>

bool
bench_listed(const char *list, const char *name)
{
	size_t length = strlen(name);

	if (list == NULL)
		return true;
	for (const char *at = list;; at++)
	{
		if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == '\0'))
			return true;
		at = strchr(at, ',');
		if (at == NULL)
			return false;
	}
}

void
bench_sweep(const BenchOptions *options)
{
	int count;
	const BenchAlgorithm *algorithms = bench_algorithms(&count);
	std::vector<bool> slow((size_t) (count * BENCH_KEYS));
	double end = bench_clock() + options->seconds * 1e3;
	uint32_t left_out = 0;

	for (int size = 0; size < options->size_count; size++)
	{
		for (int key = 0; key < BENCH_KEYS; key++)
		{
			for (int distribution = 0; distribution < GPUSORT_DISTRIBUTIONS; distribution++)
			{
				BenchInput input = {};
				uint64_t rows = options->sizes[size];

				if ((options->distributions >> distribution & 1) == 0 || (options->keys >> key & 1) == 0 ||
					rows > GPUSORT_DEVICE_SORT_MAX_ROWS)
					continue;
				if (bench_clock() >= end)
				{
					left_out++;
					continue;
				}
				if (bench_input_make(&input, (BenchKey) key, distribution, rows, options->seed) != 0)
				{
					bench_input_free(&input);
					continue;
				}
				for (int i = 0; i < count; i++)
				{
					const BenchAlgorithm *algorithm = &algorithms[i];
					BenchTimes times;
					BenchResult result = {};

					if (!bench_listed(options->algorithms, algorithm->name) ||
						!algorithm->can(algorithm, (BenchKey) key, rows) || slow[(size_t) (i * BENCH_KEYS + key)] ||
						bench_clock() >= end)
						continue;
					if (bench_measure(algorithm, &input, options->repeat, options->most_ms, &times) != 0)
						continue;
					if (times.median > options->most_ms)
						slow[(size_t) (i * BENCH_KEYS + key)] = true;
					result.section = "sweep";
					result.algorithm = algorithm->name;
					result.key = bench_key_name(key);
					result.distribution = gpusort_distribution_name(distribution);
					result.rows = rows;
					result.devices = algorithm->on_cpu ? 0 : 1;
					result.with_ids = algorithm->with_ids;
					if (distribution == GPUSORT_UNIFORM)
						result.bytes_per_row = algorithm->bytes_per_row(algorithm, (BenchKey) key, rows);
					bench_record(&result, &times);
				}
				bench_input_free(&input);
			}
		}
	}
	if (left_out > 0)
		printf("%u inputs were left out: --seconds %g\n", left_out, options->seconds);
}

/*
 * What the pictures and the papers' tables need, in the time that there is: half of it
 * for all algorithms on uniform keys, by size; a quarter for gpusort and CUB on all distributions,
 * many rows; a quarter for all algorithms on all distributions, fewer rows.
 */
void
bench_survey(const BenchOptions *options)
{
	BenchOptions part = *options;

	part.distributions = 1u << GPUSORT_UNIFORM;
	part.seconds = options->seconds / 2;
	bench_sweep(&part);

	part = *options;
	part.seconds = options->seconds / 4;
	part.size_count = 1;
	part.sizes[0] = (uint64_t) 1 << 28;
	part.algorithms = "gpusort,cub,cub-int64";
	bench_sweep(&part);

	part.algorithms = options->algorithms;
	part.sizes[0] = (uint64_t) 1 << 24;
	part.keys = options->keys & (1u << BENCH_U32 | 1u << BENCH_U64);
	bench_sweep(&part);
}
