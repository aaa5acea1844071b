/*-------------------------------------------------------------------------
 *
 * main.cu
 *	  The device benchmark's command line; see bench.h and README.md.
 *
 *-------------------------------------------------------------------------
 */
#include "bench.h"

#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char usage_text[] =
	"usage: device_bench [OPTION ...] [SECTION ...]\n"
	"\n"
	"  marks          the speeds that were to be reached\n"
	"  sweep          every algorithm by distribution, key and size, on one GPU\n"
	"  survey         a part of it: what pictures and tables need\n"
	"  multi          host memory to host memory, on one and more GPUs\n"
	"  list           the algorithms\n"
	"\n"
	"  --csv FILE             adds each result to it\n"
	"  --repeat N             times each is measured (5)\n"
	"  --rows N,...           marks: these rows of the table (1 to 9)\n"
	"  --shrink N             marks: all counts of rows divided by 2^N\n"
	"  --rmg PROGRAM          marks: RMG sort's own program\n"
	"  --seconds N            sweep, survey, multi: no new case after so long (60)\n"
	"  --most-ms N            sweep: no larger sizes once one took longer (1000)\n"
	"  --sizes N,...          sweep, multi: numbers of rows, or up to 31 their logarithms (16,18,...,30)\n"
	"  --keys NAME,...        u32, u64, float, composite\n"
	"  --distributions NAME,...\n"
	"  --algorithms NAME,...\n"
	"  --seed N\n";

enum
{
	OPTION_CSV = 256,
	OPTION_REPEAT,
	OPTION_ROWS,
	OPTION_SHRINK,
	OPTION_RMG,
	OPTION_SECONDS,
	OPTION_MOST_MS,
	OPTION_SIZES,
	OPTION_KEYS,
	OPTION_DISTRIBUTIONS,
	OPTION_ALGORITHMS,
	OPTION_SEED,
};

static const struct option long_options[] = {
	{"csv", required_argument, NULL, OPTION_CSV},
	{"repeat", required_argument, NULL, OPTION_REPEAT},
	{"rows", required_argument, NULL, OPTION_ROWS},
	{"shrink", required_argument, NULL, OPTION_SHRINK},
	{"rmg", required_argument, NULL, OPTION_RMG},
	{"seconds", required_argument, NULL, OPTION_SECONDS},
	{"most-ms", required_argument, NULL, OPTION_MOST_MS},
	{"sizes", required_argument, NULL, OPTION_SIZES},
	{"keys", required_argument, NULL, OPTION_KEYS},
	{"distributions", required_argument, NULL, OPTION_DISTRIBUTIONS},
	{"algorithms", required_argument, NULL, OPTION_ALGORITHMS},
	{"seed", required_argument, NULL, OPTION_SEED},
	{NULL, 0, NULL, 0},
};

static void
usage(void)
{
	fputs(usage_text, stderr);
	exit(2);
}

/* A number within bounds. */
static int
number(const char *text, int least, int most)
{
	char *end;
	long value = strtol(text, &end, 10);

	if (*text == '\0' || *end != '\0' || value < least || value > most)
	{
		fprintf(stderr, "not a number from %d to %d: %s\n", least, most, text);
		exit(2);
	}
	return (int) value;
}

/* A bit for each of `count` names that is in the list; all of the list must be names. */
static uint32_t
names(const char *list, const char *(*name_of)(int), int count)
{
	uint32_t bits = 0;
	int commas = 0;

	for (int i = 0; i < count; i++)
	{
		if (bench_listed(list, name_of(i)))
			bits |= 1u << i;
	}
	for (const char *at = list; *at != '\0'; at++)
		commas += *at == ',';
	if (__builtin_popcount(bits) != commas + 1)
	{
		fprintf(stderr, "not all of these are known: %s\n", list);
		exit(2);
	}
	return bits;
}

