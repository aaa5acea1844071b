/*-------------------------------------------------------------------------
 *
 * key_stats_test.cu
 *	  Statistics of keys on the device against the host's, for arrays of every kind
 *	  and for chunks, good ones and bad ones; and packed keys made on the device.
 *	  Prints TAP.
 *
 *-------------------------------------------------------------------------
 */
#include "device_test.h"

#include "sort/compact.h"
#include "sort/key_source.h"
#include "sort/key_stats.h"
#include "sort/launch.h"

typedef std::vector<uint64_t> Key;

static GpuSortKeyStats *stats_there; /* on the device */
static uint32_t *bad_there;

static void
reset_stats(void)
{
	stats_there = (GpuSortKeyStats *) test_device(sizeof(GpuSortKeyStats));
	bad_there = (uint32_t *) test_device(sizeof(uint32_t));
	TEST_CUDA((cudaError_t) gpusort_key_stats_reset(stats_there, (struct CUstream_st *) test_stream));
	TEST_CUDA(cudaMemsetAsync(bad_there, 0, sizeof(uint32_t), test_stream));
}

/* Adds one key to what the host knows. */
static void
add_key(GpuSortKeyStats *stats, const uint64_t *key, uint32_t words)
{
	for (uint32_t w = 0; w < words; w++)
	{
		stats->key_or[w] |= key[w];
		stats->key_and[w] &= key[w];
		stats->key_min[w] = std::min(stats->key_min[w], key[w]);
		stats->key_max[w] = std::max(stats->key_max[w], key[w]);
	}
}

/* What the device found against what the host did. */
static void
check_stats(const GpuSortKeyStats *expected, uint32_t bad_rows, const char *what, uint32_t rows, uint32_t words)
{
	GpuSortKeyStats found;
	uint32_t bad;

	test_download(&found, stats_there, sizeof(found));
	test_download(&bad, bad_there, sizeof(bad));
	for (uint32_t w = 0; w < GPUSORT_DEVICE_SORT_MAX_KEY_WORDS; w++)
		TEST_CHECK(found.key_or[w] == expected->key_or[w] && found.key_and[w] == expected->key_and[w] &&
					   found.key_min[w] == expected->key_min[w] && found.key_max[w] == expected->key_max[w],
				   "%s, %u rows of %u words: word %u", what, rows, words, w);
	TEST_CHECK(found.pairs == expected->pairs && found.descents == expected->descents,
			   "%s, %u rows of %u words: %llu descents of %llu pairs, not %llu of %llu", what, rows, words,
			   (unsigned long long) found.descents, (unsigned long long) found.pairs,
			   (unsigned long long) expected->descents, (unsigned long long) expected->pairs);
	TEST_CHECK(bad == bad_rows, "%s: %u bad rows, not %u", what, bad, bad_rows);
}

/* Keys of some pattern: any, few distinct words, or in some order. */
static std::vector<Key>
make_keys(uint32_t rows, uint32_t words)
{
	std::vector<Key> keys(rows, Key(words));
	uint64_t high = test_random();
	uint64_t distinct = test_below(2) ? 0 : 1 + test_below(3);
	uint32_t same = (uint32_t) test_below(words + 1);
	int order = (int) test_below(4);

	for (Key &key : keys)
		for (uint32_t w = 0; w < words; w++)
			key[w] = w < same ? high : distinct > 0 ? high + test_below(distinct)
													: test_random();
	if (order == 1 || order == 2)
		std::sort(keys.begin(), keys.end());
	if (order == 2)
		std::reverse(keys.begin(), keys.end());
	if (order > 0 && test_below(2) && rows > 1)
		std::swap(keys[0], keys[test_below(rows)]);
	return keys;
}

static uint32_t
random_rows(void)
{
	const uint32_t sizes[] = {1, 2, 31, 32, 33, 255, 256, 257, 511, 512, 513, 1023, 1024, 1025, 2047, 2048, 2049};

	if (test_below(2))
		return sizes[test_below(sizeof(sizes) / sizeof(sizes[0]))];
	return (uint32_t) (1 + test_below(test_below(4) ? std::min(test_rows, (uint64_t) 5000) : test_rows));
}

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

