/*-------------------------------------------------------------------------
 *
 * rmg_test.cu
 *	  The references over several GPUs (bench/device/published/multi_reference.h) against
 *	  std::sort, and their partitioning and merging alone.  Prints TAP.
 *
 * --rows is the number of rows of the larger cases.  Where there are fewer devices
 * than a case wants, several of its "devices" are the same one.
 *
 *-------------------------------------------------------------------------
 */
#include "device_test.h"

#include <math.h>

#include "distributions.h"
#include "published/merge_runs.h"
#include "published/multi_reference.h"
#include "published/rmg_partition.h"

/* Keys that the papers do not have, behind bench/device's. */
typedef enum Shape
{
	SHAPE_TWO_VALUES = GPUSORT_DISTRIBUTIONS,
	SHAPE_LAST_DIGIT, /* all bits but the last eight are equal */
	SHAPE_BORDERS,    /* most keys are one of few values, so that borders fall into equal keys */
	SHAPE_ZIPF_STEEP, /* z = 3 */
	SHAPE_HALF_ZERO,  /* half of the keys are zero, the others uniform */
	SHAPE_EVEN,       /* uniform, and no part of the range has more than its share */
	SHAPE_MIXED,      /* of each length of bits as many: deep and shallow buckets side by side */
	SHAPES
} Shape;

static const char *
shape_name(int shape)
{
	static const char *const names[] = {"two values", "last digit", "borders", "zipf3",
										"half zero", "even", "mixed lengths"};

	return shape < GPUSORT_DISTRIBUTIONS ? gpusort_distribution_name(shape) : names[shape - GPUSORT_DISTRIBUTIONS];
}

static uint64_t
make_key(int shape, int key_bytes, uint64_t row, uint64_t rows, uint64_t seed)
{
	const int bits = 8 * key_bytes;
	const uint64_t mask = ~UINT64_C(0) >> (64 - bits);
	uint64_t random = test_random();

	switch (shape)
	{
		case SHAPE_TWO_VALUES:
			return (random & 1 ? seed : ~seed) & mask;
		case SHAPE_LAST_DIGIT:
			return (seed & mask & ~UINT64_C(0xFF)) | (random & 0xFF);
		case SHAPE_BORDERS:
			return (random % 10 == 0 ? random >> 8 : (random >> 8) % 5 * 0x01010101) & mask;
		case SHAPE_ZIPF_STEEP:
			return gpusort_row_zipf(seed, row, 3, bits == 32 ? 4294967295.0 : 18446744073709551615.0) & mask;
		case SHAPE_HALF_ZERO:
			return random & 1 ? 0 : random >> 1 & mask;
		case SHAPE_EVEN:
			return (row + seed % rows) % rows * UINT64_C(0x9E3779B97F4A7C15) >> (64 - bits); /* Weyl's sequence */
		case SHAPE_MIXED:
			return (test_random() & mask) >> random % (uint64_t) bits;
		default:
			return bits == 32 ? gpusort_distribution_key32(shape, row, rows, seed)
							  : gpusort_distribution_key64(shape, row, rows, seed);
	}
}

template <typename Key>
static std::vector<Key>
make_keys(int shape, uint64_t rows)
{
	std::vector<Key> keys(rows);
	uint64_t seed = test_random();

	for (uint64_t i = 0; i < rows; i++)
		keys[i] = (Key) make_key(shape, sizeof(Key), i, rows, seed);
	return keys;
}

/* An open reference, with pinned memory for its keys between guard bands. */
typedef struct Opened
{
	const GpuSortMultiReference *reference;
	int count;
	uint64_t rows;
	int key_bytes;
	GpuSortMultiContext *context;
	unsigned char *memory;
} Opened;

static Opened
open_reference(const GpuSortMultiReference *reference, int count, uint64_t rows, int key_bytes)
{
	Opened opened = {reference, count, rows, key_bytes, NULL, NULL};
	int devices[GPUSORT_MULTI_REFERENCE_DEVICES];
	int present;

	TEST_CUDA(cudaGetDeviceCount(&present));
	for (int d = 0; d < count; d++)
		devices[d] = d % present;
	TEST_CUDA(reference->open(devices, count, rows, key_bytes, &opened.context));
	TEST_CUDA(cudaMallocHost((void **) &opened.memory, rows * (size_t) key_bytes + 2 * TEST_GUARD_BYTES));
	return opened;
}

