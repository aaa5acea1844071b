/*-------------------------------------------------------------------------
 *
 * multi_phases.cu
 *	  Where the time of a sort over several GPUs goes, and which of its settings
 *	  are best:  multi_phases [OPTION ...] [TRY ...]
 *
 *	--rows N			rows (2000000000)
 *	--key 4 | 8			bytes of a key (4)
 *	--ids				rows have row ids, and both come back
 *	--ids-only			ids alone come back
 *	--distribution NAME	of the keys (uniform)
 *	--repeat N			sorts of each try, after one that is checked (3)
 *	--seed N			of the keys
 *
 * A TRY is settings separated by commas; of those left out the default counts:
 *
 *	g=N			the first N GPUs; more than there are: each counts several times (all)
 *	bins=N		bins of each GPU
 *	chunk=N		rows of an upload at most
 *	sample=N	sampled rows for each bin
 *	copy		exchange by copies
 *
 * Prints a line for each sort and, of the fastest of each try, one for each GPU;
 * milliseconds from the sort's start:
 *
 *	up			its last chunk had arrived
 *	+part		more until this was partitioned
 *	+read		more until its first bin was there
 *	+sort		more until its first download began
 *	down		its last bin was in host memory
 *	read, sort, copy	sums over its bins
 *
 *-------------------------------------------------------------------------
 */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

#include <algorithm>

#include "multi/multi_sort.h"

#define FILL_ROWS ((uint64_t) 1 << 25) /* made at a time */

typedef struct Phases
{
	BenchInput input;
	uint32_t flags;
	bool keys_out;
	int repeat;
	void *keys; /* in host memory: input and output */
	uint32_t *ids;
	void *part; /* device memory for FILL_ROWS keys */
} Phases;

static size_t
keys_bytes(const Phases *phases)
{
	return phases->input.rows * bench_key_bytes(phases->input.key);
}

static int
fill_keys(const Phases *phases)
{
	const size_t key_bytes = bench_key_bytes(phases->input.key);

	BENCH_CUDA(cudaSetDevice(0));
	for (uint64_t first = 0; first < phases->input.rows; first += FILL_ROWS)
	{
		uint64_t count = std::min(FILL_ROWS, phases->input.rows - first);

		if (bench_input_fill(&phases->input, first, count, phases->part, 0) != 0)
			return -1;
		BENCH_CUDA(cudaMemcpyAsync((char *) phases->keys + first * key_bytes, phases->part, count * key_bytes,
								   cudaMemcpyDeviceToHost, 0));
	}
	BENCH_CUDA(cudaDeviceSynchronize());
	return 0;
}

/* Fills config from a TRY; 0, or -1 if it is none. */
static int
parse_try(const char *text, GpuSortMultiConfig *config)
{
	char *copy = strdup(text);
	char *rest = NULL;
	int status = 0;

	for (char *word = strtok_r(copy, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest))
	{
		const char *number = strchr(word, '=');
		const uint32_t value = number != NULL ? (uint32_t) strtoul(number + 1, NULL, 10) : 0;

		if (strncmp(word, "g=", 2) == 0)
			config->device_count = (int) value;
		else if (strncmp(word, "bins=", 5) == 0)
			config->bins_per_device = value;
		else if (strncmp(word, "chunk=", 6) == 0)
			config->chunk_rows = value;
		else if (strncmp(word, "sample=", 7) == 0)
			config->sample_per_bin = value;
		else if (strcmp(word, "copy") == 0)
			config->flags |= GPUSORT_MULTI_COPY;
		else
			status = bench_failed("what is %s?", word);
	}
	free(copy);
	return status;
}

static void
print_devices(const GpuSortMultiReport *report, int devices)
{
	printf("  gpu      up   +part   +read   +sort    down |    read    sort    copy |        rows bins\n");
	for (int i = 0; i < devices; i++)
	{
		const GpuSortMultiPhases *p = &report->devices[i];

		printf("  %3d %7.2f %7.2f %7.2f %7.2f %7.2f | %7.2f %7.2f %7.2f | %11llu %4u\n", i, p->uploaded,
			   p->partitioned - p->uploaded, p->exchanged - p->partitioned, p->sorted - p->exchanged, p->downloaded,
			   p->exchange_sum, p->sort_sum, p->download_sum, (unsigned long long) p->rows, p->bins);
	}
	fflush(stdout);
}

