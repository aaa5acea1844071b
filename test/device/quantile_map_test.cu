/*-------------------------------------------------------------------------
 *
 * quantile_map_test.cu
 *	  Partial keys by a quantile map (sort/quantile_map.h): that it keeps order, that a
 *	  kernel's codes are those of the map, that it is used where it pays and only there,
 *	  and that sorts by it are right (against std::stable_sort).  Prints TAP.
 *
 *-------------------------------------------------------------------------
 */
#include "device_test.h"

#include "distributions.h"
#include "sort/digit_histogram.cuh"
#include "sort/key_source.h"
#include "sort/quantile_map.h"
#include "test_keys.h"

/* From as many rows on the library of the tests looks whether a map pays. */
#define CONSIDERED_ROWS 2048

/* What the first packed bits of keys are like. */
typedef enum Shape
{
	UNIFORM,
	ZIPF_HALF,
	ZIPF_ONE,
	ZIPF_TWO, /* and ZIPF_THREE: with an outlier, so that more than 32 bits vary */
	ZIPF_THREE,
	OUTLIER,          /* 2^20 small numbers, and the largest there is */
	OUTLIER_BELOW,    /* 0, and numbers of 20 bits at the end of the range */
	CLUSTERS,         /* a hundred places, 2^16 values at each */
	MANY_CLUSTERS,    /* more than buckets can tell apart */
	FEW_VALUES,       /* 1000, at random */
	FEW_SMALL_VALUES, /* 1000, and an outlier */
	HEAVY_VALUE,      /* most rows have one value in the midst of numbers close to it */
	EXTREMES,         /* 0, 1, the largest and the one before */
	ONE_VALUE,        /* and one row of another */
	SHAPES
} Shape;

static const char *const shape_names[SHAPES] = {
	"uniform", "zipf 0.5", "zipf 1", "zipf 2", "zipf 3", "outlier", "outlier below", "clusters", "many clusters",
	"few values", "few small values", "heavy value", "extremes", "one value"};

/* Whether a map pays for windows of 64 bits; -1: either may be. */
static const int shape_pays[SHAPES] = {
	0, 0, 1, 1, 1, 1, 1, 1, -1, 0, 1, 1, 1, 0};

/* Numbers of `bits` bits, 33 to 64, of two rows or more. */
static std::vector<uint64_t>
numbers_of(Shape shape, uint32_t bits, uint32_t rows)
{
	const uint64_t largest = gpusort_ones(bits);
	const uint64_t seed = test_random();
	std::vector<uint64_t> places(shape == MANY_CLUSTERS ? 5000 : 1000);
	std::vector<uint64_t> numbers(rows);
	uint32_t far;

	for (uint64_t &place : places)
		place = test_random() & largest;
	for (uint32_t i = 0; i < rows; i++)
	{
		const uint64_t random = test_random();

		switch (shape)
		{
			case ZIPF_HALF:
			case ZIPF_ONE:
			case ZIPF_TWO:
			case ZIPF_THREE:
				numbers[i] =
					gpusort_row_zipf(seed, i, shape == ZIPF_HALF ? 0.5 : shape - ZIPF_ONE + 1.0, (double) largest);
				break;
			case OUTLIER:
				numbers[i] = random % (1 << 20);
				break;
			case OUTLIER_BELOW:
				numbers[i] = largest - random % (1 << 20);
				break;
			case CLUSTERS:
				numbers[i] = places[random % 100] ^ (random >> 48 & (largest >> 33));
				break;
			case MANY_CLUSTERS:
				numbers[i] = places[random % 5000] ^ (random >> 48 & (largest >> 33));
				break;
			case FEW_VALUES:
				numbers[i] = places[random % 1000];
				break;
			case FEW_SMALL_VALUES:
				numbers[i] = random % 1000;
				break;
			case HEAVY_VALUE:
				numbers[i] = largest / 3 + (random % 8 == 0 ? (random >> 32) % 4096 : 777);
				break;
			case EXTREMES:
				numbers[i] = random % 4 < 2 ? random % 4 : largest - random % 2;
				break;
			case ONE_VALUE:
				numbers[i] = largest / 5;
				break;
			default:
				numbers[i] = random & largest;
				break;
		}
	}

	/* all bits vary */
	far = (uint32_t) test_below(rows);
	numbers[far] = largest;
	numbers[(far + 1 + test_below(rows - 1)) % rows] = 0;
	return numbers;
}

/*
 * Keys of some words that pack to so many bits, at least 33, the first 64 of which are
 * shaped; others are noise, of few values so that some are decided by the row number.
 */