static void
close_reference(Opened *opened)
{
	opened->reference->close(opened->context);
	TEST_CUDA(cudaFreeHost(opened->memory));
}

/* One sort of `rows` keys; says what is wrong. */
template <typename Key>
static GpuSortMultiTimes
check_sort(const Opened *opened, int shape, uint64_t rows)
{
	std::vector<Key> keys = make_keys<Key>(shape, rows);
	const size_t bytes = rows * sizeof(Key);
	Key *sorted = (Key *) (opened->memory + TEST_GUARD_BYTES);
	GpuSortMultiTimes times;
	cudaError_t status;
	uint64_t bad = 0;

	for (size_t i = 0; i < bytes + 2 * TEST_GUARD_BYTES; i++)
		opened->memory[i] = test_garbage(i);
	if (bytes > 0)
		memcpy(sorted, keys.data(), bytes);
	status = opened->reference->sort(opened->context, sorted, rows, &times);
	std::sort(keys.begin(), keys.end());
	for (uint64_t i = 0; i < rows; i++)
		bad += sorted[i] != keys[i];
	for (size_t i = 0; i < bytes + 2 * TEST_GUARD_BYTES; i++)
		bad += (i < TEST_GUARD_BYTES || i >= TEST_GUARD_BYTES + bytes) && opened->memory[i] != test_garbage(i);
	TEST_CHECK(status == cudaSuccess, "%s: %s", opened->reference->name, cudaGetErrorString(status));
	TEST_CHECK(bad == 0, "%s, %d devices, %d-byte keys, %s, %llu rows: %llu places are wrong", opened->reference->name,
			   opened->count, (int) sizeof(Key), shape_name(shape), (unsigned long long) rows,
			   (unsigned long long) bad);
	return times;
}

template <typename Key>
static void
check_all(const GpuSortMultiReference *reference, int count)
{
	static const uint64_t sizes[] = {0, 1, 2, 3, 5, 17, 255, 256, 257, 1000};
	Opened opened = open_reference(reference, count, test_rows, sizeof(Key));

	/* shapes and key types take turns; many devices get cases at random only */
	for (int shape = (int) (test_seed + sizeof(Key) / 4 + (unsigned int) count) % 2; shape < SHAPES && count <= 4;
		 shape += 2)
	{
		if (test_taken())
			(void) check_sort<Key>(&opened, shape, test_rows);
	}
	for (uint64_t size : sizes)
	{
		if ((count == 2 || count == 3) && test_taken())
			(void) check_sort<Key>(&opened, (int) test_below(SHAPES), std::min(size, test_rows));
	}
	for (uint64_t round = 0; round < test_rounds; round++)
	{
		if (test_taken())
			(void) check_sort<Key>(&opened, (int) test_below(SHAPES), test_below(test_rows + 1));
	}
	close_reference(&opened);
}

static void
test_references(void)
{
	for (int r = 0; gpusort_multi_references[r] != NULL; r++)
	{
		const GpuSortMultiReference *reference = gpusort_multi_references[r];

		static const int counts[] = {1, 2, 3, 4, 7, 8};

		for (int count : counts)
		{
			if ((reference->power_of_two && (count & (count - 1)) != 0) || (!reference->power_of_two && count == 8))
				continue;
			if (test_one_in > 1 && count != 2 && count != 4)
				continue;
			check_all<uint32_t>(reference, count);
			check_all<uint64_t>(reference, count);
			test_point("%s on %d devices", reference->name, count);
		}
	}
}

