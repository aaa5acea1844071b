/*-------------------------------------------------------------------------
 *
 * engine_test.c
 *	  An engine against the order that is right, without service or PostgreSQL.
 *
 *	engine_test --engine host
 *	engine_test --engine cuda --library PATH
 *		--devices LIST		as gpusort.devices
 *		--seed N			to repeat a run; else a fresh one, printed
 *		--rounds N			cases with everything random (100)
 *		--rows N			rows of the largest cases (1000000)
 *		--most N			no case has more rows than that; for slow engines
 *		--chunk N			no chunk of a case has more rows than that
 *		--only NAMES		of: shapes limits runs random threads damage cancel memory share age
 *							faults several
 *		--patience N		how soon a cancelled call has to return (500 ms), of
 *							processor time on the host
 *
 * Prints TAP.  The tests themselves are in engine_order.c and engine_failure.c.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "engine_test.h"

#define POOL_CHUNKS (2 * ENGINE_TEST_THREADS)

EngineTest test = {.patience_ms = 500, .most_rows = UINT64_MAX};

static int tests_run;
static int tests_failed;

void
test_report(bool passed, const char *name, const CaseFailure *failure)
{
	tests_run++;
	printf("%s %d - %s\n", passed ? "ok" : "not ok", tests_run, name);
	if (!passed)
	{
		tests_failed++;
		printf("# %s\n", failure->text);
	}
	fflush(stdout);
}

void
test_whole_case(const char *name, CaseSpec spec)
{
	CaseFailure failure;
	bool passed = sort_case_run(&spec, rig_random(&test.seed), test.ops, test.engine, test.pool, &failure);

	test_report(passed, name, &failure);
}

void
test_case(const char *name, CaseSpec spec)
{
	if (spec.rows > test.most_rows)
		spec.rows = test.most_rows;
	if (spec.chunk_rows == 0)
		spec.chunk_rows = test.most_chunk_rows;
	test_whole_case(name, spec);
}

void
test_idle(const char *name)
{
	GpuSortDevice devices[64];
	int count = test.ops->describe(test.engine, devices, 64);
	CaseFailure failure = {.text = ""};

	if (count < 1)
		case_failed(&failure, "no devices");
	for (int i = 0; i < count; i++)
	{
		printf("# device %u: %s; %s; limit %llu MiB\n", devices[i].ordinal, devices[i].name, devices[i].detail,
			   (unsigned long long) (devices[i].memory_limit >> 20));
		if (devices[i].jobs != 0 || devices[i].memory_used != 0)
			case_failed(&failure, "%u jobs, %llu bytes", devices[i].jobs,
						(unsigned long long) devices[i].memory_used);
	}
	test_report(failure.text[0] == '\0', name, &failure);
}

/* Of memory whose kind is known: a sort's place says whether it corrects errors. */
static void
test_place(GpuSortEngineConfig config)
{
	const uint32_t ecc = getenv("GPUSORT_EMULATE_NO_ECC") == NULL;
	GpuSortRequest request = {.key_words = 1};
	GpuSortPlace place = {.ecc = 2};
	CaseFailure failure = {.text = ""};
	GpuSortError error;
	GpuSort *sort;

	if (test.ops->open(&config, &test.engine, &error) != 0)
		case_failed(&failure, "open: %s", error.text);
	else
	{
		if (test.ops->begin(test.engine, &request, &sort_case_never_cancelled, &sort, &place, &error) != 0)
			case_failed(&failure, "begin: %s", error.text);
		else
			test.ops->end(sort);
		test.ops->close(test.engine);
	}
	if (place.ecc != ecc)
		case_failed(&failure, "ecc is %u", place.ecc);
	test_report(failure.text[0] == '\0', "a sort knows whether its memory corrects errors", &failure);
}

int
main(int argc, char **argv)
{
	static const struct option options[] = {
		{"engine", required_argument, NULL, 'e'},
		{"library", required_argument, NULL, 'l'},
		{"devices", required_argument, NULL, 'd'},
		{"seed", required_argument, NULL, 's'},
		{"rounds", required_argument, NULL, 'r'},
		{"rows", required_argument, NULL, 'n'},
		{"patience", required_argument, NULL, 'p'},
		{"most", required_argument, NULL, 'm'},
		{"chunk", required_argument, NULL, 'c'},
		{"only", required_argument, NULL, 'o'},
		{NULL, 0, NULL, 0}};
	GpuSortEngineConfig config = {.devices = "all"};
	const char *name = "host";
	const char *only = "shapes limits runs random threads damage cancel memory share age faults several";
	void (*emulate_fail)(long call);
	const char *library = NULL;
	int rounds = 100;
	uint64_t rows = 1000000;
	double begun;
	GpuSortDevice device;
	GpuSortError error;
	CaseFailure failure = {.text = ""};
	int option;

	if (getrandom(&test.seed, sizeof(test.seed), 0) != sizeof(test.seed))
		return 2;
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
	{
		if (option == 'e')
			name = optarg;
		else if (option == 'l')
			library = optarg;
		else if (option == 'd')
			config.devices = optarg;
		else if (option == 's')
			test.seed = strtoull(optarg, NULL, 0);
		else if (option == 'r')
			rounds = atoi(optarg);
		else if (option == 'n')
			rows = strtoull(optarg, NULL, 0);
		else if (option == 'p')
			test.patience_ms = atoi(optarg);
		else if (option == 'm')
			test.most_rows = strtoull(optarg, NULL, 0);
		else if (option == 'c')
			test.most_chunk_rows = strtoul(optarg, NULL, 0);
		else if (option == 'o')
			only = optarg;
		else
			return 2;
	}
	printf("# --seed %llu\n", (unsigned long long) test.seed);
	test.ops = rig_engine(name, library);
	test.pool = rig_pool(POOL_CHUNKS);
	config.pool = test.pool;
	config.pool_bytes = POOL_CHUNKS * GPUSORT_CHUNK_BYTES;

	begun = rig_milliseconds();
	if (test.ops->open(&config, &test.engine, &error) != 0)
	{
		printf("Bail out! reason %d: %s\n", error.reason, error.text);
		return 1;
	}
	printf("# opened in %.0f ms\n", rig_milliseconds() - begun);
	test_idle("a fresh engine is idle");
	if (strstr(only, "shapes"))
		test_shapes(rows);
	if (strstr(only, "limits"))
		test_limits();
	if (strstr(only, "runs"))
		test_runs();
	if (strstr(only, "random"))
		test_random(rounds);
	if (strstr(only, "threads"))
		test_threads();
	if (strstr(only, "damage"))
		test_damage();
	if (strstr(only, "cancel"))
		test_cancel();
	test_idle("idle again");
	(void) test.ops->describe(test.engine, &device, 1);
	test.ops->close(test.engine);
	test_report(true, "closed", &failure);
	if (strstr(only, "memory"))
		test_memory(config, device.ordinal);
	if (strstr(only, "share") && library != NULL)
		test_share(config, device.ordinal);
	if (strstr(only, "age"))
		test_age(config, library);
	emulate_fail = rig_emulate_fail(library);
	if (library == NULL || emulate_fail != NULL)
		test_place(config);
	if (strstr(only, "faults") && emulate_fail != NULL)
		test_faults(config, emulate_fail);
	if (strstr(only, "several"))
		test_several(config);
	printf("1..%d\n", tests_run);
	return tests_failed > 0;
}
