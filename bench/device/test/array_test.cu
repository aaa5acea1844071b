/*-------------------------------------------------------------------------
 *
 * array_test.cu
 *	  Sorts of arrays (array/array_sort.h), also by a quantile map, against
 *	  std::stable_sort; and the statistics of arrays of every kind against the host's.
 *	  Prints TAP.
 *
 *-------------------------------------------------------------------------
 */
#include "device_test.h"

#include <math.h>

#include "array/array_sort.h"
#include "array/array_stats.h"
#include "distributions.h"
#include "sort/quantile_map.h"
#include "sort/radix/radix_sort.h"
#include "test_keys.h"
#include "test_stats.h"

/* ---- statistics ---- */

/* One array after the other, into the same statistics. */
static void
test_words(void)
{
	for (uint64_t round = 0; round < test_rounds; round++)
	{
		uint32_t words = (uint32_t) (1 + test_below(round % 4 ? 5 : GPUSORT_DEVICE_SORT_MAX_KEY_WORDS));
		uint32_t rows = 0;
		GpuSortKeyStats expected;

		reset_stats();
		gpusort_key_stats_none(&expected);
		for (uint32_t array = 0; array < 1 + round % 2; array++)
		{
			uint32_t stride = words + (uint32_t) (test_below(2) ? 0 : test_below(4));
			GpuSortKeySource source = {};
			std::vector<Key> keys;
			std::vector<uint64_t> memory;

			rows = words > 5 ? std::min(random_rows(), 5000u) : random_rows();
			keys = make_keys(rows, words);
			for (uint32_t i = 0; i < rows; i++)
			{
				add_key(&expected, keys[i].data(), words);
				if (i > 0)
					gpusort_key_stats_pair(&expected, keys[i - 1].data(), keys[i].data(), words);
				memory.insert(memory.end(), keys[i].begin(), keys[i].end());
				while (i + 1 < rows && memory.size() % stride != 0)
					memory.push_back(test_random());
			}
			source.kind = GPUSORT_KEYS_WORDS;
			source.key_words = words;
			source.stride_words = stride;
			source.base = test_device_copy(memory);
			TEST_CUDA((cudaError_t) gpusort_key_stats_array(&source, rows, stats_there,
															(struct CUstream_st *) test_stream));
		}
		check_stats(&expected, 0, "array", rows, words);
		test_free_all();
	}
	test_point("statistics of arrays of words");
}

static void
test_plain(void)
{
	const struct
	{
		GpuSortKeyKind kind;
		const char *name;
		size_t bytes;
	} kinds[] = {
		{GPUSORT_KEYS_UINT32, "uint32", 4},
		{GPUSORT_KEYS_INT32, "int32", 4},
		{GPUSORT_KEYS_FLOAT, "float", 4},
		{GPUSORT_KEYS_INT64, "int64", 8},
		{GPUSORT_KEYS_DOUBLE, "double", 8},
	};

	for (uint64_t round = 0; round < test_rounds; round++)
	{
		for (const auto &kind : kinds)
		{
			uint32_t rows = random_rows();
			std::vector<Key> keys = make_keys(rows, 1);
			std::vector<char> memory(rows * kind.bytes);
			GpuSortKeySource source = {};
			GpuSortKeyStats expected;

			for (uint32_t i = 0; i < rows; i++)
				memcpy(&memory[i * kind.bytes], (char *) keys[i].data() + (round % 2) * (8 - kind.bytes), kind.bytes);
			gpusort_key_stats_none(&expected);
			for (uint32_t i = 0; i < rows; i++)
			{
				uint64_t key = gpusort_plain_key(kind.kind, memory.data(), i);

				add_key(&expected, &key, 1);
				if (i > 0)
				{
					uint64_t before = gpusort_plain_key(kind.kind, memory.data(), i - 1);

					gpusort_key_stats_pair(&expected, &before, &key, 1);
				}
			}
			reset_stats();
			source.kind = kind.kind;
			source.key_words = 1;
			source.base = test_device_copy(memory);
			TEST_CUDA((cudaError_t) gpusort_key_stats_array(&source, rows, stats_there,
															(struct CUstream_st *) test_stream));
			check_stats(&expected, 0, kind.name, rows, 1);
			test_free_all();
		}
	}
	test_point("statistics of arrays of plain values");
}

/* ---- sorts ---- */