static Keys
make_keys(Shape shape, uint32_t words, uint32_t bits, uint32_t rows)
{
	const std::vector<uint64_t> numbers = numbers_of(shape, bits < 64 ? bits : 64, rows);
	Keys keys = {words, std::vector<uint64_t>((size_t) words * rows)};

	for (uint32_t i = 0; i < rows; i++)
	{
		uint64_t *key = &keys.all[(size_t) i * words];

		/* the first word has the top bits, and the second the rest, if there is one and they need both */
		if (bits > 64)
		{
			key[0] = numbers[i] >> 20;
			key[1] = numbers[i] << 44 | test_below(2) << 1 | test_below(2);
		}
		else if (words > 1)
		{
			key[0] = numbers[i] >> 7;
			key[1] = (numbers[i] & 127) << 20;
		}
		else
			key[0] = numbers[i];
		for (uint32_t w = 2; w < words; w++)
			key[w] = bits > 64 ? test_below(3) << 30 : 4711;
	}
	return keys;
}

static uint64_t
window_of(const Keys &keys, const GpuSortPackPlan &plan, uint32_t row)
{
	return gpusort_pack_window64(&plan, &keys.all[(size_t) row * keys.words], 0, 64);
}

/* ---- the map ---- */

static uint32_t
code_of(const GpuSortQuantileMap &map, uint64_t window)
{
	return gpusort_quantile_code(map.splitters, map.scales, window);
}

/* That it keeps the order of windows of so many bits: around its splitters, at the ends, and of the keys. */
static void
check_monotone(const char *what, Shape shape, const GpuSortQuantileMap &map, uint32_t bits, const Keys &keys,
			   const GpuSortPackPlan &plan)
{
	const uint64_t largest = gpusort_ones(bits);
	uint32_t decided = 0;
	uint32_t looked = 0;
	std::vector<uint64_t> windows = {0, 1, 2, largest, largest - 1, largest - 2, largest / 2, largest / 2 + 1};

	for (uint32_t k = 0; k < GPUSORT_MAP_BUCKETS; k++)
	{
		const uint64_t low = map.splitters[k];
		const uint64_t scale = UINT64_C(1) << (map.scales[k] >> 32);

		TEST_CHECK(k == 0 ? low == 0 : k < map.buckets ? map.splitters[k - 1] < low
													   : low == largest,
				   "%s: splitter %u is %llx", what,
				   k, (unsigned long long) low);
		for (uint64_t x : {low - 2, low - 1, low, low + 1, low + scale - 1, low + scale, low + test_random() % scale,
						   low - scale, low - scale - 1})
			windows.push_back(x & largest);
	}
	for (uint32_t i = 0; i < rows_of(keys); i += 1 + rows_of(keys) / 3000)
	{
		const uint32_t code = code_of(map, window_of(keys, plan, i));

		windows.push_back(window_of(keys, plan, i));
		decided += code - map.decided.first < map.decided.count;
		looked++;
	}
	if (plan.packed_bits > 64)
		TEST_CHECK(map.decided.count == 0, "%s: decided by the first 64 bits", what);
	else if (shape >= ZIPF_TWO && shape <= OUTLIER_BELOW && rows_of(keys) >= 4096)
		TEST_CHECK(decided > looked / 2, "%s: codes %x to %x decide %u of %u rows", what, map.decided.first,
				   map.decided.first + map.decided.count - 1, decided, looked);
	for (int i = 0; i < 2000; i++)
		windows.push_back((test_random() & largest) >> test_below(bits));
	std::sort(windows.begin(), windows.end());
	for (size_t i = 0; i < windows.size(); i++)
	{
		const uint32_t code = code_of(map, windows[i]);

		TEST_CHECK(i == 0 || code_of(map, windows[i - 1]) <= code, "%s: %llx has code %x, %llx has %x", what,
				   (unsigned long long) windows[i - 1], code_of(map, windows[i - 1]), (unsigned long long) windows[i],
				   code);
		TEST_CHECK(i == 0 || code - map.decided.first >= map.decided.count || code_of(map, windows[i - 1]) != code ||
					   windows[i - 1] == windows[i],
				   "%s: %llx and %llx have code %x, which is decided", what,
				   (unsigned long long) windows[i - 1], (unsigned long long) windows[i], code);
		TEST_CHECK(map.code_bits == 32 || code >> map.code_bits == 0, "%s: code %x has more than %u bits", what, code,
				   map.code_bits);
	}
	TEST_CHECK(map.code_bits == 1 || code_of(map, largest) >> (map.code_bits - 1) == 1, "%s: no code has %u bits", what,
			   map.code_bits);
}

