/*-------------------------------------------------------------------------
 *
 * device_sort_test.cu
 *	  The device sort (cuda/sort/device_sort.h): partial keys, rounds over tied rows, select
 *	  of the first k; against std::stable_sort.
 *
 * Runs of tied rows are made at and around the lengths where the way to order
 * them changes: 32, 256 and 2048 rows.
 *
 *-------------------------------------------------------------------------
 */
#include "device_test.h"

#include "sort/radix/radix_sort.h"
#include "test_keys.h"

/* How a case is sorted. */
typedef struct Way
{
	bool given_partial_keys;
	bool want_partial_keys;
	bool same_partial_keys; /* given and wanted in one array */
	uint32_t limit;
	bool limit_ties;
	GpuSortInputOrder order;
	int fail_wait; /* the wait that fails; 0: none */
} Way;

static int waits;      /* calls of the running case */
static int waits_most; /* of any case */

static int
count_wait(void *context, GpuSortStream stream)
{
	if (++waits == *(const int *) context)
		return 4242;
	waits_most = std::max(waits_most, waits);
	return (int) cudaStreamSynchronize((cudaStream_t) stream);
}

/* Sorts keys that way and compares with the order that is right. */
static void
check_sort(const char *what, const Keys &keys, const Way &way, const std::vector<uint32_t> &right)
{
	const uint32_t rows = rows_of(keys);
	const GpuSortPackPlan plan = plan_of(keys);
	GpuSortDeviceSort sort = {};
	std::vector<uint32_t> partial_keys(rows);
	std::vector<uint32_t> sorted_partial_keys;
	uint32_t wanted = rows;
	GpuSortDeviceSorted got = {0xBAD, true};
	size_t temp_bytes;
	void *temp;
	uint32_t *ids;
	int status;

	for (uint32_t i = 0; i < rows; i++)
		partial_keys[i] = gpusort_pack_window(&plan, &keys.all[(size_t) i * keys.words], 0, 32);

	sort.source = upload_refs(keys);
	sort.plan = &plan;
	sort.rows = rows;
	sort.order = way.order;
	if (way.given_partial_keys || way.same_partial_keys)
		sort.partial_keys = test_device_copy(partial_keys);
	if (way.want_partial_keys)
		sort.sorted_partial_keys = (uint32_t *) test_device((size_t) rows * 4);
	if (way.same_partial_keys)
		sort.sorted_partial_keys = sort.partial_keys;
	sort.limit = way.limit;
	sort.limit_ties = way.limit_ties;
	sort.wait.mirror = mirror_memory();
	sort.wait.wait = count_wait;
	sort.wait.context = (void *) &way.fail_wait;
	waits = 0;

	TEST_CHECK(gpusort_device_sort_bytes(&sort, &temp_bytes) == 0, "%s: no size", what);
	temp = test_device(temp_bytes);
	ids = (uint32_t *) test_device((size_t) rows * 4);
	if (temp_bytes > 0)
		TEST_CHECK(gpusort_device_sort(&sort, temp, temp_bytes - 1, ids, &got, (GpuSortStream) test_stream) != 0,
				   "%s: sorted with too little memory", what);
	status = gpusort_device_sort(&sort, temp, temp_bytes, ids, &got, (GpuSortStream) test_stream);
	TEST_CUDA(cudaStreamSynchronize(test_stream));

	if (way.fail_wait > 0 && waits >= way.fail_wait)
		TEST_CHECK(status == 4242, "%s: status %d after a wait that failed", what, status);
	else
	{
		TEST_CHECK(status == 0, "%s: status %d", what, status);
		if (way.limit > 0 && way.limit < rows)
		{
			wanted = way.limit;
			while (way.limit_ties && wanted < rows && compare_keys(keys, right[wanted - 1], right[wanted]) == 0)
				wanted++;
		}
		TEST_CHECK(got.rows == wanted, "%s: %u of %u rows instead of %u for limit %u", what, got.rows, rows, wanted,
				   way.limit);
		TEST_CHECK(!got.has_codes || sort.sorted_partial_keys == NULL, "%s: codes in place of partial keys", what);
		check_ids(what, test_host_copy(ids, wanted), right, wanted); /* the others are undefined */
		if (sort.sorted_partial_keys != NULL && way.limit == 0)
		{
			sorted_partial_keys = test_host_copy(sort.sorted_partial_keys, rows);
			for (uint32_t i = 0; i < rows; i++)
			{
				if (sorted_partial_keys[i] != partial_keys[right[i]])
				{
					test_fail("%s: partial key %u is %08x instead of %08x", what, i, sorted_partial_keys[i],
							  partial_keys[right[i]]);
					break;
				}
			}
		}
	}
	test_free_all();
}

