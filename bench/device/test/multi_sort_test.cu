/*-------------------------------------------------------------------------
 *
 * multi_sort_test.cu
 *	  Sorts over several devices, host to host (multi/multi_sort.h), against
 *	  std::stable_sort.  Prints TAP.
 *
 * With fewer GPUs than a case wants, ordinals repeat: a GPU then plays several
 * devices.  Where CUDA is emulated there are as many devices as it takes, and
 * calls that fail are tried as well.
 *
 *-------------------------------------------------------------------------
 */
#include "device_test.h"

#include "distributions.h"
#include "multi/multi_sort.h"
#include "sort/radix/radix_sort.h"

#define POISON ((char) 0xA7)

/* Kinds of keys beyond the distributions of the papers. */
enum
{
	KEYS_ZIPF_THREE = GPUSORT_DISTRIBUTIONS,
	KEYS_TWO_VALUES,
	KEYS_LOW_BITS, /* what differs is at the bottom */
	KEYS_EXTREMES, /* 0 and the largest key, mostly */
	KEYS_KINDS
};

/* 8 bytes or 4, as the config has them. */
static std::vector<char>
make_keys(uint64_t rows, int kind, uint32_t key_bytes)
{
	std::vector<char> keys(rows * key_bytes);
	uint64_t seed = test_random();

	for (uint64_t i = 0; i < rows; i++)
	{
		uint64_t random = gpusort_row_random(seed, i, 0);
		uint64_t key = kind == KEYS_ZIPF_THREE ? gpusort_row_zipf(seed, i, 3.0, 1e6)
			: kind == KEYS_TWO_VALUES          ? (random & 1) * 0x12345678
			: kind == KEYS_LOW_BITS            ? random % 1000
			: kind == KEYS_EXTREMES            ? (random % 8 == 0 ? random : 0 - (random >> 8 & 1))
			: key_bytes == 4                   ? gpusort_distribution_key32(kind, i, rows, seed)
											   : gpusort_distribution_key64(kind, i, rows, seed);

		memcpy(&keys[i * key_bytes], &key, key_bytes);
	}
	return keys;
}

static std::vector<char>
make_payload(uint64_t rows, uint32_t bytes)
{
	std::vector<char> payload(rows * bytes);

	for (char &byte : payload)
		byte = (char) test_random();
	return payload;
}

/* The bytes of all rows, in this order. */
static std::vector<char>
in_order(const std::vector<char> &rows, uint32_t row_bytes, const std::vector<uint32_t> &order)
{
	std::vector<char> result;

	result.reserve(rows.size());
	for (uint32_t row : order)
		result.insert(result.end(), rows.begin() + (size_t) row * row_bytes,
					  rows.begin() + (size_t) (row + 1) * row_bytes);
	return result;
}

template <typename Key>
static std::vector<uint32_t>
right_order(const std::vector<char> &keys)
{
	const Key *values = (const Key *) keys.data();

	return test_stable_order(keys.size() / sizeof(Key), [=](uint32_t a, uint32_t b)
							 { return values[a] < values[b]; });
}

/* An output that is poisoned, with a band behind it. */
struct Output
{
	std::vector<char> bytes;
	size_t wanted;

	explicit Output(size_t wanted_)
		: bytes(wanted_ + TEST_GUARD_BYTES, POISON), wanted(wanted_)
	{
	}

	/* nothing was written if it was not asked for */
	bool
	is(const std::vector<char> &right, bool asked) const
	{
		for (size_t i = wanted; i < bytes.size(); i++)
		{
			if (bytes[i] != POISON)
				return false;
		}
		for (size_t i = 0; i < wanted; i++)
		{
			if (bytes[i] != (asked ? right[i] : POISON))
				return false;
		}
		return true;
	}
};

static int
device_total(void)
{
	int count;

	TEST_CUDA(cudaGetDeviceCount(&count));
	return count;
}

