/*-------------------------------------------------------------------------
 *
 * multi.cu
 *	  Sorts from host memory to host memory on one and several GPUs; see bench.h.
 *
 * Times are from the call to the last byte in host memory; memory is taken and
 * page-locked before.  Keys are sorted in place and made again before each sort.
 *
 *-------------------------------------------------------------------------
 */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <string>

#include "multi/multi_sort.h"
#include "published/multi_reference.h"

#define FILL_ROWS ((uint64_t) 1 << 25) /* made at a time */
#define U32_ROWS  UINT64_C(2000000000) /* of the mark for u32 keys */

/* Rows in host memory. */
typedef struct HostRows
{
	BenchInput input; /* its keys are in host memory */
	bool with_ids;
	void *keys;
	uint32_t *ids;
	void *part; /* device memory for FILL_ROWS keys */
} HostRows;

static size_t
rows_bytes(const HostRows *rows)
{
	return rows->input.rows * bench_key_bytes(rows->input.key);
}

static void
rows_close(HostRows *rows)
{
	bench_host_free(rows->keys, rows_bytes(rows));
	bench_host_free(rows->ids, rows->input.rows * 4);
	(void) cudaFree(rows->part);
	memset(rows, 0, sizeof(*rows));
}

static int
rows_open(HostRows *rows, BenchKey key, int distribution, uint64_t count, uint64_t seed, bool with_ids)
{
	memset(rows, 0, sizeof(*rows));
	rows->input.key = key;
	rows->input.distribution = distribution;
	rows->input.rows = count;
	rows->input.seed = seed;
	rows->with_ids = with_ids;
	BENCH_CUDA(cudaSetDevice(0));
	if (bench_host_alloc(&rows->keys, rows_bytes(rows)) != 0 ||
		(with_ids && bench_host_alloc((void **) &rows->ids, count * 4) != 0) ||
		bench_device_alloc(&rows->part, std::min(FILL_ROWS, count) * bench_key_bytes(key)) != 0)
		return -1;
	return 0;
}

/* Makes the keys, in host memory. */
static int
rows_fill(HostRows *rows)
{
	size_t key_bytes = bench_key_bytes(rows->input.key);

	BENCH_CUDA(cudaSetDevice(0));
	for (uint64_t first = 0; first < rows->input.rows; first += FILL_ROWS)
	{
		uint64_t count = std::min(FILL_ROWS, rows->input.rows - first);

		if (bench_input_fill(&rows->input, first, count, rows->part, 0) != 0)
			return -1;
		BENCH_CUDA(cudaMemcpyAsync((char *) rows->keys + first * key_bytes, rows->part, count * key_bytes,
								   cudaMemcpyDeviceToHost, 0));
	}
	BENCH_CUDA(cudaDeviceSynchronize());
	return 0;
}

static int
rows_check(const HostRows *rows, const char *what)
{
	BENCH_CUDA(cudaSetDevice(0));
	return bench_check_host(&rows->input, rows->keys, rows->ids, what);
}

static void
record(const HostRows *rows, const char *section, const char *algorithm, int devices, const BenchTimes *times,
	   const char *detail)
{
	BenchResult result = {};

	result.section = section;
	result.algorithm = algorithm;
	result.key = bench_key_name(rows->input.key);
	result.distribution = gpusort_distribution_name(rows->input.distribution);
	result.rows = rows->input.rows;
	result.devices = devices;
	result.with_ids = rows->with_ids;
	result.detail = detail;
	bench_record(&result, times);
}

/* ---- gpusort ---- */

/* What the slowest device's phases were, in words. */
static std::string
phases(const GpuSortMultiReport *report, int devices)
{
	const GpuSortMultiPhases *last = &report->devices[0];
	char text[BENCH_TEXT];

	for (int i = 1; i < devices; i++)
	{
		if (report->devices[i].downloaded > last->downloaded)
			last = &report->devices[i];
	}
	snprintf(text, sizeof(text), "up %.1f partitioned %.1f exchanged %.1f sorted %.1f down %.1f ms; %u bins; peers: %s",
			 last->uploaded, last->partitioned, last->exchanged, last->sorted, last->downloaded, report->bins,
			 report->peer_access ? "yes" : "no");
	return text;
}