static Way
random_way(uint32_t rows)
{
	Way way = {};

	way.given_partial_keys = test_below(2);
	way.want_partial_keys = test_below(2);
	way.same_partial_keys = test_below(4) == 0;
	if (test_below(4) == 0 && rows > 0)
	{
		way.limit = 1 + (uint32_t) test_below(rows);
		way.limit_ties = test_below(2);
	}
	return way;
}

/* One of many cases. */
static void
check_random_way(const char *what, const Keys &keys)
{
	if (test_taken())
		check_sort(what, keys, random_way(rows_of(keys)), right_order(keys));
}

static void
test_sizes(void)
{
	const uint32_t sizes[] = {0, 1, 2, 3, 31, 32, 33, 34, 255, 256, 257, 1023, 1024, 1025, 2047, 2048, 2049, 2079,
							  2080, 2081, 4095, 4096, 4097};

	for (uint32_t rows : sizes)
	{
		check_random_way("64 bits", masked_keys(rows, 1, test_below(2) ? 64 : 7));
		check_random_way("two words of few bits", masked_keys(rows, 2, 5));
		check_random_way("equal", masked_keys(rows, 3, 0));
	}
	test_point("sizes around those of tiles");
}

static void
test_widths(void)
{
	const uint32_t rows = (uint32_t) std::min<uint64_t>(test_rows, 600);

	for (uint32_t words = 1; words <= GPUSORT_DEVICE_SORT_MAX_KEY_WORDS; words++)
	{
		check_random_way("some bits a word", masked_keys(rows, words, words % 2 ? 1 : 1 + (uint32_t) test_below(64)));
	}
	for (uint32_t bits = (uint32_t) test_below(4); bits <= 64;
		 bits += bits == 31 || bits == 32 ? 1 : 2 + (uint32_t) test_below(3))
		check_random_way("bits of one word", masked_keys(rows, 1, bits));
	test_point("keys of 1 to %d words, any bits of them constant", GPUSORT_DEVICE_SORT_MAX_KEY_WORDS);
}

static void
test_runs(void)
{
	const std::vector<uint32_t> borders = {1, 2, 3, 31, 32, 33, 34, 63, 64, 65, 255, 256, 257, 258, 511, 1000, 2047,
										   2048, 2049, 2050, 4096, 5000};
	const Keys all = keys_of_runs(borders, 3, 3);
	Way way = {};

	/* this and the first of test_limits() start all kernels, and are never left out */
	check_sort("runs of all kinds, all rows", all, way, right_order(all));
	/* values: how soon ties end; 1 never, 2 after some words, many at once */
	for (uint64_t values : {1, 2, 3, 40, 1000000})
		check_random_way("runs of all kinds", keys_of_runs(borders, 2 + (uint32_t) test_below(5), values));
	test_point("runs at the borders between short, middle and long ones");

	for (uint32_t length : borders)
		check_random_way("one run", keys_of_runs({length, 1, 1}, 3, 3));
	test_point("single runs");

	for (uint32_t length : {2, 32, 33, 300, 2500})
		check_random_way(
			"runs of one length",
			keys_of_runs(std::vector<uint32_t>(1 + 9999 / length, length), 2 + (uint32_t) test_below(3), 3));
	test_point("many runs of one length, over tile borders");
}

