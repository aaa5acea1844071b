/*-------------------------------------------------------------------------
 *
 * input_test.cu
 *	  Whether the benchmark's checks of results (input.cu) pass what is right and
 *	  find what is not.  Prints TAP.
 *
 *-------------------------------------------------------------------------
 */
#include "device_test.h"

#include "bench.h"

#define ROWS 5000

/* A sorted input in host memory. */
typedef struct Sorted
{
	BenchInput input;
	size_t key_bytes;
	std::vector<char> keys; /* in order */
	std::vector<uint32_t> ids;
} Sorted;

static uint64_t
word(const char *keys, size_t key_bytes, uint32_t row, size_t w)
{
	uint64_t bits = 0;

	memcpy(&bits, keys + row * key_bytes + 8 * w, key_bytes < 8 ? key_bytes : 8);
	return bits;
}

static bool
less(BenchKey key, const char *keys, uint32_t a, uint32_t b)
{
	size_t key_bytes = bench_key_bytes(key);

	if (key == BENCH_FLOAT)
	{
		float x;
		float y;

		memcpy(&x, keys + 4 * a, 4);
		memcpy(&y, keys + 4 * b, 4);
		return x < y;
	}
	for (size_t w = 0; w < (key_bytes + 7) / 8; w++)
	{
		if (word(keys, key_bytes, a, w) != word(keys, key_bytes, b, w))
			return word(keys, key_bytes, a, w) < word(keys, key_bytes, b, w);
	}
	return false;
}

static void
make_sorted(Sorted *sorted, BenchKey key, int distribution)
{
	sorted->key_bytes = bench_key_bytes(key);
	if (bench_input_make(&sorted->input, key, distribution, ROWS, test_random()) != 0)
		exit(1);

	std::vector<char> unsorted = test_host_copy((const char *) sorted->input.keys, ROWS * sorted->key_bytes);

	sorted->ids = test_stable_order(ROWS, [&](uint32_t a, uint32_t b)
									{ return less(key, unsorted.data(), a, b); });
	sorted->keys.resize(unsorted.size());
	for (uint32_t i = 0; i < ROWS; i++)
		memcpy(&sorted->keys[i * sorted->key_bytes], &unsorted[sorted->ids[i] * sorted->key_bytes], sorted->key_bytes);
}

/* Whether a result passes: on the device with ids, with keys, or from the host. */
static bool
passes(const Sorted *sorted, bool with_ids, bool with_keys, bool stable)
{
	BenchOutput output = {};
	int status;

	if (with_keys)
		output.keys = test_device_copy(sorted->keys);
	if (with_ids)
		output.ids = test_device_copy(sorted->ids);
	output.stable = stable;
	status = bench_check(&sorted->input, &output, "(test)");
	test_free_all();
	return status == 0;
}

static bool
passes_from_host(const Sorted *sorted, bool with_ids)
{
	return bench_check_host(&sorted->input, sorted->keys.data(), with_ids ? sorted->ids.data() : NULL, "(test)") == 0;
}

static void
test_right(void)
{
	for (int key = 0; key < BENCH_KEYS; key++)
	{
		for (int distribution = 0; distribution < GPUSORT_DISTRIBUTIONS; distribution++)
		{
			Sorted sorted;
			const char *name = gpusort_distribution_name(distribution);

			make_sorted(&sorted, (BenchKey) key, distribution);
			TEST_CHECK(passes(&sorted, true, true, true), "%s %s: ids and keys", bench_key_name(key), name);
			TEST_CHECK(passes(&sorted, true, false, true), "%s %s: ids", bench_key_name(key), name);
			TEST_CHECK(passes(&sorted, false, true, false), "%s %s: keys", bench_key_name(key), name);
			/* the host's zipf may be a bit off the device's */
			TEST_CHECK(passes_from_host(&sorted, true), "%s %s: from the host", bench_key_name(key), name);
			TEST_CHECK(passes_from_host(&sorted, false), "%s %s: keys from the host", bench_key_name(key), name);
			bench_input_free(&sorted.input);
		}
	}
	test_point("right results of all keys and distributions pass");
}