/* What the paper says about RMG sort's passes, balance and transfers (sections 3.1, 3.2, 5.3). */
static void
test_rmg_claims(void)
{
	Opened opened = open_reference(&gpusort_rmg_sort, 4, 300000, 4);
	uint64_t rows = 300000;
	uint64_t chunk = rows / 4;
	GpuSortMultiTimes times;

	times = check_sort<uint32_t>(&opened, SHAPE_EVEN, rows);
	TEST_CHECK(times.passes == 1, "uniform keys took %d passes", times.passes);
	TEST_CHECK(times.fullest <= chunk + 2 * (chunk / 200), "%llu keys on a device", (unsigned long long) times.fullest);
	TEST_CHECK(times.sent > rows / 2 && times.sent < rows, "%llu uniform keys were sent",
			   (unsigned long long) times.sent);
	times = check_sort<uint32_t>(&opened, GPUSORT_ZERO, rows);
	TEST_CHECK(times.passes == 4, "equal keys took %d passes", times.passes);
	TEST_CHECK(times.sent == 0, "%llu equal keys were sent", (unsigned long long) times.sent);
	TEST_CHECK(times.fullest == chunk, "%llu equal keys on a device", (unsigned long long) times.fullest);
	times = check_sort<uint32_t>(&opened, GPUSORT_SORTED, rows);
	TEST_CHECK(times.sent <= 4 * (chunk / 200), "%llu sorted keys were sent", (unsigned long long) times.sent);
	times = check_sort<uint32_t>(&opened, GPUSORT_ZIPF_ONE, rows);
	TEST_CHECK(times.fullest <= chunk + 2 * (chunk / 200), "%llu keys on a device", (unsigned long long) times.fullest);
	close_reference(&opened);
	test_point("RMG sort's passes, balance and transfers");
}

/* Exchanges are g - 1, and sorted keys are not sent. */
static void
test_p2p_claims(void)
{
	Opened opened = open_reference(&gpusort_p2p_merge_sort, 4, 40000, 4);
	GpuSortMultiTimes times = check_sort<uint32_t>(&opened, GPUSORT_SORTED, 40000);

	TEST_CHECK(times.sent == 0, "%llu sorted keys were sent", (unsigned long long) times.sent);
	times = check_sort<uint32_t>(&opened, GPUSORT_REVERSE, 40000);
	/* neighbours change places, then halves */
	TEST_CHECK(times.sent == 2 * 40000, "%llu reversed keys were sent", (unsigned long long) times.sent);
	close_reference(&opened);
	test_point("P2P merge sort's transfers");
}

static void
test_refusals(void)
{
	static const int devices[3] = {0, 0, 0};
	GpuSortMultiContext *context = NULL;
	GpuSortMultiTimes times;

	TEST_CHECK(gpusort_p2p_merge_sort.open(devices, 3, 100, 4, &context) == cudaErrorInvalidValue,
			   "P2P merge sort took three devices");
	gpusort_p2p_merge_sort.close(context);
	for (int r = 0; gpusort_multi_references[r] != NULL; r++)
	{
		const GpuSortMultiReference *reference = gpusort_multi_references[r];
		uint32_t keys[2] = {2, 1};

		TEST_CHECK(reference->open(devices, 0, 100, 4, &context) == cudaErrorInvalidValue, "%s took no devices",
				   reference->name);
		reference->close(context);
		TEST_CHECK(reference->open(devices, 1, 100, 3, &context) == cudaErrorInvalidValue, "%s took 3-byte keys",
				   reference->name);
		reference->close(context);
		TEST_CUDA(reference->open(devices, 1, 1, 4, &context));
		TEST_CHECK(reference->sort(context, keys, 2, &times) == cudaErrorInvalidValue, "%s took too many rows",
				   reference->name);
		reference->close(context);
	}
	test_point("what is not possible is refused");
}