static void
sizes(BenchOptions *options, char *list)
{
	options->size_count = 0;
	for (char *at = strtok(list, ","); at != NULL && options->size_count < 32; at = strtok(NULL, ","))
	{
		uint64_t rows = (uint64_t) number(at, 0, INT_MAX);

		options->sizes[options->size_count++] = rows < 32 ? (uint64_t) 1 << rows : rows;
	}
}

static void
list_algorithms(void)
{
	int count;
	const BenchAlgorithm *algorithms = bench_algorithms(&count);

	for (int i = 0; i < count; i++)
		printf("%-28s %s; %s\n", algorithms[i].name, algorithms[i].with_ids ? "with row ids" : "keys only",
			   algorithms[i].what);
}

/* What is said at the top: device, copy. */
static int
print_head(const BenchOptions *options)
{
	cudaDeviceProp properties;
	int devices;

	BENCH_CUDA(cudaGetDeviceCount(&devices));
	BENCH_CUDA(cudaGetDeviceProperties(&properties, 0));
	printf("%d x %s; seed %llu; copy from device to device %.0f GB/s\n", devices, properties.name,
		   (unsigned long long) options->seed, bench_copy_bandwidth() / 1e9);
	return 0;
}

int
main(int argc, char **argv)
{
	BenchOptions options = {};
	const char *csv = NULL;
	int option;

	options.repeat = 5;
	options.seconds = 60;
	options.most_ms = 1000;
	options.seed = (uint64_t) time(NULL);
	options.distributions = GPUSORT_SWEPT_DISTRIBUTIONS;
	options.keys = (1u << BENCH_KEYS) - 1;
	for (int size = 16; size <= 30; size += 2)
		options.sizes[options.size_count++] = (uint64_t) 1 << size;

	while ((option = getopt_long(argc, argv, "h", long_options, NULL)) != -1)
	{
		switch (option)
		{
			case OPTION_CSV:
				csv = optarg;
				break;
			case OPTION_REPEAT:
				options.repeat = number(optarg, 1, 31);
				break;
			case OPTION_ROWS:
				options.rows = optarg;
				break;
			case OPTION_SHRINK:
				options.shrink = number(optarg, 0, 31);
				break;
			case OPTION_RMG:
				options.rmg = optarg;
				break;
			case OPTION_SECONDS:
				options.seconds = number(optarg, 0, 1000000);
				break;
			case OPTION_MOST_MS:
				options.most_ms = number(optarg, 1, 1000000);
				break;
			case OPTION_SIZES:
				sizes(&options, optarg);
				break;
			case OPTION_KEYS:
				options.keys = names(optarg, bench_key_name, BENCH_KEYS);
				break;
			case OPTION_DISTRIBUTIONS:
				options.distributions = names(optarg, gpusort_distribution_name, GPUSORT_DISTRIBUTIONS);
				break;
			case OPTION_ALGORITHMS:
				options.algorithms = optarg;
				break;
			case OPTION_SEED:
				options.seed = strtoull(optarg, NULL, 10);
				break;
			default:
				usage();
		}
	}
	for (int i = optind; i < argc; i++)
	{
		if (!bench_listed("marks,sweep,survey,multi,list", argv[i]))
			usage();
	}
	if (optind < argc && strcmp(argv[optind], "list") == 0)
	{
		list_algorithms();
		return 0;
	}
	if (csv != NULL && (bench_csv = fopen(csv, "a")) == NULL)
	{
		perror(csv);
		return 1;
	}
	if (print_head(&options) != 0)
		return 1;
	bench_record_head();
	for (int i = optind; i < argc || i == optind; i++)
	{
		const char *section = i < argc ? argv[i] : "marks";

		if (strcmp(section, "marks") == 0)
			bench_marks(&options);
		else if (strcmp(section, "sweep") == 0)
			bench_sweep(&options);
		else if (strcmp(section, "survey") == 0)
			bench_survey(&options);
		else if (strcmp(section, "multi") == 0)
			bench_multi_sweep(&options);
	}
	bench_print_marks();
	if (bench_csv != NULL)
		fclose(bench_csv);
	if (bench_failures > 0)
		printf("%d failures\n", bench_failures);
	return bench_failures > 0;
}