static GpuSortMultiConfig
make_config(int devices, uint64_t max_rows, uint32_t key_bytes, uint32_t payload_bytes, uint32_t flags)
{
	GpuSortMultiConfig config = {};

	config.device_count = devices;
	for (int i = 0; i < devices; i++)
		config.devices[i] = i % device_total();
	config.max_rows = max_rows;
	config.key_bytes = key_bytes;
	config.payload_bytes = payload_bytes;
	config.flags = flags;
	return config;
}

typedef struct Wanted
{
	bool keys;
	bool ids;
	bool payload;
	bool in_place; /* keys and payload go where they came from */
} Wanted;

/* One sort; returns its status, and compares if it is 0. */
static int
run_sort(GpuSortMulti *multi, const GpuSortMultiConfig *config, uint64_t rows, int kind, Wanted wanted,
		 GpuSortMultiReport *report)
{
	const uint32_t payload_bytes = config->payload_bytes;
	std::vector<char> keys = make_keys(rows, kind, config->key_bytes);
	std::vector<char> payload = make_payload(rows, payload_bytes);
	const std::vector<char> keys_before = keys;
	const std::vector<char> payload_before = payload;
	Output keys_out(keys.size());
	Output ids_out(rows * sizeof(uint32_t));
	Output payload_out(payload.size());
	GpuSortMultiJob job = {};
	uint64_t bin_rows = 0;
	uint32_t bins = 0;
	int status;

	wanted.ids = wanted.ids && (config->flags & GPUSORT_MULTI_IDS) != 0;
	wanted.payload = wanted.payload && payload_bytes > 0;
	job.rows = rows;
	job.keys = keys.data();
	job.payload = payload_bytes > 0 ? payload.data() : NULL;
	if (wanted.keys)
		job.keys_out = wanted.in_place ? keys.data() : keys_out.bytes.data();
	if (wanted.ids)
		job.ids_out = (uint32_t *) ids_out.bytes.data();
	if (wanted.payload)
		job.payload_out = wanted.in_place ? payload.data() : payload_out.bytes.data();

	status = gpusort_multi_sort(multi, &job, report);
	if (status != cudaSuccess)
		return status;

	std::vector<uint32_t> order =
		config->key_bytes == 4 ? right_order<uint32_t>(keys_before) : right_order<uint64_t>(keys_before);
	std::vector<char> right_keys = in_order(keys_before, config->key_bytes, order);
	std::vector<char> right_ids((char *) order.data(), (char *) (order.data() + rows));
	std::vector<char> right_payload = in_order(payload_before, payload_bytes, order);
	const char *what = kind < GPUSORT_DISTRIBUTIONS ? gpusort_distribution_name(kind)
		: kind == KEYS_ZIPF_THREE                   ? "zipf3"
		: kind == KEYS_TWO_VALUES                   ? "two values"
		: kind == KEYS_LOW_BITS                     ? "low bits"
													: "extremes";

	TEST_CHECK(wanted.keys && wanted.in_place ? keys == right_keys
											  : keys_out.is(right_keys, wanted.keys) && keys == keys_before,
			   "%llu rows, %s, %d devices: keys are wrong", (unsigned long long) rows, what, config->device_count);
	TEST_CHECK(ids_out.is(right_ids, wanted.ids), "%llu rows, %s, %d devices: ids are wrong", (unsigned long long) rows,
			   what, config->device_count);
	TEST_CHECK(wanted.payload && wanted.in_place
				   ? payload == right_payload
				   : payload_out.is(right_payload, wanted.payload) && payload == payload_before,
			   "%llu rows, %s, %d devices: payload is wrong", (unsigned long long) rows, what, config->device_count);
	for (int i = 0; i < config->device_count; i++)
	{
		bin_rows += report->devices[i].rows;
		bins += report->devices[i].bins;
	}
	TEST_CHECK(bin_rows == rows && bins <= report->bins && report->attempts >= (rows > 0),
			   "%llu rows: the report tells of %llu rows in %u of %u bins", (unsigned long long) rows,
			   (unsigned long long) bin_rows, bins, report->bins);
	return status;
}

static const Wanted everything = {true, true, true, false};