/* Keys in device memory, gap words of garbage between them. */
static GpuSortKeySource
upload_words(const Keys &keys, uint32_t gap)
{
	const uint32_t stride = keys.words + gap;
	std::vector<uint64_t> memory((size_t) rows_of(keys) * stride);
	GpuSortKeySource source = {};

	for (uint32_t i = 0; i < rows_of(keys); i++)
	{
		for (uint32_t w = 0; w < stride; w++)
			memory[(size_t) i * stride + w] = w < keys.words ? keys.all[(size_t) i * keys.words + w] : test_random();
	}
	source.kind = GPUSORT_KEYS_WORDS;
	source.key_words = keys.words;
	source.stride_words = stride;
	source.base = test_device_copy(memory);
	return source;
}

/* PostgreSQL's comparison of floating point numbers (utils/float.h). */
template <typename Float>
static bool
float_less(Float a, Float b)
{
	if (isnan(a))
		return false;
	return isnan(b) || a < b;
}

template <typename Value, typename Less>
static void
check_array(const char *what, GpuSortKeyKind kind, const std::vector<Value> &values, uint32_t limit, Less less)
{
	if (!test_taken())
		return;

	const uint32_t rows = (uint32_t) values.size();
	const std::vector<uint32_t> right = test_stable_order(rows, [&](uint32_t a, uint32_t b)
														  { return less(values[a], values[b]); });
	const uint32_t wanted = limit > 0 ? std::min(limit, rows) : rows;
	GpuSortDeviceWait wait = {mirror_memory(), NULL, NULL};
	GpuSortKeySource source = {};
	size_t temp_bytes;
	void *temp;
	uint32_t *ids = (uint32_t *) test_device((size_t) rows * 4);
	int status;

	source.kind = kind;
	source.key_words = 1;
	source.stride_words = 1;
	source.base = test_device_copy(values);
	TEST_CHECK(gpusort_array_sort_bytes(&source, rows, limit, &temp_bytes) == 0, "%s: no size", what);
	temp = test_device(temp_bytes);
	status = gpusort_array_sort(&source, rows, limit, &wait, temp, temp_bytes, ids, (GpuSortStream) test_stream);
	TEST_CUDA(cudaStreamSynchronize(test_stream));
	TEST_CHECK(status == 0, "%s: status %d", what, status);
	check_ids(what, test_host_copy(ids, wanted), right, wanted);
	test_check_guards();
	TEST_CHECK(
		rows == 0 ||
			memcmp(test_host_copy((const Value *) source.base, rows).data(), values.data(), rows * sizeof(Value)) == 0,
		"%s: the array has changed", what);
	test_free_all();
}

template <typename Value, typename Less>
static void
check_arrays(const char *what, GpuSortKeyKind kind, Less less)
{
	for (uint32_t rows : {0, 1, 2, 100, 3000})
	{
		for (int variant = 0; variant < 5; variant++)
		{
			std::vector<Value> values(rows);
			uint32_t limit = rows > 10 && test_below(3) == 0 ? 1 + (uint32_t) test_below(rows) : 0;

			for (uint32_t i = 0; i < rows; i++)
			{
				const uint64_t bits = test_random();

				/* any bits: NaN, infinities and subnormal numbers are among them */
				memcpy(&values[i], &bits, sizeof(Value));
				if (variant == 1)
					values[i] = (Value) ((double) (bits % 2001) - 1000.0);
				if (variant > 1)
					values[i] = (Value) i;
			}
			if (variant == 3)
				std::reverse(values.begin(), values.end());

			/* bits that a sample hardly shows: the row is not among every 46th */
			if (variant == 4 && rows > 1)
			{
				for (uint32_t i = 0; i < rows; i++)
					values[i] = (Value) (test_random() % 1000);
				values[1] = (Value) 1e9;
			}
			check_array(what, kind, values, limit, less);
		}
	}
}

template <typename Float>
static void
check_odd_floats(const char *what, GpuSortKeyKind kind)
{
	const Float odd[] = {(Float) 0.0, (Float) -0.0, (Float) NAN, (Float) -NAN, (Float) INFINITY, (Float) -INFINITY,
						 (Float) 1.0, (Float) -1.0, (Float) 1e-45, (Float) -1e-45, (Float) 3e38, (Float) -3e38};
	std::vector<Float> values;

	for (int i = 0; i < 5000; i++)
		values.push_back(odd[test_below(sizeof(odd) / sizeof(odd[0]))]);
	check_array(what, kind, values, 0, float_less<Float>);
}