static int
sort_gpusort(GpuSortMulti *multi, HostRows *rows, int devices, int repeat, BenchTimes *times, std::string *detail)
{
	GpuSortMultiJob job = {};
	GpuSortMultiReport report;
	char what[BENCH_TEXT];

	job.rows = rows->input.rows;
	job.keys = rows->keys;
	job.keys_out = rows->keys;
	job.ids_out = rows->ids;
	snprintf(what, sizeof(what), "gpusort, %d devices, %s, %s", devices, bench_key_name(rows->input.key),
			 gpusort_distribution_name(rows->input.distribution));
	for (int i = 0; i <= repeat; i++)
	{
		if (rows_fill(rows) != 0)
			return -1;
		BENCH_CUDA((cudaError_t) gpusort_multi_sort(multi, &job, &report));
		if (i == 0)
		{
			if (rows_check(rows, what) != 0)
				return -1;
			continue;
		}
		bench_times_add(times, report.total_ms);
		if (report.total_ms <= times->least)
			*detail = phases(&report, devices);
	}
	return 0;
}

/* Measures gpusort on the first so many devices. */
static int
measure_gpusort(const char *section, HostRows *rows, int devices, int repeat, BenchTimes *times)
{
	GpuSortMultiConfig config = {};
	GpuSortMulti *multi = NULL;
	std::string detail;
	int status;

	memset(times, 0, sizeof(*times));
	config.device_count = devices;
	for (int i = 0; i < devices; i++)
		config.devices[i] = i;
	config.max_rows = rows->input.rows;
	config.key_bytes = (uint32_t) bench_key_bytes(rows->input.key);
	config.flags = rows->with_ids ? GPUSORT_MULTI_IDS : 0;
	BENCH_CUDA((cudaError_t) gpusort_multi_open(&config, &multi));
	status = sort_gpusort(multi, rows, devices, repeat, times, &detail);
	gpusort_multi_close(multi);
	if (status == 0)
		record(rows, section, "gpusort-multi", devices, times, detail.c_str());
	return status;
}

/* ---- the references ---- */

static std::string
reference_phases(const GpuSortMultiTimes *times)
{
	char text[BENCH_TEXT];

	snprintf(text, sizeof(text), "up %.1f partition %.1f exchange %.1f sort %.1f down %.1f merge %.1f ms; %d passes",
			 times->upload, times->partition, times->exchange, times->sort, times->download, times->merge,
			 times->passes);
	return text;
}

static int
sort_reference(const GpuSortMultiReference *reference, GpuSortMultiContext *context, HostRows *rows, int repeat,
			   BenchTimes *times, std::string *detail)
{
	GpuSortMultiTimes report;

	for (int i = 0; i <= repeat; i++)
	{
		if (rows_fill(rows) != 0)
			return -1;
		BENCH_CUDA(reference->sort(context, rows->keys, rows->input.rows, &report));
		if (i == 0)
		{
			if (rows_check(rows, reference->name) != 0)
				return -1;
			continue;
		}
		bench_times_add(times, report.total);
		if (report.total <= times->least)
			*detail = reference_phases(&report);
	}
	return 0;
}

static int
measure_reference(const char *section, const GpuSortMultiReference *reference, HostRows *rows, int devices, int repeat,
				  BenchTimes *times)
{
	int ordinals[GPUSORT_MULTI_MAX_DEVICES];
	GpuSortMultiContext *context = NULL;
	std::string detail;
	cudaError_t opened;
	int status;

	memset(times, 0, sizeof(*times));
	for (int i = 0; i < devices; i++)
		ordinals[i] = i;
	opened = reference->open(ordinals, devices, rows->input.rows, (int) bench_key_bytes(rows->input.key), &context);
	status = opened == cudaSuccess ? sort_reference(reference, context, rows, repeat, times, &detail)
								   : bench_cuda_failed(opened, reference->name);
	reference->close(context);
	if (status == 0)
		record(rows, section, reference->name, devices, times, detail.c_str());
	return status;
}