template <typename Key>
static void
check_partition(uint64_t count, int shape, int shift)
{
	if (!test_taken())
		return;

	std::vector<Key> keys = make_keys<Key>(shape, count);
	const int key_bytes = sizeof(Key);
	GpuSortRmgStretch stretch = {};
	std::vector<uint64_t> right(GPUSORT_RMG_RADIX);
	auto digit = [shift](Key key)
	{ return (size_t) (key >> shift) % GPUSORT_RMG_RADIX; };

	for (Key key : keys)
		right[digit(key)]++;
	stretch.keys = test_device_copy(keys);
	stretch.split = test_device(count * sizeof(Key));
	stretch.count = count;
	stretch.tiles = (uint16_t *) test_device(gpusort_rmg_tiles(count, key_bytes) * GPUSORT_RMG_RADIX * 2);
	stretch.histogram = test_device_copy(std::vector<uint64_t>(GPUSORT_RMG_RADIX));
	stretch.cursors = (uint64_t *) test_device(GPUSORT_RMG_RADIX * 8);
	stretch.shift = shift;
	TEST_CUDA(gpusort_rmg_count(&stretch, key_bytes, test_stream));
	TEST_CHECK(test_host_copy(stretch.histogram, GPUSORT_RMG_RADIX) == right, "%llu keys, shift %d: wrong histogram",
			   (unsigned long long) count, shift);
	TEST_CUDA(gpusort_rmg_scatter(&stretch, key_bytes, test_stream));

	std::vector<Key> split = test_host_copy((const Key *) stretch.split, count);
	bool grouped = std::is_sorted(split.begin(), split.end(), [&](Key a, Key b)
								  { return digit(a) < digit(b); });

	TEST_CHECK(test_host_copy((const Key *) stretch.keys, count) == keys, "the keys have changed");
	std::sort(split.begin(), split.end());
	std::sort(keys.begin(), keys.end());
	TEST_CHECK(grouped, "%llu keys, shift %d: not by digit", (unsigned long long) count, shift);
	TEST_CHECK(split == keys, "%llu keys, shift %d: not the keys", (unsigned long long) count, shift);
	test_free_all();
}

static void
test_partition(void)
{
	for (uint64_t round = 0; round < test_rounds * 4; round++)
	{
		check_partition<uint32_t>(1 + test_below(test_rows), (int) test_below(SHAPES), 8 * (int) test_below(4));
		check_partition<uint64_t>(1 + test_below(test_rows), (int) test_below(SHAPES), 8 * (int) test_below(8));
	}
	for (uint64_t extra = 0; extra < 3; extra++)
	{
		check_partition<uint32_t>(2 * gpusort_rmg_tile_keys(4) - 1 + extra, GPUSORT_UNIFORM, 24);
		check_partition<uint64_t>(gpusort_rmg_tile_keys(8) - 1 + extra, GPUSORT_UNIFORM, 56);
	}
	/* more tiles than a block sums */
	check_partition<uint64_t>(gpusort_rmg_tile_keys(8) * 257 + 5, GPUSORT_UNIFORM, 0);
	test_point("partitioning by a digit");
}

template <typename Key>
static void
check_merge(uint64_t first_count, uint64_t count, int shape)
{
	if (!test_taken())
		return;

	std::vector<Key> keys = make_keys<Key>(shape, count);
	Key *merged = (Key *) test_device(count * sizeof(Key));
	void *temp = test_device(gpusort_merge_temp_bytes(count, sizeof(Key)));

	std::sort(keys.begin(), keys.begin() + (long) first_count);
	std::sort(keys.begin() + (long) first_count, keys.end());

	Key *runs = test_device_copy(keys);

	TEST_CUDA(gpusort_merge_runs(runs, first_count, count, sizeof(Key), merged, temp, test_stream));
	std::sort(keys.begin(), keys.end());
	TEST_CHECK(test_host_copy(merged, count) == keys, "%llu and %llu keys: wrong order",
			   (unsigned long long) first_count, (unsigned long long) (count - first_count));
	test_free_all();
}

static void
test_merge(void)
{
	for (uint64_t count = 0; count < 4; count++)
	{
		for (uint64_t first_count = 0; first_count <= count; first_count++)
			check_merge<uint32_t>(first_count, count, GPUSORT_UNIFORM);
	}
	for (uint64_t round = 0; round < test_rounds * 4; round++)
	{
		uint64_t count = round % 3 == 0 ? 2048 * test_below(4) : test_below(test_rows + 1);

		check_merge<uint32_t>(test_below(count + 1), count, (int) test_below(SHAPES));
		check_merge<uint64_t>(test_below(count + 1), count, (int) test_below(SHAPES));
	}
	test_point("merging of two runs");
}

int
main(int argc, char **argv)
{
#ifdef __CUDACC__
	test_begin(argc, argv, 200000, 5);
#else
	test_begin(argc, argv, 5000, 3);
#endif
	test_partition();
	test_merge();
	test_references();
	if (test_one_in == 1)
	{
		test_rmg_claims();
		test_p2p_claims();
	}
	test_refusals();
	return test_end();
}