/* A chunk of these keys as it lies in device memory, its records in any order; may spoil some rows. */
static std::vector<char>
make_chunk(const std::vector<Key> &keys, uint32_t words, uint32_t spoil, GpuSortDeviceChunk *chunk,
		   GpuSortKeyStats *expected, uint32_t *bad_rows)
{
	const uint32_t rows = (uint32_t) keys.size();
	std::vector<uint32_t> places(rows);
	std::vector<uint32_t> offsets(rows);
	std::vector<bool> readable(rows, true);
	std::vector<char> memory;

	std::iota(places.begin(), places.end(), 0);
	if (test_below(2))
	{
		for (uint32_t i = rows; i > 1; i--)
			std::swap(places[i - 1], places[test_below(i)]);
	}
	for (uint32_t row : places)
	{
		uint32_t length = (uint32_t) (GPUSORT_ROW_BYTES_MIN + test_below(20));
		size_t at = memory.size();

		offsets[row] = (uint32_t) at;
		memory.resize(at + 8 * words + (length + 7) / 8 * 8);
		memcpy(&memory[at], keys[row].data(), 8 * words);
		memcpy(&memory[at + 8 * words], &length, sizeof(length));
	}
	chunk->bytes = (uint32_t) memory.size();
	chunk->rows = rows;
	for (uint32_t i = 0; i < spoil; i++)
	{
		uint32_t row = (uint32_t) test_below(rows);
		uint32_t length = test_below(2) ? (uint32_t) test_below(GPUSORT_ROW_BYTES_MIN) : UINT32_MAX;
		const uint32_t wrong[] = {4, chunk->bytes, chunk->bytes - 8 * words, UINT32_MAX - 7, UINT32_MAX};

		if (!readable[row])
			continue;
		if (test_below(2))
		{
			offsets[row] = wrong[test_below(5)];
			readable[row] = false;
		}
		else
			memcpy(&memory[offsets[row] + 8 * words], &length, sizeof(length));
	}

	gpusort_key_stats_none(expected);
	*bad_rows = 0;
	for (uint32_t i = 0; i < rows; i++)
	{
		uint32_t length;

		if (!readable[i])
		{
			++*bad_rows;
			continue;
		}
		memcpy(&length, &memory[offsets[i] + 8 * words], sizeof(length));
		*bad_rows += length < GPUSORT_ROW_BYTES_MIN || length == UINT32_MAX;
		add_key(expected, keys[i].data(), words);
		if (i + 1 < rows && readable[i + 1])
			gpusort_key_stats_pair(expected, keys[i].data(), keys[i + 1].data(), words);
	}
	for (uint32_t i = rows; i-- > 0;)
		memory.insert(memory.end(), (char *) &offsets[i], (char *) &offsets[i] + sizeof(uint32_t));
	return memory;
}

static void
test_chunks(void)
{
	for (uint64_t round = 0; round < 2 * test_rounds; round++)
	{
		uint32_t words = (uint32_t) (1 + test_below(round % 4 ? 6 : GPUSORT_DEVICE_SORT_MAX_KEY_WORDS));
		uint32_t rows = std::min(random_rows(), (uint32_t) GPUSORT_REF_CHUNK_BYTES / 4 / (8 * words + 12));
		GpuSortKeyStats expected;
		GpuSortDeviceChunk chunk = {};
		uint32_t bad_rows;
		std::vector<char> memory = make_chunk(make_keys(rows, words), words, round % 3 ? 0 : 1 + rows / 8, &chunk,
											  &expected, &bad_rows);

		reset_stats();
		chunk.base = (uint64_t) (uintptr_t) test_device_copy(memory);
		TEST_CUDA((cudaError_t) gpusort_key_stats_chunk(&chunk, words, stats_there, bad_there,
														(struct CUstream_st *) test_stream));
		check_stats(&expected, bad_rows, "chunk", rows, words);
		test_free_all();
	}
	test_point("statistics of chunks, and their bad rows");
}