/* Keys of several words as an array; a guess of their plan serves, or does not. */
static void
check_word_arrays(void)
{
	GpuSortDeviceWait wait = {mirror_memory(), NULL, NULL};

	for (uint32_t words = 1; words <= 6; words++)
	{
		for (int rare = 0; rare < 2; rare++)
		{
			if ((words > 1 || rare) && !test_taken())
				continue;

			/* more rows than the core sorts in one block, whose digits are counted on the way */
			const uint32_t rows = rare || words > 4 ? 3000 : 12000;
			Keys keys = masked_keys(rows, words, 1 + (uint32_t) test_below(60 / words));
			GpuSortKeySource source;
			size_t temp_bytes;
			void *temp;
			uint32_t *ids = (uint32_t *) test_device(rows * 4);

			if (rare)
				keys.all[words + test_below(words)] ^= test_random();
			source = upload_words(keys, (uint32_t) test_below(2));
			TEST_CHECK(gpusort_array_sort_bytes(&source, rows, 0, &temp_bytes) == 0, "no size");
			temp = test_device(temp_bytes);
			TEST_CHECK(gpusort_array_sort(&source, rows, 0, &wait, temp, temp_bytes, ids,
										  (GpuSortStream) test_stream) == 0,
					   "array of %u words", words);
			TEST_CUDA(cudaStreamSynchronize(test_stream));
			check_ids("array of words", test_host_copy(ids, rows), right_order(keys), rows);
			test_free_all();
		}
	}
}

static void
test_arrays(void)
{
	check_word_arrays();
	check_arrays<uint64_t>("uint64_t", GPUSORT_KEYS_WORDS, [](uint64_t a, uint64_t b)
						   { return a < b; });
	check_arrays<uint32_t>("uint32_t", GPUSORT_KEYS_UINT32, [](uint32_t a, uint32_t b)
						   { return a < b; });
	check_arrays<int32_t>("int32_t", GPUSORT_KEYS_INT32, [](int32_t a, int32_t b)
						  { return a < b; });
	check_arrays<int64_t>("int64_t", GPUSORT_KEYS_INT64, [](int64_t a, int64_t b)
						  { return a < b; });
	check_arrays<float>("float", GPUSORT_KEYS_FLOAT, float_less<float>);
	check_arrays<double>("double", GPUSORT_KEYS_DOUBLE, float_less<double>);
	check_odd_floats<float>("odd float", GPUSORT_KEYS_FLOAT);
	check_odd_floats<double>("odd double", GPUSORT_KEYS_DOUBLE);
	test_point("plain arrays");
}

/* Arrays whose plan is known: u32 that are their own partial keys, or not, and words; with a limit too. */
static void
test_planned(void)
{
	for (GpuSortKeyKind kind : {GPUSORT_KEYS_UINT32, GPUSORT_KEYS_INT32, GPUSORT_KEYS_WORDS})
	{
		for (uint64_t base : {0, 1})
		{
			for (uint32_t limit : {0u, 10u})
			{
				const uint32_t rows = 3000 + (uint32_t) test_below(9000);
				const uint32_t wanted = limit > 0 ? limit : rows;
				const size_t bytes = kind == GPUSORT_KEYS_WORDS ? 8 : 4;
				std::vector<char> memory(rows * bytes);
				Keys keys = {1, {}};
				GpuSortPackPlan plan;
				GpuSortDeviceSort sort = {};
				uint32_t *ids = (uint32_t *) test_device(rows * sizeof(uint32_t));
				size_t temp_bytes;
				void *temp;

				if (!test_taken())
					continue;
				for (uint32_t i = 0; i < rows; i++)
				{
					/* a minimum that is worth to subtract, or none */
					const uint64_t value =
						base > 0 ? UINT64_C(0x0FFFFF00) + test_below(700) : test_random() >> test_below(40);

					memcpy(&memory[i * bytes], &value, bytes);
					keys.all.push_back(kind == GPUSORT_KEYS_WORDS ? value : gpusort_plain_key(kind, memory.data(), i));
				}
				plan = plan_of(keys);
				sort.source.kind = kind;
				sort.source.key_words = 1;
				sort.source.stride_words = 1;
				sort.source.base = test_device_copy(memory);
				sort.plan = &plan;
				sort.rows = rows;
				sort.limit = limit;
				sort.wait.mirror = mirror_memory();
				TEST_CHECK(gpusort_device_sort_bytes(&sort, &temp_bytes) == 0, "no size");
				temp = test_device(temp_bytes);
				TEST_CHECK(gpusort_array_sort_planned(&sort, temp, temp_bytes, ids, (GpuSortStream) test_stream) == 0,
						   "planned array of %u rows", rows);
				check_ids("planned array", test_host_copy(ids, wanted), right_order(keys), wanted);
				TEST_CHECK(memcmp(test_host_copy((const char *) sort.source.base, memory.size()).data(), memory.data(),
								  memory.size()) == 0,
						   "the array has changed");
				test_free_all();
			}
		}
	}
	test_point("arrays with a plan");
}

