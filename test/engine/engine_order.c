/*-------------------------------------------------------------------------
 *
 * engine_order.c
 *	  Rows of many shapes, with limits, at random, and several sorts at once: each
 *	  comes out in the order that is right.  See engine_test.h.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine_test.h"

#define CASES_PER_THREAD 6

/* Everything random, within what stays quick. */
static CaseSpec
random_spec(uint64_t *state)
{
	static const uint32_t lengths[] = {8, 16, 17, 64, 100, 150, 1000, 70000};
	CaseSpec spec = {
		.rows = rig_random_below(state, 3) ? rig_random_below(state, 3000) : rig_random_below(state, 30),
		.key_words = rig_random_below(state, 4) ? 1 + rig_random_below(state, 4) : 1 + rig_random_below(state, 32),
		.keys = rig_random_below(state, RIG_KEYS_COUNT),
		.lengths = rig_random_below(state, 3),
		.length_max = lengths[rig_random_below(state, 8)],
		.truncated_percent = rig_random_below(state, 2) ? rig_random_below(state, 101) : 0,
		.overflow_percent = rig_random_below(state, 2) ? 10 : 0,
		.chunk_rows = rig_random_below(state, 2) ? 1 + rig_random_below(state, 500) : 0,
		.reserve_ahead = rig_random_below(state, 2),
	};

	if (rig_random_below(state, 3) == 0)
		spec.limit = 1 + rig_random_below(state, rig_random_below(state, 2) ? 20 : spec.rows + 2);

	if (spec.limit == 0 && rig_random_below(state, 2))
	{
		spec.run_bits = rig_random_below(state, 3) ? 1 + rig_random_below(state, 64 * spec.key_words) : 64 * spec.key_words;
		spec.run_rows = 1 + rig_random_below(state, rig_random_below(state, 2) ? 3 : 100);
		spec.run_peers = rig_random_below(state, 2);
		spec.run_exact = rig_random_below(state, 2);
		spec.run_counts = spec.run_rows == 1 && rig_random_below(state, 2);
		spec.counts_every = spec.run_counts ? rig_random_below(state, 4) : 0;
	}

	if (spec.length_max == 70000 && spec.rows > 500)
		spec.rows = 500;
	if (spec.truncated_percent == 0)
		spec.claim_no_ties = rig_random_below(state, 2);
	return spec;
}

static void
describe_spec(const CaseSpec *spec, char *text, size_t size)
{
	int length =
		snprintf(text, size, "%llu rows, limit %llu, %u words %s, lengths %d to %u, %u%% truncated keys, %u per chunk%s",
				 (unsigned long long) spec->rows, (unsigned long long) spec->limit, spec->key_words,
				 rig_keys_names[spec->keys], spec->lengths,
				 spec->length_max, spec->truncated_percent, spec->chunk_rows, spec->claim_no_ties ? ", no ties" : "");

	if (spec->run_rows > 0)
		snprintf(text + length, size - length, ", %u by %u bits%s%s%s", spec->run_rows, spec->run_bits,
				 spec->run_peers ? ", peers" : "", spec->run_exact ? ", exact" : "",
				 !spec->run_counts             ? ""
					 : spec->counts_every == 0 ? ", counts of 1"
											   : ", counts");
}