/* ---- RMG sort's own program ---- */

/* Its times on 1, 2, 4 and 8 GPUs, by the logarithm; empty where it was not measured. */
typedef struct RmgTimes
{
	BenchTimes times[4];
} RmgTimes;

/*
 * One run of the program measures all numbers of GPUs if it knows RMG_COUNTS, otherwise all GPUs.
 * Each line that it prints has the GPUs between the third and fourth quote and ends with a time
 * in milliseconds; see RMG.md.
 */
static int
measure_rmg(const BenchOptions *options, uint64_t rows, int devices, RmgTimes *rmg)
{
	std::string counts;
	std::string gpus = "0";
	std::string command;
	char line[4096];
	int found = 0;
	FILE *output;

	for (int count = 2; count <= devices && count <= 8; count *= 2)
		counts += (counts.empty() ? "" : ",") + std::to_string(count);
	for (int i = 1; i < devices && i < 8; i++)
		gpus += "," + std::to_string(i);
	command = "RMG_CHECK=order RMG_COUNTS=" + counts + " RMG_REPEAT=" + std::to_string(std::min(options->repeat, 5)) +
		" '" + options->rmg + "' " + std::to_string(rows) + " " + gpus + " uint32 uniform 0 csv";
	printf("%s\n", command.c_str());
	fflush(stdout);
	output = popen(command.c_str(), "r");
	if (output == NULL)
		return bench_failed("%s", command.c_str());
	while (fgets(line, sizeof(line), output) != NULL)
	{
		const char *last = strrchr(line, ',');
		double ms = last != NULL ? atof(last + 1) : 0;
		const char *at = line;
		int used = 1;

		for (int quote = 0; quote < 3 && at != NULL; quote++)
		{
			at = strchr(at, '"');
			at = at != NULL ? at + 1 : NULL;
		}
		for (; at != NULL && *at != '"' && *at != '\0'; at++)
			used += *at == ',';
		for (int log = 0; log < 4; log++)
		{
			if (at != NULL && ms > 0 && used == 1 << log)
			{
				bench_times_add(&rmg->times[log], ms);
				found++;
			}
		}
	}
	if (pclose(output) != 0 || found == 0)
		return bench_failed("%s", command.c_str());
	return 0;
}

/* ---- the marks ---- */

static void
mark_u32(const BenchOptions *options, int devices, double ratio, const BenchTimes *rmg)
{
	HostRows rows = {};
	BenchTimes own = {};
	char work[BENCH_TEXT];
	char mark[BENCH_TEXT];
	char got[BENCH_TEXT];
	char text[2][32];

	snprintf(work, sizeof(work), "2e9 u32 keys, transfers included, %d GPUs", devices);
	snprintf(mark, sizeof(mark), "%gx RMG's program", ratio);
	if (rows_open(&rows, BENCH_U32, GPUSORT_UNIFORM, U32_ROWS >> options->shrink, options->seed, false) != 0 ||
		measure_gpusort("marks", &rows, devices, options->repeat, &own) != 0)
		bench_mark(work, mark, "", 0, ratio, "failed");
	else if (rmg->count > 0)
	{
		record(&rows, "marks", "rmg-program", devices, rmg, NULL);
		snprintf(got, sizeof(got), "%s, RMG %s", bench_duration(own.median, text[0]),
				 bench_duration(rmg->median, text[1]));
		bench_mark(work, mark, got, rmg->median / own.median, ratio, NULL);
	}
	else
		bench_mark(work, mark, bench_duration(own.median, text[0]), 0, ratio,
				   options->rmg == NULL ? "RMG's program was not given (--rmg)" : "RMG's program gave no time");
	rows_close(&rows);
}

