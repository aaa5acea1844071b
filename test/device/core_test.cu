/*-------------------------------------------------------------------------
 *
 * core_test.cu
 *	  The radix sort of (32-bit key, 32-bit id), sort/radix/radix_sort.h, with each of its
 *	  cores, against std::stable_sort, and large ones on a GPU against CUB as the judge
 *	  calls it.  Prints TAP.
 *
 *-------------------------------------------------------------------------
 */
#include "device_test.h"

#include "distributions.h"
#include "judge.h"
#include "sort/radix/radix_sort.h"

typedef enum KeysOut
{
	KEYS_DROPPED,
	KEYS_KEPT,
	KEYS_IN_PLACE, /* keys_out == keys_in */
	KEYS_OUTS
} KeysOut;

static uint32_t
low_bits(int bits)
{
	return bits == 32 ? ~0U : (1U << bits) - 1;
}

/* Keys whose low bits are of the distribution; the bits above are noise, which the order must not see. */
static std::vector<uint32_t>
make_keys(uint32_t rows, int distribution, int bits)
{
	std::vector<uint32_t> keys(rows);
	uint64_t seed = test_random();

	for (uint32_t i = 0; i < rows; i++)
	{
		uint32_t key = gpusort_distribution_key32(distribution, i, rows, seed);

		/* zipf's small numbers would be all 0 when shifted */
		if (distribution < GPUSORT_ZIPF_HALF && bits > 0)
			key >>= 32 - bits;
		keys[i] = (key & low_bits(bits)) | ((uint32_t) test_random() & ~low_bits(bits));
	}
	return keys;
}

/* One sort of given keys; says what is wrong. */
static void
check_sort(const std::vector<uint32_t> &keys, int bits, bool ids_given, KeysOut keys_out)
{
	if (!test_taken())
		return;

	uint32_t rows = (uint32_t) keys.size();
	uint32_t mask = low_bits(bits);
	std::vector<uint32_t> order = test_stable_order(rows, [&](uint32_t a, uint32_t b)
													{ return (keys[a] & mask) < (keys[b] & mask); });
	std::vector<uint32_t> ids(rows);
	uint32_t *device_keys = test_device_copy(keys);
	uint32_t *device_ids = NULL;
	uint32_t *sorted_keys = NULL;
	uint32_t *sorted_ids = (uint32_t *) test_device(rows * sizeof(uint32_t));
	size_t temp_bytes = 0;
	void *temp;
	GpuSortRadixSort sort = {};
	uint32_t bad_ids = 0;
	uint32_t bad_keys = 0;

	for (uint32_t i = 0; i < rows; i++)
		ids[i] = ids_given ? (uint32_t) test_random() : i;
	if (ids_given)
		device_ids = test_device_copy(ids);
	if (keys_out == KEYS_KEPT)
		sorted_keys = (uint32_t *) test_device(rows * sizeof(uint32_t));
	else if (keys_out == KEYS_IN_PLACE)
		sorted_keys = device_keys;

	TEST_CUDA(gpusort_radix_temp_bytes(rows, bits, &temp_bytes));
	temp = test_device(temp_bytes);
	sort.temp = temp;
	sort.temp_bytes = temp_bytes;
	sort.keys_in = device_keys;
	sort.ids_in = device_ids;
	sort.rows = rows;
	sort.bits = bits;
	sort.keys_out = sorted_keys;
	sort.ids_out = sorted_ids;
	TEST_CUDA(gpusort_radix_sort(&sort, test_stream));
	TEST_CUDA(cudaStreamSynchronize(test_stream));

	std::vector<uint32_t> got_ids = test_host_copy(sorted_ids, rows);
	std::vector<uint32_t> got_keys = test_host_copy(sorted_keys, sorted_keys != NULL ? rows : 0);
	std::vector<uint32_t> keys_after = test_host_copy(device_keys, rows);
	std::vector<uint32_t> ids_after = test_host_copy(device_ids, ids_given ? rows : 0);

	for (uint32_t i = 0; i < rows; i++)
	{
		bad_ids += got_ids[i] != ids[order[i]];
		bad_keys += sorted_keys != NULL && got_keys[i] != keys[order[i]];
	}
	TEST_CHECK(bad_ids == 0 && bad_keys == 0, "%u rows, %d bits, ids %s, keys %s: %u ids and %u keys are wrong", rows,
			   bits, ids_given ? "given" : "made",
			   keys_out == KEYS_DROPPED ? "dropped" : keys_out == KEYS_KEPT ? "kept"
																			: "in place",
			   bad_ids, bad_keys);
	TEST_CHECK(keys_out == KEYS_IN_PLACE || keys_after == keys, "%u rows, %d bits: the keys have changed", rows, bits);
	TEST_CHECK(!ids_given || ids_after == ids, "%u rows, %d bits: the ids have changed", rows, bits);
	test_free_all();
}