/* The map of these keys, and the codes that the device makes by it. */
static void
check_map(Shape shape, uint32_t words, uint32_t bits, uint32_t rows)
{
	const Keys keys = make_keys(shape, words, bits, rows);
	const GpuSortPackPlan plan = plan_of(keys);
	const uint32_t window_bits = plan.packed_bits < 64 ? plan.packed_bits : 64;
	const GpuSortKeySource source = upload_refs(keys);
	GpuSortQuantileMap *there = (GpuSortQuantileMap *) test_device(sizeof(GpuSortQuantileMap));
	uint32_t *partial_keys = (uint32_t *) test_device(rows * sizeof(uint32_t));
	uint32_t *counts = (uint32_t *) test_device(GPUSORT_MAX_PASSES * GPUSORT_BINS * sizeof(uint32_t));
	std::vector<uint32_t> expected(GPUSORT_MAX_PASSES * GPUSORT_BINS);
	GpuSortQuantileMap map;
	char what[80];

	snprintf(what, sizeof(what), "%s, %u words, %u bits, %u rows", shape_names[shape], words, plan.packed_bits, rows);
	TEST_CUDA(gpusort_skew_check(&source, &plan, rows, &there->check, test_stream));
	TEST_CUDA(gpusort_quantile_map_make(&source, &plan, rows, there, test_stream));
	test_download(&map, there, sizeof(map));
	check_monotone(what, shape, map, window_bits, keys, plan);
	if (bits == 64 && rows >= 4096 && shape_pays[shape] >= 0)
	{
		TEST_CHECK((int) map.pays == shape_pays[shape], "%s: %u rows of the sample tie, %u by the map", what,
				   map.plain_ties, map.mapped_ties);
		TEST_CHECK((int) gpusort_quantile_map_wanted(&map.check) == shape_pays[shape], "%s: %s a map", what,
				   gpusort_quantile_map_wanted(&map.check) ? "wants" : "does not want");
	}

	for (int counted = 0; counted < 2; counted++)
	{
		std::vector<uint32_t> codes;

		TEST_CUDA(cudaMemsetAsync(counts, 0, expected.size() * sizeof(uint32_t), test_stream));
		TEST_CUDA(gpusort_quantile_map_codes(&source, &plan, rows, there, map.code_bits, partial_keys,
											 counted ? counts : NULL, test_stream));
		codes = test_host_copy(partial_keys, rows);
		for (uint32_t i = 0; i < rows; i++)
		{
			if (codes[i] != code_of(map, window_of(keys, plan, i)))
			{
				test_fail("%s: row %u has code %x", what, i, codes[i]);
				break;
			}
			for (uint32_t pass = 0; counted && pass < (map.code_bits + 7) / 8; pass++)
				expected[pass * GPUSORT_BINS + (codes[i] >> 8 * pass & 0xFF)]++;
		}
	}
	TEST_CHECK(test_host_copy(counts, expected.size()) == expected, "%s: digits are counted wrong", what);
	test_free_all();
}

static void
test_maps(void)
{
	for (int shape = 0; shape < SHAPES; shape++)
	{
		for (uint32_t bits : {64u, 33 + (uint32_t) test_below(31), 90u})
		{
			const uint32_t words = bits > 64 ? 2 + (uint32_t) test_below(3) : 1 + (uint32_t) test_below(2);

			if (test_taken())
				check_map((Shape) shape, words, bits, 4096 + (uint32_t) test_below(5000));
		}
	}
	for (uint32_t rows : {1, 2, 3, 100, 1023, 1025, 4095, 4097})
	{
		if (test_taken())
			check_map((Shape) test_below(SHAPES), 2, 64, std::max<uint32_t>(rows, 2));
	}
	test_point("maps keep order, and are made into codes");
}

/* ---- sorts ---- */

static int
count_wait(void *context, GpuSortStream stream)
{
	++*(int *) context;
	return (int) cudaStreamSynchronize((cudaStream_t) stream);
}

/*
 * Sorts keys by partial keys of the sort's choice, which it hands back: they tell if a map was
 * used.  `given`: partial keys are, and it may do without them.
 */