static void
test_rounds_over_ties(void)
{
	const uint32_t rows = (uint32_t) std::min<uint64_t>(test_rows + test_rows / 2, 200000);
	Keys keys = {5, {}};

	/* One value is far more frequent than the others in each word: long runs all the way. */
	for (uint32_t i = 0; i < rows; i++)
	{
		for (uint32_t w = 0; w < keys.words; w++)
			keys.all.push_back(test_below(12) > 0 ? UINT64_C(0x0123456789ABCDEF) : test_random());
	}
	waits_most = 0;
	check_random_way("a long run in every word", keys);
	check_random_way("a long run in every word", keys);
	if (rows >= 10000 && test_one_in == 1)
		TEST_CHECK(waits_most > 3, "only %d waits: the rounds were not reached", waits_most);

	/* Rows that differ in the last bit only, and not even there. */
	for (uint32_t i = 0; i < rows; i++)
	{
		for (uint32_t w = 0; w + 1 < keys.words; w++)
			keys.all[(size_t) i * keys.words + w] = i % 2 == 0 ? 0 : UINT64_MAX;
		keys.all[(size_t) i * keys.words + keys.words - 1] = test_random() % 2;
	}
	check_random_way("the last bit", keys);
	test_point("rounds over long runs");
}

static void
test_runs_in_order(void)
{
	/* the first and the last pair, tiles' borders, and where no sample is taken */
	const uint32_t descents[] = {1, 2, 999, 1023, 1024, 1025, 2048, 3071, 3072, 4998, 4999};
	uint32_t number = 0;

	for (uint32_t words : {3, 5})
	{
		for (RunOrder order : {RUN_EQUAL, RUN_RISING, RUN_FALLING, RUN_MIXED})
		{
			Keys keys = {words, {}};
			Way way = {};

			if (!test_taken())
				continue;
			for (uint32_t rows : {1u, 2100u, 3u, 5000u, 2049u, 40u, 300u, 2048u})
				add_run(&keys, rows, order, 0);
			way.given_partial_keys = true; /* no wait to learn if a map should make others */
			check_sort("runs of one order", keys, way, right_order(keys));

			/* once to learn of the runs, once to learn that they are in order; or of levels */
			if (order == RUN_EQUAL || order == RUN_RISING)
				TEST_CHECK(waits == 2, "%d waits: runs in order were sorted", waits);
			else
				TEST_CHECK(waits > 2, "%d waits: runs in no order were not sorted", waits);
		}
	}
	test_point("runs that are in order are seen to be");

	for (uint32_t descent : descents)
	{
		Keys keys = {3 + number % 2, {}};
		Way way = {};

		if (!test_taken())
			continue;

		/* runs that are dropped before, between and after those that stay; tiles begin anywhere */
		add_run(&keys, 2100 + number++ % 7, RUN_EQUAL, 0);
		add_run(&keys, 5000, RUN_ONE_DESCENT, descent);
		add_run(&keys, 3000, RUN_RISING, 0);
		add_run(&keys, 2500, RUN_ONE_DESCENT, 1 + (uint32_t) test_below(2499));
		add_run(&keys, 2050, RUN_EQUAL, 0);
		way.given_partial_keys = true;
		check_sort("one descent", keys, way, right_order(keys));
		TEST_CHECK(waits > 2, "one descent: %d waits", waits);
	}
	for (uint32_t rows : {2, 3, 4, 5, 31, 32, 33, 100, 256, 257, 1000, 2048})
	{
		Keys keys = {3 + number++ % 2, {}};
		Way way = {};

		if (!test_taken())
			continue;
		for (int run = 0; run < 5; run++)
			add_run(&keys, rows, run % 2 ? RUN_EQUAL : RUN_ONE_DESCENT, 1 + (uint32_t) test_below(rows - 1));
		check_sort("one descent in a short run", keys, way, right_order(keys));
	}
	test_point("one row out of order is seen");
}

/* Few different keys: all rows in runs, each of equal keys. */
static void
test_few_values(void)
{
	const uint32_t rows = (uint32_t) std::min<uint64_t>(test_rows, 100000);

	for (uint32_t words = 1; words <= 3; words++)
	{
		for (uint32_t distinct : {1, 3, 30, 1000})
		{
			const uint64_t seed = test_random();
			Keys keys = {words, {}};

			for (uint32_t i = 0; i < rows; i++)
			{
				const uint64_t value = test_below(distinct);

				for (uint32_t w = 0; w < words; w++)
					keys.all.push_back((seed + value) * UINT64_C(0x9E3779B97F4A7C15) * (2 * w + 1));
			}
			check_random_way("few values", keys);
		}
	}
	test_point("few different keys");
}