static void
test_sizes(void)
{
	/* around warps, blocks and what tiles may be */
	static const uint32_t sizes[] = {0, 1, 2, 3, 31, 32, 33, 255, 256, 257, 1023, 1024, 1025, 4095, 4096, 4097, 6144,
									 7680, 8191, 8192, 8193, 16383, 16384, 16385, 24575, 24576, 24577};

	for (uint32_t size : sizes)
	{
		if (size > test_rows)
			continue;
		check_sort(make_keys(size, GPUSORT_UNIFORM, 9), 9, true, KEYS_KEPT);
		if (size < 1000 || test_rows > 100000) /* emulated passes take their time */
			check_sort(make_keys(size, GPUSORT_UNIFORM, 32), 32, false, KEYS_DROPPED);
	}
	test_point("rows around the sizes of warps, blocks and tiles");
}

static void
test_bits(void)
{
	uint32_t rows = (uint32_t) (test_rows / 40);

	for (int bits = 0; bits <= 32; bits++)
	{
		for (int keys_out = 0; keys_out < KEYS_OUTS; keys_out++)
			check_sort(make_keys(rows, GPUSORT_UNIFORM, bits), bits, (bits + keys_out) % 2 == 0, (KeysOut) keys_out);
	}
	test_point("0 to 32 bits; keys dropped, kept and in place");
}

static void
test_distributions(void)
{
	for (int distribution = 0; distribution < GPUSORT_DISTRIBUTIONS; distribution++)
	{
		check_sort(make_keys((uint32_t) test_rows, distribution, 32), 32, false, KEYS_DROPPED);
		check_sort(make_keys((uint32_t) test_rows / 4, distribution, 17), 17, true, KEYS_KEPT);
		test_point("distribution %s, %u rows", gpusort_distribution_name(distribution), (uint32_t) test_rows);
	}
}

static void
test_at_random(void)
{
	for (uint64_t round = 0; round < test_rounds; round++)
	{
		uint32_t rows = (uint32_t) test_below(test_below(2) ? test_rows + 1 : test_rows / 10 + 1);
		int bits = (int) test_below(33);
		int distribution = (int) test_below(GPUSORT_DISTRIBUTIONS);

		check_sort(make_keys(rows, distribution, bits), bits, test_below(2), (KeysOut) test_below(KEYS_OUTS));
	}
	test_point("%u sorts at random", (uint32_t) test_rounds);
}

#ifdef __CUDACC__

__global__ static void
fill_keys(uint32_t *keys, uint32_t rows, int distribution, uint64_t seed)
{
	for (uint64_t i = blockIdx.x * (uint64_t) blockDim.x + threadIdx.x; i < rows;
		 i += (uint64_t) gridDim.x * blockDim.x)
		keys[i] = gpusort_distribution_key32(distribution, i, rows, seed);
}