/* One case: sorts that must succeed, of so many rows each, in one context. */
static void
check_sorts(const GpuSortMultiConfig *config, const std::vector<uint64_t> &sizes, const std::vector<int> &kinds,
			Wanted wanted)
{
	GpuSortMulti *multi;
	GpuSortMultiReport report;

	if (!test_taken())
		return;
	TEST_CUDA((cudaError_t) gpusort_multi_open(config, &multi));
	for (uint64_t rows : sizes)
	{
		for (int kind : kinds)
			TEST_CUDA((cudaError_t) run_sort(multi, config, rows, kind, wanted, &report));
	}
	gpusort_multi_close(multi);
}

/* ---- cases ---- */

static void
test_devices(void)
{
	for (int devices : {1, 2, 3, 4, 7, 16})
	{
		GpuSortMultiConfig config = make_config(devices, test_rows, 4, 0, 0);

		config.chunk_rows = 5000;
		check_sorts(&config, {0, 1, 2, 5, 100, test_rows}, {GPUSORT_UNIFORM}, everything);
		config = make_config(devices, test_rows, 8, 0, GPUSORT_MULTI_IDS);
		config.chunk_rows = (uint32_t) test_rows / 5;
		config.bins_per_device = 3;
		check_sorts(&config, {test_rows, 3, 0, 17}, {GPUSORT_GAUSSIAN}, everything);
		test_point("%d devices", devices);
	}

	GpuSortMultiConfig config = make_config(2, 200, 4, 0, GPUSORT_MULTI_IDS);

	config.chunk_rows = 1;
	check_sorts(&config, {200}, {GPUSORT_UNIFORM}, everything);
	test_point("chunks of one row");
}

static void
test_distributions(void)
{
	for (int kind = 0; kind < KEYS_KINDS; kind++)
	{
		const int devices = 1 + kind % 4;
		GpuSortMultiConfig config = make_config(devices, test_rows, kind % 2 ? 4 : 8, 0, GPUSORT_MULTI_IDS);

		config.chunk_rows = 1 + (uint32_t) (test_rows / 8 + test_below(test_rows / 4));
		config.bins_per_device = 2 + (uint32_t) test_below(7);
		check_sorts(&config, {test_rows / 2}, {kind}, everything);
		config.key_bytes = 12 - config.key_bytes;
		config.flags = 0;
		check_sorts(&config, {test_rows / 2}, {kind}, everything);
	}
	test_point("the papers' distributions, zipf to 3, few values and many bits; keys alone and with ids");
}

static void
test_payload(void)
{
	for (uint32_t bytes : {4, 8, 12, 16, 100})
	{
		for (uint32_t flags : {0, GPUSORT_MULTI_IDS, GPUSORT_MULTI_COPY})
		{
			GpuSortMultiConfig config = make_config(3, 3000, bytes % 8 ? 4 : 8, bytes, flags);

			config.chunk_rows = 700;
			config.bins_per_device = 2;
			check_sorts(&config, {3000}, {GPUSORT_ZIPF_HALF}, everything);
		}
	}
	test_point("payload of 4 to 100 bytes, with and without ids, exchanged by copies too");
}

static void
test_outputs(void)
{
	for (uint32_t key_bytes : {4, 8})
	{
		GpuSortMultiConfig config = make_config(2, 3000, key_bytes, 12, GPUSORT_MULTI_IDS);

		config.chunk_rows = 900;
		config.bins_per_device = 2;
		for (int bits = 0; bits < 16; bits++)
			check_sorts(&config, {2500}, {GPUSORT_BUCKET},
						{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0});
	}
	test_point("outputs that are not wanted, and outputs in the input's place");
}