static void
mark_u64(const BenchOptions *options, int devices)
{
	uint64_t count = UINT64_C(2000000000) >> options->shrink;
	const double wanted = devices == 4 ? 3.2 : 0;
	HostRows rows = {};
	BenchTimes one = {};
	BenchTimes all = {};
	char work[BENCH_TEXT];
	char got[BENCH_TEXT];
	char text[2][32];

	snprintf(work, sizeof(work), "2e9 (u64 key, row id), transfers included, %d GPUs against 1", devices);
	if (rows_open(&rows, BENCH_U64, GPUSORT_UNIFORM, count, options->seed, true) == 0 &&
		measure_gpusort("marks", &rows, 1, std::min(options->repeat, 3), &one) == 0 &&
		measure_gpusort("marks", &rows, devices, std::min(options->repeat, 3), &all) == 0)
	{
		snprintf(got, sizeof(got), "%s, one GPU %s", bench_duration(all.median, text[0]),
				 bench_duration(one.median, text[1]));
		bench_mark(work, wanted > 0 ? "3.2x" : "", got, all.median > 0 ? one.median / all.median : 0, wanted, NULL);
	}
	else
		bench_mark(work, wanted > 0 ? "3.2x" : "", "", 0, wanted, "failed");
	rows_close(&rows);
}

static int
count_devices(void)
{
	int devices = 0;

	if (cudaGetDeviceCount(&devices) != cudaSuccess)
		return 0;
	return std::min(devices, GPUSORT_MULTI_MAX_DEVICES);
}

void
bench_multi_marks(const BenchOptions *options)
{
	int devices = count_devices();
	bool sevenths = bench_listed(options->rows, "7");
	bool eighths = bench_listed(options->rows, "8");
	RmgTimes rmg = {};

	if (devices < 2)
	{
		if (sevenths)
			bench_mark("2e9 u32 keys, transfers included, 4 / 8 GPUs", "1.2x / 1.4x RMG's program", "", 0, 1.2,
					   "there is one GPU");
		if (eighths)
			bench_mark("2e9 (u64 key, row id), transfers included, 4 GPUs against 1", "3.2x", "", 0, 3.2,
					   "there is one GPU");
		return;
	}
	if (sevenths && options->rmg != NULL)
		(void) measure_rmg(options, U32_ROWS >> options->shrink, devices, &rmg);
	for (int log = 1; 1 << log <= devices && log < 4 && sevenths; log++)
		mark_u32(options, 1 << log, log == 3 ? 1.4 : 1.2, &rmg.times[log]);
	if (eighths)
		mark_u64(options, std::min(devices, 4));
	(void) cudaSetDevice(0);
}

/* ---- every algorithm ---- */

static void
sweep_one(const BenchOptions *options, BenchKey key, int distribution, uint64_t count, int devices, double end)
{
	HostRows rows = {};
	BenchTimes times;

	if (rows_open(&rows, key, distribution, count, options->seed, false) == 0)
	{
		if (bench_listed(options->algorithms, "gpusort-multi") && bench_clock() < end)
			(void) measure_gpusort("multi", &rows, devices, std::min(options->repeat, 3), &times);
		for (int i = 0; gpusort_multi_references[i] != NULL; i++)
		{
			const GpuSortMultiReference *reference = gpusort_multi_references[i];

			if (bench_listed(options->algorithms, reference->name) && bench_clock() < end &&
				!(reference->power_of_two && (devices & (devices - 1)) != 0))
				(void) measure_reference("multi", reference, &rows, devices, std::min(options->repeat, 3), &times);
		}
	}
	rows_close(&rows);
}

void
bench_multi_sweep(const BenchOptions *options)
{
	int devices = count_devices();
	double end = bench_clock() + options->seconds * 1e3;

	for (int size = 0; size < options->size_count; size++)
	{
		for (int distribution = 0; distribution < GPUSORT_DISTRIBUTIONS; distribution++)
		{
			for (int key = BENCH_U32; key <= BENCH_U64; key++)
			{
				for (int count = 1; count <= devices; count *= 2)
				{
					if ((options->distributions >> distribution & 1) && (options->keys >> key & 1) &&
						bench_clock() < end)
						sweep_one(options, (BenchKey) key, distribution, options->sizes[size], count, end);
				}
			}
		}
	}
	(void) cudaSetDevice(0);
}