/* Sorts of the core whose rows lie in temp, which is what levels do. */
static void
test_room(const char *core)
{
	const uint32_t most = 20000;
	size_t temp_bytes;
	char *temp;

	TEST_CUDA(gpusort_radix_room_bytes(most, &temp_bytes));
	temp = (char *) test_device(temp_bytes);
	for (uint32_t rows : {3000u, most - (uint32_t) test_below(3000)})
	{
		for (int bits : {1, 8, 9, 16, 17, 24, 25, 32})
		{
			if (!test_taken())
				continue;

			GpuSortRadixRoom room;
			GpuSortRadixSort sort = {};
			std::vector<uint32_t> keys(rows);
			std::vector<uint32_t> ids(rows);
			std::vector<uint32_t> right(rows);
			const uint32_t mask = (uint32_t) ((UINT64_C(1) << bits) - 1);

			for (uint32_t i = 0; i < rows; i++)
			{
				keys[i] = (uint32_t) test_random() & mask;
				ids[i] = (uint32_t) test_random();
			}
			TEST_CUDA(gpusort_radix_room(temp, rows, bits, &room));
			test_upload(room.keys_in, keys.data(), rows * sizeof(uint32_t));
			test_upload(room.ids_in, ids.data(), rows * sizeof(uint32_t));
			sort.temp = temp;
			sort.temp_bytes = temp_bytes;
			sort.keys_in = room.keys_in;
			sort.ids_in = room.ids_in;
			sort.rows = rows;
			sort.bits = bits;
			sort.keys_out = room.keys_out;
			sort.ids_out = room.ids_out;
			TEST_CUDA(gpusort_radix_sort(&sort, test_stream));
			right = test_stable_order(rows, [&](uint32_t a, uint32_t b)
									  { return keys[a] < keys[b]; });
			for (uint32_t &place : right)
				place = ids[place];
			check_ids("ids in temp", test_host_copy(room.ids_out, rows), right, rows);
			std::sort(keys.begin(), keys.end());
			check_ids("keys in temp", test_host_copy(room.keys_out, rows), keys, rows);
		}
	}
	test_point("sorts of rows that lie in temp, %s", core);
	test_free_all();
}

static void
test_given_order(void)
{
	for (uint32_t rows : {0, 1, 2, 1000, 3000})
	{
		for (int reversed = 0; reversed < 2; reversed++)
		{
			for (int limited = 0; limited < 3 && (rows > 0 || limited == 0); limited++)
			{
				Keys keys = {2, {}};
				Way way = random_way(rows);

				if (!test_taken())
					continue;
				for (uint32_t i = 0; i < rows; i++)
				{
					/* sorted input may tie, reversed may not */
					keys.all.push_back(reversed ? UINT64_C(1) << 40 : i / 700);
					keys.all.push_back(reversed ? (uint64_t) (rows - i) << 31 : i / 3);
				}
				way.order = reversed ? GPUSORT_INPUT_REVERSED : GPUSORT_INPUT_SORTED;
				way.limit = limited > 0 ? 1 + (uint32_t) test_below(rows) : 0;
				way.limit_ties = limited == 2;
				check_sort(reversed ? "reversed" : "sorted", keys, way, right_order(keys));
			}
		}
	}
	test_point("sorted and reversed input");
}