void
test_shapes(uint64_t large)
{
	static const uint32_t widths[] = {1, 2, 3, 5, 32};
	static const uint64_t counts[] = {2, 31, 32, 33, 255, 257, 1023, 8192, 8193, 70001};

	test_case("no rows", (CaseSpec){.rows = 0, .key_words = 1, .length_max = 16});
	test_case("one row", (CaseSpec){.rows = 1, .key_words = 1, .length_max = 16, .truncated_percent = 100});
	test_case("one row of the least length", (CaseSpec){.rows = 1, .key_words = 32, .length_max = 8});
	for (int i = 0; i < 10; i++)
	{
		char name[64];

		snprintf(name, sizeof(name), "%llu rows", (unsigned long long) counts[i]);
		test_case(name, (CaseSpec){
							.rows = counts[i],
							.key_words = 1,
							.keys = RIG_KEYS_FEW,
							.length_max = 24,
							.truncated_percent = 30,
						});
	}
	for (int w = 0; w < 5; w++)
	{
		for (int k = 0; k < RIG_KEYS_COUNT; k++)
		{
			CaseSpec spec = {
				.rows = 20000,
				.key_words = widths[w],
				.keys = k,
				.lengths = LENGTHS_SPREAD,
				.length_max = 60,
				.truncated_percent = k % 2 ? 50 : 0,
				.overflow_percent = 5,
			};
			char name[240];

			describe_spec(&spec, name, sizeof(name));
			test_case(name, spec);
		}
	}
	test_case("rows of the least length, chunks full of them",
			  (CaseSpec){.rows = 500000, .key_words = 1, .length_max = 8});
	test_case("rows of 16 bytes to 1 MiB",
			  (CaseSpec){
				  .rows = 2000,
				  .key_words = 2,
				  .lengths = LENGTHS_SKEWED,
				  .length_max = 1 << 20,
				  .truncated_percent = 20,
				  .keys = RIG_KEYS_FEW,
			  });
	test_case("rows of up to 1 MiB",
			  (CaseSpec){.rows = 60, .key_words = 1, .lengths = LENGTHS_SPREAD, .length_max = 1 << 20});
	test_case("rows that fill a chunk each",
			  (CaseSpec){.rows = 12, .key_words = 1, .length_max = GPUSORT_CHUNK_BYTES - 16});
	test_case("rows of just over half a chunk",
			  (CaseSpec){.rows = 12, .key_words = 3, .length_max = GPUSORT_CHUNK_BYTES / 2 + 1});
	test_case("many chunks of one row",
			  (CaseSpec){
				  .rows = 3000,
				  .key_words = 1,
				  .length_max = 50,
				  .chunk_rows = 1,
				  .keys = RIG_KEYS_FEW,
				  .truncated_percent = 50,
			  });
	test_case("ties in all rows, over many chunks",
			  (CaseSpec){.rows = 300000, .key_words = 2, .keys = RIG_KEYS_EQUAL, .length_max = 60, .truncated_percent = 100});
	test_case("ties in few rows of long runs",
			  (CaseSpec){.rows = 300000, .key_words = 1, .keys = RIG_KEYS_HIGH_BIT, .length_max = 60, .truncated_percent = 1});
	test_case("more keys looked up than a chunk holds",
			  (CaseSpec){.rows = 50, .key_words = 32, .keys = RIG_KEYS_SUFFIX, .length_max = 60, .look_ups = 17000});
	test_case("many rows, random keys",
			  (CaseSpec){.rows = large, .key_words = 1, .length_max = 88, .overflow_percent = 1});
	test_case("many rows, runs of four",
			  (CaseSpec){
				  .rows = large,
				  .key_words = 2,
				  .keys = RIG_KEYS_SUFFIX,
				  .lengths = LENGTHS_SPREAD,
				  .length_max = 100,
				  .truncated_percent = 10,
			  });
	test_case("many rows, skewed keys",
			  (CaseSpec){.rows = large, .key_words = 1, .keys = RIG_KEYS_SKEWED, .length_max = 60, .truncated_percent = 10});
	test_case("many rows, wide keys",
			  (CaseSpec){.rows = large / 4, .key_words = 5, .length_max = 40});
	test_case("many rows that are in order",
			  (CaseSpec){.rows = large, .key_words = 1, .keys = RIG_KEYS_SORTED, .length_max = 60, .claim_no_ties = true});
	test_case("many rows in reverse order",
			  (CaseSpec){.rows = large, .key_words = 1, .keys = RIG_KEYS_REVERSED, .length_max = 60});
}

void
test_limits(void)
{
	for (int t = 0; t < 2; t++)
	{
		test_case("the first row of many", (CaseSpec){
											   .rows = 70000,
											   .key_words = 2,
											   .length_max = 60,
											   .limit = 1,
											   .claim_no_ties = t,
										   });
		test_case("the first 1000 rows of many",
				  (CaseSpec){
					  .rows = 70000,
					  .key_words = 1,
					  .length_max = 60,
					  .limit = 1000,
					  .truncated_percent = t ? 0 : 50,
					  .keys = RIG_KEYS_SUFFIX,
					  .claim_no_ties = t,
				  });
		test_case("a limit within a long run",
				  (CaseSpec){
					  .rows = 70000,
					  .key_words = 2,
					  .length_max = 60,
					  .limit = 12345,
					  .keys = RIG_KEYS_FEW,
					  .truncated_percent = t ? 0 : 50,
					  .claim_no_ties = t,
				  });
		test_case("a limit within equal rows",
				  (CaseSpec){
					  .rows = 70000,
					  .key_words = 1,
					  .length_max = 60,
					  .limit = 5,
					  .keys = RIG_KEYS_EQUAL,
					  .truncated_percent = t ? 0 : 5,
					  .claim_no_ties = t,
				  });
		test_case("a limit next to all rows",
				  (CaseSpec){.rows = 2000, .key_words = 5, .length_max = 60, .limit = 1999, .claim_no_ties = t});
		test_case("the first of rows in reverse order",
				  (CaseSpec){
					  .rows = 2000,
					  .key_words = 1,
					  .length_max = 60,
					  .limit = 100,
					  .keys = RIG_KEYS_REVERSED,
					  .claim_no_ties = t,
				  });
	}
}