static void
test_peers(void)
{
	GpuSortMultiConfig config = make_config(4, 4000, 8, 8, GPUSORT_MULTI_IDS | GPUSORT_MULTI_COPY);

	config.chunk_rows = 300;
	config.bins_per_device = 2;
	check_sorts(&config, {4000}, {GPUSORT_UNIFORM, GPUSORT_SORTED, GPUSORT_ZERO}, everything);
	test_point("exchange by copies");
#ifndef __CUDACC__
	GpuSortMulti *multi;
	GpuSortMultiReport report;

	setenv("GPUSORT_EMULATE_NO_PEERS", "1", 1);
	config.flags = GPUSORT_MULTI_IDS;
	TEST_CUDA((cudaError_t) gpusort_multi_open(&config, &multi));
	TEST_CUDA((cudaError_t) run_sort(multi, &config, 4000, GPUSORT_STAGGERED, everything, &report));
	TEST_CHECK(!report.peer_access, "devices without access to each other exchanged by kernels");
	gpusort_multi_close(multi);
	unsetenv("GPUSORT_EMULATE_NO_PEERS");
	test_point("devices without access to each other");
#endif
}

/* With one sampled row per bin, bins come out too large for their room now and then. */
static void
test_poor_samples(void)
{
	uint32_t attempts = 0;

	for (int kind : {GPUSORT_UNIFORM, GPUSORT_ZERO, GPUSORT_REVERSE})
	{
		GpuSortMultiConfig config = make_config(3, 2000, 4, 0, GPUSORT_MULTI_IDS);
		GpuSortMulti *multi;
		GpuSortMultiReport report;

		if (!test_taken())
			continue;
		config.chunk_rows = 700;
		config.bins_per_device = 10;
		config.sample_per_bin = 1;
		TEST_CUDA((cudaError_t) gpusort_multi_open(&config, &multi));
		for (uint64_t rows : {2000, 1999, 31, 30})
		{
			TEST_CUDA((cudaError_t) run_sort(multi, &config, rows, kind, everything, &report));
			attempts += report.attempts;
		}
		gpusort_multi_close(multi);
	}
	TEST_CHECK(attempts > 12 || test_one_in > 1, "no sample was poor");
	test_point("a poor sample only costs time");
}

static void
test_at_random(void)
{
	for (uint64_t round = 0; round < test_rounds; round++)
	{
		const int devices = 1 + (int) test_below(test_below(4) ? 4 : GPUSORT_MULTI_MAX_DEVICES);
		const uint64_t rows = test_below(2) ? test_rows : 1 + test_below(200);
		GpuSortMultiConfig config = make_config(devices, rows, test_below(2) ? 4 : 8,
												test_below(3) ? 0 : 4 * (1 + (uint32_t) test_below(12)),
												(uint32_t) test_below(4));
		std::vector<uint64_t> sizes;
		std::vector<int> kinds;

		if (test_below(4))
			config.chunk_rows = 1 + (uint32_t) (rows / 20 + test_below(rows));
		if (test_below(4))
			config.bins_per_device = 1 + (uint32_t) test_below(10);
		for (int i = 0; i < 2; i++)
		{
			sizes.push_back(test_below(rows + 1));
			kinds.push_back((int) test_below(KEYS_KINDS));
		}
		check_sorts(&config, sizes, kinds,
					{test_below(4) > 0, test_below(4) > 0, test_below(4) > 0, test_below(4) == 0});
	}
	test_point("%llu contexts at random", (unsigned long long) test_rounds);
}