static void
check_sort(Shape shape, uint32_t words, uint32_t bits, uint32_t rows, bool given)
{
	const Keys keys = make_keys(shape, words, bits, rows);
	const GpuSortPackPlan plan = plan_of(keys);
	const std::vector<uint32_t> right = right_order(keys);
	GpuSortQuantileMap *there = (GpuSortQuantileMap *) test_device(sizeof(GpuSortQuantileMap));
	GpuSortQuantileMap map;
	GpuSortDeviceSort sort = {};
	std::vector<uint32_t> plain(rows);
	std::vector<uint32_t> sorted;
	uint32_t *ids = (uint32_t *) test_device((size_t) rows * 4);
	size_t temp_bytes;
	void *temp;
	GpuSortMapUse use;
	GpuSortDeviceSorted got;
	int waits = 0;
	bool used;
	char what[80];

	snprintf(what, sizeof(what), "%s, %u words, %u bits, %u rows, sorted", shape_names[shape], words, plan.packed_bits,
			 rows);
	for (uint32_t i = 0; i < rows; i++)
		plain[i] = gpusort_pack_window(&plan, &keys.all[(size_t) i * words], 0, 32);
	sort.source = upload_refs(keys);
	sort.plan = &plan;
	sort.rows = rows;
	sort.partial_keys = given ? test_device_copy(plain) : NULL;
	sort.sorted_partial_keys = given && test_below(2) ? sort.partial_keys : (uint32_t *) test_device((size_t) rows * 4);
	sort.any_partial_keys = true;
	sort.wait.mirror = mirror_memory();
	sort.wait.wait = count_wait;
	sort.wait.context = &waits;
	TEST_CHECK(gpusort_quantile_map_find(&sort.source, &plan, rows, &sort.wait, there, &use, test_stream) == 0,
			   "%s: no map", what);
	used = use.code_bits > 0 && rows >= CONSIDERED_ROWS;
	if (used)
		test_download(&map, there, sizeof(map));
	if (bits == 64 && rows >= 4096 && shape_pays[shape] >= 0)
		TEST_CHECK((int) used == shape_pays[shape], "%s: map %s", what, used ? "used" : "not used");
	waits = 0;

	TEST_CHECK(gpusort_device_sort_bytes(&sort, &temp_bytes) == 0, "%s: no size", what);
	temp = test_device(temp_bytes);
	TEST_CHECK(gpusort_device_sort(&sort, temp, temp_bytes - 1, ids, NULL, (GpuSortStream) test_stream) != 0,
			   "%s: sorted with too little memory", what);
	TEST_CHECK(gpusort_device_sort(&sort, temp, temp_bytes, ids, &got, (GpuSortStream) test_stream) == 0, "%s: failed",
			   what);
	TEST_CHECK(got.rows == rows && got.has_codes == used, "%s: %u rows, codes %d", what, got.rows, got.has_codes);
	check_ids(what, test_host_copy(ids, rows), right, rows);
	sorted = test_host_copy(sort.sorted_partial_keys, rows);
	for (uint32_t i = 0; i < rows; i++)
	{
		if (sorted[i] != (used ? code_of(map, window_of(keys, plan, right[i])) : plain[right[i]]))
		{
			test_fail("%s: partial key %u is %08x; map %s", what, i, sorted[i], used ? "used" : "not used");
			break;
		}
	}

	/* None given, none wanted: one wait more tells. */
	if (!given)
	{
		int with_map;

		with_map = waits;
		waits = 0;
		sort.any_partial_keys = false;
		TEST_CHECK(gpusort_device_sort(&sort, temp, temp_bytes, ids, NULL, (GpuSortStream) test_stream) == 0,
				   "%s: failed", what);
		check_ids(what, test_host_copy(ids, rows), right, rows);
		sorted = test_host_copy(sort.sorted_partial_keys, rows);
		for (uint32_t i = 0; i < rows; i++)
			TEST_CHECK(sorted[i] == plain[right[i]], "%s: not the partial key that was asked for", what);

		waits = 0;
		sort.sorted_partial_keys = NULL;
		TEST_CHECK(gpusort_device_sort(&sort, temp, temp_bytes, ids, NULL, (GpuSortStream) test_stream) == 0,
				   "%s: failed", what);
		check_ids(what, test_host_copy(ids, rows), right, rows);
		TEST_CHECK(waits == with_map, "%s: %d waits, not %d", what, waits, with_map);
	}
	test_free_all();
}

static void
test_sorts(void)
{
	for (int shape = 0; shape < SHAPES; shape++)
	{
		for (uint32_t bits : {64u, 33 + (uint32_t) test_below(31), 90u})
		{
			const uint32_t words = bits > 64 ? 2 + (uint32_t) test_below(3) : 1 + (uint32_t) test_below(4);

			if (test_taken())
				check_sort((Shape) shape, words, bits, 3000 + (uint32_t) test_below(9000), test_below(2));
		}
	}
	for (uint32_t rows : {CONSIDERED_ROWS - 1, CONSIDERED_ROWS, 4096, 10240, 10241})
	{
		for (int given = 0; given < 2; given++)
		{
			if (test_taken())
				check_sort(ZIPF_ONE, 1, 64, rows, given);
		}
	}
	test_point("sorts by partial keys of a map");
}

int
main(int argc, char **argv)
{
	test_begin(argc, argv, 0, 0);
	test_maps();
	test_sorts();
	return test_end();
}