static int
sort_try(const Phases *phases, GpuSortMulti *multi, const char *text, int devices)
{
	const bool with_ids = (phases->flags & GPUSORT_MULTI_IDS) != 0;
	GpuSortMultiReport best = {};
	GpuSortMultiJob job = {};

	job.rows = phases->input.rows;
	job.keys = phases->keys;
	job.keys_out = phases->keys_out ? phases->keys : NULL;
	job.ids_out = phases->ids;
	for (int i = 0; i <= phases->repeat; i++)
	{
		GpuSortMultiReport report;

		if ((i == 0 || phases->keys_out) && fill_keys(phases) != 0)
			return -1;
		BENCH_CUDA((cudaError_t) gpusort_multi_sort(multi, &job, &report));
		if (i == 0)
		{
			/* ids alone are checked by a context that gives keys too */
			if (phases->keys_out && bench_check_host(&phases->input, phases->keys, phases->ids, text) != 0)
				return -1;
			continue;
		}
		printf("%s: %.2f ms, sample %.2f ms, %u bins up to %.2f of the mean, %u chunks, %s%s%s\n",
			   text[0] != 0 ? text : "defaults", report.total_ms, report.sample_ms, report.bins,
			   (double) report.largest_bin * report.bins / (double) job.rows, report.chunks,
			   report.peer_access ? "by kernels" : "by copies", with_ids ? ", with ids" : "",
			   report.attempts > 1 ? ", a poor sample" : "");
		if (best.total_ms == 0 || report.total_ms < best.total_ms)
			best = report;
	}
	if (phases->repeat > 0)
		print_devices(&best, devices);
	return 0;
}

static int
run_try(const Phases *phases, const char *text)
{
	GpuSortMultiConfig config = {};
	GpuSortMulti *multi;
	int gpus;
	int status;

	BENCH_CUDA(cudaGetDeviceCount(&gpus));
	config.device_count = std::min(gpus, GPUSORT_MULTI_MAX_DEVICES);
	config.max_rows = phases->input.rows;
	config.key_bytes = (uint32_t) bench_key_bytes(phases->input.key);
	config.flags = phases->flags;
	if (parse_try(text, &config) != 0)
		return -1;
	for (int i = 0; i < config.device_count && i < GPUSORT_MULTI_MAX_DEVICES; i++)
		config.devices[i] = i % gpus;
	BENCH_CUDA((cudaError_t) gpusort_multi_open(&config, &multi));
	status = sort_try(phases, multi, text, config.device_count);
	gpusort_multi_close(multi);
	return status;
}

static int
usage(const char *program)
{
	fprintf(stderr, "usage: %s [--rows N] [--key 4|8] [--ids | --ids-only] [--distribution NAME] [--repeat N] "
					"[--seed N] [g=N,bins=N,chunk=N,sample=N,copy ...]\n",
			program);
	return 2;
}

int
main(int argc, char **argv)
{
	Phases phases = {};
	int status = 0;
	int i;

	phases.input.rows = 2000000000;
	phases.input.seed = 1;
	phases.keys_out = true;
	phases.repeat = 3;
	for (i = 1; i < argc && strncmp(argv[i], "--", 2) == 0; i++)
	{
		const char *value = i + 1 < argc ? argv[i + 1] : "";

		if (strcmp(argv[i], "--ids") == 0 || strcmp(argv[i], "--ids-only") == 0)
		{
			phases.flags |= GPUSORT_MULTI_IDS;
			phases.keys_out = strcmp(argv[i], "--ids") == 0;
			continue;
		}
		if (strcmp(argv[i], "--rows") == 0)
			phases.input.rows = (uint64_t) strtod(value, NULL);
		else if (strcmp(argv[i], "--key") == 0 && (strcmp(value, "4") == 0 || strcmp(value, "8") == 0))
			phases.input.key = value[0] == '4' ? BENCH_U32 : BENCH_U64;
		else if (strcmp(argv[i], "--repeat") == 0)
			phases.repeat = atoi(value);
		else if (strcmp(argv[i], "--seed") == 0)
			phases.input.seed = strtoull(value, NULL, 10);
		else if (strcmp(argv[i], "--distribution") == 0)
		{
			phases.input.distribution = 0;
			while (phases.input.distribution < GPUSORT_DISTRIBUTIONS &&
				   strcmp(gpusort_distribution_name(phases.input.distribution), value) != 0)
				phases.input.distribution++;
			if (phases.input.distribution == GPUSORT_DISTRIBUTIONS)
				return usage(argv[0]);
		}
		else
			return usage(argv[0]);
		i++;
	}
	if (bench_host_alloc(&phases.keys, keys_bytes(&phases)) != 0 ||
		(phases.flags != 0 && bench_host_alloc((void **) &phases.ids, phases.input.rows * 4) != 0) ||
		bench_device_alloc(&phases.part,
						   std::min(FILL_ROWS, phases.input.rows) * bench_key_bytes(phases.input.key)) != 0)
		return 1;
	if (i == argc)
		status = run_try(&phases, "");
	for (; i < argc; i++)
		status |= run_try(&phases, argv[i]);
	bench_host_free(phases.keys, keys_bytes(&phases));
	bench_host_free(phases.ids, phases.input.rows * 4);
	(void) cudaFree(phases.part);
	return status != 0;
}