static void
test_refusals(void)
{
	GpuSortMultiConfig config = make_config(2, 1000, 4, 0, 0);
	GpuSortMultiConfig bad;
	GpuSortMulti *multi;
	GpuSortMultiJob job = {};
	size_t bytes = 0;
	char rows[4000];

#define REFUSED(change, status)                                                           \
	do                                                                                    \
	{                                                                                     \
		bad = config;                                                                     \
		bad.change;                                                                       \
		multi = (GpuSortMulti *) &bad;                                                    \
		TEST_CHECK(gpusort_multi_open(&bad, &multi) == status && multi == NULL, #change); \
	} while (0)

	REFUSED(device_count = 0, cudaErrorInvalidValue);
	REFUSED(device_count = 17, cudaErrorInvalidValue);
	REFUSED(key_bytes = 2, cudaErrorInvalidValue);
	REFUSED(payload_bytes = 6, cudaErrorInvalidValue);
	REFUSED(payload_bytes = 4100, cudaErrorInvalidValue);
	REFUSED(flags = 8, cudaErrorInvalidValue);
	REFUSED(bins_per_device = 257, cudaErrorInvalidValue);
	REFUSED(max_rows = (uint64_t) 1 << 41, cudaErrorInvalidValue);
	REFUSED(max_rows = (uint64_t) 1 << 39, cudaErrorMemoryAllocation);

	config.flags = GPUSORT_MULTI_IDS;
	REFUSED(max_rows = UINT32_MAX, cudaErrorInvalidValue);
	config.flags = 0;

	TEST_CHECK(gpusort_multi_device_bytes(&config, &bytes) == cudaSuccess && bytes > 4000, "bytes of a device");
	TEST_CUDA((cudaError_t) gpusort_multi_open(&config, &multi));
	job.rows = 1001;
	job.keys = rows;
	TEST_CHECK(gpusort_multi_sort(multi, &job, NULL) == cudaErrorInvalidValue, "more rows than max_rows");
	job.rows = 10;
	job.ids_out = (uint32_t *) rows;
	TEST_CHECK(gpusort_multi_sort(multi, &job, NULL) == cudaErrorInvalidValue, "ids of a context without");
	job.ids_out = NULL;
	job.payload_out = rows;
	TEST_CHECK(gpusort_multi_sort(multi, &job, NULL) == cudaErrorInvalidValue, "payload of a context without");
	job.payload_out = NULL;
	job.keys = NULL;
	TEST_CHECK(gpusort_multi_sort(multi, &job, NULL) == cudaErrorInvalidValue, "no keys");
	job.keys = rows;
	memset(rows, 1, sizeof(rows));
	TEST_CHECK(gpusort_multi_sort(multi, &job, NULL) == cudaSuccess, "the context has suffered");
	gpusort_multi_close(multi);
	gpusort_multi_close(NULL);
	test_point("what cannot be is refused, and harms nobody");
}

/* ---- faults ---- */

#ifndef __CUDACC__

/* Calls fail, one in each run: no sort that failed says that it succeeded, nothing hangs, nothing is left. */
static void
test_faults(void)
{
	GpuSortMultiConfig config = make_config(2, 500, 8, 4, GPUSORT_MULTI_IDS);
	bool failed = true;
	long call;

	config.chunk_rows = 100;
	config.bins_per_device = 2;
	for (call = 1; failed && call < 2000; call += 1 + (long) test_below(7))
	{
		GpuSortMulti *multi = NULL;
		GpuSortMultiReport report;
		int status;

		emulate_fail(call);
		status = gpusort_multi_open(&config, &multi);
		TEST_CHECK((status == cudaSuccess) == (multi != NULL), "call %ld: status %d, context %p", call, status,
				   (void *) multi);
		if (status == cudaSuccess)
		{
			status = run_sort(multi, &config, 500, GPUSORT_UNIFORM, everything, &report);
			if (status != cudaSuccess)
				TEST_CHECK(run_sort(multi, &config, 500, GPUSORT_UNIFORM, everything, &report) == status,
						   "call %ld: a broken context sorts", call);
		}
		failed = status != cudaSuccess;
		emulate_fail(0);
		gpusort_multi_close(multi);
	}
	emulate_fail(0);
	TEST_CHECK(!failed && call > 100, "%ld calls", call);
	test_point("faults in calls up to number %ld", call);
}

#endif

int
main(int argc, char **argv)
{
#ifdef __CUDACC__
	test_begin(argc, argv, 1000000, 50);
#else
	setenv("GPUSORT_EMULATE_DEVICES", "16", 1);
	test_begin(argc, argv, 3000, 4);

	/* our core costs far more than all the rest where CUDA is emulated, and has a test of its own */
	gpusort_radix_choose(GPUSORT_RADIX_CUB);
	test_faults();
#endif
	test_refusals();
	test_devices();
	test_distributions();
	test_payload();
	test_outputs();
	test_peers();
	test_poor_samples();
	test_at_random();
	return test_end();
}