static __global__ void
pack_windows(const uint64_t *keys, const __grid_constant__ GpuSortPackPlan plan, uint32_t rows, uint32_t from_top,
			 uint32_t bits, uint64_t *windows)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < rows)
		windows[i] = gpusort_pack_window64(&plan, keys + (uint64_t) i * plan.key_words, from_top, bits);
}

/* The same by a plan of the window alone, two rows at a time. */
static __global__ void
pack_pairs(const uint64_t *keys, const __grid_constant__ GpuSortPackPlan window, uint32_t rows, uint32_t *packed)
{
	uint32_t i = 2 * (blockIdx.x * blockDim.x + threadIdx.x);
	uint32_t other = i + 1 < rows ? i + 1 : i;

	if (i < rows)
	{
		const uint64_t *const places[2] = {keys + (uint64_t) i * window.key_words,
										   keys + (uint64_t) other * window.key_words};
		uint32_t pair[2];

		gpusort_pack_keys(&window, places, pair);
		packed[i] = pair[0];
		packed[other] = pair[1];
	}
}

/* Plans from the device's own statistics. */
static void
test_windows(void)
{
	for (uint64_t round = 0; round < test_rounds; round++)
	{
		uint32_t words = (uint32_t) (1 + test_below(5));
		uint32_t rows = random_rows();
		std::vector<uint64_t> memory;
		GpuSortKeySource source = {};
		GpuSortKeyStats stats;
		GpuSortPackPlan plan;
		GpuSortPackPlan window;
		uint32_t from_top;
		uint32_t bits = (uint32_t) (1 + test_below(64));
		uint64_t *windows = (uint64_t *) test_device(rows * sizeof(uint64_t));
		uint32_t *packed = (uint32_t *) test_device(rows * sizeof(uint32_t));
		std::vector<uint64_t> found;
		std::vector<uint32_t> pairs;

		for (const Key &key : make_keys(rows, words))
			memory.insert(memory.end(), key.begin(), key.end());
		source.kind = GPUSORT_KEYS_WORDS;
		source.key_words = words;
		source.stride_words = words;
		source.base = test_device_copy(memory);
		reset_stats();
		TEST_CUDA((cudaError_t) gpusort_key_stats_array(&source, rows, stats_there,
														(struct CUstream_st *) test_stream));
		test_download(&stats, stats_there, sizeof(stats));
		gpusort_pack_plan(&plan, words, &stats);
		from_top = (uint32_t) test_below(plan.packed_bits + 1);
		GPUSORT_START_KERNEL(pack_windows, (rows + 255) / 256, 256, test_stream, (const uint64_t *) source.base, plan,
							 rows, from_top, bits, windows);
		TEST_CUDA(cudaGetLastError());
		found = test_host_copy(windows, rows);
		for (uint32_t i = 0; i < rows; i++)
			TEST_CHECK(found[i] == gpusort_pack_window64(&plan, &memory[(size_t) i * words], from_top, bits),
					   "row %u of %u words, %u bits from %u of %u", i, words, bits, from_top, plan.packed_bits);

		/* a plan of the window alone */
		bits = (bits + 1) / 2;
		gpusort_pack_window_plan(&window, &plan, from_top, bits);
		TEST_CHECK(window.packed_bits == gpusort_pack_window_bits(&plan, from_top, bits), "%u bits from %u of %u",
				   bits, from_top, plan.packed_bits);
		GPUSORT_START_KERNEL(pack_pairs, (rows + 255) / 256, 256, test_stream, (const uint64_t *) source.base, window,
							 rows, packed);
		TEST_CUDA(cudaGetLastError());
		pairs = test_host_copy(packed, rows);
		for (uint32_t i = 0; i < rows; i++)
			TEST_CHECK(pairs[i] == gpusort_pack_window64(&plan, &memory[(size_t) i * words], from_top, bits),
					   "row %u of %u words, %u bits from %u of %u", i, words, bits, from_top, plan.packed_bits);
		test_free_all();
	}
	test_point("windows of packed keys are the same on the device and on the host");
}

int
main(int argc, char **argv)
{
	test_begin(argc, argv, 30000, 40);
	test_words();
	test_plain();
	test_chunks();
	test_windows();
	return test_end();
}