static void
test_wrong(BenchKey key)
{
	Sorted right;
	Sorted wrong;
	uint32_t at;

	make_sorted(&right, key, GPUSORT_UNIFORM);
	at = 1 + (uint32_t) test_below(ROWS - 2);

	wrong = right;
	std::swap(wrong.ids[at], wrong.ids[at + 1]);
	TEST_CHECK(!passes(&wrong, true, false, false), "ids swapped");
	TEST_CHECK(!passes(&wrong, true, true, false), "ids swapped, keys not");
	TEST_CHECK(!passes_from_host(&wrong, true), "ids swapped, from the host");

	wrong = right;
	wrong.ids[at] = wrong.ids[at - 1];
	TEST_CHECK(!passes(&wrong, true, false, false), "an id twice");
	TEST_CHECK(!passes_from_host(&wrong, true), "an id twice, from the host");

	wrong = right;
	wrong.ids[ROWS - 1] = ROWS;
	TEST_CHECK(!passes(&wrong, true, false, false), "an id out of range");
	TEST_CHECK(!passes_from_host(&wrong, true), "an id out of range, from the host");

	wrong = right;
	std::swap_ranges(&wrong.keys[at * wrong.key_bytes], &wrong.keys[(at + 1) * wrong.key_bytes],
					 &wrong.keys[(at + 1) * wrong.key_bytes]);
	TEST_CHECK(!passes(&wrong, false, true, false), "keys swapped");
	TEST_CHECK(!passes(&wrong, true, true, false), "keys swapped, ids not");
	TEST_CHECK(!passes_from_host(&wrong, false), "keys swapped, from the host");

	/* in order, but a key is there twice and another is not */
	wrong = right;
	std::copy_n(&wrong.keys[at * wrong.key_bytes], wrong.key_bytes, &wrong.keys[(at + 1) * wrong.key_bytes]);
	TEST_CHECK(!passes(&wrong, false, true, false), "a key twice");
	TEST_CHECK(!passes_from_host(&wrong, false), "a key twice, from the host");
	bench_input_free(&right.input);
	test_point("%s: wrong results do not", bench_key_name(key));
}

static void
test_unstable(void)
{
	Sorted right;
	Sorted wrong;

	make_sorted(&right, BENCH_U64, GPUSORT_ZERO);
	wrong = right;
	std::swap(wrong.ids[7], wrong.ids[8]);
	TEST_CHECK(passes(&wrong, true, true, false), "equal rows swapped by a sort that is not stable");
	TEST_CHECK(!passes(&wrong, true, true, true), "equal rows swapped");
	TEST_CHECK(!passes_from_host(&wrong, true), "equal rows swapped, from the host");
	bench_input_free(&right.input);
	test_point("equal rows keep their order");
}

static void
test_first(void)
{
	Sorted right;
	BenchOutput output = {};

	for (int distribution = GPUSORT_UNIFORM; distribution <= GPUSORT_ZERO; distribution += GPUSORT_ZERO)
	{
		std::vector<uint32_t> wrong;

		make_sorted(&right, BENCH_U64, distribution);
		output.stable = true;
		output.count = 100;
		output.ids = test_device_copy(right.ids);
		TEST_CHECK(bench_check(&right.input, &output, "(test)") == 0, "the first 100 rows");

		/* in order, but another row is among them */
		wrong = right.ids;
		wrong[99] = wrong[100];
		output.ids = test_device_copy(wrong);
		TEST_CHECK(bench_check(&right.input, &output, "(test)") != 0, "row 101 among the first 100");
		test_free_all();
		bench_input_free(&right.input);
	}
	test_point("the first rows are those");
}

int
main(int argc, char **argv)
{
	test_begin(argc, argv, 0, 0);
	test_right();
	for (int key = 0; key < BENCH_KEYS; key++)
		test_wrong((BenchKey) key);
	test_unstable();
	test_first();
	return test_end();
}