/* Many rows, where positions exceed 31 bits of bytes and of rows: the judge is CUB. */
static void
check_large(uint64_t rows, int bits, int distribution)
{
	size_t free_bytes;
	size_t all_bytes;
	size_t temp_bytes;
	uint32_t *keys;
	uint32_t *ids;
	uint32_t *right;
	void *temp;
	GpuSortRadixSort sort = {};
	uint64_t differences;

	TEST_CUDA(gpusort_radix_temp_bytes((uint32_t) rows, bits, &temp_bytes));
	TEST_CUDA(cudaMemGetInfo(&free_bytes, &all_bytes));
	if (free_bytes < rows * 28 + (1 << 30) || free_bytes < rows * 12 + temp_bytes + (1 << 30))
	{
		printf("ok %d - %llu rows # SKIP the device has not the memory\n", ++test_points, (unsigned long long) rows);
		return;
	}
	TEST_CUDA(cudaMalloc((void **) &keys, rows * 4));
	TEST_CUDA(cudaMalloc((void **) &ids, rows * 4));
	TEST_CUDA(cudaMalloc((void **) &right, rows * 4));
	fill_keys<<<2048, 256, 0, test_stream>>>(keys, (uint32_t) rows, distribution, test_random());
	TEST_CUDA(cudaGetLastError());
	TEST_CUDA(cudaMalloc(&temp, temp_bytes));
	sort.temp = temp;
	sort.temp_bytes = temp_bytes;
	sort.keys_in = keys;
	sort.rows = (uint32_t) rows;
	sort.bits = bits;
	sort.ids_out = ids;
	TEST_CUDA(gpusort_radix_sort(&sort, test_stream));
	TEST_CUDA(cudaStreamSynchronize(test_stream));
	TEST_CUDA(cudaFree(temp));
	TEST_CUDA(judge_order_32(keys, (uint32_t) rows, bits, right));
	TEST_CUDA(judge_compare(ids, right, rows, &differences));
	TEST_CHECK(differences == 0, "%llu ids are wrong", (unsigned long long) differences);
	TEST_CUDA(cudaFree(keys));
	TEST_CUDA(cudaFree(ids));
	TEST_CUDA(cudaFree(right));
	test_point("%llu rows, %d bits, %s", (unsigned long long) rows, bits, gpusort_distribution_name(distribution));
}

static void
test_large(void)
{
	if (test_rows < 1000000) /* under a sanitizer, say */
		return;
	for (int distribution = 0; distribution < GPUSORT_DISTRIBUTIONS; distribution++)
		check_large(100000007, 32, distribution);
	check_large(((uint64_t) 1 << 28) + 1, 24, GPUSORT_UNIFORM);
	check_large(((uint64_t) 1 << 30) - 1, 32, GPUSORT_UNIFORM);
	check_large(((uint64_t) 1 << 30) + 1, 32, GPUSORT_ZERO);
	check_large(((uint64_t) 1 << 32) - 2, 32, GPUSORT_UNIFORM);
}

#endif

#ifndef __CUDACC__
/* A device whose blocks have 99 KiB: nothing is counted before the sort, and CUB sorts. */
static void
test_little_memory()
{
	const uint32_t rows = 17000;
	size_t temp_bytes = 0;
	const char *name;
	uint32_t *histogram;

	gpusort_radix_choose(GPUSORT_RADIX_AUTO);
	TEST_CUDA(gpusort_radix_temp_bytes(rows, 32, &temp_bytes));

	void *temp = test_device(temp_bytes);

	TEST_CUDA(gpusort_radix_chosen(&name));
	TEST_CHECK(strcmp(name, "onesweep") == 0, "%s sorts where there is enough shared memory", name);
	TEST_CUDA(gpusort_radix_begin(temp, temp_bytes, rows, 32, &histogram, test_stream));
	TEST_CHECK(histogram != NULL, "digits are not to be counted where there is room for counters");
	setenv("GPUSORT_EMULATE_SHARED", "101376", 1);
	TEST_CUDA(gpusort_radix_temp_bytes(rows, 32, &temp_bytes));
	temp = test_device(temp_bytes);
	histogram = (uint32_t *) temp;
	TEST_CUDA(gpusort_radix_chosen(&name));
	TEST_CHECK(strcmp(name, "cub") == 0, "%s sorts where there is too little shared memory", name);
	TEST_CUDA(gpusort_radix_begin(temp, temp_bytes, rows, 32, &histogram, test_stream));
	TEST_CHECK(histogram == NULL, "digits are to be counted where there is no room for counters");
	TEST_CUDA(cudaStreamSynchronize(test_stream));
	test_free_all();
	for (int bits : {8, 20, 32})
		check_sort(make_keys(rows, GPUSORT_UNIFORM, bits), bits, true, KEYS_KEPT);
	unsetenv("GPUSORT_EMULATE_SHARED");
	test_point("99 KiB of shared memory a block");
}
#endif