/* ---- sorts by a quantile map ---- */

static int
count_wait(void *context, GpuSortStream stream)
{
	++*(int *) context;
	return (int) cudaStreamSynchronize((cudaStream_t) stream);
}

/* Arrays of plain values, and of words, of which nothing is known. */
template <typename Value>
static void
check_mapped_array(const char *what, GpuSortKeyKind kind, const std::vector<Value> &values, bool mapped)
{
	const uint32_t rows = (uint32_t) values.size();
	const std::vector<uint32_t> right = test_stable_order(rows, [&](uint32_t a, uint32_t b)
														  { return values[a] < values[b]; });
	uint32_t *ids = (uint32_t *) test_device((size_t) rows * 4);
	GpuSortKeySource source = {};
	GpuSortQuantileMap *map = (GpuSortQuantileMap *) test_device(sizeof(GpuSortQuantileMap));
	GpuSortPackPlan plan;
	int waits = 0;
	GpuSortDeviceWait wait = {mirror_memory(), count_wait, &waits};
	GpuSortMapUse use;
	size_t temp_bytes;
	void *temp;
	Keys keys = {1, {}};

	source.kind = kind;
	source.key_words = 1;
	source.stride_words = 1;
	source.base = test_device_copy(values);
	for (uint32_t i = 0; i < rows; i++)
		keys.all.push_back(kind == GPUSORT_KEYS_WORDS ? (uint64_t) values[i]
													  : gpusort_plain_key(kind, values.data(), i));
	plan = plan_of(keys);
	TEST_CHECK(gpusort_quantile_map_find(&source, &plan, rows, &wait, map, &use, test_stream) == 0, "%s: no map", what);
	TEST_CHECK((use.code_bits > 0) == mapped, "%s: codes of %u bits", what, use.code_bits);
	TEST_CHECK(gpusort_array_sort_bytes(&source, rows, 0, &temp_bytes) == 0, "%s: no size", what);
	temp = test_device(temp_bytes);
	waits = 0;
	TEST_CHECK(gpusort_array_sort(&source, rows, 0, &wait, temp, temp_bytes, ids, (GpuSortStream) test_stream) == 0,
			   "%s: failed", what);
	TEST_CHECK(waits >= 2, "%s: %d waits", what, waits);
	check_ids(what, test_host_copy(ids, rows), right, rows);
	test_free_all();
}

static void
test_mapped_arrays(void)
{
	for (uint32_t rows : {2500u, 12000u})
	{
		const uint64_t seed = test_random();
		std::vector<uint64_t> words(rows);
		std::vector<int64_t> numbers(rows);
		std::vector<double> doubles(rows);

		if (!test_taken())
			continue;
		for (uint32_t i = 0; i < rows; i++)
		{
			words[i] = gpusort_row_zipf(seed, i, 1, 0x1p64);
			numbers[i] = (int64_t) (gpusort_row_zipf(seed, i, 1, 0x1p62) * (test_below(2) ? 1 : -1));
			doubles[i] = i % 100 == 0 ? (double) numbers[i] : 1 + (double) test_below(1 << 20) * 0x1p-52;
		}
		check_mapped_array("words", GPUSORT_KEYS_WORDS, words, true);
		check_mapped_array("numbers", GPUSORT_KEYS_INT64, numbers, true);
		check_mapped_array("doubles", GPUSORT_KEYS_DOUBLE, doubles, true);
		for (uint64_t &word : words)
			word = test_random();
		check_mapped_array("uniform words", GPUSORT_KEYS_WORDS, words, false);
	}
	test_point("arrays of skewed keys");
}

/* The same with CUB as the core; emulated, as a device that has to take it because of its shared memory. */
static void
test_with_cub(void)
{
#ifdef __CUDACC__
	gpusort_radix_choose(GPUSORT_RADIX_CUB);
#else
	setenv("GPUSORT_EMULATE_SHARED", "101376", 1);
#endif
	test_arrays();
	test_planned();
#ifdef __CUDACC__
	gpusort_radix_choose(GPUSORT_RADIX_AUTO);
#else
	unsetenv("GPUSORT_EMULATE_SHARED");
#endif
}

int
main(int argc, char **argv)
{
	test_begin(argc, argv, 30000, 40);
	test_words();
	test_plain();
	test_arrays();
	test_planned();
	test_mapped_arrays();
	if (!test_raw()) /* compute-sanitizer is to look at our kernels, which takes it long enough */
		test_with_cub();
	return test_end();
}