void
test_runs(void)
{
	static const uint32_t run_rows[] = {1, 2, 5, 1, 70001};
	static const RigKeys keys[] = {RIG_KEYS_FEW, RIG_KEYS_SPARSE, RIG_KEYS_EQUAL, RIG_KEYS_SKEWED, RIG_KEYS_SORTED};
	static const uint32_t widths[] = {1, 2, 5};
	const uint32_t counts_every[] = {0, 2, 300000};
	const CaseSpec largest = {.rows = 300000, .key_words = 1, .length_max = 24, .run_bits = 64, .run_rows = 1};
	CaseSpec spec;
	char name[240];

	test_case("the first rows of none",
			  (CaseSpec){.key_words = 1, .length_max = 16, .run_bits = 64, .run_rows = 1, .run_counts = true});
	for (int i = 0; i < 5 * 3 * 16; i++)
	{
		const uint32_t words = widths[i / 5 % 3];
		const uint32_t bits[] = {1, 37, 64 * words - 60, 64 * words};

		spec = (CaseSpec){
			.rows = 700,
			.key_words = words,
			.keys = keys[i % 5],
			.lengths = LENGTHS_SPREAD,
			.length_max = 40,
			.truncated_percent = i & 1 ? 0 : 30,
			.claim_no_ties = (i & 3) == 1,
			.run_bits = bits[rig_random_below(&test.seed, 4)],
			.run_rows = run_rows[rig_random_below(&test.seed, 5)],
			.run_peers = i / 15 & 1,
			.run_exact = i / 30 & 1,
		};
		spec.run_counts = (i / 60 & 1) && spec.run_rows == 1;
		spec.counts_every = spec.run_counts ? i % 3 : 0;
		describe_spec(&spec, name, sizeof(name));
		test_case(name, spec);
	}
	for (int i = 0; i < 3 * 8; i++)
	{
		static const RigKeys many_keys[] = {RIG_KEYS_EQUAL, RIG_KEYS_FEW, RIG_KEYS_SKEWED};

		spec = largest;
		spec.keys = many_keys[i % 3];
		spec.run_bits = i / 3 & 1 ? 64 : 60;
		spec.truncated_percent = i / 3 & 2 ? 1 : 0;
		spec.run_exact = i / 3 & 4;
		spec.claim_no_ties = i / 3 < 2;
		spec.run_counts = true;
		spec.counts_every = counts_every[i / 6 % 3];
		describe_spec(&spec, name, sizeof(name));
		test_case(name, spec);
	}
	/* each key's only row, and rows in one or few runs, where elements tell all */
	spec = largest;
	spec.claim_no_ties = true;
	for (int i = 0; i < 3; i++)
	{
		static const RigKeys no_ties_keys[] = {RIG_KEYS_SORTED, RIG_KEYS_SPARSE, RIG_KEYS_SKEWED};

		spec.keys = no_ties_keys[i];
		spec.run_counts = i > 0;
		spec.run_bits = i > 1 ? 59 : 64;
		describe_spec(&spec, name, sizeof(name));
		test_case(name, spec);
	}
	spec = largest;
	spec.keys = RIG_KEYS_REVERSED;
	spec.run_bits = 50;
	spec.run_rows = 3;
	test_case("the first three of each run of rows in reverse order", spec);
	spec.keys = RIG_KEYS_SORTED;
	spec.run_bits = 64;
	test_case("runs of one row each", spec);
}

void
test_random(int rounds)
{
	for (int i = 0; i < rounds; i++)
	{
		uint64_t state = rig_random(&test.seed);
		CaseSpec spec = random_spec(&state);
		char name[240];
		char full[280];

		describe_spec(&spec, name, sizeof(name));
		snprintf(full, sizeof(full), "random: %s", name);
		test_case(full, spec);
	}
}

typedef struct ThreadWork
{
	pthread_t thread;
	uint64_t state;
	char *chunks;
	CaseFailure failure;
	bool passed;
} ThreadWork;

static void *
run_thread(void *argument)
{
	ThreadWork *work = argument;

	work->passed = true;
	for (int i = 0; i < CASES_PER_THREAD && work->passed; i++)
	{
		CaseSpec spec = random_spec(&work->state);

		spec.rows += i % 2 ? 60000 : 0;
		if (spec.length_max > 150)
			spec.length_max = 150;
		if (spec.rows > test.most_rows)
			spec.rows = test.most_rows;
		work->passed = sort_case_run(&spec, rig_random(&work->state), test.ops, test.engine, work->chunks, &work->failure);
	}
	return NULL;
}

void
test_threads(void)
{
	ThreadWork work[ENGINE_TEST_THREADS];
	bool passed = true;
	CaseFailure failure = {.text = ""};

	for (int i = 0; i < ENGINE_TEST_THREADS; i++)
	{
		work[i].state = rig_random(&test.seed);
		work[i].chunks = test.pool + 2 * i * GPUSORT_CHUNK_BYTES;
		if (pthread_create(&work[i].thread, NULL, run_thread, &work[i]) != 0)
		{
			perror("pthread_create");
			exit(2);
		}
	}
	for (int i = 0; i < ENGINE_TEST_THREADS; i++)
	{
		pthread_join(work[i].thread, NULL);
		if (!work[i].passed)
		{
			passed = false;
			failure = work[i].failure;
		}
	}
	test_report(passed, "several sorts at once", &failure);
}