static void
test_limits(void)
{
	const uint32_t rows = (uint32_t) std::min<uint64_t>(test_rows, 100000) / 2;
	std::vector<Keys> cases;
	uint32_t number = 0;

	cases.push_back(masked_keys(rows, 1, 64));
	cases.push_back(masked_keys(rows, 1, 30));
	cases.push_back(masked_keys(rows, 1, 3));
	cases.push_back(masked_keys(rows, 2, 2));
	cases.push_back(masked_keys(rows, 4, 40));
	cases.push_back(masked_keys(rows, 1, 0));
	cases.push_back(keys_of_runs({rows / 3, rows / 3, rows / 3, 5, 1}, 4, 2));
	cases.push_back(keys_of_runs({rows - 10, 10}, 3, 500));
	cases.push_back(keys_of_runs({rows}, 3, 1));
	for (Keys &keys : cases)
	{
		const std::vector<uint32_t> right = right_order(keys);
		const uint32_t count = rows_of(keys);
		const uint32_t limits[] = {count / 64, 1 + (uint32_t) test_below(100), count / 4 + (uint32_t) test_below(2),
								   count - 1 + (uint32_t) test_below(3), 1 + (uint32_t) test_below(count / 4)};

		for (uint32_t limit : limits)
		{
			char what[64];
			Way way = random_way(count);

			snprintf(what, sizeof(what), "limit %u of case %u", limit, number);
			way.limit = limit;
			way.limit_ties = test_below(2);
			if (limit > 0 && ((number == 0 && limit == limits[0]) || test_taken()))
				check_sort(what, keys, way, right);
		}
		number++;
	}
	test_point("limits");
}

static void
test_failed_waits(void)
{
	const Keys keys = keys_of_runs({3000, 5000, 1, 1}, 5, 2);
	const std::vector<uint32_t> right = right_order(keys);

	for (int wait = 1; wait <= 4; wait++)
	{
		for (uint32_t limit : {0, 20})
		{
			Way way = {};

			way.limit = limit;
			way.limit_ties = true;
			way.fail_wait = wait;
			if (test_taken())
				check_sort("failed wait", keys, way, right);
		}
	}
	test_point("a wait that fails ends the sort with its status");
}

/* Partial keys that the sort makes of more rows than one block of the core sorts. */
static void
test_made_partial_keys(void)
{
	for (uint32_t words = 1; words <= 5; words++)
	{
		Keys keys = masked_keys(11000, words, 1 + (uint32_t) test_below(60 / words));
		Way way = {};

		way.want_partial_keys = words % 2 == 0;
		check_sort("made partial keys", keys, way, right_order(keys));
	}
	test_point("digits counted while partial keys are made");
}

static void
test_at_random(void)
{
	for (uint64_t round = 0; round < test_rounds; round++)
	{
		const uint32_t rows = (uint32_t) test_below(test_rows + 1);
		const uint32_t words = 1 + (uint32_t) test_below(test_below(4) == 0 ? GPUSORT_DEVICE_SORT_MAX_KEY_WORDS : 4);

		check_random_way("random", masked_keys(rows, words, (uint32_t) test_below(65)));
		if (rows > 0)
		{
			std::vector<uint32_t> lengths;
			const uint32_t longest = 1 + (uint32_t) test_below(4000);
			uint32_t left = rows;

			while (left > 0)
			{
				lengths.push_back(std::min(left, 1 + (uint32_t) test_below(longest)));
				left -= lengths.back();
			}
			check_random_way("random runs", keys_of_runs(lengths, words, 1 + test_below(100)));
		}
	}
	test_point("%llu random cases", (unsigned long long) test_rounds);
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
	test_room("CUB");
	test_rounds_over_ties();
	test_runs_in_order();
	test_few_values();
	test_made_partial_keys();
	test_limits();
	test_at_random();
#ifdef __CUDACC__
	gpusort_radix_choose(GPUSORT_RADIX_AUTO);
#else
	unsetenv("GPUSORT_EMULATE_SHARED");
#endif
}

int
main(int argc, char **argv)
{
#ifdef __CUDACC__
	test_begin(argc, argv, 300000, 100);
#else
	test_begin(argc, argv, 10000, 5);
#endif
	test_sizes();
	test_widths();
	test_runs();
	test_rounds_over_ties();
	test_runs_in_order();
	test_few_values();
	test_room("the device's core");
	test_given_order();
	test_limits();
	test_failed_waits();
	test_made_partial_keys();
	test_at_random();
	if (!test_raw()) /* compute-sanitizer is to look at our kernels, which takes it long enough */
		test_with_cub();
	return test_end();
}