/* Bad arguments, and temp that is too small by one byte: nothing is written. */
static void
test_refusals(void)
{
	const uint32_t rows = 12000;
	GpuSortRadixSort sort = {};
	std::vector<uint32_t> keys = make_keys(rows, GPUSORT_UNIFORM, 32);
	uint32_t *ids = (uint32_t *) test_device(rows * sizeof(uint32_t));
	const std::vector<uint32_t> before = test_host_copy(ids, rows);
	size_t temp_bytes;

	TEST_CUDA(gpusort_radix_temp_bytes(rows, 32, &temp_bytes));
	sort.temp = test_device(temp_bytes);
	sort.temp_bytes = temp_bytes - 1;
	sort.keys_in = test_device_copy(keys);
	sort.rows = rows;
	sort.bits = 32;
	sort.ids_out = ids;
	TEST_CHECK(gpusort_radix_sort(&sort, test_stream) == cudaErrorInvalidValue, "too little temp passes");
	sort.temp_bytes = temp_bytes;
	sort.bits = 33;
	TEST_CHECK(gpusort_radix_sort(&sort, test_stream) == cudaErrorInvalidValue, "33 bits pass");
	TEST_CHECK(gpusort_radix_temp_bytes(UINT32_MAX, 32, &temp_bytes) == cudaErrorInvalidValue, "2^32 - 1 rows pass");
	TEST_CUDA(cudaStreamSynchronize(test_stream));
	TEST_CHECK(test_host_copy(ids, rows) == before, "ids have been written");
	test_free_all();
	test_point("what is refused");
}

/* temp for many rows and bits serves fewer. */
static void
test_temp_grows(void)
{
	size_t last = 0;

	for (uint32_t rows = 1; rows < 2000000000; rows += rows / 3 + 1)
	{
		size_t all;
		size_t fewer = 0;

		TEST_CUDA(gpusort_radix_temp_bytes(rows, 32, &all));
		TEST_CHECK(all >= last, "%u rows take %zu bytes, fewer took %zu", rows, all, last);
		last = all;
		for (int bits = 0; bits <= 32; bits++)
		{
			size_t bytes;

			TEST_CUDA(gpusort_radix_temp_bytes(rows, bits, &bytes));
			/* our core's idle pass makes one digit in place cost what two do */
			TEST_CHECK(bytes >= fewer && bytes <= all, "%u rows, %d bits take %zu bytes of %zu", rows, bits, bytes,
					   all);
			fewer = bytes;
		}
	}
	test_point("temp for more rows and bits serves fewer");
}

int
main(int argc, char **argv)
{
#ifdef __CUDACC__
	test_begin(argc, argv, 1000000, 200);
#else
	test_begin(argc, argv, 17000, 10); /* tiles are of some thousand rows */
#endif
	for (GpuSortRadixChoice choice : {GPUSORT_RADIX_ONESWEEP, GPUSORT_RADIX_CUB})
	{
		const char *name;

		/* compute-sanitizer is to look at our kernels, which takes it long enough */
		if (choice == GPUSORT_RADIX_CUB && test_raw())
			continue;
		gpusort_radix_choose(choice);
		TEST_CUDA(gpusort_radix_chosen(&name));
		TEST_CHECK(strcmp(name, choice == GPUSORT_RADIX_CUB ? "cub" : "onesweep") == 0, "it is %s", name);
		test_point("%s is chosen", name);
		test_sizes();
		test_bits();
		test_distributions();
		test_at_random();
		test_refusals();
		test_temp_grows();
#ifdef __CUDACC__
		test_large();
#endif
	}
#ifndef __CUDACC__
	test_little_memory();
#endif
	return test_end();
}
